//! Where imported calendars and cards go: a database of this process, or of a server behind its port.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use scrinium_database::{
    Access, Database, DatabaseError, Edit, EditMode, FolderChange, FolderKind, FolderUse, NewAttachment,
};
use scrinium_dav_server::{ImportFolder, ImportedResource};
use serde_json::{Value, json};

use crate::mail_import::RemoteMail;

static IMPORT: Access = Access::of_the_server("importing calendars and contacts");

/// What became of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    New,
    /// One with its UID is there.
    Present,
    LeftOut(String),
}

/// A person's mail database.
pub(super) trait CalendarTarget {
    /// Makes a folder that is a calendar or an address book, or finds it.
    ///
    /// # Errors
    /// Why it cannot be used.
    fn make_folder(&self, folder: &ImportFolder) -> Result<(), String>;

    /// Stores entries into a folder, and says in their order what became of them.
    ///
    /// # Errors
    /// Why nothing can be stored.
    fn store(&self, folder: &str, entries: Vec<ImportedResource>) -> Result<Vec<Stored>, String>;
}

/// A database that is open in this process.
pub(super) struct OpenTarget(pub(super) Arc<Database>);

impl OpenTarget {
    fn edit(&self, folder: &str, entry: ImportedResource) -> Result<Edit, DatabaseError> {
        let content = self.0.store_content(&entry.source, entry.media_type)?;
        Ok(Edit {
            id: Some(entry.id),
            json: Value::Object(entry.fields).to_string().into(),
            attachments: vec![NewAttachment {
                name: entry.attachment.to_owned(),
                content_type: entry.media_type.to_owned(),
                content,
            }],
            folders: vec![FolderChange::Add { folder: folder.to_owned() }],
            ..Edit::default()
        })
    }
}

impl CalendarTarget for OpenTarget {
    fn make_folder(&self, folder: &ImportFolder) -> Result<(), String> {
        let made = match self.0.folder(&folder.name, None) {
            Ok(info) => return usable(folder, info.kind),
            Err(DatabaseError::NotFound { .. }) => self.0.define_folder(&folder.name, None),
            Err(error) => Err(error),
        };
        let folder_use = FolderUse { kind: Some(folder.kind), ..FolderUse::default() };
        made.and_then(|_| self.0.set_folder_use(&folder.name, folder_use)).map_err(|error| error.to_string())
    }

    fn store(&self, folder: &str, entries: Vec<ImportedResource>) -> Result<Vec<Stored>, String> {
        let edits: Result<Vec<Edit>, DatabaseError> =
            entries.into_iter().map(|entry| self.edit(folder, entry)).collect();
        let update = edits.and_then(|edits| self.0.update(edits, EditMode::Interactive, &IMPORT));
        let stored = update.and_then(scrinium_database::Update::wait).map_err(|error| error.to_string())?;
        let said = |one: scrinium_database::Result<_>| match one {
            Ok(_) => Stored::New,
            Err(DatabaseError::Conflict) => Stored::Present,
            Err(error) => Stored::LeftOut(error.to_string()),
        };
        Ok(stored.into_iter().map(said).collect())
    }
}

/// # Errors
/// The folder is for something else.
pub(super) fn usable(folder: &ImportFolder, kind: FolderKind) -> Result<(), String> {
    if folder.kind == kind {
        return Ok(());
    }
    Err(format!("the folder {:?} is there, and is no {}", folder.name, folder.kind.text()))
}

impl CalendarTarget for RemoteMail {
    fn make_folder(&self, folder: &ImportFolder) -> Result<(), String> {
        match self.folder_kind(&folder.name)? {
            Some(kind) => usable(folder, kind),
            None => self.make_folder_of(&folder.name, folder.kind),
        }
    }

    fn store(&self, folder: &str, entries: Vec<ImportedResource>) -> Result<Vec<Stored>, String> {
        let document = |entry: ImportedResource| {
            let mut fields = entry.fields;
            fields.insert("_id".to_owned(), Value::from(entry.id));
            let source = json!({"content_type": entry.media_type, "data": STANDARD.encode(&entry.source)});
            fields.insert("_attachments".to_owned(), json!({entry.attachment: source}));
            Value::Object(fields)
        };
        let documents: Vec<Value> = entries.into_iter().map(document).collect();
        let rows = self.store_documents(folder, &documents)?;
        let said = |row: Value| match (row.get("error").and_then(Value::as_str), row.get("reason")) {
            (None, _) => Stored::New,
            (Some("conflict"), _) => Stored::Present,
            (Some(error), reason) => {
                let reason = reason.and_then(Value::as_str).unwrap_or_default();
                Stored::LeftOut(format!("the server does not take it: {error}: {reason}"))
            }
        };
        Ok(rows.into_iter().map(said).collect())
    }
}
