//! What the directory says of a domain of the Internet whose mail comes here.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::DirectoryError;
use crate::fields::{Fields, check_identity, refuse, text, texts};
use crate::names::fold_name;

/// The field `Form` of a domain.
pub const DOMAIN_FORM: &str = "Domain";

/// What every domain's id starts with.
pub const DOMAIN_PREFIX: &str = "domain:";

/// The longest name of a domain, in bytes (RFC 1035 §2.3.4).
const LONGEST_DOMAIN: usize = 253;

/// More people do not administer one domain.
const MOST_ADMINISTRATORS: usize = 100;

/// The group of all who administer a domain. Nobody else can be called so: names of people and groups begin with no asterisk.
pub const DOMAIN_ADMINISTRATORS: &str = "*administrators";

/// The group of the people of a domain that the directory has: of those whose `InternetAddress` is there.
#[must_use]
pub fn domain_members(domain: &str) -> String {
    format!("*/{}", domain.to_lowercase())
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
}

impl DirectoryDomain {
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
