//! Mail rules: people set their own, and administrators of the server those for all messages. People's Sieve scripts.

use std::sync::Arc;

use http::{Response, StatusCode};
use scrinium_database::{DatabaseError, Identity};
use serde_json::{Value, json};

use crate::audit::AuditAction;
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};

/// Whose rules they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailRulesOf {
    /// Those for all messages.
    Server,
    /// Those of the one who asks.
    Own,
    /// The Sieve scripts of the one who asks.
    Scripts,
}

/// Why rules or scripts were not set or shown.
#[derive(Debug, thiserror::Error)]
pub enum MailRulesRefusal {
    /// They are none, in words.
    #[error("{0}")]
    Invalid(String),
    /// The one who asks has none, or does not come as a person.
    #[error("{0}")]
    Forbidden(String),
    /// The session began too long ago for it.
    #[error("To say what becomes of mail, sign in again: your session began too long ago.")]
    Stale,
    /// They cannot be read or stored.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Keeps mail rules and scripts. Its functions block for as long as the disk does.
pub trait MailRules: Send + Sync + 'static {
    /// Rules as they were written; scripts as `{"active": NAME, "scripts": {NAME: TEXT}, "version": TEXT}`.
    ///
    /// # Errors
    /// [`MailRulesRefusal`]
    fn show(&self, by: &Identity, whose: &MailRulesOf) -> std::result::Result<Value, MailRulesRefusal>;

    /// Sets rules, or all scripts; they are durable when this returns. Scripts with a `version` other than that of those before are a
    /// conflict.
    ///
    /// # Errors
    /// [`MailRulesRefusal`]
    fn set(
        &self,
        by: &Identity,
        whose: &MailRulesOf,
        rules: &Value,
    ) -> std::result::Result<(), MailRulesRefusal>;
}

impl From<MailRulesRefusal> for HttpError {
    fn from(refusal: MailRulesRefusal) -> Self {
        match refusal {
            MailRulesRefusal::Invalid(reason) => Self::bad_request(reason),
            MailRulesRefusal::Forbidden(reason) => Self::forbidden(reason),
            MailRulesRefusal::Stale => Self::sign_in_again(refusal.to_string()),
            MailRulesRefusal::Database(error) => error.into(),
        }
    }
}

fn kept(context: &Context) -> Result<Arc<dyn MailRules>> {
    let none = || HttpError::not_implemented("This server has no mail.");
    context.state.mail_rules().cloned().ok_or_else(none)
}

/// `GET /_mail_rules`, `GET /_mail_rules/server` and `GET /_mail_scripts`.
pub(crate) async fn get(context: &Context, whose: MailRulesOf) -> Result<Response<Body>> {
    let (kept, by) = (kept(context)?, context.identity.clone());
    let shown = context.on_worker(move || kept.show(&by, &whose)).await??;
    Ok(response::json_value(StatusCode::OK, &shown))
}

/// `PUT /_mail_rules`, `PUT /_mail_rules/server` and `PUT /_mail_scripts`.
pub(crate) async fn put(
    context: &Context,
    body: &mut RequestBody,
    whose: MailRulesOf,
) -> Result<Response<Body>> {
    context.require_json()?;
    let (kept, by) = (kept(context)?, context.identity.clone());
    let rules: Value = body.json().await?;
    // Scripts are long, and their person's own.
    let details = match whose {
        MailRulesOf::Scripts => json!({"active": rules.get("active")}),
        MailRulesOf::Server | MailRulesOf::Own => rules.clone(),
    };
    let of = whose.clone();
    context.on_worker(move || kept.set(&by, &of, &rules)).await??;
    let target = match whose {
        MailRulesOf::Server => "server",
        MailRulesOf::Own | MailRulesOf::Scripts => context.identity.name().unwrap_or_default(),
    };
    context.audit(AuditAction::MailRulesChanged, target, Some(&details));
    Ok(response::ok(StatusCode::OK))
}
