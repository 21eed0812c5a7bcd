//! Moving a database to another volume while everybody keeps reading and writing it.
//!
//! Its keys are copied under a new number, a slice at a time, each slice as the store has it just then; meanwhile the
//! store notes which keys change ([`KeyWatch`]), and these are copied again. When few are left, its views are built there,
//! and then writers are held for the moment that it takes to copy the last ones and to change the catalogue in one commit.
//! Before that commit the database is whole where it was, and after it where it came to; the mark at the other place
//! (see [`crate::volumes`]) has what is left there cleared away, whatever happens.
//!
//! Who has opened the database before keeps reading it as it was at that moment, and what they change goes to
//! where it is ([`Database::pin_location`]); what is left behind is cleared away when the last of them has gone.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use scrinium_database::context::StoreContext;
use scrinium_database::{Database, DatabaseError, Result, keys, read_header};
use scrinium_statistics::Task;
use scrinium_store::{
    Batch, Cursor, Direction, Durability, Family, IoClass, KeyRange, KeyWatch, ScanOptions, Snapshot,
};
use scrinium_views::OpenDatabase;

use crate::databases::Databases;
use crate::dropped::unmark;
use crate::transfer::{Incomplete, Transfer};
use crate::volumes::stays_first;

/// Keys that are noted before all of the database is compared again; some 100 MB.
const TOUCHED_MAX: usize = 1_000_000;

/// At most this many are copied again in between, so that they do not add up.
const TOUCHED_AT_ONCE: usize = 50_000;

/// Changes are copied until no more than these are left, if it comes to that.
const TOUCHED_LAST: usize = 200;

/// With more than these writers are not held: copying them takes some hundred milliseconds.
const TOUCHED_HELD: usize = 20_000;

/// Rounds of copying what changed meanwhile, before writers are held with what is left.
const CATCH_UPS: usize = 20;

/// A database that changes faster than it can be copied is given up after writers were held so often.
const ROUNDS: usize = 50;

/// One slice; the reader's view of the store is a new one after it.
const SLICE_BYTES: u64 = 4 << 20;

/// A database that was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocated {
    /// Keys that were compared or copied, those that changed meanwhile counted again.
    pub keys: u64,
    /// Bytes that were written on the new volume, before compression, without contents.
    pub bytes: u64,
    /// How long writers were held at once, at most.
    pub held: Duration,
}

/// A name is noted as being moved until this is dropped.
struct Moving<'a> {
    databases: &'a Databases,
    name: &'a str,
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.databases.shared().moving.lock().remove(self.name);
    }
}

/// A move under way.
struct Move<'a> {
    databases: &'a Databases,
    database: &'a OpenDatabase,
    to: &'a Arc<StoreContext>,
    old: u32,
    new: u32,
    touched: KeyWatch,
    task: &'a Task,
    keys: Cell<u64>,
    bytes: Cell<u64>,
    held: Cell<Duration>,
}

impl Databases {
    /// Moves a database to another volume, with the task `database_move`. It is whole on one of the two when this
    /// returns, whatever it returns, and after any crash.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`]; [`DatabaseError::Invalid`] if there is no such volume or it lies there already;
    /// [`DatabaseError::Forbidden`] for one that must stay; [`DatabaseError::Full`] with what it needs;
    /// [`DatabaseError::Unavailable`] if it was told to stop, or cannot be done now; and what the stores report.
    pub fn relocate(&self, name: &str, volume: &str) -> Result<Relocated> {
        let database = self.get(name)?;
        let to = self.check_move(&database, volume)?;
        if !self.shared().moving.lock().insert(name.to_owned()) {
            return Err(DatabaseError::Unavailable {
                reason: format!("The database `{name}` is being moved; show tasks shows its progress."),
            });
        }
        let _moving = Moving { databases: self, name };
        let tasks = self.first().tasks().cloned().unwrap_or_default();
        let task = tasks.start("database_move", Some(name), None);
        task.detail("volume", volume);
        let done = self.relocate_now(&database, &to, &task);
        match &done {
            Ok(moved) => {
                task.detail("held_ms", milliseconds(moved.held));
                task.finish();
            }
            Err(_) if task.is_cancelled() => drop(task),
            Err(error) => task.fail(error.to_string()),
        }
        done
    }

    /// Whether a database may be moved, and where to. A move that is begun in the background is checked before.
    ///
    /// # Errors
    /// As [`Databases::relocate`], before anything is done.
    pub fn check_relocate(&self, name: &str, volume: &str) -> Result<()> {
        let database = self.get(name)?;
        self.check_move(&database, volume).map(drop)
    }

    fn check_move(&self, database: &OpenDatabase, volume: &str) -> Result<Arc<StoreContext>> {
        let name = database.name();
        let to = self.context_of(volume)?;
        if database.volume() == volume {
            return Err(DatabaseError::bad_request(format!(
                "The database `{name}` is on the volume `{volume}` already."
            )));
        }
        if self.shared().placement.get().is_some_and(|placement| placement.stays_first(name)) {
            return Err(stays_first(name));
        }
        database.check_not_held("it can be moved")?;
        check_room(database, &to)?;
        Ok(to)
    }

    fn relocate_now(
        &self,
        database: &OpenDatabase,
        to: &Arc<StoreContext>,
        task: &Task,
    ) -> Result<Relocated> {
        let header = read_header(database.store(), database.number())?;
        task.set_total(header.records());
        // Until the catalogue has it there it counts as one that was dropped, so that a crash leaves nothing.
        let (new, _adopting) = self.reserve_number(to, &header)?;
        let old = database.number();
        let touched = database.store().admin().watch_keys(old, TOUCHED_MAX);
        let (keys, bytes) = (Cell::new(0), Cell::new(0));
        let held = Cell::new(Duration::ZERO);
        let work = Move { databases: self, database, to, old, new, touched, task, keys, bytes, held };
        work.run()?;
        let held = work.held.get();
        tracing::info!(
            database = database.name(),
            from = database.volume(),
            to = to.volume,
            keys = work.keys.get(),
            held_ms = milliseconds(held),
            "a database was moved to another volume"
        );
        Ok(Relocated { keys: work.keys.get(), bytes: work.bytes.get(), held })
    }
}

/// To the microsecond.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// Refuses a move that the other disk may have no room for, before it has begun. Contents are counted as they were before
/// compression and sharing.
fn check_room(database: &Database, to: &StoreContext) -> Result<()> {
    let sizes = database.sizes()?;
    let needed_bytes = sizes.file_bytes.saturating_add(sizes.external_bytes);
    let room = to.store.admin().room()?;
    if room.takes(needed_bytes) {
        return Ok(());
    }
    let left_bytes = room.free_bytes.saturating_sub(room.reserve_bytes);
    let megabytes = |bytes: u64| format!("{} MB", bytes.div_ceil(1 << 20));
    Err(DatabaseError::Full {
        reason: format!(
            "Moving `{}` may need {} on the volume `{}`, which has {} in addition to its reserve: make room there, or name \
             another volume.",
            database.name(),
            megabytes(needed_bytes),
            to.volume,
            megabytes(left_bytes)
        ),
    })
}

impl Move<'_> {
    fn run(&self) -> Result<()> {
        self.task.detail("phase", "copy");
        // What was on its way when the noting of keys began may not be noted; with this it is visible.
        self.barrier()?;
        self.compare()?;
        self.catch_up()?;
        self.build_views()?;
        self.task.detail("phase", "changes");
        for _ in 0..ROUNDS {
            self.catch_up()?;
            if self.switch()? {
                return Ok(());
            }
        }
        Err(self.too_fast())
    }

    fn too_fast(&self) -> DatabaseError {
        DatabaseError::Unavailable {
            reason: format!(
                "The database `{}` changes faster than it can be copied; it stays where it is. Try again when there is \
                 less to do.",
                self.database.name()
            ),
        }
    }

    fn transfer(&self, incomplete: Incomplete) -> Transfer<'_> {
        let mut transfer = Transfer::new(&self.database.context.contents, self.to, (self.old, self.new));
        transfer.incomplete = incomplete;
        transfer
    }

    /// Goes through all keys at both places, and gives those that differ the value that they have now.
    fn compare(&self) -> Result<()> {
        for family in keys::FAMILIES {
            let mut from = Some(keys::database_range(self.old).0.to_vec());
            while let Some(begin) = from {
                from = self.compare_slice(family, &begin)?;
                if self.touched.count() > TOUCHED_AT_ONCE {
                    self.copy_touched()?;
                }
            }
        }
        Ok(())
    }

    /// One slice from `begin`; returns where the next one begins.
    fn compare_slice(&self, family: Family, begin: &[u8]) -> Result<Option<Vec<u8>>> {
        let (started, before) = (Instant::now(), self.bytes.get());
        let mut transfer = self.transfer(Incomplete::Later);
        // Newer than whatever was copied again before.
        let (source, target) = (self.database.store().snapshot(), self.to.store.snapshot());
        let begin_there = transfer.renumbered(begin);
        let mut here = Side::open(&source, family, begin, self.old);
        let mut there = Side::open(&target, family, &begin_there, self.new);
        here.step()?;
        there.step()?;
        let (mut read_bytes, mut next) = (0, None);
        loop {
            let key = match (&here.key, &there.key) {
                (None, None) => break,
                (Some(key), None) | (None, Some(key)) => key,
                (Some(one), Some(other)) => one.min(other),
            };
            let key = [&self.old.to_be_bytes()[..], key].concat();
            if read_bytes >= SLICE_BYTES || transfer.is_full() {
                next = Some(key);
                break;
            }
            let is_here = here.is_at(&key);
            let is_there = there.is_at(&key);
            read_bytes += (key.len() + here.value.len()) as u64;
            if !is_here || !is_there || here.value != there.value {
                self.note_written(key.len() + here.value.len());
                transfer.set(family, &key, is_here.then_some(here.value.as_slice()))?;
            }
            if is_here {
                self.note_done(1);
                here.step()?;
            }
            if is_there {
                there.step()?;
            }
        }
        self.commit(&mut transfer)?;
        self.pace(read_bytes + self.bytes.get().saturating_sub(before) + transfer.copied_bytes, started)?;
        Ok(next)
    }

    /// Copies what changed meanwhile until little is left.
    fn catch_up(&self) -> Result<()> {
        for _ in 0..CATCH_UPS {
            self.copy_touched()?;
            if self.touched.count() <= TOUCHED_LAST {
                break;
            }
        }
        Ok(())
    }

    /// Copies what changed since this was called last. Returns the moment that it was copied at.
    fn copy_touched(&self) -> Result<Snapshot> {
        self.copy_touched_how(Incomplete::Later, false)
    }

    /// `in_haste`: writers wait, and no store of objects is waited for; documents that need one are noted again.
    fn copy_touched_how(&self, incomplete: Incomplete, in_haste: bool) -> Result<Snapshot> {
        let started = Instant::now();
        let taken = self.touched.take();
        if taken.lost_track {
            self.compare()?;
        }
        self.barrier()?;
        let snapshot = self.database.store().snapshot();
        let mut transfer = self.transfer(incomplete);
        transfer.in_haste = in_haste;
        let before = self.bytes.get();
        for (family, key) in &taken.keys {
            let value = snapshot.get(*family, key)?;
            self.note_written(key.len() + value.as_ref().map_or(0, |value| value.len()));
            transfer.set(*family, key, value.as_deref())?;
            if transfer.is_full() {
                self.commit(&mut transfer)?;
            }
        }
        self.commit(&mut transfer)?;
        if !in_haste {
            self.pace(self.bytes.get().saturating_sub(before) + transfer.copied_bytes, started)?;
        }
        Ok(snapshot)
    }

    /// Everything that was noted before is visible when this returns.
    fn barrier(&self) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete(Family::Meta, &keys::nothing(self.old));
        Ok(self.database.store().commit(batch)?)
    }

    fn commit(&self, transfer: &mut Transfer<'_>) -> Result<()> {
        transfer.commit()?;
        // A document whose content has gone has changed, and is copied again.
        for key in transfer.take_left_out() {
            self.touched.note(Family::Point, &key);
        }
        Ok(())
    }

    fn note_written(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes as u64);
    }

    fn note_done(&self, keys: u64) {
        self.keys.set(self.keys.get() + keys);
        self.task.advance(keys);
    }

    fn pace(&self, bytes: u64, started: Instant) -> Result<()> {
        let limits = self.databases.io_limits();
        let go_on = || !self.task.is_cancelled();
        if limits.pace(IoClass::Move, bytes, started.elapsed(), go_on) {
            return self.database.check_there();
        }
        Err(DatabaseError::Unavailable {
            reason: format!("It was stopped; `{}` stays where it is.", self.database.name()),
        })
    }

    /// Builds the database's views on the other volume, as of a moment at which writers are held shortly, so that readers
    /// find them there.
    fn build_views(&self) -> Result<()> {
        if read_header(self.database.store(), self.old)?.design_count == 0 {
            return Ok(());
        }
        {
            let began = Instant::now();
            let _held = self.database.hold_place();
            let mut transfer = self.transfer(Incomplete::Later);
            let finished = self.finish_changes(&mut transfer);
            self.note_held(began);
            finished?;
        }
        self.task.detail("phase", "views");
        let there = OpenDatabase::load(self.to, self.new, self.databases.views())?;
        // Where it fails, the reader who asks for them gets the error, or has them built.
        if let Err(error) = there.update_all_views(None, false) {
            tracing::warn!(%error, database = self.database.name(), "views are built after the move");
        }
        self.pace(0, Instant::now())
    }

    /// Copies the last changes while nobody makes any, and what lies apart. False: there are more.
    fn finish_changes(&self, transfer: &mut Transfer<'_>) -> Result<bool> {
        self.settle()?;
        if self.touched.count() > TOUCHED_HELD {
            return Ok(false);
        }
        let snapshot = self.copy_touched_how(transfer.incomplete, true)?;
        let header = snapshot.get(Family::Meta, &keys::header(self.old))?;
        transfer.set_header(&header.ok_or_else(DatabaseError::no_database)?);
        transfer.set_apart(&snapshot)?;
        self.commit(transfer)?;
        // What clears folders away, and purges, asks no writer.
        Ok(self.touched.count() == 0)
    }

    /// Waits until all that was submitted is visible, and marks what may soon be left here.
    fn settle(&self) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(Family::Meta, &keys::dropped(self.old), &[]);
        // In the line of the updates before it.
        if self.database.properties().logged {
            self.database.store().commit(batch)?;
        } else {
            self.database.store().write(batch, Durability::Flushed, None)?.wait()?;
        }
        Ok(())
    }

    fn note_held(&self, began: Instant) {
        self.held.set(self.held.get().max(began.elapsed()));
    }

    /// The moment of the move. False: there was too much left to do.
    fn switch(&self) -> Result<bool> {
        let databases = self.databases;
        let catalog = databases.shared().catalog.lock();
        let began = Instant::now();
        let mut moved = self.database.hold_place();
        let writer = self.database.hold_writer();
        self.database.check_there()?;
        self.database.check_not_held("it can be moved")?;
        if self.task.is_cancelled() {
            drop((writer, moved, catalog));
            return self.pace(0, began).map(|()| false);
        }
        let mut transfer = self.transfer(Incomplete::Keep);
        if !self.finish_changes(&mut transfer)? {
            self.note_held(began);
            return Ok(false);
        }
        let name = self.database.name();
        let there = OpenDatabase::load(self.to, self.new, self.databases.views())?;
        let mut batch = Batch::new();
        databases.enter(&mut batch, name, self.new, self.to);
        databases.commit_place(batch, self.database)?;
        self.database.leave();
        databases.opened().replace(name, &there);
        databases.leave_to_readers(self.database);
        self.database.move_to(&there);
        *moved = Some(Arc::clone(there.database()));
        drop((writer, moved, catalog));
        self.note_held(began);
        self.database.wake();
        unmark(self.to, self.new);
        Ok(true)
    }
}

/// The keys of a database at one of the two places, one after the other, without the number that they begin with.
struct Side<'a> {
    cursor: Cursor<'a>,
    key: Option<Vec<u8>>,
    value: Vec<u8>,
}

impl<'a> Side<'a> {
    fn open(snapshot: &'a Snapshot, family: Family, begin: &[u8], number: u32) -> Self {
        let end = keys::database_range(number).1;
        let range = KeyRange::new(begin, &end);
        let cursor = snapshot.cursor_with(family, range, ScanOptions::long(Direction::Forward));
        Self { cursor, key: None, value: Vec::new() }
    }

    fn step(&mut self) -> Result<()> {
        self.value.clear();
        self.key = None;
        if let Some((key, value)) = self.cursor.next()? {
            self.value.extend_from_slice(value);
            self.key = Some(key.get(4..).unwrap_or_default().to_vec());
        }
        Ok(())
    }

    /// Whether it is at this key, with whatever number.
    fn is_at(&self, key: &[u8]) -> bool {
        self.key.as_deref() == key.get(4..)
    }
}
