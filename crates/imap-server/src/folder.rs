//! Questions about the messages of a folder.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use roaring::RoaringBitmap;
use scrinium_database::folder::record::{ANSWERED, DELETED, DRAFT, FLAGGED, Member, MemberChangeKind};
use scrinium_database::{DatabaseError, FlagsChange, FolderInfo, Result};
use scrinium_directory::Person;
use scrinium_imap::{
    EntriesQuestion, Entry, FolderAnswer, FolderOutcome, FolderQuestion, FolderRequest, MapNeed,
    MessageFlags, StoreQuestion, StoredEntry, SystemFlags,
};
use scrinium_imap_wire::{Flag, SequenceSet, StoreAction};
use scrinium_mail::field;
use scrinium_mailbox::{
    FolderIndex as _, FolderView, Messages as Named, NumberSet, Picked, Selection, Span, narrow, select,
};
use serde_json::Value;

use crate::desk::FolderHandle;
use crate::mail_file::{MailFile, refusal_of};
use crate::message::{Beginning, Known, Messages, content_id};
use crate::surroundings::Surroundings;
use crate::time::date_time;
use crate::tracker::{FolderTracker, Tracked, number_of};
use crate::transfer;

/// Changes that one step looks through.
const CHANGES_AT_ONCE: usize = 1_000;

/// Who asks, about which folder, and with what it is answered.
pub(crate) struct Ground<'g> {
    pub(crate) shared: &'g Surroundings,
    pub(crate) person: &'g Person,
    pub(crate) file: &'g MailFile,
    pub(crate) open: &'g FolderHandle,
    /// The messages that alone can be what a search looks for, where that is known.
    pub(crate) candidates: Option<&'g RoaringBitmap>,
}

/// What the questions of one session are answered with.
pub(crate) struct FolderDesk<'d> {
    pub(crate) ground: &'d Ground<'d>,
    pub(crate) file: &'d MailFile,
    pub(crate) messages: &'d Messages,
    pub(crate) tracker: &'d FolderTracker,
    /// The folder as it is called now.
    pub(crate) info: FolderInfo,
    pub(crate) now_ms: u64,
    /// Keywords by their numbers.
    pub(crate) keywords: RefCell<BTreeMap<u16, Flag>>,
}

/// What a step has picked, what is left of the selection behind it, and how many of it are gone.
pub(crate) struct Step {
    pub(crate) picked: Vec<Picked>,
    pub(crate) rest: Option<Selection>,
    pub(crate) missing: u32,
}

/// A message of a folder: where it is, and what the folder says of it.
pub(crate) struct Found {
    pub(crate) picked: Picked,
    pub(crate) member: Member,
    pub(crate) mod_seq: u64,
}

/// Answers a question. The view comes back in any case. Blocks.
pub(crate) fn answer(ground: &Ground<'_>, request: FolderRequest) -> FolderAnswer {
    let FolderRequest { mut view, question, .. } = request;
    let outcome = begin(ground, &mut view)
        .and_then(|begun| match begun {
            Some((desk, tracked)) => desk.answer(&mut view, &tracked, question),
            None => Ok(FolderOutcome::Closed),
        })
        .unwrap_or_else(|error| match error {
            DatabaseError::NotFound { .. } => FolderOutcome::Closed,
            error => FolderOutcome::Refused(refusal_of(&error)),
        });
    FolderAnswer { view, outcome }
}

/// The document of the first message that is named, if there is one.
///
/// # Errors
/// What the store reports.
pub(crate) fn first_of(ground: &Ground<'_>, view: &mut FolderView, named: &Named) -> Result<Option<String>> {
    let Some((desk, tracked)) = begin(ground, view)? else { return Ok(None) };
    let step = step(&tracked, view, &named.resolve(view), 1);
    Ok(desk.found(&step.picked)?.pop().map(|found| found.member.id))
}

/// The folder as it is now, and the view brought up to it. `None`: the session cannot go on with the view that it has.
///
/// # Errors
/// [`DatabaseError::NotFound`] if the folder is gone, and what the store reports.
pub(crate) fn begin<'d>(
    ground: &'d Ground<'d>,
    view: &mut FolderView,
) -> Result<Option<(FolderDesk<'d>, Tracked)>> {
    let Ground { shared, file, open, .. } = ground;
    let tracker = &*open.tracker;
    let info = file.folder_numbered(tracker.folder(), &open.name)?;
    // Who may not read all that is here may read other things by now.
    let by_now = shared.trackers.of(file, tracker.folder())?;
    if (by_now.is_restricted() || tracker.is_restricted()) && !Arc::ptr_eq(&by_now, &open.tracker) {
        return Ok(None);
    }
    let tracked = tracker.up_to_date()?;
    if info.uid_validity != view.uid_validity()
        || tracked.epoch != open.epoch
        || !tracker.catch_up(view, &tracked)?
    {
        return Ok(None);
    }
    let keywords = RefCell::default();
    let (messages, now_ms) = (&shared.messages, shared.clock.now_ms());
    Ok(Some((FolderDesk { ground, file, messages, tracker, info, now_ms, keywords }, tracked)))
}

fn known_keywords(file: &MailFile) -> Result<BTreeMap<u16, Flag>> {
    let keywords = file.database.keywords()?.into_iter();
    Ok(keywords.filter_map(|(number, keyword)| Some((number, Flag::new(&keyword)?))).collect())
}

impl FolderDesk<'_> {
    fn answer(
        &self,
        view: &mut FolderView,
        tracked: &Tracked,
        question: FolderQuestion,
    ) -> Result<FolderOutcome> {
        match question {
            FolderQuestion::Sync { told_to, limit } => self.sync(view, tracked, (told_to, limit)),
            FolderQuestion::Entries(question) => self.entries(view, tracked, &question),
            FolderQuestion::Flags { messages, limit } => {
                self.flags(tracked, &step(tracked, view, &messages.resolve(view), limit))
            }
            FolderQuestion::Store(question) => self.store(view, tracked, &question),
            FolderQuestion::Transfer { messages, target, moves, limit } => {
                let step = step(tracked, view, &messages.resolve(view), limit);
                let outcome = transfer::transfer(self, &step, target.as_str(), moves)?;
                self.refresh(view)?;
                Ok(outcome)
            }
            FolderQuestion::Expunge { messages, limit } => {
                let step = step(tracked, view, &messages.resolve(view), limit);
                let found = self.found(&step.picked)?.into_iter().filter(|found| found.member.is_deleted());
                transfer::remove(self.file, &self.info.name, found.map(|found| found.member.id).collect())?;
                self.refresh(view)?;
                Ok(FolderOutcome::Expunged { rest: step.rest })
            }
            FolderQuestion::Search(question) => self.search(view, tracked, &question),
            FolderQuestion::Thread(question, algorithm) => self.thread(view, tracked, &question, algorithm),
            FolderQuestion::Vanished { since, known, from_uid, limit } => {
                let known = known.map(|known| numbers_in(&known, tracked));
                self.vanished(tracked, since, (known.as_ref(), from_uid, limit))
            }
            FolderQuestion::Batches { size, range } => Ok(batches(tracked, size, range)),
            // The desk does it, which has the message that comes.
            FolderQuestion::Replace(_) => Ok(FolderOutcome::Closed),
        }
    }

    /// Brings the view up to what this session itself has just done.
    pub(crate) fn refresh(&self, view: &mut FolderView) -> Result<Tracked> {
        let tracked = self.tracker.up_to_date()?;
        // Only a purge in this moment could keep it from being told; the next question finds that.
        self.tracker.catch_up(view, &tracked)?;
        Ok(tracked)
    }

    /// What the folder says of messages; those that have left in this moment are not among them.
    pub(crate) fn found(&self, picked: &[Picked]) -> Result<Vec<Found>> {
        let database = &self.file.database;
        let snapshot = database.store().snapshot();
        let uids: Vec<u64> = picked.iter().map(|picked| u64::from(picked.uid)).collect();
        let members = database.members_of(&snapshot, self.tracker.folder(), &uids)?;
        let mut members = members.into_iter().peekable();
        let mut found = Vec::with_capacity(picked.len());
        for picked in picked.iter().copied() {
            let Some((_, member)) = members.next_if(|(uid, _)| *uid == u64::from(picked.uid)) else {
                continue;
            };
            let marked = database.mark_change_at(&snapshot, &member.id, &self.file.person)?;
            let mod_seq = member.change_number.max(marked).max(1);
            found.push(Found { picked, member, mod_seq });
        }
        Ok(found)
    }

    /// Keeps what those of them are to mail clients that have no source, all at once: one by one each would wait for the disk.
    pub(crate) fn freeze(&self, found: &[Found]) -> Result<()> {
        let without_source = found.iter().filter(|found| found.member.facts.content.is_none());
        let ids: Vec<&str> = without_source.map(|found| found.member.id.as_str()).collect();
        self.messages.freeze(&self.file.database, &ids, &self.file.access)
    }

    /// A message as the session tells it.
    pub(crate) fn entry(&self, found: &Found, tracked: &Tracked) -> Result<Entry> {
        let Found { picked, member, mod_seq } = found;
        let database = &self.file.database;
        let (content, bytes) = match member.facts.content {
            Some(_) => (content_id(database, &member.id, None), member.facts.bytes),
            None => {
                // It has no source: what it becomes is as long as it is.
                let content = content_id(database, &member.id, Some(&self.revision(&member.id)?));
                match self.messages.known_bytes(&content) {
                    Some(bytes) => (content, bytes),
                    None => self.messages.composed(database, &member.id, &self.file.access)?,
                }
            }
        };
        let added = date_time(i64::try_from(member.added_ms).unwrap_or(i64::MAX), 0)?;
        let internal_date = match member.facts.internal_ms {
            0 => added,
            internal_ms => date_time(internal_ms, member.facts.zone_minutes)?,
        };
        Ok(Entry {
            uid: picked.uid,
            number: picked.number,
            flags: system_flags(member.flags, !tracked.unseen.contains(picked.uid)),
            keywords: self.keywords_of(&member.keywords)?,
            mod_seq: *mod_seq,
            arrival: member.added_change,
            bytes,
            internal_date,
            save_date: Some(added),
            email_id: object_id('M', &member.id),
            thread_id: None,
            content,
            map: None,
            source: Vec::new(),
            was_changed: false,
        })
    }

    /// Numbers as keywords. They are read when the first one is met that is not known here.
    fn keywords_of(&self, numbers: &[u16]) -> Result<Vec<Flag>> {
        let is_known = |number: &u16| self.keywords.borrow().contains_key(number);
        if !numbers.iter().all(is_known) {
            *self.keywords.borrow_mut() = known_keywords(self.file)?;
        }
        let keywords = self.keywords.borrow();
        Ok(numbers.iter().filter_map(|number| keywords.get(number).cloned()).collect())
    }

    fn revision(&self, id: &str) -> Result<String> {
        let read = scrinium_database::ReadOptions::default();
        Ok(self.file.database.read(id, &read, &self.file.access)?.revision)
    }

    fn sync(
        &self,
        view: &FolderView,
        tracked: &Tracked,
        (told_to, limit): (u64, u32),
    ) -> Result<FolderOutcome> {
        let database = &self.file.database;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).clamp(1, CHANGES_AT_ONCE);
        let snapshot = database.store().snapshot();
        let changes = database.member_changes_at(&snapshot, self.tracker.folder(), told_to, limit)?;
        let marks = database.mark_changes(&self.file.person, told_to, limit, &self.file.access)?;
        // What lies behind a page that is full comes with the next one.
        let mut end = tracked.state.change.max(told_to);
        let mut is_more = false;
        if changes.len() == limit
            && let Some(last) = changes.last()
        {
            (end, is_more) = (end.min(last.change_number), true);
        }
        if marks.more {
            (end, is_more) = (end.min(marks.last), true);
        }
        let mut uids: Vec<u32> = Vec::new();
        for change in changes.iter().filter(|change| change.kind != MemberChangeKind::Left) {
            uids.push(number_of(change.uid, database)?);
        }
        for mark in &marks.changes {
            if let Some(uid) = database.uid_at(&snapshot, self.tracker.folder(), &mark.id)? {
                uids.push(number_of(uid, database)?);
            }
        }
        uids.sort_unstable();
        uids.dedup();
        let numbered = uids.into_iter().filter(|uid| tracked.present.contains(*uid)).filter_map(|uid| {
            view.number_of(uid, tracked.position(uid)).map(|number| Picked { uid, number })
        });
        let mut found = self.found(&numbered.collect::<Vec<_>>())?;
        found.retain(|found| found.mod_seq > told_to && found.mod_seq <= end);
        found.sort_by_key(|found| found.mod_seq);
        self.freeze(&found)?;
        let changed = found.iter().map(|found| self.entry(found, tracked)).collect::<Result<_>>()?;
        Ok(FolderOutcome::Synced { changed, told_to: end, is_more })
    }

    /// What the folder says of flags, and nothing else: no document is read.
    fn flags(&self, tracked: &Tracked, step: &Step) -> Result<FolderOutcome> {
        let database = &self.file.database;
        let uids: Vec<u64> = step.picked.iter().map(|picked| u64::from(picked.uid)).collect();
        let snapshot = database.store().snapshot();
        let found = database.member_flags_of(&snapshot, self.tracker.folder(), &uids)?;
        let mut found = found.into_iter().peekable();
        let mut flags = Vec::with_capacity(step.picked.len());
        for Picked { uid, number } in step.picked.iter().copied() {
            let Some((_, (bits, keywords))) = found.next_if(|(found, _)| *found == u64::from(uid)) else {
                continue;
            };
            let keywords = self.keywords_of(&keywords)?;
            let system = system_flags(bits, !tracked.unseen.contains(uid));
            flags.push(MessageFlags { uid, number, flags: system, keywords });
        }
        Ok(FolderOutcome::Flags { flags, rest: step.rest.clone(), missing: step.missing })
    }

    fn entries(
        &self,
        view: &mut FolderView,
        tracked: &Tracked,
        question: &EntriesQuestion,
    ) -> Result<FolderOutcome> {
        let mut selection = question.messages.resolve(view);
        if let Some(partial) = question.partial {
            selection = narrow(tracked, view, &selection, partial);
        }
        let step = step(tracked, view, &selection, question.limit);
        let mut found = self.found(&step.picked)?;
        if let Some(since) = question.changed_since {
            found.retain(|found| found.mod_seq > since);
        }
        let mut now = tracked.clone();
        let mut changed = RoaringBitmap::new();
        if question.marks_seen {
            changed = found.iter().map(|found| found.picked.uid).collect();
            changed &= &*tracked.unseen;
        }
        if !changed.is_empty() {
            let ids = found.iter().filter(|found| changed.contains(found.picked.uid));
            let ids = ids.map(|found| (found.member.id.clone(), true)).collect();
            self.mark(ids)?;
            now = self.refresh(view)?;
            let picked: Vec<Picked> = found.iter().map(|found| found.picked).collect();
            found = self.found(&picked)?;
        }
        self.freeze(&found)?;
        let mut entries = Vec::with_capacity(found.len());
        for found in &found {
            let mut entry = self.entry(found, &now)?;
            entry.was_changed = changed.contains(entry.uid);
            if question.threads {
                entry.thread_id = self.thread_id(&found.member.id)?;
            }
            self.add_content(&mut entry, found, question)?;
            entries.push(entry);
        }
        Ok(FolderOutcome::Entries { entries, rest: step.rest, missing: step.missing })
    }

    /// The conversation that a message belongs to (RFC 8474, section 5.2): the message that began it, as far as this one knows. `None`: it
    /// has left in this moment.
    pub(crate) fn thread_id(&self, id: &str) -> Result<Option<String>> {
        let database = &self.file.database;
        let document = match database.read(id, &scrinium_database::ReadOptions::default(), &self.file.access)
        {
            Err(DatabaseError::NotFound { .. }) => return Ok(None),
            found => found?,
        };
        let memo = document.json.to_object().unwrap_or_default();
        let first = |name: &str| match memo.get(name)? {
            Value::Array(texts) => texts.iter().find_map(Value::as_str),
            text => text.as_str(),
        };
        let root = [field::REFERENCES, field::IN_REPLY_TO, field::MESSAGE_ID]
            .into_iter()
            .find_map(|name| first(name).map(str::trim).filter(|text| !text.is_empty()));
        Ok(Some(object_id('T', root.unwrap_or(id))))
    }

    fn add_content(&self, entry: &mut Entry, found: &Found, question: &EntriesQuestion) -> Result<()> {
        if question.map == MapNeed::Nothing && question.source_bytes == 0 {
            return Ok(());
        }
        if question.source_bytes == 0
            && let Some(known) = self.known(entry, found)?
        {
            entry.bytes = known.map.bytes;
            entry.map = Some(Arc::clone(&known.map));
            return Ok(());
        }
        if question.map <= MapNeed::Header
            && let Some(beginning) = self.beginning(entry)?
        {
            let most = usize::try_from(question.source_bytes).unwrap_or(usize::MAX);
            entry.map = Some(beginning.map);
            entry.source = beginning.source;
            entry.source.truncate(most);
            return Ok(());
        }
        let message = self.messages.open(&self.file.database, &entry.content, &self.file.access)?;
        // The folder's own number may be of a release that counted otherwise.
        entry.bytes = message.bytes();
        if question.map != MapNeed::Nothing {
            entry.map = Some(Arc::clone(&message.outline.map));
        }
        entry.source = message.read(Span { start: 0, end: u64::from(question.source_bytes) })?;
        Ok(())
    }

    /// What is known of a message without its document.
    pub(crate) fn known(&self, entry: &Entry, found: &Found) -> Result<Option<Arc<Known>>> {
        let source = found.member.facts.content.as_ref();
        self.messages.known(&self.file.database, (&entry.content, source), &self.file.access)
    }

    /// The header of a message whose length the folder knows; `None` where the whole message must be read.
    pub(crate) fn beginning(&self, entry: &Entry) -> Result<Option<Beginning>> {
        self.messages.beginning(&self.file.database, (&entry.content, entry.bytes), &self.file.access)
    }

    fn mark(&self, marks: Vec<(String, bool)>) -> Result<()> {
        let file = self.file;
        for marked in file.database.mark_each(&file.person, marks, &file.access)?.wait()? {
            match marked {
                Ok(_) | Err(DatabaseError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn store(
        &self,
        view: &mut FolderView,
        tracked: &Tracked,
        question: &StoreQuestion,
    ) -> Result<FolderOutcome> {
        let step = step(tracked, view, &question.messages.resolve(view), question.limit);
        let (mut modified, mut before) = (Vec::new(), Vec::new());
        for found in self.found(&step.picked)? {
            match question.unchanged_since {
                Some(since) if found.mod_seq > since => modified.push(found.picked),
                _ => before.push(found),
            }
        }
        let changes: Vec<(String, FlagsChange)> =
            before.iter().map(|found| (found.member.id.clone(), self.flags_change(question))).collect();
        if changes.first().is_some_and(|(_, change)| *change != FlagsChange::default()) {
            self.file.check_author()?;
            for changed in self.file.database.change_flags(&changes, &self.file.access)? {
                match changed {
                    Ok(_) | Err(DatabaseError::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if let Some(seen) = seen_after(question) {
            self.mark(before.iter().map(|found| (found.member.id.clone(), seen)).collect())?;
        }
        let now = self.refresh(view)?;
        let mod_seqs: BTreeMap<u32, u64> =
            before.iter().map(|found| (found.picked.uid, found.mod_seq)).collect();
        let picked: Vec<Picked> = before.iter().map(|found| found.picked).collect();
        let mut entries = Vec::with_capacity(picked.len());
        for found in self.found(&picked)? {
            let mod_seq_before = mod_seqs.get(&found.picked.uid).copied().unwrap_or(found.mod_seq);
            entries.push(StoredEntry { entry: self.entry(&found, &now)?, mod_seq_before });
        }
        let changes = own_changes(&entries);
        Ok(FolderOutcome::Stored { entries, modified, rest: step.rest, missing: step.missing, changes })
    }

    fn flags_change(&self, question: &StoreQuestion) -> FlagsChange {
        let system = question.system;
        let named =
            [(system.answered, "\\Answered"), (system.flagged, "\\Flagged"), (system.draft, "\\Draft")];
        let flags: Vec<String> = named
            .into_iter()
            .filter(|(is_named, _)| *is_named)
            .map(|(_, name)| name.to_owned())
            .chain(question.keywords.iter().map(|keyword| keyword.as_str().to_owned()))
            .collect();
        let deleted = match question.action {
            StoreAction::Replace => Some(system.deleted),
            StoreAction::Add => system.deleted.then_some(true),
            StoreAction::Remove => system.deleted.then_some(false),
        };
        let folder = || self.info.name.clone();
        let folders =
            deleted.map(|deleted| scrinium_database::FolderChange::SetDeleted { folder: folder(), deleted });
        let mut change = FlagsChange { folders: folders.into_iter().collect(), ..FlagsChange::default() };
        match question.action {
            StoreAction::Replace => (change.replace, change.add) = (true, flags),
            StoreAction::Add => change.add = flags,
            StoreAction::Remove => change.remove = flags,
        }
        change
    }

    fn vanished(
        &self,
        tracked: &Tracked,
        since: u64,
        (known, from_uid, limit): (Option<&NumberSet>, u32, usize),
    ) -> Result<FolderOutcome> {
        let database = &self.file.database;
        let mut gone = RoaringBitmap::new();
        if since < database.compaction_record()?.purged_to {
            // What left then is not known any more: all that is not there may have.
            gone.insert_range(1..tracked.state.uid_next);
            gone -= &*tracked.present;
        } else {
            let (snapshot, mut since) = (database.store().snapshot(), since);
            loop {
                let changes =
                    database.member_changes_at(&snapshot, self.tracker.folder(), since, CHANGES_AT_ONCE)?;
                for change in &changes {
                    since = change.change_number;
                    if change.has_left() {
                        gone.insert(number_of(change.uid, database)?);
                    }
                }
                if changes.len() < CHANGES_AT_ONCE {
                    break;
                }
            }
            gone -= &*tracked.present;
        }
        let mut uids = NumberSet::default();
        for uid in gone.range(from_uid..tracked.state.uid_next) {
            if known.is_none_or(|known| known.contains(uid)) && uids.insert(uid, limit).is_err() {
                return Ok(FolderOutcome::Vanished { uids, next_uid: Some(uid) });
            }
        }
        Ok(FolderOutcome::Vanished { uids, next_uid: None })
    }
}

/// Flags as the folder keeps them, and the person's mark.
fn system_flags(bits: u16, seen: bool) -> SystemFlags {
    let has = |flag: u16| bits & flag != 0;
    SystemFlags {
        seen,
        answered: has(ANSWERED),
        flagged: has(FLAGGED),
        deleted: has(DELETED),
        draft: has(DRAFT),
        recent: false,
    }
}

/// The first messages of a selection.
pub(crate) fn step(tracked: &Tracked, view: &FolderView, selection: &Selection, limit: u32) -> Step {
    let picked = select(tracked, view, selection, limit);
    let is_full = u32::try_from(picked.len()).is_ok_and(|count| count >= limit);
    let last = picked.last().copied().filter(|_| is_full);
    let gone =
        |set: &NumberSet| set.ranges().iter().map(|(from, to)| view.ghosts_between(*from, *to)).sum::<u32>();
    let missing = match (selection, last) {
        (Selection::Numbers(set), None) => gone(set),
        (Selection::Numbers(set), Some(last)) => gone(&set.up_to(last.number)),
        (Selection::Uids(_), _) => 0,
    };
    let rest = last.map(|last| selection.behind(last)).filter(|rest| !rest.is_empty());
    Step { picked, rest, missing }
}

fn numbers_in(set: &SequenceSet, tracked: &Tracked) -> NumberSet {
    NumberSet::of_ranges(set.resolve(tracked.state.last_uid))
}

/// UIDs that divide the folder, the newest first.
fn batches(tracked: &Tracked, size: u32, (from, to): (u32, u32)) -> FolderOutcome {
    let (count, size) = (tracked.state.count, size.max(1));
    let mut batches = Vec::new();
    for batch in from.max(1)..=to {
        let Some(end) = (batch - 1).checked_mul(size).and_then(|behind| count.checked_sub(behind)) else {
            break;
        };
        let Some(last) = end.checked_sub(1).and_then(|last| tracked.present.select(last)) else { break };
        let Some(first) = tracked.present.select(end.saturating_sub(size)) else { break };
        batches.push((last, first));
    }
    FolderOutcome::Batches(batches)
}

/// Whether the messages are seen after a change of flags, where it says so.
fn seen_after(question: &StoreQuestion) -> Option<bool> {
    match question.action {
        StoreAction::Replace => Some(question.system.seen),
        StoreAction::Add => question.system.seen.then_some(true),
        StoreAction::Remove => question.system.seen.then_some(false),
    }
}

/// The change numbers of what was just stored, where nothing of somebody else's can lie between them.
fn own_changes(entries: &[StoredEntry]) -> Option<(u64, u64)> {
    let changed = entries.iter().filter(|stored| stored.entry.mod_seq > stored.mod_seq_before);
    let mut numbers: Vec<u64> = changed.map(|stored| stored.entry.mod_seq).collect();
    numbers.sort_unstable();
    let (first, last) = (*numbers.first()?, *numbers.last()?);
    (last - first == numbers.len() as u64 - 1).then_some((first, last))
}

/// RFC 8474: the same wherever the message is.
fn object_id(kind: char, of: &str) -> String {
    let hash = blake3::hash(of.as_bytes()).to_hex();
    format!("{kind}{}", hash.get(..32).unwrap_or_default())
}
