//! Columns in which case or accents do not count, views with unique keys, and other orders on request, against
//! what sorting all documents again gives.

use std::collections::BTreeMap;

use proptest::prelude::*;
use scrinium_database::{EditMode, Freshness, Row, RowQuery};
use scrinium_document::collation::{descending, sort_key};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::{SERVER, Server, edit, get, put};

const NAMES: [&str; 8] = ["Ada", "ada", "ÁDA", "áda", "Bob", "bób", "bob", "Zoë"];

fn design() -> Value {
    let who = |options: Value| {
        let mut column = json!({"title": "Who", "formula": "Who"});
        column.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        column
    };
    let size = json!({"title": "Size", "formula": "Size", "total": true});
    let day = json!({"title": "Day", "formula": "Day", "sort": "desc"});
    let view = |columns: Value| json!({"selection": "SELECT @All", "columns": columns});
    let mut unique = view(json!([who(json!({"category": true, "accent": false})), day, size]));
    unique["unique"] = json!(true);
    let mut unique_down = view(json!([who(json!({"sort": "desc", "case": false, "accent": false})), size]));
    unique_down["unique"] = json!(true);
    json!({"_id": "_design/d", "language": "formula", "views": {
        "neither": view(json!([who(json!({"category": true, "case": false, "accent": false})), day, size])),
        "no case": view(json!([who(json!({"sort": "desc", "case": false})), day, size])),
        "no accent": view(json!([who(json!({"category": true, "accent": false})), size])),
        "unique": unique,
        "unique down": unique_down,
        "orders": view(json!([
            day,
            who(json!({"resort": "both", "case": false, "category": true})),
            {"title": "Size", "formula": "Size", "total": true, "resort": "desc"},
        ])),
    }})
}

/// One sorted column of the model: a field, and how it sorts.
#[derive(Clone, Copy)]
struct Order {
    field: &'static str,
    down: bool,
    case: bool,
    accent: bool,
}

const fn order(field: &'static str, down: bool, case: bool, accent: bool) -> Order {
    Order { field, down, case, accent }
}

const DAY: Order = order("Day", true, true, true);

/// A view of the model.
struct Model {
    view: &'static str,
    resort: Option<(&'static str, bool)>,
    orders: &'static [Order],
    columns: &'static [&'static str],
    /// Each element of a list of names is a row.
    exploded: bool,
    unique: bool,
}

const fn model(view: &'static str, orders: &'static [Order], columns: &'static [&'static str]) -> Model {
    Model { view, resort: None, orders, columns, exploded: true, unique: false }
}

const ALL: &[&str] = &["Who", "Day", "Size"];
const ORDERS: &[&str] = &["Day", "Who", "Size"];

const MODELS: [Model; 8] = [
    model("neither", &[order("Who", false, false, false), DAY], ALL),
    Model { exploded: false, ..model("no case", &[order("Who", true, false, true), DAY], ALL) },
    model("no accent", &[order("Who", false, true, false)], &["Who", "Size"]),
    Model { unique: true, ..model("unique", &[order("Who", false, true, false), DAY], ALL) },
    Model {
        unique: true,
        exploded: false,
        ..model("unique down", &[order("Who", true, false, false)], &["Who", "Size"])
    },
    Model {
        resort: Some(("Who", false)),
        ..model("orders", &[order("Who", false, false, true), DAY], ORDERS)
    },
    Model { resort: Some(("Who", true)), ..model("orders", &[order("Who", true, false, true), DAY], ORDERS) },
    Model {
        resort: Some(("Size", true)),
        ..model("orders", &[order("Size", true, true, true), DAY, order("Who", false, false, true)], ORDERS)
    },
];

fn folded(value: &Value, order: Order) -> Value {
    let fold = |text: &str| {
        let letter = |letter: char| match letter {
            'Á' if !order.accent => 'A',
            'á' if !order.accent => 'a',
            'ó' if !order.accent => 'o',
            'ë' if !order.accent => 'e',
            other => other,
        };
        let text: String = text.chars().map(letter).collect();
        if order.case { text } else { text.to_lowercase() }
    };
    match value {
        Value::String(text) => json!(fold(text)),
        Value::Array(names) => names.iter().map(|name| folded(name, order)).collect(),
        other => other.clone(),
    }
}

/// A row of the model: what sorts it, its document, its key and its value.
type ModelRow = (Vec<Vec<u8>>, String, Value, Value);

impl Model {
    fn rows(&self, documents: &BTreeMap<String, Value>) -> Vec<ModelRow> {
        let mut rows = Vec::new();
        for (id, document) in documents {
            let names = match &document["Who"] {
                Value::Array(names) if self.exploded => names.clone(),
                one => vec![one.clone()],
            };
            for name in names {
                let mut row = document.clone();
                row["Who"] = name;
                let keys = self.orders.iter().map(|order| key(&row[order.field], *order)).collect();
                let key = self.orders.iter().map(|order| row[order.field].clone()).collect();
                let value = self.columns.iter().map(|title| ((*title).to_owned(), row[*title].clone()));
                rows.push((keys, id.clone(), key, Value::Object(value.collect())));
            }
        }
        rows.sort_by(|left, right| (&left.0, &left.1).cmp(&(&right.0, &right.1)));
        if self.unique {
            rows.dedup_by(|right, left| left.0 == right.0);
        }
        rows
    }

    fn query(&self) -> RowQuery {
        let (resort, down) = self.resort.unzip();
        // The order is only asked for where there are two.
        let resort_descending = down.filter(|_| resort == Some("Who"));
        RowQuery { resort: resort.map(str::to_owned), resort_descending, ..RowQuery::default() }
    }

    fn check(
        &self,
        database: &OpenDatabase,
        documents: &BTreeMap<String, Value>,
    ) -> Result<(), TestCaseError> {
        let expected = self.rows(documents);
        let model = expected.iter().map(|(_, id, key, value)| (id.clone(), key.clone(), value.clone()));
        let model: Vec<(String, Value, Value)> = model.collect();
        let read = |query: RowQuery| self.read(database, query);
        let all = read(self.query());
        prop_assert_eq!(&all.1, &model, "{} {:?}", self.view, self.resort);
        prop_assert_eq!(all.0, Some(model.len() as u64), "{}", self.view);
        let mut backward = model.clone();
        backward.reverse();
        prop_assert_eq!(read(RowQuery { descending: true, ..self.query() }).1, backward);
        for skip in [0, 1, model.len() / 2, model.len()] {
            let page = read(RowQuery { skip: skip as u64, limit: Some(2), ..self.query() }).1;
            prop_assert_eq!(page, model.iter().skip(skip).take(2).cloned().collect::<Vec<_>>());
        }
        for name in NAMES {
            self.check_name(database, &expected, name)?;
        }
        self.check_totals(database, &expected)
    }

    /// Everything under a name, by whatever name counts as equal, and a page that begins there.
    fn check_name(
        &self,
        database: &OpenDatabase,
        expected: &[ModelRow],
        name: &str,
    ) -> Result<(), TestCaseError> {
        let first = self.orders[0];
        if first.field != "Who" {
            return Ok(());
        }
        let wanted = key(&json!(name), first);
        let ids =
            |rows: &mut dyn Iterator<Item = &ModelRow>| rows.map(|row| row.1.clone()).collect::<Vec<_>>();
        let found = |query: RowQuery| {
            self.read(database, query).1.into_iter().map(|row| row.0).collect::<Vec<String>>()
        };
        let of_name = ids(&mut expected.iter().filter(|row| row.0[0] == wanted));
        let category =
            RowQuery { start_key: Some(json!([name])), end_key: Some(json!([name, {}])), ..self.query() };
        // A descending second column ends with the lowest value.
        let category = match self.orders.get(1) {
            Some(order) if order.down => RowQuery { end_key: Some(json!([name, null])), ..category },
            Some(_) => category,
            None => RowQuery { end_key: Some(json!([name])), ..category },
        };
        prop_assert_eq!(found(category), of_name, "{} {}", self.view, name);
        if !first.down {
            let behind = ids(&mut expected.iter().filter(|row| row.0[0] >= wanted));
            prop_assert_eq!(found(RowQuery { find: Some(name.to_owned()), ..self.query() }), behind);
        }
        Ok(())
    }

    /// A row of totals for each category: the rows that agree in the first column.
    fn check_totals(&self, database: &OpenDatabase, expected: &[ModelRow]) -> Result<(), TestCaseError> {
        let mut model: Vec<(Vec<u8>, Value, u64, f64)> = Vec::new();
        for (keys, _, key, value) in expected {
            let size = value["Size"].as_f64().unwrap();
            match model.last_mut().filter(|last| last.0 == keys[0]) {
                Some(last) => {
                    last.2 += 1;
                    last.3 += size;
                }
                None => model.push((keys[0].clone(), json!([key[0]]), 1, size)),
            }
        }
        let found = self.read(database, RowQuery { group_level: Some(1), ..self.query() }).1;
        let model: Vec<(String, Value, Value)> = model
            .into_iter()
            .map(|(_, key, count, size)| {
                (String::new(), key, json!({"count": count, "totals": {"Size": size}}))
            })
            .collect();
        prop_assert_eq!(found, model, "{} {:?}", self.view, self.resort);
        Ok(())
    }

    /// How many rows there are in all, and those that were asked for.
    fn read(&self, database: &OpenDatabase, query: RowQuery) -> (Option<u64>, Vec<(String, Value, Value)>) {
        let (total, rows) = read(database, self.view, query);
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let row = |row: Row| (row.id.unwrap_or_default(), json(&row.key), json(&row.value.unwrap()));
        (total, rows.into_iter().map(row).collect())
    }
}

fn key(value: &Value, order: Order) -> Vec<u8> {
    let mut key = sort_key(&folded(value, order));
    if order.down {
        descending(&mut key);
    }
    key
}

fn read(database: &OpenDatabase, view: &str, query: RowQuery) -> (Option<u64>, Vec<Row>) {
    let mut rows = database.view("d", view, query, &SERVER).unwrap();
    let total = rows.total_rows;
    let mut all = Vec::new();
    while let Some(some) = Some(rows.next_rows(3).unwrap()).filter(|rows| !rows.is_empty()) {
        all.extend(some);
    }
    (total, all)
}

fn ids(database: &OpenDatabase, view: &str, query: RowQuery) -> String {
    let rows = read(database, view, query).1;
    rows.into_iter().filter_map(|row| row.id).collect::<Vec<_>>().join(" ")
}

fn change(database: &OpenDatabase, id: &str, fields: Option<&Value>) {
    let mut document = fields.cloned().unwrap_or_else(|| json!({"_deleted": true}));
    document["_id"] = json!(id);
    match get(database, id) {
        Ok(present) => document["_rev"] = present["_rev"].clone(),
        Err(_) if fields.is_none() => return,
        Err(_) => {}
    }
    put(database, &document).unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Write { id: u8, names: Vec<usize>, day: u8, size: u8 },
    Delete { id: u8 },
    Read { model: usize },
    Rebuild,
    CleanUp,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let names = prop_oneof![
        8 => prop::collection::vec(0..NAMES.len(), 1),
        1 => prop::collection::vec(0..NAMES.len(), 2..4),
    ];
    prop_oneof![
        12 => (0..14_u8, names, 0..3_u8, 0..5_u8)
            .prop_map(|(id, names, day, size)| Step::Write { id, names, day, size }),
        6 => (0..14_u8).prop_map(|id| Step::Delete { id }),
        3 => (0..MODELS.len()).prop_map(|model| Step::Read { model }),
        1 => Just(Step::Rebuild),
        1 => Just(Step::CleanUp),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scrinium_fault::cases(24), ..ProptestConfig::default() })]

    /// Whatever is written, deleted, rebuilt and read in between, every view in every order is what sorting all
    /// documents gives.
    #[test]
    fn views_are_what_sorting_all_documents_gives(steps in prop::collection::vec(step(), 1..60)) {
        let mut server = Server::quick();
        let mut database = server.databases.create("model", &scrinium_database::InitialAccess::Everybody).unwrap();
        put(&database, &design()).unwrap();
        let mut documents = BTreeMap::new();
        for step in steps {
            match step {
                Step::Write { id, names, day, size } => {
                    let names: Vec<&str> = names.into_iter().map(|name| NAMES[name]).collect();
                    let who = if let [name] = names.as_slice() { json!(name) } else { json!(names) };
                    let fields = json!({"Who": who, "Day": format!("{day:02}"), "Size": size});
                    change(&database, &format!("n{id:02}"), Some(&fields));
                    documents.insert(format!("n{id:02}"), fields);
                }
                Step::Delete { id } => {
                    change(&database, &format!("n{id:02}"), None);
                    documents.remove(&format!("n{id:02}"));
                }
                Step::Read { model } => MODELS[model].check(&database, &documents)?,
                Step::Rebuild => drop(database.update_all_views(None, true).unwrap()),
                Step::CleanUp => prop_assert_eq!(database.clean_up_views().unwrap(), 0),
                Step::Restart => {
                    drop(database);
                    server = server.reopen();
                    database = server.databases.get("model").unwrap();
                }
            }
        }
        for model in &MODELS {
            model.check(&database, &documents)?;
        }
    }
}

#[test]
fn names_that_differ_in_case_are_one_category() {
    let server = Server::quick();
    let database = server.databases.create("names", &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&database, &design()).unwrap();
    for (id, who, day) in [("a", "bob", "01"), ("b", "Ada", "02"), ("c", "ÁDA", "03"), ("d", "ada", "01")] {
        put(&database, &json!({"_id": id, "Who": who, "Day": day, "Size": 1})).unwrap();
    }
    assert_eq!(ids(&database, "neither", RowQuery::default()), "c b d a");
    let groups = read(&database, "neither", RowQuery { group_level: Some(1), ..RowQuery::default() }).1;
    let keys: Vec<&str> = groups.iter().map(|row| row.key.as_str()).collect();
    // The text shown is that of the first entry.
    assert_eq!(keys, [r#"["ÁDA"]"#, r#"["bob"]"#]);
    let rows = read(
        &database,
        "neither",
        RowQuery { keys: Some(vec![json!(["ada", "02"])]), ..RowQuery::default() },
    )
    .1;
    assert_eq!(rows[0].key, r#"["Ada","02"]"#);
    let find = |text: &str| RowQuery { find: Some(text.to_owned()), ..RowQuery::default() };
    assert_eq!(ids(&database, "neither", find("ADÁ")), "c b d a");
    assert_eq!(ids(&database, "neither", find("B")), "a");
}

#[test]
fn a_unique_key_shows_its_first_document_and_the_next_when_that_goes() {
    let server = Server::quick();
    let database = server.databases.create("unique", &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&database, &design()).unwrap();
    for id in ["b", "c", "a"] {
        change(&database, id, Some(&json!({"Who": "Ada", "Day": "01", "Size": 1})));
    }
    let shown = || ids(&database, "unique", RowQuery::default());
    assert_eq!(shown(), "a");
    let at = |id: &str| {
        let query = RowQuery { at: Some(id.to_owned()), ..RowQuery::default() };
        database
            .view("d", "unique", query, &SERVER)
            .map(|rows| rows.offset)
            .map_err(|error| error.to_string())
    };
    assert_eq!(at("a"), Ok(Some(0)));
    assert_eq!(at("b"), Err("The document is not in the view.".to_owned()));
    assert_eq!(
        database.view_info("d", &SERVER).unwrap()["view_index"]["entries"],
        json!(3 + 3 + 3 + 1 + 1 + 3)
    );
    change(&database, "a", Some(&json!({"Who": "Ada", "Day": "02", "Size": 1})));
    assert_eq!(shown(), "a b");
    change(&database, "b", None);
    assert_eq!(shown(), "a c");
    change(&database, "a", None);
    change(&database, "c", None);
    assert_eq!(shown(), "");
}

/// The index of an order is begun when somebody asks for it, and goes when the design has the order no more.
#[test]
fn an_order_is_built_when_it_is_asked_for_and_then_kept() {
    let server = Server::quick();
    let database = server.databases.create("orders", &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&database, &design()).unwrap();
    for (id, who, size) in [("a", "Zoë", 2), ("b", "bob", 3), ("c", "Ada", 1)] {
        put(&database, &json!({"_id": id, "Who": who, "Day": "01", "Size": size})).unwrap();
    }
    let by = |title: &str, descending: Option<bool>, freshness: Freshness| RowQuery {
        resort: Some(title.to_owned()),
        resort_descending: descending,
        freshness,
        ..RowQuery::default()
    };
    let bytes = |database: &OpenDatabase| {
        database.view_info("d", &SERVER).unwrap()["view_index"]["signature"].clone()
    };
    let signature = bytes(&database);
    assert_eq!(ids(&database, "orders", RowQuery::default()), "c b a");
    assert_eq!(ids(&database, "orders", by("Size", None, Freshness::AsItStands)), "");
    assert_eq!(ids(&database, "orders", by("Size", None, Freshness::Usual)), "b a c");
    let row = &read(&database, "orders", by("Size", None, Freshness::Usual)).1[0];
    assert_eq!(row.key, r#"[3,"01","bob"]"#);
    assert_eq!(row.value.as_deref(), Some(r#"{"Day":"01","Who":"bob","Size":3}"#));
    // Whatever brings the design document up to date brings along the orders that were asked for, and no others.
    drop(database);
    let server = server.reopen();
    let database = server.databases.get("orders").unwrap();
    put(&database, &json!({"_id": "d", "Who": "Eve", "Day": "01", "Size": 9})).unwrap();
    database.update_view_group("d").unwrap();
    assert_eq!(ids(&database, "orders", by("Size", Some(true), Freshness::AsItStands)), "d b a c");
    assert_eq!(ids(&database, "orders", by("Who", Some(false), Freshness::AsItStands)), "");
    assert_eq!(bytes(&database), signature);
    assert_eq!(database.clean_up_views().unwrap(), 0);
    // Offering an order less does not build the view again.
    let mut changed = get(&database, "_design/d").unwrap();
    changed["views"]["orders"]["columns"][2].as_object_mut().unwrap().shift_remove("resort");
    put(&database, &changed).unwrap();
    let stands = RowQuery { freshness: Freshness::AsItStands, ..RowQuery::default() };
    assert_eq!(ids(&database, "orders", stands), "c b d a");
    assert_eq!(database.clean_up_views().unwrap(), 1);
    let error = |query: RowQuery| database.view("d", "orders", query, &SERVER).err().unwrap().to_string();
    let usual = |title: &str, descending: Option<bool>| error(by(title, descending, Freshness::Usual));
    assert_eq!(
        usual("Size", None),
        "View `orders` cannot be sorted by `Size` in this order; available are `Who` (asc), `Who` (desc)."
    );
    assert_eq!(
        usual("Who", None),
        "Column `Who` can be sorted both ways: `resort_order` must be \"asc\" or \"desc\"."
    );
    assert_eq!(
        error(RowQuery { resort_descending: Some(true), ..RowQuery::default() }),
        "`resort_order` is of `resort`, which names a column."
    );
}

/// An order that was asked for answers as its view does while a changed design is built; one that is new, and any view
/// that nothing answers for, once showed nothing until then.
#[test]
fn orders_before_a_change_of_design_answer_until_the_new_views_are_built() {
    let server = Server::quick();
    let database = server.databases.create("large", &scrinium_database::InitialAccess::Everybody).unwrap();
    let documents = (0..2500).map(|n| edit(&json!({"_id": format!("{n:04}"), "A": n, "B": 5000 - n})));
    database.update(documents.collect(), EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    let column = |title: &str, formula: &str| json!({"title": title, "formula": formula, "resort": "desc"});
    let mut design = json!({"_id": "_design/d", "language": "formula", "views": {"orders": {
        "columns": [{"title": "Key", "formula": "A", "sort": "asc"}, column("A", "A"), column("B", "B")]}}});
    let first = put(&database, &design).unwrap();
    let by = |title: &str| RowQuery { resort: Some(title.to_owned()), limit: Some(1), ..RowQuery::default() };
    let key = |view: &str, query: RowQuery| read(&database, view, query).1[0].key.clone();
    assert_eq!(key("orders", by("A")), "[2499,2499]");
    design["_rev"] = json!(first.revision);
    design["views"]["orders"]["columns"][0]["formula"] = json!("A + 1");
    design["views"]["added"] = design["views"]["orders"].clone();
    design["views"]["added"]["columns"][0]["formula"] = json!("A + 2");
    put(&database, &design).unwrap();
    assert_eq!(key("orders", by("A")), "[2499,2499]");
    assert_eq!(key("orders", by("B")), "[5000,1]");
    assert_eq!(key("added", by("B")), "[5000,2]");
    assert_eq!(key("added", RowQuery { limit: Some(1), ..RowQuery::default() }), "[2]");
    database.update_view_group("d").unwrap();
    assert_eq!(key("orders", by("A")), "[2499,2500]");
}

#[test]
fn what_a_column_cannot_be_is_said_when_the_design_is_written() {
    let server = Server::quick();
    let database = server.databases.create("wrong", &scrinium_database::InitialAccess::Everybody).unwrap();
    let refused = |view: Value| {
        let design = json!({"_id": "_design/x", "language": "formula", "views": {"v": view}});
        put(&database, &design).unwrap_err().to_string()
    };
    let column = |option: &str, value: Value, sort: Value| {
        refused(json!({"columns": [{"formula": "A", "sort": sort, option: value}]}))
    };
    let place = "view `v`, column 1: ";
    assert_eq!(column("case", json!("no"), json!("asc")), format!("{place}`case` must be true or false"));
    assert_eq!(column("accent", json!(0), json!("asc")), format!("{place}`accent` must be true or false"));
    assert_eq!(
        column("case", json!(false), json!(null)),
        format!("{place}`case` is of columns that sort, and this one does not")
    );
    assert_eq!(
        column("resort", json!("up"), json!(null)),
        format!("{place}`resort` must be \"asc\", \"desc\" or \"both\"")
    );
    assert_eq!(refused(json!({"unique": 1})), "view `v`: `unique` must be true or false");
    assert_eq!(
        refused(json!({"unique": true, "columns": [{"formula": "A"}]})),
        "view `v`: `unique` needs a column that sorts, which makes the key"
    );
    let both =
        json!({"unique": true, "columns": [{"title": "A", "formula": "A", "sort": "asc", "resort": "desc"}]});
    assert_eq!(
        refused(both),
        "view `v`, column `A`: a view with `unique` has one order, so `resort` is not available in it"
    );
}
