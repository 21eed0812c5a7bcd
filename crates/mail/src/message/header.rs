//! The header fields that a memo takes over.

use serde_json::{Map, Value};

use super::charset::CharacterSet;
use super::date;
use super::decode::clean_field;
use super::fields::HeaderFields;
use super::written_date::{self, Moment, Zone};
use super::{MessageOptions, addresses, encoded_words};
use crate::memo::{MOST_RECIPIENTS, field};
use crate::notes::Notes;

const LONGEST_ADDRESS: usize = 1_000;

/// The addresses of one field take no more, so that the document stays far below any limit on documents.
const MOST_ADDRESS_BYTES: usize = 512 * 1024;
const LONGEST_SUBJECT: usize = 2_000;
const LONGEST_MESSAGE_ID: usize = 998;
const MOST_REFERENCES: usize = 200;

/// Puts the memo's header fields into `fields`.
pub(super) fn insert_header_fields(
    mbox_line: Option<&[u8]>,
    header: &HeaderFields<'_>,
    options: &MessageOptions,
    fields: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    if header.is_empty() {
        notes.add("there is no header");
    }
    insert_people(header, mbox_line, fields, notes);
    let subject = header.first("Subject").unwrap_or_default();
    let subject = encoded_words::decode(&subject, header.raw_set(&subject), notes);
    insert(fields, field::SUBJECT, clean_field(&subject, LONGEST_SUBJECT, notes));
    insert_dates(header, mbox_line, options, fields, notes);
    insert_ids(header, fields, notes);
    if let Some(importance) = importance(header) {
        insert(fields, field::IMPORTANCE, importance);
    }
}

fn insert(fields: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    fields.insert(name.to_owned(), value.into());
}

fn insert_people(
    header: &HeaderFields<'_>,
    mbox_line: Option<&[u8]>,
    fields: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    let sender = addresses(header, "Sender", notes).into_iter().next();
    let from = match addresses(header, "From", notes).into_iter().next() {
        Some(from) => from,
        None => {
            notes.add("From is missing");
            sender.clone().or_else(|| envelope_sender(header, mbox_line, notes)).unwrap_or_default()
        }
    };
    let sender = sender.filter(|sender| *sender != from);
    insert(fields, field::FROM, from);
    if let Some(sender) = sender {
        insert(fields, field::SENDER, sender);
    }
    insert(fields, field::SEND_TO, addresses(header, "To", notes));
    for (name, from) in [(field::COPY_TO, "Cc"), (field::BLIND_COPY_TO, "Bcc")] {
        let list = addresses(header, from, notes);
        if !list.is_empty() {
            insert(fields, name, list);
        }
    }
    if let Some(reply_to) = addresses(header, "Reply-To", notes).into_iter().next() {
        insert(fields, field::REPLY_TO, reply_to);
    }
}

fn addresses(header: &HeaderFields<'_>, name: &str, notes: &mut Notes) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    let mut bytes = 0;
    for value in header.all(name) {
        for address in addresses::read(&value, header.raw_set(&value), MOST_RECIPIENTS + 1, notes) {
            if list.len() == MOST_RECIPIENTS || bytes > MOST_ADDRESS_BYTES {
                notes.add("there are more addresses than are kept");
                return list;
            }
            let shown = clean_field(&address, LONGEST_ADDRESS, notes);
            if !shown.is_empty() {
                bytes += shown.len();
                list.push(shown);
            }
        }
    }
    list
}

/// Who sent it according to the transport: `Return-Path`, or the mbox line.
fn envelope_sender(header: &HeaderFields<'_>, mbox_line: Option<&[u8]>, notes: &mut Notes) -> Option<String> {
    let return_path = header
        .first("Return-Path")
        .and_then(|path| addresses::read(&path, CharacterSet::Undeclared, 1, notes).pop());
    let sender = return_path.or_else(|| {
        let line = String::from_utf8_lossy(mbox_line?);
        line.split_whitespace().nth(1).map(str::to_owned)
    })?;
    Some(clean_field(&sender, LONGEST_ADDRESS, notes))
}

fn insert_dates(
    header: &HeaderFields<'_>,
    mbox_line: Option<&[u8]>,
    options: &MessageOptions,
    fields: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    let received = || header.raw_text("Received").and_then(|field| date::of_received(&field));
    let mbox = || mbox_line.and_then(date::of_mbox_line);
    let delivered = options.delivered_s.or_else(received).or_else(mbox);
    let posted = match header.raw_text("Date").map(|text| written_date::read(&text)) {
        Some(Moment::At(seconds, zone)) => {
            match zone {
                Zone::Known => {}
                Zone::Missing => notes.add("Date names no time zone and was taken for UTC"),
                Zone::Unknown => notes.add("Date names a time zone that is not known and was taken for UTC"),
            }
            Some(seconds)
        }
        Some(Moment::NoDate) => {
            notes.add("Date cannot be read");
            delivered
        }
        Some(Moment::Absurd) => {
            notes.add("Date names no possible day");
            delivered
        }
        None => {
            notes.add("Date is missing");
            delivered
        }
    };
    if let (Some(posted), Some(delivered)) = (posted, delivered)
        && posted > delivered.saturating_add(2 * 86_400)
    {
        notes.add("Date is later than the delivery");
    }
    for (name, moment) in [(field::POSTED_DATE, posted), (field::DELIVERED_DATE, delivered.or(posted))] {
        if let Some(text) = moment.and_then(date::text_of) {
            insert(fields, name, text);
        }
    }
}

fn insert_ids(header: &HeaderFields<'_>, fields: &mut Map<String, Value>, notes: &mut Notes) {
    match ids(header, "Message-ID", 1, notes).pop() {
        Some(id) => insert(fields, field::MESSAGE_ID, id),
        None => notes.add("Message-ID is missing"),
    }
    if let Some(id) = ids(header, "In-Reply-To", 1, notes).pop() {
        insert(fields, field::IN_REPLY_TO, id);
    }
    let references = ids(header, "References", MOST_REFERENCES, notes);
    if !references.is_empty() {
        insert(fields, field::REFERENCES, references);
    }
}

/// Message ids with their angle brackets. Text that is no id (`In-Reply-To: your message of Monday`) is left
/// out.
fn ids(header: &HeaderFields<'_>, name: &str, limit: usize, notes: &mut Notes) -> Vec<String> {
    let Some(text) = header.raw_text(name) else { return Vec::new() };
    let mut ids: Vec<String> = Vec::new();
    let mut pieces = text.split('<');
    let before = pieces.next().unwrap_or_default().trim();
    for id in pieces.filter_map(|piece| piece.split_once('>')).map(|(id, _)| id) {
        if ids.len() == limit {
            break;
        }
        push_id(id, &mut ids, notes);
    }
    // Some write ids without brackets.
    if ids.is_empty() && before.contains('@') {
        push_id(before, &mut ids, notes);
    }
    ids
}

fn push_id(id: &str, ids: &mut Vec<String>, notes: &mut Notes) {
    let id = clean_field(id, LONGEST_MESSAGE_ID, notes);
    if !id.is_empty() && !id.contains(' ') {
        ids.push(format!("<{id}>"));
    }
}

/// Domino's `Importance`: 1 high, 2 normal, 3 low; from `Importance` (RFC 2156) or `X-Priority`.
fn importance(header: &HeaderFields<'_>) -> Option<&'static str> {
    let named = header.raw_text("Importance");
    let numbered = header.raw_text("X-Priority").and_then(|text| text.trim().chars().next());
    match (named.as_deref().map(str::trim), numbered) {
        (Some(name), _) if name.eq_ignore_ascii_case("high") => Some("1"),
        (Some(name), _) if name.eq_ignore_ascii_case("low") => Some("3"),
        (None, Some('1' | '2')) => Some("1"),
        (None, Some('4' | '5')) => Some("3"),
        _ => None,
    }
}
