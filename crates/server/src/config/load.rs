//! Reading the configuration: defaults, then the file, then the environment, then the command line.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml_edit::{Document, Item, Key as TomlKey};

use super::key::Key;
use super::mail_domain::SET_BY_MAIL_DOMAIN;
use super::problem::{ConfigError, Problem, Source, in_file, line_of, unknown_key, unknown_section};
use super::table::{SECTIONS, Settings, key, keys};
use super::value::Value;
use super::volume::{VolumeSettings, check_name, full_name, volume_key, volume_section};

/// A configuration file larger than this is not one.
const FILE_LIMIT_BYTES: usize = 1024 * 1024;

const VARIABLE_PREFIX: &str = "SCRINIUM_";

/// What the configuration is read from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The configuration file; it must be there.
    pub file: Option<PathBuf>,
    /// The environment; variables that are not `SCRINIUM_SECTION__KEY` are left alone.
    pub environment: Vec<(String, String)>,
    /// Values from flags of the command line: flag, key, value.
    pub command_line: Vec<(&'static str, &'static str, String)>,
}

/// The effective value of every key, and where it comes from.
#[derive(Clone, Debug)]
pub struct Configuration {
    values: BTreeMap<String, Effective>,
    file: Option<PathBuf>,
}

/// One effective value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// The value.
    pub value: Value,
    /// Where it comes from.
    pub source: Source,
}

impl Configuration {
    /// Reads all sources; a later one wins. Everything that is wrong is reported at once.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`] if the file cannot be read, else [`ConfigError::Invalid`].
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let mut reader = Reader::default();
        reader.defaults();
        if let Some(path) = &sources.file {
            let unreadable = |cause| ConfigError::Unreadable { path: path.clone(), cause };
            reader.file(path, &std::fs::read_to_string(path).map_err(unreadable)?);
        }
        reader.environment(&sources.environment);
        for (flag, name, text) in &sources.command_line {
            let source = Source::CommandLine { flag: (*flag).to_owned() };
            match key(name) {
                Some(key) => reader.take(key.name, key.kind.parse_text(text), source),
                None => reader.problem(source, unknown_key(name)),
            }
        }
        reader.finish(sources.file.clone())
    }

    /// Reads the text of a configuration file alone, as if it stood in `path`.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] with everything that is wrong.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let mut reader = Reader::default();
        reader.defaults();
        reader.file(path, text);
        reader.finish(Some(path.to_owned()))
    }

    /// The values as the server uses them.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let value = |name: &str| self.get(name).map(|effective| effective.value.clone());
        let mut settings = Settings::collect(value);
        for volume in self.volumes() {
            let found = VolumeSettings::collect(|key| value(&full_name(&volume, key)));
            settings.volumes.insert(volume, found);
        }
        settings
    }

    /// The names of the volumes.
    #[must_use]
    pub fn volumes(&self) -> BTreeSet<String> {
        let of_volume = |name: &String| volume_key(name).map(|(volume, _)| volume.to_owned());
        self.values.keys().filter_map(of_volume).collect()
    }

    /// The name of each effective value with its key, in the order in which they are shown.
    pub fn all(&self) -> impl Iterator<Item = (String, &'static Key)> {
        let volumes = self
            .volumes()
            .into_iter()
            .flat_map(|volume| volume_section().keys.iter().map(move |key| (full_name(&volume, key), key)));
        keys().map(|key| (key.name.to_owned(), key)).chain(volumes)
    }

    /// The effective value of a key.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Effective> {
        self.values.get(name)
    }

    /// The configuration file, if one is used.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The same with another value for one key.
    ///
    /// # Errors
    /// Says which settings contradict each other then.
    pub(super) fn with(&self, key: &str, effective: Effective) -> Result<Self, String> {
        let mut changed = self.clone();
        changed.values.insert(key.to_owned(), effective);
        match changed.settings().contradictions().first() {
            None => Ok(changed),
            Some((name, what)) if name == key => Err(what.clone()),
            Some((name, what)) => Err(format!("{name} would not fit: {what}")),
        }
    }
}

#[derive(Default)]
struct Reader {
    values: BTreeMap<String, Effective>,
    problems: Vec<Problem>,
}

impl Reader {
    fn defaults(&mut self) {
        for key in keys() {
            self.take(key.name, key.default_value(), Source::Default);
        }
    }

    fn take(&mut self, name: &str, value: Result<Value, String>, source: Source) {
        match value {
            Ok(value) => drop(self.values.insert(name.to_owned(), Effective { value, source })),
            Err(what) => self.problem(source, format!("{name}: {what}")),
        }
    }

    /// The key of this name. A volume that is named for the first time gets the defaults of all its keys.
    fn key(&mut self, name: &str) -> Result<&'static Key, String> {
        if let Some(key) = key(name) {
            return Ok(key);
        }
        let (volume, key) = volume_key(name).ok_or_else(|| unknown_key(name))?;
        check_name(volume)?;
        if !self.values.contains_key(&full_name(volume, key)) {
            for key in volume_section().keys {
                self.take(&full_name(volume, key), key.default_value(), Source::Default);
            }
        }
        Ok(key)
    }

    fn problem(&mut self, source: Source, what: String) {
        self.problems.push(Problem { source, what });
    }

    fn file(&mut self, path: &Path, text: &str) {
        if text.len() > FILE_LIMIT_BYTES {
            return self.problem(in_file(path, 1), "the file is larger than 1 MB".to_owned());
        }
        let document = match Document::parse(text) {
            Ok(document) => document,
            Err(error) => {
                let line = line_of(text, error.span().unwrap_or_default().start);
                return self.problem(in_file(path, line), error.message().trim().replace('\n', ", "));
            }
        };
        let place = SourceText { path, text };
        for (name, item) in document.iter() {
            let source = place.source(document.key(name), item.span());
            if name == volume_section().name {
                self.volume_tables(&place, item, source);
                continue;
            }
            let Some(section) = SECTIONS.iter().find(|section| section.name == name) else {
                let what = if item.is_table_like() { unknown_section(name) } else { unknown_key(name) };
                self.problem(source, what);
                continue;
            };
            let Some(table) = item.as_table_like() else {
                self.problem(source, format!("{name} is a section: write its keys under [{name}]"));
                continue;
            };
            for (short_name, item) in table.iter() {
                let name = format!("{}.{short_name}", section.name);
                let source = place.source(table.key(short_name), item.span());
                self.item(&name, item, source);
            }
        }
    }

    /// `[volume.NAME]`, each with its keys.
    fn volume_tables(&mut self, place: &SourceText<'_>, item: &Item, source: Source) {
        let wanted = "volumes have names: write the keys of each under [volume.NAME]";
        let Some(volumes) = item.as_table_like() else { return self.problem(source, wanted.to_owned()) };
        for (volume, item) in volumes.iter() {
            let source = place.source(volumes.key(volume), item.span());
            let Some(table) = item.as_table_like() else {
                self.problem(source, wanted.to_owned());
                continue;
            };
            if table.is_empty() {
                self.problem(source.clone(), format!("volume.{volume}.dir: name the folder of the volume"));
            }
            for (short_name, item) in table.iter() {
                let source = place.source(table.key(short_name), item.span());
                self.item(&format!("volume.{volume}.{short_name}"), item, source);
            }
        }
    }

    fn item(&mut self, name: &str, item: &Item, source: Source) {
        let key = match self.key(name) {
            Ok(key) => key,
            Err(what) => return self.problem(source, what),
        };
        match item.as_value() {
            Some(value) => self.take(name, key.kind.parse_toml(value), source),
            None => self.problem(source, format!("{name} is no section: it takes {}", key.kind)),
        }
    }

    fn environment(&mut self, environment: &[(String, String)]) {
        for (variable, text) in environment {
            let Some(name) = variable.strip_prefix(VARIABLE_PREFIX) else { continue };
            // Variables without the double underscore are others', such as SCRINIUM_CONFIG.
            let Some((section, short_name)) = name.split_once("__") else { continue };
            let name = format!("{section}.{short_name}").to_lowercase().replace("__", ".");
            let source = Source::Environment { variable: variable.clone() };
            match self.key(&name) {
                Ok(key) => self.take(&name, key.kind.parse_text(text), source),
                Err(what) => self.problem(source, what),
            }
        }
    }

    /// What one key stands for, where nothing else is said.
    fn mail_domain(&mut self) {
        let name = "mail.domain";
        let Some(Effective { value: Value::Text(domain), source }) = self.values.get(name).cloned() else {
            return;
        };
        if domain.is_empty() {
            return;
        }
        for (set, text) in SET_BY_MAIL_DOMAIN {
            let is_said = self.values.get(set).is_none_or(|known| known.source != Source::Default);
            if let Some(key) = key(set).filter(|_| !is_said) {
                self.take(set, key.kind.parse_text(&text.replace("{}", &domain)), Source::Key { name });
            }
        }
        let is_named = match self.values.get("mail.domains").map(|known| &known.value) {
            Some(Value::TextList(domains)) => domains.iter().any(|known| known.eq_ignore_ascii_case(&domain)),
            _ => true,
        };
        if !is_named {
            self.problem(
                source,
                format!("{name}: name {domain} in mail.domains too, or leave mail.domains out"),
            );
        }
    }

    fn finish(mut self, file: Option<PathBuf>) -> Result<Configuration, ConfigError> {
        self.mail_domain();
        let configuration = Configuration { values: self.values, file };
        // Contradictions between settings are told once each setting is right by itself.
        if self.problems.is_empty() {
            for (name, what) in configuration.settings().contradictions() {
                let source = configuration.get(&name).map_or(Source::Default, |found| found.source.clone());
                self.problems.push(Problem { source, what: format!("{name}: {what}") });
            }
        }
        if self.problems.is_empty() { Ok(configuration) } else { Err(ConfigError::Invalid(self.problems)) }
    }
}

/// The text of a file, to find lines in.
struct SourceText<'a> {
    path: &'a Path,
    text: &'a str,
}

impl SourceText<'_> {
    fn source(&self, key: Option<&TomlKey>, item: Option<Range<usize>>) -> Source {
        let span = key.and_then(TomlKey::span).or(item).unwrap_or_default();
        in_file(self.path, line_of(self.text, span.start))
    }
}
