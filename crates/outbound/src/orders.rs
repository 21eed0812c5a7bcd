//! What administrators ask of the queue, and tell it.

use std::collections::BTreeMap;
use std::sync::Arc;

use scrinium_database::{ChangesQuery, Database, DatabaseError};
use scrinium_mail::{QUEUE_KEEPER, QueuedDocument};
use scrinium_mail_queue::show::{DestinationSummary, QueueCommand, Selection, why};
use scrinium_mail_queue::{Destination, QueueEntry};
use tokio::sync::oneshot;

/// Reasons of refusal that are told.
const REFUSALS_MAX: usize = 20;

/// Documents read at a time.
const READ_AT_ONCE: usize = 200;

/// An order: what is to become of which entries, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueOrder {
    /// Which.
    pub selection: Selection,
    /// What.
    pub command: QueueCommand,
    /// Who.
    pub by: String,
}

/// The entries that an order is for.
#[derive(Clone, Debug)]
pub struct ChosenEntries {
    pub(crate) ids: Vec<Arc<str>>,
    pub(crate) command: QueueCommand,
    pub(crate) by: String,
}

/// Who waits to hear what an order did.
pub(crate) type OrderReply = oneshot::Sender<Ordered>;

/// What an order did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ordered {
    /// Entries that it changed.
    pub done: u64,
    /// Entries that it was not for.
    pub refused: u64,
    /// Why, of the first of these.
    pub reasons: Vec<String>,
}

impl Ordered {
    pub(crate) fn refused(&mut self, reason: String) {
        self.refused += 1;
        if self.reasons.len() < REFUSALS_MAX {
            self.reasons.push(reason);
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.done += other.done;
        self.refused += other.refused;
        self.reasons.extend(other.reasons);
        self.reasons.truncate(REFUSALS_MAX);
    }
}

/// What waits, by destination, and some of the entries.
#[derive(Clone, Debug, Default)]
pub struct QueueReport {
    /// By destination.
    pub destinations: BTreeMap<Destination, DestinationSummary>,
    /// The entries that were asked for, with why each is where it is.
    pub entries: Vec<(QueueEntry, String)>,
    /// How many more there are of those that were asked for.
    pub more: u64,
}

/// Looks through the queue: all of it by destination, and at most `most` entries of a selection. Costs time with the queue's length,
/// and memory with the number of destinations.
///
/// # Errors
/// What the database reports.
pub fn queue_report(
    database: &Arc<Database>,
    selection: Option<&Selection>,
    most: usize,
) -> Result<QueueReport, DatabaseError> {
    let mut report = QueueReport::default();
    each_entry(database, |entry| {
        if entry.queue() == scrinium_mail_queue::Queue::Done {
            return;
        }
        if selection.is_none_or(|selection| selection.includes(&entry)) {
            report.destinations.entry(entry.destination.clone()).or_default().add(&entry);
            if selection.is_some() && report.entries.len() < most {
                let reason = why(&entry);
                report.entries.push((entry, reason));
            } else if selection.is_some() {
                report.more += 1;
            }
        }
    })?;
    Ok(report)
}

/// The ids of the entries of a selection.
pub(crate) fn chosen(
    database: &Arc<Database>,
    selection: &Selection,
) -> Result<Vec<Arc<str>>, DatabaseError> {
    let mut ids = Vec::new();
    each_entry(database, |entry| {
        if selection.includes(&entry) {
            ids.push(Arc::from(entry.id.as_str()));
        }
    })?;
    Ok(ids)
}

fn each_entry(database: &Arc<Database>, mut call: impl FnMut(QueueEntry)) -> Result<(), DatabaseError> {
    let query = ChangesQuery { include_documents: true, ..ChangesQuery::default() };
    let mut changes = database.changes(query, &QUEUE_KEEPER)?;
    loop {
        let some = changes.next_changes(READ_AT_ONCE)?;
        if some.is_empty() {
            return Ok(());
        }
        for change in some.into_iter().filter(|change| !change.deleted) {
            let fields = change.document.and_then(|document| document.to_object());
            // What is no entry is passed over, as by the queue itself.
            if let Some(Ok(document)) = fields.map(QueuedDocument::read) {
                call(document.entry);
            }
        }
    }
}
