//! Messages for people of this server: who they are, and the mail.box that keeps each message until it is delivered.

use std::io::ErrorKind;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use scrinium_accounting::{Account, Accounts, Holder};
use scrinium_directory::Found;
use scrinium_mail::{DepositError, Deposited, IncomingMessage, Mailboxes, Resolver};
use scrinium_port::Link;
use scrinium_smtp::{
    Answer, Delivery, Envelope, RecipientQuestion, RecipientVerdict, Refusal, RepeatId, Request, Service,
    TextSummary,
};
use scrinium_smtp_wire::{Domain, ForwardPath};
use scrinium_statistics::{Counter, Registry};
use scrinium_worker::WorkerPool;

use crate::guest::{Guest, Surroundings};
use crate::spool::{Spool, SpoolBudget};

/// The mailbox that each domain has (RFC 5321 §4.5.1).
const POSTMASTER: &str = "postmaster";

/// What a reception works with.
pub struct ReceptionOptions {
    /// What the port is for.
    pub service: Service,
    /// Who reads what is for the postmaster, where nobody in the directory has that name.
    pub postmasters: Vec<String>,
    /// Memory for texts that are coming in.
    pub budget: SpoolBudget,
    /// What networks hold. What a server in front brings by LMTP counts for nobody.
    pub accounts: Accounts,
}

/// Takes messages for people of this server. Clones share it.
#[derive(Clone)]
pub struct Reception {
    desk: Arc<Desk>,
}

struct Desk {
    options: ReceptionOptions,
    resolver: Resolver,
    mailboxes: Mailboxes,
    workers: WorkerPool,
    accepted: Counter,
    repeated: Counter,
    refused: Counter,
}

impl Reception {
    /// Registers `SMTP.Messages`, `SMTP.Messages.Repeated` and `SMTP.Recipients.Refused`, or those of `LMTP`.
    #[must_use]
    pub fn new(
        options: ReceptionOptions,
        resolver: Resolver,
        mailboxes: Mailboxes,
        workers: WorkerPool,
        registry: &Registry,
    ) -> Self {
        let protocol = if options.service == Service::Lmtp { "LMTP" } else { "SMTP" };
        let counter = |name: &str| registry.counter(&format!("{protocol}.{name}"));
        let desk = Desk {
            options,
            resolver,
            mailboxes,
            workers,
            accepted: counter("Messages"),
            repeated: counter("Messages.Repeated"),
            refused: counter("Recipients.Refused"),
        };
        Self { desk: Arc::new(desk) }
    }
}

impl Surroundings for Reception {
    fn receive(&self, link: &Arc<Link>) -> Box<dyn Guest> {
        let accounts = &self.desk.options.accounts;
        let network = || accounts.account(&Holder::Network(accounts.network(link.peer.address)));
        let account = (self.desk.options.service != Service::Lmtp).then(network);
        Box::new(Sender { desk: Arc::clone(&self.desk), account, incoming: None })
    }
}

/// One who brings messages.
struct Sender {
    desk: Arc<Desk>,
    /// Whose room its messages take.
    account: Option<Account>,
    incoming: Option<IncomingText>,
}

/// A message of which the text is coming.
struct IncomingText {
    envelope: Envelope,
    spool: Spool,
}

impl Guest for Sender {
    fn answer(&mut self, request: Request) -> BoxFuture<'_, Answer> {
        async move {
            match request {
                Request::Greet(_) | Request::Sender(_) => Answer::Accepted,
                Request::Recipient(question) => Answer::Recipient(self.desk.verdict(&question)),
                Request::Begin(envelope) => self.begin(*envelope).await,
                Request::Text(piece) => self.text(piece).await,
                Request::Finish(summary) => self.finish(*summary).await,
                Request::Abandon => {
                    self.incoming = None;
                    Answer::Accepted
                }
                // Nobody logs in here, and the port itself encrypts.
                Request::StartTls | Request::Account(_) | Request::LogIn(_) | Request::Head(_) => {
                    Answer::Trouble
                }
            }
        }
        .boxed()
    }
}

impl Sender {
    async fn begin(&mut self, envelope: Envelope) -> Answer {
        let spool = self.desk.options.budget.begin(self.account.as_ref());
        // RFC 5321 §4.4: the server that delivers puts the return path before all else.
        let line = format!("Return-Path: {}\r\n", envelope.sender);
        self.incoming = Some(IncomingText { envelope, spool });
        match self.text(line.into_bytes()).await {
            Answer::Accepted => Answer::Begun(format!("{:032x}", rand::random::<u128>())),
            refused => refused,
        }
    }

    async fn text(&mut self, piece: Vec<u8>) -> Answer {
        let Some(mut incoming) = self.incoming.take() else { return Answer::Trouble };
        if incoming.spool.keep(&piece) {
            self.incoming = Some(incoming);
            return Answer::Accepted;
        }
        match self.desk.workers.run(move || incoming.spool.write(&piece).map(|()| incoming)).await {
            Ok(Ok(incoming)) => {
                self.incoming = Some(incoming);
                Answer::Accepted
            }
            Ok(Err(error)) if error.kind() == ErrorKind::QuotaExceeded => Answer::Refused(Refusal::new(
                452,
                3,
                1,
                "There is no room for further messages at this moment. Try again later",
            )),
            Ok(Err(error)) => trouble("a message could not be kept in a temporary file", &error),
            Err(error) => trouble("a message was not taken", &error),
        }
    }

    /// The message is safe when this answers, or none of it is kept.
    async fn finish(&mut self, summary: TextSummary) -> Answer {
        let Some(incoming) = self.incoming.take() else { return Answer::Trouble };
        let recipients = incoming.envelope.recipients.len();
        let desk = Arc::clone(&self.desk);
        let stored = match self.desk.workers.run(move || desk.deposit(incoming, &summary)).await {
            Ok(stored) => stored,
            Err(error) => return trouble("a message was not taken", &error),
        };
        let delivery = match stored {
            Ok(deposited) => {
                self.desk.count(deposited);
                Delivery::Accepted
            }
            Err(DepositError::Memo(error)) => {
                Delivery::Refused(Refusal::new(554, 6, 0, &format!("The message is not one: {error}")))
            }
            Err(error) => return trouble("a message could not be stored", &error),
        };
        match self.desk.options.service {
            Service::Lmtp => Answer::FinishedEach(vec![delivery; recipients]),
            Service::Relay | Service::Submission => Answer::Finished(delivery),
        }
    }
}

/// The client hears that something is wrong here, the log what.
fn trouble(what: &str, error: &dyn std::fmt::Display) -> Answer {
    tracing::warn!(%error, "{what}");
    Answer::Trouble
}

impl Desk {
    fn verdict(&self, question: &RecipientQuestion) -> RecipientVerdict {
        let verdict = self.found(&question.recipient.path);
        if !matches!(verdict, RecipientVerdict::Accepted) {
            self.refused.add(1);
        }
        verdict
    }

    fn found(&self, path: &ForwardPath) -> RecipientVerdict {
        let address = address_of(path);
        match self.resolver.find(&address) {
            Found::Person(_) | Found::Group(_) => RecipientVerdict::Accepted,
            Found::Several => RecipientVerdict::Refused(Refusal::new(
                550,
                1,
                4,
                "Several people have this address; ask the administrator of this server",
            )),
            Found::Nobody if self.is_postmaster(path) => RecipientVerdict::Accepted,
            Found::Nobody if self.is_here(path) => RecipientVerdict::Unknown,
            Found::Nobody => RecipientVerdict::NeedsLogIn,
        }
    }

    fn is_here(&self, path: &ForwardPath) -> bool {
        match path {
            ForwardPath::Postmaster => true,
            ForwardPath::Path(path) => match path.mailbox.domain() {
                Domain::Name(name) => self.resolver.is_local(name),
                Domain::Literal(_) => false,
            },
        }
    }

    fn is_postmaster(&self, path: &ForwardPath) -> bool {
        let is_named = match path {
            ForwardPath::Postmaster => true,
            ForwardPath::Path(path) => path.mailbox.local().eq_ignore_ascii_case(POSTMASTER),
        };
        is_named && self.is_here(path) && !self.options.postmasters.is_empty()
    }

    /// To whom the memo goes: addresses as they were given, and the postmasters by their names.
    fn recipients(&self, envelope: &Envelope) -> Vec<String> {
        let mut recipients = Vec::with_capacity(envelope.recipients.len());
        for recipient in &envelope.recipients {
            let address = address_of(&recipient.path);
            if self.is_postmaster(&recipient.path) && matches!(self.resolver.find(&address), Found::Nobody) {
                recipients.extend(self.options.postmasters.iter().cloned());
            } else {
                recipients.push(address);
            }
        }
        recipients
    }

    fn deposit(&self, incoming: IncomingText, summary: &TextSummary) -> Result<Deposited, DepositError> {
        let IncomingText { envelope, spool } = incoming;
        let (source, _room) = spool.finish().map_err(DepositError::Source)?;
        let message = IncomingMessage {
            source,
            recipients: self.recipients(&envelope),
            return_path: envelope.sender.mailbox().map(ToString::to_string).unwrap_or_default(),
        };
        self.mailboxes.deposit_message(&memo_id(&summary.repeat_ids), &message)
    }

    fn count(&self, deposited: Deposited) {
        match deposited {
            Deposited::Now => self.accepted.add(1),
            Deposited::Before => self.repeated.add(1),
        }
    }
}

/// As the directory knows it.
fn address_of(path: &ForwardPath) -> String {
    match path {
        ForwardPath::Postmaster => POSTMASTER.to_owned(),
        ForwardPath::Path(path) => path.mailbox.to_string(),
    }
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
