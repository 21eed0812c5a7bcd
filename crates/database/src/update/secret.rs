//! What only the server may see of a document, as updates write it.

use std::sync::Arc;

use crate::database::Database;
use crate::edit::Prepared;
use crate::error::{DatabaseError, Result};
use crate::guard::{Secret, SecretChange};
use crate::keys;
use crate::update::{Transaction, Update};
use crate::writer::PrefetchedHeads;

impl Database {
    /// Changes what only the server may see of a document that is there. No revision is made of it, and no feed shows it.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] where the document is not there, what the change says, and what the store reports.
    pub fn change_secret(self: &Arc<Self>, id: &str, change: SecretChange) -> Result<Update<()>> {
        const ROOM_BYTES: usize = 4096;
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.change_secret(id, change),
        };
        self.check_there()?;
        let prefetched = PrefetchedHeads::read(self, std::iter::once(id))?;
        self.transact(prefetched, ROOM_BYTES, |transaction| {
            transaction.each(vec![change], |transaction, change| {
                if !transaction.is_alive(id)? {
                    return Err(DatabaseError::missing());
                }
                transaction.change_secret(id, &change)
            })
        })
    }
}

impl Transaction<'_> {
    /// It follows the document; a leaf that loses may be deleted while the document stays.
    pub(super) fn keep_secret(&mut self, edit: &Prepared, is_gone: bool) -> Result<()> {
        let key = || keys::secret(self.database.number(), &edit.id);
        match &edit.secret {
            Secret::Set(secret) if !edit.deleted => {
                self.records.put(&mut self.batch, key(), secret.to_vec());
                Ok(())
            }
            Secret::Remove if is_gone || !edit.deleted => {
                self.records.delete(&mut self.batch, key());
                Ok(())
            }
            Secret::Change(change) if !edit.deleted => self.change_secret(&edit.id, change),
            Secret::Keep | Secret::Set(_) | Secret::Remove | Secret::Change(_) => Ok(()),
        }
    }

    fn change_secret(&mut self, id: &str, change: &SecretChange) -> Result<()> {
        let key = keys::secret(self.database.number(), id);
        let present = self.records.get(&key)?;
        match change.make(present.as_deref())? {
            Some(secret) if present.as_ref() != Some(&secret) => {
                self.records.put(&mut self.batch, key, secret.to_vec());
            }
            None if present.is_some() => self.records.delete(&mut self.batch, key),
            Some(_) | None => {}
        }
        Ok(())
    }
}
