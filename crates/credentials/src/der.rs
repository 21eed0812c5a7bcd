//! As much of DER (X.690) as certificates and public keys need to be found in: definite lengths, a place to stand, no copies.

/// The tag of a SEQUENCE.
pub(crate) const SEQUENCE: u8 = 0x30;
/// The tag of an OBJECT IDENTIFIER.
pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
/// The tag of a BIT STRING.
pub(crate) const BIT_STRING: u8 = 0x03;
/// The tag of an INTEGER.
pub(crate) const INTEGER: u8 = 0x02;

/// Takes one element with this tag; gives its contents and what follows it.
pub(crate) fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    if *found != tag {
        return None;
    }
    let (first, rest) = rest.split_first()?;
    // X.690, section 8.1.3: up to 127 in one byte, else as many bytes as the lower bits say, most significant first.
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x83 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// The contents of a SEQUENCE that is all there is.
pub(crate) fn sequence(bytes: &[u8]) -> Option<&[u8]> {
    element(bytes, SEQUENCE).and_then(|(contents, rest)| rest.is_empty().then_some(contents))
}

/// The digits of a whole number that is not negative, without leading zeros, and what follows it.
pub(crate) fn unsigned(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (contents, rest) = element(bytes, INTEGER)?;
    let number = match contents {
        [0, number @ ..] if !number.is_empty() => number,
        [first, ..] if *first < 0x80 => contents,
        _ => return None,
    };
    Some((number, rest))
}
