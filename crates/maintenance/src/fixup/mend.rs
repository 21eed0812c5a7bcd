//! Repairing: everything is looked at again under the database's lock, with all earlier updates visible, and made
//! whole from what is sound. What has changed since it was found and is right now is left alone.

use std::collections::{BTreeMap, BTreeSet};

use scrinium_database::folder::columns_text;
use scrinium_database::folder::name::folded;
use scrinium_database::folder::record::{FolderRecord, FolderState, ReadCounts};
use scrinium_database::head::{ChangeRecord, Head};
use scrinium_database::header::Header;
use scrinium_database::writer::Writer;
use scrinium_database::{Result, keys};
use scrinium_store::{Batch, Family, Snapshot};
use scrinium_views::OpenDatabase;

use super::aside::Aside;
use super::check::Mends;

/// A batch is written once it has this many bytes.
const BATCH_BYTES: usize = 1 << 20;

/// So much is mended while writers wait.
const AT_ONCE: usize = 100;

/// What is mended while nobody else writes.
pub(super) struct Mending<'a> {
    pub(super) database: &'a OpenDatabase,
    pub(super) snapshot: Snapshot,
    pub(super) header: Header,
    pub(super) batch: Batch,
    pub(super) aside: Aside<'a>,
    /// The last uid given in each folder.
    pub(super) uids: BTreeMap<u32, u64>,
}

impl Mending<'_> {
    pub(super) fn number(&self) -> u32 {
        self.database.number()
    }

    pub(super) fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.snapshot.get(family, key)?.map(|value| value.to_vec()))
    }

    pub(super) fn next_change(&mut self) -> u64 {
        self.header.change_number += 1;
        self.header.change_number
    }

    pub(super) fn head(&self, id: &str) -> Result<Option<Head>> {
        let stored = self.get(Family::Point, &keys::head(self.number(), id))?;
        Ok(stored.and_then(|stored| Head::decode(&stored)))
    }

    pub(super) fn is_alive(&self, id: &str) -> Result<bool> {
        Ok(self.head(id)?.is_some_and(|head| head.tree.winner().is_some_and(|winner| !winner.deleted)))
    }

    fn is_full(&self) -> bool {
        self.batch.len_bytes() >= BATCH_BYTES
    }
}

/// Lets `work` compose a batch while nobody else writes and every earlier update is visible, and stores it.
pub(super) fn mend_alone<T>(
    database: &OpenDatabase,
    work: impl FnOnce(&mut Mending<'_>) -> Result<T>,
) -> Result<T> {
    let mut writer = database.lock_writer(0)?;
    // Updates become visible in their order, so once this has, all before it have.
    let mut barrier = Batch::new();
    barrier.put(Family::Meta, &keys::header(database.number()), &writer.header.encode());
    database.submit(&writer, barrier, (), |_| {})?.wait()?;
    let snapshot = database.store().snapshot();
    let aside = Aside::open(&snapshot, database.number(), database.name(), database.store().clock())?;
    let (header, batch) = (writer.header.clone(), Batch::new());
    let mut mending = Mending { database, snapshot, header, batch, aside, uids: BTreeMap::new() };
    let result = work(&mut mending)?;
    let Mending { mut header, mut batch, .. } = mending;
    if batch.is_empty() && header == writer.header {
        return Ok(result);
    }
    // Anyone who has read ahead what is changed here must see that there was a change.
    header.change_number = header.change_number.max(writer.header.change_number + 1);
    batch.put(Family::Meta, &keys::header(database.number()), &header.encode());
    let failures = writer.failures;
    *writer = Writer::new(header, failures);
    let stored = database.submit(&writer, batch, (), |_| {}).and_then(|commit| Ok(commit.wait()?));
    if stored.is_err() {
        *writer = Writer::new(super::header_of(database)?, failures);
    }
    drop(writer);
    stored?;
    database.designs_changed();
    Ok(result)
}

/// Carries out what was found, in steps between which writers go on. `tick` is called for each and stops it with an
/// error.
pub(super) fn mend(
    database: &OpenDatabase,
    mends: &Mends,
    tick: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    in_steps(database, mends.records.iter(), tick, |mending, ((family, key), reason)| {
        if let Some(value) = mending.get(*family, key)? {
            mending.aside.set(&mut mending.batch, *family, key, &value, reason);
        }
        Ok(())
    })?;
    in_steps(database, mends.documents.iter(), tick, |mending, id| super::document::mend(mending, id))?;
    in_steps(database, mends.changes.iter(), tick, |mending, number| mend_change(mending, *number))?;
    in_steps(database, mends.references.iter(), tick, |mending, (digest, id)| {
        let head = mending.head(id)?;
        if head.is_none_or(|head| head.contents.binary_search(digest).is_err()) {
            mending.batch.delete(Family::Point, &keys::reference(digest, mending.number(), id));
            mending.batch.put(Family::Point, &keys::collectable(digest), &[]);
        }
        Ok(())
    })?;
    in_steps(database, mends.recovered.iter(), tick, |mending, folder| recover_folder(mending, *folder))?;
    in_steps(database, mends.leftovers.iter(), tick, |mending, folder| {
        mending.batch.put(Family::Meta, &keys::dropped_folder(mending.number(), *folder), &[]);
        Ok(())
    })?;
    in_steps(database, mends.memberships.iter(), tick, |mending, ((folder, id), found)| {
        super::membership::mend(mending, *folder, id, found)
    })?;
    in_steps(database, mends.marks.iter(), tick, |mending, ((id, person), found)| {
        super::membership::mend_mark(mending, id, person, found)
    })?;
    in_steps(database, mends.mark_counts.iter(), tick, |mending, id| {
        super::membership::count_marks(mending, id)
    })?;
    in_steps(database, mends.contents.iter(), tick, super::membership::set_content_aside)?;
    if mends.has_records() {
        // What is counted of them is counted again first.
        return Ok(());
    }
    mend_counts(database, mends)
}

/// Works on each of `all`, a hundred at most while writers wait.
fn in_steps<T>(
    database: &OpenDatabase,
    all: impl Iterator<Item = T>,
    tick: &mut dyn FnMut() -> Result<()>,
    work: impl Fn(&mut Mending<'_>, T) -> Result<()>,
) -> Result<()> {
    let mut all = all.peekable();
    while all.peek().is_some() {
        tick()?;
        mend_alone(database, |mending| {
            for one in all.by_ref().take(AT_ONCE) {
                work(mending, one)?;
                if mending.is_full() {
                    break;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Removes an entry of the feed of changes that is no document's last.
fn mend_change(mending: &mut Mending<'_>, number: u64) -> Result<()> {
    let key = keys::change(mending.number(), number);
    let Some(stored) = mending.get(Family::Churn, &key)? else { return Ok(()) };
    match ChangeRecord::decode(&stored) {
        None => {
            let reason = "an entry of the feed of changes cannot be read";
            mending.aside.set(&mut mending.batch, Family::Churn, &key, &stored, reason);
        }
        Some(change) => {
            let is_last = mending.head(&change.id)?.is_some_and(|head| head.change_number == number);
            if !is_last {
                mending.batch.delete(Family::Churn, &key);
            }
        }
    }
    Ok(())
}

/// Makes the record of a folder again whose counts and members are there.
fn recover_folder(mending: &mut Mending<'_>, folder: u32) -> Result<()> {
    let name = format!("Recovered {folder}");
    let key = keys::folder(mending.number(), &folded(&name));
    if mending.get(Family::Point, &key)?.is_some() {
        return Ok(());
    }
    let now_s = mending.database.store().clock().now_s();
    let header = &mut mending.header;
    header.last_uid_validity = now_s.max(header.last_uid_validity + 1);
    let record = FolderRecord {
        number: folder,
        name,
        uid_validity: u32::try_from(header.last_uid_validity).unwrap_or(u32::MAX),
        columns: columns_text(&*mending.database.context.server.designs, "", None)?,
        ..FolderRecord::default()
    };
    mending.batch.put(Family::Point, &key, &record.encode());
    Ok(())
}

/// Sets counts right by the difference that was found, since updates have gone on counting.
fn mend_counts(database: &OpenDatabase, mends: &Mends) -> Result<()> {
    if mends.is_empty() {
        return Ok(());
    }
    mend_alone(database, |mending| {
        if let Some((before, after)) = &mends.header {
            mend_header(&mut mending.header, before, after);
        }
        for (folder, (before, after)) in &mends.states {
            let key = keys::folder_state(mending.number(), *folder);
            let stored = mending.get(Family::Point, &key)?;
            let now = stored.and_then(|stored| FolderState::decode(&stored)).unwrap_or(FolderState::NEW);
            let state = FolderState {
                next_uid: now.next_uid.max(after.next_uid),
                total: moved(now.total, before.total, after.total),
                change_number: now.change_number.max(after.change_number),
                deleted: moved(now.deleted, before.deleted, after.deleted),
                bytes: moved(now.bytes, before.bytes, after.bytes),
                deleted_bytes: moved(now.deleted_bytes, before.deleted_bytes, after.deleted_bytes),
                presented: moved(now.presented, before.presented, after.presented),
                ..now
            };
            mending.batch.put(Family::Point, &key, &state.encode());
        }
        for (person, (before, after)) in &mends.counts {
            let key = keys::read_counts(mending.number(), person);
            let stored = mending.get(Family::Point, &key)?;
            let mut now = stored.and_then(|stored| ReadCounts::decode(&stored)).unwrap_or_default();
            now.database = moved(now.database, before.database, after.database);
            let folders: BTreeSet<u32> = before.folders.keys().chain(after.folders.keys()).copied().collect();
            for folder in folders {
                let of = |counts: &BTreeMap<u32, u64>| counts.get(&folder).copied().unwrap_or(0);
                let count = moved(of(&now.folders), of(&before.folders), of(&after.folders));
                now.folders.insert(folder, count);
            }
            now.folders.retain(|_, count| *count > 0);
            mending.batch.put(Family::Point, &key, &now.encode());
        }
        Ok(())
    })
}

fn mend_header(header: &mut Header, before: &Header, after: &Header) {
    header.document_count = moved(header.document_count, before.document_count, after.document_count);
    header.deleted_count = moved(header.deleted_count, before.deleted_count, after.deleted_count);
    header.design_count = moved(header.design_count, before.design_count, after.design_count);
    header.external_bytes = moved(header.external_bytes, before.external_bytes, after.external_bytes);
    header.stored_bytes = moved(header.stored_bytes, before.stored_bytes, after.stored_bytes);
    header.membership_count = moved(header.membership_count, before.membership_count, after.membership_count);
    header.mark_count = moved(header.mark_count, before.mark_count, after.mark_count);
    header.folder_count = moved(header.folder_count, before.folder_count, after.folder_count);
    header.change_number = header.change_number.max(after.change_number);
    header.last_folder = header.last_folder.max(after.last_folder);
}

/// What a count is now that was `before` when it should have been `after`.
const fn moved(now: u64, before: u64, after: u64) -> u64 {
    if after >= before { now.saturating_add(after - before) } else { now.saturating_sub(before - after) }
}
