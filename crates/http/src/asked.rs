//! A request as functions of design documents get it: CouchDB's request object.
//!
//! It holds what CouchDB gives, but for what would show the function's author how its sender logs in: `Authorization`,
//! the session's cookies, and the like.

use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, HeaderName, PROXY_AUTHORIZATION};
use http::{Method, header};
use scrinium_database::Level;
use scrinium_maintenance::Compactor;
use serde_json::{Map, Value, json};

use crate::access::Opened;
use crate::context::Context;
use crate::databases;
use crate::encoding::decode;
use crate::error::{HttpError, Result};
use crate::query::Query;
use crate::session;

/// The longest request object, as JSON. It is given to a function with each document.
const REQUEST_BYTES_MAX: usize = 4 << 20;

/// Headers of a proxy that says who asks begin so.
const OF_PROXY: &str = "x-auth-couchdb-";

/// A request, without what only the database knows.
pub(crate) struct AskedObject {
    members: Map<String, Value>,
    databases: scrinium_catalog::Databases,
}

impl AskedObject {
    /// `body` is the request's, where it had one.
    ///
    /// # Errors
    /// 413 where it is too long to be given to a function.
    pub(crate) fn of(context: &Context, id: Option<&str>, body: Option<&str>) -> Result<Self> {
        let path: Vec<String> = path_of(context);
        let query: Map<String, Value> =
            context.query.iter().map(|(name, value)| (name.to_owned(), value.text().into())).collect();
        let form = match (context.header(&CONTENT_TYPE), body) {
            (Some(kind), Some(body)) if kind.starts_with("application/x-www-form-urlencoded") => {
                form_of(body)?
            }
            _ => Map::new(),
        };
        let (name, roles) = (context.identity.name(), context.identity.roles());
        let members = json!({
            "info": null,
            "id": id,
            "uuid": context.state.uuids.next(),
            "method": context.method.as_str(),
            "requested_path": path,
            "path": path,
            "raw_path": context.target.path_and_query().map(http::uri::PathAndQuery::as_str),
            "query": query,
            "headers": headers_of(context),
            "body": body.unwrap_or("undefined"),
            "peer": context.client.address.to_string(),
            "form": form,
            "cookie": cookies_of(context),
            "userCtx": {"db": context.database_name(), "name": name, "roles": roles},
            "secObj": {},
        });
        let Value::Object(members) = members else {
            return Err(HttpError::internal("The request cannot be shown to a function."));
        };
        Ok(Self { members, databases: context.state.databases.clone() })
    }

    /// All of it as JSON.
    ///
    /// # Errors
    /// 413 where it is too long, and what the database reports.
    pub(crate) fn with_database(mut self, database: &Opened) -> Result<String> {
        let is_compacting = Compactor::of(&self.databases).is_compacting(database.number());
        let info = database.describe()?;
        let info = databases::describe(&info, &info.name, is_compacting);
        self.members.insert("info".to_owned(), info);
        if database.level() >= Level::Reader {
            self.members.insert("secObj".to_owned(), (*database.shown_security()?).clone());
        }
        let text = Value::Object(self.members).to_string();
        if text.len() > REQUEST_BYTES_MAX {
            return Err(HttpError::beyond_route(REQUEST_BYTES_MAX));
        }
        Ok(text)
    }
}

/// The path's segments, decoded.
fn path_of(context: &Context) -> Vec<String> {
    let segments = context.target.path().split('/').filter(|segment| !segment.is_empty());
    segments
        .map(|segment| decode(segment).map_or_else(|_| segment.to_owned(), |text| text.into_owned()))
        .collect()
}

fn form_of(body: &str) -> Result<Map<String, Value>> {
    let form = Query::parse(Some(body))?;
    Ok(form.iter().map(|(name, value)| (name.to_owned(), value.text().into())).collect())
}

/// Headers under the names that CouchDB's functions look for.
fn headers_of(context: &Context) -> Map<String, Value> {
    let mut members: Map<String, Value> = Map::new();
    for (name, value) in &context.headers {
        if is_secret(name) {
            continue;
        }
        let value = String::from_utf8_lossy(value.as_bytes());
        match members.get_mut(&shown_name(name)) {
            Some(Value::String(values)) => {
                values.push_str(", ");
                values.push_str(&value);
            }
            _ => {
                members.insert(shown_name(name), value.into_owned().into());
            }
        }
    }
    if let (None, Some(authority)) = (context.headers.get(HOST), context.target.authority()) {
        members.insert(shown_name(&HOST), authority.as_str().into());
    }
    members
}

/// What shows how somebody logs in.
fn is_secret(name: &HeaderName) -> bool {
    [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE].contains(name) || name.as_str().starts_with(OF_PROXY)
}

/// `content-type` is `Content-Type`.
fn shown_name(name: &HeaderName) -> String {
    let mut shown = String::with_capacity(name.as_str().len());
    for (place, part) in name.as_str().split('-').enumerate() {
        if place > 0 {
            shown.push('-');
        }
        let mut letters = part.chars();
        shown.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        shown.push_str(letters.as_str());
    }
    shown
}

/// Cookies but those of sessions.
fn cookies_of(context: &Context) -> Map<String, Value> {
    let values = context.headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs
        .filter(|(name, _)| !session::is_session_cookie(name))
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect()
}

/// The text of a body that a function is to get.
///
/// # Errors
/// 400 where it is not UTF-8: a function gets text.
pub(crate) fn text_of(method: &Method, body: &[u8]) -> Result<Option<String>> {
    if body.is_empty() && method == Method::GET {
        return Ok(None);
    }
    match std::str::from_utf8(body) {
        Ok(text) => Ok(Some(text.to_owned())),
        Err(_) => {
            Err(HttpError::bad_request("A function of a design document gets text: the body is not UTF-8."))
        }
    }
}
