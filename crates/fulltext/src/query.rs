//! What is looked for.

use std::ops::Bound;

/// Which documents are wanted. Names of fields are those of [`Field`](crate::Field); texts are as a person writes them.
///
/// A word is found in each of its forms, in all languages that the index has met; a phrase as it is written, but for case and
/// accents. A query of any depth is refused beyond the limits of its search.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// All documents.
    All,
    /// No document.
    Nothing,
    /// A word, an address, a host; if it turns out to be several words, a phrase.
    Word {
        /// The field.
        field: String,
        /// The word.
        text: String,
    },
    /// Words one after the other.
    Phrase {
        /// The field.
        field: String,
        /// The words.
        text: String,
        /// By how many places they may be moved in all: 0 is a phrase, more is nearness, in any order.
        slop: u32,
    },
    /// Words that begin so.
    Prefix {
        /// The field.
        field: String,
        /// The beginning of a word, perhaps with whole words before it.
        text: String,
    },
    /// Words of a pattern: `*` any letters, `?` one.
    Pattern {
        /// The field.
        field: String,
        /// The pattern.
        pattern: String,
    },
    /// Words that differ by a few letters, the first excepted.
    Similar {
        /// The field.
        field: String,
        /// The word.
        text: String,
        /// By how many letters that are other, more, fewer or exchanged: 2 at most.
        distance: u8,
    },
    /// A whole value, letter for letter.
    Exact {
        /// The field.
        field: String,
        /// The value.
        text: String,
    },
    /// Numbers, or words and whole values, within bounds.
    Range {
        /// The field.
        field: String,
        /// The bounds.
        bounds: Bounds,
    },
    /// Documents that have the field.
    Exists {
        /// The field.
        field: String,
    },
    /// Documents that all of these find; no query finds all.
    And(Vec<Query>),
    /// Documents that any of these finds.
    Or(Vec<Query>),
    /// Documents that this does not find.
    Not(Box<Query>),
    /// Those that the first finds; the score is better where others find them, too.
    Preferred(Box<Query>, Vec<Query>),
    /// The same documents with a score that is multiplied by this.
    Boost(Box<Query>, f32),
}

/// From where to where; both ends of one kind, or open.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// The lower end.
    pub from: Bound<Value>,
    /// The upper end.
    pub to: Bound<Value>,
}

/// An end of a range.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of words and whole values.
    Text(String),
    /// Of numbers.
    Number(f64),
}

impl Query {
    /// A word in a field.
    #[must_use]
    pub fn word(field: &str, text: &str) -> Self {
        Self::Word { field: field.to_owned(), text: text.to_owned() }
    }

    /// A phrase in a field.
    #[must_use]
    pub fn phrase(field: &str, text: &str) -> Self {
        Self::Phrase { field: field.to_owned(), text: text.to_owned(), slop: 0 }
    }

    /// The beginning of a word in a field.
    #[must_use]
    pub fn prefix(field: &str, text: &str) -> Self {
        Self::Prefix { field: field.to_owned(), text: text.to_owned() }
    }

    /// Numbers from `from` to `to`, both among them.
    #[must_use]
    pub fn numbers(field: &str, from: f64, to: f64) -> Self {
        let bounds =
            Bounds { from: Bound::Included(Value::Number(from)), to: Bound::Included(Value::Number(to)) };
        Self::Range { field: field.to_owned(), bounds }
    }

    /// What any of several fields has: `of` makes the query of one.
    #[must_use]
    pub fn in_any(fields: &[&str], of: impl Fn(&str) -> Self) -> Self {
        Self::Or(fields.iter().map(|field| of(field)).collect())
    }
}
