//! A database of another server as an end, over HTTP.

mod address;
mod ask;
mod documents;
mod login;
mod related;
mod transport;

use bytes::Bytes;
use http::{HeaderMap, Method};
use reqwest::Url;
use scrinium_document::json::{self, JsonWriter, NESTING_MAX};
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

pub use self::address::AddressRules;
pub use self::transport::Transport;

use self::ask::Ask;
pub(crate) use self::ask::hide_credentials;
use self::login::{Login, SharedSession};
use crate::checkpoint::sequence_text;
use crate::document::SourceDocument;
use crate::end::{
    AttachmentPlace, Change, ChangesPage, ChangesRequest, ContentStream, End, EndInfo, IncomingAttachment,
    Missing, Refusal, Work,
};
use crate::error::{ErrorKind, ReplicationError, Result};
use crate::filter::Filter;

const MB: usize = 1 << 20;

/// The longest answer that says something of a database, or is a checkpoint.
const SMALL_BYTES: usize = MB;

/// The longest page of changes, and the longest answer to what is missing.
const PAGE_BYTES: usize = 32 * MB;

/// How often a feed that waits says that it is there.
const HEARTBEAT_MS: u64 = 30_000;

/// Leaves of one document in a page, at most.
const LEAVES_MAX: usize = 10_000;

/// Where a database of another server is, and who asks it.
#[derive(Clone, PartialEq)]
pub struct RemoteOptions {
    /// Its URL, perhaps with a name and a password.
    pub url: String,
    /// Name and password, where they are not in the URL.
    pub login: Option<(String, String)>,
    /// Headers that go with each request.
    pub headers: HeaderMap,
    /// The URL of a proxy.
    pub proxy: Option<String>,
    /// How often in a row a request is tried.
    pub tries: u32,
}

impl RemoteOptions {
    /// The database of this server that a URL means which says who asks in no way: then it is the one who orders it.
    pub(crate) fn own_database(&self, rules: &AddressRules) -> Option<String> {
        let url = Url::parse(&self.url).ok()?;
        let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']');
        let is_here =
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        let says_who = self.login.is_some() || !self.headers.is_empty() || !url.username().is_empty();
        if !is_here || says_who || self.proxy.is_some() || !rules.is_own_port(url.port_or_known_default()?) {
            return None;
        }
        let mut segments = url.path_segments()?.filter(|segment| !segment.is_empty());
        let (Some(name), None) = (segments.next(), segments.next()) else { return None };
        Some(percent_encoding::percent_decode_str(name).decode_utf8().ok()?.into_owned())
    }
}

/// What it holds is secret.
impl std::fmt::Debug for RemoteOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RemoteOptions").finish_non_exhaustive()
    }
}

/// A database of another server.
pub struct RemoteEnd {
    transport: Transport,
    /// Without name and password.
    base: Url,
    shown: String,
    login: Option<Login>,
    session: SharedSession,
    headers: HeaderMap,
    proxy: Option<Url>,
    tries: u32,
    /// It does not know `_bulk_get`.
    reads_one_by_one: AtomicBool,
    takes_encoded: AtomicBool,
}

impl RemoteEnd {
    /// A database by its URL.
    ///
    /// # Errors
    /// What is wrong with the URL, or why nobody connects there.
    pub fn new(transport: &Transport, options: RemoteOptions) -> Result<Self> {
        let wrong = |what: &str| ReplicationError::order(format!("The URL of {what} cannot be understood."));
        let mut base = Url::parse(&options.url).map_err(|_| wrong("a database"))?;
        transport.check(&base)?;
        let login = options.login.or_else(|| login::of_url(&base));
        hide_credentials(&mut base);
        base.set_query(None);
        base.set_fragment(None);
        let path = base.path().trim_end_matches('/').to_owned();
        if path.is_empty() {
            return Err(ReplicationError::order(format!("{base} names a server, and no database of it.")));
        }
        base.set_path(&path);
        let proxy = options.proxy.as_deref().map(Url::parse).transpose().map_err(|_| wrong("a proxy"))?;
        let login = login.map(|(name, password)| Login::new(&name, &password)).transpose()?;
        let session = login.as_ref().map(|login| transport.session(login.key(&base)));
        Ok(Self {
            transport: transport.clone(),
            shown: base.to_string(),
            base,
            login,
            session: session.unwrap_or_default(),
            headers: options.headers,
            proxy,
            tries: options.tries.max(1),
            reads_one_by_one: AtomicBool::new(false),
            takes_encoded: AtomicBool::new(false),
        })
    }

    async fn read_changes(&self, request: &ChangesRequest) -> Result<ChangesPage> {
        let ask = changes_ask(request);
        let text = self.ask(&ask, PAGE_BYTES).await?;
        let page = parse_changes(&text, request.limit);
        let mut page =
            page.map_err(|error| ReplicationError::protocol(format!("{}: {error}", self.shown)))?;
        if page.last_sequence.is_empty() {
            page.last_sequence = request.since.clone().unwrap_or_else(|| "0".to_owned());
        }
        Ok(page)
    }

    /// A page of half as many changes where one is too long.
    async fn fitting_changes(&self, request: &ChangesRequest) -> Result<ChangesPage> {
        let mut request = request.clone();
        loop {
            match self.retried(|| self.read_changes(&request)).await {
                Err(error) if error.kind == ErrorKind::TooLarge && request.limit > 1 => request.limit /= 2,
                read => return read,
            }
        }
    }

    async fn read_checkpoint(&self, name: &str) -> Result<Option<Value>> {
        let ask = Ask::get(&["_local", name]);
        match self.ask(&ask, SMALL_BYTES).await {
            Ok(text) => Ok(Some(self.object(&text)?.into())),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn write_checkpoint(&self, name: &str, mut checkpoint: Value) -> Result<()> {
        let present = self.read_checkpoint(name).await?;
        let revision = present.as_ref().and_then(|present| present.get("_rev")).cloned();
        if let Some(members) = checkpoint.as_object_mut() {
            members.insert("_id".to_owned(), format!("_local/{name}").into());
            if let Some(revision) = revision {
                members.insert("_rev".to_owned(), revision);
            }
        }
        let ask =
            Ask { body: Some(checkpoint.to_string().into()), ..Ask::new(Method::PUT, &["_local", name]) };
        match self.ask(&ask, SMALL_BYTES).await {
            // Somebody else wrote in between; then it is read again.
            Err(error) if error.kind == ErrorKind::Refused => {
                Err(ReplicationError { kind: ErrorKind::Unavailable, ..error })
            }
            written => written.map(drop),
        }
    }

    async fn compare(&self, changes: &[Change]) -> Result<Vec<Missing>> {
        let mut body = JsonWriter::new();
        for change in changes {
            body.literal(if body.is_empty() { "{" } else { "," }).string(&change.id).literal(":");
            body.strings(&change.revisions);
        }
        body.literal(if body.is_empty() { "{}" } else { "}" });
        let text = self.ask(&Ask::post(&["_revs_diff"], body.into_string()), PAGE_BYTES).await?;
        let mut missing = Vec::new();
        let asked: std::collections::HashSet<&str> = changes.iter().map(|change| &*change.id).collect();
        for (id, difference) in self.object(&text)? {
            let texts = |name: &str| -> Vec<String> {
                let list = difference.get(name).and_then(Value::as_array).into_iter().flatten();
                list.filter_map(Value::as_str).map(str::to_owned).collect()
            };
            if !asked.contains(&*id) {
                return Err(ReplicationError::protocol(format!(
                    "{} misses a document that nobody asked about.",
                    self.shown
                )));
            }
            let (revisions, possible_ancestors) = (texts("missing"), texts("possible_ancestors"));
            if !revisions.is_empty() {
                missing.push(Missing { id, revisions, possible_ancestors });
            }
        }
        Ok(missing)
    }

    /// An answer that is a JSON object.
    fn object(&self, text: &[u8]) -> Result<Map<String, Value>> {
        match value_of(text)? {
            Value::Object(members) => Ok(members),
            _ => Err(ReplicationError::protocol(format!("{} answers with no JSON object.", self.shown))),
        }
    }

    async fn read_filter(&self, filter: &str) -> Result<Option<String>> {
        let Some((design, name)) = filter.split_once('/') else { return Ok(None) };
        match self.ask(&Ask::get(&["_design", design]), 8 * SMALL_BYTES).await {
            Ok(text) => {
                let members = self.object(&text)?;
                let code = members.get("filters").and_then(|filters| filters.get(name));
                Ok(code.map(|code| code.as_str().map_or_else(|| code.to_string(), str::to_owned)))
            }
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A JSON text of a stranger, of bounded depth.
pub(crate) fn value_of(text: &[u8]) -> Result<Value> {
    let text =
        std::str::from_utf8(text).map_err(|_| ReplicationError::protocol("The answer is not UTF-8."))?;
    Ok(json::parse_value(text, NESTING_MAX)?)
}

fn changes_ask(request: &ChangesRequest) -> Ask<'_> {
    let mut ask = Ask::get(&["_changes"]);
    if let Some(since) = &request.since {
        ask = ask.with("since", since.as_str());
    }
    ask = ask.with("limit", request.limit.to_string());
    ask = ask.with("style", if request.winners_only { "main_only" } else { "all_docs" });
    if request.wait {
        ask = ask.with("feed", "longpoll").with("heartbeat", HEARTBEAT_MS.to_string());
    }
    let body = match &*request.filter {
        Filter::All => return ask,
        Filter::Ids(ids) => {
            ask = ask.with("filter", "_doc_ids");
            serde_json::json!({"doc_ids": ids})
        }
        Filter::Selector(selector) => {
            ask = ask.with("filter", "_selector");
            serde_json::json!({"selector": selector})
        }
        Filter::Function { name, parameters } => {
            ask = ask.with("filter", name.as_str());
            for (name, value) in parameters {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                ask = ask.with(name, value);
            }
            return ask;
        }
    };
    Ask { method: Method::POST, body: Some(body.to_string().into()), ..ask }
}

fn parse_changes(text: &Bytes, limit: usize) -> Result<ChangesPage> {
    let nonsense = || ReplicationError::protocol("an answer that is no list of changes");
    let text = std::str::from_utf8(text).map_err(|_| nonsense())?;
    let members = json::members(text, NESTING_MAX)?.ok_or_else(nonsense)?;
    let mut page = ChangesPage::default();
    let mut results = None;
    for (name, raw) in members {
        match &*name {
            "results" => results = json::elements(raw, NESTING_MAX, limit)?,
            "last_seq" => page.last_sequence = sequence_of(raw).unwrap_or_default(),
            "pending" => page.pending = raw.parse().ok(),
            _ => {}
        }
    }
    let results = results.ok_or_else(nonsense)?;
    if results.len() > limit {
        return Err(ReplicationError::protocol("more changes than were asked for"));
    }
    page.is_last = page.pending.map_or(results.len() < limit, |pending| pending == 0);
    for raw in results {
        let (mut id, mut leaves, mut sequence) = (None, None, None);
        for (name, raw) in json::members(raw, NESTING_MAX)?.ok_or_else(nonsense)? {
            match &*name {
                "id" => id = json::string(raw).map(std::borrow::Cow::into_owned),
                "changes" => leaves = json::elements(raw, NESTING_MAX, LEAVES_MAX)?,
                "seq" => sequence = sequence_of(raw),
                _ => {}
            }
        }
        let (id, leaves) = (id.ok_or_else(nonsense)?, leaves.ok_or_else(nonsense)?);
        let revisions =
            leaves.into_iter().map(revision_of).collect::<Option<Vec<_>>>().ok_or_else(nonsense)?;
        if page.last_sequence.is_empty() && sequence.is_some() {
            page.last_sequence = sequence.unwrap_or_default();
        }
        page.changes.push(Change { id, revisions });
    }
    Ok(page)
}

fn revision_of(raw: &str) -> Option<String> {
    let members = json::members(raw, NESTING_MAX).ok()??;
    let (_, revision) = members.into_iter().find(|(name, _)| name == "rev")?;
    json::string(revision).map(std::borrow::Cow::into_owned)
}

fn sequence_of(raw: &str) -> Option<String> {
    sequence_text(&json::parse_value(raw, NESTING_MAX).ok()?)
}

impl End for RemoteEnd {
    fn shown(&self) -> &str {
        &self.shown
    }

    fn takes_encoded(&self) -> bool {
        self.takes_encoded.load(Ordering::Relaxed)
    }

    fn identity(&self) -> String {
        let name = self.login.as_ref().map(|login| login.name.as_str()).unwrap_or_default();
        format!("{name}@{}", self.shown)
    }

    fn info(&self) -> Work<'_, EndInfo> {
        Box::pin(self.retried(|| async {
            let members = self.object(&self.ask(&Ask::get(&[]), SMALL_BYTES).await?)?;
            let sequence = members.get("update_seq").and_then(sequence_text);
            let sequence = sequence.ok_or_else(|| {
                ReplicationError::new(ErrorKind::Refused, format!("{} is no database.", self.shown))
            })?;
            // CouchDB and we say what a database takes on the disk. PouchDB's servers do not, and would keep the gzip as if it were
            // what it stands for.
            self.takes_encoded.store(members.contains_key("sizes"), Ordering::Relaxed);
            Ok(EndInfo { update_sequence: sequence })
        }))
    }

    fn create(&self) -> Work<'_, ()> {
        Box::pin(self.retried(|| async {
            match self.ask(&Ask::new(Method::PUT, &[]), SMALL_BYTES).await {
                // Made in between (412), or by a try whose answer was lost.
                Err(error) if error.kind == ErrorKind::Refused && error.reason.contains("file_exists") => {
                    Ok(())
                }
                made => made.map(drop),
            }
        }))
    }

    fn filter_code<'a>(&'a self, filter: &'a str) -> Work<'a, Option<String>> {
        Box::pin(self.retried(|| self.read_filter(filter)))
    }

    fn checkpoint<'a>(&'a self, name: &'a str) -> Work<'a, Option<Value>> {
        Box::pin(self.retried(|| self.read_checkpoint(name)))
    }

    fn put_checkpoint<'a>(&'a self, name: &'a str, checkpoint: Value) -> Work<'a, ()> {
        Box::pin(async move { self.retried(|| self.write_checkpoint(name, checkpoint.clone())).await })
    }

    fn changes<'a>(&'a self, request: &'a ChangesRequest) -> Work<'a, ChangesPage> {
        Box::pin(self.fitting_changes(request))
    }

    fn difference<'a>(&'a self, changes: &'a [Change]) -> Work<'a, Vec<Missing>> {
        Box::pin(self.retried(|| self.compare(changes)))
    }

    fn documents<'a>(&'a self, wanted: &'a [Missing]) -> Work<'a, Vec<SourceDocument>> {
        Box::pin(self.retried(|| self.read_documents(wanted)))
    }

    fn attachment<'a>(&'a self, place: &'a AttachmentPlace, offset: u64) -> Work<'a, Box<dyn ContentStream>> {
        // Tried again by the one who reads, who knows how much is there.
        Box::pin(self.read_attachment(place, offset))
    }

    fn write<'a>(&'a self, documents: &'a [SourceDocument]) -> Work<'a, Vec<Refusal>> {
        Box::pin(self.retried(|| self.write_documents(documents)))
    }

    fn write_with<'a>(
        &'a self,
        document: &'a SourceDocument,
        contents: Vec<IncomingAttachment>,
    ) -> Work<'a, Option<Refusal>> {
        Box::pin(self.write_related(document, contents))
    }
}
