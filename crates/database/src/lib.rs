//! Databases of JSON documents after CouchDB 3's model. SIGNATURES ONLY FOR NOW: bodies come within the hour; names stay.
#![allow(unused, missing_docs, clippy::all)]
use std::sync::Arc;
use bytes::Bytes;
use serde_json::Value;

/// What went wrong, with CouchDB's words: `error()` and `reason()` are the two members of its JSON error bodies, `status()` its HTTP status.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DatabaseError {
    #[error("{reason}")] NotFound { reason: String },          // 404 not_found: "missing", "deleted", "Database does not exist.", "missing_named_view"...
    #[error("Document update conflict.")] Conflict,            // 409 conflict
    #[error("{reason}")] BadRequest { error: &'static str, reason: String }, // 400: bad_request, illegal_docid, doc_validation, query_parse_error, illegal_database_name...
    #[error("{reason}")] Exists { reason: String },            // 412 file_exists
    #[error("{reason}")] TooLarge { reason: String },          // 413 document_too_large / attachment_too_large
    #[error("{reason}")] Forbidden { reason: String },         // 403
    #[error("{reason}")] Full { reason: String },              // 507 insufficient_storage
    #[error("{reason}")] Unavailable { reason: String },       // 503
    #[error("{reason}")] PreconditionFailed { error: &'static str, reason: String }, // 412 missing_stub
    #[error("{reason}")] Internal { reason: String },          // 500
}
pub type Result<T> = std::result::Result<T, DatabaseError>;

/// All databases of a server. Clones share them.
#[derive(Clone)] pub struct Databases;
#[derive(Clone, Debug)] pub struct DatabaseOptions { pub document_max_bytes: usize, pub attachment_max_bytes: u64, pub revision_limit: usize }
impl Databases {
    /// Creates; durable on return. Name rule as CouchDB's: ^[a-z][a-z0-9_$()+/-]*$ plus '.' for mail.box; also _users-like names are refused.
    pub fn create(&self, name: &str) -> Result<Arc<Database>> { unimplemented!() }
    pub fn get(&self, name: &str) -> Result<Arc<Database>> { unimplemented!() }
    pub fn delete(&self, name: &str) -> Result<()> { unimplemented!() }
    /// Names in byte order, from `start`, up to `end` inclusive, at most `limit`, after skipping `skip`.
    pub fn names(&self, range: &NameRange) -> Result<Vec<String>> { unimplemented!() }
    /// A uuid of the server, kept in the store.
    pub fn server_uuid(&self) -> String { unimplemented!() }
}
#[derive(Clone, Debug, Default)] pub struct NameRange { pub start: Option<String>, pub end: Option<String>, pub inclusive_end: bool, pub descending: bool, pub skip: usize, pub limit: usize }

pub struct Database;
#[derive(Clone, Debug)] pub struct DatabaseInfo { pub name: String, pub uuid: String, pub update_sequence: ChangeNumber, pub document_count: u64, pub deleted_count: u64, pub file_bytes: u64, pub external_bytes: u64, pub active_bytes: u64, pub instance_start_time: u64, pub revision_limit: usize }

/// A change number with the database it belongs to; on the wire "N-xxxxxxxx" (CouchDB clients take it as opaque). A number of another database (deleted and made again) parses as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)] pub struct ChangeNumber(pub u64);

/// One edit as it came: the document's JSON already parsed by scrinium-document (here: its JSON bytes; the id may be given beside it).
#[derive(Clone, Debug, Default)]
pub struct Edit {
    pub id: Option<String>,                 // from the URL; None: the document's _id, or a new one is made
    pub json: Bytes,                        // the document, with _id/_rev/_deleted/_attachments/_revisions as CouchDB takes them
    pub revision: Option<String>,           // from ?rev= or If-Match; wins over the document's _rev if that is absent, must be equal if both
    pub attachments: Vec<NewAttachment>,    // contents that came beside the JSON (raw PUT, multipart/related), matched by name with "follows" entries or added
    pub remove_attachments: Vec<String>,
    /// True: keep the document's current fields; only attachments change (PUT/DELETE /db/id/name). `json` is ignored.
    pub attachments_only: bool,
}
#[derive(Clone, Debug)] pub struct NewAttachment { pub name: String, pub content_type: String, pub content: Content }
/// A content stored (or about to be) by its digest; made by `Database::store_content` or `Upload::finish`. Holding it keeps it from being collected.
#[derive(Clone, Debug)] pub struct Content { pub length: u64 }
#[derive(Clone, Copy, Debug, PartialEq, Eq)] pub enum EditMode { Interactive, Replicated }
#[derive(Clone, Debug)] pub struct Updated { pub id: String, pub revision: String }
/// Outcome of one update call = one atomic batch. Nothing may be acknowledged before `wait` or `durable` returned Ok.
pub struct Update { pub results: Vec<Result<Updated>> }
impl Update { pub fn wait(self) -> Result<Vec<Result<Updated>>> { unimplemented!() }  pub async fn durable(self) -> Result<Vec<Result<Updated>>> { unimplemented!() } }

/// A large attachment on its way in: `write` any number of times (blocking calls), then `finish`. Dropped unfinished, it is thrown away.
pub struct Upload;
impl Upload { pub fn write(&mut self, bytes: &[u8]) -> Result<()> { unimplemented!() } pub fn finish(self) -> Result<Content> { unimplemented!() } }
/// A stored attachment's content, readable at any offset.
pub struct AttachmentReader { pub name: String, pub content_type: String, pub digest: String /* "md5-…base64" */, pub length: u64, pub revision: String }
impl AttachmentReader { /// At most `max_bytes` from `offset`; empty at the end.
    pub fn read(&self, offset: u64, max_bytes: usize) -> Result<Bytes> { unimplemented!() } }

#[derive(Clone, Debug, Default)]
pub struct ReadOptions { pub revision: Option<String>, pub revisions: bool /* revs=true */, pub revisions_info: bool, pub conflicts: bool, pub deleted_conflicts: bool, pub local_sequence: bool, pub latest: bool,
    pub attachments: bool /* inline base64 */, pub attachment_encoding_info: bool, pub attachments_since: Option<Vec<String>> }
/// A document as it goes out: complete JSON text, beginning with _id and _rev.
#[derive(Clone, Debug)] pub struct Document { pub id: String, pub revision: String, pub deleted: bool, pub json: String }
#[derive(Clone, Debug)] pub enum OpenRevisions { All, These(Vec<String>) }
#[derive(Clone, Debug)] pub enum OpenRevision { Found(Document), Missing(String) }

#[derive(Clone, Debug)]
pub struct RowQuery {
    pub start_key: Option<Value>, pub start_id: Option<String>, pub end_key: Option<Value>, pub end_id: Option<String>, pub inclusive_end: bool, pub keys: Option<Vec<Value>>,
    pub descending: bool, pub skip: u64, pub limit: Option<u64>, pub include_documents: bool, pub conflicts: bool, pub attachments: bool, pub update_sequence: bool,
    pub reduce: Option<bool>, pub group: bool, pub group_level: Option<u32>, pub freshness: Freshness,
}
/// update=true (default) | false | lazy
#[derive(Clone, Copy, Debug, PartialEq, Eq)] pub enum Freshness { UpToDate, AsItStands, UpToDateSoon }
/// A row: `key`, `value`, `document` are JSON texts. `error` ("not_found") for a missing key of keys=[…]; then id and value are None.
#[derive(Clone, Debug, Default)] pub struct Row { pub id: Option<String>, pub key: String, pub value: Option<String>, pub document: Option<String>, pub error: Option<&'static str> }
/// Rows of _all_docs or of a view, read bit by bit from one snapshot; owned, Send, may be moved between threads. Bounded memory: call `next_rows` until it gives an empty vector.
pub struct Rows { pub total_rows: Option<u64>, pub offset: Option<u64>, pub update_sequence: Option<String>, /** true: rows are reductions (no id; no total_rows in the answer) */ pub reduced: bool }
impl Rows { pub fn next_rows(&mut self, max_rows: usize) -> Result<Vec<Row>> { unimplemented!() } }

#[derive(Clone, Debug, Default)] pub struct ChangesQuery { pub since: Since, pub descending: bool, pub limit: Option<u64>, pub include_documents: bool, pub conflicts: bool, pub attachments: bool, pub all_leaves: bool /* style=all_docs */, pub ids: Option<Vec<String>> /* filter=_doc_ids */, pub design_only: bool /* filter=_design */ }
#[derive(Clone, Debug, Default)] pub enum Since { #[default] Beginning, Now, At(String) }
#[derive(Clone, Debug)] pub struct Change { pub sequence: String, pub number: u64, pub id: String, pub revisions: Vec<String>, pub deleted: bool, pub document: Option<String> }
/// Changes after `since` as of one snapshot.
pub struct Changes { pub last_sequence: String, pub pending: u64 }
impl Changes { pub fn next_changes(&mut self, max: usize) -> Result<Vec<Change>> { unimplemented!() } }

#[derive(Clone, Debug)] pub struct RevisionsDifference { pub missing: Vec<String>, pub possible_ancestors: Vec<String> }

impl Database {
    pub fn name(&self) -> String { unimplemented!() }
    pub fn info(&self) -> Result<DatabaseInfo> { unimplemented!() }
    pub fn read(&self, id: &str, options: &ReadOptions) -> Result<Document> { unimplemented!() }
    pub fn open_revisions(&self, id: &str, which: &OpenRevisions, options: &ReadOptions) -> Result<Vec<OpenRevision>> { unimplemented!() }
    /// One atomic batch. Results are in the order of the edits; Replicated edits never conflict.
    pub fn update(&self, edits: Vec<Edit>, mode: EditMode) -> Result<Update> { unimplemented!() }
    /// COPY: reads `source` (revision optional) and returns the edit that writes it under another id.
    pub fn copy_edit(&self, source: &str, source_revision: Option<&str>, destination: &str, destination_revision: Option<&str>) -> Result<Edit> { unimplemented!() }
    pub fn read_local(&self, id: &str) -> Result<Document> { unimplemented!() }            // id with its "_local/" prefix
    pub fn write_local(&self, id: &str, json: &[u8], delete: bool, revision: Option<&str>) -> Result<Update> { unimplemented!() }
    pub fn all_documents(self: &Arc<Self>, query: RowQuery) -> Result<Rows> { unimplemented!() }
    pub fn local_documents(self: &Arc<Self>, query: RowQuery) -> Result<Rows> { unimplemented!() }
    pub fn design_documents(self: &Arc<Self>, query: RowQuery) -> Result<Rows> { unimplemented!() }
    pub fn view(self: &Arc<Self>, design: &str, view: &str, query: RowQuery) -> Result<Rows> { unimplemented!() }
    pub fn view_info(self: &Arc<Self>, design: &str) -> Result<Value> { unimplemented!() }  // _design/x/_info
    pub fn changes(self: &Arc<Self>, query: &ChangesQuery) -> Result<Changes> { unimplemented!() }
    /// Wakes when a later change is visible; the value is the latest visible change number.
    pub fn watch(&self) -> tokio::sync::watch::Receiver<u64> { unimplemented!() }
    pub fn change_number_text(&self, number: u64) -> String { unimplemented!() }
    pub fn revisions_difference(&self, wanted: &[(String, Vec<String>)]) -> Result<Vec<(String, RevisionsDifference)>> { unimplemented!() }
    pub fn open_attachment(&self, id: &str, name: &str, revision: Option<&str>) -> Result<AttachmentReader> { unimplemented!() }
    pub fn store_content(&self, bytes: &[u8], content_type: &str) -> Result<Content> { unimplemented!() }
    pub fn upload(&self, content_type: &str) -> Result<Upload> { unimplemented!() }
    pub fn set_revision_limit(&self, limit: usize) -> Result<()> { unimplemented!() }
    /// `_security` as CouchDB clients know it; {} before it was set.
    pub fn security(&self) -> Result<Value> { unimplemented!() }
    pub fn set_security(&self, security: &Value) -> Result<()> { unimplemented!() }
    pub fn compact(&self) -> Result<()> { unimplemented!() }
    pub fn purge_infos(&self) -> Result<()> { unimplemented!() }
}
