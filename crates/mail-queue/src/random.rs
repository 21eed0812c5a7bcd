//! Chance that a seed repeats.

/// Numbers that follow from a seed (SplitMix64): for jitter and for choosing among equals, not for secrets.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        let number = u128::from(self.number()) * u128::from(end);
        u64::try_from(number >> 64).unwrap_or(0)
    }

    /// `time_ms`, up to `percent` of it shorter or longer.
    pub fn jittered(&mut self, time_ms: u64, percent: u64) -> u64 {
        let spread = time_ms.saturating_mul(percent.min(100)) / 100;
        time_ms.saturating_sub(spread).saturating_add(self.below(spread.saturating_mul(2).saturating_add(1)))
    }

    /// Puts a list into an order of chance.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            let chosen = usize::try_from(self.below(end as u64 + 1)).unwrap_or(0);
            list.swap(end, chosen);
        }
    }
}
