//! Mail programs that wait: what ten thousand connections with TLS take of the server's memory, and how soon a thousand sessions on
//! one folder see a message that is delivered.
//!
//! `cargo bench -p scrinium-server --bench imap_idle`; `SCRINIUM_CONNECTIONS`, `SCRINIUM_SESSIONS` and `SCRINIUM_ROUNDS` make it
//! shorter.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

mod mail;

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use mail::imap::{Client, Place, dated, ours_with_imap};
use mail::ours::Ours;
use mail::raise_files;
use mail::sender::{Dialect, Sender};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use scrinium_bench::process::memory_bytes;
use scrinium_bench::{Against, Line, median, report, setting};

type Encrypted = StreamOwned<ClientConnection, TcpStream>;

const MEMORY_LIMIT_KB: f64 = 100.0;
const SEEN_LIMIT_MS: f64 = 20.0;
const PEOPLE: u64 = 10;

fn main() {
    let connections = setting("SCRINIUM_CONNECTIONS", 10_000_u64);
    let sessions = setting("SCRINIUM_SESSIONS", 1_000_u64);
    let rounds: usize = setting("SCRINIUM_ROUNDS", 11);
    raise_files(connections.max(sessions) + 1000);
    let most = (connections.max(sessions) + 1000).to_string();
    let limits = [
        ("SCRINIUM_LIMITS__NETWORK_CONNECTIONS", most.as_str()),
        ("SCRINIUM_LIMITS__PERSON_CONNECTIONS", &most),
        ("SCRINIUM_HTTP__MAX_CONNECTIONS", &most),
    ];
    let (ours, place, tls) = ours_with_imap(PEOPLE, &limits);
    let seen = seen_after(&ours, &place, sessions, rounds);
    let grown = memory_of_waiting((&ours, &place, tls), connections);
    let case = format!("memory a connection, {connections} with TLS");
    let against = Against::Given("the limit", MEMORY_LIMIT_KB);
    report(&Line { name: "imap-idle", case: &case, values: &[grown], unit: "KB", against });
    let case = format!("delivery seen, median of {sessions}");
    let against = Against::Given("the limit", SEEN_LIMIT_MS);
    report(&Line { name: "imap-idle", case: &case, values: &seen, unit: "ms", against });
}

fn waits<S: std::io::Read + std::io::Write>(client: &mut Client<S>) {
    client.ask("SELECT INBOX");
    client.send(b"i IDLE\r\n");
    while !client.line().starts_with(b"+") {}
}

/// From the moment at which a message is sent until half of the sessions have heard of it, in milliseconds, round by round.
fn seen_after(ours: &Ours, place: &Place, sessions: u64, rounds: usize) -> Vec<f64> {
    let (heard, hears) = channel();
    for _ in 0..sessions {
        let mut client = place.log_in(0);
        waits(&mut client);
        let heard = heard.clone();
        let listen = move || {
            while let Some(line) = client.next_line() {
                if line.ends_with(b"EXISTS\r\n") && heard.send(Instant::now()).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().stack_size(64 << 10).spawn(listen).unwrap();
    }
    let mut sender = Sender::open(ours.lmtp, Dialect::Lmtp);
    let mut medians = Vec::new();
    for round in 0..=rounds {
        let text = dated(round as u64, 10 << 10);
        let began = Instant::now();
        sender.send(0, &text);
        let times: Vec<f64> = (0..sessions)
            .map(|_| (hears.recv_timeout(Duration::from_secs(60)).unwrap() - began).as_secs_f64() * 1000.0)
            .collect();
        eprintln!("round {round}: {sessions} sessions: {:.2} ms", median(&times));
        // The first round fills caches.
        if round > 0 {
            medians.push(median(&times));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    medians
}

/// What each connection takes of the server's memory while it waits, in KB.
fn memory_of_waiting((ours, place, tls): (&Ours, &Place, SocketAddr), connections: u64) -> f64 {
    let settings = trusting(&ours.server().folder().join("tls/certificate.pem"));
    let open = |number: u64| -> Client<Encrypted> {
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(settings.clone(), name).unwrap();
        let stream = StreamOwned::new(connection, TcpStream::connect(tls).unwrap());
        let mut client = Client::greeted(stream);
        client.log_in(number % PEOPLE, place);
        waits(&mut client);
        client
    };
    let memory = || memory_bytes(ours.server().process_id()) / 1024.0;
    // What the first ones need is there for all.
    let mut all: Vec<_> = (0..50).map(open).collect();
    std::thread::sleep(Duration::from_secs(1));
    let before = memory();
    all.extend((0..connections).map(open));
    std::thread::sleep(Duration::from_secs(2));
    let grown = memory() - before;
    for client in [0, all.len() - 1] {
        all[client].send(b"DONE\r\n");
        while !all[client].line().starts_with(b"i OK") {}
    }
    eprintln!("{connections} connections: {grown:.0} KB");
    grown / connections as f64
}

fn trusting(certificate: &Path) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(certificate).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}
