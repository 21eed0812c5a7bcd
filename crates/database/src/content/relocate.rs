//! Moving contents between the store of documents and stores of objects, while everybody goes on; and what is told of
//! those that are objects.
//!
//! A content is written to its new place first, then its record is changed in one batch. So it can be ended at any
//! moment, and the next one goes on with what is left. Who reads a content meanwhile finds the new place by its record.

use scrinium_objects::{MAX_BYTES, Needed};
use scrinium_statistics::Task;
use scrinium_store::{Batch, Direction, Family, KeyRange};

use super::object::{Bytewise, ObjectState, need, note, release};
use super::record::{Data, ObjectPlace, Placement, Record};
use super::{ContentReader, Contents, PIECE_BYTES, hex};
use crate::databases::{Databases, now_ms};
use crate::error::{DatabaseError, Result};
use crate::keys::{self, Digest};

/// Contents looked at with one snapshot.
const AT_ONCE: usize = 1000;

/// Errors that are told one by one.
const TOLD_MAX: u64 = 20;

/// Where contents are moved to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Relocation {
    /// Where the setting wants them.
    #[default]
    AsSet,
    /// All to the documents' store.
    ToVolume,
}

/// What was moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelocatedAttachments {
    /// Contents looked at.
    pub examined: u64,
    /// Contents moved.
    pub moved: u64,
    /// Their bytes.
    pub moved_bytes: u64,
    /// Contents that could not be moved, and stay where they are.
    pub failed: u64,
    /// Somebody stopped it.
    pub stopped: bool,
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

impl Databases {
    /// Moves the contents of a database, or of all, to where they should be. Contents that other databases share are
    /// moved for all of them. It shows as a task `attachments`, which can be cancelled.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`]; [`DatabaseError::Unavailable`] if a store of objects does not answer; and what the
    /// store reports. What was moved by then is moved.
    pub fn relocate_attachments(
        &self,
        database: Option<&str>,
        to: Relocation,
    ) -> Result<RelocatedAttachments> {
        let (number, commons) = match database {
            Some(name) => {
                let (number, common) = self.place_of(name)?;
                (Some(number), vec![common])
            }
            None => (None, self.commons()),
        };
        let task = self.common().tasks().map(|tasks| tasks.start("attachments", database, None));
        let contents: Vec<&Contents> = commons.iter().map(|common| &common.contents).collect();
        let mut done = RelocatedAttachments::default();
        let moved = move_all(&contents, (number, to), task.as_ref(), &mut done);
        let Some(task) = task else { return moved.map(|()| done) };
        match moved {
            Ok(()) if done.stopped => {}
            Ok(()) => task.finish(),
            Err(error) => {
                task.fail(error.to_string());
                return Err(error);
            }
        }
        Ok(done)
    }

    /// Calls `take` with each object that a document of a volume refers to, or did until lately, in the order of their
    /// digests, until it answers false.
    ///
    /// # Errors
    /// That there is no such volume, and what its store reports.
    pub fn each_object(&self, volume: &str, mut take: impl FnMut(ObjectInUse) -> Result<bool>) -> Result<()> {
        let common = self.common_of(volume)?;
        let contents = &common.contents;
        contents.each_state(|digest, state| {
            let (address, stored) = contents.places().locate(digest, state.length, &state.object)?;
            let ObjectState { created_ms, removed_ms, .. } = state;
            take(ObjectInUse { needed: Needed { address, stored }, created_ms, removed_ms })
        })
    }

    /// Counts for the statistics how many objects contents are, and their bytes.
    ///
    /// # Errors
    /// What the stores report.
    pub fn count_objects(&self) -> Result<()> {
        self.commons().iter().try_for_each(|common| common.contents.count_objects())
    }
}

impl Contents {
    fn count_objects(&self) -> Result<()> {
        let (mut objects, mut bytes) = (0, 0);
        self.each_state(|_, state| {
            if state.removed_ms == 0 {
                objects += 1;
                bytes += state.object.stored_bytes;
            }
            Ok(true)
        })?;
        self.places().totals.set(objects, bytes);
        Ok(())
    }

    /// How many objects contents are, and their bytes.
    pub(crate) fn object_totals(&self) -> (u64, u64) {
        self.places().totals.get()
    }

    fn each_state(&self, mut take: impl FnMut(&Digest, ObjectState) -> Result<bool>) -> Result<()> {
        let (from, to) = keys::object_range();
        let snapshot = self.store.snapshot();
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Point, range, Direction::Forward);
        while let Some((key, value)) = cursor.next()? {
            if let Some((digest, state)) = keys::digest_of(key).zip(ObjectState::decode(value))
                && !take(&digest, state)?
            {
                break;
            }
        }
        Ok(())
    }

    /// Makes a stored content one in pieces; the object that it was stays for a while.
    fn bring_back(&self, digest: &Digest, record: &Record, object: ObjectPlace) -> Result<()> {
        let reader = ContentReader::new(self, digest, record.clone())?;
        let upload = self.new_upload();
        let mut number = 0;
        let copied = reader.each(|piece| {
            let mut batch = Batch::new();
            if number == 0 {
                batch.put(Family::Meta, &keys::pending_upload(upload), &[]);
            }
            batch.put(Family::Blob, &keys::chunk(upload, number), &Data::new(piece, true).encode());
            number += 1;
            self.store.commit(batch)?;
            Ok(true)
        });
        if let Err(error) = copied {
            super::upload::discard(&self.store, upload);
            return Err(error);
        }
        let placement = Placement::Upload { upload, piece_bytes: PIECE_BYTES as u64 };
        let mut batch = Batch::new();
        batch.put(Family::Blob, &keys::content(digest), &Record { placement, ..record.clone() }.encode());
        batch.delete(Family::Meta, &keys::pending_upload(upload));
        release(&mut batch, digest, (object, record.length), self.object_state(digest)?);
        self.store.commit(batch)?;
        self.places().totals.add(-1, object.stored_bytes);
        Ok(())
    }

    /// Makes a stored content an object of the place that contents of its length are put to.
    fn send_away(&self, digest: &Digest, record: &Record) -> Result<()> {
        let Some((number, place)) = self.places().place_for(record.length) else { return Ok(()) };
        let reader = ContentReader::new(self, digest, record.clone())?;
        let mut content = Bytewise::new(&reader);
        let what = (*digest, record.length);
        let object = self.write_object(number, &place, what, &mut content, (true, false), None)?;
        let mut batch = Batch::new();
        let sent = Record { placement: Placement::Object(object), ..record.clone() };
        batch.put(Family::Blob, &keys::content(digest), &sent.encode());
        need(&mut batch, digest, record.length, object);
        match &record.placement {
            Placement::Inline(_) => {}
            Placement::Upload { upload, .. } => {
                let (from, to) = keys::chunk_range(*upload);
                batch.delete_range(Family::Blob, &from, &to);
                self.places().totals.add(1, object.stored_bytes);
            }
            Placement::Object(before) => note(&mut batch, now_ms(), digest, before),
        }
        Ok(self.store.commit(batch)?)
    }
}

/// A relocation under way.
struct Moving<'a> {
    contents: &'a Contents,
    number: Option<u32>,
    to: Relocation,
    task: Option<&'a Task>,
    done: &'a mut RelocatedAttachments,
}

/// Moves what is to be moved of several stores, one after the other.
fn move_all(
    stores: &[&Contents],
    (number, to): (Option<u32>, Relocation),
    task: Option<&Task>,
    done: &mut RelocatedAttachments,
) -> Result<()> {
    if let Some(task) = task {
        let mut total = 0;
        for contents in stores {
            total += Moving { contents, number, to, task: None, done }.count()?;
        }
        task.set_total(total);
    }
    for contents in stores {
        let mut moving = Moving { contents, number, to, task, done };
        moving.run()?;
        if moving.done.stopped {
            break;
        }
    }
    Ok(())
}

/// What is to be done with a content.
enum Way {
    Away,
    Back(ObjectPlace),
}

impl Moving<'_> {
    fn run(&mut self) -> Result<()> {
        let mut from = keys::all_references().0;
        loop {
            let digests = self.digests(&from, AT_ONCE)?;
            let Some(last) = digests.last() else { return Ok(()) };
            from = keys::reference_range(last).1;
            for digest in digests {
                if self.task.is_some_and(Task::is_cancelled) {
                    self.done.stopped = true;
                    return Ok(());
                }
                self.content(&digest)?;
                self.done.examined += 1;
                if let Some(task) = self.task {
                    task.advance(1);
                    task.detail("moved", self.done.moved);
                    task.detail("moved_bytes", self.done.moved_bytes);
                    task.detail("failed", self.done.failed);
                }
            }
        }
    }

    fn count(&self) -> Result<u64> {
        let (mut from, mut count) = (keys::all_references().0, 0);
        loop {
            let digests = self.digests(&from, AT_ONCE)?;
            let Some(last) = digests.last() else { return Ok(count) };
            from = keys::reference_range(last).1;
            count += digests.len() as u64;
        }
    }

    /// The next contents that a document of the database refers to.
    fn digests(&self, from: &[u8], limit: usize) -> Result<Vec<Digest>> {
        let to = keys::all_references().1;
        let snapshot = self.contents.store.snapshot();
        let options = scrinium_store::ScanOptions::long(Direction::Forward);
        let mut cursor = snapshot.cursor_with(Family::Point, KeyRange { from, to: Some(&to) }, options);
        let mut digests = Vec::new();
        while digests.len() < limit
            && let Some((key, _)) = cursor.next()?
        {
            let Some((digest, number, _)) = keys::reference_of(key) else { continue };
            if self.number.is_none_or(|wanted| wanted == number) && digests.last() != Some(&digest) {
                digests.push(digest);
            }
        }
        Ok(digests)
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
        let moved = match self.way(&record) {
            None => return Ok(()),
            Some(Way::Away) => self.contents.send_away(digest, &record),
            Some(Way::Back(object)) => self.contents.bring_back(digest, &record, object),
        };
        match moved {
            Ok(()) => {
                self.done.moved += 1;
                self.done.moved_bytes += record.length;
            }
            // What is damaged or missing stays what it is, and keeps nothing else from being moved.
            Err(DatabaseError::Internal { reason }) => {
                self.done.failed += 1;
                if self.done.failed <= TOLD_MAX {
                    tracing::warn!(content = hex(digest), reason, "a content was not moved");
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
