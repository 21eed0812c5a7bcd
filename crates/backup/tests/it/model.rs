//! What is restored is what was there at that record, or at that time.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use crate::common::{
    Model, back_up, encrypt, folder, open, open_repository, options, read, read_restored, restore_to,
};
use proptest::prelude::*;
use scrinium_backup::{
    BackupError, Progress, Quiet, RESTORING, Repository, Stores, Target, prune, prune_archive, restore,
    verify, verify_archive,
};
use scrinium_fault::noise;
use scrinium_statistics::Registry;
use scrinium_store::{Batch, Family, LogError, LogStyle, Store, StoreError, StoreOptions};

#[derive(Clone, Debug)]
enum Step {
    Put(u8, usize),
    DeleteRange(u8, u8),
    Checkpoint,
    BackUp,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (any::<u8>(), 0_usize..40_000).prop_map(|(key, length)| Step::Put(key, length)),
        3 => (any::<u8>(), any::<u8>()).prop_map(|(from, to)| Step::DeleteRange(from.min(to), from.max(to))),
        1 => Just(Step::Checkpoint),
        2 => Just(Step::BackUp),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scrinium_fault::cases(6), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_restore_is_the_state_at_that_record(
        steps in prop::collection::vec(step(), 10..120), wanted in prop::collection::vec(any::<u64>(), 2),
        encrypted in any::<bool>(),
    ) {
        let dir = folder();
        let dir = dir.path();
        if encrypted {
            encrypt(dir);
        }
        let mut store = open(dir);
        // By the number of the record that made it.
        let mut states: Vec<Model> = vec![Model::new()];
        let mut backed_up = Vec::new();
        for (number, step) in (0_u8..).zip(steps) {
            let mut batch = Batch::new();
            let mut model = states.last().unwrap().clone();
            match step {
                Step::Put(key, length) => {
                    let value = vec![number; length];
                    batch.put(Family::Scan, &[key], &value);
                    model.insert(vec![key], value);
                }
                Step::DeleteRange(from, to) if from < to => {
                    batch.delete_range(Family::Scan, &[from], &[to]);
                    model.retain(|key, _| *key < vec![from] || *key >= vec![to]);
                }
                Step::DeleteRange(..) => {}
                Step::Checkpoint => store.admin().checkpoint().unwrap(),
                Step::BackUp => {
                    let made = back_up(dir, &store).unwrap();
                    prop_assert_eq!(made.manifest.sequence, states.len() as u64 - 1);
                    backed_up.push(made.manifest);
                }
                Step::Reopen => {
                    store.close().unwrap();
                    store = open(dir);
                }
            }
            if !batch.is_empty() {
                store.commit(batch).unwrap();
                states.push(model);
            }
        }
        backed_up.push(back_up(dir, &store).unwrap().manifest);
        prop_assert!(&read(&store) == states.last().unwrap());
        drop(store);
        let repository = open_repository(dir).unwrap();
        prop_assert_eq!(verify(&repository, None, None, &Quiet).unwrap().whole.len(), backed_up.len());
        let newest = backed_up.last().unwrap();
        let archive = verify_archive(newest, &dir.join("archive"), &Quiet).unwrap();
        prop_assert!(archive.damaged.is_empty(), "{:?}", archive.damaged);

        let first = backed_up[0].sequence;
        for (number, wanted) in wanted.into_iter().enumerate() {
            let wanted = first + wanted % (states.len() as u64 - first);
            let into = dir.join(format!("restored-{number}"));
            let restored = restore_to(dir, &into, Target::Sequence(wanted)).unwrap();
            prop_assert_eq!(restored.reached.sequence, wanted);
            prop_assert!(read_restored(&into) == states[wanted as usize]);
        }
        // Old backups go, and what only they needed; the newest stays whole, and the archive after it.
        // That takes no private key.
        let pruned = prune(&Repository::open(&dir.join("repository")).unwrap(), 1).unwrap();
        prop_assert_eq!(pruned.kept, [newest.id.clone()]);
        prune_archive(&repository, &dir.join("archive")).unwrap();
        prop_assert!(verify(&repository, None, None, &Quiet).unwrap().damaged.is_empty());
        let into = dir.join("restored-last");
        restore_to(dir, &into, Target::Latest).unwrap();
        prop_assert!(&read_restored(&into) == states.last().unwrap());
    }
}

fn put(store: &Store, key: &[u8], value: &[u8]) {
    let mut batch = Batch::new();
    batch.put(Family::Scan, key, value);
    store.commit(batch).unwrap();
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64
}

#[test]
fn a_restore_to_a_time_between_two_writes_has_the_first_and_not_the_second() {
    let dir = folder();
    let store = open(dir.path());
    put(&store, b"before the backup", b"");
    back_up(dir.path(), &store).unwrap();
    let mut times = vec![now_ms()];
    for key in [b"1", b"2", b"3"] {
        thread::sleep(Duration::from_millis(5));
        put(&store, key, b"");
        thread::sleep(Duration::from_millis(5));
        times.push(now_ms());
    }
    store.admin().archive_log(Duration::from_secs(30)).unwrap();
    drop(store);
    for (writes, time) in times.iter().enumerate() {
        let into = dir.path().join(format!("restored-{writes}"));
        let restored = restore_to(dir.path(), &into, Target::Time(*time)).unwrap();
        assert_eq!(read_restored(&into).len(), 1 + writes);
        // Where the archive goes no further, one cannot know.
        assert_eq!(restored.warning.is_some(), writes == 3, "{:?}", restored.warning);
    }
    let too_early = restore_to(dir.path(), &dir.path().join("early"), Target::Time(times[0] - 60_000));
    assert!(matches!(too_early, Err(BackupError::OutOfReach(_))));
    let too_far = restore_to(dir.path(), &dir.path().join("far"), Target::Sequence(1000));
    assert!(matches!(too_far, Err(BackupError::OutOfReach(_))));
    // A server does not start on what was not restored.
    assert_eq!(fs::read_dir(dir.path().join("far")).unwrap().count(), 0);
}

#[test]
fn a_store_that_was_restored_goes_on_and_is_backed_up_beside_its_former_self() {
    let dir = folder();
    let store = open(dir.path());
    put(&store, b"1", b"");
    back_up(dir.path(), &store).unwrap();
    put(&store, b"2", b"");
    store.admin().archive_log(Duration::from_secs(30)).unwrap();
    drop(store);
    let data = dir.path().join("data");
    fs::rename(&data, dir.path().join("lost")).unwrap();
    let restored = restore_to(dir.path(), &data, Target::Backup).unwrap();
    assert_eq!(restored.reached.sequence, 1);
    // Another record 2 than that of the former store, whose archive stays as it is.
    let store = Store::open(options(dir.path()), &Registry::new()).unwrap();
    put(&store, b"other", b"");
    let made = back_up(dir.path(), &store).unwrap().manifest;
    assert_eq!((made.sequence, &made.store), (2, &restored.manifest.store));
    assert_ne!(made.log_key, restored.manifest.log_key);
    put(&store, b"3", b"");
    store.admin().archive_log(Duration::from_secs(30)).unwrap();
    drop(store);
    let into = dir.path().join("again");
    restore_to(dir.path(), &into, Target::Latest).unwrap();
    assert_eq!(read_restored(&into).into_keys().collect::<Vec<_>>(), [&b"1"[..], b"3", b"other"]);
}

#[test]
fn what_was_changed_outside_the_log_is_no_silent_gap() {
    let dir = folder();
    let store = open(dir.path());
    put(&store, b"1", b"");
    back_up(dir.path(), &store).unwrap();
    store.close().unwrap();
    let off = StoreOptions { log_archive: None, log_style: LogStyle::Off, ..options(dir.path()) };
    let store = Store::open(off, &Registry::new()).unwrap();
    put(&store, b"2", b"");
    store.close().unwrap();
    let store = open(dir.path());
    put(&store, b"3", b"");
    store.admin().archive_log(Duration::from_secs(30)).unwrap();
    let refused = restore_to(dir.path(), &dir.path().join("refused"), Target::Latest);
    assert!(
        matches!(&refused, Err(BackupError::Store(StoreError::Log(LogError::Archive { .. })))),
        "{refused:?}"
    );
    // With a backup made since it continues.
    back_up(dir.path(), &store).unwrap();
    put(&store, b"4", b"");
    store.admin().archive_log(Duration::from_secs(30)).unwrap();
    drop(store);
    let into = dir.path().join("restored");
    restore_to(dir.path(), &into, Target::Latest).unwrap();
    assert_eq!(read_restored(&into).into_keys().collect::<Vec<_>>(), [b"1", b"2", b"3", b"4"]);
}

#[test]
fn what_would_be_lost_or_overwritten_is_refused() {
    let dir = folder();
    let store = open(dir.path());
    put(&store, b"1", b"");
    let within = Repository::create(&dir.path().join("data/backups"), None).unwrap();
    let refused = scrinium_backup::create(
        &within,
        &Stores::one(&store),
        &crate::common::source(dir.path()),
        None,
        &Quiet,
    );
    assert!(matches!(refused, Err(BackupError::OutOfReach(_))));
    fs::remove_dir_all(dir.path().join("data/backups")).unwrap();
    assert!(matches!(
        Repository::create(&dir.path().join("data"), None),
        Err(BackupError::NoRepository { .. })
    ));
    back_up(dir.path(), &store).unwrap();
    let refused = restore_to(dir.path(), &dir.path().join("data"), Target::Backup);
    assert!(matches!(refused, Err(BackupError::NotEmpty { .. })));
    // An archive that takes nothing is no silent gap.
    fs::rename(dir.path().join("archive"), dir.path().join("gone")).unwrap();
    put(&store, b"2", b"");
    assert!(matches!(back_up(dir.path(), &store), Err(BackupError::Store(_))));
    assert_eq!(Repository::open(&dir.path().join("repository")).unwrap().backups().unwrap().len(), 1);
}

/// Makes something where a restore is about to put the log.
struct InTheWay<'a>(&'a Path);

impl Progress for InTheWay<'_> {
    fn total(&self, _bytes: u64) {}
    fn advance(&self, _bytes: u64) {}
    fn step(&self, what: &str) {
        if what == "apply" {
            fs::create_dir_all(self.0.join("log/something")).unwrap();
        }
    }
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// The mark must outlast what may lie in its place by then: a server would find a log and no store, and start over.
#[test]
fn a_restore_that_fails_while_it_is_put_in_place_keeps_its_mark() {
    let dir = folder();
    let store = open(dir.path());
    put(&store, b"1", b"");
    back_up(dir.path(), &store).unwrap();
    drop(store);
    let into = dir.path().join("a/new/folder");
    let repository = Repository::open(&dir.path().join("repository")).unwrap();
    let order = crate::common::order(dir.path(), &into, Target::Backup);
    let failed = restore(&repository, &order, &InTheWay(&into));
    assert!(matches!(failed, Err(BackupError::Io { action: "rename", .. })), "{failed:?}");
    assert!(into.join(RESTORING).exists());
    let again = restore_to(dir.path(), &into, Target::Backup);
    assert!(matches!(again, Err(BackupError::Interrupted { .. })), "{again:?}");
    fs::remove_dir_all(&into).unwrap();
    restore_to(dir.path(), &into, Target::Backup).unwrap();
    assert_eq!(read_restored(&into).len(), 1);
}

#[test]
fn an_incremental_backup_copies_what_changed() {
    let dir = folder();
    let store = open(dir.path());
    for key in 0..200_u8 {
        // Not to be compressed.
        let mut random = noise(u64::from(key), 50_000);
        random.truncate(50_000);
        put(&store, &[key], &random);
    }
    let full = back_up(dir.path(), &store).unwrap();
    assert!(full.manifest.new_bytes > 9_000_000);
    put(&store, b"one", &[1; 1000]);
    let incremental = back_up(dir.path(), &store).unwrap();
    assert!(incremental.manifest.bytes > 9_000_000);
    assert!(incremental.manifest.new_bytes < 200_000, "{}", incremental.manifest.new_bytes);
}

#[test]
fn flipped_bits_are_found() {
    flip_bits(&folder());
}

#[test]
fn flipped_bits_of_encrypted_backups_are_found_with_the_private_key_and_without() {
    let dir = folder();
    encrypt(dir.path());
    flip_bits(&dir);
}

fn flip_bits(dir: &tempfile::TempDir) {
    let store = open(dir.path());
    for key in 0..20_u8 {
        put(&store, &[key], &noise(u64::from(key), 50_000));
    }
    back_up(dir.path(), &store).unwrap();
    drop(store);
    let repository = open_repository(dir.path()).unwrap();
    let without_key = Repository::open(&dir.path().join("repository")).unwrap();
    let mut files = Vec::new();
    let mut folders = vec![dir.path().join("repository/files"), dir.path().join("repository/backups")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    assert!(files.len() > 5);
    for (number, file) in files.iter().enumerate() {
        let whole = fs::read(file).unwrap();
        let places = [Some(0), Some(whole.len() / 2), whole.len().checked_sub(1)];
        for place in places.into_iter().flatten().filter(|place| *place < whole.len()) {
            let mut flipped = whole.clone();
            flipped[place] ^= 1 << (number % 8);
            fs::write(file, &flipped).unwrap();
            let found = verify(&repository, None, None, &Quiet).unwrap();
            assert_eq!((found.whole.len(), found.damaged.len()), (0, 1), "{} at {place}", file.display());
            let found = verify(&without_key, None, None, &Quiet).unwrap();
            assert_eq!((found.whole.len(), found.damaged.len()), (0, 1), "{} at {place}", file.display());
            let into = dir.path().join("restored");
            assert!(restore_to(dir.path(), &into, Target::Backup).is_err());
        }
        fs::remove_file(file).unwrap();
        let found = verify(&repository, None, None, &Quiet).unwrap();
        assert!(found.whole.is_empty(), "{}", file.display());
        fs::write(file, &whole).unwrap();
    }
    assert_eq!(verify(&repository, None, None, &Quiet).unwrap().whole.len(), 1);
}
