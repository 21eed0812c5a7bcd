//! The files of a Maildir or of a folder of messages, in an order that does not change.

use std::fs::{self, DirEntry, File};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::folder::{folder_of, is_read};
use super::mbox::{MboxItem, MboxReader};
use super::{ImportError, Position, RawMessage, is_named_mbox};

/// Folders inside folders to this depth.
const DEEPEST: usize = 32;

/// So much of a file is looked at to tell whether it is a message.
const SNIFFED_BYTES: u64 = 4 * 1024;

/// Names of files that are messages, whatever they hold.
const MESSAGE_EXTENSIONS: [&str; 4] = ["eml", "txt", "mail", "email"];

/// How much there is to import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// Files with messages.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// All messages at a place, one after another: an mbox, a Maildir with its subfolders, a folder of messages
/// (and of mbox files), or one message. Symbolic links are not followed.
pub struct MailFiles {
    root: PathBuf,
    message_limit: u64,
    /// Entries still to be visited, of the folders on the way to the present one; the next one is last.
    waiting: Vec<Waiting>,
    mbox: Option<(PathBuf, MboxReader<BufReader<File>>)>,
    /// Messages up to here were read before.
    resume: Position,
}

struct Waiting {
    path: PathBuf,
    depth: usize,
    is_folder: bool,
}

impl MailFiles {
    /// Begins at `root`, or goes on after `resume`. A message of more than `message_limit` bytes is left out.
    ///
    /// # Errors
    /// [`ImportError::Start`] where there is nothing to read.
    pub fn open(root: &Path, resume: Position, message_limit: u64) -> Result<Self, ImportError> {
        let start = |error| ImportError::Start { path: root.to_owned(), error };
        // The place itself may be a link: whoever imports named it.
        let kind = fs::metadata(root).map_err(start)?;
        if kind.is_dir() {
            fs::read_dir(root).map_err(start)?;
        } else {
            File::open(root).map_err(start)?;
        }
        let waiting = vec![Waiting { path: PathBuf::new(), depth: 0, is_folder: kind.is_dir() }];
        Ok(Self { root: root.to_owned(), message_limit, waiting, mbox: None, resume })
    }

    /// Files and bytes of all that would be read, without reading it.
    ///
    /// # Errors
    /// [`ImportError::Start`].
    pub fn measure(root: &Path) -> Result<Measured, ImportError> {
        let mut files = Self::open(root, Position::default(), u64::MAX)?;
        let mut measured = Measured::default();
        while let Some(next) = files.next_file() {
            let Ok(path) = next else { continue };
            measured.files += 1;
            measured.bytes += fs::metadata(files.absolute(&path)).map_or(0, |file| file.len());
        }
        Ok(measured)
    }

    /// The next message, or what had to be left out; `None` at the end.
    pub fn next_message(&mut self) -> Option<Result<RawMessage, ImportError>> {
        loop {
            if let Some((path, mut reader)) = self.mbox.take() {
                match self.next_of_mbox(&path, &mut reader) {
                    Some(Err(error @ ImportError::File { .. })) => return Some(Err(error)),
                    Some(item) => {
                        self.mbox = Some((path, reader));
                        return Some(item);
                    }
                    None => continue,
                }
            }
            let path = match self.next_file()? {
                Ok(path) => path,
                Err(error) => return Some(Err(error)),
            };
            let read =
                if self.is_mbox(&path) { self.open_mbox(path).map(|()| None) } else { self.read_file(path) };
            match read {
                Ok(Some(message)) => return Some(Ok(message)),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        // Joining an empty path would put a slash behind a file's name.
        if path.as_os_str().is_empty() { self.root.clone() } else { self.root.join(path) }
    }

    fn is_mbox(&self, path: &Path) -> bool {
        if !path.as_os_str().is_empty() {
            return is_named_mbox(path);
        }
        let is_message = self.root.extension().is_some_and(|extension| {
            MESSAGE_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
        });
        is_named_mbox(&self.root) || (!is_message && sniff(&self.root).starts_with(b"From "))
    }

    /// The next file, relative to the root, that was not wholly read before.
    fn next_file(&mut self) -> Option<Result<PathBuf, ImportError>> {
        while let Some(next) = self.waiting.pop() {
            if next.is_folder {
                // A folder is compared by its end: the resume position may lie in it.
                let passed = next.path < self.resume.path && !self.resume.path.starts_with(&next.path);
                if !passed && let Err(error) = self.enter(&next) {
                    return Some(Err(error));
                }
                continue;
            }
            let passed = next.path < self.resume.path
                || (next.path == self.resume.path
                    && self.resume != Position::default()
                    && !self.is_mbox(&next.path));
            if !passed {
                return Some(Ok(next.path));
            }
        }
        None
    }

    fn enter(&mut self, folder: &Waiting) -> Result<(), ImportError> {
        let path = self.absolute(&folder.path);
        if folder.depth >= DEEPEST {
            return Err(ImportError::TooDeep { path });
        }
        let listed = fs::read_dir(&path).and_then(Iterator::collect::<Result<Vec<DirEntry>, _>>);
        let mut entries = listed.map_err(|error| ImportError::File { path: path.clone(), error })?;
        entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.file_name()));
        let is_maildir = path.join("cur").is_dir() && path.join("new").is_dir();
        for entry in entries {
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let in_maildir = matches!(name.as_ref(), "cur" | "new") || name.starts_with('.');
            let wanted = if is_maildir { kind.is_dir() && in_maildir } else { !name.starts_with('.') };
            if !wanted || !(kind.is_dir() || (kind.is_file() && self.is_mail(&folder.path, &entry))) {
                continue;
            }
            self.waiting.push(Waiting {
                path: folder.path.join(entry.file_name()),
                depth: folder.depth + 1,
                is_folder: kind.is_dir(),
            });
        }
        Ok(())
    }

    /// Whether a file in `folder` is a message or an mbox: by its place, its name, or its first lines.
    fn is_mail(&self, folder: &Path, entry: &DirEntry) -> bool {
        let path = entry.path();
        let in_maildir = folder.file_name().is_some_and(|name| name == "cur" || name == "new")
            && self.absolute(folder).parent().is_some_and(|parent| parent.join("tmp").is_dir());
        let named = path.extension().is_some_and(|extension| {
            MESSAGE_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
        });
        in_maildir || named || is_named_mbox(&path) || begins_like_mail(&sniff(&path))
    }

    fn read_file(&self, path: PathBuf) -> Result<Option<RawMessage>, ImportError> {
        let absolute = self.absolute(&path);
        let failed = |error| ImportError::File { path: absolute.clone(), error };
        let mut source = Vec::new();
        let file = File::open(&absolute).map_err(failed)?;
        let read =
            file.take(self.message_limit.saturating_add(1)).read_to_end(&mut source).map_err(failed)?;
        if read as u64 > self.message_limit {
            return Err(ImportError::TooLarge { path: absolute, offset: 0, limit: self.message_limit });
        }
        let (folder, read_before) = (folder_of(&self.root, &path), is_read(&path));
        let position = Position { path, offset: read as u64 };
        let source = Bytes::from(source);
        Ok(Some(RawMessage { source, delivered_s: None, position, folder, read: read_before }))
    }

    fn open_mbox(&mut self, path: PathBuf) -> Result<(), ImportError> {
        let absolute = self.absolute(&path);
        let offset = if path == self.resume.path { self.resume.offset } else { 0 };
        let opened = File::open(&absolute).and_then(|mut file| {
            file.seek(SeekFrom::Start(offset))?;
            Ok(BufReader::with_capacity(256 * 1024, file))
        });
        let file = opened.map_err(|error| ImportError::File { path: absolute, error })?;
        self.mbox = Some((path, MboxReader::new(file, offset, self.message_limit)));
        Ok(())
    }

    fn next_of_mbox(
        &self,
        path: &Path,
        reader: &mut MboxReader<BufReader<File>>,
    ) -> Option<Result<RawMessage, ImportError>> {
        let item = match reader.next_message() {
            Ok(item) => item?,
            Err(error) => return Some(Err(ImportError::File { path: self.absolute(path), error })),
        };
        Some(match item {
            MboxItem::Message { source, delivered_s } => {
                let position = Position { path: path.to_owned(), offset: reader.offset() };
                let folder = folder_of(&self.root, path);
                Ok(RawMessage { source, delivered_s, position, folder, read: false })
            }
            MboxItem::TooLarge { offset } => {
                Err(ImportError::TooLarge { path: self.absolute(path), offset, limit: self.message_limit })
            }
        })
    }
}

/// The beginning of a file; empty where it cannot be read, which shows when it is imported.
fn sniff(path: &Path) -> Vec<u8> {
    let mut beginning = Vec::new();
    if let Ok(file) = File::open(path) {
        // What was read before an error is enough to go by.
        drop(file.take(SNIFFED_BYTES).read_to_end(&mut beginning));
    }
    beginning
}

/// Whether text begins with a header field or an mbox line.
fn begins_like_mail(beginning: &[u8]) -> bool {
    let line = beginning.trim_ascii_start().split(|&byte| byte == b'\n').next().unwrap_or_default();
    if line.starts_with(b"From ") {
        return true;
    }
    let Some(colon) = line.iter().position(|&byte| byte == b':') else { return false };
    let name = line.get(..colon).unwrap_or_default();
    let is_name = !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    is_name && line.get(colon + 1).is_none_or(u8::is_ascii_whitespace)
}
