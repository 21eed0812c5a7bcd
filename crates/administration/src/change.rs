//! Which names become which, and what that makes of a field.

use std::collections::BTreeMap;

use scrinium_directory::fold_name;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Takes the last place in a list of those who may, where it would otherwise say that everybody may. Nobody can be called so: names
/// of people and groups do not begin with an underscore.
pub const NOBODY: &str = "_removed";

/// Names that become others, or are taken away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NameChange {
    /// By the name as names are compared.
    names: BTreeMap<String, Option<String>>,
}

impl NameChange {
    /// A change of these names. One that is new for another one stays as it is, so that a change that is made twice is the same.
    #[must_use]
    pub fn new<'a>(names: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> Self {
        let mut change = Self::default();
        for (old, new) in names {
            change.names.entry(fold_name(old)).or_insert_with(|| new.map(str::to_owned));
        }
        let new: Vec<String> = change.names.values().flatten().map(|name| fold_name(name)).collect();
        let is_itself = |old: &str, new: Option<&String>| new.is_some_and(|new| fold_name(new) == old);
        change.names.retain(|old, becomes| {
            !old.is_empty() && (!new.contains(old) || is_itself(old, becomes.as_ref()))
        });
        change
    }

    /// Whether a text is one of the names.
    #[must_use]
    pub fn is_meant(&self, name: &str) -> bool {
        self.names.contains_key(&fold_name(name))
    }

    /// What a name becomes: another one, or nothing; `None` where it is not one of the names.
    #[must_use]
    pub fn becomes(&self, name: &str) -> Option<Option<&str>> {
        self.names.get(&fold_name(name)).map(Option::as_deref)
    }

    /// Whether the names are taken away.
    #[must_use]
    pub fn removes(&self) -> bool {
        !self.names.is_empty() && self.names.values().all(Option::is_none)
    }

    /// The same names and the one that they would have become, all of them taken away.
    #[must_use]
    pub fn into_removal(self) -> Self {
        let new: Vec<String> = self.names.values().flatten().map(|name| fold_name(name)).collect();
        let all = self.names.into_keys().chain(new);
        Self { names: all.map(|name| (name, None)).collect() }
    }

    /// The value of a field of names after the change; `None` where it stays as it is. With `closes`, an empty field would
    /// mean everybody, so that the last name's place is taken by [`NOBODY`].
    #[must_use]
    pub fn changed(&self, value: &Value, closes: bool) -> Option<Value> {
        match value {
            Value::String(name) => {
                let after = self.becomes(name)?.unwrap_or(if closes { NOBODY } else { "" });
                (after != name).then(|| Value::from(after))
            }
            Value::Array(names) => self.changed_list(names, closes).map(Value::from),
            _ => None,
        }
    }

    /// The same for a list. Other elements stay, in their order.
    #[must_use]
    pub fn changed_list(&self, names: &[Value], closes: bool) -> Option<Vec<Value>> {
        let mut after: Vec<Value> = Vec::with_capacity(names.len());
        let mut is_changed = false;
        for element in names {
            let Some(becomes) = element.as_str().and_then(|name| self.becomes(name)) else {
                after.push(element.clone());
                continue;
            };
            let new = becomes.map(Value::from);
            is_changed |= new.as_ref() != Some(element);
            // Both names may stand there.
            if let Some(new) = new
                && !names.contains(&new)
                && !after.contains(&new)
            {
                after.push(new);
            }
        }
        if closes && is_changed && after.is_empty() {
            after.push(Value::from(NOBODY));
        }
        is_changed.then_some(after)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("ada"),
            Just("Ada "),
            Just("bob"),
            Just("Ada  Lovelace"),
            Just("eve"),
            Just("*"),
            Just("")
        ]
        .prop_map(str::to_owned)
    }

    proptest! {
        #[test]
        fn a_change_leaves_no_old_name_keeps_others_and_is_the_same_when_made_twice(
            names in proptest::collection::vec(name(), 0..6), removes: bool, closes: bool,
        ) {
            let new = (!removes).then_some("adele");
            let change = NameChange::new([("ada", new), ("Ada Lovelace", new)]);
            let value = json!(names);
            let after = change.changed(&value, closes).unwrap_or_else(|| value.clone());
            let list: Vec<&str> = after.as_array().unwrap().iter().filter_map(Value::as_str).collect();
            prop_assert!(!list.iter().any(|name| change.is_meant(name)));
            prop_assert_eq!(change.changed(&after, closes), None);
            let others: Vec<&str> = names.iter().map(String::as_str).filter(|name| !change.is_meant(name)).collect();
            let kept: Vec<&str> = list.iter().copied().filter(|name| *name != "adele" && *name != NOBODY).collect();
            prop_assert_eq!(&others, &kept);
            prop_assert_eq!(list.contains(&"adele"), !removes && others.len() < names.len());
            if closes && !names.is_empty() {
                prop_assert!(!list.is_empty(), "what was closed is open");
            }
        }
    }

    #[test]
    fn names_that_follow_one_another_do_not_run_on() {
        let change = NameChange::new([("a", Some("b")), ("b", Some("c"))]);
        assert_eq!(change.changed(&json!(["a", "b"]), true), Some(json!(["b"])));
        assert_eq!(change.changed(&json!("b"), true), None);
        let removal = change.into_removal();
        assert_eq!(removal.changed(&json!("b"), true), Some(json!(NOBODY)));
        assert_eq!(removal.changed(&json!({"a": "b"}), true), None);
    }
}
