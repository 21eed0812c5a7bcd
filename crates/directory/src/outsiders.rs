//! What those who are not of a domain see of it in the directory: the `Readers` of its documents follow what the domain says.
//!
//! Each document that is written gets them on its way ([`Directory::check`]). When a domain begins to say something else, the documents
//! that are there already are written once more. Until then they are as they were; a server that stops in between goes on at its next
//! start, as it looks at all documents then.

use std::time::{Duration, Instant};

use scrinium_database::access::readers::READERS;
use scrinium_database::{DatabaseError, Edit, EditMode, ReadOptions, Result};
use serde_json::Value;

use crate::DIRECTORY_DATABASE;
use crate::directory::{DIRECTORY, Directory};

/// Documents that are looked at in one piece.
const PIECE_DOCUMENTS: usize = 20;

impl Directory {
    /// Brings the `Readers` of documents in step with what their domains say; gives how many were written. After each piece `goes_on`
    /// hears how many bytes it was and how long it took, waits as it likes, and says whether to go on; else the rest is done next time.
    ///
    /// # Errors
    /// What the database reports; the domain is looked at again next time.
    pub fn settle_readers(&self, goes_on: &dyn Fn(u64, Duration) -> bool) -> Result<u64> {
        self.refresh();
        let mut written = 0;
        while let Some(domain) = self.index().take_unsettled() {
            match self.settle_domain(&domain, goes_on, &mut written) {
                Ok(true) => {}
                Ok(false) => {
                    self.index().unsettle(domain);
                    return Ok(written);
                }
                Err(error) => {
                    self.index().unsettle(domain);
                    return Err(error);
                }
            }
        }
        Ok(written)
    }

    /// Whether it came to the end.
    fn settle_domain(
        &self,
        domain: &str,
        goes_on: &dyn Fn(u64, Duration) -> bool,
        written: &mut u64,
    ) -> Result<bool> {
        let before = *written;
        for some in self.index().ids_of_domain(domain).chunks(PIECE_DOCUMENTS) {
            let begun = Instant::now();
            let mut bytes = 0;
            for id in some {
                bytes += self.settle_document(id, written)?;
            }
            if !goes_on(bytes, begun.elapsed()) {
                return Ok(false);
            }
        }
        if *written > before {
            let documents = *written - before;
            tracing::info!(domain, documents, "what others see of a domain was brought in step");
        }
        Ok(true)
    }

    /// Writes a document as it is, so that it gets its readers, if it has others. Gives how many bytes it has.
    fn settle_document(&self, id: &str, written: &mut u64) -> Result<u64> {
        let database = self.databases().get(DIRECTORY_DATABASE)?;
        let found = match database.read(id, &ReadOptions::default(), &DIRECTORY) {
            Err(DatabaseError::NotFound { .. }) => return Ok(0),
            found => found?,
        };
        let Some(document) = found.json.to_object() else { return Ok(0) };
        let domain = self.index().domain_of(id);
        let is_settled = self.readers_instead(domain.as_deref(), document.get(READERS)).is_none();
        let json = Value::Object(document).to_string();
        let bytes = json.len() as u64;
        if is_settled {
            return Ok(bytes);
        }
        let edit = Edit { json: json.into(), ..Edit::default() };
        match database.update_one(edit, EditMode::Interactive, &DIRECTORY) {
            Ok(_) => *written += 1,
            // Who has written it meanwhile has given it its readers.
            Err(DatabaseError::Conflict | DatabaseError::NotFound { .. }) => {}
            // One that can be stored no more stays as it is, and keeps no other from it.
            Err(error @ DatabaseError::Forbidden { .. }) => {
                tracing::warn!(id, %error, "others still see a document of a domain that shows them nothing");
            }
            Err(error) => return Err(error),
        }
        Ok(bytes)
    }

    /// As [`crate::NameIndex`] has it, up to the last change.
    pub(crate) fn readers_instead(
        &self,
        domain: Option<&str>,
        present: Option<&Value>,
    ) -> Option<Option<Value>> {
        self.refresh();
        self.index().readers_instead(domain, present)
    }
}
