//! Messages for people of this server: who they are, and the mail files that messages go into.

use std::net::IpAddr;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use scrinium_accounting::{Account, Accounts, Holder};
use scrinium_credentials::Protection;
use scrinium_mail::{Deposited, IncomingMail, Resolver, Writer};
use scrinium_port::Link;
use scrinium_smtp::{
    Answer, Delivery, RecipientQuestion, RecipientVerdict, Refusal, Request, Service, TextSummary,
};
use scrinium_statistics::{Counter, Registry};
use scrinium_worker::WorkerPool;

use crate::desk::Desk;
use crate::filters::{FilterOptions, Filters};
use crate::gate::{Gate, GateOptions, Passage};
use crate::guest::{Guest, Surroundings};
use crate::intake::{IncomingText, Intake, Look};
use crate::sender_check::{SenderCheck, SenderCheckOptions};
use crate::spool::SpoolBudget;

/// What a reception works with.
pub struct ReceptionOptions {
    /// What the port is for: [`Service::Relay`] or [`Service::Lmtp`].
    pub service: Service,
    /// Who reads what is for the postmaster, where nobody in the directory has that name.
    pub postmasters: Vec<String>,
    /// Memory for texts that are coming in.
    pub budget: SpoolBudget,
    /// What networks hold. What a server in front brings by LMTP counts for nobody.
    pub accounts: Accounts,
    /// How messages of other servers are checked; `None`: they are not.
    pub check: Option<SenderCheckOptions>,
    /// Which programs look at messages of other servers, if any do.
    pub filters: Option<FilterOptions>,
    /// What strangers have to pass before a text, if anything.
    pub gate: Option<GateOptions>,
}

/// Takes messages for people of this server. Clones share it.
#[derive(Clone)]
pub struct Reception {
    shared: Arc<Shared>,
}

struct Shared {
    service: Service,
    accounts: Accounts,
    desk: Desk,
    intake: Intake,
    gate: Option<Gate>,
    refused: Counter,
}

impl Reception {
    /// Registers `SMTP.Messages`, `SMTP.Messages.Repeated` and `SMTP.Recipients.Refused`, or those of `LMTP`.
    #[must_use]
    pub fn new(
        options: ReceptionOptions,
        resolver: Resolver,
        mail: IncomingMail,
        workers: WorkerPool,
        registry: &Registry,
    ) -> Self {
        let ReceptionOptions { service, postmasters, budget, accounts, check, filters, gate } = options;
        let look = Look {
            check: check.map(|check| SenderCheck::register(check, registry)),
            filters: filters.map(|filters| Filters::register("SMTP", filters, workers.clone(), registry)),
        };
        let gate = gate.map(|gate| Gate::register(gate, workers.clone(), registry));
        let protocol = if service == Service::Lmtp { "LMTP" } else { "SMTP" };
        let shared = Shared {
            service,
            accounts,
            desk: Desk { resolver, postmasters },
            intake: Intake::register(protocol, budget, mail, (workers, look), registry),
            gate,
            refused: registry.counter(&format!("{protocol}.Recipients.Refused")),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Surroundings for Reception {
    fn receive(&self, link: &Arc<Link>) -> Box<dyn Guest> {
        let accounts = &self.shared.accounts;
        let network = || accounts.account(&Holder::Network(accounts.network(link.peer.address)));
        let account = (self.shared.service != Service::Lmtp).then(network);
        Box::new(Sender {
            shared: Arc::clone(&self.shared),
            account,
            address: link.peer.address,
            passage: Passage::default(),
            incoming: None,
        })
    }
}

/// One who brings messages.
struct Sender {
    shared: Arc<Shared>,
    /// Whose room its messages take.
    account: Option<Account>,
    address: IpAddr,
    passage: Passage,
    incoming: Option<IncomingText>,
}

impl Guest for Sender {
    fn answer(&mut self, request: Request, _protection: Protection) -> BoxFuture<'_, Answer> {
        async move {
            match request {
                Request::Greet(_) | Request::Sender(_) => Answer::Accepted,
                Request::Recipient(question) => Answer::Recipient(self.verdict(&question).await),
                Request::Begin(envelope) => {
                    self.shared.intake.begin(*envelope, self.account.as_ref(), &mut self.incoming).await
                }
                Request::Text(piece) => self.shared.intake.text(piece, &mut self.incoming).await,
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
    /// Whether a recipient is taken, from this client and now.
    async fn verdict(&mut self, question: &RecipientQuestion) -> RecipientVerdict {
        let verdict = self.shared.verdict(question).await;
        let gate = self.shared.gate.as_ref().filter(|_| verdict == RecipientVerdict::Accepted);
        let Some(gate) = gate else { return verdict };
        match gate.refusal(self.address, &mut self.passage, question).await {
            Some(refusal) => {
                self.shared.refused.add(1);
                RecipientVerdict::Refused(refusal)
            }
            None => verdict,
        }
    }

    /// The message is safe for all its recipients when this answers, or none of it is kept.
    async fn finish(&mut self, summary: TextSummary) -> Answer {
        let Some(incoming) = self.incoming.take() else { return Answer::Trouble };
        let Shared { intake, desk, service, .. } = &*self.shared;
        match service {
            Service::Lmtp => {
                let each = intake.finish_each(incoming, desk, summary).await;
                Answer::FinishedEach(each.into_iter().map(delivery).collect())
            }
            Service::Relay | Service::Submission => {
                Answer::Finished(delivery(intake.finish(incoming, desk, (summary, None)).await))
            }
        }
    }
}

fn delivery(stored: Result<Deposited, Refusal>) -> Delivery {
    match stored {
        Ok(_) => Delivery::Accepted,
        Err(refusal) => Delivery::Refused(refusal),
    }
}

impl Shared {
    async fn verdict(&self, question: &RecipientQuestion) -> RecipientVerdict {
        // Nobody logs in here: the sender is whom they say.
        let writer = Writer::Stranger(question.sender.mailbox().map(ToString::to_string));
        let path = &question.recipient.path;
        let verdict = self.desk.verdict(path, &writer, RecipientVerdict::NeedsLogIn);
        let verdict = self.intake.with_room(&self.desk, path, verdict).await;
        if !matches!(verdict, RecipientVerdict::Accepted) {
            self.refused.add(1);
        }
        verdict
    }
}
