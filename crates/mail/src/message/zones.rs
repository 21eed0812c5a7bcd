//! Time zones as dates name them.

/// Names in lower case and their minutes east of UTC: those of RFC 5322 §4.3, and others that mean one thing in mail.
/// `IST` is missing: it is India's, Israel's and Ireland's.
const NAMES: [(&str, i32); 61] = [
    ("acdt", 630),
    ("acst", 570),
    ("adt", -180),
    ("aedt", 660),
    ("aest", 600),
    ("akdt", -480),
    ("akst", -540),
    ("art", -180),
    ("ast", -240),
    ("awst", 480),
    ("brst", -120),
    ("brt", -180),
    ("bst", 60),
    ("cat", 120),
    ("cdt", -300),
    ("cest", 120),
    ("cet", 60),
    ("clt", -240),
    ("cst", -360),
    ("cst6cdt", -360),
    ("eat", 180),
    ("edt", -240),
    ("eest", 180),
    ("eet", 120),
    ("est", -300),
    ("est5edt", -300),
    ("gmt", 0),
    ("hkt", 480),
    ("hst", -600),
    ("idt", 180),
    ("jst", 540),
    ("kst", 540),
    ("mdt", -360),
    ("mest", 120),
    ("mesz", 120),
    ("met", 60),
    ("met dst", 120),
    ("metdst", 120),
    ("mewt", 60),
    ("mez", 60),
    ("msd", 240),
    ("msk", 180),
    ("mst", -420),
    ("mst7mdt", -420),
    ("ndt", -150),
    ("nst", -210),
    ("nzdt", 780),
    ("nzst", 720),
    ("pdt", -420),
    ("pht", 480),
    ("pkt", 300),
    ("pst", -480),
    ("pst8pdt", -480),
    ("sast", 120),
    ("sgt", 480),
    ("ut", 0),
    ("utc", 0),
    ("west", 60),
    ("wet", 0),
    ("wib", 420),
    ("z", 0),
];

/// A number is taken at its word up to this many hours: senders whose clocks are set to no zone there is mean what they write.
const MOST_HOURS: i32 = 23;

/// Minutes east of UTC of a zone's name, however it is written. The other letters of RFC 822's military zones had the wrong
/// sign there, so that they say nothing (RFC 5322 §4.3).
pub(super) fn named(name: &str) -> Option<i32> {
    let lower = name.trim_end_matches('.').to_ascii_lowercase();
    NAMES
        .binary_search_by_key(&lower.as_str(), |zone| zone.0)
        .ok()
        .and_then(|place| NAMES.get(place))
        .map(|zone| zone.1)
}

/// A zone of several words, `Eastern Standard Time`: its minutes, and how many words it has.
pub(super) fn in_words(words: &[&str]) -> Option<(i32, usize)> {
    let lower: Vec<String> = words.iter().take(3).map(|word| word.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    match lower.as_slice() {
        ["met", "dst", ..] => Some((120, 2)),
        ["greenwich", "mean", "time"] => Some((0, 3)),
        [place, season, "time"] => {
            let standard = match *place {
                "eastern" => -300,
                "central" => -360,
                "mountain" => -420,
                "pacific" => -480,
                _ => return None,
            };
            match *season {
                "standard" => Some((standard, 3)),
                "daylight" => Some((standard + 60, 3)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Minutes east of UTC of `+0200`, `+02:00`, `+200`, `+02` or `+2`.
pub(super) fn numbered(text: &str) -> Option<i32> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if digits.len() <= 2 => (digits, "0"),
        None => digits.split_at_checked(digits.len() - 2)?,
    };
    let number =
        |text: &str| super::decode::number(text.as_bytes()).and_then(|number| i32::try_from(number).ok());
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= MOST_HOURS && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

#[cfg(test)]
mod tests {
    use super::{NAMES, named};

    #[test]
    fn names_are_in_the_order_that_they_are_looked_up_in() {
        assert!(NAMES.is_sorted_by_key(|zone| zone.0));
        assert_eq!(named("Cest"), Some(120));
        assert_eq!(named("nowhere"), None);
    }
}
