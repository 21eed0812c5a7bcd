//! What an import passed over: counted, and named by its first few.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Of each kind this many are named.
const NAMED: usize = 5;

/// What was passed over, by reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PassedOver(BTreeMap<&'static str, PassedKind>);

/// What was passed over for one reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PassedKind {
    /// How many files, folders or messages.
    pub count: u64,
    /// The first of them.
    pub first: Vec<PathBuf>,
}

impl PassedOver {
    pub(super) fn add(&mut self, reason: &'static str, path: &Path) {
        let kind = self.0.entry(reason).or_default();
        kind.count += 1;
        if kind.first.len() < NAMED && kind.first.last().is_none_or(|last| last != path) {
            kind.first.push(path.to_owned());
        }
    }

    /// How many there are of all kinds.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.values().map(|kind| kind.count).sum()
    }

    /// Reasons, and what was passed over for them.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, &PassedKind)> {
        self.0.iter().map(|(reason, kind)| (*reason, kind))
    }
}
