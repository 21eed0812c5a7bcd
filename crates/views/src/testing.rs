//! Databases for unit tests, without a catalogue.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use scrinium_database::context::{ServerContext, StoreContext};
use scrinium_database::header::Header;
use scrinium_database::{Access, DatabaseOptions, InitialAccess, keys};
use scrinium_store::{Batch, Family, Store};

use crate::context::ViewsContext;
use crate::open::OpenDatabase;

/// That of whoever tests: everything.
pub(crate) static SERVER: Access = Access::of_the_server("a test");

/// The databases of a store.
pub(crate) struct TestServer {
    pub(crate) context: Arc<StoreContext>,
    pub(crate) views: Arc<ViewsContext>,
    last_number: AtomicU32,
}

impl TestServer {
    pub(crate) fn new(store: &Store) -> Self {
        let views = Arc::new(ViewsContext::new(store));
        let server = Arc::new(ServerContext::new(DatabaseOptions::default(), Arc::clone(&views) as _));
        let context = Arc::new(StoreContext::open("main", store.clone(), server).unwrap());
        Self { context, views, last_number: AtomicU32::new(0) }
    }

    /// A new database that everybody may edit.
    pub(crate) fn create(&self, name: &str) -> OpenDatabase {
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let store = &self.context.store;
        let header = Header::new(name, rand::random(), store.clock().now_ms());
        let mut batch = Batch::new();
        batch.put(Family::Meta, &keys::header(number), &header.encode());
        InitialAccess::Everybody.write(&mut batch, number);
        store.commit(batch).unwrap();
        OpenDatabase::load(&self.context, number, &self.views).unwrap()
    }
}
