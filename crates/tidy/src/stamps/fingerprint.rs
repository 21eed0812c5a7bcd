//! The digest of everything that the tests of a crate depend on.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use blake3::Hasher;

use super::Crates;

/// What all crates depend on.
pub(super) const SHARED: [&str; 12] = [
    "Cargo.toml",
    "Cargo.lock",
    "Makefile",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "clippy.toml",
    "deny.toml",
    ".gitignore",
    ".cargo",
    ".ci",
    ".config",
    "scripts",
];

/// Folders that hold what was made, and no source. Anywhere, but in `tests`, where a folder may have any name.
const MADE: [&str; 4] = ["target", ".git", "node_modules", "__pycache__"];

/// Folders within folders, more than any sensible tree has.
const DEPTH_LIMIT: usize = 64;

/// Programs and folders of this machine that tests look for; without them they are skipped.
const LOOKED_FOR: [&str; 9] = [
    "/usr/lib/postfix/sbin/master",
    "/usr/lib/dovecot/imap",
    "/usr/bin/radicale",
    "/usr/lib/postgresql",
    "/usr/bin/mount",
    "/usr/bin/chrt",
    "/usr/bin/age",
    "/usr/bin/chromium",
    "/usr/bin/node",
];

/// A digest of everything that the tests of a crate depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(blake3::Hash);

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.to_hex())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Crates {
    /// The fingerprint of a crate; `surroundings` are what its tests depend on outside of the repository.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn fingerprint(&self, name: &str, surroundings: &[String]) -> io::Result<Fingerprint> {
        let mut hasher = Hasher::new();
        for surrounding in surroundings {
            add(&mut hasher, "surrounding", surrounding.as_bytes());
        }
        let mut paths: Vec<String> = SHARED.map(str::to_owned).to_vec();
        for used in self.tested_with(name) {
            paths.push(format!("crates/{used}"));
            paths.extend(self.members.get(used).into_iter().flat_map(|used| used.sources_read.clone()));
        }
        paths.extend(self.members.get(name).into_iter().flat_map(|member| member.tests_read.clone()));
        paths.sort();
        paths.dedup();
        for path in paths {
            add_tree(&mut hasher, &self.root, Path::new(&path), 0)?;
        }
        Ok(Fingerprint(hasher.finalize()))
    }
}

/// Lengths go before what they measure, so that no two inputs look alike.
fn add(hasher: &mut Hasher, what: &str, content: &[u8]) {
    for part in [what.as_bytes(), content] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
}

fn add_tree(hasher: &mut Hasher, root: &Path, path: &Path, depth: usize) -> io::Result<()> {
    if depth > DEPTH_LIMIT {
        return Err(io::Error::other(format!("{} is too deep", path.display())));
    }
    let whole = root.join(path);
    let name = path.to_string_lossy();
    // What is missing counts as little as an empty folder, and what a link points to is another file's business.
    let Ok(kind) = std::fs::symlink_metadata(&whole) else { return Ok(()) };
    if kind.is_symlink() {
        add(hasher, &name, std::fs::read_link(&whole)?.to_string_lossy().as_bytes());
    } else if kind.is_dir() {
        for entry in sorted(&whole)? {
            let made = entry.to_str().is_some_and(|entry| MADE.contains(&entry));
            if !made || path.iter().any(|part| part == "tests") {
                add_tree(hasher, root, &path.join(entry), depth + 1)?;
            }
        }
    } else {
        add(hasher, &name, &std::fs::read(&whole)?);
        add(hasher, "executable", &[u8::from(is_executable(&kind))]);
    }
    Ok(())
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?;
    let mut names: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.file_name().into())).collect::<io::Result<_>>()?;
    names.sort();
    Ok(names)
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    false
}

/// What tests depend on outside of the repository: the compiler, variables that change what is built or tried, programs that
/// they look for.
#[must_use]
pub fn surroundings() -> Vec<String> {
    let compiler = Command::new("rustc").arg("-vV").output();
    let mut all = vec![compiler.map_or_else(
        |error| error.to_string(),
        |compiler| String::from_utf8_lossy(&compiler.stdout).into_owned(),
    )];
    let counts = |name: &str| {
        let kind = ["SCRINIUM_", "PROPTEST_", "CARGO_PROFILE_", "RUSTFLAGS", "ROCKSDB_"];
        kind.iter().any(|kind| name.starts_with(kind))
            && !["SCRINIUM_CACHE", "SCRINIUM_SKIPS"].contains(&name)
    };
    let mut variables: Vec<String> = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| counts(name))
        .map(|(name, value)| format!("{name}={}", value.to_string_lossy()))
        .collect();
    variables.sort();
    all.extend(variables);
    all.extend(LOOKED_FOR.map(|path| format!("{path} {}", Path::new(path).exists())));
    all
}
