//! What is answered: to the client, and to the log.

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::protocol::Protocol;
use crate::secret::SecretBytes;
use crate::stored::{Change, StoredCredentials};

/// By what somebody comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The password.
    Password,
    /// An app password.
    AppPassword,
    /// A passkey.
    Passkey,
    /// A provider's token.
    Token,
    /// A session.
    Session,
}

impl Method {
    /// The word that records hold.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::AppPassword => "app password",
            Self::Passkey => "passkey",
            Self::Token => "token",
            Self::Session => "session",
        }
    }
}

/// Somebody comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Who.
    pub person_id: String,
    /// By what.
    pub method: Method,
    /// By which app password.
    pub app_password: Option<String>,
    /// Whether two factors were shown.
    pub has_second_factor: bool,
    /// What changes in their record. The log-in has failed where [`crate::StoredCredentials::apply`] refuses one of these.
    pub changes: Vec<Change>,
    /// Whether the password should be stored again as it is stored today ([`crate::StoredCredentials::set_password`]): the
    /// caller has it at hand.
    pub is_outdated: bool,
}

/// What can be shown in a second step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondStep {
    /// A code of the authenticator, or a recovery code.
    Code,
    /// A passkey.
    Passkey,
    /// Nothing yet: the person sets one up first, and the first step stands for who they are while they do.
    SetUp,
}

/// The first step is done, and a second one is needed. It is kept until then, or sealed ([`crate::Gate::seal_step`]) for the
/// browser to keep. Nothing else than a decision makes one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextStep {
    pub(super) person_id: String,
    pub(super) method: Method,
    pub(super) shown_ms: u64,
    /// What the person's sessions were bound to: with another password or another second factor it is void.
    pub(super) mark: SecretBytes,
    #[serde(skip)]
    pub(super) by: Vec<SecondStep>,
}

impl NextStep {
    /// Who has shown the first proof.
    #[must_use]
    pub fn person_id(&self) -> &str {
        &self.person_id
    }

    /// Whether a second step may follow still: not much later, and not after the password or the second factor has become
    /// another one.
    #[must_use]
    pub fn is_open(&self, credentials: &StoredCredentials, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.shown_ms) < super::SECOND_STEP_MS && self.mark == mark_of(credentials)
    }

    /// What can be shown next, when it was decided.
    #[must_use]
    pub fn by(&self) -> &[SecondStep] {
        &self.by
    }
}

/// A digest of what sessions are bound to.
pub(super) fn mark_of(credentials: &StoredCredentials) -> SecretBytes {
    SecretBytes::new(digest(&SHA256, &credentials.session_mark()).as_ref())
}

/// The decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Somebody comes in.
    Admitted(Admission),
    /// The first proof is right, and a second one is needed.
    Next(NextStep),
    /// Nobody comes in.
    Refused(Refusal),
}

impl Decision {
    /// Whether somebody comes in.
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted(_))
    }
}

/// Nobody comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the client may hear.
    pub answer: Answer,
    /// What the log says.
    pub reason: Reason,
}

/// What a client may hear. Who has not shown a right proof hears nothing of anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Name or proof is wrong, whichever.
    WrongCredentials,
    /// Too many guesses: come back at this time, in milliseconds since 1970.
    Later(u64),
    /// The connection must be encrypted first.
    Encrypt,
    /// This kind of proof is not taken here.
    NotOffered,
    /// The account is disabled; said to who has shown the right proof.
    Disabled,
    /// The account has ended; likewise.
    Ended,
    /// The person may not use this protocol; likewise.
    NotByThis,
    /// The person may not act as somebody else; likewise.
    NotAsOther,
    /// The first step was too long ago: begin again.
    BeginAgain,
}

impl Answer {
    /// A sentence for the client. Where a second factor can be on and cannot be asked for, it says what to use,
    /// to everybody alike.
    #[must_use]
    pub fn text(self, protocol: Protocol) -> &'static str {
        match self {
            Self::WrongCredentials if protocol.has_second_step() => "The name or the password is not right.",
            Self::WrongCredentials => {
                "The name or the password is not right. An account with two-step sign-in needs an app password here."
            }
            Self::Later(_) => "There were too many attempts. Try again later.",
            Self::Encrypt => "The connection must be encrypted first.",
            Self::NotOffered => "This way to log in is not offered here.",
            Self::Disabled => "The account is disabled. Ask the administrator.",
            Self::Ended => "The account has expired. Ask the administrator.",
            Self::NotByThis => "The account may not use this service. Ask the administrator.",
            Self::NotAsOther => "The account may not act as somebody else.",
            Self::BeginAgain => "The sign-in took too long. Begin again.",
        }
    }

    /// Whether this is a guess to be counted against the name and the network.
    #[must_use]
    pub const fn is_guess(self) -> bool {
        matches!(self, Self::WrongCredentials)
    }
}

/// Why nobody comes in, for the log. It holds no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Nobody has the name.
    NobodyThere,
    /// The person has no credential of this kind.
    NoSuchCredential,
    /// The proof is wrong.
    WrongProof,
    /// A code is wrong, or was used before.
    WrongCode,
    /// The name is locked for the network.
    Locked,
    /// The connection is open to others.
    NotEncrypted,
    /// The protocol does not take this kind of proof.
    KindNotTaken,
    /// The app password was revoked.
    Revoked,
    /// The app password has expired.
    AppPasswordExpired,
    /// The app password is for other protocols.
    OutOfScope,
    /// The password is right, but a second factor is on and this protocol has none: an app password is needed.
    AppPasswordNeeded,
    /// A provider's token came without the second factor that is on.
    TokenWithoutSecondFactor,
    /// A passkey alone was used without PIN or finger.
    PasskeyWithoutVerification,
    /// The proof is somebody else's.
    OtherPerson,
    /// A session began without the second factor that is on now.
    SessionWithoutSecondFactor,
    /// The account is disabled.
    Disabled,
    /// The account has ended.
    Ended,
    /// The person may not use this protocol.
    ProtocolNotAllowed,
    /// The person may not act as somebody else.
    ActingAsOther,
    /// The first step was too long ago.
    FirstStepTooOld,
}

impl Reason {
    /// The words that records hold.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NobodyThere => "nobody has this name",
            Self::NoSuchCredential => "there is no credential of this kind",
            Self::WrongProof => "the proof is wrong",
            Self::WrongCode => "the code is wrong or was used before",
            Self::Locked => "the name is locked",
            Self::NotEncrypted => "the connection is not encrypted",
            Self::KindNotTaken => "the protocol does not take this kind of proof",
            Self::Revoked => "the app password was revoked",
            Self::AppPasswordExpired => "the app password has expired",
            Self::OutOfScope => "the app password is for other protocols",
            Self::AppPasswordNeeded => {
                "the password is right, but two-step sign-in needs an app password here"
            }
            Self::TokenWithoutSecondFactor => "the token has no second factor, which is required",
            Self::PasskeyWithoutVerification => "the passkey was used without PIN or finger",
            Self::OtherPerson => "the proof is somebody else's",
            Self::SessionWithoutSecondFactor => "the session has no second factor, which is required",
            Self::Disabled => "the account is disabled",
            Self::Ended => "the account has expired",
            Self::ProtocolNotAllowed => "the person may not use this protocol",
            Self::ActingAsOther => "the person may not act as somebody else",
            Self::FirstStepTooOld => "the first step was too long ago",
        }
    }
}
