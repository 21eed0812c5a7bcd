//! The one way from a request to its handler: the route's need, its limits, then the handler.

use http::{Method, Response};

use crate::address::Address;
use crate::authority::Identity;
use crate::body::RequestBody;
use crate::budget::UNCOUNTED_BYTES;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::operation_timer::OperationTimer;
use crate::response::Body;
use crate::routes::{MethodRoute, Need};

/// The entry of the table for a request, if its sender may ask for it as far as that can be said without the database.
///
/// # Errors
/// 401 for who needs a name, or to be an administrator; 405 with `Allow`.
pub(crate) fn entry(address: &Address, method: &Method, identity: &Identity) -> Result<&'static MethodRoute> {
    let route = address.route;
    let entry = route.method(method);
    let is_open = entry.map_or_else(|| route.is_open(), |entry| entry.need == Need::Anonymous);
    if identity.is_anonymous() && !is_open {
        return Err(HttpError::unauthorized("Authentication required."));
    }
    let entry = entry.ok_or_else(|| HttpError::method_not_allowed(&route.allow()))?;
    let is_let_in = match entry.need {
        Need::Administrator => identity.is_administrator(),
        Need::Viewer => identity.is_administrator() || identity.is_viewer(),
        Need::Anonymous | Need::Person | Need::Database(_) => true,
    };
    if !is_let_in {
        return Err(HttpError::unauthorized("You are not a server admin."));
    }
    Ok(entry)
}

/// Answers. `context.method` is GET for HEAD too.
pub(crate) async fn dispatch(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let _timer = OperationTimer::start(context);
    body.admit(context).await?;
    let answered = (context.entry.handler)(context, body).await?;
    // Handlers open the database with the level that the table declares, in the hand-off that does their work. One that
    // answered without is a defect, and its answer is nobody's.
    if matches!(context.entry.need, Need::Database(_)) && !context.is_authorised() {
        tracing::error!(route = context.address.route.path, "a handler did not ask who may have its answer");
        return Err(HttpError::internal("The server could not determine whether you may have this."));
    }
    count(context, answered)
}

/// Counts an answer that is held whole, until its client has taken it. What was changed is reported in any case.
fn count(context: &Context, answered: Response<Body>) -> Result<Response<Body>> {
    let body = answered.body();
    let length = body.length().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
    if body.is_counted() || length <= UNCOUNTED_BYTES {
        return Ok(answered);
    }
    let mut share = context.state.budget.for_answer(context.identity.shared_name());
    if context.entry.writes {
        share.cover_made(length);
    } else {
        share.cover(length)?;
    }
    Ok(answered.map(|body| body.with_share(share)))
}
