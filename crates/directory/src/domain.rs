//! What the directory says of a domain of the Internet whose mail comes here.

use std::collections::HashMap;
use std::sync::Arc;

use crate::DirectoryError;
use crate::fields::{Fields, check_identity, refuse, text};

/// The field `Form` of a domain.
pub const DOMAIN_FORM: &str = "Domain";

/// What every domain's id starts with.
pub const DOMAIN_PREFIX: &str = "domain:";

/// The longest name of a domain, in bytes (RFC 1035 §2.3.4).
const LONGEST_DOMAIN: usize = 253;

/// A domain, as read from a document of the directory. Mail for it is for this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryDomain {
    /// Its name, in lower case.
    pub name: String,
    /// Who gets what is for an address that nobody has: a name or an address of the directory.
    pub catch_all: Option<String>,
}

impl DirectoryDomain {
    /// Reads the document of a domain, whose id says its name.
    ///
    /// # Errors
    /// What is wrong with the document.
    pub fn read(id: &str, document: &Fields) -> Result<Self, DirectoryError> {
        let name = id.strip_prefix(DOMAIN_PREFIX).unwrap_or_default();
        check_name(name)?;
        Ok(Self { name: name.to_owned(), catch_all: text(document, "CatchAll")? })
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
pub(crate) struct Domains(HashMap<String, Arc<DirectoryDomain>>);

impl Domains {
    pub(crate) fn find(&self, name: &str) -> Option<Arc<DirectoryDomain>> {
        // Most servers have none.
        if self.0.is_empty() {
            return None;
        }
        self.0.get(name.to_lowercase().as_str()).cloned()
    }

    /// Takes over what the document of this id says.
    pub(crate) fn replace(&mut self, id: &str, domain: Option<DirectoryDomain>) {
        let name = id.strip_prefix(DOMAIN_PREFIX).unwrap_or_default();
        match domain {
            Some(domain) => drop(self.0.insert(name.to_owned(), Arc::new(domain))),
            None => drop(self.0.remove(name)),
        }
    }
}
