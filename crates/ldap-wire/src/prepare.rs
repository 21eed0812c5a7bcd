//! Text prepared before it is compared (RFC 4518).

use stringprep::tables;
use unicode_normalization::UnicodeNormalization as _;

/// Where a text comes from, which decides what becomes of the spaces at its ends (section 2.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextOrigin {
    /// A whole value.
    Whole,
    /// The beginning of a value.
    Initial,
    /// Somewhere in a value.
    Middle,
    /// The end of a value.
    Last,
}

/// Maps, folds and normalises a text (sections 2.2 to 2.4). `None` if it holds what no text may: characters for private
/// use, none at all, or the one that stands for a lost one.
///
/// The standard has the characters of Unicode 3.2 alone. Those that came later are compared as they are, since people have
/// them in their names.
pub(crate) fn fold(text: &str, ignores_case: bool) -> Option<String> {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Some(if ignores_case { text.to_ascii_lowercase() } else { text.to_owned() });
    }
    let mapped = text.chars().filter(|character| !is_mapped_to_nothing(*character));
    let mapped =
        mapped.map(|character| if tables::x520_mapped_to_space(character) { ' ' } else { character });
    let folded: String = if ignores_case {
        mapped.flat_map(tables::case_fold_for_nfkc).nfkc().collect()
    } else {
        mapped.nfkc().collect()
    };
    let is_prohibited = |character: char| {
        tables::private_use(character)
            || tables::non_character_code_point(character)
            || character == '\u{fffd}'
    };
    (!folded.contains(is_prohibited)).then_some(folded)
}

/// Section 2.2: also ZERO WIDTH SPACE and what joins or directs characters, which people paste without seeing it.
fn is_mapped_to_nothing(character: char) -> bool {
    tables::x520_mapped_to_nothing(character)
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Spaces that mean nothing (section 2.6.1): a value begins and ends with one, and has two wherever it has any, so that a
/// part which ends with a space and one which begins with a space are both found in it.
pub(crate) fn spaces(text: &str, place: TextOrigin) -> String {
    let mut words = text.split(' ').filter(|word| !word.is_empty());
    let Some(first) = words.next() else {
        return if place == TextOrigin::Whole { "  ".to_owned() } else { " ".to_owned() };
    };
    let begins = match place {
        TextOrigin::Whole | TextOrigin::Initial => true,
        TextOrigin::Middle | TextOrigin::Last => text.starts_with(' '),
    };
    let ends = match place {
        TextOrigin::Whole | TextOrigin::Last => true,
        TextOrigin::Initial | TextOrigin::Middle => text.ends_with(' '),
    };
    let mut prepared = String::with_capacity(text.len() + 2);
    if begins {
        prepared.push(' ');
    }
    prepared.push_str(first);
    for word in words {
        prepared.push_str("  ");
        prepared.push_str(word);
    }
    if ends {
        prepared.push(' ');
    }
    prepared
}

/// A text without these characters: spaces in numbers (section 2.6.2), spaces and hyphens in telephone numbers (2.6.3).
pub(crate) fn without(text: &str, ignores_hyphens: bool) -> String {
    let is_hyphen = |character: char| {
        matches!(character, '-' | '\u{58a}' | '\u{2010}' | '\u{2011}' | '\u{2212}' | '\u{fe63}' | '\u{ff0d}')
    };
    text.chars()
        .filter(|character| *character != ' ' && !(ignores_hyphens && is_hyphen(*character)))
        .collect()
}
