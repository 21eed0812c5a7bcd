//! Messages that were stored by an earlier release are read again.

use std::path::Path;

use scrinium_database::{Access, Edit, EditMode, FolderChange, InitialAccess};
use scrinium_mail::import::{ImportTarget, ImportedMemo, MailDatabase, Position};
use scrinium_mail::{MessageOptions, RereadReport, imported_id, memo_of_message, reread_mail_file};
use scrinium_statistics::Tasks;
use scrinium_views::OpenDatabase;
use serde_json::{Map, Value, json};

use crate::common::{Server, documents, put};

/// Tests may do everything.
static SERVER: Access = Access::of_the_server("a test");

fn source_of(number: usize) -> Vec<u8> {
    format!(
        "From: Ann <ann@example.org>\nTo: ada@acme.example\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe_{number}?=\n\
         Date: Mon, 02 Mar 2020 10:00:00 +0100\nMessage-ID: <{number}@example.org>\n\nText.\n"
    )
    .into_bytes()
}

/// Stores messages as a release did that read them in its own way.
fn store(
    database: &OpenDatabase,
    root: &Path,
    count: usize,
    misread: impl Fn(usize, &mut Map<String, Value>),
) {
    let target = MailDatabase::new(database.clone(), "ada", root);
    let memo = |number: usize| {
        let source = source_of(number);
        let mut fields = memo_of_message(&source, &MessageOptions::default());
        misread(number, &mut fields);
        ImportedMemo {
            id: imported_id(&source, "ada"),
            fields,
            source: bytes::Bytes::from(source).into(),
            folders: vec!["Inbox".to_owned()],
            read: true,
            place: String::new(),
        }
    };
    let pending = target.submit((0..count).map(memo).collect()).unwrap();
    assert_eq!(target.finish(pending, &Position::default()).unwrap().added, count as u64);
}

fn reread(database: &OpenDatabase) -> RereadReport {
    let task = Tasks::new().start("mail_reread", None, None);
    reread_mail_file(database, &task).unwrap()
}

fn by_number(database: &OpenDatabase, number: usize) -> Map<String, Value> {
    let id = imported_id(&source_of(number), "ada");
    documents(database).into_iter().find(|document| document["_id"] == id.as_str()).unwrap()
}

#[test]
fn memos_become_what_this_release_reads_and_keep_what_others_made_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada"]);
    let database = server.databases.create("mail/ada", &InitialAccess::Everybody).unwrap();
    store(&database, folder.path(), 6, |number, fields| match number {
        0 => drop(fields.insert("Subject".to_owned(), json!("GrÃ¼Ã\u{9f}e"))),
        1 => {
            fields.insert("PostedDate".to_owned(), json!("2020-03-02T10:00:00Z"));
            fields.insert("DeliveredDate".to_owned(), json!("2020-03-02T10:00:00Z"));
            fields.insert("$ParseNotes".to_owned(), json!(["Date names no time zone"]));
        }
        // What the mbox said of its delivery stands nowhere in the message.
        2 => drop(fields.insert("DeliveredDate".to_owned(), json!("2020-03-05T00:00:00Z"))),
        3 => {
            fields.insert("Subject".to_owned(), json!("Unfinished"));
            fields.insert("$Flags".to_owned(), json!(["\\Draft"]));
        }
        4 => drop(fields.insert("$Flags".to_owned(), json!(["answered", "kept", "draft"]))),
        _ => {}
    });
    let misread = by_number(&database, 0);
    let mut edited = misread.clone();
    edited.insert("Categories".to_owned(), json!(["Kept"]));
    edited.insert("Note".to_owned(), json!("mine"));
    let edit = Edit {
        json: Value::Object(edited).to_string().into(),
        folders: vec![
            FolderChange::Make { folder: "Work".to_owned(), columns: None, special_use: None },
            FolderChange::Add { folder: "Work".to_owned() },
        ],
        read_by: Some("bob".into()),
        ..Edit::default()
    };
    database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap().wait().unwrap().remove(0).unwrap();
    put(&database, json!({"_id": "other", "Form": "Memo", "Subject": "no message"})).unwrap();
    let unread = |person: &str| database.unread(person).unwrap();
    let before = ["ada", "bob"].map(unread);
    let revisions = |number: usize| by_number(&database, number)["_rev"].clone();
    let kept: Vec<Value> = [2, 3, 5].map(revisions).to_vec();

    let report = reread(&database);
    assert_eq!(report, RereadReport { examined: 7, changed: 3, left: 0, stopped: false });
    let read = by_number(&database, 0);
    assert_eq!(read["Subject"], "Grüße 0");
    assert_eq!((&read["Categories"], &read["Note"]), (&json!(["Kept"]), &json!("mine")));
    assert_eq!(
        read["_attachments"]["message.eml"]["digest"],
        misread["_attachments"]["message.eml"]["digest"]
    );
    let read = by_number(&database, 1);
    assert_eq!(read["PostedDate"], "2020-03-02T09:00:00Z");
    assert_eq!(read["DeliveredDate"], "2020-03-02T09:00:00Z");
    assert!(!read.contains_key("$ParseNotes"));
    assert_eq!(by_number(&database, 2)["DeliveredDate"], "2020-03-05T00:00:00Z");
    assert_eq!(by_number(&database, 3)["Subject"], "Unfinished");
    let named = by_number(&database, 4);
    assert_eq!(named["$Flags"], json!(["\\Answered", "kept", "\\Draft"]), "as mail programs know them");
    assert_eq!([2, 3, 5].map(revisions).to_vec(), kept, "what is read the same is not written");
    assert_eq!(["ada", "bob"].map(unread), before, "marks and folders stay");

    let again = reread(&database);
    assert_eq!(again, RereadReport { examined: 7, changed: 0, left: 0, stopped: false });
}

#[test]
fn reading_again_resumes_where_it_was_stopped() {
    const COUNT: usize = 260;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada"]);
    let database = server.databases.create("mail/ada", &InitialAccess::Everybody).unwrap();
    store(&database, folder.path(), COUNT, |_, fields| drop(fields.insert("Subject".to_owned(), json!("?"))));
    let (mut examined, mut changed, mut stops) = (0, 0, 0);
    loop {
        // Each looks at a few, and stops.
        let tasks = Tasks::new();
        let task = tasks.start("mail_reread", None, None);
        assert!(tasks.cancel(task.id()));
        let report = reread_mail_file(&database, &task).unwrap();
        (examined, changed) = (examined + report.examined, changed + report.changed);
        if !report.stopped {
            break;
        }
        stops += 1;
    }
    assert!(stops > 3, "{stops}");
    assert_eq!((examined, changed), (COUNT as u64, COUNT as u64), "each once");
    assert!(documents(&database).iter().all(|memo| memo["Subject"].as_str().unwrap().starts_with("Grüße")));
    assert_eq!(reread(&database).changed, 0);
}
