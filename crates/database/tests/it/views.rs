//! Views of formula design documents: order, categories, totals, keeping up, and building again.

use std::sync::mpsc;
use std::time::Duration;

use proptest::prelude::*;
use scrinium_database::{DatabaseOptions, Edit, EditMode, Freshness, RowQuery};
use scrinium_store::{Batch, Direction, Family, KeyRange};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::mail::{design, filled, ids, memo, read};
use crate::common::words::Words as _;
use crate::common::{SERVER, Server, edit, get, put};

#[test]
fn entries_come_in_the_order_of_the_columns() {
    let (_server, database) = filled();
    let query = RowQuery::default;
    let rows = read(&database, "inbox", query());
    assert_eq!(rows[0].key, r#"["2026-01-03"]"#);
    let value: Value = serde_json::from_str(rows[0].value.as_ref().unwrap()).unwrap();
    assert_eq!(value, json!({"Date": "2026-01-03", "From": "adam", "Size": 20}));
    assert_eq!(ids(&database, "inbox", query()), "b c a");
    assert_eq!(ids(&database, "inbox", RowQuery { descending: true, ..query() }), "a c b");
    let from = RowQuery { start_key: Some(json!("2026-01-02")), ..query() };
    assert_eq!(ids(&database, "inbox", from), "c a");
    let one = RowQuery { keys: Some(vec![json!(["2026-01-02"]), json!("2026-01-03")]), ..query() };
    assert_eq!(ids(&database, "inbox", one), "c b");
    let page = RowQuery { skip: 1, limit: Some(1), ..query() };
    assert_eq!(ids(&database, "inbox", page.clone()), "c");
    let rows = database.view("mail", "inbox", page, &SERVER).unwrap();
    assert_eq!((rows.total_rows, rows.offset), (Some(3), Some(1)));
    let with = RowQuery { include_documents: true, limit: Some(1), ..query() };
    let document: Value =
        serde_json::from_str(read(&database, "inbox", with)[0].document.as_ref().unwrap()).unwrap();
    assert_eq!(document, get(&database, "b").unwrap());
    let missing = database.view("mail", "nothing", query(), &SERVER).map(|_| ()).unwrap_err();
    assert_eq!(missing.reason(), "missing_named_view");
}

#[test]
fn categories_have_counts_and_totals() {
    let (_server, database) = filled();
    assert_eq!(ids(&database, "by category", RowQuery::default()), "c d b b a");
    let totals = |query: RowQuery| -> Vec<(String, Value)> {
        read(&database, "by category", query)
            .into_iter()
            .map(|row| (row.key.into(), serde_json::from_str(&row.value.unwrap()).unwrap()))
            .collect()
    };
    let total = |count: u32, size: f64| json!({"count": count, "totals": {"Size": size}});
    let all = RowQuery { reduce: Some(true), ..RowQuery::default() };
    assert_eq!(totals(all), [("null".to_owned(), total(5, 85.0))]);
    let groups = RowQuery { group_level: Some(1), ..RowQuery::default() };
    let expected = [
        (r"[null]".to_owned(), total(2, 35.0)),
        (r#"["home"]"#.to_owned(), total(1, 20.0)),
        (r#"["work"]"#.to_owned(), total(2, 30.0)),
    ];
    assert_eq!(totals(groups.clone()), expected);
    let backwards = RowQuery { descending: true, skip: 1, limit: Some(1), ..groups };
    assert_eq!(totals(backwards), expected[1..2]);
    let some = RowQuery {
        reduce: Some(true),
        start_key: Some(json!(["home"])),
        end_key: Some(json!(["work", "adam"])),
        ..RowQuery::default()
    };
    assert_eq!(totals(some), [("null".to_owned(), total(2, 40.0))]);
}

#[test]
fn a_view_follows_the_documents_unless_told_not_to() {
    let (server, database) = filled();
    let stands = || RowQuery { freshness: Freshness::AsItStands, ..RowQuery::default() };
    assert_eq!(ids(&database, "inbox", stands()), "");
    assert_eq!(ids(&database, "inbox", RowQuery::default()), "b c a");
    let b = get(&database, "b").unwrap();
    put(&database, &json!({"_id": "b", "_rev": b["_rev"], "_deleted": true})).unwrap();
    let mut a = get(&database, "a").unwrap();
    a["Date"] = json!("2026-02-01");
    put(&database, &a).unwrap();
    assert_eq!(ids(&database, "inbox", stands()), "b c a");
    let soon = RowQuery { freshness: Freshness::UpToDateSoon, ..RowQuery::default() };
    assert_eq!(ids(&database, "inbox", soon), "b c a");
    assert_eq!(database.take_wanted_views(), ["mail"]);
    assert_eq!(ids(&database, "inbox", RowQuery::default()), "a c");
    let info = database.view_info("mail", &SERVER).unwrap();
    assert_eq!(info["view_index"]["pending_changes"], 0);
    drop(database);
    let server = server.reopen();
    let database = server.databases.get("mail/ada").unwrap();
    assert_eq!(ids(&database, "inbox", stands()), "a c", "an index is kept across a restart");
}

#[test]
fn a_changed_design_builds_only_what_it_changed() {
    let (_server, database) = filled();
    assert_eq!(ids(&database, "inbox", RowQuery::default()), "b c a");
    let mut changed = get(&database, "_design/mail").unwrap();
    changed["views"]["by category"]["selection"] = json!("SELECT Form = \"Note\"");
    put(&database, &changed).unwrap();
    let stands = RowQuery { freshness: Freshness::AsItStands, ..RowQuery::default() };
    assert_eq!(ids(&database, "inbox", stands.clone()), "b c a");
    assert_eq!(ids(&database, "by category", stands), "");
    assert_eq!(ids(&database, "by category", RowQuery::default()), "d");
    assert_eq!(database.clean_up_views().unwrap(), 1);
    assert_eq!(ids(&database, "by category", RowQuery::default()), "d");
}

#[test]
fn a_formula_that_does_not_compile_says_where() {
    let (_server, database) = filled();
    let broken =
        json!({"_id": "_design/x", "language": "formula", "views": {"v": {"selection": "SELECT Form ="}}});
    let error = put(&database, &broken).unwrap_err();
    assert_eq!(error.error(), "compilation_error");
    assert!(error.reason().starts_with("view `v`, selection: line 1, column "), "{}", error.reason());
}

/// What a formula can ask of a stored document besides its fields.
#[test]
fn columns_know_the_document_itself() {
    let server = Server::new();
    let database = server.databases.create("mail/ada", &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&database, &json!({"_id": "a", "Form": "Memo", "$REF": "b", "Size": 7})).unwrap();
    let column = |formula: &str| json!({"title": formula, "formula": formula});
    let formulas = [
        ("@DocFields", json!(["Form", "$REF", "Size"])),
        ("@DocumentUniqueID", json!("a")),
        ("@Ref", json!("b")),
        ("@IsResponseDoc", json!(1)),
        ("@Size = @DocLength & @Size > 0", json!(1)),
        ("@Created = @AddedToThisFile & @ModifiedInThisFile >= @Created", json!(1)),
        ("@AbstractSimple({Form})", json!("Memo")),
        ("@GetCurrentTimeZone", json!("Z=0$DO=0$ZN=GMT")),
    ];
    let columns: Vec<Value> = formulas.iter().map(|(formula, _)| column(formula)).collect();
    let view = json!({"selection": "SELECT @All", "columns": columns});
    put(&database, &json!({"_id": "_design/mail", "language": "formula", "views": {"v": view}})).unwrap();
    let rows = read(&database, "v", RowQuery::default());
    let row: Value = serde_json::from_str(rows[0].value.as_ref().unwrap()).unwrap();
    for (formula, expected) in formulas {
        assert_eq!(row[formula], expected, "{formula}");
    }
}

#[test]
fn a_bulk_build_is_what_following_the_changes_gives() {
    let server = Server::new();
    let database =
        server.databases.create("mail/bulk", &scrinium_database::InitialAccess::Everybody).unwrap();
    let documents = (0..3000_u32).map(|n| {
        let category = json!([format!("c{}", n % 7), format!("c{}", n % 3)]);
        memo(&format!("{:05}", n * 7919 % 3000), &format!("2026-01-{:02}", n % 28 + 1), "x", n, &category)
    });
    let edits: Vec<Edit> = documents.map(|document| crate::common::edit(&document)).collect();
    database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    put(&database, &design()).unwrap();
    let built = read(&database, "by category", RowQuery::default());
    let followed =
        server.databases.create("mail/followed", &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&followed, &design()).unwrap();
    let all = read_documents(&database);
    for some in all.chunks(700) {
        let edits = some.iter().map(crate::common::edit).collect();
        followed.update(edits, EditMode::Replicated, &SERVER).unwrap().wait().unwrap();
        read(&followed, "inbox", RowQuery { limit: Some(1), ..RowQuery::default() });
    }
    assert_eq!(built.len(), 6000);
    assert_eq!(built, read(&followed, "by category", RowQuery::default()));
}

/// The reader of a bulk build once waited for ever for evaluators that had all stopped. What cannot be read is passed over.
#[test]
fn a_bulk_build_of_damaged_documents_ends_without_them() {
    let server = Server::new();
    let database =
        server.databases.create("mail/damaged", &scrinium_database::InitialAccess::Everybody).unwrap();
    for _ in 0..6 {
        let edits = (0..1000).map(|_| edit(&json!({"Form": "Memo"}))).collect();
        drop(database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap());
    }
    put(&database, &design()).unwrap();
    let store = server.store.as_ref().unwrap();
    let snapshot = store.snapshot();
    let mut cursor = snapshot.cursor(Family::Scan, KeyRange::ALL, Direction::Forward);
    let mut batch = Batch::new();
    while let Some((key, _)) = cursor.next().unwrap() {
        if !key.windows(7).any(|part| part == b"_design") {
            batch.put(Family::Scan, key, b"\xff");
        }
    }
    store.commit(batch).unwrap();
    let (ended, waiting) = mpsc::channel();
    let rows = move || {
        database.view("mail", "inbox", RowQuery::default(), &SERVER).unwrap().next_rows(1).unwrap().len()
    };
    std::thread::spawn(move || ended.send(rows()));
    assert_eq!(waiting.recv_timeout(Duration::from_secs(60)), Ok(0));
}

fn read_documents(database: &OpenDatabase) -> Vec<Value> {
    let mut rows =
        database.all_documents(RowQuery { include_documents: true, ..RowQuery::default() }, &SERVER).unwrap();
    let rows = rows.next_rows(usize::MAX).unwrap();
    rows.into_iter()
        .filter(|row| !row.id.as_ref().unwrap().starts_with('_'))
        .map(|row| serde_json::from_str(&row.document.unwrap()).unwrap())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scrinium_fault::cases(12), ..ProptestConfig::default() })]

    /// Random edits, with reads in between, against a sorted list of what is there.
    #[test]
    fn a_view_is_what_a_sorted_list_would_be(
        steps in prop::collection::vec((0..12_u8, 0..40_u32, prop::bool::weighted(0.2), any::<bool>()), 1..120)
    ) {
        let server = Server::new();
        let database = server.databases.create("mail/model", &scrinium_database::InitialAccess::Everybody).unwrap();
        put(&database, &design()).unwrap();
        let mut model = std::collections::BTreeMap::new();
        for (id, size, delete, look) in steps {
            let id = format!("n{id}");
            let present = get(&database, &id).ok();
            let mut document = memo(&id, &format!("{:02}", size % 5), "x", size, &json!(format!("c{}", size % 3)));
            if let Some(present) = &present {
                document["_rev"] = present["_rev"].clone();
            }
            if delete {
                model.remove(&id);
                if present.is_some() {
                    document["_deleted"] = json!(true);
                    put(&database, &document).unwrap();
                }
            } else {
                model.insert(id.clone(), size);
                put(&database, &document).unwrap();
            }
            if look {
                check(&database, &model)?;
            }
        }
        check(&database, &model)?;
    }
}

fn check(
    database: &OpenDatabase,
    model: &std::collections::BTreeMap<String, u32>,
) -> Result<(), TestCaseError> {
    let mut expected: Vec<(&String, u32)> = model.iter().map(|(id, size)| (id, *size)).collect();
    expected.sort_by_key(|(id, size)| (std::cmp::Reverse(size % 5), (*id).clone()));
    let names: Vec<&str> = expected.iter().map(|(id, _)| id.as_str()).collect();
    prop_assert_eq!(ids(database, "inbox", RowQuery::default()), names.join(" "));
    for skip in 0..=expected.len() {
        let query = RowQuery { skip: skip as u64, limit: Some(1), ..RowQuery::default() };
        let found = ids(database, "inbox", query);
        prop_assert_eq!(found.as_str(), names.get(skip).copied().unwrap_or(""));
    }
    prop_assert_eq!(read(database, "by category", RowQuery::default()).len(), model.len());
    let groups = read(database, "by category", RowQuery { group_level: Some(1), ..RowQuery::default() });
    for group in groups {
        let category: Value = serde_json::from_str(&group.key).unwrap();
        let value: Value = serde_json::from_str(&group.value.unwrap()).unwrap();
        let sizes: Vec<u32> =
            model.values().copied().filter(|size| json!([format!("c{}", size % 3)]) == category).collect();
        prop_assert_eq!(&value["count"], &json!(sizes.len()));
        prop_assert_eq!(value["totals"]["Size"].as_f64().unwrap(), f64::from(sizes.iter().sum::<u32>()));
    }
    Ok(())
}

/// A view with @Now once stood as it was built until a document changed, and then held a mixture.
#[test]
fn a_view_that_depends_on_the_time_is_evaluated_anew() {
    let read_after = |time_variant_seconds: i64| {
        let server =
            Server::timed_with(DatabaseOptions { time_variant_seconds, ..DatabaseOptions::default() });
        let database =
            server.databases.create("tasks", &scrinium_database::InitialAccess::Everybody).unwrap();
        let soon = server.databases.clock().timestamp() + Duration::from_secs(90);
        put(&database, &json!({"_id": "soon", "Due": soon.to_string()})).unwrap();
        put(&database, &json!({"_id": "late", "Due": "2020-01-01T00:00:00Z"})).unwrap();
        put(&database, &json!({"_id": "_design/mail", "language": "formula", "views": {"due": {
            "selection": "SELECT Due < @Now", "columns": [{"title": "Due", "formula": "Due", "sort": "asc"}]}}}))
        .unwrap();
        assert_eq!(ids(&database, "due", RowQuery::default()), "late");
        server.pass(Duration::from_secs(100));
        let found = ids(&database, "due", RowQuery::default());
        // Nothing is in it twice, nor taken out twice, when a document changes afterwards.
        put(&database, &json!({"_id": "other", "Due": "2021-01-01T00:00:00Z"})).unwrap();
        let all = read(&database, "due", RowQuery::default());
        (found, all.len())
    };
    assert_eq!(read_after(0), ("late soon".to_owned(), 3));
    assert_eq!(read_after(900), ("late".to_owned(), 2));
}

/// What a view cannot do is said when the design document is written.
#[test]
fn formulas_that_views_cannot_follow_are_refused() {
    let (_server, database) = filled();
    for (selection, word) in [
        ("SELECT Form = \"Memo\" | @AllDescendants", "@AllDescendants"),
        ("SELECT From = @UserName", "@UserName"),
    ] {
        let design =
            json!({"_id": "_design/x", "language": "formula", "views": {"v": {"selection": selection}}});
        let error = put(&database, &design).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains("view `v`, selection"), "{error}");
    }
}

/// Building the views of a changed design document once held up everybody who read one of them.
#[test]
fn views_before_a_change_of_design_answer_until_the_new_ones_are_built() {
    let server = Server::new();
    let database = server.databases.create("large", &scrinium_database::InitialAccess::Everybody).unwrap();
    let fill = |range: std::ops::Range<u32>| {
        let edits = range
            .map(|number| edit(&json!({"_id": format!("{number:05}"), "A": number, "B": 5000 - number})));
        database.update(edits.collect(), EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    };
    let column = |formula: &str| json!([{"title": formula, "formula": formula, "sort": "asc"}]);
    let mut design = json!({"_id": "_design/mail", "language": "formula", "views": {
        "kept": {"columns": column("A")}, "changed": {"columns": column("A")}}});
    fill(0..3000);
    let first = put(&database, &design).unwrap();
    let first_key = |view: &str, freshness: Freshness| {
        let query = RowQuery { limit: Some(1), freshness, ..RowQuery::default() };
        read(&database, view, query)[0].key.clone()
    };
    assert_eq!(first_key("changed", Freshness::Usual), "[0]");
    design["_rev"] = json!(first.revision);
    design["views"]["changed"]["columns"] = column("B");
    design["views"]["added"] = json!({"columns": column("B")});
    put(&database, &design).unwrap();
    fill(3000..3100);
    // As it was defined before, with what was stored since.
    let old = read(&database, "changed", RowQuery::default());
    assert_eq!((old[0].key.as_str(), old.len()), ("[0]", 3100));
    assert_eq!(read(&database, "kept", RowQuery::default()).len(), 3100);
    // What still answers is not cleaned away.
    database.clean_up_views().unwrap();
    assert_eq!(first_key("changed", Freshness::Usual), "[0]");
    assert_eq!(database.take_wanted_views(), ["mail"]);
    database.update_view_group("mail").unwrap();
    assert_eq!(first_key("changed", Freshness::Usual), "[1901]");
    assert_eq!(first_key("added", Freshness::Usual), "[1901]");
    assert_eq!(database.clean_up_views().unwrap(), 0, "`kept` still uses the index that `changed` shared");
    // Who asks for the present does not get the past.
    let before: Value = serde_json::from_str(&get(&database, "_design/mail").unwrap().to_string()).unwrap();
    let mut again = before;
    again["views"]["changed"]["columns"] = json!([{"title": "C", "formula": "A + B", "sort": "asc"}]);
    put(&database, &again).unwrap();
    assert_eq!(first_key("changed", Freshness::UpToDate), "[5000]");
}

/// Pages are read by token while documents come and go: what is there all the time comes once, in order.
#[test]
fn pages_stay_right_while_documents_come_and_go() {
    let server = Server::new();
    let database = server.databases.create("busy", &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&database, &design()).unwrap();
    let day = |number: u32| format!("2026-{:02}-{:02}", number % 12 + 1, number % 28 + 1);
    let make =
        |id: &str, number: u32| put(&database, &memo(id, &day(number), "Zoe", 1, &json!(null))).unwrap();
    for number in 0..60 {
        make(&format!("stays-{number:02}"), number * 7);
        make(&format!("goes-{number:02}"), number * 5);
    }
    for descending in [false, true] {
        let query =
            |from| RowQuery { limit: Some(7), descending, next_page: true, from, ..RowQuery::default() };
        let (mut from, mut seen, mut round) = (None, Vec::new(), 0);
        loop {
            let mut rows = database.view("mail", "inbox", query(from), &SERVER).unwrap();
            seen.extend(rows.next_rows(100).unwrap());
            let Some(next) = rows.next_page().unwrap() else { break };
            from = Some(next);
            let gone: Value =
                serde_json::from_str(&get(&database, &format!("goes-{round:02}")).unwrap().to_string())
                    .unwrap();
            put(&database, &json!({"_id": gone["_id"], "_rev": gone["_rev"], "_deleted": true})).unwrap();
            make(&format!("comes-{descending}-{round:02}"), round * 11);
            round += 1;
        }
        assert!(round > 10);
        let keys: Vec<&str> = seen.iter().map(|row| row.key.as_str()).collect();
        let in_order = |pair: &[&str]| if descending { pair[0] <= pair[1] } else { pair[0] >= pair[1] };
        assert!(keys.windows(2).all(in_order), "{keys:?}");
        let mut ids: Vec<&str> = seen.iter().filter_map(|row| row.id.as_deref()).collect();
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(ids.iter().filter(|id| id.starts_with("stays")).count(), 60);
        for number in 0..round {
            make(&format!("goes-{number:02}-{descending}"), number);
            drop(put(
                &database,
                &json!({"_id": format!("goes-{number:02}"), "Form": "Memo", "Date": day(number)}),
            ));
        }
    }
}

#[test]
fn a_page_begins_where_it_is_told_to() {
    let (_server, database) = filled();
    let page = |query: RowQuery| {
        let mut rows = database.view("mail", "by category", query, &SERVER).unwrap();
        let ids: Vec<String> = rows.next_rows(10).unwrap().into_iter().filter_map(|row| row.id).collect();
        (rows.offset, ids.join(" "))
    };
    let find = |text: &str, descending: bool| {
        page(RowQuery { find: Some(text.to_owned()), descending, ..RowQuery::default() })
    };
    assert_eq!(page(RowQuery::default()).1, "c d b b a");
    assert_eq!(find("h", false), (Some(2), "b b a".to_owned()));
    assert_eq!(find("work", false), (Some(3), "b a".to_owned()));
    assert_eq!(find("x", false), (Some(5), String::new()));
    assert_eq!(find("home", true).1, "b d c");
    assert_eq!(find("ho", true).1, "b d c");
    let newest = |text: &str, descending: bool| {
        let query = RowQuery { find: Some(text.to_owned()), descending, ..RowQuery::default() };
        ids(&database, "inbox", query)
    };
    // Newest first: from the newest of those that begin so.
    assert_eq!(
        (newest("2026-01", false), newest("2026-01-02", false)),
        ("b c a".to_owned(), "c a".to_owned())
    );
    assert_eq!((newest("2026-01", true), newest("2026-01-02", true)), ("a c b".to_owned(), "c b".to_owned()));
    let at = |id: &str, descending: bool| {
        page(RowQuery { at: Some(id.to_owned()), descending, ..RowQuery::default() })
    };
    assert_eq!(at("b", false), (Some(2), "b b a".to_owned()));
    assert_eq!(at("b", true), (Some(1), "b b d c".to_owned()));
    let gone = database.view(
        "mail",
        "by category",
        RowQuery { at: Some("z".to_owned()), ..RowQuery::default() },
        &SERVER,
    );
    assert_eq!(gone.err().unwrap().to_string(), "The document is not in the view.");
    let twice = RowQuery { at: Some("b".to_owned()), find: Some("w".to_owned()), ..RowQuery::default() };
    assert!(database.view("mail", "by category", twice, &SERVER).is_err());
}

/// An id is no beginning of others: what ends at document `1` has nothing of `10`.
#[test]
fn a_range_that_ends_at_a_document_leaves_out_longer_ids() {
    let (_server, database) = filled();
    for id in ["1", "10", "1 1", "2"] {
        put(&database, &json!({"_id": id, "Form": "Memo", "Date": "2026-05-05", "Size": 1})).unwrap();
    }
    let key = Some(json!(["2026-05-05"]));
    let until = |id: &str, descending| {
        let (end_key, end_id) = (key.clone(), Some(id.to_owned()));
        let query = RowQuery { start_key: key.clone(), end_key, end_id, descending, ..RowQuery::default() };
        ids(&database, "inbox", query)
    };
    assert_eq!((until("1", false).as_str(), until("10", false).as_str()), ("1", "1 1 1 10"));
    assert_eq!(until("10", true), "2 10");
    let from = |id: &str| RowQuery {
        start_key: key.clone(),
        start_id: Some(id.to_owned()),
        end_key: key.clone(),
        descending: true,
        ..RowQuery::default()
    };
    assert_eq!(ids(&database, "inbox", from("1")), "1");
}

#[test]
fn totals_are_shown_as_the_columns_say() {
    let server = Server::new();
    let database = server.databases.create("sales", &scrinium_database::InitialAccess::Everybody).unwrap();
    let total = |total: &str| json!({"title": total, "formula": "Amount", "total": total});
    let category = |field: &str| json!({"title": field, "formula": field, "category": true});
    let columns = json!([
        category("Country"),
        category("City"),
        total("sum"),
        total("average"),
        total("percent_of_parent"),
        total("percent_of_all")
    ]);
    let design =
        json!({"_id": "_design/mail", "language": "formula", "views": {"sales": {"columns": columns}}});
    put(&database, &design).unwrap();
    let sales =
        [("a", "IT", "Roma", 10), ("b", "IT", "Roma", 20), ("c", "IT", "Bari", 10), ("d", "CH", "Bern", 40)];
    for (id, country, city, amount) in sales {
        put(&database, &json!({"_id": id, "Country": country, "City": city, "Amount": amount})).unwrap();
    }
    let rows = |level: u32| -> Vec<Value> {
        let query = RowQuery { group_level: Some(level), ..RowQuery::default() };
        let rows = read(&database, "sales", query).into_iter();
        rows.map(|row| {
            let value: Value = serde_json::from_str(row.value.as_ref().unwrap()).unwrap();
            let totals = value["totals"].as_object().unwrap().values().cloned().collect::<Vec<Value>>();
            json!([row.key.as_str(), value["count"], totals])
        })
        .collect()
    };
    assert_eq!(rows(0), [json!(["null", 4, [80.0, 20.0, 100.0, 100.0]])]);
    assert_eq!(
        rows(1),
        [
            json!([r#"["CH"]"#, 1, [40.0, 40.0, 50.0, 50.0]]),
            json!([r#"["IT"]"#, 3, [40.0, 40.0 / 3.0, 50.0, 50.0]]),
        ]
    );
    assert_eq!(
        rows(2)[1..],
        [
            json!([r#"["IT","Bari"]"#, 1, [10.0, 10.0, 25.0, 12.5]]),
            json!([r#"["IT","Roma"]"#, 2, [30.0, 15.0, 75.0, 37.5]]),
        ]
    );
    let wrong =
        json!({"_id": "_design/x", "language": "formula", "views": {"v": {"columns": [total("median")]}}});
    assert!(put(&database, &wrong).unwrap_err().to_string().contains("column 1: `total` must be"));
}
