//! What one network, or one person, may hold: the accounts as the configuration wants them.

use scrinium_accounting::{
    AccountOptions, Accounts, AddressRange, GuessOptions, HolderLimits, NetworkPrefixes,
};
use scrinium_clock::Clock;

use crate::config::Settings;
use crate::file_limits::FileShares;

/// The accounts of a server that begins.
pub(crate) fn accounts(settings: &Settings, files: FileShares, clock: Clock) -> Accounts {
    let (limits, login) = (&settings.limits, &settings.login);
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Accounts::new(AccountOptions {
        connections: files.connections,
        prefixes: NetworkPrefixes {
            ipv4_bits: u8::try_from(limits.ipv4_bits).unwrap_or(32),
            ipv6_bits: u8::try_from(limits.ipv6_bits).unwrap_or(128),
        },
        network: HolderLimits {
            connections: limits.network_connections,
            requests: limits.network_requests,
            // Nobody has a feed before logging in.
            feeds: 0,
            bytes: bytes(limits.network_bytes),
            threads: limits.network_threads,
            logins: limits.network_logins,
            file_bytes: bytes(limits.network_file_bytes),
        },
        person: HolderLimits {
            connections: limits.person_connections,
            requests: limits.person_requests,
            feeds: limits.person_feeds,
            bytes: bytes(limits.person_bytes),
            threads: limits.person_threads,
            logins: limits.network_logins,
            file_bytes: bytes(limits.person_file_bytes),
        },
        guesses: GuessOptions {
            lock_after: number(login.lock_after),
            lock_for: login.lock_for,
            delay_after: number(login.delay_after),
            delay_first: login.delay_first,
            delay_most: login.delay_most,
            ..GuessOptions::default()
        },
        clock,
    })
}

/// The proxies that are believed. The configuration has checked them.
pub(crate) fn trusted_proxies(settings: &Settings) -> Vec<AddressRange> {
    settings.http.trusted_proxies.iter().filter_map(|range| range.parse().ok()).collect()
}
