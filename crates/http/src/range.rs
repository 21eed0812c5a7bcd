//! `Range` requests (RFC 9110 §14), read as CouchDB reads them: one range of bytes, as download managers and players ask
//! for, or a few.

/// More ranges than this are answered with the whole.
const MOST_RANGES: usize = 9;

/// What part of a content is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it: no range was asked for, or one we need not understand.
    Whole,
    /// Ranges, each from the first offset up to the second, which is not included.
    Parts(Vec<(u64, u64)>),
    /// A range that lies outside of the content, or ends before it begins.
    Outside,
}

/// Reads a `Range` header for a content of `length` bytes. What together is longer than the whole is answered with that.
pub(crate) fn wanted(header: Option<&str>, length: u64) -> Wanted {
    let Some(ranges) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else {
        return Wanted::Whole;
    };
    let mut parts = Vec::new();
    for range in ranges.split(',').map(str::trim).filter(|range| !range.is_empty()) {
        match one(range, length) {
            Some(Ok(part)) if parts.len() < MOST_RANGES => parts.push(part),
            Some(Err(Outside)) => return Wanted::Outside,
            // All from the beginning is no part, and what cannot be read is nothing.
            _ => return Wanted::Whole,
        }
    }
    let all = parts.iter().fold(0_u64, |all, (from, to)| all.saturating_add(to - from));
    if parts.is_empty() || (parts.len() > 1 && all > length) { Wanted::Whole } else { Wanted::Parts(parts) }
}

struct Outside;

/// One range; `None` for the whole.
fn one(range: &str, length: u64) -> Option<Result<(u64, u64), Outside>> {
    let (first, last) = range.split_once('-')?;
    let (first, last) = (first.trim(), last.trim());
    if first.is_empty() {
        let suffix = number(last)?;
        let fits = suffix > 0 && length > 0;
        return Some(if fits { Ok((length.saturating_sub(suffix), length)) } else { Err(Outside) });
    }
    let first = number(first)?;
    if last.is_empty() && first == 0 {
        return None;
    }
    let end = if last.is_empty() { length } else { number(last)?.saturating_add(1).min(length) };
    Some(if first < end { Ok((first, end)) } else { Err(Outside) })
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
        let part = |from, to| Wanted::Parts(vec![(from, to)]);
        for (header, expected) in [
            ("bytes=0-4", part(0, 5)),
            ("bytes=0-9", part(0, 10)),
            ("bytes=5-", part(5, 10)),
            ("bytes=0-", Wanted::Whole),
            ("bytes=-3", part(7, 10)),
            ("bytes=-30", part(0, 10)),
            ("bytes=9-99999999999999999999999", part(9, 10)),
            ("bytes=10-", Wanted::Outside),
            ("bytes=-0", Wanted::Outside),
            ("bytes=5-4", Wanted::Outside),
            ("bytes=0-0,2-2", Wanted::Parts(vec![(0, 1), (2, 3)])),
            ("bytes= 0-1 , -2", Wanted::Parts(vec![(0, 2), (8, 10)])),
            ("bytes=0-1,12-", Wanted::Outside),
            ("bytes=0-1,3-2", Wanted::Outside),
            ("bytes=0-9,0-9", Wanted::Whole),
            ("bytes=0-0,1-1,2-2,3-3,4-4,5-5,6-6,7-7,8-8,9-9", Wanted::Whole),
            ("bytes=0-1,x", Wanted::Whole),
            ("bytes=", Wanted::Whole),
            ("lines=1-2", Wanted::Whole),
        ] {
            assert_eq!(wanted(Some(header), 10), expected, "{header}");
        }
        assert_eq!(wanted(None, 10), Wanted::Whole);
    }
}
