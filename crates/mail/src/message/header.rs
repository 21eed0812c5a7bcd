//! The header fields that a memo takes over.

use std::borrow::Cow;
use std::sync::LazyLock;

use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::{Addr, HeaderName, HeaderValue, Message, MessageParser};
use serde_json::{Map, Value};

use super::MessageOptions;
use super::date::{self, Moment};
use super::decode::{clean_field, undeclared_text};
use super::structure::Section;
use crate::address::format_address;
use crate::memo::{MOST_RECIPIENTS, field};
use crate::notes::Notes;

const LONGEST_ADDRESS: usize = 1_000;

/// The addresses of one field take no more, so that the document stays far below any limit on documents.
const MOST_ADDRESS_BYTES: usize = 512 * 1024;
const LONGEST_SUBJECT: usize = 2_000;
const LONGEST_MESSAGE_ID: usize = 998;
const MOST_REFERENCES: usize = 200;

static PARSER: LazyLock<MessageParser> = LazyLock::new(|| {
    MessageParser::new()
        .with_mime_headers()
        .with_address_headers()
        .with_message_ids()
        .header_text(HeaderName::Subject)
        .header_raw(HeaderName::Date)
        .header_raw(HeaderName::Received)
        .header_raw(HeaderName::Importance)
        .header_id(HeaderName::ReturnPath)
        .header_raw(HeaderName::Other(Cow::Borrowed("X-Priority")))
        .default_header_ignore()
});

/// Parses header lines. The text must end with a line end, or the parser loses the last field.
pub(super) fn parse(header: &str) -> Option<Message<'_>> {
    PARSER.parse_headers(header.as_bytes())
}

/// The header as text: UTF-8 (RFC 6532) if it is that, else in the set that its own `Content-Type` names, else
/// in Windows-1252. Ends with a line end.
pub(super) fn text_of<'a>(header: &'a [u8], notes: &mut Notes) -> Cow<'a, str> {
    let mut text = match std::str::from_utf8(header) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(damaged_text(header, notes)),
    };
    if !text.ends_with('\n') && !text.is_empty() {
        text.to_mut().push('\n');
    }
    text
}

fn damaged_text(header: &[u8], notes: &mut Notes) -> String {
    notes.add("the header holds 8-bit characters that are not UTF-8");
    let lossy = format!("{}\n", String::from_utf8_lossy(header));
    let charset = parse(&lossy).and_then(|message| {
        let content_type = message.header(HeaderName::ContentType)?.as_content_type()?.clone();
        content_type.attribute("charset").map(str::to_owned)
    });
    match charset.and_then(|label| charset_decoder(label.trim().as_bytes())) {
        Some(decode) => decode(header),
        None => undeclared_text(header, notes),
    }
}

/// Puts the memo's header fields into `fields`.
pub(super) fn insert_header_fields(
    whole: &Section<'_>,
    options: &MessageOptions,
    fields: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    let text = text_of(whole.header, notes);
    let message = parse(&text);
    if message.is_none() {
        notes.add("there is no header");
    }
    let header = Header(message.as_ref());
    insert_people(&header, whole, fields, notes);
    let subject = header.text(&HeaderName::Subject).unwrap_or_default();
    insert(fields, field::SUBJECT, clean_field(subject, LONGEST_SUBJECT, notes));
    insert_dates(&header, whole, options, fields, notes);
    insert_ids(&header, fields, notes);
    if let Some(importance) = importance(&header) {
        insert(fields, field::IMPORTANCE, importance);
    }
}

/// Header fields of a message, or none at all.
struct Header<'m>(Option<&'m Message<'m>>);

impl<'m> Header<'m> {
    /// The first field of this name: where a field stands twice, readers believe the first.
    fn first(&self, name: &HeaderName<'_>) -> Option<&'m HeaderValue<'m>> {
        self.all(name).next()
    }

    fn all<'n>(&self, name: &'n HeaderName<'n>) -> impl Iterator<Item = &'m HeaderValue<'m>> + use<'m, 'n> {
        let headers = self.0.map_or(&[][..], |message| message.headers());
        headers.iter().filter(move |header| &header.name == name).map(|header| &header.value)
    }

    fn text(&self, name: &HeaderName<'_>) -> Option<&'m str> {
        self.first(name).and_then(HeaderValue::as_text)
    }
}

fn insert(fields: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    fields.insert(name.to_owned(), value.into());
}

fn insert_people(
    header: &Header<'_>,
    whole: &Section<'_>,
    fields: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    let sender = addresses(header, &HeaderName::Sender, notes).into_iter().next();
    let from = match addresses(header, &HeaderName::From, notes).into_iter().next() {
        Some(from) => from,
        None => {
            notes.add("From is missing");
            sender.clone().or_else(|| envelope_sender(header, whole, notes)).unwrap_or_default()
        }
    };
    let sender = sender.filter(|sender| *sender != from);
    insert(fields, field::FROM, from);
    if let Some(sender) = sender {
        insert(fields, field::SENDER, sender);
    }
    insert(fields, field::SEND_TO, addresses(header, &HeaderName::To, notes));
    for (name, from) in [(field::COPY_TO, HeaderName::Cc), (field::BLIND_COPY_TO, HeaderName::Bcc)] {
        let list = addresses(header, &from, notes);
        if !list.is_empty() {
            insert(fields, name, list);
        }
    }
    if let Some(reply_to) = addresses(header, &HeaderName::ReplyTo, notes).into_iter().next() {
        insert(fields, field::REPLY_TO, reply_to);
    }
}

fn addresses(header: &Header<'_>, name: &HeaderName<'_>, notes: &mut Notes) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    let mut bytes = 0;
    for address in header.all(name).filter_map(HeaderValue::as_address).flat_map(|value| value.iter()) {
        if list.len() == MOST_RECIPIENTS || bytes > MOST_ADDRESS_BYTES {
            notes.add("there are more addresses than are kept");
            break;
        }
        let shown = clean_field(&shown_address(address), LONGEST_ADDRESS, notes);
        if !shown.is_empty() {
            bytes += shown.len();
            list.push(shown);
        }
    }
    list
}

/// An address as a memo shows it: `Ada Lovelace <ada@acme.example>`, `ada@acme.example`, or what stood there.
#[must_use]
pub fn shown_address(address: &Addr<'_>) -> String {
    format_address(
        address.name.as_deref().unwrap_or_default(),
        address.address.as_deref().unwrap_or_default(),
    )
}

/// Who sent it according to the transport: `Return-Path`, or the mbox line.
fn envelope_sender(header: &Header<'_>, whole: &Section<'_>, notes: &mut Notes) -> Option<String> {
    let return_path = header.text(&HeaderName::ReturnPath).map(str::to_owned);
    let sender = return_path.filter(|path| !path.is_empty()).or_else(|| {
        let line = String::from_utf8_lossy(whole.mbox_line?);
        line.split_whitespace().nth(1).map(str::to_owned)
    })?;
    Some(clean_field(&sender, LONGEST_ADDRESS, notes))
}

fn insert_dates(
    header: &Header<'_>,
    whole: &Section<'_>,
    options: &MessageOptions,
    fields: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    let received = || header.text(&HeaderName::Received).and_then(date::of_received);
    let mbox = || whole.mbox_line.and_then(date::of_mbox_line);
    let delivered = options.delivered_s.or_else(received).or_else(mbox);
    let posted = match header.text(&HeaderName::Date).map(date::read) {
        Some(Moment::At(seconds)) => Some(seconds),
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

fn insert_ids(header: &Header<'_>, fields: &mut Map<String, Value>, notes: &mut Notes) {
    match ids(header, &HeaderName::MessageId, 1, notes).pop() {
        Some(id) => insert(fields, field::MESSAGE_ID, id),
        None => notes.add("Message-ID is missing"),
    }
    if let Some(id) = ids(header, &HeaderName::InReplyTo, 1, notes).pop() {
        insert(fields, field::IN_REPLY_TO, id);
    }
    let references = ids(header, &HeaderName::References, MOST_REFERENCES, notes);
    if !references.is_empty() {
        insert(fields, field::REFERENCES, references);
    }
}

/// Message ids with their angle brackets. Text that is no id (`In-Reply-To: your message of Monday`) is left
/// out.
fn ids(header: &Header<'_>, name: &HeaderName<'_>, limit: usize, notes: &mut Notes) -> Vec<String> {
    let list: Vec<&str> = match header.first(name) {
        Some(HeaderValue::Text(id)) => vec![id],
        Some(HeaderValue::TextList(ids)) => ids.iter().map(AsRef::as_ref).collect(),
        _ => Vec::new(),
    };
    let clean = |id: &str, notes: &mut Notes| clean_field(id, LONGEST_MESSAGE_ID, notes);
    list.into_iter()
        .map(|id| clean(id, notes))
        .filter(|id| !id.is_empty() && !id.contains(' '))
        .take(limit)
        .map(|id| format!("<{id}>"))
        .collect()
}

/// Domino's `Importance`: 1 high, 2 normal, 3 low; from `Importance` (RFC 2156) or `X-Priority`.
fn importance(header: &Header<'_>) -> Option<&'static str> {
    let named = header.text(&HeaderName::Importance).map(str::trim);
    let x_priority = HeaderName::Other(Cow::Borrowed("X-Priority"));
    let numbered = header.text(&x_priority).and_then(|text| text.trim().chars().next());
    match (named, numbered) {
        (Some(name), _) if name.eq_ignore_ascii_case("high") => Some("1"),
        (Some(name), _) if name.eq_ignore_ascii_case("low") => Some("3"),
        (None, Some('1' | '2')) => Some("1"),
        (None, Some('4' | '5')) => Some("3"),
        _ => None,
    }
}
