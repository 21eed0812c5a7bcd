//! Moving contents between the store of documents and stores of objects, while everybody keeps working; and what is reported about
//! those that are objects.
//!
//! A content is written to its new place first, then its record is changed in one batch. So it can be ended at any
//! moment, and a bookmark tells the next one where to go on ([`crate::bookmark`]). Who reads a content meanwhile finds the
//! new place by its record. It is background work as any other: it keeps a rate, and gives way while requests wait.

use std::time::{Duration, Instant};

use scrinium_objects::{MAX_BYTES, Needed, WriteOptions};
use scrinium_statistics::Task;
use scrinium_store::{Batch, Direction, Family, IoClass, IoLimits, KeyRange};
use serde::{Deserialize, Serialize};

use crate::bookmark::{Bookmark, Ordered};
use crate::contents::{Contents, PIECE_BYTES};
use crate::error::{ContentError, Result, damaged_key};
use crate::hex::hex;
use crate::keys::{self, Digest};
use crate::object::{Bytewise, ObjectState, Pacer, need, note, release};
use crate::reader::ContentReader;
use crate::record::{Data, ObjectPlace, Placement, Record};

/// Contents looked at with one snapshot.
const AT_ONCE: usize = 1000;

/// Errors that are told one by one.
const TOLD_MAX: u64 = 20;

/// How often its progress is noted.
const NOTED_EVERY: Duration = Duration::from_secs(5);

/// A look at whether to go on, while it is paused.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Where contents are moved to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Relocation {
    /// Where the setting wants them.
    #[default]
    AsSet,
    /// All to the documents' store.
    ToVolume,
}

/// What was moved, by earlier ones that it continues from as well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelocatedAttachments {
    /// Contents looked at.
    pub examined: u64,
    /// Of these, those that an earlier one had looked at.
    #[serde(skip)]
    pub examined_before: u64,
    /// Contents moved.
    pub moved: u64,
    /// Their bytes.
    pub moved_bytes: u64,
    /// Contents that could not be moved, and stay where they are.
    pub failed: u64,
    /// Somebody stopped it.
    #[serde(skip)]
    pub stopped: bool,
}

impl RelocatedAttachments {
    fn add(&mut self, other: &Self) {
        self.examined += other.examined;
        self.examined_before += other.examined_before;
        self.moved += other.moved;
        self.moved_bytes += other.moved_bytes;
        self.failed += other.failed;
        self.stopped |= other.stopped;
    }
}

/// An object that some document refers to, or did until lately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInUse {
    /// Where it is.
    pub needed: Needed,
    /// When it came to be needed, in milliseconds since 1970.
    pub created_ms: u64,
    /// Since when it is not; 0: it is.
    pub removed_ms: u64,
}

impl Contents {
    /// Counts how many objects contents are, and their bytes, for [`Contents::object_totals`].
    ///
    /// # Errors
    /// What the store reports.
    pub fn count_objects(&self) -> Result<()> {
        let (mut objects, mut bytes) = (0, 0);
        self.each_state(|_, state| {
            if state.removed_ms == 0 {
                objects += 1;
                bytes += state.object.stored_bytes;
            }
            Ok::<_, ContentError>(true)
        })?;
        self.places().totals.set(objects, bytes);
        Ok(())
    }

    /// How many objects contents are, and their bytes.
    #[must_use]
    pub fn object_totals(&self) -> (u64, u64) {
        self.places().totals.get()
    }

    /// Calls `take` with each object that a document refers to, or did until lately, in the order of their digests, until
    /// it answers false.
    ///
    /// # Errors
    /// What the store reports, and that of `take`.
    pub fn each_object<E: From<ContentError>>(
        &self,
        mut take: impl FnMut(ObjectInUse) -> std::result::Result<bool, E>,
    ) -> std::result::Result<(), E> {
        self.each_state(|digest, state| {
            let (address, stored) = self.places().locate(digest, state.length, &state.object)?;
            let ObjectState { created_ms, removed_ms, .. } = state;
            take(ObjectInUse { needed: Needed { address, stored }, created_ms, removed_ms })
        })
    }

    fn each_state<E: From<ContentError>>(
        &self,
        mut take: impl FnMut(&Digest, ObjectState) -> std::result::Result<bool, E>,
    ) -> std::result::Result<(), E> {
        let (from, to) = keys::object_range();
        let snapshot = self.store.snapshot();
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Point, range, Direction::Forward);
        while let Some((key, value)) = cursor.next().map_err(ContentError::from)? {
            if let Some((digest, state)) = keys::digest_of(key).zip(ObjectState::decode(value))
                && !take(&digest, state)?
            {
                break;
            }
        }
        Ok(())
    }

    /// Makes a stored content one in pieces; the object that it was stays for a while.
    fn bring_back(
        &self,
        digest: &Digest,
        record: &Record,
        object: ObjectPlace,
        pacer: &Pacer<'_>,
    ) -> Result<()> {
        let reader = ContentReader::new(self, digest, record.clone())?;
        let upload = self.new_upload();
        let (mut number, mut taken) = (0, Instant::now());
        let copied = reader.each(|piece| {
            let mut batch = Batch::new();
            if number == 0 {
                batch.put(Family::Meta, &keys::pending_upload(upload), &[]);
            }
            batch.put(Family::Blob, &keys::chunk(upload, number), &Data::new(piece, true).encode());
            number += 1;
            self.store.commit(batch)?;
            pacer(piece.len() as u64, taken.elapsed())?;
            taken = Instant::now();
            Ok(true)
        });
        if let Err(error) = copied {
            crate::upload::discard(&self.store, upload);
            return Err(error);
        }
        let placement = Placement::Upload { upload, piece_bytes: PIECE_BYTES as u64 };
        let mut batch = Batch::new();
        batch.put(Family::Blob, &keys::content(digest), &Record { placement, ..record.clone() }.encode());
        batch.delete(Family::Meta, &keys::pending_upload(upload));
        release(&mut batch, digest, (object, record.length), self.object_state(digest)?, self.now_ms());
        self.store.commit(batch)?;
        self.places().totals.add(-1, object.stored_bytes);
        Ok(())
    }

    /// Makes a stored content an object of the place that contents of its length are put to.
    fn send_away(&self, digest: &Digest, record: &Record, pacer: &Pacer<'_>) -> Result<()> {
        let Some((number, place)) = self.places().place_for(record.length) else { return Ok(()) };
        let reader = ContentReader::new(self, digest, record.clone())?;
        let mut content = Bytewise::new(&reader, pacer);
        let what = (*digest, record.length);
        let how = WriteOptions { compressible: true, keep: false };
        let object = self.write_object(number, &place, what, &mut content, how, None)?;
        let mut batch = Batch::new();
        let sent = Record { placement: Placement::Object(object), ..record.clone() };
        batch.put(Family::Blob, &keys::content(digest), &sent.encode());
        need(&mut batch, digest, record.length, object, self.now_ms());
        match &record.placement {
            Placement::Inline(_) => {}
            Placement::Upload { upload, .. } => {
                let (from, to) = keys::chunk_range(*upload);
                batch.delete_range(Family::Blob, &from, &to);
                self.places().totals.add(1, object.stored_bytes);
            }
            Placement::Object(before) => note(&mut batch, self.now_ms(), digest, before),
        }
        Ok(self.store.commit(batch)?)
    }
}

/// A relocation under way in one store.
struct Moving<'a> {
    contents: &'a Contents,
    number: Option<u32>,
    to: Relocation,
    limits: &'a IoLimits,
    task: Option<&'a Task>,
    ordered: Option<Ordered>,
    /// Where it begins.
    from: Vec<u8>,
    /// What was done in the stores before.
    before: &'a RelocatedAttachments,
    done: RelocatedAttachments,
    noted: Instant,
}

/// Moves the contents of several stores, one after the other, to where they should be: those that a database with this
/// number refers to, or all. One like it that was ended before its time continues where it was, unless `again` is said.
///
/// # Errors
/// What the stores report. What was moved by then is moved.
pub fn move_all(
    stores: &[&Contents],
    (number, to, again): (Option<u32>, Relocation, bool),
    (limits, task): (&IoLimits, Option<&Task>),
) -> Result<RelocatedAttachments> {
    let mut bookmarks = Vec::with_capacity(stores.len());
    for contents in stores {
        let ordered = contents.ordered(number, to);
        bookmarks.push(contents.bookmark(ordered.as_ref().filter(|_| !again))?);
    }
    let mut all = RelocatedAttachments::default();
    let mut left = Vec::with_capacity(stores.len());
    for (contents, bookmark) in stores.iter().zip(bookmarks) {
        let ordered = contents.ordered(number, to);
        let mut done = bookmark.as_ref().map(|bookmark| bookmark.done.clone()).unwrap_or_default();
        done.examined_before = done.examined;
        match bookmark {
            Some(bookmark) if bookmark.is_at_end() => all.add(&done),
            bookmark => {
                let start = || keys::all_references().0;
                left.push((
                    *contents,
                    ordered,
                    bookmark.and_then(|bookmark| bookmark.next()).unwrap_or_else(start),
                    done,
                ));
            }
        }
    }
    if let Some(task) = task {
        task.allow_pause();
        let counted = left.iter().map(|(contents, _, from, _)| count(contents, number, from));
        task.set_total(counted.sum::<Result<u64>>()?);
    }
    for (contents, ordered, from, done) in left {
        let noted = Instant::now();
        let mut moving =
            Moving { contents, number, to, limits, task, ordered, from, before: &all, done, noted };
        moving.run()?;
        let done = moving.done;
        all.add(&done);
        if all.stopped {
            return Ok(all);
        }
    }
    stores.iter().try_for_each(|contents| contents.places().remove_bookmark())?;
    Ok(all)
}

/// How many contents there are from this key on.
fn count(contents: &Contents, number: Option<u32>, from: &[u8]) -> Result<u64> {
    let (mut from, mut count) = (from.to_vec(), 0);
    loop {
        let digests = digests(contents, number, &from)?;
        let Some(last) = digests.last() else { return Ok(count) };
        from = keys::reference_range(last).1;
        count += digests.len() as u64;
    }
}

/// The next contents that a document of the database refers to.
fn digests(contents: &Contents, wanted: Option<u32>, from: &[u8]) -> Result<Vec<Digest>> {
    let to = keys::all_references().1;
    let snapshot = contents.store.snapshot();
    let options = scrinium_store::ScanOptions::long(Direction::Forward);
    let mut cursor = snapshot.cursor_with(Family::Point, KeyRange { from, to: Some(&to) }, options);
    let mut digests = Vec::new();
    while digests.len() < AT_ONCE
        && let Some((key, _)) = cursor.next()?
    {
        let Some((digest, number, _)) = keys::reference_of(key) else {
            damaged_key("reference of a content", key);
            continue;
        };
        if wanted.is_none_or(|wanted| wanted == number) && digests.last() != Some(&digest) {
            digests.push(digest);
        }
    }
    Ok(digests)
}

/// What is to be done with a content.
enum Way {
    Away,
    Back(ObjectPlace),
}

impl Moving<'_> {
    fn run(&mut self) -> Result<()> {
        let mut from = std::mem::take(&mut self.from);
        let mut last = None;
        loop {
            let digests = digests(self.contents, self.number, &from)?;
            let Some(page_end) = digests.last() else { return self.note(None) };
            from = keys::reference_range(page_end).1;
            for digest in digests {
                let moved = if self.go_on() { self.content(&digest) } else { Ok(()) };
                // Nobody continues a content in the middle.
                self.done.stopped = self.task.is_some_and(Task::is_cancelled);
                if self.done.stopped || moved.is_err() {
                    last.as_ref().map_or(Ok(()), |last| self.note(Some(last)))?;
                    return if self.done.stopped { Ok(()) } else { moved };
                }
                last = Some(digest);
                self.done.examined += 1;
                self.tell();
                if self.noted.elapsed() >= NOTED_EVERY {
                    self.note(last.as_ref())?;
                }
            }
        }
    }

    /// Notes what it has reached. Nothing: its end.
    fn note(&mut self, last: Option<&Digest>) -> Result<()> {
        self.noted = Instant::now();
        if self.contents.ordered(self.number, self.to) != self.ordered {
            // What came while something else was set may lie anywhere.
            self.ordered = None;
        }
        let Some(ordered) = self.ordered.clone() else { return Ok(()) };
        self.contents.put_bookmark(&Bookmark::new(ordered, last, self.done.clone()))
    }

    fn tell(&self) {
        let Some(task) = self.task else { return };
        task.advance(1);
        task.detail("moved", self.before.moved + self.done.moved);
        task.detail("moved_bytes", self.before.moved_bytes + self.done.moved_bytes);
        task.detail("failed", self.before.failed + self.done.failed);
        task.detail("examined_before", self.before.examined_before + self.done.examined_before);
    }

    /// Waits as long as it is paused; whether it may go on then.
    fn go_on(&self) -> bool {
        let Some(task) = self.task else { return true };
        while task.is_paused() && !task.is_cancelled() {
            std::thread::sleep(LOOK_EVERY);
        }
        !task.is_cancelled()
    }

    /// Holds anyone who has moved a piece.
    fn pace(&self, bytes: u64, took: Duration) -> Result<()> {
        let go_on = || !self.task.is_some_and(Task::is_cancelled);
        if self.limits.pace(IoClass::Attachments, bytes, took, go_on) {
            return Ok(());
        }
        Err(ContentError::Stopped)
    }

    /// Where a content is to go; `None` if it is where it should be.
    fn way(&self, record: &Record) -> Option<Way> {
        let place = self.contents.places().place_for(record.length);
        let place = place.filter(|_| self.to == Relocation::AsSet && record.length <= MAX_BYTES);
        match (&record.placement, place) {
            (Placement::Inline(_), _) | (Placement::Upload { .. }, None) => None,
            (Placement::Upload { .. }, Some(_)) => Some(Way::Away),
            (Placement::Object(object), None) => Some(Way::Back(*object)),
            (Placement::Object(object), Some((number, _))) => (object.place != number).then_some(Way::Away),
        }
    }

    fn content(&mut self, digest: &Digest) -> Result<()> {
        // Held, so that the collector leaves it alone meanwhile.
        let _pin = self.contents.pin(digest);
        let Some(record) = self.contents.record(digest)? else { return Ok(()) };
        let pacer = |bytes, took| self.pace(bytes, took);
        let moved = match self.way(&record) {
            None => return Ok(()),
            Some(Way::Away) => self.contents.send_away(digest, &record, &pacer),
            Some(Way::Back(object)) => self.contents.bring_back(digest, &record, object, &pacer),
        };
        match moved {
            Ok(()) => {
                self.done.moved += 1;
                self.done.moved_bytes += record.length;
            }
            // What is damaged or missing stays what it is, and keeps nothing else from being moved.
            Err(error) if error.is_damage() && self.go_on() => {
                self.done.failed += 1;
                if self.done.failed <= TOLD_MAX {
                    tracing::warn!(content = hex(digest), %error, "a content was not moved");
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
