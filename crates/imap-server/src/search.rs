//! Messages are looked for, sorted, and put into threads.

use std::sync::Arc;

use roaring::RoaringBitmap;
use scrinium_database::{DatabaseError, Oversized, Result};
use scrinium_imap::{
    Entry, FolderOutcome, SearchContext, SearchOrder, SearchQuestion, SortNumbers, ThreadAlgorithm,
    ThreadMessage, matches, matches_without_text, ordered_subject, references, utc_seconds,
};
use scrinium_imap_wire::{SearchKey, SequenceSet};
use scrinium_mailbox::{
    FolderIndex as _, FolderView, MessageMap, MessageText, NumberSet, Picked, Span, base_subject,
};

use crate::folder::{FolderDesk, Found};
use crate::message::{Beginning, Messages, OpenMessage};
use crate::tracker::Tracked;

/// Messages that one step looks at by what the folder says of them.
const BY_FOLDER: usize = 2_000;

/// Messages that one step reads.
const READ: usize = 50;

/// As many messages are put into threads at most: each is read.
const THREADED_MAX: usize = 20_000;

/// No more of a text is searched.
const SEARCHED_BYTES: u64 = 4 << 20;

/// Looks through a folder, upwards or downwards, from where a step before has stopped. By UIDs, since positions change meanwhile.
pub(crate) struct Walk {
    /// The next UID that may be there; behind the last one in the direction, there is none.
    next: Option<u32>,
    is_descending: bool,
}

/// A message that a search has found.
pub(crate) struct Match {
    found: Found,
    pub(crate) entry: Entry,
}

impl FolderDesk<'_> {
    pub(crate) fn search(
        &self,
        view: &FolderView,
        tracked: &Tracked,
        question: &SearchQuestion,
    ) -> Result<FolderOutcome> {
        if let SearchOrder::Sorted(keys) = &question.order {
            return self.sorted(view, tracked, question, keys);
        }
        let is_descending = question.order == SearchOrder::Descending;
        let mut walk = Walk::begin(tracked, is_descending);
        if let Some(cursor) = question.cursor {
            walk.next = u32::try_from(cursor).ok();
        }
        if let Some(set) = self.by_sets(tracked, question) {
            return Ok(walk.found_by_sets(view, tracked, (&set, question.limit)));
        }
        let matching = self.walk(view, tracked, question, &mut walk)?;
        Ok(FolderOutcome::Found {
            mod_seq: matching.iter().map(|found| found.entry.mod_seq).max().unwrap_or(0),
            found: matching.iter().map(|found| found.found.picked).collect(),
            cursor: walk.next.map(u64::from),
            progress: (walk.looked_at(tracked), tracked.state.count),
        })
    }

    /// What a search finds that asks for nothing but sets of messages that are known, and what has been read. `None`: it asks for more.
    pub(crate) fn by_sets(&self, tracked: &Tracked, question: &SearchQuestion) -> Option<RoaringBitmap> {
        // All messages, until a key says less: a copy of a large folder's set costs more than what is mostly asked for.
        let mut found: Option<RoaringBitmap> = None;
        let mut keep = |set: &RoaringBitmap| {
            found = Some(match found.take() {
                Some(found) => found & set,
                None => &*tracked.present & set,
            });
        };
        let mut all: Vec<&SearchKey> = question.keys.iter().collect();
        let mut is_seen = false;
        while let Some(key) = all.pop() {
            match key {
                SearchKey::All => {}
                SearchKey::And(keys) => all.extend(keys),
                SearchKey::Flag(flag, true) if flag.is("\\Seen") => is_seen = true,
                SearchKey::Flag(flag, false) if flag.is("\\Seen") => keep(&tracked.unseen),
                SearchKey::Uid(SequenceSet::Saved) => keep(&bitmap_of(&question.saved)),
                SearchKey::Uid(set) => {
                    keep(&bitmap_of(&NumberSet::of_ranges(set.resolve(tracked.state.last_uid))));
                }
                _ => return None,
            }
        }
        let mut found = found.unwrap_or_else(|| (*tracked.present).clone());
        if is_seen {
            found -= &*tracked.unseen;
        }
        Some(found)
    }

    /// What one step finds; `walk` stands behind it then.
    pub(crate) fn walk(
        &self,
        view: &FolderView,
        tracked: &Tracked,
        question: &SearchQuestion,
        walk: &mut Walk,
    ) -> Result<Vec<Match>> {
        let candidates = self.candidates(tracked, &question.keys);
        let context = self.context(view, question);
        let limit = usize::try_from(question.limit).unwrap_or(usize::MAX).max(1);
        let (mut matching, mut read) = (Vec::new(), 0);
        let wants_threads = any_key(&question.keys, &|key| matches!(key, SearchKey::ThreadId(_)));
        let candidates = candidates.as_ref().unwrap_or(&tracked.present);
        let some = walk.some(view, tracked, (candidates, BY_FOLDER));
        let is_last = some.len() < BY_FOLDER;
        let end = some.last().map(|picked| picked.uid);
        for found in self.found_in_pieces(&some) {
            if matching.len() >= limit || read >= READ {
                return Ok(matching);
            }
            let found = found?;
            walk.pass(found.picked.uid);
            let mut entry = self.entry(&found, tracked)?;
            if wants_threads {
                read += 1;
                entry.thread_id = self.thread_id(&found.member.id)?;
            }
            let is_match = match matches_without_text(&question.keys, &entry, context) {
                Some(is_match) => is_match,
                None => {
                    read += 1;
                    self.matches_text(&mut entry, &found, (question, context))?
                }
            };
            if is_match {
                matching.push(Match { found, entry });
            }
        }
        match end {
            Some(end) if !is_last => walk.pass(end),
            _ => walk.next = None,
        }
        Ok(matching)
    }

    /// What the folder says of messages, asked for some at once; no more are asked for than are looked at.
    fn found_in_pieces<'f>(&'f self, picked: &'f [Picked]) -> impl Iterator<Item = Result<Found>> + 'f {
        picked.chunks(READ).flat_map(|piece| match self.in_order(piece) {
            Ok(found) => found.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        })
    }

    /// As [`found`](Self::found), which wants UIDs that ascend, in the order given.
    fn in_order(&self, picked: &[Picked]) -> Result<Vec<Found>> {
        let is_descending = picked.first().map(|first| first.uid) > picked.last().map(|last| last.uid);
        let mut ascending = picked.to_vec();
        if is_descending {
            ascending.reverse();
        }
        let mut found = self.found(&ascending)?;
        self.freeze(&found)?;
        if is_descending {
            found.reverse();
        }
        Ok(found)
    }

    fn context<'c>(&self, view: &'c FolderView, question: &'c SearchQuestion) -> SearchContext<'c> {
        let now_seconds = i64::try_from(self.now_ms / 1000).unwrap_or(i64::MAX);
        SearchContext { view, saved: &question.saved, now_seconds }
    }

    /// UIDs that alone can match, where that is known of all messages at once.
    fn candidates(&self, tracked: &Tracked, keys: &[SearchKey]) -> Option<RoaringBitmap> {
        let mut candidates = self.ground.candidates.map(|found| found & &*tracked.present);
        for key in keys {
            let SearchKey::Flag(flag, is_set) = key else { continue };
            if !flag.is("\\Seen") {
                continue;
            }
            let wanted =
                if *is_set { &*tracked.present - &*tracked.unseen } else { (*tracked.unseen).clone() };
            candidates = Some(match candidates {
                Some(others) => others & wanted,
                None => wanted,
            });
        }
        candidates
    }

    fn matches_text(
        &self,
        entry: &mut Entry,
        found: &Found,
        (question, context): (&SearchQuestion, SearchContext<'_>),
    ) -> Result<bool> {
        // What its map says may be enough.
        entry.map = self.known(entry, found)?.map(|known| Arc::clone(&known.map));
        if entry.map.is_some()
            && let Some(is_match) = matches_without_text(&question.keys, entry, context)
        {
            return Ok(is_match);
        }
        if !needs_body(&question.keys) {
            match self.beginning(entry) {
                Err(DatabaseError::NotFound { .. }) => return Ok(false),
                Err(error) => return Err(error),
                Ok(Some(Beginning { map, source })) => {
                    let mut text = MessageText { map: &map, source: &source };
                    entry.map = Some(Arc::clone(&map));
                    return Ok(matches(&question.keys, entry, &mut text, context));
                }
                Ok(None) => {}
            }
        }
        let message = match self.open(entry) {
            Err(DatabaseError::NotFound { .. }) => return Ok(false),
            opened => opened?,
        };
        entry.map = Some(Arc::clone(&message.outline.map));
        let source = message.read(Span { start: 0, end: SEARCHED_BYTES })?;
        let mut text = MessageText { map: &message.outline.map, source: &source };
        Ok(matches(&question.keys, entry, &mut text, context))
    }

    fn open(&self, entry: &Entry) -> Result<OpenMessage> {
        self.messages.open(&self.file.database, &entry.content, &self.file.access)
    }

    /// A map that has what the header says.
    pub(crate) fn header_map(&self, matching: &Match) -> Result<Arc<MessageMap>> {
        let Match { found, entry } = matching;
        if let Some(known) = self.known(entry, found)? {
            return Ok(Arc::clone(&known.map));
        }
        if let Some(beginning) = self.beginning(entry)? {
            return Ok(beginning.map);
        }
        Ok(Arc::clone(&self.open(entry)?.outline.map))
    }

    /// What a message is sorted by, as far as that is numbers.
    pub(crate) fn sort_numbers(&self, found: Found, tracked: &Tracked) -> Result<SortNumbers> {
        let entry = self.entry(&found, tracked)?;
        let (database, access) = (&self.file.database, &self.file.access);
        let source = found.member.facts.content.as_ref();
        let sent = match Messages::known_sent(database, (&entry.content, source), access)? {
            Some(sent) => sent,
            None => {
                let matching = Match { found, entry };
                let sent = self.header_map(&matching)?.sent;
                return Ok(SortNumbers::new(&matching.entry, sent));
            }
        };
        Ok(SortNumbers::new(&entry, sent))
    }

    /// All that match, each with its map.
    fn all_with_maps(
        &self,
        view: &FolderView,
        tracked: &Tracked,
        question: &SearchQuestion,
    ) -> Result<Vec<(Match, Arc<MessageMap>)>> {
        let mut walk = Walk::begin(tracked, false);
        let everything = SearchQuestion { limit: u32::MAX, ..question.clone() };
        let mut all = Vec::new();
        while walk.next.is_some() {
            for found in self.walk(view, tracked, &everything, &mut walk)? {
                match self.header_map(&found) {
                    Ok(map) => all.push((found, map)),
                    Err(DatabaseError::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            if all.len() > THREADED_MAX {
                let reason =
                    format!("More than {THREADED_MAX} messages cannot be put into threads; search for fewer");
                return Err(DatabaseError::TooLarge { what: Oversized::Folder, reason });
            }
        }
        Ok(all)
    }

    pub(crate) fn thread(
        &self,
        view: &FolderView,
        tracked: &Tracked,
        question: &SearchQuestion,
        algorithm: ThreadAlgorithm,
    ) -> Result<FolderOutcome> {
        let all = self.all_with_maps(view, tracked, question)?;
        let messages: Vec<ThreadMessage> =
            all.iter().map(|(found, map)| thread_message(found, map)).collect();
        let threads = match algorithm {
            ThreadAlgorithm::OrderedSubject => ordered_subject(&messages),
            ThreadAlgorithm::References => references(&messages),
        };
        let count = tracked.state.count;
        Ok(FolderOutcome::Threads { threads, cursor: None, progress: (count, count) })
    }
}

/// Whether keys ask for more of a text than its header.
fn needs_body(keys: &[SearchKey]) -> bool {
    any_key(keys, &|key| matches!(key, SearchKey::Body(_) | SearchKey::Text(_)))
}

/// Whether one of the keys, or of those within them, is like this.
fn any_key(keys: &[SearchKey], is_one: &dyn Fn(&SearchKey) -> bool) -> bool {
    keys.iter().any(|key| match key {
        SearchKey::And(keys) => any_key(keys, is_one),
        SearchKey::Or(one, other) => {
            any_key(std::slice::from_ref(one), is_one) || any_key(std::slice::from_ref(other), is_one)
        }
        SearchKey::Not(key) | SearchKey::Fuzzy(key) => any_key(std::slice::from_ref(key), is_one),
        key => is_one(key),
    })
}

fn bitmap_of(set: &NumberSet) -> RoaringBitmap {
    let mut bitmap = RoaringBitmap::new();
    for (from, to) in set.ranges() {
        bitmap.insert_range(*from..=*to);
    }
    bitmap
}

fn thread_message(found: &Match, map: &MessageMap) -> ThreadMessage {
    let envelope = map.raw_envelope().cloned().unwrap_or_default();
    let id = envelope.message_id.as_deref().map(String::from_utf8_lossy);
    ThreadMessage {
        number: found.entry.number,
        id: id.map(|id| id.trim_matches(['<', '>']).to_owned()),
        references: map.references.clone(),
        subject: base_subject(envelope.subject.as_deref().unwrap_or_default()),
        sent: map.sent.map_or_else(|| utc_seconds(&found.entry.internal_date), |sent| sent.utc_seconds),
    }
}

impl Walk {
    pub(crate) fn begin(tracked: &Tracked, is_descending: bool) -> Self {
        let first = if is_descending { tracked.state.last_uid } else { 1 };
        Self { next: Some(first).filter(|_| tracked.state.count > 0), is_descending }
    }

    /// The next of these messages in the direction.
    fn some(
        &self,
        view: &FolderView,
        tracked: &Tracked,
        (candidates, most): (&RoaringBitmap, usize),
    ) -> Vec<Picked> {
        let Some(next) = self.next else { return Vec::new() };
        let uids: Vec<u32> = if self.is_descending {
            candidates.range(..=next).rev().take(most).collect()
        } else {
            candidates.range(next..).take(most).collect()
        };
        let numbered = uids.into_iter().filter_map(|uid| {
            view.number_of(uid, tracked.position(uid)).map(|number| Picked { uid, number })
        });
        numbered.collect()
    }

    /// The next of messages that all match.
    fn found_by_sets(
        mut self,
        view: &FolderView,
        tracked: &Tracked,
        (set, limit): (&RoaringBitmap, u32),
    ) -> FolderOutcome {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).max(1);
        let some = self.some(view, tracked, (set, limit));
        match some.last() {
            Some(last) if some.len() >= limit => self.pass(last.uid),
            _ => self.next = None,
        }
        let count = tracked.state.count;
        let cursor = self.next.map(u64::from);
        FolderOutcome::Found { found: some, mod_seq: 0, cursor, progress: (self.looked_at(tracked), count) }
    }

    fn pass(&mut self, uid: u32) {
        self.next =
            if self.is_descending { uid.checked_sub(1).filter(|next| *next > 0) } else { uid.checked_add(1) };
    }

    pub(crate) fn is_over(&self) -> bool {
        self.next.is_none()
    }

    pub(crate) fn looked_at(&self, tracked: &Tracked) -> u32 {
        let count = tracked.state.count;
        match self.next {
            None => count,
            Some(next) if self.is_descending => {
                count.saturating_sub(tracked.position(next.saturating_add(1)))
            }
            Some(next) => tracked.position(next),
        }
    }
}
