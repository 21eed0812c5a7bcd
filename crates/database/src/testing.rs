//! Databases for unit tests, without a catalogue.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use scrinium_store::{Batch, Family, Store};

use crate::access::initial::InitialAccess;
use crate::context::{DatabaseOptions, ServerContext, StoreContext};
use crate::database::Database;
use crate::header::Header;
use crate::keys;

/// The databases of a store.
pub(crate) struct TestServer {
    pub(crate) context: Arc<StoreContext>,
    last_number: AtomicU32,
}

impl TestServer {
    pub(crate) fn new(store: &Store) -> Self {
        let server = Arc::new(ServerContext::new(DatabaseOptions::default(), store));
        let context = Arc::new(StoreContext::open("main", store.clone(), server).unwrap());
        Self { context, last_number: AtomicU32::new(0) }
    }

    /// A new database that everybody may edit.
    pub(crate) fn create(&self, name: &str) -> Arc<Database> {
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let store = &self.context.store;
        let header = Header::new(name, rand::random(), store.clock().now_ms());
        let mut batch = Batch::new();
        batch.put(Family::Meta, &keys::header(number), &header.encode());
        InitialAccess::Everybody.write(&mut batch, number);
        store.commit(batch).unwrap();
        Arc::new(Database::load(&self.context, number).unwrap())
    }
}
