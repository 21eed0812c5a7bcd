//! Whatever a backup's own file says: it is refused or does what it may, and nothing is written but where it was restored to.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use scrinium_backup::{Quiet, Target, prune, verify};
use serde_json::{Value, json};

use crate::common::{back_up, folder, open, open_repository, restore_to};

/// All files below a folder but for those in `but`.
fn files(folder: &Path, but: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path == but {
                continue;
            }
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

fn hostile() -> impl Strategy<Value = Value> {
    let texts = [
        "",
        "x",
        "..",
        "../outside",
        "/tmp/outside",
        "a/../../outside",
        "store/CURRENT",
        "\0",
        "\r\n\u{1b}[2J",
        "log/../x",
        "ffffffffffffffffffffffffffffffff",
        "-1",
        "volumes/x/y",
        "2026-01-01T00:00:00Z",
    ];
    prop_oneof![
        4 => prop::sample::select(texts.to_vec()).prop_map(Value::from),
        1 => Just(json!("y".repeat(5_000))),
        3 => prop::sample::select(vec![0, 1, 1 << 40, 1 << 63, u64::MAX]).prop_map(Value::from),
        1 => Just(json!(null)),
        1 => Just(json!([])),
        1 => Just(json!({})),
        1 => Just(json!(-1)),
    ]
}

/// Puts `value` at some place within, or takes away what is there.
fn spoil(within: &mut Value, places: &mut impl Iterator<Item = prop::sample::Index>, value: Value) {
    let Some(place) = places.next() else { return *within = value };
    match within {
        Value::Array(items) if !items.is_empty() => {
            let place = place.index(items.len());
            spoil(&mut items[place], places, value);
        }
        Value::Object(members) if !members.is_empty() => {
            let name = members.keys().nth(place.index(members.len())).unwrap().clone();
            if value.is_null() {
                members.remove(&name);
            } else {
                spoil(&mut members[&name], places, value);
            }
        }
        other => *other = value,
    }
}

#[test]
fn whatever_a_manifest_says_nothing_is_written_elsewhere() {
    let dir = folder();
    let store = open(dir.path());
    let mut batch = scrinium_store::Batch::new();
    batch.put(scrinium_store::Family::Scan, b"key", b"value");
    store.commit(batch).unwrap();
    let made = back_up(dir.path(), &store).unwrap();
    drop(store);
    let path = dir.path().join(format!("repository/backups/{}.json", made.manifest.id));
    let whole: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let into = dir.path().join("restored");
    let before = files(dir.path(), &into);
    let config =
        ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(scrinium_fault::cases(64)) };
    proptest!(config, |(
        changes in prop::collection::vec((prop::collection::vec(any::<prop::sample::Index>(), 1..5), hostile()), 1..4),
        bytes in prop::option::weighted(0.2, prop::collection::vec(any::<u8>(), 0..200)),
    )| {
        let mut backup = whole["backup"].clone();
        for (places, value) in changes {
            spoil(&mut backup, &mut places.into_iter(), value);
        }
        let text = backup.to_string();
        let digest = blake3::hash(text.as_bytes()).to_hex();
        let written = format!("{{\"scrinium_backup\":1,\"blake3\":\"{digest}\",\"backup\":{text}}}");
        fs::write(&path, bytes.unwrap_or_else(|| written.into_bytes())).unwrap();
        if let Ok(repository) = open_repository(dir.path()) {
            drop(verify(&repository, None, None, &Quiet));
            drop(prune(&repository, 1));
        }
        // A file of its own, if the manifest has another name or none.
        drop(restore_to(dir.path(), &into, Target::Backup));
        drop(fs::remove_dir_all(&into));
        let mut after = files(dir.path(), &into);
        // Letting backups go takes files away, and only from the repository.
        after.retain(|file| !before.contains(file));
        prop_assert_eq!(after, Vec::<PathBuf>::new());
        let lost: Vec<_> = before.iter().filter(|file| !file.exists()).collect();
        prop_assert!(lost.iter().all(|file| file.starts_with(dir.path().join("repository"))), "{lost:?}");
    });
    assert!(!Path::new("/tmp/outside").exists());
}
