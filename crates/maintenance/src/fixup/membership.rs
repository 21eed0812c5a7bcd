//! Making memberships, marks and damaged contents whole.

use std::collections::BTreeSet;

use scrinium_database::Result;
use scrinium_database::folder::record::{
    DELETED, FolderState, Mark, MarkChange, Member, MemberChange, MemberChangeKind, Membership, encode_count,
};
use scrinium_database::keys::{self, Digest};
use scrinium_document::is_design;
use scrinium_store::{Direction, Family, KeyRange};

use super::mend::Mending;

/// Writes all records of a document's being in a folder from one of them: its own, else one that the folder has.
pub(super) fn mend(
    mending: &mut Mending<'_>,
    folder: u32,
    id: &str,
    found: &BTreeSet<(u64, u64)>,
) -> Result<()> {
    let number = mending.number();
    let own_key = keys::membership(number, id, folder);
    let own = mending.get(Family::Point, &own_key)?.and_then(|own| Membership::decode(&own));
    let said = own;
    let own = own.map(|own| (own.uid, own.change_number));
    let state = mending.get(Family::Point, &keys::folder_state(number, folder))?;
    let belongs = mending.is_alive(id)? && !is_design(id) && state.is_some();
    let (mut truth, mut known) = (own, None);
    for (uid, change_number) in own.iter().chain(found) {
        let member_key = keys::member(number, folder, *uid);
        let member = mending.get(Family::Scan, &member_key)?.and_then(|member| Member::decode(&member));
        if let Some(member) = member.filter(|member| member.id == id) {
            known = Some(member);
            mending.batch.delete(Family::Scan, &member_key);
        }
        let change_key = keys::member_change(number, folder, *change_number);
        let change =
            mending.get(Family::Churn, &change_key)?.and_then(|change| MemberChange::decode(&change));
        if change.is_some_and(|change| change.id == id && !change.has_left()) {
            mending.batch.delete(Family::Churn, &change_key);
        }
        truth = truth.or(Some((*uid, *change_number)));
    }
    if !belongs {
        mending.batch.delete(Family::Point, &own_key);
        return Ok(());
    }
    let (mut uid, mut change_number) = match truth {
        Some(truth) => truth,
        None => find_member(mending, folder, id)?.unwrap_or((0, 0)),
    };
    let holder = mending.get(Family::Scan, &keys::member(number, folder, uid))?;
    let is_taken = holder.and_then(|holder| Member::decode(&holder)).is_some_and(|member| member.id != id);
    if uid == 0 || is_taken {
        uid = next_uid(mending, folder)?;
        change_number = mending.next_change();
    }
    let added_ms = mending.database.now_ms();
    let mut member = known.unwrap_or_else(|| Member {
        added_ms,
        added_change: said.map_or(change_number, |said| said.added_change),
        id: id.to_owned(),
        ..Member::default()
    });
    member.change_number = change_number;
    // The document's own record is believed where it can be read.
    if let Some(said) = said {
        member.added_change = said.added_change;
        member.flags = member.flags & !DELETED | said.flags & DELETED;
    }
    let (added_change, flags) = (member.added_change, member.flags & DELETED);
    let membership = Membership { uid, change_number, added_change, flags };
    let batch = &mut mending.batch;
    batch.put(Family::Point, &own_key, &membership.encode());
    batch.put(Family::Scan, &keys::member(number, folder, uid), &member.encode());
    let change = MemberChange { uid, kind: MemberChangeKind::Came, id: id.to_owned() };
    batch.put(Family::Churn, &keys::member_change(number, folder, change_number), &change.encode());
    Ok(())
}

/// What a folder itself says of a document whose own record cannot be read.
fn find_member(mending: &Mending<'_>, folder: u32, id: &str) -> Result<Option<(u64, u64)>> {
    let from = keys::members(mending.number(), folder);
    let to = keys::successor(&from);
    let range = KeyRange { from: &from, to: Some(&to) };
    let mut cursor = mending.snapshot.cursor(Family::Scan, range, Direction::Forward);
    while let Some((key, member)) = cursor.next()? {
        if let Some((uid, member)) = keys::uid_of(key).zip(Member::decode(member))
            && member.id == id
        {
            return Ok(Some((uid, member.change_number)));
        }
    }
    Ok(None)
}

/// A uid that nobody in the folder has had; the count of them goes up with it at once.
fn next_uid(mending: &mut Mending<'_>, folder: u32) -> Result<u64> {
    let key = keys::folder_state(mending.number(), folder);
    let last = last_uid(mending, folder)?;
    let state = mending.get(Family::Point, &key)?.and_then(|state| FolderState::decode(&state));
    let mut state = state.unwrap_or(FolderState::NEW);
    let uid = state.next_uid.max(last + 1).max(mending.uids.get(&folder).map_or(0, |uid| uid + 1));
    mending.uids.insert(folder, uid);
    state.next_uid = uid + 1;
    mending.batch.put(Family::Point, &key, &state.encode());
    Ok(uid)
}

fn last_uid(mending: &Mending<'_>, folder: u32) -> Result<u64> {
    let from = keys::members(mending.number(), folder);
    let to = keys::successor(&from);
    let range = KeyRange { from: &from, to: Some(&to) };
    let mut cursor = mending.snapshot.cursor(Family::Scan, range, Direction::Backward);
    Ok(cursor.next()?.and_then(|(key, _)| keys::uid_of(key)).unwrap_or(0))
}

/// Writes both records of a mark from one of them: its own, else the change of it.
pub(super) fn mend_mark(
    mending: &mut Mending<'_>,
    id: &str,
    person: &str,
    found: &BTreeSet<u64>,
) -> Result<()> {
    let number = mending.number();
    let key = keys::mark(number, id, person);
    let own = mending.get(Family::Point, &key)?.and_then(|own| Mark::decode(&own));
    let mut truth = own;
    for change_number in own.iter().map(|own| &own.change_number).chain(found) {
        let change_key = keys::mark_change(number, person, *change_number);
        let change = mending.get(Family::Churn, &change_key)?.and_then(|change| MarkChange::decode(&change));
        if let Some(change) = change.filter(|change| change.id == id) {
            mending.batch.delete(Family::Churn, &change_key);
            truth = truth.or(Some(Mark { read: change.read, change_number: *change_number }));
        }
    }
    match truth {
        Some(mark) if mending.is_alive(id)? && !is_design(id) => {
            mending.batch.put(Family::Point, &key, &mark.encode());
            let change = MarkChange { read: mark.read, id: id.to_owned() };
            let change_key = keys::mark_change(number, person, mark.change_number);
            mending.batch.put(Family::Churn, &change_key, &change.encode());
        }
        // One that nobody can read any more is unread.
        _ => mending.batch.delete(Family::Point, &key),
    }
    Ok(())
}

/// Counts the marks on a document again.
pub(super) fn count_marks(mending: &mut Mending<'_>, id: &str) -> Result<()> {
    let key = keys::marks(mending.number(), id);
    let to = keys::successor(&key);
    let range = KeyRange { from: &key, to: Some(&to) };
    let mut count = 0;
    let mut cursor = mending.snapshot.cursor(Family::Point, range, Direction::Forward);
    while let Some((found, _)) = cursor.next()? {
        count += u64::from(found.len() > key.len());
    }
    drop(cursor);
    if count > 0 && mending.is_alive(id)? {
        mending.batch.put(Family::Point, &key, &encode_count(count));
    } else {
        mending.batch.delete(Family::Point, &key);
    }
    Ok(())
}

/// Puts a damaged content aside, so that the same bytes are stored again when they come again. The pieces of a large one
/// stay where they are until what was set aside is discarded.
pub(super) fn set_content_aside(mending: &mut Mending<'_>, digest: &Digest) -> Result<()> {
    const REASON: &str = "the bytes of an attachment or field are not those that were stored";
    let key = keys::content(digest);
    let Some(stored) = mending.get(Family::Blob, &key)? else { return Ok(()) };
    mending.aside.set(&mut mending.batch, Family::Blob, &key, &stored, REASON);
    Ok(())
}
