//! Large attachments in a store of objects: a server, its backup, and what was restored next to it.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use crate::common::{Client, Server, Settings, answer, beside, noise, small_with, start_with};
use scrinium_fault::wait_until;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Collecting is done every second here.
const REMOVED_WITHIN: Duration = Duration::from_secs(120);

fn settings(root: &Path) -> Settings {
    small_with([
        ("SCRINIUM_ATTACHMENT__STORE", format!("file://{}", root.join("objects").display())),
        ("SCRINIUM_BACKUP__TARGETS", root.join("repository").display().to_string()),
        ("SCRINIUM_ATTACHMENT__THRESHOLD", "300 KB".to_owned()),
        ("SCRINIUM_ATTACHMENT__KEEP_REMOVED", "0 s".to_owned()),
        ("SCRINIUM_ATTACHMENT__COLLECT_EVERY", "1 s".to_owned()),
        ("SCRINIUM_VOLUME__FAST__DIR", "volumes/fast".to_owned()),
    ])
}

fn start(folder: &Path, root: &Path) -> Server {
    std::fs::create_dir_all(folder).unwrap();
    start_with(folder, &settings(root))
}

/// A folder with objects, a repository, and a server with a database for mail.
struct Place {
    server: Server,
    repository: String,
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("objects")).unwrap();
        let repository = folder.path().join("repository").display().to_string();
        let server = start(folder.path(), folder.path());
        server.client().json("PUT", "/mail%2Fada", &json!({})).unwrap().expect(201);
        Self { server, repository, folder }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let root = self.folder.path();
        let listen = self.server.address().to_string();
        beside(root, settings(root), &listen, &[&["--json"], arguments].concat()).output().unwrap()
    }

    /// Restores the last backup next to the server, which continues, and starts a server there.
    fn restore_beside(&self) -> Server {
        let root = self.folder.path();
        let other = root.join("other");
        let into = other.join("data").display().to_string();
        let restored = answer(&self.run(&["restore", &self.repository, "--into", &into]));
        assert!(restored["warning"].is_null(), "{restored}");
        start(&other, root)
    }
}

fn objects(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![root.join("objects")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() { folders.push(entry.path()) } else { found.push(entry.path()) }
        }
    }
    found
}

fn attach(client: &mut Client, id: &str, bytes: &[u8]) {
    client.ask("PUT", &format!("/mail%2Fada/{id}/file"), "application/zip", bytes).unwrap().expect(201);
}

fn delete(client: &mut Client, id: &str) {
    let document = client.get(&format!("/mail%2Fada/{id}")).unwrap().expect(200).value();
    let revision = document["_rev"].as_str().unwrap();
    client.json("DELETE", &format!("/mail%2Fada/{id}?rev={revision}"), &json!({})).unwrap().expect(200);
}

#[test]
fn a_restored_server_reads_the_objects_of_the_one_before_and_removes_none() {
    let place = Place::new();
    let Place { server, repository, folder } = &place;
    let (root, mut client) = (folder.path(), server.client());
    let (one, two, small) = (noise(1, 5 << 20), noise(2, 400 << 10), noise(3, 100 << 10));
    for (id, bytes) in [("one", &one), ("two", &two), ("two-again", &two), ("small", &small)] {
        attach(&mut client, id, bytes);
    }
    assert_eq!(objects(root).len(), 2);
    for (id, bytes) in [("one", &one), ("two-again", &two), ("small", &small)] {
        assert!(client.get(&format!("/mail%2Fada/{id}/file")).unwrap().expect(200).body == *bytes);
    }
    let made = answer(&place.run(&["backup", repository]));
    assert_eq!(made["objects"], 2, "{made}");
    assert_eq!(answer(&place.run(&["backup", "verify", repository, "--deep"]))["ok"], true);

    let restored = place.restore_beside();
    let mut beside = restored.client();
    assert!(beside.get("/mail%2Fada/one/file").unwrap().expect(200).body == one);
    delete(&mut beside, "one");
    attach(&mut beside, "three", &noise(4, 350 << 10));
    delete(&mut beside, "three");
    assert_eq!(objects(root).len(), 3);
    wait_until("what a server has written itself goes", REMOVED_WITHIN, || objects(root).len() == 2);
    assert!(client.get("/mail%2Fada/one/file").unwrap().expect(200).body == one);
    drop(restored);

    // All of it can be brought back, and then nothing is there any more.
    let told = answer(&place.run(&["console", "load attachments mail/ada --to-volume"]));
    assert_eq!(told["database"], "mail/ada", "{told}");
    wait_until("what was moved goes", REMOVED_WITHIN, || objects(root).is_empty());
    for (id, bytes) in [("one", &one), ("two", &two), ("two-again", &two)] {
        assert!(client.get(&format!("/mail%2Fada/{id}/file")).unwrap().expect(200).body == *bytes);
    }
    let verified = place.run(&["backup", "verify", repository]);
    assert_eq!(verified.status.code(), Some(1));
    let verified: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert!(verified["damaged"][0]["problem"].as_str().unwrap().starts_with("2 are lost"), "{verified}");
    let third = root.join("third/data").display().to_string();
    let restored = answer(&place.run(&["restore", repository, "--into", &third]));
    assert!(restored["warning"].as_str().unwrap().contains("is missing"), "{restored}");
}

/// Each volume has a folder of its own among the objects, and so has the one that it is restored as.
#[test]
fn attachments_of_volumes_are_moved_backed_up_and_restored_with_their_databases() {
    let place = Place::new();
    let Place { server, repository, folder } = &place;
    let (root, mut client) = (folder.path(), server.client());
    let (one, two, three) = (noise(1, 400 << 10), noise(2, 500 << 10), noise(3, 600 << 10));
    for database in ["/papers?volume=fast", "/stays"] {
        client.json("PUT", database, &json!({})).unwrap().expect(201);
    }
    for (id, bytes) in [("one", &one), ("two", &two)] {
        attach(&mut client, id, bytes);
    }
    for (path, bytes) in [("/papers/two/file", &two), ("/stays/three/file", &three)] {
        client.ask("PUT", path, "application/zip", bytes).unwrap().expect(201);
    }
    assert_eq!(objects(root).len(), 4);
    answer(&place.run(&["console", "load move mail/ada fast"]));
    let volume = |database: &str| server.client().get(database).unwrap().value()["volume"].clone();
    wait_until("the database is moved", REMOVED_WITHIN, || volume("/mail%2Fada") == "fast");
    wait_until("what it has left goes", REMOVED_WITHIN, || objects(root).len() == 3);
    let all_right = |client: &mut Client| {
        for (path, bytes) in [
            ("mail%2Fada/one", &one),
            ("mail%2Fada/two", &two),
            ("papers/two", &two),
            ("stays/three", &three),
        ] {
            assert!(client.get(&format!("/{path}/file")).unwrap().expect(200).body == *bytes, "{path}");
        }
    };
    all_right(&mut client);
    let made = answer(&place.run(&["backup", repository]));
    assert_eq!(made["objects"], 3, "{made}");
    assert_eq!(answer(&place.run(&["backup", "verify", repository, "--deep"]))["ok"], true);
    let one_of_it = ["restore", repository, "--database", "mail/ada", "--as", "then"];
    assert!(answer(&place.run(&one_of_it))["warning"].is_null());
    assert!(client.get("/then/one/file").unwrap().expect(200).body == one);
    client.json("DELETE", "/then", &json!({})).unwrap().expect(200);
    wait_until("what was restored goes", REMOVED_WITHIN, || objects(root).len() == 3);

    let restored = place.restore_beside();
    let mut beside = restored.client();
    all_right(&mut beside);
    delete(&mut beside, "one");
    attach(&mut beside, "four", &noise(4, 350 << 10));
    delete(&mut beside, "four");
    assert_eq!(objects(root).len(), 4);
    wait_until("what a server has written itself goes", REMOVED_WITHIN, || objects(root).len() == 3);
    drop(restored);
    all_right(&mut client);
}
