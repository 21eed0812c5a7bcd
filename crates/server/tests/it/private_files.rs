//! What the server keeps is for its own user alone, whatever mask it is started with, and what was open before is closed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::{self, Server, Settings, answer, beside, small_with};
use serde_json::json;

fn settings(root: &Path) -> Settings {
    let place = |name: &str| root.join(name).display().to_string();
    small_with([
        ("SCRINIUM_LOG__STYLE", "archive".to_owned()),
        ("SCRINIUM_LOG__DIR", place("log")),
        ("SCRINIUM_LOG__ARCHIVE_DIR", place("archive")),
        ("SCRINIUM_VOLUME__FAST__DIR", place("fast")),
        ("SCRINIUM_ATTACHMENT__STORE", format!("file://{}", place("objects"))),
        ("SCRINIUM_ATTACHMENT__THRESHOLD", "256 KB".to_owned()),
        ("SCRINIUM_BACKUP__TARGETS", place("backups")),
        ("SCRINIUM_HTTP__OPERATION_LOG", place("operations")),
        ("SCRINIUM_HTTPS__LISTEN", "127.0.0.1:0".to_owned()),
    ])
}

/// All files and folders below one, itself included.
fn all_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        at += 1;
        if path.is_dir() && !path.is_symlink() {
            found.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    found
}

fn open_to_others(paths: &[PathBuf]) -> Vec<String> {
    let is_open = |path: &&PathBuf| fs::symlink_metadata(path).unwrap().mode() & 0o077 != 0;
    paths.iter().filter(is_open).map(|path| path.display().to_string()).collect()
}

/// The same command in a process with this mask for new files.
fn with_mask(command: &Command, mask: u32) -> Command {
    let mut masked = Command::new("sh");
    masked.arg("-c").arg(format!("umask {mask:03o}; exec \"$0\" \"$@\"")).arg(command.get_program());
    masked.args(command.get_args());
    masked.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    masked
}

#[test]
fn no_file_that_the_server_makes_can_be_read_by_others() {
    for mask in [0o000, 0o022] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for place in ["archive", "objects"] {
            fs::create_dir(root.join(place)).unwrap();
            fs::set_permissions(root.join(place), Permissions::from_mode(0o777 & !mask)).unwrap();
        }
        let settings = settings(root);
        let mut serve = common::command(root);
        let mut server = Server::spawn_by(root, &mut with_mask(serve.envs(settings.clone()), mask));
        server.wait_until_up();
        let mut client = server.client();
        client.json("PUT", "/papers", &json!({})).unwrap().expect(201);
        client.json("PUT", "/elsewhere?volume=fast", &json!({})).unwrap().expect(201);
        for database in ["papers", "elsewhere"] {
            client
                .json("PUT", &format!("/{database}/one"), &json!({"Subject": "x".repeat(4000)}))
                .unwrap()
                .expect(201);
            let noise = common::noise(1, 400 << 10);
            client
                .ask("PUT", &format!("/{database}/two/file"), "application/zip", &noise)
                .unwrap()
                .expect(201);
        }
        let listen = server.address().to_string();
        let backup = || with_mask(&beside(root, settings.clone(), &listen, &["--json", "backup"]), mask);
        answer(&backup().output().unwrap());
        assert!(server.terminate(Duration::from_secs(60)).success());
        answer(&backup().output().unwrap());
        let into = root.join("restored");
        let arguments = [
            "--json",
            "restore",
            &root.join("backups").display().to_string(),
            "--into",
            &into.display().to_string(),
            "--log-dir",
            "log",
        ];
        answer(&with_mask(&beside(root, settings.clone(), &listen, &arguments), mask).output().unwrap());

        let places = ["data", "log", "archive", "fast", "objects", "backups", "operations", "restored"];
        let all: Vec<PathBuf> = places.iter().flat_map(|place| all_below(&root.join(place))).collect();
        for there in
            ["data/store/tree", "data/tls/certificate.pem", "log/store.id", "fast/store.format", "operations"]
        {
            assert!(root.join(there).exists(), "{there}");
        }
        assert!(all.len() > 60, "{all:?}");
        assert_eq!(open_to_others(&all), Vec::<String>::new(), "with mask {mask:03o}");
    }
}

#[test]
fn what_others_could_read_is_closed_at_the_start_and_what_is_not_the_servers_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for place in ["archive", "objects"] {
        fs::create_dir(root.join(place)).unwrap();
    }
    let settings = settings(root);
    let pairs: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut server = Server::start(root, &pairs);
    server.client().json("PUT", "/papers", &json!({})).unwrap().expect(201);
    assert!(server.terminate(Duration::from_secs(60)).success());
    // As an earlier release has left them; and a file in the archive that no server has put there.
    fs::write(root.join("archive/notes.txt"), "of somebody").unwrap();
    fs::write(root.join("beside"), "of somebody else").unwrap();
    std::os::unix::fs::symlink(root.join("beside"), root.join("data/link")).unwrap();
    let places = ["data", "log", "archive", "fast", "objects", "operations"];
    let all = |places: &[&str]| -> Vec<PathBuf> {
        places
            .iter()
            .flat_map(|place| all_below(&root.join(place)))
            .filter(|path| !path.is_symlink())
            .collect()
    };
    for path in all(&places) {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(root.join("beside"), Permissions::from_mode(0o644)).unwrap();
    let mut server = Server::start(root, &pairs);
    assert!(server.terminate(Duration::from_secs(60)).success());
    let closed = ["data", "log", "fast", "objects", "operations"];
    assert_eq!(open_to_others(&all(&closed)), Vec::<String>::new());
    let mode = |name: &str| fs::metadata(root.join(name)).unwrap().mode() & 0o777;
    assert_eq!(mode("beside"), 0o644, "a link is not followed");
    assert_eq!((mode("archive"), mode("archive/notes.txt")), (0o755, 0o644));
    let told = format!("`chmod 700 {}` closes it", root.join("archive").display());
    assert!(server.messages().contains(&told), "{}", server.messages());
}
