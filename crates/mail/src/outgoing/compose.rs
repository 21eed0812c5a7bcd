//! A memo of fields becomes a message of the Internet (RFC 5322, RFC 2045): text, and what is attached, in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use scrinium_database::{Access, AttachmentReader, Database, DatabaseError};
use scrinium_directory::Found;
use scrinium_smtp_wire::Mailbox;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::address::WrittenAddress;
use crate::memo::field;
use crate::recipients::Resolver;
use crate::router::is_failure_memo;
use crate::source::{MessageSource, SourceWriter};

/// Bytes of an attachment in one line of base64: 76 characters (RFC 2045 §6.8).
const LINE_BYTES: usize = 57;

/// Read of an attachment at a time: whole lines.
const PIECE_BYTES: usize = LINE_BYTES * 4096;

/// A longer line is not sent as it is (RFC 5322 §2.1.1).
const TEXT_LINE_MAX_BYTES: usize = 998;

/// Bytes of text in one encoded word, which may have 75 characters (RFC 2047 §2).
const WORD_BYTES: usize = 42;

/// A header field with more texts is cut.
const TEXTS_MAX: usize = 10_000;

/// What a message is made of.
pub(super) struct Composer<'a> {
    pub(super) memo: &'a Map<String, Value>,
    /// Makes its Message-ID, if it has none, and its boundary.
    pub(super) id: &'a str,
    pub(super) host: &'a str,
    pub(super) resolver: &'a Resolver,
    pub(super) now_ms: u64,
    /// Whether it says that it came here, and when: not what stays in a mail database.
    pub(super) is_sent: bool,
    /// Whose reading of its attachments it is.
    pub(super) access: &'a Access,
}

impl Composer<'_> {
    /// The message, with all attachments of the memo `document` in `mailbox`.
    pub(super) fn compose(&self, mailbox: &Database, document: &str) -> Result<MessageSource, DatabaseError> {
        let kind = |name: &str| Ok(mailbox.open_attachment(document, name, None, self.access)?.content_type);
        let files = |name: &str| mailbox.open_attachment(document, name, None, self.access);
        self.plan(kind)?.written(self.memo, files)
    }

    /// What the message is made of. `kind` knows the content types of files.
    pub(super) fn plan(
        &self,
        kind: impl Fn(&str) -> Result<String, DatabaseError>,
    ) -> Result<MessagePlan, DatabaseError> {
        let boundary = format!("=_{}", self.id);
        let (encoding, _) = encoded_text(text_of(self.memo), &boundary);
        let mut literal = self.head();
        let attachments = self.memo.get("_attachments").and_then(Value::as_object);
        let attachments = attachments.filter(|attachments| !attachments.is_empty());
        if attachments.is_some() {
            literal.push_str(&format!(
                "Content-Type: multipart/mixed;\r\n boundary=\"{boundary}\"\r\n\r\n--{boundary}\r\n"
            ));
        }
        literal.push_str(&format!(
            "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n"
        ));
        let mut pieces = vec![PlanPiece::Literal(literal), PlanPiece::Text];
        for name in attachments.into_iter().flat_map(Map::keys) {
            pieces.push(PlanPiece::Literal(part_head(&boundary, name, &kind(name)?)));
            pieces.push(PlanPiece::File(name.clone()));
        }
        if attachments.is_some() {
            pieces.push(PlanPiece::Literal(format!("\r\n--{boundary}--\r\n")));
        }
        Ok(MessagePlan { version: PLAN_VERSION, boundary, pieces })
    }

    fn one(&self, name: &str) -> &str {
        self.memo.get(name).and_then(Value::as_str).map(str::trim).unwrap_or_default()
    }

    /// All fields but those that say how the content is written.
    fn head(&self) -> String {
        let date = mail_date(self.now_ms);
        let mut head = String::new();
        if self.is_sent {
            head = format!("Received: by {} with HTTP\r\n\tid {};\r\n\t{date}\r\n", self.host, self.id);
        }
        let posted: Option<Timestamp> = self.one(field::POSTED_DATE).parse().ok();
        let posted = posted.and_then(|time| u64::try_from(time.as_millisecond()).ok());
        push_line(&mut head, "Date", &mail_date(posted.unwrap_or(self.now_ms)));
        for (name, field) in [
            ("From", field::FROM),
            ("Sender", field::SENDER),
            ("Reply-To", field::REPLY_TO),
            ("To", field::SEND_TO),
            ("Cc", field::COPY_TO),
        ] {
            let addresses = self.addresses(field);
            if !addresses.is_empty() {
                push_line(&mut head, name, &addresses.join(",\r\n "));
            }
        }
        // RFC 5322 §3.6: a message has From.
        if self.addresses(field::FROM).is_empty() {
            push_line(&mut head, "From", &format!("<postmaster@{}>", self.host));
        }
        push_line(&mut head, "Subject", &encoded_words(self.one(field::SUBJECT)));
        let own = format!("<{}@{}>", self.id, self.host);
        push_line(&mut head, "Message-ID", message_id(self.one(field::MESSAGE_ID)).unwrap_or(&own));
        if let Some(id) = message_id(self.one(field::IN_REPLY_TO)) {
            push_line(&mut head, "In-Reply-To", id);
        }
        let references: Vec<String> = texts(self.memo.get(field::REFERENCES));
        let references: Vec<&str> = references.iter().filter_map(|id| message_id(id)).collect();
        if !references.is_empty() {
            push_line(&mut head, "References", &references.join("\r\n "));
        }
        match self.one(field::IMPORTANCE) {
            "1" => push_line(&mut head, "Importance", "high"),
            "3" => push_line(&mut head, "Importance", "low"),
            _ => {}
        }
        if is_failure_memo(self.memo) {
            // RFC 3834 §5.
            push_line(&mut head, "Auto-Submitted", "auto-replied");
        }
        head.push_str("MIME-Version: 1.0\r\n");
        head
    }

    /// The addresses of a field as a message writes them.
    fn addresses(&self, field: &str) -> Vec<String> {
        texts(self.memo.get(field)).iter().filter_map(|written| self.address(written)).collect()
    }

    fn address(&self, written: &str) -> Option<String> {
        let WrittenAddress { name, address } = WrittenAddress::read(written);
        if let Ok(mailbox) = Mailbox::parse(address.as_bytes()) {
            return Some(with_phrase(&name, &mailbox));
        }
        match self.resolver.find(written) {
            Found::Person(person) => {
                let mailbox = self.resolver.mailbox_of(&person)?;
                Some(with_phrase(person.shown_name(), &mailbox))
            }
            // RFC 5322 §3.4: a group whose members are not shown.
            Found::Group(group) => Some(format!("{}:;", phrase(&group.list_name))),
            Found::MailIn(database) => {
                let mailbox = Mailbox::parse(database.internet_address.as_deref()?.as_bytes()).ok()?;
                Some(with_phrase(&database.name, &mailbox))
            }
            Found::Nobody | Found::Several => None,
        }
    }
}

/// One of another version is not read.
const PLAN_VERSION: u8 = 1;

/// What a message is made of. It is kept with what mail clients have seen: [`encoded_text`] and [`base64_lines`] are a part of it, and give
/// for ever what they give now. Whatever else there may be needs a version of its own.
#[derive(Serialize, Deserialize)]
pub(super) struct MessagePlan {
    version: u8,
    boundary: String,
    pieces: Vec<PlanPiece>,
}

#[derive(Serialize, Deserialize)]
enum PlanPiece {
    /// As it stands.
    #[serde(rename = "literal")]
    Literal(String),
    /// The memo's text, encoded.
    #[serde(rename = "text")]
    Text,
    /// A file of the memo, in base64.
    #[serde(rename = "file")]
    File(String),
}

impl MessagePlan {
    /// `None`: of another version.
    pub(super) fn read(stored: &[u8]) -> Option<Self> {
        serde_json::from_slice(stored).ok().filter(|plan: &Self| plan.version == PLAN_VERSION)
    }

    pub(super) fn stored(&self) -> Vec<u8> {
        json!(self).to_string().into_bytes()
    }

    /// The message of a memo. `files` opens its files.
    pub(super) fn written(
        &self,
        memo: &Map<String, Value>,
        files: impl Fn(&str) -> Result<AttachmentReader, DatabaseError>,
    ) -> Result<MessageSource, DatabaseError> {
        let unwritten = |error: std::io::Error| DatabaseError::Internal { reason: error.to_string() };
        let mut writer = SourceWriter::new(u64::MAX);
        let mut push = |bytes: &[u8]| writer.push(bytes).map_err(unwritten);
        for piece in &self.pieces {
            match piece {
                PlanPiece::Literal(text) => push(text.as_bytes())?,
                PlanPiece::Text => push(encoded_text(text_of(memo), &self.boundary).1.as_bytes())?,
                PlanPiece::File(name) => {
                    let reader = files(name)?;
                    let mut offset = 0;
                    loop {
                        let piece = reader.read(offset, PIECE_BYTES)?;
                        if piece.is_empty() {
                            break;
                        }
                        offset += piece.len() as u64;
                        push(base64_lines(&piece).as_bytes())?;
                    }
                }
            }
        }
        writer.finish(0).map_err(unwritten)
    }
}

fn text_of(memo: &Map<String, Value>) -> &str {
    memo.get(field::BODY).and_then(Value::as_str).unwrap_or_default()
}

/// The texts of a field that is a text or a list of texts.
fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => crate::memo::split_list(text),
        Some(Value::Array(texts)) => texts
            .iter()
            .filter_map(Value::as_str)
            .take(TEXTS_MAX)
            .map(|text| text.trim().to_owned())
            .collect(),
        _ => Vec::new(),
    }
}

fn with_phrase(name: &str, mailbox: &Mailbox) -> String {
    if name.is_empty() { format!("<{mailbox}>") } else { format!("{} <{mailbox}>", phrase(name)) }
}

/// A name before an address (RFC 5322 §3.2.5; RFC 2047 §5).
pub(crate) fn phrase(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'-' | b'_' | b'\'');
    let name = one_line(name);
    if name.bytes().all(plain) {
        name
    } else if name.is_ascii() {
        format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        encoded_words(&name)
    }
}

/// Nothing of a memo's texts may end a line of the head.
fn one_line(text: &str) -> String {
    let plain = |character: char| if character.is_control() { ' ' } else { character };
    text.trim().chars().map(plain).collect()
}

pub(crate) fn push_line(head: &mut String, name: &str, value: &str) {
    head.push_str(name);
    head.push_str(": ");
    head.push_str(value);
    head.push_str("\r\n");
}

/// A text as it may stand in a head: as it is, or in encoded words, folded.
pub(crate) fn encoded_words(text: &str) -> String {
    let text = one_line(text);
    let looks_encoded = text.contains("=?");
    if text.is_ascii() && text.len() <= TEXT_LINE_MAX_BYTES - 20 && !looks_encoded {
        return text;
    }
    let (mut words, mut word) = (Vec::new(), String::new());
    for character in text.chars() {
        if word.len() + character.len_utf8() > WORD_BYTES {
            words.push(std::mem::take(&mut word));
        }
        word.push(character);
    }
    words.push(word);
    let words: Vec<String> =
        words.iter().map(|word| format!("=?utf-8?B?{}?=", BASE64.encode(word))).collect();
    words.join("\r\n ")
}

/// An id in its brackets that may stand in a head.
fn message_id(id: &str) -> Option<&str> {
    let inside = id.strip_prefix('<')?.strip_suffix('>')?;
    let is_plain = (1..=900).contains(&inside.len())
        && inside.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>'));
    is_plain.then_some(id)
}

/// The text with line ends of the Internet, and how it is encoded.
pub(crate) fn encoded_text(text: &str, boundary: &str) -> (&'static str, String) {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let is_plain = text.is_ascii()
        && !text.contains('\0')
        && !text.contains(boundary)
        && text.split('\n').all(|line| line.len() <= TEXT_LINE_MAX_BYTES);
    if is_plain {
        let mut body = text.replace('\n', "\r\n");
        if !body.is_empty() && !body.ends_with("\r\n") {
            body.push_str("\r\n");
        }
        return ("7bit", body);
    }
    let mut body = String::with_capacity(text.len() * 2);
    for line in text.strip_suffix('\n').unwrap_or(&text).split('\n') {
        quoted_printable(line, &mut body);
    }
    ("quoted-printable", body)
}

/// One line in quoted-printable (RFC 2045 §6.7), in lines of 76 characters.
fn quoted_printable(line: &str, out: &mut String) {
    let mut column = 0;
    let bytes = line.as_bytes();
    for (place, byte) in bytes.iter().enumerate() {
        let is_last = place + 1 == bytes.len();
        let is_plain =
            matches!(byte, b'!'..=b'<' | b'>'..=b'~') || (matches!(byte, b' ' | b'\t') && !is_last);
        let width = if is_plain { 1 } else { 3 };
        if column + width > 75 {
            out.push_str("=\r\n");
            column = 0;
        }
        if is_plain {
            out.push(char::from(*byte));
        } else {
            out.push_str(&format!("={byte:02X}"));
        }
        column += width;
    }
    out.push_str("\r\n");
}

fn part_head(boundary: &str, name: &str, content_type: &str) -> String {
    let is_type = content_type.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        && content_type.len() <= 200
        && content_type.contains('/');
    // RFC 2046 §5.2.1: a message must not be encoded, so it goes as bytes.
    let is_composite = ["message/", "multipart/"]
        .iter()
        .any(|kind| content_type.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind)));
    let content_type = if is_type && !is_composite { content_type } else { "application/octet-stream" };
    format!(
        "\r\n--{boundary}\r\nContent-Type: {content_type}\r\nContent-Transfer-Encoding: base64\r\n\
         Content-Disposition: attachment;\r\n {}\r\n\r\n",
        file_name(name)
    )
}

/// The parameter `filename` (RFC 2183; RFC 2231 for what is beyond ASCII).
fn file_name(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" !#$&()+,-.;=@[]^_`{}~".contains(&byte);
    if name.bytes().all(is_plain) && name.len() <= 200 {
        return format!("filename=\"{name}\"");
    }
    // In sections, since a line has an end.
    let encoded: Vec<String> = name
        .bytes()
        .map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_') => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect();
    let sections = encoded.chunks(20).enumerate().map(|(number, bytes)| {
        let charset = if number == 0 { "utf-8''" } else { "" };
        format!("filename*{number}*={charset}{}", bytes.concat())
    });
    sections.collect::<Vec<_>>().join(";\r\n ")
}

/// Whole lines of base64.
pub(super) fn base64_lines(piece: &[u8]) -> String {
    let mut lines = String::with_capacity(piece.len() / 3 * 4 + piece.len() / LINE_BYTES * 2 + 8);
    for line in piece.chunks(LINE_BYTES) {
        BASE64.encode_string(line, &mut lines);
        lines.push_str("\r\n");
    }
    lines
}

/// RFC 5322 §3.3, in UTC.
pub(crate) fn mail_date(time_ms: u64) -> String {
    let time = i64::try_from(time_ms).ok().and_then(|time_ms| Timestamp::from_millisecond(time_ms).ok());
    time.unwrap_or_default().strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_memo_ends_a_line_of_the_head() {
        let evil = "x\r\nBcc: victim@a.test\r\n\r\nbody";
        for text in [encoded_words(evil), phrase(evil), encoded_words(&format!("{evil} \u{e4}"))] {
            assert!(!text.contains("\nBcc") && !text.contains("\n\r"), "{text:?}");
        }
        assert!(message_id("<a@b>\r\nBcc: x").is_none() && message_id("<a b@c>").is_none());
        assert!(
            !file_name("a\"\r\nX: y").contains(['\r', '"'].as_slice())
                || file_name("a\"\r\nX: y").starts_with("filename*0*=")
        );
        assert!(!part_head("b", "n", "text/plain\r\nX: y").contains("X: y"));
    }

    #[test]
    fn long_and_foreign_texts_are_encoded_and_plain_ones_are_not() {
        assert_eq!(encoded_words("Hello"), "Hello");
        let words = encoded_words(&"Gr\u{fc}\u{df}e aus K\u{f6}ln ".repeat(20));
        assert!(words.lines().all(|line| line.len() <= 76), "{words}");
        assert_eq!(encoded_text("a\nb", "=_x"), ("7bit", "a\r\nb\r\n".to_owned()));
        let (encoding, body) = encoded_text("Gr\u{fc}\u{df}e \n.", "=_x");
        assert_eq!((encoding, body.as_str()), ("quoted-printable", "Gr=C3=BC=C3=9Fe=20\r\n.\r\n"));
        let (encoding, body) = encoded_text(&"x".repeat(3_000), "=_x");
        assert_eq!(encoding, "quoted-printable");
        assert!(body.lines().all(|line| line.len() <= 76));
        assert_eq!(encoded_text("--=_x--\n", "=_x").0, "quoted-printable", "a text cannot end its part");
    }
}
