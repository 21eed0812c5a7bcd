//! The seeds' Test Case #3: seven views of a discussion database are built from its documents.
//!
//! 256,000 documents of some 600 bytes, as in the article (155 MB), which took 5,571 s and left the file
//! 382 % larger. `cargo bench -p scrinium-database --bench view_build`; `SCRINIUM_DOCUMENTS` for another size.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_precision_loss, reason = "a benchmark")]

use std::sync::Arc;

use scrinium_bench::discussion::{design, document};
use scrinium_bench::{Against, Line, folder, report, timed};
use scrinium_database::{Database, DatabaseOptions, Databases, Edit, EditMode, RowQuery};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};

const SEEDS_SECONDS: f64 = 5571.0;
const SEEDS_GROWTH: f64 = 3.82;
const ROUNDS: usize = 3;
const AT_ONCE: u64 = 1000;

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
    let (mut seconds, mut growth, mut growth_of_json) = (Vec::new(), Vec::new(), Vec::new());
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
        let json = database.info().unwrap().external_bytes;
        eprintln!(
            "round {round}: {documents} documents stored in {filling:.1?}, seven views built in {building:.2?}; \
             documents {} MB of {} MB JSON, views {} MB",
            data >> 20,
            json >> 20,
            index >> 20
        );
        seconds.push(building.as_secs_f64());
        growth.push(index as f64 / data as f64);
        growth_of_json.push(index as f64 / json as f64);
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
    let sizes = [
        ("size of the views by the size of the documents on disk", &growth),
        ("size of the views by the documents' JSON", &growth_of_json),
    ];
    for (case, values) in sizes {
        report(&Line {
            name: "view-build",
            case,
            values,
            unit: "",
            against: Against::Given("the seeds' growth of the file", SEEDS_GROWTH),
        });
    }
}
