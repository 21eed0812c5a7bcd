//! What design documents offer besides their views.

use http::{Method, Response, StatusCode};
use scrinium_database::NO_LOCAL_ATTACHMENTS;

use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};

/// `GET /{db}/_design/{name}/_info`.
pub(crate) async fn info(context: &Context) -> Result<Response<Body>> {
    let wanted = context.address.value("ddoc")?.to_owned();
    let info = context.with_database(move |database| Ok(database.view_info(&wanted)?)).await?;
    Ok(response::json_value(StatusCode::OK, &info))
}

/// CouchDB's functions that this server does not run, and why not.
pub(crate) fn unknown_function(context: &Context) -> Result<Response<Body>> {
    let name = context.address.value("function")?;
    match name.split('/').next().unwrap_or_default() {
        "_show" | "_list" => Err(HttpError::not_implemented(
            "Show and list functions are not offered: read the document or the view, and let the client make a page of it.",
        )),
        "_rewrite" => Err(HttpError::not_implemented(
            "Rewrites are not offered: let a reverse proxy in front of the server rewrite addresses.",
        )),
        "_update" => Err(HttpError::not_found(
            "Invalid path: an update function is asked by `_update/NAME`, or `_update/NAME/ID`.",
        )),
        "_search" | "_search_info" => Err(HttpError::not_implemented(
            "Clouseau's search is not offered: put the index into `nouveau`, and ask `_nouveau/NAME`.",
        )),
        "_nouveau" | "_nouveau_info" => {
            Err(HttpError::not_found("Invalid path: a text index is asked by `_nouveau/NAME`."))
        }
        "_partition" => Err(HttpError::not_implemented("Partitioned databases are not offered.")),
        _ => Err(HttpError::not_found("missing")),
    }
}

/// What is below a database, begins with an underscore and is nothing that we know. CouchDB tells a writer that the id is
/// reserved, and a reader only that nothing is there.
pub(crate) fn unknown_special(context: &Context) -> HttpError {
    if context.database_name().starts_with('_') {
        // A page of CouchDB's that is not offered, such as `/_node/_local/_system`; no database is called so.
        return HttpError::not_found("Database does not exist.");
    }
    let name = context.address.get("special").unwrap_or_default().split('/').next().unwrap_or_default();
    if name == "_temp_view" {
        let reason =
            "Temporary views are not supported; put the map function into a design document, or ask `_find`.";
        return HttpError::new(StatusCode::GONE, "gone", reason);
    }
    if name == "_partition" {
        return HttpError::not_implemented("Partitioned databases are not offered.");
    }
    if name == "_local" {
        return match context.address.get("special") {
            Some("_local") => HttpError::bad_request("Invalid _local document id."),
            _ => HttpError::bad_request(NO_LOCAL_ATTACHMENTS),
        };
    }
    match scrinium_document::validate_id(name) {
        Err(error) if context.method == Method::PUT => error.into(),
        _ => HttpError::not_found("missing"),
    }
}
