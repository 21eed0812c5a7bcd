//! The files of the web console at `/_utils/` and of the client at `/_app/`. Everybody gets them: they hold nothing of this server,
//! and what they show they ask for by the other routes.

use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, VARY,
};
use http::{Response, StatusCode};
use scrinium_web_pages::{Page, Program, find};

use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};

/// `GET /_utils` and `/_utils/`. Its files are named relative to the second, so that they are found behind a proxy that puts
/// the server below a path of its own too.
pub(crate) fn first(context: &Context) -> Result<Response<Body>> {
    opened(context, Program::Console, "_utils/")
}

/// `GET /_utils/{file}`.
pub(crate) fn file(context: &Context) -> Result<Response<Body>> {
    page(context, Program::Console)
}

/// `GET /_app` and `/_app/`.
pub(crate) fn client(context: &Context) -> Result<Response<Body>> {
    opened(context, Program::Client, "_app/")
}

/// `GET /_app/{file}`.
pub(crate) fn client_file(context: &Context) -> Result<Response<Body>> {
    page(context, Program::Client)
}

fn opened(context: &Context, program: Program, folder: &'static str) -> Result<Response<Body>> {
    if context.address.is_folder {
        return page(context, program);
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(folder));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

fn page(context: &Context, program: Program) -> Result<Response<Body>> {
    let page = find(program, context.address.get("file").unwrap_or_default())
        .ok_or_else(|| HttpError::not_found("There is no such file of the web pages."))?;
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
    describe(page, program, &mut response);
    Ok(response)
}

fn describe(page: &Page, program: Program, response: &mut Response<Body>) {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(page.cache_control()));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    for (name, value) in program.security_headers() {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}
