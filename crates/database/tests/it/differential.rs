//! The same bytes mean the same to all who read them: the parser of documents, serde_json, QuickJS, selectors and
//! formulas.

use scrinium_database::{DatabaseError, Edit, EditMode, ReadOptions, RowQuery, Updated};
use scrinium_document::json::{NESTING_MAX, parse_value};
use scrinium_mango::Query;
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::words::Words as _;
use crate::common::{SERVER, Server, all_rows, put};

fn store(database: &OpenDatabase, json: &str) -> Result<Updated, DatabaseError> {
    let edit = Edit { json: json.to_owned().into(), ..Edit::default() };
    database.update(vec![edit], EditMode::Interactive, &SERVER)?.wait()?.remove(0)
}

fn nested(open: &str, levels: usize, close: &str) -> String {
    format!("{}1{}", open.repeat(levels), close.repeat(levels))
}

/// As JavaScript has it: numbers are doubles, and the order of members is nobody's business.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let is_same = |(name, value)| right.get(name).is_some_and(|other| same(value, other));
            left.len() == right.len() && left.iter().all(is_same)
        }
        _ => left == right,
    }
}

#[test]
fn all_parsers_agree_on_what_is_taken() {
    let server = Server::new();
    let database = server.databases.create("db", &scrinium_database::InitialAccess::Everybody).unwrap();
    let scripts =
        json!({"_id": "_design/js", "views": {"v": {"map": "function (doc) { emit(doc._id, doc.v) }"}}});
    put(&database, &scripts).unwrap();
    let formulas = json!({"_id": "_design/formula", "language": "formula", "views": {"v": {
        "selection": "SELECT @IsAvailable(Id)", "columns": [{"title": "Id", "formula": "Id", "sort": "asc"}]}}});
    put(&database, &formulas).unwrap();
    // The document and its member are levels of their own.
    let deepest = NESTING_MAX - 1;
    let texts = [
        r#"{"a":1,"a":2}"#.to_owned(),
        r#"{"a":1,"\u0061":[2]}"#.to_owned(),
        r#"{"a":{"b":1,"b":{"c":3,"c":4}},"x":0,"a":{"b":5}}"#.to_owned(),
        r#"{"__proto__":{"a":1},"constructor":2,"toString":3}"#.to_owned(),
        r#""\ud83d\ude00 \u0000 \u2028 \/ \b\f\n\r\t\\\"""#.to_owned(),
        "[0,-0,0.0,1e0,1E+2,1.5e-3,1e308,-1e308,5e-324,9007199254740991,9007199254740993,12345678901234567890]".to_owned(),
        " [ 1 , { \"a\" : [ ] } ] ".to_owned(),
        nested("[", 126, "]"),
        nested("[", 127, "]"),
        nested("[", 128, "]"),
        nested("{\"a\":", 129, "}"),
        nested("[", deepest, "]"),
        nested("{\"a\":", deepest, "}"),
    ];
    for (number, text) in texts.iter().enumerate() {
        store(&database, &format!("{{\"_id\":\"{number:02}\",\"Id\":\"{number:02}\",\"v\":{text}}}"))
            .unwrap_or_else(|error| panic!("{text:.60}: {error}"));
    }
    let js = all_rows(database.view("js", "v", RowQuery::default(), &SERVER).unwrap());
    let formula = all_rows(database.view("formula", "v", RowQuery::default(), &SERVER).unwrap());
    assert_eq!((js.len(), formula.len()), (texts.len(), texts.len()));
    for (number, (text, row)) in texts.iter().zip(&js).enumerate() {
        let id = format!("{number:02}");
        let expected = parse_value(text, NESTING_MAX).unwrap();
        let json = database.read(&id, &ReadOptions::default(), &SERVER).unwrap().json;
        let read = parse_value(&json, NESTING_MAX).unwrap();
        assert_eq!(read["v"], expected, "{text:.60}");
        if let Ok(theirs) = serde_json::from_str::<Value>(&json) {
            assert_eq!(theirs, read, "{text:.60}");
        } else {
            assert!(text.matches(['[', '{']).count() > 120, "{text:.60}");
        }
        let emitted = parse_value(row.value.as_ref().unwrap(), NESTING_MAX).unwrap();
        assert!(same(&emitted, &expected), "{text:.60}: {row:?}");
        let query = json!({"selector": {"v": expected, "_id": id}});
        let query = Query::parse(&query).map(|query| database.find(&query, &SERVER).unwrap());
        if let Ok(mut found) = query {
            assert_eq!(found.next(10, 1000).unwrap().len(), 1, "{text:.60}");
        }
    }
}

#[test]
fn what_one_parser_refuses_is_refused_before_another_sees_it() {
    let server = Server::new();
    let database = server.databases.create("db", &scrinium_database::InitialAccess::Everybody).unwrap();
    for text in [
        r#""\ud800""#,
        r#""\udc00\ud800""#,
        r#"{"\ud800":1}"#,
        "1e999",
        "-1e999",
        "01",
        "1.",
        ".5",
        "+1",
        "0x1",
        "NaN",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "'a'",
        "\"a\nb\"",
        "\"\\x\"",
        "nul",
        "true false",
        "[1}",
        "\u{feff}1",
        "",
    ] {
        let refused = store(&database, &format!("{{\"_id\":\"x\",\"v\":{text}}}")).unwrap_err();
        assert_eq!(refused.status(), 400, "{text}");
        assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
    }
    let deeper = nested("[", NESTING_MAX, "]");
    assert_eq!(store(&database, &format!("{{\"_id\":\"x\",\"v\":{deeper}}}")).unwrap_err().status(), 400);
    // Of several members with one name the last one counts, for the id, too.
    store(&database, r#"{"_id":"_design/hidden","_id":"seen","\u005fid":"last","n":1,"n":2}"#).unwrap();
    assert!(database.read("last", &ReadOptions::default(), &SERVER).unwrap().json.ends_with("\"n\":2}"));
    assert_eq!(database.read("seen", &ReadOptions::default(), &SERVER).unwrap_err().status(), 404);
}
