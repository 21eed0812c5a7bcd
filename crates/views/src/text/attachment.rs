//! What attachments say in words.

use std::fmt;

/// An attachment, before anything of it is read.
#[derive(Clone, Copy, Debug)]
pub struct AttachmentHead<'a> {
    /// Its name in the document.
    pub name: &'a str,
    /// Its MIME type, with parameters.
    pub content_type: &'a str,
    /// Bytes.
    pub length: u64,
}

/// Takes the words out of attachments. What attachments hold comes from strangers: nothing that is in them may do more than
/// cost their own words.
pub trait AttachmentText: Send + Sync {
    /// Whether it is to be read at all. `has_field` tells whether the document has a field that says something.
    fn takes(&self, attachment: &AttachmentHead<'_>, has_field: &dyn Fn(&str) -> bool) -> bool;

    /// Its words; an empty text if it has none, or none that can be read.
    ///
    /// # Errors
    /// [`TextUnavailable`] if that cannot be told now; it says nothing of the attachment.
    fn text(&self, attachment: &AttachmentHead<'_>, bytes: &[u8]) -> Result<String, TextUnavailable>;
}

/// Words cannot be taken out of attachments now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextUnavailable {
    /// Why.
    pub reason: String,
}

impl fmt::Display for TextUnavailable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the words of attachments cannot be read now: {}", self.reason)
    }
}

impl std::error::Error for TextUnavailable {}
