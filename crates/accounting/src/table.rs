//! A table of fixed size, whose entries push each other out.
//!
//! A key is kept as a digest under a random key of this process, so that nobody can choose keys that meet, and the
//! table holds no names. Each digest has one set of a few places: a look-up reads one set, whatever is in the table.

use std::hash::{BuildHasher, Hash, RandomState};

use parking_lot::Mutex;

/// Places of one set.
const PLACES: usize = 8;

/// A key's digest: two of 64 bits, so that keys do not meet by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Print(u64, u64);

/// What may stand in the table.
pub(crate) trait Entry: Clone + Default {
    /// How much it is worth to keep it at `now_ms`; the least goes first.
    fn worth(&self, now_ms: u64) -> u64;
}

pub(crate) struct Table<E> {
    sets: Vec<Mutex<Vec<(Print, E)>>>,
    keys: (RandomState, RandomState),
}

impl<E: Entry> Table<E> {
    /// A table of about `kept` entries.
    pub(crate) fn new(kept: usize) -> Self {
        let sets = kept.div_ceil(PLACES).max(1);
        let sets = std::iter::repeat_with(|| Mutex::new(Vec::new())).take(sets).collect();
        Self { sets, keys: (RandomState::new(), RandomState::new()) }
    }

    pub(crate) fn print(&self, key: &impl Hash) -> Print {
        Print(self.keys.0.hash_one(key), self.keys.1.hash_one(key))
    }

    fn set(&self, print: Print) -> Option<&Mutex<Vec<(Print, E)>>> {
        let sets = self.sets.len() as u64;
        self.sets.get(usize::try_from(print.0.checked_rem(sets)?).ok()?)
    }

    /// A copy of the entry.
    pub(crate) fn get(&self, print: Print) -> Option<E> {
        let set = self.set(print)?.lock();
        set.iter().find(|(held, _)| *held == print).map(|(_, entry)| entry.clone())
    }

    /// Takes the entry out.
    pub(crate) fn remove(&self, print: Print) {
        let Some(set) = self.set(print) else { return };
        set.lock().retain(|(held, _)| *held != print);
    }

    /// Changes the entry, or a new one, which may push another one out.
    pub(crate) fn change<T: Default>(
        &self,
        print: Print,
        now_ms: u64,
        change: impl FnOnce(&mut E) -> T,
    ) -> T {
        let Some(set) = self.set(print) else { return T::default() };
        let mut set = set.lock();
        if let Some((_, entry)) = set.iter_mut().find(|(held, _)| *held == print) {
            return change(entry);
        }
        if set.len() >= PLACES {
            let least = set.iter().enumerate().min_by_key(|(_, (_, entry))| entry.worth(now_ms));
            if let Some(least) = least.map(|(index, _)| index) {
                set.swap_remove(least);
            }
        }
        let mut entry = E::default();
        let changed = change(&mut entry);
        set.push((print, entry));
        changed
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.sets.iter().map(|set| set.lock().len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Number(u64);

    impl Entry for Number {
        fn worth(&self, _: u64) -> u64 {
            self.0
        }
    }

    #[test]
    fn however_many_keys_come_no_more_are_kept() {
        let table = Table::<Number>::new(64);
        for key in 0..10_000_u64 {
            let print = table.print(&key);
            table.change(print, 0, |number| number.0 = key);
            assert_eq!(table.get(print).map(|number| number.0), Some(key), "the newest is always there");
            assert!(table.len() <= 64);
        }
        // What is worth most stays.
        assert!(table.get(table.print(&0)).is_none());
    }
}
