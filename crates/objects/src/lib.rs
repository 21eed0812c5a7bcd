//! Large contents in a store of objects: a bucket that speaks S3, or a folder.
//!
//! A content is one object, named by its BLAKE3 digest and a number that no other object has, so that nothing is ever
//! written over or written again after it was removed. It lies in pieces, compressed where that pays, with a table
//! of their chaining values behind them, which the digest proves: any range is read, and checked, by itself. What was
//! read lies in a bounded cache of files, and is checked again when it is read there.
//!
//! It knows nothing of documents. Who refers to an object, and when it may go, others know.

mod address;
mod bucket;
mod cache;
mod compression;
mod error;
mod figures;
mod folder;
mod format;
mod gate;
mod guarded;
mod name;
mod objects;
mod reader;
mod remote;
mod spool;
mod survey;

pub use address::{check_address, open_bucket};
pub use bucket::{Bucket, BucketError, BucketWriter};
pub use compression::{compress, decompress};
pub use error::ObjectError;
pub use format::{MAX_BYTES, PIECE_BYTES};
pub use name::ObjectName;
pub use objects::{Objects, Opener, Stored, WriteOptions};
pub use reader::ObjectReader;
pub use remote::connect;
pub use spool::Spool;
pub use survey::{Needed, Survey};
