//! Canonical forms of fields and bodies (RFC 6376 §3.4), and the digests of a body as it comes.

use ring::digest::{Context, SHA256};

use crate::head::Field;

use super::signature::Canonicalization;

/// SHA-256 of a body in both canonical forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyDigests {
    simple: Vec<u8>,
    relaxed: Vec<u8>,
}

impl BodyDigests {
    /// The digests of a body that is there as a whole.
    #[must_use]
    pub fn of(body: &[u8]) -> Self {
        let mut hasher = BodyHasher::default();
        hasher.update(body);
        hasher.finish()
    }

    /// The digest of one form.
    #[must_use]
    pub fn of_form(&self, form: Canonicalization) -> &[u8] {
        match form {
            Canonicalization::Simple => &self.simple,
            Canonicalization::Relaxed => &self.relaxed,
        }
    }
}

/// Takes the digests of a body while it comes, in pieces of any size and in memory of its own size alone.
#[derive(Clone)]
pub struct BodyHasher {
    simple: Form,
    relaxed: Form,
}

impl Default for BodyHasher {
    fn default() -> Self {
        Self { simple: Form::new(Canonicalization::Simple), relaxed: Form::new(Canonicalization::Relaxed) }
    }
}

impl BodyHasher {
    /// More of the body.
    pub fn update(&mut self, piece: &[u8]) {
        self.simple.update(piece);
        self.relaxed.update(piece);
    }

    /// The body is whole.
    #[must_use]
    pub fn finish(self) -> BodyDigests {
        BodyDigests { simple: self.simple.finish(), relaxed: self.relaxed.finish() }
    }
}

/// One canonical form of a body, hashed. What ends a body is held back: white space at the end of a line and empty lines may turn out
/// to be ignored, so they are counted instead of kept.
#[derive(Clone)]
struct Form {
    form: Canonicalization,
    context: Context,
    /// Canonical bytes on their way into the digest.
    out: Vec<u8>,
    /// A CR whose LF may follow.
    has_return: bool,
    /// White space that counts only if more of its line follows.
    has_space: bool,
    /// Line ends that count only if more of the body follows.
    line_ends: u64,
    is_empty: bool,
}

/// Canonical bytes are hashed in portions of about this size.
const PORTION_BYTES: usize = 4 << 10;

impl Form {
    fn new(form: Canonicalization) -> Self {
        Self {
            form,
            context: Context::new(&SHA256),
            out: Vec::with_capacity(PORTION_BYTES + 256),
            has_return: false,
            has_space: false,
            line_ends: 0,
            is_empty: true,
        }
    }

    fn update(&mut self, mut piece: &[u8]) {
        while let Some((first, rest)) = piece.split_first() {
            if self.has_return {
                self.has_return = false;
                if *first == b'\n' {
                    // §3.4.4: white space at the end of a line is ignored.
                    self.has_space = false;
                    self.line_ends += 1;
                    piece = rest;
                    continue;
                }
                self.content(b"\r");
            }
            let run = piece.iter().position(|byte| self.is_held_back(*byte)).unwrap_or(piece.len());
            if run == 0 {
                self.has_return |= *first == b'\r';
                self.has_space |= *first != b'\r';
                piece = rest;
            } else {
                let (run, after) = piece.split_at_checked(run).unwrap_or((piece, b""));
                self.content(run);
                piece = after;
            }
        }
    }

    /// §3.4.4: a sequence of white space is one space.
    fn is_held_back(&self, byte: u8) -> bool {
        byte == b'\r' || (self.form == Canonicalization::Relaxed && matches!(byte, b' ' | b'\t'))
    }

    /// Bytes that count, and make what was held back count.
    fn content(&mut self, bytes: &[u8]) {
        for _ in 0..self.line_ends {
            self.put(b"\r\n");
        }
        self.line_ends = 0;
        if self.has_space {
            self.put(b" ");
            self.has_space = false;
        }
        self.put(bytes);
        self.is_empty = false;
    }

    fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        if self.out.len() >= PORTION_BYTES {
            self.context.update(&self.out);
            self.out.clear();
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.has_return {
            self.content(b"\r");
        }
        // §3.4.3: an empty body is one line end in the simple form; §3.4.4: and nothing in the relaxed one. Any other body ends with
        // one line end, whether it had it or not.
        if !self.is_empty || self.form == Canonicalization::Simple {
            self.put(b"\r\n");
        }
        self.context.update(&self.out);
        self.context.finish().as_ref().to_vec()
    }
}

/// A field in its canonical form, with its line end (§3.4.1, §3.4.2).
pub(crate) fn canonical_field(form: Canonicalization, field: &Field<'_>, out: &mut Vec<u8>) {
    match form {
        Canonicalization::Simple => out.extend_from_slice(field.line()),
        Canonicalization::Relaxed => relaxed(field.name, field.value, out),
    }
    out.extend_from_slice(b"\r\n");
}

/// §3.4.2: the name in lower case, folds and sequences of white space as one space, none around the colon or at the end.
pub(crate) fn relaxed(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend(name.iter().map(u8::to_ascii_lowercase));
    out.push(b':');
    let start = out.len();
    let mut has_space = false;
    let mut bytes = value.iter().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' if bytes.peek() == Some(&&b'\n') => _ = bytes.next(),
            b' ' | b'\t' => has_space = true,
            byte => {
                if has_space && out.len() > start {
                    out.push(b' ');
                }
                has_space = false;
                out.push(*byte);
            }
        }
    }
}
