//! What is answered without its owner (RFC 6638, section 3.2.2): the settings, and the answer they give.

use super::Answer;
use crate::busy::BusyKind;

/// Whose invitations are meant. Addresses as of [`crate::address::comparable`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum SenderRule {
    #[default]
    Nobody,
    Everybody,
    Only(Vec<String>),
    AllBut(Vec<String>),
}

impl SenderRule {
    /// Whether this one is meant.
    #[must_use]
    pub fn holds(&self, address: &str) -> bool {
        let names = |list: &[String]| list.iter().any(|one| one == address);
        match self {
            Self::Nobody => false,
            Self::Everybody => true,
            Self::Only(list) => names(list),
            Self::AllBut(list) => !names(list),
        }
    }
}

/// What is done with an invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum AutoprocessAction {
    /// Accepts what is free; the rest is left to the owner.
    AcceptIfFree,
    AcceptAlways,
    /// Accepts what is free, and declines the rest.
    DeclineIfBusy,
    DelegateTo(String),
}

/// Somebody's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Autoprocess {
    /// Whose invitations.
    pub from: SenderRule,
    /// What is done with them; with nothing they are left to the owner.
    pub action: Option<AutoprocessAction>,
}

impl Autoprocess {
    /// The answer to an invitation from an organizer, by what the owner's time is taken by meanwhile: the worst of all instances.
    /// `None` leaves it to the owner.
    #[must_use]
    pub fn answer(&self, organizer: &str, busy: BusyKind) -> Option<Answer> {
        let action = self.action.as_ref().filter(|_| self.from.holds(organizer))?;
        let answer = |partstat: &str| Some(Answer { partstat: partstat.to_owned(), ..Answer::default() });
        let is_free = matches!(busy, BusyKind::Free | BusyKind::Tentative);
        match (action, is_free) {
            (AutoprocessAction::AcceptAlways, _)
            | (AutoprocessAction::AcceptIfFree | AutoprocessAction::DeclineIfBusy, true) => {
                answer("ACCEPTED")
            }
            (AutoprocessAction::DeclineIfBusy, false) => answer("DECLINED"),
            (AutoprocessAction::AcceptIfFree, false) => None,
            (AutoprocessAction::DelegateTo(delegate), _) => Some(Answer {
                partstat: "DELEGATED".to_owned(),
                instance: None,
                delegate: Some(delegate.clone()),
            }),
        }
    }
}
