//! What can be wrong with a query or an index definition, in CouchDB's words.

use serde_json::Value;

/// A selector, query or index definition that is refused.
///
/// [`error`](Self::error) and [`reason`](Self::reason) are the two members of CouchDB's error body and
/// [`status`](Self::status) its HTTP status, so that a protocol can answer without a table. Where CouchDB prints a
/// value as an Erlang term, the reason has it as JSON, cut where it is long.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum MangoError {
    /// No operator has this name, or it takes only texts and was given something else.
    #[error("Invalid operator: {0}")]
    InvalidOperator(String),
    /// An operator of MongoDB that Mango knows and does not have.
    #[error("Unsupported operator: {0}")]
    UnsupportedOperator(String),
    /// The operator does not take such an argument.
    #[error("Bad argument for operator {operator}: {argument}")]
    BadArgument {
        /// The operator.
        operator: &'static str,
        /// What it was given, as JSON; for a pattern also what is wrong with it.
        argument: String,
    },
    /// A condition stands where no field is named.
    #[error("One or more conditions is missing a field name.")]
    MissingFieldName,
    /// A part of a dotted name is empty.
    #[error("Invalid field name: {0} (a part between two dots is empty)")]
    InvalidFieldName(String),
    /// Arrays and objects are nested deeper than is accepted.
    #[error("Nested deeper than {limit} levels; make it flatter, for example by dotted names.")]
    TooDeep {
        /// The levels accepted.
        limit: usize,
    },
    /// More of something than one request may have.
    #[error("More than {limit} {what}")]
    TooMany {
        /// What there are too many of, and what to do about it.
        what: &'static str,
        /// How many are accepted.
        limit: usize,
    },
    /// The selector is no object.
    #[error("Selector must be a JSON object, not: {0}")]
    SelectorNotObject(String),
    /// Searching in texts, which this server has no service for; holds the type of the index.
    #[error("{0}")]
    ServiceUnavailable(&'static str),
    /// The body of the request is no object.
    #[error("Request body must be a JSON object")]
    BodyNotObject,
    /// A member that must be there is not.
    #[error("Missing required key: {0}")]
    MissingKey(&'static str),
    /// A member that is not known.
    #[error("Invalid key {0} for this request.")]
    InvalidKey(String),
    /// Not a text.
    #[error("Invalid string: {0}")]
    InvalidString(String),
    /// Neither `true` nor `false`.
    #[error("Invalid boolean value: {0}")]
    InvalidBoolean(String),
    /// Not an integer from 1 on.
    #[error("{0} is not an integer greater than zero")]
    InvalidPositiveInteger(String),
    /// Not an integer from 0 on.
    #[error("{0} is not an integer greater than or equal to zero")]
    InvalidNonNegativeInteger(String),
    /// `stale` is neither `"ok"` nor `false`.
    #[error("Invalid value for stale: {0}")]
    InvalidStale(String),
    /// Not the name of an index: a text, or an array of one or two.
    #[error("Invalid index name: {0}")]
    InvalidIndexName(String),
    /// Not a bookmark that this server gave.
    #[error("Invalid bookmark value: {0}")]
    InvalidBookmark(String),
    /// Partitions, which databases of this server do not have.
    #[error("{0}")]
    NotPartitioned(&'static str),
    /// `fields` is no array.
    #[error("Fields must be an array of strings, not: {0}")]
    InvalidFields(String),
    /// An element of `fields` is no text.
    #[error("Invalid JSON for field spec: {0}")]
    InvalidField(String),
    /// `sort`, or the fields of an index, are no array.
    #[error("Sort must be an array of sort specs, not: {0}")]
    InvalidSort(String),
    /// An element of `sort`, or a field of an index, is neither a name nor an object of a name and a direction.
    #[error("Invalid sort field: {0}")]
    InvalidSortField(String),
    /// Both directions in one sort.
    #[error("Sorts currently only support a single direction for all fields.")]
    MixedSort,
    /// The definition of an index cannot be used; holds CouchDB's sentence.
    #[error("{0}")]
    InvalidIndex(String),
    /// The design document is of another language; holds that.
    #[error("Existing design doc has an invalid language: {0}")]
    InvalidDesignLanguage(String),
    /// The design document has another `partitioned`; holds its id.
    #[error("Requested partitioned option does not match existing value on design document {0}")]
    PartitionedMismatch(String),
    /// The design document has no such index; holds the index's name.
    #[error("JSON index {0} not found in this design doc.")]
    IndexNotFound(String),
    /// No index gives the documents in the order asked for.
    #[error("No index exists for this sort, try indexing by the sort fields.")]
    NoSortIndex,
    /// No index but that of all documents can be used, and `allow_fallback` is off.
    #[error("There is no index available for this selector.")]
    NoIndex,
    /// The index asked for cannot be used, and `allow_fallback` is off; holds how `use_index` named it.
    #[error("{0} specified by `use_index` could not be found or it is not suitable.")]
    IndexNotSuitable(String),
}

impl MangoError {
    /// CouchDB's error word, the member `error` of the answer.
    #[must_use]
    pub fn error(&self) -> &'static str {
        match self {
            Self::InvalidOperator(_) => "invalid_operator",
            Self::UnsupportedOperator(_) => "not_supported",
            Self::BadArgument { .. } => "bad_arg",
            Self::MissingFieldName | Self::TooDeep { .. } | Self::TooMany { .. } => "invalid_selector",
            Self::InvalidFieldName(_) => "invalid_field_name",
            Self::SelectorNotObject(_) => "invalid_selector_json",
            Self::ServiceUnavailable(_) => "required index service unavailable",
            Self::BodyNotObject | Self::NotPartitioned(_) => "bad_request",
            Self::MissingKey(_) => "missing_required_key",
            Self::InvalidKey(_) => "invalid_key",
            Self::InvalidString(_) => "invalid_string",
            Self::InvalidBoolean(_) => "invalid_boolean",
            Self::InvalidPositiveInteger(_) => "invalid_pos_integer",
            Self::InvalidNonNegativeInteger(_) => "invalid_non_neg_integer",
            Self::InvalidStale(_) => "invalid_value",
            Self::InvalidIndexName(_) => "invalid_index_name",
            Self::InvalidBookmark(_) => "invalid_bookmark",
            Self::InvalidFields(_) => "invalid_fields",
            Self::InvalidField(_) => "invalid_field",
            Self::InvalidSort(_) => "invalid_sort_json",
            Self::InvalidSortField(_) => "invalid_sort_field",
            Self::MixedSort => "unsupported_mixed_sort",
            Self::InvalidIndex(_) | Self::IndexNotFound(_) | Self::IndexNotSuitable(_) => "invalid_index",
            Self::InvalidDesignLanguage(_) => "invalid_ddoc_lang",
            Self::PartitionedMismatch(_) => "invalid_partitioned_option",
            Self::NoSortIndex | Self::NoIndex => "no_usable_index",
        }
    }

    /// The member `reason` of the answer.
    #[must_use]
    pub fn reason(&self) -> String {
        self.to_string()
    }

    /// CouchDB's HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::ServiceUnavailable(_) => 503,
            Self::IndexNotFound(_) => 404,
            _ => 400,
        }
    }
}

/// At most this much of a value is shown in a reason, in characters.
const SHOWN_CHARACTERS: usize = 200;

/// A value for a reason: JSON, cut where it is long.
pub(crate) fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}
