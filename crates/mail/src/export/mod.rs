//! A person's mail as files that other programs read: a Maildir, mbox files, or folders of messages, each with folders, flags and the dates
//! when messages came. What is written here, an import brings back as it was.

mod names;
mod write;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scrinium_database::folder::record::{ANSWERED, DELETED, DRAFT, FLAGGED};
use scrinium_database::{
    Access, AttachmentReader, Database, DatabaseError, FolderKind, FolderMember, ReadOptions,
    SOURCE_ATTACHMENT, SOURCE_START,
};
use scrinium_statistics::Task;
use serde_json::{Value, json};

use crate::import::{MessageSource, MessageState};
use crate::outgoing::MessageComposer;
use write::{FolderWriter, Written};

/// Messages of a folder that are looked up at once.
const PAGE: usize = 200;

static EXPORT: Access = Access::of_the_server("exporting mail");

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// A file a message, flags in its name (Maildir++, as Dovecot and Courier keep it).
    Maildir,
    /// A file a folder (RFC 4155, `mboxrd`).
    Mbox,
    /// A file a message, `.eml`, in a folder a folder.
    Eml,
}

impl ExportReport {
    /// As it is written down.
    #[must_use]
    pub fn to_json(self) -> Value {
        let Self { folders, messages, bytes, left_out, lost_keywords } = self;
        json!({
            "folders": folders, "messages": messages, "bytes": bytes, "left_out": left_out,
            "lost_keywords": lost_keywords,
        })
    }
}

impl ExportFormat {
    const ALL: [Self; 3] = [Self::Maildir, Self::Mbox, Self::Eml];

    /// As it is asked for.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Maildir => "maildir",
            Self::Mbox => "mbox",
            Self::Eml => "eml",
        }
    }

    /// The format that is written so.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.text() == text)
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportReport {
    /// Folders, empty ones too.
    pub folders: u64,
    /// Messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that could not be read.
    pub left_out: u64,
    /// Keywords of messages for which a folder had no letter left: a Maildir has 26.
    pub lost_keywords: u64,
}

/// What an export could not go on for.
#[derive(Debug, thiserror::Error)]
pub enum MailExportError {
    /// A file or folder.
    #[error("cannot write {}: {cause}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// There is something there already.
    #[error("{} is not empty; name a folder that is, or is not there", .0.display())]
    NotEmpty(PathBuf),
    /// The mail database.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// Somebody has stopped it.
    #[error("it was told to stop; what is in {} is not whole", .0.display())]
    Stopped(PathBuf),
}

/// Whose mail goes where.
pub struct MailExport<'e> {
    /// The mail database.
    pub database: &'e Arc<Database>,
    /// Whose marks say what was read.
    pub person: &'e str,
    /// Makes messages of documents that have none.
    pub composer: &'e MessageComposer,
    /// Where it is written: a folder that is empty, or is not there.
    pub root: &'e Path,
    /// How.
    pub format: ExportFormat,
}

impl MailExport<'_> {
    /// Writes all folders of mail, and last a list of how much that is (`scrinium-export.json`): a folder without it is not whole. Blocks.
    ///
    /// # Errors
    /// [`MailExportError`]; what was written until then stays. A message that cannot be read is counted and left out.
    pub fn run(&self, task: &Task) -> Result<ExportReport, MailExportError> {
        write::make_root(self.root)?;
        let mut folders = self.database.folders(None)?;
        folders.retain(|folder| matches!(folder.kind, FolderKind::Mail | FolderKind::Plain));
        task.set_total(folders.iter().map(|folder| folder.total).sum());
        let mut report = ExportReport::default();
        for folder in folders {
            let mut writer = FolderWriter::make(self.root, &folder.name, self.format)?;
            self.write_folder(&folder.name, &mut writer, &mut report, task)?;
            report.lost_keywords += writer.finish()?;
            report.folders += 1;
        }
        write::finish_root(self.root, &report)?;
        Ok(report)
    }

    fn write_folder(
        &self,
        name: &str,
        writer: &mut FolderWriter,
        report: &mut ExportReport,
        task: &Task,
    ) -> Result<(), MailExportError> {
        let mut since_uid = 0;
        loop {
            let found = self.database.folder_members(name, since_uid, PAGE, (Some(self.person), &EXPORT));
            let page = match found {
                Ok(page) => page,
                // It was dropped in this moment.
                Err(DatabaseError::NotFound { .. }) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            // Those behind come by the next page, so that a keyword that is new by then has its name.
            let keywords = self.database.keywords()?;
            for member in &page.members {
                match self.write_message(member, &keywords, writer) {
                    Ok(bytes) => {
                        report.messages += 1;
                        report.bytes += bytes;
                    }
                    Err(MailExportError::Database(
                        DatabaseError::NotFound { .. } | DatabaseError::Damaged { .. },
                    )) => report.left_out += 1,
                    Err(error) => return Err(error),
                }
            }
            task.advance(page.members.len() as u64);
            if task.is_cancelled() {
                return Err(MailExportError::Stopped(self.root.to_owned()));
            }
            if !page.more {
                return Ok(());
            }
            since_uid = page.last_uid;
        }
    }

    fn write_message(
        &self,
        member: &FolderMember,
        keywords: &[(u16, String)],
        writer: &mut FolderWriter,
    ) -> Result<u64, MailExportError> {
        let source = self.source_of(&member.id)?;
        let received_ms = match member.facts.internal_ms {
            0 => i64::try_from(member.added_ms).unwrap_or(i64::MAX),
            internal_ms => internal_ms,
        };
        let state = state_of(member, keywords);
        let written = Written { uid: member.uid, received_s: received_ms.div_euclid(1000), state: &state };
        writer.write(&written, &source)
    }

    fn source_of(&self, id: &str) -> Result<ExportedSource, DatabaseError> {
        let document = self.database.read(id, &ReadOptions::default(), &EXPORT)?;
        let memo = document.json.to_object().unwrap_or_default();
        match self.database.open_attachment(id, SOURCE_ATTACHMENT, Some(&document.revision), &EXPORT) {
            Ok(reader) => {
                let start = memo.get(SOURCE_START).and_then(Value::as_u64).unwrap_or(0);
                Ok(ExportedSource::Stored { reader: Box::new(reader), start })
            }
            Err(DatabaseError::NotFound { .. }) => {
                let (source, _) = self.composer.frozen(self.database, id, &EXPORT)?;
                Ok(ExportedSource::Composed(source))
            }
            Err(error) => Err(error),
        }
    }
}

/// The bytes of a message.
enum ExportedSource {
    Stored { reader: Box<AttachmentReader>, start: u64 },
    Composed(MessageSource),
}

impl ExportedSource {
    fn bytes(&self) -> u64 {
        match self {
            Self::Stored { reader, start } => reader.length.saturating_sub(*start),
            Self::Composed(source) => source.len(),
        }
    }

    fn read(&self, offset: u64, most: usize) -> Result<bytes::Bytes, DatabaseError> {
        match self {
            Self::Stored { reader, start } => reader.read(start.saturating_add(offset), most),
            Self::Composed(source) => source
                .piece(offset, most)
                .map_err(|error| DatabaseError::Internal { reason: error.to_string() }),
        }
    }
}

/// What is kept of a message besides its bytes.
fn state_of(member: &FolderMember, keywords: &[(u16, String)]) -> MessageState {
    let has = |flag: u16| member.flags & flag != 0;
    let mut state = MessageState {
        read: member.read == Some(true),
        answered: has(ANSWERED),
        flagged: has(FLAGGED),
        draft: has(DRAFT),
        deleted: has(DELETED),
        ..MessageState::default()
    };
    for (_, keyword) in keywords.iter().filter(|(number, _)| member.keywords.contains(number)) {
        if keyword.eq_ignore_ascii_case("$Forwarded") {
            state.forwarded = true;
        } else {
            state.keywords.push(keyword.clone());
        }
    }
    state
}
