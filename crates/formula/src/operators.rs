//! Operators on lists.
//!
//! A pair-wise operator takes the first elements together, the second, and so on; the shorter list
//! repeats its last element. A permuted one takes every element on the left with every one on the right.
//! A comparison is true if one pair at least fulfils it.

use std::cmp::Ordering;

use smol_str::{SmolStr, SmolStrBuilder};

use crate::datetime::DateTime;
use crate::error::{ErrorValue, Reason};
use crate::machine::{Fault, MAX_ELEMENTS, Machine, MachineResult, Operand};
use crate::syntax::{Binary, COMPARISON, Operator};
use crate::value::{List, Text, Value};

/// Applies an arithmetic operator or a comparison.
pub(crate) fn binary(
    machine: &mut Machine<'_>,
    binary: Binary,
    left: &Value,
    right: &Value,
) -> MachineResult {
    if binary.operator.level() == COMPARISON {
        return compare(machine, binary, left, right).map(Value::truth);
    }
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            let list =
                combine(machine, binary, left, right, |_, left, right| numbers(binary, *left, *right))?;
            Ok(Value::Number(list))
        }
        (Value::Text(left), Value::Text(right)) if binary.operator == Operator::Add => {
            combine(machine, binary, left, right, joined).map(Value::Text)
        }
        (Value::Time(left), Value::Number(right))
            if matches!(binary.operator, Operator::Add | Operator::Subtract) =>
        {
            let sign = if binary.operator == Operator::Add { 1.0 } else { -1.0 };
            combine(machine, binary, left, right, |machine, time, seconds| {
                moved(machine, *time, sign * seconds)
            })
            .map(Value::Time)
        }
        (Value::Number(left), Value::Time(right)) if binary.operator == Operator::Add => {
            combine(machine, binary, left, right, |machine, seconds, time| moved(machine, *time, *seconds))
                .map(Value::Time)
        }
        (Value::Time(left), Value::Time(right)) if binary.operator == Operator::Subtract => {
            combine(machine, binary, left, right, seconds_between).map(Value::Number)
        }
        (Value::Time(left), Value::Text(right)) if binary.operator == Operator::Subtract => {
            let right = times_of(machine, binary.symbol(), right)?;
            combine(machine, binary, left, &right, seconds_between).map(Value::Number)
        }
        (Value::Text(left), Value::Time(right)) if binary.operator == Operator::Subtract => {
            let left = times_of(machine, binary.symbol(), left)?;
            combine(machine, binary, &left, right, seconds_between).map(Value::Number)
        }
        _ => Err(mismatch(binary, left, right)),
    }
}

fn mismatch(binary: Binary, left: &Value, right: &Value) -> Fault {
    let reason = Reason::Operands { left: left.kind(), right: right.kind() };
    ErrorValue::new(binary.symbol(), reason).into()
}

fn numbers(binary: Binary, left: f64, right: f64) -> MachineResult<f64> {
    let result = match binary.operator {
        Operator::Multiply => left * right,
        Operator::Divide if right == 0.0 => {
            return Err(ErrorValue::message(binary.symbol(), "a number cannot be divided by 0").into());
        }
        Operator::Divide => left / right,
        Operator::Subtract => left - right,
        _ => left + right,
    };
    if result.is_finite() {
        return Ok(result);
    }
    Err(ErrorValue::message(binary.symbol(), "the result is too large for a number").into())
}

fn joined(machine: &mut Machine<'_>, left: &Text, right: &Text) -> MachineResult<Text> {
    machine.charge_text(left.len() + right.len())?;
    let mut text = SmolStrBuilder::new();
    text.push_str(left);
    text.push_str(right);
    Ok(text.finish())
}

fn moved(machine: &mut Machine<'_>, time: DateTime, seconds: f64) -> MachineResult<DateTime> {
    time.plus_seconds(seconds, machine.zone()?)
        .ok_or_else(|| ErrorValue::message("'+'", "the date-time is outside the calendar").into())
}

fn seconds_between(machine: &mut Machine<'_>, later: &DateTime, earlier: &DateTime) -> MachineResult<f64> {
    let seconds = match (later, earlier) {
        // Needs no time zone, and can therefore be reckoned when the formula is compiled.
        (DateTime::Date(_), DateTime::Date(_)) | (DateTime::Time(_), DateTime::Time(_)) => {
            later.seconds_since(*earlier, &jiff::tz::TimeZone::UTC)
        }
        _ => later.seconds_since(*earlier, machine.zone()?),
    };
    seconds.ok_or_else(|| {
        let is_range = |time: &DateTime| matches!(time, DateTime::Range(_));
        let message = if is_range(later) || is_range(earlier) {
            "a range has no distance from anything; @Explode gives its days, @BusinessDays their number"
        } else {
            "a time of day and a date have no distance; take @Time or @Date of both"
        };
        ErrorValue::message("'-'", message).into()
    })
}

/// The times that texts mean which are asked for as times.
pub(crate) fn times_of(
    machine: &mut Machine<'_>,
    origin: &'static str,
    texts: &List<Text>,
) -> MachineResult<List<DateTime>> {
    machine.charge(texts.len())?;
    texts.try_map(|text| {
        DateTime::from_rfc3339(text).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            let message = format!(
                "the text '{shown}' is not a date-time like 2026-11-21 or 2026-11-21T10:00:00Z; \
                 convert other forms with @TextToTime"
            );
            ErrorValue::message(origin, message).into()
        })
    })
}

/// Applies a function to the pairs that an operator makes of two lists.
fn combine<A, B, C>(
    machine: &mut Machine<'_>,
    binary: Binary,
    left: &List<A>,
    right: &List<B>,
    mut apply: impl FnMut(&mut Machine<'_>, &A, &B) -> MachineResult<C>,
) -> MachineResult<List<C>> {
    if let (Some(left), Some(right)) = (left.single(), right.single()) {
        return apply(machine, left, right).map(List::one);
    }
    let length =
        if binary.permuted { left.len().saturating_mul(right.len()) } else { left.len().max(right.len()) };
    machine.charge_list(length)?;
    let mut results = Vec::with_capacity(length);
    if binary.permuted {
        for left in left.iter() {
            for right in right.iter() {
                results.push(apply(machine, left, right)?);
            }
        }
    } else {
        for (left, right) in pairs(left, right) {
            results.push(apply(machine, left, right)?);
        }
    }
    List::from_vec(results).ok_or_else(|| ErrorValue::message(binary.symbol(), "there is no element").into())
}

/// The elements of two lists side by side; the shorter one repeats its last.
pub(crate) fn pairs<'v, A, B>(left: &'v [A], right: &'v [B]) -> impl Iterator<Item = (&'v A, &'v B)> {
    let length = left.len().max(right.len());
    (0..length).filter_map(|place| {
        Some((left.get(place).or_else(|| left.last())?, right.get(place).or_else(|| right.last())?))
    })
}

/// The order of texts: that of their letters without regard to case; where that is the same, small letters
/// come before capital ones.
pub(crate) fn text_order(left: &str, right: &str) -> Ordering {
    text_order_ignoring_case(left, right).then_with(|| right.cmp(left))
}

/// The order of texts without regard to case.
pub(crate) fn text_order_ignoring_case(left: &str, right: &str) -> Ordering {
    if left.is_ascii() && right.is_ascii() {
        return left
            .bytes()
            .map(|byte| byte.to_ascii_lowercase())
            .cmp(right.bytes().map(|byte| byte.to_ascii_lowercase()));
    }
    left.chars().flat_map(char::to_lowercase).cmp(right.chars().flat_map(char::to_lowercase))
}

/// Whether a comparison holds for one pair at least.
pub(crate) fn compare(
    machine: &mut Machine<'_>,
    binary: Binary,
    left: &Value,
    right: &Value,
) -> MachineResult<bool> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => {
            any_pair(machine, binary, left, right, |_, left, right| {
                Ok(match binary.operator {
                    Operator::Equal => left == right,
                    Operator::NotEqual => left != right,
                    operator => holds(operator, text_order(left, right)),
                })
            })
        }
        (Value::Number(left), Value::Number(right)) => {
            any_pair(machine, binary, left, right, |_, left, right| {
                Ok(holds(binary.operator, order(*left, *right)))
            })
        }
        (Value::Time(left), Value::Time(right)) => {
            any_pair(machine, binary, left, right, compare_times(binary))
        }
        (Value::Time(left), Value::Text(right)) => {
            let right = times_of(machine, binary.symbol(), right)?;
            any_pair(machine, binary, left, &right, compare_times(binary))
        }
        (Value::Text(left), Value::Time(right)) => {
            let left = times_of(machine, binary.symbol(), left)?;
            any_pair(machine, binary, &left, right, compare_times(binary))
        }
        _ => Err(mismatch(binary, left, right)),
    }
}

fn compare_times(binary: Binary) -> impl Fn(&mut Machine<'_>, &DateTime, &DateTime) -> MachineResult<bool> {
    move |machine, left, right| {
        let order = match (left, right) {
            // These need no time zone, and can therefore be reckoned when the formula is compiled.
            (DateTime::Moment(left), DateTime::Moment(right)) => Some(left.cmp(right)),
            (DateTime::Date(left), DateTime::Date(right)) => Some(left.cmp(right)),
            _ => left.compare(*right, machine.zone()?),
        };
        order.map(|order| holds(binary.operator, order)).ok_or_else(|| {
            let message = "a date cannot be compared with a time of day";
            ErrorValue::message(binary.symbol(), message).into()
        })
    }
}

/// Numbers are always finite, so that they have an order; -0 is 0.
fn order(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

fn holds(operator: Operator, order: Ordering) -> bool {
    match operator {
        Operator::Equal => order.is_eq(),
        Operator::NotEqual => order.is_ne(),
        Operator::Less => order.is_lt(),
        Operator::Greater => order.is_gt(),
        Operator::LessOrEqual => order.is_le(),
        _ => order.is_ge(),
    }
}

fn any_pair<A, B>(
    machine: &mut Machine<'_>,
    binary: Binary,
    left: &List<A>,
    right: &List<B>,
    mut holds: impl FnMut(&mut Machine<'_>, &A, &B) -> MachineResult<bool>,
) -> MachineResult<bool> {
    if let (Some(left), Some(right)) = (left.single(), right.single()) {
        return holds(machine, left, right);
    }
    if binary.permuted {
        machine.charge(left.len().saturating_mul(right.len()))?;
        for left in left.iter() {
            for right in right.iter() {
                if holds(machine, left, right)? {
                    return Ok(true);
                }
            }
        }
        return Ok(false);
    }
    machine.charge(left.len().max(right.len()))?;
    for (left, right) in pairs(left, right) {
        if holds(machine, left, right)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The list of all the elements of these values, which must be of one type.
pub(crate) fn concatenate(machine: &mut Machine<'_>, values: &[Operand<'_>]) -> MachineResult {
    let length = values.iter().map(|value| value.len()).sum();
    machine.charge_list(length)?;
    let Some(first) = values.first() else { return Ok(Value::empty()) };
    if let Some(other) = values.iter().find(|value| value.kind() != first.kind()) {
        let reason = Reason::Operands { left: first.kind(), right: other.kind() };
        return Err(ErrorValue::new("':'", reason).into());
    }
    match &**first {
        Value::Text(_) => {
            let mut texts: Vec<SmolStr> = Vec::with_capacity(length.min(MAX_ELEMENTS));
            for value in values {
                if let Value::Text(list) = &**value {
                    texts.extend_from_slice(list);
                }
            }
            Ok(Value::texts(texts))
        }
        Value::Number(_) => {
            let mut numbers = Vec::with_capacity(length.min(MAX_ELEMENTS));
            for value in values {
                if let Value::Number(list) = &**value {
                    numbers.extend_from_slice(list);
                }
            }
            Ok(Value::numbers(numbers))
        }
        Value::Time(_) => {
            let mut times = Vec::with_capacity(length.min(MAX_ELEMENTS));
            for value in values {
                if let Value::Time(list) = &**value {
                    times.extend_from_slice(list);
                }
            }
            Ok(Value::times(times))
        }
        Value::Error(error) => Err(Fault::Error(error.clone())),
    }
}

/// A number, or each of a list, with its sign changed.
pub(crate) fn negate(machine: &mut Machine<'_>, value: &Value) -> MachineResult {
    let Value::Number(list) = value else { return Err(sign_needs_number("'-'", value)) };
    machine.charge(list.len())?;
    Ok(list.single().map_or_else(
        || Value::numbers(list.iter().map(|number| -number).collect()),
        |number| Value::number(-number),
    ))
}

/// A number as it is.
pub(crate) fn plus(value: Value) -> MachineResult {
    if matches!(value, Value::Number(_)) { Ok(value) } else { Err(sign_needs_number("'+'", &value)) }
}

fn sign_needs_number(sign: &'static str, value: &Value) -> Fault {
    let reason = Reason::Operand { expected: "a number behind it", found: value.kind() };
    ErrorValue::new(sign, reason).into()
}
