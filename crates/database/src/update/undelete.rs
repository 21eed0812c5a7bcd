//! Deleted messages: kept with the deletion, and let go or restored later.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use scrinium_document::{FieldValue, FieldsBuf, Revision, RevisionTree, new_revision};
use scrinium_store::{Batch, Direction, Family, KeyRange, Store};

use super::Transaction;
use super::document::{Before, TreeChange};
use crate::access::Access;
use crate::access::restriction::restricts;
use crate::database::Database;
use crate::deletion::{
    DeletedKey, DeletedSums, Deletion, KEPT_OF_DOCUMENT, PLACES_MAX, READERS_MAX, Undeleted, is_message,
};
use crate::edit::SideEffects;
use crate::error::{DatabaseError, Result};
use crate::folder::record::FolderRecord;
use crate::head::Head;
use crate::history::{EarlierBody, is_earlier};
use crate::keys;
use crate::leaf::{Leaf, LeafParts};
use crate::source_facts::INTERNAL_DATE;

/// Deleted messages that one batch lets go.
const LET_GO_AT_ONCE: usize = 100;

/// A database remembers the names of this many folders.
const NAMES_REMEMBERED: usize = 1_000;

/// Whether the body of a document's revision is that of a deleted message, so that only its age and the limit of bytes end it.
///
/// # Errors
/// What the store reports.
pub fn is_kept(store: &Store, number: u32, id: &str, body: &EarlierBody) -> Result<bool> {
    Ok(store.contains(Family::Scan, &key_of(number, id, body))?)
}

fn key_of(number: u32, id: &str, body: &EarlierBody) -> Vec<u8> {
    keys::deleted(number, body.superseded_ms, id, &body.revision.to_string())
}

impl Transaction<'_> {
    /// Notes where a document lies that an edit deletes, before it leaves its folders.
    pub(super) fn note_deletion(&mut self, id: &str, before: &Before, tree: &RevisionTree) -> Result<()> {
        let winner = before.head.tree.winner().filter(|winner| !winner.deleted);
        if winner.is_none() || !tree.is_deleted() || !self.database.undelete_limits().is_on() {
            return Ok(());
        }
        let mut deletion = Deletion::default();
        for (folder, membership) in self.memberships(id)?.into_iter().take(PLACES_MAX) {
            let added_ms = self.member(folder, membership.uid)?.map_or(self.now_ms, |member| member.added_ms);
            let Some(name) = self.name_of_folder(folder)? else { continue };
            deletion.places.push((name, added_ms));
        }
        if deletion.places.is_empty() {
            return Ok(());
        }
        deletion.readers = self.readers(id)?;
        deletion.readers.truncate(READERS_MAX);
        self.deletions.insert(id.to_owned(), deletion);
        Ok(())
    }

    /// Writes the record of a message that is being deleted, unless it is not to be kept; whether its body is.
    pub(super) fn keeps_deleted(&mut self, id: &str, revision: &Revision, record: &Bytes) -> Result<bool> {
        let Some(mut deletion) = self.deletions.remove(id) else { return Ok(false) };
        let leaf = Leaf::decode(id, record)?;
        let limits = self.database.undelete_limits();
        deletion.bytes = leaf.external_bytes(id)?;
        let mut sums = self.deleted_sums()?;
        // The oldest go a moment later. Who deletes more in that moment has twice as much, and no more.
        let bytes = sums.bytes.saturating_add(deletion.bytes);
        if !is_message(&leaf, id)? || deletion.bytes > limits.bytes || bytes / 2 > limits.bytes {
            return Ok(false);
        }
        if bytes > limits.bytes {
            let name = self.database.name().to_owned();
            self.database.context.server.too_much_deleted.lock().insert(name);
        }
        sums = DeletedSums { count: sums.count + 1, bytes };
        let number = self.database.number();
        let key = keys::deleted(number, self.now_ms, id, &revision.to_string());
        self.records.put_member(&mut self.batch, key, deletion.encode());
        self.records.put(&mut self.batch, keys::deleted_sums(number), sums.encode());
        if sums.count == 1 {
            self.batch.put(Family::Meta, &keys::keeps_deleted(number), &[]);
        }
        Ok(true)
    }

    /// What a folder is called. Records of folders are found by their names, so that the name is remembered from the last time.
    fn name_of_folder(&self, folder: u32) -> Result<Option<String>> {
        let remembered = self.database.folder_names.lock().get(&folder).cloned();
        if let Some(name) = remembered
            && self.folder_record(&name)?.is_some_and(|record| record.number == folder)
        {
            return Ok(Some(name));
        }
        for (_, stored) in self.records.beginning_with(&keys::folder(self.database.number(), ""))? {
            let Some(record) = FolderRecord::decode(&stored).filter(|record| record.number == folder) else {
                continue;
            };
            let mut names = self.database.folder_names.lock();
            if names.len() >= NAMES_REMEMBERED {
                names.clear();
            }
            names.insert(folder, record.name.clone());
            return Ok(Some(record.name));
        }
        Ok(None)
    }

    /// Those of `gone` that stay because they are deleted messages, the newest; the others are left in `gone`, and their records go.
    pub(super) fn still_deleted(
        &mut self,
        id: &str,
        tree: &RevisionTree,
        gone: &mut Vec<EarlierBody>,
    ) -> Result<Vec<EarlierBody>> {
        let number = self.database.number();
        let (mut kept, mut ended) = (Vec::new(), Vec::new());
        for body in std::mem::take(gone).into_iter().rev() {
            let key = key_of(number, id, &body);
            let stored = self.records.get_member(&key)?;
            let stays = stored.is_some() && kept.len() < KEPT_OF_DOCUMENT && is_earlier(tree, &body.revision);
            if stays {
                kept.push(body);
                continue;
            }
            if let Some(stored) = stored {
                self.forget_deletion(key, &Deletion::decode(&stored).unwrap_or_default())?;
            }
            ended.push(body);
        }
        ended.reverse();
        kept.reverse();
        *gone = ended;
        Ok(kept)
    }

    fn forget_deletion(&mut self, key: Vec<u8>, deletion: &Deletion) -> Result<()> {
        let sums = less(self.deleted_sums()?, deletion.bytes);
        self.records.delete_member(&mut self.batch, key);
        let sums_key = keys::deleted_sums(self.database.number());
        if sums.count == 0 {
            self.records.delete(&mut self.batch, sums_key);
            self.batch.delete(Family::Meta, &keys::keeps_deleted(self.database.number()));
        } else {
            self.records.put(&mut self.batch, sums_key, sums.encode());
        }
        Ok(())
    }

    fn deleted_sums(&self) -> Result<DeletedSums> {
        let stored = self.records.get(&keys::deleted_sums(self.database.number()))?;
        // What is damaged is counted from nothing: it only says when the oldest go.
        Ok(stored.and_then(|stored| DeletedSums::decode(&stored)).unwrap_or_default())
    }

    /// Restores a deleted message.
    pub(crate) fn undelete(
        &mut self,
        which: &DeletedKey,
        folder: Option<&str>,
        access: &Access,
    ) -> Result<Undeleted> {
        let number = self.database.number();
        let gone = || DatabaseError::NotFound { reason: "This message is not kept any more.".to_owned() };
        let stored = self.records.get_member(&which.key(number))?.ok_or_else(gone)?;
        let deletion = Deletion::decode(&stored)
            .ok_or_else(|| DatabaseError::damaged("deleted message", self.database.name()))?;
        let mut before = self.take_before(&which.id)?;
        let restored = self.bring_back(which, &deletion, &mut before, (folder, access));
        self.put_back(&which.id, before);
        self.keep_whole(restored)
    }

    fn bring_back(
        &mut self,
        which: &DeletedKey,
        deletion: &Deletion,
        before: &mut Before,
        (folder, access): (Option<&str>, &Access),
    ) -> Result<Undeleted> {
        let (database, id) = (self.database, which.id.as_str());
        if !before.head.tree.is_deleted() {
            return Err(DatabaseError::Exists {
                reason: "The document of this message is there again.".to_owned(),
            });
        }
        let revision = Revision::parse(&which.revision)?;
        let body = database.store().get(Family::Scan, &keys::earlier(database.number(), id, &revision))?;
        let body = body.ok_or_else(DatabaseError::missing)?;
        let leaf = access.check_read(database, id, Leaf::decode(id, &body)?)?;
        access.check_create(id)?;
        let folders = self.places_of(deletion, folder)?;
        let fields = restored_fields(&leaf, id, deletion)?;
        let attachments = leaf.attachments(id)?;
        let bytes = attachments.iter().map(|attachment| attachment.length).sum::<u64>()
            + fields.fields().value_bytes();
        database.check_quota(self.header.external_bytes + bytes, self.header.document_count + 1, true)?;
        for attachment in &attachments {
            self.pins.push(database.context.contents.pin(&attachment.digest));
        }
        let digests: Vec<(&str, String)> = attachments
            .iter()
            .map(|attachment| (attachment.name.as_str(), attachment.digest_text()))
            .collect();
        let named: Vec<(&str, &str)> =
            digests.iter().map(|(name, digest)| (*name, digest.as_str())).collect();
        let mut tree = before.head.tree.clone();
        let parent = tree.edit_parent(None)?.cloned();
        let new = new_revision(parent.as_ref(), false, fields.fields(), &named);
        tree.add_edit(parent.as_ref(), new.clone(), false)?;
        tree.stem(usize::try_from(self.header.revision_limit).unwrap_or(usize::MAX));
        self.restricts = self.restricts || restricts(fields.as_bytes())?;
        let created_ms = before.head.created_ms;
        let parts = LeafParts {
            revision: &new,
            deleted: false,
            created_ms,
            modified_ms: self.now_ms,
            attachments: &attachments,
            fields: fields.as_bytes(),
        };
        let leaf = Some((new.clone(), parts.encode().into()));
        self.keeps_replaced = database.is_held();
        // Before its body is looked at again, which then is no deleted message's.
        self.forget_deletion(which.key(database.number()), deletion)?;
        self.write(id, before, TreeChange { tree, created_ms, leaf, gone: parent.as_slice() })?;
        self.follow(id, &before.head.tree, &SideEffects::default());
        let placed = self.place_back(id, &folders, &deletion.readers);
        self.note_failure(placed);
        Ok(Undeleted { id: id.to_owned(), revision: new.to_string(), folders })
    }

    /// Puts a message that is there again into its folders. If this fails, nothing of the restoring is stored.
    fn place_back(&mut self, id: &str, folders: &[String], readers: &[String]) -> Result<()> {
        for folder in folders {
            self.make_folder(folder, None, None)?;
            self.add_to(id, folder)?;
        }
        for reader in readers {
            self.mark(reader, id.to_owned(), true)?;
        }
        Ok(())
    }

    /// Where a message is restored to; what would have to be made and cannot be is refused before anything changes.
    fn places_of(&mut self, deletion: &Deletion, folder: Option<&str>) -> Result<Vec<String>> {
        let names: Vec<String> = match folder {
            Some(folder) => vec![folder.to_owned()],
            None => deletion.places.iter().map(|(folder, _)| folder.clone()).collect(),
        };
        for name in &names {
            if self.folder_number(name)?.is_none() {
                self.check_new_folder(name, None)?;
            }
        }
        Ok(names)
    }
}

/// The fields of a message with the date when it came, which its folders give otherwise.
fn restored_fields(leaf: &Leaf<'_>, id: &str, deletion: &Deletion) -> Result<FieldsBuf> {
    let fields = leaf.fields(id)?;
    let has_date = fields.value(INTERNAL_DATE).is_some();
    let came = deletion.places.iter().map(|(_, added_ms)| *added_ms).min().filter(|_| !has_date);
    let date = came.map(|came_ms| format!("[{came_ms},0]"));
    let date = date.as_deref().map(|date| (INTERNAL_DATE, FieldValue::Json(date)));
    Ok(FieldsBuf::build(fields.iter().chain(date)))
}

const fn less(sums: DeletedSums, bytes: u64) -> DeletedSums {
    DeletedSums { count: sums.count.saturating_sub(1), bytes: sums.bytes.saturating_sub(bytes) }
}

/// What one batch has let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LetGo {
    /// Messages.
    pub messages: u64,
    /// Whether there may be more to do at once.
    pub is_more: bool,
}

impl Database {
    /// Lets deleted messages go that are too old, or that are too many, the oldest first: some, in one batch. What is edited just now
    /// is left for the next time, and while the database is held nothing goes.
    ///
    /// # Errors
    /// The database is gone, a record is damaged, and what the store reports.
    pub fn let_deleted_go(self: &Arc<Self>) -> Result<LetGo> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.let_deleted_go(),
        };
        let mut writer = self.lock_writer(self.ahead.load(Ordering::Acquire))?;
        if self.is_held() {
            return Ok(LetGo::default());
        }
        let number = self.number();
        let sums = {
            let records = super::Records::new(self.store(), writer.records());
            let stored = records.get(&keys::deleted_sums(number))?;
            stored.and_then(|stored| DeletedSums::decode(&stored)).unwrap_or_default()
        };
        let due = self.due_deletions(sums)?;
        let mut round = Round {
            database: self,
            batch: Batch::for_removing(),
            pins: Vec::new(),
            freed_bytes: 0,
            sums,
            messages: 0,
        };
        let is_more = due.len() >= LET_GO_AT_ONCE;
        // A second deletion of the same document waits for the next batch, which finds what this one has left.
        let mut seen = BTreeSet::new();
        for (which, deletion) in due.iter().filter(|(which, _)| writer.pending(&which.id).is_none()) {
            if seen.insert(which.id.as_str()) {
                round.let_go(which, deletion.bytes)?;
            }
        }
        let Round { mut batch, pins, freed_bytes, sums, messages, .. } = round;
        if messages == 0 {
            return Ok(LetGo::default());
        }
        if sums.count == 0 {
            batch.delete(Family::Point, &keys::deleted_sums(number));
            batch.delete(Family::Meta, &keys::keeps_deleted(number));
        } else {
            batch.put(Family::Point, &keys::deleted_sums(number), &sums.encode());
        }
        let mut header = writer.header.clone();
        header.stored_bytes = header.stored_bytes.saturating_sub(freed_bytes);
        header.change_number += 1;
        let change_number = header.change_number;
        batch.put(Family::Meta, &keys::header(number), &header.encode());
        let before = std::mem::replace(&mut writer.header, header);
        let submitted = self.submit(&writer, batch, pins, |_| {});
        // Held until it is stored: anyone who comes next must build on what is left.
        submitted.inspect_err(|_| writer.header = before)?.wait()?;
        writer.forget_what_was_read_before(change_number);
        Ok(LetGo { messages, is_more })
    }

    /// The oldest deletions that are to go.
    fn due_deletions(&self, mut sums: DeletedSums) -> Result<Vec<(DeletedKey, Deletion)>> {
        let limits = self.undelete_limits();
        let oldest_ms = if limits.is_on() { limits.oldest_ms(self.now_ms()) } else { u64::MAX };
        let (from, to) = keys::deleted_range(self.number());
        let snapshot = self.store().snapshot();
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Scan, range, Direction::Forward);
        let mut due = Vec::new();
        while due.len() < LET_GO_AT_ONCE
            && let Some((key, stored)) = cursor.next()?
        {
            let damaged = || DatabaseError::damaged("deleted message", self.name());
            let which = DeletedKey::of(key).ok_or_else(damaged)?;
            if which.deleted_ms >= oldest_ms && sums.bytes <= limits.bytes {
                break;
            }
            let deletion = Deletion::decode(stored).ok_or_else(damaged)?;
            sums = less(sums, deletion.bytes);
            due.push((which, deletion));
        }
        Ok(due)
    }
}

/// What a batch of deleted messages that go adds up.
struct Round<'a> {
    database: &'a Arc<Database>,
    batch: Batch,
    pins: Vec<scrinium_contents::Pin>,
    freed_bytes: u64,
    sums: DeletedSums,
    messages: u64,
}

impl Round<'_> {
    fn let_go(&mut self, which: &DeletedKey, bytes: u64) -> Result<()> {
        let (database, number, id) = (self.database, self.database.number(), which.id.as_str());
        self.batch.delete(Family::Scan, &which.key(number));
        self.sums = less(self.sums, bytes);
        self.messages += 1;
        let key = keys::head(number, id);
        if database.history().is_on() {
            // The history of the document says how long its body stays.
            return Ok(());
        }
        let Some(stored) = database.store().get(Family::Point, &key)? else { return Ok(()) };
        let mut head = Head::decode(&stored).ok_or_else(|| DatabaseError::damaged("revision tree", id))?;
        let is_it = |body: &EarlierBody| {
            body.superseded_ms == which.deleted_ms && body.revision.to_string() == which.revision
        };
        let Some(place) = head.earlier.iter().position(is_it) else { return Ok(()) };
        let body = head.earlier.remove(place);
        self.batch.delete(Family::Scan, &body.key(number, id));
        let before_bytes = head.stored_bytes;
        let contents = database.contents_of_document(id, &head)?;
        for digest in head.contents.iter().filter(|digest| !contents.contains(*digest)) {
            self.pins.push(database.context.contents.pin(digest));
            self.batch.delete(Family::Point, &keys::reference(digest, number, id));
            self.batch.put(Family::Point, &keys::collectable(digest), &[]);
        }
        head.contents.retain(|digest| contents.contains(digest));
        let others_bytes = before_bytes.saturating_sub(stored.len() as u64).saturating_sub(body.stored_bytes);
        let record = head.encode_counting(others_bytes);
        self.freed_bytes += before_bytes.saturating_sub(head.stored_bytes);
        self.batch.put(Family::Point, &key, &record);
        Ok(())
    }
}

impl Database {
    /// The contents that a document refers to by its leaves and the earlier bodies that its head lists.
    ///
    /// # Errors
    /// A damaged record, and what the store reports.
    pub fn contents_of_document(&self, id: &str, head: &Head) -> Result<BTreeSet<keys::Digest>> {
        let snapshot = self.store().snapshot();
        let mut contents: BTreeSet<keys::Digest> =
            head.earlier.iter().flat_map(|body| body.contents.iter().copied()).collect();
        let winner = head.tree.winner().map(|winner| winner.revision);
        for leaf in head.tree.leaves() {
            let record = self.leaf_record(&snapshot, id, (leaf.revision, Some(leaf.revision) == winner))?;
            contents.extend(Leaf::decode(id, &record)?.contents(id)?);
        }
        Ok(contents)
    }
}
