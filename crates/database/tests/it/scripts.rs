//! JavaScript views: CouchDB's rules for rows and reductions, and functions that mean harm.

use std::collections::BTreeMap;

use proptest::prelude::*;
use scrinium_database::{EditMode, Row, RowQuery};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::words::Words as _;
use crate::common::{SERVER, Server, all_rows, edit, get, put, replicate};

fn read(database: &OpenDatabase, view: &str, query: RowQuery) -> Vec<Row> {
    all_rows(database.view("js", view, query, &SERVER).unwrap())
}

/// Rows as `key value`, which are JSON.
fn rows(database: &OpenDatabase, view: &str, query: RowQuery) -> Vec<String> {
    let rows = read(database, view, query).into_iter();
    rows.map(|row| format!("{} {}", row.key, row.value.unwrap_or_default())).collect()
}

fn with_views(views: &Value) -> (Server, OpenDatabase) {
    let server = Server::new();
    let database = server.databases.create("db", &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&database, &json!({"_id": "_design/js", "views": views})).unwrap();
    (server, database)
}

#[test]
fn a_design_document_that_does_not_compile_is_refused_in_every_way_of_writing() {
    let server = Server::new();
    let database = server.databases.create("db", &scrinium_database::InitialAccess::Everybody).unwrap();
    let design = json!({"_id": "_design/d", "_rev": "1-a", "views": {"v": {"map": "function ("}}});
    for refused in [put(&database, &design), replicate(&database, &design)] {
        assert_eq!(refused.unwrap_err().error(), "compilation_error");
    }
}

#[test]
fn rows_and_reductions_come_as_couchdb_gives_them() {
    let (_server, database) = with_views(&json!({
        "lib": {"names": "exports.upper = function (text) { return text.toUpperCase(); };"},
        "sales": {"map": "function (doc) { if (doc.at) emit(doc.at, doc.amount); }", "reduce": "_sum"},
        "stats": {"map": "doc => { if (doc.at) emit(doc.at[0], doc.amount) }", "reduce": "_stats"},
        "largest": {
            "map": "function (doc) { if (doc.at) emit(doc.at, doc.amount); }",
            "reduce": "function (keys, values, rereduce) { return Math.max.apply(null, values); }",
        },
        "names": {"map": "function (doc) { emit(require('views/lib/names').upper(doc._id), null); emit(null); }"},
    }));
    let sales = [
        ("a", json!(["it", "roma"]), 10),
        ("b", json!(["it", "bari"]), 20),
        ("c", json!(["ch"]), 5),
        ("d", json!(["it"]), 1),
    ];
    for (id, at, amount) in &sales {
        put(&database, &json!({"_id": id, "at": at, "amount": amount})).unwrap();
    }
    let query = RowQuery::default;
    let level = |level: u32| RowQuery { group_level: Some(level), ..query() };
    assert_eq!(rows(&database, "sales", query()), ["null 36"]);
    assert_eq!(rows(&database, "sales", level(1)), [r#"["ch"] 5"#, r#"["it"] 31"#]);
    let all = [r#"["ch"] 5"#, r#"["it"] 1"#, r#"["it","bari"] 20"#, r#"["it","roma"] 10"#];
    assert_eq!(rows(&database, "sales", RowQuery { group: true, ..query() }), all);
    assert_eq!(rows(&database, "sales", RowQuery { reduce: Some(false), ..query() }), all);
    let down = RowQuery { group: true, descending: true, skip: 1, limit: Some(2), ..query() };
    assert_eq!(rows(&database, "sales", down), [all[2], all[1]]);
    let within = RowQuery { start_key: Some(json!(["it"])), end_key: Some(json!(["it", {}])), ..query() };
    assert_eq!(rows(&database, "sales", within), ["null 31"]);
    let keys = RowQuery { keys: Some(vec![json!(["it"]), json!(["ch"])]), group: true, ..query() };
    assert_eq!(rows(&database, "sales", keys), [r#"["it"] 1"#, r#"["ch"] 5"#]);
    let stats = rows(&database, "stats", RowQuery { group: true, ..query() });
    let of_italy: Value = serde_json::from_str(stats[1].split_once(' ').unwrap().1).unwrap();
    assert_eq!(of_italy, json!({"sum": 31, "count": 3, "min": 1, "max": 20, "sumsqr": 501}));
    assert_eq!(rows(&database, "largest", level(1)), [r#"["ch"] 5"#, r#"["it"] 20"#]);
    assert_eq!(rows(&database, "names", query())[3..6], ["null null", r#""A" null"#, r#""B" null"#]);
    for (view, query, reason) in [
        ("names", RowQuery { reduce: Some(true), ..query() }, "Reduce is invalid for map-only views."),
        ("names", RowQuery { group: true, ..query() }, "Invalid use of grouping on a map view."),
        (
            "sales",
            RowQuery { keys: Some(vec![]), ..query() },
            "Multi-key fetches for reduce views must use `group=true`",
        ),
    ] {
        assert_eq!(database.view("js", view, query, &SERVER).err().unwrap().to_string(), reason);
    }
    assert_eq!(database.view_info("js", &SERVER).unwrap()["view_index"]["language"], "javascript");
}

/// A function that loops, throws or eats memory on one document costs that document, in that view.
#[test]
fn a_bad_document_costs_itself_only() {
    let (_server, database) = with_views(&json!({
        "bad": {"map": "function (doc) { if (doc.bad === 'throw') throw new Error('no'); \
            if (doc.bad === 'deep') { (function f() { f(); f(); })(); } \
            if (doc.bad === 'memory') { var all = []; while (true) all.push(new Array(100000).join('x') + all.length); } \
            emit(doc._id, 1); }", "reduce": "_count"},
        "good": {"map": "function (doc) { emit(doc._id, 1); }"},
    }));
    for (id, bad) in [("a", "no"), ("b", "throw"), ("c", "deep"), ("d", "memory"), ("e", "no")] {
        put(&database, &json!({"_id": id, "bad": bad})).unwrap();
    }
    assert_eq!(
        rows(&database, "bad", RowQuery { reduce: Some(false), ..RowQuery::default() }),
        [r#""a" 1"#, r#""e" 1"#]
    );
    assert_eq!(rows(&database, "bad", RowQuery::default()), ["null 2"]);
    assert_eq!(rows(&database, "good", RowQuery::default()).len(), 5);
    let errors = &database.view_info("js", &SERVER).unwrap()["view_index"]["errors"];
    assert_eq!((errors["bad"]["count"].as_u64(), errors.get("good")), (Some(3), None), "{errors}");
    assert!(errors["bad"]["last"].as_str().unwrap().contains("memory"), "{errors}");
}

#[test]
fn functions_that_cannot_be_compiled_are_refused() {
    let (_server, database) = with_views(&json!({}));
    let refused = |view: Value| {
        let error = put(&database, &json!({"_id": "_design/x", "views": {"v": view}})).unwrap_err();
        (error.error(), error.to_string())
    };
    let (error, reason) = refused(json!({"map": "function (doc) {\n  emit(doc._id, ; }"}));
    assert_eq!(error, "compilation_error");
    assert!(reason.starts_with("view `v`, map: line 2"), "{reason}");
    assert!(refused(json!({"map": "1 + 1"})).1.contains("no function"));
    assert!(refused(json!({"map": "function (doc) {}", "reduce": "_median"})).1.contains("`_median`"));
    assert!(
        refused(json!({"map": "function (doc) {}", "reduce": "function ("}))
            .1
            .starts_with("view `v`, reduce")
    );
    assert!(refused(json!({"selection": "SELECT @All"})).1.contains("no `map` function"));
}

/// A design document of a database with more documents than are followed one by one is built in bulk.
#[test]
fn large_databases_are_built_in_bulk() {
    let server = Server::new();
    let database = server.databases.create("db", &scrinium_database::InitialAccess::Everybody).unwrap();
    let edits =
        (0..3000).map(|number: u32| edit(&json!({"_id": format!("{number:05}"), "n": number}))).collect();
    database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    let views =
        json!({"thirds": {"map": "function (doc) { emit([doc.n % 3, doc.n], doc.n); }", "reduce": "_sum"}});
    put(&database, &json!({"_id": "_design/js", "language": "javascript", "views": views})).unwrap();
    let level = RowQuery { group_level: Some(1), ..RowQuery::default() };
    assert_eq!(rows(&database, "thirds", level), ["[0] 1498500", "[1] 1499500", "[2] 1500500"]);
    assert_eq!(
        rows(&database, "thirds", RowQuery { reduce: Some(false), skip: 2999, ..RowQuery::default() }),
        ["[2,2999] 2999"]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scrinium_fault::cases(24)))]

    /// After any updates and deletions, groups and sums are those of a plain list.
    #[test]
    fn reductions_are_those_of_a_plain_list(
        steps in proptest::collection::vec((0_u8..40, 0_i64..5, any::<bool>(), 0_i64..1000), 1..120),
        query_every in 5_usize..40,
    ) {
        let (_server, database) = with_views(&json!({"v": {
            "map": "function (doc) { emit([doc.a, doc._id], doc.n); }",
            "reduce": "function (keys, values) { var all = 0; values.forEach(function (value) { all += value; }); return all; }"}}));
        let mut model: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for (step, (number, a, delete, n)) in steps.into_iter().enumerate() {
            let id = format!("d{number:02}");
            let mut document = json!({"_id": id, "a": a, "n": n, "_deleted": delete});
            if let Ok(old) = get(&database, &id) {
                document["_rev"] = old["_rev"].clone();
            } else if delete {
                continue;
            }
            put(&database, &document).unwrap();
            if delete { model.remove(&id); } else { model.insert(id, (a, n)); }
            if step % query_every == 0 {
                let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
                model.values().for_each(|(a, n)| *sums.entry(*a).or_default() += n);
                let wanted: Vec<String> = sums.iter().map(|(a, sum)| format!("[{a}] {sum}")).collect();
                let level = RowQuery { group_level: Some(1), ..RowQuery::default() };
                prop_assert_eq!(rows(&database, "v", level), wanted);
            }
        }
    }
}
