//! Whether manifests say what their crates read outside of their own folders.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::fingerprint::SHARED;
use super::manifests::Member;
use crate::files::normal;
use crate::{File, Finding};

pub(crate) fn check(root: &Path, files: &[File], findings: &mut Vec<Finding>) {
    for manifest in files.iter().filter(|file| file.path.file_name().is_some_and(|name| name == "Cargo.toml"))
    {
        let Some(folder) = manifest.path.parent() else { continue };
        if folder.parent() != Some(Path::new("crates")) {
            continue;
        }
        // What cannot be parsed is found elsewhere.
        let Ok(member) = Member::parse(&manifest.text) else { continue };
        let said: Vec<&String> = member.sources_read.iter().chain(&member.tests_read).collect();
        let mut missing = BTreeSet::new();
        for file in files.iter().filter(|file| file.has_extension("rs") && file.path.starts_with(folder)) {
            missing.extend(read_outside(root, folder, file));
        }
        for path in missing {
            // Crates that are used count as a whole.
            let known = path.starts_with("crates")
                || SHARED.iter().any(|shared| path.starts_with(shared))
                || said.iter().any(|said| *said == "." || path.starts_with(said))
                || path.as_os_str().is_empty() && !said.is_empty();
            if !known {
                let what = if path.as_os_str().is_empty() { Path::new("files") } else { &path };
                let what =
                    format!("it reads {}, which [package.metadata.stamps] does not name", what.display());
                findings.push(manifest.finding(0, what));
            }
        }
    }
}

/// Paths outside of its crate's folder that a source file names, from the repository's root, which is the empty path.
fn read_outside(root: &Path, folder: &Path, file: &File) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut end = 0;
    for (start, _) in file.text.match_indices("../") {
        let (Some(before), Some(rest)) = (file.text.get(..start), file.text.get(start..)) else { continue };
        if start < end || !before.ends_with(['"', '/']) {
            continue;
        }
        let length = rest.find(['"', '{', '\n', ' ', '`', ')']).unwrap_or(rest.len());
        end = start + length;
        let path = Path::new(rest.get(..length).unwrap_or_default());
        // Relative to the file, as for `include_str!`, or to the crate, which is how the repository's root is named.
        let beside = file.path.parent().filter(|_| !path.ends_with(".."));
        let places = [beside, Some(folder)].into_iter().flatten().filter_map(|base| normal(&base.join(path)));
        let there = places.into_iter().find(|place| root.join(place).exists());
        found.extend(there.filter(|place| !place.starts_with(folder) && place != Path::new("crates")));
    }
    found
}
