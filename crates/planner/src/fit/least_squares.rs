//! Least squares with unknowns that cannot be negative: costs and times are not.

/// An observation: how much of each unknown is in it, what was seen, and what it counts.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Observation {
    pub parts: Vec<f64>,
    pub seen: f64,
    pub weight: f64,
}

impl Observation {
    /// One whose error counts as a part of what was seen, so that large ones do not drown small ones.
    #[must_use]
    pub fn relative(parts: Vec<f64>, seen: f64) -> Self {
        let weight = if seen > 0.0 { 1.0 / (seen * seen) } else { 0.0 };
        Self { parts, seen, weight }
    }

    /// What the unknowns say of it.
    #[must_use]
    pub fn predicted(&self, unknowns: &[f64]) -> f64 {
        self.parts.iter().zip(unknowns).map(|(part, unknown)| part * unknown).sum()
    }
}

const MOST_SWEEPS: usize = 50_000;
const SMALL_ENOUGH: f64 = 1e-13;

/// The unknowns, none below 0, with the least sum of weighted squares. One unknown after the other is set to its best
/// value for the others as they are, until nothing changes: the sum is convex, so that this ends at its least.
#[must_use]
pub fn non_negative(observations: &[Observation], unknowns: usize) -> Vec<f64> {
    let mut normal = vec![vec![0.0; unknowns]; unknowns];
    let mut right = vec![0.0; unknowns];
    for observation in observations {
        for ((one, line), right) in observation.parts.iter().zip(&mut normal).zip(&mut right) {
            *right += observation.weight * one * observation.seen;
            for (other, place) in observation.parts.iter().zip(line) {
                *place += observation.weight * one * other;
            }
        }
    }
    let mut found = vec![0.0; unknowns];
    for _ in 0..MOST_SWEEPS {
        let mut moved: f64 = 0.0;
        for (index, (line, right)) in normal.iter().zip(&right).enumerate() {
            let diagonal = line.get(index).copied().unwrap_or(0.0);
            let Some(before) = found.get(index).copied().filter(|_| diagonal > 0.0) else { continue };
            let sum: f64 = line.iter().zip(&found).map(|(place, unknown)| place * unknown).sum();
            let after = (before + (right - sum) / diagonal).max(0.0);
            moved = moved.max((after - before).abs() / after.abs().max(before.abs()).max(f64::MIN_POSITIVE));
            if let Some(place) = found.get_mut(index) {
                *place = after;
            }
        }
        if moved < SMALL_ENOUGH {
            break;
        }
    }
    found
}

/// Weights are set anew so often; after that nothing changes that could be seen.
const ROUNDS: usize = 12;

/// As [`non_negative`], where errors count as parts of what is predicted, and not of what was seen: else one run that by
/// chance used next to nothing would draw all costs down to it. `least` is what can just be measured, below which
/// an error counts no more for being a large part. The observations leave with the weights that they had at the end.
#[must_use]
pub fn non_negative_by_part(observations: &mut [Observation], unknowns: usize, least: f64) -> Vec<f64> {
    let weigh = |observation: &mut Observation, value: f64| {
        observation.weight = 1.0 / (value * value + least * least).max(f64::MIN_POSITIVE);
    };
    observations.iter_mut().for_each(|observation| weigh(observation, observation.seen));
    let mut found = non_negative(observations, unknowns);
    for _ in 0..ROUNDS {
        observations.iter_mut().for_each(|observation| weigh(observation, observation.predicted(&found)));
        found = non_negative(observations, unknowns);
    }
    found
}

/// The most that predictions are off, as a part of what was seen.
#[must_use]
pub fn worst_error(observations: &[Observation], unknowns: &[f64]) -> f64 {
    let error = |observation: &Observation| {
        (observation.predicted(unknowns) - observation.seen).abs()
            / observation.seen.abs().max(f64::MIN_POSITIVE)
    };
    observations.iter().filter(|observation| observation.weight > 0.0).map(error).fold(0.0, f64::max)
}
