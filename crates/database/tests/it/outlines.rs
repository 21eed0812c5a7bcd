//! What was found out about the source of a message goes with its document, and never speaks of another source.

use scrinium_database::{
    Edit, EditMode, FlagsChange, FolderChange, InitialAccess, NewAttachment, SOURCE_ATTACHMENT,
};
use scrinium_views::OpenDatabase;
use serde_json::json;

use crate::common::{SERVER, Server};

fn store(database: &OpenDatabase, edit: Edit) -> String {
    let update = database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap();
    update.wait().unwrap().remove(0).unwrap().revision
}

fn source(database: &OpenDatabase, text: &str) -> Vec<NewAttachment> {
    let mut upload = database.upload("message/rfc822");
    upload.write(text.as_bytes()).unwrap();
    let content = upload.finish().unwrap();
    let name = SOURCE_ATTACHMENT.to_owned();
    vec![NewAttachment { name, content_type: "message/rfc822".to_owned(), content }]
}

fn content_of(database: &OpenDatabase) -> scrinium_database::keys::Digest {
    database.open_attachment("m", SOURCE_ATTACHMENT, None, &SERVER).unwrap().content_name
}

fn kept(database: &OpenDatabase, content: &scrinium_database::keys::Digest) -> Option<Vec<u8>> {
    let snapshot = database.store().snapshot();
    let id = SERVER.readable_id(database, &snapshot, "m".to_owned()).unwrap().unwrap();
    database.outline_at(&snapshot, &id, content).unwrap()
}

#[test]
fn an_outline_stays_with_its_source_and_goes_with_it() {
    let server = Server::quick();
    let database = server.databases.create("db", &InitialAccess::Everybody).unwrap();
    database.define_folder("Inbox", None).unwrap();
    let revision = store(
        &database,
        Edit {
            id: Some("m".to_owned()),
            json: "{}".into(),
            attachments: source(&database, "Subject: one\r\n\r\n"),
            folders: vec![FolderChange::Add { folder: "Inbox".to_owned() }],
            outline: Some("one".into()),
            ..Edit::default()
        },
    );
    let first = content_of(&database);
    assert_eq!(kept(&database, &first).as_deref(), Some(&b"one"[..]));
    let flagged = FlagsChange { add: vec!["\\Flagged".to_owned()], ..FlagsChange::default() };
    database.change_flags(&[("m".to_owned(), flagged)], &SERVER).unwrap().remove(0).unwrap();
    assert_eq!(kept(&database, &first).as_deref(), Some(&b"one"[..]), "flags are no part of it");
    // Another source under the same id has nothing of the first one, and what is found out too late is not kept.
    let now = database.read("m", &scrinium_database::ReadOptions::default(), &SERVER).unwrap().revision;
    assert_ne!(now, revision);
    let next = Edit {
        id: Some("m".to_owned()),
        revision: Some(now),
        json: json!({"edited": true}).to_string().into(),
        attachments: source(&database, "Subject: two\r\n\r\n"),
        ..Edit::default()
    };
    let revision = store(&database, next);
    let second = content_of(&database);
    assert_eq!((kept(&database, &first), kept(&database, &second)), (None, None));
    for (content, text) in [(first, "one"), (second, "two")] {
        database.keep_outlines(vec![("m".to_owned(), content, text.into())]).unwrap();
    }
    // What nobody waits for is there with the next update.
    store(&database, Edit { id: Some("other".to_owned()), json: "{}".into(), ..Edit::default() });
    assert_eq!(kept(&database, &second).as_deref(), Some(&b"two"[..]));
    let json = json!({"_deleted": true}).to_string().into();
    store(&database, Edit { id: Some("m".to_owned()), revision: Some(revision), json, ..Edit::default() });
    assert_eq!((kept(&database, &first), kept(&database, &second)), (None, None));
}
