//! Bringing the keys of a database from one store into another, under another number.
//!
//! Everything that is the database's own comes along as it is: documents with their whole trees of revisions, change
//! numbers, local documents, folders, marks, security. Contents are stored once in each store.

use scrinium_contents::{Brought, Content, Contents, hex};
use scrinium_database::context::StoreContext;
use scrinium_database::head::Head;
use scrinium_database::keys::{self, Digest};
use scrinium_database::{DatabaseError, Result};
use scrinium_store::{Batch, Direction, Family, KeyRange, Snapshot};

/// So much is committed at once, and no more than a part of what the store takes.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_PART: usize = 4;

/// This many bytes of contents are copied between two commits.
const CONTENT_BYTES_AT_ONCE: u64 = 16 << 20;

/// Contents that are held until their batch is stored.
const CONTENTS_AT_ONCE: usize = 1000;

/// What is done with a document of which a content cannot be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incomplete {
    /// It is damage.
    Refuse,
    /// It may have changed meanwhile: it is left out, and remembered.
    Later,
    /// It was damaged before, and stays so.
    Keep,
}

/// A transfer under way.
pub(crate) struct Transfer<'a> {
    from: &'a Contents,
    to: &'a StoreContext,
    old: u32,
    new: u32,
    batch: Batch,
    held: Vec<Content>,
    pub(crate) incomplete: Incomplete,
    /// Objects that are lost keep no document from coming along, because what it comes from is kept, or is a copy; a
    /// fixup names them. Else nothing is lost for good by a store of objects that is not as it should be just now.
    pub(crate) without_lost: bool,
    /// Somebody waits: documents with a content that a store of objects must be asked for are left out as well.
    pub(crate) in_haste: bool,
    /// Keys of documents that were left out, as they are in the first store.
    left_out: Vec<Vec<u8>>,
    /// Bytes of contents that were not there, uncompressed.
    pub(crate) copied_bytes: u64,
    /// Those since the last commit.
    uncommitted_bytes: u64,
}

impl<'a> Transfer<'a> {
    pub(crate) fn new(from: &'a Contents, to: &'a StoreContext, (old, new): (u32, u32)) -> Self {
        let (batch, held, left_out) = (Batch::new(), Vec::new(), Vec::new());
        Self {
            from,
            to,
            old,
            new,
            batch,
            held,
            incomplete: Incomplete::Refuse,
            without_lost: false,
            in_haste: false,
            left_out,
            copied_bytes: 0,
            uncommitted_bytes: 0,
        }
    }

    /// The key that a key of the database becomes.
    pub(crate) fn renumbered(&self, key: &[u8]) -> Vec<u8> {
        [&self.new.to_be_bytes()[..], key.get(4..).unwrap_or_default()].concat()
    }

    /// Gives a key the value that it has in the first store; `None`: it is not there. No document twice before the next
    /// [`commit`](Self::commit).
    pub(crate) fn set(&mut self, family: Family, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        if family == Family::Point && key.get(4) == Some(&b'h') {
            return self.set_head(key, value);
        }
        self.make_room(value.map_or(0, <[u8]>::len))?;
        let new = self.renumbered(key);
        match value {
            Some(value) => self.batch.put(family, &new, value),
            None => self.batch.delete(family, &new),
        }
        Ok(())
    }

    /// A document's head, with the contents that it refers to.
    fn set_head(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let damaged = || DatabaseError::damaged("head", keys::id_of(key).unwrap_or_default());
        let id = keys::id_of(key).ok_or_else(damaged)?;
        let contents = match value {
            Some(value) => Head::decode(value).ok_or_else(damaged)?.contents,
            None => Vec::new(),
        };
        self.make_room(value.map_or(0, <[u8]>::len))?;
        for (number, digest) in contents.iter().enumerate() {
            if !self.content(digest)? {
                self.left_out.push(key.to_vec());
                return Ok(());
            }
            if self.batch.len_bytes() >= self.batch_bytes() {
                // Its document comes with a later batch: until then it is one that nobody may need.
                for digest in contents.iter().take(number + 1) {
                    self.batch.put(Family::Point, &keys::collectable(digest), &[]);
                }
                self.write()?;
            }
        }
        let new = keys::head(self.new, id);
        let before = self.to.store.get(Family::Point, &new)?;
        let before = before.and_then(|before| Head::decode(&before)).map(|before| before.contents);
        for digest in before.iter().flatten().filter(|digest| !contents.contains(digest)) {
            self.batch.delete(Family::Point, &keys::reference(digest, self.new, id));
            self.batch.put(Family::Point, &keys::collectable(digest), &[]);
        }
        for digest in &contents {
            self.batch.put(Family::Point, &keys::reference(digest, self.new, id), &[]);
        }
        match value {
            Some(value) => self.batch.put(Family::Point, &new, value),
            None => self.batch.delete(Family::Point, &new),
        }
        Ok(())
    }

    /// What lies apart, as `snapshot` has it: security, access control, properties, what compactions have noted, folders
    /// that are being removed.
    pub(crate) fn set_apart(&mut self, snapshot: &Snapshot) -> Result<()> {
        for key in keys::APART {
            match snapshot.get(Family::Meta, &key(self.old))? {
                Some(value) => self.batch.put(Family::Meta, &key(self.new), &value),
                None => self.batch.delete(Family::Meta, &key(self.new)),
            }
        }
        let (from, to) = keys::DROPPED_FOLDER_RANGE;
        let mut cursor = snapshot.cursor(Family::Meta, KeyRange::new(from, to), Direction::Forward);
        while let Some((key, value)) = cursor.next()? {
            if let Some((database, folder)) = keys::dropped_folder_of(key)
                && database == self.old
            {
                self.batch.put(Family::Meta, &keys::dropped_folder(self.new, folder), value);
            }
        }
        Ok(())
    }

    /// Sets the database's header.
    pub(crate) fn set_header(&mut self, header: &[u8]) {
        self.batch.put(Family::Meta, &keys::header(self.new), header);
    }

    /// Stores a content with the batch, if it is not there; false if its document is to be left out.
    fn content(&mut self, digest: &Digest) -> Result<bool> {
        if self.in_haste && self.to.contents.asks_objects(self.from, digest)? {
            return Ok(false);
        }
        match self.to.contents.bring(self.from, digest)? {
            Brought::Here(content) => {
                if content.is_new() {
                    self.copied_bytes += content.length();
                    self.uncommitted_bytes += content.length();
                }
                content.write(&mut self.batch);
                self.held.push(content);
                Ok(true)
            }
            Brought::Lost(reason) if self.without_lost => {
                tracing::warn!(content = hex(digest), reason, "an attachment is not moved");
                Ok(true)
            }
            Brought::Lost(reason) => Err(DatabaseError::Internal {
                reason: format!("{reason} Nothing was moved; load fixup names the documents that need it."),
            }),
            Brought::Missing => match self.incomplete {
                Incomplete::Later => Ok(false),
                Incomplete::Keep => Ok(true),
                Incomplete::Refuse => Err(DatabaseError::damaged("content", &hex(digest))),
            },
        }
    }

    fn batch_bytes(&self) -> usize {
        BATCH_BYTES.min(self.to.store.batch_max_bytes() / BATCH_PART)
    }

    /// Writes what has gathered, where a value of this many bytes might be too much with it.
    fn make_room(&mut self, value_bytes: usize) -> Result<()> {
        let is_too_much = self.batch.len_bytes() + value_bytes > self.to.store.batch_max_bytes() / 2;
        if is_too_much && !self.batch.is_empty() { self.write() } else { Ok(()) }
    }

    /// Makes durable what has gathered, while contents are held on.
    fn write(&mut self) -> Result<()> {
        self.to.store.commit(std::mem::take(&mut self.batch))?;
        self.uncommitted_bytes = 0;
        self.held.iter().for_each(Content::stored);
        Ok(())
    }

    /// Whether enough has gathered to be committed.
    pub(crate) fn is_full(&self) -> bool {
        self.batch.len_bytes() >= self.batch_bytes()
            || self.held.len() >= CONTENTS_AT_ONCE
            || self.uncommitted_bytes >= CONTENT_BYTES_AT_ONCE
    }

    /// Makes all of it durable.
    pub(crate) fn commit(&mut self) -> Result<()> {
        self.write()?;
        self.held.clear();
        Ok(())
    }

    /// Documents that were left out since this was asked last.
    pub(crate) fn take_left_out(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.left_out)
    }
}
