//! Capabilities that are hidden from everybody, from some people, or from clients that do not get along with them.

use scrinium_imap::{Capability, CapabilitySet};

/// A capability that is hidden: `NAME` from everybody, `NAME person:SHORTNAME` from somebody, `NAME client:WORD` from
/// clients that call themselves so, or have the word in their name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenCapability {
    capability: Capability,
    from: HiddenFrom,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HiddenFrom {
    Everybody,
    Person(String),
    Client(String),
}

impl HiddenCapability {
    /// Reads a line; `None` if it names no capability, or nobody.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (name, from) = text.split_once(' ').unwrap_or((text, ""));
        let named = |kind: &str| {
            let name = from.trim().strip_prefix(kind)?.to_lowercase();
            Some(name).filter(|name| !name.is_empty())
        };
        let from = match from.trim() {
            "" => HiddenFrom::Everybody,
            _ => named("person:")
                .map(HiddenFrom::Person)
                .or_else(|| named("client:").map(HiddenFrom::Client))?,
        };
        Some(Self { capability: Capability::parse(name)?, from })
    }
}

/// All that is hidden.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hiding(Vec<HiddenCapability>);

impl Hiding {
    pub(crate) fn new(hidden: Vec<HiddenCapability>) -> Self {
        Self(hidden)
    }

    pub(crate) fn hidden_from_everybody(&self) -> CapabilitySet {
        self.of(|from| matches!(from, HiddenFrom::Everybody))
    }

    pub(crate) fn hidden_from_person(&self, short_name: &str) -> CapabilitySet {
        let short_name = short_name.to_lowercase();
        self.of(|from| matches!(from, HiddenFrom::Person(name) if *name == short_name))
    }

    /// From a client, by what it has said of itself (RFC 2971).
    pub(crate) fn hidden_from_client(&self, fields: &[(String, Option<String>)]) -> CapabilitySet {
        let name = fields.iter().find(|(field, _)| field.eq_ignore_ascii_case("name"));
        let Some(name) = name.and_then(|(_, name)| name.as_ref()) else { return CapabilitySet::NONE };
        let name = name.to_lowercase();
        self.of(|from| matches!(from, HiddenFrom::Client(word) if name.contains(word.as_str())))
    }

    fn of(&self, is_meant: impl Fn(&HiddenFrom) -> bool) -> CapabilitySet {
        self.0.iter().filter(|hidden| is_meant(&hidden.from)).map(|hidden| hidden.capability).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn each_hears_what_is_hidden_from_them_alone() {
        let lines = ["COMPRESS=DEFLATE", "qresync person:Ada", "IMAP4rev2 client:outlook"];
        let hiding = Hiding::new(lines.iter().map(|line| HiddenCapability::parse(line).unwrap()).collect());
        let only = |capability| CapabilitySet::NONE.with(capability);
        assert_eq!(hiding.hidden_from_everybody(), only(Capability::Compress));
        assert_eq!(hiding.hidden_from_person("ada"), only(Capability::Qresync));
        assert_eq!(hiding.hidden_from_person("bob"), CapabilitySet::NONE);
        let named = |name: &str| [("version".to_owned(), None), ("Name".to_owned(), Some(name.to_owned()))];
        assert_eq!(hiding.hidden_from_client(&named("Microsoft Outlook")), only(Capability::Imap4Rev2));
        assert_eq!(hiding.hidden_from_client(&named("mutt")), CapabilitySet::NONE);
        for wrong in ["", "NOTHING", "IDLE somebody", "IDLE person:", "IDLE port:143"] {
            assert_eq!(HiddenCapability::parse(wrong), None, "{wrong}");
        }
    }
}
