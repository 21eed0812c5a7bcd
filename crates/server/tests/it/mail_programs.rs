//! Programs that send mail, as people and servers have them, hand messages in at every port that they know.
//!
//! `scripts/mail-clients` and `scripts/peers` bring those that this machine does not have; what is not there is left out, and the
//! test says so.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::mail_ports::{MailServer, SECRET};

/// What a row of the table has to do with.
struct World {
    mail: MailServer,
    folder: PathBuf,
    /// Where `scripts/mail-clients` unpacks.
    clients: PathBuf,
}

/// What a program does with this subject: how many messages it says that it has sent, or why it cannot be tried.
type Program = fn(&World, &str) -> Result<usize, String>;

const PROGRAMS: [(&str, Program); 17] = [
    ("swaks by SMTP", |world, subject| {
        swaks(world, subject, &["--from", "eve@far.example", "--port", &world.port("smtp")])
    }),
    ("swaks by SMTP, pipelined, with STARTTLS", |world, subject| {
        swaks(
            world,
            subject,
            &["--from", "eve@far.example", "--port", &world.port("smtp"), "--tls", "--pipeline"],
        )
    }),
    ("swaks by LMTP", |world, subject| {
        swaks(
            world,
            subject,
            &["--from", "eve@far.example", "--port", &world.port("lmtp"), "--protocol", "LMTP"],
        )
    }),
    ("swaks with PLAIN and STARTTLS", |world, subject| {
        swaks(world, subject, &as_ada(&["--port", &world.port("submission"), "--tls", "--auth", "PLAIN"]))
    }),
    ("swaks with LOGIN over TLS", |world, subject| {
        swaks(
            world,
            subject,
            &as_ada(&["--port", &world.port("submissions"), "--tls-on-connect", "--auth", "LOGIN"]),
        )
    }),
    ("msmtp with SCRAM-SHA-256 and STARTTLS", |world, subject| {
        msmtp(world, subject, "submission", "scram-sha-256")
    }),
    ("msmtp with PLAIN over TLS", |world, subject| msmtp(world, subject, "submissions", "plain")),
    ("smtp-source by SMTP", |world, subject| smtp_source(world, subject, "smtp")),
    ("smtp-source by LMTP", |world, subject| smtp_source(world, subject, "lmtp")),
    ("smtplib of Python", |world, subject| {
        let ports = ["smtp", "lmtp", "submission", "submissions"].map(|protocol| world.port(protocol));
        python(world, subject, include_str!("mail_programs/smtplib.txt"), &ports)
    }),
    ("aiosmtplib of Python", |world, subject| {
        let wheel = world.clients.join("python/aiosmtplib.whl");
        if !wheel.exists() {
            return Err("there is no aiosmtplib; scripts/mail-clients brings it".to_owned());
        }
        let ports = ["smtp", "submission", "submissions"].map(|protocol| world.port(protocol));
        python(world, subject, include_str!("mail_programs/aiosmtplib.txt"), &ports)
    }),
    ("nodemailer", nodemailer),
    ("curl by SMTP", |world, subject| curl(world, subject, "smtp", "smtp", &[])),
    ("curl by SMTP with STARTTLS", |world, subject| curl(world, subject, "smtp", "smtp", &["--ssl-reqd"])),
    ("curl with the best log-in and STARTTLS", |world, subject| {
        curl(world, subject, "smtp", "submission", &["--ssl-reqd", "--user", &format!("ada:{SECRET}")])
    }),
    ("curl with PLAIN over TLS", |world, subject| {
        let options = ["--user", &format!("ada:{SECRET}"), "--login-options", "AUTH=PLAIN"];
        curl(world, subject, "smtps", "submissions", &options)
    }),
    ("curl with LOGIN over TLS", |world, subject| {
        let options = ["--user", &format!("ada:{SECRET}"), "--login-options", "AUTH=LOGIN"];
        curl(world, subject, "smtps", "submissions", &options)
    }),
];

#[test]
fn programs_that_send_mail_hand_it_in_at_every_port() {
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start(folder.path());
    let world = World { mail, folder: folder.path().to_owned(), clients: clients() };
    let mut expected = Vec::new();
    for (number, (name, send)) in PROGRAMS.iter().enumerate() {
        let subject = format!("row {number}");
        match send(&world, &subject) {
            Ok(count) => expected.push((name, subject, count)),
            Err(reason) => scrinium_fault::skip(format!("{name}: {reason}")),
        }
    }
    let sum = expected.iter().map(|(_, _, count)| count).sum();
    let found = world.mail.mail_of_bob(sum);
    for (name, subject, count) in expected {
        assert_eq!(found.get(&subject), Some(&count), "{name}");
    }
}

/// Seconds that postal runs: it says what it did at the end of each minute, and at no other time.
const POSTAL_SECONDS: &str = "65";

/// Messages and errors of each minute that postal says: the time, messages, kilobytes, errors, and connections of each kind.
fn counted(said: &str) -> (usize, usize) {
    let numbers = |line: &str| -> Option<(usize, usize)> {
        let values: Vec<&str> = line.split(',').collect();
        Some((values.get(1)?.trim().parse().ok()?, values.get(3)?.trim().parse().ok()?))
    };
    said.lines()
        .filter_map(numbers)
        .fold((0, 0), |sum, (messages, errors)| (sum.0 + messages, sum.1 + errors))
}

#[test]
fn postal_sends_without_an_error_by_smtp_and_lmtp() {
    if std::env::var_os("SCRINIUM_TIMES").is_none() {
        return scrinium_fault::skip("postal runs for two minutes; make torture runs it");
    }
    let program = clients().join("postal/postal");
    if !program.exists() {
        return scrinium_fault::skip("there is no postal; scripts/mail-clients brings it");
    }
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start(folder.path());
    let people = folder.path().join("people");
    std::fs::write(&people, "bob@acme.example\n").unwrap();
    let mut sum = 0;
    for (protocol, options) in
        [("smtp", &["-t", "4", "-c", "5"][..]), ("lmtp", &["-L", "-t", "2", "-c", "5"])]
    {
        let mut command = Command::new("timeout");
        // It writes a log of its own where it runs.
        command
            .current_dir(folder.path())
            .args(["--signal=KILL", POSTAL_SECONDS])
            .arg(&program)
            .args(options)
            .arg("-r")
            .arg("600");
        command.arg(format!("[127.0.0.1]{}", mail.port(protocol))).arg(&people).stdin(Stdio::null());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let (messages, errors) = counted(&said);
        assert!(messages > 0 && errors == 0, "{protocol}: {said}");
        sum += messages;
    }
    let found: usize = mail.mail_of_bob(sum).values().sum();
    assert!(found >= sum, "{found} of {sum}");
}

impl World {
    fn port(&self, protocol: &str) -> String {
        self.mail.port(protocol).to_string()
    }

    /// A file with a message of Ada's.
    fn message(&self, subject: &str) -> PathBuf {
        let path = self.folder.join("message.eml");
        let text = format!(
            "From: Ada Someone <ada@acme.example>\r\nTo: bob@acme.example\r\nSubject: {subject}\r\n\r\nText.\r\n.\r\n..\r\n"
        );
        std::fs::write(&path, text).unwrap();
        path
    }
}

pub fn clients() -> PathBuf {
    cached("mail-clients-1")
}

/// Where a script keeps what it brings.
pub fn cached(name: &str) -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = variable("SCRINIUM_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("scrinium")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/scrinium")));
    cache.unwrap_or_default().join(name)
}

/// Runs a program to its end, which comes within two minutes.
pub fn run(program: &Path, prepare: impl FnOnce(&mut Command)) -> Result<String, String> {
    let mut command = Command::new("timeout");
    command.arg("120").arg(program).stdin(Stdio::null());
    prepare(&mut command);
    let output = command.output().map_err(|error| error.to_string())?;
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told).into_owned();
    if output.status.code() == Some(127) || told.contains("error while loading shared libraries") {
        return Err(format!("{} cannot be run here: {told}", program.display()));
    }
    assert!(output.status.success(), "{command:?}: {}\n{told}", output.status);
    Ok(told)
}

/// A program that scripts/mail-clients has unpacked, or that this machine has.
fn unpacked(world: &World, name: &str) -> Result<PathBuf, String> {
    let brought = world.clients.join("debian/usr/bin").join(name);
    let places = [brought, Path::new("/usr/bin").join(name)];
    let found = places.into_iter().find(|path| path.exists());
    found.ok_or_else(|| format!("there is no {name}; scripts/mail-clients brings it"))
}

fn as_ada<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let own = ["--from", "ada@acme.example", "--auth-user", "ada", "--auth-password", SECRET];
    [&own[..], more].concat()
}

fn swaks(world: &World, subject: &str, options: &[&str]) -> Result<usize, String> {
    let program = unpacked(world, "swaks")?;
    if !Path::new("/usr/bin/perl").exists() {
        return Err("swaks needs Perl".to_owned());
    }
    if options.iter().any(|option| option.starts_with("--tls")) {
        let module = Command::new("perl").args(["-MNet::SSLeay", "-e", "1"]).output();
        if !module.is_ok_and(|output| output.status.success()) {
            return Err("swaks needs Perl's Net::SSLeay for TLS".to_owned());
        }
    }
    run(&program, |command| {
        command.args(["--server", "127.0.0.1", "--to", "bob@acme.example", "--helo", "client.example"]);
        command.args(["--header", &format!("Subject: {subject}"), "--body", "Text.\n.\n"]).args(options);
    })?;
    Ok(1)
}

fn msmtp(world: &World, subject: &str, protocol: &str, mechanism: &str) -> Result<usize, String> {
    let program = unpacked(world, "msmtp")?;
    let settings = world.folder.join("msmtprc");
    let starts = if protocol == "submission" { "on" } else { "off" };
    let text = format!(
        "defaults\nlogfile -\naccount default\nhost 127.0.0.1\nport {}\ntls on\ntls_starttls {starts}\ntls_trust_file {}\n\
         auth {mechanism}\nuser ada\npassword {SECRET}\nfrom ada@acme.example\n",
        world.port(protocol),
        world.mail.certificate.display(),
    );
    std::fs::write(&settings, text).unwrap();
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&settings, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let message = std::fs::File::open(world.message(subject)).unwrap();
    let libraries = world.clients.join("debian/usr/lib/x86_64-linux-gnu");
    run(&program, |command| {
        command.env("LD_LIBRARY_PATH", libraries).stdin(message);
        command.arg("-C").arg(&settings).arg("bob@acme.example");
    })?;
    Ok(1)
}

fn smtp_source(world: &World, subject: &str, protocol: &str) -> Result<usize, String> {
    let program = Path::new("/usr/sbin/smtp-source");
    if !program.exists() {
        return Err("there is no smtp-source; scripts/peers brings Postfix, which has it".to_owned());
    }
    run(program, |command| {
        if protocol == "lmtp" {
            command.arg("-L");
        }
        command.args([
            "-s",
            "4",
            "-m",
            "20",
            "-l",
            "3000",
            "-f",
            "eve@far.example",
            "-t",
            "bob@acme.example",
            "-S",
            subject,
        ]);
        command.arg(format!("127.0.0.1:{}", world.port(protocol)));
    })?;
    Ok(20)
}

/// Runs a script that prints how many messages it has sent.
fn python(world: &World, subject: &str, script: &str, ports: &[String]) -> Result<usize, String> {
    let told = run(Path::new("python3"), |command| {
        command.env("PYTHONPATH", world.clients.join("python/aiosmtplib.whl"));
        command.args(["-c", script, subject, SECRET]).arg(&world.mail.certificate).args(ports);
    })?;
    told.trim().parse().map_err(|_| told)
}

fn nodemailer(world: &World, subject: &str) -> Result<usize, String> {
    let modules = world.clients.join("node");
    if !modules.join("nodemailer").exists() {
        return Err("there is no nodemailer; scripts/mail-clients brings it".to_owned());
    }
    let told = run(Path::new("node"), |command| {
        command.env("NODE_PATH", modules).args([
            "-e",
            include_str!("mail_programs/nodemailer.txt"),
            "--",
            subject,
            SECRET,
        ]);
        command.arg(&world.mail.certificate);
        command.args(["smtp", "submission", "submissions"].map(|protocol| world.port(protocol)));
    })?;
    told.trim().parse().map_err(|_| told)
}

fn curl(
    world: &World,
    subject: &str,
    scheme: &str,
    protocol: &str,
    options: &[&str],
) -> Result<usize, String> {
    let program = Path::new("/usr/bin/curl");
    if !program.exists() {
        return Err("there is no curl".to_owned());
    }
    let message = world.message(subject);
    run(program, |command| {
        command.args([
            "--silent",
            "--show-error",
            "--mail-from",
            "ada@acme.example",
            "--mail-rcpt",
            "bob@acme.example",
        ]);
        command.arg("--cacert").arg(&world.mail.certificate).arg("--upload-file").arg(&message).args(options);
        command.arg(format!("{scheme}://127.0.0.1:{}/client.example", world.port(protocol)));
    })?;
    Ok(1)
}
