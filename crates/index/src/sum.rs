//! Sums that do not drift.

/// A sum of doubles kept to about 106 bits as two doubles, so that adding and taking away in any order gives the
/// sum that adding up afresh gives, far beyond the 53 bits that are shown.
///
/// (T. J. Dekker, "A floating-point technique for extending the available precision", 1971.)
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    high: f64,
    low: f64,
}

impl Sum {
    /// One value; what is not finite counts as 0.
    pub(crate) fn of(value: f64) -> Self {
        Self { high: if value.is_finite() { value } else { 0.0 }, low: 0.0 }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let (high, error) = two_sum(self.high, other.high);
        if !high.is_finite() {
            return Self { high: f64::MAX.copysign(high), low: 0.0 };
        }
        let (low, low_error) = two_sum(self.low, other.low);
        let (high, error) = quick_two_sum(high, error + low);
        let (high, low) = quick_two_sum(high, error + low_error);
        Self { high, low }
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        self.plus(Self { high: -other.high, low: -other.low })
    }

    /// Whether so much was taken away (or so much more than a double can hold was added before) that what is left may be
    /// off by more than its last bits, and should be added up afresh.
    pub(crate) fn is_doubtful_after(self, taken: Self) -> bool {
        const SCALE: f64 = (1_u64 << 50) as f64;
        let overflowed = taken.high != 0.0 && self.high.abs() > f64::MAX / 8.0;
        overflowed || (taken.high.abs() > SCALE && self.high.abs() * SCALE < taken.high.abs())
    }

    /// The nearest double; never a negative zero.
    pub(crate) fn value(self) -> f64 {
        self.high + self.low + 0.0
    }

    pub(crate) fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let (high, low) = bytes.split_at_mut(8);
        high.copy_from_slice(&self.high.to_le_bytes());
        low.copy_from_slice(&self.low.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        let bits = u128::from_le_bytes(bytes);
        #[allow(clippy::cast_possible_truncation, reason = "each half of the bits is one double")]
        let (high, low) = (f64::from_bits(bits as u64), f64::from_bits((bits >> 64) as u64));
        Self { high, low }
    }
}

/// Adds `other` to `sums`, column by column.
pub(crate) fn add_all(sums: &mut [Sum], other: &[Sum]) {
    for (sum, other) in sums.iter_mut().zip(other) {
        *sum = sum.plus(*other);
    }
}

/// The rounded sum, and exactly what rounding took off.
fn two_sum(left: f64, right: f64) -> (f64, f64) {
    let sum = left + right;
    let of_right = sum - left;
    (sum, (left - (sum - of_right)) + (right - of_right))
}

/// As [`two_sum`] where `left` is the greater by magnitude.
fn quick_two_sum(left: f64, right: f64) -> (f64, f64) {
    let sum = left + right;
    (sum, right - (sum - left))
}
