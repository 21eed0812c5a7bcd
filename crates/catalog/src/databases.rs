//! All databases of a server, by name.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, RwLock};
use scrinium_assertion::never;
use scrinium_clock::Clock;
use scrinium_database::context::{DatabaseOptions, ServerContext, StoreContext};
use scrinium_database::header::Header;
use scrinium_database::{
    Database, DatabaseError, DatabaseEventKind, DatabaseEvents, Guard, Identity, InitialAccess, MoveWatcher,
    Result, keys,
};
use scrinium_statistics::Tasks;
use scrinium_store::{Batch, Direction, Family, IoLimits, KeyRange, Store};
use scrinium_views::{AttachmentText, DatabaseSession, OpenDatabase, ScriptOptions, ViewsContext};

use crate::dropped::unmark;
use crate::names;
use crate::opened::Opened;
use crate::volumes::{Entry, FIRST_VOLUME, Placement, Volume};

/// All databases of a server. Clones share them.
#[derive(Clone)]
pub struct Databases {
    shared: Arc<SharedDatabases>,
}

/// What all parts of a server share of its databases.
pub(crate) struct SharedDatabases {
    /// Of the first store. Apart from the rest, so that a database that is kept ready does not keep its keeper.
    first: Arc<StoreContext>,
    views: Arc<ViewsContext>,
    pub(crate) volumes: RwLock<BTreeMap<String, Volume>>,
    pub(crate) placement: OnceLock<Arc<dyn Placement>>,
    /// Databases that were moved away, as long as somebody may read what is left of them.
    pub(crate) left: Mutex<HashMap<u32, Weak<Database>>>,
    /// Databases that are being moved.
    pub(crate) moving: Mutex<HashSet<String>>,
    server_uuid: String,
    opened: Opened,
    /// What services that work on the databases keep, one of each type.
    services: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    /// Held while a database is made, dropped or moved.
    pub(crate) catalog: Mutex<()>,
    /// Numbers of databases that are brought in: on disk they look like ones that were dropped.
    pub(crate) adopting: Arc<Mutex<HashSet<u32>>>,
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
    /// Leave out this many at the beginning.
    pub skip: usize,
    /// Give this many at most.
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
        let views = Arc::new(ViewsContext::new(store));
        let server = Arc::new(ServerContext::new(options, Arc::clone(&views) as _));
        let first = Arc::new(StoreContext::open(FIRST_VOLUME, store.clone(), server)?);
        let shared = SharedDatabases {
            first,
            views,
            volumes: RwLock::default(),
            placement: OnceLock::new(),
            left: Mutex::default(),
            moving: Mutex::default(),
            server_uuid: server_uuid(store)?,
            opened: Opened::new(options.idle_databases),
            services: Mutex::default(),
            catalog: Mutex::default(),
            adopting: Arc::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    pub(crate) fn store(&self) -> &Store {
        &self.shared.first.store
    }

    /// What tells the time to everything that works on databases: the clock of their store.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        self.store().clock()
    }

    /// What the databases of the first store use.
    #[must_use]
    pub fn first(&self) -> &Arc<StoreContext> {
        &self.shared.first
    }

    pub(crate) fn shared(&self) -> &SharedDatabases {
        &self.shared
    }

    /// What the views of all databases use.
    #[must_use]
    pub fn views(&self) -> &Arc<ViewsContext> {
        &self.shared.views
    }

    /// What finds them as long as they are open.
    pub fn downgrade(&self) -> impl Fn() -> Option<Self> + use<> {
        let shared = Arc::downgrade(&self.shared);
        move || Some(Self { shared: shared.upgrade()? })
    }

    /// What a service that works on these databases keeps of them, as long as they are open: one of each type, made when it
    /// is first asked for.
    #[must_use]
    pub fn service<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut services = self.shared.services.lock();
        let service = services.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        Arc::clone(service).downcast().unwrap_or_else(|_| {
            never!("what a service keeps is kept under its type");
            Arc::default()
        })
    }

    /// The limits of background work, which all of it shares.
    #[must_use]
    pub fn io_limits(&self) -> &IoLimits {
        &self.shared.first.server.io
    }

    /// As [`Databases::get`], also for databases that are refused because of damaged files.
    ///
    /// # Errors
    /// As there.
    pub fn for_fixup(&self, name: &str) -> Result<OpenDatabase> {
        self.get_any(name)
    }

    pub(crate) fn opened(&self) -> &Opened {
        &self.shared.opened
    }

    /// Checks the documents of certain databases from now on. Only the first call counts.
    pub fn set_guard(&self, guard: Arc<dyn Guard>) {
        self.shared.first.server.set_guard(guard);
    }

    /// Tells `watcher` what people move between folders from now on. Only the first call counts.
    pub fn set_move_watcher(&self, watcher: Arc<dyn MoveWatcher>) {
        self.shared.first.server.set_move_watcher(watcher);
    }

    /// Shows the progress of long work in `tasks`, where it can be cancelled too. Only the first call counts.
    pub fn set_tasks(&self, tasks: &Tasks) {
        self.shared.first.server.set_tasks(tasks);
    }

    /// Sets the folder where builds of views put sorted files that do not fit into memory (the seeds'
    /// View_Rebuild_Dir); the next build uses it. By default it is `rebuild` in the store's folder.
    pub fn set_rebuild_dir(&self, dir: PathBuf) {
        self.shared.views.set_rebuild_dir(dir);
    }

    /// Sets what takes the words out of attachments, for full text.
    pub fn set_attachment_text(&self, text: Arc<dyn AttachmentText>) {
        self.shared.views.set_attachment_text(text);
    }

    /// Sets how many processes run JavaScript, and what each of them may use; for those that are started from now on.
    pub fn set_script_options(&self, options: ScriptOptions) {
        self.shared.views.set_script_options(options);
    }

    /// The limits for what is written, as they are set now.
    #[must_use]
    pub fn options(&self) -> DatabaseOptions {
        self.shared.first.options()
    }

    /// Does what an upgrade takes, once in the life of a store: `work` is not done again once it has gone well.
    ///
    /// # Errors
    /// Those of `work`, and what the store reports.
    pub fn once(&self, step: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let key = keys::step_done(step);
        if self.store().contains(Family::Meta, &key)? {
            return Ok(());
        }
        work()?;
        let mut batch = Batch::new();
        batch.put(Family::Meta, &key, &[]);
        Ok(self.store().commit(batch)?)
    }

    /// Sets other limits for what is written from now on.
    pub fn set_options(&self, options: DatabaseOptions) {
        self.shared.first.server.set_options(options);
    }

    /// Makes a database where the configuration wants it, for those whom `access` names; it is durable when this
    /// returns.
    ///
    /// # Errors
    /// [`DatabaseError::Exists`], a name that is not allowed, and what the store reports.
    pub fn create(&self, name: &str, access: &InitialAccess) -> Result<OpenDatabase> {
        self.create_on(name, access, None)
    }

    /// As [`Databases::create`], on a volume.
    ///
    /// # Errors
    /// As [`Databases::create`], and [`DatabaseError::Invalid`] or [`DatabaseError::Unavailable`] if there is no such
    /// volume, or it is not there now.
    pub fn create_on(
        &self,
        name: &str,
        access: &InitialAccess,
        volume: Option<&str>,
    ) -> Result<OpenDatabase> {
        names::validate(name)?;
        access.check()?;
        let context = self.volume_for_new(name, volume)?;
        let _catalog = self.shared.catalog.lock();
        self.check_free(name)?;
        let number = self.next_number()?;
        let header = Header::new(name, rand::random(), self.clock().now_ms());
        let mut batch = Batch::new();
        batch.put(Family::Meta, keys::NEXT_NUMBER, &(number + 1).to_be_bytes());
        if context.volume == FIRST_VOLUME {
            batch.put(Family::Meta, &keys::header(number), &header.encode());
            access.write(&mut batch, number);
            self.enter(&mut batch, name, number, &context);
            self.store().commit(batch)?;
        } else {
            self.store().commit(batch)?;
            let mut beside = Batch::new();
            beside.put(Family::Meta, &keys::header(number), &header.encode());
            access.write(&mut beside, number);
            beside.put(Family::Meta, &keys::dropped(number), &[]);
            context.store.commit(beside)?;
            let mut batch = Batch::new();
            self.enter(&mut batch, name, number, &context);
            self.store().commit(batch)?;
            unmark(&context, number);
        }
        self.note(DatabaseEventKind::Created, name);
        self.get(name)
    }

    /// What becomes of databases.
    #[must_use]
    pub fn events(&self) -> &DatabaseEvents {
        &self.shared.first.server.events
    }

    pub(crate) fn note(&self, kind: DatabaseEventKind, name: &str) {
        self.events().note(kind, name);
    }

    /// One of CouchDB's own databases, which is made when it is first asked for: closed to all but administrators of the
    /// server.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] for any other that is not there, and what the store reports.
    pub fn get_own(&self, name: &str) -> Result<OpenDatabase> {
        match self.get(name) {
            Err(DatabaseError::NotFound { .. }) if names::is_own(name) => {
                match self.create(name, &InitialAccess::Closed) {
                    Err(DatabaseError::Exists { .. }) => self.get(name),
                    made => made,
                }
            }
            found => found,
        }
    }

    /// Adds to a batch of the first store that the database called `name` lies there.
    #[allow(clippy::unused_self, reason = "the catalogue is this server's")]
    pub(crate) fn enter(&self, batch: &mut Batch, name: &str, number: u32, context: &StoreContext) {
        let entry = Entry { number, volume: context.volume.clone() };
        batch.put(Family::Meta, &keys::database_by_name(name), &entry.encode());
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

    /// Takes a number for a database that is brought into a store. It has a header, so that contents are kept for it, and
    /// no place in the catalogue; what is written under it is cleared away after a crash, or once the answer's second
    /// part is dropped.
    pub(crate) fn reserve_number(&self, context: &StoreContext, header: &Header) -> Result<(u32, Adopting)> {
        let _catalog = self.shared.catalog.lock();
        let number = self.next_number()?;
        self.shared.adopting.lock().insert(number);
        let adopting = Adopting { number, adopting: Arc::clone(&self.shared.adopting) };
        let mut batch = Batch::new();
        batch.put(Family::Meta, keys::NEXT_NUMBER, &(number + 1).to_be_bytes());
        self.store().commit(batch)?;
        let mut batch = Batch::new();
        batch.put(Family::Meta, &keys::header(number), &header.encode());
        batch.put(Family::Meta, &keys::dropped(number), &[]);
        context.store.commit(batch)?;
        Ok((number, adopting))
    }

    /// Makes a database that was brought in one of this server.
    pub(crate) fn give_name(&self, context: &StoreContext, number: u32, name: &str) -> Result<OpenDatabase> {
        let _catalog = self.shared.catalog.lock();
        self.check_free(name)?;
        let mut batch = Batch::new();
        self.enter(&mut batch, name, number, context);
        self.store().commit(batch)?;
        unmark(context, number);
        self.note(DatabaseEventKind::Created, name);
        self.get(name)
    }

    /// The database called `name`.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn get(&self, name: &str) -> Result<OpenDatabase> {
        let database = self.get_any(name)?;
        database.context.damage.check(database.number(), name)?;
        Ok(database)
    }

    /// Opens a database for somebody, whatever they may do there.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn open_for(&self, name: &str, identity: &Identity) -> Result<DatabaseSession> {
        DatabaseSession::open(self.get(name)?, identity)
    }

    /// Opens a database for somebody who reads and edits in it what is theirs ([`DatabaseSession::open_own`]).
    ///
    /// # Errors
    /// As [`Self::open_for`].
    pub fn open_own_for(&self, name: &str, identity: &Identity) -> Result<DatabaseSession> {
        Ok(DatabaseSession::open_own(self.get(name)?, identity))
    }

    fn get_any(&self, name: &str) -> Result<OpenDatabase> {
        self.shared.opened.get(name, || self.load(name))
    }

    fn load(&self, name: &str) -> Result<OpenDatabase> {
        let (number, context) = self.place_of(name)?;
        OpenDatabase::load(&context, number, &self.shared.views)
    }

    /// Drops a database: it is gone, durably, when this returns. What it held is removed by
    /// [`Databases::purge_dropped`].
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn delete(&self, name: &str) -> Result<()> {
        let _catalog = self.shared.catalog.lock();
        let database = self.get(name)?;
        database.check_not_held("it can be deleted")?;
        let mut batch = Batch::for_removing();
        let entry = keys::database_by_name(name);
        if database.volume() == FIRST_VOLUME {
            batch.delete(Family::Meta, &entry);
        } else {
            let mut mark = Batch::for_removing();
            mark.put(Family::Meta, &keys::dropped(database.number()), &[]);
            database.store().commit(mark)?;
            let mut dropped = Batch::for_removing();
            dropped.delete(Family::Meta, &entry);
            self.commit_place(dropped, &database)?;
        }
        batch.delete(Family::Meta, &keys::header(database.number()));
        keys::APART.iter().for_each(|key| batch.delete(Family::Meta, &key(database.number())));
        batch.put(Family::Meta, &keys::dropped(database.number()), &[]);
        database.drop_with(batch)?;
        self.shared.opened.remove(name);
        self.note(DatabaseEventKind::Deleted, name);
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
        let snapshot = self.shared.first.store.snapshot();
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
}

fn server_uuid(store: &Store) -> Result<String> {
    if let Some(uuid) = store.get(Family::Meta, keys::SERVER_UUID)? {
        return Ok(scrinium_contents::hex(&uuid));
    }
    let uuid: [u8; 16] = rand::random();
    let mut batch = Batch::new();
    batch.put(Family::Meta, keys::SERVER_UUID, &uuid);
    store.commit(batch)?;
    Ok(scrinium_contents::hex(&uuid))
}

pub(crate) fn number_of(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_be_bytes)
}
