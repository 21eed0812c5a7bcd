//! The columns of tables of people, by the names that Google, Microsoft, Outlook and Scrinium give them.

use crate::record::PersonField;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Column {
    Identity,
    ShortName,
    /// A name to log in with that is an address as well.
    LoginAddress,
    Field(PersonField),
    /// Addresses as Exchange lists them: `SMTP:` before the first one, `smtp:` before the others.
    ProxyAddresses,
    Groups,
    /// The person may log in, or not.
    Enabled,
    /// The person may not log in, or may.
    Blocked,
    /// In words: active, suspended.
    Status,
    Password,
}

/// The names of columns, without case, spaces and signs. Of two names of one column that are both in a table, the one that
/// comes first here is taken, and the other left out: in Outlook's table `Title` is what stands before a name.
const NAMES: &[(&str, Column)] = &[
    ("shortname", Column::ShortName),
    ("loginname", Column::ShortName),
    ("samaccountname", Column::ShortName),
    ("uid", Column::ShortName),
    ("username", Column::LoginAddress),
    ("userprincipalname", Column::LoginAddress),
    ("id", Column::Identity),
    ("objectid", Column::Identity),
    ("userid", Column::Identity),
    ("fullname", Column::Field(PersonField::FullName)),
    ("displayname", Column::Field(PersonField::FullName)),
    ("name", Column::Field(PersonField::FullName)),
    ("emaildisplayname", Column::Field(PersonField::FullName)),
    ("firstname", Column::Field(PersonField::FirstName)),
    ("givenname", Column::Field(PersonField::FirstName)),
    ("lastname", Column::Field(PersonField::LastName)),
    ("surname", Column::Field(PersonField::LastName)),
    ("familyname", Column::Field(PersonField::LastName)),
    ("internetaddress", Column::Field(PersonField::Address)),
    ("emailaddress", Column::Field(PersonField::Address)),
    ("email", Column::Field(PersonField::Address)),
    ("mail", Column::Field(PersonField::Address)),
    ("email1value", Column::Field(PersonField::Address)),
    ("primarysmtpaddress", Column::Field(PersonField::Address)),
    ("proxyaddresses", Column::ProxyAddresses),
    ("emailaddresses", Column::ProxyAddresses),
    ("telephone", Column::Field(PersonField::Telephone)),
    ("telephonenumber", Column::Field(PersonField::Telephone)),
    ("officephonenumber", Column::Field(PersonField::Telephone)),
    ("officephone", Column::Field(PersonField::Telephone)),
    ("workphone", Column::Field(PersonField::Telephone)),
    ("businessphone", Column::Field(PersonField::Telephone)),
    ("phonenumber", Column::Field(PersonField::Telephone)),
    ("phone", Column::Field(PersonField::Telephone)),
    ("mobile", Column::Field(PersonField::Mobile)),
    ("mobilephone", Column::Field(PersonField::Mobile)),
    ("cellphonenumber", Column::Field(PersonField::Mobile)),
    ("jobtitle", Column::Field(PersonField::JobTitle)),
    ("employeetitle", Column::Field(PersonField::JobTitle)),
    ("title", Column::Field(PersonField::JobTitle)),
    ("department", Column::Field(PersonField::Department)),
    ("company", Column::Field(PersonField::Organization)),
    ("companyname", Column::Field(PersonField::Organization)),
    ("organization", Column::Field(PersonField::Organization)),
    ("organisation", Column::Field(PersonField::Organization)),
    ("office", Column::Field(PersonField::Office)),
    ("officelocation", Column::Field(PersonField::Office)),
    ("officenumber", Column::Field(PersonField::Office)),
    ("location", Column::Field(PersonField::Office)),
    ("buildingid", Column::Field(PersonField::Office)),
    ("employeeid", Column::Field(PersonField::EmployeeNumber)),
    ("employeenumber", Column::Field(PersonField::EmployeeNumber)),
    ("language", Column::Field(PersonField::Language)),
    ("preferredlanguage", Column::Field(PersonField::Language)),
    ("timezone", Column::Field(PersonField::TimeZone)),
    ("groups", Column::Groups),
    ("group", Column::Groups),
    ("memberof", Column::Groups),
    ("enabled", Column::Enabled),
    ("accountenabled", Column::Enabled),
    ("disabled", Column::Blocked),
    ("blockcredential", Column::Blocked),
    ("blocksignin", Column::Blocked),
    ("suspended", Column::Blocked),
    ("status", Column::Status),
    ("password", Column::Password),
];

/// Columns that add to the others of their kind: Google and Outlook have one for each further address. What is private
/// (a recovery address, an alternate one at another provider) is no alias, since mail for it does not arrive here.
const ALIASES: &[&str] = &["aliases", "alias", "emailaliases", "email2address", "email3address"];

/// What a column with this head holds, and its rank among those of its kind, the smallest first. `None` for columns that
/// nothing is made of.
pub(crate) fn column(head: &str) -> Option<(Column, usize)> {
    let name = plain(head);
    if ALIASES.contains(&name.as_str()) {
        return Some((Column::Field(PersonField::Aliases), 0));
    }
    let rank = NAMES.iter().position(|(known, _)| *known == name)?;
    NAMES.get(rank).map(|(_, column)| (*column, rank))
}

/// `E-mail Address [Required]` is `emailaddress`.
fn plain(head: &str) -> String {
    let head = head.split('[').next().unwrap_or(head);
    head.chars().filter(|sign| sign.is_alphanumeric()).flat_map(char::to_lowercase).take(64).collect()
}

/// Whether a person may not log in, in the words of a table.
pub(crate) fn is_disabled(column: Column, value: &str) -> Option<bool> {
    let value = value.trim().to_lowercase();
    let says = match value.as_str() {
        "true" | "yes" | "y" | "1" | "x" => Some(true),
        "false" | "no" | "n" | "0" => Some(false),
        _ => None,
    };
    match column {
        Column::Enabled => says.map(|enabled| !enabled),
        Column::Blocked => says,
        _ => match value.as_str() {
            "active" | "enabled" => Some(false),
            "suspended" | "disabled" | "inactive" | "blocked" | "archived" | "deleted" => Some(true),
            _ => None,
        },
    }
}
