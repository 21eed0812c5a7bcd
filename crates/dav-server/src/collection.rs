//! A folder that is a calendar or an address book, as its index has it: kept up to date, and stored into by one at a time.
//!
//! The [index](crate::index) is made from the folder and its documents when somebody first asks, and brought up to date from the
//! folder's feed before each answer. Names and UIDs are unique in a collection, although documents also come by replication and
//! other interfaces: of two with the same name the one that came later is shown under its document's id.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use scrinium_calendar::address::comparable;
use scrinium_calendar::index::{IndexParts, IndexWindow};
use scrinium_calendar::series::Series;
use scrinium_calendar::zone::{Instant, Zone};
use scrinium_database::folder::members::MAX_MEMBERS_AT_ONCE;
use scrinium_database::folder::record::MemberChangeKind;
use scrinium_database::{Access, Database, DatabaseError, Result};
use scrinium_dav::place::Area;
use scrinium_dav_wire::content::{Component, ContentLimits};
use scrinium_dav_wire::value::unescape_text;
use scrinium_store::Snapshot;
use serde_json::Value;

use crate::document::{NAME, extension, read, source, tag_of};
use crate::index::{Brings, ShelfIndex, forget_dropped};
pub(crate) use crate::index::{Contents, Member};
use crate::refusal::Refusal;
use crate::scheduling::schedule_tag;

/// Reads what is kept; what somebody may read is asked before they get it.
static FOLLOWER: Access = Access::of_the_server("following folders for calendar programs");

/// Collections that are known, together. Those that nobody uses just now are forgotten beyond that.
const KNOWN_MAX: usize = 10_000;

/// Addresses of one card that are looked at.
const CARD_ADDRESSES_MAX: usize = 100;

/// How long a request waits for another one that stores under the same name or UID.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The window moves when so much of its future has gone.
const WINDOW_STEP_S: i64 = 7 * 86_400;

/// After this number of changes of the database, of which the folder had no part, it is noted that they were looked at: what a folder has not
/// followed for long it cannot follow once tombstones are purged.
const NOTED_AFTER: u64 = 1_000;

/// What a collection knows of its owner and itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) area: Area,
    /// Of the folder: another one is another folder of the same number.
    pub(crate) uid_validity: u32,
    /// Addresses of the owner, as calendars compare them.
    pub(crate) addresses: Vec<String>,
    /// The zone of times that have none.
    pub(crate) floating: Zone,
    /// What defines it, where that is the calendar itself.
    pub(crate) zone_definition: Option<String>,
}

impl Owned {
    /// What tells it from others.
    fn digest(&self) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new();
        let mut add = |text: &str| {
            hasher.update(&(text.len() as u64).to_be_bytes());
            hasher.update(text.as_bytes());
        };
        add(extension(self.area));
        add(self.floating.name());
        add(self.zone_definition.as_deref().unwrap_or_default());
        self.addresses.iter().for_each(|address| add(address));
        hasher.update(&self.uid_validity.to_be_bytes());
        let mut digest = [0; 16];
        hasher.finalize_xof().fill(&mut digest);
        digest
    }
}

/// A collection, for one request.
pub(crate) struct Collection {
    shared: Arc<Shared>,
    pub(crate) folder: u32,
    pub(crate) owned: Owned,
}

/// What all requests for a collection have in common.
struct Shared {
    database: Arc<Database>,
    /// Held by who brings the index up to date.
    index: Mutex<()>,
    /// Names and UIDs under which something is being stored.
    reserved: Mutex<HashSet<String>>,
    freed: Condvar,
}

/// A name and a UID that nobody else stores under.
pub(crate) struct Reservation {
    shared: Arc<Shared>,
    keys: Vec<String>,
}

/// What has the name, and what the UID.
pub(crate) type NameAndObject = [Option<Arc<Member>>; 2];

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut reserved = self.shared.reserved.lock();
        for key in &self.keys {
            reserved.remove(key);
        }
        drop(reserved);
        self.shared.freed.notify_all();
    }
}

impl Collection {
    /// Waits until nobody stores under this name or UID, and keeps others from it. Gives what has the name and what the UID.
    pub(crate) fn reserve(
        &self,
        name: &str,
        object: Option<&str>,
    ) -> std::result::Result<(Reservation, NameAndObject), Refusal> {
        let keys: Vec<String> = [Some(format!("n{name}")), object.map(|object| format!("o{object}"))]
            .into_iter()
            .flatten()
            .collect();
        let mut reserved = self.shared.reserved.lock();
        while keys.iter().any(|key| reserved.contains(key)) {
            if self.shared.freed.wait_for(&mut reserved, WAIT_MAX).timed_out() {
                let reason = "Others are storing under this name or UID; try again.";
                return Err(Refusal::new(http::StatusCode::SERVICE_UNAVAILABLE, reason));
            }
        }
        reserved.extend(keys.iter().cloned());
        drop(reserved);
        // From here on it is given back by whatever ends the request.
        let reservation = Reservation { shared: Arc::clone(&self.shared), keys };
        let contents = self.contents()?;
        let same_object = object.map(|object| contents.with_object(object)).transpose()?;
        Ok((reservation, [contents.named(name)?, same_object.flatten()]))
    }

    /// The collection as it is now. Blocks.
    pub(crate) fn contents(&self) -> Result<Contents> {
        let database = &self.shared.database;
        let _alone = self.shared.index.lock();
        let Ok(_stays) = database.pin_location() else {
            let reason = "The database was just moved to another volume; try again.".to_owned();
            return Err(DatabaseError::Unavailable { reason });
        };
        database.check_there()?;
        // Seen before the snapshot is taken, so that the snapshot has at least these changes.
        let visible = database.visible_change_number();
        let window =
            IndexWindow::around(Instant(i64::try_from(database.now_ms() / 1000).unwrap_or(i64::MAX)));
        let snapshot = database.store().snapshot();
        let purged_to = database.compaction_record()?.purged_to;
        let place = (database.number(), self.folder);
        let stored = ShelfIndex::open(database.store(), place, self.owned.digest())?;
        // What was purged has not been told; and what has seen the future is of another past.
        let of_use = |index: &ShelfIndex<'_>| (purged_to..=visible).contains(&index.reached());
        let mut index = match stored.filter(of_use) {
            Some(index) => index,
            None => self.build(&snapshot, visible, window)?,
        };
        let (own, step) = (index.window(), WINDOW_STEP_S);
        if !(own.to - step..=own.to + step).contains(&window.to) {
            index.move_window(window, (&self.owned.addresses, &self.owned.floating))?;
        } else if !index.is_complete() {
            index.move_window(own, (&self.owned.addresses, &self.owned.floating))?;
        }
        self.follow(&mut index, &snapshot, visible)?;
        Ok(index.contents(snapshot))
    }

    fn build(&self, snapshot: &Snapshot, visible: u64, window: IndexWindow) -> Result<ShelfIndex<'_>> {
        let database = &self.shared.database;
        let place = (database.number(), self.folder);
        let mut index = ShelfIndex::begin(database.store(), place, self.owned.digest(), window)?;
        let mut last = 0;
        loop {
            let members = database.members_at(snapshot, self.folder, last, MAX_MEMBERS_AT_ONCE)?;
            for (uid, member) in &members {
                self.put(&mut index, *uid, &member.id, None)?;
                last = *uid;
            }
            if members.len() < MAX_MEMBERS_AT_ONCE {
                break;
            }
        }
        index.finish(visible)?;
        Ok(index)
    }

    fn follow(&self, index: &mut ShelfIndex<'_>, snapshot: &Snapshot, visible: u64) -> Result<()> {
        let database = &self.shared.database;
        loop {
            let since = index.reached();
            let changes = database.member_changes_at(snapshot, self.folder, since, MAX_MEMBERS_AT_ONCE)?;
            for change in &changes {
                // What is not visible yet may not be durable.
                if change.change_number > visible {
                    return Ok(());
                }
                let reached = Some(change.change_number);
                match change.kind {
                    MemberChangeKind::Left => index.remove(change.uid, reached)?,
                    // Of two changes the feed tells the last one: flags may hide another source.
                    _ => self.put(index, change.uid, &change.id, reached)?,
                }
            }
            if changes.len() < MAX_MEMBERS_AT_ONCE {
                break;
            }
        }
        if visible.saturating_sub(index.reached()) > NOTED_AFTER {
            index.reach(visible)?;
        }
        Ok(())
    }

    /// Takes in a document as it is now. One without a source is no resource.
    fn put(&self, index: &mut ShelfIndex<'_>, uid: u64, id: &str, reached: Option<u64>) -> Result<()> {
        let (database, area) = (&self.shared.database, self.owned.area);
        let Some((_, fields)) = read(database, id, &FOLLOWER)? else { return index.remove(uid, reached) };
        let Some(source) = source(database, id, area, &FOLLOWER)? else { return index.remove(uid, reached) };
        let own_name = || format!("{id}.{}", extension(area));
        let mut name = fields.get(NAME).and_then(Value::as_str).map_or_else(own_name, str::to_owned);
        if index.is_taken(&name, uid)? {
            name = own_name();
        }
        let mut member = Member {
            uid,
            id: id.to_owned(),
            name,
            object: id.to_owned(),
            tag: tag_of(&source),
            schedule_tag: None,
            bytes: source.len(),
            kind: None,
            is_private: false,
        };
        let mut brings = Brings::default();
        // What cannot be read is a resource all the same: its owner has put it there.
        if let Ok(component) = Component::parse(&source, ContentLimits::default()) {
            match area {
                Area::Calendars => brings.parts = self.note_series(&mut member, &component, index.window()),
                Area::Contacts => {
                    let uid = component.line("UID").map(|line| unescape_text(line.value()).trim().to_owned());
                    member.object = uid.filter(|uid| !uid.is_empty()).unwrap_or(member.object);
                    brings.addresses = addresses_in(&component);
                }
            }
        }
        index.put(&member, &brings, reached)
    }

    /// What a calendar says of its resource, and what it gives to the index.
    fn note_series(&self, member: &mut Member, calendar: &Component, window: IndexWindow) -> IndexParts {
        let Some(series) = Series::read_all(calendar, &self.owned.floating).into_iter().next() else {
            return IndexParts::default();
        };
        if !series.uid().is_empty() {
            series.uid().clone_into(&mut member.object);
        }
        member.kind = Some(series.kind());
        let is_private = |part: &Component| {
            part.line("CLASS").is_some_and(|class| !class.value().trim().eq_ignore_ascii_case("PUBLIC"))
        };
        member.schedule_tag = schedule_tag(calendar);
        member.is_private = calendar.components().any(is_private);
        IndexParts::of(calendar, &series, &self.owned.addresses, window)
    }
}

/// The addresses of a card, as calendars compare them.
fn addresses_in(card: &Component) -> Vec<String> {
    let lines = card.lines().filter(|line| line.name() == "EMAIL").take(CARD_ADDRESSES_MAX);
    let mut addresses: Vec<String> = lines.map(|line| comparable(&line.decoded_value())).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// Which collection: the database, by its identity, and the folder's number.
type CollectionKey = ([u8; 16], u32);

/// The collections that are in use. Requests for the same one share what keeps them apart.
#[derive(Default)]
pub(crate) struct Collections {
    known: Mutex<HashMap<CollectionKey, Arc<Shared>>>,
}

impl Collections {
    pub(crate) fn of(&self, database: &Arc<Database>, folder: u32, owned: Owned) -> Collection {
        let mut known = self.known.lock();
        let key = (database.uuid(), folder);
        // One that was moved to another volume is another database.
        let there = known.get(&key).filter(|shared| Arc::ptr_eq(&shared.database, database)).map(Arc::clone);
        let mut is_first = false;
        let shared = there.unwrap_or_else(|| {
            if known.len() >= KNOWN_MAX {
                known.retain(|_, shared| Arc::strong_count(shared) > 1);
            }
            is_first = !known.keys().any(|(uuid, _)| *uuid == database.uuid());
            let shared = Arc::new(Shared {
                database: Arc::clone(database),
                index: Mutex::default(),
                reserved: Mutex::default(),
                freed: Condvar::new(),
            });
            known.insert(key, Arc::clone(&shared));
            shared
        });
        drop(known);
        if is_first {
            forget_what_is_left(database);
        }
        Collection { shared, folder, owned }
    }
}

/// Folders are also dropped by who knows nothing of calendars.
fn forget_what_is_left(database: &Database) {
    if let Err(error) = forget_dropped(database) {
        tracing::warn!(database = database.name(), %error, "indexes of calendars that are gone could not be removed");
    }
}
