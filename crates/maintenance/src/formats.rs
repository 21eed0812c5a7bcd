//! Holds the bytes of every record of this crate to a golden file, so that what one version wrote the next
//! one reads. `UPDATE=1` rewrites the file, which only a new format version may do.

use scrinium_contents::hex;
use scrinium_contents::object::ObjectState;
use scrinium_contents::record::{ObjectPlace, Placement, Record};
use scrinium_database::folder::record::{
    ANSWERED, DELETED, FolderKind, FolderRecord, FolderState, Mark, MarkChange, Member, MemberChange,
    MemberChangeKind, MemberFacts, Membership, ReadCounts, SpecialUse, decode_count, encode_count,
};
use scrinium_database::head::{ChangeRecord, Head};
use scrinium_database::header::{Header, UNCOUNTED};
use scrinium_database::history::EarlierBody;
use scrinium_database::keys;
use scrinium_database::leaf::{Leaf, LeafParts, StoredAttachment};
use scrinium_document::{FieldsBuf, Revision, RevisionTree};
use scrinium_store::Family;

use crate::fixup::aside;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/records-1.txt");

fn revision(text: &str) -> Revision {
    Revision::parse(text).unwrap()
}

fn header() -> Header {
    Header {
        change_number: 300,
        document_count: 200,
        deleted_count: 7,
        external_bytes: 1 << 40,
        revision_limit: 1000,
        design_count: 3,
        folder_count: 8,
        last_folder: 9,
        last_uid_validity: 1_793_000_000,
        membership_count: 150,
        mark_count: 1 << 20,
        stored_bytes: 1 << 30,
        ..Header::new("mail/ada", [0x11; 16], 1_793_000_000_000)
    }
}

fn folder() -> FolderRecord {
    FolderRecord {
        number: 9,
        name: "Projects\\Ä".to_owned(),
        uid_validity: 1_793_000_000,
        columns: "[]".to_owned(),
        kind: FolderKind::Mail,
        special_use: Some(SpecialUse::Sent),
        validity_epoch: 2,
        properties: b"{}".to_vec(),
        keep_days: None,
    }
}

const FOLDER_STATE: FolderState = FolderState {
    next_uid: 300,
    total: 200,
    change_number: 301,
    deleted: 3,
    bytes: 1 << 30,
    deleted_bytes: 70_000,
    presented: 199,
    flags_change: 300,
    announced_uid: 298,
    left_to: 128,
};
const SET_ASIDE: (Family, &[u8], &[u8]) = (Family::Scan, b"key", b"value");
const MEMBERSHIP: Membership = Membership { uid: 299, change_number: 301, added_change: 290, flags: DELETED };
const MARK: Mark = Mark { read: true, change_number: 302 };

fn member() -> Member {
    Member {
        change_number: 301,
        added_ms: 1_793_000_000_000,
        added_change: 290,
        flags: DELETED | ANSWERED,
        keywords: vec![1, 300],
        facts: MemberFacts {
            bytes: 70_000,
            internal_ms: -86_400_000,
            zone_minutes: -330,
            content: Some([0x33; 32]),
        },
        id: "memo ä".to_owned(),
    }
}

fn member_change() -> MemberChange {
    MemberChange { uid: 299, kind: MemberChangeKind::Left, id: "memo ä".to_owned() }
}

fn mark_change() -> MarkChange {
    MarkChange { read: true, id: "memo ä".to_owned() }
}

fn counts() -> ReadCounts {
    ReadCounts { database: 300, folders: [(1, 2), (300, 4)].into() }
}

fn head() -> Head {
    let mut tree = RevisionTree::new();
    tree.merge(&[revision("2-00112233445566778899aabbccddeeff"), revision("1-aa")], false).unwrap();
    tree.merge(&[revision("2-bb"), revision("1-aa")], true).unwrap();
    let contents = vec![[0x22; 32]];
    Head {
        change_number: 9,
        created_ms: 5,
        external_bytes: 700,
        contents,
        tree,
        stored_bytes: 66_000,
        ..Head::default()
    }
}

fn change() -> ChangeRecord {
    ChangeRecord { id: "memo ä".to_owned(), winner: revision("2-bb"), deleted: true, several_leaves: true }
}

/// Earlier bodies are listed by a head alone that has some.
fn head_with_history() -> Head {
    let body = EarlierBody {
        revision: revision("1-aa"),
        superseded_ms: 6,
        stored_bytes: 300,
        contents: vec![[0x22; 32], [0x33; 32]],
    };
    Head { earlier: vec![body], ..head() }
}

fn leaf() -> Vec<u8> {
    leaf_with(None)
}

/// Of an attachment that is stored as gzip, a leaf says what that stands for.
fn leaf_with(decoded_length: Option<u64>) -> Vec<u8> {
    let attachment = StoredAttachment {
        name: "message.eml".to_owned(),
        content_type: "message/rfc822".to_owned(),
        revpos: 1,
        length: 70_000,
        digest: [0x33; 32],
        md5: [0x44; 16],
        decoded_length,
    };
    LeafParts {
        revision: &revision("1-aa"),
        deleted: false,
        created_ms: 5,
        modified_ms: 6,
        attachments: &[attachment],
        fields: FieldsBuf::from_json(&[("Form", "\"Memo\""), ("n", "1.50")]).as_bytes(),
    }
    .encode()
}

const OBJECT: ObjectPlace = ObjectPlace { place: 1, upload: 0x1122_3344_5566_7788, stored_bytes: 900_000 };

fn contents() -> [Record; 2] {
    let placement = Placement::Upload { upload: 12, piece_bytes: 262_144 };
    [Record::inline(b"short", [0x55; 16], true), Record { length: 1 << 20, md5: [0x66; 16], placement }]
}

fn lines() -> Vec<(&'static str, Vec<u8>)> {
    let [inline, upload] = contents();
    vec![
        ("header", header().encode()),
        ("head", head().encode()),
        ("change", change().encode()),
        ("leaf", leaf()),
        ("content", inline.encode()),
        ("content in pieces", upload.encode()),
        ("content that is an object", Record { placement: Placement::Object(OBJECT), ..upload }.encode()),
        ("object", ObjectState { object: OBJECT, length: 1 << 20, created_ms: 5, removed_ms: 6 }.encode()),
        ("key of an object", keys::object(&[0x22; 32])),
        ("key of a note of an object", keys::object_note(5, &[0x22; 32], OBJECT.upload)),
        ("key of a head", keys::head(258, "memo")),
        ("key of a losing leaf", keys::loser(258, "memo", &revision("2-bb"))),
        ("key of a change", keys::change(258, 9)),
        ("key of a reference", keys::reference(&[0x22; 32], 258, "memo")),
        ("folder", folder().encode()),
        ("state of a folder", FOLDER_STATE.encode()),
        ("membership", MEMBERSHIP.encode()),
        ("member", member().encode()),
        ("change of a member", member_change().encode()),
        ("mark", MARK.encode()),
        ("change of a mark", mark_change().encode()),
        ("count of what was read", counts().encode()),
        ("count of marks", encode_count(300)),
        ("key of a folder", keys::folder(258, "inbox")),
        ("key of a folder's state", keys::folder_state(258, 9)),
        ("key of a dropped folder", keys::dropped_folder(258, 9)),
        ("key of a membership", keys::membership(258, "memo", 9)),
        ("key of a member", keys::member(258, 9, 299)),
        ("key of a change of a member", keys::member_change(258, 9, 301)),
        ("key of a mark", keys::mark(258, "memo", "ada")),
        ("key of a change of a mark", keys::mark_change(258, "ada", 302)),
        ("key of a count of what was read", keys::read_counts(258, "ada")),
        ("record set aside", aside::encode(1_793_000_000_000, "mail/ada", "a reason", SET_ASIDE)),
        ("key of a record set aside", keys::set_aside(258, 7)),
        ("head with earlier bodies", head_with_history().encode()),
        ("key of an earlier body", keys::earlier(258, "memo", &revision("1-aa"))),
        ("leaf with an attachment that is gzip", leaf_with(Some(0))),
    ]
}

#[test]
fn records_are_written_as_they_always_were() {
    let text: String = lines().iter().map(|(name, bytes)| format!("{name}: {}\n", hex(bytes))).collect();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(GOLDEN, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(GOLDEN).unwrap(), text);
}

#[test]
fn records_are_read_as_they_were_written() {
    assert_eq!(Header::decode(&header().encode()), Some(header()));
    assert_eq!(FolderRecord::decode(&folder().encode()), Some(folder()));
    assert_eq!(FolderState::decode(&FOLDER_STATE.encode()), Some(FOLDER_STATE));
    assert_eq!(Membership::decode(&MEMBERSHIP.encode()), Some(MEMBERSHIP));
    assert_eq!(Member::decode(&member().encode()), Some(member()));
    assert_eq!(MemberChange::decode(&member_change().encode()), Some(member_change()));
    assert_eq!(Mark::decode(&MARK.encode()), Some(MARK));
    assert_eq!(MarkChange::decode(&mark_change().encode()), Some(mark_change()));
    assert_eq!(ReadCounts::decode(&counts().encode()), Some(counts()));
    assert_eq!(decode_count(&encode_count(300)), Some(300));
    let read = aside::decode(&keys::set_aside(258, 7), &aside::encode(5, "mail/ada", "a reason", SET_ASIDE));
    let read = read.unwrap();
    assert_eq!((read.number, read.at_ms, read.database), ("258-7".to_owned(), 5, "mail/ada".to_owned()));
    assert_eq!((read.family, read.key.as_slice(), read.value.as_slice()), SET_ASIDE);
    let read = Head::decode(&head().encode()).unwrap();
    assert_eq!((read.change_number, read.created_ms, read.external_bytes), (9, 5, 700));
    assert_eq!((read.stored_bytes, Head::decode_change_number(&head().encode())), (66_000, Some(9)));
    let others_bytes = 66_000;
    let mut counted = head();
    let record = counted.encode_counting(others_bytes);
    assert_eq!(counted.stored_bytes, others_bytes + record.len() as u64);
    assert_eq!(Head::decode(&record).unwrap().stored_bytes, counted.stored_bytes);
    assert_eq!((read.contents, read.tree.encode()), (head().contents, head().tree.encode()));
    let read = Head::decode(&head_with_history().encode()).unwrap();
    assert_eq!((read.earlier, read.stored_bytes), (head_with_history().earlier, 66_000));
    assert_eq!(read.tree.encode(), head().tree.encode());
    for decoded_length in [None, Some(0), Some(1 << 40)] {
        let bytes = leaf_with(decoded_length);
        let read = Leaf::decode("memo", &bytes).unwrap();
        let attachments = read.attachments("memo").unwrap();
        assert_eq!((attachments[0].decoded_length, attachments[0].length), (decoded_length, 70_000));
        assert_eq!(read.fields("memo").unwrap().get("n"), Some("1.50"));
    }
    let read = ChangeRecord::decode(&change().encode()).unwrap();
    assert_eq!((read.id, read.winner, read.deleted), ("memo ä".to_owned(), revision("2-bb"), true));
    let bytes = leaf();
    let read = Leaf::decode("memo", &bytes).unwrap();
    assert_eq!((read.revision, read.created_ms, read.modified_ms), ("1-aa", 5, 6));
    assert_eq!(read.fields("memo").unwrap().get("n"), Some("1.50"));
    assert_eq!(read.external_bytes("memo").unwrap(), 70_010);
}

fn from_hex(text: &str) -> Vec<u8> {
    let byte = |place: usize| u8::from_str_radix(&text[place..place + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

/// What earlier versions wrote of the same header and head: they did not count the bytes of records.
#[test]
fn records_of_earlier_versions_are_read() {
    let written = "02086d61696c2f61646111111111111111111111111111111111809483b99734ac02c80107808080808020e807\
                   0309c084fcd6069601808040";
    let stored_bytes = header().external_bytes + 207 * 200;
    assert_eq!(
        Header::decode(&from_hex(written)),
        Some(Header { stored_bytes, folder_count: UNCOUNTED, ..header() })
    );
    let written = "010905bc05012222222222222222222222222222222222222222222222222222222222222222013002020000112233445566\
                   778899aabbccddeeff026161290201026262";
    let read = Head::decode(&from_hex(written)).unwrap();
    assert_eq!((read.change_number, read.stored_bytes), (9, 900));
    assert_eq!(Head::decode_change_number(&from_hex(written)), Some(9));
    assert_eq!(read.tree.encode(), head().tree.encode());
}

/// What formats 1 and 2 wrote of folders and what is in them: no kind, no flags, and nothing of a message.
#[test]
fn records_of_folders_of_earlier_formats_are_read() {
    let written = from_hex("01090b50726f6a656374735cc384c084fcd606025b5d");
    let plain = FolderRecord { kind: FolderKind::Plain, special_use: None, validity_epoch: 0, ..folder() };
    assert_eq!(FolderRecord::decode(&written), Some(FolderRecord { properties: Vec::new(), ..plain }));
    let state =
        FolderState { next_uid: 300, total: 200, change_number: 301, presented: 200, ..FolderState::NEW };
    assert_eq!(FolderState::decode(&from_hex("01ac02c801ad02")), Some(state));
    let membership = Membership { uid: 299, change_number: 301, added_change: 301, flags: 0 };
    assert_eq!(Membership::decode(&from_hex("01ab02ad02")), Some(membership));
    let (change_number, added_ms, id) = (301, 1_793_000_000_000, "memo ä".to_owned());
    let member = Member { change_number, added_ms, added_change: 301, id: id.clone(), ..Member::default() };
    assert_eq!(Member::decode(&from_hex("01ad02809483b997346d656d6f20c3a4")), Some(member));
    for (code, kind) in [("00", MemberChangeKind::Came), ("01", MemberChangeKind::Left)] {
        let written = from_hex(&format!("01{code}ab026d656d6f20c3a4"));
        assert_eq!(MemberChange::decode(&written), Some(MemberChange { uid: 299, kind, id: id.clone() }));
    }
}

#[test]
fn every_kind_of_folder_and_every_change_in_one_is_read_back() {
    use FolderKind::{Calendar, Contacts, Mail, Plain, Tasks};
    use MemberChangeKind::{Came, Content, Flags, Left};
    use SpecialUse::{All, Archive, Drafts, Flagged, Important, Junk, Sent, Trash};
    let uses = [All, Archive, Drafts, Flagged, Important, Junk, Sent, Trash].map(Some);
    for kind in [Plain, Mail, Calendar, Contacts, Tasks] {
        for special_use in uses.into_iter().chain([None]) {
            let record = FolderRecord { kind, special_use, ..folder() };
            assert_eq!(FolderRecord::decode(&record.encode()), Some(record));
        }
    }
    for kind in [Came, Left, Flags, Content] {
        let change = MemberChange { kind, ..member_change() };
        assert_eq!(MemberChange::decode(&change.encode()), Some(change));
    }
}

/// What version 1 wrote of the same header: it knew no folders.
#[test]
fn a_header_of_version_1_is_read() {
    let written =
        "01086d61696c2f61646111111111111111111111111111111111809483b99734ac02c80107808080808020e807";
    let bytes = from_hex(written);
    let expected = Header {
        design_count: UNCOUNTED,
        folder_count: 0,
        last_folder: 0,
        last_uid_validity: 0,
        membership_count: 0,
        mark_count: 0,
        stored_bytes: header().external_bytes + 207 * 200,
        ..header()
    };
    assert_eq!(Header::decode(&bytes), Some(expected));
}

/// Cut records are refused or read as something shorter, and never stop the server.
#[test]
fn cut_records_never_panic() {
    for (_, bytes) in lines() {
        for end in 0..bytes.len() {
            let cut = &bytes[..end];
            drop((Header::decode(cut), ChangeRecord::decode(cut), Record::decode(cut)));
            let _ = ObjectState::decode(cut);
            drop((Head::decode(cut), FolderRecord::decode(cut), ReadCounts::decode(cut)));
            drop(aside::decode(&keys::set_aside(258, 7), cut));
            drop((Member::decode(cut), MemberChange::decode(cut), MarkChange::decode(cut)));
            let _ = (FolderState::decode(cut), Membership::decode(cut), Mark::decode(cut), decode_count(cut));
            if let Ok(leaf) = Leaf::decode("cut", cut) {
                drop((leaf.attachments("cut"), leaf.fields("cut").map(|fields| fields.len())));
            }
        }
    }
}
