//! A stored document as a query sees it: with its conflicts, if they are asked for.

use std::borrow::Cow;

use scrinium_document::Revision;
use scrinium_mango::Document as MangoDocument;
use serde_json::{Value, json};

use crate::access::readable::{ReadableHead, ReadableLeaf};
use crate::database::Database;
use crate::error::Result;
use crate::view::document::Document;

const CONFLICTS: &str = "_conflicts";

pub(super) struct Found<'a> {
    document: Document<'a>,
    /// The other leaves; none if there are no others, or nobody asks.
    conflicts: Option<Value>,
}

impl<'a> Found<'a> {
    /// `head` is given where conflicts are asked for.
    pub(super) fn new(
        database: &'a Database,
        leaf: ReadableLeaf<'a>,
        head: Option<&ReadableHead<'_>>,
    ) -> Result<Self> {
        let conflicts = match head {
            None => Vec::new(),
            Some(head) => {
                let revision: Revision = leaf.parsed_revision(leaf.id())?;
                head.other_leaves(&revision, false)
            }
        };
        let conflicts = (!conflicts.is_empty()).then(|| json!(conflicts));
        Ok(Self { document: Document::new(database, leaf)?, conflicts })
    }

    /// # Errors
    /// A field that was asked for and could not be read.
    pub(super) fn check(&self) -> Result<()> {
        self.document.check()
    }
}

impl MangoDocument for Found<'_> {
    fn field(&self, name: &str) -> Option<Cow<'_, Value>> {
        match name {
            CONFLICTS => self.conflicts.as_ref().map(Cow::Borrowed),
            name => MangoDocument::field(&self.document, name),
        }
    }

    fn whole(&self) -> Cow<'_, Value> {
        let mut whole = self.document.whole();
        if let (Some(conflicts), Value::Object(members)) = (&self.conflicts, whole.to_mut()) {
            members.insert(CONFLICTS.to_owned(), conflicts.clone());
        }
        whole
    }
}
