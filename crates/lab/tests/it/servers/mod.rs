//! Servers of Debian's in scratch folders, on loopback ports that the system chooses, as plain processes: nothing of
//! the machine's is used but the programs. PostgreSQL and Postfix start as root only, or not as root only.
#![allow(dead_code, unreachable_pub, reason = "each test uses another part of it")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fall over")]

use std::fmt::Write;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::mail_server::encryption::Identity;
use rustix::process::Signal;
use scrinium_bench::process::{Process, command};
use scrinium_fault::skip;
use tempfile::TempDir;

pub const DOMAIN: &str = "lab.invalid";
pub const PASSWORD: &str = "scrinium-lab";

/// Some ports that nobody listens on.
fn ports<const COUNT: usize>() -> [u16; COUNT] {
    let open = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    open.map(|listener| listener.local_addr().unwrap().port())
}

/// A scratch folder that other users may enter.
fn folder() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes a folder that belongs to a user.
fn own(path: &Path, user: &str) {
    fs::create_dir_all(path).unwrap();
    let owned = Command::new("chown").arg(user).arg(path).status();
    assert!(owned.is_ok_and(|status| status.success()), "there must be a user {user}");
}

fn start(command: &mut Command, log: &Path, signal: Signal) -> Process {
    let output = fs::File::create(log).unwrap();
    let errors = output.try_clone().unwrap();
    Process::start(command.stdin(Stdio::null()).stdout(output).stderr(errors), signal)
}

/// Waits until somebody listens there.
fn wait(port: u16, log: &Path) {
    let began = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        if began.elapsed() > Duration::from_secs(120) {
            panic!("nobody listens on {port}: {}", fs::read_to_string(log).unwrap_or_default());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Ports of both mail servers. They encrypt by the protocols' own commands; or from the beginning.
#[derive(Clone, Copy)]
pub struct Ports {
    pub smtp: u16,
    pub imap: u16,
    pub pop3: u16,
    pub lmtp: u16,
}

/// Postfix, which hands what it gets to Dovecot, and Dovecot, which has a mailbox for everybody.
pub struct MailServers {
    pub plain: Ports,
    pub encrypted: Ports,
    /// The certificate of both.
    pub certificate: PathBuf,
    // End before their folder goes.
    _processes: [Process; 2],
    _folder: TempDir,
}

impl MailServers {
    /// `None`, with a word on why, where they cannot be started.
    pub fn start() -> Option<Self> {
        let programs = ["/usr/lib/postfix/sbin/master", "/usr/lib/dovecot/lmtp", "/usr/lib/dovecot/pop3"];
        if !is_root() || !programs.iter().all(|program| Path::new(program).exists()) {
            skip("Postfix and Dovecot are not there, or this is not root; scripts/peers installs them");
            return None;
        }
        let folder = folder();
        let certificate = folder.path().join("certificate.pem");
        Identity::new().write(&certificate, &folder.path().join("key.pem"));
        let all: [u16; 8] = ports();
        let [plain, encrypted] = [&all[..4], &all[4..]].map(|ports| Ports {
            smtp: ports[0],
            imap: ports[1],
            pop3: ports[2],
            lmtp: ports[3],
        });
        let dovecot = dovecot(folder.path(), plain, encrypted);
        let log = folder.path().join("dovecot.log");
        wait(plain.lmtp, &log);
        wait(encrypted.imap, &log);
        let postfix = postfix(folder.path(), [plain.smtp, encrypted.smtp], plain.lmtp);
        wait(encrypted.smtp, &folder.path().join("postfix.log"));
        Some(Self { plain, encrypted, certificate, _processes: [postfix, dovecot], _folder: folder })
    }
}

fn postfix(folder: &Path, [smtp, smtps]: [u16; 2], lmtp: u16) -> Process {
    let (etc, queue, data) = (folder.join("postfix"), folder.join("queue"), folder.join("data"));
    fs::create_dir_all(&etc).unwrap();
    fs::create_dir_all(&queue).unwrap();
    own(&data, "postfix");
    let settings = format!(
        "compatibility_level = 3.6\nqueue_directory = {}\ndata_directory = {}\ncommand_directory = /usr/sbin\n\
         daemon_directory = /usr/lib/postfix/sbin\nmail_owner = postfix\nsetgid_group = postdrop\n\
         inet_interfaces = 127.0.0.1\ninet_protocols = ipv4\nmyhostname = {DOMAIN}\nmydestination =\nalias_maps =\n\
         alias_database =\nmynetworks = 127.0.0.0/8\nvirtual_mailbox_domains = {DOMAIN}\n\
         virtual_mailbox_maps = static:all\nvirtual_transport = lmtp:inet:127.0.0.1:{lmtp}\n\
         smtpd_client_connection_count_limit = 0\nmessage_size_limit = 52428800\nmaillog_file = {}/postfix.mail\n\
         maillog_file_prefixes = {}\nsmtpd_tls_security_level = may\nsmtpd_tls_cert_file = {}/certificate.pem\n\
         smtpd_tls_key_file = {}/key.pem\n",
        queue.display(),
        data.display(),
        folder.display(),
        folder.display(),
        folder.display(),
        folder.display(),
    );
    fs::write(etc.join("main.cf"), settings).unwrap();
    let mut services = format!(
        "127.0.0.1:{smtp} inet n - n - - smtpd\n127.0.0.1:{smtps} inet n - n - - smtpd\n  -o smtpd_tls_wrappermode=yes\n"
    );
    for (name, kind, program) in [
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
        ("anvil", "unix", "anvil"),
        ("scache", "unix", "scache"),
        ("postlog", "unix-dgram", "postlogd"),
    ] {
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
    // Makes what the queue needs; the daemon itself is then started so that it ends with this test.
    let made = Command::new("/usr/sbin/postfix").arg("-c").arg(&etc).arg("check").output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut master = command("/usr/lib/postfix/sbin/master", None);
    master.arg("-d").arg("-c").arg(&etc).env("MAIL_CONFIG", &etc);
    start(&mut master, &folder.join("postfix.log"), Signal::TERM)
}

fn dovecot(folder: &Path, plain: Ports, encrypted: Ports) -> Process {
    let (mail, run) = (folder.join("mail"), folder.join("run"));
    own(&mail, "mail");
    fs::create_dir_all(&run).unwrap();
    let listener = |service: &str, name: &str, port: u16, encrypted: u16| {
        format!(
            "service {service} {{\n  inet_listener {name} {{\n    address = 127.0.0.1\n    port = {port}\n  }}\n  \
             inet_listener {name}s {{\n    address = 127.0.0.1\n    port = {encrypted}\n    ssl = yes\n  }}\n}}\n"
        )
    };
    let settings = format!(
        "base_dir = {}\nlog_path = {}/dovecot.mail\nprotocols = imap pop3 lmtp\nlisten = 127.0.0.1\nssl = yes\n\
         ssl_cert = <{}/certificate.pem\nssl_key = <{}/key.pem\n\
         disable_plaintext_auth = no\nmail_location = maildir:{}/%n\nfirst_valid_uid = 1\n\
         mail_max_userip_connections = 1000\n\
         passdb {{\n  driver = static\n  args = password={PASSWORD}\n}}\n\
         userdb {{\n  driver = static\n  args = uid=mail gid=mail home={}/%n allow_all_users=yes\n}}\n{}{}{}",
        run.display(),
        folder.display(),
        folder.display(),
        folder.display(),
        mail.display(),
        mail.display(),
        listener("imap-login", "imap", plain.imap, encrypted.imap),
        listener("pop3-login", "pop3", plain.pop3, encrypted.pop3),
        listener("lmtp", "lmtp", plain.lmtp, encrypted.lmtp),
    );
    let path = folder.join("dovecot.conf");
    fs::write(&path, settings).unwrap();
    let mut dovecot = command("/usr/sbin/dovecot", None);
    start(dovecot.arg("-F").arg("-c").arg(&path), &folder.join("dovecot.log"), Signal::TERM)
}

/// Radicale, which lets everybody in.
pub struct CalendarServer {
    pub port: u16,
    _process: Process,
    _folder: TempDir,
}

impl CalendarServer {
    /// `None`, with a word on why, where it cannot be started.
    pub fn start() -> Option<Self> {
        let program = ["/usr/bin/radicale", "/usr/local/bin/radicale"]
            .into_iter()
            .find(|path| Path::new(path).exists());
        let Some(program) = program else {
            skip("Radicale is not there; scripts/peers installs it");
            return None;
        };
        let folder = folder();
        let [port] = ports();
        let log = folder.path().join("radicale.log");
        let mut radicale = command(program, None);
        radicale
            .args([
                "--config",
                "",
                "--auth-type",
                "none",
                "--server-max-connections",
                "100",
                "--server-hosts",
            ])
            .arg(format!("127.0.0.1:{port}"));
        radicale.arg("--storage-filesystem-folder").arg(folder.path().join("calendars"));
        let process = start(&mut radicale, &log, Signal::TERM);
        wait(port, &log);
        Some(Self { port, _process: process, _folder: folder })
    }
}

/// PostgreSQL, which trusts everybody.
pub struct Postgres {
    pub port: u16,
    _process: Process,
    _folder: TempDir,
}

impl Postgres {
    /// `None`, with a word on why, where it cannot be started.
    pub fn start() -> Option<Self> {
        let Some(programs) = postgres_programs() else {
            skip("PostgreSQL is not there; scripts/peers installs it");
            return None;
        };
        let user = is_root().then_some("postgres");
        let folder = folder();
        let data = folder.path().join("data");
        match user {
            Some(user) => own(&data, user),
            None => fs::create_dir_all(&data).unwrap(),
        }
        let made = command(programs.join("initdb"), user)
            .args(["--username=lab", "--auth=trust", "--encoding=UTF8", "--locale=C", "--pgdata"])
            .arg(&data)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let [port] = ports();
        let log = folder.path().join("postgres.log");
        let mut postgres = command(programs.join("postgres"), user);
        postgres.arg("-D").arg(&data).arg("-k").arg(&data).args(["-c", "listen_addresses=127.0.0.1", "-p"]);
        let process = start(postgres.arg(port.to_string()), &log, Signal::QUIT);
        wait(port, &log);
        Some(Self { port, _process: process, _folder: folder })
    }
}

/// The latest of Debian's versions.
fn postgres_programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut programs: Vec<PathBuf> = versions
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("postgres").exists())
        .collect();
    programs.sort();
    programs.pop()
}
