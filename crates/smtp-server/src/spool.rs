//! The text of a message while it comes: in memory while there is room for it, else in a file.

use std::io;
use std::sync::Arc;

use scrinium_accounting::{Account, Claim, Resource};
use scrinium_mail::{MessageSource, SourceWriter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Room is taken in pieces of this size.
const GRAIN_BYTES: usize = 4 << 10;

/// Room for the texts of all messages that are coming in. Clones share it.
#[derive(Clone)]
pub struct SpoolBudget {
    memory: Arc<Semaphore>,
    files: Arc<Semaphore>,
    /// A longer text goes into a file, whatever room there is.
    message_bytes: usize,
}

impl SpoolBudget {
    /// `memory_bytes` and `file_bytes` for all messages together; of the first, one message takes `message_bytes` at most.
    #[must_use]
    pub fn new(memory_bytes: usize, file_bytes: usize, message_bytes: usize) -> Self {
        let grains =
            |bytes: usize| Arc::new(Semaphore::new((bytes / GRAIN_BYTES).min(Semaphore::MAX_PERMITS)));
        Self { memory: grains(memory_bytes), files: grains(file_bytes), message_bytes }
    }

    /// A text of which nothing arrived yet. It counts for `account`, if there is one, as well.
    pub(crate) fn begin(&self, account: Option<&Account>) -> Spool {
        Spool {
            message_bytes: self.message_bytes,
            memory: Room::of(&self.memory, account, Resource::Bytes),
            file: Room::of(&self.files, account, Resource::FileBytes),
            writer: SourceWriter::in_memory(),
        }
    }
}

/// What a text takes of one kind of room.
struct Room {
    grains: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    account: Option<Account>,
    resource: Resource,
    claim: Option<Claim>,
}

impl Room {
    fn of(grains: &Arc<Semaphore>, account: Option<&Account>, resource: Resource) -> Self {
        Self { grains: Arc::clone(grains), permit: None, account: account.cloned(), resource, claim: None }
    }

    /// Takes what is missing to `bytes`; whether there was so much.
    fn grow_to(&mut self, bytes: u64) -> bool {
        let held = self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = usize::try_from(bytes.div_ceil(GRAIN_BYTES as u64)).unwrap_or(usize::MAX);
        let Some(more) = wanted.checked_sub(held).filter(|more| *more > 0) else { return true };
        let Ok(grains) = u32::try_from(more) else { return false };
        let Ok(permit) = Arc::clone(&self.grains).try_acquire_many_owned(grains) else { return false };
        if !self.claim_more(more * GRAIN_BYTES) {
            return false;
        }
        match &mut self.permit {
            Some(held) => held.merge(permit),
            none => *none = Some(permit),
        }
        true
    }

    fn claim_more(&mut self, bytes: usize) -> bool {
        match (&mut self.claim, &self.account) {
            (Some(claim), _) => claim.grow(bytes).is_ok(),
            (None, Some(account)) => {
                self.claim = account.claim(self.resource, bytes).ok();
                self.claim.is_some()
            }
            (None, None) => true,
        }
    }

    fn give_back(&mut self) {
        (self.permit, self.claim) = (None, None);
    }
}

/// The text of one message.
pub(crate) struct Spool {
    /// A longer text goes into the file.
    message_bytes: usize,
    memory: Room,
    file: Room,
    writer: SourceWriter,
}

impl Spool {
    /// Keeps `piece` if there is memory for it. A text that is in a file is not in memory again.
    pub(crate) fn keep(&mut self, piece: &[u8]) -> bool {
        let length = self.writer.len() + piece.len() as u64;
        let fits = !self.writer.is_in_file() && length <= self.message_bytes as u64;
        fits && self.memory.grow_to(length) && self.writer.push(piece).is_ok()
    }

    /// Writes `piece` into the file, with what was in memory before it. It blocks for as long as the disk does.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::QuotaExceeded`] where there is no room for more.
    pub(crate) fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        if !self.file.grow_to(self.writer.len() + piece.len() as u64) {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        self.writer.leave_memory();
        self.writer.push(piece)?;
        self.memory.give_back();
        Ok(())
    }

    /// The whole text, and the room that it takes until that is dropped.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn finish(self) -> io::Result<(MessageSource, SpoolRoom)> {
        let room = SpoolRoom { memory: self.memory, _file: self.file };
        Ok((self.writer.finish(0)?, room))
    }
}

/// What a whole text takes.
pub(crate) struct SpoolRoom {
    memory: Room,
    _file: Room,
}

impl SpoolRoom {
    /// Takes more memory; whether there is so much.
    pub(crate) fn hold_memory(&mut self, bytes: usize) -> bool {
        let held = self.memory.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits) * GRAIN_BYTES;
        self.memory.grow_to((held + bytes) as u64)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use scrinium_accounting::{AccountOptions, Accounts, Holder};

    use super::*;

    fn all(spool: Spool) -> Vec<u8> {
        spool.finish().unwrap().0.bytes().unwrap().to_vec()
    }

    #[test]
    fn a_text_goes_into_a_file_where_there_is_no_memory_for_it() {
        let budget = SpoolBudget::new(12 << 10, 1 << 20, 8 << 10);
        let piece = vec![b'a'; 5000];
        let mut first = budget.begin(None);
        assert!(first.keep(&piece));
        assert!(!first.keep(&piece), "longer than one message may be");
        first.write(&piece).unwrap();
        assert!(!first.keep(b"short"), "it stays in the file");
        let (mut second, mut third) = (budget.begin(None), budget.begin(None));
        assert!(second.keep(&piece), "the first has given its memory back");
        assert!(!third.keep(&piece));
        assert!(third.keep(b"short"));
        drop(second);
        assert!(third.keep(&piece));
        assert_eq!(all(first), [&piece[..], &piece].concat());
        assert_eq!(all(third), [b"short".as_slice(), &piece].concat());
    }

    #[test]
    fn one_network_takes_its_share_and_all_together_the_whole() {
        let mut options = AccountOptions::default();
        (options.network.bytes, options.network.file_bytes) = (8 << 10, 16 << 10);
        let accounts = Accounts::new(options);
        let network = |address: &str| {
            let holder = Holder::Network(accounts.network(address.parse().unwrap()));
            accounts.account(&holder)
        };
        let budget = SpoolBudget::new(1 << 20, 24 << 10, 1 << 20);
        let (here, there) = (network("192.0.2.1"), network("198.51.100.1"));
        let piece = vec![b'a'; 8 << 10];
        let mut first = budget.begin(Some(&here));
        assert!(first.keep(&piece));
        let mut second = budget.begin(Some(&here));
        assert!(!second.keep(b"more"), "its network has all its memory");
        second.write(&piece).unwrap();
        second.write(&piece).unwrap();
        assert_eq!(second.write(b"more").unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
        let mut other = budget.begin(Some(&there));
        assert!(other.keep(&piece), "another network is as free as ever");
        other.write(b"").unwrap();
        assert_eq!(
            other.write(b"more").unwrap_err().kind(),
            io::ErrorKind::QuotaExceeded,
            "all files together"
        );
        drop(second);
        other.write(b"more").unwrap();
        drop((first, other));
        assert_eq!((here.held(Resource::Bytes), here.held(Resource::FileBytes)), (0, 0));
    }
}
