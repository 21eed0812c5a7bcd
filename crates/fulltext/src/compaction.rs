//! Blocks are brought together, and the dead leave them.
//!
//! A pass walks over the blocks of the index in the order of their keys, in steps of bounded size, each of them one batch. Small
//! neighbours become one block, and a block that names the dead is written without them. What is full and has no dead stays as
//! it is. Passes are due when the documents that came since the last one are half of all, or a quarter are dead, so that each
//! document is written again a few times in its life.

use std::collections::BTreeMap;

use scrinium_store::{Batch, Direction, KeyRange, Snapshot};

use crate::chunks::{DeadMarks, bit, ids_record, read_ids};
use crate::format::{ADDRESS_BYTES, Address, CHUNKS, ChunkKind, Keys, POINTS, POSTINGS, TermKind, kind_code};
use crate::postings::{BLOCK_BYTES, BLOCK_DOCUMENTS_MAX, Block};
use crate::state::State;
use crate::tail::Gatherer;
use crate::{FullTextError, FullTextIndex};

/// Fuller blocks without dead, half of what a block takes, are left alone.
const FULL_ENOUGH: usize = BLOCK_DOCUMENTS_MAX / 2;

/// A step under way.
struct Step<'s> {
    keys: Keys,
    dead: DeadMarks<'s>,
    batch: Batch,
    gatherer: Gatherer,
    term: Vec<u8>,
    /// The one small block that the gatherer holds, if it holds no more: it stays if nothing comes to it.
    alone: Option<Address>,
}

impl FullTextIndex {
    /// Goes a step further, over about `bytes_max` bytes of blocks; whether the pass is at its end. Begins one if none is
    /// under way: ask [`figures`](Self::figures) whether it is due.
    ///
    /// # Errors
    /// [`FullTextError::Damaged`], [`FullTextError::Store`]; the step was not done then.
    pub fn compact(&self, bytes_max: usize) -> Result<bool, FullTextError> {
        let _writer = self.writer.lock();
        let snapshot = self.store.snapshot();
        let mut state = State::load(&snapshot, self.keys, &self.options)?;
        let mut step = Step {
            keys: self.keys,
            dead: DeadMarks::new(&snapshot, self.keys),
            batch: Batch::new(),
            gatherer: Gatherer::new(),
            term: Vec::new(),
            alone: None,
        };
        let begins = state.compaction.is_none();
        let from = state.compaction.take().unwrap_or_else(|| self.keys.tagged(b'p').0);
        if begins {
            // Who dies or comes from here on is the next pass's.
            (state.dead, state.fresh) = (0, 0);
        }
        state.compaction = step.walk(&snapshot, &from, bytes_max)?;
        let is_done = state.compaction.is_none();
        if is_done {
            forget_ids(&snapshot, self.keys, &mut step.batch)?;
        }
        step.batch.put(POINTS, &self.keys.state(), &state.encode(&self.options));
        self.store.derived().write(step.batch)?;
        Ok(is_done)
    }
}

impl Step<'_> {
    /// Walks over blocks from the key `from`; the key to go on with, if the end was not reached.
    fn walk(
        &mut self,
        snapshot: &Snapshot,
        from: &[u8],
        bytes_max: usize,
    ) -> Result<Option<Vec<u8>>, FullTextError> {
        let keys = self.keys;
        let (_, to) = keys.tagged(b'p');
        let mut cursor = snapshot.cursor(POSTINGS, KeyRange::new(from, &to), Direction::Forward);
        let mut bytes = 0;
        let mut next = None;
        while let Some((key, value)) = cursor.next()? {
            if bytes >= bytes_max {
                next = Some(key.to_vec());
                break;
            }
            bytes += key.len() + value.len();
            let (term, last) =
                keys.read_block(key).ok_or_else(|| keys.damaged("the key of a block cannot be read"))?;
            if term != self.term.as_slice() {
                self.end_run();
                self.term.clear();
                self.term.extend_from_slice(term);
                self.gatherer.details = TermKind::details(kind_code(term));
            }
            self.block(last, value)?;
        }
        self.end_run();
        Ok(next)
    }

    fn block(&mut self, last: Address, value: &[u8]) -> Result<(), FullTextError> {
        let keys = self.keys;
        let damaged = || keys.damaged("a block of postings cannot be read");
        let mut block = Block::default();
        block.read(value, last).ok_or_else(damaged)?;
        let mut gone = 0;
        for address in &block.addresses {
            gone += u32::from(self.dead.is_dead(*address)?);
        }
        let is_good = gone == 0 && (block.addresses.len() >= FULL_ENOUGH || value.len() >= BLOCK_BYTES);
        if is_good {
            self.end_run();
            return Ok(());
        }
        let is_first = self.gatherer.writer.is_empty();
        if gone == 0 && is_first {
            self.alone = Some(last);
        } else {
            self.delete_alone();
            self.batch.delete(POSTINGS, &keys.block(&self.term, last));
        }
        let (term, batch) = (&self.term, &mut self.batch);
        let mut put = |last, value: &[u8]| batch.put(POSTINGS, &keys.block(term, last), value);
        self.gatherer.add((last, value), keys, &mut self.dead, &mut put)?;
        if self.gatherer.writer.is_empty() {
            self.alone = None;
        }
        Ok(())
    }

    /// What is gathered replaces the block that was alone.
    fn delete_alone(&mut self) {
        if let Some(last) = self.alone.take() {
            self.batch.delete(POSTINGS, &self.keys.block(&self.term, last));
        }
    }

    fn end_run(&mut self) {
        let (keys, term, batch) = (self.keys, &self.term, &mut self.batch);
        let stays = self.alone.take().is_some();
        let mut put = |last, value: &[u8]| {
            if !stays {
                batch.put(POSTINGS, &keys.block(term, last), value);
            }
        };
        self.gatherer.finish(&mut put);
    }
}

/// Removes what is said of the dead, whom no block names any more.
fn forget_ids(snapshot: &Snapshot, keys: Keys, batch: &mut Batch) -> Result<(), FullTextError> {
    let (from, to) = keys.tagged(b'x');
    let mut cursor = snapshot.cursor(CHUNKS, KeyRange::new(&from, &to), Direction::Forward);
    let mut with_dead: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    while let Some((key, bits)) = cursor.next()? {
        if let Some(number) = key.last_chunk::<ADDRESS_BYTES>() {
            with_dead.insert(u32::from_be_bytes(*number), bits.to_vec());
        }
    }
    for (number, bits) in with_dead {
        let key = keys.chunk(ChunkKind::Ids, number);
        let Some(value) = snapshot.get(CHUNKS, &key)? else { continue };
        let ids = read_ids(&value).ok_or_else(|| keys.damaged("a chunk of ids cannot be read"))?;
        let is_alive = |place: u16| !bit(&bits, usize::from(place));
        let living: Vec<(u16, &str)> =
            ids.iter().filter(|(place, _)| is_alive(**place)).map(|(place, id)| (*place, *id)).collect();
        if living.is_empty() {
            batch.delete(CHUNKS, &key);
            batch.delete(CHUNKS, &keys.chunk(ChunkKind::Lengths, number));
        } else if living.len() < ids.len() {
            batch.put(CHUNKS, &key, &ids_record(living.into_iter()));
        }
    }
    Ok(())
}
