//! Where a page of results ended.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use scrinium_document::json::{NESTING_MAX, parse_value};
use serde_json::{Value, json};

use crate::error::MangoError;

/// What stands for no bookmark, in requests and answers.
const NONE: &str = "nil";

/// The last entry that was answered. The next page begins behind it, in the direction of reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Bookmark {
    /// The entry's key: a value for each field of the index, or the id alone where all documents are read.
    pub key: Vec<Value>,
    /// The document's id.
    pub id: String,
}

impl Bookmark {
    /// As a client gets it: opaque text of letters, digits, `-` and `_`.
    #[must_use]
    pub fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(json!([self.key, self.id]).to_string())
    }

    /// As [`encode`](Self::encode), or `nil` if no result was answered and none was given.
    #[must_use]
    pub fn encode_or_nil(bookmark: Option<&Self>) -> String {
        bookmark.map_or_else(|| NONE.to_owned(), Self::encode)
    }

    /// Reads what a client gives back; none from an empty text and from `nil`.
    ///
    /// # Errors
    /// [`MangoError::InvalidBookmark`] if it is something else.
    pub fn decode(text: &str) -> Result<Option<Self>, MangoError> {
        if text.is_empty() || text == NONE {
            return Ok(None);
        }
        let refused = || MangoError::InvalidBookmark(Value::from(text).to_string());
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
        let json = String::from_utf8(bytes).map_err(|_| refused())?;
        // A key holds values of documents, within two arrays.
        match parse_value(&json, NESTING_MAX + 2) {
            Ok(Value::Array(pair)) => match <[Value; 2]>::try_from(pair) {
                Ok([Value::Array(key), Value::String(id)]) => Ok(Some(Self { key, id })),
                _ => Err(refused()),
            },
            _ => Err(refused()),
        }
    }
}
