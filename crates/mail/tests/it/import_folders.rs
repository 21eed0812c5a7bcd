//! Folders as mail programs keep them are read whole: whatever their files are called, with what was kept of each message.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use scrinium_mail::import::{ImportError, MailFiles, Position, RawMessage};

const SEPARATOR: &str = "From - Mon Mar 02 10:00:00 2020\n";

fn write(root: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn message(subject: &str) -> String {
    format!("From: Ann <ann@example.org>\nSubject: {subject}\n\nText.\n")
}

fn mbox(subjects: &[&str]) -> String {
    subjects.iter().map(|subject| format!("{SEPARATOR}{}\n", message(subject))).collect()
}

struct Read {
    messages: Vec<RawMessage>,
    passed: Vec<(&'static str, u64)>,
}

fn read_with(root: &Path, with_deleted: bool) -> Read {
    let files = MailFiles::open(root, Position::default(), 1 << 20).unwrap();
    let mut files = files.with_deleted(with_deleted);
    let messages = std::iter::from_fn(|| files.next_message()).map(Result::unwrap).collect();
    let passed = files.passed_over().kinds().map(|(reason, kind)| (reason, kind.count)).collect();
    Read { messages, passed }
}

/// Subjects with the folders that they go into.
fn placed(read: &Read) -> Vec<(String, String)> {
    let subject = |message: &RawMessage| {
        let text = String::from_utf8(message.source.bytes().unwrap().to_vec()).unwrap();
        let subject = text.lines().find_map(|line| line.strip_prefix("Subject: ")).unwrap().to_owned();
        (message.folder.clone(), subject)
    };
    let mut placed: Vec<_> = read.messages.iter().map(subject).collect();
    placed.sort();
    placed
}

fn expect(read: &Read, wanted: &[(&str, &str)]) {
    let mut wanted: Vec<_> = wanted.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    wanted.sort();
    assert_eq!(placed(read), wanted, "{:?}", read.passed);
}

#[test]
fn mboxes_without_an_ending_are_folders() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path();
    write(path, "Inbox", mbox(&["1", "2", "3"]));
    write(path, "Inbox.msf", "// <!-- <mdb:mork:z v=\"1.4\"/> -->\n");
    write(path, "Inbox.sbd/Old", mbox(&["4"]));
    write(path, "sent-mail", format!("From ann Mon Mar  2 10:00:00 2020\n{}", message("5")));
    write(
        path,
        "2020-March.txt",
        "From ann at example.org  Mon Mar  2 10:00:00 2020\nFrom: ann\nSubject: 6\n\nx\n\nFrom ann at example.org  Mon Mar  2 11:00:00 2020\nFrom: ann\nSubject: 7\n\ny\n",
    );
    write(path, "2019", mbox(&["8", "9"]));
    write(path, "00001.7c53336b37003a92", format!("{SEPARATOR}{}", message("one file")));
    write(path, "speech.txt", "From the President\n\nSubject: no header\n");
    write(path, "popstate.dat", "x");
    write(path, "Letters", "From the President\n");
    let read = read_with(path, false);
    expect(
        &read,
        &[
            ("Inbox", "1"),
            ("Inbox", "2"),
            ("Inbox", "3"),
            ("Inbox\\Old", "4"),
            ("sent-mail", "5"),
            ("2020-March", "6"),
            ("2020-March", "7"),
            ("2019", "8"),
            ("2019", "9"),
            ("Inbox", "one file"),
            ("Inbox", "no header"),
        ],
    );
    assert_eq!(read.passed, [("index or settings of a mail program", 2), ("not mail", 1)]);
    let kept = read.messages.iter().find(|message| message.place.contains("00001")).unwrap();
    assert!(
        kept.source.bytes().unwrap().starts_with(SEPARATOR.as_bytes()),
        "a message in a file of its own is kept byte for byte"
    );
}

#[test]
fn maildirs_within_maildirs_and_incomplete_ones_are_read() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path();
    write(path, "nested/A/cur/1.h:2,S", message("a"));
    write(path, "nested/A/B/cur/2.h:2,", message("b"));
    for folder in ["nested/A/new", "nested/A/tmp", "nested/A/B/tmp"] {
        fs::create_dir_all(path.join(folder)).unwrap();
    }
    write(path, "plus/cur/3.h:2,RF", message("c"));
    write(path, "plus/.Entw&APw-rfe/cur/4.h!2,D", message("d"));
    write(path, "plus/dovecot-uidlist", "Subject: none\n");
    write(path, "plus/tmp/5.h", message("unfinished"));
    write(path, "bare/.INBOX.Sent/cur/6.h;2,S", message("f"));
    write(path, "bare/.git/HEAD", "ref: refs/heads/main\n");
    let read = read_with(path, false);
    expect(
        &read,
        &[
            ("nested\\A", "a"),
            ("nested\\A\\B", "b"),
            ("plus", "c"),
            ("plus\\Entwürfe", "d"),
            ("bare\\Sent", "f"),
        ],
    );
    let state = |subject: &str| {
        let ends = format!("Subject: {subject}\n\nText.\n");
        read.messages
            .iter()
            .find(|message| message.source.bytes().unwrap().ends_with(ends.as_bytes()))
            .unwrap()
            .state
            .clone()
    };
    assert!(state("a").read && !state("b").read && state("f").read);
    assert_eq!((state("c").flags(), state("d").flags()), (vec!["\\Answered", "\\Flagged"], vec!["\\Draft"]));
    assert_eq!(
        read.passed,
        [
            ("an unfinished delivery to a Maildir", 1),
            ("hidden", 1),
            ("index or settings of a mail program", 1)
        ]
    );
}

#[test]
fn what_was_deleted_is_passed_over_or_goes_into_the_trash() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path();
    let marked = |marks: &str, subject: &str| format!("{SEPARATOR}{marks}{}\n", message(subject));
    write(
        path,
        "Inbox",
        [
            marked("X-Mozilla-Status: 0009\n", "expunged"),
            marked("X-Mozilla-Status: 0005\n", "marked"),
            marked("Status: RO\nX-Status: D\n", "deleted"),
            marked("Status: O\n", "old"),
        ]
        .concat(),
    );
    write(path, "Mail/cur/1.h:2,ST", message("trashed"));
    write(path, "mh/.mh_sequences", "unseen: 2\nreplied: 1\n");
    write(path, "mh/1", message("mh one"));
    write(path, "mh/2", message("mh two"));
    write(path, "mh/,3", message("mh three"));
    let read = read_with(path, false);
    expect(&read, &[("Inbox", "marked"), ("Inbox", "old"), ("mh", "mh one"), ("mh", "mh two")]);
    let read_marks: Vec<_> = read.messages.iter().map(|message| message.state.read).collect();
    assert_eq!(read_marks, [true, false, true, false]);
    assert_eq!(read.passed, [("deleted where it lay", 4), ("index or settings of a mail program", 1)]);
    let all = placed(&read_with(path, true));
    assert_eq!(all.iter().filter(|(folder, _)| folder == "Trash").count(), 3, "{all:?}");
}

#[test]
fn what_is_no_mail_is_refused_with_what_to_do() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path();
    let refusal = |name: &str| match MailFiles::open(&path.join(name), Position::default(), 1 << 20) {
        Err(error @ ImportError::NotMail { .. }) => error.to_string(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("{name} was taken"),
    };
    for (name, bytes, word) in [
        ("a.mbox.gz", &b"\x1f\x8b\x08\0\0"[..], "zcat"),
        ("b.zip", b"PK\x03\x04", "unzip"),
        ("c.bz2", b"BZh91AY", "bzcat"),
        ("d.xz", b"\xfd7zXZ\0\0", "xzcat"),
        ("e.pst", b"!BDN\0", "readpst"),
        ("f", b"\x01\x02\0\xff", "no text"),
        ("g", b"some words\n", "begins neither"),
    ] {
        write(path, name, bytes);
        assert!(refusal(name).contains(word), "{}", refusal(name));
    }
    write(path, "empty.mbox", "");
    let read = read_with(&path.join("empty.mbox"), false);
    assert_eq!((read.messages.len(), read.passed), (0, vec![("empty", 1)]));
    // In a folder they are named, and the rest is read.
    write(path, "h.eml", message("h"));
    let read = read_with(path, false);
    expect(&read, &[("Inbox", "h")]);
    assert_eq!(read.passed.iter().map(|(_, count)| count).sum::<u64>(), 8);
}

#[test]
fn pipes_are_read_and_devices_refused() {
    let root = tempfile::tempdir().unwrap();
    let pipe = root.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::write(pipe, mbox(&["1", "2"])).unwrap())
    };
    expect(&read_with(&pipe, false), &[("Inbox", "1"), ("Inbox", "2")]);
    writer.join().unwrap();

    let first = |path: &Path| MailFiles::open(path, Position::default(), 1 << 20).unwrap().next_message();
    assert!(first(Path::new("/dev/null")).is_none());
    let Some(Err(error)) = first(Path::new("/dev/zero")) else { panic!("a device was read") };
    assert!(error.to_string().contains("a device"), "{error}");
    let began = Instant::now();
    let Some(Err(error)) = first(&pipe) else { panic!("nobody writes there") };
    assert!(error.to_string().contains("nobody writes"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(60));
}
