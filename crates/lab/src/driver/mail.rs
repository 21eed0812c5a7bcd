//! What the protocols of mail share.

use std::future::Future;
use std::time::Duration;

use super::failure::{Failure, FailureKind};

/// How people of any protocol of mail are named and waited for.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct MailOptions {
    pub time_out: Duration,
    /// What stands behind the @ of everyone's address.
    pub domain: String,
    /// As what people log in: `{user}` and `{domain}` are put in.
    pub login_name: String,
}

/// With what a person logs in.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) login: String,
    pub(super) password: String,
}

/// Waits for an answer as long as is allowed.
pub(super) async fn in_time<T>(
    time_out: Duration,
    what: &str,
    answer: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(time_out, answer).await {
        Ok(answer) => answer.map_err(|failure| named(what, failure)),
        Err(_) => Err(Failure::new(
            FailureKind::TimeOut,
            format!("{what}: no answer in {} s", time_out.as_secs_f64()),
        )),
    }
}

/// The failure, with the name of what failed before its text.
fn named(what: &str, failure: Failure) -> Failure {
    if failure.detail.starts_with(what) {
        return failure;
    }
    Failure::new(failure.kind, format!("{what}: {}", failure.detail))
}
