//! How a memo writes an address: `Ada Lovelace <ada@acme.example>`.

/// A recipient as it is written in a memo, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenAddress {
    /// The name before the address; empty where there is none.
    pub name: String,
    /// The Internet address; empty where only a name is written.
    pub address: String,
}

/// Writes a name and an address, either of which may be empty. A name that would be misread is quoted
/// (RFC 5322 §3.2.4).
#[must_use]
pub fn format_address(name: &str, address: &str) -> String {
    let (name, address) = (name.trim(), address.trim());
    match (name.is_empty(), address.is_empty()) {
        (true, _) => address.to_owned(),
        (false, true) => name.to_owned(),
        (false, false) if name == address => address.to_owned(),
        (false, false) if name.contains(['"', '<', '>', ',', ';', '@', '\\']) => {
            format!("\"{}\" <{address}>", name.replace('\\', "\\\\").replace('"', "\\\""))
        }
        (false, false) => format!("{name} <{address}>"),
    }
}

impl WrittenAddress {
    /// Takes one written recipient apart. Whatever is written gives something: text without angle brackets is
    /// an address if it holds an `@`, else a name.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let text = text.trim();
        let bracketed = text.strip_suffix('>').and_then(|text| text.rsplit_once('<'));
        if let Some((name, address)) = bracketed {
            return Self { name: unquote(name.trim()), address: address.trim().to_owned() };
        }
        let has_quoted_local_part = text.starts_with('"') && text.contains("\"@");
        if has_quoted_local_part || (text.contains('@') && !text.contains(char::is_whitespace)) {
            return Self { name: String::new(), address: text.to_owned() };
        }
        Self { name: unquote(text), address: String::new() }
    }

    /// Who is meant. The name next to an address is only decoration: the address says it.
    pub(crate) fn meant(&self) -> &str {
        if self.address.is_empty() { &self.name } else { &self.address }
    }
}

fn unquote(text: &str) -> String {
    let Some(quoted) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        return text.to_owned();
    };
    let mut plain = String::with_capacity(quoted.len());
    let mut escaped = false;
    for character in quoted.chars() {
        if character == '\\' && !escaped {
            escaped = true;
        } else {
            plain.push(character);
            escaped = false;
        }
    }
    plain
}
