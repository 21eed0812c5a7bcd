//! `POST /_transaction`: edits of several databases, stored together or not at all, if conditions hold.
//!
//! ```json
//! { "conditions": [ {"db": "stock", "id": "nails", "selector": {"count": {"$gte": 10}}},
//!                   {"db": "orders", "id": "o-17", "exists": false} ],
//!   "edits": [ {"db": "stock", "doc": {"_id": "nails", "_rev": "3-…", "count": 90}},
//!              {"db": "orders", "doc": {"_id": "o-17", "of": "nails", "count": 10}, "folders": {"add": ["Open"]}} ] }
//! ```
//!
//! Its sender may do in each database what they may do by PUT there, and sees of its documents what they may read.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bytes::Bytes;
use http::{Response, StatusCode};
use scrinium_database::{
    Condition, ConditionKind, Edit, EditMode, FolderChange, Level, TransactionRefusal, TransactionUpdate,
    update_together,
};
use scrinium_document::json;
use scrinium_mango::Selector;
use scrinium_views::selector_filter;
use serde_json::{Value, json as value};

use crate::authority::Identity;
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};
use crate::state::HttpState;
use crate::users::USERS_DATABASE;
use crate::{access, audit_record, write};

/// A document may be nested as deep as by itself, within an object, an array and an object.
const NESTING_MAX: usize = json::NESTING_MAX + 3;

/// Elements of one list.
const ELEMENTS_MAX: usize = 2_000;

/// `POST /_transaction`.
pub(crate) async fn store(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    context.require_json()?;
    let json = body.collect().await?;
    body.cover_values(&json)?;
    let submitting = Submitting {
        state: context.state.clone(),
        identity: context.identity.clone(),
        address: context.client.address,
        people: context.state.authenticator.users_database().map(str::to_owned),
        made: context.state.uuids.next(),
    };
    // Nobody has all threads. Given back by the work itself.
    let thread = context.account.thread().await;
    let admission = context.state.workers.admit().await?;
    let submitted = admission.run(move || {
        let _thread = thread;
        let wanted = Wanted::parse(&json, &submitting.made)?;
        submitting.submit(wanted)
    });
    let Submitted { order, update } = submitted.await??;
    let stored = update.durable().await?;
    drop(admission);
    let results: Vec<Value> = order
        .iter()
        .filter_map(|EditPlace { database, part, edit }| {
            let updated = stored.get(*part)?.get(*edit)?;
            Some(value!({"db": database, "id": updated.id, "rev": updated.revision}))
        })
        .collect();
    Ok(response::json_value(StatusCode::CREATED, &value!({"ok": true, "results": results})))
}

/// What a request asks for.
#[derive(Default)]
struct Wanted {
    conditions: Vec<(String, Condition)>,
    edits: Vec<(String, Edit)>,
}

impl Wanted {
    fn parse(json: &Bytes, made: &str) -> Result<Self> {
        let text = std::str::from_utf8(json).map_err(|_| HttpError::invalid_json())?;
        let mut wanted = Self::default();
        let is_list = "`conditions` and `edits` are lists of objects.";
        for (name, list) in members(text)? {
            let elements = json::elements(list, NESTING_MAX, ELEMENTS_MAX)?;
            let elements = elements.ok_or_else(|| HttpError::bad_request(is_list))?;
            if elements.len() > ELEMENTS_MAX {
                return Err(HttpError::too_many_values(&name, ELEMENTS_MAX));
            }
            match name.as_str() {
                "conditions" => {
                    for (place, element) in elements.into_iter().enumerate() {
                        wanted
                            .conditions
                            .push(condition(element).map_err(|error| at("condition", place, error))?);
                    }
                }
                "edits" => {
                    for (place, element) in elements.into_iter().enumerate() {
                        let id = || format!("{made}-{place}");
                        wanted.edits.push(edit(json, element, id).map_err(|error| at("edit", place, error))?);
                    }
                }
                other => return Err(unknown(other)),
            }
        }
        if wanted.edits.is_empty() {
            return Err(HttpError::bad_request("A transaction has at least one edit: `edits`."));
        }
        Ok(wanted)
    }
}

/// The members of an object. A name that stands twice counts once, the last.
fn members(text: &str) -> Result<BTreeMap<String, &str>> {
    let members = json::members(text, NESTING_MAX)?.ok_or_else(HttpError::not_object)?;
    Ok(members.into_iter().map(|(name, value)| (name.into_owned(), value)).collect())
}

fn unknown(name: &str) -> HttpError {
    HttpError::bad_request(format!("`{name:.60}` is no part of a transaction."))
}

/// An error with the place in the request that it is about, counted from 0.
fn at(what: &str, place: usize, mut error: HttpError) -> HttpError {
    error.reason = format!("{what} {place}: {}", error.reason).into();
    error
}

fn text(member: &str, raw: Option<&str>) -> Result<String> {
    let text = raw.and_then(json::string).map(std::borrow::Cow::into_owned);
    text.ok_or_else(|| HttpError::bad_request(format!("`{member}` must be a text.")))
}

/// The database and the condition.
fn condition(element: &str) -> Result<(String, Condition)> {
    let mut members = members(element)?;
    let database = text("db", members.remove("db"))?;
    let id = text("id", members.remove("id"))?;
    let (Some((name, raw)), true) = (members.pop_first(), members.is_empty()) else {
        return Err(HttpError::bad_request("A condition has one of `exists`, `rev` and `selector`."));
    };
    let kind = match (name.as_str(), raw) {
        ("exists", "true") => ConditionKind::Exists(true),
        ("exists", "false") => ConditionKind::Exists(false),
        ("exists", _) => return Err(HttpError::bad_request("`exists` must be true or false.")),
        ("rev", raw) => ConditionKind::Revision(text("rev", Some(raw))?),
        ("selector", raw) => {
            let selector = serde_json::from_str::<Value>(raw).map_err(|_| HttpError::invalid_json())?;
            let selector =
                Selector::parse(&selector).map_err(|error| HttpError::bad_request(error.reason()))?;
            ConditionKind::Passes(selector_filter(selector))
        }
        (other, _) => return Err(unknown(other)),
    };
    Ok((database, Condition { id, kind }))
}

/// The database and the edit.
fn edit(body: &Bytes, element: &str, made: impl Fn() -> String) -> Result<(String, Edit)> {
    let mut members = members(element)?;
    let database = text("db", members.remove("db"))?;
    let document = members.remove("doc").filter(|document| document.starts_with('{'));
    let document = document.ok_or_else(|| HttpError::bad_request("`doc` must be a JSON object."))?;
    let folders = members.remove("folders").map(folders).transpose()?.unwrap_or_default();
    if let Some((other, _)) = members.pop_first() {
        return Err(unknown(&other));
    }
    let json = body.slice_ref(document.as_bytes());
    let id = write::id_of(&json)?.unwrap_or_else(made);
    Ok((database, Edit { id: Some(id), json, folders, ..Edit::default() }))
}

/// `{"add": ["Open"], "remove": ["New"]}`.
fn folders(raw: &str) -> Result<Vec<FolderChange>> {
    let mut changes = Vec::new();
    for (name, list) in members(raw)? {
        let names = json::elements(list, NESTING_MAX, ELEMENTS_MAX)?.unwrap_or_default();
        for raw in names {
            let folder = text("folders", Some(raw))?;
            changes.push(match name.as_str() {
                "add" => FolderChange::Add { folder },
                "remove" => FolderChange::Remove { folder },
                other => return Err(unknown(other)),
            });
        }
    }
    Ok(changes)
}

/// Where an edit of the request stands in the transaction.
struct EditPlace {
    /// As the request named it.
    database: String,
    part: usize,
    edit: usize,
}

struct Submitted {
    order: Vec<EditPlace>,
    update: TransactionUpdate,
}

/// What a transaction is submitted with. Blocks.
struct Submitting {
    state: HttpState,
    identity: Identity,
    /// Where the request comes from.
    address: IpAddr,
    /// The database that is `_users` too.
    people: Option<String>,
    made: String,
}

impl Submitting {
    fn submit(&self, wanted: Wanted) -> Result<Submitted> {
        let mut parts = Parts { of: self, parts: Vec::new(), places: BTreeMap::new() };
        let (mut order, mut conditions) = (Vec::new(), Vec::new());
        for (place, (database, condition)) in wanted.conditions.into_iter().enumerate() {
            let (part, number) = parts.of(&database).map_err(|error| at("condition", place, error))?;
            conditions.push((number, part.conditions.len()));
            part.conditions.push(condition);
        }
        for (place, (database, edit)) in wanted.edits.into_iter().enumerate() {
            let told = |error| at("edit", place, error);
            let (part, number) = parts.of(&database).map_err(told)?;
            if let Some(id) = &edit.id {
                write::check_design(&part.session, id).map_err(told)?;
            }
            if part.session.clear_secret(&edit, EditMode::Interactive).is_some() {
                let reason = "A password is set by a request of its own (PUT).";
                return Err(told(HttpError::bad_request(reason)));
            }
            order.push(EditPlace { database, part: number, edit: part.edits.len() });
            part.edits.push(Edit { editor: self.identity.shared_name(), ..edit });
        }
        let names: Vec<String> = parts.parts.iter().map(|part| part.name.clone()).collect();
        let part = |part: Part| part.session.transaction_part(part.conditions, part.edits);
        let parts = parts.parts.into_iter().map(part).collect();
        let part_of = |name: &str| names.iter().position(|known| known == name);
        match update_together(parts) {
            Ok(update) => Ok(Submitted { order, update }),
            Err(TransactionRefusal::Whole(error)) => Err(error.into()),
            Err(TransactionRefusal::Edit { database, place, error }) => {
                let part = part_of(&database);
                let is_it = |edit: &EditPlace| Some(edit.part) == part && edit.edit == place;
                Err(at("edit", order.iter().position(is_it).unwrap_or(place), error.into()))
            }
            Err(TransactionRefusal::Condition { database, place, id }) => {
                let part = part_of(&database);
                let is_it = |(of, condition): &(usize, usize)| Some(*of) == part && *condition == place;
                let place = conditions.iter().position(is_it).unwrap_or(place);
                let reason = format!("condition {place}: it does not hold of the document `{id}`.");
                Err(HttpError::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", reason))
            }
        }
    }
}

/// What is wanted of one database.
struct Part {
    name: String,
    session: access::Opened,
    conditions: Vec<Condition>,
    edits: Vec<Edit>,
}

struct Parts<'s> {
    of: &'s Submitting,
    parts: Vec<Part>,
    /// By the names of databases.
    places: BTreeMap<String, usize>,
}

impl Parts<'_> {
    /// The part of a database, which is opened for the one who asks, and which part it is.
    fn of(&mut self, name: &str) -> Result<(&mut Part, usize)> {
        let people = self.of.people.as_deref().filter(|_| name == USERS_DATABASE);
        let name = people.unwrap_or(name);
        let number = match self.places.get(name) {
            Some(number) => *number,
            None => {
                let Submitting { state, identity, address, .. } = self.of;
                let session = access::open(&state.databases, name, identity, Level::Depositor)?;
                if identity.is_administrator() {
                    audit_record::by_office(state, &session, identity, *address);
                }
                self.parts.push(Part {
                    name: name.to_owned(),
                    session,
                    conditions: Vec::new(),
                    edits: Vec::new(),
                });
                self.places.insert(name.to_owned(), self.parts.len() - 1);
                self.parts.len() - 1
            }
        };
        let part = self.parts.get_mut(number);
        part.map(|part| (part, number))
            .ok_or_else(|| HttpError::internal("A part of the transaction is lost."))
    }
}
