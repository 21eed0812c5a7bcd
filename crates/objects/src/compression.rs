//! Bytes that are compressed where that pays (Zstandard, RFC 8878).
//!
//! Making a context takes longer than compressing 10 KB with one, so contexts are used again: as many of each kind are
//! kept as there are processors, of which one for compressing holds 1 MB at most
//! (`cargo run --release -p scrinium-objects --example compression_speed`).

use std::sync::LazyLock;

use parking_lot::Mutex;
use zstd::bulk::{Compressor, Decompressor};

/// Zstandard's own default: some 300 MB/s on one core, and more is won by storing a content once.
const LEVEL: i32 = 3;

static COMPRESSORS: Spare<Compressor<'static>> = Spare::new();
static DECOMPRESSORS: Spare<Decompressor<'static>> = Spare::new();
static KEPT: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(2, std::num::NonZero::get));

/// Contexts that nobody uses just now.
struct Spare<T>(Mutex<Vec<T>>);

impl<T> Spare<T> {
    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn take(&self) -> Option<T> {
        self.0.lock().pop()
    }

    fn give_back(&self, context: T) {
        let mut spare = self.0.lock();
        if spare.len() < *KEPT {
            spare.push(context);
        }
    }
}

/// The bytes compressed, as one frame; `None` unless that saves a tenth.
#[must_use]
pub fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut context = COMPRESSORS.take().or_else(|| Compressor::new(LEVEL).ok())?;
    // One that failed is not used again.
    let compressed = context.compress(bytes).ok()?;
    COMPRESSORS.give_back(context);
    (compressed.len() < bytes.len() - bytes.len() / 10).then_some(compressed)
}

/// What was compressed as one frame; `None` if it is damaged or longer than `most_bytes`.
#[must_use]
pub fn decompress(compressed: &[u8], most_bytes: usize) -> Option<Vec<u8>> {
    let mut context = DECOMPRESSORS.take().or_else(|| Decompressor::new().ok())?;
    let bytes = context.decompress(compressed, most_bytes).ok()?;
    DECOMPRESSORS.give_back(context);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever was damaged or too long before, in whichever thread, what comes later is as it was.
    #[test]
    fn contexts_that_are_used_again_hold_nothing_of_what_was_before() {
        let texts: Vec<Vec<u8>> =
            (1..200_usize).map(|n| format!("text {n} ").repeat(n).into_bytes()).collect();
        std::thread::scope(|scope| {
            for from in 0..4_usize {
                let texts = &texts;
                scope.spawn(move || {
                    for text in texts.iter().cycle().skip(from * 50).take(texts.len()) {
                        let Some(compressed) = compress(text) else { continue };
                        assert_eq!(decompress(&compressed, text.len()).as_ref(), Some(text));
                        assert_eq!(decompress(&compressed, text.len() - 1), None);
                        let cut = compressed.len() / 2;
                        assert_eq!(decompress(compressed.get(..cut).unwrap_or_default(), text.len()), None);
                    }
                });
            }
        });
        assert_eq!(compress(b"short"), None);
        assert!(COMPRESSORS.0.lock().len() <= *KEPT && DECOMPRESSORS.0.lock().len() <= *KEPT);
    }
}
