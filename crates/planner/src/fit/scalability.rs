//! The Universal Scalability Law: how throughput grows, and shrinks, with those who ask at once.
//!
//! Source: N. J. Gunther, "Guerrilla Capacity Planning", 2007, chapter 6.

use serde::{Deserialize, Serialize};

use super::least_squares::{Observation, non_negative};

/// `X(N) = λN / (1 + σ(N − 1) + κN(N − 1))`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scalability {
    /// λ: requests a second of one who asks without a pause.
    pub one_per_s: f64,
    /// σ: the part of the work that waits for its turn (contention).
    pub contention: f64,
    /// κ: what keeping each informed about the others costs (coherency).
    pub coherency: f64,
}

impl Scalability {
    /// Fitted to pairs of those who ask at once, from 1 up, and requests answered a second. `None` of fewer than three
    /// different ones.
    ///
    /// N / X is linear in 1/λ, σ/λ and κ/λ, none of which is negative, so the best fit is found without a search that
    /// could lose its way; errors count as parts of X.
    #[must_use]
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let observations: Vec<Observation> = points
            .iter()
            .filter(|(asking, per_s)| *asking >= 1.0 && *per_s > 0.0)
            .map(|(asking, per_s)| {
                let others = asking - 1.0;
                Observation::relative(vec![1.0, others, asking * others], asking / per_s)
            })
            .collect();
        let mut different: Vec<f64> = points.iter().map(|(asking, _)| *asking).collect();
        different.sort_by(f64::total_cmp);
        different.dedup();
        if different.len() < 3 || observations.len() < 3 {
            return None;
        }
        let found = non_negative(&observations, 3);
        let [inverse, contention, coherency] = found.as_slice() else { return None };
        (*inverse > 0.0).then(|| Self {
            one_per_s: 1.0 / inverse,
            contention: contention / inverse,
            coherency: coherency / inverse,
        })
    }

    /// Requests a second when this many ask at once.
    #[must_use]
    pub fn per_s(&self, asking: f64) -> f64 {
        let others = (asking - 1.0).max(0.0);
        self.one_per_s * asking / (1.0 + self.contention * others + self.coherency * asking * others)
    }

    /// How many who ask at once are answered most, and how much; infinite where nothing holds them up.
    #[must_use]
    pub fn most(&self) -> (f64, f64) {
        if self.coherency > 0.0 {
            let asking = ((1.0 - self.contention).max(0.0) / self.coherency).sqrt().max(1.0);
            return (asking, self.per_s(asking));
        }
        let most = if self.contention > 0.0 { self.one_per_s / self.contention } else { f64::INFINITY };
        (f64::INFINITY, most)
    }
}
