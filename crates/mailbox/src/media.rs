//! Content-Type, Content-Disposition and their kin (RFC 2045, section 5.1; RFC 2183; RFC 2231).

/// Parameters of one field.
const PARAMETERS_MAX: usize = 100;

/// A value with parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MediaValue {
    /// The type, or the disposition.
    pub(crate) value: Vec<u8>,
    /// The subtype.
    pub(crate) subtype: Vec<u8>,
    /// Names and values. What came in pieces is put together; what is encoded stays so, under a name with a `*`.
    pub(crate) parameters: Vec<(Vec<u8>, Vec<u8>)>,
}

impl MediaValue {
    pub(crate) fn parameter(&self, name: &str) -> Option<&[u8]> {
        let is_it = |(known, _): &&(Vec<u8>, Vec<u8>)| known.eq_ignore_ascii_case(name.as_bytes());
        self.parameters.iter().find(is_it).map(|(_, value)| value.as_slice())
    }
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    /// Passes over blanks and comments.
    fn blanks(&mut self) {
        loop {
            self.rest = self.rest.trim_ascii_start();
            if self.rest.first() != Some(&b'(') {
                return;
            }
            let mut depth = 0_usize;
            let mut at = 0;
            while let Some(byte) = self.rest.get(at) {
                at += 1;
                match byte {
                    b'(' => depth += 1,
                    b')' => depth = depth.saturating_sub(1),
                    b'\\' => at += 1,
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
            self.rest = self.rest.get(at..).unwrap_or_default();
        }
    }

    fn token(&mut self) -> Vec<u8> {
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"()<>@,;:\\\"/[]?=".contains(byte);
        let end = self.rest.iter().position(is_end).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        token.to_vec()
    }

    fn take(&mut self, sign: u8) -> bool {
        self.blanks();
        match self.rest.split_first() {
            Some((first, rest)) if *first == sign => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// The value of a parameter: quoted, or up to the next semicolon, since programs forget the quotes.
    fn value(&mut self) -> Vec<u8> {
        self.blanks();
        if self.rest.first() == Some(&b'"') {
            let (mut text, mut at) = (Vec::new(), 1);
            while let Some(byte) = self.rest.get(at) {
                at += 1;
                match byte {
                    b'"' => break,
                    b'\\' => {
                        text.extend(self.rest.get(at));
                        at += 1;
                    }
                    byte => text.push(*byte),
                }
            }
            self.rest = self.rest.get(at..).unwrap_or_default();
            return text;
        }
        let is_end = |byte: &u8| *byte == b';' || *byte == b'(' || byte.is_ascii_whitespace();
        let end = self.rest.iter().position(is_end).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        text.to_vec()
    }
}

/// Reads `text/plain; charset=utf-8`. `None` if there is no type.
pub(crate) fn content_type(field: &[u8]) -> Option<MediaValue> {
    let mut cursor = Cursor { rest: field };
    cursor.blanks();
    let value = cursor.token();
    if value.is_empty() || !cursor.take(b'/') {
        return None;
    }
    cursor.blanks();
    let subtype = cursor.token();
    if subtype.is_empty() {
        return None;
    }
    Some(MediaValue { value, subtype, parameters: parameters(&mut cursor) })
}

/// Reads `attachment; filename=a.txt`.
pub(crate) fn disposition(field: &[u8]) -> Option<MediaValue> {
    let mut cursor = Cursor { rest: field };
    cursor.blanks();
    let value = cursor.token();
    if value.is_empty() {
        return None;
    }
    Some(MediaValue { value, subtype: Vec::new(), parameters: parameters(&mut cursor) })
}

/// The first word of a field.
pub(crate) fn word(field: &[u8]) -> Option<Vec<u8>> {
    let mut cursor = Cursor { rest: field };
    cursor.blanks();
    let word = cursor.token();
    (!word.is_empty()).then_some(word)
}

/// Words with commas between them.
pub(crate) fn words(field: &[u8]) -> Vec<Vec<u8>> {
    let mut cursor = Cursor { rest: field };
    let mut words = Vec::new();
    while words.len() < PARAMETERS_MAX {
        cursor.blanks();
        let word = cursor.token();
        if !word.is_empty() {
            words.push(word);
        }
        if !cursor.take(b',') {
            break;
        }
    }
    words
}

fn parameters(cursor: &mut Cursor<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut raw: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    while raw.len() < PARAMETERS_MAX {
        // To the next semicolon, whatever stands before it.
        let Some(at) = memchr::memchr(b';', cursor.rest) else { break };
        cursor.rest = cursor.rest.get(at + 1..).unwrap_or_default();
        cursor.blanks();
        let name = cursor.token();
        if name.is_empty() || !cursor.take(b'=') {
            continue;
        }
        let value = cursor.value();
        raw.push((name, value));
    }
    joined(raw)
}

/// Puts pieces together (RFC 2231, section 3): `name*0`, `name*1*`.
fn joined(raw: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut whole: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut pieces: Vec<(Vec<u8>, u32, bool, Vec<u8>)> = Vec::new();
    for (name, value) in raw {
        match piece(&name) {
            Some((base, number, encoded)) => pieces.push((base, number, encoded, value)),
            None => whole.push((name, value)),
        }
    }
    pieces.sort_by(|(name, number, ..), (other, second, ..)| {
        (name.to_ascii_lowercase(), number).cmp(&(other.to_ascii_lowercase(), second))
    });
    let mut next = 0;
    let mut index = whole.len();
    for (name, number, encoded, value) in pieces {
        let goes_on = whole
            .get(index)
            .is_some_and(|(base, _)| base.strip_suffix(b"*").unwrap_or(base).eq_ignore_ascii_case(&name));
        if !goes_on || number == 0 {
            index = whole.len();
            next = 1;
            let name = if encoded { [name.as_slice(), b"*"].concat() } else { name };
            whole.push((name, value));
        } else if number == next
            && let Some((base, text)) = whole.get_mut(index)
        {
            next += 1;
            if encoded && !base.ends_with(b"*") {
                base.push(b'*');
            }
            text.extend_from_slice(&value);
        }
    }
    whole
}

fn piece(name: &[u8]) -> Option<(Vec<u8>, u32, bool)> {
    let (encoded, name) = match name.strip_suffix(b"*") {
        Some(name) => (true, name),
        None => (false, name),
    };
    let star = memchr::memrchr(b'*', name)?;
    let (base, number) = name.split_at(star);
    let digits = std::str::from_utf8(number.get(1..)?).ok()?;
    let valid = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    valid.then_some(())?;
    Some((base.to_vec(), digits.parse().ok()?, encoded))
}
