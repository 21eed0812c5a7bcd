//! Reduce functions: CouchDB's built-in ones, and JavaScript.

mod distinct;
mod extreme;
mod figure;
mod script;
mod stats;
mod sum;

use crate::error::ScriptError;
use crate::pool::{Owner, Pool};
use extreme::End;
use script::Script;

/// Bytes that a reduction may have in any case, and how much smaller than what went in it has to be beyond
/// them: CouchDB's `reduce_limit_threshold` and `reduce_limit_ratio`.
const LIMIT_THRESHOLD_BYTES: usize = 4_906;
const LIMIT_RATIO: usize = 2;

/// Values that `_top_N` and `_bottom_N` give at most.
const VALUES_MAX: usize = 100;

/// A row that is reduced, all of it JSON but the id.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The key, as JSON.
    pub key_json: &'a str,
    /// The id of the document that emitted it.
    pub id: &'a str,
    /// The value, as JSON.
    pub value_json: &'a str,
    /// What orders the rows of a view, as bytes.
    pub order: &'a [u8],
}

/// A reduce function.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reducer {
    /// `_sum`: of numbers, of lists of numbers element by element, of objects member by member.
    Sum,
    /// `_count`: of the rows.
    Count,
    /// `_stats`: `sum`, `count`, `min`, `max` and `sumsqr` of numbers, or of lists element by element.
    Stats,
    /// `_approx_count_distinct`: about how many different keys there are.
    ApproximateCountDistinct,
    /// `_top_N`: the N highest values, highest first.
    Top(usize),
    /// `_bottom_N`: the N lowest values, lowest first.
    Bottom(usize),
    /// `_first`: the value of the first row.
    First,
    /// `_last`: the value of the last row.
    Last,
    /// The source of a JavaScript function `function (keys, values, rereduce)`.
    Function(String),
}

impl Reducer {
    /// The reduce function that a design document means. As in CouchDB, a built-in one is recognised by how the source
    /// begins.
    ///
    /// # Errors
    /// [`ScriptError::UnknownReducer`] if it begins with an underscore and is not one of them.
    pub fn parse(source: &str) -> Result<Self, ScriptError> {
        if let Some(reducer) = Self::counted(source) {
            return Ok(reducer);
        }
        let built_in = [
            ("_first", Self::First),
            ("_last", Self::Last),
            ("_sum", Self::Sum),
            ("_count", Self::Count),
            ("_stats", Self::Stats),
            ("_approx_count_distinct", Self::ApproximateCountDistinct),
        ];
        match built_in.into_iter().find(|(name, _)| source.starts_with(name)) {
            Some((_, reducer)) => Ok(reducer),
            None if source.starts_with('_') => Err(ScriptError::UnknownReducer { name: source.to_owned() }),
            None => Ok(Self::Function(source.to_owned())),
        }
    }

    /// One whose name has the number of values.
    fn counted(source: &str) -> Option<Self> {
        let count = |digits: &str| {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|count| is_number && (1..=VALUES_MAX).contains(count))
        };
        let source = source.trim_end();
        let top = source.strip_prefix("_top_").and_then(count).map(Self::Top);
        top.or_else(|| source.strip_prefix("_bottom_").and_then(count).map(Self::Bottom))
    }
}

/// A reduce function, ready to reduce.
///
/// What it gives is a *state*: JSON that can be kept, and reduced with others of its kind. [`finish`] makes of a
/// state what a reader is shown, which is the same for all but `_approx_count_distinct`, `_first` and `_last`.
///
/// [`finish`]: ReduceEngine::finish
pub struct ReduceEngine {
    function: Function,
    must_shrink: bool,
}

enum Function {
    Sum,
    Count,
    Stats,
    Distinct,
    Extremes(End, usize),
    Outermost(End),
    Script(Script),
}

impl ReduceEngine {
    /// Makes it ready; JavaScript runs in processes of the pool.
    #[must_use]
    pub fn new(pool: &Pool, owner: Owner, reducer: Reducer) -> Self {
        let must_shrink = pool.options().limits.reduce_limit;
        let function = match reducer {
            Reducer::Sum => Function::Sum,
            Reducer::Count => Function::Count,
            Reducer::Stats => Function::Stats,
            Reducer::ApproximateCountDistinct => Function::Distinct,
            Reducer::Top(count) => Function::Extremes(End::Highest, count),
            Reducer::Bottom(count) => Function::Extremes(End::Lowest, count),
            Reducer::First => Function::Outermost(End::Lowest),
            Reducer::Last => Function::Outermost(End::Highest),
            Reducer::Function(source) => Function::Script(Script::new(pool, owner, source)),
        };
        Self { function, must_shrink }
    }

    /// Whether the source can be used.
    ///
    /// # Errors
    /// As [`MapEngine::check`](crate::MapEngine::check), for JavaScript.
    pub fn check(&mut self) -> Result<(), ScriptError> {
        match &mut self.function {
            Function::Script(script) => script.check(),
            _ => Ok(()),
        }
    }

    /// Reduces rows to a state. A `_sum` of values that cannot be added, or that hardly shrinks, is an object
    /// with `"error": "builtin_reduce_error"`, as in CouchDB.
    ///
    /// # Errors
    /// [`ScriptError::Unavailable`] if it cannot be run now; [`ScriptError::InvalidValue`] by `_stats`; [`ScriptError::ReduceOverflow`] and whatever the function
    /// throws by JavaScript; [`ScriptError::Json`] for what is invalid.
    pub fn reduce(&mut self, rows: &[Row<'_>]) -> Result<String, ScriptError> {
        let values = || rows.iter().map(|row| row.value_json);
        match &mut self.function {
            Function::Sum => sum::sum(values(), self.must_shrink),
            Function::Count => Ok(rows.len().to_string()),
            Function::Stats => stats::stats(values()),
            Function::Distinct => Ok(distinct::of_keys(rows.iter().map(|row| row.key_json))),
            Function::Extremes(end, count) => extreme::extremes(values(), (*end, *count)),
            Function::Outermost(end) => extreme::outermost(rows, *end),
            Function::Script(script) => {
                let mut keys = String::from("[");
                for row in rows {
                    let id = serde_json::Value::from(row.id);
                    let comma = if keys.len() > 1 { "," } else { "" };
                    keys.push_str(&format!("{comma}[{},{id}]", row.key_json));
                }
                keys.push(']');
                script.reduce(Some(&keys), &list(values()), self.must_shrink)
            }
        }
    }

    /// Reduces states to one.
    ///
    /// # Errors
    /// As [`ReduceEngine::reduce`].
    pub fn rereduce(&mut self, states: &[String]) -> Result<String, ScriptError> {
        let values = || states.iter().map(String::as_str);
        match &mut self.function {
            Function::Sum => sum::sum(values(), self.must_shrink),
            Function::Count => sum::sum(values(), false),
            Function::Stats => stats::stats(values()),
            Function::Distinct => distinct::union(values()),
            Function::Extremes(end, count) => extreme::extremes_of_lists(values(), (*end, *count)),
            Function::Outermost(end) => extreme::outermost_of(values(), *end),
            Function::Script(script) => script.reduce(None, &list(values()), self.must_shrink),
        }
    }

    /// What a reader is shown of a state, as JSON.
    ///
    /// # Errors
    /// [`ScriptError::Json`] if it is no state of this function.
    pub fn finish(&self, state: &str) -> Result<String, ScriptError> {
        match &self.function {
            Function::Distinct => distinct::estimate(state).map(|count| count.to_string()),
            Function::Outermost(_) => extreme::value_of(state),
            _ => Ok(state.to_owned()),
        }
    }

    /// What the function logged since the last time, the first 1,000 lines of it.
    pub fn take_log(&mut self) -> Vec<String> {
        match &mut self.function {
            Function::Script(script) => script.take_log(),
            _ => Vec::new(),
        }
    }
}

/// Values as a JSON array.
fn list<'a>(values: impl Iterator<Item = &'a str>) -> String {
    let mut list = String::from("[");
    for value in values {
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(value);
    }
    list.push(']');
    list
}

/// Whether a reduction is too large for what went into it.
const fn overflows(input_bytes: usize, output_bytes: usize) -> bool {
    output_bytes > LIMIT_THRESHOLD_BYTES && output_bytes.saturating_mul(LIMIT_RATIO) > input_bytes
}
