//! Identifiers for `/_uuids`, after CouchDB's `sequential` algorithm: 26 random hexadecimal digits kept
//! for a while, then 6 that grow, so that documents made one after another lie side by side.

use parking_lot::Mutex;
use rand::Rng;

/// The growing part has 24 bits.
const LAST: u32 = 0x00FF_FFFF;

/// Steps are random up to this, so that an identifier does not tell the next one (CouchDB: 0xFFE).
const LARGEST_STEP: u32 = 0xFFE;

/// Makes identifiers, each later in order than the one before until the prefix changes.
pub(crate) struct UuidSequence(Mutex<Sequence>);

struct Sequence {
    prefix: [u8; 13],
    last: u32,
}

impl UuidSequence {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Sequence {
            prefix: rand::rng().random(),
            last: rand::rng().random_range(1..LARGEST_STEP),
        }))
    }

    /// A new identifier: 32 hexadecimal digits.
    pub(crate) fn next(&self) -> String {
        use std::fmt::Write;
        let mut random = rand::rng();
        let mut sequence = self.0.lock();
        sequence.last += random.random_range(1..LARGEST_STEP);
        if sequence.last > LAST {
            sequence.prefix = random.random();
            sequence.last = random.random_range(1..LARGEST_STEP);
        }
        let mut text = String::with_capacity(32);
        for byte in sequence.prefix {
            let _ = write!(text, "{byte:02x}");
        }
        let _ = write!(text, "{:06x}", sequence.last);
        text
    }
}
