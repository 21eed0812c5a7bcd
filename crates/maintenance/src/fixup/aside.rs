//! Records that were set aside: damaged, or without what they belong to. They are kept with the reason and the key
//! that they lay under, under which nobody looks for them any more, until an administrator discards them.
//!
//! ```text
//! record = 01, time in ms since 1970 (varint), database's name, reason (each with its length), family (1 byte),
//!          key with its length, value
//! ```

use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_contents::hex;
use scrinium_contents::object::note;
use scrinium_contents::record::{Placement, Record};
use scrinium_contents::wire::{Input, put_bytes, put_number};
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_store::{Batch, Direction, Family, KeyRange, Snapshot, Store};

const VERSION: u8 = 1;

/// Records discarded by one batch.
const DISCARDED_AT_ONCE: usize = 1000;

/// A record that was set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Tells it from the others: the database's number and one that grows.
    pub number: String,
    /// When it was set aside, in milliseconds since 1970.
    pub at_ms: u64,
    /// The database's name; empty for what all databases share.
    pub database: String,
    /// Why.
    pub reason: String,
    /// The family that it lay in.
    pub family: Family,
    /// The key that it lay under.
    pub key: Vec<u8>,
    /// What it holds.
    pub value: Vec<u8>,
}

impl SetAside {
    /// It for programs; the key and the value as hexadecimal digits.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "number": self.number,
            "at_ms": self.at_ms,
            "database": self.database,
            "reason": self.reason,
            "family": self.family.name(),
            "key": hex(&self.key),
            "value": hex(&self.value),
        })
    }

    /// It in one line for people, without its value.
    #[must_use]
    pub fn to_line(&self) -> String {
        let at = i64::try_from(self.at_ms).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
        let at = at.map_or_else(String::new, |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string());
        let place = if self.database.is_empty() { "all databases" } else { &self.database };
        format!(
            "{}  {at}  {place}: {}; {} {}, {} bytes",
            self.number,
            self.reason,
            self.family.name(),
            hex(&self.key),
            self.value.len()
        )
    }
}

/// What sets records of one database aside in one batch.
pub(super) struct Aside<'a> {
    number: u32,
    name: &'a str,
    next: u64,
    at_ms: u64,
}

impl<'a> Aside<'a> {
    /// Goes on behind what is there already.
    pub(super) fn open(snapshot: &Snapshot, number: u32, name: &'a str, clock: &Clock) -> Result<Self> {
        let (from, to) = keys::set_aside_range(Some(number));
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Scan, range, Direction::Backward);
        let last = cursor.next()?.and_then(|(key, _)| keys::set_aside_of(key));
        let next = last.map_or(1, |(_, order)| order + 1);
        Ok(Self { number, name, next, at_ms: clock.now_ms() })
    }

    /// Puts a record aside and takes it away from where it lies.
    pub(super) fn set(&mut self, batch: &mut Batch, family: Family, key: &[u8], value: &[u8], reason: &str) {
        self.keep(batch, family, key, value, reason);
        batch.delete(family, key);
    }

    /// Keeps a copy of a record that is about to be rewritten.
    pub(super) fn keep(&mut self, batch: &mut Batch, family: Family, key: &[u8], value: &[u8], reason: &str) {
        let record = encode(self.at_ms, self.name, reason, (family, key, value));
        batch.put(Family::Scan, &keys::set_aside(self.number, self.next), &record);
        self.next += 1;
    }
}

/// A record as it is kept.
pub(crate) fn encode(
    at_ms: u64,
    name: &str,
    reason: &str,
    (family, key, value): (Family, &[u8], &[u8]),
) -> Vec<u8> {
    let mut record = Vec::with_capacity(value.len() + key.len() + reason.len() + 64);
    record.push(VERSION);
    put_number(&mut record, at_ms);
    put_bytes(&mut record, name.as_bytes());
    put_bytes(&mut record, reason.as_bytes());
    record.push(family.code());
    put_bytes(&mut record, key);
    record.extend_from_slice(value);
    record
}

/// `None`: damaged.
pub(crate) fn decode(key: &[u8], record: &[u8]) -> Option<SetAside> {
    let (number, order) = keys::set_aside_of(key)?;
    let mut input = Input::new(record);
    if input.byte()? != VERSION {
        return None;
    }
    Some(SetAside {
        number: format!("{number}-{order}"),
        at_ms: input.number()?,
        database: input.text()?.to_owned(),
        reason: input.text()?.to_owned(),
        family: Family::from_code(input.byte()?)?,
        key: input.bytes()?.to_vec(),
        value: input.rest().to_vec(),
    })
}

/// Removes what belongs to a large content that was set aside.
fn discard_content(found: &SetAside, batch: &mut Batch, now_ms: u64) {
    let Some((b'c', digest)) = found.key.split_first().filter(|_| found.family == Family::Blob) else {
        return;
    };
    match Record::decode(&found.value).map(|record| record.placement) {
        Some(Placement::Upload { upload, .. }) => {
            let (from, to) = keys::chunk_range(upload);
            batch.delete_range(Family::Blob, &from, &to);
        }
        Some(Placement::Object(object)) => {
            if let Ok(digest) = digest.try_into() {
                note(batch, now_ms, digest, &object);
            }
        }
        Some(Placement::Inline(_)) | None => {}
    }
}

/// Calls `take` with each record that was set aside, or with those of one database, in the order of the databases
/// and of setting aside, until it answers false. Databases that are gone by now may have some too.
///
/// # Errors
/// What the store reports.
pub fn each_set_aside(
    databases: &Databases,
    database: Option<&str>,
    mut take: impl FnMut(SetAside) -> bool,
) -> Result<()> {
    for context in databases.contexts() {
        if !each_in(&context.store, database, &mut take)? {
            break;
        }
    }
    Ok(())
}

/// Removes what was set aside for good: all of it, that of one database, or one record by its number. Returns how
/// many records there were.
///
/// # Errors
/// What the store reports.
pub fn discard_set_aside(databases: &Databases, database: Option<&str>, number: Option<&str>) -> Result<u64> {
    let contexts = databases.contexts();
    contexts.iter().map(|context| discard_in(&context.store, database, number)).sum()
}

/// Those of one store. False: it was told to stop.
fn each_in(store: &Store, database: Option<&str>, take: &mut dyn FnMut(SetAside) -> bool) -> Result<bool> {
    let (from, to) = keys::set_aside_range(None);
    let snapshot = store.snapshot();
    let range = KeyRange { from: &from, to: Some(&to) };
    let mut cursor = snapshot.cursor(Family::Scan, range, Direction::Forward);
    while let Some((key, record)) = cursor.next()? {
        let found =
            decode(key, record).ok_or_else(|| DatabaseError::damaged("record set aside", &hex(key)))?;
        let is_wanted = database.is_none_or(|database| database == found.database);
        if is_wanted && !take(found) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn discard_in(store: &Store, database: Option<&str>, number: Option<&str>) -> Result<u64> {
    let mut batches = vec![Batch::new()];
    let mut discarded = 0;
    each_in(store, database, &mut |found| {
        if number.is_none_or(|number| number == found.number)
            && let Some((of, order)) = found.number.split_once('-')
            && let (Ok(of), Ok(order)) = (of.parse(), order.parse())
        {
            if discarded > 0 && discarded % DISCARDED_AT_ONCE == 0 {
                batches.push(Batch::new());
            }
            if let Some(batch) = batches.last_mut() {
                batch.delete(Family::Scan, &keys::set_aside(of, order));
                discard_content(&found, batch, store.clock().now_ms());
            }
            discarded += 1;
        }
        true
    })?;
    for batch in batches {
        store.commit(batch)?;
    }
    Ok(discarded as u64)
}
