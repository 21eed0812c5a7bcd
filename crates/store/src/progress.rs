//! The position of the tree in the log, and how much of the log a crash would read again.

use std::collections::VecDeque;

use parking_lot::Mutex;
use scrinium_assertion::never;
use scrinium_log::Sequence;

/// Positions are remembered this many bytes apart.
const MARK_BYTES: u64 = 1 << 20;

/// Far more than lie between two checkpoints; beyond, the oldest ones are dropped, which only makes
/// [`Progress::unflushed_bytes`] an estimate from below.
const MAX_MARKS: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Progress {
    state: Mutex<ProgressState>,
}

#[derive(Debug, Default)]
struct ProgressState {
    /// Bytes applied since the store was opened.
    applied_bytes: u64,
    /// Of these, bytes known to be in synced files.
    flushed_bytes: u64,
    flushed: Sequence,
    /// A record, and the bytes applied up to it.
    marks: VecDeque<(Sequence, u64)>,
}

impl Progress {
    /// Records that `bytes` more were applied, up to the record `last`. Tells how many are not in synced files.
    pub(crate) fn applied(&self, last: Sequence, bytes: u64) -> u64 {
        let mut state = self.state.lock();
        if state.marks.back().is_some_and(|(mark, _)| mark.0 > last.0) {
            never!("records are applied in their order", "{last:?} after {:?}", state.marks.back());
        }
        state.applied_bytes += bytes;
        let applied_bytes = state.applied_bytes;
        if state.marks.back().is_none_or(|(_, marked)| applied_bytes - marked >= MARK_BYTES) {
            if state.marks.len() >= MAX_MARKS {
                state.marks.pop_front();
            }
            state.marks.push_back((last, applied_bytes));
        }
        applied_bytes - state.flushed_bytes
    }

    /// Records that everything up to `position` is in synced files. False if that was known.
    pub(crate) fn flushed(&self, position: Sequence) -> bool {
        let mut state = self.state.lock();
        if position.0 <= state.flushed.0 {
            return false;
        }
        state.flushed = position;
        while let Some((_, bytes)) = state.marks.front().copied().filter(|(mark, _)| mark.0 <= position.0) {
            state.flushed_bytes = bytes;
            state.marks.pop_front();
        }
        true
    }

    /// Bytes of log that a crash now would read again, to within a megabyte.
    pub(crate) fn unflushed_bytes(&self) -> u64 {
        let state = self.state.lock();
        state.applied_bytes - state.flushed_bytes
    }
}
