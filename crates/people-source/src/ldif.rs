//! LDIF (RFC 2849): entries and changes of entries as text.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use scrinium_ldap_wire::{Attribute, DistinguishedName, Entry, ModifyAction, NormalName};
use thiserror::Error;

use crate::encoding::decode;

/// Limits of an LDIF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LdifLimits {
    /// The whole file, in bytes.
    pub bytes: usize,
    /// Entries and changes.
    pub records: usize,
    /// Lines of one of them, which are about its values.
    pub lines: usize,
    /// One value, in bytes as it stands in the file.
    pub value_bytes: usize,
}

impl Default for LdifLimits {
    fn default() -> Self {
        Self { bytes: 1 << 30, records: 1_000_000, lines: 500_000, value_bytes: 16 << 20 }
    }
}

/// Why a file is no LDIF, with the line, from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {fault}")]
pub struct LdifError {
    /// The line.
    pub line: u64,
    /// What is wrong there.
    pub fault: LdifFault,
}

/// What is wrong with an LDIF file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LdifFault {
    /// It is too large.
    #[error("the file has more than {0} bytes; split it")]
    TooLarge(usize),
    /// Too many records.
    #[error("the file has more than {0} entries; split it")]
    TooManyRecords(usize),
    /// Too many lines of one record.
    #[error("an entry has more than {0} lines")]
    TooManyLines(usize),
    /// A value is too long.
    #[error("a value has more than {0} bytes")]
    ValueTooLong(usize),
    /// Another version than 1.
    #[error("LDIF has the version 1 alone")]
    Version,
    /// A line that begins with a space follows none.
    #[error("a line that begins with a space goes on with the one before, and there is none")]
    Fold,
    /// A line is not `name: value`.
    #[error("a line is a name, a colon, and a value")]
    Line,
    /// A record does not begin with `dn`.
    #[error("an entry begins with \"dn:\"")]
    Name,
    /// A name is not valid.
    #[error("{0:?} is not the name of an entry")]
    DistinguishedName(String),
    /// Base64 that is not valid.
    #[error("behind \"::\" stands base64, and this is not")]
    Base64,
    /// A value that has to be text.
    #[error("this value has to be text in UTF-8")]
    Text,
    /// A value elsewhere.
    #[error("values that stand in other files or at other servers (\":<\") are not read")]
    Url,
    /// A kind of change that does not exist.
    #[error("{0:?} is no kind of change; there are add, delete, modify, modrdn and moddn")]
    ChangeType(String),
    /// A change that is not of its form.
    #[error("a change of the kind {0} has another form")]
    Change(&'static str),
    /// A control that has to be understood.
    #[error("the control {0:?} has to be understood, and none is")]
    Control(String),
    /// A change of an entry that is not in the file before it.
    #[error("{0:?} is changed here, and no entry before has this name")]
    NoEntry(String),
    /// An entry that is there already.
    #[error("{0:?} is in the file already")]
    Exists(String),
}

/// An entry, or a change of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LdifRecord {
    /// Its first line, from 1.
    pub line: u64,
    /// The name of the entry.
    pub name: String,
    /// What stands there of it.
    pub content: LdifContent,
}

/// What a record says of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LdifContent {
    /// It has these attributes; also in the form of a change (`changetype: add`).
    Entry(Vec<Attribute>),
    /// It goes.
    Delete,
    /// Attributes change, in this order.
    Modify(Vec<(ModifyAction, Attribute)>),
    /// It gets another name.
    Rename {
        /// Its own part of the name.
        new_rdn: String,
        /// Whether the values of the old name go.
        delete_old_rdn: bool,
        /// The entry that it will stand under, if it moves.
        new_superior: Option<String>,
    },
}

/// Reads a file's records.
///
/// # Errors
/// [`LdifError`]
pub fn read_ldif(bytes: &[u8], limits: LdifLimits) -> Result<Vec<LdifRecord>, LdifError> {
    if bytes.len() > limits.bytes {
        return Err(LdifError { line: 1, fault: LdifFault::TooLarge(limits.bytes) });
    }
    let text = decode(bytes);
    let mut records = Vec::new();
    let mut lines = Lines { rest: text.lines(), number: 0, ahead: None, limits };
    let mut is_first = true;
    while let Some(block) = lines.block()? {
        let mut block = Block { lines: block, at: 0 };
        if is_first && !block.is_empty() {
            is_first = false;
            block.skip_version()?;
        }
        if block.is_empty() {
            continue;
        }
        let record = block.record()?;
        if records.len() >= limits.records {
            return Err(LdifError { line: record.line, fault: LdifFault::TooManyRecords(limits.records) });
        }
        records.push(record);
    }
    Ok(records)
}

/// A line put together from its folds.
#[derive(Debug)]
struct Line {
    number: u64,
    text: String,
}

impl Line {
    fn error(&self, fault: LdifFault) -> LdifError {
        LdifError { line: self.number, fault }
    }

    /// The name and the value, which is decoded.
    fn parts(&self) -> Result<(&str, Vec<u8>), LdifError> {
        let (name, value) = self.text.split_once(':').ok_or_else(|| self.error(LdifFault::Line))?;
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(self.error(LdifFault::Line));
        }
        let value = match value.as_bytes().first() {
            Some(b':') => {
                let digits = value.get(1..).unwrap_or_default().trim_matches(' ');
                STANDARD.decode(digits).map_err(|_| self.error(LdifFault::Base64))?
            }
            Some(b'<') => return Err(self.error(LdifFault::Url)),
            _ => value.trim_start_matches(' ').as_bytes().to_vec(),
        };
        Ok((name, value))
    }

    fn text_parts(&self) -> Result<(&str, String), LdifError> {
        let (name, value) = self.parts()?;
        String::from_utf8(value).map(|value| (name, value)).map_err(|_| self.error(LdifFault::Text))
    }
}

/// Lines of a file, in blocks with empty lines between.
struct Lines<'a> {
    rest: std::str::Lines<'a>,
    number: u64,
    ahead: Option<&'a str>,
    limits: LdifLimits,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let line = self.ahead.take().or_else(|| self.rest.next())?;
        self.number += 1;
        Some(line)
    }

    fn peek(&mut self) -> Option<&'a str> {
        if self.ahead.is_none() {
            self.ahead = self.rest.next();
        }
        self.ahead
    }

    fn next_if(&mut self, takes: impl FnOnce(&str) -> bool) -> Option<&'a str> {
        if takes(self.peek()?) { self.next() } else { None }
    }

    /// The next block without its comments, of which it may have nothing else; `None` at the end.
    fn block(&mut self) -> Result<Option<Vec<Line>>, LdifError> {
        while self.next_if(str::is_empty).is_some() {}
        if self.peek().is_none() {
            return Ok(None);
        }
        let mut block = Vec::new();
        while let Some(line) = self.next_if(|line| !line.is_empty()) {
            let number = self.number;
            let error = |fault| LdifError { line: number, fault };
            if line.starts_with(' ') {
                return Err(error(LdifFault::Fold));
            }
            let mut text = line.to_owned();
            while let Some(fold) = self.next_if(|line| line.starts_with(' ')) {
                text.push_str(fold.get(1..).unwrap_or_default());
            }
            if text.len() > self.limits.value_bytes {
                return Err(error(LdifFault::ValueTooLong(self.limits.value_bytes)));
            }
            if text.starts_with('#') {
                continue;
            }
            if block.len() >= self.limits.lines {
                return Err(error(LdifFault::TooManyLines(self.limits.lines)));
            }
            block.push(Line { number, text });
        }
        Ok(Some(block))
    }
}

/// The lines of one record.
struct Block {
    lines: Vec<Line>,
    at: usize,
}

impl Block {
    fn is_empty(&self) -> bool {
        self.at >= self.lines.len()
    }

    fn next(&mut self) -> Option<&Line> {
        self.at += 1;
        self.lines.get(self.at - 1)
    }

    fn peek(&self) -> Option<&Line> {
        self.lines.get(self.at)
    }

    fn skip_version(&mut self) -> Result<(), LdifError> {
        let Some(line) = self.peek() else { return Ok(()) };
        let (name, value) = line.parts()?;
        if name.eq_ignore_ascii_case("version") {
            if value != b"1" {
                return Err(line.error(LdifFault::Version));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn record(&mut self) -> Result<LdifRecord, LdifError> {
        const NO_LINE: LdifError = LdifError { line: 0, fault: LdifFault::Name };
        let line = self.next().ok_or(NO_LINE)?;
        let number = line.number;
        let (name, value) = line.text_parts()?;
        if !name.eq_ignore_ascii_case("dn") {
            return Err(line.error(LdifFault::Name));
        }
        if DistinguishedName::parse(&value).is_err() {
            return Err(line.error(LdifFault::DistinguishedName(crate::record::quoted(&value))));
        }
        self.skip_controls()?;
        let kind = match self.peek() {
            Some(line) => {
                let (name, value) = line.parts()?;
                name.eq_ignore_ascii_case("changetype").then(|| String::from_utf8_lossy(&value).into_owned())
            }
            None => None,
        };
        let content = match kind {
            None => LdifContent::Entry(self.attributes()?),
            Some(kind) => {
                self.at += 1;
                self.change(&kind, number)?
            }
        };
        Ok(LdifRecord { line: number, name: value, content })
    }

    fn skip_controls(&mut self) -> Result<(), LdifError> {
        while let Some(line) = self.peek() {
            let (name, value) = line.parts()?;
            if !name.eq_ignore_ascii_case("control") {
                break;
            }
            let value = String::from_utf8_lossy(&value).into_owned();
            let mut words = value.split([' ', ':']);
            let oid = words.next().unwrap_or_default();
            if words.next() == Some("true") {
                return Err(line.error(LdifFault::Control(crate::record::quoted(oid))));
            }
            self.at += 1;
        }
        Ok(())
    }

    /// All lines that are left, each a value, those of one attribute together.
    fn attributes(&mut self) -> Result<Vec<Attribute>, LdifError> {
        let mut attributes: Vec<Attribute> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        while let Some(line) = self.next() {
            let (name, value) = line.parts()?;
            let place = *places.entry(name.to_ascii_lowercase()).or_insert(attributes.len());
            match attributes.get_mut(place) {
                Some(attribute) => attribute.values.push(value),
                None => attributes.push(Attribute { name: name.to_owned(), values: vec![value] }),
            }
        }
        Ok(attributes)
    }

    fn change(&mut self, kind: &str, number: u64) -> Result<LdifContent, LdifError> {
        match kind.to_ascii_lowercase().as_str() {
            "add" => Ok(LdifContent::Entry(self.attributes()?)),
            "delete" => match self.peek() {
                None => Ok(LdifContent::Delete),
                Some(line) => Err(line.error(LdifFault::Change("delete"))),
            },
            "modify" => self.modify(),
            "modrdn" | "moddn" => self.rename(number),
            _ => Err(LdifError { line: number, fault: LdifFault::ChangeType(crate::record::quoted(kind)) }),
        }
    }

    fn modify(&mut self) -> Result<LdifContent, LdifError> {
        const FORM: LdifFault = LdifFault::Change("modify");
        let mut changes = Vec::new();
        while let Some(line) = self.next() {
            let (word, value) = line.text_parts()?;
            let action = match word.to_ascii_lowercase().as_str() {
                "add" => ModifyAction::Add,
                "delete" => ModifyAction::Delete,
                "replace" => ModifyAction::Replace,
                "increment" => ModifyAction::Increment,
                _ => return Err(line.error(FORM)),
            };
            let mut attribute = Attribute { name: value, values: Vec::new() };
            // The "-" behind the last one is left out by many.
            while let Some(line) = self.next() {
                if line.text == "-" {
                    break;
                }
                let (name, value) = line.parts()?;
                if !name.eq_ignore_ascii_case(&attribute.name) {
                    return Err(line.error(FORM));
                }
                attribute.values.push(value);
            }
            changes.push((action, attribute));
        }
        Ok(LdifContent::Modify(changes))
    }

    fn rename(&mut self, number: u64) -> Result<LdifContent, LdifError> {
        const FORM: LdifFault = LdifFault::Change("modrdn");
        let (mut new_rdn, mut delete_old_rdn, mut new_superior) = (None, None, None);
        while let Some(line) = self.next() {
            let (name, value) = line.text_parts()?;
            match (name.to_ascii_lowercase().as_str(), value.as_str()) {
                ("newrdn", _) => new_rdn = Some(value),
                ("deleteoldrdn", "0") => delete_old_rdn = Some(false),
                ("deleteoldrdn", "1") => delete_old_rdn = Some(true),
                ("newsuperior", _) => new_superior = Some(value),
                _ => return Err(line.error(FORM)),
            }
        }
        match (new_rdn, delete_old_rdn) {
            (Some(new_rdn), Some(delete_old_rdn)) => {
                Ok(LdifContent::Rename { new_rdn, delete_old_rdn, new_superior })
            }
            _ => Err(LdifError { line: number, fault: FORM }),
        }
    }
}

/// The entries that a file comes to: those in it, with its changes made in their order.
///
/// # Errors
/// [`LdifError`], also for a change of an entry that the file does not have.
pub fn entries_of(records: Vec<LdifRecord>) -> Result<Vec<Entry>, LdifError> {
    let mut entries: Vec<Option<Entry>> = Vec::new();
    let mut places: HashMap<NormalName, usize> = HashMap::new();
    for record in records {
        let LdifRecord { line, name, content } = record;
        let error = |fault| LdifError { line, fault };
        let named = |name: &str| {
            let parsed = DistinguishedName::parse(name);
            parsed.map_err(|_| error(LdifFault::DistinguishedName(crate::record::quoted(name))))
        };
        let full = named(&name)?;
        let normal = NormalName::of(&full);
        if let LdifContent::Entry(attributes) = content {
            if places.insert(normal, entries.len()).is_some() {
                return Err(error(LdifFault::Exists(crate::record::quoted(&name))));
            }
            entries.push(Some(Entry { name, attributes }));
            continue;
        }
        let place = places.get(&normal).copied();
        let entry = place.and_then(|place| entries.get_mut(place));
        let (Some(place), Some(slot)) = (place, entry) else {
            return Err(error(LdifFault::NoEntry(crate::record::quoted(&name))));
        };
        match content {
            LdifContent::Entry(_) => {}
            LdifContent::Delete => {
                *slot = None;
                places.remove(&normal);
            }
            LdifContent::Modify(changes) => {
                if let Some(entry) = slot {
                    changes.into_iter().for_each(|(action, attribute)| modify(entry, action, attribute));
                }
            }
            LdifContent::Rename { new_rdn, delete_old_rdn, new_superior } => {
                let above = match new_superior {
                    Some(above) => named(&above)?,
                    None => full.parent().unwrap_or_default(),
                };
                let own = named(&new_rdn)?;
                let parts = [own.parts.clone(), above.parts].concat();
                let renamed = DistinguishedName { parts };
                places.remove(&normal);
                if places.insert(NormalName::of(&renamed), place).is_some() {
                    return Err(error(LdifFault::Exists(crate::record::quoted(&renamed.to_string()))));
                }
                if let Some(entry) = slot {
                    rename(entry, &full, &own, delete_old_rdn);
                    entry.name = renamed.to_string();
                }
            }
        }
    }
    Ok(entries.into_iter().flatten().collect())
}

fn modify(entry: &mut Entry, action: ModifyAction, change: Attribute) {
    let place = entry.attributes.iter().position(|one| one.name.eq_ignore_ascii_case(&change.name));
    let existing = place.and_then(|place| entry.attributes.get_mut(place));
    match (action, existing) {
        (ModifyAction::Add, Some(attribute)) => {
            let known: std::collections::HashSet<Vec<u8>> = attribute.values.iter().cloned().collect();
            attribute.values.extend(change.values.into_iter().filter(|value| !known.contains(value)));
        }
        (ModifyAction::Replace, Some(attribute)) => attribute.values = change.values,
        (ModifyAction::Delete, Some(attribute)) => {
            let gone: std::collections::HashSet<Vec<u8>> = change.values.into_iter().collect();
            attribute.values.retain(|value| !gone.is_empty() && !gone.contains(value));
        }
        (ModifyAction::Add | ModifyAction::Replace, None) => entry.attributes.push(change),
        // A number of an entry that grows is nothing that people or groups are known by.
        (ModifyAction::Delete, None) | (ModifyAction::Increment, _) => {}
    }
    entry.attributes.retain(|attribute| !attribute.values.is_empty());
}

/// The values of an entry's name are values of its attributes.
fn rename(entry: &mut Entry, old: &DistinguishedName, new: &DistinguishedName, delete_old: bool) {
    let values_of = |name: &DistinguishedName| -> Vec<Attribute> {
        let values = name.parts.first().into_iter().flat_map(|part| part.values());
        values
            .map(|(attribute, value)| Attribute {
                name: attribute.as_str().to_owned(),
                values: vec![value.to_vec()],
            })
            .collect()
    };
    if delete_old {
        values_of(old).into_iter().for_each(|value| modify(entry, ModifyAction::Delete, value));
    }
    values_of(new).into_iter().for_each(|value| modify(entry, ModifyAction::Add, value));
}
