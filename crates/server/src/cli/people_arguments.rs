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
    /// Set a person's password, which ends their sessions
    #[command(after_help = PASSWORDS)]
    Password(PersonPasswordArguments),
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

/// What to do with groups.
#[derive(Clone, Debug, Subcommand)]
pub enum GroupCommand {
    /// Add a group to the directory, or members to one that is there
    Add(GroupAddArguments),
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
    /// The address at which mail from outside arrives, if it may
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}
