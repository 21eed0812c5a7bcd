//! One database: its header in memory, and what updates are on their way.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use scrinium_contents::hex;
use scrinium_document::json::stored_value_of_bytes;
use scrinium_store::{Batch, Direction, Durability, Family, KeyRange, Snapshot, Store};
use tokio::sync::watch;

use crate::access::list::AccessList;
use crate::access::restriction::Restriction;
use crate::changed::DatabaseEventKind;
use crate::compaction_record::CompactionRecord;
use crate::context::StoreContext;
use crate::deletion::UndeleteChoice;
use crate::designs::DatabaseObserver;
use crate::error::{DatabaseError, Result};
use crate::header::{Header, UNCOUNTED};
use crate::history::HistoryLimits;
use crate::hold;
use crate::keys;
use crate::leaf::Leaf;
use crate::properties::Properties;
use crate::quota::Quota;
use crate::sizes::DatabaseSizes;
use crate::validation::Validation;
use crate::writer::{Writer, kept_for};

/// A database of documents.
pub struct Database {
    number: u32,
    uuid: [u8; 16],
    name: String,
    /// What the databases of its store use.
    pub context: Arc<StoreContext>,
    writer: Mutex<Writer>,
    /// Updates that have begun to read what they change and have not given back the writer's lock.
    pub ahead: AtomicUsize,
    /// The last change that a reader finds.
    visible: watch::Sender<u64>,
    security: RwLock<Option<Arc<serde_json::Value>>>,
    /// `None`: not yet read.
    pub(crate) access_list: RwLock<Option<Option<Arc<AccessList>>>>,
    /// Whether some document is hidden from somebody.
    pub(crate) restriction: Restriction,
    /// Changes with every design document.
    design_generation: AtomicU64,
    /// The functions that edits have to pass, once they were read.
    pub(crate) validation: Mutex<Option<Validation>>,
    /// One more than the generation in which no design document has such a function; 0 if none is known.
    pub(crate) unvalidated: AtomicU64,
    /// Learns of what has become visible.
    observer: Arc<dyn DatabaseObserver>,
    /// Whether its changes go through the log; changed under the writer's lock only.
    pub(crate) logged: AtomicBool,
    pub(crate) full_text: AtomicBool,
    /// Whether nothing in it may be lost.
    pub(crate) held: AtomicBool,
    pub(crate) quota: RwLock<Quota>,
    /// It was nearly full with the last edit, and somebody was warned.
    pub(crate) told_of_quota: AtomicBool,
    pub(crate) history: RwLock<HistoryLimits>,
    pub(crate) undelete: RwLock<UndeleteChoice>,
    /// What some folders are called; it may be old.
    pub(crate) folder_names: Mutex<HashMap<u32, String>>,
    /// Held by the one who counts purged documents.
    purges: Mutex<()>,
    /// Set when the database is dropped, so that those who still hold it stop.
    dropped: AtomicBool,
    /// Set under the writer's lock when it is moved: nothing that is written here counts any more.
    pub(crate) left: AtomicBool,
    /// How many revisions a branch keeps, as readers are to find it.
    revision_limit: AtomicU64,
    /// Where it is now, once it was moved to another volume. Held shared by the one who changes something.
    pub(crate) moved: RwLock<Option<Arc<Self>>>,
}

/// What is known of a database as a whole.
#[derive(Clone, Debug)]
pub struct DatabaseInfo {
    /// Its name.
    pub name: String,
    /// 32 hexadecimal digits, another when a database of the same name is made again.
    pub uuid: String,
    /// The last change, as it goes over the wire.
    pub update_sequence: String,
    /// The number of the last change.
    pub change_number: u64,
    /// Documents that are there.
    pub document_count: u64,
    /// Documents of which only a tombstone is left.
    pub deleted_count: u64,
    /// How large it is.
    pub sizes: DatabaseSizes,
    /// Tombstones that were purged.
    pub purged_count: u64,
    /// When it was made, in microseconds since 1970.
    pub instance_start_time_us: u64,
    /// How many revisions a branch keeps.
    pub revision_limit: u64,
}

impl Database {
    /// The database of this number, as its store has it.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn load(
        context: &Arc<StoreContext>,
        number: u32,
        observer: Arc<dyn DatabaseObserver>,
    ) -> Result<Self> {
        // Read before the header: a write that fails in between is noticed by the first update.
        let failures = context.store.failures();
        let header = read_header(&context.store, number)?;
        let properties = Properties::read(&context.store, number, &header.name)?;
        let restriction = Restriction::read(&context.store, number)?;
        let is_held = !hold::read(&context.store, number, &header.name)?.is_empty();
        Ok(Self {
            number,
            uuid: header.uuid,
            name: header.name.clone(),
            context: Arc::clone(context),
            visible: watch::Sender::new(header.change_number),
            revision_limit: AtomicU64::new(header.revision_limit),
            writer: Mutex::new(Writer::new(header, failures)),
            ahead: AtomicUsize::new(0),
            security: RwLock::default(),
            access_list: RwLock::default(),
            restriction,
            design_generation: AtomicU64::new(0),
            validation: Mutex::default(),
            unvalidated: AtomicU64::new(0),
            observer,
            logged: AtomicBool::new(properties.logged),
            full_text: AtomicBool::new(properties.full_text),
            held: AtomicBool::new(is_held),
            quota: RwLock::new(properties.quota),
            told_of_quota: AtomicBool::new(false),
            history: RwLock::new(properties.history),
            undelete: RwLock::new(properties.undelete),
            folder_names: Mutex::default(),
            purges: Mutex::default(),
            dropped: AtomicBool::new(false),
            left: AtomicBool::new(false),
            moved: RwLock::new(None),
        })
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number that every key of the database begins with; no other one ever gets it.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// What tells it from an earlier one of the same name.
    pub const fn uuid(&self) -> [u8; 16] {
        self.uuid
    }

    /// The store that it lies in.
    pub fn store(&self) -> &Store {
        &self.context.store
    }

    /// Milliseconds since 1970, by the clock of the store.
    pub fn now_ms(&self) -> u64 {
        self.store().clock().now_ms()
    }

    /// Whether it was not dropped.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if it was.
    pub fn check_there(&self) -> Result<()> {
        if self.dropped.load(Ordering::Acquire) { Err(DatabaseError::no_database()) } else { Ok(()) }
    }

    /// Keeps the database where it is until the answer is dropped; or the same database on the volume that it was moved to.
    pub fn pin_location(&self) -> std::result::Result<RwLockReadGuard<'_, Option<Arc<Self>>>, Arc<Self>> {
        let moved = self.moved.read();
        match moved.as_ref() {
            None => Ok(moved),
            Some(there) => Err(Arc::clone(there)),
        }
    }

    /// The same database on the volume that it was moved to since this was opened. What is read here stays as it was
    /// then; changes find their way by themselves.
    #[must_use]
    pub fn moved(&self) -> Option<Arc<Self>> {
        self.moved.read().clone()
    }

    /// Makes those who wait for changes look again.
    pub fn wake(&self) {
        self.visible.send_modify(|_| {});
    }

    /// The writer's lock, whatever is on its way.
    pub fn hold_writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock()
    }

    /// What is known of the database as a whole.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if it was dropped meanwhile, and what the store reports.
    pub fn info(&self) -> Result<DatabaseInfo> {
        let header = self.header()?;
        let sizes = self.sizes_of(&header)?;
        Ok(DatabaseInfo {
            uuid: hex(&header.uuid),
            update_sequence: self.sequence_text(header.change_number),
            change_number: header.change_number,
            document_count: header.document_count,
            deleted_count: header.deleted_count,
            sizes,
            purged_count: self.compaction_record()?.purged_documents,
            instance_start_time_us: header.created_ms.saturating_mul(1000),
            revision_limit: header.revision_limit,
            name: header.name,
        })
    }

    /// What the last compaction left behind.
    ///
    /// # Errors
    /// What the store reports.
    pub fn compaction_record(&self) -> Result<CompactionRecord> {
        let stored = self.store().get(Family::Meta, &keys::compaction(self.number()))?;
        let damaged = || DatabaseError::damaged("record of the last compaction", self.name());
        stored.map_or_else(
            || Ok(CompactionRecord::default()),
            |stored| CompactionRecord::decode(&stored).ok_or_else(damaged),
        )
    }

    /// What is counted of the database, up to a change that is visible.
    pub fn header(&self) -> Result<Header> {
        self.check_there()?;
        let visible = self.visible_change_number();
        let mut header = read_header(self.store(), self.number)?;
        header.change_number = header.change_number.min(self.given_up_to(visible));
        Ok(header)
    }

    /// A change number as it goes over the wire: opaque to clients, and known again here.
    #[must_use]
    pub fn sequence_text(&self, change_number: u64) -> String {
        let [first, second, third, fourth, ..] = self.uuid;
        format!("{change_number}-{}", hex(&[first, second, third, fourth]))
    }

    /// The change number in a text of [`Database::sequence_text`]. One of another database, such as
    /// an earlier one of the same name, is taken as 0: its reader starts over.
    ///
    /// # Errors
    /// A text that begins with no number.
    pub fn parse_sequence(&self, text: &str) -> Result<u64> {
        let (number, origin) = text.split_once('-').unwrap_or((text, ""));
        let number: u64 = number.parse().map_err(|_| {
            DatabaseError::bad_request(format!("Malformed sequence supplied in 'since' parameter: {text}"))
        })?;
        let ours = self.sequence_text(number);
        Ok(if origin.is_empty() || ours == text { number } else { 0 })
    }

    /// Wakes when a later change can be read; the value is the number of the last such change.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.visible.subscribe()
    }

    /// The number of the last change that a reader finds.
    #[must_use]
    pub fn visible_change_number(&self) -> u64 {
        *self.visible.borrow()
    }

    /// The writer, after what is visible was taken from its list and a failed write was noticed; `others` is how
    /// many other updates are on their way.
    pub fn lock_writer(&self, others: usize) -> Result<MutexGuard<'_, Writer>> {
        let mut writer = self.writer.lock();
        self.check_there()?;
        if self.left.load(Ordering::Acquire) {
            let reason = format!(
                "The database `{}` was moved to another volume, or its location could not be recorded; try again, \
                 and restart the server if this persists.",
                self.name
            );
            return Err(DatabaseError::Unavailable { reason });
        }
        let failures = self.store().failures();
        if writer.failures != failures {
            *writer = Writer::new(read_header(self.store(), self.number)?, failures);
        }
        writer.forget_visible(self.visible_change_number(), kept_for(others));
        Ok(writer)
    }

    /// Puts a batch that was made under the writer's lock into the log, or, if the database is not logged, past it
    /// into its files. `done` is called once it is
    /// durable and visible, or has failed.
    pub fn submit(
        self: &Arc<Self>,
        writer: &Writer,
        batch: Batch,
        keep: impl Send + 'static,
        done: impl FnOnce(bool) + Send + 'static,
    ) -> Result<scrinium_store::Commit> {
        let database = Arc::clone(self);
        let change_number = writer.header.change_number;
        let has_designs = writer.header.design_count != 0;
        let commit = self.write_batch(batch, writer)?;
        commit.then(move |stored| {
            if stored {
                database.show_change(change_number);
            }
            done(stored);
            if stored {
                database.tell_followers(has_designs);
            }
            drop(keep);
        });
        Ok(commit)
    }

    /// Whether what the next update builds on may not be durable and visible yet.
    pub(crate) fn is_ahead(&self, writer: &Writer) -> bool {
        writer.header.change_number > self.visible_change_number()
    }

    /// A batch that changes nothing. It is durable when all is that was written before it.
    pub(crate) fn header_again(&self, writer: &Writer) -> Batch {
        let mut batch = Batch::new();
        batch.put(Family::Meta, &keys::header(self.number()), &writer.header.encode());
        batch
    }

    /// Hands a batch that was made under the writer's lock to the store, in the way that the database is logged.
    pub(crate) fn write_batch(&self, batch: Batch, writer: &Writer) -> Result<scrinium_store::Commit> {
        let durability = if self.properties().logged { Durability::Logged } else { Durability::Flushed };
        Ok(self.store().write(batch, durability, Some(writer.failures))?)
    }

    /// A change is durable, and is seen from now on.
    pub(crate) fn show_change(&self, change_number: u64) {
        self.visible.send_if_modified(|visible| {
            let later = change_number > *visible;
            *visible = change_number.max(*visible);
            later
        });
    }

    /// A change is seen: what follows the database has something to do.
    pub(crate) fn tell_followers(&self, has_designs: bool) {
        if has_designs {
            self.observer.committed(self.design_generation());
        }
        self.context.server.events.note(DatabaseEventKind::Updated, self.name());
    }

    /// Stores `batch`, after which the database is no more.
    pub fn drop_with(&self, batch: Batch) -> Result<()> {
        let writer = self.writer.lock();
        self.check_there()?;
        self.check_not_held("it can be deleted")?;
        // Behind the updates that still wait, or they would bring back what is removed.
        if self.properties().logged {
            self.store().commit(batch)?;
        } else {
            self.store().write(batch, Durability::Flushed, None)?.wait()?;
        }
        self.dropped.store(true, Ordering::Release);
        drop(writer);
        // Anyone who waits for changes looks again, and finds the database gone.
        self.wake();
        Ok(())
    }

    /// `_security` as CouchDB clients know it: `{}` before it was set.
    ///
    /// # Errors
    /// What the store reports.
    pub fn security(&self) -> Result<Arc<serde_json::Value>> {
        if let Some(security) = self.security.read().as_ref() {
            return Ok(Arc::clone(security));
        }
        let mut kept = self.security.write();
        let stored = self.store().get(Family::Meta, &keys::security(self.number))?;
        let value = match stored {
            None => serde_json::Value::Object(serde_json::Map::new()),
            Some(bytes) => stored_value_of_bytes(&bytes)
                .ok_or_else(|| DatabaseError::damaged("_security", &self.name))?,
        };
        let value = Arc::new(value);
        *kept = Some(Arc::clone(&value));
        Ok(value)
    }

    /// Sets `_security`; it is durable and in force when this returns.
    ///
    /// # Errors
    /// A value that is no object, and what the store reports.
    pub fn set_security(&self, security: &serde_json::Value) -> Result<()> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.set_security(security),
        };
        self.check_there()?;
        if !security.is_object() {
            return Err(DatabaseError::bad_request("Request body must be a JSON object"));
        }
        let mut kept = self.security.write();
        let mut batch = Batch::new();
        batch.put(Family::Meta, &keys::security(self.number), security.to_string().as_bytes());
        self.store().commit(batch)?;
        *kept = Some(Arc::new(security.clone()));
        Ok(())
    }

    /// Makes another `_security` of the one that is there; nobody sets another in between. Whether it is another one; durable and
    /// in force when this returns.
    ///
    /// # Errors
    /// As [`Database::set_security`].
    pub fn change_security(
        &self,
        change: impl FnOnce(&serde_json::Value) -> Option<serde_json::Value>,
    ) -> Result<bool> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.change_security(change),
        };
        self.check_there()?;
        // Into memory, so that the lock is not asked for twice.
        self.security()?;
        let mut kept = self.security.write();
        let Some(security) = kept.as_ref().and_then(|security| change(security)) else { return Ok(false) };
        let mut batch = Batch::new();
        batch.put(Family::Meta, &keys::security(self.number), security.to_string().as_bytes());
        self.store().commit(batch)?;
        *kept = Some(Arc::new(security));
        Ok(true)
    }

    /// Sets how many revisions a branch keeps; earlier ones are forgotten as documents are edited.
    ///
    /// # Errors
    /// A limit of 0, and what the store reports.
    pub fn set_revision_limit(self: &Arc<Self>, limit: u64) -> Result<()> {
        if limit == 0 {
            return Err(DatabaseError::bad_request("`rev_limit` must be a positive integer"));
        }
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.set_revision_limit(limit),
        };
        let mut writer = self.lock_writer(self.ahead.load(Ordering::Acquire))?;
        let before = std::mem::replace(&mut writer.header.revision_limit, limit);
        let mut batch = Batch::new();
        batch.put(Family::Meta, &keys::header(self.number), &writer.header.encode());
        let submitted = self.submit(&writer, batch, (), |_| {});
        if submitted.is_err() {
            writer.header.revision_limit = before;
        }
        drop(writer);
        submitted?.wait()?;
        self.revision_limit.store(limit, Ordering::Release);
        Ok(())
    }

    /// The volume that it lies on.
    #[must_use]
    pub fn volume(&self) -> &str {
        &self.context.volume
    }

    /// The folder of its store.
    #[must_use]
    pub fn store_dir(&self) -> &Path {
        self.store().dir()
    }

    /// From now on nothing is written here: the database was moved, or nobody knows whether it was.
    pub fn leave(&self) {
        self.left.store(true, Ordering::Release);
    }

    /// Keeps writers away, wherever the database is; the answer says where it is from now on.
    pub fn hold_place(&self) -> RwLockWriteGuard<'_, Option<Arc<Self>>> {
        self.moved.write()
    }

    /// Changes with every design document.
    #[must_use]
    pub fn design_generation(&self) -> u64 {
        self.design_generation.load(Ordering::Acquire)
    }

    /// What is known of design documents holds no more.
    pub fn designs_changed(&self) {
        self.design_generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Keeps others from counting purged documents: one who changes the [`CompactionRecord`] holds it from reading it until
    /// it is stored. Taken before the writer's lock.
    pub fn lock_purges(&self) -> parking_lot::MutexGuard<'_, ()> {
        self.purges.lock()
    }

    /// How many revisions a branch keeps.
    pub fn revision_limit(&self) -> u64 {
        self.revision_limit.load(Ordering::Acquire)
    }
}

/// About how many bytes of files some families have of a database.
pub fn size_in(store: &Store, number: u32, families: [Family; 3]) -> u64 {
    let (from, to) = keys::database_range(number);
    families.iter().map(|family| store.admin().size_of(*family, &from, &to)).sum()
}

/// The header of a database.
///
/// # Errors
/// [`DatabaseError::NotFound`], and what the store reports.
pub fn read_header(store: &Store, number: u32) -> Result<Header> {
    let stored = store.get(Family::Meta, &keys::header(number))?.ok_or_else(DatabaseError::no_database)?;
    let header = Header::decode(&stored).ok_or_else(|| header_damaged(number))?;
    if header.design_count == UNCOUNTED || header.folder_count == UNCOUNTED {
        return header_at(&store.snapshot(), number);
    }
    Ok(header)
}

/// The header as of a snapshot.
pub fn header_at(snapshot: &Snapshot, number: u32) -> Result<Header> {
    let stored = snapshot.get(Family::Meta, &keys::header(number))?.ok_or_else(DatabaseError::no_database)?;
    let mut header = Header::decode(&stored).ok_or_else(|| header_damaged(number))?;
    if header.design_count == UNCOUNTED {
        header.design_count = count_designs(snapshot, number)?;
    }
    if header.folder_count == UNCOUNTED {
        header.folder_count = count_folders(snapshot, number)?;
    }
    Ok(header)
}

fn count_designs(snapshot: &Snapshot, number: u32) -> Result<u64> {
    let from = keys::winner(number, scrinium_document::DESIGN_PREFIX);
    let to = keys::successor(&from);
    let range = KeyRange { from: &from, to: Some(&to) };
    let mut cursor = snapshot.cursor(Family::Scan, range, Direction::Forward);
    let mut count = 0;
    while let Some((_, stored)) = cursor.next()? {
        count += u64::from(!Leaf::decode("_design/", stored)?.deleted);
    }
    Ok(count)
}

fn count_folders(snapshot: &Snapshot, number: u32) -> Result<u64> {
    let (from, to) = keys::folder_range(number);
    let range = KeyRange { from: &from, to: Some(&to) };
    let mut cursor = snapshot.cursor(Family::Point, range, Direction::Forward);
    let mut count = 0;
    while cursor.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

fn header_damaged(number: u32) -> DatabaseError {
    DatabaseError::damaged("header", &number.to_string())
}
