//! How it is decided.
//!
//! The order is what keeps secrets: what is asked by a way that is not offered, or over an open connection, is refused before
//! anything is looked up; a locked name before a guess is checked; how a person stands is said only to who has shown the
//! right proof, and of a password not even that where a second factor is on and cannot be asked for.

use crate::app_password::{AppPassword, AppPasswordText, USE_GRAIN_MS};
use crate::passkey::PasskeyProof;
use crate::protocol::Protocol;
use crate::sasl::{ScramKey, ScramProof};
use crate::stored::Change;
use crate::token::VerifiedToken;

use super::Gate;
use super::answer::{Admission, Answer, Decision, Method, NextStep, Reason, Refusal, SecondStep, mark_of};
use super::question::{Candidate, Proof, Protection, Question, SessionProof};

/// A proof that is right.
struct Shown {
    method: Method,
    app_password: Option<String>,
    has_second_factor: bool,
    changes: Vec<Change>,
    is_outdated: bool,
}

impl Shown {
    const fn by(method: Method) -> Self {
        Self { method, app_password: None, has_second_factor: false, changes: Vec::new(), is_outdated: false }
    }
}

impl Gate {
    /// Whether deciding takes an argon2id, some 20 ms and 19 MiB, and is for the threads that hash. Everything else takes
    /// microseconds.
    #[must_use]
    pub fn is_slow(&self, question: &Question<'_>) -> bool {
        let is_main =
            matches!(question.proof, Proof::Password(text) if AppPasswordText::parse(text).is_none());
        is_main && before_looking(question).is_none()
    }

    /// Decides.
    #[must_use]
    pub fn decide(&self, question: &Question<'_>) -> Decision {
        if let Some(refusal) = before_looking(question) {
            return Decision::Refused(refusal);
        }
        let shown = match self.check(question) {
            Ok(shown) => shown,
            Err(reason) => return refused(answer_to(reason), reason),
        };
        let Some(person) = &question.person else {
            return refused(Answer::WrongCredentials, Reason::NobodyThere);
        };
        let lacks_factor = person.has_second_factor_on() && !shown.has_second_factor;
        if let Some(reason) = reason_of_missing_factor(question.protocol, &shown).filter(|_| lacks_factor) {
            return refused(Answer::WrongCredentials, reason);
        }
        if let Some(refusal) = by_standing(question, person) {
            return Decision::Refused(refusal);
        }
        if lacks_factor && shown.method != Method::AppPassword {
            return Decision::Next(NextStep {
                person_id: person.id.to_owned(),
                method: shown.method,
                shown_ms: question.now_ms,
                mark: mark_of(person.credentials),
                by: second_steps(person),
            });
        }
        Decision::Admitted(Admission {
            person_id: person.id.to_owned(),
            method: shown.method,
            app_password: shown.app_password,
            has_second_factor: shown.has_second_factor,
            changes: shown.changes,
            is_outdated: shown.is_outdated,
        })
    }

    fn check(&self, question: &Question<'_>) -> Result<Shown, Reason> {
        let person = question.person.as_ref();
        match question.proof {
            Proof::Password(text) => match AppPasswordText::parse(text) {
                Some(text) => check_app_password(question, &text),
                None => self.check_password(person, text),
            },
            Proof::Remembered(mark) => {
                let stored = person.and_then(|person| person.credentials.password());
                let is_same = stored.is_some_and(|stored| stored.mark() == *mark);
                if is_same { Ok(Shown::by(Method::Password)) } else { Err(Reason::WrongProof) }
            }
            Proof::CheckedElsewhere => Ok(Shown::by(Method::Password)),
            Proof::Scram(proof) => check_scram(question, proof),
            Proof::Code { first, code } => check_code(question, first, code),
            Proof::SecondPasskey { first, passkey } => {
                let person = check_first(question, first)?;
                let changes = vec![passkey_change(person, passkey, question.now_ms)?];
                Ok(Shown { has_second_factor: true, changes, ..Shown::by(first.method) })
            }
            Proof::Passkey(passkey) => {
                let person = person.ok_or(Reason::NobodyThere)?;
                let changes = vec![passkey_change(person, passkey, question.now_ms)?];
                // Without PIN or finger it is what one has, and nothing else: not enough alone.
                if !passkey.user_verified {
                    return Err(Reason::PasskeyWithoutVerification);
                }
                Ok(Shown { has_second_factor: true, changes, ..Shown::by(Method::Passkey) })
            }
            Proof::Token(token) => check_token(person, token),
            Proof::Session(session) => check_session(question, session),
        }
    }

    /// Hashes once, whatever there is.
    fn check_password(&self, person: Option<&Candidate<'_>>, text: &str) -> Result<Shown, Reason> {
        let stored = person.and_then(|person| person.credentials.password());
        let is_right = stored.unwrap_or(&self.nobody).verify(text);
        match (person, stored) {
            (None, _) => Err(Reason::NobodyThere),
            (Some(_), None) => Err(Reason::NoSuchCredential),
            (Some(_), Some(stored)) if is_right => Ok(Shown {
                is_outdated: stored.is_outdated(self.options.scram_iterations.is_some()),
                ..Shown::by(Method::Password)
            }),
            (Some(_), Some(_)) => Err(Reason::WrongProof),
        }
    }
}

/// What is refused before anybody is looked at, so that it says nothing of anybody.
fn before_looking(question: &Question<'_>) -> Option<Refusal> {
    let refusal = |answer, reason| Some(Refusal { answer, reason });
    if !is_taken(question.protocol, &question.proof) {
        return refusal(Answer::NotOffered, Reason::KindNotTaken);
    }
    if question.protection == Protection::Open && question.proof.shows_secret() {
        return refusal(Answer::Encrypt, Reason::NotEncrypted);
    }
    let until_ms = question.locked_until_ms.filter(|until_ms| *until_ms > question.now_ms)?;
    // What cannot be guessed is no guess: else a stranger could lock somebody's phone out.
    if question.proof.is_guessable() { refusal(Answer::Later(until_ms), Reason::Locked) } else { None }
}

/// Which proofs a protocol takes.
fn is_taken(protocol: Protocol, proof: &Proof<'_>) -> bool {
    let is_browser = protocol == Protocol::Browser;
    match proof {
        // An app password is for programs.
        Proof::Password(text) => !is_browser || AppPasswordText::parse(text).is_none(),
        Proof::Remembered(_) | Proof::CheckedElsewhere => true,
        Proof::Scram(_) => protocol.has_sasl(),
        Proof::Code { .. } | Proof::SecondPasskey { .. } | Proof::Passkey(_) => protocol.has_second_step(),
        // An ID token is the answer to a browser's sign-in; an access token is what programs show.
        Proof::Token(token) => token.is_identity == is_browser,
        Proof::Session(_) => is_browser || protocol == Protocol::Http,
    }
}

impl Proof<'_> {
    /// Whether somebody could come in by trying, so that attempts are counted and a lock holds.
    #[must_use]
    pub fn is_guessable(&self) -> bool {
        match self {
            Self::Password(text) => AppPasswordText::parse(text).is_none(),
            Self::Scram(proof) => !matches!(proof.key, Some(ScramKey::AppPassword(_))),
            Self::Code { .. } | Self::Remembered(_) | Self::CheckedElsewhere => true,
            Self::SecondPasskey { .. } | Self::Passkey(_) | Self::Token(_) | Self::Session(_) => false,
        }
    }
}

/// Why a proof is not enough where a second factor is on and cannot be asked for now.
fn reason_of_missing_factor(protocol: Protocol, shown: &Shown) -> Option<Reason> {
    match shown.method {
        Method::Session => Some(Reason::SessionWithoutSecondFactor),
        _ if protocol.has_second_step() => None,
        Method::Password => Some(Reason::AppPasswordNeeded),
        Method::Token => Some(Reason::TokenWithoutSecondFactor),
        Method::AppPassword | Method::Passkey => None,
    }
}

fn by_standing(question: &Question<'_>, person: &Candidate<'_>) -> Option<Refusal> {
    let standing = &person.standing;
    let (answer, reason) = if standing.is_disabled {
        (Answer::Disabled, Reason::Disabled)
    } else if standing.expires_ms.is_some_and(|end_ms| question.now_ms >= end_ms) {
        (Answer::Ended, Reason::Ended)
    } else if !standing.protocols.has(question.protocol) {
        (Answer::NotByThis, Reason::ProtocolNotAllowed)
    } else if question.act_as.is_some_and(|other| !person.names.contains(&other)) {
        (Answer::NotAsOther, Reason::ActingAsOther)
    } else {
        return None;
    };
    Some(Refusal { answer, reason })
}

fn second_steps(person: &Candidate<'_>) -> Vec<SecondStep> {
    let mut steps = Vec::new();
    let has_recovery = person.credentials.recovery().is_some_and(|codes| codes.left() > 0);
    if person.credentials.totp().is_some() || has_recovery {
        steps.push(SecondStep::Code);
    }
    if !person.credentials.passkeys().is_empty() {
        steps.push(SecondStep::Passkey);
    }
    if steps.is_empty() {
        steps.push(SecondStep::SetUp);
    }
    steps
}

fn check_app_password(question: &Question<'_>, text: &AppPasswordText) -> Result<Shown, Reason> {
    let person = question.person.as_ref().ok_or(Reason::NobodyThere)?;
    let stored = person.credentials.app_password(text.id()).ok_or(Reason::NoSuchCredential)?;
    if stored.verify(text) { app_password_shown(stored, question) } else { Err(Reason::WrongProof) }
}

/// An app password whose secret was shown.
fn app_password_shown(stored: &AppPassword, question: &Question<'_>) -> Result<Shown, Reason> {
    let now_ms = question.now_ms;
    if stored.revoked_ms.is_some() {
        return Err(Reason::Revoked);
    }
    if !stored.is_valid(now_ms) {
        return Err(Reason::AppPasswordExpired);
    }
    if !stored.is_for(question.protocol, now_ms) {
        return Err(Reason::OutOfScope);
    }
    let is_due = stored.used_ms.is_none_or(|used_ms| now_ms.saturating_sub(used_ms) >= USE_GRAIN_MS);
    let change = is_due.then(|| Change::AppPassword { id: stored.id.clone(), used_ms: now_ms });
    let id = Some(stored.id.clone());
    Ok(Shown { app_password: id, changes: change.into_iter().collect(), ..Shown::by(Method::AppPassword) })
}

fn check_scram(question: &Question<'_>, proof: &ScramProof) -> Result<Shown, Reason> {
    let person = question.person.as_ref().ok_or(Reason::NobodyThere)?;
    if proof.person_id.as_deref() != Some(person.id) {
        return Err(Reason::OtherPerson);
    }
    match &proof.key {
        None => Err(Reason::WrongProof),
        Some(ScramKey::Password) => Ok(Shown::by(Method::Password)),
        Some(ScramKey::AppPassword(id)) => {
            // It may have been revoked while the exchange went on.
            let stored = person.credentials.app_password(id).ok_or(Reason::NoSuchCredential)?;
            app_password_shown(stored, question)
        }
    }
}

fn check_first<'a>(question: &'a Question<'_>, first: &NextStep) -> Result<&'a Candidate<'a>, Reason> {
    let person = question.person.as_ref().ok_or(Reason::NobodyThere)?;
    if first.person_id != person.id {
        return Err(Reason::OtherPerson);
    }
    let is_open = first.is_open(person.credentials, question.now_ms);
    if is_open { Ok(person) } else { Err(Reason::FirstStepTooOld) }
}

fn check_code(question: &Question<'_>, first: &NextStep, code: &str) -> Result<Shown, Reason> {
    let person = check_first(question, first)?;
    let step = person.credentials.totp().and_then(|totp| totp.step_of(code, question.now_ms));
    let place = person.credentials.recovery().and_then(|codes| codes.place_of(code));
    let change = step.map(Change::TotpStep).or_else(|| place.map(Change::RecoveryCode));
    let change = change.ok_or(Reason::WrongCode)?;
    Ok(Shown { has_second_factor: true, changes: vec![change], ..Shown::by(first.method) })
}

fn passkey_change(person: &Candidate<'_>, proof: &PasskeyProof, now_ms: u64) -> Result<Change, Reason> {
    let is_theirs = person.credentials.passkeys().iter().any(|passkey| passkey.id == proof.credential_id);
    let change = Change::Passkey {
        id: proof.credential_id.clone(),
        sign_count: proof.sign_count,
        is_synced: proof.is_synced,
        used_ms: now_ms,
    };
    if is_theirs { Ok(change) } else { Err(Reason::OtherPerson) }
}

fn check_token(person: Option<&Candidate<'_>>, token: &VerifiedToken) -> Result<Shown, Reason> {
    let person = person.ok_or(Reason::NobodyThere)?;
    let is_linked = person
        .credentials
        .links()
        .iter()
        .any(|link| link.issuer == token.issuer && link.subject == token.subject);
    let is_named = token.name.as_deref().is_some_and(|name| person.names.contains(&name));
    if !is_linked && !is_named {
        return Err(Reason::OtherPerson);
    }
    Ok(Shown { has_second_factor: token.has_second_factor, ..Shown::by(Method::Token) })
}

fn check_session(question: &Question<'_>, session: &SessionProof) -> Result<Shown, Reason> {
    let person = question.person.as_ref().ok_or(Reason::NobodyThere)?;
    if session.person_id != person.id {
        return Err(Reason::OtherPerson);
    }
    if let Some(id) = &session.app_password {
        let stored = person.credentials.app_password(id).ok_or(Reason::NoSuchCredential)?;
        return app_password_shown(stored, question);
    }
    Ok(Shown { has_second_factor: session.has_second_factor, ..Shown::by(Method::Session) })
}

const fn refused(answer: Answer, reason: Reason) -> Decision {
    Decision::Refused(Refusal { answer, reason })
}

/// What the client hears of a proof that is not right, or right and not enough.
const fn answer_to(reason: Reason) -> Answer {
    match reason {
        // The secret is right, and nobody guesses it.
        Reason::OutOfScope => Answer::NotByThis,
        Reason::FirstStepTooOld => Answer::BeginAgain,
        _ => Answer::WrongCredentials,
    }
}
