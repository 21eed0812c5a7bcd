//! Comparing what lies in different orders.

/// Counts records and adds up what they say, so that two sets of them can be compared that lie in different orders,
/// in no memory: equal sets have equal tallies, and others do not but by a chance of one in 2^128.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many there are.
    pub count: u64,
    sum: u128,
}

impl Tally {
    /// Adds a record, in its parts.
    pub fn add(&mut self, parts: &[&[u8]]) {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        let mut digest = [0; 16];
        hasher.finalize_xof().fill(&mut digest);
        self.count += 1;
        self.sum = self.sum.wrapping_add(u128::from_be_bytes(digest));
    }
}
