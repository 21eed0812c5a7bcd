//! A stored leaf as CouchDB's JSON.

use std::collections::BTreeSet;

use base64::Engine as _;
use scrinium_document::{Fields, Revision};

use super::{Document, ReadOptions};
use crate::content::PIECE_BYTES;
use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::head::Head;
use crate::leaf::{Leaf, StoredAttachment};

/// Writes leaves of one database as JSON.
pub(crate) struct Renderer<'a> {
    database: &'a Database,
    options: &'a ReadOptions,
}

impl<'a> Renderer<'a> {
    pub(crate) const fn new(database: &'a Database, options: &'a ReadOptions) -> Self {
        Self { database, options }
    }

    /// `head` must be given if the options ask for what it knows.
    pub(crate) fn render(&self, id: &str, leaf: &Leaf<'_>, head: Option<&Head>) -> Result<Document> {
        let mut json = Vec::with_capacity(leaf.field_bytes().len() + 256);
        json.extend_from_slice(b"{\"_id\":");
        put_text(&mut json, id);
        json.extend_from_slice(b",\"_rev\":\"");
        json.extend_from_slice(leaf.revision.as_bytes());
        json.push(b'"');
        if leaf.deleted {
            json.extend_from_slice(b",\"_deleted\":true");
        }
        write_fields(&mut json, &leaf.fields(id)?, self.database, id)?;
        if leaf.has_attachments() {
            json.extend_from_slice(b",\"_attachments\":");
            self.write_attachments(&mut json, id, &leaf.attachments(id)?, head)?;
        }
        if let Some(head) = head {
            self.write_history(&mut json, head, &leaf.parsed_revision(id)?);
        }
        json.push(b'}');
        // Fields were checked to be UTF-8 when they came.
        let json = String::from_utf8(json).map_err(|_| DatabaseError::damaged("document", id))?;
        Ok(Document { id: id.to_owned(), revision: leaf.revision.to_owned(), deleted: leaf.deleted, json })
    }

    /// What a reader finds as `_attachments`.
    pub(crate) fn attachments(&self, id: &str, leaf: &Leaf<'_>) -> Result<Vec<u8>> {
        let mut json = Vec::new();
        self.write_attachments(&mut json, id, &leaf.attachments(id)?, None)?;
        Ok(json)
    }

    fn write_attachments(
        &self,
        json: &mut Vec<u8>,
        id: &str,
        attachments: &[StoredAttachment],
        head: Option<&Head>,
    ) -> Result<()> {
        let known_up_to = self.known_generation(head)?;
        json.push(b'{');
        for (index, attachment) in attachments.iter().enumerate() {
            if index > 0 {
                json.push(b',');
            }
            put_text(json, &attachment.name);
            json.extend_from_slice(b":{\"content_type\":");
            put_text(json, &attachment.content_type);
            let numbers =
                format!(",\"revpos\":{},\"digest\":\"{}\",", attachment.revpos, attachment.digest_text());
            json.extend_from_slice(numbers.as_bytes());
            let with_content =
                self.options.attachments && known_up_to.is_none_or(|known| attachment.revpos > known);
            if with_content {
                self.write_content(json, id, attachment)?;
            } else {
                json.extend_from_slice(
                    format!("\"length\":{},\"stub\":true}}", attachment.length).as_bytes(),
                );
            }
        }
        json.push(b'}');
        Ok(())
    }

    /// With `atts_since`: the highest generation of those revisions that lie on this document's tree.
    fn known_generation(&self, head: Option<&Head>) -> Result<Option<u64>> {
        let (Some(known), Some(head)) = (&self.options.attachments_since, head) else { return Ok(None) };
        let mut generation = 0;
        for text in known {
            let revision = Revision::parse(text)?;
            if head.tree.contains(&revision) {
                generation = generation.max(revision.generation());
            }
        }
        Ok(Some(generation))
    }

    fn write_content(&self, json: &mut Vec<u8>, id: &str, attachment: &StoredAttachment) -> Result<()> {
        let content = self.database.common.contents.reader(&attachment.digest)?;
        if content.length() != attachment.length {
            return Err(DatabaseError::damaged("attachment", id));
        }
        json.extend_from_slice(b"\"data\":\"");
        // Base64 takes three bytes at a time, so pieces are joined at multiples of three.
        let mut carried: Vec<u8> = Vec::new();
        let mut offset = 0;
        let base64 = base64::engine::general_purpose::STANDARD;
        loop {
            let piece = content.read(offset, PIECE_BYTES)?;
            if piece.is_empty() {
                break;
            }
            offset += piece.len() as u64;
            carried.extend_from_slice(&piece);
            let whole = carried.len() - carried.len() % 3;
            let rest = carried.split_off(whole);
            json.extend_from_slice(base64.encode(&carried).as_bytes());
            carried = rest;
        }
        json.extend_from_slice(base64.encode(&carried).as_bytes());
        json.extend_from_slice(b"\"}");
        Ok(())
    }

    fn write_history(&self, json: &mut Vec<u8>, head: &Head, revision: &Revision) {
        let options = self.options;
        let path = head.tree.path(revision).unwrap_or_default();
        if options.revisions {
            let start = path.first().map_or(0, Revision::generation);
            json.extend_from_slice(format!(",\"_revisions\":{{\"start\":{start},\"ids\":[").as_bytes());
            put_list(json, path.iter().map(digest_of));
            json.extend_from_slice(b"]}");
        }
        if options.revisions_info {
            json.extend_from_slice(b",\"_revs_info\":[");
            for (index, revision) in path.iter().enumerate() {
                let status = match head.tree.leaf(revision) {
                    Some(leaf) if leaf.deleted => "deleted",
                    Some(_) => "available",
                    None => "missing",
                };
                let comma = if index > 0 { "," } else { "" };
                json.extend_from_slice(
                    format!("{comma}{{\"rev\":\"{revision}\",\"status\":\"{status}\"}}").as_bytes(),
                );
            }
            json.push(b']');
        }
        for (wanted, name, deleted) in [
            (options.conflicts, "_conflicts", false),
            (options.deleted_conflicts, "_deleted_conflicts", true),
        ] {
            let others = if wanted { other_leaves(head, revision, deleted) } else { Vec::new() };
            if !others.is_empty() {
                json.extend_from_slice(format!(",\"{name}\":[").as_bytes());
                put_list(json, others.into_iter());
                json.push(b']');
            }
        }
        if options.local_sequence {
            json.extend_from_slice(b",\"_local_seq\":");
            put_text(json, &self.database.sequence_text(head.change_number));
        }
    }
}

/// The leaves beside `revision`, tombstones or not, the highest revision first.
pub(crate) fn other_leaves(head: &Head, revision: &Revision, deleted: bool) -> Vec<String> {
    let leaves = head.tree.leaves().filter(|leaf| leaf.deleted == deleted && leaf.revision != revision);
    let others: BTreeSet<String> = leaves.map(|leaf| leaf.revision.to_string()).collect();
    others.into_iter().rev().collect()
}

/// Appends `,"name":value` for each field; values that are stored outside are fetched.
pub(crate) fn write_fields(
    json: &mut Vec<u8>,
    fields: &Fields<'_>,
    database: &Database,
    id: &str,
) -> Result<()> {
    fields.write_members(json, false, |outside, json| {
        let value = database.common.contents.read_all(&outside.digest)?;
        if value.len() as u64 != outside.length {
            return Err(DatabaseError::damaged("field", id));
        }
        json.extend_from_slice(&value);
        Ok(())
    })
}

fn digest_of(revision: &Revision) -> String {
    revision.to_string().split_once('-').map(|(_, digest)| digest.to_owned()).unwrap_or_default()
}

fn put_list(json: &mut Vec<u8>, texts: impl Iterator<Item = String>) {
    for (index, text) in texts.enumerate() {
        if index > 0 {
            json.push(b',');
        }
        put_text(json, &text);
    }
}

/// Appends a JSON string.
pub(crate) fn put_text(json: &mut Vec<u8>, text: &str) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(json, text);
}
