//! What a folder says of the message that a document stands for, so that mail clients learn it without the document.

use scrinium_document::Fields;
use scrinium_document::json::stored_value;
use serde_json::Value;

use crate::error::Result;
use crate::folder::record::MemberFacts;
use crate::leaf::Leaf;

/// The attachment of a document that is the source of the message that it stands for.
pub const SOURCE_ATTACHMENT: &str = "message.eml";

/// The field that says where the message begins in its source, if not at once: how many bytes stand before it.
pub const SOURCE_START: &str = "$SourceStart";

/// The field that says how long a message is with lines that end in CR LF, if its own do not.
pub const WIRE_SIZE: &str = "$WireSize";

/// The field with the date that a mail client has given a message (RFC 9051 §2.3.3), as `[milliseconds since 1970, minutes
/// that its zone is east]`.
pub const INTERNAL_DATE: &str = "$InternalDate";

/// What is known of a document's message. A document without a source has none.
pub(crate) fn facts_of(leaf: &Leaf, id: &str) -> Result<MemberFacts> {
    let attachments = leaf.attachments(id)?;
    let Some(source) = attachments.into_iter().find(|attachment| attachment.name == SOURCE_ATTACHMENT) else {
        return Ok(MemberFacts::default());
    };
    let fields = leaf.fields(id)?;
    let number = |name: &str| value(&fields, name).and_then(|value| value.as_u64());
    let length = source.decoded_length.unwrap_or(source.length);
    let own_bytes = || length.saturating_sub(number(SOURCE_START).unwrap_or(0));
    let (internal_ms, zone_minutes) = internal_date(value(&fields, INTERNAL_DATE)).unwrap_or_default();
    Ok(MemberFacts {
        bytes: number(WIRE_SIZE).unwrap_or_else(own_bytes),
        internal_ms,
        zone_minutes,
        content: Some(source.digest),
    })
}

fn value(fields: &Fields<'_>, name: &str) -> Option<Value> {
    fields.get(name).and_then(stored_value)
}

fn internal_date(value: Option<Value>) -> Option<(i64, i16)> {
    let value = value?;
    let part = |place: usize| value.get(place).and_then(Value::as_i64);
    Some((part(0)?, i16::try_from(part(1)?).ok()?))
}
