//! Whom addresses stand for.

use std::sync::Arc;

use scrinium_directory::{Found, MailIn, Person};
use scrinium_mail::{Resolver, Writer};
use scrinium_smtp::{Envelope, EnvelopeRecipient, RecipientVerdict, Refusal};
use scrinium_smtp_wire::{Domain, ForwardPath};

/// The mailbox that each domain has (RFC 5321 §4.5.1).
const POSTMASTER: &str = "postmaster";

/// Who keeps what comes for an address.
pub(crate) enum MailKeeper {
    Person(Arc<Person>),
    MailIn(Arc<MailIn>),
}

/// Knows who is here.
pub(crate) struct Desk {
    pub(crate) resolver: Resolver,
    /// Who reads what is for the postmaster, where nobody in the directory has that name.
    pub(crate) postmasters: Vec<String>,
}

impl Desk {
    /// Whether a recipient is taken of this writer; one who is not of this server gets the verdict `elsewhere`.
    pub(crate) fn verdict(
        &self,
        path: &ForwardPath,
        writer: &Writer,
        elsewhere: RecipientVerdict,
    ) -> RecipientVerdict {
        let address = address_of(path);
        let found = match self.resolver.find(&address) {
            Found::Nobody if !self.is_postmaster(path) => self.resolver.recipient(&address),
            found => found,
        };
        match found {
            Found::Person(_) | Found::MailIn(_) => RecipientVerdict::Accepted,
            Found::Group(group) if self.resolver.may_write(writer, &group) => RecipientVerdict::Accepted,
            // RFC 3463 §3.8: the sender may not send to this list.
            Found::Group(_) => RecipientVerdict::Refused(Refusal::new(
                550,
                7,
                2,
                "This address is a group to which you may not send; ask one of its owners",
            )),
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

    /// Refuses a message whose return path nobody vouches for, where a group takes it of that address alone.
    ///
    /// # Errors
    /// What the client hears.
    pub(crate) fn check_unproven(&self, envelope: &Envelope, is_undecided: bool) -> Result<(), Refusal> {
        let is_closed =
            |recipient: &EnvelopeRecipient| match self.resolver.recipient(&address_of(&recipient.path)) {
                Found::Group(group) => !self.resolver.may_write(&Writer::Stranger(None), &group),
                Found::Person(_) | Found::MailIn(_) | Found::Several | Found::Nobody => false,
            };
        if !envelope.recipients.iter().any(is_closed) {
            return Ok(());
        }
        // RFC 7372 §3.2 and §3.3
        let (code, detail) = if is_undecided { (451, 24) } else { (550, 23) };
        let text = "A recipient is a group that takes messages of your address only where SPF or DKIM vouches for it";
        Err(Refusal::new(code, 7, detail, text))
    }

    /// Whose the mail is that is for this address, if it is one's own.
    pub(crate) fn keeper(&self, path: &ForwardPath) -> Option<MailKeeper> {
        match self.resolver.recipient(&address_of(path)) {
            Found::Person(person) => Some(MailKeeper::Person(person)),
            Found::MailIn(mail_in) => Some(MailKeeper::MailIn(mail_in)),
            Found::Group(_) | Found::Several | Found::Nobody => None,
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
