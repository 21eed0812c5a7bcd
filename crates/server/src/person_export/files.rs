//! The folder of an export.
//!
//! | file | what |
//! |---|---|
//! | `person.json`, `groups.json` | the directory's document, and the groups that the person is in |
//! | `mail/00000001.eml` | the messages of the mail database, byte for byte as they arrived |
//! | `DATABASE/documents.jsonl` | documents, one a line |
//! | `DATABASE/files.tsv` | each file's document, attachment and path |
//! | `DATABASE/read.txt` | ids of the documents that the person has read |
//! | `manifest.json` | how much there is of everything; written last |

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scrinium_database::{Access, Database, DatabaseError};
use scrinium_mail::SOURCE_ATTACHMENT;
use serde_json::{Map, Value, json};

use super::ExportError;

/// A file is copied in pieces of this size.
const PIECE_BYTES: usize = 256 * 1024;

/// Bytes of a file's name that are kept.
const NAME_BYTES_MAX: usize = 100;

/// How much there is of one database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    documents: u64,
    messages: u64,
    files: u64,
    read: u64,
    missing: u64,
}

impl Counts {
    pub(super) fn to_json(self) -> Value {
        let Self { documents, messages, files, read, missing } = self;
        json!({"documents": documents, "messages": messages, "files": files, "read": read, "damaged": missing})
    }
}

/// A name of a file that leads nowhere else.
pub(super) fn file_name(text: &str) -> String {
    let safe = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    let mut name: String = text.chars().map(|letter| if safe(letter) { letter } else { '_' }).collect();
    while name.len() > NAME_BYTES_MAX {
        name.pop();
    }
    let name = name.trim_start_matches('.');
    if name.is_empty() { "_".to_owned() } else { name.to_owned() }
}

/// A folder that the server's own user alone can read.
pub(super) struct ExportFolder {
    path: PathBuf,
}

impl ExportFolder {
    pub(super) fn make(path: &Path) -> Result<Self, ExportError> {
        make_folder(path)?;
        Ok(Self { path: path.to_owned() })
    }

    pub(super) fn write_json(&self, name: &str, value: &Value) -> Result<(), ExportError> {
        let path = self.path.join(name);
        let text = format!("{value:#}\n");
        let written = new_file(&path)?.write_all(text.as_bytes());
        written.map_err(|cause| ExportError::File { path, cause })
    }
}

fn make_folder(path: &Path) -> Result<(), ExportError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|cause| ExportError::File { path: path.to_owned(), cause })
}

fn new_file(path: &Path) -> Result<File, ExportError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    made.map_err(|cause| ExportError::File { path: path.to_owned(), cause })
}

/// The documents of one database on their way into the folder. Nothing is made for a database that has none.
pub(super) struct Documents<'a> {
    folder: &'a ExportFolder,
    database: &'a Arc<Database>,
    dir: PathBuf,
    mail_dir: Option<PathBuf>,
    lists: Option<(BufWriter<File>, BufWriter<File>)>,
    counts: Counts,
}

impl<'a> Documents<'a> {
    pub(super) fn new(folder: &'a ExportFolder, database: &'a Arc<Database>, is_mail_file: bool) -> Self {
        let dir = folder.path.join(file_name(&format!("database-{}", database.name())));
        let mail_dir = is_mail_file.then(|| folder.path.join("mail"));
        Self { folder, database, dir, mail_dir, lists: None, counts: Counts::default() }
    }

    /// A document that cannot be read.
    pub(super) const fn miss(&mut self) {
        self.counts.missing += 1;
    }

    fn lists(&mut self) -> Result<&mut (BufWriter<File>, BufWriter<File>), ExportError> {
        if self.lists.is_none() {
            make_folder(&self.dir)?;
            if let Some(mail_dir) = &self.mail_dir {
                make_folder(mail_dir)?;
            }
            let documents = new_file(&self.dir.join("documents.jsonl"))?;
            let files = new_file(&self.dir.join("files.tsv"))?;
            self.lists = Some((BufWriter::new(documents), BufWriter::new(files)));
        }
        let dir = self.dir.clone();
        self.lists
            .as_mut()
            .ok_or_else(|| ExportError::File { path: dir, cause: io::ErrorKind::NotFound.into() })
    }

    /// Writes a document, and the files that are attached to it.
    pub(super) fn write(
        &mut self,
        id: &str,
        revision: &str,
        json: &str,
        access: &Access,
    ) -> Result<(), ExportError> {
        let path = self.dir.clone();
        let (documents, _) = self.lists()?;
        let written = documents.write_all(json.as_bytes()).and_then(|()| documents.write_all(b"\n"));
        written.map_err(|cause| ExportError::File { path, cause })?;
        self.counts.documents += 1;
        let document: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
        let Some(Value::Object(attachments)) = document.get("_attachments") else { return Ok(()) };
        for (number, name) in attachments.keys().enumerate() {
            self.write_file((id, revision), (number, name), access)?;
        }
        Ok(())
    }

    fn write_file(
        &mut self,
        (id, revision): (&str, &str),
        (number, name): (usize, &str),
        access: &Access,
    ) -> Result<(), ExportError> {
        let attachment = match self.database.open_attachment(id, name, Some(revision), access) {
            Ok(attachment) => attachment,
            // Changed in this moment, or damaged.
            Err(DatabaseError::NotFound { .. } | DatabaseError::Damaged { .. }) => {
                self.miss();
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let place = match &self.mail_dir {
            Some(mail_dir) if name == SOURCE_ATTACHMENT => {
                self.counts.messages += 1;
                mail_dir.join(format!("{:08}.eml", self.counts.messages))
            }
            _ => {
                self.counts.files += 1;
                self.dir.join(format!("{:08}-{number}-{}", self.counts.documents, file_name(name)))
            }
        };
        let cannot = |cause| ExportError::File { path: place.clone(), cause };
        let mut file = new_file(&place)?;
        let mut offset = 0;
        while offset < attachment.length {
            let piece = attachment.read(offset, PIECE_BYTES)?;
            if piece.is_empty() {
                break;
            }
            file.write_all(&piece).map_err(cannot)?;
            offset += piece.len() as u64;
        }
        let shown = place.strip_prefix(&self.folder.path).unwrap_or(&place).display().to_string();
        let line = format!("{}\t{}\t{shown}\n", plain(id), plain(name));
        let (_, files) = self.lists()?;
        files.write_all(line.as_bytes()).map_err(cannot)
    }

    /// Writes what was read, and gives how much there is of everything.
    pub(super) fn finish(mut self, marks: &[String]) -> Result<Counts, ExportError> {
        if !marks.is_empty() {
            self.counts.read = marks.len() as u64;
            make_folder(&self.dir)?;
            let path = self.dir.join("read.txt");
            let mut file = BufWriter::new(new_file(&path)?);
            let cannot = |cause| ExportError::File { path: path.clone(), cause };
            for id in marks {
                writeln!(file, "{}", plain(id)).map_err(cannot)?;
            }
            file.flush().map_err(cannot)?;
        }
        if let Some((documents, files)) = &mut self.lists {
            let flushed = documents.flush().and_then(|()| files.flush());
            flushed.map_err(|cause| ExportError::File { path: self.dir.clone(), cause })?;
        }
        Ok(self.counts)
    }
}

/// A text without what would end a line or a column.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
