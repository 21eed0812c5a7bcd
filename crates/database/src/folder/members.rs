//! What is in a folder in the order of the uids, and what came and went since a change.

#![allow(missing_docs, reason = "the names say it")]

use std::sync::Arc;

use scrinium_store::{Direction, Family, KeyRange, Snapshot};

use super::record::{FolderState, Mark, Member, MemberChange, MemberChangeKind, MemberFacts, Membership};
use super::{record_at, state_at};
use crate::access::Access;
use crate::access::readable::ReadableId;
use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::head::Head;
use crate::keys;

/// At most this many documents or changes are given at once.
pub const MAX_MEMBERS_AT_ONCE: usize = 10_000;

/// A document in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderMember {
    /// Its number in the folder.
    pub uid: u64,
    /// The document's id.
    pub id: String,
    /// The last change of the document or of its being there.
    pub change_number: u64,
    /// When it was put there, in milliseconds since 1970.
    pub added_ms: u64,
    /// What the folder says of its flags: bits of [`record`](super::record), and keywords by their numbers
    /// ([`Database::keywords`]).
    pub flags: u16,
    /// The numbers of its keywords, ascending.
    pub keywords: Vec<u16>,
    /// What the folder says of its content.
    pub facts: MemberFacts,
    /// Whether the person who asks has read it; `None` if nobody asks.
    pub read: Option<bool>,
}

/// What a folder says of a document's flags: bits of [`record`](super::record), and keywords by their numbers, ascending.
pub type FlagsOfMember = (u16, Vec<u16>);

/// Documents in a folder, in the order of their uids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderMembers {
    /// As in [`crate::FolderInfo`].
    pub uid_validity: u32,
    /// As in [`crate::FolderInfo`].
    pub next_uid: u64,
    /// As in [`crate::FolderInfo`]; `None` for those who do not see all documents.
    pub total: Option<u64>,
    /// The documents, without those that the one who asks may not read.
    pub members: Vec<FolderMember>,
    /// The uid from which a reader continues.
    pub last_uid: u64,
    /// Whether there are more.
    pub more: bool,
}

/// What the feed of a folder stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderFeed {
    /// The uid of the next document that is added.
    pub next_uid: u64,
    /// The last change of what is in it, or of something of that; 0 if there was none.
    pub last_change: u64,
}

/// What last happened to a document in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderMemberChange {
    /// The number of the change.
    pub change_number: u64,
    /// The uid that the document has or had.
    pub uid: u64,
    /// The document's id.
    pub id: String,
    /// What happened.
    pub kind: MemberChangeKind,
}

/// What came, went and changed, each uid once, in the order of the changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderChanges {
    /// As in [`crate::FolderInfo`]: under another one the uids are others.
    pub uid_validity: u32,
    /// The changes.
    pub changes: Vec<FolderMemberChange>,
    /// The number from which a reader continues.
    pub last: u64,
    /// Whether there are more already.
    pub more: bool,
    /// Tombstones of changes after `since` have been purged, so what left is not all told: anyone who asked lists what is
    /// in the folder, and what is not there has left.
    pub incomplete: bool,
}

impl FolderMemberChange {
    /// Whether the document is not there any more.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.kind == MemberChangeKind::Left
    }
}

impl Database {
    /// Documents in a folder with a uid after `since_uid`, at most `limit` (and [`MAX_MEMBERS_AT_ONCE`]).
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn folder_members(
        &self,
        name: &str,
        since_uid: u64,
        limit: usize,
        (person, access): (Option<&str>, &Access),
    ) -> Result<FolderMembers> {
        self.check_there()?;
        let snapshot = self.store().snapshot();
        let folder = record_at(&snapshot, self.number(), name)?;
        let state = state_at(&snapshot, self.number(), &folder)?;
        let limit = limit.clamp(1, MAX_MEMBERS_AT_ONCE);
        let found = self.members_at(&snapshot, folder.number, since_uid, limit)?;
        let last_uid = found.last().map_or(since_uid, |(uid, _)| *uid);
        let more = found.len() == limit && last_uid.saturating_add(1) < state.next_uid;
        let mut members = Vec::new();
        for (uid, member) in found {
            let Some(id) = access.readable_id(self, &snapshot, member.id)? else { continue };
            let head = snapshot.get(Family::Point, &keys::head(self.number(), &id))?;
            let changed = head.and_then(|head| Head::decode_change_number(&head));
            let changed = changed.ok_or_else(|| DatabaseError::damaged("revision tree", &id))?;
            let read = person.map(|person| self.has_read(&snapshot, &id, person)).transpose()?;
            members.push(FolderMember {
                uid,
                change_number: member.change_number.max(changed),
                added_ms: member.added_ms,
                flags: member.flags,
                keywords: member.keywords,
                facts: member.facts,
                read,
                id: id.into_string(),
            });
        }
        Ok(FolderMembers {
            uid_validity: folder.uid_validity,
            next_uid: state.next_uid,
            total: self.shows_all(access)?.then_some(state.total),
            members,
            last_uid,
            more,
        })
    }

    /// What came into a folder and left it after change `since`, at most `limit` (and [`MAX_MEMBERS_AT_ONCE`])
    /// changes. Costs what these are, whatever lies in the folder.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn folder_changes(
        &self,
        name: &str,
        since: u64,
        limit: usize,
        access: &Access,
    ) -> Result<FolderChanges> {
        self.check_there()?;
        // Seen before the snapshot is taken, so that the snapshot has at least this change.
        let visible = self.visible_change_number();
        let snapshot = self.store().snapshot();
        let folder = record_at(&snapshot, self.number(), name)?;
        let incomplete = since > 0 && since < self.compaction_record()?.purged_to;
        let limit = limit.min(MAX_MEMBERS_AT_ONCE);
        let mut changes = self.member_changes_at(&snapshot, folder.number, since, limit.saturating_add(1))?;
        let given_up_to = self.given_up_to(visible);
        changes.retain(|change| change.change_number <= given_up_to);
        let more = changes.len() > limit;
        changes.truncate(limit);
        let reached = changes.last().map_or(since, |change| change.change_number);
        let last = if more { reached } else { reached.max(visible) };
        let mut readable = Vec::with_capacity(changes.len());
        for change in changes {
            let FolderMemberChange { change_number, uid, id, kind } = change;
            let id = access.readable_id(self, &snapshot, id)?.map(ReadableId::into_string);
            readable.extend(id.map(|id| FolderMemberChange { change_number, uid, id, kind }));
        }
        Ok(FolderChanges { uid_validity: folder.uid_validity, changes: readable, last, more, incomplete })
    }

    /// The members of a folder after a uid.
    pub fn members_at(
        &self,
        snapshot: &Snapshot,
        folder: u32,
        since_uid: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Member)>> {
        let Some(first) = since_uid.checked_add(1) else { return Ok(Vec::new()) };
        let from = keys::member(self.number(), folder, first);
        let to = keys::successor(&keys::members(self.number(), folder));
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Scan, range, Direction::Forward);
        let mut members = Vec::new();
        while members.len() < limit.min(MAX_MEMBERS_AT_ONCE)
            && let Some((key, stored)) = cursor.next()?
        {
            let member = keys::uid_of(key).zip(Member::decode(stored));
            members.push(member.ok_or_else(|| DatabaseError::damaged("member of a folder", self.name()))?);
        }
        Ok(members)
    }

    /// The changes of what is in a folder after change `since`.
    pub fn member_changes_at(
        &self,
        snapshot: &Snapshot,
        folder: u32,
        since: u64,
        limit: usize,
    ) -> Result<Vec<FolderMemberChange>> {
        let Some(first) = since.checked_add(1) else { return Ok(Vec::new()) };
        let from = keys::member_change(self.number(), folder, first);
        let to = keys::successor(&keys::member_changes(self.number(), folder));
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Churn, range, Direction::Forward);
        let mut changes = Vec::new();
        while changes.len() < limit
            && let Some((key, stored)) = cursor.next()?
        {
            let change = keys::change_number_of(key).zip(MemberChange::decode(stored));
            let (change_number, change) =
                change.ok_or_else(|| DatabaseError::damaged("change of a folder", self.name()))?;
            let MemberChange { uid, kind, id } = change;
            changes.push(FolderMemberChange { change_number, uid, id, kind });
        }
        Ok(changes)
    }

    /// What the feed of a folder stands at; `None` if there is no such folder.
    ///
    /// # Errors
    /// What the store reports.
    pub fn folder_feed_at(&self, snapshot: &Snapshot, folder: u32) -> Result<Option<FolderFeed>> {
        let Some(stored) = snapshot.get(Family::Point, &keys::folder_state(self.number(), folder))? else {
            return Ok(None);
        };
        let state = FolderState::decode(&stored);
        let state = state.ok_or_else(|| DatabaseError::damaged("state of the folder", self.name()))?;
        let last_change = self.last_of(snapshot, &keys::member_changes(self.number(), folder))?;
        Ok(Some(FolderFeed { next_uid: state.next_uid, last_change }))
    }

    /// The last change of a person's marks; 0 if there was none.
    ///
    /// # Errors
    /// What the store reports.
    pub fn last_mark_change_at(&self, snapshot: &Snapshot, person: &str) -> Result<u64> {
        self.last_of(snapshot, &keys::mark_changes(self.number(), person))
    }

    /// The last change in a feed whose keys begin so.
    fn last_of(&self, snapshot: &Snapshot, beginning: &[u8]) -> Result<u64> {
        let to = keys::successor(beginning);
        let range = KeyRange { from: beginning, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Churn, range, Direction::Backward);
        let last = cursor.next()?.map(|(key, _)| keys::change_number_of(key));
        last.map_or(Ok(0), |last| last.ok_or_else(|| DatabaseError::damaged("key of a feed", self.name())))
    }

    /// What a folder says of the documents with these uids, ascending; of those that are not there, nothing.
    ///
    /// # Errors
    /// What the store reports.
    pub fn members_of(&self, snapshot: &Snapshot, folder: u32, uids: &[u64]) -> Result<Vec<(u64, Member)>> {
        self.members_with(snapshot, (folder, uids), Member::decode)
    }

    /// The same of their flags alone: bits of [`record`](super::record), and keywords by their numbers.
    ///
    /// # Errors
    /// What the store reports.
    pub fn member_flags_of(
        &self,
        snapshot: &Snapshot,
        folder: u32,
        uids: &[u64],
    ) -> Result<Vec<(u64, FlagsOfMember)>> {
        self.members_with(snapshot, (folder, uids), Member::decode_flags)
    }

    fn members_with<T>(
        &self,
        snapshot: &Snapshot,
        (folder, uids): (u32, &[u64]),
        decode: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Vec<(u64, T)>> {
        let (Some(first), Some(last)) = (uids.first().copied(), uids.last().copied()) else {
            return Ok(Vec::new());
        };
        let damaged = || DatabaseError::damaged("member of a folder", self.name());
        let mut members = Vec::with_capacity(uids.len());
        let mut uids = uids.iter().copied();
        // What lies far apart is read one by one.
        if last.saturating_sub(first) >= 2 * uids.len() as u64 {
            for uid in uids {
                let stored = snapshot.get(Family::Scan, &keys::member(self.number(), folder, uid))?;
                if let Some(stored) = stored {
                    members.push((uid, decode(&stored).ok_or_else(damaged)?));
                }
            }
            return Ok(members);
        }
        let from = keys::member(self.number(), folder, first);
        let to = keys::member(self.number(), folder, last.saturating_add(1));
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Scan, range, Direction::Forward);
        let mut wanted = uids.next();
        while let Some(next) = wanted
            && let Some((key, stored)) = cursor.next()?
        {
            let uid = keys::uid_of(key).ok_or_else(damaged)?;
            if next < uid {
                wanted = uids.find(|next| *next >= uid);
            }
            if wanted == Some(uid) {
                members.push((uid, decode(stored).ok_or_else(damaged)?));
                wanted = uids.next();
            }
        }
        Ok(members)
    }

    /// In how many folders a document is.
    ///
    /// # Errors
    /// What the store reports.
    pub fn count_folders_at(&self, snapshot: &Snapshot, id: &str) -> Result<usize> {
        Ok(self.folders_of_at(snapshot, id)?.len())
    }

    /// The numbers of the folders that a document is in.
    ///
    /// # Errors
    /// What the store reports.
    pub fn folders_of_at(&self, snapshot: &Snapshot, id: &str) -> Result<Vec<u32>> {
        let from = keys::memberships(self.number(), id);
        let to = keys::successor(&from);
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Point, range, Direction::Forward);
        let mut folders = Vec::new();
        while let Some((key, _)) = cursor.next()? {
            let folder = keys::folder_of(key).ok_or_else(|| DatabaseError::damaged("membership", id))?;
            // What is left of a folder that was dropped counts for nothing.
            if self.folder_feed_at(snapshot, folder)?.is_some() {
                folders.push(folder);
            }
        }
        Ok(folders)
    }

    /// The change by which a person's mark on a document became what it is; 0 if there is none.
    ///
    /// # Errors
    /// What the store reports.
    pub fn mark_change_at(&self, snapshot: &Snapshot, id: &str, person: &str) -> Result<u64> {
        Ok(self.mark_at(snapshot, id, person)?.map_or(0, |mark| mark.change_number))
    }

    fn mark_at(&self, snapshot: &Snapshot, id: &str, person: &str) -> Result<Option<Mark>> {
        let stored = snapshot.get(Family::Point, &keys::mark(self.number(), id, person))?;
        let decode = |stored: scrinium_store::Slice| {
            Mark::decode(&stored).ok_or_else(|| DatabaseError::damaged("mark", id))
        };
        stored.map(decode).transpose()
    }

    /// The uid of a document in a folder; `None` if it is not there.
    pub fn uid_at(&self, snapshot: &Snapshot, folder: u32, id: &str) -> Result<Option<u64>> {
        let stored = snapshot.get(Family::Point, &keys::membership(self.number(), id, folder))?;
        let decode = |stored: scrinium_store::Slice| {
            Membership::decode(&stored).ok_or_else(|| DatabaseError::damaged("membership", id))
        };
        Ok(stored.map(decode).transpose()?.map(|membership| membership.uid))
    }

    pub fn has_read(&self, snapshot: &Snapshot, id: &str, person: &str) -> Result<bool> {
        Ok(self.mark_at(snapshot, id, person)?.is_some_and(|mark| mark.read))
    }
}

/// What a page of a folder says of each of its rows.
#[derive(Clone)]
pub struct FolderPlaces {
    pub database: Arc<Database>,
    pub snapshot: Snapshot,
    pub folder: u32,
    pub person: Option<Arc<str>>,
}

/// Where a row's document is in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderPlace {
    /// Its uid there; `None` if it has left since the page was made up.
    pub uid: Option<u64>,
    /// Whether the person who asks has not read it; `None` if nobody asks.
    pub unread: Option<bool>,
}

impl FolderPlaces {
    pub fn of(&self, id: &str) -> Result<FolderPlace> {
        let person = self.person.as_deref();
        let read = person.map(|person| self.database.has_read(&self.snapshot, id, person)).transpose()?;
        Ok(FolderPlace {
            uid: self.database.uid_at(&self.snapshot, self.folder, id)?,
            unread: read.map(|read| !read),
        })
    }
}
