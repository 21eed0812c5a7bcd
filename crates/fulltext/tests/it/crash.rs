//! A process that writes is killed: the index stands at a whole update, and goes on from there.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use scrinium_fulltext::Query;

use crate::common::{found, open_index, open_store, segment};

const FOLDER: &str = "SCRINIUM_FULLTEXT_VICTIM";
const DOCUMENTS: u64 = 50;

/// Change number `n` replaces document `n mod 50` by one with the words `turn` and `n`, and removes the one after it in every
/// third.
fn change(number: u64) -> (String, String, Vec<String>) {
    let id = format!("d{}", number % DOCUMENTS);
    let removed =
        if number.is_multiple_of(3) { vec![format!("d{}", (number + 1) % DOCUMENTS)] } else { Vec::new() };
    (id, format!("turn n{number}"), removed)
}

#[test]
#[ignore = "it is the process that is killed"]
fn victim() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = open_store(Path::new(&folder));
    let index = open_index(&store);
    for number in index.reached().unwrap() + 1.. {
        let (id, text, removed) = change(number);
        index.update(&removed, &segment(&[(&id, &text)]), number).unwrap();
        if number.is_multiple_of(40) {
            index.compact(5_000).unwrap();
        }
        if number.is_multiple_of(100) {
            store.admin().checkpoint().unwrap();
        }
    }
}

#[test]
fn a_killed_writer_leaves_a_whole_update() {
    let folder = tempfile::tempdir().unwrap();
    let kills: u64 = std::env::var("SCRINIUM_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(3);
    let mut reached_before = 0;
    for kill in 0..kills {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "crash::victim"])
            .env(FOLDER, folder.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(700 + kill * 130 % 500));
        victim.kill().unwrap();
        victim.wait().unwrap();
        let store = open_store(folder.path());
        let index = open_index(&store);
        let reached = index.reached().unwrap();
        assert!(reached >= reached_before, "{reached} after {reached_before}");
        reached_before = reached;
        let mut there = std::collections::BTreeMap::new();
        for number in 1..=reached {
            let (id, text, removed) = change(number);
            removed.iter().for_each(|id| drop(there.remove(id)));
            there.insert(id, text);
        }
        let mut ids = found(&store, &index, &Query::word("body", "turn"));
        ids.sort();
        assert_eq!(ids, there.keys().cloned().collect::<Vec<_>>(), "at {reached}");
        for (id, text) in &there {
            let word = text.split_once(' ').unwrap().1;
            assert_eq!(found(&store, &index, &Query::word("body", word)), [id.as_str()], "at {reached}");
        }
        store.close().unwrap();
    }
}
