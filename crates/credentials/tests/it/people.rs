//! A gate and a person with one of everything, as tests need them.

use std::sync::LazyLock;

use scrinium_credentials::{
    AppPasswordText, Candidate, Gate, GateOptions, NewAppPassword, Proof, Protection, Protocol, ProtocolSet,
    Question, Standing, StoredCredentials,
};

/// In July 2026.
pub(crate) const NOW_MS: u64 = 1_784_000_000_000;
pub(crate) const PASSWORD: &str = "correct horse battery";
pub(crate) const ADA: &str = "person:ada";
pub(crate) const NAMES: &[&str] = &["ada", "ada@example.org"];

/// The least of rounds, so that tests are quick.
pub(crate) const ROUNDS: u32 = 4096;

pub(crate) static GATE: LazyLock<Gate> = LazyLock::new(|| {
    Gate::new(b"a secret of tests", GateOptions { scram_iterations: Some(ROUNDS) }).unwrap()
});

/// Ada has a password and an app password for everything but the browser.
pub(crate) static ADA_STORED: LazyLock<(StoredCredentials, AppPasswordText)> = LazyLock::new(|| {
    let mut stored = StoredCredentials::default();
    stored.set_password(PASSWORD, Some(ROUNDS), NOW_MS).unwrap();
    let text = stored.create_app_password(everywhere("all"), Some(ROUNDS), NOW_MS).unwrap();
    (stored, text)
});

pub(crate) fn everywhere(name: &str) -> NewAppPassword<'_> {
    NewAppPassword { name, scope: ProtocolSet::all().without(Protocol::Browser), expires_ms: None }
}

pub(crate) const fn ada(credentials: &StoredCredentials, standing: Standing) -> Candidate<'_> {
    Candidate { id: ADA, names: NAMES, credentials, standing }
}

pub(crate) const fn question<'a>(
    protocol: Protocol,
    person: Option<Candidate<'a>>,
    proof: Proof<'a>,
) -> Question<'a> {
    Question {
        protocol,
        protection: Protection::Protected,
        person,
        act_as: None,
        locked_until_ms: None,
        proof,
        now_ms: NOW_MS,
    }
}
