//! Whatever text is given, nothing panics, and what is evaluated ends.

use crate::support::{Document, environment};
use proptest::prelude::*;
use scrinium_formula::{Formula, Value};
use serde_json::json;

fn document() -> Document {
    Document::new(json!({
        "_id": "d1",
        "$REF": "d0",
        "Form": "Memo",
        "Subject": "Re: lunch — tomorrow?",
        "SendTo": ["Ann Smith/Acme", "ben@acme.com"],
        "Posted": "2026-11-21T10:00:00Z",
        "Size": 12.5,
        "Sizes": [1, -2, 0],
        "Flag": true,
    }))
}

/// Compiles and evaluates; what it comes to must be fit for an index.
fn run(source: &str) -> Result<(), TestCaseError> {
    let Ok(formula) = Formula::compile(source) else { return Ok(()) };
    let document = document();
    if let Ok(value) = formula.evaluate(&document, &environment()) {
        prop_assert!(value.len() > 0);
        if let Value::Number(numbers) = &value {
            prop_assert!(numbers.iter().all(|number| number.is_finite()), "{source}");
        }
        let json = value.to_json();
        prop_assert!(!json.is_null(), "{source}");
        if !value.is_error() {
            prop_assert!(Value::from_json(&json).is_some(), "{source}");
        }
    }
    for field in document.asked.borrow().iter() {
        let told =
            formula.reads_any_field() || formula.fields().iter().any(|name| name.to_lowercase() == *field);
        prop_assert!(told, "{source} reads {field} without telling");
    }
    prop_assert_eq!(formula.evaluate(&document, &environment()), formula.evaluate(&document, &environment()));
    Ok(())
}

/// Pieces that make most of the language when they are strewn together.
#[allow(clippy::too_many_lines, reason = "a list")]
fn pieces() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "Form",
        "Subject",
        "SendTo",
        "Posted",
        "Size",
        "Sizes",
        "Flag",
        "Missing",
        "x",
        "y",
        "$REF",
        "x := ",
        "FIELD y := ",
        "DEFAULT Form := ",
        "SELECT ",
        "REM \"r\"",
        "1",
        "0",
        "2.5",
        "-",
        "!",
        "+",
        "*",
        "/",
        ":",
        "*+",
        "**",
        "=",
        "<>",
        "<",
        ">=",
        "*=",
        "&",
        "|",
        "(",
        ")",
        "[",
        "]",
        "[1]",
        ";",
        ";",
        " ",
        "\n",
        "\"a\"",
        "\"\"",
        "{b c}",
        "[2026-11-21]",
        "[10:00]",
        "[2026-11-21 10:00]",
        "[2026-11-21 - 2026-11-23]",
        "[2026-11-21 10:00 - 11:00]",
        "[CN]",
        "@If(",
        "@Do(",
        "@For(x := 1; x < 4; x := x + 1; ",
        "@While(x < 3; x := x + 1)",
        "@Transform(",
        "\"x\"; ",
        "@Sort(",
        "@Left(",
        "@Word(",
        "@Explode(",
        "@Name([CN]; ",
        "@Adjust(Posted; ",
        "@Date(",
        "@Text(",
        "@IsError(",
        "@IfError(",
        "@Now",
        "@All",
        "@GetField(",
        "@Matches(",
        "@Round(",
        "@Subset(",
        "@Return(",
        "@Nothing",
        "ü",
        "\\",
        "'",
        "@",
    ]);
    prop::collection::vec(words, 0..24).prop_map(|words| words.concat())
}

/// Expressions that are well formed, so that evaluation is reached.
#[allow(clippy::too_many_lines, reason = "a list")]
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "Form",
        "Subject",
        "SendTo",
        "Posted",
        "Size",
        "Sizes",
        "Flag",
        "Missing",
        "x",
        "0",
        "1",
        "2.5",
        "(-3)",
        "\"\"",
        "\"a b\"",
        "\"Re: \"",
        "[2026-11-21]",
        "[10:00]",
        "[2026-11-21 10:00]",
        "[2026-11-21 - 2026-11-23]",
        "[2026-11-21 10:00 - 11:00]",
        "[CN]",
        "@Now",
        "@Today",
        "\"2026-01-31\"",
        "\"Z=5$DO=1$DL=4 1 1 10 -1 1$ZN=Eastern\"",
        "[RULE1]",
        "{@If(Form = 1; 2)}",
        "1:2:3",
        "\"a\":\"b\"",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(5, 60, 4, |inside| {
        let operators = prop::sample::select(vec![
            "+", "-", "*", "/", "*+", "*-", "**", "*/", "=", "<>", "<", ">", "<=", ">=", "*=", "*<", "&",
            "|", ":",
        ]);
        let functions = prop::sample::select(vec![
            "@If",
            "@Select",
            "@Do",
            "@IfError",
            "@IsError",
            "@Left",
            "@Right",
            "@LeftBack",
            "@RightBack",
            "@Middle",
            "@MiddleBack",
            "@Word",
            "@Explode",
            "@Implode",
            "@Trim",
            "@Length",
            "@Repeat",
            "@Contains",
            "@Matches",
            "@Like",
            "@ReplaceSubstring",
            "@Text",
            "@TextToNumber",
            "@TextToTime",
            "@Subset",
            "@Unique",
            "@Sort",
            "@Member",
            "@IsMember",
            "@Replace",
            "@Keywords",
            "@Compare",
            "@Round",
            "@Modulo",
            "@Power",
            "@Sum",
            "@Max",
            "@Min",
            "@Date",
            "@Time",
            "@Year",
            "@Weekday",
            "@Adjust",
            "@TimeMerge",
            "@BusinessDays",
            "@Name",
            "@ValidateInternetAddress",
            "@ProperCase",
            "@Elements",
            "@GetField",
            "@Abs",
            "@Abstract",
            "@AbstractSimple",
            "@Ascii",
            "@CheckFormulaSyntax",
            "@FloatEq",
            "@Narrow",
            "@OptimizeMailAddress",
            "@TimeToTextInZone",
            "@TimeZoneToText",
            "@Unique",
            "@Wide",
            "@Zone",
        ]);
        prop_oneof![
            (inside.clone(), operators, inside.clone())
                .prop_map(|(left, operator, right)| format!("({left} {operator} {right})")),
            (functions, prop::collection::vec(inside.clone(), 1..5))
                .prop_map(|(function, arguments)| format!("{function}({})", arguments.join("; "))),
            inside.clone().prop_map(|inside| format!("-({inside})")),
            inside.clone().prop_map(|inside| format!("!({inside})")),
            (inside.clone(), inside.clone()).prop_map(|(list, index)| format!("({list})[{index}]")),
            (inside.clone(), inside.clone())
                .prop_map(|(list, body)| format!("@Transform({list}; \"x\"; {body})")),
            (inside.clone(), inside).prop_map(|(value, after)| format!("@Do(x := {value}; {after})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_survived(source in "\\PC{0,60}") {
        run(&source)?;
    }

    #[test]
    fn any_mixture_is_survived(source in pieces()) {
        run(&source)?;
    }

    #[test]
    fn expressions_end_and_tell_what_they_read(source in expressions()) {
        prop_assert!(!matches!(Formula::compile(&source), Err(error) if error.to_string().contains("does not continue")), "{source}");
        run(&source)?;
    }
}
