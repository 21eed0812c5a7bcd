//! The words of attachments, for full text: files, and those in the sources of messages.

use std::time::Duration;

use scrinium_extraction::{ExtractionError, Extractor, Kind};
use scrinium_mail::{SOURCE_CONTENT_TYPE, field};
use scrinium_mailbox::{MapBuilder, MessageText};
use scrinium_views::{AttachmentHead, AttachmentText, TextUnavailable};

/// Files in one message that are read.
const FILES_MAX: usize = 50;
/// A file of more bytes is left out.
const FILE_BYTES_MAX: usize = 32 << 20;
/// Words of the files of one message.
const TEXT_BYTES_MAX: usize = 4 << 20;

/// So often a process is tried to be had, and how long it is waited in between.
const TRIES: usize = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// Takes the words out of attachments.
#[derive(Debug, Default)]
pub(crate) struct AttachmentWords {
    extractor: Extractor,
}

impl AttachmentText for AttachmentWords {
    /// The text of a memo is a field of it; its source is read for the files in it alone.
    fn takes(&self, attachment: &AttachmentHead<'_>, has_field: &dyn Fn(&str) -> bool) -> bool {
        if is_message(attachment.content_type) {
            return !has_field(field::SIZE) || has_field(field::FILE_NAMES);
        }
        Kind::of(attachment.content_type, attachment.name).is_some()
    }

    fn text(&self, attachment: &AttachmentHead<'_>, bytes: &[u8]) -> Result<String, TextUnavailable> {
        if !is_message(attachment.content_type) {
            return match Kind::of(attachment.content_type, attachment.name) {
                Some(kind) => self.words(kind, bytes),
                None => Ok(String::new()),
            };
        }
        let map = MapBuilder::map(bytes);
        let message = MessageText { map: &map, source: bytes };
        let mut text = String::new();
        for file in message.files().take(FILES_MAX) {
            let Some(kind) = Kind::of(&file.content_type, &file.name) else { continue };
            text.push_str(&self.words(kind, &message.decoded(&file, FILE_BYTES_MAX))?);
            text.push('\n');
            if text.len() >= TEXT_BYTES_MAX {
                break;
            }
        }
        Ok(text)
    }
}

impl AttachmentWords {
    fn words(&self, kind: Kind, bytes: &[u8]) -> Result<String, TextUnavailable> {
        let mut tries = TRIES;
        loop {
            match self.extractor.text(kind, bytes) {
                Ok(text) => return Ok(text),
                Err(ExtractionError::Unreadable { reason }) => {
                    tracing::debug!(reason, "a file has no words that can be read");
                    return Ok(String::new());
                }
                Err(ExtractionError::Unavailable { reason }) => {
                    tries -= 1;
                    if tries == 0 {
                        return Err(TextUnavailable { reason });
                    }
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }
}

fn is_message(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case(SOURCE_CONTENT_TYPE)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn files_in_a_message_have_words_and_its_text_is_left_to_its_memo() {
        let source = b"Subject: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nbody words\r\n--b\r\n\
            Content-Type: application/octet-stream; name=notes.txt\r\nContent-Transfer-Encoding: base64\r\n\r\n\
            bWluZXJhbCB3YXRlcg==\r\n--b--\r\n";
        let head = AttachmentHead {
            name: "message.eml",
            content_type: SOURCE_CONTENT_TYPE,
            length: source.len() as u64,
        };
        let words = AttachmentWords::default();
        assert_eq!(words.text(&head, source).unwrap().trim(), "mineral water");
        assert!(words.takes(&head, &|name| [field::SIZE, field::FILE_NAMES].contains(&name)));
        assert!(
            !words.takes(&head, &|name| name == field::SIZE),
            "a memo without files has all its words in fields"
        );
    }
}
