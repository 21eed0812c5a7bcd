//! What legal holds keep of documents that were replaced or deleted, for administrators of the server.

use http::{Response, StatusCode};
use scrinium_document::json::JsonWriter;

use crate::access::Opened;
use crate::context::Context;
use crate::document::{self, FoundDocument};
use crate::error::{HttpError, Result};
use crate::query::Given;
use crate::response::{self, Body};

/// Rows of one answer where nothing is said, and at most.
const ROWS: usize = 50;
const ROWS_MAX: usize = 500;

/// `GET /{db}/_held`: held revisions in the order of ids, from behind `id` and `rev` on; with `attachments`, the one of `id` and
/// `rev` alone, with its attachments in it.
pub(crate) async fn get(context: &Context) -> Result<Response<Body>> {
    let text = |name: &str| context.query.get(name).map(str::to_owned);
    let named = text("id").zip(text("rev"));
    if context.query.is_true("attachments") {
        let (id, revision) = named.ok_or_else(|| {
            HttpError::bad_request("`attachments` are shown of one revision: name its `id` and `rev`")
        })?;
        let read = move |database: Opened| FoundDocument::of(database.held_revision(&id, &revision)?);
        return document::untagged(context, context.with_database(read).await?);
    }
    let limit = match context.query.get("limit") {
        Some(limit) => usize::try_from(Given::Text(limit).count()?).unwrap_or(ROWS_MAX).min(ROWS_MAX),
        None => ROWS,
    };
    let read = move |database: Opened| {
        let after = named.as_ref().map(|(id, revision)| (id.as_str(), revision.as_str()));
        let mut text = JsonWriter::new();
        text.literal("{\"held\":[");
        for (place, held) in database.held_revisions(after, limit)?.into_iter().enumerate() {
            text.literal(if place > 0 { "," } else { "" });
            text.literal("{\"id\":").string(&held.id).literal(",\"rev\":").string(&held.revision);
            text.literal(",\"removed_ms\":").number(held.removed_ms);
            text.literal(",\"doc\":").json(&held.json).literal("}");
        }
        text.literal("]}\n");
        Ok(text)
    };
    Ok(response::json(StatusCode::OK, context.with_database(read).await?))
}
