//! Patterns of LIST (RFC 9051, section 6.3.9).

/// What stands between levels.
pub(crate) const DELIMITER: char = '/';

/// Whether a name matches: `*` stands for anything, `%` for anything within a level. INBOX has any case.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (folded(pattern), folded(name));
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut in_name) = (0, 0);
    // Where to go on after a `*` and a `%` if what follows does not fit: behind it in the pattern, and one further in the name.
    let mut star: Option<(usize, usize)> = None;
    let mut percent: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(at), name.get(in_name)) {
            (None, None) => return true,
            (Some(b'*'), _) => {
                at += 1;
                (star, percent) = (Some((at, in_name)), None);
                continue;
            }
            (Some(b'%'), _) => {
                at += 1;
                percent = Some((at, in_name));
                continue;
            }
            (Some(wanted), Some(found)) if wanted == found => {
                at += 1;
                in_name += 1;
                continue;
            }
            _ => {}
        }
        if let Some((behind, begun)) = percent
            && name.get(begun).is_some_and(|found| *found != b'/')
        {
            percent = Some((behind, begun + 1));
            (at, in_name) = (behind, begun + 1);
        } else if let Some((behind, begun)) = star
            && begun < name.len()
        {
            (star, percent) = (Some((behind, begun + 1)), None);
            (at, in_name) = (behind, begun + 1);
        } else {
            return false;
        }
    }
}

/// A name whose first level is INBOX in one case.
fn folded(name: &str) -> std::borrow::Cow<'_, str> {
    match name.get(..5) {
        Some(first) if first.eq_ignore_ascii_case("INBOX") && first != "INBOX" => {
            let rest = name.get(5..).unwrap_or_default();
            if rest.is_empty() || rest.starts_with(['/', '*', '%']) {
                return format!("INBOX{rest}").into();
            }
            name.into()
        }
        _ => name.into(),
    }
}

/// What all names begin with that match one of the patterns.
pub(crate) fn common_prefix(patterns: &[String]) -> String {
    let fixed = |pattern: &String| {
        let folded = folded(pattern).into_owned();
        folded.split(['*', '%']).next().unwrap_or_default().to_owned()
    };
    let mut prefixes = patterns.iter().map(fixed);
    let Some(mut common) = prefixes.next() else { return String::new() };
    for prefix in prefixes {
        let same = common.char_indices().zip(prefix.chars()).find(|((_, one), other)| one != other);
        let end = same.map_or_else(|| common.len().min(prefix.len()), |((at, _), _)| at);
        common.truncate(end);
    }
    // `inbox*` in any case may also be `INBOX`.
    if common.len() < 5 && "inbox".starts_with(&common.to_ascii_lowercase()) { String::new() } else { common }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_within_levels_and_across_them() {
        for (pattern, name, expected) in [
            ("*", "a/b", true),
            ("%", "a", true),
            ("%", "a/b", false),
            ("a/%", "a/b", true),
            ("a/%", "a/b/c", false),
            ("%/%b", "aa/xb", true),
            ("*b%", "a/b/xbc", true),
            ("%b*d", "ab/c/d", true),
            ("%b*d", "a/b/d", false),
            ("inbox", "INBOX", true),
            ("Inbox/%", "INBOX/a", true),
            ("inboxes", "INBOXES", false),
            ("*a*a*a*a*b", &"a".repeat(200), false),
            ("", "a", false),
            ("ä%", "äö", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
        assert_eq!(common_prefix(&["Users/a*".to_owned(), "Users/b%".to_owned()]), "Users/");
        assert_eq!(common_prefix(&["inb*".to_owned()]), "");
    }
}
