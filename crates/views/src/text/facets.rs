//! How many of the documents that were found have which value.

use std::ops::Bound;

use scrinium_database::Result;
use scrinium_fulltext::{Bounds, Query, Reader, Readership, Search, Total, Value as Edge};
use serde_json::{Map, Value, json};

use super::registry::text_error;

/// Values of a field that are counted; a field with more is not one to count by.
const VALUES_MAX: usize = 1000;
/// Fields that are counted by in one question.
pub(super) const FIELDS_MAX: usize = 10;
/// Ranges of one field.
pub(super) const RANGES_MAX: usize = 100;

/// What is to be counted.
#[derive(Clone, Debug, Default)]
pub struct Facets {
    /// Fields of whole values, of which each is counted.
    pub counts: Vec<String>,
    /// Fields of numbers, and ranges.
    pub ranges: Vec<(String, Vec<FacetRange>)>,
    /// At most this many values of a field, those with the most documents.
    pub top: usize,
}

/// A range that is counted.
#[derive(Clone, Debug)]
pub struct FacetRange {
    /// What it is called in the answer.
    pub label: String,
    /// Its lower end.
    pub from: Bound<f64>,
    /// Its upper end.
    pub to: Bound<f64>,
}

/// Counts among the documents of one question.
pub(super) struct Counter<'a> {
    pub(super) reader: &'a Reader,
    pub(super) query: &'a Query,
    pub(super) readership: &'a Readership,
}

impl Counter<'_> {
    pub(super) fn counts(&self, facets: &Facets) -> Result<Option<Value>> {
        if facets.counts.is_empty() {
            return Ok(None);
        }
        let mut all = Map::new();
        for field in &facets.counts {
            let mut values = Vec::new();
            for text in self.reader.values(field, VALUES_MAX).map_err(text_error)? {
                let count = self.count(Query::Exact { field: field.clone(), text: text.clone() })?;
                if count > 0 {
                    values.push((text, count));
                }
            }
            values.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
            values.truncate(facets.top);
            let values: Map<String, Value> =
                values.into_iter().map(|(text, count)| (text, json!(count))).collect();
            all.insert(field.clone(), Value::Object(values));
        }
        Ok(Some(Value::Object(all)))
    }

    pub(super) fn ranges(&self, facets: &Facets) -> Result<Option<Value>> {
        if facets.ranges.is_empty() {
            return Ok(None);
        }
        let mut all = Map::new();
        for (field, ranges) in &facets.ranges {
            let mut counted = Map::new();
            for range in ranges {
                let bounds = Bounds { from: range.from.map(Edge::Number), to: range.to.map(Edge::Number) };
                let count = self.count(Query::Range { field: field.clone(), bounds })?;
                counted.insert(range.label.clone(), json!(count));
            }
            all.insert(field.clone(), Value::Object(counted));
        }
        Ok(Some(Value::Object(all)))
    }

    /// Documents that were found and that `also` finds.
    fn count(&self, also: Query) -> Result<u64> {
        let query = Query::And(vec![self.query.clone(), also]);
        let search =
            Search { sort: Vec::new(), counts: true, ..Search::new(query, self.readership.clone(), 1) };
        let found = self.reader.search(&search).map_err(text_error)?;
        Ok(match found.total {
            Total::Exactly(count) | Total::AtLeast(count) => count,
        })
    }
}
