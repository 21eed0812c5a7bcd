//! The directory behind the port of a server.

use http::{Method, StatusCode};
use hyper::body::Bytes;
use scrinium_administration::NewRequest;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::{Entry, Registry};
use crate::cli::{Failure, Terminal};
use crate::client::ConsoleClient;
use crate::console::{Reply, requests};

/// Documents asked for at once.
const PAGE: usize = 1_000;

/// The directory of a server, asked as its administrator.
pub(crate) struct RemoteRegistry {
    client: ConsoleClient,
    runtime: Runtime,
}

impl RemoteRegistry {
    /// The directory of the server that a client asks.
    pub(crate) fn new(client: ConsoleClient) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self { client, runtime: runtime.map_err(Failure::work)? })
    }

    fn ask(&self, method: Method, path: &str, body: Option<Bytes>) -> Result<Bytes, Failure> {
        let asked = self.runtime.block_on(self.client.request(method, path, body));
        let (status, body) = asked.map_err(Failure::work)?;
        if status.is_success() { Ok(body) } else { Err(Failure::Work(refusal(&self.client, status, &body))) }
    }

    fn page(&self, from: &str, prefix: &str) -> Result<Vec<Entry>, Failure> {
        let quoted = |text: &str| escape(&Value::from(text).to_string());
        let path = format!(
            "/directory/_all_docs?include_docs=true&limit={PAGE}&start_key={}&end_key={}",
            quoted(from),
            quoted(&format!("{prefix}\u{fff0}"))
        );
        let body: Value =
            serde_json::from_slice(&self.ask(Method::GET, &path, None)?).map_err(Failure::work)?;
        let rows = body.get("rows").and_then(Value::as_array).cloned().unwrap_or_default();
        Ok(rows.into_iter().filter_map(|row| row.get("doc")?.as_object().cloned()).collect())
    }
}

impl Registry for RemoteRegistry {
    fn entries(&self, prefix: &str) -> Result<Vec<Entry>, Failure> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut from = prefix.to_owned();
        loop {
            let page = self.page(&from, prefix)?;
            let is_last = page.len() < PAGE;
            let id = |entry: &Entry| entry.get("_id").and_then(Value::as_str).unwrap_or_default().to_owned();
            // The first of a page is the last of the one before.
            let known = entries.last().map(id);
            entries.extend(page.into_iter().filter(|entry| Some(id(entry)) != known));
            let last = entries.last().map(id).unwrap_or_default();
            if is_last || last == from {
                return Ok(entries);
            }
            from = last;
        }
    }

    fn write(&self, entry: &Entry) -> Result<(), Failure> {
        let id = entry.get("_id").and_then(Value::as_str).unwrap_or_default();
        let body = Value::Object(entry.clone()).to_string().into();
        self.ask(Method::PUT, &format!("/directory/{}", escape(id)), Some(body)).map(drop)
    }

    fn credentials(&self, name: &str) -> Result<Value, Failure> {
        let answer = self.ask(Method::GET, &format!("/_credentials?person={}", escape(name)), None)?;
        serde_json::from_slice(&answer).map_err(Failure::work)
    }

    fn change_name(&self, new: &NewRequest, _terminal: &Terminal) -> Result<Reply, Failure> {
        self.runtime.block_on(self.client.send(&requests::line_of(new))).map_err(Failure::work)
    }

    fn add_app_password(&self, name: &str, label: &str, protocols: &[String]) -> Result<Value, Failure> {
        let path = format!("/_credentials/app_passwords?person={}", escape(name));
        let body = serde_json::json!({"name": label, "protocols": protocols}).to_string();
        let answer = self.ask(Method::POST, &path, Some(body.into()))?;
        serde_json::from_slice(&answer).map_err(Failure::work)
    }

    fn remove_app_password(&self, name: &str, id: &str) -> Result<(), Failure> {
        let path = format!("/_credentials/app_passwords/{}?person={}", escape(id), escape(name));
        self.ask(Method::DELETE, &path, None).map(drop)
    }

    fn remove_totp(&self, name: &str) -> Result<(), Failure> {
        self.ask(Method::DELETE, &format!("/_credentials/totp?person={}", escape(name)), None).map(drop)
    }

    fn link(&self, name: &str, subject: &str, is_link: bool) -> Result<(), Failure> {
        let path = format!("/_credentials/links/{}?person={}", escape(subject), escape(name));
        self.ask(if is_link { Method::PUT } else { Method::DELETE }, &path, None).map(drop)
    }
}

/// What a server says is wrong, with who is not allowed.
pub(crate) fn refusal(client: &ConsoleClient, status: StatusCode, body: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let reason = answer.get("reason").and_then(Value::as_str).unwrap_or_default();
    match status {
        StatusCode::UNAUTHORIZED => client.not_allowed(reason).to_string(),
        _ if status.is_client_error() && !reason.is_empty() => reason.to_owned(),
        _ => format!("the server answers {status}: {reason}"),
    }
}

fn escape(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
}
