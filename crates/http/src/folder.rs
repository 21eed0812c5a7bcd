//! Folders: what they are, what is in them, and putting documents in and taking them out. Next to CouchDB's interface.

use http::{Response, StatusCode};
use scrinium_database::{
    DatabaseError, FolderChange, FolderKind, FolderMemberChange, FolderUse, Placed, SpecialUse,
};
use scrinium_document::json::JsonWriter;
use scrinium_views::FolderDescription;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result, couchdb_word};
use crate::operations::Operation;
use crate::query::Given;
use crate::response::{self, Body, push_error_members};
use crate::write;

/// Members or changes in one answer, unless the client says how many.
const USUAL_LIMIT: u64 = 1000;

/// A folder keeps its documents for this many days at most, or for ever.
const KEEP_DAYS_MAX: u64 = 36_500;

/// `GET /{db}/_folder`.
pub(crate) async fn list(context: &Context) -> Result<Response<Body>> {
    let person = context.identity.shared_name();
    let described = context
        .with_database(move |database| {
            let folders = database.folders(person.as_deref())?;
            Ok(folders.iter().map(describe).collect::<Vec<Value>>())
        })
        .await?;
    Ok(response::json_value(StatusCode::OK, &json!({"folders": described})))
}

fn describe(folder: &FolderDescription) -> Value {
    json!({
        "name": folder.name,
        "total": folder.total,
        "unread": folder.unread,
        "uid_validity": folder.uid_validity,
        "next_uid": folder.next_uid,
        "update_seq": folder.update_sequence,
        "kind": folder.kind.text(),
        "special_use": folder.special_use.map(SpecialUse::text),
        "keep_days": folder.keep_days,
        "columns": folder.columns,
    })
}

/// `PUT /{db}/_folder/{name}`, with nothing or `{"columns": […], "name": "another", "kind": "mail", "special_use": "sent",
/// "keep_days": 30}`.
pub(crate) async fn define(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let name = context.address.value("folder")?;
    let mut members = body.object_or_nothing().await?;
    let columns = members.remove("columns").filter(|columns| !columns.is_null());
    if columns.as_ref().is_some_and(|columns| !columns.is_array()) {
        return Err(HttpError::bad_request("`columns` must be an array."));
    }
    let other_name = match members.remove("name") {
        None | Some(Value::Null) => None,
        Some(Value::String(other)) => Some(other),
        Some(_) => return Err(HttpError::bad_request("`name` must be a string.")),
    };
    let folder_use = folder_use(&mut members)?;
    let wanted = name.to_owned();
    let made = context
        .with_database(move |database| {
            if let Some(other) = &other_name {
                database.rename_folder(&wanted, other)?;
            }
            let name = other_name.as_ref().unwrap_or(&wanted);
            let made = database.define_folder(name, columns.as_ref())?;
            if folder_use != FolderUse::default() {
                database.set_folder_use(name, folder_use)?;
            }
            Ok(made)
        })
        .await?;
    if !made {
        return Ok(response::ok(StatusCode::OK));
    }
    let mut response = response::ok(StatusCode::CREATED);
    context.locate(&mut response, &[context.database_name(), "_folder", name]);
    Ok(response)
}

/// What a request says of what a folder is for.
fn folder_use(members: &mut Map<String, Value>) -> Result<FolderUse> {
    let kind = match members.remove("kind") {
        None => None,
        Some(kind) => {
            let known = kind.as_str().and_then(FolderKind::parse);
            Some(known.ok_or_else(|| {
                HttpError::bad_request("`kind` must be plain, mail, calendar, contacts or tasks.")
            })?)
        }
    };
    let special_use = match members.remove("special_use") {
        None => None,
        Some(Value::Null) => Some(None),
        Some(special_use) => {
            let known = special_use.as_str().and_then(SpecialUse::parse);
            Some(Some(known.ok_or_else(|| {
                HttpError::bad_request(
                    "`special_use` must be null, all, archive, drafts, flagged, important, junk, sent or trash.",
                )
            })?))
        }
    };
    let keep_days = match members.remove("keep_days") {
        None => None,
        Some(Value::Null) => Some(None),
        Some(days) => {
            let days = days.as_u64().filter(|days| *days <= KEEP_DAYS_MAX);
            let days = days.and_then(|days| u32::try_from(days).ok());
            Some(Some(days.ok_or_else(|| {
                HttpError::bad_request(format!(
                    "`keep_days` must be null, or a number of days to {KEEP_DAYS_MAX}; 0 stands for all time."
                ))
            })?))
        }
    };
    Ok(FolderUse { kind, special_use, keep_days })
}

/// `DELETE /{db}/_folder/{name}`: the documents stay.
pub(crate) async fn remove(context: &Context) -> Result<Response<Body>> {
    let wanted = context.address.value("folder")?.to_owned();
    context.with_database(move |database| Ok(database.drop_folder(&wanted)?)).await?;
    Ok(response::ok(StatusCode::OK))
}

/// What `POST /{db}/_folder/{name}` asks for.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Changes {
    add: Vec<String>,
    remove: Vec<String>,
    r#move: Option<Move>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Move {
    to: String,
    ids: Vec<String>,
}

impl Changes {
    /// What the request is: what most of it is.
    fn operation(&self) -> Operation {
        let moved = self.r#move.as_ref().map_or(0, |moved| moved.ids.len());
        if self.add.len() >= self.remove.len().max(moved) {
            Operation::FolderAdd
        } else if self.remove.len() >= moved {
            Operation::FolderRemove
        } else {
            Operation::FolderMove
        }
    }

    fn into_changes(self, name: &str) -> Vec<(String, FolderChange)> {
        let folder = || name.to_owned();
        let added = self.add.into_iter().map(|id| (id, FolderChange::Add { folder: folder() }));
        let removed = self.remove.into_iter().map(|id| (id, FolderChange::Remove { folder: folder() }));
        let (to, ids) = self.r#move.map(|moved| (moved.to, moved.ids)).unwrap_or_default();
        let moved = ids.into_iter().map(|id| (id, FolderChange::Move { from: folder(), to: to.clone() }));
        added.chain(removed).chain(moved).collect()
    }
}

/// `POST /{db}/_folder/{name}`: documents come in, leave and move, in one batch.
pub(crate) async fn change(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    context.require_json()?;
    let name = context.address.value("folder")?;
    let members = body.object().await?;
    let changes: Changes = parse(members)?;
    context.tell_operation(changes.operation());
    let other = changes.r#move.as_ref().map(|moved| moved.to.clone());
    let named: Vec<String> = std::iter::once(name.to_owned()).chain(other).collect();
    let changes = changes.into_changes(name);
    let ids: Vec<String> = changes.iter().map(|(id, _)| id.clone()).collect();
    let results = write::submit_all(context, move |database| {
        // A folder that is not there is one error, not one for each document.
        for folder in &named {
            database.check_folder(folder)?;
        }
        Ok(database.change_folders(changes)?)
    })
    .await?;
    let mut text = JsonWriter::new();
    text.literal("[");
    for (id, result) in ids.iter().zip(results) {
        push_result(&mut text, id, result, |text, placed: &Placed| {
            if let Some(uid) = placed.uid {
                text.literal(",\"uid\":");
                text.number(uid);
            }
            push_changed(text, placed.changed);
        });
    }
    text.literal("]\n");
    Ok(response::json(StatusCode::OK, text))
}

/// A body that must have these members and no others.
pub(crate) fn parse<T: for<'a> Deserialize<'a>>(members: Map<String, Value>) -> Result<T> {
    serde_json::from_value(Value::Object(members))
        .map_err(|error| HttpError::bad_request(format!("The request's body could not be parsed: {error}.")))
}

/// One document's part of an array of results.
pub(crate) fn push_result<T>(
    text: &mut JsonWriter,
    id: &str,
    result: std::result::Result<T, DatabaseError>,
    push: impl FnOnce(&mut JsonWriter, &T),
) {
    text.literal(if text.len() > 1 { ",\n{" } else { "{" });
    if result.is_ok() {
        text.literal("\"ok\":true,");
    }
    text.literal("\"id\":");
    text.string(id);
    match result {
        Ok(done) => push(text, &done),
        Err(error) => {
            text.literal(",");
            push_error_members(text, couchdb_word(&error), &error.reason());
        }
    }
    text.literal("}");
}

/// Whether it was otherwise before.
pub(crate) fn push_changed(text: &mut JsonWriter, changed: bool) {
    text.literal(",\"changed\":");
    text.literal(if changed { "true" } else { "false" });
}

/// A count among the request's parameters.
pub(crate) fn count(context: &Context, name: &str) -> Result<Option<u64>> {
    context.query.get(name).map(|text| Given::Text(text).count()).transpose()
}

/// `limit`, or what is usual.
pub(crate) fn limit(context: &Context) -> Result<usize> {
    let limit = count(context, "limit")?.unwrap_or(USUAL_LIMIT);
    Ok(usize::try_from(limit).unwrap_or(usize::MAX))
}

/// `since`, a sequence of this database; clients may send it as the JSON string that they got.
pub(crate) fn since(context: &Context) -> String {
    context.query.get("since").unwrap_or("0").trim_matches('"').to_owned()
}

/// `GET /{db}/_folder/{name}/_members?since_uid=&limit=`.
pub(crate) async fn members(context: &Context) -> Result<Response<Body>> {
    let since_uid = count(context, "since_uid")?.unwrap_or(0);
    let (limit, person) = (limit(context)?, context.identity.shared_name());
    let wanted = context.address.value("folder")?.to_owned();
    let found = context
        .with_database(move |database| {
            let found = database.folder_members(&wanted, since_uid, limit, person.as_deref())?;
            let members = found.members.iter().map(|member| {
                json!({
                    "uid": member.uid,
                    "id": member.id,
                    "seq": database.sequence_text(member.change_number),
                    "added_ms": member.added_ms,
                    "unread": member.read.map(|read| !read),
                })
            });
            Ok(json!({
                "uid_validity": found.uid_validity,
                "next_uid": found.next_uid,
                "total": found.total,
                "members": members.collect::<Vec<Value>>(),
                "last_uid": found.last_uid,
                "more": found.more,
            }))
        })
        .await?;
    Ok(response::json_value(StatusCode::OK, &found))
}

/// `GET /{db}/_folder/{name}/_changes?since=&limit=`: what came in and left, each uid once.
pub(crate) async fn changes(context: &Context) -> Result<Response<Body>> {
    let (since, limit, wanted) =
        (since(context), limit(context)?, context.address.value("folder")?.to_owned());
    let found = context
        .with_database(move |database| {
            let found = database.folder_changes(&wanted, database.parse_sequence(&since)?, limit)?;
            let row = |change: &FolderMemberChange| {
                let sequence = database.sequence_text(change.change_number);
                let mut row = json!({"seq": sequence, "uid": change.uid, "id": change.id});
                if change.has_left()
                    && let Some(members) = row.as_object_mut()
                {
                    members.insert("removed".to_owned(), Value::Bool(true));
                }
                row
            };
            let mut answer = json!({
                "uid_validity": found.uid_validity,
                "results": found.changes.iter().map(row).collect::<Vec<Value>>(),
                "last_seq": database.sequence_text(found.last),
                "more": found.more,
            });
            if let (true, Some(members)) = (found.incomplete, answer.as_object_mut()) {
                members.insert("incomplete".to_owned(), Value::Bool(true));
            }
            Ok(answer)
        })
        .await?;
    Ok(response::json_value(StatusCode::OK, &found))
}
