//! Attachments: large contents on their way in, and reading at any offset.

use bytes::Bytes;
use scrinium_contents::{Content, HeldContent, Upload};
use scrinium_document::{Revision, fit_attachment_name, shown_media_type};
use scrinium_store::Family;

use crate::access::Access;
use crate::access::readable::{Looked, ReadableLeaf};
use crate::database::Database;
use crate::edit::content_of;
use crate::error::{DatabaseError, Result};
use crate::keys::{self, Digest};
use crate::leaf::{Leaf, StoredAttachment};

/// A stored attachment, readable at any offset.
pub struct AttachmentReader {
    /// Its name in the document.
    pub name: String,
    /// Its MIME type.
    pub content_type: String,
    /// CouchDB's digest: `md5-` and base64.
    pub digest: String,
    /// The name of its content.
    pub content_name: Digest,
    /// Bytes of its content, as they are read.
    pub length: u64,
    /// Bytes that are stored, where it came as gzip: it is read as what that stands for, unless `is_encoded`.
    pub encoded_length: Option<u64>,
    /// Whether it is read as gzip.
    pub is_encoded: bool,
    /// The document's revision that it was found in.
    pub revision: String,
    content: HeldContent,
}

impl AttachmentReader {
    fn new(attachment: StoredAttachment, revision: String, content: HeldContent) -> Self {
        Self {
            digest: attachment.digest_text(),
            content_name: attachment.digest,
            name: attachment.name,
            content_type: attachment.content_type,
            length: content.length(),
            encoded_length: attachment.decoded_length.map(|_| content.stored_length()),
            is_encoded: false,
            revision,
            content,
        }
    }

    /// The same, read as it is stored: as gzip, where it came so.
    #[must_use]
    pub fn into_encoded(self) -> Self {
        let is_encoded = self.encoded_length.is_some();
        let length = self.encoded_length.unwrap_or(self.length);
        Self { length, is_encoded, content: self.content.as_stored(), ..self }
    }

    /// At most `max_bytes` from `offset`; empty at the end.
    ///
    /// # Errors
    /// What the store reports.
    pub fn read(&self, offset: u64, max_bytes: usize) -> Result<Bytes> {
        Ok(self.content.read(offset, max_bytes)?)
    }
}

/// What a leaf says of one of its attachments.
fn named(leaf: &ReadableLeaf<'_>, name: &str) -> Result<StoredAttachment> {
    let found = leaf.attachments(leaf.id())?.into_iter().find(|attachment| attachment.name == name);
    found.ok_or_else(|| DatabaseError::NotFound { reason: "Document is missing attachment".to_owned() })
}

impl Database {
    /// An attachment of a document, or of one of its leaves by revision.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if the document, its revision or the attachment is not there, and what
    /// the store reports.
    pub fn open_attachment(
        &self,
        id: &str,
        name: &str,
        revision: Option<&str>,
        access: &Access,
    ) -> Result<AttachmentReader> {
        let (attachment, revision) = self.find_attachment(id, name, revision, access)?;
        let content = self.context.contents.opened(&attachment.content())?;
        Ok(AttachmentReader::new(attachment, revision, content))
    }

    /// As [`open_attachment`](Self::open_attachment), for one of many that are read one after the other: it is opened
    /// when it is first read, and stays until then whatever becomes of its document.
    ///
    /// # Errors
    /// As [`open_attachment`](Self::open_attachment).
    pub fn hold_attachment(
        &self,
        id: &str,
        name: &str,
        revision: Option<&str>,
        access: &Access,
    ) -> Result<AttachmentReader> {
        let (attachment, revision) = self.find_attachment(id, name, revision, access)?;
        let content = self.context.contents.held(&attachment.content())?;
        Ok(AttachmentReader::new(attachment, revision, content))
    }

    /// What is stored of an attachment, and the revision that it was found in.
    fn find_attachment(
        &self,
        id: &str,
        name: &str,
        revision: Option<&str>,
        access: &Access,
    ) -> Result<(StoredAttachment, String)> {
        self.check_there()?;
        let snapshot = self.store().snapshot();
        let stored = match revision {
            None => snapshot.get(Family::Scan, &keys::winner(self.number(), id))?,
            Some(text) => {
                let revision = Revision::parse(text)?;
                let head = self.head_to_read(&snapshot, id, access)?.ok_or_else(DatabaseError::missing)?;
                access.readable_head(self, &snapshot, id, &head)?.record(self, &snapshot, id, &revision)?
            }
        };
        let Some(stored) = stored else {
            if revision.is_none() {
                access.look_past(self, &snapshot, (id, Looked::AtWinner));
            }
            return Err(DatabaseError::missing());
        };
        let leaf = access.check_read(self, id, Leaf::decode(id, &stored)?)?;
        if leaf.deleted && revision.is_none() {
            return Err(DatabaseError::deleted());
        }
        Ok((named(&leaf, name)?, leaf.revision.to_owned()))
    }

    /// A content of bytes at hand, for an edit to refer to.
    ///
    /// # Errors
    /// [`DatabaseError::TooLarge`], and what the store reports.
    pub fn store_content(&self, bytes: &[u8], content_type: &str) -> Result<Content> {
        content_of(bytes, content_type, &self.context.contents, &self.context.options())
    }

    /// A content that comes bit by bit, for an edit to refer to.
    #[must_use]
    pub fn upload(&self, content_type: &str) -> Upload {
        Upload::new(&self.context.contents, content_type, self.context.options().attachment_max_bytes)
    }

    /// An attachment of a document, or of one of its leaves by revision, for another document of any database to share:
    /// nothing of its content is read.
    ///
    /// # Errors
    /// As [`Database::open_attachment`].
    pub fn share_attachment(
        &self,
        id: &str,
        name: &str,
        revision: Option<&str>,
        access: &Access,
    ) -> Result<crate::edit::NewAttachment> {
        let (attachment, _) = self.find_attachment(id, name, revision, access)?;
        let content = self.context.contents.share(&attachment.content())?;
        Ok(crate::edit::NewAttachment {
            // What was stored before names and types were checked is shared as what may be stored now.
            name: fit_attachment_name(&attachment.name).into_owned(),
            content_type: shown_media_type(&attachment.content_type).to_owned(),
            content,
        })
    }
}
