//! Folders, what is in them, and what people have read.
//!
//! A membership is stored three times: found by the document, by its uid, and by the change that made it. A mark is
//! stored twice. The sets are compared by their tallies; only where these differ are records looked for one by one.

use std::collections::{BTreeMap, BTreeSet};

use scrinium_database::folder::name::folded;
use scrinium_database::folder::record::{
    DELETED, FolderRecord, FolderState, Mark, MarkChange, Member, MemberChange, MemberChangeKind, Membership,
    ReadCounts, decode_count,
};
use scrinium_database::head::Head;
use scrinium_database::{Result, keys};
use scrinium_document::is_design;
use scrinium_store::Family;
use scrinium_views::tally::Tally;

use super::check::{Check, Walk};
use super::report::{FindingKind, FindingOutcome};

/// A folder that is there.
#[derive(Default)]
struct Known {
    name: String,
    state: Option<FolderState>,
    by_document: Tally,
    by_uid: Tally,
    by_change: Tally,
    last_uid: u64,
    last_change: u64,
    /// Those that are marked to be expunged.
    deleted_by_document: Tally,
    deleted_by_uid: Tally,
    bytes: u64,
    deleted_bytes: u64,
}

impl Known {
    fn contradicts(&self) -> bool {
        self.by_document != self.by_uid
            || self.by_document != self.by_change
            || self.deleted_by_document != self.deleted_by_uid
    }
}

/// What the folders and marks of a database come to.
#[derive(Default)]
pub(super) struct Folders {
    known: BTreeMap<u32, Known>,
    /// Records of folders that are there, or are made again.
    count: u64,
    dropped: BTreeSet<u32>,
    counts: BTreeMap<String, ReadCounts>,
    marks: Tally,
    mark_changes: Tally,
    pub(super) last_change: u64,
}

/// What is stored of one document in folders, and of who has read it.
#[derive(Default)]
struct OfDocument {
    memberships: Vec<(u32, Option<Membership>)>,
    marks: Vec<(String, Option<Mark>)>,
    /// How many marks are said to be there.
    count: Option<Option<u64>>,
}

/// Looks at all folders and marks.
pub(super) fn check(check: &mut Check<'_>) -> Result<Folders> {
    let mut folders = Folders::default();
    folders.read_known(check)?;
    folders.check_documents(check)?;
    folders.check_members(check)?;
    folders.check_mark_changes(check)?;
    let wrong = folders.known.iter().filter(|(_, folder)| folder.contradicts());
    let wrong: BTreeSet<u32> = wrong.map(|(number, _)| *number).collect();
    if !wrong.is_empty() {
        super::members::find(check, &wrong)?;
    }
    if folders.marks != folders.mark_changes {
        super::members::find_marks(check)?;
    }
    Ok(folders)
}

impl Folders {
    /// Documents in folders, one that is in two counted twice.
    pub(super) fn memberships(&self) -> u64 {
        self.known.values().map(|folder| folder.by_document.count).sum()
    }

    pub(super) const fn marks(&self) -> u64 {
        self.marks.count
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// The highest number of a folder.
    pub(super) fn last_folder(&self) -> u64 {
        self.known.keys().chain(&self.dropped).max().copied().unwrap_or(0).into()
    }

    fn read_known(&mut self, check: &mut Check<'_>) -> Result<()> {
        let number = check.number();
        let (from, to) = keys::DROPPED_FOLDER_RANGE;
        let range = (from.to_vec(), to.to_vec());
        check.each(Family::Meta, &range, |_, key, _| {
            let dropped = keys::dropped_folder_of(key).filter(|(database, _)| *database == number);
            self.dropped.extend(dropped.map(|(_, folder)| folder));
            Ok(())
        })?;
        check.each(Family::Point, &keys::kind_range(number, b'F'), |check, key, value| {
            let Some(record) = FolderRecord::decode(value) else {
                check.set_aside(
                    FindingKind::Folder,
                    Family::Point,
                    key,
                    "the record of a folder cannot be read",
                );
                return Ok(());
            };
            self.count += 1;
            let is_own_key = keys::folder(number, &folded(&record.name)) == key;
            let before = self.known.insert(record.number, Known { name: record.name, ..Known::default() });
            let name = self.known.get(&record.number).map_or("", |known| &known.name);
            let detail = match before {
                Some(before) => {
                    format!("it has the same number as the folder {}; drop one of them", before.name)
                }
                None if !is_own_key => "it is found under another name; rename or drop it".to_owned(),
                None => return Ok(()),
            };
            check.note(FindingKind::Folder, name, detail, FindingOutcome::Left);
            Ok(())
        })?;
        check.each(Family::Point, &keys::kind_range(number, b'G'), |check, key, value| {
            let folder = keys::folder_of(key);
            match (folder.and_then(|folder| self.known.get_mut(&folder)), FolderState::decode(value)) {
                (_, None) => {
                    let reason = "the counts of a folder cannot be read";
                    check.set_aside(FindingKind::FolderCounts, Family::Point, key, reason);
                }
                (Some(known), state) => known.state = state,
                (None, Some(_)) => {
                    let number = folder.unwrap_or_default();
                    self.known.insert(number, Known::default());
                    self.count += 1;
                    check.mends.recovered.insert(number);
                    let detail = "its record is missing; rebuilt, with the name `Recovered` and its number";
                    check.repairs(FindingKind::Folder, format!("number {number}"), detail);
                }
            }
            Ok(())
        })
    }

    /// Goes through memberships and marks side by side, which both lie by their documents.
    fn check_documents(&mut self, check: &mut Check<'_>) -> Result<()> {
        let number = check.number();
        let mut memberships = check.walk(Family::Point, &keys::kind_range(number, b'm'))?;
        let mut marks = check.walk(Family::Point, &keys::kind_range(number, b'd'))?;
        let mut heads = check.walk(Family::Point, &keys::head_range(number))?;
        loop {
            pass_unreadable(check, &mut memberships, FindingKind::Membership)?;
            pass_unreadable(check, &mut marks, FindingKind::Mark)?;
            let prefix =
                [&memberships, &marks].into_iter().filter_map(document_part).min().map(<[u8]>::to_vec);
            let Some(prefix) = prefix else { return Ok(()) };
            let mut of = OfDocument::default();
            while document_part(&memberships) == Some(&prefix) {
                if let Some((key, value)) = memberships.entry() {
                    let folder = keys::folder_of(key).unwrap_or_default();
                    of.memberships.push((folder, Membership::decode(value)));
                }
                memberships.step(check)?;
            }
            while document_part(&marks) == Some(&prefix) {
                if let Some((key, value)) = marks.entry() {
                    match keys::text_and_rest(key).and_then(|(_, person)| std::str::from_utf8(person).ok()) {
                        Some("") => of.count = Some(decode_count(value)),
                        Some(person) => of.marks.push((person.to_owned(), Mark::decode(value))),
                        None => {
                            check.set_aside(FindingKind::Mark, Family::Point, key, "its person is not text");
                        }
                    }
                }
                marks.step(check)?;
            }
            let id = prefix.get(4..).and_then(|id| std::str::from_utf8(id).ok()).unwrap_or_default();
            heads.reach(check, &keys::head(number, id))?;
            let head = heads.entry().filter(|(key, _)| keys::id_of(key) == Some(id));
            let head = head.and_then(|(_, head)| Head::decode(head));
            let is_alive = head.is_some_and(|head| head.tree.winner().is_some_and(|winner| !winner.deleted))
                && !is_design(id);
            self.look(check, id, is_alive, &of);
        }
    }

    fn look(&mut self, check: &mut Check<'_>, id: &str, is_alive: bool, of: &OfDocument) {
        let mut folders = Vec::new();
        for (folder, membership) in &of.memberships {
            let Some(known) = self.known.get_mut(folder) else {
                self.leftover(check, *folder);
                continue;
            };
            match membership {
                Some(Membership { uid, change_number, flags, .. }) if is_alive => {
                    folders.push(*folder);
                    known.by_document.add(&[&uid.to_be_bytes(), &change_number.to_be_bytes(), id.as_bytes()]);
                    if flags & DELETED != 0 {
                        known.deleted_by_document.add(&[&uid.to_be_bytes()]);
                    }
                }
                Some(membership) => {
                    let found = Some((membership.uid, membership.change_number));
                    let detail = "it is in the folder, and there is no such document; taken out";
                    super::members::mend(check, *folder, id, found, detail);
                }
                None => {
                    let detail =
                        "its membership in the folder cannot be read; rebuilt from the folder's records";
                    super::members::mend(check, *folder, id, None, detail);
                }
            }
        }
        for (person, mark) in &of.marks {
            let Some(mark) = mark.filter(|_| is_alive) else {
                let number = mark.map(|mark| mark.change_number);
                let detail = if is_alive { "cannot be read" } else { "is of a document that is not there" };
                super::members::mend_mark(check, id, person, number, detail);
                continue;
            };
            self.marks
                .add(&mark_parts(person, mark.change_number, mark.read, id).each_ref().map(Vec::as_slice));
            if mark.read {
                let counts = self.counts.entry(person.clone()).or_default();
                counts.count(true);
                folders.iter().for_each(|folder| counts.count_in(*folder, true));
            }
        }
        let wanted = (is_alive && !of.marks.is_empty()).then_some(Some(of.marks.len() as u64));
        if of.count != wanted && !check.mends.is_full() && check.mends.mark_counts.insert(id.to_owned()) {
            check.repairs(FindingKind::ReadCounts, id, "the number of marks on it was wrong");
        }
    }

    fn leftover(&self, check: &mut Check<'_>, folder: u32) {
        if !self.dropped.contains(&folder) && check.mends.leftovers.insert(folder) {
            let detail = "there are records of a folder that is not there; they are cleared away";
            check.repairs(FindingKind::FolderLeftover, format!("number {folder}"), detail);
        }
    }

    fn check_members(&mut self, check: &mut Check<'_>) -> Result<()> {
        let number = check.number();
        check.each(Family::Scan, &keys::kind_range(number, b'u'), |check, key, value| {
            let (Some(folder), Some(uid)) = (folder_in(key), keys::uid_of(key)) else { return Ok(()) };
            let Some(known) = self.known.get_mut(&folder) else {
                self.leftover(check, folder);
                return Ok(());
            };
            let Some(member) = Member::decode(value) else {
                let reason = "a member of a folder cannot be read; rebuilt from the document's records";
                check.set_aside(FindingKind::Membership, Family::Scan, key, reason);
                return Ok(());
            };
            known.last_uid = known.last_uid.max(uid);
            let bytes = member.facts.bytes;
            known.bytes = known.bytes.saturating_add(bytes);
            if member.is_deleted() {
                known.deleted_by_uid.add(&[&uid.to_be_bytes()]);
                known.deleted_bytes = known.deleted_bytes.saturating_add(bytes);
            }
            known.by_uid.add(&[
                &uid.to_be_bytes(),
                &member.change_number.to_be_bytes(),
                member.id.as_bytes(),
            ]);
            Ok(())
        })?;
        check.each(Family::Churn, &keys::kind_range(number, b'f'), |check, key, value| {
            let (Some(folder), Some(change)) = (folder_in(key), keys::change_number_of(key)) else {
                return Ok(());
            };
            let Some(known) = self.known.get_mut(&folder) else {
                self.leftover(check, folder);
                return Ok(());
            };
            let Some(MemberChange { uid, kind, id }) = MemberChange::decode(value) else {
                let reason = "a change of a folder cannot be read";
                check.set_aside(FindingKind::Membership, Family::Churn, key, reason);
                return Ok(());
            };
            known.last_uid = known.last_uid.max(uid);
            known.last_change = known.last_change.max(change);
            self.last_change = self.last_change.max(change);
            if kind != MemberChangeKind::Left {
                known.by_change.add(&[&uid.to_be_bytes(), &change.to_be_bytes(), id.as_bytes()]);
            }
            Ok(())
        })
    }

    fn check_mark_changes(&mut self, check: &mut Check<'_>) -> Result<()> {
        check.each(Family::Churn, &keys::kind_range(check.number(), b'p'), |check, key, value| {
            let person = keys::text_and_rest(key).map(|(person, _)| person);
            let found = person.zip(keys::change_number_of(key)).zip(MarkChange::decode(value));
            let Some(((person, change), MarkChange { read, id })) = found else {
                let reason = "a change of a mark cannot be read; rebuilt from the mark";
                check.set_aside(FindingKind::Mark, Family::Churn, key, reason);
                return Ok(());
            };
            self.last_change = self.last_change.max(change);
            self.mark_changes.add(&mark_parts(person, change, read, &id).each_ref().map(Vec::as_slice));
            Ok(())
        })
    }

    /// Holds the counts of folders and of what was read against what was found.
    pub(super) fn check_counts(&self, check: &mut Check<'_>) -> Result<()> {
        for (number, known) in &self.known {
            let before = known.state.unwrap_or(FolderState::NEW);
            let after = FolderState {
                next_uid: before.next_uid.max(known.last_uid + 1),
                total: known.by_document.count,
                change_number: before.change_number.max(known.last_change),
                deleted: known.deleted_by_document.count,
                bytes: known.bytes,
                deleted_bytes: known.deleted_bytes,
                presented: known.by_document.count,
                ..before
            };
            if known.state != Some(after) {
                let detail = format!(
                    "documents {}, found {}; next uid {}, at least {}; last change {}, at least {}; \
                     deleted {}, found {}; bytes {}, found {}",
                    before.total,
                    after.total,
                    before.next_uid,
                    after.next_uid,
                    before.change_number,
                    after.change_number,
                    before.deleted,
                    after.deleted,
                    before.bytes,
                    after.bytes
                );
                check.repairs(FindingKind::FolderCounts, known.name.clone(), detail);
                check.mends.states.insert(*number, (before, after));
            }
        }
        let mut stored = BTreeMap::new();
        check.each(Family::Point, &keys::kind_range(check.number(), b'p'), |check, key, value| {
            let person = keys::id_of(key);
            let Some((person, mut counts)) = person.zip(ReadCounts::decode(value)) else {
                let reason = "a count of read documents cannot be read; counted again";
                check.set_aside(FindingKind::ReadCounts, Family::Point, key, reason);
                return Ok(());
            };
            counts.folders.retain(|folder, _| self.known.contains_key(folder));
            stored.insert(person.to_owned(), counts);
            Ok(())
        })?;
        let people: BTreeSet<&String> = self.counts.keys().chain(stored.keys()).collect();
        for person in people {
            let before = stored.get(person).cloned().unwrap_or_default();
            let after = self.counts.get(person).cloned().unwrap_or_default();
            if before != after {
                let detail = format!("{} documents read, found {}", before.database, after.database);
                check.repairs(FindingKind::ReadCounts, person.clone(), detail);
                check.mends.counts.insert(person.clone(), (before, after));
            }
        }
        Ok(())
    }
}

/// The part of a key of a membership or a mark that says which document it is: its length and its id.
fn document_part<'w>(walk: &'w Walk<'_>) -> Option<&'w [u8]> {
    let key = walk.key()?;
    let (id, _) = keys::text_and_rest(key)?;
    key.get(5..9 + id.len())
}

/// Sets records aside whose keys name no document.
fn pass_unreadable(check: &mut Check<'_>, walk: &mut Walk<'_>, kind: FindingKind) -> Result<()> {
    while let Some(key) = walk.key()
        && document_part(walk).is_none()
    {
        check.set_aside(kind, Family::Point, key, "its key names no document");
        walk.step(check)?;
    }
    Ok(())
}

/// The folder in a key of a member or of a change of one.
pub(super) fn folder_in(key: &[u8]) -> Option<u32> {
    key.get(5..9).and_then(|folder| folder.try_into().ok()).map(u32::from_be_bytes)
}

fn mark_parts(person: &str, change: u64, read: bool, id: &str) -> [Vec<u8>; 4] {
    [person.as_bytes().to_vec(), change.to_be_bytes().to_vec(), vec![u8::from(read)], id.as_bytes().to_vec()]
}
