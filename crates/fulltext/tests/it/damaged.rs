//! Records that are cut, changed or gone: never a panic, and an error that asks for a rebuild is followed by one.

use scrinium_fulltext::{FullTextError, FullTextIndex, Query, Readership, Search};
use scrinium_store::{Batch, Direction, Family, KeyRange, Store};

use crate::common::{INDEX, found, open_index, open_store, segment};

fn fill(store: &Store) -> Vec<(String, String)> {
    let texts: Vec<(String, String)> = (0..300)
        .map(|number| {
            (format!("d{number}"), format!("common words number{} and word{}", number % 10, number % 3))
        })
        .collect();
    let index = open_index(store);
    let pairs: Vec<(&str, &str)> = texts.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    index.update::<&str>(&[], &segment(&pairs[..200]), 1).unwrap();
    for (number, pair) in (2..).zip(&pairs[200..]) {
        index.update::<&str>(&[], &segment(&[*pair]), number).unwrap();
    }
    texts
}

fn records(store: &Store) -> Vec<(Family, Vec<u8>, Vec<u8>)> {
    let mut records = Vec::new();
    for family in [Family::DerivedPoint, Family::DerivedScan, Family::DerivedChurn] {
        let snapshot = store.snapshot();
        let mut cursor = snapshot.cursor(family, KeyRange::ALL, Direction::Forward);
        while let Some((key, value)) = cursor.next().unwrap() {
            records.push((family, key.to_vec(), value.to_vec()));
        }
    }
    records
}

/// Does what people do; the first error, if there is one.
fn use_it(store: &Store) -> Result<(), FullTextError> {
    let index = FullTextIndex::open(store, INDEX, scrinium_fulltext::AnalysisOptions::default())?;
    let reader = index.reader(&store.snapshot())?;
    for query in [
        Query::word("body", "common"),
        Query::phrase("body", "common words"),
        Query::prefix("body", "num"),
        Query::word("body", "number7"),
        Query::All,
    ] {
        reader.search(&Search::new(query, Readership::Everything, 1000))?;
    }
    index.update(&["d3"], &segment(&[("d7", "common again"), ("new", "number1")]), 1000)?;
    while !index.compact(10_000)? {}
    Ok(())
}

#[test]
fn what_is_damaged_is_noticed_or_harmless_and_is_built_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_store(folder.path());
    let texts = fill(&store);
    let good = records(&store);
    let is_block = |key: &[u8]| key.get(8) == Some(&b'p');
    let is_id = |key: &[u8]| key.get(8) == Some(&b'i');
    let blocks = good.iter().filter(|(_, key, _)| is_block(key)).step_by(9);
    let ids = good.iter().filter(|(_, key, _)| is_id(key)).step_by(60);
    let others = good.iter().filter(|(_, key, _)| !is_block(key) && !is_id(key));
    for (turn, (family, key, value)) in
        blocks.chain(ids).chain(others.flat_map(|other| [other; 4])).enumerate()
    {
        FullTextIndex::reset(&store, INDEX).unwrap();
        let mut batch = Batch::new();
        good.iter().for_each(|(family, key, value)| batch.put(*family, key, value));
        match turn % 4 {
            0 => batch.delete(*family, key),
            1 => batch.put(*family, key, value.get(..value.len() / 2).unwrap()),
            2 => batch.put(*family, key, &[value.as_slice(), &[1]].concat()),
            _ => {
                let mut changed = value.clone();
                let at = turn % changed.len().max(1);
                if let Some(byte) = changed.get_mut(at) {
                    *byte ^= 1 << (turn % 8);
                }
                batch.put(*family, key, &changed);
            }
        }
        store.derived().write(batch).unwrap();
        let used = use_it(&store);
        // What is gone or cut of a state, a tail, or a chunk of ids is missed; a state that is gone is an empty index.
        let is_missed = *family == Family::DerivedChurn || key.get(8) == Some(&b'd') || key.len() == 8;
        assert!(used.is_err() || turn % 4 > 1 || !is_missed || (key.len() == 8 && turn % 4 == 0), "{key:?}");
        if let Err(error) = used {
            assert!(error.needs_rebuild() || matches!(error, FullTextError::NewerFormat { .. }), "{error}");
        }
    }
    FullTextIndex::reset(&store, INDEX).unwrap();
    assert_eq!(records(&store), []);
    fill(&store);
    let index = open_index(&store);
    assert_eq!(found(&store, &index, &Query::word("body", "common")).len(), texts.len());
    assert_eq!(records(&store), good);
}
