//! Storing edits: one call is one atomic, durable batch.
//!
//! The way of an edit: it is parsed and its contents are made ready (no lock); under the database's
//! lock it is held against the document's revisions, gets its change number and becomes part of the
//! batch; the batch is put into the log; the lock is given back; and only then is the sync waited
//! for, which many databases and many updates share. What is in folders and what people have read is
//! changed in the same way, and in the same batch where an edit changes it.

mod access;
mod document;
mod earlier;
mod flags;
mod folder;
mod mark;
mod outline;
mod place;
pub(crate) mod purge;
pub(crate) mod records;
mod rendering;
mod secret;
pub(crate) mod together;
pub(crate) mod undelete;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use scrinium_assertion::{always, never};
use scrinium_contents::{Content, Pin};
use scrinium_document::is_local;
use scrinium_store::{Batch, Commit, Family};

use crate::access::Access;
use crate::conflict_counts::ConflictChange;
use crate::database::Database;
use crate::deletion::Deletion;
use crate::edit::{Edit, ParsedEdit, Prepared};
use crate::edit_mode::EditMode;
use crate::error::{DatabaseError, Oversized, Result};
use crate::folder::record::{FolderState, ReadCounts};
use crate::header::Header;
use crate::keys::{self, Digest};
use crate::local::LocalEdit;
use crate::validation::{PAUSE, TRIES};
use crate::writer::{Pending, PrefetchedHeads, Writer};
use access::LeafRights;
use document::Rewritten;
pub(crate) use place::check_placeable;
use records::Records;

/// An update may have at most this many edits; a client splits more.
pub const MAX_EDITS: usize = 100_000;

/// What became of one edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updated {
    /// The document's id.
    pub id: String,
    /// The revision that the edit made or brought.
    pub revision: String,
}

/// An update on its way to the disk. Nothing of it may be acknowledged before [`Update::wait`] or
/// [`Update::durable`] has returned `Ok`.
#[must_use = "an update is durable only when it was waited for"]
pub struct Update<T = Updated> {
    results: Vec<Result<T>>,
    commit: Option<Commit>,
    /// Those of further parts, where what was asked for was too much for one.
    further: Vec<Commit>,
}

impl<T> Update<T> {
    pub(crate) const fn new(results: Vec<Result<T>>, commit: Option<Commit>) -> Self {
        Self { results, commit, further: Vec::new() }
    }

    /// The same with what `next` has written after it.
    fn followed_by(mut self, next: Self) -> Self {
        self.results.extend(next.results);
        self.further.extend(next.commit.into_iter().chain(next.further));
        self
    }

    /// Waits until the update is durable and visible. Results are in the order of the edits.
    ///
    /// # Errors
    /// What the store reports; then none of the edits may be taken as stored.
    pub fn wait(self) -> Result<Vec<Result<T>>> {
        for commit in self.commit.into_iter().chain(self.further) {
            commit.wait()?;
        }
        Ok(self.results)
    }

    /// As [`Update::wait`], without holding a thread.
    ///
    /// # Errors
    /// What the store reports; then none of the edits may be taken as stored.
    pub async fn durable(self) -> Result<Vec<Result<T>>> {
        for commit in self.commit.into_iter().chain(self.further) {
            commit.await?;
        }
        Ok(self.results)
    }
}

/// What one update adds up under the database's lock.
pub(crate) struct Transaction<'a> {
    pub(crate) database: &'a Arc<Database>,
    writer: &'a Writer,
    prefetched: PrefetchedHeads,
    mode: EditMode,
    now_ms: u64,
    header: Header,
    batch: Batch,
    changed: HashMap<String, Pending>,
    rewritten: HashMap<String, Rewritten>,
    /// What the one who edits may do with leaves of documents that the update edits again and again.
    rights: HashMap<String, LeafRights>,
    /// Where documents lay that are deleted.
    deletions: HashMap<String, Deletion>,
    design_changed: bool,
    /// What is replaced is kept: the database is held, and not only flags change.
    keeps_replaced: bool,
    /// Some leaf of the batch is hidden from somebody.
    restricts: bool,
    /// Bytes of documents that the update changes again and again, which the header counts with the end of the batch.
    uncounted_bytes: u64,
    contents: Vec<Content>,
    /// Contents that another part of the same batch brings.
    brought: HashSet<Digest>,
    pins: Vec<Pin>,
    records: Records<'a>,
    /// Folders by the name that an edit gives them, as far as they were looked up.
    folders: HashMap<String, u32>,
    /// Folders and people of which something was counted; written with the end of the batch.
    states: BTreeMap<u32, FolderState>,
    counts: BTreeMap<String, ReadCounts>,
    conflicts: ConflictChange,
    /// Why nothing of the batch may be stored: what an edit that is part of it builds on cannot be read.
    failure: Option<DatabaseError>,
}

/// What is left of a transaction once it gives back the writer that it looked at.
struct Written {
    header: Header,
    batch: Batch,
    changed: HashMap<String, Pending>,
    design_changed: bool,
    contents: Vec<Content>,
    pins: Vec<Pin>,
    records: BTreeMap<Vec<u8>, Option<bytes::Bytes>>,
}

impl Database {
    /// Stores edits of somebody as one atomic batch, as far as `access` lets them. Each edit has its own result: a conflict
    /// of one does not keep the others from being stored.
    ///
    /// # Errors
    /// The database is gone, the store takes no writes, or there are more than [`MAX_EDITS`] edits.
    pub fn update(self: &Arc<Self>, edits: Vec<Edit>, mode: EditMode, access: &Access) -> Result<Update> {
        self.update_parsed(edits, mode, access, false)
    }

    /// As [`update`](Self::update), but nothing is stored if one of the edits is no edit at all, as in CouchDB's
    /// `_bulk_docs`: a conflict is a matter of one document, and JSON that is no document of the whole request.
    ///
    /// # Errors
    /// As [`update`](Self::update), and what is wrong with the first invalid edit.
    pub fn update_sound(
        self: &Arc<Self>,
        edits: Vec<Edit>,
        mode: EditMode,
        access: &Access,
    ) -> Result<Update> {
        self.update_parsed(edits, mode, access, true)
    }

    /// Whether all edits are sound, as [`update_sound`](Self::update_sound) asks before it stores any; for those who store
    /// them in several batches.
    ///
    /// # Errors
    /// What is wrong with the first that is not.
    pub fn check_sound(&self, edits: impl Iterator<Item = Edit>, mode: EditMode) -> Result<()> {
        edits.map(|edit| edit.parse(mode, self)).try_for_each(|parsed| parsed.map(drop))
    }

    fn update_parsed(
        self: &Arc<Self>,
        edits: Vec<Edit>,
        mode: EditMode,
        access: &Access,
        all_or_none: bool,
    ) -> Result<Update> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.update_parsed(edits, mode, access, all_or_none),
        };
        self.check_there()?;
        check_number(edits.len())?;
        let is_validated = self.validation()?.is_some();
        let prepare = |parsed: Result<ParsedEdit>| parsed?.prepare(mode, (self, access), is_validated);
        let parsed = edits.into_iter().map(|edit| edit.parse(mode, self));
        let mut prepared: Vec<Result<Prepared>> = if all_or_none {
            let sound = parsed.collect::<Result<Vec<_>>>()?;
            sound.into_iter().map(|parsed| prepare(Ok(parsed))).collect()
        } else {
            parsed.map(prepare).collect()
        };
        let locals = self.store_locals(&mut prepared)?;
        let mut update = self.store_validated(prepared, mode)?;
        for (place, result) in locals {
            update.results.insert(place, result);
        }
        Ok(update)
    }

    /// Stores edits that the functions of design documents let pass. What an edit replaces may change until the database is
    /// locked; then all are validated again.
    pub(crate) fn store_validated(
        self: &Arc<Self>,
        prepared: Vec<Result<Prepared>>,
        mode: EditMode,
    ) -> Result<Update> {
        for _ in 0..TRIES {
            let Some(validation) = self.validation()? else { return self.store_prepared(prepared, mode) };
            let mut validated = prepared.clone();
            validation.validate(self, &mut validated, mode)?;
            match self.store_prepared(validated, mode) {
                Err(DatabaseError::Stale) => std::thread::sleep(PAUSE),
                stored => return stored,
            }
        }
        let given_up = prepared.into_iter().map(|edit| edit.and(Err(DatabaseError::Conflict)));
        Ok(Update::new(given_up.collect(), None))
    }

    /// Takes edits of local documents out, and stores them. Their results belong to these places, the first first.
    fn store_locals(
        self: &Arc<Self>,
        prepared: &mut Vec<Result<Prepared>>,
    ) -> Result<Vec<(usize, Result<Updated>)>> {
        let is_of_local = |edit: &Result<Prepared>| edit.as_ref().is_ok_and(|edit| is_local(&edit.id));
        if !prepared.iter().any(is_of_local) {
            return Ok(Vec::new());
        }
        let (mut places, mut edits) = (Vec::new(), Vec::new());
        let all = std::mem::take(prepared);
        for (place, edit) in all.into_iter().enumerate() {
            match edit {
                Ok(edit) if is_local(&edit.id) => {
                    places.push(place);
                    edits.push(LocalEdit::of(edit));
                }
                edit => prepared.push(edit),
            }
        }
        Ok(places.into_iter().zip(self.write_locals(edits)?).collect())
    }

    pub(crate) fn store_prepared(
        self: &Arc<Self>,
        prepared: Vec<Result<Prepared>>,
        mode: EditMode,
    ) -> Result<Update> {
        let ids = prepared.iter().flatten().map(|edit| edit.id.as_str());
        let prefetched = PrefetchedHeads::read(self, ids)?;
        let room_bytes = prepared.iter().flatten().map(Prepared::room_bytes).sum();
        let only_removes = prepared.iter().flatten().all(Prepared::is_removal);
        self.transact(prefetched, room_bytes, |transaction| {
            transaction.mode = mode;
            if only_removes {
                transaction.batch.frees_space();
            }
            transaction.each(prepared, |transaction, edit| edit.and_then(|edit| transaction.apply(edit)))
        })
    }

    /// Lets `work` compose a batch under the database's lock, of about `room_bytes`, and puts it into the log.
    pub(crate) fn transact<T>(
        self: &Arc<Self>,
        prefetched: PrefetchedHeads,
        room_bytes: usize,
        work: impl FnOnce(&mut Transaction<'_>) -> Vec<Result<T>>,
    ) -> Result<Update<T>> {
        let mut writer = self.lock_writer(prefetched.others())?;
        let mut transaction = Transaction::new(self, &writer, prefetched, room_bytes);
        let results = work(&mut transaction);
        let Some(written) = transaction.finish()? else {
            // Who finds done what they ask for hears of it when that is durable and visible, too.
            let is_ahead = results.iter().any(Result::is_ok) && self.is_ahead(&writer);
            let commit =
                is_ahead.then(|| self.submit(&writer, self.header_again(&writer), (), drop)).transpose()?;
            return Ok(Update::new(results, commit));
        };
        let Written { header, batch, changed, design_changed, contents, pins, records } = written;
        let before = std::mem::replace(&mut writer.header, header);
        let database = Arc::clone(self);
        let submitted = self.submit(&writer, batch, pins, move |stored| {
            if stored {
                contents.iter().for_each(Content::stored);
                if design_changed {
                    database.designs_changed();
                }
            }
        });
        let commit = match submitted {
            Ok(commit) => commit,
            Err(error) => {
                writer.header = before;
                return Err(error);
            }
        };
        writer.add_all(changed, records);
        Ok(Update::new(results, Some(commit)))
    }
}

impl<'a> Transaction<'a> {
    fn new(
        database: &'a Arc<Database>,
        writer: &'a Writer,
        prefetched: PrefetchedHeads,
        room_bytes: usize,
    ) -> Self {
        Self {
            database,
            writer,
            prefetched,
            mode: EditMode::Interactive,
            now_ms: database.now_ms(),
            header: writer.header.clone(),
            batch: Batch::with_capacity(room_bytes),
            changed: HashMap::new(),
            rewritten: HashMap::new(),
            rights: HashMap::new(),
            deletions: HashMap::new(),
            design_changed: false,
            keeps_replaced: database.is_held(),
            restricts: false,
            uncounted_bytes: 0,
            contents: Vec::new(),
            brought: HashSet::new(),
            pins: Vec::new(),
            records: Records::new(database.store(), writer.records()),
            folders: HashMap::new(),
            states: BTreeMap::new(),
            counts: BTreeMap::new(),
            conflicts: ConflictChange::default(),
            failure: None,
        }
    }

    /// Does `work` with each of `all`; what one that fails has put into the batch is taken back.
    pub(crate) fn each<I, T>(
        &mut self,
        all: Vec<I>,
        work: impl Fn(&mut Self, I) -> Result<T>,
    ) -> Vec<Result<T>> {
        let each = all.into_iter().map(|one| {
            let kept_bytes = self.batch.len_bytes();
            let result = work(self, one);
            if result.is_err() {
                self.batch.truncate(kept_bytes);
            }
            result
        });
        each.collect()
    }

    /// The number of one more change.
    fn next_change(&mut self) -> u64 {
        self.header.change_number += 1;
        self.header.change_number
    }

    /// The whole batch; `None` if nothing changes.
    fn finish(mut self) -> Result<Option<Written>> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.write_rewritten()?;
        let number = self.database.number();
        for (folder, state) in std::mem::take(&mut self.states) {
            self.records.put(&mut self.batch, keys::folder_state(number, folder), state.encode());
        }
        for (person, counts) in std::mem::take(&mut self.counts) {
            self.records.put(&mut self.batch, keys::read_counts(number, &person), counts.encode());
        }
        if self.batch.is_empty() {
            return Ok(None);
        }
        let (last, before) = (self.header.change_number, self.writer.header.change_number);
        always!(
            self.changed.is_empty() || last > before,
            "documents change by a change",
            "{last}, {before}"
        )?;
        // Until a change is visible, the next update finds the records that came with it where they are staged.
        if !self.records.is_unchanged() && self.header.change_number == self.writer.header.change_number {
            self.next_change();
        }
        if self.restricts {
            self.database.restriction.restrict(&mut self.batch, number);
        }
        self.database.context.server.conflicts.add(self.conflicts);
        self.batch.put(Family::Meta, &keys::header(number), &self.header.encode());
        Ok(Some(Written {
            header: self.header,
            batch: self.batch,
            changed: self.changed,
            design_changed: self.design_changed,
            contents: self.contents,
            pins: self.pins,
            records: self.records.into_written(),
        }))
    }
}

impl Database {
    /// As [`update`](Self::update) for one edit, and waits until it is durable and visible.
    ///
    /// # Errors
    /// As [`update`](Self::update) and [`Update::wait`], and what is wrong with the edit.
    pub fn update_one(self: &Arc<Self>, edit: Edit, mode: EditMode, access: &Access) -> Result<Updated> {
        let result = self.update(vec![edit], mode, access)?.wait()?.pop();
        result.unwrap_or_else(|| Err(never!("each edit of an update has a result").into()))
    }

    /// As [`update`](Self::update) for edits that need not be stored together: where the log does not take all of them at once,
    /// they are stored in parts, and only an edit that it does not take alone is refused.
    ///
    /// # Errors
    /// As [`update`](Self::update); some of the edits may be stored then.
    pub fn update_in_parts(
        self: &Arc<Self>,
        edits: Vec<Edit>,
        mode: EditMode,
        access: &Access,
    ) -> Result<Update> {
        let mut done = Update::new(Vec::with_capacity(edits.len()), None);
        let mut left = vec![edits];
        while let Some(mut part) = left.pop() {
            match self.update(part.clone(), mode, access) {
                Ok(update) => done = done.followed_by(update),
                Err(error) if !is_too_much_at_once(&error) => return Err(error),
                Err(error) if part.len() <= 1 => done.results.push(Err(error)),
                Err(_) => {
                    let second = part.split_off(part.len() / 2);
                    left.extend([second, part]);
                }
            }
        }
        Ok(done)
    }
}

const fn is_too_much_at_once(error: &DatabaseError) -> bool {
    matches!(error, DatabaseError::TooLarge { what: Oversized::Request, .. })
}

/// # Errors
/// [`DatabaseError::TooLarge`] for more than [`MAX_EDITS`].
pub(crate) fn check_number(edits: usize) -> Result<()> {
    if edits <= MAX_EDITS {
        return Ok(());
    }
    Err(DatabaseError::TooLarge {
        what: Oversized::Request,
        reason: format!("One request may have at most {MAX_EDITS} documents; send several."),
    })
}
