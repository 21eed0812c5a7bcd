//! One record: a document of the log database, with an id that says its kind and its time.
//!
//! An id is `KIND:TIME:RUN`, such as `event:2026-11-22T10:13:05.123456Z:9f3a00000001`. So the documents of a kind lie in
//! the order of time, and what is too old is one range of ids. RUN tells records of one microsecond apart, and
//! those of another server or an earlier start; a record that is stored a second time, because it was not known whether it
//! was, has the same id.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value};

/// Longer texts are cut, so that all of a record stays within its document and none of it becomes a content.
pub(super) const TEXT_BYTES_MAX: usize = 1000;

/// What a record tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// What the server says on standard error.
    Event,
    /// A memo that the router has taken up.
    Mail,
    /// What happens to an entry of the queue of outgoing mail; kept for as long as memos' lines.
    Outgoing,
    /// A long task that has ended.
    Task,
    /// An operation that took long.
    Slow,
    /// What one person used of one database in an hour.
    Usage,
    /// Attempts to log in.
    Login,
    /// Changes of what may be done on the server, and looks into what is another's; kept for longer.
    Audit,
    /// All statistics, each minute.
    Statistics,
    /// All statistics, each hour; kept for longer.
    Hourly,
}

impl Class {
    pub(super) const ALL: [Self; 10] = [
        Self::Event,
        Self::Mail,
        Self::Outgoing,
        Self::Task,
        Self::Slow,
        Self::Usage,
        Self::Login,
        Self::Audit,
        Self::Statistics,
        Self::Hourly,
    ];

    /// What its ids begin with.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Event => "event:",
            Self::Mail => "mail:",
            Self::Outgoing => "outgoing:",
            Self::Task => "task:",
            Self::Slow => "slow:",
            Self::Usage => "usage:",
            Self::Login => "login:",
            Self::Audit => "audit:",
            Self::Statistics => "statistics:",
            Self::Hourly => "hourly:",
        }
    }

    /// The field `Form` of its documents.
    pub(super) const fn form(self) -> &'static str {
        match self {
            Self::Event => "Event",
            Self::Mail => "MailRouting",
            Self::Outgoing => "OutgoingMail",
            Self::Task => "TaskRun",
            Self::Slow => "SlowOperation",
            Self::Usage => "Usage",
            Self::Login => "Login",
            Self::Audit => "Audit",
            Self::Statistics => "Statistics",
            Self::Hourly => "HourlyStatistics",
        }
    }

    /// Several of them, in words.
    pub(super) const fn plural(self) -> &'static str {
        match self {
            Self::Event => "events",
            Self::Mail => "lines of mail routing",
            Self::Outgoing => "lines of outgoing mail",
            Self::Task => "task runs",
            Self::Slow => "slow operations",
            Self::Usage => "lines of usage",
            Self::Login => "log-ins",
            Self::Audit => "lines of the audit",
            Self::Statistics | Self::Hourly => "statistics",
        }
    }
}

/// A document that is to be stored.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) json: Bytes,
}

/// What makes the ids of one start of the server, and the server's name.
pub(super) struct Names {
    pub(super) server: OnceLock<String>,
    run: u16,
    next: AtomicU32,
}

impl Default for Names {
    fn default() -> Self {
        Self { server: OnceLock::new(), run: rand::random(), next: AtomicU32::new(0) }
    }
}

impl Names {
    pub(super) fn make(&self, class: Class, now: Timestamp, fields: Map<String, Value>) -> Record {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let time = time_text(now);
        let id = format!("{}{time}:{:04x}{number:08x}", class.prefix(), self.run);
        let mut document = Map::new();
        document.insert("Form".to_owned(), Value::from(class.form()));
        document.insert("Time".to_owned(), Value::from(time));
        document.insert("Server".to_owned(), Value::from(self.server.get().map_or("", String::as_str)));
        document.extend(fields);
        Record { id, json: Value::Object(document).to_string().into() }
    }
}

/// A time as ids and documents write it, so that the order of texts is that of times.
pub(crate) fn time_text(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// A text, or its beginning if it is long.
pub(super) fn bounded(text: &str) -> &str {
    let end = (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}
