//! `scrinium formula …`: formulas tried out without a server, and the language looked up.

mod arguments;
mod document;
mod functions;
mod source;

use std::fmt::Write;

use jiff::tz::TimeZone;
use scrinium_clock::Clock;
use scrinium_formula::{
    Environment, ErrorValue, EvaluationError, Formula, FormulaError, Responses, Value as FormulaValue,
};
use serde_json::{Value, json};

use super::{Failure, Terminal};
use document::JsonDocument;
use source::INPUT;

pub use arguments::{
    FormulaCheckArguments, FormulaCommand, FormulaEvalArguments, FormulaPurpose, FormulaText,
};

pub(super) fn formula(command: &FormulaCommand, terminal: &Terminal) -> Result<(), Failure> {
    match command {
        FormulaCommand::Check(arguments) => check(arguments, terminal),
        FormulaCommand::Eval(arguments) => evaluate(arguments, terminal),
        FormulaCommand::List { pattern } => functions::list(pattern.as_deref(), terminal),
        FormulaCommand::Help { function } => functions::help(function, terminal),
    }
}

fn check(arguments: &FormulaCheckArguments, terminal: &Terminal) -> Result<(), Failure> {
    let source = source::formula(&arguments.text)?;
    let formula = compile(&source, terminal)?;
    let responses = match formula.responses() {
        Responses::None => "none",
        Responses::Children => "children",
        Responses::Descendants => "descendants",
    };
    let data = json!({
        "ok": true,
        "bytes": source.len(),
        "selection": formula.has_selection(),
        "fields": formula.fields(),
        "any_field": formula.reads_any_field(),
        "time_variant": formula.is_time_variant(),
        "user_dependent": formula.is_user_dependent(),
        "responses": responses,
    });
    terminal.data(&told(&formula), &data)
}

/// What a formula depends on, in sentences.
fn told(formula: &Formula) -> String {
    let kind = if formula.has_selection() { "a selection" } else { "a value" };
    let mut text = format!("fine: {kind}, {} bytes\n", formula.source().len());
    let fields = formula.fields().join(", ");
    // Writing into a text cannot fail.
    let _ = match (formula.reads_any_field(), fields.is_empty()) {
        (false, true) => writeln!(text, "reads no field"),
        (false, false) => writeln!(text, "reads {fields}"),
        (true, true) => writeln!(text, "reads all fields: it finds their names while it runs"),
        (true, false) => {
            writeln!(text, "reads all fields: {fields}, and others whose names it finds while it runs")
        }
    };
    if formula.is_time_variant() {
        text.push_str("depends on the time: a view that uses it is out of date as soon as it is built\n");
    }
    if formula.is_user_dependent() {
        text.push_str("depends on who asks: not for views, which are the same for everybody\n");
    }
    text.push_str(match formula.responses() {
        Responses::None => "",
        Responses::Children => "adds the responses to what it selects\n",
        Responses::Descendants => "adds the responses to what it selects, and the responses to those\n",
    });
    text
}

fn compile(source: &str, terminal: &Terminal) -> Result<Formula, Failure> {
    match Formula::compile(source) {
        Ok(formula) => Ok(formula),
        Err(error) => {
            if terminal.wants_json() {
                terminal.data("", &json!({"ok": false, "problems": [problem(&error)]}))?;
            }
            let place = source::place(source, (error.line, error.column), terminal);
            Err(Failure::Work(format!("{error}{place}")))
        }
    }
}

fn problem(error: &FormulaError) -> Value {
    json!({
        "line": error.line,
        "column": error.column,
        "kind": error.kind.name(),
        "message": error.message,
        "advice": error.advice,
    })
}

fn evaluate(arguments: &FormulaEvalArguments, terminal: &Terminal) -> Result<(), Failure> {
    let from_input = arguments.text.formula.as_deref() == Some(INPUT);
    let document = match &arguments.document {
        None => JsonDocument::default(),
        Some(path) if path.as_os_str() == INPUT && from_input => {
            return Err(Failure::Use("formula and document cannot both be standard input".to_owned()));
        }
        Some(path) if path.as_os_str() == INPUT => {
            JsonDocument::read(&source::input()?).map_err(Failure::Work)?
        }
        Some(path) => JsonDocument::read(&source::file(path)?)
            .map_err(|reason| Failure::Work(format!("{}: {reason}", path.display())))?,
    };
    let source = source::formula(&arguments.text)?;
    let formula = compile(&source, terminal)?;
    let environment = Environment {
        user_name: arguments.user.clone(),
        ..Environment::new(arguments.now.unwrap_or_else(|| Clock::system().timestamp()), TimeZone::UTC)
    };
    let value = formula.evaluate(&document, &environment).or_else(|error| stopped(&error, terminal))?;
    let selects = match arguments.purpose {
        Some(purpose) => purpose == FormulaPurpose::Selection,
        None => formula.has_selection(),
    };
    let selected = selects.then(|| formula.selects(&document, &environment)).transpose();
    let selected = selected.or_else(|error| stopped(&error, terminal))?;
    match (selected, value) {
        (Some(true), _) => terminal.data("selected\n", &json!(true)),
        (_, FormulaValue::Error(error)) => Err(came_to_error(&error, &source, terminal)?),
        (Some(false), _) => terminal.data("not selected\n", &json!(false)),
        (None, value) => terminal.data(&lines(&value), &value.to_json()),
    }
}

/// An evaluation that went over a limit.
fn stopped<T>(error: &EvaluationError, terminal: &Terminal) -> Result<T, Failure> {
    if terminal.wants_json() {
        terminal.data("", &json!({"error": error.to_string()}))?;
    }
    Err(Failure::work(error))
}

/// The error value that a formula came to, with its place.
fn came_to_error(error: &ErrorValue, source: &str, terminal: &Terminal) -> Result<Failure, Failure> {
    if terminal.wants_json() {
        terminal.data("", &json!({"error": error.to_string()}))?;
    }
    let place = error.position().map_or_else(String::new, |place| source::place(source, place, terminal));
    Ok(Failure::Work(format!("{error}{place}")))
}

/// An element a line.
fn lines(value: &FormulaValue) -> String {
    value.to_texts().iter().flat_map(|text| [text.as_str(), "\n"]).collect()
}
