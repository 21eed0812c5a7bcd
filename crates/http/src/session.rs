//! Who asks: Basic authentication and the `AuthSession` cookie, and the pages that open and close sessions.
//!
//! CouchDB's clients look for a cookie of the name `AuthSession` and send it back by themselves, so it stays. Where the
//! client uses `https`, a second cookie of the name `__Host-AuthSession` holds the same token and counts first: a browser
//! takes that name only from the host itself, over TLS and for all paths, so that neither a neighbouring host nor an
//! attacker on a plain connection can put a session of their own in its place.

#[cfg(test)]
mod tests;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, ORIGIN,
    SET_COOKIE, USER_AGENT,
};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::audit::AuditAction;
use crate::authority::{Identity, LoginRefusal, ProxiedName, SecondStep, Service, SessionToken, SignIn};
use crate::body::{RequestBody, parse_json};
use crate::client::Client;
use crate::context::Context;
use crate::cors;
use crate::error::{HttpError, Result};
use crate::query::Query;
use crate::response::{self, Body};
use crate::state::HttpState;

const COOKIE_NAME: &str = "AuthSession";

/// Where there is `https` (RFC 6265bis §4.1.3.2).
const HOST_COOKIE_NAME: &str = "__Host-AuthSession";

/// Browsers say by it where a request began: another site's form may not log anybody in.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// CouchDB's headers of a proxy that says who asks.
const PROXIED_NAME: HeaderName = HeaderName::from_static("x-auth-couchdb-username");
const PROXIED_ROLES: HeaderName = HeaderName::from_static("x-auth-couchdb-roles");
const PROXIED_TOKEN: HeaderName = HeaderName::from_static("x-auth-couchdb-token");

/// What is known of the one who asks.
pub(crate) struct Known {
    pub(crate) identity: Identity,
    /// `default` is CouchDB's word for Basic.
    pub(crate) by: Option<&'static str>,
    pub(crate) renewed: Option<SessionToken>,
}

/// Finds out who asks. A cookie that is no good is nobody's; a wrong password is an error.
pub(crate) async fn authenticate(
    state: &HttpState,
    headers: &HeaderMap,
    service: Service,
    client: Client,
) -> Result<Known> {
    if let Some(value) = headers.get(AUTHORIZATION)
        && let Some((name, password)) = basic(value)
    {
        let identity = verify(state, (&name, &password), service, client).await?;
        return Ok(Known { identity, by: Some("default"), renewed: None });
    }
    if let Some(token) = headers.get(AUTHORIZATION).and_then(bearer)
        && state.authenticator.takes_tokens()
    {
        let identity = state.authenticator.bearer(token, client.address).await?;
        return Ok(Known { identity, by: Some("jwt"), renewed: None });
    }
    if let Some(named) = proxied(headers).filter(|_| client.proxied && state.authenticator.takes_proxied()) {
        let identity = state.authenticator.proxied(&named, client.address)?;
        return Ok(Known { identity, by: Some("proxy"), renewed: None });
    }
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let session =
        cookies(headers).find_map(|token| state.authenticator.session(token, client.address, agent));
    Ok(session.map_or_else(
        || Known { identity: Identity::anonymous(), by: None, renewed: None },
        |session| Known { identity: session.identity, by: Some("cookie"), renewed: session.renewed },
    ))
}

/// The person of a name and password. One that was right a moment ago waits for nobody.
async fn verify(
    state: &HttpState,
    (name, password): (&str, &str),
    service: Service,
    client: Client,
) -> Result<Identity> {
    if let Some(identity) = state.authenticator.recall(name, password, service, client.address) {
        return Ok(identity);
    }
    Ok(state.authenticator.verify(name, password, service, client.address).await?)
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

/// The token of a Bearer header (RFC 6750, section 2.1).
fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whom a proxy names, if it names anybody.
fn proxied(headers: &HeaderMap) -> Option<ProxiedName<'_>> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let (roles, token) = (text(&PROXIED_ROLES), text(&PROXIED_TOKEN));
    Some(ProxiedName {
        name: text(&PROXIED_NAME)?,
        roles: roles.unwrap_or_default(),
        token: token.unwrap_or_default(),
    })
}

/// The tokens that a client shows, the one that counts first.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    [HOST_COOKIE_NAME, COOKIE_NAME].into_iter().filter_map(|name| cookie(headers, name))
}

/// Whether a cookie of this name says who asks.
pub(crate) fn is_session_cookie(name: &str) -> bool {
    [HOST_COOKIE_NAME, COOKIE_NAME].contains(&name)
}

pub(crate) fn cookie<'h>(headers: &'h HeaderMap, wanted: &str) -> Option<&'h str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, value)| *name == wanted && !value.is_empty())
        .map(|(_, value)| value)
}

/// Sets the session's cookies: out of scripts' reach, not sent with other sites' forms, and over TLS only where the
/// client uses it, be it towards a proxy. A page of another origin that CORS lets in needs `SameSite=None`, which
/// browsers take over TLS only.
pub(crate) fn insert_cookie(headers: &mut HeaderMap, context: &Context, session: &SessionToken) {
    let is_secure = context.client.secure;
    let secure = if is_secure { "; Secure" } else { "" };
    let same_site = if is_secure && context.port.cors_credentials { "None" } else { "Strict" };
    let names = if is_secure { &[COOKIE_NAME, HOST_COOKIE_NAME][..] } else { &[COOKIE_NAME][..] };
    for name in names {
        let text = format!(
            "{name}={}; Version=1; Path=/; HttpOnly; SameSite={same_site}; Max-Age={}{secure}",
            session.token, session.max_age_seconds
        );
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.append(SET_COOKIE, value);
        }
    }
}

/// `GET /_session`; with `?basic=true` nobody is asked for a name and a password.
pub(crate) fn show(context: &Context) -> Result<Response<Body>> {
    if context.query.is_true("basic") && context.identity.is_anonymous() {
        return Err(HttpError::unauthorized("Please login."));
    }
    let mut handlers = vec!["cookie", "default"];
    if context.state.authenticator.offers_passkeys() {
        handlers.push("passkey");
    }
    let mut info = json!({"authentication_handlers": handlers});
    if let (Some(by), Some(members)) = (context.authenticated_by, info.as_object_mut()) {
        members.insert("authenticated".to_owned(), Value::from(by));
    }
    let user = json!({"name": context.identity.name(), "roles": context.identity.roles()});
    Ok(response::json_value(StatusCode::OK, &json!({"ok": true, "userCtx": user, "info": info})))
}

/// What a client sends to begin a session.
enum Shown {
    Password { name: String, password: String },
    Code { step: String, code: String },
    Passkey { step: Option<String>, challenge: String, response: String },
}

impl Shown {
    const fn as_proof(&self) -> SignIn<'_> {
        match self {
            Self::Password { name, password } => {
                SignIn::Password { name: name.as_str(), password: password.as_str() }
            }
            Self::Code { step, code } => SignIn::Code { step: step.as_str(), code: code.as_str() },
            Self::Passkey { step, challenge, response } => SignIn::Passkey {
                step: match step {
                    Some(step) => Some(step.as_str()),
                    None => None,
                },
                challenge: challenge.as_str(),
                response: response.as_bytes(),
            },
        }
    }
}

/// `POST /_session`: name and password, as JSON or as a form; and, where the account has two-step sign-in, the second step.
pub(crate) async fn open(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let bytes = body.collect().await?;
    let declared = context.header(&CONTENT_TYPE).and_then(|kind| kind.split(';').next()).unwrap_or("");
    let shown = match declared.trim() {
        "application/json" => shown_by_json(&bytes)?,
        "application/x-www-form-urlencoded" => {
            refuse_other_sites(context)?;
            shown_by_form(&bytes)?
        }
        _ => return Err(HttpError::not_json()),
    };
    let next = context.query.get("next").map(local_address).transpose()?;
    match context.state.authenticator.sign_in(shown.as_proof(), context.client.address).await {
        Ok(identity) => Ok(begin(context, &identity, next)),
        Err(LoginRefusal::SecondStep(step)) => Ok(ask_for(&step)),
        Err(refusal) => Err(refusal.into()),
    }
}

/// The first step was right: the client hears what comes next, and gets nothing else.
pub(crate) fn ask_for(step: &SecondStep) -> Response<Body> {
    let text = json!({
        "error": "second_step_required",
        "reason": LoginRefusal::SecondStep(step.clone()).to_string(),
        "step": step.step,
        "second_steps": step.by,
    });
    response::json_value(StatusCode::UNAUTHORIZED, &text)
}

/// Begins a session of somebody who has signed in.
pub(crate) fn begin(context: &Context, identity: &Identity, next: Option<HeaderValue>) -> Response<Body> {
    let session = context.state.authenticator.open_session(identity);
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
    response
}

/// A form of another site may not log its reader in as somebody else; one of an origin that CORS lets in may. JSON needs
/// no such check: a browser sends it to another origin only after a preflight.
fn refuse_other_sites(context: &Context) -> Result<()> {
    let origin = context.header(&ORIGIN);
    let is_let_in = origin.is_some_and(|origin| cors::lets_in(&context.port, origin));
    let is_foreign = match (context.header(&FETCH_SITE), origin) {
        (Some(site), _) => site == "cross-site" || site == "same-site",
        // An older browser: the origin's host must be the one that was asked.
        (None, Some(origin)) => {
            let host = origin.split_once("://").map(|(_, host)| host);
            host.is_none() || host != context.header(&HOST)
        }
        (None, None) => false,
    };
    if is_foreign && !is_let_in {
        return Err(HttpError::forbidden(
            "Pages of another site may not log in here; an administrator can allow them (http.cors_origins).",
        ));
    }
    Ok(())
}

/// An address on this server only, so that nobody is led elsewhere after logging in.
fn local_address(next: &str) -> Result<HeaderValue> {
    let local = next.starts_with('/') && !next.starts_with("//") && !next.contains('\\');
    let address = HeaderValue::try_from(next).ok().filter(|_| local);
    address.ok_or_else(|| HttpError::bad_request("`next` must be a path on this server, beginning with `/`."))
}

fn shown_by_json(bytes: &[u8]) -> Result<Shown> {
    let members: Value = parse_json(bytes)?;
    if !members.is_object() {
        return Err(HttpError::not_object());
    }
    let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
    if let Some(passkey) = members.get("passkey") {
        let challenge = text("challenge");
        let challenge = challenge.ok_or_else(|| HttpError::bad_request("`challenge` must be a text."))?;
        return Ok(Shown::Passkey { step: text("step"), challenge, response: passkey.to_string() });
    }
    shown_by(&text)
}

fn shown_by_form(bytes: &[u8]) -> Result<Shown> {
    let text = std::str::from_utf8(bytes).map_err(|_| HttpError::bad_request("The form is not UTF-8."))?;
    let form = Query::parse(Some(text))?;
    shown_by(&|name| form.get(name).map(str::to_owned))
}

fn shown_by(text: &dyn Fn(&str) -> Option<String>) -> Result<Shown> {
    if let Some(step) = text("step") {
        let code = text("code").ok_or_else(|| HttpError::bad_request("request body must contain a code"))?;
        return Ok(Shown::Code { step, code });
    }
    let name = text("name").or_else(|| text("username"));
    let name = name.ok_or_else(|| HttpError::bad_request("request body must contain a username"))?;
    let password =
        text("password").ok_or_else(|| HttpError::bad_request("request body must contain a password"))?;
    Ok(Shown::Password { name, password })
}

/// `DELETE /_session`: the session is over, here and wherever its token has gone.
pub(crate) async fn close(context: &Context) -> Result<Response<Body>> {
    let tokens: Vec<String> = cookies(&context.headers).map(str::to_owned).collect();
    if !tokens.is_empty() {
        let authenticator = std::sync::Arc::clone(&context.state.authenticator);
        let closed = context.state.run(move || {
            let failed = |error| HttpError::unavailable(format!("Logging out failed: {error}"));
            tokens.iter().try_for_each(|token| authenticator.close_session(token)).map_err(failed)
        });
        closed.await?;
        context.state.standings_changed();
        if let Some(name) = context.identity.name() {
            context.audit(AuditAction::SessionEnded, name, None);
        }
    }
    let mut response = response::ok(StatusCode::OK);
    let ended = SessionToken { token: String::new(), max_age_seconds: 0 };
    insert_cookie(response.headers_mut(), context, &ended);
    Ok(response)
}
