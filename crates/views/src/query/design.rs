//! Making and removing indexes, which is editing design documents.

use scrinium_database::{Access, DatabaseError, Edit, EditMode, ReadOptions, Result};
use scrinium_document::json::stored_value;
use scrinium_mango::{IndexDefinition, MangoError};
use serde_json::{Value, json};

use crate::error::{OrDatabaseError as _, refused_query};
use crate::open::OpenDatabase;

/// So often an edit is tried when others edit the same design document.
const TRIES: usize = 20;

impl OpenDatabase {
    /// Puts an index into its design document, which is made if it is not there. False if it has the very same index.
    /// The index is built soon, or by the first query that reads it.
    ///
    /// # Errors
    /// As [`IndexDefinition::put_into_design`], and what storing a document reports.
    pub fn create_index(&self, definition: &IndexDefinition, access: &Access) -> Result<bool> {
        let id = definition.design();
        let created =
            self.edit_design((id, access), |design| definition.put_into_design(design).or_database_error())?;
        if created {
            self.want_views(id.strip_prefix(scrinium_document::DESIGN_PREFIX).unwrap_or(id));
        }
        Ok(created)
    }

    /// Takes an index out of a design document (its id, with `_design/`), which is deleted if nothing else is in it.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if there is no such index, and what storing a document reports.
    pub fn delete_index(&self, design: &str, name: &str, access: &Access) -> Result<()> {
        self.edit_design((design, access), |stored| {
            let stored = stored.ok_or_else(DatabaseError::missing)?;
            match IndexDefinition::remove_from_design(stored, name) {
                Ok(left) => Ok(Some(left.unwrap_or_else(|| tombstone(stored)))),
                Err(MangoError::IndexNotFound(_) | MangoError::InvalidDesignLanguage(_)) => {
                    Err(DatabaseError::missing())
                }
                Err(error) => Err(refused_query(error)),
            }
        })?;
        Ok(())
    }

    /// Stores what `edit` makes of a design document, again if it was changed meanwhile. False if nothing is to be
    /// stored.
    fn edit_design(
        &self,
        (id, access): (&str, &Access),
        edit: impl Fn(Option<&Value>) -> Result<Option<Value>>,
    ) -> Result<bool> {
        for _ in 0..TRIES {
            let stored = match self.read(id, &ReadOptions::default(), access) {
                Ok(document) => {
                    let damaged = || DatabaseError::damaged("design document", id);
                    Some(stored_value(&document.json).ok_or_else(damaged)?)
                }
                Err(DatabaseError::NotFound { reason }) if reason == "missing" || reason == "deleted" => None,
                Err(error) => return Err(error),
            };
            let Some(edited) = edit(stored.as_ref())? else { return Ok(false) };
            let edit = Edit { json: edited.to_string().into(), ..Edit::default() };
            let results = self.update(vec![edit], EditMode::Interactive, access)?.wait()?;
            match results.into_iter().next() {
                Some(Err(DatabaseError::Conflict)) => {}
                Some(Err(error)) => return Err(error),
                Some(Ok(_)) | None => return Ok(true),
            }
        }
        Err(DatabaseError::Conflict)
    }
}

fn tombstone(stored: &Value) -> Value {
    json!({ "_id": stored.get("_id"), "_rev": stored.get("_rev"), "_deleted": true })
}
