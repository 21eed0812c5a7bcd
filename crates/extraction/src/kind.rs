//! Which files have words.

use encoding_rs::Encoding;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text in this character set, or in what it turns out to be.
    Text(Option<&'static Encoding>),
    /// A page.
    Html(Option<&'static Encoding>),
    /// PDF (ISO 32000).
    Pdf,
    /// Office Open XML (ECMA-376) or OpenDocument (ISO/IEC 26300).
    Office,
}

/// Content types of texts besides `text/…`.
const TEXTS: [&str; 6] = [
    "application/json",
    "application/xml",
    "application/x-yaml",
    "application/yaml",
    "application/toml",
    "application/sql",
];

/// Endings of names, for files of which the sender said no more than that they are bytes.
const ENDINGS: [(&str, Kind); 18] = [
    ("pdf", Kind::Pdf),
    ("docx", Kind::Office),
    ("docm", Kind::Office),
    ("xlsx", Kind::Office),
    ("xlsm", Kind::Office),
    ("pptx", Kind::Office),
    ("pptm", Kind::Office),
    ("odt", Kind::Office),
    ("ods", Kind::Office),
    ("odp", Kind::Office),
    ("txt", Kind::Text(None)),
    ("text", Kind::Text(None)),
    ("md", Kind::Text(None)),
    ("csv", Kind::Text(None)),
    ("log", Kind::Text(None)),
    ("html", Kind::Html(None)),
    ("htm", Kind::Html(None)),
    ("xhtml", Kind::Html(None)),
];

impl Kind {
    /// The kind of a file by its content type and its name; `None` if it has no words that are looked for.
    #[must_use]
    pub fn of(content_type: &str, name: &str) -> Option<Self> {
        let (essence, parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
        let essence = essence.trim().to_ascii_lowercase();
        let label = parameters.split(';').find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("charset").then_some(value.trim().trim_matches('"'))
        });
        let label = label.and_then(|label| Encoding::for_label(label.as_bytes()));
        match essence.as_str() {
            "text/html" | "application/xhtml+xml" => Some(Self::Html(label)),
            "application/pdf" | "application/x-pdf" => Some(Self::Pdf),
            essence if essence.starts_with("application/vnd.openxmlformats-officedocument.") => {
                Some(Self::Office)
            }
            essence if essence.starts_with("application/vnd.oasis.opendocument.") => Some(Self::Office),
            "application/vnd.ms-word.document.macroenabled.12"
            | "application/vnd.ms-excel.sheet.macroenabled.12"
            | "application/vnd.ms-powerpoint.presentation.macroenabled.12" => Some(Self::Office),
            // Appointments, addresses and signatures are no texts that somebody wrote.
            "text/calendar" | "text/vcard" | "text/x-vcard" => None,
            essence if essence.starts_with("text/") || TEXTS.contains(&essence) => Some(Self::Text(label)),
            "" | "application/octet-stream" | "application/x-download" | "application/force-download" => {
                let (_, ending) = name.rsplit_once('.')?;
                let known = ENDINGS.iter().find(|(known, _)| known.eq_ignore_ascii_case(ending));
                known.map(|(_, kind)| *kind)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_type_and_where_that_says_nothing_by_name() {
        assert_eq!(Kind::of("text/html; charset=utf-8", "x"), Some(Kind::Html(Some(encoding_rs::UTF_8))));
        assert_eq!(
            Kind::of("TEXT/plain; Charset=\"iso-8859-1\"", ""),
            Some(Kind::Text(Some(encoding_rs::WINDOWS_1252)))
        );
        assert_eq!(Kind::of("application/octet-stream", "Offer.PDF"), Some(Kind::Pdf));
        assert_eq!(Kind::of("image/png", "scan.pdf"), None);
        assert_eq!(Kind::of("application/octet-stream", "program"), None);
        let word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
        assert_eq!(Kind::of(word, ""), Some(Kind::Office));
    }
}
