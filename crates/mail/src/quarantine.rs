//! Mail that rules or filters keep back: it lies in a folder of its mail.box until somebody lets it go or deletes it.

use scrinium_catalog::Databases;
use scrinium_database::{Access, DatabaseError, Edit, EditMode, FolderChange, ReadOptions};
use scrinium_views::OpenDatabase;
use serde_json::{Map, Value, json};

use crate::inbox::into_folder;
use crate::mailbox::{MOST_MAILBOXES, Mailboxes};
use crate::memo::{field, recipients_of};
use crate::router::HELD;

/// Who looks after it.
static KEEPER: Access = Access::of_the_server("looking after what is kept back");

/// The folder.
const QUARANTINE: &str = "Quarantine";

/// Recipients of a message that are named.
const RECIPIENTS_SHOWN: usize = 20;

/// A message that is kept back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldMail {
    /// Its id.
    pub id: String,
    /// Why.
    pub reason: String,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
    /// Who it says that it is from.
    pub from: String,
    /// What it is about.
    pub subject: String,
    /// Some of those whom it is for.
    pub recipients: Vec<String>,
    /// How large it is.
    pub bytes: u64,
}

/// What is kept back, of all mail.boxes.
#[derive(Clone)]
pub struct Quarantine {
    databases: Databases,
}

impl Quarantine {
    /// That of a server.
    #[must_use]
    pub fn new(databases: &Databases) -> Self {
        Self { databases: databases.clone() }
    }

    /// The messages, at most `limit` of each mail.box, those first that have been there for the longest, and whether there are more.
    /// Blocks.
    ///
    /// # Errors
    /// What the database reports.
    pub fn list(&self, limit: usize) -> Result<(Vec<HeldMail>, bool), DatabaseError> {
        let (mut found, mut is_more) = (Vec::new(), false);
        for mailbox in self.mailboxes()? {
            let members = match mailbox.folder_members(QUARANTINE, 0, limit, (None, &KEEPER)) {
                Ok(members) => members,
                Err(DatabaseError::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            };
            is_more |= members.more;
            for member in members.members {
                if let Some((_, memo)) = held(&mailbox, &member.id)? {
                    found.push(described(member.id, member.added_ms, &memo));
                }
            }
        }
        found.sort_by_key(|held| held.since_ms);
        Ok((found, is_more))
    }

    /// Lets a message go on its way; false if none of this id is kept back. Blocks until that is durable.
    ///
    /// # Errors
    /// What the database reports.
    pub fn release(&self, id: &str) -> Result<bool, DatabaseError> {
        self.change(id, |memo| {
            memo.shift_remove(field::STATE);
            memo.shift_remove(field::HOLD_REASON);
        })
    }

    /// Deletes a message, of which nobody hears; false if none of this id is kept back. Blocks until that is durable.
    ///
    /// # Errors
    /// What the database reports.
    pub fn delete(&self, id: &str) -> Result<bool, DatabaseError> {
        self.change(id, |memo| {
            memo.retain(|name, _| name == "_id" || name == "_rev");
            memo.insert("_deleted".to_owned(), Value::Bool(true));
        })
    }

    fn change(&self, id: &str, change: impl Fn(&mut Map<String, Value>)) -> Result<bool, DatabaseError> {
        for mailbox in self.mailboxes()? {
            let Some((revision, mut memo)) = held(&mailbox, id)? else { continue };
            memo.insert("_rev".to_owned(), Value::from(revision));
            change(&mut memo);
            let leaves = FolderChange::Remove { folder: QUARANTINE.to_owned() };
            let is_gone = memo.contains_key("_deleted");
            let edit = Edit {
                json: Value::Object(memo).to_string().into(),
                folders: if is_gone { Vec::new() } else { vec![leaves] },
                ..Edit::default()
            };
            mailbox.update_one(edit, EditMode::Interactive, &KEEPER)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn mailboxes(&self) -> Result<Vec<OpenDatabase>, DatabaseError> {
        let mut found = Vec::new();
        for number in 0..MOST_MAILBOXES {
            match self.databases.get(&Mailboxes::name(number)) {
                Ok(database) => found.push(database),
                Err(DatabaseError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

/// What is written when a memo is kept back.
pub(crate) fn keeping_back(memo: &Value) -> Edit {
    Edit { json: memo.to_string().into(), folders: into_folder(QUARANTINE), ..Edit::default() }
}

/// A revision, and the memo that it is of.
type Revised = (String, Map<String, Value>);

/// A memo that is kept back.
fn held(mailbox: &OpenDatabase, id: &str) -> Result<Option<Revised>, DatabaseError> {
    let document = match mailbox.read(id, &ReadOptions::default(), &KEEPER) {
        Ok(document) => document,
        Err(DatabaseError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let memo = document.json.to_object().filter(|memo| memo.get(field::STATE) == Some(&json!(HELD)));
    Ok(memo.map(|memo| (document.revision, memo)))
}

fn described(id: String, since_ms: u64, memo: &Map<String, Value>) -> HeldMail {
    let text = |name: &str| memo.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut recipients = recipients_of(memo).unwrap_or_default();
    recipients.truncate(RECIPIENTS_SHOWN);
    HeldMail {
        id,
        reason: text(field::HOLD_REASON),
        since_ms,
        from: text(field::FROM),
        subject: text(field::SUBJECT),
        recipients,
        bytes: memo.get(field::SIZE).and_then(Value::as_u64).unwrap_or(0),
    }
}
