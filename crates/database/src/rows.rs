//! Rows of `_all_docs`, `_design_docs`, `_local_docs` and of views, read bit by bit from one snapshot.

mod documents;

use std::sync::Arc;

use scrinium_document::json::JsonText;
use serde_json::Value;

use crate::access::Access;
use crate::database::Database;
use crate::error::Result;
use crate::folder::members::{FolderPlace, FolderPlaces};
use crate::read::ReadOptions;
use documents::{Kind, ListedRows, RangeRows};

/// Design documents counted at once.
const DESIGNS_AT_ONCE: usize = 100;

/// Which rows are wanted, in CouchDB's terms.
#[derive(Clone, Debug)]
pub struct RowQuery {
    /// Rows are read at once until they hold this many bytes, however many are asked for: one may be a whole document.
    pub piece_bytes: Option<usize>,
    /// The first key, in the direction of reading.
    pub start_key: Option<Value>,
    /// Among equal keys the first id.
    pub start_id: Option<String>,
    /// The last key.
    pub end_key: Option<Value>,
    /// Among equal keys the last id.
    pub end_id: Option<String>,
    /// Whether `end_key` itself belongs to the rows.
    pub inclusive_end: bool,
    /// Exactly these keys, in this order.
    pub keys: Option<Vec<Value>>,
    /// From the highest key to the lowest.
    pub descending: bool,
    /// Leave out this many rows at the beginning.
    pub skip: u64,
    /// Give this many rows at most.
    pub limit: Option<u64>,
    /// With each row its document.
    pub include_documents: bool,
    /// In those documents the other leaves.
    pub conflicts: bool,
    /// In those documents the attachments' contents.
    pub attachments: bool,
    /// Say which change the rows reach up to.
    pub update_sequence: bool,
    /// Totals instead of rows. `None`: as the view is made.
    pub reduce: Option<bool>,
    /// A total for each key.
    pub group: bool,
    /// A total for each beginning of this many elements of the key.
    pub group_level: Option<u32>,
    /// How far the rows must have followed the changes.
    pub freshness: Freshness,
    /// Begin at the first entry, in the direction of reading, whose key is this text or behind it: the first sorted
    /// column begins with it or comes next.
    pub find: Option<String>,
    /// Begin at this document's first entry, in the direction of reading.
    pub at: Option<String>,
    /// Tell afterwards where the next page begins ([`Rows::next_page`]).
    pub next_page: bool,
    /// Begin behind the row where an earlier page ended, as [`Rows::next_page`] told.
    pub from: Option<String>,
    /// The categories of a formula view or folder are rows too, and some of them are collapsed. Keys then stand for
    /// all that begins with them.
    pub categories: Option<CategoryQuery>,
    /// In the order of this column first, then of the view's own; of columns that the view offers for it.
    pub resort: Option<String>,
    /// In which direction, of a column that offers both.
    pub resort_descending: Option<bool>,
}

/// Which categories are expanded: shown with what is in them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CategoryQuery {
    /// Those of lower levels; what lies in one of this level or a higher one is hidden. `None`: all.
    pub level: Option<u32>,
    /// Keys of categories that are expanded whatever their level; at most 1,000.
    pub expand: Vec<Value>,
    /// Keys of categories that are collapsed whatever their level; at most 1,000.
    pub collapse: Vec<Value>,
}

impl Default for RowQuery {
    fn default() -> Self {
        Self {
            piece_bytes: None,
            start_key: None,
            start_id: None,
            end_key: None,
            end_id: None,
            inclusive_end: true,
            keys: None,
            descending: false,
            skip: 0,
            limit: None,
            include_documents: false,
            conflicts: false,
            attachments: false,
            update_sequence: false,
            reduce: None,
            group: false,
            group_level: None,
            freshness: Freshness::Usual,
            find: None,
            at: None,
            next_page: false,
            from: None,
            categories: None,
            resort: None,
            resort_descending: None,
        }
    }
}

impl RowQuery {
    /// What the reader wants of each document.
    pub fn read_options(&self) -> ReadOptions {
        ReadOptions { conflicts: self.conflicts, attachments: self.attachments, ..ReadOptions::default() }
    }
}

/// How far a view must have followed the changes before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// As [`UpToDate`](Self::UpToDate); but while views of a changed design document are being built, those
    /// before it answer.
    Usual,
    /// `update=true`: to the last change there was when the reader asked.
    UpToDate,
    /// `update=false`: as it stands.
    AsItStands,
    /// `update=lazy`: as it stands, and it is brought up to date soon.
    UpToDateSoon,
}

/// A row. Key, value and document are JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The document; none in a row of totals and in one for a key that is not there.
    pub id: Option<String>,
    /// The key.
    pub key: JsonText,
    /// The value.
    pub value: Option<JsonText>,
    /// The document itself, if it was asked for.
    pub document: Option<JsonText>,
    /// `not_found`: a key that was asked for is not there.
    pub error: Option<&'static str>,
    /// Why, where the word does not say all.
    pub reason: Option<String>,
    /// In a page of a folder: where in it the document is.
    pub place: Option<FolderPlace>,
    /// How deep the row is: in a page with categories, how many of these it lies in; in a view with responses, how many
    /// documents it is beneath; the sum where it is both.
    pub level: Option<u32>,
    /// The row is that of a category, and whether it is expanded.
    pub expanded: Option<bool>,
}

impl Row {
    /// Bytes that it holds; contents of attachments are not among them.
    pub fn bytes(&self) -> usize {
        let texts = [Some(&self.key), self.value.as_ref(), self.document.as_ref()];
        texts.into_iter().flatten().map(|text| text.len()).sum()
    }
}

/// What rows hold that were read at once.
pub fn bytes_of(rows: &[Row]) -> usize {
    rows.iter().map(Row::bytes).sum()
}

/// Rows on their way to a reader, all from one snapshot, in bounded memory.
pub struct Rows {
    /// How many rows the whole view has; `None` where that is not known, or tells of documents that may not be read.
    pub total_rows: Option<u64>,
    /// How many rows lie before the first, where that is known, or takes no long counting.
    pub offset: Option<u64>,
    /// The change that the rows reach up to, if it was asked for.
    pub update_sequence: Option<String>,
    /// The rows are totals.
    pub reduced: bool,
    source: Source,
    /// The rows are those of a folder.
    pub places: Option<FolderPlaces>,
}

/// Rows of something else than documents in the order of their ids.
pub trait RowSource: Send + Sync {
    /// As [`Rows::next_rows`].
    ///
    /// # Errors
    /// What the store reports.
    fn next_rows(&mut self, max_rows: usize) -> Result<Vec<Row>>;

    /// As [`Rows::next_page`].
    ///
    /// # Errors
    /// What the store reports.
    fn next_page(&self) -> Result<Option<String>>;
}

enum Source {
    Range(Box<RangeRows>),
    Listed(Box<ListedRows>),
    Other(Box<dyn RowSource>),
}

impl Rows {
    /// `counts`: how many rows there are in all, and how many before the first.
    #[must_use]
    pub fn of_source(rows: Box<dyn RowSource>, counts: Option<(u64, u64)>, reduced: bool) -> Self {
        Self {
            total_rows: counts.map(|(total_rows, _)| total_rows),
            offset: counts.map(|(_, offset)| offset),
            update_sequence: None,
            reduced,
            source: Source::Other(rows),
            places: None,
        }
    }

    /// Says with each row where in a folder its document is.
    pub fn tell_places(&mut self, places: FolderPlaces) {
        self.places = Some(places);
    }

    /// The next rows, at most `max_rows`; none at the end.
    ///
    /// # Errors
    /// What the store reports.
    pub fn next_rows(&mut self, max_rows: usize) -> Result<Vec<Row>> {
        let mut rows = match &mut self.source {
            Source::Range(rows) => rows.next_rows(max_rows),
            Source::Listed(rows) => rows.next_rows(max_rows),
            Source::Other(rows) => rows.next_rows(max_rows),
        }?;
        if let Some(places) = &self.places {
            for row in &mut rows {
                row.place = row.id.as_deref().map(|id| places.of(id)).transpose()?;
            }
        }
        Ok(rows)
    }

    /// After the last row: where the next page of a view begins, if that was asked for and there are rows behind
    /// this one. It stays right while documents come and go.
    ///
    /// # Errors
    /// What the store reports.
    pub fn next_page(&self) -> Result<Option<String>> {
        match &self.source {
            Source::Other(rows) => rows.next_page(),
            Source::Range(_) | Source::Listed(_) => Ok(None),
        }
    }
}

impl Database {
    /// `_all_docs`: documents that are there, in the byte order of their ids.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn all_documents(self: &Arc<Self>, query: RowQuery, access: &Access) -> Result<Rows> {
        self.list(Kind::All, query, access)
    }

    /// `_design_docs`: design documents.
    ///
    /// # Errors
    /// As [`Database::all_documents`].
    pub fn design_documents(self: &Arc<Self>, query: RowQuery, access: &Access) -> Result<Rows> {
        self.list(Kind::Design, query, access)
    }

    /// `_local_docs`: documents that stay on this server.
    ///
    /// # Errors
    /// As [`Database::all_documents`].
    pub fn local_documents(self: &Arc<Self>, query: RowQuery, access: &Access) -> Result<Rows> {
        self.list(Kind::Local, query, access)
    }

    /// How many design documents there are for the one who asks; there are few.
    fn count_designs(self: &Arc<Self>, access: &Access) -> Result<u64> {
        let mut rows = RangeRows::new((self, access), Kind::Design, &RowQuery::default());
        let mut count = 0;
        loop {
            match rows.next_rows(DESIGNS_AT_ONCE)?.len() as u64 {
                0 => return Ok(count),
                more => count += more,
            }
        }
    }

    fn list(self: &Arc<Self>, kind: Kind, mut query: RowQuery, access: &Access) -> Result<Rows> {
        let header = self.header()?;
        let shows_all = self.shows_all(access)?;
        let update_sequence = query.update_sequence.then(|| self.sequence_text(header.change_number));
        let total_rows = match kind {
            Kind::All => shows_all.then_some(header.document_count),
            Kind::Design => Some(self.count_designs(access)?),
            Kind::Local => None,
        };
        let Some(keys) = query.keys.take() else {
            let rows = RangeRows::new((self, access), kind, &query);
            let before = match (kind, &query.start_key) {
                (Kind::Local, _) => None,
                (_, None) => Some(0),
                (_, Some(_)) if shows_all => rows.count_before()?,
                // The count would tell of documents that may not be read.
                (_, Some(_)) => None,
            };
            let offset = before.map(|before| before.saturating_add(query.skip));
            let offset = offset.map(|offset| total_rows.map_or(offset, |total| offset.min(total)));
            let source = Source::Range(Box::new(rows));
            return Ok(Rows { total_rows, offset, update_sequence, reduced: false, source, places: None });
        };
        let source = Source::Listed(Box::new(ListedRows::new((self, access), kind, &query, keys)));
        let offset = None;
        Ok(Rows { total_rows, offset, update_sequence, reduced: false, source, places: None })
    }
}
