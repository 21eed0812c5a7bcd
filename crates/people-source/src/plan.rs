//! What has to change in the directory so that it says what a source says.
//!
//! A plan is made of two states and changes nothing itself. A second plan, made when the first one was carried out, is
//! empty. Nobody is deleted: who is gone at the source is disabled, and a group that is gone there has no members
//! any more, so that names in access lists go on meaning who they meant.

mod claims;
mod groups;
mod people;

use std::collections::{BTreeSet, HashMap};

use thiserror::Error;

use crate::record::{Fields, GroupField, InitialPassword, PersonField, RecordPlace, SourceRecords, folded};

/// Whether a person of the directory may log in, and who said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// They may.
    Active,
    /// An administrator disabled them, which no source changes.
    DisabledHere,
    /// A plan disabled them.
    DisabledBySource,
}

/// Where a person or group of the directory comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From the source that the plan is for, where it has this identity.
    ThisSource(String),
    /// From another source, which alone may change it.
    OtherSource,
    /// It was made here.
    Local,
}

/// A person whom the directory has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPerson {
    /// The id of the document.
    pub id: String,
    /// Where the person comes from.
    pub origin: Origin,
    /// The name to log in with.
    pub short_name: String,
    /// What the directory says.
    pub fields: Fields<PersonField>,
    /// Whether the person may log in.
    pub standing: Standing,
}

/// A group that the directory has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownGroup {
    /// The id of the document.
    pub id: String,
    /// Where the group comes from.
    pub origin: Origin,
    /// Its name.
    pub name: String,
    /// Its members: short names, addresses, names of groups.
    pub members: Vec<String>,
    /// What the directory says.
    pub fields: Fields<GroupField>,
}

/// How a plan is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// The records are all that the source has, so that who is missing there is gone. A list of new people, or of what
    /// changed, is not complete.
    pub is_complete: bool,
    /// People and groups that were made here are taken over where a record has their name or address.
    pub takes_over: bool,
    /// If more than this part of the people of the source would be disabled, in percent, there is no plan: a source that
    /// answers half must not lock everybody out. Five may always be.
    pub most_disabled_percent: u8,
}

/// A person who changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonChange {
    /// The id of the document.
    pub id: String,
    /// The person comes from this source from now on, with this identity.
    pub takes_over: Option<String>,
    /// Another name to log in with, which the task that renames people carries out.
    pub short_name: Option<String>,
    /// Fields with their new values; without any, the field goes.
    pub fields: Fields<PersonField>,
    /// The person may log in from now on, or not.
    pub standing: Option<Standing>,
}

/// A group that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupChange {
    /// The id of the document.
    pub id: String,
    /// The group comes from this source from now on, with this identity.
    pub takes_over: Option<String>,
    /// Another name.
    pub name: Option<String>,
    /// All members from now on, if they change.
    pub members: Option<Vec<String>>,
    /// Fields with their new values; without any, the field goes.
    pub fields: Fields<GroupField>,
}

/// A person who is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonAddition {
    /// The identity at the source.
    pub identity: String,
    /// The name to log in with.
    pub short_name: String,
    /// What the source says.
    pub fields: Fields<PersonField>,
    /// Whether the person may log in.
    pub standing: Standing,
    /// The password to begin with, if the source gives one.
    pub password: Option<InitialPassword>,
}

/// A group that is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupAddition {
    /// The identity at the source.
    pub identity: String,
    /// Its name.
    pub name: String,
    /// Its members.
    pub members: Vec<String>,
    /// What the source says.
    pub fields: Fields<GroupField>,
}

/// A record that is left alone because it cannot be right, until somebody mends the source or the directory.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {what}")]
pub struct Conflict {
    /// Where the record stands.
    pub place: RecordPlace,
    /// What is wrong with it.
    pub what: ConflictKind,
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConflictKind {
    /// Two records of the source have one identity.
    #[error("another record has the same identity {0:?}")]
    Identity(String),
    /// Two records would take over the same person or group.
    #[error("another record is for {0:?} of the directory, too")]
    SamePerson(String),
    /// Two records of the source claim a name or an address.
    #[error("another record has the name or address {0:?}, too")]
    Claimed(String),
    /// Somebody of the directory has the name or the address.
    #[error("the name or address {what:?} is {holder:?}'s in the directory")]
    Taken {
        /// The name or address.
        what: String,
        /// The id of who has it.
        holder: String,
    },
}

/// A member of a group whom neither the source nor the directory knows, and who is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMember {
    /// The group.
    pub group: String,
    /// The member, as the source says.
    pub member: String,
}

/// Why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// Too many would be disabled.
    #[error(
        "{missing} of the {known} people of this source are missing in it, and at most {limit} may be; if they are really gone, allow more for once"
    )]
    TooManyMissing {
        /// People who are missing.
        missing: usize,
        /// People of the source in the directory.
        known: usize,
        /// How many may be missing.
        limit: usize,
    },
}

/// What has to change. It is carried out as a whole: what somebody gives up comes before what another one gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// People who are new.
    pub new_people: Vec<PersonAddition>,
    /// People who change; those who are gone at the source are disabled by such a change.
    pub changed_people: Vec<PersonChange>,
    /// People of the source who stay as they are.
    pub unchanged_people: usize,
    /// Groups that are new.
    pub new_groups: Vec<GroupAddition>,
    /// Groups that change.
    pub changed_groups: Vec<GroupChange>,
    /// Groups of the source that stay as they are.
    pub unchanged_groups: usize,
    /// Nobody is disabled, though the source is complete, because it has lines of which nobody can say whom they are about.
    pub disables_nobody: bool,
    /// Records that are left alone.
    pub conflicts: Vec<Conflict>,
    /// Members who are left out: the first [`UNKNOWN_MEMBERS_MAX`] of them.
    pub unknown_members: Vec<UnknownMember>,
}

/// Members who are left out and listed; of more nothing is said.
pub const UNKNOWN_MEMBERS_MAX: usize = 1000;

impl Plan {
    /// Whether nothing has to change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.new_people.is_empty()
            && self.changed_people.is_empty()
            && self.new_groups.is_empty()
            && self.changed_groups.is_empty()
    }
}

/// Makes a plan.
///
/// # Errors
/// [`PlanError`]
pub fn plan(
    people: &[KnownPerson],
    groups: &[KnownGroup],
    source: &SourceRecords,
    options: PlanOptions,
) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let matched_people = people::matched(people, &source.people, options);
    let matched_groups = groups::matched(groups, &source.groups, options);
    let state = PlanState { people, groups, source, matched_people, matched_groups };
    let settled = claims::settle(&state);
    plan.conflicts = settled.conflicts;
    people::plan(&state, &settled.people, &mut plan);
    groups::plan(&state, &settled.people, &settled.groups, &mut plan);
    if options.is_complete {
        if source.names_everybody() {
            plan_missing(people, groups, &identities_of(source), options, &mut plan)?;
        } else {
            plan.disables_nobody = true;
        }
    }
    Ok(plan)
}

/// All identities that a source has, those of records that were left out as well.
#[must_use]
pub fn identities_of(source: &SourceRecords) -> BTreeSet<String> {
    let people = source.people.iter().map(|record| record.identity.clone());
    let groups = source.groups.iter().map(|record| record.identity.clone());
    let left_out = source.left_out.iter().filter_map(|one| one.identity.clone());
    people.chain(groups).chain(left_out).collect()
}

/// Adds to a plan that people who are gone at the source are disabled, and groups that are gone have no members. It is for
/// a source that said all its identities, and not all records.
///
/// # Errors
/// [`PlanError`]
pub fn plan_missing(
    people: &[KnownPerson],
    groups: &[KnownGroup],
    identities: &BTreeSet<String>,
    options: PlanOptions,
    plan: &mut Plan,
) -> Result<(), PlanError> {
    people::disable_missing(people, identities, options, plan)?;
    groups::empty_missing(groups, identities, plan);
    Ok(())
}

/// The identities of a source that the directory does not know: their records have to be read as a whole.
#[must_use]
pub fn unknown_identities<'a>(
    people: &[KnownPerson],
    groups: &[KnownGroup],
    identities: &'a BTreeSet<String>,
) -> Vec<&'a str> {
    let origins = people.iter().map(|person| &person.origin).chain(groups.iter().map(|group| &group.origin));
    let known: BTreeSet<&str> = origins
        .filter_map(
            |origin| if let Origin::ThisSource(identity) = origin { Some(identity.as_str()) } else { None },
        )
        .collect();
    identities.iter().map(String::as_str).filter(|identity| !known.contains(identity)).collect()
}

/// What a plan is made of.
struct PlanState<'a> {
    people: &'a [KnownPerson],
    groups: &'a [KnownGroup],
    source: &'a SourceRecords,
    /// For each record, who it is about.
    matched_people: Vec<Match>,
    matched_groups: Vec<Match>,
}

/// Whom a record is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Match {
    /// Nobody yet.
    New,
    /// This one of the directory, by its place there.
    Known(usize),
    /// It cannot be told.
    Conflict(ConflictKind),
}

/// Marks all records that share something which only one may have.
fn refuse_shared<'a, K: std::hash::Hash + Eq>(
    matches: &mut [Match],
    keys: impl Fn(usize, &Match) -> Option<K>,
    conflict: impl Fn(&K) -> ConflictKind + 'a,
) {
    let mut seen: HashMap<K, usize> = HashMap::new();
    let mut shared = Vec::new();
    for (number, found) in matches.iter().enumerate() {
        let Some(key) = keys(number, found) else { continue };
        let what = conflict(&key);
        if let Some(first) = seen.get(&key) {
            shared.extend([(*first, what.clone()), (number, what)]);
        } else {
            seen.insert(key, number);
        }
    }
    for (number, what) in shared {
        if let Some(found) = matches.get_mut(number) {
            *found = Match::Conflict(what);
        }
    }
}

/// By what a person or group is known: in the directory, by where they come from; at the source, by their identity.
struct Named<'a, I: ?Sized> {
    identity: &'a I,
    name: &'a str,
    addresses: Vec<&'a String>,
}

/// What each record is about, of those whom the directory knows. `id_of` gives their documents.
fn matches_of<'a>(
    known: impl Iterator<Item = Named<'a, Origin>>,
    records: impl Iterator<Item = Named<'a, String>>,
    id_of: impl Fn(usize) -> String,
    options: PlanOptions,
) -> Vec<Match> {
    let mut finder = Finder::new();
    for (number, known) in known.enumerate() {
        finder.add(number, &known);
    }
    let mut identities = Vec::new();
    let mut matches = Vec::new();
    for record in records {
        identities.push(record.identity);
        matches.push(finder.find(&record, options.takes_over));
    }
    let identity = |number: usize, _: &Match| identities.get(number).copied();
    refuse_shared(&mut matches, identity, |identity| ConflictKind::Identity((*identity).clone()));
    let known = |_: usize, found: &Match| if let Match::Known(number) = found { Some(*number) } else { None };
    refuse_shared(&mut matches, known, |number| ConflictKind::SamePerson(id_of(*number)));
    matches
}

/// Matches records by their identities, and where that may be, by names and addresses of those who were made here.
struct Finder<'a> {
    by_identity: HashMap<&'a str, usize>,
    by_name: HashMap<String, usize>,
    by_address: HashMap<String, usize>,
}

impl<'a> Finder<'a> {
    fn new() -> Self {
        Self { by_identity: HashMap::new(), by_name: HashMap::new(), by_address: HashMap::new() }
    }

    fn add(&mut self, number: usize, known: &Named<'a, Origin>) {
        match known.identity {
            Origin::ThisSource(identity) => {
                self.by_identity.entry(identity).or_insert(number);
            }
            Origin::Local => {
                self.by_name.entry(folded(known.name)).or_insert(number);
                for address in &known.addresses {
                    self.by_address.entry(folded(address)).or_insert(number);
                }
            }
            Origin::OtherSource => {}
        }
    }

    /// By identity, then by name, then by address. Whether one who has the name may have the addresses as well is said
    /// by `claims`.
    fn find(&self, record: &Named<'_, String>, takes_over: bool) -> Match {
        if let Some(number) = self.by_identity.get(record.identity.as_str()) {
            return Match::Known(*number);
        }
        if !takes_over {
            return Match::New;
        }
        let by_address = || record.addresses.iter().find_map(|address| self.by_address.get(&folded(address)));
        let found = self.by_name.get(&folded(record.name)).or_else(by_address);
        found.map_or(Match::New, |number| Match::Known(*number))
    }
}

/// The addresses that a person's fields hold.
fn addresses_of(fields: &Fields<PersonField>) -> impl Iterator<Item = &String> {
    [PersonField::Address, PersonField::Aliases].into_iter().filter_map(|field| fields.get(&field)).flatten()
}

/// The address that a group's fields hold.
fn group_addresses(fields: &Fields<GroupField>) -> impl Iterator<Item = &String> {
    fields.get(&GroupField::Address).into_iter().flatten()
}

/// How a record is named in messages.
fn conflict(place: &RecordPlace, what: &ConflictKind) -> Conflict {
    Conflict { place: place.clone(), what: what.clone() }
}
