//! The configuration of a running server, changed by `set config`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use toml_edit::DocumentMut;

use super::key::{Change, Key};
use super::load::{Configuration, Effective};
use super::problem::{Source, unknown_key};
use super::table::{Settings, key, keys};
use super::value::Value;
use super::volume::{full_name, volume_key};

type Hook = Arc<dyn Fn(&Settings) -> Result<(), String> + Send + Sync>;

/// The configuration of a running server. Clones share it.
#[derive(Clone)]
pub struct RunningConfiguration {
    shared: Arc<SharedConfig>,
}

struct SharedConfig {
    current: RwLock<Current>,
    hooks: RwLock<BTreeMap<&'static str, Hook>>,
    /// Held while one key is set, so that two changes do not lose one another.
    setting: Mutex<()>,
}

struct Current {
    configuration: Configuration,
    settings: Arc<Settings>,
}

/// What `set config` did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The key.
    pub key: String,
    /// The value before.
    pub old: Value,
    /// The value now.
    pub new: Value,
    /// Whether the new value is used already, or from the next start on.
    pub change: Change,
    /// Where the new value was kept.
    pub kept: Kept,
}

/// Where a value that was set is kept for the next start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// In this configuration file.
    File(PathBuf),
    /// In this configuration file, but the source named wins at the next start.
    Overridden(PathBuf, Source),
    /// Nowhere: the server runs without a configuration file.
    Nowhere,
    /// Nowhere: the file could not be written, for this reason.
    Failed(PathBuf, String),
}

/// Why `set config` did nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// No key of this name.
    #[error("{0}")]
    UnknownKey(String),
    /// The value is not one of the key's.
    #[error("{key}: {what}")]
    Invalid {
        /// The key.
        key: String,
        /// What is wrong.
        what: String,
    },
    /// The part of the server that uses the value could not take it.
    #[error("{key} stays as it is: {what}")]
    Refused {
        /// The key.
        key: String,
        /// Why.
        what: String,
    },
    /// The key says what the process may do on its machine, which the console does not change.
    #[error(
        "{key} is set in the configuration file alone: write `{line}` under [{section}] in {file}, and start the server again"
    )]
    FileOnly {
        /// The key.
        key: String,
        /// The part of the file that it stands in.
        section: String,
        /// What to write there.
        line: String,
        /// The file.
        file: String,
    },
    /// A new value is used from the next start on, and there is no file to keep it in.
    #[error(
        "{key} changes at the next start, and the server runs without a configuration file to keep it in; \
         start it with --config FILE"
    )]
    NotKept {
        /// The key.
        key: String,
    },
}

impl RunningConfiguration {
    /// Begins with the configuration that the server starts with.
    #[must_use]
    pub fn new(configuration: Configuration) -> Self {
        let settings = Arc::new(configuration.settings());
        let shared = SharedConfig {
            current: RwLock::new(Current { configuration, settings }),
            hooks: RwLock::default(),
            setting: Mutex::new(()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The settings as they are now. Hold them for one piece of work, not for ever.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.shared.current.read().settings.clone()
    }

    /// The effective values as they are now, with their sources.
    #[must_use]
    pub fn configuration(&self) -> Configuration {
        self.shared.current.read().configuration.clone()
    }

    /// Says what to do when the key called `name` is set. `apply` gets all settings with the new value
    /// among them; what it answers with an error is not set. A key that is to change while running and that
    /// no part says anything of cannot be set, so a part that reads [`RunningConfiguration::settings`] each
    /// time registers a hook that does nothing.
    pub fn on_change(
        &self,
        name: &'static str,
        apply: impl Fn(&Settings) -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.shared.hooks.write().insert(name, Arc::new(apply));
    }

    /// Sets a key, by its own name or Domino's, and keeps the value in the configuration file.
    ///
    /// # Errors
    /// [`SetError`]; nothing was changed then.
    pub fn set(&self, name: &str, text: &str) -> Result<Changed, SetError> {
        let (full, key) = named(name).ok_or_else(|| SetError::UnknownKey(unknown_key(name)))?;
        let invalid = |what| SetError::Invalid { key: full.clone(), what };
        let new = key.kind.parse_text(text).map_err(invalid)?;

        let _alone = self.shared.setting.lock();
        let before = self.configuration();
        let Some(old) = before.get(&full).cloned() else {
            return Err(SetError::UnknownKey(match volume_key(&full) {
                Some((volume, _)) => format!(
                    "there is no volume {volume}; write it into the configuration file under [volume.{volume}], and \
                     start the server again"
                ),
                None => unknown_key(name),
            }));
        };
        let now = Effective { value: new.clone(), source: Source::Console };
        let changed = before.with(&full, now).map_err(invalid)?;
        if key.change == Change::File {
            return Err(file_only(full, &new, before.file()));
        }
        if key.change == Change::Restart && before.file().is_none() {
            return Err(SetError::NotKept { key: full });
        }
        if key.change == Change::Running {
            let settings = changed.settings();
            let hook = self.shared.hooks.read().get(key.name).cloned();
            let refused = |what| SetError::Refused { key: full.clone(), what };
            let hook =
                hook.ok_or_else(|| refused("no part of this server uses it while running".to_owned()))?;
            hook(&settings).map_err(refused)?;
            let current = Current { settings: Arc::new(settings), configuration: changed };
            *self.shared.current.write() = current;
        }
        let kept = before.file().map_or(Kept::Nowhere, |file| keep(file, &full, &new, &old.source));
        Ok(Changed { key: full, old: old.value, new, change: key.change, kept })
    }
}

/// Says what to write into the file in place of setting a key on the console.
fn file_only(key: String, value: &Value, file: Option<&Path>) -> SetError {
    let (section, short_name) = key.rsplit_once('.').unwrap_or(("", &key));
    let (section, line) =
        (section.to_owned(), format!("{short_name} = {}", value.to_toml().to_string().trim()));
    let file = file.map_or_else(
        || "a configuration file, which --config names".to_owned(),
        |file| file.display().to_string(),
    );
    SetError::FileOnly { key, section, line, file }
}

/// The name in full, and the key, of this name, or of one that Domino calls so.
pub(crate) fn named(name: &str) -> Option<(String, &'static Key)> {
    let of_domino = |key: &&Key| key.domino.is_some_and(|domino| domino.eq_ignore_ascii_case(name));
    let lower = name.to_lowercase();
    let found = key(&lower).or_else(|| keys().find(of_domino));
    match found {
        Some(key) => Some((key.name.to_owned(), key)),
        None => volume_key(&lower).map(|(volume, key)| (full_name(volume, key), key)),
    }
}

fn keep(file: &Path, name: &str, value: &Value, old_source: &Source) -> Kept {
    match write_into(file, name, value) {
        Err(reason) => Kept::Failed(file.to_owned(), reason),
        Ok(()) => match old_source {
            Source::Environment { .. } | Source::CommandLine { .. } => {
                Kept::Overridden(file.to_owned(), old_source.clone())
            }
            _ => Kept::File(file.to_owned()),
        },
    }
}

/// Changes one line of the file and leaves its comments and the rest as they are.
fn write_into(file: &Path, name: &str, value: &Value) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let mut document: DocumentMut = text.parse().map_err(|error| format!("{error}"))?;
    let (section, short_name) = name.rsplit_once('.').unwrap_or(("", name));
    let mut table: &mut dyn toml_edit::TableLike = document.as_table_mut();
    for part in section.split('.') {
        let item = table.entry(part).or_insert_with(toml_edit::table);
        table = item.as_table_like_mut().ok_or_else(|| format!("{part} is not a section there"))?;
    }
    match table.get_mut(short_name).and_then(toml_edit::Item::as_value_mut) {
        Some(present) => {
            let decor = present.decor().clone();
            *present = value.to_toml();
            *present.decor_mut() = decor;
        }
        None => drop(table.insert(short_name, toml_edit::value(value.to_toml()))),
    }
    crate::files::replace(file, document.to_string().as_bytes()).map_err(|error| error.to_string())
}
