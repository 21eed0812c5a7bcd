//! Rows: `_all_docs` and its like, and views.

use std::collections::VecDeque;
use std::sync::Arc;

use http::{Response, StatusCode};
use scrinium_database::{FolderPlace, Row, RowQuery, Rows};
use scrinium_document::json::JsonWriter;
use scrinium_views::Reading;
use serde_json::{Map, Value};

use crate::access::Opened;
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::query;
use crate::response::{self, Body, PIECE_BYTES};
use crate::stream::{self, Piece, Source};

/// Rows read at once while nobody knows how large they are.
const FIRST_ROWS: usize = 32;

/// Rows read at once, however small they are.
const MOST_ROWS: usize = 512;

/// A view that was up to date when the answer began has reached at least this change.
const REACHED_AT_FIRST: u64 = 1;

/// Queries in one request.
const MOST_QUERIES: usize = 100;

/// Where rows come from.
#[derive(Clone, Debug)]
pub(crate) enum Listing {
    All,
    Design,
    Local,
    View { design: String, view: String },
    Folder { name: String, person: Option<Arc<str>> },
}

impl Listing {
    /// `reached` is known to one who has waited.
    fn open(&self, database: &Opened, query: RowQuery, reached: Option<u64>) -> Result<Reading<Rows>> {
        Ok(match self {
            Self::All => Reading::Ready(database.all_documents(query)?),
            Self::Design => Reading::Ready(database.design_documents(query)?),
            Self::Local => Reading::Ready(database.local_documents(query)?),
            Self::View { design, view } => database.begin_view(design, view, &query, reached)?,
            Self::Folder { name, person } => {
                database.begin_folder_rows(name, &query, person.as_deref(), reached)?
            }
        })
    }
}

/// The view that the address names.
fn named_view(context: &Context) -> Result<Listing> {
    let value = |name| context.address.value(name).map(str::to_owned);
    Ok(Listing::View { design: value("ddoc")?, view: value("view")? })
}

/// Rows of the view that the address names.
pub(crate) async fn view_rows(context: &Context, body: Option<&mut RequestBody>) -> Result<Response<Body>> {
    rows(context, named_view(context)?, body).await
}

/// Several pages of the view that the address names.
pub(crate) async fn view_queries(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    queries(context, named_view(context)?, body).await
}

/// Rows of the folder that the address names.
pub(crate) async fn folder_rows(context: &Context) -> Result<Response<Body>> {
    let (name, person) = (context.address.value("folder")?.to_owned(), context.identity.shared_name());
    rows(context, Listing::Folder { name, person }, None).await
}

/// GET, or POST with parameters (`keys` above all) in the body.
pub(crate) async fn rows(
    context: &Context,
    listing: Listing,
    body: Option<&mut RequestBody>,
) -> Result<Response<Body>> {
    let members = match body {
        Some(body) => {
            context.require_json()?;
            Some(body.object_or_nothing().await?)
        }
        None => None,
    };
    let has_queries = members.as_ref().is_some_and(|members| members.contains_key("queries"));
    if has_queries && matches!(listing, Listing::View { .. }) {
        return Err(HttpError::bad_request(
            "The `queries` parameter is no longer supported at this endpoint; POST it to `/queries` below.",
        ));
    }
    let query = query::row_query(&context.query, members.as_ref())?;
    let begun = context
        .with_views(move |database, reached| match listing.open(&database, query.clone(), reached)? {
            Reading::Ready(rows) => Ok(Reading::Ready(stream::begin(RowText::new(rows))?)),
            Reading::Behind(update) => Ok(Reading::Behind(update)),
        })
        .await?;
    Ok(response::json_body(StatusCode::OK, begun.into_body(context, None)?))
}

/// POST with `{"queries":[{…},…]}`: one answer for each.
pub(crate) async fn queries(
    context: &Context,
    listing: Listing,
    body: &mut RequestBody,
) -> Result<Response<Body>> {
    context.require_json()?;
    let queries = parse_queries(context, &body.object().await?)?;
    let begun = context
        .with_views(move |database, reached| {
            let queries = queries.clone();
            // All are waited for before the answer begins.
            for query in &queries {
                if let Reading::Behind(update) = listing.open(&database, query.clone(), reached)? {
                    return Ok(Reading::Behind(update));
                }
            }
            Ok(Reading::Ready(stream::begin(Several {
                database,
                listing: listing.clone(),
                queries,
                current: None,
                begun: false,
                separate: false,
            })?))
        })
        .await?;
    Ok(response::json_body(StatusCode::OK, begun.into_body(context, None)?))
}

fn parse_queries(context: &Context, members: &Map<String, Value>) -> Result<VecDeque<RowQuery>> {
    let queries = match members.get("queries") {
        Some(Value::Array(queries)) => queries,
        Some(_) => return Err(HttpError::bad_request("`queries` member must be an array.")),
        None => return Err(HttpError::bad_request("`queries` member must exist.")),
    };
    if queries.len() > MOST_QUERIES {
        return Err(HttpError::bad_request(format!("`queries` may have at most {MOST_QUERIES} members.")));
    }
    queries
        .iter()
        .map(|members| match members {
            Value::Object(members) => query::row_query_of_several(&context.query, members),
            _ => Err(HttpError::bad_request("each of `queries` must be a JSON object")),
        })
        .collect()
}

/// Rows as CouchDB writes them: one a line.
struct RowText {
    rows: Rows,
    begun: bool,
    any: bool,
    at_once: usize,
}

impl RowText {
    fn new(rows: Rows) -> Self {
        Self { rows, begun: false, any: false, at_once: FIRST_ROWS }
    }

    /// Appends up to about a piece; true at the end.
    fn write(&mut self, text: &mut JsonWriter) -> Result<bool> {
        if !std::mem::replace(&mut self.begun, true) {
            self.write_head(text);
        }
        while text.len() < PIECE_BYTES {
            let before = text.len();
            let rows = self.rows.next_rows(self.at_once)?;
            if rows.is_empty() {
                text.literal("\n]");
                if let Some(next) = self.rows.next_page()? {
                    text.literal(",\"next\":");
                    text.string(&next);
                }
                text.literal("}");
                return Ok(true);
            }
            for row in &rows {
                text.literal(if std::mem::replace(&mut self.any, true) { ",\n" } else { "" });
                push_row(text, row);
            }
            // As many as fill a piece, going by these: a row may be a whole document.
            let average = ((text.len() - before) / rows.len()).max(1);
            self.at_once = (PIECE_BYTES / average).clamp(1, MOST_ROWS);
        }
        Ok(false)
    }

    fn write_head(&self, text: &mut JsonWriter) {
        text.literal("{");
        if !self.rows.reduced {
            text.literal("\"total_rows\":");
            text.number_or_null(self.rows.total_rows);
            text.literal(",\"offset\":");
            text.number_or_null(self.rows.offset);
            text.literal(",");
        }
        if let Some(sequence) = &self.rows.update_sequence {
            text.literal("\"update_seq\":");
            text.string(sequence);
            text.literal(",");
        }
        text.literal("\"rows\":[\n");
    }
}

impl Source for RowText {
    fn next_piece(&mut self) -> Result<Piece> {
        let mut text = JsonWriter::with_capacity(1024);
        let last = self.write(&mut text)?;
        if last {
            text.literal("\n");
        }
        Ok(Piece::of_json(text, last))
    }
}

/// The answers to several queries, one after the other.
struct Several {
    database: Opened,
    listing: Listing,
    queries: VecDeque<RowQuery>,
    current: Option<RowText>,
    begun: bool,
    /// There was an answer before the next one.
    separate: bool,
}

impl Source for Several {
    fn next_piece(&mut self) -> Result<Piece> {
        let mut text = JsonWriter::with_capacity(1024);
        if !std::mem::replace(&mut self.begun, true) {
            text.literal("{\"results\":[");
        }
        while text.len() < PIECE_BYTES {
            if self.current.is_none() {
                let Some(query) = self.queries.pop_front() else {
                    text.literal("\n]}\n");
                    return Ok(Piece::of_json(text, true));
                };
                text.literal(if std::mem::replace(&mut self.separate, true) { ",\n" } else { "\n" });
                let Reading::Ready(rows) =
                    self.listing.open(&self.database, query, Some(REACHED_AT_FIRST))?
                else {
                    return Err(HttpError::unavailable("The view was discarded meanwhile; try again."));
                };
                self.current = Some(RowText::new(rows));
            }
            if let Some(current) = &mut self.current
                && current.write(&mut text)?
            {
                self.current = None;
            }
        }
        Ok(Piece::of_json(text, false))
    }
}

fn push_row(text: &mut JsonWriter, row: &Row) {
    text.literal("{");
    if let (Some(level), Some(_)) = (row.level, row.expanded) {
        text.literal("\"category\":true,");
        push_level(text, level);
        text.literal(",");
    }
    if let Some(id) = &row.id {
        text.literal("\"id\":");
        text.string(id);
        text.literal(",");
    }
    text.literal("\"key\":");
    text.json(&row.key);
    if let Some(error) = row.error {
        text.literal(",\"error\":");
        text.string(error);
    }
    if let Some(reason) = &row.reason {
        text.literal(",\"reason\":");
        text.string(reason);
    }
    if let Some(value) = &row.value {
        text.literal(",\"value\":");
        text.json(value);
    }
    match (row.level, row.expanded) {
        (None, _) => {}
        (Some(_), Some(expanded)) => {
            text.literal(",\"expanded\":");
            text.literal(if expanded { "true" } else { "false" });
        }
        (Some(level), None) => {
            text.literal(",");
            push_level(text, level);
        }
    }
    if let Some(document) = &row.document {
        text.literal(",\"doc\":");
        text.json(document);
    }
    if let Some(place) = &row.place {
        push_place(text, *place);
    }
    text.literal("}");
}

/// How many categories the row lies in.
fn push_level(text: &mut JsonWriter, level: u32) {
    text.literal("\"level\":");
    text.number(level);
}

/// Where the row's document is in a folder.
fn push_place(text: &mut JsonWriter, place: FolderPlace) {
    if let Some(uid) = place.uid {
        text.literal(",\"uid\":");
        text.number(uid);
    }
    if place.unread == Some(true) {
        text.literal(",\"unread\":true");
    }
}
