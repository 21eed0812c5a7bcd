//! What mail clients have seen of a document without a source stays as it was, and another message has another UID.

use scrinium_database::{
    Edit, EditMode, FlagsChange, FolderChange, FolderMember, InitialAccess, NewAttachment, NewRendering,
};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::{SERVER, Server, get};

const FIELDS: &[&str] = &["Subject", "Body"];

fn store(database: &OpenDatabase, document: &Value, attachments: Vec<NewAttachment>) {
    let folders = vec![FolderChange::Add { folder: "Inbox".to_owned() }];
    let edit = Edit { json: document.to_string().into(), attachments, folders, ..Edit::default() };
    let update = database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap();
    update.wait().unwrap().remove(0).unwrap();
}

fn edit(database: &OpenDatabase, change: impl Fn(&mut Value)) {
    let mut document = get(database, "m").unwrap();
    change(&mut document);
    store(database, &document, Vec::new());
}

fn keep(database: &OpenDatabase, content: &str) {
    let revision = get(database, "m").unwrap()["_rev"].as_str().unwrap().to_owned();
    let id = "m".to_owned();
    let new = NewRendering { id, revision, fields: FIELDS, content: content.to_owned().into() };
    database.keep_renderings(vec![new]).unwrap();
}

fn kept(database: &OpenDatabase) -> Option<String> {
    let snapshot = database.store().snapshot();
    let id = SERVER.readable_id(database, &snapshot, "m".to_owned()).unwrap()?;
    let content = database.rendering_at(&snapshot, &id).unwrap()?;
    Some(String::from_utf8(content.to_vec()).unwrap())
}

fn member(database: &OpenDatabase) -> FolderMember {
    let mut members = database.folder_members("Inbox", 0, 10, (Some("ada"), &SERVER)).unwrap().members;
    members.retain(|member| member.id == "m");
    assert_eq!(members.len(), 1);
    members.remove(0)
}

#[test]
fn a_rendering_holds_until_what_it_was_made_of_changes() {
    let server = Server::quick();
    let database = server.databases.create("db", &InitialAccess::Everybody).unwrap();
    database.define_folder("Inbox", None).unwrap();
    store(
        &database,
        &json!({"_id": "m", "Subject": "one", "Body": "x".repeat(5000), "Categories": []}),
        vec![],
    );
    store(&database, &json!({"_id": "other"}), vec![]);
    database.mark("ada", vec!["m".to_owned()], true, &SERVER).unwrap().wait().unwrap().remove(0).unwrap();
    let deleted = FolderChange::SetDeleted { folder: "Inbox".to_owned(), deleted: true };
    database.change_folders(vec![("m".to_owned(), deleted)], &SERVER).unwrap().wait().unwrap();
    let first = member(&database);
    keep(&database, "first");
    keep(&database, "another directory");
    assert_eq!(kept(&database).as_deref(), Some("first"), "what somebody has seen stays");
    let flagged = FlagsChange { add: vec!["\\Flagged".to_owned()], ..FlagsChange::default() };
    database.change_flags(&[("m".to_owned(), flagged)], &SERVER).unwrap().remove(0).unwrap();
    edit(&database, |document| document["$Flags"] = json!(["\\Answered"]));
    edit(&database, |document| document["Categories"] = json!(["Work"]));
    assert_eq!((kept(&database).as_deref(), member(&database).uid), (Some("first"), first.uid));
    // Another text is another message: the folder keeps all else that it says.
    let before = database.folder("Inbox", Some("ada")).unwrap();
    edit(&database, |document| document["Body"] = json!("y".repeat(5000)));
    let now = member(&database);
    assert_eq!((kept(&database), now.added_ms), (None, first.added_ms));
    assert!(now.uid > first.uid && now.flags == member(&database).flags);
    let after = database.folder("Inbox", Some("ada")).unwrap();
    let counts = |info: &scrinium_database::FolderInfo| (info.total, info.deleted, info.bytes);
    assert_eq!(
        (counts(&after), after.total - after.unread.unwrap()),
        (counts(&before), 0),
        "it is unread again"
    );
    let changes = database.folder_changes("Inbox", before.change_number, 10, &SERVER).unwrap().changes;
    let uids: Vec<(u64, bool)> = changes.iter().map(|change| (change.uid, change.has_left())).collect();
    assert_eq!(uids, [(first.uid, true), (now.uid, false)]);
    // Nobody has seen this one: an edit leaves its number alone.
    edit(&database, |document| document["Body"] = json!("z"));
    assert_eq!(member(&database).uid, now.uid);
    // A file, and a source, are another message as well; what is made of an old revision is not kept.
    keep(&database, "third");
    let stale = get(&database, "m").unwrap()["_rev"].as_str().unwrap().to_owned();
    let mut upload = database.upload("text/plain");
    upload.write(b"file").unwrap();
    let content = upload.finish().unwrap();
    let file = NewAttachment { name: "f".to_owned(), content_type: "text/plain".to_owned(), content };
    store(&database, &get(&database, "m").unwrap(), vec![file]);
    assert!(member(&database).uid > now.uid && kept(&database).is_none());
    let content = "stale".into();
    database
        .keep_renderings(vec![NewRendering { id: "m".to_owned(), revision: stale, fields: FIELDS, content }])
        .unwrap();
    assert_eq!(kept(&database), None);
    keep(&database, "fourth");
    edit(&database, |document| document["_deleted"] = json!(true));
    assert_eq!(kept(&database), None);
    let key = scrinium_database::keys::rendering(database.number(), "m");
    let snapshot = database.store().snapshot();
    assert!(snapshot.get(scrinium_store::Family::Point, &key).unwrap().is_none(), "nothing is left of it");
}
