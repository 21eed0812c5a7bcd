//! Whom a person or group lets act for them.

use crate::DirectoryError;
use crate::fields::{Fields, texts};

/// Names in one list.
const MOST_DELEGATES: usize = 100;

/// Who may act for a person or group: names of people and groups of the directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delegates {
    /// They send mail as this one, and nobody sees a difference.
    pub send_as: Vec<String>,
    /// They send mail for this one, and stand in its field `Sender`.
    pub send_on_behalf: Vec<String>,
    /// They read the person's mail file.
    pub mail_readers: Vec<String>,
    /// They read and change it.
    pub mail_editors: Vec<String>,
}

impl Delegates {
    pub(crate) fn read(document: &Fields) -> Result<Self, DirectoryError> {
        let list = |field| texts(document, field, MOST_DELEGATES);
        Ok(Self {
            send_as: list("SendAs")?,
            send_on_behalf: list("SendOnBehalf")?,
            mail_readers: list("MailReaders")?,
            mail_editors: list("MailEditors")?,
        })
    }

    /// Whether anybody may look into the mail file.
    #[must_use]
    pub fn open_mail(&self) -> bool {
        !self.mail_readers.is_empty() || !self.mail_editors.is_empty()
    }
}

/// What the groups of those who may look into a mail file begin with: no group of the directory is called so.
pub(crate) const MAIL_GROUP_PREFIX: &str = "mail/";

/// The name under which an access list knows those who may read a mail file. Everybody whom its person names in `MailReaders` is in
/// this group, from the moment of naming on.
#[must_use]
pub fn mail_readers_group(mail_file: &str) -> String {
    format!("{mail_file} (readers)")
}

/// The same for those who may change it.
#[must_use]
pub fn mail_editors_group(mail_file: &str) -> String {
    format!("{mail_file} (editors)")
}
