//! The mail.box databases: where memos wait for the router.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_database::{
    Access, DatabaseError, Edit, EditMode, InitialAccess, NewAttachment, QuotaState, TransactionPart, Updated,
};
use scrinium_directory::Person;
use scrinium_statistics::{Operation, Registry};
use scrinium_views::OpenDatabase;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::envelope::EnvelopeItems;
use crate::memo::{MemoError, check_mailable, field};
use crate::message::{MessageOptions, memo_of_reader};
use crate::router::was_delivered;
use crate::source::{MessageSource, attachment_of};
use crate::time::now_text;

/// Who puts mail of the server into a mail.box.
static DEPOSITOR: Access = Access::of_the_server("depositing mail");

/// A server has at most this many mail.box databases.
pub const MOST_MAILBOXES: usize = 64;

/// The mail.box databases of a server: `mail.box`, `mail1.box`, `mail2.box` and so on. Several let several
/// writers work side by side; one deposit goes to each in turn.
#[derive(Clone)]
pub struct Mailboxes {
    /// Those that memos are put into.
    open: Arc<[OpenDatabase]>,
    /// These and any that a server with more of them has left.
    all: Arc<[OpenDatabase]>,
    next: Arc<AtomicUsize>,
    databases: Databases,
    clock: Clock,
    deposits: Operation,
}

/// A message that came from another server.
#[derive(Clone)]
pub struct IncomingMessage {
    /// As it came, with what this server puts before it.
    pub source: MessageSource,
    /// For whom it is, as the envelope says: addresses, or names of the directory.
    pub recipients: Vec<String>,
    /// Who hears of failures: an address; empty where nobody does.
    pub return_path: String,
    /// What else its envelope says.
    pub envelope: EnvelopeItems,
}

impl IncomingMessage {
    pub(crate) fn memo(&self, clock: &Clock) -> Result<Map<String, Value>, DepositError> {
        let options = MessageOptions { delivered_s: i64::try_from(clock.now_s()).ok() };
        let mut memo = memo_of_reader(|| Ok(self.source.reader()), self.source.len(), &options)
            .map_err(DepositError::Source)?;
        memo.insert(field::RECIPIENTS.to_owned(), Value::from(self.recipients.clone()));
        memo.insert(field::RETURN_PATH.to_owned(), Value::from(self.return_path.as_str()));
        if let Some(items) = self.envelope.to_value() {
            memo.insert(field::ENVELOPE.to_owned(), items);
        }
        memo.entry(field::POSTED_DATE).or_insert_with(|| Value::from(now_text(clock)));
        Ok(memo)
    }
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
#[derive(Debug, Error)]
pub enum DepositError {
    /// The memo cannot be mailed.
    #[error(transparent)]
    Memo(#[from] MemoError),
    /// It could not be stored.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A rule does not let it in; the sender is to hear this.
    #[error("{0}")]
    Rejected(String),
    /// It could not be read from where it was kept.
    #[error("a message cannot be read from where it was kept: {0}")]
    Source(std::io::Error),
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
            databases: databases.clone(),
            clock: databases.clock().clone(),
            deposits: statistics.operation("MAIL_DEPOSIT"),
        })
    }

    /// The name of a mail.box by its number: `mail.box`, `mail1.box`, …
    #[must_use]
    pub fn name(number: usize) -> String {
        if number == 0 { "mail.box".to_owned() } else { format!("mail{number}.box") }
    }

    pub(crate) const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// All mail.box databases, in the order of their numbers.
    #[must_use]
    pub fn all(&self) -> &[OpenDatabase] {
        &self.all
    }

    /// Whether the mail database of somebody takes more, by its quota. Where that cannot be known, it does: what becomes of a message
    /// shows when it is delivered. Blocks.
    #[must_use]
    pub fn has_room(&self, person: &Person) -> bool {
        let keeps_none = person.forwarding.keeps_none && !person.forwarding.to.is_empty();
        keeps_none || self.has_room_in(&person.mail_file)
    }

    /// The same for a database into which mail goes.
    #[must_use]
    pub fn has_room_in(&self, database: &str) -> bool {
        let state = || self.databases.get(database)?.quota_state();
        state().map_or(true, |state| state < QuotaState::Full)
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
    /// returns, it is durable.
    ///
    /// # Errors
    /// [`DepositError`]: the message names no recipient, or could not be read or stored.
    pub fn deposit_message(&self, id: &str, message: &IncomingMessage) -> Result<Deposited, DepositError> {
        let _timer = self.deposits.start();
        let database = self.database_of(id)?;
        // A memo that was delivered has left a tombstone.
        if was_delivered(database, id)? {
            return Ok(Deposited::Before);
        }
        let memo = message.memo(&self.clock)?;
        check_mailable(&memo)?;
        let attachments = vec![attachment_of(database, &message.source)?];
        let json = Value::Object(memo).to_string().into();
        let edit = Edit { id: Some(id.to_owned()), json, attachments, ..Edit::default() };
        match database.update_one(edit, EditMode::Interactive, &DEPOSITOR) {
            Ok(_) => Ok(Deposited::Now),
            // It came twice in this moment.
            Err(DatabaseError::Conflict) => Ok(Deposited::Before),
            Err(error) => Err(error.into()),
        }
    }

    /// Messages on their way into a mail.box, each once for its id, as a part of a larger change: all of them go into the one that
    /// the first id leads to. `None` where they were all deposited before.
    ///
    /// # Errors
    /// As [`deposit_message`](Self::deposit_message).
    pub fn part_of(
        &self,
        messages: &[(String, IncomingMessage)],
    ) -> Result<Option<TransactionPart>, DepositError> {
        let Some((first, _)) = messages.first() else { return Ok(None) };
        let database = self.database_of(first)?;
        let mut edits = Vec::with_capacity(messages.len());
        for (id, message) in messages {
            if was_delivered(database, id)? {
                continue;
            }
            let memo = message.memo(&self.clock)?;
            check_mailable(&memo)?;
            let attachments = vec![attachment_of(database, &message.source)?];
            let json = Value::Object(memo).to_string().into();
            edits.push(Edit { id: Some(id.clone()), json, attachments, ..Edit::default() });
        }
        if edits.is_empty() {
            return Ok(None);
        }
        Ok(Some(TransactionPart {
            database: Arc::clone(database.database()),
            access: Access::of_the_server("depositing mail"),
            conditions: Vec::new(),
            edits,
        }))
    }

    /// The same one for the same id, so that a message that comes again meets the first.
    fn database_of(&self, id: &str) -> Result<&OpenDatabase, DatabaseError> {
        let hash = blake3::hash(id.as_bytes());
        let [first, second, ..] = *hash.as_bytes();
        let number = usize::from(u16::from_be_bytes([first, second])) % self.open.len().max(1);
        self.open
            .get(number)
            .ok_or_else(|| DatabaseError::NotFound { reason: "There is no mail.box.".to_owned() })
    }
}
