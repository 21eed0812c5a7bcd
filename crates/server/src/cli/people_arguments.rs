//! What can be typed about people and groups.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::arguments::ConnectionArguments;

/// What to do with people.
#[derive(Clone, Debug, Subcommand)]
pub enum PersonCommand {
    /// Add a person to the directory; the password is asked for, or read
    #[command(after_help = PASSWORDS)]
    Add(PersonAddArguments),
    /// Add and change people and groups as a table (CSV) or an LDIF file says
    #[command(after_help = IMPORT)]
    Import(PersonImportArguments),
    /// Set fields of a person: aliases, forwarding, delegates, language
    #[command(after_help = PERSON_FIELDS)]
    Set(SetArguments),
    /// Everybody in the directory
    List {
        /// The server, and the administrator.
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// App passwords of a person: one for each program or device
    AppPassword {
        /// What to do.
        #[command(subcommand)]
        command: AppPasswordCommand,
    },
    /// A person's authenticator (two-step sign-in)
    Totp {
        /// What to do.
        #[command(subcommand)]
        command: TotpCommand,
    },
    /// Let an account at the provider (oidc.issuer) be a person's
    Link(PersonLinkArguments),
    /// Let an account at the provider be nobody's any more
    Unlink(PersonLinkArguments),
    /// Close a person's account, which ends their sessions
    Disable(PersonNameArguments),
    /// Open a person's account again
    Enable(PersonNameArguments),
    /// Write everything that is a person's into a folder below the data folder
    #[command(after_help = EXPORT)]
    Export(PersonNameArguments),
    /// Remove a person with the mail database, for the law's sake
    #[command(after_help = ERASURE)]
    Erase(EntryRemoveArguments),
    /// Rename a person in all databases; the old names stay theirs
    #[command(after_help = NAMES)]
    Rename(PersonRenameArguments),
    /// Remove a person from all databases and the directory
    #[command(after_help = REMOVAL)]
    Remove(EntryRemoveArguments),
    /// Set a person's password, which ends their sessions
    #[command(after_help = PASSWORDS)]
    Password(PersonPasswordArguments),
}

const IMPORT: &str = "\
A table is one of Google Workspace, Microsoft 365 or Outlook, or one whose first line names columns such as
Username, First name, Last name, Email, Groups. The same file imported twice changes nothing the second time. Nobody is
deleted: who is missing in a --complete file is disabled. People who were made here stay as they are without
--take-over.";

const EXPORT: &str = "\
The folder is exports/NAME-TIME in the data folder: messages byte for byte (mail/*.eml), all documents of the mail
database, documents of other databases that name the person in Authors, Readers or From, what was read, what the log
says, and the directory's document. manifest.json is written last. A running server does it in the background:
scrinium console show tasks.";

const ERASURE: &str = "\
As remove, and the mail database is deleted. Backups have it until they are pruned, and others keep the messages that
they have got. What a legal hold keeps is not erased.";

const NAMES: &str = "\
Access control lists, Readers, Authors and the fields that --field names in documents of all databases, members of
groups, and marks of what was read say the new name afterwards. It goes on in the background, also after a restart:
scrinium console show requests. The old names and addresses stay the person's: mail by them arrives, and nobody
else gets them, until an administrator takes them out of OtherNames and Addresses.";

const REMOVAL: &str = "\
The person cannot log in from this moment. Access control lists, Readers, Authors and groups of all databases do
not have the name afterwards, and then the directory does not. A document that only this person could read is for
administrators of the server then. The mail database stays; drop it when nobody needs it.";

const PERSON_FIELDS: &str = "\
Lists have commas between their values. A field without a value goes: ForwardTo=

FullName, InternetAddress, Addresses     by which names and addresses mail reaches the person
ForwardTo, ForwardOnly                   where mail goes on to; with ForwardOnly=true the person keeps no copy
SendAs, SendOnBehalf                     people and groups who may write as the person, or for them
MailReaders, MailEditors                 people and groups who may read the mail database, or change it
Language, TimeZone                       de; Europe/Berlin
OutOfOffice, OutOfOfficeFrom, OutOfOfficeUntil, OutOfOfficeSubject, OutOfOfficeText
Roles, Expires, Protocols, SecondFactor  what the person may do, and how they come in";

const GROUP_FIELDS: &str = "\
Lists have commas between their values. A field without a value goes: Owners=

MayWrite                    who may send to the group: listed (owners and Writers alone), members, people (of this
                            server, the default) or everybody (strangers too)
Writers                     who else may: people, groups, and addresses elsewhere
Owners                      who may change the members
Members                     people, groups, addresses
InternetAddress, Addresses  the group's addresses
SendAs, SendOnBehalf        who may write as the group, or for it; its members may write for it";

const DOMAIN_FIELDS: &str = "\
Lists have commas between their values. A field without a value goes: Administrators=

CatchAll        who gets what is for an address that nobody has: a name or an address of the directory
Administrators  the people who add, change and disable people and groups of the domain, and nothing beyond it
OutsidersSee    what people of other domains see of it in the directory: nothing (the default where it has
                Administrators), addresses (names and addresses by LDAP, nothing elsewhere), or all that the
                directory's access list lets them read";

const DOMAIN_CHECK: &str = "\
It asks the name servers of outbound.resolvers, and connects to the mail hosts of the domain from here; it takes half a
minute at most, and changes nothing. docs/operate/mail-domain.md explains the records.

Exit codes: 0 everything is there; 1 something is missing, or differs.";

const MAIL_IN_FIELDS: &str = "\
Lists have commas between their values. A field without a value goes: Addresses=

Database                    the database that gets the mail; it must be there, and is not made
InternetAddress, Addresses  its addresses";

/// What to do with mail-in databases.
#[derive(Clone, Debug, Subcommand)]
pub enum MailInCommand {
    /// Add a mail-in database, or set its fields
    #[command(after_help = MAIL_IN_FIELDS)]
    Set(SetArguments),
    /// Mail-in databases of the directory
    List {
        /// The server, and the administrator.
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Remove a mail-in database; the database stays, and gets no more mail
    Remove {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
        /// The server, and the administrator.
        #[command(flatten)]
        connection: ConnectionArguments,
    },
}

/// What to do with domains.
#[derive(Clone, Debug, Subcommand)]
pub enum DomainCommand {
    /// Add a domain
    #[command(after_help = DOMAIN_FIELDS)]
    Add(SetArguments),
    /// A domain with its administrators, and how many people, groups and mail-in databases are of it
    Show {
        /// The domain, such as acme.example
        #[arg(value_name = "DOMAIN")]
        name: String,
        /// The server, and the administrator.
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Set fields of a domain; it is added where it is not there
    #[command(after_help = DOMAIN_FIELDS)]
    Set(SetArguments),
    /// Domains of the directory
    List {
        /// The server, and the administrator.
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Say which records of DNS a domain needs, which are missing, and whether its mail hosts answer
    #[command(after_help = DOMAIN_CHECK)]
    Check {
        /// The domain, such as acme.example
        #[arg(value_name = "DOMAIN")]
        name: String,
    },
    /// Remove a domain; its mail is for others then
    Remove {
        /// The domain, such as acme.example
        #[arg(value_name = "DOMAIN")]
        name: String,
        /// The server, and the administrator.
        #[command(flatten)]
        connection: ConnectionArguments,
    },
}

/// Arguments of `person set`, `group set`, `domain add`, `domain set` and `mail-in set`.
#[derive(Clone, Debug, Args)]
pub struct SetArguments {
    /// The person, group, domain or mail-in database, by its name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Fields with their values
    #[arg(value_name = "FIELD=VALUE")]
    pub values: Vec<String>,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

const PASSWORDS: &str = "\
A password is never given on the command line. It is asked for on a terminal, else it is the first line of
standard input or of the file that --password-file names.

A running server is asked as its administrator, whose password is taken from --credentials, else from
SCRINIUM_ADMIN_PASSWORD, else from admin.credentials in the data folder. Where no server runs, the data
folder is written directly.";

/// Arguments of `person add`.
#[derive(Clone, Debug, Args)]
pub struct PersonAddArguments {
    /// The name to log in with, without blanks: ada
    #[arg(value_name = "SHORTNAME")]
    pub short_name: String,
    /// A full name, such as "Ada Lovelace" or "Ada Lovelace/Engines/Acme"; may be given several times, and the first is
    /// the one that is shown [default: the short name]
    #[arg(long = "name", value_name = "NAME")]
    pub full_names: Vec<String>,
    /// The address at which mail from outside arrives
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// A role; _admin administers the server. May be given several times
    #[arg(long = "role", value_name = "ROLE")]
    pub roles: Vec<String>,
    /// A file whose first line is the password; - is standard input
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// No password: the person gets mail, and cannot log in
    #[arg(long, conflicts_with = "password_file")]
    pub no_password: bool,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// Arguments of `person password`.
#[derive(Clone, Debug, Args)]
pub struct PersonPasswordArguments {
    /// The person, by short or full name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// A file whose first line is the password; - is standard input
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// What to do with app passwords.
#[derive(Clone, Debug, Subcommand)]
pub enum AppPasswordCommand {
    /// Make one; it is shown this once
    Add {
        /// The person, by short or full name
        #[arg(value_name = "NAME")]
        name: String,
        /// What it is for, such as "phone"
        #[arg(value_name = "LABEL")]
        label: String,
        /// A protocol that it is for: http, submission, imap, pop3, managesieve, caldav, carddav, ldap; mail and calendars are
        /// several. May be given several times [default: mail]
        #[arg(long = "protocol", value_name = "PROTOCOL")]
        protocols: Vec<String>,
        /// The server, and the administrator.
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// All of a person, and when they were last used
    List(PersonNameArguments),
    /// Revoke one
    Remove {
        /// The person, by short or full name
        #[arg(value_name = "NAME")]
        name: String,
        /// Its id, which list shows
        #[arg(value_name = "ID")]
        id: String,
        /// The server, and the administrator.
        #[command(flatten)]
        connection: ConnectionArguments,
    },
}

/// What to do with an authenticator.
#[derive(Clone, Debug, Subcommand)]
pub enum TotpCommand {
    /// Whether two-step sign-in is on, and how many recovery codes are left
    Show(PersonNameArguments),
    /// Take it away from somebody who has lost it; the person sets up another one
    Remove(PersonNameArguments),
    /// Require a second step; who has none sets one up at the next sign-in
    Require(PersonNameArguments),
}

/// A person and an account at the provider.
#[derive(Clone, Debug, Args)]
pub struct PersonLinkArguments {
    /// The person, by short or full name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// What the provider calls the account for ever (the claim sub)
    #[arg(value_name = "SUBJECT")]
    pub subject: String,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// A person, and the server.
#[derive(Clone, Debug, Args)]
pub struct PersonNameArguments {
    /// The person, by short or full name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// Arguments of `person import`.
#[derive(Clone, Debug, Args)]
pub struct PersonImportArguments {
    /// The file: NAME.csv or NAME.ldif
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The file has everybody of this source, so that who is missing in it is disabled
    #[arg(long)]
    pub complete: bool,
    /// Take over people and groups that were made here where the file has their name or address
    #[arg(long)]
    pub take_over: bool,
    /// What the source is called, where there are several [default: file]
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// With --complete, nothing is changed if more than this part of the source's people would be disabled
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub most_disabled: u8,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// Arguments of `person rename`.
#[derive(Clone, Debug, Args)]
pub struct PersonRenameArguments {
    /// The person, by short or full name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The new name to log in with, without blanks; it may be the present one where only other names change
    #[arg(value_name = "SHORTNAME")]
    pub new_name: String,
    /// A new full name; may be given several times, and the first is the one that is shown [default: they stay]
    #[arg(long = "name", value_name = "NAME")]
    pub full_names: Vec<String>,
    /// A new address; the old one stays a further one
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// A field of names in documents besides Readers and Authors; may be given several times
    #[arg(long = "field", value_name = "FIELD")]
    pub fields: Vec<String>,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// Arguments of `group rename`.
#[derive(Clone, Debug, Args)]
pub struct GroupRenameArguments {
    /// The group
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The new name
    #[arg(value_name = "NEW")]
    pub new_name: String,
    /// A new address; the old one stays a further one
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// A field of names in documents besides Readers and Authors; may be given several times
    #[arg(long = "field", value_name = "FIELD")]
    pub fields: Vec<String>,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// Arguments of `person remove` and `group remove`.
#[derive(Clone, Debug, Args)]
pub struct EntryRemoveArguments {
    /// The person, by short or full name, or the group
    #[arg(value_name = "NAME")]
    pub name: String,
    /// A field of names in documents besides Readers and Authors; may be given several times
    #[arg(long = "field", value_name = "FIELD")]
    pub fields: Vec<String>,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// What to do with groups.
#[derive(Clone, Debug, Subcommand)]
pub enum GroupCommand {
    /// Add a group to the directory, or members to one that is there
    Add(GroupAddArguments),
    /// Rename a group in all databases
    Rename(GroupRenameArguments),
    /// Remove a group from all databases and the directory
    Remove(EntryRemoveArguments),
    /// Set fields of a group: who may send to it, its owners, its addresses
    #[command(after_help = GROUP_FIELDS)]
    Set(SetArguments),
    /// All groups, and who is in them
    List {
        /// The server, and the administrator.
        #[command(flatten)]
        connection: ConnectionArguments,
    },
}

/// Arguments of `group add`.
#[derive(Clone, Debug, Args)]
pub struct GroupAddArguments {
    /// The group's name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Members: names or addresses of people, names of groups
    #[arg(value_name = "MEMBER")]
    pub members: Vec<String>,
    /// The group's address; who may send to it is set by "group set"
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}
