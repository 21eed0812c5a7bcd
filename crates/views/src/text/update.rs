//! Bringing indexes of words up to date from the change feed.
//!
//! What a reader finds missing and is short is taken in on the reader's thread, or, where somebody else is at it, looked at
//! without being kept. What is long is done elsewhere, by several threads, and the reader waits without one.

use std::time::{Duration, Instant};

use scrinium_assertion::never;
use scrinium_database::head::ChangeRecord;
use scrinium_database::leaf::Leaf;
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_fulltext::{FullTextIndex, Reader, Segment, SegmentBuilder};
use scrinium_javascript::{MapEngine, ScriptError};
use scrinium_statistics::Task;
use scrinium_store::{Cursor, Direction, Family, KeyRange, Slice, Snapshot};

use super::definition::{IndexFunction, TextSource};
use super::gather::{self, GatheredText, Patience};
use super::registry::{TextIndex, text_error};
use crate::evaluate::map_patiently;
use crate::open::OpenDatabase;
use crate::yielding;

/// A thread that serves requests follows this many changes at most.
pub(super) const SHORT_CHANGES: u64 = 100;
/// Changes that one thread takes in at once, and bytes of their documents' records.
const CHANGES_AT_ONCE: usize = 1000;
const BYTES_AT_ONCE: usize = 4 << 20;
/// Memory of a segment that is being made.
const SEGMENT_BYTES: usize = 24 << 20;
/// Bytes of an index that are looked at for each step of its compaction, and steps after one update.
const COMPACTED_AT_ONCE: usize = 1 << 20;
const COMPACTIONS_MAX: usize = 16;
/// Documents that are handed to a function at once.
const MAPPED_AT_ONCE: usize = 64;
/// What is done sooner is not worth a line in the table of tasks.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// A changed document.
pub(super) struct Change {
    pub(super) number: u64,
    pub(super) id: String,
    /// `None`: it is gone, or is of no index.
    pub(super) record: Option<Slice>,
}

/// What some changes come to.
pub(super) struct Followed {
    removed: Vec<String>,
    pub(super) segment: Segment,
    reached: u64,
}

/// The changes after one, as they stand in a snapshot.
struct ChangeWalk<'s> {
    database: &'s OpenDatabase,
    snapshot: &'s Snapshot,
    cursor: Cursor<'s>,
    is_at_end: bool,
}

impl<'s> ChangeWalk<'s> {
    fn new(database: &'s OpenDatabase, snapshot: &'s Snapshot, since: u64) -> Self {
        let from = keys::change(database.number(), since.saturating_add(1));
        let (_, to) = keys::change_range(database.number());
        let range = KeyRange { from: &from, to: Some(&to) };
        let cursor = snapshot.cursor(Family::Churn, range, Direction::Forward);
        Self { database, snapshot, cursor, is_at_end: false }
    }

    fn next(&mut self) -> Result<Vec<Change>> {
        let (mut changes, mut bytes) = (Vec::new(), 0);
        while changes.len() < CHANGES_AT_ONCE && bytes < BYTES_AT_ONCE {
            let Some((key, stored)) = self.cursor.next()? else {
                self.is_at_end = true;
                break;
            };
            let damaged = || DatabaseError::damaged("change", self.database.name());
            let number = keys::change_number_of(key).ok_or_else(damaged)?;
            let change = ChangeRecord::decode(stored).ok_or_else(damaged)?;
            let record = self.database.record_at(self.snapshot, &change, false)?;
            bytes += record.as_ref().map_or(0, |record| record.len());
            changes.push(Change { number, id: change.id, record });
        }
        Ok(changes)
    }
}

/// Makes segments of changes, on one thread.
pub(super) struct Gatherer<'a> {
    database: &'a OpenDatabase,
    builder: SegmentBuilder,
    script: Option<(&'a IndexFunction, MapEngine)>,
    patience: Patience,
}

impl<'a> Gatherer<'a> {
    pub(super) fn new(database: &'a OpenDatabase, text: &'a TextIndex, patience: Patience) -> Self {
        let script = match &text.definition.source {
            TextSource::Documents => None,
            TextSource::Function(function) => Some((function, engine(database, function))),
        };
        Self { database, builder: SegmentBuilder::new(text.definition.options), script, patience }
    }

    /// What changes come to, in their order; `None` if that takes too long.
    pub(super) fn follow(&mut self, changes: &[Change]) -> Result<Option<Vec<Followed>>> {
        let (mut followed, mut removed) = (Vec::new(), Vec::new());
        for some in changes.chunks(MAPPED_AT_ONCE) {
            yielding::give_way();
            let mut leaves = Vec::with_capacity(some.len());
            for change in some {
                let leaf = match &change.record {
                    Some(record) => self.database.pass_over(&change.id, Leaf::decode(&change.id, record))?,
                    None => None,
                };
                match leaf {
                    Some(leaf) => leaves.push((change.id.as_str(), leaf)),
                    None => removed.push(change.id.clone()),
                }
            }
            let Some(gathered) = self.gather(&leaves)? else { return Ok(None) };
            for ((id, _), gathered) in leaves.iter().zip(gathered) {
                match gathered {
                    Some(gathered) => gathered.add_to(&mut self.builder),
                    None => removed.push((*id).to_owned()),
                }
            }
            if self.builder.is_full(SEGMENT_BYTES) {
                let reached = some.last().map_or(0, |change| change.number);
                let removed = std::mem::take(&mut removed);
                followed.push(Followed { removed, segment: self.builder.finish(), reached });
            }
        }
        let reached = changes.last().map_or(0, |change| change.number);
        followed.push(Followed { removed, segment: self.builder.finish(), reached });
        Ok(Some(followed))
    }

    /// Each document's text; within, nothing for one that has none.
    fn gather(&mut self, leaves: &[(&str, Leaf<'_>)]) -> Result<Option<Vec<Option<GatheredText>>>> {
        let Some((function, engine)) = &mut self.script else {
            let mut all = Vec::with_capacity(leaves.len());
            for (id, leaf) in leaves {
                let gathered = gather::of_document(self.database, id, leaf, self.patience);
                match self.database.pass_over(id, gathered)? {
                    Some(None) => return Ok(None),
                    gathered => all.push(gathered.flatten()),
                }
            }
            return Ok(Some(all));
        };
        let mut texts = Vec::with_capacity(leaves.len());
        for (id, leaf) in leaves {
            texts.push(
                self.database.pass_over(id, gather::json_of(self.database, id, leaf))?.unwrap_or_default(),
            );
        }
        let given: Vec<&str> = texts.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        let begun = Instant::now();
        let mapped = map_patiently(engine, &given).map_err(|error| crate::error::script_error(&error))?;
        self.database.server.view_counts.ran_scripts(begun.elapsed());
        for (_, line) in engine.take_log() {
            tracing::debug!(database = self.database.name(), line, "a function of a text index says");
        }
        let (mut mapped, mut all) = (mapped.into_iter(), Vec::with_capacity(leaves.len()));
        for ((id, leaf), text) in leaves.iter().zip(&texts) {
            let outcome = if text.is_empty() { None } else { mapped.next().and_then(|mut one| one.pop()) };
            all.push(match outcome {
                Some(Ok(emitted)) if !emitted.is_empty() => {
                    let gathered = gather::of_emitted(self.database, (id, leaf), function, &emitted)?;
                    Some(gathered).filter(GatheredText::says_something)
                }
                Some(Err(error)) => {
                    note_failure(self.database, id, &error);
                    None
                }
                _ => None,
            });
        }
        Ok(Some(all))
    }
}

/// A document that a function fails on is in no index of it.
fn note_failure(database: &OpenDatabase, id: &str, error: &ScriptError) {
    database.server.view_counts.script_failed();
    tracing::debug!(database = database.name(), id, %error, "a function of a text index failed on a document");
}

/// What runs the function of an index.
pub(super) fn engine(database: &OpenDatabase, function: &IndexFunction) -> MapEngine {
    MapEngine::new(&database.server.scripts, database.uuid(), &[function.map.as_str()], None)
}

impl OpenDatabase {
    /// Brings an index of words up to the last visible change.
    pub(crate) fn update_text(&self, text: &TextIndex) -> Result<()> {
        let _updating = text.updater.lock();
        match self.follow_text(text) {
            Err(TextFailure::Damaged(error)) => {
                tracing::warn!(database = self.name(), index = text.definition.name, %error, "rebuilding a text index");
                FullTextIndex::reset(self.store(), text.id).map_err(text_error)?;
                self.follow_text(text).map_err(TextFailure::into_error)
            }
            followed => followed.map_err(TextFailure::into_error),
        }
    }

    /// Follows all changes; the updater is held.
    fn follow_text(&self, text: &TextIndex) -> std::result::Result<(), TextFailure> {
        let last = self.visible_change_number();
        let snapshot = self.store().snapshot();
        let mut since = text.index.reached()?;
        if since > last && self.last_change(&snapshot)? < since {
            // The documents are older than the index: a backup was restored.
            FullTextIndex::reset(self.store(), text.id)?;
            since = 0;
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
        let mut gatherers: Vec<Gatherer<'_>> =
            (0..threads).map(|_| Gatherer::new(self, text, Patience::Whole)).collect();
        let mut walk = ChangeWalk::new(self, &snapshot, since);
        let mut shown = Shown { database: self, text, since, last, begun: Instant::now(), task: None };
        let mut reached = since;
        while !walk.is_at_end {
            let mut parts = Vec::with_capacity(threads);
            while parts.len() < threads && !walk.is_at_end {
                parts.push(walk.next()?);
            }
            for followed in follow_parts(&mut gatherers, &parts)? {
                reached = followed.reached.max(reached);
                text.index.update(&followed.removed, &followed.segment, reached)?;
            }
            if let Err(error) = shown.reached(reached) {
                shown.end(Some(&error));
                return Err(error.into());
            }
        }
        if reached < last {
            // The changes up to there were of documents that have changed again since, or are gone.
            text.index.update::<&str>(&[], &SegmentBuilder::default().finish(), last)?;
        }
        for _ in 0..COMPACTIONS_MAX {
            let is_due = text.index.figures()?.compaction_is_due;
            if !is_due || text.index.compact(COMPACTED_AT_ONCE)? {
                break;
            }
        }
        shown.end(None);
        Ok(())
    }

    /// An index of words up to `wanted` without a wait, if that is possible: the snapshot that it was read in goes with it.
    pub(super) fn text_at_once(&self, text: &TextIndex, wanted: u64) -> Result<Option<(Reader, Snapshot)>> {
        let snapshot = self.store().snapshot();
        let reader = text.index.reader(&snapshot).map_err(text_error)?;
        if reader.reached() >= wanted {
            return Ok(Some((reader, snapshot)));
        }
        // A function may take its whole time for each document.
        let is_short = wanted - reader.reached() <= SHORT_CHANGES
            && reader.reached() > 0
            && matches!(text.definition.source, TextSource::Documents);
        if !is_short {
            return Ok(None);
        }
        let updating = text.updater.try_lock();
        // Somebody may have brought it up to date in this moment.
        let snapshot = self.store().snapshot();
        let reader = text.index.reader(&snapshot).map_err(text_error)?;
        let mut walk = ChangeWalk::new(self, &snapshot, reader.reached());
        let (changes, is_whole) = (walk.next()?, walk.is_at_end);
        drop(walk);
        if changes.is_empty() {
            return Ok(Some((reader, snapshot)));
        }
        if !is_whole {
            return Ok(None);
        }
        let Some(followed) = Gatherer::new(self, text, Patience::Short).follow(&changes)? else {
            return Ok(None);
        };
        if updating.is_some() {
            for one in &followed {
                text.index.update(&one.removed, &one.segment, one.reached).map_err(text_error)?;
            }
            let snapshot = self.store().snapshot();
            let reader = text.index.reader(&snapshot).map_err(text_error)?;
            return Ok(Some((reader, snapshot)));
        }
        let mut latest = reader;
        for one in &followed {
            latest = latest.with_latest(&one.removed, &one.segment).map_err(text_error)?;
        }
        Ok(Some((latest, snapshot)))
    }
}

/// What parts of the feed come to, each made by one of the gatherers, in the order of the feed.
fn follow_parts(gatherers: &mut [Gatherer<'_>], parts: &[Vec<Change>]) -> Result<Vec<Followed>> {
    // Only a gatherer with a patience of its own stops before the end, and these have none.
    let whole = |followed: Result<Option<Vec<Followed>>>| {
        followed?.ok_or_else(|| never!("a part of the feed is followed to its end").into())
    };
    if let ([gatherer, ..], [part]) = (&mut *gatherers, parts) {
        return whole(gatherer.follow(part));
    }
    let panicked = || DatabaseError::Internal { reason: "reading the text of documents panicked".to_owned() };
    std::thread::scope(|scope| {
        let work = gatherers.iter_mut().zip(parts).map(|(gatherer, part)| {
            std::thread::Builder::new().name("text index".to_owned()).spawn_scoped(scope, move || {
                scrinium_store::come_after_others();
                yielding::begin();
                gatherer.follow(part)
            })
        });
        let work: Vec<_> = work.collect();
        let mut all = Vec::new();
        for thread in work {
            let thread = thread.map_err(|error| DatabaseError::Unavailable {
                reason: format!("no thread can be started: {error}"),
            })?;
            all.extend(whole(thread.join().map_err(|_| panicked())?)?);
        }
        Ok(all)
    })
}

/// Why an index of words was not brought up to date.
enum TextFailure {
    /// It is to be built again.
    Damaged(scrinium_fulltext::FullTextError),
    Other(DatabaseError),
}

impl TextFailure {
    fn into_error(self) -> DatabaseError {
        match self {
            Self::Damaged(error) => text_error(error),
            Self::Other(error) => error,
        }
    }
}

impl From<scrinium_fulltext::FullTextError> for TextFailure {
    fn from(error: scrinium_fulltext::FullTextError) -> Self {
        if error.needs_rebuild() { Self::Damaged(error) } else { Self::Other(text_error(error)) }
    }
}

impl From<DatabaseError> for TextFailure {
    fn from(error: DatabaseError) -> Self {
        Self::Other(error)
    }
}

/// A long update, as a task.
struct Shown<'a> {
    database: &'a OpenDatabase,
    text: &'a TextIndex,
    since: u64,
    last: u64,
    begun: Instant,
    task: Option<Task>,
}

impl Shown<'_> {
    /// # Errors
    /// [`DatabaseError::Unavailable`] if the task was told to stop.
    fn reached(&mut self, reached: u64) -> Result<()> {
        if self.task.is_none() && self.begun.elapsed() >= SHOWN_AFTER {
            let left = self.last.saturating_sub(self.since);
            let tasks = self.database.context.tasks();
            self.task =
                tasks.map(|tasks| tasks.start("text_indexer", Some(self.database.name()), Some(left)));
            if let Some(task) = &self.task {
                task.detail("index", self.text.definition.name.clone());
            }
        }
        let Some(task) = &self.task else { return Ok(()) };
        task.progress(reached.saturating_sub(self.since));
        if task.is_cancelled() {
            let reason =
                "The update of the text index was cancelled; the next reader continues it.".to_owned();
            return Err(DatabaseError::Unavailable { reason });
        }
        Ok(())
    }

    fn end(&mut self, error: Option<&DatabaseError>) {
        match (self.task.take(), error) {
            (Some(task), None) => task.finish(),
            (Some(task), Some(error)) if !task.is_cancelled() => task.fail(error.to_string()),
            _ => {}
        }
    }
}
