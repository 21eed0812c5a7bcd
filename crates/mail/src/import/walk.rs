//! The files of a Maildir or of a folder of messages, in an order that does not change.

use std::fs::{self, DirEntry, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::folder::{folder_of, in_maildir};
use super::kind::{self, FileKind, SNIFFED_BYTES};
use super::mbox::{MboxItem, MboxReader};
use super::passed::PassedOver;
use super::sequences::Sequences;
use super::state::{self, MessageState};
use super::{ImportError, Position, RawMessage, is_named_mbox, stream};
use crate::source::{MEMORY_BYTES, MessageSource, SourceWriter};

/// Folders inside folders to this depth.
const DEEPEST: usize = 32;

/// Of what lies in a Maildir's `tmp` no more is counted.
const MOST_UNFINISHED: usize = 10_000;

/// The folder of messages that were deleted where they lay.
pub const TRASH: &str = "Trash";

/// How much there is to import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// Files with messages.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// All messages at a place, one after another: an mbox, a Maildir with its subfolders, a folder of messages
/// (and of mbox files), one message, or a stream of these (`-` is standard input). Symbolic links are not followed.
pub struct MailFiles {
    root: PathBuf,
    message_limit: u64,
    /// Entries still to be visited, of the folders on the way to the present one; the next one is last.
    waiting: Vec<Waiting>,
    mbox: Option<(PathBuf, MboxReader<Box<dyn Read>>)>,
    /// Messages up to here were read before.
    resume: Position,
    /// Whether messages that were deleted where they lay are read as well.
    with_deleted: bool,
    passed: PassedOver,
    /// What MH says of the folder that was read last.
    sequences: Option<(PathBuf, Option<Sequences>)>,
    /// The keywords of the folder that was read last, by their letters.
    keywords: Option<(PathBuf, Vec<String>)>,
}

struct Waiting {
    path: PathBuf,
    depth: usize,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Folder,
    /// `cur` or `new`.
    MaildirFolder,
    File(FileKind),
    Stream,
}

impl MailFiles {
    /// Begins at `root`, or continues after `resume`. A message of more than `message_limit` bytes is left out.
    ///
    /// # Errors
    /// [`ImportError::Start`] where there is nothing to read, [`ImportError::NotMail`] where it is something else.
    pub fn open(root: &Path, resume: Position, message_limit: u64) -> Result<Self, ImportError> {
        let mut files = Self {
            root: root.to_owned(),
            message_limit,
            waiting: Vec::new(),
            mbox: None,
            resume,
            with_deleted: false,
            passed: PassedOver::default(),
            sequences: None,
            keywords: None,
        };
        if let Some(what) = files.what_root_is()? {
            files.waiting.push(Waiting { path: PathBuf::new(), depth: 0, what });
        }
        Ok(files)
    }

    /// Reads messages that were deleted where they lay, too; they go into the folder [`TRASH`].
    #[must_use]
    pub fn with_deleted(mut self, with_deleted: bool) -> Self {
        self.with_deleted = with_deleted;
        self
    }

    /// What is to be imported; `None` where it is empty.
    fn what_root_is(&mut self) -> Result<Option<What>, ImportError> {
        let root = self.root.clone();
        let start = |error| ImportError::Start { path: root.clone(), error };
        if stream::is_stream(&self.root) {
            self.resume = Position::default();
            return Ok(Some(What::Stream));
        }
        // The place itself may be a link: anyone who imports named it.
        if fs::metadata(&self.root).map_err(start)?.is_dir() {
            fs::read_dir(&self.root).map_err(start)?;
            return Ok(Some(What::Folder));
        }
        let beginning = sniff(&self.root).map_err(start)?;
        if beginning.is_empty() {
            self.passed.add(kind::EMPTY, &root);
            return Ok(None);
        }
        match kind::of_file(&root, &beginning, false) {
            FileKind::Other(_) => Err(not_mail(&root, &beginning)),
            kind => Ok(Some(What::File(kind))),
        }
    }

    /// Files and bytes of all that would be read, without reading it; nothing of a stream.
    ///
    /// # Errors
    /// As [`MailFiles::open`].
    pub fn measure(root: &Path) -> Result<Measured, ImportError> {
        let mut measured = Measured::default();
        if stream::is_stream(root) {
            return Ok(measured);
        }
        let mut files = Self::open(root, Position::default(), u64::MAX)?;
        while let Some(next) = files.next_file() {
            let Ok((path, FileKind::Message | FileKind::Mbox | FileKind::MessageOrMbox)) = next else {
                continue;
            };
            measured.files += 1;
            measured.bytes += fs::metadata(files.absolute(&path)).map_or(0, |file| file.len());
        }
        Ok(measured)
    }

    /// What was passed over so far.
    #[must_use]
    pub fn passed_over(&self) -> &PassedOver {
        &self.passed
    }

    /// The next message, or what had to be left out; `None` at the end.
    pub fn next_message(&mut self) -> Option<Result<RawMessage, ImportError>> {
        loop {
            if let Some((path, mut reader)) = self.mbox.take() {
                match self.next_of_mbox(&path, &mut reader) {
                    Some(Err(error @ (ImportError::File { .. } | ImportError::Spool(_)))) => {
                        return Some(Err(error));
                    }
                    Some(item) => {
                        self.mbox = Some((path, reader));
                        return Some(item);
                    }
                    None => continue,
                }
            }
            if self.waiting.last().is_some_and(|next| next.what == What::Stream) {
                self.waiting.pop();
                match self.open_stream() {
                    Ok(Some(message)) => return Some(Ok(message)),
                    Ok(None) => continue,
                    Err(error) => return Some(Err(error)),
                }
            }
            let (path, kind) = match self.next_file()? {
                Ok(next) => next,
                Err(error) => return Some(Err(error)),
            };
            match self.read(path, kind) {
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

    /// The next file, relative to the root, that was not wholly read before.
    fn next_file(&mut self) -> Option<Result<(PathBuf, FileKind), ImportError>> {
        while let Some(next) = self.waiting.pop() {
            let What::File(kind) = next.what else {
                // A folder is compared by its end: the resume position may lie in it.
                let passed = next.path < self.resume.path && !self.resume.path.starts_with(&next.path);
                if !passed && let Err(error) = self.enter(&next) {
                    return Some(Err(error));
                }
                continue;
            };
            let is_present = next.path == self.resume.path && self.resume != Position::default();
            let passed = next.path < self.resume.path || (is_present && kind == FileKind::Message);
            if !passed {
                return Some(Ok((next.path, kind)));
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
        let is_root_of_maildir = folder.what != What::MaildirFolder && is_maildir(&path);
        for entry in entries {
            let relative = folder.path.join(entry.file_name());
            let what = match self.look_at(folder, is_root_of_maildir, &entry) {
                Ok(Some(what)) => what,
                Ok(None) => continue,
                Err(reason) => {
                    self.passed.add(reason, &relative);
                    continue;
                }
            };
            self.waiting.push(Waiting { path: relative, depth: folder.depth + 1, what });
        }
        Ok(())
    }

    /// What an entry of a folder is; `None` where it is of no account, the reason where it is passed over.
    fn look_at(
        &mut self,
        folder: &Waiting,
        is_root_of_maildir: bool,
        entry: &DirEntry,
    ) -> Result<Option<What>, &'static str> {
        let Ok(file_type) = entry.file_type() else { return Ok(None) };
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if file_type.is_symlink() {
            return Err("a symbolic link");
        }
        if file_type.is_dir() {
            return match name.as_ref() {
                "tmp" if is_root_of_maildir => {
                    self.pass_unfinished(&path, &folder.path.join("tmp"));
                    Ok(None)
                }
                "cur" | "new" if is_root_of_maildir => Ok(Some(What::MaildirFolder)),
                _ if name.starts_with('.') && !is_root_of_maildir && !is_maildir(&path) => Err("hidden"),
                _ => Ok(Some(What::Folder)),
            };
        }
        if !file_type.is_file() {
            return Err("neither a file nor a folder");
        }
        if let Some(reason) = kind::of_program(&name).filter(|_| folder.what != What::MaildirFolder) {
            return Err(reason);
        }
        if name.starts_with('.') {
            return Err("hidden");
        }
        if name.starts_with(',') {
            // MH puts a comma before the name of what was deleted.
            return Err(DELETED);
        }
        match self.kind_of(folder, &path) {
            FileKind::Other(reason) => Err(reason),
            kind => Ok(Some(What::File(kind))),
        }
    }

    fn kind_of(&self, folder: &Waiting, path: &Path) -> FileKind {
        // What lies where messages belong, or is called as one, shows what it is when it is read.
        if folder.what == What::MaildirFolder {
            return if is_named_mbox(path) { FileKind::Mbox } else { FileKind::Message };
        }
        let mut index = path.as_os_str().to_owned();
        index.push(".msf");
        // What cannot be read is named when it is to be.
        sniff(path).map_or(FileKind::Message, |beginning| {
            kind::of_file(path, &beginning, begins_from(&beginning) && Path::new(&index).exists())
        })
    }

    /// What a program was delivering into a Maildir when it was stopped.
    fn pass_unfinished(&mut self, path: &Path, relative: &Path) {
        let Ok(entries) = fs::read_dir(path) else { return };
        for _ in entries.take(MOST_UNFINISHED) {
            self.passed.add("an unfinished delivery to a Maildir", relative);
        }
    }

    fn read(&mut self, path: PathBuf, kind: FileKind) -> Result<Option<RawMessage>, ImportError> {
        let is_mbox = match kind {
            FileKind::Mbox => true,
            FileKind::MessageOrMbox => self.holds_several(&path)?,
            FileKind::Message | FileKind::Other(_) => false,
        };
        if is_mbox { self.open_mbox(path).map(|()| None) } else { self.read_file(&path) }
    }

    /// Whether a file that begins with a separator has another one.
    fn holds_several(&self, path: &Path) -> Result<bool, ImportError> {
        let absolute = self.absolute(path);
        let failed = |error| ImportError::reading(&absolute, error);
        let mut reader = MboxReader::new(File::open(&absolute).map_err(failed)?, 0, self.message_limit);
        reader.next_message().map_err(failed)?;
        Ok(reader.next_message().map_err(failed)?.is_some())
    }

    fn read_file(&mut self, path: &Path) -> Result<Option<RawMessage>, ImportError> {
        let absolute = self.absolute(path);
        let failed = |error| ImportError::reading(&absolute, error);
        let source = self.read_whole(&mut File::open(&absolute).map_err(failed)?, &absolute)?;
        let beginning = source.piece(0, state::LONGEST_HEADER).map_err(failed)?;
        let reason = if source.is_empty() {
            Some(kind::EMPTY)
        } else {
            kind::foreign(beginning.get(..1024).unwrap_or(&beginning)).map(|(what, _)| what)
        };
        if let Some(reason) = reason {
            self.passed.add(reason, path);
            return Ok(None);
        }
        let state = self.state_of(path, &beginning);
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let delivered_s = state::exported_received(&name);
        let position = Position { path: path.to_owned(), offset: source.len() };
        let folder = folder_of(&self.root, path, false);
        let place = absolute.display().to_string();
        Ok(self.kept(RawMessage { source, delivered_s, position, folder, state, place }))
    }

    fn read_whole(&self, reader: &mut dyn Read, absolute: &Path) -> Result<MessageSource, ImportError> {
        let failed = |error| ImportError::reading(absolute, error);
        let mut source = SourceWriter::new(self.message_limit);
        let mut piece = Vec::new();
        loop {
            piece.clear();
            (&mut *reader).take(MEMORY_BYTES as u64).read_to_end(&mut piece).map_err(failed)?;
            source.push(&piece).map_err(failed)?;
            if source.is_too_large() {
                let (path, limit) = (absolute.to_owned(), self.message_limit);
                return Err(ImportError::TooLarge { path, offset: 0, limit });
            }
            if piece.len() < MEMORY_BYTES {
                return source.finish(0).map_err(failed);
            }
        }
    }

    /// What was kept of a message in a file of its own.
    fn state_of(&mut self, path: &Path, beginning: &[u8]) -> MessageState {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        if in_maildir(path) {
            let mut state = state::of_maildir_name(&name);
            let folder = folder.parent().unwrap_or_else(|| Path::new("")).to_owned();
            state::add_keywords(&mut state, &name, self.keywords_of(&folder));
            return state;
        }
        if let Some(mut state) = state::of_exported_name(&name) {
            let folder = folder.to_owned();
            state::add_keywords(&mut state, &name, self.keywords_of(&folder));
            return state;
        }
        if self.sequences.as_ref().is_none_or(|(of, _)| of != folder) {
            let is_file = path.as_os_str().is_empty();
            let sequences = if is_file { None } else { Sequences::of(&self.absolute(folder)) };
            self.sequences = Some((folder.to_owned(), sequences));
        }
        match &self.sequences {
            Some((_, Some(sequences))) => sequences.state_of(&name),
            _ => state::of_header(beginning),
        }
    }

    fn keywords_of(&mut self, folder: &Path) -> &[String] {
        if self.keywords.as_ref().is_none_or(|(of, _)| of != folder) {
            self.keywords = Some((folder.to_owned(), state::keywords_of(&self.absolute(folder))));
        }
        self.keywords.as_ref().map_or(&[], |(_, keywords)| keywords)
    }

    /// The message, unless it was deleted where it lay and those are not wanted.
    fn kept(&mut self, mut message: RawMessage) -> Option<RawMessage> {
        if message.state.deleted {
            if self.with_deleted {
                TRASH.clone_into(&mut message.folder);
                message.state.folders.clear();
                return Some(message);
            }
            self.passed.add(DELETED, &message.position.path);
            return None;
        }
        Some(message)
    }

    fn open_mbox(&mut self, path: PathBuf) -> Result<(), ImportError> {
        let absolute = self.absolute(&path);
        let offset = if path == self.resume.path { self.resume.offset } else { 0 };
        let opened = File::open(&absolute).and_then(|mut file| {
            let beginning = if offset > 0 { sniff(&absolute)? } else { Vec::new() };
            file.seek(SeekFrom::Start(offset))?;
            Ok((file, beginning))
        });
        let (file, beginning) = opened.map_err(|error| ImportError::File { path: absolute, error })?;
        let reader = MboxReader::new(Box::new(file) as Box<dyn Read>, offset, self.message_limit);
        self.mbox = Some((path, reader.in_file(&beginning)));
        Ok(())
    }

    /// Reads what comes through a stream: an mbox, or one message.
    fn open_stream(&mut self) -> Result<Option<RawMessage>, ImportError> {
        let root = self.root.clone();
        let start = |error| ImportError::Start { path: root.clone(), error };
        let mut stream = stream::open(&root).map_err(start)?;
        let mut beginning = Vec::new();
        (&mut stream).take(SNIFFED_BYTES).read_to_end(&mut beginning).map_err(start)?;
        if beginning.is_empty() {
            self.passed.add(kind::EMPTY, &root);
            return Ok(None);
        }
        let kind = kind::of_file(Path::new(""), &beginning, true);
        if let FileKind::Other(_) = kind {
            return Err(not_mail(&root, &beginning));
        }
        let mut whole = io::Cursor::new(beginning).chain(stream);
        if kind == FileKind::Mbox {
            let reader = MboxReader::new(Box::new(whole) as Box<dyn Read>, 0, self.message_limit);
            self.mbox = Some((PathBuf::new(), reader));
            return Ok(None);
        }
        let source = self.read_whole(&mut whole, &root)?;
        let beginning = source.piece(0, state::LONGEST_HEADER).map_err(start)?;
        let (state, place) = (state::of_header(&beginning), root.display().to_string());
        let position = Position { path: PathBuf::new(), offset: source.len() };
        let folder = crate::inbox::INBOX.to_owned();
        Ok(self.kept(RawMessage { source, delivered_s: None, position, folder, state, place }))
    }

    fn next_of_mbox(
        &mut self,
        path: &Path,
        reader: &mut MboxReader<Box<dyn Read>>,
    ) -> Option<Result<RawMessage, ImportError>> {
        loop {
            let begins = reader.offset();
            let item = match reader.next_message() {
                Ok(item) => item?,
                Err(error) => return Some(Err(ImportError::reading(&self.absolute(path), error))),
            };
            let absolute = self.absolute(path);
            let message = match item {
                MboxItem::Message { source, delivered_s } => {
                    let position = Position { path: path.to_owned(), offset: reader.offset() };
                    let folder = folder_of(&self.root, path, true);
                    let place = format!("{} at byte {begins}", absolute.display());
                    let (state, source) = match source.piece(0, state::LONGEST_HEADER) {
                        Ok(beginning) => match state::of_exported_fields(&beginning) {
                            Some((state, bytes)) => (state, source.with_beginning(Bytes::new(), bytes)),
                            None => (state::of_header(&beginning), source),
                        },
                        Err(error) => return Some(Err(ImportError::reading(&absolute, error))),
                    };
                    RawMessage { source, delivered_s, position, folder, state, place }
                }
                MboxItem::FolderData { .. } => {
                    self.passed.add("a mail program's data in an mbox, no message", path);
                    continue;
                }
                MboxItem::TooLarge { offset } => {
                    let limit = self.message_limit;
                    return Some(Err(ImportError::TooLarge { path: absolute, offset, limit }));
                }
            };
            if let Some(message) = self.kept(message) {
                return Some(Ok(message));
            }
        }
    }
}

/// Why a message is passed over that its mail program has marked so.
const DELETED: &str = "deleted where it lay";

fn begins_from(beginning: &[u8]) -> bool {
    beginning.starts_with(b"From ")
}

/// Whether a folder has messages as a Maildir does. Some lack `new` or `tmp`.
fn is_maildir(path: &Path) -> bool {
    let has = |name: &str| path.join(name).is_dir();
    has("cur") || (has("new") && has("tmp"))
}

/// The beginning of a file.
fn sniff(path: &Path) -> io::Result<Vec<u8>> {
    let mut beginning = Vec::new();
    File::open(path)?.take(SNIFFED_BYTES).read_to_end(&mut beginning)?;
    Ok(beginning)
}

fn not_mail(path: &Path, beginning: &[u8]) -> ImportError {
    let unknown = || {
        if kind::is_noise(beginning) {
            ("no text", "an mbox, a message or a folder of them is needed")
        } else {
            (
                "no mail",
                "it begins neither with a header field nor with a line \"From \"; a text file that is mail ends in .eml",
            )
        }
    };
    let (what, advice) = kind::foreign(beginning).unwrap_or_else(unknown);
    let advice = advice.replace("FILE", &path.display().to_string());
    ImportError::NotMail { path: path.to_owned(), what, advice }
}
