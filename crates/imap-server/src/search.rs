//! Messages are looked for, sorted, and put into threads.

use std::sync::Arc;

use roaring::RoaringBitmap;
use scrinium_database::{DatabaseError, Oversized, Result};
use scrinium_imap::{
    Entry, FolderOutcome, SearchContext, SearchOrder, SearchQuestion, SortFields, ThreadAlgorithm,
    ThreadMessage, matches, matches_without_text, ordered_subject, references, utc_seconds,
};
use scrinium_imap_wire::SearchKey;
use scrinium_mailbox::{FolderIndex as _, FolderView, MessageMap, MessageText, Picked, Span, base_subject};

use crate::folder::{FolderDesk, Found};
use crate::message::{Beginning, OpenMessage};
use crate::tracker::Tracked;

/// Messages that one step looks at by what the folder says of them.
const BY_FOLDER: usize = 2_000;

/// Messages that one step reads.
const READ: usize = 50;

/// As many messages are sorted or put into threads at most: each is read.
const SORTED_MAX: usize = 20_000;

/// No more of a text is searched.
const SEARCHED_BYTES: u64 = 4 << 20;

/// Looks through a folder, upwards or downwards, from where a step before has stopped. By UIDs, since positions change meanwhile.
struct Walk {
    /// The next UID that may be there; behind the last one in the direction, there is none.
    next: Option<u32>,
    is_descending: bool,
}

/// A message that a search has found.
struct Match {
    found: Found,
    entry: Entry,
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
        let matching = self.walk(view, tracked, question, &mut walk)?;
        Ok(FolderOutcome::Found {
            mod_seq: matching.iter().map(|found| found.entry.mod_seq).max().unwrap_or(0),
            found: matching.iter().map(|found| found.found.picked).collect(),
            cursor: walk.next.map(u64::from),
            progress: (walk.looked_at(tracked), tracked.state.count),
        })
    }

    /// What one step finds; `walk` stands behind it then.
    fn walk(
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
        let some = walk.some(view, tracked, candidates.as_ref().unwrap_or(&tracked.present));
        let is_last = some.len() < BY_FOLDER;
        let end = some.last().map(|picked| picked.uid);
        for found in self.found_in_pieces(&some) {
            if matching.len() >= limit || read >= READ {
                return Ok(matching);
            }
            let found = found?;
            walk.pass(found.picked.uid);
            let mut entry = self.entry(&found, tracked)?;
            let is_match = match matches_without_text(&question.keys, &entry, context) {
                Some(is_match) => is_match,
                None => {
                    read += 1;
                    self.matches_text(&mut entry, question, context)?
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
        if !is_descending {
            return self.found(picked);
        }
        let ascending: Vec<Picked> = picked.iter().rev().copied().collect();
        let mut found = self.found(&ascending)?;
        found.reverse();
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
        question: &SearchQuestion,
        context: SearchContext<'_>,
    ) -> Result<bool> {
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
    fn header_map(&self, entry: &Entry) -> Result<Arc<MessageMap>> {
        if let Some(beginning) = self.beginning(entry)? {
            return Ok(beginning.map);
        }
        Ok(Arc::clone(&self.open(entry)?.outline.map))
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
                match self.header_map(&found.entry) {
                    Ok(map) => all.push((found, map)),
                    Err(DatabaseError::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            if all.len() > SORTED_MAX {
                let reason = format!("More than {SORTED_MAX} messages cannot be sorted; search for fewer");
                return Err(DatabaseError::TooLarge { what: Oversized::Folder, reason });
            }
        }
        Ok(all)
    }

    fn sorted(
        &self,
        view: &FolderView,
        tracked: &Tracked,
        question: &SearchQuestion,
        keys: &[(scrinium_imap_wire::SortKey, bool)],
    ) -> Result<FolderOutcome> {
        let all = self.all_with_maps(view, tracked, question)?;
        let mut sorted: Vec<(SortFields, Picked, u64)> = all
            .iter()
            .map(|(found, map)| (SortFields::new(&found.entry, map), found.found.picked, found.entry.mod_seq))
            .collect();
        sorted.sort_by(|(one, ..), (other, ..)| one.compare(other, keys));
        let from = usize::try_from(question.cursor.unwrap_or(0)).unwrap_or(usize::MAX);
        let limit = usize::try_from(question.limit).unwrap_or(usize::MAX).max(1);
        let end = from.saturating_add(limit);
        let some: Vec<_> = sorted.iter().skip(from).take(limit).collect();
        Ok(FolderOutcome::Found {
            mod_seq: some.iter().map(|(_, _, mod_seq)| *mod_seq).max().unwrap_or(0),
            found: some.iter().map(|(_, picked, _)| *picked).collect(),
            cursor: (sorted.len() > end).then_some(end as u64),
            progress: (tracked.state.count, tracked.state.count),
        })
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
    keys.iter().any(|key| match key {
        SearchKey::Body(_) | SearchKey::Text(_) => true,
        SearchKey::And(keys) => needs_body(keys),
        SearchKey::Or(one, other) => {
            needs_body(std::slice::from_ref(one)) || needs_body(std::slice::from_ref(other))
        }
        SearchKey::Not(key) | SearchKey::Fuzzy(key) => needs_body(std::slice::from_ref(key)),
        _ => false,
    })
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
    fn begin(tracked: &Tracked, is_descending: bool) -> Self {
        let first = if is_descending { tracked.state.last_uid } else { 1 };
        Self { next: Some(first).filter(|_| tracked.state.count > 0), is_descending }
    }

    /// The next of these messages in the direction.
    fn some(&self, view: &FolderView, tracked: &Tracked, candidates: &RoaringBitmap) -> Vec<Picked> {
        let Some(next) = self.next else { return Vec::new() };
        let uids: Vec<u32> = if self.is_descending {
            candidates.range(..=next).rev().take(BY_FOLDER).collect()
        } else {
            candidates.range(next..).take(BY_FOLDER).collect()
        };
        let numbered = uids.into_iter().filter_map(|uid| {
            view.number_of(uid, tracked.position(uid)).map(|number| Picked { uid, number })
        });
        numbered.collect()
    }

    fn pass(&mut self, uid: u32) {
        self.next =
            if self.is_descending { uid.checked_sub(1).filter(|next| *next > 0) } else { uid.checked_add(1) };
    }

    fn looked_at(&self, tracked: &Tracked) -> u32 {
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
