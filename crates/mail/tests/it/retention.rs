//! Folders that keep their messages for some days only.

use std::time::Duration;

use scrinium_clock::Clock;
use scrinium_database::{
    DatabaseOptions, Edit, EditMode, FolderChange, FolderUse, InitialAccess, LegalHold, SpecialUse,
};
use scrinium_mail::{RetentionDays, delete_outdated};
use scrinium_views::OpenDatabase;
use serde_json::json;

use crate::common::{SERVER, Server, documents};

const DAY: Duration = Duration::from_hours(24);

fn into(database: &OpenDatabase, id: &str, folders: &[(&str, Option<SpecialUse>)]) {
    let changes = folders.iter().flat_map(|(folder, special_use)| {
        let folder = (*folder).to_owned();
        let make = FolderChange::Make { folder: folder.clone(), columns: None, special_use: *special_use };
        [make, FolderChange::Add { folder }]
    });
    let json = json!({"_id": id, "Form": "Memo"}).to_string().into();
    let edit = Edit { json, folders: changes.collect(), ..Edit::default() };
    database.update_one(edit, EditMode::Interactive, &SERVER).unwrap();
}

fn left(database: &OpenDatabase) -> Vec<String> {
    let ids = documents(database).into_iter().map(|document| document["_id"].as_str().unwrap().to_owned());
    ids.collect()
}

#[test]
fn what_folders_keep_no_longer_is_deleted_unless_a_hold_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(1_790_000_000_000);
    let server = Server::at(folder.path(), &[], DatabaseOptions::default(), clock.clock());
    let database = server.databases.create("mail/ada", &InitialAccess::Everybody).unwrap();
    let (trash, junk) = (Some(SpecialUse::Trash), Some(SpecialUse::Junk));
    // More than one batch.
    for number in 0..450 {
        into(&database, &format!("a-trash-{number:03}"), &[("Trash", trash)]);
    }
    into(&database, "b-junk", &[("Junk", junk)]);
    into(&database, "c-both", &[("Trash", trash), ("Kept", None)]);
    into(&database, "d-list", &[("Lists/Daily", None)]);
    into(&database, "e-kept", &[("Kept", None)]);
    clock.advance(DAY * 5);
    into(&database, "f-young", &[("Trash", trash)]);
    clock.advance(DAY * 5);
    let days = RetentionDays { trash: 7, junk: 0 };
    let run = |days: &RetentionDays| delete_outdated(&database, days, &|_| true).unwrap();
    assert_eq!(run(&RetentionDays::default()), 0);
    let hold = LegalHold { matter: "case".to_owned(), person: None, by: "admin".to_owned(), since_ms: 1 };
    database.set_legal_hold(hold).unwrap();
    assert_eq!(run(&days), 0);
    database.lift_legal_hold("case").unwrap();
    // Stopped after a batch, it goes on where it was.
    let first = delete_outdated(&database, &days, &|_| false).unwrap();
    assert!((1..450).contains(&first), "{first}");
    assert_eq!(first + run(&days), 451);
    assert_eq!(run(&days), 0);
    // What is in another folder as well stays there.
    assert_eq!(left(&database), ["b-junk", "c-both", "d-list", "e-kept", "f-young"]);
    assert_eq!(database.folder("Trash", None).unwrap().total, 1);
    // A folder says otherwise, also for ever.
    let says = |name: &str, days: Option<u32>| {
        let folder_use = FolderUse { keep_days: Some(days), ..FolderUse::default() };
        database.set_folder_use(name, folder_use).unwrap();
    };
    says("Lists/Daily", Some(9));
    says("Trash", Some(0));
    clock.advance(DAY * 50);
    assert_eq!(run(&days), 1);
    assert_eq!(left(&database), ["b-junk", "c-both", "e-kept", "f-young"]);
    says("Trash", None);
    assert_eq!(run(&RetentionDays { trash: 7, junk: 7 }), 2);
    assert_eq!(left(&database), ["c-both", "e-kept"]);
}
