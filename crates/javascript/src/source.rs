//! The source of a function: the forms in which it may come, and places in it.

use std::fmt;

use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Error, Result, Value};

use crate::error::ScriptError;
use crate::modules;

/// The name of a function's source in the engine; a module's is its path.
const NAME: &str = "function";

/// Makes an expression of what follows: sources begin by `function`, which would be a statement.
const HEAD: &str = "0,";

/// Functions without a name in a source that are tried as the one that is meant.
const CANDIDATES_MAX: usize = 16;

/// How sources are evaluated: in sloppy mode, as in CouchDB, under this name.
pub(crate) fn options(name: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.backtrace_barrier = true;
    options.filename = Some(name.to_owned());
    options
}

/// Refuses what the engine cannot even be given.
pub(crate) fn check(source: &str) -> std::result::Result<(), ScriptError> {
    let Some((before, _)) = source.split_once('\0') else { return Ok(()) };
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).saturating_add(1);
    Err(ScriptError::Syntax {
        line: count(before.matches('\n').count()),
        column: count(before.chars().rev().take_while(|letter| *letter != '\n').count()),
        message: "a character of code 0".to_owned(),
    })
}

/// The value of a source. It is an expression, or, since CouchDB takes those too, statements of which the
/// last is an expression or a function without a name.
pub(crate) fn evaluate<'js>(ctx: &Ctx<'js>, source: &str) -> Result<Value<'js>> {
    let functions = source.rmatch_indices("function").filter_map(|(place, _)| source.split_at_checked(place));
    let unnamed = functions.filter(|(_, function)| {
        function.strip_prefix("function").is_some_and(|rest| rest.trim_start().starts_with('('))
    });
    let forms = [format!("{HEAD}{source}"), source.to_owned()]
        .into_iter()
        .chain(unnamed.take(CANDIDATES_MAX).map(|(before, function)| format!("{before}{HEAD}{function}")));
    let mut refused = None;
    for form in forms {
        match ctx.eval_with_options(form, options(NAME)) {
            Err(Error::Exception) => {
                let thrown = ctx.catch();
                if !is_syntax_error(&thrown) {
                    return Err(ctx.throw(thrown));
                }
                refused.get_or_insert(thrown);
            }
            outcome => return outcome,
        }
    }
    Err(refused.map_or(Error::Unknown, |thrown| ctx.throw(thrown)))
}

fn is_syntax_error(thrown: &Value<'_>) -> bool {
    let name = thrown.as_object().and_then(|error| error.get::<_, String>("name").ok());
    thrown.is_error() && name.as_deref() == Some("SyntaxError")
}

/// A place in a source.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Place {
    /// The path of the module; none in the function itself.
    module: Option<String>,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Place {
    /// The innermost place in a source that a stack tells, whose lines are `at NAME (FILE:LINE:COLUMN)` or
    /// `at FILE:LINE:COLUMN`.
    pub(crate) fn of_stack(stack: &str) -> Option<Self> {
        stack.lines().find_map(|line| {
            let place = line.trim().strip_prefix("at ")?;
            let place = place.rsplit_once('(').map_or(place, |(_, place)| place.trim_end_matches(')'));
            let mut parts = place.rsplitn(3, ':');
            let column: u32 = parts.next()?.parse().ok()?;
            let line: u32 = parts.next()?.parse().ok()?;
            let (module, head) = match parts.next()? {
                NAME => (None, HEAD),
                path if path.starts_with("views/") => (Some(path.to_owned()), modules::HEAD),
                _ => return None,
            };
            let before = if line == 1 { u32::try_from(head.len()).unwrap_or(0) } else { 0 };
            Some(Self { module, line, column: column.saturating_sub(before).max(1) })
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(module) = &self.module {
            write!(formatter, "{module}, ")?;
        }
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}
