//! A script as the laboratory runs it: statements in a row, with the places that loops and conditions
//! jump to already known.

use std::sync::Arc;
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

    /// The mean of what is drawn, where everything above `limit` counts as the limit.
    #[must_use]
    pub fn mean_up_to(&self, limit: Duration) -> Duration {
        if limit >= self.high {
            return self.mean();
        }
        if limit <= self.low {
            return limit;
        }
        let below = (limit - self.low).as_secs_f64() / (self.high - self.low).as_secs_f64();
        (self.low + limit).mul_f64(below / 2.0) + limit.mul_f64(1.0 - below)
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

impl UserText {
    /// Whether it is this text for every user, in whatever case.
    pub(super) fn is(&self, text: &str) -> bool {
        match self.0.as_slice() {
            [] => text.is_empty(),
            [UserPiece::Text(piece)] => piece.eq_ignore_ascii_case(text),
            _ => false,
        }
    }

    /// Whether all its characters are of a kind, the same for every user.
    pub(super) fn is_of(&self, kind: impl Fn(char) -> bool) -> bool {
        self.0.iter().all(|piece| matches!(piece, UserPiece::Text(text) if text.chars().all(&kind)))
    }

    /// Whether it differs from user to user.
    pub(super) fn is_personal(&self) -> bool {
        self.0.iter().any(|piece| !matches!(piece, UserPiece::Text(_)))
    }

    pub(super) fn push(&mut self, text: &str) {
        self.append(Self::from(text));
    }

    /// Text that follows text is one piece with it.
    pub(super) fn append(&mut self, other: Self) {
        for piece in other.0 {
            match (self.0.last_mut(), piece) {
                (_, UserPiece::Text(text)) if text.is_empty() => {}
                (Some(UserPiece::Text(last)), UserPiece::Text(text)) => last.push_str(&text),
                (_, piece) => self.0.push(piece),
            }
        }
    }

    /// Its parts between the separators.
    pub(super) fn split(self, separator: char) -> Vec<Self> {
        let mut parts = vec![Self(Vec::new())];
        for piece in self.0 {
            let UserPiece::Text(text) = piece else {
                if let Some(part) = parts.last_mut() {
                    part.0.push(piece);
                }
                continue;
            };
            for (index, text) in text.split(separator).enumerate() {
                if index > 0 {
                    parts.push(Self(Vec::new()));
                }
                if let Some(part) = parts.last_mut().filter(|_| !text.is_empty()) {
                    part.push(text);
                }
            }
        }
        parts.retain(|part| !part.0.is_empty());
        parts
    }

    /// Of `item#value;item#value` the first value; of anything else all.
    pub(super) fn keep_first_key(&mut self) {
        let first = std::mem::take(self).split(';').into_iter().next().unwrap_or_default();
        let mut parts = first.split('#').into_iter();
        let (item, value) = (parts.next(), parts.next());
        *self = value.or(item).unwrap_or_default();
    }

    /// Of an address what stands behind the server's name.
    pub(super) fn into_path(mut self) -> Self {
        if let Some(UserPiece::Text(text)) = self.0.first_mut()
            && let Some(rest) = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"))
        {
            *text = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/").to_owned();
        }
        if matches!(self.0.first(), Some(UserPiece::Text(text)) if text.starts_with('/')) {
            return self;
        }
        let mut path = Self::from("/");
        path.append(self);
        path
    }
}

impl From<&str> for UserText {
    fn from(text: &str) -> Self {
        Self(vec![UserPiece::Text(text.to_owned())])
    }
}

/// How large a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageSize {
    /// A body of this many bytes and an attachment of this many.
    #[allow(missing_docs, reason = "the names say it")]
    Bytes { body: usize, attachment: usize },
    /// Drawn for each message: a body of this many bytes, with that weight.
    Weighted(Arc<[(usize, u32)]>),
    /// Drawn for each message from the distribution of Server.Load's message profile.
    Profile,
}

/// Which way `Navigate` goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Direction {
    Next,
    Previous,
    Current,
    /// The entry that this one is a response to.
    Parent,
    /// The first response to this one.
    Child,
    /// The first or the last entry of the page.
    First,
    Last,
}

/// Which entries `Navigate` stops at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Stop {
    Every,
    /// What the user has not read.
    Unread,
    /// What is no response.
    Main,
    /// What is no response, and not read.
    UnreadMain,
    /// What is as deep as the entry that was opened last.
    Peer,
}

/// One step of `Navigate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct NavigationStep {
    pub direction: Direction,
    pub stop: Stop,
    /// Behind the last entry comes the first one.
    pub circular: bool,
}

/// Which way `Replicate` copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ReplicationDirection {
    Pull,
    Push,
    Both,
}

/// What `Cal` and `Accept` send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum CalendarKind {
    Appointment,
    Invitation,
    /// The answer to an invitation.
    Acceptance,
}

/// To how many people a message goes, and in which loops: in every `nth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Sending {
    pub recipients: usize,
    pub nth: u64,
    /// The sender keeps a copy.
    pub kept: bool,
}

/// The outer loop (`BeginLoop`) or the inner one (`BeginLoop2`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum LoopName {
    First,
    Second,
}

/// A probability in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(pub(super) u32);

impl Percent {
    /// From 0 to 100, of which four digits behind the point count.
    #[must_use]
    pub fn new(percent: f64) -> Option<Self> {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to a million")]
        (0.0..=100.0).contains(&percent).then(|| Self((percent * 10_000.0).round() as u32))
    }

    /// From 0 to 1.
    #[must_use]
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 1_000_000.0
    }
}

/// A command with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table of commands describes each")]
pub enum Command {
    ChangeTo {
        database: UserText,
        template: Option<UserText>,
        keep_open: bool,
    },
    /// `None` is the database's default view.
    Open {
        view: Option<UserText>,
    },
    Close,
    OpenCollection {
        view: UserText,
    },
    CloseCollection,
    GetAll,
    /// `None` is the open view.
    Index {
        view: Option<UserText>,
    },
    /// 0 is the view's own order, N that by its Nth column that offers one.
    SetCollation {
        number: u64,
    },
    FindByKey {
        key: UserText,
    },
    /// The entries of a week past and three weeks to come.
    FindPeriod,
    /// `start` is the number of the first entry, beginning with 1; `None` is the next page.
    Entries {
        start: Option<u64>,
        count: u64,
    },
    Navigate {
        count: u64,
        step: NavigationStep,
    },
    Read {
        count: u64,
    },
    /// Without a folder documents stand in the inbox of a mail database, and in no folder of another one.
    Add {
        count: u64,
        size: MessageSize,
        folder: Option<UserText>,
    },
    /// `Stamp` and `Update` differ in the field that they change.
    Update {
        count: u64,
        stamp: bool,
    },
    Delete {
        count: u64,
    },
    /// Documents of the page in sight.
    DeleteFromCollection {
        count: u64,
    },
    Unread {
        count: u64,
    },
    MoveToFolder {
        count: u64,
        folder: UserText,
    },
    Populate {
        count: u64,
        size: MessageSize,
        folder: Option<UserText>,
    },
    SendMessage {
        size: MessageSize,
        sending: Sending,
    },
    Calendar {
        kind: CalendarKind,
        sending: Sending,
    },
    /// The invitation that came last is accepted, in every `nth` round.
    Accept {
        nth: u64,
    },
    /// A message of the page in sight is answered.
    Answer {
        size: MessageSize,
        sending: Sending,
    },
    /// `None` is the user's mail database.
    CheckForNewMail {
        database: Option<UserText>,
    },
    NewMail {
        database: Option<UserText>,
        polls: u64,
        delay: Duration,
    },
    NewMailPoll,
    /// Documents that were changed since this was last asked.
    ModifiedNotes,
    FolderChanges,
    /// Names that are looked up together; of `None` this many people are chosen.
    Lookup {
        name: Option<UserText>,
        count: u64,
    },
    ProfileOpen {
        name: UserText,
    },
    ProfileUpdate,
    ProfileClose,
    ColorProfileAdd,
    ColorProfileDelete,
    SetCalendarProfile,
    /// Without databases it is the open one.
    Replicate {
        direction: ReplicationDirection,
        databases: Vec<UserText>,
    },
    DeleteDatabase {
        database: UserText,
    },
    Console {
        command: UserText,
    },
    /// A page of the server, by its path.
    WebGet {
        path: UserText,
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
    /// Goes on at statement `target`, but in this many of a hundred cases.
    SkipUnlessChance {
        percent: Percent,
        target: usize,
    },
    /// Goes on at statement `target`, but in every `nth` round.
    SkipUnlessNth {
        nth: u64,
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
