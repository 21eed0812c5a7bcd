//! Numbers.

use super::{Arguments, Body, Category, Function, Native, each_number, flags};
use crate::machine::{Machine, MachineResult};
use crate::number::finite;
use crate::operators::pairs;
use crate::value::Value;

const fn number(
    name: &'static str,
    native: Native,
    arguments: &'static str,
    help: &'static str,
    examples: &'static [(&'static str, &'static str)],
) -> Function {
    Function {
        name,
        category: Category::Number,
        arguments,
        help,
        examples,
        flags: flags::PURE,
        body: Body::Native(native),
    }
}

pub(super) const FUNCTIONS: &[Function] = &[
    number(
        "@Abs",
        |machine, arguments| each_number(machine, arguments, f64::abs),
        "number",
        "The number without its sign.",
        &[("@Abs(-3:4)", "3:4")],
    ),
    number(
        "@Sign",
        |machine, arguments| {
            each_number(machine, arguments, |number| if number == 0.0 { 0.0 } else { number.signum() })
        },
        "number",
        "-1, 0 or 1, as the number is negative, 0 or positive.",
        &[("@Sign((-2.5):0:9)", "(-1):0:1")],
    ),
    number(
        "@Integer",
        |machine, arguments| each_number(machine, arguments, f64::trunc),
        "number",
        "The whole part of the number.",
        &[("@Integer(3.9:(-3.9))", "3:(-3)")],
    ),
    number(
        "@Round",
        round,
        "number; [multiple]",
        "The nearest whole number, or the nearest multiple; halves away from 0.",
        &[
            ("@Round(2.5)", "3"),
            ("@Round(-2.5)", "-3"),
            ("@Round(499; 5)", "500"),
            ("@Round(1.23; 0.1)", "1.2"),
        ],
    ),
    number(
        "@Modulo",
        |machine, arguments| two(machine, arguments, |left, right| left % right),
        "number; divisor",
        "What remains of a division; it has the sign of the number.",
        &[("@Modulo(7; 3)", "1"), ("@Modulo(-7; 3)", "-1"), ("@Modulo(4:5:6; 2:3)", "0:2:0")],
    ),
    number(
        "@FloatEq",
        float_equal,
        "number; number; [tolerance]",
        "Whether two numbers differ by less than the tolerance, which is 0.0001 unless given; of two lists, whether one \
         pair at least does.",
        &[
            ("@FloatEq(0.1 + 0.2; 0.3)", "1"),
            ("@FloatEq(1; 1.5; 0.5)", "0"),
            ("@FloatEq(1:5; 9:5.00001)", "1"),
        ],
    ),
    number(
        "@Power",
        |machine, arguments| two(machine, arguments, f64::powf),
        "base; exponent",
        "The base raised to the exponent.",
        &[("@Power(2; 10)", "1024")],
    ),
    number(
        "@Sqrt",
        |machine, arguments| each_number(machine, arguments, f64::sqrt),
        "number",
        "The square root.",
        &[("@Sqrt(9:16)", "3:4"), ("@IsError(@Sqrt(-1))", "1")],
    ),
    number(
        "@Exp",
        |machine, arguments| each_number(machine, arguments, f64::exp),
        "number",
        "The number e raised to this number.",
        &[("@Round(@Exp(1); 0.001)", "2.718")],
    ),
    number(
        "@Ln",
        |machine, arguments| each_number(machine, arguments, f64::ln),
        "number",
        "The natural logarithm.",
        &[("@Ln(1)", "0"), ("@IsError(@Ln(0))", "1")],
    ),
    number(
        "@Log",
        |machine, arguments| each_number(machine, arguments, f64::log10),
        "number",
        "The logarithm to base 10.",
        &[("@Log(1000)", "3")],
    ),
    number(
        "@Pi",
        |_, _| Ok(Value::number(std::f64::consts::PI)),
        "",
        "The number pi.",
        &[("@Integer(@Pi * 100)", "314")],
    ),
    number(
        "@Sin",
        |machine, arguments| each_number(machine, arguments, f64::sin),
        "angle",
        "The sine of an angle in radians.",
        &[("@Sin(0)", "0")],
    ),
    number(
        "@Cos",
        |machine, arguments| each_number(machine, arguments, f64::cos),
        "angle",
        "The cosine of an angle in radians.",
        &[("@Cos(0)", "1")],
    ),
    number(
        "@Tan",
        |machine, arguments| each_number(machine, arguments, f64::tan),
        "angle",
        "The tangent of an angle in radians.",
        &[("@Tan(0)", "0")],
    ),
    number(
        "@ASin",
        |machine, arguments| each_number(machine, arguments, f64::asin),
        "number",
        "The angle in radians that has this sine.",
        &[("@ASin(0)", "0")],
    ),
    number(
        "@ACos",
        |machine, arguments| each_number(machine, arguments, f64::acos),
        "number",
        "The angle in radians that has this cosine.",
        &[("@ACos(1)", "0")],
    ),
    number(
        "@ATan",
        |machine, arguments| each_number(machine, arguments, f64::atan),
        "number",
        "The angle in radians that has this tangent.",
        &[("@ATan(0)", "0")],
    ),
    number(
        "@ATan2",
        |machine, arguments| two(machine, arguments, |x, y| y.atan2(x)),
        "x; y",
        "The angle in radians of the point (x, y).",
        &[("@ATan2(1; 0)", "0")],
    ),
    number(
        "@Sum",
        sum,
        "numbers...",
        "The sum of all the numbers in all the lists.",
        &[("@Sum(1:2:3; 4)", "10")],
    ),
    number(
        "@Max",
        |machine, arguments| extreme(machine, arguments, f64::max),
        "number; [number...]",
        "The largest element of one list; of several, the larger of each pair.",
        &[("@Max(1:5:3)", "5"), ("@Max(1:5:3; 2)", "2:5:3")],
    ),
    number(
        "@Min",
        |machine, arguments| extreme(machine, arguments, f64::min),
        "number; [number...]",
        "The smallest element of one list; of several, the smaller of each pair.",
        &[("@Min(4:2:3)", "2"), ("@Min(1:5; 2:3)", "1:3")],
    ),
    Function {
        name: "@Random",
        category: Category::Number,
        arguments: "",
        help: "A number from 0 up to 1 that looks random, but is always the same for a document, so that a view \
               does not change by being read.",
        examples: &[("x := @Random; x >= 0 & x < 1", "1"), ("@Random = @Random", "0")],
        flags: flags::DOCUMENT,
        body: Body::Native(random),
    },
];

fn round(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let multiple = if arguments.count() > 1 { arguments.number(1)?.abs() } else { 1.0 };
    if multiple == 0.0 {
        return Err(arguments.message("the multiple must not be 0").into());
    }
    // Dividing by the inverse keeps 1.23 to 0.1 at 1.2, where multiplying would give 1.2000000000000002.
    let inverse = (1.0 / multiple).round();
    if multiple < 1.0 && (inverse * multiple - 1.0).abs() < 1e-12 {
        return each_number(machine, arguments, |number| (number * inverse).round() / inverse);
    }
    each_number(machine, arguments, |number| (number / multiple).round() * multiple)
}

fn two(machine: &mut Machine<'_>, arguments: &Arguments<'_>, apply: fn(f64, f64) -> f64) -> MachineResult {
    let (left, right) = (arguments.numbers(0)?, arguments.numbers(1)?);
    machine.charge_list(left.len().max(right.len()))?;
    let mut results = Vec::with_capacity(left.len().max(right.len()));
    for (left, right) in pairs(left, right) {
        let Some(result) = finite(apply(*left, *right)) else {
            return Err(arguments.message(format!("there is no result for {left} and {right}")).into());
        };
        results.push(result);
    }
    Ok(Value::numbers(results))
}

/// What `@FloatEq` takes for equal where it is not told.
const TOLERANCE: f64 = 0.0001;

fn float_equal(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let (left, right) = (arguments.numbers(0)?, arguments.numbers(1)?);
    let tolerance = if arguments.count() > 2 { arguments.number(2)? } else { TOLERANCE };
    machine.charge(left.len().max(right.len()))?;
    Ok(Value::truth(pairs(left, right).any(|(left, right)| (left - right).abs() < tolerance)))
}

fn sum(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let mut sum = 0.0;
    for index in 0..arguments.count() {
        let numbers = arguments.numbers(index)?;
        machine.charge(numbers.len())?;
        sum += numbers.iter().sum::<f64>();
    }
    finite(sum)
        .map(Value::number)
        .ok_or_else(|| arguments.message("the sum is too large for a number").into())
}

fn extreme(
    machine: &mut Machine<'_>,
    arguments: &Arguments<'_>,
    choose: fn(f64, f64) -> f64,
) -> MachineResult {
    let first = arguments.numbers(0)?;
    machine.charge(first.len())?;
    if arguments.count() == 1 {
        return Ok(first.iter().copied().reduce(choose).map_or_else(Value::empty, Value::number));
    }
    let mut results = first.to_vec();
    for index in 1..arguments.count() {
        let next = arguments.numbers(index)?;
        machine.charge_list(results.len().max(next.len()))?;
        results = pairs(&results, next).map(|(left, right)| choose(*left, *right)).collect();
    }
    Ok(Value::numbers(results))
}

fn random(machine: &mut Machine<'_>, _: &Arguments<'_>) -> MachineResult {
    let high = u32::try_from(random_bits(machine)? >> 32).unwrap_or(0);
    Ok(Value::number(f64::from(high) / (f64::from(u32::MAX) + 1.0)))
}

/// SplitMix64 of the document's identifier and of how many have been asked for.
pub(super) fn random_bits(machine: &mut Machine<'_>) -> MachineResult<u64> {
    let document = machine.document()?;
    machine.random_numbers += 1;
    let mut state = machine.random_numbers.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for byte in document.id().bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    }
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    Ok(state ^ (state >> 31))
}
