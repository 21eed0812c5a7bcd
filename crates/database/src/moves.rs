//! Who hears of documents that people move from one folder into another.

use std::sync::Arc;

use crate::access::Access;
use crate::database::Database;

/// A document that somebody has moved, or a copy of one that they have put into another folder.
#[derive(Clone)]
pub struct MovedDocument {
    /// Where it is.
    pub database: Arc<Database>,
    /// Its id; of a copy, that of the copy.
    pub id: String,
    /// The name of the folder that it was in.
    pub from: String,
    /// The name of the folder that it came into.
    pub to: String,
}

/// Hears of moves. What the server itself moves is not told.
pub trait MoveWatcher: Send + Sync + 'static {
    /// Somebody has moved a document; that is on its way to the disk. It must not wait.
    fn moved(&self, moved: MovedDocument);
}

impl Database {
    /// Tells who watches that somebody has moved a document, or copied it.
    pub fn tell_moved(self: &Arc<Self>, id: String, from: &str, to: &str, access: &Access) {
        if access.identity().is_none() {
            return;
        }
        if let Some(watcher) = self.context.server.move_watcher() {
            let (from, to) = (from.to_owned(), to.to_owned());
            watcher.moved(MovedDocument { database: Arc::clone(self), id, from, to });
        }
    }
}
