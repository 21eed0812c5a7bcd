//! Logging in with a name and a password, for every protocol: guesses are counted, slowed and locked, passwords are
//! hashed on dedicated threads, and each attempt is reported. Passwords that are set are hashed there too.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use scrinium_accounting::{Accounts, Guess, Holder, Network, Resource, Standing, Verdict};
use scrinium_statistics::{Counter, Registry};
use tokio::sync::oneshot;

use crate::hashing::{HashingOptions, HashingThreads};
use crate::password::{PasswordHashText, hash_password};
use crate::{Credentials, DirectoryError, LoginError, Person};

/// Attempts of one network that may be slowed at the same time; more are refused at once. So its guesses a minute are
/// bounded, however many connections it has.
const DELAYED_AT_ONCE: usize = 8;

/// Who is refused without a look at the password waits so long for the answer, holding nothing but the connection: else
/// those who try again at once, and by the thousand, would keep the processors busy with being refused.
const LOCKED_ANSWER_AFTER: Duration = Duration::from_secs(1);
const BUSY_ANSWER_AFTER: Duration = Duration::from_millis(500);

/// A caller who finds too many waiting may come back after this time.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoginOutcome {
    /// Name and password were right.
    Accepted,
    /// They were not.
    Refused,
    /// They were not, and that locks the name for this network.
    LockedNow,
    /// Nobody looked at the password: the name is locked for this network.
    Locked,
    /// Nobody looked at the password: too many log-ins were being checked.
    Busy,
}

impl LoginOutcome {
    /// The word that records hold.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
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
}

/// Told of each attempt; must not wait.
pub type LoginWatch = Box<dyn Fn(&LoginAttempt<'_>) + Send + Sync>;

/// Lets people log in.
pub struct Logins {
    credentials: Arc<Credentials>,
    accounts: Accounts,
    hashing: Arc<HashingThreads>,
    watch: LoginWatch,
    accepted: Counter,
    busy: Counter,
}

impl Logins {
    /// Checks against `credentials`, counts guesses in `accounts`, and tells `watch`. Counts `Auth.Accepted`,
    /// `Auth.Failed`, `Auth.Locked`, `Auth.Delayed` and `Auth.Busy`, and shows `Auth.Waiting`.
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
        Ok(Self {
            credentials: Arc::new(credentials),
            accounts,
            hashing,
            watch,
            accepted: statistics.counter("Auth.Accepted"),
            busy: statistics.counter("Auth.Busy"),
        })
    }

    /// The person of a name and password that were right a moment ago. Answers at once; `None` says only that
    /// [`Logins::verify`] must be asked. For a name that is locked, or that somebody from the same network tries to guess
    /// this way, it is `None` too.
    #[must_use]
    pub fn recall(&self, name: &str, password: &str, address: IpAddr) -> Option<Arc<Person>> {
        let (guess, _) = self.guess(name, address);
        if !guess.may_recall() {
            return None;
        }
        let found = self.credentials.recall(name, password);
        if found.is_none() {
            guess.recall_missed();
        }
        found
    }

    /// The person of a name and password that come from `address`. Waiting holds no thread.
    ///
    /// # Errors
    /// [`LoginError`].
    pub async fn verify(
        &self,
        name: &str,
        password: &str,
        address: IpAddr,
    ) -> Result<Arc<Person>, LoginError> {
        let checked = self.checked(name, password, address).await;
        let outcome = match &checked {
            Ok(_) => LoginOutcome::Accepted,
            Err(Refusal { locks: true, .. }) => LoginOutcome::LockedNow,
            Err(Refusal { error: LoginError::Refused, .. }) => LoginOutcome::Refused,
            Err(Refusal { error: LoginError::Locked { .. }, .. }) => LoginOutcome::Locked,
            Err(Refusal { error: LoginError::Busy { .. }, .. }) => LoginOutcome::Busy,
        };
        match outcome {
            LoginOutcome::Accepted => self.accepted.add(1),
            LoginOutcome::Busy => self.busy.add(1),
            // Counted where they are decided.
            LoginOutcome::Refused | LoginOutcome::LockedNow | LoginOutcome::Locked => {}
        }
        (self.watch)(&LoginAttempt { name, address, outcome });
        self.hold_back(outcome, name, address).await;
        checked.map_err(|refusal| refusal.error)
    }

    /// The hash of a password that somebody sets who has logged in from `address`. It takes its turn among those who log in.
    /// Waiting holds no thread.
    ///
    /// # Errors
    /// [`LoginError::Busy`], also where no hash could be made.
    pub async fn hash(&self, password: &str, address: IpAddr) -> Result<PasswordHashText, LoginError> {
        const BUSY: LoginError = LoginError::Busy { retry_after: RETRY_AFTER };
        let (tell, told) = oneshot::channel();
        let password = password.to_owned();
        let work = move |in_time: bool| {
            if in_time && !tell.is_closed() {
                // Who has left asks for nothing.
                drop(tell.send(hash_password(&password)));
            }
        };
        self.hashing.submit(Standing::Known, self.accounts.network(address), work).map_err(|_| BUSY)?;
        match told.await {
            Ok(Ok(hash)) => Ok(hash),
            Ok(Err(error)) => {
                tracing::error!(%error, "a password could not be hashed");
                Err(BUSY)
            }
            Err(_) => Err(BUSY),
        }
    }

    /// Waits before an answer that costs nothing to give.
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
            LoginOutcome::Accepted | LoginOutcome::Refused | LoginOutcome::LockedNow => {}
        }
    }

    fn guess(&self, name: &str, address: IpAddr) -> (Guess, Network) {
        let network = self.accounts.network(address);
        (self.accounts.guess(&self.credentials.key_of(name), network), network)
    }

    async fn checked(&self, name: &str, password: &str, address: IpAddr) -> Result<Arc<Person>, Refusal> {
        let (guess, network) = self.guess(name, address);
        let account = self.accounts.account(&Holder::Network(network));
        let claim = |most: usize, retry_after| {
            let claim = account.claim(Resource::Logins, 1).ok();
            claim.filter(|_| account.held(Resource::Logins) <= most).ok_or_else(|| Refusal::busy(retry_after))
        };
        let (standing, _claim) = match guess.verdict() {
            Verdict::Locked(retry_after) => return Err(Refusal::of(LoginError::Locked { retry_after })),
            // Who is known does not wait for others of the same network either.
            Verdict::Now(Standing::Known) => (Standing::Known, account.claim(Resource::Logins, 1).ok()),
            Verdict::Now(standing) => (standing, Some(claim(usize::MAX, RETRY_AFTER)?)),
            Verdict::After(delay) => {
                let claim = claim(DELAYED_AT_ONCE, delay)?;
                tokio::time::sleep(delay).await;
                (Standing::Suspect, Some(claim))
            }
        };
        let (tell, told) = oneshot::channel();
        let (credentials, name, password) =
            (Arc::clone(&self.credentials), name.to_owned(), password.to_owned());
        let work = move |in_time: bool| {
            // Who has left asks for nothing.
            if tell.is_closed() {
                return;
            }
            let checked = if in_time {
                check(&credentials, &guess, &name, &password)
            } else {
                Err(Refusal::busy(RETRY_AFTER))
            };
            // As above.
            drop(tell.send(checked));
        };
        self.hashing.submit(standing, network, work).map_err(|_| Refusal::busy(RETRY_AFTER))?;
        told.await.unwrap_or_else(|_| Err(Refusal::busy(RETRY_AFTER)))
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
    /// Whether it locks the name for the network.
    locks: bool,
}

impl Refusal {
    const fn of(error: LoginError) -> Self {
        Self { error, locks: false }
    }

    const fn busy(retry_after: Duration) -> Self {
        Self::of(LoginError::Busy { retry_after })
    }
}

/// On a hashing thread: others with the same name may have been checked since this one began to wait.
fn check(
    credentials: &Credentials,
    guess: &Guess,
    name: &str,
    password: &str,
) -> Result<Arc<Person>, Refusal> {
    if let Some(retry_after) = guess.locked_for() {
        return Err(Refusal::of(LoginError::Locked { retry_after }));
    }
    match credentials.check(name, password) {
        Ok(person) => {
            guess.succeeded();
            Ok(person)
        }
        Err(error) => {
            let locks = guess.failed(credentials.attempt(&credentials.key_of(name), password));
            Err(Refusal { error, locks })
        }
    }
}
