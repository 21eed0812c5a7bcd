//! Kinds of requests that cost about the same.

use serde::{Deserialize, Serialize};

/// A class of requests. The laboratory's transactions fall into five.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Opens a database, or asks whether it has changed.
    Look,
    /// Reads a page of a view or a list of changes, or looks names up.
    Page,
    /// Reads a document.
    Read,
    /// Writes, moves, marks or deletes a document: one update.
    Write,
    /// Sends a message, which is delivered to its recipients.
    Send,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Look, Self::Page, Self::Read, Self::Write, Self::Send];

    /// The class of a transaction as the laboratory names it; `None` for those of other protocols, which no calibration
    /// measures, and for the administrator's.
    #[must_use]
    pub fn of(transaction: &str) -> Option<Self> {
        Some(match transaction {
            "OPEN_DB" | "DB_MODIFIED_TIME" => Self::Look,
            "OPEN_COLLECTION"
            | "READ_ENTRIES"
            | "FIND_BY_KEY"
            | "SET_COLLATION"
            | "UPDATE_COLLECTION"
            | "GET_UNREAD_NOTE_TABLE"
            | "GET_MODIFIED_NOTES"
            | "GET_ALLFOLDERCHANGES"
            | "GET_NOTE_INFO"
            | "NAME_LOOKUP" => Self::Page,
            "OPEN_NOTE" | "HTTP_GET" => Self::Read,
            "UPDATE_NOTE" | "DELETE_NOTE" | "RCV_UNREAD" | "FOLDER_MOVE" | "REPLICATION_HISTORY" => {
                Self::Write
            }
            "MAIL_DEPOSIT" => Self::Send,
            _ => return None,
        })
    }

    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Look => "open a database",
            Self::Page => "read a page",
            Self::Read => "read a document",
            Self::Write => "write a document",
            Self::Send => "send a message",
        }
    }

    /// Whether it waits for the log.
    #[must_use]
    pub fn commits(self) -> bool {
        matches!(self, Self::Write | Self::Send)
    }
}

/// A value for each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct PerClass<T> {
    pub look: T,
    pub page: T,
    pub read: T,
    pub write: T,
    pub send: T,
}

impl<T> PerClass<T> {
    /// Made for one class after the other.
    pub fn of(mut make: impl FnMut(Class) -> T) -> Self {
        Self {
            look: make(Class::Look),
            page: make(Class::Page),
            read: make(Class::Read),
            write: make(Class::Write),
            send: make(Class::Send),
        }
    }

    /// That of a class.
    pub fn get(&self, class: Class) -> &T {
        match class {
            Class::Look => &self.look,
            Class::Page => &self.page,
            Class::Read => &self.read,
            Class::Write => &self.write,
            Class::Send => &self.send,
        }
    }

    /// That of a class, to be changed.
    pub fn get_mut(&mut self, class: Class) -> &mut T {
        match class {
            Class::Look => &mut self.look,
            Class::Page => &mut self.page,
            Class::Read => &mut self.read,
            Class::Write => &mut self.write,
            Class::Send => &mut self.send,
        }
    }
}

impl PerClass<f64> {
    /// All together.
    #[must_use]
    pub fn sum(&self) -> f64 {
        Class::ALL.iter().map(|class| self.get(*class)).sum()
    }

    /// Each times a factor.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        Self::of(|class| self.get(class) * factor)
    }
}
