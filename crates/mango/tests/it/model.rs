//! Whatever a plan says to read, the answer is that of looking at every document.

use std::sync::Arc;

use crate::support::{compare, condition, condition_on, documents, field, index, lies_at, selector, values};
use proptest::prelude::*;
use proptest::sample::select;
use scrinium_document::collation::sort_key;
use scrinium_mango::{
    Bookmark, Direction, IndexDefinition, MangoError, Plan, Query, Reading, Selector, plan,
};
use serde_json::{Value, json};

/// Sort keys are cut here, as the server's indexes do.
const CUT_BYTES: usize = 1024;

/// An entry of an index, or a document in their order.
#[derive(Clone, Debug)]
struct Entry {
    bytes: Vec<u8>,
    key: Vec<Value>,
    id: String,
    document: Value,
}

/// The index: an entry for each document that has a key, in order.
fn entries(definition: &IndexDefinition, documents: &[Value]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for document in documents {
        let Some(key) = definition.keys(document) else { continue };
        let mut bytes = Vec::new();
        for value in &key {
            let component = sort_key(value);
            bytes.extend_from_slice(&component[..component.len().min(CUT_BYTES)]);
        }
        bytes.push(0);
        let id = document["_id"].as_str().unwrap().to_owned();
        bytes.extend_from_slice(id.as_bytes());
        entries.push(Entry { bytes, key, id, document: document.clone() });
    }
    entries.sort_by(|left, right| left.bytes.cmp(&right.bytes));
    entries
}

/// What the plan reads, in its direction, and where no range may overlap another.
fn read(plan: &Plan, documents: &[Value]) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    match &plan.reading {
        Reading::Index { definition, ranges } => {
            let entries = entries(definition, documents);
            let mut reached = Vec::new();
            for range in ranges {
                let (start, end) = (range.start.to_bytes(), range.end.to_bytes());
                assert!(reached <= start && start <= end, "{ranges:?}");
                let inside = entries.iter().filter(|entry| start <= entry.bytes && entry.bytes < end);
                found.extend(inside.cloned());
                reached = end;
            }
        }
        Reading::Documents { ranges } => {
            let mut documents = documents.to_vec();
            documents.sort_by(|left, right| left["_id"].as_str().cmp(&right["_id"].as_str()));
            for range in ranges {
                let inside =
                    documents.iter().filter(|document| range.contains(document["_id"].as_str().unwrap()));
                found.extend(inside.map(|document| {
                    let id = document["_id"].as_str().unwrap().to_owned();
                    let bytes = id.clone().into_bytes();
                    Entry { bytes, key: vec![json!(id)], id, document: document.clone() }
                }));
            }
            assert!(found.is_sorted_by(|left, right| left.bytes < right.bytes), "{ranges:?}");
        }
    }
    if plan.direction == Direction::Descending {
        found.reverse();
    }
    found
}

/// One page: results and the bookmark behind them.
fn page(query: &Query, plan: &Plan, documents: &[Value]) -> (Vec<(String, Value)>, Option<Bookmark>) {
    let (mut results, mut bookmark) = (Vec::new(), query.bookmark.clone());
    let mut skip = query.skip;
    let entries = read(plan, documents);
    let from = match &query.bookmark {
        None => 0,
        Some(last) => {
            let at = entries.iter().position(|entry| entry.id == last.id).expect("the entry is still there");
            assert_eq!(entries[at].key, last.key);
            at + 1
        }
    };
    for entry in &entries[from..] {
        let derived = plan.document_from_key(&entry.id, &entry.key);
        let document = if plan.covering { &derived } else { &entry.document };
        if !plan.residual.matches(document) {
            continue;
        }
        if plan.covering {
            assert!(plan.residual.matches(&entry.document));
            assert_eq!(query.fields.project(&derived), query.fields.project(&entry.document));
        }
        if skip > 0 {
            skip -= 1;
            continue;
        }
        if results.len() as u64 == query.limit {
            break;
        }
        results.push((entry.id.clone(), query.fields.project(document)));
        bookmark = Some(Bookmark { key: entry.key.clone(), id: entry.id.clone() });
    }
    (results, bookmark)
}

/// The ids of all documents that the query asks for, whatever is read: those that match, have what is sorted by, and
/// are in the partial index if one was asked for.
fn expected(query: &Query, plan: &Plan, documents: &[Value]) -> Vec<String> {
    let whole = query.selector.to_json();
    let asks_for_nothing = whole == json!({ "$and": [] }) || whole == json!({ "$or": [] });
    let filter = plan.index().and_then(|index| index.partial_filter().cloned()).unwrap_or_default();
    let mut ids: Vec<String> = documents
        .iter()
        .filter(|document| {
            let id = document["_id"].as_str().unwrap();
            !asks_for_nothing
                && !id.starts_with("_design/")
                && query.selector.matches(*document)
                && query.sort.iter().all(|field| lies_at(document, &field.path).is_some())
                && filter.matches(*document)
        })
        .map(|document| document["_id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort_unstable();
    ids
}

fn check(body: &Value, indexes: &[Arc<IndexDefinition>], documents: &[Value]) -> Result<bool, TestCaseError> {
    let query = Query::parse(body).unwrap_or_else(|error| panic!("{body}: {error}"));
    let plan = match plan(&query, indexes) {
        Ok(plan) => plan,
        Err(MangoError::NoSortIndex) if !query.sort.is_empty() => return Ok(false),
        Err(error) => panic!("{body}: {error}"),
    };
    let explained = scrinium_mango::explain("d", &query, indexes).unwrap();
    prop_assert_eq!(&explained["covering"], &json!(plan.covering));

    let mut all = query.clone();
    (all.limit, all.skip) = (u64::MAX, 0);
    let (results, _) = page(&all, &plan, documents);
    let mut ids: Vec<String> = results.iter().map(|(id, _)| id.clone()).collect();
    let in_order = ids.clone();
    ids.sort_unstable();
    prop_assert_eq!(&ids, &expected(&query, &plan, documents), "{} by {:?}", body, plan);
    let by_id = |id: &String| documents.iter().find(|document| document["_id"] == json!(id)).unwrap();
    prop_assert!(
        in_order.is_sorted_by(|left, right| compare(&query, by_id(left), by_id(right), CUT_BYTES).is_le()),
        "{body}: {in_order:?}"
    );

    let mut paged = Vec::new();
    let mut next = query.clone();
    loop {
        let (results, bookmark) = page(&next, &plan, documents);
        if results.is_empty() {
            prop_assert_eq!(&bookmark, &next.bookmark);
            break;
        }
        paged.extend(results.into_iter().map(|(id, _)| id));
        let text = Bookmark::encode_or_nil(bookmark.as_ref());
        next.bookmark = Bookmark::decode(&text).unwrap();
        prop_assert_eq!(&next.bookmark, &bookmark);
        next.skip = 0;
    }
    let skipped: Vec<String> = in_order.into_iter().skip(usize::try_from(query.skip).unwrap()).collect();
    prop_assert_eq!(paged, skipped);
    Ok(plan.index().is_some())
}

#[derive(Clone, Debug)]
struct Case {
    body: Value,
    indexes: Vec<Value>,
    documents: Vec<Value>,
}

/// A query of any form, over some indexes.
fn case() -> impl Strategy<Value = Case> {
    values().prop_flat_map(|values| {
        let flat = prop::collection::vec(condition(&values), 1..3).prop_map(|all| json!({ "$and": all }));
        let selector = prop_oneof![flat, selector(&values)];
        let fields = prop::option::weighted(0.5, prop::collection::vec(field(), 1..4));
        let wanted = prop::option::weighted(0.3, 0..4_usize);
        let indexes = prop::collection::vec(index(&values), 0..5);
        let query = (selector, fields, sort(), wanted, 1..4_u64, 0..3_u64);
        (query, indexes, documents(&values)).prop_map(|(query, indexes, documents)| {
            let (selector, fields, sort, wanted, limit, skip) = query;
            let mut body = json!({ "selector": selector, "limit": limit, "skip": skip });
            if let Some(fields) = fields {
                body["fields"] = json!(fields);
            }
            if let Some(index) = indexes.first() {
                sort_by_columns(&mut body, &columns(index), sort);
            }
            if let Some(wanted) = wanted {
                body["use_index"] = json!(format!("d{wanted}"));
            }
            Case { body, indexes, documents }
        })
    })
}

/// From which column on, how many, and which way.
type Sort = Option<(usize, usize, bool)>;

fn sort() -> impl Strategy<Value = Sort> {
    prop::option::weighted(0.4, (0..2_usize, 1..4_usize, any::<bool>()))
}

/// A sort that no index gives is refused; so fields of an index are sorted by, of which the others must be there.
fn sort_by_columns(body: &mut Value, columns: &[String], sort: Sort) {
    let Some((from, count, descending)) = sort else { return };
    let direction = if descending { "desc" } else { "asc" };
    let sorted = columns.iter().skip(from).take(count);
    body["sort"] = sorted.map(|name| json!({ name: direction })).collect();
    let mut all: Vec<Value> = columns.iter().map(|name| json!({ name: { "$exists": true } })).collect();
    all.push(body["selector"].take());
    body["selector"] = json!({ "$and": all });
}

/// A query that its one index can serve: conditions on the fields of the index, and perhaps another.
fn case_for_an_index() -> impl Strategy<Value = Case> {
    let index = values().prop_flat_map(|values| (index(&values), Just(values)));
    let index =
        index.prop_filter("few documents have it", |(index, _)| !columns(index).contains(&"o.1".to_owned()));
    index.prop_flat_map(|(index, values)| {
        let names = columns(&index);
        let on = values.clone();
        let condition_on_column = select(names.clone()).prop_flat_map(move |name| condition_on(name, &on));
        let conditions = prop::collection::vec(condition_on_column, 1..4);
        let other = prop::option::weighted(0.2, condition(&values));
        let sort = sort().prop_map(|sort| sort.map(|(_, count, descending)| (0, count, descending)));
        let fields = prop::option::weighted(0.5, Just(()));
        (conditions, other, sort, fields, documents(&values)).prop_map(
            move |(mut all, other, sort, fields, documents)| {
                all.extend(other);
                all.extend(names.iter().map(|name| json!({ name: { "$exists": true } })));
                let mut body = json!({ "selector": { "$and": all }, "use_index": "d0", "limit": 3 });
                sort_by_columns(&mut body, &names, sort);
                if fields.is_some() {
                    body["fields"] = json!(names);
                }
                Case { body, indexes: vec![index.clone()], documents }
            },
        )
    })
}

fn columns(index: &Value) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for column in index["index"]["fields"].as_array().unwrap() {
        let name = column.as_object().unwrap().keys().next().unwrap();
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn definitions(indexes: &[Value]) -> Vec<Arc<IndexDefinition>> {
    let named = indexes.iter().enumerate().map(|(number, index)| {
        let mut index = index.clone();
        index["ddoc"] = json!(format!("d{number}"));
        Arc::new(IndexDefinition::parse(&index).unwrap_or_else(|error| panic!("{index}: {error}")))
    });
    named.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_gives_what_looking_at_every_document_gives(case in case()) {
        check(&case.body, &definitions(&case.indexes), &case.documents)?;
    }

    #[test]
    fn the_ranges_of_an_index_have_every_match(case in case_for_an_index()) {
        let by_index = check(&case.body, &definitions(&case.indexes), &case.documents)?;
        prop_assert!(by_index);
    }

    #[test]
    fn the_normal_form_read_again_is_the_same(
        (selector, documents) in values().prop_flat_map(|values| (selector(&values), documents(&values))),
    ) {
        let first = Selector::parse(&selector).unwrap();
        let again = Selector::parse(&first.to_json()).unwrap_or_else(|error| panic!("{}: {error}", first.to_json()));
        prop_assert_eq!(first.to_json(), again.to_json());
        for document in &documents {
            prop_assert_eq!(first.matches(document), again.matches(document));
        }
    }
}
