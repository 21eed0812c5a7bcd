//! `scrinium import imap`: people's mail from another server, with folders, flags and dates.
//!
//! What was brought of a mailbox is remembered by its UIDVALIDITY and its last UID, in the person's mail database. So an import that was
//! interrupted goes on where it stopped, and one that is repeated brings what is new.

mod accounts;
mod bring;
mod mailboxes;
mod session;

use std::path::Path;

use indicatif::ProgressBar;
use scrinium_mail::import::MailDatabase;
use scrinium_mail::open_mail_file;
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::cli::{Failure, ImportImapArguments, Terminal, connect};
use crate::config::{Configuration, Settings};
use crate::mail_import::RemoteMail;
use crate::registry::{self, DirectRegistry};
use crate::storage::StorageError;

use accounts::{Account, accounts};
use bring::{Brought, Errand, Places, bring};
pub(crate) use session::ImapTls;
use session::Origin;

/// Carries out the command.
pub(crate) fn run(
    configuration: &Configuration,
    asked: &ImportImapArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let settings = configuration.settings();
    let origin = origin(asked)?;
    let accounts = accounts(asked, terminal)?;
    let told = if asked.connection.url.is_some() {
        by_port(&settings, (asked, &origin), &accounts, terminal)?
    } else {
        match DirectRegistry::open(&settings) {
            Ok(registry) => directly(&registry?, (asked, &origin), &accounts, terminal)?,
            Err(StorageError::InUse(_)) => {
                terminal.say("A server runs on this data folder: importing through its port.");
                by_port(&settings, (asked, &origin), &accounts, terminal)?
            }
            Err(unusable @ StorageError::Unusable(_)) => return Err(unusable.into()),
        }
    };
    tell(&told, terminal)
}

/// `mail.example.org`, `mail.example.org:1993` or `[::1]:993`.
fn origin(asked: &ImportImapArguments) -> Result<Origin, Failure> {
    let wrong = || Failure::Use(format!("{:?} is no host, or host and port", asked.host));
    let usual = if asked.tls == ImapTls::Immediate { 993 } else { 143 };
    let (host, port) = match asked.host.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            (host, port.parse().map_err(|_| wrong())?)
        }
        _ => (asked.host.as_str(), usual),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    if host.is_empty() {
        return Err(wrong());
    }
    Ok(Origin { host, port, tls: asked.tls, trusted: asked.authority.clone() })
}

/// What came of each account.
type Told = Vec<(Account, Result<Brought, Failure>)>;

type Asked<'a> = (&'a ImportImapArguments, &'a Origin);

fn by_port(
    settings: &Settings,
    asked: Asked<'_>,
    accounts: &[Account],
    terminal: &Terminal,
) -> Result<Told, Failure> {
    let client = connect(settings, &asked.0.connection, &registry::environment(), terminal)?;
    let each = |account: &Account, bar: &ProgressBar| {
        let mut remote = RemoteMail::of_client(client.clone(), &account.person, Path::new(""))?;
        let person = remote.person_id.clone();
        bring(&mut remote, &errand(asked, account, &person), bar)
    };
    Ok(one_after_the_other(accounts, terminal, each))
}

fn directly(
    registry: &DirectRegistry,
    asked: Asked<'_>,
    accounts: &[Account],
    terminal: &Terminal,
) -> Result<Told, Failure> {
    let names = registry::names(registry)?;
    let Some((storage, _)) = registry.parts() else { return Ok(Vec::new()) };
    let each = |account: &Account, bar: &ProgressBar| {
        let person = registry::person_called(&names, &account.person)?;
        let database = open_mail_file(&storage.databases, &person).map_err(Failure::work)?;
        let target = MailDatabase::new(database.clone(), &person.short_name, Path::new(""));
        let mut places = DirectPlaces { database, owner: person.short_name.clone(), target };
        bring(&mut places, &errand(asked, account, &person.id), bar)
    };
    Ok(one_after_the_other(accounts, terminal, each))
}

fn errand<'a>((asked, origin): Asked<'a>, account: &'a Account, person: &'a str) -> Errand<'a> {
    Errand {
        origin,
        account,
        person,
        with_deleted: asked.with_deleted,
        with_views: asked.with_views,
        skip: &asked.skip,
    }
}

/// One account that cannot be read keeps no other from being brought.
fn one_after_the_other(
    accounts: &[Account],
    terminal: &Terminal,
    mut each: impl FnMut(&Account, &ProgressBar) -> Result<Brought, Failure>,
) -> Told {
    let mut told = Vec::with_capacity(accounts.len());
    for account in accounts {
        let bar = terminal.bar(0, "{prefix} {bar:30} {pos}/{len} messages  {msg}  {eta} left");
        bar.set_prefix(account.person.clone());
        let brought = each(account, &bar);
        bar.finish_and_clear();
        if let Err(error) = &brought {
            terminal.say(&format!("{}: {}", account.person, error.reason()));
        }
        told.push((account.clone(), brought));
    }
    told
}

struct DirectPlaces {
    database: OpenDatabase,
    owner: String,
    target: MailDatabase,
}

impl Places for DirectPlaces {
    type Target = MailDatabase;

    fn at(&mut self, root: &Path) -> &MailDatabase {
        self.target = MailDatabase::new(self.database.clone(), &self.owner, root);
        &self.target
    }
}

impl Places for RemoteMail {
    type Target = Self;

    fn at(&mut self, root: &Path) -> &Self {
        self.remember_at(root);
        self
    }
}

/// What was left out, and who could not be read, makes the command fail.
fn tell(told: &Told, terminal: &Terminal) -> Result<(), Failure> {
    let (mut text, mut people, mut is_whole) = (String::new(), Vec::new(), true);
    for (Account { person, user, .. }, brought) in told {
        match brought {
            Ok(brought) => {
                for reason in &brought.reasons {
                    terminal.say(&format!("{person}: left out: {reason}"));
                }
                is_whole &= brought.left_out == 0;
                text.push_str(&format!("{person}: {brought}\n"));
                people.push(person_told(person, user, brought));
            }
            Err(error) => {
                is_whole = false;
                text.push_str(&format!("{person}: stopped; run it again to resume: {}\n", error.reason()));
                people.push(json!({"person": person, "user": user, "error": error.reason()}));
            }
        }
    }
    terminal.data(&text, &json!({"people": people}))?;
    if is_whole { Ok(()) } else { Err(Failure::Found) }
}

fn person_told(person: &str, user: &str, brought: &Brought) -> Value {
    json!({
        "person": person, "user": user, "mailboxes": brought.mailboxes, "messages": brought.messages,
        "added": brought.added, "present": brought.present, "deleted": brought.deleted,
        "left_out": brought.left_out, "reasons": brought.reasons, "views": brought.views,
    })
}
