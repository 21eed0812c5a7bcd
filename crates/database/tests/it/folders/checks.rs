//! Whether a database shows what its model says.

use std::collections::{BTreeMap, BTreeSet};

use scrinium_database::folder::record::{ANSWERED, DELETED, DRAFT, FLAGGED};
use scrinium_database::{ChangesQuery, FolderMember, MAX_MEMBERS_AT_ONCE, Row, RowQuery};
use scrinium_maintenance::FixupOptions;
use serde_json::{Value, json};

use super::model::Folder;
use super::steps::PEOPLE;
use super::world::{World, flags_of};
use crate::common::SERVER;

impl World {
    pub(crate) fn check(&self) {
        let names: Vec<&String> = self.model.folders.values().map(|folder| &folder.name).collect();
        let folders = self.database.folders(None).unwrap();
        assert_eq!(folders.iter().map(|folder| &folder.name).collect::<Vec<_>>(), names);
        for folder in self.model.folders.values() {
            self.check_members(folder);
        }
        for person in PEOPLE {
            self.check_marks(person);
        }
        self.check_feed();
        self.check_pages();
        let look = FixupOptions { views: true, contents: true, repair: false };
        let report =
            scrinium_maintenance::fixup(&self.server.databases, Some(self.database.name()), look, |_| {})
                .unwrap();
        assert!(report.is_clean(), "{}", report.to_text());
    }

    fn check_members(&self, folder: &Folder) {
        let info = self.database.folder(&folder.name.to_uppercase(), None).unwrap();
        let total = folder.members.len() as u64;
        assert_eq!(
            (info.number, info.uid_validity, info.next_uid, info.total, info.unread),
            (folder.number, folder.uid_validity, folder.next_uid(), total, None)
        );
        let members = |since, limit| {
            let members =
                self.database.folder_members(&folder.name, since, limit, (Some(PEOPLE[0]), &SERVER)).unwrap();
            assert_eq!(
                (members.uid_validity, members.next_uid, members.total.unwrap()),
                (folder.uid_validity, info.next_uid, total)
            );
            members.members
        };
        let all = members(0, usize::MAX);
        let found: Vec<(u64, &String)> = all.iter().map(|member| (member.uid, &member.id)).collect();
        let expected: Vec<(u64, &String)> = folder.members.iter().map(|(uid, id)| (*uid, id)).collect();
        assert_eq!(found, expected);
        assert!(all.iter().all(|member| member.read == Some(self.model.has_read(PEOPLE[0], &member.id))));
        self.check_flags(folder, &all);
        if let [first, second, ..] = all.as_slice() {
            assert_eq!(&members(first.uid, 1), std::slice::from_ref(second));
        }
        let changes =
            |since, limit| self.database.folder_changes(&folder.name, since, limit, &SERVER).unwrap();
        let every = changes(0, usize::MAX);
        assert!(every.changes.is_sorted_by(|one, next| one.change_number < next.change_number));
        let found: BTreeSet<(u64, &String, bool)> =
            every.changes.iter().map(|change| (change.uid, &change.id, change.has_left())).collect();
        let of = |uids: &'_ BTreeMap<u64, String>, removed| {
            uids.iter().map(|(uid, id)| (*uid, id.clone(), removed)).collect::<Vec<_>>()
        };
        let expected: Vec<_> = [of(&folder.members, false), of(&folder.removed, true)].concat();
        assert_eq!(found, expected.iter().map(|(uid, id, removed)| (*uid, id, *removed)).collect());
        assert!(!every.more && changes(every.last, usize::MAX).changes.is_empty());
        if let [first, second, ..] = every.changes.as_slice() {
            let some = changes(first.change_number, 1);
            assert_eq!(&some.changes, std::slice::from_ref(second));
            assert_eq!(
                (some.more, some.last > second.change_number),
                (every.changes.len() > 2, every.changes.len() == 2 && every.last > second.change_number)
            );
        }
    }

    /// What the folder says of flags is what its documents say, and what was done in the folder.
    fn check_flags(&self, folder: &Folder, members: &[FolderMember]) {
        let info = self.database.folder(&folder.name, None).unwrap();
        assert_eq!((info.deleted, info.bytes), (folder.deleted.len() as u64, 0));
        let keywords: BTreeMap<u16, String> = self.database.keywords().unwrap().into_iter().collect();
        for member in members {
            assert_eq!(member.flags & DELETED != 0, folder.deleted.contains(&member.uid), "{member:?}");
            let system = [(ANSWERED, "\\answered"), (FLAGGED, "\\flagged"), (DRAFT, "\\draft")];
            let system = system.into_iter().filter(|(bit, _)| member.flags & bit != 0);
            let own = member.keywords.iter().map(|keyword| keywords[keyword].to_ascii_lowercase());
            let found: BTreeSet<String> = system.map(|(_, name)| name.to_owned()).chain(own).collect();
            assert_eq!(found, flags_of(&self.model.documents[&member.id]), "{member:?}");
        }
    }

    fn check_marks(&self, person: &str) {
        let unread = |ids: &mut dyn Iterator<Item = &String>| {
            ids.filter(|id| !self.model.has_read(person, id)).count() as u64
        };
        let counted = self.database.unread(person).unwrap();
        assert_eq!(counted.database, unread(&mut self.model.documents.keys()));
        let folders = self.model.folders.values();
        let expected: Vec<(String, u64)> =
            folders.map(|folder| (folder.name.clone(), unread(&mut folder.members.values()))).collect();
        assert_eq!(counted.folders, expected);
        for (name, unread) in &expected {
            assert_eq!(self.database.folder(name, Some(person)).unwrap().unread, Some(*unread));
        }
        let marks = self.database.mark_changes(person, 0, MAX_MEMBERS_AT_ONCE, &SERVER).unwrap();
        assert!(marks.changes.is_sorted_by(|one, next| one.change_number < next.change_number));
        let found: BTreeMap<&str, bool> =
            marks.changes.iter().map(|change| (change.id.as_str(), change.read)).collect();
        let own = self.model.marks.iter().filter(|((of, _), _)| of == person);
        let expected: BTreeMap<&str, bool> = own.map(|((_, id), read)| (id.as_str(), *read)).collect();
        assert_eq!((found.len(), found), (marks.changes.len(), expected));
    }

    /// Documents alone are in the feed of changes, each once.
    fn check_feed(&self) {
        let mut changes = self.database.changes(ChangesQuery::default(), &SERVER).unwrap();
        let all = changes.next_changes(usize::MAX).unwrap();
        let alive: BTreeSet<&str> =
            all.iter().filter(|change| !change.deleted).map(|change| change.id.as_str()).collect();
        let expected = self.model.documents.keys().map(String::as_str).chain(["_design/x"]);
        assert_eq!(alive, expected.collect());
        assert_eq!(all.iter().map(|change| &change.id).collect::<BTreeSet<_>>().len(), all.len());
    }

    pub(crate) fn check_pages(&self) {
        for folder in self.model.folders.values() {
            let expected = self.expected_rows(folder);
            let rows = self.rows(&folder.name, &RowQuery::default());
            let found: Vec<(String, Value)> = rows.iter().map(id_and_value).collect();
            assert_eq!(found, expected, "{}", folder.name);
            for row in &rows {
                let (id, place) = (row.id.as_ref().unwrap(), row.place.unwrap());
                assert_eq!(
                    (place.uid, place.unread),
                    (folder.uid(id), Some(!self.model.has_read(PEOPLE[1], id)))
                );
            }
            for skip in 0..expected.len() {
                let query = RowQuery { skip: skip as u64, limit: Some(1), ..RowQuery::default() };
                assert_eq!(
                    self.rows(&folder.name, &query).iter().map(id_and_value).collect::<Vec<_>>(),
                    expected[skip..=skip]
                );
            }
            let total = RowQuery { reduce: Some(true), ..RowQuery::default() };
            let sizes: f64 = expected.iter().map(|(_, value)| value["Size"].as_f64().unwrap()).sum();
            let totals = self.rows(&folder.name, &total);
            let found: Option<Value> = totals.first().map(|row| id_and_value(row).1);
            let wanted = json!({"count": expected.len(), "totals": {"Size": sizes}});
            assert_eq!(found, (!expected.is_empty()).then_some(wanted));
        }
    }

    pub(crate) fn rows(&self, folder: &str, query: &RowQuery) -> Vec<Row> {
        let mut rows = self.database.folder_rows(folder, query.clone(), (Some(PEOPLE[1]), &SERVER)).unwrap();
        let mut all = Vec::new();
        loop {
            let some = rows.next_rows(3).unwrap();
            if some.is_empty() {
                return all;
            }
            all.extend(some);
        }
    }

    fn expected_rows(&self, folder: &Folder) -> Vec<(String, Value)> {
        let mut rows = Vec::new();
        for id in folder.members.values() {
            let document = &self.model.documents[id];
            let tags = document["Tags"].as_array().cloned().unwrap_or_default();
            let tags = if tags.is_empty() { vec![Value::Null] } else { tags };
            for tag in tags {
                rows.push((
                    id.clone(),
                    json!({"Date": document["Date"], "Tag": tag, "Size": document["Size"]}),
                ));
            }
        }
        let date = |row: &(String, Value)| row.1["Date"].as_i64().unwrap();
        let direction = if folder.variant.is_multiple_of(2) { -1 } else { 1 };
        rows.sort_by_key(|row| {
            (direction * date(row), row.1["Tag"].as_str().map(str::to_owned), row.0.clone())
        });
        rows
    }
}

fn id_and_value(row: &Row) -> (String, Value) {
    (row.id.clone().unwrap_or_default(), serde_json::from_str(row.value.as_ref().unwrap()).unwrap())
}
