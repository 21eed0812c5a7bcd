//! What is said of a document to an index.

use crate::format::FieldId;
use crate::{Language, number};

/// The longest text that documents are sorted by; what is longer is cut.
pub(crate) const SORT_BYTES_MAX: usize = 64;

/// A document as an index takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentText<'t> {
    /// Its id. A document that has the same id is replaced.
    pub id: &'t str,
    /// Who may find it.
    pub readers: Readers<'t>,
    /// The language that it says it is written in.
    pub language: Option<Language>,
    /// What it is found by. A name may come more than once.
    pub fields: Vec<Field<'t>>,
}

/// Who may find a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readers<'t> {
    /// All who may read in the database.
    Everybody,
    /// Who has one of these names; nobody if there are none. The caller spells a name always in the same way.
    Names(Vec<&'t str>),
}

/// A value under a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Field<'t> {
    /// Under which name it is asked for.
    pub name: &'t str,
    /// The value.
    pub value: FieldValue<'t>,
    /// Whether results can be sorted by it; text never. The last value of a name counts.
    pub is_sorted: bool,
}

/// A value that can be found.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue<'t> {
    /// Words.
    Text(&'t str),
    /// A text that is found as a whole, letter for letter.
    Exact(&'t str),
    /// A number, or a time in milliseconds, found by ranges.
    Number(f64),
}

impl<'t> Field<'t> {
    /// Words.
    #[must_use]
    pub fn text(name: &'t str, text: &'t str) -> Self {
        Self { name, value: FieldValue::Text(text), is_sorted: false }
    }

    /// A text that is found as a whole.
    #[must_use]
    pub fn exact(name: &'t str, text: &'t str) -> Self {
        Self { name, value: FieldValue::Exact(text), is_sorted: false }
    }

    /// A number.
    #[must_use]
    pub fn number(name: &'t str, number: f64) -> Self {
        Self { name, value: FieldValue::Number(number), is_sorted: false }
    }

    /// The same field, by which results can be sorted.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.is_sorted = true;
        self
    }

    pub(crate) fn id(&self) -> FieldId {
        FieldId::of(self.name)
    }

    pub(crate) fn sort_key(&self) -> Option<SortKey> {
        match (&self.value, self.is_sorted) {
            (FieldValue::Number(number), true) => Some(SortKey::number(*number)),
            (FieldValue::Exact(text), true) => Some(SortKey::text(text)),
            _ => None,
        }
    }
}

/// What documents are sorted by: numbers before texts, texts by their bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortKey {
    /// A number, in an order that is its own ([`SortKey::as_number`]).
    Number(u64),
    /// The beginning of a text.
    Text(Box<[u8]>),
}

impl SortKey {
    /// The key of a number.
    #[must_use]
    pub fn number(number: f64) -> Self {
        Self::Number(number::ordered(number))
    }

    /// The key of a text: its first 64 bytes.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(text.as_bytes().get(..SORT_BYTES_MAX).unwrap_or(text.as_bytes()).into())
    }

    /// The number again, if it is one.
    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Number(ordered) => Some(number::number_of(*ordered)),
            Self::Text(_) => None,
        }
    }

    /// The text again, if it is one, with a replacement character where it was cut within one.
    #[must_use]
    pub fn as_text(&self) -> Option<String> {
        match self {
            Self::Number(_) => None,
            Self::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        }
    }
}
