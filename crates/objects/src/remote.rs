//! A store of objects that speaks S3.
//!
//! Endpoint, region and keys are those of the environment, as Amazon's own tools read them (`AWS_ENDPOINT_URL`,
//! `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`; `AWS_ALLOW_HTTP=true` for one without encryption).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientConfigKey, Error, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig,
    WriteMultipart,
};
use tokio::runtime::Runtime;

use crate::bucket::{Bucket, BucketError, BucketWriter};

/// The beginning of such an address.
pub(crate) const S3_SCHEME: &str = "s3://";

/// Parts of a large object: the smallest that S3 takes, since memory holds some of each upload.
const PART_BYTES: usize = 5 << 20;

/// Parts under way at once.
const PARTS_AT_ONCE: usize = 2;

/// A request is tried again so often, for so long.
const TRIES: usize = 3;
const TRY_AGAIN_FOR: Duration = Duration::from_secs(15);

const CONNECT_WITHIN: &str = "5s";

/// One request with its answer.
const ANSWER_WITHIN: &str = "30s";

/// A bucket, and the prefix of all names in it.
pub(crate) struct Remote {
    prefix: Path,
    store: Arc<dyn ObjectStore>,
    runtime: &'static Runtime,
}

/// The bucket and the prefix that `s3://BUCKET/PREFIX` names, with what the environment says of it and whatever else
/// is to hold for it.
///
/// # Errors
/// In words.
pub fn connect(
    address: &str,
    options: impl FnOnce(AmazonS3Builder) -> AmazonS3Builder,
) -> Result<(Arc<dyn ObjectStore>, Path), String> {
    let rest = address.strip_prefix(S3_SCHEME).unwrap_or_default();
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err("it names no bucket; write s3://BUCKET/PREFIX".to_owned());
    }
    // Another part of the program may have said so already, and the same.
    drop(rustls::crypto::ring::default_provider().install_default());
    let store = options(AmazonS3Builder::from_env().with_bucket_name(bucket)).build();
    let store = store.map_err(|error| error.to_string())?;
    Ok((Arc::new(store), Path::from(prefix.trim_matches('/'))))
}

/// Threads for the network, made when they are needed first and never ended.
fn runtime() -> Result<&'static Runtime, String> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder
            .worker_threads(2)
            .thread_name("objects")
            .enable_all()
            .build()
            .map_err(|error| error.to_string())
    });
    made.as_ref().map_err(Clone::clone)
}

impl Remote {
    pub(crate) fn open(address: &str) -> Result<Self, String> {
        let (store, prefix) = connect(address, |builder| {
            builder
                .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::ConnectTimeout), CONNECT_WITHIN)
                .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), ANSWER_WITHIN)
                .with_retry(RetryConfig {
                    backoff: BackoffConfig::default(),
                    max_retries: TRIES,
                    retry_timeout: TRY_AGAIN_FOR,
                })
        })?;
        Ok(Self { prefix, store, runtime: runtime()? })
    }

    fn path(&self, name: &str) -> Path {
        name.split('/')
            .filter(|part| !part.is_empty())
            .fold(self.prefix.clone(), |path, part| path.join(part))
    }
}

fn failed(error: Error) -> BucketError {
    match error {
        Error::NotFound { .. } => BucketError::Missing,
        Error::PermissionDenied { .. }
        | Error::Unauthenticated { .. }
        | Error::InvalidPath { .. }
        | Error::NotSupported { .. }
        | Error::NotImplemented { .. } => BucketError::Refused(error.to_string()),
        other => BucketError::Away(other.to_string()),
    }
}

impl Bucket for Remote {
    fn begin(&self, name: &str) -> Result<Box<dyn BucketWriter + '_>, BucketError> {
        Ok(Box::new(Writer { remote: self, path: self.path(name), start: Vec::new(), parts: None }))
    }

    fn read(&self, name: &str, from: u64, to: u64) -> Result<Bytes, BucketError> {
        let path = self.path(name);
        self.runtime.block_on(self.store.get_range(&path, from..to)).map_err(failed)
    }

    fn size(&self, name: &str) -> Result<Option<u64>, BucketError> {
        let path = self.path(name);
        match self.runtime.block_on(self.store.head(&path)).map_err(failed) {
            Ok(found) => Ok(Some(found.size)),
            Err(BucketError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        let path = self.path(name);
        match self.runtime.block_on(self.store.delete(&path)).map_err(failed) {
            Err(BucketError::Missing) => Ok(()),
            removed => removed,
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, BucketError> {
        let within = self.path(folder);
        let listed = self.store.list(Some(&within)).try_collect::<Vec<_>>();
        let listed = self.runtime.block_on(listed).map_err(failed)?;
        let start = if self.prefix.as_ref().is_empty() { 0 } else { self.prefix.as_ref().len() + 1 };
        let name = |path: &Path| path.as_ref().get(start..).unwrap_or_default().to_owned();
        Ok(listed.iter().map(|object| (name(&object.location), object.size)).collect())
    }
}

/// Writes an object: in one go, or in parts where it is large.
struct Writer<'a> {
    remote: &'a Remote,
    path: Path,
    /// What was put until it was clear that the object is large.
    start: Vec<u8>,
    parts: Option<WriteMultipart>,
}

impl BucketWriter for Writer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), BucketError> {
        let Remote { store, runtime, .. } = self.remote;
        if self.parts.is_none() && self.start.len() + bytes.len() > PART_BYTES {
            let upload = runtime.block_on(store.put_multipart(&self.path)).map_err(failed)?;
            let _entered = runtime.enter();
            let mut parts = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
            parts.write(&std::mem::take(&mut self.start));
            self.parts = Some(parts);
        }
        let Some(parts) = &mut self.parts else {
            self.start.extend_from_slice(bytes);
            return Ok(());
        };
        runtime.block_on(parts.wait_for_capacity(PARTS_AT_ONCE)).map_err(failed)?;
        let _entered = runtime.enter();
        parts.write(bytes);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), BucketError> {
        let Remote { store, runtime, .. } = self.remote;
        let finished = match self.parts.take() {
            Some(parts) => runtime.block_on(parts.finish()),
            None => {
                let bytes = std::mem::take(&mut self.start);
                runtime.block_on(store.put(&self.path, PutPayload::from(bytes)))
            }
        };
        finished.map(drop).map_err(failed)
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            // Parts that stay are no object; the store clears them away by its own rules.
            drop(self.remote.runtime.block_on(parts.abort()));
        }
    }
}
