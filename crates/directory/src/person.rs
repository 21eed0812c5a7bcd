//! The document of a person.

use std::sync::Arc;

use scrinium_accounting::Holder;
use scrinium_credentials::{Protocol, ProtocolSet, Standing, StoredCredentials};
use serde_json::Value;

use crate::DirectoryError;
use crate::administrator::ADMINISTRATOR_ROLE;
use crate::delegates::Delegates;
use crate::domain::domain_of;
use crate::fields::{Fields, addresses, check_address, check_identity, flag, refuse, text, texts, time_ms};
use crate::preferences::{Absence, language, time_zone};
use crate::record::{PASSWORD_HASH, PasswordEdit, take_over};
use crate::resource::{Resource, resource};
use crate::users_form::USERS_PREFIX;

/// The field `Form` of a person.
pub const PERSON_FORM: &str = "Person";

/// What every person's id starts with, but for those of CouchDB's form ([`USERS_PREFIX`]).
pub const PERSON_PREFIX: &str = "person:";

/// The field with further names of a person or group, which are theirs alone.
pub const OTHER_NAMES: &str = "OtherNames";

pub(crate) const MOST_NAMES: usize = 32;
const MOST_ROLES: usize = 128;
const MOST_FORWARDS: usize = 20;

/// A person, as read from a document of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Id of the document, `person:ada`.
    pub id: String,
    /// Full names; the first is the one shown. May be hierarchical: `Ada Lovelace/Engines/Acme`.
    pub full_names: Vec<String>,
    /// The name to log in with; no spaces.
    pub short_name: String,
    /// Further names that are this person's alone, such as those before a marriage: the person logs in with them, gets mail by them,
    /// and reads what names them.
    pub other_names: Vec<String>,
    /// The address at which mail from outside arrives, and from which the person writes.
    pub internet_address: Option<String>,
    /// Other addresses at which it arrives.
    pub addresses: Vec<String>,
    /// Where mail for the person goes on to.
    pub forwarding: Forwarding,
    /// The mail database.
    pub mail_file: String,
    /// In which language the server writes to the person: `de`, for one.
    pub language: Option<String>,
    /// Where the person's clock is: `Europe/Berlin`, for one.
    pub time_zone: Option<String>,
    /// That the person is out of office, or will be.
    pub absence: Option<Arc<Absence>>,
    /// Whom the person lets act for them.
    pub delegates: Arc<Delegates>,
    /// By what the person can show that it is them. They lie apart from the document.
    pub credentials: Arc<StoredCredentials>,
    /// Whether, until when and by what the person may come in.
    pub account: Standing,
    /// Roles; `_admin` administers the server.
    pub roles: Vec<String>,
    /// That it is nobody, but a room or another resource that people book.
    pub resource: Option<Arc<Resource>>,
    /// The name of the person's entry in the directory elsewhere that they come from and are kept in step with.
    pub source_entry: Option<String>,
}

/// Where mail for a person goes on to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forwarding {
    /// To these: addresses, here or elsewhere, or names of the directory. Nobody: it stays.
    pub to: Vec<String>,
    /// The person gets no copy.
    pub keeps_none: bool,
}

/// What people who come from a directory that is followed have in the field `Source`.
pub const FOLLOWED_SOURCE: &str = "ldap";

/// Longer names of entries are not taken.
const SOURCE_ENTRY_BYTES_MAX: usize = 2000;

/// Fields of a person's document that are the person's to set. Those of [`OPENING_FIELDS`] are among them.
pub const OWN_FIELDS: [&str; 13] = [
    "ForwardTo",
    "ForwardOnly",
    "SendAs",
    "SendOnBehalf",
    "MailReaders",
    "MailEditors",
    "Language",
    "TimeZone",
    "OutOfOffice",
    "OutOfOfficeFrom",
    "OutOfOfficeUntil",
    "OutOfOfficeSubject",
    "OutOfOfficeText",
];

/// Fields by which a person's mail gets to others, or others write as the person: a stolen session must not change them for good.
pub const OPENING_FIELDS: [&str; 6] =
    ["ForwardTo", "ForwardOnly", "SendAs", "SendOnBehalf", "MailReaders", "MailEditors"];

/// The entry of a person who comes from a directory elsewhere, in another way than by a file.
fn source_entry(document: &Fields) -> Option<String> {
    let is_followed = document.get("Source").and_then(Value::as_str) == Some(FOLLOWED_SOURCE);
    let entry = document.get("SourceEntry").and_then(Value::as_str).filter(|_| is_followed)?;
    (!entry.is_empty() && entry.len() <= SOURCE_ENTRY_BYTES_MAX).then(|| entry.to_owned())
}

impl Person {
    /// Reads a person's document.
    ///
    /// # Errors
    /// What is wrong with the document.
    pub fn read(document: &Fields) -> Result<Self, DirectoryError> {
        let id = document.get("_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let short_name = short_name(document)?;
        let internet_address = text(document, "InternetAddress")?;
        if let Some(address) = &internet_address {
            check_address("InternetAddress", address)?;
        }
        Ok(Self {
            id,
            full_names: full_names(document)?,
            other_names: texts(document, OTHER_NAMES, MOST_NAMES)?,
            mail_file: mail_file(document, &short_name)?,
            // What an earlier version took must not keep the person from being known.
            language: language(document).unwrap_or_default(),
            time_zone: time_zone(document).unwrap_or_default(),
            absence: Absence::read(document)?.map(Arc::new),
            delegates: Arc::new(Delegates::read(document)?),
            short_name,
            internet_address,
            addresses: addresses(document, "Addresses")?,
            forwarding: Forwarding {
                to: texts(document, "ForwardTo", MOST_FORWARDS)?,
                keeps_none: flag(document, "ForwardOnly")?,
            },
            credentials: Arc::new(brought_credentials(document)?),
            account: account(document)?,
            roles: texts(document, "Roles", MOST_ROLES)?,
            resource: resource(document).unwrap_or_default().map(Arc::new),
            source_entry: source_entry(document),
        })
    }

    /// The name to show: the first full name.
    #[must_use]
    pub fn shown_name(&self) -> &str {
        self.full_names.first().map_or(&self.short_name, |name| name)
    }

    /// A digest of what the person may do and how they show that it is them: another password, another second factor or other
    /// roles make it another one, and so does disabling the account. It does not depend on the order of roles.
    #[must_use]
    pub fn standing(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        let mut update = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        };
        update(&self.credentials.session_mark());
        update(&[u8::from(self.account.is_disabled)]);
        let mut roles: Vec<&str> = self.roles.iter().map(String::as_str).collect();
        roles.sort_unstable();
        roles.dedup();
        roles.into_iter().map(str::as_bytes).for_each(update);
        *hasher.finalize().as_bytes()
    }

    /// The domain whose the person is, in lower case: that of the main address.
    #[must_use]
    pub fn domain(&self) -> Option<String> {
        domain_of(self.internet_address.as_deref()?)
    }

    /// Whether the person has the role.
    #[must_use]
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|held| held == role)
    }

    /// For whom connections and requests of theirs count.
    #[must_use]
    pub fn holder(&self) -> Holder {
        let name = Arc::from(self.short_name.as_str());
        if self.has_role(ADMINISTRATOR_ROLE) { Holder::Administrator(name) } else { Holder::Person(name) }
    }
}

/// A document as it may stand in the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The document, without anything of a password.
    pub document: Fields,
    /// What it said of the person's password.
    pub password: PasswordEdit,
}

impl Prepared {
    /// A document that has nothing to do with passwords.
    pub(crate) const fn without_password(document: Fields) -> Self {
        Self { document, password: PasswordEdit::Keep }
    }
}

/// Checks a person's document on its way into the directory and completes it: a `password` in clear, and a `PasswordHash`, are
/// taken out, `FullName` and `Roles` become lists, `MailFile` is filled in from the short name. Everything else is kept as it is.
///
/// # Errors
/// What is wrong with the document, in words for the one who wrote it.
pub fn prepare_person(mut document: Fields) -> Result<Prepared, DirectoryError> {
    let password = PasswordEdit::take(&mut document)?;
    let is_users = document.get("_id").and_then(Value::as_str).is_some_and(|id| id.starts_with(USERS_PREFIX));
    let prefix = if is_users { USERS_PREFIX } else { PERSON_PREFIX };
    check_identity(&mut document, prefix, PERSON_FORM)?;
    let person = Person::read(&document)?;
    language(&document)?;
    time_zone(&document)?;
    resource(&document)?;
    document.insert("FullName".to_owned(), Value::from(person.full_names));
    document.insert("ShortName".to_owned(), Value::from(person.short_name));
    document.insert("MailFile".to_owned(), Value::from(person.mail_file));
    document.insert("Roles".to_owned(), Value::from(person.roles));
    Ok(Prepared { document, password })
}

/// Takes out of a person's document what only the server may see.
pub fn hide_secrets(document: &mut Fields) {
    document.shift_remove(PASSWORD_HASH);
    document.shift_remove("password");
}

fn full_names(document: &Fields) -> Result<Vec<String>, DirectoryError> {
    let names = texts(document, "FullName", MOST_NAMES)?;
    if names.is_empty() {
        return Err(DirectoryError::Missing { field: "FullName" });
    }
    Ok(names)
}

fn short_name(document: &Fields) -> Result<String, DirectoryError> {
    const FIELD: &str = "ShortName";
    let name = text(document, FIELD)?.ok_or(DirectoryError::Missing { field: FIELD })?;
    if name.len() > 64 {
        return Err(refuse(FIELD, &name, "a short name has at most 64 bytes"));
    }
    if name.contains(|c: char| c.is_whitespace() || "<>,;:\"@/".contains(c)) {
        return Err(refuse(FIELD, &name, "a short name has no spaces and none of < > , ; : \" @ /"));
    }
    Ok(name)
}

fn mail_file(document: &Fields, short_name: &str) -> Result<String, DirectoryError> {
    const FIELD: &str = "MailFile";
    let file = match text(document, FIELD)? {
        Some(file) => file,
        None => usual_mail_file(short_name),
    };
    // The router writes where this says; it must never be led into the directory or a mail.box.
    let path = file.strip_prefix("mail/").unwrap_or_default();
    let well_formed = !path.is_empty()
        && file.len() <= 238
        && !path.contains("..")
        && path.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_$()+/-.".contains(c))
        && path.split('/').all(|part| !part.is_empty());
    if well_formed {
        Ok(file)
    } else {
        Err(refuse(FIELD, &file, "a mail file is mail/NAME, of the characters a-z 0-9 _ $ ( ) + / - ."))
    }
}

/// The mail database of somebody of whom nothing else is said.
pub(crate) fn usual_mail_file(short_name: &str) -> String {
    format!("mail/{}", database_name_of(short_name))
}

/// A database name made of a short name: what a name may not hold becomes its code in hexadecimal.
fn database_name_of(short_name: &str) -> String {
    let mut name = String::with_capacity(short_name.len());
    for c in short_name.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_lowercase() || c.is_ascii_digit() || "_-+".contains(c) {
            name.push(c);
        } else {
            name.push_str(&format!("${:x}", u32::from(c)));
        }
    }
    name
}

/// What a hash in the document itself makes of the credentials: an earlier version kept it there.
fn brought_credentials(document: &Fields) -> Result<StoredCredentials, DirectoryError> {
    let mut credentials = StoredCredentials::default();
    match document.get(PASSWORD_HASH) {
        None | Some(Value::Null) => {}
        Some(Value::String(hash)) => credentials.put_password(take_over(hash)?, 0),
        Some(_) => return Err(DirectoryError::Type { field: PASSWORD_HASH, expected: "a text" }),
    }
    Ok(credentials)
}

/// How the document says that the account stands: `Disabled`, `Expires`, `SecondFactor` and `Protocols`.
fn account(document: &Fields) -> Result<Standing, DirectoryError> {
    let requires_second_factor = match text(document, "SecondFactor")?.as_deref() {
        None => false,
        Some("required") => true,
        Some(other) => return Err(refuse("SecondFactor", other, "it is \"required\", or not there")),
    };
    Ok(Standing {
        is_disabled: flag(document, "Disabled")?,
        expires_ms: time_ms(document, "Expires")?,
        requires_second_factor,
        protocols: protocols(document)?,
    })
}

fn protocols(document: &Fields) -> Result<ProtocolSet, DirectoryError> {
    const FIELD: &str = "Protocols";
    if matches!(document.get(FIELD), None | Some(Value::Null)) {
        return Ok(ProtocolSet::all());
    }
    let words = texts(document, FIELD, Protocol::ALL.len())?;
    let parse = |word: &String| {
        let rule =
            "a protocol is http, browser, submission, imap, pop3, managesieve, caldav, carddav or ldap";
        Protocol::parse(word).ok_or_else(|| refuse(FIELD, word, rule))
    };
    words.iter().map(parse).collect()
}
