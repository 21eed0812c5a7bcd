//! What a client knows of one of its documents.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use serde_json::{Map, Value, json};

/// An attachment's bytes follow from these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) seed: u64,
    pub(crate) length: usize,
}

impl Attachment {
    pub(crate) fn random(random: &mut StdRng) -> Self {
        let longest = if random.random_ratio(1, 10) { 150_000 } else { 8_000 };
        Self { seed: random.random(), length: random.random_range(0..longest) }
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        StdRng::seed_from_u64(self.seed).fill_bytes(&mut bytes);
        bytes
    }

    pub(crate) fn inline(self) -> Value {
        json!({"content_type": "application/octet-stream", "data": STANDARD.encode(self.bytes())})
    }
}

/// One state of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// `None` where the server could not say it any more.
    pub(crate) revision: Option<String>,
    /// The fields follow from it, together with the client; 0 where there is no document.
    pub(crate) version: u64,
    /// There was a document, and it was deleted.
    pub(crate) deleted: bool,
    pub(crate) attachments: BTreeMap<String, Attachment>,
}

impl State {
    pub(crate) fn deleted() -> Self {
        Self { deleted: true, ..Self::default() }
    }

    pub(crate) fn is_present(&self) -> bool {
        self.version > 0
    }

    /// The fields of the document.
    pub(crate) fn fields(&self, client: u64) -> Map<String, Value> {
        let mut random = StdRng::seed_from_u64(client << 32 | self.version);
        // Short ones stand in the record, long ones next to it.
        let length = if random.random_ratio(1, 4) { 6_000 } else { 600 };
        let text: String =
            (0..random.random_range(0..length)).map(|_| random.random_range('a'..='z')).collect();
        let Value::Object(fields) = json!({
            "Form": if random.random_ratio(1, 10) { "Paper" } else { "Note" },
            "Client": client,
            "Version": self.version,
            "Size": text.len(),
            "Body": text,
        }) else {
            unreachable!()
        };
        fields
    }

    /// Whether the document that the server gave is in this state, whatever its revision.
    pub(crate) fn has_content_of(&self, document: &Value, client: u64) -> bool {
        let Some(document) = document.as_object() else { return !self.is_present() };
        let fields: Map<String, Value> = document
            .iter()
            .filter(|(name, _)| !name.starts_with('_'))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let stubs = document.get("_attachments").and_then(Value::as_object);
        let found: BTreeMap<&str, usize> = stubs
            .into_iter()
            .flatten()
            .map(|(name, stub)| (name.as_str(), usize::try_from(stub["length"].as_u64().unwrap()).unwrap()))
            .collect();
        let expected: BTreeMap<&str, usize> =
            self.attachments.iter().map(|(name, attachment)| (name.as_str(), attachment.length)).collect();
        self.is_present() && fields == self.fields(client) && found == expected
    }
}

/// A document that one client alone writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    pub(crate) database: usize,
    /// The last state that was acknowledged or seen.
    pub(crate) settled: State,
    /// A later state that was sent and not acknowledged.
    pub(crate) maybe: Option<State>,
}
