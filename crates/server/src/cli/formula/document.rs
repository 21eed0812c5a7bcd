//! A JSON document as formulas see it.

use scrinium_formula::{AttachmentInfo, Fields, Text, Value as FormulaValue};
use serde_json::{Map, Value};

/// A document that is in no database: it has no dates of its own.
#[derive(Debug, Default)]
pub(super) struct JsonDocument {
    members: Map<String, Value>,
    size_bytes: u64,
}

impl JsonDocument {
    /// # Errors
    /// What is wrong with the text, with line and column.
    pub(super) fn read(json: &str) -> Result<Self, String> {
        let size_bytes = json.len() as u64;
        match serde_json::from_str(json) {
            Ok(Value::Object(members)) => Ok(Self { members, size_bytes }),
            Ok(_) => Err("a document is a JSON object: {\"Form\": \"Memo\", …}".to_owned()),
            Err(error) => Err(format!("the document is not JSON: {error}")),
        }
    }

    /// A member that is no field, such as `_id`.
    fn text(&self, member: &str) -> Option<&str> {
        self.members.get(member).and_then(Value::as_str)
    }

    /// Members with an underscore before them are not the document's but the database's.
    fn fields(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.members.iter().filter(|(name, _)| !name.starts_with('_'))
    }
}

impl Fields for JsonDocument {
    fn field(&self, name: &str) -> Option<FormulaValue> {
        let wanted = name.to_lowercase();
        let mut fields = self.fields();
        fields
            .find(|(name, _)| name.to_lowercase() == wanted)
            .and_then(|(_, json)| FormulaValue::from_json(json))
    }

    fn id(&self) -> &str {
        self.text("_id").unwrap_or("")
    }

    fn field_names(&self) -> Option<Vec<Text>> {
        Some(self.fields().map(|(name, _)| Text::new(name)).collect())
    }

    fn attachments(&self) -> Vec<AttachmentInfo> {
        let attachments = self.members.get("_attachments").and_then(Value::as_object);
        let attachments = attachments.into_iter().flatten().map(|(name, attachment)| AttachmentInfo {
            name: name.clone(),
            length: attachment.get("length").and_then(Value::as_u64).unwrap_or(0),
        });
        attachments.collect()
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn parent(&self) -> Option<String> {
        let mut fields = self.fields();
        let parent = fields.find(|(name, _)| name.eq_ignore_ascii_case("$REF"))?;
        parent.1.as_str().map(str::to_owned)
    }
}
