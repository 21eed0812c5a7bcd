//! What all sessions of IMAP and POP3 share.

use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use scrinium_accounting::Accounts;
use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_directory::{Directory, Logins, TokenVerifier};
use scrinium_mail::{MessageComposer, Resolver};
use scrinium_worker::WorkerPool;

use crate::maildrop::Maildrops;
use crate::message::Messages;
use crate::sorting::Sorts;
use crate::tracker::Trackers;

/// What mail databases are reached with.
pub struct MailAccessOptions {
    /// Who we are, in messages that are made of memos without a source.
    pub host: String,
    /// All databases.
    pub databases: Databases,
    /// The directory.
    pub directory: Arc<Directory>,
    /// Knows people by their addresses.
    pub resolver: Resolver,
    /// Lets people in.
    pub logins: Arc<Logins>,
    /// Knows the providers whose tokens let people in, if there are any.
    pub tokens: Option<Arc<dyn TokenVerifier>>,
    /// What networks and people hold.
    pub accounts: Accounts,
    /// Where questions are answered.
    pub workers: WorkerPool,
    /// The time.
    pub clock: Clock,
    /// Hears of each who opens the mail of somebody else in that one's name; `None`: nobody may.
    pub opened_by_others: Option<OpeningWatch>,
}

/// Hears of an opening before the one who opens is let in. It must not wait.
pub type OpeningWatch = Arc<dyn Fn(&Opening<'_>) + Send + Sync>;

/// Somebody opens the mail of somebody else.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'o> {
    /// The short name of the one who has logged in.
    pub by: &'o str,
    /// The id of the person whose mail it is.
    pub of: &'o str,
    /// Where from.
    pub address: IpAddr,
}

/// The mail databases as the ports of IMAP and POP3 see them: what is known of folders and messages is known to both.
#[derive(Clone)]
pub struct MailAccess(pub(crate) Arc<Surroundings>);

impl MailAccess {
    /// Nothing is read before somebody logs in.
    #[must_use]
    pub fn new(options: MailAccessOptions) -> Self {
        let composer = MessageComposer { host: options.host, resolver: options.resolver.clone() };
        Self(Arc::new(Surroundings {
            databases: options.databases,
            directory: options.directory,
            resolver: options.resolver,
            logins: options.logins,
            tokens: options.tokens,
            accounts: options.accounts,
            workers: options.workers,
            clock: options.clock,
            opened_by_others: options.opened_by_others,
            messages: Messages::new(composer),
            trackers: Trackers::default(),
            sorts: Sorts::default(),
            maildrops: Maildrops::default(),
            metadata: Mutex::default(),
        }))
    }
}

/// The same, inside.
pub(crate) struct Surroundings {
    pub(crate) databases: Databases,
    pub(crate) directory: Arc<Directory>,
    pub(crate) resolver: Resolver,
    pub(crate) logins: Arc<Logins>,
    pub(crate) tokens: Option<Arc<dyn TokenVerifier>>,
    pub(crate) accounts: Accounts,
    pub(crate) workers: WorkerPool,
    pub(crate) clock: Clock,
    pub(crate) opened_by_others: Option<OpeningWatch>,
    pub(crate) messages: Messages,
    pub(crate) trackers: Trackers,
    pub(crate) sorts: Sorts,
    /// Those that sessions of POP3 have open.
    pub(crate) maildrops: Maildrops,
    /// Held by who changes what is noted of mailboxes.
    pub(crate) metadata: Mutex<()>,
}
