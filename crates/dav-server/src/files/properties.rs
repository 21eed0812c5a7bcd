//! What files and their collections say of themselves (RFC 4918, section 15).

use scrinium_calendar::civil::{CivilTime, DAY_S};
use scrinium_dav::answer::{Resource, href_property};
use scrinium_dav::place::Place;
use scrinium_dav_wire::DAV;
use scrinium_dav_wire::report::Requested;
use scrinium_dav_wire::xml::{Element, Name};

use super::locks::Lock;
use super::nodes::Node;

/// Properties that are made, and cannot be set.
const LIVE: [&str; 9] = [
    "creationdate",
    "getcontentlength",
    "getcontenttype",
    "getetag",
    "getlastmodified",
    "lockdiscovery",
    "resourcetype",
    "supportedlock",
    "current-user-principal",
];

/// Whether a property cannot be set.
pub(super) fn is_protected(name: &Name) -> bool {
    LIVE.iter().any(|live| name.is(DAV, live))
}

/// A resource, for the one who asks.
pub(super) struct Told<'a> {
    pub(super) node: &'a Node,
    pub(super) asker: &'a str,
    pub(super) locks: &'a [Lock],
    pub(super) now_ms: u64,
    /// What clients keep with it.
    pub(super) kept: Vec<Element>,
}

impl Resource for Told<'_> {
    fn usual(&self) -> Vec<Name> {
        let live = LIVE.iter().map(|live| Name::new(DAV, live));
        let live = live.filter(|name| self.live(&name.local).is_some());
        live.chain(self.kept.iter().map(|property| property.name.clone())).collect()
    }

    fn further(&self) -> Vec<Name> {
        Vec::new()
    }

    fn property(&self, asked: &Requested) -> Option<Element> {
        let Requested::Property(name) = asked else { return None };
        if is_protected(name) {
            return self.live(&name.local);
        }
        self.kept.iter().find(|property| property.name == *name).cloned()
    }
}

impl Told<'_> {
    fn live(&self, name: &str) -> Option<Element> {
        let element = Element::new(DAV, name);
        let text = |text: &str| Some(element.clone().with_text(text));
        match (name, self.node) {
            ("resourcetype", Node::Collection(_)) => Some(element.with(Element::new(DAV, "collection"))),
            ("resourcetype", Node::File(_)) => Some(element),
            ("lockdiscovery", _) => Some(lock_discovery(self.locks, self.now_ms)),
            ("supportedlock", _) => Some(supported_locks()),
            ("current-user-principal", _) => {
                let principal = Place::Principal { person: self.asker.to_owned() };
                Some(href_property(DAV, name, &principal.href()))
            }
            (_, Node::Collection(_)) => None,
            ("creationdate", Node::File(file)) => text(&date_time(file.times_ms()[0])),
            ("getlastmodified", Node::File(file)) => text(&http_date(file.times_ms()[1])),
            ("getcontentlength", Node::File(file)) => text(&file.bytes().to_string()),
            ("getcontenttype", Node::File(file)) => text(file.content_type()),
            ("getetag", Node::File(file)) => text(&format!("\"{}\"", file.revision)),
            _ => None,
        }
    }
}

/// The locks that hold for a resource.
pub(super) fn lock_discovery(locks: &[Lock], now_ms: u64) -> Element {
    Element::new(DAV, "lockdiscovery").with_all(locks.iter().map(|lock| lock.element(lock.is_deep, now_ms)))
}

fn supported_locks() -> Element {
    let entry = |scope: &str| {
        let scope = Element::new(DAV, "lockscope").with(Element::new(DAV, scope));
        let kind = Element::new(DAV, "locktype").with(Element::new(DAV, "write"));
        Element::new(DAV, "lockentry").with(scope).with(kind)
    };
    Element::new(DAV, "supportedlock").with_all(["exclusive", "shared"].map(entry))
}

fn parts(time_ms: u64) -> (CivilTime, [i64; 3]) {
    let time = CivilTime(i64::try_from(time_ms / 1_000).unwrap_or(0));
    let second = time.second_of_day();
    (time, [second / 3_600, second / 60 % 60, second % 60])
}

/// As HTTP has it (RFC 9110, section 5.6.7).
pub(super) fn http_date(time_ms: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (time, [hour, minute, second]) = parts(time_ms);
    let (year, month, day) = time.date();
    let place = usize::try_from(time.0.div_euclid(DAY_S).rem_euclid(7)).unwrap_or(0);
    let weekday = DAYS.get(place).copied().unwrap_or_default();
    let month = MONTHS.get(usize::from(month).saturating_sub(1)).copied().unwrap_or_default();
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// As RFC 3339 has it.
fn date_time(time_ms: u64) -> String {
    let (time, [hour, minute, second]) = parts(time_ms);
    let (year, month, day) = time.date();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_http_has_them() {
        assert_eq!(http_date(784_111_777_000), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date_time(784_111_777_999), "1994-11-06T08:49:37Z");
    }
}
