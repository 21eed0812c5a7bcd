//! Up to where a restore goes.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::{BackupError, Manifest};

/// Up to where a restore goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// What the backup holds.
    #[default]
    Backup,
    /// Up to and including this record of the log.
    Sequence(u64),
    /// Everything that was written up to this time, in milliseconds since 1970.
    Time(u64),
    /// Everything that was archived.
    Latest,
}

impl FromStr for Target {
    type Err = String;

    /// `latest`, a number, or a time: `2026-11-22T06:00:00Z`, `2026-11-22T07:00:00+01:00`; without a zone it is UTC.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "latest" {
            return Ok(Self::Latest);
        }
        if let Ok(sequence) = text.parse() {
            return Ok(Self::Sequence(sequence));
        }
        let time = text.parse::<Timestamp>().or_else(|_| {
            text.parse::<DateTime>()
                .and_then(|time| time.to_zoned(TimeZone::UTC))
                .map(|time| time.timestamp())
        });
        let time = time.map_err(|_| {
            format!(
                "{text:?} is neither a record's number nor a time such as 2026-11-22T06:00:00Z nor latest"
            )
        })?;
        u64::try_from(time.as_millisecond()).map(Self::Time).map_err(|_| format!("{text} is before 1970"))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Backup => formatter.write_str("the backup"),
            Self::Sequence(sequence) => write!(formatter, "record {sequence}"),
            Self::Time(time_ms) => formatter.write_str(&spoken(*time_ms)),
            Self::Latest => formatter.write_str("the end of the archive"),
        }
    }
}

impl Target {
    /// Whether a backup is one that can be brought forward to it.
    pub(crate) fn is_after(&self, manifest: &Manifest) -> bool {
        match self {
            Self::Backup | Self::Latest => true,
            Self::Sequence(sequence) => manifest.sequence <= *sequence,
            Self::Time(time_ms) => manifest.taken_ms <= *time_ms,
        }
    }
}

/// A time in milliseconds since 1970, for people.
pub(crate) fn spoken(time_ms: u64) -> String {
    let time = i64::try_from(time_ms).ok().and_then(|time| Timestamp::from_millisecond(time).ok());
    time.map_or_else(|| format!("{time_ms} ms"), |time| time.to_string())
}

/// The logs that go on after a backup, of the first store and of the volumes, each with the last record that it holds.
pub(crate) fn logs(manifest: &Manifest) -> Result<Vec<(u64, u64)>, BackupError> {
    let mut logs = vec![(log_key(manifest)?, manifest.sequence)];
    for volume in &manifest.volumes {
        logs.push((key_of(&volume.log_key, manifest)?, volume.sequence));
    }
    Ok(logs)
}

/// The log that continues after a backup.
pub(crate) fn log_key(manifest: &Manifest) -> Result<u64, BackupError> {
    key_of(&manifest.log_key, manifest)
}

/// A log's key as a manifest has it.
pub(crate) fn key_of(text: &str, manifest: &Manifest) -> Result<u64, BackupError> {
    u64::from_str_radix(text, 16).map_err(|_| BackupError::damaged(&manifest.id, "it names no log"))
}
