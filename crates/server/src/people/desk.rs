//! What people do with their credentials, and administrators with those of others.
//!
//! What lets somebody in for long is given out only to who has just shown that it is them: by a session that began a moment ago,
//! or by the password in the request itself. A session of an app password manages nothing.

use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use scrinium_credentials::passkey::{
    AssertionResponse, Ceremony, PasskeyChallenge, PasskeyProof, RegistrationResponse, RelyingParty,
    creation_options, request_options, verify_assertion, verify_registration,
};
use scrinium_credentials::{
    Method, NewAppPassword, NextStep, Proof, Protocol, ProtocolSet, ProviderLink, SecondStep, SecretBytes,
    StoredCredentials, Totp,
};
use scrinium_directory::{Approach, CredentialError, CredentialRecords, Login, LoginError, Person};
use scrinium_http::{
    CredentialAnswer, CredentialRefusal, CredentialRequest, CredentialsOf, Identity, LoginRefusal,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Grant, People, begin_again};

/// What sealed texts are for.
const TOTP: &str = "totp";
const CHALLENGE: &str = "passkey challenge";

/// Sealed into what a client keeps while it sets an authenticator up.
#[derive(Serialize, Deserialize)]
struct BegunTotp {
    person_id: String,
    begun_ms: u64,
    totp: Totp,
}

/// How long that may take.
const SET_UP_MS: u64 = 30 * 60 * 1000;

/// Sealed into what a browser keeps while an authenticator is asked.
#[derive(Serialize, Deserialize)]
struct SealedChallenge {
    /// Of this process: after a restart, what was answered before is not known any more.
    process: u64,
    person_id: Option<String>,
    challenge: PasskeyChallenge,
}

type Done<T> = Result<T, CredentialRefusal>;

impl People {
    pub(super) async fn serve_desk(
        &self,
        of: CredentialsOf<'_>,
        request: CredentialRequest,
        from: IpAddr,
    ) -> Done<CredentialAnswer> {
        let is_own = !matches!(of, CredentialsOf::Other { .. });
        let person = self.whose(of, &request)?;
        let asking = match of {
            CredentialsOf::Own(identity) => identity.grant::<Grant>(),
            CredentialsOf::Other { .. } | CredentialsOf::FirstStep(_) => None,
        };
        let shown = self.carry_out(&person, request, (from, asking)).await?;
        let session = match of {
            CredentialsOf::Other { .. } => None,
            CredentialsOf::Own(_) | CredentialsOf::FirstStep(_) => shown.1.filter(|_| is_own),
        };
        let session = session.and_then(|factor| {
            let person = self.directory.person(&person.id)?;
            let login =
                Login { person, method: Method::Session, app_password: None, has_second_factor: factor };
            Some(self.identity(&login, Protocol::Browser, None))
        });
        Ok(CredentialAnswer { shown: shown.0, person_id: person.id.clone(), session })
    }

    /// Whose credentials it is about, if the one who asks may do that.
    fn whose(&self, of: CredentialsOf<'_>, request: &CredentialRequest) -> Done<Arc<Person>> {
        match of {
            CredentialsOf::Own(identity) => {
                let grant = identity.grant::<Grant>().ok_or_else(not_theirs)?;
                if grant.is_of_program() {
                    return Err(CredentialRefusal::Forbidden(
                        "An app password or a token manages no credentials: sign in.".to_owned(),
                    ));
                }
                if matches!(request, CredentialRequest::LinkAccount { .. }) && !identity.is_administrator() {
                    return Err(CredentialRefusal::Forbidden(
                        "Only an administrator links accounts of the provider.".to_owned(),
                    ));
                }
                if !request.is_harmless() && !grant.is_fresh(self.clock.now_s()) {
                    return Err(CredentialRefusal::Stale);
                }
                self.directory.person(&grant.person_id).ok_or_else(not_theirs)
            }
            CredentialsOf::Other { by, name } => self.of_other(by, name, request),
            CredentialsOf::FirstStep(step) => {
                let (first, person) = self.first_step(step).map_err(CredentialRefusal::Login)?;
                let now_ms = self.clock.now_ms();
                let is_set_up =
                    matches!(request, CredentialRequest::BeginTotp | CredentialRequest::ConfirmTotp { .. });
                let has_something = person.credentials.has_second_factor()
                    || !person.credentials.passkeys().is_empty()
                    || person.credentials.recovery().is_some_and(|codes| codes.left() > 0);
                let account = &person.account;
                let is_closed =
                    account.is_disabled || account.expires_ms.is_some_and(|end_ms| end_ms <= now_ms);
                if !first.is_open(&person.credentials, now_ms) || !is_set_up || has_something || is_closed {
                    return Err(CredentialRefusal::Login(begin_again()));
                }
                Ok(person)
            }
        }
    }

    /// An administrator takes away and makes app passwords; what a person alone has, an authenticator, is theirs to set up.
    fn of_other(&self, by: &Identity, name: &str, request: &CredentialRequest) -> Done<Arc<Person>> {
        let is_theirs = matches!(
            request,
            CredentialRequest::BeginTotp
                | CredentialRequest::ConfirmTotp { .. }
                | CredentialRequest::RenewRecoveryCodes
                | CredentialRequest::BeginPasskey
                | CredentialRequest::AddPasskey { .. }
        );
        if is_theirs {
            return Err(CredentialRefusal::Forbidden("Only the person can set this up.".to_owned()));
        }
        let person = self.logins.credentials().person(name).ok_or_else(|| {
            CredentialRefusal::NotFound(format!("Nobody in the directory is called {name:?}."))
        })?;
        let is_self = by.grant::<Grant>().is_some_and(|grant| grant.person_id == person.id);
        if is_self {
            // Else an administrator's app password would be as good as what it was made with.
            return self.whose(CredentialsOf::Own(by), request);
        }
        let now_s = self.clock.now_s();
        let is_stale = by.grant::<Grant>().is_some_and(|grant| !grant.is_fresh(now_s));
        if is_stale && !request.is_harmless() { Err(CredentialRefusal::Stale) } else { Ok(person) }
    }

    /// What is shown, and, where all sessions of the person are over by it, whether the next one has a second factor.
    async fn carry_out(
        &self,
        person: &Arc<Person>,
        request: CredentialRequest,
        (from, asking): (IpAddr, Option<&Grant>),
    ) -> Done<(Value, Option<bool>)> {
        let now_ms = self.clock.now_ms();
        let stays = |shown: Value| Ok((shown, None));
        let ok = || stays(json!({"ok": true}));
        match request {
            CredentialRequest::List => stays(credentials_shown(person, now_ms)),
            CredentialRequest::AddAppPassword { name, protocols, expires_ms } => {
                let scope = scope_of(&protocols)?;
                stays(self.add_app_password(person, (name, scope, expires_ms), from).await?)
            }
            CredentialRequest::RenameAppPassword { id, name } => {
                self.change(person, move |stored| Ok(stored.rename_app_password(&id, &name)?)).await?;
                ok()
            }
            CredentialRequest::RevokeAppPassword { id } => {
                self.change(person, move |stored| Ok(stored.revoke_app_password(&id, now_ms)?)).await?;
                ok()
            }
            CredentialRequest::BeginTotp => stays(self.begin_totp(person)?),
            CredentialRequest::ConfirmTotp { begun, code } => {
                let codes = self.confirm_totp(person, &begun, code).await?;
                Ok((json!({"ok": true, "recovery_codes": codes}), Some(true)))
            }
            CredentialRequest::RemoveTotp => {
                self.change(person, |stored| {
                    stored.remove_totp();
                    Ok(())
                })
                .await?;
                Ok((json!({"ok": true}), Some(false)))
            }
            CredentialRequest::RenewRecoveryCodes => {
                let renew = |stored: &mut StoredCredentials| match stored.totp() {
                    None => Err(CredentialError::Unknown("authenticator")),
                    Some(_) => Ok(stored.renew_recovery_codes()?),
                };
                stays(json!({"ok": true, "recovery_codes": self.change(person, renew).await?}))
            }
            CredentialRequest::LinkAccount { subject } => {
                self.link(person, subject).await?;
                ok()
            }
            CredentialRequest::UnlinkAccount { subject } => {
                self.unlink(person, subject).await?;
                ok()
            }
            CredentialRequest::BeginPasskey => stays(self.begin_passkey(person).await?),
            CredentialRequest::AddPasskey { challenge, name, response } => {
                self.add_passkey(person, &challenge, &name, &response).await?;
                ok()
            }
            CredentialRequest::ListSessions => stays(self.sessions_shown(person, asking)),
            CredentialRequest::EndSession { id } => {
                self.end_session(person, &id).await?;
                ok()
            }
            CredentialRequest::EndOtherSessions => self.end_other_sessions(person, asking).await,
            CredentialRequest::RemovePasskey { id } => {
                let id = URL_SAFE_NO_PAD.decode(id).map(SecretBytes::new);
                let id = id.map_err(|_| unknown("passkey"))?;
                let remove = move |stored: &mut StoredCredentials| {
                    let is_there = stored.remove_passkey(&id);
                    if is_there { Ok(()) } else { Err(CredentialError::Unknown("passkey")) }
                };
                self.change(person, remove).await?;
                ok()
            }
        }
    }

    async fn link(&self, person: &Person, subject: String) -> Done<()> {
        let link = self.link_to(subject)?;
        let linked = self.directory.linked_person(&link.issuer, &link.subject);
        if linked.is_some_and(|other| other.id != person.id) {
            let reason = "This account of the provider is somebody else's already.";
            return Err(CredentialRefusal::Invalid(reason.to_owned()));
        }
        let add = move |stored: &mut StoredCredentials| {
            let is_linked = stored.links().contains(&link) || stored.link(link.clone());
            if is_linked { Ok(()) } else { Err(CredentialError::TooManyLinks) }
        };
        self.change(person, add).await
    }

    async fn unlink(&self, person: &Person, subject: String) -> Done<()> {
        let link = self.link_to(subject)?;
        let remove = move |stored: &mut StoredCredentials| {
            stored.unlink(&link);
            Ok(())
        };
        self.change(person, remove).await
    }

    /// An account at the provider that is configured.
    fn link_to(&self, subject: String) -> Done<ProviderLink> {
        let issuer = self.provider.as_ref().map(|provider| provider.issuer().to_owned());
        let issuer = issuer.ok_or_else(|| {
            CredentialRefusal::Invalid("No provider is known here (oidc.issuer).".to_owned())
        })?;
        Ok(ProviderLink { issuer, subject })
    }

    /// Changes a person's credentials. Waits for the disk, and holds no thread that others need.
    async fn change<T: Send + 'static>(
        &self,
        person: &Person,
        change: impl Fn(&mut StoredCredentials) -> Result<T, CredentialError> + Send + Sync + 'static,
    ) -> Done<T> {
        let (directory, id) = (Arc::clone(&self.directory), person.id.clone());
        let changed = tokio::task::spawn_blocking(move || directory.change_credentials(&id, change)).await;
        match changed {
            Ok(changed) => changed.map_err(refused),
            Err(error) => Err(CredentialRefusal::Failed(error.to_string())),
        }
    }

    async fn add_app_password(
        &self,
        person: &Arc<Person>,
        (name, scope, expires_ms): (String, ProtocolSet, Option<u64>),
        from: IpAddr,
    ) -> Done<Value> {
        let now_ms = self.clock.now_ms();
        let iterations = self.gate().scram_iterations();
        let stored = Arc::clone(&person.credentials);
        // SCRAM's keys take some 30 ms, so they are made where passwords are hashed.
        let made = self.logins.apart(from, move || {
            let new = NewAppPassword { name: &name, scope, expires_ms };
            stored.prepare_app_password(new, iterations, now_ms)
        });
        let busy = |error: LoginError| CredentialRefusal::Login(self.refusal(error));
        let (made, text) = made.await.map_err(busy)?.map_err(|error| refused(error.into()))?;
        let id = text.id().to_owned();
        self.change(person, move |stored| Ok(stored.put_app_password(made.clone(), now_ms)?)).await?;
        Ok(json!({"ok": true, "id": id, "password": text.show()}))
    }

    fn begin_totp(&self, person: &Person) -> Done<Value> {
        let totp = person.credentials.begin_totp().map_err(|error| refused(error.into()))?;
        let account = person.internet_address.as_deref().unwrap_or(&person.short_name);
        let (secret, uri) = (totp.secret_text(), totp.uri(&self.server_name, account));
        let begun = BegunTotp { person_id: person.id.clone(), begun_ms: self.clock.now_ms(), totp };
        let sealed = self.gate().seal_value(TOTP, &begun).map_err(|error| refused(error.into()))?;
        Ok(json!({"secret": secret, "uri": uri, "begun": sealed}))
    }

    async fn confirm_totp(&self, person: &Person, begun: &str, code: String) -> Done<Vec<String>> {
        let now_ms = self.clock.now_ms();
        let opened = self.gate().open_value::<BegunTotp>(TOTP, begun).ok();
        let begun = opened.filter(|begun| {
            begun.person_id == person.id && now_ms.saturating_sub(begun.begun_ms) < SET_UP_MS
        });
        let begun = begun.ok_or_else(|| CredentialRefusal::Login(begin_again()))?;
        let confirm = move |stored: &mut StoredCredentials| {
            let codes = stored.confirm_totp(begun.totp.clone(), &code, now_ms)?;
            codes.ok_or(CredentialError::WrongCode)
        };
        self.change(person, confirm).await
    }

    async fn begin_passkey(&self, person: &Person) -> Done<Value> {
        let party = self.party()?;
        let handle = self.change(person, |stored| Ok(stored.passkey_handle()?)).await?;
        let (challenge, sealed) = self.challenge(Ceremony::Registration, Some(&person.id))?;
        let name = person.internet_address.as_deref().unwrap_or(&person.short_name);
        let known = person.credentials.passkeys();
        let options = creation_options(party, &challenge, &handle, name, person.shown_name(), known);
        Ok(json!({"publicKey": options, "challenge": sealed}))
    }

    async fn add_passkey(&self, person: &Person, challenge: &str, name: &str, response: &str) -> Done<()> {
        let party = self.party()?.clone();
        let now_ms = self.clock.now_ms();
        let opened = self.open_challenge(challenge, Some(&person.id))?;
        let response = RegistrationResponse::from_json(response.as_bytes());
        let response = response.map_err(|error| refused(error.into()))?;
        let passkey = verify_registration(&party, &opened, &response, name, now_ms);
        let passkey = passkey.map_err(|error| refused(error.into()))?;
        self.note_challenge(&opened)?;
        self.change(person, move |stored| Ok(stored.add_passkey(passkey.clone())?)).await
    }

    fn party(&self) -> Done<&RelyingParty> {
        self.party.as_ref().ok_or_else(|| {
            CredentialRefusal::Forbidden(
                "Passkeys are not offered here; an administrator can offer them (sign_in.url).".to_owned(),
            )
        })
    }

    fn challenge(&self, ceremony: Ceremony, person_id: Option<&str>) -> Done<(PasskeyChallenge, String)> {
        let made = PasskeyChallenge::make(ceremony, self.clock.now_ms());
        let challenge = made.map_err(|error| refused(error.into()))?;
        let sealed = SealedChallenge {
            process: self.process,
            person_id: person_id.map(str::to_owned),
            challenge: challenge.clone(),
        };
        let sealed = self.gate().seal_value(CHALLENGE, &sealed).map_err(|error| refused(error.into()))?;
        Ok((challenge, sealed))
    }

    fn open_challenge(&self, sealed: &str, person_id: Option<&str>) -> Done<PasskeyChallenge> {
        let opened = self.gate().open_value::<SealedChallenge>(CHALLENGE, sealed).ok();
        let fits = |opened: &SealedChallenge| {
            opened.process == self.process && opened.person_id.as_deref() == person_id
        };
        let opened = opened.filter(fits).map(|opened| opened.challenge);
        opened.ok_or_else(|| CredentialRefusal::Login(begin_again()))
    }

    /// An answer is good for once. Only those that were right are kept, so that no stranger can push them out.
    fn note_challenge(&self, challenge: &PasskeyChallenge) -> Done<()> {
        const MOST: usize = 100_000;
        let now_ms = self.clock.now_ms();
        let mut answered = self.answered.lock();
        if answered.len() >= MOST {
            answered.retain(|_, end_ms| *end_ms > now_ms);
        }
        let end_ms = now_ms.saturating_add(scrinium_credentials::passkey::CHALLENGE_MS);
        if answered.len() >= MOST || answered.insert(challenge.bytes().to_vec(), end_ms).is_some() {
            return Err(CredentialRefusal::Login(begin_again()));
        }
        Ok(())
    }

    /// What a browser asks an authenticator for, to sign in.
    pub(super) fn ask_for_passkey(&self, step: Option<&str>) -> Result<Value, LoginRefusal> {
        let denied = |refusal: CredentialRefusal| match refusal {
            CredentialRefusal::Login(refusal) => refusal,
            other => LoginRefusal::Denied(other.to_string()),
        };
        let party = self.party().map_err(denied)?;
        let person = step.map(|step| self.first_step(step)).transpose()?.map(|(_, person)| person);
        let id = person.as_ref().map(|person| person.id.as_str());
        let (challenge, sealed) = self.challenge(Ceremony::Assertion, id).map_err(denied)?;
        let known = person.as_ref().map_or(&[][..], |person| person.credentials.passkeys());
        Ok(json!({"publicKey": request_options(party, &challenge, known), "challenge": sealed}))
    }

    /// Signs in with a passkey, alone or after a first step.
    pub(super) async fn with_passkey(
        &self,
        step: Option<&str>,
        (sealed, response): (&str, &[u8]),
        from: IpAddr,
    ) -> Result<Login, LoginRefusal> {
        let first = step.map(|step| self.first_step(step)).transpose()?;
        let response = AssertionResponse::from_json(response).map_err(|_| LoginRefusal::Wrong)?;
        let person = match &first {
            Some((_, person)) => Some(Arc::clone(person)),
            None => response.user_handle.as_ref().and_then(|handle| self.directory.person_of_handle(handle)),
        };
        let proof = person.map(|person| {
            // Whom the authenticator knows must be the one who has shown the first proof (WebAuthn, section 7.2, step 6).
            let is_theirs = response.user_handle.is_none()
                || response.user_handle.as_ref() == person.credentials.handle();
            let proof = self.passkey_proof(&person, (step.is_some(), sealed), &response);
            proof.filter(|_| is_theirs).map(|proof| (person, proof))
        });
        let Some((person, proof)) = proof.flatten() else {
            self.tell_refusal(&"the passkey is not right", from);
            return Err(LoginRefusal::Wrong);
        };
        let approach = Approach::protected(Protocol::Browser, from);
        let proof = match &first {
            Some((first, _)) => Proof::SecondPasskey { first, passkey: &proof },
            None => Proof::Passkey(&proof),
        };
        let login = self.logins.prove(&person.short_name, None, proof, &approach).await;
        login.map_err(|error| self.refusal(error))
    }

    fn passkey_proof(
        &self,
        person: &Person,
        (is_second, sealed): (bool, &str),
        response: &AssertionResponse,
    ) -> Option<PasskeyProof> {
        let id = is_second.then_some(person.id.as_str());
        let challenge = self.open_challenge(sealed, id).ok()?;
        let party = self.party().ok()?;
        let known = person.credentials.passkeys();
        let proof = verify_assertion(party, &challenge, response, known, self.clock.now_ms());
        let proof = proof.ok()?;
        self.note_challenge(&challenge).ok()?;
        Some(proof)
    }
}

/// What can come next, as clients read it.
pub(super) fn words_of(next: &NextStep) -> Vec<&'static str> {
    let word = |kind: &SecondStep| match kind {
        SecondStep::Code => "code",
        SecondStep::Passkey => "passkey",
        SecondStep::SetUp => "set_up",
    };
    next.by().iter().map(word).collect()
}

/// What a person has to come in by; nothing of it is a secret.
pub(crate) fn credentials_shown(person: &Person, now_ms: u64) -> Value {
    let stored = &person.credentials;
    let apps = stored.app_passwords().map(|app| {
        json!({
            "id": app.id, "name": app.name, "protocols": app.scope, "created_ms": app.created_ms,
            "used_ms": app.used_ms, "expires_ms": app.expires_ms, "revoked_ms": app.revoked_ms,
            "valid": app.is_valid(now_ms),
        })
    });
    let passkeys = stored.passkeys().iter().map(|passkey| {
        json!({
            "id": passkey.id, "name": passkey.name, "created_ms": passkey.created_ms, "used_ms": passkey.used_ms,
            "synced": passkey.is_synced,
        })
    });
    json!({
        "person": person.short_name,
        "password": stored.password().is_some(),
        "totp": stored.totp().is_some(),
        "recovery_codes_left": stored.recovery().map_or(0, scrinium_credentials::RecoveryCodes::left),
        "second_factor_required": person.account.requires_second_factor,
        "app_passwords": apps.collect::<Vec<_>>(),
        "passkeys": passkeys.collect::<Vec<_>>(),
        "links": stored.links(),
    })
}

/// Protocols by their words; `mail` and `calendars` are several.
pub(crate) fn scope_of(words: &[String]) -> Result<ProtocolSet, CredentialRefusal> {
    let parse = |word: &String| {
        let wrong = || CredentialRefusal::Invalid(format!("{word:?} is no protocol."));
        match word.as_str() {
            "mail" => Ok(ProtocolSet::mail().iter().collect::<Vec<_>>()),
            "calendars" => Ok(ProtocolSet::calendars().iter().collect()),
            word => Protocol::parse(word).map(|protocol| vec![protocol]).ok_or_else(wrong),
        }
    };
    let protocols = words.iter().map(parse).collect::<Done<Vec<_>>>()?;
    Ok(protocols.into_iter().flatten().collect())
}

fn not_theirs() -> CredentialRefusal {
    CredentialRefusal::NotFound("You are not in the directory.".to_owned())
}

fn unknown(what: &'static str) -> CredentialRefusal {
    refused(CredentialError::Unknown(what))
}

#[allow(clippy::needless_pass_by_value, reason = "an error is handed over as `map_err` does it")]
fn refused(error: CredentialError) -> CredentialRefusal {
    use scrinium_credentials::AppPasswordError;
    let reason = format!("The credentials were not changed: {error}.");
    match error {
        CredentialError::WrongCode => CredentialRefusal::Login(LoginRefusal::Wrong),
        CredentialError::Nobody
        | CredentialError::Unknown(_)
        | CredentialError::AppPassword(AppPasswordError::Unknown) => CredentialRefusal::NotFound(reason),
        CredentialError::AppPassword(_)
        | CredentialError::Passkey(_)
        | CredentialError::Password(_)
        | CredentialError::TooManyLinks => CredentialRefusal::Invalid(reason),
        _ => CredentialRefusal::Failed(reason),
    }
}
