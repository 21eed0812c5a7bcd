//! A cell on its way through the steps: servers that run, what was measured, what has to be said about it.

mod mail;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use http::Method;
use rustix::process::Signal;
use scrinium_lab_report::experiment::SearchPoint;
use serde_json::{Value, json};

use super::cells::{Cell, Values, substitute};
use super::definition::Scalar;
use super::error::ExperimentError;
use super::fill::{Filling, fill};
use super::ground::{Limits, ServerLimits};
use super::load_step::{Address, LoadCell, Loaded};
use super::mail::{Peer, Sink};
use super::server::{self, Server, ServerCommand};
use super::step::{CellStep, Fill, RequestStep, Start, StepAction};
use super::usage::{Measured, StepUsage, disk_bytes};
use crate::driver::{Client, Failure, path_part};
use crate::monitor::{QUIET_LOOKS, rest};
use mail::{MailPorts, Waiting};

/// Building views of a large database is one request.
const REQUEST_TIME_OUT: Duration = Duration::from_secs(6 * 3600);

/// How often is looked whether a task has ended: looking costs the server something, and is part of what is measured.
const SHORTEST_LOOK: Duration = Duration::from_millis(20);
const LONGEST_LOOK: Duration = Duration::from_millis(500);

/// A command of which no task was seen in this time has none.
const TASK_SEEN_WITHIN: Duration = Duration::from_secs(2);

/// Servers on one machine.
const MOST_SERVERS: usize = 16;

/// What a cell gave.
#[derive(Clone, Debug, Default)]
pub(super) struct Gathered {
    /// `step.value`.
    pub(super) values: Measured,
    pub(super) invalid: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) search: Vec<SearchPoint>,
    /// Folders of the loads' reports.
    pub(super) loads: Vec<String>,
    pub(super) server: Option<(String, String)>,
    /// Settings with which the servers were last started.
    pub(super) settings: BTreeMap<String, String>,
}

/// A cell under way.
pub(super) struct Stage<'a> {
    cell: &'a Cell,
    values: Values,
    command: &'a ServerCommand,
    /// Reports of loads, which stay.
    reports: PathBuf,
    /// Data, which goes.
    data: PathBuf,
    ram: PathBuf,
    servers: Vec<Server>,
    /// Ports for mail of each server, which it has again when it is started again.
    ports: Vec<MailPorts>,
    peer: Option<Peer>,
    sink: Option<Sink>,
    /// Messages that wait for the sink.
    waiting: Option<Waiting>,
    /// The product is not installed here: no step does anything.
    is_absent: bool,
    ground: Option<ServerLimits>,
    cpus: usize,
    name: String,
    pub(super) gathered: Gathered,
}

fn make_folder(folder: &Path) -> Result<(), ExperimentError> {
    std::fs::create_dir_all(folder).map_err(|source| ExperimentError::File {
        what: "make the folder",
        path: folder.display().to_string(),
        source,
    })
}

impl<'a> Stage<'a> {
    /// A cell with a fresh folder. `name` is one that no other cell of this machine has at this moment.
    pub(super) fn new(
        cell: &'a Cell,
        command: &'a ServerCommand,
        data: &Path,
        reports: &Path,
        name: &str,
    ) -> Result<Self, ExperimentError> {
        let ram = Path::new("/dev/shm").join(name);
        let mut values = cell.values.clone();
        values.insert("data".to_owned(), data.join("server-1").display().to_string());
        values.insert("ram".to_owned(), ram.display().to_string());
        let stage = Self {
            cell,
            values,
            command,
            reports: reports.to_owned(),
            data: data.to_owned(),
            ram,
            servers: Vec::new(),
            ports: Vec::new(),
            peer: None,
            sink: None,
            waiting: None,
            is_absent: false,
            ground: None,
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            name: name.to_owned(),
            gathered: Gathered::default(),
        };
        make_folder(&stage.data)?;
        make_folder(&stage.reports)?;
        Ok(stage)
    }

    /// Goes on with another cell on the same servers. What the steps in common gave, `before`, is part of it.
    pub(super) fn turn_to(
        &mut self,
        cell: &'a Cell,
        reports: &Path,
        before: Gathered,
    ) -> Result<(), ExperimentError> {
        self.cell = cell;
        self.values.extend(cell.values.clone());
        reports.clone_into(&mut self.reports);
        self.gathered = before;
        make_folder(&self.reports)
    }

    /// Carries out a step. `tell` hears what is being done.
    pub(super) async fn run(
        &mut self,
        step: &CellStep,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<(), ExperimentError> {
        let name = step.name().to_owned();
        if self.is_absent {
            return Ok(());
        }
        tell(&name);
        let usage = StepUsage::begin(&self.pids());
        let own = self.carry_out(&step.action, &name, tell).await?;
        let mut measured = usage.end(self.cpus);
        measured.extend(own);
        for server in &mut self.servers {
            if server.has_ended() {
                return Err(ExperimentError::ServerGone {
                    step: name,
                    log: server.log.display().to_string(),
                });
            }
        }
        if let Some(log) = self.peer.as_mut().and_then(Peer::ended) {
            return Err(ExperimentError::ServerGone { step: name, log: log.display().to_string() });
        }
        let log: u64 = self.folders().map(|folder| disk_bytes(&folder.join("data/log"), None)).sum();
        let data: u64 = self
            .folders()
            .map(|folder| disk_bytes(&folder.join("data"), Some(&folder.join("data/log"))))
            .sum();
        #[allow(clippy::cast_precision_loss, reason = "bytes need no more than 53 bits")]
        measured.extend([("data_bytes".to_owned(), data as f64), ("log_bytes".to_owned(), log as f64)]);
        let named = measured.into_iter().map(|(value, number)| (format!("{name}.{value}"), number));
        self.gathered.values.extend(named);
        Ok(())
    }

    /// Ends what still runs; the data goes with the stage.
    pub(super) async fn end(mut self) {
        for server in self.servers.drain(..) {
            server.end(Signal::KILL).await;
        }
    }

    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        (1..=self.servers.len().max(1)).map(|number| self.data.join(format!("server-{number}")))
    }

    async fn carry_out(
        &mut self,
        action: &StepAction,
        name: &str,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<Measured, ExperimentError> {
        let wrong = |why: String| ExperimentError::Step { step: name.to_owned(), why };
        match action {
            StepAction::Start(start) => self.start(start, name).await,
            StepAction::Fill(filling) => self.fill(filling, name, tell).await,
            StepAction::Load(load) => {
                let urls = self.urls();
                let loaded = self.place(name, &urls).load(load).await?;
                Ok(self.take(loaded))
            }
            StepAction::Probe(probe) => {
                let urls = self.urls();
                let loaded = self.place(name, &urls).probe(probe).await?;
                Ok(self.take(loaded))
            }
            StepAction::Console(command) => {
                let command = substitute(command, &self.values).map_err(wrong)?;
                self.console(&command, name).await
            }
            StepAction::Request(request) => self.request(request, name).await,
            StepAction::Mail(mail) => self.mail(mail, name, tell).await,
            StepAction::Drain(drain) => self.drain(drain, name, tell).await,
            StepAction::Rest(most) => {
                let looked = |quiet| tell(&format!("{name}: quiet {quiet} of {QUIET_LOOKS} times"));
                rest(&self.pids(), self.seconds(most, name)?, looked).await;
                Ok(Measured::new())
            }
            StepAction::Pause(seconds) => {
                tokio::time::sleep(self.seconds(seconds, name)?).await;
                Ok(Measured::new())
            }
            StepAction::Kill => self.end_servers(Signal::KILL, name).await,
            StepAction::Stop => self.end_servers(Signal::TERM, name).await,
        }
    }

    async fn end_servers(&mut self, signal: Signal, name: &str) -> Result<Measured, ExperimentError> {
        self.peer = None;
        for server in self.servers.drain(..) {
            server.end(signal).await.ok_or_else(|| ExperimentError::Step {
                step: name.to_owned(),
                why: "a server did not end".to_owned(),
            })?;
        }
        Ok(Measured::new())
    }

    fn take(&mut self, loaded: Loaded) -> Measured {
        self.gathered.invalid.extend(loaded.invalid);
        self.gathered.notes.extend(loaded.warnings);
        self.gathered.search.extend(loaded.search);
        self.gathered.loads.extend(loaded.reports);
        loaded.measured
    }

    fn pids(&self) -> Vec<u32> {
        let peers = self.peer.iter().flat_map(Peer::pids);
        self.servers.iter().map(Server::pid).chain(peers).collect()
    }

    fn urls(&self) -> Vec<Address> {
        let address = |(server, ports): (&Server, &MailPorts)| Address {
            plain: server.url.clone(),
            encrypted: server.tls_url.clone(),
            imap: ports.imap_urls(),
            smtp: ports.smtp_url(),
            certificate: server.certificate.clone(),
        };
        self.servers.iter().zip(&self.ports).map(address).collect()
    }

    fn place<'p>(&'p self, step: &'p str, urls: &'p [Address]) -> LoadCell<'p> {
        LoadCell { step, values: &self.values, urls, command: self.command, folder: &self.reports }
    }

    fn number<T: std::str::FromStr>(&self, scalar: &Scalar, step: &str) -> Result<T, ExperimentError> {
        let wrong = |why: String| ExperimentError::Step { step: step.to_owned(), why };
        let text = substitute(&scalar.0, &self.values).map_err(wrong)?;
        text.parse().map_err(|_| wrong(format!("{text} is no number that can be used here")))
    }

    fn seconds(&self, scalar: &Scalar, step: &str) -> Result<Duration, ExperimentError> {
        let wrong = |why: String| ExperimentError::Step { step: step.to_owned(), why };
        Duration::try_from_secs_f64(self.number(scalar, step)?).map_err(|error| wrong(error.to_string()))
    }

    fn number_or<T: std::str::FromStr>(
        &self,
        scalar: Option<&Scalar>,
        otherwise: T,
        step: &str,
    ) -> Result<T, ExperimentError> {
        scalar.map_or(Ok(otherwise), |scalar| self.number(scalar, step))
    }

    async fn start(&mut self, start: &Start, name: &str) -> Result<Measured, ExperimentError> {
        let wrong = |why: String| ExperimentError::Step { step: name.to_owned(), why };
        // Those of an earlier start hold on.
        let before = &self.gathered.settings;
        let mut settings = if before.is_empty() { self.cell.settings.clone() } else { before.clone() };
        settings.extend(start.settings.iter().map(|(key, value)| (key.clone(), value.0.clone())));
        for value in settings.values_mut() {
            *value = substitute(value, &self.values).map_err(wrong)?;
        }
        let servers = self.number_or(start.servers.as_ref(), 1_usize, name)?;
        if let Some(kind) = self.peer_kind(start, name)? {
            return self.start_peer(kind, name).await;
        }
        if !(1..=MOST_SERVERS).contains(&servers) || !self.servers.is_empty() {
            return Err(wrong(format!(
                "from 1 to {MOST_SERVERS} servers are started, where none is running"
            )));
        }
        if self.ground.is_none() {
            let ground = ServerLimits::new(self.limits(start, name)?, &self.name);
            self.gathered.notes.extend(ground.notes.iter().cloned());
            self.cpus = ground.cpus().unwrap_or(self.cpus);
            self.ground = Some(ground);
        }
        if settings.values().any(|value| value.contains(&*self.ram.to_string_lossy())) {
            std::fs::create_dir_all(&self.ram)
                .map_err(|error| wrong(format!("{}: {error}", self.ram.display())))?;
        }
        if settings.values().any(|value| value.contains("{sink_port}")) {
            self.start_sink(name).await?;
        }
        self.take_ports(servers, name)?;
        self.gathered.settings = settings;
        let mut slowest = Duration::ZERO;
        for number in 1..=servers {
            let server = self.start_one(number).await?;
            slowest = slowest.max(server.started_in);
            self.servers.push(server);
        }
        self.gathered.server = self.describe().await;
        Ok(Measured::from([("seconds".to_owned(), slowest.as_secs_f64())]))
    }

    /// Starts server `number` with the settings of the cell.
    async fn start_one(&self, number: usize) -> Result<Server, ExperimentError> {
        let Some(ground) = &self.ground else {
            return Err(ExperimentError::Usage("no server was started before".to_owned()));
        };
        let (folder, names) = (self.data.join(format!("server-{number}")), self.mail_names(number));
        let settings = &self.gathered.settings;
        let begun = server::Start { command: self.command, settings, ground, names: &names, folder: &folder };
        Server::start(begun).await
    }

    fn limits(&self, start: &Start, name: &str) -> Result<Limits, ExperimentError> {
        let text = |scalar: &Scalar| {
            substitute(&scalar.0, &self.values)
                .map_err(|why| ExperimentError::Step { step: name.to_owned(), why })
        };
        let memory = start.memory.as_ref().map(text).transpose()?.filter(|memory| !memory.is_empty());
        let memory_bytes = memory
            .map(|memory| {
                size(&memory).ok_or_else(|| ExperimentError::Step {
                    step: name.to_owned(),
                    why: format!("{memory} is no size; write 128 MB"),
                })
            })
            .transpose()?;
        let cpus = self.number_or(start.cpus.as_ref(), 0_usize, name)?;
        Ok(Limits { memory_bytes, cpus: (cpus > 0).then_some(cpus) })
    }

    /// Name and version of the first server.
    async fn describe(&self) -> Option<(String, String)> {
        let welcome = self.client(0).ok()?.get("/").await.ok()?;
        let text = |pointer: &str| welcome.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        Some((text("/vendor/name")?, text("/vendor/version").or_else(|| text("/version"))?))
    }

    fn client(&self, server: usize) -> Result<Client, ExperimentError> {
        let url = self.servers.get(server).map(|server| server.url.as_str());
        let url = url.ok_or_else(|| ExperimentError::Usage("no server is running".to_owned()))?;
        let account = Some((self.command.admin.as_str(), self.command.password.as_str()));
        Client::new(url, account, REQUEST_TIME_OUT).map_err(ExperimentError::Usage)
    }

    async fn fill(
        &self,
        step: &Fill,
        name: &str,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<Measured, ExperimentError> {
        let filling = Filling {
            documents: self.number(&step.documents, name)?,
            body_bytes: self.number_or(step.body_bytes.as_ref(), 400, name)?,
            times: self.number_or(step.times.as_ref(), 1, name)?,
            views: step.views,
        };
        let databases = self.databases(&step.database, step.databases.as_ref(), name)?;
        let total = filling.documents * databases.len() as u64 * u64::from(filling.times.max(1));
        let written = std::sync::atomic::AtomicU64::new(0);
        let began = Instant::now();
        for database in &databases {
            let mut client = self.client(0)?;
            let wrote = |documents| {
                let sum = written.fetch_add(documents, std::sync::atomic::Ordering::Relaxed) + documents;
                tell(&format!("{name}: {sum} of {total} documents"));
            };
            fill(&mut client, database, filling, wrote).await.map_err(|failure| failed(name, failure))?;
        }
        let seconds = began.elapsed().as_secs_f64();
        #[allow(clippy::cast_precision_loss, reason = "documents need no more than 53 bits")]
        let documents = total as f64;
        Ok(Measured::from([
            ("seconds".to_owned(), seconds),
            ("documents".to_owned(), documents),
            ("documents_per_s".to_owned(), documents / seconds.max(0.001)),
        ]))
    }

    /// `name`, and `name` with numbers from 2 on.
    fn databases(
        &self,
        name: &str,
        count: Option<&Scalar>,
        step: &str,
    ) -> Result<Vec<String>, ExperimentError> {
        let name = substitute(name, &self.values)
            .map_err(|why| ExperimentError::Step { step: step.to_owned(), why })?;
        let count: usize = self.number_or(count, 1, step)?;
        Ok((1..=count)
            .map(|number| if number == 1 { name.clone() } else { format!("{name}{number}") })
            .collect())
    }

    async fn console(&self, command: &str, name: &str) -> Result<Measured, ExperimentError> {
        let mut client = self.client(0)?;
        let told = |failure| failed(name, failure);
        let before = last_task(&tell_console(&mut client, "show tasks").await.map_err(told)?);
        let began = Instant::now();
        tell_console(&mut client, command).await.map_err(told)?;
        let answered = began.elapsed();
        loop {
            tokio::time::sleep((began.elapsed() / 50).clamp(SHORTEST_LOOK, LONGEST_LOOK)).await;
            let tasks = tell_console(&mut client, "show tasks").await.map_err(told)?;
            let state = TaskState::of(&tasks, before);
            let seconds = match state {
                TaskState::Ended => began.elapsed(),
                TaskState::Failed(why) => {
                    return Err(ExperimentError::Step {
                        step: name.to_owned(),
                        why: format!("{command}: {why}"),
                    });
                }
                // A command without a task is done when it is answered.
                TaskState::None if began.elapsed() > TASK_SEEN_WITHIN => answered,
                TaskState::None | TaskState::Running => continue,
            };
            return Ok(Measured::from([("seconds".to_owned(), seconds.as_secs_f64())]));
        }
    }

    async fn request(&self, step: &RequestStep, name: &str) -> Result<Measured, ExperimentError> {
        let wrong = |why: String| ExperimentError::Step { step: name.to_owned(), why };
        let databases = self.databases(&step.database, step.databases.as_ref(), name)?;
        let method: Method =
            step.method.parse().map_err(|_| wrong(format!("{} is no method", step.method)))?;
        let body: Option<Value> = match &step.body {
            None => None,
            Some(text) => Some(serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?),
        };
        let began = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for database in databases {
            let mut client = self.client(0)?;
            let mut values = self.values.clone();
            values.insert("database".to_owned(), path_part(&database));
            let paths: Result<Vec<String>, String> =
                step.paths.iter().map(|path| substitute(path, &values)).collect();
            let (paths, method, body) = (paths.map_err(wrong)?, method.clone(), body.clone());
            tasks.spawn(async move {
                for path in paths {
                    client.ask(method.clone(), &path, body.as_ref(), &[200, 201, 202]).await?;
                }
                Ok::<(), Failure>(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.map_err(|error| wrong(error.to_string()))?.map_err(|failure| failed(name, failure))?;
        }
        Ok(Measured::from([("seconds".to_owned(), began.elapsed().as_secs_f64())]))
    }
}

impl Drop for Stage<'_> {
    /// Also where an experiment is broken off.
    fn drop(&mut self) {
        self.servers.clear();
        self.peer = None;
        self.ground = None;
        for folder in [&self.data, &self.ram] {
            // What cannot be removed is in nobody's way but on the disk; the next cell has another folder.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// A command of the console; gives the data of its answer.
async fn tell_console(client: &mut Client, command: &str) -> Result<Value, Failure> {
    let body = json!({"command": command});
    let mut answer = client.ask(Method::POST, "/_console", Some(&body), &[200]).await?;
    Ok(answer.get_mut("data").map(Value::take).unwrap_or_default())
}

/// The tasks that `show tasks` tells of.
fn tasks(data: &Value) -> impl Iterator<Item = (u64, &Value)> {
    let lists = ["running", "ended"].into_iter().filter_map(|list| data.get(list)?.as_array());
    lists.flatten().filter_map(|task| Some((task.get("task")?.as_u64()?, task)))
}

fn last_task(data: &Value) -> u64 {
    tasks(data).map(|(number, _)| number).max().unwrap_or(0)
}

/// What has become of the tasks after a number.
#[derive(Debug, PartialEq, Eq)]
enum TaskState {
    None,
    Running,
    Ended,
    Failed(String),
}

impl TaskState {
    fn of(data: &Value, before: u64) -> Self {
        let mut state = Self::None;
        for (_, task) in tasks(data).filter(|(number, _)| *number > before) {
            if task.get("state").and_then(Value::as_str) == Some("running") {
                return Self::Running;
            }
            state = match task.get("reason").and_then(Value::as_str) {
                Some(reason) => Self::Failed(reason.to_owned()),
                None if state == Self::None => Self::Ended,
                None => state,
            };
        }
        state
    }
}

fn failed(step: &str, failure: Failure) -> ExperimentError {
    ExperimentError::Request { step: step.to_owned(), failure }
}

/// `128 MB`, in units of 1,024.
fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let shift = match unit.trim() {
        "" | "B" => 0,
        "KB" => 10,
        "MB" => 20,
        "GB" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}
