//! Text cut into words.
//!
//! A word is a run of letters and digits. Words joined by `.`, `@`, `-`, `_` or `+` are a *compound*: an address, a host, a
//! version. Its parts are words, and if there is a `.` or an `@` in it, so are the whole, what is left and right of the `@`, and
//! the host without its first labels. Scripts that are written without blanks give each two neighbouring characters.

use unicode_normalization::char::is_combining_mark;

use crate::fold::is_ignorable;

/// Longer words are cut.
pub(crate) const WORD_BYTES_MAX: usize = 64;
/// Longer compounds have parts alone.
const COMPOUND_BYTES_MAX: usize = 128;
/// A host gives no more names than this.
const HOST_SUFFIXES_MAX: usize = 4;

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordKind {
    /// Letters and digits.
    Plain,
    /// Two neighbouring characters, or a lonely one, of a script without blanks.
    Pair,
    /// A compound, or a part of one that has parts; it stands where its first part stands.
    Compound,
}

/// A word where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<'t> {
    pub(crate) text: &'t str,
    /// Bytes before it.
    pub(crate) start: usize,
    /// Words before it.
    pub(crate) position: u32,
    pub(crate) kind: WordKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Other,
    /// Of a word, in any script with blanks.
    Letter,
    /// Of a script without blanks.
    Unspaced,
}

/// Calls `take` with each word until it answers `false`. The first word has position `first`; returns the next one. Linear in
/// the length of the text.
pub(crate) fn each_word<'t>(text: &'t str, first: u32, take: &mut dyn FnMut(Word<'t>) -> bool) -> u32 {
    let mut cutter = Cutter { text, bytes: text.as_bytes(), at: 0, position: first, take, goes_on: true };
    while cutter.goes_on && cutter.at < cutter.bytes.len() {
        let (class, bytes) = cutter.class_at(cutter.at);
        match class {
            Class::Other => cutter.at += bytes,
            Class::Letter => cutter.compound(),
            Class::Unspaced => cutter.unspaced(),
        }
    }
    cutter.position
}

struct Cutter<'t, 'f> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    position: u32,
    take: &'f mut dyn FnMut(Word<'t>) -> bool,
    goes_on: bool,
}

impl<'t> Cutter<'t, '_> {
    /// The class of the character at a byte, and its length; of the end, [`Class::Other`].
    fn class_at(&self, at: usize) -> (Class, usize) {
        match self.bytes.get(at) {
            None => (Class::Other, 0),
            Some(byte) if byte.is_ascii_alphanumeric() => (Class::Letter, 1),
            Some(byte) if byte.is_ascii() => (Class::Other, 1),
            Some(_) => {
                let character = self.text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or(' ');
                (class_of(character), character.len_utf8())
            }
        }
    }

    fn part_end(&self, mut at: usize) -> usize {
        loop {
            let (class, bytes) = self.class_at(at);
            let goes_on = class == Class::Letter
                || (bytes > 1 && class == Class::Other && self.text.get(at..).is_some_and(continues_word));
            if !goes_on {
                return at;
            }
            at += bytes;
        }
    }

    fn emit(&mut self, from: usize, to: usize, position: u32, kind: WordKind) {
        if let (true, Some(text)) = (self.goes_on, self.text.get(from..to)) {
            let text =
                cut(text, if kind == WordKind::Compound { COMPOUND_BYTES_MAX } else { WORD_BYTES_MAX });
            self.goes_on = (self.take)(Word { text, start: from, position, kind });
        }
    }

    fn compound(&mut self) {
        let (start, first) = (self.at, self.position);
        let mut has_name = false;
        while self.goes_on {
            let end = self.part_end(self.at);
            self.emit(self.at, end, self.position, WordKind::Plain);
            self.position = self.position.saturating_add(1);
            self.at = end;
            let joint = self.bytes.get(end).copied().unwrap_or_default();
            if !b".@-_+".contains(&joint) || self.class_at(end + 1).0 != Class::Letter {
                break;
            }
            has_name |= joint == b'.' || joint == b'@';
            self.at = end + 1;
        }
        if has_name && self.at - start <= COMPOUND_BYTES_MAX {
            self.names(start, self.at, first);
        }
    }

    /// The words of a compound that are more than one part.
    fn names(&mut self, start: usize, end: usize, position: u32) {
        self.emit(start, end, position, WordKind::Compound);
        let whole = self.text.get(start..end).unwrap_or_default();
        let mut host = start;
        if let Some(at) = whole.rfind('@') {
            if whole.get(..at).is_some_and(|local| local.contains(['.', '@'])) {
                self.emit(start, start + at, position, WordKind::Compound);
            }
            host = start + at + 1;
            if self.text.get(host..end).is_some_and(|host| host.contains('.')) {
                self.emit(host, end, position, WordKind::Compound);
            }
        }
        for _ in 0..HOST_SUFFIXES_MAX {
            let Some(dot) = self.text.get(host..end).and_then(|host| host.find('.')) else { return };
            host += dot + 1;
            if !self.text.get(host..end).is_some_and(|host| host.contains('.')) {
                return;
            }
            self.emit(host, end, position, WordKind::Compound);
        }
    }

    fn unspaced(&mut self) {
        let mut before: Option<usize> = None;
        let (mut at, mut pairs) = (self.at, 0);
        loop {
            let (class, bytes) = self.class_at(at);
            if class != Class::Unspaced || !self.goes_on {
                break;
            }
            if let Some(before) = before {
                self.emit(before, at + bytes, self.position, WordKind::Pair);
                self.position = self.position.saturating_add(1);
                pairs += 1;
            }
            before = Some(at);
            at += bytes;
        }
        if let (0, Some(lonely)) = (pairs, before) {
            self.emit(lonely, at, self.position, WordKind::Pair);
            self.position = self.position.saturating_add(1);
        }
        // A word that does not begin, since nobody wants more, is passed all the same.
        self.at = at.max(self.at + 1);
    }
}

/// The beginning of `text`, whole characters of at most `bytes_max` bytes.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

fn class_of(character: char) -> Class {
    match character {
        // Thai, Lao, Myanmar, Khmer; kana; ideographs; Hangul, which puts words together; half and full widths apart.
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
            if character.is_alphanumeric() || is_combining_mark(character) =>
        {
            Class::Unspaced
        }
        '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{3096}'
        | '\u{3099}'..='\u{309a}'
        | '\u{30a1}'..='\u{30fa}'
        | '\u{30fc}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}' => Class::Unspaced,
        _ if character.is_alphanumeric() => Class::Letter,
        _ => Class::Other,
    }
}

/// Marks over a letter, and what is not seen, do not end a word.
fn continues_word(rest: &str) -> bool {
    rest.chars().next().is_some_and(|character| is_combining_mark(character) || is_ignorable(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(&str, u32)> {
        let mut words = Vec::new();
        each_word(text, 0, &mut |word| {
            assert_eq!(text.get(word.start..word.start + word.text.len()), Some(word.text));
            words.push((word.text, word.position));
            true
        });
        words
    }

    #[test]
    fn words_are_letters_and_digits() {
        assert_eq!(words("Don't  (well-known)"), [("Don", 0), ("t", 1), ("well", 2), ("known", 3)]);
        assert_eq!(words("l’été 2026, 1,500 €"), [("l", 0), ("été", 1), ("2026", 2), ("1", 3), ("500", 4)]);
        assert_eq!(words("e\u{301}te\u{301} हिन्दी"), [("e\u{301}te\u{301}", 0), ("हिन्दी", 1)]);
        assert_eq!(words(" .-@ "), []);
    }

    #[test]
    fn addresses_and_hosts_are_words_and_so_are_their_parts() {
        assert_eq!(
            words("<jane.doe@mail.example.com>"),
            [
                ("jane", 0),
                ("doe", 1),
                ("mail", 2),
                ("example", 3),
                ("com", 4),
                ("jane.doe@mail.example.com", 0),
                ("jane.doe", 0),
                ("mail.example.com", 0),
                ("example.com", 0),
            ]
        );
        assert_eq!(words("v1.2."), [("v1", 0), ("2", 1), ("v1.2", 0)]);
    }

    #[test]
    fn scripts_without_blanks_give_pairs() {
        assert_eq!(words("東京都 x"), [("東京", 0), ("京都", 1), ("x", 2)]);
        assert_eq!(words("猫"), [("猫", 0)]);
        assert_eq!(words("第3章"), [("第", 0), ("3", 1), ("章", 2)]);
    }

    #[test]
    fn a_long_word_is_cut_and_who_has_enough_is_obeyed() {
        let long = "x".repeat(1000);
        assert_eq!(words(&long).first().map(|word| word.0.len()), Some(WORD_BYTES_MAX));
        let mut count = 0;
        each_word("a b c d.e 東京都", 0, &mut |_| {
            count += 1;
            count < 2
        });
        assert_eq!(count, 2);
    }
}
