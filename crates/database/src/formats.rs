//! Holds the bytes of every record of this crate to a golden file, so that what one version wrote the next
//! one reads. `UPDATE=1` rewrites the file, which only a new format version may do.

use scrinium_document::{FieldsBuf, Revision, RevisionTree};

use crate::content::hex;
use crate::content::record::{Placement, Record};
use crate::head::{ChangeRecord, Head};
use crate::header::Header;
use crate::keys;
use crate::leaf::{Leaf, LeafParts, StoredAttachment};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/records-1.txt");

fn revision(text: &str) -> Revision {
    Revision::parse(text).unwrap()
}

fn header() -> Header {
    Header {
        name: "mail/ada".to_owned(),
        uuid: [0x11; 16],
        created_ms: 1_793_000_000_000,
        change_number: 300,
        document_count: 200,
        deleted_count: 7,
        external_bytes: 1 << 40,
        revision_limit: 1000,
    }
}

fn head() -> Head {
    let mut tree = RevisionTree::new();
    tree.merge(&[revision("2-00112233445566778899aabbccddeeff"), revision("1-aa")], false).unwrap();
    tree.merge(&[revision("2-bb"), revision("1-aa")], true).unwrap();
    Head { change_number: 9, created_ms: 5, external_bytes: 700, contents: vec![[0x22; 32]], tree }
}

fn change() -> ChangeRecord {
    ChangeRecord { id: "memo ä".to_owned(), winner: revision("2-bb"), deleted: true, several_leaves: true }
}

fn leaf() -> Vec<u8> {
    let attachment = StoredAttachment {
        name: "message.eml".to_owned(),
        content_type: "message/rfc822".to_owned(),
        revpos: 1,
        length: 70_000,
        digest: [0x33; 32],
        md5: [0x44; 16],
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
        ("key of a head", keys::head(258, "memo")),
        ("key of a losing leaf", keys::loser(258, "memo", &revision("2-bb"))),
        ("key of a change", keys::change(258, 9)),
        ("key of a reference", keys::reference(&[0x22; 32], 258, "memo")),
    ]
}

#[test]
fn records_are_written_as_in_version_1() {
    let text: String = lines().iter().map(|(name, bytes)| format!("{name}: {}\n", hex(bytes))).collect();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(GOLDEN, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(GOLDEN).unwrap(), text);
}

#[test]
fn records_are_read_as_they_were_written() {
    assert_eq!(Header::decode(&header().encode()), Some(header()));
    let read = Head::decode(&head().encode()).unwrap();
    assert_eq!((read.change_number, read.created_ms, read.external_bytes), (9, 5, 700));
    assert_eq!((read.contents, read.tree.encode()), (head().contents, head().tree.encode()));
    let read = ChangeRecord::decode(&change().encode()).unwrap();
    assert_eq!((read.id, read.winner, read.deleted), ("memo ä".to_owned(), revision("2-bb"), true));
    let bytes = leaf();
    let read = Leaf::decode("memo", &bytes).unwrap();
    assert_eq!((read.revision, read.created_ms, read.modified_ms), ("1-aa", 5, 6));
    assert_eq!(read.fields("memo").unwrap().get("n"), Some("1.50"));
    assert_eq!(read.external_bytes("memo").unwrap(), 70_010);
}

/// Cut records are refused or read as something shorter, and never stop the server.
#[test]
fn cut_records_never_panic() {
    for (_, bytes) in lines() {
        for end in 0..bytes.len() {
            let cut = &bytes[..end];
            drop((Header::decode(cut), ChangeRecord::decode(cut), Record::decode(cut)));
            drop(Head::decode(cut));
            if let Ok(leaf) = Leaf::decode("cut", cut) {
                drop((leaf.attachments("cut"), leaf.fields("cut").map(|fields| fields.len())));
            }
        }
    }
}
