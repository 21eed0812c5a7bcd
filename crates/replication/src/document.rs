//! A revision on its way, of which only the attachments are looked at.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use scrinium_document::json::{self, JsonText, JsonWriter, NESTING_MAX};
use serde_json::Value;

use crate::error::{ReplicationError, Result};

/// A revision of a document as its source gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceDocument {
    /// The document.
    pub id: String,
    /// The revision.
    pub revision: String,
    /// All of it as JSON, with its history, attachments as stubs.
    pub json: Bytes,
    /// Its attachments.
    pub attachments: Vec<Stub>,
    /// The history, newest first, as far as the target may know of it; empty without attachments.
    pub path: Vec<String>,
}

/// An attachment as the document tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stub {
    /// Its name.
    pub name: String,
    /// Its MIME type.
    pub content_type: String,
    /// Bytes of its content as it is moved: of the gzip, where `is_encoded`.
    pub length: u64,
    /// Bytes of what it stands for.
    decoded_length: u64,
    /// The generation in which it came.
    pub revpos: u64,
    /// Digest of its content as it is moved: `md5-` and base64. None where the source keeps it as gzip, the digest is of that,
    /// and it is moved decoded.
    pub digest: Option<String>,
    /// Whether the source keeps it as gzip, and it is moved so.
    pub is_encoded: bool,
}

impl Stub {
    /// The same, moved as what it stands for, to a target that would not know of the gzip.
    #[must_use]
    pub fn decoded(self) -> Self {
        if !self.is_encoded {
            return self;
        }
        Self { length: self.decoded_length, digest: None, is_encoded: false, ..self }
    }
}

impl SourceDocument {
    /// A revision of `id` from JSON, a part of `text` (so that nothing is copied).
    ///
    /// # Errors
    /// No JSON, or another document.
    pub fn parse(id: &str, json: Bytes) -> Result<Self> {
        let text = std::str::from_utf8(&json).map_err(|_| wrong(id, "is not UTF-8"))?;
        let members = json::members(text, NESTING_MAX)?.ok_or_else(|| wrong(id, "is no JSON object"))?;
        let (mut found_id, mut revision, mut attachments, mut history) = (None, None, "", "");
        for (name, raw) in members {
            match &*name {
                "_id" => found_id = json::string(raw),
                "_rev" => revision = json::string(raw).map(Cow::into_owned),
                "_attachments" => attachments = raw,
                "_revisions" => history = raw,
                _ => {}
            }
        }
        if found_id.as_deref() != Some(id) {
            return Err(wrong(id, "came as another document"));
        }
        let revision = revision.ok_or_else(|| wrong(id, "has no revision"))?;
        let attachments = if attachments.is_empty() { Vec::new() } else { stubs(id, attachments)? };
        let path = if attachments.is_empty() { Vec::new() } else { path(history) };
        Ok(Self { id: id.to_owned(), revision, json, attachments, path })
    }

    /// The attachments that the target has not, where it has these leaves.
    #[must_use]
    pub fn missing_attachments(&self, known: &[String]) -> Vec<Stub> {
        let nearest = self.path.iter().find(|revision| known.contains(revision));
        let generation = nearest.map_or(0, |revision| generation(revision));
        self.attachments.iter().filter(|stub| stub.revpos > generation).cloned().collect()
    }

    /// The same with the contents of these attachments in it.
    ///
    /// # Errors
    /// It cannot be taken apart.
    pub fn with_inline(&self, contents: &[(Stub, Bytes)]) -> Result<Self> {
        self.rewritten(|name, stub| {
            let Some((_, content)) = contents.iter().find(|(stub, _)| stub.name == name) else { return };
            for outdated in ["stub", "digest", "length", "encoding", "encoded_length", "follows"] {
                stub.remove(outdated);
            }
            stub.insert("data".to_owned(), STANDARD.encode(content).into());
        })
    }

    /// The same saying that the contents of these attachments follow, in the order of the document.
    ///
    /// # Errors
    /// It cannot be taken apart.
    pub fn with_following(&self, follow: &[Stub]) -> Result<Self> {
        self.rewritten(|name, stub| {
            let Some(followed) = follow.iter().find(|stub| stub.name == name) else { return };
            stub.remove("stub");
            let outdated =
                if followed.is_encoded { &[][..] } else { &["digest", "encoding", "encoded_length"] };
            for member in outdated {
                stub.remove(*member);
            }
            stub.insert("follows".to_owned(), true.into());
        })
    }

    fn rewritten(&self, change: impl Fn(&str, &mut serde_json::Map<String, Value>)) -> Result<Self> {
        let text = std::str::from_utf8(&self.json).map_err(|_| wrong(&self.id, "is not UTF-8"))?;
        let text = JsonText::parse(text)?;
        let members = text.members().ok_or_else(|| wrong(&self.id, "is no JSON object"))?;
        let mut writer = JsonWriter::with_capacity(self.json.len());
        for (name, value) in members {
            writer.literal(if writer.is_empty() { "{" } else { "," }).string(&name).literal(":");
            if name != "_attachments" {
                writer.part(value);
                continue;
            }
            let mut stubs = json::parse_value(value.as_str(), NESTING_MAX)?;
            for (name, stub) in stubs.as_object_mut().into_iter().flatten() {
                if let Some(stub) = stub.as_object_mut() {
                    change(name, stub);
                }
            }
            writer.serialized(&stubs);
        }
        writer.literal("}");
        Ok(Self { json: writer.into_string().into(), ..self.clone() })
    }
}

fn stubs(id: &str, raw: &str) -> Result<Vec<Stub>> {
    let Value::Object(members) = json::parse_value(raw, NESTING_MAX)? else {
        return Err(wrong(id, "has attachments that are no JSON object"));
    };
    let mut stubs = Vec::with_capacity(members.len());
    for (name, stub) in members {
        let text = |member: &str| stub.get(member).and_then(Value::as_str);
        let number = |member: &str| stub.get(member).and_then(Value::as_u64);
        let decoded_length =
            number("length").ok_or_else(|| wrong(id, "has an attachment without a length"))?;
        let is_plain = text("encoding").is_none_or(|encoding| encoding == "identity");
        let encoded_length = number("encoded_length").filter(|_| text("encoding") == Some("gzip"));
        let is_encoded = encoded_length.is_some();
        stubs.push(Stub {
            content_type: text("content_type").unwrap_or("application/octet-stream").to_owned(),
            length: encoded_length.unwrap_or(decoded_length),
            decoded_length,
            revpos: number("revpos").unwrap_or(u64::MAX),
            digest: text("digest").filter(|_| is_plain || is_encoded).map(str::to_owned),
            is_encoded,
            name,
        });
    }
    Ok(stubs)
}

fn path(history: &str) -> Vec<String> {
    let Ok(history) = json::parse_value(history, NESTING_MAX) else { return Vec::new() };
    let start = history.get("start").and_then(Value::as_u64).unwrap_or_default();
    let ids = history.get("ids").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    ids.zip(0..start).map(|(id, back)| format!("{}-{id}", start - back)).collect()
}

fn generation(revision: &str) -> u64 {
    revision.split_once('-').and_then(|(number, _)| number.parse().ok()).unwrap_or_default()
}

fn wrong(id: &str, what: &str) -> ReplicationError {
    let id: String = id.chars().take(100).collect();
    ReplicationError::protocol(format!("The document {id:?} {what}."))
}
