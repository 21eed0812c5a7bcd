//! The mail.box databases: where memos wait for the router.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_database::{
    Access, Database, DatabaseError, Edit, EditMode, InitialAccess, NewAttachment, Updated,
};
use scrinium_statistics::{Operation, Registry};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::memo::{MemoError, check_mailable, field};
use crate::message::{SOURCE_ATTACHMENT, SOURCE_CONTENT_TYPE};
use crate::router::was_delivered;
use crate::time::now_text;

/// Who puts mail of the server into a mail.box.
static DEPOSITOR: Access = Access::of_the_server("depositing mail");

/// Read of a message's source at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A server has at most this many mail.box databases.
pub const MOST_MAILBOXES: usize = 64;

/// The mail.box databases of a server: `mail.box`, `mail1.box`, `mail2.box` and so on. Several let several
/// writers work side by side; one deposit goes to each in turn.
#[derive(Clone)]
pub struct Mailboxes {
    /// Those that memos are put into.
    open: Arc<[Arc<Database>]>,
    /// These and any that a server with more of them has left.
    all: Arc<[Arc<Database>]>,
    next: Arc<AtomicUsize>,
    clock: Clock,
    deposits: Operation,
}

/// What became of a message that may have come before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deposited {
    /// It is durable and will be delivered.
    Now,
    /// It came before, and was taken then.
    Before,
}

/// Why a memo was not taken for delivery.
#[derive(Debug, Error, Clone)]
pub enum DepositError {
    /// The memo cannot be mailed.
    #[error(transparent)]
    Memo(#[from] MemoError),
    /// It could not be stored.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl Mailboxes {
    /// Opens `count` mail.box databases (from 1 to [`MOST_MAILBOXES`]), making those that are missing.
    /// Deposits are timed as the operation `MAIL_DEPOSIT`.
    ///
    /// # Errors
    /// What the database reports.
    pub fn open(databases: &Databases, count: usize, statistics: &Registry) -> Result<Self, DatabaseError> {
        let count = count.clamp(1, MOST_MAILBOXES);
        let mut all = Vec::new();
        for number in 0..MOST_MAILBOXES {
            match databases.get(&Self::name(number)) {
                Ok(database) => all.push(database),
                Err(DatabaseError::NotFound { .. }) if number < count => {
                    all.push(databases.create(&Self::name(number), &InitialAccess::depositors())?);
                }
                Err(DatabaseError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            open: all.iter().take(count).cloned().collect(),
            all: all.into(),
            next: Arc::default(),
            clock: databases.clock().clone(),
            deposits: statistics.operation("MAIL_DEPOSIT"),
        })
    }

    /// The name of a mail.box by its number: `mail.box`, `mail1.box`, …
    #[must_use]
    pub fn name(number: usize) -> String {
        if number == 0 { "mail.box".to_owned() } else { format!("mail{number}.box") }
    }

    /// All mail.box databases, in the order of their numbers.
    #[must_use]
    pub fn all(&self) -> &[Arc<Database>] {
        &self.all
    }

    /// Takes a memo for delivery. When this returns, it is durable and will be delivered.
    ///
    /// # Errors
    /// [`DepositError`]: the memo names no recipient, or could not be stored.
    pub fn deposit(
        &self,
        mut memo: Map<String, Value>,
        attachments: Vec<NewAttachment>,
    ) -> Result<Updated, DepositError> {
        let _timer = self.deposits.start();
        check_mailable(&memo)?;
        memo.entry(field::POSTED_DATE).or_insert_with(|| Value::from(now_text(&self.clock)));
        let number = self.next.fetch_add(1, Ordering::Relaxed) % self.open.len().max(1);
        let database = self
            .open
            .get(number)
            .ok_or_else(|| DatabaseError::NotFound { reason: "There is no mail.box.".to_owned() })?;
        let edit = Edit { json: Value::Object(memo).to_string().into(), attachments, ..Edit::default() };
        Ok(database.update_one(edit, EditMode::Interactive, &DEPOSITOR)?)
    }

    /// Takes a message for delivery, once for each `id`, whether its memo is still there or was delivered since. When this
    /// returns, it is durable. The source is read piece by piece.
    ///
    /// # Errors
    /// [`DepositError`]: the memo names no recipient, or the message could not be read or stored.
    pub fn deposit_message(
        &self,
        id: &str,
        mut memo: Map<String, Value>,
        source: impl Read,
    ) -> Result<Deposited, DepositError> {
        let _timer = self.deposits.start();
        check_mailable(&memo)?;
        memo.entry(field::POSTED_DATE).or_insert_with(|| Value::from(now_text(&self.clock)));
        let database = self.database_of(id)?;
        // A memo that was delivered has left a tombstone.
        if was_delivered(database, id)? {
            return Ok(Deposited::Before);
        }
        let attachments = vec![upload(database, source)?];
        let json = Value::Object(memo).to_string().into();
        let edit = Edit { id: Some(id.to_owned()), json, attachments, ..Edit::default() };
        match database.update_one(edit, EditMode::Interactive, &DEPOSITOR) {
            Ok(_) => Ok(Deposited::Now),
            // It came twice in this moment.
            Err(DatabaseError::Conflict) => Ok(Deposited::Before),
            Err(error) => Err(error.into()),
        }
    }

    /// The same one for the same id, so that a message that comes again meets the first.
    fn database_of(&self, id: &str) -> Result<&Arc<Database>, DatabaseError> {
        let hash = blake3::hash(id.as_bytes());
        let [first, second, ..] = *hash.as_bytes();
        let number = usize::from(u16::from_be_bytes([first, second])) % self.open.len().max(1);
        self.open
            .get(number)
            .ok_or_else(|| DatabaseError::NotFound { reason: "There is no mail.box.".to_owned() })
    }
}

/// A message's source could not be read from where it was kept.
#[must_use]
pub fn unreadable_source(error: &std::io::Error) -> DatabaseError {
    DatabaseError::Internal { reason: format!("a message's source cannot be read: {error}") }
}

/// Stores a message's source piece by piece.
fn upload(database: &Arc<Database>, mut source: impl Read) -> Result<NewAttachment, DatabaseError> {
    let mut upload = database.upload(SOURCE_CONTENT_TYPE);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let length = source.read(&mut piece).map_err(|error| unreadable_source(&error))?;
        if length == 0 {
            break;
        }
        upload.write(piece.get(..length).unwrap_or_default())?;
    }
    Ok(NewAttachment {
        name: SOURCE_ATTACHMENT.to_owned(),
        content_type: SOURCE_CONTENT_TYPE.to_owned(),
        content: upload.finish()?,
    })
}
