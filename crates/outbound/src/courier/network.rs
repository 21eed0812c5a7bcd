//! Attempts over the network, each a task of its own.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use scrinium_clock::Clock;
use scrinium_mail_queue::route::{
    OwnHosts, Protection, ProtectionInputs, RelayHost, RouteError, StsMode, StsPolicy, Target, TargetOptions,
    Transport, choose_protection, literal_target, targets,
};
use scrinium_mail_queue::{
    AttemptId, Cause, ConnectionId, ConnectionUse, Ending, Network, Outcome, QueueEntry, Random, Transaction,
};
use scrinium_sender_authentication::DomainName;
use scrinium_smtp::client::{
    ClientLimits, ClientLogin, ClientOptions, ClientTimes, LoginSecret, Outgoing, OutgoingRecipient,
    Protocol, TlsPolicy,
};
use scrinium_smtp_wire::{Domain, ForwardPath, Path, ReversePath};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::connection::{Connection, Encryption};
use super::outcomes::{
    SessionResult, failed_connection, goes_plain, is_about_tls, outcome_of, result_of_failure,
    result_of_message, tries_next_host, unconnected,
};
use super::{AttemptReport, Claim, Courier, Event, SendJob, Way, WayJob};
use crate::resolve::Dns;
use crate::signing::Signing;
use crate::sts::{self, StsPolicies};
use crate::tls::TlsClient;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A message has this much more time for each of its megabytes.
const TIME_A_MEGABYTE: Duration = Duration::from_secs(60);

/// Passwords for relay hosts, by the names under which they are kept.
pub trait Secrets: Send + Sync + 'static {
    /// The password of this name.
    ///
    /// # Errors
    /// Why there is none, in words.
    fn password(&self, name: &str) -> Result<String, String>;
}

/// How connections are made.
pub struct NetworkOptions {
    /// What this server calls itself.
    pub host: String,
    /// What is this server, so that nothing goes round in a circle.
    pub own: OwnHosts,
    /// The port of other servers: 25.
    pub port: u16,
    /// How addresses are chosen.
    pub targets: TargetOptions,
    /// How long servers may take.
    pub times: ClientTimes,
    /// How long one attempt may take, whatever is said in it.
    pub session: Duration,
}

/// Makes attempts over the network. Clones share it.
#[derive(Clone)]
pub struct NetworkCourier {
    shared: Arc<Shared>,
}

struct Shared {
    options: NetworkOptions,
    dns: Dns,
    tls: TlsClient,
    secrets: Box<dyn Secrets>,
    signing: Option<Signing>,
    policies: Option<StsPolicies>,
    events: mpsc::Sender<Event>,
    runtime: Handle,
    clock: Clock,
    random: Mutex<Random>,
    idle: Mutex<HashMap<ConnectionId, Connection>>,
    next_connection: AtomicU64,
}

impl NetworkCourier {
    /// A courier that tells `events` what happens, and works on the runtime that this is called on.
    #[must_use]
    pub fn new(
        options: NetworkOptions,
        (dns, tls, secrets): (Dns, TlsClient, Box<dyn Secrets>),
        (signing, policies): (Option<Signing>, Option<StsPolicies>),
        events: mpsc::Sender<Event>,
        (clock, seed): (Clock, u64),
    ) -> Self {
        let shared = Shared {
            options,
            dns,
            tls,
            secrets,
            signing,
            policies,
            events,
            runtime: Handle::current(),
            clock,
            random: Mutex::new(Random::new(seed)),
            idle: Mutex::default(),
            next_connection: AtomicU64::new(1),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Courier for NetworkCourier {
    fn find_way(&self, job: WayJob) {
        let shared = Arc::clone(&self.shared);
        self.shared.runtime.spawn(async move {
            let way = shared.way(&job.domain, &job.transport).await;
            shared.tell(Event::Way { attempt: job.attempt, way }).await;
        });
    }

    fn send(&self, job: SendJob) {
        let shared = Arc::clone(&self.shared);
        self.shared.runtime.spawn(async move {
            let attempt = job.attempt;
            let report = Delivery::new(&shared, &job).run(&job).await;
            shared.tell(Event::Ended { attempt, report }).await;
        });
    }

    fn close(&self, connection: ConnectionId) {
        if let Some(connection) = self.shared.idle.lock().remove(&connection) {
            self.shared.runtime.spawn(connection.close());
        }
    }
}

impl Shared {
    async fn tell(&self, event: Event) {
        // Nobody listens any more where the queue was stopped; what is written down is gone on with at the next start.
        let _stopped = self.events.send(event).await;
    }

    /// The addresses of a destination, in the order in which they are tried.
    async fn way(&self, domain: &Domain, transport: &Transport) -> Result<Way, RouteError> {
        let own = &self.options.own;
        let found = match transport {
            Transport::Relay { relay, .. } if relay.by_mx => {
                self.by_exchangers(&relay.host, &OwnHosts::default(), &self.trusted()).await?
            }
            Transport::Relay { relay, .. } => self.by_host(&relay.host).await?,
            Transport::Lmtp { endpoint } => self.by_host(host_and_port(endpoint, LMTP_PORT).0).await?,
            _ => match domain {
                Domain::Name(name) => self.by_exchangers(name, own, &self.options.targets).await?,
                Domain::Literal(literal) => vec![literal_target(literal, own, &self.options.targets)?],
            },
        };
        Ok(Way { targets: found })
    }

    /// What a domain asks of those who send to it, if anything.
    async fn policy(&self, job: &SendJob) -> Option<StsPolicy> {
        let policies =
            self.policies.as_ref().filter(|_| matches!(job.transport, Transport::Exchangers { .. }))?;
        let domain = DomainName::parse(&job.entry.destination.host)?;
        policies.of(&domain).await.map(|policy| sts::for_route(&policy))
    }

    /// Hosts that an administrator has named may be anywhere.
    fn trusted(&self) -> TargetOptions {
        TargetOptions { allow_loopback: true, allow_private: true, ..self.options.targets.clone() }
    }

    async fn by_exchangers(
        &self,
        domain: &str,
        own: &OwnHosts,
        options: &TargetOptions,
    ) -> Result<Vec<Target>, RouteError> {
        let seed = self.random.lock().number();
        let hosts = self.dns.exchangers(domain, own, &mut Random::new(seed)).await?;
        let mut answers = HashMap::new();
        let mut found = 0;
        for host in &hosts {
            let answer = self.dns.addresses(&host.name).await;
            // Some of them may be refused, so that a few more are looked up than are tried.
            if let scrinium_mail_queue::route::AddressAnswer::Addresses(addresses) = &answer {
                found += addresses.len();
            }
            answers.insert(host.name.clone(), answer);
            if found >= options.most.saturating_mul(4) {
                break;
            }
        }
        let looked_up: Vec<_> = hosts.into_iter().filter(|host| answers.contains_key(&host.name)).collect();
        let none = || scrinium_mail_queue::route::AddressAnswer::NoSuchName;
        targets(domain, &looked_up, own, options, |name| answers.remove(name).unwrap_or_else(none))
    }

    async fn by_host(&self, host: &str) -> Result<Vec<Target>, RouteError> {
        let answer = self.dns.addresses(host).await;
        let exchanger = scrinium_mail_queue::route::Exchanger { name: host.to_lowercase(), preference: 0 };
        targets(host, &[exchanger], &OwnHosts::default(), &self.trusted(), |_| answer.clone())
    }

    fn take_idle(&self, connection: ConnectionId) -> Option<Connection> {
        self.idle.lock().remove(&connection)
    }

    fn keep_idle(&self, connection: Connection, id: Option<ConnectionId>) -> ConnectionId {
        let id = id.unwrap_or_else(|| ConnectionId(self.next_connection.fetch_add(1, Ordering::Relaxed)));
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.insert(id, connection);
        } else {
            self.runtime.spawn(connection.close());
        }
        id
    }
}

/// More idle connections than these are closed at once: one that its peer has forgotten costs nothing.
const IDLE_MAX: usize = 2_000;

/// Where LMTP is spoken, unless a port is named.
const LMTP_PORT: u16 = 24;

/// `host:port`, `[address]:port`, or a host alone.
fn host_and_port(endpoint: &str, usual: u16) -> (&str, u16) {
    let (host, port) = match endpoint.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            (host, port.parse().unwrap_or(usual))
        }
        _ => (endpoint, usual),
    };
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

/// One attempt, and what became of it so far.
struct Delivery<'s> {
    shared: &'s Shared,
    attempt: AttemptId,
    /// For each recipient who waits; `None` while nothing is known.
    outcomes: Vec<(u32, Option<Outcome>, bool)>,
    result: Option<SessionResult>,
    used: ConnectionUse,
    deadline_ms: u64,
    /// What the domain asks for.
    policy: Option<StsPolicy>,
}

impl<'s> Delivery<'s> {
    fn new(shared: &'s Shared, job: &SendJob) -> Self {
        let megabytes = u32::try_from(job.entry.size_bytes >> 20).unwrap_or(u32::MAX);
        let session = shared.options.session.saturating_add(TIME_A_MEGABYTE.saturating_mul(megabytes));
        let waiting = job.entry.waiting().into_iter();
        Self {
            shared,
            attempt: job.attempt,
            outcomes: waiting.map(|place| (place, None, true)).collect(),
            result: None,
            used: ConnectionUse::Closed,
            deadline_ms: shared.clock.now_ms().saturating_add(scrinium_clock::milliseconds(session)),
            policy: None,
        }
    }

    async fn run(mut self, job: &SendJob) -> AttemptReport {
        let mut way = job.way.clone();
        if let Some(id) = job.connection {
            match self.shared.take_idle(id) {
                Some(connection) => {
                    if self.reuse(connection, id, job).await {
                        return self.report();
                    }
                }
                None => tracing::debug!("a connection that was idle is gone"),
            }
        }
        if way.is_none() {
            let domain = job
                .entry
                .waiting()
                .first()
                .and_then(|place| job.entry.recipient(*place))
                .map(|recipient| recipient.address.domain().clone());
            let Some(domain) = domain else { return self.report() };
            match self.shared.way(&domain, &job.transport).await {
                Ok(found) => way = Some(found),
                Err(error) => {
                    self.settle_open(&error.outcome());
                    return self.report();
                }
            }
        }
        self.policy = self.shared.policy(job).await;
        let had_way = job.way.is_some();
        for (number, target) in way.unwrap_or_default().targets.iter().enumerate() {
            let needs_claim = number > 0 || !had_way;
            if needs_claim && !self.claim(target).await {
                break;
            }
            self.try_target(target, job).await;
            if self.is_settled() || self.shared.clock.now_ms() >= self.deadline_ms {
                break;
            }
        }
        self.report()
    }

    /// Uses a connection that was idle. Whether the attempt is over; if not, another one is made.
    async fn reuse(&mut self, mut connection: Connection, id: ConnectionId, job: &SendJob) -> bool {
        if !connection.is_fresh().await {
            return false;
        }
        self.transactions(&mut connection, job).await;
        let is_settled = self.is_settled();
        self.keep(connection, Some(id));
        is_settled
    }

    async fn claim(&self, target: &Target) -> bool {
        let (reply, answer) = oneshot::channel();
        let network = Network::from(target.address);
        self.shared.tell(Event::Claim(Claim { attempt: self.attempt, network, reply })).await;
        answer.await.unwrap_or(false)
    }

    /// Connects to one address, and sends over the connection.
    async fn try_target(&mut self, target: &Target, job: &SendJob) {
        let Some(plan) = self.plan(target, job) else {
            self.breached(target, job, "the policy does not name it");
            let error = RouteError::PolicyMismatch(job.entry.destination.host.clone());
            return self.settle_open(&error.outcome());
        };
        let plan = match plan {
            Ok(plan) => plan,
            Err(outcome) => return self.settle_open(&outcome),
        };
        let (plan, failure) = self.converse_as_policy_says(target, plan, job).await;
        if let Some(said) = failure {
            if goes_plain(plan.protection, &said) {
                // A handshake that fails is no reason to keep a message back that would have gone without TLS.
                self.converse(target, &plan, TlsPolicy::Never, job).await;
            } else if said.reason == scrinium_smtp::client::Reason::TlsFailed {
                tracing::info!(host = %target.host, reason = %said.text, "TLS could not be had");
            }
        }
    }

    /// One connection, as the domain's policy wants it. While it is only tested, another one as if there were none.
    async fn converse_as_policy_says(
        &mut self,
        target: &Target,
        plan: Plan,
        job: &SendJob,
    ) -> (Plan, Option<scrinium_smtp::client::Said>) {
        let mode = self.policy.as_ref().map_or(StsMode::None, |policy| policy.mode);
        let is_named = self.policy.as_ref().is_none_or(|policy| policy.allows(&target.host));
        if mode == StsMode::Testing && !is_named {
            self.breached(target, job, "the policy does not name it");
        }
        // RFC 8461 §5: with `testing`, what would have failed is found out, and the message goes all the same.
        let is_trial = mode == StsMode::Testing && is_named && plan.protection == Protection::Opportunistic;
        if !is_trial {
            let failure = self.converse(target, &plan, plan.policy, job).await;
            if mode == StsMode::Enforce && failure.as_ref().is_some_and(is_about_tls) {
                self.breached(target, job, "it has no TLS, or no valid certificate");
            }
            return (plan, failure);
        }
        let config = Arc::clone(&self.shared.tls.verified);
        let encryption = Encryption { config, host: plan.encryption.host.clone() };
        let trial = Plan { encryption, ..plan.clone() };
        let failure = self.converse(target, &trial, TlsPolicy::Required, job).await;
        if !failure.as_ref().is_some_and(is_about_tls) {
            return (plan, failure);
        }
        self.breached(target, job, "it has no TLS, or no valid certificate");
        let failure = self.converse(target, &plan, plan.policy, job).await;
        (plan, failure)
    }

    /// Notes that a host is not as the domain's policy wants it.
    fn breached(&self, target: &Target, job: &SendJob, reason: &str) {
        if let (Some(policies), Some(policy)) = (&self.shared.policies, &self.policy) {
            policies.breached(&job.entry.destination.host, &target.host, policy.mode, reason);
        }
    }

    /// One connection. Gives why it did not come to a message, if it did not.
    async fn converse(
        &mut self,
        target: &Target,
        plan: &Plan,
        policy: TlsPolicy,
        job: &SendJob,
    ) -> Option<scrinium_smtp::client::Said> {
        let address = SocketAddr::new(target.address, plan.port);
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await;
        let stream = match connected.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into())) {
            Ok(stream) => stream,
            Err(error) => {
                self.note(SessionResult::Unreachable);
                self.settle_open(&unconnected(&error, &target.host));
                return None;
            }
        };
        if self.leads_back(&stream, plan) {
            self.settle_open(&RouteError::OwnAddresses(job.entry.destination.host.clone()).outcome());
            return None;
        }
        // Pieces of a text are long, and commands are awaited.
        drop(stream.set_nodelay(true));
        let options = ClientOptions { tls: policy, ..plan.options.clone() };
        let encryption = (plan.encryption.clone(), plan.implicit_tls);
        let begun = Connection::begin(stream, options, encryption, &self.shared.clock).await;
        let mut connection = match begun {
            Ok(connection) => connection,
            Err(error) => {
                self.note(SessionResult::Unreachable);
                let mut outcome = Outcome::new(Ending::Deferred, Cause::TlsFailed);
                outcome.host = Some(target.host.clone());
                outcome.reply = Some(super::outcomes::clean(&error.to_string()));
                self.settle_open(&outcome);
                return None;
            }
        };
        let left = self.time_left();
        match tokio::time::timeout(left, connection.ready()).await {
            Ok(Ok(())) => {}
            Ok(Err(said)) => {
                self.note(result_of_failure(&said));
                self.settle_open(&failed_connection(&said, &target.host));
                return Some(said);
            }
            Err(_) => {
                self.note(SessionResult::Unreachable);
                let mut outcome = Outcome::new(Ending::Deferred, Cause::TimedOutInSession);
                outcome.host = Some(target.host.clone());
                self.settle_open(&outcome);
                return None;
            }
        }
        self.shared.tell(Event::Connected(self.attempt)).await;
        self.transactions(&mut connection, job).await;
        self.keep(connection, None);
        None
    }

    /// Whether a connection leads back to this machine, which a stranger's DNS has led to.
    fn leads_back(&self, stream: &TcpStream, plan: &Plan) -> bool {
        let (Ok(peer), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else { return false };
        let is_allowed = plan.is_trusted || self.shared.options.targets.allow_loopback;
        peer.ip() == local.ip() && !is_allowed
    }

    fn time_left(&self) -> Duration {
        Duration::from_millis(self.deadline_ms.saturating_sub(self.shared.clock.now_ms()))
    }

    /// Sends the message to all who are open, in as many transactions as it takes.
    async fn transactions(&mut self, connection: &mut Connection, job: &SendJob) {
        let is_final = matches!(job.transport, Transport::Lmtp { .. });
        let text = match &self.shared.signing {
            Some(signing) => signing.signed(&job.text, self.shared.clock.now_ms()).await,
            None => job.text.clone(),
        };
        let most = connection.recipients_max();
        let mut is_usable = true;
        for transaction in job.entry.transactions(most) {
            let open: Vec<u32> = self
                .outcomes
                .iter()
                .filter(|(place, _, is_open)| *is_open && transaction.recipients.contains(place))
                .map(|(place, ..)| *place)
                .collect();
            if open.is_empty() {
                continue;
            }
            if !is_usable {
                return;
            }
            let mut message = outgoing(&job.entry, &transaction, &open);
            message.text_bytes = message.text_bytes.map(|bytes| bytes + text.beginning_bytes());
            let left = self.time_left();
            let host = connection.host.clone();
            let sent = tokio::time::timeout(left, connection.send(message, &text)).await;
            let (outcomes, usable) = match sent {
                Ok(sent) => sent,
                Err(_) => (connection.give_up().unwrap_or_default(), false),
            };
            is_usable = usable && connection.ready().await.is_ok();
            self.note(result_of_message(&outcomes, !usable));
            for (place, sent) in open.iter().zip(&outcomes) {
                self.settle(*place, outcome_of(sent, &host, is_final), tries_next_host(sent));
            }
        }
    }

    /// A connection that can be used on waits for another message.
    fn keep(&mut self, connection: Connection, id: Option<ConnectionId>) {
        if connection.is_open() {
            self.used = ConnectionUse::Open(self.shared.keep_idle(connection, id));
        }
    }

    fn note(&mut self, result: SessionResult) {
        // What was delivered counts for more than what was not.
        if self.result != Some(SessionResult::Delivered) {
            self.result = Some(result);
        }
    }

    /// What became of one recipient; `is_open`: another host may do better.
    fn settle(&mut self, place: u32, outcome: Outcome, is_open: bool) {
        let known = self.outcomes.iter_mut().find(|(known, ..)| *known == place);
        if let Some((_, known, open)) = known.filter(|(_, _, open)| *open) {
            *known = Some(match known.take() {
                Some(earlier) => scrinium_mail_queue::outcome::merge(earlier, outcome),
                None => outcome,
            });
            *open = is_open;
        }
    }

    /// What became of all who are open: they stay open for another host.
    fn settle_open(&mut self, outcome: &Outcome) {
        let open: Vec<u32> = self.open_places();
        for place in open {
            self.settle(place, outcome.clone(), true);
        }
    }

    fn open_places(&self) -> Vec<u32> {
        self.outcomes.iter().filter(|(_, _, is_open)| *is_open).map(|(place, ..)| *place).collect()
    }

    fn is_settled(&self) -> bool {
        self.outcomes.iter().all(|(_, _, is_open)| !is_open)
    }

    fn report(self) -> AttemptReport {
        let outcomes = self.outcomes.into_iter();
        AttemptReport {
            outcomes: outcomes.filter_map(|(place, outcome, _)| Some((place, outcome?))).collect(),
            effect: self.result.as_ref().map_or(scrinium_mail_queue::Effect::Nothing, Into::into),
            connection: self.used,
        }
    }

    /// How a host is connected to. `None` if its domain's policy does not allow it.
    fn plan(&self, target: &Target, job: &SendJob) -> Option<Result<Plan, Outcome>> {
        let options = &self.shared.options;
        let (rule, relay) = match &job.transport {
            Transport::Relay { relay, tls } => (*tls, Some(relay)),
            Transport::Exchangers { tls } => (*tls, None),
            _ => (scrinium_mail_queue::route::TlsRule::Off, None),
        };
        let is_lmtp = matches!(job.transport, Transport::Lmtp { .. });
        let require_tls = job.entry.envelope.require_tls;
        let policy = self.policy.as_ref();
        let inputs = ProtectionInputs { rule, relay, policy, require_tls, ..ProtectionInputs::default() };
        let protection = choose_protection(&inputs, &target.host)?;
        let login = match relay.map(|relay| self.login(relay)).transpose() {
            Ok(login) => login.flatten(),
            Err(reason) => {
                let mut outcome = Outcome::new(Ending::Deferred, Cause::LoginFailed);
                outcome.reply = Some(super::outcomes::clean(&reason));
                return Some(Err(outcome));
            }
        };
        let config =
            if protection == Protection::Verified { &self.shared.tls.verified } else { &self.shared.tls.any };
        let protocol = if is_lmtp { Protocol::Lmtp } else { Protocol::Smtp };
        let policy = match protection {
            Protection::Plain => TlsPolicy::Never,
            Protection::Opportunistic => TlsPolicy::Opportunistic,
            Protection::Encrypted | Protection::Verified => TlsPolicy::Required,
        };
        let port = match &job.transport {
            Transport::Relay { relay, .. } => relay.port,
            Transport::Lmtp { endpoint } => host_and_port(endpoint, LMTP_PORT).1,
            _ => options.port,
        };
        Some(Ok(Plan {
            port,
            protection,
            policy,
            implicit_tls: relay.is_some_and(|relay| relay.implicit_tls),
            is_trusted: relay.is_some() || is_lmtp,
            encryption: Encryption { config: Arc::clone(config), host: target.host.clone() },
            options: ClientOptions {
                login,
                limits: ClientLimits::default(),
                times: options.times,
                ..ClientOptions::new(protocol, &options.host)
            },
        }))
    }

    fn login(&self, relay: &RelayHost) -> Result<Option<ClientLogin>, String> {
        let Some(login) = &relay.login else { return Ok(None) };
        let password = self.shared.secrets.password(&login.secret)?;
        Ok(Some(ClientLogin { name: login.name.clone(), secret: LoginSecret::Password(password) }))
    }
}

/// How a host is connected to.
#[derive(Clone)]
struct Plan {
    port: u16,
    protection: Protection,
    policy: TlsPolicy,
    implicit_tls: bool,
    /// An administrator has named the host.
    is_trusted: bool,
    encryption: Encryption,
    options: ClientOptions,
}

/// A transaction as the session takes it.
fn outgoing(entry: &QueueEntry, transaction: &Transaction, open: &[u32]) -> Outgoing {
    let envelope = &entry.envelope;
    let sender = transaction.sender.clone();
    let recipients = open.iter().filter_map(|place| entry.recipient(*place));
    Outgoing {
        sender: sender.map_or(ReversePath::Null, |sender| ReversePath::Path(Path::from(sender))),
        recipients: recipients
            .map(|recipient| OutgoingRecipient {
                path: ForwardPath::Path(Path::from(recipient.address.clone())),
                notify: recipient.notify,
                original: recipient.original.clone(),
            })
            .collect(),
        text_bytes: Some(entry.size_bytes),
        has_eight_bit: envelope.eight_bit,
        needs_utf8: envelope.utf8,
        return_content: envelope.return_content,
        envelope_id: envelope.envelope_id.clone(),
        requires_tls: envelope.require_tls,
    }
}
