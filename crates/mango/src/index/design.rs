//! Indexes in design documents, both ways.

use serde_json::{Map, Value, json};

use super::IndexDefinition;
use crate::error::{MangoError, shown};

/// The language of design documents that hold indexes.
const LANGUAGE: &str = "query";

impl IndexDefinition {
    /// The indexes of a design document (with its `_id`). None if its language is not `query`; views that are no
    /// index are left out, as CouchDB does.
    #[must_use]
    pub fn of_design(design: &Value) -> Vec<Self> {
        let id = design.get("_id").and_then(Value::as_str).unwrap_or_default();
        let views = design.get("views").and_then(Value::as_object);
        if design.get("language").and_then(Value::as_str) != Some(LANGUAGE) {
            return Vec::new();
        }
        let views = views.into_iter().flatten();
        views.filter_map(|(name, view)| Self::from_view(id, name, view).ok()).collect()
    }

    /// The design document with this index in it; `design` is as it stands, none if it is new or was deleted.
    ///
    /// None if it holds the very same index already: then CouchDB answers `exists`.
    ///
    /// # Errors
    /// [`MangoError::InvalidDesignLanguage`] if it is of another language; [`MangoError::PartitionedMismatch`].
    pub fn put_into_design(&self, design: Option<&Value>) -> Result<Option<Value>, MangoError> {
        let mut members = match design {
            Some(design) => query_members(design)?,
            None => self.new_design(),
        };
        let partitioned = members.get("options").and_then(|options| options.get("partitioned"));
        if partitioned.and_then(Value::as_bool) != self.partitioned {
            return Err(MangoError::PartitionedMismatch(self.design.clone()));
        }
        let views = members.entry("views").or_insert_with(|| json!({}));
        if !views.is_object() {
            *views = json!({});
        }
        if let Value::Object(views) = views {
            views.insert(self.name.clone(), self.view());
        }
        let members = Value::Object(members);
        Ok((design != Some(&members)).then_some(members))
    }

    /// The design document without the index called `name`; none if nothing is left, so that it is to be deleted.
    ///
    /// # Errors
    /// [`MangoError::InvalidDesignLanguage`]; [`MangoError::IndexNotFound`].
    pub fn remove_from_design(design: &Value, name: &str) -> Result<Option<Value>, MangoError> {
        let mut members = query_members(design)?;
        let views = members.get_mut("views").and_then(Value::as_object_mut);
        let views = views.filter(|views| views.contains_key(name));
        let views = views.ok_or_else(|| MangoError::IndexNotFound(name.to_owned()))?;
        views.shift_remove(name);
        if views.is_empty() {
            members.shift_remove("views");
        }
        let anything = members.keys().any(|member| !matches!(member.as_str(), "_id" | "_rev" | "language"));
        Ok(anything.then_some(Value::Object(members)))
    }

    fn new_design(&self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("_id".to_owned(), Value::from(self.design.as_str()));
        members.insert("language".to_owned(), Value::from(LANGUAGE));
        if let Some(partitioned) = self.partitioned {
            members.insert("options".to_owned(), json!({ "partitioned": partitioned }));
        }
        members
    }
}

fn query_members(design: &Value) -> Result<Map<String, Value>, MangoError> {
    match design.get("language") {
        Some(Value::String(language)) if language == LANGUAGE => {
            Ok(design.as_object().cloned().unwrap_or_default())
        }
        other => Err(MangoError::InvalidDesignLanguage(other.map_or_else(|| "none".to_owned(), shown))),
    }
}
