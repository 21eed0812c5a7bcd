//! A provider (OpenID Connect): people sign in there, and its access tokens let programs in. Its document and its keys are fetched,
//! kept, and fetched again when it has others.
//!
//! Tokens come from strangers, so a token that names an unknown key leads to at most one fetch a minute, one at a time, of bounded
//! length and time. Who waits for it holds no thread.

use std::io::Read;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode, Uri};
use hyper::body::Bytes;
use parking_lot::Mutex;
use rustls::ClientConfig;
use scrinium_assertion::never;
use scrinium_clock::Clock;
use scrinium_credentials::oidc::{OidcClient, OidcError, Provider, SignIn, TokenRequest, id_token_of};
use scrinium_credentials::token::{
    FactorRule, KeyCache, NameClaim, TokenError, TokenRules, TokenUse, VerifiedToken, claimed_issuer, verify,
};
use scrinium_credentials::{Protocol, SecretBytes};
use scrinium_directory::{Approach, LoginError, TokenVerification, TokenVerifier};
use scrinium_http::{LoginRefusal, ProviderReturn, ProviderSignIn};
use tokio::sync::Semaphore;

use super::{People, begin_again};
use crate::cli::Failure;
use crate::client::{BodyPiece, ConsoleClient};
use crate::config::Settings;

/// Discovery and keys together must come within this time.
const FETCH_WITHIN: Duration = Duration::from_secs(10);

/// Who did not get an answer may try again after this time.
const PAUSE: Duration = Duration::from_mins(1);

const FORM: &str = "application/x-www-form-urlencoded";

/// Where the provider sends browsers back to.
const CALLBACK: &str = "/_session/provider/callback";

/// No answer is longer.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Sign-ins that ask the provider for their tokens at once: each was begun by a stranger.
const EXCHANGES_AT_ONCE: usize = 32;

/// A secret is not longer.
const LONGEST_SECRET_BYTES: u64 = 4 * 1024;

/// The provider that is configured.
pub(super) struct OidcProvider {
    rules: TokenRules,
    discovery_url: String,
    /// This server, as the provider knows it, where people sign in there.
    client: Option<OidcClient>,
    tls: Arc<ClientConfig>,
    keys: Mutex<KeyCache>,
    /// As its document last described it.
    described: Mutex<Option<Arc<Provider>>>,
    /// Held by the one who fetches keys.
    fetching: tokio::sync::Mutex<()>,
    exchanging: Semaphore,
    clock: Clock,
}

/// Why nobody comes in by the provider.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProviderError {
    /// It does not answer as it should.
    #[error("the provider cannot be asked: {0}")]
    Away(String),
    /// The sign-in does not go on.
    #[error(transparent)]
    SignIn(#[from] OidcError),
    /// The token that it gave is not believed.
    #[error(transparent)]
    Token(#[from] TokenError),
}

impl OidcProvider {
    pub(super) fn configured(settings: &Settings, clock: &Clock) -> Result<Option<Self>, Failure> {
        let set = &settings.oidc;
        if set.issuer.is_empty() {
            return Ok(None);
        }
        if set.audiences.is_empty() && set.client_id.is_empty() {
            // Else a token that somebody gave to any other service would open their mail here.
            let words = "oidc.issuer is set, and neither oidc.client_id nor oidc.audiences is: say what the provider calls this \
                         server";
            return Err(Failure::Use(words.to_owned()));
        }
        Ok(Some(Self {
            discovery_url: Provider::discovery_url(&set.issuer),
            rules: rules(settings),
            client: client(settings)?,
            tls: crate::tls::client(&[]).map_err(Failure::work)?,
            keys: Mutex::default(),
            described: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
            exchanging: Semaphore::new(EXCHANGES_AT_ONCE),
            clock: clock.clone(),
        }))
    }

    /// What it calls itself.
    pub(super) fn issuer(&self) -> &str {
        &self.rules.issuer
    }

    /// Whether programs come in by its access tokens.
    pub(super) fn takes_tokens(&self) -> bool {
        matches!(&self.rules.usage, TokenUse::Access { audiences } if !audiences.is_empty())
    }

    /// The provider as it describes itself.
    async fn described(&self) -> Result<Arc<Provider>, ProviderError> {
        let known = || self.described.lock().clone();
        if let Some(known) = known() {
            return Ok(known);
        }
        let away =
            || ProviderError::Away("it did not describe itself; it is asked again in a minute".to_owned());
        let turn = tokio::time::timeout(FETCH_WITHIN, self.fetching.lock()).await;
        let _turn = turn.map_err(|_| away())?;
        // Somebody may have fetched it meanwhile.
        if let Some(known) = known() {
            return Ok(known);
        }
        if self.keys.lock().should_fetch(true, self.clock.now_s()) {
            self.fetch().await;
        }
        known().ok_or_else(away)
    }

    fn client(&self) -> Result<&OidcClient, ProviderError> {
        self.client.as_ref().ok_or_else(|| ProviderError::Away("oidc.client_id is not set".to_owned()))
    }

    /// Where a browser is sent, and what is kept until it comes back.
    pub(super) async fn begin(&self, next: &str) -> Result<(String, SignIn), ProviderError> {
        let (client, provider) = (self.client()?, self.described().await?);
        let sign_in = SignIn::begin(next, self.clock.now_s()).map_err(OidcError::from)?;
        Ok((sign_in.url(&provider, client), sign_in))
    }

    /// Who has signed in, by the query with which the browser comes back.
    pub(super) async fn end(&self, sign_in: &SignIn, query: &str) -> Result<VerifiedToken, ProviderError> {
        let (client, provider) = (self.client()?, self.described().await?);
        let callback = sign_in.callback(query, &provider, self.clock.now_s())?;
        let request = sign_in.token_request(&callback, &provider, client);
        let _place =
            self.exchanging.try_acquire().map_err(|_| ProviderError::Away("too many ask it".to_owned()))?;
        let answered = tokio::time::timeout(FETCH_WITHIN, self.post(request)).await;
        let late = |_| ProviderError::Away(format!("no answer for {} s", FETCH_WITHIN.as_secs()));
        let token = id_token_of(&answered.map_err(late)?.map_err(ProviderError::Away)?)?;
        let rules = TokenRules { usage: sign_in.token_use(client), ..self.rules.clone() };
        Ok(self.verified(&token, &rules).await?)
    }

    async fn post(&self, request: TokenRequest) -> Result<Bytes, String> {
        let TokenRequest { url, authorization, body } = request;
        let (client, path) = self.client_of(&url)?;
        let body = vec![BodyPiece::Bytes(body.into())];
        let asked =
            client.with_authorization(authorization).send_pieces(Method::POST, &path, FORM, body).await;
        let (status, answer) = asked.map_err(|error| error.to_string())?;
        // A refusal is JSON too (RFC 6749, section 5.2).
        match status {
            StatusCode::OK | StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => Ok(answer),
            _ => Err(format!("its token endpoint answers {status}")),
        }
    }

    /// Whether a token says that it is of this provider, which is not verified yet.
    pub(super) fn is_of(&self, token: &str) -> bool {
        claimed_issuer(token).as_deref() == Some(self.rules.issuer.as_str())
    }

    fn by_known_keys(&self, token: &str, rules: &TokenRules) -> Result<VerifiedToken, TokenError> {
        verify(token, self.keys.lock().keys(), rules, self.clock.now_s())
    }

    async fn verified(&self, token: &str, rules: &TokenRules) -> Result<VerifiedToken, TokenError> {
        let is_unknown =
            |verified: &Result<VerifiedToken, TokenError>| matches!(verified, Err(TokenError::UnknownKey));
        let verified = self.by_known_keys(token, rules);
        if !is_unknown(&verified) {
            if !self.keys.lock().should_fetch(false, self.clock.now_s()) {
                return verified;
            }
            self.fetch().await;
            return self.by_known_keys(token, rules);
        }
        let turn = tokio::time::timeout(FETCH_WITHIN, self.fetching.lock()).await;
        let Ok(_turn) = turn else { return verified };
        // Somebody may have fetched them meanwhile.
        let verified = self.by_known_keys(token, rules);
        if !is_unknown(&verified) || !self.keys.lock().should_fetch(true, self.clock.now_s()) {
            return verified;
        }
        self.fetch().await;
        self.by_known_keys(token, rules)
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
        let has_secret = self.client.as_ref().is_some_and(|client| client.secret.is_some());
        let provider = Provider::parse(&self.rules.issuer, has_secret, &document);
        let provider = Arc::new(provider.map_err(|error| error.to_string())?);
        *self.described.lock() = Some(Arc::clone(&provider));
        self.get(&provider.jwks_uri).await
    }

    /// A client of the server of an address, and the address without that.
    fn client_of(&self, url: &str) -> Result<(ConsoleClient, String), String> {
        let uri: Uri = url.parse().map_err(|_| format!("{url:?} is no address"))?;
        let client = ConsoleClient::without_credentials(url, || Ok(Arc::clone(&self.tls)));
        let client = client.map_err(|error| error.to_string())?.with_answers_of(ANSWER_BYTES_MAX);
        Ok((client, uri.path_and_query().map_or("/", |path| path.as_str()).to_owned()))
    }

    /// Asks for one address, and follows no redirection.
    async fn get(&self, url: &str) -> Result<Bytes, String> {
        let (client, path) = self.client_of(url)?;
        let (status, body) =
            client.request(Method::GET, &path, None).await.map_err(|error| error.to_string())?;
        if status == StatusCode::OK { Ok(body) } else { Err(format!("{url} answers {status}")) }
    }
}

impl TokenVerifier for OidcProvider {
    fn verify<'a>(&'a self, token: &'a str) -> TokenVerification<'a> {
        Box::pin(self.verified(token, &self.rules))
    }

    fn discovery_url(&self) -> Option<&str> {
        Some(&self.discovery_url)
    }
}

/// What tokens of the provider must say.
fn rules(settings: &Settings) -> TokenRules {
    let set = &settings.oidc;
    TokenRules {
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
    }
}

/// This server as a client of the provider, where people sign in there.
fn client(settings: &Settings) -> Result<Option<OidcClient>, Failure> {
    let set = &settings.oidc;
    if set.client_id.is_empty() {
        return Ok(None);
    }
    let site = settings.sign_in.url.trim_end_matches('/');
    if site.is_empty() {
        let words = "oidc.client_id is set, and sign_in.url is not: say to which address the provider sends people back";
        return Err(Failure::Use(words.to_owned()));
    }
    let secret = if set.client_secret_file.is_empty() {
        None
    } else {
        let path = settings.server.data_dir.join(&set.client_secret_file);
        let cannot =
            |why: String| Failure::Work(format!("cannot read the secret in {}: {why}", path.display()));
        let mut text = String::new();
        let file = std::fs::File::open(&path).map_err(|error| cannot(error.to_string()))?;
        file.take(LONGEST_SECRET_BYTES)
            .read_to_string(&mut text)
            .map_err(|error| cannot(error.to_string()))?;
        let line = text.lines().next().unwrap_or_default().trim();
        if line.is_empty() {
            return Err(cannot("its first line is empty".to_owned()));
        }
        Some(SecretBytes::new(line))
    };
    Ok(Some(OidcClient {
        client_id: set.client_id.clone(),
        secret,
        redirect_uri: format!("{site}{CALLBACK}"),
        scopes: set.scopes.clone(),
    }))
}

impl People {
    /// Sends a browser to the provider.
    pub(super) async fn sent_to_provider(&self, next: &str) -> Result<ProviderSignIn, LoginRefusal> {
        let provider = self.provider()?;
        let begun = provider.begin(next).await;
        let (url, sign_in) = begun.map_err(|error| refused(&error))?;
        let sealed = self.gate().seal_sign_in(&sign_in);
        Ok(ProviderSignIn { url, sealed: sealed.map_err(|error| LoginRefusal::Denied(error.to_string()))? })
    }

    /// Lets somebody in who comes back from the provider.
    pub(super) async fn back_from_provider(
        &self,
        sealed: &str,
        query: &str,
        from: IpAddr,
    ) -> Result<ProviderReturn, LoginRefusal> {
        let provider = self.provider()?;
        let sign_in = self.gate().open_sign_in(sealed).map_err(|_| begin_again())?;
        let ended = provider.end(&sign_in, query).await;
        let verified = ended.map_err(|error| {
            self.tell_refusal(&error, from);
            refused(&error)
        })?;
        let approach = Approach::protected(Protocol::Browser, from);
        let login = self.logins.with_token(&verified, None, &approach).await;
        let login = login.map_err(|error| match error {
            // They have shown who they are there; nobody here is that.
            LoginError::Refused => LoginRefusal::Denied(NOBODY_HERE.to_owned()),
            other => self.refusal(other),
        })?;
        let identity = self.identity(&login, Protocol::Browser, None);
        Ok(ProviderReturn { identity, next: sign_in.next().to_owned() })
    }

    fn provider(&self) -> Result<&OidcProvider, LoginRefusal> {
        let provider = self.provider.as_deref().filter(|provider| provider.client.is_some());
        provider.ok_or_else(|| LoginRefusal::Denied(NOT_OFFERED.to_owned()))
    }
}

const NOT_OFFERED: &str =
    "Signing in with a provider is not offered here; an administrator can offer it (oidc.client_id).";
const NOBODY_HERE: &str = "Your account at the provider is nobody's here. Ask the administrator to add you, or to link the account.";

fn refused(error: &ProviderError) -> LoginRefusal {
    match error {
        ProviderError::Away(_) => LoginRefusal::Away { retry_after: PAUSE },
        ProviderError::SignIn(OidcError::State) => begin_again(),
        ProviderError::SignIn(OidcError::Refused(_)) => LoginRefusal::Denied(format!("{error}.")),
        ProviderError::SignIn(_) | ProviderError::Token(_) => {
            LoginRefusal::Denied("The provider's answer is not accepted here; the log says why.".to_owned())
        }
    }
}
