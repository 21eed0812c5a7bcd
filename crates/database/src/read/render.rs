//! A stored leaf as CouchDB's JSON.

use std::sync::Arc;

use bytes::Bytes;
use scrinium_contents::HeldContent;
use scrinium_document::json::{ContentError, InlineContent, JsonText, JsonWriter};
use scrinium_document::{Fields, Revision};

use super::others::OtherLeaves;
use super::{Document, ReadOptions};
use crate::access::readable::{ReadableHead, ReadableLeaf};
use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::leaf::StoredAttachment;

/// An attachment in a document's JSON.
struct AttachedContent(HeldContent);

impl InlineContent for AttachedContent {
    fn length(&self) -> u64 {
        self.0.length()
    }

    fn read(&self, offset: u64, max_bytes: usize) -> std::result::Result<Bytes, ContentError> {
        Ok(self.0.read(offset, max_bytes)?)
    }
}

/// Writes leaves of one database as JSON.
pub struct Renderer<'a> {
    database: &'a Database,
    options: &'a ReadOptions,
}

impl<'a> Renderer<'a> {
    /// That of a database, for a reader who wants this of each document.
    pub const fn new(database: &'a Database, options: &'a ReadOptions) -> Self {
        Self { database, options }
    }

    /// `head` must be given if the options ask for what it knows.
    pub fn render(&self, leaf: &ReadableLeaf<'_>, head: Option<&ReadableHead<'_>>) -> Result<Document> {
        let id = leaf.id();
        let mut json = self.begun(leaf, head)?;
        if let Some(head) = head {
            self.write_history(&mut json, head, &leaf.parsed_revision(id)?);
        }
        json.literal("}");
        let (id, revision) = (id.to_owned(), leaf.revision.to_owned());
        Ok(Document { id, revision, deleted: leaf.deleted, json: json.into_text() })
    }

    /// The document as map functions see it: with its other leaves, and the number of its last change if that is given.
    pub fn render_for_index(
        &self,
        leaf: &ReadableLeaf<'_>,
        others: &OtherLeaves,
        sequence: Option<u64>,
    ) -> Result<JsonText> {
        let mut json = self.begun(leaf, None)?;
        for (name, revisions) in
            [(",\"_conflicts\":", &others.conflicts), (",\"_deleted_conflicts\":", &others.deleted_conflicts)]
        {
            if !revisions.is_empty() {
                json.literal(name).strings(revisions);
            }
        }
        if let Some(sequence) = sequence {
            json.literal(",\"_local_seq\":").number(sequence);
        }
        json.literal("}");
        Ok(json.into_text())
    }

    /// The document but for its history and its end.
    fn begun(&self, leaf: &ReadableLeaf<'_>, head: Option<&ReadableHead<'_>>) -> Result<JsonWriter> {
        let id = leaf.id();
        let mut json = JsonWriter::with_capacity(leaf.field_bytes().len() + 256);
        json.literal("{\"_id\":").string(id).literal(",\"_rev\":").string(leaf.revision);
        if leaf.deleted {
            json.literal(",\"_deleted\":true");
        }
        write_fields(&mut json, &leaf.fields(id)?, self.database, id)?;
        if leaf.has_attachments() {
            json.literal(",\"_attachments\":");
            self.write_attachments(&mut json, &leaf.attachments(id)?, head)?;
        }
        Ok(json)
    }

    /// What a reader finds as `_attachments`.
    pub fn attachments(&self, leaf: &ReadableLeaf<'_>) -> Result<JsonText> {
        let mut json = JsonWriter::new();
        self.write_attachments(&mut json, &leaf.attachments(leaf.id())?, None)?;
        Ok(json.into_text())
    }

    fn write_attachments(
        &self,
        json: &mut JsonWriter,
        attachments: &[StoredAttachment],
        head: Option<&ReadableHead<'_>>,
    ) -> Result<()> {
        let known_up_to = self.known_generation(head)?;
        json.literal("{");
        for (index, attachment) in attachments.iter().enumerate() {
            json.literal(if index > 0 { "," } else { "" }).string(&attachment.name);
            json.literal(":{\"content_type\":").string(&attachment.content_type);
            json.literal(",\"revpos\":").number(attachment.revpos);
            json.literal(",\"digest\":").string(&attachment.digest_text());
            if self.options.encoding_info && attachment.decoded_length.is_some() {
                json.literal(",\"encoding\":\"gzip\",\"encoded_length\":").number(attachment.length);
            }
            let with_content =
                self.options.gives_contents() && known_up_to.is_none_or(|known| attachment.revpos > known);
            if with_content {
                let content = AttachedContent(self.database.context.contents.held(&attachment.content())?);
                json.literal(",\"data\":").content(Arc::new(content));
            } else {
                json.literal(",\"length\":").number(attachment.shown_length()).literal(",\"stub\":true");
            }
            json.literal("}");
        }
        json.literal("}");
        Ok(())
    }

    /// With `atts_since`: the highest generation of those revisions that lie on this document's tree.
    fn known_generation(&self, head: Option<&ReadableHead<'_>>) -> Result<Option<u64>> {
        let (Some(known), Some(head)) = (&self.options.attachments_since, head) else { return Ok(None) };
        let mut generation = 0;
        for text in known {
            let revision = Revision::parse(text)?;
            if head.contains(&revision) {
                generation = generation.max(revision.generation());
            }
        }
        Ok(Some(generation))
    }

    fn write_history(&self, json: &mut JsonWriter, head: &ReadableHead<'_>, revision: &Revision) {
        let options = self.options;
        let mut path = head.path(revision);
        // A limit that was lowered holds at once, and not only for documents that are edited.
        path.truncate(usize::try_from(self.database.revision_limit()).unwrap_or(usize::MAX));
        if options.revisions {
            let start = path.first().map_or(0, Revision::generation);
            json.literal(",\"_revisions\":{\"start\":").number(start).literal(",\"ids\":");
            json.strings(path.iter().map(|revision| revision.digest().to_string())).literal("}");
        }
        if options.revisions_info {
            json.literal(",\"_revs_info\":[");
            let kept = head.kept(self.database);
            for (index, revision) in path.iter().enumerate() {
                let status = match head.leaf(revision) {
                    Some(leaf) if leaf.deleted => "deleted",
                    Some(_) => "available",
                    None if !kept.contains(revision) => "missing",
                    None if head.is_tombstone(revision) => "deleted",
                    None => "available",
                };
                json.literal(if index > 0 { ",{\"rev\":" } else { "{\"rev\":" })
                    .string(&revision.to_string());
                json.literal(",\"status\":").string(status).literal("}");
            }
            json.literal("]");
        }
        for (wanted, name, deleted) in [
            (options.conflicts, ",\"_conflicts\":", false),
            (options.deleted_conflicts, ",\"_deleted_conflicts\":", true),
        ] {
            let others = if wanted { head.other_leaves(revision, deleted) } else { Vec::new() };
            if !others.is_empty() {
                json.literal(name).strings(others);
            }
        }
        if options.local_sequence {
            json.literal(",\"_local_seq\":").number(head.change_number());
        }
    }
}

/// Appends `,"name":value` for each field; values that are stored outside are fetched.
pub fn write_fields(json: &mut JsonWriter, fields: &Fields<'_>, database: &Database, id: &str) -> Result<()> {
    let damaged = || DatabaseError::damaged_content("field", id);
    fields.write_members(json, false, |outside, json| {
        let value = database.context.contents.read_all(&outside.digest)?;
        if value.len() as u64 != outside.length {
            return Err(damaged());
        }
        json.outside_value(&value).map(|_| ()).map_err(|_| damaged())
    })
}
