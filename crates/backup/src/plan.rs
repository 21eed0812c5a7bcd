//! Which files a backup consists of, and their prints.
//!
//! A file's *print* tells without reading it whole whether the repository has it: the BLAKE3 digest of its length and
//! its content; or, for the tree's files, which are never changed, of the log's key, its name, its length and its last
//! 128 KiB. The key is another after a restore, when a name may come again. Where backups are encrypted the digest is keyed
//! (see `digests`).

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use scrinium_store::BackupPoint;

use crate::BackupError;
use crate::digests::Digests;

const TAIL_BYTES: u64 = 128 << 10;

/// Files are read in such pieces where they are read for their print.
const READ_BYTES: usize = 64 << 10;

/// A file to be backed up.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// Where it is read.
    pub(crate) from: PathBuf,
    /// Where it belongs, beginning in the data folder.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) mode: u32,
    pub(crate) print: String,
    /// Nobody changes it.
    pub(crate) fixed: bool,
}

/// The store's files as the checkpoint has them, then all others of the data folder but those in `leave_out`.
pub(crate) fn plan(
    (point, digests): (&BackupPoint, Digests),
    store_dir: &Path,
    data_dir: &Path,
    leave_out: &[PathBuf],
) -> Result<Vec<Planned>, BackupError> {
    let mut planned = plan_store((point, digests), store_dir, "store")?;
    let leave_out: HashSet<PathBuf> = leave_out
        .iter()
        .map(PathBuf::as_path)
        .chain([store_dir])
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    for from in files_below(data_dir, &leave_out)? {
        let path = relative(&from, data_dir)?;
        let temporary = [".lock", ".part", ".draft", ".new"].iter().any(|end| path.ends_with(end));
        if temporary {
            continue;
        }
        planned.push(plan_file(from, path, digests)?);
    }
    Ok(planned)
}

/// The files of a store as the checkpoint has them, which belong into the folder `place`.
pub(crate) fn plan_store(
    (point, digests): (&BackupPoint, Digests),
    store_dir: &Path,
    place: &str,
) -> Result<Vec<Planned>, BackupError> {
    let mut planned = Vec::new();
    for from in files_below(point.dir(), &HashSet::new())? {
        let name = relative(&from, point.dir())?;
        planned.push(plan_tree_file(from, format!("{place}/tree/{name}"), point.log_key(), digests)?);
    }
    planned.push(plan_file(store_dir.join("store.format"), format!("{place}/store.format"), digests)?);
    Ok(planned)
}

/// A file that may change, so that its content is looked at.
pub(crate) fn plan_file(from: PathBuf, path: String, digests: Digests) -> Result<Planned, BackupError> {
    let failed = BackupError::io("read", &from);
    let mut file = File::open(&from).map_err(&failed)?;
    let metadata = file.metadata().map_err(&failed)?;
    let mut hasher = digests.hasher();
    hasher.update(b"content");
    let mut buffer = vec![0; READ_BYTES];
    let mut bytes = 0_u64;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                hasher.update(buffer.get(..read).unwrap_or_default());
                bytes += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    hasher.update(&bytes.to_le_bytes());
    let print = hasher.finalize().to_hex().to_string();
    let mode = metadata.permissions().mode() & 0o7777;
    Ok(Planned { from, path, bytes, mode, print, fixed: false })
}

fn plan_tree_file(
    from: PathBuf,
    path: String,
    log_key: u64,
    digests: Digests,
) -> Result<Planned, BackupError> {
    if !(path.ends_with(".sst") || path.ends_with(".blob")) {
        return plan_file(from, path, digests);
    }
    let failed = BackupError::io("read", &from);
    let file = File::open(&from).map_err(&failed)?;
    let metadata = file.metadata().map_err(&failed)?;
    let bytes = metadata.len();
    let mut tail = vec![0; usize::try_from(bytes.min(TAIL_BYTES)).unwrap_or(0)];
    file.read_exact_at(&mut tail, bytes.saturating_sub(TAIL_BYTES)).map_err(&failed)?;
    let mut hasher = digests.hasher();
    hasher.update(b"tree");
    hasher.update(&log_key.to_le_bytes());
    hasher.update(&(path.len() as u64).to_le_bytes());
    hasher.update(path.as_bytes());
    hasher.update(&bytes.to_le_bytes());
    hasher.update(&tail);
    let print = hasher.finalize().to_hex().to_string();
    let mode = metadata.permissions().mode() & 0o7777;
    Ok(Planned { from, path, bytes, mode, print, fixed: true })
}

/// All regular files below a folder, in order, but for what lies in the folders left out.
fn files_below(dir: &Path, leave_out: &HashSet<PathBuf>) -> Result<Vec<PathBuf>, BackupError> {
    let mut files = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = BackupError::io("list", &folder);
        for entry in fs::read_dir(&folder).map_err(&failed)? {
            let entry = entry.map_err(&failed)?;
            let path = entry.path();
            let kind = entry.file_type().map_err(&failed)?;
            if path.canonicalize().is_ok_and(|path| leave_out.contains(&path)) {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                files.push(path);
            } else if kind.is_symlink() {
                tracing::warn!(path = %path.display(), "a link is not backed up; back up its target yourself");
            }
        }
    }
    files.sort();
    Ok(files)
}

fn relative(path: &Path, dir: &Path) -> Result<String, BackupError> {
    let name = path.strip_prefix(dir).ok().and_then(Path::to_str);
    name.map(str::to_owned).ok_or_else(|| BackupError::Changed {
        path: path.to_owned(),
        problem: "its name is not UTF-8, so that no manifest can hold it; rename it".to_owned(),
    })
}
