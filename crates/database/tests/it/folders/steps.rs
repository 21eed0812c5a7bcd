//! What happens to a database: one step after the other.

use std::sync::Arc;

use proptest::prelude::*;
use scrinium_database::FolderChange;
use serde_json::{Value, json};

pub(crate) const PEOPLE: [&str; 3] = ["ada", "bob", "Eve Someone/Home"];
pub(crate) const FOLDERS: [&str; 3] = ["Inbox", "Projects", "Projects\\Old"];

pub(crate) fn columns(variant: u8) -> Value {
    let sort = if variant.is_multiple_of(2) { "desc" } else { "asc" };
    json!([
        {"title": "Date", "formula": "Date", "sort": sort, "variant": variant},
        {"title": "Tag", "formula": "Tags", "category": true},
        {"title": "Size", "formula": "Size", "total": true},
    ])
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A document is made or changed, in one batch with a change of folders.
    Edit {
        document: u8,
        date: u8,
        size: u16,
        tags: u8,
        editor: usize,
        placing: Option<Placing>,
        reader: Option<usize>,
    },
    /// A revision comes from elsewhere, which may win.
    Conflict {
        document: u8,
        digest: u8,
        deleted: bool,
        editor: usize,
    },
    Delete {
        document: u8,
    },
    Place(Vec<(u8, Placing)>),
    /// Flags of documents, by their places in [`FLAGS`], and what of it is of folders.
    Flags(Vec<(u8, FlagStep)>),
    Mark {
        person: usize,
        documents: Vec<u8>,
        read: bool,
    },
    MarkFolder {
        person: usize,
        folder: usize,
        read: bool,
    },
    Define {
        folder: usize,
        variant: u8,
    },
    Drop {
        folder: usize,
    },
    Rename {
        from: usize,
        to: usize,
    },
    /// Edits, changes of folders and marks of one document, each on its way before the one before it is visible.
    Rush {
        document: u8,
        folders: Vec<usize>,
        readers: Vec<usize>,
        editor: usize,
        deleted: bool,
    },
    /// Collections are brought up to date, which they need not be for what comes next.
    Look,
    Purge,
    Crash,
}

/// System flags, keywords, and one that is another spelling of another.
pub(crate) const FLAGS: [&str; 6] = ["\\Answered", "\\Flagged", "\\Draft", "$Forwarded", "later", "LATER"];

#[derive(Clone, Debug)]
pub(crate) struct FlagStep {
    pub(crate) replace: bool,
    pub(crate) add: Vec<usize>,
    pub(crate) remove: Vec<usize>,
    /// Marked to be expunged in a folder, or not any more.
    pub(crate) deleted: Option<(usize, bool)>,
}

fn flag_step() -> impl Strategy<Value = FlagStep> {
    let flags = || prop::collection::vec(0..FLAGS.len(), 0..3);
    let deleted = prop::option::weighted(0.3, (0..FOLDERS.len(), any::<bool>()));
    (prop::bool::weighted(0.2), flags(), flags(), deleted)
        .prop_map(|(replace, add, remove, deleted)| FlagStep { replace, add, remove, deleted })
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Placing {
    Make(usize),
    Add(usize),
    Remove(usize),
    Move(usize, usize),
    SetDeleted(usize, bool),
}

impl Placing {
    /// Written in another case than the folder's.
    pub(crate) fn change(self) -> FolderChange {
        let name = |folder: usize| FOLDERS[folder].to_uppercase();
        match self {
            Self::Make(folder) => FolderChange::Make {
                folder: FOLDERS[folder].to_owned(),
                columns: Some(Arc::new(columns(0))),
                special_use: None,
            },
            Self::Add(folder) => FolderChange::Add { folder: name(folder) },
            Self::Remove(folder) => FolderChange::Remove { folder: name(folder) },
            Self::Move(from, to) => FolderChange::Move { from: name(from), to: name(to) },
            Self::SetDeleted(folder, deleted) => FolderChange::SetDeleted { folder: name(folder), deleted },
        }
    }
}

pub(crate) fn id_of(document: u8) -> String {
    format!("n{document}")
}

pub(crate) fn placing() -> impl Strategy<Value = Placing> {
    let folder = 0..FOLDERS.len();
    prop_oneof![
        1 => folder.clone().prop_map(Placing::Make),
        6 => folder.clone().prop_map(Placing::Add),
        2 => folder.clone().prop_map(Placing::Remove),
        3 => (folder.clone(), folder.clone()).prop_map(|(from, to)| Placing::Move(from, to)),
        2 => (folder, any::<bool>()).prop_map(|(folder, deleted)| Placing::SetDeleted(folder, deleted)),
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let (document, person, folder) = (0..10_u8, 0..PEOPLE.len(), 0..FOLDERS.len());
    let reader = prop::option::weighted(0.3, person.clone());
    let placed = (prop::option::of(placing()), reader);
    let edited = (document.clone(), 0..5_u8, any::<u16>(), 0..4_u8, person.clone(), placed);
    prop_oneof![
        8 => edited.prop_map(|(document, date, size, tags, editor, (placing, reader))| {
            Step::Edit { document, date, size, tags, editor, placing, reader }
        }),
        2 => (document.clone(), any::<u8>(), prop::bool::weighted(0.3), person.clone())
            .prop_map(|(document, digest, deleted, editor)| Step::Conflict { document, digest, deleted, editor }),
        2 => document.clone().prop_map(|document| Step::Delete { document }),
        6 => prop::collection::vec((document.clone(), placing()), 1..6).prop_map(Step::Place),
        5 => prop::collection::vec((document.clone(), flag_step()), 1..4).prop_map(Step::Flags),
        5 => (person.clone(), prop::collection::vec(document.clone(), 1..5), prop::bool::weighted(0.7))
            .prop_map(|(person, documents, read)| Step::Mark { person, documents, read }),
        1 => (person.clone(), folder.clone(), any::<bool>())
            .prop_map(|(person, folder, read)| Step::MarkFolder { person, folder, read }),
        2 => (folder.clone(), 0..4_u8).prop_map(|(folder, variant)| Step::Define { folder, variant }),
        1 => folder.clone().prop_map(|folder| Step::Drop { folder }),
        1 => (folder.clone(), folder.clone()).prop_map(|(from, to)| Step::Rename { from, to }),
        3 => (document, prop::collection::vec(folder, 0..3), prop::collection::vec(person, 0..3), 0..PEOPLE.len(), any::<bool>())
            .prop_map(|(document, folders, readers, editor, deleted)| {
                Step::Rush { document, folders, readers, editor, deleted }
            }),
        3 => Just(Step::Look),
        1 => Just(Step::Purge),
        1 => Just(Step::Crash),
    ]
}
