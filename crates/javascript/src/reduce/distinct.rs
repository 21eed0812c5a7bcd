//! `_approx_count_distinct`: about how many different keys there are, to within 2.3 % (one standard error).
//!
//! A HyperLogLog of precision 11 over 64-bit digests, as in CouchDB and as HyperLogLog++ has it; in place of
//! its tables of measured bias the count is estimated by the formula of O. Ertl ("New cardinality estimation
//! algorithms for HyperLogLog sketches", 2017), which has no bias to correct.
//!
//! A state is a JSON string of digits to the base 64: one for the rank of each register, or, where that is
//! shorter, three for each register that is not zero, of which two are its number and one is its rank.

use xxhash_rust::xxh3::xxh3_64;

use crate::error::ScriptError;

const PRECISION: u32 = 11;
const REGISTERS: usize = 1 << PRECISION;

/// Bits of a digest beyond those that name its register. A rank is the number of zeros that they begin with,
/// and one.
const RANK_BITS: usize = 64 - PRECISION as usize;

const DIGITS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

struct Sketch([u8; REGISTERS]);

/// The state for these keys.
pub(super) fn of_keys<'a>(keys: impl Iterator<Item = &'a str>) -> String {
    let mut sketch = Sketch([0; REGISTERS]);
    for key in keys {
        let digest = xxh3_64(key.as_bytes());
        // The bit set below the rest of the digest ends its zeros.
        let zeros = (digest << PRECISION | 1 << (PRECISION - 1)).leading_zeros();
        sketch.raise(usize::try_from(digest >> RANK_BITS).unwrap_or_default(), zeros + 1);
    }
    sketch.encode()
}

/// The state for the keys of all these states.
pub(super) fn union<'a>(states: impl Iterator<Item = &'a str>) -> Result<String, ScriptError> {
    let mut sketch = Sketch([0; REGISTERS]);
    for state in states {
        for (register, rank) in Sketch::decode(state)?.0.into_iter().enumerate() {
            sketch.raise(register, rank.into());
        }
    }
    Ok(sketch.encode())
}

/// How many keys a state stands for, about.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate is finite and positive"
)]
pub(super) fn estimate(state: &str) -> Result<u64, ScriptError> {
    Ok(Sketch::decode(state)?.estimate().round() as u64)
}

impl Sketch {
    fn raise(&mut self, register: usize, rank: u32) {
        if let (Some(highest), Ok(rank)) = (self.0.get_mut(register), u8::try_from(rank)) {
            *highest = rank.max(*highest);
        }
    }

    fn encode(&self) -> String {
        let digit = |value: usize| DIGITS.get(value % 64).map_or('0', |digit| char::from(*digit));
        let raised = || self.0.iter().enumerate().filter(|(_, rank)| **rank > 0);
        let digits: String = if raised().count() * 3 < REGISTERS {
            raised()
                .flat_map(|(register, rank)| [register / 64, register, (*rank).into()])
                .map(digit)
                .collect()
        } else {
            self.0.iter().map(|rank| digit((*rank).into())).collect()
        };
        format!("\"{digits}\"")
    }

    fn decode(state: &str) -> Result<Self, ScriptError> {
        let no_state =
            || ScriptError::Json { message: "this is no state of _approx_count_distinct".to_owned() };
        let digits = state.trim_ascii().strip_prefix('"').and_then(|state| state.strip_suffix('"'));
        let value = |digit: u8| DIGITS.iter().position(|known| *known == digit);
        let digits: Option<Vec<usize>> = digits.ok_or_else(no_state)?.bytes().map(value).collect();
        let digits = digits.ok_or_else(no_state)?;
        let mut sketch = Self([0; REGISTERS]);
        let rank = |rank: usize| u32::try_from(rank.min(RANK_BITS + 1)).unwrap_or_default();
        if digits.len() == REGISTERS {
            for (register, digit) in digits.into_iter().enumerate() {
                sketch.raise(register, rank(digit));
            }
            return Ok(sketch);
        }
        for entry in digits.chunks(3) {
            let [high, low, digit] = *entry else { return Err(no_state()) };
            sketch.raise(high * 64 + low, rank(digit));
        }
        Ok(sketch)
    }

    fn estimate(&self) -> f64 {
        let mut with_rank = [0_u32; RANK_BITS + 2];
        for rank in self.0 {
            if let Some(count) = with_rank.get_mut(usize::from(rank)) {
                *count += 1;
            }
        }
        let part =
            |rank: usize| f64::from(with_rank.get(rank).copied().unwrap_or_default()) / REGISTERS as f64;
        let mut sum = tau(1.0 - part(RANK_BITS + 1));
        for rank in (1..=RANK_BITS).rev() {
            sum = 0.5 * (sum + part(rank));
        }
        sum += sigma(part(0));
        REGISTERS as f64 / (2.0 * std::f64::consts::LN_2 * sum)
    }
}

/// Ertl's series for registers that are zero. It converges within a hundred terms, or not at all if all are.
fn sigma(zeros: f64) -> f64 {
    let (mut power, mut weight, mut sum) = (zeros, 1.0, zeros);
    for _ in 0..100 {
        power *= power;
        let before = sum;
        sum += power * weight;
        weight += weight;
        if sum <= before {
            return sum;
        }
    }
    f64::INFINITY
}

/// Ertl's series for registers that are full.
fn tau(full: f64) -> f64 {
    if full <= 0.0 || full >= 1.0 {
        return 0.0;
    }
    let (mut root, mut weight, mut sum) = (full, 1.0, 1.0 - full);
    for _ in 0..100 {
        root = root.sqrt();
        let before = sum;
        weight *= 0.5;
        sum -= (1.0 - root).powi(2) * weight;
        if sum >= before {
            break;
        }
    }
    sum / 3.0
}
