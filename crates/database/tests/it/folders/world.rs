//! A database and the model of it, side by side.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use scrinium_database::{DatabaseError, Edit, EditMode, FlagsChange};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use super::model::{Folder, Model};
use super::steps::{FLAGS, FOLDERS, FlagStep, PEOPLE, Placing, Step, columns, id_of};
use crate::common::{SERVER, Server, edit, get, put};

pub(crate) struct World {
    pub(crate) database: OpenDatabase,
    pub(crate) server: Server,
    pub(crate) model: Model,
}

impl World {
    /// A database of its own on the server that an earlier run has left.
    pub(crate) fn new(earlier: Option<Self>) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("mail/ada{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut world = earlier.unwrap_or_else(|| {
            let server = Server::quick();
            let database =
                server.databases.create("first", &scrinium_database::InitialAccess::Everybody).unwrap();
            Self { database, server, model: Model::default() }
        });
        world.database =
            world.server.databases.create(&name, &scrinium_database::InitialAccess::Everybody).unwrap();
        world.model = Model::default();
        put(&world.database, &json!({"_id": "_design/x", "views": {}})).unwrap();
        world.run(Step::Define { folder: 0, variant: 0 });
        world
    }

    pub(crate) fn adopt(&mut self) {
        let (databases, name) = (&self.server.databases, self.database.name());
        self.database = databases.adopt(databases, name, &format!("{name}-again"), &mut |_| true).unwrap();
    }

    pub(crate) fn crash(&mut self) {
        let after = self.server.crash();
        let name = self.database.name().to_owned();
        self.database = after.databases.get(&name).unwrap();
        self.server = after;
    }

    #[allow(clippy::too_many_lines, reason = "one arm a kind of step")]
    pub(crate) fn run(&mut self, step: Step) {
        match step {
            Step::Edit { document, date, size, tags, editor, placing, reader } => {
                let tags: Vec<String> = (0..tags).map(|tag| format!("t{tag}")).collect();
                let mut json = json!({"_id": id_of(document), "Date": date, "Size": size, "Tags": tags});
                if let Some(known) = self.model.documents.get(&id_of(document)) {
                    json["_rev"] = known["_rev"].clone();
                }
                self.edit(&json, PEOPLE[editor], placing, reader.map(|reader| PEOPLE[reader]));
            }
            Step::Conflict { document, digest, deleted, editor } => {
                let rev = format!("2-{digest:02x}");
                let mut json = json!({"_id": id_of(document), "_rev": rev, "Date": digest % 5, "Size": 1,
                    "_revisions": {"start": 2, "ids": [format!("{digest:02x}"), "aa"]}});
                if deleted {
                    json["_deleted"] = json!(true);
                }
                let edit = Edit { editor: Some(PEOPLE[editor].into()), ..edit(&json) };
                let updated =
                    self.database.update(vec![edit], EditMode::Replicated, &SERVER).unwrap().wait().unwrap();
                assert!(updated[0].is_ok());
                self.model.follow(&self.database, &id_of(document), Some(PEOPLE[editor]));
            }
            Step::Delete { document } => {
                if let Some(known) = self.model.documents.get(&id_of(document)) {
                    put(
                        &self.database,
                        &json!({"_id": known["_id"], "_rev": known["_rev"], "_deleted": true}),
                    )
                    .unwrap();
                    self.model.follow(&self.database, &id_of(document), None);
                }
            }
            Step::Place(placings) => self.place(&placings),
            Step::Flags(steps) => self.flags(&steps),
            Step::Mark { person, documents, read } => {
                let ids: Vec<String> = documents.iter().map(|document| id_of(*document)).collect();
                // Not waited for one by one, so that each builds on what is on its way.
                let updates: Vec<_> = ids
                    .iter()
                    .map(|id| self.database.mark(PEOPLE[person], vec![id.clone()], read, &SERVER).unwrap())
                    .collect();
                for (id, update) in ids.iter().zip(updates) {
                    let marked = update.wait().unwrap().remove(0);
                    let expected = self.model.mark(PEOPLE[person], id, read);
                    assert_eq!(marked.map(|marked| marked.changed).map_err(drop), expected);
                }
            }
            Step::MarkFolder { person, folder, read } => {
                let marked = self.database.mark_folder(PEOPLE[person], FOLDERS[folder], read, &SERVER);
                let members = self.model.folder(folder).map(|folder| folder.members.clone());
                let expected = members.map(|members| {
                    members.values().filter(|id| self.model.mark(PEOPLE[person], id, read).unwrap()).count()
                        as u64
                });
                assert_eq!(marked.ok(), expected);
            }
            Step::Define { folder, variant } => {
                let made = self.database.define_folder(FOLDERS[folder], Some(&columns(variant))).unwrap();
                assert_eq!(made, self.model.make(folder, variant));
                self.model.folder(folder).unwrap().variant = variant;
            }
            Step::Drop { folder } => {
                let dropped = self.database.drop_folder(&FOLDERS[folder].to_uppercase());
                assert_eq!(
                    dropped.is_ok(),
                    self.model.folders.remove(&FOLDERS[folder].to_lowercase()).is_some()
                );
            }
            Step::Rename { from, to } => self.rename(FOLDERS[from], FOLDERS[to]),
            Step::Rush { document, folders, readers, editor, deleted } => {
                self.rush(document, &folders, &readers, PEOPLE[editor], deleted);
            }
            Step::Look => self.check_pages(),
            Step::Purge => drop(self.server.databases.purge_dropped().unwrap()),
            Step::Crash => self.crash(),
        }
        self.know_folders();
    }

    fn edit(&mut self, json: &Value, editor: &str, placing: Option<Placing>, reader: Option<&str>) {
        let (id, folders) =
            (json["_id"].as_str().unwrap(), placing.map(Placing::change).into_iter().collect());
        let edit =
            Edit { editor: Some(editor.into()), read_by: reader.map(Into::into), folders, ..edit(json) };
        let updated = self
            .database
            .update(vec![edit], EditMode::Interactive, &SERVER)
            .unwrap()
            .wait()
            .unwrap()
            .remove(0);
        let missing = match placing {
            Some(Placing::Add(folder) | Placing::Remove(folder) | Placing::SetDeleted(folder, _)) => {
                self.model.folder(folder).is_none()
            }
            Some(Placing::Move(from, to)) => {
                self.model.folder(from).is_none() || self.model.folder(to).is_none()
            }
            _ => false,
        };
        if missing {
            assert!(matches!(updated, Err(DatabaseError::NotFound { .. })), "{updated:?}");
            return;
        }
        updated.unwrap();
        self.model.follow(&self.database, id, Some(editor));
        if let Some(reader) = reader {
            self.model.mark(reader, id, true).unwrap();
        }
        match placing {
            Some(Placing::Move(from, to)) => {
                // With an edit, from where it need not have been.
                if from != to {
                    self.model.folder(from).unwrap().remove(id);
                }
                self.model.folder(to).unwrap().add(id);
            }
            // With an edit, where it need not be.
            Some(placing @ Placing::SetDeleted(..)) => drop(self.model.place(id, placing)),
            Some(placing) => drop(self.model.place(id, placing).unwrap()),
            None => {}
        }
    }

    /// Nobody's mark changes, and no uid.
    fn flags(&mut self, steps: &[(u8, FlagStep)]) {
        for (document, step) in steps {
            let names = |places: &[usize]| places.iter().map(|place| FLAGS[*place].to_owned()).collect();
            let folders = step.deleted.map(|(folder, deleted)| Placing::SetDeleted(folder, deleted).change());
            let change = FlagsChange {
                replace: step.replace,
                add: names(&step.add),
                remove: names(&step.remove),
                folders: folders.into_iter().collect(),
                unchanged_since: None,
            };
            let id = id_of(*document);
            let changed = self.database.change_flags(&[(id.clone(), change)], &SERVER).unwrap().remove(0);
            let folder = step.deleted.map(|(folder, _)| self.model.folder(folder).is_some());
            if !self.model.documents.contains_key(&id) || folder == Some(false) {
                assert!(matches!(changed, Err(DatabaseError::NotFound { .. })), "{changed:?}");
                continue;
            }
            let before = flags_of(&self.model.documents[&id]);
            let expected: BTreeSet<String> = {
                let removed = |flag: &String| {
                    step.replace || step.remove.iter().any(|place| FLAGS[*place].eq_ignore_ascii_case(flag))
                };
                let kept = before.iter().filter(|flag| !removed(flag)).cloned();
                kept.chain(step.add.iter().map(|place| FLAGS[*place].to_ascii_lowercase())).collect()
            };
            if let Some((folder, deleted)) = step.deleted {
                let placed = self.model.place(&id, Placing::SetDeleted(folder, deleted));
                // Alone, it is refused where the document is not.
                if expected == before && placed.is_err() {
                    assert!(matches!(changed, Err(DatabaseError::NotFound { .. })), "{changed:?}");
                    continue;
                }
            }
            let changed = changed.unwrap();
            let after = get(&self.database, &id).unwrap();
            assert_eq!(flags_of(&after), expected, "{step:?}");
            assert_eq!(after["_rev"] == self.model.documents[&id]["_rev"], expected == before, "{step:?}");
            assert_eq!(changed.revision, after["_rev"].as_str().unwrap());
            let without = |document: &Value| {
                let mut document = document.clone();
                for name in ["_rev", "$Flags"] {
                    document.as_object_mut().unwrap().remove(name);
                }
                document
            };
            assert_eq!(without(&after), without(&self.model.documents[&id]));
            self.model.documents.insert(id.clone(), after);
        }
    }

    fn place(&mut self, placings: &[(u8, Placing)]) {
        let (first, rest) = placings.split_at(placings.len() / 2);
        let changes = |placings: &[(u8, Placing)]| {
            placings.iter().map(|(document, placing)| (id_of(*document), placing.change())).collect()
        };
        // Two batches; the second builds on the first while that is on its way.
        let updates =
            [first, rest].map(|placings| self.database.change_folders(changes(placings), &SERVER).unwrap());
        let placed = updates.into_iter().flat_map(|update| update.wait().unwrap());
        for ((document, placing), placed) in placings.iter().zip(placed) {
            let expected = self.model.place(&id_of(*document), *placing);
            let found = placed.map(|placed| (placed.uid, placed.changed)).map_err(drop);
            assert_eq!(found, expected, "{document} {placing:?}");
        }
    }

    fn rush(&mut self, document: u8, folders: &[usize], readers: &[usize], editor: &str, deleted: bool) {
        let database = self.database.clone();
        // Higher than anything that an edit could have come to: each of them wins.
        let generation = 10 * self.model.rushes;
        self.model.rushes += 1;
        let id = id_of(document);
        let revision = |step: u64, deleted: bool| {
            let (start, digest) = (1000 + generation + step, "ab");
            let mut json = json!({"_id": id, "_rev": format!("{start}-{digest}"), "Date": 1, "Size": step,
                "_revisions": {"start": start, "ids": [digest, "ab", "ab"]}});
            if deleted {
                json["_deleted"] = json!(true);
            }
            let edit = Edit { editor: Some(editor.into()), ..edit(&json) };
            database.update(vec![edit], EditMode::Replicated, &SERVER).unwrap()
        };
        let mut edits = vec![revision(0, false)];
        let changes: Vec<_> =
            folders.iter().map(|folder| (id.clone(), Placing::Make(*folder).change())).collect();
        let made = database.change_folders(changes, &SERVER).unwrap();
        let changes: Vec<_> =
            folders.iter().map(|folder| (id.clone(), Placing::Add(*folder).change())).collect();
        let added = database.change_folders(changes, &SERVER).unwrap();
        let marks: Vec<_> = readers
            .iter()
            .map(|reader| database.mark(PEOPLE[*reader], vec![id.clone()], true, &SERVER).unwrap())
            .collect();
        edits.push(revision(1, false));
        if deleted {
            edits.push(revision(2, true));
        }
        edits.into_iter().for_each(|update| assert!(update.wait().unwrap()[0].is_ok()));
        assert!(made.wait().unwrap().into_iter().chain(added.wait().unwrap()).all(|placed| placed.is_ok()));
        marks.into_iter().for_each(|mark| assert!(mark.wait().unwrap()[0].is_ok()));
        // What the first edit came to, which nobody has seen.
        let seen = self.model.documents.insert(id.clone(), json!({"_rev": "first"})).is_some();
        assert!(seen || !self.model.marks.keys().any(|(_, of)| *of == id));
        self.model.unread_for_others(&id, editor);
        for folder in folders {
            self.model.place(&id, Placing::Make(*folder)).unwrap();
        }
        for folder in folders {
            self.model.place(&id, Placing::Add(*folder)).unwrap();
        }
        for reader in readers {
            self.model.mark(PEOPLE[*reader], &id, true).unwrap();
        }
        self.model.follow(&self.database, &id, Some(editor));
    }

    fn rename(&mut self, from: &str, to: &str) {
        let renamed = self.database.rename_folder(from, to);
        let (from, to_folded) = (from.to_lowercase(), to.to_lowercase());
        let within = format!("{from}\\");
        let old: Vec<String> = self
            .model
            .folders
            .keys()
            .filter(|name| **name == from || name.starts_with(&within))
            .cloned()
            .collect();
        let new = |name: &String| format!("{to_folded}{}", &name[from.len()..]);
        let is_free =
            |name: &String| old.contains(&new(name)) || !self.model.folders.contains_key(&new(name));
        if !old.contains(&from) || !old.iter().all(is_free) {
            assert!(renamed.is_err());
            return;
        }
        renamed.unwrap();
        let moved: Vec<Folder> = old.iter().map(|name| self.model.folders.remove(name).unwrap()).collect();
        for (name, mut folder) in old.iter().zip(moved) {
            folder.name = format!("{to}{}", &folder.name[from.len()..]);
            self.model.folders.insert(new(name), folder);
        }
    }

    /// Learns the numbers of folders that are new, which must be new indeed.
    fn know_folders(&mut self) {
        let new = self.model.folders.values_mut().filter(|folder| folder.number == 0);
        let mut new: Vec<_> =
            new.map(|folder| (self.database.folder(&folder.name, None).unwrap(), folder)).collect();
        new.sort_by_key(|(info, _)| info.number);
        for (info, folder) in new {
            assert!(self.model.numbers.insert(info.number));
            assert!(info.uid_validity > self.model.highest_validity);
            (folder.number, folder.uid_validity) = (info.number, info.uid_validity);
            self.model.highest_validity = info.uid_validity;
        }
    }
}

/// The flags of a document, in lower case.
pub(crate) fn flags_of(document: &Value) -> BTreeSet<String> {
    let flags = document["$Flags"].as_array().into_iter().flatten();
    flags.map(|flag| flag.as_str().unwrap().to_ascii_lowercase()).collect()
}
