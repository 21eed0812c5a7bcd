//! Settings of a database as a whole, and commands to it.

use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use crate::access;
use crate::audit::AuditAction;
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};

/// `GET /{db}/_revs_limit`.
pub(crate) async fn revision_limit(context: &Context) -> Result<Response<Body>> {
    let described = context.with_database(|database| Ok(database.describe()?)).await?;
    Ok(response::json_value(StatusCode::OK, &described.revision_limit))
}

/// `PUT /{db}/_revs_limit` with a number.
pub(crate) async fn set_revision_limit(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let limit = body.json::<Value>().await?;
    let limit = limit.as_u64().filter(|limit| *limit > 0);
    let limit = limit.ok_or_else(|| HttpError::bad_request("`rev_limit` must be a positive integer"))?;
    context.with_database(move |database| Ok(database.set_revision_limit(limit)?)).await?;
    Ok(response::ok(StatusCode::OK))
}

/// `GET /{db}/_security`.
pub(crate) async fn security(context: &Context) -> Result<Response<Body>> {
    let security = context.with_database(|database| Ok(database.shown_security()?)).await?;
    Ok(response::json_value(StatusCode::OK, &*security))
}

/// `PUT /{db}/_security`.
pub(crate) async fn set_security(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let security: Value = body.json().await?;
    access::validate_security(&security)?;
    let details = security.clone();
    context
        .with_database(move |database| {
            if database.access_list()?.is_some() {
                return Err(HttpError::forbidden(
                    "This database has an access control list: change that (`_acl`), or delete it first.",
                ));
            }
            Ok(database.set_security(&security)?)
        })
        .await?;
    context.audit(AuditAction::SecurityChanged, context.database_name(), Some(&details));
    Ok(response::ok(StatusCode::OK))
}

/// `GET /{db}/_properties`.
pub(crate) async fn properties(context: &Context) -> Result<Response<Body>> {
    let properties = context.with_database(|database| Ok(database.properties().to_json())).await?;
    Ok(response::json_value(StatusCode::OK, &properties))
}

/// `PUT /{db}/_properties` with those that are to be changed; answers with all of them. What is set here is felt by the
/// users of other databases too, so it is for administrators of the server.
pub(crate) async fn set_properties(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let wish: Map<String, Value> = body.json().await?;
    let properties =
        context.with_database(move |database| Ok(database.change_properties(&wish)?.to_json())).await?;
    Ok(response::json_value(StatusCode::OK, &properties))
}

/// `POST /{db}/_view_cleanup`: removes indexes that no design document has.
pub(crate) async fn view_cleanup(context: &Context) -> Result<Response<Body>> {
    context.require_json()?;
    context.with_database(|database| Ok(database.clean_up_views()?)).await?;
    Ok(response::ok(StatusCode::ACCEPTED))
}

/// `POST /{db}/_ensure_full_commit`: everything acknowledged is durable already.
pub(crate) async fn ensure_full_commit(context: &Context) -> Result<Response<Body>> {
    context.require_json()?;
    let described = context.with_database(|database| Ok(database.describe()?)).await?;
    let started = described.instance_start_time_us.to_string();
    Ok(response::json_value(StatusCode::CREATED, &json!({"ok": true, "instance_start_time": started})))
}
