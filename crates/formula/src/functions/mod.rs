//! The table of functions.
//!
//! Each function is one entry: its name, its arguments, what it does, examples that are also tests, and
//! on what its answer depends. The compiler, the reference page and the tests all read this table.

mod address;
mod characters;
mod check;
mod document;
mod list;
mod list_search;
mod logic;
mod name;
mod number;
mod number_format;
mod pattern;
mod refused;
mod summary;
#[cfg(test)]
mod tests;
mod text;
mod text_convert;
mod text_parts;
mod time;
mod time_format;
mod zone;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::datetime::DateTime;
use crate::error::{ErrorValue, Reason};
use crate::machine::{Fault, Machine, MachineResult, Operand};
use crate::number::{finite, shown, whole};
use crate::operators::times_of;
use crate::program::Node;
use crate::value::{List, Text, Value};

pub(crate) use list::{SortOptions, order_values, plain_sort};
pub(crate) use refused::Refusal;

/// One function of the language.
#[derive(Debug)]
pub(crate) struct Function {
    /// With its `@`, in its usual spelling.
    pub(crate) name: &'static str,
    pub(crate) category: Category,
    /// The names of the arguments, separated by `; `: `[name]` may be left out, `name...` may be repeated.
    pub(crate) arguments: &'static str,
    /// What it does, in one line.
    pub(crate) help: &'static str,
    /// Formulas, and formulas that come to the same.
    pub(crate) examples: &'static [(&'static str, &'static str)],
    /// On what the answer depends besides the arguments: a sum of [`flags`].
    pub(crate) flags: u16,
    pub(crate) body: Body,
}

/// On what a function's answer depends besides its arguments.
pub(crate) mod flags {
    /// On nothing.
    pub(crate) const PURE: u16 = 0;
    /// On the time: a view that selects by it is never up to date.
    pub(crate) const TIME_VARIANT: u16 = 1;
    /// On the document.
    pub(crate) const DOCUMENT: u16 = 1 << 1;
    /// On who asks.
    pub(crate) const USER: u16 = 1 << 2;
    /// On the server or the database.
    pub(crate) const SERVER: u16 = 1 << 3;
    /// On the day, with some formats.
    pub(crate) const FORMAT: u16 = 1 << 4;
    /// On fields that are not named.
    pub(crate) const ANY_FIELD: u16 = 1 << 5;
    /// On the document that this one responds to.
    pub(crate) const PARENT: u16 = 1 << 6;
    /// On the fields that hold the author.
    pub(crate) const AUTHOR: u16 = 1 << 7;
    /// It adds the direct responses to a selection.
    pub(crate) const CHILDREN: u16 = 1 << 8;
    /// It adds all responses, and theirs, to a selection.
    pub(crate) const DESCENDANTS: u16 = 1 << 9;
    /// On the day, where a constant argument is "Today" or the like.
    pub(crate) const DAY_WORDS: u16 = 1 << 10;
    /// On whether it stands inside `@Transform`.
    pub(crate) const PLACE: u16 = 1 << 11;
    /// On the time, unless it is given one.
    pub(crate) const NOW_IF_NOT_GIVEN: u16 = 1 << 12;
    /// On the fields that its last argument names.
    pub(crate) const NAMES_FIELDS: u16 = 1 << 13;

    /// Any of these, and the answer is not a constant.
    pub(crate) const VARYING: u16 =
        TIME_VARIANT | DOCUMENT | USER | SERVER | ANY_FIELD | PARENT | AUTHOR | PLACE | NAMES_FIELDS;
}

/// The part of the reference in which a function stands.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Category {
    Logic,
    Text,
    List,
    Number,
    Time,
    Name,
    Document,
}

impl Category {
    pub(crate) const ALL: [Self; 7] =
        [Self::Logic, Self::Text, Self::List, Self::Number, Self::Time, Self::Name, Self::Document];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Logic => "Logic and control",
            Self::Text => "Text",
            Self::List => "Lists",
            Self::Number => "Numbers",
            Self::Time => "Dates and times",
            Self::Name => "Names",
            Self::Document => "Document, selection and surroundings",
        }
    }
}

/// How a function is carried out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// With its arguments evaluated, in order.
    Native(Native),
    /// By the compiler and the machine.
    Form(FormKind),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "each is the function of its name")]
pub(crate) enum FormKind {
    If,
    Select,
    Do,
    Return,
    While,
    DoWhile,
    For,
    IfError,
    IsError,
    IsNull,
    IsAvailable,
    IsUnavailable,
    GetField,
    Set,
    SetField,
    Transform,
    Sort,
}

pub(crate) type Native = fn(&mut Machine<'_>, &Arguments<'_>) -> MachineResult;

impl Function {
    /// How many arguments it takes: at least, and at most unless there is no limit.
    pub(crate) fn arity(&self) -> (usize, Option<usize>) {
        let names = self.arguments.split("; ").filter(|name| !name.is_empty());
        let most = names.clone().count();
        let least = names.filter(|name| !name.starts_with('[')).count();
        (least, (!self.arguments.ends_with("...") && !self.arguments.ends_with("...]")).then_some(most))
    }

    /// The name of an argument, counted from 0.
    pub(crate) fn argument(&self, index: usize) -> &'static str {
        let mut names = self.arguments.split("; ");
        let name = names.nth(index).or_else(|| self.arguments.split("; ").last()).unwrap_or("");
        name.trim_matches(['[', ']', '.'])
    }

    /// How it is written.
    pub(crate) fn usage(&self) -> String {
        if self.arguments.is_empty() {
            self.name.to_owned()
        } else {
            format!("{}({})", self.name, self.arguments)
        }
    }

    /// The fields that it reads by itself.
    pub(crate) fn reads(&self) -> impl Iterator<Item = &'static str> {
        let parent: &[&'static str] = if self.flags & flags::PARENT == 0 { &[] } else { &["$REF"] };
        let author: &[&'static str] =
            if self.flags & flags::AUTHOR == 0 { &[] } else { &["From", "FromDomain", "$UpdatedBy"] };
        parent.iter().chain(author).copied()
    }
}

/// All functions, by category.
pub(crate) fn all() -> impl Iterator<Item = &'static Function> {
    [
        logic::FUNCTIONS,
        check::FUNCTIONS,
        text::FUNCTIONS,
        text_parts::FUNCTIONS,
        text_convert::FUNCTIONS,
        characters::FUNCTIONS,
        summary::FUNCTIONS,
        pattern::FUNCTIONS,
        list::FUNCTIONS,
        list_search::FUNCTIONS,
        number::FUNCTIONS,
        time::FUNCTIONS,
        zone::FUNCTIONS,
        name::FUNCTIONS,
        address::FUNCTIONS,
        document::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}

/// Functions of the original that are not available, and why.
pub(crate) fn all_refused() -> impl Iterator<Item = (&'static str, Refusal)> {
    refused::NAMES.iter().flat_map(|(refusal, names)| names.iter().map(|name| (*name, *refusal)))
}

/// The function of this name, in any case.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    static TABLE: LazyLock<HashMap<String, &'static Function>> =
        LazyLock::new(|| all().map(|function| (function.name.to_lowercase(), function)).collect());
    TABLE.get(&name.to_lowercase()).copied()
}

/// Why a function of this name, in any case, is not available, with its usual spelling.
pub(crate) fn refused(name: &str) -> Option<(&'static str, Refusal)> {
    all_refused().find(|(refused, _)| refused.eq_ignore_ascii_case(name))
}

/// The function whose name is most like this one, if one is.
pub(crate) fn similar(name: &str) -> Option<&'static str> {
    const LONGEST: usize = 32;
    if name.len() > LONGEST {
        return None;
    }
    let allowed = name.len() / 4 + 1;
    let nearest = all().map(|function| (distance(name, function.name), function.name)).min()?;
    (nearest.0 <= allowed).then_some(nearest.1)
}

/// How many letters must be added, removed or changed to make one name of the other.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<u8> = right.bytes().map(|byte| byte.to_ascii_lowercase()).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (count, letter) in left.bytes().map(|byte| byte.to_ascii_lowercase()).enumerate() {
        let mut next = vec![count + 1];
        for (place, other) in right.iter().enumerate() {
            let at = |row: &[usize], place: usize| row.get(place).copied().unwrap_or(usize::MAX / 2);
            let changed = at(&row, place) + usize::from(letter != *other);
            next.push(changed.min(at(&row, place + 1) + 1).min(at(&next, place) + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}

/// Whether the format given to a function shows a day as it relates to today, or may.
pub(crate) fn format_needs_today(function: &Function, arguments: &[Node]) -> bool {
    let place = function.arguments.split("; ").position(|name| name == "[format]");
    match place.and_then(|place| arguments.get(place)) {
        None => false,
        Some(Node::Constant(Value::Text(format))) => {
            format.iter().any(|format| time_format::needs_today(format))
        }
        Some(_) => true,
    }
}

/// The function that a constant text given to `@TextToTime` stands for: `@Today` for "Today". In other texts
/// these words mean nothing, so that a formula that depends on the day can be told by looking at it.
pub(crate) fn day_word(arguments: &[Node]) -> Option<(&'static Function, Native)> {
    let Some(Node::Constant(Value::Text(text))) = arguments.first() else { return None };
    let word = ["@Today", "@Tomorrow", "@Yesterday"].into_iter().find(|name| {
        text.single().is_some_and(|text| {
            name.strip_prefix('@').is_some_and(|name| name.eq_ignore_ascii_case(text.trim()))
        })
    })?;
    match find(word)? {
        function @ Function { body: Body::Native(native), .. } => Some((function, *native)),
        _ => None,
    }
}

/// The evaluated arguments of a call; none of them is an error.
pub(crate) struct Arguments<'v> {
    pub(crate) function: &'static Function,
    pub(crate) values: &'v [Operand<'v>],
}

impl<'v> Arguments<'v> {
    pub(crate) const fn count(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&'v Value> {
        self.values.get(index).map(|value| &**value)
    }

    /// An argument that must be given.
    pub(crate) fn value(&self, index: usize) -> MachineResult<&'v Value> {
        self.get(index).ok_or_else(|| self.message("an argument is missing").into())
    }

    pub(crate) fn texts(&self, index: usize) -> MachineResult<&'v List<Text>> {
        match self.value(index)? {
            Value::Text(list) => Ok(list),
            other => Err(self.wrong(index, "text", other).into()),
        }
    }

    /// The first element of a text.
    pub(crate) fn text(&self, index: usize) -> MachineResult<&'v Text> {
        self.texts(index)?.first().ok_or_else(|| self.message("a text is missing").into())
    }

    pub(crate) fn numbers(&self, index: usize) -> MachineResult<&'v List<f64>> {
        match self.value(index)? {
            Value::Number(list) => Ok(list),
            other => Err(self.wrong(index, "a number", other).into()),
        }
    }

    /// The first element of a number.
    pub(crate) fn number(&self, index: usize) -> MachineResult<f64> {
        Ok(self.numbers(index)?.first().copied().unwrap_or(0.0))
    }

    /// The whole part of a number.
    pub(crate) fn whole(&self, index: usize) -> MachineResult<i64> {
        self.number(index).map(whole)
    }

    /// A number that must not be negative, as a count.
    pub(crate) fn count_of(&self, index: usize) -> MachineResult<usize> {
        let number = self.whole(index)?;
        usize::try_from(number).map_err(|_| {
            let argument = self.function.argument(index);
            self.message(format!("'{argument}' is {number}, but must not be negative")).into()
        })
    }

    /// Times; a text is read as one if it is a full RFC 3339 date or date-time.
    pub(crate) fn times(&self, machine: &mut Machine<'_>, index: usize) -> MachineResult<List<DateTime>> {
        match self.value(index)? {
            Value::Time(list) => Ok(list.clone()),
            Value::Text(texts) => times_of(machine, self.function.name, texts),
            other => Err(self.wrong(index, "a date-time", other).into()),
        }
    }

    /// Whether one of the keywords given as this argument is this one: `CN` for `[CN]`.
    pub(crate) fn has_keyword(&self, index: usize, word: &str) -> bool {
        match self.get(index) {
            Some(Value::Text(list)) => list.iter().any(|given| keyword(given).eq_ignore_ascii_case(word)),
            _ => false,
        }
    }

    pub(crate) fn message(
        &self,
        message: impl Into<std::borrow::Cow<'static, str>>,
    ) -> std::sync::Arc<ErrorValue> {
        ErrorValue::message(self.function.name, message)
    }

    pub(crate) fn wrong(
        &self,
        index: usize,
        expected: &'static str,
        found: &Value,
    ) -> std::sync::Arc<ErrorValue> {
        let reason =
            Reason::Argument { argument: self.function.argument(index), expected, found: found.kind() };
        ErrorValue::new(self.function.name, reason)
    }
}

/// A keyword without its brackets.
pub(crate) fn keyword(text: &str) -> &str {
    text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text)
}

/// Applies a function to each text of a list.
pub(crate) fn each_text(
    machine: &mut Machine<'_>,
    texts: &List<Text>,
    mut apply: impl FnMut(&str) -> Text,
) -> MachineResult {
    let results = texts.try_map(|text| {
        machine.charge(1 + text.len() / 64)?;
        let result = apply(text);
        machine.charge_text(result.len())?;
        Ok::<_, Fault>(result)
    })?;
    Ok(Value::Text(results))
}

/// Applies a function to each number of a list.
pub(crate) fn each_number(
    machine: &mut Machine<'_>,
    arguments: &Arguments<'_>,
    apply: impl Fn(f64) -> f64,
) -> MachineResult {
    let numbers = arguments.numbers(0)?;
    machine.charge(numbers.len())?;
    let results = numbers.try_map(|number| {
        finite(apply(*number))
            .ok_or_else(|| arguments.message(format!("there is no result for {}", shown(*number))))
    })?;
    Ok(Value::Number(results))
}
