//! A message while it comes: its head is kept, its body is hashed.

use crate::dkim::{BodyDigests, BodyHasher};
use crate::head::HEAD_BYTES_MAX;

/// Takes a message in pieces of any size, in memory of its head's.
#[derive(Clone, Default)]
pub struct MessageReader {
    head: Vec<u8>,
    /// How much of CR LF CR LF has been read. A message may begin with the empty line.
    end: HeadEnd,
    hasher: BodyHasher,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HeadEnd {
    InLine,
    AfterReturn,
    #[default]
    AfterLine,
    AfterLineAndReturn,
    Reached,
}

/// A message that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadMessage {
    /// Its head, as [`split_message`](crate::split_message) has it; of one that is too long one byte more than is looked at.
    pub head: Vec<u8>,
    /// The digests of its body.
    pub digests: BodyDigests,
}

impl MessageReader {
    /// More of the message.
    pub fn update(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while let (Some((byte, after)), true) = (rest.split_first(), self.end != HeadEnd::Reached) {
            self.end = match (self.end, byte) {
                (HeadEnd::AfterLine, b'\r') => HeadEnd::AfterLineAndReturn,
                (_, b'\r') => HeadEnd::AfterReturn,
                (HeadEnd::AfterLineAndReturn, b'\n') => HeadEnd::Reached,
                (HeadEnd::AfterReturn, b'\n') => HeadEnd::AfterLine,
                _ => HeadEnd::InLine,
            };
            if self.head.len() <= HEAD_BYTES_MAX {
                self.head.push(*byte);
            }
            rest = after;
        }
        if self.end == HeadEnd::Reached {
            self.hasher.update(rest);
        }
    }

    /// The message is whole.
    #[must_use]
    pub fn finish(mut self) -> ReadMessage {
        // The empty line is none of the head's.
        if self.end == HeadEnd::Reached && self.head.len() <= HEAD_BYTES_MAX {
            self.head.truncate(self.head.len().saturating_sub(2));
        }
        ReadMessage { head: self.head, digests: self.hasher.finish() }
    }
}
