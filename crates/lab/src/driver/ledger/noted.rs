//! What one driver has noted of a run's messages, on its way to the ledger of the controller: in pieces, so that no
//! message between them is long however many messages the users have sent.
//!
//! Who sends and who reads may belong to different drivers. A sender's own driver knows what was promised, a
//! recipient's what was deleted; each bit is noted by one of them, so that all parts together are their union.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Bits, Ledger, Sender};

/// A piece is complete when it has this many bytes of bits.
const PIECE_BYTES: usize = 1 << 20;

/// A piece of what one driver has noted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted(Vec<NotedSender>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct NotedSender {
    /// Where the sender stands among the users; the first is 0.
    index: usize,
    messages: u64,
    again: u64,
    promised: Bits,
    uncertain: Bits,
    deleting: Bits,
    deleted: Bits,
}

impl Ledger {
    /// An empty ledger like this one, of another run.
    #[must_use]
    pub fn of_run(&self, run: u32) -> Self {
        Self::new(run, self.senders.len(), self.stride, self.wait)
    }

    /// Everything that was noted here, without what was found in mailboxes.
    #[must_use]
    pub fn noted(&self) -> Vec<Noted> {
        let mut pieces = Vec::new();
        let (mut piece, mut bytes) = (Vec::new(), 0);
        for (index, sender) in self.senders.iter().enumerate() {
            let sender = sender.lock();
            if sender.is_empty() {
                continue;
            }
            let noted = NotedSender::of(index, &sender);
            bytes += noted.bytes();
            piece.push(noted);
            if bytes >= PIECE_BYTES {
                pieces.push(Noted(std::mem::take(&mut piece)));
                bytes = 0;
            }
        }
        if !piece.is_empty() {
            pieces.push(Noted(piece));
        }
        pieces
    }

    /// Adds what a driver has noted. What is of nobody in this run is left out.
    pub fn add(&self, noted: &Noted) {
        for part in &noted.0 {
            let Some(sender) = self.senders.get(part.index) else { continue };
            let mut sender = sender.lock();
            sender.messages += part.messages;
            sender.again += part.again + sender.deleted.common(&part.deleted);
            sender.promised.add(&part.promised);
            sender.uncertain.add(&part.uncertain);
            sender.deleting.add(&part.deleting);
            sender.deleted.add(&part.deleted);
        }
    }
}

impl NotedSender {
    fn of(index: usize, sender: &Sender) -> Self {
        Self {
            index,
            messages: sender.messages,
            again: sender.again,
            promised: sender.promised.clone(),
            uncertain: sender.uncertain.clone(),
            deleting: sender.deleting.clone(),
            deleted: sender.deleted.clone(),
        }
    }

    fn bytes(&self) -> usize {
        let words = [&self.promised, &self.uncertain, &self.deleting, &self.deleted].map(|bits| bits.0.len());
        size_of::<Self>() + words.iter().sum::<usize>() * size_of::<u64>()
    }
}

impl Sender {
    fn is_empty(&self) -> bool {
        self.messages == 0
            && [&self.promised, &self.uncertain, &self.deleting, &self.deleted]
                .iter()
                .all(|bits| bits.0.is_empty())
    }
}

impl Bits {
    /// Sets what is set in the other.
    fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    /// How many bits are set in both.
    fn common(&self, other: &Self) -> u64 {
        self.0.iter().zip(&other.0).map(|(word, other)| u64::from((word & other).count_ones())).sum()
    }
}

/// As base64 of the words, the lowest byte first.
impl Serialize for Bits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
        serializer.serialize_str(&STANDARD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Bits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
        let (words, rest) = bytes.as_chunks::<{ size_of::<u64>() }>();
        if !rest.is_empty() {
            return Err(D::Error::custom("bits are words of eight bytes"));
        }
        Ok(Self(words.iter().map(|word| u64::from_le_bytes(*word)).collect()))
    }
}
