//! An operation at several places, in rounds that alternate between them: what it costs at a size, compared with what it costs at
//! another one.

#![allow(clippy::indexing_slicing, reason = "a benchmark stops at the first error")]

use crate::{Against, Line, median, report, scatter, timed};

/// Compares an operation at several sizes with what it costs at the first. `operation` gets the place of the size and a
/// random number; rounds alternate between the sizes, and each is a median of this many operations, in microseconds.
///
/// # Panics
/// Without sizes.
pub fn compare_sizes(
    bench: &str,
    case: &str,
    sizes: &[u64],
    operations: u64,
    operation: impl FnMut(usize, u64),
) {
    let values = alternate(case, sizes, operations, operation);
    let (smallest, against) = (values[0].clone(), format!("the same at {} documents", sizes[0]));
    for (size, values) in sizes.iter().zip(&values).skip(1) {
        report(&Line {
            name: bench,
            case: &format!("{case}, {size} documents"),
            values,
            unit: "us",
            against: Against::Measured(&against, &smallest),
        });
    }
}

/// The median time of an operation at each of several places, in microseconds, round by round; rounds alternate between
/// the places. `operation` gets the number of the place and a random number.
#[must_use]
pub fn alternate<T: std::fmt::Display>(
    case: &str,
    places: &[T],
    operations: u64,
    mut operation: impl FnMut(usize, u64),
) -> Vec<Vec<f64>> {
    const ROUNDS: u64 = 7;
    let mut values: Vec<Vec<f64>> = places.iter().map(|_| Vec::new()).collect();
    // The first round warms up and is not counted.
    for seed in 0..=ROUNDS {
        for (place, values) in values.iter_mut().enumerate() {
            let times: Vec<f64> = (0..operations)
                .map(|count| {
                    let ((), took) = timed(|| operation(place, scatter(seed << 32 ^ count)));
                    took.as_secs_f64() * 1e6
                })
                .collect();
            let us = median(&times);
            eprintln!("{case}: {us:.1} us at {}", places[place]);
            if seed > 0 {
                values.push(us);
            }
        }
    }
    values
}
