//! Mango queries: whatever is indexed, the answer is that of looking at every document, in one go and page by page.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::sample::select;
use scrinium_database::{DatabaseError, Edit, EditMode, RowQuery};
use scrinium_mango::{Bookmark, IndexDefinition, MangoError, Query, Selector, plan};
use scrinium_store::{Batch, Direction, Family, KeyRange};
use scrinium_views::{ExecutionStatistics, Find, OpenDatabase};
use serde_json::{Value, json};

use crate::common::words::Words as _;
use crate::common::{SERVER, Server, edit, get, put, replicate};
use crate::support::{compare, condition, documents, field, index, lies_at, selector, values};

/// Sort keys are cut here.
const CUT_BYTES: usize = 1023;

fn find(database: &OpenDatabase, body: &Value) -> Result<Find, DatabaseError> {
    database.find(&Query::parse(body).unwrap(), &SERVER)
}

/// All that a query gives, a few at a time.
fn drain(find: &mut Find) -> Vec<Value> {
    let mut results = Vec::new();
    while !find.is_at_end() {
        results.extend(find.next(2, 3).unwrap());
    }
    results.iter().map(|json| serde_json::from_str(json).unwrap()).collect()
}

fn results(database: &OpenDatabase, body: &Value) -> Vec<Value> {
    drain(&mut find(database, body).unwrap())
}

fn ids(database: &OpenDatabase, body: &Value) -> Vec<String> {
    let ids = results(database, body).into_iter().map(|result| result["_id"].as_str().unwrap().to_owned());
    ids.collect()
}

fn create(database: &OpenDatabase, body: &Value) -> bool {
    database.create_index(&IndexDefinition::parse(body).unwrap(), &SERVER).unwrap()
}

fn statistics(find: &Find) -> (u64, u64, u64) {
    let ExecutionStatistics { keys_examined, documents_examined, results_returned, .. } =
        find.execution_stats();
    (keys_examined, documents_examined, results_returned)
}

/// Every document as it is read, but design documents.
fn everything(database: &OpenDatabase) -> Vec<Value> {
    let query = RowQuery { include_documents: true, ..RowQuery::default() };
    let mut rows = database.all_documents(query, &SERVER).unwrap();
    let rows = rows.next_rows(1000).unwrap().into_iter();
    let documents = rows.map(|row| serde_json::from_str::<Value>(&row.document.unwrap()).unwrap());
    documents.filter(|document| !document["_id"].as_str().unwrap().starts_with("_design/")).collect()
}

/// What looking at every document gives, in no order.
fn expected(query: &Query, filter: &Selector, documents: &[Value]) -> Vec<Value> {
    let whole = query.selector.to_json();
    let asks_for_nothing = whole == json!({ "$and": [] }) || whole == json!({ "$or": [] });
    let is_result = |document: &&Value| {
        !asks_for_nothing
            && query.selector.matches(*document)
            && query.sort.iter().all(|field| lies_at(document, &field.path).is_some())
            && filter.matches(*document)
    };
    documents.iter().filter(is_result).cloned().collect()
}

fn check(database: &OpenDatabase, body: &Value) -> Result<(), TestCaseError> {
    let query = Query::parse(body).unwrap();
    let indexes = database.mango_indexes(&SERVER).unwrap();
    let plan = match plan(&query, &indexes) {
        Ok(plan) => plan,
        Err(MangoError::NoSortIndex) => {
            let refused = database.find(&query, &SERVER).map(|_| ()).unwrap_err();
            prop_assert_eq!(refused.error(), "no_usable_index");
            return Ok(());
        }
        Err(error) => panic!("{body}: {error}"),
    };
    let filter = plan.index().and_then(|index| index.partial_filter().cloned()).unwrap_or_default();
    let expected = expected(&query, &filter, &everything(database));

    let mut whole = body.clone();
    (whole["limit"], whole["skip"]) = (json!(1_000_000), json!(0));
    whole.as_object_mut().unwrap().remove("fields");
    let in_order = results(database, &whole);
    prop_assert!(
        in_order.is_sorted_by(|left, right| compare(&query, left, right, CUT_BYTES).is_le()),
        "{in_order:?}"
    );
    let by_id = |documents: &[Value]| {
        let mut documents = documents.to_vec();
        documents.sort_by_key(|document| document["_id"].to_string());
        documents
    };
    prop_assert_eq!(by_id(&in_order), by_id(&expected), "{} by {:?}", body, plan);

    let projected: Vec<Value> = in_order
        .iter()
        .map(|document| query.fields.project(document))
        .skip(query.skip.try_into().unwrap())
        .collect();
    whole["skip"] = body["skip"].clone();
    whole["fields"] = body["fields"].clone();
    prop_assert_eq!(&results(database, &whole), &projected);

    let (mut page, mut paged) = (body.clone(), Vec::new());
    loop {
        let mut found = find(database, &page).unwrap();
        let some = drain(&mut found);
        prop_assert!(some.len() as u64 <= query.limit);
        if some.is_empty() {
            let before = page.get("bookmark").and_then(Value::as_str).unwrap_or("nil");
            prop_assert_eq!(found.bookmark(), before);
            break;
        }
        paged.extend(some);
        page["bookmark"] = json!(found.bookmark());
        page["skip"] = json!(0);
    }
    prop_assert_eq!(paged, projected);
    Ok(())
}

#[derive(Clone, Debug)]
struct Case {
    indexes: Vec<Value>,
    queries: Vec<Value>,
    before: Vec<Value>,
    after: Vec<Value>,
}

fn query(values: &[Value], columns: Vec<Vec<String>>) -> impl Strategy<Value = Value> + use<> {
    let flat = prop::collection::vec(condition(values), 1..3).prop_map(|all| json!({ "$and": all }));
    let selector = prop_oneof![2 => flat, 1 => selector(values)];
    let fields = prop_oneof![
        2 => Just(json!([])),
        1 => prop::collection::vec(field(), 1..4).prop_map(|fields| json!(fields)),
        2 => select(columns.clone()).prop_map(|columns| json!(columns)),
    ];
    let sort = prop::option::weighted(0.5, (select(columns), any::<bool>()));
    let wanted = prop::option::weighted(0.3, 0..3_usize);
    (selector, fields, sort, wanted, 1..4_u64, 0..3_u64).prop_map(
        |(selector, fields, sort, wanted, limit, skip)| {
            let mut body = json!({ "selector": selector, "fields": fields, "limit": limit, "skip": skip });
            if let Some((columns, descending)) = sort {
                let direction = if descending { "desc" } else { "asc" };
                body["sort"] = columns.iter().map(|name| json!({ name: direction })).collect();
                let mut all: Vec<Value> =
                    columns.iter().map(|name| json!({ name: { "$exists": true } })).collect();
                all.push(body["selector"].take());
                body["selector"] = json!({ "$and": all });
            }
            if let Some(wanted) = wanted {
                body["use_index"] = json!(format!("d{wanted}"));
            }
            body
        },
    )
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

fn case() -> impl Strategy<Value = Case> {
    values().prop_flat_map(|values| {
        prop::collection::vec(index(&values), 1..4).prop_flat_map(move |indexes| {
            let columns = indexes.iter().map(columns).collect();
            let queries = prop::collection::vec(query(&values, columns), 6);
            (Just(indexes), queries, documents(&values), documents(&values))
                .prop_map(|(indexes, queries, before, after)| Case { indexes, queries, before, after })
        })
    })
}

/// Makes the documents those that are given: changes some, deletes those that are not among them.
fn become_these(database: &OpenDatabase, documents: &[Value]) {
    let old = everything(database);
    let is = |document: &&Value, id: &Value| document["_id"] == *id;
    let mut edits = Vec::new();
    for document in documents {
        let mut document = document.clone();
        if document["_id"].as_str().unwrap().starts_with("_design/") {
            continue;
        }
        match old.iter().find(|old| is(old, &document["_id"])) {
            Some(old) => document["_rev"] = old["_rev"].clone(),
            None => drop(document.as_object_mut().unwrap().remove("_rev")),
        }
        edits.push(edit(&document));
    }
    for old in old.iter().filter(|old| !documents.iter().any(|new| is(&new, &old["_id"]))) {
        edits.push(edit(&json!({ "_id": old["_id"], "_rev": old["_rev"], "_deleted": true })));
    }
    let updated = database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    assert!(updated.iter().all(Result::is_ok), "{updated:?}");
}

static DATABASES: AtomicUsize = AtomicUsize::new(0);

fn check_case(server: &Server, case: &Case) -> Result<(), TestCaseError> {
    let number = DATABASES.fetch_add(1, Ordering::Relaxed);
    let database =
        server.databases.create(&format!("d{number}"), &scrinium_database::InitialAccess::Everybody).unwrap();
    become_these(&database, &case.before);
    for (number, index) in case.indexes.iter().enumerate() {
        let mut index = index.clone();
        index["ddoc"] = json!(format!("d{number}"));
        assert!(create(&database, &index));
        assert!(!create(&database, &index));
    }
    case.queries.iter().try_for_each(|query| check(&database, query))?;
    become_these(&database, &case.after);
    case.queries.iter().try_for_each(|query| check(&database, query))?;
    for index in database.mango_indexes(&SERVER).unwrap().iter() {
        database.delete_index(index.design(), index.name(), &SERVER).unwrap();
    }
    assert!(database.mango_indexes(&SERVER).unwrap().is_empty());
    case.queries.iter().try_for_each(|query| check(&database, query))?;
    server.databases.delete(&format!("d{number}")).unwrap();
    Ok(())
}

#[test]
fn a_query_gives_what_looking_at_every_document_gives() {
    let server = Server::new();
    let config = ProptestConfig {
        cases: scrinium_fault::cases(100),
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    runner.run(&case(), |case| check_case(&server, &case)).unwrap();
}

/// Documents `d0` to `d99`; `group` is one of ten, `number` their place.
fn filled(server: &Server) -> OpenDatabase {
    let database = server.databases.create("some", &scrinium_database::InitialAccess::Everybody).unwrap();
    let document = |number: u32| json!({ "_id": format!("d{number:02}"), "group": number % 10, "number": number, "text": "x".repeat(5000) });
    let edits: Vec<Edit> = (0..100).map(|number| edit(&document(number))).collect();
    database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    assert!(create(&database, &json!({ "index": { "fields": ["group"] }, "ddoc": "by", "name": "group" })));
    database
}

#[test]
fn only_what_is_needed_is_examined() {
    let server = Server::new();
    let database = filled(&server);
    let examined = |body: Value| {
        let mut find = find(&database, &body).unwrap();
        let results = drain(&mut find).len();
        assert_eq!(statistics(&find).2, results as u64);
        (statistics(&find), find.warning().is_some())
    };
    assert_eq!(examined(json!({ "selector": { "group": 3 }, "limit": 4 })), ((4, 4, 4), false));
    assert_eq!(examined(json!({ "selector": { "group": 3 }, "skip": 7 })), ((3, 3, 3), false));
    let covered = json!({ "selector": { "group": { "$gt": 7 } }, "fields": ["_id", "group"] });
    assert_eq!(examined(covered), ((20, 0, 20), false));
    let sorted =
        json!({ "selector": { "group": { "$in": [1, 2] } }, "sort": [{ "group": "desc" }], "limit": 3 });
    assert_eq!(examined(sorted), ((3, 3, 3), false));
    assert_eq!(examined(json!({ "selector": { "_id": "d07" } })), ((1, 1, 1), true));
    assert_eq!(examined(json!({ "selector": { "number": 5 } })), ((100, 100, 1), true));
    assert_eq!(examined(json!({ "selector": { "group": 3 }, "limit": 0 })), ((0, 0, 0), false));
    let quorum = json!({ "selector": { "group": 3 }, "r": 2 });
    let mut quorum = find(&database, &quorum).unwrap();
    drain(&mut quorum);
    assert_eq!(quorum.execution_stats().quorum_documents_examined, 10);

    let mut bounded = find(&database, &json!({ "selector": { "number": 99 } })).unwrap();
    assert!(bounded.next(10, 50).unwrap().is_empty() && !bounded.is_at_end());
    assert_eq!(bounded.next(10, 50).unwrap().len(), 1);
}

#[test]
fn an_index_that_stands_still_gives_nothing_wrong() {
    let server = Server::new();
    let database = filled(&server);
    let stale = json!({ "selector": { "group": 3 }, "update": false, "limit": 100 });
    assert!(ids(&database, &stale).is_empty());
    assert_eq!(ids(&database, &json!({ "selector": { "group": 3 }, "limit": 100 })).len(), 10);
    let mut moved = get(&database, "d03").unwrap();
    moved["group"] = json!(4);
    put(&database, &moved).unwrap();
    let deleted = get(&database, "d13").unwrap();
    put(&database, &json!({ "_id": "d13", "_rev": deleted["_rev"], "_deleted": true })).unwrap();
    put(&database, &json!({ "_id": "new", "group": 3, "number": 0 })).unwrap();
    assert_eq!(ids(&database, &stale), ["d23", "d33", "d43", "d53", "d63", "d73", "d83", "d93"]);
    let skipped = json!({ "selector": { "group": 3 }, "update": false, "skip": 7 });
    assert_eq!(ids(&database, &skipped), ["d93"]);
    let fresh = json!({ "selector": { "group": { "$in": [3, 4] } }, "skip": 7, "limit": 3 });
    assert_eq!(ids(&database, &fresh), ["d93", "new", "d03"]);
}

#[test]
fn what_changes_meanwhile_matches_as_it_is_answered() {
    let server = Server::new();
    let database = filled(&server);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut group = 0;
            while !stop.load(Ordering::Relaxed) {
                group = 7 - group.max(3);
                for id in ["d03", "d13", "d24", "d34"] {
                    let mut document = get(&database, id).unwrap();
                    document["group"] = json!(group);
                    put(&database, &document).unwrap();
                }
            }
        });
        for round in 0..500 {
            let found = results(&database, &json!({ "selector": { "group": 3 }, "update": round % 5 != 0 }));
            assert!(found.iter().all(|document| document["group"] == 3), "{found:?}");
            // Eight of its group are never changed.
            assert!(round == 0 || found.len() >= 8, "{}", found.len());
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_page_begins_behind_an_entry_that_is_gone() {
    let server = Server::new();
    let database = filled(&server);
    for direction in ["asc", "desc"] {
        let mut page = json!({ "selector": { "group": 5 }, "sort": [{ "group": direction }], "limit": 3 });
        let mut first = find(&database, &page).unwrap();
        let last = drain(&mut first).pop().unwrap();
        put(&database, &json!({ "_id": last["_id"], "_rev": last["_rev"], "_deleted": true })).unwrap();
        page["bookmark"] = json!(first.bookmark());
        page["limit"] = json!(1);
        let expected = if direction == "asc" { "d35" } else { "d65" };
        assert_eq!(ids(&database, &page), [expected]);
    }
    for (selector, key) in [(json!({ "group": 5 }), json!([5, 1])), (json!({ "text": "a" }), json!([5]))] {
        let foreign = Bookmark { key: key.as_array().unwrap().clone(), id: "d05".to_owned() };
        let body = json!({ "selector": selector, "bookmark": foreign.encode() });
        assert_eq!(find(&database, &body).map(|_| ()).unwrap_err().error(), "invalid_bookmark");
    }
}

#[test]
fn conflicts_and_attachments_are_fields() {
    let server = Server::new();
    let database = server.databases.create("some", &scrinium_database::InitialAccess::Everybody).unwrap();
    for digit in ["a", "b"] {
        replicate(&database, &json!({ "_id": "c", "_rev": format!("1-{}", digit.repeat(32)), "x": digit }))
            .unwrap();
    }
    put(&database, &json!({ "_id": "plain", "x": "b" })).unwrap();
    let attachment = json!({ "a.txt": { "content_type": "text/plain", "data": "YQ==" } });
    put(&database, &json!({ "_id": "with", "x": "b", "_attachments": attachment })).unwrap();
    let conflicts = json!([format!("1-{}", "a".repeat(32))]);
    let selector = json!({ "_conflicts": { "$exists": true } });
    assert!(results(&database, &json!({ "selector": selector })).is_empty());
    let found = results(&database, &json!({ "selector": selector, "conflicts": true }));
    assert_eq!((found.len(), &found[0]["x"], &found[0]["_conflicts"]), (1, &json!("b"), &conflicts));
    let some = json!({ "selector": selector, "conflicts": true, "fields": ["_id", "_conflicts"] });
    assert_eq!(results(&database, &some), [json!({ "_id": "c", "_conflicts": conflicts })]);

    let with = json!({ "selector": { "_attachments": { "$exists": true } } });
    assert_eq!(results(&database, &with), [get(&database, "with").unwrap()]);
    create(&database, &json!({ "index": { "fields": ["_attachments.a\\.txt.length"] }, "ddoc": "length" }));
    let length = json!({ "selector": { "_attachments.a\\.txt.length": 1 }, "fields": ["_attachments"] });
    assert_eq!(find(&database, &length).unwrap().warning(), None);
    assert_eq!(results(&database, &length)[0]["_attachments"]["a.txt"]["stub"], true);
}

#[test]
fn a_field_that_cannot_be_read_is_reported() {
    let server = Server::new();
    drop(filled(&server));
    let server = server.reopen();
    let store = server.store.as_ref().unwrap();
    let snapshot = store.snapshot();
    let mut cursor = snapshot.cursor(Family::Blob, KeyRange::ALL, Direction::Forward);
    let mut batch = Batch::new();
    while let Some((key, _)) = cursor.next().unwrap() {
        batch.delete(Family::Blob, key);
    }
    store.commit(batch).unwrap();
    let database = server.databases.get("some").unwrap();
    let fails = |body: Value| find(&database, &body).unwrap().next(10, 10).is_err();
    assert!(fails(json!({ "selector": { "text": { "$ne": "a" } } })));
    assert!(fails(json!({ "selector": { "group": 3 }, "fields": ["text"] })));
    assert!(fails(json!({ "selector": { "group": 3 } })));
    assert!(!fails(json!({ "selector": { "number": { "$gt": 5 } }, "fields": ["group"] })));
}

#[test]
fn indexes_of_other_servers_are_used_where_they_are_indexes() {
    let server = Server::new();
    let database = filled(&server);
    let index =
        json!({ "map": { "fields": { "text": "asc" } }, "reduce": "_count", "options": { "def": {} } });
    let design =
        json!({ "_id": "_design/other", "language": "query", "views": { "none": {}, "text": index } });
    assert_eq!(put(&database, &design).unwrap_err().error(), "compilation_error");
    let mut replicated = design;
    replicated["_rev"] = json!(format!("1-{}", "a".repeat(32)));
    replicate(&database, &replicated).unwrap();
    let names: Vec<String> =
        database.mango_indexes(&SERVER).unwrap().iter().map(|index| index.name().to_owned()).collect();
    assert_eq!(names, ["group", "text"]);
    let query = json!({ "selector": { "text": { "$gt": "a" } }, "limit": 1000 });
    assert_eq!(ids(&database, &query).len(), 100);
    assert_eq!(database.delete_index("_design/other", "nothing", &SERVER).unwrap_err().reason(), "missing");
    assert_eq!(database.delete_index("_design/nothing", "text", &SERVER).unwrap_err().reason(), "missing");
}
