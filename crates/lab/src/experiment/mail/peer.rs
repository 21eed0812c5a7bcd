//! Debian's Postfix and Dovecot beside a server of ours: in a folder of the cell, on ports of this machine, as plain processes.
//! Nothing of the machine's own settings is used but the programs.
//!
//! Whatever they acknowledge is synced, as with ours. Postfix hands mail for its people to Dovecot, which has a mailbox (mdbox) for
//! everybody, and keeps mail for the laboratory's sink until a step lets it go.

use std::fmt::Write;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::domain;
use crate::experiment::server::{end_of, parent_watch};

const MASTER: &str = "/usr/lib/postfix/sbin/master";
const DOVECOT: &str = "/usr/sbin/dovecot";
const LMTP: &str = "/usr/lib/dovecot/lmtp";
const IMAP: &str = "/usr/lib/dovecot/imap";

const LISTENS_WITHIN: Duration = Duration::from_secs(60);
const ENDS_WITHIN: Duration = Duration::from_secs(20);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// It reads its settings in this time.
const RELOADED_WITHIN: Duration = Duration::from_secs(1);

/// Keeps whatever is for the sink in the queue.
const DEFER: &str = "defer_transports = smtp";

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::experiment) enum PeerKind {
    /// Alone, for mail that goes elsewhere.
    Postfix,
    Dovecot,
    /// Postfix hands what is for its people to Dovecot.
    PostfixAndDovecot,
}

/// Running peers. They end when this is dropped.
#[derive(Debug)]
pub(in crate::experiment) struct Peer {
    kind: PeerKind,
    processes: Vec<(Child, PathBuf)>,
    folder: PathBuf,
    ports: PeerPorts,
    /// What both show as theirs.
    pub(in crate::experiment) certificate: PathBuf,
    pub(in crate::experiment) version: String,
}

/// Where they listen.
#[derive(Clone, Copy, Debug)]
pub(in crate::experiment) struct PeerPorts {
    pub(in crate::experiment) smtp: u16,
    pub(in crate::experiment) lmtp: u16,
    pub(in crate::experiment) imap: u16,
}

impl PeerKind {
    /// Of the word in an experiment's file.
    pub(in crate::experiment) fn of(word: &str) -> Option<Self> {
        match word {
            "postfix" => Some(Self::Postfix),
            "dovecot" => Some(Self::Dovecot),
            "postfix+dovecot" => Some(Self::PostfixAndDovecot),
            _ => None,
        }
    }

    /// As people write it.
    pub(in crate::experiment) fn name(self) -> &'static str {
        match self {
            Self::Postfix => "Postfix",
            Self::Dovecot => "Dovecot",
            Self::PostfixAndDovecot => "Postfix and Dovecot",
        }
    }

    fn has_postfix(self) -> bool {
        self != Self::Dovecot
    }

    fn has_dovecot(self) -> bool {
        self != Self::Postfix
    }

    /// Why it cannot be started here, if that is known beforehand.
    pub(in crate::experiment) fn missing(self, folder: &Path) -> Option<String> {
        let mut programs = Vec::new();
        if self.has_postfix() {
            programs.push(MASTER);
        }
        if self.has_dovecot() {
            programs.extend([DOVECOT, LMTP, IMAP]);
        }
        let absent: Vec<&str> = programs.into_iter().filter(|program| !Path::new(program).exists()).collect();
        if !absent.is_empty() {
            return Some(format!("{} is not installed here: there is no {}", self.name(), absent.join(", ")));
        }
        if !rustix::process::geteuid().is_root() {
            return Some(format!("{} can be started by root only", self.name()));
        }
        // Their processes are of users of their own, who must be able to come here.
        let is_closed =
            |folder: &&Path| fs::metadata(folder).is_ok_and(|found| found.permissions().mode() & 0o001 == 0);
        let closed = folder.ancestors().find(is_closed)?;
        Some(format!(
            "{} cannot work in a folder that other users cannot enter, {}; name another by --data",
            self.name(),
            closed.display()
        ))
    }
}

impl Peer {
    /// Starts them in a folder that is there, and waits until they listen. Mail for elsewhere goes to `sink`; `password` lets
    /// everybody read their mailbox.
    ///
    /// # Errors
    /// What cannot be written or started, with the end of what the program said.
    pub(in crate::experiment) async fn start(
        kind: PeerKind,
        folder: &Path,
        sink: SocketAddr,
        password: &str,
    ) -> Result<Self, String> {
        let [smtp, lmtp, imap] =
            crate::experiment::server::free_ports().map_err(|error| error.to_string())?;
        let ports = PeerPorts { smtp, lmtp, imap };
        let certificate = folder.join("certificate.pem");
        make_certificate(&certificate, &folder.join("key.pem"))?;
        let version = version(kind);
        let mut peer =
            Self { kind, processes: Vec::new(), folder: folder.to_owned(), ports, certificate, version };
        if kind.has_dovecot() {
            peer.start_dovecot(password).await?;
        }
        if kind.has_postfix() {
            peer.start_postfix(sink).await?;
        }
        Ok(peer)
    }

    pub(in crate::experiment) fn ports(&self) -> PeerPorts {
        self.ports
    }

    pub(in crate::experiment) fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Its processes; those that they start belong to them.
    pub(in crate::experiment) fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(|(child, _)| child.id()).collect()
    }

    /// The log of a process that is there no more.
    pub(in crate::experiment) fn ended(&mut self) -> Option<PathBuf> {
        let has_ended = |child: &mut Child| child.try_wait().is_ok_and(|status| status.is_some());
        self.processes.iter_mut().find_map(|(child, log)| has_ended(child).then(|| log.clone()))
    }

    /// Messages that Dovecot has stored.
    pub(in crate::experiment) fn delivered(&self) -> u64 {
        let text = fs::read(self.folder.join("dovecot.mail")).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().filter(|line| line.contains("saved mail to ")).count() as u64
    }

    /// Messages that wait in Postfix's queue.
    pub(in crate::experiment) fn deferred(&self) -> u64 {
        let parts = fs::read_dir(self.folder.join("queue/deferred")).into_iter().flatten().flatten();
        parts.map(|part| fs::read_dir(part.path()).into_iter().flatten().count() as u64).sum()
    }

    /// Has Postfix make ready to let go what it keeps; [`Self::flush`] then does it.
    ///
    /// # Errors
    /// What its program said.
    pub(in crate::experiment) async fn release(&self) -> Result<(), String> {
        self.run("postconf", &["-e", "defer_transports ="])?;
        self.run("postfix", &["reload"])?;
        // Reading its settings is no part of what is measured.
        tokio::time::sleep(RELOADED_WITHIN).await;
        Ok(())
    }

    /// Has Postfix send what it keeps.
    ///
    /// # Errors
    /// What its program said.
    pub(in crate::experiment) fn flush(&self) -> Result<(), String> {
        self.run("postqueue", &["-f"])
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
        let mut command = Command::new(Path::new("/usr/sbin").join(program));
        command.arg("-c").arg(self.folder.join("postfix")).args(arguments);
        ran(program, &mut command)
    }

    async fn start_dovecot(&mut self, password: &str) -> Result<(), String> {
        let (mail, run) = (self.folder.join("mail"), self.folder.join("run"));
        own(&mail, "mail")?;
        make_folder(&run)?;
        let path = self.folder.join("dovecot.conf");
        write(&path, &dovecot_settings(&self.folder, self.ports, password))?;
        let mut dovecot = watched(DOVECOT);
        dovecot.arg("-F").arg("-c").arg(&path);
        self.spawn(&mut dovecot, "dovecot.log", self.ports.lmtp).await
    }

    async fn start_postfix(&mut self, sink: SocketAddr) -> Result<(), String> {
        let etc = self.folder.join("postfix");
        make_folder(&etc)?;
        make_folder(&self.folder.join("queue"))?;
        own(&self.folder.join("postfix-data"), "postfix")?;
        write(&etc.join("main.cf"), &postfix_settings(self.kind, &self.folder, self.ports, sink))?;
        write(&etc.join("master.cf"), &postfix_services(self.ports.smtp))?;
        // Makes what the queue needs; the daemon itself is started so that it ends with the laboratory.
        self.run("postfix", &["check"])?;
        let mut master = watched(MASTER);
        master.arg("-d").arg("-c").arg(&etc).env("MAIL_CONFIG", &etc);
        self.spawn(&mut master, "postfix.log", self.ports.smtp).await
    }

    /// Starts a process and waits until it listens.
    async fn spawn(&mut self, command: &mut Command, log: &str, port: u16) -> Result<(), String> {
        let log = self.folder.join(log);
        let said = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let also = said.try_clone().map_err(|error| error.to_string())?;
        let child = command.stdin(Stdio::null()).stdout(said).stderr(also).spawn();
        self.processes.push((child.map_err(|error| error.to_string())?, log.clone()));
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if began.elapsed() > LISTENS_WITHIN || self.ended().is_some() {
                return Err(format!("{} does not listen: {}", self.kind.name(), end_of(&log)));
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        for (child, _) in &mut self.processes {
            // Asked, it ends its own processes; one that has ended already needs no signal.
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
            let asked = Instant::now();
            while asked.elapsed() < ENDS_WITHIN && child.try_wait().is_ok_and(|status| status.is_none()) {
                std::thread::sleep(BETWEEN_LOOKS);
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn dovecot_settings(folder: &Path, ports: PeerPorts, password: &str) -> String {
    let (mail, run) = (folder.join("mail"), folder.join("run"));
    let (folder, mail, run) = (folder.display(), mail.display(), run.display());
    let PeerPorts { lmtp, imap, .. } = ports;
    // `mail_fsync` syncs each message before it is acknowledged.
    format!(
        "base_dir = {run}\nlog_path = {folder}/dovecot.mail\nprotocols = imap lmtp\nlisten = 127.0.0.1\nssl = no\n\
         disable_plaintext_auth = no\nmail_location = mdbox:{mail}/%n\nfirst_valid_uid = 1\n\
         default_process_limit = 200\nmail_max_userip_connections = 1000\nmail_fsync = optimized\n\
         passdb {{\n  driver = static\n  args = password={password}\n}}\n\
         userdb {{\n  driver = static\n  args = uid=mail gid=mail home={mail}/%n allow_all_users=yes\n}}\n\
         service imap-login {{\n  inet_listener imap {{\n    address = 127.0.0.1\n    port = {imap}\n  }}\n}}\n\
         service lmtp {{\n  process_min_avail = 8\n  inet_listener lmtp {{\n    address = 127.0.0.1\n    \
         port = {lmtp}\n  }}\n}}\n"
    )
}

fn postfix_settings(kind: PeerKind, folder: &Path, ports: PeerPorts, sink: SocketAddr) -> String {
    let (people, host, lmtp) = (domain(1), sink.ip(), ports.lmtp);
    let to_people = match kind {
        PeerKind::PostfixAndDovecot => format!(
            "virtual_mailbox_domains = {people}\nvirtual_mailbox_maps = static:all\n\
             virtual_transport = lmtp:inet:127.0.0.1:{lmtp}\nlmtp_destination_concurrency_limit = 32\n"
        ),
        PeerKind::Postfix | PeerKind::Dovecot => String::new(),
    };
    let (folder, sink) = (folder.display(), sink.port());
    format!(
        "compatibility_level = 3.6\nqueue_directory = {folder}/queue\ndata_directory = {folder}/postfix-data\n\
         command_directory = /usr/sbin\ndaemon_directory = /usr/lib/postfix/sbin\nmail_owner = postfix\n\
         setgid_group = postdrop\ninet_interfaces = 127.0.0.1\ninet_protocols = ipv4\nmyhostname = {people}\n\
         mydestination =\nalias_maps =\nalias_database =\nmynetworks = 127.0.0.0/8\nin_flow_delay = 0\n\
         smtpd_client_connection_count_limit = 0\nmessage_size_limit = 52428800\n\
         maillog_file = {folder}/postfix.mail\nmaillog_file_prefixes = {folder}\n\
         smtpd_tls_security_level = may\nsmtpd_tls_cert_file = {folder}/certificate.pem\n\
         smtpd_tls_key_file = {folder}/key.pem\n\
         relayhost = [{host}]:{sink}\nsmtp_host_lookup = native\n{DEFER}\n{to_people}"
    )
}

fn postfix_services(smtp: u16) -> String {
    let mut services = format!("127.0.0.1:{smtp} inet n - n - - smtpd\n");
    let others = [
        ("pickup", "unix", "pickup"),
        ("cleanup", "unix", "cleanup"),
        ("qmgr", "unix", "qmgr"),
        ("tlsmgr", "unix", "tlsmgr"),
        ("rewrite", "unix", "trivial-rewrite"),
        ("bounce", "unix", "bounce"),
        ("defer", "unix", "bounce"),
        ("trace", "unix", "bounce"),
        ("proxymap", "unix", "proxymap"),
        ("error", "unix", "error"),
        ("retry", "unix", "error"),
        ("lmtp", "unix", "lmtp"),
        ("smtp", "unix", "smtp"),
        ("anvil", "unix", "anvil"),
        ("scache", "unix", "scache"),
        ("postlog", "unix-dgram", "postlogd"),
    ];
    for (name, kind, program) in others {
        // Those that may run once only, or as often as may be, and those that others than Postfix may speak to.
        let most = match name {
            "pickup" | "qmgr" | "tlsmgr" | "anvil" | "scache" | "postlog" => "1",
            "cleanup" | "bounce" | "defer" | "trace" => "0",
            _ => "-",
        };
        let private = if matches!(name, "pickup" | "cleanup" | "qmgr" | "postlog") { "n" } else { "-" };
        // A text takes every line.
        let _ = writeln!(services, "{name} {kind} {private} - n - {most} {program}");
    }
    services
}

/// A command that ends when the laboratory does.
fn watched(program: &str) -> Command {
    let mut words = parent_watch();
    words.push(program.to_owned());
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

fn version(kind: PeerKind) -> String {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_whitespace().next().map(str::to_owned)
    };
    let postfix = kind.has_postfix().then(|| said("/usr/sbin/postconf", &["-d", "-h", "mail_version"]));
    let dovecot = kind.has_dovecot().then(|| said(DOVECOT, &["--version"]));
    let versions: Vec<String> = [postfix, dovecot].into_iter().flatten().flatten().collect();
    versions.join(", ")
}

fn make_certificate(certificate: &Path, key: &Path) -> Result<(), String> {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]);
    let made = made.map_err(|error| error.to_string())?;
    write(certificate, &made.cert.pem())?;
    write(key, &made.signing_key.serialize_pem())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn make_folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Makes a folder that belongs to a user.
fn own(path: &Path, user: &str) -> Result<(), String> {
    make_folder(path)?;
    ran("chown", Command::new("chown").arg(user).arg(path))
}

fn ran(program: &str, command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
