//! Lists as a whole: their length, parts, order and repetitions.

use std::cmp::Ordering;
use std::collections::HashSet;

use jiff::tz::TimeZone;

use super::number::random_bits;
use super::{Arguments, Body, Category, FormKind, Function, Native, flags, keyword};
use crate::datetime::DateTime;
use crate::error::{ErrorValue, Reason};
use crate::machine::{Machine, MachineResult};
use crate::number::from_count;
use crate::operators::{text_order, text_order_ignoring_case};
use crate::value::{Text, Value};

const fn list(
    name: &'static str,
    body: Body,
    arguments: &'static str,
    help: &'static str,
    examples: &'static [(&'static str, &'static str)],
) -> Function {
    Function { name, category: Category::List, arguments, help, examples, flags: flags::PURE, body }
}

const fn native(native: Native) -> Body {
    Body::Native(native)
}

pub(super) const FUNCTIONS: &[Function] = &[
    list(
        "@Elements",
        native(elements),
        "list",
        "The number of elements; 0 for the empty text.",
        &[(r#"@Elements("a":"b":"c")"#, "3"), (r#"@Elements("")"#, "0"), ("@Elements(7)", "1")],
    ),
    list(
        "@Count",
        native(|_, arguments| Ok(Value::number(from_count(arguments.value(0)?.len())))),
        "list",
        "The number of elements; 1 for the empty text.",
        &[(r#"@Count("a":"b")"#, "2"), (r#"@Count("")"#, "1")],
    ),
    list(
        "@Subset",
        native(subset),
        "list; count",
        "The first elements of a list, or the last if the count is negative.",
        &[("@Subset(1:2:3; 2)", "1:2"), ("@Subset(1:2:3; -2)", "2:3"), ("@Subset(1:2; 9)", "1:2")],
    ),
    Function {
        flags: flags::DOCUMENT,
        ..list(
            "@Unique",
            native(unique),
            "[list]",
            "The list without repetitions. Without a list, a text that no other document has: it looks random, but is \
             always the same for a document.",
            &[
                (r#"@Unique("red":"green":"red":"Red")"#, r#""red":"green":"Red""#),
                ("@Length(@Unique)", "13"),
                ("@Unique = @Unique", "0"),
            ],
        )
    },
    list(
        "@Sort",
        Body::Form(FormKind::Sort),
        "list; [order]; [expression]",
        "The list in ascending order. [DESCENDING] turns it round, [CASEINSENSITIVE] ignores case, \
         [CUSTOMSORT] asks the expression whether $A belongs behind $B.",
        &[
            ("@Sort(3:1:2)", "1:2:3"),
            (r#"@Sort("b":"A":"a"; [DESCENDING])"#, r#""b":"A":"a""#),
            (r#"@Sort("CAT":"dog":"Cat":"cat")"#, r#""cat":"Cat":"CAT":"dog""#),
            (
                r#"@Sort("ccc":"a":"bb"; [CUSTOMSORT]:[DESCENDING]; @Length($A) > @Length($B))"#,
                r#""ccc":"bb":"a""#,
            ),
        ],
    ),
    list(
        "@Transform",
        Body::Form(FormKind::Transform),
        "list; name; expression",
        "The values of an expression for each element, which the variable of this name holds. @Nothing leaves \
         an element out.",
        &[
            (r#"@Transform(1:2:3; "n"; n * n)"#, "1:4:9"),
            (r#"@Transform("a":""; "t"; @If(t = ""; @Nothing; t + "!"))"#, r#""a!""#),
        ],
    ),
];

fn elements(_: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let value = arguments.value(0)?;
    Ok(Value::number(if value.is_empty_text() { 0.0 } else { from_count(value.len()) }))
}

fn subset(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let value = arguments.value(0)?;
    let count = arguments.whole(1)?;
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX).min(value.len());
    if wanted == 0 {
        return Err(arguments.message("a part of a list has at least one element").into());
    }
    machine.charge(wanted)?;
    Ok(if count > 0 { value.pick(0..wanted) } else { value.pick(value.len() - wanted..value.len()) })
}

fn unique(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let Some(value) = arguments.get(0) else { return unique_text(machine) };
    machine.charge(value.weight())?;
    Ok(match value {
        _ if value.len() == 1 => value.clone(),
        Value::Text(list) => {
            let mut seen = HashSet::with_capacity(list.len());
            Value::texts(list.iter().filter(|text| seen.insert(text.as_str())).cloned().collect())
        }
        Value::Number(list) => {
            let mut seen = HashSet::with_capacity(list.len());
            // 0 and -0 are one number.
            Value::numbers(
                list.iter().filter(|number| seen.insert((**number + 0.0).to_bits())).copied().collect(),
            )
        }
        Value::Time(list) => {
            let mut seen = HashSet::with_capacity(list.len());
            Value::times(list.iter().filter(|time| seen.insert(**time)).copied().collect())
        }
        Value::Error(_) => value.clone(),
    })
}

/// 64 bits that look random, in digits and letters of which none looks like another.
fn unique_text(machine: &mut Machine<'_>) -> MachineResult {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let bits = random_bits(machine)?;
    let letters = (0..u64::BITS).step_by(5).map(|shift| {
        let place = usize::try_from((bits >> shift) & 31).unwrap_or(0);
        LETTERS.get(place).copied().map_or('0', char::from)
    });
    Ok(Value::text(letters.collect::<Text>()))
}

/// How `@Sort` sorts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SortOptions {
    pub(crate) descending: bool,
    pub(crate) custom: bool,
    ignore_case: bool,
}

impl SortOptions {
    pub(crate) fn read(options: &Value) -> MachineResult<Self> {
        const ORIGIN: &str = "@Sort";
        let Value::Text(words) = options else {
            let reason = Reason::Argument { argument: "order", expected: "keywords", found: options.kind() };
            return Err(ErrorValue::new(ORIGIN, reason).into());
        };
        let mut read = Self::default();
        for word in words.iter() {
            // As in the original, the last of two that contradict each other counts.
            match keyword(word).to_ascii_uppercase().as_str() {
                "ASCENDING" => read.descending = false,
                "DESCENDING" => read.descending = true,
                "CASESENSITIVE" => read.ignore_case = false,
                "CASEINSENSITIVE" => read.ignore_case = true,
                "CUSTOMSORT" => read.custom = true,
                "" | "ACCENTSENSITIVE" | "PITCHSENSITIVE" => {}
                other => {
                    let message = format!(
                        "[{other}] is not an order; use [ASCENDING], [DESCENDING], [CASESENSITIVE], \
                         [CASEINSENSITIVE] or [CUSTOMSORT]"
                    );
                    return Err(ErrorValue::message(ORIGIN, message).into());
                }
            }
        }
        Ok(read)
    }
}

/// `@Sort` without an expression.
pub(crate) fn plain_sort(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let options = match arguments.get(1) {
        Some(options) => SortOptions::read(options)?,
        None => SortOptions::default(),
    };
    if options.custom {
        return Err(arguments.message("[CUSTOMSORT] needs an expression as third argument").into());
    }
    order_values(machine, arguments.value(0)?, options)
}

pub(crate) fn order_values(machine: &mut Machine<'_>, value: &Value, options: SortOptions) -> MachineResult {
    let length = value.len();
    let rounds = usize::try_from(usize::BITS - length.leading_zeros()).unwrap_or(1);
    machine.charge(value.weight().saturating_mul(rounds))?;
    let direction = |order: Ordering| if options.descending { order.reverse() } else { order };
    Ok(match value {
        Value::Text(list) => {
            let order: fn(&str, &str) -> Ordering =
                if options.ignore_case { text_order_ignoring_case } else { text_order };
            let mut texts = list.to_vec();
            texts.sort_by(|left, right| direction(order(left, right)));
            Value::texts(texts)
        }
        Value::Number(list) => {
            let mut numbers = list.to_vec();
            numbers.sort_by(|left, right| direction(left.total_cmp(right)));
            Value::numbers(numbers)
        }
        Value::Time(list) => {
            let mut times = list.to_vec();
            sort_times(machine, &mut times, direction)?;
            Value::times(times)
        }
        Value::Error(_) => value.clone(),
    })
}

fn sort_times(
    machine: &Machine<'_>,
    times: &mut [DateTime],
    direction: impl Fn(Ordering) -> Ordering,
) -> MachineResult<()> {
    let zone = zone_for(machine, times)?;
    times.sort_by(|left, right| direction(left.order(*right, zone)));
    Ok(())
}

/// The zone in which to order times; any will do where they are all of one kind, which lets constants be
/// ordered when the formula is compiled.
pub(super) fn zone_for<'e>(machine: &Machine<'e>, times: &[DateTime]) -> MachineResult<&'e TimeZone> {
    static UTC: TimeZone = TimeZone::UTC;
    let dates = times.iter().filter(|time| matches!(time.start(), DateTime::Date(_))).count();
    if dates == 0 || dates == times.len() { Ok(&UTC) } else { machine.zone() }
}
