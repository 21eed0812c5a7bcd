//! Writes a delivery report: a text for people, fields for programs, and the message or its headers (RFC 6522, RFC 3464;
//! RFC 6533 for addresses beyond ASCII).

use std::fmt::Write as _;

use jiff::Timestamp;
use scrinium_smtp_wire::{Mailbox, OriginalRecipient, Return, encode_xtext};

use super::words;
use crate::entry::{QueueEntry, Recipient};
use crate::notice::{NoticeKind, NoticePlan};
use crate::outcome::{Outcome, clean_text};

/// A larger message comes back as its headers, unless the sender asked for all of it.
const FULL_MAX_BYTES: usize = 50_000;

/// Headers that are longer are cut at the end of a line.
const HEADERS_MAX_BYTES: usize = 64_000;

/// The text for people names at most this many; the fields name all.
const NAMED_MAX: usize = 50;

/// A line of fields is folded behind this many bytes (RFC 5322, section 2.1.1).
const FOLD_BYTES: usize = 76;

/// Where a report comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportOptions {
    /// The server's name: the reporting MTA, and the domain of the notice's Message-ID.
    pub host: String,
    /// The address in From, of a domain whose mail is signed. The envelope's sender is the null sender all the same.
    pub from: Mailbox,
}

/// The message that a report is about.
#[derive(Clone, Copy, Debug)]
pub struct OriginalSource<'a> {
    /// All of it, with its headers first.
    pub bytes: &'a [u8],
}

/// A notice that is to be queued: from the null sender, with NOTIFY=NEVER, under its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// [`NoticePlan::id`].
    pub id: String,
    /// Whom it is for.
    pub recipient: Mailbox,
    /// Its source.
    pub source: Vec<u8>,
    /// It needs SMTPUTF8.
    pub utf8: bool,
    /// It has bytes beyond ASCII.
    pub eight_bit: bool,
}

/// Writes the notice that is planned for an entry; `None` if nobody is to have one. The same plan at the same time gives the
/// same bytes.
#[must_use]
pub fn write_report(
    entry: &QueueEntry,
    plan: &NoticePlan,
    original: OriginalSource<'_>,
    options: &ReportOptions,
    now_ms: u64,
) -> Option<Notice> {
    if entry.envelope.is_silent() {
        return None;
    }
    let sender = entry.envelope.sender.clone()?;
    let writer = Writer { entry, plan, options, now_ms, is_global: entry.envelope.utf8 };
    let returned = writer.returned(original.bytes);
    let boundary = boundary(&plan.id, returned.bytes);
    let mut source = writer.headers(&sender, &boundary).into_bytes();
    let text = writer.text();
    let body = writer.fields();
    let eight_bit = !text.is_ascii() || !body.is_ascii() || !returned.bytes.is_ascii();
    part(&mut source, &boundary, "text/plain; charset=utf-8", text.as_bytes());
    part(&mut source, &boundary, writer.status_type(), body.as_bytes());
    part(&mut source, &boundary, returned.content_type, returned.bytes);
    source.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    // A notice needs no SMTPUTF8 if neither its own headers do nor those in a part that only SMTPUTF8 may carry (RFC 6533,
    // section 4).
    let is_ascii = sender.is_ascii() && body.is_ascii() && headers_of(original.bytes).is_ascii();
    let utf8 = writer.is_global && !is_ascii;
    Some(Notice { id: plan.id.clone(), recipient: sender, source, utf8, eight_bit })
}

fn part(source: &mut Vec<u8>, boundary: &str, content_type: &str, body: &[u8]) {
    let encoding = if body.is_ascii() { "7bit" } else { "8bit" };
    let head = format!(
        "\r\n--{boundary}\r\nContent-Type: {content_type}\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n"
    );
    source.extend_from_slice(head.as_bytes());
    source.extend_from_slice(body);
}

/// A boundary that stands nowhere in the message that is returned, whatever its sender tried to guess.
fn boundary(id: &str, returned: &[u8]) -> String {
    for number in 0_u32.. {
        let hash = blake3::hash(format!("boundary {number} {id}").as_bytes()).to_hex();
        let boundary = format!("report-{}", hash.get(..32).unwrap_or(&hash));
        let stands_there = returned.windows(boundary.len()).any(|window| window == boundary.as_bytes());
        if !stands_there {
            return boundary;
        }
    }
    id.to_owned()
}

struct Returned<'a> {
    content_type: &'static str,
    bytes: &'a [u8],
}

struct Writer<'a> {
    entry: &'a QueueEntry,
    plan: &'a NoticePlan,
    options: &'a ReportOptions,
    now_ms: u64,
    is_global: bool,
}

impl Writer<'_> {
    fn recipients(&self) -> impl Iterator<Item = &Recipient> {
        self.plan.recipients.iter().filter_map(|place| self.entry.recipient(*place))
    }

    /// What comes back of the message: all of a small one that failed, else its headers (RFC 3461, section 4.3: RET is
    /// for failures alone).
    fn returned<'a>(&self, original: &'a [u8]) -> Returned<'a> {
        let is_full = self.plan.kind == NoticeKind::Failure
            && match self.entry.envelope.return_content {
                Some(Return::Full) => true,
                Some(Return::Headers) => false,
                None => original.len() <= FULL_MAX_BYTES,
            };
        let content_type = match (is_full, self.is_global) {
            (true, false) => "message/rfc822",
            (true, true) => "message/global",
            (false, false) => "text/rfc822-headers",
            (false, true) => "message/global-headers",
        };
        Returned { content_type, bytes: if is_full { original } else { headers_of(original) } }
    }

    fn status_type(&self) -> &'static str {
        if self.is_global { "message/global-delivery-status" } else { "message/delivery-status" }
    }

    fn headers(&self, sender: &Mailbox, boundary: &str) -> String {
        let (subject, _) = words::opening(self.plan.kind, self.entry.envelope.language);
        let host = &self.options.host;
        let mut out = String::new();
        let mut line = |name: &str, value: &str| out.push_str(&format!("{name}: {value}\r\n"));
        line("From", &format!("Mail Delivery System <{}>", self.options.from));
        line("To", &format!("<{sender}>"));
        line("Subject", &encoded_word(subject));
        line("Date", &mail_date(self.now_ms));
        line("Message-ID", &format!("<{}@{host}>", self.plan.id));
        if let Some(message_id) = self.entry.envelope.message_id.as_deref().and_then(message_id) {
            line("In-Reply-To", message_id);
            line("References", message_id);
        }
        // RFC 3834, section 5: what is made automatically in answer to something.
        line("Auto-Submitted", "auto-replied");
        line("MIME-Version", "1.0");
        // The type of the report stays the same where its parts are of the kinds for addresses beyond ASCII.
        let kind = format!("multipart/report; report-type=delivery-status;\r\n boundary=\"{boundary}\"");
        line("Content-Type", &kind);
        out.push_str("\r\nThis is a delivery report in several parts.\r\n");
        out
    }

    /// The text for people.
    fn text(&self) -> String {
        let language = self.entry.envelope.language;
        let labels = words::labels(language);
        let (_, opening) = words::opening(self.plan.kind, language);
        let mut out = wrapped(opening, "");
        let mut advices = Vec::new();
        for recipient in self.recipients().take(NAMED_MAX) {
            let _ = write!(out, "\r\n<{}>\r\n", recipient.address);
            let Some(outcome) = &recipient.outcome else { continue };
            out.push_str(&wrapped(&words::explain(outcome, language), "  "));
            if let Some(reply) = &outcome.reply {
                out.push_str(&wrapped(&format!("{}: {reply}", labels.answer), "  "));
            }
            let advice = words::advice(outcome.cause, language);
            if !advices.contains(&advice) {
                advices.push(advice);
            }
        }
        let more = self.plan.recipients.len().saturating_sub(NAMED_MAX);
        if more > 0 {
            let _ = write!(out, "\r\n{}\r\n", labels.more.replace("{count}", &more.to_string()));
        }
        out.push_str("\r\n");
        if self.plan.kind == NoticeKind::Failure {
            advices.iter().for_each(|advice| out.push_str(&wrapped(advice, "")));
            out.push_str("\r\n");
        }
        let _ = write!(out, "{}: {}\r\n", labels.sent, mail_date(self.entry.arrived_ms));
        if self.plan.kind == NoticeKind::Delay {
            let _ = write!(out, "{}: {}\r\n", labels.until, mail_date(self.entry.expires_ms));
        }
        let _ = write!(out, "{} {}.\r\n", labels.reporter, self.options.host);
        out
    }

    /// The fields for programs (RFC 3464, section 2).
    fn fields(&self) -> String {
        let mut out = String::new();
        self.field(&mut out, "Reporting-MTA", &format!("dns; {}", self.options.host));
        if let Some(envelope_id) = &self.entry.envelope.envelope_id {
            // Section 2.2.1: as it came, but for xtext.
            self.field(&mut out, "Original-Envelope-Id", envelope_id);
        }
        self.field(&mut out, "Arrival-Date", &mail_date(self.entry.arrived_ms));
        for recipient in self.recipients() {
            out.push_str("\r\n");
            self.recipient_fields(&mut out, recipient);
        }
        out
    }

    fn recipient_fields(&self, out: &mut String, recipient: &Recipient) {
        if let Some(original) = &recipient.original {
            self.field(out, "Original-Recipient", &self.original(original));
        }
        self.field(out, "Final-Recipient", &self.address(&recipient.address));
        let action = match self.plan.kind {
            NoticeKind::Failure => "failed",
            NoticeKind::Delay => "delayed",
            NoticeKind::Success => "delivered",
            NoticeKind::Relayed => "relayed",
        };
        self.field(out, "Action", action);
        let Some(outcome) = &recipient.outcome else {
            self.field(out, "Status", if self.plan.kind == NoticeKind::Delay { "4.0.0" } else { "5.0.0" });
            return;
        };
        self.field(out, "Status", &outcome.status.to_string());
        if let Some(host) = &outcome.host {
            self.field(out, "Remote-MTA", &format!("dns; {host}"));
        }
        if let Some(reply) = &outcome.reply {
            // Section 2.3.6: of type smtp if it is a server's reply; ours are of a type of our own.
            let kind = if is_reply(reply) { "smtp" } else { "X-Scrinium" };
            self.field(out, "Diagnostic-Code", &format!("{kind}; {reply}"));
        }
        if self.plan.kind == NoticeKind::Delay {
            self.field(out, "Will-Retry-Until", &mail_date(self.entry.expires_ms));
        }
        self.last_attempt(out, outcome);
    }

    fn last_attempt(&self, out: &mut String, outcome: &Outcome) {
        if outcome.host.is_some() {
            self.field(out, "Last-Attempt-Date", &mail_date(self.now_ms));
        }
    }

    /// RFC 6533, section 3: an address beyond ASCII is of the type utf-8, in its escaped form where the report is of the
    /// old kind.
    fn address(&self, address: &Mailbox) -> String {
        if address.is_ascii() {
            format!("rfc822; {address}")
        } else if self.is_global {
            format!("utf-8; {address}")
        } else {
            format!("utf-8; {}", escaped(&address.to_string()))
        }
    }

    fn original(&self, original: &OriginalRecipient) -> String {
        let (kind, address) = (original.address_type(), original.address());
        if address.is_ascii() {
            // RFC 3464, section 2.3.1: the address decoded from xtext; one that could break the line stays encoded.
            let is_plain = address.bytes().all(|byte| (b' '..=b'~').contains(&byte));
            let address = if is_plain { address.to_owned() } else { encode_xtext(address.as_bytes()) };
            format!("{kind}; {address}")
        } else if self.is_global {
            format!("{kind}; {address}")
        } else {
            format!("{kind}; {}", escaped(address))
        }
    }

    fn field(&self, out: &mut String, name: &str, value: &str) {
        let value = clean_text(value);
        let value: String = match self.is_global {
            true => value,
            false => value.chars().map(|letter| if letter.is_ascii() { letter } else { '?' }).collect(),
        };
        let mut column = name.len() + 1;
        out.push_str(name);
        out.push(':');
        for word in value.split(' ') {
            if column + 1 + word.len() > FOLD_BYTES && column > 1 && !word.is_empty() {
                out.push_str("\r\n");
                column = 0;
            }
            out.push(' ');
            out.push_str(word);
            column += 1 + word.len();
        }
        out.push_str("\r\n");
    }
}

/// Whether a text begins as a reply of SMTP does.
fn is_reply(text: &str) -> bool {
    let code = text.get(..4).unwrap_or_default();
    code.ends_with(' ') && code.bytes().take(3).all(|byte| byte.is_ascii_digit())
}

fn escaped(address: &str) -> String {
    let mut out = String::new();
    for letter in address.chars() {
        match letter {
            '!'..='~' if !matches!(letter, '+' | '=' | '\\') => out.push(letter),
            _ => drop(write!(out, "\\x{{{:X}}}", u32::from(letter))),
        }
    }
    out
}

/// A Message-ID that may stand in a header: one pair of brackets, and nothing between that could end the line.
fn message_id(id: &str) -> Option<&str> {
    let inside = id.trim().strip_prefix('<')?.strip_suffix('>')?;
    let is_plain = !inside.is_empty()
        && inside.len() <= 900
        && inside.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>'));
    is_plain.then_some(id.trim())
}

/// RFC 2047, of a text that is short enough for one word.
fn encoded_word(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut out = String::from("=?utf-8?Q?");
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('_'),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            byte => drop(write!(out, "={byte:02X}")),
        }
    }
    out.push_str("?=");
    out
}

/// RFC 5322, section 3.3, in UTC.
fn mail_date(time_ms: u64) -> String {
    let time = i64::try_from(time_ms).ok().and_then(|time_ms| Timestamp::from_millisecond(time_ms).ok());
    time.unwrap_or_default().strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
}

/// Lines of at most 72 characters where words allow it.
fn wrapped(text: &str, indent: &str) -> String {
    let (mut out, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column == 0 {
            out.push_str(indent);
            column = indent.len();
        } else if column + 1 + width > 72 {
            out.push_str("\r\n");
            out.push_str(indent);
            column = indent.len();
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push_str("\r\n");
    out
}

/// The headers of a message, with their last line end, cut at the end of a line if they are long.
fn headers_of(message: &[u8]) -> &[u8] {
    let mut end = 0;
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        let is_blank = matches!(line, b"\r\n" | b"\n");
        if is_blank || end + line.len() > HEADERS_MAX_BYTES {
            break;
        }
        end += line.len();
    }
    message.get(..end).unwrap_or_default()
}
