//! Words drawn as in a natural language.

use scrinium_bench::scatter;

/// A number of words, the frequent ones as much more often as in a natural language.
pub(crate) fn words(seed: u64, count: u64) -> String {
    let mut text = String::new();
    for at in 0..count {
        let random = scatter(seed << 20 ^ at);
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a word's rank"
        )]
        let rank = (50_000_f64.powf((random >> 11) as f64 / (1_u64 << 53) as f64)) as u64;
        text.push('w');
        text.push_str(&rank.to_string());
        text.push(' ');
    }
    text
}
