//! Replications: ordered by `_replicate`, shown by `_scheduler`, as CouchDB does.

use http::{Response, StatusCode};
use scrinium_port::raised;
use scrinium_replication::{ErrorKind, REPLICATOR_DATABASE, ReplicationError, Replicator};
use serde_json::{Value, json};

use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::query::Given;
use crate::response::{self, Body};

/// Rows of a list, where the client does not say, as in CouchDB.
const USUAL_LIMIT: u64 = 25;

fn replicator(context: &Context) -> Result<&Replicator> {
    let none = || HttpError::not_implemented("This server does not carry out replications itself.");
    context.state.replicator().ok_or_else(none)
}

/// `POST /_replicate`: carried out before it is answered; a continuous one is begun, and `cancel` ends it.
pub(crate) async fn replicate(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    context.require_json()?;
    let replicator = replicator(context)?;
    let members = body.object().await?;
    if members.get("cancel") == Some(&Value::Bool(true)) {
        let id = replicator.cancel(&members, &context.identity)?;
        return Ok(response::json_value(StatusCode::OK, &json!({"ok": true, "_local_id": id})));
    }
    let job = replicator.order(&members, &context.identity)?;
    drop(members);
    if job.is_continuous() {
        let answer = json!({"ok": true, "_local_id": job.id});
        return Ok(response::json_value(StatusCode::ACCEPTED, &answer));
    }
    let mut stopping = context.state.stopping();
    let ended = tokio::select! {
        biased;
        () = raised(&mut stopping) => return Err(HttpError::unavailable("The server is about to stop.")),
        ended = job.over() => ended?,
    };
    let mut answer = ended.checkpoint;
    if let Some(members) = answer.as_object_mut() {
        members.insert("ok".to_owned(), true.into());
        if ended.no_changes {
            members.insert("no_changes".to_owned(), true.into());
        }
    }
    Ok(response::json_value(StatusCode::OK, &answer))
}

/// `GET /_scheduler/jobs`.
pub(crate) fn jobs(context: &Context) -> Result<Response<Body>> {
    let replicator = replicator(context)?;
    let jobs = replicator.jobs();
    let (skip, limit) = window(context)?;
    let shown: Vec<Value> =
        jobs.iter().skip(skip).take(limit).map(|job| job.shown(replicator.node())).collect();
    let answer = json!({"total_rows": jobs.len(), "offset": skip, "jobs": shown});
    Ok(response::json_value(StatusCode::OK, &answer))
}

/// `GET /_scheduler/jobs/{job}`.
pub(crate) fn job(context: &Context) -> Result<Response<Body>> {
    let replicator = replicator(context)?;
    let job = replicator.job(context.address.value("job")?).filter(|job| !job.is_over());
    let job = job.ok_or_else(|| HttpError::not_found("missing"))?;
    Ok(response::json_value(StatusCode::OK, &job.shown(replicator.node())))
}

/// `GET /_scheduler/docs`, of all databases that order replications, which is one.
pub(crate) fn documents(context: &Context) -> Result<Response<Body>> {
    let replicator = replicator(context)?;
    let states = context.query.get("states").map(|states| states.split(',').collect::<Vec<_>>());
    let is_wanted = |shown: &Value| {
        let state = shown.get("state").and_then(Value::as_str).unwrap_or_default();
        states.as_ref().is_none_or(|states| states.contains(&state))
    };
    let mut all = replicator.documents_shown();
    all.retain(is_wanted);
    let (skip, limit) = window(context)?;
    let total = all.len();
    let shown: Vec<Value> = all.into_iter().skip(skip).take(limit).collect();
    Ok(response::json_value(StatusCode::OK, &json!({"total_rows": total, "offset": skip, "docs": shown})))
}

/// `GET /_scheduler/docs/{replicator}`.
pub(crate) fn documents_of(context: &Context) -> Result<Response<Body>> {
    check_database(context)?;
    documents(context)
}

/// `GET /_scheduler/docs/{replicator}/{order}`.
pub(crate) async fn document(context: &Context) -> Result<Response<Body>> {
    check_database(context)?;
    let shown = replicator(context)?.document_soon_shown(context.address.value("order")?).await?;
    let shown = shown.ok_or_else(|| HttpError::not_found("missing"))?;
    Ok(response::json_value(StatusCode::OK, &shown))
}

fn check_database(context: &Context) -> Result<()> {
    if context.address.value("replicator")? == REPLICATOR_DATABASE {
        return Ok(());
    }
    Err(HttpError::not_found("Database does not exist."))
}

fn window(context: &Context) -> Result<(usize, usize)> {
    let number = |name: &str, usual: u64| -> Result<usize> {
        let number = context.query.get(name).map_or(Ok(usual), |text| Given::Text(text).count())?;
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    };
    Ok((number("skip", 0)?, number("limit", USUAL_LIMIT)?))
}

/// What `_active_tasks` lists of replications.
pub(crate) fn tasks(context: &Context) -> Vec<Value> {
    let Some(replicator) = context.state.replicator() else { return Vec::new() };
    replicator.jobs().iter().map(|job| job.task(replicator.node())).collect()
}

impl From<ReplicationError> for HttpError {
    fn from(error: ReplicationError) -> Self {
        let status = match error.kind {
            ErrorKind::Order => StatusCode::BAD_REQUEST,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Unauthorized => StatusCode::UNAUTHORIZED,
            ErrorKind::Forbidden => StatusCode::FORBIDDEN,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.word(), error.reason)
    }
}
