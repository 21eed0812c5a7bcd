//! Documents and shorthands for the tests.

use std::cell::RefCell;

use jiff::tz::{Offset, TimeZone};
use scrinium_formula::{Environment, Fields, Formula, Value};

/// A document in JSON, which notes what it is asked for.
#[derive(Default)]
pub(crate) struct Document {
    pub(crate) json: serde_json::Value,
    pub(crate) asked: RefCell<Vec<String>>,
}

impl Document {
    pub(crate) fn new(json: serde_json::Value) -> Self {
        Self { json, asked: RefCell::default() }
    }
}

impl Fields for Document {
    fn field(&self, name: &str) -> Option<Value> {
        self.asked.borrow_mut().push(name.to_lowercase());
        let fields = self.json.as_object()?;
        let found = fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| Value::from_json(value))
    }

    fn id(&self) -> &str {
        self.json.get("_id").and_then(serde_json::Value::as_str).unwrap_or("")
    }

    fn parent(&self) -> Option<String> {
        self.json.get("$REF").and_then(serde_json::Value::as_str).map(str::to_owned)
    }
}

/// Saturday, 21 November 2026, 10:00 in UTC.
pub(crate) fn environment() -> Environment {
    Environment::new("2026-11-21T10:00:00Z".parse().unwrap(), TimeZone::UTC)
}

/// The same moment, where clocks show this many hours more than in UTC.
pub(crate) fn environment_at(hours: i8) -> Environment {
    Environment { time_zone: TimeZone::fixed(Offset::constant(hours)), ..environment() }
}

pub(crate) fn compiled(source: &str) -> Formula {
    Formula::compile(source).unwrap_or_else(|error| panic!("{source}: {error}"))
}

/// The value for a document that has these fields.
pub(crate) fn value_for(source: &str, json: serde_json::Value) -> Value {
    let document = Document::new(json);
    compiled(source).evaluate(&document, &environment()).unwrap_or_else(|error| panic!("{source}: {error}"))
}

/// The value for an empty document.
pub(crate) fn value_of(source: &str) -> Value {
    value_for(source, serde_json::json!({}))
}

/// The message of the error value that a formula must come to.
pub(crate) fn error_of(source: &str) -> String {
    match value_of(source) {
        Value::Error(error) => error.to_string(),
        other => panic!("{source}: {other:?} is no error"),
    }
}

/// Checks that formulas come to the same as the formulas next to them.
pub(crate) fn check(cases: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (source, expected) in cases {
        let (found, wanted) = (value_of(source), value_of(expected));
        if found != wanted {
            wrong.push(format!("{source} came to {found:?}, not {wanted:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
