//! `_feed`: one stream of events for all that somebody looks at: which databases have changed, and how far.
//!
//! A stream that waits holds no thread and no snapshot, only watches. What changes close together is one event for each database, and
//! the next ones are made when the client has taken those before: a client that reads slowly misses events and no change. Whether the
//! person may read a database is found out with each event of it.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{pending, select_all};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use scrinium_accounting::{Claim, Resource};
use scrinium_catalog::Databases;
use scrinium_database::Level;
use scrinium_document::json::JsonWriter;
use scrinium_port::raised;
use scrinium_worker::WorkerPool;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::access;
use crate::authority::Identity;
use crate::changes::{self, Waiting};
use crate::compress::Uncompressed;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};
use crate::standing::StandingWatch;
use crate::stream::admit_again;

/// Databases of one stream.
const DATABASES_MAX: usize = 32;

/// How long changes are gathered before they are told.
const GATHERED_FOR: Duration = Duration::from_millis(150);

/// A database that is not there, or that the person may not read, is looked for again so often.
const LOOKED_FOR_EVERY: Duration = Duration::from_secs(10);

/// `GET /_feed?databases=["mail/ada"]`: begins with where each of the databases is that the person may read, and goes on with each
/// change of that; as a feed of `_changes` it ends when nothing changes for a while, unless a heartbeat is asked for.
pub(crate) async fn open(context: &Context) -> Result<Response<Body>> {
    let watched = names(context)?.into_iter().map(Watched::new).collect();
    let feed = PersonFeed {
        _claim: context.account.claim(Resource::Feeds, 1)?,
        standing: StandingWatch::new(&context.state, &context.identity),
        identity: context.identity.clone(),
        databases: context.state.databases.clone(),
        workers: context.state.workers.clone(),
        stopping: context.state.stopping(),
        watched,
        looked_for: None,
        has_begun: false,
        waiting: changes::waiting(context)?,
    };
    let pieces = futures_util::stream::try_unfold(feed, |mut feed| async move {
        Ok(feed.next().await?.map(|bytes| (bytes, feed)))
    });
    let mut response = response::json_body(StatusCode::OK, Body::pieces(pieces));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.extensions_mut().insert(Uncompressed);
    Ok(response)
}

fn names(context: &Context) -> Result<Vec<String>> {
    let wrong = || HttpError::bad_request("`databases` must be a list of names, such as [\"mail/ada\"].");
    let text = context.query.get("databases").ok_or_else(wrong)?;
    let mut names: Vec<String> = serde_json::from_str(text).map_err(|_| wrong())?;
    names.sort_unstable();
    names.dedup();
    if names.is_empty() || names.len() > DATABASES_MAX {
        return Err(HttpError::bad_request(format!("`databases` names 1 to {DATABASES_MAX} databases.")));
    }
    Ok(names)
}

/// One database of a stream.
struct Watched {
    name: String,
    /// Where the person may read it.
    visible: Option<watch::Receiver<u64>>,
    /// The number of the last change that was told of.
    number: u64,
    /// What was told last; `None` where nothing was, or that it is not there.
    told: Option<String>,
}

impl Watched {
    const fn new(name: String) -> Self {
        Self { name, visible: None, number: 0, told: None }
    }

    fn has_changed(&self) -> bool {
        let is_further = |visible: &watch::Receiver<u64>| *visible.borrow() != self.number;
        self.visible.as_ref().is_some_and(|visible| is_further(visible) || visible.has_changed().is_err())
    }

    /// Looks at the database as it is now, for the person as they are now, and tells what is new of it. Blocks.
    fn look(&mut self, databases: &Databases, identity: &Identity, text: &mut JsonWriter) {
        let opened = access::open(databases, &self.name, identity, Level::Reader);
        let Ok(opened) = opened else {
            self.visible = None;
            // The same, whatever the reason is.
            if self.told.take().is_some() {
                text.literal("data: {\"db\":").string(&self.name).literal(",\"seq\":null}\n\n");
            }
            return;
        };
        let mut visible = opened.watch();
        self.number = *visible.borrow_and_update();
        self.visible = Some(visible);
        let sequence = opened.sequence_text(self.number);
        if self.told.as_ref() != Some(&sequence) {
            text.literal("data: {\"db\":").string(&self.name).literal(",\"seq\":").string(&sequence);
            text.literal("}\n\n");
            self.told = Some(sequence);
        }
    }
}

struct PersonFeed {
    /// One of the feeds that one person may have.
    _claim: Claim,
    /// Ends the stream when its reader logs out, leaves, or has other roles or another password.
    standing: StandingWatch,
    identity: Identity,
    databases: Databases,
    workers: WorkerPool,
    stopping: watch::Receiver<bool>,
    watched: Vec<Watched>,
    /// When databases were looked for that are not there.
    looked_for: Option<Instant>,
    has_begun: bool,
    waiting: Waiting,
}

enum Woken {
    Changed,
    Heartbeat,
    Over,
}

impl PersonFeed {
    /// The next events, or `None` after the last.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            if std::mem::replace(&mut self.has_begun, true) {
                match self.wait().await {
                    Woken::Changed => {}
                    Woken::Heartbeat => return Ok(Some(Bytes::from_static(b":\n\n"))),
                    Woken::Over => return Ok(None),
                }
            }
            if !self.standing.holds() {
                return Ok(None);
            }
            let is_first = self.looked_for.is_none();
            let events = self.look().await?;
            // The client learns that the stream is open, though there may be nothing in it.
            if is_first || !events.is_empty() {
                return Ok(Some(if events.is_empty() { Bytes::from_static(b":\n\n") } else { events }));
            }
        }
    }

    /// What is new of the databases.
    async fn look(&mut self) -> Result<Bytes> {
        let looks_for = self.looked_for.is_none_or(|looked| looked.elapsed() >= LOOKED_FOR_EVERY);
        if looks_for {
            self.looked_for = Some(Instant::now());
        }
        let mut watched = std::mem::take(&mut self.watched);
        let (databases, identity) = (self.databases.clone(), self.identity.clone());
        let admission = admit_again(&self.workers).await?;
        let work = move || {
            let mut text = JsonWriter::new();
            for one in &mut watched {
                if one.has_changed() || (looks_for && one.visible.is_none()) {
                    one.look(&databases, &identity, &mut text);
                }
            }
            (watched, text)
        };
        let (watched, text) = admission.run(work).await?;
        self.watched = watched;
        Ok(Bytes::from(text.into_string()))
    }

    async fn wait(&mut self) -> Woken {
        let is_behind = self.watched.iter().any(Watched::has_changed);
        let is_absent = self.watched.iter().any(|one| one.visible.is_none());
        let looked_for = self.looked_for.unwrap_or_else(Instant::now);
        let changes: Vec<_> = self
            .watched
            .iter_mut()
            .filter_map(|one| one.visible.as_mut())
            .map(|visible| Box::pin(visible.changed()))
            .collect();
        let changed = async {
            if is_behind {
                return;
            }
            if changes.is_empty() {
                return pending().await;
            }
            drop(select_all(changes).await);
        };
        let look_again = async {
            if !is_absent {
                return pending().await;
            }
            tokio::time::sleep_until(looked_for + LOOKED_FOR_EVERY).await;
        };
        let (idle, idled) = match self.waiting.heartbeat {
            Some(interval) => (interval, Woken::Heartbeat),
            None => (self.waiting.timeout, Woken::Over),
        };
        tokio::select! {
            biased;
            () = raised(&mut self.stopping) => return Woken::Over,
            () = self.standing.ended() => return Woken::Over,
            () = changed => {}
            () = look_again => return Woken::Changed,
            () = tokio::time::sleep(idle) => return idled,
        }
        tokio::select! {
            biased;
            () = raised(&mut self.stopping) => Woken::Over,
            () = tokio::time::sleep(GATHERED_FOR) => Woken::Changed,
        }
    }
}
