//! What a client has done after a number of steps, made from numbers alone: each step follows from the seed, the client and
//! what it has done before.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub(crate) const CLIENTS: usize = 4;
const DOCUMENTS: usize = 6;

/// A document as a client made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) n: u64,
    pub(crate) text: String,
    pub(crate) attachment: Option<Vec<u8>>,
}

/// Everything that one client has made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) documents: BTreeMap<String, Made>,
    /// Which of its documents are in its two folders.
    pub(crate) folders: [BTreeSet<String>; 2],
    pub(crate) read: BTreeSet<String>,
    pub(crate) databases: BTreeSet<String>,
}

/// One update, which is there as a whole or not at all.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// The document is made or changed, and put into the first folder.
    Edit(String, Made),
    Delete(String),
    /// From one folder to the other.
    Move(String, usize),
    Mark(String, bool),
    CreateDatabase(String),
    DeleteDatabase(String),
}

pub(crate) fn folder(client: usize, which: usize) -> String {
    format!("{} {client}", ["Inbox", "Archive"][which])
}

pub(crate) fn person(client: usize) -> String {
    format!("person {client}")
}

/// This many bytes that do not compress.
fn noise(random: &mut StdRng, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|_| random.random()).collect()
}

impl Client {
    /// What `client` has after the first `steps` of its steps.
    pub(crate) fn after(seed: u64, client: usize, steps: u64) -> Self {
        let mut state = Self::default();
        for number in 0..steps {
            let step = state.next(seed, client, number);
            state.take(step);
        }
        state
    }

    /// Its step with this number.
    pub(crate) fn next(&self, seed: u64, client: usize, number: u64) -> Step {
        let mut random = StdRng::seed_from_u64(seed ^ (client as u64) << 56 ^ number << 20);
        let random = &mut random;
        let id = format!("{client}-{}", random.random_range(0..DOCUMENTS));
        let known = self.documents.contains_key(&id);
        match random.random_range(0..12) {
            0 if known => Step::Delete(id),
            1 | 2 if known => {
                let from = usize::from(self.folders[1].contains(&id));
                Step::Move(id, from)
            }
            3 | 4 if known => Step::Mark(id.clone(), !self.read.contains(&id)),
            5 => {
                let name = format!("own/{client}/{}", random.random_range(0..3));
                if self.databases.contains(&name) {
                    Step::DeleteDatabase(name)
                } else {
                    Step::CreateDatabase(name)
                }
            }
            _ => {
                // Short ones stay in the document, longer ones become contents.
                let text = "some text ".repeat(random.random_range(0..3) * 150);
                let bytes = random.random_range(1..20_000);
                let attachment = random.random_ratio(1, 3).then(|| noise(random, bytes));
                Step::Edit(id, Made { n: number, text, attachment })
            }
        }
    }

    pub(crate) fn take(&mut self, step: Step) {
        match step {
            Step::Edit(id, made) => {
                self.documents.insert(id.clone(), made);
                self.read.remove(&id);
                if !self.folders[1].contains(&id) {
                    self.folders[0].insert(id);
                }
            }
            Step::Delete(id) => {
                self.documents.remove(&id);
                self.read.remove(&id);
                for folder in &mut self.folders {
                    folder.remove(&id);
                }
            }
            Step::Move(id, from) => {
                self.folders[from].remove(&id);
                self.folders[1 - from].insert(id);
            }
            Step::Mark(id, true) => drop(self.read.insert(id)),
            Step::Mark(id, false) => drop(self.read.remove(&id)),
            Step::CreateDatabase(name) => drop(self.databases.insert(name)),
            Step::DeleteDatabase(name) => drop(self.databases.remove(&name)),
        }
    }
}
