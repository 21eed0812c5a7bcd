//! Events as iCalendar has them (RFC 5545), as far as the laboratory writes and reads them.

use scrinium_dav_wire::Parameter;
use scrinium_dav_wire::content::{Component, ContentLimits, ContentLine};
use scrinium_dav_wire::value::escape_text;
use scrinium_lab_script::CalendarKind;

use crate::content::{Form, Message};

/// Properties of an event that must come back with the values that they were written with. A server may put them in
/// another order, fold them otherwise and add its own.
const GIVEN: &[&str] = &["UID", "SUMMARY", "DTSTART", "DTEND", "DESCRIPTION"];

const LAB: &str = "X-SCRINIUM-LAB";

/// Events begin some days after they are planned, on different days, and last an hour.
const PLANNED_AHEAD_S: i64 = 3 * 86_400;
const DAYS: i64 = 28;
const EVENT_S: i64 = 3600;

/// The event that a message asks for, as a calendar of its own.
pub(super) fn event(message: &Message, domain: &str) -> Vec<u8> {
    let day = i64::from(message.number.sequence) % DAYS * 86_400;
    let begin = message.posted + PLANNED_AHEAD_S + day;
    let given = [
        ("UID", format!("{}@{domain}", message.id)),
        ("SUMMARY", escaped(&message.subject)),
        ("DTSTART", time(begin)),
        ("DTEND", time(begin + EVENT_S)),
        ("DESCRIPTION", escaped(&message.body)),
    ];
    let mut text =
        b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Scrinium//Laboratory//EN\r\nBEGIN:VEVENT\r\n".to_vec();
    for (name, value) in &given {
        property(name, Vec::new(), value, &mut text);
    }
    property("DTSTAMP", Vec::new(), &time(message.posted), &mut text);
    if message.form == Form::Calendar(CalendarKind::Invitation) {
        property("ORGANIZER", Vec::new(), &format!("mailto:{}@{domain}", message.from), &mut text);
        for recipient in &message.recipients {
            let parameters = vec![Parameter::new("PARTSTAT", "NEEDS-ACTION"), Parameter::new("RSVP", "TRUE")];
            property("ATTENDEE", parameters, &format!("mailto:{recipient}@{domain}"), &mut text);
        }
    }
    let digest = digest(given.iter().map(|(name, value)| (*name, value.as_str())));
    property(LAB, Vec::new(), &digest, &mut text);
    text.extend_from_slice(b"END:VEVENT\r\nEND:VCALENDAR\r\n");
    text
}

/// A time in UTC, as iCalendar writes it.
pub(super) fn time(second: i64) -> String {
    jiff::Timestamp::from_second(second).unwrap_or_default().strftime("%Y%m%dT%H%M%SZ").to_string()
}

fn escaped(text: &str) -> String {
    escape_text(text.trim_end())
}

/// A value that no line can hold is left out, and its event is found wrong when it is read.
fn property(name: &str, parameters: Vec<Parameter>, value: &str, text: &mut Vec<u8>) {
    if let Some(line) = ContentLine::new(name, parameters, value) {
        line.write(text);
    }
}

/// Does not depend on the order of the properties.
fn digest<'a>(properties: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut lines: Vec<String> = properties.map(|(name, value)| format!("{name}:{value}\n")).collect();
    lines.sort();
    let mut hasher = crc32fast::Hasher::new();
    let mut bytes = 0;
    for line in &lines {
        hasher.update(line.as_bytes());
        bytes += line.len();
    }
    format!("{:08x}-{bytes}", hasher.finalize())
}

/// Says what is wrong with an event that was read: it must be the one of this id, and hold what was written.
pub(super) fn check(text: &[u8], id: &str) -> Result<(), String> {
    let calendar =
        Component::parse(text, ContentLimits::default()).map_err(|why| format!("no calendar: {why}"))?;
    let mut given: Vec<(String, String)> = Vec::new();
    let mut wanted = None;
    let events = std::iter::once(&calendar).chain(calendar.components());
    let events = events.filter(|component| component.name() == "VEVENT");
    for line in events.flat_map(Component::lines) {
        match line.name() {
            LAB => wanted = Some(line.value().to_owned()),
            name if GIVEN.contains(&name) => given.push((name.to_owned(), line.value().to_owned())),
            _ => {}
        }
    }
    let uid = given.iter().find(|(name, _)| name == "UID").map_or("", |(_, uid)| uid.as_str());
    if uid.split('@').next() != Some(id) {
        return Err(format!("the event {uid} came, and {id} was asked for"));
    }
    let digest = digest(given.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    match wanted {
        Some(wanted) if wanted == digest => Ok(()),
        Some(wanted) => Err(format!("the event's digest is {digest} and was {wanted}")),
        None => Err(format!("the event has lost its {LAB}")),
    }
}
