//! Why a command was not done, and the exit code for it.

use std::process::ExitCode;

#[cfg(feature = "lab")]
use scrinium_terminal::CommandOutcome;

use super::Terminal;
use crate::config::ConfigError;

const WRONG_USE: u8 = 2;
const DAMAGE_FOUND: u8 = 3;
const TO_BE_UPGRADED: u8 = 4;
const OBJECTIVE_MISSED: u8 = 99;
const BROKEN_OFF: u8 = 130;

/// Why a command was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It could not be done, for this reason. Exit code 1.
    Work(String),
    /// The command line or the configuration is wrong. Exit code 2.
    Use(String),
    /// It was done, and something damaged was found that could not be repaired. Exit code 3.
    Damage(String),
    /// An objective of a laboratory run was missed. Exit code 99.
    Objective(String),
    /// The operator broke it off. Exit code 130, as shells say of a program that was interrupted.
    BrokenOff(String),
    /// It was done, and what was found and has been said is to be looked after. Exit code 1, without another word.
    Found,
    /// The data folder is to be upgraded, and what that changes has been said. Exit code 4, without another word.
    ToBeUpgraded,
    /// The command line is wrong, and that has been said. Exit code 2.
    Told,
    /// Nobody reads standard output any more. Exit code 0, without a word.
    OutputClosed,
}

impl Failure {
    /// The work could not be done, for this reason.
    #[must_use]
    #[allow(clippy::needless_pass_by_value, reason = "so that it can stand in map_err")]
    pub fn work(reason: impl ToString) -> Self {
        Self::Work(reason.to_string())
    }

    /// What a command of the laboratory or of the planner ended with, where it is not done.
    #[cfg(feature = "lab")]
    #[allow(clippy::needless_pass_by_value, reason = "so that it can stand in map_err")]
    pub(crate) fn of(outcome: CommandOutcome, reason: impl ToString) -> Self {
        let reason = reason.to_string();
        match outcome {
            CommandOutcome::Usage => Self::Use(reason),
            CommandOutcome::Missed => Self::Objective(reason),
            CommandOutcome::BrokenOff => Self::BrokenOff(reason),
            CommandOutcome::Done | CommandOutcome::Failed => Self::Work(reason),
        }
    }

    /// The reason, where there is one to be said.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Work(reason)
            | Self::Use(reason)
            | Self::Damage(reason)
            | Self::Objective(reason)
            | Self::BrokenOff(reason) => reason,
            Self::Found | Self::ToBeUpgraded | Self::Told | Self::OutputClosed => "",
        }
    }

    /// Says it, and gives the exit code.
    pub(super) fn tell(&self, terminal: &Terminal) -> ExitCode {
        match self {
            Self::OutputClosed => ExitCode::SUCCESS,
            Self::Found => ExitCode::FAILURE,
            Self::ToBeUpgraded => ExitCode::from(TO_BE_UPGRADED),
            Self::Told => ExitCode::from(WRONG_USE),
            Self::Work(reason) => {
                terminal.complain(reason);
                ExitCode::FAILURE
            }
            Self::Use(reason) => {
                terminal.complain(reason);
                ExitCode::from(WRONG_USE)
            }
            Self::Damage(reason) => {
                terminal.complain(reason);
                ExitCode::from(DAMAGE_FOUND)
            }
            Self::Objective(reason) => {
                terminal.complain(reason);
                ExitCode::from(OBJECTIVE_MISSED)
            }
            Self::BrokenOff(reason) => {
                terminal.complain(reason);
                ExitCode::from(BROKEN_OFF)
            }
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Use(error.to_string())
    }
}
