//! The one object that all protocols ask.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::account::{Account, AccountState};
use crate::connection::Book;
use crate::guess::Guesses;
use crate::{AccountOptions, Holder, HolderLimits, Network};

/// Counts what clients hold. Clones are the same accounts.
#[derive(Clone)]
pub struct Accounts {
    pub(crate) shared: Arc<AccountTable>,
}

pub(crate) struct AccountTable {
    pub(crate) options: AccountOptions,
    pub(crate) book: Mutex<Book>,
    /// Told whenever a connection has gone.
    pub(crate) freed: Notify,
    pub(crate) guesses: Guesses,
    registry: Arc<Registry>,
}

/// The accounts that somebody holds something of.
#[derive(Default)]
pub(crate) struct Registry {
    accounts: Mutex<HashMap<Holder, Weak<AccountState>>>,
}

impl Registry {
    /// Takes out an account whose last claim has gone.
    pub(crate) fn forget(&self, holder: &Holder) {
        let mut accounts = self.accounts.lock();
        // Another one may have been opened meanwhile.
        if accounts.get(holder).is_some_and(|account| account.strong_count() == 0) {
            accounts.remove(holder);
        }
    }
}

impl Accounts {
    /// Accounts in which nobody holds anything.
    #[must_use]
    pub fn new(options: AccountOptions) -> Self {
        let guesses = Guesses::new(&options.guesses, options.clock.clone());
        let book = Mutex::new(Book::default());
        let shared = AccountTable { options, book, freed: Notify::new(), guesses, registry: Arc::default() };
        Self { shared: Arc::new(shared) }
    }

    /// The network of an address, by the prefixes that are set.
    #[must_use]
    pub fn network(&self, address: std::net::IpAddr) -> Network {
        Network::of(address, self.shared.options.prefixes)
    }

    /// The limits of a holder.
    #[must_use]
    pub fn limits(&self, holder: &Holder) -> HolderLimits {
        match holder {
            Holder::Network(_) => self.shared.options.network,
            Holder::Person(_) => self.shared.options.person,
            Holder::Administrator(_) => HolderLimits::NONE,
        }
    }

    /// The account of a holder. It is there as long as somebody keeps it or a claim of it.
    #[must_use]
    pub fn account(&self, holder: &Holder) -> Account {
        let registry = &self.shared.registry;
        let mut accounts = registry.accounts.lock();
        if let Some(state) = accounts.get(holder).and_then(Weak::upgrade) {
            return Account::new(state);
        }
        let state = AccountState::new(holder.clone(), self.limits(holder), Arc::clone(registry));
        let state = Arc::new(state);
        accounts.insert(holder.clone(), Arc::downgrade(&state));
        Account::new(state)
    }

    /// How many holders have an account.
    #[must_use]
    pub fn holders(&self) -> usize {
        self.shared.registry.accounts.lock().len()
    }
}

impl std::fmt::Debug for Accounts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Accounts").field("holders", &self.holders()).finish_non_exhaustive()
    }
}
