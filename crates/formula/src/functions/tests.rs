//! The table of functions holds together, and does what its examples say.

use super::{Body, FormKind, all, all_refused, find, flags};
use crate::datetime::DateTime;
use crate::environment::{AttachmentInfo, Environment, Fields};
use crate::value::{Text, Value};
use crate::{Formula, FormulaErrorKind};

/// The document that the examples of the reference speak of.
struct Sample;

impl Fields for Sample {
    fn field(&self, name: &str) -> Option<Value> {
        match name.to_lowercase().as_str() {
            "subject" => Some(Value::text("Lunch")),
            "from" => Some(Value::text("CN=Ben Brown/O=Acme")),
            _ => None,
        }
    }

    fn id(&self) -> &str {
        "A1"
    }

    fn field_names(&self) -> Option<Vec<Text>> {
        Some(vec![Text::new("Subject"), Text::new("From"), Text::new("$REF")])
    }

    fn created(&self) -> Option<DateTime> {
        DateTime::from_rfc3339("2026-11-19T08:00:00Z")
    }

    fn modified(&self) -> Option<DateTime> {
        DateTime::from_rfc3339("2026-11-20T08:00:00Z")
    }

    fn attachments(&self) -> Vec<AttachmentInfo> {
        vec![
            AttachmentInfo { name: "plan.pdf".to_owned(), length: 1000 },
            AttachmentInfo { name: "photo.png".to_owned(), length: 250 },
        ]
    }

    fn size_bytes(&self) -> u64 {
        300
    }

    fn parent(&self) -> Option<String> {
        Some("P1".to_owned())
    }
}

fn environment() -> Environment {
    Environment {
        now: "2026-11-21T10:00:00Z".parse().unwrap(),
        user_name: Some("CN=Ann Smith/OU=Sales/O=Acme".to_owned()),
        user_groups: vec!["Staff".to_owned()],
        user_roles: vec!["[Editors]".to_owned()],
        server_name: Some("CN=Hub/O=Acme".to_owned()),
        database_name: Some("mail/ann".to_owned()),
        database_title: Some("Ann's mail".to_owned()),
        ..Environment::default()
    }
}

fn evaluated(source: &str) -> Value {
    let formula = Formula::compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    formula.evaluate(&Sample, &environment()).unwrap_or_else(|error| panic!("{source}: {error}"))
}

#[test]
fn examples_come_to_what_they_say() {
    let mut wrong = Vec::new();
    for function in all() {
        for (formula, expected) in function.examples {
            let (found, expected) = (evaluated(formula), evaluated(expected));
            if found != expected {
                wrong.push(format!("{formula}: {found:?}, not {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_function_is_described_and_shown() {
    for function in all() {
        let name = function.name;
        assert!(name.starts_with('@') && name.len() > 1, "{name}");
        assert!(function.help.ends_with('.'), "{name}: its help is not a sentence");
        let shown = |(formula, _): &(&str, &str)| formula.to_lowercase().contains(&name.to_lowercase());
        assert!(function.examples.iter().any(shown), "{name} has no example");
        let names: Vec<&str> = function.arguments.split("; ").collect();
        let first_optional = names.iter().position(|name| name.starts_with('[')).unwrap_or(names.len());
        assert!(names.iter().skip(first_optional).all(|name| name.starts_with('[')), "{name}: {names:?}");
        assert!(names.iter().rev().skip(1).all(|name| !name.contains("...")), "{name}: {names:?}");
    }
}

#[test]
fn names_are_known_once() {
    let mut names: Vec<String> = all()
        .map(|function| function.name)
        .chain(all_refused().map(|(name, _)| name))
        .map(str::to_lowercase)
        .collect();
    names.sort();
    for pair in names.windows(2) {
        assert_ne!(pair[0], pair[1]);
    }
    for function in all() {
        assert!(find(&function.name.to_uppercase()).is_some());
    }
}

#[test]
fn refused_functions_say_why() {
    for (name, refusal) in all_refused() {
        let error = Formula::compile(&format!("x := 1;\n  {name}")).unwrap_err();
        assert_eq!(error.kind, FormulaErrorKind::NotPermitted);
        assert_eq!((error.line, error.column), (2, 3));
        assert!(error.message.contains(name) && error.message.contains(refusal.reason()), "{error}");
        assert_eq!(error.advice, refusal.advice());
    }
}

/// A function that is marked as depending on nothing but its arguments must not see the surroundings.
#[test]
fn pure_functions_have_constant_values() {
    for function in all().filter(|function| function.flags & flags::VARYING == 0) {
        let Body::Native(_) = function.body else { continue };
        if function.arguments.is_empty() && function.name != "@Nothing" && function.name != "@Error" {
            let formula = Formula::compile(function.name).unwrap();
            let other =
                Environment { now: "1999-01-01T00:00:00Z".parse().unwrap(), ..Environment::default() };
            assert_eq!(formula.evaluate(&Sample, &environment()), formula.evaluate(&Sample, &other));
        }
    }
}

#[test]
fn wrong_numbers_of_arguments_are_refused() {
    for function in all() {
        let (least, most) = function.arity();
        let mut counts: Vec<usize> = most.map(|most| most + 1).into_iter().collect();
        counts.extend(least.checked_sub(1));
        for count in counts {
            let source = format!("{}({})", function.name, vec!["1"; count].join(";"));
            let error = Formula::compile(&source).unwrap_err();
            assert_eq!(error.kind, FormulaErrorKind::Arguments, "{source}: {error}");
        }
    }
}

/// No function may panic or run away, whatever it is given.
#[test]
fn functions_survive_any_arguments() {
    const VALUES: &[&str] = &[
        r#""""#,
        r#""a":"":"b c""#,
        "0",
        "-1",
        "1E308",
        "(-1E308):0.5",
        "[2026-11-21]",
        "[10:00]",
        "[9999-12-31T22:00:00Z]",
        "[0001-01-01]",
        "[CN]",
        "NoSuchField",
        "\"2026-11-21T10:00:00Z\"",
        "@Char(128512):\"ß\"",
        "1000000",
    ];
    // Loops over constants only run until they are stopped.
    let loops = |body| matches!(body, Body::Form(FormKind::While | FormKind::DoWhile | FormKind::For));
    for function in all().filter(|function| !loops(function.body)) {
        let (least, most) = function.arity();
        let most = most.unwrap_or(least + 2).min(least + 2);
        for count in least..=most {
            for first in VALUES {
                for rest in VALUES {
                    let mut arguments = vec![*rest; count];
                    if let Some(place) = arguments.first_mut() {
                        *place = first;
                    }
                    let source = format!("{}({})", function.name, arguments.join("; "));
                    if let Ok(formula) = Formula::compile(&source) {
                        let _ = formula.evaluate(&Sample, &environment());
                    }
                }
            }
        }
    }
}
