//! What each crate uses and reads, by its manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use toml_edit::{Document, Item, TableLike};

use crate::crates::PREFIX;

/// The crates of a workspace.
#[derive(Debug)]
pub struct Crates {
    pub(super) root: PathBuf,
    pub(super) members: BTreeMap<String, Member>,
}

#[derive(Debug, Default)]
pub(super) struct Member {
    /// Crates of the workspace that its library or programs use.
    used: BTreeSet<String>,
    /// Crates of the workspace that only its tests use.
    used_by_tests: BTreeSet<String>,
    pub(super) sources_read: Vec<String>,
    pub(super) tests_read: Vec<String>,
}

impl Crates {
    /// Reads the manifests below `root`.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut members = BTreeMap::new();
        for entry in std::fs::read_dir(root.join("crates"))? {
            let entry = entry?;
            let manifest = entry.path().join("Cargo.toml");
            if manifest.is_file() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let member = Member::parse(&std::fs::read_to_string(&manifest)?)
                    .map_err(|error| io::Error::other(format!("{}: {error}", manifest.display())))?;
                members.insert(name, member);
            }
        }
        Ok(Self { root: root.to_owned(), members })
    }

    /// The names of the crates' folders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// The crate itself, and all that it or its tests use, directly or through others.
    #[must_use]
    pub fn tested_with(&self, name: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let Some((name, member)) = self.members.get_key_value(name) else { return found };
        found.insert(name.as_str());
        let mut left: Vec<&String> = member.used.iter().chain(&member.used_by_tests).collect();
        while let Some(used) = left.pop() {
            if let Some((name, member)) = self.members.get_key_value(used)
                && found.insert(name)
            {
                left.extend(&member.used);
            }
        }
        found
    }
}

impl Member {
    pub(super) fn parse(manifest: &str) -> Result<Self, toml_edit::TomlError> {
        let manifest = Document::parse(manifest)?;
        let table = |name: &str| manifest.get(name).and_then(Item::as_table_like);
        let metadata = table("package").and_then(|package| package.get("metadata")?.as_table_like());
        let stamps = metadata.and_then(|metadata| metadata.get("stamps")?.as_table_like());
        let read = |key: &str| paths(stamps, key);
        let mut used = crates_in(table("dependencies"));
        used.extend(crates_in(table("build-dependencies")));
        Ok(Self {
            used,
            used_by_tests: crates_in(table("dev-dependencies")),
            sources_read: read("sources"),
            tests_read: read("tests"),
        })
    }
}

fn crates_in(table: Option<&dyn TableLike>) -> BTreeSet<String> {
    let names = table.into_iter().flat_map(TableLike::iter).map(|(name, _)| name);
    names.filter_map(|name| name.strip_prefix(PREFIX)).map(str::to_owned).collect()
}

fn paths(table: Option<&dyn TableLike>, key: &str) -> Vec<String> {
    let array = table.and_then(|table| table.get(key)).and_then(Item::as_array);
    array.into_iter().flatten().filter_map(|path| path.as_str()).map(str::to_owned).collect()
}
