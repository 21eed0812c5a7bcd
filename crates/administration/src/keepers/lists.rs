//! Access control lists and `_security`.

use std::cell::Cell;

use scrinium_database::{AccessList, Database, Result};
use scrinium_views::OpenDatabase;
use serde_json::{Map, Value};

use crate::change::{NOBODY, NameChange};
use crate::keeper::{NameKeeper, NameOrder, Piece};

/// Access control lists and `_security` of databases.
pub(crate) struct AccessLists;

impl NameKeeper for AccessLists {
    fn title(&self) -> &'static str {
        "access lists"
    }

    fn change(&self, database: &OpenDatabase, order: &NameOrder<'_>, _place: Option<&str>) -> Result<Piece> {
        let changed = change_lists(database, order, false)?;
        Ok(Piece { changed: u64::from(changed), ..Piece::default() })
    }
}

/// Lets new names have what the old ones have, which keep it. Whether something was changed.
pub(crate) fn add_new_names(database: &OpenDatabase, order: &NameOrder<'_>) -> Result<bool> {
    change_lists(database, order, true)
}

fn change_lists(database: &Database, order: &NameOrder<'_>, keeps_old: bool) -> Result<bool> {
    let is_list = Cell::new(false);
    database.change_access_list(|list| {
        let after = changed_list(&list, order, keeps_old);
        is_list.set(after.is_some());
        after.unwrap_or(list)
    })?;
    let is_security = database.change_security(|security| changed_security(security, order, keeps_old))?;
    Ok(is_list.get() || is_security)
}

/// Whether an entry may be for the one who is meant.
fn is_for(entry: &Map<String, Value>, is_of_person: bool) -> bool {
    let other = if is_of_person { "group" } else { "person" };
    entry.get("kind").and_then(Value::as_str) != Some(other)
}

fn changed_list(list: &AccessList, order: &NameOrder<'_>, keeps_old: bool) -> Option<AccessList> {
    let mut json = list.to_json();
    let entries = json.get_mut("entries")?.as_array_mut()?;
    let before = entries.clone();
    let mut after: Vec<Value> = Vec::with_capacity(before.len());
    let mut given: Vec<(String, Value)> = Vec::new();
    for entry in &before {
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
        let becomes = entry
            .as_object()
            .filter(|entry| is_for(entry, order.is_of_person))
            .and_then(|_| order.names.becomes(name));
        let Some(becomes) = becomes else {
            after.push(entry.clone());
            continue;
        };
        if let Some(new) = becomes {
            let mut renamed = entry.clone();
            renamed.as_object_mut()?.insert("name".to_owned(), Value::from(new));
            given.push((new.to_owned(), renamed));
        }
        if keeps_old {
            after.push(entry.clone());
        }
    }
    for (new, entry) in given {
        let kind = entry.get("kind").cloned();
        let is_same = |other: &Value| {
            other.get("name").and_then(Value::as_str) == Some(new.as_str())
                && other.get("kind").cloned() == kind
        };
        match after.iter_mut().find(|other| is_same(other)) {
            // Nobody was called so until now: what stands there is of somebody who is gone. Once it is given, it stays.
            Some(other) if keeps_old => *other = entry,
            Some(_) => {}
            None => after.push(entry),
        }
    }
    if after == before {
        return None;
    }
    *entries = after;
    match AccessList::parse(&json) {
        Ok(list) => Some(list),
        // It has as many entries as there may be: then the old names go at once.
        Err(_) if keeps_old => changed_list(list, order, false),
        Err(_) => None,
    }
}

fn changed_security(security: &Value, order: &NameOrder<'_>, keeps_old: bool) -> Option<Value> {
    let mut after = security.clone();
    let members = after.as_object_mut()?;
    let list_name = if order.is_of_person { "names" } else { "roles" };
    for (group, closes) in [("admins", false), ("members", true), ("readers", true)] {
        let Some(group) = members.get_mut(group).and_then(Value::as_object_mut) else { continue };
        let Some(list) = group.get(list_name).and_then(Value::as_array) else { continue };
        if let Some(changed) = changed_names(list, order.names, keeps_old) {
            group.insert(list_name.to_owned(), Value::from(changed));
        } else {
            continue;
        }
        let is_empty = ["names", "roles"]
            .iter()
            .all(|list| group.get(*list).and_then(Value::as_array).is_none_or(Vec::is_empty));
        // Members of whom there are none are everybody.
        if closes && is_empty {
            group.insert("names".to_owned(), Value::from(vec![NOBODY]));
        }
    }
    (after != *security).then_some(after)
}

fn changed_names(list: &[Value], names: &NameChange, keeps_old: bool) -> Option<Vec<Value>> {
    let changed = names.changed_list(list, false)?;
    if !keeps_old {
        return Some(changed);
    }
    let mut both = list.to_vec();
    let new = changed.into_iter().filter(|name| !list.contains(name));
    both.extend(new);
    (both != list).then_some(both)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;

    fn order(names: &NameChange) -> NameOrder<'_> {
        NameOrder { names, name: "ada", new_name: Some("adele"), is_of_person: true, fields: &[] }
    }

    #[test]
    fn an_entry_is_first_given_to_both_and_then_to_the_new_name_alone() {
        let names = NameChange::new([("ada", Some("adele"))]);
        let list = AccessList::parse(&json!({"default": {"level": "reader"}, "entries": [
            {"name": "Ada", "kind": "person", "level": "manager", "roles": ["HR"]},
            {"name": "ada", "kind": "group", "level": "author"},
            {"name": "adele", "kind": "person", "level": "no_access"},
            {"name": "bob", "level": "editor", "create": false},
        ]}));
        let list = list.unwrap();
        let both = changed_list(&list, &order(&names), true).unwrap();
        assert_eq!(changed_list(&both, &order(&names), true), None, "twice is once");
        let level = |list: &AccessList, name: &str| list.level_of(Some(name), &[]).text();
        assert_eq!(
            (level(&both, "ada"), level(&both, "adele"), level(&both, "bob")),
            ("manager", "manager", "editor")
        );
        let after = changed_list(&both, &order(&names), false).unwrap();
        assert_eq!(
            (level(&after, "ada"), level(&after, "adele"), level(&after, "bob")),
            ("reader", "manager", "editor")
        );
        assert_eq!(after.level_of(Some("x"), &["ada".to_owned()]).text(), "author", "the group stays");
        assert_eq!(changed_list(&after, &order(&names), false), None);
    }

    #[test]
    fn a_database_is_not_opened_by_taking_the_last_name_away() {
        let names = NameChange::new([("ada", None)]);
        let security = json!({"admins": {"names": ["ada"], "roles": ["_admin"]}, "members": {"names": ["Ada"], "roles": []}});
        let after = changed_security(&security, &order(&names), false).unwrap();
        assert_eq!(
            after,
            json!({"admins": {"names": [], "roles": ["_admin"]}, "members": {"names": [NOBODY], "roles": []}})
        );
        assert_eq!(changed_security(&after, &order(&names), false), None);
        assert_eq!(changed_security(&json!({"members": {"names": []}}), &order(&names), false), None);
    }
}
