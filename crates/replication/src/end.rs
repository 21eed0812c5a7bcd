//! What a replication asks of the databases at its two ends.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::document::SourceDocument;
use crate::error::Result;
use crate::filter::Filter;

/// Work that an end does.
pub type Work<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A database that documents come from or go to.
pub trait End: Send + Sync + 'static {
    /// How the end is shown to people: never with credentials.
    fn shown(&self) -> &str;

    /// Whether it keeps attachments that come as gzip so, as far as is known since it was asked for [`End::info`].
    fn takes_encoded(&self) -> bool {
        false
    }

    /// What makes this end another than others, for the name of the checkpoints.
    fn identity(&self) -> String;

    /// Whether the database is there and may be asked, and its last change.
    fn info(&self) -> Work<'_, EndInfo>;

    /// Makes the database. One that is there already is no error.
    fn create(&self) -> Work<'_, ()>;

    /// The text of a filter function, if there is such a document.
    fn filter_code<'a>(&'a self, filter: &'a str) -> Work<'a, Option<String>>;

    /// A checkpoint of this name, as it was written.
    fn checkpoint<'a>(&'a self, name: &'a str) -> Work<'a, Option<Value>>;

    /// Writes a checkpoint, whatever is there under its name.
    fn put_checkpoint<'a>(&'a self, name: &'a str, checkpoint: Value) -> Work<'a, ()>;

    /// The next changes. With [`ChangesRequest::wait`] it does not come back before there is one, or a while has passed.
    fn changes<'a>(&'a self, request: &'a ChangesRequest) -> Work<'a, ChangesPage>;

    /// Which of these revisions are not known here.
    fn difference<'a>(&'a self, changes: &'a [Change]) -> Work<'a, Vec<Missing>>;

    /// Revisions of documents, their attachments as stubs. What was superseded meanwhile comes as what took its place;
    /// what is not there or may not be read is left out.
    fn documents<'a>(&'a self, wanted: &'a [Missing]) -> Work<'a, Vec<SourceDocument>>;

    /// The content of an attachment from an offset on.
    fn attachment<'a>(&'a self, place: &'a AttachmentPlace, offset: u64) -> Work<'a, Box<dyn ContentStream>>;

    /// Stores documents whose attachments are stubs or stand in them. What is refused is given back.
    fn write<'a>(&'a self, documents: &'a [SourceDocument]) -> Work<'a, Vec<Refusal>>;

    /// Stores a document with the contents of attachments, each read when it is needed.
    fn write_with<'a>(
        &'a self,
        document: &'a SourceDocument,
        contents: Vec<IncomingAttachment>,
    ) -> Work<'a, Option<Refusal>>;
}

/// What an end says of its database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndInfo {
    /// Its last change.
    pub update_sequence: String,
}

/// Which changes are wanted of a source.
#[derive(Clone, Debug)]
pub struct ChangesRequest {
    /// After this sequence; from the first if there is none.
    pub since: Option<String>,
    /// At most this many.
    pub limit: usize,
    /// Wait until there is one.
    pub wait: bool,
    /// Of each document the winner alone.
    pub winners_only: bool,
    /// Which documents.
    pub filter: Arc<Filter>,
}

/// Changes, and where the next ones begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangesPage {
    /// The changes.
    pub changes: Vec<Change>,
    /// Where the next ones begin.
    pub last_sequence: String,
    /// How many are left, where that is known.
    pub pending: Option<u64>,
    /// Whether these were the last ones at the time.
    pub is_last: bool,
}

/// A document that changed, and its leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The document.
    pub id: String,
    /// Its leaves, or its winner.
    pub revisions: Vec<String>,
}

/// Revisions of a document that the target has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The document.
    pub id: String,
    /// The revisions.
    pub revisions: Vec<String>,
    /// Leaves of the target that they may build on.
    pub possible_ancestors: Vec<String>,
}

/// Where an attachment is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachmentPlace {
    /// The document.
    pub id: String,
    /// Its revision.
    pub revision: String,
    /// The attachment's name.
    pub name: String,
    /// Whether it is read as the gzip that the source keeps.
    pub is_encoded: bool,
}

/// An attachment on its way into the target.
pub struct IncomingAttachment {
    /// Its name.
    pub name: String,
    /// Its MIME type.
    pub content_type: String,
    /// Bytes of its content.
    pub length: u64,
    /// Whether its content is gzip, and to be kept so.
    pub is_encoded: bool,
    /// Its content.
    pub content: Box<dyn ContentStream>,
}

/// Bytes that come one piece after the other.
pub trait ContentStream: Send {
    /// The next bytes; `None` after the last.
    fn next_piece(&mut self) -> Work<'_, Option<Bytes>>;
}

/// A document that the target does not take, whatever is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The document.
    pub id: String,
    /// The revision.
    pub revision: String,
    /// Why, as the target says it.
    pub reason: String,
}
