//! What the server counts of itself, from the statistics that it shows: syncs of its log, its buffer pool, and how far views
//! were behind.

use http::Method;
use parking_lot::Mutex;
use serde_json::Value;

use super::connection::{Answer, Connection};

/// Each since the server began; `None`: it does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// Syncs of the log.
    pub log_syncs: Option<u64>,
    /// Blocks that were in the buffer pool when they were needed.
    pub pool_hits: Option<u64>,
    /// Blocks that were not.
    pub pool_misses: Option<u64>,
    /// How many times views were brought up to date.
    pub view_updates: Option<u64>,
    /// This many changes they were behind then, all together.
    pub view_changes: Option<u64>,
}

impl ServerCounts {
    /// What has arrived since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        self.zip(before, |now, before| Some(now?.saturating_sub(before?)))
    }

    /// Both together; what one of them does not tell is not told.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.zip(other, |one, other| Some(one?.saturating_add(other?)))
    }

    fn zip(&self, other: &Self, join: impl Fn(Option<u64>, Option<u64>) -> Option<u64>) -> Self {
        Self {
            log_syncs: join(self.log_syncs, other.log_syncs),
            pool_hits: join(self.pool_hits, other.pool_hits),
            pool_misses: join(self.pool_misses, other.pool_misses),
            view_updates: join(self.view_updates, other.view_updates),
            view_changes: join(self.view_changes, other.view_changes),
        }
    }

    /// The share of blocks that were in the pool when they were needed.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "counts need no more than 53 bits")]
    pub fn pool_hits_percent(&self) -> Option<f64> {
        let (hits, misses) = (self.pool_hits? as f64, self.pool_misses? as f64);
        (hits + misses > 0.0).then(|| 100.0 * hits / (hits + misses))
    }

    /// How many changes a view was behind, on average, when it was brought up to date; 0 where none was.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "counts need no more than 53 bits")]
    pub fn view_lag_changes(&self) -> Option<f64> {
        Some(self.view_changes? as f64 / self.view_updates?.max(1) as f64)
    }

    fn has_any(&self) -> bool {
        *self != Self::default()
    }
}

/// Finds counts in an answer.
type Reader = fn(&Answer) -> ServerCounts;

/// Places to look, best first. The first that has any is kept.
const PLACES: &[(&str, Reader)] =
    &[("/metrics", from_prometheus), ("/_node/_local/_stats", from_couchdb), ("/_stats", from_couchdb)];

/// Which place has them.
#[derive(Clone, Copy, Default)]
enum KnownPlace {
    #[default]
    Unknown,
    At(usize),
    Nowhere,
}

/// Reads the counts, after having looked for them once.
#[derive(Default)]
pub(super) struct CountsReader {
    found: Mutex<KnownPlace>,
    connection: tokio::sync::Mutex<Option<Connection>>,
}

impl CountsReader {
    pub(super) async fn read(&self, connect: impl FnOnce() -> Connection) -> Option<ServerCounts> {
        let mut connection = self.connection.lock().await;
        let connection = connection.get_or_insert_with(connect);
        let found = *self.found.lock();
        match found {
            KnownPlace::Nowhere => None,
            KnownPlace::At(place) => ask(connection, place).await,
            KnownPlace::Unknown => {
                for place in 0..PLACES.len() {
                    if let Some(counts) = ask(connection, place).await {
                        *self.found.lock() = KnownPlace::At(place);
                        return Some(counts);
                    }
                }
                *self.found.lock() = KnownPlace::Nowhere;
                None
            }
        }
    }
}

async fn ask(connection: &mut Connection, place: usize) -> Option<ServerCounts> {
    let (path, read) = PLACES.get(place)?;
    let answer = connection.exchange(Method::GET, path, None).await.ok()?.expect(&[200]).ok()?;
    Some(read(&answer)).filter(ServerCounts::has_any)
}

/// `scrinium_log_syncs_total 123` and the like.
fn from_prometheus(answer: &Answer) -> ServerCounts {
    let mut counts = ServerCounts::default();
    for line in std::str::from_utf8(&answer.body).unwrap_or_default().lines() {
        let Some((name, value)) = line.split_once(' ') else { continue };
        let place = match name {
            name if name.ends_with("log_syncs_total") || name.ends_with("log_syncs") => &mut counts.log_syncs,
            "scrinium_database_buffer_pool_hits" => &mut counts.pool_hits,
            "scrinium_database_buffer_pool_misses" => &mut counts.pool_misses,
            "scrinium_view_updates" => &mut counts.view_updates,
            "scrinium_view_updates_changes" => &mut counts.view_changes,
            _ => continue,
        };
        if place.is_none() {
            *place = value.trim().parse().ok();
        }
    }
    counts
}

/// CouchDB counts every sync of a file; Scrinium those of its log.
fn from_couchdb(answer: &Answer) -> ServerCounts {
    let statistics: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let places = ["/Log/Syncs/value", "/fsync/count/value"];
    let log_syncs = places.iter().find_map(|pointer| statistics.pointer(pointer).and_then(Value::as_u64));
    ServerCounts { log_syncs, ..ServerCounts::default() }
}
