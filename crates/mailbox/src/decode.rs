//! Content-Transfer-Encoding (RFC 2045, section 6), decoded while it comes.

/// How a part is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransferEncoding {
    /// 7BIT, 8BIT and BINARY: not at all.
    #[default]
    Identity,
    /// Base64.
    Base64,
    /// Quoted-printable.
    QuotedPrintable,
    /// Something that nobody here knows: it is not decoded.
    Unknown,
}

impl TransferEncoding {
    /// The encoding of a field's word.
    #[must_use]
    pub fn named(word: &[u8]) -> Self {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        if is("7bit") || is("8bit") || is("binary") || word.is_empty() {
            Self::Identity
        } else if is("base64") {
            Self::Base64
        } else if is("quoted-printable") {
            Self::QuotedPrintable
        } else {
            Self::Unknown
        }
    }
}

/// Decodes a part that comes in pieces. What is invalid costs itself and nothing else.
#[derive(Clone, Debug)]
pub struct Decoder {
    encoding: TransferEncoding,
    bits: u32,
    bit_count: u32,
    /// Of quoted-printable: what is held back until it is clear what it means, an escape or blanks at the end of a line.
    kept: Vec<u8>,
}

/// Blanks before a line's end are dropped; more than this are text.
const BLANKS_MAX: usize = 1000;

impl Decoder {
    /// Decodes this encoding; an unknown one stays as it is.
    #[must_use]
    pub fn new(encoding: TransferEncoding) -> Self {
        Self { encoding, bits: 0, bit_count: 0, kept: Vec::new() }
    }

    /// Takes a piece, and gives what it means.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        match self.encoding {
            TransferEncoding::Identity | TransferEncoding::Unknown => out.extend_from_slice(piece),
            TransferEncoding::Base64 => piece.iter().for_each(|byte| self.base64(*byte, out)),
            TransferEncoding::QuotedPrintable => piece.iter().for_each(|byte| self.quoted(*byte, out)),
        }
    }

    /// The end of the part.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match self.kept.first() {
            // A soft line break at the very end.
            Some(b'=') if self.kept.len() == 1 || self.kept.get(1) == Some(&b'\r') => {}
            Some(b'=') => out.extend_from_slice(&self.kept),
            _ => {}
        }
        self.kept.clear();
    }

    fn base64(&mut self, byte: u8, out: &mut Vec<u8>) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                // Several texts may stand one behind the other.
                (self.bits, self.bit_count) = (0, 0);
                return;
            }
            _ => return,
        };
        self.bits = (self.bits << 6 | u32::from(value)) & 0xffff;
        self.bit_count += 6;
        if self.bit_count >= 8 {
            self.bit_count -= 8;
            let byte = self.bits >> self.bit_count & 0xff;
            out.push(u8::try_from(byte).unwrap_or_default());
        }
    }

    fn quoted(&mut self, byte: u8, out: &mut Vec<u8>) {
        let kept = self.kept.as_slice();
        match (kept.first(), byte) {
            (Some(b'='), _) => self.escape(byte, out),
            (_, b'=') => {
                self.flush(out);
                self.kept.push(b'=');
            }
            (_, b' ' | b'\t') if kept.len() < BLANKS_MAX => self.kept.push(byte),
            (_, b'\r' | b'\n') => {
                // Blanks that a relay has added (RFC 2045, section 6.7, rule 3).
                self.kept.clear();
                out.push(byte);
            }
            _ => {
                self.flush(out);
                out.push(byte);
            }
        }
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.kept);
    }

    fn escape(&mut self, byte: u8, out: &mut Vec<u8>) {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        match (self.kept.as_slice(), byte) {
            (_, b'\n') => self.kept.clear(),
            ([b'='], b'\r' | b' ' | b'\t') => self.kept.push(byte),
            ([b'=', b' ' | b'\t', ..], b'\r' | b' ' | b'\t') if self.kept.len() < BLANKS_MAX => {
                self.kept.push(byte);
            }
            ([b'='], _) if digit(byte).is_some() => self.kept.push(byte),
            ([b'=', high], _) if digit(byte).is_some() && digit(*high).is_some() => {
                let value = digit(*high).unwrap_or(0) * 16 + digit(byte).unwrap_or(0);
                self.kept.clear();
                out.push(u8::try_from(value).unwrap_or_default());
            }
            _ => {
                // It was no escape.
                self.flush(out);
                self.quoted(byte, out);
            }
        }
    }
}
