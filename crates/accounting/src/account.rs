//! What one holder has: counters, and claims that give back by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::accounts::Registry;
use crate::{Holder, HolderLimits, Overdrawn, Resource};

/// What one holder has at the moment. Clones are the same account, which goes with its last clone and claim.
#[derive(Clone)]
pub struct Account(Arc<AccountState>);

pub(crate) struct AccountState {
    holder: Holder,
    limits: HolderLimits,
    counts: [AtomicUsize; Resource::COUNT],
    threads: Arc<Semaphore>,
    registry: Arc<Registry>,
}

impl AccountState {
    pub(crate) fn new(holder: Holder, limits: HolderLimits, registry: Arc<Registry>) -> Self {
        let threads = Arc::new(Semaphore::new(limits.threads.clamp(1, Semaphore::MAX_PERMITS)));
        Self { holder, limits, counts: Default::default(), threads, registry }
    }

    fn count(&self, resource: Resource) -> &AtomicUsize {
        let [requests, feeds, bytes, logins, file_bytes] = &self.counts;
        match resource {
            Resource::Requests => requests,
            Resource::Feeds => feeds,
            Resource::Bytes => bytes,
            Resource::Logins => logins,
            Resource::FileBytes => file_bytes,
        }
    }

    fn take(&self, resource: Resource, amount: usize) -> Result<(), Overdrawn> {
        let limit = self.limits.of(resource);
        let add = |held: usize| held.checked_add(amount).filter(|sum| *sum <= limit);
        match self.count(resource).fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(()),
            Err(_) => Err(Overdrawn { resource, limit }),
        }
    }
}

impl AccountState {
    fn add(&self, resource: Resource, amount: usize) {
        self.count(resource).fetch_add(amount, Ordering::Relaxed);
    }

    fn give_back(&self, resource: Resource, amount: usize) {
        self.count(resource).fetch_sub(amount, Ordering::Relaxed);
    }
}

impl Drop for AccountState {
    fn drop(&mut self) {
        self.registry.forget(&self.holder);
    }
}

impl Account {
    pub(crate) fn new(state: Arc<AccountState>) -> Self {
        Self(state)
    }

    /// Whose it is.
    #[must_use]
    pub fn holder(&self) -> &Holder {
        &self.0.holder
    }

    /// How much of it is claimed.
    #[must_use]
    pub fn held(&self, resource: Resource) -> usize {
        self.0.count(resource).load(Ordering::Relaxed)
    }

    /// Claims `amount` until the claim is dropped.
    ///
    /// # Errors
    /// [`Overdrawn`] where it would be more than the holder may have; then nothing is claimed.
    pub fn claim(&self, resource: Resource, amount: usize) -> Result<Claim, Overdrawn> {
        self.0.take(resource, amount)?;
        Ok(Claim { state: Arc::clone(&self.0), resource, amount })
    }

    /// Claims `amount` whatever the limit is: of what is there already, and cannot be refused any more.
    #[must_use]
    pub fn claim_made(&self, resource: Resource, amount: usize) -> Claim {
        self.0.add(resource, amount);
        Claim { state: Arc::clone(&self.0), resource, amount }
    }

    /// A worker thread, as soon as fewer of them work for this holder than may. Waiting costs no thread.
    pub async fn thread(&self) -> Thread {
        // The semaphore is never closed; without a permit the work would go on uncounted.
        Thread { _permit: Arc::clone(&self.0.threads).acquire_owned().await.ok(), _account: self.clone() }
    }
}

impl std::fmt::Debug for Account {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Account").field(&self.0.holder).finish()
    }
}

/// So much of a resource, until it is dropped.
pub struct Claim {
    state: Arc<AccountState>,
    resource: Resource,
    amount: usize,
}

impl Claim {
    /// How much it is.
    #[must_use]
    pub const fn amount(&self) -> usize {
        self.amount
    }

    /// Claims `more` of the same.
    ///
    /// # Errors
    /// [`Overdrawn`]; then the claim is as it was.
    pub fn grow(&mut self, more: usize) -> Result<(), Overdrawn> {
        self.state.take(self.resource, more)?;
        self.amount += more;
        Ok(())
    }

    /// As [`Self::grow`], whatever the limit is.
    pub fn grow_made(&mut self, more: usize) {
        self.state.add(self.resource, more);
        self.amount += more;
    }

    /// Gives `less` of it back.
    pub fn shrink(&mut self, less: usize) {
        let less = less.min(self.amount);
        self.state.give_back(self.resource, less);
        self.amount -= less;
    }

    /// Whether it is all that its holder has of the resource.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.state.count(self.resource).load(Ordering::Relaxed) <= self.amount
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.state.give_back(self.resource, self.amount);
    }
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Claim({} {})", self.amount, self.resource)
    }
}

/// A worker thread that works for a holder, until it is dropped.
#[derive(Debug)]
pub struct Thread {
    _permit: Option<OwnedSemaphorePermit>,
    _account: Account,
}
