//! `/_node/{node}/_config`: the server's configuration as CouchDB's tools look for it.
//!
//! Sections are those of the server's own keys, `http` of `http.listen`, and some of CouchDB's that its clients ask for. Values
//! are texts, as there. Reading is what it is for; a key of the server's own is set as on the console, so that keys that belong
//! to the file stay there, and what is CouchDB's can be set where there is a counterpart.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::Value;

use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};
use crate::users::USERS_DATABASE;

/// Keys by their sections; values are texts.
type Sections = BTreeMap<String, BTreeMap<String, String>>;

/// Stands for a value that nobody is shown.
const HIDDEN: &str = "********";

/// What the name of a key with such a value ends with.
const SECRETS: [&str; 5] = ["password", "secret", "token", "access_key", "passphrase"];

/// CouchDB's keys that are another name of a key here: section, key, the key here.
const COUNTERPARTS: [(&str, &str, &str); 3] = [
    ("cors", "origins", "http.cors_origins"),
    ("cors", "credentials", "http.cors_credentials"),
    ("couchdb", "max_document_size", "document.max_bytes"),
];

/// `GET /_node/{node}/_config`, a section of it, or the value of a key.
pub(crate) async fn show(context: &Context) -> Result<Response<Body>> {
    let sections = sections(context).await?;
    let Some(section) = context.address.get("section") else {
        return Ok(response::json_value(StatusCode::OK, &sections));
    };
    let keys = sections.get(section);
    match context.address.get("key") {
        // A section that is not there has no keys, as in CouchDB.
        None => Ok(response::json_value(StatusCode::OK, &keys.cloned().unwrap_or_default())),
        Some(key) => {
            let value = keys.and_then(|keys| keys.get(key)).ok_or_else(unknown)?;
            Ok(response::json_value(StatusCode::OK, value))
        }
    }
}

/// `PUT /_node/{node}/_config/{section}/{key}` with a text; answers with the value before.
pub(crate) async fn set(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let value: Value = body.json().await?;
    let Value::String(value) = value else {
        return Err(HttpError::bad_request("The value of a key must be a JSON text."));
    };
    if value.chars().any(char::is_control) {
        return Err(HttpError::bad_request("The value of a key holds a control character."));
    }
    let sections = sections(context).await?;
    let (section, key) = (context.address.value("section")?, context.address.value("key")?);
    let before = sections.get(section).and_then(|keys| keys.get(key));
    // Tools set what they need, whether it is so or not.
    if before == Some(&value) {
        return Ok(response::json_value(StatusCode::OK, &value));
    }
    let counterpart = COUNTERPARTS.iter().find(|(of, name, _)| (*of, *name) == (section, key));
    let own = format!("{section}.{key}");
    let name = counterpart.map_or(own.as_str(), |(.., name)| *name);
    if before.is_none() || !is_own(name, &sections) {
        return Err(HttpError::forbidden(format!(
            "`{section:.60}/{key:.60}` cannot be set here: the server has no such key. `GET` of this address without it shows \
             those that there are."
        )));
    }
    let command = format!("set configuration {name}={value}");
    let administration = Arc::clone(&context.state.administration);
    let (by, from) = (context.identity.clone(), context.client.address);
    let set = move || administration.console(&command, &by, from).map_err(HttpError::forbidden);
    context.state.run(set).await?;
    Ok(response::json_value(StatusCode::OK, &before.cloned().unwrap_or_default()))
}

/// `DELETE /_node/{node}/_config/{section}/{key}`: every key has a value, so none can be taken away.
pub(crate) async fn remove(context: &Context) -> Result<Response<Body>> {
    let sections = sections(context).await?;
    let (section, key) = (context.address.value("section")?, context.address.value("key")?);
    match sections.get(section).and_then(|keys| keys.get(key)) {
        None => Err(unknown()),
        Some(_) => Err(HttpError::forbidden(
            "A key cannot be deleted: take it out of the server's configuration file, and its default holds.",
        )),
    }
}

/// As CouchDB says it.
fn unknown() -> HttpError {
    HttpError::not_found("unknown_config_value")
}

/// Whether a key is one of the server's own.
fn is_own(name: &str, sections: &Sections) -> bool {
    let parts = name.rsplit_once('.');
    parts.is_some_and(|(section, key)| sections.get(section).is_some_and(|keys| keys.contains_key(key)))
}

async fn sections(context: &Context) -> Result<Sections> {
    let node = context.address.value("node")?;
    if node != "_local" && node != context.state.options.node_name {
        return Err(HttpError::not_found(format!("There is no node {node:.60}.")));
    }
    let administration = Arc::clone(&context.state.administration);
    let (by, from) = (context.identity.clone(), context.client.address);
    let show = move || administration.console("show configuration", &by, from).map_err(HttpError::internal);
    let shown = context.state.run(show).await?;
    let mut sections = Sections::new();
    for (name, effective) in shown.data.as_ref().and_then(Value::as_object).into_iter().flatten() {
        let Some((section, key)) = name.rsplit_once('.') else { continue };
        let value = effective.get("value").map(shown_value).unwrap_or_default();
        let value = if is_secret(key) && !value.is_empty() { HIDDEN.to_owned() } else { value };
        sections.entry(section.to_owned()).or_default().insert(key.to_owned(), value);
    }
    for (section, key, value) in couchdbs(context, &sections) {
        sections.entry(section.to_owned()).or_default().insert(key.to_owned(), value);
    }
    Ok(sections)
}

/// What CouchDB's clients look for.
fn couchdbs(context: &Context, sections: &Sections) -> Vec<(&'static str, &'static str, String)> {
    let own = |name: &str| {
        let (section, key) = name.rsplit_once('.')?;
        sections.get(section)?.get(key).cloned()
    };
    let mut keys: Vec<(&'static str, &'static str, String)> =
        COUNTERPARTS.iter().filter_map(|(section, key, name)| Some((*section, *key, own(name)?))).collect();
    let has_cors = own("http.cors_origins").is_some_and(|origins| !origins.is_empty());
    keys.extend([
        ("chttpd", "enable_cors", has_cors.to_string()),
        ("chttpd", "require_valid_user", "true".to_owned()),
        ("chttpd_auth", "authentication_db", USERS_DATABASE.to_owned()),
        ("couch_httpd_auth", "authentication_db", USERS_DATABASE.to_owned()),
        ("couchdb", "uuid", context.state.databases.server_uuid().to_owned()),
        ("uuids", "algorithm", "sequential".to_owned()),
        ("vendor", "name", "Scrinium".to_owned()),
    ]);
    keys
}

fn is_secret(key: &str) -> bool {
    SECRETS.iter().any(|end| key.ends_with(end))
}

/// A value as a text: lists have commas between their elements.
fn shown_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(elements) => elements.iter().map(shown_value).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
