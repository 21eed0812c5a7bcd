//! The names in folders, and which of their changes the device has for certain.

use std::collections::BTreeMap;

use rand::Rng;
use rand::rngs::StdRng;

/// A file or folder, whatever its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node(pub(crate) usize);

/// A folder, and a name in it.
pub(crate) type NamePlace = (Node, String);

/// Places are taken from the first list, and then those of the second lead to a node.
#[derive(Clone, Debug)]
struct Change {
    removed: Option<NamePlace>,
    added: Option<(NamePlace, Node)>,
    is_durable: bool,
}

impl Change {
    fn is_in(&self, folder: Node) -> bool {
        self.removed.as_ref().is_some_and(|place| place.0 == folder)
            || self.added.as_ref().is_some_and(|(place, _)| place.0 == folder)
    }

    /// The folder whose other changes it is in one order with.
    fn folder(&self) -> Option<Node> {
        self.added.as_ref().map(|(place, _)| place.0).or_else(|| self.removed.as_ref().map(|place| place.0))
    }

    fn apply(&self, names: &mut BTreeMap<NamePlace, Node>) {
        if let Some(place) = &self.removed {
            names.remove(place);
        }
        if let Some((place, node)) = &self.added {
            names.insert(place.clone(), *node);
        }
    }
}

/// All names: as a program sees them, as they are durable, and the changes between.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    current: BTreeMap<NamePlace, Node>,
    durable: BTreeMap<NamePlace, Node>,
    changes: Vec<Change>,
    settled: usize,
}

impl Names {
    pub(crate) fn find(&self, folder: Node, name: &str) -> Option<Node> {
        self.current.get(&(folder, name.to_owned())).copied()
    }

    /// One step: a name goes, a name comes, or both.
    pub(crate) fn change(&mut self, removed: Option<NamePlace>, added: Option<(NamePlace, Node)>) {
        let change = Change { removed, added, is_durable: false };
        change.apply(&mut self.current);
        self.changes.push(change);
    }

    /// As [`Names::change`], on the device from the start.
    pub(crate) fn add_durable(&mut self, place: NamePlace, node: Node) {
        self.current.insert(place.clone(), node);
        self.durable.insert(place, node);
    }

    pub(crate) fn position(&self) -> usize {
        self.settled + self.changes.len()
    }

    /// The changes in `folder` up to `position` are durable.
    pub(crate) fn synced(&mut self, folder: Node, position: usize) {
        let count = position.saturating_sub(self.settled);
        self.changes.iter_mut().take(count).filter(|change| change.is_in(folder)).for_each(|change| {
            change.is_durable = true;
        });
        let settled = self.changes.iter().take_while(|change| change.is_durable).count();
        self.changes.drain(..settled).for_each(|change| change.apply(&mut self.durable));
        self.settled += settled;
    }

    /// What the device may hold: either the changes up to some moment, as a file system's journal keeps them; or those
    /// of each folder up to a moment of its own, which is all that is promised where there is no such journal.
    pub(crate) fn image(&self, random: &mut StdRng) -> BTreeMap<NamePlace, Node> {
        let mut names = self.durable.clone();
        let certain = self.changes.iter().rposition(|change| change.is_durable).map_or(0, |last| last + 1);
        let journalled = random.random_bool(0.5);
        let until = match random.random_range(0..4) {
            0 => certain,
            1 => self.changes.len(),
            _ => random.random_range(certain..=self.changes.len()),
        };
        let mut untils = BTreeMap::new();
        for (index, change) in self.changes.iter().enumerate() {
            let open_until =
                *untils.entry(change.folder()).or_insert_with(|| random.random_range(0..=self.changes.len()));
            if change.is_durable || index < if journalled { until } else { open_until } {
                change.apply(&mut names);
            }
        }
        names
    }

    pub(crate) fn current(&self) -> &BTreeMap<NamePlace, Node> {
        &self.current
    }
}
