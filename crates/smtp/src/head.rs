//! The head of a message while it passes: what a server wants to know of it, and what submission adds and takes away
//! (RFC 6409, section 8). Nothing but a field's name and a bounded part of some values is ever held.

use scrinium_smtp_wire::Mailbox;

use crate::time::message_date;

/// A longer name of a field is passed on without a look at it.
const NAME_MAX_BYTES: usize = 256;

/// How much of a From or Sender field is kept.
const AUTHOR_MAX_BYTES: usize = 16 * 1024;

/// How much of another field is kept.
const VALUE_MAX_BYTES: usize = 1000;

/// How many addresses of `Delivered-To` are kept.
const DELIVERED_TO_MAX: usize = 64;

/// What a head says. Values are without line ends and blanks around them, and cut at a bounded length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadFields {
    /// How many `Received` fields there are: servers that the message went through.
    pub received: usize,
    /// Addresses that it was delivered to before; the first 64.
    pub delivered_to: Vec<String>,
    /// `Message-ID`
    pub message_id: Option<String>,
    /// How many `From` fields there are.
    pub from_count: usize,
    /// The first `From` field.
    pub from: Option<String>,
    /// `Sender`
    pub sender: Option<String>,
    /// Whether there is a `Date`.
    pub has_date: bool,
    /// `TLS-Required: No` (RFC 8689, section 5): the sender would rather have it delivered than encrypted.
    pub tls_not_required: bool,
    /// A `From` or `Sender` field is longer than what is kept of it.
    pub author_is_too_long: bool,
}

/// What becomes of the `Sender` field at submission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SenderField {
    /// It stays as it is, there or not.
    #[default]
    Keep,
    /// This address stands there: the person is not the author that `From` names (RFC 6409, section 8.1).
    Set(Mailbox),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Received,
    DeliveredTo,
    MessageId,
    From,
    Sender,
    Date,
    TlsRequired,
    /// Taken away at submission: nobody else may see who got a blind copy, and the return path is the envelope's.
    Hidden,
    Other,
}

impl Kind {
    fn of(name: &[u8]) -> Self {
        const KINDS: [(&str, Kind); 9] = [
            ("received", Kind::Received),
            ("delivered-to", Kind::DeliveredTo),
            ("message-id", Kind::MessageId),
            ("from", Kind::From),
            ("sender", Kind::Sender),
            ("date", Kind::Date),
            ("tls-required", Kind::TlsRequired),
            ("bcc", Kind::Hidden),
            ("return-path", Kind::Hidden),
        ];
        let known = KINDS.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        known.map_or(Self::Other, |(_, kind)| kind)
    }

    fn kept_bytes(self) -> usize {
        match self {
            Self::From | Self::Sender => AUTHOR_MAX_BYTES,
            Self::DeliveredTo | Self::MessageId | Self::TlsRequired => VALUE_MAX_BYTES,
            Self::Received | Self::Date | Self::Hidden | Self::Other => 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadPlace {
    LineStart,
    /// Behind a CR that begins a line.
    Blank,
    Name,
    Value,
    /// Behind the head.
    Body,
}

/// Whether the head is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadChanges {
    /// It passes byte for byte.
    None,
    /// As submission does: `Bcc` and `Return-Path` go, `Date`, `Message-ID` and `Sender` come.
    Submission,
}

/// Reads a head, in pieces of any size, of a text whose lines end with CR LF.
#[derive(Clone, Debug)]
pub struct HeadReader {
    changes: HeadChanges,
    place: HeadPlace,
    fields: HeadFields,
    /// The field that lines may continue.
    kind: Option<Kind>,
    /// The beginning of a line whose kind is not known.
    held: Vec<u8>,
    value: Vec<u8>,
    value_is_cut: bool,
    /// What was found where the head ends, and stands behind what is added.
    end: Vec<u8>,
    has_ended: bool,
}

impl HeadReader {
    /// Nothing came yet.
    #[must_use]
    pub fn new(changes: HeadChanges) -> Self {
        Self {
            changes,
            place: HeadPlace::LineStart,
            fields: HeadFields::default(),
            kind: None,
            held: Vec::new(),
            value: Vec::new(),
            value_is_cut: false,
            end: Vec::new(),
            has_ended: false,
        }
    }

    /// What the head says, as far as it came.
    #[must_use]
    pub fn fields(&self) -> &HeadFields {
        &self.fields
    }

    /// Whether the head is over and [`Self::close`] is due. Without changes it never is.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.has_ended && self.changes == HeadChanges::Submission
    }

    /// Takes the next bytes of the text and appends what passes to `out`. Fewer are taken where the head ends and
    /// is to be [closed](Self::close): how many.
    pub fn read(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> usize {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if self.is_waiting() {
                return at;
            }
            if self.place == HeadPlace::Body {
                out.extend_from_slice(bytes.get(at..).unwrap_or_default());
                return bytes.len();
            }
            self.step(*byte, out);
            at += 1;
        }
        at
    }

    /// The text is over. [`Self::close`] may be due then.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match self.place {
            HeadPlace::Body => {}
            HeadPlace::Name | HeadPlace::Blank => self.end_of_head(out),
            HeadPlace::Value | HeadPlace::LineStart => {
                let passes = self.kind.is_some_and(|kind| self.passes(kind));
                if self.place == HeadPlace::Value && self.changes == HeadChanges::Submission && passes {
                    out.extend_from_slice(b"\r\n");
                }
                self.end_of_field();
                self.end_of_head(out);
            }
        }
    }

    /// Appends the fields that are missing, and what ends the head. `id` is what makes a `Message-ID`, unique on
    /// `host`.
    pub fn close(&mut self, sender: &SenderField, now_ms: u64, id: &str, host: &str, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.has_ended) {
            return;
        }
        if !self.fields.has_date {
            out.extend_from_slice(format!("Date: {}\r\n", message_date(now_ms)).as_bytes());
        }
        if self.fields.message_id.is_none() {
            out.extend_from_slice(format!("Message-ID: <{id}@{host}>\r\n").as_bytes());
        }
        match (sender, &self.fields.sender) {
            (SenderField::Set(mailbox), _) => {
                out.extend_from_slice(format!("Sender: <{mailbox}>\r\n").as_bytes());
            }
            (SenderField::Keep, Some(sender)) => {
                out.extend_from_slice(format!("Sender: {sender}\r\n").as_bytes());
            }
            (SenderField::Keep, None) => {}
        }
        let end = std::mem::take(&mut self.end);
        if end != b"\r\n" {
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(&end);
    }

    fn step(&mut self, byte: u8, out: &mut Vec<u8>) {
        match (self.place, byte) {
            (HeadPlace::LineStart, b' ' | b'\t') if self.kind.is_some() => {
                self.place = HeadPlace::Value;
                self.value(byte, out);
            }
            (HeadPlace::LineStart, b'\r') => {
                self.end_of_field();
                self.place = HeadPlace::Blank;
                self.hold(byte);
            }
            (HeadPlace::Blank, _) => {
                self.hold(byte);
                self.end_of_head(out);
            }
            (HeadPlace::LineStart, _) => {
                self.end_of_field();
                self.place = HeadPlace::Name;
                self.name(byte, out);
            }
            (HeadPlace::Name, _) => self.name(byte, out),
            (HeadPlace::Value, _) => self.value(byte, out),
            (HeadPlace::Body, _) => out.push(byte),
        }
    }

    fn hold(&mut self, byte: u8) {
        self.held.push(byte);
    }

    fn name(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.hold(byte);
        let is_name = |name: &[u8]| !name.is_empty() && name.iter().all(|byte| matches!(byte, b'!'..=b'~'));
        if byte == b':' {
            let name = self.held.strip_suffix(b":").unwrap_or_default().trim_ascii_end();
            if !is_name(name) {
                return self.end_of_head(out);
            }
            self.begin_field(Kind::of(name), out);
        } else if !matches!(byte, b'!'..=b'~' | b' ' | b'\t')
            || matches!(self.held.first(), Some(b' ' | b'\t'))
        {
            // This is no field, so the body begins here without an empty line.
            self.end_of_head(out);
        } else if self.held.len() > NAME_MAX_BYTES {
            self.begin_field(Kind::Other, out);
        }
    }

    fn begin_field(&mut self, kind: Kind, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        self.kind = Some(kind);
        self.place = HeadPlace::Value;
        if self.passes(kind) {
            out.extend_from_slice(&held);
        }
    }

    fn passes(&self, kind: Kind) -> bool {
        self.changes == HeadChanges::None || !matches!(kind, Kind::Hidden | Kind::Sender)
    }

    fn value(&mut self, byte: u8, out: &mut Vec<u8>) {
        let kind = self.kind.unwrap_or(Kind::Other);
        if self.passes(kind) {
            out.push(byte);
        }
        if byte == b'\n' {
            self.place = HeadPlace::LineStart;
        } else if byte != b'\r' {
            if self.value.len() < kind.kept_bytes() {
                self.value.push(byte);
            } else {
                self.value_is_cut = true;
            }
        }
    }

    fn end_of_field(&mut self) {
        let Some(kind) = self.kind.take() else { return };
        let value = std::mem::take(&mut self.value);
        let value = String::from_utf8_lossy(value.trim_ascii()).into_owned();
        let is_cut = std::mem::take(&mut self.value_is_cut);
        let fields = &mut self.fields;
        match kind {
            Kind::Received => fields.received = fields.received.saturating_add(1),
            Kind::DeliveredTo if fields.delivered_to.len() < DELIVERED_TO_MAX => {
                fields.delivered_to.push(value);
            }
            Kind::MessageId => fields.message_id = fields.message_id.take().or(Some(value)),
            Kind::From => {
                fields.from_count = fields.from_count.saturating_add(1);
                fields.from = fields.from.take().or(Some(value));
                fields.author_is_too_long |= is_cut;
            }
            Kind::Sender => {
                fields.sender = fields.sender.take().or(Some(value));
                fields.author_is_too_long |= is_cut;
            }
            Kind::Date => fields.has_date = true,
            Kind::TlsRequired => fields.tls_not_required |= value.eq_ignore_ascii_case("no"),
            Kind::DeliveredTo | Kind::Hidden | Kind::Other => {}
        }
    }

    fn end_of_head(&mut self, out: &mut Vec<u8>) {
        self.place = HeadPlace::Body;
        self.has_ended = true;
        let held = std::mem::take(&mut self.held);
        match self.changes {
            HeadChanges::None => out.extend_from_slice(&held),
            HeadChanges::Submission => self.end = held,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HeadChanges, HeadReader, SenderField};
    use scrinium_smtp_wire::Mailbox;

    fn passed(text: &str, piece: usize, changes: HeadChanges, sender: &SenderField) -> (String, HeadReader) {
        let (mut reader, mut out) = (HeadReader::new(changes), Vec::new());
        for piece in text.as_bytes().chunks(piece) {
            let mut piece = piece;
            while !piece.is_empty() {
                let taken = reader.read(piece, &mut out);
                piece = &piece[taken..];
                if reader.is_waiting() {
                    reader.close(sender, 1_795_684_851_000, "q7", "mx.test", &mut out);
                }
            }
        }
        reader.finish(&mut out);
        if reader.is_waiting() {
            reader.close(sender, 1_795_684_851_000, "q7", "mx.test", &mut out);
        }
        (String::from_utf8(out).expect("text"), reader)
    }

    const ADDED: &str = "Date: Thu, 26 Nov 2026 09:20:51 +0000\r\nMessage-ID: <q7@mx.test>\r\n";

    #[test]
    fn submission_adds_what_is_missing_and_takes_blind_copies_away() {
        let bob = SenderField::Set(Mailbox::parse(b"bob@a.test").expect("an address"));
        let keep = SenderField::Keep;
        let all = [
            ("From: a\r\n\r\nhi\r\n", &keep, format!("From: a\r\n{ADDED}\r\nhi\r\n")),
            ("From: a\r\n", &keep, format!("From: a\r\n{ADDED}\r\n")),
            ("no field\r\nat all\r\n", &keep, format!("{ADDED}\r\nno field\r\nat all\r\n")),
            (" begins odd\r\n", &keep, format!("{ADDED}\r\n begins odd\r\n")),
            ("\r\nbody: x\r\n", &keep, format!("{ADDED}\r\nbody: x\r\n")),
            ("", &keep, format!("{ADDED}\r\n")),
            (
                "Bcc: eve,\r\n\tzoe\r\nFROM : a\r\nReturn-Path: <x>\r\nDate: d\r\nmessage-id: <1>\r\n\r\nBcc: b\r\n",
                &keep,
                "FROM : a\r\nDate: d\r\nmessage-id: <1>\r\n\r\nBcc: b\r\n".to_owned(),
            ),
            ("Sender: x@y\r\nFrom: a\r\n\r\n", &keep, format!("From: a\r\n{ADDED}Sender: x@y\r\n\r\n")),
            (
                "Sender: x@y\r\nFrom: a\r\n\r\n",
                &bob,
                format!("From: a\r\n{ADDED}Sender: <bob@a.test>\r\n\r\n"),
            ),
        ];
        for (text, sender, expected) in all {
            for piece in [1, 2, 3, 7, 1000] {
                assert_eq!(passed(text, piece, HeadChanges::Submission, sender).0, expected, "{text}");
                assert_eq!(passed(text, piece, HeadChanges::None, sender).0, text);
            }
        }
    }

    #[test]
    fn what_a_head_says() {
        let text = "Received: a\r\n\tb\r\nreceived: c\r\nDelivered-To: ada@a.test\r\nFrom: one\r\n two\r\nFrom: x\r\n\
                    Message-ID: <m>\r\nTLS-Required: No\r\n\r\nReceived: body\r\n";
        let (_, reader) = passed(text, 5, HeadChanges::None, &SenderField::Keep);
        let fields = reader.fields();
        assert_eq!((fields.received, fields.from_count, fields.has_date), (2, 2, false));
        assert_eq!(fields.from.as_deref(), Some("one two"));
        assert_eq!(fields.message_id.as_deref(), Some("<m>"));
        assert_eq!(
            (fields.delivered_to.as_slice(), fields.tls_not_required),
            (&["ada@a.test".to_owned()][..], true)
        );
    }

    #[test]
    fn a_huge_head_is_not_held() {
        let text = format!(
            "From: {}\r\n{}: x\r\nDelivered-To: {}\r\n\r\n",
            "a".repeat(99_999),
            "n".repeat(9_999),
            "d".repeat(9_999)
        );
        let (passed, reader) = passed(&text, 997, HeadChanges::None, &SenderField::Keep);
        assert!(passed == text && reader.fields().author_is_too_long);
        assert!(reader.fields().from.as_ref().is_some_and(|from| from.len() <= super::AUTHOR_MAX_BYTES));
        assert!(reader.fields().delivered_to[0].len() <= super::VALUE_MAX_BYTES);
    }
}
