//! Pages with categories as rows, against a list of entries that is grouped by looking at all of them.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use scrinium_database::{AccessList, CategoryQuery, Identity, Row, RowQuery};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::{SERVER, Seen, Server, get, put};

/// A document: its values for each category column, for the sorted column, and to be added up; and which of
/// [`READERS`] may read it.
type Document = (Vec<Vec<Value>>, u8, u32, usize);

const READERS: [&[&str]; 5] = [&[], &["ada"], &["sales"], &["ada", "sales"], &["zoe"]];

/// By how many of these names who asks goes.
const NAMES: [&str; 2] = ["ada", "sales"];

/// A view: in which direction each category column sorts, whether another column sorts behind them, and whether
/// case does not count in categories.
#[derive(Clone, Debug)]
struct View {
    falls: Vec<bool>,
    sorted: bool,
    folds: bool,
}

#[derive(Clone, Debug)]
struct ModelEntry {
    key: Vec<Value>,
    id: String,
    size: u32,
}

/// A row as the model has it; `before`: how many entries come before it.
#[derive(Clone, Debug, PartialEq)]
struct ModelRow {
    id: Option<String>,
    key: Value,
    level: usize,
    /// Count, sum, children, and whether it is expanded.
    category: Option<(u64, f64, u64, bool)>,
    before: u64,
}

/// Numbers before texts, and nothing before both; small letters before capital ones.
fn compare(left: &Value, right: &Value) -> Ordering {
    let swapped = |text: &str| (text.to_lowercase(), text.chars().any(char::is_uppercase));
    let rank = |value: &Value| (value.as_u64(), value.as_str().map(swapped));
    let kind = |value: &Value| (!value.is_null(), value.is_string());
    kind(left).cmp(&kind(right)).then_with(|| rank(left).cmp(&rank(right)))
}

impl View {
    fn design(&self) -> Value {
        let sort = |falls: bool| if falls { "desc" } else { "asc" };
        let category = |(place, falls): (usize, &bool)| json!({"title": format!("C{place}"), "formula": format!("C{place}"), "category": true, "sort": sort(*falls), "case": !self.folds});
        let mut columns: Vec<Value> = self.falls.iter().enumerate().map(category).collect();
        if self.sorted {
            columns.push(json!({"title": "Name", "formula": "Name", "sort": "asc"}));
        }
        columns.push(json!({"title": "Size", "formula": "Size", "total": true}));
        json!({"_id": "_design/d", "language": "formula", "views": {"v": {"columns": columns}}})
    }

    /// What a value, or each of a list, counts as.
    fn folded(&self, value: &Value) -> Value {
        match value {
            Value::String(text) if self.folds => text.to_lowercase().into(),
            Value::Array(values) => values.iter().map(|value| self.folded(value)).collect(),
            other => other.clone(),
        }
    }

    /// All entries in the order of the view.
    fn entries(&self, documents: &BTreeMap<String, Document>) -> Vec<ModelEntry> {
        let mut entries = Vec::new();
        for (id, (values, name, size, _)) in documents {
            let mut keys = vec![Vec::new()];
            for values in values.iter().take(self.falls.len()) {
                let values = if values.is_empty() { &vec![json!("")] } else { values };
                let with = |key: Vec<Value>| {
                    let value = |value: &Value| if value == "" { Value::Null } else { value.clone() };
                    values
                        .iter()
                        .map(move |next| [key.clone(), vec![value(next)]].concat())
                        .collect::<Vec<_>>()
                };
                keys = keys.into_iter().flat_map(with).collect();
            }
            for mut key in keys {
                if self.sorted {
                    key.push(json!(name));
                }
                entries.push(ModelEntry { key, id: id.clone(), size: *size });
            }
        }
        let in_order = |left: &ModelEntry, right: &ModelEntry| {
            let columns = left.key.iter().zip(&right.key).enumerate().map(|(place, (left, right))| {
                let (left, right) = (&self.folded(left), &self.folded(right));
                let falls = self.falls.get(place).copied().unwrap_or(false);
                if falls { compare(right, left) } else { compare(left, right) }
            });
            columns.fold(Ordering::Equal, Ordering::then).then_with(|| left.id.cmp(&right.id))
        };
        entries.sort_by(in_order);
        entries
    }

    fn rows(&self, documents: &BTreeMap<String, Document>, query: &RowQuery) -> Vec<ModelRow> {
        let mut entries = self.entries(documents);
        if query.descending {
            entries.reverse();
        }
        let mut rows = Vec::new();
        self.group(&entries, 0, query, 0, &mut rows);
        rows
    }

    fn group(
        &self,
        entries: &[ModelEntry],
        level: usize,
        query: &RowQuery,
        mut before: u64,
        rows: &mut Vec<ModelRow>,
    ) {
        if level == self.falls.len() {
            rows.extend(entries.iter().zip(before..).map(|(entry, before)| ModelRow {
                id: Some(entry.id.clone()),
                key: json!(entry.key),
                level,
                category: None,
                before,
            }));
            return;
        }
        let CategoryQuery { level: usual, expand, collapse } = query.categories.as_ref().unwrap();
        let is_same = |level: usize| {
            move |left: &ModelEntry, right: &ModelEntry| {
                self.folded(&left.key[level]) == self.folded(&right.key[level])
            }
        };
        for group in entries.chunk_by(is_same(level)) {
            let first = if query.descending { group.last() } else { group.first() };
            let key = json!(first.unwrap().key[..=level]);
            let is_in = |keys: &[Value]| keys.iter().any(|other| self.folded(other) == self.folded(&key));
            let is_usual = usual.is_none_or(|usual| level < usize::try_from(usual).unwrap());
            let is_expanded = if is_usual { !is_in(collapse) } else { is_in(expand) };
            let children = match level + 1 == self.falls.len() {
                true => group.len(),
                false => group.chunk_by(is_same(level + 1)).count(),
            };
            let sum = group.iter().map(|entry| f64::from(entry.size)).sum();
            let category = Some((group.len() as u64, sum, children as u64, is_expanded));
            rows.push(ModelRow { id: None, key, level, category, before });
            if is_expanded {
                self.group(group, level + 1, query, before, rows);
            }
            before += group.len() as u64;
        }
    }
}

/// What tells a row from others; a category may come to be written in another way.
fn name_of(view: &View, row: &ModelRow) -> (Option<String>, Value, usize) {
    let key = if row.id.is_none() { view.folded(&row.key) } else { row.key.clone() };
    (row.id.clone(), key, row.level)
}

/// A row without its place.
fn shown(row: &Row) -> ModelRow {
    let (id, level) = (row.id.clone(), row.level.unwrap() as usize);
    let key = serde_json::from_str(&row.key).unwrap();
    let category = row.expanded.map(|expanded| {
        let value: Value = serde_json::from_str(row.value.as_ref().unwrap()).unwrap();
        let number = |name: &str| value[name].as_u64().unwrap();
        (number("count"), value["totals"]["Size"].as_f64().unwrap(), number("children"), expanded)
    });
    ModelRow { id, key, level, category, before: 0 }
}

fn without_places(rows: &[ModelRow]) -> Vec<ModelRow> {
    rows.iter().map(|row| ModelRow { before: 0, ..row.clone() }).collect()
}

/// The rows of a page, its offset, and where the next one begins.
fn page(database: &Seen, query: &RowQuery) -> (Vec<Row>, Option<u64>, Option<String>) {
    let mut rows = database.view("d", "v", RowQuery { next_page: true, ..query.clone() }).unwrap();
    let mut all = Vec::new();
    loop {
        let some = rows.next_rows(3).unwrap();
        if some.is_empty() {
            return (all, rows.offset, rows.next_page().unwrap());
        }
        all.extend(some);
    }
}

/// The rows, and the offset where it is given.
fn read(database: &Seen, query: &RowQuery) -> (Vec<ModelRow>, Option<u64>) {
    let (rows, offset, _) = page(database, query);
    (rows.iter().map(shown).collect(), offset)
}

/// The documents that somebody with this many names may read; without any, a server administrator.
fn seen_by(names: usize, documents: &BTreeMap<String, Document>) -> BTreeMap<String, Document> {
    let may_read = |readers: &[&str]| {
        names == 0 || readers.is_empty() || NAMES[..names].iter().any(|name| readers.contains(name))
    };
    let seen = documents.iter().filter(|(_, (_, _, _, readers))| may_read(READERS[*readers]));
    seen.map(|(id, document)| (id.clone(), document.clone())).collect()
}

fn seen_database(database: &OpenDatabase, names: usize) -> Seen {
    let access = match NAMES[..names].split_first() {
        None => SERVER.clone(),
        Some((own, groups)) => {
            let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
            database.access(&Identity::new(own, groups)).unwrap()
        }
    };
    Seen { database: database.clone(), access }
}

fn create(server: &Server, view: &View, number: u32) -> OpenDatabase {
    let database = server
        .databases
        .create(&format!("db{number}"), &scrinium_database::InitialAccess::Everybody)
        .unwrap();
    let list = json!({"default": {"level": "author"}});
    database.set_access_list(Some(AccessList::parse(&list).unwrap())).unwrap();
    put(&database, &view.design()).unwrap();
    database
}

fn store(database: &OpenDatabase, id: &str, (values, name, size, readers): &Document) {
    let mut json = json!({"_id": id, "Name": name, "Size": size, "Readers": READERS[*readers]});
    for (place, values) in values.iter().enumerate() {
        json[format!("C{place}")] = json!(values);
    }
    put(database, &json).unwrap();
}

fn remove(database: &OpenDatabase, id: &str) {
    let old = get(database, id).unwrap();
    put(database, &json!({"_id": id, "_rev": old["_rev"], "_deleted": true})).unwrap();
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => prop::sample::select(vec!["a", "A", "b", "C", "c"]).prop_map(Value::from),
        1 => (1..3_u32).prop_map(Value::from),
        1 => Just(json!("")),
    ]
}

fn any_document() -> impl Strategy<Value = Document> {
    let values = prop::collection::vec(any_value(), 0..3).prop_map(|mut values| {
        values.sort_by(compare);
        values.dedup();
        // A list of one kind, as fields of documents are.
        let is_text = values.last().is_some_and(Value::is_string);
        values.retain(|value| value.is_string() == is_text);
        values
    });
    (prop::collection::vec(values, 3), 0..3_u8, 0..100_u32, 0..READERS.len())
}

fn any_view() -> impl Strategy<Value = View> {
    (prop::collection::vec(any::<bool>(), 1..=3), any::<bool>(), any::<bool>())
        .prop_map(|(falls, sorted, folds)| View { falls, sorted, folds })
}

/// Which categories are expanded, the direction, the size of pages, and the number of names of who asks.
type Question = (Option<u32>, Vec<prop::sample::Index>, Vec<prop::sample::Index>, bool, u64, usize);

fn any_question() -> impl Strategy<Value = Question> {
    let some = || prop::collection::vec(any::<prop::sample::Index>(), 0..6);
    (prop::option::of(0..3_u32), some(), some(), any::<bool>(), 1..9_u64, 0..=NAMES.len())
}

fn query_of(
    view: &View,
    documents: &BTreeMap<String, Document>,
    (level, expand, collapse, descending, ..): &Question,
) -> RowQuery {
    let all = RowQuery { categories: Some(CategoryQuery::default()), ..RowQuery::default() };
    let keys: Vec<Value> = view
        .rows(documents, &all)
        .into_iter()
        .filter(|row| row.category.is_some())
        .map(|row| row.key)
        .collect();
    let pick = |picks: &[prop::sample::Index]| -> Vec<Value> {
        if keys.is_empty() { Vec::new() } else { picks.iter().map(|pick| pick.get(&keys).clone()).collect() }
    };
    let expand = pick(expand);
    let mut collapse = pick(collapse);
    collapse.retain(|key| expand.iter().all(|other| view.folded(other) != view.folded(key)));
    let categories = Some(CategoryQuery { level: *level, expand, collapse });
    RowQuery { categories, descending: *descending, ..RowQuery::default() }
}

fn check(
    database: &OpenDatabase,
    view: &View,
    documents: &BTreeMap<String, Document>,
    question: &Question,
) -> Result<(), TestCaseError> {
    let documents = &seen_by(question.5, documents);
    let query = query_of(view, documents, question);
    let database = &seen_database(database, question.5);
    let expected = view.rows(documents, &query);
    let entries = view.entries(documents).len() as u64;
    let before = |place: usize| expected.get(place).map_or(entries, |row| row.before);
    // A person with several names gets no offset where documents may be found by more than one.
    let is_told = database.view("d", "v", query.clone()).unwrap().offset.is_some();
    prop_assert!(is_told || question.5 > 1);
    let told = |before: u64| is_told.then_some(before);
    prop_assert_eq!(read(database, &query).0, without_places(&expected));
    for skip in 0..=expected.len() {
        let (rows, offset) =
            read(database, &RowQuery { skip: skip as u64, limit: Some(question.4), ..query.clone() });
        let end = expected.len().min(skip + usize::try_from(question.4).unwrap());
        prop_assert_eq!(rows, without_places(&expected[skip..end]));
        prop_assert_eq!(offset, told(before(skip)), "before row {}", skip);
    }
    let (mut from, mut seen) = (None, Vec::new());
    loop {
        let (rows, offset, next) =
            page(database, &RowQuery { from, limit: Some(question.4), ..query.clone() });
        prop_assert_eq!(offset, told(before(seen.len())));
        seen.extend(rows.iter().map(shown));
        prop_assert_eq!(next.is_some(), seen.len() < expected.len(), "a page more than there is");
        from = next;
        if from.is_none() {
            break;
        }
    }
    prop_assert_eq!(seen, without_places(&expected));
    for (place, row) in expected.iter().enumerate() {
        if row.category.is_some() {
            let behind = expected[place + 1..].iter().position(|other| other.level <= row.level);
            let end = behind.map_or(expected.len(), |behind| place + 1 + behind);
            let key = Some(row.key.clone());
            let from = RowQuery { start_key: key.clone(), ..query.clone() };
            prop_assert_eq!(read(database, &from), (without_places(&expected[place..]), told(row.before)));
            let within = RowQuery { end_key: key.clone(), ..from.clone() };
            prop_assert_eq!(read(database, &within).0, without_places(&expected[place..end]));
            let listed = RowQuery { keys: key.clone().map(|key| vec![key]), ..query.clone() };
            prop_assert_eq!(read(database, &listed).0, without_places(&expected[place..end]));
            let until = RowQuery { end_key: key, inclusive_end: false, ..query.clone() };
            // Of categories that this one lies in, there are rows only where something of them comes before it.
            let is_first = |other: &&ModelRow| other.before == row.before;
            let above = expected[..place].iter().rev().take_while(is_first).count();
            prop_assert_eq!(read(database, &until).0, without_places(&expected[..place - above]));
        }
    }
    check_at(database, view, documents, &query, is_told)
}

/// A page that begins at a document has its first entry first, whatever is collapsed.
fn check_at(
    database: &Seen,
    view: &View,
    documents: &BTreeMap<String, Document>,
    query: &RowQuery,
    is_told: bool,
) -> Result<(), TestCaseError> {
    for id in documents.keys() {
        let mut open = query.clone();
        let all = RowQuery { categories: Some(CategoryQuery::default()), ..query.clone() };
        let first = view.rows(documents, &all).into_iter().find(|row| row.id.as_ref() == Some(id)).unwrap();
        let categories = open.categories.as_mut().unwrap();
        for level in 0..view.falls.len() {
            let key = json!(first.key.as_array().unwrap()[..=level]);
            categories.collapse.retain(|other| view.folded(other) != view.folded(&key));
            categories.expand.push(key);
        }
        let expected = view.rows(documents, &open);
        let place = expected.iter().position(|row| row.id.as_ref() == Some(id)).unwrap();
        let at = RowQuery { at: Some(id.clone()), ..query.clone() };
        prop_assert_eq!(
            read(database, &at),
            (without_places(&expected[place..]), is_told.then_some(first.before))
        );
    }
    Ok(())
}

#[test]
fn rows_are_what_grouping_a_list_would_give() {
    let server = Server::quick();
    let number = std::cell::Cell::new(0);
    let strategy =
        (any_view(), prop::collection::vec(any_document(), 0..14), prop::collection::vec(any_question(), 4));
    let config = ProptestConfig {
        cases: scrinium_fault::cases(24),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    TestRunner::new(config)
        .run(&strategy, |(view, documents, questions)| {
            number.set(number.get() + 1);
            let database = create(&server, &view, number.get());
            let documents: BTreeMap<String, Document> = documents
                .into_iter()
                .enumerate()
                .map(|(place, document)| (format!("{place:02}"), document))
                .collect();
            documents.iter().for_each(|(id, document)| store(&database, id, document));
            questions.iter().try_for_each(|question| check(&database, &view, &documents, question))
        })
        .unwrap();
}

/// What is there all the time comes once and in order, whatever comes and goes between the pages.
#[test]
fn pages_leave_nothing_out_while_documents_come_and_go() {
    let server = Server::quick();
    let number = std::cell::Cell::new(0);
    let change = (any::<prop::sample::Index>(), any_document());
    let strategy = (
        any_view(),
        prop::collection::vec(any_document(), 1..12),
        prop::collection::vec(any_document(), 1..12),
        any_question(),
        prop::collection::vec((1..6_u64, prop::collection::vec(change, 0..4)), 60),
    );
    let config = ProptestConfig {
        cases: scrinium_fault::cases(24),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    TestRunner::new(config)
        .run(&strategy, |(view, stay, go, question, rounds)| {
            number.set(number.get() + 1);
            let database = create(&server, &view, number.get());
            let with_ids = |prefix: &str, documents: Vec<Document>| -> BTreeMap<String, Document> {
                let numbered = documents.into_iter().enumerate();
                numbered.map(|(place, document)| (format!("{prefix}{place:02}"), document)).collect()
            };
            let (stay, mut there) = (with_ids("s", stay), with_ids("g", go));
            stay.iter().chain(&there).for_each(|(id, document)| store(&database, id, document));
            let mut ever: BTreeMap<String, Document> = stay.clone();
            ever.extend(there.clone());
            let query = query_of(&view, &ever, &question);
            let as_seen = seen_database(&database, question.5);
            let seen_by = |documents| seen_by(question.5, documents);
            let (mut from, mut seen) = (None, Vec::new());
            for (round, (limit, changes)) in rounds.into_iter().enumerate() {
                let (rows, _, next) = page(&as_seen, &RowQuery { from, limit: Some(limit), ..query.clone() });
                seen.extend(rows.iter().map(|row| name_of(&view, &shown(row))));
                from = next;
                if from.is_none() {
                    break;
                }
                for (place, (pick, document)) in changes.into_iter().enumerate() {
                    if place % 2 == 0 && !there.is_empty() {
                        let ids: Vec<String> = there.keys().cloned().collect();
                        let id = pick.get(&ids);
                        there.remove(id);
                        remove(&database, id);
                    } else {
                        let id = format!("n{round:02}{place}");
                        store(&database, &id, &document);
                        there.insert(id.clone(), document.clone());
                        ever.insert(id, document);
                    }
                }
            }
            let is_whole = from.is_none();
            let mut ever = view.rows(&seen_by(&ever), &query).into_iter().map(|row| name_of(&view, &row));
            for row in &seen {
                prop_assert!(ever.any(|other| other == *row), "{row:?} comes twice or out of order");
            }
            let left_out = view
                .rows(&seen_by(&stay), &query)
                .into_iter()
                .find(|row| !seen.contains(&name_of(&view, row)));
            prop_assert!(!is_whole || left_out.is_none(), "{:?} was left out", left_out);
            Ok(())
        })
        .unwrap();
}
