//! An operation log, read: what each user did, in order.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::text_file::TextFileError;
use crate::workload::WorkloadError;

/// What begins a log, and each start of the server in it.
const HEAD: &str = "# scrinium-operation-log/1 ";

/// A log is read up to this many operations; a day of 5,000 users has some 10 million.
const MOST_OPERATIONS: usize = 20_000_000;

/// A line is no longer than this; what is, is no line of a log.
const LONGEST_LINE_BYTES: u64 = 1 << 16;

/// What a command of the language stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// A database is opened: the user's own mail file, or a shared one.
    #[allow(missing_docs, reason = "the name says it")]
    ChangeTo { own: bool },
    /// A view is opened, or read on.
    Open,
    /// The next page of a view.
    Entries,
    /// A key is looked for in a view.
    FindByKey,
    /// A document is read.
    Navigate,
    /// A document is written again.
    Update,
    /// A document is created.
    Add,
    /// A document is deleted.
    Delete,
    /// Documents change their folder.
    Move,
    /// Documents are marked as read or unread.
    Unread,
    /// What is unread is counted.
    GetAll,
    /// What was changed is listed.
    ModifiedNotes,
    /// What came into a folder is listed.
    FolderChanges,
    /// A message is sent.
    SendMessage,
}

/// One operation of one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Done {
    pub at_ms: u64,
    /// The number of the server's start in its higher half: people's numbers are others after each.
    pub person: u128,
    pub action: Action,
    pub bytes: u64,
}

/// A log, read.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct OperationLog {
    /// By person, and by time.
    pub done: Vec<Done>,
    pub left_out: BTreeMap<String, u64>,
    pub unreadable: u64,
    start: u64,
}

impl OperationLog {
    /// Reads `path`, and before it `path.1` if there is such a file.
    ///
    /// # Errors
    /// A file that cannot be read, or that is no operation log.
    pub fn read(path: &Path) -> Result<Self, WorkloadError> {
        let mut before = path.to_path_buf().into_os_string();
        before.push(".1");
        let before = PathBuf::from(before);
        let mut log = Self::default();
        for path in [before.as_path(), path] {
            if path == before && !path.is_file() {
                continue;
            }
            log.read_file(path).map_err(|source| TextFileError::File {
                what: "read",
                path: path.display().to_string(),
                source,
            })?;
        }
        if log.start == 0 {
            return Err(WorkloadError::Log(format!(
                "{} is no operation log: it does not begin with {}",
                path.display(),
                HEAD.trim()
            )));
        }
        log.done.sort_by_key(|done| (done.person, done.at_ms));
        Ok(log)
    }

    fn read_file(&mut self, path: &Path) -> std::io::Result<()> {
        use std::io::Read;
        let mut file = BufReader::new(File::open(path)?);
        let mut line = Vec::new();
        while self.done.len() < MOST_OPERATIONS {
            line.clear();
            if (&mut file).take(LONGEST_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            match std::str::from_utf8(&line) {
                Ok(text) => self.line(text.trim_end()),
                Err(_) => self.unreadable += 1,
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &str) {
        if let Some(start) = line.strip_prefix(HEAD) {
            self.start = start.trim().parse().unwrap_or(1).max(1);
            return;
        }
        if self.start == 0 || self.operation(line).is_none() {
            self.unreadable += 1;
        }
    }

    /// `None` for what is no line of a log.
    fn operation(&mut self, line: &str) -> Option<()> {
        let mut fields = line.split(' ');
        let at_ms = fields.next()?.parse().ok()?;
        let person = u64::from_str_radix(fields.next()?, 16).ok()?;
        let name = fields.next()?;
        let kind = fields.next()?;
        u64::from_str_radix(fields.next()?, 16).ok()?;
        let bytes = fields.next()?.parse().ok()?;
        let _ms: u64 = fields.next()?.parse().ok()?;
        let status: u16 = fields.next()?.parse().ok()?;
        if fields.next().is_some() {
            return None;
        }
        match action(name, kind).filter(|_| (200..300).contains(&status)) {
            Some(action) => {
                let person = (u128::from(self.start) << 64) | u128::from(person);
                self.done.push(Done { at_ms, person, action, bytes });
            }
            // A page that was asked for and refused is nothing that a workload should repeat.
            None => *self.left_out.entry(name.to_owned()).or_default() += 1,
        }
        Some(())
    }
}

fn action(name: &str, kind: &str) -> Option<Action> {
    Some(match (name, kind) {
        ("MAIL_DEPOSIT", _) => Action::SendMessage,
        ("OPEN_DB", "own") => Action::ChangeTo { own: true },
        ("OPEN_DB", "shared") => Action::ChangeTo { own: false },
        (_, "box" | "-") => return None,
        ("OPEN_COLLECTION", _) => Action::Open,
        ("READ_ENTRIES", _) => Action::Entries,
        ("FIND_BY_KEY", _) => Action::FindByKey,
        ("OPEN_NOTE", _) => Action::Navigate,
        ("UPDATE_NOTE", _) => Action::Update,
        ("CREATE_NOTE", _) => Action::Add,
        ("DELETE_NOTE", _) => Action::Delete,
        ("FOLDER_MOVE", _) => Action::Move,
        ("RCV_UNREAD", _) => Action::Unread,
        ("GET_UNREAD_NOTE_TABLE", _) => Action::GetAll,
        ("GET_MODIFIED_NOTES", _) => Action::ModifiedNotes,
        ("GET_ALLFOLDERCHANGES", _) => Action::FolderChanges,
        _ => return None,
    })
}
