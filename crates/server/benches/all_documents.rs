//! What 250 users notice when two others work in a view of 500,000 documents.
//!
//! Each of the 250 has a database of 200 documents and seven views, reads pages of it and updates it over HTTP, with
//! think times of the open model, at a rate that the cores hold half idle. In every other round two more users do the
//! same, at the same pace, at random places of the view of all documents of a database with 500,000 and the same seven
//! views. Only the 250 are measured. Asked for: less than 5 % on the median. The laboratory's scripts give all users
//! the same work and pages in their order, so the users are here. `cargo bench -p scrinium-server --bench
//! all_documents`; `SCRINIUM_DOCUMENTS=20000` for another size of the large view.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a benchmark stops at the first error"
)]

use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::Duration;

use scrinium_bench::client::{Connection, crowd, work};
use scrinium_bench::discussion::design;
use scrinium_bench::process::Processors;
use scrinium_bench::server::{Discussion, Reads, Server};
use scrinium_bench::{Against, Line, percentile, report, scatter, setting};

const DOCUMENTS: u64 = 500_000;
const USERS: u64 = 250;
const OWN_DOCUMENTS: u64 = 200;
const TWO: u64 = 2;
const ROUNDS: u64 = 7;
const ROUND: Duration = Duration::from_secs(12);
const FLAT_OUT: Duration = Duration::from_secs(5);
/// As many as keep the cores at work without think times.
const FLAT_OUT_USERS: u64 = 8;
/// Of the rate without think times; `SCRINIUM_PACE` for another.
const PACE: f64 = 0.5;

struct Place {
    server: Server,
    own: Vec<Discussion>,
    large: Discussion,
}

impl Place {
    fn fill() -> Self {
        let server = Server::start(env!("CARGO_BIN_EXE_scrinium"), &[]);
        let mut connection = server.connect();
        let mut fill = |name: &str, documents: u64| {
            let discussion = Discussion::fill(&server, name, documents);
            discussion.build(&mut connection, &design());
            discussion
        };
        let own = (0..USERS).map(|number| fill(&format!("user{number}"), OWN_DOCUMENTS)).collect();
        let large = fill("large", setting("SCRINIUM_DOCUMENTS", DOCUMENTS));
        Self { server, own, large }
    }

    /// One user's work; gives how long each operation took, in microseconds.
    fn user(&self, discussion: &Discussion, think: Duration, end: &AtomicBool, seed: u64) -> Vec<f64> {
        let mut connection: Connection = self.server.connect();
        let done = work(think, end, seed, |random| discussion.operate(&mut connection, Reads::Pages, random));
        done.into_iter().map(|(_, took)| took).collect()
    }

    /// The think time at which the users ask for their part of what the server can do.
    fn think(&self) -> Duration {
        let user = |number: u64, end: &_| self.user(&self.own[number as usize], Duration::ZERO, end, number);
        let (done, ()) = crowd(FLAT_OUT_USERS, user, || sleep(FLAT_OUT));
        let operations: usize = done.iter().map(Vec::len).sum();
        let pace = setting("SCRINIUM_PACE", PACE);
        let rate = pace * operations as f64 / FLAT_OUT.as_secs_f64();
        eprintln!("{rate:.0} operations a second, {pace} of what {FLAT_OUT_USERS} users reach flat out");
        Duration::from_secs_f64(USERS as f64 / rate)
    }

    /// How long the operations of the 250 took, and the share of the cores that worked.
    fn round(&self, think: Duration, with_two: bool, seed: u64) -> (Vec<f64>, f64) {
        let user = |number: u64, end: &_| {
            let discussion = self.own.get(number as usize).unwrap_or(&self.large);
            self.user(discussion, think, end, scatter(seed << 16 ^ number))
        };
        let users = if with_two { USERS + TWO } else { USERS };
        let processors = Processors::now();
        let (mut done, ()) = crowd(users, user, || sleep(ROUND));
        let others: usize = done.drain(USERS as usize..).map(|times| times.len()).sum();
        let busy = processors.busy_since();
        let times: Vec<f64> = done.into_iter().flatten().collect();
        eprintln!(
            "{} operations of {USERS} users and {others} of others: median {:.0} us, p99 {:.0} us; cores at work {:.0} %",
            times.len(),
            percentile(&times, 0.5),
            percentile(&times, 0.99),
            busy * 100.0
        );
        (times, busy)
    }
}

fn main() {
    let place = Place::fill();
    let think = place.think();
    let (mut with, mut without, mut busy_percent) = (Vec::new(), Vec::new(), Vec::new());
    // The first round of each kind warms up. Which comes first changes from round to round.
    for round in 0..=ROUNDS {
        for with_two in [round.is_multiple_of(2), !round.is_multiple_of(2)] {
            let (times, busy) = place.round(think, with_two, round << 1 | u64::from(with_two));
            if round > 0 {
                if with_two { &mut with } else { &mut without }.push(times);
                busy_percent.push(busy * 100.0);
            }
        }
    }
    for (name, part) in [("median", 0.5), ("p99", 0.99)] {
        let of = |rounds: &[Vec<f64>]| -> Vec<f64> {
            rounds.iter().map(|times| percentile(times, part)).collect()
        };
        report(&Line {
            name: "all-documents",
            case: &format!(
                "{USERS} users, {name}, while 2 work in a view of {} documents",
                place.large.documents()
            ),
            values: &of(&with),
            unit: "us",
            against: Against::Measured(
                "without the 2 (asked for: less than 5 % on the median)",
                &of(&without),
            ),
        });
    }
    report(&Line {
        name: "all-documents",
        case: "cores at work, clients' and server's",
        values: &busy_percent,
        unit: "%",
        against: Against::Given("what is meant", 50.0),
    });
}
