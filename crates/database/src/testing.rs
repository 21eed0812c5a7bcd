//! Databases for unit tests, without a catalogue.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use scrinium_store::{Batch, Family, Store};
use serde_json::Value;

use crate::access::initial::InitialAccess;
use crate::context::{DatabaseOptions, ServerContext, StoreContext};
use crate::database::Database;
use crate::designs::{
    DatabaseObserver, DesignInterpreter, EditFunction, EditToValidate, FunctionLanguage, Verdict,
};
use crate::edit_mode::EditMode;
use crate::error::{DatabaseError, Result};
use crate::header::Header;
use crate::keys;

/// The databases of a store.
pub(crate) struct TestServer {
    pub(crate) context: Arc<StoreContext>,
    last_number: AtomicU32,
}

impl TestServer {
    pub(crate) fn new(store: &Store) -> Self {
        let server = Arc::new(ServerContext::new(DatabaseOptions::default(), Arc::new(NoDesigns)));
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
        Arc::new(load(&self.context, number).unwrap())
    }
}

/// A database as a start finds it.
pub(crate) fn load(context: &Arc<StoreContext>, number: u32) -> Result<Database> {
    Database::load(context, number, Arc::new(NoDesigns))
}

/// A member of design documents that are not stored.
pub(crate) const REFUSED: &str = "refused";

/// Lets every design document be stored but one with a member [`REFUSED`], and makes nothing of it.
struct NoDesigns;

impl DesignInterpreter for NoDesigns {
    fn check_design(&self, _: [u8; 16], design: &Value, _: EditMode) -> Result<()> {
        match design.get(REFUSED) {
            None => Ok(()),
            Some(_) => Err(DatabaseError::bad_request("It is refused.")),
        }
    }

    fn check_columns(&self, _: &str, _: &Value) -> Result<()> {
        Ok(())
    }

    fn edit_function(
        &self,
        _: [u8; 16],
        _: FunctionLanguage,
        _: &str,
        _: &str,
    ) -> Option<Box<dyn EditFunction>> {
        Some(Box::new(Self))
    }
}

impl EditFunction for NoDesigns {
    fn validate(&self, _: &Database, edits: &[EditToValidate<'_>]) -> Result<Vec<Verdict>> {
        Ok(edits.iter().map(|_| Verdict::Allowed).collect())
    }
}

impl DatabaseObserver for NoDesigns {
    fn committed(&self, _: u64) {}
}
