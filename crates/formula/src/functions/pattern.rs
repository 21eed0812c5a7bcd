//! Patterns: `@Matches` and `@Like`.

use super::{Arguments, Body, Category, Function, flags};
use crate::machine::{Machine, MachineResult};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "@Matches",
        category: Category::Text,
        arguments: "text; pattern",
        help: "Whether a text as a whole has the form of a pattern; of two lists, whether any has. ? is any \
               character, * any text, {A-FX} one of a set, {!A-F} one outside it, +x any number of x, ! not, \
               & and, | or; a backslash takes away the meaning of the character behind it. Letters outside of \
               sets match in any case.",
        examples: &[
            (r#"@Matches("ABC"; "a?c")"#, "1"),
            (r#"@Matches("x7"; "{a-z}{0-9}")"#, "1"),
            (r#"@Matches("report.txt"; "*.doc | *.txt")"#, "1"),
            (r#"@Matches("aaab"; "+ab")"#, "1"),
            (r#"@Matches("abc"; "!*d*")"#, "1"),
            (r#"@Matches("a*"; "a\\*")"#, "1"),
        ],
        flags: flags::PURE,
        body: Body::Native(matches_pattern),
    },
    Function {
        name: "@Like",
        category: Category::Text,
        arguments: "text; pattern; [escape]",
        help: "Whether a text as a whole has the form of an SQL pattern: _ is any character, % any text; the \
               escape character takes away their meaning.",
        examples: &[
            (r#"@Like("A big test"; "A%test")"#, "1"),
            (r#"@Like("100%"; "1__/%"; "/")"#, "1"),
            (r#"@Like("abc"; "ABC")"#, "0"),
        ],
        flags: flags::PURE,
        body: Body::Native(like),
    },
];

/// One piece of a pattern.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    One(Matcher),
    /// Any number of these, none included.
    Many(Matcher),
}

#[derive(Clone, Debug, PartialEq)]
enum Matcher {
    Any,
    Exactly(char),
    /// In any case.
    Letter(char),
    Set {
        outside: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Piece {
    /// How many comparisons it takes at most.
    const fn cost(&self) -> usize {
        match self {
            Self::One(Matcher::Set { ranges, .. }) | Self::Many(Matcher::Set { ranges, .. }) => {
                1 + ranges.len()
            }
            _ => 1,
        }
    }
}

impl Matcher {
    fn accepts(&self, character: char) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(wanted) => *wanted == character,
            Self::Letter(wanted) => {
                *wanted == character || wanted.to_lowercase().eq(character.to_lowercase())
            }
            Self::Set { outside, ranges } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&character)) != *outside
            }
        }
    }
}

/// A pattern of `@Matches`: alternatives of conjunctions of pieces that may be negated.
type Alternatives = Vec<Vec<(bool, Vec<Piece>)>>;

/// Blanks next to `|` and `&` mean nothing.
fn read_pattern(pattern: &str) -> Alternatives {
    let mut alternatives: Alternatives = vec![vec![(false, Vec::new())]];
    let mut characters = pattern.chars();
    let mut after_operator = false;
    while let Some(character) = characters.next() {
        if after_operator && character == ' ' {
            continue;
        }
        after_operator = matches!(character, '|' | '&');
        if after_operator && let Some((_, pieces)) = alternatives.last_mut().and_then(|all| all.last_mut()) {
            while pieces.last() == Some(&Piece::One(Matcher::Letter(' '))) {
                pieces.pop();
            }
        }
        match character {
            '|' => alternatives.push(vec![(false, Vec::new())]),
            '&' => {
                if let Some(all) = alternatives.last_mut() {
                    all.push((false, Vec::new()));
                }
            }
            _ => {
                let Some((negated, pieces)) = alternatives.last_mut().and_then(|all| all.last_mut()) else {
                    break;
                };
                match character {
                    '!' if pieces.is_empty() => *negated = !*negated,
                    '*' => pieces.push(Piece::Many(Matcher::Any)),
                    '+' => {
                        let repeated = characters.next().map(|next| read_matcher(next, &mut characters));
                        pieces.extend(repeated.map(Piece::Many));
                    }
                    other => pieces.push(Piece::One(read_matcher(other, &mut characters))),
                }
            }
        }
    }
    alternatives
}

fn read_matcher(first: char, rest: &mut std::str::Chars<'_>) -> Matcher {
    match first {
        '?' => Matcher::Any,
        '\\' => Matcher::Letter(rest.next().unwrap_or('\\')),
        '{' => {
            let mut outside = false;
            let mut ranges: Vec<(char, char)> = Vec::new();
            let mut after_hyphen = false;
            for (number, character) in rest.take_while(|character| *character != '}').enumerate() {
                match character {
                    '!' if number == 0 => outside = true,
                    '-' if !ranges.is_empty() && !after_hyphen => after_hyphen = true,
                    _ if after_hyphen => {
                        if let Some((_, to)) = ranges.last_mut() {
                            *to = character;
                        }
                        after_hyphen = false;
                    }
                    _ => ranges.push((character, character)),
                }
            }
            if after_hyphen {
                ranges.push(('-', '-'));
            }
            Matcher::Set { outside, ranges }
        }
        other => Matcher::Letter(other),
    }
}

/// Whether a text as a whole fits these pieces. All places in the pattern that may have been reached are
/// followed at once, so that the time is the product of the two lengths at worst.
fn fits(machine: &mut Machine<'_>, text: &str, pieces: &[Piece]) -> MachineResult<bool> {
    let cost = 1 + pieces.iter().map(Piece::cost).sum::<usize>() / 8;
    let mut reached = vec![false; pieces.len() + 1];
    let mut next = reached.clone();
    if let Some(start) = reached.first_mut() {
        *start = true;
    }
    skip_optional(pieces, &mut reached);
    for character in text.chars() {
        machine.charge(cost)?;
        next.fill(false);
        let mut alive = false;
        for (place, piece) in pieces.iter().enumerate() {
            if !reached.get(place).copied().unwrap_or(false) {
                continue;
            }
            let target = match piece {
                Piece::One(matcher) if matcher.accepts(character) => place + 1,
                Piece::Many(matcher) if matcher.accepts(character) => place,
                _ => continue,
            };
            if let Some(target) = next.get_mut(target) {
                *target = true;
                alive = true;
            }
        }
        if !alive {
            return Ok(false);
        }
        skip_optional(pieces, &mut next);
        std::mem::swap(&mut reached, &mut next);
    }
    Ok(reached.last().copied().unwrap_or(false))
}

/// Marks what is reached by taking nothing for a piece that may be absent.
fn skip_optional(pieces: &[Piece], reached: &mut [bool]) {
    for (place, piece) in pieces.iter().enumerate() {
        if matches!(piece, Piece::Many(_))
            && reached.get(place).copied().unwrap_or(false)
            && let Some(next) = reached.get_mut(place + 1)
        {
            *next = true;
        }
    }
}

fn matches_pattern(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let (texts, patterns) = (arguments.texts(0)?, arguments.texts(1)?);
    for pattern in patterns.iter() {
        machine.charge_text(pattern.len())?;
        let alternatives = read_pattern(pattern);
        for text in texts.iter() {
            for all in &alternatives {
                let mut holds = true;
                for (negated, pieces) in all {
                    if fits(machine, text, pieces)? == *negated {
                        holds = false;
                        break;
                    }
                }
                if holds {
                    return Ok(Value::truth(true));
                }
            }
        }
    }
    Ok(Value::truth(false))
}

fn like(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let escape = if arguments.count() > 2 { arguments.text(2)?.chars().next() } else { None };
    let (texts, patterns) = (arguments.texts(0)?, arguments.texts(1)?);
    for pattern in patterns.iter() {
        machine.charge_text(pattern.len())?;
        let mut pieces = Vec::new();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            pieces.push(match character {
                _ if Some(character) == escape => {
                    Piece::One(Matcher::Exactly(characters.next().unwrap_or(character)))
                }
                '%' => Piece::Many(Matcher::Any),
                '_' => Piece::One(Matcher::Any),
                other => Piece::One(Matcher::Exactly(other)),
            });
        }
        for text in texts.iter() {
            if fits(machine, text, &pieces)? {
                return Ok(Value::truth(true));
            }
        }
    }
    Ok(Value::truth(false))
}
