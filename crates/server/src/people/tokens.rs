//! Tokens of services: a program with a configured key says who somebody is and which roles they have, as CouchDB's JWT handler
//! takes it.

use std::io::Read;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use scrinium_credentials::LONGEST_NAME;
use scrinium_credentials::Protocol;
use scrinium_credentials::token::{
    CouchRules, KeySet, ProxySecret, SHORTEST_PROXY_SECRET, TokenError, VerifyKey, verify_couch,
};
use scrinium_directory::{Approach, LoginAttempt, LoginOutcome, NameLookup, Person, TokenVerifier};
use scrinium_http::{Identity, LoginRefusal, ProxiedName};

use super::People;
use crate::cli::Failure;
use crate::config::Settings;

/// No file of keys is longer.
const LONGEST_FILE_BYTES: u64 = 256 * 1024;

/// The most roles that a proxy gives.
const MOST_ROLES: usize = 256;

/// By what tokens are verified.
#[derive(Debug, Default)]
pub(super) struct ServiceTokens {
    keys: KeySet,
    rules: CouchRules,
    /// What a proxy that says who asks shares with the server.
    proxy: Option<ProxySecret>,
}

/// What somebody who came by a token rests on.
pub(super) struct TokenGrant {
    /// The person of the directory whom it names, and how they stood.
    person: Option<(String, [u8; 32])>,
    ends_s: Option<u64>,
}

impl TokenGrant {
    pub(super) fn is_of(&self, person_id: &str) -> bool {
        self.person.as_ref().is_some_and(|(id, _)| id == person_id)
    }
}

impl ServiceTokens {
    /// The keys of the file that is configured, if one is.
    pub(super) fn read(settings: &Settings) -> Result<Self, Failure> {
        let (set, proxy) = (&settings.jwt_keys, proxy_secret(settings)?);
        if set.file.is_empty() {
            return Ok(Self { proxy, ..Self::default() });
        }
        let path = settings.server.data_dir.join(&set.file);
        let cannot =
            |why: String| Failure::Work(format!("cannot read the keys in {}: {why}", path.display()));
        let file = std::fs::File::open(&path).map_err(|error| cannot(error.to_string()))?;
        let mut text = String::new();
        file.take(LONGEST_FILE_BYTES).read_to_string(&mut text).map_err(|error| cannot(error.to_string()))?;
        let required = set.required_claims.iter().map(|claim| match claim.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (claim.clone(), None),
        });
        let rules = CouchRules { required: required.collect(), roles: set.roles_claim.clone() };
        Ok(Self { keys: keys_of(&text).map_err(cannot)?, rules, proxy })
    }

    pub(super) const fn are_known(&self) -> bool {
        !self.keys.is_empty()
    }

    pub(super) const fn takes_proxied(&self) -> bool {
        self.proxy.is_some()
    }
}

/// The secret of the file that is configured, if one is.
fn proxy_secret(settings: &Settings) -> Result<Option<ProxySecret>, Failure> {
    let name = &settings.proxy_auth.secret_file;
    if name.is_empty() {
        return Ok(None);
    }
    let path = settings.server.data_dir.join(name);
    let cannot = |why: String| {
        Failure::Work(format!("cannot read the secret of a proxy in {}: {why}", path.display()))
    };
    let mut text = String::new();
    let file = std::fs::File::open(&path).map_err(|error| cannot(error.to_string()))?;
    file.take(LONGEST_FILE_BYTES).read_to_string(&mut text).map_err(|error| cannot(error.to_string()))?;
    let secret = ProxySecret::new(text.lines().next().unwrap_or_default().trim().as_bytes());
    let too_short = || cannot(format!("its first line has less than {SHORTEST_PROXY_SECRET} bytes"));
    secret.map(Some).ok_or_else(too_short)
}

/// Lines as in CouchDB's `[jwt_keys]`: `hmac:ID = BASE64`, `rsa:ID = PEM`, `ec:ID = PEM`, with `\\n` for the ends of the PEM's lines.
/// The id `_default` is for tokens that name none.
fn keys_of(text: &str) -> Result<KeySet, String> {
    let mut keys = KeySet::default();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with([';', '#', '[']) {
            continue;
        }
        let wrong = |what: &str| format!("line {}: {what}", number + 1);
        let (name, value) = line.split_once('=').ok_or_else(|| wrong("it has the form KIND:ID = KEY"))?;
        let (kind, id) = name.trim().split_once(':').ok_or_else(|| wrong("it has the form KIND:ID = KEY"))?;
        let value = value.trim();
        let key = match kind {
            "hmac" => STANDARD.decode(value).ok().and_then(|secret| VerifyKey::shared(&secret)),
            "rsa" | "ec" | "ed" | "eddsa" => VerifyKey::from_pem(&value.replace("\\n", "\n")),
            _ => return Err(wrong("a key is of the kind hmac, rsa, ec or ed")),
        };
        let key = key.ok_or_else(|| wrong("the key cannot be read, or a secret is shorter than 32 bytes"))?;
        keys.add((id != "_default").then(|| id.to_owned()), key);
    }
    if keys.is_empty() { Err("there is no key in it".to_owned()) } else { Ok(keys) }
}

impl People {
    /// Who shows a token: of the provider, if it says so, else of a service.
    pub(super) async fn by_bearer(&self, token: &str, from: IpAddr) -> Result<Identity, LoginRefusal> {
        let Some(provider) =
            self.provider.as_ref().filter(|provider| provider.takes_tokens() && provider.is_of(token))
        else {
            return self.by_token(token, from);
        };
        let verified = provider.verify(token).await.map_err(|error| self.refused_token(&error, from))?;
        let approach = Approach::protected(Protocol::Http, from);
        let login = self.logins.with_token(&verified, None, &approach).await;
        let login = login.map_err(|error| self.refusal(error))?;
        Ok(self.identity_until(&login, Protocol::Http, None, Some(verified.expires_s())))
    }

    fn refused_token(&self, error: &TokenError, from: IpAddr) -> LoginRefusal {
        self.tell_refusal(error, from);
        LoginRefusal::Wrong
    }

    /// Puts on record that somebody was refused who has shown no name.
    pub(super) fn tell_refusal(&self, error: &dyn std::fmt::Display, from: IpAddr) {
        tracing::info!(address = %from, %error, "somebody was not let in");
        let outcome = LoginOutcome::Refused;
        self.log.attempted(&LoginAttempt { name: "", address: from, outcome, reason: None });
    }

    /// Who shows a token of a service.
    fn by_token(&self, token: &str, from: IpAddr) -> Result<Identity, LoginRefusal> {
        let ServiceTokens { keys, rules, .. } = &self.services;
        let verified = verify_couch(token, keys, rules, self.clock.now_s());
        let verified = verified.map_err(|error| self.refused_token(&error, from))?;
        self.named_by_others(&verified.name, &verified.roles, verified.expires_s)
    }

    /// Who a proxy says that asks. Its token says nothing of the roles, so that none is taken that the server gives a meaning.
    pub(super) fn by_proxy(&self, named: &ProxiedName<'_>, from: IpAddr) -> Result<Identity, LoginRefusal> {
        let ProxiedName { name, roles, token } = *named;
        let is_right = self.services.proxy.as_ref().is_some_and(|secret| secret.is_of(token, name));
        if !is_right || name.is_empty() || name.len() > LONGEST_NAME {
            self.tell_refusal(&"a proxy's token is not that of the name", from);
            return Err(LoginRefusal::Wrong);
        }
        let roles =
            roles.split(',').map(str::trim).filter(|role| !role.is_empty() && !role.starts_with(['_', '[']));
        let roles: Vec<String> = roles.take(MOST_ROLES).map(str::to_owned).collect();
        self.named_by_others(name, &roles, None)
    }

    /// Somebody whom a service or a proxy names, with the roles that it gives them.
    fn named_by_others(
        &self,
        name: &str,
        roles: &[String],
        ends_s: Option<u64>,
    ) -> Result<Identity, LoginRefusal> {
        let person = self.logins.credentials().person(name);
        let (name, groups) = match &person {
            Some(person) => {
                self.check_account(person)?;
                (person.short_name.as_str(), self.directory.groups_of(person))
            }
            None => (name, Vec::new().into()),
        };
        let grant = TokenGrant {
            person: person.as_ref().map(|person| (person.id.clone(), person.standing())),
            ends_s,
        };
        let identity = Identity::with_groups(name, roles, &groups);
        Ok(identity.with_grant(std::sync::Arc::new(grant)))
    }

    /// Whether a person may come in at all: a service does not know.
    fn check_account(&self, person: &Person) -> Result<(), LoginRefusal> {
        let account = &person.account;
        let answer = if account.is_disabled {
            scrinium_credentials::Answer::Disabled
        } else if account.expires_ms.is_some_and(|end_ms| end_ms <= self.clock.now_ms()) {
            scrinium_credentials::Answer::Ended
        } else if !account.protocols.has(Protocol::Http) {
            scrinium_credentials::Answer::NotByThis
        } else {
            return Ok(());
        };
        Err(LoginRefusal::Denied(answer.text(Protocol::Http).to_owned()))
    }

    pub(super) fn token_holds(&self, grant: &TokenGrant) -> bool {
        let is_same = |(id, standing): &(String, [u8; 32])| {
            let person = self.directory.person(id);
            person.is_some_and(|person| person.standing() == *standing && self.check_account(&person).is_ok())
        };
        grant.ends_s.is_none_or(|ends_s| ends_s > self.clock.now_s())
            && grant.person.as_ref().is_none_or(is_same)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::keys_of;

    #[test]
    fn keys_are_read_as_couchdb_writes_them_and_what_is_wrong_is_said_with_its_line() {
        let secret = "c2VjcmV0".repeat(6);
        let file = format!("[jwt_keys]\n; a comment\nhmac:_default = {secret}\n\nhmac:other={secret}\n");
        assert!(!keys_of(&file).unwrap().is_empty());
        for (file, words) in [
            ("", "no key"),
            ("hmac:_default = c2hvcnQ=", "line 1: the key cannot be read"),
            ("\nhmac = x", "line 2: it has the form"),
            ("rsa:a = -----BEGIN PUBLIC KEY-----", "line 1: the key"),
            ("none:a = x", "a key is of the kind"),
        ] {
            let error = keys_of(file).unwrap_err();
            assert!(error.contains(words), "{error}");
            assert!(!error.contains("c2hvcnQ"), "{error}");
        }
    }
}
