//! The same text in other characters: in ASCII, and in the wide and narrow forms of East Asia.

use smol_str::SmolStrBuilder;

use super::text::text;
use super::{Arguments, Function, each_text};
use crate::machine::{Machine, MachineResult};
use crate::value::Text;

pub(super) const FUNCTIONS: &[Function] = &[
    text(
        "@Ascii",
        ascii,
        "text; [option]",
        "The text in ASCII: letters without their accents, and ? for what ASCII lacks. With [ALLINRANGE] the empty \
         text if that has a ?, as in the original even if it was there before.",
        &[
            (r#"@Ascii("Çüé")"#, r#""Cue""#),
            (r#"@Ascii("Łódź – für 5 €")"#, r#""Lodz - fur 5 ?""#),
            (r#"@Ascii("Cue":"€"; [ALLINRANGE])"#, r#""Cue":"""#),
        ],
    ),
    text(
        "@Wide",
        |machine, arguments| each_text(machine, arguments.texts(0)?, wide),
        "text",
        "The text with letters, digits and signs of ASCII, and narrow katakana, in their wide forms.",
        &[(r#"@Wide("New York")"#, r#""Ｎｅｗ　Ｙｏｒｋ""#), (r#"@Wide("ｶﾞｽ")"#, r#""ガス""#)],
    ),
    text(
        "@Narrow",
        |machine, arguments| each_text(machine, arguments.texts(0)?, narrow),
        "text",
        "The text with wide letters, digits, signs and katakana in their narrow forms.",
        &[(r#"@Narrow("Ｔｏｋｙｏ")"#, r#""Tokyo""#), (r#"@Narrow("ガス")"#, r#""ｶﾞｽ""#)],
    ),
];

/// The letters from U+00C0 to U+017F without what stands on, under or through them.
const PLAIN_LETTERS: &str = "\
    AAAAAA?CEEEEIIIIDNOOOOO?OUUUUY??aaaaaa?ceeeeiiiidnooooo?ouuuuy?y\
    AaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIi??JjKkkLlLlLlLlLlNnNnNnn??OoOoOo??RrRrRr\
    SsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZz?";

const FIRST_LETTER: u32 = 0xC0;

fn ascii(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let whole_only = arguments.has_keyword(1, "ALLINRANGE");
    each_text(machine, arguments.texts(0)?, |text| {
        let mut result = SmolStrBuilder::new();
        text.chars().filter_map(ascii_character).for_each(|character| result.push(character));
        let result = result.finish();
        if whole_only && result.contains('?') { Text::default() } else { result }
    })
}

/// None for an accent that stands behind its letter.
fn ascii_character(character: char) -> Option<char> {
    Some(match character {
        ' '..='~' => character,
        '\u{300}'..='\u{36F}' => return None,
        '\u{A0}' => ' ',
        '\u{2010}'..='\u{2015}' => '-',
        '\u{2018}'..='\u{201B}' => '\'',
        '\u{201C}'..='\u{201F}' => '"',
        _ => {
            let place =
                u32::from(character).checked_sub(FIRST_LETTER).and_then(|place| place.try_into().ok());
            place.and_then(|place| PLAIN_LETTERS.chars().nth(place)).unwrap_or('?')
        }
    })
}

/// How far the wide forms of `!` to `~` are behind them.
const WIDE_OFFSET: u32 = 0xFEE0;

const WIDE_BLANK: char = '\u{3000}';

/// The wide forms of the narrow katakana and their signs, which begin at `｡`.
const KATAKANA: &str = "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜";

const FIRST_NARROW: char = '｡';

/// The signs that stand behind narrow katakana but are a part of wide ones.
const VOICED: char = 'ﾞ';
const HALF_VOICED: char = 'ﾟ';

fn wide(text: &str) -> Text {
    let mut result = String::with_capacity(text.len() * 3);
    for character in text.chars() {
        if let Some(marked) = result.chars().next_back().and_then(|last| marked(last, character)) {
            result.pop();
            result.push(marked);
            continue;
        }
        result.push(match character {
            ' ' => WIDE_BLANK,
            '!'..='~' => moved(character, WIDE_OFFSET),
            FIRST_NARROW..=HALF_VOICED => {
                let place = u32::from(character) - u32::from(FIRST_NARROW);
                KATAKANA.chars().nth(usize::try_from(place).unwrap_or(usize::MAX)).unwrap_or(character)
            }
            other => other,
        });
    }
    Text::new(result)
}

fn narrow(text: &str) -> Text {
    let mut result = SmolStrBuilder::new();
    for character in text.chars() {
        match character {
            WIDE_BLANK => result.push(' '),
            '！'..='～' => result.push(moved(character, WIDE_OFFSET.wrapping_neg())),
            _ => match unmarked(character) {
                Some((base, mark)) => {
                    result.push(narrow_katakana(base));
                    result.push(mark);
                }
                None => result.push(narrow_katakana(character)),
            },
        }
    }
    result.finish()
}

fn narrow_katakana(character: char) -> char {
    let place =
        KATAKANA.chars().position(|wide| wide == character).and_then(|place| u32::try_from(place).ok());
    place.map_or(character, |place| moved(FIRST_NARROW, place))
}

fn moved(character: char, by: u32) -> char {
    char::from_u32(u32::from(character).wrapping_add(by)).unwrap_or(character)
}

/// A wide katakana and the mark behind it as one.
fn marked(base: char, mark: char) -> Option<char> {
    match (base, mark) {
        ('ウ', VOICED) => Some('ヴ'),
        (base, VOICED) if "カキクケコサシスセソタチツテトハヒフヘホ".contains(base) => {
            Some(moved(base, 1))
        }
        (base, HALF_VOICED) if "ハヒフヘホ".contains(base) => Some(moved(base, 2)),
        _ => None,
    }
}

/// The other way round.
fn unmarked(character: char) -> Option<(char, char)> {
    let candidates = [
        ('ウ', VOICED),
        (moved(character, 1_u32.wrapping_neg()), VOICED),
        (moved(character, 2_u32.wrapping_neg()), HALF_VOICED),
    ];
    candidates.into_iter().find(|(base, mark)| marked(*base, *mark) == Some(character))
}
