//! Databases over several stores: the first one, and further ones on other devices, the *volumes*.
//!
//! The catalogue in the first store tells which database lies where, and it alone counts. What a volume has under a
//! number that the catalogue does not name there is no database. Anyone who makes, drops or moves one therefore first puts a
//! mark next to what may come to be, or has been, nobody's (`dropped`), then changes the catalogue, and then removes the
//! mark; whatever ends the work in between, [`Databases::purge_dropped`] looks at the marks and asks the catalogue.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use parking_lot::MutexGuard;
use scrinium_database::context::StoreContext;
use scrinium_database::header::Header;
use scrinium_database::{Database, DatabaseError, Result, keys};
use scrinium_store::{Batch, Direction, Family, KeyRange, RESTORED_VOLUME, Store, StoreError};

use crate::databases::Databases;

/// The name of the first store among the volumes.
pub const FIRST_VOLUME: &str = "main";

/// What the catalogue says of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub number: u32,
    /// The name of the volume where it is.
    pub volume: String,
}

impl Entry {
    /// The number alone for the first store, else the volume's name behind it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let name = if self.volume == FIRST_VOLUME { "" } else { &self.volume };
        [&self.number.to_be_bytes()[..], name.as_bytes()].concat()
    }

    /// `None`: damaged.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (number, volume) = value.split_first_chunk()?;
        let volume = std::str::from_utf8(volume).ok()?;
        let volume = if volume.is_empty() { FIRST_VOLUME } else { volume };
        Some(Self { number: u32::from_be_bytes(*number), volume: volume.to_owned() })
    }
}

/// A further store.
pub(crate) enum Volume {
    Open(Arc<StoreContext>),
    /// Why it cannot be used.
    Missing(String),
}

/// A volume as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeInfo {
    /// Its name.
    pub name: String,
    /// Its folder; `None` if it is not open.
    pub dir: Option<PathBuf>,
    /// Why it cannot be used, if so.
    pub missing: Option<String>,
    /// How many databases the catalogue has there.
    pub databases: usize,
}

/// Where new databases go, and which ones stay in the first store.
pub trait Placement: Send + Sync + 'static {
    /// The volume for a new database of this name; `None` is the first store.
    fn volume_of_new(&self, name: &str) -> Option<String>;

    /// Whether the database lies in the first store, whatever anybody wishes.
    fn stays_first(&self, name: &str) -> bool;
}

/// Keeps databases from being made, dropped and moved until it is dropped.
pub struct StillCatalog<'a>(#[expect(dead_code, reason = "held, and never looked at")] MutexGuard<'a, ()>);

impl Databases {
    /// Says where new databases go. Only the first call counts.
    pub fn set_placement(&self, placement: Arc<dyn Placement>) {
        if self.shared().placement.set(placement).is_err() {
            tracing::warn!("placement is already set; ignoring the second call");
        }
    }

    /// The identity of the store that was last attached under this name, if any was.
    ///
    /// # Errors
    /// What the first store reports.
    pub fn known_volume(&self, name: &str) -> Result<Option<String>> {
        let stored = self.store().get(Family::Meta, &keys::volume(name))?;
        Ok(stored.map(|identity| String::from_utf8_lossy(&identity).into_owned()))
    }

    /// Adds a volume, or notes why there is none: then its databases are refused by name, and all others are served.
    /// A store that belongs to another server or volume is not touched, and noted as missing.
    ///
    /// # Errors
    /// What the first store reports.
    pub fn attach(&self, name: &str, store: std::result::Result<Store, String>) -> Result<()> {
        let attached = match store {
            Ok(store) => self.claim(name, &store).and_then(|()| self.beside(name, store)),
            Err(reason) => Err(DatabaseError::Unavailable { reason }),
        };
        let volume = match attached {
            Ok(context) => Volume::Open(Arc::new(context)),
            Err(error) => {
                tracing::error!(volume = name, %error, "the volume is not served");
                Volume::Missing(error.to_string())
            }
        };
        self.shared().volumes.write().insert(name.to_owned(), volume);
        Ok(())
    }

    /// What the databases of a further store use.
    fn beside(&self, name: &str, store: Store) -> Result<StoreContext> {
        let first = self.first();
        let context = StoreContext::open(name, store, Arc::clone(&first.server))?;
        context.contents.places().follow(first.contents.places());
        Ok(context)
    }

    /// Makes sure that a store is this volume of this server, and that both sides know.
    fn claim(&self, name: &str, store: &Store) -> Result<()> {
        let refused = |reason: String| Err(DatabaseError::Unavailable { reason });
        let identity = store.admin().identity()?;
        let dir = store.dir().display();
        let known = self.known_volume(name)?;
        if known.as_ref().is_some_and(|known| *known != identity) {
            return refused(format!(
                "{dir} holds another store than the one that is known as the volume {name}: name the right folder, or \
                 bring its device back"
            ));
        }
        let ours = self.store().get(Family::Meta, keys::SERVER_UUID)?;
        let theirs = store.get(Family::Meta, keys::SERVER_UUID)?;
        let called = store.get(Family::Meta, keys::OWN_VOLUME)?;
        if theirs.is_some() && (theirs.as_deref() != ours.as_deref() || called.is_none()) {
            return refused(format!("{dir} holds the store of another server; name an empty folder"));
        }
        if let Some(called) = &called
            && called.as_ref() != name.as_bytes()
        {
            let called = String::from_utf8_lossy(called);
            return refused(format!(
                "{dir} holds the volume {called}, not {name}; name it so in the configuration"
            ));
        }
        // The first store begins another log when it is restored: a volume that was not restored with it is of another
        // past than it is.
        let restored = store.dir().join(RESTORED_VOLUME);
        let paired = store.get(Family::Meta, keys::PAIRED)?;
        let log_key = self.store().admin().log_key()?.to_be_bytes();
        let is_paired = paired.as_deref() == Some(&log_key[..]);
        if paired.is_some() && !is_paired && !restored.exists() {
            return refused(format!(
                "{dir} was used with another log of the first store, so that one of the two was restored without the \
                 other: restore both (the volume then lies in volumes/{name} of the data folder). If they do belong \
                 together, as after `scrinium log salvage`, make an empty file {}",
                restored.display()
            ));
        }
        if called.is_none() || !is_paired {
            let mut batch = Batch::new();
            batch.put(Family::Meta, keys::SERVER_UUID, ours.as_deref().unwrap_or_default());
            batch.put(Family::Meta, keys::OWN_VOLUME, name.as_bytes());
            batch.put(Family::Meta, keys::PAIRED, &log_key);
            store.commit(batch)?;
        }
        if let Err(error) = std::fs::remove_file(&restored)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return refused(format!("cannot remove {}: {error}", restored.display()));
        }
        if known.is_none() {
            let mut batch = Batch::new();
            batch.put(Family::Meta, &keys::volume(name), identity.as_bytes());
            self.store().commit(batch)?;
        }
        Ok(())
    }

    /// The stores that are open, each with the name of its volume, the first one first.
    #[must_use]
    pub fn stores(&self) -> Vec<(String, Store)> {
        self.contexts().into_iter().map(|context| (context.volume.clone(), context.store.clone())).collect()
    }

    /// Whether changes are taken now in all stores.
    ///
    /// # Errors
    /// Why one takes none: its disk is full, or its log failed.
    pub fn check_writable(&self) -> Result<()> {
        self.contexts().into_iter().try_for_each(|context| Ok(context.store.check_writable()?))
    }

    /// What the databases of each store that is open use, the first one first.
    #[must_use]
    pub fn contexts(&self) -> Vec<Arc<StoreContext>> {
        let volumes = self.shared().volumes.read();
        let open = volumes.values().filter_map(|volume| match volume {
            Volume::Open(context) => Some(Arc::clone(context)),
            Volume::Missing(_) => None,
        });
        std::iter::once(Arc::clone(self.first())).chain(open).collect()
    }

    /// What the databases of the volume of this name use.
    ///
    /// # Errors
    /// There is no such volume, or it cannot be used now.
    pub fn context_of(&self, volume: &str) -> Result<Arc<StoreContext>> {
        if volume == FIRST_VOLUME {
            return Ok(Arc::clone(self.first()));
        }
        match self.shared().volumes.read().get(volume) {
            Some(Volume::Open(context)) => Ok(Arc::clone(context)),
            Some(Volume::Missing(reason)) => Err(DatabaseError::Unavailable {
                reason: format!(
                    "The volume `{volume}` is not there: {reason}. See docs/operate/volumes.md for how to recover."
                ),
            }),
            None => {
                let known: Vec<String> = self.volumes()?.into_iter().map(|volume| volume.name).collect();
                Err(DatabaseError::bad_request(format!(
                    "There is no volume `{volume}`; there is: {}. The configuration names volumes, [volume.NAME].",
                    known.join(", ")
                )))
            }
        }
    }

    /// All volumes, the first store included.
    ///
    /// # Errors
    /// What the first store reports.
    pub fn volumes(&self) -> Result<Vec<VolumeInfo>> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        self.each_entry(|_, entry| *counts.entry(entry.volume).or_default() += 1)?;
        let mut count = |name: &str| counts.remove(name).unwrap_or(0);
        let first = VolumeInfo {
            name: FIRST_VOLUME.to_owned(),
            dir: Some(self.store().dir().to_owned()),
            missing: None,
            databases: count(FIRST_VOLUME),
        };
        let mut all = vec![first];
        for (name, volume) in self.shared().volumes.read().iter() {
            let (dir, missing) = match volume {
                Volume::Open(context) => (Some(context.store.dir().to_owned()), None),
                Volume::Missing(reason) => (None, Some(reason.clone())),
            };
            all.push(VolumeInfo { name: name.clone(), dir, missing, databases: count(name) });
        }
        // Databases of volumes that the configuration does not name any more.
        let unnamed = |(name, databases)| VolumeInfo {
            name,
            dir: None,
            missing: Some("the configuration does not name it".to_owned()),
            databases,
        };
        all.extend(counts.into_iter().map(unnamed));
        Ok(all)
    }

    /// Calls `take` with each database's name and place, in the order of the names.
    pub(crate) fn each_entry(&self, mut take: impl FnMut(&str, Entry)) -> Result<()> {
        let from = keys::database_by_name("");
        let to = keys::successor(&from);
        let snapshot = self.store().snapshot();
        let mut cursor = snapshot.cursor(Family::Meta, KeyRange::new(&from, &to), Direction::Forward);
        while let Some((key, value)) = cursor.next()? {
            if let (Some(name), Some(entry)) = (keys::name_of(key), Entry::decode(value)) {
                take(name, entry);
            }
        }
        Ok(())
    }

    /// Where the database called `name` lies.
    pub(crate) fn entry(&self, name: &str) -> Result<Entry> {
        let stored = self.store().get(Family::Meta, &keys::database_by_name(name))?;
        let stored = stored.ok_or_else(DatabaseError::no_database)?;
        Entry::decode(&stored).ok_or_else(|| DatabaseError::damaged("place", name))
    }

    /// The number of a database, and the store that it lies in.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and [`DatabaseError::Unavailable`] if its volume is not there.
    pub fn place_of(&self, name: &str) -> Result<(u32, Arc<StoreContext>)> {
        let Entry { number, volume } = self.entry(name)?;
        let context = self.context_of(&volume).map_err(|error| match error {
            DatabaseError::Unavailable { reason } | DatabaseError::Invalid { reason, .. } => {
                DatabaseError::Unavailable {
                    reason: format!("The database `{name}` cannot be opened. {reason}"),
                }
            }
            other => other,
        })?;
        Ok((number, context))
    }

    /// The volume that a new database of this name goes to.
    pub(crate) fn volume_for_new(&self, name: &str, wished: Option<&str>) -> Result<Arc<StoreContext>> {
        let placement = self.shared().placement.get();
        if placement.is_some_and(|placement| placement.stays_first(name)) {
            return match wished {
                None | Some(FIRST_VOLUME) => Ok(Arc::clone(self.first())),
                Some(_) => Err(stays_first(name)),
            };
        }
        let placed = placement.and_then(|placement| placement.volume_of_new(name));
        self.context_of(wished.or(placed.as_deref()).unwrap_or(FIRST_VOLUME))
    }

    /// Changes where the catalogue has a database, or whether. If it fails, nobody knows before the next start what the
    /// catalogue says, and another store would still take writes: the database takes none any more.
    pub(crate) fn commit_place(&self, batch: Batch, database: &Database) -> Result<()> {
        let done = self.store().commit(batch);
        if let Err(error) = &done
            && !matches!(error, StoreError::Full)
        {
            database.leave();
        }
        Ok(done?)
    }

    /// Keeps the catalogue as it is while stores are copied: what they hold then belongs together.
    #[must_use]
    pub fn still_catalog(&self) -> StillCatalog<'_> {
        StillCatalog(self.shared().catalog.lock())
    }

    /// Whether the catalogue has the database of this number there.
    pub(crate) fn is_entered(&self, context: &StoreContext, number: u32) -> Result<bool> {
        let Some(stored) = context.store.get(Family::Meta, &keys::header(number))? else { return Ok(false) };
        if let Some(header) = Header::decode(&stored) {
            return match self.entry(&header.name) {
                Ok(entry) => Ok(entry.number == number && entry.volume == context.volume),
                Err(DatabaseError::NotFound { .. }) => Ok(false),
                Err(error) => Err(error),
            };
        }
        let mut found = false;
        self.each_entry(|_, entry| found |= entry.number == number && entry.volume == context.volume)?;
        Ok(found)
    }

    /// Keeps what a database has left from being cleared away as long as somebody reads it.
    pub(crate) fn leave_to_readers(&self, former: &Arc<Database>) {
        let mut left = self.shared().left.lock();
        left.retain(|_, database| database.strong_count() > 0);
        left.insert(former.number(), Arc::downgrade(former));
    }

    pub(crate) fn is_read(&self, number: u32) -> bool {
        self.shared().left.lock().get(&number).is_some_and(|database| Weak::strong_count(database) > 0)
    }
}

pub(crate) fn stays_first(name: &str) -> DatabaseError {
    DatabaseError::Forbidden {
        reason: format!(
            "The server's own database `{name}` is on the volume `{FIRST_VOLUME}`, and stays there."
        ),
    }
}
