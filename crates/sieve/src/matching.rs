//! How a value is compared with keys: comparators (RFC 4790), match types (RFC 5228, section 2.7.1; RFC 5231) and
//! regular expressions.

use std::borrow::Cow;
use std::cmp::Ordering;

use regex::{Regex, RegexBuilder};

use crate::budget::Budget;
use crate::error::RunFault;
use crate::limits::Limits;
use crate::template::{CAPTURES_MAX, Template};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparator {
    Octet,
    AsciiCasemap,
    AsciiNumeric,
}

impl Comparator {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "i;octet" => Some(Self::Octet),
            "i;ascii-casemap" => Some(Self::AsciiCasemap),
            "i;ascii-numeric" => Some(Self::AsciiNumeric),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Octet => "i;octet",
            Self::AsciiCasemap => "i;ascii-casemap",
            Self::AsciiNumeric => "i;ascii-numeric",
        }
    }

    /// The text as it is compared; each byte stays where it is.
    fn folded(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::AsciiCasemap if text.bytes().any(|byte| byte.is_ascii_lowercase()) => {
                Cow::Owned(text.to_ascii_uppercase())
            }
            _ => Cow::Borrowed(text),
        }
    }

    pub(crate) fn order(self, left: &str, right: &str) -> Ordering {
        match self {
            Self::Octet => left.as_bytes().cmp(right.as_bytes()),
            Self::AsciiCasemap => {
                let upper =
                    |text: &str| text.bytes().map(|byte| byte.to_ascii_uppercase()).collect::<Vec<u8>>();
                upper(left).cmp(&upper(right))
            }
            Self::AsciiNumeric => numeric(left).cmp(&numeric(right)),
        }
    }
}

/// The number that a text begins with, as it is ordered: digits without leading zeros, longer ones are larger. A text
/// that begins with no digit is infinite (RFC 4790, section 9.1.1).
fn numeric(text: &str) -> (bool, usize, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let digits = text.get(..end).unwrap_or_default();
    let significant = digits.trim_start_matches('0');
    (digits.is_empty(), significant.len(), significant)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
}

impl Relation {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "gt" => Some(Self::Greater),
            "ge" => Some(Self::GreaterOrEqual),
            "lt" => Some(Self::Less),
            "le" => Some(Self::LessOrEqual),
            "eq" => Some(Self::Equal),
            "ne" => Some(Self::NotEqual),
            _ => None,
        }
    }

    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchKind {
    Is,
    Contains,
    Matches,
    Regex,
    Value(Relation),
    Count(Relation),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Matching {
    pub(crate) comparator: Comparator,
    pub(crate) kind: MatchKind,
}

/// Keys, with the regular expressions of those that are constant.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) templates: Vec<Template>,
    /// One for each key if the match type is a regular expression, else none.
    pub(crate) regexes: Vec<Option<Regex>>,
}

/// Compiles a regular expression. It takes linear time, whatever the text (RFC 5228 has none; the draft's syntax is
/// that of POSIX, of which everything but collating symbols is understood).
pub(crate) fn compile_regex(pattern: &str, comparator: Comparator, limits: &Limits) -> Result<Regex, String> {
    if pattern.len() > limits.regex_bytes {
        return Err(format!("it has more than {} bytes", limits.regex_bytes));
    }
    RegexBuilder::new(pattern)
        .case_insensitive(comparator == Comparator::AsciiCasemap)
        .dot_matches_new_line(true)
        .size_limit(limits.regex_memory_bytes)
        .dfa_size_limit(limits.regex_memory_bytes)
        .nest_limit(32)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it needs too much memory".to_owned(),
            other => {
                // The last line says what is wrong; those before it draw the place.
                let text = other.to_string();
                text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
            }
        })
}

/// What the wildcards or groups of a successful match stand for: `${0}`, `${1}` (RFC 5229, section 3.2).
pub(crate) type Captures = Vec<String>;

/// Compares one value with one key. `Some` is a match, with captures if the match type has them.
pub(crate) fn matches(
    matching: Matching,
    value: &str,
    key: &str,
    budget: &mut Budget,
) -> Result<Option<Option<Captures>>, RunFault> {
    let Matching { comparator, kind } = matching;
    budget.work(value.len() + key.len())?;
    let matched = match kind {
        MatchKind::Is => comparator.order(value, key).is_eq(),
        // Counts are compared by the caller, as values; a regular expression by `matches_regex`.
        MatchKind::Value(relation) | MatchKind::Count(relation) => {
            relation.holds(comparator.order(value, key))
        }
        MatchKind::Contains => comparator.folded(value).contains(comparator.folded(key).as_ref()),
        MatchKind::Matches => {
            let found = glob(&comparator.folded(key), &comparator.folded(value), value, budget)?;
            return Ok(found.map(Some));
        }
        MatchKind::Regex => false,
    };
    Ok(matched.then_some(None))
}

/// Compares one value with a regular expression.
pub(crate) fn matches_regex(
    regex: &Regex,
    value: &str,
    budget: &mut Budget,
) -> Result<Option<Captures>, RunFault> {
    budget.work(value.len().saturating_mul(4))?;
    let found = regex.captures(value).map(|captures| {
        let groups = captures.iter().take(CAPTURES_MAX + 1);
        groups.map(|group| group.map_or_else(String::new, |group| group.as_str().to_owned())).collect()
    });
    Ok(found)
}

#[derive(Debug)]
enum Token {
    Literal(String),
    /// `?`: one character.
    One,
}

/// The pieces between the stars. A backslash takes the meaning of `*`, `?` and itself (RFC 5228, section 2.7.1).
fn segments(pattern: &str) -> Vec<Vec<Token>> {
    let mut segments = Vec::new();
    let mut segment = Vec::new();
    let mut literal = String::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '*' | '?' => {
                if !literal.is_empty() {
                    segment.push(Token::Literal(std::mem::take(&mut literal)));
                }
                if character == '?' {
                    segment.push(Token::One);
                } else {
                    segments.push(std::mem::take(&mut segment));
                }
            }
            '\\' => literal.extend(characters.next()),
            _ => literal.push(character),
        }
    }
    if !literal.is_empty() {
        segment.push(Token::Literal(literal));
    }
    segments.push(segment);
    segments
}

/// Matches wildcards; each star stands for as little as possible (RFC 5229, section 3.2). Each piece between stars is
/// looked for from left to right, so nothing is ever taken back but within a piece, and that is paid from the budget.
fn glob(
    pattern: &str,
    value: &str,
    original: &str,
    budget: &mut Budget,
) -> Result<Option<Captures>, RunFault> {
    let segments = segments(pattern);
    let mut spans = Vec::new();
    let Some((first, others)) = segments.split_first() else { return Ok(None) };
    let Some(mut at) = forward(first, value, 0, &mut spans) else { return Ok(None) };
    let Some((last, middle)) = others.split_last() else {
        return Ok((at == value.len()).then(|| captures(original, &spans)));
    };
    for segment in middle {
        let Some((start, end, inner)) = find(segment, value, at, budget)? else { return Ok(None) };
        spans.push((at, start));
        spans.extend(inner);
        at = end;
    }
    let Some((start, inner)) = backward(last, value, at) else { return Ok(None) };
    spans.push((at, start));
    spans.extend(inner);
    Ok(Some(captures(original, &spans)))
}

type Span = (usize, usize);

fn captures(original: &str, spans: &[Span]) -> Captures {
    let parts =
        spans.iter().take(CAPTURES_MAX).map(|(start, end)| original.get(*start..*end).unwrap_or_default());
    std::iter::once(original).chain(parts).map(str::to_owned).collect()
}

/// Matches a piece at a place; gives where it ends.
fn forward(segment: &[Token], value: &str, mut at: usize, spans: &mut Vec<Span>) -> Option<usize> {
    for token in segment {
        let rest = value.get(at..)?;
        let length = match token {
            Token::Literal(literal) => rest.starts_with(literal.as_str()).then_some(literal.len())?,
            Token::One => {
                let length = rest.chars().next()?.len_utf8();
                spans.push((at, at + length));
                length
            }
        };
        at += length;
    }
    Some(at)
}

/// Matches a piece that ends with the value; gives where it begins, which is not before `from`.
fn backward(segment: &[Token], value: &str, from: usize) -> Option<(usize, Vec<Span>)> {
    let mut rest = value.get(from..)?;
    let mut spans = Vec::new();
    for token in segment.iter().rev() {
        match token {
            Token::Literal(literal) => rest = rest.strip_suffix(literal.as_str())?,
            Token::One => {
                let before = rest.get(..rest.len() - rest.chars().next_back()?.len_utf8())?;
                spans.push((from + before.len(), from + rest.len()));
                rest = before;
            }
        }
    }
    spans.reverse();
    Some((from + rest.len(), spans))
}

/// The first place from `from` on where a piece matches: where it begins and ends, and what its wildcards stand for.
fn find(
    segment: &[Token],
    value: &str,
    from: usize,
    budget: &mut Budget,
) -> Result<Option<(usize, usize, Vec<Span>)>, RunFault> {
    let cost: usize =
        segment.iter().map(|token| if let Token::Literal(text) = token { text.len() } else { 1 }).sum();
    let mut start = from;
    loop {
        budget.work(cost)?;
        // The next place where the piece's first text stands.
        if let Some(Token::Literal(literal)) = segment.first() {
            let rest = value.get(start..).unwrap_or_default();
            let Some(place) = rest.find(literal.as_str()) else {
                budget.work(rest.len())?;
                return Ok(None);
            };
            budget.work(place)?;
            start += place;
        }
        let mut spans = Vec::new();
        if let Some(end) = forward(segment, value, start, &mut spans) {
            return Ok(Some((start, end, spans)));
        }
        let Some(next) = value.get(start..).and_then(|rest| rest.chars().next()) else { return Ok(None) };
        start += next.len_utf8();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, value: &str) -> Option<Vec<String>> {
        let mut budget = Budget::new(&Limits::default());
        glob(pattern, value, value, &mut budget).unwrap()
    }

    #[test]
    fn a_star_takes_as_little_as_it_can() {
        let text = |parts: &[&str]| Some(parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>());
        assert_eq!(found("*-*-*", "a-b-c-d"), text(&["a-b-c-d", "a", "b", "c-d"]));
        assert_eq!(found("?é*x", "aéb xx"), text(&["aéb xx", "a", "b x"]));
        assert_eq!(found("a\\*b", "a*b"), text(&["a*b"]));
        assert_eq!(found("a\\*b", "axb"), None);
        assert_eq!(found("*", ""), text(&["", ""]));
        assert_eq!(found("", ""), text(&[""]));
        assert_eq!(found("??", "é"), None);
        assert_eq!(found("ab*ba", "aba"), None);
        assert_eq!(found("*a?c*", "aac abc"), text(&["aac abc", "", "a", " abc"]));
    }

    #[test]
    fn numbers_are_ordered_as_numbers() {
        let order = |left, right| Comparator::AsciiNumeric.order(left, right);
        assert_eq!(order("10", "9"), Ordering::Greater);
        assert_eq!(order("007x", "7"), Ordering::Equal);
        assert_eq!(order("x", "99999999999999999999999999"), Ordering::Greater);
        assert_eq!(order("x", ""), Ordering::Equal);
        assert_eq!(order("0", "00"), Ordering::Equal);
    }
}
