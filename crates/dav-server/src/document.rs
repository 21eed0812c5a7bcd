//! Documents that stand for calendars and cards: their sources, and fields made from them.

use std::sync::Arc;

use scrinium_calendar::address::comparable;
use scrinium_calendar::event::ComponentKind;
use scrinium_calendar::fields::{self, FieldValue};
use scrinium_calendar::series::Series;
use scrinium_calendar::zone::{Instant, Zone};
use scrinium_database::{Access, Database, DatabaseError, NewAttachment, ReadOptions, Result};
use scrinium_dav::place::Area;
use scrinium_dav_wire::content::Component;
use scrinium_dav_wire::value::{split_values, unescape_text};
use serde_json::{Map, Value};

/// The field with the name of the resource in its collection.
pub(crate) const NAME: &str = "$DavName";

/// The field of a meeting that only the server has written, since nobody has looked at it yet.
pub(crate) const FILED: &str = "$DavFiled";

/// The field with the names that it had in collections that it has left, by the folders' numbers.
pub(crate) const FORMER: &str = "$DavFormer";

/// At most this many of them are kept.
const FORMER_MAX: usize = 32;

/// Reads tombstones; what somebody may read is asked before.
static FOLLOWER: Access = Access::of_the_server("following folders for calendar programs");

/// Longer resources are not taken.
pub(crate) const RESOURCE_BYTES_MAX: usize = 10 << 20;

/// Read of a source at a time.
const PIECE_BYTES: usize = 256 << 10;

/// Fields of a card's document.
const CARD_FIELDS: [&str; 9] = [
    "Form",
    "FullName",
    "LastName",
    "FirstName",
    "InternetAddress",
    "MailAddresses",
    "PhoneNumbers",
    "CompanyName",
    "JobTitle",
];

/// Fields that are made from a calendar.
const CALENDAR_FIELDS: [&str; 36] = [
    "Form",
    "Subject",
    "Location",
    "Body",
    "StartDateTime",
    "EndDateTime",
    "StartTimeZone",
    "EndTimeZone",
    "CalendarDateTime",
    "AppointmentType",
    "Chair",
    "RequiredAttendees",
    "OptionalAttendees",
    "FYIAttendees",
    "Room",
    "Resources",
    "ApptUNID",
    "SequenceNum",
    "Repeats",
    "RepeatRule",
    "$BusyName",
    "$BusyPriority",
    "BookFreeTime",
    "OrgConfidential",
    "$Alarm",
    "$AlarmOffset",
    "$AlarmUnit",
    "$AlarmDescription",
    "Categories",
    "DueDateTime",
    "CompletedDateTime",
    "_id",
    "_rev",
    "_conflicts",
    NAME,
    FILED,
];

/// The attachment with the source.
pub(crate) const fn source_name(area: Area) -> &'static str {
    match area {
        Area::Calendars => "calendar.ics",
        Area::Contacts => "contact.vcf",
    }
}

/// Its media type.
pub(crate) const fn media_type(area: Area) -> &'static str {
    match area {
        Area::Calendars => "text/calendar; charset=utf-8",
        Area::Contacts => "text/vcard; charset=utf-8",
    }
}

/// What names of resources usually end with.
pub(crate) const fn extension(area: Area) -> &'static str {
    match area {
        Area::Calendars => "ics",
        Area::Contacts => "vcf",
    }
}

/// The tag of a resource: it is another one for other bytes.
pub(crate) fn tag_of(source: &[u8]) -> String {
    blake3::hash(source).to_hex().chars().take(32).collect()
}

/// The id of the document with a UID; with a folder's number and validity, of one whose usual id is taken.
pub(crate) fn id_of(area: Area, uid: &str, folder: Option<(u32, u32)>) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(uid.as_bytes());
    if let Some((number, validity)) = folder {
        hasher.update(&number.to_be_bytes());
        hasher.update(&validity.to_be_bytes());
    }
    let kind = match area {
        Area::Calendars => "cal",
        Area::Contacts => "card",
    };
    let digest: String = hasher.finalize().to_hex().chars().take(32).collect();
    format!("{kind}-{digest}")
}

/// A document as it is stored: its revision and its fields.
pub(crate) fn read(
    database: &Database,
    id: &str,
    access: &Access,
) -> Result<Option<(String, Map<String, Value>)>> {
    let document = match database.read(id, &ReadOptions::default(), access) {
        Ok(document) => document,
        Err(DatabaseError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let damaged = || DatabaseError::Internal { reason: format!("The document `{id}` is no JSON object.") };
    let fields = serde_json::from_str(document.json.as_str()).map_err(|_| damaged())?;
    Ok(Some((document.revision, fields)))
}

/// The source of a document. `None`: it has none, or one that is longer than any that was taken.
pub(crate) fn source(
    database: &Arc<Database>,
    id: &str,
    area: Area,
    access: &Access,
) -> Result<Option<Vec<u8>>> {
    let attachment = match database.open_attachment(id, source_name(area), None, access) {
        Ok(attachment) => attachment,
        Err(DatabaseError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    if attachment.length > RESOURCE_BYTES_MAX as u64 {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(attachment.length).unwrap_or(0));
    loop {
        let piece = attachment.read(bytes.len() as u64, PIECE_BYTES)?;
        if piece.is_empty() {
            return Ok(Some(bytes));
        }
        bytes.extend_from_slice(&piece);
    }
}

/// Whose calendar it is, and by which clock.
pub(crate) struct Owner<'a> {
    pub(crate) name: &'a str,
    pub(crate) floating: &'a Zone,
    pub(crate) now: Instant,
}

/// A source as it is stored.
pub(crate) fn source_attachment(database: &Database, area: Area, bytes: &[u8]) -> Result<NewAttachment> {
    Ok(NewAttachment {
        name: source_name(area).to_owned(),
        content_type: media_type(area).to_owned(),
        content: database.store_content(bytes, media_type(area))?,
    })
}

/// The fields of a document that gets another source: those that are made from the source are these now. What else it has stays, other
/// attachments too.
pub(crate) fn made_again(
    area: Area,
    kept: Map<String, Value>,
    mut made: Map<String, Value>,
) -> Map<String, Value> {
    let mut fields = without_made(area, kept);
    if let Some(Value::Object(attachments)) = fields.get_mut("_attachments") {
        attachments.remove(source_name(area));
    }
    fields.append(&mut made);
    fields
}

/// Takes away the fields that are made from the source; what else a document has stays.
fn without_made(area: Area, mut fields: Map<String, Value>) -> Map<String, Value> {
    let made: &[&str] = match area {
        Area::Calendars => &CALENDAR_FIELDS,
        Area::Contacts => &CARD_FIELDS,
    };
    fields.retain(|name, _| !made.contains(&name.as_str()) && !["_id", "_rev"].contains(&name.as_str()));
    fields
}

/// Adds the fields of a calendar.
pub(crate) fn add_calendar_fields(
    fields: &mut Map<String, Value>,
    (calendar, series): (&Component, &Series),
    owner: &Owner<'_>,
) {
    for (name, value) in fields::read(calendar, series, owner.name, owner.now, owner.floating) {
        let value = match value {
            FieldValue::Text(text) => Value::from(text),
            FieldValue::Texts(texts) => Value::from(texts),
            FieldValue::Number(number) => Value::from(number),
        };
        fields.insert(name.to_owned(), value);
    }
}

/// Adds the fields of a card.
pub(crate) fn add_card_fields(fields: &mut Map<String, Value>, card: &Component) {
    fields.insert("Form".to_owned(), Value::from("Person"));
    let text = |name: &str| card.line(name).map(|line| unescape_text(&line.decoded_value()));
    let all = |name: &str| -> Vec<String> {
        let lines = card.lines().filter(|line| line.name() == name);
        lines.map(|line| unescape_text(&line.decoded_value())).filter(|text| !text.is_empty()).collect()
    };
    let part = |name: &str, place: usize| {
        let line = card.line(name)?;
        let value = line.decoded_value();
        let part = split_values(&value, ';').nth(place).map(unescape_text)?;
        (!part.is_empty()).then_some(part)
    };
    let addresses = all("EMAIL");
    let texts = [
        ("FullName", text("FN").filter(|name| !name.is_empty())),
        ("LastName", part("N", 0)),
        ("FirstName", part("N", 1)),
        ("InternetAddress", addresses.first().cloned()),
        ("CompanyName", part("ORG", 0)),
        ("JobTitle", text("TITLE").filter(|title| !title.is_empty())),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            fields.insert(name.to_owned(), Value::from(value));
        }
    }
    for (name, values) in [("MailAddresses", addresses), ("PhoneNumbers", all("TEL"))] {
        if !values.is_empty() {
            fields.insert(name.to_owned(), Value::from(values));
        }
    }
}

/// Addresses of somebody, as calendars compare them.
pub(crate) fn addresses_of(person: &scrinium_directory::Person) -> Vec<String> {
    person.internet_address.iter().chain(&person.addresses).map(|address| comparable(address)).collect()
}

/// The kinds of components that a collection takes where nothing else is said.
pub(crate) const ALL_KINDS: [ComponentKind; 3] =
    [ComponentKind::Event, ComponentKind::Todo, ComponentKind::Journal];

/// Notes under which name a document was in a folder that it leaves. It may come back under another one, and leave again: a client that
/// heard of neither knows it by the first.
pub(crate) fn note_former(fields: &mut Map<String, Value>, folder: u32, name: &str) {
    let former = fields.entry(FORMER).or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(former) = former else { return };
    let names = former.entry(folder.to_string()).or_insert_with(|| Value::Array(Vec::new()));
    match names {
        Value::Array(names) if names.iter().any(|known| known == name) => {}
        Value::Array(names) if names.len() < FORMER_MAX => names.push(Value::from(name)),
        too_many => *too_many = Value::Null,
    }
    while former.len() > FORMER_MAX {
        let Some(first) = former.keys().next().cloned() else { break };
        former.remove(&first);
    }
}

/// What a document says of the names that it had, also one that is deleted.
pub(crate) fn former_of(database: &Database, id: &str) -> Result<Option<Value>> {
    let snapshot = database.store().snapshot();
    let head = database.head(&snapshot, id)?;
    let Some(revision) = head.and_then(|head| head.tree.winner().map(|leaf| leaf.revision.to_string()))
    else {
        return Ok(None);
    };
    let options = ReadOptions { revision: Some(revision), ..ReadOptions::default() };
    let json = match database.read(id, &options, &FOLLOWER) {
        Ok(document) => document.json,
        Err(DatabaseError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let fields: Option<Map<String, Value>> = serde_json::from_str(json.as_str()).ok();
    Ok(fields.and_then(|mut fields| fields.remove(FORMER)))
}

/// The names that a document had in a folder that it has left. `None`: it was taken out by a program that does not say, or there were
/// too many.
pub(crate) fn former_names_of(database: &Database, id: &str, folder: u32) -> Result<Option<Vec<String>>> {
    let former = former_of(database, id)?;
    let names = former.as_ref().and_then(|former| former.get(folder.to_string())?.as_array());
    Ok(names.map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect()))
}
