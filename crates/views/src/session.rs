//! A database as somebody has opened it. Whatever comes from outside goes through here, so that nothing is read, counted or
//! written without what they may do.

mod description;
mod folders;

use std::sync::Arc;

use scrinium_contents::{Content, Upload};
use scrinium_database::{
    Access, AccessList, AttachmentReader, Changes, ChangesFilter, ChangesQuery, ClearSecret, Condition,
    DatabaseError, Document, Edit, EditMode, HeldRevision, Identity, Level, NewAttachment, OpenRevision,
    OpenRevisions, Properties, PurgedDocument, PurgedLeaves, ReadOptions, Result, RevisionsDifference,
    RowQuery, Rows, TransactionPart, Update, Updated,
};
use scrinium_mango::{IndexDefinition, Query};
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::filter::UpdateFunction;
use crate::open::OpenDatabase;
use crate::query::Find;
use crate::text::{TextAnswer, TextSearch, TextTarget};
use crate::waiting::Reading;

pub use description::{DatabaseContents, DatabaseDescription, FolderDescription};

/// A database as somebody has opened it. Clones are cheap.
#[derive(Clone)]
pub struct DatabaseSession {
    database: OpenDatabase,
    access: Access,
}

impl DatabaseSession {
    /// A database, opened for somebody, whatever they may do there.
    ///
    /// # Errors
    /// What the store reports.
    pub fn open(database: OpenDatabase, identity: &Identity) -> Result<Self> {
        let access = database.access(identity)?;
        Ok(Self { database, access })
    }

    /// A database, opened for somebody who reads and edits in it what is theirs, whatever its access control list and the
    /// documents say. The caller has made sure that nothing else is asked for; a guard of the database is asked
    /// as for others.
    #[must_use]
    pub fn open_own(database: OpenDatabase, identity: &Identity) -> Self {
        let access = Access::of_level(identity, Level::Editor);
        Self { database, access }
    }

    /// What the one who opened it may do.
    #[must_use]
    pub const fn access(&self) -> &Access {
        &self.access
    }

    /// Their level.
    #[must_use]
    pub fn level(&self) -> Level {
        self.access.level()
    }

    /// # Errors
    /// [`DatabaseError::Forbidden`] if their level is lower.
    fn require(&self, level: Level) -> Result<&OpenDatabase> {
        if self.level() >= level {
            return Ok(&self.database);
        }
        Err(DatabaseError::Forbidden {
            reason: format!(
                "This takes the level `{}` in this database, and yours is `{}`.",
                level.text(),
                self.level().text()
            ),
        })
    }

    /// # Errors
    /// [`DatabaseError::Forbidden`] for all but administrators of the server.
    fn require_administrator(&self) -> Result<&OpenDatabase> {
        if self.access.is_everything() {
            return Ok(&self.database);
        }
        Err(DatabaseError::Forbidden { reason: "This is for administrators of the server.".to_owned() })
    }

    /// The database's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.database.name()
    }

    /// The database's number, which no other one of the server ever gets.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.database.number()
    }

    /// The same database for somebody as they are now, on the volume where it is now.
    ///
    /// # Errors
    /// What the store reports.
    pub fn renewed(&self, identity: &Identity) -> Result<Self> {
        let database = self.database.moved().unwrap_or_else(|| self.database.clone());
        let access = database.access(identity)?;
        Ok(Self { database, access })
    }

    /// Goes on where the database was moved to since it was opened; false if it was not.
    pub fn follow_move(&mut self) -> bool {
        let Some(moved) = self.database.moved() else { return false };
        self.database = moved;
        true
    }

    /// What somebody else may do here.
    ///
    /// # Errors
    /// What the store reports.
    pub fn access_of(&self, identity: &Identity) -> Result<Access> {
        self.database.access(identity)
    }

    /// Whether somebody else, as they are, would see all documents.
    ///
    /// # Errors
    /// What the store reports.
    pub fn shows_all_to(&self, identity: &Identity) -> Result<bool> {
        self.database.shows_all(&self.database.access(identity)?)
    }

    /// As [`Database::watch`](scrinium_database::Database::watch).
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.database.watch()
    }

    /// As [`Database::sequence_text`](scrinium_database::Database::sequence_text).
    #[must_use]
    pub fn sequence_text(&self, change_number: u64) -> String {
        self.database.sequence_text(change_number)
    }

    /// As [`Database::parse_sequence`](scrinium_database::Database::parse_sequence).
    ///
    /// # Errors
    /// A text that begins with no number.
    pub fn parse_sequence(&self, text: &str) -> Result<u64> {
        self.database.parse_sequence(text)
    }
}

/// The database as a whole.
impl DatabaseSession {
    /// What the one who asks may know of it.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if it was dropped meanwhile, and what the store reports.
    pub fn describe(&self) -> Result<DatabaseDescription> {
        let info = self.database.info()?;
        let contents = DatabaseContents {
            document_count: info.document_count,
            deleted_count: info.deleted_count,
            purged_count: info.purged_count,
            sizes: info.sizes,
        };
        Ok(DatabaseDescription {
            name: info.name,
            uuid: info.uuid,
            update_sequence: info.update_sequence,
            contents: self.database.shows_all(&self.access)?.then_some(contents),
            instance_start_time_us: info.instance_start_time_us,
            revision_limit: info.revision_limit,
            volume: self.database.volume().to_owned(),
        })
    }

    /// As [`Database::access_list`](scrinium_database::Database::access_list).
    ///
    /// # Errors
    /// As there.
    pub fn access_list(&self) -> Result<Option<Arc<AccessList>>> {
        self.database.access_list()
    }

    /// As [`Database::set_access_list`](scrinium_database::Database::set_access_list), for managers; removing it, which opens what it hides, is for administrators of the
    /// server.
    ///
    /// # Errors
    /// As there.
    pub fn set_access_list(&self, list: Option<AccessList>) -> Result<()> {
        let database = match list {
            Some(_) => self.require(Level::Manager)?,
            None => self.require_administrator()?,
        };
        database.set_access_list(list)
    }

    /// As [`Database::shown_security`](scrinium_database::Database::shown_security).
    ///
    /// # Errors
    /// As there.
    pub fn shown_security(&self) -> Result<Arc<Value>> {
        self.require(Level::Reader)?.shown_security()
    }

    /// As [`Database::set_security`](scrinium_database::Database::set_security), for managers.
    ///
    /// # Errors
    /// As there.
    pub fn set_security(&self, security: &Value) -> Result<()> {
        self.require(Level::Manager)?.set_security(security)
    }

    /// As [`Database::set_revision_limit`](scrinium_database::Database::set_revision_limit), for managers.
    ///
    /// # Errors
    /// As there.
    pub fn set_revision_limit(&self, limit: u64) -> Result<()> {
        self.require(Level::Manager)?.set_revision_limit(limit)
    }

    /// As [`Database::properties`](scrinium_database::Database::properties).
    #[must_use]
    pub fn properties(&self) -> Properties {
        self.database.properties()
    }

    /// As [`Database::set_properties`](scrinium_database::Database::set_properties), for administrators of the server, with those of `wish` changed.
    ///
    /// # Errors
    /// As there, and an invalid wish.
    pub fn change_properties(&self, wish: &Map<String, Value>) -> Result<Properties> {
        let database = self.require_administrator()?;
        let properties = database.properties().changed(wish)?;
        database.change_properties(properties)?;
        Ok(properties)
    }

    /// As [`OpenDatabase::clean_up_views`], for managers.
    ///
    /// # Errors
    /// As there.
    pub fn clean_up_views(&self) -> Result<usize> {
        self.require(Level::Manager)?.clean_up_views()
    }

    /// As [`Database::purge_leaves`](scrinium_database::Database::purge_leaves), for administrators of the server.
    ///
    /// # Errors
    /// As there.
    pub fn purge_leaves(&self, wanted: Vec<PurgedLeaves>) -> Result<Vec<PurgedLeaves>> {
        self.require_administrator()?.purge_leaves(wanted)
    }

    /// As [`Database::held_revisions`](scrinium_database::Database::held_revisions), for administrators of the server.
    ///
    /// # Errors
    /// As there.
    pub fn held_revisions(&self, after: Option<(&str, &str)>, limit: usize) -> Result<Vec<HeldRevision>> {
        self.require_administrator()?.held_revisions(after, limit)
    }

    /// As [`Database::held_revision`](scrinium_database::Database::held_revision), for administrators of the server.
    ///
    /// # Errors
    /// As there.
    pub fn held_revision(&self, id: &str, revision: &str) -> Result<Document> {
        self.require_administrator()?.held_revision(id, revision)
    }

    /// As [`Database::purged_limit`](scrinium_database::Database::purged_limit), for readers.
    ///
    /// # Errors
    /// As there.
    pub fn purged_limit(&self) -> Result<u64> {
        self.require(Level::Reader)?.purged_limit()
    }

    /// As [`Database::set_purged_limit`](scrinium_database::Database::set_purged_limit), for managers.
    ///
    /// # Errors
    /// As there.
    pub fn set_purged_limit(&self, limit: u64) -> Result<()> {
        self.require(Level::Manager)?.set_purged_limit(limit)
    }

    /// As [`Database::purged_documents`](scrinium_database::Database::purged_documents), for managers. What was purged may have been hidden, so it is shown to those
    /// who see all documents alone.
    ///
    /// # Errors
    /// As there.
    pub fn purged_documents(&self) -> Result<Vec<PurgedDocument>> {
        let purged = self.require(Level::Manager)?.purged_documents()?;
        Ok(if self.database.shows_all(&self.access)? { purged } else { Vec::new() })
    }
}

/// Documents.
impl DatabaseSession {
    /// As [`Database::read`](scrinium_database::Database::read).
    ///
    /// # Errors
    /// As there.
    pub fn read(&self, id: &str, options: &ReadOptions) -> Result<Document> {
        self.database.read(id, options, &self.access)
    }

    /// As [`Database::open_revisions`](scrinium_database::Database::open_revisions).
    ///
    /// # Errors
    /// As there.
    pub fn open_revisions(
        &self,
        id: &str,
        which: &OpenRevisions,
        options: &ReadOptions,
    ) -> Result<Vec<OpenRevision>> {
        self.database.open_revisions(id, which, options, &self.access)
    }

    /// As [`Database::revisions_difference`](scrinium_database::Database::revisions_difference).
    ///
    /// # Errors
    /// As there.
    pub fn revisions_difference(
        &self,
        wanted: &[(String, Vec<String>)],
    ) -> Result<Vec<(String, RevisionsDifference)>> {
        self.database.revisions_difference(wanted, &self.access)
    }

    /// As [`Database::read_local`](scrinium_database::Database::read_local).
    ///
    /// # Errors
    /// As there.
    pub fn read_local(&self, id: &str) -> Result<Document> {
        self.database.read_local(id, &self.access)
    }

    /// As [`Database::write_local`](scrinium_database::Database::write_local).
    ///
    /// # Errors
    /// As there.
    pub fn write_local(
        &self,
        id: &str,
        json: &[u8],
        delete: bool,
        revision: Option<&str>,
    ) -> Result<Update<Updated>> {
        self.database.write_local(id, json, delete, revision, &self.access)
    }

    /// As [`Database::update`](scrinium_database::Database::update).
    ///
    /// # Errors
    /// As there.
    pub fn update(&self, edits: Vec<Edit>, mode: EditMode) -> Result<Update> {
        self.database.update(edits, mode, &self.access)
    }

    /// What a transaction does here ([`update_together`](scrinium_database::update_together)).
    #[must_use]
    pub fn transaction_part(self, conditions: Vec<Condition>, edits: Vec<Edit>) -> TransactionPart {
        TransactionPart {
            database: Arc::clone(self.database.database()),
            access: self.access,
            conditions,
            edits,
        }
    }

    /// As [`Database::clear_secret`](scrinium_database::Database::clear_secret).
    #[must_use]
    pub fn clear_secret(&self, edit: &Edit, mode: EditMode) -> Option<ClearSecret> {
        self.database.clear_secret(edit, mode, &self.access)
    }

    /// As [`Database::update_sound`](scrinium_database::Database::update_sound).
    ///
    /// # Errors
    /// As there.
    pub fn update_sound(&self, edits: Vec<Edit>, mode: EditMode) -> Result<Update> {
        self.database.update_sound(edits, mode, &self.access)
    }

    /// As [`Database::check_sound`](scrinium_database::Database::check_sound).
    ///
    /// # Errors
    /// As there.
    pub fn check_sound(&self, edits: impl Iterator<Item = Edit>, mode: EditMode) -> Result<()> {
        self.database.check_sound(edits, mode)
    }

    /// As [`Database::open_revision_names`](scrinium_database::Database::open_revision_names).
    ///
    /// # Errors
    /// As there.
    pub fn open_revision_names(&self, id: &str, which: &OpenRevisions) -> Result<Vec<String>> {
        self.database.open_revision_names(id, which, &self.access)
    }

    /// As [`Database::hold_attachment`](scrinium_database::Database::hold_attachment).
    ///
    /// # Errors
    /// As there.
    pub fn hold_attachment(&self, id: &str, name: &str, revision: Option<&str>) -> Result<AttachmentReader> {
        self.database.hold_attachment(id, name, revision, &self.access)
    }

    /// As [`Database::changes`](scrinium_database::Database::changes).
    ///
    /// # Errors
    /// As there.
    pub fn changes(&self, query: ChangesQuery) -> Result<Changes> {
        self.database.changes(query, &self.access)
    }

    /// As [`OpenDatabase::function_filter`].
    ///
    /// # Errors
    /// As there.
    pub fn function_filter(
        &self,
        design: &str,
        name: &str,
        request: String,
    ) -> Result<Arc<dyn ChangesFilter>> {
        self.database.function_filter(design, name, request, &self.access)
    }

    /// As [`OpenDatabase::view_filter`].
    ///
    /// # Errors
    /// As there.
    pub fn view_filter(&self, design: &str, name: &str) -> Result<Arc<dyn ChangesFilter>> {
        self.database.view_filter(design, name, &self.access)
    }

    /// As [`OpenDatabase::update_function`].
    ///
    /// # Errors
    /// As there.
    pub fn update_function(&self, design: &str, name: &str) -> Result<UpdateFunction> {
        self.database.update_function(design, name, &self.access)
    }

    /// As [`Database::open_attachment`](scrinium_database::Database::open_attachment).
    ///
    /// # Errors
    /// As there.
    pub fn open_attachment(&self, id: &str, name: &str, revision: Option<&str>) -> Result<AttachmentReader> {
        self.database.open_attachment(id, name, revision, &self.access)
    }

    /// As [`Database::share_attachment`](scrinium_database::Database::share_attachment).
    ///
    /// # Errors
    /// As there.
    pub fn share_attachment(&self, id: &str, name: &str, revision: Option<&str>) -> Result<NewAttachment> {
        self.database.share_attachment(id, name, revision, &self.access)
    }

    /// As [`Database::store_content`](scrinium_database::Database::store_content).
    ///
    /// # Errors
    /// As there.
    pub fn store_content(&self, bytes: &[u8], content_type: &str) -> Result<Content> {
        self.database.store_content(bytes, content_type)
    }

    /// As [`Database::upload`](scrinium_database::Database::upload): content that becomes a document's by an edit.
    #[must_use]
    pub fn upload(&self, content_type: &str) -> Upload {
        self.database.upload(content_type)
    }
}

/// Rows, views and queries.
impl DatabaseSession {
    /// As [`Database::all_documents`](scrinium_database::Database::all_documents).
    ///
    /// # Errors
    /// As there.
    pub fn all_documents(&self, query: RowQuery) -> Result<Rows> {
        self.database.all_documents(query, &self.access)
    }

    /// As [`Database::design_documents`](scrinium_database::Database::design_documents).
    ///
    /// # Errors
    /// As there.
    pub fn design_documents(&self, query: RowQuery) -> Result<Rows> {
        self.database.design_documents(query, &self.access)
    }

    /// As [`Database::local_documents`](scrinium_database::Database::local_documents).
    ///
    /// # Errors
    /// As there.
    pub fn local_documents(&self, query: RowQuery) -> Result<Rows> {
        self.database.local_documents(query, &self.access)
    }

    /// As [`OpenDatabase::begin_view`].
    ///
    /// # Errors
    /// As there.
    pub fn begin_view(
        &self,
        design: &str,
        view: &str,
        query: &RowQuery,
        reached: Option<u64>,
    ) -> Result<Reading<Rows>> {
        self.database.begin_view(design, view, query, &self.access, reached)
    }

    /// As [`OpenDatabase::begin_folder_rows`].
    ///
    /// # Errors
    /// As there.
    pub fn begin_folder_rows(
        &self,
        name: &str,
        query: &RowQuery,
        person: Option<&str>,
        reached: Option<u64>,
    ) -> Result<Reading<Rows>> {
        self.database.begin_folder_rows(name, query, (person, &self.access), reached)
    }

    /// As [`OpenDatabase::begin_find`].
    ///
    /// # Errors
    /// As there.
    pub fn begin_find(&self, query: &Query, reached: Option<u64>) -> Result<Reading<Find>> {
        self.database.begin_find(query, &self.access, reached)
    }

    /// As [`OpenDatabase::begin_text`].
    ///
    /// # Errors
    /// As there.
    pub fn begin_text(
        &self,
        target: &TextTarget,
        search: &TextSearch,
        reached: Option<u64>,
    ) -> Result<Reading<TextAnswer>> {
        self.database.begin_text(target, search, &self.access, reached)
    }

    /// As [`OpenDatabase::begin_text_ids`].
    ///
    /// # Errors
    /// As there.
    pub fn begin_text_ids(
        &self,
        query: &scrinium_fulltext::Query,
        ids_max: usize,
        reached: Option<u64>,
    ) -> Result<Reading<Vec<String>>> {
        self.database.begin_text_ids(query, ids_max, &self.access, reached)
    }

    /// As [`OpenDatabase::text_info`].
    ///
    /// # Errors
    /// As there.
    pub fn text_info(&self, target: &TextTarget) -> Result<Value> {
        self.database.text_info(target, &self.access)
    }

    /// As [`OpenDatabase::explain`].
    ///
    /// # Errors
    /// As there.
    pub fn explain(&self, query: &Query) -> Result<Value> {
        self.require(Level::Reader)?.explain(query, &self.access)
    }

    /// As [`OpenDatabase::view_info`].
    ///
    /// # Errors
    /// As there.
    pub fn view_info(&self, design: &str) -> Result<Value> {
        self.database.view_info(design, &self.access)
    }

    /// As [`OpenDatabase::mango_indexes`].
    ///
    /// # Errors
    /// As there.
    pub fn mango_indexes(&self) -> Result<Arc<[Arc<IndexDefinition>]>> {
        self.require(Level::Reader)?.mango_indexes(&self.access)
    }

    /// As [`OpenDatabase::create_index`].
    ///
    /// # Errors
    /// As there.
    pub fn create_index(&self, definition: &IndexDefinition) -> Result<bool> {
        self.require(Level::Designer)?.create_index(definition, &self.access)
    }

    /// As [`OpenDatabase::delete_index`].
    ///
    /// # Errors
    /// As there.
    pub fn delete_index(&self, design: &str, name: &str) -> Result<()> {
        self.require(Level::Designer)?.delete_index(design, name, &self.access)
    }
}
