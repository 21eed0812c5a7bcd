//! `validate_doc_update` of design documents, obeyed in every way of writing.
//!
//! As in CouchDB 3, each function gets the document as it is to be stored, the one that it replaces or `null`, who edits,
//! and the database's `_security`. Neither design documents nor `_local` ones are asked about: who may write those is a
//! matter of levels. In a design document whose language is `formula` it is a formula. A function that throws anything, or does not end, refuses the edit.
//!
//! Functions are asked before the database is locked. Under the lock an edit is held against what it was validated
//! against; if that has changed, all of its update is validated again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use scrinium_assertion::{always, never};
use scrinium_document::json::{JsonText, JsonWriter, string};
use scrinium_document::{Fields, Revision, RevisionTree, is_design, is_local};
use scrinium_store::{Family, Slice, Snapshot};
use serde_json::json;

use crate::access::Access;
use crate::database::Database;
use crate::designs::{EditFunction, EditToValidate, FunctionLanguage, Verdict};
use crate::edit::{Prepared, PreparedAttachment};
use crate::edit_mode::EditMode;
use crate::error::{DatabaseError, Result};
use crate::head::Head;
use crate::keys;
use crate::leaf::{Leaf, StoredAttachment};
use crate::read::write_fields;
use crate::rows::RowQuery;

/// Edits that are rendered and validated at once.
const EDITS_AT_ONCE: usize = 64;

/// Design documents read at once.
const DESIGNS_AT_ONCE: usize = 10;

/// So often an update is validated while what it replaces keeps changing, and how long is waited in between for what is on
/// its way.
pub(crate) const TRIES: usize = 10;
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// What design documents say holds for everybody, whoever may read them.
const fn access_for_designs() -> Access {
    Access::of_the_server("carrying out design documents")
}

/// What an edit was validated against, and what came of it.
#[derive(Clone, Debug)]
pub(crate) struct Validated {
    /// Which design documents.
    generation: u64,
    /// The leaf that it replaces.
    old: Option<Revision>,
    /// Why it is refused, if it is.
    pub(crate) refusal: Option<DatabaseError>,
}

/// The functions of a database's design documents as they were in one generation.
#[derive(Clone)]
pub(crate) struct Validation {
    generation: u64,
    functions: Arc<[Function]>,
}

/// The function of one design document.
struct Function {
    design: String,
    validator: Box<dyn EditFunction>,
}

/// The function of a design document, if it has one; the rest is not looked at. One that is invalid, or in a language that is
/// none, is not obeyed and stops nobody.
fn function_of(design: &JsonText) -> Option<(FunctionLanguage, String)> {
    let members = design.members()?;
    let member =
        |wanted: &str| members.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let language = match member("language").map(string) {
        None | Some(None) => FunctionLanguage::JavaScript,
        Some(Some(language)) if language == "javascript" => FunctionLanguage::JavaScript,
        Some(Some(language)) if language == "formula" => FunctionLanguage::Formula,
        Some(Some(_)) => return None,
    };
    Some((language, string(member("validate_doc_update")?)?.into_owned()))
}

/// A leaf that an edit replaces, with its document's revisions.
struct Old {
    head: Head,
    revision: Revision,
    record: Slice,
}

/// What an edit replaces: the leaf that it names, or the tombstone that it is put in the place of; of a replicated one the
/// nearest of its ancestors that is a leaf.
pub(crate) fn replaced(tree: &RevisionTree, edit: &Prepared, mode: EditMode) -> Option<Revision> {
    match (mode, &edit.revision) {
        (EditMode::Replicated, _) => tree.first_leaf(edit.path.get(1..).unwrap_or_default()).cloned(),
        (EditMode::Interactive, Some(revision)) => tree.leaf(revision).map(|_| revision.clone()),
        (EditMode::Interactive, None) => {
            tree.winner().filter(|winner| winner.deleted).map(|winner| winner.revision.clone())
        }
    }
}

/// Whether functions are asked about a document.
fn is_asked_about(id: &str) -> bool {
    !is_design(id) && !is_local(id)
}

impl Validated {
    /// Whether it still holds.
    pub(crate) fn holds(&self, database: &Database, old: Option<&Revision>) -> bool {
        self.generation == database.design_generation() && self.old.as_ref() == old
    }
}

impl Database {
    /// The functions that edits of this database have to pass; `None`: there are none.
    pub(crate) fn validation(self: &Arc<Self>) -> Result<Option<Validation>> {
        let generation = self.design_generation();
        if self.unvalidated.load(Ordering::Acquire) == generation.wrapping_add(1) {
            return Ok(None);
        }
        if let Some(known) = &*self.validation.lock()
            && known.generation == generation
        {
            return Ok(Some(known.clone()));
        }
        let functions = self.read_validators()?;
        if functions.is_empty() {
            self.unvalidated.store(generation.wrapping_add(1), Ordering::Release);
            return Ok(None);
        }
        let validation = Validation { generation, functions: functions.into() };
        *self.validation.lock() = Some(validation.clone());
        Ok(Some(validation))
    }

    fn read_validators(self: &Arc<Self>) -> Result<Vec<Function>> {
        let query = RowQuery { include_documents: true, ..RowQuery::default() };
        let mut rows = self.design_documents(query, &access_for_designs())?;
        let mut functions = Vec::new();
        loop {
            let some = rows.next_rows(DESIGNS_AT_ONCE)?;
            if some.is_empty() {
                return Ok(functions);
            }
            for row in some {
                // One that cannot be read comes without its document, and is not obeyed.
                let (Some(design), Some(json)) = (row.id, row.document) else { continue };
                let Some((language, source)) = function_of(&json) else { continue };
                let designs = &self.context.server.designs;
                let validator = designs.edit_function(self.uuid(), language, &source, json.as_str());
                functions.extend(validator.map(|validator| Function { design, validator }));
            }
        }
    }
}

impl Validation {
    /// Asks the functions about edits, which know afterwards what they were validated against, and why they are refused.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] if the functions cannot be asked now, and what the store reports.
    pub(crate) fn validate(
        &self,
        database: &Arc<Database>,
        edits: &mut [Result<Prepared>],
        mode: EditMode,
    ) -> Result<()> {
        let security = database.security()?.to_string();
        for edits in edits.chunks_mut(EDITS_AT_ONCE) {
            self.validate_some(database, edits, mode, &security)?;
        }
        Ok(())
    }

    fn validate_some(
        &self,
        database: &Arc<Database>,
        edits: &mut [Result<Prepared>],
        mode: EditMode,
        security: &str,
    ) -> Result<()> {
        let snapshot = database.store().snapshot();
        let mut asked = Vec::new();
        for (place, edit) in edits.iter_mut().enumerate() {
            let Ok(edit) = edit else { continue };
            if !is_asked_about(&edit.id) {
                continue;
            }
            let old = old(database, &snapshot, edit, mode)?;
            let old_revision = old.as_ref().map(|old| old.revision.clone());
            edit.validated =
                Some(Validated { generation: self.generation, old: old_revision, refusal: None });
            asked.push(Asked::of(database, place, edit, old.as_ref(), mode)?);
        }
        for function in self.functions.iter() {
            let texts: Vec<EditToValidate<'_>> = asked.iter().map(|asked| asked.text(security)).collect();
            let verdicts = function.validator.validate(database, &texts)?;
            let (said, wanted) = (verdicts.len(), asked.len());
            always!(said == wanted, "a function says something of each edit", "{said} of {wanted}")?;
            let mut passed = Vec::with_capacity(asked.len());
            for (asked, verdict) in asked.into_iter().zip(verdicts) {
                match refusal(function, verdict) {
                    None => passed.push(asked),
                    Some(error) => {
                        let edit = edits.get_mut(asked.place).and_then(|edit| edit.as_mut().ok());
                        let validated = edit.and_then(|edit| edit.validated.as_mut());
                        let none = || never!("an edit that is refused is one of those asked about");
                        validated.ok_or_else(none)?.refusal = Some(error);
                    }
                }
            }
            asked = passed;
        }
        Ok(())
    }
}

/// The error that a verdict is.
fn refusal(function: &Function, verdict: Verdict) -> Option<DatabaseError> {
    Some(match verdict {
        Verdict::Allowed => return None,
        Verdict::Forbidden { reason } => DatabaseError::Forbidden { reason },
        Verdict::Unauthorized { reason } => DatabaseError::Unauthorized { reason },
        Verdict::Failed { reason } => {
            let reason = format!("`validate_doc_update` of {} refused it: {reason}", function.design);
            DatabaseError::Forbidden { reason }
        }
    })
}

/// The leaf that an edit replaces, as it can be seen.
fn old(database: &Database, snapshot: &Snapshot, edit: &Prepared, mode: EditMode) -> Result<Option<Old>> {
    let number = database.number();
    let Some(head) = database.head(snapshot, &edit.id)? else { return Ok(None) };
    let Some(revision) = replaced(&head.tree, edit, mode) else { return Ok(None) };
    let is_winner = head.tree.winner().is_some_and(|winner| *winner.revision == revision);
    let key =
        if is_winner { keys::winner(number, &edit.id) } else { keys::loser(number, &edit.id, &revision) };
    let record = snapshot.get(Family::Scan, &key)?;
    let record = record.ok_or_else(|| DatabaseError::damaged("revision", &edit.id))?;
    Ok(Some(Old { head, revision, record }))
}

/// An edit as the functions get it.
struct Asked {
    place: usize,
    new: String,
    old: String,
    user: String,
}

impl Asked {
    fn of(
        database: &Database,
        place: usize,
        edit: &Prepared,
        old: Option<&Old>,
        mode: EditMode,
    ) -> Result<Self> {
        let (name, roles) = author(edit);
        let user = json!({"db": database.name(), "name": name, "roles": roles}).to_string();
        let leaf = old.map(|old| Leaf::decode(&edit.id, &old.record)).transpose()?;
        let history = match (mode, old) {
            (EditMode::Replicated, _) => edit.path.clone(),
            (EditMode::Interactive, Some(old)) => old.head.tree.path(&old.revision).unwrap_or_default(),
            (EditMode::Interactive, None) => Vec::new(),
        };
        let old_json = match (old, &leaf) {
            (Some(old), Some(leaf)) => {
                let mut json = Json::new(&edit.id, Some(&old.revision), leaf.deleted);
                write_fields(&mut json.0, &leaf.fields(&edit.id)?, database, &edit.id)?;
                json.attachments(leaf.attachments(&edit.id)?.iter().map(Stub::of));
                json.history(&old.head.tree.path(&old.revision).unwrap_or_default());
                json.ended()
            }
            _ => "null".to_owned(),
        };
        let mut json = Json::new(&edit.id, edit.revision.as_ref(), edit.deleted);
        match (&edit.members, &leaf) {
            // Nothing of them is outside yet.
            (Some(members), _) => {
                Fields::decode(members.as_bytes())?
                    .write_members(&mut json.0, false, |_, _| Ok::<(), DatabaseError>(()))?;
            }
            (None, Some(leaf)) => {
                // A change of flags brings fields, and attachments alone bring none.
                let fields =
                    edit.fields.as_ref().map(|fields| Fields::decode(fields.as_bytes())).transpose()?;
                let fields = fields.map_or_else(|| leaf.fields(&edit.id), Ok)?;
                write_fields(&mut json.0, &fields, database, &edit.id)?;
            }
            (None, None) => {}
        }
        let known = leaf.map_or_else(|| Ok(Vec::new()), |leaf| leaf.attachments(&edit.id))?;
        json.attachments(Stub::all_of(edit, &known).into_iter());
        json.history(&history);
        Ok(Self { place, new: json.ended(), old: old_json, user })
    }

    fn text<'a>(&'a self, security_json: &'a str) -> EditToValidate<'a> {
        EditToValidate { new_json: &self.new, old_json: &self.old, user_json: &self.user, security_json }
    }
}

/// A document being written.
struct Json(JsonWriter);

impl Json {
    fn new(id: &str, revision: Option<&Revision>, deleted: bool) -> Self {
        let mut json = JsonWriter::of_literal("{\"_id\":");
        json.string(id);
        if let Some(revision) = revision {
            json.literal(",\"_rev\":").string(&revision.to_string());
        }
        json.literal(if deleted { ",\"_deleted\":true" } else { "" });
        Self(json)
    }

    fn attachments<'a>(&mut self, stubs: impl Iterator<Item = Stub<'a>>) {
        let json = &mut self.0;
        let mut is_first = true;
        for stub in stubs {
            json.literal(if is_first { ",\"_attachments\":{" } else { "," });
            is_first = false;
            json.string(stub.name).literal(":{\"content_type\":").string(stub.content_type);
            json.literal(",\"length\":").number(stub.length).literal(",\"stub\":true,\"digest\":");
            json.string(&stub.digest).literal("}");
        }
        json.literal(if is_first { "" } else { "}" });
    }

    /// `_revisions`, newest first.
    fn history(&mut self, path: &[Revision]) {
        let start = path.first().map_or(0, Revision::generation);
        let texts = path.iter().map(ToString::to_string);
        let ids = texts.filter_map(|text| text.split_once('-').map(|(_, id)| id.to_owned()));
        self.0.literal(",\"_revisions\":{\"start\":").number(start).literal(",\"ids\":");
        self.0.strings(ids).literal("}");
    }

    fn ended(mut self) -> String {
        self.0.literal("}");
        self.0.into_string()
    }
}

/// An attachment as it is shown.
struct Stub<'a> {
    name: &'a str,
    content_type: &'a str,
    length: u64,
    digest: String,
}

impl<'a> Stub<'a> {
    fn of(attachment: &'a StoredAttachment) -> Self {
        Self {
            name: &attachment.name,
            content_type: &attachment.content_type,
            length: attachment.shown_length(),
            digest: attachment.digest_text(),
        }
    }

    /// Those that the document has after the edit; `known` are those that it had.
    fn all_of(edit: &'a Prepared, known: &'a [StoredAttachment]) -> Vec<Self> {
        let is_replaced = |name: &str| edit.attachments.iter().any(|attachment| attachment.name() == name);
        let stays = |attachment: &&StoredAttachment| {
            edit.fields.is_none()
                && !edit.remove_attachments.contains(&attachment.name)
                && !is_replaced(&attachment.name)
        };
        let kept = known.iter().filter(stays).map(Stub::of);
        let brought = edit.attachments.iter().filter_map(|attachment| match attachment {
            PreparedAttachment::New { name, content_type, content, .. } => {
                let length = content.decoded_length().unwrap_or_else(|| content.length());
                Some(Stub { name, content_type, length, digest: content.digest() })
            }
            PreparedAttachment::Stub { name, .. } => {
                known.iter().find(|known| known.name == *name).map(Stub::of)
            }
        });
        kept.chain(brought).collect()
    }
}

/// Who edits, as CouchDB tells functions: the server itself has no name.
fn author(edit: &Prepared) -> (Option<&str>, Vec<String>) {
    match edit.access.identity() {
        Some(identity) => (identity.name(), identity.roles().to_vec()),
        None => (None, vec!["_admin".to_owned()]),
    }
}
