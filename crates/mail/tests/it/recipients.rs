//! Names, addresses and groups become people: single cases, and a naive model.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use scrinium_directory::NameIndex;
use scrinium_mail::{
    MemoError, Resolver, Writer, WrittenAddress, check_mailable, format_address, recipients_of,
};
use serde_json::{Map, Value, json};

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("not an object: {other}"),
    }
}

fn resolver() -> Resolver {
    let index = NameIndex::new();
    for (short, full) in [("ada", "Ada Lovelace/Acme"), ("bob", "Bob Smith"), ("rob", "Bob Smith")] {
        let person = json!({"Form": "Person", "ShortName": short, "FullName": full,
                            "InternetAddress": format!("{short}.x@acme.example")});
        index.apply(&format!("person:{short}"), Some(&fields(person)));
    }
    for (name, members) in [
        ("all", json!(["engines", "bob", "nobody"])),
        ("engines", json!(["all", "Ada Lovelace", "ada.x@acme.example", "Bob Smith"])),
        ("empty", json!([])),
    ] {
        let group = json!({"Form": "Group", "ListName": name, "Members": members});
        index.apply(&format!("group:{name}"), Some(&fields(group)));
    }
    Resolver::new(Arc::new(index), &["Home.example".to_owned()])
}

fn expand(written: &[&str]) -> (Vec<String>, Vec<String>) {
    let written: Vec<String> = written.iter().map(|text| (*text).to_owned()).collect();
    let expansion = resolver().expand(&written, &Writer::Server);
    let people = expansion.people.iter().map(|person| person.short_name.clone()).collect();
    (people, expansion.failures.iter().map(ToString::to_string).collect())
}

#[test]
fn every_way_of_writing_a_recipient_is_understood() {
    for written in [
        "ada",
        "ADA LOVELACE",
        "Ada Lovelace/Acme",
        "ada.x@acme.example",
        "ada@home.example",
        "\"Lovelace, Ada\" <ada.x@acme.example>",
        "Bob Smith <ada@HOME.example>",
        "Countess <ada>",
        "<ada>",
        "ada+engines@home.example",
        "ada.x+engines+more@acme.example",
    ] {
        assert_eq!(expand(&[written]), (vec!["ada".to_owned()], vec![]), "{written}");
    }
    for unknown in [
        "+ada@home.example",
        "ada+x",
        "ada@acme.example",
        "Ada Lovelace <ada@elsewhere.example>",
        "x y z",
        "@",
        "<>",
    ] {
        let (people, failures) = expand(&[unknown]);
        assert!(people.is_empty());
        assert!(failures[0].ends_with("nobody in the directory has this name or address"), "{failures:?}");
    }
}

#[test]
fn groups_in_circles_end_and_failures_name_their_group() {
    let (people, failures) = expand(&["all", "ada", "empty", "Nobody"]);
    assert_eq!(people, ["ada", "bob"]);
    assert_eq!(
        failures,
        [
            "Bob Smith (of the group engines): several people or groups in the directory have this name",
            "nobody (of the group all): nobody in the directory has this name or address",
        ]
    );
}

#[test]
fn a_memo_says_to_whom_it_goes() {
    let memo = |value| recipients_of(&fields(value));
    let three =
        json!({"SendTo": "ada, \"Smith, Bob\" <bob@x>; rob", "CopyTo": ["ada", " "], "BlindCopyTo": ["c"]});
    assert_eq!(memo(three.clone()).unwrap(), ["ada", "\"Smith, Bob\" <bob@x>", "rob", "c"]);
    let mut with_recipients = fields(three);
    with_recipients.insert("Recipients".to_owned(), json!(["only"]));
    assert_eq!(recipients_of(&with_recipients).unwrap(), ["only"]);

    assert_eq!(memo(json!({"Subject": "to nobody"})), Err(MemoError::NoRecipients));
    assert_eq!(memo(json!({"SendTo": [], "CopyTo": "  "})), Err(MemoError::NoRecipients));
    assert_eq!(memo(json!({"SendTo": 5})), Err(MemoError::Type { field: "SendTo" }));
    assert_eq!(memo(json!({"SendTo": [["ada"]]})), Err(MemoError::Type { field: "SendTo" }));
    assert!(matches!(memo(json!({"SendTo": vec!["x"; 10_001]})), Err(MemoError::TooManyRecipients { .. })));
    assert!(matches!(memo(json!({"SendTo": ["x".repeat(3_000)]})), Err(MemoError::LongRecipient { .. })));
    let damaged_beside_recipients = fields(json!({"Recipients": "ada", "CopyTo": 7}));
    assert_eq!(check_mailable(&damaged_beside_recipients), Err(MemoError::Type { field: "CopyTo" }));
}

proptest! {
    #[test]
    fn a_written_address_is_read_back(name in "[a-zø ,;<>@\"\\\\]{0,12}", address in "[a-z.]{1,5}@[a-z.]{1,5}") {
        let name = name.trim().to_owned();
        let written = format_address(&name, &address);
        if name != address {
            prop_assert_eq!(WrittenAddress::read(&written), WrittenAddress { name, address }, "{}", written);
        }
    }

    /// Groups g0..g7 with any members among themselves, people p0..p7 (of whom p6 and p7 do not exist).
    #[test]
    fn expansion_agrees_with_reachability(
        members in prop::collection::vec(prop::collection::vec((any::<bool>(), 0..8_usize), 0..6), 8),
        start in prop::collection::vec((any::<bool>(), 0..8_usize), 0..5),
    ) {
        let name = |(is_group, number): (bool, usize)| format!("{}{number}", if is_group { 'g' } else { 'p' });
        let index = NameIndex::new();
        for number in 0..6 {
            let person = json!({"Form": "Person", "ShortName": format!("p{number}"), "FullName": ["same"]});
            index.apply(&format!("person:{number}"), Some(&fields(person)));
        }
        for (number, members) in members.iter().enumerate() {
            let members: Vec<String> = members.iter().map(|member| name(*member)).collect();
            let group = json!({"Form": "Group", "ListName": format!("g{number}"), "Members": members});
            index.apply(&format!("group:{number}"), Some(&fields(group)));
        }
        let mut reached: BTreeSet<(bool, usize)> = start.iter().copied().collect();
        loop {
            let more: BTreeSet<_> = reached.iter().filter(|(is_group, _)| *is_group)
                .flat_map(|(_, number)| members[*number].iter().copied()).collect();
            let before = reached.len();
            reached.extend(more);
            if reached.len() == before { break }
        }
        let written: Vec<String> = start.iter().map(|start| name(*start)).collect();
        let expansion = Resolver::new(Arc::new(index), &[]).expand(&written, &Writer::Server);
        let mut people: Vec<String> = expansion.people.iter().map(|p| p.short_name.clone()).collect();
        people.sort();
        let mut failures: Vec<String> = expansion.failures.iter().map(|f| f.written.clone()).collect();
        failures.sort();
        let expected = |known: bool| -> Vec<String> {
            reached.iter().filter(|(is_group, n)| !is_group && (*n < 6) == known).map(|p| name(*p)).collect()
        };
        prop_assert_eq!(people, expected(true));
        prop_assert_eq!(failures, expected(false));
    }
}
