//! RocksDB's options that are set by their names: a name that it no longer knew would be passed over without a word.

use crate::common::quick_folder;
use scrinium_statistics::Registry;
use scrinium_store::{Family, Store, StoreOptions};

#[test]
fn files_of_the_last_level_are_let_age_in_every_family() {
    let folder = quick_folder();
    let store = Store::open(StoreOptions::new(folder.path()), &Registry::new()).unwrap();
    let files = std::fs::read_dir(folder.path().join("tree")).unwrap().map(|file| file.unwrap().path());
    let options = files.filter(|path| path.to_string_lossy().contains("OPTIONS-")).max().unwrap();
    let options = std::fs::read_to_string(options).unwrap();
    let aged = options.lines().filter(|line| line.trim() == "bottommost_file_compaction_delay=1800").count();
    assert_eq!(aged, Family::ALL.len() + 1, "{options}");
    assert_eq!(options.lines().filter(|line| line.trim() == "avoid_flush_during_shutdown=true").count(), 1);
    drop(store);
}
