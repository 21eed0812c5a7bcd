//! What must be there, kept as simply as can be.

use std::collections::{BTreeMap, BTreeSet};

use scrinium_views::OpenDatabase;
use serde_json::Value;

use super::steps::{FOLDERS, Placing};
use crate::common::get;

#[derive(Clone, Debug, Default)]
pub(crate) struct Folder {
    pub(crate) name: String,
    pub(crate) number: u32,
    pub(crate) uid_validity: u32,
    pub(crate) members: BTreeMap<u64, String>,
    pub(crate) removed: BTreeMap<u64, String>,
    /// Those of its members that are marked to be expunged.
    pub(crate) deleted: BTreeSet<u64>,
    pub(crate) variant: u8,
}

impl Folder {
    pub(crate) fn next_uid(&self) -> u64 {
        let last = |uids: &BTreeMap<u64, String>| uids.keys().last().copied().unwrap_or(0);
        last(&self.members).max(last(&self.removed)) + 1
    }

    pub(crate) fn uid(&self, id: &str) -> Option<u64> {
        self.members.iter().find(|(_, member)| *member == id).map(|(uid, _)| *uid)
    }

    pub(crate) fn add(&mut self, id: &str) -> (u64, bool) {
        if let Some(uid) = self.uid(id) {
            return (uid, false);
        }
        let uid = self.next_uid();
        self.members.insert(uid, id.to_owned());
        (uid, true)
    }

    /// Whether it was otherwise.
    pub(crate) fn set_deleted(&mut self, uid: u64, deleted: bool) -> bool {
        if deleted { self.deleted.insert(uid) } else { self.deleted.remove(&uid) }
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<u64> {
        let uid = self.uid(id)?;
        let id = self.members.remove(&uid)?;
        self.deleted.remove(&uid);
        self.removed.insert(uid, id);
        Some(uid)
    }
}

/// What must be there. Which revision of a document wins is not the subject here: the database is asked.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) documents: BTreeMap<String, Value>,
    pub(crate) folders: BTreeMap<String, Folder>,
    pub(crate) marks: BTreeMap<(String, String), bool>,
    /// Numbers that folders had.
    pub(crate) numbers: BTreeSet<u32>,
    pub(crate) rushes: u64,
    pub(crate) highest_validity: u32,
}

impl Model {
    pub(crate) fn folder(&mut self, folder: usize) -> Option<&mut Folder> {
        self.folders.get_mut(&FOLDERS[folder].to_lowercase())
    }

    pub(crate) fn make(&mut self, folder: usize, variant: u8) -> bool {
        let name = FOLDERS[folder];
        let known = self.folders.contains_key(&name.to_lowercase());
        self.folders.entry(name.to_lowercase()).or_insert_with(|| Folder {
            name: name.to_owned(),
            variant,
            ..Folder::default()
        });
        !known
    }

    /// What comes of a change that is no edit's, in the words of the errors.
    pub(crate) fn place(&mut self, id: &str, placing: Placing) -> Result<(Option<u64>, bool), ()> {
        let needed = match placing {
            Placing::Make(_) => [None, None],
            Placing::Add(folder) | Placing::Remove(folder) | Placing::SetDeleted(folder, _) => {
                [Some(folder), None]
            }
            Placing::Move(from, to) => [Some(from), Some(to)],
        };
        if needed.into_iter().flatten().any(|folder| self.folder(folder).is_none()) {
            return Err(());
        }
        if !self.documents.contains_key(id) {
            return Err(());
        }
        Ok(match placing {
            Placing::Make(folder) => (None, self.make(folder, 0)),
            Placing::Add(folder) => {
                let (uid, changed) = self.folder(folder).unwrap().add(id);
                (Some(uid), changed)
            }
            Placing::Remove(folder) => {
                let uid = self.folder(folder).unwrap().remove(id);
                (uid, uid.is_some())
            }
            Placing::SetDeleted(folder, deleted) => {
                let folder = self.folder(folder).unwrap();
                let uid = folder.uid(id).ok_or(())?;
                (Some(uid), folder.set_deleted(uid, deleted))
            }
            Placing::Move(from, to) => {
                let uid = self.folder(from).unwrap().uid(id).ok_or(())?;
                if from == to {
                    return Ok((Some(uid), false));
                }
                self.folder(from).unwrap().remove(id);
                (Some(self.folder(to).unwrap().add(id).0), true)
            }
        })
    }

    /// What the database shows of a document after an edit.
    pub(crate) fn follow(&mut self, database: &OpenDatabase, id: &str, editor: Option<&str>) {
        let (before, after) = (self.documents.remove(id), get(database, id).ok());
        match (&before, &after) {
            (Some(_), None) => {
                for folder in self.folders.values_mut() {
                    folder.remove(id);
                }
                self.marks.retain(|(_, of), _| of != id);
            }
            (Some(before), Some(after)) if before["_rev"] != after["_rev"] => {
                self.unread_for_others(id, editor.unwrap_or_default());
            }
            _ => {}
        }
        self.documents.extend(after.map(|after| (id.to_owned(), after)));
    }

    pub(crate) fn unread_for_others(&mut self, id: &str, editor: &str) {
        for ((person, of), read) in &mut self.marks {
            if of == id && person != editor {
                *read = false;
            }
        }
    }

    pub(crate) fn has_read(&self, person: &str, id: &str) -> bool {
        self.marks.get(&(person.to_owned(), id.to_owned())).copied().unwrap_or(false)
    }

    pub(crate) fn mark(&mut self, person: &str, id: &str, read: bool) -> Result<bool, ()> {
        if !self.documents.contains_key(id) {
            return Err(());
        }
        let changed = self.has_read(person, id) != read;
        if changed {
            self.marks.insert((person.to_owned(), id.to_owned()), read);
        }
        Ok(changed)
    }
}
