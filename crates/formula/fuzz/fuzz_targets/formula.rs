//! Compiles any text as a formula and evaluates it: nothing may panic, run away, read a field that the
//! formula does not tell of, or come to a number that JSON cannot hold.
//!
//! `cargo +nightly fuzz run formula`, in this folder's parent.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use scrinium_formula::{AttachmentInfo, DateTime, Environment, Fields, Formula, Text, Value};

struct Document {
    asked: RefCell<Vec<String>>,
}

impl Fields for Document {
    fn field(&self, name: &str) -> Option<Value> {
        let name = name.to_lowercase();
        let value = match name.as_str() {
            "form" => Some(Value::text("Memo")),
            "subject" => Some(Value::text("Re: lunch — tomorrow?")),
            "sendto" => Some(Value::texts(vec!["Ann Smith/Acme".into(), "ben@acme.com".into()])),
            "posted" => Some(Value::text("2026-11-21T10:00:00Z")),
            "size" => Some(Value::number(12.5)),
            "sizes" => Some(Value::numbers(vec![1.0, -2.0, 0.0])),
            _ => None,
        };
        self.asked.borrow_mut().push(name);
        value
    }

    fn id(&self) -> &str {
        "d1"
    }

    fn field_names(&self) -> Option<Vec<Text>> {
        Some(vec!["Form".into(), "Subject".into()])
    }

    fn created(&self) -> Option<DateTime> {
        DateTime::from_rfc3339("2026-11-19T08:00:00Z")
    }

    fn attachments(&self) -> Vec<AttachmentInfo> {
        vec![AttachmentInfo { name: "plan.pdf".to_owned(), length: 1000 }]
    }

    fn parent(&self) -> Option<String> {
        Some("d0".to_owned())
    }
}

fuzz_target!(|source: &str| {
    let Ok(formula) = Formula::compile(source) else { return };
    let document = Document { asked: RefCell::default() };
    let environment =
        Environment { user_name: Some("CN=Ann Smith/O=Acme".to_owned()), ..Environment::default() };
    let outcome = formula.evaluate(&document, &environment);
    for field in document.asked.borrow().iter() {
        let told = formula.fields().iter().any(|name| name.to_lowercase() == *field);
        assert!(told || formula.reads_any_field(), "{field} is read but not told");
    }
    let Ok(value) = outcome else { return };
    if let Value::Number(numbers) = &value {
        assert!(numbers.iter().all(|number| number.is_finite()));
    }
    let json = value.to_json();
    assert!(value.is_error() || Value::from_json(&json).is_some());
    assert!(formula.selects(&document, &environment).is_ok());
});
