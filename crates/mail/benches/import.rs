//! How many real messages a second an import stores durably, on one core.
//!
//! The corpus is the one that `scripts/corpus` brings, or what `SCRINIUM_CORPUS` names. The process binds
//! itself to one core. `cargo bench -p scrinium-mail --bench import`.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a benchmark stops at the first error")]

use std::path::{Path, PathBuf};
use std::process::Command;

use scrinium_bench::process::keep_to_cores;
use scrinium_bench::{Against, Line, folder, report, timed};
use scrinium_catalog::Databases;
use scrinium_database::DatabaseOptions;
use scrinium_mail::import::{ImportOptions, Importer, MailDatabase};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};

const TARGET: f64 = 2000.0;
const ROUNDS: usize = 5;

fn corpus() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("SCRINIUM_CORPUS") {
        return Some(named.into());
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/corpus");
    let output = Command::new(script).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim_end().into())
}

fn round(mail: &Path) -> f64 {
    let folder = folder();
    let store = Store::open(StoreOptions::new(folder.path()), &Registry::new()).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    let target = MailDatabase::new(
        databases.create("mail/ada", &scrinium_database::InitialAccess::Everybody).unwrap(),
        "ada",
        mail,
    );
    let importer = Importer::new(&target, ImportOptions::for_person("ada"));
    let (imported, elapsed) = timed(|| importer.run(mail, |_| {}).unwrap());
    let rate = imported.messages as f64 / elapsed.as_secs_f64();
    eprintln!("{} messages in {elapsed:.2?}, {rate:.0}/s, {} damaged", imported.messages, imported.damaged);
    drop((target, databases));
    store.close().unwrap();
    rate
}

fn main() {
    let Some(mail) = corpus() else {
        eprintln!("import: skipped, the corpus of real mail is not here and cannot be fetched");
        return;
    };
    keep_to_cores(1);
    let rates: Vec<f64> = (0..ROUNDS).map(|_| round(&mail)).collect();
    report(&Line {
        name: "import",
        case: "6,046 real messages, durable, one core",
        values: &rates,
        unit: "messages/s",
        against: Against::Given("what is asked for", TARGET),
    });
}
