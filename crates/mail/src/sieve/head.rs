//! The head of a message as scripts see it: where it ends, and where its fields are.

use std::ops::Range;

/// A longer head is looked at so far.
const HEAD_MAX_BYTES: usize = 1 << 20;

/// Read of a head at a time.
const PIECE_BYTES: usize = 32 << 10;

/// Fields that are looked at, from the top.
const FIELDS_MAX: usize = 2_000;

/// Where the name of a field and its value are in a head.
pub(super) type FieldPlaces = (Range<usize>, Range<usize>);

/// Reads a head by `read`, which gives at most that number of bytes from a place on. The head without the empty line behind it, and where the body
/// begins.
///
/// # Errors
/// Those of `read`.
pub(crate) fn read_head<E>(
    mut read: impl FnMut(u64, usize) -> Result<bytes::Bytes, E>,
) -> Result<(Vec<u8>, u64), E> {
    let mut head: Vec<u8> = Vec::new();
    let mut end = None;
    while end.is_none() && head.len() < HEAD_MAX_BYTES {
        let looked_at = head.len().saturating_sub(3);
        let piece = read(head.len() as u64, PIECE_BYTES)?;
        if piece.is_empty() {
            break;
        }
        head.extend_from_slice(&piece);
        end = end_of_head(&head, looked_at);
    }
    let (head_bytes, body_start) = end.unwrap_or((head.len(), head.len()));
    head.truncate(head_bytes);
    Ok((head, body_start as u64))
}

/// Where a head ends, and what follows it begins, looked for from `from` on.
pub(super) fn end_of_head(head: &[u8], from: usize) -> Option<(usize, usize)> {
    if from == 0 && (head.starts_with(b"\r\n") || head.starts_with(b"\n")) {
        return Some((0, if head.starts_with(b"\n") { 1 } else { 2 }));
    }
    memchr::memchr_iter(b'\n', head.get(from..)?).find_map(|place| {
        let next = from + place + 1;
        match head.get(next..)? {
            [b'\n', ..] => Some((next, next + 1)),
            [b'\r', b'\n', ..] => Some((next, next + 2)),
            _ => None,
        }
    })
}

/// Names and values of fields, each value with its folds and without the end of its last line.
pub(super) fn fields_of(head: &[u8]) -> Vec<FieldPlaces> {
    let mut fields: Vec<FieldPlaces> = Vec::new();
    let mut start = 0;
    while let Some(rest) = head.get(start..).filter(|rest| !rest.is_empty()) {
        let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |place| place + 1);
        let line = rest.get(..length).unwrap_or_default();
        let end = start + line.trim_ascii_end().len();
        let is_fold = matches!(line.first(), Some(b' ' | b'\t'));
        if is_fold {
            // RFC 5322 §2.2.3
            if let Some((_, value)) = fields.last_mut() {
                value.end = end.max(value.end);
            }
        } else if fields.len() >= FIELDS_MAX {
            break;
        } else if let Some(colon) = memchr::memchr(b':', line) {
            let name = line.get(..colon).unwrap_or_default().trim_ascii_end().len();
            let value = start + colon + 1;
            fields.push((start..start + name, value..end.max(value)));
        }
        start += length;
    }
    fields
}
