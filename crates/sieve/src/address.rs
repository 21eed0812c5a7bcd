//! Addresses as the test `address` sees them (RFC 5322, section 3.4, with the obsolete forms of section 4.4).

/// An address without its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// Without quotation marks and comments.
    Valid { local: String, domain: String },
    /// What cannot be read as an address, as it is written.
    Invalid(String),
}

impl Address {
    pub(crate) fn whole(&self) -> String {
        match self {
            Self::Valid { local, domain } => format!("{local}@{domain}"),
            Self::Invalid(text) => text.clone(),
        }
    }
}

/// The addresses of an unfolded field: at most `limit`.
pub(crate) fn list(field: &str, limit: usize) -> Vec<Address> {
    let mut found = Vec::new();
    let mut element = Element::default();
    let mut characters = field.chars();
    let mut in_angle = false;
    while let Some(character) = characters.next() {
        if found.len() >= limit {
            return found;
        }
        match character {
            '"' => element.quoted(&mut characters),
            '(' => skip_comment(&mut characters),
            '[' => element.literal(&mut characters),
            '<' => {
                in_angle = true;
                element = Element { is_angle: true, ..Element::default() };
            }
            '>' => in_angle = false,
            // A route before the address (RFC 5322, section 4.4).
            ':' if in_angle => element = Element { is_angle: true, ..Element::default() },
            // The name of a group.
            ':' => element = Element::default(),
            ',' if in_angle && element.pieces.first().is_some_and(|piece| piece.text.starts_with('@')) => {}
            ',' | ';' if !in_angle => found.extend(std::mem::take(&mut element).address()),
            '\\' => element.push(characters.next().unwrap_or('\\'), true),
            // Behind the address of `<..>` nothing counts.
            _ if element.is_angle && !in_angle => {}
            _ if character.is_whitespace() => element.blank(),
            _ => element.push(character, false),
        }
    }
    found.extend(element.address());
    found
}

/// The only address of a text, as `redirect` takes it: valid, and nothing else with it.
pub(crate) fn single(text: &str) -> Option<String> {
    if text.chars().any(char::is_control) || text.len() > ADDRESS_MAX_BYTES {
        return None;
    }
    match list(text, 2).as_slice() {
        [Address::Valid { local, domain }] if is_domain(domain) && !local.is_empty() => {
            Some(format!("{}@{domain}", quoted_if_needed(local)))
        }
        _ => None,
    }
}

/// RFC 5321, section 4.5.3.1, and room for names.
const ADDRESS_MAX_BYTES: usize = 1_024;

fn is_domain(domain: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_' || !c.is_ascii())
    };
    domain.starts_with('[') && domain.ends_with(']') || domain.split('.').all(label)
}

fn quoted_if_needed(local: &str) -> String {
    let is_atom = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii();
    if local.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom)) {
        return local.to_owned();
    }
    let escaped: String =
        local.chars().flat_map(|c| matches!(c, '"' | '\\').then_some('\\').into_iter().chain([c])).collect();
    format!("\"{escaped}\"")
}

/// A part of an address, and whether blanks stand before it.
#[derive(Debug, Default)]
struct Piece {
    text: String,
    is_quoted: bool,
    is_apart: bool,
}

#[derive(Debug, Default)]
struct Element {
    pieces: Vec<Piece>,
    /// It stands in `<..>`.
    is_angle: bool,
    is_apart: bool,
}

impl Element {
    fn push(&mut self, character: char, is_quoted: bool) {
        let apart = std::mem::take(&mut self.is_apart);
        match self.pieces.last_mut().filter(|piece| piece.is_quoted == is_quoted && !apart && !is_quoted) {
            Some(piece) => piece.text.push(character),
            None => {
                self.pieces.push(Piece { text: character.to_string(), is_quoted, is_apart: apart });
            }
        }
    }

    fn blank(&mut self) {
        self.is_apart = true;
    }

    fn quoted(&mut self, characters: &mut std::str::Chars<'_>) {
        let mut text = String::new();
        while let Some(character) = characters.next() {
            match character {
                '"' => break,
                '\\' => text.extend(characters.next()),
                _ => text.push(character),
            }
        }
        let is_apart = std::mem::take(&mut self.is_apart);
        self.pieces.push(Piece { text, is_quoted: true, is_apart });
    }

    /// A domain in brackets, with them.
    fn literal(&mut self, characters: &mut std::str::Chars<'_>) {
        self.push('[', false);
        for character in characters.by_ref() {
            self.push(character, false);
            if character == ']' {
                return;
            }
        }
    }

    fn address(self) -> Option<Address> {
        if self.pieces.is_empty() {
            return self.is_angle.then(|| Address::Invalid(String::new()));
        }
        // Where the last "@" stands that is not in quotation marks.
        let at = self.pieces.iter().rposition(|piece| !piece.is_quoted && piece.text.contains('@'));
        let Some(at) = at else { return Some(Address::Invalid(self.written())) };
        let (mut local, mut domain) = (String::new(), String::new());
        // Blanks may stand around dots and "@" alone.
        let mut is_valid = true;
        let mut before = '@';
        for (place, piece) in self.pieces.iter().enumerate() {
            let first = piece.text.chars().next().unwrap_or('a');
            let joins = matches!(before, '.' | '@') || matches!(first, '.' | '@') && !piece.is_quoted;
            is_valid &= joins || !piece.is_apart;
            let (left, right) = match piece.text.rsplit_once('@').filter(|_| place == at) {
                Some((left, right)) => (left, right),
                None if place < at => (piece.text.as_str(), ""),
                None => ("", piece.text.as_str()),
            };
            local.push_str(left);
            domain.push_str(right);
            is_valid &= place <= at || !piece.is_quoted;
            before = if piece.is_quoted { '"' } else { piece.text.chars().next_back().unwrap_or('a') };
        }
        let is_plain = |text: &str| !text.chars().any(char::is_control);
        is_valid &= is_plain(&local) && is_plain(&domain) && is_domain(&domain);
        is_valid &= self.pieces.iter().take(at + 1).any(|piece| piece.is_quoted) || is_local(&local);
        Some(if is_valid { Address::Valid { local, domain } } else { Address::Invalid(self.written()) })
    }

    fn written(&self) -> String {
        let mut written = String::new();
        for piece in &self.pieces {
            if piece.is_apart && !written.is_empty() {
                written.push(' ');
            }
            written.push_str(&piece.text);
        }
        written
    }
}

fn is_local(local: &str) -> bool {
    !local.is_empty() && !local.contains(['@', '(', ')', '<', '>', '[', ']'])
}

/// Comments stand in comments (RFC 5322, section 3.2.2).
fn skip_comment(characters: &mut std::str::Chars<'_>) {
    let mut depth = 1_u32;
    while let Some(character) = characters.next() {
        match character {
            '(' => depth = depth.saturating_add(1),
            ')' => depth -= 1,
            '\\' => {
                characters.next();
            }
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_as_they_are_written() {
        for (field, expected) in [
            ("Ada <ada@example.org>, bob@example.net", "ada@example.org bob@example.net"),
            ("\"Lovelace, Ada\" <ada@example.org> (a, b)", "ada@example.org"),
            (
                "friends: ada@a.example, Bob <bob@b.example>;, c@c.example",
                "ada@a.example bob@b.example c@c.example",
            ),
            ("<@a.example,@b.example:ada@c.example>", "ada@c.example"),
            ("ada . lovelace @ example . org", "ada.lovelace@example.org"),
            ("\"a b\"@example.org", "a b@example.org"),
            ("ada@[192.0.2.1]", "ada@[192.0.2.1]"),
            ("ada (the (first) one) @example.org", "ada@example.org"),
            ("undisclosed-recipients:;", ""),
            ("", ""),
        ] {
            let found: Vec<String> = list(field, 10).iter().map(Address::whole).collect();
            assert_eq!(found.join(" "), expected, "{field}");
        }
        for wrong in ["ada", "ada lovelace@example.org", "@example.org", "a@b@", "a@b c"] {
            assert!(matches!(list(wrong, 10).as_slice(), [Address::Invalid(_)]), "{wrong}");
        }
    }

    #[test]
    fn an_address_to_redirect_to_is_one_and_valid() {
        assert_eq!(single("Ada <ada@example.org>").as_deref(), Some("ada@example.org"));
        assert_eq!(single("\"a b\"@example.org").as_deref(), Some("\"a b\"@example.org"));
        for wrong in ["", "ada", "a@b.example, c@d.example", "a@b\r\nRcpt: x", "a@b..c", "<>", "@b.example"] {
            assert_eq!(single(wrong), None, "{wrong}");
        }
    }
}
