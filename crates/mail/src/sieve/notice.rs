//! Who learns that their mail is passed on, or that somebody hears of it: its owner, once for each address, before the first message
//! goes there.

use std::sync::Arc;

use scrinium_clock::Clock;
use scrinium_database::{Access, Database, DatabaseError, Edit, EditMode};
use scrinium_directory::Person;
use serde_json::json;

use crate::inbox::{INBOX, into_folder};
use crate::memo::{MEMO_FORM, field};
use crate::time::now_text;

/// Who tells.
static TELLER: Access = Access::of_the_server("telling where mail goes");

/// What an address gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// The mail itself.
    Mail,
    /// Notices of it (RFC 5435).
    Notices,
}

impl Leaving {
    const fn context(self) -> &'static str {
        match self {
            Self::Mail => "scrinium 2026 id of a notice of forwarding",
            Self::Notices => "scrinium 2026 id of a notice of notifications",
        }
    }

    fn texts(self, address: &str) -> (String, String) {
        let advice = "If you have not set this up, somebody else has: change your password, take the rule away, and tell \
                      your administrator.\n";
        match self {
            Self::Mail => (
                format!("Your mail is forwarded to {address}"),
                format!(
                    "A rule or script of yours passes mail that comes to you on to {address}.\n\n{advice}"
                ),
            ),
            Self::Notices => (
                format!("{address} hears of your mail"),
                format!("A script of yours tells {address} of mail that comes to you.\n\n{advice}"),
            ),
        }
    }
}

/// Puts a message into a person's Inbox that says where their mail goes, unless one has said so. Blocks until it is durable.
pub(crate) fn tell_of_leaving(
    (database, person): (&Arc<Database>, &Person),
    (leaving, address): (Leaving, &str),
    clock: &Clock,
) -> Result<(), DatabaseError> {
    let mut hasher = blake3::Hasher::new_derive_key(leaving.context());
    for part in [database.sequence_text(0).as_str(), &address.to_lowercase()] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    let id: String = hasher.finalize().to_hex().chars().take(32).collect();
    if database.has_revisions(&id)? {
        return Ok(());
    }
    let now = now_text(clock);
    let (subject, body) = leaving.texts(address);
    let notice = json!({
        (field::FORM): MEMO_FORM,
        (field::FROM): "Mail Router",
        (field::SEND_TO): [person.shown_name()],
        (field::SUBJECT): subject,
        (field::POSTED_DATE): now,
        (field::DELIVERED_DATE): now,
        (field::BODY): body,
    });
    let edit = Edit {
        id: Some(id),
        json: notice.to_string().into(),
        folders: into_folder(INBOX),
        ..Edit::default()
    };
    match database.update_one(edit, EditMode::Interactive, &TELLER) {
        Ok(_) | Err(DatabaseError::Conflict) => Ok(()),
        Err(error) => Err(error),
    }
}
