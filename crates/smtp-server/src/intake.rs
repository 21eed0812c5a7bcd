//! A message on its way in: its text is kept while it comes, and when it is whole it goes into a mail.box.

use std::io::ErrorKind;

use scrinium_accounting::Account;
use scrinium_mail::{DepositError, Deposited, EnvelopeItems, IncomingMessage, Mailboxes, RecipientItems};
use scrinium_smtp::{Answer, Envelope, Refusal, RepeatId, TextSummary};
use scrinium_smtp_wire::Return;
use scrinium_statistics::{Counter, Registry};
use scrinium_worker::WorkerPool;

use crate::desk::{Desk, address_of};
use crate::spool::{Spool, SpoolBudget};

/// Where texts are kept, and where messages go.
pub(crate) struct Intake {
    budget: SpoolBudget,
    mailboxes: Mailboxes,
    workers: WorkerPool,
    accepted: Counter,
    repeated: Counter,
}

/// A message of which the text is coming.
pub(crate) struct IncomingText {
    envelope: Envelope,
    spool: Spool,
}

impl IncomingText {
    /// How many recipients it has.
    pub(crate) fn recipients(&self) -> usize {
        self.envelope.recipients.len()
    }
}

impl Intake {
    /// Registers `PROTOCOL.Messages` and `PROTOCOL.Messages.Repeated`.
    pub(crate) fn register(
        protocol: &str,
        budget: SpoolBudget,
        mailboxes: Mailboxes,
        workers: WorkerPool,
        registry: &Registry,
    ) -> Self {
        let counter = |name: &str| registry.counter(&format!("{protocol}.{name}"));
        Self {
            budget,
            mailboxes,
            workers,
            accepted: counter("Messages"),
            repeated: counter("Messages.Repeated"),
        }
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
        let line = format!("Return-Path: {}\r\n", envelope.sender);
        *incoming = Some(IncomingText { envelope, spool });
        match self.text(line.into_bytes(), incoming).await {
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
            Ok(Err(error)) if error.kind() == ErrorKind::QuotaExceeded => Answer::Refused(Refusal::new(
                452,
                3,
                1,
                "There is no room for further messages at this moment. Try again later",
            )),
            Ok(Err(error)) => {
                tracing::warn!(%error, "a message could not be kept in a temporary file");
                Answer::Trouble
            }
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
        let IncomingText { envelope, spool } = incoming;
        let (recipients, mailboxes) = (desk.recipients(&envelope), self.mailboxes.clone());
        let deposit = move || {
            let (source, _room) = spool.finish().map_err(DepositError::Source)?;
            let message = IncomingMessage {
                source,
                recipients,
                return_path: envelope.sender.mailbox().map(ToString::to_string).unwrap_or_default(),
                envelope: envelope_items(&envelope, &summary, submitter),
            };
            mailboxes.deposit_message(&memo_id(&summary.repeat_ids), &message)
        };
        let refusal = match self.workers.run(deposit).await {
            Ok(Ok(deposited)) => {
                self.count(deposited);
                return Ok(deposited);
            }
            Ok(Err(DepositError::Memo(error))) => {
                Refusal::new(554, 6, 0, &format!("The message is not one: {error}"))
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "a message could not be stored");
                Refusal::trouble()
            }
            Err(error) => {
                tracing::warn!(%error, "a message was not taken");
                Refusal::trouble()
            }
        };
        Err(refusal)
    }

    fn count(&self, deposited: Deposited) {
        match deposited {
            Deposited::Now => self.accepted.add(1),
            Deposited::Before => self.repeated.add(1),
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
