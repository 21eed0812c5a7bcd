//! What became of a memo, for anyone who keeps a record of it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::failure;
use super::waiting::Waiting;
use crate::memo::field;

/// Told of every memo that is routed, in the router's round; it must not wait.
pub(crate) type OnRouted = Arc<dyn Fn(&Routed<'_>) + Send + Sync>;

/// How a memo stands after a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoutedState {
    /// It reached everybody.
    Delivered,
    /// Its sender was told whom it did not reach.
    Returned,
    /// It is kept as a dead letter.
    Dead,
    /// A rule of the server keeps it back.
    Held,
    /// It is tried again later.
    Waiting,
}

impl RoutedState {
    /// One word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Returned => "returned",
            Self::Dead => "dead",
            Self::Held => "held",
            Self::Waiting => "waiting",
        }
    }
}

/// A memo that a round has taken up.
#[derive(Debug)]
pub struct Routed<'m> {
    /// The memo's document in its mail.box.
    pub id: &'m str,
    /// Its sender, as written; empty where there is none.
    pub from: &'m str,
    /// The Message-ID, where it has one.
    pub message_id: &'m str,
    /// How it stands.
    pub state: RoutedState,
    /// Mail databases that got it in this round.
    pub delivered: u64,
    /// Recipients elsewhere, for whom it is in the queue of outgoing mail now.
    pub handed_over: usize,
    /// Recipients whom it will never reach.
    pub failed: usize,
    /// Why it is not delivered, of the first such recipient.
    pub reason: Option<&'m str>,
    /// Attempts before this one.
    pub attempts: u32,
    /// The time since the router saw it first.
    pub elapsed: Duration,
}

impl<'m> Routed<'m> {
    pub(super) fn of(memo: &'m Waiting, state: RoutedState, elapsed: Duration) -> Self {
        Self {
            id: &memo.id,
            // Empty where the memo says neither.
            from: failure::sender_of(&memo.memo).unwrap_or_default(),
            message_id: memo.memo.get(field::MESSAGE_ID).and_then(Value::as_str).unwrap_or_default(),
            state,
            delivered: 0,
            handed_over: 0,
            failed: 0,
            reason: None,
            attempts: memo.attempts,
            elapsed,
        }
    }
}
