//! Connections to the port for SMTP that do nothing, and an honest sender among others who are not.
//!
//! Ten thousand connections greet and stay: what the server's memory has grown by. Then an honest sender hands in messages,
//! first alone, then while others send slowly, hugely, pipelined, smuggled, and to ten thousand recipients; what it takes until a
//! message of the honest one is acknowledged. `cargo bench -p scrinium-server --bench smtp_idle`; `SCRINIUM_CONNECTIONS`,
//! `SCRINIUM_SECONDS` and `SCRINIUM_ROUNDS` make it shorter.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

mod mail;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mail::ours::Ours;
use mail::sender::{Dialect, Sender};
use mail::{DOMAIN, message, raise_files};
use scrinium_bench::process::memory_bytes;
use scrinium_bench::{Against, Line, percentile, report, setting};

const MESSAGE_BYTES: usize = 10 << 10;
const LIMIT_KB: f64 = 30.0;

/// The honest one sends a message so often.
const EVERY: Duration = Duration::from_millis(20);

/// A hostile one waits so long after each thing that it does: the machine is also theirs.
const PAUSE: Duration = Duration::from_millis(25);

/// What somebody hostile does once; what becomes of it is nobody's concern.
type Attack = fn(SocketAddr) -> std::io::Result<()>;

const ATTACKS: [Attack; 5] = [slow, huge, pipelined, smuggled, many_recipients];

fn main() {
    let connections = setting("SCRINIUM_CONNECTIONS", 10_000_u64);
    let lasts = Duration::from_secs(setting("SCRINIUM_SECONDS", 5));
    let rounds = setting("SCRINIUM_ROUNDS", 3);
    raise_files(connections + 1000);
    let most = (connections + 1000).to_string();
    let limits =
        [("SCRINIUM_LIMITS__NETWORK_CONNECTIONS", most.as_str()), ("SCRINIUM_HTTP__MAX_CONNECTIONS", &most)];
    let (mut idle_kb, mut alone, mut among) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let ours = Ours::start(&limits);
        idle_kb.push(memory_of_idle(&ours, connections));
        let number = AtomicU64::new(0);
        let quiet = honest(&ours, lasts, &number);
        let end = AtomicBool::new(false);
        let beside = std::thread::scope(|scope| {
            for attack in ATTACKS {
                for _ in 0..2 {
                    let (to, end) = (ours.smtp, &end);
                    scope.spawn(move || {
                        while !end.load(Ordering::Relaxed) {
                            // Being cut off is what is asked for.
                            drop(attack(to));
                            std::thread::sleep(PAUSE);
                        }
                    });
                }
            }
            let times = honest(&ours, lasts, &number);
            end.store(true, Ordering::Relaxed);
            times
        });
        let (quiet_ms, beside_ms) = (percentile(&quiet, 0.99), percentile(&beside, 0.99));
        eprintln!(
            "round {round}: {:.1} KB a connection; honest p99 {quiet_ms:.2} ms alone ({} messages), {beside_ms:.2} ms beside hostile ({})",
            idle_kb.last().unwrap(),
            quiet.len(),
            beside.len()
        );
        alone.push(quiet_ms);
        among.push(beside_ms);
    }
    let case = format!("{connections} idle connections, memory a connection");
    let case = if connections == 10_000 { "memory a connection" } else { &case };
    let against = Against::Given("the limit", LIMIT_KB);
    report(&Line { name: "smtp-idle", case, values: &idle_kb, unit: "KB", against });
    let against = Against::Measured("alone (asked for: 2 at most)", &alone);
    let case = "honest sender, p99 beside hostile";
    report(&Line { name: "smtp-idle", case, values: &among, unit: "ms", against });
}

/// What each of these connections takes once it has greeted, in KB.
fn memory_of_idle(ours: &Ours, connections: u64) -> f64 {
    let memory = || memory_bytes(ours.server().process_id()) / 1024.0;
    // What the first ones need is there for all.
    let mut open: Vec<Sender> = (0..50).map(|_| Sender::open(ours.smtp, Dialect::Smtp)).collect();
    std::thread::sleep(Duration::from_secs(1));
    let before = memory();
    open.extend((0..connections).map(|_| Sender::open(ours.smtp, Dialect::Smtp)));
    std::thread::sleep(Duration::from_secs(2));
    let grown = memory() - before;
    assert_eq!(open.last_mut().unwrap().ask("NOOP"), 250);
    assert_eq!(open.first_mut().unwrap().ask("NOOP"), 250, "nobody was sent away");
    grown / connections as f64
}

/// Sends message after message; how long each took, in milliseconds.
fn honest(ours: &Ours, lasts: Duration, number: &AtomicU64) -> Vec<f64> {
    let (began, mut times) = (Instant::now(), Vec::new());
    let mut sender = Sender::open(ours.smtp, Dialect::Smtp);
    while began.elapsed() < lasts {
        let number = number.fetch_add(1, Ordering::Relaxed);
        let text = message(number, MESSAGE_BYTES);
        let sent = Instant::now();
        sender.send(number, &text);
        times.push(sent.elapsed().as_secs_f64() * 1000.0);
        std::thread::sleep(EVERY);
    }
    times
}

fn connect(to: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.set_write_timeout(Some(Duration::from_secs(2)))?;
    Ok(stream)
}

/// Reads what there is to read until the other side has closed, or says nothing for a while.
fn listen(mut stream: TcpStream) -> std::io::Result<()> {
    let mut read = [0; 4096];
    while stream.read(&mut read)? > 0 {}
    Ok(())
}

/// A byte at a time.
fn slow(to: SocketAddr) -> std::io::Result<()> {
    let mut stream = connect(to)?;
    for byte in
        format!("EHLO x\r\nMAIL FROM:<eve@elsewhere.example>\r\nRCPT TO:<u1@{DOMAIN}>\r\nDATA\r\nSubject")
            .bytes()
    {
        stream.write_all(&[byte])?;
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// A message that is longer than any may be.
fn huge(to: SocketAddr) -> std::io::Result<()> {
    let mut stream = connect(to)?;
    stream.write_all(
        format!("EHLO x\r\nMAIL FROM:<eve@elsewhere.example>\r\nRCPT TO:<u1@{DOMAIN}>\r\nDATA\r\n")
            .as_bytes(),
    )?;
    let line = [b"x".repeat(998), b"\r\n".to_vec()].concat().repeat(64);
    for _ in 0..64 {
        stream.write_all(&line)?;
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Thousands of commands at once.
fn pipelined(to: SocketAddr) -> std::io::Result<()> {
    let mut stream = connect(to)?;
    stream.write_all(&b"RSET\r\nNOOP\r\nVRFY root\r\n".repeat(2000))?;
    listen(stream)
}

/// A second message behind an end that is not valid.
fn smuggled(to: SocketAddr) -> std::io::Result<()> {
    let mut stream = connect(to)?;
    stream.write_all(
        format!(
            "EHLO x\r\nMAIL FROM:<eve@elsewhere.example>\r\nRCPT TO:<u1@{DOMAIN}>\r\nDATA\r\nSubject: one\n.\r\n\
             MAIL FROM:<mallory@elsewhere.example>\r\nRCPT TO:<u2@{DOMAIN}>\r\nDATA\r\nSubject: two\r\n.\r\nQUIT\r\n"
        )
        .as_bytes(),
    )?;
    listen(stream)
}

fn many_recipients(to: SocketAddr) -> std::io::Result<()> {
    let mut stream = connect(to)?;
    let recipients: String =
        (0..10_000).map(|number| format!("RCPT TO:<u{}@{DOMAIN}>\r\n", number % 100)).collect();
    let mut listening = stream.try_clone()?;
    let reader = std::thread::spawn(move || {
        let mut read = [0; 16 << 10];
        while matches!(listening.read(&mut read), Ok(length) if length > 0) {}
    });
    stream.write_all(
        format!("EHLO x\r\nMAIL FROM:<eve@elsewhere.example>\r\n{recipients}QUIT\r\n").as_bytes(),
    )?;
    // It ends when the server has closed, or said nothing for a while.
    drop(reader.join());
    Ok(())
}
