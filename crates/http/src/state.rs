//! What every request of every port shares.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use http::HeaderValue;
use parking_lot::Mutex;
use scrinium_accounting::{AccountOptions, Accounts};
use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_port::PortCounters;
use scrinium_replication::Replicator;
use scrinium_statistics::{Counter, Registry};
use scrinium_worker::WorkerPool;
use tokio::sync::{Semaphore, watch};

use crate::acme::AcmeAnswers;
use crate::audit::{Audit, OfficialOpenings};
use crate::authority::{Administration, Authenticator};
use crate::budget::Budget;
use crate::dav::Keeper;
use crate::domain_check::DomainCheck;
use crate::error::Result;
use crate::held_mail::HeldMail;
use crate::mail_rules::MailRules;
use crate::mail_setup::MailSetup;
use crate::observer::Observer;
use crate::operation_log::{OperationLog, OperationLogOptions};
use crate::operations::Operations;
use crate::people_search::PeopleSearch;
use crate::uuid::UuidSequence;
use crate::waiting::ViewWaits;

/// Limits and times that hold for all ports.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// All request bodies held in memory at one time, what is made of them, and answers that wait for their clients, may
    /// be this many bytes together. What does not fit is answered with 503.
    pub body_budget_bytes: usize,
    /// How long an interactive feed waits for a change before it ends, where the client gives neither
    /// timeout nor heartbeat (CouchDB: 60,000).
    pub changes_timeout_ms: u64,
    /// The name that `/_membership` gives this server.
    pub node_name: String,
    /// Where what is done is written down, if anywhere.
    pub operation_log: Option<OperationLogOptions>,
    /// What networks and people hold, of this protocol and others.
    pub accounts: Accounts,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            body_budget_bytes: 256 << 20,
            changes_timeout_ms: 60_000,
            node_name: String::from("scrinium@127.0.0.1"),
            operation_log: None,
            accounts: Accounts::new(AccountOptions::default()),
        }
    }
}

/// Everything that [`HttpState::new`] needs.
pub struct Parts {
    /// All databases of the server.
    pub databases: Databases,
    /// Who people are.
    pub authenticator: Arc<dyn Authenticator>,
    /// How the server is run.
    pub administration: Arc<dyn Administration>,
    /// Threads for work that blocks.
    pub workers: WorkerPool,
    /// Where requests and operations are counted.
    pub statistics: Registry,
    /// Limits and times.
    pub options: HttpOptions,
}

/// What every request of every port shares. Clones share it.
#[derive(Clone)]
pub struct HttpState(Arc<SharedHttpState>);

/// What [`HttpState`] shares; only this crate sees inside.
pub struct SharedHttpState {
    pub(crate) databases: Databases,
    pub(crate) authenticator: Arc<dyn Authenticator>,
    pub(crate) administration: Arc<dyn Administration>,
    pub(crate) options: HttpOptions,
    pub(crate) operations: Operations,
    pub(crate) counters: Counters,
    pub(crate) uuids: UuidSequence,
    /// Memory for requests and answers.
    pub(crate) budget: Arc<Budget>,
    pub(crate) compactions: Compactions,
    pub(crate) view_waits: ViewWaits,
    pub(crate) operation_log: OperationLog,
    pub(crate) port_counters: PortCounters,
    requests: AtomicU64,
    pub(crate) workers: WorkerPool,
    stopping: watch::Sender<bool>,
    observer: OnceLock<Arc<dyn Observer>>,
    audit: OnceLock<Arc<dyn Audit>>,
    replicator: OnceLock<Replicator>,
    domain_check: OnceLock<Arc<dyn DomainCheck>>,
    held_mail: OnceLock<Arc<dyn HeldMail>>,
    mail_rules: OnceLock<Arc<dyn MailRules>>,
    people_search: OnceLock<Arc<dyn PeopleSearch>>,
    mail_setup: OnceLock<Arc<dyn MailSetup>>,
    acme_answers: AcmeAnswers,
    dav: OnceLock<Keeper>,
    pub(crate) openings: OfficialOpenings,
    /// Told when somebody's standing may have changed.
    standings: watch::Sender<u64>,
}

pub(crate) struct Counters {
    pub(crate) requests: Counter,
    pub(crate) errors: Counter,
    /// Requests of somebody who had as much under way as one may.
    pub(crate) overdrawn: Counter,
}

/// Databases, or the indexes of a design document, to be compacted on request: one at a time, each at most once in the
/// queue.
pub(crate) struct Compactions {
    pub(crate) waiting: Mutex<HashSet<(String, Option<String>)>>,
    pub(crate) turn: Semaphore,
}

impl HttpState {
    /// What tells the time to everything that serves requests: the clock of the databases.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        self.databases.clock()
    }

    /// Memory that the bodies of requests, what was made of them, and answers hold just now, in bytes.
    #[must_use]
    pub fn body_bytes(&self) -> u64 {
        self.budget.held_bytes() as u64
    }

    /// Counts open connections: those of this protocol, and of others that share it.
    #[must_use]
    pub fn open_connections(&self) -> Arc<AtomicU64> {
        self.port_counters.open_connections()
    }

    /// Tells `observer` of requests from now on. Only the first call counts.
    pub fn set_observer(&self, observer: Arc<dyn Observer>) {
        if self.0.observer.set(observer).is_err() {
            tracing::warn!("requests are observed already");
        }
    }

    /// Puts on record, from now on, what [`Audit`] is about. Only the first call counts.
    pub fn set_audit(&self, audit: Arc<dyn Audit>) {
        if self.0.audit.set(audit).is_err() {
            tracing::warn!("there is an audit already");
        }
    }

    /// Lets `_replicate` order replications, from now on. Only the first call counts.
    pub fn set_replicator(&self, replicator: Replicator) {
        if self.0.replicator.set(replicator).is_err() {
            tracing::warn!("replications are carried out already");
        }
    }

    /// Lets `_held_mail` take memos back, from now on. Only the first call counts.
    pub fn set_held_mail(&self, held: Arc<dyn HeldMail>) {
        if self.0.held_mail.set(held).is_err() {
            tracing::warn!("held mail is kept already");
        }
    }

    /// Lets `_mail_rules` set and show rules, from now on. Only the first call counts.
    pub fn set_mail_rules(&self, rules: Arc<dyn MailRules>) {
        if self.0.mail_rules.set(rules).is_err() {
            tracing::warn!("mail rules are kept already");
        }
    }

    /// Lets `_domain_check` look at domains, from now on. Only the first call counts.
    pub fn set_domain_check(&self, check: Arc<dyn DomainCheck>) {
        if self.0.domain_check.set(check).is_err() {
            tracing::warn!("domains are looked at already");
        }
    }

    /// Lets `_people` find people and rooms, from now on. Only the first call counts.
    pub fn set_people_search(&self, search: Arc<dyn PeopleSearch>) {
        if self.0.people_search.set(search).is_err() {
            tracing::warn!("people are found already");
        }
    }

    /// What is shown to an authority of certificates that asks by HTTP.
    #[must_use]
    pub fn acme_answers(&self) -> &AcmeAnswers {
        &self.0.acme_answers
    }

    /// Tells mail programs where the ports of mail are, from now on. Only the first call counts.
    pub fn set_mail_setup(&self, setup: Arc<dyn MailSetup>) {
        if self.0.mail_setup.set(setup).is_err() {
            tracing::warn!("mail programs know the ports already");
        }
    }

    /// Answers calendar programs, from now on. Only the first call counts.
    pub fn set_dav(&self, dav: Keeper) {
        if self.0.dav.set(dav).is_err() {
            tracing::warn!("calendars are kept already");
        }
    }

    /// Registers the statistics of this crate and joins what requests need.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let registry = &parts.statistics;
        let connections = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&connections);
        #[allow(clippy::cast_precision_loss, reason = "no server has 2^53 connections")]
        registry.gauge("Server.Users", move || counted.load(Ordering::Relaxed) as f64);
        let accounts = parts.options.accounts.clone();
        #[allow(clippy::cast_precision_loss, reason = "nor were 2^53 shed")]
        registry.gauge("HTTP.Connections.Shed", move || accounts.connections_shed() as f64);
        Self(Arc::new(SharedHttpState {
            operations: Operations::register(registry),
            counters: Counters {
                requests: registry.counter("HTTP.Requests"),
                errors: registry.counter("HTTP.Errors"),
                overdrawn: registry.counter("HTTP.Requests.Overdrawn"),
            },
            uuids: UuidSequence::new(),
            budget: Budget::new(parts.options.body_budget_bytes),
            compactions: Compactions { waiting: Mutex::default(), turn: Semaphore::new(1) },
            view_waits: ViewWaits::default(),
            operation_log: OperationLog::begin(
                parts.options.operation_log.as_ref(),
                registry,
                parts.databases.clock(),
            ),
            port_counters: PortCounters::register(registry, "HTTP", connections),
            requests: AtomicU64::new(rand::random()),
            databases: parts.databases,
            authenticator: parts.authenticator,
            administration: parts.administration,
            options: parts.options,
            workers: parts.workers,
            stopping: watch::Sender::new(false),
            observer: OnceLock::new(),
            audit: OnceLock::new(),
            replicator: OnceLock::new(),
            domain_check: OnceLock::new(),
            held_mail: OnceLock::new(),
            mail_rules: OnceLock::new(),
            people_search: OnceLock::new(),
            mail_setup: OnceLock::new(),
            acme_answers: AcmeAnswers::default(),
            dav: OnceLock::new(),
            openings: OfficialOpenings::default(),
            standings: watch::Sender::new(0),
        }))
    }
}

impl std::ops::Deref for HttpState {
    type Target = SharedHttpState;

    fn deref(&self) -> &SharedHttpState {
        &self.0
    }
}

impl SharedHttpState {
    /// Runs `work` on the worker pool, as one admitted transaction.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.workers.run(work).await?
    }

    pub(crate) fn audit(&self) -> Option<&Arc<dyn Audit>> {
        self.audit.get()
    }

    pub(crate) fn held_mail(&self) -> Option<&Arc<dyn HeldMail>> {
        self.held_mail.get()
    }

    pub(crate) fn mail_rules(&self) -> Option<&Arc<dyn MailRules>> {
        self.mail_rules.get()
    }

    pub(crate) fn domain_check(&self) -> Option<&Arc<dyn DomainCheck>> {
        self.domain_check.get()
    }

    pub(crate) fn people_search(&self) -> Option<&Arc<dyn PeopleSearch>> {
        self.people_search.get()
    }

    pub(crate) fn dav(&self) -> Option<&Keeper> {
        self.dav.get()
    }

    pub(crate) fn mail_setup(&self) -> Option<&Arc<dyn MailSetup>> {
        self.mail_setup.get()
    }

    pub(crate) fn replicator(&self) -> Option<&Replicator> {
        self.replicator.get()
    }

    /// Changes when somebody's standing may have.
    pub(crate) fn standings(&self) -> watch::Receiver<u64> {
        self.standings.subscribe()
    }

    /// Makes all answers in progress check whether they may continue.
    pub(crate) fn standings_changed(&self) {
        self.standings.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    pub(crate) fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.observer.get()
    }

    /// A number for the log and the client, ten hexadecimal digits as CouchDB's, different for every
    /// request of this process.
    pub(crate) fn next_request_id(&self) -> HeaderValue {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) & 0xFF_FFFF_FFFF;
        HeaderValue::try_from(format!("{number:010x}")).unwrap_or(HeaderValue::from_static("0"))
    }

    /// Turns true when the server stops, so that feeds end by themselves.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }
}
