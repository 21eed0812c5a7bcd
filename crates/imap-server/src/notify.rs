//! What happens to mailboxes that a session watches besides the one that it has selected (RFC 5465): those of the person's own mail
//! database, and those of others that are named or subscribed to.

use std::collections::{BTreeMap, BTreeSet};

use scrinium_database::{DatabaseError, FolderInfo, Result};
use scrinium_directory::Person;
use scrinium_imap::{EventGroup, EventQuestion, EventScope, MailboxEvent, MailboxInfo};
use scrinium_imap_wire::MailboxName;
use tokio::sync::watch;

use crate::mail_file::{LEVEL, MailFile, Place, mailbox_of};
use crate::mailboxes::{Shelf, own_subscriptions};
use crate::surroundings::Surroundings;

/// Of this number of databases besides the person's own, at most, mailboxes are watched: those that are named or subscribed to first.
const OTHERS_MAX: usize = 20;

/// A folder: what stands before the names of its database's mailboxes, and its number there.
type FolderKey = (String, u32);

/// What a session has been told of mailboxes.
pub(crate) struct Watched {
    told: BTreeMap<FolderKey, Told>,
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
    /// Tell of changes in the databases.
    pub(crate) changes: Vec<watch::Receiver<u64>>,
}

/// What a session has been told before, how long messages may be, and where the mailbox is that it has selected.
pub(crate) struct Before {
    pub(crate) watched: Option<Watched>,
    pub(crate) append_limit: u64,
    pub(crate) selected: Option<Place>,
}

/// Compares mailboxes with what a session was told of them. Blocks.
///
/// # Errors
/// What the store reports.
pub(crate) fn news(
    shared: &Surroundings,
    person: &Person,
    question: &EventQuestion,
    before: Before,
) -> Result<News> {
    let own = MailFile::open(shared, person, &Place::Own)?;
    let subscribed = own_subscriptions(&own)?;
    let (mut changes, mut places) = (Vec::new(), Vec::new());
    for file in std::iter::once(Ok(own)).chain(others(shared, person, (question, &subscribed))) {
        let file = match file {
            // It is not there, or not for this person.
            Err(DatabaseError::NotFound { .. }) => continue,
            file => file?,
        };
        changes.push(file.database.watch());
        let folders = file.folders()?;
        places.push((file, folders));
    }
    let Before { watched, append_limit, selected } = before;
    let watched = watched.unwrap_or(Watched { told: BTreeMap::new(), is_starting: true });
    let mut look = Look { question, append_limit, selected, watched, events: Vec::new() };
    let mut is_more = false;
    for (file, folder) in places.iter().flat_map(|(file, folders)| folders.iter().map(move |one| (file, one)))
    {
        if look.events.len() >= question.limit {
            is_more = true;
            break;
        }
        look.compare((shared, person), (file, folder), &subscribed)?;
    }
    if !is_more {
        look.watched.is_starting = false;
        look.tell_deleted(&places, &subscribed);
    }
    Ok(News { events: look.events, is_more, watched: look.watched, changes })
}

/// The databases besides the person's own that a question names mailboxes of.
fn others<'o>(
    shared: &'o Surroundings,
    person: &'o Person,
    (question, subscribed): (&EventQuestion, &BTreeSet<String>),
) -> impl Iterator<Item = Result<MailFile>> + 'o {
    let mut places: Vec<Place> = Vec::new();
    let mut add = |name: &str| {
        let (place, _) = Place::of(name);
        if place != Place::Own && places.len() < OTHERS_MAX && !places.contains(&place) {
            places.push(place);
        }
    };
    for group in &question.groups {
        match &group.scope {
            EventScope::Personal | EventScope::Inboxes => {}
            EventScope::Subscribed => subscribed.iter().for_each(|name| add(name)),
            EventScope::Mailboxes(names) => names.iter().for_each(|name| add(name.as_str())),
            // Of what stands at the top itself there are no mailboxes.
            EventScope::Subtree(names) => {
                names.iter().for_each(|name| add(&format!("{}{LEVEL}", name.as_str())));
            }
        }
    }
    places.into_iter().map(|place| MailFile::open(shared, person, &place))
}

struct Look<'l> {
    question: &'l EventQuestion,
    append_limit: u64,
    selected: Option<Place>,
    watched: Watched,
    events: Vec<MailboxEvent>,
}

impl Look<'_> {
    /// The group that a mailbox is in: the first one that has it (RFC 5465, section 3).
    fn group(&self, name: &str, is_subscribed: bool) -> Option<&EventGroup> {
        let is_in = |group: &&EventGroup| match &group.scope {
            EventScope::Personal => Place::of(name).0 == Place::Own,
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
        (shared, person): (&Surroundings, &Person),
        (file, folder): (&MailFile, &FolderInfo),
        subscribed: &BTreeSet<String>,
    ) -> Result<()> {
        let prefix = file.place.prefix();
        let name = format!("{prefix}{}", mailbox_of(&folder.name));
        let is_subscribed = subscribed.contains(&name);
        let feed = file.database.folder_feed_at(&file.database.store().snapshot(), folder.number)?;
        let now = Told {
            messages: (folder.total, folder.next_uid),
            flags: (folder.unread.unwrap_or(0), feed.map_or(0, |feed| feed.last_change)),
            is_subscribed,
            name: name.clone(),
        };
        let before = self.watched.told.insert((prefix, folder.number), now.clone());
        let Some(group) = self.group(&name, is_subscribed) else { return Ok(()) };
        let (messages, flags) = (group.messages, group.flags);
        let (names, subscriptions) = (group.names, group.subscriptions);
        let is_selected = self.question.selected == Some(u64::from(folder.number))
            && self.selected.as_ref() == Some(&file.place);
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
            let numbers = Shelf::numbers_of(shared, person, (file, self.append_limit), folder)?;
            self.events.push(MailboxEvent::Changed(mailbox, numbers));
        }
        Ok(())
    }

    fn tell_deleted(&mut self, places: &[(MailFile, Vec<FolderInfo>)], subscribed: &BTreeSet<String>) {
        let keys = places
            .iter()
            .flat_map(|(file, folders)| folders.iter().map(|folder| (file.place.prefix(), folder.number)));
        let there: BTreeSet<FolderKey> = keys.collect();
        let gone: Vec<FolderKey> =
            self.watched.told.keys().filter(|key| !there.contains(key)).cloned().collect();
        for key in gone {
            let Some(Told { name, is_subscribed, .. }) = self.watched.told.remove(&key) else { continue };
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
