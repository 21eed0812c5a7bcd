//! Groups of a plan.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use scrinium_ldap_wire::{DistinguishedName, NormalName};

use super::{
    GroupAddition, GroupChange, KnownGroup, Match, Named, Origin, Plan, PlanOptions, PlanState,
    UNKNOWN_MEMBERS_MAX, UnknownMember, addresses_of, group_addresses, matches_of, people::wanted_fields,
};
use crate::record::{Fields, GroupField, GroupRecord, Member, PersonField, folded, quoted};

/// What each record is about.
pub(super) fn matched(groups: &[KnownGroup], records: &[GroupRecord], options: PlanOptions) -> Vec<Match> {
    let known = groups.iter().map(|group| Named {
        identity: &group.origin,
        name: &group.name,
        addresses: group_addresses(&group.fields).collect(),
    });
    let asked = records.iter().map(|record| Named {
        identity: &record.identity,
        name: &record.name,
        addresses: group_addresses(&record.fields).collect(),
    });
    let id_of = |number: usize| groups.get(number).map(|group| group.id.clone()).unwrap_or_default();
    matches_of(known, asked, id_of, options)
}

/// The names by which members are known once the plan is carried out.
struct Members {
    by_name: HashMap<String, String>,
    by_entry: HashMap<NormalName, String>,
}

impl Members {
    fn new(state: &PlanState<'_>, people: &[bool], groups: &[bool]) -> Self {
        let mut members = Self { by_name: HashMap::new(), by_entry: HashMap::new() };
        let mut people_after: Vec<(&str, Fields<PersonField>)> =
            state.people.iter().map(|known| (known.short_name.as_str(), known.fields.clone())).collect();
        let records = state.source.people.iter().zip(&state.matched_people).zip(people);
        for ((record, found), _) in records.filter(|(_, taken)| **taken) {
            let known = if let Match::Known(known) = found { Some(*known) } else { None };
            let wanted = wanted_fields(record, known.and_then(|known| state.people.get(known)));
            match known.and_then(|known| people_after.get_mut(known)) {
                Some((name, fields)) => {
                    *name = &record.short_name;
                    fields.extend(wanted);
                }
                None => people_after.push((&record.short_name, wanted)),
            }
        }
        for (name, fields) in &people_after {
            members.add(name, addresses_of(fields), fields.get(&PersonField::EntryName));
        }
        let mut groups_after: Vec<(&str, Fields<GroupField>)> =
            state.groups.iter().map(|known| (known.name.as_str(), known.fields.clone())).collect();
        let records = state.source.groups.iter().zip(&state.matched_groups).zip(groups);
        for ((record, found), _) in records.filter(|(_, taken)| **taken) {
            let known = if let Match::Known(known) = found { groups_after.get_mut(*known) } else { None };
            match known {
                Some((name, fields)) => {
                    *name = &record.name;
                    fields.extend(record.fields.clone());
                }
                None => groups_after.push((&record.name, record.fields.clone())),
            }
        }
        for (name, fields) in &groups_after {
            members.add(name, group_addresses(fields), fields.get(&GroupField::EntryName));
        }
        members
    }

    fn add<'a>(
        &mut self,
        name: &str,
        addresses: impl Iterator<Item = &'a String>,
        entry: Option<&Vec<String>>,
    ) {
        for address in addresses {
            self.by_name.insert(folded(address), name.to_owned());
        }
        self.by_name.insert(folded(name), name.to_owned());
        let entry =
            entry.and_then(|names| names.first()).and_then(|name| DistinguishedName::parse(name).ok());
        if let Some(entry) = entry {
            self.by_entry.insert(NormalName::of(&entry), name.to_owned());
        }
    }

    fn find(&self, member: &Member) -> Option<&String> {
        match member {
            Member::Name(name) => self.by_name.get(&folded(name)),
            Member::Entry(name) => {
                let name = DistinguishedName::parse(name).ok()?;
                self.by_entry.get(&NormalName::of(&name))
            }
        }
    }

    /// The members of a group by the names they have in the directory, each once, in order.
    fn of(&self, record: &GroupRecord, unknown: &mut Vec<UnknownMember>) -> Vec<String> {
        let mut members: BTreeMap<String, String> = BTreeMap::new();
        for member in &record.members {
            match self.find(member) {
                // A group that is in itself, as some directories have it, is not.
                Some(name) if folded(name) != folded(&record.name) => {
                    members.insert(folded(name), name.clone());
                }
                Some(_) => {}
                None if unknown.len() < UNKNOWN_MEMBERS_MAX => {
                    let (Member::Name(name) | Member::Entry(name)) = member;
                    unknown.push(UnknownMember { group: record.name.clone(), member: quoted(name) });
                }
                None => {}
            }
        }
        members.into_values().collect()
    }
}

pub(super) fn plan(state: &PlanState<'_>, people: &[bool], groups: &[bool], plan: &mut Plan) {
    let names = Members::new(state, people, groups);
    let records = state.source.groups.iter().zip(&state.matched_groups).zip(groups);
    for ((record, found), _) in records.filter(|(_, taken)| **taken) {
        let members = names.of(record, &mut plan.unknown_members);
        match found {
            Match::New => plan.new_groups.push(addition(record, members)),
            Match::Known(known) => {
                match state.groups.get(*known).and_then(|known| change(record, members, known)) {
                    Some(change) => plan.changed_groups.push(change),
                    None => plan.unchanged_groups += 1,
                }
            }
            Match::Conflict(_) => {}
        }
    }
}

pub(super) fn empty_missing(groups: &[KnownGroup], identities: &BTreeSet<String>, plan: &mut Plan) {
    let missing = groups.iter().filter(|group| {
        let is_gone = matches!(&group.origin, Origin::ThisSource(identity) if !identities.contains(identity));
        is_gone && !group.members.is_empty()
    });
    plan.changed_groups.extend(missing.map(|group| GroupChange {
        id: group.id.clone(),
        takes_over: None,
        name: None,
        members: Some(Vec::new()),
        fields: Fields::new(),
    }));
}

fn addition(record: &GroupRecord, members: Vec<String>) -> GroupAddition {
    let mut fields = record.fields.clone();
    fields.retain(|_, values| !values.is_empty());
    GroupAddition { identity: record.identity.clone(), name: record.name.clone(), members, fields }
}

/// What changes of a group; `None` if nothing does.
fn change(record: &GroupRecord, members: Vec<String>, known: &KnownGroup) -> Option<GroupChange> {
    let none = Vec::new();
    let all = |values: &[String]| values.iter().map(|value| folded(value)).collect::<BTreeSet<String>>();
    let mut fields = record.fields.clone();
    fields.retain(|field, values| {
        let current = known.fields.get(field).unwrap_or(&none);
        let is_same =
            if *field == GroupField::Address { all(values) == all(current) } else { values == current };
        !is_same
    });
    let members = (all(&members) != all(&known.members)).then_some(members);
    let takes_over = (known.origin == Origin::Local).then(|| record.identity.clone());
    let name = (record.name != known.name).then(|| record.name.clone());
    let changes = takes_over.is_some() || name.is_some() || members.is_some() || !fields.is_empty();
    changes.then(|| GroupChange { id: known.id.clone(), takes_over, name, members, fields })
}
