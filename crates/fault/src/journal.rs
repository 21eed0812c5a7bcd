//! What the interposed library has written down.
//!
//! Records follow each other as the calls did. Each is a head of 32 bytes in the byte order of the machine (operation
//! and file descriptor of 4 bytes, two numbers of 8, lengths of a name and of data of 4), the name, the data.

use std::io;
use std::path::Path;

const HEAD_BYTES: usize = 32;

/// One call that changed something. Paths are relative to the recorded folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'journal> {
    /// A program began; file descriptors mean something else from here on.
    Process,
    /// A file or folder was opened.
    Open {
        /// Its descriptor.
        file: i32,
        /// As given to `open`.
        flags: i32,
        /// Whether it is a folder.
        is_folder: bool,
        /// Where.
        path: &'journal str,
    },
    /// A descriptor means what another one means.
    Duplicate {
        /// The first.
        file: i32,
        /// The other.
        copy: i32,
    },
    /// Data was written.
    Write {
        /// To which descriptor.
        file: i32,
        /// Where in the file.
        offset: u64,
        /// What.
        data: &'journal [u8],
    },
    /// A file got this length.
    Truncate {
        /// Its descriptor.
        file: i32,
        /// The length.
        bytes: u64,
    },
    /// A file got at least this length.
    Extend {
        /// Its descriptor.
        file: i32,
        /// The length.
        bytes: u64,
    },
    /// A sync of a file or folder began: what came before will be durable when it is done.
    SyncBegun {
        /// Its descriptor.
        file: i32,
        /// By which its end is found.
        number: u64,
    },
    /// A sync was answered.
    SyncDone {
        /// Which one.
        number: u64,
    },
    /// A sync was answered with an error: of what came before, nobody will ever know.
    SyncFailed {
        /// The descriptor.
        file: i32,
    },
    /// A name was changed.
    Rename {
        /// The old one.
        from: &'journal str,
        /// The new one.
        to: &'journal str,
    },
    /// A file got another name.
    Link {
        /// One that it has.
        from: &'journal str,
        /// The further one.
        to: &'journal str,
    },
    /// A name was taken away.
    Unlink(&'journal str),
    /// A folder was made.
    MakeFolder(&'journal str),
    /// An empty folder was removed.
    RemoveFolder(&'journal str),
    /// The program wrote this to the file `marks`.
    Mark(&'journal str),
}

/// A recorded run.
#[derive(Debug)]
pub struct Journal {
    bytes: Vec<u8>,
}

impl Journal {
    /// Reads what the library has written.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(Self { bytes: std::fs::read(path)? })
    }

    /// All calls in their order. A record that a killed program left unfinished at the end is left out.
    #[must_use]
    pub fn events(&self) -> Vec<Event<'_>> {
        let mut rest = self.bytes.as_slice();
        let mut events = Vec::new();
        while let Some((event, after)) = take(rest) {
            events.extend(event);
            rest = after;
        }
        events
    }
}

/// The first record, unless it is of no use, and what follows it.
fn take(bytes: &[u8]) -> Option<(Option<Event<'_>>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let four = |at: usize| head.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let eight = |at: usize| head.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
    let (operation, file) = (four(0)?, four(4)?.cast_signed());
    let (first, second) = (eight(8)?, eight(16)?);
    let (name, rest) = rest.split_at_checked(usize::try_from(four(24)?).ok()?)?;
    let (data, rest) = rest.split_at_checked(usize::try_from(four(28)?).ok()?)?;
    Some((event(operation, file, (first, second), name, data), rest))
}

fn event<'a>(
    operation: u32,
    file: i32,
    (first, second): (u64, u64),
    name: &'a [u8],
    data: &'a [u8],
) -> Option<Event<'a>> {
    let path = std::str::from_utf8(name).ok()?;
    let text = || std::str::from_utf8(data).ok();
    Some(match operation {
        1 => Event::Process,
        2 => Event::Open { file, flags: i32::try_from(first).ok()?, is_folder: second & 1 != 0, path },
        3 => Event::Duplicate { file, copy: i32::try_from(first).ok()? },
        4 => Event::Write { file, offset: first, data },
        5 => Event::Truncate { file, bytes: first },
        6 => Event::Extend { file, bytes: first },
        7 => Event::SyncBegun { file, number: first },
        8 => Event::SyncDone { number: first },
        9 => Event::SyncFailed { file },
        10 => Event::Rename { from: path, to: text()? },
        11 => Event::Link { from: path, to: text()? },
        12 => Event::Unlink(path),
        13 => Event::MakeFolder(path),
        14 => Event::RemoveFolder(path),
        15 => Event::Mark(text()?),
        _ => return None,
    })
}
