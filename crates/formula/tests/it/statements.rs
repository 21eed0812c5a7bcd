//! The rules of statements, of conditions and of loops, one test each.

use crate::support::{Document, check, compiled, environment, error_of, value_for};
use scrinium_formula::{EvaluationError, Formula, FormulaErrorKind, Value};
use serde_json::json;

fn selects(source: &str, fields: serde_json::Value) -> bool {
    compiled(source).selects(&Document::new(fields), &environment()).unwrap()
}

#[test]
fn semicolons_separate_statements_and_the_last_is_the_value() {
    check(&[
        ("1; 2; 3", "3"),
        ("1;; 2;", "2"),
        ("x := 2; x * 3", "6"),
        ("1 / 0; 5", "5"),
        (" \n 7 \n ", "7"),
    ]);
}

#[test]
fn case_counts_in_texts_only() {
    check(&[
        (r#"Total := 2; tOTAL + TOTAL"#, "4"),
        (r#"@uPPERcASE("aB")"#, r#""AB""#),
        (r#"@name([cn]; "CN=Ann/O=Acme")"#, r#""Ann""#),
        (r#"select 1"#, "1"),
        (r#"rem "a remark"; field X := 5; x"#, "5"),
        (r#""a" = "A""#, "0"),
    ]);
}

#[test]
fn constants_are_texts_numbers_date_times_and_keywords() {
    check(&[
        (r#"{say "yes"}"#, r#""say \"yes\"""#),
        (r#"{a\b}"#, r#""a\\b""#),
        (".5 + 1.5E1 + 15E-1", "17"),
        ("[1-1-90]", "[1990-01-01]"),
        ("[12/31/49]", "[2049-12-31]"),
        ("[12/31/1950 5 PM]", "[1950-12-31 17:00]"),
        ("[2026-11-21T10:00:00+01:00]", "[2026-11-21T09:00:00Z]"),
        (r#"[CN] = "[CN]""#, "1"),
    ]);
}

#[test]
fn an_assignment_gives_a_temporary_variable_a_value() {
    check(&[
        ("x := 1; x := x + 1; x", "2"),
        ("x := y := 3; x + y", "6"),
        ("@If(x := 2; x; 0)", "2"),
        ("1 + (x := 4) + x", "9"),
        (r#"x := 1; x := "text"; x"#, r#""text""#),
        ("x := 5", "5"),
        // It hides no field for functions that read the document.
        (r#"Subject := "x"; @GetField("Subject")"#, r#""""#),
    ]);
}

#[test]
fn keywords_are_words_of_their_own() {
    check(&[
        ("FIELDx := 1; FIELDx", "1"),
        ("SELECTED := 2; SELECTED", "2"),
        ("REMINDER := 3; REMINDER", "3"),
        ("REM; 1", "1"),
        ("rem ; rem; 2; REM", "2"),
        ("1; REM", "1"),
        ("REM \"\"; REM {}; REM {with \"quotes\"; and a semicolon}; 3", "3"),
        ("REM {two\nlines};\nREM;\n4", "4"),
    ]);
    for source in ["FIELD := 1", "FIELD x = 1", "SELECT := 1", "1 + SELECT 2", "x := FIELD y"] {
        assert_eq!(Formula::compile(source).unwrap_err().kind, FormulaErrorKind::Syntax, "{source}");
    }
}

#[test]
fn field_gives_a_field_a_value_for_the_rest_of_the_evaluation() {
    let document = || json!({ "Subject": "old", "Count": 2 });
    let cases = [
        (r#"FIELD Subject := "new"; Subject"#, "new"),
        (r#"FIELD Subject := "new"; @GetField("Sub" + "ject")"#, "new"),
        (r#"FIELD Subject := Subject + "er"; Subject"#, "older"),
        (r#"FIELD Other := Subject; Other"#, "old"),
        (r#"x := Subject; FIELD Subject := "new"; x + Subject"#, "oldnew"),
        (r#"@If(Count = 9; @SetField("Subject"; "new"); ""); Subject"#, "old"),
        (r#"FIELD Other := 1; @If(@IsAvailable(Other); "there"; "missing")"#, "there"),
    ];
    for (source, expected) in cases {
        assert_eq!(value_for(source, document()), Value::text(expected), "{source}");
    }
    // The next evaluation sees the document as it is.
    let (formula, document) = (compiled(r#"FIELD Subject := "new"; Subject"#), Document::new(document()));
    formula.evaluate(&document, &environment()).unwrap();
    assert_eq!(document.json["Subject"], "old");
}

#[test]
fn default_gives_a_field_a_value_only_where_it_is_missing() {
    let document = || json!({ "Subject": "old", "Empty": "" });
    let cases = [
        (r#"DEFAULT Subject := "x"; Subject"#, "old"),
        (r#"DEFAULT Missing := "x"; Missing"#, "x"),
        (r#"DEFAULT Empty := "x"; Empty"#, ""),
        (r#"DEFAULT Missing := "x"; DEFAULT Missing := "y"; Missing"#, "x"),
        (r#"FIELD Missing := "f"; DEFAULT Missing := "x"; Missing"#, "f"),
        (r#"DEFAULT Subject := 1 / 0; Subject"#, "old"),
    ];
    for (source, expected) in cases {
        assert_eq!(value_for(source, document()), Value::text(expected), "{source}");
    }
}

#[test]
fn select_selects_and_the_last_one_decides() {
    let memo = || json!({ "Form": "Memo", "Size": 10 });
    assert!(selects("SELECT @All", memo()));
    assert!(selects(r#"SELECT Form = "Memo":"Reply""#, memo()));
    assert!(!selects(r#"SELECT Form = "memo""#, memo()));
    assert!(selects(r#"SELECT Form = "Memo"; FIELD Size := 0; Size"#, memo()), "not the last value");
    assert!(!selects(r#"SELECT Size > "x""#, memo()), "an error does not select");
    assert!(!selects(r"SELECT @All; SELECT Size > Form", memo()));
    assert!(selects(r"SELECT 0; SELECT Size = 10", memo()));
    assert!(selects(r"@If(Size = 10; @Return(1); 0); SELECT 0", memo()), "it was not reached");
    assert!(selects(r#"SELECT Form = "Memo" | Size > "x""#, memo()), "what cannot matter is not evaluated");
    let told = |source: &str| compiled(source).has_selection();
    assert!(told("x := 1; SELECT x") && !told("Form = \"Memo\""));
}

#[test]
fn without_select_the_last_value_decides() {
    let memo = || json!({ "Form": "Memo", "Size": 10 });
    assert!(selects(r#"Form = "Memo" & Size > 5"#, memo()));
    assert!(selects("2", memo()) && selects("0:1", memo()));
    assert!(!selects("0", memo()) && !selects(r#""""#, memo()) && !selects(r#""1""#, memo()));
}

#[test]
fn rem_is_a_remark_wherever_a_statement_may_stand() {
    check(&[
        (r#"REM "first; 1 / 0"; 2"#, "2"),
        ("2; REM {last}", "2"),
        (r#"x := 1; REM "between"; REM {a "quoted" word}; x"#, "1"),
    ]);
    assert_eq!(Formula::compile("REM plain").unwrap_err().kind, FormulaErrorKind::Syntax);
    assert_eq!(Formula::compile("REM {nothing else}").unwrap_err().kind, FormulaErrorKind::Syntax);
}

#[test]
fn environment_is_refused() {
    let error = Formula::compile("x := 1;\nENVIRONMENT Last := x").unwrap_err();
    assert_eq!((error.kind, error.line, error.column), (FormulaErrorKind::NotPermitted, 2, 1));
    assert!(error.message.contains("settings of the machine"), "{error}");
}

#[test]
fn only_the_chosen_branch_is_evaluated() {
    check(&[
        ("@If(1; 2; 1 / 0)", "2"),
        ("@If(0; 1 / 0; 1; 3; 1 / 0)", "3"),
        ("@If(0:1; 4; 5)", "4"),
        ("@If(Missing; 4; 5)", "5"),
        ("@Select(2; 1 / 0; 7; 1 / 0)", "7"),
        ("@IfError(8; 1 / 0)", "8"),
        ("1 | 1 / 0", "1"),
        ("0 & 1 / 0", "0"),
        ("x := 1; @If(1; x := 2; x := 3); x", "2"),
    ]);
    assert!(error_of(r#"@If("yes"; 1; 2)"#).contains("needs true or false"));
}

#[test]
fn loops_run_as_often_as_their_condition_holds() {
    check(&[
        ("n := 9; @While(n < 3; n := n + 1); n", "9"),
        ("n := 0; @While(n < 3; n := n + 1); n", "3"),
        ("n := 9; @DoWhile(n := n + 1; n < 3); n", "10"),
        ("n := 0; @DoWhile(n := n + 1; n < 3); n", "3"),
        ("s := 0; @For(n := 1; n <= 3; n := n + 1; s := s + n); s : n", "6:4"),
        ("s := 0; @For(n := 1; n > 3; n := n + 1; s := s + n); s : n", "0:1"),
        ("s := 0; @For(n := 0; n < 3; n := n + 1; @For(m := 0; m < 4; m := m + 1; s := s + 1)); s", "12"),
        ("@While(0; 1)", "1"),
        // What comes to an error in the body does not end the loop; in the condition it does.
        ("n := 0; @While(n < 3; 1 / 0; n := n + 1); n", "3"),
        ("n := 0; @IsError(@While(n < 1 / 0; n := n + 1))", "1"),
        ("n := 0; @While(n < 10; n := n + 1; @If(n = 4; @Return(n); 0)); 99", "4"),
    ]);
}

fn stopped(source: &str) -> EvaluationError {
    compiled(source).evaluate(&Document::default(), &environment()).unwrap_err()
}

#[test]
fn what_does_not_end_is_stopped() {
    for source in [
        "@While(1; 1)",
        "@DoWhile(1; 1)",
        "@For(n := 1; n > 0; n := n + 1; n)",
        "@While(1; @For(n := 0; n < 10; n := n + 1; n))",
        "@While(1; 1 / 0)",
        r#"b := @Repeat("a"; 100000); @While(1; @Contains(b; "b"))"#,
        r#"@Matches(@Repeat("a"; 100000); @Repeat("*a"; 10000))"#,
        r#"t := @Repeat("1+"; 30000) + "1"; @While(1; @CheckFormulaSyntax(t))"#,
        r#"t := @Repeat("a,  "; 100000); @While(1; @Abstract([RULE1]; 10; ""; t))"#,
    ] {
        assert!(matches!(stopped(source), EvaluationError::TooMuchWork { .. }), "{source}");
    }
    // The formula itself cannot catch it.
    assert!(matches!(stopped("@IfError(@While(1; 1); 1)"), EvaluationError::TooMuchWork { .. }));
}

#[test]
fn texts_and_lists_are_bounded() {
    assert!(matches!(stopped(r#"@Repeat("x"; 100000000)"#), EvaluationError::TextTooLong { .. }));
    assert!(matches!(
        stopped(r#"l := @Explode(@Repeat("a "; 1000)); l *+ l"#),
        EvaluationError::ListTooLong { .. }
    ));
    assert!(matches!(
        stopped(r#"t := "x"; @While(1; t := t + t)"#),
        EvaluationError::TextTooLong { .. } | EvaluationError::TooMuchWork { .. }
    ));
    assert!(matches!(
        stopped(r#"@IfError(@Repeat("x"; 100000000); 1)"#),
        EvaluationError::TextTooLong { .. }
    ));
}

#[test]
fn a_formula_depends_on_the_time_if_anything_in_it_does() {
    let variant = |source: &str| compiled(source).is_time_variant();
    for word in ["@Now", "@Today", "@Tomorrow", "@Yesterday", "@Zone"] {
        assert!(variant(&format!("SELECT Due < {word}")), "{word}");
        // It counts wherever it stands, also where it is never reached.
        for source in [
            format!("@If(0; {word}; 1)"),
            format!("0 & {}({word})", "@IsTime"),
            format!("@Return(1); {word}"),
            format!("x := {word}; 1"),
            format!("FIELD x := {word}; 1"),
            format!("DEFAULT x := {word}; 1"),
            format!("@Transform(1:2; \"n\"; {word})"),
            format!("@While(0; {word}); 1"),
            format!("(1:2)[@IsTime({word})]"),
            format!("@IfError(1; {})", word.to_lowercase()),
        ] {
            assert!(variant(&source), "{source}");
        }
    }
    assert!(variant(r#"@Text(Posted; "S3")"#) && variant("@Text(Posted; Format)"));
    assert!(variant(r#"@TimeToTextInZone(Posted; "Z=5$DO=0"; "D1")"#));
    assert!(variant(r#"@Year(@TextToTime("today"))"#));
    for source in [
        "SELECT Due < [2026-11-21]",
        "@Created + @Modified",
        r#"@Text(Posted; "D0S0")"#,
        r#"@TimeToTextInZone(Posted; "Z=5$DO=0")"#,
        "@Zone(Posted)",
        "@Year(@TextToTime(Posted))",
        r#""@Now""#,
        "Now := 1; Now",
        "REM {@Now}; 1",
    ] {
        assert!(!variant(source), "{source}");
    }
    // What tells when a document was read is refused, rather than out of date.
    assert_eq!(Formula::compile("@Accessed").unwrap_err().kind, FormulaErrorKind::NotPermitted);
}
