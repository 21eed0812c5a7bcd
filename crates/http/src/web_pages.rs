//! The web console's files at `/_utils/`. Everybody gets them: they hold nothing of this server, and what they show they ask
//! for by the other routes.

use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, VARY,
};
use http::{Response, StatusCode};
use scrinium_web_pages::{Page, SECURITY_HEADERS, find};

use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};

/// `GET /_utils` and `/_utils/`. Its files are named relative to the second, so that they are found behind a proxy that puts
/// the server below a path of its own too.
pub(crate) fn first(context: &Context) -> Result<Response<Body>> {
    if context.address.is_folder {
        return file(context);
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static("_utils/"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// `GET /_utils/{file}`.
pub(crate) fn file(context: &Context) -> Result<Response<Body>> {
    let page = find(context.address.get("file").unwrap_or_default())
        .ok_or_else(|| HttpError::not_found("The web console has no such file."))?;
    let mut response = if context.knows(page.etag) {
        response::not_modified(page.etag)
    } else {
        let (encoding, bytes) = page.encoded(context.header(&ACCEPT_ENCODING));
        let mut response = Response::new(Body::whole(bytes));
        if let Some(encoding) = encoding {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(page.media_type));
        response::insert_etag(response.headers_mut(), page.etag);
        response
    };
    describe(page, &mut response);
    Ok(response)
}

fn describe(page: &Page, response: &mut Response<Body>) {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(page.cache_control()));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    for (name, value) in SECURITY_HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}
