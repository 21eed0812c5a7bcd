//! Access tokens of a provider (OpenID Connect): its keys are fetched, kept, and fetched again when it has others.
//!
//! Tokens come from strangers, so a token that names an unknown key leads to at most one fetch a minute, one at a time, of bounded
//! length and time. Who waits for it holds no thread.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode, Uri};
use hyper::body::Bytes;
use parking_lot::Mutex;
use rustls::ClientConfig;
use scrinium_assertion::never;
use scrinium_clock::Clock;
use scrinium_credentials::oidc::Provider;
use scrinium_credentials::token::{
    FactorRule, KeyCache, NameClaim, TokenError, TokenRules, TokenUse, VerifiedToken, claimed_issuer, verify,
};
use scrinium_directory::{TokenVerification, TokenVerifier};

use crate::cli::Failure;
use crate::client::ConsoleClient;
use crate::config::Settings;

/// Discovery and keys together must come within this time.
const FETCH_WITHIN: Duration = Duration::from_secs(10);

/// Neither answer is longer.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// The provider that is configured.
pub(super) struct OidcProvider {
    rules: TokenRules,
    discovery_url: String,
    tls: Arc<ClientConfig>,
    keys: Mutex<KeyCache>,
    /// Held by the one who fetches keys.
    fetching: tokio::sync::Mutex<()>,
    clock: Clock,
}

impl OidcProvider {
    pub(super) fn configured(settings: &Settings, clock: &Clock) -> Result<Option<Self>, Failure> {
        let set = &settings.oidc;
        if set.issuer.is_empty() {
            return Ok(None);
        }
        if set.audiences.is_empty() {
            // Else a token that somebody gave to any other service would open their mail here.
            let words =
                "oidc.issuer is set, and oidc.audiences is not: say what the provider calls this server";
            return Err(Failure::Use(words.to_owned()));
        }
        let rules = TokenRules {
            issuer: set.issuer.clone(),
            usage: TokenUse::Access { audiences: set.audiences.clone() },
            name: match set.name_claim.as_str() {
                "email" => NameClaim::VerifiedEmail,
                "preferred_username" => NameClaim::PreferredUsername,
                "none" => NameClaim::Nothing,
                other => {
                    never!("oidc.name_claim is one of its options", "{other}");
                    NameClaim::Nothing
                }
            },
            factor: match set.second_factor.as_str() {
                "always" => FactorRule::Always,
                "claimed" => FactorRule::Claimed(Vec::new()),
                _ => FactorRule::Never,
            },
        };
        Ok(Some(Self {
            discovery_url: Provider::discovery_url(&set.issuer),
            rules,
            tls: crate::tls::client(&[]).map_err(Failure::work)?,
            keys: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
            clock: clock.clone(),
        }))
    }

    /// Whether a token says that it is of this provider, which is not verified yet.
    pub(super) fn is_of(&self, token: &str) -> bool {
        claimed_issuer(token).as_deref() == Some(self.rules.issuer.as_str())
    }

    fn by_known_keys(&self, token: &str) -> Result<VerifiedToken, TokenError> {
        verify(token, self.keys.lock().keys(), &self.rules, self.clock.now_s())
    }

    async fn verified(&self, token: &str) -> Result<VerifiedToken, TokenError> {
        let is_unknown =
            |verified: &Result<VerifiedToken, TokenError>| matches!(verified, Err(TokenError::UnknownKey));
        let verified = self.by_known_keys(token);
        if !is_unknown(&verified) {
            if !self.keys.lock().should_fetch(false, self.clock.now_s()) {
                return verified;
            }
            self.fetch().await;
            return self.by_known_keys(token);
        }
        let turn = tokio::time::timeout(FETCH_WITHIN, self.fetching.lock()).await;
        let Ok(_turn) = turn else { return verified };
        // Somebody may have fetched them meanwhile.
        let verified = self.by_known_keys(token);
        if !is_unknown(&verified) || !self.keys.lock().should_fetch(true, self.clock.now_s()) {
            return verified;
        }
        self.fetch().await;
        self.by_known_keys(token)
    }

    /// Fetches the provider's keys; where that fails, those from before stay.
    async fn fetch(&self) {
        let fetched = tokio::time::timeout(FETCH_WITHIN, self.fetched()).await;
        let fetched = fetched.unwrap_or_else(|_| Err(format!("no answer for {} s", FETCH_WITHIN.as_secs())));
        let taken = fetched.and_then(|keys| {
            let taken = self.keys.lock().take(&keys, self.clock.now_s());
            taken.map_err(|error| error.to_string())
        });
        if let Err(error) = taken {
            tracing::warn!(issuer = self.rules.issuer, error, "the keys of the provider were not fetched");
        }
    }

    async fn fetched(&self) -> Result<Bytes, String> {
        let document = self.get(&self.discovery_url).await?;
        let provider = Provider::parse(&self.rules.issuer, false, &document);
        self.get(&provider.map_err(|error| error.to_string())?.jwks_uri).await
    }

    /// Asks for one address, and follows no redirection.
    async fn get(&self, url: &str) -> Result<Bytes, String> {
        let uri: Uri = url.parse().map_err(|_| format!("{url:?} is no address"))?;
        let client = ConsoleClient::without_credentials(url, || Ok(Arc::clone(&self.tls)));
        let client = client.map_err(|error| error.to_string())?.with_answers_of(ANSWER_BYTES_MAX);
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let (status, body) =
            client.request(Method::GET, path, None).await.map_err(|error| error.to_string())?;
        if status == StatusCode::OK { Ok(body) } else { Err(format!("{url} answers {status}")) }
    }
}

impl TokenVerifier for OidcProvider {
    fn verify<'a>(&'a self, token: &'a str) -> TokenVerification<'a> {
        Box::pin(self.verified(token))
    }

    fn discovery_url(&self) -> Option<&str> {
        Some(&self.discovery_url)
    }
}
