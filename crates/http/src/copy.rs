//! COPY: a document under another id, on the server.

use http::{HeaderName, Response};
use percent_encoding::percent_decode_str;
use scrinium_database::EditMode;

use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::Body;
#[allow(unused_imports)]
use crate::soon::Soon;
use crate::write;

const DESTINATION: HeaderName = HeaderName::from_static("destination");

/// `COPY /{db}/{id}` with the header `Destination: other?rev=…`.
pub(crate) async fn copy(context: &Context, database: &str, id: &str) -> Result<Response<Body>> {
    let _timer = context.state.operations.update_note.start();
    let (target, target_revision) = destination(context)?;
    let source = id.to_owned();
    let source_revision = context.query.get("rev").map(str::to_owned);
    let need = write::need_for(&target);
    let updated = write::store(context, database, need, EditMode::Interactive, move |database| {
        let revision = target_revision.as_deref();
        Ok(database.copy_edit(&source, source_revision.as_deref(), &target, revision)?)
    })
    .await?;
    Ok(write::created(context, database, &updated))
}

/// The id and revision that the document is copied to.
fn destination(context: &Context) -> Result<(String, Option<String>)> {
    let header = context
        .header(&DESTINATION)
        .ok_or_else(|| HttpError::bad_request("Destination header is mandatory for COPY."))?;
    if header.starts_with("http://") || header.starts_with("https://") {
        return Err(HttpError::bad_request("Destination URL must be relative."));
    }
    let (path, query) = header.split_once('?').map_or((header, None), |(path, query)| (path, Some(query)));
    let decoded = percent_decode_str(path.trim_start_matches('/')).decode_utf8();
    let id = decoded.map_err(|_| HttpError::bad_request("The destination is not UTF-8 once decoded."))?;
    if id.is_empty() {
        return Err(HttpError::bad_request("Destination header is mandatory for COPY."));
    }
    let revision = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("rev=")));
    Ok((id.into_owned(), revision.map(str::to_owned)))
}
