//! What every server stands on, whatever databases and ports are opened on it: configuration, statistics,
//! tasks, worker pool, shutdown, console.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Mutex, RwLock};
use scrinium_administration::Requests;
use scrinium_catalog::{Databases, NameRange};
use scrinium_clock::Clock;
use scrinium_credentials::sasl::{ServerEndPoint, server_end_point};
use scrinium_database::Properties;
use scrinium_directory::{Found, NameLookup};
use scrinium_mail::export::ExportFormat;
use scrinium_maintenance::CompactOrder;
use scrinium_outbound::OutboundControls;
use scrinium_replication::Replicator;
use scrinium_statistics::{Registry, Snapshot, Task, Tasks};
use scrinium_store::Store;
use scrinium_views::OpenDatabase;
use scrinium_worker::{WorkerOptions, WorkerPool};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use crate::acme::AcmeFile;
use crate::backup::{BackupFigures, BackupOrder, RestoreOrder, back_up_as_task, restore_as_task};
use crate::cli::{Failure, Terminal};
use crate::config::{Configuration, RunningConfiguration, Settings};
use crate::console::{
    Console, FixupOrder, MoveAttachments, Reply, ServerParts, ServerReport, SettleOrder, UpdateViews,
};
use crate::fixup::{Fixups, show_aside};
use crate::freeze::Freezes;
use crate::log_database::LogDatabase;
use crate::messages::{self, MessageLevel};
use crate::person_export::{self, Export};
use crate::storage::pool_threads;
use crate::tls::CertificateKeeper;
use crate::{Shutdown, attachments, compaction, machine, mail_export, reread, settle, tls, volumes};

/// Tasks of the runtime that did not end with their ports get this long.
const LAST_TASKS_WITHIN: Duration = Duration::from_secs(2);

/// What every server stands on.
pub struct Ground {
    clock: Clock,
    configuration: RunningConfiguration,
    statistics: Registry,
    tasks: Tasks,
    workers: WorkerPool,
    shutdown: Shutdown,
    name: String,
    started: SystemTime,
    running_since: Instant,
    ports: RwLock<Vec<String>>,
    /// While the server has them open.
    databases: RwLock<Option<(Store, Databases)>>,
    /// While outgoing mail is sent.
    outbound: RwLock<Option<OutboundControls>>,
    replicator: RwLock<Option<Replicator>>,
    people: RwLock<Option<Arc<dyn NameLookup>>>,
    /// While databases are open.
    requests: RwLock<Option<Arc<Requests>>>,
    certificate: Mutex<Option<Arc<CertificateKeeper>>>,
    fixups: Fixups,
    freezes: Freezes,
    backups: BackupFigures,
    log_database: LogDatabase,
}

impl Ground {
    /// Lays the ground, tells what happens on standard error, runs `inhabit` on it and clears up.
    ///
    /// `inhabit` opens databases and ports, calls [`Ground::listening`], serves until
    /// [`Ground::shutdown`] is requested, which SIGTERM and SIGINT do, and closes what it opened.
    ///
    /// # Errors
    /// What `inhabit` answers; or that the process cannot be set up.
    pub fn run<F>(
        configuration: Configuration,
        terminal: &Terminal,
        inhabit: impl FnOnce(Arc<Self>) -> F,
    ) -> Result<(), Failure>
    where
        F: Future<Output = Result<(), Failure>>,
    {
        let statistics = Registry::new();
        let settings = configuration.settings();
        let color = terminal.has_color();
        let clock = Clock::system();
        let log_database = LogDatabase::new(&statistics, &clock);
        let told = (&statistics, &log_database);
        let (subscriber, level) =
            messages::subscriber(&settings.tracing, color, told, std::io::stderr).map_err(Failure::Use)?;
        tracing::subscriber::set_global_default(subscriber).map_err(Failure::work)?;
        // All threads of the server begin so, until one says that it comes after others.
        scrinium_store::come_before_others();
        let runtime = runtime(settings.server.network_threads).map_err(Failure::work)?;
        let ground = Arc::new(Self::lay_with(configuration, statistics, Some(level), (log_database, clock)));
        let lived = runtime.block_on(async {
            ground.shutdown.on_signals().map_err(Failure::work)?;
            let data_dir = settings.server.data_dir.display();
            tracing::info!(version = env!("CARGO_PKG_VERSION"), name = ground.name, %data_dir, "starting");
            let lived = inhabit(ground.clone()).await;
            ground.clear(settings.server.shutdown_timeout).await;
            lived
        });
        runtime.shutdown_timeout(LAST_TASKS_WITHIN);
        lived
    }

    /// Lays the ground alone, which `set config tracing.level` changes the level of, if one is given.
    #[must_use]
    pub fn lay(configuration: Configuration, statistics: Registry, level: Option<MessageLevel>) -> Self {
        let clock = Clock::system();
        let log_database = LogDatabase::new(&statistics, &clock);
        Self::lay_with(configuration, statistics, level, (log_database, clock))
    }

    fn lay_with(
        configuration: Configuration,
        statistics: Registry,
        level: Option<MessageLevel>,
        (log_database, clock): (LogDatabase, Clock),
    ) -> Self {
        let settings = configuration.settings();
        let workers = WorkerPool::new(&worker_options(&settings), &statistics);
        let configuration = RunningConfiguration::new(configuration);
        follow_changes(&configuration, &workers, level);
        log_database.follow(&configuration, &server_name(&settings));
        let tasks = Tasks::with_clock(&clock);
        let recorded = log_database.clone();
        tasks.on_end(move |task| recorded.task_run(task));
        let fixups = Fixups::new(&statistics);
        let freezes = Freezes::register(&statistics);
        let running_since = clock.instant();
        let elapsed = clock.clone();
        machine::register(&statistics, &configuration);
        statistics.count_of("Server.Faults", scrinium_assertion::faults);
        statistics.gauge("Server.ElapsedTime", move || elapsed.elapsed(running_since).as_secs_f64().floor());
        let backups = BackupFigures::register(&statistics);
        Self {
            backups,
            log_database,
            configuration,
            statistics,
            tasks,
            workers,
            shutdown: Shutdown::default(),
            name: server_name(&settings),
            started: clock.now(),
            clock,
            running_since,
            ports: RwLock::default(),
            databases: RwLock::default(),
            outbound: RwLock::default(),
            requests: RwLock::default(),
            replicator: RwLock::default(),
            people: RwLock::default(),
            certificate: Mutex::default(),
            fixups,
            freezes,
        }
    }

    /// What tells the time to the whole server.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The configuration; parts register here what to do when a key is set.
    #[must_use]
    pub fn configuration(&self) -> &RunningConfiguration {
        &self.configuration
    }

    /// The values of all keys as they are now.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.configuration.settings()
    }

    /// Where everything is counted.
    #[must_use]
    pub fn statistics(&self) -> &Registry {
        &self.statistics
    }

    /// Lets the console order replications, until the server stops.
    pub(crate) fn set_replicator(&self, replicator: Option<Replicator>) {
        *self.replicator.write() = replicator;
    }

    /// What carries replications out, while the server runs.
    pub(crate) fn replicator(&self) -> Option<Replicator> {
        self.replicator.read().clone()
    }

    /// Lets the console work on databases, until it learns that they are about to be closed.
    pub fn set_databases(&self, databases: Option<(Store, Databases)>) {
        *self.databases.write() = databases;
    }

    /// Lets the console take requests to rename and remove people and groups, or no more.
    pub(crate) fn set_requests(&self, requests: Option<Arc<Requests>>) {
        *self.requests.write() = requests;
    }

    /// Lets the console ask the queue of outgoing mail, and order it.
    pub(crate) fn set_outbound(&self, outbound: Option<OutboundControls>) {
        *self.outbound.write() = outbound;
    }

    /// Knows people by their names, until the server stops.
    pub(crate) fn set_people(&self, people: Option<Arc<dyn NameLookup>>) {
        *self.people.write() = people;
    }

    /// The databases, and who knows people by their names, while the server runs.
    pub(crate) fn people(&self) -> Option<(Databases, Arc<dyn NameLookup>)> {
        let (_, databases) = self.open_databases().ok()?;
        Some((databases, self.people.read().clone()?))
    }

    /// Changes that are held for a snapshot.
    pub(crate) fn freezes(&self) -> &Freezes {
        &self.freezes
    }

    fn open_databases(&self) -> Result<(Store, Databases), String> {
        self.databases.read().clone().ok_or_else(|| "the server is about to stop".to_owned())
    }

    /// The table of long tasks.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Where what happens is recorded.
    #[must_use]
    pub fn log_database(&self) -> &LogDatabase {
        &self.log_database
    }

    /// The threads for work on databases.
    #[must_use]
    pub fn workers(&self) -> &WorkerPool {
        &self.workers
    }

    /// The end of the server.
    #[must_use]
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// The server's name: the configured one, else the machine's.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The console of this server.
    #[must_use]
    pub fn console(self: &Arc<Self>) -> Console {
        Console::new(self.clone())
    }

    /// Says that these addresses are served now; they are told, and shown by `show server`.
    pub fn listening(&self, protocol: &str, addresses: &[SocketAddr]) {
        self.listening_at(addresses.iter().map(|address| format!("{protocol}://{address}")).collect());
    }

    /// The same of what has no address of the network.
    pub(crate) fn listening_at(&self, urls: Vec<String>) {
        for url in &urls {
            tracing::info!(%url, "listening");
        }
        self.ports.write().extend(urls);
    }

    /// What encrypts ports. The certificate in its usual place is made if it is missing; one that was named
    /// must be there.
    ///
    /// # Errors
    /// [`tls::TlsError`] names the file.
    pub fn encryption(&self) -> Result<Arc<rustls::ServerConfig>, tls::TlsError> {
        self.certificate()?.configuration()
    }

    /// The certificate of all ports, which is read once and can become another one.
    ///
    /// # Errors
    /// [`tls::TlsError`] names the file.
    pub(crate) fn certificate(&self) -> Result<Arc<CertificateKeeper>, tls::TlsError> {
        let mut held = self.certificate.lock();
        if let Some(keeper) = &*held {
            return Ok(Arc::clone(keeper));
        }
        let keeper = self.read_certificate()?;
        *held = Some(Arc::clone(&keeper));
        Ok(keeper)
    }

    fn read_certificate(&self) -> Result<Arc<CertificateKeeper>, tls::TlsError> {
        let settings = self.configuration.settings();
        if let Some(file) = AcmeFile::of(&settings).filter(AcmeFile::is_there) {
            match CertificateKeeper::read(file.path(), file.path()) {
                Ok(keeper) => return Ok(keeper),
                Err(error) => {
                    tracing::warn!(%error, "the authority's certificate cannot be used; another one is ordered");
                }
            }
        }
        let place = |path: &Path| settings.in_data_dir(path);
        let (certificate, key) = (place(&settings.http.tls_certificate), place(&settings.http.tls_key));
        if tls::is_usual(&settings) {
            let mail_host = settings.smtp.host_name.as_str();
            let is_other = !mail_host.is_empty() && mail_host != self.name;
            let names = [Some(self.name.as_str()), Some(mail_host).filter(|_| is_other)];
            let names: Vec<&str> = names.into_iter().flatten().collect();
            tls::make_if_missing(&certificate, &key, &names, &self.clock)?;
        }
        CertificateKeeper::read(&certificate, &key)
    }

    /// What log-ins can be bound to of the certificate of [`Ground::encryption`], if it has a hash that RFC 5929 §4 knows.
    ///
    /// # Errors
    /// [`tls::TlsError`] names the file.
    pub(crate) fn certificate_binding(&self) -> Result<ServerEndPoint, tls::TlsError> {
        let keeper = self.certificate()?;
        Ok(Arc::new(move || server_end_point(&keeper.certificate()?)))
    }

    fn database(&self, name: &str) -> Result<OpenDatabase, String> {
        let (_, databases) = self.open_databases()?;
        databases.get(name).map_err(|error| format!("{name}: {error}"))
    }

    /// Lets what was begun end.
    async fn clear(&self, within: Duration) {
        self.workers.close();
        if !self.workers.drained(within).await {
            tracing::warn!("transactions were still running; what they had acknowledged is kept");
        }
        tracing::info!("stopped");
    }
}

impl ServerParts for Ground {
    fn statistics(&self) -> Snapshot {
        self.statistics.snapshot()
    }

    fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    fn configuration(&self) -> &RunningConfiguration {
        &self.configuration
    }

    fn replications(&self) -> Vec<Value> {
        let Some(replicator) = self.replicator() else { return Vec::new() };
        replicator.jobs().iter().map(|job| job.shown(replicator.node())).collect()
    }

    fn databases(&self) -> Option<Databases> {
        self.open_databases().ok().map(|(_, databases)| databases)
    }

    fn export_person(&self, name: &str) -> Result<Reply, String> {
        let requests = self.requests().ok_or_else(|| "the server is about to stop".to_owned())?;
        let directory = requests.directory();
        let name = name.trim_matches('"');
        let Found::Person(person) = directory.find(name) else {
            return Err(format!("no person of the directory, or more than one, is called {name:?}"));
        };
        let export = Export::new(directory, person, &self.settings());
        let folder = person_export::begin(export, &self.tasks)?;
        let text = format!("It is written into {}; show tasks shows how far it is.\n", folder.display());
        Ok(Reply { text, data: json!({"folder": folder}) })
    }

    fn export_mail(&self, name: &str, format: ExportFormat) -> Result<Reply, String> {
        let requests = self.requests().ok_or_else(|| "the server is about to stop".to_owned())?;
        let directory = requests.directory();
        let name = name.trim_matches('"');
        let Found::Person(person) = directory.find(name) else {
            return Err(format!("no person of the directory, or more than one, is called {name:?}"));
        };
        let export = mail_export::Export::new(directory, person, (&self.settings(), format))?;
        let folder = mail_export::begin(export, &self.tasks)?;
        let text = format!("It is written into {}; show tasks shows how far it is.\n", folder.display());
        Ok(Reply { text, data: json!({"folder": folder}) })
    }

    fn requests(&self) -> Option<Arc<Requests>> {
        self.requests.read().clone()
    }

    fn outbound(&self) -> Option<OutboundControls> {
        self.outbound.read().clone()
    }

    fn update_views(&self, order: &UpdateViews) -> Result<usize, String> {
        let (_, databases) = self.open_databases()?;
        let names = databases_for(&databases, order)?;
        let (count, order) = (names.len(), order.clone());
        let of = Some(order.database.as_str()).filter(|name| *name != "*");
        let task = self.tasks.start("updall", of, Some(count as u64));
        let begun = std::thread::Builder::new()
            .name("updall".to_owned())
            .spawn(move || update_views_of(&databases, &names, &order, task));
        begun.map(|_| count).map_err(|error| format!("cannot start a thread for it: {error}"))
    }

    fn compact(&self, database: &str, order: &CompactOrder) -> Result<usize, String> {
        let (_, databases) = self.open_databases()?;
        compaction::begin(databases, database, order)
    }

    fn move_attachments(&self, order: &MoveAttachments) -> Result<(), String> {
        let (_, databases) = self.open_databases()?;
        attachments::begin(databases, &self.tasks, order)
    }

    fn reread(&self, database: &str) -> Result<(), String> {
        let (_, databases) = self.open_databases()?;
        reread::begin(databases, &self.tasks, database)
    }

    fn settle_conflicts(&self, order: &SettleOrder) -> Result<u64, String> {
        let (_, databases) = self.open_databases()?;
        settle::begin(&databases, &self.tasks, order)
    }

    fn move_database(&self, database: &str, volume: &str) -> Result<(), String> {
        let (_, databases) = self.open_databases()?;
        volumes::begin_move(&databases, database, volume)
    }

    fn fixup(&self, order: &FixupOrder) -> Result<(), String> {
        let (_, databases) = self.open_databases()?;
        self.fixups.begin(&databases, order)
    }

    fn fixup_reports(&self) -> Reply {
        self.fixups.show()
    }

    fn set_aside(&self, database: Option<&str>) -> Result<Reply, String> {
        let (_, databases) = self.open_databases()?;
        show_aside(&databases, database)
    }

    fn back_up(&self, order: BackupOrder) -> Result<u64, String> {
        let (_, databases) = self.open_databases()?;
        let told = (self.name.as_str(), self.backups.clone());
        back_up_as_task(&self.tasks, databases, &self.configuration, told, &order)
    }

    fn restore_database(&self, order: RestoreOrder) -> Result<u64, String> {
        restore_as_task(&self.tasks, self.open_databases()?, &self.configuration, order)
    }

    fn freeze(&self, limit: Duration) -> Result<Reply, String> {
        let (_, databases) = self.open_databases()?;
        self.freezes.freeze(&databases, limit, pool_threads(&self.settings()))
    }

    fn thaw(&self) -> Result<Reply, String> {
        self.freezes.thaw()
    }

    fn properties(&self, database: &str) -> Result<Properties, String> {
        Ok(self.database(database)?.properties())
    }

    fn set_properties(&self, database: &str, wish: &Map<String, Value>) -> Result<Properties, String> {
        let database = self.database(database)?;
        let properties = database.properties().changed(wish).map_err(|error| error.to_string())?;
        database.change_properties(properties).map_err(|error| error.to_string())?;
        Ok(properties)
    }

    fn report(&self) -> ServerReport {
        ServerReport {
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            process: std::process::id(),
            data_dir: self.configuration.settings().server.data_dir.clone(),
            started: self.started,
            elapsed: self.clock.elapsed(self.running_since),
            ports: self.ports.read().clone(),
        }
    }
}

/// Databases whose views are updated, one after the other.
fn databases_for(databases: &Databases, order: &UpdateViews) -> Result<Vec<String>, String> {
    let names = if order.database == "*" {
        databases.names(&NameRange::default()).map_err(|error| error.to_string())?
    } else {
        databases.get(&order.database).map_err(|error| format!("{}: {error}", order.database))?;
        vec![order.database.clone()]
    };
    Ok(names)
}

fn update_views_of(databases: &Databases, names: &[String], order: &UpdateViews, task: Task) {
    for name in names {
        if task.is_cancelled() {
            return;
        }
        task.advance(1);
        // A database may have gone meanwhile.
        let Ok(database) = databases.get(name) else { continue };
        match database.update_all_views(order.view.as_deref(), order.rebuild) {
            Ok(views) => tracing::info!(database = name, views, "views were brought up to date"),
            Err(error) => tracing::warn!(database = name, %error, "views were not brought up to date"),
        }
    }
    task.finish();
}

fn runtime(network_threads: usize) -> std::io::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if network_threads > 0 {
        builder.worker_threads(network_threads);
    }
    builder.thread_name("network").enable_all().build()
}

fn worker_options(settings: &Settings) -> WorkerOptions {
    WorkerOptions {
        threads: pool_threads(settings),
        admitted: settings.server.max_concurrent_transactions,
        waiting: settings.server.max_waiting_transactions,
        wait: settings.server.admission_timeout,
    }
}

/// What the ground itself does when a key is set while running.
fn follow_changes(configuration: &RunningConfiguration, workers: &WorkerPool, level: Option<MessageLevel>) {
    let pool = workers.clone();
    configuration.on_change("server.pool_tasks", move |settings| {
        pool.set_threads(pool_threads(settings));
        Ok(())
    });
    let pool = workers.clone();
    configuration.on_change("server.max_concurrent_transactions", move |settings| {
        pool.set_admitted(settings.server.max_concurrent_transactions);
        Ok(())
    });
    let pool = workers.clone();
    configuration.on_change("server.max_waiting_transactions", move |settings| {
        pool.set_waiting(settings.server.max_waiting_transactions);
        Ok(())
    });
    if let Some(level) = level {
        configuration.on_change("tracing.level", move |settings| level.set(&settings.tracing.level));
    }
}

/// The configured name, else the machine's.
pub(crate) fn server_name(settings: &Settings) -> String {
    if !settings.server.name.is_empty() {
        return settings.server.name.clone();
    }
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if machine.is_empty() { "localhost".to_owned() } else { machine }
}
