//! Debian's Postfix, which hands what it gets to Dovecot, and Dovecot, which has a mailbox (mdbox) for everybody: in a fresh
//! folder, on ports of this machine that the system chooses, as plain processes.

use std::fmt::Write;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use scrinium_bench::process::{Process, command, used_ticks};
use tempfile::TempDir;

use super::{DOMAIN, free_port};

const POSTFIX: &str = "/usr/lib/postfix/sbin/master";
const DOVECOT: &str = "/usr/sbin/dovecot";
const PROGRAMS: [&str; 3] = [POSTFIX, "/usr/lib/dovecot/lmtp", DOVECOT];

/// Keeps whatever is for other hosts in the queue.
const DEFER: &str = "defer_transports = smtp";

/// Both.
pub struct Peers {
    pub smtp: SocketAddr,
    pub lmtp: SocketAddr,
    /// What Dovecot says of each message.
    log: PathBuf,
    dovecot: Process,
    _postfix: Process,
    _folder: TempDir,
}

impl Peers {
    /// `None`, with a word on why, where they cannot be started.
    pub fn start() -> Option<Self> {
        let folder = folder_for(&PROGRAMS)?;
        let [smtp, lmtp] = [free_port(), free_port()];
        let dovecot = dovecot(folder.path(), lmtp, None);
        wait(lmtp, &folder.path().join("dovecot.log"));
        let more = format!(
            "virtual_mailbox_domains = {DOMAIN}\nvirtual_mailbox_maps = static:all\n\
             virtual_transport = lmtp:inet:127.0.0.1:{lmtp}\nlmtp_destination_concurrency_limit = 32\n"
        );
        let postfix = postfix(folder.path(), smtp, &more);
        wait(smtp, &folder.path().join("postfix.log"));
        let [smtp, lmtp] = [smtp, lmtp].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let log = folder.path().join("dovecot.mail");
        Some(Self { smtp, lmtp, log, dovecot, _postfix: postfix, _folder: folder })
    }

    /// Messages that Dovecot has stored since the start.
    pub fn delivered(&self) -> u64 {
        let text = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().filter(|line| line.contains("saved mail to ")).count() as u64
    }

    /// Processor time of Dovecot's processes so far, in hundredths of a second; those that have ended count with their parent.
    pub fn dovecot_ticks(&self) -> u64 {
        let mut all = vec![self.dovecot.id()];
        let mut at = 0;
        while let Some(parent) = all.get(at) {
            all.extend(children(*parent));
            at += 1;
        }
        all.iter().filter(|id| Path::new(&format!("/proc/{id}")).exists()).map(|id| used_ticks(*id)).sum()
    }
}

/// Dovecot alone, to which messages come by LMTP, and which people read by IMAP.
pub struct Dovecot {
    pub lmtp: SocketAddr,
    pub imap: SocketAddr,
    _process: Process,
    _folder: TempDir,
}

impl Dovecot {
    /// `None`, with a word on why, where it cannot be started.
    pub fn start() -> Option<Self> {
        let folder = folder_for(&["/usr/lib/dovecot/lmtp", "/usr/lib/dovecot/imap", DOVECOT])?;
        let [lmtp, imap] = [free_port(), free_port()];
        let process = dovecot(folder.path(), lmtp, Some(imap));
        for port in [lmtp, imap] {
            wait(port, &folder.path().join("dovecot.log"));
        }
        let [lmtp, imap] = [lmtp, imap].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        Some(Self { lmtp, imap, _process: process, _folder: folder })
    }
}

/// A folder for these; `None`, with a word on why, where they cannot be started.
fn folder_for(programs: &[&str]) -> Option<TempDir> {
    if !rustix::process::geteuid().is_root() || !programs.iter().all(|program| Path::new(program).exists()) {
        eprintln!("Postfix and Dovecot are not there, or this is not root; scripts/peers installs them");
        return None;
    }
    let folder = scrinium_bench::folder();
    // They run as users of their own, who must be able to come here.
    for parent in folder.path().ancestors().take(2) {
        fs::set_permissions(parent, fs::Permissions::from_mode(0o755)).unwrap();
    }
    Some(folder)
}

/// Postfix with a queue whose mail all goes to one host.
pub struct PostfixQueue {
    smtp: SocketAddr,
    _postfix: Process,
    folder: TempDir,
}

impl PostfixQueue {
    /// `None`, with a word on why, where it cannot be started. Nothing is sent before [`Self::send_all`].
    pub fn start(relay: SocketAddr) -> Option<Self> {
        let folder = folder_for(&[POSTFIX])?;
        let smtp = free_port();
        let more =
            format!("relayhost = [{}]:{}\nsmtp_host_lookup = native\n{DEFER}\n", relay.ip(), relay.port());
        let postfix = postfix(folder.path(), smtp, &more);
        wait(smtp, &folder.path().join("postfix.log"));
        Some(Self { smtp: SocketAddr::from(([127, 0, 0, 1], smtp)), _postfix: postfix, folder })
    }

    /// Puts this many messages of this many bytes into the queue, and keeps them there.
    pub fn fill(&self, messages: u64, bytes: usize) {
        self.run("postconf", &["-e", DEFER]);
        self.run("postfix", &["reload"]);
        let filled = Command::new("/usr/sbin/smtp-source")
            .args(["-s", "20", "-m", &messages.to_string(), "-l", &bytes.to_string()])
            .args(["-f", "u1@bench.invalid", "-t", "bob@sink.invalid", &format!("inet:{}", self.smtp)])
            .output()
            .unwrap();
        assert!(filled.status.success(), "{}", String::from_utf8_lossy(&filled.stderr));
        let began = Instant::now();
        while self.deferred() < messages {
            assert!(began.elapsed() < Duration::from_secs(600), "{} were deferred", self.deferred());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Messages that wait for their time.
    fn deferred(&self) -> u64 {
        let parts = fs::read_dir(self.folder.path().join("queue/deferred")).into_iter().flatten().flatten();
        parts.map(|part| fs::read_dir(part.path()).into_iter().flatten().count() as u64).sum()
    }

    /// Lets them go; gives when they were told to.
    pub fn send_all(&self) -> Instant {
        self.run("postconf", &["-e", "defer_transports ="]);
        self.run("postfix", &["reload"]);
        // What it reads its settings anew for is done before the time counts.
        std::thread::sleep(Duration::from_secs(1));
        let began = Instant::now();
        self.run("postqueue", &["-f"]);
        began
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(Path::new("/usr/sbin").join(program));
        let ran = command.arg("-c").arg(self.folder.path().join("postfix")).args(arguments).output().unwrap();
        assert!(ran.status.success(), "{program}: {}", String::from_utf8_lossy(&ran.stderr));
    }
}

/// Debian's sink for mail, which counts what it gets.
pub struct SmtpSink {
    counts: PathBuf,
    _process: Process,
    _folder: TempDir,
}

impl SmtpSink {
    pub fn start(at: SocketAddr) -> Self {
        let folder = scrinium_bench::folder();
        let counts = folder.path().join("counts");
        let output = fs::File::create(&counts).unwrap();
        let mut sink = command("/usr/sbin/smtp-sink", None);
        sink.args(["-c", "-u", "nobody", "-m", "256", &format!("inet:{at}"), "1024"]);
        sink.stdin(Stdio::null()).stdout(output);
        let process = Process::start(&mut sink, Signal::TERM);
        wait(at.port(), &counts);
        Self { counts, _process: process, _folder: folder }
    }

    /// Messages so far.
    pub fn messages(&self) -> u64 {
        let text = String::from_utf8_lossy(&fs::read(&self.counts).unwrap_or_default()).into_owned();
        let count = text.rsplit("mesg=").next().and_then(|rest| rest.split_whitespace().next());
        count.and_then(|count| count.parse().ok()).unwrap_or(0)
    }
}

fn children(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Waits until somebody listens there.
fn wait(port: u16, log: &Path) {
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let told = || fs::read_to_string(log).unwrap_or_default();
        assert!(began.elapsed() < Duration::from_secs(120), "nobody listens on {port}: {}", told());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn start(command: &mut Command, log: &Path) -> Process {
    let output = fs::File::create(log).unwrap();
    let errors = output.try_clone().unwrap();
    Process::start(command.stdin(Stdio::null()).stdout(output).stderr(errors), Signal::TERM)
}

/// Makes a folder that belongs to a user.
fn own(path: &Path, user: &str) {
    fs::create_dir_all(path).unwrap();
    let owned = Command::new("chown").arg(user).arg(path).status();
    assert!(owned.is_ok_and(|status| status.success()), "there must be a user {user}");
}

fn dovecot(folder: &Path, lmtp: u16, imap: Option<u16>) -> Process {
    let (mail, run, shown) = (folder.join("mail"), folder.join("run"), folder.display());
    own(&mail, "mail");
    fs::create_dir_all(&run).unwrap();
    let (mail, run) = (mail.display(), run.display());
    // Processes that are there already, and serve one after the other, as its manual has it for many log-ins.
    let imap = imap.map(|port| {
        format!(
            "service imap-login {{\n  service_count = 0\n  process_min_avail = 2\n  inet_listener imap {{\n    address = 127.0.0.1\n    \
             port = {port}\n  }}\n}}\nservice imap {{\n  process_min_avail = 8\n  service_count = 1000\n}}\n"
        )
    });
    let (protocols, imap) = (if imap.is_some() { "lmtp imap" } else { "lmtp" }, imap.unwrap_or_default());
    // `mail_fsync` is by default what syncs each message before it is acknowledged.
    let settings = format!(
        "base_dir = {run}\nlog_path = {shown}/dovecot.mail\nprotocols = {protocols}\nlisten = 127.0.0.1\nssl = no\n\
         mail_location = mdbox:{mail}/%n\nfirst_valid_uid = 1\ndefault_process_limit = 200\n\
         mail_fsync = optimized\n\
         passdb {{\n  driver = static\n  args = nopassword=y\n}}\n\
         userdb {{\n  driver = static\n  args = uid=mail gid=mail home={mail}/%n allow_all_users=yes\n}}\n\
         service lmtp {{\n  process_min_avail = 8\n  inet_listener lmtp {{\n    address = 127.0.0.1\n    \
         port = {lmtp}\n  }}\n}}\n{imap}"
    );
    let path = folder.join("dovecot.conf");
    fs::write(&path, settings).unwrap();
    let mut dovecot = command(DOVECOT, None);
    start(dovecot.arg("-F").arg("-c").arg(&path), &folder.join("dovecot.log"))
}

fn postfix(folder: &Path, smtp: u16, more: &str) -> Process {
    let (etc, queue, data) = (folder.join("postfix"), folder.join("queue"), folder.join("data"));
    fs::create_dir_all(&etc).unwrap();
    fs::create_dir_all(&queue).unwrap();
    own(&data, "postfix");
    let (queue, data, folder_shown) = (queue.display(), data.display(), folder.display());
    let settings = format!(
        "compatibility_level = 3.6\nqueue_directory = {queue}\ndata_directory = {data}\n\
         command_directory = /usr/sbin\ndaemon_directory = /usr/lib/postfix/sbin\nmail_owner = postfix\n\
         setgid_group = postdrop\ninet_interfaces = 127.0.0.1\ninet_protocols = ipv4\nmyhostname = {DOMAIN}\n\
         mydestination =\nalias_maps =\nalias_database =\nmynetworks = 127.0.0.0/8\n\
         in_flow_delay = 0\nsmtpd_client_connection_count_limit = 0\nmessage_size_limit = 52428800\n\
         maillog_file = {folder_shown}/postfix.mail\nmaillog_file_prefixes = {folder_shown}\n{more}"
    );
    fs::write(etc.join("main.cf"), settings).unwrap();
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
        writeln!(services, "{name} {kind} {private} - n - {most} {program}").unwrap();
    }
    fs::write(etc.join("master.cf"), services).unwrap();
    // Makes what the queue needs; the daemon itself is then started so that it ends with this benchmark.
    let made = Command::new("/usr/sbin/postfix").arg("-c").arg(&etc).arg("check").output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut master = command("/usr/lib/postfix/sbin/master", None);
    master.arg("-d").arg("-c").arg(&etc).env("MAIL_CONFIG", &etc);
    start(&mut master, &folder.join("postfix.log"))
}
