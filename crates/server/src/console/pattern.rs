//! Choosing names: a facility, or a pattern with `*` and `?`.

/// Whether `name` is chosen by `filter`, whatever the case: with `*` (any letters) or `?` (one letter) as a
/// pattern, else as the name itself or the words that it begins with (`Server` chooses `Server.Users`).
pub(super) fn chooses(filter: &str, name: &str) -> bool {
    let (filter, name) = (filter.to_lowercase(), name.to_lowercase());
    if filter.contains(['*', '?']) {
        return matches(filter.as_bytes(), name.as_bytes());
    }
    let rest = name.strip_prefix(filter.trim_end_matches('.'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a name is as the pattern says, with `*` (any letters) and `?` (one letter), whatever the case.
pub(super) fn matches_name(pattern: &str, name: &str) -> bool {
    matches(pattern.to_lowercase().as_bytes(), name.to_lowercase().as_bytes())
}

/// Matches with one place to come back to, so that the time is at most the product of the lengths.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at_pattern, mut at_name) = (0, 0);
    let mut come_back: Option<(usize, usize)> = None;
    while let Some(letter) = name.get(at_name) {
        match pattern.get(at_pattern) {
            Some(b'*') => {
                come_back = Some((at_pattern + 1, at_name));
                at_pattern += 1;
            }
            Some(wanted) if *wanted == b'?' || wanted == letter => {
                at_pattern += 1;
                at_name += 1;
            }
            _ => {
                let Some((after_star, from)) = come_back else { return false };
                come_back = Some((after_star, from + 1));
                (at_pattern, at_name) = (after_star, from + 1);
            }
        }
    }
    pattern.iter().skip(at_pattern).all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_definition(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], rest) => rest.is_empty(),
            ([b'*', pattern @ ..], name) => {
                (0..=name.len()).any(|skip| by_definition(pattern, &name[skip..]))
            }
            ([wanted, pattern @ ..], [letter, name @ ..]) => {
                (*wanted == b'?' || wanted == letter) && by_definition(pattern, name)
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn patterns_match_as_defined(pattern in "[ab*?]{0,8}", name in "[ab]{0,10}") {
            prop_assert_eq!(
                matches(pattern.as_bytes(), name.as_bytes()),
                by_definition(pattern.as_bytes(), name.as_bytes())
            );
        }
    }

    #[test]
    fn a_facility_chooses_whole_words() {
        assert!(chooses("server", "Server.Users") && chooses("Server.", "Server.Users"));
        assert!(chooses("SERVER.USERS", "Server.Users"));
        assert!(!chooses("Serv", "Server.Users") && !chooses("Server.User", "Server.Users"));
    }
}
