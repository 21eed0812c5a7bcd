//! Failed log-ins: which name and network are locked, and how long a network's next attempt waits.
//!
//! - A *pair* of name and network locks after some failures, as CouchDB 3.5 has it: the name's owner, who comes from
//!   somewhere else, notices nothing.
//! - A *network* is slowed, as Dovecot does: after some failures, whatever the names, each further attempt waits, and
//!   the wait doubles. It is never locked. Its failures wear off one by one, so that a company behind one address,
//!   where some people mistype, is not slowed. A pair that has logged in before does not wait.
//! - A name alone is neither.
//!
//! Credentials that were good a moment ago are recalled from memory, which would let somebody guess at the speed
//! of memory: so a pair may be asked for only so often without success, and then goes the slow way.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use scrinium_clock::{Clock, milliseconds};

use crate::accounts::Accounts;
use crate::table::{Entry, Print, Table};
use crate::{GuessOptions, Network};

/// Failures of a pair that are remembered one by one; `lock_after` cannot be more.
const FAILURES_MOST: usize = 32;

/// A pair that has logged in is known for so long.
const KNOWN_FOR: Duration = Duration::from_hours(30 * 24);

/// Past this many doublings every delay is the longest one.
const DOUBLINGS_MOST: u32 = 20;

/// What all guesses share.
pub(crate) struct Guesses {
    options: GuessOptions,
    clock: Clock,
    began: Instant,
    pairs: Table<Pair>,
    networks: Table<NetworkFailures>,
    known: Table<KnownPair>,
    failed: AtomicU64,
    locked: AtomicU64,
    delayed: AtomicU64,
}

/// One name from one network. Times are in milliseconds since the accounts began, and never 0.
#[derive(Clone, Default)]
struct Pair {
    failures_ms: Vec<u64>,
    locked_until_ms: u64,
    /// Times that memory was asked in vain since the last success.
    probes: u32,
    probed_ms: u64,
}

impl Entry for Pair {
    fn worth(&self, now_ms: u64) -> u64 {
        let last = self.failures_ms.last().copied().unwrap_or(0).max(self.probed_ms);
        // A lock is worth more than any time.
        if self.locked_until_ms > now_ms { u64::MAX / 2 + last } else { last }
    }
}

/// Failures of one network, which wear off.
#[derive(Clone, Default)]
struct NetworkFailures {
    /// In thousandths.
    level: u64,
    at_ms: u64,
    /// The last attempt, so that a device that repeats one wrong password counts once.
    last_attempt: Option<u64>,
    /// Until then it was asked not to come back.
    away_until_ms: u64,
}

impl Entry for NetworkFailures {
    fn worth(&self, _now_ms: u64) -> u64 {
        self.at_ms.saturating_add(self.level)
    }
}

#[derive(Clone, Default)]
struct KnownPair {
    at_ms: u64,
}

impl Entry for KnownPair {
    fn worth(&self, _now_ms: u64) -> u64 {
        self.at_ms
    }
}

/// What is known of one who wants to log in. The order is that in which they are checked when many wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// This name has logged in from this network before.
    Known,
    /// Nothing.
    Fresh,
    /// Others from this network have failed lately.
    Suspect,
}

/// What becomes of an attempt to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The password is to be checked at once.
    Now(Standing),
    /// It is to be checked after this time.
    After(Duration),
    /// It is not to be checked: name and network are locked, for so much longer.
    Locked(Duration),
}

/// How many attempts there were since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuessFigures {
    /// The password was wrong.
    pub failed: u64,
    /// Name and network were locked.
    pub locked: u64,
    /// It had to wait.
    pub delayed: u64,
}

/// One attempt to log in with a name from a network.
#[derive(Clone)]
pub struct Guess {
    accounts: Accounts,
    pair: Print,
    network: Print,
    known: Print,
}

impl Guesses {
    pub(crate) fn new(options: &GuessOptions, clock: Clock) -> Self {
        let mut options = *options;
        options.lock_after = options.lock_after.clamp(1, u32::try_from(FAILURES_MOST).unwrap_or(1));
        Self {
            began: clock.instant(),
            clock,
            pairs: Table::new(options.kept),
            networks: Table::new(options.kept),
            known: Table::new(options.kept),
            options,
            failed: AtomicU64::new(0),
            locked: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
        }
    }

    fn now_ms(&self) -> u64 {
        milliseconds(self.clock.elapsed(self.began)).saturating_add(1)
    }

    /// One failure wears off in this time.
    fn wear_ms(&self) -> u64 {
        (milliseconds(self.options.lock_for) / u64::from(self.options.delay_after.max(1))).max(1)
    }

    /// A network's failures at `now_ms`, in thousandths.
    fn level(&self, failures: &NetworkFailures, now_ms: u64) -> u64 {
        let worn = now_ms.saturating_sub(failures.at_ms).saturating_mul(1000) / self.wear_ms();
        failures.level.saturating_sub(worn)
    }

    fn delay(&self, level: u64) -> Option<Duration> {
        let failures = u32::try_from(level / 1000).unwrap_or(u32::MAX);
        let over = failures.checked_sub(self.options.delay_after)?;
        let doubled = 2_u32.saturating_pow(over.min(DOUBLINGS_MOST));
        Some(self.options.delay_first.saturating_mul(doubled).min(self.options.delay_most))
    }
}

impl Accounts {
    /// An attempt to log in as `name`, which must be the same for all ways of writing one name, from `network`.
    #[must_use]
    pub fn guess(&self, name: &str, network: Network) -> Guess {
        let guesses = &self.shared.guesses;
        let pair = (name, network);
        Guess {
            pair: guesses.pairs.print(&pair),
            network: guesses.networks.print(&network),
            known: guesses.known.print(&pair),
            accounts: self.clone(),
        }
    }

    /// An attempt of which all networks together have as many as one: for a proof that nobody can try but who knows another secret of the
    /// person, so that no stranger can lock anybody out by it.
    #[must_use]
    pub fn guess_from_anywhere(&self, name: &str) -> Guess {
        self.guess(name, self.network(IpAddr::V4(Ipv4Addr::UNSPECIFIED)))
    }

    /// How many attempts failed, were refused and delayed since the start.
    #[must_use]
    pub fn guess_figures(&self) -> GuessFigures {
        let guesses = &self.shared.guesses;
        GuessFigures {
            failed: guesses.failed.load(Ordering::Relaxed),
            locked: guesses.locked.load(Ordering::Relaxed),
            delayed: guesses.delayed.load(Ordering::Relaxed),
        }
    }
}

impl Guess {
    fn guesses(&self) -> &Guesses {
        &self.accounts.shared.guesses
    }

    /// How much longer name and network are locked, if they are.
    #[must_use]
    pub fn locked_for(&self) -> Option<Duration> {
        let guesses = self.guesses();
        let left_ms = guesses.pairs.get(self.pair)?.locked_until_ms.checked_sub(guesses.now_ms())?;
        (left_ms > 0).then(|| Duration::from_millis(left_ms))
    }

    /// Whether credentials may be looked up in memory, where looking costs nothing.
    #[must_use]
    pub fn may_recall(&self) -> bool {
        let guesses = self.guesses();
        let Some(pair) = guesses.pairs.get(self.pair) else { return true };
        let now_ms = guesses.now_ms();
        let probes_count = now_ms.saturating_sub(pair.probed_ms) < milliseconds(guesses.options.lock_for);
        pair.locked_until_ms <= now_ms && !(probes_count && pair.probes >= guesses.options.lock_after)
    }

    /// Memory was asked, and did not know the credentials.
    pub fn recall_missed(&self) {
        let guesses = self.guesses();
        let now_ms = guesses.now_ms();
        let window_ms = milliseconds(guesses.options.lock_for);
        guesses.pairs.change(self.pair, now_ms, |pair| {
            if now_ms.saturating_sub(pair.probed_ms) >= window_ms {
                pair.probes = 0;
            }
            pair.probes = pair.probes.saturating_add(1);
            pair.probed_ms = now_ms;
        });
    }

    /// What is to become of the attempt. An attempt that waits asks no second time.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let guesses = self.guesses();
        if let Some(left) = self.locked_for() {
            guesses.locked.fetch_add(1, Ordering::Relaxed);
            return Verdict::Locked(left);
        }
        let standing = self.standing();
        if standing != Standing::Suspect {
            return Verdict::Now(standing);
        }
        let now_ms = guesses.now_ms();
        let level = guesses.networks.get(self.network).map_or(0, |failures| guesses.level(&failures, now_ms));
        match guesses.delay(level).filter(|delay| !delay.is_zero()) {
            Some(delay) => {
                guesses.delayed.fetch_add(1, Ordering::Relaxed);
                Verdict::After(delay)
            }
            None => Verdict::Now(standing),
        }
    }

    fn standing(&self) -> Standing {
        let guesses = self.guesses();
        let now_ms = guesses.now_ms();
        let is_known = |known: KnownPair| now_ms.saturating_sub(known.at_ms) < milliseconds(KNOWN_FOR);
        if guesses.known.get(self.known).is_some_and(is_known) {
            return Standing::Known;
        }
        let is_suspect = |failures: NetworkFailures| {
            failures.away_until_ms > now_ms || guesses.level(&failures, now_ms) > 0
        };
        if guesses.networks.get(self.network).is_some_and(is_suspect) {
            Standing::Suspect
        } else {
            Standing::Fresh
        }
    }

    /// Something was wrong that nobody comes upon by trying, such as an app password that was revoked: it counts for the network,
    /// and does not lock the name, or a forgotten device would lock its owner out.
    pub fn missed(&self, attempt: u64) {
        let guesses = self.guesses();
        let now_ms = guesses.now_ms();
        guesses.failed.fetch_add(1, Ordering::Relaxed);
        guesses.networks.change(self.network, now_ms, |failures| {
            failures.level = guesses.level(failures, now_ms);
            failures.at_ms = now_ms;
            if failures.last_attempt.replace(attempt) != Some(attempt) {
                failures.level = failures.level.saturating_add(1000);
            }
        });
    }

    /// The password was wrong. `attempt` is a digest of name and password: a device that sends the same wrong
    /// password again and again counts once for its network. True if this locks the name and the network.
    pub fn failed(&self, attempt: u64) -> bool {
        self.missed(attempt);
        self.counted(1)
    }

    /// As [`Self::failed`], for an attempt that was counted for its network already; it takes `times` as many failures to lock.
    #[must_use]
    pub fn counted(&self, times: u32) -> bool {
        let guesses = self.guesses();
        let now_ms = guesses.now_ms();
        let window_ms = milliseconds(guesses.options.lock_for);
        let lock_after = guesses.options.lock_after.saturating_mul(times);
        let lock_after = usize::try_from(lock_after).unwrap_or(usize::MAX).min(FAILURES_MOST);
        guesses.pairs.change(self.pair, now_ms, |pair| {
            pair.failures_ms.retain(|at_ms| now_ms.saturating_sub(*at_ms) < window_ms);
            pair.failures_ms.push(now_ms);
            let locks = pair.failures_ms.len() >= lock_after;
            if locks {
                pair.failures_ms.clear();
                pair.locked_until_ms = now_ms.saturating_add(window_ms);
            }
            locks
        })
    }

    /// Nobody could look at the password, and the client was asked to come back after this time. If its network comes back
    /// before, it is one that does not listen, and comes after others.
    pub fn sent_away(&self, retry_after: Duration) {
        let guesses = self.guesses();
        let now_ms = guesses.now_ms();
        guesses.networks.change(self.network, now_ms, |failures| {
            failures.level = guesses.level(failures, now_ms);
            failures.at_ms = now_ms;
            failures.away_until_ms = now_ms.saturating_add(milliseconds(retry_after));
        });
    }

    /// Whether this name has logged in from this network before.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.standing() == Standing::Known
    }

    /// Whether others from the same network have failed lately, or did not wait when they were asked to.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.standing() == Standing::Suspect
    }

    /// The password was right.
    pub fn succeeded(&self) {
        let guesses = self.guesses();
        let now_ms = guesses.now_ms();
        guesses.pairs.remove(self.pair);
        guesses.known.change(self.known, now_ms, |known| known.at_ms = now_ms);
    }
}
