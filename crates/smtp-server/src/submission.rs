//! Messages that people hand in (RFC 6409): who logs in, as whom they write, and how much.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use scrinium_accounting::{Account, Accounts};
use scrinium_credentials::sasl::Claim;
use scrinium_credentials::{Answer as Denial, Protection, Protocol};
use scrinium_directory::{Approach, Login, LoginError, Logins, Person, TokenVerifier};
use scrinium_mail::{Deposited, IncomingMail, Resolver, SendRight, Writer, authors_of};
use scrinium_port::Link;
use scrinium_smtp::{
    Answer, Delivery, Envelope, HeadFields, LoginVerdict, RecipientQuestion, RecipientVerdict, Refusal,
    Request, SenderField, SenderQuestion, TextSummary,
};
use scrinium_smtp_wire::Mailbox;
use scrinium_statistics::{Counter, Registry};
use scrinium_worker::WorkerPool;

use crate::allowance::{Allowances, Reservation};
use crate::desk::Desk;
use crate::filters::{FilterOptions, Filters};
use crate::guest::{Guest, Surroundings};
use crate::intake::{IncomingText, Intake, Look};
use crate::send_rights::SendRights;
use crate::spool::SpoolBudget;

/// What ports for submission work with.
pub struct SubmissionOptions {
    /// Who reads what is for the postmaster, where nobody in the directory has that name.
    pub postmasters: Vec<String>,
    /// Memory for texts that are coming in.
    pub budget: SpoolBudget,
    /// What networks and people hold.
    pub accounts: Accounts,
    /// Lets people in.
    pub logins: Arc<Logins>,
    /// Knows the providers whose tokens let people in, if there are any.
    pub tokens: Option<Arc<dyn TokenVerifier>>,
    /// Who may send as whom.
    pub rights: Arc<dyn SendRights>,
    /// How much people may send.
    pub allowances: Allowances,
    /// Whether this server sends to other domains.
    pub reaches_others: bool,
    /// What looks at messages, if anything does.
    pub filters: Option<FilterOptions>,
}

/// Takes messages of people who have logged in. Clones share it.
#[derive(Clone)]
pub struct Submission {
    shared: Arc<Shared>,
}

struct Shared {
    options: SubmissionOptions,
    desk: Desk,
    intake: Intake,
    refused: Counter,
    forbidden: Counter,
    overspent: Counter,
}

impl Submission {
    /// Registers `Submission.Messages`, `Submission.Messages.Repeated`, `Submission.Recipients.Refused`,
    /// `Submission.Senders.Refused` and `Submission.Limited`.
    #[must_use]
    pub fn new(
        options: SubmissionOptions,
        resolver: Resolver,
        mail: IncomingMail,
        workers: WorkerPool,
        registry: &Registry,
    ) -> Self {
        let counter = |name: &str| registry.counter(&format!("Submission.{name}"));
        let filters = options.filters.clone();
        let filters =
            filters.map(|filters| Filters::register("Submission", filters, workers.clone(), registry));
        let look = Look { check: None, filters };
        let shared = Shared {
            desk: Desk { resolver, postmasters: options.postmasters.clone() },
            intake: Intake::register("Submission", options.budget.clone(), mail, (workers, look), registry),
            refused: counter("Recipients.Refused"),
            forbidden: counter("Senders.Refused"),
            overspent: counter("Limited"),
            options,
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Surroundings for Submission {
    fn receive(&self, link: &Arc<Link>) -> Box<dyn Guest> {
        Box::new(Submitter {
            shared: Arc::clone(&self.shared),
            link: Arc::clone(link),
            admitted: None,
            incoming: None,
            reservation: None,
        })
    }
}

/// One who hands messages in.
struct Submitter {
    shared: Arc<Shared>,
    link: Arc<Link>,
    admitted: Option<Admitted>,
    incoming: Option<IncomingText>,
    reservation: Option<Reservation>,
}

/// Somebody who has logged in.
struct Admitted {
    login: Login,
    /// Whose room their messages take.
    account: Account,
}

impl Guest for Submitter {
    fn answer(&mut self, request: Request, protection: Protection) -> BoxFuture<'_, Answer> {
        async move {
            match request {
                Request::Greet(_) => Answer::Accepted,
                Request::Account(name) => {
                    let logins = &self.shared.options.logins;
                    let name = self.shared.desk.resolver.login_name(&name);
                    Answer::Account(logins.scram_account(name, Protocol::Submission))
                }
                Request::LogIn(claim) => self.log_in(claim, protection).await,
                Request::Sender(question) => self.sender(&question),
                Request::Recipient(question) => Answer::Recipient(self.recipient(&question).await),
                Request::Begin(envelope) => self.begin(*envelope).await,
                Request::Head(fields) => self.head(&fields),
                Request::Text(piece) => self.shared.intake.text(piece, &mut self.incoming).await,
                Request::Finish(summary) => self.finish(*summary).await,
                Request::Abandon => {
                    (self.incoming, self.reservation) = (None, None);
                    Answer::Accepted
                }
                // The port itself encrypts.
                Request::StartTls => Answer::Trouble,
            }
        }
        .boxed()
    }
}

impl Submitter {
    async fn log_in(&mut self, mut claim: Claim, protection: Protection) -> Answer {
        let options = &self.shared.options;
        let known = |name: String| self.shared.desk.resolver.login_name(&name).to_owned();
        (claim.name, claim.act_as) = (claim.name.map(known), claim.act_as.map(known));
        let approach =
            Approach { protocol: Protocol::Submission, protection, address: self.link.peer.address };
        let tokens = options.tokens.as_deref();
        let login = match options.logins.prove_claim(&claim, tokens, &approach).await {
            Ok(login) => login,
            Err(error) => return Answer::Login(verdict_of(&error)),
        };
        let id = login.person.id.clone();
        // From now on the connection is the person's.
        let account = self.link.account(&login.person.holder(), &options.accounts);
        self.admitted = Some(Admitted { login, account });
        Answer::Login(LoginVerdict::Admitted(id))
    }

    /// Who has logged in, as they are now.
    fn person(&self) -> Result<Arc<Person>, Refusal> {
        let logins = &self.shared.options.logins;
        let login = self.admitted.as_ref().map(|admitted| &admitted.login);
        let person = login.and_then(|login| logins.still_in(login, Protocol::Submission));
        person.ok_or_else(|| {
            let text = "The account was changed after you logged in; connect once more and log in";
            Refusal::new(530, 7, 0, text)
        })
    }

    fn sender(&self, question: &SenderQuestion) -> Answer {
        let person = match self.person() {
            Ok(person) => person,
            Err(refusal) => return Answer::Refused(refusal),
        };
        // Nobody is notified of what becomes of a notice (RFC 8098 §3), so a program sends it from the null sender.
        if let Some(sender) = question.sender.mailbox()
            && self.shared.right(&person, &sender.to_string()) == SendRight::None
        {
            self.shared.forbidden.add(1);
            let text = match self.shared.own_address(&person) {
                Some(own) if own.is_ascii() => {
                    format!("This address is not one that you may send from; yours is {own}")
                }
                _ => "This address is not one that you may send from".to_owned(),
            };
            return Answer::Refused(Refusal::new(553, 7, 1, &text));
        }
        match self.shared.options.allowances.check(&person.id, 1) {
            Ok(()) => Answer::Accepted,
            Err(over) => {
                self.shared.overspent.add(1);
                Answer::Refused(Refusal::new(451, 7, 1, &over.to_string()))
            }
        }
    }

    async fn recipient(&self, question: &RecipientQuestion) -> RecipientVerdict {
        let shared = &self.shared;
        let Some(admitted) = &self.admitted else { return RecipientVerdict::NeedsLogIn };
        let elsewhere = if shared.options.reaches_others {
            RecipientVerdict::Accepted
        } else {
            let text = "This server does not send to other domains; ask its administrator";
            RecipientVerdict::Refused(Refusal::new(550, 7, 1, text))
        };
        let writer = Writer::Person(Arc::clone(&admitted.login.person));
        let path = &question.recipient.path;
        let verdict = shared.desk.verdict(path, &writer, elsewhere);
        let verdict = shared.intake.with_room(&shared.desk, path, verdict).await;
        if !matches!(verdict, RecipientVerdict::Accepted) {
            shared.refused.add(1);
            return verdict;
        }
        let recipients = question.taken.saturating_add(1);
        match shared.options.allowances.check(&admitted.login.person.id, recipients) {
            Ok(()) => verdict,
            Err(over) => {
                shared.overspent.add(1);
                RecipientVerdict::Refused(Refusal::new(450, 7, 1, &over.to_string()))
            }
        }
    }

    async fn begin(&mut self, envelope: Envelope) -> Answer {
        let person = match self.person() {
            Ok(person) => person,
            Err(refusal) => return Answer::Refused(refusal),
        };
        // Other connections of the same person may have sent since this one was asked.
        match self.shared.options.allowances.reserve(&person.id, envelope.recipients.len()) {
            Ok(reservation) => self.reservation = Some(reservation),
            Err(over) => {
                self.shared.overspent.add(1);
                return Answer::Refused(Refusal::new(451, 7, 1, &over.to_string()));
            }
        }
        let account = self.admitted.as_ref().map(|admitted| &admitted.account);
        self.shared.intake.begin(envelope, account, &mut self.incoming).await
    }

    /// RFC 6409 §8.1, RFC 5322 §3.6.2: the author is somebody as whom the person may write, and where it is not the person alone,
    /// the field `Sender` says who it was.
    fn head(&self, fields: &HeadFields) -> Answer {
        let person = match self.person() {
            Ok(person) => person,
            Err(refusal) => return Answer::Refused(refusal),
        };
        match self.shared.sender_field(&person, fields) {
            Ok(sender) => Answer::Head(sender),
            Err(refusal) => {
                self.shared.forbidden.add(1);
                Answer::Refused(refusal)
            }
        }
    }

    async fn finish(&mut self, summary: TextSummary) -> Answer {
        let reservation = self.reservation.take();
        let Some(incoming) = self.incoming.take() else { return Answer::Trouble };
        let submitter = self.admitted.as_ref().map(|admitted| admitted.login.person.short_name.clone());
        match self.shared.intake.finish(incoming, &self.shared.desk, (summary, submitter)).await {
            Ok(deposited) => {
                if let Some(reservation) = reservation.filter(|_| deposited == Deposited::Now) {
                    reservation.keep();
                }
                Answer::Finished(Delivery::Accepted)
            }
            Err(refusal) => Answer::Finished(Delivery::Refused(refusal)),
        }
    }
}

impl Shared {
    fn right(&self, person: &Person, address: &str) -> SendRight {
        self.options.rights.right(person, address)
    }

    fn own_address(&self, person: &Person) -> Option<Mailbox> {
        self.desk.resolver.mailbox_of(person)
    }

    fn sender_field(&self, person: &Person, fields: &HeadFields) -> Result<SenderField, Refusal> {
        let from = fields.from.as_deref().unwrap_or_default();
        let authors = authors_of(from).ok_or_else(|| {
            let text =
                "The From field names nobody whom every program reads alike; write it as: Name <address>";
            Refusal::new(550, 6, 0, text)
        })?;
        let rights = authors.iter().map(|author| (author, self.right(person, author)));
        let mut is_for_another = authors.len() > 1;
        for (author, right) in rights {
            match right {
                SendRight::Own | SendRight::As => {}
                SendRight::OnBehalf => is_for_another = true,
                SendRight::None => {
                    let shown = if author.is_ascii() { author } else { "another address" };
                    let text = format!("The From field names {shown}, as which you may not write");
                    return Err(Refusal::new(550, 7, 1, &text));
                }
            }
        }
        let is_themselves = |sender: &str| {
            let found = authors_of(sender).unwrap_or_default();
            let [only] = found.as_slice() else { return false };
            matches!(self.right(person, only), SendRight::Own | SendRight::As)
        };
        let is_needed = match fields.sender.as_deref() {
            Some(sender) => !is_themselves(sender),
            None => is_for_another,
        };
        if !is_needed {
            return Ok(SenderField::Keep);
        }
        let own = self.own_address(person).ok_or_else(|| {
            let text = "You have no address of your own for the Sender field; ask the administrator";
            Refusal::new(550, 7, 1, text)
        })?;
        Ok(SenderField::Set(own))
    }
}

/// What the client hears of a log-in that let nobody in (RFC 4954 §6, RFC 5248 §2.4).
fn verdict_of(error: &LoginError) -> LoginVerdict {
    let refused = |code, detail, text: &str| LoginVerdict::Refused(Refusal::new(code, 7, detail, text));
    match error {
        // No second step can be asked for here.
        LoginError::Refused | LoginError::SecondStep(_) => LoginVerdict::Wrong,
        LoginError::Locked { .. } => LoginVerdict::TooMany,
        LoginError::Busy { .. } => {
            refused(454, 0, "Too many log-ins are being checked; try again in a moment")
        }
        LoginError::Denied(denial, protocol) => {
            let (code, detail) = match denial {
                Denial::Encrypt => (538, 11),
                Denial::Disabled | Denial::Ended => (525, 13),
                Denial::NotOffered => (534, 9),
                Denial::Later(_) => return LoginVerdict::TooMany,
                Denial::WrongCredentials => return LoginVerdict::Wrong,
                Denial::NotByThis | Denial::NotAsOther | Denial::BeginAgain => (535, 1),
            };
            refused(code, detail, denial.text(*protocol))
        }
    }
}
