//! What memos say of public messages, held against what Python's `email` reads in them.
//!
//! The messages are those that `scripts/corpus` and `scripts/corpora` bring: a few hundred in the usual run, all of them
//! in the long one. Where the two disagree, the kind of disagreement must stand in [`kinds`], with the reason why the memo
//! is right.

mod kinds;
mod pair;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use scrinium_mail::{MessageOptions, memo_of_message};
use serde_json::{Map, Value, json};

use crate::common::{Corpus, corpora};
use pair::{Pair, Theirs};

/// How many messages the usual run looks at.
const USUAL_MESSAGES: u32 = 300;

/// With fewer packages a run says too little.
const FEWEST_CORPORA: usize = 3;

/// Disagreements that are printed in full where the test fails.
const MOST_SHOWN: usize = 400;

struct Message {
    path: PathBuf,
    source: Vec<u8>,
    memo: Map<String, Value>,
}

#[test]
fn memos_and_python_agree_on_public_messages_or_it_is_known_why() {
    let corpora = corpora();
    if corpora.len() < FEWEST_CORPORA {
        return scrinium_fault::skip(
            "the messages of packages are not here: scripts/corpus and scripts/corpora fetch them",
        );
    }
    if Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_err() {
        return scrinium_fault::skip("python3 is not installed, with whose email package memos are compared");
    }
    let most = scrinium_fault::cases(USUAL_MESSAGES);
    let is_whole = most > USUAL_MESSAGES;
    let messages = chosen(&corpora, if is_whole { u32::MAX } else { most });
    let (known, unexplained) = compared(&messages);
    println!("{} messages of {} packages", messages.len(), corpora.len());
    for (kind, count) in &known {
        println!("{count:6} {kind}");
    }
    for line in unexplained.iter().take(MOST_SHOWN) {
        println!("{line}");
    }
    assert!(unexplained.is_empty(), "{} disagreements that nobody has explained", unexplained.len());
    if is_whole && corpora.len() == crate::common::MOST_CORPORA {
        let idle: Vec<&str> = kinds::reasons().filter(|reason| !known.contains_key(reason)).collect();
        assert!(idle.is_empty(), "kinds that no message is of any more: {idle:?}");
    }
}

/// As many messages, spread over all corpora: of each its even share.
fn chosen(corpora: &[Corpus], most: u32) -> Vec<Message> {
    let share = (usize::try_from(most).unwrap() / corpora.len()).max(1);
    let mut messages = Vec::new();
    for corpus in corpora {
        let step = corpus.paths.len().div_ceil(share);
        for path in corpus.paths.iter().step_by(step.max(1)) {
            let source = std::fs::read(path).unwrap();
            let memo = memo_of_message(&source, &MessageOptions::default());
            messages.push(Message { path: path.clone(), source, memo });
        }
    }
    messages
}

/// The explained disagreements by their kinds, and a line for each other one.
fn compared(messages: &[Message]) -> (BTreeMap<&'static str, usize>, Vec<String>) {
    let mut python = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python_email.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut questions = BufWriter::new(python.stdin.take().unwrap());
    let answers = BufReader::new(python.stdout.take().unwrap());
    let (mut known, mut unexplained) = (BTreeMap::new(), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for message in messages {
                let line = json!({"path": message.path, "set": pair::guessed_set(&message.memo)});
                writeln!(questions, "{line}").unwrap();
            }
        });
        for (message, line) in messages.iter().zip(answers.lines()) {
            let theirs = Theirs(serde_json::from_str(&line.unwrap()).unwrap());
            let pair = Pair { source: &message.source, memo: &message.memo, theirs: &theirs };
            for difference in pair.differences() {
                match kinds::of(&pair, &difference) {
                    Some(kind) => *known.entry(kind).or_default() += 1,
                    None => unexplained.push(format!("{} {difference}", message.path.display())),
                }
            }
        }
    });
    assert!(python.wait().unwrap().success(), "Python stumbled over a message");
    (known, unexplained)
}
