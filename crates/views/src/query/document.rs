//! A stored document as a query sees it: with its conflicts, which it may select and sort by.

use std::borrow::Cow;
use std::cell::OnceCell;

use scrinium_database::access::readable::{ReadableHead, ReadableLeaf};
use scrinium_database::{Access, Database, Result};
use scrinium_mango::Document as MangoDocument;
use scrinium_store::Snapshot;
use serde_json::{Value, json};

use crate::document::Document;

const CONFLICTS: &str = "_conflicts";
const DELETED_CONFLICTS: &str = "_deleted_conflicts";

pub(super) struct QueriedDocument<'a> {
    database: &'a Database,
    leaf: ReadableLeaf<'a>,
    document: Document<'a>,
    head: Option<&'a ReadableHead<'a>>,
    /// Who asks, and as of when; `None`: the query knows no conflicts.
    asked: Option<(&'a Snapshot, &'a Access)>,
    conflicts: OnceCell<Option<Value>>,
    deleted_conflicts: OnceCell<Option<Value>>,
}

impl<'a> QueriedDocument<'a> {
    /// `head` is given where the conflicts belong to what is answered. Without it and without `asked` there are none, as
    /// in CouchDB.
    pub(super) fn new(
        database: &'a Database,
        leaf: ReadableLeaf<'a>,
        head: Option<&'a ReadableHead<'a>>,
        asked: Option<(&'a Snapshot, &'a Access)>,
    ) -> Result<Self> {
        let document = Document::new(database, leaf)?;
        let (conflicts, deleted_conflicts) = (OnceCell::new(), OnceCell::new());
        Ok(Self { database, leaf, document, head, asked, conflicts, deleted_conflicts })
    }

    /// # Errors
    /// A field that was asked for and could not be read.
    pub(super) fn check(&self) -> Result<()> {
        self.document.check()
    }

    /// The other leaves that the one who asks may know of; none if there are no others.
    fn other_leaves(&self, deleted: bool) -> Option<&Value> {
        let kept = if deleted { &self.deleted_conflicts } else { &self.conflicts };
        let read = || self.document.kept(self.read_other_leaves(deleted)).flatten();
        kept.get_or_init(read).as_ref()
    }

    fn read_other_leaves(&self, deleted: bool) -> Result<Option<Value>> {
        let id = self.leaf.id();
        let revision = self.leaf.parsed_revision(id)?;
        let others = match (self.head, self.asked) {
            (Some(head), _) => head.other_leaves(&revision, deleted),
            (None, None) => return Ok(None),
            (None, Some((snapshot, access))) => {
                let Some(head) = self.database.head(snapshot, id)? else { return Ok(None) };
                access.readable_head(self.database, snapshot, id, &head)?.other_leaves(&revision, deleted)
            }
        };
        Ok((!others.is_empty()).then(|| json!(others)))
    }
}

impl MangoDocument for QueriedDocument<'_> {
    fn field(&self, name: &str) -> Option<Cow<'_, Value>> {
        match name {
            CONFLICTS => self.other_leaves(false).map(Cow::Borrowed),
            DELETED_CONFLICTS => self.other_leaves(true).map(Cow::Borrowed),
            name => MangoDocument::field(&self.document, name),
        }
    }

    fn whole(&self) -> Cow<'_, Value> {
        let mut whole = self.document.whole();
        let conflicts = self.head.and_then(|_| self.other_leaves(false));
        if let (Some(conflicts), Value::Object(members)) = (conflicts, whole.to_mut()) {
            members.insert(CONFLICTS.to_owned(), conflicts.clone());
        }
        whole
    }
}
