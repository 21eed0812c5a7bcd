//! People of a plan.

use std::collections::BTreeSet;

use super::{
    KnownPerson, Match, Named, Origin, PersonAddition, PersonChange, Plan, PlanError, PlanOptions, PlanState,
    Standing, addresses_of, matches_of,
};
use crate::record::{Fields, PersonField, PersonRecord, folded};

/// Whom each record is about.
pub(super) fn matched(people: &[KnownPerson], records: &[PersonRecord], options: PlanOptions) -> Vec<Match> {
    let known = people.iter().map(|person| Named {
        identity: &person.origin,
        name: &person.short_name,
        addresses: addresses_of(&person.fields).collect(),
    });
    let asked = records.iter().map(|record| Named {
        identity: &record.identity,
        name: &record.short_name,
        addresses: addresses_of(&record.fields).collect(),
    });
    let id_of = |number: usize| people.get(number).map(|person| person.id.clone()).unwrap_or_default();
    matches_of(known, asked, id_of, options)
}

/// What the directory has to say of a person's fields, as far as the record says anything.
pub(super) fn wanted_fields(record: &PersonRecord, known: Option<&KnownPerson>) -> Fields<PersonField> {
    let mut fields = record.fields.clone();
    let Some(known) = known else {
        fields.retain(|_, values| !values.is_empty());
        return fields;
    };
    // A source that does not say which address is the first does not change it.
    let current = known.fields.get(&PersonField::Address).and_then(|addresses| addresses.first());
    if let Some(current) = current.filter(|_| !record.has_primary_address) {
        let all: Vec<String> = addresses_of(&record.fields).cloned().collect();
        if all.iter().any(|address| folded(address) == folded(current)) {
            let others = all.into_iter().filter(|address| folded(address) != folded(current)).collect();
            fields.insert(PersonField::Address, vec![current.clone()]);
            fields.insert(PersonField::Aliases, others);
        }
    }
    fields
}

/// Whether two lists of values are the same: addresses in any case, and aliases in any order.
fn is_same(field: PersonField, one: &[String], other: &[String]) -> bool {
    if !field.is_address() {
        return one == other;
    }
    let all = |values: &[String]| values.iter().map(|value| folded(value)).collect::<BTreeSet<String>>();
    all(one) == all(other)
}

pub(super) fn plan(state: &PlanState<'_>, taken: &[bool], plan: &mut Plan) {
    let records = state.source.people.iter().zip(&state.matched_people).zip(taken);
    for ((record, found), _) in records.filter(|(_, taken)| **taken) {
        match found {
            Match::New => plan.new_people.push(addition(record)),
            Match::Known(known) => match state.people.get(*known).and_then(|known| change(record, known)) {
                Some(change) => plan.changed_people.push(change),
                None => plan.unchanged_people += 1,
            },
            Match::Conflict(_) => {}
        }
    }
}

fn addition(record: &PersonRecord) -> PersonAddition {
    let is_disabled = record.is_disabled.unwrap_or_default();
    PersonAddition {
        identity: record.identity.clone(),
        short_name: record.short_name.clone(),
        fields: wanted_fields(record, None),
        standing: if is_disabled { Standing::DisabledBySource } else { Standing::Active },
        password: record.password.clone(),
    }
}

/// What changes of a person; `None` if nothing does.
fn change(record: &PersonRecord, known: &KnownPerson) -> Option<PersonChange> {
    let none = Vec::new();
    let mut fields = wanted_fields(record, Some(known));
    fields.retain(|field, values| !is_same(*field, values, known.fields.get(field).unwrap_or(&none)));
    let standing = match (known.standing, record.is_disabled.unwrap_or_default()) {
        (Standing::Active, true) => Some(Standing::DisabledBySource),
        (Standing::DisabledBySource, false) => Some(Standing::Active),
        _ => None,
    };
    let takes_over = (known.origin == Origin::Local).then(|| record.identity.clone());
    let short_name = (record.short_name != known.short_name).then(|| record.short_name.clone());
    let changes = takes_over.is_some() || short_name.is_some() || standing.is_some() || !fields.is_empty();
    changes.then(|| PersonChange { id: known.id.clone(), takes_over, short_name, fields, standing })
}

pub(super) fn disable_missing(
    people: &[KnownPerson],
    identities: &BTreeSet<String>,
    options: PlanOptions,
    plan: &mut Plan,
) -> Result<(), PlanError> {
    const ALWAYS: usize = 5;
    // Who has been disabled does not count: they are no reason to stop, nor do they hide that the others are missing.
    let active = people.iter().filter(|person| person.standing == Standing::Active);
    let of_source = active.filter_map(|person| match &person.origin {
        Origin::ThisSource(identity) => Some((person, identities.contains(identity))),
        Origin::OtherSource | Origin::Local => None,
    });
    let (mut known, mut missing) = (0, Vec::new());
    for (person, is_there) in of_source {
        known += 1;
        if !is_there {
            missing.push(person);
        }
    }
    let limit = (known * usize::from(options.most_disabled_percent) / 100).max(ALWAYS);
    if missing.len() > limit {
        return Err(PlanError::TooManyMissing { missing: missing.len(), known, limit });
    }
    plan.changed_people.extend(missing.into_iter().map(|person| PersonChange {
        id: person.id.clone(),
        takes_over: None,
        short_name: None,
        fields: Fields::new(),
        standing: Some(Standing::DisabledBySource),
    }));
    Ok(())
}
