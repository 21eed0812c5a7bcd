//! Signing in with a provider (OpenID Connect): a browser is sent there and comes back.
//!
//! What the server has to know when it comes back is sealed into a cookie of this browser, so that nobody can bring another one back
//! to somebody else's sign-in. It must be `SameSite=Lax`: the browser comes from another site.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, SET_COOKIE};
use http::{HeaderMap, Response, StatusCode};

use crate::authority::{LoginRefusal, ProviderReturn};
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::Body;
use crate::session;

const COOKIE_NAME: &str = "SignIn";

/// Where there is `https` (RFC 6265bis §4.1.3.2).
const HOST_COOKIE_NAME: &str = "__Host-SignIn";

/// As long as a sign-in may take.
const KEEP_S: u64 = 15 * 60;

/// Where somebody goes on who did not say where.
const FIRST_PAGE: &str = "/_utils/";

const CONTENT_SECURITY_POLICY: HeaderName = HeaderName::from_static("content-security-policy");
const REFERRER_POLICY: HeaderName = HeaderName::from_static("referrer-policy");

/// `GET /_session/provider`: sends the browser to the provider.
pub(crate) async fn begin(context: &Context) -> Result<Response<Body>> {
    let next = context.query.get("next").unwrap_or(FIRST_PAGE);
    let begun = context.state.authenticator.begin_at_provider(next).await?;
    let location = HeaderValue::try_from(begun.url)
        .map_err(|_| HttpError::unavailable("The provider's address cannot be used."))?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    response.headers_mut().insert(LOCATION, location);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    insert_cookie(response.headers_mut(), context, &begun.sealed, KEEP_S);
    Ok(response)
}

/// `GET /_session/provider/callback`: the browser comes back.
pub(crate) async fn end(context: &Context) -> Result<Response<Body>> {
    let name = if context.client.secure { HOST_COOKIE_NAME } else { COOKIE_NAME };
    let sealed = session::cookie(&context.headers, name).unwrap_or_default();
    let query = context.query.encoded();
    let ended = context.state.authenticator.end_at_provider(sealed, &query, context.client.address).await;
    let mut response = match ended {
        Ok(ProviderReturn { identity, next }) => {
            let session = context.state.authenticator.open_session(&identity);
            let mut response = going_on(&next);
            session::insert_cookie(response.headers_mut(), context, &session);
            response
        }
        Err(LoginRefusal::SecondStep(step)) => session::ask_for(&step),
        Err(refusal) => return Err(refusal.into()),
    };
    // It is good for once.
    insert_cookie(response.headers_mut(), context, "", 0);
    Ok(response)
}

/// A page that goes on by itself. A redirection would still be one of another site, to which no browser sends a session's
/// cookie (`SameSite=Strict`).
fn going_on(next: &str) -> Response<Body> {
    let next = next.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;");
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0; url=&quot;{next}&quot;\">\
         <title>Signed in</title><p><a href=\"{next}\">Go on</a>"
    );
    let mut response = Response::new(Body::whole(page.into_bytes()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    );
    // The address holds the provider's code.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

fn insert_cookie(headers: &mut HeaderMap, context: &Context, sealed: &str, keep_s: u64) {
    let (name, secure) =
        if context.client.secure { (HOST_COOKIE_NAME, "; Secure") } else { (COOKIE_NAME, "") };
    let text = format!("{name}={sealed}; Path=/; HttpOnly; SameSite=Lax; Max-Age={keep_s}{secure}");
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.append(SET_COOKIE, value);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use http_body_util::BodyExt;

    #[tokio::test]
    async fn the_page_that_goes_on_is_text_whatever_the_address() {
        let page = super::going_on("/a?b=1&c=\"><script>alert(1)</script>");
        let text = page.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(text.to_vec()).unwrap();
        assert!(!text.contains("<script") && !text.contains("c=\""), "{text}");
    }
}
