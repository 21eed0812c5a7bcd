//! What a program did is recorded as it was; what was synced is on every disk, and nothing else is certain.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use rand::SeedableRng;
use rand::rngs::StdRng;
use scrinium_fault::{Calls, Disk, Failure, Faults, Image, Journal};

/// Runs a script of the shell in the folder. Its redirections are recorded for its own commands only: what a program
/// inherits is not known to be of the folder.
fn record(root: &Path, journal: &Path, script: &str, faults: &Faults) {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(root);
    faults.interpose(&mut command, root, journal);
    assert!(command.status().unwrap().success());
}

fn sorted(mut image: Image) -> Image {
    image.folders.sort();
    image.files.sort();
    image
}

#[test]
fn what_is_recorded_is_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (root, journal) = (folder.path().join("root"), folder.path().join("journal"));
    std::fs::create_dir(&root).unwrap();
    let script =
        "echo one > a; echo two >> a; mkdir -p d/e; cp a d/b; ln a d/e/c; mv d/b b; rm a; echo 3 > d/e/c
        mkdir gone; echo x > gone/x; rm -r gone; echo said > marks; truncate -s 20 b";
    record(&root, &journal, script, &Faults::default());
    // A program after it finds what it left, and its descriptors mean other files.
    record(&root, &journal, "cp b d/again; mv d moved", &Faults::default());
    std::fs::remove_file(root.join("marks")).unwrap();
    let journal = Journal::read(&journal).unwrap();
    let mut disk = Disk::new(0);
    journal.events().iter().for_each(|event| disk.play(event));
    assert_eq!(sorted(disk.current()), sorted(Disk::holding(&root, 0).unwrap().current()));
    assert_eq!(disk.marks(), ["said"]);
}

#[test]
fn what_was_synced_is_on_every_disk_and_nothing_else_is_certain() {
    let folder = tempfile::tempdir().unwrap();
    let (root, journal) = (folder.path().join("root"), folder.path().join("journal"));
    std::fs::create_dir(&root).unwrap();
    let script =
        "echo old > whole; sync whole .; echo new > draft; sync draft; mv draft whole; echo lost > loose";
    record(&root, &journal, script, &Faults::default());
    let journal = Journal::read(&journal).unwrap();
    let mut disk = Disk::new(0);
    journal.events().iter().for_each(|event| disk.play(event));
    let mut seen = BTreeSet::new();
    for seed in 0..2000 {
        let image = sorted(disk.image(&mut StdRng::seed_from_u64(seed)));
        let texts = image.files.into_iter().map(|(path, text)| (path, String::from_utf8(text).unwrap()));
        seen.insert(texts.collect::<Vec<_>>());
    }
    let file = |name: &str, text: &str| (PathBuf::from(name), text.to_owned());
    let mut expected = BTreeSet::new();
    // The draft's name was never durable, so it is nowhere, next to the old file, or instead of it.
    for renamed in [
        vec![file("whole", "old\n")],
        vec![file("draft", "new\n"), file("whole", "old\n")],
        vec![file("whole", "new\n")],
    ] {
        expected.insert(renamed);
    }
    // Names of one folder come in their order; of a file that was not synced there is nothing, its length, or all.
    for text in ["", "\0\0\0\0\0", "lost\n"] {
        expected.insert(vec![file("loose", text), file("whole", "new\n")]);
    }
    assert_eq!(seen, expected);
}

#[test]
fn calls_fail_between_the_marks() {
    let folder = tempfile::tempdir().unwrap();
    let (root, journal) = (folder.path().join("root"), folder.path().join("journal"));
    std::fs::create_dir(&root).unwrap();
    let failure = Failure { error: 28, calls: Calls::OPEN, first: 1, count: 1, part: "file".into() };
    // By the shell itself: each process has failures of its own.
    let script = "echo > file-1; echo @fail > marks; echo > file-2; echo > file-3 && exit 1; echo > file-4
        echo @mend > marks; echo > file-5; test ! -e file-3 -a -e file-4";
    record(&root, &journal, script, &Faults { failure: Some(failure), ..Faults::default() });
}
