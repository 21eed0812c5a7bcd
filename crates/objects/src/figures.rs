//! What is counted of the attachment store.

use scrinium_statistics::{Counter, Operation, Registry};

/// `Attachment.Store.…`, and the times of uploads and reads.
#[derive(Clone, Default)]
pub(crate) struct Figures {
    pub(crate) uploads: Counter,
    pub(crate) upload_bytes: Counter,
    pub(crate) reads: Counter,
    pub(crate) read_bytes: Counter,
    pub(crate) removed: Counter,
    pub(crate) failures: Counter,
    pub(crate) cache_hits: Counter,
    pub(crate) cache_misses: Counter,
    pub(crate) upload_time: Operation,
    pub(crate) read_time: Operation,
}

impl Figures {
    pub(crate) fn register(statistics: &Registry) -> Self {
        let counter = |name: &str| statistics.counter(&format!("Attachment.Store.{name}"));
        Self {
            uploads: counter("Uploads"),
            upload_bytes: counter("UploadBytes"),
            reads: counter("Reads"),
            read_bytes: counter("ReadBytes"),
            removed: counter("Removed"),
            failures: counter("Failures"),
            cache_hits: counter("CacheHits"),
            cache_misses: counter("CacheMisses"),
            upload_time: statistics.operation("PUT_OBJECT"),
            read_time: statistics.operation("GET_OBJECT"),
        }
    }
}
