//! The reference of the language, made from the table of functions: as a page, and function by function.

use std::fmt::Write;

use crate::functions::{self, Category, Function, Refusal, flags};
use crate::machine::{MAX_ELEMENTS, MAX_STEPS, MAX_TEXT_BYTES};
use crate::parser::{MAX_DEPTH, MAX_SOURCE_BYTES};

const INTRODUCTION: &str = include_str!("reference.md");

/// What the reference says of a function of the language.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FunctionEntry {
    /// With its `@`, in its usual spelling.
    pub name: &'static str,
    /// The part of the reference in which it stands.
    pub category: &'static str,
    /// How it is written: `@Left(text; count or text)`. What stands in brackets may be left out, what has dots
    /// behind it repeated.
    pub usage: String,
    /// What it does, in sentences.
    pub help: &'static str,
    /// On what its answer depends besides its arguments, in sentences; most often on nothing.
    pub notes: Vec<&'static str>,
    /// Formulas, and formulas that come to the same.
    pub examples: &'static [(&'static str, &'static str)],
}

/// What the reference says of a function of the original that is not available.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RefusedEntry {
    /// With its `@`, in its usual spelling.
    pub name: &'static str,
    /// Why, as the end of a sentence.
    pub reason: &'static str,
    /// What to do instead.
    pub advice: &'static str,
}

/// What is known of a name that may be that of a function.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FunctionName {
    /// There is such a function.
    Known(FunctionEntry),
    /// The original has such a function.
    Refused(RefusedEntry),
    /// Nothing; and the function whose name is most like it, if one is.
    Unknown(Option<&'static str>),
}

/// The functions of the language, by their category and then by their name.
pub fn functions() -> impl Iterator<Item = FunctionEntry> {
    Category::ALL.into_iter().flat_map(in_category).map(entry)
}

/// The functions of the original that are not available, by the reason why.
pub fn refused_functions() -> impl Iterator<Item = RefusedEntry> {
    functions::all_refused().map(|(name, refusal)| refused_entry(name, refusal))
}

/// Looks a function up by its name, in any case.
#[must_use]
pub fn function_named(name: &str) -> FunctionName {
    match (functions::find(name), functions::refused(name)) {
        (Some(function), _) => FunctionName::Known(entry(function)),
        (None, Some((name, refusal))) => FunctionName::Refused(refused_entry(name, refusal)),
        (None, None) => FunctionName::Unknown(functions::similar(name)),
    }
}

fn in_category(category: Category) -> Vec<&'static Function> {
    let mut functions: Vec<_> = functions::all().filter(|function| function.category == category).collect();
    functions.sort_by_key(|function| function.name);
    functions
}

fn entry(function: &'static Function) -> FunctionEntry {
    FunctionEntry {
        name: function.name,
        category: function.category.title(),
        usage: function.usage(),
        help: function.help,
        notes: notes(function.flags).collect(),
        examples: function.examples,
    }
}

const fn refused_entry(name: &'static str, refusal: Refusal) -> RefusedEntry {
    RefusedEntry { name, reason: refusal.reason(), advice: refusal.advice() }
}

/// The reference of the language as a page of Markdown.
#[must_use]
pub fn reference_markdown() -> String {
    let mut page = String::from("# Formula reference\n\n");
    page.push_str(INTRODUCTION);
    let limits = format!(
        "\n## Limits\n\n| What | At most |\n|---|---|\n\
         | a formula | {MAX_SOURCE_BYTES} bytes |\n\
         | expressions inside each other | {MAX_DEPTH} |\n\
         | steps of one evaluation: about one for each operation, each element and 16 bytes of text | {MAX_STEPS} |\n\
         | a text that a formula makes | {MAX_TEXT_BYTES} bytes |\n\
         | a list that a formula makes | {MAX_ELEMENTS} elements |\n\n\
         An evaluation that goes over one of the last three is stopped with an error that the formula cannot catch.\n"
    );
    page.push_str(&limits);
    for category in Category::ALL {
        section(&mut page, category);
    }
    refused(&mut page);
    page
}

fn section(page: &mut String, category: Category) {
    // Writing into a text cannot fail.
    let _ = writeln!(page, "\n## {}", category.title());
    for function in in_category(category).into_iter().map(entry) {
        let _ = write!(page, "\n### {}\n\n`{}`\n\n{}", function.name, function.usage, function.help);
        for note in function.notes {
            let _ = write!(page, " *{note}*");
        }
        page.push_str("\n\n```\n");
        for (formula, result) in function.examples {
            let _ = writeln!(page, "{formula}  →  {result}");
        }
        page.push_str("```\n");
    }
}

fn notes(of: u16) -> impl Iterator<Item = &'static str> {
    let notes = [
        (
            flags::TIME_VARIANT,
            "Depends on the time: a view that uses it is out of date as soon as it is built.",
        ),
        (flags::FORMAT, "With the formats D1 and S3 it depends on the time, as @Today does."),
        (flags::NOW_IF_NOT_GIVEN, "Without a date-time it depends on the time, as @Now does."),
        (flags::USER, "Depends on who asks: not for views, which are the same for everybody."),
    ];
    notes.into_iter().filter(move |(flag, _)| of & flag != 0).map(|(_, note)| note)
}

fn refused(page: &mut String) {
    page.push_str(
        "\n## Functions of the original that are not available\n\n\
         A formula that uses one of these is refused when it is compiled, with the reason and what to do instead.\n",
    );
    let mut last = None;
    for (name, refusal) in functions::all_refused() {
        if last == Some(refusal) {
            let _ = write!(page, ", {name}");
            continue;
        }
        if last.is_some() {
            page.push_str(".\n");
        }
        let _ = write!(page, "\n**{}** ({}): {name}", refusal.title(), refusal.advice());
        last = Some(refusal);
    }
    page.push_str(".\n");
}
