//! A repository in a store of objects that speaks S3: `s3://BUCKET/PREFIX`.
//!
//! Endpoint, region and keys are those of the environment, as Amazon's own tools read them (`AWS_ENDPOINT_URL`,
//! `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`; `AWS_ALLOW_HTTP=true` for one without encryption).
//! Objects appear whole or not at all, so nothing has to be renamed. There are no locks: one backup at a time is for
//! the one who orders them to see to.

use std::any::Any;
use std::sync::Arc;

use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload, WriteMultipart};
use tokio::runtime::Runtime;

use crate::BackupError;
use crate::aligned::Buffer;
use crate::place::{BackupPlace, Pieces, Sink};

/// The beginning of such an address.
const SCHEME: &str = "s3://";

/// Parts of a large object; there may be 10,000, so that one of 80 GB is the largest.
const PART_BYTES: usize = 8 << 20;

/// Parts under way at once.
const PARTS_AT_ONCE: usize = 4;

/// A bucket, and the prefix of all names in it.
pub(crate) struct Remote {
    address: String,
    prefix: Path,
    store: Arc<dyn ObjectStore>,
    runtime: Arc<Runtime>,
}

/// Whether an address is one of these.
pub(crate) fn is_remote(address: &std::path::Path) -> bool {
    address.to_str().is_some_and(|address| address.starts_with(SCHEME))
}

impl Remote {
    pub(crate) fn open(address: &std::path::Path) -> Result<Self, BackupError> {
        let address = address.to_string_lossy().into_owned();
        let failed = |reason: String| BackupError::Remote { name: address.clone(), reason };
        let (store, prefix) = scrinium_objects::connect(&address, |builder| builder).map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        Ok(Self { prefix, store, runtime: Arc::new(runtime), address })
    }

    fn path(&self, name: &str) -> Path {
        name.split('/')
            .filter(|part| !part.is_empty())
            .fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn failed(&self, name: &str) -> impl Fn(object_store::Error) -> BackupError + use<> {
        let name = format!("{}/{name}", self.address);
        move |error| BackupError::Remote { name: name.clone(), reason: error.to_string() }
    }
}

impl BackupPlace for Remote {
    fn name(&self) -> String {
        self.address.clone()
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, BackupError> {
        let within = self.path(folder);
        let listed = self.store.list(Some(&within)).try_collect::<Vec<_>>();
        let listed = self.runtime.block_on(listed).map_err(self.failed(folder))?;
        let start = if self.prefix.as_ref().is_empty() { 0 } else { self.prefix.as_ref().len() + 1 };
        let name = |path: &Path| path.as_ref().get(start..).unwrap_or_default().to_owned();
        Ok(listed.iter().map(|object| (name(&object.location), object.size)).collect())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, BackupError> {
        let path = self.path(name);
        let read = async { self.store.get(&path).await?.bytes().await };
        match self.runtime.block_on(read) {
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            read => Ok(Some(read.map_err(self.failed(name))?.to_vec())),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), BackupError> {
        let path = self.path(name);
        let put = self.store.put(&path, PutPayload::from(bytes.to_vec()));
        self.runtime.block_on(put).map(drop).map_err(self.failed(name))
    }

    fn open(&self, name: &str) -> Result<Box<dyn Pieces>, BackupError> {
        let path = self.path(name);
        let found = self.runtime.block_on(self.store.head(&path)).map_err(self.failed(name))?;
        Ok(Box::new(ObjectReader {
            store: Arc::clone(&self.store),
            runtime: Arc::clone(&self.runtime),
            path,
            length: found.size,
            offset: 0,
            name: format!("{}/{name}", self.address),
        }))
    }

    fn create(&self, name: &str) -> Result<Box<dyn Sink + '_>, BackupError> {
        Ok(Box::new(ObjectWriter { place: self, name: name.to_owned(), start: Vec::new(), parts: None }))
    }

    fn remove(&self, name: &str) -> Result<(), BackupError> {
        let path = self.path(name);
        self.runtime.block_on(self.store.delete(&path)).map_err(self.failed(name))
    }

    fn settle(&self) -> Result<(), BackupError> {
        Ok(())
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn lock(&self, _alone: bool) -> Result<Box<dyn Any + Send>, BackupError> {
        Ok(Box::new(()))
    }
}

/// Reads an object range by range; each is tried again where the network fails.
struct ObjectReader {
    store: Arc<dyn ObjectStore>,
    runtime: Arc<Runtime>,
    path: Path,
    length: u64,
    offset: u64,
    name: String,
}

impl Pieces for ObjectReader {
    fn next(&mut self, buffer: &mut Buffer) -> Result<(), BackupError> {
        let failed = |reason: String| BackupError::Remote { name: self.name.clone(), reason };
        let wanted = (buffer.whole().len() as u64).min(self.length - self.offset);
        buffer.filled = 0;
        if wanted == 0 {
            return Ok(());
        }
        let range = self.offset..self.offset + wanted;
        let read = self.runtime.block_on(self.store.get_range(&self.path, range));
        let read = read.map_err(|error| failed(error.to_string()))?;
        let Some(space) = buffer.whole().get_mut(..read.len()).filter(|space| space.len() as u64 == wanted)
        else {
            return Err(failed(format!("{} bytes came instead of {wanted}", read.len())));
        };
        space.copy_from_slice(&read);
        buffer.filled = read.len();
        self.offset += wanted;
        Ok(())
    }
}

/// Writes an object: in one go, or in parts where it is large. Without `finish` there is none.
struct ObjectWriter<'a> {
    place: &'a Remote,
    name: String,
    /// What was put until it was clear that the object is large.
    start: Vec<u8>,
    parts: Option<WriteMultipart>,
}

impl Sink for ObjectWriter<'_> {
    fn put(&mut self, piece: &mut Buffer) -> Result<(), BackupError> {
        let runtime = Arc::clone(&self.place.runtime);
        let failed = self.place.failed(&self.name);
        if self.parts.is_none() && self.start.len() + piece.content().len() > PART_BYTES {
            let upload = runtime.block_on(self.place.store.put_multipart(&self.place.path(&self.name)));
            let _entered = runtime.enter();
            let mut parts = WriteMultipart::new_with_chunk_size(upload.map_err(&failed)?, PART_BYTES);
            parts.write(&std::mem::take(&mut self.start));
            self.parts = Some(parts);
        }
        let Some(parts) = &mut self.parts else {
            self.start.extend_from_slice(piece.content());
            return Ok(());
        };
        runtime.block_on(parts.wait_for_capacity(PARTS_AT_ONCE)).map_err(&failed)?;
        let _entered = runtime.enter();
        parts.write(piece.content());
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), BackupError> {
        match self.parts.take() {
            Some(parts) => {
                let finished = self.place.runtime.block_on(parts.finish());
                finished.map(drop).map_err(self.place.failed(&self.name))
            }
            None => self.place.write(&self.name, &std::mem::take(&mut self.start)),
        }
    }
}

impl Drop for ObjectWriter<'_> {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            // Parts that stay are no object; the store clears them away by its own rules.
            drop(self.place.runtime.block_on(parts.abort()));
        }
    }
}
