//! `Range` requests (RFC 9110 §14): one range of bytes, as download managers and players ask for.

/// What part of a content is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it: no range was asked for, or one we need not understand.
    Whole,
    /// From the first offset up to the second, which is not included.
    Part(u64, u64),
    /// A range that lies outside of the content.
    Outside,
}

/// Reads a `Range` header for a content of `length` bytes. Several ranges at once are answered with the
/// whole, which the RFC allows.
pub(crate) fn wanted(header: Option<&str>, length: u64) -> Wanted {
    let Some(range) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else {
        return Wanted::Whole;
    };
    let Some((first, last)) = range.split_once('-') else { return Wanted::Whole };
    let (first, last) = (first.trim(), last.trim());
    if first.is_empty() {
        return match number(last) {
            Some(0) => Wanted::Outside,
            Some(_) if length == 0 => Wanted::Outside,
            Some(suffix) => Wanted::Part(length.saturating_sub(suffix), length),
            None => Wanted::Whole,
        };
    }
    let Some(first) = number(first) else { return Wanted::Whole };
    let end = match last {
        "" => length,
        last => match number(last) {
            Some(last) if last < first => return Wanted::Whole,
            Some(last) => last.saturating_add(1).min(length),
            None => return Wanted::Whole,
        },
    };
    if first >= length { Wanted::Outside } else { Wanted::Part(first, end) }
}

/// A decimal number; one past 64 bits counts as the largest.
fn number(digits: &str) -> Option<u64> {
    let valid = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    valid.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_content() {
        for (header, expected) in [
            ("bytes=0-4", Wanted::Part(0, 5)),
            ("bytes=5-", Wanted::Part(5, 10)),
            ("bytes=-3", Wanted::Part(7, 10)),
            ("bytes=-30", Wanted::Part(0, 10)),
            ("bytes=9-99999999999999999999999", Wanted::Part(9, 10)),
            ("bytes=10-", Wanted::Outside),
            ("bytes=-0", Wanted::Outside),
            ("bytes=5-4", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("lines=1-2", Wanted::Whole),
        ] {
            assert_eq!(wanted(Some(header), 10), expected, "{header}");
        }
        assert_eq!(wanted(None, 10), Wanted::Whole);
    }
}
