//! Conditions of requests (RFC 9110, section 13).

use scrinium_dav_wire::header::{EntityTag, TagCondition};

/// Whether a request goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Verdict {
    Proceed,
    /// 304.
    NotModified,
    /// 412.
    Failed,
}

/// Holds If-Match and If-None-Match against a resource with this tag; `None` is one that is not there. `reads`: the method
/// is GET or HEAD. What cannot be read never holds.
#[must_use]
pub fn check(if_match: Option<&str>, if_none_match: Option<&str>, tag: Option<&str>, reads: bool) -> Verdict {
    if let Some(text) = if_match {
        let holds = match (TagCondition::parse(text), tag) {
            (Some(TagCondition::Any), Some(_)) => true,
            // Strong comparison (section 8.8.3.2).
            (Some(TagCondition::Tags(tags)), Some(tag)) => {
                tags.iter().any(|given: &EntityTag| !given.weak && given.tag == tag)
            }
            _ => false,
        };
        if !holds {
            return Verdict::Failed;
        }
    }
    if let Some(text) = if_none_match {
        let meets = match (TagCondition::parse(text), tag) {
            (_, None) => false,
            (Some(TagCondition::Any), Some(_)) => true,
            (Some(TagCondition::Tags(tags)), Some(tag)) => tags.iter().any(|given| given.tag == tag),
            (None, Some(_)) => !reads,
        };
        if meets {
            return if reads { Verdict::NotModified } else { Verdict::Failed };
        }
    }
    Verdict::Proceed
}
