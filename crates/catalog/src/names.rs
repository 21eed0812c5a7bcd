//! What a database may be called, and names that mean something.

use scrinium_database::{DatabaseError, InvalidInput, Result};

/// Longer names are refused, as CouchDB refuses names whose file could not be made.
const MAX_NAME_BYTES: usize = 238;

/// Databases of CouchDB's own that there may be: what replications are to be carried out, and what became of databases.
const OWN: [&str; 2] = [REPLICATOR_DATABASE, EVENTS_DATABASE];

/// The database whose documents are replications.
pub const REPLICATOR_DATABASE: &str = "_replicator";

/// The database whose documents say what became of databases.
pub const EVENTS_DATABASE: &str = "_global_changes";

/// Whether a database is one of CouchDB's own, which is there as soon as an administrator asks for it.
#[must_use]
pub fn is_own(name: &str) -> bool {
    OWN.contains(&name)
}

/// Whether a database may be called so: CouchDB's rule, and a dot besides, which `mail.box` needs.
///
/// # Errors
/// `illegal_database_name`, in CouchDB's words.
pub fn validate(name: &str) -> Result<()> {
    let mut letters = name.bytes();
    let begins = letters.next().is_some_and(|first| first.is_ascii_lowercase());
    let goes_on = letters.all(|letter| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || b"_$()+-/.".contains(&letter)
    });
    // Whatever maps names to paths one day must not meet a way out of its folder.
    let climbs = name.split('/').any(|part| part.is_empty() || part.starts_with('.'));
    if is_own(name) || begins && goes_on && !climbs && name.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    Err(DatabaseError::Invalid {
        input: InvalidInput::DatabaseName,
        reason: format!(
            "Name: '{name}'. Only lowercase characters (a-z), digits (0-9), and any of the characters \
             _, $, (, ), +, -, ., and / are allowed. Must begin with a letter."
        ),
    })
}

/// Whether a database of this name is a mailbox, from which the router takes memos: `mail.box`, `mail1.box` and so on.
#[must_use]
pub fn is_mailbox(name: &str) -> bool {
    let number = name.strip_prefix("mail").and_then(|rest| rest.strip_suffix(".box"));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What the names of mail databases begin with.
pub const MAIL_FILE_PREFIX: &str = "mail/";

/// Whether a database of this name is somebody's mail database.
#[must_use]
pub fn is_mail_file(name: &str) -> bool {
    name.starts_with(MAIL_FILE_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mailboxes_are_known_by_their_names() {
        assert!(["mail.box", "mail1.box", "mail10.box"].into_iter().all(is_mailbox));
        assert!(
            !["mail", "mailbox", "mail/box", "mail/ada", "mailx.box", "my.box"].into_iter().any(is_mailbox)
        );
    }

    #[test]
    fn names_as_couchdb_takes_them() {
        for name in
            ["_replicator", "_global_changes", "a", "mail/ada", "mail.box", "db_1$()+-", &"a".repeat(238)]
        {
            assert!(validate(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "A",
            "1a",
            "_users",
            "_other",
            "../etc",
            "a/../b",
            "a//b",
            "a/",
            "a/.b",
            "ä",
            "a b",
            &"a".repeat(239),
        ] {
            let refused = validate(name).unwrap_err();
            assert!(
                matches!(refused, DatabaseError::Invalid { input: InvalidInput::DatabaseName, .. }),
                "{name}: {refused:?}"
            );
        }
    }
}
