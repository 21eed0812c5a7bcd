//! Which calendars and cards a query means (RFC 4791, sections 7.8 and 9.7 to 9.9; RFC 6352, section 10.5).

use scrinium_calendar::event::ComponentKind;
use scrinium_calendar::series::{InstantRange, Occurrence, Series};
use scrinium_calendar::time::CalendarTime;
use scrinium_calendar::zone::{Instant, Zone, ZoneNames};
use scrinium_dav_wire::content::{Component, ContentItem, ContentLine};
use scrinium_dav_wire::value::{DateTime, Duration, unescape_text};
use scrinium_dav_wire::{ComponentFilter, ContactFilter, PropertyFilter, TextMatch, TimeRange};

/// Occurrences of an object that a filter looks at.
const OCCURRENCES_MAX: usize = 10_000;

/// Repetitions of an alarm that are looked at.
const REPETITIONS_MAX: u32 = 1_000;

/// Collations that texts can be compared by (RFC 4790).
pub const COLLATIONS: [&str; 3] = ["i;ascii-casemap", "i;unicode-casemap", "i;octet"];

/// A range with open ends, as moments.
#[must_use]
pub fn instants(range: &TimeRange) -> InstantRange {
    let instant = |time: &Option<DateTime>, open: i64| {
        let civil = time.and_then(|time| {
            let (year, month, day) = time.date().0.parts();
            let second = i64::from(time.second_of_day().unwrap_or_default());
            Some(scrinium_calendar::civil::CivilTime::new(i64::from(year), month, day, second).0)
        });
        Instant(civil.unwrap_or(open))
    };
    // Half of what there is, so that days can be added.
    InstantRange { from: instant(&range.start, i64::MIN / 4), to: instant(&range.end, i64::MAX / 4) }
}

/// The range that a filter of a calendar asks of one kind of component, if it asks of that kind alone: what lies outside
/// need not be looked at.
#[must_use]
pub fn asked_range(filter: &ComponentFilter) -> Option<(ComponentKind, InstantRange)> {
    let [only] = filter.components.as_slice() else { return None };
    let range = only.time_range.as_ref().filter(|_| !only.is_not_defined)?;
    let kind = match only.name.to_ascii_uppercase().as_str() {
        "VEVENT" => ComponentKind::Event,
        "VTODO" => ComponentKind::Todo,
        "VJOURNAL" => ComponentKind::Journal,
        _ => return None,
    };
    Some((kind, instants(range)))
}

/// Whether all texts of a filter name a collation that is known.
#[must_use]
pub fn knows_collations(filter: &ComponentFilter) -> bool {
    filter.properties.iter().all(knows_collations_of) && filter.components.iter().all(knows_collations)
}

/// The same for one line.
#[must_use]
pub fn knows_collations_of(filter: &PropertyFilter) -> bool {
    let is_known = |text: &TextMatch| {
        text.collation
            .as_deref()
            .is_none_or(|collation| collation == "default" || COLLATIONS.contains(&collation))
    };
    filter.texts.iter().all(is_known) && filter.parameters.iter().all(knows_collations_of)
}

/// Whether a calendar is meant by the filter, which is of VCALENDAR. Times without a zone count in `floating`.
#[must_use]
pub fn calendar_matches(calendar: &Component, filter: &ComponentFilter, floating: &Zone) -> bool {
    if !filter.name.eq_ignore_ascii_case("VCALENDAR") || filter.is_not_defined {
        return false;
    }
    let look = Look { calendar, series: Series::read_all(calendar, floating), floating };
    let range_holds = filter.time_range.as_ref().is_none_or(|range| {
        let range = instants(range);
        calendar.components().any(|part| look.takes_place(part, range))
    });
    // Some ask for lines of the components without naming one.
    let has_lines = |filter: &PropertyFilter| {
        look.lines_match(calendar, filter)
            || (!filter.is_not_defined
                && calendar
                    .components()
                    .filter(|part| ComponentKind::of(part).is_some())
                    .any(|part| look.lines_match(part, filter)))
    };
    range_holds
        && filter.properties.iter().all(has_lines)
        && filter.components.iter().all(|filter| look.components_match(calendar, filter))
}

struct Look<'a> {
    calendar: &'a Component,
    series: Vec<Series>,
    floating: &'a Zone,
}

impl Look<'_> {
    fn components_match(&self, parent: &Component, filter: &ComponentFilter) -> bool {
        let mut named = parent.components().filter(|part| part.name().eq_ignore_ascii_case(&filter.name));
        if filter.is_not_defined {
            return named.next().is_none();
        }
        named.any(|part| {
            filter.properties.iter().all(|filter| self.lines_match(part, filter))
                && filter.components.iter().all(|filter| self.components_match(part, filter))
                && filter.time_range.as_ref().is_none_or(|range| {
                    let range = instants(range);
                    if part.name() == "VALARM" {
                        self.alarm_rings(parent, part, range)
                    } else {
                        self.takes_place(part, range)
                    }
                })
        })
    }

    fn lines_match(&self, component: &Component, filter: &PropertyFilter) -> bool {
        let mut lines = component.lines().filter(|line| line.name().eq_ignore_ascii_case(&filter.name));
        if filter.is_not_defined {
            return lines.next().is_none();
        }
        lines.any(|line| {
            filter.texts.iter().all(|text| text_matches(&shown(line), text, COLLATIONS[0]))
                && filter.parameters.iter().all(|filter| parameter_matches(line, filter, COLLATIONS[0]))
                && filter.time_range.as_ref().is_none_or(|range| self.line_lies_in(line, instants(range)))
        })
    }

    fn line_lies_in(&self, line: &ContentLine, range: InstantRange) -> bool {
        let mut zones = ZoneNames::new(self.calendar, self.floating.clone());
        let time = CalendarTime::read(line, &mut zones).map(|time| time.instant(self.floating));
        time.is_some_and(|time| range.from <= time && time < range.to)
    }

    /// Whether a component takes place in a span (RFC 4791, section 9.9).
    fn takes_place(&self, component: &Component, range: InstantRange) -> bool {
        match component.name() {
            "VTODO" if component.line("DTSTART").is_none() && component.line("DUE").is_none() => {
                self.undated_todo(component, range)
            }
            "VEVENT" | "VTODO" | "VJOURNAL" => {
                let occurrences = self.occurrences_of(component, range);
                !occurrences.is_empty() || self.is_due_at_end(component, range)
            }
            "VFREEBUSY" => self.bounds(component).is_none_or(|bounds| range.overlaps(bounds)),
            _ => false,
        }
    }

    fn bounds(&self, component: &Component) -> Option<(Instant, Instant)> {
        let time = |name: &str| self.time(component, name);
        Some((time("DTSTART")?, time("DTEND")?))
    }

    fn time(&self, component: &Component, name: &str) -> Option<Instant> {
        let mut zones = ZoneNames::new(self.calendar, self.floating.clone());
        let time = CalendarTime::read(component.line(name)?, &mut zones)?;
        Some(time.instant(self.floating))
    }

    /// What is due in the moment in which the span ends counts (section 9.9, the table of VTODO).
    fn is_due_at_end(&self, component: &Component, range: InstantRange) -> bool {
        component.name() == "VTODO"
            && component.line("DTSTART").is_none()
            && self.time(component, "DUE") == Some(range.to)
    }

    fn undated_todo(&self, component: &Component, range: InstantRange) -> bool {
        match (self.time(component, "COMPLETED"), self.time(component, "CREATED")) {
            (Some(completed), Some(created)) => {
                (range.from <= created || range.from <= completed)
                    && (range.to >= created || range.to >= completed)
            }
            (Some(completed), None) => range.from <= completed && range.to >= completed,
            (None, Some(created)) => range.to > created,
            (None, None) => true,
        }
    }

    fn occurrences_of(&self, component: &Component, range: InstantRange) -> Vec<Occurrence> {
        let item =
            self.calendar.items.iter().position(
                |item| matches!(item, ContentItem::Component(part) if std::ptr::eq(part, component)),
            );
        let lists =
            self.series.iter().map(|series| series.occurrences(range, self.floating, OCCURRENCES_MAX));
        lists.flat_map(|list| list.occurrences).filter(|occurrence| Some(occurrence.item) == item).collect()
    }

    fn alarm_rings(&self, parent: &Component, alarm: &Component, range: InstantRange) -> bool {
        let Some(trigger) = alarm.line("TRIGGER") else { return false };
        let interval = alarm.line("DURATION").and_then(|line| Duration::parse(line.value().trim()).ok());
        let interval = interval.map_or(0, |duration| seconds(&duration));
        let repeats = alarm.line("REPEAT").and_then(|line| line.value().trim().parse::<u32>().ok());
        let repeats = repeats.unwrap_or(0).min(REPETITIONS_MAX);
        let rings = |first: Instant| {
            (0..=repeats).any(|time| {
                let moment = first.0.saturating_add(interval.saturating_mul(i64::from(time)));
                range.from.0 <= moment && moment < range.to.0
            })
        };
        let Ok(offset) = Duration::parse(trigger.value().trim()) else {
            let mut zones = ZoneNames::new(self.calendar, self.floating.clone());
            return CalendarTime::read(trigger, &mut zones)
                .is_some_and(|time| rings(time.instant(self.floating)));
        };
        let offset = seconds(&offset);
        let is_of_end = trigger.parameter("RELATED").is_some_and(|of| of.eq_ignore_ascii_case("END"));
        let reach = offset.saturating_abs().saturating_add(interval.saturating_mul(i64::from(repeats))) + 1;
        let around = InstantRange {
            from: Instant(range.from.0.saturating_sub(reach)),
            to: Instant(range.to.0.saturating_add(reach)),
        };
        self.occurrences_of(parent, around).iter().any(|occurrence| {
            let (start, end) = occurrence.instants(self.floating);
            let base = if is_of_end { end } else { start };
            rings(Instant(base.0.saturating_add(offset)))
        })
    }
}

fn seconds(duration: &Duration) -> i64 {
    let length = i64::from(duration.days) * 86_400 + i64::from(duration.seconds);
    if duration.negative { -length } else { length }
}

/// Whether a card is meant.
#[must_use]
pub fn card_matches(card: &Component, filter: &ContactFilter) -> bool {
    let mut properties = filter.properties.iter();
    match filter.properties.is_empty() {
        true => true,
        false if filter.all_of => properties.all(|filter| card_line_matches(card, filter)),
        false => properties.any(|filter| card_line_matches(card, filter)),
    }
}

fn card_line_matches(card: &Component, filter: &PropertyFilter) -> bool {
    let named = || card.lines().filter(|line| line.name().eq_ignore_ascii_case(&filter.name));
    if filter.is_not_defined {
        return named().next().is_none();
    }
    if filter.texts.is_empty() && filter.parameters.is_empty() {
        return named().next().is_some();
    }
    let text_holds = |text: &TextMatch| {
        let mut values = named().map(shown);
        // What is to match none is asked of all lines (RFC 6352, section 10.5.4).
        if text.negate {
            values.all(|value| text_matches(&value, text, COLLATIONS[1]))
        } else {
            values.any(|value| text_matches(&value, text, COLLATIONS[1]))
        }
    };
    let parameter_holds =
        |filter: &PropertyFilter| named().any(|line| parameter_matches(line, filter, COLLATIONS[1]));
    let mut texts = filter.texts.iter().map(text_holds);
    let mut parameters = filter.parameters.iter().map(parameter_holds);
    if filter.all_of {
        texts.all(|holds| holds) && parameters.all(|holds| holds)
    } else {
        texts.any(|holds| holds) || parameters.any(|holds| holds)
    }
}

fn shown(line: &ContentLine) -> String {
    unescape_text(&line.decoded_value())
}

fn parameter_matches(line: &ContentLine, filter: &PropertyFilter, collation: &str) -> bool {
    let values = line.parameter_values(&filter.name);
    if filter.is_not_defined {
        return values.is_empty();
    }
    !values.is_empty()
        && filter.texts.iter().all(|text| values.iter().any(|value| text_matches(value, text, collation)))
}

fn text_matches(value: &str, filter: &TextMatch, usual: &str) -> bool {
    let collation = filter.collation.as_deref().filter(|named| *named != "default").unwrap_or(usual);
    let folded = |text: &str| match collation {
        "i;octet" => text.to_owned(),
        "i;unicode-casemap" => text.to_lowercase(),
        _ => text.to_ascii_lowercase(),
    };
    let (value, wanted) = (folded(value), folded(&filter.text));
    let matches = match filter.match_type.as_deref() {
        Some("equals") => value == wanted,
        Some("starts-with") => value.starts_with(&wanted),
        Some("ends-with") => value.ends_with(&wanted),
        _ => value.contains(&wanted),
    };
    matches != filter.negate
}
