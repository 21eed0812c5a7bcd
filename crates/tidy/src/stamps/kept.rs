//! The stamps, as files in a folder outside of the repository.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

use super::Fingerprint;

/// At most this many stamps are kept of a crate: the latest used ones.
const PER_CRATE: usize = 24;

/// That the tests of a crate passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The commit at which they ran.
    pub commit: String,
    /// How many passed.
    pub passed: u64,
}

/// A folder of stamps: `CRATE/FINGERPRINT.json`.
#[derive(Debug)]
pub struct Stamps {
    folder: PathBuf,
}

impl Stamps {
    /// Stamps in this folder, which is made when one is kept.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    fn path(&self, name: &str, fingerprint: &Fingerprint) -> PathBuf {
        self.folder.join(name).join(format!("{fingerprint}.json"))
    }

    /// The stamp of a crate with this fingerprint. One that is damaged counts as none.
    #[must_use]
    pub fn find(&self, name: &str, fingerprint: &Fingerprint) -> Option<Stamp> {
        let path = self.path(name, fingerprint);
        let stamp: Value = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        let found = Stamp {
            commit: stamp.get("commit")?.as_str()?.to_owned(),
            passed: stamp.get("passed")?.as_u64()?,
        };
        // What is used stays; whether the time can be set changes nothing else.
        drop(File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now())));
        Some(found)
    }

    /// Keeps the stamp of a crate whose tests passed.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, name: &str, fingerprint: &Fingerprint, stamp: &Stamp) -> io::Result<()> {
        let path = self.path(name, fingerprint);
        fs::create_dir_all(self.folder.join(name))?;
        let text = json!({"commit": stamp.commit, "passed": stamp.passed}).to_string();
        let part = path.with_extension(format!("{}.part", std::process::id()));
        fs::write(&part, text)?;
        fs::rename(&part, &path)?;
        self.remove_oldest(name)
    }

    fn remove_oldest(&self, name: &str) -> io::Result<()> {
        let mut stamps = Vec::new();
        for entry in fs::read_dir(self.folder.join(name))? {
            let entry = entry?;
            stamps.push((entry.metadata()?.modified()?, entry.path()));
        }
        stamps.sort();
        let surplus = stamps.len().saturating_sub(PER_CRATE);
        stamps.into_iter().take(surplus).try_for_each(|(_, path)| fs::remove_file(path))
    }
}
