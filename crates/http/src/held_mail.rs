//! Mail that does not go at once: its sender takes it back.

use std::sync::Arc;

use http::{Response, StatusCode};
use scrinium_database::{DatabaseError, Identity};

use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};

/// Keeps mail until its time comes. Its function blocks for as long as the disk does.
pub trait HeldMail: Send + Sync + 'static {
    /// Takes a memo back that this person has sent; false where there is none that waits.
    ///
    /// # Errors
    /// What the database reports.
    fn take_back(&self, by: &Identity, id: &str) -> std::result::Result<bool, DatabaseError>;
}

/// `DELETE /_held_mail/{id}`: a memo of one's own, whose time has not come, does not go.
pub(crate) async fn take_back(context: &Context) -> Result<Response<Body>> {
    let held: Arc<dyn HeldMail> = context
        .state
        .held_mail()
        .cloned()
        .ok_or_else(|| HttpError::not_implemented("This server has no mail."))?;
    let (by, id) = (context.identity.clone(), context.address.value("id")?.to_owned());
    if !context.on_worker(move || held.take_back(&by, &id)).await?? {
        return Err(HttpError::not_found("No memo of yours waits under this id: it is on its way."));
    }
    Ok(response::ok(StatusCode::OK))
}
