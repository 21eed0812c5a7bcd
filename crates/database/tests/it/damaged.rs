//! Files of a store are harmed at random: databases that they do not concern are whole, the others are refused by
//! name or say of a document that it cannot be read, and after the store's files were rewritten and a fixup, every
//! document is as it was written or named as lost.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_catalog::Databases;
use scrinium_database::{DatabaseOptions, Edit, EditMode, FolderChange, ReadOptions, RowQuery};
use scrinium_fault::{Kills, copy_folder, harm, quick_folder};
use scrinium_maintenance::{FindingKind, FixupOptions};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use serde_json::json;

use crate::common::SERVER;

const NAMES: [&str; 3] = ["ada", "bob", "eve"];
const DOCUMENTS: usize = 60;

fn options(dir: &Path) -> StoreOptions {
    let mut options = StoreOptions::new(dir);
    options.budget_bytes = Some(16 << 20);
    options.log_extent_bytes = 1 << 20;
    options.reserve_bytes = 1 << 20;
    options
}

fn id(number: usize) -> String {
    format!("document {number:03}")
}

/// Each database in files of its own, as those of large databases mostly are.
fn fill(dir: &Path) {
    let store = Store::open(options(dir), &Registry::new()).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    for name in NAMES {
        databases.create(name, &scrinium_database::InitialAccess::Everybody).unwrap();
    }
    store.admin().checkpoint().unwrap();
    for name in NAMES {
        let database = databases.get(name).unwrap();
        let design = json!({"_id": "_design/v", "language": "formula", "views": {"all": {
            "selection": "SELECT @All", "columns": [{"title": "n", "formula": "n", "sort": "asc"}]}}});
        database.define_folder("Inbox", None).unwrap();
        let mut edits = vec![Edit { json: design.to_string().into(), ..Edit::default() }];
        for number in 0..DOCUMENTS {
            let long = if number % 7 == 0 { "z".repeat(9000) } else { String::new() };
            let json =
                json!({"_id": id(number), "n": number, "of": name, "long": format!("{name}{number}{long}")});
            let folders = vec![FolderChange::Add { folder: "Inbox".to_owned() }];
            edits.push(Edit { json: json.to_string().into(), folders, ..Edit::default() });
        }
        database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
        database
            .mark("ada", (0..DOCUMENTS).step_by(3).map(id).collect(), true, &SERVER)
            .unwrap()
            .wait()
            .unwrap();
        assert_eq!(
            database.view("v", "all", RowQuery::default(), &SERVER).unwrap().total_rows,
            Some(DOCUMENTS as u64)
        );
        store.admin().checkpoint().unwrap();
    }
    drop(databases);
    store.close().unwrap();
}

fn harm_some(dir: &Path, random: &mut StdRng) -> String {
    let mut files: Vec<PathBuf> =
        fs::read_dir(dir.join("tree")).unwrap().flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "sst" || ending == "blob"));
    files.sort();
    let path = &files[random.random_range(0..files.len())];
    format!("{} {}", path.display(), harm(path, random).unwrap())
}

/// Documents that cannot be read; all others are as they were written.
fn unreadable(databases: &Databases, name: &str, told: &str) -> Result<BTreeSet<String>, String> {
    let database = databases.get(name).map_err(|error| error.to_string())?;
    let mut unreadable = BTreeSet::new();
    for number in 0..DOCUMENTS {
        match database.read(&id(number), &ReadOptions::default(), &SERVER) {
            Ok(document) => {
                let json: serde_json::Value = serde_json::from_str(&document.json).unwrap();
                assert_eq!((&json["n"], &json["of"]), (&json!(number), &json!(name)), "{told}");
                assert!(json["long"].as_str().unwrap().starts_with(&format!("{name}{number}")), "{told}");
            }
            Err(_) => drop(unreadable.insert(id(number))),
        }
    }
    Ok(unreadable)
}

#[test]
fn harmed_files_cost_what_lies_in_them_and_it_is_named() {
    let Kills { seed, count: runs } = Kills::from_environment(10);
    let place = quick_folder();
    let whole = place.path().join("whole");
    fill(&whole);
    let (mut refused, mut served) = (0, 0);
    for run in 0..runs {
        let mut random = StdRng::seed_from_u64(seed.wrapping_add(run));
        let dir = place.path().join("harmed");
        let _ = fs::remove_dir_all(&dir);
        copy_folder(&whole, &dir).unwrap();
        let told = format!("SCRINIUM_SEED={} {}", seed.wrapping_add(run), harm_some(&dir, &mut random));
        let Ok(store) = Store::open(options(&dir), &Registry::new()) else {
            refused += 1;
            continue;
        };
        if let Ok(databases) = Databases::open(&store, DatabaseOptions::default()) {
            for name in NAMES {
                match unreadable(&databases, name, &told) {
                    Ok(_) => served += 1,
                    Err(reason) => {
                        assert!(reason.contains("fixup") || reason.contains("damaged"), "{told}: {reason}");
                    }
                }
            }
        }
        drop(store);
        Store::rewrite(&options(&dir), |_| {}).unwrap();
        let store = Store::open(options(&dir), &Registry::new()).unwrap();
        let Ok(databases) = Databases::open(&store, DatabaseOptions::default()) else { continue };
        let report = scrinium_maintenance::fixup(
            &databases,
            None,
            FixupOptions { views: true, ..FixupOptions::default() },
            |_| {},
        )
        .unwrap();
        for name in NAMES {
            let named = |id: &String| {
                report.findings.iter().any(|finding| finding.database == name && finding.subject == *id)
            };
            // A database whose own name is lost is not there at all, which is no silence.
            let Ok(lost) = unreadable(&databases, name, &told) else { continue };
            assert!(lost.iter().all(named), "{told}: {lost:?} {}", report.to_text());
        }
        let look = FixupOptions { views: true, contents: true, repair: false };
        let again = scrinium_maintenance::fixup(&databases, None, look, |_| {}).unwrap();
        let lasting = |kind| matches!(kind, FindingKind::ContentMissing | FindingKind::IndexUnchecked);
        let stays = again.findings.iter().find(|finding| !lasting(finding.kind));
        assert!(stays.is_none(), "{told}: {stays:?} after {}", report.to_text());
    }
    println!("{refused} stores refused, {served} databases served while there was damage");
}
