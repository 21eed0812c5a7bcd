//! Who wrote a message, as its head says it: for a check whether the one who hands it in may.

use crate::address::WrittenAddress;
use crate::message::addresses_of;

/// More authors than these nobody has.
const MOST_AUTHORS: usize = 100;

/// The addresses of a `From` or `Sender` field. `None` where there are none, or where another program could read another one out of
/// it: what was checked must be what the recipient is shown.
#[must_use]
pub fn authors_of(field: &str) -> Option<Vec<String>> {
    let mut addresses: Vec<String> = addresses_of(field, MOST_AUTHORS + 1)
        .iter()
        .map(|written| WrittenAddress::read(written).address)
        .collect();
    let is_fine = |address: &String| bare_signs(address) == 1 && !address.contains(char::is_control);
    if addresses.is_empty() || addresses.len() > MOST_AUTHORS || !addresses.iter().all(is_fine) {
        return None;
    }
    if bare_signs(field) != addresses.len() {
        return None;
    }
    addresses.dedup();
    Some(addresses)
}

/// At signs outside of quotes and comments: each belongs to one address.
fn bare_signs(field: &str) -> usize {
    let (mut signs, mut depth, mut is_quoted, mut is_escaped) = (0, 0_usize, false, false);
    for character in field.chars() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted || depth > 0 => is_escaped = true,
            '"' if depth == 0 => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth = depth.saturating_sub(1),
            '@' if !is_quoted && depth == 0 => signs += 1,
            _ => {}
        }
    }
    // Where a quote or comment does not end, nobody knows what it hides.
    if is_quoted || depth > 0 { usize::MAX } else { signs }
}

#[cfg(test)]
mod tests {
    use super::authors_of;

    #[test]
    fn authors_are_whoever_a_program_could_show() {
        let ada = Some(vec!["ada@acme.example".to_owned()]);
        for field in [
            "ada@acme.example",
            "<ada@acme.example>",
            "Ada Lovelace <ada@acme.example>",
            "\"Lovelace, Ada\" <ada@acme.example>",
            "\"ada@home\" <ada@acme.example> (not eve@evil.example)",
            "=?utf-8?q?Ada_=40_home?= <ada@acme.example>",
            "Ada  L\u{f6}velace <ada@acme.example>",
            "Team: ada@acme.example;",
        ] {
            assert_eq!(authors_of(field), ada, "{field}");
        }
        assert_eq!(
            authors_of("Ada <ada@acme.example>, bob@acme.example").unwrap_or_default(),
            ["ada@acme.example", "bob@acme.example"]
        );
        for unclear in [
            "",
            "Ada",
            "undisclosed:;",
            "<@relay.example:ada@acme.example>",
            "ada@acme.example <eve@evil.example>",
            "\"ada <ada@acme.example>",
            "(ada ada@acme.example",
            "ada@acme.example@evil.example",
        ] {
            assert_eq!(authors_of(unclear), None, "{unclear}");
        }
        // Either none or both.
        for two in ["ada@acme.example eve@evil.example", "<ada@acme.example> eve@evil.example"] {
            assert!(authors_of(two).is_none_or(|found| found.len() == 2), "{two}");
        }
    }
}
