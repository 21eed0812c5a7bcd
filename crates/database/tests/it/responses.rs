//! Views with responses: against a walk through the tree of all documents, whatever came in which order.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use scrinium_database::{AccessList, CategoryQuery, EditMode, Identity, Row, RowQuery};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::{SERVER, Seen, Server, edit, get, put};

fn design() -> Value {
    let sorted = |title: &str| json!({"title": title, "formula": title, "sort": "asc"});
    let size = json!({"title": "Size", "formula": "Size", "total": true});
    json!({"_id": "_design/d", "language": "formula", "views": {
        "descendants": {
            "selection": "SELECT Form = \"Topic\" | @AllDescendants",
            "responses": {"order": "Order"},
            "columns": [{"title": "Tags", "formula": "Tags", "category": true}, sorted("Subject"), size],
        },
        "children": {
            "selection": "SELECT Form = \"Topic\" | @AllChildren",
            "responses": {"order": "Order"},
            "columns": [size, sorted("Subject")],
        },
        "all": {"selection": "SELECT Form != \"Draft\"", "responses": {"order": "Order"}, "columns": [size]},
    }})
}

#[derive(Clone, Debug)]
struct Doc {
    form: &'static str,
    parent: Option<String>,
    tags: Vec<String>,
    subject: String,
    order: u32,
    size: u32,
    readers: Vec<&'static str>,
}

impl Doc {
    fn tags_json(&self) -> Value {
        match self.tags.as_slice() {
            [] => Value::Null,
            [one] => json!(one),
            several => json!(several),
        }
    }

    fn json(&self, id: &str) -> Value {
        let mut json = json!({"_id": id, "Form": self.form, "Tags": self.tags, "Subject": self.subject,
            "Order": self.order, "Size": self.size});
        if let Some(parent) = &self.parent {
            json["$REF"] = json!(parent);
        }
        if !self.readers.is_empty() {
            json["Readers"] = json!(self.readers);
        }
        json
    }
}

type Model = BTreeMap<String, Doc>;

#[derive(Clone, Debug, PartialEq)]
struct Line {
    key: Value,
    level: u32,
    id: String,
    value: Value,
}

/// The documents that somebody may read, or all.
fn readable(model: &Model, person: Option<&str>) -> Model {
    let is_readable =
        |doc: &Doc| doc.readers.is_empty() || person.is_none_or(|person| doc.readers.contains(&person));
    model.iter().filter(|(_, doc)| is_readable(doc)).map(|(id, doc)| (id.clone(), doc.clone())).collect()
}

/// All rows that a view should have.
fn walked(model: &Model, view: &str) -> Vec<Line> {
    let mut tree = Tree { model, view, responses: BTreeMap::new(), above: Vec::new(), lines: Vec::new() };
    for (id, doc) in model {
        if let Some(parent) = &doc.parent {
            tree.responses.entry(parent).or_default().insert((doc.order, id));
        }
    }
    let mut mains = Vec::new();
    for (id, doc) in model.iter().filter(|(_, doc)| doc.parent.is_none() && tree.is_selected(doc)) {
        let tags: Vec<Option<String>> =
            if doc.tags.is_empty() { vec![None] } else { doc.tags.iter().cloned().map(Some).collect() };
        let subject = Some(doc.subject.clone());
        match view {
            "descendants" => mains.extend(
                tags.into_iter().enumerate().map(|(place, tag)| (vec![tag, subject.clone()], id, place)),
            ),
            "children" => mains.push((vec![subject], id, 0)),
            _ => mains.push((Vec::new(), id, 0)),
        }
    }
    mains.sort();
    mains.into_iter().for_each(|(key, id, _)| tree.walk((id, 0), &key));
    tree.lines
}

struct Tree<'a> {
    model: &'a Model,
    view: &'a str,
    responses: BTreeMap<&'a String, BTreeSet<(u32, &'a String)>>,
    above: Vec<&'a String>,
    lines: Vec<Line>,
}

impl<'a> Tree<'a> {
    fn is_selected(&self, doc: &Doc) -> bool {
        if self.view == "all" { doc.form != "Draft" } else { doc.form == "Topic" }
    }

    fn walk(&mut self, (id, level): (&'a String, u32), key: &[Option<String>]) {
        let doc = &self.model[id];
        let tags = if level == 0 && self.view == "descendants" { json!(key[0]) } else { doc.tags_json() };
        let value = match self.view {
            "descendants" => json!({"Tags": tags, "Subject": doc.subject, "Size": doc.size}),
            "children" => json!({"Subject": doc.subject, "Size": doc.size}),
            _ => json!({"Size": doc.size}),
        };
        self.lines.push(Line { key: json!(key), level, id: id.clone(), value });
        if level == 31 {
            return;
        }
        self.above.push(id);
        let adds = self.view == "descendants" || self.view == "children" && self.is_selected(doc);
        for (_, response) in self.responses.get(id).cloned().unwrap_or_default() {
            assert!(!self.above.contains(&response), "what is reached from a main document is in no circle");
            if adds || self.is_selected(&self.model[response]) {
                self.walk((response, level + 1), key);
            }
        }
        self.above.pop();
    }
}

fn line(row: Row) -> Line {
    Line {
        key: serde_json::from_str(&row.key).unwrap(),
        level: row.level.unwrap(),
        id: row.id.unwrap(),
        value: serde_json::from_str(&row.value.unwrap()).unwrap(),
    }
}

fn rows(database: &Seen, view: &str, query: RowQuery) -> (Vec<Row>, u64) {
    let mut rows = database.view("d", view, query).unwrap();
    let (offset, mut all) = (rows.offset.unwrap(), Vec::new());
    let at_once = if rows.total_rows.is_some_and(|total| total > 500) { 200 } else { 3 };
    while let Some(some) = Some(rows.next_rows(at_once).unwrap()).filter(|some| !some.is_empty()) {
        all.extend(some);
    }
    (all, offset)
}

fn read(database: &Seen, view: &str, query: RowQuery) -> (Vec<Line>, u64) {
    let (rows, offset) = rows(database, view, query);
    (rows.into_iter().map(line).collect(), offset)
}

fn total(lines: &[Line]) -> Value {
    let size: u64 = lines.iter().map(|line| line.value["Size"].as_u64().unwrap()).sum();
    json!({"count": lines.len(), "totals": {"Size": size as f64}})
}

fn totals(database: &Seen, view: &str, query: RowQuery) -> Vec<(Value, Value)> {
    let parse = |text: &str| serde_json::from_str(text).unwrap();
    let (rows, _) = rows(database, view, query);
    rows.into_iter().map(|row| (parse(&row.key), parse(&row.value.unwrap()))).collect()
}

/// The totals of lines that agree in this many elements of the key.
fn grouped(lines: &[Line], level: usize) -> Vec<(Value, Value)> {
    let category =
        |line: &Line| json!(line.key.as_array().unwrap().iter().take(level).collect::<Vec<&Value>>());
    let groups = lines.chunk_by(|left, right| category(left) == category(right));
    groups.map(|group| (category(&group[0]), total(group))).collect()
}

fn check(database: &OpenDatabase, model: &Model) {
    check_for(&Seen::by_the_server(database), model);
    let access = database.access(&Identity::new("ada", Vec::new())).unwrap();
    let of_ada = Seen { database: database.clone(), access };
    check_for(&of_ada, &readable(model, Some("ada")));
}

/// What somebody sees is what there would be if there were no other documents.
fn check_for(database: &Seen, model: &Model) {
    for view in ["descendants", "children", "all"] {
        let expected = walked(model, view);
        let (found, _) = read(database, view, RowQuery::default());
        assert_eq!(found, expected, "{view}");
        let backwards = read(database, view, RowQuery { descending: true, ..RowQuery::default() }).0;
        assert!(backwards.iter().rev().eq(&expected), "{view}");
        for skip in 0..expected.len() {
            let page = RowQuery { skip: skip as u64, limit: Some(4), ..RowQuery::default() };
            let slice = &expected[skip..expected.len().min(skip + 4)];
            assert_eq!(read(database, view, page), (slice.to_vec(), skip as u64), "{view}");
        }
        let all = RowQuery { reduce: Some(true), ..RowQuery::default() };
        let of_all: Vec<(Value, Value)> =
            if expected.is_empty() { Vec::new() } else { vec![(Value::Null, total(&expected))] };
        assert_eq!(totals(database, view, all), of_all, "{view}");
        let columns = match view {
            "descendants" => 2,
            "children" => 1,
            _ => 0,
        };
        for level in 1..=columns {
            let groups = RowQuery { group_level: Some(level), ..RowQuery::default() };
            assert_eq!(totals(database, view, groups), grouped(&expected, level as usize), "{view}");
        }
        for id in expected.iter().map(|line| &line.id).collect::<BTreeSet<_>>() {
            let place = expected.iter().position(|line| line.id == *id).unwrap();
            let at = RowQuery { at: Some(id.clone()), limit: Some(1), ..RowQuery::default() };
            assert_eq!(
                read(database, view, at),
                (vec![expected[place].clone()], place as u64),
                "{view} {id}"
            );
        }
        check_ranges(database, view, &expected);
        if view == "descendants" {
            check_categories(database, &expected);
        }
    }
}

/// Responses lie in the categories of their main documents, and are as much deeper.
fn check_categories(database: &Seen, expected: &[Line]) {
    let query = RowQuery { categories: Some(CategoryQuery::default()), ..RowQuery::default() };
    let (rows, _) = rows(database, "descendants", query);
    let (categories, entries): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| row.expanded.is_some());
    let deeper = |line: &Line| Line { level: line.level + 1, ..line.clone() };
    assert!(entries.into_iter().map(line).eq(expected.iter().map(deeper)));
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let counts =
        categories.iter().map(|row| (parse(&row.key), parse(row.value.as_ref().unwrap())["count"].clone()));
    let groups = grouped(expected, 1).into_iter().map(|(key, total)| (key, total["count"].clone()));
    assert!(counts.eq(groups));
}

/// Ranges of keys, with and without ids, and pages by token.
fn check_ranges(database: &Seen, view: &str, expected: &[Line]) {
    let mains = || expected.iter().filter(|line| line.level == 0);
    for key in mains().map(|line| &line.key).filter(|key| **key != json!([])) {
        let of_key: Vec<Line> = expected.iter().filter(|line| line.key == *key).cloned().collect();
        let one = RowQuery { keys: Some(vec![key.clone()]), ..RowQuery::default() };
        assert_eq!(read(database, view, one).0, of_key);
    }
    for main in mains().filter(|main| main.key != json!([])) {
        let (key, id) = (Some(main.key.clone()), Some(main.id.clone()));
        let thread = RowQuery {
            start_key: key.clone(),
            start_id: id.clone(),
            end_key: key,
            end_id: id,
            ..RowQuery::default()
        };
        let mut is_in = false;
        let is_in_thread = |line: &&Line| {
            is_in = if line.level == 0 { line.key == main.key && line.id == main.id } else { is_in };
            is_in
        };
        let of_thread: Vec<Line> = expected.iter().filter(is_in_thread).cloned().collect();
        assert_eq!(read(database, view, thread).0, of_thread, "{view} {main:?}");
    }
    let (mut from, mut seen) = (None, Vec::new());
    loop {
        let page = RowQuery { limit: Some(3), next_page: true, from, ..RowQuery::default() };
        let mut rows = database.view("d", view, page).unwrap();
        seen.extend(rows.next_rows(10).unwrap().into_iter().map(line));
        from = rows.next_page().unwrap();
        if from.is_none() {
            break;
        }
    }
    assert_eq!(seen, expected);
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, Doc),
    Delete(u8),
    Look,
    Rebuild,
    Reopen,
}

fn doc() -> impl Strategy<Value = Doc> {
    let parent = prop::option::weighted(0.7, 0..12_u8);
    let tags = prop::collection::vec(0..3_u8, 0..3);
    let form = prop::sample::select(vec!["Topic", "Response", "Draft"]);
    let readers = prop::sample::select(vec![vec![], vec![], vec!["ada"], vec!["eve"], vec!["ada", "eve"]]);
    (form, parent, tags, 0..3_u8, 0..3_u32, 0..50_u32, readers).prop_map(
        |(form, parent, tags, subject, order, size, readers)| Doc {
            form: if parent.is_none() && size % 4 > 0 { "Topic" } else { form },
            parent: parent.map(|parent| format!("n{parent}")),
            tags: tags.into_iter().map(|tag| format!("tag{tag}")).collect(),
            subject: format!("about{subject}"),
            order,
            size,
            readers,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        14 => (0..12_u8, doc()).prop_map(|(id, doc)| Step::Put(id, doc)),
        3 => (0..12_u8).prop_map(Step::Delete),
        3 => Just(Step::Look),
        1 => Just(Step::Rebuild),
        1 => Just(Step::Reopen),
    ]
}

fn store(database: &OpenDatabase, id: &str, mut json: Value) {
    if let Ok(present) = get(database, id) {
        json["_rev"] = present["_rev"].clone();
    }
    put(database, &json).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scrinium_fault::cases(60), max_shrink_iters: 300, ..ProptestConfig::default() })]

    /// Documents come, change, move, go and come again in any order, with orphans and circles.
    #[test]
    fn a_view_with_responses_is_a_walk_through_the_tree(steps in prop::collection::vec(step(), 1..60)) {
        let mut server = Server::quick();
        let mut database = server.databases.create("forum", &scrinium_database::InitialAccess::Everybody).unwrap();
        let list = json!({"default": {"level": "author"}, "entries": []});
        database.set_access_list(Some(AccessList::parse(&list).unwrap())).unwrap();
        put(&database, &design()).unwrap();
        let mut model = Model::new();
        for step in steps {
            match step {
                Step::Put(id, doc) => {
                    let id = format!("n{id}");
                    store(&database, &id, doc.json(&id));
                    model.insert(id, doc);
                }
                Step::Delete(id) => {
                    let id = format!("n{id}");
                    if model.remove(&id).is_some() {
                        store(&database, &id, json!({"_id": id, "_deleted": true}));
                    }
                }
                Step::Look => check(&database, &model),
                Step::Rebuild => drop(database.update_all_views(None, true).unwrap()),
                Step::Reopen => {
                    drop(database);
                    server = server.reopen();
                    database = server.databases.get("forum").unwrap();
                }
            }
        }
        check(&database, &model);
        database.update_all_views(None, true).unwrap();
        check(&database, &model);
    }
}

fn topic(subject: &str) -> Doc {
    Doc {
        form: "Topic",
        parent: None,
        tags: vec!["a".to_owned(), "b".to_owned()],
        subject: subject.to_owned(),
        order: 0,
        size: 1,
        readers: Vec::new(),
    }
}

fn response(parent: &str, order: u32) -> Doc {
    Doc { form: "Response", parent: Some(parent.to_owned()), order, ..topic("Re") }
}

/// A chain that is longer than what is shown, of ids and texts so long that keys cut them.
#[test]
fn long_keys_and_deep_threads_are_cut() {
    let server = Server::new();
    let database = server.databases.create("forum", &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&database, &design()).unwrap();
    let id = |number: usize| {
        format!("{number:02}{}", "ä".repeat(if number.is_multiple_of(3) { 3000 } else { 40 }))
    };
    let mut model = Model::from([(id(0), topic(&"s".repeat(5000)))]);
    for number in 1..40 {
        model.insert(id(number), response(&id(number - 1), 1));
    }
    // The deepest first, so that each finds its parent later.
    for (id, doc) in model.iter().rev() {
        store(&database, id, doc.json(id));
    }
    let deepest = |model: &Model| walked(model, "descendants").iter().map(|line| line.level).max();
    assert_eq!(deepest(&model), Some(31));
    check(&database, &model);
    // What was too deep comes up with one in the middle that becomes a topic of its own.
    model.insert(id(20), Doc { form: "Topic", ..topic("another\0 with \u{1f600}") });
    store(&database, &id(20), model[&id(20)].json(&id(20)));
    assert_eq!(deepest(&model), Some(19));
    check(&database, &model);
    database.update_all_views(None, true).unwrap();
    check(&database, &model);
}

/// Ids may have any character; one that begins with another's, zeros and all, must not come between its responses.
#[test]
fn ids_with_zeros_keep_threads_together() {
    let server = Server::new();
    let database = server.databases.create("forum", &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&database, &design()).unwrap();
    let mut model = Model::new();
    for id in ["a", "a\0", "a\0\0", "a\0\u{1}", "a\u{1}", "ab"] {
        model.insert(id.to_owned(), topic("same"));
        model.insert(format!("{id} response"), response(id, 3));
        model.insert(format!("{id} \u{ff} response"), response(id, 2));
    }
    for (id, doc) in &model {
        store(&database, id, doc.json(id));
    }
    check(&database, &model);
}

/// More responses than one batch takes, moved from one topic to another and back, built in bulk and followed.
#[test]
fn large_threads_move_whole() {
    let server = Server::new();
    let database = server.databases.create("forum", &scrinium_database::InitialAccess::Everybody).unwrap();
    let mut model = Model::from([("t1".to_owned(), topic("one")), ("t2".to_owned(), topic("two"))]);
    model.insert("r".to_owned(), response("t1", 0));
    for number in 0..2500_u32 {
        let parent = if number < 300 { "r".to_owned() } else { format!("{:05}", number % 300) };
        model.insert(format!("{number:05}"), response(&parent, number % 7));
    }
    let edits = model.iter().map(|(id, doc)| edit(&doc.json(id))).collect();
    database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    put(&database, &design()).unwrap();
    let whole = |model: &Model| {
        for view in ["descendants", "all"] {
            assert!(
                read(&Seen::by_the_server(&database), view, RowQuery::default()).0 == walked(model, view),
                "{view}"
            );
        }
        let lines = walked(model, "descendants");
        let groups = RowQuery { group_level: Some(2), ..RowQuery::default() };
        assert_eq!(totals(&Seen::by_the_server(&database), "descendants", groups), grouped(&lines, 2));
        lines.len()
    };
    let count = whole(&model);
    assert!(count > 4900, "{count}");
    for parent in ["t2", "nobody", "r", "t1"] {
        model.get_mut("r").unwrap().parent = Some(parent.to_owned());
        store(&database, "r", model["r"].json("r"));
        assert_eq!(whole(&model) > 4900, parent.starts_with('t'));
    }
    model.get_mut("t1").unwrap().subject = "another".to_owned();
    store(&database, "t1", model["t1"].json("t1"));
    assert_eq!(whole(&model), count);
}

/// Without an order of their own responses come as they were created, whatever their ids are.
#[test]
fn responses_come_as_they_were_created() {
    let server = Server::timed();
    let database = server.databases.create("forum", &scrinium_database::InitialAccess::Everybody).unwrap();
    let view =
        json!({"responses": true, "columns": [{"title": "Subject", "formula": "Subject", "sort": "asc"}]});
    put(&database, &json!({"_id": "_design/d", "language": "formula", "views": {"v": view}})).unwrap();
    for id in ["c", "z", "b", "a"] {
        let doc = if id == "c" { topic("one") } else { response("c", 0) };
        store(&database, id, doc.json(id));
        server.pass(std::time::Duration::from_millis(1));
    }
    let ids = |database| {
        let lines = read(&Seen::by_the_server(database), "v", RowQuery::default()).0.into_iter();
        lines.map(|line| format!("{}{}", line.id, line.level)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ids(&database), "c0 z1 b1 a1");
    store(&database, "z", response("a", 0).json("z"));
    assert_eq!(ids(&database), "c0 b1 a1 z2");
}

#[test]
fn what_a_view_with_responses_cannot_be_is_refused() {
    let server = Server::new();
    let database = server.databases.create("forum", &scrinium_database::InitialAccess::Everybody).unwrap();
    let column = |number: usize| json!({"title": number.to_string(), "formula": "A", "sort": "asc"});
    let columns: Vec<Value> = (0..41).map(column).collect();
    for (view, word) in [
        (json!({"responses": "yes"}), "`responses` must be"),
        (json!({"responses": {"sort": "A"}}), "`responses` must be"),
        (json!({"responses": {"order": "A +"}}), "order of responses"),
        (json!({"responses": true, "columns": columns}), "at most 40 sorted columns"),
        (json!({"responses": true, "unique": true, "columns": [column(1)]}), "unique keys"),
        (json!({"selection": "SELECT @AllChildren"}), "need a view that shows responses"),
    ] {
        let design = json!({"_id": "_design/x", "language": "formula", "views": {"v": view}});
        let error = put(&database, &design).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

/// Other orders are of the main documents; what responds to them comes along.
#[test]
fn another_order_takes_responses_along() {
    let server = Server::new();
    let database = server.databases.create("forum", &scrinium_database::InitialAccess::Everybody).unwrap();
    let view = json!({"responses": {"order": "Order"}, "columns": [
        {"title": "Size", "formula": "Size"},
        {"title": "Subject", "formula": "Subject", "sort": "asc", "resort": "desc"}]});
    put(&database, &json!({"_id": "_design/d", "language": "formula", "views": {"v": view}})).unwrap();
    for (id, doc) in [
        ("a", topic("one")),
        ("b", topic("two")),
        ("a1", response("a", 1)),
        ("a2", response("a", 0)),
        ("b1", response("b", 0)),
        ("a3", response("a1", 0)),
    ] {
        store(&database, id, doc.json(id));
    }
    let ids = |resort: Option<&str>| {
        let query = RowQuery { resort: resort.map(str::to_owned), ..RowQuery::default() };
        let lines = read(&Seen::by_the_server(&database), "v", query).0.into_iter();
        lines.map(|line| format!("{}{}{}", line.key[0], line.id, line.level)).collect::<Vec<_>>().join(" ")
    };
    let (one, two) = (r#""one"a0 "one"a21 "one"a11 "one"a32"#, r#""two"b0 "two"b11"#);
    assert_eq!(ids(None), format!("{one} {two}"));
    assert_eq!(ids(Some("Subject")), format!("{two} {one}"));
}
