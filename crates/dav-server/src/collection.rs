//! What a folder has under which name, and when it takes place: kept in memory for collections that are in use.
//!
//! It is derived: made from the folder and its documents when somebody first asks, and brought up to date from the folder's
//! feed. Names and UIDs are unique in a collection, although documents also come by replication and other interfaces: of two
//! with the same name the one that came later is shown under its document's id.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use scrinium_calendar::address::comparable;
use scrinium_calendar::event::ComponentKind;
use scrinium_calendar::series::Series;
use scrinium_calendar::zone::{Instant, Zone};
use scrinium_database::folder::members::MAX_MEMBERS_AT_ONCE;
use scrinium_database::folder::record::MemberChangeKind;
use scrinium_database::{Access, Database, Result};
use scrinium_dav::place::Area;
use scrinium_dav_wire::content::{Component, ContentLimits};
use scrinium_dav_wire::value::unescape_text;
use scrinium_store::Snapshot;
use serde_json::Value;

use crate::document::{NAME, extension, read, source, tag_of};
use crate::occurrences::Occurrences;
use crate::refusal::Refusal;
use crate::scheduling::schedule_tag;

/// Reads what is kept; what somebody may read is asked before they get it.
static FOLLOWER: Access = Access::of_the_server("following folders for calendar programs");

/// Members of all collections that are kept, together. One more collection is kept if nothing else is.
const KEPT_MEMBERS_MAX: usize = 1_000_000;

/// Addresses of one card that are looked at.
const CARD_ADDRESSES_MAX: usize = 100;

/// How long a request waits for another one that stores under the same name or UID.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// What a folder has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its number in the folder.
    pub(crate) uid: u64,
    /// The document's id.
    pub(crate) id: String,
    /// Its name in the collection.
    pub(crate) name: String,
    /// The UID of what it holds; the document's id where that has none.
    pub(crate) object: String,
    pub(crate) tag: String,
    /// Of a meeting (RFC 6638, section 3.2.10).
    pub(crate) schedule_tag: Option<String>,
    pub(crate) bytes: usize,
    /// `None`: a card, or what cannot be read.
    pub(crate) kind: Option<ComponentKind>,
    /// Nobody but the owner sees it.
    pub(crate) is_private: bool,
}

/// A collection as it stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The feed was followed up to this change.
    pub(crate) reached: u64,
    pub(crate) members: BTreeMap<u64, Arc<Member>>,
    names: HashMap<String, u64>,
    objects: HashMap<String, u64>,
    /// Addresses of cards, as calendars compare them, and how many cards have each.
    addresses: HashMap<String, usize>,
    cards: HashMap<u64, Vec<String>>,
    pub(crate) occurrences: Occurrences,
}

impl Contents {
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Member>> {
        self.members.get(self.names.get(name)?)
    }

    pub(crate) fn with_object(&self, object: &str) -> Option<&Arc<Member>> {
        self.members.get(self.objects.get(object)?)
    }

    /// Whether a card has this address.
    pub(crate) fn has_address(&self, address: &str) -> bool {
        self.addresses.contains_key(address)
    }

    fn note_card(&mut self, uid: u64, card: &Component) {
        let lines = card.lines().filter(|line| line.name() == "EMAIL").take(CARD_ADDRESSES_MAX);
        let mut addresses: Vec<String> = lines.map(|line| comparable(&line.decoded_value())).collect();
        addresses.sort_unstable();
        addresses.dedup();
        for address in &addresses {
            *self.addresses.entry(address.clone()).or_default() += 1;
        }
        self.cards.insert(uid, addresses);
    }

    fn remove(&mut self, uid: u64) {
        let Some(member) = self.members.remove(&uid) else { return };
        self.occurrences.remove(uid);
        for address in self.cards.remove(&uid).unwrap_or_default() {
            if let Some(count) = self.addresses.get_mut(&address) {
                *count -= 1;
                if *count == 0 {
                    self.addresses.remove(&address);
                }
            }
        }
        for (map, key) in [(&mut self.names, &member.name), (&mut self.objects, &member.object)] {
            if map.get(key) == Some(&uid) {
                map.remove(key);
            }
        }
    }
}

/// What a collection knows of its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) area: Area,
    /// Addresses of the owner, as calendars compare them.
    pub(crate) addresses: Vec<String>,
    /// The zone of times that have none.
    pub(crate) floating: Zone,
}

/// A collection that is in use.
pub(crate) struct Collection {
    database: Arc<Database>,
    pub(crate) folder: u32,
    pub(crate) owned: Owned,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Default)]
struct State {
    contents: Option<Contents>,
    /// Names and UIDs under which something is being stored.
    reserved: HashSet<String>,
}

/// A name and a UID that nobody else stores under.
pub(crate) struct Reservation {
    collection: Arc<Collection>,
    keys: Vec<String>,
}

/// What has the name, and what the UID.
pub(crate) type NameAndObject = [Option<Arc<Member>>; 2];

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.collection.state.lock();
        for key in &self.keys {
            state.reserved.remove(key);
        }
        drop(state);
        self.collection.freed.notify_all();
    }
}

impl Collection {
    fn new(database: Arc<Database>, folder: u32, owned: Owned) -> Self {
        Self { database, folder, owned, state: Mutex::default(), freed: Condvar::new() }
    }

    /// Looks at the collection as it is now. Blocks; nothing else may be waited for in `look`.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&Contents) -> T) -> Result<T> {
        let mut state = self.state.lock();
        self.bring_up_to_date(&mut state).map(look)
    }

    /// Waits until nobody stores under this name or UID, and keeps others from it. Gives what has the name and what the UID.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        name: &str,
        object: Option<&str>,
    ) -> std::result::Result<(Reservation, NameAndObject), Refusal> {
        let keys: Vec<String> = [Some(format!("n{name}")), object.map(|object| format!("o{object}"))]
            .into_iter()
            .flatten()
            .collect();
        let mut state = self.state.lock();
        while keys.iter().any(|key| state.reserved.contains(key)) {
            if self.freed.wait_for(&mut state, WAIT_MAX).timed_out() {
                let reason = "Others are storing under this name or UID; try again.";
                return Err(Refusal::new(http::StatusCode::SERVICE_UNAVAILABLE, reason));
            }
        }
        let contents = self.bring_up_to_date(&mut state)?;
        let same_object = object.and_then(|object| contents.with_object(object));
        let found = [contents.named(name).cloned(), same_object.cloned()];
        state.reserved.extend(keys.iter().cloned());
        Ok((Reservation { collection: Arc::clone(self), keys }, found))
    }

    fn bring_up_to_date<'s>(&self, state: &'s mut MutexGuard<'_, State>) -> Result<&'s Contents> {
        // Seen before the snapshot is taken, so that the snapshot has at least these changes.
        let visible = self.database.visible_change_number();
        let now = Instant(i64::try_from(self.database.now_ms() / 1000).unwrap_or(i64::MAX));
        let snapshot = self.database.store().snapshot();
        let purged_to = self.database.compaction_record()?.purged_to;
        let before = state.contents.take().filter(|contents| {
            (contents.reached >= purged_to || contents.reached == visible)
                && !contents.occurrences.is_old(now)
        });
        let contents = match before {
            Some(contents) if contents.reached == visible => contents,
            Some(contents) => self.follow(contents, &snapshot, visible)?,
            None => self.build(&snapshot, visible, now)?,
        };
        Ok(state.contents.insert(contents))
    }

    fn build(&self, snapshot: &Snapshot, visible: u64, now: Instant) -> Result<Contents> {
        let mut contents = Contents {
            reached: visible,
            members: BTreeMap::new(),
            names: HashMap::new(),
            objects: HashMap::new(),
            addresses: HashMap::new(),
            cards: HashMap::new(),
            occurrences: Occurrences::new(now),
        };
        let mut last = 0;
        loop {
            let members = self.database.members_at(snapshot, self.folder, last, MAX_MEMBERS_AT_ONCE)?;
            for (uid, member) in &members {
                self.put(&mut contents, *uid, &member.id)?;
                last = *uid;
            }
            if members.len() < MAX_MEMBERS_AT_ONCE {
                return Ok(contents);
            }
        }
    }

    fn follow(&self, mut contents: Contents, snapshot: &Snapshot, visible: u64) -> Result<Contents> {
        let mut since = contents.reached;
        loop {
            let changes =
                self.database.member_changes_at(snapshot, self.folder, since, MAX_MEMBERS_AT_ONCE)?;
            for change in &changes {
                since = change.change_number;
                match change.kind {
                    MemberChangeKind::Left => contents.remove(change.uid),
                    MemberChangeKind::Flags if contents.members.contains_key(&change.uid) => {}
                    _ => self.put(&mut contents, change.uid, &change.id)?,
                }
            }
            if changes.len() < MAX_MEMBERS_AT_ONCE {
                break;
            }
        }
        contents.reached = visible.max(contents.reached);
        Ok(contents)
    }

    /// Takes in a document as it is now. One without a source is no resource.
    fn put(&self, contents: &mut Contents, uid: u64, id: &str) -> Result<()> {
        contents.remove(uid);
        let area = self.owned.area;
        let Some((_, fields)) = read(&self.database, id, &FOLLOWER)? else { return Ok(()) };
        let Some(source) = source(&self.database, id, area, &FOLLOWER)? else { return Ok(()) };
        let own_name = || format!("{id}.{}", extension(area));
        let named = fields.get(NAME).and_then(Value::as_str).map(str::to_owned);
        let mut name = named.unwrap_or_else(own_name);
        if contents.names.contains_key(&name) {
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
        // What cannot be read is a resource all the same: its owner has put it there.
        if let Ok(component) = Component::parse(&source, ContentLimits::default()) {
            match area {
                Area::Calendars => self.note_series(&mut member, &component, &mut contents.occurrences),
                Area::Contacts => {
                    let uid = component.line("UID").map(|line| unescape_text(line.value()).trim().to_owned());
                    member.object = uid.filter(|uid| !uid.is_empty()).unwrap_or(member.object);
                    contents.note_card(member.uid, &component);
                }
            }
        }
        contents.names.insert(member.name.clone(), uid);
        contents.objects.entry(member.object.clone()).or_insert(uid);
        contents.members.insert(uid, Arc::new(member));
        Ok(())
    }

    fn note_series(&self, member: &mut Member, calendar: &Component, occurrences: &mut Occurrences) {
        let Some(series) = Series::read_all(calendar, &self.owned.floating).into_iter().next() else {
            return;
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
        occurrences.put(member.uid, (calendar, &series), &self.owned.addresses);
    }
}

/// Which collection: the database, by its identity, and the folder's number.
type CollectionKey = ([u8; 16], u32);

/// The collections that are in use. Requests for the same one share it.
#[derive(Default)]
pub(crate) struct Collections {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    all: HashMap<CollectionKey, (Arc<Collection>, u64)>,
    /// How often one was asked for.
    asked: u64,
}

impl Collections {
    pub(crate) fn of(&self, database: &Arc<Database>, folder: u32, owned: Owned) -> Arc<Collection> {
        let mut known = self.known.lock();
        known.asked += 1;
        let asked = known.asked;
        let key = (database.uuid(), folder);
        if let Some((collection, last)) = known.all.get_mut(&key)
            // One that was moved to another volume is another database; another owner or zone makes other occurrences.
            && Arc::ptr_eq(&collection.database, database)
            && collection.owned == owned
        {
            *last = asked;
            return Arc::clone(collection);
        }
        known.forget_what_is_too_much();
        let collection = Arc::new(Collection::new(Arc::clone(database), folder, owned));
        known.all.insert(key, (Arc::clone(&collection), asked));
        collection
    }
}

impl Known {
    /// Forgets the half that nobody asked for longest, where together they have too many members.
    fn forget_what_is_too_much(&mut self) {
        // One that is being made just now counts the next time.
        let size = |collection: &Arc<Collection>| {
            let state = collection.state.try_lock();
            state
                .and_then(|state| state.contents.as_ref().map(|contents| contents.members.len()))
                .unwrap_or(0)
        };
        // A collection takes a little memory itself.
        let total: usize = self.all.values().map(|(collection, _)| 16 + size(collection)).sum();
        if total < KEPT_MEMBERS_MAX {
            return;
        }
        let mut asked: Vec<u64> = self.all.values().map(|(_, asked)| *asked).collect();
        asked.sort_unstable();
        let Some(middle) = asked.get(asked.len() / 2).copied() else { return };
        self.all.retain(|_, (_, asked)| *asked > middle);
    }
}
