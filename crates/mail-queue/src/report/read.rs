//! Reads a delivery report that came back: which message and whom it is about.

use scrinium_smtp_wire::EnhancedCode;

use crate::outcome::clean_text;

/// A report is looked at up to here. What follows is the message that comes back.
const SCANNED_MAX_BYTES: usize = 1 << 20;

/// More recipients of a report are not read.
const RECIPIENTS_MAX: usize = 10_000;

/// Fields are unfolded up to this length.
const FIELD_MAX_BYTES: usize = 2_000;

/// A boundary is no longer than this (RFC 2046, section 5.1.1).
const BOUNDARY_MAX_BYTES: usize = 70;

/// More parts of a report are not looked at.
const PARTS_MAX: usize = 20;

/// What a report says of a recipient (RFC 3464, section 2.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ReportedAction {
    Failed,
    Delayed,
    Delivered,
    Relayed,
    Expanded,
}

/// A recipient in a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedRecipient {
    /// Final-Recipient, without its type.
    pub address: String,
    /// Original-Recipient, without its type.
    pub original: Option<String>,
    /// Action.
    pub action: ReportedAction,
    /// Status.
    pub status: Option<EnhancedCode>,
    /// Diagnostic-Code, without its type.
    pub diagnostic: Option<String>,
    /// Remote-MTA, without its type.
    pub host: Option<String>,
}

/// A delivery report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Original-Envelope-Id: the ENVID that we gave.
    pub envelope_id: Option<String>,
    /// The Message-ID of the message that comes back, in its brackets.
    pub message_id: Option<String>,
    /// Reporting-MTA, without its type.
    pub reporter: Option<String>,
    /// The recipients.
    pub recipients: Vec<ReportedRecipient>,
}

/// Reads a message; `None` if it is no delivery report. Whatever is in it costs no more than its first megabyte.
#[must_use]
pub fn read_report(message: &[u8]) -> Option<Report> {
    let message = message.get(..SCANNED_MAX_BYTES).unwrap_or(message);
    let (headers, body) = split_head(message);
    let content_type = field(headers, "content-type")?;
    if !content_type.to_ascii_lowercase().starts_with("multipart/report") {
        return None;
    }
    let boundary = parameter(&content_type, "boundary")?;
    if boundary.is_empty() || boundary.len() > BOUNDARY_MAX_BYTES {
        return None;
    }
    let mut report = None;
    for part in parts(body, boundary.as_bytes()) {
        let (headers, body) = split_head(part);
        let kind = field(headers, "content-type").unwrap_or_default().to_ascii_lowercase();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_owned();
        let decoded = decoded(headers, body);
        match kind.as_str() {
            "message/delivery-status" | "message/global-delivery-status" if report.is_none() => {
                report = Some(status(&decoded));
            }
            "text/rfc822-headers" | "message/rfc822" | "message/global" | "message/global-headers" => {
                let report = report.as_mut().filter(|report: &&mut Report| report.message_id.is_none());
                if let Some(report) = report {
                    report.message_id = field(split_head(&decoded).0, "message-id");
                }
            }
            _ => {}
        }
    }
    report.filter(|report| !report.recipients.is_empty())
}

/// Headers and body. Bare LF ends lines as well, because what comes back went through many hands.
fn split_head(text: &[u8]) -> (&[u8], &[u8]) {
    let mut end = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if matches!(line, b"\r\n" | b"\n") {
            return (text.get(..end).unwrap_or_default(), text.get(end + line.len()..).unwrap_or_default());
        }
        end += line.len();
    }
    (text, &[])
}

/// Lines of headers, without their ends, folded ones put together.
fn fields(headers: &[u8]) -> impl Iterator<Item = (String, String)> + '_ {
    let mut lines = headers.split(|byte| *byte == b'\n').peekable();
    std::iter::from_fn(move || {
        loop {
            let first = lines.next()?;
            let mut text = first.strip_suffix(b"\r").unwrap_or(first).to_vec();
            while let Some(next) = lines.next_if(|line| matches!(line.first(), Some(b' ' | b'\t'))) {
                if text.len() < FIELD_MAX_BYTES {
                    text.push(b' ');
                    text.extend_from_slice(next.trim_ascii());
                }
            }
            text.truncate(FIELD_MAX_BYTES);
            let text = String::from_utf8_lossy(&text);
            if let Some((name, value)) = text.split_once(':') {
                return Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
    })
}

fn field(headers: &[u8], wanted: &str) -> Option<String> {
    fields(headers).find(|(name, _)| name == wanted).map(|(_, value)| value)
}

/// A parameter of a Content-Type, without quotes.
fn parameter(value: &str, wanted: &str) -> Option<String> {
    let mut rest = value.split_once(';')?.1;
    loop {
        let (name, after) = rest.split_once('=')?;
        let name = name.trim().trim_start_matches(';').trim();
        let (value, next) = match after.trim_start().strip_prefix('"') {
            Some(quoted) => {
                let end = closing_quote(quoted)?;
                (quoted.get(..end)?.replace('\\', ""), quoted.get(end + 1..).unwrap_or_default())
            }
            None => {
                let (value, next) = after.split_once(';').unwrap_or((after, ""));
                (value.trim().to_owned(), next)
            }
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = next;
    }
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

/// The parts between the lines of a boundary.
fn parts<'a>(body: &'a [u8], boundary: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (None, 0);
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let marker = line.trim_ascii_end().strip_prefix(b"--").and_then(|rest| rest.strip_prefix(boundary));
        if let Some(end @ (b"" | b"--")) = marker {
            if let Some(start) = start {
                parts.extend(body.get(start..at));
            }
            if end == b"--" || parts.len() >= PARTS_MAX {
                return parts;
            }
            start = Some(at + line.len());
        }
        at += line.len();
    }
    // What was cut off at the end is still worth reading.
    parts.extend(start.and_then(|start| body.get(start..)));
    parts
}

/// The body of a part. Some servers encode fields that are plain ASCII.
fn decoded(headers: &[u8], body: &[u8]) -> Vec<u8> {
    let encoding = field(headers, "content-transfer-encoding").unwrap_or_default();
    if !encoding.eq_ignore_ascii_case("quoted-printable") {
        return body.to_vec();
    }
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (b'=', [b'\r', b'\n', after @ ..] | [b'\n', after @ ..]) => rest = after,
            (b'=', [high, low, after @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    out.push(high << 4 | low);
                    rest = after;
                }
                _ => out.push(b'='),
            },
            (byte, _) => out.push(*byte),
        }
    }
    out
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// The fields of a report: a group for the message, and one for each recipient.
fn status(body: &[u8]) -> Report {
    let mut report = Report::default();
    for group in groups(body) {
        let mut recipient = ReportedRecipient {
            address: String::new(),
            original: None,
            action: ReportedAction::Failed,
            status: None,
            diagnostic: None,
            host: None,
        };
        for (name, value) in fields(group) {
            match name.as_str() {
                "original-envelope-id" if report.envelope_id.is_none() => {
                    report.envelope_id = Some(clean_text(&value));
                }
                "reporting-mta" if report.reporter.is_none() => report.reporter = typed(&value),
                "final-recipient" => recipient.address = address(&value).unwrap_or_default(),
                "original-recipient" => recipient.original = address(&value),
                "action" => recipient.action = action(&value),
                "status" => {
                    // Some add a comment.
                    let code = value.split([' ', '(']).next().unwrap_or_default();
                    recipient.status = EnhancedCode::split(code).map(|(status, _)| status);
                }
                "diagnostic-code" => recipient.diagnostic = typed(&value),
                "remote-mta" => recipient.host = typed(&value),
                _ => {}
            }
        }
        if !recipient.address.is_empty() || recipient.original.is_some() {
            report.recipients.push(recipient);
        }
        if report.recipients.len() >= RECIPIENTS_MAX {
            break;
        }
    }
    report
}

/// Groups of lines that blank lines part.
fn groups(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = body;
    std::iter::from_fn(move || {
        loop {
            if rest.is_empty() {
                return None;
            }
            let (group, after) = split_head(rest);
            rest = after;
            if !group.trim_ascii().is_empty() {
                return Some(group);
            }
        }
    })
}

fn action(value: &str) -> ReportedAction {
    let word = value.split([' ', '(']).next().unwrap_or_default();
    match word.to_ascii_lowercase().as_str() {
        "delayed" => ReportedAction::Delayed,
        "delivered" => ReportedAction::Delivered,
        "relayed" => ReportedAction::Relayed,
        "expanded" => ReportedAction::Expanded,
        _ => ReportedAction::Failed,
    }
}

/// A value behind its type and a semicolon. Some leave the type out.
fn typed(value: &str) -> Option<String> {
    let text = value.split_once(';').map_or(value, |(_, text)| text);
    let text = clean_text(text.trim());
    (!text.is_empty()).then_some(text)
}

/// An address without its type, brackets and escapes.
fn address(value: &str) -> Option<String> {
    let is_utf8 = value.trim_start().get(..5).is_some_and(|kind| kind.eq_ignore_ascii_case("utf-8"));
    let text = typed(value)?;
    let text = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')).unwrap_or(&text).to_owned();
    let text = if is_utf8 { unescaped(&text) } else { text };
    (!text.is_empty()).then_some(text)
}

/// Text with the escapes of RFC 6533, section 3; what is no escape stays.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\x{") {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let digits = escape.get(3..).and_then(|digits| digits.split_once('}'));
        let read = digits.filter(|(digits, _)| digits.len() <= 6).and_then(|(digits, after)| {
            let letter = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
            (!letter.is_control()).then_some((letter, after))
        });
        match read {
            Some((letter, after)) => {
                out.push(letter);
                rest = after;
            }
            None => {
                out.push('\\');
                rest = escape.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out
}
