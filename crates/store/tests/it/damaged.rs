//! Damage in every kind of file of a store: it opens with what is sound, or says why not; nothing is read that was not
//! written; and what is rewritten has all that could be read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_fault::{Kills, copy_folder, harm, quick_folder};
use scrinium_statistics::Registry;
use scrinium_store::{Batch, Family, KeyRange, ScanStep, Store, StoreError, StoreOptions};

type Contents = BTreeMap<(Family, Vec<u8>), Vec<u8>>;

const FAMILIES: [Family; 4] = [Family::Point, Family::Scan, Family::Churn, Family::Blob];

fn options(dir: &Path) -> StoreOptions {
    let mut options = StoreOptions::new(dir);
    options.budget_bytes = Some(16 << 20);
    options.log_extent_bytes = 1 << 20;
    options.reserve_bytes = 1 << 20;
    options
}

/// A store of files that were flushed at several times, closed.
fn fill(dir: &Path, random: &mut StdRng) -> Contents {
    let store = Store::open(options(dir), &Registry::new()).unwrap();
    let mut contents = Contents::new();
    for round in 0..4_u32 {
        for number in 0..150_u32 {
            let mut batch = Batch::new();
            for family in FAMILIES {
                let key = [number.to_be_bytes(), (round % 2).to_be_bytes()].concat();
                let mut value =
                    vec![0; if family == Family::Blob { 5000 } else { random.random_range(20..400) }];
                random.fill(value.as_mut_slice());
                batch.put(family, &key, &value);
                contents.insert((family, key), value);
            }
            store.commit(batch).unwrap();
        }
        store.admin().checkpoint().unwrap();
    }
    store.close().unwrap();
    contents
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else if entry.metadata().unwrap().len() > 0 {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

/// How many entries could be read, all of which are as they were written; and how many gaps there are.
fn check(store: &Store, contents: &Contents, told: &str) -> (usize, usize) {
    let snapshot = store.snapshot();
    let (mut found, mut gaps) = (0, Vec::new());
    for family in FAMILIES {
        let mut scan = snapshot.tolerant(family, KeyRange::ALL);
        while let Some(step) = scan.next() {
            match step {
                ScanStep::Entry(key, value) => {
                    assert_eq!(
                        contents.get(&(family, key.to_vec())).map(Vec::as_slice),
                        Some(value),
                        "{told}"
                    );
                    found += 1;
                }
                ScanStep::Gap(gap) => gaps.push(gap),
            }
        }
    }
    let in_gap = |family: Family, key: &[u8]| {
        gaps.iter().any(|gap| {
            gap.family == family
                && key >= gap.from.as_slice()
                && gap.to.as_ref().is_none_or(|to| key < to.as_slice())
        })
    };
    let outside = contents.keys().filter(|(family, key)| !in_gap(*family, key)).count();
    assert_eq!(outside, found, "{told}: what is missing lies in gaps");
    (found, gaps.len())
}

#[test]
fn harmed_files_are_named_and_nothing_else_is_read_than_was_written() {
    let Kills { seed, count: runs } = Kills::from_environment(10);
    let place = quick_folder();
    let whole = place.path().join("whole");
    let contents = fill(&whole, &mut StdRng::seed_from_u64(1));
    let (mut refused, mut with_gaps, mut sound) = (0, 0, 0);
    for run in 0..runs {
        let mut random = StdRng::seed_from_u64(seed.wrapping_add(run));
        let dir = place.path().join("harmed");
        let _ = fs::remove_dir_all(&dir);
        copy_folder(&whole, &dir).unwrap();
        let all = files(&dir);
        let path = &all[random.random_range(0..all.len())];
        let what = harm(path, &mut random).unwrap();
        let told = format!("SCRINIUM_SEED={} {} {what}", seed.wrapping_add(run), path.display());
        match Store::open(options(&dir), &Registry::new()) {
            Err(error) => {
                refused += 1;
                assert!(!matches!(error, StoreError::Full | StoreError::Closed), "{told}: {error}");
            }
            Ok(store) => {
                let (_, gaps) = check(&store, &contents, &told);
                let lost = store.admin().damaged_files().len();
                drop(store);
                if gaps == 0 {
                    sound += 1;
                    continue;
                }
                with_gaps += 1;
                let rewritten = Store::rewrite(&options(&dir), |_| {}).unwrap();
                assert!(!rewritten.gaps.is_empty(), "{told}, {lost} files");
                assert!(rewritten.kept.exists());
                let store = Store::open(options(&dir), &Registry::new()).unwrap();
                assert_eq!(store.admin().damaged_files(), [], "{told}");
                let mut found = 0;
                for family in FAMILIES {
                    let snapshot = store.snapshot();
                    let mut scan = snapshot.tolerant(family, KeyRange::ALL);
                    while let Some(step) = scan.next() {
                        let ScanStep::Entry(key, value) = step else { unreachable!("{told}") };
                        let wanted = contents.get(&(family, key.to_vec())).map(Vec::as_slice);
                        assert_eq!(wanted, Some(value), "{told}");
                        found += 1;
                    }
                }
                assert_eq!(found, rewritten.entries, "{told}");
                let mut batch = Batch::new();
                batch.put(Family::Point, b"new", b"1");
                store.commit(batch).unwrap();
                store.close().unwrap();
            }
        }
    }
    println!("{refused} refused, {with_gaps} with gaps, {sound} read whole");
}

/// A server that is started again and again while the files are rewritten must not get in between: it would write to
/// files that are about to be put aside.
#[test]
fn nobody_opens_the_old_files_while_new_ones_take_their_place() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("store");
    fill(&dir, &mut StdRng::seed_from_u64(1));
    let (rewritten, ended) = (dir.join("tree.rewritten"), std::sync::atomic::AtomicBool::new(false));
    let got_in = || {
        let lock = fs::File::open(dir.join("store.lock")).unwrap();
        while !ended.load(std::sync::atomic::Ordering::Relaxed) {
            if rewritten.exists() && lock.try_lock().is_ok() {
                if rewritten.exists() {
                    return true;
                }
                lock.unlock().unwrap();
            }
        }
        false
    };
    let got_in = std::thread::scope(|scope| {
        let watching = scope.spawn(got_in);
        Store::rewrite(&options(&dir), |_| {}).unwrap();
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        watching.join().unwrap()
    });
    assert!(!got_in);
    // What a crash left of one is not put in place of files that have gone on since.
    fs::create_dir_all(&rewritten).unwrap();
    fs::write(rewritten.join("complete"), b"").unwrap();
    Store::open(options(&dir), &Registry::new()).unwrap().close().unwrap();
    assert!(!rewritten.exists());
}

/// The file's length reached the device before its last sectors did, which are zeros. Anything else behind a record that
/// is not whole is damage.
#[test]
fn a_last_record_of_the_manifest_that_a_power_loss_has_torn_is_cut_off() {
    let place = tempfile::tempdir().unwrap();
    let (whole, dir) = (place.path().join("whole"), place.path().join("torn"));
    let contents = fill(&whole, &mut StdRng::seed_from_u64(7));
    let name = fs::read_to_string(whole.join("tree/CURRENT")).unwrap();
    let sound = fs::read(whole.join("tree").join(name.trim_end())).unwrap();
    for (length, last, is_torn) in [(1000_u16, 0, true), (1000, 1, false), (1, 1, false)] {
        let _ = fs::remove_dir_all(&dir);
        copy_folder(&whole, &dir).unwrap();
        let mut manifest = [&sound, [1, 2, 3, 4].as_slice(), &length.to_le_bytes(), &[1]].concat();
        let begin = manifest.len();
        manifest.resize(begin + usize::from(length), 0);
        let written = begin.next_multiple_of(512).min(manifest.len());
        manifest[begin..written].fill(9);
        *manifest.last_mut().unwrap() |= last;
        fs::write(dir.join("tree").join(name.trim_end()), &manifest).unwrap();
        match Store::open(options(&dir), &Registry::new()) {
            Ok(store) => {
                assert!(is_torn, "a record of {length} bytes that ends with {last} was taken for torn");
                assert_eq!(check(&store, &contents, "a torn manifest"), (contents.len(), 0));
                assert_eq!(store.admin().damaged_files(), []);
                store.close().unwrap();
                Store::open(options(&dir), &Registry::new()).unwrap().close().unwrap();
            }
            Err(error) => assert!(!is_torn && matches!(error, StoreError::Corrupt { .. }), "{error}"),
        }
    }
}
