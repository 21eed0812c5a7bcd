//! Policies on the disk: 256 documents, each with those of some domains.
//!
//! A policy is read and written with those next to it, whose number is bounded, so that neither costs more as there are more domains.

use std::sync::Arc;

use scrinium_database::{Database, DatabaseError};
use scrinium_mail::QUEUE_KEEPER;
use scrinium_mail_discovery::sts::{KeptPolicy, StsPolicy};
use scrinium_sender_authentication::DomainName;
use serde::{Deserialize, Serialize};

/// Policies in one document. When there is no room, the one goes that ends first: its domain's next mail fetches it again.
const TOGETHER_MAX: usize = 64;

/// Longer policies are not kept.
const TEXT_BYTES_MAX: usize = 16 << 10;

#[derive(Serialize, Deserialize)]
struct Row {
    domain: String,
    id: String,
    policy: String,
    fetched_seconds: u64,
}

#[derive(Default, Serialize, Deserialize)]
struct Rows {
    policies: Vec<Row>,
}

impl Row {
    fn read(&self) -> Option<KeptPolicy> {
        let policy = StsPolicy::parse(self.policy.as_bytes()).ok()?;
        Some(KeptPolicy { id: self.id.clone(), policy, fetched_seconds: self.fetched_seconds })
    }

    fn ends_seconds(&self) -> u64 {
        let age = self.read().map_or(0, |kept| kept.policy.max_age_seconds);
        self.fetched_seconds.saturating_add(age)
    }
}

pub(super) struct Shelf {
    database: Arc<Database>,
    /// Each document is written as a whole.
    writing: Arc<tokio::sync::Mutex<()>>,
}

impl Shelf {
    pub(super) fn new(database: &Arc<Database>) -> Self {
        Self { database: Arc::clone(database), writing: Arc::default() }
    }

    /// The policy of a domain as it was kept, whether it still holds or not.
    pub(super) async fn find(&self, domain: &DomainName) -> Option<KeptPolicy> {
        let (database, id, name) = (Arc::clone(&self.database), id_of(domain), domain.to_string());
        let found = blocking(move || rows(&database, &id)).await?;
        found.policies.iter().find(|row| row.domain == name).and_then(Row::read)
    }

    /// Keeps a policy. It is durable when this returns; if it cannot be, it holds for this once.
    pub(super) async fn keep(&self, domain: &DomainName, kept: KeptPolicy, now_seconds: u64) {
        let text = kept.policy.text();
        if text.len() > TEXT_BYTES_MAX {
            return;
        }
        let _writing = self.writing.lock().await;
        let (database, id, name) = (Arc::clone(&self.database), id_of(domain), domain.to_string());
        let row =
            Row { domain: name.clone(), id: kept.id, policy: text, fetched_seconds: kept.fetched_seconds };
        let written = blocking(move || {
            let mut rows = rows(&database, &id)?;
            rows.policies.retain(|row| row.domain != name && row.ends_seconds() >= now_seconds);
            if rows.policies.len() >= TOGETHER_MAX {
                rows.policies.sort_by_key(Row::ends_seconds);
                rows.policies.remove(0);
            }
            rows.policies.push(row);
            let json =
                serde_json::to_vec(&rows).map_err(|error| DatabaseError::bad_request(error.to_string()))?;
            database.write_local(&id, &json, false, None, &QUEUE_KEEPER).map(drop)
        });
        written.await;
    }
}

fn rows(database: &Arc<Database>, id: &str) -> Result<Rows, DatabaseError> {
    match database.read_local(id, &QUEUE_KEEPER) {
        // What an administrator has made of it is not read.
        Ok(document) => Ok(serde_json::from_str(document.json.as_str()).unwrap_or_default()),
        Err(DatabaseError::NotFound { .. }) => Ok(Rows::default()),
        Err(error) => Err(error),
    }
}

fn id_of(domain: &DomainName) -> String {
    let digest = blake3::hash(domain.as_str().as_bytes());
    format!("_local/mta-sts-{:02x}", digest.as_bytes()[0])
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DatabaseError> + Send + 'static,
) -> Option<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Some(done),
        Ok(Err(error)) => {
            tracing::warn!(%error, "policies of MTA-STS cannot be read or kept");
            None
        }
        // The process ends.
        Err(_) => None,
    }
}
