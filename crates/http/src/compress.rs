//! Compression of answers, for ports that have it switched on.

use std::convert::Infallible;

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue};
use http::{Request, Response};
use http_body_util::BodyExt;
use tower::Service;
use tower::util::{ServiceExt, service_fn};
use tower_http::compression::{Compression, CompressionLevel};

use crate::error::HttpError;
use crate::response::Body;

/// Shorter answers than this would hardly become shorter.
const LEAST_BYTES: u64 = 512;

/// Marks an answer that goes out drop by drop: a compressor would hold the drops back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uncompressed;

/// Compresses an answer with the best encoding that the client takes, where it is worth it.
pub(crate) async fn compress(accepted: &HeaderValue, response: Response<Body>) -> Response<Body> {
    let known =
        accepted.to_str().is_ok_and(|accepted| accepted.contains("gzip") || accepted.contains("zstd"));
    if !known || !is_worth_it(&response) {
        return response;
    }
    let mut asked = Request::new(());
    asked.headers_mut().insert(ACCEPT_ENCODING, accepted.clone());
    let mut held = Some(response);
    let service = service_fn(move |_: Request<()>| {
        std::future::ready(Ok::<_, Infallible>(held.take().unwrap_or_else(|| Response::new(Body::empty()))))
    });
    let mut compression = Compression::new(service).quality(CompressionLevel::Fastest);
    let ready = match compression.ready().await {
        Ok(ready) => ready,
        Err(never) => match never {},
    };
    match ready.call(asked).await {
        Ok(compressed) => {
            let (mut head, body) = compressed.into_parts();
            weaken_etag(&mut head.headers);
            let pieces = body.into_data_stream();
            Response::from_parts(head, Body::pieces(futures_util::TryStreamExt::map_err(pieces, broken)))
        }
        Err(never) => match never {},
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn broken(error: Box<dyn std::error::Error + Send + Sync>) -> HttpError {
    HttpError::internal(format!("compression failed: {error}"))
}

fn is_worth_it(response: &Response<Body>) -> bool {
    let is_encoded = response.headers().contains_key(CONTENT_ENCODING);
    if is_encoded || response.extensions().get::<Uncompressed>().is_some() || !response.status().is_success()
    {
        return false;
    }
    if response.body().length().is_some_and(|length| length < LEAST_BYTES) {
        return false;
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim();
    kind.starts_with("text/")
        || kind.starts_with("message/")
        || kind.starts_with("multipart/")
        || kind == "image/svg+xml"
        || ["json", "xml", "javascript"].iter().any(|word| kind.ends_with(word))
}

/// The bytes are no longer those of the strong tag (RFC 9110 §8.8.1).
fn weaken_etag(headers: &mut HeaderMap) {
    let weak = headers.get(ETAG).filter(|_| headers.contains_key(CONTENT_ENCODING)).and_then(|tag| {
        let text = tag.to_str().ok().filter(|text| !text.starts_with("W/"))?;
        HeaderValue::try_from(format!("W/{text}")).ok()
    });
    if let Some(weak) = weak {
        headers.insert(ETAG, weak);
    }
}
