//! A bucket that is left alone for a while after it did not answer, so that nobody waits for it in vain; its errors
//! name the object.

use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use scrinium_clock::Clock;

use crate::bucket::{Bucket, BucketError, BucketWriter};
use crate::error::ObjectError;
use crate::figures::Figures;
use crate::name::ObjectName;

/// So long it is not asked again.
const LEFT_ALONE_FOR: Duration = Duration::from_secs(5);

pub(crate) struct Guarded {
    address: String,
    bucket: Box<dyn Bucket>,
    clock: Clock,
    /// Until when it is left alone, and why.
    away: Mutex<Option<(Instant, String)>>,
}

/// Takes an object piece by piece.
pub(crate) struct GuardedWriter<'a> {
    guarded: &'a Guarded,
    figures: Figures,
    name: String,
    writer: Box<dyn BucketWriter + 'a>,
}

impl Guarded {
    pub(crate) fn new(address: &str, bucket: Box<dyn Bucket>, clock: Clock) -> Self {
        Self { address: address.to_owned(), bucket, clock, away: Mutex::default() }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    fn asked<'a, T>(
        &'a self,
        name: &str,
        figures: &Figures,
        ask: impl FnOnce(&'a dyn Bucket) -> Result<T, BucketError>,
    ) -> Result<T, ObjectError> {
        if let Some((until, reason)) = &*self.away.lock()
            && self.clock.instant() < *until
        {
            let (address, reason) = (self.address.clone(), reason.clone());
            return Err(ObjectError::Away { address, reason });
        }
        ask(self.bucket.as_ref()).map_err(|error| self.failed(name, figures, error))
    }

    fn failed(&self, name: &str, figures: &Figures, error: BucketError) -> ObjectError {
        figures.failures.add(1);
        if let BucketError::Away(reason) = &error {
            tracing::warn!(address = self.address, name, reason, "the attachment store did not answer");
            *self.away.lock() = Some((self.clock.instant() + LEFT_ALONE_FOR, reason.clone()));
        }
        ObjectError::of_bucket(&self.address, name, error)
    }

    pub(crate) fn begin(
        &self,
        name: &ObjectName,
        figures: &Figures,
    ) -> Result<GuardedWriter<'_>, ObjectError> {
        let name = name.to_string();
        let writer = self.asked(&name, figures, |bucket| bucket.begin(&name))?;
        Ok(GuardedWriter { guarded: self, figures: figures.clone(), name, writer })
    }

    pub(crate) fn read(
        &self,
        name: &ObjectName,
        (from, to): (u64, u64),
        figures: &Figures,
    ) -> Result<Bytes, ObjectError> {
        let name = name.to_string();
        let bytes = self.asked(&name, figures, |bucket| bucket.read(&name, from, to))?;
        if bytes.len() as u64 != to - from {
            let problem = format!("{} bytes came instead of {}", bytes.len(), to - from);
            return Err(ObjectError::Damaged { object: format!("{}/{name}", self.address), problem });
        }
        Ok(bytes)
    }

    pub(crate) fn size(&self, name: &ObjectName, figures: &Figures) -> Result<Option<u64>, ObjectError> {
        let name = name.to_string();
        self.asked(&name, figures, |bucket| bucket.size(&name))
    }

    pub(crate) fn remove(&self, name: &ObjectName, figures: &Figures) -> Result<(), ObjectError> {
        let name = name.to_string();
        self.asked(&name, figures, |bucket| bucket.remove(&name))
    }

    pub(crate) fn list(&self, folder: &str, figures: &Figures) -> Result<Vec<(String, u64)>, ObjectError> {
        self.asked(folder, figures, |bucket| bucket.list(folder))
    }
}

impl GuardedWriter<'_> {
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), ObjectError> {
        self.writer.put(bytes).map_err(|error| self.guarded.failed(&self.name, &self.figures, error))
    }

    pub(crate) fn finish(self) -> Result<(), ObjectError> {
        self.writer.finish().map_err(|error| self.guarded.failed(&self.name, &self.figures, error))
    }
}
