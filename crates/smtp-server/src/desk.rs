//! Whom addresses stand for.

use scrinium_directory::Found;
use scrinium_mail::Resolver;
use scrinium_smtp::{Envelope, EnvelopeRecipient, RecipientVerdict, Refusal};
use scrinium_smtp_wire::{Domain, ForwardPath};

/// The mailbox that each domain has (RFC 5321 §4.5.1).
const POSTMASTER: &str = "postmaster";

/// Knows who is here.
pub(crate) struct Desk {
    pub(crate) resolver: Resolver,
    /// Who reads what is for the postmaster, where nobody in the directory has that name.
    pub(crate) postmasters: Vec<String>,
}

impl Desk {
    /// Whether a recipient is taken; one who is not of this server gets the verdict `elsewhere`.
    pub(crate) fn verdict(&self, path: &ForwardPath, elsewhere: RecipientVerdict) -> RecipientVerdict {
        match self.resolver.find(&address_of(path)) {
            Found::Person(_) | Found::Group(_) => RecipientVerdict::Accepted,
            Found::Several => RecipientVerdict::Refused(Refusal::new(
                550,
                1,
                4,
                "Several people have this address; ask the administrator of this server",
            )),
            Found::Nobody if self.is_postmaster(path) => RecipientVerdict::Accepted,
            Found::Nobody if self.is_here(path) => RecipientVerdict::Unknown,
            Found::Nobody => elsewhere,
        }
    }

    fn is_here(&self, path: &ForwardPath) -> bool {
        match path {
            ForwardPath::Postmaster => true,
            ForwardPath::Path(path) => match path.mailbox.domain() {
                Domain::Name(name) => self.resolver.is_local(name),
                Domain::Literal(_) => false,
            },
        }
    }

    fn is_postmaster(&self, path: &ForwardPath) -> bool {
        let is_named = match path {
            ForwardPath::Postmaster => true,
            ForwardPath::Path(path) => path.mailbox.local().eq_ignore_ascii_case(POSTMASTER),
        };
        is_named && self.is_here(path) && !self.postmasters.is_empty()
    }

    /// To whom the memo goes, for each recipient of the envelope: the address as it was given, or the postmasters by their names.
    pub(crate) fn recipients(&self, envelope: &Envelope) -> Vec<Vec<String>> {
        let of_one = |recipient: &EnvelopeRecipient| {
            let address = address_of(&recipient.path);
            if self.is_postmaster(&recipient.path) && matches!(self.resolver.find(&address), Found::Nobody) {
                self.postmasters.clone()
            } else {
                vec![address]
            }
        };
        envelope.recipients.iter().map(of_one).collect()
    }
}

/// As the directory knows it.
pub(crate) fn address_of(path: &ForwardPath) -> String {
    match path {
        ForwardPath::Postmaster => POSTMASTER.to_owned(),
        ForwardPath::Path(path) => path.mailbox.to_string(),
    }
}
