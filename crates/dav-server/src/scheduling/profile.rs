//! What somebody wants done with invitations, and who sees their free time: a document of the mail database.

use scrinium_calendar::address::comparable;
use scrinium_calendar::itip::{Autoprocess, AutoprocessAction, FilingRule, SenderRule};
use scrinium_calendar::rooms::{OwnerRule, RoomRules};
use scrinium_database::{Access, Database, Result};
use scrinium_directory::Person;
use serde_json::{Map, Value};

use crate::document::read;

/// The id of the document.
pub(crate) const PROFILE: &str = "calendarprofile";

/// Bookings of a resource at once.
const LANES_MAX: usize = 1_000;

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
    /// It is a room or another resource, which is booked.
    pub(crate) resource: Option<RoomRules>,
}

impl Profile {
    /// What somebody has said; the usual where they have said nothing, or what cannot be read. A room of the directory is one without
    /// saying so itself.
    pub(crate) fn of(database: &Database, person: &Person) -> Result<Self> {
        let stored = read(database, PROFILE, &READER)?.map(|(_, fields)| fields);
        let Some(resource) = &person.resource else {
            return Ok(stored.map(|fields| Self::of_fields(&fields)).unwrap_or_default());
        };
        let mut fields = stored.unwrap_or_default();
        fields.entry("Resource").or_insert_with(|| Value::from(resource.kind.word()));
        if let Some(seats) = resource.capacity {
            fields.entry("Capacity").or_insert_with(|| Value::from(seats));
        }
        Ok(Self::of_fields(&fields))
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
        let resource = matches!(text("Resource").as_str(), "room" | "resource").then(|| resource_of(fields));
        // Who may write to a resource may book it, as far as its rules go.
        let filing = if resource.is_some() { FilingRule::Authenticated } else { filing };
        Self { filing, autoprocess: Autoprocess { from, action }, busy, resource }
    }
}

/// The rules of a resource. What cannot be read opens nothing: a rule for who may book that is not known is for nobody.
fn resource_of(fields: &Map<String, Value>) -> RoomRules {
    let number = |name: &str| fields.get(name).and_then(Value::as_u64);
    let rule = fields.get("Booking").map(|rule| rule.as_str().unwrap_or("?"));
    let bookers = || named(fields, "Bookers");
    let rule = match rule {
        None | Some("everybody") => OwnerRule::None,
        Some("owners-approve") => OwnerRule::OwnersApprove,
        Some("only") => OwnerRule::Only(bookers()),
        Some("only-others-ask") => OwnerRule::OnlyOthersAsk(bookers()),
        Some(_) => OwnerRule::Disabled,
    };
    let seconds = |name: &str, unit_s: i64| {
        number(name).and_then(|number| i64::try_from(number).ok()).map(|number| number.saturating_mul(unit_s))
    };
    RoomRules {
        capacity: number("Capacity").map(|seats| u32::try_from(seats).unwrap_or(u32::MAX)),
        owners: named(fields, "Owners"),
        rule,
        ahead_s: seconds("BookingAheadDays", 86_400),
        longest_s: seconds("LongestBookingMinutes", 60),
        refuses_series: fields.get("BooksSeries") == Some(&Value::Bool(false)),
        lanes: number("BookingsAtOnce")
            .map_or(1, |count| usize::try_from(count).unwrap_or(1).clamp(1, LANES_MAX)),
        conflicts_percent: number("ConflictsPercent")
            .map_or(0, |percent| u8::try_from(percent.min(100)).unwrap_or(0)),
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

    fn of(fields: &Value) -> Profile {
        Profile::of_fields(fields.as_object().unwrap())
    }

    #[test]
    fn what_nobody_can_read_is_the_usual_and_opens_nothing() {
        for odd in [json!({}), json!({"BusyAccess": 1, "AutoProcess": ["accept"], "FileInvitations": {}})] {
            let profile = of(&odd);
            assert_eq!(profile.filing, FilingRule::Known);
            assert_eq!(profile.autoprocess, Autoprocess::default());
            assert_eq!(profile.busy, BusyRule::People);
        }
        assert_eq!(of(&json!({"BusyAccess": "bob@acme.example"})).busy, BusyRule::Only(Vec::new()));
        assert_eq!(
            of(&json!({"BusyAccess": ["Bob@acme.example"]})).busy,
            BusyRule::Only(vec!["bob@acme.example".to_owned()])
        );
        assert_eq!(
            of(&json!({"AutoProcess": "delegate", "AutoProcessFrom": "everybody"})).autoprocess.action,
            None
        );
    }
}
