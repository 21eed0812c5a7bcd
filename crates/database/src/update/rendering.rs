//! What mail clients have seen of a document without a source holds until what it was made of changes.

use super::Transaction;
use super::place::{MAX_UID, no_uid};
use crate::error::Result;
use crate::folder::record::{Member, MemberChangeKind, Membership};
use crate::keys;
use crate::leaf::Leaf;
use crate::rendering::{NewRendering, Rendering, encode};

impl Transaction<'_> {
    /// After an edit: whether the document was seen by mail clients, and is another message to them from now on (RFC 9051 §2.3.1.1).
    pub(super) fn follow_with_rendering(&mut self, id: &str, is_alive: bool) -> Result<bool> {
        // Where there are no folders, nobody looks at messages.
        if self.header.membership_count == 0 {
            return Ok(false);
        }
        let key = keys::rendering(self.database.number(), id);
        let Some(stored) = self.records.get(&key)? else { return Ok(false) };
        if is_alive
            && let Some(rendering) = Rendering::decode(&stored)
            && let Some(leaf) = self.winning_leaf(id)?
            && rendering.is_of(&Leaf::decode(id, &leaf)?, id)?
        {
            return Ok(false);
        }
        self.records.delete(&mut self.batch, key);
        Ok(true)
    }

    /// Keeps what was made of a document, if it is as it was then.
    pub(crate) fn keep_rendering(&mut self, new: &NewRendering) -> Result<()> {
        let Some(stored) = self.winning_leaf(&new.id)? else { return Ok(()) };
        let leaf = Leaf::decode(&new.id, &stored)?;
        if leaf.deleted || leaf.revision != new.revision {
            return Ok(());
        }
        let key = keys::rendering(self.database.number(), &new.id);
        let there = self.records.get(&key)?;
        // By its number later updates know that it is on its way.
        self.next_change();
        if let Some(rendering) = there.as_deref().and_then(Rendering::decode)
            && rendering.is_of(&leaf, &new.id)?
        {
            // Somebody was quicker. Written once more, it is durable when this returns.
            self.records.put(&mut self.batch, key, there.map(Vec::from).unwrap_or_default());
            return Ok(());
        }
        self.records.put(&mut self.batch, key, encode(&leaf, new)?);
        Ok(())
    }

    /// Gives a document other UIDs in its folders. All else that these say of it stays.
    pub(super) fn renumber(&mut self, id: &str) -> Result<()> {
        for (folder, membership) in self.memberships(id)? {
            let Some(member) = self.member(folder, membership.uid)? else { continue };
            let left = self.next_change();
            self.end(id, folder, membership, left)?;
            self.come_again(id, folder, (membership, member))?;
        }
        Ok(())
    }

    fn come_again(
        &mut self,
        id: &str,
        folder: u32,
        (membership, member): (Membership, Member),
    ) -> Result<()> {
        let mut state = self.state(folder)?;
        if state.next_uid > MAX_UID {
            return Err(no_uid(&folder.to_string()));
        }
        let (uid, change_number) = (state.next_uid, self.next_change());
        state.next_uid += 1;
        state.count_in(membership.is_deleted(), member.facts.bytes);
        state.change_number = change_number;
        self.states.insert(folder, state);
        self.header.membership_count += 1;
        let number = self.database.number();
        let membership = Membership { uid, change_number, added_change: change_number, ..membership };
        self.records.put(&mut self.batch, keys::membership(number, id, folder), membership.encode());
        let member = Member { change_number, added_change: change_number, ..member };
        self.records.put_member(&mut self.batch, keys::member(number, folder, uid), member.encode());
        self.put_change(folder, change_number, uid, MemberChangeKind::Came, id);
        Ok(())
    }
}
