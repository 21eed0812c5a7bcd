//! May this person with this proof come in by this protocol, now? One answer for all protocols.
//!
//! A [`Gate`] decides ([`Gate::decide`]) about a [`Question`]: the protocol, the person whose name was said with their
//! [`StoredCredentials`] and how they stand, the proof, and the time. The [`Decision`] says what the client may hear, what
//! the log says, and what changes in the record. A proof is a password, an app password, an exchange of SCRAM, a code, a passkey, a
//! provider's token or a session; those that take several messages to make come out of [`sasl`], [`passkey`], [`token`] and
//! [`oidc`], as values that nothing else can make.
//!
//! ```
//! use scrinium_credentials::{
//!     Candidate, Decision, Gate, GateOptions, NewAppPassword, Proof, Protection, Protocol, ProtocolSet, Question, Standing,
//!     StoredCredentials,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gate = Gate::new(b"the server's secret", GateOptions::default())?;
//! let now_ms = 1_790_000_000_000;
//!
//! // What is stored of Ada: an app password for her phone's mail.
//! let mut credentials = StoredCredentials::default();
//! let new = NewAppPassword { name: "phone", scope: ProtocolSet::mail(), expires_ms: None };
//! let shown_once = credentials.create_app_password(new, None, now_ms)?.show();
//!
//! let ada = Candidate {
//!     id: "person:ada",
//!     names: &["ada", "ada@example.org"],
//!     credentials: &credentials,
//!     standing: Standing::default(),
//! };
//! let question = Question {
//!     protocol: Protocol::Imap,
//!     protection: Protection::Protected,
//!     person: Some(ada),
//!     act_as: None,
//!     locked_until_ms: None,
//!     proof: Proof::Password(&shown_once),
//!     now_ms,
//! };
//! assert!(!gate.is_slow(&question), "no argon2id for an app password");
//! let Decision::Admitted(admission) = gate.decide(&question) else { panic!("it is hers") };
//!
//! // Her phone's password is for mail alone.
//! let question = Question { protocol: Protocol::CalDav, ..question };
//! assert!(!gate.decide(&question).is_admitted());
//!
//! for change in &admission.changes {
//!     credentials.apply(change)?; // Under the record's lock, and stored.
//! }
//! # Ok(())
//! # }
//! ```
//!
//! *Invariant*: pure: no sockets, no storage, no clock; the time is handed in. Whatever the bytes, nothing panics, and each
//! length, depth and number is bounded before memory or work goes into it. Who has not shown a right proof learns of nobody whether
//! they are there, and no secret is stored, shown or logged.

#![forbid(unsafe_code)]

mod app_password;
mod der;
mod gate;
mod names;
pub mod oidc;
pub mod passkey;
mod password;
mod protocol;
mod public_key;
pub mod sasl;
mod secret;
mod stored;
pub mod token;
mod totp;

pub use app_password::{
    AppPassword, AppPasswordError, AppPasswordText, LONGEST_LABEL, MOST_APP_PASSWORDS, NewAppPassword,
    USE_GRAIN_MS,
};
pub use gate::{
    Admission, Answer, Candidate, Decision, Gate, GateOptions, Method, NextStep, Proof, Protection, Question,
    Reason, Refusal, SECOND_STEP_MS, SecondStep, SessionProof, Standing,
};
pub use names::{LONGEST_NAME, LONGEST_PASSWORD, NameError, prepare_name, prepare_password};
pub use password::{HashedPassword, PasswordCredential, PasswordError, PasswordMark};
pub use protocol::{Protocol, ProtocolSet};
pub use public_key::PublicKey;
pub use secret::{RandomError, SealError, SecretBytes};
pub use stored::{
    Change, ChangeError, MOST_LINKS, PreparedAppPassword, ProviderLink, StoredCredentials, StoredError,
};
pub use totp::{RECOVERY_CODES, RecoveryCodes, STEP_S, Totp, TotpHash, code_of_step};
