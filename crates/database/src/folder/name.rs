//! What a folder may be called.

#![allow(missing_docs, reason = "the names say it")]

use crate::error::{DatabaseError, InvalidInput, Result};

/// Longer names are refused.
pub const MAX_NAME_BYTES: usize = 255;

/// Between the name of a folder and that of one within it.
pub const SEPARATOR: char = '\\';

/// Names that differ only in case are the same folder's: this is what they have in context.
pub fn folded(name: &str) -> String {
    name.to_lowercase()
}

/// A name has up to 255 bytes; each part of it, between backslashes, something visible at both ends.
///
/// # Errors
/// `illegal_folder_name`.
pub fn validate(name: &str) -> Result<()> {
    let is_sound =
        |part: &str| !part.is_empty() && part.trim() == part && !part.chars().any(char::is_control);
    if name.len() <= MAX_NAME_BYTES && name.split(SEPARATOR).all(is_sound) {
        return Ok(());
    }
    Err(DatabaseError::Invalid {
        input: InvalidInput::FolderName,
        reason: format!(
            "Name: '{}'. A folder's name has 1 to {MAX_NAME_BYTES} bytes; `\\` separates a folder from one within \
             it, and no part is empty, begins or ends with a space, or holds a control character.",
            name.chars().take(MAX_NAME_BYTES).collect::<String>()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_folders() {
        for name in ["Inbox", "Projects\\Größe\\2026", "a/b", &"a".repeat(255)] {
            assert!(validate(name).is_ok(), "{name}");
        }
        for name in ["", "\\", "a\\", "\\a", "a\\\\b", " a", "a \\b", "a\nb", &"a".repeat(256)] {
            let refused = validate(name).unwrap_err();
            assert!(
                matches!(refused, DatabaseError::Invalid { input: InvalidInput::FolderName, .. }),
                "{name}: {refused:?}"
            );
        }
        assert_eq!(folded("INBOX"), folded("Inbox"));
    }
}
