//! Rows that are documents in the order of their ids, or documents that were asked for by id.

use std::sync::Arc;

use scrinium_document::json::{JsonText, JsonWriter};
use scrinium_store::{Direction, Family, KeyRange, Snapshot};
use serde_json::Value;

use super::{Row, RowQuery};
use crate::access::Access;
use crate::access::readable::{Looked, ReadableId};
use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::head::Head;
use crate::keys;
use crate::leaf::Leaf;
use crate::local::LocalSpace;
use crate::read::{ReadOptions, Renderer};

/// Records looked at to tell how many documents lie before the first row: a few, since nearly nobody wants to know.
const MOST_COUNTED: usize = 200;

/// Which documents are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    All,
    Design,
    Local,
}

impl Kind {
    /// What the ids that are listed begin with.
    const fn prefix(self) -> &'static str {
        match self {
            Self::All => "",
            Self::Design => scrinium_document::DESIGN_PREFIX,
            Self::Local => scrinium_document::LOCAL_PREFIX,
        }
    }

    fn key(self, database: &Database, space: &LocalSpace, id: &str) -> Vec<u8> {
        match self {
            Self::All | Self::Design => keys::head(database.number(), id),
            Self::Local => space.key(database, id),
        }
    }

    fn range(self, database: &Database, space: &LocalSpace) -> (Vec<u8>, Vec<u8>) {
        match self {
            Self::All => keys::head_range(database.number()),
            Self::Local => space.range(database),
            Self::Design => {
                let from = keys::head(database.number(), self.prefix());
                let to = keys::successor(&from);
                (from, to)
            }
        }
    }
}

/// What is needed to make a row of a document.
struct Source {
    database: Arc<Database>,
    kind: Kind,
    snapshot: Snapshot,
    include_documents: bool,
    options: ReadOptions,
    access: Access,
    piece_bytes: usize,
    /// Which local documents are listed.
    space: LocalSpace,
}

impl Source {
    fn new((database, access): (&Arc<Database>, &Access), kind: Kind, query: &RowQuery) -> Self {
        Self {
            database: Arc::clone(database),
            kind,
            snapshot: database.store().snapshot(),
            include_documents: query.include_documents,
            space: LocalSpace::of(access),
            access: access.clone(),
            options: query.read_options(),
            piece_bytes: query.piece_bytes.unwrap_or(usize::MAX),
        }
    }

    fn key(&self, id: &str) -> Vec<u8> {
        self.kind.key(&self.database, &self.space, id)
    }

    fn range(&self) -> (Vec<u8>, Vec<u8>) {
        self.kind.range(&self.database, &self.space)
    }

    fn id_of<'k>(&self, key: &'k [u8]) -> Option<&'k str> {
        match self.kind {
            Kind::All | Kind::Design => keys::id_of(key),
            Kind::Local => self.space.id_of(&self.database, key),
        }
    }

    /// Finds that a document is not there, in the time that it takes to find that it is hidden.
    fn look_past(&self, id: &str) {
        if self.kind != Kind::Local {
            self.access.look_past(&self.database, &self.snapshot, (id, Looked::AtWinner));
        }
    }

    /// The row of a stored head or local document. `None`: it is a tombstone, and `tombstones` are not
    /// wanted, or it may not be read. A document that cannot be read has a row with an error for anyone who may read
    /// everything, and none for others, since nobody knows whether they may.
    fn row(&self, id: &str, stored: &[u8], tombstones: bool) -> Result<Option<Row>> {
        match self.database.pass_over(id, self.sound_row(id, stored, tombstones))? {
            Some(row) => Ok(row),
            None if !self.access.reads_everything() => Ok(None),
            None => Ok(Some(Row {
                id: Some(id.to_owned()),
                key: JsonText::of_string(id),
                error: Some("internal_server_error"),
                ..Row::default()
            })),
        }
    }

    fn sound_row(&self, id: &str, stored: &[u8], tombstones: bool) -> Result<Option<Row>> {
        if self.kind == Kind::Local {
            return self.local_row(id, stored).map(Some);
        }
        let damaged = || DatabaseError::damaged("revision tree", id);
        let head = Head::decode(stored).ok_or_else(damaged)?;
        let winner = head.tree.winner().ok_or_else(damaged)?;
        if winner.deleted && !tombstones {
            return Ok(None);
        }
        let access = &self.access;
        let Some(readable) = access.readable_id(&self.database, &self.snapshot, id.to_owned())? else {
            return Ok(None);
        };
        let document = match (self.include_documents, winner.deleted) {
            (true, true) => Some(JsonText::default()),
            (false, _) => None,
            (true, false) => match self.document(id, &head)? {
                Some(document) => Some(document),
                None => return Ok(None),
            },
        };
        let value = revision_value(&winner.revision.to_string(), winner.deleted);
        Ok(Some(row(readable, value, document)))
    }

    /// The document's JSON; `None` if it may not be read.
    fn document(&self, id: &str, head: &Head) -> Result<Option<JsonText>> {
        let number = self.database.number();
        let stored = self.snapshot.get(Family::Scan, &keys::winner(number, id))?;
        let stored = stored.ok_or_else(|| DatabaseError::damaged("document", id))?;
        let access = &self.access;
        let Some(leaf) = access.readable(&self.database, id, Leaf::decode(id, &stored)?)? else {
            return Ok(None);
        };
        let head = access.readable_head(&self.database, &self.snapshot, id, head)?;
        Ok(Some(Renderer::new(&self.database, &self.options).render(&leaf, Some(&head))?.json))
    }

    fn local_row(&self, id: &str, stored: &[u8]) -> Result<Row> {
        let document = crate::local::render(&self.database, id, stored)?;
        let value = revision_value(&document.revision, false);
        let document = self.include_documents.then_some(document.json);
        Ok(Row {
            id: Some(id.to_owned()),
            key: JsonText::of_string(id),
            value: Some(value),
            document,
            ..Row::default()
        })
    }
}

/// The row of a document that may be read.
fn row(id: ReadableId, value: JsonText, document: Option<JsonText>) -> Row {
    let key = JsonText::of_string(&id);
    Row { id: Some(id.into_string()), key, value: Some(value), document, ..Row::default() }
}

/// Documents in the order of their ids.
pub(super) struct RangeRows {
    source: Source,
    from: Vec<u8>,
    to: Vec<u8>,
    direction: Direction,
    skip: u64,
    left: u64,
}

impl RangeRows {
    pub(super) fn new(reader: (&Arc<Database>, &Access), kind: Kind, query: &RowQuery) -> Self {
        let source = Source::new(reader, kind, query);
        let (first, last) = source.range();
        let (low, high) = if query.descending {
            (&query.end_key, &query.start_key)
        } else {
            (&query.start_key, &query.end_key)
        };
        let low_inclusive = !query.descending || query.inclusive_end;
        let high_inclusive = query.descending || query.inclusive_end;
        let from = bound(low.as_ref(), !low_inclusive, &source).unwrap_or_else(|| first.clone());
        let to = bound(high.as_ref(), high_inclusive, &source).unwrap_or_else(|| last.clone());
        let direction = if query.descending { Direction::Backward } else { Direction::Forward };
        let (from, to) = (from.clamp(first.clone(), last.clone()), to.clamp(first, last));
        Self { source, from, to, direction, skip: query.skip, left: query.limit.unwrap_or(u64::MAX) }
    }

    /// How many documents lie before the first row, in the direction of reading; `None`: many, or one of them is damaged.
    pub(super) fn count_before(&self) -> Result<Option<u64>> {
        let (first, last) = self.source.range();
        let (from, to) = match self.direction {
            Direction::Forward => (&first, &self.from),
            Direction::Backward => (&self.to, &last),
        };
        if from >= to {
            return Ok(Some(0));
        }
        let range = KeyRange { from, to: Some(to) };
        let mut cursor = self.source.snapshot.cursor(Family::Point, range, self.direction);
        let mut counted = 0;
        for _ in 0..MOST_COUNTED {
            let Some((_, stored)) = cursor.next()? else { return Ok(Some(counted)) };
            let Some(head) = Head::decode(stored) else { return Ok(None) };
            counted += u64::from(head.tree.winner().is_some_and(|winner| !winner.deleted));
        }
        Ok(cursor.next()?.is_none().then_some(counted))
    }

    pub(super) fn next_rows(&mut self, max_rows: usize) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        if self.from >= self.to {
            return Ok(rows);
        }
        let snapshot = self.source.snapshot.clone();
        let range = KeyRange { from: &self.from, to: Some(&self.to) };
        let mut cursor = snapshot.cursor(Family::Point, range, self.direction);
        let mut last = None;
        let mut bytes = 0;
        while self.left > 0 && rows.len() < max_rows && bytes < self.source.piece_bytes {
            let Some((key, stored)) = cursor.next()? else {
                last = None;
                self.left = 0;
                break;
            };
            last = Some(key.to_vec());
            let id = self
                .source
                .id_of(key)
                .ok_or_else(|| DatabaseError::damaged("id", self.source.database.name()))?;
            let Some(row) = self.source.row(id, stored, false)? else { continue };
            if self.skip > 0 {
                self.skip -= 1;
            } else {
                self.left -= 1;
                bytes += row.bytes();
                rows.push(row);
            }
        }
        drop(cursor);
        match (last, self.direction) {
            (None, _) => {}
            (Some(key), Direction::Forward) => self.from = [key, vec![0]].concat(),
            (Some(key), Direction::Backward) => self.to = key,
        }
        Ok(rows)
    }
}

/// Where a key lies among the ids, or the place right after it. Whatever is no string sorts before or
/// behind all strings, as in CouchDB's collation.
fn bound(key: Option<&Value>, after: bool, source: &Source) -> Option<Vec<u8>> {
    match key? {
        Value::String(id) => {
            let mut bound = source.key(id);
            if after {
                bound.push(0);
            }
            Some(bound)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(source.range().0),
        Value::Array(_) | Value::Object(_) => Some(source.range().1),
    }
}

/// Documents that were asked for by id, in that order.
pub(super) struct ListedRows {
    source: Source,
    keys: std::vec::IntoIter<Value>,
}

impl ListedRows {
    pub(super) fn new(
        reader: (&Arc<Database>, &Access),
        kind: Kind,
        query: &RowQuery,
        mut keys: Vec<Value>,
    ) -> Self {
        if query.descending {
            keys.reverse();
        }
        let skip = usize::try_from(query.skip).unwrap_or(usize::MAX);
        let limit = query.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let keys: Vec<Value> = keys.into_iter().skip(skip).take(limit).collect();
        Self { source: Source::new(reader, kind, query), keys: keys.into_iter() }
    }

    pub(super) fn next_rows(&mut self, max_rows: usize) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let mut bytes = 0;
        while rows.len() < max_rows
            && bytes < self.source.piece_bytes
            && let Some(key) = self.keys.next()
        {
            let found = match &key {
                Value::String(id) if id.starts_with(self.source.kind.prefix()) => {
                    let key = self.source.key(id);
                    let stored = self.source.snapshot.get(Family::Point, &key)?;
                    if stored.is_none() {
                        self.source.look_past(id);
                    }
                    stored.map(|stored| self.source.row(id, &stored, true)).transpose()?.flatten()
                }
                _ => None,
            };
            let row = found.unwrap_or_else(|| Row {
                key: JsonText::from(&key),
                error: Some("not_found"),
                ..Row::default()
            });
            bytes += row.bytes();
            rows.push(row);
        }
        Ok(rows)
    }
}

/// `{"rev":…}`, and of a tombstone `"deleted":true`.
fn revision_value(revision: &str, deleted: bool) -> JsonText {
    let mut value = JsonWriter::with_capacity(revision.len() + 32);
    value.literal("{\"rev\":").string(revision);
    value.literal(if deleted { ",\"deleted\":true}" } else { "}" });
    value.into_text()
}
