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

/// With more unknowns than this there would be too many choices to try them all.
const MOST_UNKNOWNS: usize = 12;

/// Below this part of itself, what is left of an unknown is rounding: the others say all of it.
const NOTHING_LEFT: f64 = 1e-10;

/// The unknowns, at most twelve, none below 0, with the least sum of weighted squares. At the best some of them are 0
/// and the others solve the plain equations; with so few every choice of those is tried, so that the answer is exact.
#[must_use]
pub fn non_negative(observations: &[Observation], unknowns: usize) -> Vec<f64> {
    let unknowns = unknowns.min(MOST_UNKNOWNS);
    // Each row has its right-hand side at its end.
    let mut normal = vec![vec![0.0; unknowns + 1]; unknowns];
    for observation in observations {
        for (one, line) in observation.parts.iter().zip(&mut normal) {
            let with_right =
                observation.parts.iter().take(unknowns).chain(std::iter::once(&observation.seen));
            for (other, place) in with_right.zip(line) {
                *place += observation.weight * one * other;
            }
        }
    }
    // In units in which each unknown counts alike.
    let scales: Vec<f64> = normal
        .iter()
        .enumerate()
        .map(|(index, line)| line.get(index).copied().unwrap_or(0.0).sqrt())
        .map(|scale| if scale > 0.0 { 1.0 / scale } else { 0.0 })
        .collect();
    for (line, scale) in normal.iter_mut().zip(&scales) {
        let others = scales.iter().chain(std::iter::once(&1.0));
        line.iter_mut().zip(others).for_each(|(place, other)| *place *= scale * other);
    }
    let mut best = (0.0, vec![0.0; unknowns]);
    for choice in 1_u32..1 << unknowns {
        let Some(found) = solved(&normal, choice) else { continue };
        if found.iter().any(|unknown| *unknown < 0.0) {
            continue;
        }
        // At a solution the sum of squares is less by this than with nothing at all.
        let gain: f64 =
            normal.iter().zip(&found).map(|(line, unknown)| line.last().unwrap_or(&0.0) * unknown).sum();
        if gain > best.0 {
            best = (gain, found);
        }
    }
    best.1.iter().zip(&scales).map(|(unknown, scale)| unknown * scale).collect()
}

/// The equations of the chosen unknowns, solved; the others are 0. `None` where they do not tell all of these.
fn solved(normal: &[Vec<f64>], choice: u32) -> Option<Vec<f64>> {
    let is_chosen = |index: usize| choice >> index & 1 == 1;
    let mut rows: Vec<Vec<f64>> = normal
        .iter()
        .enumerate()
        .filter(|(index, _)| is_chosen(*index))
        .map(|(_, line)| {
            let all = line.iter().enumerate();
            all.filter(|(index, _)| *index == normal.len() || is_chosen(*index))
                .map(|(_, place)| *place)
                .collect()
        })
        .collect();
    for pivot in 0..rows.len() {
        let mut row = rows.get(pivot)?.clone();
        let scale = *row.get(pivot)?;
        if scale < NOTHING_LEFT {
            return None;
        }
        row.iter_mut().for_each(|place| *place /= scale);
        for other in rows.iter_mut() {
            let factor = *other.get(pivot)?;
            other.iter_mut().zip(&row).for_each(|(place, part)| *place -= factor * part);
        }
        *rows.get_mut(pivot)? = row;
    }
    let mut found = rows.iter().map(|row| row.last().copied());
    (0..normal.len()).map(|index| if is_chosen(index) { found.next().flatten() } else { Some(0.0) }).collect()
}

/// Weights are set again so often; after that nothing changes that could be seen.
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
