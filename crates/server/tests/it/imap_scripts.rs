//! Dialogues of IMAP as Apache James's protocol tests have them, played by `mail_programs/imap_scripts.py`.
//!
//! `scripts/mail-clients` brings the scripts; without them, or without Python, the test says so and is left out. Each script that is
//! answered otherwise stands in [`OTHERWISE`] with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::PASSWORD;
use crate::imap::IMAP;
use crate::mail_ports::MailServer;
use crate::mail_programs::cached;

const RIGHTS: &str = "rights go by levels, and hold for a whole database and not for one mailbox";
const UNREADABLE: &str = "a line that cannot be read is refused, and does not end the connection";
const NAMESPACES: &str = "there are other namespaces";
const SUBSCRIBED: &str = "who has not said to what they subscribe is subscribed to all";
const NEWS: &str =
    "what is new is told with commands about messages and with NOOP, not with CREATE and FETCH by numbers";
const TEXTS: &str = "BODY looks for texts as people read them, not for headers of parts";
const NOTHING: &str = "a FETCH of nothing is no command";
const REFUSED: &str = "who has not logged in may send few commands that are refused";
const DELETED: &str = "a copy is not marked to be expunged";

/// Scripts that are not passed, and why; `ACL` stands for all whose names begin so.
const OTHERWISE: [(&str, &str); 53] = [
    ("ACL", RIGHTS),
    ("AuthenticatePlain", "it names somebody to act as and a password, and nobody who has it"),
    ("BadTag", UNREADABLE),
    ("BogusCommand", UNREADABLE),
    ("IllegalTag", UNREADABLE),
    ("JustTag", UNREADABLE),
    ("NoCommand", UNREADABLE),
    ("NoTag", UNREADABLE),
    ("ConcurrentExistsResponse", NEWS),
    ("ConcurrentFetchResponse", NEWS),
    ("ConcurrentExpungeUIDToMSNMapping", "flags of a message that is gone are not told"),
    ("CondstoreDisable", "CONDSTORE is always offered"),
    ("Copy", DELETED),
    ("Move", DELETED),
    ("Create", "a point is no separator and may be in names"),
    ("CreateErrorWithLongName", "the name is not too long for a folder"),
    ("FetchInternalDate", "a date keeps the zone that it was given with"),
    ("FetchMultipartBodyStructure", NOTHING),
    ("FetchSimpleBodyStructure", NOTHING),
    ("FetchStructureComplex", NOTHING),
    ("FetchNILSaveDate", "each message has a date on which it was put there"),
    ("FetchRFC822Mixed", "it wants more bytes than it has appended"),
    ("FetchSingleMessage", "a word for several items stands alone (RFC 9051, section 6.4.5)"),
    ("Id", "the fields of a client are pairs without commas (RFC 2971, section 3.1)"),
    ("InboxDeleteMessages", "it is a part of other scripts, and says no tag"),
    ("ListNamespace", NAMESPACES),
    ("ListWithSharedMailbox", NAMESPACES),
    ("Namespace", NAMESPACES),
    ("SharedMailbox", NAMESPACES),
    ("Quota", NAMESPACES),
    ("ListPercentWildcard", "a mailbox above another one is not made with it"),
    ("ListSpecialChar", "it wants mailboxes that nobody has made"),
    ("ListSubscribed", SUBSCRIBED),
    ("Subscribe", SUBSCRIBED),
    ("Login", REFUSED),
    ("ValidAuthenticated", REFUSED),
    ("ValidSelected", REFUSED),
    (
        "LoginThreeStrikes",
        "wrong passwords make the next ones wait, and do not end the connection at the third",
    ),
    ("Metadata", "a value of two lines is no quoted text (RFC 9051, section 9), and comes as a literal"),
    ("MetadataWithBinaryData", "as the one before"),
    ("MetadataWithLimitation", "values may be longer, and entries more, than it wants"),
    ("MoveNoMSG", "a set that names no message is no error (RFC 9051, section 6.4.8)"),
    ("Uid", "a set that names no message is no error"),
    ("PeekMultipartMixedComplex", "its literal is not written as an expression"),
    ("Recent", "no message is recent (RFC 9051 has no such flag)"),
    ("Rights", RIGHTS),
    ("SearchAtoms", TEXTS),
    ("SearchCombinations", TEXTS),
    ("UidSearchAtoms", TEXTS),
    ("UidSearchCombinations", TEXTS),
    ("SearchOptionSave", "a result that is saved is not told (RFC 5182, section 2.1)"),
    ("Status", "each person has some mailboxes"),
    ("XList", "each person has some mailboxes"),
];

/// What the scripts are called, wherever below the folder they lie, in the order of their names.
fn names_in(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            names.extend(names_in(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "test") {
            names.insert(entry.file_stem().unwrap().to_string_lossy().into_owned());
        }
    }
    names
}

#[test]
fn scripts_of_james_are_answered_as_they_want_but_for_those_with_a_reason() {
    let folder = cached("mail-clients-1").join("james-imap");
    if !folder.exists() {
        return scrinium_fault::skip("there are no scripts of James; scripts/mail-clients brings them");
    }
    let names = names_in(&folder);
    assert_eq!(names.len(), 152);
    // Each has a person of its own, whose password takes long to check: all of them are for make torture.
    let step = if std::env::var_os("SCRINIUM_TIMES").is_some() { 1 } else { 5 };
    let names: Vec<String> = names.into_iter().step_by(step).collect();
    let scratch = tempfile::tempdir().unwrap();
    let mail = MailServer::start_with(scratch.path(), &IMAP);
    let output = Command::new("python3")
        .args(["-c", include_str!("mail_programs/imap_scripts.py")])
        .arg(&folder)
        .args([mail.server.address().to_string().as_str(), PASSWORD, &mail.port("imap").to_string()])
        .args(&names)
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else { return scrinium_fault::skip("there is no python3") };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let played: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('\t')).collect();
    assert_eq!(played.len(), names.len(), "{played:?}");
    let reason = |name: &str| {
        OTHERWISE.iter().find(|(known, _)| *known == name || *known == "ACL" && name.starts_with("ACL"))
    };
    for (name, failure) in &played {
        assert_eq!(failure.is_empty(), reason(name).is_none(), "{name}: {failure}");
    }
}
