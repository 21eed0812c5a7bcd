//! What the one who asks has not read yet. Next to CouchDB's interface.

use std::sync::Arc;

use http::{Response, StatusCode};
use scrinium_database::Marked;
use scrinium_document::json::JsonWriter;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::access::Opened;
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::folder::{limit, parse, push_changed, push_result, since};
use crate::response::{self, Body};
use crate::write;

/// Whose marks a request is about.
fn person(context: &Context) -> Result<Arc<str>> {
    context.identity.shared_name().ok_or_else(|| HttpError::unauthorized("Authentication required."))
}

/// `GET /{db}/_unread`.
pub(crate) async fn counts(context: &Context) -> Result<Response<Body>> {
    let person = person(context)?;
    let unread = context.with_database(move |database| Ok(database.unread(&person)?)).await?;
    // A person who does not see all documents gets no number of them.
    let Some(unread) = unread else {
        return Ok(response::json_value(StatusCode::OK, &json!({"database": null, "folders": null})));
    };
    let folders: Map<String, Value> =
        unread.folders.into_iter().map(|(name, count)| (name, Value::from(count))).collect();
    Ok(response::json_value(StatusCode::OK, &json!({"database": unread.database, "folders": folders})))
}

/// `POST /{db}/_unread` about all that is in a folder.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FolderMark {
    folder: String,
    read: bool,
}

/// `POST /{db}/_unread` about documents.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct DocumentMarks {
    read: Vec<String>,
    unread: Vec<String>,
}

/// `POST /{db}/_unread`: marks documents, in one batch, or all that is in a folder, in several.
pub(crate) async fn mark(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    context.require_json()?;
    let person = person(context)?;
    let members = body.object().await?;
    if members.contains_key("folder") {
        let FolderMark { folder, read } = parse(members)?;
        let changed =
            context.with_database(move |database| Ok(database.mark_folder(&person, &folder, read)?)).await?;
        return Ok(response::json_value(StatusCode::OK, &json!({"ok": true, "changed": changed})));
    }
    let DocumentMarks { read, unread } = parse(members)?;
    let read = read.into_iter().map(|id| (id, true));
    let marks: Vec<(String, bool)> = read.chain(unread.into_iter().map(|id| (id, false))).collect();
    let ids: Vec<String> = marks.iter().map(|(id, _)| id.clone()).collect();
    let mark = move |database: &Opened| Ok(database.mark_each(&person, marks)?);
    let results = write::submit_all(context, mark).await?;
    let mut text = JsonWriter::new();
    text.literal("[");
    for (id, result) in ids.iter().zip(results) {
        push_result(&mut text, id, result, |text, marked: &Marked| push_changed(text, marked.changed));
    }
    text.literal("]\n");
    Ok(response::json(StatusCode::OK, text))
}

/// `GET /{db}/_unread/_changes?since=&limit=`: what the marks became, each document once.
pub(crate) async fn changes(context: &Context) -> Result<Response<Body>> {
    let (person, since, limit) = (person(context)?, since(context), limit(context)?);
    let found = context
        .with_database(move |database| {
            let since = database.parse_sequence(&since)?;
            let found = database.mark_changes(&person, since, limit)?;
            let rows = found.changes.iter().map(|change| {
                let sequence = database.sequence_text(change.change_number);
                json!({"seq": sequence, "id": change.id, "unread": !change.read})
            });
            Ok(json!({
                "results": rows.collect::<Vec<Value>>(),
                "last_seq": database.sequence_text(found.last),
                "more": found.more,
            }))
        })
        .await?;
    Ok(response::json_value(StatusCode::OK, &found))
}
