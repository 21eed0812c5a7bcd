//! Which messages were sent, and which of them have arrived: each once with each recipient, byte for byte.
//!
//! A sender's messages are numbered from 1. A delivery, of message `sequence` to its recipient number `place`, is one
//! bit at `(sequence - 1) * stride + place` of the sender's bitmaps, where `stride` is the most recipients that a
//! message of the run has. So a message of three recipients takes six bits, and no list grows.

mod noted;

use std::time::Duration;

use parking_lot::Mutex;
use scrinium_lab_report::run::Deliveries;

use super::failure::{Failure, FailureKind};
use super::letter::Scan;
use crate::content::MessageNumber;

pub use noted::Noted;

/// At most this many wrong deliveries are told one by one.
const TOLD: usize = 10;

/// Bits, all 0 at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Bits(Vec<u64>);

impl Bits {
    /// Sets a bit; says whether it was set before.
    fn set(&mut self, at: usize) -> bool {
        let (word, bit) = (at / 64, 1 << (at % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0.get_mut(word).is_some_and(|word| {
            let before = *word & bit != 0;
            *word |= bit;
            before
        })
    }

    fn has(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word & (1 << (at % 64)) != 0)
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The bits that are set.
    fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(index, word)| {
            (0..64).filter(move |bit| word & (1 << bit) != 0).map(move |bit| index * 64 + bit)
        })
    }
}

/// The deliveries of one sender's messages.
#[derive(Debug, Default)]
struct Sender {
    messages: u64,
    /// The server has promised them.
    promised: Bits,
    /// The answer was lost: they may arrive or not.
    uncertain: Bits,
    /// Were read, as they were sent, and then their recipients asked the server to delete them.
    deleting: Bits,
    /// The server said that it has.
    deleted: Bits,
    /// Were deleted, and came again.
    again: u64,
    /// Lay in a mailbox when these were read.
    found: Bits,
}

/// What a mailbox holds of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMessage {
    /// The message.
    pub number: MessageNumber,
    /// Where the mailbox's owner stands among the recipients.
    pub place: Option<usize>,
    /// What differs from what was sent.
    pub altered: Option<String>,
}

impl FoundMessage {
    /// What was found in this person's mailbox; `None` when the laboratory has not sent it.
    pub(crate) fn of(scan: &Scan, person: &str) -> Option<Self> {
        Some(Self { number: scan.number()?, place: scan.place_of(person), altered: scan.check().err() })
    }
}

/// Notes a wrong delivery as an example, if there are not enough already.
fn tell(deliveries: &mut Deliveries, example: impl FnOnce() -> String) {
    if deliveries.examples.len() < TOLD {
        deliveries.examples.push(example());
    }
}

/// All senders of a run.
#[derive(Debug)]
pub struct Ledger {
    run: u32,
    stride: usize,
    wait: Duration,
    senders: Vec<Mutex<Sender>>,
    /// What was wrong with mailboxes as they were read.
    wrong: Mutex<Deliveries>,
}

impl Ledger {
    /// A ledger for this many users, whose messages have at most `recipients`, and may be on their way for so long after
    /// the run.
    #[must_use]
    pub fn new(run: u32, users: usize, recipients: usize, wait: Duration) -> Self {
        Self {
            run,
            stride: recipients.max(1),
            wait,
            senders: (0..users).map(|_| Mutex::default()).collect(),
            wrong: Mutex::default(),
        }
    }

    /// The run whose messages it knows.
    #[must_use]
    pub fn run(&self) -> u32 {
        self.run
    }

    /// How long messages may be on their way after the run.
    #[must_use]
    pub fn wait(&self) -> Duration {
        self.wait
    }

    fn sender(&self, number: MessageNumber) -> Option<&Mutex<Sender>> {
        let sender = usize::try_from(number.sender).ok()?.checked_sub(1)?;
        self.senders.get(sender).filter(|_| number.run == self.run && number.sequence > 0)
    }

    fn at(&self, number: MessageNumber, place: usize) -> Option<usize> {
        let message = usize::try_from(number.sequence).ok()?.checked_sub(1)?;
        (place < self.stride).then(|| message * self.stride + place)
    }

    /// A message was sent to this many people, and this was the answer.
    pub fn sent<T>(&self, number: MessageNumber, recipients: usize, answer: &Result<T, Failure>) {
        let Some(sender) = self.sender(number) else { return };
        let mut sender = sender.lock();
        let uncertain = match answer {
            Ok(_) => false,
            // A message that was refused will not arrive.
            Err(Failure { kind: FailureKind::Status(_) | FailureKind::Refused, .. }) => return,
            Err(_) => true,
        };
        sender.messages += u64::from(!uncertain);
        for at in (0..recipients).filter_map(|place| self.at(number, place)) {
            if uncertain {
                sender.uncertain.set(at)
            } else {
                sender.promised.set(at)
            };
        }
    }

    /// A recipient has read a message, which was as it was sent, and asks the server to delete it. If the answer is
    /// lost, nobody knows whether the message is still there.
    pub fn deleting(&self, found: &FoundMessage) {
        let (Some(sender), Some(place)) = (self.sender(found.number), found.place) else { return };
        if let Some(at) = self.at(found.number, place) {
            sender.lock().deleting.set(at);
        }
    }

    /// The server has deleted it.
    pub fn deleted(&self, found: &FoundMessage) {
        let (Some(sender), Some(place)) = (self.sender(found.number), found.place) else { return };
        if let Some(at) = self.at(found.number, place) {
            let mut sender = sender.lock();
            let before = sender.deleted.set(at);
            sender.again += u64::from(before);
        }
    }

    /// Forgets what was found, to read all mailboxes again.
    pub fn begin_reading(&self) {
        for sender in &self.senders {
            sender.lock().found = Bits::default();
        }
        *self.wrong.lock() = Deliveries::default();
    }

    /// A message lies in this person's mailbox.
    pub fn found(&self, found: &FoundMessage, person: &str) {
        let Some(sender) = self.sender(found.number) else { return };
        let MessageNumber { sender: number, sequence, .. } = found.number;
        let at = found.place.and_then(|place| self.at(found.number, place));
        let again = at.is_some_and(|at| {
            let mut sender = sender.lock();
            sender.found.set(at) || sender.deleted.has(at)
        });
        let mut wrong = self.wrong.lock();
        if at.is_none() {
            wrong.strayed += 1;
            tell(&mut wrong, || {
                format!("message {sequence} of user {number} reached {person}, who is not a recipient")
            });
        } else if again {
            wrong.twice += 1;
            tell(&mut wrong, || format!("message {sequence} of user {number} reached {person} twice"));
        } else if let Some(why) = &found.altered {
            wrong.altered += 1;
            tell(&mut wrong, || format!("message {sequence} of user {number} to {person}: {why}"));
        }
    }

    /// A mailbox could not be read.
    pub(crate) fn unread(&self, person: &str, failure: &Failure) {
        let mut wrong = self.wrong.lock();
        wrong.unread += 1;
        tell(&mut wrong, || format!("the mailbox of {person} could not be read: {failure}"));
    }

    /// What is known now.
    #[must_use]
    pub fn deliveries(&self) -> Deliveries {
        let mut all = self.wrong.lock().clone();
        for (index, sender) in self.senders.iter().enumerate() {
            let sender = sender.lock();
            all.messages += sender.messages;
            all.promised += sender.promised.count();
            all.uncertain += sender.uncertain.count();
            all.twice += sender.again;
            for at in sender.promised.ones() {
                if sender.found.has(at) || sender.deleting.has(at) {
                    all.delivered += 1;
                    continue;
                }
                all.missing += 1;
                let (sequence, place) = (at / self.stride + 1, at % self.stride + 1);
                tell(&mut all, || {
                    format!("message {sequence} of user {} has not reached recipient {place}", index + 1)
                });
            }
        }
        all
    }
}
