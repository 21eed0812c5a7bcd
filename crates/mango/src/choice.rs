//! The choice of an index, in CouchDB's order of preference.

mod usable;

use std::sync::Arc;

use crate::error::MangoError;
use crate::field_range::{FieldRange, field_ranges};
use crate::index::IndexDefinition;
use crate::query::{Query, UseIndex};
use usable::{all_documents_usable, index_usable};

/// Why an index was not chosen, as `_explain` names it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reason {
    IsPartial,
    FieldMismatch,
    SortOrderMismatch,
    ExcludedByUser,
    UnfavoredType,
    LessOverlap,
    TooManyFields,
    AlphabeticallyComesAfter,
}

/// An index, or reading all documents.
#[derive(Clone, Debug)]
pub(crate) enum Candidate {
    Index(Arc<IndexDefinition>),
    AllDocuments,
}

/// What became of a candidate.
pub(crate) struct Judgement {
    pub(crate) candidate: Candidate,
    pub(crate) usable: bool,
    /// Why it was passed over.
    pub(crate) reason: Reason,
    /// How far down it comes; the chosen one has 0.
    pub(crate) ranking: usize,
}

/// The chosen index and how it came to be chosen.
pub(crate) struct Choice {
    /// None if there is no usable one.
    pub(crate) chosen: Option<Candidate>,
    pub(crate) field_ranges: Vec<(String, FieldRange)>,
    /// All others, in the order in which `_explain` shows them.
    pub(crate) others: Vec<Judgement>,
}

impl Reason {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::IsPartial => "is_partial",
            Self::FieldMismatch => "field_mismatch",
            Self::SortOrderMismatch => "sort_order_mismatch",
            Self::ExcludedByUser => "excluded_by_user",
            Self::UnfavoredType => "unfavored_type",
            Self::LessOverlap => "less_overlap",
            Self::TooManyFields => "too_many_fields",
            Self::AlphabeticallyComesAfter => "alphabetically_comes_after",
        }
    }
}

impl Candidate {
    pub(crate) fn is_named_by(&self, use_index: &UseIndex) -> bool {
        match self {
            Self::Index(index) => {
                index.design() == use_index.design
                    && use_index.name.as_ref().is_none_or(|name| name == index.name())
            }
            Self::AllDocuments => false,
        }
    }

    pub(crate) fn is_index(&self) -> bool {
        matches!(self, Self::Index(_))
    }

    /// The alphabet, all documents before every index.
    fn place(&self) -> (&str, &str) {
        match self {
            Self::Index(index) => (index.design(), index.name()),
            Self::AllDocuments => ("", ""),
        }
    }

    fn width(&self) -> usize {
        match self {
            Self::Index(index) => index.fields().len(),
            Self::AllDocuments => 1,
        }
    }
}

/// The ranges of the first fields of an index, as far as each has one.
pub(crate) fn prefix<'a>(index: &IndexDefinition, ranges: &'a [(String, FieldRange)]) -> Vec<&'a FieldRange> {
    let range = |name: &str| {
        let at = ranges.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        ranges.get(at).map(|(_, range)| range)
    };
    index.fields().iter().map_while(|field| range(field.path.text())).collect()
}

/// Chooses among indexes and reading all documents.
///
/// Partial indexes are considered only if `use_index` names them. Usable are those whose documents are all that can
/// match, in the order asked for. Of these the ones that `use_index` names are taken, if there are any; else any,
/// indexes before all documents. Of indexes that remain the one is chosen whose ranges serve most of the selector,
/// then the one with the fewest fields, then the first of the alphabet.
///
/// # Errors
/// If `allow_fallback` is off and the index that is named, or any at all, cannot be used.
pub(crate) fn choose(query: &Query, indexes: &[Arc<IndexDefinition>]) -> Result<Choice, MangoError> {
    let mut sorting = Sorting::default();
    let mut candidates: Vec<Candidate> = indexes.iter().cloned().map(Candidate::Index).collect();
    candidates.push(Candidate::AllDocuments);
    candidates.sort_by(|left, right| left.place().cmp(&right.place()));
    for candidate in candidates {
        let named = query.use_index.as_ref().is_some_and(|named| candidate.is_named_by(named));
        let unusable = match &candidate {
            Candidate::Index(index) if index.partial_filter().is_some() && !named => Some(Reason::IsPartial),
            Candidate::Index(index) => index_usable(index, query).err(),
            Candidate::AllDocuments => all_documents_usable(query).err(),
        };
        match unusable {
            Some(Reason::IsPartial) => sorting.partial.push(candidate),
            Some(reason) => sorting.unusable.push((candidate, reason)),
            None if named => sorting.named.push(candidate),
            None => sorting.usable.push(candidate),
        }
    }
    sorting.check_fallback(query)?;
    Ok(sorting.choose(field_ranges(&query.selector)))
}

/// Candidates by how far they came.
#[derive(Default)]
struct Sorting {
    partial: Vec<Candidate>,
    unusable: Vec<(Candidate, Reason)>,
    usable: Vec<Candidate>,
    named: Vec<Candidate>,
}

impl Sorting {
    fn check_fallback(&self, query: &Query) -> Result<(), MangoError> {
        let none_left = self.usable.is_empty() && self.named.is_empty();
        match &query.use_index {
            _ if query.allow_fallback || none_left || !self.named.is_empty() => Ok(()),
            Some(use_index) => Err(MangoError::IndexNotSuitable(use_index.shown())),
            None if self.usable.iter().any(Candidate::is_index) => Ok(()),
            None => Err(MangoError::NoIndex),
        }
    }

    fn choose(self, field_ranges: Vec<(String, FieldRange)>) -> Choice {
        let (taken, excluded) =
            if self.named.is_empty() { (self.usable, Vec::new()) } else { (self.named, self.usable) };
        let any_index = taken.iter().any(Candidate::is_index);
        let (taken, unfavored): (Vec<_>, Vec<_>) =
            taken.into_iter().partition(|candidate| candidate.is_index() == any_index);
        let mut ranked = rank(taken, &field_ranges).into_iter();
        let chosen = ranked.next().map(|(candidate, _)| candidate);
        let width = chosen.as_ref().map_or(0, Candidate::width);

        let unfavored_rank = (ranked.len() + usize::from(chosen.is_some())).max(1);
        let excluded_rank = unfavored_rank + usize::from(!unfavored.is_empty());
        let unusable_rank = excluded_rank + usize::from(!excluded.is_empty());
        let partial_rank = unusable_rank + usize::from(!self.unusable.is_empty());

        let mut others = Vec::new();
        let mut judge = |candidate, usable, reason, ranking| {
            others.push(Judgement { candidate, usable, reason, ranking });
        };
        for (ranking, (candidate, distance)) in (1..).zip(ranked) {
            let reason = match candidate.width() {
                _ if distance > 0 => Reason::LessOverlap,
                other if other > width => Reason::TooManyFields,
                _ => Reason::AlphabeticallyComesAfter,
            };
            judge(candidate, true, reason, ranking);
        }
        unfavored
            .into_iter()
            .for_each(|candidate| judge(candidate, true, Reason::UnfavoredType, unfavored_rank));
        excluded
            .into_iter()
            .for_each(|candidate| judge(candidate, true, Reason::ExcludedByUser, excluded_rank));
        for (candidate, reason) in self.unusable {
            judge(candidate, false, reason, unusable_rank);
        }
        self.partial
            .into_iter()
            .for_each(|candidate| judge(candidate, false, Reason::IsPartial, partial_rank));
        others.sort_by(|left, right| right.candidate.place().cmp(&left.candidate.place()));
        Choice { chosen, field_ranges, others }
    }
}

/// The best first, each with how many of the selector's ranges it does not serve.
fn rank(candidates: Vec<Candidate>, ranges: &[(String, FieldRange)]) -> Vec<(Candidate, usize)> {
    let distance = |candidate: &Candidate| match candidate {
        Candidate::Index(index) => ranges.len().saturating_sub(prefix(index, ranges).len()),
        Candidate::AllDocuments => 0,
    };
    let ranked = candidates.into_iter().map(|candidate| {
        let distance = distance(&candidate);
        (candidate, distance)
    });
    let mut ranked: Vec<(Candidate, usize)> = ranked.collect();
    ranked.sort_by(|(left, left_distance), (right, right_distance)| {
        let left = (left_distance, left.width(), left.place());
        left.cmp(&(right_distance, right.width(), right.place()))
    });
    ranked
}
