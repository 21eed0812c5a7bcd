//! How far tombstones may be purged: what is old enough, and what every follower of the changes has seen.
//!
//! Three follow: *time*, which is how long a client that left no trace may be away; *indexes*, which would keep the
//! entries of a document whose deletion they never learn of; and *replicas* that are known by their checkpoints. A
//! replicator notes how far it has read this database in a `_local` document of it, with a sequence of this database
//! (`source_last_seq` in CouchDB's, `last_seq` in PouchDB's); the sequences of another database, and plain numbers, are
//! those of a replication towards here, which has nothing to learn from tombstones.

use scrinium_database::head::ChangeRecord;
use scrinium_database::leaf::Leaf;
use scrinium_database::local::{self, is_expired};
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_document::json::stored_value;
use scrinium_store::{Batch, Direction, Family, KeyRange, Snapshot};
use serde_json::Value;

use super::Subject;

/// The members of a checkpoint that may hold how far the source was read, the last one first.
const SEQUENCES: [&str; 2] = ["source_last_seq", "last_seq"];

/// How far tombstones may be purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    /// The last change that nobody needs to learn of any more.
    pub(super) change_number: u64,
    /// Who keeps it from being later, if that is not the time.
    pub(super) held_by: Option<String>,
}

impl Subject<'_> {
    /// How far changes made by `until_ms` (milliseconds since 1970) may be forgotten.
    pub(super) fn purge_limit(&self, until_ms: u64) -> Result<Limit> {
        let snapshot = self.store().snapshot();
        let mut limit = Limit { change_number: self.aged_change(&snapshot, until_ms)?, held_by: None };
        let mut hold = |seen: u64, by: &dyn Fn() -> String| {
            if seen < limit.change_number {
                limit = Limit { change_number: seen, held_by: Some(by()) };
            }
        };
        hold(self.followed_by_all()?, &|| "an index that has not followed these changes".to_owned());
        for (id, seen) in self.checkpoints(&snapshot)? {
            hold(seen, &|| format!("the replica of {id}, which has seen change {seen}"));
        }
        Ok(limit)
    }

    /// The checkpoints of replicas that read this database, with the last change that each has seen. One that was not
    /// written for long holds nothing any more; one of which it is not known when it was written is as old as now.
    fn checkpoints(&self, snapshot: &Snapshot) -> Result<Vec<(String, u64)>> {
        let now_ms = self.now_ms();
        let mut found = Vec::new();
        let mut unwritten = Batch::new();
        for (from, to) in [keys::local_range(self.number()), keys::own_locals_range(self.number())] {
            let range = KeyRange { from: &from, to: Some(&to) };
            let mut cursor = snapshot.cursor(Family::Point, range, Direction::Forward);
            while let Some((key, stored)) = cursor.next()? {
                let id = keys::local_id_of(key).ok_or_else(|| DatabaseError::damaged("id", self.name()))?;
                // A replica whose place cannot be read begins again from the start, so that it holds nothing.
                let document = self.pass_over(id, local::render(self, id, stored))?;
                let json = document.and_then(|document| stored_value(&document.json)).unwrap_or_default();
                let Some(seen) = self.seen_by(&json) else { continue };
                let own_ms = local::decode(stored).and_then(|(_, _, written_ms)| written_ms);
                let written = keys::local_written(self.number(), id);
                let written_ms = match own_ms {
                    Some(written_ms) => Some(written_ms),
                    None => snapshot.get(Family::Point, &written)?.and_then(|stored| ms_of(&stored)),
                };
                match written_ms {
                    Some(written_ms) if is_expired(written_ms, now_ms) => continue,
                    Some(_) => {}
                    None => unwritten.put(Family::Point, &written, &now_ms.to_be_bytes()),
                }
                found.push((id.to_owned(), seen));
            }
        }
        if !unwritten.is_empty() {
            self.store().commit(unwritten)?;
        }
        Ok(found)
    }

    /// The last change of this database that the replica of a checkpoint has seen; `None`: the document is no
    /// checkpoint of a replica that reads this database.
    fn seen_by(&self, checkpoint: &Value) -> Option<u64> {
        let history = checkpoint.get("history").and_then(Value::as_array);
        let is_checkpoint = history.is_some() || checkpoint.get("session_id").is_some();
        let newest = history.and_then(|history| history.first());
        let told = SEQUENCES.iter().find_map(|name| checkpoint.get(*name));
        let told = told
            .or_else(|| newest.and_then(|entry| entry.get("recorded_seq").or_else(|| entry.get("last_seq"))));
        match told {
            Some(Value::String(text)) => self.own_sequence(text),
            // A number, or CouchDB 2's array, is a sequence of another database.
            Some(Value::Number(_) | Value::Array(_)) => None,
            // It has begun, and not said yet how far it is.
            _ => is_checkpoint.then_some(0),
        }
    }

    /// The change number in a sequence that this database has given out.
    fn own_sequence(&self, text: &str) -> Option<u64> {
        let number = text.split_once('-')?.0.parse().ok()?;
        (self.sequence_text(number) == text).then_some(number)
    }

    /// A change such that all changes up to it were made by `until_ms`; 0 if there is none. Change numbers grow with the
    /// time, so it is looked for by halves.
    fn aged_change(&self, snapshot: &Snapshot, until_ms: u64) -> Result<u64> {
        let (mut aged, mut young) = (0, self.last_change(snapshot)?.saturating_add(1));
        while young - aged > 1 {
            let middle = aged + (young - aged) / 2;
            match self.change_from(snapshot, middle, young)? {
                Some((number, made_ms)) if made_ms <= until_ms => aged = number,
                _ => young = middle,
            }
        }
        Ok(aged)
    }

    /// The first document's change from number `from` and before `to`, and when it was made.
    fn change_from(&self, snapshot: &Snapshot, from: u64, to: u64) -> Result<Option<(u64, u64)>> {
        let (from, to) = (keys::change(self.number(), from), keys::change(self.number(), to));
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Churn, range, Direction::Forward);
        let Some((key, stored)) = cursor.next()? else { return Ok(None) };
        let damaged = || DatabaseError::damaged("change", self.name());
        let number = keys::change_number_of(key).ok_or_else(damaged)?;
        let id = ChangeRecord::decode(stored).ok_or_else(damaged)?.id;
        Ok(Some((number, self.modified_ms(snapshot, &id)?)))
    }

    /// When a document's winner was made here, in milliseconds since 1970.
    pub(super) fn modified_ms(&self, snapshot: &Snapshot, id: &str) -> Result<u64> {
        let stored = snapshot.get(Family::Scan, &keys::winner(self.number(), id))?;
        let stored = stored.ok_or_else(|| DatabaseError::damaged("document", id))?;
        Ok(Leaf::decode(id, &stored)?.modified_ms)
    }
}

fn ms_of(stored: &[u8]) -> Option<u64> {
    stored.try_into().ok().map(u64::from_be_bytes)
}
