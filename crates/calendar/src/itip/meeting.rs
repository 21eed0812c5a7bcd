//! A calendar object as scheduling sees it: the series and single instances, each by the moment it stands for.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

use scrinium_dav_wire::content::{Component, ContentItem, ContentLine};

use super::{Message, Method, Reason};
use crate::address::{attendee, attendees, comparable};
use crate::civil::CivilTime;
use crate::event::Event;
use crate::fields::time_line;
use crate::series::{InstantRange, Series};
use crate::time::{CalendarTime, Extent};
use crate::zone::{FoundZones, Instant, Zone, ZoneNames};

/// Parts of one meeting, and lines of each that are compared.
const PARTS_MAX: usize = 2_000;
/// The parameter of an attendee of the organizer's copy: when the last answer was written, in seconds since 1970.
const ANSWERED: &str = "X-SCRINIUM-ANSWERED";
/// What stands before it, where the answer was to that instance alone.
const OWN: &str = "OWN-";

/// Which instance: `None` for the series, else its moment.
pub(super) type Instance = Option<i64>;

#[derive(Clone, Debug)]
enum Slot {
    Other(ContentItem),
    Part(Instance),
}

/// A calendar object with one UID.
#[derive(Clone, Debug)]
pub(super) struct Meeting {
    slots: Vec<Slot>,
    pub(super) parts: BTreeMap<Instance, Component>,
    pub(super) uid: String,
    /// The series without instances of their own, which is counted once.
    series: OnceCell<Option<Series>>,
    /// The calendar without events, for its zones.
    shell: OnceCell<Option<Component>>,
    zones: RefCell<FoundZones>,
}

impl Meeting {
    /// Reads events or to-dos of one UID.
    pub(super) fn read(calendar: &Component, floating: &Zone) -> Result<Self, Reason> {
        let is_part = |part: &&Component| matches!(part.name(), "VEVENT" | "VTODO" | "VJOURNAL");
        let uid_of = |part: &Component| part.line("UID").map(|line| line.value().to_owned());
        let first = calendar.components().find(is_part).ok_or(Reason::NothingToSchedule)?;
        let uid = uid_of(first).filter(|uid| !uid.is_empty()).ok_or(Reason::NoUid)?;
        let mut zones = ZoneNames::new(calendar, floating.clone());
        let start = start_of_series(calendar, &mut zones);
        let mut meeting = Self {
            slots: Vec::new(),
            parts: BTreeMap::new(),
            uid,
            series: OnceCell::new(),
            shell: OnceCell::new(),
            zones: RefCell::default(),
        };
        for item in &calendar.items {
            let ContentItem::Component(part) = item else {
                meeting.slots.push(Slot::Other(item.clone()));
                continue;
            };
            if !is_part(&part) {
                meeting.slots.push(Slot::Other(item.clone()));
                continue;
            }
            if uid_of(part).as_deref() != Some(&meeting.uid) || part.name() != first.name() {
                return Err(Reason::SeveralMeetings);
            }
            let instance = match part.line("RECURRENCE-ID") {
                None => None,
                Some(line) => {
                    let id = CalendarTime::read(line, &mut zones).ok_or(Reason::UnreadableTime)?;
                    Some(start.as_ref().map_or_else(|| id.key(), |start| in_terms_of(start, &id).key()))
                }
            };
            meeting.put_newer(instance, part.clone());
            if meeting.parts.len() > PARTS_MAX {
                return Err(Reason::TooManyParts);
            }
        }
        Ok(meeting)
    }

    /// Of two parts for one instance the later one holds.
    fn put_newer(&mut self, instance: Instance, part: Component) {
        match self.parts.get(&instance) {
            Some(known) if version(known) > version(&part) => {}
            _ => self.put(instance, part),
        }
    }

    pub(super) fn put(&mut self, instance: Instance, part: Component) {
        if instance.is_none() {
            self.series = OnceCell::new();
        }
        if self.parts.insert(instance, part).is_none() {
            self.slots.push(Slot::Part(instance));
        }
    }

    /// Takes parts away.
    pub(super) fn retain(&mut self, is_kept: impl Fn(Instance, &Component) -> bool) {
        self.parts.retain(|instance, part| is_kept(*instance, part));
        self.series = OnceCell::new();
        let parts = &self.parts;
        self.slots.retain(|slot| !matches!(slot, Slot::Part(instance) if !parts.contains_key(instance)));
    }

    /// The same without its events or to-dos.
    pub(super) fn without_parts(&self) -> Self {
        let mut empty = self.clone();
        empty.retain(|_, _| false);
        empty
    }

    /// The calendar, each part where it was.
    pub(super) fn to_calendar(&self) -> Option<Component> {
        let mut calendar = Component::new("VCALENDAR")?;
        let items = self.slots.iter().filter_map(|slot| match slot {
            Slot::Other(item) => Some(item.clone()),
            Slot::Part(instance) => self.parts.get(instance).cloned().map(ContentItem::Component),
        });
        calendar.items.extend(items);
        // A message's method is no part of what is stored (RFC 4791, section 4.1).
        calendar.remove("METHOD");
        Some(calendar)
    }

    /// A message with these parts.
    pub(super) fn message(
        &self,
        method: Method,
        from: &str,
        to: &str,
        parts: Vec<Component>,
    ) -> Option<Message> {
        let calendar = self.with_method(method, parts)?;
        Some(Message { method, from: from.to_owned(), to: to.to_owned(), calendar })
    }

    /// A calendar with a method and these parts.
    fn with_method(&self, method: Method, parts: Vec<Component>) -> Option<Component> {
        let mut calendar = Component::new("VCALENDAR")?;
        let others = self.slots.iter().filter_map(|slot| match slot {
            Slot::Other(ContentItem::Line(line)) if matches!(line.name(), "METHOD" | "PRODID") => None,
            Slot::Other(item) => Some(item.clone()),
            Slot::Part(_) => None,
        });
        calendar.items.extend(ContentLine::new("PRODID", Vec::new(), crate::PRODUCT).map(ContentItem::Line));
        calendar.items.extend(others);
        calendar
            .replace("METHOD", ContentLine::new("METHOD", Vec::new(), method.name()).into_iter().collect());
        if calendar.line("VERSION").is_none() {
            calendar.replace("VERSION", ContentLine::new("VERSION", Vec::new(), "2.0").into_iter().collect());
        }
        calendar.items.extend(parts.into_iter().map(ContentItem::Component));
        Some(calendar)
    }

    /// Definitions of zones that the other one has and this one has not.
    pub(super) fn take_zones(&mut self, other: &Self) {
        let name = |slot: &Slot| match slot {
            Slot::Other(ContentItem::Component(part)) if part.name() == "VTIMEZONE" => {
                part.line("TZID").map(|line| line.value().to_owned())
            }
            Slot::Other(_) | Slot::Part(_) => None,
        };
        let known: Vec<String> = self.slots.iter().filter_map(name).collect();
        let new = other.slots.iter().filter(|slot| name(slot).is_some_and(|name| !known.contains(&name)));
        self.series = OnceCell::new();
        self.shell = OnceCell::new();
        self.zones = RefCell::default();
        self.slots.splice(0..0, new.cloned().collect::<Vec<_>>());
    }

    pub(super) fn master(&self) -> Option<&Component> {
        self.parts.get(&None)
    }

    /// What holds for an instance: its own part, or that of the series.
    pub(super) fn effective(&self, instance: Instance) -> Option<&Component> {
        self.parts.get(&instance).or_else(|| self.master())
    }

    /// What stands at an instance: its own part, or what the series gives there.
    pub(super) fn at(&self, instance: Instance) -> Option<Component> {
        let made = || instance.filter(|key| self.gives(*key)).and_then(|key| self.instance(key));
        self.parts.get(&instance).cloned().or_else(made)
    }

    /// ORGANIZER, for comparing.
    pub(super) fn organizer(&self) -> Option<String> {
        self.organizer_line().map(|line| comparable(line.value()))
    }

    pub(super) fn organizer_line(&self) -> Option<&ContentLine> {
        self.parts.values().find_map(|part| part.line("ORGANIZER"))
    }

    /// Addresses of all attendees, for comparing, each once.
    pub(super) fn attendees(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.parts.values().flat_map(attendees).map(|line| comparable(line.value())).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether the rules and dates of the series give an instance.
    pub(super) fn gives(&self, key: i64) -> bool {
        let Some(series) = self.series() else { return false };
        let range = InstantRange { from: Instant(key), to: Instant(key.saturating_add(1)) };
        // Floating times count in UTC, where they are their keys.
        let found = series.occurrences(range, &Zone::utc(), 16).occurrences;
        found.iter().any(|one| one.recurrence_id.as_ref().is_some_and(|id| id.key() == key))
    }

    fn series(&self) -> Option<&Series> {
        let read = || {
            let mut calendar = self.shell()?.clone();
            calendar.items.push(ContentItem::Component(self.master()?.clone()));
            Series::read_all(&calendar, &Zone::utc()).pop()
        };
        self.series.get_or_init(read).as_ref()
    }

    /// When the series begins, and how long it takes.
    fn series_time(&self) -> Option<(&CalendarTime, Extent)> {
        let master = self.series()?.master()?;
        Some((master.start.as_ref()?, master.extent))
    }

    fn shell(&self) -> Option<&Component> {
        self.shell.get_or_init(|| self.with_method(Method::Publish, Vec::new())).as_ref()
    }

    /// Start and length of a part, for comparing.
    pub(super) fn time_of(&self, part: &Component) -> Option<(i64, bool, i64)> {
        let mut zones = ZoneNames::new(self.shell()?, Zone::utc()).with_found(self.zones.take());
        let event = Event::read(0, part, &mut zones);
        self.zones.replace(zones.into_found());
        let start = event.start?;
        Some((start.key(), start.is_day(), event.extent.end_key(&start) - start.key()))
    }

    /// What the series calls its zone.
    fn tzid(&self) -> Option<&str> {
        self.master()?.line("DTSTART")?.parameter("TZID")
    }

    /// A part for an instance that the series gives, as it stands there.
    pub(super) fn instance(&self, key: i64) -> Option<Component> {
        let master = self.master()?;
        let (start, extent) = self.series_time()?;
        let tzid = self.tzid();
        let time = start.at_key(key);
        let mut part = master.clone();
        for name in ["RRULE", "RDATE", "EXDATE", "EXRULE"] {
            part.remove(name);
        }
        let end = start.at_key(extent.end_key(&time));
        for (name, time) in [("DTSTART", &time), ("DTEND", &end), ("DUE", &end)] {
            if part.line(name).is_some() {
                part.replace(name, time_line(name, time, tzid).into_iter().collect());
            }
        }
        part.push(time_line("RECURRENCE-ID", &time, tzid)?);
        Some(part)
    }

    /// A line that excludes an instance, for the series.
    fn exclusion(&self, key: i64) -> Option<ContentLine> {
        let (start, _) = self.series_time()?;
        time_line("EXDATE", &start.at_key(key), self.tzid())
    }

    /// What somebody is invited to: the series without instances that he is not invited to, or single instances.
    pub(super) fn view(&self, address: &str) -> Vec<Component> {
        let is_invited = |part: &Component| attendee(part, &[address]).is_some();
        let master = self.master().filter(|master| is_invited(master));
        let mut parts = Vec::new();
        if let Some(master) = master {
            let mut master = clean(master);
            let left_out = self.parts.iter().filter(|(_, part)| !is_invited(part));
            for line in left_out.filter_map(|(instance, _)| self.exclusion((*instance)?)) {
                master.push(line);
            }
            parts.push(master);
        }
        let instances = self.parts.iter().filter(|(instance, _)| instance.is_some());
        parts.extend(instances.filter(|(_, part)| is_invited(part)).map(|(_, part)| clean(part)));
        parts
    }
}

fn start_of_series(calendar: &Component, zones: &mut ZoneNames<'_>) -> Option<CalendarTime> {
    let master = calendar
        .components()
        .find(|part| matches!(part.name(), "VEVENT" | "VTODO") && part.line("RECURRENCE-ID").is_none())?;
    Event::read(0, master, zones).start
}

/// Alarms are each person's own.
pub(super) fn remove_alarms(part: &mut Component) {
    part.items.retain(|item| !matches!(item, ContentItem::Component(inner) if inner.name() == "VALARM"));
}

/// However an instance is named, its time is one of the series' kind.
fn in_terms_of(start: &CalendarTime, id: &CalendarTime) -> CalendarTime {
    match (start.is_day(), id.is_day()) {
        (false, true) => start.at(CivilTime(id.civil().0 + start.civil().second_of_day())),
        (false, false) if start.zone().is_some() && id.zone().is_some() => id.clone(),
        (_, _) => start.at(id.civil()),
    }
}

/// A part as it is sent: without alarms, and without what is between a client and its server (RFC 6638, section 7).
fn clean(part: &Component) -> Component {
    let mut part = part.clone();
    remove_alarms(&mut part);
    for line in part.lines_mut().filter(|line| matches!(line.name(), "ATTENDEE" | "ORGANIZER")) {
        for name in ["SCHEDULE-AGENT", "SCHEDULE-STATUS", "SCHEDULE-FORCE-SEND", ANSWERED] {
            line.set_parameter(name, None);
        }
    }
    part
}

/// An answer in the organizer's copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    /// When it was written, in seconds since 1970.
    pub(super) stamp_s: i64,
    /// It was given to this instance, and not to the series.
    pub(super) is_own: bool,
}

impl Answered {
    pub(super) fn read(line: &ContentLine) -> Option<Self> {
        let text = line.parameter(ANSWERED)?;
        let own = text.strip_prefix(OWN);
        Some(Self { stamp_s: own.unwrap_or(text).parse().ok()?, is_own: own.is_some() })
    }

    pub(super) fn write(self, line: &mut ContentLine) {
        let prefix = if self.is_own { OWN } else { "" };
        line.set_parameter(ANSWERED, Some(&format!("{prefix}{}", self.stamp_s)));
    }
}

/// Whether the server informs the one of this line, and not the client, or nobody (SCHEDULE-AGENT, RFC 6638, section 7.1).
pub(super) fn is_server_scheduled(line: &ContentLine) -> bool {
    line.parameter("SCHEDULE-AGENT").is_none_or(|agent| agent.eq_ignore_ascii_case("SERVER"))
}

/// SEQUENCE and DTSTAMP (RFC 5546, section 2.1.5).
pub(super) fn version(part: &Component) -> (u32, i64) {
    (crate::event::sequence(part), crate::event::stamp_s(part))
}

/// Sets the value of a line, or adds it.
pub(super) fn set(part: &mut Component, name: &str, value: &str) {
    let old = part.lines_mut().find(|line| line.name() == name).map(|line| line.set_value(value));
    if old.is_none() {
        ContentLine::new(name, Vec::new(), value).into_iter().for_each(|line| part.push(line));
    }
}

pub(super) fn set_stamp(part: &mut Component, now: Instant) {
    if let Some(value) = CalendarTime::from_instant(now).value() {
        set(part, "DTSTAMP", &value.to_string());
    }
}

pub(super) fn is_cancelled(part: &Component) -> bool {
    part.line("STATUS").is_some_and(|line| line.value().trim().eq_ignore_ascii_case("CANCELLED"))
}

/// Lines that are no news to anybody else.
const NOISE: [&str; 9] = [
    "DTSTAMP",
    "LAST-MODIFIED",
    "CREATED",
    "TRANSP",
    "ACKNOWLEDGED",
    "REQUEST-STATUS",
    "X-MOZ-LASTACK",
    "X-MOZ-GENERATION",
    "X-APPLE-EWS-BUSYSTATUS",
];

/// A part for comparing: without noise and answers, its lines in order.
pub(super) fn essence(part: &Component) -> Vec<ContentLine> {
    let mut lines: Vec<ContentLine> =
        part.lines().filter(|line| !NOISE.contains(&line.name())).cloned().collect();
    for line in lines.iter_mut().filter(|line| line.name() == "ATTENDEE") {
        for name in ["PARTSTAT", "RSVP", "SCHEDULE-STATUS", "SCHEDULE-FORCE-SEND", ANSWERED] {
            line.set_parameter(name, None);
        }
    }
    lines.sort_by(|one, other| (one.name(), one.value()).cmp(&(other.name(), other.value())));
    lines
}

/// Lines of these names, for comparing.
pub(super) fn lines_named<'a>(part: &'a Component, names: &[&str]) -> Vec<&'a ContentLine> {
    let mut lines: Vec<&ContentLine> = part.lines().filter(|line| names.contains(&line.name())).collect();
    lines.sort_by(|one, other| (one.name(), one.value()).cmp(&(other.name(), other.value())));
    lines
}
