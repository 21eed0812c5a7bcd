//! Finding, replacing and comparing elements of lists.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::{Arguments, Body, Category, Function, Native, flags};
use crate::machine::{Machine, MachineResult};
use crate::number::from_count;
use crate::operators::{pairs, text_order, text_order_ignoring_case};
use crate::value::{Text, Value};

const fn list(
    name: &'static str,
    native: Native,
    arguments: &'static str,
    help: &'static str,
    examples: &'static [(&'static str, &'static str)],
) -> Function {
    Function {
        name,
        category: Category::List,
        arguments,
        help,
        examples,
        flags: flags::PURE,
        body: Body::Native(native),
    }
}

pub(super) const FUNCTIONS: &[Function] = &[
    list(
        "@Member",
        member,
        "value; list",
        "The place of a value in a list, counted from 1; 0 if it is not there.",
        &[(r#"@Member("b"; "a":"b")"#, "2"), (r#"@Member("B"; "a":"b")"#, "0")],
    ),
    list(
        "@IsMember",
        |machine, arguments| all_in(machine, arguments).map(|(all, _)| Value::truth(all)),
        "values; list",
        "Whether all these values are in the list.",
        &[(r#"@IsMember("b"; "a":"b")"#, "1"), (r#"@IsMember("b":"c"; "a":"b")"#, "0")],
    ),
    list(
        "@IsNotMember",
        |machine, arguments| all_in(machine, arguments).map(|(_, any)| Value::truth(!any)),
        "values; list",
        "Whether none of these values is in the list.",
        &[(r#"@IsNotMember("c"; "a":"b")"#, "1"), (r#"@IsNotMember("b":"c"; "a":"b")"#, "0")],
    ),
    list(
        "@Replace",
        replace,
        "list; from; to",
        "The list with each element that is in 'from' replaced by its partner in 'to', or by the empty text if \
         there is none.",
        &[
            (r#"@Replace("red":"green"; "green":"blue"; "leaf":"sky")"#, r#""red":"leaf""#),
            (r#"@Replace("a":"b"; "a":"b"; "x")"#, r#""x":"""#),
        ],
    ),
    list(
        "@Keywords",
        keywords,
        "texts; keywords; [separators]",
        "The keywords that stand as words in the texts, in their order there. Words are separated by the given \
         characters, or by blanks and punctuation; with \"\" a keyword may stand anywhere.",
        &[
            (r#"@Keywords("Ann met Ben, again"; "Ben":"Carl":"Ann")"#, r#""Ann":"Ben""#),
            (r#"@Keywords("a-b"; "a":"b"; "-")"#, r#""a":"b""#),
            (r#"@Keywords("at Yale University"; "Yale University"; "")"#, r#""Yale University""#),
            (r#"@Keywords("none"; "x")"#, r#""""#),
        ],
    ),
    list(
        "@Compare",
        compare,
        "texts; texts; [option]",
        "Element by element -1, 0 or 1, as the first text comes before, is or comes after the second in the \
         order of @Sort. [CASEINSENSITIVE] ignores case.",
        &[(r#"@Compare("a":"b":"c"; "b")"#, "(-1):0:1"), (r#"@Compare("A"; "a"; [CASEINSENSITIVE])"#, "0")],
    ),
];

fn member(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let (value, list) = (arguments.value(0)?, arguments.value(1)?);
    machine.charge(list.weight())?;
    let place = match (value, list) {
        (Value::Text(value), Value::Text(list)) => list.iter().position(|text| value.first() == Some(text)),
        (Value::Number(value), Value::Number(list)) => {
            list.iter().position(|number| value.first() == Some(number))
        }
        (Value::Time(value), Value::Time(list)) => list.iter().position(|time| value.first() == Some(time)),
        _ => return Err(different(arguments, value, list).into()),
    };
    Ok(Value::number(place.map_or(0.0, |place| from_count(place + 1))))
}

fn different(
    arguments: &Arguments<'_>,
    left: &Value,
    right: &Value,
) -> std::sync::Arc<crate::error::ErrorValue> {
    arguments.message(format!("its two lists must be of one type, not {} and {}", left.kind(), right.kind()))
}

/// Whether all the values are in the list, and whether any is.
fn all_in(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult<(bool, bool)> {
    fn test<T: PartialEq>(values: &[T], list: &[T]) -> (bool, bool) {
        let mut found = values.iter().map(|value| list.contains(value));
        let first = found.next().unwrap_or(false);
        found.fold((first, first), |(all, any), found| (all && found, any || found))
    }
    let (values, list) = (arguments.value(0)?, arguments.value(1)?);
    machine.charge(values.len().saturating_mul(list.weight()))?;
    match (values, list) {
        (Value::Text(values), Value::Text(list)) => Ok(test(values, list)),
        (Value::Number(values), Value::Number(list)) => Ok(test(values, list)),
        (Value::Time(values), Value::Time(list)) => Ok(test(values, list)),
        _ => Err(different(arguments, values, list).into()),
    }
}

fn replace(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let (list, from, to) = (arguments.texts(0)?, arguments.texts(1)?, arguments.texts(2)?);
    machine.charge(arguments.value(0)?.weight().saturating_add(arguments.value(1)?.weight()))?;
    let mut places: HashMap<&str, usize> = HashMap::with_capacity(from.len());
    for (place, from) in from.iter().enumerate() {
        places.entry(from).or_insert(place);
    }
    let replaced = list.iter().map(|text| match places.get(text.as_str()) {
        Some(place) => to.get(*place).cloned().unwrap_or_default(),
        None => text.clone(),
    });
    Ok(Value::texts(replaced.collect()))
}

fn keywords(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let separators = if arguments.count() > 2 {
        arguments.text(2)?.clone()
    } else {
        Text::new_static("?. ,!;:[](){}\"<>")
    };
    let (texts, wanted) = (arguments.texts(0)?, arguments.texts(1)?);
    machine.charge(arguments.value(1)?.weight())?;
    let mut found = Vec::new();
    if separators.is_empty() {
        for text in texts.iter() {
            machine.charge(wanted.len().saturating_mul(1 + text.len() / 64))?;
            let mut here: Vec<(usize, &Text)> = wanted
                .iter()
                .filter(|word| !word.is_empty())
                .filter_map(|word| Some((text.find(word.as_str())?, word)))
                .collect();
            here.sort_unstable();
            for (_, word) in here {
                add_once(machine, &mut found, word)?;
            }
        }
        return Ok(Value::texts(found));
    }
    let wanted: HashSet<&str> = wanted.iter().map(Text::as_str).collect();
    for text in texts.iter() {
        machine.charge(text.len().saturating_mul(1 + separators.len() / 16) / 16)?;
        for word in text.split(|character| separators.contains(character)) {
            if let Some(word) = wanted.get(word) {
                add_once(machine, &mut found, &Text::new(word))?;
            }
        }
    }
    Ok(Value::texts(found))
}

fn add_once(machine: &mut Machine<'_>, found: &mut Vec<Text>, word: &Text) -> MachineResult<()> {
    machine.charge(1 + found.len())?;
    if !found.contains(word) {
        found.push(word.clone());
    }
    Ok(())
}

fn compare(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let (left, right) = (arguments.texts(0)?, arguments.texts(1)?);
    let ignore_case = arguments.has_keyword(2, "CASEINSENSITIVE");
    machine.charge(arguments.value(0)?.weight().saturating_add(arguments.value(1)?.weight()))?;
    machine.charge_list(left.len().max(right.len()))?;
    let results = pairs(left, right).map(|(left, right)| {
        let order = if ignore_case { text_order_ignoring_case(left, right) } else { text_order(left, right) };
        match order {
            Ordering::Less => -1.0,
            Ordering::Equal => 0.0,
            Ordering::Greater => 1.0,
        }
    });
    Ok(Value::numbers(results.collect()))
}
