//! A stored revision, taken apart as far as a fixup asks.

use scrinium_database::keys::Digest;
use scrinium_database::leaf::Leaf;
use scrinium_document::{FieldValue, Revision, json};

/// What a stored revision says.
pub(super) struct LeafSummary {
    pub(super) revision: Revision,
    pub(super) deleted: bool,
    pub(super) created_ms: u64,
    pub(super) contents: Vec<Digest>,
    pub(super) external_bytes: u64,
}

impl LeafSummary {
    /// `None`: something of it cannot be read.
    pub(super) fn of(id: &str, record: &[u8]) -> Option<Self> {
        let leaf = Leaf::decode(id, record).ok()?;
        let fields = leaf.fields(id).ok()?;
        let is_json = |value: &FieldValue<'_>| {
            value.json().is_none_or(|json| json::check(json, json::NESTING_MAX).is_ok())
        };
        if !fields.iter().all(|(_, value)| is_json(&value)) {
            return None;
        }
        Some(Self {
            revision: leaf.parsed_revision(id).ok()?,
            deleted: leaf.deleted,
            created_ms: leaf.created_ms,
            contents: leaf.contents(id).ok()?,
            external_bytes: leaf.external_bytes(id).ok()?,
        })
    }
}
