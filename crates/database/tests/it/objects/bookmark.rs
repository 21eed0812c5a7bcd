//! Moves of attachments that are ended before their time.

use scrinium_catalog::FIRST_VOLUME;
use scrinium_contents::{RelocatedAttachments, Relocation};
use scrinium_statistics::{TaskState, Tasks};
use scrinium_store::IoClass;

use super::bucket::Memory;
use super::{KB, attach, content, needed, options, read, settle};
use crate::common::Server;

const CONTENTS: u64 = 12;
const BYTES: usize = 310 * KB;

/// A server whose contents lie with the documents, and shall no longer.
fn filled(bucket: &Memory) -> Server {
    let server = Server::timed();
    let database = server.databases.create("test", &scrinium_database::InitialAccess::Everybody).unwrap();
    for number in 0..CONTENTS {
        attach(&database, &number.to_string(), &content(number, BYTES)).unwrap();
    }
    begin_to_use(&server, bucket);
    server
}

fn begin_to_use(server: &Server, bucket: &Memory) {
    server.databases.set_objects(&bucket.objects(server.dir.path()));
    server.databases.set_attachment_options(options(300 * KB)).unwrap();
}

fn move_away(server: &Server) -> RelocatedAttachments {
    server.databases.relocate_attachments(None, Relocation::AsSet, false).unwrap()
}

/// Ends a move when it has moved some, amid another one.
fn move_some(server: &Server) -> u64 {
    let tasks = Tasks::new();
    server.databases.set_tasks(&tasks);
    server.databases.io_limits().set_rate(IoClass::Attachments, 3 << 20);
    let done = std::thread::scope(|scope| {
        let moving = scope.spawn(|| move_away(server));
        while !moving.is_finished() {
            let is_enough = |task: &scrinium_statistics::TaskStatus| {
                task.details.get("moved").is_some_and(|moved| moved.as_u64() >= Some(3))
            };
            if let Some(task) = tasks.running().into_iter().find(is_enough) {
                let _is_still_there = tasks.cancel(task.id);
            }
            std::thread::yield_now();
        }
        moving.join().unwrap()
    });
    server.databases.io_limits().set_rate(IoClass::Attachments, 0);
    assert_eq!(tasks.ended()[0].state, TaskState::Cancelled);
    assert!(done.stopped && (3..CONTENTS).contains(&done.moved), "{done:?}");
    assert_eq!((done.failed, done.examined), (0, done.moved));
    assert!(server.databases.has_attachments_to_relocate().unwrap());
    done.moved
}

fn check(server: &Server, bucket: &Memory) {
    let database = server.databases.get("test").unwrap();
    for number in 0..CONTENTS {
        assert!(read(&database, &number.to_string()).unwrap() == content(number, BYTES), "{number}");
    }
    settle(server);
    assert_eq!(bucket.names(), needed(server, FIRST_VOLUME));
}

#[test]
fn a_move_that_was_ended_goes_on_there_after_a_restart() {
    let bucket = Memory::new(21);
    let server = filled(&bucket);
    let before = move_some(&server);
    let server = server.reopen();
    begin_to_use(&server, &bucket);
    assert!(server.databases.has_attachments_to_relocate().unwrap());
    let done = move_away(&server);
    assert_eq!((done.examined_before, done.examined, done.moved), (before, CONTENTS, CONTENTS));
    assert_eq!(done.moved_bytes, CONTENTS * BYTES as u64);
    assert_eq!(bucket.0.lock().unwrap().uploads as u64, CONTENTS);
    // It is done: the next one looks at all.
    assert!(!server.databases.has_attachments_to_relocate().unwrap());
    let again = move_away(&server);
    assert_eq!((again.examined_before, again.examined, again.moved), (0, CONTENTS, 0));
    check(&server, &bucket);
}

/// What lies behind a bookmark was looked at under one setting; under another it may lie wrongly.
#[test]
fn a_move_begins_anew_where_something_else_was_set_or_moved_in_between() {
    let set = |server: &Server, threshold: usize| {
        server.databases.set_attachment_options(options(threshold)).unwrap();
    };
    let bucket = Memory::new(22);
    let server = filled(&bucket);
    let some = move_some(&server);
    set(&server, 1 << 20);
    attach(&server.databases.get("test").unwrap(), "late", &content(99, BYTES)).unwrap();
    set(&server, 300 * KB);
    let done = move_away(&server);
    assert_eq!((done.examined_before, done.examined), (0, CONTENTS + 1));
    assert_eq!(done.moved, CONTENTS + 1 - some);

    let bucket = Memory::new(23);
    let server = filled(&bucket);
    move_some(&server);
    server.databases.relocate_attachments(None, Relocation::ToVolume, false).unwrap();
    let done = move_away(&server);
    assert_eq!((done.examined_before, done.moved), (0, CONTENTS));
    check(&server, &bucket);

    let bucket = Memory::new(24);
    let server = filled(&bucket);
    let some = move_some(&server);
    let done = server.databases.relocate_attachments(None, Relocation::AsSet, true).unwrap();
    assert_eq!((done.examined_before, done.moved), (0, CONTENTS - some));
    check(&server, &bucket);
}
