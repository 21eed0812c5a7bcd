//! A provider, as its discovery document describes it (OpenID Connect Discovery 1.0; RFC 8414).

use serde::Deserialize;

use crate::oidc::OidcError;
use crate::secret::SecretBytes;

/// The longest discovery document, in bytes.
const LONGEST_DOCUMENT: usize = 256 * 1024;
const LONGEST_ADDRESS: usize = 2048;

/// How this server shows the provider who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// Basic, with id and secret in the form's encoding (RFC 6749, section 2.3.1).
    Basic,
    /// In the form.
    Form,
    /// By PKCE alone: a public client.
    Public,
}

/// This server as a client of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcClient {
    /// The id that the provider gave it.
    pub client_id: String,
    /// The secret that the provider gave it; none for a public client.
    pub secret: Option<SecretBytes>,
    /// Where the browser comes back to; the provider knows it.
    pub redirect_uri: String,
    /// What is asked for, besides `openid`.
    pub scopes: Vec<String>,
}

/// A provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Its name, exactly.
    pub issuer: String,
    /// Where a browser is sent to sign in.
    pub authorization_endpoint: String,
    /// Where a code becomes tokens.
    pub token_endpoint: String,
    /// Where its keys are.
    pub jwks_uri: String,
    /// How it wants clients to show who they are.
    pub authentication: ClientAuthentication,
    /// Whether it names itself when it sends the browser back (RFC 9207).
    pub names_itself: bool,
}

#[derive(Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl Provider {
    /// Where the discovery document of an issuer is (OpenID Connect Discovery 1.0, section 4.1).
    #[must_use]
    pub fn discovery_url(issuer: &str) -> String {
        format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
    }

    /// Reads the document of the configured issuer: it must call itself exactly that (section 4.3), and its addresses are
    /// encrypted, or of this machine.
    ///
    /// # Errors
    /// [`OidcError`]
    pub fn parse(issuer: &str, has_secret: bool, json: &[u8]) -> Result<Self, OidcError> {
        if json.len() > LONGEST_DOCUMENT {
            return Err(OidcError::Malformed("the discovery document is too long"));
        }
        let document: Document = serde_json::from_slice(json)
            .map_err(|_| OidcError::Malformed("the discovery document has not the fields that it must"))?;
        if document.issuer != issuer {
            return Err(OidcError::Issuer(document.issuer.chars().take(200).collect()));
        }
        check_address("authorization endpoint", &document.authorization_endpoint)?;
        check_address("token endpoint", &document.token_endpoint)?;
        check_address("key set", &document.jwks_uri)?;
        let methods = document.token_endpoint_auth_methods_supported;
        let supports = |method: &str| {
            methods.as_ref().is_some_and(|methods| methods.iter().any(|known| known == method))
        };
        let authentication = match (has_secret, methods.is_none() || supports("client_secret_basic")) {
            (false, _) => ClientAuthentication::Public,
            (true, true) => ClientAuthentication::Basic,
            (true, false) => ClientAuthentication::Form,
        };
        Ok(Self {
            issuer: document.issuer,
            authorization_endpoint: document.authorization_endpoint,
            token_endpoint: document.token_endpoint,
            jwks_uri: document.jwks_uri,
            authentication,
            names_itself: document.authorization_response_iss_parameter_supported,
        })
    }
}

/// An address with `https`, or with `http` on this machine, without control characters, spaces and fragments.
fn check_address(what: &'static str, address: &str) -> Result<(), OidcError> {
    let plain = address.len() <= LONGEST_ADDRESS
        && address.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if !plain {
        return Err(OidcError::Malformed("an address has characters that it may not have"));
    }
    let local = ["http://127.0.0.1", "http://localhost", "http://[::1]"].iter().any(|start| {
        address.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/', '?']))
    });
    // A name before `@` would look like the host.
    let authority = address.split('/').nth(2).unwrap_or_default();
    if (address.starts_with("https://") || local) && !authority.is_empty() && !authority.contains('@') {
        Ok(())
    } else {
        Err(OidcError::NotEncrypted(what))
    }
}
