//! Texts as a whole: letters, blanks, and what they contain.

use smol_str::StrExt;

use super::{Arguments, Body, Category, Function, Native, each_text, flags};
use crate::machine::{Fault, Machine, MachineResult};
use crate::number::{from_count, whole};
use crate::operators::pairs;
use crate::value::{Text, Value};

/// A row of the table: a function of texts.
pub(super) const fn text(
    name: &'static str,
    native: Native,
    arguments: &'static str,
    help: &'static str,
    examples: &'static [(&'static str, &'static str)],
) -> Function {
    Function {
        name,
        category: Category::Text,
        arguments,
        help,
        examples,
        flags: flags::PURE,
        body: Body::Native(native),
    }
}

pub(super) const FUNCTIONS: &[Function] = &[
    text(
        "@LowerCase",
        |machine, arguments| each_text(machine, arguments.texts(0)?, |text| text.to_lowercase_smolstr()),
        "text",
        "The text in small letters.",
        &[(r#"@LowerCase("Ann SMITH")"#, r#""ann smith""#)],
    ),
    text(
        "@UpperCase",
        |machine, arguments| each_text(machine, arguments.texts(0)?, |text| text.to_uppercase_smolstr()),
        "text",
        "The text in capital letters.",
        &[(r#"@UpperCase("Ann":"ben")"#, r#""ANN":"BEN""#)],
    ),
    text(
        "@ProperCase",
        |machine, arguments| each_text(machine, arguments.texts(0)?, proper_case),
        "text",
        "The text with a capital letter at the beginning of each word and small letters behind it.",
        &[(r#"@ProperCase("ann o'neil-SMITH")"#, r#""Ann O'neil-Smith""#)],
    ),
    text(
        "@Trim",
        trim,
        "text",
        "The text without blanks at its ends and with single blanks inside; a list without its empty elements.",
        &[(r#"@Trim("  a   b ")"#, r#""a b""#), (r#"@Trim("a":"":" b ")"#, r#""a":"b""#)],
    ),
    text(
        "@Length",
        length,
        "text",
        "The number of characters of each text.",
        &[(r#"@Length("Scrinium")"#, "8"), (r#"@Length("a":"":"für")"#, "1:0:3")],
    ),
    text(
        "@Repeat",
        repeat,
        "text; count; [most characters]",
        "The text repeated this many times, cut to the number of characters if that is given.",
        &[(r#"@Repeat("ab"; 3)"#, r#""ababab""#), (r#"@Repeat("ab"; 3; 5)"#, r#""ababa""#)],
    ),
    text("@NewLine", |_, _| Ok(Value::text("\n")), "", "The end of a line.", &[("@Length(@NewLine)", "1")]),
    text(
        "@Char",
        char_of,
        "number",
        "The character of this number in Unicode.",
        &[("@Char(65:97)", r#""A":"a""#)],
    ),
    text(
        "@Contains",
        |machine, arguments| any_within(machine, arguments, |text, part| text.contains(part)),
        "text; part",
        "Whether a text contains a part; of two lists, whether any element contains any part.",
        &[
            (r#"@Contains("Hello there"; "there")"#, "1"),
            (r#"@Contains("a":"bcd"; "x":"c")"#, "1"),
            (r#"@Contains("Hello"; "hello")"#, "0"),
        ],
    ),
    text(
        "@Begins",
        |machine, arguments| any_within(machine, arguments, |text, part| text.starts_with(part)),
        "text; part",
        "Whether a text begins with a part; of two lists, whether any element begins with any part.",
        &[(r#"@Begins("Re: lunch"; "Re:":"Fw:")"#, "1"), (r#"@Begins("lunch"; "Re:")"#, "0")],
    ),
    text(
        "@Ends",
        |machine, arguments| any_within(machine, arguments, |text, part| text.ends_with(part)),
        "text; part",
        "Whether a text ends with a part; of two lists, whether any element ends with any part.",
        &[(r#"@Ends("photo.png"; ".png":".jpg")"#, "1")],
    ),
    text(
        "@FileDir",
        |machine, arguments| each_text(machine, arguments.texts(0)?, directory),
        "path",
        "The path of a file without its name.",
        &[(r#"@FileDir("c:\\data\\mail.nsf":"a/b.txt":"c.txt")"#, r#""c:\\data\\":"a/":"""#)],
    ),
    text(
        "@ReplaceSubstring",
        replace_substring,
        "text; from; to",
        "The text with each part in 'from' replaced by its partner in 'to', one after the other.",
        &[
            (r#"@ReplaceSubstring("I like it"; "like"; "love")"#, r#""I love it""#),
            (r#"@ReplaceSubstring("a-b_c"; "-":"_"; " ")"#, r#""a b c""#),
        ],
    ),
];

fn proper_case(text: &str) -> Text {
    let mut inside = false;
    let mut result = String::with_capacity(text.len());
    for character in text.chars() {
        if inside {
            result.extend(character.to_lowercase());
        } else {
            result.extend(character.to_uppercase());
        }
        inside = character.is_alphanumeric() || matches!(character, '\'' | '’');
    }
    Text::new(result)
}

fn directory(path: &str) -> Text {
    Text::new(path.rfind(['/', '\\']).and_then(|place| path.get(..=place)).unwrap_or(""))
}

fn trim(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let mut results = Vec::new();
    for text in arguments.texts(0)?.iter() {
        machine.charge_text(text.len())?;
        let clean = !text.starts_with(' ') && !text.ends_with(' ') && !text.contains("  ");
        let trimmed = if clean {
            text.clone()
        } else {
            let mut words = text.split(' ').filter(|word| !word.is_empty());
            let mut result = words.next().unwrap_or("").to_owned();
            for word in words {
                result.push(' ');
                result.push_str(word);
            }
            Text::new(result)
        };
        if !trimmed.is_empty() {
            results.push(trimmed);
        }
    }
    Ok(Value::texts(results))
}

fn length(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let texts = arguments.texts(0)?;
    machine.charge(arguments.value(0)?.weight())?;
    Ok(Value::Number(texts.map(|text| from_count(text.chars().count()))))
}

fn repeat(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let count = arguments.count_of(1)?;
    let most = if arguments.count() > 2 { Some(arguments.count_of(2)?) } else { None };
    let results = arguments.texts(0)?.try_map(|text| {
        let characters = text.chars().count();
        // Repeating more often than the limit has room for would only be cut away again.
        let count = match most {
            Some(most) if characters > 0 => count.min(most.div_ceil(characters)),
            _ => count,
        };
        machine.charge_text(text.len().saturating_mul(count))?;
        let repeated = text.repeat(count);
        let cut = most
            .and_then(|most| repeated.char_indices().nth(most))
            .map_or(repeated.len(), |(place, _)| place);
        Ok::<_, Fault>(Text::new(repeated.get(..cut).unwrap_or("")))
    })?;
    Ok(Value::Text(results))
}

fn char_of(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let numbers = arguments.numbers(0)?;
    machine.charge(numbers.len())?;
    let characters = numbers.try_map(|number| {
        let character = u32::try_from(whole(*number)).ok().and_then(char::from_u32);
        let character = character
            .ok_or_else(|| arguments.message(format!("{number} is not the number of a character")))?;
        Ok::<_, Fault>(Text::new(character.encode_utf8(&mut [0; 4])))
    })?;
    Ok(Value::Text(characters))
}

fn any_within(
    machine: &mut Machine<'_>,
    arguments: &Arguments<'_>,
    within: fn(&str, &str) -> bool,
) -> MachineResult {
    let (texts, parts) = (arguments.texts(0)?, arguments.texts(1)?);
    for text in texts.iter() {
        for part in parts.iter() {
            machine.charge(1 + text.len() / 64)?;
            if within(text, part) {
                return Ok(Value::truth(true));
            }
        }
    }
    Ok(Value::truth(false))
}

fn replace_substring(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let (from, to) = (arguments.texts(1)?, arguments.texts(2)?);
    let results = arguments.texts(0)?.try_map(|text| {
        let mut text = text.clone();
        for (from, to) in pairs(from, to).take(from.len()) {
            machine.charge_text(text.len())?;
            if from.is_empty() {
                continue;
            }
            let count = text.matches(from.as_str()).count();
            if count > 0 {
                machine.charge_text(
                    (text.len() - count * from.len()).saturating_add(count.saturating_mul(to.len())),
                )?;
                text = text.replace_smolstr(from, to);
            }
        }
        Ok::<_, Fault>(text)
    })?;
    Ok(Value::Text(results))
}
