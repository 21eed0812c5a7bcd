//! Everything that rules look at: what grew between two moments, what is set, what happened lately.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::moment::{AskError, Moment, Source, items, number, text};
use crate::rule::Unjudged;
use crate::words::DAY_S;

/// Events and task runs of the log database that are looked at.
const LOG_COUNT: usize = 1000;

/// Databases that are asked whether they are logged: those that were written to most.
const PROPERTIES_OF: usize = 20;

/// Operations that are no requests of somebody who waits, but a part of such or work in the background.
const NO_REQUESTS: [&str; 7] =
    ["GET_OBJECT", "LOG_SYNC", "MAIL_DELIVER", "MAIL_DEPOSIT", "POOL_WAIT", "PUT_OBJECT", "UNLOGGED_FLUSH"];

/// How often an operation ran, and how long in all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Operation {
    pub count: f64,
    pub total_ms: f64,
}

impl Operation {
    /// Milliseconds of one, on average; 0 where none ran.
    #[must_use]
    pub fn average_ms(&self) -> f64 {
        if self.count > 0.0 { self.total_ms / self.count } else { 0.0 }
    }
}

/// An effective setting: sizes in bytes, times in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Setting {
    pub value: Value,
    pub source: String,
}

/// What a database is and what it did between the moments; only the fifty that did most since the start are known.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DatabaseUse {
    pub name: String,
    pub volume: String,
    pub documents: f64,
    pub file_bytes: f64,
    pub index_bytes: f64,
    pub blocks_from_files: f64,
    pub writes: f64,
    pub written_bytes: f64,
}

/// A volume.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct VolumeUse {
    pub name: String,
    pub free_bytes: f64,
    /// Why it is not there, if it is not.
    pub missing: Option<String>,
}

/// A warning or an error of the last day.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Event {
    pub level: String,
    pub text: String,
}

/// A long task that has ended.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct TaskRun {
    pub kind: String,
    pub database: String,
    pub outcome: String,
    pub reason: String,
    /// When it was known to have ended, in seconds since 1970.
    pub ended_s: f64,
}

/// What the rules are put to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Seconds between the moments.
    pub seconds: f64,
    /// The first moment is the server's start.
    pub is_since_start: bool,
    /// Now, in seconds since 1970.
    pub now_s: f64,
    /// Statistics at the first moment; none if that is the server's start.
    pub before: BTreeMap<String, f64>,
    /// Statistics at the second moment.
    pub after: BTreeMap<String, f64>,
    /// What ran between the moments.
    pub operations: BTreeMap<String, Operation>,
    /// The configuration.
    pub settings: BTreeMap<String, Setting>,
    /// Databases, those used most first.
    pub databases: Vec<DatabaseUse>,
    /// Of the databases that were written to most, those that are not logged.
    pub unlogged: Vec<String>,
    /// Volumes, the first store first.
    pub volumes: Vec<VolumeUse>,
    /// Warnings and errors of the last day; none where no log database is kept.
    pub events: Option<Vec<Event>>,
    /// Tasks that ended in the last thirty days, the oldest first, as far as they are known.
    pub runs: Vec<TaskRun>,
}

/// Why there is no observation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObservationError {
    /// The server does not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// What was counted before is gone.
    #[error("the server was restarted meanwhile; run this again")]
    StartedAgain,
}

impl Observation {
    /// What happened from `first` (none: the server's start) to `last`; asks for what else is needed. `waited_s` is the
    /// time between the two, and `now_s` the present one in seconds since 1970.
    ///
    /// # Errors
    /// [`ObservationError`].
    pub fn between(
        first: Option<Moment>,
        last: Moment,
        (waited_s, now_s): (f64, f64),
        source: &mut dyn Source,
    ) -> Result<Self, ObservationError> {
        let elapsed =
            |moment: &Moment| moment.statistics.get("Server.ElapsedTime").copied().unwrap_or_default();
        if first.as_ref().is_some_and(|first| elapsed(first) > elapsed(&last)) {
            return Err(ObservationError::StartedAgain);
        }
        let is_since_start = first.is_none();
        let seconds = if is_since_start { elapsed(&last).max(1.0) } else { waited_s };
        let first = first.unwrap_or_default();
        let settings = source.ask("show configuration")?;
        let volumes = source.ask("show volumes")?;
        let runs = match may_refuse(source, &format!("show log tasks 30d -n {LOG_COUNT}"))? {
            Ok(told) => items(&told, "documents").map(logged_run).collect(),
            Err(_) => items(&source.ask("show tasks")?, "ended").map(listed_run).collect(),
        };
        let events = may_refuse(source, &format!("show log 1d -l warn -n {LOG_COUNT}"))?;
        let databases = used_between(&first.databases, last.databases);
        Ok(Self {
            seconds,
            is_since_start,
            now_s,
            operations: ran_between(&first.operations, &last.operations),
            before: first.statistics,
            after: last.statistics,
            settings: settings_of(&settings),
            unlogged: unlogged(&databases, source)?,
            databases,
            volumes: items(&volumes, "volumes").map(volume).collect(),
            events: events.ok().map(|told| items(&told, "documents").map(event).collect()),
            runs,
        })
    }

    /// A statistic at the second moment.
    pub(crate) fn now(&self, name: &str) -> Result<f64, Unjudged> {
        self.after.get(name).copied().ok_or_else(|| Unjudged::NotTold(name.to_owned()))
    }

    /// What a statistic grew by.
    pub(crate) fn grew(&self, name: &str) -> Result<f64, Unjudged> {
        Ok((self.now(name)? - self.before.get(name).copied().unwrap_or_default()).max(0.0))
    }

    /// The part of the time (0 to 1) that a statistic in milliseconds grew by.
    pub(crate) fn part_of_time(&self, name: &str) -> Result<f64, Unjudged> {
        Ok(self.grew(name)? / 1000.0 / self.seconds.max(1e-3))
    }

    /// What ran of an operation.
    pub(crate) fn operation(&self, name: &str) -> Operation {
        self.operations.get(name).copied().unwrap_or_default()
    }

    /// All requests.
    pub(crate) fn requests(&self) -> Operation {
        let requests = self.operations.iter().filter(|(name, _)| !NO_REQUESTS.contains(&name.as_str()));
        requests.fold(Operation::default(), |sum, (_, ran)| Operation {
            count: sum.count + ran.count,
            total_ms: sum.total_ms + ran.total_ms,
        })
    }

    /// The part of all requests' time (0 to 1) that this many milliseconds are.
    pub(crate) fn part_of_requests(&self, milliseconds: f64) -> f64 {
        let total_ms = self.requests().total_ms;
        if total_ms > 0.0 { (milliseconds / total_ms).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The part of the processors (0 to 1) that the server had.
    pub(crate) fn processors_busy(&self) -> Result<f64, Unjudged> {
        self.part_of_processors("Platform.Process.CPU.Seconds")
    }

    /// The part of the processors (0 to 1) that all programs of the machine had together.
    pub(crate) fn machine_busy(&self) -> Result<f64, Unjudged> {
        self.part_of_processors("Platform.System.CPU.Seconds")
    }

    fn part_of_processors(&self, statistic: &str) -> Result<f64, Unjudged> {
        let processors = self.now("Platform.System.Processors")?.max(1.0);
        Ok(self.grew(statistic)? / self.seconds.max(1e-3) / processors)
    }

    /// A setting.
    pub(crate) fn setting(&self, key: &str) -> Result<&Value, Unjudged> {
        self.settings.get(key).map(|setting| &setting.value).ok_or_else(|| Unjudged::NotTold(key.to_owned()))
    }

    /// A setting that is a text.
    pub(crate) fn text(&self, key: &str) -> Result<&str, Unjudged> {
        self.setting(key)?.as_str().ok_or_else(|| Unjudged::NotTold(key.to_owned()))
    }

    /// A setting that is a number, a size in bytes or a time in seconds.
    pub(crate) fn number(&self, key: &str) -> Result<f64, Unjudged> {
        self.setting(key)?.as_f64().ok_or_else(|| Unjudged::NotTold(key.to_owned()))
    }

    /// A setting that is true or false.
    pub(crate) fn flag(&self, key: &str) -> Result<bool, Unjudged> {
        self.setting(key)?.as_bool().ok_or_else(|| Unjudged::NotTold(key.to_owned()))
    }

    /// The log's style: `circular`, `archive` or `off`, as it is now and not as it will be after a start.
    pub(crate) fn log_style(&self) -> Result<&'static str, Unjudged> {
        Ok(match self.now("Database.RM.Sys.Log.Type")? {
            kind if kind >= 2.0 => "archive",
            kind if kind >= 1.0 => "circular",
            _ => "off",
        })
    }

    /// Tasks that ended in the last day.
    pub(crate) fn runs_of_the_day(&self) -> impl Iterator<Item = &TaskRun> {
        let since_s = self.now_s - DAY_S;
        self.runs.iter().filter(move |run| run.ended_s >= since_s)
    }
}

/// Whether enough happened.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are no less than 0")]
pub(crate) fn enough(seen: f64, needed: f64, what: &'static str) -> Result<(), Unjudged> {
    if seen >= needed {
        return Ok(());
    }
    Err(Unjudged::TooFew { what, seen: seen.max(0.0) as u64, needed: needed as u64 })
}

/// The answer, or what the server says instead.
fn may_refuse(source: &mut dyn Source, command: &str) -> Result<Result<Value, String>, AskError> {
    match source.ask(command) {
        Ok(told) => Ok(Ok(told)),
        Err(AskError::Refused(reason)) => Ok(Err(reason)),
        Err(failed) => Err(failed),
    }
}

fn ran_between(
    first: &BTreeMap<String, Operation>,
    last: &BTreeMap<String, Operation>,
) -> BTreeMap<String, Operation> {
    let ran = last.iter().map(|(name, last)| {
        let first = first.get(name).copied().unwrap_or_default();
        let count = (last.count - first.count).max(0.0);
        (name.clone(), Operation { count, total_ms: (last.total_ms - first.total_ms).max(0.0) })
    });
    ran.filter(|(_, ran)| ran.count > 0.0).collect()
}

fn used_between(first: &[DatabaseUse], last: Vec<DatabaseUse>) -> Vec<DatabaseUse> {
    let first: BTreeMap<&str, &DatabaseUse> =
        first.iter().map(|database| (database.name.as_str(), database)).collect();
    let used = last.into_iter().map(|last| {
        let Some(first) = first.get(last.name.as_str()) else { return last };
        // One that was dropped and made again, or moved, counts again.
        let grew = |last: f64, first: f64| if last >= first { last - first } else { last };
        DatabaseUse {
            blocks_from_files: grew(last.blocks_from_files, first.blocks_from_files),
            writes: grew(last.writes, first.writes),
            written_bytes: grew(last.written_bytes, first.written_bytes),
            ..last
        }
    });
    used.collect()
}

fn settings_of(told: &Value) -> BTreeMap<String, Setting> {
    let settings = told.as_object().into_iter().flatten();
    let setting = |(name, told): (&String, &Value)| {
        let value = told.get("value").cloned().unwrap_or_default();
        (name.clone(), Setting { value, source: text(told, "source") })
    };
    settings.map(setting).collect()
}

/// Asks the databases that were written to most.
fn unlogged(databases: &[DatabaseUse], source: &mut dyn Source) -> Result<Vec<String>, AskError> {
    let mut written: Vec<&DatabaseUse> = databases.iter().filter(|database| database.writes > 0.0).collect();
    written.sort_by(|left, right| right.writes.total_cmp(&left.writes));
    let mut unlogged = Vec::new();
    for database in written.into_iter().take(PROPERTIES_OF) {
        // It may have gone meanwhile.
        let Ok(told) = may_refuse(source, &format!("show database {}", database.name))? else { continue };
        if told.pointer("/properties/logged") == Some(&Value::Bool(false)) {
            unlogged.push(database.name.clone());
        }
    }
    Ok(unlogged)
}

fn volume(told: &Value) -> VolumeUse {
    VolumeUse {
        name: text(told, "name"),
        free_bytes: number(told, "free_bytes"),
        missing: told.get("missing").and_then(Value::as_str).map(str::to_owned),
    }
}

fn event(told: &Value) -> Event {
    Event { level: text(told, "Level"), text: text(told, "Text") }
}

fn logged_run(told: &Value) -> TaskRun {
    let ended: Option<jiff::Timestamp> = text(told, "Time").parse().ok();
    TaskRun {
        kind: text(told, "Task"),
        database: text(told, "Database"),
        outcome: text(told, "Outcome"),
        reason: text(told, "Reason"),
        ended_s: ended.map_or(0.0, |ended| ended.as_duration().as_secs_f64()),
    }
}

fn listed_run(told: &Value) -> TaskRun {
    TaskRun {
        kind: text(told, "kind"),
        database: text(told, "database"),
        outcome: text(told, "state"),
        reason: text(told, "reason"),
        ended_s: number(told, "updated_on"),
    }
}
