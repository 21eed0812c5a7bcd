//! ENVELOPE (RFC 9051, section 7.5.2).

use scrinium_imap_wire::{Address, Envelope};

use crate::address::addresses;
use crate::field::{fields, tidied};
use crate::words::{encode_words, utf8_text};

/// Reads the envelope from a header. Bytes stay as they are.
pub(crate) fn envelope(header: &[u8]) -> Envelope {
    let mut envelope = Envelope::default();
    for field in fields(header) {
        let text = || Some(field.unfolded());
        let list = |place: &mut Vec<Address>| place.extend(addresses(&field.unfolded()));
        match field.name.to_ascii_lowercase().as_slice() {
            // A text that comes twice counts once, the first time; addresses count all.
            b"date" if envelope.date.is_none() => envelope.date = text(),
            b"subject" if envelope.subject.is_none() => envelope.subject = Some(tidied(&field.unfolded())),
            b"in-reply-to" if envelope.in_reply_to.is_none() => envelope.in_reply_to = text(),
            b"message-id" if envelope.message_id.is_none() => envelope.message_id = text(),
            b"from" => list(&mut envelope.from),
            b"sender" => list(&mut envelope.sender),
            b"reply-to" => list(&mut envelope.reply_to),
            b"to" => list(&mut envelope.to),
            b"cc" => list(&mut envelope.cc),
            b"bcc" => list(&mut envelope.bcc),
            _ => {}
        }
    }
    // RFC 9051, section 7.5.2: what is missing or empty is that of From.
    if envelope.sender.is_empty() {
        envelope.sender.clone_from(&envelope.from);
    }
    if envelope.reply_to.is_empty() {
        envelope.reply_to.clone_from(&envelope.from);
    }
    envelope
}

/// The envelope as it goes out: as UTF-8, or in ASCII with encoded words.
pub(crate) fn sendable(envelope: &Envelope, utf8: bool) -> Envelope {
    let text = |text: &Option<Vec<u8>>| text.as_ref().map(|text| sendable_text(text, utf8));
    let list = |addresses: &Vec<Address>| {
        let one = |address: &Address| Address {
            name: text(&address.name),
            route: text(&address.route),
            mailbox: text(&address.mailbox),
            host: text(&address.host),
        };
        addresses.iter().map(one).collect()
    };
    Envelope {
        date: text(&envelope.date),
        subject: text(&envelope.subject),
        from: list(&envelope.from),
        sender: list(&envelope.sender),
        reply_to: list(&envelope.reply_to),
        to: list(&envelope.to),
        cc: list(&envelope.cc),
        bcc: list(&envelope.bcc),
        in_reply_to: text(&envelope.in_reply_to),
        message_id: text(&envelope.message_id),
    }
}

/// A client that has not said that it reads UTF-8 gets ASCII alone.
pub(crate) fn sendable_text(text: &[u8], utf8: bool) -> Vec<u8> {
    if utf8 { utf8_text(text) } else { encode_words(text) }
}
