//! Texts into other things and back.

use super::{Arguments, Body, Category, Function, Native, each_text, flags, number_format, time_format};
use crate::machine::{Fault, Machine, MachineResult};
use crate::number;
use crate::value::{Text, Value};
use crate::written::Written;

const fn text(
    name: &'static str,
    native: Native,
    arguments: &'static str,
    help: &'static str,
    examples: &'static [(&'static str, &'static str)],
    flags: u16,
) -> Function {
    Function { name, category: Category::Text, arguments, help, examples, flags, body: Body::Native(native) }
}

pub(super) const FUNCTIONS: &[Function] = &[
    text(
        "@Text",
        to_text,
        "value; [format]",
        "A number or a date-time as text, in a format if one is given; a text as it is. Of a range both ends are shown.",
        &[
            ("@Text(1.5:20)", r#""1.5":"20""#),
            (r#"@Text(1234.5; "F2,")"#, r#""1,234.50""#),
            (r#"@Text([2026-11-21 09:05]; "D0T1S2")"#, r#""2026-11-21 09:05""#),
            ("@Text([11/21/2026 - 11/23/2026])", r#""2026-11-21 - 2026-11-23""#),
            (r#"@Text("as it is")"#, r#""as it is""#),
        ],
        flags::FORMAT,
    ),
    text(
        "@TextToNumber",
        to_number,
        "text",
        "The number that a text begins with; an error if it begins with none.",
        &[
            (r#"@TextToNumber("1,200.5")"#, "1200.5"),
            (r#"@TextToNumber("12 apples")"#, "12"),
            (r#"@IsError(@TextToNumber("apples"))"#, "1"),
        ],
        flags::PURE,
    ),
    text(
        "@ToNumber",
        to_number,
        "value",
        "The same as @TextToNumber; a number stays as it is.",
        &[("@ToNumber(\"7\") + @ToNumber(1)", "8")],
        flags::PURE,
    ),
    text(
        "@TextToTime",
        to_time,
        "text",
        "The date-time or range that a text states, in any form that a constant may have. The constants \"Today\", \
         \"Tomorrow\" and \"Yesterday\" mean @Today and so on.",
        &[
            (r#"@TextToTime("11/21/2026")"#, "[2026-11-21]"),
            (r#"@TextToTime("Today") = @Today"#, "1"),
            (r#"@TextToTime("2026-11-21 5:30 PM")"#, "[2026-11-21 17:30]"),
            (r#"@TextToTime("11/21/2026 - 11/23/2026")"#, "[2026-11-21 - 2026-11-23]"),
            (r#"@IsError(@TextToTime("soon"))"#, "1"),
        ],
        flags::DAY_WORDS,
    ),
    text(
        "@ToTime",
        to_time,
        "value",
        "The same as @TextToTime; a date-time stays as it is.",
        &[("@ToTime([10:00])", "[10:00]")],
        flags::DAY_WORDS,
    ),
    text(
        "@Soundex",
        |machine, arguments| each_text(machine, arguments.texts(0)?, soundex),
        "text",
        "The Soundex code of a name, the same for names that sound alike in English.",
        &[(r#"@Soundex("Robert":"Rupert")"#, r#""R163":"R163""#)],
        flags::PURE,
    ),
    text(
        "@URLEncode",
        |machine, arguments| {
            arguments.text(0)?;
            each_text(machine, arguments.texts(1)?, url_encode)
        },
        "form; text",
        "The text as a part of an address on the web; the form, for example \"UTF-8\", is always UTF-8.",
        &[(r#"@URLEncode("UTF-8"; "a b/ü")"#, r#""a%20b%2F%C3%BC""#)],
        flags::PURE,
    ),
    text(
        "@URLDecode",
        |machine, arguments| {
            arguments.text(0)?;
            each_text(machine, arguments.texts(1)?, url_decode)
        },
        "form; text",
        "The text that a part of an address on the web means.",
        &[(r#"@URLDecode("UTF-8"; "a%20b%2F%C3%BC")"#, r#""a b/ü""#)],
        flags::PURE,
    ),
];

fn to_text(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let format = if arguments.count() > 1 { arguments.text(1)?.as_str() } else { "" };
    let value = arguments.value(0)?;
    machine.charge(value.len())?;
    match value {
        Value::Text(_) | Value::Error(_) => Ok(value.clone()),
        Value::Number(list) => {
            let format =
                number_format::NumberFormat::read(format).map_err(|message| arguments.message(message))?;
            Ok(Value::Text(list.map(|number| format.show(*number))))
        }
        Value::Time(list) => {
            let format =
                time_format::TimeFormat::read(format).map_err(|message| arguments.message(message))?;
            let clock = time_format::Clock { machine, zone: None };
            list.try_map(|time| format.show(&clock, *time)).map(Value::Text)
        }
    }
}

fn to_number(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let value = arguments.value(0)?;
    machine.charge(value.weight())?;
    let texts = match value {
        Value::Number(_) => return Ok(value.clone()),
        Value::Text(texts) => texts,
        other => return Err(arguments.wrong(0, "text", other).into()),
    };
    let numbers = texts.try_map(|text| {
        leading_number(text).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            arguments.message(format!("'{shown}' does not begin with a number"))
        })
    })?;
    Ok(Value::Number(numbers))
}

/// The number at the beginning of a text.
fn leading_number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    if let Some(number) = number::read(text) {
        return Some(number);
    }
    let end = text
        .find(|character: char| !(character.is_ascii_digit() || matches!(character, '.' | ',' | '-' | '+')))
        .unwrap_or(text.len());
    number::read(text.get(..end)?.trim_end_matches(['.', ',', '-', '+']))
}

fn to_time(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let value = arguments.value(0)?;
    machine.charge(value.len())?;
    let texts = match value {
        Value::Time(_) => return Ok(value.clone()),
        Value::Text(texts) => texts,
        other => return Err(arguments.wrong(0, "text", other).into()),
    };
    let times = texts.try_map(|text| {
        let wrong = |reason: &str| {
            let shown: String = text.chars().take(40).collect();
            Fault::from(arguments.message(format!("'{shown}' is not {reason}")))
        };
        let written = Written::read(text).ok_or_else(|| wrong("a date, a time of day or a range of them"))?;
        let time = match written.fixed() {
            Some(time) => time,
            None => written.in_zone(machine.zone()?),
        };
        time.map_err(|fault| wrong(&format!("a date-time: {}", fault.message())))
    })?;
    Ok(Value::Time(times))
}

fn soundex(text: &str) -> Text {
    let code = |letter: char| match letter.to_ascii_uppercase() {
        'B' | 'F' | 'P' | 'V' => Some('1'),
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => Some('2'),
        'D' | 'T' => Some('3'),
        'L' => Some('4'),
        'M' | 'N' => Some('5'),
        'R' => Some('6'),
        _ => None,
    };
    let mut letters = text.chars().filter(char::is_ascii_alphabetic);
    let Some(first) = letters.next() else { return Text::default() };
    let mut result = String::from(first.to_ascii_uppercase());
    let mut last = code(first);
    for letter in letters {
        let next = code(letter);
        if let Some(digit) = next.filter(|_| next != last) {
            result.push(digit);
        }
        // H and W do not separate letters of the same code; vowels do.
        if !matches!(letter.to_ascii_uppercase(), 'H' | 'W') {
            last = next;
        }
        if result.len() == 4 {
            break;
        }
    }
    while result.len() < 4 {
        result.push('0');
    }
    Text::new(result)
}

fn url_encode(text: &str) -> Text {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).map_or('0', |digit| char::from(*digit));
    let mut result = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            result.push(char::from(byte));
        } else {
            result.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    Text::new(result)
}

fn url_decode(text: &str) -> Text {
    let mut result = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let byte = behind.get(..2).filter(|_| *first == b'%').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
            u8::from_str_radix(digits, 16).ok()
        });
        match byte {
            Some(byte) => {
                result.push(byte);
                rest = behind.get(2..).unwrap_or(&[]);
            }
            None => {
                result.push(if *first == b'+' { b' ' } else { *first });
                rest = behind;
            }
        }
    }
    Text::new(String::from_utf8_lossy(&result))
}
