//! Folders of tests, and what fills them.

use tempfile::TempDir;

/// A folder in memory where there is one, for tests that ask what is written and not whether it is synced; removed when
/// it is dropped.
///
/// # Panics
/// If there can be none.
#[must_use]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
pub fn quick_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// This many bytes that do not compress, the same for the same seed.
#[must_use]
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    // xorshift64, which must not begin at 0.
    let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15) | 1;
    let mut noise = vec![0; length];
    for part in noise.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        part.copy_from_slice(state.to_be_bytes().get(..part.len()).unwrap_or_default());
    }
    noise
}
