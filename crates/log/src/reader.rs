//! Reading records in order.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use scrinium_assertion::never;

use crate::extent::{self, FIRST_FRAME};
use crate::frame::take_record;
use crate::recovery::Live;
use crate::system::System;
use crate::walk::{FrameFinding, Walk};
use crate::{Log, LogError, Sequence};

/// One record as it was appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub sequence: Sequence,
    /// What was appended. Records that were read together share memory (256 KiB or one frame): copy
    /// what is to be kept for long.
    pub bytes: Bytes,
}

/// Records in order, up to the last one that was there when the reader was made. It ends after an error.
pub struct Reader<'log> {
    place: FramePlace<'log>,
    /// The number of the next record of `payload`, or of the next frame.
    next: u64,
    /// Records before this one are passed over.
    from: u64,
    /// The number after the last record to read.
    end: u64,
    left_in_frame: u32,
    payload: Bytes,
}

/// Where the next frame is looked for.
struct FramePlace<'log> {
    log: std::marker::PhantomData<&'log Log>,
    system: Arc<dyn System>,
    dir: PathBuf,
    key: u64,
    extent_bytes: u64,
    extents: VecDeque<Live>,
    walk: Option<Walk>,
    offset: u64,
}

impl<'log> Reader<'log> {
    /// `extents` begins with the one that holds `from`.
    pub(crate) fn new(
        system: Arc<dyn System>,
        dir: PathBuf,
        (key, extent_bytes): (u64, u64),
        extents: VecDeque<Live>,
        from: u64,
        end: u64,
    ) -> Self {
        let next = extents.front().map_or(end, |live| live.first);
        let log = std::marker::PhantomData;
        let place =
            FramePlace { log, system, dir, key, extent_bytes, extents, walk: None, offset: FIRST_FRAME };
        // Nothing to read: not even the frames before `end` need a look.
        let next = if from == end { end } else { next };
        Self { place, next, from, end, left_in_frame: 0, payload: Bytes::new() }
    }

    fn read(&mut self) -> Result<Option<Record>, LogError> {
        while self.next < self.end {
            if self.left_in_frame == 0 {
                (self.left_in_frame, self.payload) = self.place.next_frame(self.next)?;
            }
            let Some(bytes) = take_record(&mut self.payload) else {
                return Err(self.place.damaged("the lengths of a frame's records exceed it"));
            };
            let sequence = Sequence(self.next);
            self.next += 1;
            self.left_in_frame -= 1;
            if self.left_in_frame == 0 && !self.payload.is_empty() {
                return Err(self.place.damaged("a frame holds more than its records"));
            }
            if sequence.0 >= self.from {
                return Ok(Some(Record { sequence, bytes }));
            }
        }
        Ok(None)
    }
}

impl FramePlace<'_> {
    /// The count and payload of the frame that begins with record `expected`, here or in the next extent.
    fn next_frame(&mut self, expected: u64) -> Result<(u32, Bytes), LogError> {
        // At most two rounds: here, and at the beginning of the next extent.
        loop {
            let walk = match &mut self.walk {
                Some(walk) => walk,
                None => self.walk.insert(self.open()?),
            };
            let problem = match walk.frame(self.offset)? {
                FrameFinding::Frame(header, payload) if header.first == expected => {
                    self.offset += header.frame_bytes();
                    return Ok((header.records, payload));
                }
                FrameFinding::Frame(..) => "a frame does not continue the log",
                FrameFinding::BrokenPayload(_) => "a frame's content is not what was written",
                FrameFinding::Nothing(_) => {
                    if self.extents.get(1).is_some_and(|next| next.first == expected) {
                        self.extents.pop_front();
                        self.walk = None;
                        self.offset = FIRST_FRAME;
                        continue;
                    }
                    "a frame is missing or its header is not what was written"
                }
            };
            return Err(self.damaged(problem));
        }
    }

    fn open(&self) -> Result<Walk, LogError> {
        let live = self.extents.front();
        let number = live.ok_or_else(|| never!("an extent holds the records that are left"))?.number;
        let path = extent::path(&self.dir, number);
        Walk::open(&*self.system, &path, self.key, number, self.extent_bytes)
    }

    fn damaged(&self, problem: &'static str) -> LogError {
        let file = self.walk.as_ref().map(|walk| walk.path.clone()).unwrap_or_else(|| {
            never!("what is damaged was read");
            self.dir.clone()
        });
        LogError::Damaged { file, offset: self.offset, problem }
    }
}

impl Iterator for Reader<'_> {
    type Item = Result<Record, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.read();
        if record.is_err() {
            self.next = self.end;
        }
        record.transpose()
    }
}
