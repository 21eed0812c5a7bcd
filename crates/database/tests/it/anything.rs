//! Whatever stands in an access list, or where a reader says where it stopped: taken or refused, and what is taken comes
//! back as it was.

use proptest::prelude::*;
use scrinium_database::{Access, AccessList, ChangesQuery, DatabaseError, InitialAccess, Since};
use serde_json::{Map, Value, json};

use crate::common::{Server, put};

fn word() -> impl Strategy<Value = String> {
    let words = [
        "default",
        "anonymous",
        "entries",
        "name",
        "kind",
        "level",
        "roles",
        "create",
        "delete",
        "ada",
        "sales",
        "ADA",
        "",
        "person",
        "group",
        "no_access",
        "depositor",
        "reader",
        "author",
        "editor",
        "designer",
        "manager",
        "[HR]",
        "*",
    ];
    prop_oneof![8 => prop::sample::select(words.to_vec()).prop_map(str::to_owned), 1 => ".{0,300}"]
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(json!(null)),
        2 => any::<bool>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        6 => word().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn grant() -> impl Strategy<Value = Map<String, Value>> {
    let levels = ["no_access", "depositor", "reader", "author", "editor", "designer", "manager"];
    let roles = prop::collection::vec("[A-Z]{1,2}", 0..3).prop_map(Value::from);
    (prop::sample::select(levels.to_vec()), roles, any::<bool>(), any::<bool>()).prop_map(
        |(level, roles, create, delete)| {
            let json = json!({"level": level, "roles": roles, "create": create, "delete": delete});
            json.as_object().cloned().unwrap_or_default()
        },
    )
}

/// A list that is right, but for one member of one part of it.
fn nearly() -> impl Strategy<Value = Value> {
    let entries = prop::collection::vec(("[a-d]{1,2}", any::<bool>(), grant()), 0..5);
    let domain = prop::option::of(prop_oneof![Just("*".to_owned()), "[a-cA-C]{1,2}\\.example"]);
    let default = (grant(), domain).prop_map(|(mut grant, domain)| {
        grant.extend(domain.map(|domain| ("domain".to_owned(), Value::from(domain))));
        grant
    });
    (
        default,
        grant(),
        entries,
        any::<prop::sample::Index>(),
        prop::option::weighted(0.5, (word(), anything())),
    )
        .prop_map(|(default, anonymous, entries, place, spoilt)| {
            let mut parts = vec![default, anonymous];
            parts.extend(entries.into_iter().map(|(name, is_group, mut grant)| {
                grant.insert("name".to_owned(), name.into());
                grant.insert("kind".to_owned(), if is_group { "group" } else { "person" }.into());
                grant
            }));
            if let Some((member, value)) = spoilt {
                let place = place.index(parts.len());
                parts[place].insert(member, value);
            }
            let entries = parts.split_off(2);
            json!({"default": parts[0], "anonymous": parts[1], "entries": entries})
        })
}

fn check(json: &Value) -> Result<bool, TestCaseError> {
    let list = match AccessList::parse(json) {
        Ok(list) => list,
        Err(error) => {
            let is_told = matches!(error, DatabaseError::Invalid { .. });
            prop_assert!(is_told && error.reason().len() < 2_000, "{error}");
            return Ok(false);
        }
    };
    prop_assert_eq!(&AccessList::parse(&list.to_json()).unwrap(), &list);
    for name in [None, Some("a"), Some(""), Some("ADA")] {
        // Nobody whom nothing names gets more than everybody.
        let level = list.level_of(name, &[]);
        let named = list.to_json()["entries"].as_array().is_some_and(|entries| !entries.is_empty());
        if name.is_some() && !named {
            prop_assert_eq!(level, list.level_of(Some("nobody at all"), &[]));
        }
    }
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scrinium_fault::cases(512)))]

    #[test]
    fn an_access_list_is_refused_or_comes_back_as_it_was(any in anything(), nearly in nearly()) {
        check(&any)?;
        check(&nearly)?;
    }
}

/// A sequence is the client's to keep, and may come back cut, from another database, or invented.
#[test]
fn whatever_is_given_as_a_sequence_changes_are_read_or_it_is_refused() {
    let server = Server::quick();
    let database = server.databases.create("memos", &InitialAccess::Everybody).unwrap();
    for number in 0..3 {
        put(&database, &json!({"_id": number.to_string()})).unwrap();
    }
    let own = database.info().unwrap().update_sequence;
    let read = |text: &str| -> Result<usize, DatabaseError> {
        let query = ChangesQuery { since: Since::At(text.to_owned()), ..ChangesQuery::default() };
        let mut changes = database.changes(query, &Access::of_the_server("a test"))?;
        let found = changes.next_changes(100)?.len();
        let last = changes.last_sequence();
        // What it ends with is a sequence that nothing comes after.
        let query = ChangesQuery { since: Since::At(last), ..ChangesQuery::default() };
        assert!(
            database.changes(query, &Access::of_the_server("a test"))?.next_changes(100)?.is_empty(),
            "{text}"
        );
        Ok(found)
    };
    assert_eq!(read(&own).unwrap(), 0);
    proptest!(ProptestConfig::with_cases(scrinium_fault::cases(256)), |(
        cut in any::<prop::sample::Index>(), letter in any::<char>(), number in any::<u64>(), text in ".{0,40}",
    )| {
        let at = cut.index(own.len() + 1);
        let changed = format!("{}{letter}{}", &own[..at], &own[at..]);
        for text in [own[..at].to_owned(), changed, number.to_string(), format!("{number}-{own}"), format!("{number}-x"), text] {
            match read(&text) {
                Ok(found) => prop_assert!(found <= 3),
                Err(error) => {
                    let is_told = matches!(error, DatabaseError::Invalid { .. });
                    prop_assert!(is_told, "{text}: {error}");
                }
            }
        }
    });
}
