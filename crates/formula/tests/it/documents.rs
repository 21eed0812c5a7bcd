//! Formulas and documents: fields, JSON, date-times in texts, selections, and what a formula tells about
//! itself.

use crate::support::{Document, check, compiled, environment, environment_at, error_of, value_for, value_of};
use scrinium_formula::{Environment, Formula, Responses, Value};
use serde_json::json;

#[test]
fn fields_are_read_in_any_case_and_once() {
    let document = Document::new(json!({ "Form": "Memo", "Subject": "Lunch" }));
    let formula = compiled(r#"t := FORM + form; @If(SUBJECT = "x"; 1; Subject + t + @GetField("subject"))"#);
    let value = formula.evaluate(&document, &environment()).unwrap();
    assert_eq!(value, Value::text("LunchMemoMemoLunch"));
    assert_eq!(document.asked.borrow().as_slice(), ["form", "subject"]);
}

#[test]
fn functions_read_fields_as_the_formula_does() {
    let document = Document::new(json!({ "From": "CN=Ann/O=Acme" }));
    let formula = compiled(r#"@Author + "|" + From + "|" + @GetField("Fr" + Missing + "om")"#);
    let value = formula.evaluate(&document, &environment()).unwrap();
    assert_eq!(value, Value::text("Ann/Acme|CN=Ann/O=Acme|CN=Ann/O=Acme"));
    assert_eq!(document.asked.borrow().as_slice(), ["from", "fromdomain", "missing"]);
    assert_eq!(value_of(r#"FIELD From := "Ben"; @Author"#), Value::text("Ben"));
}

#[test]
fn what_is_not_needed_is_not_read() {
    let document = Document::new(json!({ "Form": "Reply" }));
    assert!(
        !compiled(r#"SELECT Form = "Memo" & Status != "Closed""#).selects(&document, &environment()).unwrap()
    );
    assert_eq!(document.asked.borrow().as_slice(), ["form"]);
}

#[test]
fn a_missing_field_is_the_empty_text_and_false() {
    check(&[
        (r#"Missing = """#, "1"),
        ("@If(Missing; 1; 2)", "2"),
        ("!Missing", "1"),
        ("@IsNull(Missing)", "1"),
        (r#""<" + Missing + ">""#, r#""<>""#),
        ("DEFAULT Missing := 5; Missing + 1", "6"),
        ("FIELD Missing := 5; Missing + 1", "6"),
        ("@IsAvailable(Missing)", "0"),
        ("DEFAULT Missing := 5; @IsAvailable(Missing)", "1"),
    ]);
    assert!(
        error_of("Missing > 1").contains("'>' does not go with text on its left and a number on its right")
    );
}

#[test]
fn variables_hide_fields_only_once_they_have_a_value() {
    let fields = json!({ "Subject": " a  b " });
    assert_eq!(value_for(r"Subject := @Trim(Subject); Subject", fields.clone()), Value::text("a b"));
    assert_eq!(
        value_for(r#"@If(0; Subject := "x"; ""); @Trim(Subject)"#, fields.clone()),
        Value::text("a b")
    );
    assert_eq!(value_for(r#"Subject := "x"; @GetField("Subject")"#, fields.clone()), Value::text(" a  b "));
    assert_eq!(value_for(r#"n := "Subject"; @Length(@GetField(n))"#, fields.clone()), Value::number(6.0));
    assert_eq!(value_for(r#"DEFAULT Subject := "x"; Subject"#, fields), Value::text(" a  b "));
}

#[test]
fn json_becomes_values_and_values_json() {
    let cases = [
        (json!("text"), Some(Value::text("text")), json!("text")),
        (json!(1.5), Some(Value::number(1.5)), json!(1.5)),
        (json!(3), Some(Value::number(3.0)), json!(3)),
        (json!(true), Some(Value::number(1.0)), json!(1)),
        (json!([false, 2]), Some(Value::numbers(vec![0.0, 2.0])), json!([0, 2])),
        (json!(["a", "b"]), Some(Value::texts(vec!["a".into(), "b".into()])), json!(["a", "b"])),
        (json!(["a"]), Some(Value::text("a")), json!("a")),
        (
            json!(["a", 1.5, true]),
            Some(Value::texts(vec!["a".into(), "1.5".into(), "1".into()])),
            json!(["a", "1.5", "1"]),
        ),
        (json!([]), Some(Value::empty()), json!("")),
        (json!(null), None, json!(null)),
        (json!({ "a": 1 }), None, json!(null)),
        (json!([1, null]), None, json!(null)),
        (json!([[1]]), None, json!(null)),
    ];
    for (json, value, back) in cases {
        assert_eq!(Value::from_json(&json), value, "{json}");
        if let Some(value) = value {
            assert_eq!(value.to_json(), back, "{json}");
        }
    }
    assert_eq!(
        value_of("[2026-11-21]:[10:00]:[2026-11-21 10:00]").to_json(),
        json!(["2026-11-21", "10:00:00", "2026-11-21T10:00:00Z"])
    );
    let error = value_of("1 / 0").to_json();
    assert_eq!(error, json!({ "error": "line 1, column 3: '/': a number cannot be divided by 0" }));
    assert_eq!(value_of("1E300").to_json(), json!(1e300));
}

#[test]
fn texts_are_read_as_times_where_times_are_asked_for() {
    let posted = |text: &str, source: &str| value_for(source, json!({ "Posted": text }));
    let moment = "2026-11-21T23:30:00-02:00";
    assert_eq!(posted(moment, "@Day(Posted)"), Value::number(22.0));
    assert_eq!(posted(moment, "Posted > [2026-11-21]"), Value::truth(true));
    assert_eq!(posted(moment, "[2026-11-22] = Posted"), Value::truth(true));
    assert_eq!(posted(moment, "Posted - [2026-11-22 00:00]"), Value::number(5400.0));
    assert_eq!(posted(moment, "@Adjust(Posted; 0; 0; 1; 0; 0; 0) = [2026-11-23 01:30]"), Value::truth(true));
    assert_eq!(posted("2026-11-21", "@Date(Posted) = [2026-11-21]"), Value::truth(true));
    assert_eq!(posted("2026-11-21t10:00:00.25z", "@Second(Posted)"), Value::number(0.0));
    // Not a full date or date-time of RFC 3339: an error, and never a guess.
    for text in [
        "",
        "2026-11",
        "2026-11-21 10:00:00Z",
        "2026-11-21T10:00:00",
        "2026-11-21T10:00Z",
        "21.11.2026",
        " 2026-11-21",
        "2026-02-30",
        "2026-11-21T24:00:00Z",
        "2026-11-21T10:00:00+0100",
        "2026-11-21T10:00:00.Z",
    ] {
        assert!(posted(text, "@Year(Posted)").is_error(), "{text}");
        assert!(posted(text, "Posted < @Now").is_error(), "{text}");
    }
    // Two texts stay texts.
    assert_eq!(posted(moment, r#"Posted = "2026-11-22T01:30:00Z""#), Value::truth(false));
    assert_eq!(posted(moment, "Posted + \"!\""), Value::text(format!("{moment}!")));
    // Of a list, every element must be one.
    let list = json!({ "Days": ["2026-11-21", "2025-01-02"], "Mixed": ["2026-11-21", "soon"] });
    assert_eq!(value_for("@Year(Days)", list.clone()), Value::numbers(vec![2026.0, 2025.0]));
    assert!(value_for("@Year(Mixed)", list).is_error());
}

#[test]
fn days_and_clocks_are_those_of_the_time_zone() {
    let document = Document::new(json!({ "Posted": "2026-11-21T23:30:00Z" }));
    let evaluate =
        |source: &str, hours| compiled(source).evaluate(&document, &environment_at(hours)).unwrap();
    assert_eq!(evaluate("@Hour(Posted):@Day(Posted)", 0), Value::numbers(vec![23.0, 21.0]));
    assert_eq!(evaluate("@Hour(Posted):@Day(Posted)", 2), Value::numbers(vec![1.0, 22.0]));
    assert_eq!(evaluate("[2026-11-22 01:30] = Posted", 2), Value::truth(true));
    assert_eq!(evaluate("[2026-11-22 01:30] = Posted", 0), Value::truth(false));
    assert_eq!(evaluate("@Today", 15), evaluate("[2026-11-22]", 0));
    assert_eq!(evaluate("@Text(Posted)", 2), Value::text("2026-11-21T23:30:00Z"));
    assert_eq!(evaluate(r#"@Text(@TextToTime(Posted); "T1Z2")"#, 2), Value::text("2026-11-22 01:30+02:00"));
}

#[test]
fn a_date_is_its_whole_day() {
    check(&[
        ("@Now = @Today", "1"),
        ("@Now > @Today", "0"),
        ("@Now <= @Today", "1"),
        ("@Yesterday < @Now & @Tomorrow > @Now", "1"),
        ("@Now = [10:00]", "1"),
        ("@Now < [17:00]", "1"),
        ("@IsError([2026-11-21] < [17:00])", "1"),
        ("@Sort([2026-11-21 10:00]:[2026-11-21]:[10:00])", "[10:00]:[2026-11-21]:[2026-11-21 10:00]"),
        ("[2026-11-21] + 90", "[2026-11-21 00:01:30]"),
        ("90 + [10:00]", "[10:01:30]"),
        ("[2026-11-21 10:00] - 600", "[2026-11-21 09:50]"),
        ("([2026-11-21] - [2026-11-01]) / 86400", "20"),
    ]);
}

#[test]
fn a_formula_tells_what_it_depends_on() {
    let formula = compiled(
        r#"REM "names"; t := Subject; DEFAULT Kind := "x"; SELECT form = "Memo" & FORM != t & @IsAvailable(Body); u := 1; u; @GetField("Other")"#,
    );
    assert_eq!(formula.fields(), ["Subject", "Kind", "form", "Body", "Other"]);
    assert!(!formula.reads_any_field() && !formula.is_time_variant() && !formula.is_user_dependent());
    assert_eq!(formula.responses(), Responses::None);

    assert!(compiled("SELECT Owner = @UserName").is_user_dependent());
    assert!(compiled("@GetField(Name)").reads_any_field());
    assert_eq!(compiled("SELECT @IsResponseDoc").fields(), ["$REF"]);
    assert_eq!(compiled("@Author").fields(), ["From", "FromDomain", "$UpdatedBy"]);
    let formula = compiled(r#"@AbstractSimple("Body":"Notes")"#);
    assert!(formula.fields() == ["Body", "Notes"] && !formula.reads_any_field());
    assert!(compiled("@AbstractSimple(Names)").reads_any_field());
    assert_eq!(compiled(r#"SELECT Form = "Topic" | @AllChildren"#).responses(), Responses::Children);
    assert!(compiled("SELECT @AllDescendants | @AllChildren").uses_responses());
    assert_eq!(compiled("SELECT @AllDescendants | @AllChildren").responses(), Responses::Descendants);
    // Assigned before it is read, it is no field; assigned perhaps, it is.
    assert!(compiled("x := 1; x").fields().is_empty());
    assert_eq!(compiled(r#"@If(Form = ""; x := 1; ""); x"#).fields(), ["Form", "x"]);
    assert!(compiled("@For(n := 1; n < 3; n := n + 1; s := n)").fields().is_empty());
    assert!(compiled(r#"@Do(x := 1; @If(y := x; y; 2)); x : y"#).fields().is_empty());
    // An error in the argument before it leaves the assignment out.
    let formula = compiled("@Left(1 / 0; x := 2); x");
    assert_eq!(formula.fields(), ["x"]);
    let document = Document::new(json!({ "x": "kept" }));
    assert_eq!(formula.evaluate(&document, &environment()).unwrap(), Value::text("kept"));
}

#[test]
fn errors_pass_through_until_they_are_caught() {
    check(&[
        (r#"x := 1 / 0; y := x + 1; @IfError(y; "caught")"#, r#""caught""#),
        (r#"1 / 0; "goes on""#, r#""goes on""#),
        ("@IsError(@UpperCase(1 / 0))", "1"),
        ("@IsError(@If(1 / 0; 1; 2))", "1"),
        ("0 & 1 / 0", "0"),
        ("1 | 1 / 0", "1"),
        ("@Do(1 / 0; 3)", "3"),
        ("n := 0; @While(n < 2; n := n + 1; 1 / 0); n", "2"),
    ]);
}

#[test]
fn the_user_may_be_nobody() {
    assert!(error_of("@UserName").contains("does not run for a user"));
    let somebody = Environment { user_name: Some("CN=Ann/O=Acme".to_owned()), ..environment() };
    let value = compiled("@Name([CN]; @UserName)").evaluate(&Document::default(), &somebody).unwrap();
    assert_eq!(value, Value::text("Ann"));
}

#[test]
fn formulas_are_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    let formula = std::sync::Arc::new(compiled(r#"SELECT Form = "Memo""#));
    shared(&formula);
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let formula = std::sync::Arc::clone(&formula);
            std::thread::spawn(move || {
                let form = if number % 2 == 0 { "Memo" } else { "Reply" };
                formula.selects(&Document::new(json!({ "Form": form })), &environment()).unwrap()
            })
        })
        .collect();
    let selected: Vec<bool> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(selected, [true, false, true, false]);
}

#[test]
fn formulas_are_bounded() {
    let refused = |source: String| Formula::compile(&source).unwrap_err().to_string();
    let deep = refused(format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000)));
    assert!(deep.contains("more than 100 deep"), "{deep}");
    for nested in ["@If(1;", "-", "!", "x[", "x := ", "@Trim(", "(-", "@Do(x := "] {
        refused(nested.repeat(10_000));
    }
    assert!(refused(" ".repeat(70_000)).contains("more than 65536"));
    // As deep as is accepted, on half of the stack that threads have by default.
    let deepest = [
        format!("{}1{}", "(".repeat(99), ")".repeat(99)),
        format!("{}1{}", "@If(1; ".repeat(99), "; 2)".repeat(99)),
        format!("{}1{}", "1 + (2 * -@Abs(1 = ".repeat(24), "))".repeat(24)),
        format!("{}1{}", "@Transform(1; \"x\"; ".repeat(99), ")".repeat(99)),
        format!("{}1{}", "@Sort(1; [CUSTOMSORT]; ".repeat(99), ")".repeat(99)),
        format!("{}1{}", "@For(1; 0; 1; ".repeat(99), ")".repeat(99)),
        format!("{}1{}", "x[".repeat(99), "]".repeat(99)),
        format!("{}1", "-".repeat(99)),
        format!("{}1", "x := ".repeat(99)),
        format!("{}1{}", "@Do(1 & (x := @IfError(".repeat(24), "; 2)))".repeat(24)),
    ];
    let outcome = std::thread::Builder::new().stack_size(1024 * 1024).spawn(move || {
        for source in deepest {
            let formula = compiled(&source);
            formula.evaluate(&Document::default(), &environment()).unwrap();
            drop(formula.clone());
        }
    });
    outcome.unwrap().join().unwrap();
    // Long chains are not deep.
    let long = vec!["1"; 20_000];
    assert_eq!(
        compiled(&format!("@Elements({})", long.join(":"))).evaluate(&Document::default(), &environment()),
        Ok(Value::number(20_000.0))
    );
    for operator in [" + ", " | ", " = "] {
        compiled(&long[..10_000].join(operator)).evaluate(&Document::default(), &environment()).unwrap();
    }
}
