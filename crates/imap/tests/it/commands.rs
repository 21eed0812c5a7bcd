//! Commands, as transcripts: what RFC 9051 and its extensions show.

use scrinium_imap::{ServerOptions, SystemFlags, Watching};

use crate::client::Connection;
use crate::world::World;

fn world(messages: u32) -> World {
    let mut world = World::new();
    for number in 1..=messages {
        let source = format!(
            "From: p{number}@x.test\r\nSubject: {}\r\nMessage-ID: <{number}@x>\r\nDate: {number} Nov 2026 10:00:00 +0000\r\n\r\nword{number}\r\n",
            if number % 2 == 0 { "Re: even" } else { "odd" }
        );
        world.add(
            "INBOX",
            source.as_bytes(),
            SystemFlags { seen: number % 3 == 0, ..SystemFlags::default() },
        );
    }
    world
}

/// Pairs of what a client says and what it is answered.
fn transcript(client: &mut Connection, world: &mut World, pairs: &[(&str, &str)]) {
    for (said, answered) in pairs {
        let answer = client.say(world, &format!("{said}\r\n"));
        assert_eq!(answer.trim_end().replace("\r\n", "\n"), *answered, "to {said}");
    }
}

#[test]
fn a_session_from_its_beginning() {
    let mut world = world(4);
    let mut client = Connection::with(ServerOptions::new("imap.test"), 0);
    let greeting = client.say(&mut world, "");
    assert!(greeting.starts_with("* OK [CAPABILITY IMAP4rev1 AUTH=SCRAM-SHA-256 AUTH=PLAIN AUTH=LOGIN IMAP4rev2 SASL-IR ID ENABLE LITERAL- IDLE] "), "{greeting}");
    transcript(
        &mut client,
        &mut world,
        &[
            ("a ID NIL", "* ID (\"name\" \"Scrinium\")\na OK Pleased to meet you"),
            (
                "b LOGIN ada wrong",
                "b NO [AUTHENTICATIONFAILED] The name or the password is wrong. Programs may need a password of their own",
            ),
        ],
    );
    let answer = client.say(&mut world, "c AUTHENTICATE PLAIN\r\nAGFkYQBzZWNyZXQ=\r\n");
    assert!(answer.starts_with("+ \r\nc OK [CAPABILITY IMAP4rev1 "), "{answer}");
    transcript(
        &mut client,
        &mut world,
        &[
            ("d LOGIN ada secret", "d BAD You have logged in already"),
            ("e FETCH 1 FLAGS", "e BAD Select a mailbox first"),
            (
                "f SELECT inbox",
                "* FLAGS (\\Answered \\Flagged \\Deleted \\Seen \\Draft)\n* 4 EXISTS\n* 0 RECENT\n* OK [UNSEEN 1] The first unseen message\n* OK [PERMANENTFLAGS (\\Answered \\Flagged \\Deleted \\Seen \\Draft \\*)] Flags that stay\n* OK [UIDNEXT 5] The next UID\n* OK [UIDVALIDITY 1001] UIDs are valid\n* OK [HIGHESTMODSEQ 18] The last change\n* OK [MAILBOXID (F1)] The mailbox's id\nf OK [READ-WRITE] Selected",
            ),
            ("g SELECT nowhere", "g NO [NONEXISTENT] There is no such mailbox"),
            ("h FETCH 1 FLAGS", "h BAD Select a mailbox first"),
            ("i LOGOUT", "* BYE Goodbye\ni OK Logged out"),
        ],
    );
    assert!(client.session.is_closed());
}

#[test]
fn mailboxes_are_listed_made_and_taken_away() {
    let mut world = world(2);
    let mut client = Connection::logged_in(&mut world, 0);
    transcript(
        &mut client,
        &mut world,
        &[
            ("a LIST \"\" \"\"", "* LIST (\\Noselect) \"/\" \"\"\na OK Done"),
            (
                "a LIST \"\" %",
                "* LIST (\\Noselect \\HasChildren) \"/\" Archive\n* LIST (\\HasNoChildren) \"/\" INBOX\n* LIST (\\HasNoChildren \\Sent) \"/\" Sent\n* LIST (\\HasNoChildren \\Trash) \"/\" Trash\na OK Done",
            ),
            ("a LIST \"Arch\" \"ive/*\"", "* LIST (\\HasNoChildren) \"/\" Archive/2026\na OK Done"),
            (
                "a LIST (SUBSCRIBED) \"\" *",
                "* LIST (\\HasNoChildren \\Subscribed) \"/\" Archive/2026\n* LIST (\\HasNoChildren \\Subscribed) \"/\" INBOX\na OK Done",
            ),
            (
                "a LIST (SUBSCRIBED RECURSIVEMATCH) \"\" % RETURN (SUBSCRIBED)",
                "* LIST (\\NonExistent \\HasChildren) \"/\" Archive (\"CHILDINFO\" (\"SUBSCRIBED\"))\n* LIST (\\HasNoChildren \\Subscribed) \"/\" INBOX\na OK Done",
            ),
            ("a LIST (RECURSIVEMATCH) \"\" %", "a BAD RECURSIVEMATCH stands with another option"),
            (
                "a LIST (SPECIAL-USE) \"\" *",
                "* LIST (\\HasNoChildren \\Sent) \"/\" Sent\n* LIST (\\HasNoChildren \\Trash) \"/\" Trash\na OK Done",
            ),
            (
                "a LIST \"\" (INBOX Sent) RETURN (STATUS (MESSAGES UNSEEN))",
                "* LIST (\\HasNoChildren) \"/\" INBOX\n* STATUS INBOX (MESSAGES 2 UNSEEN 2)\n* LIST (\\HasNoChildren \\Sent) \"/\" Sent\n* STATUS Sent (MESSAGES 0 UNSEEN 0)\na OK Done",
            ),
            ("a LSUB \"\" *", "* LSUB () \"/\" Archive/2026\n* LSUB () \"/\" INBOX\na OK Done"),
            ("a LSUB \"\" %", "* LSUB (\\Noselect) \"/\" Archive\n* LSUB () \"/\" INBOX\na OK Done"),
            ("a CREATE Gr&APw-n/", "a OK [MAILBOXID (F5)] Made"),
            ("a CREATE Gr&APw-n", "a NO [ALREADYEXISTS] It is there already"),
            ("a LIST \"\" G*", "* LIST (\\HasNoChildren) \"/\" Gr&APw-n\na OK Done"),
            ("a RENAME Gr&APw-n Blau", "a OK Done"),
            (
                "a STATUS Blau (MESSAGES UIDNEXT UIDVALIDITY SIZE HIGHESTMODSEQ MAILBOXID APPENDLIMIT)",
                "* STATUS Blau (MESSAGES 0 UIDNEXT 1 UIDVALIDITY 1005 SIZE 0 HIGHESTMODSEQ 17 MAILBOXID (F5) APPENDLIMIT 52428800)\na OK Done",
            ),
            ("a DELETE Blau", "a OK Done"),
            ("a DELETE Blau", "a NO [NONEXISTENT] There is no such mailbox"),
            (
                "a NAMESPACE",
                "* NAMESPACE ((\"\" \"/\")) ((\"Users/\" \"/\")) ((\"Databases/\" \"/\"))\na OK Done",
            ),
            ("a GETQUOTAROOT INBOX", "* QUOTAROOT INBOX \"\"\n* QUOTA \"\" (STORAGE 12 1000)\na OK Done"),
            ("a MYRIGHTS INBOX", "* MYRIGHTS INBOX lrswipkxtea\na OK Done"),
            ("a SETACL INBOX bob lrz", "a BAD A right is not known"),
            ("a SETACL INBOX bob lr", "a OK Done"),
            ("a GETACL INBOX", "* ACL INBOX ada lrswipkxtea bob lr\na OK Done"),
            ("a SETMETADATA INBOX (/shared/comment \"a note\")", "a OK Done"),
            (
                "a GETMETADATA INBOX (/shared/comment /private/x)",
                "* METADATA INBOX (/shared/comment \"a note\" /private/x NIL)\na OK Done",
            ),
            ("a GETMETADATA (MAXSIZE 2) INBOX /shared/comment", "a OK [METADATA LONGENTRIES 6] Done"),
            ("a GETMETADATA INBOX comment", "a BAD The name of an entry is not valid"),
        ],
    );
}

#[test]
fn searches_find_what_they_say() {
    let mut world = world(6);
    let mut client = Connection::selected(&mut world, 0);
    transcript(
        &mut client,
        &mut world,
        &[
            ("a SEARCH UNSEEN", "* SEARCH 1 2 4 5\na OK Found"),
            ("a SEARCH NOT SEEN 2:9", "* SEARCH 2 4 5\na OK Found"),
            ("a SEARCH OR FROM p1@ TEXT word6", "* SEARCH 1 6\na OK Found"),
            ("a SEARCH HEADER Message-ID \"\" SUBJECT EVEN", "* SEARCH 2 4 6\na OK Found"),
            ("a SEARCH KEYWORD $Junk", "* SEARCH\na OK Found"),
            (
                "a SEARCH CHARSET KOI8-R TEXT x",
                "a NO [BADCHARSET (US-ASCII UTF-8)] The character set is not known",
            ),
            (
                "a SEARCH SENTSINCE 3-Nov-2026 SENTBEFORE 5-Nov-2026 ON 26-Nov-2026",
                "* SEARCH 3 4\na OK Found",
            ),
            ("a SEARCH YOUNGER 60 OLDER 0", "* SEARCH 1 2 3 4 5 6\na OK Found"),
            ("a SEARCH MODSEQ 18 UID 5:*", "* SEARCH 5 6 (MODSEQ 20)\na OK Found"),
            ("a SEARCH RETURN () UNSEEN", "* ESEARCH (TAG \"a\") ALL 1:2,4:5\na OK Found"),
            (
                "a UID SEARCH RETURN (MIN MAX COUNT ALL) UNSEEN",
                "* ESEARCH (TAG \"a\") UID ALL 1:2,4:5 MIN 1 MAX 5 COUNT 4\na OK Found",
            ),
            (
                "a SEARCH RETURN (MIN MAX) UNSEEN MODSEQ 1",
                "* ESEARCH (TAG \"a\") MIN 1 MAX 5 MODSEQ 19\na OK Found",
            ),
            ("a SEARCH RETURN (COUNT) DELETED", "* ESEARCH (TAG \"a\") COUNT 0\na OK Found"),
            ("a SEARCH RETURN (PARTIAL 2:3) UNSEEN", "* ESEARCH (TAG \"a\") PARTIAL (2:3 2,4)\na OK Found"),
            (
                "a SEARCH RETURN (PARTIAL -1:-2) UNSEEN",
                "* ESEARCH (TAG \"a\") PARTIAL (-1:-2 4:5)\na OK Found",
            ),
            ("a SEARCH RETURN (PARTIAL 9:10) UNSEEN", "* ESEARCH (TAG \"a\") PARTIAL (9:10 NIL)\na OK Found"),
            ("a SEARCH RETURN (SAVE) UNSEEN", "a OK Found"),
            (
                "a FETCH $ (UID)",
                "* 1 FETCH (UID 1)\n* 2 FETCH (UID 2)\n* 4 FETCH (UID 4)\n* 5 FETCH (UID 5)\na OK Fetched",
            ),
            ("a SEARCH RETURN (SAVE MAX) $ SMALLER 1000", "* ESEARCH (TAG \"a\") MAX 5\na OK Found"),
            ("a UID SEARCH UID $", "* SEARCH 5\na OK Found"),
            ("a SORT (REVERSE SUBJECT DATE) UTF-8 ALL", "* SORT 1 3 5 2 4 6\na OK Found"),
            (
                "a SORT RETURN (PARTIAL -1:-2) (DATE) UTF-8 ALL",
                "* ESEARCH (TAG \"a\") PARTIAL (-1:-2 5:6)\na OK Found",
            ),
            (
                "a UID SORT RETURN (ALL COUNT) (REVERSE DATE) UTF-8 UNSEEN",
                "* ESEARCH (TAG \"a\") UID ALL 5,4,2,1 COUNT 4\na OK Found",
            ),
            ("a THREAD ORDEREDSUBJECT UTF-8 ALL", "* THREAD (1 (3)(5))(2 (4)(6))\na OK Found"),
            ("a THREAD XYZ UTF-8 ALL", "a BAD The algorithm is not known"),
        ],
    );
}

#[test]
fn messages_are_stored_copied_moved_and_taken_away() {
    let mut world = world(6);
    let mut client = Connection::selected(&mut world, 0);
    transcript(
        &mut client,
        &mut world,
        &[
            (
                "a STORE 2 +FLAGS (\\Deleted $Work)",
                "* FLAGS (\\Answered \\Flagged \\Deleted \\Seen \\Draft $Work)\n* 2 FETCH (FLAGS (\\Deleted $Work))\na OK Stored",
            ),
            ("a STORE 3 +FLAGS.SILENT \\Deleted", "a OK Stored"),
            (
                "a UID STORE 5 (UNCHANGEDSINCE 1) +FLAGS.SILENT \\Deleted",
                "a OK [MODIFIED 5] Some messages had changed",
            ),
            (
                "a UID STORE 5 (UNCHANGEDSINCE 100) +FLAGS.SILENT (\\Flagged)",
                "* 5 FETCH (UID 5 MODSEQ (23))\na OK Stored",
            ),
            ("a UID EXPUNGE 3:9", "* 3 EXPUNGE\na OK [HIGHESTMODSEQ 24] Done"),
            ("a EXPUNGE", "* 2 EXPUNGE\na OK [HIGHESTMODSEQ 25] Done"),
            ("a COPY 1:2 nowhere", "a NO [TRYCREATE] There is no such mailbox; it can be made"),
            ("a COPY 1:2 Trash", "a OK [COPYUID 1004 1,4 1:2] Copied"),
            ("a COPY 99 Trash", "a OK Copied"),
            (
                "a UID MOVE 5:* Archive/2026",
                "* OK [COPYUID 1002 5:6 1:2] Moved\n* 4 EXPUNGE\n* 3 EXPUNGE\na OK [HIGHESTMODSEQ 30] Moved",
            ),
            ("a UID MOVE 77 Trash", "a OK [HIGHESTMODSEQ 30] Moved"),
            ("a CLOSE", "a OK Closed"),
            (
                "a EXAMINE Trash",
                "* FLAGS (\\Answered \\Flagged \\Deleted \\Seen \\Draft)\n* 2 EXISTS\n* 0 RECENT\n* OK [UNSEEN 1] The first unseen message\n* OK [PERMANENTFLAGS ()] Flags that stay\n* OK [UIDNEXT 3] The next UID\n* OK [UIDVALIDITY 1004] UIDs are valid\n* OK [HIGHESTMODSEQ 27] The last change\n* OK [MAILBOXID (F4)] The mailbox's id\na OK [READ-ONLY] Selected",
            ),
            ("a STORE 1 FLAGS ()", "a NO [READ-ONLY] The mailbox was opened to be read"),
            ("a EXPUNGE", "a NO [READ-ONLY] The mailbox was opened to be read"),
            ("a UNSELECT", "a OK Closed"),
        ],
    );
}

#[test]
fn messages_are_appended_together_and_replaced() {
    let mut world = world(1);
    let mut client = Connection::selected(&mut world, 0);
    let answer = client.say(
        &mut world,
        "a APPEND INBOX (\\Seen $x) \"17-Jul-1996 02:44:25 -0700\" {4+}\r\n1\r\n\n {3}\r\n2\r\n\r\n",
    );
    assert_eq!(answer, "+ Go on\r\n* 3 EXISTS\r\na OK [APPENDUID 1001 2:3] Stored\r\n");
    let answer = client.say(&mut world, "b FETCH 2 (FLAGS INTERNALDATE BODY[])\r\n");
    assert!(
        answer.contains(
            "* 2 FETCH (FLAGS (\\Seen $x) INTERNALDATE \"17-Jul-1996 02:44:25 -0700\" BODY[] {4}\r\n1\r\n\n)"
        ),
        "{answer}"
    );
    let answer = client.say(&mut world, "c UID REPLACE 2 INBOX (\\Draft) {5+}\r\nnew\r\n\r\n");
    assert_eq!(answer, "* OK [APPENDUID 1001 4] Replaced\r\n* 4 EXISTS\r\n* 2 EXPUNGE\r\nc OK Done\r\n");
    let answer = client.say(&mut world, "d APPEND INBOX {1+}\r\nx {0+}\r\n\r\n");
    assert_eq!(answer, "d NO A message cannot be empty\r\n");
    let answer = client.say(&mut world, "e APPEND INBOX \"no literal\"\r\n");
    assert_eq!(answer, "e BAD A message is sent as a literal\r\n");
    let answer = client.say(&mut world, "f APPEND {5}\r\nINBOX {1}\r\nx\r\ng APPEND INBOX UTF8 (~{1}\r\n");
    assert_eq!(
        answer,
        "+ Go on\r\n+ Go on\r\n* 4 EXISTS\r\nf OK [APPENDUID 1001 5] Stored\r\ng BAD Say ENABLE UTF8=ACCEPT first\r\n"
    );
}

#[test]
fn idle_tells_at_once() {
    let mut world = world(3);
    let mut client = Connection::selected(&mut world, 0);
    assert_eq!(client.session.watches(), Watching::Nothing);
    assert_eq!(client.say(&mut world, "a IDLE\r\n"), "+ idling\r\n");
    assert_eq!(client.session.watches(), Watching::Folder(1));
    world.add("INBOX", b"\r\n", SystemFlags::default());
    world.remove("INBOX", 2);
    world.flag("INBOX", 3, true);
    assert_eq!(
        client.wake(&mut world),
        "* 4 EXISTS\r\n* 3 FETCH (UID 3 FLAGS (\\Flagged \\Seen))\r\n* 2 EXPUNGE\r\n"
    );
    // A client that does not wait for the answer to DONE.
    assert_eq!(client.say(&mut world, "done\r\nb NOOP\r\n"), "a OK Done\r\nb OK Done\r\n");
    assert_eq!(client.say(&mut world, "c IDLE\r\nd NOOP\r\n"), "+ idling\r\nc BAD DONE ends IDLE\r\n");
}

#[test]
fn qresync_tells_what_has_gone_and_changed() {
    let mut world = world(4);
    world.remove("INBOX", 2);
    world.flag("INBOX", 3, true);
    let mut client = Connection::logged_in(&mut world, 0);
    transcript(
        &mut client,
        &mut world,
        &[
            ("a SELECT INBOX (QRESYNC (1001 18))", "a BAD ENABLE QRESYNC comes first"),
            ("a ENABLE QRESYNC X-NOTHING", "* ENABLED QRESYNC\na OK Done"),
        ],
    );
    let answer = client.say(&mut world, "a SELECT INBOX (QRESYNC (1001 18 1:4))\r\n");
    let tail = "* VANISHED (EARLIER) 2\r\n* 2 FETCH (UID 3 FLAGS (\\Flagged \\Seen) MODSEQ (20))\r\na OK [READ-WRITE] Selected\r\n";
    assert!(answer.ends_with(tail), "{answer}");
    let answer = client.say(&mut world, "a SELECT INBOX (QRESYNC (7 18 1:4))\r\n");
    assert!(answer.starts_with("* OK [CLOSED]") && !answer.contains("VANISHED"), "{answer}");
    transcript(
        &mut client,
        &mut world,
        &[
            (
                "b UID FETCH 1:* (FLAGS) (CHANGEDSINCE 18 VANISHED)",
                "* VANISHED (EARLIER) 2\n* 2 FETCH (UID 3 FLAGS (\\Flagged \\Seen) MODSEQ (20))\nb OK Fetched",
            ),
            (
                "b FETCH 1:* (FLAGS) (CHANGEDSINCE 18 VANISHED)",
                "b BAD VANISHED is for UID FETCH with CHANGEDSINCE, behind ENABLE QRESYNC",
            ),
            ("b STORE 1 +FLAGS (\\Deleted)", "* 1 FETCH (UID 1 FLAGS (\\Deleted) MODSEQ (21))\nb OK Stored"),
            ("b EXPUNGE", "* VANISHED 1\nb OK [HIGHESTMODSEQ 22] Done"),
        ],
    );
}

#[test]
fn rev2_has_no_recent_and_answers_searches_with_ranges() {
    let mut world = world(3);
    let mut client = Connection::logged_in(&mut world, 0);
    client.say(&mut world, "a ENABLE IMAP4rev2\r\n");
    client.say(&mut world, "a CREATE \"Gr\u{fc}n & Co\"\r\n");
    let answer = client.say(&mut world, "b SELECT INBOX\r\n");
    assert!(
        !answer.contains("RECENT")
            && !answer.contains("UNSEEN")
            && answer.contains("* LIST () \"/\" INBOX\r\n"),
        "{answer}"
    );
    let answer = client.say(&mut world, "c SEARCH ALL\r\nd LIST \"\" Gr*\r\n");
    assert!(answer.contains("* ESEARCH (TAG \"c\") ALL 1:3\r\n"), "{answer}");
    assert!(answer.contains("\"Gr\u{fc}n & Co\""), "{answer}");
}

#[test]
fn notify_tells_of_what_was_asked_for() {
    let mut world = world(1);
    let mut client = Connection::selected(&mut world, 0);
    let answer = client.say(&mut world, "a NOTIFY SET STATUS (selected (MessageNew (UID BODY.PEEK[HEADER.FIELDS (SUBJECT)]) MessageExpunge FlagChange)) (personal (MessageNew MailboxName))\r\n");
    assert!(
        answer.contains("* STATUS Sent (MESSAGES 0 UIDNEXT 1 UIDVALIDITY 1003 UNSEEN 0)")
            && answer.ends_with("a OK Done\r\n"),
        "{answer}"
    );
    assert_eq!(client.session.watches(), Watching::All);
    let mut other = Connection::logged_in(&mut world, 1);
    other.say(&mut world, "a CREATE New\r\n");
    world.add("INBOX", b"Subject: fresh\r\n\r\n", SystemFlags::default());
    world.flag("INBOX", 1, true);
    let answer = client.wake(&mut world);
    assert_eq!(answer, "* 2 EXISTS\r\n* 1 FETCH (UID 1 FLAGS (\\Flagged))\r\n* LIST (\\HasNoChildren) \"/\" New\r\n* 2 FETCH (UID 2 BODY[HEADER.FIELDS (SUBJECT)] {20}\r\nSubject: fresh\r\n\r\n)\r\n".replace("{20}", "{18}"));
    let answer = client.say(&mut world, "b NOTIFY SET (selected (MessageNew))\r\nc NOTIFY SET (personal (AnnotationChange))\r\nd NOTIFY NONE\r\n");
    assert!(
        answer.contains("b BAD") && answer.contains("c NO [BADEVENT (MessageNew ") && answer.contains("d OK"),
        "{answer}"
    );
    assert_eq!(client.session.watches(), Watching::Nothing);
}

#[test]
fn a_mailbox_that_is_gone_ends_the_session_and_ones_own_is_left() {
    let mut world = world(1);
    let mut client = Connection::selected(&mut world, 0);
    let mut other = Connection::selected(&mut world, 1);
    assert!(client.say(&mut world, "a DELETE INBOX\r\nb NOOP\r\n").ends_with("a OK Done\r\nb OK Done\r\n"));
    assert!(other.say(&mut world, "a NOOP\r\n").contains("* BYE"));
}

#[test]
fn batches_divide_a_folder_from_its_end() {
    let mut world = world(6);
    for _ in 0..600 {
        world.add("INBOX", b"\r\n", SystemFlags::default());
    }
    let mut client = Connection::selected(&mut world, 0);
    transcript(
        &mut client,
        &mut world,
        &[
            ("a UIDBATCHES 10", "a NO [TOOFEW] A batch has at least 500 messages"),
            ("a UIDBATCHES 500", "* UIDBATCHES (TAG \"a\") 606:107,106:1\na OK Done"),
            ("a UIDBATCHES 500 2:2", "* UIDBATCHES (TAG \"a\") 106:1\na OK Done"),
        ],
    );
}

#[test]
fn numbers_are_refused_after_uidonly() {
    let mut world = world(2);
    let mut options = ServerOptions::new("imap.test");
    options.hidden = scrinium_imap::CapabilitySet::NONE;
    let mut client = Connection::with(options, 0);
    client.say(&mut world, "");
    client.say(&mut world, "x LOGIN ada secret\r\nx ENABLE UIDONLY\r\nx SELECT INBOX\r\n");
    transcript(
        &mut client,
        &mut world,
        &[
            ("a FETCH 1 FLAGS", "a BAD [UIDREQUIRED] Messages have UIDs alone, after UIDONLY"),
            ("a UID FETCH 1 FLAGS", "* 1 UIDFETCH (FLAGS ())\na OK Fetched"),
            ("a UID STORE 1 FLAGS (\\Deleted)", "* 1 UIDFETCH (FLAGS (\\Deleted))\na OK Stored"),
            ("a EXPUNGE", "* VANISHED 1\na OK Done"),
        ],
    );
}
