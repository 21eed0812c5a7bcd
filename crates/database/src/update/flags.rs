//! What folders repeat of the documents that are in them, as the documents change.

use bytes::Bytes;
use scrinium_store::Family;

use super::Transaction;
use crate::error::{DatabaseError, Result};
use crate::flags_field::{MAX_KEYWORDS, flags_in};
use crate::folder::record::{
    ANSWERED, DELETED, DRAFT, FLAGGED, Member, MemberChangeKind, MemberFacts, Membership,
};
use crate::keys;
use crate::leaf::Leaf;
use crate::source_facts::facts_of;

/// A document's flags as its folders repeat them.
#[derive(Default)]
pub(super) struct MemberFlags {
    pub(super) flags: u16,
    pub(super) keywords: Vec<u16>,
    pub(super) facts: MemberFacts,
}

impl Transaction<'_> {
    /// Tells the folders that a document is in that it has changed, and which flags it has now.
    pub(super) fn change_members(
        &mut self,
        (id, memberships): (&str, Vec<(u32, Membership)>),
        change_number: u64,
        kind: MemberChangeKind,
    ) -> Result<()> {
        if memberships.is_empty() {
            return Ok(());
        }
        let MemberFlags { flags, keywords, facts } = self.flags_of(id)?;
        for (folder, membership) in memberships {
            let Some(mut member) = self.member(folder, membership.uid)? else { continue };
            self.recount(folder, membership, (member.facts.bytes, facts.bytes))?;
            member.facts.clone_from(&facts);
            let is_other = (member.flags & !DELETED, &member.keywords) != (flags, &keywords);
            member.flags = member.flags & DELETED | flags;
            member.keywords.clone_from(&keywords);
            let kind = if is_other { MemberChangeKind::Flags } else { kind };
            // One that came later in the same batch stays behind what left with the document's own change.
            let change_number = change_number.max(membership.change_number);
            self.change_member(id, folder, membership, member, change_number, kind)?;
        }
        Ok(())
    }

    /// What a document's message is in a folder's sums is another number of bytes.
    fn recount(&mut self, folder: u32, membership: Membership, (before, now): (u64, u64)) -> Result<()> {
        if before == now {
            return Ok(());
        }
        let mut state = self.state(folder)?;
        state.bytes = state.bytes.saturating_sub(before).saturating_add(now);
        if membership.is_deleted() {
            state.deleted_bytes = state.deleted_bytes.saturating_sub(before).saturating_add(now);
        }
        self.states.insert(folder, state);
        Ok(())
    }

    /// Marks a document in one folder to be expunged, or takes the mark back. Whether it was otherwise.
    pub(super) fn set_deleted(&mut self, id: &str, folder: u32, deleted: bool) -> Result<Option<u64>> {
        let Some(membership) = self.membership(id, folder)? else { return Ok(None) };
        if membership.is_deleted() == deleted {
            return Ok(None);
        }
        let Membership { uid, .. } = membership;
        let member = self.member(folder, uid)?;
        let mut member =
            member.ok_or_else(|| DatabaseError::damaged("member of a folder", self.database.name()))?;
        let mut state = self.state(folder)?;
        if deleted {
            state.count_deleted(member.facts.bytes);
        } else {
            state.count_undeleted(member.facts.bytes);
        }
        self.states.insert(folder, state);
        let flags = if deleted { DELETED } else { 0 };
        member.flags = member.flags & !DELETED | flags;
        let change_number = self.next_change();
        let membership = Membership { flags, ..membership };
        self.change_member(id, folder, membership, member, change_number, MemberChangeKind::Flags)?;
        Ok(Some(uid))
    }

    /// Writes what a folder says of a document, and puts the change where the folder's feed ends.
    fn change_member(
        &mut self,
        id: &str,
        folder: u32,
        membership: Membership,
        mut member: Member,
        change_number: u64,
        kind: MemberChangeKind,
    ) -> Result<()> {
        let number = self.database.number();
        let mut state = self.state(folder)?;
        state.change_number = change_number;
        if kind == MemberChangeKind::Flags {
            state.flags_change = change_number;
        }
        self.states.insert(folder, state);
        let Membership { uid, change_number: last_change, .. } = membership;
        member.change_number = change_number;
        let membership = Membership { change_number, ..membership };
        self.batch.delete(Family::Churn, &keys::member_change(number, folder, last_change));
        self.records.put(&mut self.batch, keys::membership(number, id, folder), membership.encode());
        self.records.put_member(&mut self.batch, keys::member(number, folder, uid), member.encode());
        self.put_change(folder, change_number, uid, kind, id);
        Ok(())
    }

    /// The flags of a document as the edits before leave it.
    pub(super) fn flags_of(&mut self, id: &str) -> Result<MemberFlags> {
        let Some(bytes) = self.winning_leaf(id)? else { return Ok(MemberFlags::default()) };
        let leaf = Leaf::decode(id, &bytes)?;
        let mut of = MemberFlags { facts: facts_of(&leaf, id)?, ..MemberFlags::default() };
        for flag in flags_in(&leaf.fields(id)?) {
            match flag.to_ascii_lowercase().as_str() {
                "\\answered" => of.flags |= ANSWERED,
                "\\flagged" => of.flags |= FLAGGED,
                "\\draft" => of.flags |= DRAFT,
                // Of a person or a folder, and others that are not known.
                other if other.starts_with('\\') => {}
                folded => of.keywords.extend(self.keyword_number(&flag, folded)?),
            }
        }
        of.keywords.sort_unstable();
        Ok(of)
    }

    pub(super) fn winning_leaf(&self, id: &str) -> Result<Option<Bytes>> {
        let (number, store) = (self.database.number(), self.database.store());
        let pending = self.changed.get(id).or_else(|| self.writer.pending(id));
        let Some(pending) = pending else {
            let stored = store.get(Family::Scan, &keys::winner(number, id))?;
            return Ok(stored.map(|stored| Bytes::copy_from_slice(&stored)));
        };
        let Some(winner) = pending.head.tree.winner() else { return Ok(None) };
        if let Some(leaf) = pending.leaves.get(winner.revision) {
            return Ok(Some(leaf.clone()));
        }
        // The store may not know yet that this leaf wins.
        let revision = winner.revision.to_string();
        for key in [keys::winner(number, id), keys::loser(number, id, winner.revision)] {
            if let Some(stored) = store.get(Family::Scan, &key)?
                && Leaf::decode(id, &stored)?.revision == revision
            {
                return Ok(Some(Bytes::copy_from_slice(&stored)));
            }
        }
        Err(DatabaseError::damaged("revision", id))
    }

    /// The number of a keyword, which is given at its first use. `None`: the database has given all that it has.
    fn keyword_number(&mut self, keyword: &str, folded: &str) -> Result<Option<u16>> {
        let number = self.database.number();
        let decode = |stored: Bytes| {
            let number = stored.as_ref().try_into().map(u16::from_be_bytes);
            number.map_err(|_| DatabaseError::damaged("keyword", keyword))
        };
        let key = keys::keyword_number(number, folded);
        if let Some(known) = self.records.get(&key)? {
            return decode(known).map(Some);
        }
        let last_key = keys::keyword_number(number, "");
        let last = self.records.get(&last_key)?.map_or(Ok(0), decode)?;
        if last >= MAX_KEYWORDS {
            return Ok(None);
        }
        let next = last.saturating_add(1);
        for key in [key, last_key] {
            self.records.put(&mut self.batch, key, next.to_be_bytes().to_vec());
        }
        self.records.put(&mut self.batch, keys::keyword(number, next), keyword.as_bytes().to_vec());
        Ok(Some(next))
    }
}
