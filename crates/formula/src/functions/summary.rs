//! Short forms of long texts: `@Abstract` and `@AbstractSimple`.

use super::text::text;
use super::{Arguments, Function, flags, keyword};
use crate::machine::{Fault, Machine, MachineResult};
use crate::value::{Text, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        flags: flags::NAMES_FIELDS,
        ..text(
            "@Abstract",
            abstract_of,
            "steps; characters; beginning; fields",
            "What the fields of these names hold, behind the beginning, shortened step by step and cut to this many \
             characters. [TRYFIT] stops if it fits; [TEXTONLY] removes mail headers; [ABBREV] shortens by what was \
             asked for before: [TRIMPUNCT] blanks around punctuation, [DROPVOWELS] vowels within words, \
             [DROPFIRSTVOWEL] at their beginning too; [SAVE] and [RESTORE] keep and bring back the text. [RULE1] \
             to [RULE3] are the original's series of these, without the sorting of sentences at their end. A name \
             that is no field of text stands for itself.",
            &[
                (r#"@Abstract([TRYFIT]; 20; ""; "Subject")"#, r#""Lunch""#),
                (r#"@Abstract([DROPVOWELS]:[ABBREV]; 20; "S: "; "Subject")"#, r#""S: Lnch""#),
                (r#"@Abstract([RULE1]; 18; ""; "an example of a text")"#, r#""+an exmpl of a txt""#),
            ],
        )
    },
    Function {
        flags: flags::NAMES_FIELDS,
        ..text(
            "@AbstractSimple",
            simple,
            "fields",
            "For each name the beginning of the field: its first two paragraphs, but at most 100 characters, with \
             blanks for the ends of lines. A name that is no field of text stands for itself.",
            &[(r#"@AbstractSimple("Subject":"NoSuchField")"#, r#""Lunch":"NoSuchField""#)],
        )
    },
];

const SIMPLE_CHARACTERS: usize = 100;
const SIMPLE_PARAGRAPHS: usize = 2;
const MAX_BEGINNING_CHARACTERS: usize = 10;

/// The text of a field, or the name itself where that is no field of text.
fn named(machine: &mut Machine<'_>, name: &Text) -> MachineResult<String> {
    let text = match machine.field_named(name)? {
        Some(Value::Text(texts)) => texts.join(" "),
        _ => name.to_string(),
    };
    machine.charge_text(text.len())?;
    Ok(text)
}

fn simple(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let abstracts = arguments.texts(0)?.try_map(|name| {
        let text = named(machine, name)?;
        let paragraphs = text.lines().filter(|line| !line.trim().is_empty()).take(SIMPLE_PARAGRAPHS);
        let text = paragraphs.collect::<Vec<_>>().join(" ").replace('\t', " ");
        Ok::<_, Fault>(Text::new(cut(&text, SIMPLE_CHARACTERS)))
    })?;
    Ok(Value::Text(abstracts))
}

/// The first characters of a text.
fn cut(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// What a keyword of `@Abstract` does with the text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SummaryStep {
    /// Removes the header of a message.
    TextOnly,
    /// Ends the steps if the text fits, with this before it.
    TryFit(&'static str),
    /// Shortens by what was asked for before.
    Abbreviate,
    Vowels(Vowels),
    TrimPunctuation(bool),
    TrimWhite(bool),
    Save,
    Restore,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Vowels {
    Kept,
    /// Those within words are left out.
    First,
    /// All are left out.
    Dropped,
}

/// What each keyword stands for. There is no dictionary of abbreviations and no list of significant words, so
/// that the keywords about them do nothing.
const WORDS: [(&str, &[SummaryStep]); 22] = [
    ("TEXTONLY", &[SummaryStep::TextOnly]),
    ("TRYFIT", &[SummaryStep::TryFit("")]),
    ("ABBREV", &[SummaryStep::Abbreviate]),
    ("DROPVOWELS", &[SummaryStep::Vowels(Vowels::First)]),
    ("DROPFIRSTVOWEL", &[SummaryStep::Vowels(Vowels::Dropped)]),
    ("KEEPFIRSTVOWEL", &[SummaryStep::Vowels(Vowels::First)]),
    ("KEEPVOWELS", &[SummaryStep::Vowels(Vowels::Kept)]),
    ("TRIMPUNCT", &[SummaryStep::TrimPunctuation(true)]),
    ("NOTRIMPUNCT", &[SummaryStep::TrimPunctuation(false)]),
    ("TRIMWHITE", &[SummaryStep::TrimWhite(true)]),
    ("NOTRIMWHITE", &[SummaryStep::TrimWhite(false)]),
    ("SAVE", &[SummaryStep::Save]),
    ("RESTORE", &[SummaryStep::Restore]),
    ("USEDICT", &[]),
    ("NODICT", &[]),
    ("STOPLIST", &[]),
    ("NOSTOPLIST", &[]),
    ("SIGLIST", &[]),
    ("NOSIGLIST", &[]),
    (
        "RULE1",
        &[
            SummaryStep::TextOnly,
            SummaryStep::TryFit(""),
            SummaryStep::TrimPunctuation(true),
            SummaryStep::Save,
            SummaryStep::Abbreviate,
            SummaryStep::TryFit("-"),
            SummaryStep::Restore,
            SummaryStep::Vowels(Vowels::First),
            SummaryStep::Abbreviate,
            SummaryStep::TryFit("+"),
        ],
    ),
    ("RULE2", &[SummaryStep::TrimPunctuation(true), SummaryStep::Abbreviate]),
    (
        "RULE3",
        &[
            SummaryStep::TextOnly,
            SummaryStep::TryFit(""),
            SummaryStep::TrimPunctuation(true),
            SummaryStep::Save,
            SummaryStep::Abbreviate,
            SummaryStep::TryFit(""),
            SummaryStep::Restore,
            SummaryStep::Vowels(Vowels::First),
            SummaryStep::Abbreviate,
            SummaryStep::TryFit(""),
        ],
    ),
];

fn abstract_of(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let steps = steps(arguments)?;
    let characters = arguments.count_of(1)?;
    let beginning = arguments.text(2)?;
    if beginning.chars().count() > MAX_BEGINNING_CHARACTERS {
        let message = format!("'beginning' has more than {MAX_BEGINNING_CHARACTERS} characters");
        return Err(arguments.message(message).into());
    }
    let mut text = String::new();
    for name in arguments.texts(3)?.iter() {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&named(machine, name)?);
        machine.charge_text(text.len())?;
    }
    machine.charge(steps.len().saturating_mul(text.len() / 16))?;
    let shortened = shortened(text, &steps, beginning, characters);
    Ok(Value::text(cut(&shortened, characters)))
}

fn steps(arguments: &Arguments<'_>) -> MachineResult<Vec<SummaryStep>> {
    let mut steps = Vec::new();
    for word in arguments.texts(0)?.iter().map(|word| keyword(word)).filter(|word| !word.is_empty()) {
        let Some((_, found)) = WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) else {
            let word = word.to_ascii_uppercase();
            return Err(arguments
                .message(format!("[{word}] is not a step; use for example [TRYFIT]"))
                .into());
        };
        steps.extend_from_slice(found);
    }
    Ok(steps)
}

fn shortened(mut text: String, steps: &[SummaryStep], beginning: &str, characters: usize) -> String {
    let (mut vowels, mut trim_punctuation, mut trim_white) = (Vowels::Kept, false, true);
    let mut saved = text.clone();
    for step in steps {
        match step {
            SummaryStep::TextOnly => text = without_header(&text).to_owned(),
            SummaryStep::TryFit(mark) => {
                let whole = format!("{mark}{beginning}{}", on_one_line(&text));
                if whole.chars().count() <= characters {
                    return whole;
                }
            }
            SummaryStep::Abbreviate => {
                if trim_white {
                    text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                }
                if trim_punctuation {
                    text = without_blanks_around_punctuation(&text);
                }
                text = without_vowels(&text, vowels);
            }
            SummaryStep::Vowels(which) => vowels = *which,
            SummaryStep::TrimPunctuation(trim) => trim_punctuation = *trim,
            SummaryStep::TrimWhite(trim) => trim_white = *trim,
            SummaryStep::Save => saved.clone_from(&text),
            SummaryStep::Restore => text.clone_from(&saved),
        }
    }
    format!("{beginning}{}", on_one_line(&text))
}

fn on_one_line(text: &str) -> String {
    text.replace("\r\n", " ").replace(['\r', '\n'], " ")
}

/// What stands behind lines such as `Subject: lunch`.
fn without_header(text: &str) -> &str {
    let is_header = |line: &str| {
        line.split_once(':').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
    };
    let mut rest = text;
    while let Some((line, behind)) = rest.split_once('\n') {
        if !is_header(line) {
            break;
        }
        rest = behind;
    }
    rest.trim_start()
}

fn without_blanks_around_punctuation(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_punctuation() {
            result.truncate(result.trim_end().len());
        } else if character.is_whitespace() && result.ends_with(|last: char| last.is_ascii_punctuation()) {
            continue;
        }
        result.push(character);
    }
    result
}

fn without_vowels(text: &str, vowels: Vowels) -> String {
    if vowels == Vowels::Kept {
        return text.to_owned();
    }
    let mut inside = false;
    let kept = text.chars().filter(|character| {
        let first = !inside;
        inside = character.is_alphanumeric();
        let is_vowel = matches!(character.to_ascii_lowercase(), 'a' | 'e' | 'i' | 'o' | 'u');
        !is_vowel || (first && vowels == Vowels::First)
    });
    kept.collect()
}
