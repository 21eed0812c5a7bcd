//! A connection as its requests see it.

use std::sync::Arc;

use parking_lot::Mutex;
use scrinium_accounting::{Account, Accounts, Connection, ConnectionRefusal, Holder};
use tokio::sync::Notify;

use crate::peer::Peer;
use crate::ports::PortSettings;
use crate::proxy_header::Claim;

/// A connection as its requests see it: who is at the other end, and whose account it is.
pub struct Link {
    /// Who is at the other end.
    pub peer: Peer,
    /// Its place in the accounts; given back when it is dropped.
    pub connection: Arc<Connection>,
    /// Told when the connection is shed.
    shed: Arc<Notify>,
    /// The account of the last request; the next one is nearly always of the same holder.
    account: Mutex<Option<Account>>,
}

impl Link {
    pub(crate) fn new(peer: Peer, connection: Arc<Connection>, shed: Arc<Notify>) -> Self {
        Self { peer, connection, shed, account: Mutex::new(None) }
    }

    /// The account of one who sends a request over this connection. From then on the connection counts for a person who
    /// has logged in; one of a trusted proxy is everybody's.
    #[must_use]
    pub fn account(&self, holder: &Holder, accounts: &Accounts) -> Account {
        let mut last = self.account.lock();
        if let Some(account) = last.as_ref().filter(|account| account.holder() == holder) {
            return account.clone();
        }
        let account = accounts.account(holder);
        *last = Some(account.clone());
        drop(last);
        if !self.peer.trusted
            && !matches!(holder, Holder::Network(_))
            && let Err(error) = self.connection.belongs_to(holder)
        {
            tracing::debug!(?holder, %error, "a connection stays its network's");
        }
        account
    }

    /// Completes when the server needs the place of this connection, which is idle, for another one. A protocol that has
    /// something under way finishes it and closes.
    pub async fn shed(&self) {
        self.shed.notified().await;
    }

    /// The same connection, of the client that a PROXY header names; `None` if that client's network has as many as it may.
    pub(crate) fn of(&self, claim: Claim, port: &PortSettings, accounts: &Accounts) -> Option<Self> {
        let secure = claim.secure.unwrap_or(self.peer.secure);
        let peer = Peer::new(claim.address, secure, &port.trusted_proxies);
        if !peer.trusted {
            let holder = Holder::Network(accounts.network(peer.address));
            if let Err(ConnectionRefusal::HolderFull { .. } | ConnectionRefusal::ServerFull { .. }) =
                self.connection.belongs_to(&holder)
            {
                return None;
            }
        }
        Some(Self::new(peer, Arc::clone(&self.connection), Arc::clone(&self.shed)))
    }
}
