//! Linked documents: an emitted value may name the document that its row is to bring, and a revision of it.

use scrinium_database::Result;
use scrinium_document::json::{JsonText, stored_value};
use serde_json::Value;

use super::{Documents, ViewRows};

/// Which document a row brings.
#[derive(Debug, PartialEq, Eq)]
enum Link {
    /// The one that emitted it.
    Own,
    /// This one, or this revision of it; without an id, of the one that emitted it.
    Named { id: Option<String>, revision: Option<String> },
    /// The value names something that is no document.
    Nothing,
}

impl Link {
    /// What a value names, by `_id` and `_rev`.
    fn of(value_json: &str) -> Self {
        let may_name = value_json.starts_with('{')
            && (value_json.contains("\"_id\"") || value_json.contains("\"_rev\""));
        let Some(Value::Object(members)) = may_name.then(|| stored_value(value_json)).flatten() else {
            return Self::Own;
        };
        let text = |name: &str| match members.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(()),
        };
        match (text("_id"), text("_rev")) {
            (Ok(None), Ok(None)) => Self::Own,
            (Ok(id), Ok(revision)) => Self::Named { id, revision },
            _ => Self::Nothing,
        }
    }
}

impl ViewRows {
    /// The document that a row of the document `id` brings, if documents are asked for: JSON `null` where it is not there
    /// or may not be read.
    pub(super) fn document_of(&self, id: &str, value_json: &str) -> Result<Option<JsonText>> {
        let Some(Documents { snapshot, options, access }) = &self.documents else { return Ok(None) };
        let link = if self.definition.script().is_some() { Link::of(value_json) } else { Link::Own };
        let found = match link {
            Link::Nothing => None,
            Link::Own => self.database.read_at(snapshot, id, options, access)?,
            Link::Named { id: named, revision } => {
                let id = named.as_deref().unwrap_or(id);
                let named = (id, revision.as_deref());
                let read = self.database.read_linked(snapshot, named, options, access);
                self.database.pass_over(id, read)?.flatten()
            }
        };
        Ok(Some(found.map_or_else(JsonText::default, |document| document.json)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_names_a_document_by_its_own_members() {
        let named = |id: Option<&str>, revision: Option<&str>| Link::Named {
            id: id.map(str::to_owned),
            revision: revision.map(str::to_owned),
        };
        for (value, expected) in [
            ("null", Link::Own),
            ("{\"a\":{\"_id\":\"x\"}}", Link::Own),
            ("[{\"_id\":\"x\"}]", Link::Own),
            ("{\"_id\":\"x\"}", named(Some("x"), None)),
            ("{\"_rev\":\"1-a\"}", named(None, Some("1-a"))),
            ("{\"_rev\":\"1-a\",\"_id\":\"x\"}", named(Some("x"), Some("1-a"))),
            ("{\"_id\":null}", Link::Nothing),
            ("{\"_id\":\"x\",\"_rev\":7}", Link::Nothing),
        ] {
            assert_eq!(Link::of(value), expected, "{value}");
        }
    }
}
