//! Types of the wire as fields of JSON: as the text that they have in SMTP.

use scrinium_smtp_wire::{EnhancedCode, Mailbox, Notify, OriginalRecipient, Return};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer)
}

fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::<String>::deserialize(deserializer)
}

pub(crate) mod mailbox {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(value: &Mailbox, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Mailbox, D::Error> {
        Mailbox::parse(text(deserializer)?.as_bytes()).map_err(D::Error::custom)
    }
}

pub(crate) mod optional_mailbox {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Mailbox>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Mailbox>, D::Error> {
        let text = optional(deserializer)?;
        text.map(|text| Mailbox::parse(text.as_bytes())).transpose().map_err(D::Error::custom)
    }
}

pub(crate) mod status {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(value: &EnhancedCode, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EnhancedCode, D::Error> {
        match EnhancedCode::split(&text(deserializer)?) {
            Some((code, "")) => Ok(code),
            _ => Err(D::Error::custom("no status code of RFC 3463")),
        }
    }
}

pub(crate) mod return_content {
    use super::*;

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(crate) fn serialize<S: Serializer>(value: &Option<Return>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(Return::Full) => serializer.serialize_str("FULL"),
            Some(Return::Headers) => serializer.serialize_str("HDRS"),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Return>, D::Error> {
        match optional(deserializer)?.as_deref() {
            None => Ok(None),
            Some("FULL") => Ok(Some(Return::Full)),
            Some("HDRS") => Ok(Some(Return::Headers)),
            Some(_) => Err(D::Error::custom("RET is FULL or HDRS")),
        }
    }
}

pub(crate) mod notify {
    use super::*;

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(crate) fn serialize<S: Serializer>(value: &Option<Notify>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Notify>, D::Error> {
        let Some(text) = optional(deserializer)? else { return Ok(None) };
        let mut notify = Notify::default();
        for word in text.split(',').filter(|word| *word != "NEVER") {
            match word {
                "SUCCESS" => notify.success = true,
                "FAILURE" => notify.failure = true,
                "DELAY" => notify.delay = true,
                _ => return Err(D::Error::custom("NOTIFY is NEVER, or of SUCCESS, FAILURE and DELAY")),
            }
        }
        Ok(Some(notify))
    }
}

pub(crate) mod original {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<OriginalRecipient>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            // Decoded: the field is read by people.
            Some(value) => {
                serializer.collect_str(&format_args!("{};{}", value.address_type(), value.address()))
            }
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<OriginalRecipient>, D::Error> {
        let Some(text) = optional(deserializer)? else { return Ok(None) };
        let original = text.split_once(';').and_then(|(kind, address)| OriginalRecipient::new(kind, address));
        original.map(Some).ok_or_else(|| D::Error::custom("ORCPT is a type and an address"))
    }
}
