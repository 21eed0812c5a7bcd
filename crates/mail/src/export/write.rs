//! The files of one folder.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{ExportFormat, ExportReport, ExportedSource, MailExportError, names};
use crate::import::{EXPORT_MARK, EXPORTED_BY, KEYWORD_FILE, MessageState, QuotedLines};
use crate::inbox::INBOX;

/// A message is copied in pieces of this size.
const PIECE_BYTES: usize = 256 << 10;

/// Keywords have letters in the names of files (as Dovecot writes them).
const KEYWORDS_MAX: usize = 26;

/// What is written of a message besides its bytes.
pub(super) struct Written<'w> {
    pub(super) uid: u64,
    /// When it came, in seconds since 1970.
    pub(super) received_s: i64,
    pub(super) state: &'w MessageState,
}

pub(super) struct FolderWriter {
    /// Where it lies: a folder, or an mbox.
    path: PathBuf,
    format: ExportFormat,
    mbox: Option<BufWriter<File>>,
    /// By their letters.
    keywords: Vec<String>,
    lost_keywords: u64,
}

fn failed(path: &Path) -> impl Fn(io::Error) -> MailExportError + use<'_> {
    |cause| MailExportError::File { path: path.to_owned(), cause }
}

fn make_folder(path: &Path) -> Result<(), MailExportError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed(path))
}

/// Only who has made it reads it.
fn new_file(path: &Path) -> Result<File, MailExportError> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed(path))
}

/// The folder of an export: it is made, or empty.
pub(super) fn make_root(root: &Path) -> Result<(), MailExportError> {
    make_folder(root)?;
    let mut there = fs::read_dir(root).map_err(failed(root))?;
    if there.next().is_some() { Err(MailExportError::NotEmpty(root.to_owned())) } else { Ok(()) }
}

pub(super) fn finish_root(root: &Path, report: &ExportReport) -> Result<(), MailExportError> {
    let path = root.join("scrinium-export.json");
    let text = format!("{:#}\n", report.to_json());
    let mut file = new_file(&path)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed(&path))
}

impl FolderWriter {
    pub(super) fn make(root: &Path, folder: &str, format: ExportFormat) -> Result<Self, MailExportError> {
        let parts = names::parts(folder, format);
        let mut mbox = None;
        let path = match format {
            // Maildir++: the Inbox is at the top, the others are called by all their parts.
            ExportFormat::Maildir if folder == INBOX => root.to_owned(),
            ExportFormat::Maildir => root.join(format!(".{}", parts.join("."))),
            ExportFormat::Eml => parts.iter().fold(root.to_owned(), |path, part| path.join(part)),
            ExportFormat::Mbox => {
                let (last, above) = parts.split_last().map_or(("", &[][..]), |(last, above)| (last, above));
                let above = above.iter().fold(root.to_owned(), |path, part| path.join(format!("{part}.sbd")));
                above.join(format!("{last}.mbox"))
            }
        };
        match format {
            ExportFormat::Maildir => {
                for within in ["cur", "new", "tmp"] {
                    make_folder(&path.join(within))?;
                }
            }
            ExportFormat::Eml => make_folder(&path)?,
            ExportFormat::Mbox => {
                make_folder(path.parent().unwrap_or(root))?;
                mbox = Some(BufWriter::new(new_file(&path)?));
            }
        }
        Ok(Self { path, format, mbox, keywords: Vec::new(), lost_keywords: 0 })
    }

    /// Writes a message, and says how many bytes it has.
    pub(super) fn write(
        &mut self,
        written: &Written<'_>,
        source: &ExportedSource,
    ) -> Result<u64, MailExportError> {
        match &mut self.mbox {
            Some(mbox) => write_mbox(mbox, &self.path, written, source)?,
            None => {
                let letters = self.letters(written.state);
                let Written { uid, received_s, .. } = written;
                let size = source.bytes();
                let path = match self.format {
                    ExportFormat::Maildir => self
                        .path
                        .join("cur")
                        .join(format!("{received_s}.{uid}.{EXPORTED_BY},S={size}:2,{letters}")),
                    _ => self.path.join(format!("{received_s}.{uid}.{EXPORTED_BY}_2,{letters}.eml")),
                };
                let mut file = new_file(&path)?;
                let copied = each_piece(source, |piece| file.write_all(piece).map_err(failed(&path)));
                if let Err(error) = copied {
                    // Half a message must not stay.
                    fs::remove_file(&path).map_err(failed(&path))?;
                    return Err(error);
                }
                let received = jiff::Timestamp::from_second(*received_s).unwrap_or_default();
                file.set_modified(received.into()).map_err(failed(&path))?;
            }
        }
        Ok(source.bytes())
    }

    /// Flags as the name of a file has them: letters in the order of ASCII.
    fn letters(&mut self, state: &MessageState) -> String {
        let flags = [
            (state.draft, 'D'),
            (state.flagged, 'F'),
            (state.forwarded, 'P'),
            (state.answered, 'R'),
            (state.read, 'S'),
            (state.deleted, 'T'),
        ];
        let mut letters: Vec<char> =
            flags.into_iter().filter_map(|(is_set, letter)| is_set.then_some(letter)).collect();
        for keyword in &state.keywords {
            let known = self.keywords.iter().position(|other| other == keyword);
            let place = known.or_else(|| {
                let place = Some(self.keywords.len()).filter(|place| *place < KEYWORDS_MAX)?;
                self.keywords.push(keyword.clone());
                Some(place)
            });
            match place.and_then(|place| ('a'..='z').nth(place)) {
                Some(letter) => letters.push(letter),
                None => self.lost_keywords += 1,
            }
        }
        letters.sort_unstable();
        letters.into_iter().collect()
    }

    /// Ends the folder; says how many keywords had no letter.
    pub(super) fn finish(self) -> Result<u64, MailExportError> {
        let Self { path, mbox, keywords, lost_keywords, .. } = self;
        if let Some(mut mbox) = mbox {
            mbox.flush().map_err(failed(&path))?;
        }
        if !keywords.is_empty() {
            let path = path.join(KEYWORD_FILE);
            let lines: String =
                keywords.iter().enumerate().map(|(place, keyword)| format!("{place} {keyword}\n")).collect();
            new_file(&path)?.write_all(lines.as_bytes()).map_err(failed(&path))?;
        }
        Ok(lost_keywords)
    }
}

fn each_piece(
    source: &ExportedSource,
    mut each: impl FnMut(&[u8]) -> Result<(), MailExportError>,
) -> Result<(), MailExportError> {
    let mut offset = 0;
    loop {
        let piece = source.read(offset, PIECE_BYTES)?;
        if piece.is_empty() {
            return Ok(());
        }
        offset += piece.len() as u64;
        each(&piece)?;
    }
}

/// A message in an mbox: its separator, what is known of it in fields that other programs read, and its quoted lines. The
/// last of the fields says that they are not the message's own.
fn write_mbox(
    mbox: &mut BufWriter<File>,
    path: &Path,
    written: &Written<'_>,
    source: &ExportedSource,
) -> Result<(), MailExportError> {
    // What cannot be read is not begun.
    source.read(0, 1)?;
    let Written { received_s, state, .. } = written;
    let date = jiff::Timestamp::from_second(*received_s).unwrap_or_default();
    let letters = |flags: &[(bool, char)]| -> String {
        flags.iter().filter_map(|(is_set, letter)| is_set.then_some(*letter)).collect()
    };
    let status = letters(&[(state.read, 'R'), (true, 'O')]);
    let more = [(state.answered, 'A'), (state.flagged, 'F'), (state.draft, 'T'), (state.deleted, 'D')];
    let mut head = format!("From - {}\nStatus: {status}\n", date.strftime("%a %b %e %H:%M:%S %Y"));
    let more = letters(&more);
    if !more.is_empty() {
        head.push_str(&format!("X-Status: {more}\n"));
    }
    let forwarded = state.forwarded.then_some("$Forwarded");
    let keywords: Vec<&str> = state.keywords.iter().map(String::as_str).chain(forwarded).collect();
    if !keywords.is_empty() {
        head.push_str(&format!("X-Keywords: {}\n", keywords.join(" ")));
    }
    head.push_str(&format!("{EXPORT_MARK}: 1\n"));
    mbox.write_all(head.as_bytes()).map_err(failed(path))?;
    let mut quoted = QuotedLines::default();
    let copied =
        each_piece(source, |piece| quoted.write(piece, |bytes| mbox.write_all(bytes)).map_err(failed(path)));
    copied.map_err(|error| match error {
        // Half a message stands there, and nothing can follow.
        MailExportError::Database(error) => failed(path)(io::Error::other(error)),
        error => error,
    })?;
    quoted.finish(|bytes| mbox.write_all(bytes)).map_err(failed(path))
}
