//! etcd as a process of the test's own. `scripts/etcd` builds it, or `ETCD_BIN` names it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use scrinium_cluster::Transaction;
use scrinium_member::{EtcdAddress, EtcdEngine, EtcdFiles, EtcdOptions};
use tempfile::TempDir;

/// How long it may take until it serves, on a machine that does much else.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// One server of etcd, alone. It ends when this is dropped, or with the thread that has run it.
pub(crate) struct EtcdServer {
    program: PathBuf,
    folder: TempDir,
    client_url: String,
    peer_url: String,
    flags: Vec<String>,
    files: Option<EtcdFiles>,
    child: Option<Child>,
}

/// The program, if there is one; else the test is skipped.
fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("ETCD_BIN") {
        return Some(named.into());
    }
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = folder("SCRINIUM_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("scrinium")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/scrinium")));
    let built = cache.map(|cache| cache.join("etcd-3.7.3/etcd")).filter(|built| built.exists());
    if built.is_none() {
        scrinium_fault::skip("there is no etcd to try; scripts/etcd builds one, or ETCD_BIN names it");
    }
    built
}

/// A port that is free now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl EtcdServer {
    /// One that serves, with these flags besides; `None` if the test is skipped.
    pub(crate) fn start(flags: &[&str]) -> Option<Self> {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        Self::start_with("http", &flags, None)
    }

    /// One that takes clients with certificates alone, such as these.
    pub(crate) fn start_secure(flags: &[String], files: &EtcdFiles) -> Option<Self> {
        Self::start_with("https", flags, Some(files))
    }

    fn start_with(scheme: &str, flags: &[String], files: Option<&EtcdFiles>) -> Option<Self> {
        let program = program()?;
        // Somebody else may take a port meanwhile.
        for _ in 0..3 {
            let mut server = Self {
                program: program.clone(),
                folder: tempfile::tempdir().unwrap(),
                client_url: format!("{scheme}://127.0.0.1:{}", free_port()),
                peer_url: format!("http://127.0.0.1:{}", free_port()),
                flags: flags.to_vec(),
                files: files.cloned(),
                child: None,
            };
            if server.run() {
                return Some(server);
            }
        }
        panic!("etcd does not start");
    }

    /// Starts it, or starts it again, and waits until it serves. `false` if it has ended by itself.
    pub(crate) fn run(&mut self) -> bool {
        let (client, peer) = (&self.client_url, &self.peer_url);
        let log = self.folder.path().join("log");
        // It ends with the test, however that ends.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(&self.program)
            .args(["--name", "one", "--log-level", "warn", "--initial-cluster-state", "new"])
            .args(["--listen-client-urls", client, "--advertise-client-urls", client])
            .args(["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer])
            .args(["--initial-cluster", &format!("one={peer}"), "--snapshot-count", "500"])
            .arg("--data-dir")
            .arg(self.folder.path().join("data"))
            .args(&self.flags)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn();
        self.child = Some(child.unwrap());
        let until = Instant::now() + READY_WITHIN;
        while !self.is_ready() {
            if self.child.as_mut().unwrap().try_wait().unwrap().is_some() {
                return false;
            }
            assert!(
                Instant::now() < until,
                "etcd does not serve: {}",
                std::fs::read_to_string(&log).unwrap()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        true
    }

    fn is_ready(&self) -> bool {
        if self.files.is_some() {
            let engine = self.engine(Duration::from_secs(1));
            return block_on(engine.ask(&Transaction::default())).is_ok();
        }
        // Also within a runtime.
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(self.client_url.trim_start_matches("http://"))?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().is_ok_and(|answer| answer.contains("\"health\":\"true\""))
    }

    pub(crate) fn address(&self) -> EtcdAddress {
        self.client_url.parse().unwrap()
    }

    /// What asks it.
    pub(crate) fn engine(&self, call_within: Duration) -> EtcdEngine {
        let addresses = vec![self.address()];
        EtcdEngine::new(EtcdOptions { addresses, files: self.files.clone(), call_within }).unwrap()
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child.as_ref().unwrap()), signal).unwrap();
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs something to its end, with sockets and time.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
