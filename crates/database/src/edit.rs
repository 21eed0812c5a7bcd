//! An edit as a client sends it, and what can be made of it before the database is locked.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use scrinium_contents::record::is_compressible;
use scrinium_contents::{Content, Contents, PIECE_BYTES, Upload};
use scrinium_document::json::{JsonCounts, JsonText, stored_value_of_bytes};
use scrinium_document::{
    AttachmentBody, AttachmentEntry, FieldsBuf, GENERATION_MAX, Limits, OCTET_STREAM, ParsedDocument,
    Revision, is_design, is_local, parse_document, validate_attachment, validate_id,
};

use crate::access::Access;
use crate::access::readers::check_names;
use crate::context::DatabaseOptions;
use crate::database::Database;
use crate::edit_mode::EditMode;
use crate::error::{DatabaseError, Result};
use crate::folder::FolderChange;
use crate::guard::{ClearSecret, Guard, Guarded, Secret, Submission};
use crate::read::ReadOptions;
use crate::unread::check_person;
use crate::validation::Validated;

/// Values whose JSON is at least so long are stored once by content, outside the document, so that
/// views never read them and a memo to many people is kept once.
const OUTSIDE_FROM_BYTES: u64 = 2048;

/// A value longer than one piece stays in the document.
const OUTSIDE_UP_TO_BYTES: u64 = PIECE_BYTES as u64;

/// A design document is made into values as a whole wherever it is read, each of which takes many times its text.
const DESIGN_VALUES_MAX: usize = 100_000;

/// What CouchDB says of two revisions that should be one.
const REVISIONS_DIFFER: &str = "Document rev from request body and query string have different values";

/// And of attachments where there can be none.
pub const NO_LOCAL_ATTACHMENTS: &str = "_local documents do not accept attachments.";

/// One edit of one document, as it came.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// The document's id if it is known apart from the JSON; else the JSON's `_id`, or a new one.
    pub id: Option<String>,
    /// The document as CouchDB takes it, with `_rev`, `_deleted`, `_attachments`, `_revisions`.
    pub json: Bytes,
    /// The revision if it is known apart from the JSON; if both are given they must be equal.
    pub revision: Option<String>,
    /// Contents that came with the JSON: those that it says follow, by name, and further ones.
    pub attachments: Vec<NewAttachment>,
    /// Contents that were taken out of the JSON as it came, by the names of attachments that it says follow. Those that
    /// it does not name are thrown away.
    pub taken_out: Vec<(String, Content)>,
    /// Names of attachments to take away.
    pub remove_attachments: Vec<String>,
    /// The document keeps its fields and its other attachments; `json` is not looked at.
    pub attachments_only: bool,
    /// What changes in folders together with the document. Nothing for a document that is gone after the edit.
    pub folders: Vec<FolderChange>,
    /// Who edits: everybody else who has read the document has not read what it becomes.
    pub editor: Option<Arc<str>>,
    /// Who has read what the document becomes.
    pub read_by: Option<Arc<str>>,
    /// Everybody who has read the document has read what it becomes: nothing of it is news.
    pub keeps_marks: bool,
    /// What was found out about the document's source ([`SOURCE_ATTACHMENT`](crate::SOURCE_ATTACHMENT)), which is kept with it until
    /// another edit takes its place.
    pub outline: Option<Bytes>,
    /// What becomes of what only the server may see of the document. In a guarded database, what is set here takes the place
    /// of what its guard would hash.
    pub secret: Secret,
}

/// An attachment whose content came with the document's JSON.
#[derive(Clone, Debug)]
pub struct NewAttachment {
    /// Its name in the document.
    pub name: String,
    /// Its MIME type.
    pub content_type: String,
    /// Its content.
    pub content: Content,
}

/// An edit, parsed, its contents on their way.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) id: String,
    pub(crate) deleted: bool,
    /// The revision that the edit builds on, or the one that it brings.
    pub(crate) revision: Option<Revision>,
    /// A replicated edit's history, newest first.
    pub(crate) path: Vec<Revision>,
    /// `None`: keep the fields as they are.
    pub(crate) fields: Option<FieldsBuf>,
    /// The values of `fields` that are stored outside.
    pub(crate) outside: Vec<Content>,
    pub(crate) attachments: Vec<PreparedAttachment>,
    pub(crate) remove_attachments: Vec<String>,
    pub(crate) effects: SideEffects,
    pub(crate) access: Access,
    pub(crate) secret: Secret,
    /// All fields in one place, where functions of design documents are asked about them.
    pub(crate) members: Option<FieldsBuf>,
    pub(crate) validated: Option<Validated>,
}

/// What an edit brings besides its document.
#[derive(Clone, Default)]
pub(crate) struct SideEffects {
    pub(crate) folders: Vec<FolderChange>,
    pub(crate) editor: Option<Arc<str>>,
    pub(crate) read_by: Option<Arc<str>>,
    pub(crate) keeps_marks: bool,
    pub(crate) outline: Option<Bytes>,
    /// Nothing but the document's flags is another.
    pub(crate) is_of_flags: bool,
}

/// An attachment of an edit.
#[derive(Clone)]
pub(crate) enum PreparedAttachment {
    New {
        name: String,
        content_type: String,
        revpos: Option<u64>,
        content: Content,
    },
    /// One that the document has already.
    Stub {
        name: String,
        digest: Option<String>,
        /// The generation in which it came, as the client states it.
        revpos: Option<u64>,
    },
}

/// An edit whose JSON is sound.
pub(crate) struct ParsedEdit {
    edit: Edit,
    parsed: ParsedDocument,
}

impl Edit {
    /// Takes the edit apart, which needs no lock. What is wrong here is wrong with the request, whatever is stored.
    pub(crate) fn parse(self, mode: EditMode, database: &Database) -> Result<ParsedEdit> {
        let mut parsed = ParsedDocument::default();
        if !self.attachments_only {
            parsed = parse_document(&self.json, &limits(&database.context.options()))?;
            if mode == EditMode::Replicated {
                let id = self.id.as_deref().or(parsed.id.as_deref()).unwrap_or_default();
                let is_named = self.revision.is_some() || !parsed.path().is_empty();
                if !is_local(id) && !is_named {
                    return Err(DatabaseError::bad_request(
                        "When `new_edits: false`, the document needs `_rev` or `_revisions` specified",
                    ));
                }
                if !is_local(id) {
                    check_brought(parsed.path(), parsed.deleted)?;
                }
            }
        }
        Ok(ParsedEdit { edit: self, parsed })
    }
}

/// What a document may take.
fn limits(options: &DatabaseOptions) -> Limits {
    Limits {
        document_bytes: options.document_max_bytes as u64,
        attachment_bytes: options.attachment_max_bytes,
        ..Limits::default()
    }
}

impl ParsedEdit {
    /// Makes the edit's contents ready. Needs no lock, and does most of the work.
    pub(crate) fn prepare(
        self,
        mode: EditMode,
        (database, access): (&Database, &Access),
        is_validated: bool,
    ) -> Result<Prepared> {
        let Self { mut edit, mut parsed } = self;
        for attachment in &mut edit.attachments {
            database.context.contents.own(&mut attachment.content)?;
        }
        for (_, content) in &mut edit.taken_out {
            database.context.contents.own(content)?;
        }
        if let Some(person) = &edit.read_by {
            check_person(person)?;
        }
        let given = edit.revision.as_deref().map(Revision::parse).transpose()?;
        if edit.attachments_only {
            return edit.prepare_attachments_only(given, (database, access));
        }
        let contents = &database.context.contents;
        let options = &database.context.options();
        edit.ask_guard(&mut parsed, mode, (database, access))?;
        let effects = SideEffects {
            folders: edit.folders,
            editor: edit.editor,
            read_by: edit.read_by,
            keeps_marks: edit.keeps_marks,
            outline: edit.outline,
            is_of_flags: false,
        };
        // A list that cannot be read keeps out all but administrators, and what they write is checked as under any list.
        if !matches!(database.access_list(), Ok(None)) {
            check_names(&scrinium_document::Fields::decode(parsed.fields.as_bytes())?)?;
        }
        let mut path = parsed.path().to_vec();
        let id = edit.id.or_else(|| parsed.id.take()).unwrap_or_else(|| new_id(database.now_ms()));
        validate_id(&id)?;
        if is_local(&id) {
            return Prepared::local(id, given, parsed, access.clone());
        }
        if mode == EditMode::Replicated {
            if path.is_empty() {
                path.extend(given.clone());
            }
            check_brought(&path, parsed.deleted)?;
        }
        if is_design(&id) && !parsed.deleted {
            check_design(&edit.json, mode, database)?;
        }
        if let (Some(outside), Some(inside)) = (&given, &parsed.revision)
            && outside != inside
        {
            return Err(DatabaseError::bad_request(REVISIONS_DIFFER));
        }
        let beside_json = (edit.attachments, edit.taken_out);
        let attachments = prepare_attachments(parsed.attachments, beside_json, contents, options)?;
        let members = is_validated.then(|| parsed.fields.clone());
        let (fields, outside) = move_outside(parsed.fields, contents)?;
        Ok(Prepared {
            id,
            deleted: parsed.deleted,
            revision: given.or(parsed.revision),
            path,
            fields: Some(fields),
            outside,
            attachments,
            remove_attachments: edit.remove_attachments,
            effects,
            access: access.clone(),
            secret: edit.secret,
            members,
            validated: None,
        })
    }
}

impl Edit {
    /// Asks the database's guard, if it has one, what of this may be written.
    fn ask_guard(
        &mut self,
        parsed: &mut ParsedDocument,
        mode: EditMode,
        (database, access): (&Database, &Access),
    ) -> Result<()> {
        if let Some(guard) = database.context.guard(database.name()) {
            let id = self.id.as_deref().or(parsed.id.as_deref());
            let named = (self.revision.clone(), id);
            let mut submission = submission((database, access, mode), named, &self.json)?;
            submission.hash = match &self.secret {
                Secret::Set(hash) => Some(hash.clone()),
                Secret::Keep | Secret::Remove | Secret::Change(_) => None,
            };
            let (json, secret) = guarded(guard.as_ref(), submission)?;
            self.json = json;
            if !matches!(secret, Secret::Keep) {
                self.secret = secret;
            }
            *parsed = parse_document(&self.json, &limits(&database.context.options()))?;
        }
        Ok(())
    }

    /// An edit of attachments alone, of a document that is otherwise left as it is.
    fn prepare_attachments_only(
        self,
        revision: Option<Revision>,
        (database, access): (&Database, &Access),
    ) -> Result<Prepared> {
        let id = self.id.ok_or_else(|| DatabaseError::bad_request("Document id must be given"))?;
        validate_id(&id)?;
        if is_local(&id) {
            return Err(DatabaseError::bad_request(NO_LOCAL_ATTACHMENTS));
        }
        check_as_it_stands(database, &id, self.revision.as_deref(), access)?;
        let attachments = self.attachments.into_iter().map(PreparedAttachment::given);
        Ok(Prepared {
            id,
            deleted: false,
            revision,
            path: Vec::new(),
            fields: None,
            outside: Vec::new(),
            attachments: attachments.collect::<Result<_>>()?,
            remove_attachments: self.remove_attachments,
            effects: SideEffects {
                folders: self.folders,
                editor: self.editor,
                read_by: self.read_by,
                keeps_marks: self.keeps_marks,
                outline: None,
                is_of_flags: false,
            },
            access: access.clone(),
            secret: Secret::Keep,
            members: None,
            validated: None,
        })
    }
}

impl Prepared {
    /// An edit of a local document, which has neither history nor attachments, and keeps its values to itself.
    fn local(id: String, given: Option<Revision>, parsed: ParsedDocument, access: Access) -> Result<Self> {
        if !parsed.attachments.is_empty() {
            return Err(DatabaseError::bad_request(NO_LOCAL_ATTACHMENTS));
        }
        Ok(Self {
            id,
            deleted: parsed.deleted,
            revision: given.or(parsed.revision),
            path: Vec::new(),
            fields: Some(parsed.fields),
            outside: Vec::new(),
            attachments: Vec::new(),
            remove_attachments: Vec::new(),
            effects: SideEffects::default(),
            access,
            secret: Secret::Keep,
            members: None,
            validated: None,
        })
    }

    /// About what the edit adds to a batch, without its contents.
    pub(crate) fn room_bytes(&self) -> usize {
        const KEYS_AND_RECORDS: usize = 512;
        self.fields.as_ref().map_or(0, |fields| fields.as_bytes().len())
            + self.id.len() * (4 + 3 * self.effects.folders.len())
            + KEYS_AND_RECORDS
    }

    /// Whether the edit deletes a document and brings hardly anything, so that it gives space back.
    pub(crate) fn is_removal(&self) -> bool {
        const FEW_BYTES: usize = 256;
        let few = self.fields.as_ref().is_none_or(|fields| fields.as_bytes().len() <= FEW_BYTES);
        self.deleted && few && self.outside.is_empty() && self.attachments.is_empty()
    }

    /// Whether the new leaf takes anything over from the leaf that it replaces.
    pub(crate) fn builds_on_leaf(&self) -> bool {
        let is_stub = |attachment: &PreparedAttachment| matches!(attachment, PreparedAttachment::Stub { .. });
        self.fields.is_none() || self.attachments.iter().any(is_stub)
    }
}

impl PreparedAttachment {
    /// # Errors
    /// A name or a media type that no attachment may have.
    fn new(name: String, content_type: String, revpos: Option<u64>, content: Content) -> Result<Self> {
        validate_attachment(&name, &content_type)?;
        Ok(Self::New { name, content_type, revpos, content })
    }

    fn given(attachment: NewAttachment) -> Result<Self> {
        let content_type = Some(attachment.content_type).filter(|content_type| !content_type.is_empty());
        let content_type = content_type.unwrap_or_else(|| OCTET_STREAM.to_owned());
        Self::new(attachment.name, content_type, None, attachment.content)
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::New { name, .. } | Self::Stub { name, .. } => name,
        }
    }
}

impl Database {
    /// What a guard would hash of the document that an edit brings, if the one who edits may set it; `None` also where the
    /// edit is refused anyhow, which [`update`](Self::update) tells.
    #[must_use]
    pub fn clear_secret(&self, edit: &Edit, mode: EditMode, access: &Access) -> Option<ClearSecret> {
        let guard = self.context.guard(self.name()).filter(|_| !edit.attachments_only)?;
        let named = (edit.revision.clone(), edit.id.as_deref());
        let submission = submission((self, access, mode), named, &edit.json).ok()?;
        let text = guard.clear_secret(&submission).ok().flatten()?;
        let id = submission.document.get("_id").and_then(serde_json::Value::as_str).unwrap_or_default();
        Some(ClearSecret { id: id.to_owned(), text })
    }
}

/// A document as a guard sees it.
fn submission<'a>(
    (database, access, mode): (&'a Database, &'a Access, EditMode),
    (revision, id): (Option<String>, Option<&str>),
    json: &[u8],
) -> Result<Submission<'a>> {
    let invalid = || DatabaseError::bad_request("invalid UTF-8 JSON");
    let Some(serde_json::Value::Object(mut document)) = stored_value_of_bytes(json) else {
        return Err(invalid());
    };
    if let Some(id) = id {
        document.insert("_id".to_owned(), id.into());
    }
    Ok(Submission { database, access, mode, revision, document, hash: None })
}

/// The JSON as a guard lets it through, and what becomes of the document's secret.
fn guarded(guard: &dyn Guard, submission: Submission<'_>) -> Result<(Bytes, Secret)> {
    let Guarded { document, secret } = guard.check(submission)?;
    Ok((serde_json::Value::Object(document).to_string().into(), secret))
}

/// A guard looks at what stands there, no matter who edits it.
pub(crate) const fn access_for_guards() -> Access {
    Access::of_the_server("guarding what is written")
}

/// An edit of attachments alone takes a document over as it stands, which the one who edits must be allowed to write.
pub(crate) fn check_as_it_stands(
    database: &Database,
    id: &str,
    revision: Option<&str>,
    access: &Access,
) -> Result<()> {
    let Some(guard) = database.context.guard(database.name()) else { return Ok(()) };
    let options = ReadOptions { revision: revision.map(str::to_owned), ..ReadOptions::default() };
    let found = match database.read(id, &options, &access_for_guards()) {
        Ok(found) => found.json,
        // The edit is a conflict, or makes a document of nothing but attachments.
        Err(DatabaseError::NotFound { .. }) => JsonText::from(&serde_json::json!({})),
        Err(error) => return Err(error),
    };
    let given = (revision.map(str::to_owned), Some(id));
    let submission = submission((database, access, EditMode::Interactive), given, found.as_bytes())?;
    guarded(guard.as_ref(), submission).map(drop)
}

/// A design document whose views do not compile is refused when it is written, not when it is read.
fn check_design(json: &[u8], mode: EditMode, database: &Database) -> Result<()> {
    if JsonCounts::of(json).values > DESIGN_VALUES_MAX {
        return Err(DatabaseError::bad_request(format!(
            "A design document may hold at most {DESIGN_VALUES_MAX} values; keep data in other documents"
        )));
    }
    let design =
        stored_value_of_bytes(json).ok_or_else(|| DatabaseError::bad_request("invalid UTF-8 JSON"))?;
    database.context.server.designs.check_design(database.uuid(), &design, mode)
}

/// Refuses a history with revisions that no server makes. A tombstone may be one generation above the highest, so that
/// a document of the highest can be deleted, and its deletion replicated.
fn check_brought(path: &[Revision], deleted: bool) -> Result<()> {
    let is_last_tombstone = |place: usize, revision: &Revision| {
        let below = Revision::new(GENERATION_MAX, revision.digest().clone());
        deleted && place == 0 && revision.generation() == GENERATION_MAX + 1 && below.may_be_brought()
    };
    let refused = path
        .iter()
        .enumerate()
        .find(|(place, revision)| !revision.may_be_brought() && !is_last_tombstone(*place, revision));
    match refused {
        None => Ok(()),
        Some((_, revision)) => Err(DatabaseError::bad_request(format!(
            "Invalid rev format: `{revision}` must be a number from 1 to {GENERATION_MAX}, a dash, and at most 128 \
             letters, digits and characters of `._~-`"
        ))),
    }
}

/// An id for a document that came without one at `now_ms` since 1970: 128 random bits in hexadecimal digits, with the
/// time first, so that documents made one after the other lie side by side.
#[must_use]
pub fn new_id(now_ms: u64) -> String {
    let random: u64 = rand::random();
    let low: u32 = rand::random();
    format!("{:012x}{:04x}{low:08x}{:08x}", now_ms & 0xffff_ffff_ffff, random >> 48, random & 0xffff_ffff)
}

/// `given` are the contents that came with the JSON, and those that were taken out of it.
fn prepare_attachments(
    entries: Vec<AttachmentEntry>,
    (mut given, mut taken_out): (Vec<NewAttachment>, Vec<(String, Content)>),
    contents: &Contents,
    options: &DatabaseOptions,
) -> Result<Vec<PreparedAttachment>> {
    let mut prepared = Vec::with_capacity(entries.len() + given.len());
    for entry in entries {
        prepared.push(match entry.body {
            AttachmentBody::Stub => {
                PreparedAttachment::Stub { name: entry.name, digest: entry.digest, revpos: entry.revpos }
            }
            AttachmentBody::Inline(bytes) => {
                let content = content_of(&bytes, &entry.content_type, contents, options)?;
                PreparedAttachment::new(entry.name, entry.content_type, entry.revpos, content)?
            }
            AttachmentBody::Follows => {
                let place = given.iter().position(|attachment| attachment.name == entry.name);
                let content = match place {
                    Some(place) => Some(given.swap_remove(place).content),
                    None => {
                        let place = taken_out.iter().rposition(|(name, _)| *name == entry.name);
                        place.map(|place| taken_out.swap_remove(place).1)
                    }
                };
                let content = content.ok_or_else(|| {
                    DatabaseError::bad_request(format!(
                        "The attachment '{}' is said to follow, but did not come.",
                        entry.name
                    ))
                })?;
                PreparedAttachment::new(entry.name, entry.content_type, entry.revpos, content)?
            }
        });
    }
    for attachment in given {
        prepared.push(PreparedAttachment::given(attachment)?);
    }
    Ok(prepared)
}

/// A content of bytes at hand, of any size.
pub(crate) fn content_of(
    bytes: &[u8],
    content_type: &str,
    contents: &Contents,
    options: &DatabaseOptions,
) -> Result<Content> {
    if bytes.len() <= PIECE_BYTES {
        return Ok(contents.of_bytes(bytes, is_compressible(content_type))?);
    }
    let mut upload = Upload::new(contents, content_type, options.attachment_max_bytes);
    upload.write(bytes)?;
    Ok(upload.finish()?)
}

/// Moves large values out of the record of fields.
fn move_outside(fields: FieldsBuf, contents: &Contents) -> Result<(FieldsBuf, Vec<Content>)> {
    let mut outside = Vec::new();
    let mut failure = None;
    let moved = fields.move_outside(|_, value, json| {
        if !(OUTSIDE_FROM_BYTES..=OUTSIDE_UP_TO_BYTES).contains(&value.length) || failure.is_some() {
            return false;
        }
        match contents.of_bytes(json.as_bytes(), true) {
            Ok(content) => outside.push(content),
            Err(error) => failure = Some(error),
        }
        failure.is_none()
    });
    match failure {
        Some(error) => Err(error.into()),
        None => Ok((moved.unwrap_or(fields), outside)),
    }
}
