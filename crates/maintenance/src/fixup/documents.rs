//! Documents: the record of their revisions, the revisions themselves, their place in the feed of changes, and what
//! the database's counts say of them.

use std::collections::BTreeSet;

use scrinium_database::Result;
use scrinium_database::head::{ChangeRecord, Head};
use scrinium_database::history::EarlierBody;
use scrinium_database::hold::{held_contents, held_name};
use scrinium_database::keys::{self, Digest};
use scrinium_document::{Revision, is_design};
use scrinium_store::Family;
use scrinium_views::tally::Tally;

use super::check::Check;
use super::folders::Folders;
use super::leaf::LeafSummary;
use super::report::{FindingKind, FindingOutcome};

/// Where the number of the last change is lost it continues so far behind the highest that is found, since indexes and
/// replicas may have seen changes of which nothing is left.
pub(super) const LEAP: u64 = 1 << 20;

/// What the documents of a database come to.
#[derive(Default)]
pub(super) struct Documents {
    pub(super) alive: u64,
    pub(super) deleted: u64,
    pub(super) designs: u64,
    pub(super) external_bytes: u64,
    /// Keys and records of all documents.
    stored_bytes: u64,
    /// The highest number of a change that a record names.
    pub(super) last_change: u64,
    changes: Tally,
    /// Of the contents that they refer to.
    pub(super) references: Tally,
}

/// Looks at all documents.
pub(super) fn check(check: &mut Check<'_>) -> Result<Documents> {
    let mut documents = Documents::default();
    let number = check.number();
    let mut heads = check.walk(Family::Point, &keys::head_range(number))?;
    let mut winners = check.walk(Family::Scan, &keys::winner_range(number))?;
    loop {
        let head_id = heads.key().and_then(|key| key.get(5..));
        let winner_id = winners.key().and_then(|key| key.get(5..));
        let first = match (head_id, winner_id) {
            (None, None) => break,
            (Some(head), Some(winner)) => head.min(winner),
            (Some(one), None) | (None, Some(one)) => one,
        };
        let (has_head, has_winner) = (head_id == Some(first), winner_id == Some(first));
        let head = heads.entry().filter(|_| has_head).map(|(_, head)| head);
        let winner = winners.entry().filter(|_| has_winner).map(|(_, winner)| winner);
        match std::str::from_utf8(first) {
            Ok(id) => documents.look(check, id, head, winner)?,
            Err(_) => {
                for (family, key) in [(Family::Point, heads.key()), (Family::Scan, winners.key())] {
                    if let Some(key) = key.filter(|key| key.get(5..) == Some(first)) {
                        check.set_aside(FindingKind::StrayRevision, family, key, "its id is not text");
                    }
                }
            }
        }
        if has_head {
            heads.step(check)?;
        }
        if has_winner {
            winners.step(check)?;
        }
    }
    check_losers(check)?;
    let references = &mut documents.references;
    check.each(Family::Scan, &keys::held_range(number), |_, key, stored| {
        if let Some((id, revision)) = keys::held_of(key) {
            let name = held_name(id, revision);
            held_contents(id, stored).iter().for_each(|digest| references.add(&[digest, name.as_bytes()]));
        }
        Ok(())
    })?;
    check_earlier(check)?;
    documents.check_changes(check)?;
    Ok(documents)
}

impl Documents {
    /// One document: its head and the record of its winner.
    fn look(
        &mut self,
        check: &mut Check<'_>,
        id: &str,
        head: Option<&[u8]>,
        winner: Option<&[u8]>,
    ) -> Result<()> {
        check.watch.documents += 1;
        let Some(head) = head else {
            let detail = "there is a revision, but no record of the document's revisions; rebuilt from it";
            check.mend_document(FindingKind::RevisionTree, id, detail, FindingOutcome::Repaired);
            return Ok(());
        };
        let Some(head) = Head::decode(head).filter(|head| !head.tree.is_empty()) else {
            let detail = "the record of its revisions cannot be read; rebuilt from those that are stored";
            check.mend_document(FindingKind::RevisionTree, id, detail, FindingOutcome::SetAside);
            return Ok(());
        };
        let Some(best) = head.tree.winner() else { return Ok(()) };
        if best.deleted {
            self.deleted += 1;
        } else {
            self.alive += 1;
            self.designs += u64::from(is_design(id));
        }
        self.external_bytes += head.external_bytes;
        self.stored_bytes += head.stored_bytes;
        self.last_change = self.last_change.max(head.change_number);
        if let Some(change) = change_of(id, &head) {
            add_all(&mut self.changes, &change_parts_of(head.change_number, &change));
        }
        head.contents.iter().for_each(|digest| self.references.add(&[digest, id.as_bytes()]));
        check_leaves(check, id, &head, winner)
    }

    /// Holds the feed of changes against the documents.
    fn check_changes(&mut self, check: &mut Check<'_>) -> Result<()> {
        let mut found = Tally::default();
        let mut unreadable = 0;
        let range = keys::change_range(check.number());
        let last = &mut self.last_change;
        check.each(Family::Churn, &range, |_, key, value| {
            match keys::change_number_of(key).zip(ChangeRecord::decode(value)) {
                Some((number, change)) => {
                    *last = (*last).max(number);
                    add_all(&mut found, &change_parts_of(number, &change));
                }
                None => unreadable += 1,
            }
            Ok(())
        })?;
        if unreadable == 0 && found == self.changes {
            return Ok(());
        }
        find_stray_changes(check)?;
        find_missing_changes(check)
    }

    /// Holds the counts of the database against what was found.
    pub(super) fn check_counts(&self, check: &mut Check<'_>, folders: &Folders) {
        let before = check.header.clone();
        let mut after = before.clone();
        after.document_count = self.alive;
        after.deleted_count = self.deleted;
        after.design_count = self.designs;
        after.external_bytes = self.external_bytes;
        after.stored_bytes = self.stored_bytes;
        after.membership_count = folders.memberships();
        after.mark_count = folders.marks();
        after.folder_count = folders.count();
        if before.change_number < self.last_change {
            after.change_number = self.last_change + LEAP;
        }
        after.last_folder = before.last_folder.max(folders.last_folder());
        if after == before {
            return;
        }
        let counts = [
            ("documents", before.document_count, after.document_count),
            ("deleted", before.deleted_count, after.deleted_count),
            ("design documents", before.design_count, after.design_count),
            ("bytes", before.external_bytes, after.external_bytes),
            ("bytes of records", before.stored_bytes, after.stored_bytes),
            ("memberships", before.membership_count, after.membership_count),
            ("marks", before.mark_count, after.mark_count),
            ("last change", before.change_number, after.change_number),
            ("folders", before.folder_count, after.folder_count),
            ("last folder", before.last_folder, after.last_folder),
        ];
        let wrong = counts.iter().filter(|(_, before, after)| before != after);
        let wrong: Vec<String> =
            wrong.map(|(what, before, after)| format!("{what} {before}, found {after}")).collect();
        check.repairs(FindingKind::HeaderCounts, before.name.clone(), wrong.join("; "));
        check.mends.header = Some((before, after));
    }
}

/// What one entry of the feed says.
fn change_parts_of(number: u64, change: &ChangeRecord) -> [Vec<u8>; 4] {
    let flags = vec![u8::from(change.deleted), u8::from(change.several_leaves)];
    let winner = change.winner.to_string().into_bytes();
    [number.to_be_bytes().to_vec(), change.id.clone().into_bytes(), winner, flags]
}

fn add_all(tally: &mut Tally, parts: &[Vec<u8>; 4]) {
    let [number, id, winner, flags] = parts;
    tally.add(&[number, id, winner, flags]);
}

/// The entry of the feed that a document should have.
pub(super) fn change_of(id: &str, head: &Head) -> Option<ChangeRecord> {
    let winner = head.tree.winner()?;
    Some(ChangeRecord {
        id: id.to_owned(),
        winner: winner.revision.clone(),
        deleted: winner.deleted,
        several_leaves: head.tree.leaves().count() > 1,
    })
}

/// Whether an entry of the feed is the one that its document should have.
pub(super) fn is_change_of(change: &ChangeRecord, number: u64, head: &Head) -> bool {
    let same = |wanted: &ChangeRecord| {
        wanted.winner == change.winner
            && wanted.deleted == change.deleted
            && wanted.several_leaves == change.several_leaves
    };
    head.change_number == number && change_of(&change.id, head).as_ref().is_some_and(same)
}

fn find_stray_changes(check: &mut Check<'_>) -> Result<()> {
    let range = keys::change_range(check.number());
    check.each(Family::Churn, &range, |check, key, value| {
        let Some(number) = keys::change_number_of(key) else {
            check.set_aside(FindingKind::ChangeStray, Family::Churn, key, "its key is not a change number");
            return Ok(());
        };
        let Some(change) = ChangeRecord::decode(value) else {
            check.mends.changes.insert(number);
            let detail = "it cannot be read";
            check.note(FindingKind::ChangeStray, number.to_string(), detail, FindingOutcome::SetAside);
            return Ok(());
        };
        let head = check.get(Family::Point, &keys::head(check.number(), &change.id))?;
        let head = head.and_then(|head| Head::decode(&head));
        let belongs = head.is_some_and(|head| head.change_number == number);
        if !belongs && !check.mends.is_full() && check.mends.changes.insert(number) {
            let detail = format!("it is not the last change of `{}`", change.id);
            check.repairs(FindingKind::ChangeStray, number.to_string(), detail);
        }
        Ok(())
    })
}

fn find_missing_changes(check: &mut Check<'_>) -> Result<()> {
    let range = keys::head_range(check.number());
    check.each(Family::Point, &range, |check, key, value| {
        let (Some(id), Some(head)) = (keys::id_of(key), Head::decode(value)) else { return Ok(()) };
        let stored = check.get(Family::Churn, &keys::change(check.number(), head.change_number))?;
        let change = stored.and_then(|stored| ChangeRecord::decode(&stored));
        let is_there =
            change.is_some_and(|change| change.id == id && is_change_of(&change, head.change_number, &head));
        if !is_there && !head.tree.is_empty() {
            let detail =
                format!("its change {} is not in the feed, or says something else", head.change_number);
            check.mend_document(FindingKind::ChangeMissing, id, &detail, FindingOutcome::Repaired);
        }
        Ok(())
    })
}

/// Holds the stored revisions of a document against its head.
fn check_leaves(check: &mut Check<'_>, id: &str, head: &Head, winner: Option<&[u8]>) -> Result<()> {
    let mut contents: BTreeSet<Digest> = BTreeSet::new();
    let mut external_bytes = 0;
    let best = head.tree.winner().map(|leaf| leaf.revision);
    for leaf in head.tree.leaves() {
        let loser;
        let record = if Some(leaf.revision) == best {
            winner
        } else {
            loser = check.get(Family::Scan, &keys::loser(check.number(), id, leaf.revision))?;
            loser.as_deref()
        };
        let summary = record.and_then(|record| LeafSummary::of(id, record));
        let wrong = match (&record, &summary) {
            (None, _) => Some("is missing"),
            (_, None) => Some("cannot be read"),
            (_, Some(summary)) if summary.revision != *leaf.revision => Some("is that of another revision"),
            (_, Some(summary)) if summary.deleted != leaf.deleted => {
                Some("wrongly says whether it is deleted")
            }
            _ => None,
        };
        if let Some(wrong) = wrong {
            let detail =
                format!("the record of revision {} {wrong}; the rest stays without it", leaf.revision);
            check.mend_document(FindingKind::Revision, id, &detail, FindingOutcome::SetAside);
            return Ok(());
        }
        if let Some(summary) = summary {
            contents.extend(summary.contents);
            external_bytes += summary.external_bytes;
        }
    }
    if let Some(wrong) = unsound_earlier(check, id, head)? {
        let detail =
            format!("the body of the earlier revision {wrong} cannot be read; the rest stays without it");
        check.mend_document(FindingKind::Revision, id, &detail, FindingOutcome::SetAside);
        return Ok(());
    }
    contents.extend(head.earlier.iter().flat_map(|body| body.contents.iter().copied()));
    if !contents.iter().eq(&head.contents) || external_bytes != head.external_bytes {
        let detail = "what is known of its contents and its size is not what its revisions say";
        check.mend_document(FindingKind::DocumentSummary, id, detail, FindingOutcome::Repaired);
    }
    Ok(())
}

/// An earlier body that is listed, and is not there as the list has it.
fn unsound_earlier<'a>(check: &Check<'_>, id: &str, head: &'a Head) -> Result<Option<&'a Revision>> {
    for body in &head.earlier {
        let stored = check.get(Family::Scan, &keys::earlier(check.number(), id, &body.revision))?;
        if stored.is_none_or(|stored| !is_earlier(id, &stored, body)) {
            return Ok(Some(&body.revision));
        }
    }
    Ok(None)
}

/// Whether a record is the earlier body that a head lists.
pub(super) fn is_earlier(id: &str, record: &[u8], body: &EarlierBody) -> bool {
    LeafSummary::of(id, record).is_some_and(|summary| {
        let contents: BTreeSet<Digest> = summary.contents.into_iter().collect();
        summary.revision == body.revision && contents.iter().eq(&body.contents)
    })
}

/// Every earlier body must be listed by its document.
fn check_earlier(check: &mut Check<'_>) -> Result<()> {
    let range = keys::earlier_range(check.number());
    check.each(Family::Scan, &range, |check, key, _| {
        let Some((id, revision)) = loser_of(key) else {
            check.set_aside(FindingKind::StrayRevision, Family::Scan, key, "its key names no revision");
            return Ok(());
        };
        let head = check.get(Family::Point, &keys::head(check.number(), id))?;
        let head = head.and_then(|head| Head::decode(&head));
        if head.is_none_or(|head| head.earlier.iter().all(|body| body.revision != revision)) {
            let detail = format!(
                "the body of the earlier revision {revision} is kept, and the document does not know it"
            );
            check.mend_document(FindingKind::StrayRevision, id, &detail, FindingOutcome::SetAside);
        }
        Ok(())
    })
}

/// Every losing revision must be one of its document's.
fn check_losers(check: &mut Check<'_>) -> Result<()> {
    let range = keys::kind_range(check.number(), b'c');
    check.each(Family::Scan, &range, |check, key, _| {
        let Some((id, revision)) = loser_of(key) else {
            check.set_aside(FindingKind::StrayRevision, Family::Scan, key, "its key names no revision");
            return Ok(());
        };
        let head = check.get(Family::Point, &keys::head(check.number(), id))?;
        let head = head.and_then(|head| Head::decode(&head));
        let is_loser = head.is_some_and(|head| {
            let is_winner = head.tree.winner().is_some_and(|winner| *winner.revision == revision);
            !is_winner && head.tree.leaf(&revision).is_some()
        });
        if !is_loser {
            let detail = format!(
                "revision {revision} is stored, but the document has no such revision besides its winner"
            );
            check.mend_document(FindingKind::StrayRevision, id, &detail, FindingOutcome::SetAside);
        }
        Ok(())
    })
}

/// The id and the revision in the key of a losing revision.
pub(super) fn loser_of(key: &[u8]) -> Option<(&str, Revision)> {
    let (id, revision) = keys::text_and_rest(key)?;
    Some((id, Revision::parse(std::str::from_utf8(revision).ok()?).ok()?))
}
