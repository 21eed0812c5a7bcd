//! Fields of appointment documents, as Domino has them, from a calendar and back.
//!
//! The calendar is the truth: [`read`] makes the fields for views and formulas from it. Somebody who edits a document's fields has
//! them [`patch`]ed into the calendar, line by line: what has no field, and each line that still says the same, keeps its
//! bytes. [`create`] makes a calendar for a document that has none.
//!
//! | field | calendar | value |
//! |---|---|---|
//! | `Subject`, `Location`, `Body` | SUMMARY, LOCATION, DESCRIPTION | text |
//! | `StartDateTime`, `EndDateTime` | of the next or only occurrence | `2026-01-05T08:00:00Z`; a day `2026-01-05`; floating without `Z` |
//! | `StartTimeZone`, `EndTimeZone` | TZID | IANA's name |
//! | `CalendarDateTime` | as `StartDateTime` | derived |
//! | `AppointmentType` | derived, or `X-LOTUS-APPTTYPE` | `0` appointment, `1` anniversary, `2` all-day event, `3` meeting, `4` reminder |
//! | `Chair` | ORGANIZER | mailbox |
//! | `RequiredAttendees`, `OptionalAttendees`, `FYIAttendees` | ATTENDEE by ROLE | list of mailboxes |
//! | `Room`, `Resources` | ATTENDEE by CUTYPE | list of mailboxes |
//! | `ApptUNID`, `SequenceNum` | UID, SEQUENCE | text, number |
//! | `Repeats`, `RepeatRule` | RRULE | `1`; the rule's text |
//! | `$BusyName`, `$BusyPriority`, `BookFreeTime` | TRANSP | `1` busy, `2` free; `1` pencilled in |
//! | `OrgConfidential` | CLASS other than PUBLIC | `1` |
//! | `$Alarm`, `$AlarmOffset`, `$AlarmUnit`, `$AlarmDescription` | VALARM | `1`, minutes (before: negative), `M`, text |
//! | `Categories` | CATEGORIES | list of texts |
//! | `DueDateTime`, `CompletedDateTime` | DUE, COMPLETED of a to-do | as `StartDateTime` |

mod people;
mod times;
mod write;

use scrinium_dav_wire::content::Component;
use scrinium_dav_wire::value::{Duration, split_values, unescape_text};
use thiserror::Error;

use crate::address::mailbox;
use crate::event::{ComponentKind, component_at, is_private, sequence};
use crate::series::Series;
use crate::time::{CalendarTime, TimeKind};
use crate::zone::{Instant, Zone};
use people::AttendeeList;
pub(crate) use times::line as time_line;
pub use write::{FieldChanges, create, patch};

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum FieldValue {
    Text(String),
    Texts(Vec<String>),
    Number(i64),
}

impl FieldValue {
    fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}

/// Why fields cannot become a calendar.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FieldError {
    #[error("the calendar has no event, to-do or journal entry with the UID {0}")]
    NoComponent(String),
    #[error("{field} cannot be changed: it is made from the calendar")]
    Derived { field: String },
    #[error("{field} must be a {expected}")]
    WrongType { field: String, expected: &'static str },
    #[error("{field} is no time: \"{value}\"; write 2026-01-05T08:00:00Z, 2026-01-05T09:00:00 or 2026-01-05")]
    NotATime { field: String, value: String },
    #[error("{field} names a zone that is not known: \"{value}\"")]
    UnknownZone { field: String, value: String },
    #[error("{field} is no rule of recurrence: \"{value}\"")]
    NotARule { field: String, value: String },
    #[error("{field} is no mailbox: \"{value}\"; write Ada Lovelace <ada@example.com>")]
    NotAMailbox { field: String, value: String },
    #[error("{field} of a repeating entry is that of its next occurrence; change the entry in its calendar")]
    Repeating { field: String },
    #[error("{field} lies before the start")]
    EndBeforeStart { field: String },
}

/// Fields in a fixed order.
pub type FieldList = Vec<(&'static str, FieldValue)>;

/// The fields of the document that has this series. `now` chooses the occurrence that times are of: the next one, or the last one
/// that there is an end to. `owner` is whose busy time it is.
#[must_use]
pub fn read(calendar: &Component, series: &Series, owner: &str, now: Instant, floating: &Zone) -> FieldList {
    let Some(component) = main_component(calendar, series) else { return Vec::new() };
    let mut fields: FieldList = vec![("Form", FieldValue::text(form(series.kind())))];
    let text = |name: &str| component.line(name).map(|line| unescape_text(&line.decoded_value()));
    for (field, name) in TEXTS {
        fields.extend(text(name).map(|text| (field, FieldValue::Text(text))));
    }
    fields.extend(text("UID").map(|uid| ("ApptUNID", FieldValue::Text(uid))));
    fields.push(("SequenceNum", FieldValue::Number(i64::from(sequence(component)))));
    read_times(component, series, now, floating, &mut fields);
    if series.kind() == ComponentKind::Event {
        fields.push(("AppointmentType", FieldValue::text(appointment_type(component))));
    }
    read_people(component, &mut fields);
    read_flags(component, owner, &mut fields);
    read_alarm(component, &mut fields);
    let categories: Vec<String> = component
        .lines()
        .filter(|line| line.name() == "CATEGORIES")
        .flat_map(|line| {
            split_values(line.value(), ',').map(|text| unescape_text(text.trim())).collect::<Vec<_>>()
        })
        .filter(|category| !category.is_empty())
        .collect();
    if !categories.is_empty() {
        fields.push(("Categories", FieldValue::Texts(categories)));
    }
    fields
}

/// Fields that are texts of one line of the calendar.
const TEXTS: [(&str, &str); 3] = [("Subject", "SUMMARY"), ("Location", "LOCATION"), ("Body", "DESCRIPTION")];

/// The component that the document's fields are of: the series itself, or the first of single instances.
fn main_component<'a>(calendar: &'a Component, series: &Series) -> Option<&'a Component> {
    component_at(calendar, main_item(series)?)
}

fn main_item(series: &Series) -> Option<usize> {
    series.master().or_else(|| series.overrides().first()).map(|event| event.item)
}

fn form(kind: ComponentKind) -> &'static str {
    match kind {
        ComponentKind::Event => "Appointment",
        ComponentKind::Todo => "Task",
        ComponentKind::Journal => "Journal",
    }
}

fn read_times(component: &Component, series: &Series, now: Instant, floating: &Zone, fields: &mut FieldList) {
    let only = || {
        series.master().or_else(|| series.overrides().first()).and_then(|event| {
            let start = event.start.clone()?;
            Some((event.extent.end_key(&start), start))
        })
    };
    let next = series.is_recurring().then(|| series.next_from(now, floating)).flatten();
    let Some((end_key, start)) = next.map(|next| (next.end_key, next.start)).or_else(only) else { return };
    let end = match start.kind() {
        TimeKind::Zoned(_) => CalendarTime::from_instant(Instant(end_key)),
        kind => CalendarTime::new(crate::civil::CivilTime(end_key), kind.clone()),
    };
    let is_start = component.line("DTSTART").is_some();
    let has_end = ["DTEND", "DURATION"].iter().any(|name| component.line(name).is_some()) || start.is_day();
    if is_start {
        let text = FieldValue::Text(times::text(&start));
        fields.push(("StartDateTime", text.clone()));
        fields.push(("CalendarDateTime", text));
        let zone = start.zone().filter(|zone| !zone.is_utc());
        fields.extend(zone.map(|zone| ("StartTimeZone", FieldValue::text(zone.name()))));
    }
    if series.kind() == ComponentKind::Event && has_end {
        fields.push(("EndDateTime", FieldValue::Text(times::text(&end))));
    }
    if component.line("DUE").is_some() || (series.kind() == ComponentKind::Todo && has_end) {
        fields.push(("DueDateTime", FieldValue::Text(times::text(&end))));
    }
    let completed = component.line("COMPLETED").and_then(|line| times::of_value(line.value()));
    fields.extend(completed.map(|completed| ("CompletedDateTime", FieldValue::Text(completed))));
    if let Some(rule) = component.line("RRULE") {
        fields.push(("RepeatRule", FieldValue::text(rule.value())));
    }
    if series.is_recurring() {
        fields.push(("Repeats", FieldValue::text("1")));
    }
}

/// What Domino calls the entry, by what it is; Lotus Notes' own calendars say it themselves.
fn appointment_type(component: &Component) -> &'static str {
    let has = |name: &str| component.line(name).is_some();
    let own = component.line("X-LOTUS-APPTTYPE").map(|line| line.value().trim());
    if let Some(known) = own.and_then(|own| ["0", "1", "2", "3", "4"].into_iter().find(|known| *known == own))
    {
        return known;
    }
    if has("ATTENDEE") {
        return "3";
    }
    let is_day = component.line("DTSTART").is_some_and(|line| line.value().trim().len() == 8);
    let is_yearly =
        component.line("RRULE").is_some_and(|line| line.value().to_ascii_uppercase().contains("FREQ=YEARLY"));
    match (is_day, is_yearly, is_free(component)) {
        (true, true, true) => "1",
        (true, _, _) => "2",
        (false, _, _) if !has("DTEND") && !has("DURATION") => "4",
        (false, _, _) => "0",
    }
}

fn is_free(component: &Component) -> bool {
    component.line("TRANSP").is_some_and(|line| line.value().trim().eq_ignore_ascii_case("TRANSPARENT"))
}

fn read_people(component: &Component, fields: &mut FieldList) {
    fields.extend(component.line("ORGANIZER").map(|line| ("Chair", FieldValue::Text(mailbox(line)))));
    for list in AttendeeList::ALL {
        let attendees = component
            .lines()
            .filter(|line| line.name() == "ATTENDEE" && AttendeeList::of(line) == Some(list));
        let mailboxes: Vec<String> = attendees.map(mailbox).collect();
        if !mailboxes.is_empty() {
            fields.push((list.field(), FieldValue::Texts(mailboxes)));
        }
    }
}

fn read_flags(component: &Component, owner: &str, fields: &mut FieldList) {
    let is_cancelled =
        component.line("STATUS").is_some_and(|line| line.value().trim().eq_ignore_ascii_case("CANCELLED"));
    if component.name() == "VEVENT" {
        fields.push(("$BusyName", FieldValue::text(owner)));
        let is_free = is_free(component);
        fields.push(("$BusyPriority", FieldValue::text(if is_free || is_cancelled { "2" } else { "1" })));
        if is_free {
            fields.push(("BookFreeTime", FieldValue::text("1")));
        }
    }
    if is_private(component) {
        fields.push(("OrgConfidential", FieldValue::text("1")));
    }
}

fn read_alarm(component: &Component, fields: &mut FieldList) {
    let Some(alarm) = component.components().find(|part| part.name() == "VALARM") else { return };
    fields.push(("$Alarm", FieldValue::Number(1)));
    let trigger = alarm.line("TRIGGER").and_then(|line| Duration::parse(line.value().trim()).ok());
    if let Some(trigger) = trigger {
        let minutes = (i64::from(trigger.days) * 86_400 + i64::from(trigger.seconds)) / 60;
        fields.push(("$AlarmOffset", FieldValue::Number(if trigger.negative { -minutes } else { minutes })));
        fields.push(("$AlarmUnit", FieldValue::text("M")));
    }
    let description = alarm.line("DESCRIPTION").map(|line| unescape_text(line.value()));
    fields.extend(description.map(|text| ("$AlarmDescription", FieldValue::Text(text))));
}
