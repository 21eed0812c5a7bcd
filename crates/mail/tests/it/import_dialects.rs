//! Mboxes of every dialect are read back as they were written, and what only looks like a separator cuts nothing.

use std::io::Cursor;

use proptest::prelude::*;
use scrinium_mail::import::{MboxItem, MboxReader, quote_mbox};

const NO_LIMIT: u64 = 1 << 30;

fn read(mbox: &[u8]) -> Vec<String> {
    let mut reader = MboxReader::new(Cursor::new(mbox), 0, NO_LIMIT);
    let mut messages = Vec::new();
    while let Some(item) = reader.next_message().unwrap() {
        match item {
            MboxItem::Message { source, .. } => {
                messages.push(String::from_utf8(source.bytes().unwrap().to_vec()).unwrap());
            }
            MboxItem::FolderData { .. } => messages.push("folder data".to_owned()),
            MboxItem::TooLarge { .. } => panic!("there is no limit"),
        }
    }
    messages
}

fn header(subject: &str) -> String {
    format!("From: Ann <ann@example.org>\nTo: ben@example.org\nSubject: {subject}\n")
}

fn subjects(mbox: &str) -> Vec<String> {
    let subject = |message: String| {
        let line = message.lines().find_map(|line| line.strip_prefix("Subject: ").map(str::to_owned));
        line.unwrap_or_default()
    };
    read(mbox.as_bytes()).into_iter().map(subject).collect()
}

/// Lines of a body; those that every dialect must keep apart from separators.
fn body(lines: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(lines), 0..10).prop_map(|lines| lines.concat())
}

const SAFE: &[&str] = &[
    "From the President\n",
    "From 10:00 to 12:00 in room 2020\n",
    "> From here\n",
    "\n",
    "  \n",
    "Subject: a line of text\n",
    "Received: as well\n",
    "ordinary text\n",
    "--\n",
];

const DANGEROUS: &[&str] = &[
    "From \n",
    "From the President\n",
    "From ann@example.org Mon Mar  2 10:00:00 2020\n",
    "From: Ann\n",
    "From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\n",
    "\n",
    "Subject: not a message\n",
    "Content-Length: 3\n",
    "ordinary text\n",
];

const QUOTED: &[&str] =
    &[">From here\n", ">>From there\n", "From ann@example.org Mon Mar  2 10:00:00 2020\n", "\n", "x\n"];

/// A dialect: its separator for the message of a number, and how it writes a message behind it.
type Separators = fn(usize) -> String;

const DATED: [Separators; 8] = [
    |number| format!("From ann@example.org Mon Mar  2 10:00:{number:02} 2020\n"),
    |_| "From - Mon Mar 02 10:00:00 2020\n".to_owned(),
    |_| "From MAILER-DAEMON Mon Mar  2 10:00:00 2020\n".to_owned(),
    |number| format!("From 16612345{number}@xxx Mon Mar 02 10:00:00 +0000 2020\n"),
    |_| "From ann Mon Mar  2 10:00:00 98\n".to_owned(),
    |_| "From ann Mon Mar  2 10:00 MET DST 1998\n".to_owned(),
    |_| "From ann Mon Mar  2 10:00:00 1998 remote from acme\n".to_owned(),
    |_| "From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\n".to_owned(),
];

const LOOSE: [Separators; 8] = [
    |_| "From \n".to_owned(),
    |_| "From -\n".to_owned(),
    |_| "From ann@example.org\n".to_owned(),
    |_| "From ann@example.org  Mon, 2 Mar 2020 10:00:00 +0100 (CET)\n".to_owned(),
    |_| "From ann@example.org 2020-03-02T10:00:00Z\n".to_owned(),
    |_| "From ann@example.org 2020-03-02 10:00:00\n".to_owned(),
    |_| "From ann at example.org  Mon Mar  2 10:00:00 2020\n".to_owned(),
    |_| "From \"Ann Lee\" <ann@example.org> Mon Mar  2 10:00:00 2020\n".to_owned(),
];

fn message(body: &str, number: usize) -> String {
    format!("{}\n{body}", header(&format!("number {number}")))
}

proptest! {
    #[test]
    fn a_list_of_messages_comes_back_from_each_dialect(
        bodies in prop::collection::vec(body(SAFE), 1..6),
        kind in 0..DATED.len() + LOOSE.len(),
        crlf in any::<bool>(),
    ) {
        let separator = DATED.iter().chain(&LOOSE).nth(kind).unwrap();
        let ends = |text: String| if crlf { text.replace('\n', "\r\n") } else { text };
        let messages: Vec<String> =
            bodies.iter().enumerate().map(|(number, body)| ends(message(body, number))).collect();
        let mbox: String = messages.iter().enumerate().map(|(number, message)| {
            format!("{}{message}{}", ends(separator(number)), ends("\n".to_owned()))
        }).collect();
        prop_assert_eq!(read(mbox.as_bytes()), messages);
    }

    #[test]
    fn without_blank_lines_dated_messages_come_apart(bodies in prop::collection::vec(body(SAFE), 1..6), kind in 0..DATED.len() - 1) {
        let messages: Vec<String> = bodies.iter().enumerate().map(|(n, body)| format!("{}the end\n", message(body, n))).collect();
        let mbox: String = messages.iter().map(|message| format!("{}{message}", DATED[kind](0))).collect();
        prop_assert_eq!(read(mbox.as_bytes()), messages);
    }

    #[test]
    fn lengths_that_hold_keep_messages_whole(bodies in prop::collection::vec(body(DANGEROUS), 1..6), kind in 0..DATED.len()) {
        let with_length = |(number, body): (usize, &String)| {
            format!("{}Content-Length: {}\n\n{body}", header(&format!("number {number}")), body.len())
        };
        let messages: Vec<String> = bodies.iter().enumerate().map(with_length).collect();
        let mbox: String =
            messages.iter().enumerate().map(|(number, message)| format!("{}{message}\n", DATED[kind](number))).collect();
        prop_assert_eq!(read(mbox.as_bytes()), messages);
    }

    #[test]
    fn lengths_that_do_not_hold_change_nothing(bodies in prop::collection::vec(body(SAFE), 1..6), wrong in 100_000_usize..200_000) {
        let with_length = |body: &String| format!("{}Content-Length: {wrong}\n\n{body}", header("x"));
        let messages: Vec<String> = bodies.iter().map(with_length).collect();
        let mbox: String = messages.iter().map(|message| format!("{}{message}\n", DATED[0](0))).collect();
        prop_assert_eq!(read(mbox.as_bytes()), messages);
    }

    #[test]
    fn quoted_lines_lose_one_mark(bodies in prop::collection::vec(body(QUOTED), 1..6)) {
        let messages: Vec<String> = bodies.iter().enumerate().map(|(number, body)| message(body, number)).collect();
        let mbox: Vec<u8> = messages
            .iter()
            .flat_map(|message| quote_mbox(message.as_bytes(), "ann@example.org", "Mon Mar  2 10:00:00 2020"))
            .collect();
        prop_assert_eq!(read(&mbox), messages);
    }
}

#[test]
fn separators_of_several_kinds_in_one_file_all_separate() {
    let separators = [DATED[0], LOOSE[0], LOOSE[1], DATED[4], LOOSE[3], DATED[3], LOOSE[6]];
    let mbox: String = separators
        .iter()
        .enumerate()
        .map(|(number, separator)| format!("{}{}\nText.\n\n", separator(number), header(&number.to_string())))
        .collect();
    assert_eq!(subjects(&mbox), ["0", "1", "2", "3", "4", "5", "6"]);
    let not_quite_blank = mbox.replace("Text.\n\n", "Text.\n \t\n");
    assert_eq!(subjects(&not_quite_blank), ["0", "1", "2", "3", "4", "5", "6"]);
}

#[test]
fn text_that_looks_like_a_separator_stays_text() {
    let dated = "From ann@example.org Mon Mar  2 10:00:00 2020\n";
    for text in [
        "From the office, with love\n",
        "From Ann\n\nhello\n",
        "From \n\nhello\n",
        "From the meeting at 12:00 in room 2020\n",
        "From the office, Mon Mar  2 10:00:00 2020\n\nhello\n",
        "From Monday, 2 March 2020 10:00:00\n\nwe are closed\n",
        "From 2020-03-02 10:00:00 on\n",
        "From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\nFrom: Dev <d@example.org>\nDate: x\n",
        ">From ann@example.org Mon Mar  2 10:00:00 2020\nSubject: quoted\n",
    ] {
        let mbox = format!("{dated}{}\nHi\n\n{text}\n{dated}{}\nText.\n", header("one"), header("two"));
        assert_eq!(subjects(&mbox), ["one", "two"], "{text}");
    }
}

#[test]
fn dates_of_separators_are_moments() {
    let date = |line: &str| {
        let mbox = format!("{line}\nSubject: x\n\ny\n");
        match MboxReader::new(Cursor::new(mbox), 0, NO_LIMIT).next_message().unwrap() {
            Some(MboxItem::Message { delivered_s, .. }) => delivered_s,
            _ => None,
        }
    };
    let wanted = Some(1_583_143_200);
    assert_eq!(date("From ann Mon Mar  2 10:00:00 2020"), wanted);
    assert_eq!(date("From - Mon Mar 02 10:00:00 2020"), wanted);
    assert_eq!(date("From 17@xxx Mon Mar 02 11:00:00 +0100 2020"), wanted);
    assert_eq!(date("From ann Mon Mar  2 11:00:00 CET 2020"), wanted);
    assert_eq!(date("From ann Mon Mar  2 05:00 EST 20"), wanted);
    assert_eq!(date("From ann Mon, 2 Mar 2020 10:00:00 GMT"), wanted);
    assert_eq!(date("From ann 2020-03-02T12:00:00+02:00"), wanted);
    assert_eq!(date("From ann Mon Mar 32 10:00:00 2020"), None);
    assert_eq!(date("From -"), None);
}

#[test]
fn what_pine_keeps_in_a_folder_is_no_message() {
    let internal = "From MAILER-DAEMON Mon Mar  2 10:00:00 2020\nFrom: Mail System Internal Data <MAILER-DAEMON@host>\n\
        Subject: DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA\nX-IMAP: 1583143200 0000000003\nStatus: RO\n\nThis text is part\n\n";
    let mbox = format!("{internal}{}{}\nText.\n", DATED[0](0), header("one"));
    assert_eq!(read(mbox.as_bytes()).len(), 2);
    assert_eq!(read(mbox.as_bytes())[0], "folder data");
}

#[test]
fn a_large_body_ends_where_its_length_says_and_else_at_the_next_separator() {
    const SEPARATOR: &str = "From ann@example.org Mon Mar  2 10:00:00 2020\n";
    // Larger than what is held in memory.
    let filler = "A line of a text that is long, and goes on for long.\n".repeat(100_000);
    assert!(filler.len() > scrinium_mail::import::MEMORY_BYTES);
    let mbox_of = |body: &str, length: usize| {
        format!("{SEPARATOR}Subject: 1\nContent-Length: {length}\n\n{body}\n{SEPARATOR}Subject: 2\n\nlast\n")
    };
    let message = |body: &str, length: usize| format!("Subject: 1\nContent-Length: {length}\n\n{body}");
    let last = "Subject: 2\n\nlast\n".to_owned();

    // The length holds: what looks like a separator is text. Lines are not quoted where one stands as it is.
    let bare = format!("{filler}\n{SEPARATOR}Subject: no message\n\n>From here\n{filler}");
    let expected = [message(&bare, bare.len()), last.clone()];
    assert!(read(mbox_of(&bare, bare.len()).as_bytes()) == expected);
    let quoted = format!("{filler}>From here\n{filler}");
    let unquoted = quoted.replace(">From", "From");
    assert!(
        read(mbox_of(&quoted, quoted.len()).as_bytes()) == [message(&unquoted, quoted.len()), last.clone()]
    );

    // It does not: the message ends at the separator, and nothing of what follows is lost.
    for length in [filler.len() + 3, filler.len() * 3, filler.len() - 7] {
        let found = read(mbox_of(&filler, length).as_bytes());
        assert!(found == [message(&filler, length), last.clone()], "{length}: {} messages", found.len());
    }
}
