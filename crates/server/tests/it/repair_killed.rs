//! `scrinium log salvage` and `scrinium fixup --engine` are killed at some moment: what they would have kept is still there
//! when they are begun again, and no server serves less meanwhile.
//!
//! `SCRINIUM_KILLS` says how many kills; the seed that repeats a run, as far as moments can be repeated, is printed.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::Server;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_fault::{Kills, copy_folder};
use serde_json::json;

/// Nothing of the log goes to the databases' own files by itself.
const SETTINGS: [(&str, &str); 3] = [
    ("SCRINIUM_LOG__EXTENT_BYTES", "1 MB"),
    ("SCRINIUM_LOG__FAVOR", "runtime"),
    ("SCRINIUM_MEMORY__BUDGET", "64 MB"),
];
const DOCUMENTS: usize = 300;
const KILLS: u64 = 4;
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium"));
    command.arg("--data-dir").arg(folder.join("data")).args(arguments).envs(SETTINGS);
    command.env("SCRINIUM_HTTP__LISTEN", "127.0.0.1:0").stdin(Stdio::null());
    command
}

fn run(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let Output { status, stdout, stderr } = command(folder, arguments).output().unwrap();
    let told = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    (status.code().unwrap_or(-1), told)
}

/// Texts of random letters, so that files are of many blocks.
fn fill(server: &Server, random: &mut StdRng) {
    let mut client = server.client();
    client.json("PUT", "/notes", &json!({})).unwrap().expect(201);
    for number in 0..DOCUMENTS {
        let text: String = (0..1500).map(|_| char::from(random.random_range(b'a'..=b'z'))).collect();
        let document = json!({"text": format!("{text} document {number:03}")});
        client.json("PUT", &format!("/notes/{number:03}"), &document).unwrap().expect(201);
    }
}

/// What a server answers for each document.
fn served(folder: &Path) -> Vec<u16> {
    let server = Server::start(folder, &SETTINGS);
    let mut client = server.client();
    (0..DOCUMENTS).map(|number| client.get(&format!("/notes/{number:03}")).unwrap().status).collect()
}

/// What a server says that does not start; nothing if it does.
fn refusal(folder: &Path) -> Option<String> {
    let messages = folder.join("refusal");
    let mut serve = crate::common::command(folder);
    serve.envs(SETTINGS).stdin(Stdio::null()).stdout(Stdio::null());
    let mut process = serve.stderr(File::create(&messages).unwrap()).spawn().unwrap();
    let (began, said) = (Instant::now(), || std::fs::read_to_string(&messages).unwrap());
    while process.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < ANSWER_WITHIN, "{}", said());
        if said().contains("listening url=") {
            process.kill().unwrap();
            process.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(said())
}

/// A repair by a command, and what says that it is to be done.
struct Repair {
    command: &'static [&'static str],
    /// Exit codes of one that was done.
    codes: &'static [i32],
    /// What a server names that does not start without it.
    named: &'static str,
    /// Never there when it is done.
    left: &'static str,
}

/// Kills the repair of copies of a damaged folder at moments all over the time that a whole one takes.
fn kill_it(damaged: &Path, repair: &Repair, random: &mut StdRng) {
    let kills = Kills::from_environment(KILLS).count;
    let copy = || {
        let folder = tempfile::tempdir().unwrap();
        copy_folder(damaged, folder.path()).unwrap();
        folder
    };
    let whole = copy();
    let began = Instant::now();
    let (code, told) = run(whole.path(), repair.command);
    let takes = began.elapsed();
    assert!(repair.codes.contains(&code), "{code}: {told}");
    let kept = served(whole.path());
    let count = kept.iter().filter(|status| **status == 200).count();
    assert!((1..DOCUMENTS).contains(&count), "{count} documents are left");
    let mut met = 0;
    for kill in 0..kills {
        let folder = copy();
        let folder = folder.path();
        let mut process = command(folder, repair.command);
        let mut process = process.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(takes.mul_f64(random.random_range(0.1..1.0)));
        met += u64::from(process.try_wait().unwrap().is_none());
        drop(process.kill());
        process.wait().unwrap();
        // Somebody may start the server first.
        match refusal(folder) {
            Some(said) => assert!(said.contains(repair.named), "{said}"),
            None => {
                let now = served(folder);
                assert!(kept.iter().zip(&now).all(|(kept, now)| *kept != 200 || *now == 200), "{now:?}");
            }
        }
        let (code, told) = run(folder, repair.command);
        assert!(code == 0 || repair.codes.contains(&code), "{code}: {told}");
        assert!(!folder.join("data/store").join(repair.left).exists(), "{} is left", repair.left);
        assert_eq!(served(folder), kept, "after kill {kill}");
    }
    println!("{met} of {kills} kills met a repair under way, which takes {takes:.1?}");
}

fn seeded() -> StdRng {
    let kills = Kills::from_environment(KILLS);
    println!("{kills}");
    StdRng::seed_from_u64(kills.seed)
}

#[test]
fn a_salvage_of_the_log_that_was_killed_is_begun_again() {
    let mut random = seeded();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut server = Server::start(folder, &SETTINGS);
    fill(&server, &mut random);
    server.kill();
    let extent = folder.join("data/log/S0000001.TXN");
    let mut bytes = std::fs::read(&extent).unwrap();
    let sought = format!("document {:03}", DOCUMENTS / 2);
    let at = bytes.windows(sought.len()).position(|window| window == sought.as_bytes()).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&extent, bytes).unwrap();
    let repair = Repair {
        command: &["log", "salvage", "--yes"],
        codes: &[0],
        named: "scrinium log salvage",
        left: "tree.rewritten",
    };
    kill_it(folder, &repair, &mut random);
}

#[test]
fn a_tree_whose_rewriting_was_killed_is_written_anew_again() {
    let mut random = seeded();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut server = Server::start(folder, &SETTINGS);
    fill(&server, &mut random);
    assert!(server.terminate(ANSWER_WITHIN).success());
    let files = std::fs::read_dir(folder.join("data/store/tree")).unwrap().flatten();
    let tables =
        files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|end| end == "sst"));
    let table = tables.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    // Behind the directory, without which no server starts.
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let repair = Repair {
        command: &["fixup", "--engine"],
        codes: &[3],
        named: "scrinium fixup --engine",
        left: "tree.rewritten",
    };
    kill_it(folder, &repair, &mut random);
}
