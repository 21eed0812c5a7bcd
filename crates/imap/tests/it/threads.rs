//! Threads (RFC 5256).

use proptest::prelude::*;
use scrinium_imap::{ThreadMessage, ordered_subject, references};
use scrinium_imap_wire::{NameEncoding, Response, Thread, WriteOptions, joined};
use scrinium_mailbox::base_subject;

fn message(number: u32, id: &str, refers: &[&str], subject: &str) -> ThreadMessage {
    ThreadMessage {
        number,
        id: Some(id.to_owned()),
        references: refers.iter().map(|id| (*id).to_owned()).collect(),
        subject: base_subject(subject.as_bytes()),
        sent: i64::from(number),
    }
}

fn shown(threads: Vec<Thread>) -> String {
    let line = joined(&Response::Thread(threads).write(NameEncoding::Utf7, WriteOptions::SERVER));
    String::from_utf8(line).unwrap().trim_start_matches("* THREAD ").trim_end().to_owned()
}

#[test]
fn references_make_trees() {
    let messages = [
        message(1, "a", &[], "one"),
        message(2, "b", &["a"], "Re: one"),
        message(3, "c", &["a", "b"], "Re: one"),
        message(4, "d", &["a"], "Re: one"),
        message(5, "e", &[], "two"),
        message(6, "f", &["missing"], "three"),
        message(7, "g", &["missing"], "three"),
        message(8, "h", &[], "Re: two"),
    ];
    assert_eq!(shown(references(&messages)), "(1 (2 3)(4))(5 8)((6)(7))");
    assert_eq!(shown(ordered_subject(&messages)), "(1 (2)(3)(4))(5 8)(6 7)");
}

#[test]
fn circles_and_ids_that_come_twice_lose_nobody() {
    let messages = [
        message(1, "a", &["b"], "x"),
        message(2, "b", &["a"], "y"),
        message(3, "a", &["a"], "z"),
        message(4, "d", &["d", "d"], "w"),
    ];
    assert_eq!(numbers(&references(&messages)), [1, 2, 3, 4]);
}

fn numbers(threads: &[Thread]) -> Vec<u32> {
    let mut all = Vec::new();
    let mut waiting: Vec<&Thread> = threads.iter().collect();
    while let Some(thread) = waiting.pop() {
        all.extend(&thread.messages);
        waiting.extend(&thread.branches);
    }
    all.sort_unstable();
    all
}

proptest! {
    #[test]
    fn each_message_is_in_one_thread(
        all in prop::collection::vec((0_usize..12, prop::collection::vec(0_usize..12, 0..4), 0_usize..3), 0..30),
    ) {
        let ids: Vec<String> = (0..12).map(|id| format!("id{id}")).collect();
        let messages: Vec<ThreadMessage> = (1_u32..)
            .zip(&all)
            .map(|(number, (id, refers, subject))| {
                let refers: Vec<&str> = refers.iter().map(|id| ids[*id].as_str()).collect();
                message(number, &ids[*id], &refers, ["one", "Re: one", ""][*subject])
            })
            .collect();
        let expected: Vec<u32> = messages.iter().map(|message| message.number).collect();
        prop_assert_eq!(&numbers(&references(&messages)), &expected);
        prop_assert_eq!(numbers(&ordered_subject(&messages)), expected);
    }
}

#[test]
fn a_long_chain_and_deep_branches_exhaust_no_stack() {
    let chain: Vec<ThreadMessage> = (1..20_000)
        .map(|number| {
            let parent = format!("i{}", number / 2);
            message(number, &format!("i{number}"), &[&parent], "")
        })
        .collect();
    assert_eq!(numbers(&references(&chain)).len(), chain.len());
    let deep: Vec<ThreadMessage> = (1..4000)
        .map(|number: u32| {
            let parent = format!("i{}", number.saturating_sub(1 + number % 2));
            message(number, &format!("i{number}"), &[&parent], "")
        })
        .collect();
    let text = shown(references(&deep));
    assert!(!text.contains(&"(".repeat(300)), "nested too deeply");
}
