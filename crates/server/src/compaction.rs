//! Compacting on an administrator's word, and by itself in a span of the day.

use std::time::{Duration, Instant};

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use scrinium_catalog::{Databases, NameRange};
use scrinium_database::DatabaseError;
use scrinium_maintenance::{CompactOrder, Compactor};

use crate::config::Settings;

/// A span of the day, which may go past midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    from: Time,
    to: Time,
}

impl Window {
    /// Reads `HH:MM-HH:MM`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no span of the day: write it like 02:00-05:00");
        let time = |text: &str| Time::strptime("%H:%M", text.trim()).map_err(|_| wrong());
        let (from, to) = text.split_once('-').ok_or_else(wrong)?;
        let (from, to) = (time(from)?, time(to)?);
        if from == to { Err(format!("{text:?} begins when it ends")) } else { Ok(Self { from, to }) }
    }

    /// The day on which the span began that `now` is in, and how long it continues; `None` outside of it.
    fn at(self, now: &Zoned) -> Option<(Date, Duration)> {
        let (time, today) = (now.time(), now.date());
        let past_midnight = self.to <= self.from;
        let (begun, end) = match (past_midnight, time >= self.from, time < self.to) {
            (false, true, true) => (today, today),
            (true, true, _) => (today, today.tomorrow().ok()?),
            (true, false, true) => (today.yesterday().ok()?, today),
            _ => return None,
        };
        // An hour that a change of the clocks leaves out counts as the one after it.
        let end = end.to_datetime(self.to).to_zoned(now.time_zone().clone()).ok()?;
        let left = end.timestamp().as_second().saturating_sub(now.timestamp().as_second());
        Some((begun, Duration::from_secs(u64::try_from(left).ok()?)))
    }
}

/// A time zone by its name; the machine's if that is empty.
pub(crate) fn time_zone(name: &str) -> Result<TimeZone, String> {
    if name.is_empty() {
        return Ok(TimeZone::system());
    }
    let unknown =
        |_| format!("{name:?} is no time zone that this machine knows: write it like Europe/Berlin, or UTC");
    TimeZone::get(name).map_err(unknown)
}

/// Begins to compact a database, or all (`*`), on a thread of its own; returns how many.
pub(crate) fn begin(databases: Databases, database: &str, order: &CompactOrder) -> Result<usize, String> {
    let names = if database == "*" {
        databases.names(&NameRange::default()).map_err(|error| error.to_string())?
    } else {
        databases.get(database).map_err(|error| format!("{database}: {error}"))?;
        vec![database.to_owned()]
    };
    let (count, order) = (names.len(), order.clone());
    let begun = std::thread::Builder::new()
        .name("compact".to_owned())
        .spawn(move || compact_all(&databases, &names, &order));
    begun.map(|_| count).map_err(|error| format!("cannot start a thread for it: {error}"))
}

/// Compacts databases one after the other, until somebody stops one. Whether all are done.
fn compact_all(databases: &Databases, names: &[String], order: &CompactOrder) -> bool {
    for name in names {
        match Compactor::of(databases).compact(name, order) {
            Ok(compacted) if compacted.stopped => return false,
            // A database may have gone meanwhile.
            Ok(_) | Err(DatabaseError::NotFound { .. }) => {}
            Err(error) => {
                tracing::warn!(database = name, %error, "a database was not compacted");
                // What stops one for want of space, or because the server stops, stops the others too.
                if matches!(error, DatabaseError::Full { .. } | DatabaseError::Unavailable { .. }) {
                    return false;
                }
            }
        }
    }
    true
}

/// Whether databases are compacted now by themselves, and on which day they were.
#[derive(Default)]
pub(crate) struct Daily {
    done: Option<Date>,
}

impl Daily {
    /// How to compact, if a span of the day has begun of which it was not done yet. It counts as done from then on.
    pub(crate) fn due(&mut self, settings: &Settings, now: Timestamp) -> Option<Due> {
        // Both were checked when they were set.
        let window = Window::parse(&settings.compact.window).ok()?;
        let zone = time_zone(&settings.compact.time_zone).ok()?;
        let (day, left) = window.at(&now.to_zoned(zone))?;
        if self.done == Some(day) {
            return None;
        }
        self.done = Some(day);
        let garbage_percent = settings.compact.garbage_percent as u64;
        Some(Due { garbage_percent, purges: !settings.compact.purge_after.is_zero(), left })
    }
}

/// What is to be done within a span of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    garbage_percent: u64,
    purges: bool,
    left: Duration,
}

impl Due {
    /// Compacts what has gathered garbage, the most first, and purges old tombstones of the rest.
    pub(crate) fn work(self, databases: &Databases) -> Result<(), DatabaseError> {
        let until = Instant::now() + self.left;
        let found = Compactor::of(databases).with_garbage(self.garbage_percent)?;
        let contents_percent = Compactor::of(databases).contents_garbage_percent();
        tracing::info!(databases = found.len(), contents_percent, "compacting what has gathered garbage");
        let order = CompactOrder { until: Some(until), ..CompactOrder::default() };
        if !compact_all(databases, &found, &order) {
            return Ok(());
        }
        // Contents are all databases', so they are seen to once.
        if contents_percent >= self.garbage_percent && !Compactor::of(databases).compact_contents(&order)? {
            return Ok(());
        }
        if self.purges {
            for name in databases.names(&NameRange::default())? {
                if Instant::now() >= until {
                    return Ok(());
                }
                match Compactor::of(databases).purge_tombstones(&name) {
                    // It is gone, or on a volume that is.
                    Ok(_) | Err(DatabaseError::NotFound { .. } | DatabaseError::Unavailable { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Compactor::of(databases).with_garbage(self.garbage_percent).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(window: &str, now: &str) -> Option<(String, u64)> {
        let found = Window::parse(window).unwrap().at(&now.parse().unwrap());
        found.map(|(day, left)| (day.to_string(), left.as_secs() / 60))
    }

    #[test]
    fn a_window_is_open_between_its_times_also_past_midnight_and_when_clocks_change() {
        let day = |day: &str, minutes| Some((day.to_owned(), minutes));
        assert_eq!(left("02:00-05:00", "2026-05-01T01:59:59+00:00[UTC]"), None);
        assert_eq!(left("02:00-05:00", "2026-05-01T02:00:00+00:00[UTC]"), day("2026-05-01", 180));
        assert_eq!(left("02:00-05:00", "2026-05-01T05:00:00+00:00[UTC]"), None);
        assert_eq!(left("23:30-01:00", "2026-05-01T23:45:00+00:00[UTC]"), day("2026-05-01", 75));
        assert_eq!(left("23:30-01:00", "2026-05-02T00:45:00+00:00[UTC]"), day("2026-05-01", 15));
        assert_eq!(left("23:30-01:00", "2026-05-02T12:00:00+00:00[UTC]"), None);
        for wrong in ["2-5", "02:00", "02:00-24:30", "02:00-02:00", "-"] {
            Window::parse(wrong).unwrap_err();
        }
        assert!(time_zone("Atlantis/Center").unwrap_err().contains("Europe/Berlin"));
        let Ok(berlin) = time_zone("Europe/Berlin") else { return };
        // On this day the clocks go from 2 to 3.
        let now: Timestamp = "2026-03-29T00:30:00Z".parse().unwrap();
        let found = Window::parse("01:00-05:00").unwrap().at(&now.to_zoned(berlin));
        assert_eq!(found.unwrap().1.as_secs() / 60, 150);
    }

    #[test]
    fn a_day_is_due_once() {
        let mut settings = Settings::default();
        settings.compact.window = "02:00-05:00".to_owned();
        settings.compact.time_zone = "UTC".to_owned();
        let mut daily = Daily::default();
        let mut due = |now: &str| daily.due(&settings, now.parse().unwrap()).is_some();
        assert!(!due("2026-05-01T01:00:00Z"));
        assert!(due("2026-05-01T02:01:00Z"));
        assert!(!due("2026-05-01T04:00:00Z"));
        assert!(due("2026-05-02T04:59:00Z"));
    }
}
