//! All statistics of one process, by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::{Operation, OperationSummary};

type Gauge = Arc<dyn Fn() -> f64 + Send + Sync>;

/// All statistics of one process. Clones share them.
#[derive(Clone, Default)]
pub struct Registry {
    entries: Arc<RwLock<Entries>>,
    /// What all names begin with that are registered through this clone.
    prefix: Arc<str>,
}

#[derive(Default)]
struct Entries {
    counters: BTreeMap<String, Counter>,
    /// Counters that others keep.
    counted: BTreeMap<String, fn() -> u64>,
    gauges: BTreeMap<String, Gauge>,
    operations: BTreeMap<String, Operation>,
}

impl Registry {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same registry for a part that there are several of: every name that it registers begins with `prefix`.
    #[must_use]
    pub fn within(&self, prefix: &str) -> Self {
        Self { entries: Arc::clone(&self.entries), prefix: format!("{}{prefix}", self.prefix).into() }
    }

    fn full(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The counter called `name`, made when it is asked for the first time.
    #[must_use]
    pub fn counter(&self, name: &str) -> Counter {
        self.entries.write().counters.entry(self.full(name)).or_default().clone()
    }

    /// Registers a number that only grows and that is kept elsewhere; a later one of the same name replaces it.
    pub fn count_of(&self, name: &str, read: fn() -> u64) {
        self.entries.write().counted.insert(self.full(name), read);
    }

    /// Registers a value that is read when somebody asks; a later one of the same name replaces it.
    pub fn gauge(&self, name: &str, read: impl Fn() -> f64 + Send + Sync + 'static) {
        self.entries.write().gauges.insert(self.full(name), Arc::new(read));
    }

    /// The histogram of the operation called `name`, made when it is asked for the first time.
    #[must_use]
    pub fn operation(&self, name: &str) -> Operation {
        self.entries.write().operations.entry(self.full(name)).or_default().clone()
    }

    /// Reads everything. Values of different names are not from the same instant.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        // Gauges may take locks of their owners, so they are read after ours is given back.
        let (counters, counted, gauges, operations) = {
            let entries = self.entries.read();
            let (counters, counted) = (entries.counters.clone(), entries.counted.clone());
            (counters, counted, entries.gauges.clone(), entries.operations.clone())
        };
        let counters = counters.into_iter().map(|(name, counter)| (name, counter.value()));
        let counted = counted.into_iter().map(|(name, read)| (name, read()));
        Snapshot {
            counters: counters.chain(counted).collect(),
            gauges: gauges.into_iter().map(|(name, read)| (name, read())).collect(),
            operations: operations.into_iter().map(|(name, operation)| (name, operation.summary())).collect(),
        }
    }
}

/// A number that only grows. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    value: Arc<AtomicU64>,
}

impl Counter {
    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        self.value.fetch_add(amount, Ordering::Relaxed);
    }

    /// The sum of all that was added.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

/// Everything a [`Registry`] held at one time, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Numbers that only grow.
    pub counters: BTreeMap<String, u64>,
    /// Values as they stood.
    pub gauges: BTreeMap<String, f64>,
    /// Latencies by operation.
    pub operations: BTreeMap<String, OperationSummary>,
}
