//! A script as the laboratory runs it: statements in a row, with the places that loops and conditions
//! jump to already known.

use std::time::Duration;

/// A time to wait: drawn evenly from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct TimeRange {
    pub low: Duration,
    pub high: Duration,
}

impl TimeRange {
    /// The middle of the range, which is its mean.
    #[must_use]
    pub fn mean(&self) -> Duration {
        self.low.saturating_add(self.high) / 2
    }

    /// The time at `fraction` (0 to 1) of the range, divided by `speedup`.
    ///
    /// Dividing the drawn time keeps the shape of the distribution under any speed-up.
    #[must_use]
    pub fn at(&self, fraction: f64, speedup: f64) -> Duration {
        let seconds = self.low.as_secs_f64() + (self.high.as_secs_f64() - self.low.as_secs_f64()) * fraction;
        Duration::try_from_secs_f64(seconds / speedup).unwrap_or(self.high)
    }
}

/// Text whose variables are known, but for the user's number and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserText(pub(super) Vec<UserPiece>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UserPiece {
    Text(String),
    /// `[#]`
    Number,
    /// `[user]`
    Name,
}

impl UserText {
    /// The text for one user.
    #[must_use]
    pub fn of(&self, number: usize, name: &str) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                UserPiece::Text(piece) => text.push_str(piece),
                UserPiece::Number => text.push_str(&number.to_string()),
                UserPiece::Name => text.push_str(name),
            }
        }
        text
    }
}

/// How large a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageSize {
    /// A body of so many bytes and an attachment of so many.
    #[allow(missing_docs, reason = "the names say it")]
    Bytes { body: usize, attachment: usize },
    /// Drawn for each message from the distribution of Server.Load's message profile.
    Profile,
}

/// What `Navigate` opens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Direction {
    Next,
    Previous,
    Current,
}

/// What `Cal` sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum CalendarKind {
    Appointment,
    Invitation,
}

/// To how many people a message goes, and in which loops: in every `nth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Sending {
    pub recipients: usize,
    pub nth: u64,
}

/// The outer loop (`BeginLoop`) or the inner one (`BeginLoop2`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum LoopName {
    First,
    Second,
}

/// A command with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table of commands describes each")]
pub enum Command {
    ChangeTo {
        database: UserText,
        keep_open: bool,
    },
    Open {
        view: UserText,
    },
    Close,
    /// `start` is the number of the first entry, beginning with 1; `None` is the next page.
    Entries {
        start: Option<u64>,
        count: u64,
    },
    Navigate {
        count: u64,
        direction: Direction,
        circular: bool,
    },
    Read {
        count: u64,
    },
    Add {
        count: u64,
        body: usize,
    },
    /// `Stamp` and `Update` differ in the field that they change.
    Update {
        count: u64,
        stamp: bool,
    },
    Delete {
        count: u64,
    },
    Populate {
        count: u64,
        body: usize,
    },
    SendMessage {
        size: MessageSize,
        sending: Sending,
    },
    Calendar {
        kind: CalendarKind,
        sending: Sending,
    },
    /// `None` is the user's mail database.
    CheckForNewMail {
        database: Option<UserText>,
    },
    CloseDatabase,
    Drop,
    Pause(TimeRange),
    ErrorDelay(TimeRange),
    /// `None`: errors never end the script.
    Break(Option<u64>),
    BeginLoop(LoopName),
    /// Goes on at statement `target` until the loop has run `times` times.
    Rewind {
        name: LoopName,
        times: Option<u64>,
        target: usize,
    },
    BeginCritical,
    EndCritical,
    /// Goes on at statement `target` when the condition does not hold.
    SkipUnless {
        holds: bool,
        target: usize,
    },
    /// Goes on at statement `target`.
    Jump {
        target: usize,
    },
    /// Mail and calendars by protocols of their own.
    Mail(super::mail::MailCommand),
    /// A command that the language knows and the laboratory cannot run: its name.
    Known(&'static str),
}

/// A command and the line that it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Statement {
    pub line: usize,
    pub command: Command,
}
