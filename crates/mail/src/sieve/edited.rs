//! The head of a message after a script has changed it (RFC 5293).

use scrinium_sieve::HeaderEdit;

use super::head::fields_of;
use crate::outgoing::compose::{encoded_words, push_line};

/// The head with all changes, one after the other. What is no field stays where it is.
pub(crate) fn edited_head(head: &[u8], edits: &[HeaderEdit]) -> Vec<u8> {
    let starts: Vec<usize> = fields_of(head).into_iter().map(|(name, _)| name.start).collect();
    let ends = starts.iter().skip(1).copied().chain([head.len()]);
    let raw = starts.iter().zip(ends).map(|(start, end)| head.get(*start..end).unwrap_or_default().to_vec());
    let mut fields: Vec<Vec<u8>> = raw.collect();
    // A field that the head ends with may lack the end of its line.
    if let Some(last) = fields.last_mut().filter(|last| !last.ends_with(b"\n")) {
        last.extend_from_slice(b"\r\n");
    }
    for edit in edits {
        match edit {
            HeaderEdit::Add { name, value, last } => {
                let mut line = String::new();
                push_line(&mut line, name, &encoded_words(value));
                let place = if *last { fields.len() } else { 0 };
                fields.insert(place, line.into_bytes());
            }
            HeaderEdit::Delete { index } if *index < fields.len() => drop(fields.remove(*index)),
            HeaderEdit::Delete { .. } => {}
        }
    }
    let before = head.get(..starts.first().copied().unwrap_or(head.len())).unwrap_or_default();
    [before, &fields.concat()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_and_go_and_all_others_keep_their_bytes() {
        let head = b"Received: a\r\n b\r\nSubject: x\r\nno field\r\nX-Old:\r\n";
        let add =
            |name: &str, value: &str, last| HeaderEdit::Add { name: name.into(), value: value.into(), last };
        let edits = [
            add("X-Top", "1", false),
            add("X-End", "gr\u{fc}n", true),
            HeaderEdit::Delete { index: 3 },
            HeaderEdit::Delete { index: 9 },
        ];
        let text = String::from_utf8(edited_head(head, &edits)).unwrap();
        let (before, end) = text.split_once("X-End: ").unwrap();
        assert_eq!(before, "X-Top: 1\r\nReceived: a\r\n b\r\nSubject: x\r\nno field\r\n");
        assert!(end.starts_with("=?utf-8?") && end.ends_with("?=\r\n"), "{end}");
        assert_eq!(edited_head(b"", &[add("A", "b", false)]), b"A: b\r\n");
        assert_eq!(edited_head(b"A: b", &[add("C", "d", true)]), b"A: b\r\nC: d\r\n");
        assert_eq!(edited_head(head, &[]), head);
    }
}
