//! A database of this server as an end, with what its person may do there: who may not read a document does not replicate
//! it, and what is written is checked as if it came by `_bulk_docs`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use scrinium_catalog::Databases;
use scrinium_contents::{Content, ContentUpload};
use scrinium_database::{
    AttachmentReader, ChangesFilter, ChangesQuery, DatabaseError, Edit, EditMode, Identity, InitialAccess,
    Level, NewAttachment, OpenRevision, OpenRevisions, ReadOptions, Since,
};
use scrinium_document::is_design;
use scrinium_mango::Selector;
use scrinium_views::{DatabaseSession, selector_filter};
use scrinium_worker::WorkerPool;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::document::SourceDocument;
use crate::end::{
    AttachmentPlace, Change, ChangesPage, ChangesRequest, ContentStream, End, EndInfo, IncomingAttachment,
    Missing, Refusal, Work,
};
use crate::error::{ErrorKind, ReplicationError, Result};
use crate::filter::Filter;
use crate::settle::{SettleRule, settle};

/// What is read of an attachment at once.
const PIECE_BYTES: usize = 256 << 10;

/// Documents of one answer may hold this many bytes together.
const READ_BYTES: usize = 16 << 20;

/// How often somebody who waits for changes is looked at: whether they are still who they were, and whether the database has
/// moved.
const WAIT_MAX: Duration = Duration::from_mins(10);

/// Revisions that are stored in one batch.
const BATCH_EDITS: usize = 500;

/// Who people are.
pub trait People: Send + Sync + 'static {
    /// Somebody as they are now; `None` if they may not act any more.
    fn present(&self, identity: &Identity) -> Option<Identity>;

    /// Somebody by name.
    fn named(&self, name: &str) -> Option<Identity>;
}

/// A database of this server.
pub struct LocalEnd {
    databases: Databases,
    workers: WorkerPool,
    people: Arc<dyn People>,
    identity: Identity,
    name: String,
    /// What becomes of conflicts of documents that are stored.
    rule: Option<SettleRule>,
}

impl LocalEnd {
    /// A database, as somebody may use it.
    #[must_use]
    pub fn new(
        databases: Databases,
        workers: WorkerPool,
        people: Arc<dyn People>,
        (identity, name): (Identity, &str),
    ) -> Self {
        Self { databases, workers, people, identity, name: name.to_owned(), rule: None }
    }

    /// The same, at which conflicts of documents that are stored are settled.
    #[must_use]
    pub fn settling(mut self, rule: Option<SettleRule>) -> Self {
        self.rule = rule;
        self
    }

    /// Settles conflicts of documents that were just stored. What the person may not edit stays in conflict.
    async fn settle(&self, documents: &[SourceDocument]) -> Result<()> {
        let Some(rule) = self.rule.clone() else { return Ok(()) };
        let ids: std::collections::BTreeSet<String> = documents
            .iter()
            .filter(|document| !is_design(&document.id))
            .map(|document| document.id.clone())
            .collect();
        self.with(Level::Depositor, move |session| {
            for id in ids {
                match settle(&session, &id, &rule) {
                    Ok(_) => {}
                    Err(error) if error.is_of_the_server() => return Err(error.into()),
                    Err(error) => tracing::debug!(id, %error, "a conflict is left as it is"),
                }
            }
            Ok(())
        })
        .await
    }

    /// Opens the database for somebody who has this level there, and does `work` on the worker pool.
    async fn with<T: Send + 'static>(
        &self,
        need: Level,
        work: impl FnOnce(DatabaseSession) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let opener = self.opener(need)?;
        self.workers.run(move || work(opener()?)).await?
    }

    fn opener(&self, need: Level) -> Result<impl FnOnce() -> Result<DatabaseSession> + Send + use<>> {
        let identity = self.people.present(&self.identity).ok_or_else(|| {
            let reason = "The person whose replication this is may not act any more.";
            ReplicationError::new(ErrorKind::Unauthorized, reason)
        })?;
        let (databases, name) = (self.databases.clone(), self.name.clone());
        Ok(move || {
            let absent = || {
                ReplicationError::new(ErrorKind::NotFound, format!("could not open {name}: no such database"))
            };
            let session = match databases.open_for(&name, &identity) {
                Err(DatabaseError::NotFound { .. }) => return Err(absent()),
                session => session?,
            };
            // Who may not know of it does not learn of it.
            if session.level() == Level::NoAccess {
                return Err(absent());
            }
            if session.level() < need {
                let reason = format!(
                    "{name} takes the level `{}` for this, and yours is `{}`.",
                    need.text(),
                    session.level().text()
                );
                return Err(ReplicationError::new(ErrorKind::Forbidden, reason));
            }
            Ok(session)
        })
    }

    /// Stores edits, each by itself, and waits until they are durable.
    async fn store(&self, edits: Vec<(SourceDocument, Edit)>) -> Result<Vec<Refusal>> {
        let editor = self.identity.shared_name();
        let opener = self.opener(Level::Depositor)?;
        let admission = self.workers.admit().await?;
        let stored = admission.run(move || {
            let session = opener()?;
            let mut refused = Vec::new();
            let mut documents = Vec::with_capacity(edits.len());
            let mut allowed = Vec::with_capacity(edits.len());
            for (document, edit) in edits {
                if is_design(&document.id) && session.level() < Level::Designer {
                    refused.push(refusal(&document, "You are not a db or server admin."));
                } else {
                    allowed.push(Edit { editor: editor.clone(), ..edit });
                    documents.push(document);
                }
            }
            let update = session.update(allowed, EditMode::Replicated)?;
            Ok::<_, ReplicationError>((documents, refused, update))
        });
        let (documents, mut refused, update) = stored.await??;
        let results = update.durable().await?;
        for (document, result) in documents.iter().zip(results) {
            match result {
                Ok(_) => {}
                Err(error) if error.is_of_the_server() => return Err(error.into()),
                Err(error @ DatabaseError::MissingStub { .. }) => return Err(error.into()),
                Err(error) => refused.push(refusal(document, &error.reason())),
            }
        }
        self.settle(&documents).await?;
        Ok(refused)
    }

    async fn page(&self, request: &ChangesRequest) -> Result<ChangesPage> {
        let request = request.clone();
        self.with(Level::Reader, move |session| {
            let limit = request.limit;
            let query = query_of(&session, &request)?;
            let mut changes = session.changes(query)?;
            let mut found = Vec::new();
            while found.len() < limit && !changes.is_at_end() {
                let next = changes.next_changes(limit - found.len())?;
                found.extend(
                    next.into_iter().map(|change| Change { id: change.id, revisions: change.revisions }),
                );
            }
            let is_last = changes.is_at_end();
            let pending = if is_last { Some(0) } else { changes.pending()? };
            Ok(ChangesPage { changes: found, last_sequence: changes.last_sequence(), pending, is_last })
        })
        .await
    }

    /// Changes, or none after a while.
    async fn next_page(&self, request: &ChangesRequest) -> Result<ChangesPage> {
        if !request.wait {
            return self.page(request).await;
        }
        let mut seen = self.watched().await?;
        loop {
            // Seen before it is read, so that a change in between wakes the wait.
            seen.borrow_and_update();
            let page = self.page(request).await?;
            let is_further = request.since.as_deref() != Some(&page.last_sequence);
            if !page.changes.is_empty() || is_further || !page.is_last {
                return Ok(page);
            }
            match tokio::time::timeout(WAIT_MAX, seen.changed()).await {
                Ok(Ok(())) => {}
                // Moved, or gone: which of them is found out by opening it again.
                Ok(Err(_)) => seen = self.watched().await?,
                Err(_) => return Ok(page),
            }
        }
    }

    async fn watched(&self) -> Result<watch::Receiver<u64>> {
        self.with(Level::Reader, |session| Ok(session.watch())).await
    }
}

fn query_of(session: &DatabaseSession, request: &ChangesRequest) -> Result<ChangesQuery> {
    let mut query = ChangesQuery {
        since: request.since.clone().map_or(Since::Beginning, Since::At),
        all_leaves: !request.winners_only,
        ..ChangesQuery::default()
    };
    match &*request.filter {
        Filter::All => {}
        Filter::Ids(ids) => query.ids = Some(ids.clone()),
        Filter::Selector(selector) => {
            let selector =
                Selector::parse(selector).map_err(|error| ReplicationError::order(error.to_string()))?;
            query.filter = Some(selector_filter(selector));
        }
        Filter::Function { name, .. } if name == "_design" => query.design_only = true,
        Filter::Function { name, parameters } => {
            query.filter = Some(function_filter(session, name, parameters)?);
        }
    }
    Ok(query)
}

/// A filter function, or a view as a filter, with the parameters that the order gives it.
fn function_filter(
    session: &DatabaseSession,
    name: &str,
    parameters: &Map<String, Value>,
) -> Result<Arc<dyn ChangesFilter>> {
    let of_view = parameters.get("view").and_then(Value::as_str).filter(|_| name == "_view");
    let named = of_view.unwrap_or(name);
    let (design, function) = named.split_once('/').ok_or_else(|| {
        ReplicationError::order(format!("The filter {named:?} must be written as design/name."))
    })?;
    let missing = |error: DatabaseError| match error {
        DatabaseError::NotFound { .. } => {
            ReplicationError::order(format!("There is no filter {named:?} in {}.", session.name()))
        }
        error => error.into(),
    };
    if of_view.is_some() {
        return session.view_filter(design, function).map_err(missing);
    }
    let identity = session.access().identity();
    let person = json!({
        "db": session.name(),
        "name": identity.and_then(Identity::name),
        "roles": identity.map(Identity::roles).unwrap_or_default(),
    });
    let request = json!({"method": "GET", "query": parameters, "userCtx": person});
    session.function_filter(design, function, request.to_string()).map_err(missing)
}

fn refusal(document: &SourceDocument, reason: &str) -> Refusal {
    Refusal { id: document.id.clone(), revision: document.revision.clone(), reason: reason.to_owned() }
}

/// Revisions of documents, with their history.
fn read(session: &DatabaseSession, wanted: &[Missing]) -> Result<Vec<SourceDocument>> {
    let options =
        ReadOptions { latest: true, revisions: true, encoding_info: true, ..ReadOptions::default() };
    let mut documents = Vec::with_capacity(wanted.len());
    let mut bytes = 0;
    for missing in wanted {
        let which = OpenRevisions::These(missing.revisions.clone());
        for found in session.open_revisions(&missing.id, &which, &options)? {
            let OpenRevision::Found(document) = found else { continue };
            let json = Bytes::from(document.json.into_string());
            bytes += json.len();
            documents.push(SourceDocument::parse(&missing.id, json)?);
        }
        if bytes > READ_BYTES && wanted.len() > 1 {
            return Err(ReplicationError::new(ErrorKind::TooLarge, "These documents are too much at once."));
        }
    }
    Ok(documents)
}

impl End for LocalEnd {
    fn shown(&self) -> &str {
        &self.name
    }

    fn takes_encoded(&self) -> bool {
        true
    }

    fn identity(&self) -> String {
        format!("local:{}", self.name)
    }

    fn info(&self) -> Work<'_, EndInfo> {
        Box::pin(self.with(Level::Reader, |session| {
            Ok(EndInfo { update_sequence: session.describe()?.update_sequence })
        }))
    }

    fn create(&self) -> Work<'_, ()> {
        Box::pin(async move {
            let maker = self.people.present(&self.identity);
            if !maker.is_some_and(|maker| maker.is_administrator()) {
                let reason = format!(
                    "unauthorized to access or create database {}: only an administrator can.",
                    self.name
                );
                return Err(ReplicationError::new(ErrorKind::Unauthorized, reason));
            }
            let (databases, name) = (self.databases.clone(), self.name.clone());
            let made = move || match databases.create(&name, &InitialAccess::Closed) {
                Ok(_) | Err(DatabaseError::Exists { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            };
            self.workers.run(made).await?
        })
    }

    fn filter_code<'a>(&'a self, filter: &'a str) -> Work<'a, Option<String>> {
        Box::pin(async move {
            let Some((design, name)) = filter.split_once('/') else { return Ok(None) };
            let (id, name) = (format!("_design/{design}"), name.to_owned());
            self.with(Level::Reader, move |session| match session.read(&id, &ReadOptions::default()) {
                Ok(document) => {
                    let members = document.json.to_object().unwrap_or_default();
                    let code = members.get("filters").and_then(|filters| filters.get(&name));
                    Ok(code.map(|code| code.as_str().map_or_else(|| code.to_string(), str::to_owned)))
                }
                Err(DatabaseError::NotFound { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            })
            .await
        })
    }

    fn checkpoint<'a>(&'a self, name: &'a str) -> Work<'a, Option<Value>> {
        let id = format!("_local/{name}");
        Box::pin(self.with(Level::Reader, move |session| match session.read_local(&id) {
            Ok(document) => Ok(document.json.to_value()),
            Err(DatabaseError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }))
    }

    fn put_checkpoint<'a>(&'a self, name: &'a str, checkpoint: Value) -> Work<'a, ()> {
        Box::pin(async move {
            let id = format!("_local/{name}");
            let opener = self.opener(Level::Reader)?;
            let admission = self.workers.admit().await?;
            let written = admission.run(move || {
                let session = opener()?;
                let present = match session.read_local(&id) {
                    Ok(document) => Some(document.revision),
                    Err(DatabaseError::NotFound { .. }) => None,
                    Err(error) => return Err(error.into()),
                };
                let json = checkpoint.to_string();
                let update = session.write_local(&id, json.as_bytes(), false, present.as_deref());
                Ok::<_, ReplicationError>(update?)
            });
            for result in written.await??.durable().await? {
                result?;
            }
            Ok(())
        })
    }

    fn changes<'a>(&'a self, request: &'a ChangesRequest) -> Work<'a, ChangesPage> {
        Box::pin(self.next_page(request))
    }

    fn difference<'a>(&'a self, changes: &'a [Change]) -> Work<'a, Vec<Missing>> {
        let wanted: Vec<(String, Vec<String>)> =
            changes.iter().map(|change| (change.id.clone(), change.revisions.clone())).collect();
        Box::pin(self.with(Level::Reader, move |session| {
            let differences = session.revisions_difference(&wanted)?;
            let missing = differences.into_iter().map(|(id, difference)| Missing {
                id,
                revisions: difference.missing,
                possible_ancestors: difference.possible_ancestors,
            });
            Ok(missing.collect())
        }))
    }

    fn documents<'a>(&'a self, wanted: &'a [Missing]) -> Work<'a, Vec<SourceDocument>> {
        let wanted = wanted.to_vec();
        Box::pin(self.with(Level::Reader, move |session| read(&session, &wanted)))
    }

    fn attachment<'a>(&'a self, place: &'a AttachmentPlace, offset: u64) -> Work<'a, Box<dyn ContentStream>> {
        let AttachmentPlace { id, revision, name, is_encoded } = place.clone();
        Box::pin(async move {
            let reader = self.with(Level::Reader, move |session| {
                let reader = session.open_attachment(&id, &name, Some(&revision))?;
                Ok(if is_encoded { reader.into_encoded() } else { reader })
            });
            let reader = Some(reader.await?);
            let stream: Box<dyn ContentStream> =
                Box::new(LocalContent { workers: self.workers.clone(), reader, offset });
            Ok(stream)
        })
    }

    fn write<'a>(&'a self, documents: &'a [SourceDocument]) -> Work<'a, Vec<Refusal>> {
        Box::pin(async move {
            let mut refused = Vec::new();
            for some in documents.chunks(BATCH_EDITS) {
                let edits = some.iter().map(|document| {
                    (document.clone(), Edit { json: document.json.clone(), ..Edit::default() })
                });
                refused.extend(self.store(edits.collect()).await?);
            }
            Ok(refused)
        })
    }

    fn write_with<'a>(
        &'a self,
        document: &'a SourceDocument,
        contents: Vec<IncomingAttachment>,
    ) -> Work<'a, Option<Refusal>> {
        Box::pin(async move {
            let mut attachments = Vec::with_capacity(contents.len());
            for incoming in contents {
                attachments.push(self.receive(incoming).await?);
            }
            let edit = Edit { json: document.json.clone(), attachments, ..Edit::default() };
            Ok(self.store(vec![(document.clone(), edit)]).await?.pop())
        })
    }
}

impl LocalEnd {
    /// Takes an attachment in, piece by piece.
    async fn receive(&self, mut incoming: IncomingAttachment) -> Result<NewAttachment> {
        let content_type = incoming.content_type.clone();
        let is_encoded = incoming.is_encoded;
        let upload = self.with(Level::Depositor, move |session| Ok(session.upload(&content_type))).await?;
        let mut upload = ContentUpload::new(upload, is_encoded);
        while let Some(piece) = incoming.content.next_piece().await? {
            upload = self
                .workers
                .run(move || {
                    upload.write(&piece)?;
                    Ok::<_, ReplicationError>(upload)
                })
                .await??;
        }
        let content = self.finish(upload).await?;
        Ok(NewAttachment { name: incoming.name, content_type: incoming.content_type, content })
    }

    /// A content that may go to a store of objects is sent there outside the worker pool, so that nobody else waits.
    async fn finish(&self, upload: ContentUpload) -> Result<Content> {
        let may_leave = upload.may_leave();
        let finish = move || Ok::<_, ReplicationError>(upload.finish()?);
        if !may_leave {
            return self.workers.run(finish).await?;
        }
        let broken = |_| ReplicationError::new(ErrorKind::Unavailable, "An attachment could not be stored.");
        tokio::task::spawn_blocking(finish).await.map_err(broken)?
    }
}

/// An attachment of a database of this server.
struct LocalContent {
    workers: WorkerPool,
    reader: Option<AttachmentReader>,
    offset: u64,
}

impl ContentStream for LocalContent {
    fn next_piece(&mut self) -> Work<'_, Option<Bytes>> {
        Box::pin(async move {
            let Some(reader) = self.reader.take() else { return Ok(None) };
            let offset = self.offset;
            let read = self.workers.run(move || (reader.read(offset, PIECE_BYTES), reader));
            let (piece, reader) = read.await?;
            let piece = piece?;
            self.offset += piece.len() as u64;
            self.reader = Some(reader);
            Ok((!piece.is_empty()).then_some(piece))
        })
    }
}
