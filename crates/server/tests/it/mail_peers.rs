//! Servers of others beside ours: Postfix, which gets mail from ours and gives it back, encrypted, by SMTP and by LMTP, and Dovecot,
//! which gets mail from ours by LMTP.
//!
//! `scripts/peers` brings them; where they are not there, or this is not root, the test says so and is left out.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use scrinium_bench::process::{Process, command};
use serde_json::json;

use crate::mail_ports::{MailServer, SECRET};

const POSTFIX: &str = "/usr/lib/postfix/sbin/master";
const DOVECOT: &str = "/usr/lib/dovecot/lmtp";
const WITHIN: Duration = Duration::from_secs(60);

/// Messages that go each way.
pub const MESSAGES: usize = 10;

fn is_there(program: &str) -> bool {
    if !rustix::process::geteuid().is_root() || !Path::new(program).exists() {
        scrinium_fault::skip(format!(
            "there is no {program}, which scripts/peers brings, or this is not root"
        ));
        return false;
    }
    true
}

pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A folder that the servers' own users may look into.
pub fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

pub fn own(path: &Path, user: &str) {
    fs::create_dir_all(path).unwrap();
    let owned = Command::new("chown").arg(user).arg(path).status();
    assert!(owned.is_ok_and(|status| status.success()), "there must be a user {user}");
}

pub fn start(mut command: Command, port: u16, log: &Path) -> Process {
    let output = fs::File::create(log).unwrap();
    command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
    let process = Process::start(&mut command, Signal::TERM);
    let began = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < WITHIN, "{}", fs::read_to_string(log).unwrap_or_default());
        std::thread::sleep(Duration::from_millis(50));
    }
    process
}

/// Postfix at this port, which makes everybody in `postfix.example` Bob, and gives what is for us to `way`.
fn postfix(folder: &Path, port: u16, certificate: &Path, way: &str) -> Process {
    let (etc, queue, data) = (folder.join("postfix"), folder.join("queue"), folder.join("state"));
    fs::create_dir_all(&etc).unwrap();
    fs::create_dir_all(&queue).unwrap();
    own(&data, "postfix");
    let key = certificate.with_file_name("key.pem");
    let (queue, data, shown) = (queue.display(), data.display(), folder.display());
    let settings = format!(
        "compatibility_level = 3.6\nqueue_directory = {queue}\ndata_directory = {data}\n\
         command_directory = /usr/sbin\ndaemon_directory = /usr/lib/postfix/sbin\nmail_owner = postfix\n\
         setgid_group = postdrop\ninet_interfaces = 127.0.0.1\ninet_protocols = ipv4\n\
         myhostname = mx.postfix.example\nmydestination =\nalias_maps =\nalias_database =\n\
         mynetworks = 127.0.0.0/8\nvirtual_alias_domains = postfix.example\n\
         virtual_alias_maps = static:bob@acme.example\ndefault_transport = {way}\n\
         smtpd_tls_security_level = encrypt\nsmtpd_tls_cert_file = {}\nsmtpd_tls_key_file = {}\n\
         smtp_tls_security_level = encrypt\nsmtp_host_lookup = native\nlmtp_host_lookup = native\n\
         maillog_file = {shown}/postfix.mail\nmaillog_file_prefixes = {shown}\n",
        certificate.display(),
        key.display()
    );
    fs::write(etc.join("main.cf"), settings).unwrap();
    let mut services = format!("127.0.0.1:{port} inet n - n - - smtpd\n");
    for (name, program) in [
        ("pickup", "pickup"),
        ("cleanup", "cleanup"),
        ("qmgr", "qmgr"),
        ("tlsmgr", "tlsmgr"),
        ("rewrite", "trivial-rewrite"),
        ("bounce", "bounce"),
        ("defer", "bounce"),
        ("trace", "bounce"),
        ("proxymap", "proxymap"),
        ("error", "error"),
        ("retry", "error"),
        ("smtp", "smtp"),
        ("lmtp", "lmtp"),
        ("anvil", "anvil"),
        ("scache", "scache"),
    ] {
        let private = if matches!(name, "pickup" | "cleanup" | "qmgr") { "n" } else { "-" };
        let most = match name {
            "pickup" | "qmgr" | "tlsmgr" | "anvil" | "scache" => "1",
            "cleanup" | "bounce" | "defer" | "trace" => "0",
            _ => "-",
        };
        writeln!(services, "{name} unix {private} - n - {most} {program}").unwrap();
    }
    services.push_str("postlog unix-dgram n - n - 1 postlogd\n");
    fs::write(etc.join("master.cf"), services).unwrap();
    let made = Command::new("/usr/sbin/postfix").arg("-c").arg(&etc).arg("check").output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut master = command(POSTFIX, None);
    master.arg("-d").arg("-c").arg(&etc).env("MAIL_CONFIG", &etc);
    start(master, port, &folder.join("postfix.log"))
}

/// Ours, with the way for mail to others; rules are written once the ports are known.
pub fn ours(folder: &Path, rules: &str, more: &[(&str, &str)]) -> MailServer {
    let transports = folder.join("transports");
    fs::write(&transports, rules).unwrap();
    let way =
        [("SCRINIUM_OUTBOUND__ROUTE", "mx"), ("SCRINIUM_OUTBOUND__TRANSPORTS", transports.to_str().unwrap())];
    MailServer::start_with(folder, &[&way[..], more].concat())
}

/// Ada writes some memos to somebody elsewhere.
pub fn write(mail: &MailServer, person: &str, domain: &str) {
    let log_in = json!({"name": "ada", "password": SECRET});
    let answer = mail.server.client().json("POST", "/_session", &log_in).unwrap().expect(200);
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap();
    let mut ada = mail.server.client_with(cookie);
    for number in 0..MESSAGES {
        let memo = json!({"Form": "Memo", "From": "ada", "SendTo": [format!("{person}@{domain}")],
            "Subject": format!("{domain} {number}"), "Body": "Grüße\n.\n..\n"});
        ada.json("POST", "/mail.box", &memo).unwrap().expect(201);
    }
}

#[test]
fn postfix_takes_our_mail_and_brings_it_back_by_smtp_and_lmtp() {
    if !is_there(POSTFIX) {
        return;
    }
    for protocol in ["smtp", "lmtp"] {
        let (folder, others) = (open_folder(), open_folder());
        let port = free_port();
        let mail =
            ours(folder.path(), &format!("postfix.example relay 127.0.0.1:{port} tls=required\n"), &[]);
        let way = match protocol {
            "smtp" => format!("smtp:[127.0.0.1]:{}", mail.port("smtp")),
            _ => format!("lmtp:inet:127.0.0.1:{}", mail.port("lmtp")),
        };
        let _postfix = postfix(others.path(), port, &mail.certificate, &way);
        write(&mail, "carla", "postfix.example");
        let found = mail.mail_of_bob(MESSAGES);
        for number in 0..MESSAGES {
            assert_eq!(found.get(&format!("postfix.example {number}")), Some(&1), "{protocol}: {found:?}");
        }
    }
}

#[test]
fn dovecot_takes_our_mail_by_lmtp() {
    if !is_there(DOVECOT) {
        return;
    }
    let (folder, others) = (open_folder(), open_folder());
    let (port, mailboxes, run) = (free_port(), others.path().join("mail"), others.path().join("run"));
    own(&mailboxes, "mail");
    fs::create_dir_all(&run).unwrap();
    let settings = format!(
        "base_dir = {}\nlog_path = {}/dovecot.mail\nprotocols = lmtp\nlisten = 127.0.0.1\nssl = no\n\
         mail_location = maildir:{1}/mail/%n\nfirst_valid_uid = 1\n\
         passdb {{\n  driver = static\n  args = nopassword=y\n}}\n\
         userdb {{\n  driver = static\n  args = uid=mail gid=mail home={1}/mail/%n allow_all_users=yes\n}}\n\
         service lmtp {{\n  inet_listener lmtp {{\n    address = 127.0.0.1\n    port = {port}\n  }}\n}}\n",
        run.display(),
        others.path().display()
    );
    let path = others.path().join("dovecot.conf");
    fs::write(&path, settings).unwrap();
    let mut dovecot = command("/usr/sbin/dovecot", None);
    dovecot.arg("-F").arg("-c").arg(&path);
    let _dovecot = start(dovecot, port, &others.path().join("dovecot.log"));
    let mail = ours(folder.path(), &format!("dovecot.example lmtp 127.0.0.1:{port}\n"), &[]);
    write(&mail, "carla", "dovecot.example");
    let began = Instant::now();
    let texts = loop {
        let files = fs::read_dir(mailboxes.join("carla/new")).into_iter().flatten().flatten();
        let texts: Vec<String> = files.filter_map(|file| fs::read_to_string(file.path()).ok()).collect();
        if texts.len() >= MESSAGES {
            break texts;
        }
        let count = texts.len();
        assert!(began.elapsed() < WITHIN, "{count} of {MESSAGES} messages have come");
        std::thread::sleep(Duration::from_millis(100));
    };
    for number in 0..MESSAGES {
        let subject = format!("Subject: dovecot.example {number}\n");
        assert_eq!(texts.iter().filter(|text| text.contains(&subject)).count(), 1, "{subject}");
    }
    let is_whole = |text: &&String| text.contains("Return-Path: <ada@acme.example>");
    assert_eq!(texts.iter().filter(is_whole).count(), MESSAGES, "{:?}", texts.first());
}
