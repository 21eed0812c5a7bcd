//! Who may use the server: the directory behind the HTTP port's questions.

mod desk;
mod provider;
mod sessions;
mod tokens;

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use scrinium_accounting::Accounts;
use scrinium_clock::Clock;
use scrinium_credentials::passkey::RelyingParty;
use scrinium_credentials::{
    AppPasswordText, Gate, Method, NextStep, PasswordCredential, Proof, Protocol, SessionProof,
};
use scrinium_directory::{
    Approach, CredentialOptions, CredentialRecords, Credentials, DIRECTORY_DATABASE, Directory,
    DirectoryChange, Found, Group, HashError, HashingOptions, Login, LoginError, Logins, NameLookup,
    OWN_FIELDS, OpenSessions, Person, Revocations, SessionKeeper, SessionName, SessionOrigin, SessionTimes,
    SessionUse, TokenVerifier, WrittenChange,
};
use scrinium_http::{
    Audit, AuditAction, AuditEntry, Authenticator, CredentialRequest, CredentialWork, CredentialsOf, Hashing,
    Identity, LoginRefusal, MailRulesRefusal, PersonChange, ProviderBeginning, ProviderEnding, ProxiedName,
    SecondStep, Service, Session, SessionToken, SignIn, Verification,
};
use scrinium_statistics::Registry;
use serde_json::json;

use crate::cli::Failure;
use crate::config::Settings;
use crate::files;
use crate::log_database::LogDatabase;
use crate::people_source::SourceChecker;
pub(crate) use desk::{credentials_shown, scope_of};
use provider::OidcProvider;
use tokens::{ServiceTokens, TokenGrant};

/// The file in the data folder that signs sessions, so that they outlive a restart.
const SECRET_FILE: &str = "session.secret";

/// The file in the data folder that holds the sessions that are over before their time.
const REVOKED_FILE: &str = "session.revoked";

const SECRET_BYTES: usize = 32;

/// What changed so long ago was changed by none of the requests under way.
const NOBODYS_AFTER: Duration = Duration::from_secs(30);

/// Knows people by their passwords and sessions.
pub(crate) struct People {
    directory: Arc<Directory>,
    logins: Arc<Logins>,
    sessions: SessionKeeper,
    /// Where people are signed in.
    open_sessions: OpenSessions,
    revocations: Arc<Revocations>,
    log: LogDatabase,
    clock: Clock,
    /// What the server calls itself.
    server_name: String,
    /// Who passkeys know the server as; none where they are not offered.
    party: Option<RelyingParty>,
    /// What tells this process from others before it.
    process: u64,
    /// Challenges that were answered rightly, and until when an answer could come again.
    answered: Mutex<HashMap<Vec<u8>, u64>>,
    /// By what tokens of services are verified.
    services: ServiceTokens,
    /// Whose access tokens let people in.
    provider: Option<Arc<OidcProvider>>,
}

/// Why somebody is believed to be who they are, for as long as it holds.
struct Grant {
    person_id: String,
    standing: [u8; 32],
    /// With what they came in.
    by: SessionOrigin,
    /// By what: a session that began at a page goes on as one.
    protocol: Protocol,
    /// Whether it was a token.
    is_token: bool,
    /// When that ends.
    ends_s: Option<u64>,
    /// Where it is a session.
    session: Option<GrantedSession>,
}

impl Grant {
    fn proof(&self) -> SessionProof {
        session_proof(&self.person_id, &self.by)
    }
}

fn session_proof(person_id: &str, by: &SessionOrigin) -> SessionProof {
    SessionProof {
        person_id: person_id.to_owned(),
        has_second_factor: by.has_second_factor,
        app_password: by.app_password.clone(),
    }
}

/// A session of a program goes on by the protocol of its app password, any other one began at a page.
const fn protocol_of(by: &SessionOrigin) -> Protocol {
    if by.app_password.is_some() { Protocol::Http } else { Protocol::Browser }
}

struct GrantedSession {
    name: SessionName,
    begun_s: u64,
    ends_s: u64,
}

/// What people are known with.
pub(crate) struct PeopleParts<'p> {
    pub(crate) directory: &'p Arc<Directory>,
    pub(crate) accounts: Accounts,
    pub(crate) statistics: &'p Registry,
    pub(crate) log: LogDatabase,
    pub(crate) clock: Clock,
    pub(crate) server_name: &'p str,
}

impl People {
    pub(crate) fn new(parts: PeopleParts<'_>, settings: &Settings) -> Result<Self, Failure> {
        let PeopleParts { directory, accounts, statistics, log, clock, server_name } = parts;
        let records: Arc<dyn CredentialRecords> = directory.clone();
        let data_dir = &settings.server.data_dir;
        let secret = secret(&data_dir.join(SECRET_FILE))
            .map_err(|error| Failure::Work(format!("cannot keep the secret of sessions: {error}")))?;
        let options = CredentialOptions {
            clock: clock.clone(),
            secret: secret.clone(),
            ..CredentialOptions::default()
        };
        let credentials = Credentials::new(records, &options).map_err(Failure::work)?;
        let watched = log.clone();
        let watch =
            Box::new(move |attempt: &scrinium_directory::LoginAttempt<'_>| watched.attempted(attempt));
        let logins = Logins::new(credentials, accounts, hashing(settings), (statistics, watch));
        let logins = logins.map_err(Failure::work)?;
        let logins = match SourceChecker::new(settings)? {
            Some(source) => logins.with_source(Arc::new(source)),
            None => logins,
        };
        Ok(Self {
            directory: Arc::clone(directory),
            logins: Arc::new(logins),
            sessions: keeper(&secret, settings),
            open_sessions: OpenSessions::default(),
            revocations: Arc::new(revocations(data_dir, &clock)?),
            log,
            server_name: server_name.to_owned(),
            party: party(settings, server_name),
            process: rand::random(),
            answered: Mutex::default(),
            services: ServiceTokens::read(settings)?,
            provider: OidcProvider::configured(settings, &clock)?.map(Arc::new),
            clock,
        })
    }

    /// What lets people in, for other protocols.
    pub(crate) fn logins(&self) -> Arc<Logins> {
        Arc::clone(&self.logins)
    }

    /// Verifies tokens of the provider for other protocols, if its tokens let people in.
    pub(crate) fn tokens(&self) -> Option<Arc<dyn TokenVerifier>> {
        let provider = self.provider.as_ref().filter(|provider| provider.takes_tokens());
        provider.map(|provider| Arc::clone(provider) as _)
    }

    /// The person's identity, with the groups of the directory that they are in at the moment; `session` is what it rests
    /// on, if not on a proof that came with the request.
    fn identity(&self, login: &Login, protocol: Protocol, session: Option<GrantedSession>) -> Identity {
        self.identity_until(login, protocol, session, None)
    }

    fn identity_until(
        &self,
        login: &Login,
        protocol: Protocol,
        session: Option<GrantedSession>,
        ends_s: Option<u64>,
    ) -> Identity {
        let Login { person, method, app_password, has_second_factor } = login;
        let by = SessionOrigin { has_second_factor: *has_second_factor, app_password: app_password.clone() };
        let is_token = *method == Method::Token;
        let grant = Grant {
            person_id: person.id.clone(),
            standing: person.standing(),
            by,
            protocol,
            is_token,
            ends_s,
            session,
        };
        self.ungranted(person).with_grant(Arc::new(grant))
    }

    fn gate(&self) -> &Gate {
        self.logins.credentials().gate()
    }

    /// What the port hears of a log-in that did not let anybody in.
    fn refusal(&self, error: LoginError) -> LoginRefusal {
        match error {
            LoginError::Refused => LoginRefusal::Wrong,
            LoginError::Locked { retry_after } => LoginRefusal::Locked { retry_after },
            LoginError::Busy { retry_after } => LoginRefusal::Busy { retry_after },
            LoginError::Denied(answer, protocol) => LoginRefusal::Denied(answer.text(protocol).to_owned()),
            LoginError::SecondStep(next) => match self.gate().seal_step(&next) {
                Ok(step) => {
                    let by = desk::words_of(&next);
                    LoginRefusal::SecondStep(SecondStep { step, by })
                }
                Err(error) => LoginRefusal::Denied(error.to_string()),
            },
        }
    }

    /// The first step that a client shows again, and whose it was.
    fn first_step(&self, step: &str) -> Result<(NextStep, Arc<Person>), LoginRefusal> {
        let next = self.gate().open_step(step).map_err(|_| begin_again())?;
        let person = self.directory.person(next.person_id()).ok_or_else(begin_again)?;
        Ok((next, person))
    }

    async fn signed_in(&self, shown: SignIn<'_>, from: IpAddr) -> Result<Identity, LoginRefusal> {
        let mut protocol = Protocol::Browser;
        let login = match shown {
            SignIn::Password { name, password } => {
                // A program that begins a session with its app password has what that is for.
                if AppPasswordText::parse(password).is_some() {
                    protocol = Protocol::Http;
                }
                let approach = Approach::protected(protocol, from);
                match self.logins.recall(name, password, &approach) {
                    Some(login) => Ok(login),
                    None => self.logins.verify(name, password, &approach).await,
                }
            }
            SignIn::Code { step, code } => {
                let (first, person) = self.first_step(step)?;
                let approach = Approach::protected(Protocol::Browser, from);
                let proof = Proof::Code { first: &first, code };
                self.logins.prove(&person.short_name, None, proof, &approach).await
            }
            SignIn::Passkey { step, challenge, response } => {
                let login = self.with_passkey(step, (challenge, response), from).await?;
                return Ok(self.identity(&login, protocol, None));
            }
        };
        let login = login.map_err(|error| self.refusal(error))?;
        Ok(self.identity(&login, protocol, None))
    }

    fn ungranted(&self, person: &Person) -> Identity {
        Identity::with_groups(&person.short_name, &person.roles, &self.directory.groups_of(person))
    }

    /// Ends a session of which somebody has a copy: nobody can tell who of both is the thief.
    fn revoke_copied(&self, person: &Person, session: scrinium_directory::Session, from: IpAddr) {
        tracing::warn!(person = person.id, address = %from, "an old token of a session was used: the session is ended");
        let details = serde_json::json!({"reason": "a token was used that had been replaced"});
        let entry = AuditEntry {
            action: AuditAction::SessionRevoked,
            target: &person.id,
            person: Some(&person.short_name),
            address: Some(from),
            details: Some(&details),
        };
        Audit::record(&self.log, &entry);
        let (revocations, now_s) = (Arc::clone(&self.revocations), self.clock.now_s());
        // It waits for the disk, which anyone who asks must not.
        let revoke = move || {
            if let Err(error) = revocations.add(&session, now_s) {
                tracing::error!(%error, "a session that is over would be good again after a restart");
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(revoke)),
            Err(_) => revoke(),
        }
    }

    /// The person and the session of a token that is genuine, not too old and not over.
    fn find(&self, token: &str) -> Option<(Arc<Person>, scrinium_directory::Session)> {
        let person = self.directory.person(&SessionKeeper::claimed_person(token).ok()?)?;
        let session = self.sessions.check(token, &person, self.clock.now_s()).ok()?;
        let is_over = self.revocations.holds(&session.name, &session.person_id, session.begun_s);
        (!is_over).then_some((person, session))
    }
}

/// By which protocol somebody comes in.
const fn protocol_of_service(service: Service) -> Protocol {
    match service {
        Service::Documents => Protocol::Http,
        Service::Calendars => Protocol::CalDav,
        Service::Contacts => Protocol::CardDav,
    }
}

impl Authenticator for People {
    fn recall(&self, name: &str, password: &str, service: Service, from: IpAddr) -> Option<Identity> {
        let protocol = protocol_of_service(service);
        let login = self.logins.recall(name, password, &Approach::protected(protocol, from))?;
        Some(self.identity(&login, protocol, None))
    }

    fn verify<'a>(
        &'a self,
        name: &'a str,
        password: &'a str,
        service: Service,
        from: IpAddr,
    ) -> Verification<'a> {
        let protocol = protocol_of_service(service);
        Box::pin(async move {
            match self.logins.verify(name, password, &Approach::protected(protocol, from)).await {
                Ok(login) => Ok(self.identity(&login, protocol, None)),
                Err(error) => Err(self.refusal(error)),
            }
        })
    }

    fn hash<'a>(&'a self, id: &'a str, password: &'a str, from: IpAddr) -> Hashing<'a> {
        Box::pin(async move {
            let salt = self.directory.scram_salt(id);
            let hashed = self.logins.hash(password, salt, from).await.map_err(|error| match error {
                HashError::Busy { retry_after } => LoginRefusal::Busy { retry_after },
                HashError::Password(error) => LoginRefusal::Denied(error.to_string()),
            })?;
            let bytes = hashed.to_bytes().map_err(|error| LoginRefusal::Denied(error.to_string()))?;
            Ok(Bytes::from(bytes))
        })
    }

    fn sign_in<'a>(&'a self, shown: SignIn<'a>, from: IpAddr) -> Verification<'a> {
        Box::pin(self.signed_in(shown, from))
    }

    fn takes_tokens(&self) -> bool {
        self.services.are_known() || self.provider.as_ref().is_some_and(|provider| provider.takes_tokens())
    }

    fn bearer<'a>(&'a self, token: &'a str, from: IpAddr) -> Verification<'a> {
        Box::pin(self.by_bearer(token, from))
    }

    fn takes_proxied(&self) -> bool {
        self.services.takes_proxied()
    }

    fn proxied(&self, named: &ProxiedName<'_>, from: IpAddr) -> Result<Identity, LoginRefusal> {
        self.by_proxy(named, from)
    }

    fn begin_at_provider<'a>(&'a self, next: &'a str) -> ProviderBeginning<'a> {
        Box::pin(self.sent_to_provider(next))
    }

    fn end_at_provider<'a>(&'a self, sealed: &'a str, query: &'a str, from: IpAddr) -> ProviderEnding<'a> {
        Box::pin(self.back_from_provider(sealed, query, from))
    }

    fn offers_passkeys(&self) -> bool {
        self.party.is_some()
    }

    fn passkey_request(&self, step: Option<&str>) -> Result<serde_json::Value, LoginRefusal> {
        self.ask_for_passkey(step)
    }

    fn credentials<'a>(
        &'a self,
        of: CredentialsOf<'a>,
        request: CredentialRequest,
        from: IpAddr,
    ) -> CredentialWork<'a> {
        Box::pin(self.serve_desk(of, request, from))
    }

    fn open_session(&self, identity: &Identity) -> SessionToken {
        let granted = identity.grant::<Grant>();
        let person = granted.and_then(|grant| self.directory.person(&grant.person_id));
        let (Some(person), Some(grant)) = (person.filter(|_| self.holds(identity)), granted) else {
            // Somebody who left the directory in this moment gets a token that opens nothing.
            return SessionToken { token: String::new(), max_age_seconds: 0 };
        };
        // Behind those that were ended in this second.
        let now_s = self.clock.now_s().max(self.revocations.begins_after(&person.id));
        SessionToken {
            token: self.sessions.begin(&person, &grant.by, now_s),
            max_age_seconds: self.sessions.keep_for(&person, now_s, now_s).as_secs(),
        }
    }

    fn session(&self, token: &str, from: IpAddr, agent: &str) -> Option<Session> {
        let (person, session) = self.find(token)?;
        let now_s = self.clock.now_s();
        if self.sessions.note_use(&session, now_s) == SessionUse::Copied {
            self.revoke_copied(&person, session, from);
            return None;
        }
        let protocol = protocol_of(&session.by);
        let approach = Approach::protected(protocol, from);
        let proof = session_proof(&person.id, &session.by);
        let login = self.logins.session(&person, &proof, &approach).ok()?;
        self.open_sessions.note(&session, now_s, (from, agent));
        let renewed = session.renew.then(|| SessionToken {
            token: self.sessions.renew(&person, &session, now_s),
            max_age_seconds: self.sessions.keep_for(&person, session.begun_s, now_s).as_secs(),
        });
        let scrinium_directory::Session { name, begun_s, ends_s, .. } = session;
        Some(Session {
            identity: self.identity(&login, protocol, Some(GrantedSession { name, begun_s, ends_s })),
            renewed,
        })
    }

    fn close_session(&self, token: &str) -> io::Result<()> {
        match self.find(token) {
            Some((_, session)) => self.revocations.add(&session, self.clock.now_s()),
            None => Ok(()),
        }
    }

    fn holds(&self, identity: &Identity) -> bool {
        if let Some(grant) = identity.grant::<TokenGrant>() {
            return self.token_holds(grant);
        }
        let Some(grant) = identity.grant::<Grant>() else { return true };
        let is_same = |person: Arc<Person>| {
            let approach = Approach::protected(grant.protocol, std::net::Ipv4Addr::LOCALHOST.into());
            person.standing() == grant.standing
                && self.ungranted(&person).roles() == identity.roles()
                && self.logins.session(&person, &grant.proof(), &approach).is_ok()
        };
        self.directory.person(&grant.person_id).is_some_and(is_same)
            && grant.ends_s.is_none_or(|ends_s| ends_s > self.clock.now_s())
            && grant.session.as_ref().is_none_or(|session| {
                session.ends_s > self.clock.now_s()
                    && !self.revocations.holds(&session.name, &grant.person_id, session.begun_s)
            })
    }

    fn changed_people(&self, database: &str, id: Option<&str>, by: &Identity) -> Vec<PersonChange> {
        let Some(person) = by.name().filter(|_| self.keeps_people(database)) else { return Vec::new() };
        let mut changes = Vec::new();
        for WrittenChange { change, others } in self.directory.take_changes(id, person) {
            changes.extend(changes_of(&change).into_iter().map(|told| among(told, person, &others)));
        }
        changes
    }

    fn changed_otherwise(&self) -> Vec<PersonChange> {
        self.directory.take_old_changes(NOBODYS_AFTER).iter().flat_map(changes_of).collect()
    }

    fn keeps_people(&self, database: &str) -> bool {
        database == DIRECTORY_DATABASE
    }

    fn users_database(&self) -> Option<&str> {
        Some(DIRECTORY_DATABASE)
    }

    fn own_fields(&self) -> &'static [&'static str] {
        &OWN_FIELDS
    }

    fn person_document(&self, name: &str) -> Option<String> {
        match self.directory.find(name) {
            Found::Person(person) if person.short_name == name => Some(person.id.clone()),
            _ => None,
        }
    }

    fn changes(&self) -> u64 {
        self.directory.changes().wrapping_add(self.revocations.changes() << 48)
    }
}

/// How long after a session began it may change what lets its person in.
const FRESH_S: u64 = 10 * 60;

impl Grant {
    /// Whether somebody has just shown that it is them: by a session that began a moment ago, or in the request itself.
    fn is_fresh(&self, now_s: u64) -> bool {
        self.session.as_ref().is_none_or(|session| now_s.saturating_sub(session.begun_s) < FRESH_S)
    }

    /// Whether it is a program's, which manages nothing of its person's credentials.
    const fn is_of_program(&self) -> bool {
        self.by.app_password.is_some() || self.is_token
    }
}

/// Whether somebody may set the password of the person with this id, as far as it depends on what they have shown.
pub(crate) fn may_set_password(identity: &Identity, id: &str, now_s: u64) -> Result<(), &'static str> {
    match shown(identity, id, now_s) {
        Shown::Enough => Ok(()),
        Shown::Program => Err("An app password or a token does not set its person's password: sign in."),
        Shown::Stale => Err("For another password, sign in again: your session began too long ago."),
    }
}

/// The same for what becomes of the mail that the person gets.
pub(crate) fn may_sort_mail(identity: &Identity, id: &str, now_s: u64) -> Result<(), MailRulesRefusal> {
    match shown(identity, id, now_s) {
        Shown::Enough => Ok(()),
        Shown::Program => Err(MailRulesRefusal::Forbidden(
            "An app password or a token does not say what becomes of its person's mail: sign in.".to_owned(),
        )),
        Shown::Stale => Err(MailRulesRefusal::Stale),
    }
}

/// The same for where mail of the person goes, and who acts for them.
pub(crate) fn may_open_mail(identity: &Identity, id: &str, now_s: u64) -> Result<(), &'static str> {
    match shown(identity, id, now_s) {
        Shown::Enough => Ok(()),
        Shown::Program => Err(
            "An app password or a token does not say where its person's mail goes, or who acts for them: sign in.",
        ),
        Shown::Stale => Err(
            "To forward mail, or to let somebody act for you, sign in again: your session began too long ago.",
        ),
    }
}

/// What somebody has shown of being who they are.
enum Shown {
    Enough,
    /// They came by an app password or a token, and it is about its own person.
    Program,
    /// Their session began too long ago.
    Stale,
}

fn shown(identity: &Identity, id: &str, now_s: u64) -> Shown {
    if identity.grant::<TokenGrant>().is_some_and(|grant| grant.is_of(id)) {
        return Shown::Program;
    }
    match identity.grant::<Grant>() {
        Some(grant) if grant.is_of_program() && grant.person_id == id => Shown::Program,
        Some(grant) if !grant.is_fresh(now_s) => Shown::Stale,
        _ => Shown::Enough,
    }
}

fn begin_again() -> LoginRefusal {
    let answer = scrinium_credentials::Answer::BeginAgain;
    LoginRefusal::Denied(answer.text(Protocol::Browser).to_owned())
}

/// Who passkeys know the server as: the host of the address at which people sign in.
fn party(settings: &Settings, server_name: &str) -> Option<RelyingParty> {
    let origin = settings.sign_in.url.trim_end_matches('/');
    let host = origin.split_once("://").map(|(_, host)| host)?;
    let id = host.rsplit_once(':').map_or(host, |(host, _)| host);
    let name = if server_name.is_empty() { id } else { server_name };
    Some(RelyingParty { id: id.to_owned(), name: name.to_owned(), origins: vec![origin.to_owned()] })
}

/// Says where a change may be one of several persons who wrote the document at once.
fn among(mut change: PersonChange, person: &str, others: &[Arc<str>]) -> PersonChange {
    if !others.is_empty() {
        let names: Vec<&str> = std::iter::once(person).chain(others.iter().map(|other| &**other)).collect();
        let details = change.details.get_or_insert_with(|| json!({}));
        if let Some(members) = details.as_object_mut() {
            members.insert("by_one_of".to_owned(), json!(names));
        }
    }
    change
}

/// What is to be on record of a change: nothing of it is a secret.
fn changes_of(change: &DirectoryChange) -> Vec<PersonChange> {
    let told = |action, details| PersonChange { action, id: change.id.clone(), details };
    if let Some((before, after)) = change.groups() {
        let members = |group: Option<&Arc<Group>>| group.map(|group| group.members.len());
        let details = json!({"members_before": members(before), "members": members(after)});
        return vec![told(AuditAction::GroupChanged, Some(details))];
    }
    let shown = |person: &Person| Some(json!({"name": person.short_name, "roles": person.roles}));
    let mut changes = Vec::new();
    match change.people() {
        Some((None, Some(person))) => changes.push(told(AuditAction::PersonCreated, shown(person))),
        Some((Some(person), None)) => changes.push(told(AuditAction::PersonDeleted, shown(person))),
        Some((Some(before), Some(after))) => {
            if before.roles != after.roles {
                let details = json!({"before": before.roles, "roles": after.roles});
                changes.push(told(AuditAction::RolesChanged, Some(details)));
            }
            let mark = |person: &Person| person.credentials.password().map(PasswordCredential::mark);
            if mark(before) != mark(after) {
                changes.push(told(AuditAction::PasswordChanged, None));
            }
            let parts = changed_parts(before, after);
            if !parts.is_empty() {
                changes.push(told(AuditAction::PersonChanged, Some(json!({"changed": parts}))));
            }
        }
        Some((None, None)) | None => {}
    }
    changes
}

/// What is on record of a person's other fields: by which names mail reaches them, where it goes, and who acts for them.
fn changed_parts(before: &Person, after: &Person) -> Vec<&'static str> {
    let names = |person: &Person| (person.short_name.clone(), person.full_names.clone());
    let addresses = |person: &Person| (person.internet_address.clone(), person.addresses.clone());
    let parts = [
        ("names", names(before) != names(after)),
        ("addresses", addresses(before) != addresses(after)),
        ("mail file", before.mail_file != after.mail_file),
        ("forwarding", before.forwarding != after.forwarding),
        ("delegates", before.delegates != after.delegates),
        ("account", before.account != after.account),
    ];
    parts.into_iter().filter(|(_, is_changed)| *is_changed).map(|(part, _)| part).collect()
}

fn hashing(settings: &Settings) -> HashingOptions {
    let usual = HashingOptions::default();
    let set = &settings.login;
    let threads = if set.hashing_threads == 0 { usual.threads } else { set.hashing_threads };
    let waiting = if set.waiting == 0 { threads.saturating_mul(40) } else { set.waiting };
    // Nothing that anybody else does waits for a hash.
    HashingOptions { threads, waiting, on_start: scrinium_store::come_after_others, ..usual }
}

fn keeper(secret: &[u8], settings: &Settings) -> SessionKeeper {
    let times = SessionTimes {
        timeout: settings.session.timeout,
        most: settings.session.max_age,
        most_of_administrators: settings.session.max_age_administrators,
    };
    SessionKeeper::new(secret, times)
}

fn revocations(data_dir: &Path, clock: &Clock) -> Result<Revocations, Failure> {
    let path = data_dir.join(REVOKED_FILE);
    Revocations::open(&path, clock.now_s()).map_err(|error| {
        Failure::Work(format!("cannot keep the list of sessions that are over, {}: {error}", path.display()))
    })
}

/// The secret in the file, which is made if it is missing or too short to be one.
fn secret(path: &Path) -> io::Result<Vec<u8>> {
    match std::fs::read(path) {
        Ok(secret) if secret.len() >= SECRET_BYTES => return Ok(secret),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let secret: [u8; SECRET_BYTES] = rand::random();
    files::write_private(path, &secret)?;
    Ok(secret.to_vec())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::Arc;

    use scrinium_credentials::Protocol;
    use scrinium_directory::{SessionName, SessionOrigin};
    use scrinium_http::{Identity, MailRulesRefusal};

    use super::{FRESH_S, Grant, GrantedSession, may_set_password, may_sort_mail};

    fn who(app_password: Option<&str>, begun_s: Option<u64>) -> Identity {
        let grant = Grant {
            person_id: "person:ada".to_owned(),
            standing: [0; 32],
            by: SessionOrigin { has_second_factor: false, app_password: app_password.map(str::to_owned) },
            protocol: Protocol::Browser,
            is_token: false,
            ends_s: None,
            session: begun_s.map(|begun_s| GrantedSession {
                name: SessionName::default(),
                begun_s,
                ends_s: u64::MAX,
            }),
        };
        Identity::new("ada", Vec::new()).with_grant(Arc::new(grant))
    }

    #[test]
    fn a_cookie_that_was_taken_sets_no_password_once_its_session_is_old() {
        let begun_s = 1_790_000_000;
        let may =
            |who: &Identity, id: &str, later_s: u64| may_set_password(who, id, begun_s + later_s).is_ok();
        let session = who(None, Some(begun_s));
        assert!(may(&session, "person:ada", FRESH_S - 1) && !may(&session, "person:ada", FRESH_S));
        assert!(!may(&session, "person:bob", FRESH_S), "nor an administrator's somebody else's");
        assert!(may(&who(None, None), "person:ada", FRESH_S), "the password itself came with the request");
        let program = who(Some("k3f9"), None);
        assert!(!may(&program, "person:ada", 0) && may(&program, "person:bob", 0));
        assert!(may(&Identity::new("ada", Vec::new()), "person:ada", FRESH_S));
        let sorts = |who: &Identity, later_s: u64| may_sort_mail(who, "person:ada", begun_s + later_s);
        assert!(sorts(&session, FRESH_S - 1).is_ok());
        assert!(
            matches!(sorts(&session, FRESH_S), Err(MailRulesRefusal::Stale)),
            "a page has them sign in again"
        );
        assert!(matches!(sorts(&program, 0), Err(MailRulesRefusal::Forbidden(_))), "that helps no program");
    }
}
