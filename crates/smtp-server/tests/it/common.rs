//! A server with people that takes mail at a port, and a client of few words.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use scrinium_accounting::{AccountOptions, Accounts};
use scrinium_catalog::Databases;
use scrinium_clock::{Clock, ManualClock};
use scrinium_credentials::HashedPassword;
use scrinium_credentials::sasl::{ChannelBindings, server_end_point};
use scrinium_database::{Access, ChangesQuery, DatabaseOptions, Edit, EditMode};
use scrinium_directory::{
    CredentialOptions, CredentialRecords, Credentials, DIRECTORY_DATABASE, Directory, HashingOptions, Logins,
    TokenVerifier, prepare,
};
use scrinium_mail::{IncomingMail, Mailboxes, Resolver, Router, RouterOptions, SOURCE_ATTACHMENT};
use scrinium_port::{Port, PortCounters, PortSecurity, PortSettings, Ports};
use scrinium_smtp::{ServerOptions, Service};
use scrinium_smtp_server::{
    AllowanceLimits, Allowances, FilterOptions, GateOptions, Reception, ReceptionOptions, SendRights,
    SenderCheckOptions, SmtpProtocol, SpoolBudget, Submission, SubmissionOptions, Surroundings,
};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_worker::{WorkerOptions, WorkerPool};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) static SERVER: Access = Access::of_the_server("a test");

/// Memory for all texts together: so little that most go through a file.
const BUDGET_BYTES: usize = 64 << 10;

/// Files for texts of one network.
pub(crate) const FILE_BYTES: usize = 24 << 20;

/// How a server of a test differs from another one.
pub(crate) struct Setting {
    pub(crate) options: ServerOptions,
    /// TLS from the beginning.
    pub(crate) begins_with_tls: bool,
    pub(crate) trusts_loopback: bool,
    pub(crate) limits: AllowanceLimits,
    pub(crate) reaches_others: bool,
    pub(crate) tokens: Option<Arc<dyn TokenVerifier>>,
    /// Instead of everybody's own addresses.
    pub(crate) rights: Option<Arc<dyn SendRights>>,
    /// How senders are checked.
    pub(crate) check: Option<SenderCheckOptions>,
    pub(crate) filters: Option<FilterOptions>,
    pub(crate) gate: Option<GateOptions>,
}

impl Setting {
    fn new(service: Service) -> Self {
        Self {
            options: ServerOptions::new(service, "mx.acme.example"),
            begins_with_tls: false,
            trusts_loopback: false,
            limits: AllowanceLimits { messages: 0, recipients: 0 },
            reaches_others: false,
            tokens: None,
            rights: None,
            check: None,
            filters: None,
            gate: None,
        }
    }
}

/// When the clock of a server for submission begins.
pub(crate) const NOW_MS: u64 = 1_795_684_851_000;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) directory: Arc<Directory>,
    /// Of allowances alone.
    pub(crate) clock: ManualClock,
    pub(crate) certificate: Vec<u8>,
    pub(crate) databases: Databases,
    pub(crate) registry: Registry,
    mailboxes: Mailboxes,
    resolver: Resolver,
    stop: Option<oneshot::Sender<()>>,
    running: Option<JoinHandle<()>>,
    connector: TlsConnector,
    _store: Store,
    _folder: TempDir,
}

impl Server {
    pub(crate) fn start(service: Service, change: impl FnOnce(&mut ServerOptions)) -> Self {
        Self::start_as(service, |setting| change(&mut setting.options))
    }

    pub(crate) fn start_as(service: Service, change: impl FnOnce(&mut Setting)) -> Self {
        let mut setting = Setting::new(service);
        change(&mut setting);
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::new();
        let mut store_options = StoreOptions::new(folder.path());
        store_options.budget_bytes = Some(64 << 20);
        store_options.log_extent_bytes = 4 << 20;
        let store = Store::open(store_options, &registry).unwrap();
        let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
        let directory = Arc::new(Directory::open(&databases).unwrap());
        let mailboxes = Mailboxes::open(&databases, 2, &registry).unwrap();
        add_people(&databases, &directory);
        let resolver = Resolver::new(directory.clone(), &["acme.example".to_owned()]);
        let mut account_options = AccountOptions::default();
        account_options.network.file_bytes = FILE_BYTES;
        let accounts = Accounts::new(account_options);
        let clock = Clock::manual(NOW_MS);
        let surroundings = {
            let budget = SpoolBudget::new(BUDGET_BYTES, 1 << 30, 16 << 10);
            let workers = WorkerPool::new(&WorkerOptions::default(), &registry);
            let mail = IncomingMail::new(&databases, mailboxes.clone(), resolver.clone(), &registry);
            let parts = (resolver.clone(), mail, workers, &registry);
            surroundings(&directory, &setting, (accounts.clone(), budget, clock.clock()), parts)
        };
        let (tls, connector, certificate) = certificates();
        let security = PortSecurity {
            tls: Some(Arc::clone(&tls)),
            server_end_point: {
                let end_point = server_end_point(&certificate);
                Some(Arc::new(move || end_point.clone()))
            },
            trusts_loopback: setting.trusts_loopback,
        };
        let protocol = SmtpProtocol::new(setting.options, security, surroundings, Clock::default());
        let port = Port {
            settings: PortSettings {
                listen: "127.0.0.1:0".parse().unwrap(),
                tls: setting.begins_with_tls.then_some(tls),
                trusted_proxies: Vec::new(),
                proxy_header_required: true,
                greeting_timeout_ms: 5000,
            },
            protocol: Arc::new(protocol),
            counters: PortCounters::register(&registry, "SMTP", Arc::new(AtomicU64::new(0))),
        };
        let ports = Ports::bind(vec![port], accounts).unwrap();
        let address = ports.addresses()[0];
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(ports.run(async { drop(stopped.await) }, Duration::from_secs(20)));
        Self {
            address,
            directory,
            clock,
            certificate,
            databases,
            registry,
            mailboxes,
            resolver,
            stop: Some(stop),
            running: Some(running),
            connector,
            _store: store,
            _folder: folder,
        }
    }

    pub(crate) async fn connect(&self) -> Client<TcpStream> {
        let mut client = Client { stream: TcpStream::connect(self.address).await.unwrap(), read: Vec::new() };
        assert!(client.reply().await.starts_with("220 mx.acme.example"));
        client
    }

    /// Over TLS from the beginning.
    pub(crate) async fn connect_encrypted(&self) -> Client<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut client =
            Client { stream: self.connector.connect(name, stream).await.unwrap(), read: Vec::new() };
        assert!(client.reply().await.starts_with("220 mx.acme.example"));
        client
    }

    /// Encrypts by STARTTLS.
    pub(crate) async fn encrypt(&self, mut client: Client<TcpStream>) -> Client<TlsStream<TcpStream>> {
        assert!(client.ask("STARTTLS").await.starts_with("220"));
        let name = ServerName::try_from("localhost").unwrap();
        Client { stream: self.connector.connect(name, client.stream).await.unwrap(), read: Vec::new() }
    }

    /// What the mail.boxes hold.
    pub(crate) fn waiting(&self) -> Vec<Map<String, Value>> {
        self.mailboxes.all().iter().flat_map(|mailbox| documents(mailbox)).collect()
    }

    /// Delivers what waits.
    pub(crate) fn deliver(&self) {
        let options = RouterOptions::default();
        let mut router =
            Router::open(&self.databases, &self.mailboxes, self.resolver.clone(), options, &self.registry)
                .unwrap();
        while router.round().unwrap().memos > 0 {}
    }

    /// The sources of a person's mail, the oldest first.
    pub(crate) fn mail_of(&self, name: &str) -> Vec<(Map<String, Value>, Vec<u8>)> {
        let Ok(database) = self.databases.get(&format!("mail/{name}")) else { return Vec::new() };
        let found = documents(&database);
        found
            .into_iter()
            .map(|memo| {
                let id = memo["_id"].as_str().unwrap();
                let attachment = database.open_attachment(id, SOURCE_ATTACHMENT, None, &SERVER).unwrap();
                let mut source = Vec::new();
                loop {
                    let piece = attachment.read(source.len() as u64, 1 << 20).unwrap();
                    if piece.is_empty() {
                        break;
                    }
                    source.extend_from_slice(&piece);
                }
                (memo, source)
            })
            .collect()
    }

    pub(crate) fn counted(&self, name: &str) -> u64 {
        self.registry.snapshot().counters[name]
    }

    pub(crate) async fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.running.take().unwrap().await.unwrap();
    }
}

type Parts<'p> = (Resolver, IncomingMail, WorkerPool, &'p Registry);

fn surroundings(
    directory: &Arc<Directory>,
    setting: &Setting,
    (accounts, budget, clock): (Accounts, SpoolBudget, Clock),
    (resolver, mail, workers, registry): Parts<'_>,
) -> Arc<dyn Surroundings> {
    let service = setting.options.service;
    let postmasters = vec!["bob".to_owned()];
    if service != Service::Submission {
        let check = setting.check.clone();
        let (filters, gate) = (setting.filters.clone(), setting.gate.clone());
        let options = ReceptionOptions { service, postmasters, budget, accounts, check, filters, gate };
        return Arc::new(Reception::new(options, resolver, mail, workers, registry));
    }
    let records: Arc<dyn CredentialRecords> = directory.clone();
    let credentials = Credentials::new(records, &CredentialOptions::default()).unwrap();
    let watch = Box::new(|_: &scrinium_directory::LoginAttempt<'_>| {});
    let hashing = HashingOptions::default();
    let logins = Logins::new(credentials, accounts.clone(), hashing, (registry, watch)).unwrap();
    let own: Arc<dyn SendRights> = Arc::new(resolver.clone());
    let options = SubmissionOptions {
        postmasters,
        budget,
        accounts,
        logins: Arc::new(logins),
        tokens: setting.tokens.clone(),
        rights: setting.rights.clone().unwrap_or(own),
        allowances: Allowances::new(setting.limits, clock),
        reaches_others: setting.reaches_others,
        filters: setting.filters.clone(),
    };
    Arc::new(Submission::new(options, resolver, mail, workers, registry))
}

fn certificates() -> (Arc<rustls::ServerConfig>, TlsConnector, Vec<u8>) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
    let certificate = certified.cert.der().clone();
    let tls = rustls::ServerConfig::builder().with_no_client_auth();
    let tls = tls.with_single_cert(vec![certificate.clone()], key).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let client = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    (Arc::new(tls), TlsConnector::from(Arc::new(client)), certificate.to_vec())
}

pub(crate) fn add(databases: &Databases, document: Value) {
    let Value::Object(document) = document else { panic!("an object") };
    let json = Value::Object(prepare(document).unwrap().document).to_string();
    let database = databases.get(DIRECTORY_DATABASE).unwrap();
    let edit = Edit { json: json.into(), ..Edit::default() };
    database.update_one(edit, EditMode::Interactive, &SERVER).unwrap();
}

fn documents(database: &Arc<scrinium_database::Database>) -> Vec<Map<String, Value>> {
    let query = ChangesQuery { include_documents: true, ..ChangesQuery::default() };
    let mut changes = database.changes(query, &SERVER).unwrap();
    let changes = changes.next_changes(usize::MAX).unwrap().into_iter().filter(|change| !change.deleted);
    changes
        .filter(|change| !change.id.starts_with('_'))
        .map(|change| change.document.unwrap().to_object().unwrap())
        .collect()
}

pub(crate) struct Client<S> {
    stream: S,
    read: Vec<u8>,
}

/// Of a stream with TLS: what an exchange can be bound to.
pub(crate) fn bindings(client: &Client<TlsStream<TcpStream>>, server: &Server) -> ChannelBindings {
    let session = client.stream.get_ref().1;
    let exporter = session.export_keying_material([0; 32], b"EXPORTER-Channel-Binding", Some(b"")).unwrap();
    ChannelBindings { exporter: Some(exporter), server_end_point: server_end_point(&server.certificate) }
}

impl<S: AsyncReadExt + AsyncWriteExt + Unpin> Client<S> {
    /// One whole reply, its lines with LF between them; empty when the server has closed.
    pub(crate) async fn reply(&mut self) -> String {
        let mut reply = String::new();
        loop {
            if let Some(end) = self.read.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.read.drain(..end + 2).collect();
                let line = String::from_utf8(line[..end].to_vec()).unwrap();
                let is_last = line.as_bytes().get(3) != Some(&b'-');
                reply += &line;
                if is_last {
                    return reply;
                }
                reply.push('\n');
                continue;
            }
            let mut piece = [0; 4096];
            let read =
                tokio::time::timeout(Duration::from_secs(20), self.stream.read(&mut piece)).await.unwrap();
            match read {
                Ok(0) | Err(_) => return reply,
                Ok(length) => self.read.extend_from_slice(&piece[..length]),
            }
        }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Sends bytes to a server that may have closed already.
    pub(crate) async fn send_all(&mut self, bytes: &[u8]) {
        // That it has is seen by what it says.
        drop(self.stream.write_all(bytes).await);
    }

    /// Sends nothing more.
    pub(crate) async fn finish(&mut self) {
        drop(self.stream.shutdown().await);
    }

    pub(crate) async fn ask(&mut self, command: &str) -> String {
        self.send(format!("{command}\r\n").as_bytes()).await;
        self.reply().await
    }

    /// Greets, names both ends and begins a text.
    pub(crate) async fn begin(&mut self, sender: &str, recipients: &[&str]) {
        assert!(self.ask("MAIL FROM:<").await.starts_with('5'), "what is refused leaves nothing behind");
        assert!(self.ask(&format!("MAIL FROM:<{sender}>")).await.starts_with("250"));
        for recipient in recipients {
            let reply = self.ask(&format!("RCPT TO:<{recipient}>")).await;
            assert!(reply.starts_with("250"), "{recipient}: {reply}");
        }
        assert!(self.ask("DATA").await.starts_with("354"));
    }

    /// A text of lines that need no further dots.
    pub(crate) async fn text(&mut self, text: &[u8]) -> String {
        self.send(text).await;
        self.send(b".\r\n").await;
        self.reply().await
    }

    pub(crate) async fn deliver(&mut self, sender: &str, recipients: &[&str], text: &[u8]) -> String {
        self.begin(sender, recipients).await;
        self.text(text).await
    }
}

/// Ada and Bob, who are the team, with their passwords; and the press, who take mail of strangers for the team.
fn add_people(databases: &Databases, directory: &Directory) {
    for name in ["ada", "bob"] {
        // Only Ada's address stands in the directory.
        let address = (name == "ada").then_some("ada@acme.example");
        add(
            databases,
            json!({"_id": format!("person:{name}"), "Form": "Person", "ShortName": name,
            "FullName": [format!("{name} Someone")], "InternetAddress": address}),
        );
    }
    add(
        databases,
        json!({"_id": "group:team", "Form": "Group", "ListName": "team", "Members": ["ada", "bob"]}),
    );
    add(
        databases,
        json!({"_id": "group:press", "Form": "Group", "ListName": "press", "Members": ["team"], "MayWrite": "everybody"}),
    );
    for name in ["ada", "bob"] {
        let hashed = HashedPassword::make(&format!("secret of {name}"), None, Some(4096)).unwrap();
        let put = move |credentials: &mut scrinium_credentials::StoredCredentials| {
            credentials.put_password(hashed.clone(), 0);
            Ok(())
        };
        directory.change_credentials(&format!("person:{name}"), put).unwrap();
    }
}
