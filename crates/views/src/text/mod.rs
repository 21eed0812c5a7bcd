//! Full text: indexes of words that follow the feed of changes as views do.
//!
//! A design document has some in `nouveau`, as in CouchDB; a database with the property `full_text` has one of all that its
//! documents and attachments say. Both are records of the store. An index that is not asked, and nothing changes in, costs
//! nothing.
//!
//! Who reads is a part of every question ([`Readership`]), and each document that is found is looked at once more before it is
//! given out: an index may be older than the names in the document.

mod attachment;
mod audit;
mod definition;
mod facets;
mod follow;
mod gather;
mod registry;
mod search;
#[cfg(test)]
mod tests;
mod update;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use scrinium_database::access::digest::NameDigest;
use scrinium_database::{Access, Result};
use scrinium_fulltext::Readership;

pub use attachment::{AttachmentHead, AttachmentText, TextUnavailable};
pub use audit::TextAudit;
pub use definition::analyzed;
pub(crate) use definition::{check, compile_stored};
pub use facets::{FacetRange, Facets};
pub(crate) use registry::TextIndex;
pub(crate) use search::TextWalk;
pub use search::{TextAnswer, TextHit, TextSearch, TextTarget};

/// A reader's name as it stands in an index.
fn reader_name(name: &NameDigest) -> String {
    URL_SAFE_NO_PAD.encode(name)
}

/// Which documents somebody may find.
///
/// # Errors
/// [`scrinium_database::DatabaseError::Forbidden`] if they may read nothing here.
fn readership(access: &Access) -> Result<Readership> {
    access.check_reader()?;
    Ok(match access.reader_names() {
        None => Readership::Everything,
        Some(names) => Readership::Names(names.iter().map(reader_name).collect()),
    })
}
