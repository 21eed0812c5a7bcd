//! Messages as mail carries them: written with a line that names them and digests what was written, and read again.
//!
//! `X-Scrinium-Lab: RUN/SENDER/SEQUENCE/LENGTH/DIGEST` names the run (8 hexadecimal digits), the number of the
//! sender, the number of the sender's message, the body's length in bytes, and 16 hexadecimal digits of the BLAKE3
//! digest of the header lines that the sender has written ([`GIVEN`]) and the body. Lines that a server adds on the
//! way (`Received`, `Return-Path`, `Delivered-To`, ..) are not in it.

use crate::content::{Message, MessageNumber};

/// Header lines that must arrive as they were sent.
const GIVEN: &[&str] = &[
    "from",
    "to",
    "subject",
    "date",
    "message-id",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
];

const LAB: &str = "X-Scrinium-Lab";

/// A longer line of a header is taken as it comes, in pieces, and names nothing.
const LONGEST_HEADER_LINE_BYTES: usize = 64 << 10;

/// Bytes of an attachment in one line of base64.
const LINE_BYTES: usize = 57;

const BOUNDARY: &str = "lab-boundary";

/// A message, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Letter {
    pub from: String,
    pub recipients: Vec<String>,
    /// Lines end with CR LF, the last one too.
    pub text: Vec<u8>,
}

impl Letter {
    /// The message, from and to people at `domain`.
    #[must_use]
    pub fn of(message: &Message, domain: &str) -> Self {
        Self::between(message, domain, domain)
    }

    /// The message, from somebody of one domain to people of another.
    #[must_use]
    pub(crate) fn between(message: &Message, domain: &str, to_domain: &str) -> Self {
        let recipients: Vec<String> =
            message.recipients.iter().map(|name| format!("{name}@{to_domain}")).collect();
        let from = format!("{}@{domain}", message.from);
        let date = jiff::Timestamp::from_second(message.posted)
            .unwrap_or_default()
            .strftime("%a, %d %b %Y %H:%M:%S +0000");
        let head = format!(
            "From: {from}\r\nTo: {}\r\nSubject: {}\r\nDate: {date}\r\nMessage-ID: <{}@{domain}>\r\nMIME-Version: 1.0\r\n",
            recipients.join(",\r\n "),
            message.subject,
            message.id
        );
        let mut rest = Vec::with_capacity(message.body.len() + 512 + message.attachment_bytes * 3 / 2);
        parts(message, &mut rest);
        let mut scan = Scan::new();
        scan.feed(head.as_bytes());
        scan.feed(&rest);
        scan.finish();
        let MessageNumber { run, sender, sequence } = message.number;
        let mut text = head.into_bytes();
        let line = format!("{LAB}: {run:08x}/{sender}/{sequence}/{}/{}\r\n", scan.body_bytes, scan.digest);
        text.extend_from_slice(line.as_bytes());
        text.extend_from_slice(&rest);
        Self { from, recipients, text }
    }
}

/// The rest of the header, and the body.
fn parts(message: &Message, text: &mut Vec<u8>) {
    let plain = "Content-Type: text/plain; charset=us-ascii\r\nContent-Transfer-Encoding: 7bit\r\n\r\n";
    if message.attachment_bytes == 0 {
        text.extend_from_slice(plain.as_bytes());
        lines(&message.body, text);
        return;
    }
    let mixed =
        format!("Content-Type: multipart/mixed; boundary=\"{BOUNDARY}\"\r\n\r\n--{BOUNDARY}\r\n{plain}");
    text.extend_from_slice(mixed.as_bytes());
    lines(&message.body, text);
    let attached = format!(
        "--{BOUNDARY}\r\nContent-Type: application/octet-stream; name=\"attachment.bin\"\r\nContent-Disposition: attachment; filename=\"attachment.bin\"\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    );
    text.extend_from_slice(attached.as_bytes());
    let content = crate::content::attachment(message.attachment_bytes);
    for line in content.chunks(LINE_BYTES) {
        use base64::Engine;
        text.extend_from_slice(base64::engine::general_purpose::STANDARD.encode(line).as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
}

fn lines(body: &str, text: &mut Vec<u8>) {
    for line in body.lines() {
        text.extend_from_slice(line.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
}

/// What the laboratory's line of a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lab {
    number: MessageNumber,
    length: u64,
    digest: String,
}

impl Lab {
    fn parse(value: &str) -> Option<Self> {
        let mut fields = value.trim().split('/');
        let run = u32::from_str_radix(fields.next()?, 16).ok()?;
        let sender = fields.next()?.parse().ok()?;
        let sequence = fields.next()?.parse().ok()?;
        let length = fields.next()?.parse().ok()?;
        let digest = fields.next()?.to_owned();
        fields.next().is_none().then_some(Self {
            number: MessageNumber { run, sender, sequence },
            length,
            digest,
        })
    }
}

/// Reads a message while it comes, in pieces of any size. It keeps no more than one line of the header and the
/// recipients.
#[derive(Debug)]
pub struct Scan {
    hasher: Box<blake3::Hasher>,
    line: Vec<u8>,
    /// The header field that the current line belongs to is one of [`GIVEN`], and whether it is `To`.
    given: bool,
    in_recipients: bool,
    in_body: bool,
    lab: Option<Lab>,
    recipients: Vec<u8>,
    bytes: u64,
    body_bytes: u64,
    digest: String,
}

impl Default for Scan {
    fn default() -> Self {
        Self::new()
    }
}

impl Scan {
    /// Nothing has arrived yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            hasher: Box::default(),
            line: Vec::new(),
            given: false,
            in_recipients: false,
            in_body: false,
            lab: None,
            recipients: Vec::new(),
            bytes: 0,
            body_bytes: 0,
            digest: String::new(),
        }
    }

    /// Takes the next bytes of the message.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let mut rest = bytes;
        while !self.in_body && !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
            let (piece, after) = rest.split_at(end);
            self.line.extend_from_slice(piece);
            rest = after;
            if piece.last() == Some(&b'\n') || self.line.len() > LONGEST_HEADER_LINE_BYTES {
                self.header_line();
            }
        }
        self.hasher.update(rest);
        self.body_bytes += rest.len() as u64;
    }

    fn header_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line == b"\r\n" || line == b"\n" {
            self.in_body = true;
            return;
        }
        let goes_on = line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'));
        if !goes_on {
            let text = String::from_utf8_lossy(&line);
            let (name, value) = text.split_once(':').unwrap_or((&text, ""));
            self.given = GIVEN.iter().any(|given| given.eq_ignore_ascii_case(name));
            self.in_recipients = name.eq_ignore_ascii_case("to");
            if name.eq_ignore_ascii_case(LAB) && self.lab.is_none() {
                self.lab = Lab::parse(value);
            }
        }
        if self.given {
            self.hasher.update(&line);
        }
        if self.in_recipients {
            let from = if goes_on { 0 } else { "To:".len() };
            self.recipients.extend_from_slice(line.get(from..).unwrap_or_default());
        }
    }

    /// The message has arrived whole.
    pub fn finish(&mut self) {
        if !self.line.is_empty() {
            self.header_line();
        }
        self.digest = self.hasher.finalize().to_hex().chars().take(16).collect();
    }

    /// Bytes that came.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Which message it is, if it is one of the laboratory's.
    #[must_use]
    pub fn number(&self) -> Option<MessageNumber> {
        self.lab.as_ref().map(|lab| lab.number)
    }

    /// Says what differs from what was sent, if anything does. Of messages that the laboratory has not sent nothing is
    /// known.
    ///
    /// # Errors
    /// What differs.
    pub fn check(&self) -> Result<(), String> {
        match &self.lab {
            Some(lab) if lab.length != self.body_bytes => {
                Err(format!("the body has {} bytes and was sent with {}", self.body_bytes, lab.length))
            }
            Some(lab) if lab.digest != self.digest => {
                Err(format!("the digest is {} and was sent as {}", self.digest, lab.digest))
            }
            _ => Ok(()),
        }
    }

    /// Where this person stands among the recipients; the first one is 0.
    #[must_use]
    pub fn place_of(&self, name: &str) -> Option<usize> {
        let recipients = String::from_utf8_lossy(&self.recipients);
        let is = |address: &str| {
            address.trim().split('@').next().is_some_and(|local| local.eq_ignore_ascii_case(name))
        };
        recipients.split(',').position(is)
    }
}
