//! Attachments in a store of objects: a model with faults, and what each fault comes to.

mod bookmark;
mod bucket;
mod model;
mod volumes;

use std::path::Path;
use std::time::Duration;

use scrinium_catalog::FIRST_VOLUME;
use scrinium_contents::{AttachmentOptions, Content, Relocation};
use scrinium_database::{DatabaseError, Edit, EditMode, NewAttachment, ReadOptions};
use scrinium_maintenance::{FindingKind, FindingOutcome, FixupOptions};
use scrinium_views::OpenDatabase;
use serde_json::json;

use crate::common::words::Words as _;
use crate::common::{SERVER, Server, edit, get, read_attachment as read};
use bucket::Memory;

const KB: usize = 1024;

fn options(threshold_bytes: usize) -> AttachmentOptions {
    AttachmentOptions {
        store: Some("s3://bucket/prefix".to_owned()),
        threshold_bytes: threshold_bytes as u64,
        cache_bytes: 0,
        keep_removed: Duration::ZERO,
    }
}

/// A server whose contents from 300 KB on are objects.
fn server(bucket: &Memory) -> (Server, OpenDatabase) {
    let server = Server::timed();
    server.databases.set_objects(&bucket.objects(server.dir.path()));
    server.databases.set_attachment_options(options(300 * KB)).unwrap();
    let database = server.databases.create("test", &scrinium_database::InitialAccess::Everybody).unwrap();
    (server, database)
}

/// Bytes that are others for each seed; half of them can be compressed.
fn content(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    (0..length).map(|at| if seed.is_multiple_of(2) && at % 4096 > 1000 { b'a' } else { next() }).collect()
}

fn attach(database: &OpenDatabase, id: &str, bytes: &[u8]) -> Result<(), DatabaseError> {
    let mut upload = database.upload("text/plain");
    for piece in bytes.chunks(100_000) {
        upload.write(piece)?;
    }
    attach_content(database, id, upload.finish()?)
}

fn attach_content(database: &OpenDatabase, id: &str, content: Content) -> Result<(), DatabaseError> {
    let attachment = NewAttachment { name: "file".into(), content_type: "text/plain".into(), content };
    let revision = database.read(id, &ReadOptions::default(), &SERVER).ok().map(|document| document.revision);
    let edit = Edit { id: Some(id.to_owned()), revision, attachments: vec![attachment], ..edit(&json!({})) };
    database.update(vec![edit], EditMode::Interactive, &SERVER)?.wait()?.remove(0).map(drop)
}

fn delete(database: &OpenDatabase, id: &str) {
    let revision = get(database, id).unwrap()["_rev"].clone();
    crate::common::put(database, &json!({"_id": id, "_rev": revision, "_deleted": true})).unwrap();
}

/// Collects and removes until there is nothing more to do.
fn settle(server: &Server) {
    while server.databases.collect_contents().unwrap().removed > 0 {}
    // What was noted in this very millisecond is not of before it.
    server.pass(Duration::from_millis(1));
    while server.databases.remove_objects(&|| true).unwrap().examined > 0 {}
}

/// The names of the objects that documents on a volume refer to.
fn needed(server: &Server, volume: &str) -> Vec<String> {
    let mut names = Vec::new();
    let listed = server.databases.each_object(volume, |object| {
        assert_eq!(object.removed_ms, 0);
        names.push(object.needed.stored.name.to_string());
        Ok(true)
    });
    listed.unwrap();
    names
}

#[test]
fn a_content_is_one_object_however_many_refer_to_it_and_goes_with_the_last() {
    let bucket = Memory::new(1);
    let (server, database) = server(&bucket);
    let large = content(1, 700 * KB);
    for id in ["a", "b"] {
        attach(&database, id, &large).unwrap();
    }
    attach(&database, "small", &content(2, 290 * KB)).unwrap();
    assert_eq!((bucket.names().len(), bucket.0.lock().unwrap().uploads), (1, 1));
    delete(&database, "a");
    settle(&server);
    assert!(read(&database, "b").unwrap() == large);
    delete(&database, "b");
    // While it is kept it is taken up again, and not sent again.
    server
        .databases
        .set_attachment_options(AttachmentOptions {
            keep_removed: Duration::from_secs(60),
            ..options(300 * KB)
        })
        .unwrap();
    settle(&server);
    assert_eq!(bucket.names().len(), 1);
    attach(&database, "c", &large).unwrap();
    assert_eq!(bucket.0.lock().unwrap().uploads, 1);
    server.databases.set_attachment_options(options(300 * KB)).unwrap();
    settle(&server);
    assert!(read(&database, "c").unwrap() == large);
    delete(&database, "c");
    settle(&server);
    assert_eq!(bucket.names(), Vec::<String>::new());
    assert!(read(&database, "small").unwrap() == content(2, 290 * KB));
}

#[test]
fn a_range_costs_a_range_and_nothing_once_it_is_in_the_cache() {
    let bucket = Memory::new(2);
    let (server, database) = server(&bucket);
    let large = content(3, 21 << 20);
    attach(&database, "a", &large).unwrap();
    let part = |at: usize| {
        let reader = database.open_attachment("a", "file", None, &SERVER).unwrap();
        reader.read(at as u64, 100).unwrap()
    };
    let cost = || {
        let mut state = bucket.0.lock().unwrap();
        (std::mem::take(&mut state.reads), std::mem::take(&mut state.read_bytes))
    };
    assert_eq!(part(15 << 20), large[15 << 20..(15 << 20) + 100]);
    let (reads, bytes) = cost();
    assert!(reads == 2 && bytes < 300 * KB as u64, "{reads} reads of {bytes}");
    server
        .databases
        .set_attachment_options(AttachmentOptions { cache_bytes: 6 << 20, ..options(300 * KB) })
        .unwrap();
    assert_eq!(part(15 << 20), large[15 << 20..(15 << 20) + 100]);
    assert!(cost().1 < 5 << 20);
    assert_eq!(part((15 << 20) + 70_000), large[(15 << 20) + 70_000..(15 << 20) + 70_100]);
    assert_eq!(cost(), (0, 0));
    // Whatever becomes of the cache's files, what is read is right.
    for entry in std::fs::read_dir(server.dir.path().join("attachments/cache")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.iter_mut().for_each(|byte| *byte ^= 1);
        std::fs::write(path, bytes).unwrap();
    }
    assert_eq!(part(15 << 20), large[15 << 20..(15 << 20) + 100]);
    assert!(read(&database, "a").unwrap() == large);
}

#[test]
fn without_the_store_only_large_attachments_are_refused() {
    let bucket = Memory::new(3);
    let (server, database) = server(&bucket);
    let large = content(4, 400 * KB);
    attach(&database, "before", &large).unwrap();
    bucket.0.lock().unwrap().away = true;
    let refused = attach(&database, "large", &content(5, 400 * KB)).unwrap_err();
    assert_eq!(refused.status(), 503);
    assert!(
        refused.reason().contains("s3://bucket/prefix") && refused.reason().contains("connection reset"),
        "{refused}"
    );
    assert_eq!(read(&database, "before").unwrap_err().status(), 503);
    attach(&database, "small", &content(6, 200 * KB)).unwrap();
    assert!(read(&database, "small").unwrap() == content(6, 200 * KB));
    // The same content again is known to be there.
    attach(&database, "same", &large).unwrap();
    bucket.0.lock().unwrap().away = false;
    server.databases.set_objects(&bucket.objects(server.dir.path()));
    attach(&database, "large", &content(5, 400 * KB)).unwrap();
    assert!(read(&database, "same").unwrap() == large);
    settle(&server);
    assert_eq!(bucket.names(), needed(&server, FIRST_VOLUME));
}

fn findings(server: &Server, options: FixupOptions) -> Vec<(FindingKind, String, FindingOutcome, String)> {
    let report = scrinium_maintenance::fixup(&server.databases, None, options, |_| {}).unwrap();
    let found = report.findings.into_iter();
    found.map(|finding| (finding.kind, finding.subject, finding.outcome, finding.detail)).collect()
}

#[test]
fn an_object_that_is_lost_is_named_and_made_anew_by_the_same_bytes() {
    let bucket = Memory::new(4);
    let (server, database) = server(&bucket);
    let bytes = [content(7, 500 * KB), content(9, 800 * KB)];
    for (id, bytes) in ["gone", "torn"].iter().zip(&bytes) {
        attach(&database, id, bytes).unwrap();
    }
    assert_eq!(findings(&server, FixupOptions { views: true, ..FixupOptions::default() }), []);
    let name_of = |id: &str| {
        let digest = blake3::hash(if id == "gone" { &bytes[0] } else { &bytes[1] }).to_hex().to_string();
        bucket.names().into_iter().find(|name| name.contains(&digest)).unwrap()
    };
    let (gone, torn) = (name_of("gone"), name_of("torn"));
    {
        let mut state = bucket.0.lock().unwrap();
        state.objects.remove(&gone).unwrap();
        state.objects.get_mut(&torn).unwrap()[300_000] ^= 4;
    }
    let told = read(&database, "gone").unwrap_err();
    assert_eq!(told.status(), 500);
    assert!(told.reason().contains(&gone) && told.reason().contains("missing"), "{told}");
    let told = read(&database, "torn").unwrap_err();
    assert!(told.reason().contains(&torn) && told.reason().contains("damaged"), "{told}");
    // A look at what is there finds the one; that the other is torn shows when it is read.
    let quick = findings(&server, FixupOptions { repair: false, ..FixupOptions::default() });
    assert_eq!(quick.len(), 1);
    assert!(quick[0].0 == FindingKind::ContentMissing && quick[0].1 == "gone" && quick[0].3.contains(&gone));
    let deep = findings(&server, FixupOptions { views: true, ..FixupOptions::default() });
    let kinds: Vec<_> = deep.iter().map(|(kind, id, outcome, _)| (*kind, id.as_str(), *outcome)).collect();
    assert!(kinds.contains(&(FindingKind::ContentMissing, "gone", FindingOutcome::Left)), "{kinds:?}");
    assert!(kinds.contains(&(FindingKind::ContentDamaged, "torn", FindingOutcome::SetAside)), "{kinds:?}");
    for (id, bytes) in ["gone", "torn"].iter().zip(&bytes) {
        attach(&database, "again", bytes).unwrap();
        assert!(read(&database, id).unwrap() == *bytes);
    }
    assert_eq!(findings(&server, FixupOptions { views: true, ..FixupOptions::default() }), []);
    scrinium_maintenance::discard_set_aside(&server.databases, None, None).unwrap();
    settle(&server);
    assert_eq!(bucket.names(), needed(&server, FIRST_VOLUME));
    bucket.0.lock().unwrap().away = true;
    let unchecked = findings(&server, FixupOptions::default());
    assert!(
        unchecked
            .iter()
            .all(|found| found.0 == FindingKind::ContentUnchecked && found.2 == FindingOutcome::Left)
    );
    assert_eq!(unchecked.len(), 3, "{unchecked:?}");
}

#[test]
fn contents_are_moved_there_and_back_while_they_are_read() {
    let bucket = Memory::new(5);
    let server = Server::timed();
    server.databases.set_objects(&bucket.objects(server.dir.path()));
    let database = server.databases.create("test", &scrinium_database::InitialAccess::Everybody).unwrap();
    let sizes = [100 * KB, 290 * KB, 310 * KB, 3 << 20];
    let bytes: Vec<Vec<u8>> = sizes.iter().map(|size| content(*size as u64, *size)).collect();
    for (id, bytes) in ["a", "b", "c", "d"].iter().zip(&bytes) {
        attach(&database, id, bytes).unwrap();
    }
    let all_right = || {
        for (id, bytes) in ["a", "b", "c", "d"].iter().zip(&bytes) {
            assert!(read(&database, id).unwrap() == *bytes, "{id}");
        }
    };
    let reader = database.open_attachment("d", "file", None, &SERVER).unwrap();
    assert_eq!(reader.read(0, 10).unwrap(), bytes[3][..10]);
    server.databases.set_attachment_options(options(300 * KB)).unwrap();
    let moved = server.databases.relocate_attachments(Some("test"), Relocation::AsSet, false).unwrap();
    assert_eq!((moved.moved, moved.failed, bucket.names().len()), (2, 0, 2));
    // Who was reading continues.
    assert_eq!(reader.read(2 << 20, 10).unwrap(), bytes[3][2 << 20..(2 << 20) + 10]);
    all_right();
    assert_eq!(server.databases.relocate_attachments(None, Relocation::AsSet, false).unwrap().moved, 0);
    server.databases.set_attachment_options(options(1 << 20)).unwrap();
    assert_eq!(server.databases.relocate_attachments(None, Relocation::AsSet, false).unwrap().moved, 1);
    all_right();
    settle(&server);
    assert_eq!(bucket.names(), needed(&server, FIRST_VOLUME));
    bucket.0.lock().unwrap().away = true;
    let failed = server.databases.relocate_attachments(None, Relocation::ToVolume, false).unwrap_err();
    assert_eq!(failed.status(), 503);
    bucket.0.lock().unwrap().away = false;
    server.databases.set_objects(&bucket.objects(server.dir.path()));
    assert_eq!(server.databases.relocate_attachments(None, Relocation::ToVolume, false).unwrap().moved, 1);
    all_right();
    settle(&server);
    assert_eq!(bucket.names(), Vec::<String>::new());
    assert_eq!(findings(&server, FixupOptions::default()), []);
}

/// Where the spool is, and that nothing stays in it.
fn spooled(dir: &Path) -> usize {
    std::fs::read_dir(dir.join("attachments/spool")).map_or(0, Iterator::count)
}

#[test]
fn what_is_dropped_on_its_way_leaves_nothing() {
    let bucket = Memory::new(6);
    let (server, database) = server(&bucket);
    let mut upload = database.upload("text/plain");
    upload.write(&content(11, 600 * KB)).unwrap();
    assert_eq!(spooled(server.dir.path()), 1);
    drop(upload);
    let mut upload = database.upload("text/plain");
    upload.write(&content(11, 600 * KB)).unwrap();
    let content = upload.finish().unwrap();
    assert_eq!((spooled(server.dir.path()), bucket.names().len()), (0, 1));
    // As long as somebody holds it, it stays.
    settle_held(&server);
    assert_eq!(bucket.names().len(), 1);
    drop(content);
    settle(&server);
    assert_eq!(bucket.names(), Vec::<String>::new());
}

fn settle_held(server: &Server) {
    server.pass(Duration::from_millis(1));
    assert_eq!(server.databases.remove_objects(&|| true).unwrap().removed, 0);
}
