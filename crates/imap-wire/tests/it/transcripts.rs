//! Lines of sessions as clients and servers send them, and what they mean.

use scrinium_imap_wire::{
    BodyStructure, CommandOptions, FetchItem, MessageData, NameEncoding, Part, Response, ResponseCode,
    SequenceSet, SinglePart, Speaker, Status, TaggedCommand, ValueLimits, WriteOptions, joined,
};

use crate::arbitrary::frames;

/// Lines of clients, and the same in this crate's own words.
const COMMANDS: &[(&str, &str)] = &[
    ("a noop", "a NOOP"),
    ("a LOGIN ada secret", "a LOGIN \"ada\" \"secret\""),
    ("a login {3+}\r\nada {6+}\r\nse\"ret", "a LOGIN \"ada\" \"se\\\"ret\""),
    ("a AUTHENTICATE plain =", "a AUTHENTICATE PLAIN ="),
    ("a ID NIL", "a ID NIL"),
    ("a ID ()", "a ID NIL"),
    ("a ID (\"name\" \"x\" \"os\" NIL)", "a ID (\"name\" \"x\" \"os\" NIL)"),
    ("a SELECT inbox", "a SELECT INBOX"),
    ("a SELECT [Gmail]/Sent", "a SELECT \"[Gmail]/Sent\""),
    ("a EXAMINE \"Entw&APw-rfe\" (condstore)", "a EXAMINE Entw&APw-rfe (CONDSTORE)"),
    ("a SELECT x (QRESYNC (67 90 41:211 (1,5 41,90)))", "a SELECT x (QRESYNC (67 90 41:211 (1,5 41,90)))"),
    ("a CREATE Sent (USE (\\Sent))", "a CREATE Sent (USE (\\Sent))"),
    ("a LIST \"\" %", "a LIST \"\" \"%\""),
    (
        "a LIST (SUBSCRIBED) \"\" (a b) RETURN (STATUS (MESSAGES UNSEEN))",
        "a LIST (SUBSCRIBED) \"\" (\"a\" \"b\") RETURN (STATUS (MESSAGES UNSEEN))",
    ),
    ("a STATUS x (uidnext MESSAGES uidnext)", "a STATUS x (UIDNEXT MESSAGES)"),
    ("a FETCH 1 FAST", "a FETCH 1 (FLAGS INTERNALDATE RFC822.SIZE)"),
    ("a fetch 2:* all", "a FETCH 2:* (FLAGS INTERNALDATE RFC822.SIZE ENVELOPE)"),
    (
        "a UID FETCH 9:3,* BODY.PEEK[header.fields (\"X\" From)]<0.10>",
        "a UID FETCH 9:3,* (BODY.PEEK[HEADER.FIELDS (X From)]<0.10>)",
    ),
    ("a FETCH 1 (UID BODY[1.2.MIME] BODY[] uid)", "a FETCH 1 (UID BODY[1.2.MIME] BODY[])"),
    ("a FETCH 1:5 (FLAGS) (CHANGEDSINCE 0 VANISHED)", "a FETCH 1:5 (FLAGS) (CHANGEDSINCE 0 VANISHED)"),
    ("a FETCH 1 (PREVIEW (LAZY) BINARY.SIZE[1])", "a FETCH 1 (PREVIEW (LAZY) BINARY.SIZE[1])"),
    ("a SEARCH unseen 1:3 not deleted", "a SEARCH UNSEEN 1:3 NOT DELETED"),
    (
        "a UID SEARCH RETURN () OR FROM \"a b\" (TO c LARGER 5)",
        "a UID SEARCH RETURN () OR FROM \"a b\" (TO c LARGER 5)",
    ),
    ("a SEARCH CHARSET utf-8 SUBJECT {3+}\r\ng\u{fc}", "a SEARCH CHARSET UTF-8 SUBJECT {3}\r\ng\u{fc}"),
    (
        "a SEARCH KEYWORD $Junk SINCE \"1-feb-2024\" HEADER x \"\"",
        "a SEARCH KEYWORD $Junk SINCE 1-Feb-2024 HEADER x \"\"",
    ),
    (
        "a SEARCH $ MODSEQ \"/flags/\\\\draft\" all 620162338",
        "a SEARCH $ MODSEQ \"/flags/\\\\draft\" all 620162338",
    ),
    ("a SORT (REVERSE DATE subject) utf-8 all", "a SORT (REVERSE DATE SUBJECT) UTF-8 ALL"),
    ("a THREAD references us-ascii all", "a THREAD REFERENCES US-ASCII ALL"),
    ("a STORE 1 +flags.silent \\seen $x", "a STORE 1 +FLAGS.SILENT (\\Seen $x)"),
    ("a UID STORE 1 (UNCHANGEDSINCE 5) FLAGS ()", "a UID STORE 1 (UNCHANGEDSINCE 5) FLAGS ()"),
    ("a UID MOVE $ Archiv", "a UID MOVE $ Archiv"),
    ("a UID EXPUNGE 5", "a UID EXPUNGE 5"),
    (
        "a APPEND x (\\seen) \" 7-Feb-1994 21:52:25 -0800\" {2+}\r\nhi",
        "a APPEND x (\\Seen) \"07-Feb-1994 21:52:25 -0800\" {2}\r\nhi",
    ),
    ("a APPEND x UTF8 (~{2+}\r\nhi) {0+}\r\n", "a APPEND x UTF8 (~{2}\r\nhi) {0}\r\n"),
    ("a GETMETADATA \"\" /shared/comment", "a GETMETADATA \"\" (/shared/comment)"),
    ("a GETMETADATA (DEPTH 1) x (/a /b)", "a GETMETADATA (DEPTH 1) x (/a /b)"),
    ("a SETACL x ada +lr", "a SETACL x ada +lr"),
    ("a NOTIFY SET (selected (MessageNew))", "a NOTIFY SET (selected (MessageNew))"),
];

#[test]
fn commands_mean_what_they_say() {
    for (line, meant) in COMMANDS {
        let frame = frames(format!("{line}\r\n").as_bytes(), 5, Speaker::Client);
        let read = TaggedCommand::parse(&frame[0], CommandOptions::default());
        let read = read.unwrap_or_else(|error| panic!("{line}: {error}"));
        let written = joined(&read.command.write(&read.tag, NameEncoding::Utf7, WriteOptions::CLIENT));
        assert_eq!(String::from_utf8(written).unwrap(), format!("{meant}\r\n"), "{line}");
    }
}

#[test]
fn a_password_is_not_in_a_command_as_it_is_logged() {
    for line in ["a LOGIN ada secret", "a AUTHENTICATE PLAIN AGFkYQBzZWNyZXQ="] {
        let parts = [Part::Text(line.as_bytes().to_vec())];
        let shown = format!("{:?}", TaggedCommand::parse(&parts, CommandOptions::default()).unwrap());
        assert!(!shown.contains("secret") && !shown.contains("AGFk"), "{shown}");
    }
}

fn response(bytes: &[u8]) -> Response {
    let frame = frames(bytes, 7, Speaker::Server);
    Response::parse(&frame[0], NameEncoding::Utf7, ValueLimits::default()).unwrap()
}

#[test]
fn what_a_server_says_of_a_message() {
    let line = b"* 12 FETCH (UID 7 BODYSTRUCTURE ((\"TEXT\" \"PLAIN\" (\"CHARSET\" \"UTF-8\") NIL NIL \"7BIT\" 5 1 NIL NIL NIL NIL)(\"IMAGE\" \"PNG\" NIL NIL NIL \"BASE64\" 99 NIL (\"ATTACHMENT\" (\"FILENAME\" \"a.png\")) \"de\") \"MIXED\" (\"BOUNDARY\" \"b\") NIL NIL NIL) BODY[HEADER.FIELDS (SUBJECT)]<0> {4}\r\na\r\nb BODY[2] NIL)\r\n";
    let Response::Fetch { number: 12, items } = response(line) else { panic!("no FETCH") };
    let [
        FetchItem::Uid(7),
        FetchItem::BodyStructure(body),
        FetchItem::Section(_, Some(0), data),
        FetchItem::Section(_, None, MessageData::Nil),
    ] = items.as_slice()
    else {
        panic!("{items:?}")
    };
    assert_eq!(*data, MessageData::Bytes(b"a\r\nb".to_vec()));
    let BodyStructure::Multipart(parts, subtype, Some((parameters, _))) = body.as_ref() else {
        panic!("{body:?}")
    };
    assert_eq!((parts.len(), subtype.as_slice(), parameters.len()), (2, b"MIXED".as_slice(), 1));
    let BodyStructure::Single(basics, SinglePart::Other, Some((None, more))) = &parts[1] else {
        panic!("{parts:?}")
    };
    assert_eq!((basics.octets, more.languages.as_slice()), (99, [b"de".to_vec()].as_slice()));
    assert_eq!(more.disposition.as_ref().unwrap().parameters[0].1, b"a.png");
}

#[test]
fn what_servers_say() {
    assert_eq!(response(b"+\r\n"), Response::Continuation(String::new()));
    assert_eq!(
        response(b"a1 OK [copyuid 38505 304,319:320 3956:3958] Done\r\n"),
        Response::Status {
            tag: scrinium_imap_wire::Tag::new("a1"),
            status: Status::Ok,
            code: Some(ResponseCode::CopyUid(
                38505,
                SequenceSet::parse("304,319:320").unwrap(),
                SequenceSet::parse("3956:3958").unwrap()
            )),
            text: "Done".to_owned(),
        }
    );
    assert_eq!(
        response(b"* NO [something odd) here\r\n"),
        Response::status(Status::No, None, "[something odd) here")
    );
    assert_eq!(response(b"* SEARCH\r\n"), Response::Search { found: vec![], mod_seq: None });
    assert_eq!(response(b"* 3 exists\r\n"), Response::Exists(3));
    assert_eq!(
        response(b"* XFOO (1)\r\n"),
        Response::Other(
            None,
            "XFOO".to_owned(),
            vec![scrinium_imap_wire::Value::List(vec![scrinium_imap_wire::Value::atom("1")])]
        )
    );
    let Response::List(listed) = response(b"* LIST (\\HasNoChildren) \"/\" {5}\r\nInbox\r\n") else {
        panic!("no LIST")
    };
    assert_eq!((listed.name.as_str(), listed.delimiter), ("INBOX", Some('/')));
    let Response::Thread(threads) = response(b"* THREAD (2)(3 6 (4 23)(44 7 96))\r\n") else {
        panic!("no THREAD")
    };
    assert_eq!(
        (threads[0].messages.as_slice(), threads[1].branches[1].messages.as_slice()),
        ([2].as_slice(), [44, 7, 96].as_slice())
    );
    let spaces = b"* NAMESPACE ((\"\" \"/\")) ((\"Users/\" \"/\")(\"~\" NIL)) NIL\r\n";
    let written = joined(&response(spaces).write(NameEncoding::Utf7, WriteOptions::SERVER));
    assert_eq!(written, spaces);
}
