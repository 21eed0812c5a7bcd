//! Where texts that begin with a prefix lie in the collation.
//!
//! Not always together: a mark that follows makes another letter of the last one, some letters sort together with
//! the one behind them, and some scripts write vowels before the consonant that they sort behind. So the range is
//! that of a beginning of the prefix for which such cannot be; the rest is left to the condition.

/// U+FFFF, which the collation puts above all characters, and which is never to stand in a text.
pub(super) const LAST: char = '\u{ffff}';

/// More characters narrow no further, and would make a longer sort key than an index may keep.
const MAX_CHARACTERS: usize = 100;

/// A beginning of the prefix whose texts all lie from it to it with [`LAST`] behind.
pub(super) fn ordered_head(prefix: &str) -> &str {
    let plain = prefix.chars().take(MAX_CHARACTERS).take_while(|character| is_plain(*character));
    let end: usize = plain.map(char::len_utf8).sum();
    let head = prefix.get(..end).unwrap_or_default();
    // Whatever stands behind an ASCII letter leaves its place alone; another letter may become one with a mark.
    match head.char_indices().next_back() {
        Some((last, character)) if !character.is_ascii() => head.get(..last).unwrap_or_default(),
        _ => head,
    }
}

/// Characters that sort by themselves, whatever other of these stands next to them.
fn is_plain(character: char) -> bool {
    match character {
        ' '..='~' | '\u{4e00}'..='\u{9fff}' => true,
        // Latin, Greek and Cyrillic.
        '\u{c0}'..='\u{24f}' | '\u{388}'..='\u{481}' | '\u{48a}'..='\u{52f}' => character.is_alphabetic(),
        _ => false,
    }
}
