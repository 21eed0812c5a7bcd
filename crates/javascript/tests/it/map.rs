//! Map functions give what CouchDB gives, and what an evaluation without JavaScript gives.

use std::cell::RefCell;

use proptest::prelude::*;
use scrinium_javascript::{Limits, MapEngine, Pool, PoolOptions, ScriptError};

use serde_json::{Value, json};

const DATABASE: [u8; 16] = [1; 16];

fn engine(sources: &[&str], library: Option<&Value>, limits: Limits) -> MapEngine {
    let pool = Pool::new(PoolOptions { limits, ..PoolOptions::default() });
    MapEngine::new(&pool, DATABASE, sources, library)
}

fn check_map(source: &str, limits: &Limits) -> Result<(), ScriptError> {
    engine(&[source], None, limits.clone()).check().unwrap().remove(0)
}

/// What a function emits for a document: lines of key and value.
fn emitted(engine: &mut MapEngine, document: &Value) -> Vec<Result<Vec<String>, ScriptError>> {
    let entries = |mapped: scrinium_javascript::Mapped| {
        mapped.map(|entries| {
            entries.into_iter().map(|entry| format!("{} {}", entry.key_json, entry.value_json)).collect()
        })
    };
    engine.map(&document.to_string()).unwrap().into_iter().map(entries).collect()
}

fn map(source: &str, document: &Value) -> Result<Vec<String>, ScriptError> {
    emitted(&mut engine(&[source], None, Limits::default()), document).remove(0)
}

fn lines(lines: &[&str]) -> Result<Vec<String>, ScriptError> {
    Ok(lines.iter().map(|line| (*line).to_owned()).collect())
}

#[test]
fn sources_come_in_many_forms() {
    for source in [
        "function(doc) { emit(doc.n, 1); }",
        "\n\t /* the number */ function (doc) { emit(doc.n, 1); } ; // that is all\n",
        "// first\nfunction map(doc) { emit(doc.n, 1) };",
        "(function(doc) { emit(doc.n, 1); })",
        "doc => emit(doc.n, 1)",
        "(doc) => { const { n } = doc; emit(n, 1); }",
        "({ n }) => { emit(n, 1); }",
        "var one = 1; (function (doc) { emit(doc.n, one); })",
        "function one() { return 1; }\nfunction (doc) { emit(doc.n, one()); }",
        "function(doc) { for (var i = 0; i < 1; i++) emit(doc.n, i + 1); }",
        "function(doc) { eval('emit(doc.n, 1)'); }",
        "new Function('doc', 'emit(doc.n, 1)')",
    ] {
        assert_eq!(check_map(source, &Limits::default()), Ok(()), "{source}");
        assert_eq!(map(source, &json!({"n": 7})), lines(&["7 1"]), "{source}");
    }
}

#[test]
fn sources_that_are_no_functions_are_told_by_place() {
    let refused = |source: &str| check_map(source, &Limits::default()).unwrap_err();
    let place = |source: &str| match refused(source) {
        ScriptError::Syntax { line, column, message } if !message.is_empty() => (line, column),
        error => panic!("{source}: {error:?}"),
    };
    assert_eq!(place("function (doc) { emit(doc.n; }"), (1, 28));
    assert_eq!(place("function (doc) {\n  emit(doc.n)\n  }}"), (3, 4));
    assert_eq!(place("function (doc) {").0, 1);
    assert_eq!(place("doc =>"), (1, 7));
    assert_eq!(refused(""), ScriptError::NotAFunction { found: "undefined".to_owned() });
    assert_eq!(refused("5"), ScriptError::NotAFunction { found: "number".to_owned() });
    assert_eq!(
        refused("({map: function (doc) {}})"),
        ScriptError::NotAFunction { found: "object".to_owned() }
    );
    assert!(
        matches!(refused("missing.function"), ScriptError::Thrown { message } if message.contains("missing"))
    );
    assert_eq!(place("function (doc) {\n \0 }"), (2, 2));
    let endless = Limits { call_time_ms: 50, ..Limits::default() };
    assert_eq!(check_map("(function () { for (;;); })()", &endless), Err(ScriptError::Time { limit_ms: 50 }));
}

#[test]
fn what_json_has_not_is_emitted_as_couchdb_does() {
    let source = "function (doc) {
        emit(); emit(undefined, undefined); emit(NaN, Infinity); emit(-0, 1e21); emit(function () {}, Symbol());
        emit(new Date(Date.UTC(2026, 10, 21)), [undefined, NaN]); emit({ a: undefined, b: null }, 'ü\\n\"');
        emit('\\ud800', ['\\udc00\\ud800', '\\ud83d\\ude00', '\\\\ud800']);
        emit({ toJSON: function () { return 'own'; } }, new Map([[1, 2]]));
    }";
    assert_eq!(
        map(source, &json!({})),
        lines(&[
            "null null",
            "null null",
            "null null",
            "0 1e+21",
            "null null",
            "\"2026-11-21T00:00:00.000Z\" [null,null]",
            "{\"b\":null} \"ü\\n\\\"\"",
            "\"\u{fffd}\" [\"\u{fffd}\u{fffd}\",\"😀\",\"\\\\ud800\"]",
            "\"own\" {}",
        ])
    );
    // As in CouchDB an object is written when the function has returned.
    let source = "function (doc) { var o = { n: 1 }; emit(o, 1); o.n = 2; emit(o, 2); }";
    assert_eq!(map(source, &json!({})), lines(&["{\"n\":2} 1", "{\"n\":2} 2"]));
}

#[test]
fn the_environment_is_that_of_couchdb() {
    let source = "function (doc) {
        emit(sum(doc.list), sum([])); emit(isArray(doc.list), isArray(doc)); emit(toJSON({ a: 1 }), JSON.parse('[1]'));
        emit(doc.list.map(n => n * 2).join(), Object.keys(doc).sort()); emit(typeof Date.now(), typeof Math.random());
        emit(/^(\\w)/.exec(doc._id)[1], doc._id.localeCompare('b')); emit(new Set([1, 1, 2]).size, [...'ab']);
        log('seen ' + doc._id); log({ a: [1] }); log();
    }";
    let mut engine = engine(&[source], None, Limits::default());
    assert_eq!(
        emitted(&mut engine, &json!({"_id": "a1", "list": [1, 2.5, 3]})).remove(0),
        lines(&[
            "6.5 0",
            "true false",
            "\"{\\\"a\\\":1}\" [1]",
            "\"2,5,6\" [\"_id\",\"list\"]",
            "\"number\" \"number\"",
            "\"a\" -1",
            "2 [\"a\",\"b\"]",
        ])
    );
    let logged: Vec<String> = engine.take_log().into_iter().map(|(_, line)| line).collect();
    assert_eq!(logged, ["seen a1", "{\"a\":[1]}", "undefined"]);
    assert!(engine.take_log().is_empty());
}

#[test]
fn modules_are_those_of_the_design_document() {
    let library = json!({
        "names": "exports.short = function (name) { return name.split('/')[0] + require('./marks').end; }; // names",
        "marks": "module.exports = { end: require('../lib/deep/mark').mark };",
        "deep": {
            "mark": "exports.mark = '!'; exports.again = require('../circle').name;",
            "loop": "for (;;);",
        },
        "circle": "exports.name = 'circle'; exports.mark = require('views/lib/deep/mark').mark;",
        "broken": "exports.x = ;",
        "throws": "exports.x = 1; throw new Error('not ' + this.constructor.name);",
        "number": 5,
    });
    let source = |name: &str| format!("doc => emit(require('{name}').short(doc._id), 1)");
    let limits = Limits { call_time_ms: 50, ..Limits::default() };
    let mut names =
        ["names", "circle", "broken", "throws", "number", "missing", "deep", "deep/loop"].to_vec();
    let sources: Vec<String> = names.iter().map(|name| source(&format!("views/lib/{name}"))).collect();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let mut engine = engine(&sources, Some(&library), limits);
    for _ in 0..2 {
        let mut given = emitted(&mut engine, &json!({"_id": "Ann/Acme"}));
        assert_eq!(given.pop(), Some(Err(ScriptError::Time { limit_ms: 50 })));
        assert_eq!(given.remove(0), lines(&["\"Ann!\" 1"]));
        let thrown = ["not a function", "unexpected token", "not ", "no module", "no module", "no module"];
        for (error, thrown) in given.into_iter().zip(thrown) {
            let Err(ScriptError::Thrown { message }) = error else { panic!("{error:?}") };
            assert!(message.contains(thrown), "{message}");
        }
    }
    names.clear();
    let outside = map("doc => require('../../x')", &json!({})).unwrap_err().to_string();
    assert!(outside.starts_with("Error: invalid_require_path: ../../x leads out"), "{outside}");
}

#[test]
fn functions_do_not_disturb_each_other() {
    let mut engine = engine(
        &[
            "function (doc) { doc.n = 5; doc.list.n = 1; delete doc._id; emit(doc.n, doc.list[0].m); }",
            "function (doc) { 'use strict'; doc.list[0].m = 5; }",
            "function (doc) { doc.list.push(1); }",
            "function (doc) { emit = sum = 5; Array.prototype.join = () => 'x'; JSON = 0; emit(1); }",
            "function (doc) { Array.prototype.first = function () { return this[0]; }; emit([7].first()); }",
            "function (doc) { var words = []; words['join'] = 1; var o = {}; o.toString = 2; emit(words.join, o.toString) }",
            "function (doc) { emit(doc, [1, 2].join()); }",
        ],
        None,
        Limits::default(),
    );
    let document = json!({"_id": "a", "list": [{"m": 1}], "n": 2});
    for _ in 0..3 {
        let given = emitted(&mut engine, &document);
        assert_eq!(given[0], lines(&["2 1"]));
        let refused = ["read-only", "extensible", "read-only", "extensible"];
        for (given, message) in given[1..5].iter().zip(refused) {
            let Err(ScriptError::Thrown { message: thrown }) = given else { panic!("{given:?}") };
            assert!(thrown.starts_with("TypeError") && thrown.contains(message), "{thrown}");
        }
        assert_eq!(given[5], lines(&["1 2"]));
        assert_eq!(given[6], lines(&[&format!("{document} \"1,2\"")]));
    }
}

/// Any JSON, with names that mean something in JavaScript.
fn any_json() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        prop::sample::select(vec![
            "a",
            "b",
            "n",
            "__proto__",
            "constructor",
            "toString",
            "toJSON",
            "length",
            "0",
            ""
        ])
        .prop_map(str::to_owned),
        ".{0,4}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-(1_i64 << 53)..1 << 53).prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// JSON as numbers of JavaScript have it.
fn in_doubles(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.as_f64().unwrap()),
        Value::Array(list) => list.iter().map(in_doubles).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), in_doubles(value))).collect())
        }
        other => other.clone(),
    }
}

#[test]
fn documents_give_what_they_hold() {
    let engine = engine(
        &[
            "function (doc) { emit(null, doc); }",
            "function (doc) { for (var name in doc) emit(name, doc[name]); }",
            "function (doc) { if (Array.isArray(doc.a)) doc.a.forEach(function (one, place) { emit(one, place); }); }",
            "({ a, b }) => emit([a, b], typeof a)",
        ],
        None,
        Limits::default(),
    );
    let engine = RefCell::new(engine);
    let documents = prop::collection::vec((".{0,3}", any_json()), 0..8).prop_map(|members| {
        Value::Object(members.into_iter().chain([("_id".to_owned(), json!("d"))]).collect())
    });
    proptest!(|(mut document in documents, a in any_json())| {
        document["a"] = a;
        let given: Vec<Vec<(Value, Value)>> = engine
            .borrow_mut()
            .map(&document.to_string())
            .unwrap()
            .into_iter()
            .map(|entries| {
                let parsed = |json: &str| in_doubles(&serde_json::from_str(json).unwrap());
                entries.unwrap().iter().map(|entry| (parsed(&entry.key_json), parsed(&entry.value_json))).collect()
            })
            .collect();
        let document = in_doubles(&document);
        prop_assert_eq!(&given[0], &vec![(Value::Null, document.clone())]);
        let members = document.as_object().unwrap();
        let mut named: Vec<_> = given[1].clone();
        named.sort_by_key(|(name, _)| name.to_string());
        let mut expected: Vec<_> =
            members.iter().map(|(name, value)| (Value::from(name.as_str()), value.clone())).collect();
        expected.sort_by_key(|(name, _)| name.to_string());
        prop_assert_eq!(named, expected);
        let list = members["a"].as_array().cloned().unwrap_or_default();
        let listed: Vec<_> = list.into_iter().zip((0..32).map(|place| json!(f64::from(place)))).collect();
        prop_assert_eq!(&given[2], &listed);
        let kind = match &members["a"] {
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            _ => "object",
        };
        let b = members.get("b").cloned().unwrap_or_default();
        prop_assert_eq!(&given[3], &vec![(json!([members["a"], b]), json!(kind))]);
    });
}
