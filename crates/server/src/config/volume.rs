//! The table of the keys that every volume has, and their names: `volume.NAME.KEY`, under `[volume.NAME]` in the file.

use scrinium_catalog::FIRST_VOLUME;

use super::key::{Change, Key, Section, Setting, configuration, domino_name, type_of};
use super::value::{Kind, Value};
use super::{checks, units};

const MB: u64 = 1024 * 1024;

/// What names of volumes stand for in texts.
pub(super) const ANY: &str = "NAME";

configuration! {
    /// A volume: a further store for databases, with a transaction log of its own, best on another device. There may be
    /// several, each with a name of its own in place of `NAME`, of lower-case letters, digits, `-` and `_`; the store in
    /// the data folder is called `main`. A volume is added at a start. docs/operate/volumes.md tells more.
    volume as VolumeSettings {
        /// The folder of the volume, which begins in the data folder if it is relative. Once the volume has been used, it
        /// is not recreated where it is missing: its device may not be mounted.
        dir: Text { form: "a path", check: checks::anything } = "", File;
        /// Its share of `memory.budget`, in percent. What the volumes leave is the first store's.
        memory_percent: Integer { min: 1, max: 80 } = "10", Running;
        /// What a long scan of this volume reads ahead. 0: as `io.read_ahead` says.
        read_ahead: Bytes { min: 0, max: 16 * MB } = "0", Running;
        /// Whether its files are read through the system's cache (`system`) or past it (`direct`).
        file_cache: Choice { options: &["system", "direct"] } = "system", Restart;
        /// The folder of its transaction log; on a device of its own, writing the log does not wait for anything else.
        /// Empty: `log` within the volume's folder.
        log_dir: Text { form: "a path, or empty", check: checks::anything } = "", File;
        /// Which new databases are placed here: names, or beginnings of names such as `mail/*`; `*` are all. The longest
        /// that fits counts. Databases that are there stay where they are; `load move` moves one.
        databases: TextList { form: "the name of a database, or a beginning such as mail/*", check: checks::anything } = "",
            Running;
    }
}

/// What a volume's keys are for.
#[must_use]
pub fn volume_section() -> &'static Section {
    const EMPTY: &Section = &Section { name: "volume", keys: &[], help_lines: "" };
    SECTIONS.first().unwrap_or(EMPTY)
}

/// Whether there may be a volume of this name.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let legal =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_".contains(letter);
    if name.is_empty() || name.len() > 32 || !name.chars().all(legal) {
        return Err(format!(
            "{name:?} is no name of a volume: it takes up to 32 lower-case letters, digits, - and _"
        ));
    }
    if name == FIRST_VOLUME {
        return Err(format!(
            "the store in the data folder is called {FIRST_VOLUME}; name the volume otherwise"
        ));
    }
    Ok(())
}

/// The volume's name and the key in a name such as `volume.fast.dir`.
#[must_use]
pub fn volume_key(name: &str) -> Option<(&str, &'static Key)> {
    let (volume, short) = name.strip_prefix("volume.")?.rsplit_once('.')?;
    let key = volume_section().keys.iter().find(|key| key.short_name() == short)?;
    Some((volume, key))
}

/// The name of a volume's key.
pub(super) fn full_name(volume: &str, key: &Key) -> String {
    format!("volume.{volume}.{}", key.short_name())
}

impl VolumeSettings {
    pub(super) fn collect(mut value: impl FnMut(&Key) -> Option<Value>) -> Self {
        let keys = volume_section().keys;
        let found = Settings::collect(|name| keys.iter().find(|key| key.name == name).and_then(&mut value));
        found.volume
    }

    /// How well a database's name fits those that are placed here: the length of what fits.
    #[must_use]
    pub fn takes(&self, database: &str) -> Option<usize> {
        let fits = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => database.starts_with(beginning).then_some(beginning.len()),
            None => (database == pattern).then_some(usize::MAX),
        };
        self.databases.iter().filter_map(fits).max()
    }

    /// What is read ahead, where all other scans have `common_bytes`.
    #[must_use]
    pub fn read_ahead_bytes(&self, common_bytes: u64) -> u64 {
        if self.read_ahead > 0 { self.read_ahead } else { common_bytes }
    }

    /// What the volume has of a memory budget.
    #[must_use]
    pub fn budget_bytes(&self, all_bytes: u64) -> u64 {
        units::Share::Percent(self.memory_percent as u64).of(all_bytes)
    }
}
