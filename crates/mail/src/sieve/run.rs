//! A run of a person's script for a message to them, and what it adds to the verdict of the rules.

use std::sync::Arc;

use scrinium_clock::Clock;
use scrinium_database::folder::name::validate as validate_folder;
use scrinium_database::{Database, DatabaseError, SpecialUse};
use scrinium_directory::{Found, Person};
use scrinium_sieve::{Action, Delivery, Host, Location, Script, ScriptOutcome, Target, VacationReply};
use serde_json::{Map, Value};

use super::message::{ScriptMessage, SourceOf};
use super::scripts::{Ready, ScriptBook, script_limits};
use super::seen::{note_seen, was_seen};
use crate::envelope::EnvelopeItems;
use crate::inbox::{INBOX, JUNK, folder_id};
use crate::memo::{field, recipients_of};
use crate::recipients::Resolver;
use crate::rules::Verdict;

/// A message that has gone through more servers is not passed on by a script; one that circles comes to rest so.
const HOPS_MAX: usize = 25;

/// People who pass a message on to each other are no longer than this.
const FORWARDERS_MAX: usize = 10;

/// The reason of a refusal is no longer: it is one line of an answer (RFC 5321 §4.5.3.1.5).
const REASON_MAX_CHARACTERS: usize = 200;

/// Flags of a message are no longer, and no more are set.
const KEYWORD_MAX_BYTES: usize = 64;
const KEYWORDS_MAX: usize = 20;

/// To whom a message comes, and what it says of itself.
pub(crate) struct Addressee<'a> {
    pub(crate) database: &'a Arc<Database>,
    pub(crate) person: &'a Person,
    pub(crate) resolver: &'a Resolver,
    pub(crate) memo: &'a Map<String, Value>,
    pub(crate) envelope: &'a EnvelopeItems,
    /// The id that the message has in mail files, whichever way it comes; `None` where another way would give it another one.
    pub(crate) id: Option<&'a str>,
}

impl ScriptBook {
    /// What a message becomes of which the rules of a person think so, once their script has looked at it, if they have one. `source`
    /// gives the message's bytes. Blocks.
    ///
    /// # Errors
    /// What the database reports.
    pub(crate) fn judge<'s>(
        &self,
        verdict: Verdict,
        to: &Addressee<'s>,
        source: impl FnOnce() -> Result<SourceOf<'s>, DatabaseError>,
    ) -> Result<Verdict, DatabaseError> {
        if verdict.reject.is_some() {
            return Ok(verdict);
        }
        let Some(ready) = self.active(to.database, to.person)? else { return Ok(verdict) };
        let source = source()?;
        let message = ScriptMessage::read(to.memo, source)?;
        let outcome = run(&ready, &message, to, self.clock());
        if let Some(error) = &outcome.error {
            tracing::info!(person = %to.person.short_name, %error, "a Sieve script failed; the message is kept");
        }
        if let Some(id) = to.id.filter(|_| !outcome.seen.is_empty()) {
            note_seen(to.database, &outcome.seen, (id, self.clock().now_s()))?;
        }
        let waits = to.id.is_none() && !outcome.seen.is_empty();
        let verdict = Verdict { waits, ..verdict };
        let may_forward = ready.is_sealed
            && message.hops() <= HOPS_MAX
            && to.envelope.forwarders.len() < FORWARDERS_MAX
            && !to.envelope.forwarders.contains(&to.person.id);
        let may_notify = ready.is_sealed;
        Ok(Carried { verdict, keeps: false, folders: Vec::new(), may_forward, may_notify, to }.carry(outcome))
    }
}

fn run(ready: &Ready, message: &ScriptMessage<'_>, to: &Addressee<'_>, clock: &Clock) -> ScriptOutcome {
    let own = to.resolver.addresses_of(to.person);
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let text = |name: &str| to.memo.get(name).and_then(Value::as_str).unwrap_or_default();
    // What was written here has no return path; its author hears of failures.
    let sender = match to.memo.get(field::RETURN_PATH).and_then(Value::as_str) {
        Some(path) => path.to_owned(),
        None => address_of(text(field::FROM), to.resolver).unwrap_or_default(),
    };
    let recipient = recipient_of(to).or_else(|| own.first().map(|own| (*own).to_owned())).unwrap_or_default();
    let now_ms = clock.now_ms();
    let environment = [("name", "Scrinium"), ("location", "MDA"), ("phase", "during")];
    let delivery = Delivery {
        sender: &sender,
        recipient: &recipient,
        own_addresses: &own,
        now_seconds: i64::try_from(now_ms / 1_000).unwrap_or(i64::MAX),
        zone_seconds: zone_seconds(to.person, now_ms),
        environment: &environment,
        separator: '+',
    };
    let host = MailFileHost { database: to.database, ready, message: to.id, now_s: now_ms / 1_000 };
    ready.script.run(message, &delivery, &host, &script_limits())
}

/// What is around a message: folders, and scripts that are included.
struct MailFileHost<'h> {
    database: &'h Database,
    ready: &'h Ready,
    /// The message's id, and the time.
    message: Option<&'h str>,
    now_s: u64,
}

impl Host for MailFileHost<'_> {
    fn mailbox_exists(&self, name: &str) -> bool {
        let folder = folder_of(name);
        folder == INBOX || self.database.folder(&folder, None).is_ok()
    }

    fn has_special_use(&self, mailbox: Option<&str>, special_use: &str) -> bool {
        let wanted = SpecialUse::parse(&special_use.trim_start_matches('\\').to_ascii_lowercase());
        let folder = mailbox.map(folder_of);
        let folders = self.database.folders(None).unwrap_or_default();
        wanted.is_some()
            && folders.iter().any(|found| {
                found.special_use == wanted && folder.as_ref().is_none_or(|name| *name == found.name)
            })
    }

    fn mailbox_id_exists(&self, id: &str) -> bool {
        folder_of_id(self.database, id).is_some()
    }

    fn was_seen(&self, key: &str) -> bool {
        // What cannot be looked up is no duplicate: a message is rather there twice than not at all.
        was_seen(self.database, key, (self.message, self.now_s)).unwrap_or_else(|error| {
            tracing::warn!(database = self.database.name(), %error, "a message counts as no duplicate");
            false
        })
    }

    fn script(&self, location: Location, name: &str) -> Result<Option<Arc<Script>>, String> {
        let text = self.ready.others.get(name).filter(|_| location == Location::Personal);
        let script = text.map(|text| Script::compile(text.as_bytes(), &script_limits()));
        script.transpose().map(|script| script.map(Arc::new)).map_err(|error| error.to_string())
    }
}

/// The verdict on its way through the actions of a script.
struct Carried<'c, 'a> {
    verdict: Verdict,
    keeps: bool,
    folders: Vec<String>,
    may_forward: bool,
    may_notify: bool,
    to: &'c Addressee<'a>,
}

impl Carried<'_, '_> {
    fn carry(mut self, outcome: ScriptOutcome) -> Verdict {
        let mut edits_done = 0;
        for action in outcome.actions {
            match action {
                Action::Keep { flags, edits, .. } => {
                    edits_done = edits_done.max(edits);
                    self.keeps = true;
                    self.mark(flags);
                }
                Action::FileInto { target, edits } => {
                    edits_done = edits_done.max(edits);
                    self.file(target);
                }
                Action::Redirect { address, edits } => {
                    edits_done = edits_done.max(edits);
                    self.redirect(address);
                }
                Action::Reject { reason, .. } => self.verdict.reject = Some(reason_of(&reason)),
                Action::Vacation(reply) => self.reply(*reply),
                // It tells others of the mail, as a redirect does.
                Action::Notify(notification) if self.may_notify => self.verdict.notices.push(*notification),
                Action::Notify(_) => {}
            }
        }
        let Self { mut verdict, keeps, folders, .. } = self;
        // A message is one document, in whatever folders: all copies have the changes that one of them has.
        verdict.header_edits = outcome.header_edits.into_iter().take(edits_done).collect();
        verdict.is_discarded = !keeps && folders.is_empty() && verdict.reject.is_none();
        let mut folders = folders.into_iter();
        if !keeps && let Some(first) = folders.next() {
            verdict.folder = Some(first);
        }
        for folder in folders {
            if !verdict.copies.contains(&folder) {
                verdict.copies.push(folder);
            }
        }
        verdict
    }

    fn file(&mut self, target: Target) {
        let folder = folder_for(self.to.database, &target);
        match validate_folder(&folder) {
            Ok(()) if !self.folders.contains(&folder) => self.folders.push(folder),
            Ok(()) => {}
            // A message is never lost by a name.
            Err(_) => self.keeps = true,
        }
        self.mark(target.flags);
    }

    fn redirect(&mut self, address: String) {
        let own = self.to.resolver.addresses_of(self.to.person);
        let is_own = own.iter().any(|own| own.eq_ignore_ascii_case(&address));
        if is_own || !self.may_forward {
            self.keeps = true;
        } else if !self.verdict.forwards.contains(&address) {
            self.verdict.forwards.push(address);
        }
    }

    /// RFC 3834 §2: a forged sender has not asked for an answer.
    fn reply(&mut self, reply: VacationReply) {
        if self.to.envelope.believed(&reply.to).is_some() {
            self.verdict.replies.push(reply);
        }
    }

    fn mark(&mut self, flags: Vec<String>) {
        mark(&mut self.verdict, flags);
    }
}

/// Gives a message flags as scripts name them.
pub(crate) fn mark(verdict: &mut Verdict, flags: Vec<String>) {
    for flag in flags {
        let known = ["\\Answered", "\\Flagged", "\\Draft"];
        let known = known.into_iter().find(|known| known.eq_ignore_ascii_case(&flag));
        let is_keyword = flag.len() <= KEYWORD_MAX_BYTES
            && !flag.is_empty()
            && flag.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"$_-.".contains(&byte));
        if flag.eq_ignore_ascii_case("\\Seen") {
            verdict.is_read = true;
            continue;
        }
        let flag = match known {
            Some(known) => known.to_owned(),
            None if is_keyword => flag,
            None => continue,
        };
        if verdict.flags.len() < KEYWORDS_MAX && !verdict.flags.contains(&flag) {
            verdict.flags.push(flag);
        }
    }
}

/// The folder that a script calls so, as mail programs do: levels are divided by slashes, and the Inbox is `INBOX`.
fn folder_of(mailbox: &str) -> String {
    let mut levels = mailbox.split('/');
    let first = levels.next().unwrap_or_default();
    let first = if first.eq_ignore_ascii_case(INBOX) { INBOX } else { first };
    // What stands for a slash within a name.
    let names: Vec<&str> = std::iter::once(first).chain(levels).collect();
    names.join("\\").replace('\u{2215}', "/")
}

/// The folder that a target stands for: the one of its identifier, the one of its use, or the one of its name.
pub(crate) fn folder_for(database: &Database, target: &Target) -> String {
    if let Some(found) = target.mailbox_id.as_deref().and_then(|id| folder_of_id(database, id)) {
        return found;
    }
    let special_use = target.special_use.as_deref().unwrap_or_default().trim_start_matches('\\');
    match SpecialUse::parse(&special_use.to_ascii_lowercase()) {
        // It is made where it is missing, as it is for what nobody vouches for.
        Some(SpecialUse::Junk) => {
            folder_of_use(database, SpecialUse::Junk).unwrap_or_else(|| JUNK.to_owned())
        }
        Some(special_use) => {
            folder_of_use(database, special_use).unwrap_or_else(|| folder_of(&target.mailbox))
        }
        None => folder_of(&target.mailbox),
    }
}

fn folder_of_use(database: &Database, special_use: SpecialUse) -> Option<String> {
    let folders = database.folders(None).ok()?;
    folders.into_iter().find(|folder| folder.special_use == Some(special_use)).map(|folder| folder.name)
}

fn folder_of_id(database: &Database, id: &str) -> Option<String> {
    let folders = database.folders(None).ok()?;
    folders.into_iter().find(|folder| folder_id(folder) == id).map(|folder| folder.name)
}

/// One line of ASCII for the sender.
fn reason_of(reason: &str) -> String {
    let line: String = reason
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .take(REASON_MAX_CHARACTERS)
        .collect();
    if line.is_ascii() && !line.is_empty() {
        line
    } else {
        "The recipient does not take this message".to_owned()
    }
}

/// The address in the envelope by which a message comes to a person, if it names one.
fn recipient_of(to: &Addressee<'_>) -> Option<String> {
    let recipients = recipients_of(to.memo).ok()?;
    let is_theirs = |written: &&String| match to.resolver.recipient(written) {
        Found::Person(person) => person.id == to.person.id,
        _ => false,
    };
    // A long list is a group's, and says nothing of one person.
    let written = recipients.iter().take(100).filter(|written| written.contains('@')).find(is_theirs)?;
    Some(crate::address::WrittenAddress::read(written).address)
}

fn address_of(written: &str, resolver: &Resolver) -> Option<String> {
    let address = crate::address::WrittenAddress::read(written).address;
    if address.contains('@') {
        return Some(address);
    }
    match resolver.find(written) {
        Found::Person(person) => resolver.mailbox_of(&person).map(|mailbox| mailbox.to_string()),
        _ => None,
    }
}

/// Where the person's clock is, in seconds east of Greenwich.
fn zone_seconds(person: &Person, now_ms: u64) -> i32 {
    let zone = person.time_zone.as_deref().and_then(|name| jiff::tz::TimeZone::get(name).ok());
    let now = i64::try_from(now_ms).ok().and_then(|now| jiff::Timestamp::from_millisecond(now).ok());
    zone.zip(now).map_or(0, |(zone, now)| zone.to_offset(now).seconds())
}
