//! Databases as wholes: made, described, listed and dropped.

use std::collections::VecDeque;

use http::{Response, StatusCode};
use scrinium_catalog::{Databases, NameRange};
use scrinium_database::{DatabaseError, InitialAccess, Level};
use scrinium_document::json::JsonWriter;
use scrinium_maintenance::Compactor;
use scrinium_views::DatabaseDescription;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access;
use crate::audit::AuditAction;
use crate::authority::Identity;
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::query::{Given, Query};
use crate::response::{self, Body};
use crate::stream::{self, Piece, Source};
use crate::users::USERS_DATABASE;

/// Names read from the catalog at a time.
const NAMES_AT_ONCE: usize = 512;

/// Descriptions asked for at once, as CouchDB has it by default.
const MOST_INFOS: usize = 100;

/// `GET /{db}`.
pub(crate) async fn info(context: &Context) -> Result<Response<Body>> {
    let databases = context.state.databases.clone();
    let name = context.shown_database_name().to_owned();
    let described = context
        .with_database(move |database| {
            let is_compacting = Compactor::of(&databases).is_compacting(database.number());
            Ok(describe(&database.describe()?, &name, is_compacting))
        })
        .await?;
    Ok(response::json_value(StatusCode::OK, &described))
}

/// What CouchDB says of a database. A person who does not see all documents gets nothing that counts them.
pub(crate) fn describe(info: &DatabaseDescription, name: &str, compacting: bool) -> Value {
    let contents = info.contents.as_ref();
    let sizes = contents.map(|contents| &contents.sizes);
    let sizes = sizes.map(|sizes| {
        json!({"file": sizes.file_bytes, "external": sizes.external_bytes, "active": sizes.active_bytes})
    });
    json!({
        "instance_start_time": info.instance_start_time_us.to_string(),
        "db_name": name,
        "uuid": info.uuid,
        "purge_seq": contents.map(|contents| contents.purged_count.to_string()),
        "update_seq": info.update_sequence,
        "sizes": sizes,
        "props": {},
        "doc_del_count": contents.map(|contents| contents.deleted_count),
        "doc_count": contents.map(|contents| contents.document_count),
        "disk_format_version": 8,
        "compact_running": compacting,
        "volume": info.volume,
        "cluster": {"q": 1, "n": 1, "w": 1, "r": 1},
    })
}

/// `PUT /{db}`, with `?volume=NAME` on a volume; closed to all but administrators of the server, or with `?owner=NAME` to all
/// but its owner.
pub(crate) async fn create(context: &Context) -> Result<Response<Body>> {
    check_partitions(&context.query)?;
    let databases = context.state.databases.clone();
    let name = context.database_name();
    let owned = name.to_owned();
    let volume = context.query.get("volume").map(str::to_owned);
    let access = match context.query.get("owner") {
        Some(owner) => InitialAccess::Owner(owner.to_owned()),
        None => InitialAccess::Closed,
    };
    let details = match &access {
        InitialAccess::Owner(owner) => Some(json!({"owner": owner})),
        _ => None,
    };
    let create = move || Ok(databases.create_on(&owned, &access, volume.as_deref()).map(drop)?);
    context.state.run(create).await?;
    context.audit(AuditAction::DatabaseCreated, name, details.as_ref());
    let mut response = response::ok(StatusCode::CREATED);
    context.locate(&mut response, &[name]);
    Ok(response)
}

/// A database that is asked to be partitioned must not be made as another one, whose ids need no partition.
fn check_partitions(query: &Query) -> Result<()> {
    match query.get("partitioned") {
        None | Some("false") => Ok(()),
        Some("true") => Err(HttpError::not_implemented("Partitioned databases are not supported.")),
        Some(_) => Err(HttpError::bad_request("Invalid `partitioned` parameter")),
    }
}

/// `DELETE /{db}`.
pub(crate) async fn delete(context: &Context) -> Result<Response<Body>> {
    if context.query.get("rev").is_some() {
        return Err(HttpError::bad_request(
            "You tried to DELETE a database with a ?=rev parameter. Did you mean to DELETE a document instead?",
        ));
    }
    let databases = context.state.databases.clone();
    let owned = context.database_name().to_owned();
    context.state.run(move || Ok(databases.delete(&owned)?)).await?;
    context.audit(AuditAction::DatabaseDeleted, context.database_name(), None);
    Ok(response::ok(StatusCode::OK))
}

/// `GET /_all_dbs`.
pub(crate) async fn all(context: &Context) -> Result<Response<Body>> {
    let names = Names {
        databases: context.state.databases.clone(),
        range: name_range(&context.query)?,
        text: JsonWriter::of_literal("["),
        first: true,
    };
    let begun = context.state.run(move || stream::begin(names)).await?;
    Ok(response::json_body(StatusCode::OK, begun.into_body(context, None)?))
}

fn name_range(query: &Query) -> Result<NameRange> {
    let name = |names: [&str; 2]| {
        let text = names.iter().find_map(|name| query.get(name));
        text.map(|text| serde_json::from_str::<String>(text).map_err(|_| HttpError::invalid_json()))
            .transpose()
    };
    let count = |name: &str| query.get(name).map(|text| Given::Text(text).count()).transpose();
    let within = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let mut range = NameRange {
        start: name(["startkey", "start_key"])?,
        end: name(["endkey", "end_key"])?,
        inclusive_end: query.get("inclusive_end") != Some("false"),
        descending: query.is_true("descending"),
        skip: within(count("skip")?.unwrap_or(0)),
        limit: count("limit")?.map_or(usize::MAX, within),
    };
    if let Some(text) = query.get("key") {
        let key: String = serde_json::from_str(text).map_err(|_| HttpError::invalid_json())?;
        (range.start, range.end, range.inclusive_end) = (Some(key.clone()), Some(key), true);
    }
    Ok(range)
}

/// The names of databases as a JSON array.
struct Names {
    databases: Databases,
    range: NameRange,
    text: JsonWriter,
    first: bool,
}

impl Source for Names {
    fn next_piece(&mut self) -> Result<Piece> {
        let wanted = self.range.limit.min(NAMES_AT_ONCE);
        let names = self.databases.names(&NameRange { limit: wanted, ..self.range.clone() })?;
        let mut text = std::mem::take(&mut self.text);
        for name in &names {
            if !std::mem::take(&mut self.first) {
                text.literal(",");
            }
            text.string(name);
        }
        self.range.limit -= names.len();
        let last = names.len() < wanted || self.range.limit == 0;
        if last {
            text.literal("]\n");
        } else if let Some(name) = names.last() {
            // The next names begin behind this one.
            self.range.start = Some(name.clone());
            self.range.skip = 1;
        }
        Ok(Piece::of_json(text, last))
    }
}

#[derive(Deserialize)]
struct Keys {
    keys: Option<Value>,
}

/// `POST /_dbs_info` with `{"keys":[…]}`.
pub(crate) async fn infos(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    context.require_json()?;
    let names = keys_of(body.json::<Keys>().await?)?;
    describe_each(context, names).await
}

/// `GET /_dbs_info`: all.
pub(crate) async fn all_infos(context: &Context) -> Result<Response<Body>> {
    let (databases, range) = (context.state.databases.clone(), name_range(&context.query)?);
    let names = context.state.run(move || Ok(databases.names(&range)?)).await?;
    describe_each(context, names).await
}

async fn describe_each(context: &Context, names: Vec<String>) -> Result<Response<Body>> {
    let databases = context.state.databases.clone();
    let infos = Infos {
        databases,
        identity: context.identity.clone(),
        people: context.state.authenticator.users_database().map(str::to_owned),
        names: names.into(),
        text: JsonWriter::of_literal("["),
        first: true,
    };
    let begun = context.state.run(move || stream::begin(infos)).await?;
    Ok(response::json_body(StatusCode::OK, begun.into_body(context, None)?))
}

fn keys_of(keys: Keys) -> Result<Vec<String>> {
    let missing = "`keys` member must exist.";
    let Some(Value::Array(keys)) = keys.keys else { return Err(HttpError::bad_request(missing)) };
    if keys.len() > MOST_INFOS {
        return Err(HttpError::bad_request("`keys` array is too long."));
    }
    keys.into_iter()
        .map(|key| match key {
            Value::String(name) => Ok(name),
            _ => Err(HttpError::bad_request("`keys` must be an array of strings.")),
        })
        .collect()
}

/// Descriptions of databases as a JSON array.
struct Infos {
    databases: Databases,
    identity: Identity,
    /// The database that is `_users` too.
    people: Option<String>,
    names: VecDeque<String>,
    text: JsonWriter,
    first: bool,
}

impl Source for Infos {
    fn next_piece(&mut self) -> Result<Piece> {
        let mut text = std::mem::take(&mut self.text);
        while let Some(name) = self.names.pop_front() {
            if !std::mem::take(&mut self.first) {
                text.literal(",");
            }
            let people = self.people.as_deref().filter(|_| name == USERS_DATABASE);
            let opened =
                access::open(&self.databases, people.unwrap_or(&name), &self.identity, Level::Reader);
            let described = opened.and_then(|database| {
                let compacting = Compactor::of(&self.databases).is_compacting(database.number());
                Ok(describe(&database.describe()?, &name, compacting))
            });
            let row = match described {
                Ok(info) => json!({"key": name, "info": info}),
                // A depositor learns nothing about what is there.
                Err(error) if matches!(&*error.error, "forbidden" | "unauthorized") => {
                    json!({"key": name, "error": "not_found"})
                }
                Err(error) => json!({"key": name, "error": error.error}),
            };
            text.serialized(&row);
            if text.len() >= response::PIECE_BYTES {
                break;
            }
        }
        let last = self.names.is_empty();
        if last {
            text.literal("]\n");
        }
        Ok(Piece::of_json(text, last))
    }
}

/// Whether an error says that the database itself is gone.
pub(crate) fn is_gone(error: &DatabaseError) -> bool {
    matches!(error, DatabaseError::NotFound { .. })
}
