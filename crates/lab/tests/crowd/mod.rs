//! Users who are connected and mostly wait, and a server for them in a process of its own, so that only the driver's
//! memory is counted.
#![allow(dead_code, unreachable_pub, reason = "each user of it uses another part")]
#![allow(clippy::unwrap_used, reason = "a test may fall over")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use scrinium_lab::driver::{HttpOptions, TargetOptions, Targets};
use scrinium_lab::load::Plan;
use scrinium_lab_script::{Script, Variables};

#[path = "../it/fake/mod.rs"]
mod fake;
#[path = "../it/mail_server/mod.rs"]
mod mail_server;

/// What users speak, and what they do once before they wait, and then again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Http,
    Imap,
    Imaps,
    Smtp,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Http, Self::Imap, Self::Imaps, Self::Smtp];

    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Imap => "imap",
            Self::Imaps => "imaps",
            Self::Smtp => "smtp",
        }
    }

    fn script(self, pause_ms: (u64, u64)) -> String {
        let (first, again) = match self {
            Self::Http => ("ChangeTo MAIL\nOpen $Inbox\nNavigate 1", "Navigate 1 NEXT CIRCULAR"),
            Self::Imap | Self::Imaps => {
                ("ImailLogin\nImailOpenMailbox\nImailGetLastEntries", "ImailGetNewMail")
            }
            Self::Smtp => ("SendSMTPMessage 1000 72 1", "SendSMTPMessage 1000 72 1"),
        };
        format!("{first}\nBeginLoop\nPause {}-{}\n{again}\nRewind", pause_ms.0, pause_ms.1)
    }
}

/// A server in another process, which ends with this.
pub struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    target: String,
    authority: Option<std::path::PathBuf>,
    _folder: tempfile::TempDir,
}

impl Server {
    /// `program` calls [`serve`] when its first argument is `serve`.
    pub fn start(program: &std::path::Path, kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let certificate = folder.path().join("ca.pem");
        let mut child = Command::new(program)
            .args(["serve", kind.name()])
            .arg(&certificate)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut target = String::new();
        output.read_line(&mut target).unwrap();
        let input = child.stdin.take().unwrap();
        let authority = (kind == Kind::Imaps).then_some(certificate);
        Self { child, input, output, target: target.trim().to_owned(), authority, _folder: folder }
    }

    /// How many users have done everything that comes before they wait.
    pub fn users_that_began(&mut self) -> u64 {
        self.input.write_all(b"\n").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().parse().unwrap()
    }

    pub fn targets(&self, users: usize) -> Targets {
        let http = HttpOptions {
            admin: Some(("admin".to_owned(), "secret".to_owned())),
            user_password: mail_server::PASSWORD.to_owned(),
            time_out: Duration::from_secs(3600),
            ..HttpOptions::new(self.target.clone())
        };
        let options = TargetOptions {
            targets: vec![self.target.clone()],
            http,
            domain: "lab.invalid".to_owned(),
            login_name: "{user}".to_owned(),
            authority: self.authority.clone(),
            check_deliveries: None,
            users,
            recipients: 1,
            delivery_wait: Duration::from_secs(1),
        };
        Targets::new(&options).unwrap()
    }

    pub fn plan(&self, kind: Kind, users: usize, pause_ms: (u64, u64), ramp_up: Duration) -> Plan {
        let mut given = Variables::default();
        for (name, value) in
            [("NumMailNotesPerUser", "5"), ("NormalMessageSize", "1000"), ("nb_dbdir", "mail/")]
        {
            given.set(name, value);
        }
        let (script, variables) = Script::parse(&kind.script(pause_ms), &given).unwrap();
        Plan {
            target: self.target.clone(),
            duration: Duration::from_secs(3600),
            ramp_up: Some(ramp_up),
            time_out: Duration::from_secs(3600),
            ..Plan::new(&format!("waiting, {}", kind.name()), script, variables, users)
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Serves until the parent is gone; says for each line of standard input how many users have begun.
pub async fn serve(kind: &str, certificate: &std::path::Path) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let began: Box<dyn Fn() -> u64 + Send> = if kind == "http" {
        let faults = fake::Faults { forgetful: true, ..fake::Faults::default() };
        let server = fake::FakeServer::start_at("127.0.0.1:0", faults).await;
        println!("{}", server.url());
        Box::new(move || server.readings())
    } else {
        let identity = mail_server::Identity::new();
        identity.write(certificate, &certificate.with_extension("key"));
        let security = if kind == "imaps" {
            mail_server::Security::FromTheBeginning
        } else {
            mail_server::Security::Plain
        };
        let server = mail_server::MailServer::start(security, Some(&identity), <_>::default()).await;
        if kind == "smtp" {
            println!("smtp://127.0.0.1:{}", server.smtp);
            Box::new(move || server.deliveries())
        } else {
            println!("{kind}://127.0.0.1:{}", server.imap);
            Box::new(move || server.pages())
        }
    };
    let asked = tokio::task::spawn_blocking(move || {
        for _ in std::io::stdin().lines() {
            println!("{}", began());
        }
    });
    asked.await.unwrap();
}
