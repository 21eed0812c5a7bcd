//! Mailboxes by their names: opened, listed, made, renamed, deleted and subscribed to.

use std::collections::BTreeSet;

use scrinium_database::{
    Database, DatabaseError, FolderInfo, FolderUse, MAX_MEMBERS_AT_ONCE, Result, SpecialUse,
};
use scrinium_document::json::stored_value;
use scrinium_imap::{
    Answer, ListQuestion, MailboxInfo, MailboxNumbers, MailboxRequest, OpenedMailbox, Refusal, SystemFlags,
};
use scrinium_imap_wire::{Flag, MailboxName};
use scrinium_mail::{INBOX, mail_columns};
use scrinium_mailbox::FolderView;
use serde_json::{Value, json};

use crate::desk::OpenFolder;
use crate::mail_file::{LEVEL, MailFile, folder_of, mailbox_of, refusal_of};
use crate::tracker::{Trackers, number_of};

/// The local document with the names of mailboxes that a person has subscribed to.
const SUBSCRIPTIONS: &str = "_local/mail-subscriptions";

/// A person subscribes to this many mailboxes at most.
const SUBSCRIPTIONS_MAX: usize = 10_000;

/// Rights of one who owns a mail database (RFC 4314, section 2.1).
const OWN_RIGHTS: &str = "lrswipkxtea";

/// What came of a request, and the folder that it has opened.
pub(crate) type Mailboxed = (Answer, Option<OpenFolder>);

/// Answers a request about mailboxes. Blocks.
pub(crate) fn answer(
    file: &MailFile,
    trackers: &Trackers,
    request: MailboxRequest,
    append_limit: u64,
) -> Mailboxed {
    let shelf = Shelf { file, append_limit };
    let answered = match request {
        MailboxRequest::Open { mailbox, read_only } => {
            return match shelf.open(trackers, &mailbox, read_only) {
                Ok((opened, folder)) => (Answer::Opened(Box::new(opened)), Some(folder)),
                Err(error) => (Answer::Refused(refusal_of(&error)), None),
            };
        }
        MailboxRequest::List(question) => shelf.list(&question),
        MailboxRequest::Status(mailbox, _) => shelf.status(&mailbox),
        MailboxRequest::Create(mailbox, uses) => shelf.create(&mailbox, &uses),
        MailboxRequest::Delete(mailbox) => shelf.delete(&mailbox),
        MailboxRequest::Rename(from, to) => shelf.rename(&from, &to),
        MailboxRequest::Subscribe(mailbox, is_on) => shelf.subscribe(&mailbox, is_on),
        MailboxRequest::Namespace => Ok(Answer::Namespaces {
            personal: vec![(String::new(), Some(LEVEL))],
            other_users: Vec::new(),
            shared: Vec::new(),
        }),
        MailboxRequest::QuotaRoot(mailbox) => shelf.quota_root(&mailbox),
        MailboxRequest::Quota(_) => shelf.quota(),
        MailboxRequest::MyRights(mailbox) => {
            shelf.file.folder(mailbox.as_str()).map(|_| Answer::MyRights(OWN_RIGHTS.to_owned()))
        }
        // Their capabilities are hidden.
        MailboxRequest::SetQuota(..)
        | MailboxRequest::GetAcl(_)
        | MailboxRequest::SetAcl(..)
        | MailboxRequest::DeleteAcl(..)
        | MailboxRequest::ListRights(..)
        | MailboxRequest::GetMetadata(..)
        | MailboxRequest::SetMetadata(..) => {
            Ok(Answer::Refused(Refusal::new("CANNOT", "This cannot be done by a mail client here")))
        }
    };
    (answered.unwrap_or_else(|error| Answer::Refused(refusal_of(&error))), None)
}

struct Shelf<'f> {
    file: &'f MailFile,
    append_limit: u64,
}

impl Shelf<'_> {
    fn database(&self) -> &Database {
        &self.file.database
    }

    fn open(
        &self,
        trackers: &Trackers,
        mailbox: &MailboxName,
        read_only: bool,
    ) -> Result<(OpenedMailbox, OpenFolder)> {
        let file = self.file;
        let info = file.folder(mailbox.as_str())?;
        let tracker = trackers.of(&file.database, info.number, &file.person);
        let changes = tracker.watch();
        let tracked = tracker.up_to_date()?;
        let keywords = self.database().keywords()?;
        let opened = OpenedMailbox {
            view: FolderView::new(u64::from(info.number), info.uid_validity, tracked.state),
            read_only: read_only || !file.is_editor(),
            new_keywords: keywords.len() < usize::from(scrinium_database::MAX_KEYWORDS),
            keywords: keywords.iter().filter_map(|(_, keyword)| Flag::new(keyword)).collect(),
            changeable: SystemFlags::all(),
            first_unseen: tracked.first_unseen(),
            recent: 0,
            mailbox_id: mailbox_id(&info),
            mod_seq: tracked.state.change.max(1),
        };
        Ok((opened, OpenFolder { name: info.name.into(), tracker, changes }))
    }

    fn status(&self, mailbox: &MailboxName) -> Result<Answer> {
        let info = self.file.folder(mailbox.as_str())?;
        Ok(Answer::Status(Box::new(self.numbers(&info)?)))
    }

    fn numbers(&self, info: &FolderInfo) -> Result<MailboxNumbers> {
        let database = self.database();
        let snapshot = database.store().snapshot();
        let feed = database.folder_feed_at(&snapshot, info.number)?;
        let marked = database.last_mark_change_at(&snapshot, &self.file.person)?;
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(MailboxNumbers {
            messages: count(info.total),
            recent: 0,
            uid_next: number_of(info.next_uid, database)?,
            uid_validity: info.uid_validity,
            unseen: count(info.unread.unwrap_or(0)),
            deleted: count(info.deleted),
            bytes: info.bytes,
            deleted_bytes: info.deleted_bytes,
            mod_seq: feed.map_or(0, |feed| feed.last_change).max(marked).max(1),
            mailbox_id: mailbox_id(info),
            append_limit: Some(self.append_limit),
        })
    }

    fn list(&self, question: &ListQuestion) -> Result<Answer> {
        let folders = self.file.folders()?;
        let there: Vec<(String, &FolderInfo)> =
            folders.iter().map(|folder| (mailbox_of(&folder.name), folder)).collect();
        let subscribed = self.subscriptions(&there)?;
        let mut names: BTreeSet<Vec<&str>> = BTreeSet::new();
        let all: Vec<&str> = if question.only_subscribed {
            subscribed.iter().map(String::as_str).collect()
        } else {
            there.iter().map(|(name, _)| name.as_str()).collect()
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
            mailboxes.push(self.info(name, (&there, &subscribed), question)?);
        }
        let is_more = rest.next().is_some();
        Ok(Answer::Mailboxes { mailboxes, is_more })
    }

    fn info(
        &self,
        name: String,
        (there, subscribed): (&[(String, &FolderInfo)], &BTreeSet<String>),
        question: &ListQuestion,
    ) -> Result<MailboxInfo> {
        let folder = there.iter().find(|(known, _)| *known == name).map(|(_, folder)| *folder);
        let within = format!("{name}{LEVEL}");
        let wants_status = !question.status.is_empty();
        let special_use = folder.and_then(|folder| folder.special_use);
        Ok(MailboxInfo {
            no_select: folder.is_none(),
            non_existent: folder.is_none(),
            has_children: there.iter().any(|(other, _)| other.starts_with(&within)),
            subscribed: subscribed.contains(&name),
            subscribed_below: subscribed
                .range(within.clone()..)
                .next()
                .is_some_and(|next| next.starts_with(&within)),
            special_uses: special_use.map(special_use_name).into_iter().collect(),
            rights: (question.wants_rights && folder.is_some()).then(|| OWN_RIGHTS.to_owned()),
            status: folder.filter(|_| wants_status).map(|folder| self.numbers(folder)).transpose()?,
            metadata: Vec::new(),
            name,
        })
    }

    fn create(&self, mailbox: &MailboxName, uses: &[String]) -> Result<Answer> {
        self.file.check_editor()?;
        let name = mailbox.as_str().trim_end_matches(LEVEL);
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
        Ok(Answer::Created(mailbox_id(&info)))
    }

    /// The messages that are in no other folder go with it (RFC 9051, section 6.3.5).
    fn delete(&self, mailbox: &MailboxName) -> Result<Answer> {
        self.file.check_editor()?;
        let info = self.file.folder(mailbox.as_str())?;
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

    fn rename(&self, from: &MailboxName, to: &MailboxName) -> Result<Answer> {
        self.file.check_editor()?;
        let info = self.file.folder(from.as_str())?;
        let database = &self.file.database;
        database.rename_folder(&info.name, &folder_of(to.as_str().trim_end_matches(LEVEL)))?;
        // RFC 9051, section 6.3.6: what was in INBOX has moved, and there is an empty one.
        if info.name.eq_ignore_ascii_case(INBOX) {
            database.define_folder(INBOX, Some(&mail_columns()))?;
        }
        Ok(Answer::Accepted)
    }

    /// To what a person has subscribed; who never said anything, to all.
    fn subscriptions(&self, there: &[(String, &FolderInfo)]) -> Result<BTreeSet<String>> {
        let stored = match self.database().read_local(SUBSCRIPTIONS, &self.file.access) {
            Ok(document) => stored_value(&document.json),
            Err(DatabaseError::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        let names = stored.as_ref().and_then(|value| value.get("names")).and_then(Value::as_array);
        Ok(match names {
            Some(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            None => there.iter().map(|(name, _)| name.clone()).collect(),
        })
    }

    fn subscribe(&self, mailbox: &MailboxName, is_on: bool) -> Result<Answer> {
        let folders = self.file.folders()?;
        let there: Vec<(String, &FolderInfo)> =
            folders.iter().map(|folder| (mailbox_of(&folder.name), folder)).collect();
        let mut names = self.subscriptions(&there)?;
        let name = mailbox_of(&folder_of(mailbox.as_str().trim_end_matches(LEVEL)));
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
        let access = &self.file.access;
        let update = self.file.database.write_local(SUBSCRIPTIONS, json.as_bytes(), false, None, access)?;
        update.wait()?.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(Answer::Accepted)
    }

    fn quota_root(&self, mailbox: &MailboxName) -> Result<Answer> {
        self.file.folder(mailbox.as_str())?;
        self.quota()
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
        Ok(Answer::Quota(vec![(String::new(), resources)]))
    }
}

fn special_use_name(special_use: SpecialUse) -> String {
    let text = special_use.text();
    let (first, rest) = text.split_at_checked(1).unwrap_or_default();
    format!("\\{}{rest}", first.to_ascii_uppercase())
}

/// RFC 8474: the same under another name, and never that of another mailbox.
fn mailbox_id(info: &FolderInfo) -> String {
    format!("F{}-{}", info.number, info.uid_validity)
}
