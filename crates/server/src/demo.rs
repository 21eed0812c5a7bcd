//! `scrinium demo`: the whole on one machine. A server is started, people get mail files, real messages
//! are imported, the laboratory puts users to work, and a report is written.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Parser;
use http::Method;
use scrinium_lab::LabArguments;
use scrinium_mail::import::{ImportOptions, ImportReport, MailFiles, Position};
use scrinium_terminal::CommandOutcome;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::cli::{DemoArguments, Failure, Terminal};
use crate::client::ConsoleClient;
use crate::config::{Configuration, Source};
use crate::credentials::Credentials;
use crate::demo_mail::{self, DOMAIN, MailPorts};
use crate::mail_import::{self, RemoteMail};

/// The folder of the demonstration, where none was named.
const FOLDER: &str = "demo";

/// Below it, the messages of each person.
const HANDS: &str = "messages";

const START_WITHIN: Duration = Duration::from_secs(60);
const STOP_WITHIN: Duration = Duration::from_secs(60);

/// Messages longer than this are not part of the demonstration.
const MESSAGE_LIMIT_BYTES: u64 = 4 << 20;

/// The password of the demonstration's people; its server listens to this machine only.
const PEOPLE_PASSWORD: &str = "scrinium-demo";

/// The laboratory as a command line of its own.
#[derive(Parser)]
#[command(name = "lab")]
struct LabCommandLine {
    #[command(flatten)]
    lab: LabArguments,
}

/// Carries out the command.
pub(crate) fn run(
    configuration: &Configuration,
    arguments: &DemoArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let folder = folder(configuration);
    std::fs::create_dir_all(&folder)
        .map_err(|error| Failure::Work(format!("cannot make the folder {}: {error}", folder.display())))?;
    let credentials = credentials(&folder)?;
    let mail = MailPorts::open().map_err(Failure::work)?;
    let mut server = ServerProcess::start(&folder, &credentials, &mail, terminal)?;
    let shown = show_all(&folder, arguments, &credentials, (&mut server, &mail), terminal);
    let stopped = server.stop();
    shown?;
    stopped?;
    let configuration = demo_mail::write_configuration(&folder).map_err(Failure::work)?;
    terminal.say(&format!(
        "\nThe report: {}\nThe server again: {} serve --config {} --data-dir {}\nThen mail in the browser: http://127.0.0.1:5984/_app/ ({}, password {PEOPLE_PASSWORD})\n\
         and the console: http://127.0.0.1:5984/_utils/ ({}: see {})\n{}",
        folder.join("report/report.html").display(),
        std::env::args().next().unwrap_or_else(|| "scrinium".to_owned()),
        configuration.display(),
        folder.join("data").display(),
        name(1),
        credentials.name,
        folder.join("data").join(crate::credentials::FILE_NAME).display(),
        demo_mail::how_to(&name(1), PEOPLE_PASSWORD),
    ));
    Ok(())
}

fn folder(configuration: &Configuration) -> PathBuf {
    let named = configuration.get("server.data_dir").is_some_and(|found| found.source != Source::Default);
    if named { configuration.settings().server.data_dir } else { PathBuf::from(FOLDER) }
}

/// The administrator's name and password, kept in the data folder for the console.
fn credentials(folder: &Path) -> Result<Credentials, Failure> {
    let data = folder.join("data");
    std::fs::create_dir_all(&data).map_err(Failure::work)?;
    let kept = data.join(crate::credentials::FILE_NAME);
    if kept.exists() {
        return Credentials::read(&kept).map_err(Failure::work);
    }
    let random: u128 = rand::random();
    let credentials = Credentials { name: "admin".to_owned(), password: format!("{random:032x}") };
    credentials.write(&data).map_err(Failure::work)?;
    Ok(credentials)
}

/// The server of the demonstration, a process of its own, so that the laboratory measures it alone.
struct ServerProcess {
    child: Child,
    url: String,
}

impl ServerProcess {
    fn start(
        folder: &Path,
        credentials: &Credentials,
        mail: &MailPorts,
        terminal: &Terminal,
    ) -> Result<Self, Failure> {
        let port = free_port().map_err(Failure::work)?;
        let encrypted_port = free_port().map_err(Failure::work)?;
        let messages = std::fs::File::create(folder.join("server.messages")).map_err(Failure::work)?;
        let program = std::env::current_exe().map_err(Failure::work)?;
        let child = Command::new(program)
            .arg("serve")
            .arg("--data-dir")
            .arg(folder.join("data"))
            .env("SCRINIUM_HTTP__LISTEN", format!("127.0.0.1:{port}"))
            // With a certificate made for the demonstration.
            .env("SCRINIUM_HTTPS__LISTEN", format!("127.0.0.1:{encrypted_port}"))
            .envs(mail.settings())
            .env(crate::credentials::PASSWORD_VARIABLE, &credentials.password)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(messages)
            .spawn()
            .map_err(|error| Failure::Work(format!("the server cannot be started: {error}")))?;
        let url = format!("http://127.0.0.1:{port}");
        terminal.say(&format!(
            "A server answers at {url}, and encrypted at port {encrypted_port}; its data is in {}.",
            folder.join("data").display()
        ));
        Ok(Self { child, url })
    }

    async fn wait_until_up(&mut self, client: &ConsoleClient, folder: &Path) -> Result<(), Failure> {
        let began = Instant::now();
        while began.elapsed() < START_WITHIN {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Failure::Work(format!(
                    "the server ended with {status}; what it said is in {}",
                    folder.join("server.messages").display()
                )));
            }
            if client.request(Method::GET, "/_up", None).await.is_ok_and(|(status, _)| status.is_success()) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Err(Failure::Work(format!("the server did not answer within {} s", START_WITHIN.as_secs())))
    }

    fn stop(&mut self) -> Result<(), Failure> {
        let Ok(pid) = i32::try_from(self.child.id()) else { return Ok(()) };
        if let Some(pid) = rustix::process::Pid::from_raw(pid) {
            // One that has ended already needs no signal.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let began = Instant::now();
        while began.elapsed() < STOP_WITHIN {
            match self.child.try_wait() {
                Ok(Some(_)) => return Ok(()),
                Ok(None) => std::thread::sleep(Duration::from_millis(50)),
                Err(error) => return Err(Failure::work(error)),
            }
        }
        self.child.kill().map_err(Failure::work)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn show_all(
    folder: &Path,
    arguments: &DemoArguments,
    credentials: &Credentials,
    (server, mail): (&mut ServerProcess, &MailPorts),
    terminal: &Terminal,
) -> Result<(), Failure> {
    let runtime = Runtime::new().map_err(Failure::work)?;
    let client = ConsoleClient::new(&server.url, credentials.clone(), || crate::tls::client(&[]))
        .map_err(Failure::work)?;
    runtime.block_on(server.wait_until_up(&client, folder))?;
    runtime.block_on(register(&client, arguments.people))?;
    runtime.block_on(furnish(&client))?;
    terminal.say(&format!("{} people have a mail database each.", arguments.people));
    if let Some(messages) = &arguments.mail {
        import_for_all(folder, messages, &client, arguments.people, terminal)?;
    }
    let hands = arguments.mail.as_ref().map(|_| folder.join(HANDS));
    let people: Vec<String> = (1..=arguments.people).map(name).collect();
    let told = mail.exchange(hands.as_deref(), &people, PEOPLE_PASSWORD)?;
    told.iter().for_each(|sentence| terminal.say(sentence));
    terminal.say("The laboratory puts them to work (workload R5Mail) ...");
    runtime.block_on(load((folder, &server.url), arguments, credentials, &told))
}

fn name(number: u32) -> String {
    format!("user{number:04}")
}

/// Makes people and their mail databases; those that are there stay as they are.
async fn register(client: &ConsoleClient, people: u32) -> Result<(), Failure> {
    for number in 1..=people {
        let name = name(number);
        let person = json!({
            "_id": format!("person:{name}"), "Form": "Person", "FullName": [format!("User {number}/Demo")],
            "ShortName": name, "InternetAddress": format!("{name}@{DOMAIN}"), "MailFile": format!("mail/{name}"), "password": PEOPLE_PASSWORD,
        });
        put(client, &format!("/directory/person%3A{name}"), Some(person)).await?;
        put(client, &format!("/mail%2F{name}?owner={name}"), None).await?;
    }
    Ok(())
}

/// Rooms to book, and a directory in which people find each other and them.
async fn furnish(client: &ConsoleClient) -> Result<(), Failure> {
    for (name, shown, seats) in [("room1", "Room 1", 4), ("room2", "Room 2", 12)] {
        let room = json!({
            "_id": format!("person:{name}"), "Form": "Person", "FullName": [shown], "ShortName": name,
            "InternetAddress": format!("{name}@{DOMAIN}"), "Resource": "room", "Site": "Demo House", "Capacity": seats,
        });
        put(client, &format!("/directory/person%3A{name}"), Some(room)).await?;
    }
    put(client, "/directory/_acl", Some(json!({"default": {"level": "reader"}}))).await?;
    Ok(())
}

/// Whether it was not there before.
async fn put(client: &ConsoleClient, path: &str, body: Option<Value>) -> Result<bool, Failure> {
    let body = body.map(|body| body.to_string().into());
    let (status, answer) = client.request(Method::PUT, path, body).await.map_err(Failure::work)?;
    match status.as_u16() {
        200..=299 => Ok(true),
        409 | 412 => Ok(false),
        _ => Err(Failure::Work(format!("PUT {path}: {status}: {}", String::from_utf8_lossy(&answer)))),
    }
}

/// Deals the messages out like cards, then imports each person's.
fn import_for_all(
    folder: &Path,
    mail: &Path,
    client: &ConsoleClient,
    people: u32,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let hands = folder.join(HANDS);
    deal(mail, &hands, people)?;
    let began = Instant::now();
    let mut total = ImportReport::default();
    for number in 1..=people {
        let hand = hands.join(name(number));
        if !hand.exists() {
            continue;
        }
        let remote = RemoteMail::of_client(client.clone(), &name(number), &hand)?;
        let options = ImportOptions::for_person(&remote.person_id);
        let report = mail_import::import(&remote, &options, &hand, terminal)?;
        total.messages += report.messages;
        total.added += report.added;
        total.present += report.present;
        total.damaged += report.damaged;
        total.incomplete += report.incomplete;
        total.left_out += report.left_out;
    }
    terminal.say(&format!(
        "{} real messages imported in {:.1} s: {} new, {} there already, {} damaged and kept whole, {} \
         without a header field that they should have, {} left out.",
        total.messages,
        began.elapsed().as_secs_f64(),
        total.added,
        total.present,
        total.damaged,
        total.incomplete,
        total.left_out
    ));
    Ok(())
}

fn deal(mail: &Path, hands: &Path, people: u32) -> Result<(), Failure> {
    if hands.exists() {
        return Ok(());
    }
    let part = hands.with_extension("part");
    if part.exists() {
        std::fs::remove_dir_all(&part).map_err(Failure::work)?;
    }
    for number in 1..=people {
        std::fs::create_dir_all(part.join(name(number))).map_err(Failure::work)?;
    }
    let mut messages =
        MailFiles::open(mail, Position::default(), MESSAGE_LIMIT_BYTES).map_err(Failure::work)?;
    let mut number = 0_u32;
    while let Some(message) = messages.next_message() {
        // What cannot be read here is counted by the one who imports the folder itself.
        let Ok(message) = message else { continue };
        let owner = name(number % people + 1);
        let file = part.join(owner).join(format!("{number:06}.eml"));
        let mut file = std::fs::File::create(file).map_err(Failure::work)?;
        std::io::copy(&mut message.source.reader(), &mut file).map_err(Failure::work)?;
        number += 1;
    }
    std::fs::rename(&part, hands).map_err(Failure::work)
}

/// Users at work on the server at `url`; `notes` are shown in the report.
async fn load(
    (folder, url): (&Path, &str),
    arguments: &DemoArguments,
    credentials: &Credentials,
    notes: &[String],
) -> Result<(), Failure> {
    let report = folder.join("report");
    let mut words = vec![
        "lab".to_owned(),
        "load".to_owned(),
        "R5Mail".to_owned(),
        format!("--users={}", arguments.people),
        format!("--target={url}"),
        format!("--duration={}s", arguments.seconds),
        format!("--speedup={}", arguments.speedup),
        format!("--admin={}", credentials.name),
        format!("--password={}", credentials.password),
        format!("--user-password={PEOPLE_PASSWORD}"),
        format!("--report={}", report.display()),
    ];
    words.extend(notes.iter().map(|note| format!("--note={note}")));
    let parsed = LabCommandLine::try_parse_from(words).map_err(Failure::work)?;
    let outcome = scrinium_lab::run(parsed.lab).await.map_err(Failure::work)?;
    let why = match outcome {
        CommandOutcome::Done => return Ok(()),
        CommandOutcome::Missed => "the laboratory's run is not valid; its report says why",
        _ => "the laboratory's run failed; its report says why",
    };
    Err(Failure::of(outcome, why))
}
