//! Words of files that strangers sent.
//!
//! An [`Extractor`] gives the words of a text, an HTML page, a PDF, or a document of an office program (Office Open XML,
//! OpenDocument). What is in such a file is read by libraries in a process of its own: the program itself, started once more,
//! which never comes to its `main`. It has no files and no network, and may use so much memory and processor time
//! ([`Limits`]). Whatever a file does costs it its own words and nothing else.
//!
//! *Invariant*: no byte of a PDF or an office document is read in the server's process.

mod entry;
mod kind;
mod office;
mod process;
mod text;

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

pub use kind::Kind;

/// What one file may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory of the process, in bytes, besides the file itself.
    pub memory_bytes: usize,
    /// Processor time, in seconds.
    pub seconds: u64,
    /// Words that are taken, in bytes of UTF-8; the rest is left out.
    pub text_bytes: usize,
    /// Processes at once.
    pub processes_max: usize,
}

impl Default for Limits {
    /// 128 MiB, 10 seconds, 4 MiB of text, two processes.
    fn default() -> Self {
        Self { memory_bytes: 128 << 20, seconds: 10, text_bytes: 4 << 20, processes_max: 2 }
    }
}

/// Why there are no words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtractionError {
    /// The file cannot be read, or took more than it may. It will be the same the next time.
    #[error("the file cannot be read: {reason}")]
    Unreadable {
        /// What happened.
        reason: String,
    },
    /// No process can be had now; it says nothing of the file.
    #[error("no process can read files now: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
}

/// Gives the words of files. It holds no process while nobody asks.
#[derive(Debug, Default)]
pub struct Extractor {
    limits: Limits,
    running: Mutex<usize>,
    ended: Condvar,
}

/// A place among the processes that run.
struct Place<'a>(&'a Extractor);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.running.lock() -= 1;
        self.0.ended.notify_one();
    }
}

impl Extractor {
    /// One with these limits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The words of a file, of which the caller knows the kind ([`Kind::of`]). Blocks.
    ///
    /// # Errors
    /// [`ExtractionError`].
    pub fn text(&self, kind: Kind, bytes: &[u8]) -> Result<String, ExtractionError> {
        let mut text = match kind {
            Kind::Text(label) => text::plain(bytes, label),
            Kind::Html(label) => scrinium_fulltext::text_of_html(&text::plain(bytes, label)),
            Kind::Pdf | Kind::Office => {
                let _place = self.wait_for_place()?;
                process::ask(kind, bytes, &self.limits)?
            }
        };
        text::cut(&mut text, self.limits.text_bytes);
        Ok(text)
    }

    fn wait_for_place(&self) -> Result<Place<'_>, ExtractionError> {
        // Each of those before ends within its own limits.
        let patience = Duration::from_secs(self.limits.seconds.saturating_mul(8).max(60));
        let mut running = self.running.lock();
        while *running >= self.limits.processes_max.max(1) {
            if self.ended.wait_for(&mut running, patience).timed_out() {
                let reason = "others have all processes".to_owned();
                return Err(ExtractionError::Unavailable { reason });
            }
        }
        *running += 1;
        Ok(Place(self))
    }
}
