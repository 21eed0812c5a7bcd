//! The memory that requests and answers of all clients may hold together.
//!
//! What is counted is what has arrived, and what was made of it, for as long as it lives; never what a client says is to
//! come. Nobody waits for the budget while they hold some of it: two that wait for each other would wait for ever.
//!
//! A few cannot take it all. Large bodies leave a quarter to small ones, answers leave half to bodies, one person leaves
//! a half to others unless nobody else wants it, and a small body that finds no room ends the slowest of those that are
//! still coming.
//!
//! The budget bounds the memory of the process; what of it one person or network may hold is their account's to say
//! ([`Resource::Bytes`]), which bodies are counted in as well. An answer is counted there with the request that it ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use scrinium_accounting::{Account, Claim, Holder, Resource};
use tokio::sync::Notify;

use crate::error::{HttpError, Result};

/// What one request holds up to this is not counted: how many there can be at once is bounded by connections.
pub(crate) const UNCOUNTED_BYTES: usize = 64 << 10;

/// A body is small up to this length.
const SMALL_BYTES: usize = 1 << 20;

/// Shares grow by whole steps.
const STEP_BYTES: usize = 64 << 10;

/// A body that comes faster than this is never ended for another one.
const FAST_BYTES_PER_SECOND: u64 = 128 << 10;

/// How far back that is looked at; a body of which nothing came meanwhile has stopped.
const PACE_TIME: Duration = Duration::from_secs(1);

/// Nor one that is younger than this.
const YOUNG: Duration = Duration::from_secs(2);

/// How long a small body waits until one that was ended for it has gone.
const ENDING_TIME: Duration = Duration::from_millis(500);

/// All memory for requests and answers.
pub(crate) struct Budget {
    limit: usize,
    held: Mutex<BudgetState>,
    given_back: Notify,
}

/// Who holds how much of it.
#[derive(Default)]
struct BudgetState {
    bytes: usize,
    large_bytes: usize,
    answer_bytes: usize,
    persons: HashMap<Arc<str>, usize>,
    /// Bodies that are still coming and hold a share.
    coming: Vec<Weak<Arrival>>,
}

/// How a body comes.
pub(crate) struct Arrival {
    began: Instant,
    received_bytes: AtomicU64,
    pace: Mutex<Pace>,
    is_over: AtomicBool,
    ended: Notify,
}

/// How fast it came lately.
struct Pace {
    /// At least a second ago, once it is as old.
    since: Instant,
    bytes_then: u64,
    last: Instant,
}

/// What a share is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Body,
    Answer,
}

/// A growing part of the budget, given back when it is dropped.
pub(crate) struct Share {
    budget: Arc<Budget>,
    person: Option<Arc<str>>,
    purpose: Purpose,
    counted: usize,
    is_large: bool,
    arrival: Option<Arc<Arrival>>,
    /// The same bytes in the account of the one who sends them.
    claim: Option<Claim>,
}

impl Arrival {
    pub(crate) fn new() -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            began: now,
            received_bytes: AtomicU64::new(0),
            pace: Mutex::new(Pace { since: now, bytes_then: 0, last: now }),
            is_over: AtomicBool::new(false),
            ended: Notify::new(),
        })
    }

    pub(crate) fn received(&self, bytes: u64) {
        let before = self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut pace = self.pace.lock();
        pace.last = Instant::now();
        if pace.last.duration_since(pace.since) >= PACE_TIME {
            (pace.since, pace.bytes_then) = (pace.last, before);
        }
    }

    pub(crate) fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// All of it has arrived: it cannot be ended any more.
    pub(crate) fn finish(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Completes when it is ended for somebody else.
    pub(crate) async fn ended(&self) {
        self.ended.notified().await;
    }

    fn bytes_per_second(&self) -> u64 {
        let pace = self.pace.lock();
        if pace.last.elapsed() >= PACE_TIME {
            return 0;
        }
        let milliseconds = u64::try_from(pace.since.elapsed().as_millis()).unwrap_or(u64::MAX).max(1000);
        self.received_bytes().saturating_sub(pace.bytes_then).saturating_mul(1000) / milliseconds
    }

    fn may_be_ended(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
            && self.began.elapsed() >= YOUNG
            && self.bytes_per_second() < FAST_BYTES_PER_SECOND
    }
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, held: Mutex::default(), given_back: Notify::new() })
    }

    /// What is held just now.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held.lock().bytes
    }

    /// The most that one request can hold, whatever others do.
    fn most_of_one(&self) -> usize {
        self.limit / 4 * 3
    }

    /// An empty share for a body that the holder of `account` sends.
    pub(crate) fn for_body(self: &Arc<Self>, account: &Account, arrival: &Arc<Arrival>) -> Share {
        let person = match account.holder() {
            Holder::Network(_) => None,
            Holder::Person(name) | Holder::Administrator(name) => Some(Arc::clone(name)),
        };
        Share {
            budget: Arc::clone(self),
            person,
            purpose: Purpose::Body,
            counted: 0,
            is_large: false,
            arrival: Some(Arc::clone(arrival)),
            claim: Some(account.claim_made(Resource::Bytes, 0)),
        }
    }

    /// An empty share for an answer.
    pub(crate) fn for_answer(self: &Arc<Self>, person: Option<Arc<str>>) -> Share {
        let purpose = Purpose::Answer;
        let budget = Arc::clone(self);
        Share { budget, person, purpose, counted: 0, is_large: false, arrival: None, claim: None }
    }

    /// Ends the slowest body that is still coming, if there is one that may be ended.
    fn end_slowest(&self, but: Option<&Arc<Arrival>>) -> bool {
        let mut held = self.held.lock();
        held.coming.retain(|coming| coming.strong_count() > 0);
        let others = held.coming.iter().filter_map(Weak::upgrade);
        let slow =
            others.filter(|coming| coming.may_be_ended() && but.is_none_or(|own| !Arc::ptr_eq(own, coming)));
        let Some(slowest) = slow.min_by_key(|coming| coming.bytes_per_second()) else { return false };
        slowest.finish();
        slowest.ended.notify_one();
        true
    }
}

impl BudgetState {
    /// Why `more` bytes cannot be had, if so.
    fn refusal(&self, budget: &Budget, share: &Share, more: usize, large: usize) -> Option<HttpError> {
        let busy = |reason: &'static str| Some(HttpError::busy(reason));
        let most_of_one = budget.most_of_one();
        if self.bytes.saturating_add(more) > budget.limit
            || (large > 0 && self.large_bytes.saturating_add(large) > most_of_one)
        {
            return busy("Too many large requests at the same time; try again.");
        }
        if share.purpose == Purpose::Answer && self.answer_bytes.saturating_add(more) > budget.limit / 2 {
            return busy("Too many large answers wait for their clients at the same time; try again.");
        }
        let of_person =
            share.person.as_ref().and_then(|person| self.persons.get(person)).copied().unwrap_or(0);
        let of_others = of_person.saturating_sub(share.counted);
        if of_others > 0 && of_person.saturating_add(more) > budget.limit / 2 {
            return busy(
                "You have too many large requests at the same time; try again when some have ended.",
            );
        }
        None
    }
}

impl Share {
    /// Whether it holds nothing.
    pub(crate) const fn is_empty(&self) -> bool {
        self.counted == 0
    }

    /// What it holds of an account.
    pub(crate) fn claimed_bytes(&self) -> usize {
        self.claim.as_ref().map_or(0, Claim::amount)
    }

    /// Makes the share large enough for `total` bytes, or refuses them. It never waits.
    ///
    /// # Errors
    /// 413 where no request may hold as many, 429 where other requests of the same person hold too much, 503 where those of
    /// others do.
    pub(crate) fn cover(&mut self, total: usize) -> Result<()> {
        if total <= UNCOUNTED_BYTES.max(self.counted) {
            return Ok(());
        }
        if total > self.budget.most_of_one() {
            return Err(HttpError::beyond_budget(self.budget.most_of_one()));
        }
        self.take(total, false)
    }

    /// As [`Self::cover`], for what is made already and cannot be refused any more.
    pub(crate) fn cover_made(&mut self, total: usize) {
        if total > UNCOUNTED_BYTES.max(self.counted) {
            // With force there is no refusal.
            drop(self.take(total, true));
        }
    }

    /// As [`Self::cover`]; a small body ends a slow one where there is no room, and waits a moment for it to go.
    pub(crate) async fn cover_or_end_slow(&mut self, total: usize) -> Result<()> {
        let started = Instant::now();
        loop {
            let given_back = Arc::clone(&self.budget);
            let given_back = given_back.given_back.notified();
            let Err(error) = self.cover(total) else { return Ok(()) };
            let may_wait = total <= SMALL_BYTES && started.elapsed() < ENDING_TIME;
            if error.status != http::StatusCode::SERVICE_UNAVAILABLE
                || !may_wait
                || !self.budget.end_slowest(self.arrival.as_ref())
            {
                return Err(error);
            }
            // Its end frees what it holds, on its own task.
            drop(tokio::time::timeout(ENDING_TIME, given_back).await);
        }
    }

    /// Waits until answers hold no more than they may, so that the next piece of one may be made. A client that does not
    /// read holds the others up no longer than its connection's patience.
    pub(crate) async fn wait_for_room(&self) {
        loop {
            let given_back = self.budget.given_back.notified();
            if self.budget.held.lock().answer_bytes < self.budget.limit / 2 {
                return;
            }
            given_back.await;
        }
    }

    /// Gives back all but `total` bytes.
    pub(crate) fn shrink(&mut self, total: usize) {
        let kept = if total <= UNCOUNTED_BYTES { 0 } else { total };
        if kept < self.counted {
            let (less, is_large) = (self.counted - kept, kept > SMALL_BYTES);
            let large = if !self.is_large {
                0
            } else if is_large {
                less
            } else {
                self.counted
            };
            self.release(less, large);
            self.unclaim(less);
            (self.counted, self.is_large) = (kept, is_large && self.is_large);
        }
    }

    fn take(&mut self, total: usize, forced: bool) -> Result<()> {
        let total = total.checked_next_multiple_of(STEP_BYTES).unwrap_or(total);
        let more = total - self.counted;
        let is_large = self.purpose == Purpose::Body && total > SMALL_BYTES;
        let large = match (is_large, self.is_large) {
            (false, _) => 0,
            (true, true) => more,
            (true, false) => total,
        };
        self.claim(more, forced)?;
        let mut held = self.budget.held.lock();
        if !forced && let Some(refusal) = held.refusal(&self.budget, self, more, large) {
            drop(held);
            self.unclaim(more);
            return Err(refusal);
        }
        held.bytes = held.bytes.saturating_add(more);
        held.large_bytes += large;
        if self.purpose == Purpose::Answer {
            held.answer_bytes += more;
        }
        if let Some(person) = &self.person {
            *held.persons.entry(Arc::clone(person)).or_default() += more;
        }
        if self.counted == 0
            && let Some(arrival) = &self.arrival
        {
            held.coming.push(Arc::downgrade(arrival));
        }
        drop(held);
        (self.counted, self.is_large) = (total, is_large);
        Ok(())
    }

    /// Claims `more` of the account. One request alone may be as long as the budget lets it, or nobody could ever send it.
    fn claim(&mut self, more: usize, forced: bool) -> Result<()> {
        let Some(claim) = &mut self.claim else { return Ok(()) };
        if forced || claim.is_all() {
            claim.grow_made(more);
            return Ok(());
        }
        Ok(claim.grow(more)?)
    }

    fn unclaim(&mut self, less: usize) {
        if let Some(claim) = &mut self.claim {
            claim.shrink(less);
        }
    }

    fn release(&self, less: usize, large: usize) {
        let mut held = self.budget.held.lock();
        held.bytes = held.bytes.saturating_sub(less);
        held.large_bytes = held.large_bytes.saturating_sub(large);
        if self.purpose == Purpose::Answer {
            held.answer_bytes = held.answer_bytes.saturating_sub(less);
        }
        if let Some(person) = &self.person
            && let Some(of_person) = held.persons.get_mut(person)
        {
            *of_person = of_person.saturating_sub(less);
            if *of_person == 0 {
                held.persons.remove(person);
            }
        }
        if held.coming.len() > 64 {
            held.coming.retain(|coming| coming.strong_count() > 0);
        }
        drop(held);
        self.budget.given_back.notify_waiters();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.counted > 0 {
            self.release(self.counted, if self.is_large { self.counted } else { 0 });
        }
    }
}
