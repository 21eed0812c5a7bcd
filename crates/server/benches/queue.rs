//! The queue of outgoing mail: what a hundred thousand messages cost that wait, how late a message is that is due among them, how long
//! a server takes to serve again that is killed with them, and how fast ten thousand go out.
//!
//! What waiting takes of memory is the difference between two servers that have ended in order, were started again and have come to
//! rest: one with an empty queue, one with all of them deferred. After a kill, what the log holds would be in memory as well, within the
//! server's budget, whatever it is of. Beside them, messages to a hundred hosts become due; each is as late as the
//! time between the one in its entry and that at which the other side hears of it again. Then messages for one host that was not
//! there go out to Postfix's smtp-sink, from ours and from Postfix in turn, and from ours beside messages to a host that accepts
//! connections and says nothing. `cargo bench -p scrinium-server --bench queue`; `SCRINIUM_MESSAGES` is how many wait,
//! `SCRINIUM_DUE` how many become due, `SCRINIUM_DRAINED` how many go out, `SCRINIUM_ROUNDS` how many rounds there are.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

mod mail;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use mail::free_port;
use mail::later::{Later, NEVER};
use mail::ours::Ours;
use mail::peers::{PostfixQueue, SmtpSink};
use mail::sender::{Dialect, Sender};
use scrinium_bench::process::memory_bytes;
use scrinium_bench::{Against, Line, percentile, report, setting};
use serde_json::{Value, json};

const MESSAGE_BYTES: usize = 4 << 10;
const WAITING_BYTES: usize = 1 << 10;
const AT_ONCE: u64 = 500;
const MEGABYTE: f64 = 1_048_576.0;
const MEMORY_LIMIT_MB: f64 = 30.0;
const LATENESS_LIMIT_S: f64 = 1.0;
const SERVING_LIMIT_S: f64 = 2.0;

/// All that was asked for happens within this time.
const DONE_WITHIN: Duration = Duration::from_secs(1200);

/// Messages become due after this: time enough to have all of them deferred before.
const DUE_AFTER: &str = "30 s";

/// Their hosts, and the groups in which they come, half a second apart.
const DUE_HOSTS: u64 = 100;
const DUE_GROUPS: u64 = 10;

fn main() {
    let rounds = setting("SCRINIUM_ROUNDS", 3_u64);
    waiting(rounds, setting("SCRINIUM_MESSAGES", 100_000), setting("SCRINIUM_DUE", 2000));
    drained(rounds, setting("SCRINIUM_DRAINED", 10_000));
}

/// Settings that lead mail by these rules.
fn settings<'a>(transports: &'a Path, first_retry: &'a str) -> [(&'a str, &'a str); 4] {
    [
        ("SCRINIUM_OUTBOUND__ROUTE", "mx"),
        ("SCRINIUM_OUTBOUND__TRANSPORTS", transports.to_str().unwrap()),
        ("SCRINIUM_QUEUE__FIRST_RETRY", first_retry),
        // Nobody is to hear of a delay.
        ("SCRINIUM_QUEUE__DELAY_NOTICE", "0"),
    ]
}

/// Writes messages, each to one recipient.
fn write(ours: &mut Ours, recipients: impl IntoIterator<Item = String>, bytes: usize) {
    let line = "x".repeat(70) + "\n";
    let body = line.repeat(bytes.div_ceil(line.len()));
    let memos: Vec<Value> = recipients
        .into_iter()
        .map(|to| json!({"Form": "Memo", "From": "u1", "SendTo": [to], "Subject": to, "Body": body}))
        .collect();
    for memos in memos.chunks(usize::try_from(AT_ONCE).unwrap()) {
        let answer = ours.request("POST", "/mail.box/_bulk_docs", &json!({"docs": memos}));
        let refused = answer.as_array().unwrap().iter().find(|result| result.get("error").is_some());
        assert!(refused.is_none(), "{refused:?}");
    }
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < DONE_WITHIN, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn console(ours: &mut Ours, command: &str) -> Value {
    ours.request("POST", "/_console", &json!({"command": command}))
}

/// Kills a server and starts it again; gives how long it took until it serves HTTP and SMTP.
fn restart(ours: Ours, settings: &[(&str, &str)]) -> (Ours, f64) {
    let folder = ours.kill();
    let began = Instant::now();
    let mut ours = Ours::start_in(folder, settings);
    ours.request("GET", "/smtp.box", &Value::Null);
    drop(Sender::open(ours.smtp, Dialect::Smtp));
    let took = began.elapsed().as_secs_f64();
    (ours, took)
}

fn memory_mb(ours: &Ours) -> f64 {
    ours.server().settle();
    memory_bytes(ours.server().process_id()) / MEGABYTE
}

/// The memory of a server that is started again after it has ended in order.
fn memory_at_rest_mb(ours: Ours, settings: &[(&str, &str)]) -> (Ours, f64) {
    let ours = Ours::start_in(ours.stop(), settings);
    let memory = memory_mb(&ours);
    (ours, memory)
}

fn waiting(rounds: u64, messages: u64, due: u64) {
    let later = Later::start();
    let folder = scrinium_bench::folder();
    let transports = folder.path().join("transports");
    fs::write(&transports, format!(".later.invalid relay {} tls=off\n", later.address)).unwrap();
    let long = settings(&transports, "1 d");
    let mut ours = Ours::start(&long);
    let mut empty = Vec::new();
    for _ in 0..rounds {
        let memory;
        (ours, memory) = memory_at_rest_mb(restart(ours, &long).0, &long);
        empty.push(memory);
    }
    for first in (0..messages).step_by(usize::try_from(AT_ONCE).unwrap()) {
        let numbers = first..messages.min(first + AT_ONCE);
        let recipient = |number| format!("{NEVER}{number}@d{}.later.invalid", number % 1000);
        write(&mut ours, numbers.map(recipient), WAITING_BYTES);
    }
    until("all are deferred", || ours.count("Outbound.Queue.Deferred") >= messages);
    eprintln!("{messages} are deferred; memory {:.0} MB, right after the work", memory_mb(&ours));
    let (mut grown, mut serving) = (Vec::new(), Vec::new());
    for (round, empty) in empty.iter().enumerate() {
        // It is killed while there is something to do.
        write(&mut ours, (0..AT_ONCE).map(|number| format!("{NEVER}{round}-{number}@e.later.invalid")), 1);
        let took;
        (ours, took) = restart(ours, &long);
        until("the rest is deferred", || ours.count("Outbound.Queue.Deferred") >= messages);
        let memory;
        (ours, memory) = memory_at_rest_mb(ours, &long);
        eprintln!(
            "round {round}: serving after {took:.2} s; memory {memory:.0} MB, of an empty queue {empty:.0} MB"
        );
        serving.push(took);
        grown.push(memory - empty);
    }
    let late = lateness(ours, &later, &transports, due);
    let case = |what: &str| {
        if messages == 100_000 { what.to_owned() } else { format!("{what} ({messages} waiting)") }
    };
    let given = |what: &'static str, limit| Against::Given(what, limit);
    let limit = given("the limit", MEMORY_LIMIT_MB);
    let name = format!("{messages} deferred, memory");
    report(&Line { name: "queue", case: &name, values: &grown, unit: "MB", against: limit });
    let limit = given("the limit", LATENESS_LIMIT_S);
    let name = case("due message, lateness p99");
    report(&Line { name: "queue", case: &name, values: &[late], unit: "s", against: limit });
    let limit = given("the limit", SERVING_LIMIT_S);
    let name = case("restart after kill -9, serving");
    report(&Line { name: "queue", case: &name, values: &serving, unit: "s", against: limit });
}

/// How late messages are that become due while others wait, of 99 in a hundred at most, in seconds.
fn lateness(ours: Ours, later: &Later, transports: &Path, due: u64) -> f64 {
    let (mut ours, _) = restart(ours, &settings(transports, DUE_AFTER));
    let since = ours.request("GET", "/smtp.box", &Value::Null)["update_seq"].clone();
    let since = since.as_str().map_or_else(|| since.to_string(), str::to_owned);
    for group in 0..DUE_GROUPS {
        let numbers = (0..due).filter(|number| number % DUE_GROUPS == group);
        let recipient = |number| format!("due{number}@h{}.later.invalid", number % DUE_HOSTS);
        write(&mut ours, numbers.map(recipient), WAITING_BYTES);
        std::thread::sleep(Duration::from_millis(500));
    }
    // By what their entries say, once each was tried.
    let mut due_ms: Vec<(String, u64)> = Vec::new();
    until("those that become due are deferred", || {
        let path = format!("/smtp.box/_changes?include_docs=true&since={since}");
        let changes = ours.request("GET", &path, &Value::Null);
        let entries = changes["results"].as_array().unwrap().iter().map(|change| &change["doc"]);
        due_ms = entries
            .filter(|entry| entry["attempts"] == 1 && entry.get("attempt").is_none())
            .filter_map(|entry| {
                let to = entry["recipients"][0]["address"].as_str()?.to_owned();
                to.starts_with("due").then_some((to, entry["due_ms"].as_u64()?))
            })
            .collect();
        due_ms.len() as u64 >= due
    });
    until("all that was due was tried again", || later.again_ms().len() as u64 >= due);
    let again_ms = later.again_ms();
    let late: Vec<f64> =
        due_ms.iter().map(|(to, due_ms)| again_ms[to].saturating_sub(*due_ms) as f64 / 1000.0).collect();
    let [half, most, worst] = [0.5, 0.99, 1.0].map(|part| percentile(&late, part));
    eprintln!(
        "{due} became due: late by {half:.3} s in the middle, {most:.3} s of 99 %, {worst:.3} s at most"
    );
    most
}

/// The numbers of messages a second that went out.
fn drained(rounds: u64, messages: u64) {
    let at = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let Some(postfix) = PostfixQueue::start(at) else { return };
    // Connections to it are made, and nobody accepts them.
    let dead = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = scrinium_bench::folder();
    let transports = folder.path().join("transports");
    let rules = format!(
        "sink.invalid relay {at} tls=off\n.dead.invalid relay {} tls=off\n",
        dead.local_addr().unwrap()
    );
    fs::write(&transports, rules).unwrap();
    let mut ours = Ours::start(&settings(&transports, "1 d"));
    let mut rates: [Vec<f64>; 3] = Default::default();
    for round in 0..=rounds {
        let alone = drain(&mut ours, at, messages);
        postfix.fill(messages, MESSAGE_BYTES);
        let sink = SmtpSink::start(at);
        let theirs = until_taken(&sink, messages, postfix.send_all());
        drop(sink);
        let dead = (0..messages / 10).map(|number| format!("bob{number}@d{}.dead.invalid", number % 10));
        write(&mut ours, dead, MESSAGE_BYTES);
        until("some are tried", || ours.count("Outbound.Queue.Active") > 0);
        let beside = drain(&mut ours, at, messages);
        console(&mut ours, "tell router discard *");
        let measured = [("ours", alone), ("Postfix", theirs), ("ours beside a dead destination", beside)];
        for ((who, rate), rates) in measured.into_iter().zip(&mut rates) {
            eprintln!("round {round}: {who}: {messages} messages, {rate:.0}/s");
            // The first round fills caches.
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    let [alone, theirs, beside] = &rates;
    let case = format!("{messages} drained to a sink, messages");
    let against = Against::Measured("Postfix (asked for: 3)", theirs);
    report(&Line { name: "queue", case: &case, values: alone, unit: "messages/s", against });
    let case = format!("{messages} drained beside a dead destination, messages");
    let against = Against::Measured("without it (asked for: 0.9)", alone);
    report(&Line { name: "queue", case: &case, values: beside, unit: "messages/s", against });
}

/// Has messages wait for a host that is not there, starts it, and has them go out.
fn drain(ours: &mut Ours, at: SocketAddr, messages: u64) -> f64 {
    let before = ours.count("Outbound.Queue.Incoming") + ours.count("Outbound.Queue.Deferred");
    write(ours, (0..messages).map(|number| format!("bob{number}@sink.invalid")), MESSAGE_BYTES);
    until("all are in the queue", || {
        ours.count("Outbound.Queue.Incoming") + ours.count("Outbound.Queue.Deferred") >= before + messages
    });
    ours.server().settle();
    let sink = SmtpSink::start(at);
    let began = Instant::now();
    let answer = console(ours, &format!("tell router retry relay:{at}"));
    let rate = until_taken(&sink, messages, began);
    assert!(sink.messages() >= messages, "{answer}");
    rate
}

fn until_taken(sink: &SmtpSink, messages: u64, began: Instant) -> f64 {
    until("all have gone out", || sink.messages() >= messages);
    messages as f64 / began.elapsed().as_secs_f64()
}
