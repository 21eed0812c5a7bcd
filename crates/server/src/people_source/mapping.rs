//! People and groups of the directory as a source's plan knows them, and documents as a plan changes them.

use scrinium_directory::{
    ADMINISTRATOR_ROLE, GROUP_FORM, GROUP_PREFIX, Group, PERSON_FORM, PERSON_PREFIX, Person,
};
use scrinium_people_source::plan::{
    GroupAddition, GroupChange, KnownGroup, KnownPerson, Origin, PersonAddition, PersonChange, Standing,
};
use scrinium_people_source::{Fields, GroupField, PersonField};
use serde_json::{Value, json};

use crate::registry::Entry;

/// The field that names the source that a person or group comes from.
const SOURCE: &str = "Source";

/// The field with what stays the same at the source.
const SOURCE_ID: &str = "SourceId";

/// The field that says that the source, and no administrator, has disabled a person.
const DISABLED_BY_SOURCE: &str = "DisabledBySource";

/// The fields that a source may say something of.
const PERSON_FIELDS: [PersonField; 15] = [
    PersonField::FullName,
    PersonField::FirstName,
    PersonField::LastName,
    PersonField::Address,
    PersonField::Aliases,
    PersonField::Telephone,
    PersonField::Mobile,
    PersonField::JobTitle,
    PersonField::Department,
    PersonField::Organization,
    PersonField::Office,
    PersonField::EmployeeNumber,
    PersonField::Language,
    PersonField::TimeZone,
    PersonField::EntryName,
];

const GROUP_FIELDS: [GroupField; 3] = [GroupField::Address, GroupField::Description, GroupField::EntryName];

const fn group_field(field: GroupField) -> &'static str {
    match field {
        GroupField::Address => "InternetAddress",
        GroupField::Description => "ListDescription",
        GroupField::EntryName => "SourceEntry",
    }
}

fn texts(entry: &Entry, field: &str) -> Vec<String> {
    match entry.get(field) {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

fn text(entry: &Entry, field: &str) -> String {
    texts(entry, field).into_iter().next().unwrap_or_default()
}

fn origin(entry: &Entry, source: &str) -> Origin {
    match text(entry, SOURCE).as_str() {
        "" => Origin::Local,
        known if known == source => Origin::ThisSource(text(entry, SOURCE_ID)),
        _ => Origin::OtherSource,
    }
}

/// A person's document as a plan for this source knows it; `None` where it cannot be read.
pub(super) fn known_person(entry: &Entry, source: &str) -> Option<KnownPerson> {
    let person = Person::read(entry).ok()?;
    let mut fields = Fields::new();
    for field in PERSON_FIELDS {
        let values = texts(entry, field.document_field());
        if !values.is_empty() {
            fields.insert(field, values);
        }
    }
    let is_by_source = entry.get(DISABLED_BY_SOURCE).and_then(Value::as_bool) == Some(true);
    let standing = match (person.account.is_disabled, is_by_source) {
        (false, _) => Standing::Active,
        (true, true) => Standing::DisabledBySource,
        (true, false) => Standing::DisabledHere,
    };
    // No source disables or changes those who administer the server.
    let is_administrator = person.has_role(ADMINISTRATOR_ROLE);
    let origin = if is_administrator { Origin::OtherSource } else { origin(entry, source) };
    Some(KnownPerson { id: person.id, origin, short_name: person.short_name, fields, standing })
}

/// A group's document as a plan for this source knows it.
pub(super) fn known_group(entry: &Entry, source: &str) -> Option<KnownGroup> {
    let group = Group::read(entry).ok()?;
    let mut fields = Fields::new();
    for field in GROUP_FIELDS {
        let values = texts(entry, group_field(field));
        if !values.is_empty() {
            fields.insert(field, values);
        }
    }
    let origin = origin(entry, source);
    Some(KnownGroup { id: group.id, origin, name: group.list_name, members: group.members, fields })
}

/// The document of a person who is new.
pub(super) fn new_person(new: &PersonAddition, source: &str) -> Entry {
    let mut entry = Entry::new();
    let name = &new.short_name;
    put(&mut entry, "_id", json!(format!("{PERSON_PREFIX}{name}")));
    put(&mut entry, "Form", json!(PERSON_FORM));
    put(&mut entry, "ShortName", json!(name));
    put(&mut entry, "FullName", json!([name]));
    put_fields(&mut entry, &new.fields);
    comes_from(&mut entry, source, &new.identity);
    stand(&mut entry, new.standing);
    if let Some(password) = &new.password {
        put(&mut entry, "password", json!(password.0));
    }
    entry
}

/// A person's document after a change, all but another name to log in with.
pub(super) fn changed_person(mut entry: Entry, change: &PersonChange, source: &str) -> Entry {
    put_fields(&mut entry, &change.fields);
    if texts(&entry, "FullName").is_empty() {
        let name = text(&entry, "ShortName");
        put(&mut entry, "FullName", json!([name]));
    }
    if let Some(identity) = &change.takes_over {
        comes_from(&mut entry, source, identity);
    }
    if let Some(standing) = change.standing {
        stand(&mut entry, standing);
    }
    entry
}

/// The document of a group that is new.
pub(super) fn new_group(new: &GroupAddition, source: &str) -> Entry {
    let mut entry = Entry::new();
    let id = new.name.trim().to_lowercase().replace(' ', "-");
    put(&mut entry, "_id", json!(format!("{GROUP_PREFIX}{id}")));
    put(&mut entry, "Form", json!(GROUP_FORM));
    put(&mut entry, "ListName", json!(new.name));
    put(&mut entry, "Members", json!(new.members));
    put_group_fields(&mut entry, &new.fields);
    comes_from(&mut entry, source, &new.identity);
    entry
}

/// A group's document after a change, all but another name.
pub(super) fn changed_group(mut entry: Entry, change: &GroupChange, source: &str) -> Entry {
    put_group_fields(&mut entry, &change.fields);
    if let Some(members) = &change.members {
        put(&mut entry, "Members", json!(members));
    }
    if let Some(identity) = &change.takes_over {
        comes_from(&mut entry, source, identity);
    }
    entry
}

/// Where a change takes addresses away and gives others, the document without those that go: somebody else may get them.
pub(super) fn without_lost_addresses(mut entry: Entry, change: &PersonChange) -> Option<Entry> {
    let stays = |field: PersonField, address: &str| {
        change
            .fields
            .get(&field)
            .is_none_or(|values| values.iter().any(|value| value.eq_ignore_ascii_case(address)))
    };
    let mut is_changed = false;
    for field in [PersonField::Address, PersonField::Aliases] {
        let before = texts(&entry, field.document_field());
        let after: Vec<String> = before.iter().filter(|address| stays(field, address)).cloned().collect();
        if before != after {
            is_changed = true;
            put_values(&mut entry, field, &after);
        }
    }
    is_changed.then_some(entry)
}

fn put(entry: &mut Entry, field: &str, value: Value) {
    entry.insert(field.to_owned(), value);
}

fn put_fields(entry: &mut Entry, fields: &Fields<PersonField>) {
    for (field, values) in fields {
        put_values(entry, *field, values);
    }
}

fn put_values(entry: &mut Entry, field: PersonField, values: &[String]) {
    let name = field.document_field();
    let is_list = matches!(field, PersonField::FullName | PersonField::Aliases);
    match (values.first(), is_list) {
        (None, _) => drop(entry.shift_remove(name)),
        (Some(_), true) => put(entry, name, json!(values)),
        (Some(first), false) => put(entry, name, json!(first)),
    }
}

fn put_group_fields(entry: &mut Entry, fields: &Fields<GroupField>) {
    for (field, values) in fields {
        match values.first() {
            None => drop(entry.shift_remove(group_field(*field))),
            Some(first) => put(entry, group_field(*field), json!(first)),
        }
    }
}

fn comes_from(entry: &mut Entry, source: &str, identity: &str) {
    put(entry, SOURCE, json!(source));
    put(entry, SOURCE_ID, json!(identity));
}

fn stand(entry: &mut Entry, standing: Standing) {
    let is_disabled = standing != Standing::Active;
    if is_disabled || entry.contains_key("Disabled") {
        put(entry, "Disabled", json!(is_disabled));
    }
    if standing == Standing::DisabledBySource {
        put(entry, DISABLED_BY_SOURCE, json!(true));
    } else {
        entry.shift_remove(DISABLED_BY_SOURCE);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use scrinium_people_source::{PlanOptions, TableLimits, plan, read_table};

    use super::*;

    fn carried_out(people: &mut Vec<Entry>, csv: &str, is_complete: bool) -> bool {
        let records = read_table(csv.as_bytes(), TableLimits::default()).unwrap();
        let known: Vec<KnownPerson> =
            people.iter().filter_map(|person| known_person(person, "file")).collect();
        let options = PlanOptions { is_complete, takes_over: false, most_disabled_percent: 100 };
        let plan = plan(&known, &[], &records, options).unwrap();
        for change in &plan.changed_people {
            let person = people.iter_mut().find(|person| text(person, "_id") == change.id).unwrap();
            *person = changed_person(person.clone(), change, "file");
        }
        people.extend(plan.new_people.iter().map(|new| new_person(new, "file")));
        !plan.is_empty()
    }

    #[test]
    fn a_plan_that_was_carried_out_leaves_nothing_to_plan() {
        let mut people = Vec::new();
        let head = "First name,Last name,Username,Job title,Email\n";
        let ada = "Ada,Lovelace,ada,Engineer,ada@example.org\n";
        let bob = "Bob,Bones,bob,,bob@example.org\n";
        assert!(carried_out(&mut people, &format!("{head}{ada}{bob}"), true));
        assert!(!carried_out(&mut people, &format!("{head}{ada}{bob}"), true));
        assert_eq!(people.len(), 2);
        people.iter().for_each(|person| drop(Person::read(person).unwrap()));
        assert!(carried_out(&mut people, &format!("{head}{}", ada.replace("Engineer", "Countess")), true));
        assert_eq!(people[0]["JobTitle"], "Countess");
        assert_eq!((&people[1]["Disabled"], &people[1]["DisabledBySource"]), (&json!(true), &json!(true)));
        assert!(carried_out(&mut people, &format!("{head}{bob}"), false));
        assert_eq!(people[1]["Disabled"], json!(false));
    }
}
