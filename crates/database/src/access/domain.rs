//! Domains of the Internet as they count in access control lists: whom `default` reaches of those who have logged in.
//!
//! A domain with administrators of its own is an organisation of its own. Its people are in the group [`CONFINED`], and what others
//! give to everybody is not meant for them unless the list says so; nor is what they give meant for others. On a server without such
//! domains nobody is in that group, and `default` is everybody's, as in Domino.

use serde_json::Value;

use super::digest::folded;
use crate::error::{DatabaseError, Result};

/// The group of all people of domains that have administrators of their own. No group of a directory can be called so.
pub const CONFINED: &str = "*confined";

/// What the group of the people of a domain begins with.
const MEMBERS_PREFIX: &str = "*/";

/// The longest name of a domain, in bytes (RFC 1035 §2.3.4).
const DOMAIN_BYTES_MAX: usize = 253;

/// The group of the people of a domain that the directory has: of those whose `InternetAddress` is there.
#[must_use]
pub fn domain_members(domain: &str) -> String {
    format!("{MEMBERS_PREFIX}{}", domain.to_lowercase())
}

/// Whom `default` reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// It is not said: all but the people of domains with administrators of their own.
    Unsaid,
    Everybody,
    /// The people of this domain, in small letters.
    Domain(String),
}

impl Reach {
    /// Reads the member `domain` of `default`.
    pub(super) fn parse(value: Option<&Value>) -> Result<Self> {
        let wrong = || {
            DatabaseError::bad_request(
                "`domain` of `default` must be \"*\", which is everybody who has logged in, or a domain such as \"acme.example\".",
            )
        };
        let name = match value {
            None => return Ok(Self::Unsaid),
            Some(Value::String(name)) => name,
            Some(_) => return Err(wrong()),
        };
        if name == "*" {
            return Ok(Self::Everybody);
        }
        let is_foreign = |c: char| c.is_whitespace() || c.is_control() || "*/@[]".contains(c);
        if name.is_empty() || name.len() > DOMAIN_BYTES_MAX || name.contains(is_foreign) {
            return Err(wrong());
        }
        Ok(Self::Domain(name.to_lowercase()))
    }

    /// As [`Reach::parse`] reads it.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Unsaid => None,
            Self::Everybody => Some("*"),
            Self::Domain(name) => Some(name),
        }
    }

    /// Whether somebody in these groups is reached by a default that lets them read, or, with `is_deposit`, one that lets them put
    /// something in at most: mail boxes and the like are for people of all domains.
    pub(super) fn includes(&self, groups: &[String], is_deposit: bool) -> bool {
        let is_in = |group: &str| groups.iter().any(|own| folded(own) == folded(group));
        match self {
            Self::Unsaid => is_deposit || !is_in(CONFINED),
            Self::Everybody => true,
            Self::Domain(name) => is_in(&domain_members(name)),
        }
    }

    /// What it comes to when somebody in these groups says nothing of it: those of a domain with administrators mean their own.
    pub(super) fn said_by(self, groups: &[String]) -> Self {
        let own = groups.iter().find_map(|group| group.strip_prefix(MEMBERS_PREFIX));
        match (self, own) {
            (Self::Unsaid, Some(domain)) if groups.iter().any(|group| group == CONFINED) => {
                Self::Domain(domain.to_lowercase())
            }
            (said, _) => said,
        }
    }
}
