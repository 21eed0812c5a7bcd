//! Backups that neither the server which makes them nor a holder of the repository can read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{
    back_up, encrypt, folder, open, open_repository, order, protection, read_restored, restore_to, source,
};
use scrinium_backup::{
    BackupError, CipherError, Quiet, Repository, Stores, Target, create, prune, read_identities, restore,
    verify,
};
use scrinium_store::{Batch, Family, Store};

const CANARY: &str = "a canary that sings of people's mail";

fn put(store: &Store, key: &str, value: &str) {
    let mut batch = Batch::new();
    batch.put(Family::Scan, key.as_bytes(), value.as_bytes());
    store.commit(batch).unwrap();
}

fn files(repository: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![repository.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// A server with a file next to its store, of a name and a content that are to stay secret.
fn filled(dir: &Path) -> Store {
    let store = open(dir);
    put(&store, "mail", CANARY);
    fs::create_dir_all(dir.join("data/tls")).unwrap();
    fs::write(dir.join("data/tls/key-of-the-kingdom.pem"), CANARY).unwrap();
    store
}

#[test]
fn whoever_holds_the_repository_reads_neither_contents_nor_names_and_cannot_tell_what_files_hold() {
    let dir = folder();
    let dir = dir.path();
    encrypt(dir);
    let store = filled(dir);
    back_up(dir, &store).unwrap();
    drop(store);
    let plain = blake3::hash(CANARY.as_bytes()).to_hex();
    let all = files(&dir.join("repository"));
    assert!(all.len() > 5);
    for file in &all {
        let bytes = fs::read(file).unwrap();
        let archive = dir.join("archive").display().to_string();
        for secret in [CANARY, "key-of-the-kingdom", &archive, plain.as_str(), "AGE-SECRET"] {
            assert!(!holds(&bytes, secret), "{} holds {secret}", file.display());
        }
        assert!(!file.to_string_lossy().contains(plain.as_str()));
    }
    // The prints of the same files are others in another repository.
    let names = |repository: &Path| -> BTreeSet<String> {
        files(&repository.join("files"))
            .iter()
            .map(|file| file.file_name().unwrap().to_string_lossy().into_owned())
            .collect()
    };
    let store = open(dir);
    let other = Repository::create(&dir.join("other"), protection(dir).as_ref()).unwrap();
    create(&other, &Stores::one(&store), &source(dir), None, &Quiet).unwrap();
    assert!(names(&dir.join("other")).is_disjoint(&names(&dir.join("repository"))));
}

#[test]
fn only_the_private_key_restores() {
    let dir = folder();
    let dir = dir.path();
    encrypt(dir);
    let store = filled(dir);
    back_up(dir, &store).unwrap();
    drop(store);
    let address = dir.join("repository");
    let into = dir.join("restored");
    let without = Repository::open(&address).unwrap();
    let order = order(dir, &into, Target::Backup);
    assert!(matches!(restore(&without, &order, &Quiet), Err(BackupError::NeedsIdentity { .. })));
    let elsewhere = folder();
    encrypt(elsewhere.path());
    let wrong = read_identities(&elsewhere.path().join("identity")).unwrap();
    let with_wrong = Repository::open(&address).unwrap().with_identities(Some(wrong));
    let refused = restore(&with_wrong, &order, &Quiet);
    assert!(matches!(refused, Err(BackupError::Cipher { source: CipherError::WrongKey, .. })), "{refused:?}");
    assert!(!into.exists() || fs::read_dir(&into).unwrap().next().is_none());
    // What lies there is whole all the same.
    assert_eq!(verify(&without, None, None, &Quiet).unwrap().whole.len(), 1);
    assert_eq!(verify(&with_wrong, None, None, &Quiet).unwrap().damaged.len(), 1);

    restore_to(dir, &into, Target::Backup).unwrap();
    assert_eq!(read_restored(&into).into_values().collect::<Vec<_>>(), [CANARY.as_bytes()]);
    assert_eq!(fs::read_to_string(into.join("tls/key-of-the-kingdom.pem")).unwrap(), CANARY);
}

#[test]
fn a_server_that_cannot_read_its_backups_copies_only_what_changed_and_lets_old_ones_go() {
    let dir = folder();
    let dir = dir.path();
    encrypt(dir);
    let store = filled(dir);
    let full = back_up(dir, &store).unwrap();
    put(&store, "two", "2");
    let next = back_up(dir, &store).unwrap();
    assert!(next.new_files > 0 && next.new_files < full.new_files, "{} {}", full.new_files, next.new_files);
    let without = Repository::open(&dir.join("repository")).unwrap();
    let pruned = prune(&without, 1).unwrap();
    assert_eq!((pruned.kept, pruned.removed), (vec![next.manifest.id.clone()], vec![full.manifest.id]));
    let left = files(&dir.join("repository/backups"));
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(verify(&open_repository(dir).unwrap(), None, None, &Quiet).unwrap().whole, [next.manifest.id]);
    // One that was interrupted right before its end does not count, and goes with the next prune.
    fs::write(dir.join("repository/backups/20261122T060000000Z-abcd.age"), "half").unwrap();
    assert_eq!(without.backups().unwrap().len(), 1);
    prune(&without, 1).unwrap();
    assert_eq!(files(&dir.join("repository/backups")).len(), 2);
    put(&store, "three", "3");
    back_up(dir, &store).unwrap();
    drop(store);
    let into = dir.join("restored");
    restore_to(dir, &into, Target::Backup).unwrap();
    assert_eq!(read_restored(&into).len(), 3);
}

#[test]
fn a_repository_is_encrypted_to_one_key_or_not_at_all() {
    let dir = folder();
    let dir = dir.path();
    let store = filled(dir);
    // As earlier releases have made them.
    back_up(dir, &store).unwrap();
    encrypt(dir);
    let refused = back_up(dir, &store).unwrap_err().to_string();
    assert!(refused.contains("are not encrypted, and backup.recipient is set"), "{refused}");
    let into = dir.join("restored");
    restore_to(dir, &into, Target::Backup).unwrap();
    assert_eq!(read_restored(&into).len(), 1);

    fs::remove_dir_all(dir.join("repository")).unwrap();
    back_up(dir, &store).unwrap();
    let plain = Repository::create(&dir.join("repository"), None).unwrap_err().to_string();
    assert!(plain.contains("set it as backup.recipient"), "{plain}");
    encrypt(dir);
    let other = back_up(dir, &store).unwrap_err().to_string();
    assert!(other.contains("which is not backup.recipient"), "{other}");
    // Anyone who holds the repository does not get to say to whom it is encrypted.
    let identity = dir.join("repository/repository.json");
    let text = fs::read_to_string(&identity).unwrap();
    let swapped = protection(dir).unwrap().recipient.to_string();
    let former = Repository::open(&dir.join("repository")).unwrap().recipient().unwrap().to_owned();
    fs::write(&identity, text.replace(&former, "age1another")).unwrap();
    assert!(matches!(back_up(dir, &store), Err(BackupError::OtherProtection { .. })), "{swapped}");
}
