//! Bringing a database of another store in, under a new name: how one database is restored beside the live one.
//!
//! Everything that is the database's own comes along as it is: documents with their whole trees of revisions, change
//! numbers, local documents, folders, marks, security. Contents are stored once, as always. Indexes are built anew.

use std::sync::Arc;

use scrinium_store::{Batch, Direction, Family, KeyRange, Snapshot};

use crate::content::upload::Upload;
use crate::content::{Content, Contents, hex};
use crate::database::Database;
use crate::databases::{Databases, number_of};
use crate::error::{DatabaseError, Result};
use crate::head::Head;
use crate::header::Header;
use crate::keys::{self, Digest};
use crate::names;

/// So much is committed at once.
const BATCH_BYTES: usize = 4 << 20;

/// Contents that are held until their batch is stored.
const CONTENTS_AT_ONCE: usize = 1000;

/// A copy under way.
struct Copy<'a> {
    to: &'a Databases,
    from: &'a Databases,
    snapshot: Arc<Snapshot>,
    old: u32,
    new: u32,
    batch: Batch,
    held: Vec<Content>,
    /// Is told how many more keys were copied; false stops it.
    advance: &'a mut dyn FnMut(u64) -> bool,
    keys: u64,
}

impl Databases {
    /// Makes a database called `name` of the one that `others`, of another store, call `from`. It is there as a whole
    /// when this returns, or not at all. `advance` is told how many more keys were copied, and stops it by `false`.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if there is none to bring in, [`DatabaseError::Exists`], a name that is not
    /// allowed, [`DatabaseError::Unavailable`] if it was stopped, and what the stores report.
    pub fn adopt(
        &self,
        others: &Self,
        from: &str,
        name: &str,
        advance: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Arc<Database>> {
        names::validate(name)?;
        self.check_free(name)?;
        let snapshot = Arc::new(others.store().snapshot());
        let old = snapshot.get(Family::Meta, &keys::database_by_name(from))?;
        let old = old.ok_or_else(DatabaseError::no_database)?;
        let old = number_of(&old).ok_or_else(|| DatabaseError::damaged("number", from))?;
        let header = snapshot.get(Family::Meta, &keys::header(old))?;
        let header = header.and_then(|header| Header::decode(&header));
        let header = header.ok_or_else(|| DatabaseError::damaged("header", from))?;
        let header = Header { name: name.to_owned(), uuid: rand::random(), ..header };
        // Until it has its name it counts as one that was dropped, so that a crash leaves nothing.
        let (new, _adopting) = self.reserve_number(&header)?;
        let (batch, held) = (Batch::new(), Vec::new());
        let mut copy = Copy { to: self, from: others, snapshot, old, new, batch, held, advance, keys: 0 };
        copy.heads()?;
        for family in [Family::Point, Family::Scan, Family::Churn] {
            copy.family(family)?;
        }
        copy.meta()?;
        copy.commit()?;
        self.give_name(new, name)
    }
}

impl Copy<'_> {
    /// The documents' heads, each with the contents that it refers to.
    fn heads(&mut self) -> Result<()> {
        let (from, to) = keys::head_range(self.old);
        self.each(Family::Point, &from, &to, |this, key, value| {
            let damaged = || DatabaseError::damaged("head", keys::id_of(key).unwrap_or_default());
            let head = Head::decode(value).ok_or_else(damaged)?;
            let id = keys::id_of(key).ok_or_else(damaged)?;
            for digest in &head.contents {
                this.content(digest)?;
                this.batch.put(Family::Point, &keys::reference(digest, this.new, id), &[]);
            }
            this.batch.put(Family::Point, &keys::head(this.new, id), value);
            Ok(())
        })
    }

    /// All other keys of the database.
    fn family(&mut self, family: Family) -> Result<()> {
        let (from, to) = keys::database_range(self.old);
        let heads = keys::head_range(self.old);
        self.each(family, &from, &to, |this, key, value| {
            let is_head = family == Family::Point && *key >= *heads.0 && *key < *heads.1;
            if !is_head && let Some(rest) = key.get(4..) {
                let key = [this.new.to_be_bytes().as_slice(), rest].concat();
                this.batch.put(family, &key, value);
            }
            Ok(())
        })
    }

    /// What lies apart: security, access control, folders that are being removed.
    fn meta(&mut self) -> Result<()> {
        for key in [keys::security, keys::access_list, keys::properties] {
            if let Some(value) = self.snapshot.get(Family::Meta, &key(self.old))? {
                self.batch.put(Family::Meta, &key(self.new), &value);
            }
        }
        let (from, to) = keys::DROPPED_FOLDER_RANGE;
        self.each(Family::Meta, from, to, |this, key, value| {
            if let Some((database, folder)) = keys::dropped_folder_of(key)
                && database == this.old
            {
                this.batch.put(Family::Meta, &keys::dropped_folder(this.new, folder), value);
            }
            Ok(())
        })
    }

    /// Calls `copy` for each key of a range, and commits now and then.
    fn each(
        &mut self,
        family: Family,
        from: &[u8],
        to: &[u8],
        mut copy: impl FnMut(&mut Self, &[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let snapshot = Arc::clone(&self.snapshot);
        let options = scrinium_store::ScanOptions::long(Direction::Forward);
        let mut cursor = snapshot.cursor_with(family, KeyRange::new(from, to), options);
        while let Some((key, value)) = cursor.next()? {
            copy(self, key, value)?;
            self.keys += 1;
            if self.batch.len_bytes() >= BATCH_BYTES || self.held.len() >= CONTENTS_AT_ONCE {
                self.commit()?;
            }
        }
        Ok(())
    }

    /// Has a content that is not here stored with the batch.
    fn content(&mut self, digest: &Digest) -> Result<()> {
        let contents: &Contents = self.to.contents();
        if let Some(content) = contents.hold(digest)? {
            self.held.push(content);
            return Ok(());
        }
        let reader = self.from.contents().reader(digest)?;
        // Compressed is what can be, as it was.
        let mut upload = Upload::new(contents, "text/plain", u64::MAX);
        match reader.each(|piece| upload.write(piece).map(|()| true)) {
            // Its store of objects has lost it. Documents come along all the same, and a fixup names them.
            Err(DatabaseError::Internal { reason }) if reader.is_object() => {
                tracing::warn!(reason, "an attachment is not brought in");
                return Ok(());
            }
            read => read?,
        }
        let content = upload.finish()?;
        if content.name() != digest {
            // Under its own name nobody would find it, and under this one it must not lie.
            return Err(DatabaseError::damaged("content", &hex(digest)));
        }
        content.write(&mut self.batch);
        self.held.push(content);
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.to.store().commit(std::mem::take(&mut self.batch))?;
        for content in self.held.drain(..) {
            content.stored();
        }
        if (self.advance)(std::mem::take(&mut self.keys)) {
            Ok(())
        } else {
            Err(DatabaseError::Unavailable { reason: "It was told to stop; nothing was made.".to_owned() })
        }
    }
}
