//! Suites and clients of others, against a server made for the run. They fetch packages, so they run
//! only when asked for (`cargo test -p scrinium-http --test it conformance -- --ignored`), and skip with a
//! word where the registry cannot be reached.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use scrinium_fault::skip;

use crate::common::{PASSWORD, Server};

/// Cases of kivik's suite that pass; fewer is a step back. What does not: `_users`, which a server without a directory has
/// not, replication, `_explain` as CouchDB 3.3 has it, and its name. CouchDB 3.5.0 itself passes 380.
const KIVIK_PASSES: usize = 317;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance").join(name)
}

/// Runs a program; `None`, with a word, where it cannot be.
async fn run(program: &str, arguments: &[&str], dir: &Path, variables: &[(&str, &str)]) -> Option<Output> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(dir).envs(variables.iter().copied());
    match tokio::task::spawn_blocking(move || command.output()).await.unwrap() {
        Ok(output) => Some(output),
        Err(error) => {
            skip(format_args!("{program} cannot be run: {error}"));
            None
        }
    }
}

fn text(output: &Output) -> String {
    [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)].concat()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "fetches Go modules"]
async fn kiviks_suite_passes_as_far_as_it_did() {
    let server = Server::start().await;
    let dsn = format!("http://admin:{PASSWORD}@{}", server.address);
    let dir = folder("kivik");
    // The suite does not compile with Go 1.25 and later.
    let toolchain = ("GOTOOLCHAIN", "go1.24.0");
    let Some(built) = run("go", &["test", "-c", "-o", "/dev/null", "."], &dir, &[toolchain]).await else {
        return;
    };
    if !built.status.success() {
        skip(format_args!("the suite cannot be fetched or built: {}", text(&built)));
        return;
    }
    let variables = [toolchain, ("CONFORMANCE_DSN", dsn.as_str())];
    let Some(output) = run("go", &["test", "-v", "-count=1", "-timeout=5m", "."], &dir, &variables).await
    else {
        return;
    };
    let output = text(&output);
    let cases = |word: &str| output.lines().filter(|line| line.trim_start().starts_with(word)).count();
    let (passed, failed) = (cases("--- PASS"), cases("--- FAIL"));
    println!("{output}\nkivik: {passed} passed, {failed} failed");
    assert!(passed >= KIVIK_PASSES, "{passed} passed, {failed} failed");
}

/// Runs a script of ours with PouchDB, against a server made for the run.
async fn run_pouchdb(script: &str) {
    let server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    for file in ["package.json", script] {
        std::fs::copy(folder("pouchdb").join(file), dir.path().join(file)).unwrap();
    }
    let install = ["install", "--no-audit", "--no-fund", "--ignore-scripts"];
    let Some(installed) = run("npm", &install, dir.path(), &[]).await else { return };
    if !installed.status.success() {
        skip(format_args!("the packages cannot be fetched: {}", text(&installed)));
        return;
    }
    let url = format!("http://{}", server.address);
    let variables = [("SERVER", url.as_str()), ("PASSWORD", PASSWORD)];
    let Some(output) = run("node", &[script], dir.path(), &variables).await else { return };
    assert!(output.status.success(), "{}", text(&output));
    println!("{}", text(&output));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "fetches npm packages"]
async fn pouchdb_replicates_both_ways() {
    run_pouchdb("round_trip.js").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "fetches npm packages"]
async fn pouchdb_pushes_a_hundred_photographs_and_a_film() {
    run_pouchdb("photographs.js").await;
}

/// A PouchDB server on a free port of this machine, which ends with this.
struct PouchDbServer {
    process: std::process::Child,
    url: String,
    _dir: tempfile::TempDir,
}

impl PouchDbServer {
    async fn start() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        for file in ["package.json", "pouchdb_server.js"] {
            std::fs::copy(folder("pouchdb-server").join(file), dir.path().join(file)).unwrap();
        }
        let install = ["install", "--no-audit", "--no-fund", "--ignore-scripts"];
        let installed = run("npm", &install, dir.path(), &[]).await?;
        if !installed.status.success() {
            skip(format_args!("the packages cannot be fetched: {}", text(&installed)));
            return None;
        }
        std::fs::create_dir(dir.path().join("data")).unwrap();
        let mut process = Command::new("node")
            .args(["pouchdb_server.js", "data"])
            .current_dir(dir.path())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let mut lines = std::io::BufReader::new(process.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut lines, &mut port).unwrap();
        Some(Self { process, url: format!("http://127.0.0.1:{}", port.trim()), _dir: dir })
    }
}

impl Drop for PouchDbServer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "fetches npm packages"]
async fn a_pouchdb_server_is_the_other_end_of_our_replications() {
    let server = Server::start().await;
    let Some(theirs) = PouchDbServer::start().await else { return };
    crate::replication::fill(&server, "near").await;
    // A name of an attachment that has to be escaped ends PouchDB's server.
    server.ask("DELETE", "/near/attached?rev=1-dd", ()).await.expect(200);
    let data = "eHh4".repeat(50_000);
    let attached =
        serde_json::json!({"_attachments": {"plain name.bin": {"content_type": "a/b", "data": data}}});
    server.ask("PUT", "/near/attached-plainly", attached).await.expect(201);
    let far = format!("{}/far", theirs.url);
    let replicate =
        async |order: serde_json::Value| server.ask("POST", "/_replicate", order).await.expect(200).json();
    let pushed = replicate(serde_json::json!({"source": "near", "target": far, "create_target": true})).await;
    assert_eq!(pushed["history"][0]["doc_write_failures"], 0, "{pushed}");
    replicate(serde_json::json!({"source": far, "target": "back", "create_target": true})).await;
    // It does not know of attachments that are kept as gzip, and gets what they stand for.
    let packed = server.ask("GET", "/back/packed/f", [("accept-encoding", "gzip")]).await.expect(200);
    assert_eq!(packed.header("content-encoding"), None);
    assert_eq!(packed.text(), crate::replication::PACKED.repeat(10_000));
    let (mut before, mut after) = (
        crate::replication::everything(&server, "near").await,
        crate::replication::everything(&server, "back").await,
    );
    before.retain(|(id, _)| id != "packed");
    after.retain(|(id, _)| id != "packed");
    assert_eq!(after.len(), before.len());
    assert_eq!(after, before);
    let again = replicate(serde_json::json!({"source": far, "target": "back"})).await;
    assert_eq!(again["no_changes"], true, "{again}");
    // And what comes there goes on to here.
    let live = serde_json::json!({"source": far, "target": "back", "continuous": true});
    server.ask("POST", "/_replicate", live).await.expect(202);
    let one_more = serde_json::json!({"source": "near", "target": far});
    server.ask("PUT", "/near/late", serde_json::json!({})).await.expect(201);
    replicate(one_more).await;
    crate::replication::arrives(&server, "/back/late").await;
}
