//! Mango indexes: `_index`.

use http::{Response, StatusCode};
use scrinium_database::DatabaseError;
use scrinium_mango::{IndexDefinition, all_documents_to_json, design_id};
use serde_json::{Value, json};

use crate::access::Opened;
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result, couchdb_word};
use crate::query::Given;
use crate::response::{self, Body};

/// Design documents in one request of `_bulk_delete`.
const MOST_DELETED: usize = 1000;

/// The only type of index that there is.
const JSON_INDEX: &str = "json";

/// `GET /{db}/_index`.
pub(crate) async fn list(context: &Context) -> Result<Response<Body>> {
    let count = |name| context.query.get(name).map(|text| Given::Text(text).count()).transpose();
    let (skip, limit) = (count("skip")?.unwrap_or(0), count("limit")?.unwrap_or(u64::MAX));
    let indexes = context.with_database(|database| Ok(database.mango_indexes()?)).await?;
    let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let all = std::iter::once(all_documents_to_json()).chain(indexes.iter().map(|index| index.to_json()));
    let shown: Vec<Value> = all.skip(place(skip)).take(place(limit)).collect();
    let answer = json!({ "total_rows": indexes.len() + 1, "indexes": shown });
    Ok(response::json_value(StatusCode::OK, &answer))
}

/// `POST /{db}/_index`.
pub(crate) async fn create(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    context.require_json()?;
    let definition = IndexDefinition::parse(&body.deep_value().await?)?;
    let answer = context
        .with_database(move |database| {
            let result = if database.create_index(&definition)? { "created" } else { "exists" };
            Ok(json!({ "result": result, "id": definition.design(), "name": definition.name() }))
        })
        .await?;
    Ok(response::json_value(StatusCode::OK, &answer))
}

/// `DELETE /{db}/_index/{design}/json/{name}`; `design` with `_design/`.
pub(crate) async fn delete(context: &Context) -> Result<Response<Body>> {
    let address = &context.address;
    let design = design_id(address.value("index_ddoc")?).into_owned();
    let (is_json, name) = (address.value("type")? == JSON_INDEX, address.value("name")?.to_owned());
    context
        .with_database(move |database| {
            if !is_json {
                return Err(HttpError::not_found("missing"));
            }
            Ok(database.delete_index(&design, &name)?)
        })
        .await?;
    Ok(response::ok(StatusCode::OK))
}

/// `POST /{db}/_index/_bulk_delete`: all indexes of some design documents.
pub(crate) async fn delete_several(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    context.require_json()?;
    let designs = design_ids(body.object().await?.get("docids"))?;
    let answer = context
        .with_database(move |database| {
            let (mut success, mut fail) = (Vec::new(), Vec::new());
            for design in designs {
                match delete_all(&database, &design) {
                    Ok(()) => success.push(json!({ "id": design, "ok": true })),
                    Err(error) => fail.push(json!({ "id": design, "error": couchdb_word(&error) })),
                }
            }
            Ok(json!({ "success": success, "fail": fail }))
        })
        .await?;
    Ok(response::json_value(StatusCode::OK, &answer))
}

fn design_ids(given: Option<&Value>) -> Result<Vec<String>> {
    let given = given.ok_or_else(|| HttpError::from(scrinium_mango::MangoError::MissingKey("docids")))?;
    let ids = given.as_array().and_then(|ids| ids.iter().map(Value::as_str).collect::<Option<Vec<&str>>>());
    let refused = |reason: String| HttpError::new(StatusCode::BAD_REQUEST, "invalid_bulk_docs", reason);
    match ids {
        Some(ids) if ids.len() > MOST_DELETED => {
            Err(refused(format!("At most {MOST_DELETED} docids at once.")))
        }
        Some(ids) => Ok(ids.into_iter().map(|id| design_id(id).into_owned()).collect()),
        None => Err(refused("Bulk Delete requires an array of non-null docids.".to_owned())),
    }
}

fn delete_all(database: &Opened, design: &str) -> std::result::Result<(), DatabaseError> {
    let indexes = database.mango_indexes()?;
    let mut names =
        indexes.iter().filter(|index| index.design() == design).map(|index| index.name()).peekable();
    if names.peek().is_none() {
        return Err(DatabaseError::NotFound { reason: "missing".to_owned() });
    }
    names.try_for_each(|name| database.delete_index(design, name))
}
