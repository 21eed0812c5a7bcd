//! Pages about the server as a whole.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, EXPIRES, HeaderValue, PRAGMA};
use http::{Response, StatusCode};
use md5::{Digest as _, Md5};
use scrinium_document::json::JsonWriter;
use scrinium_statistics::PROMETHEUS_CONTENT_TYPE;
use serde::Deserialize;
use serde_json::json;

use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::replication;
use crate::response::{self, Body};

/// The version of CouchDB whose interface this is; clients decide by it what they may ask for.
const INTERFACE_VERSION: &str = "3.5.0";

/// More than this many identifiers at once are refused, as CouchDB does by default.
const MOST_UUIDS: u64 = 1000;

/// `GET /`.
pub(crate) fn welcome(context: &Context) -> Response<Body> {
    // CouchDB's clients look for these before they log in; which version of ours it is concerns those who have.
    let mut vendor = json!({"name": "Scrinium"});
    if let (false, Some(vendor)) = (context.identity.is_anonymous(), vendor.as_object_mut()) {
        vendor.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    }
    let text = json!({
        "couchdb": "Welcome",
        "version": INTERFACE_VERSION,
        "uuid": context.state.databases.server_uuid(),
        "features": ["formula"],
        "vendor": vendor,
    });
    response::json_value(StatusCode::OK, &text)
}

/// `GET /_up`. While changes are held for a snapshot it says for how long at most, and while none are taken, because the disk
/// is full or the log failed, it says why; the server is up all the same, and reading continues.
pub(crate) fn up(context: &Context) -> Response<Body> {
    if let Err(error) = context.state.databases.check_writable() {
        let text = json!({"status": "read_only", "seeds": {}, "reason": error.to_string()});
        return response::json_value(StatusCode::OK, &text);
    }
    match context.state.administration.frozen() {
        None => response::json(StatusCode::OK, JsonWriter::of_literal("{\"status\":\"ok\",\"seeds\":{}}\n")),
        Some(left) => {
            let seconds = left.as_secs_f64().ceil();
            response::json_value(
                StatusCode::OK,
                &json!({"status": "ok", "seeds": {}, "frozen_seconds": seconds}),
            )
        }
    }
}

/// `GET /_uuids?count=`.
pub(crate) fn uuids(context: &Context) -> Result<Response<Body>> {
    let count = match context.query.get("count") {
        None => 1,
        Some(text) => crate::query::Given::Text(text).count()?,
    };
    if count > MOST_UUIDS {
        return Err(HttpError::bad_request("count parameter too large"));
    }
    let uuids: Vec<String> = (0..count).map(|_| context.state.uuids.next()).collect();
    let mut response = response::json_value(StatusCode::OK, &json!({"uuids": uuids}));
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("must-revalidate, no-cache"));
    headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
    // A day that has passed, and a tag that no other answer has: nobody is to be given what somebody else was.
    headers.insert(EXPIRES, HeaderValue::from_static("Fri, 01 Jan 1990 00:00:00 GMT"));
    response::insert_etag(headers, &STANDARD.encode(Md5::digest(uuids.concat())));
    Ok(response)
}

/// `GET /_membership`: this server alone.
pub(crate) fn membership(context: &Context) -> Response<Body> {
    let nodes = [&context.state.options.node_name];
    response::json_value(StatusCode::OK, &json!({"all_nodes": nodes, "cluster_nodes": nodes}))
}

/// `GET /_stats` and `/_node/_local/_stats`.
pub(crate) async fn statistics(context: &Context) -> Result<Response<Body>> {
    let administration = Arc::clone(&context.state.administration);
    let statistics = context.state.run(move || Ok(administration.statistics())).await?;
    Ok(response::json_value(StatusCode::OK, &statistics))
}

/// `GET /metrics` and `/_node/_local/_prometheus`.
pub(crate) async fn prometheus(context: &Context) -> Result<Response<Body>> {
    let administration = Arc::clone(&context.state.administration);
    let text = context.state.run(move || Ok(administration.prometheus())).await?;
    let mut response = Response::new(Body::whole(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROMETHEUS_CONTENT_TYPE));
    response.headers_mut().insert(CACHE_CONTROL, response::MUST_REVALIDATE);
    Ok(response)
}

/// `GET /_active_tasks`.
pub(crate) async fn active_tasks(context: &Context) -> Result<Response<Body>> {
    let administration = Arc::clone(&context.state.administration);
    let mut tasks = context.state.run(move || Ok(administration.active_tasks())).await?;
    if let Some(tasks) = tasks.as_array_mut() {
        tasks.extend(replication::tasks(context));
    }
    Ok(response::json_value(StatusCode::OK, &tasks))
}

#[derive(Deserialize)]
struct Command {
    command: String,
}

/// `POST /_console` with `{"command":"show stat"}`; answers `{"ok":true,"text":…,"data":…}`.
pub(crate) async fn console(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    context.require_json()?;
    let Command { command } = body.json().await?;
    let administration = Arc::clone(&context.state.administration);
    let (by, from) = (context.identity.clone(), context.client.address);
    if !by.is_administrator() && !administration.only_shows(&command) {
        return Err(HttpError::forbidden(
            "You may look on, and give commands that show something: show, help.",
        ));
    }
    let answer = context
        .state
        .run(move || administration.console(&command, &by, from).map_err(HttpError::bad_request))
        .await?;
    Ok(response::json_value(StatusCode::OK, &json!({"ok": true, "text": answer.text, "data": answer.data})))
}
