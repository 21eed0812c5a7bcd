//! A message that the server writes in the name of a person: a text in several forms, and a file.

use bytes::Bytes;

use super::compose::{base64_lines, encoded_words, mail_date, phrase, push_line};
use crate::source::MessageSource;

/// A part of such a message.
#[derive(Clone, Debug)]
pub struct WrittenPart {
    /// With its parameters; one line of ASCII.
    pub content_type: String,
    /// A file is shown under this name, in ASCII.
    pub file_name: Option<&'static str>,
    /// Its bytes.
    pub content: Vec<u8>,
}

/// A message that is yet to be written.
#[derive(Clone, Debug)]
pub struct WrittenMessage<'a> {
    /// No other message has it; hexadecimal digits.
    pub id: &'a str,
    /// A name, which may be empty, and an address.
    pub from: (&'a str, &'a str),
    /// A name, which may be empty, and an address.
    pub to: (&'a str, &'a str),
    /// Any text.
    pub subject: &'a str,
    /// When it is written, in milliseconds since 1970.
    pub now_ms: u64,
    /// More of its head.
    pub fields: &'a [(&'static str, &'static str)],
    /// Forms of the text, the richest last (RFC 2046 §5.1.4).
    pub alternatives: &'a [WrittenPart],
    /// What lies beside it.
    pub file: Option<&'a WrittenPart>,
}

impl WrittenMessage<'_> {
    /// Its bytes.
    #[must_use]
    pub fn to_source(&self) -> MessageSource {
        let (outer, inner) = (format!("=_{}_1", self.id), format!("=_{}_2", self.id));
        let mut text = self.head();
        text.push_str(&format!(
            "Content-Type: multipart/mixed; boundary=\"{outer}\"\r\n\r\n--{outer}\r\n\
             Content-Type: multipart/alternative; boundary=\"{inner}\"\r\n\r\n"
        ));
        for part in self.alternatives {
            push_part(&mut text, &inner, part);
        }
        text.push_str(&format!("--{inner}--\r\n"));
        if let Some(file) = self.file {
            push_part(&mut text, &outer, file);
        }
        text.push_str(&format!("--{outer}--\r\n"));
        MessageSource::from(Bytes::from(text))
    }

    fn head(&self) -> String {
        let mailbox = |(name, address): (&str, &str)| {
            // Nothing that somebody wrote ends a line or an address.
            let address: String =
                address.chars().filter(|letter| !letter.is_control() && !"<> ".contains(*letter)).collect();
            if name.trim().is_empty() {
                format!("<{address}>")
            } else {
                format!("{} <{address}>", phrase(name))
            }
        };
        let host = self.from.1.rsplit_once('@').map_or("localhost", |(_, host)| host);
        let host: String =
            host.chars().filter(|letter| letter.is_ascii_alphanumeric() || ".-".contains(*letter)).collect();
        let mut head = String::new();
        push_line(&mut head, "Date", &mail_date(self.now_ms));
        push_line(&mut head, "Message-ID", &format!("<{}@{host}>", self.id));
        push_line(&mut head, "From", &mailbox(self.from));
        push_line(&mut head, "To", &mailbox(self.to));
        push_line(&mut head, "Subject", &encoded_words(self.subject));
        for (name, value) in self.fields {
            push_line(&mut head, name, value);
        }
        push_line(&mut head, "MIME-Version", "1.0");
        head
    }
}

fn push_part(text: &mut String, boundary: &str, part: &WrittenPart) {
    text.push_str(&format!(
        "--{boundary}\r\nContent-Type: {}\r\nContent-Transfer-Encoding: base64\r\n",
        part.content_type
    ));
    if let Some(name) = part.file_name {
        text.push_str(&format!("Content-Disposition: attachment; filename=\"{name}\"\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(&base64_lines(&part.content));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{MessageOptions, memo_of_message};

    #[test]
    fn what_is_written_is_read_again_and_nothing_ends_its_lines() {
        let part = |content_type: &str, file_name, content: &str| WrittenPart {
            content_type: content_type.to_owned(),
            file_name,
            content: content.as_bytes().to_vec(),
        };
        let alternatives = [
            part("text/plain; charset=utf-8", None, "Gr\u{fc}\u{df}e\n"),
            part(
                "text/calendar; method=REQUEST; charset=utf-8",
                None,
                "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n",
            ),
        ];
        let message = WrittenMessage {
            id: "00ff",
            from: ("Ada\r\nBcc: x@y.example", "ada@acme.example"),
            to: ("", "bob@far.example>\r\nBcc: <z@y.example"),
            subject: "Besprechung \u{fc}ber\r\nBcc: x",
            now_ms: 1_772_452_800_000,
            fields: &[("Auto-Submitted", "auto-generated")],
            alternatives: &alternatives,
            file: Some(&part(
                "application/ics; name=\"invite.ics\"",
                Some("invite.ics"),
                "BEGIN:VCALENDAR\r\n",
            )),
        };
        let source = message.to_source().bytes().unwrap();
        let text = String::from_utf8(source.to_vec()).unwrap();
        assert!(!text.contains("\nBcc"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 998 && line.is_ascii()), "{text}");
        let memo = memo_of_message(&source, &MessageOptions::default());
        assert_eq!(memo["Body"], "Gr\u{fc}\u{df}e\n");
        assert_eq!(memo["$FileTypes"], serde_json::json!(["text/calendar", "application/ics"]));
        assert_eq!(memo["$MessageID"], "<00ff@acme.example>");
        assert!(memo.get("$ParseNotes").is_none(), "{memo:?}");
    }
}
