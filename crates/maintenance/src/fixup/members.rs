//! Finding the memberships and marks whose records contradict each other, where their tallies say that there are some.

use std::collections::BTreeSet;

use scrinium_database::folder::record::{Mark, MarkChange, Member, MemberChange, Membership};
use scrinium_database::{Result, keys};
use scrinium_store::Family;

use super::check::Check;
use super::folders::folder_in;
use super::report::FindingKind;

/// Notes a membership that is to be mended, and what one of its records says.
pub(super) fn mend(check: &mut Check<'_>, folder: u32, id: &str, found: Option<(u64, u64)>, detail: &str) {
    if check.mends.is_full() {
        return;
    }
    let key = (folder, id.to_owned());
    let is_new = !check.mends.memberships.contains_key(&key);
    check.mends.memberships.entry(key).or_default().extend(found);
    if is_new {
        check.repairs(FindingKind::Membership, id, format!("folder number {folder}: {detail}"));
    }
}

/// Notes a mark that is to be mended, and the change that one of its records names.
pub(super) fn mend_mark(check: &mut Check<'_>, id: &str, person: &str, change: Option<u64>, detail: &str) {
    if check.mends.is_full() {
        return;
    }
    let key = (id.to_owned(), person.to_owned());
    let is_new = !check.mends.marks.contains_key(&key);
    check.mends.marks.entry(key).or_default().extend(change);
    if is_new {
        check.repairs(FindingKind::Mark, id, format!("the mark of {person} {detail}"));
    }
}

const CONTRADICTION: &str = "its records contradict each other; rebuilt";

/// Looks at each membership of these folders.
pub(super) fn find(check: &mut Check<'_>, folders: &BTreeSet<u32>) -> Result<()> {
    let number = check.number();
    check.each(Family::Point, &keys::kind_range(number, b'm'), |check, key, value| {
        let folder = keys::folder_of(key).filter(|folder| folders.contains(folder));
        let id = keys::text_and_rest(key).map(|(id, _)| id);
        let found = folder.zip(id).zip(Membership::decode(value));
        let Some(((folder, id), own)) = found else { return Ok(()) };
        let Membership { uid, change_number, .. } = own;
        let member = check.get(Family::Scan, &keys::member(number, folder, uid))?;
        let member = member.and_then(|member| Member::decode(&member));
        let change = check.get(Family::Churn, &keys::member_change(number, folder, change_number))?;
        let change = change.and_then(|change| MemberChange::decode(&change));
        let is_same = |member: &Member| {
            (member.change_number, member.is_deleted()) == (change_number, own.is_deleted())
                && member.id == id
        };
        let agrees = member.as_ref().is_some_and(is_same)
            && change.is_some_and(|change| change.uid == uid && !change.has_left() && change.id == id);
        if !agrees {
            mend(check, folder, id, Some((uid, change_number)), CONTRADICTION);
        }
        Ok(())
    })?;
    check.each(Family::Scan, &keys::kind_range(number, b'u'), |check, key, value| {
        let folder = folder_in(key).filter(|folder| folders.contains(folder));
        let found = folder.zip(keys::uid_of(key)).zip(Member::decode(value));
        let Some(((folder, uid), member)) = found else { return Ok(()) };
        compare(check, folder, &member.id, (uid, member.change_number))
    })?;
    check.each(Family::Churn, &keys::kind_range(number, b'f'), |check, key, value| {
        let folder = folder_in(key).filter(|folder| folders.contains(folder));
        let found = folder.zip(keys::change_number_of(key)).zip(MemberChange::decode(value));
        let Some(((folder, number), change)) = found else { return Ok(()) };
        if change.has_left() { Ok(()) } else { compare(check, folder, &change.id, (change.uid, number)) }
    })
}

/// Whether the document's own record says the same.
fn compare(check: &mut Check<'_>, folder: u32, id: &str, found: (u64, u64)) -> Result<()> {
    let stored = check.get(Family::Point, &keys::membership(check.number(), id, folder))?;
    let own = stored.and_then(|stored| Membership::decode(&stored));
    if own.map(|own| (own.uid, own.change_number)) != Some(found) {
        mend(check, folder, id, Some(found), CONTRADICTION);
    }
    Ok(())
}

/// Looks at each mark.
pub(super) fn find_marks(check: &mut Check<'_>) -> Result<()> {
    const CONTRADICTION: &str = "contradicts its change; rebuilt";
    let number = check.number();
    check.each(Family::Point, &keys::kind_range(number, b'd'), |check, key, value| {
        let found = keys::text_and_rest(key).zip(Mark::decode(value));
        let Some(((id, person), mark)) = found else { return Ok(()) };
        let person = std::str::from_utf8(person).unwrap_or_default();
        if person.is_empty() {
            return Ok(());
        }
        let change = check.get(Family::Churn, &keys::mark_change(number, person, mark.change_number))?;
        let change = change.and_then(|change| MarkChange::decode(&change));
        if change.is_none_or(|change| change.read != mark.read || change.id != id) {
            mend_mark(check, id, person, Some(mark.change_number), CONTRADICTION);
        }
        Ok(())
    })?;
    check.each(Family::Churn, &keys::kind_range(number, b'p'), |check, key, value| {
        let person = keys::text_and_rest(key).map(|(person, _)| person);
        let found = person.zip(keys::change_number_of(key)).zip(MarkChange::decode(value));
        let Some(((person, change_number), change)) = found else { return Ok(()) };
        let stored = check.get(Family::Point, &keys::mark(number, &change.id, person))?;
        let mark = stored.and_then(|stored| Mark::decode(&stored));
        if mark != Some(Mark { read: change.read, change_number }) {
            mend_mark(check, &change.id, person, Some(change_number), CONTRADICTION);
        }
        Ok(())
    })
}
