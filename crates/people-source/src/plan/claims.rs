//! Names and addresses that only one may have.
//!
//! A record is left alone if it wants what another record wants, too, or what somebody has and keeps. Somebody gives
//! something up only if their own record is not left alone, so that this is repeated until nothing more falls out. What is
//! left alone does not depend on the order of records, and is the same when the plan has been carried out.

use std::collections::{BTreeSet, HashMap};

use super::{Conflict, ConflictKind, Match, PlanState, addresses_of, conflict, group_addresses};
use crate::record::{RecordPlace, folded};

/// Which records are taken, and why the others are not.
pub(super) struct Settled {
    pub(super) people: Vec<bool>,
    pub(super) groups: Vec<bool>,
    pub(super) conflicts: Vec<Conflict>,
}

/// Somebody of the directory: what they have, and the record about them.
struct Holder<'a> {
    id: &'a str,
    has: BTreeSet<String>,
    record: Option<usize>,
}

/// A record: what it wants, and whom it is about.
struct Candidate<'a> {
    place: &'a RecordPlace,
    wants: BTreeSet<String>,
    holder: Option<usize>,
    lost: Option<ConflictKind>,
}

fn names<'a>(name: &str, addresses: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    addresses.map(|address| folded(address)).chain([folded(name)]).collect()
}

pub(super) fn settle(state: &PlanState<'_>) -> Settled {
    let mut holders = holders_of(state);
    let mut candidates = candidates_of(state);
    for (number, candidate) in candidates.iter().enumerate() {
        if candidate.lost.is_none()
            && let Some(holder) = candidate.holder.and_then(|holder| holders.get_mut(holder))
        {
            holder.record = Some(number);
        }
    }
    refuse_claimed(&mut candidates, &holders);
    refuse_taken(&mut candidates, &holders);
    let conflicts = candidates
        .iter()
        .filter_map(|candidate| candidate.lost.as_ref().map(|what| conflict(candidate.place, what)))
        .collect();
    let mut taken: Vec<bool> = candidates.iter().map(|candidate| candidate.lost.is_none()).collect();
    let groups = taken.split_off(state.source.people.len().min(taken.len()));
    Settled { people: taken, groups, conflicts }
}

/// People first, then groups.
fn holders_of<'a>(state: &PlanState<'a>) -> Vec<Holder<'a>> {
    let people = state.people.iter().map(|person| Holder {
        id: &person.id,
        has: names(&person.short_name, addresses_of(&person.fields)),
        record: None,
    });
    let groups = state.groups.iter().map(|group| Holder {
        id: &group.id,
        has: names(&group.name, group_addresses(&group.fields)),
        record: None,
    });
    people.chain(groups).collect()
}

/// People first, then groups.
fn candidates_of<'a>(state: &PlanState<'a>) -> Vec<Candidate<'a>> {
    let candidate = |place, wants, found: &Match, first: usize| {
        let (holder, lost) = match found {
            Match::New => (None, None),
            Match::Known(number) => (Some(first + number), None),
            Match::Conflict(what) => (None, Some(what.clone())),
        };
        Candidate { place, wants, holder, lost }
    };
    let people = state.source.people.iter().zip(&state.matched_people).map(|(record, found)| {
        let known = if let Match::Known(number) = found { state.people.get(*number) } else { None };
        let wanted = super::people::wanted_fields(record, known);
        // Of addresses that the source says nothing of, the directory keeps what it has.
        let kept = known.into_iter().flat_map(|known| {
            let fields =
                known.fields.iter().filter(|(field, _)| field.is_address() && !wanted.contains_key(field));
            fields.flat_map(|(_, values)| values)
        });
        candidate(&record.place, names(&record.short_name, addresses_of(&wanted).chain(kept)), found, 0)
    });
    let groups = state.source.groups.iter().zip(&state.matched_groups).map(|(record, found)| {
        let wants = names(&record.name, group_addresses(&record.fields));
        candidate(&record.place, wants, found, state.people.len())
    });
    people.chain(groups).collect()
}

/// What the one whom a candidate is about has already.
fn has<'a>(candidate: &Candidate<'_>, holders: &'a [Holder<'_>]) -> Option<&'a BTreeSet<String>> {
    candidate.holder.and_then(|holder| holders.get(holder)).map(|holder| &holder.has)
}

fn new_wants(candidate: &Candidate<'_>, holders: &[Holder<'_>]) -> Vec<String> {
    let has = has(candidate, holders);
    candidate.wants.iter().filter(|want| !has.is_some_and(|has| has.contains(*want))).cloned().collect()
}

/// Two records want the same, and none of those they are about has it: neither gets it.
fn refuse_claimed(candidates: &mut [Candidate<'_>], holders: &[Holder<'_>]) {
    let mut wanted: HashMap<String, Vec<usize>> = HashMap::new();
    for (number, candidate) in candidates.iter().enumerate().filter(|(_, candidate)| candidate.lost.is_none())
    {
        for want in new_wants(candidate, holders) {
            wanted.entry(want).or_default().push(number);
        }
    }
    let mut shared: Vec<(String, Vec<usize>)> =
        wanted.into_iter().filter(|(_, numbers)| numbers.len() > 1).collect();
    // What is said of a record that shares several does not depend on the order of a map.
    shared.sort_unstable();
    for (want, numbers) in shared {
        for number in numbers {
            if let Some(candidate) = candidates.get_mut(number).filter(|candidate| candidate.lost.is_none()) {
                candidate.lost = Some(ConflictKind::Claimed(want.clone()));
            }
        }
    }
}

/// Somebody has what a record wants, and keeps it.
fn refuse_taken(candidates: &mut [Candidate<'_>], holders: &[Holder<'_>]) {
    let mut held: HashMap<&str, usize> = HashMap::new();
    for (number, holder) in holders.iter().enumerate() {
        for name in &holder.has {
            held.entry(name).or_insert(number);
        }
    }
    // For each holder the records that want something of theirs.
    let mut waiting: HashMap<usize, Vec<(usize, String)>> = HashMap::new();
    for (number, candidate) in candidates.iter().enumerate().filter(|(_, candidate)| candidate.lost.is_none())
    {
        for want in new_wants(candidate, holders) {
            if let Some(holder) = held.get(want.as_str()).filter(|holder| Some(**holder) != candidate.holder)
            {
                waiting.entry(*holder).or_default().push((number, want));
            }
        }
    }
    let mut to_look_at: Vec<usize> = waiting.keys().copied().collect();
    to_look_at.sort_unstable();
    while let Some(number) = to_look_at.pop() {
        let Some(holder) = holders.get(number) else { continue };
        let keeper = holder.record.and_then(|record| candidates.get(record));
        let gives_up: Option<BTreeSet<String>> = keeper
            .filter(|keeper| keeper.lost.is_none())
            .map(|keeper| holder.has.difference(&keeper.wants).cloned().collect());
        for (record, want) in waiting.get(&number).into_iter().flatten() {
            let is_free = gives_up.as_ref().is_some_and(|given_up| given_up.contains(want));
            let Some(candidate) = candidates.get_mut(*record) else { continue };
            if !is_free && candidate.lost.is_none() {
                let what = ConflictKind::Taken { what: want.clone(), holder: holder.id.to_owned() };
                candidate.lost = Some(what);
                // Who loses keeps what they have, so that those who want it are looked at again.
                to_look_at.extend(candidate.holder.filter(|holder| waiting.contains_key(holder)));
            }
        }
    }
}
