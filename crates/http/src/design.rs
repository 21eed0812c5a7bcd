//! What design documents offer beside their views.

use http::{Response, StatusCode};
use scrinium_database::Level;

use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};

/// `GET /{db}/_design/{name}/_info`.
pub(crate) async fn info(context: &Context, database: &str, design: &str) -> Result<Response<Body>> {
    let wanted = design.to_owned();
    let info = context
        .with_database(database, Level::Reader, move |database| {
            Ok(database.view_info(&wanted, &database.access)?)
        })
        .await?;
    Ok(response::json_value(StatusCode::OK, &info))
}

/// CouchDB's functions that this server does not run.
pub(crate) fn unknown_function(name: &str) -> Result<Response<Body>> {
    match name {
        "_show" | "_list" | "_update" | "_rewrite" | "_search" | "_nouveau" => {
            Err(HttpError::not_implemented(format!(
                "Functions of design documents other than views are not offered ({name})."
            )))
        }
        _ => Err(HttpError::not_found("missing")),
    }
}
