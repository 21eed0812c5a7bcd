//! Questions to an index of words.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use scrinium_database::access::readable::ReadableLeaf;
use scrinium_database::leaf::Leaf;
use scrinium_database::read::render::Renderer;
use scrinium_database::{Access, DatabaseError, ReadOptions, Result, keys};
use scrinium_document::DESIGN_PREFIX;
use scrinium_document::json::{JsonText, stored_value};
use scrinium_fulltext::{
    Fragment, Hit, LanguageChoice, Query, Reader, Readership, Search, SearchLimits, SnippetOptions, Sort,
    SortKey, Total, parse_query, snippet,
};
use scrinium_store::{Family, Snapshot};
use serde_json::{Map, Value, json};

use super::definition::{self, TextDefinition, TextSource};
use super::facets::{Counter, FIELDS_MAX, Facets, RANGES_MAX};
use super::registry::{self, TextIndex, text_error};
use super::{gather, readership, update};
use crate::evaluate::map_patiently;
use crate::open::OpenDatabase;
use crate::query::Candidate;
use crate::waiting::{Patience, Reading, Work};

/// Hits of one answer.
pub(super) const HITS_MAX: usize = 200;
/// Hits that a walk gets at once.
const WALKED_AT_ONCE: usize = 100;
/// Text that a snippet is looked for in.
const SNIPPET_BYTES: usize = 64 << 10;
const SNIPPET_WORDS: usize = 30;
/// Ids that one question gives at most.
const IDS_MAX: usize = 1_000_000;

/// Which index of words is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextTarget {
    /// That of all that the documents of the database say.
    Documents,
    /// One of a design document.
    Design {
        /// Its name, without `_design/`.
        design: String,
        /// The name of the index.
        index: String,
    },
}

/// A question.
#[derive(Clone, Debug)]
pub struct TextSearch {
    /// In Lucene's syntax.
    pub query: String,
    /// AND stands between words where nothing does.
    pub wants_all: bool,
    /// In which order; empty: the newest first.
    pub sort: Vec<Sort>,
    /// Hits, 200 at most.
    pub limit: usize,
    /// Where the page before ended.
    pub bookmark: Option<String>,
    /// Whether the documents are given with the hits.
    pub includes_documents: bool,
    /// Whether the words around what was found are given.
    pub with_snippets: bool,
    /// Whether all that are found are counted.
    pub counts_all: bool,
    /// Whether the index is brought up to date first.
    pub update: bool,
    /// What else is counted.
    pub facets: Facets,
}

/// What was found.
#[derive(Debug)]
pub struct TextAnswer {
    /// The best.
    pub hits: Vec<TextHit>,
    /// How many there are.
    pub total: Total,
    /// Where the next page begins.
    pub bookmark: Option<String>,
    /// The change up to which the index was looked at.
    pub reached: u64,
    /// How many have which value, by field.
    pub counts: Option<Value>,
    /// How many are in which range, by field.
    pub ranges: Option<Value>,
}

/// A document that was found.
#[derive(Debug)]
pub struct TextHit {
    /// Its id.
    pub id: String,
    /// How well it fits, if that was asked for.
    pub score: Option<f32>,
    /// What it was sorted by.
    pub keys: Vec<Option<SortKey>>,
    /// What the function of the index gave to be shown.
    pub fields: Map<String, Value>,
    /// The document.
    pub document: Option<JsonText>,
    /// The words around what was found.
    pub snippet: Vec<Fragment>,
}

/// An index, opened for one question.
struct Opened {
    text: Arc<TextIndex>,
    reader: Reader,
    /// Documents are read from here.
    snapshot: Snapshot,
}

impl OpenDatabase {
    /// Asks an index of words, for one who waits without a thread; `reached` is known to one who has waited.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if there is no such index, a question that is not understood or asks for too much, and what the
    /// store reports.
    pub fn begin_text(
        &self,
        target: &TextTarget,
        search: &TextSearch,
        access: &Access,
        reached: Option<u64>,
    ) -> Result<Reading<TextAnswer>> {
        self.check_there()?;
        let readership = readership(access)?;
        check_limits(search)?;
        let text = self.text_index(target, access)?;
        let fields = text.definition.default_fields();
        let query = parse_query(&search.query, fields, search.wants_all).map_err(text_error)?;
        let opened = match self.open_text(text, search.update, Patience::Elsewhere(reached))? {
            Reading::Ready(opened) => opened,
            Reading::Behind(update) => return Ok(Reading::Behind(update)),
        };
        let answer = self.answer_text(&opened, search, (&query, readership), access);
        self.or_rebuild(&opened.text, answer)
    }

    /// The ids of documents that a query of words finds, the newest first, at most `ids_max`; for one who waits without a thread. Its
    /// fields are those of the database's own index.
    ///
    /// # Errors
    /// As [`begin_text`](Self::begin_text).
    pub fn begin_text_ids(
        &self,
        query: &Query,
        ids_max: usize,
        access: &Access,
        reached: Option<u64>,
    ) -> Result<Reading<Vec<String>>> {
        self.check_there()?;
        let readership = readership(access)?;
        let text = self.text_index(&TextTarget::Documents, access)?;
        let opened = match self.open_text(text, true, Patience::Elsewhere(reached))? {
            Reading::Ready(opened) => opened,
            Reading::Behind(update) => return Ok(Reading::Behind(update)),
        };
        let ids_max = ids_max.min(IDS_MAX);
        let mut ids = Vec::new();
        let found = opened.reader.each(query, &readership, &SearchLimits::default(), &mut |id| {
            ids.push(id.to_owned());
            ids.len() < ids_max
        });
        let ids = found.map_err(TextError::from).and_then(|()| {
            let mut readable = Vec::with_capacity(ids.len());
            for id in ids {
                if self.with_readable(&opened.snapshot, &id, access, |_| Ok(()))?.is_some() {
                    readable.push(id);
                }
            }
            Ok(readable)
        });
        self.or_rebuild(&opened.text, ids)
    }

    /// What is known of an index: `_nouveau_info`.
    ///
    /// # Errors
    /// As [`begin_text`](Self::begin_text).
    pub fn text_info(&self, target: &TextTarget, access: &Access) -> Result<Value> {
        self.check_there()?;
        readership(access)?;
        let text = self.text_index(target, access)?;
        let figures = text.index.figures().map_err(text_error)?;
        // How many there are of what somebody does not see is not for them.
        let sees_all = self.shows_all(access)?;
        let name = match target {
            TextTarget::Documents => text.definition.name.clone(),
            TextTarget::Design { design, index } => format!("{DESIGN_PREFIX}{design}/{index}"),
        };
        let signature: String = text.definition.identity.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(json!({
            "name": name,
            "search_index": {
                "num_docs": sees_all.then_some(figures.documents),
                "update_seq": figures.reached,
                "pending_changes": self.visible_change_number().saturating_sub(figures.reached),
                "purge_seq": 0,
                "disk_size": sees_all.then(|| registry::size_bytes(self.store(), text.id)),
                "signature": signature,
            },
        }))
    }

    /// The index that is asked, if the one who asks may know of it.
    fn text_index(&self, target: &TextTarget, access: &Access) -> Result<Arc<TextIndex>> {
        match target {
            TextTarget::Documents if self.properties().full_text => self.own_text_index(),
            TextTarget::Documents => Err(no_full_text()),
            TextTarget::Design { design, index } => {
                let definition = self.text_definition(design, index, access)?;
                registry::open(self, definition)
            }
        }
    }

    pub(super) fn own_text_index(&self) -> Result<Arc<TextIndex>> {
        registry::open(self, TextDefinition::of_documents())
    }

    fn text_definition(&self, design: &str, name: &str, access: &Access) -> Result<TextDefinition> {
        let json = self.read(&format!("{DESIGN_PREFIX}{design}"), &ReadOptions::default(), access)?.json;
        let parsed = stored_value(json.as_str()).unwrap_or_default();
        let found = definition::parse_stored(&parsed).into_iter().find(|definition| definition.name == name);
        found.ok_or_else(|| DatabaseError::NotFound {
            reason: format!("`{DESIGN_PREFIX}{design}` has no text index `{name}`"),
        })
    }

    fn open_text(&self, text: Arc<TextIndex>, update: bool, patience: Patience) -> Result<Reading<Opened>> {
        let wanted = match patience {
            Patience::Elsewhere(Some(reached)) => reached,
            _ if update => self.visible_change_number(),
            _ => 0,
        };
        let at_once = match self.text_at_once(&text, wanted) {
            Ok(at_once) => at_once,
            Err(error) if text.index.figures().is_err() => {
                tracing::warn!(database = self.name(), index = text.definition.name, %error, "a text index cannot be read");
                None
            }
            Err(error) => return Err(error),
        };
        if let Some((reader, snapshot)) = at_once {
            return Ok(Reading::Ready(Opened { text, reader, snapshot }));
        }
        match patience {
            Patience::Here => {
                self.update_text(&text)?;
                let snapshot = self.store().snapshot();
                let reader = text.index.reader(&snapshot).map_err(text_error)?;
                Ok(Reading::Ready(Opened { text, reader, snapshot }))
            }
            Patience::Elsewhere(_) => Ok(Reading::Behind(self.update_elsewhere(Work::Text(text), wanted)?)),
        }
    }

    /// What was found; an index that turned out to be damaged is built again, and the reader waits for that.
    fn or_rebuild<T>(
        &self,
        text: &Arc<TextIndex>,
        answer: std::result::Result<T, TextError>,
    ) -> Result<Reading<T>> {
        match answer {
            Ok(answer) => Ok(Reading::Ready(answer)),
            Err(TextError::Other(error)) => Err(error),
            Err(TextError::Damaged(error)) => {
                tracing::warn!(database = self.name(), index = text.definition.name, %error, "rebuilding a text index");
                let _updating = text.updater.lock();
                scrinium_fulltext::FullTextIndex::reset(self.store(), text.id).map_err(text_error)?;
                let wanted = self.visible_change_number();
                Ok(Reading::Behind(self.update_elsewhere(Work::Text(Arc::clone(text)), wanted)?))
            }
        }
    }

    fn answer_text(
        &self,
        opened: &Opened,
        asked: &TextSearch,
        (query, readership): (&Query, Readership),
        access: &Access,
    ) -> std::result::Result<TextAnswer, TextError> {
        let search = Search {
            sort: asked.sort.clone(),
            bookmark: asked.bookmark.clone(),
            counts: asked.counts_all,
            ..Search::new(query.clone(), readership.clone(), asked.limit)
        };
        let found = opened.reader.search(&search)?;
        let counter = Counter { reader: &opened.reader, query, readership: &readership };
        let (counts, ranges) = (counter.counts(&asked.facets)?, counter.ranges(&asked.facets)?);
        let mut hits = Vec::with_capacity(found.hits.len());
        for hit in found.hits {
            hits.extend(self.text_hit(opened, hit, (asked, query), access)?);
        }
        self.fill_stored(opened, &mut hits, access)?;
        let (total, bookmark, reached) = (found.total, found.bookmark, opened.reader.reached());
        Ok(TextAnswer { hits, total, bookmark, reached, counts, ranges })
    }

    /// A document that was found, if it may still be read.
    fn text_hit(
        &self,
        opened: &Opened,
        hit: Hit,
        (asked, query): (&TextSearch, &Query),
        access: &Access,
    ) -> Result<Option<TextHit>> {
        let options = ReadOptions::default();
        let Hit { id, score, keys } = hit;
        let shown = self.with_readable(&opened.snapshot, &id, access, |leaf| {
            let document = match asked.includes_documents {
                true => Some(Renderer::new(self, &options).render(&leaf, None)?.json),
                false => None,
            };
            let snippet = if asked.with_snippets { self.snippet_of(&leaf, query)? } else { Vec::new() };
            Ok((document, snippet))
        })?;
        Ok(shown.map(|(document, snippet)| TextHit {
            id,
            score,
            keys,
            fields: Map::new(),
            document,
            snippet,
        }))
    }

    /// Looks at a document as it stands in a snapshot, if it is there and may be read.
    fn with_readable<T>(
        &self,
        snapshot: &Snapshot,
        id: &str,
        access: &Access,
        look: impl FnOnce(ReadableLeaf<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(record) = snapshot.get(Family::Scan, &keys::winner(self.number(), id))? else {
            return Ok(None);
        };
        let looked = Leaf::decode(id, &record).and_then(|leaf| {
            let leaf = access.readable(self, id, leaf)?.filter(|leaf| !leaf.deleted);
            leaf.map(look).transpose()
        });
        Ok(self.pass_over(id, looked)?.flatten())
    }

    fn snippet_of(&self, leaf: &ReadableLeaf<'_>, query: &Query) -> Result<Vec<Fragment>> {
        let mut text = String::new();
        for (_, value) in leaf.fields(leaf.id())?.iter() {
            let json = match value {
                scrinium_document::FieldValue::Json(json) => json.to_owned(),
                scrinium_document::FieldValue::Outside(outside) => {
                    let json =
                        self.context.contents.read_all(&outside.digest).map_err(DatabaseError::from)?;
                    String::from_utf8_lossy(&json).into_owned()
                }
            };
            if let Some(Value::String(value)) = stored_value(&json)
                && text.len() < SNIPPET_BYTES
            {
                text.push_str(&value);
                text.push('\n');
            }
        }
        let options = SnippetOptions {
            words_max: SNIPPET_WORDS,
            language: LanguageChoice::Detected { otherwise: None },
        };
        Ok(snippet(&text, query, options))
    }

    /// What the function of the index gives to be shown of each hit: it is asked again, rather than kept twice.
    fn fill_stored(&self, opened: &Opened, hits: &mut [TextHit], access: &Access) -> Result<()> {
        let TextSource::Function(function) = &opened.text.definition.source else { return Ok(()) };
        if !function.stores || hits.is_empty() {
            return Ok(());
        }
        let mut texts = Vec::with_capacity(hits.len());
        for hit in &*hits {
            let json = |leaf: ReadableLeaf<'_>| gather::json_of(self, &hit.id, &leaf.leaf());
            texts.push(
                self.with_readable(&opened.snapshot, &hit.id, access, json)?
                    .unwrap_or_else(|| "{}".to_owned()),
            );
        }
        let given: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mapped = map_patiently(&mut update::engine(self, function), &given);
        let mapped = mapped.map_err(|error| crate::error::script_error(&error))?;
        for (hit, mut mapped) in hits.iter_mut().zip(mapped) {
            if let Some(Ok(emitted)) = mapped.pop() {
                hit.fields = gather::stored_of(&emitted);
            }
        }
        Ok(())
    }

    /// Begins to walk over the documents of `$text` in a Mango query.
    pub(crate) fn begin_text_walk(
        &self,
        text: &str,
        sort: Vec<Sort>,
        bookmark: Option<TextPlace>,
        access: &Access,
        (update, patience): (bool, Patience),
    ) -> Result<Reading<(TextWalk, Snapshot)>> {
        let readership = readership(access)?;
        let index = match self.text_index(&TextTarget::Documents, access) {
            Err(DatabaseError::NotFound { reason }) => return Err(DatabaseError::bad_request(reason)),
            index => index?,
        };
        let query = parse_query(text, index.definition.default_fields(), true).map_err(text_error)?;
        let opened = match self.open_text(index, update, patience)? {
            Reading::Ready(opened) => opened,
            Reading::Behind(update) => return Ok(Reading::Behind(update)),
        };
        let (page, behind) = bookmark.map_or((None, None), |(page, id)| (page, Some(id)));
        let search =
            Search { sort, bookmark: page.clone(), ..Search::new(query, readership, WALKED_AT_ONCE) };
        let snapshot = opened.snapshot.clone();
        let mut walk = TextWalk {
            database: self.clone(),
            opened,
            search,
            page: Page { place: page, ids: VecDeque::new() },
            is_at_end: false,
        };
        if let Some(id) = behind {
            walk.turn()?;
            let given = walk.page.ids.iter().position(|other| *other == id);
            // One that is not there any more was given from somewhere on this page.
            walk.page.ids.drain(..given.map_or(0, |at| at + 1));
        }
        Ok(Reading::Ready((walk, snapshot)))
    }
}

/// Where a page of a walk begins, and which of the page was given last.
pub(crate) type TextPlace = (Option<String>, String);

/// Documents that were found, and where they begin.
struct Page {
    place: Option<String>,
    ids: VecDeque<String>,
}

/// The documents that words find, one after the other.
pub(crate) struct TextWalk {
    database: OpenDatabase,
    opened: Opened,
    search: Search,
    page: Page,
    is_at_end: bool,
}

impl TextWalk {
    /// Visits one after the other until a break, or until nothing is left.
    pub(crate) fn go_on(
        &mut self,
        visit: &mut dyn FnMut(&Candidate<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        loop {
            while let Some(id) = self.page.ids.pop_front() {
                let key = keys::winner(self.database.number(), &id);
                let Some(record) = self.opened.snapshot.get(Family::Scan, &key)? else { continue };
                let candidate = Candidate::Hit { id: &id, record: &record, page: self.page.place.as_deref() };
                if visit(&candidate)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if self.is_at_end {
                return Ok(ControlFlow::Continue(()));
            }
            self.turn()?;
        }
    }

    /// Gets the next page.
    fn turn(&mut self) -> Result<()> {
        let place = self.search.bookmark.clone();
        let found = self.opened.reader.search(&self.search).map_err(text_error)?;
        self.is_at_end = found.bookmark.is_none();
        self.search.bookmark = found.bookmark;
        self.page = Page { place, ids: found.hits.into_iter().map(|hit| hit.id).collect() };
        Ok(())
    }
}

/// Why there is no answer.
enum TextError {
    Damaged(scrinium_fulltext::FullTextError),
    Other(DatabaseError),
}

impl From<scrinium_fulltext::FullTextError> for TextError {
    fn from(error: scrinium_fulltext::FullTextError) -> Self {
        if error.needs_rebuild() { Self::Damaged(error) } else { Self::Other(text_error(error)) }
    }
}

impl From<DatabaseError> for TextError {
    fn from(error: DatabaseError) -> Self {
        Self::Other(error)
    }
}

fn check_limits(search: &TextSearch) -> Result<()> {
    if search.limit > HITS_MAX {
        return Err(DatabaseError::bad_request(format!(
            "`limit` is {HITS_MAX} at most; the bookmark leads to more"
        )));
    }
    let facets = &search.facets;
    if facets.counts.len() > FIELDS_MAX || facets.ranges.len() > FIELDS_MAX {
        return Err(DatabaseError::bad_request(format!(
            "`counts` and `ranges` name {FIELDS_MAX} fields at most"
        )));
    }
    if facets.ranges.iter().any(|(_, ranges)| ranges.len() > RANGES_MAX) {
        return Err(DatabaseError::bad_request(format!("a field has {RANGES_MAX} ranges at most")));
    }
    Ok(())
}

fn no_full_text() -> DatabaseError {
    let reason = "This database keeps no full text; an administrator turns it on with {\"full_text\": true} in its `_properties`.";
    DatabaseError::NotFound { reason: reason.to_owned() }
}
