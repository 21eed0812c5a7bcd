//! Finds the messages that a command names in a folder's index, with the numbers that the client has for them.

use scrinium_imap_wire::SequenceSet;

use crate::numbers::NumberSet;
use crate::view::FolderView;

/// A folder's index at one snapshot: UIDs in ascending order that can be counted.
pub trait FolderIndex {
    /// How many messages have smaller UIDs.
    fn position(&self, uid: u32) -> u32;
    /// UIDs from this position on, up to a limit.
    fn uids_at(&self, position: u32, count: u32) -> Vec<u32>;
}

/// Messages that a command names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// By UIDs.
    Uids(NumberSet),
    /// By the client's numbers.
    Numbers(NumberSet),
}

/// Messages as a question names them: what `*` is depends on the state that the answer comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Messages {
    /// A set as the client sent it, and whether it is one of UIDs.
    Named(SequenceSet, bool),
    /// What an earlier answer left.
    Rest(Selection),
}

impl Messages {
    /// All messages.
    #[must_use]
    pub fn all() -> Self {
        Self::Rest(Selection::Uids(NumberSet::of_ranges([(1, u32::MAX)])))
    }

    /// What they are in a view that was brought up to date.
    #[must_use]
    pub fn resolve(&self, view: &FolderView) -> Selection {
        match self {
            Self::Named(set, true) => {
                Selection::Uids(NumberSet::of_ranges(set.resolve(view.state().last_uid)))
            }
            Self::Named(set, false) => Selection::Numbers(NumberSet::of_ranges(set.resolve(view.exists()))),
            Self::Rest(selection) => selection.clone(),
        }
    }
}

impl Selection {
    /// What is left of it behind this message.
    #[must_use]
    pub fn behind(&self, picked: Picked) -> Self {
        match self {
            Self::Uids(set) => Self::Uids(set.above(picked.uid)),
            Self::Numbers(set) => Self::Numbers(set.above(picked.number)),
        }
    }

    /// Whether nothing is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Uids(set) | Self::Numbers(set) => set.is_empty(),
        }
    }
}

/// A message that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picked {
    /// Its UID.
    pub uid: u32,
    /// Its number.
    pub number: u32,
}

/// The first messages of a selection, ascending. The view must have been brought up to the index's state. Fewer than `limit` are all.
#[must_use]
pub fn select(index: &impl FolderIndex, view: &FolderView, selection: &Selection, limit: u32) -> Vec<Picked> {
    let mut picked: Vec<Picked> = Vec::new();
    let (set, by_uid) = match selection {
        Selection::Uids(set) => (set, true),
        Selection::Numbers(set) => (set, false),
    };
    for (from, to) in set.ranges().iter().copied() {
        let left = limit.saturating_sub(u32::try_from(picked.len()).unwrap_or(u32::MAX));
        if left == 0 {
            break;
        }
        let found = span(index, view, by_uid, (from, to));
        let Some((first, count)) = found else { continue };
        let uids = index.uids_at(first, count.min(left));
        picked.extend((first..).zip(uids).filter_map(|(position, uid)| {
            view.number_of(uid, position).map(|number| Picked { uid, number })
        }));
    }
    picked
}

/// Those of a selection from and to a place among its messages, which counts from the end where it is negative (RFC 9394).
#[must_use]
pub fn narrow(
    index: &impl FolderIndex,
    view: &FolderView,
    selection: &Selection,
    (from, to): (i64, i64),
) -> Selection {
    let spans = spans(index, view, selection);
    let count: i64 = spans.iter().map(|(_, count)| i64::from(*count)).sum();
    let place = |place: i64| if place > 0 { place - 1 } else { count + place };
    let (first, last) = (place(from).min(place(to)).max(0), place(from).max(place(to)));
    let uid_at = |wanted: i64| {
        let mut before = 0;
        for (start, count) in &spans {
            let inside = wanted - before;
            if inside < i64::from(*count) {
                let position = start.checked_add(u32::try_from(inside).ok()?)?;
                return index.uids_at(position, 1).first().copied();
            }
            before += i64::from(*count);
        }
        None
    };
    let nothing = Selection::Uids(NumberSet::default());
    if last < 0 || first >= count {
        return nothing;
    }
    let (Some(first), Some(last)) = (uid_at(first), uid_at(last.min(count - 1))) else { return nothing };
    match selection {
        Selection::Uids(set) => Selection::Uids(set.above(first.saturating_sub(1)).up_to(last)),
        Selection::Numbers(_) => Selection::Uids(NumberSet::of_ranges([(first, last)])),
    }
}

/// Where the messages of a selection lie: first positions, and how many.
fn spans(index: &impl FolderIndex, view: &FolderView, selection: &Selection) -> Vec<(u32, u32)> {
    let (set, by_uid) = match selection {
        Selection::Uids(set) => (set, true),
        Selection::Numbers(set) => (set, false),
    };
    let span = |(from, to): &(u32, u32)| span(index, view, by_uid, (*from, *to));
    set.ranges().iter().filter_map(span).collect()
}

fn span(
    index: &impl FolderIndex,
    view: &FolderView,
    by_uid: bool,
    (from, to): (u32, u32),
) -> Option<(u32, u32)> {
    if !by_uid {
        return view.positions(from, to);
    }
    let to = to.min(view.state().uid_next.saturating_sub(1));
    if from > to {
        return None;
    }
    let first = index.position(from);
    let behind = to.checked_add(1).map_or_else(|| view.state().count, |behind| index.position(behind));
    Some((first, behind.saturating_sub(first))).filter(|(_, count)| *count > 0)
}
