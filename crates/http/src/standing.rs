//! Whether those who are being served may still be: answers and feeds under way end when somebody logs out, leaves the
//! directory, or has other roles or another password.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use tokio::sync::watch;

use crate::audit_record;
use crate::authority::{Authenticator, Identity};
use crate::error::{HttpError, Result};
use crate::response::Pieces;
use crate::state::HttpState;
use scrinium_port::raised;

/// How often it is looked whether the directory has changed. A look compares two numbers.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// After this many looks everybody under way is looked at, whether something changed or not.
const LOOKS_UNTIL_ALL: u32 = 60;

/// Tells all answers under way when somebody's standing may have changed, until the server stops.
pub(crate) async fn follow(state: HttpState) {
    let mut stopping = state.stopping();
    let (mut seen, mut looks) = (state.authenticator.changes(), 0_u32);
    loop {
        tokio::select! {
            biased;
            () = raised(&mut stopping) => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let now = state.authenticator.changes();
        audit_record::changed_otherwise(&state);
        // Sessions reach their age as well, though nothing changes.
        looks = looks.wrapping_add(1);
        if std::mem::replace(&mut seen, now) != now || looks.is_multiple_of(LOOKS_UNTIL_ALL) {
            state.standings_changed();
        }
    }
}

/// Watches one person's standing.
pub(crate) struct StandingWatch {
    identity: Identity,
    authenticator: Arc<dyn Authenticator>,
    changed: watch::Receiver<u64>,
}

impl StandingWatch {
    pub(crate) fn new(state: &HttpState, identity: &Identity) -> Self {
        let authenticator = Arc::clone(&state.authenticator);
        Self { identity: identity.clone(), authenticator, changed: state.standings() }
    }

    /// Whether this is still somebody who may be served.
    pub(crate) fn holds(&self) -> bool {
        self.authenticator.holds(&self.identity)
    }

    /// Completes when it is not any more.
    pub(crate) async fn ended(&mut self) {
        loop {
            if self.changed.changed().await.is_err() {
                // The server ends, which is reported elsewhere.
                return std::future::pending().await;
            }
            if !self.holds() {
                return;
            }
        }
    }
}

/// The pieces of an answer, which breaks off when the standing of the one who asked does not hold any more.
pub(crate) fn while_it_holds(
    pieces: Pieces,
    standing: StandingWatch,
) -> impl Stream<Item = Result<Bytes>> + Send + 'static {
    stream::try_unfold((pieces, standing), |(mut pieces, mut standing)| async move {
        tokio::select! {
            biased;
            () = standing.ended() => {
                Err(HttpError::unauthorized("You are no longer logged in."))
            }
            piece = pieces.next() => Ok(piece.transpose()?.map(|piece| (piece, (pieces, standing)))),
        }
    })
}
