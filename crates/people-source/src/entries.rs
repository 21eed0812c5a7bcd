//! Entries of other directories as people and groups: OpenLDAP's and its kin with `inetOrgPerson`, and Active Directory's.

use std::collections::BTreeMap;

use scrinium_ldap_wire::{Entry, Filter, MessageLimits};

use crate::record::{
    Fields, GroupField, GroupRecord, Member, PersonField, PersonRecord, RecordFault, RecordPlace,
    SourceRecords, checked_address, checked_short_name, cleaned,
};
use crate::table::{proxy_addresses, settle_addresses, settle_names};

/// What kind of directory the entries come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryKind {
    /// OpenLDAP, 389 Directory Server, FreeIPA and others: `inetOrgPerson`, `groupOfNames`, `posixGroup`, `entryUUID`.
    Standard,
    /// Active Directory and Samba: `user`, `group`, `objectGUID`, `userAccountControl`.
    ActiveDirectory,
}

impl DirectoryKind {
    /// The attributes to ask for.
    #[must_use]
    pub fn attributes(self) -> Vec<String> {
        let common =
            ["objectClass", "cn", "sn", "givenName", "displayName", "mail", "telephoneNumber", "mobile"];
        let more = ["title", "employeeNumber", "preferredLanguage", "description", "member", "memberUid"];
        let own: &[&str] = match self {
            Self::Standard => &[
                "uid",
                "o",
                "ou",
                "departmentNumber",
                "roomNumber",
                "l",
                "uniqueMember",
                "entryUUID",
                "nsUniqueId",
                "ipaUniqueID",
                "nsAccountLock",
                "pwdAccountLockedTime",
                "modifyTimestamp",
            ],
            Self::ActiveDirectory => &[
                "sAMAccountName",
                "userPrincipalName",
                "proxyAddresses",
                "company",
                "department",
                "employeeID",
                "physicalDeliveryOfficeName",
                "objectGUID",
                "userAccountControl",
                "uSNChanged",
                "isDeleted",
            ],
        };
        common.iter().chain(&more).chain(own).map(|&name| name.to_owned()).collect()
    }
}

impl DirectoryKind {
    /// The filter for people and groups, where an administrator chose none.
    #[must_use]
    pub fn filter(self) -> Filter {
        let text = match self {
            Self::Standard => {
                "(|(objectClass=person)(objectClass=posixAccount)(objectClass=groupOfNames)\
                 (objectClass=groupOfUniqueNames)(objectClass=posixGroup))"
            }
            Self::ActiveDirectory => "(|(&(objectCategory=person)(objectClass=user))(objectClass=group))",
        };
        Filter::parse(text, MessageLimits::CLIENT).unwrap_or_else(|_| Filter::any_entry())
    }
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Person,
    Group,
}

/// People and groups of entries; entries of other kinds are left out silently, such as computers.
#[must_use]
pub fn records_of<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    directory: DirectoryKind,
) -> SourceRecords {
    let mut records = SourceRecords::default();
    for entry in entries {
        let result = match kind_of(entry, directory) {
            Some(Kind::Person) => person_of(entry, directory).map(|person| records.people.push(person)),
            Some(Kind::Group) => group_of(entry, directory).map(|group| records.groups.push(group)),
            None => Ok(()),
        };
        if let Err(fault) = result {
            records.leave_out(place_of(entry), Some(identity_of(entry, directory)), fault);
        }
    }
    records
}

fn place_of(entry: &Entry) -> RecordPlace {
    RecordPlace::Entry(crate::record::quoted(&entry.name))
}

fn kind_of(entry: &Entry, directory: DirectoryKind) -> Option<Kind> {
    let is =
        |class: &str| entry.values("objectClass").any(|value| value.eq_ignore_ascii_case(class.as_bytes()));
    match directory {
        DirectoryKind::Standard => {
            if is("groupOfNames") || is("groupOfUniqueNames") || is("posixGroup") {
                Some(Kind::Group)
            } else if is("person") || is("inetOrgPerson") || is("posixAccount") {
                Some(Kind::Person)
            } else {
                None
            }
        }
        // Computers and accounts of services are kinds of `user`.
        DirectoryKind::ActiveDirectory => {
            let is_machine = is("computer") || is("msDS-GroupManagedServiceAccount");
            if is("group") {
                Some(Kind::Group)
            } else if (is("user") || is("inetOrgPerson")) && !is_machine {
                Some(Kind::Person)
            } else {
                None
            }
        }
    }
}

/// What stays the same of an entry whatever its name is. Without such an attribute, as in most LDIF files, the name has to
/// serve.
fn identity_of(entry: &Entry, directory: DirectoryKind) -> String {
    if directory == DirectoryKind::ActiveDirectory
        && let Some(guid) = entry.values("objectGUID").next().and_then(guid_text)
    {
        return guid;
    }
    ["entryUUID", "ipaUniqueID", "nsUniqueId"]
        .iter()
        .find_map(|name| entry.text(name))
        .map_or_else(|| crate::record::folded(&entry.name), str::to_ascii_lowercase)
}

/// The usual text of an `objectGUID`, whose first three parts are stored with the last byte first.
fn guid_text(bytes: &[u8]) -> Option<String> {
    let bytes: [u8; 16] = bytes.try_into().ok()?;
    let [a, b, c, d, e, f, g, h, rest @ ..] = bytes;
    let ordered = [[d, c, b, a], [f, e, h, g]].concat();
    let digits: Vec<String> = ordered.iter().chain(&rest).map(|byte| format!("{byte:02x}")).collect();
    let part = |range: std::ops::Range<usize>| digits.get(range).map(<[String]>::concat).unwrap_or_default();
    Some([part(0..4), part(4..6), part(6..8), part(8..10), part(10..16)].join("-"))
}

fn person_of(entry: &Entry, directory: DirectoryKind) -> Result<PersonRecord, RecordFault> {
    let mut fields = Fields::new();
    let office: &[&str] = match directory {
        DirectoryKind::Standard => &["roomNumber", "l"],
        DirectoryKind::ActiveDirectory => &["physicalDeliveryOfficeName"],
    };
    let sources: [(PersonField, &[&str]); 10] = [
        (PersonField::FullName, &["displayName", "cn"]),
        (PersonField::FirstName, &["givenName"]),
        (PersonField::LastName, &["sn"]),
        (PersonField::Telephone, &["telephoneNumber"]),
        (PersonField::Mobile, &["mobile"]),
        (PersonField::JobTitle, &["title"]),
        (PersonField::Department, &["department", "departmentNumber", "ou"]),
        (PersonField::Organization, &["company", "o"]),
        (PersonField::Office, office),
        (PersonField::EmployeeNumber, &["employeeNumber", "employeeID"]),
    ];
    for (field, attributes) in sources {
        let value = first_text(entry, attributes)?;
        fields.insert(field, value.into_iter().collect());
    }
    // RFC 2798, section 2.7: a list as HTTP has it, the best first.
    let language = first_text(entry, &["preferredLanguage"])?;
    let language = language.as_deref().and_then(|list| list.split([',', ';']).next()).map(str::trim);
    let language = language.filter(|one| !one.is_empty()).map(str::to_owned);
    fields.insert(PersonField::Language, language.into_iter().collect());
    fields.insert(PersonField::EntryName, vec![entry.name.clone()]);
    let has_primary_address = take_addresses(entry, &mut fields)?;
    let address = fields.get(&PersonField::Address).and_then(|addresses| addresses.first()).cloned();
    let login = first_text(entry, &["sAMAccountName", "uid", "userPrincipalName"])?.or(address);
    let login = login.ok_or(RecordFault::NoName)?;
    let short_name = checked_short_name(login.split('@').next().unwrap_or_default())?.to_owned();
    settle_names(&mut fields, &short_name);
    settle_addresses(&mut fields)?;
    Ok(PersonRecord {
        identity: identity_of(entry, directory),
        place: place_of(entry),
        short_name,
        fields,
        is_disabled: is_disabled(entry, directory),
        has_primary_address,
        password: None,
    })
}

/// The first value of the first of these attributes that has one. A value that is no text does not count.
fn first_text(entry: &Entry, attributes: &[&str]) -> Result<Option<String>, RecordFault> {
    for name in attributes {
        if let Some(value) = entry.text(name).map(|value| cleaned(name, value)).transpose()?.flatten() {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// All addresses of an entry; whether it says which is the first.
fn take_addresses(entry: &Entry, fields: &mut Fields<PersonField>) -> Result<bool, RecordFault> {
    let texts = |name| entry.values(name).filter_map(|value: &[u8]| std::str::from_utf8(value).ok());
    let (mut primary, mut aliases) = proxy_addresses(texts("proxyAddresses"))?;
    let mut has_primary = primary.is_some();
    let mut mails = Vec::new();
    for mail in texts("mail") {
        if let Some(mail) = cleaned("mail", mail)? {
            mails.push(checked_address(&mail)?.to_owned());
        }
    }
    // Values have no order: of several, any may be the first.
    has_primary |= mails.len() == 1;
    if primary.is_none() && !mails.is_empty() {
        primary = Some(mails.remove(0));
    }
    aliases.extend(mails);
    fields.insert(PersonField::Address, primary.into_iter().collect());
    fields.insert(PersonField::Aliases, aliases);
    Ok(has_primary)
}

fn is_disabled(entry: &Entry, directory: DirectoryKind) -> Option<bool> {
    /// ACCOUNTDISABLE of `userAccountControl` (MS-ADTS, section 2.2.16).
    const ACCOUNT_DISABLE: i64 = 2;
    match directory {
        DirectoryKind::ActiveDirectory => {
            let flags: i64 = entry.text("userAccountControl")?.parse().ok()?;
            Some(flags & ACCOUNT_DISABLE != 0)
        }
        DirectoryKind::Standard => {
            let locked = entry.text("nsAccountLock").is_some_and(|value| value.eq_ignore_ascii_case("true"));
            // OpenLDAP's policy of passwords: this time means until an administrator opens it.
            let closed = entry.text("pwdAccountLockedTime") == Some("000001010000Z");
            Some(locked || closed)
        }
    }
}

fn group_of(entry: &Entry, directory: DirectoryKind) -> Result<GroupRecord, RecordFault> {
    let name = first_text(entry, &["cn", "sAMAccountName"])?.ok_or(RecordFault::NoName)?;
    let mut fields = Fields::new();
    let mut person_fields = Fields::new();
    take_addresses(entry, &mut person_fields)?;
    fields.insert(GroupField::Address, person_fields.remove(&PersonField::Address).unwrap_or_default());
    let description = first_text(entry, &["description"]).unwrap_or_default();
    fields.insert(GroupField::Description, description.into_iter().collect());
    fields.insert(GroupField::EntryName, vec![entry.name.clone()]);
    let texts = |name| entry.values(name).filter_map(|value: &[u8]| std::str::from_utf8(value).ok());
    let by_entry = texts("member").chain(texts("uniqueMember"));
    let mut members: Vec<Member> = by_entry.map(|name| Member::Entry(name.to_owned())).collect();
    members.extend(texts("memberUid").map(|name| Member::Name(name.to_owned())));
    Ok(GroupRecord { identity: identity_of(entry, directory), place: place_of(entry), name, members, fields })
}

/// Values that Active Directory sends in ranges (MS-ADTS, section 3.1.1.3.1.3.3): `member;range=0-1499`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueRange {
    /// The attribute.
    pub attribute: String,
    /// The number of the first value of the next range; `None` if this was the last.
    pub next: Option<u32>,
}

impl ValueRange {
    /// Takes the name of an attribute apart; `None` if it is no range.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (attribute, option) = name.split_once(';')?;
        let (word, range) = option.split_once('=')?;
        if !word.eq_ignore_ascii_case("range") {
            return None;
        }
        let (_, last) = range.split_once('-')?;
        let next = if last == "*" { None } else { Some(last.parse::<u32>().ok()?.checked_add(1)?) };
        Some(Self { attribute: attribute.to_owned(), next })
    }

    /// Puts the values of ranges to those of the attribute itself; gives what is still to be asked for.
    #[must_use]
    pub fn join(entry: &mut Entry) -> Vec<Self> {
        let mut missing = Vec::new();
        let mut joined: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        entry.attributes.retain_mut(|attribute| {
            let Some(range) = Self::parse(&attribute.name) else { return true };
            joined.entry(range.attribute.clone()).or_default().append(&mut attribute.values);
            if range.next.is_some() {
                missing.push(range);
            }
            false
        });
        for (name, mut values) in joined {
            match entry.attributes.iter_mut().find(|attribute| attribute.name.eq_ignore_ascii_case(&name)) {
                Some(attribute) => attribute.values.append(&mut values),
                None => entry.attributes.push(scrinium_ldap_wire::Attribute { name, values }),
            }
        }
        missing
    }
}
