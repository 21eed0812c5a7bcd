//! Who may send as whom.

use scrinium_directory::{Delegates, Found, Person, is_listed};

use crate::recipients::Resolver;

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

impl Resolver {
    /// Whether a person may send as what is written: a name, or an address at which mail reaches them and nobody else; or one of
    /// somebody who lets them, or of a group that they are in.
    #[must_use]
    pub fn send_right(&self, person: &Person, written: &str) -> SendRight {
        match self.find(written) {
            Found::Person(owner) if owner.id == person.id => SendRight::Own,
            Found::Person(owner) => self.given(person, &owner.delegates),
            Found::Group(group) => match self.given(person, &group.delegates) {
                SendRight::None if self.is_member(person, &group) => SendRight::OnBehalf,
                right => right,
            },
            Found::MailIn(_) | Found::Several | Found::Nobody => SendRight::None,
        }
    }

    fn given(&self, person: &Person, delegates: &Delegates) -> SendRight {
        if is_listed(self.lookup(), person, &delegates.send_as) {
            SendRight::As
        } else if is_listed(self.lookup(), person, &delegates.send_on_behalf) {
            SendRight::OnBehalf
        } else {
            SendRight::None
        }
    }
}
