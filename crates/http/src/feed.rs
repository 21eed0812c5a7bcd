//! Change feeds that stay open: longpoll, continuous and eventsource.
//!
//! A feed that waits holds no thread and no snapshot, only its place: the sequence that it has reached and
//! a watch on the database. It ends by itself when its limit or time is reached, when the database is
//! dropped, when its reader may not read any more, and when the server stops, each time with the sequence where the client can continue.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use scrinium_accounting::{Account, Claim, Resource};
use scrinium_database::{ChangesQuery, Level, Since};
use scrinium_document::json::{FilledText, JsonWriter};
use scrinium_worker::WorkerPool;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::access::Opened;
use crate::authority::Identity;
use crate::changes::{self, ChangeReader, Shape, Waiting};
use crate::compress::Uncompressed;
use crate::context::Context;
use crate::databases;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};
use crate::standing::StandingWatch;
use crate::stream::{self, admit_again};
use scrinium_port::raised;

/// How the changes of a feed are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// One JSON object, sent when there is a change.
    LongPoll,
    /// A JSON object a line.
    Continuous,
    /// Server-sent events.
    EventSource,
}

/// Opens a feed: the first changes are looked for before the answer begins, so that errors have a status.
pub(crate) async fn open(
    context: &Context,
    query: ChangesQuery,
    style: Style,
    waiting: Waiting,
) -> Result<Response<Body>> {
    let opened = context.with_database(Ok).await?;
    let reader = Reader { database: opened, identity: context.identity.clone(), shape: Shape::Changes };
    open_for(context, reader, query, style, waiting).await
}

/// Whose changes are read, by whom, and what is made of them.
pub(crate) struct Reader {
    pub(crate) database: Opened,
    /// What they may read is looked at again with whatever comes.
    pub(crate) identity: Identity,
    pub(crate) shape: Shape,
}

/// As [`open`], of a database that the address does not name.
pub(crate) async fn open_for(
    context: &Context,
    Reader { database, identity, shape }: Reader,
    query: ChangesQuery,
    style: Style,
    waiting: Waiting,
) -> Result<Response<Body>> {
    let visible = database.watch();
    let claim = context.account.claim(Resource::Feeds, 1)?;
    let mut feed = Feed {
        _claim: claim,
        account: context.account.clone(),
        standing: StandingWatch::new(&context.state, &context.identity),
        database,
        identity,
        shape,
        workers: context.state.workers.clone(),
        visible,
        stopping: context.state.stopping(),
        left: query.limit,
        pending: None,
        query,
        since: String::new(),
        style,
        waiting,
        wait_until: Instant::now() + waiting.timeout,
        reader: None,
        piece: None,
        begun: false,
        any: false,
        ended: false,
    };
    feed.begin().await?;
    let pieces = futures_util::stream::try_unfold(feed, |mut feed| async move {
        let piece = feed.next().await?;
        Ok(piece.map(|piece| (piece, feed)))
    });
    let mut response = response::json_body(StatusCode::OK, Body::pieces(pieces));
    if style == Style::EventSource {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    }
    response.extensions_mut().insert(Uncompressed);
    Ok(response)
}

struct Feed {
    /// One of the feeds that one person may have.
    _claim: Claim,
    /// Whose threads run its filter.
    account: Account,
    /// Ends the feed when its reader logs out, leaves, or has other roles or another password.
    standing: StandingWatch,
    database: Opened,
    /// Who reads it; what they may read is looked at again with whatever comes.
    identity: Identity,
    shape: Shape,
    workers: WorkerPool,
    visible: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    query: ChangesQuery,
    /// The sequence that was reached.
    since: String,
    /// Changes still to give, where there is a limit.
    left: Option<u64>,
    /// Changes that the feed leaves to others, once it has given all that it may.
    pending: Option<u64>,
    style: Style,
    waiting: Waiting,
    wait_until: Instant,
    /// Changes being read; `None` while the feed waits for more.
    reader: Option<ChangeReader>,
    /// What is being sent.
    piece: Option<FilledText>,
    begun: bool,
    any: bool,
    ended: bool,
}

/// What one hand-off to the worker pool brought.
struct Pulled {
    text: JsonWriter,
    given: u64,
    since: String,
    pending: Option<u64>,
    /// `None` once all changes there are have been read.
    reader: Option<ChangeReader>,
}

enum Woken {
    Changed,
    Heartbeat,
    Over,
}

impl Feed {
    /// Opens the first reader.
    async fn begin(&mut self) -> Result<()> {
        self.visible.borrow_and_update();
        let (database, query) = (self.database.clone(), self.query.clone());
        let opened = self.workers.run(move || {
            let changes = database.changes(query)?;
            let pending = if changes.is_at_end() { changes.pending()? } else { None };
            Ok::<_, HttpError>((changes, pending))
        });
        let (changes, pending) = opened.await??;
        let reader = ChangeReader::new(changes);
        self.pending = pending;
        self.since = reader.changes.last_sequence();
        self.query.since = Since::Beginning;
        self.reader = Some(reader);
        Ok(())
    }

    /// The next piece, or `None` after the last.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            if let Some(bytes) = self.next_bytes().await? {
                return Ok(Some(bytes));
            }
            if self.ended {
                return Ok(None);
            }
            let mut text = JsonWriter::new();
            if !std::mem::replace(&mut self.begun, true) && self.style == Style::LongPoll {
                text.literal("{\"results\":[\n");
            }
            if self.left == Some(0) {
                self.end(text, self.pending);
                continue;
            }
            let Some(reader) = self.reader.take() else {
                match self.wait().await {
                    Woken::Heartbeat => return Ok(Some(Bytes::from_static(self.heartbeat()))),
                    Woken::Over => {
                        self.end(text, Some(0));
                        continue;
                    }
                    Woken::Changed => {
                        if !self.standing.holds() || !self.reopen().await? {
                            self.end(text, Some(0));
                        }
                        continue;
                    }
                }
            };
            let pulled = self.pull(reader, text).await?;
            self.since = pulled.since;
            self.pending = pulled.pending;
            self.reader = pulled.reader;
            if pulled.given > 0 {
                self.any = true;
                self.wait_until = Instant::now() + self.waiting.timeout;
                self.left = self.left.map(|left| left.saturating_sub(pulled.given));
            }
            if self.is_complete() {
                self.end(pulled.text, pulled.pending);
            } else {
                self.piece = Some(pulled.text.into_filled());
            }
        }
    }

    /// What is left of the piece that is being sent; attachments in it are read on the worker pool.
    async fn next_bytes(&mut self) -> Result<Option<Bytes>> {
        let Some(mut piece) = self.piece.take() else { return Ok(None) };
        if !piece.has_contents() {
            return stream::next_bytes(&mut piece);
        }
        let admission = admit_again(&self.workers).await?;
        let (bytes, piece) = admission.run(move || (stream::next_bytes(&mut piece), piece)).await?;
        self.piece = Some(piece);
        bytes
    }

    /// Whether nothing more is to be waited for: a long poll with changes, or a feed that goes backwards.
    fn is_complete(&self) -> bool {
        self.reader.is_none() && (self.query.descending || self.style == Style::LongPoll && self.any)
    }

    /// Reads about a piece of changes on the worker pool.
    async fn pull(&self, mut reader: ChangeReader, mut text: JsonWriter) -> Result<Pulled> {
        let (style, shape, any) = (self.style, self.shape, self.any);
        // A filter may take its time: nobody's may have all threads. Given back by the work itself.
        let thread = match &self.query.filter {
            Some(_) => Some(self.account.thread().await),
            None => None,
        };
        let admission = admit_again(&self.workers).await?;
        let pulled = admission.run(move || {
            let _thread = thread;
            let mut given = 0;
            let last = reader.write(&mut text, |text, change| {
                if style == Style::LongPoll && (any || given > 0) {
                    text.literal(",\n");
                }
                given += 1;
                push(text, (style, shape), change);
            })?;
            let since = reader.changes.last_sequence();
            // Counted only where the feed may end with it.
            let pending = if last { reader.changes.pending()? } else { None };
            Ok(Pulled { text, given, since, pending, reader: (!last).then_some(reader) })
        });
        pulled.await?
    }

    /// Opens a reader for what came meanwhile; false if the database is gone, or may not be read any more.
    async fn reopen(&mut self) -> Result<bool> {
        self.follow_move();
        // Seen before it is read, so that a change in between wakes the next wait.
        self.visible.borrow_and_update();
        let (database, query) = (self.database.clone(), self.query.clone());
        let (since, left) = (self.since.clone(), self.left);
        let admission = admit_again(&self.workers).await?;
        let identity = self.identity.clone();
        let reopened = admission.run(move || {
            let database = database.renewed(&identity)?;
            (database.level() >= Level::Reader)
                .then(|| changes::reopen(&database, &query, &since, left))
                .transpose()
        });
        match reopened.await? {
            Ok(None) => Ok(false),
            Ok(Some(reader)) => {
                self.reader = Some(reader);
                Ok(true)
            }
            Err(error) if databases::is_gone(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Goes on with the database where it was moved to; its sequences are the same there.
    fn follow_move(&mut self) -> bool {
        let moved = self.database.follow_move();
        if moved {
            self.visible = self.database.watch();
        }
        moved
    }

    async fn wait(&mut self) -> Woken {
        if self.follow_move() {
            return Woken::Changed;
        }
        let until = match self.waiting.heartbeat {
            Some(interval) => Instant::now() + interval,
            None => self.wait_until,
        };
        tokio::select! {
            biased;
            () = raised(&mut self.stopping) => Woken::Over,
            () = self.standing.ended() => Woken::Over,
            changed = self.visible.changed() => if changed.is_ok() { Woken::Changed } else { Woken::Over },
            () = tokio::time::sleep_until(until) => {
                if self.waiting.heartbeat.is_some() { Woken::Heartbeat } else { Woken::Over }
            }
        }
    }

    fn heartbeat(&self) -> &'static [u8] {
        match self.style {
            Style::EventSource => b"event: heartbeat\ndata: \n\n",
            Style::LongPoll | Style::Continuous => b"\n",
        }
    }

    fn end(&mut self, mut text: JsonWriter, pending: Option<u64>) {
        self.ended = true;
        match self.style {
            Style::LongPoll => self.shape.push_end(&mut text, &self.since, pending),
            Style::Continuous => {
                text.literal("{\"last_seq\":");
                text.string(&self.since);
                self.shape.push_pending(&mut text, pending);
            }
            Style::EventSource => {}
        }
        self.piece = Some(text.into_filled());
    }
}

fn push(text: &mut JsonWriter, (style, shape): (Style, Shape), change: &scrinium_database::Change) {
    match style {
        Style::LongPoll => shape.push(text, change),
        Style::Continuous => {
            shape.push(text, change);
            text.literal("\n");
        }
        Style::EventSource => {
            text.literal("data: ");
            shape.push(text, change);
            text.literal("\nid: ").plain_line(&change.sequence).literal("\n\n");
        }
    }
}
