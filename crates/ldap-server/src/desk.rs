//! What sessions ask: log-ins, searches and compares, each in the account of the one who asks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use scrinium_accounting::{Account, Claim, Holder, Resource};
use scrinium_credentials::sasl::SaslMechanism;
use scrinium_credentials::{Answer as Denial, Proof, Protocol};
use scrinium_database::{DatabaseError, Identity};
use scrinium_directory::{
    Approach, Login, LoginError, Logins, NameLookup, SaslConnection, SaslError, SaslLogin, SaslReply,
};
use scrinium_ldap::{Answer, Binding, Request, Search};
use scrinium_ldap_wire::{Assertion, DistinguishedName, LdapResult, ResultCode, Secret, compare};
use scrinium_port::Link;
use scrinium_worker::WorkerError;

use crate::entries::Named;
use crate::protocol::SharedProtocol;
use crate::search::{Outcome, Progress};

/// What a search looks at, and how long it takes, at most.
const EXAMINED_MAX: usize = 500_000;
const SEARCH_WITHIN: Duration = Duration::from_secs(60);

/// Answers one session, one request after the other.
pub(crate) struct Desk {
    shared: Arc<SharedProtocol>,
    link: Arc<Link>,
    login: Option<Login>,
}

/// An answer, and what it holds until it is sent.
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    pub(crate) claim: Option<Claim>,
}

impl Reply {
    pub(crate) fn ended(code: ResultCode, words: &str) -> Self {
        Answer::Ended(LdapResult::new(code, words)).into()
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self { answer, claim: None }
    }
}

/// Somebody who has logged in, as they are now.
struct Asker {
    identity: Identity,
    account: Account,
}

impl Desk {
    pub(crate) const fn new(shared: Arc<SharedProtocol>, link: Arc<Link>) -> Self {
        Self { shared, link, login: None }
    }

    /// Whether a log-in holds.
    pub(crate) const fn knows_who_asks(&self) -> bool {
        self.login.is_some()
    }

    /// The account of who has logged in, or of the network.
    pub(crate) fn account(&self) -> Account {
        let accounts = &self.shared.accounts;
        let holder = match &self.login {
            Some(login) => login.person.holder(),
            None => Holder::Network(accounts.network(self.link.peer.address)),
        };
        self.link.account(&holder, accounts)
    }

    pub(crate) fn forget(&mut self) {
        self.login = None;
    }

    /// Answers one request. A caller that does not wait for the answer drops it.
    pub(crate) async fn reply<'l>(
        &mut self,
        request: Request,
        connection: SaslConnection,
        (logins, exchange): (&'l Logins, &mut Option<SaslLogin<'l>>),
    ) -> Reply {
        match request {
            Request::Bind { name, password } => {
                (self.login, *exchange) = (None, None);
                self.bind(&name, &password, &connection.approach).await
            }
            Request::BeginSasl { mechanism, initial } => {
                (self.login, *exchange) = (None, None);
                let Some(mechanism) = SaslMechanism::parse(&mechanism) else {
                    return Reply::ended(
                        ResultCode::AUTH_METHOD_NOT_SUPPORTED,
                        "no such mechanism is offered",
                    );
                };
                let mut begun = logins.begin_sasl(mechanism, connection, None);
                let reply = begun.start(initial.as_ref().map(|initial| initial.0.as_slice())).await;
                if matches!(reply, SaslReply::Challenge(_)) {
                    *exchange = Some(begun);
                }
                self.replied(reply)
            }
            Request::ContinueSasl(response) => {
                let Some(mut running) = exchange.take() else {
                    return Reply::ended(ResultCode::PROTOCOL_ERROR, "no exchange is under way");
                };
                let reply = running.respond(&response.0).await;
                if matches!(reply, SaslReply::Challenge(_)) {
                    *exchange = Some(running);
                }
                self.replied(reply)
            }
            Request::Search(search) => self.search(*search).await,
            Request::Compare { name, assertion } => self.compare(name, assertion).await,
            // The connection itself encrypts.
            Request::StartTls => Reply::ended(ResultCode::OPERATIONS_ERROR, "TLS cannot begin here"),
        }
    }

    /// A simple bind (RFC 4513, section 5.1.3), by the name of an entry, a log-in name or an address. The session has refused
    /// what has no password, and what others could listen to.
    async fn bind(&mut self, name: &str, password: &Secret, approach: &Approach) -> Reply {
        let logins = &self.shared.logins;
        let Ok(password) = std::str::from_utf8(&password.0) else {
            return Reply::ended(ResultCode::INVALID_CREDENTIALS, WRONG);
        };
        let searcher = &self.shared.searcher;
        let named = DistinguishedName::parse(name).map(|name| searcher.names.find(&name));
        let name = match &named {
            Ok(Named::Person(short_name)) => short_name,
            _ => searcher.resolver.login_name(name),
        };
        let login = match logins.recall(name, password, approach) {
            Some(login) => Ok(login),
            None => logins.prove(name, None, Proof::Password(password), approach).await,
        };
        match login {
            Ok(login) => self.bound(login, None),
            Err(error) => refused(&error),
        }
    }

    fn replied(&mut self, reply: SaslReply) -> Reply {
        match reply {
            SaslReply::Challenge(challenge) => Answer::Challenge(challenge).into(),
            SaslReply::Accepted { login, data } => self.bound(login, data),
            SaslReply::Refused { error: SaslError::Login(error), .. } => refused(&error),
            SaslReply::Refused { error: SaslError::Exchange(_), .. } => {
                Reply::ended(ResultCode::INVALID_CREDENTIALS, "the exchange does not follow its mechanism")
            }
        }
    }

    fn bound(&mut self, login: Login, data: Option<Vec<u8>>) -> Reply {
        // From now on the connection is the person's.
        let _account = self.link.account(&login.person.holder(), &self.shared.accounts);
        let name = self.shared.searcher.names.person(&login.person.short_name);
        let binding = Binding { name: name.map(|name| name.to_string()).unwrap_or_default() };
        self.login = Some(login);
        Answer::Bound(binding, data).into()
    }

    /// Who asks, as they are now; nobody where they are not let in any more.
    fn asker(&mut self) -> Option<Asker> {
        let person = self.login.as_ref().and_then(|login| self.shared.logins.still_in(login, Protocol::Ldap));
        let Some(person) = person else {
            self.login = None;
            return None;
        };
        let groups = self.shared.searcher.directory.groups_of(&person);
        let identity = Identity::with_groups(&person.short_name, &person.roles, &groups);
        let account = self.link.account(&person.holder(), &self.shared.accounts);
        Some(Asker { identity, account })
    }

    async fn search(&mut self, search: Search) -> Reply {
        let Some(Asker { identity, account }) = self.asker() else { return not_in() };
        let shared = &self.shared;
        shared.searches.add(1);
        let Some(progress) = Progress::begin(&search) else {
            return Reply::ended(ResultCode::UNWILLING_TO_PERFORM, "the cookie is of no page of this server");
        };
        let limited = |code, words: &str| {
            shared.limited.add(1);
            Reply::ended(code, words)
        };
        let Ok(_request) = account.claim(Resource::Requests, 1) else {
            return limited(ResultCode::BUSY, MANY);
        };
        let mut claim = account.claim_made(Resource::Bytes, 0);
        let end = Instant::now() + within(&search);
        let mut state = (progress, search);
        loop {
            let done = self.piece(state, &identity, &account).await;
            let (outcome, progress, search) = match done {
                Ok(done) => done,
                Err(error) => return busy(&error),
            };
            match outcome {
                Ok(Outcome::Searched) => {}
                Ok(Outcome::NoSuchEntry) => return no_such_entry(),
                Err(error) => return failed(&error),
            }
            if !hold(&mut claim, progress.held_bytes()) {
                return limited(ResultCode::BUSY, MANY);
            }
            let is_late = Instant::now() >= end;
            let is_too_much = is_late || progress.examined >= EXAMINED_MAX;
            if progress.is_over || progress.is_full(&search) || is_too_much && search.is_paged {
                let (entries, next) = progress.into_page(&search);
                return Reply { answer: Answer::Found { entries, next }, claim: Some(claim) };
            }
            if is_too_much {
                let code =
                    if is_late { ResultCode::TIME_LIMIT_EXCEEDED } else { ResultCode::ADMIN_LIMIT_EXCEEDED };
                return limited(code, "the search looks at too many entries; ask for pages or more exactly");
            }
            state = (progress, search);
        }
    }

    /// One piece of a search, so that others come in between.
    async fn piece(
        &self,
        (mut progress, search): (Progress, Search),
        identity: &Identity,
        account: &Account,
    ) -> Result<(scrinium_database::Result<Outcome>, Progress, Search), WorkerError> {
        let (searcher, identity) = (Arc::clone(&self.shared.searcher), identity.clone());
        // Nobody has all threads. Given back by the work itself, which goes on when the client has left.
        let thread = account.thread().await;
        let work = move || {
            let _thread = thread;
            let outcome = searcher.piece(&identity, &search, &mut progress);
            (outcome, progress, search)
        };
        self.shared.workers.run(work).await
    }

    async fn compare(&mut self, name: DistinguishedName, assertion: Assertion) -> Reply {
        let Some(Asker { identity, account }) = self.asker() else { return not_in() };
        let searcher = Arc::clone(&self.shared.searcher);
        let thread = account.thread().await;
        let work = move || {
            let _thread = thread;
            searcher.entry(&identity, &name)
        };
        match self.shared.workers.run(work).await {
            Ok(Ok(Some(entry))) => Reply::ended(compare(&entry, &assertion), ""),
            Ok(Ok(None)) => no_such_entry(),
            Ok(Err(error)) => failed(&error),
            Err(error) => busy(&error),
        }
    }
}

/// One answer may be as long as it is; several of one person that nobody takes may not.
fn hold(claim: &mut Claim, bytes: usize) -> bool {
    let more = bytes.saturating_sub(claim.amount());
    if claim.is_all() {
        claim.grow_made(more);
        return true;
    }
    claim.grow(more).is_ok()
}

/// How long a search may take: as long as the client wants, and no longer than [`SEARCH_WITHIN`].
fn within(search: &Search) -> Duration {
    match search.time_limit_s {
        0 => SEARCH_WITHIN,
        seconds => Duration::from_secs(u64::from(seconds)).min(SEARCH_WITHIN),
    }
}

const WRONG: &str = "the name or the password is wrong; where two-step sign-in is on, use an app password";
const MANY: &str = "too many of your requests are not answered yet; try again in a moment";

fn not_in() -> Reply {
    Reply::ended(ResultCode::INSUFFICIENT_ACCESS_RIGHTS, "your log-in does not hold any more; bind again")
}

fn no_such_entry() -> Reply {
    Reply::ended(ResultCode::NO_SUCH_OBJECT, "no entry has this name")
}

fn busy(error: &WorkerError) -> Reply {
    match error {
        WorkerError::Busy { .. } => {
            Reply::ended(ResultCode::BUSY, "the server is busy; try again in a moment")
        }
        WorkerError::Closed => Reply::ended(ResultCode::UNAVAILABLE, "the server stops"),
        WorkerError::Panicked { .. } => {
            Reply::ended(ResultCode::OTHER, "the server failed while it searched")
        }
    }
}

fn failed(error: &DatabaseError) -> Reply {
    match error {
        DatabaseError::Forbidden { .. } | DatabaseError::Unauthorized { .. } => Reply::ended(
            ResultCode::INSUFFICIENT_ACCESS_RIGHTS,
            "you may not read the directory; ask the administrator",
        ),
        error => {
            tracing::warn!(%error, "a search of the directory failed");
            Reply::ended(ResultCode::OTHER, "the directory cannot be read now; try again later")
        }
    }
}

/// What the client hears of a bind that let nobody in (RFC 4513, section 5.1.3; RFC 4511, appendix A.2).
fn refused(error: &LoginError) -> Reply {
    let (code, words) = match error {
        // No second step can be asked for here.
        LoginError::Refused | LoginError::SecondStep(_) => (ResultCode::INVALID_CREDENTIALS, WRONG),
        LoginError::Locked { .. } => {
            (ResultCode::UNWILLING_TO_PERFORM, "there were too many wrong passwords; try again later")
        }
        LoginError::Busy { .. } => {
            (ResultCode::BUSY, "too many log-ins are being checked; try again in a moment")
        }
        LoginError::Denied(Denial::Encrypt, protocol) => {
            (ResultCode::CONFIDENTIALITY_REQUIRED, Denial::Encrypt.text(*protocol))
        }
        LoginError::Denied(Denial::WrongCredentials, _) => (ResultCode::INVALID_CREDENTIALS, WRONG),
        LoginError::Denied(denial, protocol) => {
            (ResultCode::INAPPROPRIATE_AUTHENTICATION, denial.text(*protocol))
        }
    };
    Reply::ended(code, words)
}
