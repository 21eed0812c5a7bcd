//! Requests of an administrator or of the probe, which are no simulated user's.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use http::header::HeaderValue;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::check;
use super::connection::{Address, Connection};
use super::failure::{Failure, FailureKind};

/// A connection on which JSON is asked for and answered.
pub(crate) struct Client {
    connection: Connection,
}

impl Client {
    /// For that server, as that person. Nothing is sent yet.
    ///
    /// # Errors
    /// What is wrong with the target's address.
    pub(crate) fn new(
        target: &str,
        account: Option<(&str, &str)>,
        time_out: Duration,
    ) -> Result<Self, String> {
        let address = Arc::new(Address::parse(target)?);
        let authorization = account.and_then(|(name, password)| {
            let token = STANDARD.encode(format!("{name}:{password}"));
            let mut value = HeaderValue::from_str(&format!("Basic {token}")).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        Ok(Self { connection: Connection::new(address, authorization, time_out) })
    }

    /// Sends a request; the answer has one of these statuses.
    pub(crate) async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        statuses: &[u16],
    ) -> Result<Value, Failure> {
        let body = body.map(|body| Bytes::from(body.to_string()));
        let answer = self.connection.exchange(method, path, body).await?.expect(statuses)?;
        check::json(&answer)
    }

    /// GET of what must be there.
    pub(crate) async fn get(&mut self, path: &str) -> Result<Value, Failure> {
        self.ask(Method::GET, path, None, &[200]).await
    }

    /// GET of bytes that are no JSON.
    pub(crate) async fn bytes(&mut self, path: &str) -> Result<Bytes, Failure> {
        Ok(self.connection.exchange(Method::GET, path, None).await?.expect(&[200])?.body)
    }

    /// GET of what may be missing.
    pub(crate) async fn find(&mut self, path: &str) -> Result<Option<Value>, Failure> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(failure) if failure.kind == FailureKind::Missing => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

/// One part of a path, encoded: `mail/ada` becomes `mail%2Fada`.
pub(crate) fn path_part(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
