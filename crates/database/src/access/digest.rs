//! Names of readers as they are compared, and what stands for them in indexes.

/// Changes with the form of names in indexes, so that an index that was made of others is rebuilt.
pub const NAMES_VERSION: u32 = 2;

/// What stands for a name in indexes.
pub type NameDigest = [u8; 16];

/// Stands for everybody to whom all documents are open.
pub const EVERYTHING: NameDigest = [0; 16];

/// A name as it is compared.
pub fn folded(name: &str) -> String {
    name.trim().chars().flat_map(char::to_lowercase).collect()
}

/// What stands for a name in indexes.
pub fn digest_of(name: &str) -> NameDigest {
    let mut digest = NameDigest::default();
    blake3::Hasher::new().update(folded(name).as_bytes()).finalize_xof().fill(&mut digest);
    digest
}
