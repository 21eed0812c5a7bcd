//! Fields of a header (RFC 5322, section 2.2), and choices among them.

/// A field as it stands in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name without blanks behind it.
    pub name: &'a [u8],
    /// What follows the colon, with its line ends.
    pub value: &'a [u8],
    /// The whole field, with its line ends.
    pub raw: &'a [u8],
}

impl Field<'_> {
    /// Whether it has this name, in any case.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// The value on one line, without blanks around it (RFC 5322, section 2.2.3).
    #[must_use]
    pub fn unfolded(&self) -> Vec<u8> {
        unfold(self.value)
    }
}

/// Line ends go, blanks stay (RFC 5322, section 2.2.3); those around the value go.
pub(crate) fn unfold(value: &[u8]) -> Vec<u8> {
    // NUL has no place in a quoted string (RFC 9051, section 9, `TEXT-CHAR`).
    let clean = |byte: &u8| if *byte == 0 { b' ' } else { *byte };
    let line: Vec<u8> = value.iter().filter(|byte| !matches!(byte, b'\r' | b'\n')).map(clean).collect();
    line.trim_ascii().to_vec()
}

/// Text for people: blanks in a row are one.
pub(crate) fn tidied(text: &[u8]) -> Vec<u8> {
    let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(&b' ')
}

/// The fields of a header. A line that is no field belongs to none, up to the next one; an empty line ends the header.
pub fn fields(header: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut rest = header;
    std::iter::from_fn(move || {
        loop {
            let end = field_end(rest)?;
            let (raw, after) = rest.split_at(end);
            rest = after;
            if let Some(field) = field(raw) {
                return Some(field);
            }
        }
    })
}

/// Where the field ends that a header begins with: behind its continuation lines. `None` at the end of the header.
fn field_end(header: &[u8]) -> Option<usize> {
    if header.is_empty() || header.starts_with(b"\r\n") || header.starts_with(b"\n") {
        return None;
    }
    let mut at = 0;
    loop {
        let rest = header.get(at..).unwrap_or_default();
        let Some(end) = memchr::memchr(b'\n', rest) else { return Some(header.len()) };
        at += end + 1;
        if !matches!(header.get(at), Some(b' ' | b'\t')) {
            return Some(at);
        }
    }
}

fn field(raw: &[u8]) -> Option<Field<'_>> {
    let colon = memchr::memchr(b':', raw)?;
    let (name, value) = raw.split_at(colon);
    let name = name.trim_ascii_end();
    let valid = !name.is_empty() && name.iter().all(|byte| matches!(byte, b'!'..=b'~'));
    valid.then(|| Field { name, value: value.get(1..).unwrap_or_default(), raw })
}

/// Takes fields out of a header that comes in pieces: HEADER.FIELDS and HEADER.FIELDS.NOT (RFC 9051, section 6.4.5).
#[derive(Clone, Debug)]
pub struct FieldFilter {
    names: Vec<String>,
    excluded: bool,
    /// The beginning of a line, as far as its name may go.
    start: Vec<u8>,
    state: FilterState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilterState {
    /// A line begins.
    Start,
    /// The rest of a line goes out, or does not.
    Line(bool),
    /// A line has ended; what follows with a blank belongs to it.
    Ended(bool),
}

/// Nobody asks for a longer name.
const NAME_MAX_BYTES: usize = 256;

impl FieldFilter {
    /// Fields with these names, or those without them.
    #[must_use]
    pub fn new(names: &[String], excluded: bool) -> Self {
        Self { names: names.to_vec(), excluded, start: Vec::new(), state: FilterState::Start }
    }

    /// Takes a piece of the header, and gives what goes out of it.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        let mut rest = piece;
        while let Some(first) = rest.first().copied() {
            match self.state {
                FilterState::Ended(goes) if matches!(first, b' ' | b'\t') => {
                    self.state = FilterState::Line(goes);
                }
                FilterState::Ended(_) => self.state = FilterState::Start,
                FilterState::Line(goes) => {
                    let end = memchr::memchr(b'\n', rest).map(|end| end + 1);
                    let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
                    if goes {
                        out.extend_from_slice(line);
                    }
                    if end.is_some() {
                        self.state = FilterState::Ended(goes);
                    }
                    rest = after;
                }
                FilterState::Start => rest = self.name(rest, out),
            }
        }
    }

    /// Reads on in the name of a line; what is left of the piece.
    fn name<'a>(&mut self, piece: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let end = memchr::memchr2(b':', b'\n', piece);
        let room = NAME_MAX_BYTES.saturating_sub(self.start.len());
        let taken = end.unwrap_or(piece.len()).min(room);
        let (name, rest) = piece.split_at(taken);
        self.start.extend_from_slice(name);
        if end.is_none() && taken < room {
            return rest;
        }
        let goes = self.goes(rest.first() == Some(&b':'));
        if goes {
            out.extend_from_slice(&self.start);
        }
        self.start.clear();
        self.state = FilterState::Line(goes);
        rest
    }

    fn goes(&self, has_colon: bool) -> bool {
        let name = self.start.trim_ascii_end();
        if name.is_empty() {
            // The empty line behind the header, which is written in any case.
            return false;
        }
        let is_named =
            has_colon && self.names.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name));
        is_named != self.excluded
    }
}
