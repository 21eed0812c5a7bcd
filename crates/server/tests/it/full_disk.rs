//! A full disk: writes are refused with 507, reads and views go on, and so do writes once there is space.
//!
//! Needs the right to mount a small file system in memory; says so and skips where that is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use crate::common::{Answer, Client, SMALL, Server};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rand::RngCore;
use serde_json::{Value, json};

const DISK: &str = "size=144m";

/// RocksDB continues by itself once the size of a memtable, 64 MB, is free.
const BALLAST_BYTES: usize = 96 << 20;

/// Bytes of a document that fills the disk; they do not compress.
const BODY_BYTES: usize = 120_000;

const CLIENTS: usize = 4;

/// Documents that each client may write before the disk must be full.
const MOST_DOCUMENTS: usize = 2_000;

/// After this, who got no answer on a full disk waits for space.
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);

/// The server looks at the disk every second.
const SPACE_SEEN_WITHIN: Duration = Duration::from_secs(20);

/// A small file system with a file in it that can be removed to make space.
struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", DISK, "tmpfs"]).arg(folder.path()).status();
        if !mounted.is_ok_and(|status| status.success()) {
            scrinium_fault::skip("mounting a file system in memory is not permitted here; root may");
            return None;
        }
        Some(Self { folder })
    }

    fn ballast(&self) -> PathBuf {
        self.folder.path().join("ballast")
    }

    fn load(&self) {
        fs::write(self.ballast(), vec![1; BALLAST_BYTES]).unwrap();
    }

    fn unload(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}

fn prepare(client: &mut Client) {
    let person =
        json!({"Form": "Person", "FullName": ["Ada/Acme"], "ShortName": "ada", "MailFile": "mail/ada"});
    client.json("PUT", "/directory/person:ada", &person).unwrap().expect(201);
    client.ask("PUT", "/db", "application/json", &[]).unwrap().expect(201);
    client.ask("PUT", "/spare", "application/json", &[]).unwrap().expect(201);
    let design = json!({"language": "formula", "views": {"notes": {
        "selection": "SELECT Form = \"Note\"",
        "columns": [{"title": "Name", "formula": "Name", "sort": "asc"}]}}});
    client.json("PUT", "/db/_design/d", &design).unwrap().expect(201);
}

fn note(name: &str, bytes: usize) -> Value {
    let mut random = vec![0; bytes / 4 * 3];
    rand::rng().fill_bytes(&mut random);
    let body = STANDARD.encode(random);
    json!({"Form": "Note", "Name": name, "Body": body})
}

/// Writes with several clients until each is refused; what was acknowledged, with its revision. If one is
/// still waiting for its answer a while after the first was refused, the disk is freed.
fn fill(server: &Server, disk: &Disk) -> BTreeMap<String, String> {
    let freed = AtomicBool::new(false);
    let fill_one = |number: usize| {
        let mut client = server.client();
        let mut written = BTreeMap::new();
        for document in 0..MOST_DOCUMENTS {
            if freed.load(Ordering::Relaxed) {
                return written;
            }
            let name = format!("n{number}-{document}");
            let answer = client.json("PUT", &format!("/db/{name}"), &note(&name, BODY_BYTES)).unwrap();
            if answer.status != 201 {
                expect_full(&answer);
                return written;
            }
            written.insert(name, answer.value()["rev"].as_str().unwrap().to_owned());
        }
        panic!("the disk is not full");
    };
    let fill_one = &fill_one;
    std::thread::scope(|scope| {
        let filling: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || fill_one(number))).collect();
        while !filling.iter().any(ScopedJoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let refused = Instant::now();
        while refused.elapsed() < ANSWERED_WITHIN && !filling.iter().all(ScopedJoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(10));
        }
        if !filling.iter().all(ScopedJoinHandle::is_finished) {
            println!("a commit waits for space");
            server.client().get("/db/n0-0").unwrap().expect(200);
            freed.store(true, Ordering::Relaxed);
            disk.unload();
        }
        filling.into_iter().flat_map(|filled| filled.join().unwrap()).collect()
    })
}

/// What was acknowledged is there, by every way of reading.
fn check(client: &mut Client, written: &BTreeMap<String, String>) {
    let listing = client.get("/db/_all_docs?startkey=%22a%22").unwrap().expect(200).value();
    let found: BTreeMap<String, String> = listing["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["id"].as_str().unwrap().to_owned(), row["value"]["rev"].as_str().unwrap().to_owned()))
        .collect();
    for (id, revision) in written {
        assert_eq!(found.get(id), Some(revision), "{id}");
    }
    for (id, revision) in written.iter().step_by(written.len().div_ceil(20)) {
        let document = client.get(&format!("/db/{id}")).unwrap().expect(200).value();
        assert_eq!((document["Name"].as_str(), document["_rev"].as_str()), (Some(&**id), Some(&**revision)));
        assert_eq!(document["Body"].as_str().unwrap().len(), BODY_BYTES);
    }
    let changes = client.get("/db/_changes").unwrap().expect(200).value();
    let there = changes["results"].as_array().unwrap().iter().filter(|change| change["deleted"] != true);
    assert_eq!(there.count(), found.len() + 1, "with the design document");
    let view = client.get("/db/_design/d/_view/notes").unwrap().expect(200).value();
    let names: Vec<&str> =
        view["rows"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(names.len(), found.len());
    assert!(found.keys().all(|id| names.contains(&id.as_str())));
}

/// A document and a database, once what is being flushed has left the half of the reserve that this may use.
fn removes(client: &mut Client, written: &mut BTreeMap<String, String>) {
    let (name, revision) = written.pop_first().unwrap();
    for path in [format!("/db/{name}?rev={revision}"), "/spare".to_owned()] {
        let began = Instant::now();
        let removed = loop {
            let answer = client.ask("DELETE", &path, "", &[]).unwrap();
            if answer.status != 507 {
                break answer;
            }
            assert!(began.elapsed() < SPACE_SEEN_WITHIN, "{path} cannot be removed from a full disk");
            std::thread::sleep(Duration::from_millis(100));
        };
        removed.expect(200);
    }
}

/// Every write brings bytes of its own: the same ones again are kept once, and take no space.
fn refuses_writes(client: &mut Client) {
    refused(|| {
        let large = note("large", BODY_BYTES);
        client.json("PUT", &format!("/db/{}", new_id("large")), &large).unwrap()
    });
    refused(|| {
        let body = note("memo", BODY_BYTES)["Body"].take();
        let memo = json!({"Form": "Memo", "From": "ada", "SendTo": ["ada"], "Body": body});
        client.json("POST", "/mail.box", &memo).unwrap()
    });
    refused(|| {
        let mut file = vec![0; 300_000];
        rand::rng().fill_bytes(&mut file);
        client.ask("PUT", &format!("/mail.box/{}/file", new_id("file")), "text/plain", &file).unwrap()
    });
}

/// Writes until that is refused, as it must be at last: what is flushed meanwhile may give some space back, and a mailbox then
/// says 403 of a file that is no memo.
fn refused(mut write: impl FnMut() -> Answer) {
    let answer = (0..200).map(|_| write()).find(|answer| !matches!(answer.status, 201 | 403));
    answer.unwrap().expect_error(507, "insufficient_storage");
}

fn new_id(name: &str) -> String {
    format!("{name}-{:x}", rand::random::<u64>())
}

/// The refusal of a write. One that was in the log already and found no space in the tree for half a minute
/// may be there after the next start, so that it is distinguished.
fn expect_full(answer: &Answer) {
    if answer.status == 503 {
        answer.expect_error(503, "service_unavailable");
        assert!(answer.text().contains("until it is opened again"), "{}", answer.text());
    } else {
        answer.expect_error(507, "insufficient_storage");
    }
}

/// Writes until that is taken again.
fn goes_on(client: &mut Client, name: &str) -> (String, String) {
    let began = Instant::now();
    loop {
        let answer = client.json("PUT", &format!("/db/{name}"), &note(name, BODY_BYTES)).unwrap();
        if answer.status == 201 {
            return (name.to_owned(), answer.value()["rev"].as_str().unwrap().to_owned());
        }
        expect_full(&answer);
        assert!(began.elapsed() < SPACE_SEEN_WITHIN, "there is space, and it is not used");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn small_store(reserve: &'static str) -> Vec<(&'static str, &'static str)> {
    let small = SMALL.iter().copied().filter(|(name, _)| *name != "SCRINIUM_DISK__RESERVE_BYTES");
    small.chain([("SCRINIUM_DISK__RESERVE_BYTES", reserve)]).collect()
}

/// Writes go on, and all stays, killed or ended in order.
fn check_restarts(
    mut server: Server,
    disk: &Disk,
    reserve: &'static str,
    mut written: BTreeMap<String, String>,
) {
    let settings = small_store(reserve);
    let mut client = server.client();
    written.extend([goes_on(&mut client, "later")]);
    check(&mut client, &written);
    let memo = json!({"Form": "Memo", "From": "ada", "SendTo": ["ada"]});
    client.json("POST", "/mail.box", &memo).unwrap().expect(201);
    server.kill();
    server = Server::start(disk.folder.path(), &settings);
    check(&mut server.client(), &written);
    assert_eq!(server.terminate(Duration::from_secs(60)).code(), Some(0));
    let server = Server::start(disk.folder.path(), &settings);
    written.extend([goes_on(&mut server.client(), "last")]);
    check(&mut server.client(), &written);
}

#[test]
fn a_full_disk_is_read_and_then_freed() {
    const RESERVE: &str = "32 MB";
    let Some(disk) = Disk::mount() else { return };
    disk.load();
    let mut server = Server::start(disk.folder.path(), &small_store(RESERVE));
    prepare(&mut server.client());
    let mut written = fill(&server, &disk);
    println!("{} documents were acknowledged", written.len());
    refuses_writes(&mut server.client());
    let up = server.client().get("/_up").unwrap().expect(200).value();
    assert!(up["status"] == "read_only" && up["reason"].is_string(), "{up}");
    check(&mut server.client(), &written);
    server.kill();
    server = Server::start(disk.folder.path(), &small_store(RESERVE));
    refuses_writes(&mut server.client());
    removes(&mut server.client(), &mut written);
    check(&mut server.client(), &written);
    disk.unload();
    check_restarts(server, &disk, RESERVE, written);
}

/// Without a reserve the disk is written to the last byte. What is in the log may wait for space then; its
/// writer waits too, and others are refused. Writes go on at the latest after the next start.
#[test]
fn a_disk_that_is_full_to_the_last_byte_is_freed() {
    let Some(disk) = Disk::mount() else { return };
    disk.load();
    let mut server = Server::start(disk.folder.path(), &small_store("0"));
    prepare(&mut server.client());
    let written = fill(&server, &disk);
    println!("{} documents were acknowledged", written.len());
    drop(fs::remove_file(disk.ballast()));
    if server.messages().contains("takes no more writes until it is opened again") {
        println!("the store must be opened again");
        server.kill();
        server = Server::start(disk.folder.path(), &small_store("0"));
    }
    // The store looks for space once a second.
    let freed = Instant::now();
    while server.client().get("/db/_design/d/_view/notes?limit=1").unwrap().status == 507 {
        assert!(freed.elapsed() < Duration::from_secs(30), "the space that is there again is not taken");
        std::thread::sleep(Duration::from_millis(50));
    }
    check(&mut server.client(), &written);
    check_restarts(server, &disk, "0", written);
}
