//! Records that wait to be stored: bounded in number and bytes, and in how many of a kind come in a minute. What finds no
//! place is counted.

use std::collections::VecDeque;

use jiff::Timestamp;

use super::record::{Class, Record};

/// Records that may wait, for the time that the disk is full or slow.
const RECORDS_MAX: usize = 10_000;

/// And their bytes together.
const BYTES_MAX: usize = 8 << 20;

/// Records that wait.
#[derive(Default)]
pub(super) struct Queue {
    closed: bool,
    records: VecDeque<Record>,
    bytes: usize,
    /// The minute since 1970 that `admitted` counts.
    minute: i64,
    admitted: [usize; Class::ALL.len()],
    left_out: [u64; Class::ALL.len()],
}

impl Queue {
    /// Takes no more, and forgets what waits.
    pub(super) fn close(&mut self) {
        *self = Self { closed: true, ..Self::default() };
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether a record may be made that is one of no more than `limit` of its kind in this minute; else it is counted.
    pub(super) fn admits(&mut self, class: Class, now: Timestamp, limit: usize) -> bool {
        if self.closed {
            return false;
        }
        let minute = minute_of(now);
        if minute != self.minute {
            (self.minute, self.admitted) = (minute, [0; Class::ALL.len()]);
        }
        let Some(admitted) = self.admitted.get_mut(class as usize) else { return false };
        *admitted += 1;
        if *admitted > limit || self.is_full() {
            self.leave_out(class, 1);
            return false;
        }
        true
    }

    pub(super) fn is_full(&self) -> bool {
        self.records.len() >= RECORDS_MAX || self.bytes >= BYTES_MAX
    }

    /// Adds a record; counts it where there is no room.
    pub(super) fn push(&mut self, class: Class, record: Record) {
        if self.closed {
            return;
        }
        if self.is_full() {
            return self.leave_out(class, 1);
        }
        self.bytes += record.json.len();
        self.records.push_back(record);
    }

    pub(super) fn leave_out(&mut self, class: Class, count: u64) {
        if let Some(left_out) = self.left_out.get_mut(class as usize) {
            *left_out += count;
        }
    }

    /// The oldest records, as many as `take` takes.
    pub(super) fn take(&mut self, take: impl FnOnce(&mut VecDeque<Record>) -> Vec<Record>) -> Vec<Record> {
        let taken = take(&mut self.records);
        self.bytes -= taken.iter().map(|record| record.json.len()).sum::<usize>();
        taken
    }

    /// How many were left out of each kind since this was asked last.
    pub(super) fn take_left_out(&mut self) -> Vec<(Class, u64)> {
        let counts = std::mem::take(&mut self.left_out);
        Class::ALL.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect()
    }
}

pub(super) fn minute_of(time: Timestamp) -> i64 {
    time.as_second().div_euclid(60)
}
