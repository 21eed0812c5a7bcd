//! The rounds of a probe: what one end user does in a shared database, and with a message to himself.

use std::time::{Duration, Instant};

use http::Method;
use rand::Rng;
use serde_json::{Value, json};

use crate::driver::{Client, Failure, FailureKind, path_part};

/// Entries of a view that are read at once, as a window of a mail client shows.
const PAGE: u64 = 30;

/// Documents that vanish between the view and their opening were deleted by others; this many are tried.
const TRIED: usize = 3;

/// How long a server may keep the request that waits for a message.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// How often is looked for a mail database that is not there yet.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Times of the requests of a round.
pub(super) type Operations = Vec<(String, f64)>;

/// What takes the times of a round.
struct Clock {
    operations: Operations,
}

impl Clock {
    async fn time<T>(
        &mut self,
        operation: &str,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let began = Instant::now();
        let done = work.await?;
        self.operations.push((operation.to_owned(), began.elapsed().as_secs_f64() * 1000.0));
        Ok(done)
    }
}

/// A user of a shared database.
pub(super) struct DatabaseRounds {
    client: Client,
    /// `/name`
    database: String,
    /// Path of the view or folder.
    collection: String,
    /// The probe's own document: it changes nobody else's.
    document: String,
    revision: Option<String>,
    round: u64,
}

impl DatabaseRounds {
    /// `view` is `DESIGN/VIEW`, or the name of a folder.
    pub(super) fn new(client: Client, database: &str, view: &str, name: &str) -> Self {
        let database = format!("/{}", path_part(database));
        let collection = match view.split_once('/') {
            Some((design, view)) => {
                format!("{database}/_design/{}/_view/{}", path_part(design), path_part(view))
            }
            None => format!("{database}/_folder/{}", path_part(view)),
        };
        Self { client, database, collection, document: format!("lab-probe-{name}"), revision: None, round: 0 }
    }

    /// One round.
    pub(super) async fn round(&mut self) -> Result<Operations, Failure> {
        self.round += 1;
        let mut clock = Clock { operations: Vec::new() };
        clock.time("OPEN_DB", self.client.get(&self.database)).await?;
        let opened =
            clock.time("OPEN_COLLECTION", self.client.get(&format!("{}?limit=0", self.collection))).await?;
        let total = opened.get("total_rows").and_then(Value::as_u64).unwrap_or(0);
        let skip = if total > PAGE { rand::rng().random_range(0..=total - PAGE) } else { 0 };
        let path = format!("{}?limit={PAGE}&skip={skip}", self.collection);
        let entries = clock.time("READ_ENTRIES", self.client.get(&path)).await?;
        let ids = ids_of(&entries);
        // Others may have deleted some meanwhile, but not all of a page.
        if ids.is_empty() && total > 0 {
            return Err(Failure::wrong(format!("GET {path}: no entries of {total}")));
        }
        self.open_one(&mut clock, &ids).await?;
        self.update(&mut clock).await?;
        Ok(clock.operations)
    }

    /// Opens one of the page's documents that is still there.
    async fn open_one(&mut self, clock: &mut Clock, ids: &[String]) -> Result<(), Failure> {
        for _ in 0..TRIED.min(ids.len()) {
            let chosen = rand::rng().random_range(0..ids.len());
            let Some(id) = ids.get(chosen) else { return Ok(()) };
            let path = format!("{}/{}", self.database, path_part(id));
            match clock.time("OPEN_NOTE", self.client.get(&path)).await {
                Ok(document) if document.get("_id").and_then(Value::as_str) == Some(id) => return Ok(()),
                Ok(_) => return Err(Failure::wrong(format!("GET {path}: another document"))),
                Err(failure) if failure.kind == FailureKind::Missing => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Writes the probe's own document. Another probe of this name, or an earlier run of it, may have written it.
    async fn update(&mut self, clock: &mut Clock) -> Result<(), Failure> {
        let path = format!("{}/{}", self.database, self.document);
        if self.revision.is_none() {
            self.revision = self.client.find(&path).await?.as_ref().and_then(revision_of);
        }
        let mut document = json!({
            "_id": self.document, "Form": "LabProbe", "Subject": "Written by the laboratory's probe",
            "Date": jiff::Timestamp::now().to_string(), "Round": self.round,
        });
        if let (Some(revision), Some(fields)) = (&self.revision, document.as_object_mut()) {
            fields.insert("_rev".to_owned(), json!(revision));
        }
        let written = self.client.ask(Method::PUT, &path, Some(&document), &[200, 201, 202]);
        match clock.time("UPDATE_NOTE", written).await {
            Ok(answer) => {
                self.revision = answer.get("rev").and_then(Value::as_str).map(str::to_owned);
                Ok(())
            }
            Err(failure) => {
                self.revision = None;
                Err(failure)
            }
        }
    }
}

fn ids_of(entries: &Value) -> Vec<String> {
    let rows = entries.get("rows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let id = |row: &Value| row.get("id").and_then(Value::as_str).map(str::to_owned);
    rows.iter().filter_map(id).filter(|id| !id.starts_with('_')).collect()
}

fn revision_of(document: &Value) -> Option<String> {
    document.get("_rev").and_then(Value::as_str).map(str::to_owned)
}

/// A user who sends messages to himself.
pub(super) struct MailRounds {
    client: Client,
    name: String,
    mail_box: String,
    database: String,
    time_out: Duration,
}

impl MailRounds {
    pub(super) fn new(
        client: Client,
        name: &str,
        mail_box: &str,
        database: &str,
        time_out: Duration,
    ) -> Self {
        let path = |name: &str| format!("/{}", path_part(name));
        Self { client, name: name.to_owned(), mail_box: path(mail_box), database: path(database), time_out }
    }

    /// Sends a message, waits until it can be read, reads it, and takes it away again.
    pub(super) async fn round(&mut self) -> Result<Operations, Failure> {
        let mut clock = Clock { operations: Vec::new() };
        let since = self.sequence().await?;
        let token = format!("{:032x}", rand::random::<u128>());
        let subject = format!("Probe {token}");
        let memo = json!({
            "_id": format!("probe{token}"), "Form": "Memo", "From": self.name, "SendTo": [self.name],
            "Subject": subject, "PostedDate": jiff::Timestamp::now().to_string(),
            "$MessageID": format!("<{token}@probe.lab.invalid>"), "Body": format!("Body of {token}"),
        });
        let path = format!("{}/probe{token}", self.mail_box);
        clock.time("SEND", self.client.ask(Method::PUT, &path, Some(&memo), &[200, 201, 202])).await?;
        let id = clock.time("DELIVER", self.arrival(since, &subject)).await?;
        let path = format!("{}/{}", self.database, path_part(&id));
        let read = clock.time("OPEN_NOTE", self.client.get(&path)).await?;
        if read.get("Body") != memo.get("Body") {
            return Err(Failure::wrong(format!("GET {path}: the message has another body")));
        }
        if let Some(revision) = revision_of(&read) {
            // A message that stays is no harm, and no failure of what is probed.
            let _ =
                self.client.ask(Method::DELETE, &format!("{path}?rev={revision}"), None, &[200, 202]).await;
        }
        Ok(clock.operations)
    }

    /// Up to where the mail database has changed; from the beginning if there is none yet.
    async fn sequence(&mut self) -> Result<String, Failure> {
        let found = self.client.find(&self.database).await?;
        let sequence = found.as_ref().and_then(|answer| answer.get("update_seq"));
        Ok(match sequence {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => "0".to_owned(),
        })
    }

    /// Waits until a document with that subject has arrived; gives its id.
    async fn arrival(&mut self, mut since: String, subject: &str) -> Result<String, Failure> {
        let began = Instant::now();
        loop {
            let left = self.time_out.saturating_sub(began.elapsed());
            if left.is_zero() {
                let waited = self.time_out.as_secs_f64();
                return Err(Failure::new(
                    FailureKind::TimeOut,
                    format!("the message did not come in {waited} s"),
                ));
            }
            let wait_ms = left.min(LONGEST_WAIT).as_millis();
            let path = format!(
                "{}/_changes?feed=longpoll&include_docs=true&timeout={wait_ms}&since={}",
                self.database,
                path_part(&since)
            );
            let Some(changes) = self.client.find(&path).await? else {
                tokio::time::sleep(BETWEEN_LOOKS).await;
                continue;
            };
            let rows =
                changes.get("results").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let ours = |row: &&Value| row.pointer("/doc/Subject").and_then(Value::as_str) == Some(subject);
            if let Some(id) = rows.iter().find(ours).and_then(|row| row.get("id")).and_then(Value::as_str) {
                return Ok(id.to_owned());
            }
            match changes.get("last_seq") {
                Some(Value::String(text)) => since.clone_from(text),
                Some(other) => since = other.to_string(),
                None => return Err(Failure::wrong(format!("GET {path}: no last_seq"))),
            }
        }
    }
}
