//! A document's members as they are written: what is not changed keeps its bytes.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// The members of a JSON object, in their order.
pub(crate) struct RawDocument(Vec<(String, Box<RawValue>)>);

impl RawDocument {
    /// The value of a member.
    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        let (_, value) = self.0.iter().find(|(member, _)| member == name)?;
        serde_json::from_str(value.get()).ok()
    }

    /// Gives a member that is there another value.
    pub(crate) fn replace(&mut self, name: &str, value: &Value) -> serde_json::Result<()> {
        let raw = serde_json::value::to_raw_value(value)?;
        if let Some((_, kept)) = self.0.iter_mut().find(|(member, _)| member == name) {
            *kept = raw;
        }
        Ok(())
    }
}

impl Serialize for RawDocument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            members.serialize_entry(name, value)?;
        }
        members.end()
    }
}

impl<'de> Deserialize<'de> for RawDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = RawDocument;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawDocument, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(RawDocument(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_changed_keeps_its_bytes() {
        let text = r#"{"b":1e400,"a":123456789012345678901234567890.10,"Readers":["ada"],"c":"\u00e4"}"#;
        let mut document: RawDocument = serde_json::from_str(text).unwrap();
        assert_eq!(document.get("Readers"), Some(serde_json::json!(["ada"])));
        document.replace("Readers", &serde_json::json!(["adele"])).unwrap();
        assert_eq!(serde_json::to_string(&document).unwrap(), text.replace("ada", "adele"));
    }
}
