//! CouchDB's JWT authentication: a service with a configured key says who somebody is and which roles they have.

use serde_json::{Map, Value};

use crate::token::claims::{check_times, text};
use crate::token::jws::open;
use crate::token::{KeySet, TokenError};

/// The most roles of a token.
const MOST_ROLES: usize = 256;

/// What tokens must say, as CouchDB's `[jwt_auth]` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CouchRules {
    /// Claims that must be there, and, where it is given, what they must say. `exp`, `nbf` and `iat` are also checked where they
    /// are not in this list.
    pub required: Vec<(String, Option<String>)>,
    /// Where the roles are: `_couchdb.roles`, or a path of names with dots in between.
    pub roles: String,
}

impl Default for CouchRules {
    /// A token must end some time; CouchDB would accept one that does not.
    fn default() -> Self {
        Self { required: vec![("exp".to_owned(), None)], roles: "_couchdb.roles".to_owned() }
    }
}

/// Who a token says that somebody is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CouchToken {
    /// `sub`, as it stands.
    pub name: String,
    /// The roles that it gives; `_admin` among them makes an administrator.
    pub roles: Vec<String>,
    /// When it ends, in seconds since 1970, if it does.
    pub expires_s: Option<u64>,
}

/// Verifies a token by the configured keys.
///
/// # Errors
/// [`TokenError`]
pub fn verify_couch(
    token: &str,
    keys: &KeySet,
    rules: &CouchRules,
    now_s: u64,
) -> Result<CouchToken, TokenError> {
    let claims = open(token, keys)?.claims;
    let expires_s = check_times(&claims, now_s)?;
    for (name, value) in &rules.required {
        let there = claims.get(name);
        let fine = match value {
            None => there.is_some(),
            Some(value) => there.and_then(Value::as_str) == Some(value.as_str()),
        };
        if !fine {
            return Err(TokenError::Claim(name.clone()));
        }
    }
    let name = text(&claims, "sub").filter(|name| !name.is_empty() && name.len() <= crate::LONGEST_NAME);
    let name = name.ok_or_else(|| TokenError::Claim("sub".to_owned()))?;
    Ok(CouchToken { name: name.to_owned(), roles: roles_of(&claims, &rules.roles)?, expires_s })
}

fn roles_of(claims: &Map<String, Value>, path: &str) -> Result<Vec<String>, TokenError> {
    // CouchDB's own claim has a dot in its name, so the whole is tried before the path.
    let found = claims.get(path).or_else(|| {
        let mut names = path.split('.');
        let first = claims.get(names.next()?)?;
        names.try_fold(first, |value, name| value.get(name))
    });
    let wrong = || TokenError::Claim(path.to_owned());
    match found {
        None => Ok(Vec::new()),
        Some(Value::Array(roles)) if roles.len() <= MOST_ROLES => {
            roles.iter().map(|role| role.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}
