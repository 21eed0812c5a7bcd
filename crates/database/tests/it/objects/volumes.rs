//! Databases that are moved between volumes while their attachments are objects.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use scrinium_catalog::{Databases, FIRST_VOLUME};
use scrinium_contents::AttachmentOptions;
use scrinium_maintenance::{FindingKind, FixupOptions};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_views::OpenDatabase;

use super::bucket::Memory;
use super::{KB, attach, content, delete, findings, needed, options, read, server, settle};
use crate::common::Server;
use crate::common::words::Words as _;

const OTHER: &str = "other";

fn attach_other(databases: &Databases, dir: &Path) -> Store {
    let mut options = StoreOptions::new(dir.join(OTHER));
    options.budget_bytes = Some(32 << 20);
    options.log_extent_bytes = 4 << 20;
    options.clock = databases.clock().clone();
    let store = Store::open(options, &Registry::new()).unwrap();
    databases.attach(OTHER, Ok(store.clone())).unwrap();
    store
}

/// A volume is attached after it was said where contents go, and does so too.
fn two_volumes(bucket: &Memory) -> (Server, Store, OpenDatabase) {
    let (server, database) = server(bucket);
    let other = attach_other(&server.databases, server.dir.path());
    (server, other, database)
}

/// Those that are there are those that one of the volumes needs, each in the volume's own folder.
fn check_bucket(server: &Server, bucket: &Memory, (main, other): (usize, usize)) {
    server.databases.purge_dropped().unwrap();
    settle(server);
    let (of_main, of_other) = (needed(server, FIRST_VOLUME), needed(server, OTHER));
    assert_eq!((of_main.len(), of_other.len()), (main, other));
    let home = |name: &String| name[..16].to_owned();
    assert!(of_main.iter().all(|name| of_other.iter().all(|other| home(name) != home(other))));
    let mut all = [of_main, of_other].concat();
    all.sort();
    assert_eq!(bucket.names(), all);
}

#[test]
fn a_database_that_is_moved_to_another_volume_takes_its_objects_along() {
    let bucket = Memory::new(8);
    let (server, other, database) = two_volumes(&bucket);
    let (large, shared) = (content(21, 700 * KB), content(22, 400 * KB));
    attach(&database, "large", &large).unwrap();
    attach(&database, "shared", &shared).unwrap();
    attach(&database, "small", &content(23, 100 * KB)).unwrap();
    let stays = server.databases.create("stays", &scrinium_database::InitialAccess::Everybody).unwrap();
    attach(&stays, "shared", &shared).unwrap();
    let all_right = |databases: &Databases, volume: &str| {
        let database = databases.get("test").unwrap();
        assert_eq!(database.volume(), volume);
        assert!(read(&database, "large").unwrap() == large && read(&database, "shared").unwrap() == shared);
        assert!(read(&database, "small").unwrap() == content(23, 100 * KB));
    };
    check_bucket(&server, &bucket, (2, 0));
    drop(database);
    server.databases.relocate("test", OTHER).unwrap();
    all_right(&server.databases, OTHER);
    check_bucket(&server, &bucket, (1, 2));
    all_right(&server.databases, OTHER);
    delete(&stays, "shared");
    check_bucket(&server, &bucket, (0, 2));
    all_right(&server.databases, OTHER);
    assert!(findings(&server, FixupOptions { views: true, ..FixupOptions::default() }).is_empty());
    let counted = |registry: &Registry| registry.snapshot().gauges["Attachment.Store.Objects"];
    let statistics = Registry::new();
    server.databases.register_statistics(&statistics);
    server.databases.count_objects().unwrap();
    assert!((counted(&statistics) - 2.0).abs() < 0.1);

    // What was uploaded into a database of the one is stored in one of the other.
    let moved = server.databases.get("test").unwrap();
    let mut upload = stays.upload("text/plain");
    upload.write(&content(24, 500 * KB)).unwrap();
    super::attach_content(&moved, "brought", upload.finish().unwrap()).unwrap();
    check_bucket(&server, &bucket, (0, 3));
    assert!(read(&moved, "brought").unwrap() == content(24, 500 * KB));
    drop((moved, stays));

    // After a start it is the same, and back on the first volume too.
    let dir = server.dir.path().to_owned();
    let server = server.reopen();
    other.close().unwrap();
    let _other = attach_other(&server.databases, &dir);
    server.databases.set_objects(&bucket.objects(&dir));
    server.databases.set_attachment_options(options(300 * KB)).unwrap();
    all_right(&server.databases, OTHER);
    server.databases.relocate("test", FIRST_VOLUME).unwrap();
    check_bucket(&server, &bucket, (3, 0));
    all_right(&server.databases, FIRST_VOLUME);

    // A volume that puts contents nowhere else takes them in.
    server.databases.set_attachment_options(AttachmentOptions { store: None, ..options(0) }).unwrap();
    server.databases.relocate("test", OTHER).unwrap();
    check_bucket(&server, &bucket, (0, 0));
    all_right(&server.databases, OTHER);
}

#[test]
fn a_database_of_which_an_object_cannot_be_had_stays_where_it_is() {
    let bucket = Memory::new(9);
    let (server, _other, database) = two_volumes(&bucket);
    attach(&database, "large", &content(25, 700 * KB)).unwrap();
    attach(&database, "lost", &content(26, 400 * KB)).unwrap();
    bucket.0.lock().unwrap().away = true;
    assert_eq!(server.databases.relocate("test", OTHER).unwrap_err().status(), 503);
    bucket.0.lock().unwrap().away = false;
    server.databases.set_objects(&bucket.objects(server.dir.path()));
    let digest = blake3::hash(&content(26, 400 * KB)).to_hex().to_string();
    let name = bucket.names().into_iter().find(|name| name.contains(&digest)).unwrap();
    let object = bucket.0.lock().unwrap().objects.remove(&name).unwrap();
    let refused = server.databases.relocate("test", OTHER).unwrap_err();
    assert!(refused.reason().contains(&name) && refused.reason().contains("load fixup"), "{refused}");
    assert_eq!(server.databases.get("test").unwrap().volume(), FIRST_VOLUME);
    server.databases.purge_dropped().unwrap();
    settle(&server);
    assert!(read(&database, "large").unwrap() == content(25, 700 * KB));
    // It is found again; nothing has become of it meanwhile.
    bucket.0.lock().unwrap().objects.insert(name, object);
    drop(database);
    server.databases.relocate("test", OTHER).unwrap();
    check_bucket(&server, &bucket, (0, 2));
    let moved = server.databases.get("test").unwrap();
    assert!(read(&moved, "lost").unwrap() == content(26, 400 * KB));
}

#[test]
fn objects_that_are_written_during_moves_are_all_there_after_them() {
    let bucket = Memory::new(10);
    let (server, _other, database) = two_volumes(&bucket);
    drop(database);
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let number = written.load(Ordering::Relaxed);
                let database = server.databases.get("test").unwrap();
                attach(&database, &format!("d{number}"), &content(100 + number, 310 * KB)).unwrap();
                written.fetch_add(1, Ordering::Relaxed);
            }
        });
        for volume in [OTHER, FIRST_VOLUME, OTHER, FIRST_VOLUME, OTHER] {
            let before = written.load(Ordering::Relaxed);
            while written.load(Ordering::Relaxed) < before + 8 {
                std::thread::yield_now();
            }
            server.databases.relocate("test", volume).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    let written = written.load(Ordering::Relaxed);
    check_bucket(&server, &bucket, (0, usize::try_from(written).unwrap()));
    let moved = server.databases.get("test").unwrap();
    for number in 0..written {
        assert!(read(&moved, &format!("d{number}")).unwrap() == content(100 + number, 310 * KB), "{number}");
    }
}

/// What is brought in comes from a copy, so that nothing is lost by going on without.
#[test]
fn a_database_is_brought_in_without_an_object_that_is_lost() {
    let bucket = Memory::new(11);
    let (from, database) = server(&bucket);
    attach(&database, "large", &content(27, 700 * KB)).unwrap();
    attach(&database, "lost", &content(28, 400 * KB)).unwrap();
    let digest = blake3::hash(&content(28, 400 * KB)).to_hex().to_string();
    bucket.0.lock().unwrap().objects.retain(|name, _| !name.contains(&digest));
    let (to, _database) = server(&bucket);
    let adopted = to.databases.adopt(&from.databases, "test", "then", &mut |_| true).unwrap();
    delete(&database, "large");
    settle(&from);
    assert!(read(&adopted, "large").unwrap() == content(27, 700 * KB));
    assert_eq!(read(&adopted, "lost").unwrap_err().status(), 500);
    let found = findings(&to, FixupOptions { repair: false, ..FixupOptions::default() });
    assert!(
        found.iter().any(|found| found.0 == FindingKind::ContentMissing && found.1 == "lost"),
        "{found:?}"
    );
    bucket.0.lock().unwrap().away = true;
    let away = from.databases.adopt(&to.databases, "then", "again", &mut |_| true).err().unwrap();
    assert_eq!(away.status(), 503);
}
