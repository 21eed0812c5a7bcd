//! Senders that a server's death interrupts send again, as they must, and everybody gets each message once.
//!
//! Sixteen senders hand in messages by SMTP: for one person, for two, for the same ones by a group's name, and for more people than
//! one batch takes, which go through a mail.box. The server is killed again and again. `SCRINIUM_SEED=… SCRINIUM_KILLS=…` repeats
//! a run, as far as the moments of kills can be repeated, or makes it longer.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_fault::Kills;
use serde_json::{Value, json};

use crate::common::{SMALL, Server};

const SENDERS: usize = 16;

/// More than one batch takes.
const PEOPLE: usize = 20;

/// So long a sender tries to bring one message.
const SENT_WITHIN: Duration = Duration::from_secs(120);

const DELIVERED_WITHIN: Duration = Duration::from_secs(60);

fn start(folder: &Path, port: u16) -> Server {
    let listen = format!("127.0.0.1:{port}");
    let own = [("SCRINIUM_MAIL__DOMAINS", "acme.example"), ("SCRINIUM_SMTP__LISTEN", listen.as_str())];
    Server::start(folder, &[&SMALL[..], &own].concat())
}

fn add_people(server: &Server) {
    let mut docs: Vec<Value> = (0..PEOPLE)
        .map(|number| {
            let name = format!("p{number}");
            json!({"_id": format!("person:{name}"), "Form": "Person", "ShortName": name, "FullName": [name]})
        })
        .collect();
    let all: Vec<String> = (0..PEOPLE).map(|number| format!("p{number}")).collect();
    for (name, members) in [("two", &all[..2]), ("all", &all[..])] {
        docs.push(
            json!({"_id": format!("group:{name}"), "Form": "Group", "ListName": name, "Members": members,
                "MayWrite": "everybody"}),
        );
    }
    server.client().json("POST", "/directory/_bulk_docs", &json!({"docs": docs})).unwrap().expect(201);
}

/// To whom message `number` goes: addresses, and how many people, from the first on, get it.
fn recipients(number: usize) -> (&'static [&'static str], usize) {
    match number % 6 {
        0 | 1 => (&["p0"], 1),
        2 => (&["p0", "p1"], 2),
        3 => (&["two"], 2),
        4 => (&["two", "p1", "p2"], 3),
        _ => (&["all"], PEOPLE),
    }
}

/// Hands in one message; its text is as long as its number says.
fn send(
    connection: &mut Option<BufReader<TcpStream>>,
    port: u16,
    (sender, number): (usize, usize),
) -> io::Result<()> {
    let mut stream = match connection.take() {
        Some(stream) => stream,
        None => open(port)?,
    };
    let mut lines = vec![format!("MAIL FROM:<s{sender}@far.example>")];
    lines.extend(recipients(number).0.iter().map(|name| format!("RCPT TO:<{name}@acme.example>")));
    lines.push("DATA".to_owned());
    stream.get_mut().write_all((lines.join("\r\n") + "\r\n").as_bytes())?;
    for _ in 1..lines.len() {
        expect(&mut stream, "250")?;
    }
    expect(&mut stream, "354")?;
    let text = "of many words ".repeat(5).repeat(number % 40);
    let text = format!(
        "Message-ID: <{sender}.{number}@far.example>\r\nSubject: {sender} {number}\r\n\r\n{text}\r\n.\r\n"
    );
    stream.get_mut().write_all(text.as_bytes())?;
    expect(&mut stream, "250")?;
    *connection = Some(stream);
    Ok(())
}

fn open(port: u16) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut stream = BufReader::new(stream);
    expect(&mut stream, "220")?;
    stream.get_mut().write_all(b"EHLO far.example\r\n")?;
    expect(&mut stream, "250")?;
    Ok(stream)
}

/// One whole reply.
fn expect(stream: &mut BufReader<TcpStream>, code: &str) -> io::Result<()> {
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line.as_bytes().get(3) != Some(&b'-') {
            // A server that is about to end says so, and one that has just begun may be busy.
            let is_temporary = line.starts_with('4');
            assert!(is_temporary || line.starts_with(code), "{line}");
            return if is_temporary { Err(io::Error::other(line)) } else { Ok(()) };
        }
    }
}

/// Sends message after message, each until it is acknowledged; how many there were.
fn send_until(port: u16, sender: usize, stop: &AtomicBool) -> usize {
    let mut connection = None;
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        while let Err(error) = send(&mut connection, port, (sender, number)) {
            assert!(began.elapsed() < SENT_WITHIN, "message {sender} {number} is not taken: {error}");
            std::thread::sleep(Duration::from_millis(20));
        }
        number += 1;
    }
    number
}

/// How often a person has each message.
fn found(server: &Server, person: usize) -> BTreeMap<String, usize> {
    let answer = server.client().get(&format!("/mail%2Fp{person}/_all_docs?include_docs=true")).unwrap();
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    if answer.status == 404 {
        return found;
    }
    for row in answer.expect(200).value()["rows"].as_array().unwrap() {
        if let Some(subject) = row["doc"]["Subject"].as_str() {
            *found.entry(subject.to_owned()).or_default() += 1;
        }
    }
    found
}

#[test]
fn each_message_that_was_acknowledged_is_there_once_whenever_the_server_is_killed() {
    let kills = Kills::from_environment(10);
    println!("{kills}");
    let mut random = StdRng::seed_from_u64(kills.seed);
    let folder = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = start(folder.path(), port);
    add_people(&server);
    let stop = AtomicBool::new(false);
    let sent: Vec<usize> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                scope.spawn({
                    let stop = &stop;
                    move || send_until(port, sender, stop)
                })
            })
            .collect();
        for _ in 0..kills.count {
            std::thread::sleep(Duration::from_millis(random.random_range(100..700)));
            server.kill();
            server = start(folder.path(), port);
        }
        stop.store(true, Ordering::Relaxed);
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    });
    println!("{} messages", sent.iter().sum::<usize>());
    assert!(sent.iter().sum::<usize>() > SENDERS * 4, "so few messages show nothing");
    let began = Instant::now();
    for person in 0..PEOPLE {
        let expected: BTreeMap<String, usize> = (0..SENDERS)
            .flat_map(|sender| (0..sent[sender]).map(move |number| (sender, number)))
            .filter(|(_, number)| person < recipients(*number).1)
            .map(|(sender, number)| (format!("{sender} {number}"), 1))
            .collect();
        // What goes through a mail.box may be on its way still.
        while found(&server, person).len() < expected.len() && began.elapsed() < DELIVERED_WITHIN {
            std::thread::sleep(Duration::from_millis(50));
        }
        let found = found(&server, person);
        let missing: Vec<&String> = expected.keys().filter(|subject| !found.contains_key(*subject)).collect();
        let waiting = server.client().get("/mail.box/_all_docs?include_docs=true").unwrap().value();
        assert_eq!(found, expected, "p{person} misses {missing:?}; in the mail.box: {waiting}");
    }
}
