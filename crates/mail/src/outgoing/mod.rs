//! Messages that leave: what the router cannot deliver here is put into the queue of outgoing mail, the database `smtp.box`,
//! whose documents are the queue's entries, each with the message's source.
//!
//! A memo is handed over as it is delivered into a mail file: under ids made of the memo, all in one batch, so that a repeated
//! round finds them. The source of a message that came by SMTP is shared; a memo of fields becomes a message here
//! ([`compose`]). Who may read the database: administrators of the server.

pub(crate) mod compose;
mod document;
mod frozen;
mod scan;
mod written;

use std::sync::Arc;

use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_database::{Access, Database, DatabaseError, Edit, EditMode, InitialAccess, NewAttachment};
use scrinium_directory::{Found, Person};
use scrinium_mail_queue::route::{RewriteTable, Transport, TransportTable};
use scrinium_mail_queue::{
    Envelope, HoldMark, Language, NewMessage, NewRecipient, Priority, QueueEntry, QueuePolicy,
};
use scrinium_smtp_wire::{Mailbox, Notify, OriginalRecipient, Return};
use serde_json::{Map, Value};

use crate::source::MessageSource;

use crate::address::WrittenAddress;
use crate::envelope::{EnvelopeItems, RecipientItems};
use crate::memo::field;
use crate::message::SOURCE_ATTACHMENT;
use crate::recipients::{OutsideRecipient, Resolver};
use crate::router::{Failure, Waiting, is_failure_memo, queued_id, was_delivered};
use crate::source::attachment_of;
use scan::{SourceFacts, scan};

pub use document::{QUEUED_FORM, QueuedDocument, QueuedDocumentError};
pub use written::{WrittenMessage, WrittenPart};

/// The database whose documents are the queue of outgoing mail.
pub const OUTGOING_DATABASE: &str = "smtp.box";

/// Edits in one batch; a message with more entries takes several.
const EDITS_AT_ONCE: usize = 2_000;

/// Makes messages of memos that have no source, for those who fetch them.
pub struct MessageComposer {
    /// Who we are, in Message-IDs.
    pub host: String,
    /// Knows the addresses of people and groups.
    pub resolver: Resolver,
}

impl MessageComposer {
    /// The message that a memo stands for, the same as long as the memo and its people are the same. Blocks.
    ///
    /// # Errors
    /// What reading its attachments gives.
    pub fn compose(
        &self,
        database: &Database,
        (id, memo): (&str, &Map<String, Value>),
        access: &Access,
    ) -> Result<MessageSource, DatabaseError> {
        let name = name_of(id);
        self.composer((&name, memo), access).compose(database, id)
    }

    fn composer<'a>(
        &'a self,
        (name, memo): (&'a str, &'a Map<String, Value>),
        access: &'a Access,
    ) -> compose::Composer<'a> {
        let date = memo.get(field::DELIVERED_DATE).and_then(Value::as_str);
        let delivered = date.and_then(|date| date.parse::<jiff::Timestamp>().ok());
        let now_ms = delivered.and_then(|time| u64::try_from(time.as_millisecond()).ok()).unwrap_or(0);
        let (host, resolver) = (self.host.as_str(), &self.resolver);
        compose::Composer { memo, id: name, host, resolver, now_ms, is_sent: false, access }
    }
}

/// Ids of documents may have what a Message-ID or a boundary may not.
fn name_of(id: &str) -> String {
    blake3::hash(id.as_bytes()).to_hex().chars().take(32).collect()
}

/// Who keeps the queue.
pub static QUEUE_KEEPER: Access = Access::of_the_server("queueing outgoing mail");

/// How messages leave.
#[derive(Clone, Debug)]
pub struct OutgoingOptions {
    /// The name that stands in traces and Message-IDs.
    pub host: String,
    /// Which way a recipient's mail takes.
    pub transports: TransportTable,
    /// What becomes of recipients' addresses before that.
    pub rewrites: RewriteTable,
    /// How long messages are tried.
    pub policy: QueuePolicy,
    /// Senders of whose messages each recipient gets one with a sender of its own, in lower case.
    pub verp_senders: Vec<String>,
    /// A message that has gone through more servers is not passed on (RFC 5321 §6.3).
    pub hops_max: usize,
}

/// Where outgoing messages are put. Clones share it.
#[derive(Clone)]
pub struct OutgoingQueue {
    database: Arc<Database>,
    options: Arc<OutgoingOptions>,
    clock: Clock,
}

/// A message on its way into the queue, and whom it is from.
struct Message {
    facts: SourceFacts,
    source: NewAttachment,
    envelope: Envelope,
    items: EnvelopeItems,
}

impl OutgoingQueue {
    /// Opens the queue, and makes it if it is missing.
    ///
    /// # Errors
    /// What the database reports.
    pub fn open(databases: &Databases, options: OutgoingOptions) -> Result<Self, DatabaseError> {
        let database = match databases.get(OUTGOING_DATABASE) {
            Err(DatabaseError::NotFound { .. }) => {
                databases.create(OUTGOING_DATABASE, &InitialAccess::Closed)?
            }
            found => found?,
        };
        let database = Arc::clone(database.database());
        Ok(Self { database, options: Arc::new(options), clock: databases.clock().clone() })
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// How messages leave.
    #[must_use]
    pub fn options(&self) -> &OutgoingOptions {
        &self.options
    }

    /// Whether mail for this address leaves this server.
    pub(crate) fn takes(&self, address: &Mailbox) -> bool {
        !matches!(self.options.transports.find(address), Transport::Local)
    }

    /// Puts a memo into the queue for recipients elsewhere, once, however often it is called. Gives those who can get nothing.
    /// When this returns, it is durable.
    ///
    /// # Errors
    /// What the database reports: the memo is to be handed over again.
    pub(crate) fn accept(
        &self,
        (mailbox, waiting): (&Database, &Waiting),
        outside: &[OutsideRecipient],
        resolver: &Resolver,
    ) -> Result<Vec<Failure>, DatabaseError> {
        let id = queued_id(mailbox, waiting);
        // The first entry is written last: where it is or was, all others are or were.
        if was_delivered(&self.database, &format!("{id}/1"))? {
            return Ok(Vec::new());
        }
        let message = self.message(mailbox, waiting, &id, resolver)?;
        if message.facts.received > self.options.hops_max {
            return Ok(failures(
                outside,
                "the message goes round in a circle: it has gone through too many servers",
            ));
        }
        let (recipients, mut failed) = self.rewritten(outside, &message.items);
        if recipients.is_empty() {
            return Ok(failed);
        }
        let now_ms = self.clock.now_ms();
        let is_silent = message.envelope.is_silent();
        let new = NewMessage {
            id,
            size_bytes: message.facts.length_bytes,
            arrived_ms: now_ms,
            release_ms: message.items.release_ms,
            lifetime_ms: self.options.policy.lifetime_of(is_silent),
            priority: priority_of(&waiting.memo),
            hold: None,
            envelope: message.envelope,
        };
        let transports = &self.options.transports;
        match new.split(recipients, |address| transports.destination(address)) {
            Ok(entries) => self.write(entries, message.facts.start_bytes, &message.source, now_ms)?,
            Err(error) => failed.extend(failures(outside, &error.to_string())),
        }
        Ok(failed)
    }

    /// Puts the entries of a message into the database, the first one last.
    fn write(
        &self,
        mut entries: Vec<QueueEntry>,
        start_bytes: u64,
        source: &NewAttachment,
        now_ms: u64,
    ) -> Result<(), DatabaseError> {
        for entry in &mut entries {
            let first = entry.recipients.first().map(|recipient| recipient.address.clone());
            if let Some(Transport::Hold(reason)) =
                first.as_ref().map(|address| self.options.transports.find(address))
            {
                entry.hold = Some(HoldMark {
                    by: "a transport rule".to_owned(),
                    reason: reason.clone(),
                    since_ms: now_ms,
                });
            }
        }
        entries.reverse();
        for some in entries.chunks(EDITS_AT_ONCE) {
            let mut edits = Vec::with_capacity(some.len());
            for entry in some {
                if !was_delivered(&self.database, &entry.id)? {
                    edits.push(Edit {
                        id: Some(entry.id.clone()),
                        json: QueuedDocument::fields_of(entry, start_bytes, now_ms).to_string().into(),
                        attachments: vec![source.clone()],
                        ..Edit::default()
                    });
                }
            }
            for result in
                self.database.update_in_parts(edits, EditMode::Interactive, &QUEUE_KEEPER)?.wait()?
            {
                match result {
                    Ok(_) | Err(DatabaseError::Conflict) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn message(
        &self,
        mailbox: &Database,
        waiting: &Waiting,
        id: &str,
        resolver: &Resolver,
    ) -> Result<Message, DatabaseError> {
        let memo = &waiting.memo;
        let items = EnvelopeItems::of_memo(memo);
        let has_source =
            memo.get("_attachments").and_then(|attachments| attachments.get(SOURCE_ATTACHMENT)).is_some();
        let unreadable = |error: std::io::Error| DatabaseError::Internal { reason: error.to_string() };
        let (facts, source) = if has_source {
            let start_bytes = memo.get(field::SOURCE_START).and_then(Value::as_u64).unwrap_or(0);
            let reader = mailbox.open_attachment(&waiting.id, SOURCE_ATTACHMENT, None, &QUEUE_KEEPER)?;
            let facts = scan(start_bytes, |offset, most| reader.read(offset, most))?;
            (facts, mailbox.share_attachment(&waiting.id, SOURCE_ATTACHMENT, None, &QUEUE_KEEPER)?)
        } else {
            let composer = compose::Composer {
                memo,
                id,
                host: &self.options.host,
                resolver,
                now_ms: self.clock.now_ms(),
                is_sent: true,
                access: &QUEUE_KEEPER,
            };
            let source = composer.compose(mailbox, &waiting.id)?;
            let facts = scan(0, |offset, most| source.piece(offset, most).map_err(unreadable))?;
            (facts, attachment_of(&self.database, &source)?)
        };
        let envelope = self.envelope(memo, &facts, &items, resolver);
        Ok(Message { facts, source, envelope, items })
    }

    fn envelope(
        &self,
        memo: &Map<String, Value>,
        facts: &SourceFacts,
        items: &EnvelopeItems,
        resolver: &Resolver,
    ) -> Envelope {
        let (sender, person) = sender_of(memo, resolver);
        let is_verp = |sender: &Mailbox| {
            let sender = sender.to_string().to_lowercase();
            self.options.verp_senders.contains(&sender)
        };
        Envelope {
            verp: sender.as_ref().is_some_and(is_verp),
            utf8: facts.needs_utf8 || sender.as_ref().is_some_and(|sender| !sender.is_ascii()),
            sender,
            envelope_id: items.envelope_id.clone(),
            return_content: items.returns_all.map(|all| if all { Return::Full } else { Return::Headers }),
            eight_bit: facts.has_eight_bit,
            require_tls: items.require_tls,
            message_id: facts.message_id.clone(),
            submitter: items
                .submitter
                .clone()
                .filter(|submitter| !submitter.is_empty())
                .or_else(|| person.as_ref().map(|person| person.short_name.clone())),
            is_report: facts.is_report,
            language: person.as_ref().map_or(Language::English, |person| language_of(person)),
        }
    }

    /// Recipients after rewriting, and those whom the rules lead nowhere.
    fn rewritten(
        &self,
        outside: &[OutsideRecipient],
        items: &EnvelopeItems,
    ) -> (Vec<NewRecipient>, Vec<Failure>) {
        let (mut recipients, mut failed) = (Vec::with_capacity(outside.len()), Vec::new());
        for recipient in outside {
            match self.options.rewrites.rewrite(&recipient.address) {
                Ok(address) => {
                    let said = items.recipients.get(&recipient.address.to_string());
                    recipients.push(NewRecipient {
                        original: said.and_then(original_of).or_else(|| {
                            // RFC 3461 §5.2.7.1: what the sender wrote, where a rule made it another one.
                            (address != recipient.address)
                                .then(|| OriginalRecipient::new("rfc822", &recipient.address.to_string()))
                                .flatten()
                        }),
                        notify: said.and_then(notify_of),
                        address,
                    });
                }
                Err(error) => failed.push(Failure {
                    recipient: recipient.written.clone(),
                    reason: format!("{}: {error}", recipient.written),
                }),
            }
        }
        (recipients, failed)
    }
}

fn failures(outside: &[OutsideRecipient], reason: &str) -> Vec<Failure> {
    let failure = |recipient: &OutsideRecipient| Failure {
        recipient: recipient.written.clone(),
        reason: format!("{}: {reason}", recipient.written),
    };
    outside.iter().map(failure).collect()
}

fn notify_of(said: &RecipientItems) -> Option<Notify> {
    let text = said.notify.as_deref()?;
    let mut notify = Notify::default();
    for word in text.split(',') {
        match word {
            "SUCCESS" => notify.success = true,
            "FAILURE" => notify.failure = true,
            "DELAY" => notify.delay = true,
            _ => {}
        }
    }
    Some(notify)
}

fn original_of(said: &RecipientItems) -> Option<OriginalRecipient> {
    let (kind, address) = said.original.as_deref()?.split_once(';')?;
    OriginalRecipient::new(kind, address)
}

/// Whom a message is from: the return path of what came by SMTP; else who has sent it, or who has written it. The null sender
/// where that is to be, and where there is no such address. With the person, where it is one of this server.
fn sender_of(memo: &Map<String, Value>, resolver: &Resolver) -> (Option<Mailbox>, Option<Arc<Person>>) {
    if is_failure_memo(memo) {
        return (None, None);
    }
    let text = |name: &str| memo.get(name).and_then(Value::as_str).map(str::trim).unwrap_or_default();
    let written = match memo.get(field::RETURN_PATH).and_then(Value::as_str) {
        Some(path) => path.trim(),
        None if text(field::SENDER).is_empty() => text(field::FROM),
        None => text(field::SENDER),
    };
    let person = match resolver.find(written) {
        Found::Person(person) => Some(person),
        _ => None,
    };
    let address = WrittenAddress::read(written).address;
    let sender = Mailbox::parse(address.as_bytes()).ok();
    let sender = sender.or_else(|| person.as_deref().and_then(|person| resolver.mailbox_of(person)));
    (sender, person)
}

fn language_of(person: &Person) -> Language {
    match person.language.as_deref() {
        Some(language) if language.split(['-', '_']).next() == Some("de") => Language::German,
        _ => Language::English,
    }
}

/// `Importance` says how urgent a message is: `1` is high, `3` low.
fn priority_of(memo: &Map<String, Value>) -> Priority {
    match memo.get(field::IMPORTANCE).and_then(Value::as_str) {
        Some("1") => Priority::High,
        Some("3") => Priority::Low,
        _ => Priority::Normal,
    }
}
