//! A server on a free port over a store in a temporary folder, and a client that asks it.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use scrinium_accounting::{AccountOptions, Accounts, Holder, Resource};
use scrinium_catalog::Databases;
use scrinium_database::DatabaseOptions;
use scrinium_http::{
    Administration, Authenticator, ConsoleAnswer, CredentialAnswer, CredentialRefusal, CredentialRequest,
    CredentialWork, CredentialsOf, Hashing, HttpOptions, HttpState, Identity, LoginRefusal, MailSetup,
    Observer, Operated, Parts, PortOptions, Service, Session, SessionToken, Used, Verification,
};
use scrinium_mail_discovery::sts::{HostPattern, StsMode, StsPolicy};
use scrinium_mail_discovery::{Endpoint, MailProtocol, MailService, Security};
use scrinium_replication::{AddressRules, BackOff, Replicator, ReplicatorOptions};
use scrinium_sender_authentication::DomainName;
use scrinium_statistics::{Registry, prometheus_text};
use scrinium_store::{Store, StoreOptions};
use scrinium_worker::{WorkerOptions, WorkerPool};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The database in which passwords may be set.
pub(crate) const PEOPLE: &str = "people";

/// Everybody's password.
pub(crate) const PASSWORD: &str = "secret";

/// `admin` administers the server; `ada` and `bob` are people, `bob` with a role; `viewer` looks on; `dora` administers a domain of which
/// she is; `deputy` is one whom somebody lets change a mail database.
pub(crate) fn roles_of(name: &str) -> Option<Vec<String>> {
    match name {
        "admin" => Some(vec!["_admin".to_owned()]),
        "ada" => Some(Vec::new()),
        "bob" => Some(vec!["editor".to_owned()]),
        "viewer" => Some(vec!["_viewer".to_owned()]),
        "dora" => Some(["*/acme.example", "*confined", "*administrators"].map(str::to_owned).into()),
        "deputy" => Some(vec!["mail/ada (editors)".to_owned()]),
        _ => None,
    }
}

/// The people of replications: the same ones.
struct Replicating;

impl scrinium_replication::People for Replicating {
    fn present(&self, identity: &Identity) -> Option<Identity> {
        self.named(identity.name()?)
    }

    fn named(&self, name: &str) -> Option<Identity> {
        roles_of(name).map(|roles| Identity::new(name, roles))
    }
}

/// Replications that are tried again soon, with servers on this machine.
fn replicator(databases: &Databases, workers: &WorkerPool, statistics: &Registry) -> Replicator {
    let first = Duration::from_millis(50);
    let options = ReplicatorOptions {
        back_off: BackOff { first, longest: Duration::from_millis(500) },
        rules: AddressRules::new(vec!["127.0.0.0/8".parse().unwrap()], Vec::new()),
        ..ReplicatorOptions::default()
    };
    Replicator::new(databases, workers, Arc::new(Replicating), (options, statistics))
}

/// `acme.example` has mail here.
pub(crate) struct Acme;

impl MailSetup for Acme {
    fn service(&self, domain: &DomainName) -> Option<MailService> {
        let name = |text: &str| DomainName::parse(text).unwrap();
        let endpoint = |protocol, port| Endpoint {
            protocol,
            host: name("mail.acme.example"),
            port,
            security: Security::Tls,
        };
        let is_here = domain.as_str() == "acme.example";
        is_here.then(|| MailService {
            domain: domain.clone(),
            display_name: domain.to_string(),
            endpoints: vec![endpoint(MailProtocol::Imap, 993), endpoint(MailProtocol::Submission, 465)],
            web_host: name("mail.acme.example"),
        })
    }

    fn sts_policy(&self, domain: &DomainName) -> Option<StsPolicy> {
        let hosts = vec![HostPattern::parse("mail.acme.example").unwrap()];
        let is_here = domain.as_str() == "acme.example";
        is_here.then_some(StsPolicy { mode: StsMode::Testing, hosts, max_age_seconds: 86_400 })
    }
}

/// People without a directory: everybody has the same password, and somebody can be removed.
#[derive(Default)]
pub(crate) struct People {
    sessions: Mutex<HashMap<String, Identity>>,
    removed: Mutex<HashSet<String>>,
    changes: AtomicU64,
    busy: AtomicBool,
    /// Passwords are hashed while this can be had.
    pub(crate) hashing: tokio::sync::Mutex<()>,
    pub(crate) hashing_is_busy: AtomicBool,
    /// Where the last one who logged in came from.
    pub(crate) seen_from: Mutex<Option<IpAddr>>,
    /// What was to be done with credentials, and by whom.
    asked: Mutex<Vec<String>>,
    /// What becomes of the next such request.
    pub(crate) refusal: Mutex<Option<CredentialRefusal>>,
    takes_tokens: AtomicBool,
}

/// Which session somebody came with.
struct Token(String);

impl People {
    /// From now on too many log in.
    pub(crate) fn busy(&self) {
        self.busy.store(true, Ordering::SeqCst);
    }

    /// What was to be done with credentials since the last time.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    /// From now on a token is a name.
    pub(crate) fn takes_tokens(&self) {
        self.takes_tokens.store(true, Ordering::SeqCst);
    }

    /// The person is no more.
    pub(crate) fn remove(&self, name: &str) {
        self.removed.lock().unwrap().insert(name.to_owned());
        self.changes.fetch_add(1, Ordering::SeqCst);
    }
}

impl Authenticator for People {
    fn recall(&self, _name: &str, _password: &str, _service: Service, _from: IpAddr) -> Option<Identity> {
        None
    }

    fn verify<'a>(
        &'a self,
        name: &'a str,
        password: &'a str,
        _service: Service,
        from: IpAddr,
    ) -> Verification<'a> {
        *self.seen_from.lock().unwrap() = Some(from);
        if name == "locked" {
            let refused = LoginRefusal::Locked { retry_after: Duration::from_mins(5) };
            return Box::pin(std::future::ready(Err(refused)));
        }
        if self.busy.load(Ordering::SeqCst) {
            let refused = LoginRefusal::Busy { retry_after: Duration::from_millis(2100) };
            return Box::pin(std::future::ready(Err(refused)));
        }
        let roles = roles_of(name).filter(|_| password == PASSWORD);
        let found = roles.map(|roles| Identity::new(name, roles)).ok_or(LoginRefusal::Wrong);
        Box::pin(std::future::ready(found))
    }

    fn hash<'a>(&'a self, _id: &'a str, password: &'a str, _from: IpAddr) -> Hashing<'a> {
        Box::pin(async move {
            if self.hashing_is_busy.load(Ordering::SeqCst) {
                return Err(LoginRefusal::Busy { retry_after: Duration::from_secs(1) });
            }
            drop(self.hashing.lock().await);
            Ok(password.chars().rev().collect::<String>().into())
        })
    }

    fn keeps_people(&self, database: &str) -> bool {
        database == PEOPLE
    }

    fn takes_tokens(&self) -> bool {
        self.takes_tokens.load(Ordering::SeqCst)
    }

    fn bearer<'a>(&'a self, token: &'a str, _from: IpAddr) -> Verification<'a> {
        let found = roles_of(token).map(|roles| Identity::new(token, roles)).ok_or(LoginRefusal::Wrong);
        Box::pin(std::future::ready(found))
    }

    fn credentials<'a>(
        &'a self,
        of: CredentialsOf<'a>,
        request: CredentialRequest,
        _from: IpAddr,
    ) -> CredentialWork<'a> {
        let (by, whose) = match of {
            CredentialsOf::Own(identity) => (identity.name().unwrap().to_owned(), identity.name().unwrap()),
            CredentialsOf::Other { by, name } => (format!("{} of {name}", by.name().unwrap()), name),
            CredentialsOf::FirstStep(step) => (format!("step {step}"), "ada"),
        };
        let begins = matches!(request, CredentialRequest::ConfirmTotp { .. });
        let done = match self.refusal.lock().unwrap().take() {
            Some(refusal) => Err(refusal),
            None => Ok(CredentialAnswer {
                shown: json!({"ok": true}),
                person_id: format!("person:{whose}"),
                session: begins.then(|| Identity::new(whose, Vec::new())),
            }),
        };
        self.asked.lock().unwrap().push(format!("{by}: {}", words_of(&request)));
        Box::pin(std::future::ready(done))
    }

    fn open_session(&self, identity: &Identity) -> SessionToken {
        let text =
            format!("{}:{:x}:code", identity.name().unwrap(), self.sessions.lock().unwrap().len() + 16);
        let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
        self.sessions.lock().unwrap().insert(token.clone(), identity.clone());
        SessionToken { token, max_age_seconds: 600 }
    }

    fn session(&self, token: &str, _from: IpAddr, _agent: &str) -> Option<Session> {
        let identity = self.sessions.lock().unwrap().get(token).cloned()?;
        Some(Session { identity: identity.with_grant(Arc::new(Token(token.to_owned()))), renewed: None })
    }

    fn close_session(&self, token: &str) -> std::io::Result<()> {
        self.sessions.lock().unwrap().remove(token);
        Ok(())
    }

    fn holds(&self, identity: &Identity) -> bool {
        let is_open = |token: &Token| self.sessions.lock().unwrap().contains_key(&token.0);
        identity.grant::<Token>().is_none_or(is_open)
            && identity.name().is_none_or(|name| !self.removed.lock().unwrap().contains(name))
    }

    fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }
}

fn words_of(request: &CredentialRequest) -> String {
    match request {
        CredentialRequest::List => "list".to_owned(),
        CredentialRequest::ListSessions => "list sessions".to_owned(),
        CredentialRequest::EndSession { id } => format!("end session {id}"),
        CredentialRequest::EndOtherSessions => "end other sessions".to_owned(),
        CredentialRequest::AddAppPassword { name, protocols, expires_ms } => {
            format!("add app password {name} for {protocols:?} until {expires_ms:?}")
        }
        CredentialRequest::RenameAppPassword { id, name } => format!("rename app password {id} {name}"),
        CredentialRequest::RevokeAppPassword { id } => format!("revoke app password {id}"),
        CredentialRequest::BeginTotp => "begin authenticator".to_owned(),
        CredentialRequest::ConfirmTotp { begun, code } => format!("confirm authenticator {begun} {code}"),
        CredentialRequest::RemoveTotp => "remove authenticator".to_owned(),
        CredentialRequest::RenewRecoveryCodes => "renew recovery codes".to_owned(),
        CredentialRequest::BeginPasskey => "begin passkey".to_owned(),
        CredentialRequest::AddPasskey { challenge, name, response } => {
            format!("add passkey {challenge} {name} {response}")
        }
        CredentialRequest::RemovePasskey { id } => format!("remove passkey {id}"),
        CredentialRequest::LinkAccount { subject } => format!("link {subject}"),
        CredentialRequest::UnlinkAccount { subject } => format!("unlink {subject}"),
    }
}

struct Console(Registry);

impl Administration for Console {
    fn only_shows(&self, command: &str) -> bool {
        command == "show who"
    }

    fn console(&self, command: &str, by: &Identity, _from: IpAddr) -> Result<ConsoleAnswer, String> {
        match command {
            "show who" => {
                Ok(ConsoleAnswer { text: format!("{}\n", by.name().unwrap_or("nobody")), data: None })
            }
            "show configuration" => {
                let value = |value: Value| json!({"value": value, "source": "default"});
                let data = json!({"http.listen": value(json!(["127.0.0.1:5984"])), "http.cors_origins": value(json!([])),
                    "mail.relay_password": value(json!("rosebud")), "log.level": value(json!("info"))});
                Ok(ConsoleAnswer { text: String::new(), data: Some(data) })
            }
            "set configuration log.level=debug" => Ok(ConsoleAnswer { text: "set\n".to_owned(), data: None }),
            other => Err(format!("unknown command: {other}")),
        }
    }

    fn statistics(&self) -> Value {
        json!({"requests": self.0.counter("HTTP.Requests").value()})
    }

    fn prometheus(&self) -> String {
        prometheus_text(&self.0.snapshot())
    }

    fn active_tasks(&self) -> Value {
        json!([])
    }
}

/// What was told of requests, as lines.
#[derive(Default)]
pub(crate) struct Observed {
    pub(crate) operations: Mutex<Vec<String>>,
    pub(crate) usage: Mutex<Vec<String>>,
    /// The record of what was done: who, what, to what, and its details.
    pub(crate) audited: Mutex<Vec<String>>,
}

impl scrinium_http::Audit for Observed {
    fn record(&self, entry: &scrinium_http::AuditEntry<'_>) {
        let details = entry.details.map(ToString::to_string).unwrap_or_default();
        let person = entry.person.unwrap_or("the server");
        let line = format!("{person}: {} {} {details}", entry.action.word(), entry.target);
        self.audited.lock().unwrap().push(line.trim_end().to_owned());
    }
}

impl Observer for Observed {
    fn operated(&self, operated: &Operated<'_>) {
        let Operated { operation, database, person, elapsed, waited } = operated;
        assert!(waited <= elapsed, "{operated:?}");
        self.operations
            .lock()
            .unwrap()
            .push(format!("{operation} {database} {}", person.unwrap_or("nobody")));
    }

    fn used(&self, used: &Used<'_>) {
        let Used { database, person, writes, received_bytes, sent_bytes } = used;
        let word = if *writes { "writes" } else { "reads" };
        let line = format!("{} {word} {database} {received_bytes} {sent_bytes}", person.unwrap_or("nobody"));
        self.usage.lock().unwrap().push(line);
    }
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) databases: Databases,
    pub(crate) statistics: Registry,
    pub(crate) observed: Arc<Observed>,
    pub(crate) people: Arc<People>,
    pub(crate) accounts: Accounts,
    state: HttpState,
    client: Client<HttpConnector, Full<Bytes>>,
    stop: Option<oneshot::Sender<()>>,
    running: Option<JoinHandle<()>>,
    _dir: tempfile::TempDir,
}

/// A port on a free number of this machine.
pub(crate) fn local_port() -> PortOptions {
    PortOptions { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..PortOptions::default() }
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(local_port(), DatabaseOptions::default()).await
    }

    pub(crate) async fn with(port: PortOptions, options: DatabaseOptions) -> Self {
        Self::with_accounts(port, options, AccountOptions::default()).await
    }

    /// With other limits of networks and people.
    pub(crate) async fn with_accounts(
        port: PortOptions,
        options: DatabaseOptions,
        accounts: AccountOptions,
    ) -> Self {
        let http = HttpOptions { accounts: Accounts::new(accounts), ..HttpOptions::default() };
        Self::with_http(port, options, http).await
    }

    /// With other limits of all ports.
    pub(crate) async fn with_http(port: PortOptions, options: DatabaseOptions, http: HttpOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut store_options = StoreOptions::new(dir.path());
        store_options.budget_bytes = Some(64 << 20);
        store_options.log_extent_bytes = 4 << 20;
        store_options.log_spare_extents = 0;
        let statistics = Registry::new();
        let store = Store::open(store_options, &statistics).unwrap();
        // Closing takes RocksDB a second, which the many tests need not wait for: the process's end does it.
        std::mem::forget(store.clone());
        let databases = Databases::open(&store, options).unwrap();
        let people = Arc::new(People::default());
        let accounts = http.accounts.clone();
        let workers = WorkerPool::new(&WorkerOptions { threads: 8, ..WorkerOptions::default() }, &statistics);
        let state = HttpState::new(Parts {
            databases: databases.clone(),
            authenticator: people.clone(),
            administration: Arc::new(Console(statistics.clone())),
            workers: workers.clone(),
            statistics: statistics.clone(),
            options: http,
        });
        let observed = Arc::new(Observed::default());
        state.set_observer(observed.clone());
        state.set_audit(observed.clone());
        state.set_replicator(replicator(&databases, &workers, &statistics));
        state.set_mail_setup(Arc::new(Acme));
        let bound = scrinium_http::Server::bind(vec![port], state.clone()).unwrap();
        let address = bound.addresses()[0];
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(bound.run(async { drop(stopped.await) }, Duration::from_secs(5)));
        Self {
            address,
            databases,
            statistics,
            observed,
            people,
            accounts,
            state,
            client: Client::builder(TokioExecutor::new()).build_http(),
            stop: Some(stop),
            running: Some(running),
            _dir: dir,
        }
    }

    /// Memory that requests and answers hold.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.state.body_bytes()
    }

    /// Requests that an administrator has under way.
    pub(crate) fn requests_of_admin(&self) -> usize {
        let admin = Holder::Administrator("admin".into());
        self.accounts.account(&admin).held(Resource::Requests)
    }

    /// Stops the server; how long that took is the caller's to judge.
    pub(crate) async fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(running) = self.running.take() {
            running.await.unwrap();
        }
    }

    /// Asks as an administrator.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: impl Into<Asked>) -> Answer {
        self.ask_as("admin", method, path, body).await
    }

    /// Asks as somebody, or as nobody where the name is empty.
    pub(crate) async fn ask_as(
        &self,
        name: &str,
        method: &str,
        path: &str,
        body: impl Into<Asked>,
    ) -> Answer {
        let response = self.open_as(name, method, path, body).await;
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: head.status, headers: head.headers, body }
    }

    /// Asks, and gives the answer before its body has arrived.
    pub(crate) async fn open_as(
        &self,
        name: &str,
        method: &str,
        path: &str,
        body: impl Into<Asked>,
    ) -> http::Response<Incoming> {
        let asked = body.into();
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).unwrap())
            .uri(format!("http://{}{path}", self.address));
        if !name.is_empty() {
            request = request.header("authorization", basic(name, PASSWORD));
        }
        for (name, value) in asked.headers {
            request = request.header(name, value);
        }
        self.client.request(request.body(Full::new(asked.body)).unwrap()).await.unwrap()
    }

    /// Asks as an administrator; `None` where the connection was closed while the body was still being sent.
    #[allow(dead_code, reason = "the tests of memory ask so")]
    pub(crate) async fn try_ask(&self, method: &str, path: &str, body: impl Into<Asked>) -> Option<Answer> {
        let asked = body.into();
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).unwrap())
            .uri(format!("http://{}{path}", self.address))
            .header("authorization", basic("admin", PASSWORD));
        for (name, value) in asked.headers {
            request = request.header(name, value);
        }
        let answered = self.client.request(request.body(Full::new(asked.body)).unwrap()).await;
        let (head, body) = answered.ok()?.into_parts();
        let body = body.collect().await.ok()?.to_bytes();
        Some(Answer { status: head.status, headers: head.headers, body })
    }

    /// PUTs a database, and documents into it.
    pub(crate) async fn fill(&self, database: &str, documents: &[Value]) {
        self.ask("PUT", &format!("/{database}"), ()).await.expect(201);
        let body = json!({"docs": documents});
        self.ask("POST", &format!("/{database}/_bulk_docs"), body).await.expect(201);
    }

    /// A bare connection, to send what no client would.
    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

pub(crate) fn basic(name: &str, password: &str) -> String {
    let text = format!("{name}:{password}");
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(text))
}

/// A request's body and headers: `()`, a JSON value, bytes, or bytes with headers.
pub(crate) struct Asked {
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl From<()> for Asked {
    fn from((): ()) -> Self {
        Self { headers: Vec::new(), body: Bytes::new() }
    }
}

impl From<Value> for Asked {
    fn from(value: Value) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { headers, body: value.to_string().into() }
    }
}

impl From<&[(&str, &str)]> for Asked {
    fn from(headers: &[(&str, &str)]) -> Self {
        (headers, Bytes::new()).into()
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Asked {
    fn from(headers: [(&str, &str); N]) -> Self {
        (&headers[..], Bytes::new()).into()
    }
}

impl<B: Into<Bytes>> From<(&[(&str, &str)], B)> for Asked {
    fn from((headers, body): (&[(&str, &str)], B)) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { headers, body: body.into() }
    }
}

impl<const N: usize, B: Into<Bytes>> From<([(&str, &str); N], B)> for Asked {
    fn from((headers, body): ([(&str, &str); N], B)) -> Self {
        (&headers[..], body.into()).into()
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Fails unless the status is this one.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self
    }

    /// Fails unless status and body are these; the body to the letter.
    #[track_caller]
    pub(crate) fn expect_text(self, status: u16, body: &str) -> Self {
        assert_eq!((self.status.as_u16(), self.text().as_str()), (status, body));
        self
    }

    /// Fails unless this is an error in CouchDB's shape.
    #[track_caller]
    pub(crate) fn expect_error(self, status: u16, error: &str, reason: &str) -> Self {
        let expected = format!("{{\"error\":{},\"reason\":{}}}\n", json!(error), json!(reason));
        self.expect_text(status, &expected)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The revision that an update answered with.
    #[track_caller]
    pub(crate) fn revision(&self) -> String {
        self.json()["rev"].as_str().unwrap_or_else(|| panic!("no rev: {}", self.text())).to_owned()
    }
}
