//! Holding indexes of words against their documents, by taking every document apart again.
//!
//! An index and the documents are looked at as they stood together at one moment; documents that changed after the
//! change that the index had reached then are left out on both sides.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use scrinium_database::head::ChangeRecord;
use scrinium_database::leaf::Leaf;
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_fulltext::{FullTextIndex, Posting, Reader};
use scrinium_store::{Direction, Family, KeyRange, Snapshot};

use super::gather::Patience;
use super::registry::{self, TextIndex, text_error};
use super::update::{Change, Gatherer};
use crate::audit::Audited;
use crate::open::OpenDatabase;
use crate::tally::Tally;

/// Documents taken apart together.
const DOCUMENTS_AT_ONCE: usize = 64;

/// An index that is this many changes behind is brought up to date first.
const BEHIND_MAX: usize = 10_000;

/// An index of words that can be audited and built again.
pub struct TextAudit {
    /// What the design document calls it; `_fulltext` for that of the whole database.
    pub name: String,
    text: Arc<TextIndex>,
}

impl OpenDatabase {
    /// All indexes of words that are to be audited.
    ///
    /// # Errors
    /// What the store reports.
    pub fn text_audits(&self) -> Result<Vec<TextAudit>> {
        let definitions = self.text_definitions()?.into_iter();
        let audits = definitions.map(|definition| {
            let name = format!("words {}", definition.name);
            Ok(TextAudit { name, text: registry::open(self, definition)? })
        });
        audits.collect()
    }
}

impl TextAudit {
    /// Builds the index again, from all documents.
    ///
    /// # Errors
    /// What the store reports.
    pub fn rebuild(&self, database: &OpenDatabase) -> Result<()> {
        {
            let _updating = self.text.updater.lock();
            FullTextIndex::reset(database.store(), self.text.id).map_err(text_error)?;
        }
        database.update_text(&self.text)
    }

    /// Holds the index against its documents. `tick` is called for every document and many words, and stops it with an error.
    ///
    /// # Errors
    /// What the store reports, and that of `tick`.
    pub fn run(&self, database: &OpenDatabase, tick: &mut dyn FnMut() -> Result<()>) -> Result<Audited> {
        let mut snapshot = database.store().snapshot();
        let mut reader = match self.text.index.reader(&snapshot) {
            Err(error) if error.needs_rebuild() => return Ok(Audited::Damaged(error.to_string())),
            reader => reader.map_err(text_error)?,
        };
        if reader.reached() == 0 {
            return Ok(Audited::NotBuilt);
        }
        let mut later = changed_later(database, &snapshot, reader.reached())?;
        if later.len() > BEHIND_MAX {
            database.update_text(&self.text)?;
            snapshot = database.store().snapshot();
            reader = self.text.index.reader(&snapshot).map_err(text_error)?;
            later = changed_later(database, &snapshot, reader.reached())?;
        }
        let found = match stored(&reader, &later, tick)? {
            Ok(found) => found,
            Err(damage) => return Ok(Audited::Damaged(damage)),
        };
        let wanted = self.taken_apart(database, &snapshot, &later, tick)?;
        if found == wanted {
            return Ok(Audited::Sound);
        }
        let (found, wanted) = (found.count, wanted.count);
        Ok(Audited::Differs(format!("it has words at {found} places, and its documents have {wanted}")))
    }

    /// What the documents come to, but for those that changed later.
    fn taken_apart(
        &self,
        database: &OpenDatabase,
        snapshot: &Snapshot,
        later: &HashSet<String>,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Tally> {
        let mut tally = Tally::default();
        let mut gatherer = Gatherer::new(database, &self.text, Patience::Whole);
        let (from, to) = keys::winner_range(database.number());
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Scan, range, Direction::Forward);
        let mut waiting: Vec<Change> = Vec::new();
        loop {
            let next = cursor.next()?;
            let is_at_end = next.is_none();
            if let Some((key, record)) = next
                && let Some(id) = keys::id_of(key).map(str::to_owned)
                && is_alive(record)
                && !later.contains(&id)
                && !scrinium_document::is_design(&id)
            {
                tick()?;
                let record = snapshot.get(Family::Scan, &keys::winner(database.number(), &id))?;
                waiting.push(Change { number: 0, id, record });
            }
            if waiting.len() >= DOCUMENTS_AT_ONCE || is_at_end {
                for followed in gatherer.follow(&waiting)?.unwrap_or_default() {
                    let read = followed.segment.each_posting(&mut |posting| {
                        add(&mut tally, posting);
                        ControlFlow::Continue(())
                    });
                    read.ok_or_else(|| {
                        DatabaseError::damaged("text that was just taken apart", database.name())
                    })?;
                }
                waiting.clear();
            }
            if is_at_end {
                return Ok(tally);
            }
        }
    }
}

/// Whether a winner is there; one that cannot be read is in no index.
fn is_alive(record: &[u8]) -> bool {
    Leaf::decode("", record).is_ok_and(|leaf| !leaf.deleted)
}

fn add(tally: &mut Tally, posting: Posting<'_>) {
    tally.add(&[&posting.document.to_be_bytes(), posting.term, posting.places]);
}

/// What the index holds, but for documents that changed later; within, why it is damaged.
fn stored(
    reader: &Reader,
    later: &HashSet<String>,
    tick: &mut dyn FnMut() -> Result<()>,
) -> Result<std::result::Result<Tally, String>> {
    let (mut tally, mut stopped) = (Tally::default(), None);
    let read = reader.each_posting(&|id| !later.contains(id), &mut |posting| {
        add(&mut tally, posting);
        match tick() {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                stopped = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    match (read, stopped) {
        (_, Some(error)) => Err(error),
        (Ok(()), None) => Ok(Ok(tally)),
        (Err(error), None) if error.needs_rebuild() => Ok(Err(error.to_string())),
        (Err(error), None) => Err(text_error(error)),
    }
}

/// Documents that changed after a change.
fn changed_later(database: &OpenDatabase, snapshot: &Snapshot, reached: u64) -> Result<HashSet<String>> {
    let from = keys::change(database.number(), reached.saturating_add(1));
    let (_, to) = keys::change_range(database.number());
    let range = KeyRange { from: &from, to: Some(&to) };
    let mut cursor = snapshot.cursor(Family::Churn, range, Direction::Forward);
    let mut later = HashSet::new();
    while let Some((_, change)) = cursor.next()? {
        let change = ChangeRecord::decode(change);
        later.insert(change.ok_or_else(|| DatabaseError::damaged("change", database.name()))?.id);
        if later.len() > BEHIND_MAX {
            break;
        }
    }
    Ok(later)
}
