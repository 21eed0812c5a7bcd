//! What somebody wants done with invitations, and who sees their free time: a document of the mail database.

use scrinium_calendar::address::comparable;
use scrinium_calendar::itip::{Autoprocess, AutoprocessAction, FilingRule, SenderRule};
use scrinium_database::{Access, Database, Result};
use serde_json::{Map, Value};

use crate::document::read;

/// The id of the document.
pub(crate) const PROFILE: &str = "calendarprofile";

/// More addresses of one field are not looked at.
const NAMED_MAX: usize = 1_000;

static READER: Access = Access::of_the_server("reading what somebody wants done with invitations");

/// Who sees when somebody is free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum BusyRule {
    /// People of the same domain, and those who find them in the directory.
    #[default]
    People,
    Nobody,
    /// People with these addresses.
    Only(Vec<String>),
}

/// The settings of one person.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profile {
    pub(crate) filing: FilingRule,
    pub(crate) autoprocess: Autoprocess,
    pub(crate) busy: BusyRule,
}

impl Profile {
    /// What somebody has said; the usual where they have said nothing, or what cannot be read.
    pub(crate) fn of(database: &Database) -> Result<Self> {
        Ok(read(database, PROFILE, &READER)?.map(|(_, fields)| Self::of_fields(&fields)).unwrap_or_default())
    }

    fn of_fields(fields: &Map<String, Value>) -> Self {
        let text =
            |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_lowercase).unwrap_or_default();
        let filing = match text("FileInvitations").as_str() {
            "nobody" => FilingRule::Nobody,
            "authenticated" => FilingRule::Authenticated,
            _ => FilingRule::Known,
        };
        let action = match text("AutoProcess").as_str() {
            "accept-if-free" => Some(AutoprocessAction::AcceptIfFree),
            "accept" => Some(AutoprocessAction::AcceptAlways),
            "decline-if-busy" => Some(AutoprocessAction::DeclineIfBusy),
            "delegate" => Some(comparable(&text("DelegateTo")))
                .filter(|to| to.contains('@'))
                .map(AutoprocessAction::DelegateTo),
            _ => None,
        };
        let from = match (text("AutoProcessFrom").as_str(), named(fields, "AutoProcessFrom")) {
            ("everybody", _) => SenderRule::Everybody,
            (_, list) if !list.is_empty() => SenderRule::Only(list),
            _ => SenderRule::Nobody,
        };
        let busy = match (text("BusyAccess").as_str(), named(fields, "BusyAccess")) {
            ("nobody", _) => BusyRule::Nobody,
            ("" | "people", list) if list.is_empty() => BusyRule::People,
            (_, list) => BusyRule::Only(list),
        };
        Self { filing, autoprocess: Autoprocess { from, action }, busy }
    }
}

/// Addresses in a field that is a list of texts.
fn named(fields: &Map<String, Value>, name: &str) -> Vec<String> {
    let listed = fields.get(name).and_then(Value::as_array).into_iter().flatten();
    listed.filter_map(Value::as_str).take(NAMED_MAX).map(comparable).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(fields: Value) -> Profile {
        Profile::of_fields(fields.as_object().unwrap())
    }

    #[test]
    fn what_nobody_can_read_is_the_usual_and_opens_nothing() {
        for odd in [json!({}), json!({"BusyAccess": 1, "AutoProcess": ["accept"], "FileInvitations": {}})] {
            let profile = of(odd);
            assert_eq!(profile.filing, FilingRule::Known);
            assert_eq!(profile.autoprocess, Autoprocess::default());
            assert_eq!(profile.busy, BusyRule::People);
        }
        assert_eq!(of(json!({"BusyAccess": "bob@acme.example"})).busy, BusyRule::Only(Vec::new()));
        assert_eq!(
            of(json!({"BusyAccess": ["Bob@acme.example"]})).busy,
            BusyRule::Only(vec!["bob@acme.example".to_owned()])
        );
        assert_eq!(
            of(json!({"AutoProcess": "delegate", "AutoProcessFrom": "everybody"})).autoprocess.action,
            None
        );
    }
}
