//! A running server: storage, people, mail, ports, upkeep, in the order in which they build on each other.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

use scrinium_accounting::Accounts;
use scrinium_administration::{Requests, RequestsHandle};
use scrinium_catalog::Databases;
use scrinium_clock::milliseconds;
use scrinium_dav_server::{DavMail, DavParts, DavService};
use scrinium_directory::{ADMINISTRATOR_NAME, Directory, NameLookup, NewAdministrator, check_password};
use scrinium_http::{HttpOptions, HttpState, OperationLogOptions, Parts, PortOptions, follow, http_port};
use scrinium_mail::{
    IncomingMail, Mailboxes, OutgoingQueue, Resolver, Router, RouterHandle, RouterOptions, ScriptBook,
};
use scrinium_outbound::OutboundHandle;
use scrinium_port::{Port, Ports};
use scrinium_replication::Replicator;
use scrinium_statistics::Registry;
use scrinium_store::Purpose;
use tokio::task::JoinHandle;

use crate::acme::Acme;
use crate::administration::Administrated;
use crate::cli::{Failure, Terminal};
use crate::closing;
use crate::config::{Address, Settings};
use crate::credentials::{self, Credentials, PASSWORD_VARIABLE};
use crate::dmarc_reports::ReportReader;
use crate::domain_check::OwnDomainCheck;
use crate::file_limits::FileShares;
use crate::ground::Ground;
use crate::guard::OwnDatabases;
use crate::held_mail::PostponedMail;
use crate::imap_ports::{self, imap_ports};
use crate::junk_teacher::JunkTeacher;
use crate::ldap_ports::{self, ldap_ports};
use crate::log_database::{LogDatabase, LogWriter};
use crate::mail_ports::{MailParts, listening, mail_ports};
use crate::mail_rules::KeptRules;
use crate::mail_setup::OwnMailSetup;
use crate::managesieve_ports::{self, managesieve_ports};
use crate::people::{People, PeopleParts};
use crate::people_search::DirectorySearch;
use crate::people_source::Follower;
use crate::replication::replicator;
use crate::storage::Storage;
use crate::upkeep::{self, Bodies};
use crate::{file_limits, limits, mail_filters, mail_out};

/// A server that answers.
pub(crate) struct Running {
    storage: Storage,
    router: RouterHandle,
    outbound: Option<OutboundHandle>,
    upkeep: JoinHandle<()>,
    log_writer: Option<LogWriter>,
    port: JoinHandle<()>,
    replicator: Replicator,
    requests: RequestsHandle,
    source: Option<std::thread::JoinHandle<()>>,
    orders: JoinHandle<()>,
    tasks: Vec<JoinHandle<()>>,
}

impl Running {
    /// Opens everything, ports after all that they need: anyone who can connect is served. What continues by itself is begun
    /// when nothing can fail any more, so that a start that fails leaves nothing behind that has to be stopped.
    pub(crate) fn start(ground: &Arc<Ground>, terminal: &Terminal) -> Result<Self, Failure> {
        let started = Self::open(ground, terminal);
        if started.is_err() {
            ground.set_databases(None);
        }
        started
    }

    fn open(ground: &Arc<Ground>, terminal: &Terminal) -> Result<Self, Failure> {
        let settings = ground.settings();
        let files = file_shares(&settings);
        let storage =
            Storage::open_within(&settings, ground.statistics(), ground.clock(), Some(files.each_store))?;
        storage.follow(ground.configuration(), ground.workers());
        storage.databases.set_tasks(ground.tasks());
        ground.set_databases(Some((storage.store.clone(), storage.databases.clone())));
        let directory = Arc::new(Directory::open(&storage.databases).map_err(Failure::work)?);
        let lookup: Arc<dyn NameLookup> = directory.clone();
        ground.set_people(Some(Arc::clone(&lookup)));
        let resolver = Resolver::new(lookup, &settings.mail.domains);
        storage.databases.set_guard(Arc::new(OwnDatabases::new(&directory, ground.configuration())));
        prepare_directory(&directory, &settings, terminal)?;
        closing::close_open_databases(&storage.databases, &directory).map_err(Failure::work)?;

        let statistics = ground.statistics();
        let log = ground.log_database();
        let log_writer = log.start(&storage.databases, ground.configuration(), statistics);
        let mailboxes =
            Mailboxes::open(&storage.databases, settings.mail.boxes, statistics).map_err(Failure::work)?;
        let calendars = calendars(&storage.databases, &directory, (&mailboxes, &resolver), ground);
        let ways = (&mailboxes, &resolver, &calendars);
        let (router, outgoing) = router(ground, &settings, &storage.databases, ways)?;

        let accounts = limits::accounts(&settings, files, ground.clock().clone());
        let people = people(ground, &settings, (&directory, &accounts))?;
        let (logins, tokens) = (people.logins(), people.tokens());
        let state = http_state(ground, &settings, people, (&storage.databases, &accounts));
        lend_pages((ground, &settings), &state, (&directory, &resolver, &mailboxes));
        state.set_dav(calendars);
        let bodies =
            Bodies { state: state.clone(), memory: storage.store.admin().reserve(Purpose::Requests, 0) };
        let notices = mailboxes.clone();
        let grey_place =
            (storage.store.clone(), mailboxes.all().first().map_or(0, |mailbox| mailbox.number()));
        let mail = incoming_mail(&storage.databases, (mailboxes, resolver.clone()), log, statistics);
        let (accounts_of_mail, open) = (accounts.clone(), state.open_connections());
        let parts =
            MailParts { resolver, mail, grey_place, accounts: accounts_of_mail, logins, tokens, open };
        let ports = bind(ground, &settings, (&storage.databases, &state, &directory, &parts), accounts)?;
        let tasks = OwnTasks::open((ground, &settings), &storage.databases, &state)?;
        let own = ports.addresses();
        let replicator = replicator((ground, &settings, own), &directory, (&storage.databases, &state));
        let (stopping, grace) = (ground.shutdown().clone(), settings.server.shutdown_timeout);
        let port = tokio::spawn(async move { ports.run(follow(state, stopping.wait()), grace).await });
        let router = router.start();
        let outbound =
            outgoing.map(|queue| mail_out::start(ground, (queue, notices, log.clone()))).transpose()?;
        ground.set_outbound(outbound.as_ref().map(OutboundHandle::controls));
        let orders = replicator.follow();
        let (requests, source) = begin_requests(ground, &settings, &directory)?;
        let upkeep = tokio::spawn(upkeep::run(storage.databases.clone(), bodies, Arc::clone(ground)));
        Ok(Self {
            storage,
            router,
            outbound,
            upkeep,
            log_writer,
            port,
            replicator,
            requests,
            source,
            orders,
            tasks: tasks.start(ground),
        })
    }

    /// Waits until the ports have given up their requests, then closes the rest.
    pub(crate) async fn stop(self, ground: &Ground) {
        drop(self.port.await);
        ground.set_databases(None);
        ground.freezes().end();
        // Long work is begun again by the one who needs it.
        for task in ground.tasks().running() {
            // One that has just ended need not be told.
            let _told = ground.tasks().cancel(task.id);
        }
        ground.set_people(None);
        ground.set_outbound(None);
        ground.set_replicator(None);
        ground.set_requests(None);
        let (requests, source) = (self.requests, self.source);
        let stopped = tokio::task::spawn_blocking(move || {
            requests.stop();
            source.map_or(Ok(()), std::thread::JoinHandle::join)
        });
        drop(stopped.await);
        self.replicator.stop().await;
        drop(self.orders.await);
        for task in self.tasks {
            drop(task.await);
        }
        self.router.stop().await;
        if let Some(outbound) = self.outbound {
            outbound.stop().await;
        }
        drop(self.upkeep.await);
        let (log_writer, storage) = (self.log_writer, self.storage);
        let closed = tokio::task::spawn_blocking(move || {
            // It stores what waits, so it goes first.
            drop(log_writer);
            storage.close();
        });
        drop(closed.await);
    }
}

/// What pages in the browser ask for, next to documents.
fn lend_pages(
    (ground, settings): (&Ground, &Settings),
    state: &HttpState,
    (directory, resolver, mailboxes): (&Arc<Directory>, &Resolver, &Mailboxes),
) {
    state.set_held_mail(Arc::new(PostponedMail(mailboxes.clone())));
    state.set_mail_rules(Arc::new(KeptRules::new(directory)));
    state.set_domain_check(Arc::new(OwnDomainCheck::new(ground.configuration().clone())));
    state.set_people_search(Arc::new(DirectorySearch::new(directory, resolver.clone())));
    state.set_mail_setup(Arc::new(OwnMailSetup::new(resolver.clone(), settings, ground.name())));
}

/// Who may come in, and by what.
fn people(
    ground: &Ground,
    settings: &Settings,
    (directory, accounts): (&Arc<Directory>, &Accounts),
) -> Result<People, Failure> {
    let parts = PeopleParts {
        directory,
        accounts: accounts.clone(),
        statistics: ground.statistics(),
        log: ground.log_database().clone(),
        clock: ground.clock().clone(),
        server_name: ground.name(),
    };
    People::new(parts, settings)
}

/// What answers calendar programs.
fn calendars(
    databases: &Databases,
    directory: &Arc<Directory>,
    (mailboxes, resolver): (&Mailboxes, &Resolver),
    ground: &Ground,
) -> Arc<DavService> {
    let (databases, directory) = (databases.clone(), Arc::clone(directory));
    let mail = DavMail { mailboxes: mailboxes.clone(), resolver: resolver.clone() };
    Arc::new(DavService::new(DavParts {
        databases,
        directory,
        clock: ground.clock().clone(),
        mail: Some(mail),
    }))
}

/// Goes on with what is renamed and removed, and follows the people's source, if there is one.
fn begin_requests(
    ground: &Ground,
    settings: &Arc<Settings>,
    directory: &Arc<Directory>,
) -> Result<(RequestsHandle, Option<std::thread::JoinHandle<()>>), Failure> {
    let requests = Arc::new(Requests::new(directory, ground.tasks()));
    let source = Follower::new((directory, &requests), ground.tasks(), settings)?;
    ground.set_requests(Some(Arc::clone(&requests)));
    let requests = requests.start().map_err(Failure::work)?;
    let source = source.map(|source| source.start(ground.shutdown().clone())).transpose();
    Ok((requests, source.map_err(Failure::work)?))
}

/// What brings memos on their way, and the queue of those that leave. What becomes of them is on record.
fn router(
    ground: &Ground,
    settings: &Settings,
    databases: &Databases,
    (mailboxes, resolver, calendars): (&Mailboxes, &Resolver, &Arc<DavService>),
) -> Result<(Router, Option<OutgoingQueue>), Failure> {
    let (options, recorded) = (RouterOptions::default(), ground.log_database().clone());
    let router = Router::open(databases, mailboxes, resolver.clone(), options, ground.statistics());
    let router = router.map_err(Failure::work)?.with_calendars(calendars.clone());
    let router = router.on_routed(move |routed| recorded.routed(routed));
    let outgoing = mail_out::queue(ground, settings, databases)?;
    Ok((outgoing.iter().cloned().fold(router, Router::with_outgoing), outgoing))
}

/// What takes messages that come in. What becomes of them is on record.
fn incoming_mail(
    databases: &Databases,
    (mailboxes, resolver): (Mailboxes, Resolver),
    log: &LogDatabase,
    statistics: &Registry,
) -> IncomingMail {
    let recorded = log.clone();
    let mail = IncomingMail::new(databases, mailboxes, resolver, statistics);
    mail.on_routed(move |routed| recorded.routed(routed)).with_calendars()
}

/// What goes on by itself around mail and certificates.
struct OwnTasks {
    acme: Option<Acme>,
    reports: Option<ReportReader>,
    teacher: Option<JunkTeacher>,
}

impl OwnTasks {
    /// What orders certificates, reads reports of DMARC and teaches rspamd, as far as they are to.
    fn open(
        (ground, settings): (&Arc<Ground>, &Arc<Settings>),
        databases: &Databases,
        state: &HttpState,
    ) -> Result<Self, Failure> {
        let acme = Acme::new(ground, settings, state.acme_answers().clone())?;
        let name = Some(settings.dmarc.reports_database.as_str()).filter(|name| !name.is_empty());
        let open = |name| ReportReader::open(databases, name, mail_out::host_name(ground, settings));
        let reports = name.map(|name| open(name).map_err(Failure::work)).transpose()?;
        let teacher = mail_filters::teacher(ground, settings).map(|(watcher, teacher)| {
            databases.set_move_watcher(watcher);
            teacher
        });
        Ok(Self { acme, reports, teacher })
    }

    fn start(self, ground: &Ground) -> Vec<JoinHandle<()>> {
        let stopping = ground.shutdown();
        let reports = self.reports.map(|reports| reports.start(stopping.clone()));
        let teacher = self.teacher.map(|teacher| teacher.start(stopping.clone()));
        self.acme.map(Acme::start).into_iter().chain(reports).chain(teacher).collect()
    }
}

/// What all HTTP ports share. What is done is on record.
fn http_state(
    ground: &Arc<Ground>,
    settings: &Settings,
    people: People,
    (databases, accounts): (&Databases, &Accounts),
) -> HttpState {
    let log = ground.log_database();
    let state = HttpState::new(Parts {
        databases: databases.clone(),
        authenticator: Arc::new(people),
        administration: Arc::new(Administrated::new(ground)),
        workers: ground.workers().clone(),
        statistics: ground.statistics().clone(),
        options: http_options(ground, settings, accounts),
    });
    state.set_observer(Arc::new(log.clone()));
    state.set_audit(Arc::new(log.clone()));
    state
}

fn http_options(ground: &Ground, settings: &Settings, accounts: &Accounts) -> HttpOptions {
    HttpOptions {
        body_budget_bytes: bounded(settings.http.body_budget_bytes),
        changes_timeout_ms: milliseconds(settings.http.changes_timeout),
        node_name: format!("scrinium@{}", ground.name()),
        operation_log: operation_log(settings),
        accounts: accounts.clone(),
    }
}

/// Binds the ports of HTTP, then those of mail, LDAP and IMAP, and the socket of the file system, if there is one, and says where they are.
fn bind(
    ground: &Arc<Ground>,
    settings: &Settings,
    (databases, state, directory, parts): (&Databases, &HttpState, &Arc<Directory>, &MailParts),
    accounts: Accounts,
) -> Result<Ports, Failure> {
    let mut all: Vec<Port> =
        ports(ground, settings)?.into_iter().map(|options| http_port(options, state)).collect();
    let (mail, socket) = mail_ports(ground, settings, parts)?;
    all.extend(mail);
    all.extend(ldap_ports(ground, settings, (directory, parts))?);
    all.extend(imap_ports(ground, settings, (databases, directory, parts))?);
    all.extend(managesieve_ports(ground, settings, (&ScriptBook::new(databases), parts))?);
    let mut ports = Ports::bind(all, accounts).map_err(Failure::work)?;
    if let Some(socket) = socket {
        let url = format!("lmtp+unix:{}", socket.path.display());
        ports.bind_socket(socket).map_err(Failure::work)?;
        ground.listening_at(vec![url]);
    }
    tell_addresses(ground, settings, ports.addresses());
    Ok(ports)
}

/// How many files stores and connections may have open; less than was set is logged.
fn file_shares(settings: &Settings) -> FileShares {
    let limit = file_limits::raise();
    let wanted = settings.http.max_connections;
    let shares = file_limits::divide(limit, settings.volumes.len() + 1, wanted);
    if shares.connections < wanted {
        tracing::info!(
            connections = shares.connections,
            wanted,
            open_files = limit,
            "fewer connections are taken than http.max_connections says, since the system lets this process open no more files"
        );
    }
    shares
}

/// Where what is done is written down; a relative path begins in the data folder.
fn operation_log(settings: &Settings) -> Option<OperationLogOptions> {
    let path = Some(settings.http.operation_log.trim()).filter(|path| !path.is_empty())?;
    let path = settings.in_data_dir(path.as_ref());
    Some(OperationLogOptions { path, max_bytes: settings.http.operation_log_bytes })
}

/// Makes the first administrator, if there is none.
fn prepare_directory(directory: &Directory, settings: &Settings, terminal: &Terminal) -> Result<(), Failure> {
    let given = std::env::var(PASSWORD_VARIABLE).ok().filter(|password| !password.is_empty());
    if let Some(given) = &given {
        check_password(given, settings.login.password_bytes)
            .map_err(|error| Failure::Use(format!("{PASSWORD_VARIABLE}: {error}")))?;
    }
    let administrator = directory.ensure_administrator(given.as_deref()).map_err(Failure::work)?;
    match administrator {
        Some(NewAdministrator { made_password: Some(password), .. }) => {
            tell_password(password, &settings.server.data_dir, terminal)
        }
        _ => Ok(()),
    }
}

/// Shows the first administrator's password on a terminal. Anywhere else it would stay in a journal, so it goes into a file
/// that only the server's owner can read, and commands on this machine take it from there.
fn tell_password(password: String, data_dir: &Path, terminal: &Terminal) -> Result<(), Failure> {
    if terminal.is_watched() {
        terminal.say(&format!(
            "\nThe administrator's name is {ADMINISTRATOR_NAME} and the password is {password}\n\
             It is shown this once and kept nowhere; another one: scrinium person password {ADMINISTRATOR_NAME}\n"
        ));
        return Ok(());
    }
    let path = data_dir.join(credentials::FILE_NAME);
    let kept = Credentials { name: ADMINISTRATOR_NAME.to_owned(), password };
    kept.write(data_dir).map_err(|error| {
        Failure::Work(format!("cannot keep the administrator's password in {}: {error}", path.display()))
    })?;
    tracing::info!(
        path = %path.display(),
        "the administrator's name and first password are in this file; set another password, then remove it"
    );
    Ok(())
}

/// First the ports of `http.listen`, then those of `https.listen`.
fn ports(ground: &Ground, settings: &Settings) -> Result<Vec<PortOptions>, Failure> {
    let (http, https) = (&settings.http, &settings.https);
    let encrypted = http.tls || !https.listen.is_empty();
    let encryption = if encrypted { Some(ground.encryption().map_err(Failure::work)?) } else { None };
    if !http.tls && settings.listens_beyond_itself() {
        tracing::warn!(
            "the HTTP port can be reached by other machines and http.tls is off: passwords are readable on their way"
        );
    }
    let plain = http.listen.iter().map(|address| ("http.listen", address, http.tls, http.compression));
    let safe = https.listen.iter().map(|address| ("https.listen", address, true, https.compression));
    plain
        .chain(safe)
        .map(|(key, address, tls, compression)| {
            Ok(PortOptions {
                listen: resolve(key, address)?,
                tls: encryption.clone().filter(|_| tls),
                compression,
                cors_origins: http.cors_origins.clone(),
                cors_credentials: http.cors_credentials,
                max_request_bytes: bounded(http.max_request_bytes),
                max_header_bytes: bounded(http.max_header_bytes),
                trusted_proxies: limits::trusted_proxies(settings),
                max_streams: u32::try_from(http.max_streams).unwrap_or(u32::MAX),
                read_timeout_ms: milliseconds(http.read_timeout),
                write_timeout_ms: milliseconds(http.write_timeout),
                idle_timeout_ms: milliseconds(http.idle_timeout),
            })
        })
        .collect()
}

/// The addresses come in the order in which the ports were bound.
fn tell_addresses(ground: &Ground, settings: &Settings, addresses: &[SocketAddr]) {
    let plain = if settings.http.tls { "https" } else { "http" };
    let web = [(plain, settings.http.listen.as_slice()), ("https", settings.https.listen.as_slice())];
    let mut rest = addresses;
    let others = listening(settings)
        .into_iter()
        .chain(ldap_ports::listening(settings))
        .chain(imap_ports::listening(settings))
        .chain(managesieve_ports::listening(settings));
    for (protocol, asked) in web.into_iter().chain(others) {
        let (these, others) = rest.split_at(asked.len().min(rest.len()));
        ground.listening(protocol, these);
        rest = others;
    }
}

pub(crate) fn resolve(key: &str, address: &Address) -> Result<SocketAddr, Failure> {
    let found = (address.host.as_str(), address.port).to_socket_addrs();
    found
        .ok()
        .and_then(|mut found| found.next())
        .ok_or_else(|| Failure::Use(format!("{key}: this machine does not know {address}")))
}

fn bounded(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
