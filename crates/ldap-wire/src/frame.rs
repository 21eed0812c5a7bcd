//! Messages put together from bytes that come in pieces of any size.

use thiserror::Error;

use crate::ber::{SEQUENCE, read_length};
use crate::limits::Fault;

/// Why bytes are no message. The connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// A message longer than the limit is announced.
    #[error("a message of {announced_bytes} bytes, and at most {limit_bytes} are taken")]
    TooLong {
        /// Its length with its head, as it says.
        announced_bytes: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// The first byte is not that of a message.
    #[error("a message begins with the byte 0x30, and not with {0:#04x}")]
    Start(u8),
    /// Its length is not one.
    #[error(transparent)]
    Length(Fault),
}

/// Puts messages together. It holds no more than what has arrived of one message, and looks at no byte twice but those of a
/// message's head.
#[derive(Clone, Debug)]
pub struct MessageReader {
    limit_bytes: usize,
    buffer: Vec<u8>,
    /// Known once the head is whole.
    whole_bytes: Option<usize>,
}

impl MessageReader {
    /// Nothing has arrived yet; a message has at most `limit_bytes`.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, buffer: Vec::new(), whole_bytes: None }
    }

    /// Another limit from the next message on: a server takes more after a bind.
    pub fn set_limit(&mut self, limit_bytes: usize) {
        self.limit_bytes = limit_bytes;
    }

    /// Whether nothing of a message has arrived. TLS may begin only then (RFC 4511, section 4.14.1).
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Takes bytes; says how many, and gives a message when it is whole. What is left is for the next call; without a
    /// message all bytes were taken.
    ///
    /// # Errors
    /// [`FrameError`]
    pub fn read(&mut self, bytes: &[u8]) -> Result<(usize, Option<Vec<u8>>), FrameError> {
        let mut taken = 0;
        loop {
            let rest = bytes.get(taken..).unwrap_or_default();
            if let Some(whole_bytes) = self.whole_bytes {
                let missing = whole_bytes.saturating_sub(self.buffer.len());
                let part = rest.get(..missing.min(rest.len())).unwrap_or_default();
                self.buffer.extend_from_slice(part);
                taken += part.len();
                if self.buffer.len() < whole_bytes {
                    return Ok((taken, None));
                }
                self.whole_bytes = None;
                return Ok((taken, Some(std::mem::take(&mut self.buffer))));
            }
            let Some(byte) = rest.first() else { return Ok((taken, None)) };
            self.buffer.push(*byte);
            taken += 1;
            self.head()?;
        }
    }

    /// Looks at the head of a message, of ten bytes at most.
    fn head(&mut self) -> Result<(), FrameError> {
        let Some((first, rest)) = self.buffer.split_first() else { return Ok(()) };
        if *first != SEQUENCE {
            return Err(FrameError::Start(*first));
        }
        if let Some((octets, length)) = read_length(rest).map_err(FrameError::Length)? {
            let announced_bytes = length.saturating_add(octets + 1);
            if announced_bytes > self.limit_bytes {
                return Err(FrameError::TooLong { announced_bytes, limit_bytes: self.limit_bytes });
            }
            self.whole_bytes = Some(announced_bytes);
        }
        Ok(())
    }
}
