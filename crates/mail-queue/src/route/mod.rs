//! Where a message goes: rules, rewriting, mail exchangers, addresses, and how well the connection is protected.
//!
//! All of it are functions of answers that the caller brings: from its tables, from DNS, and from a cache of policies.

mod exchangers;
mod protection;
mod rewrite;
mod rules;
mod targets;

pub use exchangers::{
    ALIASES_MAX, Exchanger, LookupStep, MxAnswer, MxLookup, MxRecord, OwnHosts, RouteError,
};
pub use protection::{
    Fallback, Login, Protection, ProtectionInputs, StsMode, StsPolicy, TlsRule, after_tls_trouble,
    choose_protection,
};
pub use rewrite::{REWRITE_RULES_MAX, RewriteError, RewriteTable};
pub use rules::{RELAY_PORT, RULES_MAX, Refusal, RelayHost, Transport, TransportError, TransportTable};
pub use targets::{AddressAnswer, AddressOrder, Target, TargetOptions, literal_target, targets};

/// A longer side of a rule is refused.
const RULE_MAX_BYTES: usize = 512;

/// Whether a text may be a side of a rule.
pub(crate) fn is_rule_text(text: &str) -> bool {
    let is_odd = |character: char| character.is_control() || character == ' ';
    !text.is_empty() && text.len() <= RULE_MAX_BYTES && !text.chars().any(is_odd)
}

/// A pattern with at most one `*`, over ASCII letters of either case. Gives what the star stands for.
pub(crate) fn matched<'a>(pattern: &str, text: &'a str) -> Option<&'a str> {
    let Some((before, after)) = pattern.split_once('*') else {
        return pattern.eq_ignore_ascii_case(text).then_some("");
    };
    let inside = text.len().checked_sub(before.len() + after.len())?;
    let start = text.get(..before.len())?;
    let end = text.get(before.len() + inside..)?;
    let fits = start.eq_ignore_ascii_case(before) && end.eq_ignore_ascii_case(after);
    if fits { text.get(before.len()..before.len() + inside) } else { None }
}
