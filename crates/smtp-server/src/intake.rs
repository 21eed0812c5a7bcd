//! A message on its way in: its text is kept while it comes, and when it is whole it goes into a mail.box.

use std::io::ErrorKind;

use scrinium_accounting::Account;
use scrinium_mail::{DepositError, Deposited, IncomingMessage, Mailboxes, RecipientWishes, SendWishes};
use scrinium_smtp::{Answer, Envelope, Refusal, RepeatId, TextSummary};
use scrinium_smtp_wire::{Body, OriginalRecipient, Return};
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

    /// The message is safe when this answers, or none of it is kept.
    pub(crate) async fn finish(
        &self,
        incoming: IncomingText,
        desk: &Desk,
        summary: TextSummary,
    ) -> Result<Deposited, Refusal> {
        let IncomingText { envelope, spool } = incoming;
        let (recipients, mailboxes) = (desk.recipients(&envelope), self.mailboxes.clone());
        let deposit = move || {
            let (source, _room) = spool.finish().map_err(DepositError::Source)?;
            let message = IncomingMessage {
                source,
                recipients,
                return_path: envelope.sender.mailbox().map(ToString::to_string).unwrap_or_default(),
                wishes: wishes_of(&envelope, &summary),
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

/// What an envelope asks for. What matters only to a server that a message goes on to is kept where a person hands it in.
fn wishes_of(envelope: &Envelope, summary: &TextSummary) -> SendWishes {
    let parameters = &envelope.parameters;
    let goes_on = envelope.person.is_some();
    let is_eight_bit = summary.has_eight_bit || parameters.body == Some(Body::EightBitMime);
    let recipients = envelope.recipients.iter().filter_map(|recipient| {
        let wished = &recipient.parameters;
        let wishes = RecipientWishes {
            notify: wished.notify.as_ref().map(ToString::to_string),
            original: wished.original.as_ref().map(original),
        };
        (wishes != RecipientWishes::default()).then(|| (address_of(&recipient.path), wishes))
    });
    SendWishes {
        submitter: envelope.person.clone(),
        envelope_id: parameters.envelope_id.clone(),
        return_content: parameters.return_content.map(|content| return_word(content).to_owned()),
        utf8: goes_on && parameters.utf8,
        eight_bit: goes_on && is_eight_bit,
        require_tls: parameters.require_tls,
        tls_not_required: goes_on && summary.head.tls_not_required,
        release_ms: envelope.release_ms,
        recipients: recipients.collect(),
    }
}

/// RFC 3461 §4.3.
const fn return_word(content: Return) -> &'static str {
    match content {
        Return::Full => "FULL",
        Return::Headers => "HDRS",
    }
}

fn original(original: &OriginalRecipient) -> String {
    format!("{};{}", original.address_type(), original.address())
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
