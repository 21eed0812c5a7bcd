//! What a file holds, and which of its writes the device has for certain.

use std::collections::VecDeque;

use rand::Rng;
use rand::rngs::StdRng;

/// What a device writes whole or not at all.
const SECTOR_BYTES: usize = 512;

#[derive(Clone, Copy, Debug)]
enum Change<'journal> {
    Write {
        offset: usize,
        data: &'journal [u8],
    },
    /// The file has this length.
    Cut(usize),
    /// The file has at least this length.
    Extend(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Durable,
    /// Its sync failed and the device did not take it; the system forgets that it was ever to be written.
    Lost,
}

/// A file: what is durable, and the changes since the first that is not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content<'journal> {
    durable: Vec<u8>,
    changes: VecDeque<(Change<'journal>, Fate)>,
    /// Changes that are part of `durable`.
    settled: usize,
}

/// How much of what was not synced survives, the same for a whole file.
#[derive(Clone, Copy)]
enum Survival {
    Nothing,
    Everything,
    /// This many changes, and of the next a part.
    Prefix(usize),
    /// The first changes of the length, and what they added; of what was there before, each sector as it was at a moment
    /// of its own.
    Mixed(usize),
}

impl<'journal> Content<'journal> {
    pub(crate) fn holding(durable: Vec<u8>) -> Self {
        Self { durable, ..Self::default() }
    }

    pub(crate) fn write(&mut self, offset: usize, data: &'journal [u8], is_durable: bool) {
        let fate = if is_durable { Fate::Durable } else { Fate::Open };
        self.changes.push_back((Change::Write { offset, data }, fate));
    }

    pub(crate) fn cut(&mut self, bytes: usize) {
        self.changes.push_back((Change::Cut(bytes), Fate::Open));
    }

    pub(crate) fn extend(&mut self, bytes: usize) {
        self.changes.push_back((Change::Extend(bytes), Fate::Open));
    }

    /// How many changes there were, for [`Content::synced`].
    pub(crate) fn position(&self) -> usize {
        self.settled + self.changes.len()
    }

    /// The first changes up to `position` are durable, unless they were lost before.
    pub(crate) fn synced(&mut self, position: usize) {
        let count = position.saturating_sub(self.settled);
        for (_, fate) in self.changes.iter_mut().take(count).filter(|(_, fate)| *fate == Fate::Open) {
            *fate = Fate::Durable;
        }
        while let Some((change, fate)) = self.changes.pop_front_if(|(_, fate)| *fate != Fate::Open) {
            if fate == Fate::Durable {
                change.apply(&mut self.durable, |_| true);
            }
            self.settled += 1;
        }
    }

    /// A sync failed: the device has taken everything, nothing, or something of what was not durable, and no later
    /// sync says anything of it.
    pub(crate) fn sync_failed(&mut self, random: &mut StdRng) {
        let taken = [0.0, 0.5, 1.0].get(random.random_range(0..3)).copied().unwrap_or_default();
        for (_, fate) in self.changes.iter_mut().filter(|(_, fate)| *fate == Fate::Open) {
            *fate = if random.random_bool(taken) { Fate::Durable } else { Fate::Lost };
        }
    }

    /// What the device may hold now.
    pub(crate) fn image(&self, random: &mut StdRng) -> Vec<u8> {
        let open = self.changes.iter().filter(|(_, fate)| *fate == Fate::Open).count();
        let survival = match random.random_range(0..6) {
            0 => Survival::Nothing,
            1 => Survival::Everything,
            2 | 3 => Survival::Prefix(random.random_range(0..=open)),
            _ => Survival::Mixed(random.random_range(0..=open)),
        };
        let before = self.durable.len() / SECTOR_BYTES;
        let moments: Vec<usize> = match survival {
            Survival::Mixed(_) => (0..before).map(|_| random.random_range(0..=open)).collect(),
            _ => Vec::new(),
        };
        let (mut content, mut longest, mut number) = (self.durable.clone(), self.durable.len(), 0);
        for (change, fate) in &self.changes {
            if *fate == Fate::Durable {
                change.apply(&mut content, |_| true);
            } else if *fate == Fate::Open {
                longest = longest.max(change.end());
                change.survive(&mut content, (survival, &moments), number, random);
                number += 1;
            }
        }
        // A length may be on the device without the data; what was never written is read as zeros.
        if longest > content.len() && random.random_ratio(1, 4) {
            content.resize(longest, 0);
        }
        content
    }

    /// What a program reads now.
    pub(crate) fn current(&self) -> Vec<u8> {
        let mut content = self.durable.clone();
        self.changes.iter().for_each(|(change, _)| change.apply(&mut content, |_| true));
        content
    }
}

impl Change<'_> {
    fn end(self) -> usize {
        match self {
            Self::Write { offset, data } => offset.saturating_add(data.len()),
            Self::Cut(_) => 0,
            Self::Extend(bytes) => bytes,
        }
    }

    fn survive(
        self,
        content: &mut Vec<u8>,
        (survival, moments): (Survival, &[usize]),
        number: usize,
        random: &mut StdRng,
    ) {
        match (survival, self) {
            (Survival::Everything, _) => self.apply(content, |_| true),
            (Survival::Prefix(count), _) if number < count => self.apply(content, |_| true),
            (Survival::Prefix(count), _) if number == count && random.random_bool(0.5) => {
                // The beginning of it, up to some sector.
                let until = random.random_range(0..=self.end().div_ceil(SECTOR_BYTES));
                self.apply(content, |sector| sector < until);
            }
            (Survival::Mixed(count), Self::Write { .. }) => {
                self.apply(content, |sector| number < moments.get(sector).copied().unwrap_or(count));
            }
            (Survival::Mixed(count), _) if number < count => self.apply(content, |_| true),
            _ => {}
        }
    }

    /// Of a write, the sectors that `takes` names, by their numbers in the file.
    fn apply(self, content: &mut Vec<u8>, mut takes: impl FnMut(usize) -> bool) {
        match self {
            Self::Cut(bytes) => content.resize(bytes, 0),
            Self::Extend(bytes) => content.resize(bytes.max(content.len()), 0),
            Self::Write { mut offset, mut data } => {
                while !data.is_empty() {
                    let in_sector = (SECTOR_BYTES - offset % SECTOR_BYTES).min(data.len());
                    let (piece, rest) = data.split_at(in_sector);
                    if takes(offset / SECTOR_BYTES) {
                        let end = offset + piece.len();
                        content.resize(end.max(content.len()), 0);
                        if let Some(place) = content.get_mut(offset..end) {
                            place.copy_from_slice(piece);
                        }
                    }
                    (offset, data) = (offset + in_sector, rest);
                }
            }
        }
    }
}
