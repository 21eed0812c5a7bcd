//! Where a repository is: what is asked of a folder or of a store of objects.

use std::any::Any;

use crate::BackupError;
use crate::aligned::Buffer;

/// Files by names such as `files/ab/abcd`. What was written is there, whole and durably, or not at all.
pub(crate) trait BackupPlace: Send + Sync {
    /// For messages.
    fn name(&self) -> String;

    /// The names in a folder of names with their lengths, those in folders below it too. No such folder: none.
    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, BackupError>;

    /// A small file; `None` if there is none.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, BackupError>;

    /// Writes a small file in one go.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), BackupError>;

    /// A file to be read from beginning to end.
    fn open(&self, name: &str) -> Result<Box<dyn Pieces>, BackupError>;

    /// A file to be written from beginning to end.
    fn create(&self, name: &str) -> Result<Box<dyn Sink + '_>, BackupError>;

    /// Removes a file.
    fn remove(&self, name: &str) -> Result<(), BackupError>;

    /// Makes removals durable, and takes away what an interrupted writer left.
    fn settle(&self) -> Result<(), BackupError>;

    /// How much may still be written, where that is known.
    fn free_bytes(&self) -> Option<u64>;

    /// Keeps others out, or those only who change it.
    fn lock(&self, alone: bool) -> Result<Box<dyn Any + Send>, BackupError>;
}

/// Reads a file piece by piece.
pub(crate) trait Pieces: Send {
    /// Fills the buffer; less than all of it only at the end of the file.
    fn next(&mut self, buffer: &mut Buffer) -> Result<(), BackupError>;
}

/// Takes a file piece by piece.
pub(crate) trait Sink {
    /// Takes the next piece. Only the last may be shorter than a whole one.
    fn put(&mut self, piece: &mut Buffer) -> Result<(), BackupError>;

    /// All is there: makes it durable and gives it its name.
    fn finish(self: Box<Self>) -> Result<(), BackupError>;
}
