//! Deleted is not gone: a message that was in a folder when it was deleted can be had back for some days.
//!
//! Its body stays where earlier bodies of documents are ([`crate::history`]), so that nothing is copied, its attachments stay, and it
//! moves, is backed up and is checked with its document. It counts for no quota. A record by time says which bodies these are, where the
//! messages lay and who had read them; both come and go in one batch. Bodies end when they are too old, when a database keeps
//! too many bytes of them, the oldest first, and when a document is purged; while the database is under legal hold, none does.
//! Each replica keeps what was deleted there, by whatever way the deletion came.

use std::sync::Arc;

use scrinium_store::{Direction, Family, KeyRange};
use serde_json::Value;

use crate::access::Access;
use crate::database::Database;
use crate::deletion::{
    DeletedKey, DeletedMessage, DeletedPage, DeletedSums, Deletion, UndeleteLimits, Undeleted, text_of,
};
use crate::error::{DatabaseError, Result};
use crate::keys;
use crate::leaf::Leaf;
use crate::writer::PrefetchedHeads;

pub use crate::update::undelete::{LetGo, is_kept};

impl Database {
    /// For how long deleted messages can be had back here, and how many bytes of them.
    #[must_use]
    pub fn undelete_limits(&self) -> UndeleteLimits {
        let (own, options) = (*self.undelete.read(), self.context.options());
        let is_meant = self.name().starts_with(options.undelete_prefix);
        let days = if is_meant { options.undelete.days } else { 0 };
        UndeleteLimits { days: own.days.unwrap_or(days), bytes: own.bytes.unwrap_or(options.undelete.bytes) }
    }

    /// How many deleted messages it keeps.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn deleted_sums(&self) -> Result<DeletedSums> {
        self.check_there()?;
        let stored = self.store().get(Family::Point, &keys::deleted_sums(self.number()))?;
        let damaged = || DatabaseError::damaged("sum of deleted messages", self.name());
        stored.map_or(Ok(DeletedSums::default()), |stored| DeletedSums::decode(&stored).ok_or_else(damaged))
    }

    /// Deleted messages, the oldest first, from `from` on: of at most `examined_max`, those that somebody may read, with some of
    /// their fields.
    ///
    /// # Errors
    /// The database is gone, a record is damaged, and what the store reports.
    pub fn deleted_messages(
        &self,
        from: Option<&DeletedKey>,
        (fields, examined_max): (&[&str], usize),
        access: &Access,
    ) -> Result<DeletedPage> {
        self.check_there()?;
        let number = self.number();
        let (first, to) = keys::deleted_range(number);
        let from = from.map_or(first, |from| from.key(number));
        let snapshot = self.store().snapshot();
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Scan, range, Direction::Forward);
        let (mut page, mut examined) = (DeletedPage::default(), 0);
        while let Some((key, stored)) = cursor.next()? {
            let damaged = || DatabaseError::damaged("deleted message", self.name());
            let key = DeletedKey::of(key).ok_or_else(damaged)?;
            if examined >= examined_max {
                page.next = Some(key);
                break;
            }
            examined += 1;
            let Deletion { bytes, places, .. } = Deletion::decode(stored).ok_or_else(damaged)?;
            let revision = scrinium_document::Revision::parse(&key.revision)?;
            let Some(body) = snapshot.get(Family::Scan, &keys::earlier(number, &key.id, &revision))? else {
                continue;
            };
            let leaf = Leaf::decode(&key.id, &body)?;
            let Some(leaf) = access.readable(self, &key.id, leaf)? else { continue };
            let all = leaf.fields(&key.id)?;
            let fields = fields.iter().map(|name| text_of(&all, name).unwrap_or(Value::Null)).collect();
            let folders = places.into_iter().map(|(folder, _)| folder).collect();
            page.messages.push(DeletedMessage { key, bytes, folders, fields });
        }
        Ok(page)
    }

    /// Restores a deleted message into the folders that it was in, which are made if they are gone, or into `folder`: its fields,
    /// attachments and flags, the date when it came, and who had read it. Durable when this returns, and done once: a second call finds
    /// nothing.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if it is not kept, [`DatabaseError::Exists`] if its document is there again, a full database,
    /// and what the store reports.
    pub fn undelete(
        self: &Arc<Self>,
        which: &DeletedKey,
        folder: Option<&str>,
        access: &Access,
    ) -> Result<Undeleted> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.undelete(which, folder, access),
        };
        self.check_there()?;
        let prefetched = PrefetchedHeads::read(self, std::iter::once(which.id.as_str()))?;
        let update =
            self.transact(prefetched, 4096, |transaction| vec![transaction.undelete(which, folder, access)])?;
        update.wait()?.into_iter().next().unwrap_or_else(|| Err(DatabaseError::missing()))
    }
}
