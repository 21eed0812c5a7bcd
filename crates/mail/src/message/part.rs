//! What a part's header says of it (RFC 2045, RFC 2183).

use super::charset::CharacterSet;
use super::decode::TransferEncoding;
use super::fields::HeaderFields;
use super::parameters::Parameters;
use crate::notes::Notes;

/// What contains a part, as far as it matters to how the part is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    Message,
    Mixed,
    Alternative,
    Digest,
}

/// A part as its header describes it.
pub(super) struct Part {
    pub(super) main_type: String,
    pub(super) sub_type: String,
    pub(super) encoding: TransferEncoding,
    pub(super) file_name: Option<String>,
    content: Parameters,
    /// `attachment`, `inline` or something else; `None` where nothing is said.
    disposition: Option<String>,
}

impl Part {
    pub(super) fn of(header: &HeaderFields<'_>, within: Within, notes: &mut Notes) -> Self {
        let parameters = |name: &str, notes: &mut Notes| {
            let field = header.first(name)?;
            Some(Parameters::read(&field, header.raw_set(&field), notes))
        };
        let content = parameters("Content-Type", notes);
        let (main_type, sub_type) = match &content {
            Some(content) => kind_of(&content.value),
            // RFC 2045 §5.2, RFC 2046 §5.1.5: what a part is that does not say.
            None if within == Within::Digest => ("message".to_owned(), "rfc822".to_owned()),
            None => plain_text(),
        };
        let content = content.unwrap_or_default();
        let disposition = parameters("Content-Disposition", notes);
        let named = disposition.as_ref().and_then(|disposition| disposition.get("filename", notes));
        let file_name = named.filter(|name| !name.trim().is_empty()).or_else(|| content.get("name", notes));
        let encoding = header.first("Content-Transfer-Encoding").unwrap_or_default();
        Self {
            main_type,
            sub_type,
            encoding: TransferEncoding::named(&encoding, notes),
            file_name: file_name.filter(|name| !name.trim().is_empty()),
            content,
            disposition: disposition.map(|disposition| disposition.value).filter(|value| !value.is_empty()),
        }
    }

    /// The same part taken for plain text.
    pub(super) fn into_plain(self) -> Self {
        let (main_type, sub_type) = plain_text();
        Self { main_type, sub_type, disposition: None, ..self }
    }

    pub(super) fn boundary(&self) -> Option<&[u8]> {
        let boundary = self.content.bytes("boundary").map(<[u8]>::trim_ascii_end);
        boundary.filter(|boundary| !boundary.is_empty())
    }

    /// The character set that the part declares; `None` where it declares none.
    pub(super) fn charset(&self) -> Option<CharacterSet> {
        let label = self.content.get("charset", &mut Notes::default())?;
        Some(CharacterSet::named(&label))
    }

    /// Whether the text is of the format "flowed", and whether its blanks at the ends of lines go (RFC 3676 §4).
    pub(super) fn flowed(&self) -> Option<bool> {
        let is = |name: &str, value: &str| {
            self.content.bytes(name).is_some_and(|found| found.eq_ignore_ascii_case(value.as_bytes()))
        };
        (self.sub_type == "plain" && is("format", "flowed")).then(|| is("delsp", "yes"))
    }

    pub(super) fn is_html(&self) -> bool {
        self.main_type == "text" && self.sub_type == "html"
    }

    /// Whether the part is for reading and not a file by its kind.
    fn is_text(&self, within: Within) -> bool {
        // A message that is one part of some other text is read as text.
        self.main_type == "text"
            && (["plain", "html", ""].contains(&self.sub_type.as_str()) || within == Within::Message)
    }

    fn is_attachment(&self) -> bool {
        self.disposition.as_deref() == Some("attachment")
    }

    /// Whether the part is text to show.
    pub(super) fn is_shown(&self, within: Within) -> bool {
        let is_file = self.is_attachment()
            || (self.disposition.is_none() && within == Within::Mixed && self.file_name.is_some());
        self.is_text(within) && !is_file
    }

    /// Whether the part is text to show where a message has no other: a text with a name, or a report's details
    /// (RFC 3464, RFC 8098).
    pub(super) fn is_shown_alone(&self, within: Within) -> bool {
        let is_report = self.main_type == "message"
            && ["delivery-status", "disposition-notification"].contains(&self.sub_type.as_str());
        (self.is_text(within) || is_report) && !self.is_attachment()
    }
}

fn plain_text() -> (String, String) {
    ("text".to_owned(), "plain".to_owned())
}

/// Type and subtype. What has not exactly one slash is plain text (RFC 2045 §5.2); but a multipart is one without it, too.
fn kind_of(value: &str) -> (String, String) {
    match value.split_once('/') {
        Some((main, sub)) if !main.is_empty() && !sub.contains('/') => (main.to_owned(), sub.to_owned()),
        None if value == "multipart" => (value.to_owned(), "mixed".to_owned()),
        _ => plain_text(),
    }
}
