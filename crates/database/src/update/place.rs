//! Documents come into folders, leave them and move between them.

use bytes::Bytes;
use scrinium_store::Family;

use super::Transaction;
use super::flags::MemberFlags;
use crate::error::{DatabaseError, Oversized, Result};
use crate::folder::name::folded;
use crate::folder::record::{FolderState, Member, MemberChange, MemberChangeKind, Membership};
use crate::folder::{FolderChange, Placed, missing_folder};
use crate::keys;

impl Transaction<'_> {
    /// Checks what an edit changes in folders before anything of the edit is put into the batch.
    ///
    /// # Errors
    /// What is wrong with a name or with columns; [`DatabaseError::NotFound`] for a folder that is not there.
    pub(super) fn check_changes(&mut self, id: &str, changes: &[FolderChange]) -> Result<()> {
        if !changes.is_empty() {
            check_placeable(id)?;
        }
        let mut made = Vec::new();
        for change in changes {
            if let FolderChange::Make { folder, columns, .. } = change {
                if self.folder_number(folder)?.is_none() {
                    self.check_new_folder(folder, columns.as_deref())?;
                }
                made.push(folded(folder));
            }
            for folder in change.names() {
                if !made.contains(&folded(folder)) {
                    self.known_folder(folder)?;
                }
            }
        }
        Ok(())
    }

    /// Carries out changes that were checked. They do nothing to a document that is gone.
    pub(super) fn place_all(&mut self, id: &str, is_alive: bool, changes: &[FolderChange]) {
        for change in changes {
            let placed = match change {
                FolderChange::Make { folder, columns, special_use } => {
                    self.make_folder(folder, columns.as_deref(), *special_use).map(drop)
                }
                // A document that is not in the folder that it should leave goes where it should go.
                FolderChange::Move { from, to } if is_alive && folded(from) != folded(to) => {
                    self.remove_from(id, from).and_then(|_| self.add_to(id, to)).map(drop)
                }
                FolderChange::Move { to, .. } if is_alive => self.add_to(id, to).map(drop),
                FolderChange::Add { folder } if is_alive => self.add_to(id, folder).map(drop),
                FolderChange::Remove { folder } if is_alive => self.remove_from(id, folder).map(drop),
                FolderChange::SetDeleted { folder, deleted } if is_alive => self
                    .known_folder(folder)
                    .and_then(|folder| self.set_deleted(id, folder, *deleted))
                    .map(drop),
                _ => Ok(()),
            };
            self.note_failure(placed);
        }
    }

    /// Carries out a change that comes without an edit.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] for a document or a folder that is not there, and for one that is to be moved
    /// from where it is not.
    pub(crate) fn place(&mut self, id: String, change: &FolderChange) -> Result<Placed> {
        let placed = self.place_one(id, change);
        self.keep_whole(placed)
    }

    fn place_one(&mut self, id: String, change: &FolderChange) -> Result<Placed> {
        self.check_changes(&id, std::slice::from_ref(change))?;
        if !self.is_alive(&id)? {
            return Err(DatabaseError::missing());
        }
        let (uid, changed) = match change {
            FolderChange::Make { folder, columns, special_use } => {
                (None, self.make_folder(folder, columns.as_deref(), *special_use)?)
            }
            FolderChange::Add { folder } => {
                let (uid, changed) = self.add_to(&id, folder)?;
                (Some(uid), changed)
            }
            FolderChange::Remove { folder } => {
                let uid = self.remove_from(&id, folder)?;
                (uid, uid.is_some())
            }
            FolderChange::Move { from, to } => self.move_between(&id, from, to)?,
            FolderChange::SetDeleted { folder, deleted } => {
                let number = self.known_folder(folder)?;
                let membership = self.membership(&id, number)?.ok_or_else(|| not_there(folder))?;
                (Some(membership.uid), self.set_deleted(&id, number, *deleted)?.is_some())
            }
        };
        Ok(Placed { id, uid, changed })
    }

    fn move_between(&mut self, id: &str, from: &str, to: &str) -> Result<(Option<u64>, bool)> {
        let (source, target) = (self.known_folder(from)?, self.known_folder(to)?);
        let membership = self.membership(id, source)?.ok_or_else(|| not_there(from))?;
        if source == target {
            return Ok((Some(membership.uid), false));
        }
        self.remove_from(id, from)?;
        Ok((Some(self.add_to(id, to)?.0), true))
    }

    /// The document's uid in the folder, and whether it was not there before.
    pub(super) fn add_to(&mut self, id: &str, name: &str) -> Result<(u64, bool)> {
        let folder = self.known_folder(name)?;
        if let Some(membership) = self.membership(id, folder)? {
            return Ok((membership.uid, false));
        }
        let readers = self.readers(id)?;
        let mut state = self.state(folder)?;
        if state.next_uid > MAX_UID {
            return Err(no_uid(name));
        }
        let MemberFlags { flags, keywords, facts } = self.flags_of(id)?;
        let (uid, change_number) = (state.next_uid, self.next_change());
        state.next_uid += 1;
        state.count_in(false, facts.bytes);
        state.change_number = change_number;
        self.states.insert(folder, state);
        self.header.membership_count += 1;
        for person in readers {
            self.counts_of(&person)?.count_in(folder, true);
        }
        let number = self.database.number();
        let membership = Membership { uid, change_number, added_change: change_number, flags: 0 };
        self.records.put(&mut self.batch, keys::membership(number, id, folder), membership.encode());
        let member = Member {
            change_number,
            added_ms: self.now_ms,
            added_change: change_number,
            flags,
            keywords,
            facts,
            id: id.to_owned(),
        };
        self.records.put_member(&mut self.batch, keys::member(number, folder, uid), member.encode());
        self.put_change(folder, change_number, uid, MemberChangeKind::Came, id);
        Ok((uid, true))
    }

    /// The uid that the document had; `None` if it was not there.
    fn remove_from(&mut self, id: &str, name: &str) -> Result<Option<u64>> {
        let folder = self.known_folder(name)?;
        let Some(membership) = self.membership(id, folder)? else { return Ok(None) };
        for person in self.readers(id)? {
            self.counts_of(&person)?.count_in(folder, false);
        }
        let change_number = self.next_change();
        self.end(id, folder, membership, change_number)?;
        Ok(Some(membership.uid))
    }

    /// A document is gone: so is what people have read of it, and where it was.
    pub(super) fn leave_all(&mut self, id: &str, change_number: u64) -> Result<()> {
        let memberships = self.memberships(id)?;
        self.forget_marks(id, &memberships)?;
        for (folder, membership) in memberships {
            self.end(id, folder, membership, change_number)?;
        }
        Ok(())
    }

    /// Ends a membership; a tombstone stays.
    pub(super) fn end(
        &mut self,
        id: &str,
        folder: u32,
        membership: Membership,
        change_number: u64,
    ) -> Result<()> {
        let Membership { uid, change_number: last_change, .. } = membership;
        let mut state = self.state(folder)?;
        // Where no message has a size, no record of one is read.
        let member = if state.bytes == 0 { None } else { self.member(folder, uid)? };
        state.count_out(membership.is_deleted(), member.map_or(0, |member| member.facts.bytes));
        state.change_number = change_number;
        self.states.insert(folder, state);
        self.header.membership_count = self.header.membership_count.saturating_sub(1);
        let number = self.database.number();
        self.records.delete(&mut self.batch, keys::membership(number, id, folder));
        self.records.delete_member(&mut self.batch, keys::member(number, folder, uid));
        self.batch.delete(Family::Churn, &keys::member_change(number, folder, last_change));
        self.put_change(folder, change_number, uid, MemberChangeKind::Left, id);
        Ok(())
    }

    pub(super) fn put_change(
        &mut self,
        folder: u32,
        change_number: u64,
        uid: u64,
        kind: MemberChangeKind,
        id: &str,
    ) {
        let key = keys::member_change(self.database.number(), folder, change_number);
        let change = MemberChange { uid, kind, id: id.to_owned() };
        self.batch.put(Family::Churn, &key, &change.encode());
    }

    /// What a folder says of the document with a uid.
    pub(super) fn member(&self, folder: u32, uid: u64) -> Result<Option<Member>> {
        let stored = self.records.get_member(&keys::member(self.database.number(), folder, uid))?;
        let decode = |stored: Bytes| {
            let damaged = || DatabaseError::damaged("member of a folder", self.database.name());
            Member::decode(&stored).ok_or_else(damaged)
        };
        stored.map(decode).transpose()
    }

    pub(super) fn membership(&self, id: &str, folder: u32) -> Result<Option<Membership>> {
        let stored = self.records.get(&keys::membership(self.database.number(), id, folder))?;
        let decode = |stored: Bytes| {
            Membership::decode(&stored).ok_or_else(|| DatabaseError::damaged("membership", id))
        };
        stored.map(decode).transpose()
    }

    /// The folders that a document is in.
    pub(super) fn memberships(&self, id: &str) -> Result<Vec<(u32, Membership)>> {
        if self.header.membership_count == 0 {
            return Ok(Vec::new());
        }
        let mut memberships = Vec::new();
        for (key, stored) in self.records.beginning_with(&keys::memberships(self.database.number(), id))? {
            let folder = keys::folder_of(&key).zip(Membership::decode(&stored));
            let (folder, membership) = folder.ok_or_else(|| DatabaseError::damaged("membership", id))?;
            // What is left of a folder that was dropped counts for nothing.
            if self.has_state(folder)? {
                memberships.push((folder, membership));
            }
        }
        Ok(memberships)
    }

    /// A folder as the changes before this one leave it.
    pub(super) fn state(&self, folder: u32) -> Result<FolderState> {
        if let Some(state) = self.states.get(&folder) {
            return Ok(*state);
        }
        let stored = self.records.get(&keys::folder_state(self.database.number(), folder))?;
        stored
            .and_then(|stored| FolderState::decode(&stored))
            .ok_or_else(|| DatabaseError::damaged("state of the folder", &folder.to_string()))
    }

    fn has_state(&self, folder: u32) -> Result<bool> {
        let key = keys::folder_state(self.database.number(), folder);
        Ok(self.states.contains_key(&folder) || self.records.get(&key)?.is_some())
    }

    /// The number of a folder that must be there.
    pub(super) fn known_folder(&mut self, name: &str) -> Result<u32> {
        self.folder_number(name)?.ok_or_else(|| missing_folder(name))
    }

    /// Whether there is a document of this id, and no tombstone.
    pub(super) fn is_alive(&mut self, id: &str) -> Result<bool> {
        let pending = self.changed.get(id).or_else(|| self.writer.pending(id));
        let is_alive = |head: &crate::head::Head| head.tree.winner().is_some_and(|winner| !winner.deleted);
        match pending {
            Some(pending) => Ok(is_alive(&pending.head)),
            None => Ok(self.prefetched.head(self.writer, id)?.as_ref().is_some_and(is_alive)),
        }
    }

    /// Nothing of the batch may be stored if a part of it could not be made.
    pub(super) fn note_failure<T>(&mut self, made: Result<T>) {
        if let Err(error) = made {
            self.failure.get_or_insert(error);
        }
    }

    /// The same for what checks before it changes anything: only what is not the client's fault can have come after.
    pub(super) fn keep_whole<T>(&mut self, made: Result<T>) -> Result<T> {
        if let Err(error) = &made
            && error.is_of_the_server()
        {
            self.note_failure::<()>(Err(error.clone()));
        }
        made
    }
}

/// The last number that a document can have in a folder: IMAP's have 32 bits (RFC 9051 §2.3.1.1).
pub(super) const MAX_UID: u64 = u32::MAX as u64;

fn not_there(folder: &str) -> DatabaseError {
    DatabaseError::NotFound { reason: format!("The document is not in the folder `{folder}`.") }
}

pub(super) fn no_uid(folder: &str) -> DatabaseError {
    DatabaseError::TooLarge {
        what: Oversized::Folder,
        reason: format!(
            "The folder `{folder}` has given all {MAX_UID} numbers that mail clients know to documents; make another \
             folder, and move what is in this one there."
        ),
    }
}

/// Design documents and `_local` documents are in no folder, and nobody reads them.
pub(crate) fn check_placeable(id: &str) -> Result<()> {
    if scrinium_document::is_design(id) || scrinium_document::is_local(id) {
        return Err(DatabaseError::bad_request(
            "A design document or a local document is in no folder and is neither read nor unread.",
        ));
    }
    Ok(())
}
