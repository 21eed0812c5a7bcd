//! The source of a function: the forms in which it may come, and places in it.

use std::fmt;

use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Error, Function, Result, Value};

use crate::error::ScriptError;
use crate::modules;

/// The name of a function's source in the engine; a module's is its path.
const NAME: &str = "function";

/// The name that the engine gives to a source that is evaluated within another one.
const EVALUATED: &str = "<input>";

/// Makes an expression of what follows: sources begin by `function`, which would be a statement.
const HEAD: &str = "0,";

/// What is ours in an engine, and no place in a source.
const OURS: [&str; 4] = ["sandbox.js", "guards.js", MAKER, "native"];

/// The name of what makes a function from its source.
const MAKER: &str = "maker";

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

/// What makes a source's function, each time a new one with all that the source declares around it.
pub(crate) struct Makers<'js> {
    /// In strict mode, where an assignment to what cannot be changed is an error; as the other one if the source is invalid in
    /// strict mode.
    pub(crate) strict: Function<'js>,
    pub(crate) loose: Function<'js>,
}

/// What a source may be: an expression, or, since CouchDB takes those too, statements of which the last is an expression or a
/// function without a name.
enum Form<'a> {
    Expression(&'a str),
    Statements(&'a str),
    /// Statements, and the function after them.
    Unnamed(&'a str, &'a str),
}

impl Form<'_> {
    fn of(source: &str) -> impl Iterator<Item = Form<'_>> {
        let functions =
            source.rmatch_indices("function").filter_map(|(place, _)| source.split_at_checked(place));
        let unnamed = functions.filter(|(_, function)| {
            function.strip_prefix("function").is_some_and(|rest| rest.trim_start().starts_with('('))
        });
        let unnamed = unnamed.take(CANDIDATES_MAX).map(|(before, function)| Form::Unnamed(before, function));
        [Form::Expression(source), Form::Statements(source)].into_iter().chain(unnamed)
    }

    /// The source as statements whose last value is the function.
    fn text(&self) -> String {
        match self {
            Self::Expression(source) => format!("{HEAD}{source}"),
            Self::Statements(source) => (*source).to_owned(),
            Self::Unnamed(before, function) => format!("{before}{HEAD}{function}"),
        }
    }

    /// The source as the body of a function that returns it, where it has such a form.
    fn body(&self, mode: &str) -> Option<String> {
        match self {
            Self::Expression(source) => Some(format!("(function () {{ {mode}; return 0,{source}\n}})")),
            Self::Statements(_) => None,
            Self::Unnamed(before, function) => {
                Some(format!("(function () {{ {mode}; {before}return 0,{function}\n}})"))
            }
        }
    }
}

/// Modes, as directives of the same length, so that places in both are the same.
const STRICT: &str = "'use strict'";
const LOOSE: &str = "'use sloppy'";

/// What stands before an expression's source where it is returned.
const BODY_HEAD: &str = "(function () { 'use strict'; return 0,";

/// Makes what makes the function of a source. The source is evaluated for it, in a scope of its own.
pub(crate) fn makers<'js>(ctx: &Ctx<'js>, source: &str) -> Result<Makers<'js>> {
    let mut refused = None;
    for form in Form::of(source) {
        // By itself first: what is wrong with it is reported with its place, and it cannot lead out of what is put around it.
        let loose = by_evaluation(ctx, LOOSE, &form)?;
        if let Err(Error::Exception) = loose.call::<_, Value<'js>>(()) {
            let thrown = ctx.catch();
            if !is_syntax_error(&thrown) {
                return Err(ctx.throw(thrown));
            }
            refused.get_or_insert(thrown);
            continue;
        }
        let loose = by_body(ctx, LOOSE, &form).unwrap_or(loose);
        let strict = match by_body(ctx, STRICT, &form) {
            Some(strict) => Some(strict),
            None => tried(ctx, by_evaluation(ctx, STRICT, &form)?),
        };
        return Ok(Makers { strict: strict.unwrap_or_else(|| loose.clone()), loose });
    }
    Err(refused.map_or(Error::Unknown, |thrown| ctx.throw(thrown)))
}

/// A maker that evaluates the source each time; any form can be made so.
fn by_evaluation<'js>(ctx: &Ctx<'js>, mode: &str, form: &Form<'_>) -> Result<Function<'js>> {
    let bound: Function = ctx.eval_with_options(
        format!("(function (text) {{ {mode}; return function () {{ return eval(text); }}; }})"),
        options(MAKER),
    )?;
    bound.call((form.text(),))
}

/// A maker that is compiled once, for a source that is right by itself.
fn by_body<'js>(ctx: &Ctx<'js>, mode: &str, form: &Form<'_>) -> Option<Function<'js>> {
    let made = form.body(mode).and_then(|body| ctx.eval_with_options(body, options(NAME)).ok());
    made.or_else(|| forget(ctx))
}

/// The maker, if it makes something.
fn tried<'js>(ctx: &Ctx<'js>, maker: Function<'js>) -> Option<Function<'js>> {
    maker.call::<_, Value<'js>>(()).ok().map(|_| maker).or_else(|| forget(ctx))
}

fn forget<T>(ctx: &Ctx<'_>) -> Option<T> {
    drop(ctx.catch());
    None
}

fn is_syntax_error(thrown: &Value<'_>) -> bool {
    let name = thrown.as_object().and_then(|error| error.get::<_, String>("name").ok());
    thrown.is_error() && name.as_deref() == Some("SyntaxError")
}

/// A place in a source.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct SourcePlace {
    /// The path of the module; none in the function itself.
    module: Option<String>,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl SourcePlace {
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
                NAME => (None, BODY_HEAD),
                EVALUATED => (None, HEAD),
                path if OURS.contains(&path) => return None,
                path => (Some(path.to_owned()), modules::HEAD),
            };
            let before = if line == 1 { u32::try_from(head.len()).unwrap_or(0) } else { 0 };
            Some(Self { module, line, column: column.saturating_sub(before).max(1) })
        })
    }
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(module) = &self.module {
            write!(formatter, "{module}, ")?;
        }
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}
