//! Delivering the memos of one round: each mail database gets all that is for it, in its Inbox, in one batch, and
//! the batches of all of them share the log's syncs.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use scrinium_assertion::{always, never};
use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_database::folder::name::validate as validate_folder;
use scrinium_database::{
    Access, Database, DatabaseError, Edit, EditMode, InitialAccess, NewAttachment, Update,
};
use scrinium_directory::{Found, MailIn, Person};
use scrinium_sieve::{HeaderEdit, Notification, Target as FolderTarget, VacationReply};
use scrinium_views::OpenDatabase;
use serde_json::{Map, Value};

use super::failure::{Failure, is_failure_memo};
use super::waiting::Waiting;
use crate::calendars::{
    CALENDAR_NOTE, CalendarArrival, CalendarKeeper, brings_calendar, proof_of, whole, whole_made,
};
use crate::envelope::EnvelopeItems;
use crate::inbox::{INBOX, JUNK, into_folder};
use crate::mail_file::open_mail_file;
use crate::mailbox::{DepositError, IncomingMessage};
use crate::memo::{field, recipients_of};
use crate::message::SOURCE_ATTACHMENT;
use crate::outgoing::{MessageComposer, OutgoingQueue};
use crate::outline::{outline_of, outline_of_stored};
use crate::recipients::{OutsideRecipient, Resolver};
use crate::rules::{RuleBook, RuleOwner, Verdict};
use crate::sieve::{
    Addressee, Leaving, ScriptBook, SourceOf, edited_head, folder_for, mark, note_answer,
    notification_source, read_head, reply_source, tell_of_leaving,
};
use crate::source::{MessageSource, SourceWriter, attachment_of};
use crate::time::now_text;

/// Who takes mail from a mail.box to mail files.
pub(super) static ROUTER: Access = Access::of_the_server("routing mail");

/// What became of one memo of a round.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Mail databases that have it now and had not before.
    pub(super) delivered: u64,
    /// Recipients elsewhere, for whom it is in the queue of outgoing mail.
    pub(super) handed_over: usize,
    /// Whom it will never reach.
    pub(super) failures: Vec<Failure>,
    /// Why it must be tried again.
    pub(super) later: Option<String>,
    /// It is not delivered before this time (RFC 4865), in milliseconds since 1970.
    pub(super) release_ms: Option<u64>,
    /// Why a rule of the server keeps it back.
    pub(super) held: Option<String>,
}

/// Delivers memos into mail databases.
pub(super) struct Deliverer<'r> {
    pub(super) databases: &'r Databases,
    pub(super) mailboxes: &'r [OpenDatabase],
    pub(super) resolver: &'r Resolver,
    pub(super) rules: &'r RuleBook,
    pub(super) scripts: &'r ScriptBook,
    /// Where messages go that are for people elsewhere.
    pub(super) outgoing: Option<&'r OutgoingQueue>,
    /// Who files messages about meetings.
    pub(super) calendars: Option<&'r dyn CalendarKeeper>,
    /// Updates that may be on their way to the disk at once.
    pub(super) updates_at_once: usize,
}

/// A memo as its recipients get it.
struct Copy {
    id: String,
    json: Bytes,
    /// As it stands in the mail.box.
    memo: Map<String, Value>,
    attachments: Vec<NewAttachment>,
    outline: Option<Bytes>,
}

impl Copy {
    /// Puts the message itself into an edit.
    fn bring(&self, edit: &mut Edit) {
        edit.attachments.clone_from(&self.attachments);
        edit.outline.clone_from(&self.outline);
    }
}

/// Whose a database is that gets memos.
#[derive(Clone)]
enum Target {
    Person(Arc<Person>),
    MailIn(Arc<MailIn>),
    /// A journal, by its name.
    Journal(String),
}

/// A memo of the round, by its place there, for one person, mail-in database or journal.
#[derive(Clone)]
struct Addressed {
    place: usize,
    target: Target,
    /// What the rules of the server make of it.
    servers: Arc<Verdict>,
}

impl Target {
    fn open(&self, databases: &Databases) -> Result<OpenDatabase, DatabaseError> {
        match self {
            Self::Person(person) => open_mail_file(databases, person),
            // Nobody has said who may read it, if it is not there.
            Self::MailIn(mail_in) => databases.get(&mail_in.database),
            Self::Journal(name) => match databases.get(name) {
                Err(DatabaseError::NotFound { .. }) => match databases.create(name, &InitialAccess::Closed) {
                    // Somebody else made it in this moment.
                    Err(DatabaseError::Exists { .. }) => databases.get(name),
                    created => created,
                },
                found => found,
            },
        }
    }

    fn database(&self) -> &str {
        match self {
            Self::Person(person) => &person.mail_file,
            Self::MailIn(mail_in) => &mail_in.database,
            Self::Journal(name) => name,
        }
    }
}

/// What becomes of a memo for one of those whom it is for.
enum Made {
    /// It is written into their database.
    Edit(Box<Edit>),
    /// They do not keep it.
    Nothing,
    /// It does not get in.
    Refused(Failure),
}

impl Made {
    fn of(edit: Edit) -> Self {
        Self::Edit(Box::new(edit))
    }
}

/// A message that a script sends.
struct ScriptMail<'m> {
    id: String,
    source: Vec<u8>,
    recipients: Vec<String>,
    /// Where its person keeps a copy.
    fcc: Option<&'m FolderTarget>,
}

/// An update on its way, with the memos that it delivers, in the order of its edits.
struct Sent {
    memos: Vec<Addressed>,
    update: Update,
}

/// The id of a memo in a mail database: the same for every attempt to deliver it, and for a message of SMTP that comes once more,
/// for any of its recipients. That a document of this id
/// is there, or its tombstone, is how a delivery is remembered: it is written in the same batch as the memo,
/// and a recipient who deletes the memo leaves it in place.
pub(super) fn delivered_id(mailbox: &Database, memo: &Waiting) -> String {
    let items = EnvelopeItems::of_memo(&memo.memo);
    if let Some(id) = items.delivered_id {
        return id;
    }
    if let Some(repeat_id) = items.repeat_id {
        return repeated_id(&repeat_id);
    }
    id_of("scrinium 2026 id of a delivered memo", mailbox, memo)
}

/// The id in a mail database of a message of SMTP that is recognised by `repeat_id`, whichever way it gets there.
pub(crate) fn repeated_id(repeat_id: &str) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("scrinium 2026 id of a delivered message of SMTP");
    hasher.update(repeat_id.as_bytes()).finalize().to_hex().chars().take(32).collect()
}

/// The id of the message in the queue of outgoing mail.
pub(crate) fn queued_id(mailbox: &Database, memo: &Waiting) -> String {
    id_of("scrinium 2026 id of an outgoing message", mailbox, memo)
}

/// The id of the memo that tells the sender of failures.
pub(super) fn failure_id(mailbox: &Database, memo: &Waiting) -> String {
    id_of("scrinium 2026 id of a delivery failure", mailbox, memo)
}

fn id_of(context: &str, mailbox: &Database, memo: &Waiting) -> String {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    // The sequence text names this very database, not another one that had its name; the revision tells a memo
    // from an earlier one of the same id.
    for part in [mailbox.name(), &mailbox.sequence_text(0), &memo.id, &memo.revision] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    hasher.finalize().to_hex().chars().take(32).collect()
}

impl Deliverer<'_> {
    /// Delivers all memos of a round. When this returns, every delivery that is counted is durable.
    pub(super) fn deliver(&self, round: &[Waiting]) -> Vec<Outcome> {
        let mut outcomes: Vec<Outcome> = round.iter().map(|_| Outcome::default()).collect();
        let (by_file, outside) = self.addressed(round, &mut outcomes);
        let mut copies: Vec<Option<Copy>> = round.iter().map(|_| None).collect();
        let mut sent: VecDeque<Sent> = VecDeque::new();
        for memos in by_file.into_values() {
            if sent.len() >= self.updates_at_once
                && let Some(oldest) = sent.pop_front()
            {
                finish(oldest, &mut outcomes);
            }
            match self.send(&memos, round, &mut copies, &mut outcomes) {
                Ok(Some(update)) => sent.push_back(update),
                Ok(None) => {}
                Err(error) => note_all(&memos, &error, &mut outcomes),
            }
        }
        for update in sent {
            finish(update, &mut outcomes);
        }
        for (place, recipients) in outside {
            self.hand_over(place, &recipients, round, &mut outcomes);
        }
        outcomes
    }

    /// Puts a memo into the queue of outgoing mail.
    fn hand_over(
        &self,
        place: usize,
        recipients: &[OutsideRecipient],
        round: &[Waiting],
        outcomes: &mut [Outcome],
    ) {
        let (Some(memo), Some(outcome)) = (round.get(place), outcomes.get_mut(place)) else {
            never!("an addressed memo is one of the round", "memo {place} of {}", round.len());
            return;
        };
        let (Some(mailbox), Some(queue)) = (self.mailboxes.get(memo.mailbox), self.outgoing) else {
            never!("a memo waits in one of the mail.boxes");
            return;
        };
        match queue.accept((mailbox, memo), recipients, self.resolver) {
            Ok(failures) => {
                outcome.handed_over = recipients.len().saturating_sub(failures.len());
                outcome.failures.extend(failures);
            }
            Err(error @ (DatabaseError::TooLarge { .. } | DatabaseError::Invalid { .. })) => {
                let reason = format!("the message cannot be sent: {error}");
                outcome.failures.push(Failure { recipient: String::new(), reason });
            }
            Err(error) => outcome.later = Some(format!("the queue of outgoing mail: {error}")),
        }
    }

    /// Mail databases with the memos that go there, each memo once; and memos with those elsewhere whom they are for.
    #[allow(clippy::type_complexity, reason = "two lists")]
    fn addressed(
        &self,
        round: &[Waiting],
        outcomes: &mut [Outcome],
    ) -> (BTreeMap<String, Vec<Addressed>>, Vec<(usize, Vec<OutsideRecipient>)>) {
        let mut by_file: BTreeMap<String, Vec<Addressed>> = BTreeMap::new();
        let mut outside = Vec::new();
        let now_ms = self.databases.clock().now_ms();
        for (place, (memo, outcome)) in round.iter().zip(outcomes).enumerate() {
            let mut recipients = match recipients_of(&memo.memo) {
                Ok(recipients) => recipients,
                Err(error) => {
                    outcome.failures.push(Failure { recipient: String::new(), reason: error.to_string() });
                    continue;
                }
            };
            let envelope = EnvelopeItems::of_memo(&memo.memo);
            let Some(servers) = self.judged(memo, &envelope, outcome) else { continue };
            recipients.extend(servers.forwards.iter().cloned());
            let expansion =
                self.resolver.expand(&recipients, &self.resolver.writer_of(&envelope, &memo.memo));
            let stays_here = !expansion.people.is_empty() || !expansion.databases.is_empty();
            // What is for others alone waits in the queue of outgoing mail.
            let waits_here = stays_here || envelope.can_be_taken_back;
            outcome.release_ms = envelope.release_ms.filter(|release| *release > now_ms && waits_here);
            if outcome.release_ms.is_some() {
                continue;
            }
            let takes = |recipient: &OutsideRecipient| {
                self.outgoing.is_some_and(|queue| queue.takes(&recipient.address))
            };
            let (leaving, unknown): (Vec<_>, Vec<_>) = expansion.outside.into_iter().partition(takes);
            if !leaving.is_empty() {
                outside.push((place, leaving));
            }
            outcome.failures.extend(unknown.into_iter().map(|recipient| Failure {
                reason: format!("{}: nobody in the directory has this name or address", recipient.written),
                recipient: recipient.written,
            }));
            outcome.failures.extend(
                expansion.failures.iter().map(|failure| Failure {
                    recipient: failure.written.clone(),
                    reason: failure.to_string(),
                }),
            );
            let people = expansion.people.into_iter().map(Target::Person);
            let journals = servers.journals.iter().cloned().map(Target::Journal);
            let databases = expansion.databases.into_iter().map(Target::MailIn);
            for target in people.chain(databases).chain(journals) {
                let memos = by_file.entry(target.database().to_owned()).or_default();
                // Two people may share one mail database.
                if memos.last().is_none_or(|last| last.place != place) {
                    memos.push(Addressed { place, target, servers: Arc::clone(&servers) });
                }
            }
        }
        (by_file, outside)
    }

    /// What the rules of the server make of a memo; nothing where it goes no further.
    fn judged(
        &self,
        memo: &Waiting,
        envelope: &EnvelopeItems,
        outcome: &mut Outcome,
    ) -> Option<Arc<Verdict>> {
        if memo.memo.get(field::RULES_DONE) == Some(&Value::Bool(true)) {
            return Some(Arc::new(Verdict::default().aside(envelope)));
        }
        let verdict = match self.rules.judge(RuleOwner::Server, &memo.memo) {
            Ok(verdict) => verdict.aside(envelope),
            Err(error) => {
                outcome.later = Some(format!("the rules of the server: {error}"));
                return None;
            }
        };
        if let Some(text) = &verdict.reject {
            outcome.failures.push(Failure { recipient: String::new(), reason: text.clone() });
            return None;
        }
        let hold = verdict.hold.as_ref().or(envelope.hold.as_ref());
        if hold.is_some() {
            outcome.held = hold.cloned();
            return None;
        }
        Some(Arc::new(verdict))
    }

    fn send(
        &self,
        memos: &[Addressed],
        round: &[Waiting],
        copies: &mut [Option<Copy>],
        outcomes: &mut [Outcome],
    ) -> Result<Option<Sent>, DatabaseError> {
        let first = memos.first().ok_or_else(|| never!("a mail file that is listed gets a memo"))?;
        let database = first.target.open(self.databases)?;
        let mut edits = Vec::with_capacity(memos.len());
        let mut sent = Vec::with_capacity(memos.len());
        for addressed in memos {
            let place = addressed.place;
            let (Some(memo), Some(copy), Some(outcome)) =
                (round.get(place), copies.get_mut(place), outcomes.get_mut(place))
            else {
                return Err(never!(
                    "an addressed memo is one of the round",
                    "memo {place} of {}",
                    round.len()
                )
                .into());
            };
            let mailbox = self.mailboxes.get(memo.mailbox);
            let mailbox = mailbox.ok_or_else(|| never!("a memo waits in one of the mail.boxes"))?;
            if was_delivered(&database, &delivered_id(mailbox, memo))? {
                continue;
            }
            let copy = match copy {
                Some(copy) => copy,
                None => match copy_of(mailbox, memo, self.databases.clock()) {
                    Ok(made) => copy.insert(made),
                    Err(error) => {
                        // Its source is damaged or was taken out of the mail.box this moment.
                        outcome.later = Some(error.to_string());
                        continue;
                    }
                },
            };
            match self.edit_for(addressed, &database, (mailbox, memo, &*copy)) {
                Ok(Made::Edit(edit)) => {
                    edits.push(*edit);
                    sent.push(addressed.clone());
                }
                Ok(Made::Nothing) => {}
                Ok(Made::Refused(failure)) => outcome.failures.push(failure),
                Err(error) => outcome.later = Some(error.to_string()),
            }
        }
        if edits.is_empty() {
            return Ok(None);
        }
        let update = database.update_in_parts(edits, EditMode::Interactive, &ROUTER)?;
        Ok(Some(Sent { memos: sent, update }))
    }

    /// A memo as a person or a journal gets it, or why the person's rules do not let it in. What they forward and answer is in the
    /// mail.box when this returns.
    fn edit_for(
        &self,
        addressed: &Addressed,
        opened: &OpenDatabase,
        (mailbox, waiting, copy): (&OpenDatabase, &Waiting, &Copy),
    ) -> Result<Made, DatabaseError> {
        let (clock, database) = (self.databases.clock(), opened.database());
        let mut edit = Edit { id: Some(copy.id.clone()), ..Edit::default() };
        copy.bring(&mut edit);
        let person = match &addressed.target {
            Target::Person(person) => person,
            Target::MailIn(_) => {
                // The rules of the server count; nobody has others here.
                edit.json = if addressed.servers.flags.is_empty() {
                    copy.json.clone()
                } else {
                    let mut memo = copy.memo.clone();
                    addressed.servers.flag(&mut memo);
                    delivered_json(memo, clock)
                };
                edit.folders = into_folder(addressed.servers.folder.as_deref().unwrap_or(INBOX));
                return Ok(Made::of(edit));
            }
            Target::Journal(_) => {
                // What the envelope said belongs to the record.
                edit.json = journaled_json(copy.memo.clone(), clock);
                return Ok(Made::of(edit));
            }
        };
        let mut verdict = self.judged_by(person, database, (mailbox, waiting, &copy.id))?;
        if let Some(reason) = verdict.reject.take() {
            if self.may_refuse(waiting) {
                return Ok(Made::Refused(Failure { recipient: person.short_name.clone(), reason }));
            }
            verdict = Verdict { folder: Some(JUNK.to_owned()), ..Verdict::default() };
        }
        let edited = match verdict.header_edits.as_slice() {
            [] => None,
            edits => edited_copy(mailbox, (waiting, copy), (edits, clock))?,
        };
        let copy = edited.as_ref().unwrap_or(copy);
        copy.bring(&mut edit);
        for address in &verdict.forwards {
            tell_of_leaving((database, person), (Leaving::Mail, address), clock)?;
            self.forward(address, person, (mailbox, copy))?;
        }
        for reply in &verdict.replies {
            self.reply(reply, (person, database), (mailbox, copy))?;
        }
        for (number, notice) in verdict.notices.iter().enumerate() {
            self.notify((number, notice), (person, database), (mailbox, copy))?;
        }
        if verdict.is_discarded {
            return Ok(Made::Nothing);
        }
        let verdict = verdict.after(&addressed.servers);
        let filed = self.filed(&verdict, (person, opened), (mailbox, waiting))?;
        edit.json = if verdict.flags.is_empty() && filed.is_none() {
            copy.json.clone()
        } else {
            let mut memo = copy.memo.clone();
            verdict.flag(&mut memo);
            if let Some(note) = filed {
                memo.insert(CALENDAR_NOTE.to_owned(), Value::from(note));
            }
            delivered_json(memo, clock)
        };
        verdict.place(&mut edit, person);
        Ok(Made::of(edit))
    }

    /// What a person's calendar makes of a memo, in words. What is for Junk it does not see.
    fn filed(
        &self,
        verdict: &Verdict,
        (person, database): (&Arc<Person>, &OpenDatabase),
        (mailbox, waiting): (&OpenDatabase, &Waiting),
    ) -> Result<Option<String>, DatabaseError> {
        let is_junk = verdict.folder.as_deref() == Some(JUNK);
        let keeper = self.calendars.filter(|_| !is_junk && brings_calendar(&waiting.memo));
        let Some(keeper) = keeper else { return Ok(None) };
        let (author, proof) = proof_of(&waiting.memo);
        let source = match self.source_of(mailbox, waiting)? {
            SourceOf::Stored(reader) => whole(&reader)?,
            SourceOf::Made(source) => whole_made(&source)?,
            SourceOf::Coming(source) => whole_made(source)?,
        };
        let Some(source) = source else { return Ok(None) };
        keeper.file(&CalendarArrival { person, database, author, proof, source })
    }

    /// A memo's message: the one that it came as, or one that is made of it.
    fn source_of<'s>(
        &self,
        mailbox: &OpenDatabase,
        waiting: &Waiting,
    ) -> Result<SourceOf<'s>, DatabaseError> {
        match mailbox.open_attachment(&waiting.id, SOURCE_ATTACHMENT, None, &ROUTER) {
            Ok(reader) => Ok(SourceOf::Stored(Box::new(reader))),
            Err(DatabaseError::NotFound { .. }) => {
                let composer =
                    MessageComposer { host: "localhost".to_owned(), resolver: self.resolver.clone() };
                composer.compose(mailbox, (&waiting.id, &waiting.memo), &ROUTER).map(SourceOf::Made)
            }
            Err(error) => Err(error),
        }
    }

    /// What the rules and the script of a person make of a memo.
    fn judged_by(
        &self,
        person: &Person,
        database: &Arc<Database>,
        (mailbox, waiting, id): (&OpenDatabase, &Waiting, &str),
    ) -> Result<Verdict, DatabaseError> {
        let verdict = self.rules.judge(RuleOwner::Person(&person.id), &waiting.memo)?;
        let envelope = EnvelopeItems::of_memo(&waiting.memo);
        let (resolver, memo) = (self.resolver, &waiting.memo);
        let to = Addressee { database, person, resolver, memo, envelope: &envelope, id: Some(id) };
        self.scripts.judge(verdict, &to, || self.source_of(mailbox, waiting))
    }

    /// Whether its sender may hear that a memo was refused: not somebody whose name was forged, who has not sent it.
    fn may_refuse(&self, waiting: &Waiting) -> bool {
        let path = waiting.memo.get(field::RETURN_PATH).and_then(Value::as_str);
        path.is_none_or(|path| {
            path.is_empty() || EnvelopeItems::of_memo(&waiting.memo).believed(path).is_some()
        })
    }

    /// Deposits an automatic reply, once for each sender and period.
    fn reply(
        &self,
        reply: &VacationReply,
        (person, database): (&Person, &Arc<Database>),
        (mailbox, copy): (&OpenDatabase, &Copy),
    ) -> Result<(), DatabaseError> {
        let clock = self.databases.clock();
        if !note_answer(database, reply, (&copy.id, clock.now_ms() / 1_000))? {
            return Ok(());
        }
        let context = "scrinium 2026 id of an automatic reply";
        let id = hashed_id(context, &[&copy.id, &person.id, &reply.key, &reply.to]);
        if was_delivered(mailbox, &id)? {
            return Ok(());
        }
        let source = reply_source(reply, (&id, clock.now_ms()));
        let made = ScriptMail { id, source, recipients: vec![reply.to.clone()], fcc: reply.fcc.as_ref() };
        self.send_made(made, (person, database), mailbox)
    }

    /// Deposits a notice of a message for somebody else, once.
    fn notify(
        &self,
        (number, notice): (usize, &Notification),
        (person, database): (&Person, &Arc<Database>),
        (mailbox, copy): (&OpenDatabase, &Copy),
    ) -> Result<(), DatabaseError> {
        let clock = self.databases.clock();
        let id =
            hashed_id("scrinium 2026 id of a notification", &[&copy.id, &person.id, &number.to_string()]);
        if was_delivered(mailbox, &id)? {
            return Ok(());
        }
        let own = self.resolver.mailbox_of(person).map(|mailbox| mailbox.to_string()).unwrap_or_default();
        // Nobody writes in the name of somebody else.
        let is_own = |from: &&String| matches!(self.resolver.recipient(from), Found::Person(found) if found.id == person.id);
        let from = notice.from.as_ref().filter(is_own).unwrap_or(&own);
        let recipients: Vec<String> = notice.to.iter().chain(&notice.cc).cloned().collect();
        for address in &recipients {
            if !matches!(self.resolver.recipient(address), Found::Person(found) if found.id == person.id) {
                tell_of_leaving((database, person), (Leaving::Notices, address), clock)?;
            }
        }
        let source = notification_source(notice, from, (&id, clock.now_ms()));
        let made = ScriptMail { id, source, recipients, fcc: notice.fcc.as_ref() };
        self.send_made(made, (person, database), mailbox)
    }

    /// Puts what a script says into the mail.box, after a copy of it into the folder that is to have one (RFC 8580).
    fn send_made(
        &self,
        made: ScriptMail<'_>,
        (person, database): (&Person, &Arc<Database>),
        mailbox: &OpenDatabase,
    ) -> Result<(), DatabaseError> {
        let clock = self.databases.clock();
        let ScriptMail { id, source, recipients, fcc } = made;
        let source = MessageSource::from(Bytes::from(source));
        let attachments = vec![attachment_of(mailbox, &source)?];
        let own = fcc.map(|_| attachment_of(database, &source)).transpose()?;
        let message = IncomingMessage {
            source,
            recipients,
            // RFC 5230 §5.1, RFC 5436 §2.7.3: nobody answers it.
            return_path: String::new(),
            envelope: EnvelopeItems::default(),
        };
        let unwritten = |error: DepositError| DatabaseError::Internal { reason: error.to_string() };
        let mut memo = message.memo(clock).map_err(unwritten)?;
        if let (Some(fcc), Some(own)) = (fcc, own) {
            let folder = folder_for(database, fcc);
            let folder = if validate_folder(&folder).is_ok() { folder } else { INBOX.to_owned() };
            let mut filed = memo.clone();
            let mut verdict = Verdict { folder: Some(folder), ..Verdict::default() };
            mark(&mut verdict, fcc.flags.clone());
            verdict.flag(&mut filed);
            let mut edit = Edit {
                id: Some(id.clone()),
                json: delivered_json(filed, clock),
                attachments: vec![own],
                ..Edit::default()
            };
            // Who has written it knows it.
            verdict.is_read = true;
            verdict.place(&mut edit, person);
            match database.update_one(edit, EditMode::Interactive, &ROUTER) {
                Ok(_) | Err(DatabaseError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
        memo.insert(field::RULES_DONE.to_owned(), Value::Bool(true));
        deposit(mailbox, id, memo, attachments)
    }

    /// Deposits a memo for an address to which a person forwards it, once. It is recognised as the same message wherever it comes, so
    /// that two people who forward to each other have it once each.
    fn forward(
        &self,
        address: &str,
        person: &Person,
        (mailbox, copy): (&OpenDatabase, &Copy),
    ) -> Result<(), DatabaseError> {
        let id = hashed_id("scrinium 2026 id of a forwarded memo", &[&copy.id, &person.id, address]);
        if was_delivered(mailbox, &id)? {
            return Ok(());
        }
        let mut memo = copy.memo.clone();
        for name in [field::BLIND_COPY_TO, field::STATE, "_id", "_rev", "_attachments"] {
            memo.shift_remove(name);
        }
        let EnvelopeItems { sender, mut forwarders, .. } = EnvelopeItems::of_memo(&copy.memo);
        forwarders.push(person.id.clone());
        let items = EnvelopeItems {
            delivered_id: Some(copy.id.clone()),
            sender,
            forwarders,
            ..EnvelopeItems::default()
        };
        // What comes from nobody goes on from nobody: no notice about it comes back (RFC 3834 §3.3).
        let is_null = is_failure_memo(&memo) || memo.get(field::RETURN_PATH) == Some(&Value::from(""));
        let sender = self.resolver.mailbox_of(person).filter(|_| !is_null);
        let sender = sender.map(|sender| sender.to_string()).unwrap_or_default();
        memo.insert(field::RETURN_PATH.to_owned(), Value::from(sender));
        memo.insert(field::RECIPIENTS.to_owned(), Value::from(vec![address]));
        memo.insert(field::RULES_DONE.to_owned(), Value::Bool(true));
        if let Some(items) = items.to_value() {
            memo.insert(field::ENVELOPE.to_owned(), items);
        }
        deposit(mailbox, id, memo, copy.attachments.clone())
    }
}

/// Puts a memo into a mail.box, once for each id.
fn deposit(
    mailbox: &OpenDatabase,
    id: String,
    memo: Map<String, Value>,
    attachments: Vec<NewAttachment>,
) -> Result<(), DatabaseError> {
    let json = Value::Object(memo).to_string().into();
    let edit = Edit { id: Some(id), json, attachments, ..Edit::default() };
    match mailbox.update_one(edit, EditMode::Interactive, &ROUTER) {
        Ok(_) | Err(DatabaseError::Conflict) => Ok(()),
        Err(error) => Err(error),
    }
}

fn hashed_id(context: &str, parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    hasher.finalize().to_hex().chars().take(32).collect()
}

/// Whether a database has this memo, or had it: a tombstone counts.
pub(crate) fn was_delivered(database: &Database, id: &str) -> Result<bool, DatabaseError> {
    database.has_revisions(id)
}

fn copy_of(mailbox: &OpenDatabase, waiting: &Waiting, clock: &Clock) -> Result<Copy, DatabaseError> {
    let memo: Map<String, Value> = waiting.memo.clone();
    let names = memo.get("_attachments").and_then(Value::as_object).into_iter().flatten();
    let attachments: Result<Vec<NewAttachment>, DatabaseError> =
        names.map(|(name, _)| mailbox.share_attachment(&waiting.id, name, None, &ROUTER)).collect();
    let attachments = attachments?;
    let outline = match attachments.iter().any(|attachment| attachment.name == SOURCE_ATTACHMENT) {
        true => {
            let source = mailbox.open_attachment(&waiting.id, SOURCE_ATTACHMENT, None, &ROUTER)?;
            outline_of_stored(&source, &memo)?
        }
        false => None,
    };
    let json = delivered_json(memo.clone(), clock);
    Ok(Copy { id: delivered_id(mailbox, waiting), json, attachments, outline, memo })
}

/// A memo of which a script has changed the head (RFC 5293); `None` for one that was written here, which has no other head than its fields.
fn edited_copy(
    mailbox: &OpenDatabase,
    (waiting, copy): (&Waiting, &Copy),
    (edits, clock): (&[HeaderEdit], &Clock),
) -> Result<Option<Copy>, DatabaseError> {
    const PIECE_BYTES: usize = 256 << 10;
    let reader = match mailbox.open_attachment(&waiting.id, SOURCE_ATTACHMENT, None, &ROUTER) {
        Ok(reader) => reader,
        Err(DatabaseError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let start = copy.memo.get(field::SOURCE_START).and_then(Value::as_u64).unwrap_or(0);
    let (head, body_start) = read_head(|place, bytes| reader.read(start + place, bytes))?;
    if body_start == head.len() as u64 && reader.length > start + body_start {
        // It has no end within what is looked at.
        return Ok(None);
    }
    let head = edited_head(&head, edits);
    let unkept = |error: std::io::Error| DatabaseError::Internal { reason: error.to_string() };
    let mut writer = SourceWriter::new(reader.length.saturating_add(head.len() as u64 + 2));
    writer.push(&[&head[..], b"\r\n"].concat()).map_err(unkept)?;
    let mut place = start + body_start;
    loop {
        let piece = reader.read(place, PIECE_BYTES)?;
        if piece.is_empty() {
            break;
        }
        writer.push(&piece).map_err(unkept)?;
        place += piece.len() as u64;
    }
    let source = writer.finish(0).map_err(unkept)?;
    let attachments = vec![attachment_of(mailbox, &source)?];
    let message = IncomingMessage {
        source,
        recipients: Vec::new(),
        return_path: String::new(),
        envelope: EnvelopeItems::default(),
    };
    let mut memo =
        message.memo(clock).map_err(|error| DatabaseError::Internal { reason: error.to_string() })?;
    for name in [field::RECIPIENTS, field::RETURN_PATH, field::ENVELOPE] {
        memo.shift_remove(name);
        if let Some(value) = copy.memo.get(name) {
            memo.insert(name.to_owned(), value.clone());
        }
    }
    let outline = outline_of(&message.source, &memo).map_err(unkept)?;
    let json = delivered_json(memo.clone(), clock);
    Ok(Some(Copy { id: copy.id.clone(), json, attachments, outline, memo }))
}

/// A memo as a journal keeps it: with all whom it went to.
fn journaled_json(mut memo: Map<String, Value>, clock: &Clock) -> Bytes {
    let envelope = [field::BLIND_COPY_TO, field::RECIPIENTS]
        .map(|name| memo.shift_remove(name).map(|value| (name, value)));
    let mut kept = delivered_fields(memo, clock);
    for (name, value) in envelope.into_iter().flatten() {
        kept.insert(name.to_owned(), value);
    }
    Value::Object(kept).to_string().into()
}

/// A memo as its recipients get it.
pub(crate) fn delivered_json(memo: Map<String, Value>, clock: &Clock) -> Bytes {
    Value::Object(delivered_fields(memo, clock)).to_string().into()
}

/// A memo without what is only for the router, and without those who must not be seen.
fn delivered_fields(mut memo: Map<String, Value>, clock: &Clock) -> Map<String, Value> {
    let hidden = [
        field::BLIND_COPY_TO,
        field::RECIPIENTS,
        field::STATE,
        field::ENVELOPE,
        field::RULES_DONE,
        field::HOLD_REASON,
    ];
    for name in ["_id", "_rev", "_attachments"].into_iter().chain(hidden) {
        memo.shift_remove(name);
    }
    // Who may read and edit what is in a mail database says its owner, and no sender.
    for name in ["Readers", "Authors"] {
        memo.shift_remove(name);
    }
    if !is_failure_memo(&memo) {
        // What is left of a dead letter that goes out once more.
        memo.shift_remove(field::FAILURE_REASON);
    }
    let now = now_text(clock);
    memo.entry(field::POSTED_DATE).or_insert_with(|| Value::from(now.as_str()));
    memo.insert(field::DELIVERED_DATE.to_owned(), Value::from(now));
    memo
}

fn finish(sent: Sent, outcomes: &mut [Outcome]) {
    let results = match sent.update.wait() {
        Ok(results) => results,
        Err(error) => return note_all(&sent.memos, &error, outcomes),
    };
    let complete = always!(
        results.len() == sent.memos.len(),
        "each memo of an update has a result",
        "{} of {}",
        results.len(),
        sent.memos.len()
    );
    if let Err(fault) = complete {
        return note_all(&sent.memos, &fault.into(), outcomes);
    }
    for (addressed, result) in sent.memos.iter().zip(results) {
        let Some(outcome) = outcomes.get_mut(addressed.place) else {
            never!("an addressed memo is one of the round");
            continue;
        };
        match result {
            Ok(_) => outcome.delivered += 1,
            // It has a document of this id: it was delivered.
            Err(DatabaseError::Conflict) => {}
            Err(error) => note(&addressed.target, &error, outcome),
        }
    }
}

fn note_all(memos: &[Addressed], error: &DatabaseError, outcomes: &mut [Outcome]) {
    for addressed in memos {
        match outcomes.get_mut(addressed.place) {
            Some(outcome) => note(&addressed.target, error, outcome),
            None => {
                never!("an addressed memo is one of the round");
            }
        }
    }
}

/// Notes that one database did not take a memo: for good, or for now. A journal gets each memo, however long that takes.
fn note(target: &Target, error: &DatabaseError, outcome: &mut Outcome) {
    let is_final = matches!(
        error,
        DatabaseError::TooLarge { .. }
            | DatabaseError::Invalid { .. }
            | DatabaseError::Forbidden { .. }
            | DatabaseError::Unauthorized { .. }
    );
    match (target, error) {
        (Target::Person(person), _) if is_final => {
            let reason =
                format!("{}: the mail database does not take the memo: {error}", person.shown_name());
            outcome.failures.push(Failure { recipient: person.short_name.clone(), reason });
        }
        // What the database is called is no sender's concern.
        (Target::MailIn(mail_in), DatabaseError::NotFound { .. }) => {
            tracing::warn!(mail_in = %mail_in.id, database = %mail_in.database, "the database of an address is not there");
            let reason = format!("{}: the database of this address is not there", mail_in.name);
            outcome.failures.push(Failure { recipient: mail_in.name.clone(), reason });
        }
        (Target::MailIn(mail_in), _) if is_final => {
            let reason = format!("{}: the database does not take the memo: {error}", mail_in.name);
            outcome.failures.push(Failure { recipient: mail_in.name.clone(), reason });
        }
        _ => outcome.later = Some(format!("{}: {error}", target.database())),
    }
}
