//! The servers of a cell: black boxes that a command line starts, each with data and ports of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use http::Method;
use rustix::process::{Pid, Signal, kill_process};

use super::error::ExperimentError;
use super::ground::ServerLimits;
use crate::driver::Client;

/// A server may have a gigabyte of log to do again before it answers.
const ANSWERS_WITHIN: Duration = Duration::from_secs(600);
const ENDS_WITHIN: Duration = Duration::from_secs(60);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// One request while the server starts.
const LOOK_TIME_OUT: Duration = Duration::from_secs(30);

/// So much of what a server said is shown when it could not start.
const SHOWN_BYTES: usize = 2000;

/// How servers are started, and who administers them.
#[derive(Clone, Debug)]
pub(super) struct ServerCommand {
    /// Words, with `{data}`, `{port}`, `{tls_port}` in them.
    pub(super) words: Vec<String>,
    pub(super) admin: String,
    pub(super) password: String,
}

/// A running server.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    pub(super) url: String,
    /// The encrypted port, if the settings open it.
    pub(super) tls_url: String,
    /// The certificate that the server makes for itself.
    pub(super) certificate: PathBuf,
    pub(super) log: PathBuf,
    pub(super) started_in: Duration,
}

/// What a start needs to know.
pub(super) struct Start<'a> {
    pub(super) command: &'a ServerCommand,
    pub(super) settings: &'a BTreeMap<String, String>,
    pub(super) ground: &'a ServerLimits,
    /// What stands for `{name}` in its settings, besides `{tls_port}`.
    pub(super) names: &'a BTreeMap<String, String>,
    /// The server's own folder; its data is in `data`, what it says in `server.log`.
    pub(super) folder: &'a Path,
}

impl Server {
    /// Starts a server and waits until it answers.
    pub(super) async fn start(start: Start<'_>) -> Result<Self, ExperimentError> {
        let data = start.folder.join("data");
        let failed = |what, path: &Path| {
            let path = path.display().to_string();
            move |source| ExperimentError::File { what, path, source }
        };
        std::fs::create_dir_all(&data).map_err(failed("make the folder", &data))?;
        let log = start.folder.join("server.log");
        let said = File::options().create(true).append(true).open(&log).map_err(failed("write", &log))?;
        let [port, tls_port] = free_ports().map_err(failed("find a free port for", start.folder))?;
        let mut command = prepare(&start, &data, port, tls_port);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let shown = start.command.words.join(" ");
        let began = Instant::now();
        let child = start
            .ground
            .spawn(&mut command)
            .map_err(|error| ExperimentError::NotStarted { command: shown, cause: error.to_string() })?;
        let url = format!("http://127.0.0.1:{port}");
        let tls_url = format!("https://127.0.0.1:{tls_port}");
        let certificate = data.join("tls/certificate.pem");
        let mut server = Self { child, url, tls_url, certificate, log, started_in: Duration::ZERO };
        server.wait_until_it_answers(start.command, began).await?;
        Ok(server)
    }

    async fn wait_until_it_answers(
        &mut self,
        command: &ServerCommand,
        began: Instant,
    ) -> Result<(), ExperimentError> {
        let account = Some((command.admin.as_str(), command.password.as_str()));
        while began.elapsed() < ANSWERS_WITHIN {
            if let Ok(Some(status)) = self.child.try_wait() {
                let said = end_of(&self.log);
                return Err(ExperimentError::EndedAtOnce { status: status.to_string(), said });
            }
            let mut client =
                Client::new(&self.url, account, LOOK_TIME_OUT).map_err(ExperimentError::Usage)?;
            if client.ask(Method::GET, "/", None, &[200]).await.is_ok() {
                self.started_in = began.elapsed();
                return Ok(());
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        Err(ExperimentError::Silent {
            seconds: ANSWERS_WITHIN.as_secs(),
            log: self.log.display().to_string(),
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether its process is there no more.
    pub(super) fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Sends a signal and waits for the end.
    pub(super) async fn end(mut self, signal: Signal) -> Option<ExitStatus> {
        // A process that has ended already needs no signal.
        let _ = kill_process(Pid::from_child(&self.child), signal);
        let asked = Instant::now();
        while asked.elapsed() < ENDS_WITHIN {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        // Dropping it kills it.
        None
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The command, with its data, its ports and its settings in the environment.
fn prepare(start: &Start<'_>, data: &Path, port: u16, tls_port: u16) -> Command {
    let mut words = parent_watch();
    words.extend(start.ground.words_before());
    words.extend(start.command.words.iter().map(|word| {
        word.replace("{data}", &data.display().to_string())
            .replace("{port}", &port.to_string())
            .replace("{tls_port}", &tls_port.to_string())
    }));
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    // What this process was told in its environment is no setting of the experiment.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SCRINIUM_") {
            command.env_remove(name);
        }
    }
    command
        .env("SCRINIUM_HTTP__LISTEN", format!("127.0.0.1:{port}"))
        .env("SCRINIUM_ADMIN_PASSWORD", &start.command.password)
        .env("SCRINIUM_TRACING__LEVEL", "warn");
    for (name, value) in start.settings {
        let value = value.replace("{tls_port}", &tls_port.to_string());
        let value = start
            .names
            .iter()
            .fold(value, |value, (name, meant)| value.replace(&format!("{{{name}}}"), meant));
        command.env(variable(name), value);
    }
    command
}

/// `log.style` is `SCRINIUM_LOG__STYLE`.
fn variable(setting: &str) -> String {
    format!("SCRINIUM_{}", setting.to_ascii_uppercase().replace('.', "__"))
}

/// Words that have a command killed when the laboratory ends, whatever ends it; none where util-linux is missing.
pub(super) fn parent_watch() -> Vec<String> {
    let there = Path::new("/usr/bin/setpriv").exists();
    if there { ["setpriv", "--pdeathsig", "KILL"].map(str::to_owned).to_vec() } else { Vec::new() }
}

/// Ports that nobody listens on. All are held until all are known.
pub(super) fn free_ports<const COUNT: usize>() -> std::io::Result<[u16; COUNT]> {
    let mut held = Vec::with_capacity(COUNT);
    let mut ports = [0; COUNT];
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// The last lines of a file.
pub(super) fn end_of(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    let from = bytes.len().saturating_sub(SHOWN_BYTES);
    String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).trim().to_owned()
}
