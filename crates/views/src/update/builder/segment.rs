//! Documents read in the order of their ids and evaluated on all cores, as many as the memory may hold.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Instant;

use scrinium_assertion::always;
use scrinium_contents::wire::put_bytes;
use scrinium_database::leaf::Leaf;
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_formula::Environment;
use scrinium_statistics::Task;
use scrinium_store::{Direction, Family, IoClass, KeyRange, Reservation, ScanOptions, Snapshot};

use super::run::{PIECE_BYTES_MAX, Run};
use crate::entries::encode_list;
use crate::evaluate::Evaluator;
use crate::group::View;
use crate::lists::put_list;
use crate::open::OpenDatabase;
use crate::update::cores;
use crate::yielding;

/// Documents handed from the reader to an evaluator at once, and their bytes.
const DOCUMENTS_AT_ONCE: usize = if cfg!(test) { 64 } else { 256 };
const BYTES_AT_ONCE: usize = 256 << 10;

/// Hand-overs that may wait, so that a fast reader does not fill the memory.
const WAITING: usize = 8;

/// Some documents on their way to be evaluated, and which ones in the order of ids.
struct Load {
    number: usize,
    documents: Vec<(String, Vec<u8>)>,
}

/// What the evaluation of some documents has made.
#[derive(Default)]
pub(super) struct Segment {
    /// For each view its sorted runs, one of each evaluator.
    pub(super) runs: Vec<Vec<Run>>,
    /// The documents' ids and lists, each with its length before it, in pieces that are in order.
    pub(super) lists: Vec<Vec<u8>>,
    /// The last document; `None` if these were the last ones.
    pub(super) last_id: Option<String>,
}

impl Segment {
    /// How many entries it has in all views.
    pub(super) fn entries(&self) -> u64 {
        self.runs.iter().flatten().map(|run| run.len() as u64).sum()
    }
}

/// What one evaluator has made.
struct Evaluated {
    runs: Vec<Run>,
    lists: BTreeMap<usize, Vec<u8>>,
}

/// Everything that evaluating needs.
pub(super) struct Evaluation<'a> {
    pub(super) database: &'a OpenDatabase,
    pub(super) views: &'a [&'a View],
    pub(super) snapshot: &'a Snapshot,
    pub(super) environment: &'a Environment,
    pub(super) task: Option<&'a Task>,
    /// How many documents there are, about.
    pub(super) documents: u64,
    /// A segment holds about so much memory.
    pub(super) limit_bytes: usize,
    /// What it holds is taken from here.
    pub(super) memory: &'a Reservation,
}

impl Evaluation<'_> {
    /// Evaluates the documents behind `after`, as many as the limit allows.
    pub(super) fn segment(&self, after: Option<&str>) -> Result<Segment> {
        let evaluators = cores();
        let (sender, receiver) = mpsc::sync_channel::<Load>(WAITING);
        let receiver = Arc::new(Mutex::new(receiver));
        let held_bytes = &AtomicUsize::new(0);
        let (last_id, evaluated) = std::thread::scope(|scope| {
            let start = |receiver: Arc<_>| scope.spawn(move || self.evaluate_all(&receiver, held_bytes));
            let threads: Vec<_> = (0..evaluators).map(|_| start(Arc::clone(&receiver))).collect();
            // The last evaluator that stops closes the channel, which the reader then does not wait for.
            drop(receiver);
            let read = self.read(after, &sender, held_bytes);
            drop(sender);
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Evaluated>>| {
                thread.join().unwrap_or_else(|_| {
                    Err(DatabaseError::Internal { reason: "evaluating a view panicked".to_owned() })
                })
            };
            let evaluated = threads.into_iter().map(join).collect::<Result<Vec<Evaluated>>>()?;
            Ok::<_, DatabaseError>((read?, evaluated))
        })?;
        let mut segment = Segment { last_id, ..Segment::default() };
        segment.runs = self.views.iter().map(|_| Vec::new()).collect();
        let mut lists = BTreeMap::new();
        for part in evaluated {
            segment.runs.iter_mut().zip(part.runs).for_each(|(all, run)| all.push(run));
            lists.extend(part.lists);
        }
        segment.lists = lists.into_values().collect();
        Ok(segment)
    }

    /// Each evaluator holds a piece for each view, however little is in it.
    fn piece_bytes(&self) -> usize {
        const PIECE_BYTES_MIN: usize = 8 << 10;
        let evaluators = cores();
        let pieces = evaluators.saturating_mul(self.views.len()).saturating_mul(4).max(1);
        (self.limit_bytes / pieces).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX)
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.task.is_some_and(Task::is_cancelled) || self.database.check_there().is_err()
    }

    /// An error if somebody has cancelled it.
    pub(super) fn check_wanted(&self) -> Result<()> {
        if !self.is_cancelled() {
            return Ok(());
        }
        let reason = "The building of the views was cancelled; the next reader begins it again.".to_owned();
        Err(DatabaseError::Unavailable { reason })
    }

    /// Hands documents over until there are no more or the memory is full; then the last one's id.
    fn read(
        &self,
        after: Option<&str>,
        sender: &mpsc::SyncSender<Load>,
        held_bytes: &AtomicUsize,
    ) -> Result<Option<String>> {
        let number = self.database.number();
        let (first, to) = keys::winner_range(number);
        let from = after.map_or(first, |id| [keys::winner(number, id), vec![0]].concat());
        let range = KeyRange { from: &from, to: Some(&to) };
        let options = ScanOptions::long(Direction::Forward);
        let mut cursor = self.snapshot.cursor_with(Family::Scan, range, options);
        let mut last_id = None;
        for number in 0.. {
            let started = Instant::now();
            let mut documents = Vec::with_capacity(DOCUMENTS_AT_ONCE);
            let mut bytes = 0;
            while documents.len() < DOCUMENTS_AT_ONCE
                && bytes < BYTES_AT_ONCE
                && let Some((key, value)) = cursor.next()?
            {
                let id =
                    keys::id_of(key).ok_or_else(|| DatabaseError::damaged("id", self.database.name()))?;
                yielding::give_way();
                bytes += value.len();
                documents.push((id.to_owned(), value.to_vec()));
            }
            let Some((id, _)) = documents.last() else { return Ok(None) };
            last_id = Some(id.clone());
            let took = started.elapsed();
            // Evaluators that stopped have a reason, which they return.
            if sender.send(Load { number, documents }).is_err() {
                break;
            }
            let limits = &self.database.context.server.io;
            // Why it is not to continue comes next.
            let _goes_on =
                limits.pace(IoClass::ViewUpdate, bytes as u64, took, || self.check_wanted().is_ok());
            self.check_wanted()?;
            if held_bytes.load(Ordering::Relaxed) > self.limit_bytes {
                break;
            }
        }
        Ok(last_id)
    }

    fn evaluate_all(
        &self,
        receiver: &Mutex<mpsc::Receiver<Load>>,
        held_bytes: &AtomicUsize,
    ) -> Result<Evaluated> {
        yielding::begin();
        let runs = self.views.iter().map(|_| Run::new(self.piece_bytes())).collect();
        let mut evaluated = Evaluated { runs, lists: BTreeMap::new() };
        let mut evaluator = Evaluator::new(self.database, self.views.to_vec(), self.environment);
        loop {
            let load = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(load) = load else { break };
            let before = held(&evaluated.runs);
            let lists = self.evaluate(&load, &mut evaluator, &mut evaluated)?;
            let more = held(&evaluated.runs).saturating_sub(before) + lists;
            let all = held_bytes.fetch_add(more, Ordering::Relaxed) + more;
            self.memory.set((all + WAITING * BYTES_AT_ONCE) as u64);
            if let Some(task) = self.task {
                task.advance(load.documents.len() as u64);
            }
        }
        for (view, run) in self.views.iter().zip(&mut evaluated.runs) {
            run.sort(view.definition.totals().count());
        }
        Ok(evaluated)
    }

    /// Returns the bytes that the documents' lists hold.
    fn evaluate(
        &self,
        load: &Load,
        evaluator: &mut Evaluator<'_>,
        evaluated: &mut Evaluated,
    ) -> Result<usize> {
        let mut lists = Vec::new();
        let with_designs = evaluator.includes_designs();
        let is_evaluated = |id: &str| with_designs || !scrinium_document::is_design(id);
        let documents = load.documents.iter().filter(|(id, _)| is_evaluated(id));
        let mut leaves = Vec::with_capacity(load.documents.len());
        for (id, record) in documents {
            let leaf = evaluator.leaf(id, record)?;
            leaves.extend(leaf.map(|leaf| (id.as_str(), leaf)));
        }
        let alive: Vec<(&str, &Leaf<'_>)> =
            leaves.iter().filter(|(_, leaf)| !leaf.deleted).map(|(id, leaf)| (*id, leaf)).collect();
        let all = evaluator.entries_of_many(&alive)?;
        always!(all.len() == alive.len(), "each document that is evaluated has its entries")?;
        for ((id, _), entries) in alive.iter().zip(all) {
            yielding::give_way();
            let mut record = Vec::new();
            for ((view, run), some) in self.views.iter().zip(&mut evaluated.runs).zip(entries) {
                if !some.is_empty() {
                    some.iter().try_for_each(|entry| run.push(entry))?;
                    put_list(&mut record, view.index.number(), &encode_list(id, &some));
                }
            }
            if !record.is_empty() {
                put_bytes(&mut lists, id.as_bytes());
                put_bytes(&mut lists, &record);
            }
        }
        lists.shrink_to_fit();
        let bytes = lists.len();
        evaluated.lists.insert(load.number, lists);
        Ok(bytes)
    }
}

fn held(runs: &[Run]) -> usize {
    runs.iter().map(Run::held_bytes).sum()
}
