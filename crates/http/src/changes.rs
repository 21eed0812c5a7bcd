//! `_changes`: what is asked for, and the feed that ends with the last change there is.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, Response, StatusCode};
use scrinium_database::{Change, Changes, ChangesFilter, ChangesQuery, Since};
use scrinium_document::json::JsonWriter;
use scrinium_mango::Selector;
use scrinium_views::selector_filter;
use serde_json::{Map, Value};

use crate::access::Opened;
use crate::asked::AskedObject;
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::feed::{self, Style};
use crate::query::Given;
use crate::response::{self, Body, PIECE_BYTES, READ_AT_ONCE_BYTES};
use crate::stream::{self, Piece, Source};

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
pub(crate) async fn changes(context: &Context, body: Option<&mut RequestBody>) -> Result<Response<Body>> {
    let members = match body {
        Some(body) => {
            context.require_json()?;
            Some(body.object_or_nothing().await?)
        }
        None => None,
    };
    let mut query = changes_query(context, members.as_ref())?;
    let style = style(context, &query)?;
    if let Some(wanted) = DesignFilter::of(context)? {
        let text =
            members.filter(|members| !members.is_empty()).map(|members| Value::Object(members).to_string());
        let request = AskedObject::of(context, None, text.as_deref())?;
        query.filter = Some(context.with_database(move |database| wanted.open(&database, request)).await?);
    }
    let Some(style) = style else {
        let begun = context
            .with_database(move |database| {
                stream::begin(ChangesText::new(database.changes(query)?, Shape::Changes))
            })
            .await?;
        return Ok(response::json_body(StatusCode::OK, begun.into_body(context, None)?));
    };
    feed::open(context, query, style, waiting(context)?).await
}

/// How a feed that stays open is written; `None` for one that ends with the last change there is.
pub(crate) fn style(context: &Context, query: &ChangesQuery) -> Result<Option<Style>> {
    Ok(match context.query.get("feed") {
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
    })
}

pub(crate) fn waiting(context: &Context) -> Result<Waiting> {
    let longest = context.state.options.changes_timeout_ms;
    let count = |text| Given::Text(text).count();
    let heartbeat = match context.query.get("heartbeat") {
        None | Some("false") => None,
        Some("true") => Some(longest),
        Some(text) => {
            let value = text.parse::<i128>().map_err(|_| {
                let reason = "Invalid heartbeat value. Expecting a positive integer value (in milliseconds).";
                HttpError::bad_request(reason)
            })?;
            let value = u64::try_from(value).ok().filter(|value| *value > 0);
            Some(value.ok_or_else(|| {
                HttpError::bad_request("The heartbeat value should be a positive integer (in milliseconds).")
            })?)
        }
    };
    let timeout = context.query.get("timeout").map(count).transpose()?.unwrap_or(longest);
    Ok(Waiting {
        heartbeat: heartbeat.map(|value| Duration::from_millis(value.min(longest)).max(LEAST_HEARTBEAT)),
        timeout: Duration::from_millis(timeout.min(longest)),
    })
}

fn changes_query(context: &Context, body: Option<&Map<String, Value>>) -> Result<ChangesQuery> {
    filtered(plain_query(context)?, context, body)
}

/// What is asked for without any filter.
pub(crate) fn plain_query(context: &Context) -> Result<ChangesQuery> {
    let query = &context.query;
    let resumed = context.header(&LAST_EVENT_ID).or_else(|| query.get("last-event-id"));
    let since = match resumed.or_else(|| query.get("since")) {
        None | Some("" | "0" | "\"0\"") => Since::Beginning,
        Some("now") => Since::Now,
        // Clients may send back the sequence as the JSON string that they got.
        Some(text) => Since::At(text.trim_matches('"').to_owned()),
    };
    Ok(ChangesQuery {
        since,
        descending: query.is_true("descending"),
        limit: query.get("limit").map(|text| Given::Text(text).count()).transpose()?,
        include_documents: query.is_true("include_docs"),
        conflicts: query.is_true("conflicts"),
        attachments: query.is_true("attachments"),
        piece_bytes: Some(READ_AT_ONCE_BYTES),
        all_leaves: query.get("style") == Some("all_docs"),
        ..ChangesQuery::default()
    })
}

/// What `filter` leaves of the changes; `body` is that of a POST.
fn filtered(
    mut query: ChangesQuery,
    context: &Context,
    body: Option<&Map<String, Value>>,
) -> Result<ChangesQuery> {
    match context.query.get("filter") {
        None => {}
        Some("_design") => query.design_only = true,
        Some("_doc_ids") => {
            let ids = match (body.and_then(|body| body.get("doc_ids")), context.query.get("doc_ids")) {
                (Some(ids), _) => ids.clone(),
                (None, Some(text)) => serde_json::from_str(text).map_err(|_| HttpError::invalid_json())?,
                (None, None) => {
                    let reason = "`doc_ids` must be given with the filter `_doc_ids`.";
                    return Err(HttpError::bad_request(reason));
                }
            };
            let ids = serde_json::from_value(ids)
                .map_err(|_| HttpError::bad_request("`doc_ids` filter parameter is not a list."))?;
            query.ids = Some(ids);
        }
        Some("_selector") => {
            let body =
                body.ok_or_else(|| HttpError::bad_request("Selector must be passed in POST payload"))?;
            let selector = body
                .get("selector")
                .ok_or_else(|| HttpError::bad_request("Selector must be specified in POST payload"))?;
            let selector =
                Selector::parse(selector).map_err(|error| HttpError::bad_request(error.reason()))?;
            query.filter = Some(selector_filter(selector));
        }
        // See `DesignFilter`.
        Some(_) => {}
    }
    Ok(query)
}

/// A filter that stands in a design document.
enum DesignFilter {
    Function { design: String, name: String },
    View { design: String, name: String },
}

impl DesignFilter {
    /// The one that a request wants, if it wants one.
    fn of(context: &Context) -> Result<Option<Self>> {
        match context.query.get("filter") {
            None | Some("" | "_doc_ids" | "_selector" | "_design") => Ok(None),
            Some("_view") => {
                let view = context.query.get("view").filter(|view| !view.is_empty());
                let view =
                    view.ok_or_else(|| HttpError::bad_request("`view` filter parameter is not provided."))?;
                let reason = "`view` must be of the form `designname/viewname`";
                let (design, name) = names_of(view).ok_or_else(|| HttpError::bad_request(reason))?;
                Ok(Some(Self::View { design, name }))
            }
            Some(filter) => {
                let reason = "`filter` must be one of `_doc_ids`, `_selector`, `_design`, `_view`, or of the form \
                              `designname/filtername`";
                let (design, name) = names_of(filter).ok_or_else(|| HttpError::bad_request(reason))?;
                Ok(Some(Self::Function { design, name }))
            }
        }
    }

    /// Blocks.
    fn open(&self, database: &Opened, request: AskedObject) -> Result<Arc<dyn ChangesFilter>> {
        match self {
            Self::Function { design, name } => {
                let request = request.with_database(database)?;
                Ok(database.function_filter(design, name, request)?)
            }
            Self::View { design, name } => Ok(database.view_filter(design, name)?),
        }
    }
}

/// The design document and what is meant in it. The design document's name has no slash, or an encoded one.
fn names_of(text: &str) -> Option<(String, String)> {
    let (design, name) = text.split_once('/')?;
    let is_whole = !design.is_empty() && !name.is_empty() && !design.starts_with('_');
    is_whole.then(|| (design.to_owned(), name.to_owned()))
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

    /// Appends up to about a piece of changes by `push`; true at the end.
    pub(crate) fn write(
        &mut self,
        text: &mut JsonWriter,
        mut push: impl FnMut(&mut JsonWriter, &Change),
    ) -> Result<bool> {
        while text.len() < PIECE_BYTES {
            let before = text.len();
            let changes = self.changes.next_changes(self.at_once)?;
            changes.iter().for_each(|change| push(text, change));
            if self.changes.is_at_end() {
                return Ok(true);
            }
            if changes.is_empty() {
                // A filter left out as many as may be looked at in one piece.
                return Ok(false);
            }
            let average = ((text.len() - before) / changes.len()).max(1);
            self.at_once = (PIECE_BYTES / average).clamp(1, MOST_CHANGES);
        }
        Ok(false)
    }
}

/// What is made of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Changes of documents.
    Changes,
    /// What became of databases: documents of the database of events, each of which has its kind and a name as its id.
    Events,
}

impl Shape {
    /// Appends a change as CouchDB writes it.
    pub(crate) fn push(self, text: &mut JsonWriter, change: &Change) {
        match self {
            Self::Changes => push_change(text, change),
            Self::Events => {
                let (kind, name) = change.id.split_once(':').unwrap_or_default();
                text.literal("{\"db_name\":").string(name);
                text.literal(",\"type\":").string(kind);
                text.literal(",\"seq\":").string(&change.sequence).literal("}");
            }
        }
    }

    /// Appends what follows the last sequence in a feed.
    pub(crate) fn push_pending(self, text: &mut JsonWriter, pending: Option<u64>) {
        if self == Self::Changes {
            text.literal(",\"pending\":");
            text.number_or_null(pending);
        }
        text.literal("}\n");
    }

    /// Appends what ends a feed of one JSON object.
    pub(crate) fn push_end(self, text: &mut JsonWriter, last_sequence: &str, pending: Option<u64>) {
        text.literal("\n],\n\"last_seq\":");
        text.string(last_sequence);
        self.push_pending(text, pending);
    }
}

fn push_change(text: &mut JsonWriter, change: &Change) {
    text.literal("{\"seq\":");
    text.string(&change.sequence);
    text.literal(",\"id\":");
    text.string(&change.id);
    text.literal(",\"changes\":[");
    for (number, revision) in change.revisions.iter().enumerate() {
        text.literal(if number > 0 { ",{\"rev\":" } else { "{\"rev\":" });
        text.string(revision);
        text.literal("}");
    }
    text.literal("]");
    if change.deleted {
        text.literal(",\"deleted\":true");
    }
    if let Some(document) = &change.document {
        text.literal(",\"doc\":");
        text.json(document);
    }
    text.literal("}");
}

enum Stage {
    Head,
    First,
    Rest,
}

/// The normal feed.
pub(crate) struct ChangesText {
    changes: ChangeReader,
    shape: Shape,
    stage: Stage,
}

impl ChangesText {
    pub(crate) fn new(changes: Changes, shape: Shape) -> Self {
        Self { changes: ChangeReader::new(changes), shape, stage: Stage::Head }
    }
}

impl Source for ChangesText {
    fn next_piece(&mut self) -> Result<Piece> {
        let mut text = JsonWriter::with_capacity(1024);
        if matches!(self.stage, Stage::Head) {
            text.literal("{\"results\":[\n");
            self.stage = Stage::First;
        }
        let (stage, shape) = (&mut self.stage, self.shape);
        let last = self.changes.write(&mut text, |text, change| {
            text.literal(if matches!(stage, Stage::Rest) { ",\n" } else { "" });
            *stage = Stage::Rest;
            shape.push(text, change);
        })?;
        if last {
            let pending = self.changes.changes.pending()?;
            shape.push_end(&mut text, &self.changes.changes.last_sequence(), pending);
        }
        if text.is_empty() {
            // Nothing of this piece passes the filter; so the client sees that there is life.
            text.literal("\n");
        }
        Ok(Piece::of_json(text, last))
    }
}

/// Opens the changes after `since`. Blocks.
pub(crate) fn reopen(
    database: &Opened,
    query: &ChangesQuery,
    since: &str,
    limit: Option<u64>,
) -> std::result::Result<ChangeReader, scrinium_database::DatabaseError> {
    let query = ChangesQuery { since: Since::At(since.to_owned()), limit, ..query.clone() };
    Ok(ChangeReader::new(database.changes(query)?))
}
