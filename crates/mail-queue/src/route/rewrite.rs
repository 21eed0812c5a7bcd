//! Rewriting of addresses: one becomes another.

use std::collections::{HashMap, HashSet};

use scrinium_smtp_wire::{Domain, Mailbox};
use thiserror::Error;

use super::{is_rule_text, matched};
use crate::message::domain_name;
use crate::outcome::clean_text;

/// More rules are refused.
pub const REWRITE_RULES_MAX: usize = 100_000;

/// More rules with a star in them are refused: each is looked at for each address.
const PATTERNS_MAX: usize = 1_000;

/// An address that is rewritten more often goes round in a circle, or might as well.
const STEPS_MAX: usize = 16;

/// Why an address is not rewritten, or rules are not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RewriteError {
    /// Round in a circle.
    #[error("the rules that rewrite {0} lead around in a circle, or through more than {STEPS_MAX} steps")]
    Circle(String),
    /// What comes out is no address.
    #[error("the rules make of {from} the address {to}, which is not valid")]
    Invalid {
        /// The address before.
        from: String,
        /// And after.
        to: String,
    },
    /// [`REWRITE_RULES_MAX`].
    #[error(
        "there are more than {REWRITE_RULES_MAX} rules for rewriting, or more than {PATTERNS_MAX} with a star in them"
    )]
    TooMany,
    /// A rule's sides.
    #[error(
        "a rule for rewriting turns an address into an address, a domain into a domain or an address, or has one star on the left and at most one on the right: {0}"
    )]
    Rule(String),
}

/// Rules for rewriting: `ada@old.example` to `ada.lovelace@new.example`, `old.example` to `new.example`, or
/// `sales-*@old.example` to `*@sales.example`. Addresses win over patterns, which are looked at in their order, and these
/// over domains. What comes out is rewritten again.
#[derive(Clone, Debug, Default)]
pub struct RewriteTable {
    exact: HashMap<String, String>,
    domains: HashMap<String, String>,
    patterns: Vec<(String, String)>,
}

impl RewriteTable {
    /// Adds a rule. A later one for the same takes the place of the earlier.
    ///
    /// # Errors
    /// [`RewriteError::TooMany`] and [`RewriteError::Rule`]
    pub fn add(&mut self, from: &str, to: &str) -> Result<(), RewriteError> {
        let stars = |text: &str| text.matches('*').count();
        let (from, to) = (from.to_lowercase(), to.to_owned());
        let is_rule = is_rule_text(&from)
            && is_rule_text(&to)
            && stars(&from) <= 1
            && stars(&to) <= stars(&from)
            && (!from.contains('@') || to.contains('@'))
            && (stars(&from) == 0 || from.contains('@'));
        if !is_rule {
            return Err(RewriteError::Rule(clean_text(&format!("{from} to {to}"))));
        }
        let count = self.exact.len() + self.domains.len() + self.patterns.len();
        if count >= REWRITE_RULES_MAX || (stars(&from) == 1 && self.patterns.len() >= PATTERNS_MAX) {
            return Err(RewriteError::TooMany);
        }
        if stars(&from) == 1 {
            self.patterns.retain(|(other, _)| *other != from);
            self.patterns.push((from, to));
        } else if from.contains('@') {
            self.exact.insert(from, to);
        } else {
            self.domains.insert(from, to);
        }
        Ok(())
    }

    /// What an address becomes; itself if no rule is for it.
    ///
    /// # Errors
    /// [`RewriteError::Circle`] and [`RewriteError::Invalid`]
    pub fn rewrite(&self, address: &Mailbox) -> Result<Mailbox, RewriteError> {
        let mut current = address.clone();
        let mut seen = HashSet::new();
        for _ in 0..=STEPS_MAX {
            let Some(next) = self.step(&current) else { return Ok(current) };
            let next = read(&next)
                .ok_or_else(|| RewriteError::Invalid { from: address.to_string(), to: clean_text(&next) })?;
            // A rule that leads to the same address is an end, as for a domain that keeps some of its addresses.
            if next == current {
                return Ok(current);
            }
            if !seen.insert(std::mem::replace(&mut current, next)) {
                break;
            }
        }
        Err(RewriteError::Circle(address.to_string()))
    }

    fn step(&self, address: &Mailbox) -> Option<String> {
        let domain = domain_name(address.domain());
        let plain = format!("{}@{domain}", address.local());
        if let Some(to) = self.exact.get(&plain.to_lowercase()) {
            return Some(to.clone());
        }
        for (from, to) in &self.patterns {
            if let Some(star) = matched(from, &plain) {
                return Some(to.replacen('*', star, 1));
            }
        }
        let to = self.domains.get(&domain)?;
        if to.contains('@') {
            return Some(to.clone());
        }
        let domain = Domain::parse(to.as_bytes()).ok()?;
        Mailbox::new(address.local(), domain).ok().map(|address| address.to_string())
    }
}

/// An address, or a local part without the quotes that it would need, and a domain.
fn read(text: &str) -> Option<Mailbox> {
    Mailbox::parse(text.as_bytes()).ok().or_else(|| {
        let (local, domain) = text.rsplit_once('@')?;
        Mailbox::new(local, Domain::parse(domain.as_bytes()).ok()?).ok()
    })
}
