//! A server at the edge: it holds a replica of its own for each user, and replicates that with the server that is measured.
//!
//! | the user | the request, at the edge |
//! |---|---|
//! | brings documents | `POST /{replica}/_bulk_docs` |
//! | takes what is new, brings what is there | `POST /_replicate`, answered when it is done |

use std::sync::Arc;

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::check;
use super::connection::{Address, Connection};
use super::failure::{Failure, FailureKind};
use super::http::{HttpDriver, HttpOptions, Login, add_all, body, connection, part};
use crate::content::Message;

/// The edge, as one user's replicas reach it: as its administrator, who alone replicates with other servers.
pub(super) struct Edge {
    connection: Connection,
    options: Arc<HttpOptions>,
    hub: Arc<Address>,
    /// The user, whose the replicas are.
    user: String,
}

/// What a replication has done, in CouchDB's words.
#[derive(Deserialize)]
struct ReplicateAnswer {
    ok: bool,
    #[serde(default)]
    history: Vec<HistoryEntry>,
}

#[derive(Deserialize)]
struct HistoryEntry {
    #[serde(default)]
    doc_write_failures: u64,
}

/// The name of a user's replica.
fn replica(user: &str, database: &str) -> String {
    format!("replica/{user}/{database}")
}

impl Edge {
    /// The edge of a user, if the run has one.
    pub(super) fn of(
        edge: Option<&Arc<Address>>,
        hub: &Arc<Address>,
        options: &Arc<HttpOptions>,
        user: &str,
    ) -> Option<Self> {
        let connection = connection(edge?, options.administrator(), options);
        Some(Self { connection, options: Arc::clone(options), hub: Arc::clone(hub), user: user.to_owned() })
    }

    /// Makes the user's replica of a database.
    pub(super) async fn make(&mut self, database: &str) -> Result<(), Failure> {
        self.connection.ask_again_when_busy();
        HttpDriver::make_database(&mut self.connection, &replica(&self.user, database)).await.map(drop)
    }

    /// Writes documents into the user's replica.
    pub(super) async fn add(&mut self, database: &str, messages: &[Message]) -> Result<(), Failure> {
        let path = format!("/{}/_bulk_docs", part(&replica(&self.user, database)));
        add_all(&mut self.connection, &path, messages).await
    }

    /// Takes what the hub has and the replica has not.
    pub(super) async fn pull(&mut self, database: &str) -> Result<(), Failure> {
        let (source, target) = (self.at_hub(database), json!(replica(&self.user, database)));
        self.replicate(source, target).await
    }

    /// Brings what the replica has and the hub has not.
    pub(super) async fn push(&mut self, database: &str) -> Result<(), Failure> {
        let (source, target) = (json!(replica(&self.user, database)), self.at_hub(database));
        self.replicate(source, target).await
    }

    /// The hub's database, as the user reaches it.
    fn at_hub(&self, database: &str) -> Value {
        let options = &self.options;
        let account = match options.login {
            Login::Users => Some((self.user.as_str(), options.user_password.as_str())),
            Login::Admin => options.administrator(),
        };
        let url = format!("{}/{}", self.hub.url(), part(database));
        match account {
            Some((username, password)) => {
                json!({"url": url, "auth": {"basic": {"username": username, "password": password}}})
            }
            None => json!({"url": url}),
        }
    }

    async fn replicate(&mut self, source: Value, target: Value) -> Result<(), Failure> {
        let order = body(&json!({"source": source, "target": target}))?;
        let answer = self.connection.exchange(Method::POST, "/_replicate", Some(order)).await?;
        let done: ReplicateAnswer = check::json(&answer.expect(&[200])?)?;
        let refused: u64 = done.history.first().map_or(0, |entry| entry.doc_write_failures);
        if !done.ok || refused > 0 {
            let why = format!("POST /_replicate: {refused} documents were refused");
            return Err(Failure::new(FailureKind::Refused, why));
        }
        Ok(())
    }
}
