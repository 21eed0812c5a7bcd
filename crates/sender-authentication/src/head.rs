//! The head of a message as its signers saw it: fields, byte for byte.

/// Bytes of a head that are looked at.
pub const HEAD_BYTES_MAX: usize = 1 << 20;

/// Fields of a head that are looked at.
pub const FIELDS_MAX: usize = 2_000;

/// A field of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name as it stands, without white space behind it.
    pub name: &'a [u8],
    /// What follows the colon, with its folds, without the line end.
    pub value: &'a [u8],
    /// All of it, with its line end if it has one.
    pub raw: &'a [u8],
}

impl Field<'_> {
    /// Whether it has this name, in any case.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// The whole field without its line end.
    #[must_use]
    pub(crate) fn line(&self) -> &[u8] {
        self.raw.strip_suffix(b"\r\n").unwrap_or(self.raw)
    }
}

/// The fields of a head, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head<'a> {
    /// The fields; a line that is none of a field has an empty name.
    pub fields: Vec<Field<'a>>,
    /// Whether there was more than [`HEAD_BYTES_MAX`] or [`FIELDS_MAX`] allow.
    pub is_cut: bool,
}

impl<'a> Head<'a> {
    /// Reads a head, to its empty line or its end. Only CR LF ends a line.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Self {
        let mut fields = fields(bytes.get(..HEAD_BYTES_MAX).unwrap_or(bytes));
        let kept: Vec<Field<'a>> = fields.by_ref().take(FIELDS_MAX).collect();
        let is_cut = bytes.len() > HEAD_BYTES_MAX || fields.next().is_some();
        Self { fields: kept, is_cut }
    }

    /// The fields of a name, from the first to the last.
    pub fn named<'b>(&'b self, name: &'b str) -> impl DoubleEndedIterator<Item = &'b Field<'a>> {
        self.fields.iter().filter(move |field| field.is_named(name))
    }
}

/// Head and body of a message; the empty line between them belongs to neither.
#[must_use]
pub fn split_message(message: &[u8]) -> (&[u8], &[u8]) {
    if let Some(body) = message.strip_prefix(b"\r\n") {
        return (b"", body);
    }
    let end = message.windows(4).position(|four| four == b"\r\n\r\n");
    let parts = end.and_then(|end| Some((message.get(..end + 2)?, message.get(end + 4..)?)));
    parts.unwrap_or((message, b""))
}

/// The fields of a head, one after the other, however many there are.
pub(crate) fn fields(bytes: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() || rest.starts_with(b"\r\n") {
            return None;
        }
        let (raw, after) = rest.split_at_checked(field_length(rest)).unwrap_or((rest, b""));
        rest = after;
        Some(field(raw))
    })
}

/// The length of the first field with its continuation lines.
fn field_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else { return bytes.len() };
        at += end + 2;
        if !matches!(bytes.get(at), Some(b' ' | b'\t')) {
            return at;
        }
    }
}

fn field(raw: &[u8]) -> Field<'_> {
    let line = raw.strip_suffix(b"\r\n").unwrap_or(raw);
    let colon = line.iter().position(|byte| *byte == b':');
    let parts = colon.and_then(|colon| Some((line.get(..colon)?.trim_ascii_end(), line.get(colon + 1..)?)));
    let is_name = |name: &[u8]| !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    match parts {
        Some((name, value)) if is_name(name) => Field { name, value, raw },
        _ => Field { name: b"", value: line, raw },
    }
}
