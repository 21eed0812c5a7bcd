//! People, groups and mail through a running server's port: as without a server, and what is wrong is said as it is.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::common::{Server, Settings, answer, beside, noise, small_with, start_with};

fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

struct Case {
    folder: tempfile::TempDir,
    settings: Settings,
    listen: String,
}

impl Case {
    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        self.run_with(arguments, input, &[])
    }

    fn run_with(&self, arguments: &[&str], input: &str, environment: &[(&str, &str)]) -> Output {
        let settings = self.settings.iter().map(|(name, value)| (*name, value.as_str()));
        let mut command = beside(self.root(), settings, &self.listen, arguments);
        command.envs(environment.iter().copied());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // One that has ended without reading needs nothing.
        drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
        child.wait_with_output().unwrap()
    }

    fn add(&self, name: &str, full_name: &str) {
        let output = self.run(&["person", "add", name, "--name", full_name], "a password of theirs\n");
        assert!(output.status.success(), "{:?}", told(&output));
    }

    fn message(&self, path: &str, subject: &str, body: &str) {
        let text = format!(
            "From: Ann <ann@example.org>\nTo: ben@example.org\nSubject: {subject}\nDate: Mon, 02 Mar 2020 10:00:00 +0000\n\
             Message-ID: <{subject}@example.org>\n\n{body}\n"
        );
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn import(&self, path: &str, person: &str) -> Output {
        let path = self.root().join(path).display().to_string();
        self.run(&["import", "mail", &path, "--person", person, "--json"], "")
    }
}

fn start(more: impl IntoIterator<Item = (&'static str, String)>) -> (Case, Server) {
    let folder = tempfile::tempdir().unwrap();
    let settings = small_with(more);
    let server = start_with(folder.path(), &settings);
    let listen = server.address().to_string();
    (Case { folder, settings, listen }, server)
}

/// Text in lines that does not become small.
fn long_text(bytes: usize) -> String {
    let hex: String = noise(7, bytes / 2).iter().map(|byte| format!("{byte:02x}")).collect();
    hex.as_bytes().chunks(76).map(|line| format!("{}\n", String::from_utf8_lossy(line))).collect()
}

#[test]
fn mail_comes_through_the_port_whatever_its_size_and_one_refusal_does_not_end_it() {
    let (case, server) = start([
        ("SCRINIUM_HTTP__MAX_REQUEST_BYTES", "8 MB".to_owned()),
        ("SCRINIUM_ATTACHMENT__MAX_BYTES", "8 MB".to_owned()),
    ]);
    case.add("ada", "Ada Lovelace");
    case.message("mail/a.eml", "small", "Text.");
    case.message("mail/b.eml", "too-large", &long_text(9 << 20));
    case.message("mail/c.eml", "large", &long_text(6 << 20));
    for number in 0..4 {
        // Each goes alone, as all that are large do.
        case.message(&format!("mail/d{number}.eml"), &format!("middle-{number}"), &long_text(3 << 20));
    }
    let output = case.import("mail", "ada");
    let (code, said, talk) = told(&output);
    assert_eq!(code, 1, "{said}{talk}");
    let report: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{talk}"));
    assert_eq!((&report["added"], &report["left_out"]), (&6.into(), &1.into()), "{report} {talk}");
    assert!(report["reasons"][0].as_str().unwrap().contains("b.eml"), "{report}");
    let mut client = server.client();
    let info = client.get("/mail%2Fada").unwrap().expect(200).value();
    assert_eq!(info["doc_count"], 6, "the mail database was made, and has all that it can take");
    let acl = client.get("/mail%2Fada/_acl").unwrap().expect(200).text();
    assert!(acl.contains("\"ada\""), "it is the person's own: {acl}");

    // Nothing comes twice.
    let report: Value = serde_json::from_slice(&case.import("mail", "ada").stdout).unwrap();
    assert_eq!((&report["added"], &report["present"]), (&0.into(), &6.into()), "{report}");
}

#[test]
fn flags_labels_and_folders_come_through_the_port() {
    let (case, server) = start([]);
    case.add("ada", "Ada Lovelace");
    let separator = "From - Mon Mar 02 10:00:00 2020\n";
    let message = |fields: &str, subject: &str| {
        format!("{separator}{fields}From: ann@example.org\nSubject: {subject}\n\nText.\n\n")
    };
    let mbox = [
        message("X-Mozilla-Status: 0007\nX-Mozilla-Keys: $label1 house\n", "one"),
        message("X-Gmail-Labels: Inbox,Unread,Projects/2026\n", "two"),
        message("X-Mozilla-Status: 0009\n", "three"),
    ];
    fs::write(case.root().join("Old.mbox"), mbox.concat()).unwrap();
    fs::write(case.root().join("Old.mbox.gz"), b"\x1f\x8b\x08\0").unwrap();
    let report = answer(&case.import("Old.mbox", "ada"));
    assert_eq!((&report["added"], &report["passed_over"][0]["count"]), (&2.into(), &1.into()), "{report}");
    let mut client = server.client();
    let all = client.get("/mail%2Fada/_all_docs?include_docs=true").unwrap().expect(200).value();
    let document = |subject: &str| {
        let rows = all["rows"].as_array().unwrap();
        rows.iter().map(|row| &row["doc"]).find(|doc| doc["Subject"] == subject).unwrap().clone()
    };
    assert_eq!(document("one")["$Flags"], serde_json::json!(["\\Answered", "\\Flagged"]));
    assert_eq!(document("one")["Categories"], serde_json::json!(["Important", "house"]));
    let folders = client.get("/mail%2Fada/_folder").unwrap().expect(200).text();
    for folder in ["Old", "Inbox", "Projects\\\\2026"] {
        assert!(folders.contains(&format!("\"{folder}\"")), "{folder}: {folders}");
    }
    let (code, _, talk) = told(&case.import("Old.mbox.gz", "ada"));
    assert!(code == 1 && talk.contains("gzip") && talk.contains("zcat"), "{code} {talk}");
}

#[test]
fn of_two_people_with_one_name_both_are_named_and_none_is_taken() {
    let (case, mut server) = start([]);
    case.add("kim1", "Kim Lee/Sales/Acme");
    case.add("kim2", "Kim Lee/Law/Acme");
    case.message("mail/a.eml", "a", "Text.");
    let both = |output: &Output| {
        let (code, _, talk) = told(output);
        assert!(code == 1 && talk.contains("kim1") && talk.contains("kim2"), "{code} {talk}");
    };
    both(&case.import("mail", "Kim Lee"));
    assert!(case.import("mail", "Kim Lee/Law/Acme").status.success());
    let (code, _, talk) = told(&case.import("mail", "nobody"));
    assert!(code == 1 && talk.contains("scrinium person add"), "{talk}");
    let mut client = server.client();
    client.get("/mail%2Fkim1").unwrap().expect(404);
    assert_eq!(client.get("/mail%2Fkim2").unwrap().expect(200).value()["doc_count"], 1);
    drop(client);

    // The same without a server.
    assert!(server.terminate(std::time::Duration::from_secs(60)).success());
    both(&case.import("mail", "Kim Lee"));
    assert!(case.import("mail", "kim1").status.success());
    let people = answer(&case.run(&["person", "list", "--json"], ""));
    let names: Vec<&str> =
        people.as_array().unwrap().iter().map(|person| person["short_name"].as_str().unwrap()).collect();
    assert_eq!(names, ["admin", "kim1", "kim2"]);
}

#[test]
fn people_and_groups_are_added_and_log_in() {
    let (case, server) = start([]);
    let file = case.root().join("password");
    fs::write(&file, "the first password\n").unwrap();
    let file = file.display().to_string();
    let added =
        case.run(&["person", "add", "ada", "--role", "Editors", "--password-file", &file, "--json"], "");
    assert_eq!(answer(&added)["mail_file"], "mail/ada");
    let log_in = |password: &str| {
        let login = serde_json::json!({"name": "ada", "password": password});
        server.client().json("POST", "/_session", &login).unwrap().status
    };
    assert_eq!((log_in("the first password"), log_in("another password")), (200, 401));
    assert!(case.run(&["person", "password", "ada"], "another password\n").status.success());
    assert_eq!((log_in("the first password"), log_in("another password")), (401, 200));

    let (code, _, talk) = told(&case.run(&["person", "add", "ada"], "x y z x y z\n"));
    assert!(code == 1 && talk.contains("already"), "{talk}");
    let (code, _, talk) = told(&case.run(&["person", "add", "eve"], "short\n"));
    assert!(code == 2 && talk.contains("password"), "{talk}");
    let (code, _, talk) = told(&case.run(&["person", "add", "e ve", "--no-password"], ""));
    assert!(code == 2 && talk.contains("ShortName"), "{talk}");
    let (code, _, _) = told(&case.run(&["person", "password", "ada"], ""));
    assert_eq!(code, 2, "no password is no password");

    assert!(case.run(&["group", "add", "Sales", "ada"], "").status.success());
    let (_, _, talk) = told(&case.run(&["group", "add", "sales", "ada", "bob"], ""));
    assert!(talk.contains("\"bob\""), "{talk}");
    let groups = answer(&case.run(&["group", "list", "--json"], ""));
    assert_eq!(groups[0]["members"], serde_json::json!(["ada", "bob"]));

    // Only an administrator may, no matter who knows a password.
    let as_ada = [("SCRINIUM_ADMIN_USER", "ada"), ("SCRINIUM_ADMIN_PASSWORD", "another password")];
    let (code, _, talk) =
        told(&case.run_with(&["person", "add", "mallory", "--role", "_admin", "--no-password"], "", &as_ada));
    assert!(code == 1 && !talk.is_empty(), "{code} {talk}");
}

#[test]
fn a_wrong_password_and_an_unknown_certificate_are_called_so() {
    let (case, server) = start([("SCRINIUM_HTTPS__LISTEN", "127.0.0.1:0".to_owned())]);
    case.message("mail/a.eml", "a", "Text.");
    let path = case.root().join("mail").display().to_string();
    let import = ["import", "mail", &path, "--person", "ada"];
    let wrong = [("SCRINIUM_ADMIN_PASSWORD", "not this one")];
    let (code, _, talk) = told(&case.run_with(&import, "", &wrong));
    assert!(
        code == 1 && talk.contains("does not take admin") && !talk.contains("no server answers"),
        "{talk}"
    );

    let messages = server.messages();
    let url = messages.lines().find_map(|line| line.split_once("url=https://")).unwrap().1.trim();
    let url = format!("https://{url}");
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = beside(elsewhere.path(), Settings::new(), &case.listen, &import);
    let (code, _, talk) = told(&command.args(["--url", &url]).output().unwrap());
    assert!(code == 1 && talk.contains("is not trusted") && talk.contains("--trust"), "{code} {talk}");
}

/// Of a large message, and what the importing command may need beyond what it needs for a small one: less.
const LARGE_BYTES: usize = 64 << 20;
const MEMORY_BYTES: u64 = 48 << 20;

/// Runs a command that reads nothing; gives what it says and the most memory that it had in use (proc(5), `VmHWM`).
fn run_measured(case: &Case, arguments: &[&str]) -> (Value, u64) {
    let settings = case.settings.iter().map(|(name, value)| (*name, value.as_str()));
    let mut command = beside(case.root(), settings, &case.listen, arguments);
    let output = fs::File::create(case.root().join("output")).unwrap();
    let mut child = command.stdin(Stdio::null()).stdout(output).stderr(Stdio::null()).spawn().unwrap();
    let mut peak_bytes = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
        peak_bytes = peak_bytes.max(kilobytes.unwrap_or_default() * 1024);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let report = serde_json::from_str(&fs::read_to_string(case.root().join("output")).unwrap()).unwrap();
    (report, peak_bytes)
}

#[test]
fn a_large_message_takes_no_more_memory_than_a_small_one() {
    let (case, mut server) = start([]);
    case.add("ada", "Ada Lovelace");
    let text = long_text(1 << 20).repeat(LARGE_BYTES >> 20);
    let head = "From: ann@example.org\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n";
    let body =
        format!("--b\n\nText.\n--b\nContent-Type: application/x-text; name=\"notes\"\n\n{text}\n--b--\n");
    let path = |name: &str| case.root().join(name).display().to_string();
    for name in ["one.eml", "other.eml"] {
        fs::write(path(name), format!("From: ann@example.org\nSubject: {name}\n\nText.\n")).unwrap();
    }
    fs::write(path("large.eml"), format!("{head}\n{body}")).unwrap();
    let separator = "From ann@example.org Mon Mar  2 10:00:00 2020\n";
    let length = body.len();
    fs::write(path("large.mbox"), format!("{separator}{head}Content-Length: {length}\n\n{body}")).unwrap();
    let import = |name: &str| {
        let (report, bytes) =
            run_measured(&case, &["import", "mail", &path(name), "--person", "ada", "--json"]);
        assert_eq!((&report["added"], &report["left_out"]), (&1.into(), &0.into()), "{name}: {report}");
        println!("{name}: {} MB", bytes >> 20);
        bytes
    };
    let small_bytes = import("one.eml");
    assert!(import("large.eml") < small_bytes + MEMORY_BYTES, "through the port");
    let rows = "/mail%2Fada/_all_docs?include_docs=true";
    let rows = server.client().get(rows).unwrap().expect(200).value();
    let rows = rows["rows"].as_array().unwrap();
    assert!(
        rows.iter().any(|row| row["doc"]["$FileSizes"][0] == text.len()),
        "the file is as long as it was"
    );

    assert!(server.terminate(std::time::Duration::from_secs(60)).success());
    let small_bytes = import("other.eml");
    assert!(import("large.mbox") < small_bytes + MEMORY_BYTES, "without a server");
}

#[test]
fn stored_messages_are_read_again_by_a_server_and_without_one() {
    let (case, mut server) = start([]);
    case.add("ada", "Ada Lovelace");
    case.message("mail/a.eml", "first", "Text.");
    assert!(case.import("mail", "ada").status.success());
    let mut client = server.client();
    let rows = client.get("/mail%2Fada/_all_docs?include_docs=true").unwrap().expect(200).value();
    let memo = rows["rows"][0]["doc"].clone();
    let path = format!("/mail%2Fada/{}", memo["_id"].as_str().unwrap());
    let misread = |client: &mut crate::common::Client| {
        let mut memo = client.get(&path).unwrap().expect(200).value();
        memo["Subject"] = "misread".into();
        client.json("PUT", &path, &memo).unwrap().expect(201);
    };
    misread(&mut client);
    let output = case.run(&["mail", "reread", "Ada Lovelace"], "");
    assert!(output.status.success(), "{:?}", told(&output));
    let began = std::time::Instant::now();
    while client.get(&path).unwrap().expect(200).value()["Subject"] != "first" {
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "{}", server.messages());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    misread(&mut client);
    assert!(server.terminate(std::time::Duration::from_secs(60)).success());
    for (arguments, changed) in
        [(["mail", "reread", "--all", "--json"], 1), (["mail", "reread", "ada", "--json"], 0)]
    {
        let output = case.run(&arguments, "");
        let report: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{:?}", told(&output)));
        let expected =
            serde_json::json!([{"database": "mail/ada", "examined": 1, "changed": changed, "left": 0}]);
        assert_eq!(report["mail_files"], expected);
    }
    let (code, _, talk) = told(&case.run(&["mail", "reread", "nobody"], ""));
    assert!(code == 1 && talk.contains("nobody"), "{code} {talk}");
    assert_eq!(told(&case.run(&["mail", "reread"], "")).0, 2);
}
