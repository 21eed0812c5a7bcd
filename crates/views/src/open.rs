//! A database that is open, with what is derived from its documents.

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use scrinium_assertion::never;
use scrinium_database::context::StoreContext;
use scrinium_database::{Database, DatabaseObserver, Result};

use crate::context::ViewsContext;
use crate::follow::{Notices, UpdateQueue};
use crate::group::{Group, KnownIndexes};
use crate::lists::ListStorage;
use crate::registry::ViewIndex;
use crate::text::TextIndex;

/// A database that is open, with its views. Clones share it.
#[derive(Clone)]
pub struct OpenDatabase {
    database: Arc<Database>,
    pub(crate) views: Arc<Views>,
    pub(crate) server: Arc<ViewsContext>,
}

/// What a database keeps in memory of its views.
pub struct Views {
    /// Has the update task look at the database.
    pub(crate) notices: Notices,
    pub(crate) groups: Mutex<HashMap<String, (u64, Arc<Group>)>>,
    /// The Mango indexes of all design documents, and of which generation they are.
    pub(crate) mango: Mutex<Option<(u64, KnownIndexes)>>,
    pub(crate) indexes: Mutex<HashMap<[u8; 16], Arc<ViewIndex>>>,
    /// Indexes of words.
    pub(crate) texts: Mutex<HashMap<[u8; 16], Arc<TextIndex>>>,
    /// Where indexes have the documents' lists.
    pub(crate) homes: ListStorage,
    /// By the folder's number, with the columns that it had.
    pub(crate) folders: Mutex<HashMap<u32, (String, Arc<Group>)>>,
    /// Design documents whose views a reader wants brought up to date soon.
    pub(crate) wanted: Mutex<HashSet<String>>,
    /// Folders, in the same way.
    pub(crate) wanted_folders: Mutex<HashSet<String>>,
    /// Readers that wait for views to be brought up to date.
    pub(crate) waiting: Arc<AtomicUsize>,
    /// Design documents with views that follow by themselves, and of which generation that is known.
    pub(crate) followed: Mutex<Option<(u64, Arc<[String]>)>>,
    /// Those of the database where it is now, once it was moved to another volume.
    moved: OnceLock<Arc<Self>>,
}

impl OpenDatabase {
    /// Opens the database of this number.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`](scrinium_database::DatabaseError::NotFound), and what the store reports.
    pub fn load(context: &Arc<StoreContext>, number: u32, server: &Arc<ViewsContext>) -> Result<Self> {
        let views = Arc::new(Views::new(Arc::clone(&server.announced)));
        let observer = Arc::clone(&views) as Arc<dyn DatabaseObserver>;
        let database = Arc::new(Database::load(context, number, observer)?);
        views.notices.name(database.name());
        Ok(Self { database, views, server: Arc::clone(server) })
    }

    /// A database with its views, as they were taken apart before.
    #[must_use]
    pub const fn of(database: Arc<Database>, views: Arc<Views>, server: Arc<ViewsContext>) -> Self {
        Self { database, views, server }
    }

    /// The database.
    #[must_use]
    pub const fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// What is kept in memory of its views, as long as the database is.
    #[must_use]
    pub const fn views(&self) -> &Arc<Views> {
        &self.views
    }

    /// What the views of all databases of its server use.
    #[must_use]
    pub const fn server(&self) -> &Arc<ViewsContext> {
        &self.server
    }

    /// As [`Database::moved`].
    #[must_use]
    pub fn moved(&self) -> Option<Self> {
        let database = self.database.moved()?;
        let Some(views) = self.views.moved.get().map(Arc::clone) else {
            never!("the views of a database that was moved are known before it", "{}", self.name());
            return None;
        };
        Some(Self { database, views, server: Arc::clone(&self.server) })
    }

    /// Says where the views are from now on; before the database itself says so.
    pub fn move_to(&self, there: &Self) {
        if self.views.moved.set(Arc::clone(&there.views)).is_err() {
            never!("a database is moved once", "{}", self.name());
        }
    }
}

/// What is asked of the database itself.
impl Deref for OpenDatabase {
    type Target = Arc<Database>;

    fn deref(&self) -> &Arc<Database> {
        &self.database
    }
}

impl DatabaseObserver for Views {
    fn committed(&self, designs: u64) {
        self.notices.note_change(designs);
    }
}

impl Views {
    fn new(announced: Arc<UpdateQueue>) -> Self {
        Self {
            notices: Notices::new(announced),
            groups: Mutex::default(),
            mango: Mutex::default(),
            indexes: Mutex::default(),
            texts: Mutex::default(),
            homes: ListStorage::default(),
            folders: Mutex::default(),
            wanted: Mutex::default(),
            wanted_folders: Mutex::default(),
            waiting: Arc::default(),
            followed: Mutex::default(),
            moved: OnceLock::new(),
        }
    }

    /// Memory of the trees of its open indexes, in bytes, about.
    pub(crate) fn tree_bytes(&self) -> u64 {
        self.indexes.lock().values().map(|index| index.index.reserved_bytes()).sum()
    }

    /// When one of its open indexes was last read, in seconds since 1970.
    pub(crate) fn last_read_s(&self) -> i64 {
        self.indexes.lock().values().map(|index| index.usage.last_read_s()).max().unwrap_or_default()
    }
}
