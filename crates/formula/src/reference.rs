//! The reference page of the language, made from the table of functions.

use std::fmt::Write;

use crate::functions::{self, Category, Function, flags};
use crate::machine::{MAX_ELEMENTS, MAX_STEPS, MAX_TEXT_BYTES};
use crate::parser::{MAX_DEPTH, MAX_SOURCE_BYTES};

const INTRODUCTION: &str = include_str!("reference.md");

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
    let mut functions: Vec<&Function> =
        functions::all().filter(|function| function.category == category).collect();
    functions.sort_by_key(|function| function.name);
    for function in functions {
        let _ = write!(page, "\n### {}\n\n`{}`\n\n{}", function.name, function.usage(), function.help);
        for note in notes(function.flags) {
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
