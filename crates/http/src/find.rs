//! Mango queries: `_find` and `_explain`.

use http::{Response, StatusCode};
use scrinium_document::json::JsonWriter;
use scrinium_mango::Query;
use scrinium_views::{Find, Reading};
use serde_json::json;

use crate::body::RequestBody;
use crate::context::Context;
use crate::error::Result;
use crate::response::{self, Body, PIECE_BYTES, READ_AT_ONCE_BYTES};
use crate::stream::{self, Piece, Source};

/// Results read at once while nobody knows how large they are.
const FIRST_RESULTS: usize = 32;

/// Results read at once, however small they are.
const MOST_RESULTS: usize = 512;

/// Entries or documents looked at for one piece, whether they are results or not.
const EXAMINED_FOR_PIECE: usize = 2000;

/// `POST /{db}/_find`.
pub(crate) async fn find(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let query = query(context, body).await?;
    let begun = context
        .with_views(move |database, reached| {
            let with_statistics = query.execution_stats;
            let mut find = match database.begin_find(&query, reached)? {
                Reading::Ready(find) => find,
                Reading::Behind(update) => return Ok(Reading::Behind(update)),
            };
            find.limit_pieces(READ_AT_ONCE_BYTES);
            Ok(Reading::Ready(stream::begin(FindText {
                find,
                with_statistics,
                begun: false,
                any: false,
                at_once: FIRST_RESULTS,
            })?))
        })
        .await?;
    Ok(response::json_body(StatusCode::OK, begun.into_body(context, None)?))
}

/// `POST /{db}/_explain`.
pub(crate) async fn explain(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let query = query(context, body).await?;
    let explained = context.with_database(move |database| Ok(database.explain(&query)?)).await?;
    Ok(response::json_value(StatusCode::OK, &explained))
}

async fn query(context: &Context, body: &mut RequestBody) -> Result<Query> {
    context.require_json()?;
    Ok(Query::parse(&body.deep_value().await?)?)
}

/// Results as CouchDB writes them: one a line.
struct FindText {
    find: Find,
    with_statistics: bool,
    begun: bool,
    any: bool,
    at_once: usize,
}

impl FindText {
    /// Appends up to about a piece; true at the end.
    fn write(&mut self, text: &mut JsonWriter) -> Result<bool> {
        while text.len() < PIECE_BYTES {
            let before = text.len();
            let results = self.find.next(self.at_once, EXAMINED_FOR_PIECE)?;
            for result in &results {
                text.literal(if std::mem::replace(&mut self.any, true) { ",\n" } else { "\n" });
                text.json(result);
            }
            if self.find.is_at_end() {
                return Ok(true);
            }
            if results.len() < self.at_once {
                return Ok(false);
            }
            // As many as fill a piece, going by these: a result may be a whole document.
            let average = ((text.len() - before) / results.len().max(1)).max(1);
            self.at_once = (PIECE_BYTES / average).clamp(1, MOST_RESULTS);
        }
        Ok(false)
    }

    fn write_end(&self, text: &mut JsonWriter) {
        text.literal("\n],\n\"bookmark\": ");
        text.string(&self.find.bookmark());
        if self.with_statistics {
            let statistics = self.find.execution_stats();
            let statistics = json!({
                "total_keys_examined": statistics.keys_examined,
                "total_docs_examined": statistics.documents_examined,
                "total_quorum_docs_examined": statistics.quorum_documents_examined,
                "results_returned": statistics.results_returned,
                "execution_time_ms": statistics.execution_time_ms,
            });
            text.literal(",\n\"execution_stats\": ");
            text.serialized(&statistics);
        }
        if let Some(warning) = self.find.warning() {
            text.literal(",\n\"warning\": ");
            text.string(&warning);
        }
        text.literal("}\n");
    }
}

impl Source for FindText {
    fn next_piece(&mut self) -> Result<Piece> {
        let mut text = JsonWriter::with_capacity(1024);
        if !std::mem::replace(&mut self.begun, true) {
            text.literal("{\"docs\":[");
        }
        let last = self.write(&mut text)?;
        if last {
            self.write_end(&mut text);
        }
        if text.is_empty() {
            // Nothing of this piece matches; so the client sees that there is life.
            text.literal("\n");
        }
        Ok(Piece::of_json(text, last))
    }
}
