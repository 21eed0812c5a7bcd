//! One leaf revision of a document as it is stored: its fields and what it says of its attachments.

#![allow(missing_docs, reason = "the names say it")]

use scrinium_contents::wire::{Input, put_bytes, put_number};
use scrinium_contents::{KnownContent, md5_text};
use scrinium_document::{Fields, Revision};

use crate::error::{DatabaseError, Result};
use crate::keys::Digest;

const VERSION: u8 = 1;

/// A leaf that says of each attachment how many bytes it stands for, because some came as gzip.
const VERSION_WITH_ENCODED: u8 = 2;

const DELETED: u8 = 1;

/// What a leaf says of one attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAttachment {
    pub name: String,
    pub content_type: String,
    /// Generation of the revision that brought it.
    pub revpos: u64,
    /// Bytes that are stored.
    pub length: u64,
    /// Bytes that it stands for, where it came as gzip and is stored so.
    pub decoded_length: Option<u64>,
    pub digest: Digest,
    pub md5: [u8; 16],
}

impl StoredAttachment {
    pub const fn content(&self) -> KnownContent {
        KnownContent {
            digest: self.digest,
            md5: self.md5,
            length: self.length,
            decoded_length: self.decoded_length,
        }
    }

    /// Bytes that a client sees.
    pub const fn shown_length(&self) -> u64 {
        match self.decoded_length {
            Some(decoded) => decoded,
            None => self.length,
        }
    }

    pub fn digest_text(&self) -> String {
        md5_text(&self.md5)
    }
}

/// A stored leaf, borrowed from its bytes; attachments and fields are decoded when they are asked for.
#[derive(Clone, Copy)]
pub struct Leaf<'a> {
    pub revision: &'a str,
    pub deleted: bool,
    /// When the document was made on this server, and when this revision was, in ms since 1970.
    pub created_ms: u64,
    pub modified_ms: u64,
    attachments: &'a [u8],
    has_encoded: bool,
    fields: &'a [u8],
}

/// What a leaf's record is made of.
pub struct LeafParts<'a> {
    pub revision: &'a Revision,
    pub deleted: bool,
    pub created_ms: u64,
    pub modified_ms: u64,
    pub attachments: &'a [StoredAttachment],
    /// A record of [`scrinium_document::FieldsBuf`].
    pub fields: &'a [u8],
}

impl LeafParts<'_> {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(80 + self.fields.len() + self.attachments.len() * 100);
        let has_encoded = self.attachments.iter().any(|attachment| attachment.decoded_length.is_some());
        out.push(if has_encoded { VERSION_WITH_ENCODED } else { VERSION });
        out.push(if self.deleted { DELETED } else { 0 });
        put_bytes(&mut out, self.revision.to_string().as_bytes());
        put_number(&mut out, self.created_ms);
        put_number(&mut out, self.modified_ms);
        put_bytes(&mut out, &encode_attachments(self.attachments, has_encoded));
        out.extend_from_slice(self.fields);
        out
    }
}

fn encode_attachments(attachments: &[StoredAttachment], has_encoded: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for attachment in attachments {
        put_bytes(&mut out, attachment.name.as_bytes());
        put_bytes(&mut out, attachment.content_type.as_bytes());
        put_number(&mut out, attachment.revpos);
        put_number(&mut out, attachment.length);
        out.extend_from_slice(&attachment.digest);
        out.extend_from_slice(&attachment.md5);
        if has_encoded {
            put_number(&mut out, attachment.decoded_length.map_or(0, |decoded| decoded.saturating_add(1)));
        }
    }
    out
}

impl<'a> Leaf<'a> {
    /// # Errors
    /// [`DatabaseError::Damaged`] naming the document, if the record is damaged.
    pub fn decode(id: &str, bytes: &'a [u8]) -> Result<Self> {
        Self::try_decode(bytes).ok_or_else(|| DatabaseError::damaged("document", id))
    }

    fn try_decode(bytes: &'a [u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        let has_encoded = match input.byte()? {
            VERSION => false,
            VERSION_WITH_ENCODED => true,
            _ => return None,
        };
        let flags = input.byte()?;
        Some(Self {
            deleted: flags & DELETED != 0,
            revision: input.text()?,
            created_ms: input.number()?,
            modified_ms: input.number()?,
            attachments: input.bytes()?,
            has_encoded,
            fields: input.rest(),
        })
    }

    pub fn parsed_revision(&self, id: &str) -> Result<Revision> {
        Revision::parse(self.revision).map_err(|_| DatabaseError::damaged("revision", id))
    }

    pub const fn has_attachments(&self) -> bool {
        !self.attachments.is_empty()
    }

    pub fn attachments(&self, id: &str) -> Result<Vec<StoredAttachment>> {
        let mut input = Input::new(self.attachments);
        let mut attachments = Vec::new();
        while !input.rest().is_empty() {
            let attachment = read_attachment(&mut input, self.has_encoded);
            attachments.push(attachment.ok_or_else(|| DatabaseError::damaged("list of attachments", id))?);
        }
        Ok(attachments)
    }

    pub fn fields(&self, id: &str) -> Result<Fields<'a>> {
        Fields::decode(self.fields).map_err(|_| DatabaseError::damaged("fields", id))
    }

    pub const fn field_bytes(&self) -> &'a [u8] {
        self.fields
    }

    /// The contents that the leaf refers to: its attachments and the values stored outside.
    pub fn contents(&self, id: &str) -> Result<Vec<Digest>> {
        let mut contents: Vec<Digest> =
            self.attachments(id)?.iter().map(|attachment| attachment.digest).collect();
        let fields = self.fields(id)?;
        if fields.has_outside() {
            contents.extend(fields.iter().filter_map(|(_, value)| match value {
                scrinium_document::FieldValue::Outside(outside) => Some(outside.digest),
                scrinium_document::FieldValue::Json(_) => None,
            }));
        }
        Ok(contents)
    }

    /// Bytes of the fields.
    ///
    /// # Errors
    /// As [`Self::fields`].
    pub fn value_bytes(&self, id: &str) -> Result<u64> {
        Ok(self.fields(id)?.value_bytes())
    }

    /// Bytes of the fields and the attachments, before compression and sharing.
    pub fn external_bytes(&self, id: &str) -> Result<u64> {
        let attached: u64 = self.attachments(id)?.iter().map(|attachment| attachment.length).sum();
        Ok(attached + self.fields(id)?.value_bytes())
    }
}

fn read_attachment(input: &mut Input<'_>, has_encoded: bool) -> Option<StoredAttachment> {
    Some(StoredAttachment {
        name: input.text()?.to_owned(),
        content_type: input.text()?.to_owned(),
        revpos: input.number()?,
        length: input.number()?,
        digest: input.array()?,
        md5: input.array()?,
        decoded_length: if has_encoded { input.number()?.checked_sub(1) } else { None },
    })
}
