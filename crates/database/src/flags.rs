//! Flags of messages (RFC 9051 §2.3.2).
//!
//! What everybody sees of a document, `\Answered`, `\Flagged`, `\Draft` and keywords, is its field [`FLAGS`], so that it is
//! replicated and CouchDB's clients see it. It is changed by an update of its own kind: the rest of the document stays as it is,
//! and nobody's mark changes. `\Seen` is a person's mark, and `\Deleted` is of one folder ([`FolderChange::SetDeleted`]).
//! Folders repeat the flags of what is in them ([`Member`](crate::folder::record::Member)), keywords by number.

use std::sync::Arc;

use scrinium_assertion::{Fault, never};
use scrinium_document::{FieldValue, Fields, FieldsBuf, Revision};
use scrinium_store::{Family, Snapshot};
use serde_json::Value;

use crate::access::Access;
use crate::database::Database;
use crate::edit::{Prepared, PreparedAttachment, SideEffects, check_as_it_stands};
use crate::edit_mode::EditMode;
use crate::error::{DatabaseError, Oversized, Result};
use crate::flags_field::{
    FLAGS, MAX_FLAGS, MAX_KEYWORDS, flag_name, flags_in, has, has_earlier_words, is_flag,
};
use crate::folder::FolderChange;
use crate::guard::Secret;
use crate::keys;
use crate::leaf::Leaf;
use crate::update::{check_number, check_placeable};

/// A change of flags that meets an edit of the same document begins again this often.
const TRIES: usize = 8;

/// What changes of a document's flags. Names that differ only in case are the same flag's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlagsChange {
    /// The document has no other flags than those of `add`.
    pub replace: bool,
    /// Flags that it has from now on.
    pub add: Vec<String>,
    /// Flags that it has not any more.
    pub remove: Vec<String>,
    /// What changes in folders together with them, [`FolderChange::SetDeleted`] say.
    pub folders: Vec<FolderChange>,
    /// Nothing changes if the document has changed since (RFC 7162 §3.1.3).
    pub unchanged_since: Option<u64>,
}

/// What became of a document's flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagsChanged {
    /// The document's id.
    pub id: String,
    /// The flags that it has.
    pub flags: Vec<String>,
    /// Its revision.
    pub revision: String,
    /// It has changed since [`FlagsChange::unchanged_since`], so that nothing was done.
    pub is_modified: bool,
}

/// A document's flags as they were seen, and as they are to be.
struct Seen {
    revision: Revision,
    prepared: Option<Prepared>,
    flags: Vec<String>,
    is_modified: bool,
    /// The flags are those that it has: what changes is in folders alone, and makes no revision.
    folders: Vec<FolderChange>,
}

impl Database {
    /// Changes flags of documents, each change with its own result; all of them are durable when this returns.
    ///
    /// # Errors
    /// The database is gone, the store takes no writes, or there are more than [`crate::MAX_EDITS`] changes.
    pub fn change_flags(
        self: &Arc<Self>,
        changes: &[(String, FlagsChange)],
        access: &Access,
    ) -> Result<Vec<Result<FlagsChanged>>> {
        self.check_there()?;
        check_number(changes.len())?;
        let mut results: Vec<Result<FlagsChanged>> = Vec::with_capacity(changes.len());
        results.resize_with(changes.len(), || Err(DatabaseError::Conflict));
        let mut left: Vec<usize> = (0..changes.len()).collect();
        for _ in 0..TRIES {
            let there = self.pin_location().map_or_else(|there| there, |_| Arc::clone(self));
            left = there.try_flags(changes, access, &left, &mut results)?;
            if left.is_empty() {
                break;
            }
        }
        Ok(results)
    }

    /// One round over the changes at these places. Those that met another edit are returned.
    fn try_flags(
        self: &Arc<Self>,
        changes: &[(String, FlagsChange)],
        access: &Access,
        places: &[usize],
        results: &mut [Result<FlagsChanged>],
    ) -> Result<Vec<usize>> {
        let snapshot = self.store().snapshot();
        let (mut edits, mut expected, mut again) = (Vec::new(), Vec::new(), Vec::new());
        let (mut placings, mut placed) = (Vec::new(), Vec::new());
        for place in places {
            let asked = changes.get(*place).zip(results.get_mut(*place));
            let ((id, change), result) = asked.ok_or_else(|| unknown_change(*place))?;
            *result = self.flags_to_be(&snapshot, id, change, access).map(|seen| {
                let Seen { revision, prepared, flags, is_modified, folders } = seen;
                if let Some(prepared) = prepared {
                    edits.push(Ok(prepared));
                    expected.push(*place);
                }
                for folder in folders {
                    placings.push((id.clone(), folder));
                    placed.push(*place);
                }
                FlagsChanged { id: id.clone(), flags, revision: revision.to_string(), is_modified }
            });
        }
        drop(snapshot);
        if !placings.is_empty() {
            let placings = self.change_folders(placings, access)?.wait()?;
            for (place, placing) in placed.into_iter().zip(placings) {
                let result = results.get_mut(place).ok_or_else(|| unknown_change(place))?;
                if let Err(error) = placing {
                    *result = Err(error);
                }
            }
        }
        if edits.is_empty() {
            return Ok(again);
        }
        let update = match self.pin_location() {
            Ok(_stays) => self.store_validated(edits, EditMode::Interactive)?,
            // It has moved to another volume meanwhile.
            Err(_) => return Ok(expected),
        };
        let updated = update.wait()?;
        for (place, updated) in expected.into_iter().zip(updated) {
            let result = results.get_mut(place).ok_or_else(|| unknown_change(place))?;
            match (updated, result.as_mut()) {
                (Ok(updated), Ok(changed)) => changed.revision = updated.revision,
                (Err(error), _) => {
                    if matches!(error, DatabaseError::Conflict) {
                        again.push(place);
                    }
                    *result = Err(error);
                }
                (Ok(_), Err(_)) => {}
            }
        }
        Ok(again)
    }

    /// The edit that changes a document's flags, as it stands now; none where it has these flags already.
    fn flags_to_be(
        &self,
        snapshot: &Snapshot,
        id: &str,
        change: &FlagsChange,
        access: &Access,
    ) -> Result<Seen> {
        check_placeable(id)?;
        let head = self.head(snapshot, id)?.ok_or_else(DatabaseError::missing)?;
        let stored = snapshot.get(Family::Scan, &keys::winner(self.number(), id))?;
        let stored = stored.ok_or_else(|| DatabaseError::damaged("document", id))?;
        let leaf = Leaf::decode(id, &stored)?;
        let readable = access.readable(self, id, leaf)?.filter(|leaf| !leaf.deleted);
        let readable = readable.ok_or_else(DatabaseError::missing)?;
        access.check_edit(self, &readable, false)?;
        let (revision, fields) = (leaf.parsed_revision(id)?, leaf.fields(id)?);
        let before = flags_in(&fields);
        let is_modified = change.unchanged_since.is_some_and(|since| head.change_number > since);
        let flags = if is_modified { before.clone() } else { changed(&before, change)? };
        let (mut prepared, mut folders) = (None, Vec::new());
        let is_other = !is_modified && (flags != before || has_earlier_words(&fields));
        if !is_other && !is_modified {
            folders.clone_from(&change.folders);
        }
        if is_other {
            check_as_it_stands(self, id, Some(&revision.to_string()), access)?;
            prepared = Some(Prepared {
                id: id.to_owned(),
                deleted: false,
                revision: Some(revision.clone()),
                path: Vec::new(),
                fields: Some(with_flags(&fields, &flags)),
                outside: Vec::new(),
                attachments: leaf
                    .attachments(id)?
                    .into_iter()
                    .map(|attachment| PreparedAttachment::Stub {
                        name: attachment.name,
                        digest: None,
                        revpos: Some(attachment.revpos),
                    })
                    .collect(),
                remove_attachments: Vec::new(),
                effects: SideEffects {
                    folders: change.folders.clone(),
                    keeps_marks: true,
                    is_of_flags: true,
                    ..SideEffects::default()
                },
                access: access.clone(),
                secret: Secret::Keep,
                members: None,
                validated: None,
            });
        }
        Ok(Seen { revision, prepared, flags, is_modified, folders })
    }

    /// The keywords of the database by their numbers, as they were first written.
    ///
    /// # Errors
    /// What the store reports.
    pub fn keywords(&self) -> Result<Vec<(u16, String)>> {
        let snapshot = self.store().snapshot();
        let mut keywords = Vec::new();
        for keyword in 1..=MAX_KEYWORDS {
            let stored = snapshot.get(Family::Point, &keys::keyword(self.number(), keyword))?;
            let Some(stored) = stored else { break };
            let text =
                std::str::from_utf8(&stored).map_err(|_| DatabaseError::damaged("keyword", self.name()))?;
            keywords.push((keyword, text.to_owned()));
        }
        Ok(keywords)
    }
}

#[cold]
fn unknown_change(place: usize) -> Fault {
    never!("a change of flags that is tried is one of those asked for", "{place}")
}

/// # Errors
/// What is no flag of a document's, and more flags than one may have.
fn changed(before: &[String], change: &FlagsChange) -> Result<Vec<String>> {
    for flag in &change.add {
        let is_elsewhere =
            ["\\Seen", "\\Deleted", "\\Recent"].iter().any(|other| other.eq_ignore_ascii_case(flag));
        if is_elsewhere || !is_flag(flag) {
            return Err(DatabaseError::bad_request(format!("`{flag}` is no flag of a document.")));
        }
    }
    let remove: Vec<String> = change.remove.iter().map(|flag| flag_name(flag).to_owned()).collect();
    let kept = before.iter().filter(|flag| !change.replace && !has(&remove, flag));
    let mut flags: Vec<String> = kept.cloned().collect();
    for flag in change.add.iter().map(|flag| flag_name(flag)) {
        if !has(&flags, flag) {
            flags.push(flag.to_owned());
        }
    }
    if flags.len() > MAX_FLAGS {
        return Err(DatabaseError::TooLarge {
            what: Oversized::Request,
            reason: format!("A document may have at most {MAX_FLAGS} flags."),
        });
    }
    // The same flags in another order are no change.
    let is_same = flags.len() == before.len() && before.iter().all(|flag| has(&flags, flag));
    Ok(if is_same { before.to_vec() } else { flags })
}

/// The fields with other flags. Where there are none, there is no field.
fn with_flags(fields: &Fields<'_>, flags: &[String]) -> FieldsBuf {
    let json = Value::from(flags.to_vec()).to_string();
    let own = (!flags.is_empty()).then_some((FLAGS, FieldValue::Json(&json)));
    let others = fields.iter().filter(|(name, _)| *name != FLAGS);
    FieldsBuf::build(others.chain(own))
}
