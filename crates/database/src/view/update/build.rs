//! Building new indexes from all documents of a database, in bulk.
//!
//! One thread reads the documents in the order of their ids; others evaluate the views and keep the
//! entries in memory; then the entries of each view are sorted and written as sorted files.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use scrinium_formula::Environment;
use scrinium_store::{Direction, Family, KeyRange, ScanOptions, Snapshot};

use super::encode_list;
use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::keys;
use crate::leaf::Leaf;
use crate::view::View;
use crate::view::entries::{Entry, entries};
use crate::view::registry::{drop_lists, entries_key};

/// Documents handed from the reader to an evaluator at once.
const DOCUMENTS_AT_ONCE: usize = 256;

/// Hand-overs that may wait, so that a fast reader does not fill the memory.
const WAITING: usize = 8;

/// What an entry costs in memory beside its bytes.
const ENTRY_OVERHEAD_BYTES: usize = 3 * size_of::<Vec<u8>>() + 32;

/// Some documents on their way to be evaluated, and which ones in the order of ids.
struct Load {
    number: usize,
    documents: Vec<(String, Vec<u8>)>,
}

/// The entries of a load in each view: for each document its id and its entries.
type Evaluated = Vec<Vec<(String, Vec<Entry>)>>;

/// Builds the indexes of `views`, which are empty, as of `snapshot`, whose last change is `last`.
///
/// Returns `false`, with nothing written, if the entries do not fit into half of the store's budget.
pub(super) fn build(
    database: &Arc<Database>,
    snapshot: &Snapshot,
    views: &[&View],
    environment: &Environment,
    last: u64,
) -> Result<bool> {
    let evaluated = Evaluation {
        database,
        views,
        environment,
        limit_bytes: database.store().budget() / 2,
        held_bytes: AtomicU64::new(0),
        loads: Mutex::new(Vec::new()),
    };
    evaluated.run(snapshot)?;
    if evaluated.is_over() {
        return Ok(false);
    }
    let mut loads = evaluated.loads.into_inner().unwrap_or_else(PoisonError::into_inner);
    loads.sort_unstable_by_key(|(number, _)| *number);
    let mut by_view: Vec<Vec<(String, Vec<Entry>)>> = views.iter().map(|_| Vec::new()).collect();
    for (_, load) in loads {
        for (all, some) in by_view.iter_mut().zip(load) {
            all.extend(some);
        }
    }
    for (view, documents) in views.iter().zip(by_view) {
        write(database, view, documents, last)?;
    }
    Ok(true)
}

struct Evaluation<'a> {
    database: &'a Arc<Database>,
    views: &'a [&'a View],
    environment: &'a Environment,
    limit_bytes: u64,
    held_bytes: AtomicU64,
    loads: Mutex<Vec<(usize, Evaluated)>>,
}

impl Evaluation<'_> {
    fn is_over(&self) -> bool {
        self.held_bytes.load(Ordering::Relaxed) > self.limit_bytes
    }

    fn run(&self, snapshot: &Snapshot) -> Result<()> {
        let evaluators = std::thread::available_parallelism().map_or(1, usize::from);
        let (sender, receiver) = mpsc::sync_channel::<Load>(WAITING);
        let receiver = Arc::new(Mutex::new(receiver));
        std::thread::scope(|scope| {
            let start = |receiver: Arc<_>| scope.spawn(move || self.evaluate_all(&receiver));
            let threads: Vec<_> = (0..evaluators).map(|_| start(Arc::clone(&receiver))).collect();
            // The last evaluator that stops closes the channel, which the reader then does not wait for.
            drop(receiver);
            let read = self.read(snapshot, &sender);
            drop(sender);
            let evaluated = threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| {
                    Err(DatabaseError::Internal { reason: "evaluating a view panicked".to_owned() })
                })
            });
            evaluated.and(read)
        })
    }

    fn read(&self, snapshot: &Snapshot, sender: &mpsc::SyncSender<Load>) -> Result<()> {
        let (from, to) = keys::winner_range(self.database.number());
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor_with(Family::Scan, range, ScanOptions::long(Direction::Forward));
        for number in 0.. {
            let mut documents = Vec::with_capacity(DOCUMENTS_AT_ONCE);
            while documents.len() < DOCUMENTS_AT_ONCE
                && let Some((key, value)) = cursor.next()?
            {
                let id =
                    keys::id_of(key).ok_or_else(|| DatabaseError::damaged("id", self.database.name()))?;
                if !scrinium_document::is_design(id) {
                    documents.push((id.to_owned(), value.to_vec()));
                }
            }
            // Evaluators that stopped have a reason, which they return.
            if documents.is_empty() || self.is_over() || sender.send(Load { number, documents }).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn evaluate_all(&self, receiver: &Mutex<mpsc::Receiver<Load>>) -> Result<()> {
        loop {
            let load = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(load) = load else { return Ok(()) };
            let evaluated = self.evaluate(&load.documents)?;
            let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
            loads.push((load.number, evaluated));
        }
    }

    fn evaluate(&self, documents: &[(String, Vec<u8>)]) -> Result<Evaluated> {
        let mut evaluated: Evaluated = self.views.iter().map(|_| Vec::new()).collect();
        let mut bytes = 0;
        for (id, record) in documents {
            let leaf = Leaf::decode(id, record)?;
            if leaf.deleted {
                continue;
            }
            for (view, all) in self.views.iter().zip(&mut evaluated) {
                let some = entries(&view.definition, self.database, id, &leaf, self.environment)?;
                if !some.is_empty() {
                    let held =
                        some.iter().map(|entry| entry.key.len() + entry.value.len() + ENTRY_OVERHEAD_BYTES);
                    bytes += held.sum::<usize>() + id.len() + ENTRY_OVERHEAD_BYTES;
                    all.push((id.clone(), some));
                }
            }
        }
        self.held_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(evaluated)
    }
}

/// Writes the list of each document's entries, then the entries in their order.
fn write(database: &Database, view: &View, documents: Vec<(String, Vec<Entry>)>, last: u64) -> Result<()> {
    let id = view.index.id;
    // A build that a crash cut off may have left some.
    drop_lists(database.store(), id)?;
    let lists = documents.iter().map(|(document, entries)| (entries_key(id, document), encode_list(entries)));
    database.store().ingest_derived(Family::DerivedPoint, lists)?;
    let mut all: Vec<Entry> = documents.into_iter().flat_map(|(_, entries)| entries).collect();
    all.sort_unstable_by(|left, right| left.key.cmp(&right.key));
    let sorted = all.into_iter().map(|entry| Ok::<_, DatabaseError>((entry.key, entry.value, entry.totals)));
    view.index.index.rebuild(sorted, last)?;
    Ok(())
}
