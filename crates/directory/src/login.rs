//! Logging in, for every protocol and by every kind of proof: guesses are counted, slowed and locked, passwords are hashed on
//! dedicated threads, and each attempt is reported. Everything but a password is decided at once. Passwords that are set are
//! hashed on those threads too.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use scrinium_accounting::{Accounts, Guess, Holder, Network, Resource, Standing, Verdict};
use scrinium_assertion::never;
use scrinium_credentials::sasl::ScramSalt;
use scrinium_credentials::{
    Admission, Answer, Decision, GateOptions, HashedPassword, Method, Proof, Protection, Protocol, Reason,
};
use scrinium_statistics::{Counter, Registry};
use tokio::sync::{Semaphore, oneshot};

use crate::credentials::{Claim, is_app_password};
use crate::hashing::{HashingOptions, HashingThreads};
use crate::source_login::{PasswordSource, SourcePasswords, is_checked_there};
use crate::{CredentialError, Credentials, DirectoryError, LoginError, Person};

/// Attempts of one network that may be slowed at the same time; more are refused at once. So its guesses a minute are
/// bounded, however many connections it has.
const DELAYED_AT_ONCE: usize = 8;

/// Who is refused without a look at the password waits so long for the answer, holding nothing but the connection: else
/// those who try again at once, and by the thousand, would keep the processors busy with being refused.
const LOCKED_ANSWER_AFTER: Duration = Duration::from_secs(1);
const BUSY_ANSWER_AFTER: Duration = Duration::from_millis(500);

/// A caller who finds too many waiting may come back after this time.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Last uses that may be on their way to the disk at once. One that finds no place is noted the next time.
const NOTED_AT_ONCE: usize = 8;

/// Wrong codes of all networks together that keep codes out, as a multiple of those of one.
const CODES_OF_ALL_NETWORKS: u32 = 5;

/// By what, and from where, somebody comes.
#[derive(Clone, Copy, Debug)]
pub struct Approach {
    /// The protocol.
    pub protocol: Protocol,
    /// Who can listen.
    pub protection: Protection,
    /// From where.
    pub address: IpAddr,
}

impl Approach {
    /// Over a connection to which nobody listens.
    #[must_use]
    pub const fn protected(protocol: Protocol, address: IpAddr) -> Self {
        Self { protocol, protection: Protection::Protected, address }
    }
}

/// Somebody who was let in.
#[derive(Clone, Debug)]
pub struct Login {
    /// Who.
    pub person: Arc<Person>,
    /// By what.
    pub method: Method,
    /// By which app password.
    pub app_password: Option<String>,
    /// Whether two factors were shown.
    pub has_second_factor: bool,
}

impl Login {
    fn of(person: Arc<Person>, admission: Admission) -> Self {
        let Admission { method, app_password, has_second_factor, .. } = admission;
        Self { person, method, app_password, has_second_factor }
    }
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoginOutcome {
    /// Name and proof were right.
    Accepted,
    /// They were right, and a second step is needed.
    FirstStep,
    /// They were not.
    Refused,
    /// They were right and not enough, or cannot be used here.
    Denied,
    /// They were not, and that locks the name for this network.
    LockedNow,
    /// Nobody looked at the proof: the name is locked for this network.
    Locked,
    /// Nobody looked at the proof: too many log-ins were being checked.
    Busy,
}

impl LoginOutcome {
    /// The word that records hold.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::FirstStep => "first step",
            Self::Refused => "refused",
            Self::Denied => "denied",
            Self::LockedNow => "refused and locked",
            Self::Locked => "locked",
            Self::Busy => "busy",
        }
    }
}

/// An attempt to log in.
#[derive(Clone, Copy, Debug)]
pub struct LoginAttempt<'a> {
    /// The name that was given; whether there is such a person is not said.
    pub name: &'a str,
    /// Where it came from.
    pub address: IpAddr,
    /// What became of it.
    pub outcome: LoginOutcome,
    /// Why the person could not come in, where that is for an administrator to mend.
    pub reason: Option<Reason>,
}

/// Told of each attempt; must not wait.
pub type LoginWatch = Box<dyn Fn(&LoginAttempt<'_>) + Send + Sync>;

/// Lets people log in.
pub struct Logins {
    credentials: Arc<Credentials>,
    /// Who checks passwords of people who come from elsewhere.
    source: Option<SourcePasswords>,
    accounts: Accounts,
    hashing: Arc<HashingThreads>,
    noting: Arc<Semaphore>,
    watch: LoginWatch,
    accepted: Counter,
    busy: Counter,
}

impl Logins {
    /// Decides by `credentials`, counts guesses in `accounts`, and tells `watch`. Counts `Auth.Accepted`,
    /// `Auth.Failed`, `Auth.Locked`, `Auth.Delayed` and `Auth.Busy`, and shows `Auth.Waiting` and `Directory.Unreadable`.
    ///
    /// # Errors
    /// [`DirectoryError::Hash`] where the system gives no thread.
    pub fn new(
        credentials: Credentials,
        accounts: Accounts,
        hashing: HashingOptions,
        (statistics, watch): (&Registry, LoginWatch),
    ) -> Result<Self, DirectoryError> {
        let hashing =
            HashingThreads::begin(hashing).map_err(|error| DirectoryError::Hash(error.to_string()))?;
        let hashing = Arc::new(hashing);
        register(statistics, &accounts, &hashing);
        let records = Arc::downgrade(credentials.records());
        #[allow(clippy::cast_precision_loss, reason = "no directory has 2^53 people")]
        statistics.gauge("Directory.Unreadable", move || {
            records.upgrade().map_or(0.0, |records| records.unreadable() as f64)
        });
        Ok(Self {
            credentials: Arc::new(credentials),
            source: None,
            accounts,
            hashing,
            noting: Arc::new(Semaphore::new(NOTED_AT_ONCE)),
            watch,
            accepted: statistics.counter("Auth.Accepted"),
            busy: statistics.counter("Auth.Busy"),
        })
    }

    /// The same with a server elsewhere that checks the passwords of people who come from it and have none here.
    #[must_use]
    pub fn with_source(self, source: Arc<dyn PasswordSource>) -> Self {
        let source = SourcePasswords::new(source, self.credentials.clock().clone());
        Self { source: Some(source), ..self }
    }

    /// By what it is decided.
    #[must_use]
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The person of a name and a password that were right a moment ago, or of an app password whose use is noted already.
    /// Answers at once; `None` says only that [`Logins::verify`] must be asked. For a name that is locked, or that somebody from the
    /// same network tries to guess this way, it is `None` too.
    #[must_use]
    pub fn recall(&self, name: &str, password: &str, approach: &Approach) -> Option<Login> {
        let claim = Claim { name, act_as: None, proof: Proof::Password(password) };
        let person = self.credentials.person(name)?;
        if is_app_password(password) {
            let decision = self.credentials.decide(Some(&person), &claim, approach, None);
            return match decision {
                Decision::Admitted(admission) if admission.changes.is_empty() => {
                    Some(Login::of(person, admission))
                }
                _ => None,
            };
        }
        let (guess, _) = self.guess(name, approach.address);
        if !guess.may_recall() {
            return None;
        }
        let mark = self.credentials.recall(Some(&person), &claim);
        let source = self.source.as_ref().filter(|_| is_checked_there(&person));
        let proof = match &mark {
            Some(mark) => Proof::Remembered(mark),
            None if source.is_some_and(|source| source.believes(&person, password)) => {
                Proof::CheckedElsewhere
            }
            None => {
                guess.recall_missed();
                return None;
            }
        };
        let claim = Claim { proof, ..claim };
        match self.credentials.decide(Some(&person), &claim, approach, None) {
            Decision::Admitted(admission) => Some(Login::of(person, admission)),
            Decision::Next(_) | Decision::Refused(_) => None,
        }
    }

    /// The person of a name and a password, or an app password. Waiting holds no thread.
    ///
    /// # Errors
    /// [`LoginError`].
    pub async fn verify(&self, name: &str, password: &str, approach: &Approach) -> Result<Login, LoginError> {
        self.prove(name, None, Proof::Password(password), approach).await
    }

    /// The person of a name and any proof; `act_as` is whom they want to act as, where they have said somebody (prepared). Waiting
    /// holds no thread.
    ///
    /// # Errors
    /// [`LoginError`].
    pub async fn prove(
        &self,
        name: &str,
        act_as: Option<&str>,
        proof: Proof<'_>,
        approach: &Approach,
    ) -> Result<Login, LoginError> {
        let claim = Claim { name, act_as, proof };
        let attempted = match self.of_source(&claim) {
            _ if !self.credentials.is_slow(&claim, approach) => self.at_once(&claim, approach).await,
            Some((source, person)) => self.elsewhere(source, person, &claim, approach).await,
            None => self.hashed(&claim, approach).await,
        };
        self.tell(name, approach.address, &attempted).await;
        attempted.map_err(|refusal| refusal.error)
    }

    /// Whether a session still lets its person in. Nothing is counted or told.
    ///
    /// # Errors
    /// [`LoginError`].
    pub fn session(
        &self,
        person: &Arc<Person>,
        session: &scrinium_credentials::SessionProof,
        approach: &Approach,
    ) -> Result<Login, LoginError> {
        let claim = Claim { name: &person.short_name, act_as: None, proof: Proof::Session(session) };
        match self.credentials.decide(Some(person), &claim, approach, None) {
            Decision::Admitted(admission) => Ok(Login::of(Arc::clone(person), admission)),
            Decision::Next(next) => Err(LoginError::SecondStep(next)),
            Decision::Refused(refusal) => Err(error_of(refusal.answer, approach.protocol)),
        }
    }

    /// The hash of a password that somebody sets who has logged in from `address`, with SCRAM's keys under `salt`, if the person
    /// has one. It takes its turn among those who log in. Waiting holds no thread.
    ///
    /// # Errors
    /// [`LoginError::Busy`], also where no hash could be made.
    pub async fn hash(
        &self,
        password: &str,
        salt: Option<ScramSalt>,
        address: IpAddr,
    ) -> Result<HashedPassword, HashError> {
        let password = password.to_owned();
        let work = move || HashedPassword::make(&password, salt, GateOptions::default().scram_iterations);
        match self.apart(address, work).await {
            Ok(hashed) => hashed.map_err(HashError::Password),
            Err(_) => Err(HashError::Busy { retry_after: RETRY_AFTER }),
        }
    }

    /// Does slow work of somebody who has logged in from `address` where passwords are hashed, in its turn. Waiting holds no thread.
    ///
    /// # Errors
    /// [`LoginError::Busy`]
    pub async fn apart<T: Send + 'static>(
        &self,
        address: IpAddr,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LoginError> {
        self.in_line(Standing::Known, self.accounts.network(address), work).await
    }

    /// As [`Logins::apart`], for somebody of this standing.
    async fn in_line<T: Send + 'static>(
        &self,
        standing: Standing,
        network: Network,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LoginError> {
        const BUSY: LoginError = LoginError::Busy { retry_after: RETRY_AFTER };
        let (tell, told) = oneshot::channel();
        let work = move |in_time: bool| {
            if in_time && !tell.is_closed() {
                // Who has left asks for nothing.
                drop(tell.send(work()));
            }
        };
        self.hashing.submit(standing, network, work).map_err(|_| BUSY)?;
        told.await.map_err(|_| BUSY)
    }

    /// Counts and reports an attempt, and waits before an answer that costs nothing to give.
    async fn tell(&self, name: &str, address: IpAddr, attempted: &Result<Login, Refusal>) {
        let (outcome, reason) = match attempted {
            Ok(_) => (LoginOutcome::Accepted, None),
            Err(Refusal { locks: true, .. }) => (LoginOutcome::LockedNow, None),
            Err(Refusal { error, reason, .. }) => match error {
                LoginError::Refused => (LoginOutcome::Refused, *reason),
                LoginError::SecondStep(_) => (LoginOutcome::FirstStep, None),
                LoginError::Denied(..) => (LoginOutcome::Denied, *reason),
                LoginError::Locked { .. } => (LoginOutcome::Locked, None),
                LoginError::Busy { .. } => (LoginOutcome::Busy, None),
            },
        };
        match outcome {
            LoginOutcome::Accepted => self.accepted.add(1),
            LoginOutcome::Busy => self.busy.add(1),
            // Counted where they are decided.
            _ => {}
        }
        let reason = reason.filter(|reason| is_for_administrators(*reason));
        (self.watch)(&LoginAttempt { name, address, outcome, reason });
        self.hold_back(outcome, name, address).await;
    }

    async fn hold_back(&self, outcome: LoginOutcome, name: &str, address: IpAddr) {
        match outcome {
            LoginOutcome::Locked => tokio::time::sleep(LOCKED_ANSWER_AFTER).await,
            LoginOutcome::Busy => {
                let (guess, _) = self.guess(name, address);
                if guess.is_suspect() {
                    tokio::time::sleep(BUSY_ANSWER_AFTER).await;
                }
                guess.sent_away(RETRY_AFTER);
            }
            _ => {}
        }
    }

    fn guess(&self, name: &str, address: IpAddr) -> (Guess, Network) {
        let network = self.accounts.network(address);
        (self.accounts.guess(&self.credentials.key_of(name), network), network)
    }

    /// Waits as long as guesses from a network have to.
    async fn turn(&self, guess: &Guess, network: Network) -> Result<(Standing, LoginClaim), Refusal> {
        let account = self.accounts.account(&Holder::Network(network));
        let claim = |most: usize, retry_after| {
            let claim = account.claim(Resource::Logins, 1).ok();
            claim.filter(|_| account.held(Resource::Logins) <= most).ok_or_else(|| Refusal::busy(retry_after))
        };
        match guess.verdict() {
            Verdict::Locked(retry_after) => Err(Refusal::of(LoginError::Locked { retry_after })),
            // Who is known does not wait for others of the same network either.
            Verdict::Now(Standing::Known) => Ok((Standing::Known, account.claim(Resource::Logins, 1).ok())),
            Verdict::Now(standing) => Ok((standing, Some(claim(usize::MAX, RETRY_AFTER)?))),
            Verdict::After(delay) => {
                let claim = claim(DELAYED_AT_ONCE, delay)?;
                tokio::time::sleep(delay).await;
                Ok((Standing::Suspect, Some(claim)))
            }
        }
    }

    /// A password, which is for the threads that hash.
    async fn hashed(&self, claim: &Claim<'_>, approach: &Approach) -> Result<Login, Refusal> {
        let (guess, network) = self.guess(claim.name, approach.address);
        let (standing, _claim) = self.turn(&guess, network).await?;
        let Proof::Password(password) = claim.proof else {
            never!("only passwords are hashed");
            return Err(Refusal::busy(RETRY_AFTER));
        };
        let (tell, told) = oneshot::channel();
        let owned = OwnedClaim {
            name: claim.name.to_owned(),
            act_as: claim.act_as.map(str::to_owned),
            password: password.to_owned(),
            approach: *approach,
        };
        let credentials = Arc::clone(&self.credentials);
        let work = move |in_time: bool| {
            // Who has left asks for nothing.
            if tell.is_closed() {
                return;
            }
            if !in_time {
                drop(tell.send(Err(Refusal::busy(RETRY_AFTER))));
                return;
            }
            let (checked, renewal) = owned.check(&credentials, &guess);
            // As above.
            drop(tell.send(checked));
            if let Some(person) = renewal {
                renew(&credentials, &person, &owned.password);
            }
        };
        self.hashing.submit(standing, network, work).map_err(|_| Refusal::busy(RETRY_AFTER))?;
        told.await.unwrap_or_else(|_| Err(Refusal::busy(RETRY_AFTER)))
    }

    /// The person of a password that another server checks, and that server.
    fn of_source(&self, claim: &Claim<'_>) -> Option<(&SourcePasswords, Arc<Person>)> {
        let source = self.source.as_ref()?;
        let person = self.credentials.person(claim.name)?;
        is_checked_there(&person).then_some((source, person))
    }

    /// A password that another server checks. It takes its place among those that are hashed here, and as long: else it could be heard
    /// who comes from there.
    async fn elsewhere(
        &self,
        source: &SourcePasswords,
        person: Arc<Person>,
        claim: &Claim<'_>,
        approach: &Approach,
    ) -> Result<Login, Refusal> {
        let Proof::Password(password) = claim.proof else {
            never!("only passwords are checked elsewhere");
            return Err(Refusal::busy(RETRY_AFTER));
        };
        let (guess, network) = self.guess(claim.name, approach.address);
        let (standing, _claim) = self.turn(&guess, network).await?;
        let checked = Claim { proof: Proof::CheckedElsewhere, ..*claim };
        let decide = |person: &Person| self.credentials.decide(Some(person), &checked, approach, None);
        let may_come = !matches!(decide(&person), Decision::Refused(_));
        let is_right = if may_come && source.believes(&person, password) {
            true
        } else {
            let owned = password.to_owned();
            let hashing =
                self.in_line(standing, network, move || drop(HashedPassword::make(&owned, None, None)));
            let asking = async { if may_come { source.ask(&person, password).await } else { Some(false) } };
            let (hashed, answer) = tokio::join!(hashing, asking);
            answer.filter(|_| hashed.is_ok()).ok_or_else(|| Refusal::busy(RETRY_AFTER))?
        };
        // They may stand otherwise by now.
        let is_same = |now: &Arc<Person>| now.id == person.id && now.source_entry == person.source_entry;
        let now = self.credentials.person(claim.name).filter(is_same).filter(|now| is_checked_there(now));
        match now.map(|now| (decide(&now), now)).filter(|_| is_right) {
            Some((Decision::Admitted(admission), now)) => {
                guess.succeeded();
                Ok(Login::of(now, admission))
            }
            Some((Decision::Next(next), _)) => Err(Refusal::of(LoginError::SecondStep(next))),
            Some((Decision::Refused(_), _)) | None => {
                let attempt = self.credentials.attempt(&self.credentials.key_of(claim.name), password);
                let (locks, reason) = (guess.failed(attempt), Some(Reason::WrongProof));
                Err(Refusal { is_guess: true, locks, reason, ..Refusal::of(LoginError::Refused) })
            }
        }
    }

    /// Everything else.
    async fn at_once(&self, claim: &Claim<'_>, approach: &Approach) -> Result<Login, Refusal> {
        let (guess, network) = self.guess(claim.name, approach.address);
        let is_guessable = claim.proof.is_guessable();
        if is_guessable && let Some(refusal) = self.not_taken(claim, approach) {
            return Err(refusal);
        }
        // What nobody comes upon by trying neither waits nor is locked: else a stranger could keep somebody's phone out.
        let _claim = if is_guessable { Some(self.turn(&guess, network).await?) } else { None };
        let second = self.second_step(claim, &guess)?;
        let person = self.credentials.person(claim.name);
        let decision = self.credentials.decide(person.as_deref(), claim, approach, None);
        let admission = match decision {
            Decision::Admitted(admission) => admission,
            other => {
                let refusal = self.refused(other, claim, approach, &guess);
                let locks =
                    second.is_some_and(|second| refusal.is_guess && second.counted(CODES_OF_ALL_NETWORKS));
                return Err(Refusal { locks: locks || refusal.locks, ..refusal });
            }
        };
        let Some(person) = person else {
            never!("nobody is admitted who is not there");
            return Err(Refusal::of(LoginError::Refused));
        };
        if !self.keep(&person, &admission).await {
            // Another log-in has used the same code at the same moment.
            let attempt = self.credentials.attempt(&person.id, "a code that was used");
            return Err(Refusal { locks: guess.failed(attempt), ..Refusal::of(LoginError::Refused) });
        }
        if is_guessable {
            guess.succeeded();
        }
        Ok(Login::of(person, admission))
    }

    /// Codes are tried by who knows the password, from however many networks: so they are counted for the person. Who has logged in
    /// from the same network before is not kept out by others.
    fn second_step(&self, claim: &Claim<'_>, guess: &Guess) -> Result<Option<Guess>, Refusal> {
        if !matches!(claim.proof, Proof::Code { .. }) {
            return Ok(None);
        }
        let name = format!("second step of {}", self.credentials.key_of(claim.name));
        let second = self.accounts.guess_from_anywhere(&name);
        match second.locked_for().filter(|_| !guess.is_known()) {
            Some(retry_after) => Err(Refusal::of(LoginError::Locked { retry_after })),
            None => Ok(Some(second)),
        }
    }

    /// What is refused no matter who comes: a proof that the protocol does not take, or that others could listen to.
    fn not_taken(&self, claim: &Claim<'_>, approach: &Approach) -> Option<Refusal> {
        match self.credentials.decide(None, claim, approach, None) {
            Decision::Refused(refusal) if !refusal.answer.is_guess() => Some(Refusal {
                reason: Some(refusal.reason),
                ..Refusal::of(error_of(refusal.answer, approach.protocol))
            }),
            _ => None,
        }
    }

    /// Stores what a log-in changes, before it is answered where the same proof must not be good again after a crash.
    async fn keep(&self, person: &Arc<Person>, admission: &Admission) -> bool {
        if admission.changes.is_empty() {
            return true;
        }
        let must_wait = admission.changes.iter().any(|change| change.must_be_stored_first());
        let place = Arc::clone(&self.noting).try_acquire_owned();
        if place.is_err() && !must_wait {
            return true;
        }
        let (records, id) = (Arc::clone(self.credentials.records()), person.id.clone());
        let changes = admission.changes.clone();
        let kept = tokio::task::spawn_blocking(move || {
            let kept = records.apply(&id, changes);
            drop(place);
            match kept {
                Ok(()) => true,
                Err(error) => {
                    if !matches!(error, CredentialError::Change(_)) {
                        tracing::warn!(id, %error, "what a log-in changes could not be stored");
                    }
                    false
                }
            }
        });
        !must_wait || kept.await.unwrap_or(false)
    }

    fn refused(&self, decision: Decision, claim: &Claim<'_>, approach: &Approach, guess: &Guess) -> Refusal {
        let shown = match claim.proof {
            Proof::Password(text) | Proof::Code { code: text, .. } => text,
            _ => "no text",
        };
        let attempt = self.credentials.attempt(&self.credentials.key_of(claim.name), shown);
        conclude(decision, approach.protocol, || {
            if claim.proof.is_guessable() {
                guess.failed(attempt)
            } else {
                guess.missed(attempt);
                false
            }
        })
    }
}

/// Held while an attempt is checked.
type LoginClaim = Option<scrinium_accounting::Claim>;

/// Why a password could not be hashed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HashError {
    /// It cannot be one.
    #[error(transparent)]
    Password(scrinium_credentials::PasswordError),
    /// Too many are being checked at this moment.
    #[error("too many passwords are being checked; try again in a moment")]
    Busy {
        /// When to try again.
        retry_after: Duration,
    },
}

/// What a hashing thread needs of an attempt.
struct OwnedClaim {
    name: String,
    act_as: Option<String>,
    password: String,
    approach: Approach,
}

impl OwnedClaim {
    /// On a hashing thread: others with the same name may have been checked since this one began to wait. Gives also the person
    /// whose password should be stored again as it is stored today.
    fn check(
        &self,
        credentials: &Credentials,
        guess: &Guess,
    ) -> (Result<Login, Refusal>, Option<Arc<Person>>) {
        if let Some(retry_after) = guess.locked_for() {
            return (Err(Refusal::of(LoginError::Locked { retry_after })), None);
        }
        let proof = Proof::Password(&self.password);
        let claim = Claim { name: &self.name, act_as: self.act_as.as_deref(), proof };
        let person = credentials.person(&self.name);
        match (credentials.decide(person.as_deref(), &claim, &self.approach, None), person) {
            (Decision::Admitted(admission), Some(person)) => {
                guess.succeeded();
                let renewal = admission.is_outdated.then(|| Arc::clone(&person));
                (Ok(Login::of(person, admission)), renewal)
            }
            (decision, _) => {
                let attempt = credentials.attempt(&credentials.key_of(&self.name), &self.password);
                let failed = || guess.failed(attempt);
                (Err(conclude(decision, self.approach.protocol, failed)), None)
            }
        }
    }
}

/// Whether an administrator can do something about it. Whether anybody has a name is no record's to tell.
const fn is_for_administrators(reason: Reason) -> bool {
    !matches!(
        reason,
        Reason::NobodyThere
            | Reason::NoSuchCredential
            | Reason::WrongProof
            | Reason::WrongCode
            | Reason::OtherPerson
            | Reason::Locked
    )
}

/// Stores a password as it is stored today; who logs in has been answered.
fn renew(credentials: &Credentials, person: &Person, password: &str) {
    let now_ms = credentials.clock().now_ms();
    let Some(mark) = person.credentials.password().map(scrinium_credentials::PasswordCredential::mark) else {
        return;
    };
    let salt = person.credentials.salt_to_keep(now_ms);
    let renewed = HashedPassword::make(password, salt, credentials.gate().scram_iterations())
        .map_err(CredentialError::from)
        .and_then(|hashed| credentials.records().renew_password(&person.id, mark, hashed, now_ms));
    if let Err(error) = renewed {
        tracing::warn!(id = person.id, %error, "a password could not be stored as it is stored today");
    }
}

/// What who is not let in hears. A first step that was right is no success yet: else a password that somebody knows would make
/// them free to try codes.
fn conclude(decision: Decision, protocol: Protocol, failed: impl FnOnce() -> bool) -> Refusal {
    match decision {
        Decision::Next(next) => Refusal::of(LoginError::SecondStep(next)),
        Decision::Admitted(_) => Refusal::of(LoginError::Refused),
        Decision::Refused(refusal) => {
            let is_guess = refusal.answer.is_guess();
            let locks = is_guess && failed();
            let error = error_of(refusal.answer, protocol);
            Refusal { error, is_guess, locks, reason: Some(refusal.reason) }
        }
    }
}

fn error_of(answer: Answer, protocol: Protocol) -> LoginError {
    match answer {
        Answer::WrongCredentials => LoginError::Refused,
        Answer::Later(_) => LoginError::Locked { retry_after: RETRY_AFTER },
        other => LoginError::Denied(other, protocol),
    }
}

fn register(statistics: &Registry, accounts: &Accounts, hashing: &Arc<HashingThreads>) {
    #[allow(clippy::cast_precision_loss, reason = "no server sees 2^53 logins")]
    let gauge = |name: &str, read: fn(scrinium_accounting::GuessFigures) -> u64| {
        let accounts = accounts.clone();
        statistics.gauge(name, move || read(accounts.guess_figures()) as f64);
    };
    gauge("Auth.Failed", |figures| figures.failed);
    gauge("Auth.Locked", |figures| figures.locked);
    gauge("Auth.Delayed", |figures| figures.delayed);
    let hashing = Arc::downgrade(hashing);
    #[allow(clippy::cast_precision_loss, reason = "the queue is short")]
    statistics
        .gauge("Auth.Waiting", move || hashing.upgrade().map_or(0.0, |hashing| hashing.waiting() as f64));
}

struct Refusal {
    error: LoginError,
    /// Whether the proof may have been a guess, and a wrong one.
    is_guess: bool,
    /// Whether it locks the name for the network.
    locks: bool,
    /// What the record may say.
    reason: Option<Reason>,
}

impl Refusal {
    const fn of(error: LoginError) -> Self {
        Self { error, is_guess: false, locks: false, reason: None }
    }

    const fn busy(retry_after: Duration) -> Self {
        Self::of(LoginError::Busy { retry_after })
    }
}
