//! What somebody orders: the JSON of `_replicate` and of documents in `_replicator`, as CouchDB has it.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use scrinium_mango::Selector;
use serde_json::{Map, Value};

use crate::checkpoint::sequence_text;
use crate::error::{ErrorKind, ReplicationError, Result};
use crate::filter::Filter;
use crate::name::digest_of;
use crate::remote::RemoteOptions;
use crate::schedule::{Priority, Schedule};
use crate::settle::SettleRule;

/// Documents that an order may name.
const IDS_MAX: usize = 100_000;

/// Headers that an order may bring.
const HEADERS_MAX: usize = 50;

/// Tries of a request, where the order says nothing, and at most.
const TRIES: (u64, u64) = (5, 20);

/// Changes of a page, at most.
const PAGE_MAX: u64 = 10_000;

/// A replication as it was ordered.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// Where documents come from.
    pub source: EndOrder,
    /// Where they go to.
    pub target: EndOrder,
    /// Which ones.
    pub filter: Filter,
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
    /// How often.
    pub checkpoint_every: Option<Duration>,
    /// Changes of a page.
    pub page_changes: Option<usize>,
    /// Somebody whose rights it shall have, instead of those of the one who orders it.
    pub user: Option<String>,
    /// When it is carried out again; a continuous one always is.
    pub schedule: Option<Schedule>,
    /// Who goes first.
    pub priority: Priority,
    /// What becomes of conflicts that come to a database of this server.
    pub settle: Option<SettleRule>,
}

/// An end as it was ordered.
#[derive(Clone, Debug, PartialEq)]
pub enum EndOrder {
    /// A database of this server.
    Local(String),
    /// One of another server.
    Remote(RemoteOptions),
}

impl Order {
    /// An order from its JSON. What is not known is not looked at, as in CouchDB.
    ///
    /// # Errors
    /// What of it makes no sense.
    pub fn parse(members: &Map<String, Value>) -> Result<Self> {
        let flag = |name: &str| match members.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(ReplicationError::order(format!("`{name}` must be true or false."))),
        };
        let tries = number(members, "retries_per_request")?.unwrap_or(TRIES.0).clamp(1, TRIES.1);
        let tries = u32::try_from(tries).unwrap_or(1);
        let every = number(members, "checkpoint_interval")?;
        let page = number(members, "worker_batch_size")?.map(|page| page.clamp(1, PAGE_MAX));
        Ok(Self {
            source: end(members, ("source", "source_proxy"), tries)?,
            target: end(members, ("target", "target_proxy"), tries)?,
            filter: filter(members)?,
            continuous: flag("continuous")?.unwrap_or_default(),
            create_target: flag("create_target")?.unwrap_or_default(),
            winners_only: flag("winning_revs_only")?.unwrap_or_default(),
            since: members.get("since_seq").and_then(sequence_text),
            uses_checkpoints: flag("use_checkpoints")?.unwrap_or(true),
            checkpoint_every: every.map(|every_ms| Duration::from_millis(every_ms.clamp(1000, 3_600_000))),
            page_changes: page.and_then(|page| usize::try_from(page).ok()),
            user: user(members)?,
            schedule: given(members, "schedule").map(Schedule::parse).transpose()?,
            priority: Priority::parse(members.get("priority"))?,
            settle: given(members, "settle_conflicts").map(SettleRule::parse).transpose()?,
        })
    }

    /// Refuses what the one who orders it may not order.
    ///
    /// # Errors
    /// Why not.
    pub fn check_allowed(&self, is_administrator: bool) -> Result<()> {
        if is_administrator {
            return Ok(());
        }
        let is_remote = |end: &EndOrder| matches!(end, EndOrder::Remote(_));
        let reason = if is_remote(&self.source) || is_remote(&self.target) {
            "Only an administrator of the server may order replications with other servers."
        } else if self.user.is_some() {
            "Only an administrator of the server may order replications for somebody else."
        } else {
            return Ok(());
        };
        Err(ReplicationError::new(ErrorKind::Forbidden, reason))
    }

    /// What names the checkpoints of this order at a server: the same whenever it is ordered, and another one for whatever
    /// would let other documents through.
    #[must_use]
    pub fn name(&self, server_uuid: &str, (source, target): (&str, &str)) -> String {
        let filter = self.filter.identity(None).to_string();
        let winners = if self.winners_only { "winners" } else { "" };
        digest_of(&[server_uuid, source, target, &filter, winners, self.since.as_deref().unwrap_or_default()])
    }

    /// What CouchDB appends to the name to tell jobs apart.
    #[must_use]
    pub fn suffix(&self) -> &'static str {
        match (self.continuous, self.create_target) {
            (true, true) => "+continuous+create_target",
            (true, false) => "+continuous",
            (false, true) => "+create_target",
            (false, false) => "",
        }
    }
}

impl EndOrder {
    /// How it is shown: without credentials.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Local(name) => name.clone(),
            Self::Remote(options) => without_credentials(&options.url),
        }
    }
}

/// A text that may be a URL, without name and password.
#[must_use]
pub(crate) fn without_credentials(text: &str) -> String {
    match Url::parse(text) {
        Ok(mut url) if url.has_host() && (!url.username().is_empty() || url.password().is_some()) => {
            crate::remote::hide_credentials(&mut url);
            url.to_string()
        }
        _ => text.to_owned(),
    }
}

fn given<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    members.get(name).filter(|value| !value.is_null())
}

fn number(members: &Map<String, Value>, name: &str) -> Result<Option<u64>> {
    let value = match members.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.parse().ok(),
        Some(value) => value.as_u64(),
    };
    value.map(Some).ok_or_else(|| ReplicationError::order(format!("`{name}` must be a number.")))
}

fn end(members: &Map<String, Value>, (name, proxy): (&str, &str), tries: u32) -> Result<EndOrder> {
    let missing = || ReplicationError::order(format!("`{name}` must name a database, or give its URL."));
    let described = members.get(name).ok_or_else(missing)?;
    let url = described.as_str().or_else(|| described.get("url").and_then(Value::as_str));
    let url = url.map(str::trim).filter(|url| !url.is_empty()).ok_or_else(missing)?;
    if !url.contains("://") {
        return Ok(EndOrder::Local(url.to_owned()));
    }
    let parsed = Url::parse(url)
        .map_err(|_| ReplicationError::order(format!("The URL in `{name}` cannot be understood.")))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(ReplicationError::order(format!("The URL in `{name}` must be one of http or https.")));
    }
    let proxies = [described.get("proxy"), members.get(proxy), members.get("proxy")];
    let proxy = proxies.into_iter().flatten().find_map(Value::as_str).filter(|proxy| !proxy.is_empty());
    Ok(EndOrder::Remote(RemoteOptions {
        url: url.to_owned(),
        login: login(described, name)?,
        headers: headers(described, name)?,
        proxy: proxy.map(str::to_owned),
        tries,
    }))
}

/// `{"auth": {"basic": {"username": …, "password": …}}}`.
fn login(described: &Value, name: &str) -> Result<Option<(String, String)>> {
    let Some(auth) = described.get("auth").filter(|auth| !auth.is_null()) else { return Ok(None) };
    let basic = auth.get("basic").or_else(|| auth.get("session"));
    let text = |member: &str| basic.and_then(|basic| basic.get(member)).and_then(Value::as_str);
    match (text("username"), text("password")) {
        (Some(user), Some(password)) => Ok(Some((user.to_owned(), password.to_owned()))),
        _ => Err(ReplicationError::order(format!(
            "`{name}.auth` must be {{\"basic\": {{\"username\": …, \"password\": …}}}}."
        ))),
    }
}

fn headers(described: &Value, name: &str) -> Result<HeaderMap> {
    let wrong = || ReplicationError::order(format!("`{name}.headers` must be names and texts of headers."));
    let mut headers = HeaderMap::new();
    let Some(given) = described.get("headers").filter(|headers| !headers.is_null()) else {
        return Ok(headers);
    };
    let given = given.as_object().filter(|given| given.len() <= HEADERS_MAX).ok_or_else(wrong)?;
    for (header, value) in given {
        let header = HeaderName::try_from(header.as_str()).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(value.as_str().ok_or_else(wrong)?).map_err(|_| wrong())?;
        // What says how a request is framed is the client's own.
        let is_of_framing =
            ["host", "content-length", "transfer-encoding", "connection", "content-type", "te", "upgrade"];
        if is_of_framing.contains(&header.as_str()) {
            return Err(ReplicationError::order(format!("`{name}.headers` may not set {header}.")));
        }
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

fn filter(members: &Map<String, Value>) -> Result<Filter> {
    let given = |name: &str| members.get(name).filter(|value| !value.is_null());
    let (ids, selector, function) = (given("doc_ids"), given("selector"), given("filter"));
    match (ids, selector, function) {
        (None, None, None) => Ok(Filter::All),
        (Some(ids), None, None) => {
            let wrong =
                || ReplicationError::order(format!("`doc_ids` must be a list of at most {IDS_MAX} texts."));
            let ids = ids.as_array().filter(|ids| ids.len() <= IDS_MAX).ok_or_else(wrong)?;
            let ids = ids.iter().map(|id| id.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
            Ok(Filter::Ids(ids.ok_or_else(wrong)?))
        }
        (None, Some(selector), None) => {
            Selector::parse(selector).map_err(|error| ReplicationError::order(error.to_string()))?;
            Ok(Filter::Selector(selector.clone()))
        }
        (None, None, Some(function)) => {
            let name = function.as_str().filter(|name| !name.is_empty());
            let name =
                name.ok_or_else(|| ReplicationError::order("`filter` must be a text, design/filter."))?;
            let parameters = match given("query_params") {
                None => Map::new(),
                Some(Value::Object(parameters)) => parameters.clone(),
                Some(_) => return Err(ReplicationError::order("`query_params` must be a JSON object.")),
            };
            Ok(Filter::Function { name: name.to_owned(), parameters })
        }
        _ => Err(ReplicationError::order("`doc_ids`, `selector` and `filter` exclude each other.")),
    }
}

fn user(members: &Map<String, Value>) -> Result<Option<String>> {
    let Some(context) = members.get("user_ctx").filter(|context| !context.is_null()) else { return Ok(None) };
    let name = context.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    match name {
        Some(name) => Ok(Some(name.to_owned())),
        // Nobody in particular: whose order it is.
        None if context.get("name").is_none_or(Value::is_null) => Ok(None),
        None => Err(ReplicationError::order("`user_ctx.name` must be a text.")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::*;

    fn parse(order: &Value) -> Result<Order> {
        Order::parse(order.as_object().unwrap())
    }

    #[test]
    fn orders_are_read_as_couchdb_reads_them() {
        let order = parse(&json!({
            "source": {"url": "https://ada:pass@db.example/a%2Fb/", "headers": {"X-Key": "k"}},
            "target": "b", "continuous": true, "selector": {"type": "memo"}, "since_seq": 7,
            "worker_batch_size": "50", "checkpoint_interval": 5000, "user_ctx": {"name": "bob", "roles": []},
        }))
        .unwrap();
        assert_eq!(order.source.shown(), "https://db.example/a%2Fb/");
        assert_eq!(order.target, EndOrder::Local("b".to_owned()));
        assert_eq!((order.since.as_deref(), order.page_changes), (Some("7"), Some(50)));
        assert_eq!(order.user.as_deref(), Some("bob"));
        assert_eq!(order.suffix(), "+continuous");
        assert!(order.check_allowed(true).is_ok() && order.check_allowed(false).is_err());
        assert!(!format!("{order:?}").contains("pass"), "{order:?}");
    }

    #[test]
    fn an_order_that_makes_no_sense_is_refused() {
        for order in [
            json!({}),
            json!({"source": "a"}),
            json!({"source": "", "target": "b"}),
            json!({"source": {"url": 3}, "target": "b"}),
            json!({"source": "ftp://host/a", "target": "b"}),
            json!({"source": "file:///etc/passwd", "target": "b"}),
            json!({"source": "http://", "target": "b"}),
            json!({"source": "a", "target": "b", "continuous": "yes"}),
            json!({"source": "a", "target": "b", "doc_ids": "x"}),
            json!({"source": "a", "target": "b", "doc_ids": [1]}),
            json!({"source": "a", "target": "b", "doc_ids": [], "selector": {}}),
            json!({"source": "a", "target": "b", "selector": {"$nonsense": 1}}),
            json!({"source": "a", "target": "b", "filter": 3}),
            json!({"source": "a", "target": "b", "filter": "d/f", "query_params": []}),
            json!({"source": "a", "target": "b", "worker_batch_size": -1}),
            json!({"source": {"url": "http://h/a", "headers": {"a\r\nb": "c"}}, "target": "b"}),
            json!({"source": {"url": "http://h/a", "headers": {"a": "c\r\nd: e"}}, "target": "b"}),
            json!({"source": {"url": "http://h/a", "headers": {"Host": "other"}}, "target": "b"}),
            json!({"source": {"url": "http://h/a", "auth": {"basic": {"username": 1}}}, "target": "b"}),
            json!({"source": "a", "target": "b", "user_ctx": {"name": 3}}),
        ] {
            let refused = parse(&order).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Order, "{order}: {refused}");
        }
    }

    #[test]
    fn the_name_is_the_same_whatever_password_is_used_and_another_for_other_documents() {
        let base = json!({"source": "a", "target": "b"});
        let name = |more: Value| {
            let mut order = base.clone();
            order.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            parse(&order).unwrap().name("server", ("a", "b"))
        };
        assert_eq!(name(json!({})), name(json!({"continuous": true, "checkpoint_interval": 9000})));
        assert_eq!(name(json!({"doc_ids": ["x", "y"]})), name(json!({"doc_ids": ["y", "x", "y"]})));
        let others = [
            json!({}),
            json!({"doc_ids": ["x"]}),
            json!({"selector": {"x": 1}}),
            json!({"filter": "d/f"}),
            json!({"filter": "d/f", "query_params": {"x": "y"}}),
            json!({"winning_revs_only": true}),
            json!({"since_seq": "5-x"}),
        ];
        let names: std::collections::HashSet<String> = others.into_iter().map(name).collect();
        assert_eq!(names.len(), 7);
    }
}
