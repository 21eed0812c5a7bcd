//! Passwords that are set: hashed where those of log-ins are, so that no thread which others need is busy with them.

use scrinium_accounting::Resource;
use scrinium_database::{ClearSecret, Secret};

use crate::context::Context;
use crate::error::{HttpError, Result};

/// Whether documents of the request's database may bring passwords.
pub(crate) fn may_come(context: &Context) -> bool {
    context.state.authenticator.keeps_people(context.database_name())
}

/// What an edit is to keep of a password that the sender may set.
pub(crate) async fn hash(context: &Context, password: &ClearSecret) -> Result<Secret> {
    let _claim = context.account.claim(Resource::Logins, 1)?;
    let ClearSecret { id, text } = password;
    Ok(Secret::Set(context.state.authenticator.hash(id, text, context.client.address).await?))
}

/// Refuses several passwords in one request of somebody who can only mean their own.
pub(crate) fn check_count(context: &Context, passwords: &[Option<ClearSecret>]) -> Result<()> {
    if passwords.iter().flatten().count() > 1 && !context.identity.is_administrator() {
        return Err(HttpError::bad_request("A request can set one password, your own."));
    }
    Ok(())
}
