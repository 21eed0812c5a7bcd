//! Whether bytes are a calendar or card that a collection takes (RFC 4791, sections 4.1 and 5.3.2.1; RFC 6352, section
//! 5.1).

use scrinium_calendar::event::ComponentKind;
use scrinium_calendar::series::Series;
use scrinium_calendar::zone::Zone;
use scrinium_dav_wire::content::{Component, ContentLimits};
use scrinium_dav_wire::value::unescape_text;
use scrinium_dav_wire::{CALDAV, CARDDAV};
use thiserror::Error;

/// A UID is at most this long.
const UID_BYTES_MAX: usize = 1_000;

/// Why bytes are not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ObjectError {
    #[error("this is no iCalendar: {0}")]
    NoCalendar(String),
    #[error("{0}")]
    WrongCalendar(&'static str),
    #[error("this calendar does not take {0}")]
    Component(&'static str),
    #[error("this is no vCard: {0}")]
    NoCard(String),
    #[error("the UID is longer than {UID_BYTES_MAX} bytes, or holds control characters")]
    Uid,
}

impl ObjectError {
    /// The precondition that it violates: a namespace and a name.
    #[must_use]
    pub const fn precondition(&self) -> (&'static str, &'static str) {
        match self {
            Self::NoCalendar(_) => (CALDAV, "valid-calendar-data"),
            Self::WrongCalendar(_) | Self::Uid => (CALDAV, "valid-calendar-object-resource"),
            Self::Component(_) => (CALDAV, "supported-calendar-component"),
            Self::NoCard(_) => (CARDDAV, "valid-address-data"),
        }
    }
}

/// A calendar object.
#[derive(Clone, Debug)]
pub struct CalendarObject {
    /// The calendar.
    pub calendar: Component,
    /// Its components.
    pub series: Series,
}

/// As component filters name a kind.
#[must_use]
pub const fn component_name(kind: ComponentKind) -> &'static str {
    match kind {
        ComponentKind::Event => "VEVENT",
        ComponentKind::Todo => "VTODO",
        ComponentKind::Journal => "VJOURNAL",
    }
}

impl CalendarObject {
    /// Reads what somebody stores. `takes` are the components of the collection.
    ///
    /// # Errors
    /// [`ObjectError`]
    pub fn read(bytes: &[u8], takes: &[ComponentKind], floating: &Zone) -> Result<Self, ObjectError> {
        let unreadable =
            |error: scrinium_dav_wire::content::ContentError| ObjectError::NoCalendar(error.to_string());
        let calendar = Component::parse(bytes, ContentLimits::default()).map_err(unreadable)?;
        if calendar.name() != "VCALENDAR" {
            return Err(ObjectError::NoCalendar("it begins with another component".to_owned()));
        }
        let mut parts = calendar.components().filter(|part| part.name() != "VTIMEZONE");
        if parts.any(|part| ComponentKind::of(part).is_none()) {
            return Err(ObjectError::Component("such components"));
        }
        drop(parts);
        let mut all = Series::read_all(&calendar, floating);
        let series = all.pop().ok_or(ObjectError::WrongCalendar("the calendar has no component"))?;
        if !all.is_empty() {
            let reason = "the components of one resource have one UID and are of one kind";
            return Err(ObjectError::WrongCalendar(reason));
        }
        if series.uid().trim().is_empty() {
            return Err(ObjectError::WrongCalendar("the component has no UID"));
        }
        check_uid(series.uid())?;
        if !takes.contains(&series.kind()) {
            return Err(ObjectError::Component(component_name(series.kind())));
        }
        Ok(Self { calendar, series })
    }
}

/// Reads a card that somebody stores, and its UID, if it has one.
///
/// # Errors
/// [`ObjectError`]
pub fn read_card(bytes: &[u8]) -> Result<(Component, Option<String>), ObjectError> {
    let card = Component::parse(bytes, ContentLimits::default())
        .map_err(|error| ObjectError::NoCard(error.to_string()))?;
    if card.name() != "VCARD" {
        return Err(ObjectError::NoCard("it begins with another component".to_owned()));
    }
    let uid = card.line("UID").map(|line| unescape_text(line.value()).trim().to_owned());
    let uid = uid.filter(|uid| !uid.is_empty());
    uid.as_deref().map_or(Ok(()), check_uid)?;
    Ok((card, uid))
}

fn check_uid(uid: &str) -> Result<(), ObjectError> {
    let is_sound = uid.len() <= UID_BYTES_MAX && !uid.chars().any(char::is_control);
    if is_sound { Ok(()) } else { Err(ObjectError::Uid) }
}
