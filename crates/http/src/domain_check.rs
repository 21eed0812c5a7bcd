//! What a mail domain should have in DNS, and what is there.

use std::pin::Pin;
use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::Value;

use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};

/// Why a domain was not looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DomainCheckRefusal {
    /// It is no domain, or the configuration lacks something for it; in words.
    #[error("{0}")]
    Invalid(String),
    /// It cannot be looked at now; in words.
    #[error("{0}")]
    Failed(String),
}

/// What was found of a domain, once name servers and mail hosts have answered.
pub type DomainFindings =
    Pin<Box<dyn Future<Output = std::result::Result<Value, DomainCheckRefusal>> + Send + 'static>>;

/// Looks at domains, few at a time, and waits no longer than half a minute.
pub trait DomainCheck: Send + Sync + 'static {
    /// What `scrinium domain check --json` says of a domain.
    fn check(&self, domain: &str) -> DomainFindings;
}

/// `GET /_domain_check/{domain}`.
pub(crate) async fn check(context: &Context) -> Result<Response<Body>> {
    let none = || HttpError::not_implemented("This server looks at no domains.");
    let checks: Arc<dyn DomainCheck> = context.state.domain_check().cloned().ok_or_else(none)?;
    let found = checks.check(context.address.value("domain")?).await;
    let found = found.map_err(|refusal| match refusal {
        DomainCheckRefusal::Invalid(reason) => HttpError::bad_request(reason),
        DomainCheckRefusal::Failed(reason) => HttpError::unavailable(reason),
    })?;
    Ok(response::json_value(StatusCode::OK, &found))
}
