//! The binary as a process of its own, and a client that speaks plain HTTP/1.1 to it.

pub mod control_group;
pub mod name_server;

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
pub use scrinium_fault::noise;
use serde_json::{Value, json};

pub const PASSWORD: &str = "a password for tests";

/// Long, because tests run side by side on small machines.
const START_WITHIN: Duration = Duration::from_secs(60);

/// No answer takes longer, however loaded the machine is.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// A small store, so that checkpoints, flushes and changes of the log's file happen within seconds.
pub const SMALL: [(&str, &str); 4] = [
    ("SCRINIUM_MEMORY__BUDGET", "64 MB"),
    ("SCRINIUM_LOG__EXTENT_BYTES", "1 MB"),
    ("SCRINIUM_CHECKPOINT__LOG_BYTES", "1 MB"),
    ("SCRINIUM_DISK__RESERVE_BYTES", "8 MB"),
];

/// A server on a free port of this machine. It is killed when dropped.
pub struct Server {
    child: Child,
    messages: PathBuf,
    address: Option<SocketAddr>,
    cookie: String,
}

impl Server {
    /// Starts the process and does not wait for it.
    pub fn spawn(folder: &Path, settings: &[(&str, &str)]) -> Self {
        let mut serve = command(folder);
        serve.envs(settings.iter().copied());
        Self::spawn_by(folder, &mut serve)
    }

    /// As [`Server::spawn`], by a command of one's own.
    pub fn spawn_by(folder: &Path, serve: &mut Command) -> Self {
        let messages = folder.join("messages");
        let file = std::fs::File::create(&messages).unwrap();
        let child = serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).spawn().unwrap();
        Self { child, messages, address: None, cookie: String::new() }
    }

    /// As [`Server::start`], a process that may have this many files open.
    pub fn start_limited(folder: &Path, settings: &[(&str, &str)], files: u32) -> Self {
        let messages = folder.join("messages");
        let file = std::fs::File::create(&messages).unwrap();
        let usual = command(folder);
        let mut limited = Command::new("sh");
        limited.args(["-c", &format!("ulimit -n {files}; exec \"$0\" \"$@\"")]);
        limited.arg(usual.get_program()).args(usual.get_args());
        limited.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
        limited.envs(settings.iter().copied());
        let child = limited.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).spawn().unwrap();
        let mut server = Self { child, messages, address: None, cookie: String::new() };
        server.wait_until_up();
        server
    }

    /// Starts the process and waits until it answers.
    pub fn start(folder: &Path, settings: &[(&str, &str)]) -> Self {
        let mut server = Self::spawn(folder, settings);
        server.wait_until_up();
        server
    }

    /// Waits for the port, then logs in: all clients share the session.
    pub fn wait_until_up(&mut self) {
        let began = Instant::now();
        while self.address.is_none() {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the server ended with {status}:\n{}", self.messages());
            }
            assert!(began.elapsed() < START_WITHIN, "the server does not start:\n{}", self.messages());
            self.address = self
                .messages()
                .lines()
                .filter_map(|line| line.split_once("listening url=http://"))
                .find_map(|(_, address)| address.trim().parse().ok());
            std::thread::sleep(Duration::from_millis(5));
        }
        self.log_in();
    }

    /// Begins a session for the clients to come.
    pub fn log_in(&mut self) {
        let login = json!({"name": "admin", "password": PASSWORD});
        let answer = self.client().json("POST", "/_session", &login).unwrap().expect(200);
        let cookie = answer.header("set-cookie").unwrap();
        cookie.split(';').next().unwrap().clone_into(&mut self.cookie);
    }

    /// The process, for calls of the system.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap()
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn address(&self) -> SocketAddr {
        self.address.unwrap()
    }

    /// The session of all clients.
    pub fn cookie(&self) -> &str {
        &self.cookie
    }

    pub fn client(&self) -> Client {
        Client { address: self.address(), cookie: self.cookie.clone(), connection: None }
    }

    /// A client with a session of its own.
    pub fn client_with(&self, cookie: &str) -> Client {
        Client { address: self.address(), cookie: cookie.to_owned(), connection: None }
    }

    /// What the server has told so far.
    pub fn messages(&self) -> String {
        std::fs::read_to_string(&self.messages).unwrap_or_default()
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM; waits for the end.
    pub fn terminate(&mut self, within: Duration) -> ExitStatus {
        let pid = self.pid();
        kill_process(pid, Signal::TERM).unwrap();
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < within, "SIGTERM does not end the server:\n{}", self.messages());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Memory that the process has in use (proc(5), `VmRSS`).
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            println!("--- messages of the server ---\n{}---", self.messages());
        }
    }
}

/// `scrinium serve` on the data in `folder`, on whatever port is free.
pub fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium"));
    command
        .arg("serve")
        .arg("--data-dir")
        .arg(folder.join("data"))
        .env("SCRINIUM_HTTP__LISTEN", "127.0.0.1:0")
        .env("SCRINIUM_ADMIN_PASSWORD", PASSWORD);
    command
}

/// Settings of servers and of what is run alongside them, as in the environment.
pub type Settings = Vec<(&'static str, String)>;

/// A small store, and what else is set.
pub fn small_with(more: impl IntoIterator<Item = (&'static str, String)>) -> Settings {
    SMALL.into_iter().map(|(name, value)| (name, value.to_owned())).chain(more).collect()
}

/// Starts a server and waits until it answers.
pub fn start_with(folder: &Path, settings: &Settings) -> Server {
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Server::start(folder, &settings)
}

/// A command line alongside the server of `folder`, which listens at `listen` if it runs.
pub fn beside(
    folder: &Path,
    settings: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    listen: &str,
    arguments: &[&str],
) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium"));
    command.arg("--data-dir").arg(folder.join("data")).args(arguments).envs(settings);
    command.env("SCRINIUM_HTTP__LISTEN", listen).env("SCRINIUM_ADMIN_PASSWORD", PASSWORD);
    command.stdin(Stdio::null());
    command
}

/// What a command that went well has answered in JSON.
pub fn answer(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// One connection, which is opened again after it broke. A request is sent once.
pub struct Client {
    address: SocketAddr,
    cookie: String,
    connection: Option<BufReader<TcpStream>>,
}

/// What the server answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Client {
    /// Sends a JSON value.
    pub fn json(&mut self, method: &str, path: &str, body: &Value) -> io::Result<Answer> {
        self.ask(method, path, "application/json", body.to_string().as_bytes())
    }

    /// Asks without a body.
    pub fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.ask("GET", path, "application/json", &[])
    }

    /// Sends `body`, of type `content_type`.
    pub fn ask(&mut self, method: &str, path: &str, content_type: &str, body: &[u8]) -> io::Result<Answer> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\nContent-Type: {content_type}\r\n\
             Content-Length: {}\r\n\r\n",
            self.address,
            self.cookie,
            body.len()
        );
        connection.get_mut().write_all(&[head.as_bytes(), body].concat())?;
        let answer = read_answer(&mut connection)?;
        if answer.header("connection") != Some("close") {
            self.connection = Some(connection);
        }
        Ok(answer)
    }

    fn connect(&self) -> io::Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.set_write_timeout(Some(ANSWER_WITHIN))?;
        stream.set_nodelay(true)?;
        Ok(BufReader::new(stream))
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.0 == name).map(|header| header.1.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// A refusal in CouchDB's form: this status and short name, with some reason.
    #[track_caller]
    pub fn expect_error(&self, status: u16, error: &str) {
        assert_eq!(self.status, status, "{}", self.text());
        let body = self.value();
        assert_eq!(body["error"], error, "{body}");
        assert!(body["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{body}");
    }
}

/// One answer of HTTP/1.1, with a length, in chunks or up to the end of the connection.
pub fn read_answer(connection: &mut impl BufRead) -> io::Result<Answer> {
    let line = read_line(connection)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("no status line: {line}")))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(connection)?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut answer = Answer { status, headers, body: Vec::new() };
    if answer.header("transfer-encoding") == Some("chunked") {
        loop {
            let size = read_line(connection)?;
            let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
            let mut chunk = vec![0; size + 2];
            connection.read_exact(&mut chunk)?;
            chunk.truncate(size);
            if chunk.is_empty() {
                return Ok(answer);
            }
            answer.body.append(&mut chunk);
        }
    }
    match answer.header("content-length").map(str::parse) {
        Some(Ok(length)) => {
            answer.body = vec![0; length];
            connection.read_exact(&mut answer.body)?;
        }
        _ => drop(connection.read_to_end(&mut answer.body)?),
    }
    Ok(answer)
}

fn read_line(connection: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    connection.read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(line) => Ok(line.to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
