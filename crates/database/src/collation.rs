//! Which collation orders the keys of indexes.

use scrinium_document::collation::COLLATION_VERSION;
use serde::{Deserialize, Serialize};

use crate::access::digest::NAMES_VERSION;

/// Changes with the form in which lists of entries hold keys (crate `views`, module `short`): an index of another form cannot be
/// followed.
const LIST_FORMAT: u64 = 2;

/// Which collation orders the keys of indexes. Its default is the one of this program; a test may say that it is another.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collation {
    /// An index of another version is rebuilt; so is one that keeps documents apart by other names of readers.
    pub version: u32,
    /// An index with another number holds keys that cannot be read back, from its entries (see
    /// [`scrinium_document::read_back_digest`]) or from its lists.
    pub read_back: u64,
}

impl Default for Collation {
    fn default() -> Self {
        Self {
            version: COLLATION_VERSION | NAMES_VERSION << 16,
            read_back: scrinium_document::read_back_digest() ^ LIST_FORMAT,
        }
    }
}
