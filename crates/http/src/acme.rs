//! Proofs for an authority of certificates that asks by HTTP (ACME's http-01, RFC 8555 §8.3).

use std::collections::HashMap;
use std::sync::Arc;

use http::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use parking_lot::RwLock;

use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::Body;

/// Proofs that are shown at once: one for each name of a certificate.
const PROOFS_MAX: usize = 200;

/// What is shown while a certificate is ordered. Clones share it.
#[derive(Clone, Default)]
pub struct AcmeAnswers(Arc<RwLock<HashMap<String, String>>>);

impl AcmeAnswers {
    /// Shows a proof to who asks for its token.
    pub fn show(&self, token: &str, proof: &str) {
        let mut proofs = self.0.write();
        if proofs.len() < PROOFS_MAX {
            proofs.insert(token.to_owned(), proof.to_owned());
        }
    }

    /// Shows nothing any more.
    pub fn forget(&self) {
        self.0.write().clear();
    }

    fn proof(&self, token: &str) -> Option<String> {
        self.0.read().get(token).cloned()
    }
}

/// `GET /.well-known/acme-challenge/TOKEN`.
pub(crate) fn challenge(context: &Context) -> Result<Response<Body>> {
    let proof = context.address.get("token").and_then(|token| context.state.acme_answers().proof(token));
    let proof = proof.ok_or_else(|| HttpError::not_found("missing"))?;
    let mut response = Response::new(Body::whole(proof.into_bytes()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
