//! A folder as a session has told it to its client.

use crate::numbers::{NumberSet, TooManyRanges};

/// Ranges of ghosts that a view keeps. A client that never lets the server tell what is gone is sent away beyond it.
const GHOST_RANGES_MAX: usize = 1 << 14;

/// What the counters of a folder say at one snapshot, of the messages that the person may see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FolderState {
    /// The folder's last change: arrivals, departures, flags, and marks of the person.
    pub change: u64,
    /// Every UID is below it.
    pub uid_next: u32,
    /// How many messages there are.
    pub count: u32,
    /// The greatest UID that is there, or 0.
    pub last_uid: u32,
}

/// Messages that have left and that the client still numbers: UIDs without a gap, which then have numbers without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GhostRange {
    /// The smallest UID.
    pub first_uid: u32,
    /// The greatest UID.
    pub last_uid: u32,
    /// The number of the first one.
    pub first_number: u32,
    /// Ghosts with smaller UIDs.
    before: u32,
}

impl GhostRange {
    fn count(&self) -> u32 {
        self.last_uid - self.first_uid + 1
    }

    fn last_number(&self) -> u32 {
        self.first_number.saturating_add(self.count() - 1)
    }
}

/// What a session keeps of a selected folder: a few numbers, and ranges of what left and was not announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderView {
    folder: u64,
    uid_validity: u32,
    state: FolderState,
    ghosts: Vec<GhostRange>,
    /// There were more ranges of ghosts than may be: the session ends.
    is_lost: bool,
}

impl FolderView {
    /// A folder that is selected now.
    #[must_use]
    pub fn new(folder: u64, uid_validity: u32, state: FolderState) -> Self {
        Self { folder, uid_validity, state, ghosts: Vec::new(), is_lost: false }
    }

    /// The number of the folder, as the storage knows it.
    #[must_use]
    pub fn folder(&self) -> u64 {
        self.folder
    }

    /// UIDs of another value are other messages.
    #[must_use]
    pub fn uid_validity(&self) -> u32 {
        self.uid_validity
    }

    /// The state that the view was brought up to.
    #[must_use]
    pub fn state(&self) -> FolderState {
        self.state
    }

    /// How many numbers there are: messages, and ghosts.
    #[must_use]
    pub fn exists(&self) -> u32 {
        self.state.count.saturating_add(self.ghost_count())
    }

    /// How many ghosts there are.
    #[must_use]
    pub fn ghost_count(&self) -> u32 {
        self.ghosts.last().map_or(0, |last| last.before.saturating_add(last.count()))
    }

    /// Whether numbers cannot be kept any longer.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Bytes that it holds beyond its own size.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.ghosts.capacity() * size_of::<GhostRange>()
    }

    /// Brings the view up to a later state. `left` are the UIDs of all messages that left since the state that the view has, in
    /// any order; `position` says how many messages of the new state have smaller UIDs than this one.
    pub fn catch_up(
        &mut self,
        state: FolderState,
        left: impl IntoIterator<Item = u32>,
        mut position: impl FnMut(u32) -> u32,
    ) {
        let mut gone = NumberSet::default();
        for range in &self.ghosts {
            // There are no more than fitted before.
            let _ = gone.insert_range(range.first_uid, range.last_uid, GHOST_RANGES_MAX);
        }
        let before = gone.count();
        for uid in left {
            // What came and left in between was never numbered.
            if uid == 0 || uid >= self.state.uid_next {
                continue;
            }
            if let Err(TooManyRanges(_)) = gone.insert(uid, GHOST_RANGES_MAX) {
                self.is_lost = true;
                return;
            }
        }
        self.state = state;
        if gone.count() == before {
            return;
        }
        let mut ghosts = Vec::with_capacity(gone.ranges().len());
        let mut count = 0_u32;
        for (first_uid, last_uid) in gone.ranges().iter().copied() {
            let first_number = position(first_uid).saturating_add(count).saturating_add(1);
            ghosts.push(GhostRange { first_uid, last_uid, first_number, before: count });
            count = count.saturating_add(last_uid - first_uid + 1);
        }
        self.ghosts = ghosts;
    }

    /// The number of a message that is there, by its position: how many messages of the state have smaller UIDs. `None` if the
    /// client numbers no such message.
    #[must_use]
    pub fn number_of(&self, uid: u32, position: u32) -> Option<u32> {
        if uid >= self.state.uid_next {
            return None;
        }
        let below = self.ghosts.partition_point(|range| range.first_uid <= uid);
        let before = match below.checked_sub(1).and_then(|at| self.ghosts.get(at)) {
            Some(range) if uid <= range.last_uid => return None,
            Some(range) => range.before.saturating_add(range.count()),
            None => 0,
        };
        position.checked_add(before)?.checked_add(1)
    }

    /// Where the messages of these numbers lie: the first position, and how many. Ghosts between them are left out.
    #[must_use]
    pub fn positions(&self, first_number: u32, last_number: u32) -> Option<(u32, u32)> {
        let last_number = last_number.min(self.exists());
        if first_number == 0 || first_number > last_number {
            return None;
        }
        let from = (first_number - 1).checked_sub(self.ghosts_before(first_number))?;
        let to = last_number.checked_sub(self.ghosts_before(last_number.saturating_add(1)))?;
        let count = to.checked_sub(from).filter(|count| *count > 0)?;
        Some((from, count))
    }

    /// How many of these numbers are ghosts'.
    #[must_use]
    pub fn ghosts_between(&self, first_number: u32, last_number: u32) -> u32 {
        let last_number = last_number.min(self.exists());
        if first_number > last_number {
            return 0;
        }
        self.ghosts_before(last_number.saturating_add(1)).saturating_sub(self.ghosts_before(first_number))
    }

    /// Ghosts with smaller numbers than this.
    fn ghosts_before(&self, number: u32) -> u32 {
        let below = self.ghosts.partition_point(|range| range.first_number < number);
        let Some(range) = below.checked_sub(1).and_then(|at| self.ghosts.get(at)) else { return 0 };
        let inside = number.min(range.last_number().saturating_add(1)) - range.first_number;
        range.before.saturating_add(inside)
    }

    /// Takes the ghost with the greatest number, to be announced: those that are left keep their numbers.
    pub fn take_last_ghost(&mut self) -> Option<u32> {
        let last = self.ghosts.last_mut()?;
        let number = last.last_number();
        if last.first_uid == last.last_uid {
            self.ghosts.pop();
        } else {
            last.last_uid -= 1;
        }
        Some(number)
    }

    /// Takes up to this many ranges of ghosts from the end, to be announced by UID.
    pub fn take_last_ranges(&mut self, ranges_max: usize) -> NumberSet {
        let from = self.ghosts.len().saturating_sub(ranges_max);
        NumberSet::of_ranges(self.ghosts.drain(from..).map(|range| (range.first_uid, range.last_uid)))
    }
}
