//! Contents: attachments and large field values, stored once by their BLAKE3 digest, compressed where
//! it pays, counted by the documents that refer to them, and collected when none is left.
//!
//! A store has one [`Contents`]. An [`Upload`] takes the bytes, and gives a [`Content`], which a document refers to by
//! [`Content::write`] in the batch that stores it. What nobody refers to any more goes with [`Contents::collect`].
//!
//! What comes as gzip through an [`EncodedUpload`] is stored as it came, and is read as what it stands for.
//!
//! It knows nothing of documents but that something refers to a content by a database's number and an id.

mod bookmark;
mod collector;
mod contents;
mod encoded;
mod error;
mod hex;
pub mod keys;
pub mod object;
mod pins;
mod places;
mod reader;
pub mod record;
mod relocate;
mod removal;
mod upload;
pub mod wire;

pub use collector::Collected;
pub use contents::{Brought, Content, Contents, KnownContent, PIECE_BYTES, Pin, md5_text};
pub use encoded::{ContentUpload, EncodedUpload};
pub use error::{ContentError, Result};
pub use hex::hex;
pub use places::{AttachmentOptions, BucketPart, Places};
pub use reader::{ContentReader, HeldContent};
pub use relocate::{ObjectInUse, RelocatedAttachments, Relocation, move_all};
pub use removal::RemovedObjects;
pub use upload::Upload;
