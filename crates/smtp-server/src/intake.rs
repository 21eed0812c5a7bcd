//! A message on its way in: its text is kept while it comes, and when it is whole it goes into mail files or a mail.box.

use std::io::{self, ErrorKind};
use std::net::IpAddr;

use scrinium_accounting::Account;
use scrinium_database::DatabaseError;
use scrinium_mail::{
    DepositError, Deposited, EnvelopeItems, IncomingMail, IncomingMessage, MessageSource, RecipientItems,
    SenderVerdict,
};
use scrinium_sender_authentication::{MessageReader, ReadMessage};
use scrinium_smtp::{Answer, Envelope, RecipientVerdict, Refusal, RepeatId, TextSummary};
use scrinium_smtp_wire::{ForwardPath, Return};
use scrinium_statistics::{Counter, Registry};
use scrinium_worker::WorkerPool;

use crate::desk::{Desk, MailKeeper, address_of};
use crate::filters::{Filtered, FilteredMessage, Filters};
use crate::sender_check::SenderCheck;
use crate::spool::{Spool, SpoolBudget, SpoolRoom};

/// Read of a text at a time, to check it.
const READ_BYTES: usize = 64 << 10;

/// Gives a whole text, and the room that it takes.
type WholeText = Box<dyn FnOnce() -> io::Result<(MessageSource, SpoolRoom)> + Send>;

/// Where texts are kept, and where messages go.
pub(crate) struct Intake {
    budget: SpoolBudget,
    mail: IncomingMail,
    workers: WorkerPool,
    look: Look,
    accepted: Counter,
    repeated: Counter,
}

/// What looks at messages of other servers before they are stored.
#[derive(Default)]
pub(crate) struct Look {
    pub(crate) check: Option<SenderCheck>,
    pub(crate) filters: Option<Filters>,
}

/// A message as filters have left it with the room that it takes, why it is kept back, if it is, and what is thought of its sender.
type LookedAt = ((MessageSource, SpoolRoom), (Option<String>, Option<SenderVerdict>));

/// A message of which the text is coming.
pub(crate) struct IncomingText {
    envelope: Envelope,
    spool: Spool,
    /// What stands in the spool before all else.
    return_path: Vec<u8>,
}

impl Intake {
    /// Registers `PROTOCOL.Messages` and `PROTOCOL.Messages.Repeated`.
    pub(crate) fn register(
        protocol: &str,
        budget: SpoolBudget,
        mail: IncomingMail,
        (workers, look): (WorkerPool, Look),
        registry: &Registry,
    ) -> Self {
        let counter = |name: &str| registry.counter(&format!("{protocol}.{name}"));
        Self {
            budget,
            mail,
            workers,
            look,
            accepted: counter("Messages"),
            repeated: counter("Messages.Repeated"),
        }
    }

    /// The verdict of a recipient, or that their mail database takes no more. Where nobody can look at the moment, it does.
    pub(crate) async fn with_room(
        &self,
        desk: &Desk,
        path: &ForwardPath,
        verdict: RecipientVerdict,
    ) -> RecipientVerdict {
        let keeper = desk.keeper(path).filter(|_| verdict == RecipientVerdict::Accepted);
        let Some(keeper) = keeper else { return verdict };
        let mail = self.mail.clone();
        let look = move || match keeper {
            MailKeeper::Person(person) => mail.has_room(&person),
            MailKeeper::MailIn(mail_in) => mail.has_room_in(&mail_in.database),
        };
        let has_room = self.workers.run(look).await.unwrap_or(true);
        if has_room { verdict } else { RecipientVerdict::Full }
    }

    /// A message begins, whose text counts for `account`, if there is one. The answer is the session's.
    pub(crate) async fn begin(
        &self,
        envelope: Envelope,
        account: Option<&Account>,
        incoming: &mut Option<IncomingText>,
    ) -> Answer {
        let spool = self.budget.begin(account);
        // RFC 5321 §4.4: the server that delivers puts the return path before all else.
        let line = format!("Return-Path: {}\r\n", envelope.sender).into_bytes();
        *incoming = Some(IncomingText { envelope, spool, return_path: line.clone() });
        match self.text(line, incoming).await {
            Answer::Accepted => Answer::Begun(format!("{:032x}", rand::random::<u128>())),
            refused => refused,
        }
    }

    /// More of the text. Where it cannot be kept, nothing of it is left.
    pub(crate) async fn text(&self, piece: Vec<u8>, slot: &mut Option<IncomingText>) -> Answer {
        let Some(mut incoming) = slot.take() else { return Answer::Trouble };
        if incoming.spool.keep(&piece) {
            *slot = Some(incoming);
            return Answer::Accepted;
        }
        match self.workers.run(move || incoming.spool.write(&piece).map(|()| incoming)).await {
            Ok(Ok(incoming)) => {
                *slot = Some(incoming);
                Answer::Accepted
            }
            Ok(Err(error)) => Answer::Refused(unkept(&error)),
            Err(error) => {
                tracing::warn!(%error, "a message was not taken");
                Answer::Trouble
            }
        }
    }

    /// The message is safe when this answers, or none of it is kept. `submitter` is the short name of the person who hands it in.
    pub(crate) async fn finish(
        &self,
        incoming: IncomingText,
        desk: &Desk,
        (summary, submitter): (TextSummary, Option<String>),
    ) -> Result<Deposited, Refusal> {
        let mail = self.mail.clone();
        let store = move |whole: &WholeMessage| mail.accept(&whole.id, &whole.message);
        match self.stored(incoming, desk, (summary, submitter), store).await? {
            Some(deposited) => {
                self.count(deposited);
                Ok(deposited)
            }
            None => Ok(Deposited::Now),
        }
    }

    /// The same for each recipient alone, in their order.
    pub(crate) async fn finish_each(
        &self,
        incoming: IncomingText,
        desk: &Desk,
        summary: TextSummary,
    ) -> Vec<Result<Deposited, Refusal>> {
        let (count, mail) = (incoming.envelope.recipients.len(), self.mail.clone());
        let store =
            move |whole: &WholeMessage| Ok(mail.accept_each(&whole.id, &whole.message, &whole.recipients));
        match self.stored(incoming, desk, (summary, None), store).await {
            Ok(Some(each)) => each.into_iter().map(|stored| self.answer(stored)).collect(),
            Ok(None) => vec![Ok(Deposited::Now); count],
            Err(refusal) => vec![Err(refusal); count],
        }
    }

    /// What `store` gives for the whole message, on a thread that may wait for the disk; `None` if a filter has thrown it away.
    async fn stored<T: Send + 'static>(
        &self,
        incoming: IncomingText,
        desk: &Desk,
        (summary, submitter): (TextSummary, Option<String>),
        store: impl FnOnce(&WholeMessage) -> Result<T, DepositError> + Send + 'static,
    ) -> Result<Option<T>, Refusal> {
        let IncomingText { envelope, spool, return_path } = incoming;
        let check = self.look.check.as_ref().and_then(|check| Some((check, check.examined(&envelope)?)));
        let (text, (hold, sender)): (WholeText, _) = if check.is_some() || self.look.filters.is_some() {
            let by = submitter.as_deref();
            match self.looked_at(check, (&envelope, desk, by), (spool, return_path)).await? {
                Some((looked_at, sender)) => (Box::new(move || Ok(looked_at)), sender),
                None => return Ok(None),
            }
        } else {
            (Box::new(move || spool.finish()), (None, None))
        };
        let recipients = desk.recipients(&envelope);
        let work = move || {
            let (source, _room) = text().map_err(DepositError::Source)?;
            let message = IncomingMessage {
                source,
                recipients: recipients.concat(),
                return_path: envelope.sender.mailbox().map(ToString::to_string).unwrap_or_default(),
                envelope: EnvelopeItems { hold, sender, ..envelope_items(&envelope, &summary, submitter) },
            };
            store(&WholeMessage { id: memo_id(&summary.repeat_ids), message, recipients })
        };
        match self.workers.run(work).await {
            Ok(stored) => stored.map(Some).map_err(|error| refusal_of(&error)),
            Err(error) => {
                tracing::warn!(%error, "a message was not taken");
                Err(Refusal::trouble())
            }
        }
    }

    fn answer(&self, stored: Result<Deposited, DepositError>) -> Result<Deposited, Refusal> {
        stored.inspect(|deposited| self.count(*deposited)).map_err(|error| refusal_of(&error))
    }

    /// The text of a message of another server with what was found out about its sender, as filters have left it; `None` if one has
    /// thrown it away.
    async fn looked_at(
        &self,
        check: Option<(&SenderCheck, IpAddr)>,
        (envelope, desk, submitter): (&Envelope, &Desk, Option<&str>),
        (spool, return_path): (Spool, Vec<u8>),
    ) -> Result<Option<LookedAt>, Refusal> {
        let (source, mut room, message) = self.read(spool, return_path.len() as u64).await?;
        let head_end = return_path.len() as u64 + message.head.len() as u64;
        let mut sender = None;
        let head = match check {
            Some((check, address)) => {
                let checked = check.check((&message, address), envelope).await?;
                if !checked.sender.is_vouched_for {
                    desk.check_unproven(envelope, checked.is_undecided)?;
                }
                sender = Some(checked.sender);
                checked.head
            }
            None => message.head,
        };
        let Some(filters) = &self.look.filters else {
            let source = source.with_beginning([return_path, head].concat().into(), head_end);
            return Ok(Some(((source, room), (None, sender))));
        };
        let mut filtered = FilteredMessage { head, source, head_end, body: None };
        let found = match filters.pass(&mut filtered, (envelope, submitter)).await? {
            Filtered::Discarded => return Ok(None),
            Filtered::GoesOn { aside: Some(reason) } => filters.put_aside(reason, sender),
            Filtered::GoesOn { aside: None } => (None, sender),
        };
        let FilteredMessage { head, source, body, .. } = filtered;
        let (beginning, replaced_bytes) = match body {
            Some(body) => ([&return_path[..], &head, b"\r\n", &body].concat(), source.len()),
            None => ([return_path, head].concat(), head_end),
        };
        room.hold_memory(beginning.len())
            .then_some(())
            .ok_or_else(|| unkept(&ErrorKind::QuotaExceeded.into()))?;
        Ok(Some(((source.with_beginning(beginning.into(), replaced_bytes), room), found)))
    }

    /// Reads a whole text behind its first bytes, which are this server's.
    async fn read(
        &self,
        spool: Spool,
        first_bytes: u64,
    ) -> Result<(MessageSource, SpoolRoom, ReadMessage), Refusal> {
        let read = move || -> io::Result<_> {
            let (source, mut room) = spool.finish()?;
            let mut reader = MessageReader::default();
            let mut position = first_bytes;
            loop {
                let piece = source.piece(position, READ_BYTES)?;
                if piece.is_empty() {
                    break;
                }
                reader.update(&piece);
                position += piece.len() as u64;
            }
            let message = reader.finish();
            // The head is in memory, as it came and as it will be, for as long as DNS takes.
            room.hold_memory(message.head.len() * 2).then_some(()).ok_or(ErrorKind::QuotaExceeded)?;
            Ok((source, room, message))
        };
        match self.workers.run(read).await {
            Ok(read) => read.map_err(|error| unkept(&error)),
            Err(error) => {
                tracing::warn!(%error, "a message was not taken");
                Err(Refusal::trouble())
            }
        }
    }

    fn count(&self, deposited: Deposited) {
        match deposited {
            Deposited::Now => self.accepted.add(1),
            Deposited::Before => self.repeated.add(1),
        }
    }
}

/// Why a text is not kept.
fn unkept(error: &io::Error) -> Refusal {
    if error.kind() == ErrorKind::QuotaExceeded {
        let text = "There is no room for further messages at this moment. Try again later";
        return Refusal::new(452, 3, 1, text);
    }
    tracing::warn!(%error, "a message could not be kept in a temporary file");
    Refusal::trouble()
}

/// A message that is to be stored.
struct WholeMessage {
    id: String,
    message: IncomingMessage,
    /// Whom the message is for, for each recipient of the envelope.
    recipients: Vec<Vec<String>>,
}

/// What the client hears of a message that was not stored.
fn refusal_of(error: &DepositError) -> Refusal {
    match error {
        DepositError::Memo(error) => Refusal::new(554, 6, 0, &format!("The message is not one: {error}")),
        DepositError::Rejected(text) => Refusal::new(550, 7, 1, text),
        DepositError::Database(DatabaseError::TooLarge { .. }) => {
            Refusal::new(552, 3, 4, "The message is larger than the mailbox takes")
        }
        DepositError::Database(DatabaseError::Forbidden { .. } | DatabaseError::Invalid { .. }) => {
            Refusal::new(550, 2, 1, "The mailbox does not take this message")
        }
        error => {
            tracing::warn!(%error, "a message could not be stored");
            Refusal::trouble()
        }
    }
}

/// What the memo keeps of an envelope, for those who pass the message on.
fn envelope_items(envelope: &Envelope, summary: &TextSummary, submitter: Option<String>) -> EnvelopeItems {
    let parameters = &envelope.parameters;
    let mut items = EnvelopeItems {
        repeat_id: summary.message_repeat_id.map(|id| id.to_string()),
        submitter,
        envelope_id: parameters.envelope_id.clone(),
        returns_all: parameters.return_content.map(|content| content == Return::Full),
        require_tls: parameters.require_tls,
        release_ms: envelope.release_ms,
        ..EnvelopeItems::default()
    };
    for recipient in &envelope.recipients {
        let said = &recipient.parameters;
        let notify = said.notify.map(|notify| notify.to_string());
        let original = said
            .original
            .as_ref()
            .map(|original| format!("{};{}", original.address_type(), original.address()));
        if notify.is_some() || original.is_some() {
            items.recipients.insert(address_of(&recipient.path), RecipientItems { notify, original });
        }
    }
    items
}

/// The same for the same message to the same recipients, in whatever order; without ids of its own a message is new.
fn memo_id(repeat_ids: &[RepeatId]) -> String {
    if repeat_ids.is_empty() {
        return format!("{:032x}", rand::random::<u128>());
    }
    let mut ids: Vec<RepeatId> = repeat_ids.to_vec();
    ids.sort_unstable();
    let mut hasher = blake3::Hasher::new_derive_key("scrinium 2026 id of a message that came by SMTP");
    for id in ids {
        hasher.update(id.bytes());
    }
    hasher.finalize().to_hex().chars().take(32).collect()
}
