//! Who learns that their mail is passed on: its owner, once for each address, before the first message goes there.

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

/// Puts a message into a person's Inbox that says where their mail goes, unless one has said so. Blocks until it is durable.
pub(crate) fn tell_of_forwarding(
    (database, person): (&Arc<Database>, &Person),
    address: &str,
    clock: &Clock,
) -> Result<(), DatabaseError> {
    let mut hasher = blake3::Hasher::new_derive_key("scrinium 2026 id of a notice of forwarding");
    for part in [database.sequence_text(0).as_str(), &address.to_lowercase()] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    let id: String = hasher.finalize().to_hex().chars().take(32).collect();
    if database.has_revisions(&id)? {
        return Ok(());
    }
    let now = now_text(clock);
    let notice = json!({
        (field::FORM): MEMO_FORM,
        (field::FROM): "Mail Router",
        (field::SEND_TO): [person.shown_name()],
        (field::SUBJECT): format!("Your mail is forwarded to {address}"),
        (field::POSTED_DATE): now,
        (field::DELIVERED_DATE): now,
        (field::BODY): format!(
            "A rule or script of yours passes mail that comes to you on to {address}.\n\n\
             If you have not set this up, somebody else has: change your password, take the rule away, and tell \
             your administrator.\n"
        ),
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
