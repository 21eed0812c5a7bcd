//! Mail in files: mbox, Maildir and folders are read whole, once, and from where an import stopped.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::Path;

use proptest::prelude::*;
use scrinium_mail::import::{
    ImportError, ImportOptions, ImportTarget, ImportedMemo, Importer, MailFiles, MboxItem, MboxReader,
    Position, StoredBatch, quote_mbox,
};

const NO_LIMIT: u64 = 1 << 30;

fn read_mbox(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = MboxReader::new(Cursor::new(bytes), 0, NO_LIMIT);
    let mut messages = Vec::new();
    while let Some(item) = reader.next_message().unwrap() {
        match item {
            MboxItem::Message { source, .. } => messages.push(source.bytes().unwrap().to_vec()),
            MboxItem::TooLarge { .. } => panic!("there is no limit"),
            MboxItem::FolderData { .. } => panic!("no program wrote it"),
        }
    }
    assert_eq!(reader.offset(), bytes.len() as u64);
    messages
}

/// Lines that are dangerous in an mbox.
fn lines() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("From here on it is text\n"),
        Just("From ada@x Thu Aug 22 13:17:22 2002\n"),
        Just(">From ada@x Thu Aug 22 13:17:22 2002\n"),
        Just(">>From \n"),
        Just(" From x 12:00 2002\n"),
        Just("\n"),
        Just("\r\n"),
        Just("Subject: x\r\n"),
        Just(">\n"),
        Just("ordinary text of a line\n"),
    ];
    prop::collection::vec(line, 1..12).prop_map(|lines| lines.concat().into_bytes())
}

proptest! {
    #[test]
    fn messages_joined_to_an_mbox_come_apart_again(messages in prop::collection::vec(lines(), 0..6)) {
        let mbox: Vec<u8> =
            messages.iter().flat_map(|m| quote_mbox(m, "ada@x", "Thu Aug 22 13:17:22 2002")).collect();
        prop_assert_eq!(&read_mbox(&mbox), &messages);

        // From the offset after each message the rest is read.
        let mut reader = MboxReader::new(Cursor::new(&mbox), 0, NO_LIMIT);
        for read in 1..=messages.len() {
            reader.next_message().unwrap().unwrap();
            let offset = reader.offset();
            prop_assert_eq!(read_mbox_from(&mbox, offset), messages[read..].to_vec());
        }
    }

    #[test]
    fn no_byte_of_anything_is_lost(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'F'), any::<u8>()], 0..300)) {
        // Without separators and quoting everything but blank lines at the beginning comes out as one message.
        let messages = read_mbox(&bytes);
        if !bytes.windows(5).any(|window| window == b"From ") {
            let all = messages.concat();
            prop_assert_eq!(all.trim_ascii(), bytes.trim_ascii());
        }
    }
}

fn read_mbox_from(mbox: &[u8], offset: u64) -> Vec<Vec<u8>> {
    let rest = &mbox[usize::try_from(offset).unwrap()..];
    read_mbox(rest)
}

#[test]
fn mboxes_of_other_programs_are_read() {
    let crlf = b"From a@b Thu Aug 22 13:17:22 2002\r\nSubject: 1\r\n\r\none\r\n\r\nFrom - Fri Aug 23 01:00:00 2002\r\n\r\ntwo";
    assert_eq!(read_mbox(crlf), [&b"Subject: 1\r\n\r\none\r\n"[..], b"\r\ntwo"]);
    let undated = b"From somebody\nSubject: 1\n\n\nFrom another\n\n2\n";
    assert_eq!(read_mbox(undated), [&b"Subject: 1\n\n"[..], b"\n2\n"]);
    let takeout = b"From 17@xxx Thu Aug 22 13:17:22 +0000 2002\na\n\nFrom text alone\n";
    assert_eq!(read_mbox(takeout), [&b"a\n\nFrom text alone\n"[..]]);
    let headless = b"\n\ntext before\n\nFrom a@b Thu Aug 22 13:17:22 2002\nx\n";
    assert_eq!(read_mbox(headless), [&b"text before\n"[..], b"x\n"]);
    assert!(read_mbox(b"").is_empty());

    let mut reader = MboxReader::new(Cursor::new(crlf), 0, NO_LIMIT);
    let Some(MboxItem::Message { delivered_s, .. }) = reader.next_message().unwrap() else { panic!() };
    assert_eq!(delivered_s, Some(1_030_022_242));

    let mut long = b"From a@b Thu Aug 22 13:17:22 2002\n".to_vec();
    long.extend(std::iter::repeat_n(b'x', 200_000));
    long.extend(b"\n\nFrom a@b Thu Aug 22 13:17:22 2002\nshort\n");
    let mut reader = MboxReader::new(Cursor::new(&long), 0, 150_000);
    assert!(matches!(reader.next_message().unwrap(), Some(MboxItem::TooLarge { offset: 0 })));
    assert!(
        matches!(reader.next_message().unwrap(), Some(MboxItem::Message { source, .. }) if source.bytes().unwrap() == "short\n")
    );
    assert!(reader.next_message().unwrap().is_none());
}

fn write(root: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn read_all(root: &Path, resume: Position) -> (Vec<String>, Vec<String>, Vec<Position>) {
    let mut files = MailFiles::open(root, resume, NO_LIMIT).unwrap();
    let (mut sources, mut errors, mut positions) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(next) = files.next_message() {
        match next {
            Ok(message) => {
                sources.push(String::from_utf8(message.source.bytes().unwrap().to_vec()).unwrap());
                positions.push(message.position);
            }
            Err(error) => errors.push(error.to_string()),
        }
    }
    (sources, errors, positions)
}

fn folder() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let path = root.path();
    write(path, "b/2.eml", "Subject: b2\n");
    write(path, "b/10.txt", "no header at all");
    write(path, "b/x/1", "Subject: bx1\n");
    write(path, "a.mbox", "From a@b Thu Aug 22 13:17:22 2002\nm1\n\nFrom a@b Thu Aug 22 13:17:22 2002\nm2\n");
    write(path, "b.c/deep.eml", "Subject: bc\n");
    write(path, "list.json", "{\n\"a\": 1}");
    write(path, "data.js", "'use strict';\nvar a: b");
    write(path, ".hidden.eml", "Subject: hidden\n");
    write(path, "maildir/tmp/1", "Subject: tmp\n");
    write(path, "maildir/new/1", "Subject: new\n");
    write(path, "maildir/cur/1:2,S", "whatever lies here is mail");
    write(path, "maildir/.Sent/cur/1", "Subject: sent\n");
    write(path, "maildir/.Sent/new/2", "Subject: sent too\n");
    write(path, "maildir/dovecot.index", "Subject: none\n");
    write(path, "z.eml", "");
    root
}

#[test]
fn a_tree_of_mail_is_read_in_one_order_from_anywhere() {
    let root = folder();
    let path = root.path();
    std::os::unix::fs::symlink(path, path.join("b/loop")).unwrap();
    std::os::unix::fs::symlink(path.join("z.eml"), path.join("link.eml")).unwrap();
    let (sources, errors, positions) = read_all(path, Position::default());
    let expected = [
        "m1\n",
        "m2\n",
        "no header at all",
        "Subject: b2\n",
        "Subject: bx1\n",
        "Subject: bc\n",
        "Subject: sent\n",
        "Subject: sent too\n",
        "whatever lies here is mail",
        "Subject: new\n",
    ];
    assert_eq!(sources, expected);
    assert!(errors.is_empty(), "{errors:?}");
    for (read, position) in positions.iter().enumerate() {
        assert_eq!(read_all(path, position.clone()).0, expected[read + 1..], "after {position:?}");
    }
    let measured = MailFiles::measure(path).unwrap();
    assert_eq!(measured.files, 9);

    assert_eq!(read_all(&path.join("b/2.eml"), Position::default()).0, ["Subject: b2\n"]);
    assert_eq!(read_all(&path.join("a.mbox"), Position::default()).0, ["m1\n", "m2\n"]);
    assert_eq!(read_all(&path.join("maildir"), Position::default()).0.len(), 4);
    let missing = MailFiles::open(&path.join("nothing"), Position::default(), NO_LIMIT);
    assert!(matches!(missing, Err(ImportError::Start { .. })));
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_read() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &format!("{}/x.eml", "d/".repeat(40)), "Subject: too deep\n");
    write(root.path(), "z.eml", "Subject: z\n");
    let (sources, errors, _) = read_all(root.path(), Position::default());
    assert_eq!(sources, ["Subject: z\n"]);
    assert!(errors.len() == 1 && errors[0].contains("is too deep"), "{errors:?}");

    let mut files = MailFiles::open(root.path(), Position::default(), 3).unwrap();
    let errors: Vec<_> = std::iter::from_fn(|| files.next_message()).filter_map(Result::err).collect();
    assert!(matches!(errors.last(), Some(ImportError::TooLarge { .. })));
}

/// A mail database that may stop taking batches.
#[derive(Default)]
struct Memory {
    stored: RefCell<BTreeMap<String, Vec<u8>>>,
    position: RefCell<Option<Position>>,
    batches_left: Cell<usize>,
}

impl ImportTarget for Memory {
    type Pending = StoredBatch;

    fn position(&self) -> Result<Option<Position>, String> {
        Ok(self.position.borrow().clone())
    }

    fn submit(&self, batch: Vec<ImportedMemo>) -> Result<StoredBatch, String> {
        let left = self.batches_left.get();
        self.batches_left.set(left.checked_sub(1).ok_or("the disk is full")?);
        let mut stored = StoredBatch::default();
        for memo in batch {
            assert_eq!(memo.fields["$Size"], memo.source.len());
            match self.stored.borrow_mut().insert(memo.id, memo.source.bytes().unwrap().to_vec()) {
                None => stored.added += 1,
                Some(_) => stored.present += 1,
            }
        }
        Ok(stored)
    }

    fn finish(&self, pending: StoredBatch, position: &Position) -> Result<StoredBatch, String> {
        *self.position.borrow_mut() = Some(position.clone());
        Ok(pending)
    }

    fn complete(&self) -> Result<(), String> {
        *self.position.borrow_mut() = None;
        Ok(())
    }
}

#[test]
fn an_import_that_stops_goes_on_without_doubles() {
    let root = folder();
    let options = ImportOptions { batch_documents: 2, ..ImportOptions::for_person("ada") };
    for batches in 0..8 {
        let target = Memory::default();
        target.batches_left.set(batches);
        let mut progress = Vec::new();
        let importer = Importer::new(&target, options.clone());
        let first = importer.run(root.path(), |now| progress.push((now.messages, now.done_bytes)));
        assert_eq!(first.is_err(), batches < 5);
        assert!(progress.is_sorted());
        target.batches_left.set(100);
        let second = importer.run(root.path(), |_| {}).unwrap();
        assert_eq!(second.added + second.present, second.messages);
        assert_eq!(target.stored.borrow().len(), 10);
        // What the first run was told of as durable is not read again.
        let again = second.messages;
        assert!(again <= 10 && (!(4..5).contains(&batches) || again < 10), "{batches}: {again}");
    }
    let target = Memory::default();
    target.batches_left.set(100);
    let report = Importer::new(&target, options).run(root.path(), |_| {}).unwrap();
    assert_eq!((report.messages, report.added, report.left_out), (10, 10, 0));
    assert_eq!(report.damaged + report.incomplete, 10, "none of them has all it should");
}
