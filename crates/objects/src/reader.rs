//! Reading an object at any offset, checked, through the cache.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::error::ObjectError;
use crate::format::{PIECE_BYTES, Table, pieces, table_bytes};
use crate::guarded::Guarded;
use crate::name::ObjectName;
use crate::objects::{Objects, Stored};

/// At most this many pieces are fetched at once and lie in one file of the cache: 4 MB, since each request costs time.
pub(crate) const BLOCK_PIECES: u64 = 16;

/// The file of the cache that a block is in.
pub(crate) fn block_name(name: &ObjectName, block: u64) -> String {
    format!("{}.{block}", name.file())
}

/// A stored object, readable at any offset.
pub struct ObjectReader {
    objects: Objects,
    address: String,
    stored: Stored,
    table: OnceLock<Arc<Table>>,
}

impl ObjectReader {
    pub(crate) fn new(objects: Objects, address: &str, stored: Stored) -> Self {
        Self { objects, address: address.to_owned(), stored, table: OnceLock::new() }
    }

    /// At most `max_bytes` from `offset`, of one piece; empty at the end.
    ///
    /// # Errors
    /// [`ObjectError`]
    pub fn read(&self, offset: u64, max_bytes: usize) -> Result<Bytes, ObjectError> {
        if offset >= self.stored.length {
            return Ok(Bytes::new());
        }
        let piece = self.piece(offset / PIECE_BYTES)?;
        let start = usize::try_from(offset % PIECE_BYTES).unwrap_or(usize::MAX).min(piece.len());
        Ok(piece.slice(start..start.saturating_add(max_bytes).min(piece.len())))
    }

    /// Gives all pieces in order, past the cache, with one request for several; `take` ends it by `false`.
    ///
    /// # Errors
    /// [`ObjectError`], and what `take` answers.
    pub fn each<E: From<ObjectError>>(
        &self,
        mut take: impl FnMut(&[u8]) -> Result<bool, E>,
    ) -> Result<(), E> {
        let bucket = self.objects.shared.bucket(&self.address)?;
        let table = self.table(&bucket)?;
        for block in 0..pieces(self.stored.length).div_ceil(BLOCK_PIECES) {
            let (first, behind) = self.pieces_of(block);
            let range = table.range(first, behind).ok_or_else(|| self.damaged("its table is too short"))?;
            let fetched = self.fetch(&bucket, range)?;
            for number in first..behind {
                let piece = self.cut(&table, number, (&fetched, range.0));
                if !take(&piece.ok_or_else(|| self.wrong(number))?)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn damaged(&self, problem: impl Into<String>) -> ObjectError {
        ObjectError::Damaged {
            object: format!("{}/{}", self.address, self.stored.name),
            problem: problem.into(),
        }
    }

    fn wrong(&self, number: u64) -> ObjectError {
        self.objects.shared.figures().failures.add(1);
        self.damaged(format!("piece {number} has another checksum"))
    }

    fn pieces_of(&self, block: u64) -> (u64, u64) {
        let first = block * BLOCK_PIECES;
        (first, (first + BLOCK_PIECES).min(pieces(self.stored.length)))
    }

    /// A range of the object as its store has it.
    fn fetch(&self, bucket: &Guarded, range: (u64, u64)) -> Result<Bytes, ObjectError> {
        let shared = &self.objects.shared;
        let _inside = shared.enter_to_read(bucket)?;
        let figures = shared.figures();
        let _timer = figures.read_time.start();
        let bytes = bucket.read(&self.stored.name, range, &figures)?;
        figures.reads.add(1);
        figures.read_bytes.add(bytes.len() as u64);
        Ok(bytes)
    }

    fn table(&self, bucket: &Guarded) -> Result<Arc<Table>, ObjectError> {
        if let Some(table) = self.table.get() {
            return Ok(Arc::clone(table));
        }
        let Stored { name, length, stored_bytes } = &self.stored;
        let bytes = table_bytes(*length);
        let from = stored_bytes.checked_sub(bytes).ok_or_else(|| self.damaged("it is too short"))?;
        let cache = &self.objects.shared.cache;
        let file = format!("{}.table", name.file());
        let decode = |bytes: &[u8]| Table::decode(bytes, &name.digest, *length, *stored_bytes);
        let cached = cache.read(&file, (0, bytes)).and_then(|bytes| {
            let table = decode(&bytes);
            if table.is_none() {
                cache.forget(&file);
            }
            table
        });
        let table = match cached {
            Some(table) => table,
            None => {
                let bytes = self.fetch(bucket, (from, *stored_bytes))?;
                let table = decode(&bytes).ok_or_else(|| self.damaged("its table has another checksum"))?;
                cache.put(&file, &bytes);
                table
            }
        };
        Ok(Arc::clone(self.table.get_or_init(|| Arc::new(table))))
    }

    /// A piece, out of bytes of the object that begin at `begin`.
    fn cut(&self, table: &Table, number: u64, (bytes, begin): (&Bytes, u64)) -> Option<Bytes> {
        let (from, to) = table.range(number, number + 1)?;
        let from = usize::try_from(from.checked_sub(begin)?).ok()?;
        let to = usize::try_from(to.checked_sub(begin)?).ok()?;
        let stored = bytes.get(from..to).map(|stored| bytes.slice_ref(stored))?;
        table.open(number, &stored, self.stored.length)
    }

    fn piece(&self, number: u64) -> Result<Bytes, ObjectError> {
        let shared = &self.objects.shared;
        let bucket = shared.bucket(&self.address)?;
        let table = self.table(&bucket)?;
        let too_short = || self.damaged("its table is too short");
        let own = table.range(number, number + 1).ok_or_else(too_short)?;
        if !shared.cache.is_used() {
            let fetched = self.fetch(&bucket, own)?;
            return self.cut(&table, number, (&fetched, own.0)).ok_or_else(|| self.wrong(number));
        }
        let block = number / BLOCK_PIECES;
        let name = block_name(&self.stored.name, block);
        let (first, behind) = self.pieces_of(block);
        let range = table.range(first, behind).ok_or_else(too_short)?;
        if let Some(piece) = self.cached(&table, number, &name, range) {
            return Ok(piece);
        }
        let fetch = shared.fetching.begin(&name);
        let _fetch = fetch.ok_or_else(|| ObjectError::Busy { address: self.address.clone() })?;
        // Another one may have fetched it meanwhile.
        if let Some(piece) = self.cached(&table, number, &name, range) {
            return Ok(piece);
        }
        shared.figures().cache_misses.add(1);
        let fetched = self.fetch(&bucket, range)?;
        let piece = self.cut(&table, number, (&fetched, range.0)).ok_or_else(|| self.wrong(number))?;
        shared.cache.put(&name, &fetched);
        Ok(piece)
    }

    fn cached(&self, table: &Table, number: u64, name: &str, range: (u64, u64)) -> Option<Bytes> {
        let shared = &self.objects.shared;
        let (from, to) = table.range(number, number + 1)?;
        let bytes = shared.cache.read(name, (from - range.0, to - range.0))?;
        let piece = table.open(number, &bytes, self.stored.length);
        if piece.is_some() {
            shared.figures().cache_hits.add(1);
        } else {
            shared.cache.forget(name);
        }
        piece
    }
}
