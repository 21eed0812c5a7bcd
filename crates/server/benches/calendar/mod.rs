//! Calendars for benchmarks: events, programs that store and ask for them, Scrinium with people, and Debian's Radicale.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "each benchmark uses another part of it, and stops at the first error"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::Signal;
use scrinium_bench::client::Connection;
use scrinium_bench::process::{Process, command};
use scrinium_bench::server::{PASSWORD, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Everybody's address ends so.
pub const DOMAIN: &str = "bench.invalid";

/// No answer takes longer.
const ANSWER_WITHIN: Duration = Duration::from_secs(300);

/// Everybody's password of old.
const OLD_PASSWORD: &str = "a password of benchmarks";

/// A day of the week that is asked for: the 8th of March 2027, a Monday.
const MONDAY_DAYS: i64 = 20_885;

/// The week that is asked for, as queries have it.
pub const WEEK: (&str, &str) = ("20270308T000000Z", "20270315T000000Z");

pub fn person(number: u64) -> String {
    format!("u{number}")
}

/// A program's connection. It is opened again where the server has closed it.
pub struct Client {
    address: SocketAddr,
    authorization: String,
    stream: Option<BufReader<TcpStream>>,
}

impl Client {
    pub fn new(address: SocketAddr, name: &str, password: &str) -> Self {
        let login = STANDARD.encode(format!("{name}:{password}"));
        Self { address, authorization: format!("Authorization: Basic {login}\r\n"), stream: None }
    }

    /// The status and the body of the answer.
    pub fn ask(&mut self, (method, path): (&str, &str), headers: &str, body: &str) -> (u16, String) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\n{}{headers}Content-Length: {}\r\n\r\n{body}",
            self.authorization,
            body.len()
        );
        let mut stream = self.stream.take().unwrap_or_else(|| self.connect());
        stream.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut head, mut line) = (String::new(), String::new());
        while line != "\r\n" {
            line.clear();
            assert!(stream.read_line(&mut line).unwrap() > 0, "{method} {path}: there is no answer");
            head.push_str(&line);
        }
        let head = head.to_ascii_lowercase();
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = header("content-length:").map(|length| length.parse().unwrap());
        let is_last = head.starts_with("http/1.0") || header("connection:") == Some("close");
        let mut answer = Vec::new();
        match length {
            Some(length) => {
                answer.resize(length, 0);
                stream.read_exact(&mut answer).unwrap();
            }
            None if is_last => {
                stream.read_to_end(&mut answer).unwrap();
            }
            None => {}
        }
        if !is_last {
            self.stream = Some(stream);
        }
        (status, String::from_utf8(answer).unwrap())
    }

    /// The body of an answer that is a success.
    pub fn expect(&mut self, asked: (&str, &str), headers: &str, body: &str) -> String {
        let (status, answer) = self.ask(asked, headers, body);
        assert!((200..300).contains(&status), "{asked:?}: {status} {answer}");
        answer
    }

    fn connect(&self) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(ANSWER_WITHIN)).unwrap();
        BufReader::new(stream)
    }
}

/// Scrinium, with people.
pub struct Ours {
    pub server: Server,
    admin: Connection,
}

/// Who has a domain for mail has meetings and free time.
const fn settings() -> [(&'static str, &'static str); 1] {
    [("SCRINIUM_MAIL__DOMAINS", DOMAIN)]
}

impl Ours {
    pub fn start(people: u64) -> Self {
        let server = Server::start(env!("CARGO_BIN_EXE_scrinium"), &settings());
        let mut admin = server.connect();
        let person = |number| {
            let name = person(number);
            json!({"_id": format!("person:{name}"), "Form": "Person", "ShortName": name, "FullName": [name],
                "InternetAddress": format!("{name}@{DOMAIN}")})
        };
        let people: Vec<Value> = (0..people).map(person).collect();
        admin.request("POST", "/directory/_bulk_docs", &json!({"docs": people}).to_string());
        Self { server, admin }
    }

    /// Ends the server in order, and starts it again.
    pub fn restart(self) -> Self {
        let folder = self.server.stop();
        let server = Server::start_in(folder, env!("CARGO_BIN_EXE_scrinium"), &settings());
        let admin = server.connect();
        Self { server, admin }
    }

    /// An app password of somebody for calendars.
    pub fn password(&mut self, name: &str) -> String {
        let path = format!("/directory/person:{name}");
        let mut document: Value = serde_json::from_str(self.admin.request("GET", &path, "")).unwrap();
        document["password"] = json!(OLD_PASSWORD);
        self.admin.request("PUT", &path, &document.to_string());
        let mut own = Connection::open(self.server.address(), name, OLD_PASSWORD);
        let asked = json!({"name": "calendars", "protocols": ["caldav"]}).to_string();
        let made: Value =
            serde_json::from_str(own.request("POST", "/_credentials/app_passwords", &asked)).unwrap();
        made["password"].as_str().unwrap().to_owned()
    }

    /// Puts the events of a file into somebody's calendar.
    pub fn import(&self, file: &Path, name: &str, calendar: &str) {
        let url = format!("http://{}", self.server.address());
        let mut import = Command::new(env!("CARGO_BIN_EXE_scrinium"));
        import.args(["import", "ics", "--person", name, "--calendar", calendar, "--url", &url]).arg(file);
        import.env("SCRINIUM_ADMIN_PASSWORD", PASSWORD).env("HOME", file.parent().unwrap());
        import.stdin(Stdio::null()).stdout(Stdio::null());
        let output = import.stderr(Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Radicale, which lets everybody in, and syncs what it stores.
pub struct Radicale {
    pub address: SocketAddr,
    _process: Process,
    _folder: TempDir,
}

impl Radicale {
    /// `None`, with a word on why, where it cannot be started.
    pub fn start() -> Option<Self> {
        let program = ["/usr/bin/radicale", "/usr/local/bin/radicale"]
            .into_iter()
            .find(|path| Path::new(path).exists());
        let Some(program) = program else {
            eprintln!("Radicale is not there; scripts/peers installs it");
            return None;
        };
        let folder = scrinium_bench::folder();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut radicale = command(program, None);
        radicale.args(["--config", "", "--auth-type", "none", "--server-max-connections", "100"]);
        radicale.arg("--server-hosts").arg(address.to_string());
        radicale.arg("--storage-filesystem-folder").arg(folder.path().join("calendars"));
        radicale.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::start(&mut radicale, Signal::TERM);
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "Radicale did not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Self { address, _process: process, _folder: folder })
    }
}

/// A calendar of one event, as programs store it.
pub fn calendar_of(event: &str) -> String {
    format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Bench//EN\r\n{event}END:VCALENDAR\r\n")
}

/// An event of an hour, on a day counted from the Monday of the week that is asked for.
pub fn event(uid: &str, day: i64, hour: u64, rule: &str) -> String {
    let (year, month, date) = date_of(MONDAY_DAYS + day);
    format!(
        "BEGIN:VEVENT\r\nUID:{uid}\r\nDTSTAMP:20260101T000000Z\r\nDTSTART:{year:04}{month:02}{date:02}T{hour:02}0000Z\r\n\
         DURATION:PT1H\r\nSUMMARY:Meeting {uid} on the state of things\r\nLOCATION:Room {hour}\r\n\
         DESCRIPTION:What was decided last time\\, what was done about it\\, and what is to be done until the next time.\r\n\
         {rule}END:VEVENT\r\n"
    )
}

/// Year, month and day of a day since 1970 (the usual reckoning by eras of 400 years).
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, date)
}

/// Ten years of events, one in twenty a series. The week that is asked for holds 20 occurrences, 5 of them of series, however many
/// events there are.
pub fn ten_years(events: u64, name: &str) -> String {
    let mut all = String::new();
    for number in 0..events {
        let uid = format!("{name}-{number}");
        let hour = number % 24;
        let one = match number {
            0..15 => event(&uid, i64::try_from(number % 7).unwrap(), hour, ""),
            15..20 => event(&uid, -70, hour, "RRULE:FREQ=WEEKLY\r\n"),
            _ => {
                let aside = 14 + i64::try_from(number * 7_919 % 1_800).unwrap();
                let day = if number % 2 == 0 { -aside - 14 } else { aside };
                event(&uid, day, hour, if number % 20 == 0 { "RRULE:FREQ=DAILY;COUNT=3\r\n" } else { "" })
            }
        };
        all.push_str(&one);
    }
    calendar_of(&all)
}

/// The question for the week.
pub fn week_query() -> String {
    let (from, to) = WEEK;
    format!(
        "<C:calendar-query xmlns:C=\"urn:ietf:params:xml:ns:caldav\" xmlns:D=\"DAV:\"><D:prop><D:getetag/></D:prop><C:filter>\
         <C:comp-filter name=\"VCALENDAR\"><C:comp-filter name=\"VEVENT\"><C:time-range start=\"{from}\" end=\"{to}\"/>\
         </C:comp-filter></C:comp-filter></C:filter></C:calendar-query>"
    )
}
