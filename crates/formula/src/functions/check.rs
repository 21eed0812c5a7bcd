//! `@CheckFormulaSyntax`.

use smol_str::format_smolstr;

use super::logic::native;
use super::{Arguments, Function};
use crate::compile;
use crate::error::FormulaError;
use crate::machine::{Machine, MachineResult};
use crate::value::{Text, Value};

pub(super) const FUNCTIONS: &[Function] = &[native(
    "@CheckFormulaSyntax",
    check,
    "formula",
    "\"1\" if a text is a formula that can be compiled; else what is wrong, and as texts the line, the column and the \
     place in the text, counted from 1, and the length and the word that are found there.",
    &[
        (r#"@CheckFormulaSyntax({SELECT Form = "Memo"})"#, r#""1""#),
        ("@Subset(@CheckFormulaSyntax({x := 1; @Lefft(x; 2)}); -5)", r#""1":"9":"9":"6":"@Lefft""#),
    ],
)];

/// What compiling costs in steps, besides those for each byte.
const STEPS: usize = 5000;
const STEPS_PER_BYTE: usize = 4;

fn check(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let source = arguments.text(0)?;
    machine.charge(STEPS.saturating_add(source.len().saturating_mul(STEPS_PER_BYTE)))?;
    Ok(match compile::check(source) {
        Ok(()) => Value::text("1"),
        Err(error) => Value::texts(described(source, &error)),
    })
}

fn described(source: &str, error: &FormulaError) -> Vec<Text> {
    let at = error.offset(source);
    let word = word(source.get(at..).unwrap_or(""));
    let place = source.get(..at).map_or(0, |before| before.chars().count()) + 1;
    let message = format_smolstr!("{}; {}", error.message, error.advice);
    let numbers = [
        format_smolstr!("{}", error.line),
        format_smolstr!("{}", error.column),
        format_smolstr!("{place}"),
        format_smolstr!("{}", word.chars().count()),
    ];
    std::iter::once(message).chain(numbers).chain([Text::new(word)]).collect()
}

/// What stands at the beginning of a text: a name, or a character.
fn word(text: &str) -> &str {
    let inside = |character: char| character.is_alphanumeric() || matches!(character, '@' | '_' | '$');
    let end = text.find(|character| !inside(character)).unwrap_or(text.len());
    let first = text.chars().next().map_or(0, char::len_utf8);
    text.get(..end.max(first)).unwrap_or("")
}
