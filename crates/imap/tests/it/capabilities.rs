//! What is hidden is not announced, and its commands are unknown.

use scrinium_imap::{Capability, CapabilitySet, ServerOptions, SystemFlags};

use crate::client::Connection;
use crate::world::World;

/// A command for each capability that has one, with the mailbox selected.
const COMMANDS: [(Capability, &str); 38] = [
    (Capability::Enable, "ENABLE CONDSTORE"),
    (Capability::Id, "ID NIL"),
    (Capability::Idle, "IDLE"),
    (Capability::Namespace, "NAMESPACE"),
    (Capability::UidPlus, "UID EXPUNGE 1"),
    (Capability::Unselect, "UNSELECT"),
    (Capability::ListExtended, "LIST (SUBSCRIBED) \"\" *"),
    (Capability::ListStatus, "LIST \"\" * RETURN (STATUS (MESSAGES))"),
    (Capability::ListMyRights, "LIST \"\" * RETURN (MYRIGHTS)"),
    (Capability::ListMetadata, "LIST \"\" * RETURN (METADATA (/shared/comment))"),
    (Capability::SpecialUse, "LIST (SPECIAL-USE) \"\" *"),
    (Capability::CreateSpecialUse, "CREATE x (USE (\\Junk))"),
    (Capability::Move, "MOVE 1 Trash"),
    (Capability::Condstore, "FETCH 1 MODSEQ"),
    (Capability::Condstore, "STORE 1 (UNCHANGEDSINCE 1) FLAGS ()"),
    (Capability::Condstore, "STATUS INBOX (HIGHESTMODSEQ)"),
    (Capability::Condstore, "SEARCH MODSEQ 1"),
    (Capability::Qresync, "SELECT INBOX (QRESYNC (1 1))"),
    (Capability::Esearch, "SEARCH RETURN (COUNT) ALL"),
    (Capability::SearchRes, "SEARCH RETURN (SAVE) ALL"),
    (Capability::Within, "SEARCH YOUNGER 10"),
    (Capability::Fuzzy, "SEARCH FUZZY SUBJECT x"),
    (Capability::Sort, "SORT (SIZE) UTF-8 ALL"),
    (Capability::SortDisplay, "SORT (DISPLAYFROM) UTF-8 ALL"),
    (Capability::Esort, "SORT RETURN (COUNT) (SIZE) UTF-8 ALL"),
    (Capability::ThreadReferences, "THREAD REFERENCES UTF-8 ALL"),
    (Capability::ThreadOrderedSubject, "THREAD ORDEREDSUBJECT UTF-8 ALL"),
    (Capability::Binary, "FETCH 1 BINARY.SIZE[1]"),
    (Capability::Notify, "NOTIFY NONE"),
    (Capability::Quota, "GETQUOTA \"\""),
    (Capability::Acl, "MYRIGHTS INBOX"),
    (Capability::Metadata, "GETMETADATA \"\" /shared/comment"),
    (Capability::ObjectId, "FETCH 1 EMAILID"),
    (Capability::SaveDate, "FETCH 1 SAVEDATE"),
    (Capability::Preview, "FETCH 1 PREVIEW"),
    (Capability::StatusSize, "STATUS INBOX (SIZE)"),
    (Capability::Partial, "UID FETCH 1:* (UID) (PARTIAL 1:1)"),
    (Capability::UidBatches, "UIDBATCHES 500"),
];

fn client(world: &mut World, hidden: CapabilitySet) -> Connection {
    let mut options = ServerOptions::new("imap.test");
    options.hidden = hidden;
    let mut client = Connection::with(options, 0);
    client.say(world, "");
    client.say(world, "x LOGIN ada secret\r\nx ENABLE QRESYNC\r\nx SELECT INBOX\r\n");
    client
}

fn world() -> World {
    let mut world = World::new();
    world.add("INBOX", b"Subject: x\r\n\r\nhi\r\n", SystemFlags::default());
    world
}

#[test]
fn a_hidden_capability_is_neither_announced_nor_there() {
    for (capability, command) in COMMANDS {
        let mut open = world();
        let mut with = client(&mut open, CapabilitySet::NONE);
        let answer = with.say(&mut open, &format!("a {command}\r\nDONE\r\n"));
        assert!(answer.contains("a OK"), "{command}: {answer}");
        assert!(announced(&mut with, &mut open, capability), "{capability:?}");

        let mut closed = world();
        let mut without = client(&mut closed, CapabilitySet::NONE.with(capability));
        let answer = without.say(&mut closed, &format!("a {command}\r\n"));
        assert!(answer.contains("a BAD"), "{command}: {answer}");
        assert!(!announced(&mut without, &mut closed, capability), "{capability:?}");
    }
}

fn announced(client: &mut Connection, world: &mut World, capability: Capability) -> bool {
    let answer = client.say(world, "c CAPABILITY\r\n");
    let line = answer.lines().find(|line| line.starts_with("* CAPABILITY")).unwrap().to_owned();
    line.split(' ').any(|word| word == capability.name())
}

#[test]
fn what_needs_a_hidden_one_goes_with_it() {
    let shown = CapabilitySet::NONE.with(Capability::Condstore).shown();
    assert!(!shown.has(Capability::Qresync) && shown.has(Capability::Idle));
    let shown = CapabilitySet::NONE.with(Capability::Move).shown();
    assert!(!shown.has(Capability::Imap4Rev2), "it is a part of IMAP4rev2");
    assert!(!CapabilitySet::hidden_by_default().shown().has(Capability::UidOnly));
}

#[test]
fn a_client_and_a_person_hide_what_they_do_not_get_along_with() {
    let mut world = world();
    world.hides_from = vec![("Bad Client".to_owned(), CapabilitySet::NONE.with(Capability::Notify))];
    world.hidden = CapabilitySet::NONE.with(Capability::Quota);
    let mut client = client(&mut world, CapabilitySet::NONE);
    assert!(announced(&mut client, &mut world, Capability::Notify));
    assert!(!announced(&mut client, &mut world, Capability::Quota));
    client.say(&mut world, "a ID (\"name\" \"Bad Client\")\r\n");
    assert!(!announced(&mut client, &mut world, Capability::Notify));
    assert!(client.say(&mut world, "a NOTIFY NONE\r\n").contains("a BAD"));
}

#[test]
fn every_name_is_read_back() {
    for (capability, name) in Capability::ALL {
        assert_eq!(Capability::parse(&name.to_lowercase()), Some(capability));
    }
}
