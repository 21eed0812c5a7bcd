//! A person's mail database as the target of an import.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use scrinium_assertion::always;
use scrinium_database::{Access, DatabaseError, Edit, EditMode, Update};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use super::{ImportTarget, ImportedMemo, Position, RefusedMessage, StoredBatch};
use crate::inbox::into_folder;
use crate::memo::field;
use crate::outline::outline_of;
use crate::source::attachment_of;

/// Who imports mail into a mail file.
static IMPORT: Access = Access::of_the_server("importing mail");

/// Imports into a mail database, and remembers there how far it came.
pub struct MailDatabase {
    database: OpenDatabase,
    owner: Arc<str>,
    checkpoint_id: String,
}

impl MailDatabase {
    /// Imports what lies at `root` into `database`. What was read there, `owner` has read; that is the name under
    /// which somebody uses the server.
    #[must_use]
    pub fn new(database: OpenDatabase, owner: &str, root: &Path) -> Self {
        Self { database, owner: owner.into(), checkpoint_id: checkpoint_id(root) }
    }

    fn edit_of(&self, mut memo: ImportedMemo) -> Result<Edit, DatabaseError> {
        let (size, length) = (memo.fields.get(field::SIZE).and_then(Value::as_u64), memo.source.len());
        always!(size == Some(length), "a memo tells the length of its message", "{size:?} of {length}")?;
        let unreadable = |error: std::io::Error| DatabaseError::Internal { reason: error.to_string() };
        memo.source.note_wire_size(&mut memo.fields).map_err(unreadable)?;
        let source = attachment_of(&self.database, &memo.source)?;
        let outline = outline_of(&memo.source, &memo.fields).map_err(unreadable)?;
        Ok(Edit {
            id: Some(memo.id),
            json: Value::Object(memo.fields).to_string().into(),
            attachments: vec![source],
            outline,
            folders: memo.folders.iter().flat_map(|folder| into_folder(folder)).collect(),
            read_by: memo.read.then(|| Arc::clone(&self.owner)),
            ..Edit::default()
        })
    }
}

/// A batch on its way to the disk.
pub struct PendingBatch {
    update: Update,
    /// Where its messages lay, in their order.
    places: Vec<String>,
    refused: Vec<RefusedMessage>,
}

/// Whether the next message may fare better.
fn is_of_one_message(error: &DatabaseError) -> bool {
    matches!(
        error,
        DatabaseError::Invalid { .. }
            | DatabaseError::TooLarge { .. }
            | DatabaseError::Forbidden { .. }
            | DatabaseError::Unauthorized { .. }
            | DatabaseError::MissingStub { .. }
            | DatabaseError::Damaged { .. }
    )
}

impl ImportTarget for MailDatabase {
    type Pending = PendingBatch;

    fn position(&self) -> Result<Option<Position>, String> {
        match self.database.read_local(&self.checkpoint_id, &IMPORT) {
            // What cannot be understood, an older release may have written: the import begins at the beginning, and what
            // it has brought is there already.
            Ok(document) => {
                Ok(serde_json::from_str(&document.json).ok().and_then(|value| read_position(&value)))
            }
            Err(DatabaseError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn submit(&self, batch: Vec<ImportedMemo>) -> Result<PendingBatch, String> {
        let (mut edits, mut places, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for memo in batch {
            let place = memo.place.clone();
            match self.edit_of(memo) {
                Ok(edit) => {
                    edits.push(edit);
                    places.push(place);
                }
                Err(error) if is_of_one_message(&error) => {
                    refused.push(RefusedMessage { place, reason: error.to_string() });
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        let update = self.database.update_in_parts(edits, EditMode::Interactive, &IMPORT);
        let update = update.map_err(|error| error.to_string())?;
        Ok(PendingBatch { update, places, refused })
    }

    fn finish(&self, pending: PendingBatch, position: &Position) -> Result<StoredBatch, String> {
        let PendingBatch { update, places, refused } = pending;
        let results = update.wait().map_err(|error| error.to_string())?;
        let (count, expected) = (results.len(), places.len());
        let complete =
            always!(count == expected, "each message of a batch has a result", "{count} of {expected}");
        complete.map_err(|fault| fault.to_string())?;
        let mut stored = StoredBatch { refused, ..StoredBatch::default() };
        for (result, place) in results.into_iter().zip(places) {
            match result {
                Ok(_) => stored.added += 1,
                Err(DatabaseError::Conflict) => stored.present += 1,
                Err(error) if is_of_one_message(&error) => {
                    stored.refused.push(RefusedMessage { place, reason: error.to_string() });
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        let checkpoint = write_position(position);
        let is_read_back = read_position(&checkpoint).as_ref() == Some(position);
        always!(is_read_back, "a position is read as it was written", "{}", position.path.display())
            .map_err(|fault| fault.to_string())?;
        let checkpoint = checkpoint.to_string();
        let written =
            self.database.write_local(&self.checkpoint_id, checkpoint.as_bytes(), false, None, &IMPORT);
        written.and_then(Update::wait).map_err(|error| error.to_string())?;
        Ok(stored)
    }

    fn complete(&self) -> Result<(), String> {
        match self
            .database
            .write_local(&self.checkpoint_id, b"{}", true, None, &IMPORT)
            .and_then(Update::wait)
        {
            Ok(_) | Err(DatabaseError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The id of the document that remembers the progress of an import of what lies at `root`.
#[must_use]
pub fn checkpoint_id(root: &Path) -> String {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let digest = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
    format!("_local/import-{}", digest.get(..32).unwrap_or_default())
}

/// A position as that document holds it. The path's bytes as characters of the same numbers: a path need not be UTF-8, and one that came back
/// different would let files be passed over.
#[must_use]
pub fn write_position(position: &Position) -> Value {
    let path: String = position.path.as_os_str().as_encoded_bytes().iter().copied().map(char::from).collect();
    json!({"path": path, "offset": position.offset})
}

/// The position in such a document, if it holds one.
#[must_use]
pub fn read_position(value: &Value) -> Option<Position> {
    let bytes: Result<Vec<u8>, _> = value.get("path")?.as_str()?.chars().map(u8::try_from).collect();
    let offset = value.get("offset")?.as_u64()?;
    Some(Position { path: path_of(bytes.ok()?)?, offset })
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "elsewhere a path is not any bytes")]
fn path_of(bytes: Vec<u8>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

#[cfg(not(unix))]
fn path_of(bytes: Vec<u8>) -> Option<PathBuf> {
    String::from_utf8(bytes).ok().map(PathBuf::from)
}
