//! How many times the server has synced its log, from the statistics that it shows.

use http::Method;
use parking_lot::Mutex;
use serde_json::Value;

use super::connection::{Answer, Connection};

/// Finds the number in an answer.
type Reader = fn(&Answer) -> Option<u64>;

/// Places to look, best first. The first that has the number is kept.
const PLACES: &[(&str, Reader)] =
    &[("/metrics", from_prometheus), ("/_node/_local/_stats", from_couchdb), ("/_stats", from_couchdb)];

/// Which place has the number.
#[derive(Clone, Copy, Default)]
enum Found {
    #[default]
    Unknown,
    At(usize),
    Nowhere,
}

/// Reads the number, after having looked for it once.
#[derive(Default)]
pub(super) struct LogSyncs {
    found: Mutex<Found>,
    connection: tokio::sync::Mutex<Option<Connection>>,
}

impl LogSyncs {
    pub(super) async fn read(&self, connect: impl FnOnce() -> Connection) -> Option<u64> {
        let mut connection = self.connection.lock().await;
        let connection = connection.get_or_insert_with(connect);
        let found = *self.found.lock();
        match found {
            Found::Nowhere => None,
            Found::At(place) => ask(connection, place).await,
            Found::Unknown => {
                for place in 0..PLACES.len() {
                    if let Some(syncs) = ask(connection, place).await {
                        *self.found.lock() = Found::At(place);
                        return Some(syncs);
                    }
                }
                *self.found.lock() = Found::Nowhere;
                None
            }
        }
    }
}

async fn ask(connection: &mut Connection, place: usize) -> Option<u64> {
    let (path, read) = PLACES.get(place)?;
    let answer = connection.exchange(Method::GET, path, None).await.ok()?.expect(&[200]).ok()?;
    read(&answer)
}

/// `scrinium_log_syncs_total 123` or the like.
fn from_prometheus(answer: &Answer) -> Option<u64> {
    let text = std::str::from_utf8(&answer.body).ok()?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        let known = name.ends_with("log_syncs_total") || name.ends_with("log_syncs");
        if known { value.trim().parse().ok() } else { None }
    })
}

/// CouchDB counts every sync of a file; Scrinium those of its log.
fn from_couchdb(answer: &Answer) -> Option<u64> {
    let statistics: Value = serde_json::from_slice(&answer.body).ok()?;
    ["/Log/Syncs/value", "/fsync/count/value"]
        .iter()
        .find_map(|pointer| statistics.pointer(pointer).and_then(Value::as_u64))
}
