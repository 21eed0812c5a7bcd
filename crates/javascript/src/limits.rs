//! What a function may use.

/// Limits of one engine. They are for each call of a function: one document in one view, or one reduction.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Memory of the engine with everything in it, in bytes. The engine itself takes about 1.5 MB.
    pub memory_bytes: usize,
    /// Processor time that one call may take, in milliseconds. It is processor time and not what a clock
    /// on the wall shows, so that a machine that stands still for a while costs no document its entries.
    pub call_time_ms: u64,
    /// Stack that nested calls may take, in bytes.
    pub stack_bytes: usize,
    /// Entries that one document may emit into one view.
    pub emitted_max: u32,
    /// Bytes of JSON that one document may emit into one view.
    pub emitted_bytes_max: usize,
    /// Whether a reduction has to be smaller than what went into it, as CouchDB's `reduce_limit` asks.
    pub reduce_limit: bool,
}

impl Default for Limits {
    /// 64 MiB, 5 seconds (CouchDB's `os_process_timeout`), 512 KiB of stack, and 10,000 entries of
    /// together 8 MiB.
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            call_time_ms: 5_000,
            stack_bytes: 512 << 10,
            emitted_max: 10_000,
            emitted_bytes_max: 8 << 20,
            reduce_limit: true,
        }
    }
}
