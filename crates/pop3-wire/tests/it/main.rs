//! POP3 on the wire: what is written is read back, whatever the bytes nothing breaks, and transcripts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scrinium_pop3_wire::{
    Capability, Command, CommandError, Credential, DotLine, Expire, InitialResponse, LineEnds, LineScanner,
    ListEntry, LoginDelay, MailboxSize, Mechanism, MessageNumber, Response, ResponseCode, UniqueId,
    UniqueIdEntry, Word, dot_line, parse_list_entry, parse_mailbox_size, parse_unique_id_entry,
};

fn word() -> impl Strategy<Value = Word> {
    "[!-~é]{1,20}".prop_map(|text| Word::new(&text).unwrap())
}

fn command() -> impl Strategy<Value = Command> {
    let number = || any::<MessageNumber>();
    let mechanism = || "[A-Z0-9_-]{1,20}".prop_map(|name| Mechanism::parse(name.as_bytes()).unwrap());
    let response = option::of(vec(any::<u8>(), 0..40).prop_map(InitialResponse));
    prop_oneof![
        "[!-~é]([ -~]{0,20}[!-~])?".prop_map(|name| Command::User(Credential::new(&name).unwrap())),
        "[ -~é]{1,20}".prop_map(|password| Command::Pass(Credential::new(&password).unwrap())),
        (word(), word()).prop_map(|(name, digest)| Command::Apop(name, digest)),
        (mechanism(), response).prop_map(|(mechanism, response)| Command::Auth(mechanism, response)),
        prop::sample::select(vec![
            Command::AuthMechanisms,
            Command::Capabilities,
            Command::StartTls,
            Command::Utf8,
            Command::Stat,
            Command::Noop,
            Command::Reset,
            Command::Quit,
        ]),
        option::of(word()).prop_map(Command::Language),
        option::of(number()).prop_map(Command::List),
        option::of(number()).prop_map(Command::UniqueIds),
        number().prop_map(Command::Retrieve),
        (number(), any::<u32>()).prop_map(|(number, lines)| Command::Top(number, lines)),
        number().prop_map(Command::Delete),
    ]
}

fn written(command: &Command) -> Vec<u8> {
    let mut out = Vec::new();
    command.write(&mut out);
    out
}

/// The lines of what was sent, which comes in pieces.
fn lines(sent: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let mut scanner = LineScanner::new(8192, LineEnds::Strict);
    let (mut buffer, mut lines) = (Vec::new(), Vec::new());
    for piece in sent.chunks(piece) {
        buffer.extend_from_slice(piece);
        while let Some(line) = scanner.find(&buffer).unwrap() {
            let (text, consumed) = (line.text.to_vec(), line.consumed);
            lines.push(text);
            buffer.drain(..consumed);
        }
    }
    assert!(buffer.is_empty());
    lines
}

fn response() -> impl Strategy<Value = Response> {
    let code = prop_oneof![
        prop::sample::select(vec![
            ResponseCode::InUse,
            ResponseCode::LoginDelay,
            ResponseCode::SystemTemporary,
            ResponseCode::SystemPermanent,
            ResponseCode::Auth,
            ResponseCode::Utf8,
        ]),
        "X-[A-Z/]{1,9}".prop_map(ResponseCode::Other),
    ];
    prop_oneof![
        "[ -~é]{0,40}".prop_map(|text| Response::ok(&text)),
        "([!-Z^-~é][ -~é]{0,40})?".prop_map(|text| Response::err(None, &text)),
        (code, "[ -~é]{0,40}").prop_map(|(code, text)| Response::err(Some(code), &text)),
        "[A-Za-z0-9+/=]{0,20}".prop_map(Response::Challenge),
    ]
}

fn capability() -> impl Strategy<Value = Capability> {
    let names = vec("[A-Z0-9-]{1,12}".prop_map(|name| Mechanism::parse(name.as_bytes()).unwrap()), 0..4);
    prop_oneof![
        prop::sample::select(vec![
            Capability::Top,
            Capability::User,
            Capability::ResponseCodes,
            Capability::AuthResponseCode,
            Capability::Pipelining,
            Capability::UniqueIds,
            Capability::StartTls,
            Capability::Language,
            Capability::Expire(Expire::Never),
        ]),
        names.prop_map(Capability::Sasl),
        any::<(u32, bool)>()
            .prop_map(|(seconds, by_user)| Capability::LoginDelay(LoginDelay { seconds, by_user })),
        any::<(u32, bool)>().prop_map(|(days, by_user)| Capability::Expire(Expire::Days(days, by_user))),
        any::<bool>().prop_map(Capability::Utf8),
        "[a-z]{1,9}( [a-z]{1,9})?".prop_map(Capability::Implementation),
        ("X-[A-Z]{1,9}", "[a-z]{0,9}").prop_map(|(keyword, rest)| Capability::Other(keyword, rest)),
    ]
}

proptest! {
    #[test]
    fn commands_are_read_back(commands in vec(command(), 1..5), piece in 1_usize..50) {
        let sent: Vec<u8> = commands.iter().flat_map(written).collect();
        let read: Result<Vec<Command>, _> =
            lines(&sent, piece).iter().map(|line| Command::parse(line)).collect();
        prop_assert_eq!(read, Ok(commands));
    }

    #[test]
    fn responses_are_read_back(responses in vec(response(), 1..5), piece in 1_usize..50) {
        let mut sent = Vec::new();
        responses.iter().for_each(|response| response.write(&mut sent));
        let read: Result<Vec<Response>, _> =
            lines(&sent, piece).iter().map(|line| Response::parse(line)).collect();
        prop_assert_eq!(read, Ok(responses));
    }

    #[test]
    fn capabilities_are_read_back(capability in capability()) {
        prop_assert_eq!(Capability::parse(capability.line().as_bytes()), Some(capability));
    }

    #[test]
    fn entries_are_read_back(number in any::<MessageNumber>(), bytes in any::<u64>(), messages in any::<u32>(), id in "[!-~]{1,70}") {
        let listed = ListEntry { number, bytes };
        prop_assert_eq!(parse_list_entry(listed.to_string().as_bytes()), Some(listed));
        let size = MailboxSize { messages, bytes };
        prop_assert_eq!(parse_mailbox_size(size.to_string().as_bytes()), Some(size));
        let unique = UniqueIdEntry { number, id: UniqueId::new(&id).unwrap() };
        prop_assert_eq!(parse_unique_id_entry(unique.to_string().as_bytes()), Some(unique));
    }

    #[test]
    fn any_text_of_a_response_is_one_line(text in any::<String>()) {
        for response in [Response::ok(&text), Response::err(Some(ResponseCode::Auth), &text), Response::Ok(text.clone())] {
            let mut sent = Vec::new();
            response.write(&mut sent);
            prop_assert_eq!(lines(&sent, 99).len(), 1);
        }
    }

    #[test]
    fn any_line_is_read_back_or_an_error(line in vec(any::<u8>(), 0..100), command in command(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut changed = written(&command);
        let at = at.index(changed.len() - 2);
        changed[at] = byte;
        for line in [line.as_slice(), &changed[..changed.len() - 2]] {
            if let Ok(command) = Command::parse(line) {
                let sent = written(&command);
                prop_assert_eq!(lines(&sent, 99).len(), 1);
                prop_assert_eq!(Command::parse(&sent[..sent.len() - 2]), Ok(command));
            }
            let _ = (Response::parse(line), Capability::parse(line), parse_list_entry(line));
            let _ = (parse_unique_id_entry(line), parse_mailbox_size(line), dot_line(line));
        }
    }
}

#[test]
fn commands_mean_what_they_say() {
    for (line, meant) in [
        ("user ada", "USER ada"),
        ("USER  ada lovelace ", "USER ada lovelace"),
        ("PASS  two spaces ", "PASS  two spaces "),
        ("list", "LIST"),
        ("LIST 007", "LIST 7"),
        ("top 1 0", "TOP 1 0"),
        ("AUTH", "AUTH"),
        ("AUTH plain =", "AUTH PLAIN ="),
        ("UIDL 4294967295", "UIDL 4294967295"),
        ("quit ", "QUIT"),
    ] {
        let command = Command::parse(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(String::from_utf8(written(&command)).unwrap(), format!("{meant}\r\n"), "{line}");
    }
}

#[test]
fn wrong_commands_say_why() {
    for (line, why) in [
        (b"".as_slice(), CommandError::Unknown),
        (b"FETCH 1", CommandError::Unknown),
        (b"RETR", CommandError::Count),
        (b"RETR 1 2", CommandError::Count),
        (b"RETR 0", CommandError::Number),
        (b"RETR -1", CommandError::Number),
        (b"RETR +1", CommandError::Number),
        (b"RETR 4294967296", CommandError::Number),
        (b"TOP 1", CommandError::Count),
        (b"TOP 1 -5", CommandError::Number),
        (b"PASS", CommandError::Count),
        (b"QUIT now", CommandError::Count),
        (b"NOOP\rQUIT", CommandError::Argument),
        (b"USER a\0b", CommandError::Argument),
        (b"USER \xff", CommandError::Argument),
    ] {
        assert_eq!(Command::parse(line), Err(why), "{}", String::from_utf8_lossy(line));
        assert!(!why.response().is_ok());
    }
    assert!(matches!(Command::parse(b"AUTH PLAIN !"), Err(CommandError::Sasl(_))));
}

#[test]
fn a_password_is_not_in_a_command_as_it_is_logged() {
    for line in ["PASS secret", "AUTH PLAIN AGFkYQBzZWNyZXQ="] {
        let shown = format!("{:?}", Command::parse(line.as_bytes()).unwrap());
        assert!(!shown.contains("secret") && !shown.contains("115"), "{shown}");
    }
}

#[test]
fn a_session_of_a_server() {
    assert_eq!(Response::parse(b"+OK"), Ok(Response::Ok(String::new())));
    assert_eq!(
        Response::parse(b"-ERR [in-use] Somebody is reading."),
        Ok(Response::Err(Some(ResponseCode::InUse), "Somebody is reading.".to_owned()))
    );
    assert_eq!(Response::parse(b"-ERR [not a code"), Ok(Response::Err(None, "[not a code".to_owned())));
    assert_eq!(Response::parse(b"+ Zm9v"), Ok(Response::Challenge("Zm9v".to_owned())));
    assert!(Response::parse(b"* OK hello").is_err());
    let entry = parse_list_entry(b"2 1200 extra").unwrap();
    assert_eq!((entry.number.get(), entry.bytes), (2, 1200));
    for wrong in [b"0 5".as_slice(), b"2", b"x 1", b"2 -1", b""] {
        assert_eq!(parse_list_entry(wrong), None);
    }
    assert_eq!(UniqueId::new(&"x".repeat(71)), None);
    assert_eq!(Capability::parse(b"EXPIRE 30 USER"), Some(Capability::Expire(Expire::Days(30, true))));
    assert_eq!(Capability::parse(b"LOGIN-DELAY soon"), None);
    assert_eq!(
        (dot_line(b"."), dot_line(b"..x"), dot_line(b"x")),
        (DotLine::End, DotLine::Text(b".x"), DotLine::Text(b"x"))
    );
}
