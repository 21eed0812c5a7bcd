//! Parts of texts, and taking texts apart and together.

use jiff::ToSpan;
use smol_str::format_smolstr;

use super::text::text;
use super::time::{count_of_days, days};
use super::time_format::{Clock, TimeFormat};
use super::{Arguments, Function, each_text};
use crate::datetime::DateTime;
use crate::machine::{Machine, MachineResult};
use crate::number::whole;
use crate::value::{Text, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    text(
        "@Left",
        |machine, arguments| {
            part(machine, arguments, |text, cut| match cut {
                Cut::Count(count) => text.get(..forward(text, *count)),
                Cut::Text(part) => text.find(part.as_str()).and_then(|place| text.get(..place)),
            })
        },
        "text; count or text",
        "The first characters of a text, or what stands before the first occurrence of another text.",
        &[
            (r#"@Left("Lennard Wallace"; 3)"#, r#""Len""#),
            (r#"@Left("Lennard Wallace"; " ")"#, r#""Lennard""#),
            (r#"@Left("abc"; "x")"#, r#""""#),
            (r#"@Left("abc"; -1)"#, r#""abc""#),
        ],
    ),
    text(
        "@LeftBack",
        |machine, arguments| {
            part(machine, arguments, |text, cut| match cut {
                Cut::Count(count) => text.get(..backward(text, *count)),
                Cut::Text(part) => text.rfind(part.as_str()).and_then(|place| text.get(..place)),
            })
        },
        "text; count or text",
        "A text without its last characters, or what stands before the last occurrence of another text.",
        &[
            (r#"@LeftBack("report.tar.gz"; ".")"#, r#""report.tar""#),
            (r#"@LeftBack("abcde"; 2)"#, r#""abc""#),
        ],
    ),
    text(
        "@Right",
        |machine, arguments| {
            part(machine, arguments, |text, cut| match cut {
                Cut::Count(count) => text.get(backward(text, *count)..),
                Cut::Text(part) => text.find(part.as_str()).and_then(|place| text.get(place + part.len()..)),
            })
        },
        "text; count or text",
        "The last characters of a text, or what stands behind the first occurrence of another text.",
        &[(r#"@Right("abcde"; 2)"#, r#""de""#), (r#"@Right("a=b=c"; "=")"#, r#""b=c""#)],
    ),
    text(
        "@RightBack",
        |machine, arguments| {
            part(machine, arguments, |text, cut| match cut {
                Cut::Count(count) => text.get(forward(text, *count)..),
                Cut::Text(part) => text.rfind(part.as_str()).and_then(|place| text.get(place + part.len()..)),
            })
        },
        "text; count or text",
        "A text without its first characters, or what stands behind the last occurrence of another text.",
        &[(r#"@RightBack("report.tar.gz"; ".")"#, r#""gz""#), (r#"@RightBack("abcde"; 2)"#, r#""cde""#)],
    ),
    text(
        "@Middle",
        |machine, arguments| middle(machine, arguments, false),
        "text; offset or text; count or text",
        "Characters from the middle, behind an offset or the first occurrence of a text: a number of them \
         (a negative one counts to the left) or all up to another text.",
        &[
            (r#"@Middle("North Carolina"; 4; 3)"#, r#""h C""#),
            (r#"@Middle("North Carolina"; 4; -3)"#, r#""ort""#),
            (r#"@Middle("North Carolina"; "th"; -2)"#, r#""or""#),
            (r#"@Middle("to [Ann] and [Ben]"; "["; "]")"#, r#""Ann""#),
        ],
    ),
    text(
        "@MiddleBack",
        |machine, arguments| middle(machine, arguments, true),
        "text; offset or text; count or text",
        "Characters from the middle, which is looked for from the end (the end of the text counts as one \
         character): behind an offset or the last occurrence of a text, a number of them (a negative one counts to \
         the left), or all before it back to another text.",
        &[
            (r#"@MiddleBack("Timothy Altman"; " "; 3)"#, r#""Alt""#),
            (r#"@MiddleBack("This is the text"; 5; "This")"#, r#"" is the ""#),
            (r#"@MiddleBack("This is the text"; "text"; "is")"#, r#"" the ""#),
            (r#"@MiddleBack("Hello world":"This is the time"; 0; " ")"#, r#""world":"time""#),
        ],
    ),
    text(
        "@Word",
        word,
        "text; separator; number",
        "The word at this place, counted from 1, or from the end if negative; empty if there is none.",
        &[
            (r#"@Word("Larson, Collins, and Jensen"; " "; 2)"#, r#""Collins,""#),
            (r#"@Word("a~b~c"; "~"; -1)"#, r#""c""#),
            (r#"@Word("a~b"; "~"; 5)"#, r#""""#),
        ],
    ),
    text(
        "@Explode",
        explode,
        "text or date-times; [separators]; [keep empty]; [at line ends]",
        "The parts of a text between separators: any of the given characters, or blank, comma and semicolon. \
         Empty parts are dropped unless kept; the end of a line separates unless specified otherwise. Of a range, or a \
         date-time, the dates of its days as texts, for which separators mean nothing; a time of day is shown as \
         @Text shows it.",
        &[
            (r#"@Explode("a b,c;d")"#, r#""a":"b":"c":"d""#),
            (r#"@Explode("a|b c|"; "|")"#, r#""a":"b c""#),
            (r#"@Explode("a||b"; "|"; @True)"#, r#""a":"":"b""#),
            ("@Explode([11/29/2026 - 12/01/2026])", r#""2026-11-29":"2026-11-30":"2026-12-01""#),
            ("@Explode([2026-11-21 17:00 - 2026-11-22 08:00])", r#""2026-11-21":"2026-11-22""#),
        ],
    ),
    text(
        "@Implode",
        implode,
        "list; [separator]",
        "The elements of a list in one text, with a blank or the given text between them.",
        &[(r#"@Implode("a":"b":"c")"#, r#""a b c""#), (r#"@Implode("a":"b"; ", ")"#, r#""a, b""#)],
    ),
];

/// Where a text is cut.
enum Cut {
    Count(usize),
    Text(Text),
}

/// A count or a text. A negative count does not count: the whole text is meant.
fn cut_at(arguments: &Arguments<'_>, index: usize) -> MachineResult<Option<Cut>> {
    match arguments.value(index)? {
        Value::Text(_) => Ok(Some(Cut::Text(arguments.text(index)?.clone()))),
        Value::Number(_) => Ok(usize::try_from(arguments.whole(index)?).ok().map(Cut::Count)),
        other => Err(arguments.wrong(index, "a number or text", other).into()),
    }
}

/// The byte behind this many characters.
fn forward(text: &str, count: usize) -> usize {
    text.char_indices().nth(count).map_or(text.len(), |(place, _)| place)
}

/// The byte before this many characters at the end.
fn backward(text: &str, count: usize) -> usize {
    match count.checked_sub(1) {
        None => text.len(),
        Some(before) => text.char_indices().rev().nth(before).map_or(0, |(place, _)| place),
    }
}

fn part(
    machine: &mut Machine<'_>,
    arguments: &Arguments<'_>,
    take: for<'t> fn(&'t str, &Cut) -> Option<&'t str>,
) -> MachineResult {
    let texts = arguments.texts(0)?;
    match cut_at(arguments, 1)? {
        None => Ok(arguments.value(0)?.clone()),
        Some(Cut::Text(part)) if part.is_empty() => each_text(machine, texts, |_| Text::default()),
        Some(cut) => each_text(machine, texts, |text| Text::new(take(text, &cut).unwrap_or(""))),
    }
}

/// Where the middle of a text begins: the bytes before and behind the offset or the text that marks it.
fn marked<'t>(text: &'t str, mark: &Cut, back: bool) -> Option<(&'t str, &'t str)> {
    let (start, end) = match mark {
        Cut::Count(count) if back => {
            // As in the original, the end of the text counts as one character.
            let place = backward(text, count.saturating_sub(1));
            (place, place)
        }
        Cut::Count(count) => {
            let place = forward(text, *count);
            (place, place)
        }
        Cut::Text(mark) => {
            let start = if back { text.rfind(mark.as_str()) } else { text.find(mark.as_str()) }?;
            (start, start + mark.len())
        }
    };
    Some((text.get(..start)?, text.get(end..)?))
}

fn middle(machine: &mut Machine<'_>, arguments: &Arguments<'_>, back: bool) -> MachineResult {
    let mark = cut_at(arguments, 1)?.unwrap_or(Cut::Count(0));
    let end = match arguments.value(2)? {
        Value::Text(_) => Err(arguments.text(2)?.clone()),
        _ => Ok(arguments.whole(2)?),
    };
    each_text(machine, arguments.texts(0)?, |text| {
        let Some((before, behind)) = marked(text, &mark, back) else { return Text::default() };
        Text::new(match &end {
            Ok(count) => {
                let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
                let found = if *count < 0 {
                    before.get(backward(before, size)..)
                } else {
                    behind.get(..forward(behind, size))
                };
                found.unwrap_or("")
            }
            Err(end) if back => {
                before.rfind(end.as_str()).and_then(|at| before.get(at + end.len()..)).unwrap_or(before)
            }
            Err(end) => behind.find(end.as_str()).and_then(|at| behind.get(..at)).unwrap_or(behind),
        })
    })
}

fn word(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let separator = arguments.text(1)?.clone();
    let number = whole(arguments.number(2)?);
    let place = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX).checked_sub(1);
    each_text(machine, arguments.texts(0)?, |text| {
        let Some(place) = place else { return Text::default() };
        if separator.is_empty() {
            return if place == 0 { Text::new(text) } else { Text::default() };
        }
        let found = if number > 0 {
            text.split(separator.as_str()).nth(place)
        } else {
            text.rsplit(separator.as_str()).nth(place)
        };
        Text::new(found.unwrap_or(""))
    })
}

fn explode(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    if let Value::Time(times) = arguments.value(0)? {
        return days_of(machine, times);
    }
    let separators = if arguments.count() > 1 { arguments.text(1)?.clone() } else { Text::new_static(" ,;") };
    let keep_empty = arguments.count() > 2 && arguments.number(2)? != 0.0;
    let at_lines = arguments.count() <= 3 || arguments.number(3)? != 0.0;
    let separates =
        |character: char| separators.contains(character) || (at_lines && matches!(character, '\n' | '\r'));
    let mut parts = Vec::new();
    for text in arguments.texts(0)?.iter() {
        machine.charge(text.len().saturating_mul(1 + separators.len() / 16) / 16)?;
        for part in text.split(separates) {
            if keep_empty || !part.is_empty() {
                parts.push(Text::new(part));
            }
        }
        machine.charge_list(parts.len())?;
    }
    Ok(Value::texts(parts))
}

/// The dates of all the days of these times.
fn days_of(machine: &mut Machine<'_>, times: &[DateTime]) -> MachineResult {
    let mut dates = Vec::new();
    for time in times {
        let Some((first, last)) = days(machine, *time)? else {
            machine.charge_growth(dates.len(), 1)?;
            dates.push(TimeFormat::default().show(&Clock { machine, zone: None }, *time)?);
            continue;
        };
        machine.charge_growth(dates.len(), count_of_days(first, last))?;
        let series = first.series(1.day()).take_while(|date| *date <= last);
        dates.extend(series.map(|date| format_smolstr!("{date}")));
    }
    Ok(Value::texts(dates))
}

fn implode(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let separator = if arguments.count() > 1 { arguments.text(1)?.clone() } else { Text::new_static(" ") };
    let texts = arguments.texts(0)?;
    if let Some(text) = texts.single() {
        return Ok(Value::text(text.clone()));
    }
    let bytes = texts.iter().map(|text| text.len().saturating_add(separator.len())).sum();
    machine.charge_text(bytes)?;
    let mut result = String::with_capacity(bytes);
    for (number, text) in texts.iter().enumerate() {
        if number > 0 {
            result.push_str(&separator);
        }
        result.push_str(text);
    }
    Ok(Value::text(result))
}
