//! What an automatic reply looks like on its way (RFC 5230 §5).

use scrinium_sieve::{Notification, VacationReply};

use crate::address::WrittenAddress;
use crate::outgoing::compose::{encoded_text, encoded_words, mail_date, phrase, push_line};

/// The message of a reply.
pub(crate) fn reply_source(reply: &VacationReply, (id, now_ms): (&str, u64)) -> Vec<u8> {
    let mut head = String::new();
    push_line(&mut head, "Date", &mail_date(now_ms));
    let WrittenAddress { name, address: from } = WrittenAddress::read(&reply.from);
    let host = from.rsplit_once('@').map_or("localhost", |(_, host)| host);
    push_line(&mut head, "Message-ID", &format!("<{id}@{host}>"));
    for (field, value) in reply.fields() {
        let value = match field {
            "From" if name.is_empty() => format!("<{from}>"),
            "From" => format!("{} <{from}>", phrase(&name)),
            "To" => format!("<{value}>"),
            "Subject" => encoded_words(&value),
            // Ids in their brackets: a line may have no more than 998 characters.
            "References" => value.replace("> <", ">\r\n <"),
            _ => value,
        };
        push_line(&mut head, field, &value);
    }
    head.push_str("MIME-Version: 1.0\r\n");
    if reply.is_mime {
        // RFC 5230 §4.1: it begins with a head of its own.
        let body = reply.body.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n");
        return [head.as_bytes(), body.as_bytes()].concat();
    }
    let (encoding, body) = encoded_text(&reply.body, "\0");
    let kind =
        format!("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n");
    [head.as_bytes(), kind.as_bytes(), body.as_bytes()].concat()
}

/// The message of a notice of new mail (RFC 5436, section 2), from this address.
pub(crate) fn notification_source(notice: &Notification, from: &str, (id, now_ms): (&str, u64)) -> Vec<u8> {
    let mut head = String::new();
    push_line(&mut head, "Date", &mail_date(now_ms));
    let host = from.rsplit_once('@').map_or("localhost", |(_, host)| host);
    push_line(&mut head, "Message-ID", &format!("<{id}@{host}>"));
    push_line(&mut head, "From", &format!("<{from}>"));
    for (field, addresses) in [("To", &notice.to), ("Cc", &notice.cc)] {
        let addresses: Vec<String> = addresses.iter().map(|address| format!("<{address}>")).collect();
        if !addresses.is_empty() {
            push_line(&mut head, field, &addresses.join(",\r\n "));
        }
    }
    push_line(&mut head, "Subject", &encoded_words(&notice.subject));
    // RFC 5436 §2.7.1
    push_line(&mut head, "Auto-Submitted", "auto-notified");
    match notice.importance {
        1 => push_line(&mut head, "Importance", "high"),
        3 => push_line(&mut head, "Importance", "low"),
        _ => {}
    }
    let body = if notice.body.is_empty() { "A message came." } else { &notice.body };
    let (encoding, body) = encoded_text(body, "\0");
    head.push_str("MIME-Version: 1.0\r\n");
    let kind =
        format!("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n");
    [head.as_bytes(), kind.as_bytes(), body.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(from: &str, subject: &str, is_mime: bool, body: &str) -> String {
        let reply = VacationReply {
            key: "k".to_owned(),
            period_seconds: 1,
            to: "eve@far.example".to_owned(),
            from: from.to_owned(),
            subject: subject.to_owned(),
            in_reply_to: Some("<1@far.example>".to_owned()),
            references: Some("<0@far.example> <1@far.example>".to_owned()),
            is_mime,
            body: body.to_owned(),
            fcc: None,
        };
        String::from_utf8(reply_source(&reply, ("id", 0))).unwrap()
    }

    #[test]
    fn a_reply_says_that_a_program_wrote_it_and_nothing_ends_its_lines() {
        let text =
            reply("Ada <ada@acme.example>", "Away\u{e4}\r\nBcc: x@y.example", false, "Bis sp\u{e4}ter\n");
        assert!(text.contains("\r\nAuto-Submitted: auto-replied (vacation)\r\n"), "{text}");
        assert!(text.contains("\r\nFrom: Ada <ada@acme.example>\r\nTo: <eve@far.example>\r\n"), "{text}");
        assert!(!text.contains("\nBcc"), "{text}");
        assert!(text.ends_with("quoted-printable\r\n\r\nBis sp=C3=A4ter\r\n"), "{text}");
        let text = reply("ada@acme.example", "Away", true, "Content-Type: text/html\n\n<p>Away</p>\n");
        assert!(
            text.ends_with("MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n<p>Away</p>\r\n"),
            "{text}"
        );
    }
}
