//! Encoded words (RFC 2047, with the languages of RFC 2231 §5), as they are written: touching text, split within a
//! character, without padding, with 8-bit characters and blanks in them.

use super::charset::CharacterSet;
use super::decode::base64_value;
use crate::notes::Notes;

/// No character set has a longer name.
const LONGEST_LABEL: usize = 60;

/// One encoded word, as it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct EncodedWord<'a> {
    /// Its bytes, from `=?` to `?=`.
    pub(super) length: usize,
    label: &'a [u8],
    is_base64: bool,
    text: &'a [u8],
}

impl<'a> EncodedWord<'a> {
    /// The word that `bytes` begin with.
    pub(super) fn at_start(bytes: &'a [u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(b"=?")?;
        let label_end = rest.iter().take(LONGEST_LABEL).position(|&byte| byte == b'?')?;
        let (label, rest) = rest.split_at_checked(label_end)?;
        if label.iter().any(u8::is_ascii_whitespace) {
            return None;
        }
        let (encoding, rest) = match rest {
            [b'?', encoding, b'?', rest @ ..] => (*encoding, rest),
            _ => return None,
        };
        let is_base64 = match encoding {
            b'b' | b'B' => true,
            b'q' | b'Q' => false,
            _ => return None,
        };
        let text_end = closing(rest)?;
        let length = bytes.len() - rest.len() + text_end + 2;
        // A language may follow the set.
        let label = label.split(|&byte| byte == b'*').next().unwrap_or_default();
        Some(Self { length, label, is_base64, text: rest.get(..text_end)? })
    }

    fn is_of_same_set(&self, other: &Self) -> bool {
        self.label.eq_ignore_ascii_case(other.label)
    }
}

/// Where a word's text ends. Another word's beginning shows that this one has no end.
fn closing(text: &[u8]) -> Option<usize> {
    let mut position = 0;
    loop {
        let rest = text.get(position..)?;
        position += rest.iter().position(|&byte| byte == b'?')?;
        match text.get(position + 1) {
            Some(b'=') => return Some(position),
            Some(_) if position > 0 && text.get(position - 1) == Some(&b'=') => return None,
            Some(_) => position += 1,
            None => return None,
        }
    }
}

/// The text of `bytes`: words are decoded, what stands between them is of the set `raw`. Blanks between two words are
/// left out (§6.2), and none are added.
pub(super) fn decode(bytes: &[u8], raw: CharacterSet, notes: &mut Notes) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut run = Run::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let blanks = rest.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(rest.len());
        let after_blanks = rest.get(blanks..).unwrap_or_default();
        if let Some(word) = EncodedWord::at_start(after_blanks) {
            if run.is_empty() {
                text.extend(rest.iter().take(blanks).map(|&byte| char::from(byte)));
            }
            run.add(&word, &mut text, notes);
            rest = after_blanks.get(word.length..).unwrap_or_default();
            continue;
        }
        run.finish(&mut text, notes);
        // Plain text up to where a word may begin, with the blanks before that.
        let end = plain_end(after_blanks) + blanks;
        let (plain, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        text.push_str(&raw.decode(plain, false, notes));
        rest = after;
    }
    run.finish(&mut text, notes);
    text
}

/// Where text that begins with no word ends: before the blanks that stand before the next `=?`.
fn plain_end(text: &[u8]) -> usize {
    let from = 1.min(text.len());
    let next = text.get(from..).unwrap_or_default().windows(2).position(|window| window == b"=?");
    let end = next.map_or(text.len(), |next| from + next);
    let before = text.get(..end).unwrap_or(text).trim_ascii_end().len();
    if next.is_some() && before > 0 { before } else { end }
}

/// Words that stand next to each other and are of one set: their bytes are put together before they are decoded, since
/// many senders split words within a character.
#[derive(Default)]
struct Run<'a> {
    first: Option<EncodedWord<'a>>,
    bytes: Vec<u8>,
    /// Bits of base64 that do not make a byte yet, and how many.
    held: (u32, u32),
}

impl<'a> Run<'a> {
    fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    fn add(&mut self, word: &EncodedWord<'a>, text: &mut String, notes: &mut Notes) {
        if self.first.is_some_and(|first| !first.is_of_same_set(word)) {
            self.finish(text, notes);
        }
        self.first.get_or_insert(*word);
        if word.is_base64 {
            self.add_base64(word.text);
        } else {
            self.held = (0, 0);
            self.add_quoted(word.text);
        }
    }

    /// Base64, with or without padding. Bits that are left over belong to the next word if they can be no padding: the
    /// sender has cut the encoded text itself into words.
    fn add_base64(&mut self, encoded: &[u8]) {
        let (mut held, mut bits) = self.held;
        for &byte in encoded {
            if byte == b'=' {
                bits = 0;
            }
            let Some(six_bits) = base64_value(byte) else { continue };
            held = ((held << 6) | u32::from(six_bits)) & 0xffff;
            bits += 6;
            if bits >= 8 {
                bits -= 8;
                self.bytes.extend(u8::try_from((held >> bits) & 0xff));
            }
        }
        let left_over = held & ((1 << bits) - 1);
        self.held = if bits == 6 || left_over != 0 { (held, bits) } else { (0, 0) };
    }

    /// The encoding `Q` (§4.2). What is no escape stays as it stands.
    fn add_quoted(&mut self, encoded: &[u8]) {
        let mut rest = encoded;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            let escaped = if byte == b'=' { super::decode::hex_byte(after) } else { None };
            match (byte, escaped) {
                (_, Some(escaped)) => {
                    self.bytes.push(escaped);
                    rest = after.get(2..).unwrap_or_default();
                }
                (b'_', None) => self.bytes.push(b' '),
                (byte, None) => self.bytes.push(byte),
            }
        }
    }

    fn finish(&mut self, text: &mut String, notes: &mut Notes) {
        let Some(word) = self.first.take() else { return };
        let set = CharacterSet::named(&String::from_utf8_lossy(word.label));
        text.push_str(&set.decode(&self.bytes, false, notes));
        self.bytes.clear();
        self.held = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::charset::CharacterSet;
    use super::decode;
    use crate::notes::Notes;

    fn read(bytes: &[u8]) -> String {
        decode(bytes, CharacterSet::Undeclared, &mut Notes::default())
    }

    #[test]
    fn encoded_words_are_read_as_people_wrote_them() {
        for (written, text) in [
            (&b"=?utf-8?Q?Gr=C3=BC=C3=9Fe?=. Ende (=?utf-8?Q?K=C3=B6ln?=)"[..], "Grüße. Ende (Köln)"),
            (b"=?utf-8?B?0JzQ?=   =?UTF-8?B?uNGA?=", "Мир"),
            (b"=?utf-8?Q?=D0=9C=D0?= =?utf-8?Q?=B8=D1=80?=", "Мир"),
            (b"=?utf-8?B?0JzQ?==?utf-8?q?=b8=d1=80?=", "Мир"),
            (b"=?utf-8?B?SGVsbG8?=", "Hello"),
            (b"=?utf-8?B?SGVsbG8?= =?utf-8?B?SGVsbG8?=", "HelloHello"),
            (b"=?utf-8?B?SGVsb?= =?utf-8?B?G8gdGhlcmU=?=", "Hello there"),
            (b"=?utf-8?B?SGVsbG8=SGk=?=", "HelloHi"),
            (b"=?iso-8859-1?Q?sch\xf6n?= und =?iso-8859-1?q?sp=e4t?=", "schön und spät"),
            (b"=?iso-8859-1*de?Q?sch=F6n?=", "schön"),
            (b"a=?utf-8?Q?b?=c d", "abc d"),
            (b"=?utf-8?Q?a b_c?=", "a b c"),
            (b"=?utf-8?Q?What??= =?utf-8?Q?=41?=", "What?A"),
            (b"=?utf-8?Q?=41?= and =?utf-8?Q?B?=", "A and B"),
            (b"=?utf-8?Q?a?= =?iso-8859-1?Q?=E4?=", "aä"),
            (b"=?x-no-such?Q?a=C3=A4?=", "aä"),
            (b"=??Q?a=C3=A4?=", "aä"),
            (b"=?utf-8?Q?open =?utf-8?Q?closed?=", "=?utf-8?Q?open closed"),
            (b"=?utf-8?X?a?= =?=?= =? x", "=?utf-8?X?a?= =?=?= =? x"),
            (b"=?utf-8?Q??= x", " x"),
            (b"  two  blanks =?utf-8?Q?a?=", "  two  blanks a"),
            (b"=?utf-8?Q?100=_a=ZZ?=", "100= a=ZZ"),
            (b"=?iso-2022-jp?B?GyRCRnw=?= =?iso-2022-jp?B?S1wbKEI=?=", "日本"),
            (b"caf\xe9 =?utf-8?Q?=C3=A9?=", "café é"),
        ] {
            assert_eq!(read(written), text, "{}", String::from_utf8_lossy(written));
        }
    }

    #[test]
    fn a_row_of_beginnings_takes_no_longer_than_its_length() {
        let text = b"=?".repeat(200_000);
        assert_eq!(read(&text).len(), text.len());
        let text = b"=?a?Q?".repeat(60_000);
        assert_eq!(read(&text).len(), text.len());
    }
}
