//! Requests of administrators that change a name everywhere: people and groups that are renamed or removed.
//!
//! A request is a document of the database [`ADMINISTRATION_DATABASE`]. It goes through all databases, piece by piece, and writes
//! down how far it is; after a crash it goes on there. What it does twice changes nothing the second time. What is kept by
//! name is known by [`NameKeeper`]s: documents' fields of names, access lists, unread marks, and whatever registers itself.
//!
//! A name is never free while something of its former bearer is named by it: the new name is taken before the first access list
//! has it, and the old one stays its bearer's (`OtherNames`).

mod change;
mod engine;
mod entry;
mod error;
mod keeper;
mod keepers;
mod raw;
mod records;
mod request;

pub use change::{NOBODY, NameChange};
pub use engine::{Requests, RequestsHandle};
pub use error::RequestError;
pub use keeper::{LegalHolds, NameKeeper, NameOrder, Piece};
pub use records::{ADMINISTRATION_DATABASE, is_request};
pub use request::{NewRequest, Progress, Request, RequestKind, RequestState};
