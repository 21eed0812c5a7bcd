//! Document ids: which are allowed, and which are special.

use crate::DocumentError;

/// How the id of every design document begins.
pub const DESIGN_PREFIX: &str = "_design/";
/// How the id of every document that is never replicated begins.
pub const LOCAL_PREFIX: &str = "_local/";

/// The longest id in bytes. CouchDB has no limit; ours keeps ids within a store key, with room to spare
/// for every URL that a client could send (8 KiB request lines).
const ID_BYTES_MAX: usize = 7168;

/// Accepts the ids that CouchDB's `couch_doc:validate_docid` accepts, up to 7,168 bytes.
///
/// # Errors
/// [`DocumentError::IllegalDocumentId`] with CouchDB's reason.
pub fn validate_id(id: &str) -> Result<(), DocumentError> {
    let refuse = |reason: &'static str| Err(DocumentError::IllegalDocumentId(reason.into()));
    match id {
        "" => refuse("Document id must not be empty"),
        DESIGN_PREFIX => refuse("Illegal document id `_design/`"),
        LOCAL_PREFIX => refuse("Illegal document id `_local/`"),
        _ if id.len() > ID_BYTES_MAX => refuse("Document id is too long"),
        _ if id.starts_with('_') && !is_design(id) && !is_local(id) => {
            refuse("Only reserved document ids may start with underscore.")
        }
        _ => Ok(()),
    }
}

/// Whether the id is a design document's.
#[must_use]
pub fn is_design(id: &str) -> bool {
    id.starts_with(DESIGN_PREFIX)
}

/// Whether the id is that of a document that is never replicated.
#[must_use]
pub fn is_local(id: &str) -> bool {
    id.starts_with(LOCAL_PREFIX)
}
