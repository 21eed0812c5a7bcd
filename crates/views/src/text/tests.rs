//! Whatever happened to documents and to the index meanwhile: a question finds what looking at every document finds.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use scrinium_database::{Edit, EditMode, Properties};
use scrinium_fulltext::{FullTextIndex, Sort};
use scrinium_statistics::Registry;
use scrinium_store::{Batch, Family, Store, StoreOptions};
use serde_json::{Value, json};

use super::{Facets, TextAnswer, TextSearch, TextTarget};
use crate::audit::Audited;
use crate::open::OpenDatabase;
use crate::testing::{SERVER, TestServer};
use crate::waiting::Reading;

const WORDS: [&str; 4] = ["alpha", "beta", "gamma", "delta"];

#[derive(Clone, Debug)]
enum Step {
    Put {
        id: u8,
        words: Vec<usize>,
    },
    Delete {
        id: u8,
    },
    Many {
        from: u8,
        count: u16,
    },
    Ask {
        word: usize,
    },
    /// The index is emptied, or a record of it is damaged.
    Empty,
    Damage,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u8..12, prop::collection::vec(0..WORDS.len(), 0..4)).prop_map(|(id, words)| Step::Put { id, words }),
        2 => (0_u8..12).prop_map(|id| Step::Delete { id }),
        1 => (0_u8..12, 1_u16..150).prop_map(|(from, count)| Step::Many { from, count }),
        4 => (0..WORDS.len()).prop_map(|word| Step::Ask { word }),
        1 => Just(Step::Empty),
        1 => Just(Step::Damage),
        1 => Just(Step::Reopen),
    ]
}

fn search(query: &str) -> TextSearch {
    TextSearch {
        query: query.to_owned(),
        wants_all: false,
        sort: vec![Sort::Relevance],
        limit: 200,
        bookmark: None,
        includes_documents: false,
        with_snippets: false,
        counts_all: true,
        update: true,
        facets: Facets::default(),
    }
}

fn ask(database: &OpenDatabase, query: &str) -> TextAnswer {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut reached = None;
    for _ in 0..100 {
        let asked = database.begin_text(&TextTarget::Documents, &search(query), &SERVER, reached);
        match asked.unwrap() {
            Reading::Ready(answer) => return answer,
            Reading::Behind(update) => reached = Some(runtime.block_on(update.done()).unwrap()),
        }
    }
    panic!("the index is never up to date");
}

/// What cannot be read is built again, and then has reached all there is, if that is nothing.
#[test]
fn a_damaged_index_without_documents_is_not_asked_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { sync: false, ..StoreOptions::new(folder.path()) };
    let store = Store::open(options, &Registry::new()).unwrap();
    let database = TestServer::new(&store).create("db");
    database.change_properties(Properties { full_text: true, ..Properties::default() }).unwrap();
    let id = database.own_text_index().unwrap().id;
    let mut batch = Batch::new();
    batch.put(Family::DerivedPoint, &id.to_be_bytes(), b"\x01 what is this");
    store.derived().write(batch).unwrap();
    assert!(ask(&database, "alpha").hits.is_empty());
}

fn write(
    database: &OpenDatabase,
    model: &mut BTreeMap<String, (String, Vec<usize>)>,
    id: String,
    words: Option<Vec<usize>>,
) {
    let mut json: Value = match &words {
        Some(words) => {
            json!({"_id": id, "text": words.iter().map(|at| WORDS[*at]).collect::<Vec<_>>().join(" ")})
        }
        None => json!({"_id": id, "_deleted": true}),
    };
    if let Some((revision, _)) = model.get(&id) {
        json["_rev"] = Value::from(revision.as_str());
    } else if words.is_none() {
        return;
    }
    let edit = Edit { json: json.to_string().into(), ..Edit::default() };
    let updated = database
        .update(vec![edit], EditMode::Interactive, &SERVER)
        .unwrap()
        .wait()
        .unwrap()
        .remove(0)
        .unwrap();
    match words {
        Some(words) => drop(model.insert(id, (updated.revision, words))),
        None => drop(model.remove(&id)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn words_are_found_whatever_becomes_of_documents_and_index(steps in prop::collection::vec(step(), 1..25)) {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions { sync: false, ..StoreOptions::new(folder.path()) };
        let store = Store::open(options, &Registry::new()).unwrap();
        let server = TestServer::new(&store);
        let mut database = server.create("db");
        database.change_properties(Properties { full_text: true, ..Properties::default() }).unwrap();
        let mut model = BTreeMap::new();
        for step in steps.into_iter().chain((0..WORDS.len()).map(|word| Step::Ask { word })) {
            match step {
                Step::Put { id, words } => write(&database, &mut model, format!("d{id}"), Some(words)),
                Step::Delete { id } => write(&database, &mut model, format!("d{id}"), None),
                Step::Many { from, count } => {
                    for number in 0..count {
                        let id = format!("d{}", (u16::from(from) + number) % 20);
                        write(&database, &mut model, id, Some(vec![usize::from(number) % WORDS.len()]));
                    }
                }
                Step::Ask { word } => {
                    let answer = ask(&database, WORDS[word]);
                    let mut ids: Vec<String> = answer.hits.into_iter().map(|hit| hit.id).collect();
                    ids.sort();
                    let fits = model.iter().filter(|(_, (_, words))| words.contains(&word));
                    prop_assert_eq!(ids, fits.map(|(id, _)| id.clone()).collect::<Vec<_>>());
                }
                Step::Empty => FullTextIndex::reset(&store, database.own_text_index().unwrap().id).unwrap(),
                Step::Damage => {
                    let id = database.own_text_index().unwrap().id;
                    let mut batch = Batch::new();
                    batch.put(Family::DerivedPoint, &id.to_be_bytes(), b"\x01 what is this");
                    store.derived().write(batch).unwrap();
                }
                Step::Reopen => {
                    let number = database.number();
                    database = OpenDatabase::load(&server.context, number, &server.views).unwrap();
                }
            }
        }
        prop_assert!(matches!(audited(&database), Audited::Sound | Audited::NotBuilt));
    }
}

fn audited(database: &OpenDatabase) -> Audited {
    let audits = database.text_audits().unwrap();
    assert_eq!(audits.len(), 1);
    audits[0].run(database, &mut || Ok(())).unwrap()
}

#[test]
fn an_index_that_lacks_a_word_or_has_one_too_many_is_found_and_built_again() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { sync: false, ..StoreOptions::new(folder.path()) };
    let store = Store::open(options, &Registry::new()).unwrap();
    let database = TestServer::new(&store).create("db");
    database.change_properties(Properties { full_text: true, ..Properties::default() }).unwrap();
    let mut model = BTreeMap::new();
    // So many that their words are in blocks.
    for number in 0..300 {
        write(&database, &mut model, format!("d{number}"), Some(vec![number % WORDS.len()]));
    }
    assert!(matches!(audited(&database), Audited::NotBuilt));
    ask(&database, "alpha");
    assert!(matches!(audited(&database), Audited::Sound));
    // What nobody has asked for yet is no fault of the index.
    write(&database, &mut model, "later".to_owned(), Some(vec![0]));
    assert!(matches!(audited(&database), Audited::Sound));
    let id = database.own_text_index().unwrap().id;
    let (from, to) = ([&id.to_be_bytes()[..], b"p"].concat(), [&id.to_be_bytes()[..], b"q"].concat());
    let block = || {
        let snapshot = store.snapshot();
        let range = scrinium_store::KeyRange::new(&from, &to);
        let mut cursor = snapshot.cursor(Family::DerivedScan, range, scrinium_store::Direction::Forward);
        cursor.next().unwrap().map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()
    };
    let (key, value) = block();
    let mut batch = Batch::new();
    batch.delete(Family::DerivedScan, &key);
    store.derived().write(batch).unwrap();
    assert!(matches!(audited(&database), Audited::Differs(_)));
    database.text_audits().unwrap()[0].rebuild(&database).unwrap();
    assert!(matches!(audited(&database), Audited::Sound));
    let (mut other, _) = block();
    other[10] ^= 1;
    let mut batch = Batch::new();
    batch.put(Family::DerivedScan, &other, &value);
    store.derived().write(batch).unwrap();
    assert!(matches!(audited(&database), Audited::Differs(_) | Audited::Damaged(_)));
    database.text_audits().unwrap()[0].rebuild(&database).unwrap();
    assert!(matches!(audited(&database), Audited::Sound));
}
