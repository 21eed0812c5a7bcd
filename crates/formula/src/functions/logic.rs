//! Truth, conditions, loops and errors.

use super::{Arguments, Body, Category, FormKind, Function, flags};
use crate::datetime::DateTime;
use crate::error::ErrorValue;
use crate::machine::{Fault, Machine, MachineResult};
use crate::value::Value;

const fn form(
    name: &'static str,
    kind: FormKind,
    arguments: &'static str,
    help: &'static str,
    examples: &'static [(&'static str, &'static str)],
) -> Function {
    Function {
        name,
        category: Category::Logic,
        arguments,
        help,
        examples,
        flags: flags::PURE,
        body: Body::Form(kind),
    }
}

/// A row of the table: a function of truth and errors.
pub(super) const fn native(
    name: &'static str,
    native: super::Native,
    arguments: &'static str,
    help: &'static str,
    examples: &'static [(&'static str, &'static str)],
) -> Function {
    Function {
        name,
        category: Category::Logic,
        arguments,
        help,
        examples,
        flags: flags::PURE,
        body: Body::Native(native),
    }
}

pub(super) const FUNCTIONS: &[Function] = &[
    form(
        "@If",
        FormKind::If,
        "condition; value; otherwise or next condition...",
        "The value behind the first condition that holds, else the last argument. Nothing else is evaluated.",
        &[
            (r#"@If(2 > 1; "yes"; "no")"#, r#""yes""#),
            (r#"@If(0; "a"; 0; "b"; "c")"#, r#""c""#),
            (r#"@If(1; "fine"; 1 / 0)"#, r#""fine""#),
        ],
    ),
    form(
        "@V2If",
        FormKind::If,
        "condition; value; otherwise or next condition...",
        "The same as @If.",
        &[(r#"@V2If(1; "yes"; "no")"#, r#""yes""#)],
    ),
    form(
        "@Select",
        FormKind::Select,
        "number; value...",
        "The value at this place, counted from 1; the last one if the number is larger.",
        &[(r#"@Select(2; "a"; "b"; "c")"#, r#""b""#), (r#"@Select(9; "a"; "b")"#, r#""b""#)],
    ),
    form(
        "@Do",
        FormKind::Do,
        "expression...",
        "Evaluates its arguments in order and answers with the last.",
        &[("@Do(n := 2; n + 1)", "3")],
    ),
    form(
        "@Return",
        FormKind::Return,
        "value",
        "Ends the formula with this value.",
        &[(r#"@If(1; @Return("early"); ""); "late""#, r#""early""#)],
    ),
    form(
        "@While",
        FormKind::While,
        "condition; expression...",
        "Repeats its expressions as long as the condition holds.",
        &[("n := 0; @While(n < 3; n := n + 1); n", "3")],
    ),
    form(
        "@DoWhile",
        FormKind::DoWhile,
        "expression; expression or condition...",
        "Repeats its expressions once, and then as long as the condition, its last argument, holds.",
        &[("n := 5; @DoWhile(n := n + 1; n < 3); n", "6")],
    ),
    form(
        "@For",
        FormKind::For,
        "start; condition; step; expression...",
        "Evaluates start once, then its expressions and step as long as the condition holds.",
        &[("s := 0; @For(n := 1; n <= 4; n := n + 1; s := s + n); s", "10")],
    ),
    form(
        "@Set",
        FormKind::Set,
        "name; value",
        "Assigns a temporary variable inside an expression; its name is a constant.",
        &[(r#"@Set("n"; 3); n * 2"#, "6")],
    ),
    form(
        "@IsError",
        FormKind::IsError,
        "value",
        "Whether the value is an error.",
        &[("@IsError(1 / 0)", "1"), ("@IsError(1)", "0"), ("x := 1 / 0; @IsError(x)", "1")],
    ),
    form(
        "@IfError",
        FormKind::IfError,
        "value; [alternative...]",
        "The first argument that is not an error; the empty text if there is no alternative.",
        &[("@IfError(1 / 0; 7)", "7"), (r#"@IfError("fine"; 7)"#, r#""fine""#), ("@IfError(1 / 0)", r#""""#)],
    ),
    native("@True", |_, _| Ok(Value::truth(true)), "", "True, which is 1.", &[("@True", "1")]),
    native("@False", |_, _| Ok(Value::truth(false)), "", "False, which is 0.", &[("@False", "0")]),
    native("@Yes", |_, _| Ok(Value::truth(true)), "", "True, which is 1.", &[("@Yes", "1")]),
    native("@No", |_, _| Ok(Value::truth(false)), "", "False, which is 0.", &[("@No", "0")]),
    native("@Success", |_, _| Ok(Value::truth(true)), "", "True, which is 1.", &[("@Success", "1")]),
    native(
        "@Failure",
        |_, arguments| Ok(Value::Text(arguments.texts(0)?.clone())),
        "message",
        "The message, as a formula that checks a field answers with it.",
        &[(r#"@If(1 > 2; @Success; @Failure("too small"))"#, r#""too small""#)],
    ),
    native("@Error", error, "", "An error.", &[("@IsError(@Error)", "1")]),
    Function {
        name: "@Nothing",
        category: Category::Logic,
        arguments: "",
        help: "Inside @Transform: leaves this element out. Elsewhere the empty text.",
        examples: &[(r#"@Transform(1:2:3; "n"; @If(n = 2; @Nothing; n))"#, "1:3"), ("@Nothing", r#""""#)],
        flags: flags::PLACE,
        body: Body::Native(
            |machine, _| if machine.transforms > 0 { Err(Fault::Nothing) } else { Ok(Value::empty()) },
        ),
    },
    form(
        "@IsNull",
        FormKind::IsNull,
        "value",
        "Whether the value is one empty text, as of a missing field. An error is not.",
        &[
            (r#"@IsNull("")"#, "1"),
            ("@IsNull(NoSuchField)", "1"),
            ("@IsNull(0)", "0"),
            ("@IsNull(1 / 0)", "0"),
        ],
    ),
    native(
        "@IsNumber",
        |_, arguments| Ok(Value::truth(matches!(arguments.value(0)?, Value::Number(_)))),
        "value",
        "Whether the value is a number or a list of numbers.",
        &[("@IsNumber(1:2)", "1"), (r#"@IsNumber("1")"#, "0")],
    ),
    native(
        "@IsText",
        |_, arguments| Ok(Value::truth(matches!(arguments.value(0)?, Value::Text(_)))),
        "value",
        "Whether the value is a text or a list of texts.",
        &[(r#"@IsText("1")"#, "1"), ("@IsText(1)", "0")],
    ),
    native(
        "@IsTime",
        is_time,
        "value",
        "Whether the value is a date-time, or a text that reads as one.",
        &[
            ("@IsTime([2026-11-21])", "1"),
            (r#"@IsTime("2026-11-21T10:00:00Z")"#, "1"),
            (r#"@IsTime("soon")"#, "0"),
        ],
    ),
];

fn error(_: &mut Machine<'_>, _: &Arguments<'_>) -> MachineResult {
    Err(ErrorValue::message("@Error", "the formula asked for an error").into())
}

fn is_time(_: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let times = match arguments.value(0)? {
        Value::Time(_) => true,
        Value::Text(list) => list.iter().all(|text| DateTime::from_rfc3339(text).is_some()),
        _ => false,
    };
    Ok(Value::truth(times))
}
