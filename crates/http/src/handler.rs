//! Update functions of design documents: `POST` and `PUT /{db}/_design/{ddoc}/_update/{function}`, with the id of a document.
//!
//! A function gets the document, as far as its caller may read it, and the request. What it gives to be stored is stored as
//! if its caller had sent it by PUT: nobody may do by a function what they may not do without.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use scrinium_database::{DatabaseError, Edit, EditMode, ReadOptions, Updated};
use scrinium_document::json::{NESTING_MAX, parse_value};
use scrinium_document::validate_id;
use serde_json::{Map, Value};

use crate::access::Opened;
use crate::asked::{self, AskedObject};
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};
use crate::write;

const NEW_REVISION: HeaderName = HeaderName::from_static("x-couch-update-newrev");
const NEW_ID: HeaderName = HeaderName::from_static("x-couch-id");

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const BINARY: HeaderValue = HeaderValue::from_static("application/binary");

/// A designer's HTML must not act as the one who looks at it.
const SANDBOX: HeaderValue = HeaderValue::from_static("sandbox");

/// Headers that a function may set, apart from those of its own that begin with `x-`.
const HEADERS: [&str; 12] = [
    "accept-ranges",
    "cache-control",
    "content-disposition",
    "content-language",
    "content-type",
    "etag",
    "expires",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "vary",
];

/// Of those, what browsers and CouchDB's clients believe of this server.
const OURS: [&str; 4] = ["x-content-type-options", "x-frame-options", "x-couch-", "x-couchdb-"];

/// `POST` or `PUT …/_update/{function}[/{id}]`.
pub(crate) async fn run(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let body = body.collect().await?;
    let text = asked::text_of(&context.method, &body)?;
    let id = context.address.get("target").map(str::to_owned);
    if let Some(id) = &id {
        validate_id(id)?;
    }
    let request = AskedObject::of(context, id.as_deref(), text.as_deref())?;
    let (design, name) = (context.address.value("ddoc")?, context.address.value("handler")?);
    let (design, name) = (design.to_owned(), name.to_owned());
    let answered = context
        .with_database(move |database| {
            let mut function = database.update_function(&design, &name)?;
            let document = current(&database, id.as_deref())?;
            let request = request.with_database(&database)?;
            Ok(function.answer(document.as_deref().unwrap_or("null"), &request)?)
        })
        .await?;
    let (document, answer) = parts_of(&answered)?;
    // What cannot be answered is refused before anything is stored.
    let answer = Answer::of(answer)?;
    let updated = match document {
        Some(document) => Some(store(context, document).await?),
        None => None,
    };
    answer.into_response(updated.as_ref())
}

/// The document that a function is called for, as its caller may read it.
fn current(database: &Opened, id: Option<&str>) -> Result<Option<String>> {
    let Some(id) = id else { return Ok(None) };
    match database.read(id, &ReadOptions::default()) {
        Ok(document) => Ok(Some(document.json.as_str().to_owned())),
        Err(DatabaseError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The document to store, if there is one, and the answer.
fn parts_of(answered: &str) -> Result<(Option<Map<String, Value>>, Value)> {
    let senseless = || HttpError::internal("The update function gave what is no document and answer.");
    let parsed = parse_value(answered, NESTING_MAX).map_err(|_| senseless())?;
    let Value::Array(parts) = parsed else { return Err(senseless()) };
    let Ok([document, answer]) = <[Value; 2]>::try_from(parts) else { return Err(senseless()) };
    // As in CouchDB, what is no object is no document.
    let document = if let Value::Object(document) = document { Some(document) } else { None };
    Ok((document, answer))
}

/// As by PUT.
async fn store(context: &Context, document: Map<String, Value>) -> Result<Updated> {
    let Some(Value::String(id)) = document.get("_id").cloned() else {
        let reason = "The update function gave a document without an `_id`.";
        return Err(HttpError::new(StatusCode::BAD_REQUEST, "illegal_docid", reason));
    };
    let json = Value::Object(document).to_string();
    write::store(context, EditMode::Interactive, move |database| {
        write::check_design(database, &id)?;
        Ok(Edit { id: Some(id), json: json.into(), ..Edit::default() })
    })
    .await
}

/// What a function answers, as CouchDB reads it.
struct Answer {
    status: Option<StatusCode>,
    content_type: HeaderValue,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn of(answer: Value) -> Result<Self> {
        let empty = || Self { status: None, content_type: HTML, headers: HeaderMap::new(), body: Vec::new() };
        let members = match answer {
            Value::String(text) => return Ok(Self { body: text.into_bytes(), ..empty() }),
            Value::Object(members) => members,
            _ => return Err(wrong("the answer is neither a text nor an object")),
        };
        let mut answer = empty();
        for (name, value) in members {
            match (name.as_str(), value) {
                ("code", value) => answer.status = Some(status_of(&value)?),
                ("stop", Value::Bool(_)) => {}
                ("json", value) => {
                    answer.content_type = response::JSON;
                    answer.body = format!("{value}\n").into_bytes();
                }
                ("body", Value::String(text)) => answer.body = text.into_bytes(),
                ("base64", Value::String(text)) => {
                    answer.content_type = BINARY;
                    answer.body = STANDARD.decode(text).map_err(|_| wrong("`base64` is not base64"))?;
                }
                ("headers", Value::Object(headers)) => answer.headers = headers_of(headers)?,
                (name, _) => {
                    return Err(wrong(&format!("`{name}` of the answer is unknown, or not of its type")));
                }
            }
        }
        Ok(answer)
    }

    fn into_response(self, updated: Option<&Updated>) -> Result<Response<Body>> {
        let usual = if updated.is_some() { StatusCode::CREATED } else { StatusCode::OK };
        let mut response = Response::new(Body::whole(self.body));
        *response.status_mut() = self.status.unwrap_or(usual);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, self.content_type);
        headers.insert(CACHE_CONTROL, response::MUST_REVALIDATE);
        headers.extend(self.headers);
        headers.insert(http::header::CONTENT_SECURITY_POLICY, SANDBOX);
        if let Some(updated) = updated {
            let mut id = String::new();
            crate::encoding::push_segment(&mut id, &updated.id);
            for (name, value) in [(NEW_REVISION, updated.revision.clone()), (NEW_ID, id)] {
                headers.insert(name, HeaderValue::try_from(value).map_err(|_| wrong("an id"))?);
            }
        }
        Ok(response)
    }
}

fn status_of(value: &Value) -> Result<StatusCode> {
    let code = value.as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| *code >= 200);
    let status = code.and_then(|code| StatusCode::from_u16(code).ok());
    status.ok_or_else(|| wrong("`code` must be a status of HTTP from 200 on"))
}

/// The headers that a function may set; of the others nothing comes.
fn headers_of(given: Map<String, Value>) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let lower = name.to_ascii_lowercase();
        let is_own = lower.starts_with("x-") && !OURS.iter().any(|ours| lower.starts_with(ours));
        if !is_own && !HEADERS.contains(&lower.as_str()) {
            continue;
        }
        let text = match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let (Ok(header), Ok(value)) = (HeaderName::try_from(lower), HeaderValue::try_from(text)) else {
            return Err(wrong(&format!("the header `{name}` cannot be sent")));
        };
        headers.insert(header, value);
    }
    Ok(headers)
}

/// CouchDB's word for what a function answers and nobody understands.
fn wrong(what: &str) -> HttpError {
    let reason = format!("Invalid data from an update function: {what}.");
    HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, "external_response_error", reason)
}
