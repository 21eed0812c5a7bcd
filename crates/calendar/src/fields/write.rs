//! Fields into a calendar: one line for each that changed.

use scrinium_dav_wire::content::{Component, ContentItem, ContentLine};
use scrinium_dav_wire::recurrence::RecurrenceRule;
use scrinium_dav_wire::value::{Duration, escape_text, unescape_text};

use super::people::{AttendeeList, person_line, set_list};
use super::{FieldError, FieldValue, TEXTS, is_free, main_item, times};
use crate::address::comparable;
use crate::event::{Event, is_private};
use crate::series::Series;
use crate::time::{CalendarTime, TimeKind};
use crate::zone::{Instant, Zone};

/// Fields that changed, with their new values; `None` is a field that went.
pub type FieldChanges = [(String, Option<FieldValue>)];

/// Patches fields into the calendar: into the component of the series, or the first of single instances. Says whether a line
/// changed. Fields that are made from others, and those without a place in a calendar, are left aside. All or nothing.
///
/// # Errors
/// [`FieldError`]
pub fn patch(
    calendar: &mut Component,
    uid: &str,
    changes: &FieldChanges,
    floating: &Zone,
    now: Instant,
) -> Result<bool, FieldError> {
    let missing = || FieldError::NoComponent(uid.to_owned());
    let all = Series::read_all(calendar, floating);
    let series = all.iter().find(|series| series.uid() == uid).ok_or_else(missing)?;
    let item = main_item(series).ok_or_else(missing)?;
    let event = series.master().or_else(|| series.overrides().first()).ok_or_else(missing)?;
    let Some(ContentItem::Component(component)) = calendar.items.get_mut(item) else { return Err(missing()) };
    let mut patched = component.clone();
    apply(&mut patched, event, series.is_recurring(), changes)?;
    let is_changed = patched != *component;
    if is_changed {
        stamp(&mut patched, now);
        *component = patched;
    }
    Ok(is_changed)
}

/// A calendar for a document that has none. `Form` says what it is: `Appointment`, `Task` or `Journal`.
///
/// # Errors
/// [`FieldError`]
pub fn create(
    fields: &[(String, FieldValue)],
    uid: &str,
    product: &str,
    floating: &Zone,
    now: Instant,
) -> Result<Component, FieldError> {
    let missing = || FieldError::NoComponent(uid.to_owned());
    let text = |name: &str| {
        fields.iter().find_map(|(field, value)| match value {
            FieldValue::Text(text) if field == name => Some(text.as_str()),
            _ => None,
        })
    };
    let name = match text("Form") {
        Some("Task") => "VTODO",
        Some("Journal") => "VJOURNAL",
        _ => "VEVENT",
    };
    let mut calendar = Component::new("VCALENDAR").ok_or_else(missing)?;
    let mut component = Component::new(name).ok_or_else(missing)?;
    push(&mut calendar, "VERSION", "2.0");
    push(&mut calendar, "PRODID", &escape_text(product));
    push(&mut component, "UID", &escape_text(uid));
    stamp(&mut component, now);
    calendar.items.push(ContentItem::Component(component));
    let mut changes: Vec<(String, Option<FieldValue>)> = fields
        .iter()
        .filter(|(field, _)| field != "ApptUNID")
        .map(|(field, value)| (field.clone(), Some(value.clone())))
        .collect();
    // An anniversary is a day of each year on which one is free, an event a whole day.
    let kind = text("AppointmentType");
    if matches!(kind, Some("1" | "2")) {
        for (_, value) in
            changes.iter_mut().filter(|(field, _)| matches!(field.as_str(), "StartDateTime" | "EndDateTime"))
        {
            if let Some(FieldValue::Text(text)) = value {
                *text = text.split(['T', 't']).next().unwrap_or_default().to_owned();
            }
        }
    }
    if kind == Some("1") {
        let yearly = |field: &str, value: &str| (field.to_owned(), Some(FieldValue::text(value)));
        changes.splice(0..0, [yearly("RepeatRule", "FREQ=YEARLY"), yearly("BookFreeTime", "1")]);
    }
    patch(&mut calendar, uid, &changes, floating, now)?;
    Ok(calendar)
}

fn push(component: &mut Component, name: &str, value: &str) {
    if let Some(line) = ContentLine::new(name, Vec::new(), value) {
        component.push(line);
    }
}

/// DTSTAMP, and LAST-MODIFIED where it stands.
fn stamp(component: &mut Component, now: Instant) {
    let Some(value) = CalendarTime::from_instant(now).value() else { return };
    for name in ["DTSTAMP", "LAST-MODIFIED"] {
        if name == "DTSTAMP" || component.line(name).is_some() {
            set(component, name, Some(&value.to_string()));
        }
    }
}

/// Sets the value of a line, which keeps its parameters, or takes the line away.
fn set(component: &mut Component, name: &str, value: Option<&str>) {
    let Some(value) = value else {
        component.remove(name);
        return;
    };
    let set = component.lines_mut().find(|line| line.name() == name).map(|line| line.set_value(value));
    if set.is_none() {
        component.replace(name, ContentLine::new(name, Vec::new(), value).into_iter().collect());
    }
}

fn apply(
    component: &mut Component,
    event: &Event,
    is_recurring: bool,
    changes: &FieldChanges,
) -> Result<(), FieldError> {
    for (field, value) in changes {
        let value = value.as_ref();
        if let Some((_, name)) = TEXTS.iter().find(|(known, _)| known == field) {
            set_text(component, name, text(field, value)?);
        } else if let Some(list) = AttendeeList::of_field(field) {
            set_list(component, list, &texts(field, value)?)?;
        } else {
            apply_other(component, field, value)?;
        }
    }
    set_alarm(component, changes)?;
    set_times(component, event, is_recurring, changes)
}

fn apply_other(component: &mut Component, field: &str, value: Option<&FieldValue>) -> Result<(), FieldError> {
    match field {
        "ApptUNID" => return Err(FieldError::Derived { field: field.to_owned() }),
        "SequenceNum" => {
            let number = number(field, value)?;
            set(component, "SEQUENCE", number.map(|number| number.to_string()).as_deref());
        }
        "RepeatRule" => {
            let rule = text(field, value)?;
            if let Some(rule) = rule
                && RecurrenceRule::parse(rule).is_err()
            {
                return Err(FieldError::NotARule { field: field.to_owned(), value: rule.to_owned() });
            }
            set(component, "RRULE", rule);
        }
        "Chair" => {
            let line = match text(field, value)? {
                Some(chair) => Some(person_line("ORGANIZER", field, chair, &[])?),
                None => None,
            };
            let address = |line: &ContentLine| comparable(line.value());
            // The same person keeps the line, with all its parameters.
            if line.as_ref().map(address) != component.line("ORGANIZER").map(address) {
                component.replace("ORGANIZER", line.into_iter().collect());
            }
        }
        "Categories" => {
            let categories: Vec<String> =
                texts(field, value)?.iter().map(|category| escape_text(category)).collect();
            let old: Vec<&str> = component
                .lines()
                .filter(|line| line.name() == "CATEGORIES")
                .map(ContentLine::value)
                .collect();
            if old.join(",") != categories.join(",") {
                let line = ContentLine::new("CATEGORIES", Vec::new(), &categories.join(","));
                component
                    .replace("CATEGORIES", line.filter(|_| !categories.is_empty()).into_iter().collect());
            }
        }
        "OrgConfidential" => match (is_set(field, value)?, is_private(component)) {
            (true, false) => set(component, "CLASS", Some("PRIVATE")),
            (false, true) => component.remove("CLASS"),
            (true, true) | (false, false) => {}
        },
        "BookFreeTime" => set_free(component, is_set(field, value)?),
        "$BusyPriority" => set_free(component, text(field, value)? == Some("2")),
        _ => {}
    }
    Ok(())
}

fn set_free(component: &mut Component, free: bool) {
    if is_free(component) != free {
        set(component, "TRANSP", Some(if free { "TRANSPARENT" } else { "OPAQUE" }));
    }
}

fn set_text(component: &mut Component, name: &str, text: Option<&str>) {
    let old = component.line(name).map(|line| unescape_text(&line.decoded_value()));
    if old.as_deref() == text {
        return;
    }
    // Parameters such as LANGUAGE stay, those of another alphabet go with its text.
    if let Some(line) = component.lines_mut().find(|line| line.name() == name) {
        for parameter in ["ENCODING", "CHARSET", "ALTREP"] {
            line.set_parameter(parameter, None);
        }
    }
    set(component, name, text.map(escape_text).as_deref());
}

/// The text of a field; an empty one counts as absent.
fn text<'a>(field: &str, value: Option<&'a FieldValue>) -> Result<Option<&'a str>, FieldError> {
    match value {
        None => Ok(None),
        Some(FieldValue::Text(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(FieldError::WrongType { field: field.to_owned(), expected: "text" }),
    }
}

fn texts(field: &str, value: Option<&FieldValue>) -> Result<Vec<String>, FieldError> {
    match value {
        None => Ok(Vec::new()),
        Some(FieldValue::Text(text)) => {
            Ok(Some(text.clone()).filter(|text| !text.is_empty()).into_iter().collect())
        }
        Some(FieldValue::Texts(texts)) => Ok(texts.clone()),
        Some(FieldValue::Number(_)) => {
            Err(FieldError::WrongType { field: field.to_owned(), expected: "list of texts" })
        }
    }
}

fn number(field: &str, value: Option<&FieldValue>) -> Result<Option<i64>, FieldError> {
    match value {
        None => Ok(None),
        Some(FieldValue::Number(number)) if (0..=i64::from(i32::MAX)).contains(number) => Ok(Some(*number)),
        Some(_) => Err(FieldError::WrongType { field: field.to_owned(), expected: "number from 0" }),
    }
}

/// Domino's way to say yes: `1`.
fn is_set(field: &str, value: Option<&FieldValue>) -> Result<bool, FieldError> {
    match value {
        Some(FieldValue::Number(number)) => Ok(*number == 1),
        value => Ok(text(field, value)? == Some("1")),
    }
}

fn find<'a>(changes: &'a FieldChanges, name: &str) -> Option<Option<&'a FieldValue>> {
    changes.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_ref())
}

/// The first alarm. Others are not a document's.
fn set_alarm(component: &mut Component, changes: &FieldChanges) -> Result<(), FieldError> {
    let fields = ["$Alarm", "$AlarmOffset", "$AlarmUnit", "$AlarmDescription"];
    if !fields.iter().any(|field| find(changes, field).is_some()) {
        return Ok(());
    }
    let is_alarm =
        |item: &ContentItem| matches!(item, ContentItem::Component(part) if part.name() == "VALARM");
    let place = component.items.iter().position(is_alarm);
    if let Some(value) = find(changes, "$Alarm")
        && !is_set("$Alarm", value)?
    {
        place.map(|place| component.items.remove(place));
        return Ok(());
    }
    let summary = component.line("SUMMARY").map_or("Reminder", ContentLine::value).to_owned();
    if place.is_none()
        && let Some(mut alarm) = Component::new("VALARM")
    {
        push(&mut alarm, "ACTION", "DISPLAY");
        push(&mut alarm, "DESCRIPTION", &summary);
        push(&mut alarm, "TRIGGER", "PT0S");
        component.items.push(ContentItem::Component(alarm));
    }
    let Some(alarm) = component.components_mut().find(|part| part.name() == "VALARM") else { return Ok(()) };
    if let Some(Some(value)) = find(changes, "$AlarmOffset") {
        let FieldValue::Number(offset) = value else {
            return Err(FieldError::WrongType { field: "$AlarmOffset".to_owned(), expected: "number" });
        };
        let unit_s =
            match find(changes, "$AlarmUnit").map(|unit| text("$AlarmUnit", unit)).transpose()?.flatten() {
                Some("D") => 86_400,
                Some("H") => 3_600,
                _ => 60,
            };
        let seconds = offset.unsigned_abs().saturating_mul(unit_s);
        let duration = Duration {
            negative: *offset < 0,
            days: u32::try_from(seconds / 86_400).unwrap_or(u32::MAX),
            seconds: u32::try_from(seconds % 86_400).unwrap_or_default(),
        };
        let old = alarm.line("TRIGGER").and_then(|line| Duration::parse(line.value().trim()).ok());
        if old != Some(duration) {
            set(alarm, "TRIGGER", Some(&duration.to_string()));
            alarm.lines_mut().filter(|line| line.name() == "TRIGGER").for_each(|line| {
                line.set_parameter("VALUE", None);
            });
        }
    }
    if let Some(description) = find(changes, "$AlarmDescription") {
        set_text(alarm, "DESCRIPTION", text("$AlarmDescription", description)?);
    }
    Ok(())
}

/// The times that a change names.
struct TimeChanges {
    start: Option<times::DocumentTime>,
    zone: Option<Zone>,
    end: Option<times::DocumentTime>,
}

impl TimeChanges {
    fn read(changes: &FieldChanges, end_field: &str) -> Result<Self, FieldError> {
        let time = |field: &str| -> Result<Option<times::DocumentTime>, FieldError> {
            let Some(value) = find(changes, field).map(|value| text(field, value)).transpose()?.flatten()
            else {
                return Ok(None);
            };
            let wrong = || FieldError::NotATime { field: field.to_owned(), value: value.to_owned() };
            times::parse(value).map(Some).ok_or_else(wrong)
        };
        let zone = match find(changes, "StartTimeZone")
            .map(|value| text("StartTimeZone", value))
            .transpose()?
            .flatten()
        {
            None => None,
            Some(name) => Some(Zone::named(name).ok_or_else(|| FieldError::UnknownZone {
                field: "StartTimeZone".to_owned(),
                value: name.to_owned(),
            })?),
        };
        Ok(Self { start: time("StartDateTime")?, zone, end: time(end_field)? })
    }
}

fn set_times(
    component: &mut Component,
    event: &Event,
    is_recurring: bool,
    changes: &FieldChanges,
) -> Result<(), FieldError> {
    let is_todo = component.name() == "VTODO";
    let (end_field, end_line) = if is_todo { ("DueDateTime", "DUE") } else { ("EndDateTime", "DTEND") };
    if let Some(completed) = find(changes, "CompletedDateTime").filter(|_| is_todo) {
        set_completed(component, text("CompletedDateTime", completed)?)?;
    }
    let new = TimeChanges::read(changes, end_field)?;
    let names = ["StartDateTime", "StartTimeZone", end_field];
    let is_named = [new.start.is_some(), new.zone.is_some(), new.end.is_some()];
    let Some((field, _)) = names.iter().zip(is_named).find(|(_, is_named)| *is_named) else { return Ok(()) };
    if is_recurring {
        return Err(FieldError::Repeating { field: (*field).to_owned() });
    }
    let old = event.start.as_ref();
    let zone = new.zone.as_ref().or_else(|| old.and_then(CalendarTime::zone));
    let start = match (new.start, old) {
        (Some(start), _) => Some(start.in_zone(zone)),
        // Another zone shows the same moment.
        (None, Some(old)) if new.zone.is_some() && old.zone().is_some() => {
            Some(times::DocumentTime::Moment(Instant(old.key())).in_zone(zone))
        }
        (None, old) => old.cloned(),
    };
    let tzid = component.line("DTSTART").and_then(|line| line.parameter("TZID")).map(str::to_owned);
    let kept =
        |time: &CalendarTime| tzid.as_deref().filter(|_| time.zone() == old.and_then(CalendarTime::zone));
    let is_same = |one: Option<&CalendarTime>, other: &CalendarTime| one == Some(other);
    if let Some(start) =
        start.as_ref().filter(|start| !is_same(old, start) || component.line("DTSTART").is_none())
    {
        let has_start = component.line("DTSTART").is_some() || is_named.starts_with(&[true]);
        component.replace(
            "DTSTART",
            times::line("DTSTART", start, kept(start)).filter(|_| has_start).into_iter().collect(),
        );
    }
    let end = match (new.end, &start) {
        (Some(end), start) => {
            let end = end.in_zone(start.as_ref().map_or(zone, CalendarTime::zone));
            component.remove("DURATION");
            Some(if start.as_ref().is_some_and(CalendarTime::is_day) {
                CalendarTime::new(end.civil(), TimeKind::Day)
            } else {
                end
            })
        }
        // What only begins at another time takes as long as before.
        (None, Some(start)) if component.line(end_line).is_some() && component.line("DTSTART").is_some() => {
            Some(start.at_key(event.extent.end_key(start)))
        }
        (None, _) => None,
    };
    if let Some(end) = end {
        if start.as_ref().is_some_and(|start| start.is_day() == end.is_day() && end.key() < start.key()) {
            return Err(FieldError::EndBeforeStart { field: end_field.to_owned() });
        }
        component.replace(end_line, times::line(end_line, &end, kept(&end)).into_iter().collect());
    }
    Ok(())
}

fn set_completed(component: &mut Component, value: Option<&str>) -> Result<(), FieldError> {
    let Some(value) = value else {
        component.remove("COMPLETED");
        return Ok(());
    };
    let wrong = || FieldError::NotATime { field: "CompletedDateTime".to_owned(), value: value.to_owned() };
    let Some(times::DocumentTime::Moment(instant)) = times::parse(value) else { return Err(wrong()) };
    let value = CalendarTime::from_instant(instant).value().ok_or_else(wrong)?;
    set(component, "COMPLETED", Some(&value.to_string()));
    Ok(())
}
