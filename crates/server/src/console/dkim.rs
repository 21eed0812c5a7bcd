//! `show dkim`: the keys that sign outgoing mail, and what DNS should have of them.

use scrinium_outbound::{OutboundControls, PublishedKey};
use serde_json::{Value, json};

use super::table::{Align, table};
use super::{ConsoleError, Reply};

pub(super) const HELP: &str =
    "Keys that sign outgoing mail, and the records to publish in DNS for them; of DOMAIN alone";

/// The keys of a domain, or of all.
pub(super) fn show(outbound: Option<OutboundControls>, domain: Option<&str>) -> Result<Reply, ConsoleError> {
    let nothing = |reason: &str| ConsoleError::NotFound(reason.to_owned());
    let outbound = outbound.ok_or_else(|| nothing("no mail leaves this server: outbound.route is off"))?;
    let keys =
        outbound.published_keys().ok_or_else(|| nothing("nothing is signed: outbound.sign is false"))?;
    let is_asked = |key: &PublishedKey| domain.is_none_or(|domain| key.domain.eq_ignore_ascii_case(domain));
    let keys: Vec<PublishedKey> = keys.into_iter().filter(is_asked).collect();
    Ok(Reply { text: text(&keys), data: json!({"keys": keys.iter().map(data).collect::<Vec<Value>>()}) })
}

fn text(keys: &[PublishedKey]) -> String {
    if keys.is_empty() {
        return "There are no keys; the server makes some for each of mail.domains within ten minutes.\n"
            .to_owned();
    }
    let rows: Vec<Vec<String>> =
        keys.iter().map(|key| vec![key.state.to_owned(), key.name.clone()]).collect();
    let mut text = table(&[("State", Align::Left), ("Record", Align::Left)], &rows);
    text.push_str("\nTXT records to publish; mail is signed with a key once DNS has its record:\n");
    for key in keys {
        text.push_str(&format!("\n{}\n  {}\n", key.name, key.record));
    }
    text
}

fn data(key: &PublishedKey) -> Value {
    json!({
        "domain": key.domain,
        "state": key.state,
        "since_seconds": key.since_seconds,
        "name": key.name,
        "record": key.record,
    })
}
