//! Seven views of a discussion database compared with PostgreSQL with seven equivalent indexes over `jsonb`.
//!
//! Both hold the same documents on the same disk, as safe (every commit is synced) and with as much memory. Ours is
//! asked over HTTP on loopback, PostgreSQL over its socket by pgbench: Debian's own client, which costs the least and
//! prepares its statements, so that what the clients take of the cores is not to our advantage. Nor is the rest:
//! PostgreSQL's indexes are of keys alone, which it compares as bytes (building them as ours are is a line of its own),
//! and an update there changes a member in place while ours sends the document. Rounds alternate between the two.
//! `cargo bench -p scrinium-server --bench against_postgres`; `SCRINIUM_DOCUMENTS=20000 SCRINIUM_PAGE_DOCUMENTS=40000`
//! for other sizes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

mod postgres;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use postgres::{BUDGET_MB, Postgres};
use scrinium_bench::client::{Connection, crowd, work};
use scrinium_bench::discussion::{another_design, date, design};
use scrinium_bench::server::{Discussion, Server};
use scrinium_bench::{Against, Line, median, report, scatter, setting, timed};
use serde_json::Value;

/// That views are built of, and that are updated.
const DOCUMENTS: u64 = 256_000;
/// That pages are read of, from the entry at four fifths.
const PAGE_DOCUMENTS: u64 = 500_000;
const BUILD_ROUNDS: u64 = 3;
const UPDATE_ROUNDS: u64 = 5;
const UPDATE_CLIENTS: [u64; 2] = [8, 64];
const UPDATE_ROUND: Duration = Duration::from_secs(8);
/// How often somebody looks at a view while documents are updated.
const LOOK: Duration = Duration::from_secs(1);
const PAGE_ROUNDS: u64 = 5;
const PAGES: u64 = 500;
/// PostgreSQL's pages at an offset take long enough to be measured by few.
const OFFSET_PAGES: &str = "20";
const VIEW: &str = "discussion/_view/all%20documents";

/// An index that is equivalent to a view.
struct Index {
    name: &'static str,
    /// What the view sorts by; `TEXT` stands for a collation of what people read.
    keys: &'static str,
    /// What else its rows show.
    values: &'static str,
    /// What it selects.
    selection: &'static str,
}

const AUTHOR: &str = "(split_part(substr(body->>'From', 4), '/', 1))";
const SUBJECT: &str = "(body->>'Subject')";
const SUBJECT_AND_SIZE: &str = "(body->>'Subject'), ((body->>'Size')::int)";

const INDEXES: [Index; 7] = [
    Index {
        name: "all_documents",
        keys: "(body->>'Date') DESC",
        values: SUBJECT_AND_SIZE,
        selection: "true",
    },
    Index {
        name: "by_author",
        keys: "(split_part(substr(body->>'From', 4), '/', 1)) TEXT, (body->>'Date') DESC",
        values: SUBJECT,
        selection: "true",
    },
    Index {
        name: "by_category",
        keys: "(body->>'Categories') TEXT, (body->>'Date')",
        values: SUBJECT_AND_SIZE,
        selection: "body->>'Form' = 'MainTopic' OR body->>'Form' = 'Response'",
    },
    Index {
        name: "topics",
        keys: "(lower(body->>'Subject')) TEXT",
        values: AUTHOR,
        selection: "body->>'Form' = 'MainTopic'",
    },
    Index {
        name: "responses",
        keys: "(body->>'$REF'), (body->>'Date')",
        values: AUTHOR,
        selection: "body ? '$REF'",
    },
    Index {
        name: "open",
        keys: "(body->>'Status') TEXT, (body->>'Date') DESC",
        values: SUBJECT,
        selection: "body->>'Status' <> 'Closed'",
    },
    Index {
        name: "by_month",
        keys: "(substr(body->>'Date', 1, 7))",
        values: SUBJECT_AND_SIZE,
        selection: "true",
    },
];

/// What an index holds, and how it compares.
#[derive(Clone, Copy)]
enum Content {
    /// Keys alone, as bytes.
    Least,
    /// Keys in ICU's order and what the rows show, as ours.
    AsOurs,
}

impl Index {
    fn statement(&self, content: Content) -> String {
        let Self { name, keys, values, selection } = self;
        let (keys, values) = match content {
            Content::Least => (keys.replace(" TEXT", ""), String::new()),
            Content::AsOurs => (keys.replace("TEXT", "COLLATE \"und-x-icu\""), format!(", {values}")),
        };
        let only = if *selection == "true" { String::new() } else { format!(" WHERE {selection}") };
        format!("CREATE INDEX {name} ON documents ({keys}, id{values}){only}")
    }
}

const DROP_INDEXES: &str =
    "DROP INDEX all_documents, by_author, by_category, topics, responses, open, by_month";
/// A random date and document, as ours are.
const RANDOM: &str = "\\set year random(1990, 1999)\n\\set month random(1, 12)\n\\set day random(1, 28)\n\
    \\set hour random(0, 23)\n\\set minute random(0, 59)\n";
const DATE: &str = "format('%s-%s-%sT%s:%s:00Z', :year::text, lpad(:month::text, 2, '0'), \
    lpad(:day::text, 2, '0'), lpad(:hour::text, 2, '0'), lpad(:minute::text, 2, '0'))";
const COLUMNS: &str = "SELECT id, body->>'Date', body->>'Subject', (body->>'Size')::int FROM documents";

fn line(case: &str, values: &[f64], unit: &str, against: &str, theirs: &[f64]) {
    report(&Line {
        name: "against-postgres",
        case,
        values,
        unit,
        against: Against::Measured(against, theirs),
    });
}

struct Both {
    server: Server,
    discussion: Discussion,
    postgres: Postgres,
}

impl Both {
    fn fill(documents: u64) -> Self {
        let budget = format!("{BUDGET_MB} MB");
        let server = Server::start(env!("CARGO_BIN_EXE_scrinium"), &[("SCRINIUM_MEMORY__BUDGET", &budget)]);
        let (discussion, ours) = timed(|| Discussion::fill(&server, "discussion", documents));
        let postgres = Postgres::start();
        postgres.run("CREATE TABLE documents (id text PRIMARY KEY, body jsonb NOT NULL)");
        let ((), theirs) = timed(|| postgres.store(0, documents));
        eprintln!("{documents} documents stored in {ours:.1?}, by {} in {theirs:.1?}", postgres.name);
        Self { server, discussion, postgres }
    }

    /// Seconds for the seven indexes, which are there afterwards.
    fn build_theirs(&self, content: Content) -> f64 {
        let statements = INDEXES.map(|index| index.statement(content)).join(";");
        let ((), took) = timed(|| drop(self.postgres.run(&statements)));
        took.as_secs_f64()
    }

    /// Building what seven views need. It is there afterwards on both sides.
    fn compare_builds(&self) {
        self.postgres.run("VACUUM ANALYZE documents");
        self.postgres.run("CHECKPOINT");
        let mut connection = self.server.connect();
        let (mut ours, mut least, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..BUILD_ROUNDS {
            let another = another_design(round);
            let (revision, took) = timed(|| self.discussion.build(&mut connection, &another));
            ours.push(took.as_secs_f64());
            self.discussion.remove(&mut connection, &another, &revision);
            whole.push(self.build_theirs(Content::AsOurs));
            self.postgres.run(DROP_INDEXES);
            least.push(self.build_theirs(Content::Least));
            eprintln!(
                "built: ours {ours:.1?} s, theirs {least:.1?} s, with all that ours hold {whole:.1?} s"
            );
            if round + 1 < BUILD_ROUNDS {
                self.postgres.run(DROP_INDEXES);
            }
        }
        self.discussion.build(&mut connection, &design());
        let case = format!("7 views of {} documents built", self.discussion.documents());
        let name = &self.postgres.name;
        line(&case, &ours, "s", &format!("{name}, 7 indexes of keys alone, compared as bytes"), &least);
        line(
            &case,
            &ours,
            "s",
            &format!("{name}, 7 indexes of keys in ICU's order and columns, as ours"),
            &whole,
        );
    }

    /// Our updates a second. Somebody looks at a view each second, and at the end, which counts.
    fn update_ours(&self, clients: u64, seed: u64) -> f64 {
        let client = |number: u64, end: &AtomicBool| {
            let mut connection = self.server.connect();
            if number == clients {
                return self.look(&mut connection, end);
            }
            let updated = work(Duration::ZERO, end, scatter(seed << 16 ^ number), |random| {
                self.discussion.update(&mut connection, random);
            });
            updated.len()
        };
        let began = Instant::now();
        let (updates, ()) = crowd(clients + 1, client, || thread::sleep(UPDATE_ROUND));
        updates.into_iter().sum::<usize>() as f64 / began.elapsed().as_secs_f64()
    }

    fn look(&self, connection: &mut Connection, end: &AtomicBool) -> usize {
        let mut next = Instant::now() + LOOK;
        while !end.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(20));
            if Instant::now() >= next {
                self.discussion.read_page(connection, VIEW, "");
                next += LOOK;
            }
        }
        self.discussion.read_page(connection, VIEW, "");
        0
    }

    fn compare_updates(&self) {
        let script = format!(
            "{RANDOM}\\set number random(0, {})\n\\set id :number * 2654435761 % 4294967296\n\
             UPDATE documents SET body = jsonb_set(body, '{{Date}}', to_jsonb({DATE})) \
             WHERE id = lpad(:id::text, 16, '0');\n",
            self.discussion.documents() - 1
        );
        let seconds = UPDATE_ROUND.as_secs().to_string();
        for clients in UPDATE_CLIENTS {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            // The first round warms up.
            for round in 0..=UPDATE_ROUNDS {
                let values = (
                    self.update_ours(clients, round),
                    self.postgres.measure(&script, clients, ["-T", &seconds]),
                );
                eprintln!("{clients} clients: {:.0} updates/s, theirs {:.0}", values.0, values.1.each_second);
                if round > 0 {
                    ours.push(values.0);
                    theirs.push(values.1.each_second);
                }
            }
            let updated =
                self.postgres.run("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'documents'");
            let asked = theirs.iter().sum::<f64>() * UPDATE_ROUND.as_secs_f64();
            assert!(updated.parse::<f64>().unwrap() > asked, "not every update found its document");
            let case = format!("updates that 7 views follow, {clients} clients");
            line(&case, &ours, "updates/s", &format!("{}, 7 indexes", self.postgres.name), &theirs);
        }
    }

    /// Pages of a larger database, by one client: at an entry's number, at a key, and behind the page before.
    fn compare_pages(&mut self, documents: u64) {
        self.postgres.store(self.discussion.documents(), documents);
        self.discussion.grow(&self.server, documents);
        self.postgres.run("VACUUM ANALYZE documents");
        self.postgres.run("CHECKPOINT");
        let entry = documents / 5 * 4;
        let by_date = "ORDER BY body->>'Date' DESC, id LIMIT 30";
        let offset = format!("{COLUMNS} {} OFFSET {entry};\n", by_date);
        let keyset = format!("{RANDOM}{COLUMNS} WHERE body->>'Date' <= {DATE} {by_date};\n");
        let name = self.postgres.name.clone();
        let mut connection = self.server.connect();
        let (mut at_entry, mut at_key, mut next) = (Vec::new(), Vec::new(), Vec::new());
        let (mut at_offset, mut at_keyset) = (Vec::new(), Vec::new());
        let pages = PAGES.to_string();
        // The first round warms up.
        for round in 0..=PAGE_ROUNDS {
            let ours = [
                self.pages(&mut connection, round, &mut |_, _| format!("start={entry}")),
                self.pages(&mut connection, round, &mut |random, _| {
                    format!("startkey=[%22{}%22]", date(random))
                }),
                self.pages(&mut connection, round, &mut |_, page| format!("next=true{}", from(page))),
            ];
            let theirs = [
                median(&self.postgres.measure(&offset, 1, ["-t", OFFSET_PAGES]).took),
                median(&self.postgres.measure(&keyset, 1, ["-t", &pages]).took),
            ];
            eprintln!("pages: {ours:.0?} us at a number, at a key, next; theirs {theirs:.0?} us");
            if round > 0 {
                let [number, key, behind] = ours;
                at_entry.push(number);
                at_key.push(key);
                next.push(behind);
                let [number, key] = theirs;
                at_offset.push(number);
                at_keyset.push(key);
            }
        }
        let at = format!("30 entries from number {entry} of {documents}");
        line(&at, &at_entry, "us", &format!("{name}, OFFSET {entry} LIMIT 30"), &at_offset);
        let keyset = format!("{name}, the same by keyset");
        line(&format!("30 entries from a random key of {documents}"), &at_key, "us", &keyset, &at_keyset);
        line(&format!("30 entries behind the page before, of {documents}"), &next, "us", &keyset, &at_keyset);
    }

    /// The median time of a page, in microseconds; `parameters` are told a random number and the page before.
    fn pages(
        &self,
        connection: &mut Connection,
        round: u64,
        parameters: &mut dyn FnMut(u64, &str) -> String,
    ) -> f64 {
        let mut page = String::new();
        let took: Vec<f64> = (0..PAGES)
            .map(|number| {
                let parameters = parameters(scatter(round << 32 ^ number), &page);
                let (answer, took) = timed(|| self.discussion.read_page(connection, VIEW, &parameters));
                answer.clone_into(&mut page);
                took.as_secs_f64() * 1e6
            })
            .collect();
        median(&took)
    }
}

/// The parameter that continues behind a page, if there was one.
fn from(page: &str) -> String {
    let page: Value = serde_json::from_str(page).unwrap_or_default();
    page.get("next").and_then(Value::as_str).map_or_else(String::new, |next| format!("&from={next}"))
}

fn main() {
    let documents = setting("SCRINIUM_DOCUMENTS", DOCUMENTS);
    let mut both = Both::fill(documents);
    both.compare_builds();
    both.compare_updates();
    both.compare_pages(setting("SCRINIUM_PAGE_DOCUMENTS", PAGE_DOCUMENTS).max(documents));
}
