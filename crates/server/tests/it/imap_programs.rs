//! Programs that keep a copy of a mail database, or fetch from it, as people have them.
//!
//! `scripts/mail-clients` brings them; what is not there is left out, and the test says so. `SCRINIUM_MESSAGES` is how many messages
//! are kept in two places, by a program that takes hours for more at most 10,000.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use scrinium_fault::{skip, wait_until};

use crate::imap::{IMAP, Talker};
use crate::mail_ports::{MailServer, SECRET};
use crate::mail_programs::{clients, run};

/// However loaded the machine is.
const WITHIN: Duration = Duration::from_secs(1800);

const FOLDERS: [&str; 3] = ["INBOX", "Gr&APw-n/2026", "Work"];

/// Tests of IMAPClient's that are not passed, and why.
const OTHERWISE: [(&str, &str); 8] = [
    (
        "test_list_folders",
        "a backslash stands between the levels of a folder, so that none has it in its name",
    ),
    ("test_status", "no message is recent (RFC 9051 has no such flag)"),
    ("test_subscriptions", "who has not said to what they subscribe is subscribed to all"),
    ("test_small_connection_timeout_fail", "a connection within this machine is made within a millisecond"),
    ("test_small_read_timeout_fail", "as the one before"),
    ("test_move", "the library of Python that it uses has no such command"),
    ("test_getacl", "it reads a setting of its own in a way that its settings do not have"),
    ("test_fetch", "it compares objects of its own that are never the same"),
];

/// A server that people read from, and programs of the cache.
struct World {
    mail: MailServer,
    folder: PathBuf,
}

/// How many messages a program that takes this many at most keeps in two places.
fn messages(most: usize) -> usize {
    let asked = std::env::var("SCRINIUM_MESSAGES").ok().and_then(|count| count.parse().ok());
    asked.unwrap_or(150).min(most)
}

impl World {
    fn new(folder: &Path) -> Self {
        let tls = [("SCRINIUM_IMAP__TLS_LISTEN", "127.0.0.1:0")];
        let mail = MailServer::start_with(folder, &[&IMAP[..], &tls].concat());
        Self { mail, folder: folder.to_owned() }
    }

    fn talker(&self) -> Talker {
        Talker::logged_in(&self.mail, "ada", SECRET)
    }

    /// How many messages are in a mailbox.
    fn count(&self, mailbox: &str) -> usize {
        let told = self.talker().answers(&format!("STATUS {mailbox} (MESSAGES)")).join(" ");
        let count = told.split("(MESSAGES ").nth(1).and_then(|rest| rest.split(')').next());
        count.and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// Subjects, flags and UIDs of all mailboxes.
    fn far(&self) -> BTreeMap<String, Vec<String>> {
        let mut talker = self.talker();
        let of = |talker: &mut Talker, mailbox: &str| {
            talker.ask(&format!("SELECT {mailbox}"));
            let fetched = talker.ask("UID FETCH 1:* (FLAGS BODY.PEEK[HEADER.FIELDS (SUBJECT)])");
            fetched.into_iter().filter(|line| !line.contains(" OK ") && line != ")").collect()
        };
        FOLDERS.iter().map(|mailbox| ((*mailbox).to_owned(), of(&mut talker, mailbox))).collect()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn put(&self, count: usize) {
        let mut talker = self.talker();
        for number in 0..count {
            let flags = if number % 5 == 0 { "\\Flagged" } else { "" };
            let text = message(number).replace('\n', "\r\n");
            talker.ask(&format!("APPEND INBOX ({flags}) {{{}+}}\r\n{text}", text.len()));
        }
    }
}

/// A program that `scripts/mail-clients` has unpacked, with its libraries.
fn program(name: &str) -> Option<(PathBuf, Vec<(&'static str, String)>)> {
    let root = clients().join("imap");
    let path = root.join("usr/bin").join(name);
    if !path.exists() {
        skip(format!("there is no {name}; scripts/mail-clients brings it"));
        return None;
    }
    let shown = root.display();
    let python = format!("{shown}/usr/lib/python3/dist-packages:{shown}/usr/share/offlineimap3");
    let libraries = format!("{shown}/usr/lib/x86_64-linux-gnu");
    let environment = vec![("LD_LIBRARY_PATH", libraries), ("PYTHONPATH", python)];
    let python = fs::read(&path).is_ok_and(|bytes| bytes.starts_with(b"#!/usr/bin/python3"));
    let mut tried = Command::new(if python { Path::new("python3") } else { &path });
    if python {
        tried.arg(&path);
    }
    let tried = tried.args(["--version"]).envs(environment.clone()).stdin(Stdio::null()).output();
    // Some say their version by another word; what matters is that they begin.
    if tried.is_ok_and(|tried| tried.status.code() != Some(127)) {
        return Some((path, environment));
    }
    skip(format!("{name} cannot be run here"));
    None
}

fn message(number: usize) -> String {
    format!(
        "From: a{number}@far.example\nTo: ada@acme.example\nSubject: number {number}.\nMessage-ID: <{number}@far.example>\n\
         Date: Mon, 1 Jan 2024 00:00:00 +0000\n\n{}",
        "a line of it\n".repeat(number % 50)
    )
}

/// Messages in folders of files.
fn fill(root: &Path, count: usize) {
    // What stands above another one is a folder, too.
    for folder in FOLDERS.iter().chain(&["Gr&APw-n"]) {
        for part in ["cur", "new", "tmp"] {
            fs::create_dir_all(root.join(folder).join(part)).unwrap();
        }
    }
    for number in 0..count {
        let folder = root.join(FOLDERS[number % 3]);
        let flags: String = [("F", 5), ("R", 7), ("S", 2)]
            .iter()
            .filter(|(_, every)| number % every == 0)
            .map(|(flag, _)| *flag)
            .collect();
        let name = format!("{}.{number}.host:2,{flags}", 1_700_000_000 + number);
        fs::write(folder.join("cur").join(name), message(number)).unwrap();
    }
}

/// Subjects of the messages in folders of files, with their flags: folder by folder, sorted.
fn near(root: &Path) -> BTreeMap<String, Vec<String>> {
    let of = |folder: &str| {
        let mut found = Vec::new();
        for part in ["cur", "new"] {
            let Ok(files) = fs::read_dir(root.join(folder).join(part)) else { continue };
            for path in files.map(|file| file.unwrap().path()) {
                let text = fs::read_to_string(&path).unwrap();
                let subject = text.lines().find(|line| line.starts_with("Subject")).unwrap_or_default();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                let flags = name.split_once(":2,").map_or("", |(_, flags)| flags).to_owned();
                let body = text.split_once("\n\n").map_or("", |(_, body)| body).len();
                found.push(format!("{subject} {flags} {body}"));
            }
        }
        found.sort();
        found
    };
    FOLDERS.iter().map(|folder| ((*folder).to_owned(), of(folder))).collect()
}

/// Runs a program until it has got this far, and kills it then.
fn killed_in_the_middle(
    path: &Path,
    prepare: impl FnOnce(&mut Command),
    mut has_got_far: impl FnMut() -> bool,
) {
    let mut command = Command::new(path);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    prepare(&mut command);
    let mut child = command.spawn().unwrap();
    // One that was quick has ended by itself.
    wait_until("the program gets far", WITHIN, || has_got_far() || child.try_wait().unwrap().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
}

fn once_each(found: &BTreeMap<String, Vec<String>>, count: usize) {
    let all: Vec<&String> = found.values().flatten().filter(|line| line.contains("Subject: ")).collect();
    let subjects: BTreeSet<&str> =
        all.iter().filter_map(|one| one.split("Subject: ").nth(1)?.split('.').next()).collect();
    assert_eq!((all.len(), subjects.len()), (count, count), "{found:?}");
}

fn mbsync_settings(world: &World, name: &str) -> PathBuf {
    let (port, shown) = (world.mail.port("imaps"), world.folder.display());
    let certificate = world.mail.certificate.display();
    world.write(
        name,
        &format!(
            "IMAPAccount far\nHost localhost\nPort {port}\nUser ada\nPass \"{SECRET}\"\nSSLType IMAPS\nCertificateFile {certificate}\n\n\
             IMAPStore far\nAccount far\n\nMaildirStore near\nPath {shown}/{name}.mail/\nInbox {shown}/{name}.mail/INBOX\n\
             SubFolders Verbatim\n\nChannel both\nFar :far:\nNear :near:\nPatterns INBOX Gr* Work\nCreate Both\nRemove Both\n\
             Expunge Both\nCopyArrivalDate yes\nSyncState {shown}/{name}.state/\n"
        ),
    )
}

#[test]
fn mbsync_keeps_two_places_the_same_and_a_kill_in_the_middle_leaves_no_duplicate() {
    let Some((path, environment)) = program("mbsync") else { return };
    let (folder, count) = (tempfile::tempdir().unwrap(), messages(100_000));
    let world = World::new(folder.path());
    let [first, second] = ["first", "second"].map(|name| {
        fs::create_dir_all(folder.path().join(format!("{name}.state"))).unwrap();
        fs::create_dir_all(folder.path().join(format!("{name}.mail"))).unwrap();
        (mbsync_settings(&world, name), folder.path().join(format!("{name}.mail")))
    });
    fill(&first.1, count);
    let with = |settings: &Path| {
        let (settings, environment) = (settings.to_owned(), environment.clone());
        move |command: &mut Command| {
            command.envs(environment).arg("-c").arg(settings).args(["-a", "-q"]);
        }
    };
    let wanted = near(&first.1);
    killed_in_the_middle(&path, with(&first.0), || world.count("INBOX") > count / 6);
    run(&path, with(&first.0)).unwrap();
    once_each(&world.far(), count);
    once_each(&near(&first.1), count);
    let (there, here) = (world.far(), near(&first.1));
    run(&path, with(&first.0)).unwrap();
    assert!(there == world.far() && here == near(&first.1), "a second run has changed something");
    let is_far = || near(&second.1).values().map(Vec::len).sum::<usize>() > count / 4;
    killed_in_the_middle(&path, with(&second.0), is_far);
    run(&path, with(&second.0)).unwrap();
    assert_eq!(near(&second.1), wanted);
    // What is deleted and flagged here and there comes to the other.
    let mut talker = world.talker();
    talker.ask("SELECT Work");
    talker.ask("STORE 1 +FLAGS.SILENT (\\Deleted)");
    talker.ask("STORE 2 FLAGS (\\Flagged)");
    talker.ask("EXPUNGE");
    let gone = fs::read_dir(second.1.join("INBOX/cur")).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(gone).unwrap();
    for _ in 0..2 {
        run(&path, with(&second.0)).unwrap();
        run(&path, with(&first.0)).unwrap();
    }
    assert_eq!(near(&first.1), near(&second.1));
    once_each(&world.far(), count - 2);
    once_each(&near(&first.1), count - 2);
}

#[test]
fn offlineimap_keeps_two_places_the_same() {
    let Some((path, environment)) = program("offlineimap") else { return };
    let (folder, count) = (tempfile::tempdir().unwrap(), messages(10_000));
    let world = World::new(folder.path());
    let settings = |name: &str| {
        let (port, shown) = (world.mail.port("imaps"), folder.path().display());
        let certificate = world.mail.certificate.display();
        let text = format!(
            "[general]\naccounts = a\nmetadata = {shown}/{name}.state\nui = quiet\n[Account a]\nlocalrepository = near\n\
             remoterepository = far\n[Repository near]\ntype = Maildir\nlocalfolders = {shown}/{name}.mail\nsep = /\n\
             [Repository far]\ntype = IMAP\nremotehost = localhost\nremoteport = {port}\nremoteuser = ada\n\
             remotepass = {SECRET}\nssl = yes\nsslcacertfile = {certificate}\n"
        );
        (world.write(name, &text), folder.path().join(format!("{name}.mail")))
    };
    let [first, second] = ["first", "second"].map(settings);
    let with = |settings: &Path| {
        let (settings, environment) = (settings.to_owned(), environment.clone());
        let path = path.clone();
        move |command: &mut Command| {
            command.envs(environment).arg(path).args(["-o", "-c"]).arg(settings);
        }
    };
    fill(&first.1, count);
    let python = Path::new("python3");
    let wanted = near(&first.1);
    run(python, with(&first.0)).unwrap();
    once_each(&world.far(), count);
    let (there, here) = (world.far(), near(&first.1));
    run(python, with(&first.0)).unwrap();
    assert!(there == world.far() && here == near(&first.1), "a second run has changed something");
    let is_far = || near(&second.1).values().map(Vec::len).sum::<usize>() > count / 4;
    killed_in_the_middle(python, with(&second.0), is_far);
    run(python, with(&second.0)).unwrap();
    assert_eq!(near(&second.1), wanted);
    let mut talker = world.talker();
    talker.ask("SELECT Work");
    talker.ask("STORE 1 +FLAGS.SILENT (\\Deleted)");
    talker.ask("EXPUNGE");
    run(python, with(&first.0)).unwrap();
    run(python, with(&second.0)).unwrap();
    once_each(&near(&first.1), count - 1);
    assert_eq!(near(&first.1), near(&second.1));
}

#[test]
fn fetchmail_and_getmail_fetch_what_they_have_not_yet() {
    const COUNT: usize = 12;
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.put(COUNT);
    let (port, shown, certificate) =
        (world.mail.port("imaps"), folder.path().display(), world.mail.certificate.display());
    let fetched = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    let subjects = |name: &str| fetched(name).matches("Subject: number").count();
    if let Some((path, environment)) = program("fetchmail") {
        let text = format!(
            "poll localhost protocol imap service {port} user ada password \"{SECRET}\" ssl sslcertck sslcertfile {certificate} \
             fetchall mda \"cat >> {shown}/fetched\"\n"
        );
        let settings = world.write("fetchmailrc", &text);
        run(&path, |command| {
            command.envs(environment).env("HOME", folder.path()).arg("-f").arg(settings);
        })
        .unwrap();
        assert_eq!(subjects("fetched"), COUNT);
        assert_eq!(world.count("INBOX"), 0, "it deletes what it has");
        world.put(COUNT);
    }
    if let Some((path, environment)) = program("getmail") {
        let text = format!(
            "[retriever]\ntype = SimpleIMAPSSLRetriever\nserver = localhost\nport = {port}\nusername = ada\npassword = {SECRET}\n\
             ca_certs = {certificate}\n[destination]\ntype = MDA_external\npath = /usr/bin/tee\n\
             arguments = (\"-a\", \"{shown}/got\")\nallow_root_commands = true\n[options]\nread_all = false\nverbose = 0\n"
        );
        world.write("getmailrc", &text);
        for _ in 0..2 {
            run(Path::new("python3"), |command| {
                command.envs(environment.clone()).arg(&path).arg("--rcfile=getmailrc");
                command.arg(format!("--getmaildir={shown}"));
            })
            .unwrap();
        }
        assert_eq!(subjects("got"), COUNT);
    }
}

#[test]
fn neomutt_learns_what_has_changed_since_it_was_last_there() {
    let Some((path, environment)) = program("neomutt") else { return };
    if !Path::new("/usr/bin/script").exists() {
        return skip("there is no script, which gives neomutt a terminal");
    }
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.put(20);
    let (port, shown) = (world.mail.port("imap"), folder.path().display());
    let text = format!(
        "set folder = imap://ada@127.0.0.1:{port}/\nset spoolfile = +INBOX\nset imap_user = ada\nset imap_pass = \"{SECRET}\"\n\
         set ssl_starttls = no\nset ssl_force_tls = no\nset imap_qresync = yes\nset header_cache = {shown}/cache\n\
         set imap_authenticators = login\nset delete = yes\nset quit = yes\nset move = no\nset wait_key = no\nset tmpdir = {shown}\n"
    );
    let settings = world.write("muttrc", &text);
    fs::create_dir(folder.path().join("cache")).unwrap();
    let keys = |keys: &str| {
        let line = format!("'{}' -n -F '{}' -e 'push \"{keys}\"'", path.display(), settings.display());
        run(Path::new("/usr/bin/script"), |command| {
            command.envs(environment.clone()).env("TERM", "xterm").env("HOME", folder.path());
            command.args(["-qec", &line, "/dev/null"]);
        })
        .unwrap();
    };
    keys("<quit>");
    let mut talker = world.talker();
    talker.ask("SELECT INBOX");
    talker.ask("STORE 2 +FLAGS.SILENT (\\Flagged)");
    talker.ask("STORE 1 +FLAGS.SILENT (\\Deleted)");
    talker.ask("EXPUNGE");
    // Of the four that were flagged one is gone, and another one is flagged.
    keys("<delete-pattern>~F<enter><sync-mailbox><quit>");
    assert_eq!(world.count("INBOX"), 20 - 1 - 4);
}

#[test]
fn the_tests_of_imapclient_are_passed_but_those_with_a_reason() {
    let root = clients().join("imapclient");
    if !root.join("livetest.py").exists() {
        return skip("there is no IMAPClient; scripts/mail-clients brings it");
    }
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    let port = world.mail.port("imap");
    let text = format!(
        "[DEFAULT]\nhost = 127.0.0.1\nport = {port}\nusername = ada\npassword = {SECRET}\nssl = false\n"
    );
    let settings = world.write("livetest", &text);
    let output = Command::new("timeout")
        .args(["120", "python3", "livetest.py"])
        .arg(settings)
        .current_dir(&root)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let failed: BTreeSet<&str> = told
        .lines()
        .filter_map(|line| line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: ")))
        .filter_map(|line| line.split(' ').next())
        .collect();
    let expected: BTreeSet<&str> = OTHERWISE.iter().map(|(name, _)| *name).collect();
    assert!(told.contains("Ran 59 tests"), "{told}");
    assert!(failed.is_subset(&expected), "{failed:?}\n{told}");
}

/// What a library's program says that ends with `done`.
fn is_done(program: &Path, prepare: impl FnOnce(&mut Command)) {
    let told = run(program, prepare).unwrap();
    assert!(told.ends_with("done\n"), "{told}");
}

fn brought(name: &str) -> Option<PathBuf> {
    let path = clients().join(name);
    if path.exists() {
        return Some(path);
    }
    skip(format!("there is no {name}; scripts/mail-clients brings it"));
    None
}

#[test]
fn libraries_of_other_languages_get_what_they_ask_for() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    let port = world.mail.port("imap").to_string();
    if let Some(wheel) = brought("aioimaplib/aioimaplib.whl") {
        is_done(Path::new("python3"), |command| {
            command.args(["-c", include_str!("mail_programs/aioimaplib.txt")]).arg(wheel);
            command.args([port.as_str(), SECRET]);
        });
    }
    if let Some(modules) = brought("imapflow") {
        let script = world.write("imapflow.mjs", include_str!("mail_programs/imapflow.txt"));
        is_done(Path::new("node"), |command| {
            command.arg(script).arg(modules).args([port.as_str(), SECRET]);
        });
    }
    // Of the text `mail_programs/go_imap.txt` as it was when the script built it.
    if let Some(probe) = brought("go-imap-1/probe") {
        is_done(&probe, |command| {
            command.args([format!("127.0.0.1:{port}").as_str(), SECRET]);
        });
    }
    skip("async-imap of crates.io would have to be compiled, which takes minutes");
}

#[test]
fn imapfilter_files_what_its_rules_say() {
    let Some(root) = brought("imapfilter") else { return };
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.put(12);
    let port = world.mail.port("imap");
    let text = format!(
        "options.create = true\noptions.certificates = false\noptions.starttls = false\noptions.timeout = 60\n\
         ada = IMAP {{ server = '127.0.0.1', port = {port}, username = 'ada', password = [[{SECRET}]] }}\n\
         flagged = ada.INBOX:is_flagged()\nflagged:move_messages(ada['Flagged/Ones'])\n\
         some = ada.INBOX:contain_subject('number 7.') + ada.INBOX:match_subject('number 8.')\nsome:mark_seen()\n\
         some:copy_messages(ada['Archive'])\nada.INBOX:contain_from('a11@far.example'):delete_messages()\n"
    );
    let settings = world.write("imapfilter.lua", &text);
    let libraries = format!("{0}/usr/lib/x86_64-linux-gnu:{0}/lib/x86_64-linux-gnu", root.display());
    let ran = run(&root.join("usr/bin/imapfilter"), |command| {
        command.env("LD_LIBRARY_PATH", libraries).env("HOME", folder.path());
        command.current_dir(root.join("usr/share")).arg("-c").arg(settings);
    });
    if let Err(reason) = ran {
        return skip(reason);
    }
    assert_eq!((world.count("Flagged/Ones"), world.count("INBOX"), world.count("Archive")), (3, 8, 2));
    let mut talker = world.talker();
    talker.ask("SELECT INBOX");
    assert_eq!(talker.ask("SEARCH SEEN SUBJECT number")[0].split(' ').count(), 4);
}
