//! The files of the repository, and their names.

use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::{File, Finding};

/// Folders that are not the project's own text.
const LEFT_OUT: [&str; 8] = ["target", ".git", ".cargo", "node_modules", "data", "reports", "corpus", "dist"];

/// Folders within folders, more than any sensible tree has.
const DEPTH_LIMIT: usize = 32;

const EXTENSIONS: [&str; 9] = ["rs", "toml", "md", "sh", "ts", "tsx", "css", "html", "json"];

/// Files without extension that are text of the project too.
const BY_NAME: [&str; 2] = ["Makefile", "run"];

/// Reads the text files below `root`.
pub(crate) fn read(root: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    read_folder(root, root, 0, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn read_folder(root: &Path, folder: &Path, depth: usize, files: &mut Vec<File>) -> io::Result<()> {
    if depth > DEPTH_LIMIT {
        return Err(io::Error::other(format!("{} is too deep", folder.display())));
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name().to_string_lossy().into_owned();
        if kind.is_dir() {
            if !LEFT_OUT.contains(&name.as_str()) {
                read_folder(root, &path, depth + 1, files)?;
            }
        } else if kind.is_file() && is_text(&path, &name) {
            let text = std::fs::read_to_string(&path)?;
            files.push(File { path: path.strip_prefix(root).unwrap_or(&path).to_owned(), text });
        }
    }
    Ok(())
}

fn is_text(path: &Path, name: &str) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let script = extension.is_none() && path.parent().is_some_and(|parent| parent.ends_with("scripts"));
    script || BY_NAME.contains(&name) || extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}

/// Rust files and their folders are named in snake_case; the folder of a crate may have hyphens, as its package has.
pub(crate) fn check_names(files: &[File], findings: &mut Vec<Finding>) {
    let legal = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    let mut wrong = BTreeSet::new();
    for file in files.iter().filter(|file| file.has_extension("rs")) {
        let is_crate = |place: usize| place == 1 && file.path.starts_with("crates");
        for (place, part) in file.path.with_extension("").iter().enumerate() {
            let part_legal = |letter: char| legal(letter) || (letter == '-' && is_crate(place));
            if !part.to_string_lossy().chars().all(part_legal) {
                wrong.insert((file.path.clone(), part.to_string_lossy().into_owned()));
            }
        }
    }
    for (path, part) in wrong {
        findings.push(Finding { path, line: 0, what: format!("{part} is not snake_case") });
    }
}

/// The path without `..`; `None` if it leads out.
pub(crate) fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                if !normal.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    Some(normal)
}
