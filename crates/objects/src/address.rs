//! Where a store of objects is: `s3://BUCKET/PREFIX` or `file:///FOLDER`.

use std::path::Path;

use crate::bucket::Bucket;
use crate::folder::Folder;
use crate::remote::{Remote, S3_SCHEME};

const FILE_SCHEME: &str = "file://";

/// Whether an address is well formed; says what is wrong with it.
///
/// # Errors
/// In words.
pub fn check_address(address: &str) -> Result<(), String> {
    if let Some(rest) = address.strip_prefix(S3_SCHEME) {
        let bucket = rest.split('/').next().unwrap_or_default();
        let legal = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
        return if !bucket.is_empty() && bucket.chars().all(legal) {
            Ok(())
        } else {
            Err(format!("{address:?} names no bucket: write s3://BUCKET/PREFIX"))
        };
    }
    match address.strip_prefix(FILE_SCHEME) {
        Some(folder) if folder.starts_with('/') && !folder.trim_end_matches('/').is_empty() => Ok(()),
        _ => Err(format!(
            "{address:?} is no address of a store of objects: write s3://BUCKET/PREFIX or file:///FOLDER"
        )),
    }
}

/// Opens what is there. Endpoint, region and keys of `s3://` come from the environment.
///
/// # Errors
/// In words. That the store answers is not looked at.
pub fn open_bucket(address: &str) -> Result<Box<dyn Bucket>, String> {
    check_address(address)?;
    match address.strip_prefix(FILE_SCHEME) {
        Some(folder) => Ok(Box::new(Folder::open(Path::new(folder))?)),
        None => Ok(Box::new(Remote::open(address)?)),
    }
}
