//! What is asked of a store of objects.

use bytes::Bytes;

/// Objects by names such as `0011223344556677/ab/abcd-01`. An object is there whole and durably, or not at all.
///
/// Calls wait, each for a bounded time; those that may help are tried again within.
pub trait Bucket: Send + Sync {
    /// Begins an object, which is there when it is finished, and else never.
    ///
    /// # Errors
    /// [`BucketError`]
    fn begin(&self, name: &str) -> Result<Box<dyn BucketWriter + '_>, BucketError>;

    /// The bytes of an object from `from` to before `to`, which lie within it.
    ///
    /// # Errors
    /// [`BucketError`]
    fn read(&self, name: &str, from: u64, to: u64) -> Result<Bytes, BucketError>;

    /// How long an object is; `None` if there is none.
    ///
    /// # Errors
    /// [`BucketError`]
    fn size(&self, name: &str) -> Result<Option<u64>, BucketError>;

    /// Removes an object, durably. That it is not there is no error.
    ///
    /// # Errors
    /// [`BucketError`]
    fn remove(&self, name: &str) -> Result<(), BucketError>;

    /// The names and lengths of all objects whose names begin with `folder` and a slash.
    ///
    /// # Errors
    /// [`BucketError`]
    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, BucketError>;
}

/// Takes an object piece by piece. Dropped before it is finished, it leaves none.
pub trait BucketWriter {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// [`BucketError`]
    fn put(&mut self, bytes: &[u8]) -> Result<(), BucketError>;

    /// All is there: makes it durable.
    ///
    /// # Errors
    /// [`BucketError`]
    fn finish(self: Box<Self>) -> Result<(), BucketError>;
}

/// Why a bucket did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BucketError {
    /// There is no such object.
    #[error("there is no such object")]
    Missing,
    /// It did not answer, or could not do it now.
    #[error("{0}")]
    Away(String),
    /// It will not do it, however often it is asked.
    #[error("{0}")]
    Refused(String),
}
