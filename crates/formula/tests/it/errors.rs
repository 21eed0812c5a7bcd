//! What is wrong, where, and what to do: the messages, word for word, in `golden/errors.txt`.

use std::fmt::Write;
use std::path::Path;

use crate::support::{Document, environment};
use scrinium_formula::{Formula, Value};

/// Formulas that are refused, or come to an error.
const WRONG: &[&str] = &[
    // Grammar.
    "",
    "REM \"nothing else\"",
    "Subject +",
    "Subject Body",
    "(1 + 2",
    "1 + 2)",
    "x[1",
    "x[1][2]",
    "1]",
    "\"open",
    "{open",
    "[open",
    "x :=",
    "1 := 2",
    "FIELD := 1",
    "FIELD x = 1",
    "DEFAULT \"x\" := 1",
    "@Left(\"a\", 2)",
    "@Left(\"a\"; 2",
    "@Left(\"a\" 2)",
    "@If(1; ; 2)",
    "Subject = 'x'",
    "# comment",
    "@ Left",
    "1 + SELECT 2",
    "REM no text",
    "REM;",
    "[2026-11-23 - 2026-11-21]",
    "[2026-11-21 - 10:00]",
    "1E999",
    "[31/31/2026]",
    "[yesterday evening]",
    "SELECT Form = \"Memo\" &\n    Status ! \"Closed\"",
    "ENVIRONMENT Last := 1",
    // Functions.
    "@Lefft(\"a\"; 1)",
    "@Frobnicate",
    "@If(1; 2)",
    "@If(1; 2; 3; 4)",
    "@Left(\"a\")",
    "@Now(1)",
    "@IsAvailable(\"Subject\")",
    "@Set(Name; 1)",
    "x := 1;\ny := 2;\n  @DbLookup(\"\"; \"\"; \"\"; \"\")",
    "@Prompt([Ok]; \"Hello\"; \"there\")",
    "@DeleteDocument",
    "@DocNumber",
    "@DocChildren",
    "@IsCategory",
    "@MailSend",
    "FIELD Status := @DeleteField",
    "@Environment(\"Last\")",
    "@GetProfileField(\"Settings\"; \"Colour\")",
    "@Accessed",
    "@NoteID",
    "@Password(\"secret\")",
    "@Eval(\"1\")",
    // Values.
    "\"a\" + 1",
    "1 = \"1\"",
    "\"a\" * \"b\"",
    "[2026-11-21] + [2026-11-21]",
    "[2026-11-21] = 1",
    "\"soon\" < [2026-11-21]",
    "-\"a\"",
    "!\"a\"",
    "@If(\"a\"; 1; 2)",
    "SELECT \"a\"",
    "1 & \"a\"",
    "1 : \"a\"",
    "(1:2)[3]",
    "(1:2)[\"a\"]",
    "1 / 0",
    "1E308 * 10",
    "x := 1;\nx +\n  @UpperCase(x)",
    "@Left(1; 1)",
    "@Left(\"a\"; [10:00])",
    "@Repeat(\"a\"; -1)",
    "@TextToTime(\"To\" + \"day\" + Nothing)",
    "@Char(-1)",
    "@Subset(1:2; 0)",
    "@Sqrt(-4)",
    "@Date(2026; 13; 1)",
    "@Year(\"no date\")",
    "@TextToNumber(\"abc\")",
    "@TextToTime(\"soon\")",
    "@Text(1; \"Q\")",
    "@Text([2026-11-21]; \"D9\")",
    "@Sort(1:2; [SIDEWAYS])",
    "@Name([XX]; \"Ann\")",
    "@Member(1; \"a\")",
    "@TimeToTextInZone(@Now; \"CET\")",
    "@TimeZoneToText(\"Z=0\"; \"X\")",
    "@Abstract([SORTCHUNKS]; 10; \"\"; \"Body\")",
    "@Abstract([TRYFIT]; 10; \"eleven char\"; \"Body\")",
    "@UserName",
    "@Error",
];

fn outcome(source: &str) -> String {
    match Formula::compile(source) {
        Err(error) => format!("refused ({:?}): {error}", error.kind),
        Ok(formula) => match formula.evaluate(&Document::default(), &environment()) {
            Ok(Value::Error(error)) => format!("error value: {error}"),
            other => panic!("{source} came to {other:?}"),
        },
    }
}

#[test]
fn messages_say_what_where_and_what_to_do() {
    let mut found = String::new();
    for source in WRONG {
        let _ = writeln!(found, "{}\n    {}", source.replace('\n', "\n⏎ "), outcome(source));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/errors.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    for (found, golden) in found.lines().zip(golden.lines()) {
        assert_eq!(found, golden, "run with UPDATE=1 if the new message is better");
    }
    assert_eq!(found.lines().count(), golden.lines().count());
}
