//! Real mail in a real mail database: all of it, byte for byte, once.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::{Server, documents};
use scrinium_mail::import::{ImportOptions, Importer, MailDatabase, MailFiles, Position};
use scrinium_mail::{SOURCE_ATTACHMENT, imported_id};

/// A part of the corpus that `scripts/corpus` fetches: newsletters with much HTML, hard to read right.
const FOLDER: &str = "hard-ham-1";

#[test]
fn imported_mail_is_kept_byte_for_byte_and_once() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages");
    let corpus = common::corpus().map(|corpus| corpus.join(FOLDER));
    for root in [Some(samples), corpus].into_iter().flatten() {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::open(folder.path(), &["ada"]);
        let database = server.databases.create("mail/ada").unwrap();
        let target = MailDatabase::new(database.clone(), &root);
        let options = ImportOptions { batch_documents: 20, ..ImportOptions::for_person("ada") };
        let importer = Importer::new(&target, options);
        let mut done = 0;
        let report = importer.run(&root, |progress| done = progress.messages).unwrap();
        assert_eq!((report.messages, report.left_out), (done, 0), "{:?}", report.reasons);

        // Two files may hold the same message; it is one document then.
        let mut sources = BTreeSet::new();
        let mut files = MailFiles::open(&root, Position::default(), 1 << 30).unwrap();
        while let Some(message) = files.next_message() {
            sources.insert(message.unwrap().source);
        }
        assert_eq!(report.added, sources.len() as u64);
        assert_eq!(documents(&database).len(), sources.len());
        for source in &sources {
            let stored =
                database.open_attachment(&imported_id(source, "ada"), SOURCE_ATTACHMENT, None).unwrap();
            let mut bytes = Vec::new();
            while (bytes.len() as u64) < stored.length {
                bytes.extend_from_slice(&stored.read(bytes.len() as u64, 1 << 20).unwrap());
            }
            assert_eq!(bytes, source.as_ref());
        }
        let again = importer.run(&root, |_| {}).unwrap();
        assert_eq!((again.added, again.present), (0, again.messages));
    }
}

#[test]
fn an_import_goes_on_from_where_it_was_remembered() {
    use scrinium_mail::import::ImportTarget;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada"]);
    let database = server.databases.create("mail/ada").unwrap();
    let target = MailDatabase::new(database.clone(), Path::new("/somewhere"));
    assert_eq!(target.position().unwrap(), None);
    let odd = std::os::unix::ffi::OsStringExt::from_vec(b"a/\xe9\x00\xff\\ \xc3\xa9".to_vec());
    let position = Position { path: std::ffi::OsString::into(odd), offset: 1 << 40 };
    let pending = target.submit(Vec::new()).unwrap();
    target.finish(pending, &position).unwrap();
    assert_eq!(target.position().unwrap(), Some(position));
    let other = MailDatabase::new(database, Path::new("/elsewhere"));
    assert_eq!(other.position().unwrap(), None, "another import has its own place");
    target.complete().unwrap();
    target.complete().unwrap();
    assert_eq!(target.position().unwrap(), None);
}
