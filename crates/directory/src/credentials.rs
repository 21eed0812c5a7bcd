//! Deciding who comes in, quickly where a password was right a moment ago.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;
use scrinium_clock::{Clock, milliseconds};
use scrinium_credentials::{
    AppPasswordText, Candidate, Decision, Gate, GateOptions, Method, PasswordMark, Proof, Question,
    prepare_name,
};

use crate::login::Approach;
use crate::lookup::Found;
use crate::names::fold_name;
use crate::record::CredentialRecords;
use crate::{DirectoryError, Person};

/// How credentials are kept.
#[derive(Debug, Clone)]
pub struct CredentialOptions {
    /// How many right answers are remembered, each in some 250 bytes.
    pub remembered: usize,
    /// How long one is remembered after it was last asked for.
    pub remember_for: Duration,
    /// What time it is.
    pub clock: Clock,
    /// The server's secret: what is sealed with it is opened after a restart too.
    pub secret: Vec<u8>,
}

impl Default for CredentialOptions {
    fn default() -> Self {
        Self {
            remembered: 200_000,
            remember_for: Duration::from_hours(1),
            clock: Clock::default(),
            secret: rand::random::<[u8; 32]>().to_vec(),
        }
    }
}

/// Decides about names and proofs.
///
/// A right password is remembered for a while under a keyed digest, so that a client that sends it with every request pays for
/// one hashing. A remembered answer holds only for the very password that it was checked against: once the person has another, or
/// none, the password is hashed again. So it need not end while it is used: 20,000 people hashed again every ten minutes would be
/// 33 hashings a second.
pub struct Credentials {
    records: Arc<dyn CredentialRecords>,
    gate: Gate,
    remembered: Cache<[u8; 32], Arc<Remembered>>,
    remember_for: Duration,
    clock: Clock,
    began: Instant,
    /// Random, of this process alone: a digest in a core dump tells nothing.
    key: [u8; 32],
}

struct Remembered {
    mark: PasswordMark,
    /// When it was last asked for, in milliseconds since the process began to remember.
    used_ms: AtomicU64,
}

/// What somebody says who wants to come in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim<'a> {
    pub(crate) name: &'a str,
    pub(crate) act_as: Option<&'a str>,
    pub(crate) proof: Proof<'a>,
}

impl Credentials {
    /// Decides about the people of `records`.
    ///
    /// # Errors
    /// [`DirectoryError::Hash`] where the system gives no random bytes.
    pub fn new(
        records: Arc<dyn CredentialRecords>,
        options: &CredentialOptions,
    ) -> Result<Self, DirectoryError> {
        let gate = Gate::new(&options.secret, GateOptions::default());
        Ok(Self {
            records,
            gate: gate.map_err(|error| DirectoryError::Hash(error.to_string()))?,
            remembered: Cache::new(options.remembered.max(1)),
            remember_for: options.remember_for,
            clock: options.clock.clone(),
            began: options.clock.instant(),
            key: rand::random(),
        })
    }

    /// What decides, and seals.
    #[must_use]
    pub const fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The clock by which it is decided.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn records(&self) -> &Arc<dyn CredentialRecords> {
        &self.records
    }

    /// The person of a name, if it is one's alone.
    #[must_use]
    pub fn person(&self, name: &str) -> Option<Arc<Person>> {
        match self.records.find(name) {
            Found::Person(person) => Some(person),
            Found::Nobody | Found::Group(_) | Found::MailIn(_) | Found::Several => None,
        }
    }

    /// The person to whom an account at a provider is linked.
    #[must_use]
    pub fn linked_person(&self, issuer: &str, subject: &str) -> Option<Arc<Person>> {
        self.records.linked_person(issuer, subject)
    }

    /// What tells people apart whichever of their names they use: the document's id, or the name itself where it is
    /// nobody's. Guesses are counted under it.
    #[must_use]
    pub fn key_of(&self, name: &str) -> String {
        self.person(name).map_or_else(|| fold_name(name), |person| person.id.clone())
    }

    /// A digest of a name and a proof, so that the same wrong pair is known again.
    #[must_use]
    pub fn attempt(&self, key: &str, proof: &str) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.digest(key, proof);
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// Whether deciding takes a hashing, which is for threads that hash: see [`crate::Logins`].
    pub(crate) fn is_slow(&self, claim: &Claim<'_>, approach: &Approach) -> bool {
        self.gate.is_slow(&self.question(None, claim, approach, None))
    }

    /// Decides. Blocks for some 20 ms where a password is not remembered.
    pub(crate) fn decide(
        &self,
        person: Option<&Person>,
        claim: &Claim<'_>,
        approach: &Approach,
        locked_until_ms: Option<u64>,
    ) -> Decision {
        let known = self.recall(person, claim);
        let recalled = known.as_ref().map_or(claim.proof, Proof::Remembered);
        let claim = Claim { proof: recalled, ..*claim };
        let names =
            if needs_names(&claim) { person.map(prepared_names).unwrap_or_default() } else { Vec::new() };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let candidate = person.map(|person| Candidate {
            id: &person.id,
            names: &names,
            credentials: &person.credentials,
            standing: person.account,
        });
        let decision = self.gate.decide(&self.question(candidate, &claim, approach, locked_until_ms));
        if let (Decision::Admitted(admission), Proof::Password(password), Some(person)) =
            (&decision, claim.proof, person)
            && admission.method == Method::Password
        {
            self.remember(person, password);
        }
        decision
    }

    /// Whether a password was right a moment ago, and is the person's still.
    pub(crate) fn recall(&self, person: Option<&Person>, claim: &Claim<'_>) -> Option<PasswordMark> {
        let (Some(person), Proof::Password(password)) = (person, claim.proof) else { return None };
        let mark = person.credentials.password()?.mark();
        self.remembers(&self.digest(&person.id, password), &mark).then_some(mark)
    }

    fn question<'a>(
        &self,
        person: Option<Candidate<'a>>,
        claim: &Claim<'a>,
        approach: &Approach,
        locked_until_ms: Option<u64>,
    ) -> Question<'a> {
        Question {
            protocol: approach.protocol,
            protection: approach.protection,
            person,
            act_as: claim.act_as,
            locked_until_ms,
            proof: claim.proof,
            now_ms: self.clock.now_ms(),
        }
    }

    fn remember(&self, person: &Person, password: &str) {
        if let Some(stored) = person.credentials.password() {
            let used_ms = AtomicU64::new(self.now_ms());
            let remembered = Arc::new(Remembered { mark: stored.mark(), used_ms });
            self.remembered.insert(self.digest(&person.id, password), remembered);
        }
    }

    fn remembers(&self, digest: &[u8; 32], mark: &PasswordMark) -> bool {
        let Some(remembered) = self.remembered.get(digest) else { return false };
        let now_ms = self.now_ms();
        let unused_ms = now_ms.saturating_sub(remembered.used_ms.load(Ordering::Relaxed));
        let holds = remembered.mark == *mark && Duration::from_millis(unused_ms) < self.remember_for;
        if holds {
            remembered.used_ms.fetch_max(now_ms, Ordering::Relaxed);
        } else {
            self.remembered.remove(digest);
        }
        holds
    }

    fn now_ms(&self) -> u64 {
        milliseconds(self.clock.elapsed(self.began))
    }

    fn digest(&self, id: &str, password: &str) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(id.len() as u64).to_le_bytes()).update(id.as_bytes()).update(password.as_bytes());
        *hasher.finalize().as_bytes()
    }
}

/// Whether an app password was shown: it is known by its form.
pub(crate) fn is_app_password(password: &str) -> bool {
    AppPasswordText::parse(password).is_some()
}

const fn needs_names(claim: &Claim<'_>) -> bool {
    claim.act_as.is_some() || matches!(claim.proof, Proof::Token(_))
}

/// The names that are a person's alone, as protocols prepare them.
fn prepared_names(person: &Person) -> Vec<String> {
    let names = std::iter::once(&person.short_name).chain(&person.full_names).chain(&person.other_names);
    names.chain(&person.internet_address).filter_map(|name| prepare_name(name).ok()).collect()
}
