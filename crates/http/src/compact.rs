//! Compacting on request: accepted at once and done alongside, one database after the other.

use http::{Response, StatusCode};
use scrinium_database::PurgedLeaves;
use scrinium_maintenance::{CompactOrder, CompactStyle, Compactor};
use serde_json::{Map, Value, json};

use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};
use crate::state::HttpState;

/// `POST /{db}/_compact`: files that hold garbage are merged, those of contents too, and old tombstones purged.
pub(crate) async fn database(context: &Context) -> Result<Response<Body>> {
    context.require_json()?;
    context.with_database(|_| Ok(())).await?;
    let order = CompactOrder { style: CompactStyle::Shrink, ..CompactOrder::default() };
    Ok(accept(context, order))
}

/// `POST /{db}/_compact/{design}`: the indexes of one design document.
pub(crate) async fn indexes(context: &Context) -> Result<Response<Body>> {
    context.require_json()?;
    let design = context.address.value("ddoc")?;
    let wanted = design.to_owned();
    // A design document that is not there is answered with 404 at once.
    context.with_database(move |database| Ok(database.view_info(&wanted).map(drop)?)).await?;
    let order = CompactOrder { design: Some(design.to_owned()), ..CompactOrder::default() };
    Ok(accept(context, order))
}

fn accept(context: &Context, order: CompactOrder) -> Response<Body> {
    let name = context.database_name().to_owned();
    if context.state.compactions.waiting.lock().insert((name.clone(), order.design.clone())) {
        tokio::spawn(in_turn(context.state.clone(), name, order));
    }
    response::ok(StatusCode::ACCEPTED)
}

/// One at a time, so that only one thread is taken for all that wait.
async fn in_turn(state: HttpState, name: String, order: CompactOrder) {
    let turn = state.compactions.turn.acquire().await;
    let databases = state.databases.clone();
    let (wanted, how) = (name.clone(), order.clone());
    let compacted =
        tokio::task::spawn_blocking(move || Compactor::of(&databases).compact(&wanted, &how)).await;
    drop(turn);
    state.compactions.waiting.lock().remove(&(name.clone(), order.design));
    match compacted {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(database = name, %error, "a compaction failed"),
        // The process ends: it was never begun.
        Err(error) if error.is_cancelled() => {}
        Err(error) => tracing::error!(database = name, %error, "a compaction panicked"),
    }
}

/// `POST /{db}/_purge`: leaves of documents are taken away, whatever they are. `purge_seq` is null, as in CouchDB; `GET /{db}` has it.
pub(crate) async fn purge(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    context.require_json()?;
    let wanted = body.object().await?.into_iter().map(|(id, revisions)| {
        let revisions = serde_json::from_value(revisions)
            .map_err(|_| HttpError::bad_request("Request body must map ids to lists of revisions."))?;
        Ok(PurgedLeaves { id, revisions })
    });
    let wanted = wanted.collect::<Result<Vec<PurgedLeaves>>>()?;
    let purged = context.with_database(move |database| Ok(database.purge_leaves(wanted)?)).await?;
    let purged: Map<String, Value> =
        purged.into_iter().map(|PurgedLeaves { id, revisions }| (id, json!(revisions))).collect();
    Ok(response::json_value(StatusCode::CREATED, &json!({"purge_seq": null, "purged": purged})))
}

/// `GET /{db}/_purged_infos_limit`: how many purged documents are remembered.
pub(crate) async fn purged_infos_limit(context: &Context) -> Result<Response<Body>> {
    let limit = context.with_database(|database| Ok(database.purged_limit()?)).await?;
    Ok(response::json_value(StatusCode::OK, &limit))
}

/// `PUT /{db}/_purged_infos_limit` with a number.
pub(crate) async fn set_purged_infos_limit(
    context: &Context,
    body: &mut RequestBody,
) -> Result<Response<Body>> {
    let limit = body.json::<Value>().await?;
    // No number is as a number that is too small.
    let limit = limit.as_u64().unwrap_or(0);
    context.with_database(move |database| Ok(database.set_purged_limit(limit)?)).await?;
    Ok(response::ok(StatusCode::OK))
}

/// `GET /{db}/_purged_infos`: the documents that were purged last, the last one first.
pub(crate) async fn purged_infos(context: &Context) -> Result<Response<Body>> {
    let purged = context.with_database(|database| Ok(database.purged_documents()?)).await?;
    let infos = purged.iter().map(|document| {
        let revisions = document.revisions.iter().map(|revision| Value::from(revision.to_string()));
        json!({"id": document.id, "revs": revisions.collect::<Vec<Value>>()})
    });
    Ok(response::json_value(StatusCode::OK, &json!({"purged_infos": infos.collect::<Vec<Value>>()})))
}
