//! A store of objects in memory that can be slow to agree: it fails, before or after it has done what it was asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_objects::{Bucket, BucketError, BucketWriter, Objects};

#[derive(Clone)]
pub struct Memory(pub Arc<Mutex<State>>);

pub struct State {
    pub objects: BTreeMap<String, Vec<u8>>,
    /// One call in this many fails; 0: none.
    pub fails_one_in: u32,
    pub away: bool,
    pub uploads: usize,
    pub reads: usize,
    pub read_bytes: u64,
    random: StdRng,
}

impl Memory {
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            objects: BTreeMap::new(),
            fails_one_in: 0,
            away: false,
            uploads: 0,
            reads: 0,
            read_bytes: 0,
            random: StdRng::seed_from_u64(seed),
        })))
    }

    /// What opens it, whatever the address. Another one has forgotten that it did not answer.
    pub fn objects(&self, dir: &std::path::Path) -> Objects {
        let this = self.clone();
        Objects::new(
            &dir.join("attachments"),
            Arc::new(move |_| Ok(Box::new(this.clone()) as Box<dyn Bucket>)),
        )
    }

    pub fn names(&self) -> Vec<String> {
        self.0.lock().unwrap().objects.keys().cloned().collect()
    }

    /// Does what is asked; or fails, having done it or not.
    fn answer<T>(&self, ask: impl FnOnce(&mut State) -> Result<T, BucketError>) -> Result<T, BucketError> {
        let mut state = self.0.lock().unwrap();
        let gone = || Err(BucketError::Away("connection reset".to_owned()));
        if state.away {
            return gone();
        }
        let one_in = state.fails_one_in;
        if one_in > 0 && state.random.random_ratio(1, one_in) {
            if state.random.random_bool(0.5) {
                drop(ask(&mut state));
            }
            return gone();
        }
        ask(&mut state)
    }
}

impl Bucket for Memory {
    fn begin(&self, name: &str) -> Result<Box<dyn BucketWriter + '_>, BucketError> {
        self.answer(|_| Ok(()))?;
        Ok(Box::new(Writer { bucket: self, name: name.to_owned(), bytes: Vec::new() }))
    }

    fn read(&self, name: &str, from: u64, to: u64) -> Result<Bytes, BucketError> {
        self.answer(|state| {
            state.reads += 1;
            state.read_bytes += to - from;
            let object = state.objects.get(name).ok_or(BucketError::Missing)?;
            let range = usize::try_from(from).unwrap()..usize::try_from(to).unwrap();
            Ok(object.get(range).map(Bytes::copy_from_slice).unwrap_or_default())
        })
    }

    fn size(&self, name: &str) -> Result<Option<u64>, BucketError> {
        self.answer(|state| Ok(state.objects.get(name).map(|object| object.len() as u64)))
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        self.answer(|state| {
            state.objects.remove(name);
            Ok(())
        })
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, BucketError> {
        self.answer(|state| {
            let within = state.objects.iter().filter(|(name, _)| name.starts_with(&format!("{folder}/")));
            Ok(within.map(|(name, object)| (name.clone(), object.len() as u64)).collect())
        })
    }
}

struct Writer<'a> {
    bucket: &'a Memory,
    name: String,
    bytes: Vec<u8>,
}

impl BucketWriter for Writer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), BucketError> {
        self.bytes.extend_from_slice(bytes);
        self.bucket.answer(|_| Ok(()))
    }

    fn finish(self: Box<Self>) -> Result<(), BucketError> {
        let Self { bucket, name, bytes } = *self;
        bucket.answer(|state| {
            state.uploads += 1;
            assert!(state.objects.insert(name, bytes).is_none(), "a name was used twice");
            Ok(())
        })
    }
}
