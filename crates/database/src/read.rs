//! Reading documents: the winner, a named revision, all open revisions, and what goes with them.

pub mod others;
pub mod render;

use scrinium_document::json::JsonText;
use scrinium_document::{Revision, is_local};
use scrinium_store::{Family, Snapshot};

use crate::access::Access;
use crate::access::readable::{Looked, ReadableHead};
use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::head::Head;
use crate::keys;
use crate::leaf::Leaf;

pub use render::{Renderer, write_fields};

/// What a reader wants of a document besides its fields.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// This revision instead of the winner.
    pub revision: Option<String>,
    /// If `revision` was superseded, the leaf that follows it.
    pub latest: bool,
    /// `_revisions`: the history.
    pub revisions: bool,
    /// `_revs_info`: the history, and whether each revision can be read.
    pub revisions_info: bool,
    /// `_conflicts`: the other leaves.
    pub conflicts: bool,
    /// `_deleted_conflicts`: the other leaves that are tombstones.
    pub deleted_conflicts: bool,
    /// `_local_seq`: the number of the last change.
    pub local_sequence: bool,
    /// Attachments' contents in the JSON, in base64, instead of stubs.
    pub attachments: bool,
    /// Contents of those attachments that came after these revisions; stubs for the others. Asks for contents by itself.
    pub attachments_since: Option<Vec<String>>,
    /// `encoding` and `encoded_length` of attachments that are stored as gzip.
    pub encoding_info: bool,
}

impl ReadOptions {
    /// Whether contents of attachments are asked for.
    #[must_use]
    pub const fn gives_contents(&self) -> bool {
        self.attachments || self.attachments_since.is_some()
    }

    /// The same without the other leaves.
    fn without_conflicts(&self) -> Self {
        Self { conflicts: false, deleted_conflicts: false, ..self.clone() }
    }

    /// Whether more than the winner's own record is needed.
    const fn needs_head(&self) -> bool {
        self.revision.is_some()
            || self.revisions
            || self.revisions_info
            || self.conflicts
            || self.deleted_conflicts
            || self.local_sequence
            || self.attachments_since.is_some()
    }
}

/// A document as it goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its id.
    pub id: String,
    /// Its revision.
    pub revision: String,
    /// Whether it is a tombstone.
    pub deleted: bool,
    /// All of it as JSON, `_id` and `_rev` first.
    pub json: JsonText,
}

/// Which revisions [`Database::open_revisions`] gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenRevisions {
    /// All leaves.
    All,
    /// These, leaves or not.
    These(Vec<String>),
}

/// A revision that was asked for by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenRevision {
    /// It is there.
    Found(Document),
    /// It never was here, or it was superseded.
    Missing(String),
}

impl Database {
    /// Whether there is a document of this id, or was one whose tombstone is still there.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn has_revisions(&self, id: &str) -> Result<bool> {
        self.check_there()?;
        Ok(self.store().contains(Family::Point, &keys::head(self.number(), id))?)
    }

    /// A document, as far as `access` lets it be read. Without a revision a tombstone is not found.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] (`missing` or `deleted`), an invalid revision, and what the
    /// store reports.
    pub fn read(&self, id: &str, options: &ReadOptions, access: &Access) -> Result<Document> {
        self.check_there()?;
        if is_local(id) {
            return self.read_local(id, access);
        }
        if !options.needs_head() {
            // The winner's record says all that is wanted: one look-up.
            let stored = self.store().get(Family::Scan, &keys::winner(self.number(), id))?;
            let Some(stored) = stored else {
                access.look_past(self, &self.store().snapshot(), (id, Looked::AtWinner));
                return Err(DatabaseError::missing());
            };
            let leaf = access.check_read(self, id, Leaf::decode(id, &stored)?)?;
            if leaf.deleted {
                return Err(DatabaseError::deleted());
            }
            return Renderer::new(self, options).render(&leaf, None);
        }
        let snapshot = self.store().snapshot();
        let head = self.head_to_read(&snapshot, id, access)?.ok_or_else(DatabaseError::missing)?;
        let head = access.readable_head(self, &snapshot, id, &head)?;
        let wanted = match &options.revision {
            None => match head.winner() {
                None => return Err(DatabaseError::missing()),
                Some(winner) if winner.deleted => return Err(DatabaseError::deleted()),
                Some(winner) => winner.revision.clone(),
            },
            Some(text) => {
                let revision = Revision::parse(text)?;
                let later = if options.latest { head.leaves_from(&revision) } else { Vec::new() };
                later.first().cloned().unwrap_or(revision)
            }
        };
        self.read_leaf((&snapshot, access), id, &head, &wanted, options)?.ok_or_else(DatabaseError::missing)
    }

    /// Leaves of a document, or revisions of it by name.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if all leaves of an unknown document are asked for, a revision that
    /// is invalid, and what the store reports.
    pub fn open_revisions(
        &self,
        id: &str,
        which: &OpenRevisions,
        options: &ReadOptions,
        access: &Access,
    ) -> Result<Vec<OpenRevision>> {
        self.check_there()?;
        let snapshot = self.store().snapshot();
        let head = self.head_to_read(&snapshot, id, access)?;
        let head = head.as_ref().map(|head| access.readable_head(self, &snapshot, id, head));
        let head = head.transpose()?.filter(|head| head.leaves().next().is_some());
        let names: Vec<String> = match (which, &head) {
            (OpenRevisions::All, None) => return Err(DatabaseError::missing()),
            (OpenRevisions::All, Some(head)) => head.leaves().map(|leaf| leaf.revision.to_string()).collect(),
            (OpenRevisions::These(names), _) => names.clone(),
        };
        // With each leaf, all others would be as many lines as the square of their number. CouchDB tells them neither.
        let options = &options.without_conflicts();
        let mut found = Vec::with_capacity(names.len());
        let mut given = std::collections::HashSet::new();
        for name in names {
            let revision = Revision::parse(&name)?;
            let Some(head) = &head else {
                found.push(OpenRevision::Missing(name));
                continue;
            };
            let mut wanted = vec![revision.clone()];
            if options.latest {
                let later = head.leaves_from(&revision);
                if !later.is_empty() {
                    wanted = later;
                }
            }
            for revision in wanted {
                if !given.insert(revision.to_string()) {
                    continue;
                }
                let document = self.read_leaf((&snapshot, access), id, head, &revision, options)?;
                found.push(document.map_or_else(|| OpenRevision::Missing(name.clone()), OpenRevision::Found));
            }
        }
        Ok(found)
    }

    /// The names of the revisions that [`open_revisions`](Self::open_revisions) gives, for those who read one after the
    /// other: those of the leaves, or the ones that are asked for.
    ///
    /// # Errors
    /// As [`open_revisions`](Self::open_revisions).
    pub fn open_revision_names(
        &self,
        id: &str,
        which: &OpenRevisions,
        access: &Access,
    ) -> Result<Vec<String>> {
        self.check_there()?;
        if let OpenRevisions::These(names) = which {
            for name in names {
                Revision::parse(name)?;
            }
            return Ok(names.clone());
        }
        let snapshot = self.store().snapshot();
        let head = self.head_to_read(&snapshot, id, access)?.ok_or_else(DatabaseError::missing)?;
        let head = access.readable_head(self, &snapshot, id, &head)?;
        let names: Vec<String> = head.leaves().map(|leaf| leaf.revision.to_string()).collect();
        if names.is_empty() { Err(DatabaseError::missing()) } else { Ok(names) }
    }

    /// The winner as of a snapshot; `None` if there is none, a tombstone, or one that may not be read.
    pub fn read_at(
        &self,
        snapshot: &Snapshot,
        id: &str,
        options: &ReadOptions,
        access: &Access,
    ) -> Result<Option<Document>> {
        let Some(stored) = snapshot.get(Family::Scan, &keys::winner(self.number(), id))? else {
            access.look_past(self, snapshot, (id, Looked::AtWinner));
            return Ok(None);
        };
        let leaf = Leaf::decode(id, &stored)?;
        let Some(leaf) = access.readable(self, id, leaf)?.filter(|leaf| !leaf.deleted) else {
            return Ok(None);
        };
        let head = if options.needs_head() { self.head(snapshot, id)? } else { None };
        let head = head.as_ref().map(|head| access.readable_head(self, snapshot, id, head));
        Renderer::new(self, options).render(&leaf, head.transpose()?.as_ref()).map(Some)
    }

    /// A document that another one names, as of a snapshot: read as if it were asked for by itself. `None` if there is no
    /// such document or revision, or none that may be read; a tombstone is read by its revision only.
    pub fn read_linked(
        &self,
        snapshot: &Snapshot,
        (id, revision): (&str, Option<&str>),
        options: &ReadOptions,
        access: &Access,
    ) -> Result<Option<Document>> {
        if is_local(id) {
            return match self.read_local(id, access) {
                Ok(document) => Ok(Some(document)),
                Err(DatabaseError::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            };
        }
        let Some(revision) = revision else { return self.read_at(snapshot, id, options, access) };
        let (Ok(revision), Some(head)) =
            (Revision::parse(revision), self.head_to_read(snapshot, id, access)?)
        else {
            return Ok(None);
        };
        let head = access.readable_head(self, snapshot, id, &head)?;
        self.read_leaf((snapshot, access), id, &head, &revision, options)
    }

    /// The head of a document that somebody asks for, see [`Access::look_past`].
    pub(crate) fn head_to_read(
        &self,
        snapshot: &Snapshot,
        id: &str,
        access: &Access,
    ) -> Result<Option<Head>> {
        let head = self.head(snapshot, id)?;
        if head.is_none() {
            access.look_past(self, snapshot, (id, Looked::AtHead));
        }
        Ok(head)
    }

    /// The head of a document, if there is one.
    ///
    /// # Errors
    /// One that is damaged, and what the store reports.
    pub fn head(&self, snapshot: &Snapshot, id: &str) -> Result<Option<Head>> {
        let stored = snapshot.get(Family::Point, &keys::head(self.number(), id))?;
        stored
            .map(|bytes| Head::decode(&bytes).ok_or_else(|| DatabaseError::damaged("revision tree", id)))
            .transpose()
    }

    /// The record of a leaf, of which is known whether it wins.
    pub fn leaf_record(
        &self,
        snapshot: &Snapshot,
        id: &str,
        (revision, is_winner): (&Revision, bool),
    ) -> Result<scrinium_store::Slice> {
        let key = match is_winner {
            true => keys::winner(self.number(), id),
            false => keys::loser(self.number(), id, revision),
        };
        snapshot.get(Family::Scan, &key)?.ok_or_else(|| DatabaseError::damaged("revision", id))
    }

    fn read_leaf(
        &self,
        (snapshot, access): (&Snapshot, &Access),
        id: &str,
        head: &ReadableHead<'_>,
        revision: &Revision,
        options: &ReadOptions,
    ) -> Result<Option<Document>> {
        let Some(record) = head.record(self, snapshot, id, revision)? else { return Ok(None) };
        let Some(leaf) = access.readable(self, id, Leaf::decode(id, &record)?)? else {
            return Ok(None);
        };
        Renderer::new(self, options).render(&leaf, Some(head)).map(Some)
    }

    /// For each document those of the given revisions that are not known here, and leaves that may be
    /// their ancestors. Documents of which nothing is missing are left out. What may not be read is not known.
    ///
    /// # Errors
    /// An invalid revision, and what the store reports.
    pub fn revisions_difference(
        &self,
        wanted: &[(String, Vec<String>)],
        access: &Access,
    ) -> Result<Vec<(String, RevisionsDifference)>> {
        self.check_there()?;
        let snapshot = self.store().snapshot();
        let mut differences = Vec::new();
        for (id, names) in wanted {
            let revisions: Vec<Revision> =
                names.iter().map(|name| Revision::parse(name)).collect::<std::result::Result<_, _>>()?;
            let (missing, ancestors) = match self.head_to_read(&snapshot, id, access)? {
                None => (revisions, Vec::new()),
                Some(head) => {
                    let head = access.readable_head(self, &snapshot, id, &head)?;
                    let missing = head.missing(&revisions);
                    let ancestors = head.possible_ancestors(&missing);
                    (missing, ancestors)
                }
            };
            if !missing.is_empty() {
                let text = |revisions: Vec<Revision>| revisions.iter().map(Revision::to_string).collect();
                let difference =
                    RevisionsDifference { missing: text(missing), possible_ancestors: text(ancestors) };
                differences.push((id.clone(), difference));
            }
        }
        Ok(differences)
    }
}

/// What a replica has that is not known here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionsDifference {
    /// The revisions that are not known.
    pub missing: Vec<String>,
    /// Leaves that may be their ancestors, so that the replica can send attachments as stubs.
    pub possible_ancestors: Vec<String>,
}
