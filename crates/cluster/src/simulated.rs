//! An engine in memory: every transaction takes effect at once, as a whole. It can be told to lie.
//!
//! Delays, lost calls and answers, partitions and lost wake-ups are the business of what stands between a member and
//! the engine, which is its user's.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::{Compare, Operation, Reply, Revision, StoredKey, Transaction};

/// Keys, values and when they were changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SimulatedEngine {
    revision: Revision,
    keys: BTreeMap<Bytes, (Bytes, Revision)>,
}

/// What an engine must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lie {
    /// It forgets the newest entry, as if it had never been answered.
    LoseNewest,
    /// It forgets an entry in the middle.
    LoseMiddle,
    /// It goes back to a former state.
    GoBack,
    /// A bit of an entry is another one.
    FlipBit,
    /// Two entries have changed places.
    Swap,
    /// An entry stands in the place of the next one, too.
    Repeat,
    /// All is gone.
    ForgetGroup,
}

/// All lies.
pub const LIES: [Lie; 7] =
    [Lie::LoseNewest, Lie::LoseMiddle, Lie::GoBack, Lie::FlipBit, Lie::Swap, Lie::Repeat, Lie::ForgetGroup];

impl SimulatedEngine {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Does what is asked, at one moment.
    pub fn transact(&mut self, transaction: &Transaction) -> Reply {
        let succeeded = transaction.compares.iter().all(|compare| self.holds(compare));
        let operations = if succeeded { &transaction.then } else { &transaction.otherwise };
        let writes =
            |operation: &Operation| matches!(operation, Operation::Put { .. } | Operation::Delete { .. });
        if operations.iter().any(writes) {
            self.revision.0 += 1;
        }
        let found = operations.iter().filter_map(|operation| self.operate(operation)).collect();
        Reply { revision: self.revision, succeeded, found }
    }

    /// The newest state.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// How many keys begin with `prefix`.
    #[must_use]
    pub fn count(&self, prefix: &[u8]) -> usize {
        self.keys.keys().filter(|key| key.starts_with(prefix)).count()
    }

    /// Lies about the entries, whose keys begin with `entries`. `former` is the engine as it once was. Answers whether anything
    /// is another way now.
    pub fn lie(&mut self, lie: Lie, entries: &[u8], former: &Self, chance: u64) -> bool {
        let keys: Vec<Bytes> = self.keys.keys().filter(|key| key.starts_with(entries)).cloned().collect();
        let Some(last) = keys.len().checked_sub(1) else { return false };
        let at = usize::try_from(chance).unwrap_or(0) % keys.len();
        let before = self.clone();
        match lie {
            Lie::LoseNewest => {
                keys.get(last).map(|key| self.keys.remove(key));
            }
            Lie::LoseMiddle => {
                keys.get(at.min(last.saturating_sub(1))).map(|key| self.keys.remove(key));
            }
            Lie::GoBack => *self = former.clone(),
            Lie::FlipBit => {
                if let Some((value, _)) = keys.get(at).and_then(|key| self.keys.get_mut(key)) {
                    *value = flipped(value, chance);
                }
            }
            Lie::Swap => self.exchange(keys.get(at), keys.get(at.saturating_sub(1)), true),
            Lie::Repeat => self.exchange(keys.get(at), keys.get(at.saturating_sub(1)), false),
            Lie::ForgetGroup => self.keys.clear(),
        }
        *self != before
    }

    /// Puts the value of `from` into the place of `to`, and, if they are `swapped`, the other way round. Revisions stay where they
    /// were, so that nothing but the bytes shows it.
    fn exchange(&mut self, to: Option<&Bytes>, from: Option<&Bytes>, swapped: bool) {
        let (Some(to), Some(from)) = (to, from) else { return };
        let value =
            |keys: &BTreeMap<Bytes, (Bytes, Revision)>, key| keys.get(key).map(|(value, _)| value.clone());
        let (Some(first), Some(second)) = (value(&self.keys, from), value(&self.keys, to)) else { return };
        self.keys.entry(to.clone()).and_modify(|stored| stored.0 = first);
        if swapped {
            self.keys.entry(from.clone()).and_modify(|stored| stored.0 = second);
        }
    }

    fn holds(&self, compare: &Compare) -> bool {
        match compare {
            Compare::Unchanged { key, since } => {
                self.keys.get(key).is_some_and(|(_, changed)| changed == since)
            }
            Compare::Absent { key } => !self.keys.contains_key(key),
        }
    }

    fn operate(&mut self, operation: &Operation) -> Option<Vec<StoredKey>> {
        match operation {
            Operation::Put { key, value } => {
                self.keys.insert(key.clone(), (value.clone(), self.revision));
                None
            }
            Operation::Delete { from, to } => {
                self.keys.retain(|key, _| key < from || key >= to);
                None
            }
            Operation::Get { key } => Some(self.keys.get_key_value(key).map(stored).into_iter().collect()),
            Operation::Range { from, to, .. } if from >= to => Some(Vec::new()),
            Operation::Range { from, to, limit, descending: false } => {
                Some(self.keys.range(from.clone()..to.clone()).take(*limit).map(stored).collect())
            }
            Operation::Range { from, to, limit, descending: true } => {
                Some(self.keys.range(from.clone()..to.clone()).rev().take(*limit).map(stored).collect())
            }
        }
    }
}

fn stored((key, (value, revision)): (&Bytes, &(Bytes, Revision))) -> StoredKey {
    StoredKey { key: key.clone(), value: value.clone(), revision: *revision }
}

fn flipped(value: &Bytes, chance: u64) -> Bytes {
    let mut bytes = value.to_vec();
    let bits = bytes.len().saturating_mul(8).max(1);
    let bit = usize::try_from(chance >> 8).unwrap_or(0) % bits;
    if let Some(byte) = bytes.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
    bytes.into()
}
