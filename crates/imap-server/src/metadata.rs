//! What clients note of mailboxes (RFC 5464). `/shared/` entries are the folder's: who may change the folder writes them, and who may read
//! it reads them. `/private/` entries are the person's, kept in their own mail database whatever mailbox they are of.

use std::collections::BTreeMap;

use scrinium_database::{DatabaseError, FolderInfo, Result};
use scrinium_directory::Person;
use scrinium_document::json::stored_value;
use scrinium_imap::{Answer, Refusal};
use scrinium_imap_wire::{MailboxName, ResponseCode, Value as Word};
use serde_json::{Map, Value, json};

use crate::mail_file::{MailFile, Place};
use crate::mailboxes::mailbox_id;
use crate::surroundings::Surroundings;

/// The local document with a person's private entries, by mailbox.
const PRIVATE: &str = "_local/mail-metadata";

/// The member of a folder's properties that has the shared ones.
const SHARED: &str = "metadata";

/// A value is no longer.
const VALUE_BYTES_MAX: usize = 8 << 10;

/// A mailbox has at most this number of shared entries, and of private ones of each person.
const ENTRIES_MAX: usize = 100;

/// What is kept of one mailbox, and of one person.
const SHARED_BYTES_MAX: usize = 32 << 10;
const PRIVATE_BYTES_MAX: usize = 256 << 10;

/// Values by the names of entries, in lower case.
type Entries = BTreeMap<String, Vec<u8>>;

/// Entries as clients hear of them: without a value where there is none.
pub(crate) type Told = Vec<(String, Option<Vec<u8>>)>;

/// The private entries of a person, by the ids of mailboxes; those of the server have no id.
pub(crate) struct PrivateEntries(BTreeMap<String, Entries>);

impl PrivateEntries {
    /// # Errors
    /// What the store reports.
    pub(crate) fn of(own: &MailFile) -> Result<Self> {
        let stored = match own.database.read_local(PRIVATE, &own.access) {
            Ok(document) => stored_value(&document.json),
            Err(DatabaseError::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        let mailboxes = stored.as_ref().and_then(|stored| stored.get("mailboxes")?.as_object());
        let mailboxes = mailboxes.into_iter().flatten();
        Ok(Self(mailboxes.map(|(id, entries)| (id.clone(), read(entries))).collect()))
    }

    /// What there is of the entries that are asked for, of a mailbox.
    pub(crate) fn of_mailbox(
        &self,
        (file, info): (&MailFile, &FolderInfo),
        asked: &[String],
        depth: Option<u8>,
    ) -> Told {
        let private = self.0.get(&mailbox_id(file, info));
        told([private, Some(&shared_of(info))], asked, depth)
    }

    fn json(&self) -> String {
        let mailboxes: Map<String, Value> =
            self.0.iter().map(|(id, entries)| (id.clone(), written(entries))).collect();
        json!({ "mailboxes": mailboxes }).to_string()
    }
}

/// GETMETADATA.
///
/// # Errors
/// What the store reports.
pub(crate) fn get(
    shared: &Surroundings,
    person: &Person,
    mailbox: Option<&MailboxName>,
    (asked, depth): (&[String], Option<u8>),
) -> Result<Answer> {
    let private = PrivateEntries::of(&MailFile::open(shared, person, &Place::Own)?)?;
    let Some(mailbox) = mailbox else {
        return Ok(Answer::Metadata(told([private.0.get(""), None], asked, depth)));
    };
    let (file, name) = MailFile::of_mailbox(shared, person, mailbox.as_str())?;
    let info = file.folder(name)?;
    Ok(Answer::Metadata(private.of_mailbox((&file, &info), asked, depth)))
}

/// SETMETADATA: all of it or nothing.
///
/// # Errors
/// What the store reports.
pub(crate) fn set(
    shared: &Surroundings,
    person: &Person,
    mailbox: Option<&MailboxName>,
    entries: Told,
) -> Result<Answer> {
    if entries.iter().any(|(_, value)| value.as_ref().is_some_and(|value| value.len() > VALUE_BYTES_MAX)) {
        let values = vec![Word::atom("MAXSIZE"), Word::atom(VALUE_BYTES_MAX.to_string())];
        return Ok(refused(values, "The value is too long"));
    }
    let is_shared = |(name, _): &(String, Option<Vec<u8>>)| name.to_ascii_lowercase().starts_with("/shared");
    let (of_all, own): (Told, Told) = entries.into_iter().partition(is_shared);
    let place = match mailbox {
        Some(mailbox) => {
            let (file, name) = MailFile::of_mailbox(shared, person, mailbox.as_str())?;
            let info = file.folder(name)?;
            Some((file, info))
        }
        None if of_all.is_empty() => None,
        None => return Ok(Answer::Refused(Refusal::new("NOPERM", "This is the administrators' to say"))),
    };
    // What somebody else writes in between would be lost.
    let _alone = shared.metadata.lock();
    let own_file = MailFile::open(shared, person, &Place::Own)?;
    let mut private = PrivateEntries::of(&own_file)?;
    let mut of_folder = None;
    if let Some((file, info)) = &place
        && !of_all.is_empty()
    {
        file.check_editor()?;
        // As it is now that nobody else writes.
        let info = file.folder_numbered(info.number, &info.name)?;
        of_folder = Some((file, info.name.clone(), changed(shared_of(&info), of_all), info.properties));
    }
    let id = place.as_ref().map_or_else(String::new, |(file, info)| mailbox_id(file, info));
    let is_private = !own.is_empty();
    if is_private {
        let before = private.0.remove(&id).unwrap_or_default();
        private.0.insert(id, changed(before, own));
        private.0.retain(|_, entries| !entries.is_empty());
    }
    let all = private.0.values().chain(of_folder.as_ref().map(|(_, _, entries, _)| entries));
    let most = all.map(BTreeMap::len).max().unwrap_or(0);
    let json = private.json();
    let properties =
        of_folder.map(|(file, name, entries, before)| (file, name, with_shared(&before, &entries)));
    let is_long = properties.as_ref().is_some_and(|(_, _, properties)| properties.len() > SHARED_BYTES_MAX);
    if most > ENTRIES_MAX || json.len() > PRIVATE_BYTES_MAX || is_long {
        return Ok(refused(vec![Word::atom("TOOMANY")], "There are too many entries"));
    }
    if let Some((file, name, properties)) = properties {
        file.database.set_folder_properties(&name, properties.as_bytes())?;
    }
    if is_private {
        let update =
            own_file.database.write_local(PRIVATE, json.as_bytes(), false, None, &own_file.access)?;
        update.wait()?.into_iter().collect::<Result<Vec<_>>>()?;
    }
    Ok(Answer::Accepted)
}

/// RFC 5464, section 4.3.
fn refused(values: Vec<Word>, text: &str) -> Answer {
    let code = Some(ResponseCode::Other("METADATA".to_owned(), values));
    Answer::Refused(Refusal { code, text: text.to_owned() })
}

fn changed(mut entries: Entries, changes: Told) -> Entries {
    for (name, value) in changes {
        let name = name.to_ascii_lowercase();
        match value {
            Some(value) => drop(entries.insert(name, value)),
            None => drop(entries.remove(&name)),
        }
    }
    entries
}

/// What there is of the entries that are asked for: of each itself, what is directly below it at depth 1, and all below it without one.
fn told(places: [Option<&Entries>; 2], asked: &[String], depth: Option<u8>) -> Told {
    let mut found = BTreeMap::new();
    for name in asked {
        let name = name.to_ascii_lowercase();
        let is_meant = |entry: &str| match entry.strip_prefix(name.as_str()) {
            Some("") => true,
            Some(below) => match (below.strip_prefix('/'), depth) {
                (Some(below), Some(1)) => !below.contains('/'),
                (Some(_), None) => true,
                _ => false,
            },
            None => false,
        };
        for (entry, value) in places.iter().flatten().flat_map(|entries| entries.iter()) {
            if is_meant(entry) {
                found.insert(entry.clone(), Some(value.clone()));
            }
        }
        if depth == Some(0) {
            found.entry(name).or_insert(None);
        }
    }
    found.into_iter().collect()
}

fn shared_of(info: &FolderInfo) -> Entries {
    let properties: Option<Value> = serde_json::from_slice(&info.properties).ok();
    properties.as_ref().and_then(|properties| properties.get(SHARED)).map(read).unwrap_or_default()
}

/// The properties of a folder with other shared entries; what else is there stays.
fn with_shared(before: &[u8], entries: &Entries) -> String {
    let mut properties: Map<String, Value> = serde_json::from_slice(before).unwrap_or_default();
    if entries.is_empty() {
        properties.remove(SHARED);
    } else {
        properties.insert(SHARED.to_owned(), written(entries));
    }
    if properties.is_empty() { String::new() } else { Value::Object(properties).to_string() }
}

fn read(stored: &Value) -> Entries {
    let entries = stored.as_object().into_iter().flatten();
    let value = |value: &Value| match value {
        Value::String(text) => Some(text.clone().into_bytes()),
        Value::Array(bytes) => bytes.iter().map(|byte| byte.as_u64()?.try_into().ok()).collect(),
        _ => None,
    };
    entries.filter_map(|(name, stored)| Some((name.clone(), value(stored)?))).collect()
}

/// A text, or bytes that are no text as numbers.
fn written(entries: &Entries) -> Value {
    let value = |bytes: &Vec<u8>| match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => Value::from(bytes.clone()),
    };
    Value::Object(entries.iter().map(|(name, bytes)| (name.clone(), value(bytes))).collect())
}
