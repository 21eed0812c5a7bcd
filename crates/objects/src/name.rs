//! Names of objects.

use std::fmt;

/// The name of an object: whose it is, what it holds, and which of several uploads of the same it is.
///
/// Written `HOME/ab/ab…-NUMBER`, with the first byte of the digest as a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectName {
    /// Whose folder it lies in: only who has this number removes something there.
    pub home: u64,
    /// BLAKE3 of the content.
    pub digest: [u8; 32],
    /// Given to one upload and to no other.
    pub upload: u64,
}

impl ObjectName {
    /// The folder of names that it lies in.
    #[must_use]
    pub fn folder(&self) -> String {
        let [first, ..] = self.digest;
        format!("{:016x}/{first:02x}", self.home)
    }

    /// The last part of the name.
    #[must_use]
    pub fn file(&self) -> String {
        format!("{}-{:016x}", blake3::Hash::from_bytes(self.digest).to_hex(), self.upload)
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.folder(), self.file())
    }
}
