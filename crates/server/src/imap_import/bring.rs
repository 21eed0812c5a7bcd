//! Brings the mail of one account, mailbox by mailbox, in the order of UIDs.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use indicatif::ProgressBar;
use scrinium_database::{FLAGS, INTERNAL_DATE};
use scrinium_imap_wire::{
    Command, DateTime, FetchAttribute, FetchItem, FetchModifiers, Flag, MessageData, Response, ResponseCode,
    Section, SelectParameters, SequenceSet, SetNumber,
};
use scrinium_mail::import::{
    ImportOptions, ImportTarget, ImportedMemo, MessageSource, Position, StoredBatch, TRASH,
};
use scrinium_mail::{MessageOptions, memo_of_reader};
use serde_json::{Map, Value, json};

use super::accounts::Account;
use super::mailboxes::{Mailbox, mailboxes};
use super::session::{Heard, Origin, Session, SessionError};
use crate::cli::Failure;

/// Messages of one batch, and their bytes.
const BATCH_MESSAGES: usize = 200;
const BATCH_BYTES: u64 = 8 << 20;

/// No mailbox has more: their numbers are held while it is brought.
const MESSAGES_MAX: usize = 20_000_000;

/// Keywords of one message that are kept.
const KEYWORDS_MAX: usize = 32;

const PIECE_BYTES: usize = 256 << 10;

/// Of more reasons than these nobody reads.
const MOST_REASONS: usize = 20;

/// Where imported mail goes, which remembers how far each mailbox was brought.
pub(super) trait Places {
    type Target: ImportTarget;

    /// The target that remembers the progress of what is called `root`.
    fn at(&mut self, root: &Path) -> &Self::Target;
}

/// What is to be done for one account.
pub(super) struct Errand<'e> {
    pub(super) origin: &'e Origin,
    pub(super) account: &'e Account,
    /// The id of the person's document.
    pub(super) person: &'e str,
    pub(super) with_deleted: bool,
    pub(super) with_views: bool,
    /// Mailboxes that are left out, by their names there.
    pub(super) skip: &'e [String],
}

/// What was brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Brought {
    pub(super) mailboxes: u64,
    pub(super) messages: u64,
    pub(super) added: u64,
    pub(super) present: u64,
    /// Marked as deleted there, and passed over.
    pub(super) deleted: u64,
    pub(super) left_out: u64,
    pub(super) reasons: Vec<String>,
    /// Mailboxes that show what is in others too, and were passed over.
    pub(super) views: Vec<String>,
}

impl fmt::Display for Brought {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mailboxes, messages, added, present, deleted, left_out, views, .. } = self;
        write!(
            formatter,
            "{messages} messages of {mailboxes} mailboxes read: {added} new, {present} there already; {deleted} deleted \
             ones passed over, {left_out} left out"
        )?;
        if views.is_empty() {
            return Ok(());
        }
        write!(formatter, "; not read, since they show what others hold (--with-views): {}", views.join(", "))
    }
}

impl Brought {
    fn leave_out(&mut self, reason: String) {
        self.left_out += 1;
        if self.reasons.len() < MOST_REASONS {
            self.reasons.push(reason);
        }
    }

    fn count(&mut self, stored: StoredBatch) {
        self.added += stored.added;
        self.present += stored.present;
        for refused in stored.refused {
            self.leave_out(format!("{}: {}", refused.place, refused.reason));
        }
    }
}

/// Brings all that is new since it was last brought.
pub(super) fn bring<P: Places>(
    places: &mut P,
    errand: &Errand<'_>,
    bar: &ProgressBar,
) -> Result<Brought, Failure> {
    let limit = ImportOptions::for_person(errand.person).message_limit;
    let mut session = Session::open(errand.origin, limit).map_err(Failure::work)?;
    session.log_in(&errand.account.user, &errand.account.password).map_err(Failure::work)?;
    let mut brought = Brought::default();
    for mailbox in mailboxes(&mut session).map_err(Failure::work)? {
        let name = mailbox.name.as_str();
        if errand.skip.iter().any(|skipped| skipped == name) {
            continue;
        }
        if mailbox.is_view && !errand.with_views {
            brought.views.push(name.to_owned());
            continue;
        }
        bar.set_message(name.to_owned());
        let mut work = Work { session: &mut session, errand, mailbox: &mailbox, brought: &mut brought, bar };
        work.bring(places)?;
        brought.mailboxes += 1;
    }
    // What it says of the end is nobody's concern.
    drop(session.ask("LOGOUT", &Command::Logout));
    Ok(brought)
}

struct Work<'w> {
    session: &'w mut Session,
    errand: &'w Errand<'w>,
    mailbox: &'w Mailbox,
    brought: &'w mut Brought,
    bar: &'w ProgressBar,
}

/// A message as the server tells it.
struct Fetched {
    uid: u32,
    flags: Vec<Flag>,
    date: Option<DateTime>,
    source: MessageSource,
}

impl Work<'_> {
    fn bring<P: Places>(&mut self, places: &mut P) -> Result<(), Failure> {
        let Some(uid_validity) = self.examine()? else { return Ok(()) };
        let path = PathBuf::from(self.mailbox.name.as_str());
        let Origin { host, .. } = self.errand.origin;
        let user = &self.errand.account.user;
        let root = format!("imap://{user}@{host}/{uid_validity}/{}", self.mailbox.name.as_str());
        let target = places.at(Path::new(&root));
        let known = target.position().map_err(Failure::Work)?.filter(|known| known.path == path);
        let last = known.map_or(0, |known| u32::try_from(known.offset).unwrap_or(u32::MAX));
        let sizes = self.sizes(last)?;
        self.bar.inc_length(sizes.len() as u64);
        let mut pending = None;
        let mut rest = sizes.as_slice();
        while !rest.is_empty() {
            let (batch, more) = rest.split_at(batch_length(rest));
            rest = more;
            let memos = self.batch(batch)?;
            let end = batch.last().map_or(0, |(uid, _)| *uid);
            let position = Position { path: path.clone(), offset: u64::from(end) };
            let submitted = target.submit(memos).map_err(Failure::Work)?;
            // The next one is fetched while this one is written.
            if let Some((before, place)) = pending.replace((submitted, position)) {
                self.brought.count(target.finish(before, &place).map_err(Failure::Work)?);
            }
            self.bar.inc(batch.len() as u64);
        }
        if let Some((before, place)) = pending {
            self.brought.count(target.finish(before, &place).map_err(Failure::Work)?);
        }
        Ok(())
    }

    /// Opens the mailbox to be read; gives its UIDVALIDITY, or nothing where it cannot be opened, which is counted.
    fn examine(&mut self) -> Result<Option<u32>, Failure> {
        let mailbox = self.mailbox.name.clone();
        let parameters = SelectParameters::default();
        let (heard, _) =
            match self.session.ask("EXAMINE", &Command::Select { mailbox, parameters, read_only: true }) {
                Ok(heard) => heard,
                Err(error @ SessionError::Refused(..)) => {
                    self.brought.leave_out(format!("{}: {error}", self.mailbox.name.as_str()));
                    return Ok(None);
                }
                Err(error) => return Err(Failure::work(error)),
            };
        let uid_validity = heard.iter().find_map(|response| match response {
            Response::Status { code: Some(ResponseCode::UidValidity(validity)), .. } => Some(*validity),
            _ => None,
        });
        // RFC 3501, section 2.3.1.1: without it no UID is kept.
        Ok(Some(uid_validity.unwrap_or(0)))
    }

    /// UIDs behind `last`, ascending, and the sizes of the messages.
    fn sizes(&mut self, last: u32) -> Result<Vec<(u32, u64)>, Failure> {
        let Some(first) = last.checked_add(1) else { return Ok(Vec::new()) };
        let set = SequenceSet::range(SetNumber::Number(first), SetNumber::Last);
        let command = fetch(set, vec![FetchAttribute::Uid, FetchAttribute::Rfc822Size]);
        let mut sizes = Vec::new();
        let asked = self.session.ask_with("FETCH", &command, |heard| {
            if let Response::Fetch { items, .. } = heard.response {
                let (mut uid, mut size) = (None, 0);
                for item in items {
                    match item {
                        FetchItem::Uid(told) => uid = Some(told),
                        FetchItem::Size(told) => size = told,
                        _ => {}
                    }
                }
                // `*` is the last message even if its UID is smaller.
                sizes.extend(
                    uid.filter(|uid| *uid >= first && sizes.len() < MESSAGES_MAX).map(|uid| (uid, size)),
                );
            }
            Ok(())
        });
        asked.map_err(Failure::work)?;
        sizes.sort_unstable();
        sizes.dedup_by_key(|(uid, _)| *uid);
        Ok(sizes)
    }

    fn batch(&mut self, batch: &[(u32, u64)]) -> Result<Vec<ImportedMemo>, Failure> {
        let Some(set) = SequenceSet::of_numbers(batch.iter().map(|(uid, _)| *uid)) else {
            return Ok(Vec::new());
        };
        let whole = FetchAttribute::BodySection { peek: true, section: Section::default(), partial: None };
        let attributes =
            vec![FetchAttribute::Uid, FetchAttribute::Flags, FetchAttribute::InternalDate, whole];
        let (mut all, mut too_large) = (Vec::new(), Vec::new());
        let asked = self.session.ask_with("FETCH", &fetch(set, attributes), |heard| {
            match fetched(heard) {
                Some(Ok(message)) => all.push(message),
                Some(Err(uid)) => too_large.push(uid),
                None => {}
            }
            Ok(())
        });
        asked.map_err(Failure::work)?;
        for uid in too_large {
            let place = self.place(uid);
            self.brought.leave_out(format!("{place}: it is larger than any message that is kept"));
        }
        let mut memos = Vec::with_capacity(all.len());
        for message in all {
            self.brought.messages += 1;
            let is_deleted = message.flags.iter().any(|flag| flag.is("\\Deleted"));
            if is_deleted && !self.errand.with_deleted {
                self.brought.deleted += 1;
                continue;
            }
            memos.push(self.memo(message, is_deleted).map_err(Failure::work)?);
        }
        Ok(memos)
    }

    fn place(&self, uid: u32) -> String {
        format!("{}, UID {uid}", self.mailbox.name.as_str())
    }

    fn memo(&self, message: Fetched, is_deleted: bool) -> io::Result<ImportedMemo> {
        let Fetched { uid, flags, date, source } = message;
        let delivered_s = date.as_ref().map(scrinium_imap::utc_seconds);
        let mut fields =
            memo_of_reader(|| Ok(source.reader()), source.len(), &MessageOptions { delivered_s })?;
        note_state(&mut fields, &flags, date.as_ref());
        let folder = if is_deleted { TRASH } else { &self.mailbox.folder };
        Ok(ImportedMemo {
            id: id_of(&source, self.errand.person, folder)?,
            fields,
            folders: vec![folder.to_owned()],
            read: flags.iter().any(|flag| flag.is("\\Seen")),
            place: self.place(uid),
            source,
        })
    }
}

/// As mail programs that hand a message in have it noted.
fn note_state(fields: &mut Map<String, Value>, flags: &[Flag], date: Option<&DateTime>) {
    if let Some(date) = date {
        let date_ms = scrinium_imap::utc_seconds(date).saturating_mul(1000);
        fields.insert(INTERNAL_DATE.to_owned(), json!([date_ms, date.zone_minutes()]));
    }
    let system = ["\\Answered", "\\Flagged", "\\Draft"];
    let is_kept = |flag: &&Flag| system.iter().any(|one| flag.is(one)) || !flag.as_str().starts_with('\\');
    let kept: Vec<&str> = flags.iter().filter(is_kept).take(KEYWORDS_MAX).map(Flag::as_str).collect();
    if !kept.is_empty() {
        fields.insert(FLAGS.to_owned(), json!(kept));
    }
}

/// How many of these are one batch.
fn batch_length(sizes: &[(u32, u64)]) -> usize {
    let mut bytes: u64 = 0;
    let fits = sizes.iter().take(BATCH_MESSAGES).take_while(|(_, size)| {
        bytes = bytes.saturating_add(*size);
        bytes <= BATCH_BYTES
    });
    fits.count().max(1)
}

fn fetch(set: SequenceSet, attributes: Vec<FetchAttribute>) -> Command {
    Command::Fetch { uid: true, set, attributes, modifiers: FetchModifiers::default() }
}

/// A message, or the UID of one that is too large; nothing of a response that is about something else.
fn fetched(heard: Heard) -> Option<Result<Fetched, u32>> {
    let Response::Fetch { items, .. } = heard.response else { return None };
    let (mut uid, mut flags, mut date, mut whole) = (None, Vec::new(), None, heard.message);
    for item in items {
        match item {
            FetchItem::Uid(told) => uid = Some(told),
            FetchItem::Flags(told) => flags = told,
            FetchItem::InternalDate(told) => date = Some(told),
            // A short one may come as a string.
            FetchItem::Section(_, None, MessageData::Bytes(bytes) | MessageData::Binary(bytes)) => {
                whole = Some(Some(MessageSource::from(Bytes::from(bytes))));
            }
            _ => {}
        }
    }
    match (uid?, whole?) {
        (uid, Some(source)) => Some(Ok(Fetched { uid, flags, date, source })),
        (uid, None) => Some(Err(uid)),
    }
}

/// The same for the same message in the same folder of the same person, wherever it comes from.
fn id_of(source: &MessageSource, person: &str, folder: &str) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    for text in [person, folder] {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    let mut position = 0;
    loop {
        let piece = source.piece(position, PIECE_BYTES)?;
        if piece.is_empty() {
            return Ok(hasher.finalize().to_hex().chars().take(32).collect());
        }
        hasher.update(&piece);
        position += piece.len() as u64;
    }
}
