//! Where contents lie that are objects: the stores of objects that were ever named, and what is set of them.
//!
//! A place is an address and a *home* there, a number that is made for one store with its log. A store that was
//! restored from a backup has another log, and so begins a home of its own: it reads what lies in the ones before, and
//! removes nothing there that another may still need.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use scrinium_assertion::never;
use scrinium_objects::{MAX_BYTES, ObjectName, Objects, Stored, open_bucket};
use scrinium_store::{Batch, Direction, Family, KeyRange, Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::contents::PIECE_BYTES;
use crate::error::{ContentError, Result};
use crate::keys::{self, Digest};
use crate::record::ObjectPlace;

/// Where large contents are put from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachmentOptions {
    /// The store of objects, `s3://BUCKET/PREFIX` or `file:///FOLDER`; `None`: with the documents.
    pub store: Option<String>,
    /// Contents of this many bytes go there. Up to 256 KB they never do, and beyond 32 GB neither.
    pub threshold_bytes: u64,
    /// What was read of objects is kept on this machine up to this many bytes.
    pub cache_bytes: u64,
    /// Objects that no document refers to any more are removed after so long.
    pub keep_removed: Duration,
}

impl Default for AttachmentOptions {
    fn default() -> Self {
        Self {
            store: None,
            threshold_bytes: 1 << 20,
            cache_bytes: 0,
            keep_removed: Duration::from_secs(7 * 24 * 3600),
        }
    }
}

/// A store of objects, and whose part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketPart {
    /// Where it is: `s3://BUCKET/PREFIX` or `file:///FOLDER`.
    pub address: String,
    /// The number of the part, 16 hexadecimal digits.
    home: String,
    /// The log of the store that may remove objects there, 16 hexadecimal digits.
    log: String,
}

impl BucketPart {
    /// The number of the part.
    #[must_use]
    pub fn home(&self) -> u64 {
        u64::from_str_radix(&self.home, 16).unwrap_or_else(|_| {
            never!("a place that is known has the number of its part", "{}", self.address);
            0
        })
    }

    fn is_whole(&self) -> bool {
        u64::from_str_radix(&self.home, 16).is_ok()
    }
}

/// What is set, and the places that are known.
pub struct Places {
    store: Store,
    objects: RwLock<Objects>,
    options: RwLock<AttachmentOptions>,
    known: RwLock<BTreeMap<u32, BucketPart>>,
    /// The place that contents are put to.
    current: RwLock<Option<(u32, BucketPart)>>,
    defining: Mutex<()>,
    pub(crate) totals: Totals,
}

/// How many objects contents are, and their bytes; nothing before they were counted once.
#[derive(Default)]
pub(crate) struct Totals {
    objects: AtomicI64,
    bytes: AtomicI64,
}

impl Totals {
    pub(crate) fn add(&self, objects: i64, stored_bytes: u64) {
        self.objects.fetch_add(objects, Ordering::Relaxed);
        let bytes = i64::try_from(stored_bytes).unwrap_or(i64::MAX).saturating_mul(objects.signum());
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, objects: u64, bytes: u64) {
        self.objects.store(i64::try_from(objects).unwrap_or(i64::MAX), Ordering::Relaxed);
        self.bytes.store(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> (u64, u64) {
        let read = |number: &AtomicI64| u64::try_from(number.load(Ordering::Relaxed)).unwrap_or_default();
        (read(&self.objects), read(&self.bytes))
    }
}

impl Places {
    pub(crate) fn open(store: &Store) -> Result<Self> {
        let (from, to) = keys::OBJECT_PLACE_RANGE;
        let snapshot = store.snapshot();
        let mut cursor = snapshot.cursor(Family::Meta, KeyRange { from, to: Some(to) }, Direction::Forward);
        let mut known = BTreeMap::new();
        while let Some((key, value)) = cursor.next()? {
            let number = key.get(1..5).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
            match (number, serde_json::from_slice(value)) {
                (Some(number), Ok(place)) if BucketPart::is_whole(&place) => {
                    known.insert(number, place);
                }
                _ => tracing::error!(
                    "the record of where attachments lie is damaged; see docs/operate/fixup.md for how to recover"
                ),
            }
        }
        let dir = store.dir().join("attachments");
        Ok(Self {
            store: store.clone(),
            objects: RwLock::new(Objects::with_clock(&dir, Arc::new(open_bucket), store.clock())),
            options: RwLock::default(),
            known: RwLock::new(known),
            current: RwLock::default(),
            defining: Mutex::default(),
            totals: Totals::default(),
        })
    }

    /// What stores of objects are used by.
    #[must_use]
    pub fn objects(&self) -> Objects {
        self.objects.read().clone()
    }

    /// Has stores of objects used by `objects` from now on.
    pub fn set_objects(&self, objects: Objects) {
        *self.objects.write() = objects;
    }

    /// Does as the first store's places do. Where this store takes no write now, large contents stay in it.
    pub fn follow(&self, first: &Self) {
        self.set_objects(first.objects());
        if let Err(error) = self.set_options(first.options()) {
            tracing::error!(dir = %self.store.dir().display(), %error, "large attachments stay on this volume");
        }
    }

    /// What is set.
    #[must_use]
    pub fn options(&self) -> AttachmentOptions {
        self.options.read().clone()
    }

    /// Puts contents elsewhere from now on.
    ///
    /// # Errors
    /// [`ContentError::Address`] if the address is wrong, and what the store reports.
    pub fn set_options(&self, options: AttachmentOptions) -> Result<()> {
        let current = options.store.as_deref().map(|address| self.define(address)).transpose()?;
        self.keep_bookmark_under(&options)?;
        self.objects().set_cache_bytes(options.cache_bytes);
        *self.current.write() = current;
        *self.options.write() = options;
        Ok(())
    }

    /// The place of this store at an address, which is made where there is none.
    ///
    /// # Errors
    /// [`ContentError::Address`] if the address is wrong, and what the store reports.
    pub fn define(&self, address: &str) -> Result<(u32, BucketPart)> {
        scrinium_objects::check_address(address).map_err(|reason| ContentError::Address { reason })?;
        let address = address.trim_end_matches('/').to_owned();
        let _alone = self.defining.lock();
        let log = self.log()?;
        let mut known = self.known.write();
        if let Some((number, place)) =
            known.iter().rev().find(|(_, place)| place.address == address && place.log == log)
        {
            return Ok((*number, place.clone()));
        }
        let number = known.last_key_value().map_or(1, |(number, _)| number.saturating_add(1));
        let place = BucketPart { address, home: format!("{:016x}", rand::random::<u64>()), log };
        let mut batch = Batch::new();
        let json = serde_json::to_vec(&place)
            .map_err(|error| StoreError::from(never!("a place can be written as JSON", "{error}")))?;
        batch.put(Family::Meta, &keys::object_place(number), &json);
        self.store.commit(batch)?;
        known.insert(number, place.clone());
        Ok((number, place))
    }

    pub(crate) const fn store(&self) -> &Store {
        &self.store
    }

    fn log(&self) -> Result<String> {
        Ok(format!("{:016x}", self.store.admin().log_key()?))
    }

    /// Whether contents of this length are put to a store of objects, and to which.
    pub(crate) fn place_for(&self, length: u64) -> Option<(u32, BucketPart)> {
        let at_least = self.options.read().threshold_bytes.max(PIECE_BYTES as u64 + 1);
        self.current.read().clone().filter(|_| (at_least..=MAX_BYTES).contains(&length))
    }

    /// Whether contents are put to a store of objects at all.
    pub(crate) fn has_store(&self) -> bool {
        self.current.read().is_some()
    }

    /// The place of this number, if it is known.
    #[must_use]
    pub fn place(&self, number: u32) -> Option<BucketPart> {
        self.known.read().get(&number).cloned()
    }

    /// Whether objects of this place are this store's to remove.
    #[must_use]
    pub fn is_own(&self, number: u32) -> bool {
        let log = self.log().ok();
        self.place(number).is_some_and(|place| Some(place.log) == log)
    }

    /// The address and the name of an object.
    ///
    /// # Errors
    /// [`ContentError::Damaged`] if its place is not known.
    pub fn locate(&self, digest: &Digest, length: u64, object: &ObjectPlace) -> Result<(String, Stored)> {
        let place = self.place(object.place);
        let place =
            place.ok_or_else(|| ContentError::damaged("place of objects", object.place.to_string()))?;
        let name = ObjectName { home: place.home(), digest: *digest, upload: object.upload };
        Ok((place.address, Stored { name, length, stored_bytes: object.stored_bytes }))
    }
}
