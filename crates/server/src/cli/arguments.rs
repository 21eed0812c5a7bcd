//! What can be typed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};
use scrinium_backup::Target;

use super::formula::FormulaCommand;
use super::mail_arguments::{
    MailMoveArguments, MailPurgeArguments, MailSearchArguments, MailUndeleteArguments,
};
use super::people_arguments::{
    DomainCommand, GroupCommand, MailInCommand, PersonCommand, PersonNameArguments,
};
use crate::imap_import::ImapTls;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const AFTER_HELP: &str = "\
Exit codes: 0 done; 1 it could not be done; 2 the command line or the configuration is wrong;
3 damage was found that could not be repaired; 4 a data folder is to be upgraded; 99 an objective of a laboratory run was missed.

Begin with:  scrinium demo                       everything at once, on this machine
             scrinium config default             the configuration file, commented
             scrinium serve --data-dir DIR       the server";

/// A document, mail and calendar server with its performance laboratory built in.
#[derive(Debug, Parser)]
#[command(name = "scrinium", version, styles = STYLES, after_help = AFTER_HELP)]
#[command(propagate_version = true, disable_help_subcommand = true, max_term_width = 100)]
pub struct Arguments {
    /// What holds for all commands.
    #[command(flatten)]
    pub global: GlobalArguments,
    /// The command.
    #[command(subcommand)]
    pub command: CommandLine,
}

/// What holds for all commands.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "For every command")]
pub struct GlobalArguments {
    /// Configuration file [default: scrinium.toml here, else /etc/scrinium/scrinium.toml]
    #[arg(long, global = true, value_name = "FILE", env = "SCRINIUM_CONFIG", hide_env_values = true)]
    pub config: Option<PathBuf>,
    /// Folder that holds everything the server keeps; wins over the configuration
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<String>,
    /// Answer in JSON, for programs
    #[arg(long, global = true)]
    pub json: bool,
    /// No colours, also where standard error is a terminal
    #[arg(long, global = true)]
    pub no_color: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum CommandLine {
    /// Serve until stopped (SIGTERM or ^C; a second one ends at once, and loses nothing)
    Serve,
    /// Show everything on this machine: a server with people and real mail, load on it, and a report
    #[command(hide = cfg!(not(feature = "lab")))]
    Demo(DemoArguments),
    /// Import mail, calendars and contacts that other programs have kept
    Import {
        /// What to bring in.
        #[command(subcommand)]
        command: ImportCommand,
    },
    /// Export a person's mail as files that other mail programs read
    Export {
        /// How it is written.
        #[command(subcommand)]
        command: ExportCommand,
    },
    /// Look after mail that is stored
    Mail {
        /// What to do.
        #[command(subcommand)]
        command: MailCommand,
    },
    /// Add people and list them, and set their passwords
    Person {
        /// What to do.
        #[command(subcommand)]
        command: PersonCommand,
    },
    /// Add groups, list them, say who may send to them
    Group {
        /// What to do.
        #[command(subcommand)]
        command: GroupCommand,
    },
    /// Domains whose mail is for this server, with what is said of them in the directory
    Domain {
        /// What to do.
        #[command(subcommand)]
        command: DomainCommand,
    },
    /// Addresses whose mail goes into a database
    MailIn {
        /// What to do.
        #[command(subcommand)]
        command: MailInCommand,
    },
    /// Back up the server, running or not; list, verify and prune backups
    Backup(BackupArguments),
    /// Restore a server from a backup, or one database next to the live one
    Restore(RestoreArguments),
    /// Upgrade the data folder of another release, or say what would change (--check)
    Upgrade(UpgradeArguments),
    /// Ask whether the server of this machine answers: exit code 0, or 1; for containers and service managers
    Healthcheck(HealthcheckArguments),
    /// Send commands to a running server, such as: scrinium console "show stat Server"
    Console(ConsoleArguments),
    /// Examine a running server and list what to change, most effective first
    Advise(AdviseArguments),
    /// Show and check the configuration
    Config {
        /// What to look at.
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Try out formulas, and look up their language
    #[command(disable_help_subcommand = true)]
    Formula {
        /// What to do with them.
        #[command(subcommand)]
        command: FormulaCommand,
    },
    /// Check and repair the databases of a data folder that no server uses (else: console "load fixup")
    #[command(disable_version_flag = true)]
    Fixup(FixupArguments),
    /// Show the raw records of a data folder that no server uses; changes nothing
    Inspect(InspectArguments),
    /// Check the transaction log while the server is stopped, and salvage it if it is damaged (what happened on
    /// a server: console "show log")
    Log {
        /// What to do with it.
        #[command(subcommand)]
        command: LogCommand,
    },
    /// Write a shell's completion script to standard output
    Completions {
        /// The shell
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder
    #[command(hide = true)]
    ManualPages {
        /// The folder, which must be there
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Measure a server, this one or another: workloads, reports
    #[command(hide = cfg!(not(feature = "lab")))]
    Lab(LabArguments),
    /// Plan machines for an organisation: calibrate this machine, forecast, ask what if
    #[command(hide = cfg!(not(feature = "lab")))]
    Plan(PlanArguments),
}

/// Arguments of `demo`.
#[derive(Clone, Debug, Args)]
pub struct DemoArguments {
    /// People with a mail database each
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub people: u32,
    /// Real messages to import, dealt out to the people: an mbox file, a Maildir or a folder
    #[arg(long, value_name = "PATH")]
    pub mail: Option<PathBuf>,
    /// How long the people work, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(5..=86_400))]
    pub seconds: u32,
    /// Divide all think times by this
    #[arg(long, value_name = "K", default_value_t = 120)]
    pub speedup: u32,
}

/// What to bring in.
#[derive(Clone, Debug, Subcommand)]
pub enum ImportCommand {
    /// Messages: an mbox file, a Maildir or a folder of messages and mboxes
    Mail(ImportMailArguments),
    /// Mail of one person, or of all in a table, from another server by IMAP
    Imap(ImportImapArguments),
    /// Events and to-dos: iCalendar files, folders of them, or an archive
    Ics(ImportCalendarArguments),
    /// Contacts: vCard files, folders of them, or an archive
    Vcf(ImportContactsArguments),
}

/// Arguments of `import ics`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Takes what calendars export: of a folder, and of an archive (.zip) such as Google's Takeout, the files *.ics. Events are
known by their UIDs: what is there already stays as it is, so an import can be repeated. Nobody is invited by it, and
nobody hears of it. Entries of more than 10 MB are left out.

Exit codes: 0 everything was imported, or was there already; 1 something was left out, and is named, or it could not
be done; 2 the command line is wrong.")]
pub struct ImportCalendarArguments {
    /// Files, folders and archives
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// The person whose calendar it is, by short or full name
    #[arg(long, value_name = "NAME")]
    pub person: String,
    /// The calendar, by its name in paths; made if it is missing
    #[arg(long, value_name = "CALENDAR", default_value = "calendar")]
    pub calendar: String,
    /// The list of tasks that to-dos go into
    #[arg(long, value_name = "LIST", default_value = "tasks")]
    pub tasks: String,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// Arguments of `import vcf`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Takes what address books export: of a folder, and of an archive (.zip) such as Google's Takeout, the files *.vcf.
Contacts are known by their UIDs, or else by what they say: what is there already stays as it is, so an import can be
repeated. Contacts of more than 10 MB are left out.

Exit codes: 0 everything was imported, or was there already; 1 something was left out, and is named, or it could not
be done; 2 the command line is wrong.")]
pub struct ImportContactsArguments {
    /// Files, folders and archives
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// The person whose contacts they are, by short or full name
    #[arg(long, value_name = "NAME")]
    pub person: String,
    /// The address book, by its name in paths; made if it is missing
    #[arg(long, value_name = "BOOK", default_value = "contacts")]
    pub address_book: String,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// How mail is written.
#[derive(Clone, Debug, Subcommand)]
pub enum ExportCommand {
    /// A Maildir: a file a message, flags in its name; mutt, Dovecot, mbsync
    #[command(after_help = EXPORT)]
    Maildir(PersonNameArguments),
    /// An mbox file a folder; Thunderbird, mutt
    #[command(after_help = EXPORT)]
    Mbox(PersonNameArguments),
    /// A file a message (.eml), in a folder a folder; any program that opens one
    #[command(after_help = EXPORT)]
    Eml(PersonNameArguments),
}

const EXPORT: &str = "\
The folder is exports/NAME-FORMAT-TIME in the data folder. Folders, flags, keywords and the dates when messages came
go with the messages, which stay byte for byte; `scrinium import mail` brings them back so. A running server does it in
the background: scrinium console show tasks. See docs/operate/migrate.md.

Exit codes: 0 everything was written; 1 a message could not be read, or it could not be done; 2 the command line is
wrong.";

/// Arguments of `import imap`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Folders, dates, flags and keywords come with the messages; mailboxes for sent mail, drafts, trash and junk
become the folders for that. Nothing changes at the other server. An import that was interrupted goes on
where it stopped, and one that is repeated brings what is new since. Of a message that is twice in a folder
one is kept. Gmail's All Mail, and views like it, are passed over and named. See docs/operate/migrate.md.

A table of people (CSV) names the columns person, user and password in its first line. The password of one
person is asked for, or is the first line of standard input.

Exit codes: 0 everything was brought; 1 something was left out, or somebody's mail could not be read, and is
named; 2 the command line is wrong.")]
pub struct ImportImapArguments {
    /// The other server: HOST, or HOST:PORT
    #[arg(value_name = "HOST")]
    pub host: String,
    /// The person here whose mail it is, by short or full name
    #[arg(long, value_name = "NAME", conflicts_with = "people")]
    pub person: Option<String>,
    /// The name to log in with there; the same if left out
    #[arg(long, value_name = "USER", conflicts_with = "people")]
    pub login: Option<String>,
    /// A file whose first line is the password there; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "people")]
    pub password_file: Option<PathBuf>,
    /// A table of people, with their names and passwords there
    #[arg(long, value_name = "FILE")]
    pub people: Option<PathBuf>,
    /// How the connection is encrypted
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ImapTls::Immediate)]
    pub tls: ImapTls,
    /// A file with the certificate of an authority to trust besides the system's
    #[arg(long, value_name = "FILE")]
    pub authority: Vec<PathBuf>,
    /// A mailbox there that is left out, by its whole name
    #[arg(long, value_name = "MAILBOX")]
    pub skip: Vec<String>,
    /// Also read mailboxes that show what others hold, such as Gmail's All Mail
    #[arg(long)]
    pub with_views: bool,
    /// Also bring messages that are marked as deleted, into the folder Trash
    #[arg(long)]
    pub with_deleted: bool,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// Arguments of `import mail`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
An interrupted import resumes where it stopped when it is started again. Messages that are
damaged are kept whole and counted. What lies at the top goes into the Inbox, the rest into folders called
as those that it lies in, or as its mbox. What was read, answered or flagged stays so; labels become
categories, Gmail's become folders. Messages of more than 256 MB are left out. See docs/start/people.md.

Exit codes: 0 everything that is mail was imported, or was there already; 1 something was left out, and is
named, or it could not be done; 2 the command line is wrong. What is passed over because it is no mail, or
was deleted where it lay, is counted and named, and is no failure.")]
pub struct ImportMailArguments {
    /// The mbox file, Maildir or folder of messages and mboxes, as other programs keep them; - is standard input
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// The person whose mail it is, by short or full name
    #[arg(long, value_name = "NAME")]
    pub person: String,
    /// Also import deleted messages, into the folder Trash
    #[arg(long)]
    pub with_deleted: bool,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// What to do with mail that is stored.
#[derive(Clone, Debug, Subcommand)]
pub enum MailCommand {
    /// Read stored messages again, for what an earlier release read otherwise
    Reread(MailRereadArguments),
    /// Where is a message? What became of it, from the log database of a running server
    Trace(MailTraceArguments),
    /// Deleted messages of a person on a running server: list them, and restore them
    Undelete(MailUndeleteArguments),
    /// Look for messages in all mail files of a running server; nothing changes
    Search(MailSearchArguments),
    /// Move what a search has found into a folder of each person's
    Move(MailMoveArguments),
    /// Delete what a search has found
    Purge(MailPurgeArguments),
    /// Mail that rules or filters keep back, on a running server
    Quarantine {
        /// What to do.
        #[command(subcommand)]
        command: QuarantineCommand,
    },
}

/// What `mail quarantine` does.
#[derive(Clone, Debug, Subcommand)]
pub enum QuarantineCommand {
    /// List what is kept back, with why
    List(QuarantineListArguments),
    /// Let a message go on its way
    Release(QuarantineMessageArguments),
    /// Delete a message; nobody hears of it
    Delete(QuarantineMessageArguments),
}

/// Arguments of `mail quarantine list`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "On the console: show quarantine.")]
pub struct QuarantineListArguments {
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// Arguments of `mail quarantine release` and `delete`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "On the console: tell quarantine release ID, tell quarantine delete ID.")]
pub struct QuarantineMessageArguments {
    /// The message, as `mail quarantine list` names it
    #[arg(value_name = "ID")]
    pub id: String,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// Arguments of `mail trace`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The log database keeps what became of mail for log_database.keep_mail_for, usually a month. On the console: show message.")]
pub struct MailTraceArguments {
    /// The Message-ID, with or without its angle brackets
    #[arg(value_name = "MESSAGE-ID")]
    pub message_id: String,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// Arguments of `mail reread`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Only fields that a message gives are changed, and only where they differ; folders, unread marks and what people have
added stay. Drafts are left out. A running server does it as a task. What was interrupted resumes where it stopped when
it is started again. See docs/start/people.md.

Exit codes: 0 done; 1 the memos of some messages had to be left as they are, or it could not be done; 2 the command line
is wrong.")]
pub struct MailRereadArguments {
    /// The person whose mail it is, by short or full name
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    pub person: Option<String>,
    /// The mail of everybody
    #[arg(long)]
    pub all: bool,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// Arguments of `backup`.
#[derive(Clone, Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
A backup is whole and costs what changed since the last one in the same folder. A running server keeps working meanwhile,
and is asked through its console; ^C cancels. One that is interrupted leaves no backup."
)]
pub struct BackupArguments {
    /// What to do with existing backups.
    #[command(subcommand)]
    pub command: Option<BackupCommand>,
    /// The folder of the backups, or s3://BUCKET/PREFIX; made if it is missing. A running server takes those that
    /// backup.targets names [default: the only one there]
    #[arg(value_name = "DIR")]
    pub repository: Option<PathBuf>,
    /// Read and write at most this much a second, such as 50MB
    #[arg(long, value_name = "BYTES", value_parser = crate::config::parse_bytes)]
    pub rate: Option<u64>,
}

/// What to do with backups.
#[derive(Clone, Debug, Subcommand)]
pub enum BackupCommand {
    /// The backups in a folder, oldest first
    List {
        /// The folder of the backups
        #[arg(value_name = "DIR")]
        repository: PathBuf,
    },
    /// Make a pair of keys for encrypted backups: the private one goes into FILE, the public one is printed
    Keygen {
        /// The file of the private key, which must not be there
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Read everything and check every checksum; exit code 1 if anything is damaged
    Verify(VerifyArguments),
    /// Hold changes of the running server while you take a snapshot of its disks (LVM, ZFS, a cloud's); then thaw
    #[command(after_help = "\
Everything that was answered is on the disks when this ends with exit code 0. A change meanwhile waits for up to
5 s, and is then refused (503, try again); reading continues. docs/operate/backup.md has examples.")]
    Freeze {
        /// Changes resume by themselves after this time, 1s to 10min
        #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = crate::config::parse_duration)]
        limit: Duration,
    },
    /// Accept changes again; exit code 1 if they had resumed by themselves before: the snapshot is then not of one moment
    Thaw,
    /// Remove all backups but the newest, and files that no other needs
    Prune {
        /// The folder of the backups
        #[arg(value_name = "DIR")]
        repository: PathBuf,
        /// How many to keep
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        keep: u32,
        /// Also remove from the log's archive (log.archive_dir) what is older than the oldest backup that is kept
        #[arg(long)]
        archive: bool,
    },
}

/// Arguments of `backup verify`.
#[derive(Clone, Debug, Args)]
pub struct VerifyArguments {
    /// The folder of the backups
    #[arg(value_name = "DIR")]
    pub repository: PathBuf,
    /// Only this one
    #[arg(long, value_name = "ID")]
    pub backup: Option<String>,
    /// Read the attachments in an object store, instead of only checking that they exist
    #[arg(long)]
    pub deep: bool,
    /// The file of the private key: also check what encrypted files hold
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// The log's archive (log.archive_dir) too, after the newest backup
    #[arg(long)]
    pub archive: bool,
    /// Read at most this much a second, such as 50MB
    #[arg(long, value_name = "BYTES", value_parser = crate::config::parse_bytes)]
    pub rate: Option<u64>,
}

/// Arguments of `restore`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A moment is a time (2026-11-22T06:00:00Z; without a zone it is UTC), the number of a record of the log, or latest:
everything that was archived. It needs a log that is archived (log.style = archive).

The whole server is restored into an empty folder, on which it is just started. One database is brought in next to the
live ones under a new name, whether the server runs or not.")]
pub struct RestoreArguments {
    /// The folder of the backups
    #[arg(value_name = "REPOSITORY")]
    pub repository: PathBuf,
    /// Restore the whole server into this folder, which must be empty or missing
    #[arg(long, value_name = "DATA_DIR")]
    pub into: Option<PathBuf>,
    /// Restore only this database
    #[arg(long, value_name = "NAME", requires = "name")]
    pub database: Option<String>,
    /// The restored database's new name
    #[arg(long = "as", value_name = "NEW", requires = "database")]
    pub name: Option<String>,
    /// The backup [default: the newest from which the moment can be reached]
    #[arg(long, value_name = "ID")]
    pub backup: Option<String>,
    /// Restore up to this moment [default: what the backup holds]
    #[arg(long, value_name = "MOMENT")]
    pub to: Option<Target>,
    /// The file of the private key, where the backup is encrypted
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// The log's archive [default: log.archive_dir where log.style is archive, else what the backup says]
    #[arg(long, value_name = "DIR")]
    pub archive: Option<PathBuf>,
    /// The folder of the restored server's log [default: log.dir]
    #[arg(long, value_name = "DIR")]
    pub log_dir: Option<PathBuf>,
    /// Read and write at most this much a second, such as 50MB
    #[arg(long, value_name = "BYTES", value_parser = crate::config::parse_bytes)]
    pub rate: Option<u64>,
}

/// Arguments of `upgrade`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A release that is started on an older data folder upgrades it by itself; this says beforehand what that changes.
An older release does not open what a newer one has written.

Exit codes of --check: 0 nothing changes; 4 something does, at the next start; 1 this release cannot open it.
With --check a server may be at work on the folder; without, none may.")]
pub struct UpgradeArguments {
    /// Change nothing, only say what would change
    #[arg(long)]
    pub check: bool,
}

/// Arguments of `healthcheck`.
#[derive(Clone, Debug, Args)]
pub struct HealthcheckArguments {
    /// The server's address [default: the one of the configuration]
    #[arg(long, value_name = "URL", env = "SCRINIUM_URL", hide_env_values = true)]
    pub url: Option<String>,
    /// How long the answer may take
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = crate::config::parse_duration)]
    pub within: Duration,
}

/// Arguments of `console`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Commands: show stat [FACILITY], show trans, show tasks, show server, show config [KEY],
set config KEY=VALUE, load updall, load fixup, show fixup, tell NUMBER quit, help. Words may be
shortened; options of a command need quotation marks around it: 'load fixup mail/ada -V'.

The password is taken from --credentials, else from SCRINIUM_ADMIN_PASSWORD, else from
admin.credentials in the data folder, else it is asked for on the terminal.")]
pub struct ConsoleArguments {
    /// The command; without one, commands are read from standard input, line by line
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// How a running server is reached.
#[derive(Clone, Debug, Args)]
pub struct ConnectionArguments {
    /// The server's address [default: the one of the configuration]
    #[arg(long, value_name = "URL", env = "SCRINIUM_URL", hide_env_values = true)]
    pub url: Option<String>,
    /// The administrator's name [default: the one of the credentials, else admin]
    #[arg(long, value_name = "NAME", env = "SCRINIUM_ADMIN_USER", hide_env_values = true)]
    pub user: Option<String>,
    /// A file that holds one line, NAME:PASSWORD, and that only you can read
    #[arg(long, value_name = "FILE")]
    pub credentials: Option<PathBuf>,
    /// A certificate (PEM) to trust in addition to the system's and the data folder's own
    #[arg(long, value_name = "FILE")]
    pub trust: Option<PathBuf>,
}

/// Arguments of `advise`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
It reads statistics twice, settings, databases and the log database, and changes nothing.
Choose a time in which people work: a quiet minute shows little.
docs/operate/advise.md lists the rules.

Exit codes: 0 nothing is to be changed; 1 something is, or the server could not be asked.

The password is taken from --credentials, else from SCRINIUM_ADMIN_PASSWORD, else from
admin.credentials in the data folder, else it is asked for on the terminal.")]
pub struct AdviseArguments {
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
    /// How long to observe; 0: everything since the server's start
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = crate::config::parse_duration)]
    pub time: Duration,
    /// Also show what was found to be fine, and what looks like a problem but is not
    #[arg(long)]
    pub all: bool,
}

/// What to look at.
#[derive(Clone, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Report mistakes, with file and line; exit code 2 if there are any
    Check,
    /// The effective values, and where each comes from
    Dump {
        /// Only values that do not come from the defaults
        #[arg(long)]
        changed: bool,
    },
    /// All about one key, or the keys of one section
    Explain {
        /// A key (memory.budget), Domino's name for one, or a section (http)
        #[arg(value_name = "KEY")]
        key: String,
    },
    /// A configuration file with every key, commented out
    Default,
}

/// Arguments of `fixup`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Everything is looked at; what is derived from something sound is repaired, and what is damaged is set aside,
where it stays until it is discarded. docs/operate/fixup.md explains each finding.")]
pub struct FixupArguments {
    /// Databases; without any, all of them
    #[arg(value_name = "DATABASE")]
    pub databases: Vec<String>,
    /// Also compare each index of views and folders with its documents
    #[arg(short = 'V', long)]
    pub views: bool,
    /// Do not read the bytes of attachments
    #[arg(short = 'Q', long)]
    pub quick: bool,
    /// Change nothing, only report
    #[arg(short = 'N', long)]
    pub dry_run: bool,
    /// First rewrite the store's files from what can be read of them; the old ones are kept next to them
    #[arg(long, conflicts_with = "dry_run")]
    pub engine: bool,
    /// With --engine: the files of a volume, in place of the first store's
    #[arg(long, value_name = "NAME", requires = "engine")]
    pub volume: Option<String>,
    /// Only list what was set aside
    #[arg(long, conflicts_with_all = ["views", "quick", "dry_run", "engine"])]
    pub list_set_aside: bool,
    /// Only write what was set aside into a file, one JSON object a line, keys and values in hexadecimal
    #[arg(long, value_name = "FILE", conflicts_with_all = ["views", "quick", "dry_run", "engine"])]
    pub export: Option<PathBuf>,
    /// Only discard for good what was set aside: one record by its number, or `all`
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["views", "quick", "dry_run", "engine", "export"])]
    pub discard: Option<String>,
}

/// Arguments of `inspect`.
#[derive(Clone, Debug, Args)]
pub struct InspectArguments {
    /// The data folder
    #[arg(value_name = "DATA_DIR")]
    pub dir: PathBuf,
    /// A database; without one, all databases are listed
    #[arg(value_name = "DATABASE")]
    pub database: Option<String>,
    /// A document; without one, the records of the database as a whole are shown and its documents counted
    #[arg(value_name = "ID", requires = "database")]
    pub id: Option<String>,
    /// Show values in full, in hexadecimal
    #[arg(long)]
    pub hex: bool,
}

/// What to do with the transaction log of a server that is stopped.
#[derive(Clone, Debug, Subcommand)]
pub enum LogCommand {
    /// Read the whole log and say where it is damaged; exit code 1 if it is
    Verify,
    /// Show what can be saved from a damaged or lost log, and which records are lost; with --yes, save it
    #[command(after_help = "\
What can be read, up to the first record that cannot, is brought into the databases. The former log is kept in
a folder damaged-... within the log's folder, and a new one begins. A file that can be put back from a mirror
or a backup should be, before this is done.")]
    Salvage {
        /// Do it
        #[arg(long)]
        yes: bool,
        /// The log of a volume, in place of the first store's
        #[arg(long, value_name = "NAME")]
        volume: Option<String>,
    },
}

/// Arguments of `lab`, which the laboratory reads itself.
#[derive(Clone, Debug, Args)]
#[command(disable_help_flag = true)]
pub struct LabArguments {
    /// The laboratory's command
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// Arguments of `plan`, which the planner reads itself.
#[derive(Clone, Debug, Args)]
#[command(disable_help_flag = true)]
pub struct PlanArguments {
    /// An organisation's file, or the planner's command
    #[arg(value_name = "ORGANISATION", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}
