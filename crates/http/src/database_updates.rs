//! `_db_updates`: which databases were made, changed and dropped.
//!
//! As in CouchDB, what becomes of databases is written into the database `_global_changes`, one document for each kind of
//! event and database, and `_db_updates` is the feed of its changes. It is there, and written, as soon as somebody has asked
//! for it once; until then nothing is noted. Events of the same kind that come close together are one.

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use scrinium_catalog::{Databases, EVENTS_DATABASE};
use scrinium_database::access::readable::ReadableLeaf;
use scrinium_database::{ChangesFilter, Database, DatabaseError, DatabaseEventKind, Level};
use scrinium_port::raised;
use scrinium_views::DatabaseSession;

use crate::authority::Identity;
use crate::changes::{self, ChangesText, Shape};
use crate::context::Context;
use crate::error::Result;
use crate::feed::{self, Reader};
use crate::response::{self, Body};
use crate::state::HttpState;
use crate::stream;

/// How long events are gathered before they are written.
const GATHERED_FOR: Duration = Duration::from_millis(250);

/// `GET /_db_updates`: administrators of the server are told of all databases, others of those that they may read.
pub(crate) async fn updates(context: &Context) -> Result<Response<Body>> {
    let mut query = changes::plain_query(context)?;
    query.include_documents = false;
    query.all_leaves = false;
    let style = changes::style(context, &query)?;
    let (databases, asker) = (context.state.databases.clone(), context.identity.clone());
    query.filter = Some(Arc::new(VisibleDatabases { databases: databases.clone(), asker }));
    // The events themselves are read by the server, and told as far as the filter lets them pass.
    let identity = Identity::new(EVENTS_DATABASE, vec!["_admin".to_owned()]);
    let reader = identity.clone();
    let database = context
        .state
        .run(move || {
            databases.follow_events(true)?;
            Ok(DatabaseSession::open(databases.get_own(EVENTS_DATABASE)?, &reader)?)
        })
        .await?;
    let Some(style) = style else {
        let begin = move || stream::begin(ChangesText::new(database.changes(query)?, Shape::Events));
        let begun = context.state.run(begin).await?;
        return Ok(response::json_body(StatusCode::OK, begun.into_body(context, None)?));
    };
    let reader = Reader { database, identity, shape: Shape::Events };
    feed::open_for(context, reader, query, style, changes::waiting(context)?).await
}

/// Lets those events pass whose database the one who asks may read.
struct VisibleDatabases {
    databases: Databases,
    asker: Identity,
}

impl std::fmt::Debug for VisibleDatabases {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("VisibleDatabases").field("asker", &self.asker.name()).finish_non_exhaustive()
    }
}

impl ChangesFilter for VisibleDatabases {
    fn lets_pass(&self, _: &Database, leaf: ReadableLeaf<'_>) -> std::result::Result<bool, DatabaseError> {
        let parts = leaf.id().split_once(':');
        let event = parts.and_then(|(kind, name)| Some((DatabaseEventKind::of_word(kind)?, name)));
        let Some((kind, name)) = event.filter(|_| !leaf.deleted) else { return Ok(false) };
        if self.asker.is_administrator() {
            return Ok(true);
        }
        // Who might read a database that is no more, nobody knows.
        if kind == DatabaseEventKind::Deleted {
            return Ok(false);
        }
        match self.databases.open_for(name, &self.asker) {
            Ok(opened) => Ok(opened.level() >= Level::Reader),
            Err(DatabaseError::NotFound { .. } | DatabaseError::Damaged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Writes down what becomes of databases until the server stops. It costs nothing while nobody has asked for it.
pub(crate) async fn follow(state: HttpState) {
    let (mut stopping, mut came) = (state.stopping(), state.databases.events().watch());
    let databases = state.databases.clone();
    let begun = state.run(move || Ok(databases.follow_events(false)?));
    if let Err(error) = begun.await {
        tracing::warn!(%error, "what becomes of databases is not noted until somebody asks for it");
    }
    loop {
        tokio::select! {
            biased;
            () = raised(&mut stopping) => return,
            changed = came.changed() => if changed.is_err() { return },
        }
        tokio::select! {
            biased;
            () = raised(&mut stopping) => {}
            () = tokio::time::sleep(GATHERED_FOR) => {}
        }
        let databases = state.databases.clone();
        if let Err(error) = state.run(move || Ok(databases.write_events()?)).await {
            tracing::warn!(%error, "what became of databases could not be noted");
        }
    }
}
