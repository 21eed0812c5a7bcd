//! An ordered collection of entries in which number N, the position of a key, and counts and sums of a range cost
//! O(log n).
//!
//! Entries are sorted keys in the store. Consecutive entries form *chunks* of about a hundred, each in a key range of
//! its own; a small record per chunk (lower bound, count, sums) is changed in the same batch as the entries, those of
//! one batch packed together. An open
//! [`Index`] keeps a counted tree over the chunk records in memory, about 0.5 MB for a million entries. A
//! [`Reader`] holds that tree together with the snapshot of the store that it describes.
//!
//! *Invariant*: what an index holds is derived. Each update carries the change number that it reached, in one
//! atomic batch; after a crash the index stands at an earlier whole update and is brought up to date from there.
//! It knows nothing of what an entry means.

mod cursor;
mod error;
mod format;
mod index;
mod node;
mod overlay;
mod plan;
mod reader;
mod rebuild;
mod recent;
mod reduce;
mod sum;
mod together;
mod tree;

pub use cursor::{Cursor, Entry};
pub use error::IndexError;
pub use format::{COLUMNS_MAX, KEY_BYTES_MAX};
pub use index::Index;
pub use plan::{Change, Sums};
pub use reader::{Checked, Reader};
pub use rebuild::Rebuild;
pub use reduce::Reduce;
pub use scrinium_store::Direction;
pub use together::Update;
