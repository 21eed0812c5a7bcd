//! Messages that come in by SMTP. Where all that is to be done is to put a message into a few mail files, that is done at once:
//! all of them get it in one batch of the log, its source once, and nothing is written that would go again. Any other
//! message goes into a mail.box, and the router does the rest.
//!
//! Both ways give a message the same id in a mail file, so that one which comes again because its answer was lost, and one of
//! which a mail.box has a memo as well, is there once.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use scrinium_catalog::Databases;
use scrinium_database::{
    Access, DatabaseError, Edit, NewAttachment, TRANSACTION_DATABASES_MAX, TransactionPart,
    TransactionRefusal, update_together,
};
use scrinium_directory::Person;
use scrinium_statistics::{Counter, Operation, Registry};
use scrinium_views::OpenDatabase;
use serde_json::{Map, Value};

use crate::calendars::brings_calendar;
use crate::mail_file::open_mail_file;
use crate::mailbox::{DepositError, Deposited, IncomingMessage, Mailboxes};
use crate::memo::{check_mailable, field};
use crate::outline::outline_of;
use crate::recipients::{Resolver, Writer};
use crate::router::{OnRouted, Routed, RoutedState, delivered_json, repeated_id};
use crate::rules::{RuleBook, RuleOwner, Verdict};
use crate::sieve::{Addressee, ScriptBook, SourceOf};
use crate::source::attachment_of;

/// Another one who writes the same message at this moment is met once, and then the message is there.
const TRIES: usize = 3;

/// Takes messages that come in. Clones share it.
#[derive(Clone)]
pub struct IncomingMail {
    shared: Arc<SharedIncoming>,
}

#[derive(Clone)]
struct SharedIncoming {
    databases: Databases,
    mailboxes: Mailboxes,
    resolver: Resolver,
    rules: RuleBook,
    scripts: ScriptBook,
    deliveries: Operation,
    delivered: Counter,
    routed: Counter,
    /// Messages about meetings are the router's to deliver.
    has_calendars: bool,
    on_routed: Option<OnRouted>,
}

/// A message before it is in any mail file, and what a record names it by.
struct Copy {
    memo: Map<String, Value>,
    source: NewAttachment,
    outline: Option<Bytes>,
    from: String,
    message_id: String,
}

/// A mail file, and whose it is.
struct MailFile {
    database: OpenDatabase,
    person: Arc<Person>,
}

/// A mail file that is to get a message, and what the rules of its owner make of that.
struct Target<'f> {
    file: &'f MailFile,
    verdict: Verdict,
}

/// What became of a message that was to go straight into mail files.
enum Direct {
    Delivered(Deposited),
    /// It is for others than a few people of this server, or not for now.
    NotAlone,
    /// Rules of some of its recipients reject it, and those of others do not.
    Mixed,
    /// A mail file does not take it.
    Failed(DatabaseError),
}

impl IncomingMail {
    /// Delivers into mail files of `databases`, and puts what must be routed into `mailboxes`. What goes straight into mail files
    /// is counted as what the router delivers: `Mail.Delivered`, `Mail.Routed` and the operation `MAIL_DELIVER`.
    #[must_use]
    pub fn new(
        databases: &Databases,
        mailboxes: Mailboxes,
        resolver: Resolver,
        statistics: &Registry,
    ) -> Self {
        let shared = SharedIncoming {
            databases: databases.clone(),
            mailboxes,
            resolver,
            rules: RuleBook::new(databases),
            scripts: ScriptBook::new(databases),
            deliveries: statistics.operation("MAIL_DELIVER"),
            delivered: statistics.counter("Mail.Delivered"),
            routed: statistics.counter("Mail.Routed"),
            has_calendars: false,
            on_routed: None,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Leaves messages about meetings to the router, which has them filed.
    #[must_use]
    pub fn with_calendars(self) -> Self {
        Self { shared: Arc::new(SharedIncoming { has_calendars: true, ..(*self.shared).clone() }) }
    }

    /// Calls `told` with every message that went straight into mail files; it must not wait.
    #[must_use]
    pub fn on_routed(self, told: impl Fn(&Routed<'_>) + Send + Sync + 'static) -> Self {
        let shared = SharedIncoming { on_routed: Some(Arc::new(told)), ..(*self.shared).clone() };
        Self { shared: Arc::new(shared) }
    }

    /// As [`Mailboxes::has_room`]. Blocks.
    #[must_use]
    pub fn has_room(&self, person: &Person) -> bool {
        self.shared.mailboxes.has_room(person)
    }

    /// As [`Mailboxes::has_room_in`]. Blocks.
    #[must_use]
    pub fn has_room_in(&self, database: &str) -> bool {
        self.shared.mailboxes.has_room_in(database)
    }

    /// Takes a message for all its recipients, once for each `id`. When this returns, it is durable: it is in their mail files,
    /// or in a mail.box and will be delivered. Blocks.
    ///
    /// # Errors
    /// [`DepositError`]: the message names no recipient, or could not be read or stored. Then nobody has it.
    pub fn accept(&self, id: &str, message: &IncomingMessage) -> Result<Deposited, DepositError> {
        match self.shared.deliver(id, message)? {
            Direct::Delivered(deposited) => Ok(deposited),
            // The router tries again what may still be delivered, and notifies the sender of what may not.
            Direct::NotAlone | Direct::Mixed | Direct::Failed(_) => {
                self.shared.mailboxes.deposit_message(id, message)
            }
        }
    }

    /// The same for each recipient alone, of whom the message names as many as `each` has lists: who cannot get it is no
    /// obstacle to others (RFC 2033 §4.2).
    pub fn accept_each(
        &self,
        id: &str,
        message: &IncomingMessage,
        each: &[Vec<String>],
    ) -> Vec<Result<Deposited, DepositError>> {
        let alike = |result: Deposited| each.iter().map(|_| Ok(result)).collect();
        match self.shared.deliver(id, message) {
            Ok(Direct::Delivered(deposited)) => return alike(deposited),
            Ok(Direct::NotAlone) => {
                if let Ok(deposited) = self.shared.mailboxes.deposit_message(id, message) {
                    return alike(deposited);
                }
            }
            Ok(Direct::Mixed | Direct::Failed(_)) | Err(_) => {}
        }
        let alone = |(place, recipients): (usize, &Vec<String>)| {
            let message = IncomingMessage { recipients: recipients.clone(), ..message.clone() };
            match self.shared.deliver(id, &message)? {
                Direct::Delivered(deposited) => Ok(deposited),
                // A recipient may be a group.
                Direct::NotAlone | Direct::Mixed => {
                    self.shared.mailboxes.deposit_message(&format!("{id}-{place}"), &message)
                }
                Direct::Failed(error) => Err(error.into()),
            }
        };
        each.iter().enumerate().map(alone).collect()
    }
}

impl SharedIncoming {
    fn writer_of(&self, message: &IncomingMessage) -> Writer {
        self.resolver.writer(&message.envelope, Some(&message.return_path))
    }

    fn deliver(&self, id: &str, message: &IncomingMessage) -> Result<Direct, DepositError> {
        let began = Instant::now();
        let now_ms = self.databases.clock().now_ms();
        if message.envelope.release_ms.is_some_and(|release| release > now_ms) {
            return Ok(Direct::NotAlone);
        }
        if message.envelope.hold.is_some() {
            return Ok(Direct::NotAlone);
        }
        let expansion = self.resolver.expand(&message.recipients, &self.writer_of(message));
        // What goes into a mail-in database is the router's to do.
        let are_here =
            expansion.outside.is_empty() && expansion.failures.is_empty() && expansion.databases.is_empty();
        if !are_here || expansion.people.is_empty() || expansion.people.len() > TRANSACTION_DATABASES_MAX {
            return Ok(Direct::NotAlone);
        }
        let files = match self.mail_files(&expansion.people) {
            Ok(files) => files,
            Err(error) => return Ok(Direct::Failed(error)),
        };
        if !share_a_batch(&files) {
            return Ok(Direct::NotAlone);
        }
        let is_stable = message.envelope.repeat_id.is_some();
        let id = match &message.envelope.repeat_id {
            Some(repeat_id) => repeated_id(repeat_id),
            // It is like no other, and its id too.
            None => id.to_owned(),
        };
        let mut copy = None;
        for _ in 0..TRIES {
            let missing = match without(&files, &id) {
                Ok(missing) => missing,
                Err(error) => return Ok(Direct::Failed(error)),
            };
            let Some(first) = missing.first() else { return Ok(Direct::Delivered(Deposited::Before)) };
            let copy = match &copy {
                Some(copy) => copy,
                None => copy.insert(self.copy_of(message, &first.database)?),
            };
            if self.has_calendars && brings_calendar(&copy.memo) {
                return Ok(Direct::NotAlone);
            }
            let known_by = is_stable.then_some(id.as_str());
            let targets = match self.judged((&missing, files.len()), (message, &copy.memo, known_by))? {
                Ok(targets) => targets,
                Err(otherwise) => return Ok(otherwise),
            };
            if targets.is_empty() {
                return Ok(Direct::Delivered(Deposited::Now));
            }
            match update_together(self.parts(&targets, (&id, copy))).and_then(|update| Ok(update.wait()?)) {
                Ok(_) => {
                    self.tell(&id, copy, (targets.len(), began));
                    return Ok(Direct::Delivered(Deposited::Now));
                }
                // The same message came twice in this moment.
                Err(TransactionRefusal::Edit { error: DatabaseError::Conflict, .. }) => {}
                Err(TransactionRefusal::Edit { error, .. } | TransactionRefusal::Whole(error)) => {
                    return Ok(Direct::Failed(error));
                }
                Err(error @ TransactionRefusal::Condition { .. }) => {
                    return Ok(Direct::Failed(DatabaseError::Internal { reason: error.to_string() }));
                }
            }
        }
        Ok(Direct::Failed(DatabaseError::Conflict))
    }

    /// What rules make of a message, for each mail file that is to get it, of `all` that it is for; or what becomes of it instead.
    fn judged<'f>(
        &self,
        (files, all): (&[&'f MailFile], usize),
        (message, memo, id): (&IncomingMessage, &Map<String, Value>, Option<&str>),
    ) -> Result<Result<Vec<Target<'f>>, Direct>, DepositError> {
        let servers = self.rules.judge(RuleOwner::Server, memo)?.aside(&message.envelope);
        if let Some(text) = servers.reject {
            return Err(DepositError::Rejected(text));
        }
        if !servers.is_direct() {
            return Ok(Err(Direct::NotAlone));
        }
        let (mut targets, mut rejected, mut discarded) = (Vec::with_capacity(files.len()), None, 0_usize);
        for file in files {
            let verdict = self.rules.judge(RuleOwner::Person(&file.person.id), memo)?;
            let to = Addressee {
                database: file.database.database(),
                person: &file.person,
                resolver: &self.resolver,
                memo,
                envelope: &message.envelope,
                id,
            };
            let verdict = self.scripts.judge(verdict, &to, || Ok(SourceOf::Coming(&message.source)))?;
            if !verdict.is_direct() {
                return Ok(Err(Direct::NotAlone));
            }
            match &verdict.reject {
                Some(text) => rejected = Some(text.clone()),
                None if verdict.is_discarded => discarded += 1,
                None => targets.push(Target { file, verdict: verdict.after(&servers) }),
            }
        }
        match rejected {
            None => Ok(Ok(targets)),
            Some(text) if targets.is_empty() && discarded == 0 && files.len() == all => {
                Err(DepositError::Rejected(text))
            }
            // One answer cannot say both.
            Some(_) => Ok(Err(Direct::Mixed)),
        }
    }

    /// The mail files of these people, each once.
    fn mail_files(&self, people: &[Arc<Person>]) -> Result<Vec<MailFile>, DatabaseError> {
        let mut files: Vec<MailFile> = Vec::with_capacity(people.len());
        for person in people {
            // Two people may share one.
            if files.iter().all(|file| file.database.name() != person.mail_file) {
                let database = open_mail_file(&self.databases, person)?;
                files.push(MailFile { database, person: Arc::clone(person) });
            }
        }
        Ok(files)
    }

    /// The message as a memo; its source is that of `first`, and of all in the same store.
    fn copy_of(&self, message: &IncomingMessage, first: &OpenDatabase) -> Result<Copy, DepositError> {
        let memo = message.memo(self.databases.clock())?;
        check_mailable(&memo)?;
        let text = |name: &str| memo.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (from, message_id) = (text(field::FROM), text(field::MESSAGE_ID));
        let outline = outline_of(&message.source, &memo).map_err(DepositError::Source)?;
        Ok(Copy { source: attachment_of(first, &message.source)?, outline, from, message_id, memo })
    }

    fn parts(&self, targets: &[Target<'_>], (id, copy): (&str, &Copy)) -> Vec<TransactionPart> {
        let plain = delivered_json(copy.memo.clone(), self.databases.clock());
        let part = |target: &Target<'_>| {
            let verdict = &target.verdict;
            let mut edit = Edit {
                id: Some(id.to_owned()),
                json: plain.clone(),
                attachments: vec![copy.source.clone()],
                outline: copy.outline.clone(),
                ..Edit::default()
            };
            if !verdict.flags.is_empty() {
                let mut memo = copy.memo.clone();
                verdict.flag(&mut memo);
                edit.json = delivered_json(memo, self.databases.clock());
            }
            verdict.place(&mut edit, &target.file.person);
            TransactionPart {
                database: Arc::clone(target.file.database.database()),
                access: Access::of_the_server("delivering mail"),
                conditions: Vec::new(),
                edits: vec![edit],
            }
        };
        targets.iter().map(part).collect()
    }

    fn tell(&self, id: &str, copy: &Copy, (delivered, began): (usize, Instant)) {
        let elapsed = began.elapsed();
        self.delivered.add(delivered as u64);
        self.routed.add(1);
        self.deliveries.record(elapsed);
        if let Some(told) = &self.on_routed {
            told(&Routed {
                id,
                from: &copy.from,
                message_id: &copy.message_id,
                state: RoutedState::Delivered,
                delivered: delivered as u64,
                handed_over: 0,
                failed: 0,
                reason: None,
                attempts: 0,
                elapsed,
            });
        }
    }
}

/// Whether a batch can hold changes of all these databases.
fn share_a_batch(files: &[MailFile]) -> bool {
    let Some((first, others)) = files.split_first() else { return false };
    let of = |file: &MailFile| (file.database.volume().to_owned(), file.database.properties().logged);
    others.iter().all(|file| of(file) == of(first))
}

/// Those that neither have nor had a document of this id.
fn without<'f>(files: &'f [MailFile], id: &str) -> Result<Vec<&'f MailFile>, DatabaseError> {
    let mut missing = Vec::with_capacity(files.len());
    for file in files {
        if !file.database.has_revisions(id)? {
            missing.push(file);
        }
    }
    Ok(missing)
}
