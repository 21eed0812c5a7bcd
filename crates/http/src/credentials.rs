//! What people do with their own credentials: app passwords, an authenticator, passkeys. Administrators may do it for others, with
//! `?person=`.

use http::header::{CACHE_CONTROL, HeaderValue};
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use crate::audit::AuditAction;
use crate::authority::{CredentialRequest, CredentialsOf};
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};
use crate::session;

/// `GET /_credentials`: what the person has; nothing of it is a secret.
pub(crate) async fn list(context: &Context) -> Result<Response<Body>> {
    answer(context, None, CredentialRequest::List).await
}

/// `POST /_credentials/app_passwords`: makes one, and shows it this once.
pub(crate) async fn add_app_password(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let members = members(context, body).await?;
    let request = CredentialRequest::AddAppPassword {
        name: text(&members, "name")?,
        protocols: texts(&members, "protocols")?,
        expires_ms: number(&members, "expires_ms")?,
    };
    answer(context, None, request).await
}

/// `PUT /_credentials/app_passwords/{id}`: gives it another name.
pub(crate) async fn rename_app_password(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let name = text(&members(context, body).await?, "name")?;
    answer(context, None, CredentialRequest::RenameAppPassword { id: id(context)?, name }).await
}

/// `DELETE /_credentials/app_passwords/{id}`: it opens nothing any more.
pub(crate) async fn revoke_app_password(context: &Context) -> Result<Response<Body>> {
    answer(context, None, CredentialRequest::RevokeAppPassword { id: id(context)? }).await
}

/// `POST /_credentials/totp`: the secret for an authenticator, which counts once a code of it was shown.
pub(crate) async fn begin_totp(context: &Context) -> Result<Response<Body>> {
    context.require_json()?;
    answer(context, None, CredentialRequest::BeginTotp).await
}

/// `PUT /_credentials/totp`: takes the authenticator, and shows recovery codes this once.
pub(crate) async fn confirm_totp(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let request = confirmation(&members(context, body).await?)?;
    answer(context, None, request).await
}

/// `POST /_session/totp`: the same for somebody who must have a second factor and has none yet. They show `step`, which is all that
/// their password gave them.
pub(crate) async fn begin_first_totp(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let step = text(&members(context, body).await?, "step")?;
    answer(context, Some(&step), CredentialRequest::BeginTotp).await
}

/// `PUT /_session/totp`: takes it, and begins a session.
pub(crate) async fn confirm_first_totp(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let members = members(context, body).await?;
    let step = text(&members, "step")?;
    answer(context, Some(&step), confirmation(&members)?).await
}

fn confirmation(members: &Map<String, Value>) -> Result<CredentialRequest> {
    let (begun, code) = (text(members, "begun")?, text(members, "code")?);
    Ok(CredentialRequest::ConfirmTotp { begun, code })
}

/// `DELETE /_credentials/totp`.
pub(crate) async fn remove_totp(context: &Context) -> Result<Response<Body>> {
    answer(context, None, CredentialRequest::RemoveTotp).await
}

/// `POST /_credentials/recovery_codes`: fresh ones in place of those from before, shown this once.
pub(crate) async fn renew_recovery_codes(context: &Context) -> Result<Response<Body>> {
    context.require_json()?;
    answer(context, None, CredentialRequest::RenewRecoveryCodes).await
}

/// `POST /_credentials/passkey_options`: what the browser asks an authenticator for.
pub(crate) async fn begin_passkey(context: &Context) -> Result<Response<Body>> {
    context.require_json()?;
    answer(context, None, CredentialRequest::BeginPasskey).await
}

/// `POST /_credentials/passkeys`: takes the passkey that the browser has made.
pub(crate) async fn add_passkey(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let members = members(context, body).await?;
    let passkey = members.get("passkey").filter(|passkey| passkey.is_object());
    let passkey = passkey.ok_or_else(|| HttpError::bad_request("`passkey` must be an object."))?;
    let request = CredentialRequest::AddPasskey {
        challenge: text(&members, "challenge")?,
        name: text(&members, "name")?,
        response: passkey.to_string(),
    };
    answer(context, None, request).await
}

/// `DELETE /_credentials/passkeys/{id}`.
pub(crate) async fn remove_passkey(context: &Context) -> Result<Response<Body>> {
    answer(context, None, CredentialRequest::RemovePasskey { id: id(context)? }).await
}

/// `PUT /_credentials/links/{id}`: an account at the provider is the person's. Only an administrator says so.
pub(crate) async fn link_account(context: &Context) -> Result<Response<Body>> {
    context.require_json()?;
    answer(context, None, CredentialRequest::LinkAccount { subject: id(context)? }).await
}

/// `DELETE /_credentials/links/{id}`.
pub(crate) async fn unlink_account(context: &Context) -> Result<Response<Body>> {
    answer(context, None, CredentialRequest::UnlinkAccount { subject: id(context)? }).await
}

/// `POST /_session/passkey_options`: what the browser asks an authenticator for, to sign in with it alone or after a first step.
pub(crate) async fn passkey_options(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let step = optional(&members(context, body).await?, "step")?;
    let shown = context.state.authenticator.passkey_request(step.as_deref())?;
    Ok(response::json_value(StatusCode::OK, &shown))
}

/// `GET /_credentials/sessions`: where the person is signed in.
pub(crate) async fn list_sessions(context: &Context) -> Result<Response<Body>> {
    answer(context, None, CredentialRequest::ListSessions).await
}

/// `DELETE /_credentials/sessions/{id}`: signs out there.
pub(crate) async fn end_session(context: &Context) -> Result<Response<Body>> {
    answer(context, None, CredentialRequest::EndSession { id: id(context)? }).await
}

/// `DELETE /_credentials/sessions`: signs out everywhere else.
pub(crate) async fn end_other_sessions(context: &Context) -> Result<Response<Body>> {
    answer(context, None, CredentialRequest::EndOtherSessions).await
}

async fn answer(context: &Context, step: Option<&str>, request: CredentialRequest) -> Result<Response<Body>> {
    let of = match (step, context.query.get("person")) {
        (Some(step), _) => CredentialsOf::FirstStep(step),
        (None, _) if context.identity.is_anonymous() => {
            return Err(HttpError::unauthorized("Authentication required."));
        }
        (None, None) => CredentialsOf::Own(&context.identity),
        (None, Some(_)) if !context.identity.is_administrator() => {
            return Err(HttpError::forbidden("Only an administrator has to do with others' credentials."));
        }
        (None, Some(person)) => CredentialsOf::Other { by: &context.identity, name: person },
    };
    let did = request.word();
    let done = context.state.authenticator.credentials(of, request, context.client.address).await?;
    if let Some(did) = did {
        context.state.standings_changed();
        let details = json!({"change": did});
        context.audit(AuditAction::CredentialsChanged, &done.person_id, Some(&details));
    }
    let mut response = response::json_value(StatusCode::OK, &done.shown);
    // What is shown once is kept by no browser.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(identity) = &done.session {
        let session = context.state.authenticator.open_session(identity);
        session::insert_cookie(response.headers_mut(), context, &session);
    }
    Ok(response)
}

fn id(context: &Context) -> Result<String> {
    context.address.value("id").map(str::to_owned)
}

/// The members of a body; one that is empty has none. It must be declared as JSON, which a form of another site cannot do.
async fn members(context: &Context, body: &mut RequestBody) -> Result<Map<String, Value>> {
    context.require_json()?;
    body.object_or_nothing().await
}

fn optional(members: &Map<String, Value>, name: &str) -> Result<Option<String>> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(HttpError::bad_request(format!("`{name}` must be a text."))),
    }
}

fn text(members: &Map<String, Value>, name: &str) -> Result<String> {
    optional(members, name)?.ok_or_else(|| HttpError::bad_request(format!("`{name}` must be a text.")))
}

fn texts(members: &Map<String, Value>, name: &str) -> Result<Vec<String>> {
    let wrong = || HttpError::bad_request(format!("`{name}` must be a list of texts."));
    let list = members.get(name).and_then(Value::as_array).ok_or_else(wrong)?;
    list.iter().map(|text| text.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}

fn number(members: &Map<String, Value>, name: &str) -> Result<Option<u64>> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let wrong = || HttpError::bad_request(format!("`{name}` must be a whole number."));
            value.as_u64().map(Some).ok_or_else(wrong)
        }
    }
}
