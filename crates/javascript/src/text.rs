//! JSON texts that come from the engine.

use std::borrow::Cow;

/// A JSON text in which each half of a surrogate pair that stands alone is the replacement character, as CouchDB
/// puts it. JavaScript has such texts and writes the half as an escape; Unicode, and so an index, has not.
pub(crate) fn well_formed(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let mut formed = String::with_capacity(json.len());
    let mut rest = json;
    while let Some((before, escape)) = rest.find('\\').and_then(|place| rest.split_at_checked(place)) {
        formed.push_str(before);
        let length = match (surrogate(escape), escape.get(6..).and_then(surrogate)) {
            (Some(first), Some(second)) if first < 0xdc00 && second >= 0xdc00 => 12,
            (Some(_), _) => {
                formed.push(char::REPLACEMENT_CHARACTER);
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            _ => 2,
        };
        let (kept, after) = escape.split_at_checked(length).unwrap_or((escape, ""));
        formed.push_str(kept);
        rest = after;
    }
    formed.push_str(rest);
    Cow::Owned(formed)
}

/// The half of a surrogate pair that is escaped at the beginning of `text`.
fn surrogate(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok().filter(|unit| (0xd800..0xe000).contains(unit))
}
