//! What must be known of a message's source before it goes out.

use bytes::Bytes;
use scrinium_database::DatabaseError;

/// Read at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// Of a longer head, only the beginning is looked at.
const HEAD_MAX_BYTES: usize = 512 * 1024;

/// A longer Message-ID is not used.
const MESSAGE_ID_MAX_BYTES: usize = 900;

/// What a source is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SourceFacts {
    /// Where the message begins: a return path before it is this server's alone (RFC 5321 §4.4).
    pub(super) start_bytes: u64,
    /// Bytes from there.
    pub(super) length_bytes: u64,
    /// `Received` fields: servers that it has gone through.
    pub(super) received: usize,
    /// It has bytes beyond ASCII.
    pub(super) has_eight_bit: bool,
    /// Its head has (RFC 6532).
    pub(super) needs_utf8: bool,
    /// It is a report, about which nobody is notified.
    pub(super) is_report: bool,
    /// With its brackets.
    pub(super) message_id: Option<String>,
}

/// Looks through a source from `start_bytes` on; `read` gives bytes at a place, none at the end.
pub(super) fn scan(
    start_bytes: u64,
    mut read: impl FnMut(u64, usize) -> Result<Bytes, DatabaseError>,
) -> Result<SourceFacts, DatabaseError> {
    let mut head = Vec::new();
    let mut is_in_head = true;
    let (mut position, mut has_eight_bit) = (start_bytes, false);
    loop {
        let piece = read(position, PIECE_BYTES)?;
        if piece.is_empty() {
            break;
        }
        position += piece.len() as u64;
        has_eight_bit |= !piece.is_ascii();
        if is_in_head {
            head.extend_from_slice(&piece);
            if let Some(end) = head_end(&head) {
                head.truncate(end);
                is_in_head = false;
            } else if head.len() >= HEAD_MAX_BYTES {
                is_in_head = false;
            }
        }
    }
    let mut facts = facts_of(&head);
    facts.has_eight_bit = has_eight_bit;
    facts.length_bytes = position.saturating_sub(start_bytes).saturating_sub(facts.start_bytes);
    facts.start_bytes += start_bytes;
    Ok(facts)
}

/// Behind the last line of the head.
fn head_end(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with(b"\r\n") || bytes.starts_with(b"\n") {
        return Some(0);
    }
    let mut after = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if matches!(line, b"\r\n" | b"\n") {
            return Some(after);
        }
        after += line.len();
    }
    None
}

/// What the fields of a head say; the start is behind fields `Return-Path` that stand first.
fn facts_of(head: &[u8]) -> SourceFacts {
    let mut facts = SourceFacts { needs_utf8: !head.is_ascii(), ..SourceFacts::default() };
    let mut is_first = true;
    for field in fields(head) {
        let (name, value) = name_and_value(field);
        if is_first && name.eq_ignore_ascii_case(b"return-path") {
            facts.start_bytes += field.len() as u64;
            continue;
        }
        is_first = false;
        if name.eq_ignore_ascii_case(b"received") {
            facts.received += 1;
        } else if name.eq_ignore_ascii_case(b"content-type") {
            facts.is_report |= begins_with(value, b"multipart/report");
        } else if name.eq_ignore_ascii_case(b"message-id") && facts.message_id.is_none() {
            facts.message_id = message_id(value);
        }
    }
    facts
}

/// Fields with the lines that continue them.
fn fields(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = head;
    std::iter::from_fn(move || {
        let mut end = 0;
        for line in rest.split_inclusive(|byte| *byte == b'\n') {
            if end > 0 && !matches!(line.first(), Some(b' ' | b'\t')) {
                break;
            }
            end += line.len();
        }
        let (field, after) = rest.split_at_checked(end)?;
        rest = after;
        (!field.is_empty()).then_some(field)
    })
}

fn name_and_value(field: &[u8]) -> (&[u8], &[u8]) {
    let colon = field.iter().position(|byte| *byte == b':').unwrap_or(field.len());
    let (name, value) = field.split_at_checked(colon).unwrap_or((field, &[]));
    (name.trim_ascii_end(), value.strip_prefix(b":").unwrap_or_default().trim_ascii())
}

fn begins_with(value: &[u8], word: &[u8]) -> bool {
    value.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// The id in its brackets, if it is plain.
fn message_id(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    let start = text.find('<')?;
    let end = start + text.get(start..)?.find('>')?;
    let id = text.get(start..=end)?;
    let is_plain = id.len() <= MESSAGE_ID_MAX_BYTES && !id.chars().any(|one| one.is_control() || one == ' ');
    is_plain.then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(source: &'static [u8]) -> SourceFacts {
        let read = |offset: u64, most: usize| {
            let offset = usize::try_from(offset).unwrap();
            Ok(Bytes::from_static(&source[offset..source.len().min(offset + most.min(7))]))
        };
        scan(0, read).unwrap()
    }

    #[test]
    fn a_source_is_sent_without_the_return_path_of_this_server() {
        let source = b"Return-Path: <a@b.test>\r\nReceived: one\r\n two\r\nreceived: three\r\nMessage-ID:\r\n <m@x>\r\nTo: x\r\n\r\nReceived: no\r\n";
        let facts = facts(source);
        assert_eq!((facts.start_bytes, facts.received), (25, 2));
        assert_eq!(facts.length_bytes, source.len() as u64 - 25);
        assert_eq!(facts.message_id.as_deref(), Some("<m@x>"));
        assert!(!facts.has_eight_bit && !facts.needs_utf8 && !facts.is_report);
    }

    #[test]
    fn bytes_beyond_ascii_and_reports_are_noticed() {
        let body = facts("Subject: x\r\n\r\nGr\u{fc}\u{df}e\r\n".as_bytes());
        assert!(body.has_eight_bit && !body.needs_utf8);
        let head = facts("Subject: Gr\u{fc}\u{df}e\r\n\r\nx\r\n".as_bytes());
        assert!(head.has_eight_bit && head.needs_utf8);
        assert!(facts(b"Content-Type:\r\n Multipart/Report; boundary=x\r\n\r\n").is_report);
        assert!(!facts(b"Content-Type: multipart/mixed\r\n\r\nContent-Type: multipart/report\r\n").is_report);
        assert_eq!(facts(b"\r\nbody").length_bytes, 6);
        assert_eq!(facts(b"").length_bytes, 0);
    }
}
