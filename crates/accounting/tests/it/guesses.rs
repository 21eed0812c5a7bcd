//! Locks and delays, by a clock that the test moves.

use std::net::IpAddr;
use std::time::Duration;

use scrinium_accounting::{
    AccountOptions, Accounts, GuessOptions, Network, NetworkPrefixes, Standing, Verdict,
};
use scrinium_clock::{Clock, ManualClock};

const SECOND: Duration = Duration::from_secs(1);

fn network(text: &str) -> Network {
    Network::of(text.parse::<IpAddr>().unwrap(), NetworkPrefixes::default())
}

fn accounts(guesses: GuessOptions) -> (Accounts, ManualClock) {
    let manual = Clock::manual(1_700_000_000_000);
    (Accounts::new(AccountOptions { guesses, clock: manual.clock(), ..AccountOptions::default() }), manual)
}

#[test]
fn a_name_and_a_network_lock_after_five_failures_and_nobody_else_does() {
    let (accounts, manual) = accounts(GuessOptions::default());
    let (here, there) = (network("192.0.2.1"), network("192.0.2.2"));
    let ada = accounts.guess("ada", here);
    for number in 0..5 {
        assert_eq!(ada.locked_for(), None);
        assert_eq!(ada.failed(number), number == 4);
        manual.advance(SECOND);
    }
    let Verdict::Locked(left) = ada.verdict() else { panic!("{:?}", ada.verdict()) };
    assert_eq!(left, Duration::from_mins(5) - SECOND);
    assert!(!ada.may_recall(), "memory would tell the one who guesses whether a password is right");
    // Another name from there, and the same name from elsewhere, are not locked.
    assert_eq!(accounts.guess("bob", here).locked_for(), None);
    assert_eq!(accounts.guess("ada", there).verdict(), Verdict::Now(Standing::Fresh));
    manual.advance(left);
    assert_eq!(ada.locked_for(), None);
    assert!(ada.may_recall());
    // It starts over: one failure does not lock again.
    assert!(!ada.failed(9));
    assert_eq!(accounts.guess_figures().failed, 6);
    assert_eq!(accounts.guess_figures().locked, 1);
}

#[test]
fn failures_count_for_five_minutes_and_a_success_ends_them() {
    let (accounts, manual) = accounts(GuessOptions::default());
    let ada = accounts.guess("ada", network("192.0.2.1"));
    // Never five within five minutes.
    for number in 0..20 {
        assert!(!ada.failed(number), "{number}");
        manual.advance(Duration::from_secs(76));
    }
    manual.advance(Duration::from_mins(5));
    (0..3).for_each(|number| assert!(!ada.failed(number)));
    ada.succeeded();
    (0..4).for_each(|number| assert!(!ada.failed(number)));
    assert!(ada.failed(4));
}

#[test]
fn addresses_of_one_customer_are_one_network() {
    let (accounts, _) = accounts(GuessOptions::default());
    for number in 0..5 {
        accounts.guess("ada", network(&format!("2001:db8::{number}"))).failed(number);
    }
    assert!(accounts.guess("ada", network("2001:db8::abcd")).locked_for().is_some());
    assert!(accounts.guess("ada", network("2001:db8:0:1::1")).locked_for().is_none());
}

#[test]
fn a_network_is_slowed_more_and_more_and_its_failures_wear_off() {
    let (accounts, manual) = accounts(GuessOptions::default());
    let here = network("192.0.2.1");
    accounts.guess("carol", here).succeeded();
    let mut delays = Vec::new();
    for number in 0..16 {
        let guess = accounts.guess(&format!("name{number}"), here);
        delays.push(match guess.verdict() {
            Verdict::Now(_) => 0,
            Verdict::After(delay) => delay.as_secs(),
            Verdict::Locked(_) => panic!("a network is never locked"),
        });
        guess.failed(number);
    }
    assert_eq!(delays, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 8, 15, 15, 15]);
    let fresh = || accounts.guess("somebody", here).verdict();
    assert_eq!(fresh(), Verdict::After(Duration::from_secs(15)));
    // Who has logged in from there before does not wait, and nobody elsewhere does.
    assert_eq!(accounts.guess("carol", here).verdict(), Verdict::Now(Standing::Known));
    assert_eq!(accounts.guess("somebody", network("192.0.2.2")).verdict(), Verdict::Now(Standing::Fresh));
    // One failure is forgotten every 30 seconds.
    manual.advance(Duration::from_secs(30 * 6));
    assert_eq!(fresh(), Verdict::After(Duration::from_secs(2)));
    manual.advance(Duration::from_secs(30));
    assert_eq!(fresh(), Verdict::Now(Standing::Suspect));
    manual.advance(Duration::from_mins(5));
    assert_eq!(fresh(), Verdict::Now(Standing::Fresh));
}

#[test]
fn who_comes_back_before_the_time_comes_after_others() {
    let (accounts, manual) = accounts(GuessOptions::default());
    let ada = accounts.guess("ada", network("192.0.2.1"));
    ada.sent_away(SECOND);
    assert_eq!(ada.verdict(), Verdict::Now(Standing::Suspect));
    assert_eq!(accounts.guess("ada", network("192.0.2.2")).verdict(), Verdict::Now(Standing::Fresh));
    manual.advance(SECOND);
    assert_eq!(ada.verdict(), Verdict::Now(Standing::Fresh));
}

#[test]
fn a_device_that_repeats_one_wrong_password_slows_its_network_little() {
    let (accounts, _) = accounts(GuessOptions { lock_after: 32, ..GuessOptions::default() });
    let here = network("192.0.2.1");
    (0..30).for_each(|_| assert!(!accounts.guess("ada", here).failed(7)));
    assert_eq!(accounts.guess("bob", here).verdict(), Verdict::Now(Standing::Suspect));
}

#[test]
fn memory_cannot_be_asked_again_and_again_for_passwords() {
    let (accounts, manual) = accounts(GuessOptions::default());
    let ada = accounts.guess("ada", network("192.0.2.1"));
    for _ in 0..5 {
        assert!(ada.may_recall());
        ada.recall_missed();
    }
    assert!(!ada.may_recall());
    assert_eq!(ada.locked_for(), None, "it is slow now, and not locked");
    assert!(accounts.guess("ada", network("192.0.2.2")).may_recall());
    ada.succeeded();
    assert!(ada.may_recall());
    (0..5).for_each(|_| ada.recall_missed());
    manual.advance(Duration::from_mins(5));
    assert!(ada.may_recall());
}

#[test]
fn many_addresses_take_no_more_memory_than_few() {
    let (accounts, _) = accounts(GuessOptions { kept: 64, ..GuessOptions::default() });
    let ada = accounts.guess("ada", network("192.0.2.1"));
    (0..5).for_each(|number| assert_eq!(ada.failed(number), number == 4));
    for number in 0..5000_u32 {
        let address = IpAddr::from(number.to_be_bytes());
        accounts.guess("eve", Network::of(address, NetworkPrefixes::default())).failed(u64::from(number));
    }
    // A lock is kept before single failures are.
    assert!(ada.locked_for().is_some());
}
