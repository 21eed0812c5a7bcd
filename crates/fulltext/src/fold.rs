//! Words without what does not tell them apart: case, accents, widths, ligatures.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// Puts `word` as it is compared into `folded`, whose content goes.
pub(crate) fn fold_into(word: &str, folded: &mut String) {
    folded.clear();
    if word.is_ascii() {
        folded.push_str(word);
        folded.make_ascii_lowercase();
        return;
    }
    let plain = word.nfkd().filter(|character| !is_accent(*character)).flat_map(char::to_lowercase);
    let mut spelled = String::with_capacity(word.len());
    for character in plain.filter(|character| !is_accent(*character)) {
        match spelling(character) {
            Some(letters) => spelled.push_str(letters),
            None => spelled.push(character),
        }
    }
    folded.extend(spelled.nfc());
}

/// As [`fold_into`], in a string of its own.
pub(crate) fn folded(word: &str) -> String {
    let mut folded = String::with_capacity(word.len());
    fold_into(word, &mut folded);
    folded
}

/// `word` as stemmers want it: in small letters, with its accents.
pub(crate) fn lower_into(word: &str, lower: &mut String) {
    lower.clear();
    if word.is_ascii() {
        lower.push_str(word);
        lower.make_ascii_lowercase();
        return;
    }
    lower.extend(word.nfkc().flat_map(char::to_lowercase).filter(|character| !is_ignorable(*character)));
}

/// A text whose kana are of full width: half as wide, a letter and its mark are two.
pub(crate) fn widened(text: &str) -> Cow<'_, str> {
    let has_narrow =
        !text.is_ascii() && text.chars().any(|character| matches!(character, '\u{ff61}'..='\u{ff9f}'));
    if has_narrow { Cow::Owned(text.nfkc().collect()) } else { Cow::Borrowed(text) }
}

/// Marks that writers leave out: accents of Latin, Greek and Cyrillic, points of Hebrew and Arabic. Vowel signs of other
/// scripts and the marks of kana tell words apart.
fn is_accent(character: char) -> bool {
    matches!(character,
        '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{670}'
        | '\u{640}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{fe20}'..='\u{fe2f}')
        || is_ignorable(character)
}

/// What stands in words without being seen.
pub(crate) fn is_ignorable(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}')
}

/// Letters that have no decomposition and are often written otherwise.
fn spelling(character: char) -> Option<&'static str> {
    Some(match character {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ł' => "l",
        'ħ' => "h",
        'ŧ' => "t",
        'ı' => "i",
        'ς' => "σ",
        // NUL ends terms.
        '\0' => "",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::folded;

    #[test]
    fn what_readers_take_for_the_same_is_the_same() {
        for (word, same) in [
            ("Café", "cafe"),
            ("CAFE\u{301}", "cafe"),
            ("Straße", "strasse"),
            ("STRASSE", "strasse"),
            ("Ærø", "aero"),
            ("Łódź", "lodz"),
            ("İstanbul", "istanbul"),
            ("ΟΔΥΣΣΕΥΣ", "οδυσσευσ"),
            ("ὀδυσσεύς", "οδυσσευσ"),
            ("ｶﾞｲﾄﾞ", "ガイド"),
            ("ﬁne", "fine"),
            ("co\u{ad}operate", "cooperate"),
            ("שָׁלוֹם", "שלום"),
            ("مُحَمَّد", "محمد"),
            ("한국", "한국"),
            ("हिन्दी", "हिन्दी"),
            ("Ёлка", "елка"),
        ] {
            assert_eq!(folded(word), same, "{word}");
            assert_eq!(folded(same), same, "{same} stays");
        }
    }
}
