//! To whom a memo goes: names, addresses and groups become people.

mod walk;

use std::sync::Arc;

use scrinium_directory::{
    ADMINISTRATOR_ROLE, Found, Group, GroupSenders, MailIn, NameLookup, Person, fold_name, is_listed,
};
use scrinium_smtp_wire::{Domain, Mailbox};
use serde_json::{Map, Value};

use crate::address::WrittenAddress;
use crate::envelope::EnvelopeItems;
use crate::memo::field;
use walk::Walk;

/// Everybody whom one memo may reach; a list that reaches more is a mistake.
pub const MOST_PEOPLE: usize = 200_000;

/// Looks people up for the router.
#[derive(Clone)]
pub struct Resolver {
    lookup: Arc<dyn NameLookup>,
    /// Domains whose addresses are `short name@domain`, in lower case.
    local_domains: Arc<[String]>,
    /// Addresses of other domains are recipients elsewhere, and not unknown.
    reaches_outside: bool,
}

/// The people whom a list of recipients stands for.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Expansion {
    /// Each person once, in the order of their first mention.
    pub people: Vec<Arc<Person>>,
    /// Mail-in databases, each once.
    pub databases: Vec<Arc<MailIn>>,
    /// Whom mail reaches elsewhere, each address once.
    pub outside: Vec<OutsideRecipient>,
    /// Whom the memo cannot reach, each once.
    pub failures: Vec<Undeliverable>,
}

/// A recipient of another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideRecipient {
    /// The address.
    pub address: Mailbox,
    /// The recipient as written.
    pub written: String,
}

/// A recipient whom a memo cannot reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undeliverable {
    /// The recipient as written.
    pub written: String,
    /// The group that names the recipient, if it was not the memo.
    pub group: Option<String>,
    /// Why.
    pub reason: UndeliverableReason,
}

/// Why a recipient cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndeliverableReason {
    /// Nobody in the directory has the name or address.
    Unknown,
    /// Several in the directory have it.
    Ambiguous,
    /// It is a group to which the writer may not send.
    NotAllowed,
    /// The memo reaches more than [`MOST_PEOPLE`] people.
    TooMany,
}

/// Who has written a memo, as far as the server knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writer {
    /// The server itself.
    Server,
    /// Somebody who has logged in.
    Person(Arc<Person>),
    /// Anybody else, with the address that they say is theirs.
    Stranger(Option<String>),
}

impl std::fmt::Display for Undeliverable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.written)?;
        if let Some(group) = &self.group {
            write!(formatter, " (of the group {group})")?;
        }
        formatter.write_str(match self.reason {
            UndeliverableReason::Unknown => ": nobody in the directory has this name or address",
            UndeliverableReason::Ambiguous => ": several people or groups in the directory have this name",
            UndeliverableReason::NotAllowed => ": you may not send to this group; ask one of its owners",
            UndeliverableReason::TooMany => ": the memo has too many recipients",
        })
    }
}

impl Resolver {
    /// Resolves with `lookup`; `local_domains` are those whose addresses are a short name before the `@`.
    #[must_use]
    pub fn new(lookup: Arc<dyn NameLookup>, local_domains: &[String]) -> Self {
        let local_domains = local_domains.iter().map(|domain| domain.to_lowercase()).collect();
        Self { lookup, local_domains, reaches_outside: false }
    }

    /// The same for a server that sends mail to others: an address of another domain is a recipient there.
    #[must_use]
    pub fn reaching_outside(self) -> Self {
        Self { reaches_outside: true, ..self }
    }

    /// The address of another server that a written recipient is.
    fn outside(&self, written: &str) -> Option<Mailbox> {
        let address = WrittenAddress::read(written).address;
        let mailbox = Mailbox::parse(address.as_bytes()).ok().filter(|_| self.reaches_outside)?;
        let is_here = matches!(mailbox.domain(), Domain::Name(name) if self.is_local(name));
        (!is_here).then_some(mailbox)
    }

    /// Whom one written recipient stands for: `Ada Lovelace`, `ada`, `ada@acme.example`,
    /// `Ada Lovelace <ada@acme.example>` or a group's name.
    #[must_use]
    pub fn find(&self, written: &str) -> Found {
        let written = WrittenAddress::read(written);
        match self.lookup.find(written.meant()) {
            Found::Nobody => self.find_address(written.meant()),
            found => found,
        }
    }

    /// As [`Self::find`], for mail that is to be delivered: what is for an address that nobody has goes to whom its domain names for
    /// such mail.
    #[must_use]
    pub fn recipient(&self, written: &str) -> Found {
        let found = self.find(written);
        if found != Found::Nobody {
            return found;
        }
        let written = WrittenAddress::read(written);
        let domain = written.meant().rsplit_once('@').and_then(|(_, domain)| self.lookup.domain(domain));
        let catch_all = domain.as_ref().and_then(|domain| domain.catch_all.as_deref());
        catch_all.map_or(Found::Nobody, |catch_all| self.find(catch_all))
    }

    /// Whether somebody may send to a group. What the memo names is asked; groups within it are its owners' matter.
    #[must_use]
    pub fn may_write(&self, writer: &Writer, group: &Group) -> bool {
        let lookup = self.lookup.as_ref();
        match writer {
            Writer::Server => true,
            Writer::Stranger(address) => {
                let is_named = |address: &String| {
                    // The address of somebody here is no stranger's.
                    let folded = fold_name(address);
                    group.writers.iter().any(|writer| fold_name(writer) == folded)
                        && self.recipient(address) == Found::Nobody
                };
                group.senders == GroupSenders::Everybody || address.as_ref().is_some_and(is_named)
            }
            Writer::Person(person) => {
                let by_kind = match group.senders {
                    GroupSenders::People | GroupSenders::Everybody => true,
                    GroupSenders::Members => self.is_member(person, group),
                    GroupSenders::Listed => false,
                };
                by_kind
                    || person.has_role(ADMINISTRATOR_ROLE)
                    || is_listed(lookup, person, &group.owners)
                    || is_listed(lookup, person, &group.writers)
            }
        }
    }

    /// Whether a person is in a group, directly or through groups.
    pub(crate) fn is_member(&self, person: &Person, group: &Group) -> bool {
        self.lookup.groups_of(person).contains(&group.list_name)
    }

    pub(crate) fn lookup(&self) -> &dyn NameLookup {
        self.lookup.as_ref()
    }

    /// Who has written a memo of a mail.box.
    pub(crate) fn writer_of(&self, envelope: &EnvelopeItems, memo: &Map<String, Value>) -> Writer {
        let return_path = memo.get(field::RETURN_PATH).and_then(Value::as_str);
        self.writer(envelope, return_path)
    }

    /// Who has written what the envelope's submitter has handed in, or what came by SMTP with this return path; what has neither is
    /// the server's.
    pub(crate) fn writer(&self, envelope: &EnvelopeItems, return_path: Option<&str>) -> Writer {
        match (envelope.submitter.as_deref(), return_path.map(str::trim)) {
            (Some(submitter), _) => match self.lookup.find(submitter) {
                Found::Person(person) if person.short_name == submitter => Writer::Person(person),
                // Somebody who has left meanwhile.
                _ => Writer::Stranger(None),
            },
            (None, Some(path)) => Writer::Stranger(envelope.believed(path).map(str::to_owned)),
            (None, None) => Writer::Server,
        }
    }

    /// The address of a person as others write it: the one in the directory, or the short name at the first of our domains.
    #[must_use]
    pub fn mailbox_of(&self, person: &Person) -> Option<Mailbox> {
        let own = person.internet_address.as_deref().and_then(|own| Mailbox::parse(own.as_bytes()).ok());
        own.or_else(|| {
            let domain = Domain::parse(self.local_domains.first()?.as_bytes()).ok()?;
            Mailbox::new(&person.short_name, domain).ok()
        })
    }

    /// All addresses of a person, the one that they write from first.
    #[must_use]
    pub fn addresses_of(&self, person: &Person) -> Vec<String> {
        let first = self.mailbox_of(person).map(|mailbox| mailbox.to_string());
        let listed = person.internet_address.iter().chain(&person.addresses).cloned();
        let by_short_name = self.local_domains.iter().map(|domain| format!("{}@{domain}", person.short_name));
        let mut own: Vec<String> = Vec::new();
        for address in first.into_iter().chain(listed).chain(by_short_name) {
            if !own.iter().any(|known| known.eq_ignore_ascii_case(&address)) {
                own.push(address);
            }
        }
        own
    }

    /// The name under which the directory knows who logs in: an address at one of our domains that the directory does not have is the
    /// short name before the `@`.
    #[must_use]
    pub fn login_name<'a>(&self, name: &'a str) -> &'a str {
        match self.lookup.find(name) {
            Found::Nobody => self.local_part(name).unwrap_or(name),
            Found::Person(_) | Found::Group(_) | Found::MailIn(_) | Found::Several => name,
        }
    }

    /// Whether mail for this domain is for this server.
    #[must_use]
    pub fn is_local(&self, domain: &str) -> bool {
        self.has_short_names(domain) || self.lookup.domain(domain).is_some()
    }

    /// Whether addresses of this domain are people's short names here.
    fn has_short_names(&self, domain: &str) -> bool {
        self.local_domains.contains(&domain.to_lowercase())
    }

    /// Whose an address is that the directory does not have as it stands: a short name before the `@`, or what is left of the address
    /// without what stands behind a `+`, which is theirs to sort mail by (RFC 5233).
    fn find_address(&self, address: &str) -> Found {
        let Some((local, domain)) = address.rsplit_once('@') else { return Found::Nobody };
        let by_short_name = |local: &str| match self.lookup.find(local) {
            _ if !self.has_short_names(domain) => Found::Nobody,
            Found::Person(person) if self.is_confined_elsewhere(&person, domain) => Found::Nobody,
            found => found,
        };
        let base = local.split_once('+').map(|(base, _)| base).filter(|base| !base.is_empty());
        match (by_short_name(local), base) {
            (Found::Nobody, Some(base)) => match self.lookup.find(&format!("{base}@{domain}")) {
                Found::Nobody => by_short_name(base),
                found => found,
            },
            (found, _) => found,
        }
    }

    /// Whether a person is of another domain, of which others than administrators of the server say who is in it: with a name they
    /// must not give away what is an address here.
    fn is_confined_elsewhere(&self, person: &Person, domain: &str) -> bool {
        let own = person.domain().and_then(|own| self.lookup.domain(&own));
        own.is_some_and(|own| !own.administrators.is_empty() && own.name != domain.to_lowercase())
    }

    fn local_part<'a>(&self, address: &'a str) -> Option<&'a str> {
        let (local, domain) = address.rsplit_once('@')?;
        self.has_short_names(domain).then_some(local)
    }

    /// Expands what `writer` has written to people. Groups may hold groups, and people pass mail on, in circles too; everybody comes
    /// out once.
    #[must_use]
    pub fn expand(&self, written: &[String], writer: &Writer) -> Expansion {
        Walk::new(self, writer).run(written)
    }
}
