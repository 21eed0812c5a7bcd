//! What is asked.

use crate::passkey::PasskeyProof;
use crate::password::PasswordMark;
use crate::protocol::{Protocol, ProtocolSet};
use crate::sasl::ScramProof;
use crate::stored::StoredCredentials;
use crate::token::VerifiedToken;

use super::answer::NextStep;

/// How a person stands, apart from their credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// An administrator has disabled the account.
    pub is_disabled: bool,
    /// When the account ends, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
    /// Whether a second factor is required, by the person, their domain or the server. An authenticator that the person has
    /// confirmed requires it by itself.
    pub requires_second_factor: bool,
    /// By what the person may come in.
    pub protocols: ProtocolSet,
}

impl Default for Standing {
    /// In good standing.
    fn default() -> Self {
        Self {
            is_disabled: false,
            expires_ms: None,
            requires_second_factor: false,
            protocols: ProtocolSet::all(),
        }
    }
}

/// The person whose name was said.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// What tells people apart for ever: the document's id.
    pub id: &'a str,
    /// The names that they answer to, prepared ([`crate::prepare_name`]).
    pub names: &'a [&'a str],
    /// What is stored of them.
    pub credentials: &'a StoredCredentials,
    /// How they stand.
    pub standing: Standing,
}

impl Candidate<'_> {
    /// Whether a second factor is on.
    #[must_use]
    pub fn has_second_factor_on(&self) -> bool {
        self.standing.requires_second_factor || self.credentials.has_second_factor()
    }
}

/// That a session was shown that is this person's and has not ended: who keeps sessions has checked it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionProof {
    /// The person whom it is of.
    pub person_id: String,
    /// Whether it began with a second factor.
    pub has_second_factor: bool,
    /// The app password with which it began: it ends with it, and is for what that is for.
    pub app_password: Option<String>,
}

/// How somebody proves who they are.
#[derive(Clone, Copy)]
pub enum Proof<'a> {
    /// A password, or an app password, which is known by its form.
    Password(&'a str),
    /// That the password with this mark was right a moment ago: who remembers it has compared the password.
    Remembered(&'a PasswordMark),
    /// That another server, from which the person comes, has just said that their password is right.
    CheckedElsewhere,
    /// SCRAM, of a password or an app password.
    Scram(&'a ScramProof),
    /// After a first step: a code of the authenticator, or a recovery code.
    Code {
        /// What the first step gave.
        first: &'a NextStep,
        /// The code.
        code: &'a str,
    },
    /// After a first step: a passkey.
    SecondPasskey {
        /// What the first step gave.
        first: &'a NextStep,
        /// The passkey.
        passkey: &'a PasskeyProof,
    },
    /// A passkey alone.
    Passkey(&'a PasskeyProof),
    /// A token of a provider.
    Token(&'a VerifiedToken),
    /// A session.
    Session(&'a SessionProof),
}

/// Passwords and codes are no log's to show.
impl std::fmt::Debug for Proof<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Password(_) => "Password(…)",
            Self::Remembered(_) => "Remembered(…)",
            Self::CheckedElsewhere => "CheckedElsewhere",
            Self::Scram(_) => "Scram(…)",
            Self::Code { .. } => "Code(…)",
            Self::SecondPasskey { .. } => "SecondPasskey(…)",
            Self::Passkey(_) => "Passkey(…)",
            Self::Token(_) => "Token(…)",
            Self::Session(_) => "Session(…)",
        })
    }
}

impl Proof<'_> {
    /// Whether somebody who listens has what they need to come in themselves.
    pub(super) const fn shows_secret(&self) -> bool {
        !matches!(self, Self::Scram(_))
    }
}

/// Who can listen to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Nobody: it is encrypted, or does not leave this machine, or an administrator has said that it is safe.
    Protected,
    /// Anybody in between.
    Open,
}

/// The question.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// By what somebody comes.
    pub protocol: Protocol,
    /// Who can listen.
    pub protection: Protection,
    /// The person whose name was said, or whom a token or a session names; `None` where there is nobody, or it is a group or
    /// several.
    pub person: Option<Candidate<'a>>,
    /// Whom they want to act as, where they have said somebody (`authzid`), prepared.
    pub act_as: Option<&'a str>,
    /// Until when this name is locked for the network they come from, because of guesses, whether anybody has it or not.
    pub locked_until_ms: Option<u64>,
    /// The proof.
    pub proof: Proof<'a>,
    /// The time, in milliseconds since 1970.
    pub now_ms: u64,
}
