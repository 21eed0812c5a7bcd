//! What a provider's token must say before it lets somebody in (OpenID Connect Core 1.0, section 3.1.3.7; RFC 9068,
//! section 4).

use serde_json::{Map, Value};

use crate::secret::same;
use crate::token::jws::open;
use crate::token::{KeySet, LEEWAY_S, TokenError};

/// The longest subject (OpenID Connect Core 1.0, section 2).
const LONGEST_SUBJECT: usize = 255;

/// What a token is used as. One kind is never taken for the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenUse {
    /// An ID token, from a sign-in that this server began.
    Identity {
        /// This server, as the provider knows it.
        client_id: String,
        /// What the sign-in sent along.
        nonce: String,
    },
    /// An access token, which a program shows (OAUTHBEARER, XOAUTH2, Bearer).
    Access {
        /// What the provider calls this server as a resource; any of them.
        audiences: Vec<String>,
    },
}

/// Which claim, besides the provider's subject, is trusted to name a person here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameClaim {
    /// None: a person is linked to a subject first.
    Nothing,
    /// `email`, where `email_verified` is true.
    VerifiedEmail,
    /// `preferred_username`, of a provider that lets nobody choose another's.
    PreferredUsername,
}

/// When a provider's sign-in counts as one with a second factor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactorRule {
    /// Always: the provider sees to it.
    Always,
    /// Where `amr` has `mfa` (RFC 8176), or `acr` is one of these.
    Claimed(Vec<String>),
    /// Never: the second factor is asked for here.
    Never,
}

/// What is expected of a provider's tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRules {
    /// The provider, exactly as it calls itself.
    pub issuer: String,
    /// As what the token is used.
    pub usage: TokenUse,
    /// Which claim names a person.
    pub name: NameClaim,
    /// Whether it counts as a second factor.
    pub factor: FactorRule,
}

/// A token that was verified. Nothing else makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedToken {
    pub(crate) issuer: String,
    pub(crate) subject: String,
    pub(crate) name: Option<String>,
    pub(crate) has_second_factor: bool,
    pub(crate) is_identity: bool,
    pub(crate) expires_s: u64,
}

impl VerifiedToken {
    /// The provider.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Who it is, as the provider calls them for ever.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The name by which the person can be looked up here, where the rules trust one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// When it ends, in seconds since 1970: a connection that came in by it need not go on beyond.
    #[must_use]
    pub const fn expires_s(&self) -> u64 {
        self.expires_s
    }
}

/// Verifies a token by a provider's keys.
///
/// # Errors
/// [`TokenError`]
pub fn verify(
    token: &str,
    keys: &KeySet,
    rules: &TokenRules,
    now_s: u64,
) -> Result<VerifiedToken, TokenError> {
    let signed = open(token, keys)?;
    let claims = &signed.claims;
    check_type(signed.kind.as_deref(), &rules.usage)?;
    if text(claims, "iss") != Some(rules.issuer.as_str()) {
        return Err(TokenError::Issuer);
    }
    check_audience(claims, &rules.usage)?;
    // Only ID tokens have it (OpenID Connect Core 1.0, section 3.1.3.6). One that a page was given opens no port.
    if matches!(rules.usage, TokenUse::Access { .. }) && claims.contains_key("at_hash") {
        return Err(TokenError::Type);
    }
    let expires_s = check_times(claims, now_s)?.ok_or_else(|| TokenError::Claim("exp".to_owned()))?;
    if let TokenUse::Identity { nonce, .. } = &rules.usage
        && !text(claims, "nonce").is_some_and(|shown| same(shown.as_bytes(), nonce.as_bytes()))
    {
        return Err(TokenError::Nonce);
    }
    let subject = text(claims, "sub").filter(|subject| (1..=LONGEST_SUBJECT).contains(&subject.len()));
    let subject = subject.ok_or_else(|| TokenError::Claim("sub".to_owned()))?;
    Ok(VerifiedToken {
        issuer: rules.issuer.clone(),
        subject: subject.to_owned(),
        name: name_of(claims, rules.name),
        has_second_factor: has_second_factor(claims, &rules.factor),
        is_identity: matches!(rules.usage, TokenUse::Identity { .. }),
        expires_s,
    })
}

pub(super) fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    claims.get(name).and_then(Value::as_str)
}

/// Access tokens may be `at+jwt` (RFC 9068, section 2.1), ID tokens may not; neither is a logout token or the like.
fn check_type(kind: Option<&str>, usage: &TokenUse) -> Result<(), TokenError> {
    match (kind, usage) {
        (None | Some("jwt"), _) | (Some("at+jwt"), TokenUse::Access { .. }) => Ok(()),
        _ => Err(TokenError::Type),
    }
}

fn check_audience(claims: &Map<String, Value>, usage: &TokenUse) -> Result<(), TokenError> {
    let audiences: Vec<&str> = match claims.get("aud") {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => return Err(TokenError::Audience),
    };
    let fine = match usage {
        TokenUse::Access { audiences: ours } => ours.iter().any(|ours| audiences.contains(&ours.as_str())),
        TokenUse::Identity { client_id, .. } => {
            // Of several audiences, the authorised party is the one who asked; where it is named it is this server.
            let party = text(claims, "azp");
            audiences.contains(&client_id.as_str())
                && party.map_or(audiences.len() == 1, |party| party == client_id)
        }
    };
    if fine { Ok(()) } else { Err(TokenError::Audience) }
}

/// Checks `exp`, `nbf` and `iat` where they are there; gives `exp`. A time that is no number is refused.
pub(super) fn check_times(claims: &Map<String, Value>, now_s: u64) -> Result<Option<u64>, TokenError> {
    let expires_s = time(claims, "exp")?;
    if expires_s.is_some_and(|end_s| now_s >= end_s.saturating_add(LEEWAY_S)) {
        return Err(TokenError::Expired);
    }
    for name in ["nbf", "iat"] {
        if time(claims, name)?.is_some_and(|begin_s| begin_s > now_s.saturating_add(LEEWAY_S)) {
            return Err(TokenError::NotYet);
        }
    }
    Ok(expires_s)
}

/// A `NumericDate` (RFC 7519, section 2), which may have a fraction.
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<u64>, TokenError> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let whole = value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| number.is_finite() && *number >= 0.0)?;
        // Beyond 2^53 it is no time that anybody means.
        format!("{:.0}", number.floor().min(9e15)).parse().ok()
    });
    whole.map(Some).ok_or_else(|| TokenError::Claim(name.to_owned()))
}

fn name_of(claims: &Map<String, Value>, rule: NameClaim) -> Option<String> {
    let name = match rule {
        NameClaim::Nothing => None,
        NameClaim::VerifiedEmail => {
            let verified = claims.get("email_verified").and_then(Value::as_bool) == Some(true);
            text(claims, "email").filter(|_| verified)
        }
        NameClaim::PreferredUsername => text(claims, "preferred_username"),
    };
    name.and_then(|name| crate::prepare_name(name).ok())
}

fn has_second_factor(claims: &Map<String, Value>, rule: &FactorRule) -> bool {
    match rule {
        FactorRule::Always => true,
        FactorRule::Never => false,
        FactorRule::Claimed(classes) => {
            let methods = claims.get("amr").and_then(Value::as_array);
            let several =
                methods.is_some_and(|methods| methods.iter().any(|method| method.as_str() == Some("mfa")));
            several || text(claims, "acr").is_some_and(|class| classes.iter().any(|known| known == class))
        }
    }
}
