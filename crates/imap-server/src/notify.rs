//! What happens to mailboxes that a session watches besides the one that it has selected (RFC 5465). They are those of the person's own
//! mail database.

use std::collections::{BTreeMap, BTreeSet};

use scrinium_database::{FolderInfo, Result};
use scrinium_directory::Person;
use scrinium_imap::{EventGroup, EventQuestion, EventScope, MailboxEvent, MailboxInfo};
use scrinium_imap_wire::MailboxName;
use tokio::sync::watch;

use crate::mail_file::{LEVEL, MailFile, Place, mailbox_of};
use crate::mailboxes::{Shelf, own_subscriptions};
use crate::surroundings::Surroundings;

/// What a session has been told of mailboxes.
pub(crate) struct Watched {
    told: BTreeMap<u32, Told>,
    /// The state of some mailboxes was not looked at yet.
    is_starting: bool,
}

/// What it has been told of one.
#[derive(Clone, PartialEq, Eq)]
struct Told {
    name: String,
    is_subscribed: bool,
    messages: (u64, u64),
    flags: (u64, u64),
}

/// What has happened, whether there is more, and what is known of it then.
pub(crate) struct News {
    pub(crate) events: Vec<MailboxEvent>,
    pub(crate) is_more: bool,
    pub(crate) watched: Watched,
    /// Tells of changes in the database.
    pub(crate) changes: watch::Receiver<u64>,
}

/// Compares mailboxes with what a session was told of them. Blocks.
///
/// # Errors
/// What the store reports.
pub(crate) fn news(
    shared: &Surroundings,
    person: &Person,
    question: &EventQuestion,
    (before, append_limit): (Option<Watched>, u64),
) -> Result<News> {
    let file = MailFile::open(shared, person, &Place::Own)?;
    let changes = file.database.watch();
    let watched = before.unwrap_or(Watched { told: BTreeMap::new(), is_starting: true });
    let subscribed = own_subscriptions(&file)?;
    let mut look = Look { file: &file, question, append_limit, watched, events: Vec::new() };
    let mut is_more = false;
    let folders = file.folders()?;
    for folder in &folders {
        if look.events.len() >= question.limit {
            is_more = true;
            break;
        }
        look.compare(shared, person, folder, &subscribed)?;
    }
    if !is_more {
        look.watched.is_starting = false;
        look.tell_deleted(&folders, &subscribed);
    }
    Ok(News { events: look.events, is_more, watched: look.watched, changes })
}

struct Look<'l> {
    file: &'l MailFile,
    question: &'l EventQuestion,
    append_limit: u64,
    watched: Watched,
    events: Vec<MailboxEvent>,
}

impl Look<'_> {
    /// The group that a mailbox is in: the first one that has it (RFC 5465, section 3).
    fn group(&self, name: &str, is_subscribed: bool) -> Option<&EventGroup> {
        let is_in = |group: &&EventGroup| match &group.scope {
            EventScope::Personal => true,
            EventScope::Inboxes => name == "INBOX",
            EventScope::Subscribed => is_subscribed,
            EventScope::Mailboxes(names) => names.iter().any(|known| known.as_str() == name),
            EventScope::Subtree(names) => names.iter().any(|known| {
                let below = name.strip_prefix(known.as_str());
                below.is_some_and(|below| below.is_empty() || below.starts_with(LEVEL))
            }),
        };
        self.question.groups.iter().find(is_in)
    }

    fn compare(
        &mut self,
        shared: &Surroundings,
        person: &Person,
        folder: &FolderInfo,
        subscribed: &BTreeSet<String>,
    ) -> Result<()> {
        let name = mailbox_of(&folder.name);
        let is_subscribed = subscribed.contains(&name);
        let feed =
            self.file.database.folder_feed_at(&self.file.database.store().snapshot(), folder.number)?;
        let now = Told {
            messages: (folder.total, folder.next_uid),
            flags: (folder.unread.unwrap_or(0), feed.map_or(0, |feed| feed.last_change)),
            is_subscribed,
            name: name.clone(),
        };
        let before = self.watched.told.insert(folder.number, now.clone());
        let Some(group) = self.group(&name, is_subscribed) else { return Ok(()) };
        let (messages, flags) = (group.messages, group.flags);
        let (names, subscriptions) = (group.names, group.subscriptions);
        let is_selected = self.question.selected == Some(u64::from(folder.number));
        let is_changed = match &before {
            None => messages && self.watched.is_starting && self.question.wants_status,
            Some(before) => messages && before.messages != now.messages || flags && before.flags != now.flags,
        };
        let old_name = before.as_ref().map(|before| &before.name).filter(|old| **old != name).cloned();
        let is_made = before.is_none() && !self.watched.is_starting;
        let is_resubscribed = before.is_some_and(|before| before.is_subscribed != is_subscribed);
        if names && (is_made || old_name.is_some()) || subscriptions && is_resubscribed {
            let info =
                MailboxInfo { name: name.clone(), subscribed: is_subscribed, ..MailboxInfo::default() };
            self.events.push(MailboxEvent::Named(Box::new(info), old_name));
        }
        if is_changed
            && !is_selected
            && let Some(mailbox) = MailboxName::new(&name)
        {
            let numbers = Shelf::numbers_of(shared, person, (self.file, self.append_limit), folder)?;
            self.events.push(MailboxEvent::Changed(mailbox, numbers));
        }
        Ok(())
    }

    fn tell_deleted(&mut self, folders: &[FolderInfo], subscribed: &BTreeSet<String>) {
        let there: BTreeSet<u32> = folders.iter().map(|folder| folder.number).collect();
        let gone: Vec<u32> =
            self.watched.told.keys().filter(|number| !there.contains(number)).copied().collect();
        for number in gone {
            let Some(Told { name, is_subscribed, .. }) = self.watched.told.remove(&number) else { continue };
            if self.group(&name, is_subscribed).is_some_and(|group| group.names) {
                let subscribed = subscribed.contains(&name);
                let info = MailboxInfo {
                    name,
                    subscribed,
                    no_select: true,
                    non_existent: true,
                    ..MailboxInfo::default()
                };
                self.events.push(MailboxEvent::Named(Box::new(info), None));
            }
        }
    }
}
