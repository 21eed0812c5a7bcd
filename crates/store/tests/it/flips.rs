//! One bit of one file of a store is another one: what is read is right, or the damage is named. Nothing wrong is ever
//! read, nothing is left out, and what lies in other files stays readable.
//!
//! `SCRINIUM_SEED` repeats a run, `SCRINIUM_IMAGES` makes it longer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::writers::{WRITERS, derived, update};
use crate::common::{quick_folder, small_options};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_fault::{Plan, crash_image};
use scrinium_statistics::Registry;
use scrinium_store::{Direction, Family, KeyRange, Store, StoreError, StoreOptions};

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn options(dir: &Path) -> StoreOptions {
    let mut options = small_options(dir);
    options.budget_bytes = Some(16 << 20);
    options.log_extent_bytes = 256 << 10;
    options
}

/// A store with several files of each kind, closed in order.
fn fill(dir: &Path) {
    let store = Store::open(options(dir), &Registry::new()).unwrap();
    for version in 1..=24 {
        for writer in 0..WRITERS {
            store.commit(update(writer, version)).unwrap();
        }
        store.derived().write(derived(&store, version)).unwrap();
        if version.is_multiple_of(8) {
            store.admin().checkpoint().unwrap();
        }
    }
    store.close().unwrap();
}

fn read(store: &Store, family: Family) -> Result<Entries, StoreError> {
    let snapshot = store.snapshot();
    let mut cursor = snapshot.cursor(family, KeyRange::ALL, Direction::Forward);
    let mut entries = Vec::new();
    while let Some((key, value)) = cursor.next()? {
        entries.push((key.to_vec(), value.to_vec()));
    }
    Ok(entries)
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![dir.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let is_folder = entry.file_type().unwrap().is_dir();
            if is_folder { folders.push(entry.path()) } else { files.push(entry.path()) }
        }
    }
    files.retain(|path| path.metadata().unwrap().len() > 0);
    files.sort();
    files
}

/// The manifest that RocksDB reads.
fn manifest_of(dir: &Path) -> PathBuf {
    let current = std::fs::read_to_string(dir.join("tree/CURRENT")).unwrap();
    dir.join("tree").join(current.trim_end())
}

/// Files of one kind have one name but for digits.
fn kind(path: &Path) -> String {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    name.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

fn is_named(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Corrupt { .. }
            | StoreError::DamagedLog(_)
            | StoreError::ForeignLog { .. }
            | StoreError::NewerFormat { .. }
            // RocksDB's pointer to its manifest: the file that it now points to is named as missing.
            | StoreError::Tree { action: "open", .. }
    )
}

/// What became of a flip.
fn look(dir: &Path, expected: &BTreeMap<&str, Entries>) -> &'static str {
    let store = match Store::open(options(dir), &Registry::new()) {
        Ok(store) => store,
        Err(error) => {
            assert!(is_named(&error), "{error:?}");
            return "refused";
        }
    };
    let mut damaged = 0;
    for family in Family::ALL {
        match read(&store, family) {
            Ok(entries) => assert!(entries == expected[family.name()], "{} is another", family.name()),
            Err(error) => {
                assert!(is_named(&error), "{error:?}");
                damaged += 1;
            }
        }
    }
    // A file is of one family, but values may lie apart.
    assert!(damaged <= 1, "{damaged} families are damaged by one bit");
    if damaged == 0 { "unharmed" } else { "named" }
}

#[test]
fn a_flipped_bit_is_named_or_does_no_harm() {
    let plan = Plan::from_environment(60);
    println!("{plan}");
    let mut random = StdRng::seed_from_u64(plan.seed);
    let folder = quick_folder();
    let (whole, copy) = (folder.path().join("whole"), folder.path().join("copy"));
    fill(&whole);
    let store = Store::open(options(&whole), &Registry::new()).unwrap();
    let expected: BTreeMap<&str, Entries> =
        Family::ALL.into_iter().map(|family| (family.name(), read(&store, family).unwrap())).collect();
    store.close().unwrap();
    let mut kinds: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for path in files(&whole) {
        kinds.entry(kind(&path)).or_default().push(path.strip_prefix(&whole).unwrap().to_path_buf());
    }
    let mut outcomes: BTreeMap<(String, &str), u32> = BTreeMap::new();
    for number in plan.runs(plan.images) {
        let (kind, of_kind) = kinds.iter().nth(random.random_range(0..kinds.len())).unwrap();
        let file = &of_kind[random.random_range(0..of_kind.len())];
        crash_image(&whole, &copy);
        let mut content = std::fs::read(copy.join(file)).unwrap();
        let (place, bit) = (random.random_range(0..content.len()), random.random_range(0..8));
        content[place] ^= 1 << bit;
        std::fs::write(copy.join(file), content).unwrap();
        println!("flip {number}: bit {bit} of byte {place} of {}", file.display());
        *outcomes.entry((kind.clone(), look(&copy, &expected))).or_default() += 1;
    }
    println!("{outcomes:?}");
}

/// A record that seemed to be cut off was left out, and with it all that followed: the store was an older one, whose files
/// were missing.
#[test]
fn a_last_record_of_the_manifest_that_says_it_is_longer_is_named() {
    let folder = quick_folder();
    fill(folder.path());
    let manifest = manifest_of(folder.path());
    let whole = std::fs::read(&manifest).unwrap();
    let mut headers = vec![0];
    while let Some(next) = headers
        .last()
        .map(|header| header + 7 + usize::from(u16::from_le_bytes([whole[header + 4], whole[header + 5]])))
        && next < whole.len()
    {
        headers.push(next);
    }
    assert!(headers.len() > 2 && whole.len() < 32 << 10, "{headers:?}");
    for header in headers {
        let mut content = whole.clone();
        content[header + 5] ^= 0x80;
        std::fs::write(&manifest, content).unwrap();
        match Store::open(options(folder.path()), &Registry::new()) {
            Err(StoreError::Corrupt { path, what }) => {
                assert_eq!(path, manifest, "{what}");
                assert!(what.contains(&format!("byte {header} ")), "{what}");
            }
            other => panic!("{other:?}"),
        }
    }
    // One that a crash cut off does not count: what it would have said was not acknowledged.
    let mut content = whole;
    content.extend_from_slice(&[1, 2, 3, 4, 200, 0, 1, 9, 9, 9]);
    std::fs::write(&manifest, content).unwrap();
    Store::open(options(folder.path()), &Registry::new()).unwrap();
}

/// RocksDB once went round without end where a record's type had become one that only its log has.
#[test]
fn a_record_of_a_foreign_type_in_the_manifest_is_named() {
    let folder = quick_folder();
    fill(folder.path());
    let manifest = manifest_of(folder.path());
    let mut content = std::fs::read(&manifest).unwrap();
    let second = 7 + usize::from(u16::from_le_bytes([content[4], content[5]]));
    assert_eq!(content[second + 6], 1);
    content[second + 6] ^= 4;
    std::fs::write(&manifest, content).unwrap();
    match Store::open(options(folder.path()), &Registry::new()) {
        Err(StoreError::Corrupt { path, what }) => {
            assert_eq!(path, manifest);
            assert!(what.contains(&format!("byte {second} ")), "{what}");
        }
        other => panic!("{other:?}"),
    }
}
