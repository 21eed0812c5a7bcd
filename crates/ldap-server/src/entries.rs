//! People and groups as entries.

use scrinium_database::access::readers::READERS;
use scrinium_database::{DatabaseError, ReadOptions, Result};
use scrinium_directory::{
    ADDRESS_READERS, Found, GROUP_FORM, Group, NameLookup, PERSON_FORM, Person, abbreviate, common_name,
};
use scrinium_ldap_wire::{DistinguishedName, Entry, Identifier, NormalName, RelativeName};
use scrinium_mail::Resolver;
use scrinium_views::DatabaseSession;
use serde_json::{Map, Value};

/// The fields of people that others see, with their attributes. What is not named here nobody sees.
const PERSON_ATTRIBUTES: [(&str, &str); 8] = [
    ("givenName", "FirstName"),
    ("telephoneNumber", "OfficePhoneNumber"),
    ("mobile", "CellPhoneNumber"),
    ("title", "JobTitle"),
    ("departmentNumber", "Department"),
    ("o", "CompanyName"),
    ("l", "Location"),
    ("employeeNumber", "EmployeeID"),
];

/// An entry has one value at most of these.
const SINGLE: [&str; 1] = ["employeeNumber"];

/// For who may not read all documents, each member of a group is looked at, and no more than this.
const MEMBERS_MAX: usize = 10_000;

/// The names of entries.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    base: DistinguishedName,
    people: DistinguishedName,
    groups: DistinguishedName,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// One of the entries that hold others.
    Above,
    /// A person, by short name.
    Person(String),
    /// A group.
    Group(String),
    /// Nothing that could be here.
    Nothing,
}

impl Named {
    /// Whether it stands for the same, in any case.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
        match (self, other) {
            (Self::Person(one), Self::Person(other)) | (Self::Group(one), Self::Group(other)) => {
                same(one, other)
            }
            (one, other) => one == other,
        }
    }
}

/// What somebody may see of the directory.
pub(crate) struct Sight {
    /// What they may read.
    pub(crate) whole: DatabaseSession,
    /// That, and those of whom they see names and addresses alone.
    pub(crate) addresses: DatabaseSession,
}

impl Sight {
    /// Whether somebody sees the document, or at least its names and addresses.
    fn shows(&self, id: &str) -> Result<bool> {
        Ok(self.whole.access().reads_everything() || is_there(&self.addresses, id)?)
    }

    /// Whether somebody sees names and addresses of a document and nothing else.
    fn is_address_alone(&self, document: &Map<String, Value>) -> Result<bool> {
        let is_ours = texts(document, READERS).any(|reader| reader == ADDRESS_READERS);
        if !is_ours || self.whole.access().reads_everything() {
            return Ok(false);
        }
        let id = document.get("_id").and_then(Value::as_str).unwrap_or_default();
        Ok(!is_there(&self.whole, id)?)
    }

    fn looked_at(&self, members: usize) -> usize {
        if self.whole.access().reads_everything() { members } else { members.min(MEMBERS_MAX) }
    }
}

fn is_there(session: &DatabaseSession, id: &str) -> Result<bool> {
    match session.read(id, &ReadOptions::default()) {
        Ok(_) => Ok(true),
        Err(DatabaseError::NotFound { .. } | DatabaseError::Forbidden { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Who is in groups, and whom of these somebody may see.
pub(crate) struct Lookup<'s> {
    pub(crate) directory: &'s dyn NameLookup,
    pub(crate) resolver: &'s Resolver,
    pub(crate) sight: &'s Sight,
}

fn part(attribute: &str, value: &str) -> Option<RelativeName> {
    Identifier::parse(attribute).map(|attribute| RelativeName::new(attribute, value.as_bytes()))
}

/// The attribute and value of a name's first part, where it has one value, and that is text.
fn own_value(name: &DistinguishedName) -> Option<(&str, &str)> {
    let mut values = name.parts.first()?.values();
    let (attribute, value) = values.next()?;
    let value = std::str::from_utf8(value).ok()?;
    values.next().is_none().then_some((attribute.as_str(), value))
}

impl Names {
    /// Names below a base; `None` for a text that is no name, or the empty one.
    pub(crate) fn new(base: &str) -> Option<Self> {
        let base = DistinguishedName::parse(base).ok().filter(|base| !base.is_root())?;
        let (people, groups) = (base.child(part("ou", "people")?), base.child(part("ou", "groups")?));
        Some(Self { base, people, groups })
    }

    pub(crate) fn person(&self, short_name: &str) -> Option<DistinguishedName> {
        Some(self.people.child(part("uid", short_name)?))
    }

    fn group(&self, name: &str) -> Option<DistinguishedName> {
        Some(self.groups.child(part("cn", name)?))
    }

    /// The entries that hold others: the base, and those of people and groups.
    pub(crate) fn above(&self) -> Vec<Entry> {
        let unit = |name: &DistinguishedName, ou: &str| {
            Entry::new(&name.to_string()).with("objectClass", ["top", "organizationalUnit"]).with("ou", [ou])
        };
        vec![self.base_entry(), unit(&self.people, "people"), unit(&self.groups, "groups")]
    }

    fn base_entry(&self) -> Entry {
        let entry = Entry::new(&self.base.to_string());
        match own_value(&self.base) {
            Some((attribute, value)) if attribute.eq_ignore_ascii_case("dc") => entry
                .with("objectClass", ["top", "organization", "dcObject"])
                .with("dc", [value])
                .with("o", [value]),
            Some((attribute, value)) if attribute.eq_ignore_ascii_case("o") => {
                entry.with("objectClass", ["top", "organization"]).with("o", [value])
            }
            Some((attribute, value)) if attribute.eq_ignore_ascii_case("ou") => {
                entry.with("objectClass", ["top", "organizationalUnit"]).with("ou", [value])
            }
            _ => entry.with("objectClass", ["top"]),
        }
    }

    /// What a name stands for.
    pub(crate) fn find(&self, name: &DistinguishedName) -> Named {
        let normal = NormalName::of(name);
        let is = |other: &DistinguishedName| NormalName::of(other) == normal;
        if is(&self.base) || is(&self.people) || is(&self.groups) {
            return Named::Above;
        }
        let Some((_, own)) = own_value(name) else { return Named::Nothing };
        let is_named = |named: Option<DistinguishedName>| named.is_some_and(|named| is(&named));
        if is_named(self.person(own)) {
            Named::Person(own.to_owned())
        } else if is_named(self.group(own)) {
            Named::Group(own.to_owned())
        } else {
            Named::Nothing
        }
    }

    /// The entry of a document; `None` where it is no person or group that can be read, or somebody who is disabled.
    ///
    /// # Errors
    /// What the store reports.
    pub(crate) fn entry(&self, document: &Map<String, Value>, lookup: &Lookup<'_>) -> Result<Option<Entry>> {
        match document.get("Form").and_then(Value::as_str) {
            Some(PERSON_FORM) => {
                let person = Person::read(document).ok().filter(|person| !person.account.is_disabled);
                let Some(person) = person else { return Ok(None) };
                let mailbox = lookup.resolver.mailbox_of(&person).map(|own| own.to_string());
                let Some(entry) = self.address_entry(&person, mailbox, document) else { return Ok(None) };
                let is_address_alone = lookup.sight.is_address_alone(document)?;
                Ok(Some(if is_address_alone { entry } else { with_details(entry, &person, document) }))
            }
            Some(GROUP_FORM) => match Group::read(document) {
                Ok(group) => self.group_entry(&group, document, lookup),
                Err(_) => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// The names and addresses of a person. `mailbox` is the address of one who has none in the directory.
    fn address_entry(
        &self,
        person: &Person,
        mailbox: Option<String>,
        document: &Map<String, Value>,
    ) -> Option<Entry> {
        let own_name = |name: &String| common_name(&abbreviate(name)).to_owned();
        let names: Vec<String> = person.full_names.iter().map(own_name).collect();
        let shown = names.first().unwrap_or(&person.short_name);
        let family = texts(document, "LastName").next();
        let family = family.or_else(|| shown.split_whitespace().last()).unwrap_or(shown);
        let own = person.internet_address.clone().or(mailbox);
        let addresses = own.iter().chain(&person.addresses);
        let entry = Entry::new(&self.person(&person.short_name)?.to_string())
            .with("objectClass", ["top", "person", "organizationalPerson", "inetOrgPerson"])
            .with("uid", [person.short_name.as_str()])
            .with("cn", names.iter().map(String::as_str))
            .with("sn", [family])
            .with("displayName", [shown.as_str()])
            .with("mail", addresses.map(String::as_str));
        Some(entry)
    }

    fn group_entry(
        &self,
        group: &Group,
        document: &Map<String, Value>,
        lookup: &Lookup<'_>,
    ) -> Result<Option<Entry>> {
        let Some(name) = self.group(&group.list_name) else { return Ok(None) };
        let addresses = group.internet_address.iter().chain(&group.addresses);
        let entry = Entry::new(&name.to_string())
            .with("objectClass", ["top", "groupOfNames"])
            .with("cn", [group.list_name.as_str()])
            .with("mail", addresses.map(String::as_str));
        if lookup.sight.is_address_alone(document)? {
            return Ok(Some(entry));
        }
        let mut members = Vec::new();
        for member in group.members.iter().take(lookup.sight.looked_at(group.members.len())) {
            let (id, name) = match lookup.directory.find(member) {
                Found::Person(person) if !person.account.is_disabled => {
                    (person.id.clone(), self.person(&person.short_name))
                }
                Found::Group(group) => (group.id.clone(), self.group(&group.list_name)),
                Found::Person(_) | Found::MailIn(_) | Found::Nobody | Found::Several => continue,
            };
            if let Some(name) = name
                && lookup.sight.shows(&id)?
            {
                members.push(name.to_string());
            }
        }
        let members = members.iter().map(String::as_str);
        Ok(Some(entry.with("member", members).with("description", texts(document, "ListDescription"))))
    }
}

/// The entry with what is more than names and addresses.
fn with_details(mut entry: Entry, person: &Person, document: &Map<String, Value>) -> Entry {
    entry = entry.with("preferredLanguage", person.language.as_deref());
    for (attribute, field) in PERSON_ATTRIBUTES {
        let count = if SINGLE.contains(&attribute) { 1 } else { usize::MAX };
        entry = entry.with(attribute, texts(document, field).take(count));
    }
    entry
}

/// The texts of a field that may be one or a list.
fn texts<'d>(document: &'d Map<String, Value>, field: &str) -> impl Iterator<Item = &'d str> + use<'d> {
    let values = match document.get(field) {
        Some(Value::Array(list)) => list.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    values.iter().filter_map(Value::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_leads_back_to_the_one_it_is_of_and_nowhere_else() {
        let names = Names::new("dc=example,dc=org").unwrap();
        let document = json!({"_id": "person:a+b", "Form": "Person", "ShortName": "a+b", "JobTitle": "Countess",
            "FullName": ["Ada Lovelace/Acme"], "InternetAddress": "ada@example.org", "Diary": "secret",
            "EmployeeID": ["1", "2"]});
        let document = document.as_object().unwrap().clone();
        let person = Person::read(&document).unwrap();
        let entry = names.address_entry(&person, None, &document).unwrap();
        assert_eq!(entry.text("title"), None);
        let entry = with_details(entry, &person, &document);
        assert_eq!((entry.text("cn"), entry.text("sn")), (Some("Ada Lovelace"), Some("Lovelace")));
        assert_eq!((entry.text("mail"), entry.text("title")), (Some("ada@example.org"), Some("Countess")));
        assert_eq!(entry.values("employeeNumber").count(), 1);
        assert!(
            !format!("{entry:?}").contains(&format!("{:?}", b"secret")),
            "what has no attribute is not shown"
        );
        let find = |name: &str| names.find(&DistinguishedName::parse(name).unwrap());
        assert_eq!(find(&entry.name), Named::Person("a+b".to_owned()));
        let group = names.group("Sales, Inc").unwrap().to_string();
        assert_eq!(find(&group), Named::Group("Sales, Inc".to_owned()));
        assert!(find("UID=ADA,OU=People,DC=Example,DC=org").is(&Named::Person("ada".to_owned())));
        assert_eq!(find("OU=People,DC=Example,DC=org"), Named::Above);
        for elsewhere in
            ["uid=ada,dc=example,dc=org", "uid=a+cn=b,ou=people,dc=example,dc=org", "dc=org", "cn=x", ""]
        {
            assert_eq!(find(elsewhere), Named::Nothing, "{elsewhere}");
        }
        assert!(Names::new("").is_none() && Names::new("no name").is_none());
    }
}
