//! What is read to answer a query.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::bounds::{IdRange, KeyRange};
use crate::choice::{Candidate, choose};
use crate::error::MangoError;
use crate::index::IndexDefinition;
use crate::projection::{Projection, put};
use crate::query::Query;
use crate::ranges::{Narrowed, asks_for_nothing, document_ranges, index_ranges};
use crate::selector::Selector;
use crate::sort::Direction;

/// Beyond this many documents for each result a better index is recommended.
const EXAMINED_PER_RESULT: u64 = 10;

/// What to read, and in which ranges of it. The ranges ascend and do not overlap; anyone who reads descending takes them
/// from the last to the first.
#[derive(Clone, Debug)]
pub enum Reading {
    /// An index, in the order of its keys.
    Index {
        /// The index.
        definition: Arc<IndexDefinition>,
        /// Parts of it.
        ranges: Vec<KeyRange>,
    },
    /// All documents but design documents, in the order of their ids, byte by byte.
    Documents {
        /// Parts of them.
        ranges: Vec<IdRange>,
    },
}

/// How a query is answered: read, check what remains, leave out `skip`, give `limit`.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What to read.
    pub reading: Reading,
    /// From the lowest key to the highest, or the other way.
    pub direction: Direction,
    /// What remains to be checked of a document; the ranges answer for the rest of the selector.
    pub residual: Selector,
    /// The keys of the index have all that is checked and answered, so that no document need be read:
    /// [`document_from_key`](Self::document_from_key) stands in.
    pub covering: bool,
    warnings: Vec<String>,
}

/// Chooses what to read, among the indexes of a database and its documents.
///
/// # Errors
/// [`MangoError::NoSortIndex`] if nothing gives the order asked for; with `allow_fallback` off
/// [`MangoError::IndexNotSuitable`] and [`MangoError::NoIndex`].
pub fn plan(query: &Query, indexes: &[Arc<IndexDefinition>]) -> Result<Plan, MangoError> {
    let chosen = choose(query, indexes)?.chosen.ok_or(MangoError::NoSortIndex)?;
    let nothing = asks_for_nothing(&query.selector);
    let (reading, residual) = match &chosen {
        Candidate::Index(definition) => {
            let Narrowed { mut ranges, residual } = index_ranges(definition, &query.selector);
            ranges.retain(|_| !nothing);
            (Reading::Index { definition: Arc::clone(definition), ranges }, residual)
        }
        Candidate::AllDocuments => {
            let Narrowed { mut ranges, residual } = document_ranges(&query.selector);
            ranges.retain(|_| !nothing);
            (Reading::Documents { ranges }, residual)
        }
    };
    let covering = match &chosen {
        Candidate::Index(definition) => covers_query(definition, query),
        Candidate::AllDocuments => false,
    };
    Ok(Plan { reading, direction: query.direction(), residual, covering, warnings: warnings(query, &chosen) })
}

impl Plan {
    /// Each document that somebody else finds is checked, and given in the order in which it was found.
    #[must_use]
    pub fn of_documents(query: &Query) -> Self {
        Self {
            reading: Reading::Documents { ranges: Vec::new() },
            direction: query.direction(),
            residual: query.selector.clone(),
            covering: false,
            warnings: Vec::new(),
        }
    }

    /// The index that is read; none if all documents are.
    #[must_use]
    pub fn index(&self) -> Option<&Arc<IndexDefinition>> {
        match &self.reading {
            Reading::Index { definition, .. } => Some(definition),
            Reading::Documents { .. } => None,
        }
    }

    /// The member `warning` of the answer: that there was no index, that the one asked for was not used, that many
    /// documents were read for few results.
    #[must_use]
    pub fn warning(&self, documents_examined: u64, results_returned: u64) -> Option<String> {
        let mut warnings = self.warnings.clone();
        if documents_examined > results_returned.max(1).saturating_mul(EXAMINED_PER_RESULT) {
            warnings.push(
                "The number of documents examined is high in proportion to the number of results returned. \
                 Consider adding a more specific index to improve this."
                    .to_owned(),
            );
        }
        (!warnings.is_empty()).then(|| warnings.join("\n"))
    }

    /// What an entry of the index tells of its document: the id and the fields of the key. It stands in for the
    /// document where the plan is [covering](Self::covering).
    #[must_use]
    pub fn document_from_key(&self, id: &str, key: &[Value]) -> Value {
        let mut members = Map::new();
        members.insert("_id".to_owned(), Value::from(id));
        let fields = self.index().map(|index| index.fields()).unwrap_or_default();
        for (field, value) in fields.iter().zip(key) {
            put(&mut members, field.path.names(), value.clone());
        }
        Value::Object(members)
    }
}

/// The index has these fields, or they are the id.
pub(crate) fn covers_fields<'a>(index: &IndexDefinition, mut names: impl Iterator<Item = &'a str>) -> bool {
    names.all(|name| name == "_id" || index.has_column(name))
}

/// The index has what is answered.
pub(crate) fn covers_projection(index: &IndexDefinition, query: &Query) -> bool {
    match &query.fields {
        Projection::All => false,
        Projection::Fields(paths) => covers_fields(index, paths.iter().map(|path| path.text())),
    }
}

/// The index has what is answered and checked.
pub(crate) fn covers_query(index: &IndexDefinition, query: &Query) -> bool {
    covers_projection(index, query) && covers_fields(index, query.selector.field_names().into_iter())
}

fn warnings(query: &Query, chosen: &Candidate) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(use_index) = &query.use_index
        && !chosen.is_named_by(use_index)
    {
        let why = match use_index.name {
            Some(_) => "it is not a valid index for this query.",
            None => "it does not contain a valid index for this query.",
        };
        warnings.push(format!("{} was not used because {why}", use_index.shown()));
    }
    if !chosen.is_index() {
        warnings.push("No matching index found, create an index to optimize query time.".to_owned());
    }
    warnings
}
