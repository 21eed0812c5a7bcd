//! The access control list of a database: `/{db}/_acl`.

use http::{Response, StatusCode};
use scrinium_database::{AccessList, Level};
use serde_json::{Value, json};

use crate::audit::AuditAction;
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};

/// `GET /{db}/_acl`: the list, and under `you` what the one who asks may do.
pub(crate) async fn get(context: &Context) -> Result<Response<Body>> {
    let shown = context
        .with_database(|database| {
            let Some(list) = database.access_list()? else {
                return Err(HttpError::new(
                    StatusCode::NOT_FOUND,
                    "not_found",
                    "The database has no access control list; `_security` decides who may do what.",
                ));
            };
            let mut shown = list.to_json();
            if let Some(members) = shown.as_object_mut() {
                members.insert("you".to_owned(), json!({"level": database.level().text()}));
            }
            Ok(shown)
        })
        .await?;
    Ok(response::json_value(StatusCode::OK, &shown))
}

/// `PUT /{db}/_acl`. Takes what `GET` gives. Who is of a domain with administrators of its own means the people of it by `default`,
/// unless the list says something else.
pub(crate) async fn put(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let mut json: Value = body.json().await?;
    if let Some(members) = json.as_object_mut() {
        members.remove("you");
    }
    let identity = context.identity.clone();
    let list = AccessList::parse(&json)?.said_by(identity.roles());
    let stored = list.to_json();
    context
        .with_database(move |database| {
            if !identity.is_administrator()
                && list.level_of(identity.name(), identity.roles()) < Level::Manager
            {
                return Err(HttpError::bad_request(
                    "With this list you would not be a manager of the database any more; a server \
                     administrator, or another manager, can set it.",
                ));
            }
            Ok(database.set_access_list(Some(list))?)
        })
        .await?;
    context.audit(AuditAction::AccessListChanged, context.database_name(), Some(&stored));
    Ok(response::ok(StatusCode::CREATED))
}

/// `DELETE /{db}/_acl`: `_security` says again who may do what, and `Readers` and `Authors` say nothing.
pub(crate) async fn delete(context: &Context) -> Result<Response<Body>> {
    context.with_database(|database| Ok(database.set_access_list(None)?)).await?;
    context.audit(AuditAction::AccessListChanged, context.database_name(), None);
    Ok(response::ok(StatusCode::OK))
}
