//! What the sender of a message asked for in its envelope, beyond whom it is from and for: the memo keeps it in one field until the
//! message is delivered or passed on.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::memo::field;

/// What an envelope asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendWishes {
    /// Who handed it in, by the id of the person, where somebody had logged in.
    pub submitter: Option<String>,
    /// ENVID (RFC 3461 §4.4), decoded.
    pub envelope_id: Option<String>,
    /// RET (RFC 3461 §4.3): `FULL` or `HDRS`.
    pub return_content: Option<String>,
    /// SMTPUTF8 (RFC 6531).
    pub utf8: bool,
    /// The text has bytes beyond ASCII (RFC 6152).
    pub eight_bit: bool,
    /// REQUIRETLS (RFC 8689).
    pub require_tls: bool,
    /// `TLS-Required: No` (RFC 8689 §5).
    pub tls_not_required: bool,
    /// Not before this time, in milliseconds since 1970 (RFC 4865).
    pub release_ms: Option<u64>,
    /// By the address of each recipient of whom something was asked.
    pub recipients: BTreeMap<String, RecipientWishes>,
}

/// What an envelope asks for one recipient.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecipientWishes {
    /// NOTIFY (RFC 3461 §4.1): `NEVER`, or some of `SUCCESS`, `FAILURE` and `DELAY` with commas between them.
    pub notify: Option<String>,
    /// ORCPT (RFC 3461 §4.2), decoded: a type, a semicolon and an address.
    pub original: Option<String>,
}

impl SendWishes {
    /// The value of [`field::ENVELOPE`]; `None` where nothing was asked for.
    #[must_use]
    pub fn to_value(&self) -> Option<Value> {
        let mut value = Map::new();
        let mut put = |name: &str, text: &Option<String>| {
            if let Some(text) = text {
                value.insert(name.to_owned(), Value::from(text.as_str()));
            }
        };
        put("Submitter", &self.submitter);
        put("Id", &self.envelope_id);
        put("Return", &self.return_content);
        for (name, is_set) in self.flags() {
            if is_set {
                value.insert(name.to_owned(), Value::Bool(true));
            }
        }
        if let Some(release_ms) = self.release_ms {
            value.insert("ReleaseMs".to_owned(), Value::from(release_ms));
        }
        if !self.recipients.is_empty() {
            let of = |wishes: &RecipientWishes| json!({"Notify": wishes.notify, "Original": wishes.original});
            let recipients: Map<String, Value> =
                self.recipients.iter().map(|(address, wishes)| (address.clone(), of(wishes))).collect();
            value.insert("Recipients".to_owned(), Value::Object(recipients));
        }
        (!value.is_empty()).then_some(Value::Object(value))
    }

    /// What a memo says. What is of another type counts as not there.
    #[must_use]
    pub fn of_memo(memo: &Map<String, Value>) -> Self {
        let Some(Value::Object(value)) = memo.get(field::ENVELOPE) else { return Self::default() };
        let text_of = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let flag = |name: &str| value.get(name).and_then(Value::as_bool).unwrap_or_default();
        let recipients = value.get("Recipients").and_then(Value::as_object).into_iter().flatten();
        let recipient = |(address, wishes): (&String, &Value)| {
            let wishes =
                RecipientWishes { notify: text_of(wishes, "Notify"), original: text_of(wishes, "Original") };
            (address.clone(), wishes)
        };
        Self {
            submitter: text("Submitter"),
            envelope_id: text("Id"),
            return_content: text("Return"),
            utf8: flag("Utf8"),
            eight_bit: flag("EightBit"),
            require_tls: flag("RequireTls"),
            tls_not_required: flag("TlsNotRequired"),
            release_ms: value.get("ReleaseMs").and_then(Value::as_u64),
            recipients: recipients.map(recipient).collect(),
        }
    }

    const fn flags(&self) -> [(&'static str, bool); 4] {
        [
            ("Utf8", self.utf8),
            ("EightBit", self.eight_bit),
            ("RequireTls", self.require_tls),
            ("TlsNotRequired", self.tls_not_required),
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::{RecipientWishes, SendWishes};
    use crate::memo::field;

    #[test]
    fn what_is_asked_for_is_read_as_it_was_written() {
        assert_eq!(SendWishes::default().to_value(), None);
        assert_eq!(SendWishes::of_memo(&Map::new()), SendWishes::default());
        let wishes = SendWishes {
            submitter: Some("person:ada".to_owned()),
            envelope_id: Some("QQ314159".to_owned()),
            return_content: Some("HDRS".to_owned()),
            utf8: true,
            eight_bit: false,
            require_tls: true,
            tls_not_required: false,
            release_ms: Some(1_795_684_851_000),
            recipients: [(
                "bob@far.example".to_owned(),
                RecipientWishes { notify: Some("NEVER".to_owned()), original: None },
            )]
            .into(),
        };
        let memo =
            [(field::ENVELOPE.to_owned(), wishes.to_value().unwrap_or_default())].into_iter().collect();
        assert_eq!(SendWishes::of_memo(&memo), wishes);
    }
}
