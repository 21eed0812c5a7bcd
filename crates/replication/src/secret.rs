//! What of an order nobody may see again: taken out of a document before it is stored, and put back when it is carried
//! out.

use serde_json::{Map, Value};

use crate::order::without_credentials;

/// Members of an order that may hold credentials.
const MEMBERS: [&str; 5] = ["source", "target", "proxy", "source_proxy", "target_proxy"];

/// What a member shows; nothing of a URL's name and password, and neither `auth` nor `headers`.
fn shown(member: &Value) -> Value {
    match member {
        Value::String(text) => without_credentials(text).into(),
        Value::Object(members) => {
            let mut kept = members.clone();
            kept.retain(|name, _| name != "auth" && name != "headers");
            for name in ["url", "proxy"] {
                if let Some(url) = kept.get_mut(name) {
                    *url = shown(url);
                }
            }
            kept.into()
        }
        other => other.clone(),
    }
}

/// Takes the credentials out of an order, and gives the members that had some.
pub(crate) fn take_out(order: &mut Map<String, Value>) -> Map<String, Value> {
    let mut taken = Map::new();
    for name in MEMBERS {
        let Some(member) = order.get_mut(name) else { continue };
        let harmless = shown(member);
        if harmless != *member {
            taken.insert(name.to_owned(), std::mem::replace(member, harmless));
        }
    }
    taken
}

/// What is kept of an order's credentials: those that it brings, and those that were known of what it still names.
#[must_use]
pub fn merged(
    order: &Map<String, Value>,
    brought: &Map<String, Value>,
    known: Option<&[u8]>,
) -> Map<String, Value> {
    let known = known.and_then(|known| serde_json::from_slice::<Map<String, Value>>(known).ok());
    let mut all = brought.clone();
    for (name, member) in known.unwrap_or_default() {
        if !all.contains_key(&name) && order.get(&name) == Some(&shown(&member)) {
            all.insert(name, member);
        }
    }
    all
}

/// Puts credentials back to what they belong to.
pub(crate) fn put_back(order: &mut Map<String, Value>, secret: Option<&[u8]>) {
    for (name, member) in merged(order, &Map::new(), secret) {
        order.insert(name, member);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::*;

    #[test]
    fn credentials_stay_with_what_they_are_for_and_are_not_seen() {
        let original = json!({
            "_id": "x", "source": "http://ada:secret1@h/a", "continuous": true,
            "target": {"url": "https://bob:secret2@h/b", "headers": {"Authorization": "secret3"},
                       "auth": {"basic": {"username": "u", "password": "secret4"}}},
            "proxy": "http://p:secret5@proxy:8080",
        });
        let mut order = original.as_object().unwrap().clone();
        let brought = take_out(&mut order);
        let text = Value::from(order.clone()).to_string();
        assert!(!text.contains("secret"), "{text}");
        let kept = merged(&order, &brought, None);
        let stored = Value::from(kept).to_string();
        let mut carried_out = order.clone();
        put_back(&mut carried_out, Some(stored.as_bytes()));
        assert_eq!(Value::from(carried_out), original);
        // Somebody else's place gets nothing of it.
        let mut turned = order.clone();
        turned.insert("target".to_owned(), json!({"url": "https://evil.example/b"}));
        let kept = merged(&turned, &take_out(&mut turned.clone()), Some(stored.as_bytes()));
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["source", "proxy"]);
        put_back(&mut turned, Some(stored.as_bytes()));
        assert_eq!(turned.get("target").unwrap(), &json!({"url": "https://evil.example/b"}));
        // A new password takes the place of the old one.
        let mut renewed = original.as_object().unwrap().clone();
        renewed.insert("source".to_owned(), json!("http://ada:other@h/a"));
        let brought = take_out(&mut renewed);
        let kept = merged(&renewed, &brought, Some(stored.as_bytes()));
        assert_eq!(kept.get("source").unwrap(), "http://ada:other@h/a");
    }
}
