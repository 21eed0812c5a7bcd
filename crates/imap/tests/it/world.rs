//! Surroundings of sessions: one person's mailboxes in memory, with UIDs, flags, changes and what has left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use scrinium_credentials::sasl::{Claim, ClaimedProof};
use scrinium_imap::{
    Answer, CapabilitySet, ContentId, EntriesQuestion, Entry, FolderAnswer, FolderOutcome, FolderQuestion,
    FolderRequest, ListQuestion, LoginVerdict, MailboxEvent, MailboxInfo, MailboxNumbers, MailboxRequest,
    MapNeed, MessageFlags, NewMessage, OpenedMailbox, Refusal, Request, RightsChange, SearchContext,
    SearchOrder, SearchQuestion, SortFields, StoreQuestion, StoredEntry, SystemFlags, ThreadAlgorithm,
    ThreadMessage, matches, ordered_subject, references, utc_seconds,
};
use scrinium_imap_wire::{DateTime, Flag, StoreAction};
use scrinium_mailbox::{
    FolderIndex, FolderState, FolderView, MapBuilder, MessageMap, MessageText, NumberSet, Picked, Selection,
    base_subject, narrow, select,
};

/// 26 November 2026, 09:20:51
pub(crate) const NOW_MS: u64 = 1_795_684_851_000;

/// A message in a folder.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) uid: u32,
    pub(crate) id: u64,
    pub(crate) flags: SystemFlags,
    pub(crate) keywords: Vec<Flag>,
    pub(crate) mod_seq: u64,
    arrival: u64,
    date: DateTime,
    pub(crate) source: Arc<Vec<u8>>,
    map: Arc<MessageMap>,
}

impl Message {
    fn entry(&self, number: u32, source_bytes: u32, wants_map: bool) -> Entry {
        let beginning = self.source.get(..self.source.len().min(source_bytes as usize)).unwrap();
        Entry {
            uid: self.uid,
            number,
            flags: self.flags,
            keywords: self.keywords.clone(),
            mod_seq: self.mod_seq,
            arrival: self.arrival,
            bytes: self.source.len() as u64,
            internal_date: self.date,
            save_date: Some(self.date),
            email_id: format!("E{}", self.id),
            thread_id: Some(format!("T{}", self.id)),
            content: ContentId(Arc::from(self.id.to_be_bytes())),
            map: wants_map.then(|| Arc::clone(&self.map)),
            source: beginning.to_vec(),
            was_changed: false,
        }
    }
}

/// A mailbox.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    pub(crate) number: u64,
    pub(crate) uid_validity: u32,
    pub(crate) uid_next: u32,
    pub(crate) messages: Vec<Message>,
    left: Vec<(u64, u32)>,
    change: u64,
    special_uses: Vec<String>,
    metadata: BTreeMap<String, Vec<u8>>,
}

struct Index<'a>(&'a [Message]);

impl FolderIndex for Index<'_> {
    fn position(&self, uid: u32) -> u32 {
        u32::try_from(self.0.partition_point(|message| message.uid < uid)).unwrap()
    }

    fn uids_at(&self, position: u32, count: u32) -> Vec<u32> {
        self.0.iter().skip(position as usize).take(count as usize).map(|message| message.uid).collect()
    }
}

impl Folder {
    fn state(&self) -> FolderState {
        FolderState {
            change: self.change,
            uid_next: self.uid_next,
            count: u32::try_from(self.messages.len()).unwrap(),
            last_uid: self.messages.last().map_or(0, |message| message.uid),
        }
    }

    pub(crate) fn change(&self) -> u64 {
        self.change
    }

    fn place(&self, uid: u32) -> usize {
        self.messages.iter().position(|message| message.uid == uid).unwrap()
    }

    fn numbers(&self) -> MailboxNumbers {
        let count = |is: &dyn Fn(&Message) -> bool| {
            u32::try_from(self.messages.iter().filter(|message| is(message)).count()).unwrap()
        };
        MailboxNumbers {
            messages: self.state().count,
            recent: 0,
            uid_next: self.uid_next,
            uid_validity: self.uid_validity,
            unseen: count(&|message| !message.flags.seen),
            deleted: count(&|message| message.flags.deleted),
            bytes: self.messages.iter().map(|message| message.source.len() as u64).sum(),
            deleted_bytes: 0,
            mod_seq: self.change,
            mailbox_id: format!("F{}", self.number),
            append_limit: None,
        }
    }

    fn take(&mut self, uid: u32, change: u64) -> Message {
        self.change = change;
        self.left.push((change, uid));
        let place = self.place(uid);
        self.messages.remove(place)
    }
}

/// Everything that there is.
pub(crate) struct World {
    pub(crate) folders: BTreeMap<String, Folder>,
    subscribed: BTreeSet<String>,
    change: u64,
    next_id: u64,
    contents: BTreeMap<u64, Arc<Vec<u8>>>,
    /// Messages of an APPEND that has begun, by session.
    open: BTreeMap<usize, Vec<(NewMessage, Vec<u8>)>>,
    pub(crate) asked: Vec<String>,
    /// What a client of this name does not get along with.
    pub(crate) hides_from: Vec<(String, CapabilitySet)>,
    pub(crate) hidden: CapabilitySet,
    rights: Vec<(String, String)>,
    /// Changes of mailboxes by name.
    events: Vec<MailboxEvent>,
    /// Messages of one step, if fewer than asked for.
    pub(crate) step: u32,
}

pub(crate) fn date() -> DateTime {
    DateTime::parse("26-Nov-2026 10:20:51 +0100").unwrap()
}

impl World {
    pub(crate) fn new() -> Self {
        let mut world = Self {
            folders: BTreeMap::new(),
            subscribed: BTreeSet::new(),
            change: 10,
            next_id: 1,
            contents: BTreeMap::new(),
            open: BTreeMap::new(),
            asked: Vec::new(),
            hides_from: Vec::new(),
            hidden: CapabilitySet::NONE,
            rights: vec![("ada".to_owned(), "lrswipkxtea".to_owned())],
            events: Vec::new(),
            step: u32::MAX,
        };
        for (name, special) in [("INBOX", ""), ("Archive/2026", ""), ("Sent", "\\Sent"), ("Trash", "\\Trash")]
        {
            world.make(name, if special.is_empty() { Vec::new() } else { vec![special.to_owned()] });
        }
        world.subscribed.insert("INBOX".to_owned());
        world.subscribed.insert("Archive/2026".to_owned());
        world
    }

    fn make(&mut self, name: &str, special_uses: Vec<String>) {
        let number = self.folders.values().map(|folder| folder.number).max().unwrap_or(0) + 1;
        self.change += 1;
        let folder = Folder {
            number,
            uid_validity: 1000 + u32::try_from(number).unwrap(),
            uid_next: 1,
            messages: Vec::new(),
            left: Vec::new(),
            change: self.change,
            special_uses,
            metadata: BTreeMap::new(),
        };
        self.folders.insert(name.to_owned(), folder);
    }

    /// Stores a message, and gives its UID.
    pub(crate) fn add(&mut self, folder: &str, source: &[u8], flags: SystemFlags) -> u32 {
        self.put(folder, source, flags, Vec::new(), date())
    }

    fn put(
        &mut self,
        name: &str,
        source: &[u8],
        flags: SystemFlags,
        keywords: Vec<Flag>,
        date: DateTime,
    ) -> u32 {
        self.change += 1;
        let id = self.next_id;
        self.next_id += 1;
        let source = Arc::new(source.to_vec());
        self.contents.insert(id, Arc::clone(&source));
        let folder = self.folders.get_mut(name).unwrap();
        let uid = folder.uid_next;
        folder.uid_next += 1;
        folder.change = self.change;
        folder.messages.push(Message {
            uid,
            id,
            flags,
            keywords,
            mod_seq: self.change,
            arrival: self.change,
            date,
            map: Arc::new(MapBuilder::map(&source)),
            source,
        });
        uid
    }

    pub(crate) fn inbox(&self) -> &Folder {
        &self.folders["INBOX"]
    }

    pub(crate) fn answer(&mut self, session: usize, request: Request) -> Answer {
        match request {
            Request::Greet(_) => Answer::Accepted,
            Request::StartTls => Answer::Encrypted(scrinium_imap::Encryption::default()),
            Request::Account(_) => Answer::Trouble,
            Request::LogIn(claim) => Answer::Login(self.log_in(&claim)),
            Request::Identify(fields) => {
                let is = |name: &str| fields.iter().any(|(_, value)| value.as_deref() == Some(name));
                let hidden = self.hides_from.iter().find(|(name, _)| is(name)).map(|(_, hidden)| *hidden);
                Answer::Hide(hidden.unwrap_or(CapabilitySet::NONE))
            }
            Request::Mailbox(request) => self.mailbox(*request),
            Request::Folder(request) => Answer::Folder(Box::new(self.folder(session, *request))),
            Request::Content(id, span) => {
                let id = u64::from_be_bytes(id.0.as_ref().try_into().unwrap());
                match self.contents.get(&id) {
                    Some(source) => Answer::Content(source[span.start as usize..span.end as usize].to_vec()),
                    None => Answer::Gone,
                }
            }
            Request::BeginAppend(message) => {
                if !self.folders.contains_key(message.mailbox.as_str()) {
                    return Answer::Refused(Refusal::new("TRYCREATE", "There is no such mailbox"));
                }
                let open = self.open.entry(session).or_default();
                assert_eq!(open.len(), message.index);
                open.push((*message, Vec::new()));
                Answer::Accepted
            }
            Request::AppendData(bytes) => {
                self.open.get_mut(&session).unwrap().last_mut().unwrap().1.extend_from_slice(&bytes);
                Answer::Accepted
            }
            Request::FinishAppend => {
                let open = self.open.remove(&session).unwrap();
                let uid_validity = self.folders[open[0].0.mailbox.as_str()].uid_validity;
                let uids = open.into_iter().map(|new| self.store_new(new)).map(|uid| (uid, uid));
                Answer::Appended { uid_validity, uids: NumberSet::of_ranges(uids.collect::<Vec<_>>()) }
            }
            Request::AbandonAppend => {
                assert!(self.open.remove(&session).is_some(), "nothing was open");
                Answer::Accepted
            }
            Request::Events(question) => {
                let from = question.cursor.unwrap_or(0) as usize;
                let mut events: Vec<MailboxEvent> = self.events[from..].to_vec();
                if question.cursor.is_none() && question.wants_status {
                    for (name, folder) in &self.folders {
                        let name = scrinium_imap_wire::MailboxName::new(name).unwrap();
                        events.push(MailboxEvent::Changed(name, folder.numbers()));
                    }
                }
                Answer::Events { events, cursor: self.events.len() as u64, is_more: false }
            }
        }
    }

    fn store_new(&mut self, (new, bytes): (NewMessage, Vec<u8>)) -> u32 {
        assert_eq!(new.bytes, bytes.len() as u64);
        let date = new.date.unwrap_or_else(date);
        self.put(new.mailbox.as_str(), &bytes, new.flags, new.keywords, date)
    }

    fn log_in(&self, claim: &Claim) -> LoginVerdict {
        let is_right = claim.name.as_deref() == Some("ada")
            && claim.proof == ClaimedProof::Password("secret".to_owned());
        if is_right { LoginVerdict::Admitted("ada".to_owned(), self.hidden) } else { LoginVerdict::Wrong }
    }

    #[allow(clippy::too_many_lines, reason = "one arm a request")]
    fn mailbox(&mut self, request: MailboxRequest) -> Answer {
        self.asked.push(format!("{request:?}").split(['(', ' ', '{']).next().unwrap().to_owned());
        let no_mailbox = || Answer::Refused(Refusal::no_mailbox());
        let exists =
            |world: &Self, name: &scrinium_imap_wire::MailboxName| world.folders.contains_key(name.as_str());
        match request {
            MailboxRequest::Open { mailbox, read_only } => match self.folders.get(mailbox.as_str()) {
                Some(folder) => Answer::Opened(Box::new(opened(folder, read_only))),
                None => no_mailbox(),
            },
            MailboxRequest::List(question) => self.list(&question),
            MailboxRequest::Status(mailbox, _) => match self.folders.get(mailbox.as_str()) {
                Some(folder) => Answer::Status(Box::new(folder.numbers())),
                None => no_mailbox(),
            },
            MailboxRequest::Create(mailbox, uses) => {
                let name = mailbox.as_str().trim_end_matches('/').to_owned();
                if self.folders.contains_key(&name) {
                    return Answer::Refused(Refusal::new("ALREADYEXISTS", "It is there already"));
                }
                self.make(&name, uses);
                let info = MailboxInfo { name: name.clone(), ..MailboxInfo::default() };
                self.events.push(MailboxEvent::Named(Box::new(info), None));
                Answer::Created(format!("F{}", self.folders[&name].number))
            }
            MailboxRequest::Delete(mailbox) => match self.folders.remove(mailbox.as_str()) {
                Some(_) => Answer::Accepted,
                None => no_mailbox(),
            },
            MailboxRequest::Rename(from, to) => match self.folders.remove(from.as_str()) {
                Some(folder) => {
                    self.folders.insert(to.as_str().to_owned(), folder);
                    Answer::Accepted
                }
                None => no_mailbox(),
            },
            MailboxRequest::Subscribe(mailbox, is_on) => {
                let name = mailbox.as_str().to_owned();
                if is_on {
                    self.subscribed.insert(name)
                } else {
                    self.subscribed.remove(&name)
                };
                Answer::Accepted
            }
            MailboxRequest::Namespace => Answer::Namespaces {
                personal: vec![(String::new(), Some('/'))],
                other_users: vec![("Users/".to_owned(), Some('/'))],
                shared: vec![("Databases/".to_owned(), Some('/'))],
            },
            MailboxRequest::QuotaRoot(_) | MailboxRequest::Quota(_) | MailboxRequest::SetQuota(..) => {
                Answer::Quota(vec![(String::new(), vec![("STORAGE".to_owned(), 12, 1000)])])
            }
            MailboxRequest::GetAcl(mailbox) if exists(self, &mailbox) => Answer::Rights(self.rights.clone()),
            MailboxRequest::SetAcl(_, who, RightsChange::Set(rights)) => {
                self.rights.retain(|(known, _)| *known != who);
                self.rights.push((who, rights));
                Answer::Accepted
            }
            MailboxRequest::SetAcl(..) => Answer::Refused(Refusal::new("CANNOT", "Not like that")),
            MailboxRequest::DeleteAcl(_, who) => {
                self.rights.retain(|(known, _)| *known != who);
                Answer::Accepted
            }
            MailboxRequest::ListRights(..) => Answer::ListedRights(vec!["lr".to_owned(), "s".to_owned()]),
            MailboxRequest::MyRights(_) => Answer::MyRights("lrswipkxtea".to_owned()),
            MailboxRequest::GetMetadata(mailbox, entries, _) => self.metadata(mailbox, &entries),
            MailboxRequest::SetMetadata(mailbox, entries) => {
                let name = mailbox.map_or_else(|| "INBOX".to_owned(), |name| name.as_str().to_owned());
                let Some(folder) = self.folders.get_mut(&name) else { return no_mailbox() };
                for (entry, value) in entries {
                    match value {
                        Some(value) => folder.metadata.insert(entry, value),
                        None => folder.metadata.remove(&entry),
                    };
                }
                Answer::Accepted
            }
            MailboxRequest::GetAcl(_) => no_mailbox(),
        }
    }

    fn metadata(&self, mailbox: Option<scrinium_imap_wire::MailboxName>, entries: &[String]) -> Answer {
        let name = mailbox.map_or_else(|| "INBOX".to_owned(), |name| name.as_str().to_owned());
        let Some(folder) = self.folders.get(&name) else { return Answer::Refused(Refusal::no_mailbox()) };
        let found = entries.iter().map(|entry| (entry.clone(), folder.metadata.get(entry).cloned()));
        Answer::Metadata(found.collect())
    }

    fn list(&self, question: &ListQuestion) -> Answer {
        let mut names: BTreeSet<Vec<String>> = BTreeSet::new();
        let all: Vec<&String> = if question.only_subscribed {
            self.subscribed.iter().collect()
        } else {
            self.folders.keys().collect()
        };
        for name in &all {
            let levels: Vec<String> = name.split('/').map(str::to_owned).collect();
            (1..=levels.len()).for_each(|count| {
                names.insert(levels[..count].to_vec());
            });
        }
        let names: Vec<String> = names.into_iter().map(|levels| levels.join("/")).collect();
        let behind = question.behind.as_ref().and_then(|last| names.iter().position(|name| name == last));
        let rest = names.iter().skip(behind.map_or(0, |place| place + 1));
        let rest: Vec<&String> = rest.filter(|name| name.starts_with(&question.prefix)).collect();
        let is_more = rest.len() > question.limit;
        let below = |name: &str, other: &str| other.starts_with(&format!("{name}/"));
        let info = |name: &&String| {
            let folder = self.folders.get(*name);
            MailboxInfo {
                name: (*name).clone(),
                no_select: folder.is_none(),
                non_existent: folder.is_none(),
                has_children: self.folders.keys().any(|other| below(name, other)),
                subscribed: self.subscribed.contains(*name),
                subscribed_below: self.subscribed.iter().any(|other| below(name, other)),
                special_uses: folder.map(|folder| folder.special_uses.clone()).unwrap_or_default(),
                rights: question.wants_rights.then(|| "lr".to_owned()),
                status: folder.filter(|_| !question.status.is_empty()).map(Folder::numbers),
                metadata: Vec::new(),
            }
        };
        Answer::Mailboxes { mailboxes: rest.iter().take(question.limit).map(info).collect(), is_more }
    }

    fn folder(&mut self, session: usize, request: FolderRequest) -> FolderAnswer {
        let FolderRequest { mut view, question, .. } = request;
        let name = self.folders.iter().find(|(_, folder)| folder.number == view.folder());
        let Some(name) = name.map(|(name, _)| name.clone()) else {
            return FolderAnswer { view, outcome: FolderOutcome::Closed };
        };
        catch_up(&self.folders[&name], &mut view);
        let outcome = match question {
            FolderQuestion::Sync { told_to, limit } => self.sync(&name, &view, told_to, limit),
            FolderQuestion::Entries(question) => self.entries(&name, &view, &question),
            FolderQuestion::Flags { messages, limit } => self.flags(&name, &view, (&messages, limit)),
            FolderQuestion::Store(question) => self.store(&name, &mut view, &question),
            FolderQuestion::Transfer { messages, target, moves, limit } => {
                let selection = messages.resolve(&view);
                self.transfer(&name, &mut view, &selection, target.as_str(), moves, limit)
            }
            FolderQuestion::Expunge { messages, limit } => {
                let selection = messages.resolve(&view);
                self.expunge(&name, &mut view, &selection, limit)
            }
            FolderQuestion::Search(question) => self.search(&name, &view, &question),
            FolderQuestion::Thread(question, algorithm) => self.thread(&name, &view, &question, algorithm),
            FolderQuestion::Vanished { since, known, from_uid, limit } => {
                let known = known.map(|known| NumberSet::of_ranges(known.resolve(view.state().last_uid)));
                self.vanished(&name, since, known.as_ref(), from_uid, limit)
            }
            FolderQuestion::Batches { size, range } => {
                let uids: Vec<u32> =
                    self.folders[&name].messages.iter().rev().map(|message| message.uid).collect();
                let batches = uids.chunks(size as usize).map(|batch| (batch[0], *batch.last().unwrap()));
                let (from, to) = (range.0 as usize, range.1 as usize);
                FolderOutcome::Batches(batches.skip(from - 1).take(to - from + 1).collect())
            }
            FolderQuestion::Replace(messages) => {
                let selection = messages.resolve(&view);
                let old = select(&Index(&self.folders[&name].messages), &view, &selection, 1);
                let Some(old) = old.first() else {
                    self.open.remove(&session);
                    let refusal = Refusal::new("", "There is no such message");
                    return FolderAnswer { view, outcome: FolderOutcome::Refused(refusal) };
                };
                let new = self.open.remove(&session).unwrap().remove(0);
                let uid_validity = self.folders[new.0.mailbox.as_str()].uid_validity;
                let uid = self.store_new(new);
                self.change += 1;
                let change = self.change;
                self.folders.get_mut(&name).unwrap().take(old.uid, change);
                catch_up(&self.folders[&name], &mut view);
                FolderOutcome::Replaced { uid_validity, uid }
            }
        };
        FolderAnswer { view, outcome }
    }

    fn entry(folder: &Folder, picked: Picked, source_bytes: u32, wants_map: bool) -> Entry {
        folder.messages[folder.place(picked.uid)].entry(picked.number, source_bytes, wants_map)
    }

    fn sync(&self, name: &str, view: &FolderView, told_to: u64, limit: u32) -> FolderOutcome {
        let folder = &self.folders[name];
        let mut changed: Vec<&Message> =
            folder.messages.iter().filter(|message| message.mod_seq > told_to).collect();
        changed.sort_by_key(|message| message.mod_seq);
        let limit = limit.min(self.step) as usize;
        let is_more = changed.len() > limit;
        changed.truncate(limit);
        let told_to = match changed.last().filter(|_| is_more) {
            Some(last) => last.mod_seq,
            None => folder.change,
        };
        let index = Index(&folder.messages);
        let entry = |message: &&Message| {
            let number = view.number_of(message.uid, index.position(message.uid)).unwrap();
            message.entry(number, 0, false)
        };
        FolderOutcome::Synced { changed: changed.iter().map(entry).collect(), told_to, is_more }
    }

    /// The first messages of a selection, what is left of it, and how many of it are gone.
    fn picked(
        &self,
        name: &str,
        view: &FolderView,
        selection: &Selection,
        limit: u32,
    ) -> (Vec<Picked>, Option<Selection>, u32) {
        let limit = limit.min(self.step);
        let folder = &self.folders[name];
        let picked = select(&Index(&folder.messages), view, selection, limit);
        let rest = match picked.last() {
            Some(last) if picked.len() == limit as usize => Some(selection.behind(*last)),
            _ => None,
        };
        let gone = |set: &NumberSet| {
            set.ranges().iter().map(|(from, to)| view.ghosts_between(*from, *to)).sum::<u32>()
        };
        let missing = match (selection, &rest) {
            (Selection::Numbers(set), None) => gone(set),
            (Selection::Numbers(set), Some(_)) => gone(&set.up_to(picked.last().unwrap().number)),
            (Selection::Uids(_), _) => 0,
        };
        (picked, rest.filter(|rest| !rest.is_empty()), missing)
    }

    fn flags(
        &self,
        name: &str,
        view: &FolderView,
        (messages, limit): (&scrinium_mailbox::Messages, u32),
    ) -> FolderOutcome {
        let (picked, rest, missing) = self.picked(name, view, &messages.resolve(view), limit);
        let folder = &self.folders[name];
        let flags = picked.into_iter().map(|picked| {
            let Entry { uid, number, flags, keywords, .. } = Self::entry(folder, picked, 0, false);
            MessageFlags { uid, number, flags, keywords }
        });
        FolderOutcome::Flags { flags: flags.collect(), rest, missing }
    }

    fn entries(&mut self, name: &str, view: &FolderView, question: &EntriesQuestion) -> FolderOutcome {
        let mut selection = question.messages.resolve(view);
        if let Some(partial) = question.partial {
            selection = narrow(&Index(&self.folders[name].messages), view, &selection, partial);
        }
        let (picked, rest, missing) = self.picked(name, view, &selection, question.limit);
        let mut entries = Vec::new();
        for picked in picked {
            let mut was_changed = false;
            let folder = self.folders.get_mut(name).unwrap();
            let place = folder.place(picked.uid);
            let message = &mut folder.messages[place];
            if question.changed_since.is_some_and(|since| message.mod_seq <= since) {
                continue;
            }
            if question.marks_seen && !message.flags.seen {
                self.change += 1;
                message.flags.seen = true;
                message.mod_seq = self.change;
                folder.change = self.change;
                was_changed = true;
            }
            let mut entry =
                Self::entry(folder, picked, question.source_bytes, question.map != MapNeed::Nothing);
            entry.was_changed = was_changed;
            entries.push(entry);
        }
        FolderOutcome::Entries { entries, rest, missing }
    }

    fn store(&mut self, name: &str, view: &mut FolderView, question: &StoreQuestion) -> FolderOutcome {
        let selection = question.messages.resolve(view);
        let (picked, rest, missing) = self.picked(name, view, &selection, question.limit);
        let (mut entries, mut modified) = (Vec::new(), Vec::new());
        let first = self.change + 1;
        for picked in picked {
            let folder = self.folders.get_mut(name).unwrap();
            let place = folder.place(picked.uid);
            let message = &mut folder.messages[place];
            if question.unchanged_since.is_some_and(|since| message.mod_seq > since) {
                modified.push(picked);
                continue;
            }
            let mod_seq_before = message.mod_seq;
            if change_flags(message, question) {
                self.change += 1;
                message.mod_seq = self.change;
                folder.change = self.change;
            }
            let entry = Self::entry(folder, picked, 0, false);
            entries.push(StoredEntry { entry, mod_seq_before });
        }
        let changes = (self.change >= first).then_some((first, self.change));
        catch_up(&self.folders[name], view);
        FolderOutcome::Stored { entries, modified, rest, missing, changes }
    }

    fn transfer(
        &mut self,
        name: &str,
        view: &mut FolderView,
        selection: &Selection,
        target: &str,
        moves: bool,
        limit: u32,
    ) -> FolderOutcome {
        if !self.folders.contains_key(target) {
            return FolderOutcome::NoMailbox;
        }
        let (picked, rest, _) = self.picked(name, view, selection, limit);
        let mut pairs = Vec::new();
        for picked in picked {
            let folder = self.folders.get_mut(name).unwrap();
            let message = folder.messages[folder.place(picked.uid)].clone();
            if moves {
                self.change += 1;
                let change = self.change;
                folder.take(picked.uid, change);
            }
            let (flags, keywords) = (message.flags, message.keywords.clone());
            let there = self.put(target, &message.source.clone(), flags, keywords, message.date);
            pairs.push((picked.uid, there));
        }
        catch_up(&self.folders[name], view);
        FolderOutcome::Transferred { uid_validity: self.folders[target].uid_validity, pairs, rest }
    }

    fn expunge(
        &mut self,
        name: &str,
        view: &mut FolderView,
        selection: &Selection,
        limit: u32,
    ) -> FolderOutcome {
        let (picked, rest, _) = self.picked(name, view, selection, limit);
        for picked in picked {
            let folder = self.folders.get_mut(name).unwrap();
            if folder.messages[folder.place(picked.uid)].flags.deleted {
                self.change += 1;
                let change = self.change;
                folder.take(picked.uid, change);
            }
        }
        catch_up(&self.folders[name], view);
        FolderOutcome::Expunged { rest }
    }

    /// Another person takes a message away.
    pub(crate) fn remove(&mut self, name: &str, uid: u32) {
        self.change += 1;
        let change = self.change;
        self.folders.get_mut(name).unwrap().take(uid, change);
    }

    /// Another person flags a message.
    pub(crate) fn flag(&mut self, name: &str, uid: u32, is_flagged: bool) {
        self.change += 1;
        let change = self.change;
        let folder = self.folders.get_mut(name).unwrap();
        let place = folder.place(uid);
        folder.messages[place].flags.flagged = is_flagged;
        folder.messages[place].mod_seq = change;
        folder.change = change;
    }

    fn found<'a>(
        &'a self,
        name: &str,
        view: &FolderView,
        question: &SearchQuestion,
    ) -> Vec<(Picked, &'a Message)> {
        let folder = &self.folders[name];
        let context = SearchContext {
            view,
            saved: &question.saved,
            now_seconds: i64::try_from(NOW_MS / 1000).unwrap(),
        };
        let everything = Selection::Uids(NumberSet::of_ranges([(1, u32::MAX)]));
        let all = select(&Index(&folder.messages), view, &everything, u32::MAX);
        let all = all.into_iter().map(|picked| (picked, &folder.messages[folder.place(picked.uid)]));
        all.filter(|(picked, message)| {
            let entry = message.entry(picked.number, 0, true);
            let mut text = MessageText { map: &message.map, source: &message.source };
            matches(&question.keys, &entry, &mut text, context)
        })
        .collect()
    }

    fn search(&self, name: &str, view: &FolderView, question: &SearchQuestion) -> FolderOutcome {
        let mut found = self.found(name, view, question);
        match &question.order {
            SearchOrder::Ascending => {}
            SearchOrder::Descending => found.reverse(),
            SearchOrder::Sorted(keys) => {
                let fields = |message: &Message| SortFields::new(&message.entry(1, 0, true), &message.map);
                found.sort_by(|(_, one), (_, other)| fields(one).compare(&fields(other), keys));
            }
        }
        let from = question.cursor.unwrap_or(0) as usize;
        let limit = question.limit.min(self.step) as usize;
        let cursor = (found.len() > from + limit).then_some((from + limit) as u64);
        let found: Vec<_> = found.into_iter().skip(from).take(limit).collect();
        let mod_seq = found.iter().map(|(_, message)| message.mod_seq).max().unwrap_or(0);
        let total = view.exists();
        let progress = (u32::try_from(from).unwrap(), total);
        FolderOutcome::Found {
            found: found.iter().map(|(picked, _)| *picked).collect(),
            mod_seq,
            cursor,
            progress,
        }
    }

    fn thread(
        &self,
        name: &str,
        view: &FolderView,
        question: &SearchQuestion,
        algorithm: ThreadAlgorithm,
    ) -> FolderOutcome {
        let messages: Vec<ThreadMessage> = self
            .found(name, view, question)
            .iter()
            .map(|(picked, message)| {
                let envelope = message.map.raw_envelope().cloned().unwrap_or_default();
                let id = envelope.message_id.map(|id| String::from_utf8(id).unwrap());
                ThreadMessage {
                    number: picked.number,
                    id: id.map(|id| id.trim_matches(['<', '>']).to_owned()),
                    references: message.map.references.clone(),
                    subject: base_subject(envelope.subject.as_deref().unwrap_or_default()),
                    sent: message
                        .map
                        .sent
                        .map_or_else(|| utc_seconds(&message.date), |sent| sent.utc_seconds),
                }
            })
            .collect();
        let threads = match algorithm {
            ThreadAlgorithm::OrderedSubject => ordered_subject(&messages),
            ThreadAlgorithm::References => references(&messages),
        };
        FolderOutcome::Threads { threads, cursor: None, progress: (0, 0) }
    }

    fn vanished(
        &self,
        name: &str,
        since: u64,
        known: Option<&NumberSet>,
        from_uid: u32,
        limit: usize,
    ) -> FolderOutcome {
        let folder = &self.folders[name];
        let mut uids = NumberSet::default();
        let mut left: Vec<u32> = folder
            .left
            .iter()
            .filter(|(change, uid)| *change > since && *uid >= from_uid)
            .map(|(_, uid)| *uid)
            .filter(|uid| known.is_none_or(|known| known.contains(*uid)))
            .collect();
        left.sort_unstable();
        for uid in left {
            if uids.insert(uid, limit.min(self.step as usize)).is_err() {
                return FolderOutcome::Vanished { uids, next_uid: Some(uid) };
            }
        }
        FolderOutcome::Vanished { uids, next_uid: None }
    }
}

fn opened(folder: &Folder, read_only: bool) -> OpenedMailbox {
    let mut keywords: Vec<Flag> = Vec::new();
    for keyword in folder.messages.iter().flat_map(|message| &message.keywords) {
        if !keywords.contains(keyword) {
            keywords.push(keyword.clone());
        }
    }
    let first = folder.messages.iter().position(|message| !message.flags.seen);
    OpenedMailbox {
        view: FolderView::new(folder.number, folder.uid_validity, folder.state()),
        read_only,
        keywords,
        new_keywords: true,
        changeable: SystemFlags::all(),
        first_unseen: first.map(|place| u32::try_from(place + 1).unwrap()),
        recent: 0,
        mailbox_id: format!("F{}", folder.number),
        mod_seq: folder.change,
    }
}

fn catch_up(folder: &Folder, view: &mut FolderView) {
    let since = view.state().change;
    let left: Vec<u32> =
        folder.left.iter().filter(|(change, _)| *change > since).map(|(_, uid)| *uid).collect();
    let index = Index(&folder.messages);
    view.catch_up(folder.state(), left, |uid| index.position(uid));
}

fn change_flags(message: &mut Message, question: &StoreQuestion) -> bool {
    let before = (message.flags, message.keywords.clone());
    let mut system = question.system;
    for name in ["\\Seen", "\\Answered", "\\Flagged", "\\Deleted", "\\Draft"] {
        let flag = Flag::new(name).unwrap();
        let named = *system.place(&flag).unwrap();
        let place = message.flags.place(&flag).unwrap();
        match question.action {
            StoreAction::Replace => *place = named,
            StoreAction::Add => *place |= named,
            StoreAction::Remove => *place &= !named,
        }
    }
    let is_named = |keyword: &Flag| question.keywords.iter().any(|named| named.is(keyword.as_str()));
    match question.action {
        StoreAction::Replace => message.keywords.clone_from(&question.keywords),
        StoreAction::Add => {
            for keyword in &question.keywords {
                if !message.keywords.iter().any(|known| known.is(keyword.as_str())) {
                    message.keywords.push(keyword.clone());
                }
            }
        }
        StoreAction::Remove => message.keywords.retain(|keyword| !is_named(keyword)),
    }
    (message.flags, message.keywords.clone()) != before
}
