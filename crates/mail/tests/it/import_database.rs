//! Real mail in a real mail database: all of it, byte for byte, once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use bytes::Bytes;
use scrinium_database::{Access, FolderChange, FolderMember, ReadOptions};
use scrinium_mail::import::{
    ImportOptions, ImportTarget, ImportedMemo, Importer, MailDatabase, MailFiles, Position, quote_mbox,
};
use scrinium_mail::{MessageOptions, SOURCE_ATTACHMENT, imported_id, memo_of_message};
use scrinium_mailbox::OutlineBuilder;
use scrinium_views::OpenDatabase;
use serde_json::Value;

use crate::common::{Server, documents};

/// Tests and measurements may do everything.
static SERVER: Access = Access::of_the_server("a test");

/// A part of the corpus that `scripts/corpus` fetches: newsletters with much HTML, hard to read right.
const FOLDER: &str = "hard-ham-1";

#[test]
fn imported_mail_is_kept_byte_for_byte_and_once() {
    import_twice(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages"));
}

#[test]
fn imported_mail_of_the_corpus_is_kept_byte_for_byte_and_once() {
    if let Some(corpus) = crate::common::corpus() {
        import_twice(&corpus.join(FOLDER));
    }
}

/// How many messages of all packages the usual run stores.
const USUAL_MESSAGES: u32 = 200;

#[test]
fn every_message_of_every_corpus_comes_back_byte_for_byte() {
    let corpora = crate::common::corpora();
    if corpora.is_empty() {
        return scrinium_fault::skip("no messages are here: scripts/corpus and scripts/corpora fetch them");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada"]);
    let database = server.databases.create("mail/ada", &scrinium_database::InitialAccess::Everybody).unwrap();
    let target = MailDatabase::new(database.clone(), "ada", folder.path());
    let most = scrinium_fault::cases(USUAL_MESSAGES);
    let share = if most > USUAL_MESSAGES { usize::MAX } else { most as usize / corpora.len() };
    let paths = corpora.iter().flat_map(|corpus| {
        let step = corpus.paths.len().div_ceil(share).max(1);
        corpus.paths.iter().step_by(step)
    });
    let sources: Vec<Bytes> = paths.map(|path| Bytes::from(fs::read(path).unwrap())).collect();
    for some in sources.chunks(50) {
        let mut batch: BTreeMap<String, ImportedMemo> = BTreeMap::new();
        for source in some {
            let id = imported_id(source, "ada");
            let fields = memo_of_message(source, &MessageOptions::default());
            let memo = ImportedMemo {
                id: id.clone(),
                fields,
                source: source.clone().into(),
                folders: vec!["Inbox".to_owned()],
                read: false,
                place: String::new(),
            };
            batch.insert(id, memo);
        }
        let pending = target.submit(batch.into_values().collect()).unwrap();
        let stored = target.finish(pending, &Position::default()).unwrap();
        assert!(stored.refused.is_empty(), "{stored:?}");
    }
    for source in &sources {
        assert_eq!(stored_source(&database, source), source.as_ref());
        check_outline(&database, source);
    }
}

/// What the database gives as the source of the memo of a message.
fn stored_source(database: &OpenDatabase, source: &[u8]) -> Vec<u8> {
    let id = imported_id(source, "ada");
    let stored = database.open_attachment(&id, SOURCE_ATTACHMENT, None, &SERVER).unwrap();
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < stored.length {
        bytes.extend_from_slice(&stored.read(bytes.len() as u64, 1 << 20).unwrap());
    }
    bytes
}

/// What is kept of a message is what reading it once more finds out.
fn check_outline(database: &OpenDatabase, source: &[u8]) {
    let id = imported_id(source, "ada");
    let document = database.read(&id, &ReadOptions::default(), &SERVER).unwrap();
    let fields: Value = serde_json::from_str(&document.json).unwrap();
    let start = usize::try_from(fields["$SourceStart"].as_u64().unwrap_or(0)).unwrap();
    let mut builder = OutlineBuilder::default();
    builder.push(&source[start..]);
    // Longer ones are left to those who look.
    let wanted = builder.finish().encode().filter(|outline| outline.len() <= 4096);
    let content = database.open_attachment(&id, SOURCE_ATTACHMENT, None, &SERVER).unwrap().content_name;
    let snapshot = database.store().snapshot();
    let id = SERVER.readable_id(database, &snapshot, id).unwrap().unwrap();
    assert_eq!(database.outline_at(&snapshot, &id, &content).unwrap(), wanted);
}

fn import_twice(root: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada"]);
    let database = server.databases.create("mail/ada", &scrinium_database::InitialAccess::Everybody).unwrap();
    let target = MailDatabase::new(database.clone(), "ada", root);
    let options = ImportOptions { batch_documents: 20, ..ImportOptions::for_person("ada") };
    let importer = Importer::new(&target, options);
    let mut done = 0;
    let report = importer.run(root, |progress| done = progress.messages).unwrap();
    assert_eq!((report.messages, report.left_out), (done, 0), "{:?}", report.reasons);

    // Two files may hold the same message; it is one document then.
    let mut sources = BTreeSet::new();
    let mut files = MailFiles::open(root, Position::default(), 1 << 30).unwrap();
    while let Some(message) = files.next_message() {
        sources.insert(message.unwrap().source.bytes().unwrap());
    }
    assert_eq!(report.added, sources.len() as u64);
    assert_eq!(documents(&database).len(), sources.len());
    for source in &sources {
        assert_eq!(stored_source(&database, source), source.as_ref());
        check_outline(&database, source);
    }
    let again = importer.run(root, |_| {}).unwrap();
    assert_eq!((again.added, again.present), (0, again.messages));
}

#[test]
fn a_maildir_becomes_folders_and_read_marks() {
    let folder = tempfile::tempdir().unwrap();
    let mail = tempfile::tempdir().unwrap();
    let message = |subject: &str| format!("Subject: {subject}\nFrom: bob@x\n\n{subject}\n");
    let quoted = |subject: &str| quote_mbox(message(subject).as_bytes(), "a@b", "Thu Aug 22 13:17:22 2002");
    for (path, text) in [
        ("cur/1.x:2,S", message("seen").into_bytes()),
        ("cur/2.x:2,F", message("flagged").into_bytes()),
        ("new/3.x", message("new").into_bytes()),
        (".Projects.Old/cur/4.x:2,RS", message("old").into_bytes()),
        (".Lists/cur/5.mbox", ["one", "two"].map(quoted).concat()),
    ] {
        let path = mail.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    for part in ["tmp", ".Projects.Old/tmp", ".Projects.Old/new", ".Lists/tmp", ".Lists/new"] {
        fs::create_dir_all(mail.path().join(part)).unwrap();
    }
    let server = Server::open(folder.path(), &["ada"]);
    let database = server.databases.create("mail/ada", &scrinium_database::InitialAccess::Everybody).unwrap();
    let import = || {
        let target = MailDatabase::new(database.clone(), "ada", mail.path());
        Importer::new(&target, ImportOptions::for_person("person:ada")).run(mail.path(), |_| {}).unwrap()
    };
    assert_eq!(import().added, 6);
    let subjects = |folder: &str| -> BTreeSet<(String, bool)> {
        let members = database.folder_members(folder, 0, 100, (Some("ada"), &SERVER)).unwrap().members;
        let subject = |member: FolderMember| {
            let json = database.read(&member.id, &ReadOptions::default(), &SERVER).unwrap().json;
            let document: Value = serde_json::from_str(&json).unwrap();
            (document["Subject"].as_str().unwrap().to_owned(), member.read.unwrap())
        };
        members.into_iter().map(subject).collect()
    };
    let of = |all: &[(&str, bool)]| all.iter().map(|(name, read)| ((*name).to_owned(), *read)).collect();
    assert_eq!(subjects("Inbox"), of(&[("seen", true), ("flagged", false), ("new", false)]));
    assert_eq!(subjects("Projects\\Old"), of(&[("old", true)]));
    assert_eq!(subjects("Lists\\5"), of(&[("one", false), ("two", false)]));
    assert_eq!(database.unread("ada").unwrap().database, 4);

    // What its owner has moved and read since stays so when the import is done again.
    let inbox = database.folder_members("Inbox", 0, 100, (None, &SERVER)).unwrap().members;
    let out = FolderChange::Move { from: "Inbox".to_owned(), to: "Lists\\5".to_owned() };
    let changes = inbox.into_iter().map(|member| (member.id, out.clone())).collect();
    database.change_folders(changes, &SERVER).unwrap().wait().unwrap();
    database.mark_folder("ada", "Lists\\5", true, &SERVER).unwrap();
    assert_eq!(import().added, 0);
    assert!(subjects("Inbox").is_empty());
    assert_eq!(database.unread("ada").unwrap().database, 0);
}

#[test]
fn an_import_goes_on_from_where_it_was_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada"]);
    let database = server.databases.create("mail/ada", &scrinium_database::InitialAccess::Everybody).unwrap();
    let target = MailDatabase::new(database.clone(), "ada", Path::new("/somewhere"));
    assert_eq!(target.position().unwrap(), None);
    let odd = std::os::unix::ffi::OsStringExt::from_vec(b"a/\xe9\x00\xff\\ \xc3\xa9".to_vec());
    let position = Position { path: std::ffi::OsString::into(odd), offset: 1 << 40 };
    let pending = target.submit(Vec::new()).unwrap();
    target.finish(pending, &position).unwrap();
    assert_eq!(target.position().unwrap(), Some(position));
    let other = MailDatabase::new(database, "ada", Path::new("/elsewhere"));
    assert_eq!(other.position().unwrap(), None, "another import has its own place");
    target.complete().unwrap();
    target.complete().unwrap();
    assert_eq!(target.position().unwrap(), None);
}
