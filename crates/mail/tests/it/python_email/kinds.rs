//! Kinds of disagreements that are known, each with the reason why the memo is right. A kind is narrow: its test holds
//! for what it names and for nothing else.

use super::pair::{Difference, Pair, words};

/// A kind of disagreement.
struct Kind {
    /// What Python does there, and why the memo does not.
    reason: &'static str,
    fields: &'static [&'static str],
    is: fn(&Pair<'_>, &Difference) -> bool,
}

const ADDRESSES: &[&str] = &["From", "SendTo", "CopyTo"];
const TEXTS: &[&str] = &["Body", "first text"];
const FILES: &[&str] = &["$FileNames"];

const KINDS: &[Kind] = &[
    Kind {
        reason: "8-bit characters inside encoded words leave the word as it stands in Python; mail programs read it",
        fields: &["Subject"],
        is: |pair, it| {
            it.theirs.contains("=?") && !it.ours.contains("=?") && !pair.theirs.raw("subject").is_ascii()
        },
    },
    Kind {
        reason: "ISO-8859-1 is Windows-1252 in mail (Encoding Standard); Python keeps the control characters of the standard",
        fields: &["Subject"],
        is: |pair, it| {
            let raw = pair.theirs.raw("subject").to_lowercase();
            let without_signs = it.ours.replace(|character: char| !character.is_ascii(), " ");
            (raw.contains("8859-1?") || raw.contains("us-ascii?")) && words(&without_signs) == it.theirs
        },
    },
    Kind {
        reason: "an address with two at signs stays as it is written; Python quotes the first part, or has none",
        fields: ADDRESSES,
        is: |_, it| {
            let is_double = |address: &str| address.matches('@').count() == 2;
            it.ours.split(' ').any(is_double)
                && (it.theirs.is_empty() || it.theirs.replace('"', "") == it.ours)
        },
    },
    Kind {
        reason: "an address that no standard allows stays as it is written, so that a reader sees it; Python leaves it out",
        fields: ADDRESSES,
        is: |_, it| {
            let theirs: Vec<&str> = it.theirs.split(' ').filter(|address| !address.is_empty()).collect();
            let more: Vec<&str> = it.ours.split(' ').filter(|address| !theirs.contains(address)).collect();
            let is_odd = |address: &&str| address.contains([':', '[', ']', '`']) || address.ends_with('.');
            !more.is_empty()
                && more.iter().all(is_odd)
                && theirs.iter().all(|one| it.ours.split(' ').any(|own| own == *one))
        },
    },
    Kind {
        reason: "a control character in an address is a blank in the memo; Python keeps it",
        fields: ADDRESSES,
        is: |_, it| {
            let blank = |character: char| if character.is_control() { ' ' } else { character };
            it.theirs.contains(char::is_control)
                && it.theirs.chars().map(blank).collect::<String>() == it.ours.replace('"', "")
        },
    },
    Kind {
        reason: "an address in brackets counts whatever stands before it; Python leaves it out behind a dot or a bad encoded word",
        fields: &["From"],
        is: |pair, it| {
            let raw = pair.theirs.raw("from").to_lowercase();
            it.theirs.is_empty()
                && raw.contains(&format!("<{}>", it.ours))
                && (raw.contains("=?") || raw.trim().starts_with(". <"))
        },
    },
    Kind {
        reason: "a year as 0102 is 2002 of a program that counts from 1900; Python takes it for the year 102",
        fields: &["PostedDate"],
        is: |pair, it| {
            moment(&it.theirs).is_some_and(|moment| moment < 0) && pair.theirs.raw("date").contains(" 01")
        },
    },
    Kind {
        reason: "Python does not look at AM and PM",
        fields: &["PostedDate"],
        is: |pair, it| {
            let raw = pair.theirs.raw("date").to_lowercase();
            hours_between(it).is_some() && [" pm", " am"].iter().any(|half| raw.contains(half))
        },
    },
    Kind {
        reason: "Python takes zones that it does not know for UTC: Eastern Daylight Time, GMT+1",
        fields: &["PostedDate"],
        is: |pair, it| {
            let raw = pair.theirs.raw("date").to_lowercase();
            hours_between(it).is_some() && ["time", "gmt+", "gmt-"].iter().any(|zone| raw.contains(zone))
        },
    },
    Kind {
        reason: "digits without a sign are no zone (RFC 5322 section 3.3), which the memo notes; Python takes them for one",
        fields: &["PostedDate"],
        is: |pair, it| {
            let zone = pair.theirs.raw("date").split_whitespace().last().unwrap_or_default();
            pair.has_note("Date names a time zone that is not known")
                && zone.bytes().all(|byte| byte.is_ascii_digit())
                && moment(&it.theirs).is_some()
        },
    },
    Kind {
        reason: "Python gives up on a date with the year first, or a zone of more than a day; the memo notes the zone",
        fields: &["PostedDate"],
        is: |pair, it| {
            let raw = pair.theirs.raw("date").trim();
            let is_year_first =
                raw.split('/').next().is_some_and(|year| year.len() == 4 && year.parse::<u16>().is_ok());
            moment(&it.theirs).is_none() && (is_year_first || raw.contains("-3000"))
        },
    },
    Kind {
        reason: "a blank may stand before a field's colon (RFC 5322 section 4.5); Python takes the whole header for text then",
        fields: &["Subject", "SendTo", "PostedDate", "Body"],
        is: |pair, _| {
            let name = pair.source.split(|byte| *byte == b':').next().unwrap_or_default();
            name.ends_with(b" ") && !name.contains(&b'\n')
        },
    },
    Kind {
        reason: "a footer behind base64 is text, and shown; Python leaves it out, or decodes it as well",
        fields: TEXTS,
        is: |pair, _| pair.has_note("text that is not encoded stands after a part's base64"),
    },
    Kind {
        reason: "Python gives up on base64 with a character that does not belong to it, or one too many, and gives it undecoded",
        fields: TEXTS,
        is: |pair, it| {
            let beginning: String = it.theirs.chars().take(12).collect();
            holds(pair.source, beginning.as_bytes())
                && holds(pair.source, b"base64")
                && !it.ours.contains(&beginning)
        },
    },
    Kind {
        reason: "what is said to be base64 and is no base64 at all stands for nothing",
        fields: TEXTS,
        is: |pair, it| holds(pair.source, b"?garbage") && letters(&it.theirs) == letters(&it.ours),
    },
    Kind {
        reason: "the size of base64 with characters that are none of it: Python gives up, or decodes the text around it",
        fields: FILES,
        is: |pair, it| names(&it.theirs) == names(&it.ours) && has_stray_base64(pair.source),
    },
    Kind {
        reason: "a byte that is not UTF-8 is one of Windows-1252 in the memo, which notes it; Python gives U+FFFD",
        fields: TEXTS,
        is: |pair, it| pair.has_note("single bytes are not UTF-8") && have_same_letters(it),
    },
    Kind {
        reason: "UTF-7 that ends within a character: Python takes the next line end for a part of it",
        fields: TEXTS,
        is: |pair, it| holds(&pair.source.to_ascii_lowercase(), b"utf-7") && have_same_letters(it),
    },
    Kind {
        reason: "an equals sign that begins no escape stays (RFC 2045 section 6.7, note 2); Python takes two of them for one",
        fields: TEXTS,
        is: |pair, it| {
            let text = |text: &str| text.replace("3D", "").replace(['=', ' '], "");
            holds(&pair.source.to_ascii_lowercase(), b"quoted-printable")
                && text(&it.theirs) == text(&it.ours)
        },
    },
    Kind {
        reason: "blanks behind the name of a transfer encoding are none of it; Python knows no such encoding",
        fields: TEXTS,
        is: |pair, it| holds(pair.source, b"quoted-printable  ") && it.theirs.contains("=E2=99=9A"),
    },
    Kind {
        reason: "a comment of HTML that is never closed goes on to the end (HTML standard section 13.2.5.44)",
        fields: &["Body"],
        is: |pair, it| {
            it.theirs.starts_with(&it.ours) && times(pair.source, b"<!--") > times(pair.source, b"-->")
        },
    },
    Kind {
        reason: "a tag that is cut at the end of HTML is no text (HTML standard section 13.2.5, EOF in tag)",
        fields: &["Body"],
        is: |pair, it| {
            let last = |wanted: u8| pair.source.iter().rposition(|byte| *byte == wanted);
            it.theirs.starts_with(&it.ours) && last(b'<') > last(b'>')
        },
    },
    Kind {
        reason: "parameters count without a semicolon between type and boundary; Python finds no boundary, and no parts",
        fields: &["Body", "$FileNames"],
        is: |pair, it| {
            let is_open = holds(pair.source, b"multipart/mixed\n\tboundary=");
            is_open && (it.theirs.starts_with("--") || it.theirs == "[]")
        },
    },
    Kind {
        reason: "a backslash in a file's name is one of a path; Python takes it for a quoted pair",
        fields: FILES,
        is: |_, it| it.ours.contains('\\') && it.ours.replace('\\', "") == it.theirs.replace('\\', ""),
    },
    Kind {
        reason: "8-bit characters inside the encoded words of a file's name are U+FFFD in Python",
        fields: FILES,
        is: |_, it| it.theirs.contains('\u{fffd}') && letters(&it.theirs) == letters(&it.ours),
    },
    Kind {
        reason: "a name that is folded behind its equals sign or not in quotes is whole in the memo; Python cuts it at a blank",
        fields: FILES,
        is: |_, it| {
            let (theirs, ours) = (names(&it.theirs), names(&it.ours));
            theirs.len() == ours.len()
                && theirs.iter().zip(&ours).all(|(theirs, ours)| ours.starts_with(theirs.as_str()))
        },
    },
];

pub fn reasons() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.reason)
}

/// The reason of a disagreement that is of a known kind.
pub fn of(pair: &Pair<'_>, difference: &Difference) -> Option<&'static str> {
    let is_of = |kind: &&Kind| kind.fields.contains(&difference.field) && (kind.is)(pair, difference);
    KINDS.iter().find(is_of).map(|kind| kind.reason)
}

/// The seconds of a moment as it is compared.
fn moment(compared: &str) -> Option<i64> {
    compared.strip_prefix("Some(")?.strip_suffix(')')?.parse().ok()
}

/// Whole hours between the two moments.
fn hours_between(it: &Difference) -> Option<i64> {
    let seconds = moment(&it.ours)? - moment(&it.theirs)?;
    (seconds % 3600 == 0 && seconds.abs() <= 24 * 3600).then_some(seconds / 3600)
}

fn holds(bytes: &[u8], wanted: &[u8]) -> bool {
    times(bytes, wanted) > 0
}

fn times(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len().max(1)).filter(|window| *window == wanted).count()
}

/// Whether the two hold the same letters of ASCII; of the first text alone, whether all of them are there.
fn have_same_letters(it: &Difference) -> bool {
    let (theirs, ours) = (letters(&it.theirs), letters(&it.ours));
    theirs == ours || (it.field == "first text" && ours.contains(&theirs))
}

fn letters(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// The names of a list of files as it is compared.
fn names(compared: &str) -> Vec<String> {
    compared.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Whether a line behind a header that says base64 holds characters that are none of it.
fn has_stray_base64(source: &[u8]) -> bool {
    let text = String::from_utf8_lossy(source).replace('\r', "");
    text.split("\n--").any(|part| {
        let Some((header, body)) = part.split_once("\n\n") else { return false };
        let is_stray = |character: char| {
            !(character.is_ascii_alphanumeric()
                || character.is_ascii_whitespace()
                || "+/=".contains(character))
        };
        let encoded = body.trim_end();
        let has_one_too_many =
            encoded.chars().filter(|character| !character.is_whitespace()).count() % 4 != 0;
        header.to_lowercase().contains("base64") && (encoded.contains(is_stray) || has_one_too_many)
    })
}
