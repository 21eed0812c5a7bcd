//! What the directory says of a domain of the Internet whose mail comes here.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use scrinium_database::{CONFINED, domain_members};
use serde_json::Value;

use crate::DirectoryError;
use crate::fields::{Fields, check_identity, refuse, text, texts};
use crate::names::fold_name;

/// The field `Form` of a domain.
pub const DOMAIN_FORM: &str = "Domain";

/// What every domain's id starts with.
pub const DOMAIN_PREFIX: &str = "domain:";

/// What [`domain_members`] begins with.
const DOMAIN_MEMBERS: &str = "*/";

/// The longest name of a domain, in bytes (RFC 1035 §2.3.4).
const LONGEST_DOMAIN: usize = 253;

/// More people do not administer one domain.
const MOST_ADMINISTRATORS: usize = 100;

/// The group that stands in the `Readers` of what others see by its address alone. Nobody is in it: a door that shows names and
/// addresses and nothing else, as that of LDAP does, reads with it.
pub const ADDRESS_READERS: &str = "*addresses";

/// The group of all who administer a domain. Nobody else can be called so: names of people and groups begin with no asterisk.
pub const DOMAIN_ADMINISTRATORS: &str = "*administrators";

/// The group of those who administer one domain.
pub(crate) fn administrators_of(domain: &str) -> String {
    format!("{DOMAIN_ADMINISTRATORS}/{domain}")
}

/// What those who are not of a domain see of its people, groups and mail-in databases in the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutsidersSee {
    /// None of them.
    Nothing,
    /// Their names and addresses, where a door can show these alone.
    Addresses,
    /// What the directory's access list lets them read.
    All,
}

impl OutsidersSee {
    /// As the field has it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Addresses => "addresses",
            Self::All => "all",
        }
    }

    fn read(document: &Fields) -> Result<Option<Self>, DirectoryError> {
        const FIELD: &str = "OutsidersSee";
        match text(document, FIELD)?.as_deref() {
            None => Ok(None),
            Some("nothing") => Ok(Some(Self::Nothing)),
            Some("addresses") => Ok(Some(Self::Addresses)),
            Some("all") => Ok(Some(Self::All)),
            Some(other) => Err(refuse(FIELD, other, "it is nothing, addresses or all")),
        }
    }
}

/// The domain of an address, in lower case.
pub(crate) fn domain_of(address: &str) -> Option<String> {
    address.rsplit_once('@').map(|(_, domain)| domain.to_lowercase())
}

/// A domain, as read from a document of the directory. Mail for it is for this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryDomain {
    /// Its name, in lower case.
    pub name: String,
    /// Who gets what is for an address that nobody has: a name or an address of the directory.
    pub catch_all: Option<String>,
    /// The people who add, change and disable its people and groups: their names. No group stands for them, as others say who is
    /// in a group.
    pub administrators: Vec<String>,
    /// What others see of it, where that is said.
    pub outsiders_see: Option<OutsidersSee>,
}

impl DirectoryDomain {
    /// What others see of it: where it is not said, nothing of a domain with administrators of its own, and all of others.
    #[must_use]
    pub fn outsiders_see(&self) -> OutsidersSee {
        let usual = if self.administrators.is_empty() { OutsidersSee::All } else { OutsidersSee::Nothing };
        self.outsiders_see.unwrap_or(usual)
    }

    /// The `Readers` of its people, groups and mail-in databases; `None` where it keeps nobody out.
    fn readers(&self) -> Option<Value> {
        let mut readers = vec![domain_members(&self.name), administrators_of(&self.name)];
        match self.outsiders_see() {
            OutsidersSee::Nothing => {}
            OutsidersSee::Addresses => readers.push(ADDRESS_READERS.to_owned()),
            OutsidersSee::All => return None,
        }
        Some(Value::from(readers))
    }

    /// Reads the document of a domain, whose id says its name.
    ///
    /// # Errors
    /// What is wrong with the document.
    pub fn read(id: &str, document: &Fields) -> Result<Self, DirectoryError> {
        let name = id.strip_prefix(DOMAIN_PREFIX).unwrap_or_default();
        check_name(name)?;
        Ok(Self {
            name: name.to_owned(),
            catch_all: text(document, "CatchAll")?,
            administrators: texts(document, "Administrators", MOST_ADMINISTRATORS)?,
            outsiders_see: OutsidersSee::read(document)?,
        })
    }
}

fn check_name(name: &str) -> Result<(), DirectoryError> {
    let is_label = |label: &str| {
        let fits = (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-');
        fits && label
            .chars()
            .all(|c| !c.is_ascii() || c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    let is_lower = name.to_lowercase() == name && !name.contains(char::is_whitespace);
    if name.len() <= LONGEST_DOMAIN && is_lower && name.split('.').all(is_label) {
        return Ok(());
    }
    let rule = "the id of a domain is \"domain:\" and its name in small letters, such as domain:acme.example";
    Err(refuse("_id", name, rule))
}

/// Checks a domain's document on its way into the directory.
///
/// # Errors
/// What is wrong with the document, in words for the one who wrote it.
pub fn prepare_domain(mut document: Fields) -> Result<Fields, DirectoryError> {
    let id = check_identity(&mut document, DOMAIN_PREFIX, DOMAIN_FORM)?;
    DirectoryDomain::read(&id, &document)?;
    Ok(document)
}

/// Whether `Readers` are those that [`Domains::readers_instead`] gives, for some domain.
fn is_of_a_domain(readers: &Value) -> bool {
    let texts: Vec<&str> = readers.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let ([members, administrators] | [members, administrators, ADDRESS_READERS]) = texts.as_slice() else {
        return false;
    };
    let domain = members.strip_prefix(DOMAIN_MEMBERS);
    domain.is_some_and(|domain| **administrators == administrators_of(domain))
}

/// Whether `Readers` keep nobody out.
fn is_everybody(readers: &Value) -> bool {
    let is_open = |name: &str| name.trim() == "*";
    match readers {
        Value::Null => true,
        Value::String(name) => name.trim().is_empty() || is_open(name),
        Value::Array(names) => {
            let mut texts = names.iter().map(Value::as_str);
            names.is_empty() || texts.any(|name| name.is_some_and(is_open))
        }
        _ => false,
    }
}

/// The domains of a directory.
#[derive(Default)]
pub(crate) struct Domains {
    by_name: HashMap<String, Arc<DirectoryDomain>>,
    /// Names of domains by the folded names of those who administer them.
    by_administrator: HashMap<String, BTreeSet<String>>,
}

impl Domains {
    pub(crate) fn find(&self, name: &str) -> Option<Arc<DirectoryDomain>> {
        // Most servers have none.
        if self.by_name.is_empty() {
            return None;
        }
        self.by_name.get(name.to_lowercase().as_str()).cloned()
    }

    /// The domains that somebody of one of these folded names administers.
    pub(crate) fn administered_by<'n>(&self, names: impl Iterator<Item = &'n str>) -> BTreeSet<String> {
        names.filter_map(|name| self.by_administrator.get(name)).flatten().cloned().collect()
    }

    /// The groups that somebody is in by the domain of their main address: that of its people, and of all who are confined to theirs.
    pub(crate) fn groups_of(&self, domain: &str) -> Vec<String> {
        let Some(domain) = self.find(domain) else { return Vec::new() };
        let mut groups = vec![domain_members(&domain.name)];
        if !domain.administrators.is_empty() {
            groups.push(CONFINED.to_owned());
        }
        groups
    }

    /// What `Readers` of a document of this domain have to be instead of those that it has, if it is to have others. Readers that
    /// somebody has named stay, unless they are everybody: fewer may read the document than the domain says, and no more.
    pub(crate) fn readers_instead(
        &self,
        domain: Option<&str>,
        present: Option<&Value>,
    ) -> Option<Option<Value>> {
        let readers = domain.and_then(|domain| self.find(domain)).and_then(|domain| domain.readers());
        let is_ours = present.is_some_and(is_of_a_domain);
        match readers {
            Some(readers) if is_ours || present.is_none_or(is_everybody) => {
                (present != Some(&readers)).then_some(Some(readers))
            }
            None if is_ours => Some(None),
            _ => None,
        }
    }

    /// Whether any domain has administrators of its own.
    pub(crate) fn have_administrators(&self) -> bool {
        !self.by_administrator.is_empty()
    }

    /// Takes over what the document of this id says.
    pub(crate) fn replace(&mut self, id: &str, domain: Option<DirectoryDomain>) {
        let name = id.strip_prefix(DOMAIN_PREFIX).unwrap_or_default();
        if let Some(before) = self.by_name.remove(name) {
            for administrator in &before.administrators {
                let administrator = fold_name(administrator);
                if let Some(domains) = self.by_administrator.get_mut(&administrator) {
                    domains.remove(name);
                    if domains.is_empty() {
                        self.by_administrator.remove(&administrator);
                    }
                }
            }
        }
        if let Some(domain) = domain {
            for administrator in &domain.administrators {
                let domains = self.by_administrator.entry(fold_name(administrator)).or_default();
                domains.insert(name.to_owned());
            }
            self.by_name.insert(name.to_owned(), Arc::new(domain));
        }
    }
}
