//! One replication from one end to the other: what changed at the source, what of it the target has not, and that.
//!
//! Changes are read in pages. Each page is compared with the target, read and written by itself; some pages are under way at
//! a time, and the checkpoint follows the first that is not done. So whatever breaks off, what is repeated is less than
//! the pages under way, and repeating changes nothing: revisions bring their own names. Memory is bounded by the pages under
//! way and the bytes that are read of each at once.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use scrinium_clock::Clock;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::checkpoint::{History, Session, sequence_number};
use crate::count::{Counts, add};
use crate::end::{ChangesPage, ChangesRequest, End};
use crate::error::{ErrorKind, ReplicationError, Result};
use crate::filter::Filter;
use crate::name::{http_time, random_name};
use crate::transfer::Transfer;

/// How a replication proceeds.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Changes of a page.
    pub page_changes: usize,
    /// Pages under way at a time.
    pub pages_at_once: usize,
    /// Documents with large attachments that are under way at a time, in a page.
    pub documents_at_once: usize,
    /// How often a checkpoint is written.
    pub checkpoint_every: Duration,
    /// How long an attachment that broke off waits before it goes on; each further time twice as long.
    pub content_wait: Duration,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            page_changes: 1000,
            pages_at_once: 3,
            documents_at_once: 4,
            checkpoint_every: Duration::from_secs(5),
            content_wait: Duration::from_millis(200),
        }
    }
}

/// One replication.
pub struct Replication {
    /// Where documents come from.
    pub source: Arc<dyn End>,
    /// Where they go to.
    pub target: Arc<dyn End>,
    /// Which ones.
    pub filter: Arc<Filter>,
    /// What names its checkpoints.
    pub name: String,
    /// Whether it waits for further changes.
    pub continuous: bool,
    /// Whether the target is made where it is missing.
    pub create_target: bool,
    /// Of each document the winner alone.
    pub winners_only: bool,
    /// Where it begins if there is no checkpoint.
    pub since: Option<String>,
    /// Whether checkpoints are written.
    pub uses_checkpoints: bool,
    /// How it proceeds.
    pub options: EngineOptions,
    /// What it has done.
    pub counts: Arc<Counts>,
    /// What tells the time.
    pub clock: Clock,
    /// Pages of all replications of the server that may be under way.
    pub turns: Turns,
    /// Documents that are asked for at once; it becomes what suits the documents.
    pub read_at_once: Arc<AtomicUsize>,
}

/// Pages that may be under way, of all replications of a server. Those of a lower priority may have some of them, so that there is
/// always a place for a higher one soon.
#[derive(Clone, Debug)]
pub struct Turns {
    all: Arc<Semaphore>,
    /// What this replication may have of them, where that is less.
    some: Option<Arc<Semaphore>>,
}

/// A page under way.
struct Turn {
    _some: Option<OwnedSemaphorePermit>,
    _all: OwnedSemaphorePermit,
}

impl Turns {
    /// All of these.
    #[must_use]
    pub fn of(all: Arc<Semaphore>) -> Self {
        Self { all, some: None }
    }

    /// Of all, no more than these.
    #[must_use]
    pub fn some_of(all: Arc<Semaphore>, some: Arc<Semaphore>) -> Self {
        Self { all, some: Some(some) }
    }

    async fn take(&self) -> Result<Turn> {
        let closed = |_| ReplicationError::cancelled();
        let some = match &self.some {
            Some(some) => Some(Arc::clone(some).acquire_owned().await.map_err(closed)?),
            None => None,
        };
        let all = Arc::clone(&self.all).acquire_owned().await.map_err(closed)?;
        Ok(Turn { _some: some, _all: all })
    }
}

/// How a replication ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// The last checkpoint, whether written or not.
    pub checkpoint: Value,
    /// Whether there was nothing to do.
    pub no_changes: bool,
    /// Its session.
    pub session: String,
    /// Everything up to here is at the target.
    pub reached: String,
}

/// Which ends take checkpoints.
#[derive(Clone, Copy)]
struct Takes {
    source: bool,
}

/// The place of a replication while it runs.
struct Progress {
    session: Session,
    takes: Takes,
    reached: String,
    written: Option<String>,
    written_at: Instant,
}

/// A page that is done.
struct Done {
    last_sequence: String,
    pending: Option<u64>,
}

impl Replication {
    /// Carries it out; a continuous one ends only with an error.
    ///
    /// # Errors
    /// Why it stopped. Everything up to the last checkpoint is at the target.
    pub async fn run(self: &Arc<Self>) -> Result<Ended> {
        let begun_at = self.source.info().await?;
        self.prepare_target().await?;
        let name = self.checkpoint_name().await?;
        let (history, takes) = self.history(&name, &begun_at.update_sequence).await?;
        let start = history.sequence.clone().or_else(|| self.since.clone());
        let session = Session {
            id: random_name(),
            started: http_time(&self.clock),
            began_at: start.clone(),
            earlier: history.sessions,
        };
        let mut progress = Progress {
            session,
            takes,
            reached: start.clone().unwrap_or_else(|| "0".to_owned()),
            written: history.sequence,
            written_at: Instant::now(),
        };
        self.counts.change_place(|place| {
            place.through_sequence.clone_from(&start);
            place.checkpointed_sequence.clone_from(&progress.written);
        });
        let moved = self.move_pages(&name, start, &mut progress).await;
        if self.is_behind(&progress) {
            // What is at the target already need not be looked at again, whatever stopped the rest.
            let written = self.write_checkpoint(&name, &mut progress).await;
            moved?;
            written?;
        } else {
            moved?;
        }
        let now = http_time(&self.clock);
        let no_changes = progress.session.began_at.as_deref() == Some(&*progress.reached);
        Ok(Ended {
            checkpoint: progress.session.checkpoint(&progress.reached, &now, &self.counts),
            no_changes,
            session: progress.session.id,
            reached: progress.reached,
        })
    }

    fn is_behind(&self, progress: &Progress) -> bool {
        let begin = progress.session.began_at.as_deref().unwrap_or("0");
        self.uses_checkpoints
            && progress.written.as_deref() != Some(&*progress.reached)
            && progress.reached != begin
    }

    async fn prepare_target(&self) -> Result<()> {
        match self.target.info().await {
            Ok(_) => Ok(()),
            Err(error) if error.kind == ErrorKind::NotFound && self.create_target => {
                self.target.create().await?;
                self.target.info().await.map(drop)
            }
            Err(error) => Err(error),
        }
    }

    /// A filter function that was changed lets other documents through, so its text belongs into the name.
    async fn checkpoint_name(&self) -> Result<String> {
        let Filter::Function { name, .. } = &*self.filter else { return Ok(self.name.clone()) };
        if name.starts_with('_') {
            return Ok(self.name.clone());
        }
        let code = self.source.filter_code(name).await?;
        let code = code.ok_or_else(|| {
            let source = self.source.shown();
            ReplicationError::order(format!("There is no filter function {name:?} in {source}."))
        })?;
        Ok(crate::name::digest_of(&[&self.name, &code]))
    }

    /// What both ends know, and whether the source takes checkpoints: a database that may only be read does not.
    async fn history(&self, name: &str, update_sequence: &str) -> Result<(History, Takes)> {
        let mut takes = Takes { source: true };
        if !self.uses_checkpoints {
            return Ok((History::default(), takes));
        }
        let target = self.target.checkpoint(name).await?;
        let source = match self.source.checkpoint(name).await {
            Err(error) if matches!(error.kind, ErrorKind::Forbidden | ErrorKind::Unauthorized) => {
                takes.source = false;
                None
            }
            read => read?,
        };
        if takes.source && (source.is_some() || target.as_ref().is_none_or(|log| !is_of_one_end(log))) {
            return Ok((History::common(source.as_ref(), target.as_ref()), takes));
        }
        // The target's alone: good as long as the source has not begun again.
        let history = History::common(target.as_ref(), target.as_ref());
        let reached = history.sequence.as_deref().map_or(0, sequence_number);
        let holds = reached <= sequence_number(update_sequence);
        Ok((if holds { history } else { History::default() }, takes))
    }

    /// Pages one after the other, some under way at a time.
    async fn move_pages(
        self: &Arc<Self>,
        name: &str,
        start: Option<String>,
        progress: &mut Progress,
    ) -> Result<()> {
        let pages = stream::unfold(Some((start, false)), |next| {
            let replication = Arc::clone(self);
            async move {
                let (since, wait) = next?;
                let page = replication.page(since, wait).await;
                let next = match &page {
                    Ok(page) if page.is_last && !replication.continuous => None,
                    Ok(page) => Some((Some(page.last_sequence.clone()), page.is_last)),
                    Err(_) => None,
                };
                Some((page, next))
            }
        });
        let moved = pages.map(|page| {
            let replication = Arc::clone(self);
            async move { replication.move_page(page?).await }
        });
        let mut moved = std::pin::pin!(moved.buffered(self.options.pages_at_once.max(1)));
        loop {
            let due = progress.written_at + self.options.checkpoint_every;
            let done = tokio::select! {
                done = moved.next() => done,
                () = tokio::time::sleep_until(due), if self.is_behind(progress) => {
                    self.write_checkpoint(name, progress).await?;
                    continue;
                }
            };
            let Some(done) = done.transpose()? else { return Ok(()) };
            progress.reached.clone_from(&done.last_sequence);
            self.counts.change_place(|place| {
                place.through_sequence = Some(done.last_sequence);
                place.pending = done.pending;
            });
        }
    }

    async fn page(&self, since: Option<String>, wait: bool) -> Result<ChangesPage> {
        let request = ChangesRequest {
            since,
            limit: self.options.page_changes,
            wait,
            winners_only: self.winners_only,
            filter: Arc::clone(&self.filter),
        };
        let page = self.source.changes(&request).await?;
        self.counts.change_place(|place| {
            place.source_sequence = Some(page.last_sequence.clone());
            place.pending = page.pending;
        });
        Ok(page)
    }

    async fn move_page(self: Arc<Self>, page: ChangesPage) -> Result<Done> {
        let ChangesPage { changes, last_sequence, pending, .. } = page;
        if !changes.is_empty() {
            let transfer = Transfer::of(&self);
            let turns = self.turns.clone();
            // A task of its own, so that pages use several cores.
            Attached::spawn(async move {
                let _turn = turns.take().await?;
                transfer.move_changes(changes).await
            })
            .await?;
        }
        Ok(Done { last_sequence, pending })
    }

    /// Source first, as CouchDB does.
    async fn write_checkpoint(&self, name: &str, progress: &mut Progress) -> Result<()> {
        let now = http_time(&self.clock);
        let mut checkpoint = progress.session.checkpoint(&progress.reached, &now, &self.counts);
        if let Some(members) = checkpoint.as_object_mut() {
            // Whose history it is, for who reads it.
            members.insert("source".to_owned(), self.source.shown().into());
            members.insert("target".to_owned(), self.target.shown().into());
        }
        if progress.takes.source {
            match self.source.put_checkpoint(name, checkpoint.clone()).await {
                Err(error) if matches!(error.kind, ErrorKind::Forbidden | ErrorKind::Unauthorized) => {
                    progress.takes.source = false;
                }
                written => written?,
            }
        }
        if !progress.takes.source
            && let Some(members) = checkpoint.as_object_mut()
        {
            members.insert(OF_ONE_END.to_owned(), true.into());
        }
        self.target.put_checkpoint(name, checkpoint).await?;
        add(&self.counts.checkpoints_written, 1);
        progress.written = Some(progress.reached.clone());
        progress.written_at = Instant::now();
        self.counts.change_place(|place| place.checkpointed_sequence.clone_from(&progress.written));
        Ok(())
    }
}

/// A member of a checkpoint that the source did not take.
const OF_ONE_END: &str = "target_only";

fn is_of_one_end(log: &Value) -> bool {
    log.get(OF_ONE_END) == Some(&Value::Bool(true))
}

/// A task that ends when nobody waits for it any more.
struct Attached<T>(JoinHandle<T>);

impl<T: Send + 'static> Attached<Result<T>> {
    async fn spawn(work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
        let mut task = Self(tokio::spawn(work));
        (&mut task.0)
            .await
            .map_err(|_| ReplicationError::new(ErrorKind::Unavailable, "The work was broken off."))?
    }
}

impl<T> Drop for Attached<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
