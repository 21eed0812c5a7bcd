//! The message of a document without a source is the same for ever once somebody has seen it, while the document is unchanged.

use proptest::prelude::*;
use scrinium_database::{Edit, EditMode, FlagsChange, FolderChange, InitialAccess, NewAttachment};
use scrinium_directory::DIRECTORY_DATABASE;
use scrinium_mail::{MessageComposer, Resolver};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::{SERVER, Server, documents, put};

fn composer(server: &Server, host: &str) -> MessageComposer {
    let resolver = Resolver::new(server.directory.clone(), &["home.example".to_owned()]);
    MessageComposer { host: host.to_owned(), resolver }
}

fn seen(composer: &MessageComposer, database: &OpenDatabase) -> String {
    let (source, _) = composer.frozen(database, "m", &SERVER).unwrap();
    String::from_utf8(source.bytes().unwrap().to_vec()).unwrap()
}

fn stored(database: &OpenDatabase) -> Value {
    documents(database).into_iter().find(|document| document["_id"] == "m").map(Value::Object).unwrap()
}

fn store(database: &OpenDatabase, document: &Value, files: &[Vec<u8>]) {
    let attachments = files.iter().enumerate().map(|(number, bytes)| {
        let mut upload = database.upload("application/x-test");
        upload.write(bytes).unwrap();
        let content = upload.finish().unwrap();
        let name = format!("file \u{e4}{number}");
        NewAttachment { name, content_type: "application/x-test".to_owned(), content }
    });
    let edit = Edit {
        json: document.to_string().into(),
        attachments: attachments.collect(),
        folders: vec![FolderChange::Add { folder: "Inbox".to_owned() }],
        ..Edit::default()
    };
    let update = database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap();
    update.wait().unwrap().remove(0).unwrap();
}

fn rename_ada(server: &Server, address: &str) {
    let directory = server.databases.get(DIRECTORY_DATABASE).unwrap();
    let found = documents(&directory).into_iter().find(|document| document["_id"] == "person:ada");
    let mut ada = Value::Object(found.unwrap());
    ada["InternetAddress"] = json!(address);
    put(&directory, ada).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn what_was_seen_stays(
        subject in ".{0,60}",
        body in "(.|\n|\r\n){0,3000}",
        people in prop::collection::vec(prop_oneof![Just("ada".to_owned()), Just("nobody".to_owned()), "[a-z]{1,5}@[a-z]{1,5}\\.test"], 0..4),
        files in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 0..3),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::open(folder.path(), &["ada"]);
        let database = server.databases.create("db", &InitialAccess::Everybody).unwrap();
        database.define_folder("Inbox", None).unwrap();
        let memo = json!({"_id": "m", "Form": "Memo", "From": "ada", "Subject": subject, "Body": body, "SendTo": people});
        store(&database, &memo, &files);
        let first = seen(&composer(&server, "one.example"), &database);
        // As it would be composed, and other each time: the directory and the server's name are in it.
        let plain = composer(&server, "one.example").compose(&database, ("m", stored(&database).as_object().unwrap()), &SERVER);
        prop_assert_eq!(&first, &String::from_utf8(plain.unwrap().bytes().unwrap().to_vec()).unwrap());
        rename_ada(&server, "other@acme.example");
        let other = composer(&server, "two.example");
        let now = other.compose(&database, ("m", stored(&database).as_object().unwrap()), &SERVER).unwrap();
        prop_assert_ne!(first.as_bytes(), &now.bytes().unwrap()[..]);
        prop_assert_eq!(&seen(&other, &database), &first);
        let flags = FlagsChange { add: vec!["\\Flagged".to_owned(), "word".to_owned()], ..FlagsChange::default() };
        database.change_flags(&[("m".to_owned(), flags)], &SERVER).unwrap().remove(0).unwrap();
        let mut document = stored(&database);
        document["Categories"] = json!(["Work"]);
        store(&database, &document, &[]);
        prop_assert_eq!(&seen(&other, &database), &first);
        // Another program, with another memory.
        drop((other, database));
        server.close();
        let server = Server::open(folder.path(), &[]);
        let database = server.databases.get("db").unwrap();
        prop_assert_eq!(&seen(&composer(&server, "three.example"), &database), &first);
        let mut document = stored(&database);
        document["Subject"] = json!(format!("{subject} edited"));
        store(&database, &document, &[]);
        let edited = seen(&composer(&server, "three.example"), &database);
        prop_assert!(edited != first && edited.contains("three.example"), "{edited}");
    }
}

/// What mail programs have seen is made of the document again and again, by whatever version: texts and files are never written otherwise.
#[test]
fn texts_and_files_are_written_as_they_always_were() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada"]);
    let database = server.databases.create("db", &InitialAccess::Everybody).unwrap();
    database.define_folder("Inbox", None).unwrap();
    let text: String = (1..3000_u32).filter_map(|code| char::from_u32(code * 7 % 1500)).collect();
    let bytes: Vec<u8> = (0..300_000_u32).map(|number| number.to_le_bytes()[0] ^ 0x5a).collect();
    let mut hasher = blake3::Hasher::new();
    for text in [&text, "plain\r\nlines \n.\n", "", &"long ".repeat(300), "--=_b\n"] {
        if let Some(found) = documents(&database).into_iter().find(|document| document["_id"] == "m") {
            put(&database, json!({"_id": "m", "_rev": found["_rev"], "_deleted": true})).unwrap();
        }
        store(
            &database,
            &json!({"_id": "m", "Form": "Memo", "Subject": text, "Body": text}),
            std::slice::from_ref(&bytes),
        );
        hasher.update(seen(&composer(&server, "one.example"), &database).as_bytes());
    }
    assert_eq!(hasher.finalize().to_hex().get(..32), Some("e488e36602b8e4754c6fcb8ba79501ca"));
}
