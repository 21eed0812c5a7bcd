//! A storm of wrong passwords: 150 names from 150 addresses of this machine, and what honest clients notice of it.
//!
//! One client with a session writes and reads before and during the storm. During it people log in for the first time,
//! each from an address of their own; a client that is asked to come back later does so after the time that it was given.
//! `SCRINIUM_SECONDS` is how long the storm lasts.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use scrinium_bench::server::Server;
use scrinium_bench::{Against, Line, percentile, report, setting};
use serde_json::json;

const NAMES: u16 = 150;
const ROUNDS: usize = 3;

/// An honest client's operations follow each other after this pause.
const THINK: Duration = Duration::from_millis(2);

/// One person logs in after the other.
const LOG_IN_EVERY: Duration = Duration::from_millis(200);

/// No answer takes longer.
const ANSWER_MAX: Duration = Duration::from_secs(120);

/// Allowed with the storm: this many times what it is without, and in any case this many milliseconds.
const TIMES_QUIET: f64 = 10.0;
const LEAST_ALLOWED_MS: f64 = 10.0;
const LOG_IN_LIMIT_MS: f64 = 2000.0;

/// A connection from an address of this machine.
struct Client(BufReader<TcpStream>);

struct Answer {
    status: u16,
    cookie: Option<String>,
    retry_after: Option<u64>,
}

impl Client {
    fn open(from: Ipv4Addr, to: SocketAddr) -> Self {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&socket, &SocketAddr::from((from, 0))).unwrap();
        connect(&socket, &to).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(ANSWER_MAX)).unwrap();
        Self(BufReader::new(stream))
    }

    fn ask(&mut self, method: &str, path: &str, headers: &str, body: &str) -> std::io::Result<Answer> {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}"
        );
        self.0.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        let mut answer = Answer { status, cookie: None, retry_after: None };
        let mut length = 0;
        loop {
            line.clear();
            self.0.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap(),
                "set-cookie" => answer.cookie = value.trim().split(';').next().map(str::to_owned),
                "retry-after" => answer.retry_after = value.trim().parse().ok(),
                _ => {}
            }
        }
        self.0.read_exact(&mut vec![0; length])?;
        Ok(answer)
    }

    fn log_in(&mut self, name: &str, password: &str) -> std::io::Result<Answer> {
        let body = json!({"name": name, "password": password}).to_string();
        self.ask("POST", "/_session", "", &body)
    }
}

fn address(network: u8, number: u16) -> Ipv4Addr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(127, network, high, low)
}

/// Wrong passwords, one after the other, until the end.
fn guess(server: SocketAddr, (round, number): (u8, u16), end: &AtomicBool) -> u64 {
    // A later round is a storm from elsewhere: the former addresses are still locked.
    let from = address(50 + round, number);
    let mut client = Client::open(from, server);
    let mut guesses = 0;
    while !end.load(Ordering::Relaxed) {
        guesses += 1;
        if client.log_in(&format!("name{round}x{number}"), &format!("wrong {guesses}")).is_err() {
            client = Client::open(from, server);
        }
    }
    guesses
}

/// What an honest client's operations take until the end, in milliseconds.
fn work(client: &mut Client, cookie: &str, phase: &str, end: &AtomicBool) -> Vec<f64> {
    let headers = format!("Cookie: {cookie}\r\n");
    let mut times = Vec::new();
    while !end.load(Ordering::Relaxed) {
        let number = times.len();
        let (method, expected) = if number.is_multiple_of(2) { ("PUT", 201) } else { ("GET", 200) };
        let path = format!("/work/{phase}-{}", number / 2);
        let began = Instant::now();
        let answer = client.ask(method, &path, &headers, if method == "PUT" { "{}" } else { "" }).unwrap();
        times.push(began.elapsed().as_secs_f64() * 1000.0);
        assert_eq!(answer.status, expected, "{method} {path}");
        std::thread::sleep(THINK);
    }
    times
}

/// What it takes people to log in until the end, with all that they are told to wait, in milliseconds.
fn log_ins(server: SocketAddr, (round, people): (usize, usize), end: &AtomicBool) -> Vec<f64> {
    let mut times = Vec::new();
    for number in 0..people {
        if end.load(Ordering::Relaxed) {
            break;
        }
        let began = Instant::now();
        let mut client = Client::open(address(90, u16::try_from(round * people + number).unwrap()), server);
        loop {
            let answer = client.log_in(&person(round, number), &password(number)).unwrap();
            match answer.status {
                200 => break,
                429 => std::thread::sleep(Duration::from_secs(answer.retry_after.unwrap())),
                other => panic!("{other}"),
            }
        }
        times.push(began.elapsed().as_secs_f64() * 1000.0);
        std::thread::sleep(LOG_IN_EVERY);
    }
    times
}

fn person(round: usize, number: usize) -> String {
    format!("person{round}x{number}")
}

fn password(number: usize) -> String {
    format!("the password of {number}")
}

fn after<T>(time: Duration, end: &AtomicBool, work: impl FnOnce() -> T + Send) -> T
where
    T: Send,
{
    std::thread::scope(|scope| {
        let working = scope.spawn(work);
        std::thread::sleep(time);
        end.store(true, Ordering::Relaxed);
        working.join().unwrap()
    })
}

fn main() {
    let seconds = setting("SCRINIUM_SECONDS", 20_u64);
    let lasts = Duration::from_secs(seconds);
    let people = usize::try_from(seconds * 4).unwrap();
    let server = Server::start(env!("CARGO_BIN_EXE_scrinium"), &[]);
    let mut administrator = server.connect();
    administrator.request("PUT", "/work", "");
    let (mut honest, mut allowed, mut log_in) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        for number in 0..people {
            let name = person(round, number);
            let document = json!({"_id": format!("person:{name}"), "Form": "Person", "FullName": [name.clone()],
                "ShortName": name, "password": password(number)});
            administrator.request("PUT", &format!("/directory/person:{name}"), &document.to_string());
        }
        let mut client = Client::open(Ipv4Addr::LOCALHOST, server.address());
        let opened = client.log_in("admin", scrinium_bench::server::PASSWORD).unwrap();
        let cookie = opened.cookie.unwrap();
        let end = AtomicBool::new(false);
        let quiet = after(lasts / 4, &end, || work(&mut client, &cookie, &format!("{round}-quiet"), &end));
        let end = AtomicBool::new(false);
        let (during, log_ins, guesses) = after(lasts, &end, || {
            std::thread::scope(|scope| {
                let storm: Vec<_> = (0..NAMES)
                    .map(|number| {
                        let (server, end) = (server.address(), &end);
                        let place = (u8::try_from(round).unwrap(), number + 1);
                        scope.spawn(move || guess(server, place, end))
                    })
                    .collect();
                let logging_in = scope.spawn(|| log_ins(server.address(), (round, people), &end));
                let during = work(&mut client, &cookie, &format!("{round}-storm"), &end);
                let guesses: u64 = storm.into_iter().map(|thread| thread.join().unwrap()).sum();
                (during, logging_in.join().unwrap(), guesses)
            })
        });
        let (quiet_ms, during_ms) = (percentile(&quiet, 0.99), percentile(&during, 0.99));
        let log_in_ms = percentile(&log_ins, 0.99);
        eprintln!(
            "round {round}: {guesses} guesses; {} operations, p99 {during_ms:.2} ms ({quiet_ms:.2} ms before); {} \
             log-ins, p99 {log_in_ms:.0} ms",
            during.len(),
            log_ins.len(),
        );
        honest.push(during_ms);
        allowed.push((quiet_ms * TIMES_QUIET).max(LEAST_ALLOWED_MS));
        log_in.push(log_in_ms);
    }
    report(&Line {
        name: "login-storm",
        case: "honest client, p99",
        values: &honest,
        unit: "ms",
        against: Against::Measured("allowed: 10 x quiet, at least 10 ms", &allowed),
    });
    report(&Line {
        name: "login-storm",
        case: "honest log-in with a password during the storm, p99",
        values: &log_in,
        unit: "ms",
        against: Against::Given("the limit", LOG_IN_LIMIT_MS),
    });
}
