//! `_users`: CouchDB's database of users, which is the server's database of people under another name.
//!
//! Administrators of the server see all of it. Everybody else reads and changes their own document, and finds no other; what
//! of it they may change is for the database's guard to say, which lets them change their password. People who were not made
//! by CouchDB's clients have documents of another form: those are shown, and written, in CouchDB's.

use http::{Method, Response, StatusCode};
use scrinium_database::{Edit, EditMode, ReadOptions};
use scrinium_document::json::stored_value;
use serde_json::{Map, Value, json};

use crate::address::{Address, UsersAddress};
use crate::authority::Identity;
use crate::body::{RequestBody, parse_json};
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};
use crate::state::HttpState;
use crate::write;

/// The name of the database.
pub(crate) const USERS_DATABASE: &str = "_users";

/// What the ids of its documents begin with.
const PREFIX: &str = "org.couchdb.user:";

/// CouchDB's design document there.
const AUTH: &str = "_auth";

/// Finds what an address in `_users` means for the one who asks.
///
/// # Errors
/// 403 for what is for administrators of the server, 404 for the document of somebody else.
pub(crate) fn enter(
    state: &HttpState,
    address: &mut Address,
    method: &Method,
    identity: &Identity,
) -> Result<()> {
    if address.get("db") != Some(USERS_DATABASE) {
        return Ok(());
    }
    let Some(people) = state.authenticator.users_database() else { return Ok(()) };
    let path = address.route.path;
    if identity.is_anonymous() {
        return Ok(());
    }
    address.set("db", people.to_owned());
    let is_document = path == "/{db}/{docid}";
    let named = address.get("docid").filter(|_| is_document).and_then(|id| id.strip_prefix(PREFIX));
    let named = named.map(str::to_owned);
    let mut users = UsersAddress::default();
    if identity.is_administrator() {
        if path == "/{db}" && method == Method::DELETE {
            let reason = format!(
                "`{USERS_DATABASE}` holds the people of this server and stays; it is the database `{people}`."
            );
            return Err(HttpError::forbidden(reason));
        }
    } else {
        let is_own = named.is_some() && named.as_deref() == identity.name();
        if !is_document {
            return Err(HttpError::forbidden("You are not a server admin."));
        }
        if !is_own || ![Method::GET, Method::HEAD, Method::PUT].contains(method) {
            return Err(HttpError::not_found("missing"));
        }
        users.is_own = true;
    }
    if let Some(name) = named
        && let Some(id) = state.authenticator.person_document(&name)
        && !id.starts_with(PREFIX)
    {
        address.set("docid", id);
        users.translated = Some(name);
    }
    address.users = Some(users);
    Ok(())
}

/// Whose document of another form is asked for, as if it were of CouchDB's.
pub(crate) fn translated(context: &Context) -> Option<&str> {
    context.address.users.as_ref()?.translated.as_deref()
}

/// Whether CouchDB's design document of users is asked for.
pub(crate) fn is_auth(context: &Context) -> bool {
    context.address.users.is_some() && context.address.get("ddoc") == Some(AUTH)
}

/// `GET /_users/_design/_auth`: what CouchDB's clients look for. What it would check is checked in any case.
pub(crate) async fn auth(context: &Context) -> Result<Response<Body>> {
    context.with_database(|_| Ok(())).await?;
    let design = json!({
        "_id": format!("_design/{AUTH}"),
        "_rev": "1-00000000000000000000000000000000",
        "language": "javascript",
        "validate_doc_update":
            "function (newDoc, oldDoc, userCtx, secObj) { /* The server checks documents of people itself. */ }",
    });
    Ok(response::json_value(StatusCode::OK, &design))
}

/// A person's document in CouchDB's form, with what the person may say of themselves.
pub(crate) async fn get(context: &Context, name: &str) -> Result<Response<Body>> {
    let person = person(context).await?;
    let (roles, revision) = (person.get("Roles"), person.get("_rev"));
    let roles = roles.cloned().unwrap_or_else(|| json!([]));
    let mut shown = json!({"_id": format!("{PREFIX}{name}"), "_rev": revision, "type": "user", "name": name, "roles": roles});
    if let Some(members) = shown.as_object_mut() {
        let own = context.state.authenticator.own_fields().iter();
        members.extend(own.filter_map(|field| Some(((*field).to_owned(), person.get(*field)?.clone()))));
    }
    Ok(response::json_value(StatusCode::OK, &shown))
}

/// Changes a person's document by one in CouchDB's form: its roles, the password, and what the person may say of themselves, each if
/// it is there.
pub(crate) async fn put(context: &Context, name: &str, body: &mut RequestBody) -> Result<Response<Body>> {
    let mut given: Map<String, Value> = parse_json(&body.collect().await?)?;
    if given.get("name").is_some_and(|given| given.as_str() != Some(name)) {
        return Err(HttpError::forbidden("The name of a user cannot be changed."));
    }
    let named = given.get("_rev").and_then(Value::as_str).map(str::to_owned);
    let revision = context.revision()?.or(named);
    let mut person = person(context).await?;
    person.shift_remove("_rev");
    if given.get("_deleted") == Some(&Value::Bool(true)) {
        person.insert("_deleted".to_owned(), true.into());
    }
    if let Some(roles) = given.shift_remove("roles") {
        person.insert("Roles".to_owned(), roles);
    }
    if let Some(password) = given.shift_remove("password") {
        person.insert("password".to_owned(), password);
    }
    for field in context.state.authenticator.own_fields() {
        if let Some(value) = given.shift_remove(*field) {
            person.insert((*field).to_owned(), value);
        }
    }
    let id = context.address.document_id()?;
    let json = Value::Object(person).to_string();
    let edit = Edit { id: Some(id), json: json.into(), revision, ..Edit::default() };
    let mut updated = write::store(context, EditMode::Interactive, move |_| Ok(edit)).await?;
    updated.id = format!("{PREFIX}{name}");
    Ok(write::created(context, &updated))
}

async fn person(context: &Context) -> Result<Map<String, Value>> {
    let id = context.address.document_id()?;
    let document =
        context.with_database(move |database| Ok(database.read(&id, &ReadOptions::default())?)).await?;
    match stored_value(document.json.as_str()) {
        Some(Value::Object(members)) => Ok(members),
        _ => Err(HttpError::internal("The person's document cannot be read.")),
    }
}
