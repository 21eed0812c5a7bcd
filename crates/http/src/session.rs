//! Who asks: Basic authentication and the `AuthSession` cookie, and the pages that open and close sessions.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderMap, HeaderValue, LOCATION, SET_COOKIE};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::authority::{Identity, SessionToken};
use crate::body::{RequestBody, parse_json};
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::query::Query;
use crate::response::{self, Body};
use crate::state::HttpState;

const COOKIE_NAME: &str = "AuthSession";

/// What is known of the one who asks.
pub(crate) struct Known {
    pub(crate) identity: Identity,
    /// `default` is CouchDB's word for Basic.
    pub(crate) by: Option<&'static str>,
    pub(crate) renewed: Option<SessionToken>,
}

/// Finds out who asks. A cookie that is no good is nobody's; a wrong password is an error.
pub(crate) async fn authenticate(state: &HttpState, headers: &HeaderMap) -> Result<Known> {
    if let Some(value) = headers.get(AUTHORIZATION)
        && let Some((name, password)) = basic(value)
    {
        let identity = verify(state, &name, &password).await?;
        return Ok(Known { identity, by: Some("default"), renewed: None });
    }
    let session = cookie(headers).and_then(|token| state.authenticator.session(token));
    Ok(session.map_or_else(
        || Known { identity: Identity::anonymous(), by: None, renewed: None },
        |session| Known { identity: session.identity, by: Some("cookie"), renewed: session.renewed },
    ))
}

/// The person of a name and password.
async fn verify(state: &HttpState, name: &str, password: &str) -> Result<Identity> {
    if let Some(identity) = state.authenticator.recall(name, password) {
        return Ok(identity);
    }
    let authenticator = std::sync::Arc::clone(&state.authenticator);
    let (name, password) = (name.to_owned(), password.to_owned());
    let verified =
        state.run(move || authenticator.verify(&name, &password).map_err(HttpError::unavailable)).await?;
    verified.ok_or_else(|| HttpError::unauthorized("Name or password is incorrect."))
}

/// Name and password of a Basic header (RFC 7617).
fn basic(value: &HeaderValue) -> Option<(String, String)> {
    let (scheme, encoded) = value.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (name, password) = decoded.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, value)| *name == COOKIE_NAME && !value.is_empty())
        .map(|(_, value)| value)
}

/// Sets the session's cookie: out of scripts' reach, not sent with other sites' forms, and over TLS only
/// where the port has it. A page of another origin that CORS lets in needs `SameSite=None`, which
/// browsers take over TLS only.
pub(crate) fn insert_cookie(headers: &mut HeaderMap, context: &Context, session: &SessionToken) {
    let secure = if context.port.tls.is_some() { "; Secure" } else { "" };
    let same_site = match context.port.tls {
        Some(_) if context.port.cors_credentials => "None",
        _ => "Strict",
    };
    let text = format!(
        "{COOKIE_NAME}={}; Version=1; Path=/; HttpOnly; SameSite={same_site}; Max-Age={}{secure}",
        session.token, session.max_age_seconds
    );
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.append(SET_COOKIE, value);
    }
}

/// `GET /_session`.
pub(crate) fn show(context: &Context) -> Response<Body> {
    let mut info = json!({"authentication_handlers": ["cookie", "default"]});
    if let (Some(by), Some(members)) = (context.authenticated_by, info.as_object_mut()) {
        members.insert("authenticated".to_owned(), Value::from(by));
    }
    let user = json!({"name": context.identity.name(), "roles": context.identity.roles()});
    response::json_value(StatusCode::OK, &json!({"ok": true, "userCtx": user, "info": info}))
}

/// `POST /_session`: name and password, as JSON or as a form.
pub(crate) async fn open(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let collected = body.collect(&context.headers).await?;
    let declared = context.header(&CONTENT_TYPE).and_then(|kind| kind.split(';').next()).unwrap_or("");
    let (name, password) = match declared.trim() {
        "application/json" => credentials_of_json(&collected.bytes)?,
        "application/x-www-form-urlencoded" => credentials_of_form(&collected.bytes)?,
        _ => return Err(HttpError::not_json()),
    };
    let next = context.query.get("next").map(local_address).transpose()?;
    let identity = verify(&context.state, &name, &password).await?;
    let session = context.state.authenticator.open_session(&identity);
    let text = json!({"ok": true, "name": identity.name(), "roles": identity.roles()});
    let mut response = match next {
        Some(next) => {
            let mut response = response::json_value(StatusCode::FOUND, &text);
            response.headers_mut().insert(LOCATION, next);
            response
        }
        None => response::json_value(StatusCode::OK, &text),
    };
    insert_cookie(response.headers_mut(), context, &session);
    Ok(response)
}

/// An address on this server only, so that nobody is led elsewhere after logging in.
fn local_address(next: &str) -> Result<HeaderValue> {
    let local = next.starts_with('/') && !next.starts_with("//") && !next.contains('\\');
    let address = HeaderValue::try_from(next).ok().filter(|_| local);
    address.ok_or_else(|| HttpError::bad_request("`next` must be a path on this server, beginning with `/`."))
}

fn credentials_of_json(bytes: &[u8]) -> Result<(String, String)> {
    let members: Value = parse_json(bytes)?;
    if !members.is_object() {
        return Err(HttpError::not_object());
    }
    let text = |names: [&str; 2]| {
        names.iter().find_map(|name| members.get(name)).and_then(Value::as_str).map(str::to_owned)
    };
    complete(text(["name", "username"]), text(["password", "password"]))
}

fn credentials_of_form(bytes: &[u8]) -> Result<(String, String)> {
    let text = std::str::from_utf8(bytes).map_err(|_| HttpError::bad_request("The form is not UTF-8."))?;
    let form = Query::parse(Some(text))?;
    let name = form.get("name").or_else(|| form.get("username"));
    complete(name.map(str::to_owned), form.get("password").map(str::to_owned))
}

fn complete(name: Option<String>, password: Option<String>) -> Result<(String, String)> {
    let name = name.ok_or_else(|| HttpError::bad_request("request body must contain a username"))?;
    let password = password.ok_or_else(|| HttpError::bad_request("request body must contain a password"))?;
    Ok((name, password))
}

/// `DELETE /_session`.
pub(crate) fn close(context: &Context) -> Result<Response<Body>> {
    if let Some(token) = cookie(&context.headers) {
        context.state.authenticator.close_session(token);
    }
    let mut response = response::ok(StatusCode::OK);
    let ended = SessionToken { token: String::new(), max_age_seconds: 0 };
    insert_cookie(response.headers_mut(), context, &ended);
    Ok(response)
}
