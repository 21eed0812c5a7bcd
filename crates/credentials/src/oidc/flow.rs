//! The flow itself.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use form_urlencoded::{Serializer, byte_serialize, parse};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::oidc::{ClientAuthentication, OidcClient, OidcError, Provider};
use crate::secret::{SecretBytes, random, same};
use crate::token::TokenUse;

/// How long somebody has to sign in at the provider.
const LONGEST_S: u64 = 15 * 60;
const LONGEST_QUERY: usize = 8 * 1024;
const LONGEST_ANSWER: usize = 256 * 1024;

/// A sign-in that has begun. It is sealed into a cookie ([`crate::Gate::seal_sign_in`]), or kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignIn {
    state: SecretBytes,
    nonce: SecretBytes,
    verifier: SecretBytes,
    begun_s: u64,
    next: String,
}

/// What the browser brought back, its state checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Callback {
    code: String,
}

/// It holds a code that is as good as a password for a minute.
impl std::fmt::Debug for Callback {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Callback(…)")
    }
}

/// The request that makes tokens of a code: a POST with a form.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenRequest {
    /// Where to.
    pub url: String,
    /// The header `Authorization`, where there is one.
    pub authorization: Option<String>,
    /// The body, of the type `application/x-www-form-urlencoded`.
    pub body: String,
}

/// It holds secrets.
impl std::fmt::Debug for TokenRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "TokenRequest({})", self.url)
    }
}

impl SignIn {
    /// Begins a sign-in. `next` is a path of this server; anything else becomes `/`, so that nobody is sent elsewhere.
    ///
    /// # Errors
    /// [`crate::RandomError`]
    pub fn begin(next: &str, now_s: u64) -> Result<Self, crate::RandomError> {
        let fresh = || random::<32>().map(SecretBytes::new);
        let next = if is_local_path(next) { next } else { "/" };
        Ok(Self {
            state: fresh()?,
            nonce: fresh()?,
            verifier: fresh()?,
            begun_s: now_s,
            next: next.to_owned(),
        })
    }

    /// Where in this server the person wanted to go.
    #[must_use]
    pub fn next(&self) -> &str {
        &self.next
    }

    /// Where the browser is sent (OpenID Connect Core 1.0, section 3.1.2.1; RFC 7636, section 4.3).
    #[must_use]
    pub fn url(&self, provider: &Provider, client: &OidcClient) -> String {
        let scopes = std::iter::once("openid").chain(client.scopes.iter().map(String::as_str));
        let challenge = digest(&SHA256, text_of(&self.verifier).as_bytes());
        let query = Serializer::new(String::new())
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.client_id)
            .append_pair("redirect_uri", &client.redirect_uri)
            .append_pair("scope", &scopes.collect::<Vec<_>>().join(" "))
            .append_pair("state", &text_of(&self.state))
            .append_pair("nonce", &text_of(&self.nonce))
            .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(challenge.as_ref()))
            .append_pair("code_challenge_method", "S256")
            .finish();
        // An endpoint may have a query of its own (RFC 6749, section 3.1).
        let separator = if provider.authorization_endpoint.contains('?') { '&' } else { '?' };
        format!("{}{separator}{query}", provider.authorization_endpoint)
    }

    /// Reads the query with which the browser comes back (RFC 6749, section 4.1.2; RFC 9207).
    ///
    /// # Errors
    /// [`OidcError`]
    pub fn callback(&self, query: &str, provider: &Provider, now_s: u64) -> Result<Callback, OidcError> {
        if query.len() > LONGEST_QUERY {
            return Err(OidcError::Malformed("the query is too long"));
        }
        // Each parameter once (RFC 6749, section 3.1).
        let one = |name: &str| {
            let mut values =
                parse(query.as_bytes()).filter(|(key, _)| key == name).map(|(_, value)| value.into_owned());
            let value = values.next();
            if values.next().is_some() {
                Err(OidcError::Malformed("a parameter comes twice"))
            } else {
                Ok(value)
            }
        };
        let shown = one("state")?.unwrap_or_default();
        if !same(shown.as_bytes(), text_of(&self.state).as_bytes())
            || now_s.saturating_sub(self.begun_s) > LONGEST_S
        {
            return Err(OidcError::State);
        }
        match one("iss")? {
            Some(issuer) if issuer != provider.issuer => {
                return Err(OidcError::Issuer(issuer.chars().take(200).collect()));
            }
            // A provider that always names itself and now does not is another one.
            None if provider.names_itself => return Err(OidcError::Malformed("the issuer is missing")),
            _ => {}
        }
        if let Some(error) = one("error")? {
            // RFC 6749, section 4.1.2.1: printable ASCII. What is shown is a word.
            let word =
                error.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_').take(60);
            return Err(OidcError::Refused(word.collect()));
        }
        let code = one("code")?
            .filter(|code| !code.is_empty())
            .ok_or(OidcError::Malformed("the code is missing"))?;
        Ok(Callback { code })
    }

    /// The request that makes tokens of the code (RFC 6749, section 4.1.3; RFC 7636, section 4.5).
    #[must_use]
    pub fn token_request(
        &self,
        callback: &Callback,
        provider: &Provider,
        client: &OidcClient,
    ) -> TokenRequest {
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", &callback.code)
            .append_pair("redirect_uri", &client.redirect_uri)
            .append_pair("code_verifier", &text_of(&self.verifier));
        let secret =
            client.secret.as_ref().map(|secret| String::from_utf8_lossy(secret.expose()).into_owned());
        let authorization = match (provider.authentication, secret) {
            (ClientAuthentication::Basic, Some(secret)) => {
                let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let pair = format!("{}:{}", encoded(&client.client_id), encoded(&secret));
                Some(format!("Basic {}", STANDARD.encode(pair)))
            }
            (ClientAuthentication::Form, Some(secret)) => {
                form.append_pair("client_id", &client.client_id).append_pair("client_secret", &secret);
                None
            }
            _ => {
                form.append_pair("client_id", &client.client_id);
                None
            }
        };
        TokenRequest { url: provider.token_endpoint.clone(), authorization, body: form.finish() }
    }

    /// As what the ID token is verified that answers this sign-in.
    #[must_use]
    pub fn token_use(&self, client: &OidcClient) -> TokenUse {
        TokenUse::Identity { client_id: client.client_id.clone(), nonce: text_of(&self.nonce) }
    }
}

/// Browsers read `//` and `/\` as the beginning of another host.
fn is_local_path(path: &str) -> bool {
    const LONGEST: usize = 1024;
    let second = path.as_bytes().get(1);
    path.len() <= LONGEST
        && path.starts_with('/')
        && !matches!(second, Some(b'/' | b'\\'))
        && path.bytes().all(|byte| byte.is_ascii_graphic())
}

fn text_of(bytes: &SecretBytes) -> String {
    URL_SAFE_NO_PAD.encode(bytes.expose())
}

#[derive(Deserialize)]
struct TokenAnswer {
    id_token: Option<String>,
    token_type: Option<String>,
    error: Option<String>,
}

/// The ID token of the provider's answer (OpenID Connect Core 1.0, section 3.1.3.3).
///
/// # Errors
/// [`OidcError`]
pub fn id_token_of(json: &[u8]) -> Result<String, OidcError> {
    if json.len() > LONGEST_ANSWER {
        return Err(OidcError::Malformed("the answer is too long"));
    }
    let answer: TokenAnswer = serde_json::from_slice(json)
        .map_err(|_| OidcError::Malformed("the answer is not JSON with tokens"))?;
    if let Some(error) = answer.error {
        let word = error.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_').take(60);
        return Err(OidcError::Refused(word.collect()));
    }
    if !answer.token_type.is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
        return Err(OidcError::Malformed("the tokens are not bearer tokens"));
    }
    answer.id_token.ok_or(OidcError::Malformed("there is no ID token"))
}
