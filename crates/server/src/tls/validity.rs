//! From when to when a certificate is valid (RFC 5280 §4.1.2.5).

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const EXPLICIT_VERSION: u8 = 0xa0;

/// From when to when a certificate is valid, in seconds since 1970; `None` for one that cannot be read.
pub(crate) fn validity_of(certificate: &[u8]) -> Option<(u64, u64)> {
    let (inner, _) = expect(certificate, SEQUENCE)?;
    let (signed, _) = expect(inner, SEQUENCE)?;
    let rest = match expect(signed, EXPLICIT_VERSION) {
        Some((_version, rest)) => rest,
        None => signed,
    };
    // Serial number, algorithm, issuer.
    let (_, _, rest) = element(rest)?;
    let (_, rest) = expect(rest, SEQUENCE)?;
    let (_, rest) = expect(rest, SEQUENCE)?;
    let (validity, _) = expect(rest, SEQUENCE)?;
    let (kind, from, rest) = element(validity)?;
    let (until_kind, until, _) = element(rest)?;
    Some((seconds(kind, from)?, seconds(until_kind, until)?))
}

/// One element of DER: its kind, its content, and what follows.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        // A certificate has less than 16 MB.
        let fits = (1..=3).contains(&digits.len());
        let length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
        (fits.then_some(length)?, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*kind, content, rest))
}

fn expect(bytes: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (kind, content, rest) = element(bytes)?;
    (kind == wanted).then_some((content, rest))
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`.
fn seconds(kind: u8, text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let digits = match kind {
        GENERALIZED_TIME => text.to_owned(),
        UTC_TIME => {
            let century = if text.get(..2)?.parse::<u8>().ok()? < 50 { "20" } else { "19" };
            format!("{century}{text}")
        }
        _ => return None,
    };
    let is_time = digits.len() == 14 && digits.bytes().all(|digit| digit.is_ascii_digit());
    let moment = is_time.then(|| DateTime::strptime("%Y%m%d%H%M%S", &digits).ok()).flatten()?;
    let at: Timestamp = moment.to_zoned(TimeZone::UTC).ok()?.timestamp();
    u64::try_from(at.as_second()).ok()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    #[test]
    fn times_are_read_and_what_is_cut_has_none() {
        let mut parameters = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        for (until, expected) in [((2027, 3, 4), 1_804_118_400), ((2150, 1, 1), 5_680_281_600)] {
            parameters.not_before = rcgen::date_time_ymd(2026, 1, 2);
            parameters.not_after = rcgen::date_time_ymd(until.0, until.1, until.2);
            let made = parameters.self_signed(&key).unwrap();
            assert_eq!(validity_of(made.der()), Some((1_767_312_000, expected)));
            for length in 0..made.der().len().min(150) {
                assert_eq!(validity_of(&made.der()[..length]), None);
            }
        }
    }
}
