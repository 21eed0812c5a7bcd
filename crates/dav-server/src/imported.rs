//! What files bring: calendars and cards as documents, for who stores them without a program. Nobody is invited by it.

use scrinium_calendar::zone::Instant;
use scrinium_database::FolderKind;
use scrinium_dav::object::{CalendarObject, read_card};
use scrinium_dav::place::Area;
use scrinium_dav_wire::content::{Component, ContentItem, ContentLimits, ContentLine};
use scrinium_directory::Person;
use serde_json::{Map, Value};

use crate::document::{
    ALL_KINDS, Owner, RESOURCE_BYTES_MAX, add_calendar_fields, add_card_fields, id_of, media_type,
    source_name,
};
use crate::home::{folder_name, is_reserved, zone_of_person};

/// A calendar or a card, as a document of a person's mail database.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedResource {
    /// Made of its UID, so that it is brought once.
    pub id: String,
    /// Fields that views show.
    pub fields: Map<String, Value>,
    /// What the attachment holds.
    pub source: Vec<u8>,
    /// The name of the attachment.
    pub attachment: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// A to-do, which lies among tasks.
    pub is_todo: bool,
}

/// A folder that is a calendar, a list of tasks or an address book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportFolder {
    /// The folder's whole name.
    pub name: String,
    /// What it is.
    pub kind: FolderKind,
}

impl ImportFolder {
    /// By the name in paths and what it is. `None`: nothing can be called so.
    #[must_use]
    pub fn new(name: &str, kind: FolderKind) -> Option<Self> {
        let area = if kind == FolderKind::Contacts { Area::Contacts } else { Area::Calendars };
        let whole = folder_name(area, name).ok().filter(|_| !is_reserved(area, name))?;
        Some(Self { name: whole, kind })
    }
}

/// Reads a calendar of one UID, of a file of the person's. What is not quite as it should be is kept.
///
/// # Errors
/// Why it cannot be read as one.
pub fn import_calendar(bytes: &[u8], person: &Person, now_s: u64) -> Result<ImportedResource, String> {
    let mut calendar = mended(bytes)?;
    // What a message was about is over.
    calendar.remove("METHOD");
    let digest = digest_of(bytes);
    for part in calendar.components_mut().filter(|part| part.name() != "VTIMEZONE") {
        if part.line("UID").is_none_or(|line| line.value().trim().is_empty()) {
            part.replace("UID", ContentLine::new("UID", Vec::new(), &digest).into_iter().collect());
        }
    }
    let source = calendar.to_bytes();
    check_size(&source)?;
    let floating = zone_of_person(person);
    let object = CalendarObject::read(&source, &ALL_KINDS, &floating).map_err(|error| error.to_string())?;
    let now = Instant(i64::try_from(now_s).unwrap_or(i64::MAX));
    let owner = Owner { name: &person.short_name, floating: &floating, now };
    let mut fields = Map::new();
    add_calendar_fields(&mut fields, (&object.calendar, &object.series), &owner);
    let is_todo = object.series.kind() == scrinium_calendar::event::ComponentKind::Todo;
    Ok(resource(Area::Calendars, object.series.uid(), fields, (source, is_todo)))
}

/// Reads a card of a file of the person's.
///
/// # Errors
/// Why it cannot be read as one.
pub fn import_card(bytes: &[u8]) -> Result<ImportedResource, String> {
    let source = mended(bytes)?.to_bytes();
    check_size(&source)?;
    let (card, uid) = read_card(&source).map_err(|error| error.to_string())?;
    let mut fields = Map::new();
    add_card_fields(&mut fields, &card);
    let object = uid.unwrap_or_else(|| digest_of(bytes));
    Ok(resource(Area::Contacts, &object, fields, (source, false)))
}

fn resource(
    area: Area,
    object: &str,
    fields: Map<String, Value>,
    (source, is_todo): (Vec<u8>, bool),
) -> ImportedResource {
    let id = id_of(area, object, None);
    ImportedResource {
        id,
        fields,
        source,
        attachment: source_name(area),
        media_type: media_type(area),
        is_todo,
    }
}

/// The one component of some bytes, without lines that are none.
fn mended(bytes: &[u8]) -> Result<Component, String> {
    let (mut all, _) =
        Component::parse_file(bytes, ContentLimits::default()).map_err(|error| error.to_string())?;
    let (Some(mut only), true) = (all.pop(), all.is_empty()) else {
        return Err("it is not one calendar or card".to_owned());
    };
    drop_nameless(&mut only);
    Ok(only)
}

fn drop_nameless(component: &mut Component) {
    component.items.retain(|item| !matches!(item, ContentItem::Line(line) if line.name().is_empty()));
    component.components_mut().for_each(drop_nameless);
}

fn digest_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().chars().take(32).collect()
}

fn check_size(source: &[u8]) -> Result<(), String> {
    if source.len() > RESOURCE_BYTES_MAX {
        return Err(format!("it is longer than {RESOURCE_BYTES_MAX} bytes"));
    }
    Ok(())
}
