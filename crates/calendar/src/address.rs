//! Calendar users: `mailto:` addresses as calendars write them, and as people read them.

use scrinium_dav_wire::content::{Component, ContentLine};

/// An address for comparing: without `mailto:`, percent-decoded, in lower case. What is no mail address stays as it is, in
/// lower case.
#[must_use]
pub fn comparable(value: &str) -> String {
    let value = value.trim();
    let scheme = value.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("mailto:"));
    let address = value.get(scheme.map_or(0, str::len)..).unwrap_or_default();
    let address = address.split('?').next().unwrap_or_default();
    // Some programs write a name around the address.
    let decoded = percent_decoded(address);
    let inner = decoded.rsplit_once('<').map_or(decoded.as_str(), |(_, inner)| inner.trim_end_matches('>'));
    inner.trim().to_lowercase()
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped =
            digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Who a line names, as a mailbox: `Ada Lovelace <ada@example.com>`.
#[must_use]
pub fn mailbox(line: &ContentLine) -> String {
    let value = line.value().trim();
    let scheme = value.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("mailto:"));
    let address = percent_decoded(value.get(scheme.map_or(0, str::len)..).unwrap_or_default());
    match line.parameter("CN").map(str::trim) {
        Some(name) if !name.is_empty() && !name.eq_ignore_ascii_case(&address) => {
            let is_plain = |letter: char| letter.is_alphanumeric() || " '-_".contains(letter);
            if name.chars().all(is_plain) {
                format!("{name} <{address}>")
            } else {
                format!("\"{}\" <{address}>", name.replace('\\', "\\\\").replace('"', "\\\""))
            }
        }
        _ => address,
    }
}

/// Name and address of a mailbox; `None` if it has no address.
#[must_use]
pub fn parsed_mailbox(text: &str) -> Option<(Option<String>, String)> {
    let text = text.trim();
    let is_address = |address: &str| {
        address.contains('@')
            && !address.contains(|letter: char| {
                letter.is_whitespace() || letter.is_control() || "<>\"".contains(letter)
            })
    };
    let (name, address) = match text.rsplit_once('<') {
        Some((name, address)) => (name.trim(), address.strip_suffix('>')?.trim()),
        None => ("", text),
    };
    if !is_address(address) {
        return None;
    }
    let name = match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\\\"", "\"").replace("\\\\", "\\"),
        None => name.to_owned(),
    };
    Some((Some(name).filter(|name| !name.is_empty()), address.to_owned()))
}

/// The lines of all attendees.
pub fn attendees(component: &Component) -> impl Iterator<Item = &ContentLine> {
    component.lines().filter(|line| line.name() == "ATTENDEE")
}

/// The same, to be changed.
pub(crate) fn attendees_mut(component: &mut Component) -> impl Iterator<Item = &mut ContentLine> {
    component.lines_mut().filter(|line| line.name() == "ATTENDEE")
}

/// The line of an attendee with one of these addresses ([`comparable`]).
#[must_use]
pub fn attendee<'a>(component: &'a Component, addresses: &[impl AsRef<str>]) -> Option<&'a ContentLine> {
    attendees(component).find(|line| is_of(line, addresses))
}

/// The same, to be changed.
pub(crate) fn attendee_mut<'a>(
    component: &'a mut Component,
    addresses: &[impl AsRef<str>],
) -> Option<&'a mut ContentLine> {
    attendees_mut(component).find(|line| is_of(line, addresses))
}

fn is_of(line: &ContentLine, addresses: &[impl AsRef<str>]) -> bool {
    let address = comparable(line.value());
    addresses.iter().any(|one| one.as_ref() == address)
}

/// PARTSTAT in capitals; without one nobody has answered (RFC 5545, section 3.2.12).
#[must_use]
pub fn answer_of(line: &ContentLine) -> String {
    line.parameter("PARTSTAT").unwrap_or("NEEDS-ACTION").trim().to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use scrinium_dav_wire::Parameter;

    use super::*;

    #[test]
    fn a_mailbox_is_read_back() {
        let line = |name: &str, address: &str| {
            ContentLine::new("ATTENDEE", vec![Parameter::new("CN", name)], &format!("MAILTO:{address}"))
        };
        for name in ["Ada Lovelace", "Lovelace, Ada", "Ada \"the\" L\\", ""] {
            let mailbox = line(name, "Ada%40Home@a.test").map(|line| mailbox(&line)).unwrap_or_default();
            let expected =
                (Some(name.to_owned()).filter(|name| !name.is_empty()), "Ada@Home@a.test".to_owned());
            assert_eq!(parsed_mailbox(&mailbox), Some(expected), "{mailbox}");
        }
        assert_eq!(comparable("MAILTO:%22Ada%22%20%3CAda@A.test%3E"), "ada@a.test");
        for wrong in ["", "Ada", "<ada>", "Ada <a b@c>", "a@b>\r\nX:1"] {
            assert_eq!(parsed_mailbox(wrong), None, "{wrong}");
        }
    }
}
