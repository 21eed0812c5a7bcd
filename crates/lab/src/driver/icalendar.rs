//! Events as iCalendar has them (RFC 5545), as far as the laboratory writes and reads them.

use crate::content::{Form, Message};
use crate::script::CalendarKind;

/// Properties of an event that must come back with the values that they were written with. A server may put them in
/// another order, fold them otherwise and add its own.
const GIVEN: &[&str] = &["UID", "SUMMARY", "DTSTART", "DTEND", "DESCRIPTION"];

const LAB: &str = "X-SCRINIUM-LAB";

/// Lines are folded after so many bytes.
const LINE_BYTES: usize = 73;

/// Events begin some days after they are planned, on different days, and last an hour.
const PLANNED_AHEAD_S: i64 = 3 * 86_400;
const DAYS: i64 = 28;
const EVENT_S: i64 = 3600;

/// The event that a message asks for, as a calendar of its own.
pub(super) fn event(message: &Message, domain: &str) -> String {
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
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Scrinium//Laboratory//EN\r\nBEGIN:VEVENT\r\n".to_owned();
    for (name, value) in &given {
        property(name, value, &mut text);
    }
    property("DTSTAMP", &time(message.posted), &mut text);
    if message.form == Form::Calendar(CalendarKind::Invitation) {
        property("ORGANIZER", &format!("mailto:{}@{domain}", message.from), &mut text);
        for recipient in &message.recipients {
            property(
                "ATTENDEE;PARTSTAT=NEEDS-ACTION;RSVP=TRUE",
                &format!("mailto:{recipient}@{domain}"),
                &mut text,
            );
        }
    }
    let digest = digest(given.iter().map(|(name, value)| (*name, value.as_str())));
    property(LAB, &digest, &mut text);
    text.push_str("END:VEVENT\r\nEND:VCALENDAR\r\n");
    text
}

fn time(second: i64) -> String {
    jiff::Timestamp::from_second(second).unwrap_or_default().strftime("%Y%m%dT%H%M%SZ").to_string()
}

fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace(';', "\\;").replace(',', "\\,");
    text.trim_end().replace('\n', "\\n")
}

/// The content is ASCII, so that a line can be folded anywhere.
fn property(name: &str, value: &str, text: &mut String) {
    let line = format!("{name}:{value}");
    let mut rest = line.as_str();
    while let Some((first, after)) = rest.split_at_checked(LINE_BYTES).filter(|(_, after)| !after.is_empty())
    {
        text.push_str(first);
        text.push_str("\r\n ");
        rest = after;
    }
    text.push_str(rest);
    text.push_str("\r\n");
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
pub(super) fn check(text: &str, id: &str) -> Result<(), String> {
    let mut given: Vec<(String, String)> = Vec::new();
    let mut wanted = None;
    let mut in_event = false;
    for line in unfolded(text) {
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let name = name.split(';').next().unwrap_or_default().to_ascii_uppercase();
        match name.as_str() {
            "BEGIN" => in_event = value.eq_ignore_ascii_case("VEVENT"),
            "END" => in_event = false,
            LAB if in_event => wanted = Some(value.to_owned()),
            _ if in_event && GIVEN.contains(&name.as_str()) => given.push((name, value.to_owned())),
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

fn unfolded(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix([' ', '\t']), lines.last_mut()) {
            (Some(rest), Some(last)) => last.push_str(rest),
            _ => lines.push(line.to_owned()),
        }
    }
    lines
}
