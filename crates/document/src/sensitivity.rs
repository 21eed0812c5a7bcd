//! Which differences of texts count in an order, and the collators that see no others.

use std::sync::LazyLock;

use icu_collator::options::{CaseLevel, CollatorOptions, Strength};
use icu_collator::{Collator, CollatorBorrowed, CollatorPreferences};

use crate::ascii::LEVEL_END;

/// Which differences of texts count where they are sorted; by default all, as in CouchDB's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sensitivity {
    /// `a` and `A` differ.
    pub case: bool,
    /// `a` and `ä` differ.
    pub accent: bool,
}

impl Sensitivity {
    /// Every difference counts.
    pub const FULL: Self = Self { case: true, accent: true };
}

impl Default for Sensitivity {
    fn default() -> Self {
        Self::FULL
    }
}

impl Sensitivity {
    /// The root locale's collator that sees these differences and no others. Its data is compiled in, so that it is
    /// never `None`.
    pub(crate) fn collator(self) -> Option<&'static CollatorBorrowed<'static>> {
        static ALL: LazyLock<[Option<CollatorBorrowed<'static>>; 4]> = LazyLock::new(|| {
            let all = [(false, false), (true, false), (false, true), (true, true)];
            all.map(|(case, accent)| Sensitivity { case, accent }.new_collator())
        });
        let [neither, case, accent, both] = &*ALL;
        match (self.case, self.accent) {
            (false, false) => neither,
            (true, false) => case,
            (false, true) => accent,
            (true, true) => both,
        }
        .as_ref()
    }

    fn new_collator(self) -> Option<CollatorBorrowed<'static>> {
        let mut options = CollatorOptions::default();
        options.strength = Some(match (self.case, self.accent) {
            (true, true) => Strength::Tertiary,
            (false, true) => Strength::Secondary,
            (_, false) => Strength::Primary,
        });
        // Case is of the third level, accents are of the second: the third alone has to be asked for.
        options.case_level = (self.case && !self.accent).then_some(CaseLevel::On);
        Collator::try_new(CollatorPreferences::default(), options).ok()
    }

    /// How many levels of a full key this one has, where it is the beginning of the full one.
    const fn levels(self) -> Option<usize> {
        match (self.case, self.accent) {
            (true, true) => Some(3),
            (false, true) => Some(2),
            (false, false) => Some(1),
            (true, false) => None,
        }
    }

    /// Whether keys are the beginnings of full ones, so that those of ASCII text can be [cut](Self::cut) from them.
    pub(crate) const fn is_cut(self) -> bool {
        self.levels().is_some()
    }

    /// Leaves of the full collation key that begins at `start` what counts.
    pub(crate) fn cut(self, out: &mut Vec<u8>, start: usize) {
        let Some(levels) = self.levels().filter(|levels| *levels < 3) else { return };
        let ends = out.iter().enumerate().skip(start).filter(|(_, byte)| **byte == LEVEL_END);
        if let Some(end) = ends.map(|(place, _)| place).nth(levels - 1) {
            out.truncate(end);
        }
    }
}
