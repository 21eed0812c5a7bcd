//! Parameters of lines, which iCalendar and vCard share (RFC 5545, section 3.2; RFC 6868).

/// A parameter and its values, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// In capitals.
    pub name: String,
    /// At least one.
    pub values: Vec<String>,
}

impl Parameter {
    /// A parameter with one value.
    #[must_use]
    pub fn new(name: &str, value: &str) -> Self {
        Self { name: name.to_ascii_uppercase(), values: vec![value.to_owned()] }
    }

    pub(crate) fn write(&self, out: &mut String) {
        out.push(';');
        out.push_str(&self.name);
        for (index, value) in self.values.iter().enumerate() {
            out.push(if index == 0 { '=' } else { ',' });
            let encoded = encoded(value);
            if encoded.is_empty() || encoded.contains([':', ';', ',']) {
                out.push('"');
                out.push_str(&encoded);
                out.push('"');
            } else {
                out.push_str(&encoded);
            }
        }
    }
}

/// Line ends, quotation marks and `^` by RFC 6868; other control characters cannot be written.
fn encoded(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '^' => out.push_str("^^"),
            '\n' => out.push_str("^n"),
            '"' => out.push_str("^'"),
            '\t' => out.push('\t'),
            character if character.is_control() => {}
            character => out.push(character),
        }
    }
    out
}

pub(crate) fn decoded(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value.chars();
    while let Some(character) = rest.next() {
        if character != '^' {
            out.push(character);
            continue;
        }
        match rest.clone().next() {
            Some('^') => out.push('^'),
            Some('n') => out.push('\n'),
            Some('\'') => out.push('"'),
            _ => {
                out.push('^');
                continue;
            }
        }
        rest.next();
    }
    out
}
