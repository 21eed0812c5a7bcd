//! Plans, carried out on a simple directory.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scrinium_people_source::plan::{
    ConflictKind, KnownGroup, KnownPerson, Origin, PlanError, Standing, identities_of, plan_missing,
    unknown_identities,
};
use scrinium_people_source::{
    Fields, GroupField, GroupRecord, LeftOut, Member, PersonField, PersonRecord, Plan, PlanOptions,
    RecordFault, RecordPlace, SourceRecords, plan,
};

const SYNC: PlanOptions = PlanOptions { is_complete: true, takes_over: true, most_disabled_percent: 50 };

fn record(identity: &str, short_name: &str, addresses: &[&str]) -> PersonRecord {
    let address = |range: std::ops::Range<usize>| {
        addresses.get(range).unwrap_or_default().iter().map(|&address| address.to_owned()).collect::<Vec<_>>()
    };
    let fields: Fields<PersonField> = BTreeMap::from([
        (PersonField::FullName, vec![short_name.to_uppercase()]),
        (PersonField::Address, address(0..addresses.len().min(1))),
        (PersonField::Aliases, address(1..addresses.len())),
        (PersonField::EntryName, vec![format!("uid={short_name},dc=x")]),
    ]);
    PersonRecord {
        identity: identity.to_owned(),
        place: RecordPlace::Line(1),
        short_name: short_name.to_owned(),
        fields,
        is_disabled: Some(false),
        has_primary_address: false,
        password: None,
    }
}

fn group(identity: &str, name: &str, members: &[&str]) -> GroupRecord {
    GroupRecord {
        identity: identity.to_owned(),
        place: RecordPlace::Line(1),
        name: name.to_owned(),
        members: members.iter().map(|&name| Member::Entry(format!("UID={name}, DC=X"))).collect(),
        fields: BTreeMap::from([(GroupField::EntryName, vec![format!("cn={name},dc=x")])]),
    }
}

fn source(people: Vec<PersonRecord>, groups: Vec<GroupRecord>) -> SourceRecords {
    SourceRecords { people, groups, ..SourceRecords::default() }
}

/// A directory that carries plans out.
#[derive(Clone, Debug, Default)]
struct Model {
    people: Vec<KnownPerson>,
    groups: Vec<KnownGroup>,
}

fn put<F: Ord>(into: &mut Fields<F>, changes: Fields<F>) {
    for (field, values) in changes {
        if values.is_empty() {
            into.remove(&field);
        } else {
            into.insert(field, values);
        }
    }
}

impl Model {
    fn plan(&self, source: &SourceRecords, options: PlanOptions) -> Plan {
        plan(&self.people, &self.groups, source, options).unwrap()
    }

    fn carry_out(&mut self, plan: Plan) {
        for change in plan.changed_people {
            let person = self.people.iter_mut().find(|person| person.id == change.id).unwrap();
            put(&mut person.fields, change.fields);
            person.origin = change.takes_over.map_or_else(|| person.origin.clone(), Origin::ThisSource);
            person.standing = change.standing.unwrap_or(person.standing);
            person.short_name = change.short_name.unwrap_or_else(|| person.short_name.clone());
        }
        for new in plan.new_people {
            let id = format!("person:{}", self.people.len());
            let origin = Origin::ThisSource(new.identity);
            let (short_name, fields, standing) = (new.short_name, new.fields, new.standing);
            self.people.push(KnownPerson { id, origin, short_name, fields, standing });
        }
        for change in plan.changed_groups {
            let group = self.groups.iter_mut().find(|group| group.id == change.id).unwrap();
            put(&mut group.fields, change.fields);
            group.origin = change.takes_over.map_or_else(|| group.origin.clone(), Origin::ThisSource);
            group.name = change.name.unwrap_or_else(|| group.name.clone());
            group.members = change.members.unwrap_or_else(|| group.members.clone());
        }
        for new in plan.new_groups {
            let id = format!("group:{}", self.groups.len());
            let origin = Origin::ThisSource(new.identity);
            self.groups.push(KnownGroup {
                id,
                origin,
                name: new.name,
                members: new.members,
                fields: new.fields,
            });
        }
        self.check();
    }

    /// A name or an address belongs to one.
    fn check(&self) {
        let mut seen = BTreeSet::new();
        for person in &self.people {
            let addresses = [PersonField::Address, PersonField::Aliases]
                .into_iter()
                .flat_map(|field| person.fields.get(&field).cloned().unwrap_or_default());
            for name in addresses.chain([person.short_name.clone()]) {
                assert!(seen.insert(name.to_lowercase()), "{name} twice in {self:#?}");
            }
        }
        for group in &self.groups {
            assert!(seen.insert(group.name.to_lowercase()), "{} twice in {self:#?}", group.name);
        }
    }

    fn of(source: &SourceRecords) -> Self {
        let mut model = Self::default();
        let plan = model.plan(source, SYNC);
        assert!(plan.conflicts.is_empty());
        model.carry_out(plan);
        model
    }
}

fn two() -> SourceRecords {
    source(
        vec![record("1", "ada", &["ada@x", "a@x"]), record("2", "bob", &["bob@x"])],
        vec![group("9", "engines", &["ada", "bob", "nobody"])],
    )
}

#[test]
fn people_and_groups_come_change_and_go() {
    let mut model = Model::default();
    let first = model.plan(&two(), SYNC);
    assert_eq!(
        (first.new_people.len(), first.new_groups[0].members.as_slice()),
        (2, ["ada", "bob"].map(str::to_owned).as_slice())
    );
    assert_eq!(first.unknown_members[0].member, "UID=nobody, DC=X");
    model.carry_out(first);
    let again = model.plan(&two(), SYNC);
    assert!(again.is_empty() && again.unchanged_people == 2 && again.unchanged_groups == 1, "{again:#?}");

    // Another name, an address less, and a member who goes.
    let mut changed = two();
    changed.people[0] = record("1", "countess", &["ada@x"]);
    changed.people.remove(1);
    changed.groups[0] = group("9", "engines", &["countess"]);
    let second = model.plan(&changed, SYNC);
    let [ada, bob] = second.changed_people.as_slice() else { panic!("{second:#?}") };
    assert_eq!((ada.id.as_str(), ada.short_name.as_deref()), ("person:0", Some("countess")));
    assert_eq!(ada.fields.get(&PersonField::Aliases), Some(&Vec::new()));
    assert_eq!((bob.id.as_str(), bob.standing), ("person:1", Some(Standing::DisabledBySource)));
    assert_eq!(second.changed_groups[0].members.as_deref(), Some(["countess".to_owned()].as_slice()));
    model.carry_out(second);
    assert!(model.plan(&changed, SYNC).is_empty());

    // Who comes back is let in again; a group that is gone has nobody in it.
    let mut back = two();
    back.groups.clear();
    let third = model.plan(&back, SYNC);
    assert!(third.changed_people.iter().any(|change| change.standing == Some(Standing::Active)));
    assert_eq!(third.changed_groups[0].members, Some(Vec::new()));
    model.carry_out(third);
    assert!(model.plan(&back, SYNC).is_empty());
}

#[test]
fn what_an_administrator_did_stays() {
    let mut model = Model::of(&two());
    model.people[0].standing = Standing::DisabledHere;
    // A field of which the source says nothing.
    model.people[0].fields.insert(PersonField::TimeZone, vec!["Europe/London".to_owned()]);
    assert!(model.plan(&two(), SYNC).is_empty());
    // The second address is the first one here, and the source does not say which is.
    model.people[0].fields.insert(PersonField::Address, vec!["a@x".to_owned()]);
    model.people[0].fields.insert(PersonField::Aliases, vec!["ada@x".to_owned()]);
    assert!(model.plan(&two(), SYNC).is_empty());
    let mut says = two();
    says.people[0].has_primary_address = true;
    let plan = model.plan(&says, SYNC);
    assert_eq!(plan.changed_people[0].fields[&PersonField::Address], ["ada@x"]);
}

#[test]
fn those_made_here_are_taken_over_only_if_that_is_wanted() {
    let mut model = Model::of(&two());
    for person in &mut model.people {
        person.origin = Origin::Local;
    }
    model.people[1].short_name = "robert".to_owned();
    let plan = model.plan(&source(two().people, vec![]), PlanOptions { takes_over: false, ..SYNC });
    assert!(plan.new_people.is_empty() && plan.conflicts.len() == 2);
    assert_eq!(
        plan.conflicts[1].what,
        ConflictKind::Taken { what: "bob@x".to_owned(), holder: "person:1".to_owned() }
    );
    let plan = model.plan(&two(), SYNC);
    let taken: Vec<_> = plan.changed_people.iter().map(|change| change.takes_over.as_deref()).collect();
    assert_eq!(taken, [Some("1"), Some("2")]);
    assert_eq!(plan.changed_people[1].short_name.as_deref(), Some("bob"));
    // The name of one and the address of another is nobody.
    let odd = source(vec![record("3", "ada", &["bob@x"])], vec![]);
    let plan = model.plan(&odd, SYNC);
    assert!(plan.changed_people.is_empty() && matches!(plan.conflicts[0].what, ConflictKind::Taken { .. }));
    // Nobody takes over what comes from another source.
    model.people[0].origin = Origin::OtherSource;
    assert!(matches!(model.plan(&two(), SYNC).conflicts[0].what, ConflictKind::Taken { .. }));
}

#[test]
fn names_and_addresses_belong_to_one() {
    let model = Model::of(&two());
    // Two at the source claim what is free; neither gets it.
    let claimed = source(
        vec![record("1", "ada", &["ada@x", "new@x"]), record("2", "bob", &["bob@x", "NEW@x"])],
        vec![],
    );
    let plan = model.plan(&claimed, SYNC);
    assert!(plan.conflicts.iter().all(|conflict| conflict.what == ConflictKind::Claimed("new@x".to_owned())));
    assert_eq!((plan.conflicts.len(), plan.changed_people.len()), (2, 0));
    // An address moves, and two names change places.
    for moved in [
        vec![record("1", "ada", &["ada@x"]), record("2", "bob", &["bob@x", "a@x"])],
        vec![record("1", "bob", &["ada@x", "a@x"]), record("2", "ada", &["bob@x"])],
    ] {
        let (moved, mut model) = (source(moved, vec![]), model.clone());
        let plan = model.plan(&moved, SYNC);
        assert!(plan.conflicts.is_empty() && plan.changed_people.len() == 2, "{plan:#?}");
        model.carry_out(plan);
        assert!(model.plan(&moved, SYNC).is_empty());
    }
    // Who would give something up is left alone for another reason, so that nothing is given up.
    let chain = source(
        vec![
            record("1", "ada", &["ada@x", "free@x"]),
            record("2", "bob", &["bob@x", "a@x"]),
            record("3", "eve", &["free@x"]),
        ],
        vec![],
    );
    let plan = model.plan(&chain, SYNC);
    assert_eq!(plan.conflicts.len(), 3);
    assert!(plan.changed_people.is_empty() && plan.new_people.is_empty());
    // The same identity twice.
    let twice = source(vec![record("1", "ada", &["ada@x"]), record("1", "ada2", &[])], vec![]);
    assert_eq!(model.plan(&twice, PlanOptions { is_complete: false, ..SYNC }).conflicts.len(), 2);
}

#[test]
fn a_source_that_answers_half_locks_nobody_out() {
    let people: Vec<PersonRecord> =
        (0..40).map(|number| record(&number.to_string(), &format!("p{number}"), &[])).collect();
    let model = Model::of(&source(people.clone(), vec![]));
    let half = |count: usize| source(people[..count].to_vec(), vec![]);
    let options = PlanOptions { most_disabled_percent: 20, ..SYNC };
    assert_eq!(model.plan(&half(32), options).changed_people.len(), 8);
    let error = plan(&model.people, &model.groups, &half(31), options).unwrap_err();
    assert_eq!(error, PlanError::TooManyMissing { missing: 9, known: 40, limit: 8 });
    assert!(plan(&model.people, &model.groups, &half(0), options).is_err());
    // What is no whole list disables nobody.
    assert!(model.plan(&half(0), PlanOptions { is_complete: false, ..options }).is_empty());
    // A line that is wrong is somebody, and may be anybody.
    let mut left_out = half(39);
    let fault =
        LeftOut { place: RecordPlace::Line(40), identity: Some("39".to_owned()), fault: RecordFault::NoName };
    left_out.left_out.push(fault);
    left_out.left_out_count = 1;
    let plan_of = model.plan(&left_out, options);
    assert!(plan_of.is_empty() && !plan_of.disables_nobody);
    left_out.left_out[0].identity = None;
    let plan_of = model.plan(&left_out, options);
    assert!(plan_of.is_empty() && plan_of.disables_nobody);
}

#[test]
fn identities_alone_say_who_is_gone_and_who_is_new() {
    let model = Model::of(&two());
    let mut identities = identities_of(&two());
    identities.remove("2");
    identities.insert("7".to_owned());
    assert_eq!(unknown_identities(&model.people, &model.groups, &identities), ["7"]);
    let mut plan = Plan::default();
    plan_missing(&model.people, &model.groups, &identities, SYNC, &mut plan).unwrap();
    let [gone] = plan.changed_people.as_slice() else { panic!("one is gone") };
    assert_eq!((gone.id.as_str(), plan.changed_groups.len()), ("person:1", 0));
}

fn any_source() -> impl Strategy<Value = SourceRecords> {
    let short_name = "[a-d]";
    let address = "[a-f]@x";
    let person = (0..6_u8, short_name, vec(address, 0..3), any::<(bool, bool)>()).prop_map(
        |(identity, short_name, mut addresses, (is_disabled, has_primary_address))| {
            addresses.sort();
            addresses.dedup();
            let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
            let record = record(&identity.to_string(), &short_name, &addresses);
            PersonRecord { is_disabled: Some(is_disabled), has_primary_address, ..record }
        },
    );
    let group = (10..13_u8, "[a-h]", vec("[a-d]", 0..3), option::of(Just("[a-f]"))).prop_map(
        |(identity, name, members, _)| {
            let members: Vec<&str> = members.iter().map(String::as_str).collect();
            group(&identity.to_string(), &name, &members)
        },
    );
    (vec(person, 0..6), vec(group, 0..3)).prop_map(|(people, groups)| source(people, groups))
}

proptest! {
    /// Whatever sources say one after the other: a name belongs to one, and a plan that was carried out leaves nothing.
    #[test]
    fn a_second_plan_is_empty(sources in vec((any_source(), any::<bool>(), any::<bool>()), 1..4), local: u8) {
        let mut model = Model::default();
        for (number, (source, is_complete, takes_over)) in sources.iter().enumerate() {
            let options = PlanOptions { is_complete: *is_complete, takes_over: *takes_over, most_disabled_percent: 100 };
            let first = model.plan(source, options);
            let conflicts = first.conflicts.clone();
            model.carry_out(first);
            let second = model.plan(source, options);
            prop_assert!(second.is_empty(), "{:#?} in {:#?} of {:#?}", second, model, source);
            prop_assert_eq!(second.conflicts, conflicts);
            // Some become people that were made here.
            for (place, person) in model.people.iter_mut().enumerate() {
                if (usize::from(local) >> ((place + number) % 8)) & 1 == 1 {
                    person.origin = Origin::Local;
                }
            }
        }
    }

    /// The order of a source's records says nothing.
    #[test]
    fn the_order_of_records_says_nothing(source in any_source(), before in any_source()) {
        let mut model = Model::default();
        model.carry_out(model.plan(&before, SYNC));
        let options = PlanOptions { most_disabled_percent: 100, ..SYNC };
        let mut turned = source.clone();
        turned.people.reverse();
        turned.groups.reverse();
        let (one, mut other) = (model.plan(&source, options), model.plan(&turned, options));
        let mut one_people = one.new_people.clone();
        one_people.sort_by_key(|person| person.identity.clone());
        other.new_people.sort_by_key(|person| person.identity.clone());
        prop_assert_eq!(one_people, other.new_people);
        prop_assert_eq!(one.changed_people.len(), other.changed_people.len());
        prop_assert_eq!(one.conflicts.len(), other.conflicts.len());
    }
}
