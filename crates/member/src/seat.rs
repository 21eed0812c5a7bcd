//! A member's place in a group, from before its log is opened until it stops.

mod agreement;
mod following;
mod inbox;
mod member;
mod readers;
mod running;

use std::io;
use std::sync::Arc;

use scrinium_cluster::{Engine, Group, GroupOptions, Rules, TimingError};
use scrinium_log::Apply;
use tokio::sync::mpsc;

pub use agreement::{Agreement, Announcing};
pub use following::LocalLog;
pub use member::{Member, MemberStatus};
pub use readers::PendingReader;

use inbox::{Inbox, Order};

/// How a member takes part.
pub type MemberOptions = GroupOptions;

/// As many orders wait at most, readers' among them; further ones are refused.
const MOST_ORDERS: usize = 8192;

/// Why a member cannot start.
#[derive(Debug, thiserror::Error)]
pub enum SeatError {
    /// Its times contradict each other.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// The system refuses a thread, or what a thread needs.
    #[error("cannot start a thread of the cluster's member: {0}")]
    Thread(#[from] io::Error),
}

/// A place that nobody has taken yet. A committer is given [`Seat::agreement`] and [`Seat::announcing`], and then
/// [`Seat::take`] starts the member on it; what is submitted before waits for that.
pub struct Seat {
    options: MemberOptions,
    inbox: Arc<Inbox>,
    orders: mpsc::Receiver<Order>,
}

impl Seat {
    /// For a member whose log and store hold what `options` say.
    ///
    /// # Errors
    /// [`SeatError::Timing`].
    pub fn new(options: MemberOptions) -> Result<Self, SeatError> {
        options.timing.check()?;
        let (sender, orders) = mpsc::channel(MOST_ORDERS);
        let inbox = Arc::new(Inbox::new(sender, options.applied.last()));
        Ok(Self { options, inbox, orders })
    }

    /// What has the committer's groups agreed on.
    #[must_use]
    pub fn agreement(&self) -> Agreement {
        Agreement::new(Arc::clone(&self.inbox), self.options.timing.unknown_after_ms)
    }

    /// What applies records, so that the member learns at once what was applied.
    #[must_use]
    pub fn announcing<A: Apply>(&self, apply: A) -> Announcing<A> {
        Announcing::new(apply, Arc::clone(&self.inbox))
    }

    /// Starts the member.
    ///
    /// # Errors
    /// [`SeatError::Thread`].
    pub fn take<R: Rules>(self, engine: Arc<impl Engine>, log: impl LocalLog) -> Result<Member, SeatError> {
        let Self { options, inbox, orders } = self;
        let (keys, timing) = (options.keys.clone(), options.timing.clone());
        let group = Group::<R>::new(options, crate::boot_clock::boot_ms());
        let (work, following) = following::start(Arc::clone(&inbox), log)?;
        let (status, seen) = member::status_of(&group);
        let running =
            running::Running::new((group, keys, timing), engine, Arc::clone(&inbox), (work, status));
        let thread = running::start(running, orders)?;
        Ok(Member::new(inbox, seen, [thread, following]))
    }
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Seat").field("member", &self.options.me).finish_non_exhaustive()
    }
}
