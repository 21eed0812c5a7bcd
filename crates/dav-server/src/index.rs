//! What a collection has under which name, and when it takes place: an index in the store.
//!
//! It is derived: made from the folder and its documents, and brought up to date from the folder's feed ([`crate::collection`]).
//! A member comes or goes in one batch with how far the feed was followed, so a server that ends at any moment goes on from there.
//!
//! Keys lie in DerivedScan, and begin with the database's number, `FFFFFFFC`, and the folder's number.
//!
//! | key | value |
//! |---|---|
//! | `s` | up to where it followed, and what it was made of |
//! | `m` uid | the member, and all keys below that it has |
//! | `n` digest of the name | uid |
//! | `o` digest of the object's UID, uid | |
//! | `k` kind uid | , for to-dos and journals |
//! | `a` digest of an address, uid | , for cards |
//! | `e` class and start, uid, number | an occurrence |
//! | `d` uid | a series with too many occurrences for entries |
//! | `w` last, uid | what a series has beyond the window |

mod record;

use std::collections::HashSet;
use std::sync::Arc;

use scrinium_calendar::busy::{BusyKind, BusyTime};
use scrinium_calendar::event::ComponentKind;
use scrinium_calendar::index::{Entry, EntryKey, IndexParts, IndexWindow, SeriesEntry, scans};
use scrinium_calendar::series::{InstantRange, Series};
use scrinium_calendar::zone::Zone;
use scrinium_contents::keys::successor;
use scrinium_database::{Database, DatabaseError, Result};
use scrinium_dav_wire::content::{Component, ContentLimits};
use scrinium_store::{Batch, Direction, KeyRange, Snapshot, Store};

use record::{
    ADDRESS, BEYOND, DENSE, ENTRY, FAMILY, KIND, MEMBER, NAME, OBJECT, Row, STATE, State, decode_entry,
    decode_keys, decode_member, decode_series, digest, encode_member, is_of_time, key, kind_number, ordered,
    prefix_of, rows_of, uid_at_end,
};

/// Occurrences of one series that are looked at beyond the window for one question.
const BEYOND_MAX: usize = 10_000;

/// A day, around what a series without a zone may mean.
const DAY_S: i64 = 86_400;

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

fn damaged() -> DatabaseError {
    DatabaseError::damaged("entry of a calendar's index", "")
}

/// The index of a collection, to be changed.
pub(crate) struct ShelfIndex<'s> {
    store: &'s Store,
    prefix: [u8; 12],
    /// What becomes of it with the next change.
    state: State,
    /// Something was written since it was opened.
    has_changed: bool,
}

/// What a member brings to the index besides itself.
#[derive(Debug, Default)]
pub(crate) struct Brings {
    pub(crate) parts: IndexParts,
    /// Of a card, as calendars compare them.
    pub(crate) addresses: Vec<String>,
}

impl<'s> ShelfIndex<'s> {
    /// The index as it stands. `None`: nobody has made it, or it was made of something else, by another version, or in a time that
    /// never was.
    pub(crate) fn open(
        store: &'s Store,
        (database, folder): (u32, u32),
        owned: [u8; 16],
    ) -> Result<Option<Self>> {
        let prefix = prefix_of(database, folder);
        let stored = store.get(FAMILY, &whole(prefix, &[STATE]))?;
        let state = stored.and_then(|stored| State::decode(&stored)).filter(|state| state.owned == owned);
        Ok(state.map(|state| Self { store, prefix, state, has_changed: false }))
    }

    /// An index with nothing in it. It is there once it is [finished](Self::finish).
    pub(crate) fn begin(
        store: &'s Store,
        (database, folder): (u32, u32),
        owned: [u8; 16],
        window: IndexWindow,
    ) -> Result<Self> {
        let prefix = prefix_of(database, folder);
        let mut batch = Batch::new();
        batch.delete_range(FAMILY, &prefix, &successor(&prefix));
        store.derived().write(batch)?;
        Ok(Self {
            store,
            prefix,
            state: State { owned, window, reached: 0, is_complete: false },
            has_changed: true,
        })
    }

    /// An index that was made holds all up to a change.
    pub(crate) fn finish(&mut self, reached: u64) -> Result<()> {
        self.state.is_complete = true;
        self.reach(reached)
    }

    pub(crate) fn reached(&self) -> u64 {
        self.state.reached
    }

    pub(crate) fn window(&self) -> IndexWindow {
        self.state.window
    }

    /// Whether its series are written out for its window.
    pub(crate) fn is_complete(&self) -> bool {
        self.state.is_complete
    }

    /// Notes that nothing is new up to a change.
    pub(crate) fn reach(&mut self, change: u64) -> Result<()> {
        self.write(Batch::new(), Some(change))
    }

    /// A member that is to lie under this name: whether another one has it.
    pub(crate) fn is_taken(&self, name: &str, uid: u64) -> Result<bool> {
        let stored = self.store.get(FAMILY, &whole(self.prefix, &key(NAME, &[&digest(name)])))?;
        Ok(stored.and_then(|stored| uid_at_end(&stored)).is_some_and(|other| other != uid))
    }

    /// A member comes, in the place of what it was; with change number `reached`, where it comes by the feed.
    pub(crate) fn put(&mut self, member: &Member, brings: &Brings, reached: Option<u64>) -> Result<()> {
        let uid = member.uid.to_be_bytes();
        let mut rows: Vec<Row> = vec![(key(OBJECT, &[&digest(&member.object), &uid]), Vec::new())];
        if !matches!(member.kind, None | Some(ComponentKind::Event)) {
            rows.push((key(KIND, &[&[kind_number(member.kind)], &uid]), Vec::new()));
        }
        rows.extend(
            brings.addresses.iter().map(|address| (key(ADDRESS, &[&digest(address), &uid]), Vec::new())),
        );
        rows.extend(rows_of(member.uid, &brings.parts));
        let mut batch = self.removal(member.uid)?;
        batch.put(FAMILY, &whole(self.prefix, &key(NAME, &[&digest(&member.name)])), &uid);
        self.put_rows(&mut batch, member, &rows);
        self.write(batch, reached)
    }

    /// A member goes, if it is there.
    pub(crate) fn remove(&mut self, uid: u64, reached: Option<u64>) -> Result<()> {
        let batch = self.removal(uid)?;
        self.write(batch, reached)
    }

    /// Writes out series for another window. What is cut off goes on when it is called with the same one.
    pub(crate) fn move_window(&mut self, window: IndexWindow, of: (&[String], &Zone)) -> Result<()> {
        self.state.window = window;
        self.state.is_complete = false;
        self.reach(self.state.reached)?;
        let contents = Contents { snapshot: self.store.snapshot(), prefix: self.prefix, window };
        contents.each([BEYOND], [BEYOND + 1], |key, value| {
            self.write_out(&contents, (key, value), of)?;
            Ok(true)
        })?;
        contents.each([DENSE], [DENSE + 1], |key, value| {
            self.write_out(&contents, (key, value), of)?;
            Ok(true)
        })?;
        self.finish(self.state.reached)
    }

    /// Writes out one series for the window.
    fn write_out(
        &self,
        contents: &Contents,
        (row, value): (&[u8], &[u8]),
        (addresses, floating): (&[String], &Zone),
    ) -> Result<()> {
        let uid = uid_at_end(row).ok_or_else(damaged)?;
        let source = decode_series(value).ok_or_else(damaged)?.source;
        let calendar = Component::parse(&source, ContentLimits::default()).map_err(|_| damaged())?;
        let series = Series::read_all(&calendar, floating).into_iter().next().ok_or_else(damaged)?;
        let parts = IndexParts::of(&calendar, &series, addresses, contents.window);
        let (member, old) = contents.stored(uid)?.ok_or_else(damaged)?;
        let (of_time, mut keys): (Vec<_>, Vec<_>) = old.into_iter().partition(|key| is_of_time(key));
        let rows = rows_of(uid, &parts);
        let new: HashSet<&[u8]> = rows.iter().map(|(key, _)| key.as_slice()).collect();
        let known: HashSet<&[u8]> = of_time.iter().map(Vec::as_slice).collect();
        let mut batch = Batch::new();
        for gone in known.difference(&new) {
            batch.delete(FAMILY, &whole(self.prefix, gone));
        }
        for (key, value) in &rows {
            batch.put(FAMILY, &whole(self.prefix, key), value);
        }
        keys.extend(rows.iter().map(|(key, _)| key.clone()));
        self.put_member(&mut batch, &member, &keys.iter().map(Vec::as_slice).collect::<Vec<_>>());
        Ok(self.store.derived().write(batch)?)
    }

    /// Takes away all that a member has.
    fn removal(&self, uid: u64) -> Result<Batch> {
        let mut batch = Batch::new();
        let stored_at = whole(self.prefix, &key(MEMBER, &[&uid.to_be_bytes()]));
        let Some(stored) = self.store.get(FAMILY, &stored_at)? else { return Ok(batch) };
        let (member, keys) = decode_member(uid, &stored).ok_or_else(damaged)?;
        for key in decode_keys(keys).ok_or_else(damaged)? {
            batch.delete(FAMILY, &whole(self.prefix, &key));
        }
        // Another one may have got the name since.
        if !self.is_taken(&member.name, uid)? {
            batch.delete(FAMILY, &whole(self.prefix, &key(NAME, &[&digest(&member.name)])));
        }
        batch.delete(FAMILY, &stored_at);
        Ok(batch)
    }

    fn put_rows(&self, batch: &mut Batch, member: &Member, rows: &[Row]) {
        for (key, value) in rows {
            batch.put(FAMILY, &whole(self.prefix, key), value);
        }
        self.put_member(batch, member, &rows.iter().map(|(key, _)| key.as_slice()).collect::<Vec<_>>());
    }

    fn put_member(&self, batch: &mut Batch, member: &Member, keys: &[&[u8]]) {
        let stored_at = whole(self.prefix, &key(MEMBER, &[&member.uid.to_be_bytes()]));
        batch.put(FAMILY, &stored_at, &encode_member(member, keys));
    }

    fn write(&mut self, mut batch: Batch, reached: Option<u64>) -> Result<()> {
        if let Some(reached) = reached {
            self.state.reached = reached;
            batch.put(FAMILY, &whole(self.prefix, &[STATE]), &self.state.encode());
        }
        self.has_changed = true;
        Ok(self.store.derived().write(batch)?)
    }

    /// What it holds as it is now; `before` is from before it was opened, and serves where nothing was written since.
    pub(crate) fn contents(&self, before: Snapshot) -> Contents {
        let snapshot = if self.has_changed { self.store.snapshot() } else { before };
        Contents { snapshot, prefix: self.prefix, window: self.state.window }
    }
}

fn whole(prefix: [u8; 12], rest: &[u8]) -> Vec<u8> {
    [&prefix[..], rest].concat()
}

/// Removes the index of a folder.
pub(crate) fn forget(database: &Database, folder: u32) -> Result<()> {
    let prefix = prefix_of(database.number(), folder);
    let mut batch = Batch::new();
    batch.delete_range(FAMILY, &prefix, &successor(&prefix));
    Ok(database.store().derived().write(batch)?)
}

/// Removes indexes of folders that are not there any more. Looks at one key of each.
pub(crate) fn forget_dropped(database: &Database) -> Result<()> {
    let (snapshot, mut folder) = (database.store().snapshot(), 0);
    loop {
        let from = prefix_of(database.number(), folder);
        let end = prefix_of(database.number(), u32::MAX);
        let range = KeyRange { from: &from, to: Some(&end) };
        let mut cursor = snapshot.cursor(FAMILY, range, Direction::Forward);
        let Some((key, _)) = cursor.next()? else { return Ok(()) };
        let found = key.get(8..).and_then(|rest| rest.first_chunk()).ok_or_else(damaged)?;
        let found = u32::from_be_bytes(*found);
        if database.folder_feed_at(&snapshot, found)?.is_none() {
            forget(database, found)?;
        }
        folder = found.saturating_add(1);
    }
}

/// A collection as it stood at one moment.
pub(crate) struct Contents {
    snapshot: Snapshot,
    prefix: [u8; 12],
    window: IndexWindow,
}

impl Contents {
    /// Hands on keys from the first up to, and without, the second, until `look` says false. Gives how many.
    fn each<const FROM: usize, const TO: usize>(
        &self,
        from: [u8; FROM],
        to: [u8; TO],
        look: impl FnMut(&[u8], &[u8]) -> Result<bool>,
    ) -> Result<usize> {
        self.each_between(&from, &to, look)
    }

    fn each_between(
        &self,
        from: &[u8],
        to: &[u8],
        mut look: impl FnMut(&[u8], &[u8]) -> Result<bool>,
    ) -> Result<usize> {
        let (from, to) = (whole(self.prefix, from), whole(self.prefix, to));
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = self.snapshot.cursor(FAMILY, range, Direction::Forward);
        let mut read = 0;
        while let Some((key, value)) = cursor.next()? {
            read += 1;
            if !look(key.get(self.prefix.len()..).unwrap_or_default(), value)? {
                break;
            }
        }
        Ok(read)
    }

    /// A member and its keys.
    fn stored(&self, uid: u64) -> Result<Option<(Member, Vec<Vec<u8>>)>> {
        let stored_at = whole(self.prefix, &key(MEMBER, &[&uid.to_be_bytes()]));
        let Some(stored) = self.snapshot.get(FAMILY, &stored_at)? else { return Ok(None) };
        let (member, keys) = decode_member(uid, &stored).ok_or_else(damaged)?;
        Ok(Some((member, decode_keys(keys).ok_or_else(damaged)?)))
    }

    /// A member by its number in the folder.
    pub(crate) fn member(&self, uid: u64) -> Result<Option<Arc<Member>>> {
        let stored_at = whole(self.prefix, &key(MEMBER, &[&uid.to_be_bytes()]));
        let Some(stored) = self.snapshot.get(FAMILY, &stored_at)? else { return Ok(None) };
        let (member, _) = decode_member(uid, &stored).ok_or_else(damaged)?;
        Ok(Some(Arc::new(member)))
    }

    /// All members.
    pub(crate) fn members(&self) -> Result<Vec<Arc<Member>>> {
        self.members_behind(0, usize::MAX)
    }

    /// Members behind a number, `most` at most, in their order.
    pub(crate) fn members_behind(&self, uid: u64, most: usize) -> Result<Vec<Arc<Member>>> {
        let from = key(MEMBER, &[&uid.saturating_add(1).to_be_bytes()]);
        let mut members = Vec::new();
        self.each_between(&from, &[MEMBER + 1], |key, value| {
            if members.len() == most {
                return Ok(false);
            }
            let uid = uid_at_end(key).ok_or_else(damaged)?;
            let (member, _) = decode_member(uid, value).ok_or_else(damaged)?;
            members.push(Arc::new(member));
            Ok(true)
        })?;
        Ok(members)
    }

    /// Members that are to-dos, or journals.
    pub(crate) fn members_of_kind(&self, kind: ComponentKind) -> Result<Vec<Arc<Member>>> {
        let number = kind_number(Some(kind));
        self.members_below(&[KIND, number], usize::MAX)
    }

    /// Members whose uids are at the ends of keys that begin so.
    fn members_below(&self, beginning: &[u8], most: usize) -> Result<Vec<Arc<Member>>> {
        let mut uids = Vec::new();
        self.each_between(beginning, &successor(beginning), |key, _| {
            uids.push(uid_at_end(key).ok_or_else(damaged)?);
            Ok(uids.len() < most)
        })?;
        uids.into_iter().filter_map(|uid| self.member(uid).transpose()).collect()
    }

    pub(crate) fn named(&self, name: &str) -> Result<Option<Arc<Member>>> {
        let stored = self.snapshot.get(FAMILY, &whole(self.prefix, &key(NAME, &[&digest(name)])))?;
        let Some(uid) = stored.and_then(|stored| uid_at_end(&stored)) else { return Ok(None) };
        self.member(uid)
    }

    pub(crate) fn with_object(&self, object: &str) -> Result<Option<Arc<Member>>> {
        Ok(self.members_below(&key(OBJECT, &[&digest(object)]), 1)?.into_iter().next())
    }

    /// Whether a card has this address.
    pub(crate) fn has_address(&self, address: &str) -> Result<bool> {
        let beginning = key(ADDRESS, &[&digest(address)]);
        Ok(self.each_between(&beginning, &successor(&beginning), |_, _| Ok(false))? > 0)
    }

    /// Members that take place in a span, each once, in their order. `addresses` are those of the calendar's owner.
    pub(crate) fn members_in(
        &self,
        range: InstantRange,
        addresses: &[String],
        floating: &Zone,
    ) -> Result<Vec<Arc<Member>>> {
        let mut found = Vec::new();
        self.each_entry(range, floating, |uid, _| found.push(uid))?;
        self.each_series(range, |uid, series| {
            if !series.answer(range, self.window, addresses, floating, 1).is_empty() {
                found.push(uid);
            }
        })?;
        found.sort_unstable();
        found.dedup();
        found.into_iter().filter_map(|uid| self.member(uid).transpose()).collect()
    }

    /// Adds what takes time in a span, but for one member.
    pub(crate) fn add_busy(
        &self,
        busy: &mut BusyTime,
        of: (&[String], &Zone),
        but_for: Option<u64>,
    ) -> Result<()> {
        self.each_taken(busy.range(), of, but_for, |entry| {
            let (from, to) = entry.instants(of.1);
            busy.add(from, to, entry.kind);
        })
    }

    /// Hands on each occurrence that takes time in a span, but for those of one member.
    pub(crate) fn each_taken(
        &self,
        range: InstantRange,
        (addresses, floating): (&[String], &Zone),
        but_for: Option<u64>,
        mut taken: impl FnMut(&Entry),
    ) -> Result<()> {
        let mut add = |uid: u64, entry: &Entry| {
            if but_for != Some(uid) && entry.kind != BusyKind::Free {
                taken(entry);
            }
        };
        self.each_entry(range, floating, &mut add)?;
        self.each_series(range, |uid, series| {
            let beyond = series.answer(range, self.window, addresses, floating, BEYOND_MAX);
            beyond.iter().for_each(|entry| add(uid, entry));
        })
    }

    /// Series that may have something in a span that entries do not have. Within the window these are the dense ones alone.
    fn each_series(&self, range: InstantRange, mut found: impl FnMut(u64, &SeriesEntry)) -> Result<()> {
        let mut look = |key: &[u8], value: &[u8]| -> Result<bool> {
            let uid = uid_at_end(key).ok_or_else(damaged)?;
            let series = decode_series(value).ok_or_else(damaged)?;
            if series.may_answer(range, self.window) {
                found(uid, &series);
            }
            Ok(true)
        };
        self.each([DENSE], [DENSE + 1], &mut look)?;
        if !self.window.answers(range) {
            let alive = key(BEYOND, &[&ordered(range.from.0.saturating_sub(DAY_S))]);
            self.each_between(&alive, &[BEYOND + 1], &mut look)?;
        }
        Ok(())
    }

    /// Hands on entries that overlap a span. Gives how many keys were read for them.
    fn each_entry(
        &self,
        range: InstantRange,
        floating: &Zone,
        mut found: impl FnMut(u64, &Entry),
    ) -> Result<usize> {
        let (first, end) = (whole(self.prefix, &[ENTRY]), whole(self.prefix, &[ENTRY + 1]));
        let keys = KeyRange { from: &first, to: Some(&end) };
        let mut cursor = self.snapshot.cursor(FAMILY, keys, Direction::Forward);
        let place = |of: EntryKey| whole(self.prefix, &key(ENTRY, &[&of.to_bytes()]));
        let (mut read, mut ahead) = (0, Vec::new());
        // In the order of their keys; a span without a length has none.
        for (from, to) in scans(range, floating).into_iter().filter(|(from, to)| from.start < to.start) {
            let (from, to) = (place(from), place(to));
            // What was read last lies behind this one: nothing is in it.
            if ahead >= to {
                continue;
            }
            cursor.seek(&from);
            loop {
                let Some((key, value)) = cursor.next()? else { return Ok(read) };
                read += 1;
                if key >= to.as_slice() {
                    ahead = key.to_vec();
                    break;
                }
                let rest = key.get(self.prefix.len()..).unwrap_or_default();
                let (uid, entry) = decode_entry(rest, value).ok_or_else(damaged)?;
                if range.overlaps(entry.instants(floating)) {
                    found(uid, &entry);
                }
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
