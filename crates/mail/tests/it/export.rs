//! Mail that is exported and imported is the same mail.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use scrinium_database::{Edit, EditMode, FolderChange, InitialAccess, ReadOptions, SOURCE_START};
use scrinium_mail::export::{ExportFormat, ExportReport, MailExport, MailExportError};
use scrinium_mail::import::{ImportOptions, ImportTarget, ImportedMemo, Importer, MailDatabase, Position};
use scrinium_mail::{
    MessageComposer, MessageOptions, Resolver, SOURCE_ATTACHMENT, imported_id, memo_of_message,
};
use scrinium_statistics::Tasks;
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::{SERVER, Server};

const FOLDERS: [&str; 8] =
    ["Inbox", "Projects\\2026", "R&D v1.2/x", "cur", "Inbox\\Sub", "Größe", "mbox", "Dovecot"];
const FLAGS: [&[&str]; 5] = [
    &[],
    &["\\Flagged"],
    &["\\Answered", "$Forwarded"],
    &["\\Draft", "work", "$Label1"],
    &["\\Answered", "\\Flagged", "NonJunk"],
];

#[derive(Clone, Debug)]
struct Message {
    lines: Vec<String>,
    ends: &'static str,
    folder: usize,
    flags: usize,
    read: bool,
    received_s: i64,
}

/// What somebody sees of a message.
type Sight = (String, Vec<u8>, Vec<String>, bool, i64);

fn line() -> impl Strategy<Value = String> {
    let special = [
        "From ann",
        ">From ",
        ">>From x",
        "From",
        "",
        ">",
        "X-Scrinium-Export: 1",
        "Status: RO",
        "From a Mon Mar  2 10:00:00 2020",
    ];
    prop_oneof![prop::sample::select(special.to_vec()).prop_map(str::to_owned), "[ -~äß]{0,30}"]
}

fn message() -> impl Strategy<Value = Message> {
    let ends = prop::sample::select(vec!["\n", "\r\n"]);
    let lines = prop::collection::vec(line(), 0..12);
    (lines, ends, 0..FOLDERS.len(), 0..FLAGS.len(), any::<bool>(), 800_000_000..1_800_000_000_i64).prop_map(
        |(lines, ends, folder, flags, read, received_s)| Message {
            lines,
            ends,
            folder,
            flags,
            read,
            received_s,
        },
    )
}

fn source_of(number: usize, message: &Message) -> Vec<u8> {
    let mut lines = vec![format!("Subject: number {number}"), "From: ann@example.org".to_owned()];
    if number.is_multiple_of(3) {
        lines.push("Content-Length: 20".to_owned());
        lines.push("Status: RO".to_owned());
    }
    lines.push(String::new());
    lines.extend(message.lines.iter().cloned());
    lines.into_iter().flat_map(|line| (line + message.ends).into_bytes()).collect()
}

fn fill(database: &OpenDatabase, root: &Path, messages: &[Message]) {
    let target = MailDatabase::new(database.clone(), "ada", root);
    let memos = messages.iter().enumerate().map(|(number, message)| {
        let source = source_of(number, message);
        let mut fields = memo_of_message(&source, &MessageOptions::default());
        fields.insert("$InternalDate".to_owned(), json!([message.received_s * 1000, 60]));
        fields.insert("$Flags".to_owned(), json!(FLAGS[message.flags]));
        let id = imported_id(&source, "ada");
        let folders = vec![FOLDERS[message.folder].to_owned()];
        ImportedMemo {
            id,
            fields,
            source: bytes::Bytes::from(source).into(),
            folders,
            read: message.read,
            place: String::new(),
        }
    });
    let pending = target.submit(memos.collect()).unwrap();
    target.finish(pending, &Position::default()).unwrap();
}

fn seen(database: &OpenDatabase, composer: &MessageComposer) -> BTreeSet<Sight> {
    let mut all = BTreeSet::new();
    for folder in database.folders(None).unwrap() {
        let page = database.folder_members(&folder.name, 0, 1000, (Some("ada"), &SERVER)).unwrap();
        for member in page.members {
            let document = database.read(&member.id, &ReadOptions::default(), &SERVER).unwrap();
            let memo: Value = serde_json::from_str(&document.json).unwrap();
            let flags = memo["$Flags"].as_array().cloned().unwrap_or_default();
            let mut flags: Vec<String> = flags.iter().map(|flag| flag.as_str().unwrap().to_owned()).collect();
            flags.sort();
            let source = match database.open_attachment(&member.id, SOURCE_ATTACHMENT, None, &SERVER) {
                Ok(reader) => {
                    reader.read(memo[SOURCE_START].as_u64().unwrap_or(0), 1 << 20).unwrap().to_vec()
                }
                Err(_) => composer.frozen(database, &member.id, &SERVER).unwrap().0.bytes().unwrap().to_vec(),
            };
            let received_ms = match member.facts.internal_ms {
                0 => i64::try_from(member.added_ms / 1000 * 1000).unwrap(),
                internal_ms => internal_ms,
            };
            all.insert((folder.name.clone(), source, flags, member.read.unwrap(), received_ms));
        }
    }
    all
}

fn export(
    database: &OpenDatabase,
    composer: &MessageComposer,
    (root, format): (&Path, ExportFormat),
) -> Result<ExportReport, MailExportError> {
    let task = Tasks::new().start("mail_export", None, None);
    MailExport { database, person: "ada", composer, root, format }.run(&task)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn what_is_exported_and_imported_is_the_same(messages in prop::collection::vec(message(), 1..25)) {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::open(&folder.path().join("data"), &["ada"]);
        let database = server.databases.create("mail/ada", &InitialAccess::Everybody).unwrap();
        let resolver = Resolver::new(server.directory.clone(), &["home.example".to_owned()]);
        let composer = MessageComposer { host: "home.example".to_owned(), resolver };
        fill(&database, folder.path(), &messages);
        // One without a source is exported as mail programs see it.
        let memo = json!({"_id": "made", "Form": "Memo", "Subject": "made", "Body": "From here\n", "$Flags": ["\\Flagged"]});
        let make = FolderChange::Make { folder: "Inbox".to_owned(), columns: None, special_use: None };
        let folders = vec![make, FolderChange::Add { folder: "Inbox".to_owned() }];
        let edit = Edit { json: memo.to_string().into(), folders, ..Edit::default() };
        database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap().wait().unwrap().remove(0).unwrap();
        let expected = seen(&database, &composer);
        for format in [ExportFormat::Maildir, ExportFormat::Mbox, ExportFormat::Eml] {
            let root = folder.path().join(format.text());
            let report = export(&database, &composer, (&root, format)).unwrap();
            prop_assert_eq!((report.messages, report.left_out, report.lost_keywords), (expected.len() as u64, 0, 0));
            let name = format!("mail/{}", format.text());
            let copy = server.databases.create(&name, &InitialAccess::Everybody).unwrap();
            let options = ImportOptions { with_deleted: true, ..ImportOptions::for_person("ada") };
            let target = MailDatabase::new(copy.clone(), "ada", &root);
            let imported = Importer::new(&target, options).run(&root, |_| {}).unwrap();
            prop_assert_eq!((imported.added, imported.left_out), (expected.len() as u64, 0));
            prop_assert_eq!(seen(&copy, &composer), expected.clone(), "{}", format.text());
            let refused = export(&database, &composer, (&root, format)).unwrap_err();
            prop_assert!(matches!(refused, MailExportError::NotEmpty(_)), "{}", refused);
        }
    }
}
