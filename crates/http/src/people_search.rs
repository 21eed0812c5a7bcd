//! Whom somebody may mean while they type a name, and which rooms there are.

use std::sync::Arc;

use http::{Response, StatusCode};
use scrinium_database::{DatabaseError, Identity};
use serde_json::Value;

use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::query::Given;
use crate::response::{self, Body};

/// Entries of one answer where nothing is said, and at most.
const ENTRIES: usize = 8;
const ENTRIES_MAX: usize = 50;

/// Longer names, and sites, nobody types.
const TYPED_BYTES_MAX: usize = 200;

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeopleQuery {
    /// What somebody has typed; may be empty for rooms.
    pub typed: String,
    /// Rooms and other resources alone.
    pub resources: bool,
    /// Rooms of this site alone.
    pub site: Option<String>,
    /// Without rooms that have fewer seats.
    pub capacity: u32,
    /// Entries of the answer.
    pub limit: usize,
}

/// Finds people, groups and rooms. Its function blocks for as long as the disk does.
pub trait PeopleSearch: Send + Sync + 'static {
    /// `{"people": [{"kind": "person", "name": …, "short_name": …, "address": …}]}`, of what this person sees of the directory and
    /// nothing else; for resources with `site` and `capacity`, and all their `sites`.
    ///
    /// # Errors
    /// [`DatabaseError::Forbidden`] for who may not read the directory, and what the database reports.
    fn find(&self, by: &Identity, query: &PeopleQuery) -> std::result::Result<Value, DatabaseError>;
}

/// `GET /_people?q=…`: people and groups whose names have words that begin so; `?kind=room`: rooms and other resources, by `site` and
/// `capacity`.
pub(crate) async fn find(context: &Context) -> Result<Response<Body>> {
    let none = || HttpError::not_implemented("This server has no directory.");
    let search: Arc<dyn PeopleSearch> = context.state.people_search().cloned().ok_or_else(none)?;
    let (query, by) = (query_of(context)?, context.identity.clone());
    let found = context.on_worker(move || search.find(&by, &query)).await??;
    Ok(response::json_value(StatusCode::OK, &found))
}

fn query_of(context: &Context) -> Result<PeopleQuery> {
    let text = |name: &str| match context.query.get(name) {
        Some(text) if text.len() > TYPED_BYTES_MAX => {
            Err(HttpError::bad_request(format!("`{name}` has at most {TYPED_BYTES_MAX} bytes.")))
        }
        text => Ok(text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)),
    };
    let count = |name: &str| context.query.get(name).map(|text| Given::Text(text).count()).transpose();
    let resources = match context.query.get("kind") {
        None => false,
        Some("room") => true,
        Some(_) => return Err(HttpError::bad_request("`kind` is `room`, or is not said.")),
    };
    let limit = count("limit")?.map_or(ENTRIES, |limit| usize::try_from(limit).unwrap_or(ENTRIES_MAX));
    Ok(PeopleQuery {
        typed: text("q")?.unwrap_or_default(),
        resources,
        site: text("site")?,
        capacity: count("capacity")?.map_or(0, |seats| u32::try_from(seats).unwrap_or(u32::MAX)),
        limit: limit.min(ENTRIES_MAX),
    })
}
