//! The seeds' Test Case #3: seven views of a discussion database are built from its documents.
//!
//! 256,000 documents of some 600 bytes, as in the article (155 MB), which took 5,571 s and left the file
//! 382 % larger. `cargo bench -p scrinium-database --bench view_build`; `SCRINIUM_DOCUMENTS` for another size.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_precision_loss, reason = "a benchmark")]

use std::sync::Arc;

use scrinium_bench::{Against, Line, folder, report, scatter, timed};
use scrinium_database::{Database, DatabaseOptions, Databases, Edit, EditMode, RowQuery};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use serde_json::{Value, json};

const SEEDS_SECONDS: f64 = 5571.0;
const SEEDS_GROWTH: f64 = 3.82;
const ROUNDS: usize = 3;
const AT_ONCE: u64 = 1000;

const WORDS: [&str; 24] = [
    "agenda", "budget", "client", "delivery", "engine", "forecast", "goal", "holiday", "index", "journey",
    "kitchen", "ledger", "meeting", "network", "office", "project", "question", "report", "schedule",
    "travel", "update", "vendor", "window", "year",
];

fn words(seed: u64, count: u64) -> String {
    let word = |at: u64| WORDS[usize::try_from(scatter(seed ^ at) % WORDS.len() as u64).unwrap()];
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

fn document(number: u64) -> Value {
    let random = scatter(number);
    let is_response = random % 10 < 6 && number > 0;
    let status = ["Open", "Closed", "Pending"][usize::try_from(random % 3).unwrap()];
    let mut document = json!({
        "_id": format!("{:016x}", scatter(number ^ 0xabcd)),
        "Form": if is_response { "Response" } else { "MainTopic" },
        "Subject": words(random, 4 + random % 5),
        "From": format!("CN={} {}/O=Acme", words(random % 97, 1), words(random % 389, 1)),
        "Categories": format!("{} {}", words(random % 13, 1), random % 13),
        "Date": format!("199{}-{:02}-{:02}T{:02}:{:02}:00Z", random % 10, random / 7 % 12 + 1, random / 11 % 28 + 1,
            random / 13 % 24, random / 17 % 60),
        "Size": random % 20_000,
        "Status": status,
        "Body": words(random ^ 1, 40),
    });
    if is_response {
        document["$REF"] = json!(format!("{:016x}", scatter((number / 2) ^ 0xabcd)));
    }
    document
}

fn design() -> Value {
    let column = |title: &str, formula: &str| json!({"title": title, "formula": formula});
    let sorted =
        |title: &str, formula: &str, sort: &str| json!({"title": title, "formula": formula, "sort": sort});
    let category = |formula: &str| json!({"title": "Category", "formula": formula, "category": true});
    let size = json!({"title": "Size", "formula": "Size", "total": true});
    let name = "@Name([CN]; From)";
    json!({"_id": "_design/discussion", "language": "formula", "views": {
        "all documents": {"selection": "SELECT @All",
            "columns": [sorted("Date", "Date", "desc"), column("Subject", "Subject"), size]},
        "by author": {"selection": "SELECT @All",
            "columns": [{"title": "Author", "formula": name, "category": true}, sorted("Date", "Date", "desc"),
                column("Subject", "Subject")]},
        "by category": {"selection": "SELECT Form = \"MainTopic\" | Form = \"Response\"",
            "columns": [category("Categories"), sorted("Date", "Date", "asc"), column("Subject", "Subject"), size]},
        "topics": {"selection": "SELECT Form = \"MainTopic\"",
            "columns": [sorted("Subject", "@LowerCase(Subject)", "asc"), column("Author", name)]},
        "responses": {"selection": "SELECT @IsAvailable($REF)",
            "columns": [sorted("Parent", "$REF", "asc"), sorted("Date", "Date", "asc"), column("Author", name)]},
        "open": {"selection": "SELECT Status != \"Closed\"",
            "columns": [sorted("Status", "Status", "asc"), sorted("Date", "Date", "desc"), column("Subject", "Subject")]},
        "by month": {"selection": "SELECT @All",
            "columns": [category("@Text(@Year(Date)) + \"-\" + @Right(\"0\" + @Text(@Month(Date)); 2)"),
                column("Subject", "Subject"), size]},
    }})
}

fn fill(database: &Arc<Database>, documents: u64) {
    let mut pending = Vec::new();
    for start in (0..documents).step_by(usize::try_from(AT_ONCE).unwrap()) {
        let edits = (start..documents.min(start + AT_ONCE))
            .map(|number| Edit { json: document(number).to_string().into(), ..Edit::default() })
            .collect();
        pending.push(database.update(edits, EditMode::Interactive).unwrap());
    }
    for update in pending {
        update.wait().unwrap().into_iter().for_each(|result| drop(result.unwrap()));
    }
}

fn main() {
    let documents: u64 =
        std::env::var("SCRINIUM_DOCUMENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(256_000);
    let folder = folder();
    let mut options = StoreOptions::new(folder.path());
    options.budget_bytes = Some(2 << 30);
    let store = Store::open(options, &Registry::new()).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    let (mut seconds, mut growth) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let name = format!("discussion{round}");
        let database = databases.create(&name).unwrap();
        let ((), filling) = timed(|| fill(&database, documents));
        store.checkpoint().unwrap();
        database
            .update(
                vec![Edit { json: design().to_string().into(), ..Edit::default() }],
                EditMode::Interactive,
            )
            .unwrap()
            .wait()
            .unwrap()
            .remove(0)
            .unwrap();
        let ((), building) = timed(|| database.update_view_group("discussion").unwrap());
        let rows = database.view("discussion", "all documents", RowQuery::default()).unwrap();
        assert_eq!(rows.total_rows, Some(documents));
        store.checkpoint().unwrap();
        let (data, index) = (database.info().unwrap().file_bytes, database.derived_bytes());
        eprintln!(
            "round {round}: {documents} documents stored in {filling:.1?}, seven views built in {building:.2?}; \
             documents {} MB, views {} MB",
            data >> 20,
            index >> 20
        );
        seconds.push(building.as_secs_f64());
        growth.push(index as f64 / data as f64);
        drop(rows);
        drop(database);
        databases.delete(&name).unwrap();
        databases.purge_dropped().unwrap();
    }
    let case = format!("{documents} documents, 7 views");
    report(&Line {
        name: "view-build",
        case: &case,
        values: &seconds,
        unit: "s",
        against: Against::Given("the seeds' Test Case #3 (1 CPU of 200 MHz)", SEEDS_SECONDS),
    });
    report(&Line {
        name: "view-build",
        case: "size of the views by the size of the documents",
        values: &growth,
        unit: "",
        against: Against::Given("the seeds' growth of the file", SEEDS_GROWTH),
    });
}
