//! How names are compared: hierarchical names abbreviated, case and spaces folded.

/// The abbreviated form of a hierarchical name: `CN=Ada Lovelace/OU=Engines/O=Acme` becomes
/// `Ada Lovelace/Engines/Acme`; other text is left as it is.
#[must_use]
pub fn abbreviate(name: &str) -> String {
    name.split('/').map(without_label).collect::<Vec<_>>().join("/")
}

fn without_label(part: &str) -> &str {
    let part = part.trim();
    match part.split_once('=') {
        Some((label, rest)) if ["cn", "ou", "o", "c"].contains(&label.to_ascii_lowercase().as_str()) => rest,
        _ => part,
    }
}

/// The first component of a hierarchical name: the person's own name.
#[must_use]
pub fn common_name(name: &str) -> &str {
    without_label(name.split('/').next().unwrap_or(name))
}

/// The form under which a name is looked up: abbreviated, lower case, single spaces.
#[must_use]
pub fn fold_name(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    for word in abbreviate(name).split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.extend(word.chars().flat_map(char::to_lowercase));
    }
    folded
}
