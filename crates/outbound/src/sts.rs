//! Policies of domains for those who send to them (MTA-STS, RFC 8461): found, fetched, kept, and used.
//!
//! What is kept stands in `_local` documents of the queue's database, so that a policy outlives restarts: otherwise who controls
//! the network would only have to wait for one (RFC 8461 §10.2). The first mail to a domain still trusts DNS.

mod fetch;
mod shelf;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustls::ClientConfig;
use scrinium_clock::Clock;
use scrinium_database::Database;
use scrinium_mail_discovery::sts::{KeptPolicy, StsMode, StsPlan, StsPolicy, StsRecord, plan, record_name};
use scrinium_mail_queue::route::{self, TargetOptions};
use scrinium_sender_authentication::{DomainName, Question};

use crate::resolve::Dns;
use crate::tls::TlsClient;

use fetch::Fetcher;
use shelf::Shelf;

/// Domains whose policies could last not be fetched; when there are more, all are forgotten.
const FAILED_MAX: usize = 10_000;

/// Where web servers listen.
pub const POLICY_PORT: u16 = 443;

/// Knows the policies of other domains. Clones share them.
#[derive(Clone)]
pub struct StsPolicies {
    shared: Arc<Shared>,
}

struct Shared {
    shelf: Shelf,
    fetcher: Fetcher,
    dns: Dns,
    clock: Clock,
    /// When a policy could last not be fetched, in seconds since 1970.
    failed: Mutex<HashMap<DomainName, u64>>,
    /// One at a time asks for a domain's policy; the others wait for what it finds.
    asking: Mutex<HashMap<DomainName, Arc<tokio::sync::Mutex<()>>>>,
    breaches: AtomicU64,
}

impl StsPolicies {
    /// Policies are kept in this database, and fetched at `port` of web servers, within `targets`.
    #[must_use]
    pub fn new(
        database: &Arc<Database>,
        (dns, tls, clock): (Dns, &TlsClient, Clock),
        targets: TargetOptions,
        port: u16,
    ) -> Self {
        let fetcher = Fetcher::new(dns.clone(), web(&tls.verified), targets, port);
        let shelf = Shelf::new(database);
        let (failed, asking) = (Mutex::default(), Mutex::default());
        let shared = Shared { shelf, fetcher, dns, clock, failed, asking, breaches: AtomicU64::new(0) };
        Self { shared: Arc::new(shared) }
    }

    /// The policy of a domain as it is now; it is fetched if it is not known. A domain whose policy cannot be had, and was not had
    /// before, has none.
    pub async fn of(&self, domain: &DomainName) -> Option<StsPolicy> {
        let shared = &self.shared;
        let turn = Arc::clone(shared.asking.lock().entry(domain.clone()).or_default());
        let found = {
            let _turn = turn.lock().await;
            shared.look(domain).await
        };
        drop(turn);
        let mut asking = shared.asking.lock();
        if asking.get(domain).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            asking.remove(domain);
        }
        found.filter(|policy| policy.mode != StsMode::None)
    }

    /// Attempts that were not as a policy wants them, whether they were made or not.
    #[must_use]
    pub fn breaches(&self) -> u64 {
        self.shared.breaches.load(Ordering::Relaxed)
    }

    /// Notes that a host is not as its domain's policy wants it.
    pub(crate) fn breached(&self, domain: &str, host: &str, mode: route::StsMode, reason: &str) {
        self.shared.breaches.fetch_add(1, Ordering::Relaxed);
        let is_kept_back = mode == route::StsMode::Enforce;
        tracing::info!(
            domain,
            host,
            is_kept_back,
            reason,
            "a mail host is not as its domain's MTA-STS policy says"
        );
    }
}

impl Shared {
    async fn look(&self, domain: &DomainName) -> Option<StsPolicy> {
        let now_seconds = self.clock.now_ms() / 1000;
        let kept = self.shelf.find(domain).await;
        let record = match record_name(domain) {
            Some(name) => StsRecord::of(&self.dns.answer(&Question::Texts(name)).await),
            None => StsRecord::Absent,
        };
        let failed = self.failed.lock().get(domain).copied();
        let kept = kept.filter(|kept| kept.holds(now_seconds));
        match plan(kept.as_ref(), &record, failed, now_seconds) {
            StsPlan::None => None,
            StsPlan::Use => kept.map(|kept| kept.policy),
            StsPlan::Fetch(id) => match self.fetcher.fetch(domain).await {
                Ok(policy) => {
                    self.failed.lock().remove(domain);
                    let fetched = KeptPolicy { id, policy: policy.clone(), fetched_seconds: now_seconds };
                    self.shelf.keep(domain, fetched, now_seconds).await;
                    Some(policy)
                }
                Err(error) => {
                    tracing::info!(%domain, %error, "an MTA-STS policy could not be fetched");
                    self.note_failure(domain, now_seconds);
                    kept.map(|kept| kept.policy)
                }
            },
        }
    }

    fn note_failure(&self, domain: &DomainName, now_seconds: u64) {
        let mut failed = self.failed.lock();
        if failed.len() >= FAILED_MAX {
            failed.clear();
        }
        failed.insert(domain.clone(), now_seconds);
    }
}

/// For a web server that speaks HTTP/1.1.
fn web(verified: &Arc<ClientConfig>) -> Arc<ClientConfig> {
    let mut config = ClientConfig::clone(verified);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

/// The policy as it chooses how a host is connected to.
pub(crate) fn for_route(policy: &StsPolicy) -> route::StsPolicy {
    let mode = match policy.mode {
        StsMode::Enforce => route::StsMode::Enforce,
        StsMode::Testing => route::StsMode::Testing,
        StsMode::None => route::StsMode::None,
    };
    route::StsPolicy { mode, hosts: policy.hosts.iter().map(ToString::to_string).collect() }
}
