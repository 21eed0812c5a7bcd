//! `_changes`: what is asked for, and the feed that ends with the last change there is.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Response, StatusCode};
use scrinium_database::{Change, Changes, ChangesQuery, Since};
use serde_json::Value;

use crate::access::Need;
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::feed::{self, Style};
use crate::query::Given;
use crate::response::{self, Body, push_string};
use crate::stream::{self, PIECE_BYTES, Piece, Source};

/// Changes read at once while nobody knows how large they are.
const FIRST_CHANGES: usize = 32;

/// Changes read at once, however small they are.
const MOST_CHANGES: usize = 512;

/// A heartbeat is sent no more often than this.
const LEAST_HEARTBEAT: Duration = Duration::from_millis(100);

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// How a feed that stays open behaves while nothing changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// An empty line so often, and no end.
    pub(crate) heartbeat: Option<Duration>,
    /// The end after so long, where there is no heartbeat.
    pub(crate) timeout: Duration,
}

/// `GET` or `POST /{db}/_changes`.
pub(crate) async fn changes(
    context: &Context,
    database: &str,
    body: Option<&mut RequestBody>,
) -> Result<Response<Body>> {
    let _timer = context.state.operations.read_entries.start();
    let ids = match body {
        Some(body) => {
            context.require_json()?;
            body.object_or_nothing(&context.headers).await?.remove("doc_ids")
        }
        None => None,
    };
    let query = changes_query(context, ids)?;
    let style = match context.query.get("feed") {
        None | Some("normal") => None,
        // A feed that goes backwards has no new end to wait for.
        Some("longpoll") if query.descending => None,
        Some("longpoll") => Some(Style::LongPoll),
        Some("continuous" | "live") => Some(Style::Continuous),
        Some("eventsource") => Some(Style::EventSource),
        Some(_) => {
            return Err(HttpError::bad_request(
                "Supported `feed` types: normal, continuous, live, longpoll, eventsource",
            ));
        }
    };
    let Some(style) = style else {
        let begun = context
            .with_database(database, Need::Member, move |database| {
                stream::begin(ChangesText {
                    changes: ChangeReader::new(database.changes(query)?),
                    stage: Stage::Head,
                })
            })
            .await?;
        return Ok(response::json_body(StatusCode::OK, begun.into_body(&context.state.workers, None)));
    };
    feed::open(context, database, query, style, waiting(context)?).await
}

fn waiting(context: &Context) -> Result<Waiting> {
    let longest = context.state.options.changes_timeout_ms;
    let count = |text| Given::Text(text).count();
    let heartbeat = match context.query.get("heartbeat") {
        None | Some("false") => None,
        Some("true") => Some(longest),
        Some(text) => Some(count(text).ok().filter(|value| *value > 0).ok_or_else(|| {
            HttpError::bad_request("The heartbeat value should be a positive integer (in milliseconds).")
        })?),
    };
    let timeout = context.query.get("timeout").map(count).transpose()?.unwrap_or(longest);
    Ok(Waiting {
        heartbeat: heartbeat.map(|value| Duration::from_millis(value.min(longest)).max(LEAST_HEARTBEAT)),
        timeout: Duration::from_millis(timeout.min(longest)),
    })
}

fn changes_query(context: &Context, body_ids: Option<Value>) -> Result<ChangesQuery> {
    let query = &context.query;
    let resumed = context.header(&LAST_EVENT_ID).or_else(|| query.get("last-event-id"));
    let since = match resumed.or_else(|| query.get("since")) {
        None | Some("" | "0" | "\"0\"") => Since::Beginning,
        Some("now") => Since::Now,
        // Clients may send back the sequence as the JSON string that they got.
        Some(text) => Since::At(text.trim_matches('"').to_owned()),
    };
    let (ids, design_only) = filter(context, body_ids)?;
    Ok(ChangesQuery {
        since,
        descending: query.is_true("descending"),
        limit: query.get("limit").map(|text| Given::Text(text).count()).transpose()?,
        include_documents: query.is_true("include_docs"),
        conflicts: query.is_true("conflicts"),
        attachments: query.is_true("attachments"),
        all_leaves: query.get("style") == Some("all_docs"),
        ids,
        design_only,
    })
}

fn filter(context: &Context, body_ids: Option<Value>) -> Result<(Option<Vec<String>>, bool)> {
    let Some(filter) = context.query.get("filter") else { return Ok((None, false)) };
    match filter {
        "_design" => Ok((None, true)),
        "_doc_ids" => {
            let ids = match (body_ids, context.query.get("doc_ids")) {
                (Some(ids), _) => ids,
                (None, Some(text)) => serde_json::from_str(text).map_err(|_| HttpError::invalid_json())?,
                (None, None) => {
                    return Err(HttpError::bad_request(
                        "`doc_ids` must be given with the filter `_doc_ids`.",
                    ));
                }
            };
            let ids = serde_json::from_value(ids)
                .map_err(|_| HttpError::bad_request("`doc_ids` filter parameter is not a list."))?;
            Ok((Some(ids), false))
        }
        other => Err(HttpError::not_implemented(format!(
            "The filter `{other}` is not offered; there are `_doc_ids` and `_design`."
        ))),
    }
}

/// Changes, read as many at once as fill a piece.
pub(crate) struct ChangeReader {
    pub(crate) changes: Changes,
    at_once: usize,
}

impl ChangeReader {
    pub(crate) fn new(changes: Changes) -> Self {
        Self { changes, at_once: FIRST_CHANGES }
    }

    /// Appends about a piece of changes by `push`; true at the end.
    pub(crate) fn write(
        &mut self,
        text: &mut String,
        mut push: impl FnMut(&mut String, &Change),
    ) -> Result<bool> {
        while text.len() < PIECE_BYTES {
            let before = text.len();
            let changes = self.changes.next_changes(self.at_once)?;
            if changes.is_empty() {
                return Ok(true);
            }
            changes.iter().for_each(|change| push(text, change));
            let average = ((text.len() - before) / changes.len()).max(1);
            self.at_once = (PIECE_BYTES / average).clamp(1, MOST_CHANGES);
        }
        Ok(false)
    }
}

/// Appends a change as CouchDB writes it.
pub(crate) fn push_change(text: &mut String, change: &Change) {
    text.push_str("{\"seq\":");
    push_string(text, &change.sequence);
    text.push_str(",\"id\":");
    push_string(text, &change.id);
    text.push_str(",\"changes\":[");
    for (number, revision) in change.revisions.iter().enumerate() {
        text.push_str(if number > 0 { ",{\"rev\":" } else { "{\"rev\":" });
        push_string(text, revision);
        text.push('}');
    }
    text.push(']');
    if change.deleted {
        text.push_str(",\"deleted\":true");
    }
    if let Some(document) = &change.document {
        text.push_str(",\"doc\":");
        text.push_str(document);
    }
    text.push('}');
}

/// Appends what ends a feed of one JSON object.
pub(crate) fn push_end(text: &mut String, last_sequence: &str, pending: u64) {
    text.push_str("\n],\n\"last_seq\":");
    push_string(text, last_sequence);
    text.push_str(",\"pending\":");
    text.push_str(&pending.to_string());
    text.push_str("}\n");
}

enum Stage {
    Head,
    First,
    Rest,
}

/// The normal feed.
struct ChangesText {
    changes: ChangeReader,
    stage: Stage,
}

impl Source for ChangesText {
    fn next_piece(&mut self) -> Result<Piece> {
        let mut text = String::with_capacity(1024);
        if matches!(self.stage, Stage::Head) {
            text.push_str("{\"results\":[\n");
            self.stage = Stage::First;
        }
        let stage = &mut self.stage;
        let last = self.changes.write(&mut text, |text, change| {
            text.push_str(if matches!(stage, Stage::Rest) { ",\n" } else { "" });
            *stage = Stage::Rest;
            push_change(text, change);
        })?;
        if last {
            push_end(&mut text, &self.changes.changes.last_sequence(), self.changes.changes.pending());
        }
        Ok(Piece { bytes: Bytes::from(text), last })
    }
}

/// Opens the changes after `since`. Blocks.
pub(crate) fn reopen(
    database: &Arc<scrinium_database::Database>,
    query: &ChangesQuery,
    since: &str,
    limit: Option<u64>,
) -> std::result::Result<ChangeReader, scrinium_database::DatabaseError> {
    let query = ChangesQuery { since: Since::At(since.to_owned()), limit, ..query.clone() };
    Ok(ChangeReader::new(database.changes(query)?))
}
