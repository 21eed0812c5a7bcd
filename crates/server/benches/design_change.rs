//! What the other users of a database notice while a new design document's seven views are built.
//!
//! Eight clients read pages of a view that is there and update documents over HTTP, at half the rate that they reach
//! without think times. Each round measures them for a while, and then from the storing of another new design document
//! to the first answer of its views; between the rounds it is removed. Asked for: p99 at most twice as high.
//! `cargo bench -p scrinium-server --bench design_change`; `SCRINIUM_DOCUMENTS=20000` for another size.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

use std::thread::sleep;
use std::time::Duration;

use scrinium_bench::discussion::{another_design, design};
use scrinium_bench::process::Processors;
use scrinium_bench::server::{Discussion, Reads, Server, Times};
use scrinium_bench::{Against, Line, percentile, report, setting, timed};

const DOCUMENTS: u64 = 256_000;
const CLIENTS: u64 = 8;
const ROUNDS: u64 = 5;
const BEFORE: Duration = Duration::from_secs(8);
/// After each round, so that what is cleared away does not disturb the next one.
const FLAT_OUT: Duration = Duration::from_secs(5);
/// Of the rate without think times; `SCRINIUM_PACE` for another.
const PACE: f64 = 0.5;

type Kind = fn(&Times) -> &[f64];

struct Place {
    server: Server,
    discussion: Discussion,
}

impl Place {
    /// The clients work while `meanwhile` runs.
    fn load(&self, think: Duration, seed: u64, meanwhile: impl FnOnce()) -> Times {
        self.discussion.load(&self.server, (CLIENTS, Reads::Pages), think, seed, meanwhile).0
    }

    /// The think time at which the clients ask for their part of what the server can do.
    fn think(&self) -> Duration {
        let flat_out = self.load(Duration::ZERO, 0, || sleep(FLAT_OUT)).operations() as f64;
        let pace = setting("SCRINIUM_PACE", PACE);
        let rate = pace * flat_out / FLAT_OUT.as_secs_f64();
        eprintln!("{rate:.0} operations a second, {pace} of what {CLIENTS} clients reach flat out");
        Duration::from_secs_f64(CLIENTS as f64 / rate)
    }
}

fn main() {
    let server = Server::start(env!("CARGO_BIN_EXE_scrinium"), &[]);
    let discussion = Discussion::fill(&server, "discussion", setting("SCRINIUM_DOCUMENTS", DOCUMENTS));
    let mut connection = server.connect();
    discussion.build(&mut connection, &design());
    let place = Place { server, discussion };
    let think = place.think();
    place.server.settle();
    let (mut before, mut during) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let processors = Processors::now();
        before.push(place.load(think, round << 1, || sleep(BEFORE)));
        let busy = processors.busy_since();
        let (design, mut revision) = (another_design(round), String::new());
        let (times, building) = timed(|| {
            place.load(think, round << 1 | 1, || revision = place.discussion.build(&mut connection, &design))
        });
        eprintln!(
            "round {round}: cores at work {:.0} % before; views built in {building:.1?} beside {} operations",
            busy * 100.0,
            times.operations()
        );
        during.push(times);
        place.discussion.remove(&mut connection, &design, &revision);
        place.server.settle();
    }
    let lines: [(&str, Kind); 2] =
        [("a page of a view that is there", |times| &times.reads), ("an update", |times| &times.updates)];
    for (what, kind) in lines {
        for (name, part) in [("median", 0.5), ("p99", 0.99)] {
            let of = |rounds: &[Times]| -> Vec<f64> {
                rounds.iter().map(|times| percentile(kind(times), part)).collect()
            };
            report(&Line {
                name: "design-change",
                case: &format!(
                    "{what}, {name}, while 7 new views of {} documents are built",
                    place.discussion.documents()
                ),
                values: &of(&during),
                unit: "us",
                against: Against::Measured("before (asked for: p99 at most twice as high)", &of(&before)),
            });
        }
    }
}
