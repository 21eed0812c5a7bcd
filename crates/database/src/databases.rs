//! All databases of a server, by name.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, MutexGuard, RwLock};
use quick_cache::sync::Cache;
use scrinium_objects::Objects;
use scrinium_statistics::Tasks;
use scrinium_store::{Batch, Direction, Family, KeyRange, Store};
use serde_json::{Map, Value};

use crate::collation::Collation;
use crate::compact::Compactions;
use crate::content::Contents;
use crate::content::collector::Collected;
use crate::content::places::AttachmentOptions;
use crate::content::removal::RemovedObjects;
use crate::damage::Damage;
use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::header::Header;
use crate::view::{Announced, Engines};
use crate::{keys, names};

/// Databases kept ready though nobody uses them; some KB each.
const IDLE_DATABASES: usize = 4096;

/// Keys removed by one batch when a dropped database or folder is cleared away.
pub(crate) const PURGE_AT_ONCE: usize = 1000;

/// What holds for all databases of a server.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseOptions {
    /// A document's JSON may have so many bytes, without its attachments.
    pub document_max_bytes: usize,
    /// An attachment may have so many bytes.
    pub attachment_max_bytes: u64,
    /// A view that depends on the time (`@Now`, `@Today`) is evaluated anew, whole, when it is read and this old:
    /// its formulas may say something else of any document at any moment.
    pub time_variant_seconds: i64,
    /// Which collation orders the keys of indexes; looked at when the databases are opened.
    #[doc(hidden)]
    pub collation: Collation,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self {
            document_max_bytes: 8 << 20,
            attachment_max_bytes: 1 << 30,
            time_variant_seconds: 15 * 60,
            collation: Collation::default(),
        }
    }
}

/// All databases of a server. Clones share them.
#[derive(Clone)]
pub struct Databases {
    shared: Arc<Shared>,
}

/// What every database of a server uses.
pub(crate) struct Common {
    pub(crate) store: Store,
    pub(crate) contents: Contents,
    options: RwLock<DatabaseOptions>,
    guard: OnceLock<Arc<dyn Guard>>,
    tasks: OnceLock<Tasks>,
    rebuild_dir: RwLock<PathBuf>,
    /// What tells the store from every other one, also from copies of it.
    pub(crate) history: String,
    pub(crate) engines: Engines,
    pub(crate) collation: Collation,
    pub(crate) announced: Announced,
    pub(crate) compactions: Compactions,
    pub(crate) damage: Damage,
}

impl Common {
    pub(crate) fn options(&self) -> DatabaseOptions {
        *self.options.read()
    }

    /// Where long work shows its progress, if anywhere.
    pub(crate) fn tasks(&self) -> Option<&Tasks> {
        self.tasks.get()
    }

    /// Where builds of views put what does not fit into memory.
    pub(crate) fn rebuild_dir(&self) -> PathBuf {
        self.rebuild_dir.read().clone()
    }

    /// What checks the edits of a database, if anything does.
    pub(crate) fn guard(&self, database: &str) -> Option<&Arc<dyn Guard>> {
        self.guard.get().filter(|guard| guard.guards(database))
    }
}

/// Checks, and may complete, the documents that are written into certain databases, whoever writes them:
/// no password is stored in clear, no memo without a recipient enters a mail.box.
pub trait Guard: Send + Sync + 'static {
    /// Whether the database's documents are checked.
    fn guards(&self, database: &str) -> bool;

    /// The document as it may be stored.
    ///
    /// # Errors
    /// Why it may not be.
    fn check(&self, database: &str, document: Map<String, Value>) -> Result<Map<String, Value>>;
}

/// Which databases of a server are open.
struct Shared {
    /// Apart from the rest, so that a database that is kept ready does not keep its keeper.
    common: Arc<Common>,
    server_uuid: String,
    /// Everything in use, so that two parts of the server never hold two of one database.
    open: Mutex<HashMap<String, Weak<Database>>>,
    idle: Cache<String, Arc<Database>>,
    /// Held while a database is made or dropped.
    catalog: Mutex<()>,
    /// Numbers of databases that are brought in: on disk they look like ones that were dropped.
    adopting: Arc<Mutex<HashSet<u32>>>,
}

/// Keeps what is brought in from being cleared away.
pub(crate) struct Adopting {
    number: u32,
    adopting: Arc<Mutex<HashSet<u32>>>,
}

impl Drop for Adopting {
    fn drop(&mut self) {
        self.adopting.lock().remove(&self.number);
    }
}

/// Which names [`Databases::names`] gives, in byte order.
#[derive(Clone, Debug)]
pub struct NameRange {
    /// The first name, or the last if `descending`.
    pub start: Option<String>,
    /// The last name, or the first if `descending`.
    pub end: Option<String>,
    /// Whether `end` itself is given.
    pub inclusive_end: bool,
    /// From the highest to the lowest.
    pub descending: bool,
    /// Leave out so many at the beginning.
    pub skip: usize,
    /// Give so many at most.
    pub limit: usize,
}

impl Default for NameRange {
    fn default() -> Self {
        Self { start: None, end: None, inclusive_end: true, descending: false, skip: 0, limit: usize::MAX }
    }
}

impl Databases {
    /// The databases of `store`.
    ///
    /// # Errors
    /// What the store reports.
    pub fn open(store: &Store, options: DatabaseOptions) -> Result<Self> {
        let shared = Shared {
            common: Arc::new(Common {
                store: store.clone(),
                contents: Contents::open(store.clone())?,
                options: RwLock::new(options),
                guard: OnceLock::new(),
                tasks: OnceLock::new(),
                engines: Engines::default(),
                collation: options.collation,
                announced: Announced::default(),
                compactions: Compactions::default(),
                damage: Damage::of(store),
                rebuild_dir: RwLock::new(crate::view::default_rebuild_dir(store)),
                history: store.history()?,
            }),
            server_uuid: server_uuid(store)?,
            open: Mutex::default(),
            idle: Cache::new(IDLE_DATABASES),
            catalog: Mutex::default(),
            adopting: Arc::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    pub(crate) fn store(&self) -> &Store {
        &self.shared.common.store
    }

    pub(crate) fn common(&self) -> &Arc<Common> {
        &self.shared.common
    }

    /// The number of the database called `name`.
    pub(crate) fn number_of_name(&self, name: &str) -> Result<u32> {
        let number = self.shared.common.store.get(Family::Meta, &keys::database_by_name(name))?;
        let number = number.ok_or_else(DatabaseError::no_database)?;
        number_of(&number).ok_or_else(|| DatabaseError::damaged("number", name))
    }

    /// As [`Databases::get`], also for databases that are refused because of damaged files.
    pub(crate) fn for_fixup(&self, name: &str) -> Result<Arc<Database>> {
        self.get_any(name)
    }

    pub(crate) fn opened(&self) -> MutexGuard<'_, HashMap<String, Weak<Database>>> {
        self.shared.open.lock()
    }

    pub(crate) fn idle(&self) -> &Cache<String, Arc<Database>> {
        &self.shared.idle
    }

    pub(crate) fn announced(&self) -> &Announced {
        &self.shared.common.announced
    }

    /// Has the documents of certain databases checked from now on. Only the first call counts.
    pub fn set_guard(&self, guard: Arc<dyn Guard>) {
        if self.shared.common.guard.set(guard).is_err() {
            tracing::warn!("the databases have a guard already");
        }
    }

    /// Shows the progress of long work in `tasks`, where it can be cancelled too. Only the first call counts.
    pub fn set_tasks(&self, tasks: &Tasks) {
        if self.shared.common.tasks.set(tasks.clone()).is_err() {
            tracing::warn!("the databases show their tasks already");
        }
    }

    /// Sets the folder where builds of views put sorted files that do not fit into memory (the seeds'
    /// View_Rebuild_Dir); the next build uses it. By default it is `rebuild` in the store's folder.
    pub fn set_rebuild_dir(&self, dir: PathBuf) {
        *self.shared.common.rebuild_dir.write() = dir;
    }

    /// Sets other limits for what is written from now on.
    pub fn set_options(&self, options: DatabaseOptions) {
        *self.shared.common.options.write() = options;
    }

    /// Makes a database; it is durable when this returns.
    ///
    /// # Errors
    /// [`DatabaseError::Exists`], a name that is not allowed, and what the store reports.
    pub fn create(&self, name: &str) -> Result<Arc<Database>> {
        names::validate(name)?;
        let _catalog = self.shared.catalog.lock();
        let store = &self.shared.common.store;
        self.check_free(name)?;
        let number = self.next_number()?;
        let header = Header::new(name, rand::random(), now_ms());
        let mut batch = Batch::new();
        batch.put(Family::Meta, &keys::database_by_name(name), &number.to_be_bytes());
        batch.put(Family::Meta, &keys::header(number), &header.encode());
        batch.put(Family::Meta, keys::NEXT_NUMBER, &(number + 1).to_be_bytes());
        store.commit(batch)?;
        self.get(name)
    }

    pub(crate) fn check_free(&self, name: &str) -> Result<()> {
        if self.store().contains(Family::Meta, &keys::database_by_name(name))? {
            return Err(DatabaseError::Exists {
                reason: "The database could not be created, the file already exists.".to_owned(),
            });
        }
        Ok(())
    }

    fn next_number(&self) -> Result<u32> {
        match self.store().get(Family::Meta, keys::NEXT_NUMBER)? {
            None => Ok(1),
            Some(bytes) => {
                number_of(&bytes).ok_or_else(|| DatabaseError::damaged("next number", "databases"))
            }
        }
    }

    /// Takes a number for a database that is brought in. It has a header, so that contents are kept for it, and no
    /// name; what is written under it is cleared away after a crash, or once the answer's second part is dropped.
    pub(crate) fn reserve_number(&self, header: &Header) -> Result<(u32, Adopting)> {
        let _catalog = self.shared.catalog.lock();
        let number = self.next_number()?;
        self.shared.adopting.lock().insert(number);
        let adopting = Adopting { number, adopting: Arc::clone(&self.shared.adopting) };
        let mut batch = Batch::new();
        batch.put(Family::Meta, &keys::header(number), &header.encode());
        batch.put(Family::Meta, &keys::dropped(number), &[]);
        batch.put(Family::Meta, keys::NEXT_NUMBER, &(number + 1).to_be_bytes());
        self.store().commit(batch)?;
        Ok((number, adopting))
    }

    /// Makes a database that was brought in one of this server.
    pub(crate) fn give_name(&self, number: u32, name: &str) -> Result<Arc<Database>> {
        let _catalog = self.shared.catalog.lock();
        self.check_free(name)?;
        let mut batch = Batch::new();
        batch.put(Family::Meta, &keys::database_by_name(name), &number.to_be_bytes());
        batch.delete(Family::Meta, &keys::dropped(number));
        self.store().commit(batch)?;
        self.get(name)
    }

    pub(crate) fn contents(&self) -> &Contents {
        &self.shared.common.contents
    }

    /// The database called `name`.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn get(&self, name: &str) -> Result<Arc<Database>> {
        let database = self.get_any(name)?;
        self.shared.common.damage.check(database.number(), name)?;
        Ok(database)
    }

    fn get_any(&self, name: &str) -> Result<Arc<Database>> {
        if let Some(database) = self.shared.idle.get(name) {
            return Ok(database);
        }
        let mut open = self.shared.open.lock();
        let database = match open.get(name).and_then(Weak::upgrade) {
            Some(database) => database,
            None => {
                let database = Arc::new(self.load(name)?);
                if open.len() > IDLE_DATABASES {
                    open.retain(|_, database| database.strong_count() > 0);
                }
                open.insert(name.to_owned(), Arc::downgrade(&database));
                database
            }
        };
        // Under the lock, so that a database that is dropped meanwhile does not come back.
        self.shared.idle.insert(name.to_owned(), Arc::clone(&database));
        drop(open);
        Ok(database)
    }

    fn load(&self, name: &str) -> Result<Database> {
        let number = self.number_of_name(name)?;
        Database::load(&self.shared.common, number)
    }

    /// Drops a database: it is gone, durably, when this returns. What it held is removed by
    /// [`Databases::purge_dropped`].
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn delete(&self, name: &str) -> Result<()> {
        let _catalog = self.shared.catalog.lock();
        let database = self.get(name)?;
        let mut batch = Batch::new();
        batch.delete(Family::Meta, &keys::database_by_name(name));
        batch.delete(Family::Meta, &keys::header(database.number()));
        batch.delete(Family::Meta, &keys::security(database.number()));
        batch.delete(Family::Meta, &keys::compaction(database.number()));
        batch.delete(Family::Meta, &keys::properties(database.number()));
        batch.put(Family::Meta, &keys::dropped(database.number()), &[]);
        database.drop_with(batch)?;
        let mut open = self.shared.open.lock();
        self.shared.idle.remove(name);
        open.remove(name);
        Ok(())
    }

    /// The names of databases, in byte order.
    ///
    /// # Errors
    /// What the store reports.
    pub fn names(&self, range: &NameRange) -> Result<Vec<String>> {
        let (low, high) =
            if range.descending { (&range.end, &range.start) } else { (&range.start, &range.end) };
        let (low_inclusive, high_inclusive) =
            if range.descending { (range.inclusive_end, true) } else { (true, range.inclusive_end) };
        let after = |name: &String| [keys::database_by_name(name), vec![0]].concat();
        let from = match low {
            None => keys::database_by_name(""),
            Some(name) if low_inclusive => keys::database_by_name(name),
            Some(name) => after(name),
        };
        let to = match high {
            None => keys::successor(&keys::database_by_name("")),
            Some(name) if high_inclusive => after(name),
            Some(name) => keys::database_by_name(name),
        };
        if from >= to {
            return Ok(Vec::new());
        }
        let direction = if range.descending { Direction::Backward } else { Direction::Forward };
        let snapshot = self.shared.common.store.snapshot();
        let mut cursor = snapshot.cursor(Family::Meta, KeyRange { from: &from, to: Some(&to) }, direction);
        let mut skipped = 0;
        let mut names = Vec::new();
        while names.len() < range.limit
            && let Some((key, _)) = cursor.next()?
        {
            if skipped < range.skip {
                skipped += 1;
            } else {
                names.extend(keys::name_of(key).map(str::to_owned));
            }
        }
        Ok(names)
    }

    /// The server's uuid, made when its store was: 32 hexadecimal digits.
    #[must_use]
    pub fn server_uuid(&self) -> &str {
        &self.shared.server_uuid
    }

    /// Removes contents that no document refers to any more; at most a thousand a call.
    ///
    /// # Errors
    /// What the store reports.
    pub fn collect_contents(&self) -> Result<Collected> {
        self.shared.common.contents.collect()
    }

    /// Removes objects that no document needs any more, after the time that is set; at most two hundred a call, and none
    /// any more once `go_on` answers false.
    ///
    /// # Errors
    /// What the store reports. That a store of objects does not answer is no error: it is tried by the next call.
    pub fn remove_objects(&self, go_on: &dyn Fn() -> bool) -> Result<RemovedObjects> {
        self.shared.common.contents.remove_objects(go_on)
    }

    /// Has stores of objects used by `objects` from now on: to be called before anything is read or written.
    pub fn set_objects(&self, objects: Objects) {
        self.shared.common.contents.places().set_objects(objects);
    }

    /// What stores of objects are used by.
    #[must_use]
    pub fn objects(&self) -> Objects {
        self.shared.common.contents.places().objects()
    }

    /// Says where large contents are put from now on. Those that are there stay where they are.
    ///
    /// # Errors
    /// [`DatabaseError::BadRequest`] if the address is none, and what the store reports. That a store of objects
    /// answers is not looked at.
    pub fn set_attachment_options(&self, options: AttachmentOptions) -> Result<()> {
        self.shared.common.contents.places().set_options(options)
    }

    /// Clears away what dropped databases and dropped folders held. Returns how many databases were cleared.
    ///
    /// # Errors
    /// What the store reports; the rest is done by the next call.
    pub fn purge_dropped(&self) -> Result<usize> {
        let (from, to) = keys::DROPPED_RANGE;
        let snapshot = self.shared.common.store.snapshot();
        let mut cursor = snapshot.cursor(Family::Meta, KeyRange { from, to: Some(to) }, Direction::Forward);
        let mut numbers = Vec::new();
        while let Some((key, _)) = cursor.next()? {
            numbers.extend(key.get(1..).and_then(number_of));
        }
        let mut purged = 0;
        for number in numbers {
            // First the one, then the other: what was brought in meanwhile is not dropped any more.
            if self.shared.adopting.lock().contains(&number)
                || !self.store().contains(Family::Meta, &keys::dropped(number))?
            {
                continue;
            }
            self.purge(number)?;
            purged += 1;
        }
        crate::folder::purge::purge_dropped(&self.shared.common.store)?;
        Ok(purged)
    }

    /// Notes the contents of a dropped database as collectable, then removes its ranges.
    fn purge(&self, number: u32) -> Result<()> {
        let store = &self.shared.common.store;
        let snapshot = store.snapshot();
        let (from, to) = keys::head_range(number);
        let mut cursor =
            snapshot.cursor(Family::Point, KeyRange { from: &from, to: Some(&to) }, Direction::Forward);
        let mut batch = Batch::new();
        let mut noted = 0;
        while let Some((key, value)) = cursor.next()? {
            let (Some(id), Some(head)) = (keys::id_of(key), crate::head::Head::decode(value)) else {
                continue;
            };
            for digest in &head.contents {
                batch.delete(Family::Point, &keys::reference(digest, number, id));
                batch.put(Family::Point, &keys::collectable(digest), &[]);
                noted += 1;
            }
            if noted >= PURGE_AT_ONCE {
                store.commit(std::mem::take(&mut batch))?;
                noted = 0;
            }
        }
        let (from, to) = keys::database_range(number);
        for family in [Family::Point, Family::Scan, Family::Churn] {
            batch.delete_range(family, &from, &to);
        }
        // One that was brought in only in part has these as well.
        for key in [keys::header, keys::security, keys::access_list, keys::dropped] {
            batch.delete(Family::Meta, &key(number));
        }
        store.commit(batch)?;
        crate::view::drop_all(store, number)
    }
}

fn server_uuid(store: &Store) -> Result<String> {
    if let Some(uuid) = store.get(Family::Meta, keys::SERVER_UUID)? {
        return Ok(crate::content::hex(&uuid));
    }
    let uuid: [u8; 16] = rand::random();
    let mut batch = Batch::new();
    batch.put(Family::Meta, keys::SERVER_UUID, &uuid);
    store.commit(batch)?;
    Ok(crate::content::hex(&uuid))
}

pub(crate) fn number_of(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_be_bytes)
}

/// Milliseconds since 1970, UTC.
pub(crate) fn now_ms() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}
