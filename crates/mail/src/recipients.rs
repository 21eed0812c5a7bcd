//! To whom a memo goes: names, addresses and groups become people.

use std::collections::HashSet;
use std::sync::Arc;

use scrinium_directory::{Found, Group, NameLookup, Person, fold_name};
use scrinium_mail_queue::MESSAGE_RECIPIENTS_MAX;
use scrinium_smtp_wire::{Domain, Mailbox};

use crate::address::WrittenAddress;

/// Everybody whom one memo may reach; a list that reaches more is a mistake.
pub const MOST_PEOPLE: usize = 200_000;

/// Of more failures than these nobody reads.
const MOST_FAILURES: usize = 1_000;

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
    /// The memo reaches more than [`MOST_PEOPLE`] people.
    TooMany,
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
        // The name next to an address is only decoration: the address says who is meant.
        let name = if written.address.is_empty() { &written.name } else { &written.address };
        match self.lookup.find(name) {
            Found::Nobody => self.local_part(name).map_or(Found::Nobody, |local| self.find_local(local)),
            found => found,
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

    /// The name under which the directory knows who logs in: an address at one of our domains that the directory does not have is the
    /// short name before the `@`.
    #[must_use]
    pub fn login_name<'a>(&self, name: &'a str) -> &'a str {
        match self.lookup.find(name) {
            Found::Nobody => self.local_part(name).unwrap_or(name),
            Found::Person(_) | Found::Group(_) | Found::Several => name,
        }
    }

    /// Whether addresses of this domain are people's short names here.
    #[must_use]
    pub fn is_local(&self, domain: &str) -> bool {
        self.local_domains.contains(&domain.to_lowercase())
    }

    /// The person or group of a local part. What stands behind a `+` is theirs to sort mail by (RFC 5233).
    fn find_local(&self, local: &str) -> Found {
        match (self.lookup.find(local), local.split_once('+')) {
            (Found::Nobody, Some((base, _))) if !base.is_empty() => self.lookup.find(base),
            (found, _) => found,
        }
    }

    fn local_part<'a>(&self, address: &'a str) -> Option<&'a str> {
        let (local, domain) = address.rsplit_once('@')?;
        self.is_local(domain).then_some(local)
    }

    /// Expands written recipients to people. Groups may hold groups, in circles too; everybody comes out once.
    #[must_use]
    pub fn expand(&self, written: &[String]) -> Expansion {
        let mut walk = Walk { resolver: self, expansion: Expansion::default(), seen: HashSet::new() };
        // Groups wait on a list of our own, so that no nesting is too deep.
        let mut waiting: Vec<(String, Option<Arc<Group>>)> =
            written.iter().rev().map(|name| (name.clone(), None)).collect();
        while let Some((name, group)) = waiting.pop() {
            // A person, a name that nobody has, or a group that was visited already: nothing stands within.
            let Some(inner) = walk.visit(&name, group.as_deref()) else { continue };
            waiting.extend(inner.members.iter().rev().map(|name| (name.clone(), Some(Arc::clone(&inner)))));
        }
        walk.expansion
    }
}

struct Walk<'r> {
    resolver: &'r Resolver,
    expansion: Expansion,
    /// Ids of people and groups that were met, and folded names of those who were not found.
    seen: HashSet<String>,
}

impl Walk<'_> {
    /// Takes up one recipient; gives the group whose members are to be visited, if it is one.
    fn visit(&mut self, written: &str, group: Option<&Group>) -> Option<Arc<Group>> {
        match self.resolver.find(written) {
            Found::Person(person) => {
                if !self.seen.insert(person.id.clone()) {
                    return None;
                }
                if self.expansion.people.len() >= MOST_PEOPLE {
                    self.fail(written, group, UndeliverableReason::TooMany);
                } else {
                    self.expansion.people.push(person);
                }
                None
            }
            Found::Group(found) => self.seen.insert(found.id.clone()).then_some(found),
            Found::Nobody => {
                match self.resolver.outside(written) {
                    Some(address) => self.leave(written, group, address),
                    None => self.fail(written, group, UndeliverableReason::Unknown),
                }
                None
            }
            Found::Several => {
                self.fail(written, group, UndeliverableReason::Ambiguous);
                None
            }
        }
    }

    /// Adds a recipient of another server.
    fn leave(&mut self, written: &str, group: Option<&Group>, address: Mailbox) {
        if self.expansion.outside.len() >= MESSAGE_RECIPIENTS_MAX {
            return self.fail(written, group, UndeliverableReason::TooMany);
        }
        if self.seen.insert(format!("\r{address}")) {
            self.expansion.outside.push(OutsideRecipient { address, written: written.to_owned() });
        }
    }

    fn fail(&mut self, written: &str, group: Option<&Group>, reason: UndeliverableReason) {
        // Told apart from ids, which never begin with a line end.
        if self.expansion.failures.len() < MOST_FAILURES
            && self.seen.insert(format!("\n{}", fold_name(written)))
        {
            self.expansion.failures.push(Undeliverable {
                written: written.to_owned(),
                group: group.map(|group| group.list_name.clone()),
                reason,
            });
        }
    }
}
