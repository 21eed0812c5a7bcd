//! Backups of a server that runs, is killed, or is stopped; and restoring all of it, or one database.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::common::{Client, Server, Settings, answer, beside, small_with, start_with};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_fault::{Kills, run_bounded};
use serde_json::{Value, json};
use tempfile::TempDir;

const ATTACHMENT_BYTES: usize = 300_000;

fn settings(folder: &Path) -> Settings {
    small_with([
        ("SCRINIUM_LOG__STYLE", "archive".to_owned()),
        ("SCRINIUM_LOG__ARCHIVE_DIR", folder.join("archive").display().to_string()),
        ("SCRINIUM_BACKUP__TARGETS", folder.join("repository").display().to_string()),
    ])
}

fn start(folder: &Path, root: &Path) -> Server {
    std::fs::create_dir_all(root.join("archive")).unwrap();
    start_with(folder, &settings(root))
}

/// A folder for servers, and one in it for backups.
fn place() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().join("repository").display().to_string();
    (folder, repository)
}

fn scrinium(folder: &Path, root: &Path, listen: &str, arguments: &[&str]) -> Command {
    beside(folder, settings(root), listen, &[&["--json"], arguments].concat())
}

fn fill(client: &mut Client) {
    client.json("PUT", "/mail%2Fada", &json!({})).unwrap().expect(201);
    for batch in 0..5 {
        let documents: Vec<Value> = (0..100)
            .map(|n| json!({"_id": format!("{batch}-{n}"), "Subject": "x".repeat(500), "n": n}))
            .collect();
        client.json("POST", "/mail%2Fada/_bulk_docs", &json!({"docs": documents})).unwrap().expect(201);
    }
    client.ask("PUT", "/mail%2Fada/file/noise", "application/zip", &noise()).unwrap().expect(201);
}

fn noise() -> Vec<u8> {
    crate::common::noise(7, ATTACHMENT_BYTES)
}

fn count(client: &mut Client, database: &str) -> u64 {
    client.get(&format!("/{database}")).unwrap().expect(200).value()["doc_count"].as_u64().unwrap()
}

#[test]
fn a_server_is_backed_up_while_it_runs_and_restored_to_a_moment() {
    let (folder, repository) = place();
    let folder = folder.path();
    let mut server = start(folder, folder);
    let listen = server.address().to_string();
    let run = |arguments: &[&str]| scrinium(folder, folder, &listen, arguments).output().unwrap();
    let mut client = server.client();
    fill(&mut client);
    let shown = client.json("POST", "/_console", &json!({"command": "show server"})).unwrap().value();
    assert_eq!(shown["data"]["log"]["style"], "archive");
    let made = answer(&run(&["backup", &repository]));
    assert!(made["new_bytes"].as_u64().unwrap() >= ATTACHMENT_BYTES as u64, "{made}");
    client.json("PUT", "/mail%2Fada/between", &json!({"Subject": "between"})).unwrap().expect(201);
    std::thread::sleep(Duration::from_millis(20));
    let between = jiff::Timestamp::try_from(SystemTime::now()).unwrap().to_string();
    std::thread::sleep(Duration::from_millis(20));
    client.json("PUT", "/mail%2Fada/after", &json!({"Subject": "after"})).unwrap().expect(201);
    // A backup has the log archived up to there.
    answer(&run(&["backup", &repository]));

    // One database, next to the live one.
    let restored =
        run(&["restore", &repository, "--database", "mail/ada", "--as", "mail/ada-then", "--to", &between]);
    assert_eq!(answer(&restored)["backup"], made["backup"]);
    assert_eq!(count(&mut client, "mail%2Fada-then"), 502);
    client.get("/mail%2Fada-then/between").unwrap().expect(200);
    client.get("/mail%2Fada-then/after").unwrap().expect(404);
    assert!(client.get("/mail%2Fada-then/file/noise").unwrap().expect(200).body == noise());
    assert_eq!(count(&mut client, "mail%2Fada"), 503);
    let again = run(&["restore", &repository, "--database", "mail/ada", "--as", "mail/ada-then"]);
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("another name"));

    let listed = answer(&run(&["backup", "list", &repository]));
    assert_eq!(listed["backups"].as_array().unwrap().len(), 2, "{listed}");
    let verified = answer(&run(&["backup", "verify", &repository, "--archive"]));
    assert!(verified["ok"] == true && verified["files"].as_u64().unwrap() > 5, "{verified}");

    // The whole server, elsewhere, with everything that was archived.
    client.json("PUT", "/mail%2Fada/last", &json!({"Subject": "last"})).unwrap().expect(201);
    assert!(server.terminate(Duration::from_secs(60)).success());
    answer(&run(&["backup", &repository]));
    let other = folder.join("other");
    let into = other.join("data").display().to_string();
    let refused = run(&["restore", &repository, "--into", &folder.join("data").display().to_string()]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("not empty"));
    let restored = answer(&run(&["restore", &repository, "--into", &into, "--to", "latest"]));
    assert!(restored["warning"].is_null(), "{restored}");
    let server = start(&other, folder);
    let mut client = server.client();
    assert_eq!((count(&mut client, "mail%2Fada"), count(&mut client, "mail%2Fada-then")), (504, 502));
    client.json("PUT", "/mail%2Fada/new", &json!({})).unwrap().expect(201);
}

/// A volume is restored to the same moment as the first store, and one that was not restored is refused.
#[test]
fn volumes_are_backed_up_and_restored_with_the_rest() {
    let (folder, repository) = place();
    let folder = folder.path();
    std::fs::create_dir_all(folder.join("archive")).unwrap();
    let place = |dir: &str| {
        let mut settings = settings(folder);
        settings.push(("SCRINIUM_VOLUME__FAST__DIR", dir.to_owned()));
        settings
    };
    let dir = folder.join("fast").display().to_string();
    let begin = |folder: &Path, dir: &str| start_with(folder, &place(dir));
    let mut server = begin(folder, &dir);
    let listen = server.address().to_string();
    let run =
        |arguments: &[&str]| scrinium(folder, folder, &listen, arguments).envs(place(&dir)).output().unwrap();
    let mut client = server.client();
    fill(&mut client);
    client.ask("PUT", "/papers?volume=fast", "application/json", &[]).unwrap().expect(201);
    assert_eq!(client.get("/papers").unwrap().value()["volume"], "fast");
    client.json("PUT", "/papers/before", &json!({})).unwrap().expect(201);
    let move_command = json!({"command": "load move mail/ada fast"});
    client.json("POST", "/_console", &move_command).unwrap().expect(200);
    let moved = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        client.get("/mail%2Fada").unwrap().value()["volume"] == "fast"
    });
    assert!(moved, "{}", client.json("POST", "/_console", &json!({"command": "show tasks"})).unwrap().text());
    let made = answer(&run(&["backup", &repository]));
    assert_eq!((&made["volumes"], &made["missing_volumes"]), (&json!(["fast"]), &json!([])));
    client.json("PUT", "/papers/after", &json!({})).unwrap().expect(201);
    client.json("PUT", "/mail%2Fada/after", &json!({})).unwrap().expect(201);
    // A backup has the logs archived up to there.
    answer(&run(&["backup", &repository]));
    let first = made["backup"].as_str().unwrap();
    // One database of a volume, next to the live one.
    let restore = ["restore", &repository, "--backup", first];
    answer(&run(&[&restore[..], &["--database", "mail/ada", "--as", "mail/ada-then"]].concat()));
    assert_eq!(count(&mut client, "mail%2Fada-then"), 501);
    assert!(client.get("/mail%2Fada-then/file/noise").unwrap().expect(200).body == noise());
    assert!(server.terminate(Duration::from_secs(60)).success());
    let verified = answer(&run(&["log", "verify"]));
    assert_eq!((&verified["whole"], &verified["volumes"]["fast"]["whole"]), (&json!(true), &json!(true)));

    let other = folder.join("other");
    let into = other.join("data").display().to_string();
    answer(&run(&[&restore[..], &["--into", &into, "--to", "latest"]].concat()));
    let server = begin(&other, &dir);
    let mut client = server.client();
    let refused = client.get("/papers").unwrap().expect(503).value();
    assert!(refused["reason"].as_str().unwrap().contains("restore both"), "{refused}");
    drop(server);
    // The one that was not restored is as it was, for the server that it belongs to.
    let mut server = begin(folder, &dir);
    assert_eq!(count(&mut server.client(), "papers"), 2);
    assert!(server.terminate(Duration::from_secs(60)).success());
    let server = begin(&other, "volumes/fast");
    let mut client = server.client();
    assert_eq!((count(&mut client, "papers"), count(&mut client, "mail%2Fada")), (2, 502));
    assert!(client.get("/mail%2Fada/file/noise").unwrap().expect(200).body == noise());
}

/// `SCRINIUM_SEED` and `SCRINIUM_KILLS`, which are printed, repeat a run.
#[test]
fn a_server_killed_during_a_backup_leaves_none_that_is_not_whole() {
    let kills = Kills::from_environment(4);
    println!("{kills}");
    let mut random = StdRng::seed_from_u64(kills.seed);
    let (folder, repository) = place();
    let folder = folder.path();
    let mut whole = 0;
    for kill in 0..kills.count {
        let mut server = start(folder, folder);
        let listen = server.address().to_string();
        let mut client = server.client();
        if kill == 0 {
            fill(&mut client);
        }
        let id = format!("/mail%2Fada/kill-{kill}");
        client.json("PUT", &id, &json!({"Subject": "x".repeat(100_000)})).unwrap().expect(201);
        // Slow enough to be met in the middle, mostly.
        let mut backup = scrinium(folder, folder, &listen, &["backup", &repository, "--rate", "2MB"]);
        let mut backup = backup.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(random.random_range(200..600)));
        server.kill();
        drop(backup.kill());
        drop(backup.wait());
        let run = |arguments: &[&str]| scrinium(folder, folder, &listen, arguments).output().unwrap();
        if Path::new(&repository).join("repository.json").exists() {
            let verified = answer(&run(&["backup", "verify", &repository]));
            let now = verified["whole"].as_array().unwrap().len();
            assert!(now == whole || now == whole + 1, "{verified}");
        }
        // The next one works, without the server that was killed.
        answer(&run(&["backup", &repository]));
        let verified = answer(&run(&["backup", "verify", &repository]));
        whole = verified["whole"].as_array().unwrap().len();
    }
    let other = folder.join("other");
    let into = other.join("data").display().to_string();
    answer(
        &scrinium(folder, folder, "127.0.0.1:1", &["restore", &repository, "--into", &into])
            .output()
            .unwrap(),
    );
    let server = start(&other, folder);
    assert_eq!(count(&mut server.client(), "mail%2Fada"), 501 + kills.count);
}

/// No server starts on half a restore, and the next restore says what to do. `SCRINIUM_SEED` and
/// `SCRINIUM_KILLS`, which are printed, repeat a run.
#[test]
fn a_restore_that_was_killed_serves_nobody_and_is_begun_again() {
    let kills = Kills::from_environment(5);
    println!("{kills}");
    let mut random = StdRng::seed_from_u64(kills.seed);
    let (folder, repository) = place();
    let folder = folder.path();
    let mut server = start(folder, folder);
    let listen = server.address().to_string();
    fill(&mut server.client());
    let run = |arguments: &[&str]| scrinium(folder, folder, &listen, arguments).output().unwrap();
    answer(&run(&["backup", &repository]));
    server.kill();
    let other = folder.join("other");
    let data = other.join("data");
    let into = data.display().to_string();
    let mut broken_off = 0;
    for _ in 0..kills.count {
        let mut restore =
            scrinium(folder, folder, &listen, &["restore", &repository, "--into", &into, "--rate", "400KB"]);
        let mut restore = restore.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(random.random_range(50..1550)));
        drop(restore.kill());
        let ended = restore.wait().unwrap().success();
        if data.join("restore.part").exists() {
            broken_off += 1;
            let mut serve = crate::common::command(&other);
            serve.envs(settings(folder)).stdout(Stdio::null()).stderr(Stdio::piped());
            let refused = run_bounded(&mut serve, Duration::from_secs(60)).unwrap();
            let told = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(!refused.status.success() && told.contains("restore.part"), "{told}");
            let again = run(&["restore", &repository, "--into", &into]);
            let told = String::from_utf8_lossy(&again.stderr).into_owned();
            assert!(!again.status.success() && told.contains("remove everything in it"), "{told}");
        } else if !ended && data.join("store").exists() {
            // The kill came between the removal of the mark, which is the last step, and the end of the command.
            let server = start(&other, folder);
            assert_eq!(count(&mut server.client(), "mail%2Fada"), 501, "a store without a mark is whole");
        }
        drop(std::fs::remove_dir_all(&data));
    }
    println!("{broken_off} kills met a restore under way");
    answer(&run(&["restore", &repository, "--into", &into]));
    let server = start(&other, folder);
    assert_eq!(count(&mut server.client(), "mail%2Fada"), 501);
}

/// Neither needs the server's configuration, since the backup tells where the log was archived.
#[test]
fn an_archive_is_found_without_the_configuration_and_its_want_is_told() {
    let (folder, repository) = place();
    let folder = folder.path();
    let mut server = start(folder, folder);
    let listen = server.address().to_string();
    fill(&mut server.client());
    answer(&scrinium(folder, folder, &listen, &["backup", &repository]).output().unwrap());
    server.kill();
    let plain = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium"));
        command.arg("--json").args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
    };
    assert_eq!(answer(&plain(&["backup", "verify", &repository, "--archive"]))["ok"], true);
    answer(&plain(&["backup", "prune", &repository, "--keep", "1", "--archive"]));
    std::fs::rename(folder.join("archive"), folder.join("gone")).unwrap();
    for arguments in [
        &["backup", "verify", &repository, "--archive"][..],
        &["backup", "prune", &repository, "--archive", "--keep", "1"],
    ] {
        let refused = plain(arguments);
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && told.contains("is not there"), "{told}");
    }
}
