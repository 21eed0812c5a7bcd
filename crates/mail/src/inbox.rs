//! The folders of a mail database: the Inbox, which all mail comes into, and others with the same columns.

use std::sync::{Arc, LazyLock};

use scrinium_database::{FolderChange, FolderInfo, SpecialUse};
use serde_json::{Value, json};

use crate::memo::field;

/// The folder that delivered mail comes into.
pub const INBOX: &str = "Inbox";

/// The folder for what its sender is not vouched for.
pub const JUNK: &str = "Junk";

static COLUMNS: LazyLock<Arc<Value>> = LazyLock::new(|| {
    Arc::new(json!([
        {"title": "Date", "formula": field::DELIVERED_DATE, "sort": "asc"},
        {"title": "From", "formula": field::FROM},
        {"title": "Subject", "formula": field::SUBJECT},
        {"title": "Categories", "formula": field::CATEGORIES},
    ]))
});

/// The columns that a folder of a mail database is made with: when a memo came, from whom, and what it is about.
#[must_use]
pub fn mail_columns() -> Arc<Value> {
    Arc::clone(&COLUMNS)
}

/// What a folder is called by for as long as it is there, whatever its name (RFC 8474): for IMAP, and for scripts.
#[must_use]
pub fn folder_id(folder: &FolderInfo) -> String {
    format!("F{}-{}", folder.number, folder.uid_validity)
}

/// A memo comes into a folder, which is made if it is missing.
#[must_use]
pub fn into_folder(folder: &str) -> Vec<FolderChange> {
    // RFC 6154: programs for mail show it as what it is.
    let special_use = folder.eq_ignore_ascii_case(JUNK).then_some(SpecialUse::Junk);
    let make = FolderChange::Make { folder: folder.to_owned(), columns: Some(mail_columns()), special_use };
    vec![make, FolderChange::Add { folder: folder.to_owned() }]
}
