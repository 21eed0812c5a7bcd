//! Mail rules: what becomes of a message before it lies in a mail file, by formulas over its memo. There are those of the server,
//! for all messages, and each person's, for their own.
//!
//! A [`RuleSet`] is checked and compiled when it is set, and bounded: in rules, in actions, in the text of formulas, and in the steps
//! that all formulas of a set take together for one message. What cannot be evaluated does not apply, so a message is never lost
//! by a rule.

mod book;
mod model;

pub(crate) use book::seal_id;
pub use book::{RuleBook, RuleOwner, RulesError, is_rules_document};
pub(crate) use model::Verdict;
pub use model::{RuleSet, RuleSetError};
