//! Who may send as whom.

use scrinium_directory::{Found, Person};
use scrinium_mail::Resolver;

/// Whether somebody may send as an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendRight {
    /// It is their own.
    Own,
    /// It is another one's, whose letters they write: nobody sees a difference.
    As,
    /// They may write for its owner, and stand in the field `Sender`.
    OnBehalf,
    /// They may not.
    None,
}

/// Knows who may send as whom.
pub trait SendRights: Send + Sync {
    /// Whether a person may send as `address`, which is `local@domain`, in any case. It is asked for each message, and must not
    /// block.
    fn right(&self, person: &Person, address: &str) -> SendRight;
}

/// Everybody sends as who they are: by each address at which mail reaches them and nobody else.
pub struct OwnAddresses(pub Resolver);

impl SendRights for OwnAddresses {
    fn right(&self, person: &Person, address: &str) -> SendRight {
        match self.0.find(address) {
            Found::Person(owner) if owner.id == person.id => SendRight::Own,
            Found::Person(_) | Found::Group(_) | Found::Several | Found::Nobody => SendRight::None,
        }
    }
}
