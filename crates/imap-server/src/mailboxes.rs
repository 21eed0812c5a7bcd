//! Mailboxes by their names: opened, listed, made, renamed, deleted and subscribed to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use scrinium_database::folder::name::SEPARATOR;
use scrinium_database::{
    Database, DatabaseError, FolderInfo, FolderUse, Level, MAX_MEMBERS_AT_ONCE, Result, SpecialUse,
};
use scrinium_directory::Person;
use scrinium_document::json::stored_value;
use scrinium_imap::{
    Answer, ListQuestion, MailboxInfo, MailboxNumbers, MailboxRequest, OpenedMailbox, Refusal, SystemFlags,
};
use scrinium_imap_wire::{Flag, MailboxName};
use scrinium_mail::{INBOX, folder_id, mail_columns};
use scrinium_mailbox::FolderView;
use serde_json::{Value, json};

use crate::desk::{FolderHandle, OpenFolder};
use crate::mail_file::{DATABASES, LEVEL, MailFile, Place, USERS, folder_of, mailbox_of, rights_of};
use crate::metadata::{self, PrivateEntries};
use crate::surroundings::Surroundings;
use crate::tracker::number_of;

/// The local document with the names of mailboxes that a person has subscribed to.
const SUBSCRIPTIONS: &str = "_local/mail-subscriptions";

/// A person subscribes to this many mailboxes at most.
const SUBSCRIPTIONS_MAX: usize = 10_000;

/// What came of a request, and the folder that it has opened.
pub(crate) type Mailboxed = (Answer, Option<OpenFolder>);

/// Answers a request about mailboxes, and opens one if that is asked. Blocks.
///
/// # Errors
/// What the store reports.
pub(crate) fn answer(
    shared: &Surroundings,
    person: &Person,
    request: MailboxRequest,
    append_limit: u64,
) -> Result<Mailboxed> {
    let office = Office { shared, person, append_limit };
    let answered = match request {
        MailboxRequest::Open { mailbox, read_only } => {
            let (opened, folder) = office.shelf(&mailbox, |shelf, name| shelf.open(name, read_only))?;
            return Ok((Answer::Opened(Box::new(opened)), Some(folder)));
        }
        MailboxRequest::List(question) => office.list(&question),
        MailboxRequest::Status(mailbox, _) => office.shelf(&mailbox, |shelf, name| shelf.status(name)),
        MailboxRequest::Create(mailbox, uses) => {
            office.shelf(&mailbox, |shelf, name| shelf.create(name, &uses))
        }
        MailboxRequest::Delete(mailbox) => office.shelf(&mailbox, |shelf, name| shelf.delete(name)),
        MailboxRequest::Rename(from, to) => office.rename(&from, &to),
        MailboxRequest::Subscribe(mailbox, is_on) => office.subscribe(&mailbox, is_on),
        MailboxRequest::Namespace => Ok(Answer::Namespaces {
            personal: vec![(String::new(), Some(LEVEL))],
            other_users: vec![(USERS.to_owned(), Some(LEVEL))],
            shared: vec![(DATABASES.to_owned(), Some(LEVEL))],
        }),
        MailboxRequest::QuotaRoot(mailbox) => office.shelf(&mailbox, |shelf, name| {
            shelf.file.folder(name)?;
            shelf.quota()
        }),
        MailboxRequest::Quota(root) => {
            let (place, _) = Place::of(&if root.is_empty() { root } else { format!("{root}{LEVEL}") });
            let file = MailFile::open(shared, person, &place)?;
            Shelf { file: &file, office: &office }.quota()
        }
        MailboxRequest::MyRights(mailbox) => office.shelf(&mailbox, |shelf, name| {
            shelf.file.folder(name)?;
            Ok(Answer::MyRights(shelf.file.rights()))
        }),
        MailboxRequest::GetAcl(mailbox) => office.shelf(&mailbox, |shelf, name| shelf.rights_of_all(name)),
        MailboxRequest::ListRights(mailbox, _) => office.shelf(&mailbox, |shelf, name| {
            shelf.check_manager(name)?;
            // A level has all rights of the levels below it.
            Ok(Answer::ListedRights(["", "lrs", "i", "wpkxte", "a"].map(str::to_owned).to_vec()))
        }),
        MailboxRequest::SetAcl(mailbox, ..) | MailboxRequest::DeleteAcl(mailbox, _) => {
            office.shelf(&mailbox, |shelf, name| {
                shelf.check_manager(name)?;
                let text =
                    "The access list is that of the whole database; change it in the database's properties";
                Ok(Answer::Refused(Refusal::new("CANNOT", text)))
            })
        }
        MailboxRequest::GetMetadata(mailbox, asked, depth) => {
            metadata::get(shared, person, mailbox.as_ref(), (&asked, depth))
        }
        MailboxRequest::SetMetadata(mailbox, entries) => {
            metadata::set(shared, person, mailbox.as_ref(), entries)
        }
        MailboxRequest::SetQuota(..) => {
            Ok(Answer::Refused(Refusal::new("CANNOT", "This cannot be done by a mail client here")))
        }
    };
    answered.map(|answer| (answer, None))
}

/// All mailboxes of a person.
struct Office<'o> {
    shared: &'o Surroundings,
    person: &'o Person,
    append_limit: u64,
}

/// The mailboxes of one database.
pub(crate) struct Shelf<'f> {
    file: &'f MailFile,
    office: &'f Office<'f>,
}

/// Mailboxes by their names: which of the databases each is in, and its folder.
type Listed = BTreeMap<String, (usize, FolderInfo)>;

impl Office<'_> {
    /// Does something where a mailbox is, with its name there.
    fn shelf<T>(&self, mailbox: &MailboxName, work: impl FnOnce(&Shelf<'_>, &str) -> Result<T>) -> Result<T> {
        let (file, name) = MailFile::of_mailbox(self.shared, self.person, mailbox.as_str())?;
        work(&Shelf { file: &file, office: self }, name)
    }

    fn own(&self) -> Result<MailFile> {
        MailFile::open(self.shared, self.person, &Place::Own)
    }

    /// The mailboxes of these databases.
    fn there(files: &[MailFile]) -> Result<Listed> {
        let mut there = Listed::new();
        for (index, file) in files.iter().enumerate() {
            let prefix = file.place.prefix();
            for folder in file.folders()? {
                let name = format!("{prefix}{}", mailbox_of(&folder.name));
                // A folder whose name means another place cannot be reached.
                if Place::of(&name).0 == file.place {
                    there.insert(name, (index, folder));
                }
            }
        }
        Ok(there)
    }

    fn list(&self, question: &ListQuestion) -> Result<Answer> {
        let mut files = MailFile::listed(self.shared, self.person, &question.prefix)?;
        let mut there = Self::there(&files)?;
        let own = files.first().ok_or_else(DatabaseError::missing)?;
        let subscribed = own_subscriptions(own)?;
        let wants_metadata = !question.metadata.is_empty();
        let private = wants_metadata.then(|| PrivateEntries::of(own)).transpose()?;
        self.add_subscribed((&mut files, &mut there), &subscribed)?;
        let mut names: BTreeSet<Vec<&str>> = BTreeSet::new();
        let all: Vec<&str> = if question.only_subscribed {
            subscribed.iter().map(String::as_str).collect()
        } else {
            there.keys().map(String::as_str).collect()
        };
        for name in all {
            let levels: Vec<&str> = name.split(LEVEL).collect();
            names.extend((1..=levels.len()).filter_map(|count| levels.get(..count).map(<[&str]>::to_vec)));
        }
        let behind = question.behind.as_deref().map(|last| last.split(LEVEL).collect::<Vec<_>>());
        let level = LEVEL.to_string();
        let mut rest = names
            .iter()
            .filter(|levels| behind.as_ref().is_none_or(|behind| *levels > behind))
            .map(|levels| levels.join(&level))
            .filter(|name| name.starts_with(&question.prefix));
        let mut mailboxes = Vec::new();
        for name in rest.by_ref().take(question.limit) {
            mailboxes.push(self.info(name, (&files, &there, &subscribed), (question, private.as_ref()))?);
        }
        let is_more = rest.next().is_some();
        Ok(Answer::Mailboxes { mailboxes, is_more })
    }

    fn info(
        &self,
        name: String,
        (files, there, subscribed): (&[MailFile], &Listed, &BTreeSet<String>),
        (question, private): (&ListQuestion, Option<&PrivateEntries>),
    ) -> Result<MailboxInfo> {
        let found = there.get(&name).and_then(|(index, folder)| Some((files.get(*index)?, folder)));
        let within = format!("{name}{LEVEL}");
        let next_below = |next: Option<&String>| next.is_some_and(|next| next.starts_with(&within));
        // The uses of other people's mailboxes are not for this person's mail.
        let is_own = found.is_some_and(|(file, _)| file.place == Place::Own);
        let special_use = found.and_then(|(_, folder)| folder.special_use).filter(|_| is_own);
        let wants_status = !question.status.is_empty();
        let numbers = |(file, folder): (&MailFile, &FolderInfo)| Shelf { file, office: self }.numbers(folder);
        Ok(MailboxInfo {
            no_select: found.is_none(),
            non_existent: found.is_none(),
            has_children: next_below(there.range(within.clone()..).next().map(|(name, _)| name)),
            subscribed: subscribed.contains(&name),
            subscribed_below: next_below(subscribed.range(within.clone()..).next()),
            special_uses: special_use.map(special_use_name).into_iter().collect(),
            rights: found.filter(|_| question.wants_rights).map(|(file, _)| file.rights()),
            status: found.filter(|_| wants_status).map(numbers).transpose()?,
            metadata: match (found, private) {
                (Some(found), Some(private)) => private.of_mailbox(found, &question.metadata, Some(0)),
                _ => Vec::new(),
            },
            name,
        })
    }

    /// What was subscribed to and is too far behind in too long a list.
    fn add_subscribed(
        &self,
        (files, there): (&mut Vec<MailFile>, &mut Listed),
        subscribed: &BTreeSet<String>,
    ) -> Result<()> {
        for name in subscribed.iter().filter(|name| Place::of(name).0 != Place::Own) {
            if there.contains_key(name) {
                continue;
            }
            let found = MailFile::of_mailbox(self.shared, self.person, name)
                .and_then(|(file, inner)| file.folder(inner).map(|folder| (file, folder)));
            match found {
                Ok((file, folder)) => {
                    there.insert(name.clone(), (files.len(), folder));
                    files.push(file);
                }
                Err(DatabaseError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn rename(&self, from: &MailboxName, to: &MailboxName) -> Result<Answer> {
        let (file, name) = MailFile::of_mailbox(self.shared, self.person, from.as_str())?;
        let (place, to) = Place::of(to.as_str().trim_end_matches(LEVEL));
        let info = file.folder(name)?;
        file.check_editor()?;
        if let Some(refusal) = unusable(to) {
            return Ok(Answer::Refused(refusal));
        }
        if place != file.place || to.is_empty() {
            let text = "A mailbox cannot be moved into another database; copy its messages";
            return Ok(Answer::Refused(Refusal::new("CANNOT", text)));
        }
        file.database.rename_folder(&info.name, &folder_of(to))?;
        // RFC 9051, section 6.3.6: what was in INBOX has moved, and there is an empty one.
        if info.name.eq_ignore_ascii_case(INBOX) {
            file.database.define_folder(INBOX, Some(&mail_columns()))?;
        }
        Ok(Answer::Accepted)
    }

    fn subscribe(&self, mailbox: &MailboxName, is_on: bool) -> Result<Answer> {
        let own = self.own()?;
        let mut names = own_subscriptions(&own)?;
        let (place, inner) = Place::of(mailbox.as_str().trim_end_matches(LEVEL));
        let name = format!("{}{}", place.prefix(), mailbox_of(&folder_of(inner)));
        if is_on {
            names.insert(name);
        } else {
            names.remove(&name);
        }
        if names.len() > SUBSCRIPTIONS_MAX {
            let text = format!("A person subscribes to {SUBSCRIPTIONS_MAX} mailboxes at most");
            return Ok(Answer::Refused(Refusal::new("LIMIT", &text)));
        }
        let json = json!({"names": names}).to_string();
        let update = own.database.write_local(SUBSCRIPTIONS, json.as_bytes(), false, None, &own.access)?;
        update.wait()?.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(Answer::Accepted)
    }
}

/// To what a person has subscribed; who never said anything, to all of their own.
fn subscriptions(own: &MailFile, all: impl FnOnce() -> Result<BTreeSet<String>>) -> Result<BTreeSet<String>> {
    let stored = match own.database.read_local(SUBSCRIPTIONS, &own.access) {
        Ok(document) => stored_value(&document.json),
        Err(DatabaseError::NotFound { .. }) => None,
        Err(error) => return Err(error),
    };
    let names = stored.as_ref().and_then(|value| value.get("names")).and_then(Value::as_array);
    match names {
        Some(names) => Ok(names.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        None => all(),
    }
}

/// To which of their own mailboxes a person has subscribed, and to which others.
///
/// # Errors
/// What the store reports.
pub(crate) fn own_subscriptions(own: &MailFile) -> Result<BTreeSet<String>> {
    subscriptions(own, || Ok(own.folders()?.iter().map(|folder| mailbox_of(&folder.name)).collect()))
}

impl Shelf<'_> {
    /// What STATUS tells of a folder.
    ///
    /// # Errors
    /// What the store reports.
    pub(crate) fn numbers_of(
        shared: &Surroundings,
        person: &Person,
        (file, append_limit): (&MailFile, u64),
        folder: &FolderInfo,
    ) -> Result<MailboxNumbers> {
        let office = Office { shared, person, append_limit };
        Shelf { file, office: &office }.numbers(folder)
    }

    fn database(&self) -> &Database {
        &self.file.database
    }

    fn open(&self, name: &str, read_only: bool) -> Result<(OpenedMailbox, OpenFolder)> {
        let file = self.file;
        let info = file.folder(name)?;
        let tracker = self.office.shared.trackers.of(file, info.number)?;
        let changes = tracker.watch();
        let tracked = tracker.up_to_date()?;
        let keywords = self.database().keywords()?;
        let may_change = file.check_author().is_ok();
        let changeable = match may_change {
            true => SystemFlags::all(),
            // What a person has read is theirs to say.
            false => SystemFlags { seen: true, ..SystemFlags::default() },
        };
        let opened = OpenedMailbox {
            view: FolderView::new(u64::from(info.number), info.uid_validity, tracked.state),
            read_only,
            new_keywords: may_change && keywords.len() < usize::from(scrinium_database::MAX_KEYWORDS),
            keywords: keywords.iter().filter_map(|(_, keyword)| Flag::new(keyword)).collect(),
            changeable,
            first_unseen: tracked.first_unseen(),
            recent: 0,
            mailbox_id: mailbox_id(file, &info),
            mod_seq: tracked.state.change.max(1),
        };
        let (place, epoch) = (file.place.clone(), tracked.epoch);
        let handle = FolderHandle { place, name: info.name.into(), tracker, epoch };
        Ok((opened, OpenFolder { handle: Arc::new(handle), changes }))
    }

    fn status(&self, name: &str) -> Result<Answer> {
        let info = self.file.folder(name)?;
        Ok(Answer::Status(Box::new(self.numbers(&info)?)))
    }

    fn numbers(&self, info: &FolderInfo) -> Result<MailboxNumbers> {
        let database = self.database();
        let snapshot = database.store().snapshot();
        let feed = database.folder_feed_at(&snapshot, info.number)?;
        let marked = database.last_mark_change_at(&snapshot, &self.file.person)?;
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let mut numbers = MailboxNumbers {
            messages: count(info.total),
            recent: 0,
            uid_next: number_of(info.next_uid, database)?,
            uid_validity: info.uid_validity,
            unseen: count(info.unread.unwrap_or(0)),
            deleted: count(info.deleted),
            bytes: info.bytes,
            deleted_bytes: info.deleted_bytes,
            mod_seq: feed.map_or(0, |feed| feed.last_change).max(marked).max(1),
            mailbox_id: mailbox_id(self.file, info),
            append_limit: Some(self.office.append_limit),
        };
        if !database.shows_all(&self.file.access)? {
            self.count_what_shows(info.number, &mut numbers)?;
        }
        Ok(numbers)
    }

    /// Nobody learns how many messages there are that they may not read.
    fn count_what_shows(&self, folder: u32, numbers: &mut MailboxNumbers) -> Result<()> {
        let tracked = self.office.shared.trackers.of(self.file, folder)?.up_to_date()?;
        let database = self.database();
        let snapshot = database.store().snapshot();
        (numbers.messages, numbers.unseen) = (tracked.state.count, tracked.unseen_count());
        (numbers.deleted, numbers.bytes, numbers.deleted_bytes) = (0, 0, 0);
        let mut last = 0;
        loop {
            let members = database.members_at(&snapshot, folder, last, MAX_MEMBERS_AT_ONCE)?;
            for (uid, member) in &members {
                last = *uid;
                if !tracked.present.contains(number_of(*uid, database)?) {
                    continue;
                }
                numbers.bytes += member.facts.bytes;
                if member.is_deleted() {
                    numbers.deleted += 1;
                    numbers.deleted_bytes += member.facts.bytes;
                }
            }
            if members.len() < MAX_MEMBERS_AT_ONCE {
                return Ok(());
            }
        }
    }

    fn check_manager(&self, name: &str) -> Result<()> {
        self.file.folder(name)?;
        if self.file.access.level() == Level::Manager {
            return Ok(());
        }
        let reason = "Only who manages a database sees who may do what there.".to_owned();
        Err(DatabaseError::Forbidden { reason })
    }

    /// The access control list, as rights.
    fn rights_of_all(&self, name: &str) -> Result<Answer> {
        self.check_manager(name)?;
        let Some(list) = self.database().access_list()? else {
            let text = "This database has no access list; its _security says who may do what";
            return Ok(Answer::Refused(Refusal::new("CANNOT", text)));
        };
        let list = list.to_json();
        let rights = |grant: &Value| {
            let level = grant.get("level").and_then(Value::as_str).and_then(Level::parse);
            let is_on = |name: &str| grant.get(name).and_then(Value::as_bool).unwrap_or(true);
            rights_of(level.unwrap_or(Level::NoAccess), is_on("create"), is_on("delete"))
        };
        let mut all = Vec::new();
        if let Some(default) = list.get("default") {
            all.push(("authuser".to_owned(), rights(default)));
        }
        for entry in list.get("entries").and_then(Value::as_array).into_iter().flatten() {
            let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
            all.push((name.to_owned(), rights(entry)));
        }
        all.retain(|(_, rights)| !rights.is_empty());
        Ok(Answer::Rights(all))
    }

    fn create(&self, name: &str, uses: &[String]) -> Result<Answer> {
        self.file.check_editor()?;
        let name = name.trim_end_matches(LEVEL);
        if name.is_empty() {
            return Ok(Answer::Refused(Refusal::new("CANNOT", "A database is not made by a mail client")));
        }
        if let Some(refusal) = unusable(name) {
            return Ok(Answer::Refused(refusal));
        }
        let folder = folder_of(name);
        let special_use = match uses {
            [] => None,
            [one] => SpecialUse::parse(&one.trim_start_matches('\\').to_ascii_lowercase()),
            _ => None,
        };
        if !uses.is_empty() && special_use.is_none() {
            // RFC 6154, section 3.
            return Ok(Answer::Refused(Refusal::new("USEATTR", "A mailbox cannot be for that here")));
        }
        match self.database().folder(&folder, None) {
            Ok(_) => return Err(DatabaseError::Exists { reason: String::new() }),
            Err(DatabaseError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        let database = &self.file.database;
        database.define_folder(&folder, Some(&mail_columns()))?;
        if special_use.is_some() {
            let folder_use = FolderUse { special_use: Some(special_use), ..FolderUse::default() };
            database.set_folder_use(&folder, folder_use)?;
        }
        let info = database.folder(&folder, None)?;
        Ok(Answer::Created(mailbox_id(self.file, &info)))
    }

    /// The messages that are in no other folder go with it (RFC 9051, section 6.3.5).
    fn delete(&self, name: &str) -> Result<Answer> {
        let info = self.file.folder(name)?;
        self.file.check_editor()?;
        if info.name.eq_ignore_ascii_case(INBOX) {
            return Ok(Answer::Refused(Refusal::new("CANNOT", "INBOX stays")));
        }
        let database = &self.file.database;
        let mut before = None;
        loop {
            let snapshot = database.store().snapshot();
            let members = database.members_at(&snapshot, info.number, 0, MAX_MEMBERS_AT_ONCE / 10)?;
            drop(snapshot);
            let Some((first, _)) = members.first() else { break };
            // What is changed again and again by others stays, and so does the mailbox.
            if before.replace((*first, members.len())) == Some((*first, members.len())) {
                return Err(DatabaseError::Conflict);
            }
            let ids = members.into_iter().map(|(_, member)| member.id).collect();
            crate::transfer::remove(self.file, &info.name, ids)?;
        }
        database.drop_folder(&info.name)?;
        Ok(Answer::Accepted)
    }

    /// RFC 9208, section 5.1: STORAGE is in units of 1,024 bytes.
    fn quota(&self) -> Result<Answer> {
        let quota = self.database().properties().quota;
        if quota.is_none() {
            return Ok(Answer::Quota(Vec::new()));
        }
        let info = self.database().info()?;
        let mut resources = Vec::new();
        if quota.bytes > 0 {
            resources.push(("STORAGE".to_owned(), info.sizes.external_bytes / 1024, quota.bytes / 1024));
        }
        if quota.documents > 0 {
            resources.push(("MESSAGE".to_owned(), info.document_count, quota.documents));
        }
        let root = self.file.place.prefix().trim_end_matches(LEVEL).to_owned();
        Ok(Answer::Quota(vec![(root, resources)]))
    }
}

/// Why a mailbox cannot have this name, if it cannot: folders have a backslash between their levels, so that one within a level would be
/// another mailbox.
fn unusable(name: &str) -> Option<Refusal> {
    let text = "A mailbox cannot have a backslash in its name here; choose another one";
    name.contains(SEPARATOR).then(|| Refusal::new("CANNOT", text))
}

fn special_use_name(special_use: SpecialUse) -> String {
    let text = special_use.text();
    let (first, rest) = text.split_at_checked(1).unwrap_or_default();
    format!("\\{}{rest}", first.to_ascii_uppercase())
}

/// RFC 8474: the same under another name, and never that of another mailbox.
pub(crate) fn mailbox_id(file: &MailFile, info: &FolderInfo) -> String {
    let id = folder_id(info);
    match file.place {
        Place::Own => id,
        Place::User(_) | Place::Database(_) => {
            let database = blake3::hash(&file.database.uuid()).to_hex();
            format!("{id}-{}", database.chars().take(16).collect::<String>())
        }
    }
}
