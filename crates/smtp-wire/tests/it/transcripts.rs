//! Lines of sessions as they come, and what they mean.

use scrinium_smtp_wire::{
    Capabilities, Capability, Command, CommandError, EnhancedCode, ForwardPath, Mechanism, Reply,
    ReplyLimits, ReplyReader, ReversePath,
};

/// Lines of clients, and the same in this crate's own words.
const COMMANDS: &[(&str, &str)] = &[
    ("EHLO mail.example.test", "EHLO mail.example.test"),
    ("ehlo [192.0.2.7]", "EHLO [192.0.2.7]"),
    ("EHLO [IPv6:2001:DB8::7]", "EHLO [IPv6:2001:db8::7]"),
    ("EHLO Ada's computer", "EHLO Ada's computer"),
    ("EHLO desk_7", "EHLO desk_7"),
    ("LHLO gateway.test", "LHLO gateway.test"),
    ("mail from:<ada@example.test>", "MAIL FROM:<ada@example.test>"),
    (
        "MAIL FROM: <ada@example.test> SIZE=1000  BODY=8bitmime",
        "MAIL FROM:<ada@example.test> SIZE=1000 BODY=8BITMIME",
    ),
    ("MAIL FROM:<> RET=hdrs ENVID=QQ+2B314 ", "MAIL FROM:<> RET=HDRS ENVID=QQ+2B314"),
    ("MAIL FROM:<a@b.test> AUTH=<>", "MAIL FROM:<a@b.test> AUTH=<>"),
    ("MAIL FROM:<a@b.test> AUTH=c+2Bd@b.test", "MAIL FROM:<a@b.test> AUTH=c+2Bd@b.test"),
    ("MAIL FROM:<zoë@bücher.test> SMTPUTF8", "MAIL FROM:<zoë@bücher.test> SMTPUTF8"),
    ("MAIL FROM:<\"John Doe\"@example.test>", "MAIL FROM:<\"John Doe\"@example.test>"),
    ("MAIL FROM:<\"ada\"@example.test>", "MAIL FROM:<ada@example.test>"),
    ("MAIL FROM:<a..b.@example.test>", "MAIL FROM:<\"a..b.\"@example.test>"),
    ("RCPT TO:<@one.test,@two.test:eve@three.test>", "RCPT TO:<@one.test,@two.test:eve@three.test>"),
    ("RCPT TO:<postmaster>", "RCPT TO:<Postmaster>"),
    (
        "RCPT TO:<bob@b.test> NOTIFY=failure,SUCCESS ORCPT=rfc822;bob+2Bx@b.test",
        "RCPT TO:<bob@b.test> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;bob+2Bx@b.test",
    ),
    ("RCPT TO:<b@b.test> ORCPT=utf-8;zo\\x{EB}@b.test", "RCPT TO:<b@b.test> ORCPT=utf-8;zo\\x{EB}@b.test"),
    ("RCPT TO:<b@b.test> ORCPT=utf-8;zoë@b.test", "RCPT TO:<b@b.test> ORCPT=utf-8;zo\\x{EB}@b.test"),
    ("BDAT 1000 last", "BDAT 1000 LAST"),
    ("BDAT 0", "BDAT 0"),
    ("AUTH PLAIN AGFkYQBzZWNyZXQ=", "AUTH PLAIN AGFkYQBzZWNyZXQ="),
    ("AUTH login", "AUTH LOGIN"),
    ("AUTH EXTERNAL =", "AUTH EXTERNAL ="),
    ("noop", "NOOP"),
    ("VRFY ada", "VRFY ada"),
    ("quit ", "QUIT"),
];

const WRONG: &[(&str, u16)] = &[
    ("", 500),
    ("FOO", 500),
    ("MAILFROM:<a@b.test>", 500),
    ("EHLO", 501),
    ("MAIL", 501),
    ("MAIL TO:<a@b.test>", 501),
    ("MAIL FROM:a@b.test", 501),
    ("MAIL FROM:<a@b.test>SIZE=1", 501),
    ("RCPT TO:<>", 501),
    ("DATA now", 501),
    ("BDAT", 501),
    ("BDAT 5 FIRST", 501),
    ("BDAT -5", 501),
    ("STARTTLS please", 501),
    ("AUTH", 501),
    ("AUTH PLAIN !", 501),
    ("AUTH PLAIN AGFk YQBz", 501),
    ("VRFY", 501),
];

#[test]
fn commands_mean_what_they_say() {
    for (line, meant) in COMMANDS {
        let command = Command::parse(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(command.to_string(), *meant, "{line}");
    }
}

#[test]
fn wrong_commands_are_answered_with_their_code() {
    for (line, code) in WRONG {
        let error = Command::parse(line.as_bytes()).expect_err(line);
        assert_eq!(error.reply().code(), *code, "{line}");
    }
    assert_eq!(CommandError::Unknown.reply().enhanced(), Some(EnhancedCode::new(5, 5, 2)));
}

#[test]
fn what_an_envelope_says() {
    let Ok(Command::Mail(ReversePath::Path(from), parameters)) =
        Command::parse(b"MAIL FROM:<\"a\\\"b c\"@[192.0.2.1]> SIZE=10 ENVID=a+20b X-NEW=1")
    else {
        panic!("no MAIL")
    };
    assert_eq!((from.mailbox.local(), parameters.size_bytes), ("a\"b c", Some(10)));
    assert_eq!(parameters.envelope_id.as_deref(), Some("a b"));
    assert_eq!((parameters.other[0].keyword(), parameters.other[0].value()), ("X-NEW", Some("1")));
    let Ok(Command::Recipient(ForwardPath::Path(to), _)) = Command::parse(b"RCPT TO:<@x.test:b@c.test>")
    else {
        panic!("no RCPT")
    };
    assert_eq!((to.route.len(), to.mailbox.to_string().as_str()), (1, "b@c.test"));
}

#[test]
fn a_password_is_not_in_a_command_as_it_is_logged() {
    let command = Command::parse(b"AUTH PLAIN AGFkYQBzZWNyZXQ=").unwrap();
    let shown = format!("{command:?}");
    assert!(!shown.contains("AGFk") && !shown.contains("secret"), "{shown}");
    let Command::Authenticate(mechanism, response) = command else { panic!("no AUTH") };
    assert_eq!((mechanism.as_str(), response.unwrap().0.as_slice()), ("PLAIN", b"\0ada\0secret".as_slice()));
}

fn read(lines: &[&str]) -> Reply {
    let mut reader = ReplyReader::new(ReplyLimits::default());
    let mut replies = lines.iter().filter_map(|line| reader.line(line.as_bytes()).unwrap());
    replies.next().unwrap()
}

#[test]
fn what_a_server_offers() {
    let reply = read(&[
        "250-mx.example.test greets you",
        "250-PIPELINING",
        "250-size 35882577",
        "250-AUTH PLAIN LOGIN",
        "250-AUTH=LOGIN",
        "250-LIMITS RCPTMAX=100 OTHER=1",
        "250-X-SOMETHING a b",
        "250 8BITMIME",
    ]);
    let offers = Capabilities::of(&reply);
    assert!(offers.has(&Capability::Pipelining) && offers.has(&Capability::EightBitMime));
    assert!(!offers.has(&Capability::StartTls));
    assert_eq!(offers.size_limit(), Some(35_882_577));
    assert!(offers.can_authenticate("plain") && !offers.can_authenticate("XOAUTH2"));
    assert!(offers.has(&Capability::Auth(vec![Mechanism::parse(b"LOGIN").unwrap()])));
    assert!(offers.has(&Capability::Other("X-SOMETHING".to_owned(), "a b".to_owned())));
}

#[test]
fn what_a_refusal_says() {
    let reply = read(&["550-5.7.1 Not from here,", "550 5.7.1 and not today"]);
    assert_eq!((reply.code(), reply.enhanced()), (550, Some(EnhancedCode::new(5, 7, 1))));
    assert_eq!(reply.text(), "Not from here, and not today");
    assert!(reply.is_permanent() && !reply.is_transient() && !reply.is_success());
    // A code of another class than the reply's is text.
    assert_eq!(read(&["250 5.7.1 odd"]).enhanced(), None);
    assert_eq!(read(&["250"]).text(), "");
    let mut sent = Vec::new();
    Reply::with_enhanced(452, EnhancedCode::new(4, 2, 2), "The mailbox is full;\ntry again").write(&mut sent);
    assert_eq!(sent, b"452-4.2.2 The mailbox is full;\r\n452 4.2.2 try again\r\n");
}

#[test]
fn only_some_commands_may_be_followed_at_once() {
    let ends = |line: &str| Command::parse(line.as_bytes()).unwrap().ends_group();
    for line in ["MAIL FROM:<>", "RCPT TO:<a@b.test>", "RSET", "BDAT 5"] {
        assert!(!ends(line), "{line}");
    }
    for line in ["EHLO a", "DATA", "STARTTLS", "AUTH PLAIN", "QUIT", "NOOP", "VRFY a"] {
        assert!(ends(line), "{line}");
    }
}
