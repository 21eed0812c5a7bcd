//! ManageSieve on the wire: what is written is read back, whatever the bytes nothing breaks, and transcripts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scrinium_managesieve_wire::{
    Capability, ClientLine, Command, CommandError, Frame, FrameError, FrameLimits, FrameReader, FrameStep,
    InitialResponse, ListedScript, Mechanism, ResponseCode, ScriptName, ServerLine, Speaker, Status,
    StatusKind, Token, write_sasl_challenge, write_sasl_line, write_text,
};

const LIMITS: FrameLimits =
    FrameLimits { line_bytes: 8_192, literal_bytes: 65_536, dropped_bytes: 1 << 20, literals: 4 };

/// The frames of what was sent, which comes in pieces.
fn steps(sent: &[u8], piece: usize, speaker: Speaker) -> Result<Vec<FrameStep>, FrameError> {
    let mut reader = FrameReader::new(LIMITS, speaker);
    let mut found = Vec::new();
    for mut piece in sent.chunks(piece) {
        loop {
            let (taken, step) = reader.read(piece)?;
            piece = &piece[taken..];
            if step == FrameStep::More {
                break;
            }
            found.push(step);
        }
    }
    assert!(reader.is_idle(), "something is left over");
    Ok(found)
}

fn frames(sent: &[u8], piece: usize, speaker: Speaker) -> Vec<Frame> {
    let steps = steps(sent, piece, speaker).unwrap();
    let frames = steps.into_iter().map(|step| match step {
        FrameStep::Frame(frame) => frame,
        other => panic!("{other:?}"),
    });
    frames.collect()
}

fn name() -> impl Strategy<Value = ScriptName> {
    "[^\\p{C}\\u{2028}\\u{2029}]{1,40}".prop_map(|name| ScriptName::new(&name).unwrap())
}

fn mechanism() -> impl Strategy<Value = Mechanism> {
    "[A-Z0-9_-]{1,20}".prop_map(|name| Mechanism::parse(name.as_bytes()).unwrap())
}

fn command() -> impl Strategy<Value = Command> {
    let script = || vec(any::<u8>(), 0..300);
    let response = option::of(vec(any::<u8>(), 0..40).prop_map(InitialResponse));
    prop_oneof![
        (mechanism(), response).prop_map(|(mechanism, response)| Command::Authenticate(mechanism, response)),
        prop::sample::select(vec![
            Command::StartTls,
            Command::Logout,
            Command::Capability,
            Command::ListScripts,
            Command::Unauthenticate,
        ]),
        (name(), any::<u32>()).prop_map(|(name, bytes)| Command::HaveSpace(name, bytes)),
        (name(), script()).prop_map(|(name, script)| Command::PutScript(name, script)),
        option::of(name()).prop_map(Command::SetActive),
        name().prop_map(Command::GetScript),
        name().prop_map(Command::DeleteScript),
        (name(), name()).prop_map(|(from, to)| Command::RenameScript(from, to)),
        script().prop_map(Command::CheckScript),
        option::of(any::<String>()).prop_map(Command::Noop),
    ]
}

fn code() -> impl Strategy<Value = ResponseCode> {
    prop_oneof![
        prop::sample::select(vec![
            ResponseCode::AuthTooWeak,
            ResponseCode::EncryptNeeded,
            ResponseCode::Quota,
            ResponseCode::QuotaMaxScripts,
            ResponseCode::QuotaMaxSize,
            ResponseCode::TransitionNeeded,
            ResponseCode::TryLater,
            ResponseCode::Active,
            ResponseCode::NonExistent,
            ResponseCode::AlreadyExists,
            ResponseCode::Warnings,
        ]),
        any::<String>().prop_map(ResponseCode::Referral),
        any::<String>().prop_map(ResponseCode::Tag),
        vec(any::<u8>(), 0..40).prop_map(ResponseCode::Sasl),
        ("X[A-Z/-]{1,9}", option::of(any::<String>()))
            .prop_map(|(word, text)| ResponseCode::Other(word, text)),
    ]
}

fn status() -> impl Strategy<Value = Status> {
    let kind = prop::sample::select(vec![StatusKind::Ok, StatusKind::No, StatusKind::Bye]);
    (kind, option::of(code()), option::of(any::<String>())).prop_map(|(kind, code, text)| Status {
        kind,
        code,
        text,
    })
}

fn capability() -> impl Strategy<Value = Capability> {
    let words = || vec("[a-z;-]{1,12}", 0..5);
    prop_oneof![
        any::<String>().prop_map(Capability::Implementation),
        vec(mechanism(), 0..4).prop_map(Capability::Sasl),
        words().prop_map(Capability::Sieve),
        words().prop_map(Capability::Notify),
        any::<u32>().prop_map(Capability::MaxRedirects),
        prop::sample::select(vec![
            Capability::StartTls,
            Capability::Unauthenticate,
            Capability::Language("en".to_owned()),
            Capability::Version("1.0".to_owned()),
        ]),
        any::<String>().prop_map(Capability::Owner),
        ("X-[A-Z]{1,9}", option::of(any::<String>()))
            .prop_map(|(name, value)| Capability::Other(name, value)),
    ]
}

fn data(frame: &Frame) -> Vec<Token> {
    match ServerLine::parse(frame) {
        Ok(ServerLine::Data(tokens)) => tokens,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn commands_are_read_back(commands in vec(command(), 1..5), piece in 1_usize..50) {
        let mut sent = Vec::new();
        commands.iter().for_each(|command| command.write(&mut sent));
        let read: Result<Vec<Command>, _> = frames(&sent, piece, Speaker::Client).iter().map(Command::parse).collect();
        prop_assert_eq!(read, Ok(commands));
    }

    #[test]
    fn answers_are_read_back(statuses in vec(status(), 1..4), capabilities in vec(capability(), 0..4), scripts in vec((name(), any::<bool>()), 0..4), text in vec(any::<u8>(), 0..200), piece in 1_usize..50) {
        let mut sent = Vec::new();
        statuses.iter().for_each(|status| status.write(&mut sent));
        capabilities.iter().for_each(|capability| capability.write(&mut sent));
        let scripts: Vec<ListedScript> = scripts.into_iter().map(|(name, is_active)| ListedScript { name, is_active }).collect();
        scripts.iter().for_each(|script| script.write(&mut sent));
        write_text(&text, &mut sent);
        write_sasl_challenge(&text, &mut sent);
        let found = frames(&sent, piece, Speaker::Server);
        let mut found = found.iter();
        for status in statuses {
            prop_assert_eq!(ServerLine::parse(found.next().unwrap()), Ok(ServerLine::Status(status)));
        }
        for capability in capabilities {
            prop_assert_eq!(Capability::of(&data(found.next().unwrap())), Some(capability));
        }
        for script in scripts {
            prop_assert_eq!(ListedScript::of(&data(found.next().unwrap())), Some(script));
        }
        prop_assert_eq!(data(found.next().unwrap()), vec![Token::Text(text.clone())]);
        prop_assert_eq!(found.next().unwrap().sasl_line(), Ok(ClientLine::Response(text)));
        prop_assert_eq!(found.next(), None);
    }

    #[test]
    fn exchanges_are_read_back(response in option::of(vec(any::<u8>(), 0..2_000)), piece in 1_usize..50) {
        let line = response.map_or(ClientLine::Cancel, ClientLine::Response);
        let mut sent = Vec::new();
        write_sasl_line(&line, &mut sent);
        prop_assert_eq!(frames(&sent, piece, Speaker::Client)[0].sasl_line(), Ok(line));
    }

    #[test]
    fn any_bytes_are_frames_or_an_error(bytes in vec(any::<u8>(), 0..100), command in command(), at in any::<prop::sample::Index>(), byte in any::<u8>(), piece in 1_usize..9) {
        let mut changed = Vec::new();
        command.write(&mut changed);
        let at = at.index(changed.len());
        changed[at] = byte;
        for bytes in [bytes, changed] {
            for speaker in [Speaker::Client, Speaker::Server] {
                let mut reader = FrameReader::new(LIMITS, speaker);
                let mut rest = &bytes[..];
                while let Ok((taken, step)) = reader.read(&rest[..piece.min(rest.len())]) {
                    rest = &rest[taken..];
                    if let FrameStep::Frame(frame) = step {
                        let _ = (Command::parse(&frame), ServerLine::parse(&frame), frame.sasl_line());
                    } else if rest.is_empty() {
                        break;
                    }
                }
            }
        }
    }
}

fn command_of(line: &str) -> Result<Command, CommandError> {
    Command::parse(&frames(format!("{line}\r\n").as_bytes(), 9, Speaker::Client)[0])
}

#[test]
fn commands_mean_what_they_say() {
    let name = |name: &str| ScriptName::new(name).unwrap();
    for (line, meant) in [
        ("capability", Command::Capability),
        ("Logout", Command::Logout),
        ("HAVESPACE  \"a \\\"b\\\\\" 007", Command::HaveSpace(name("a \"b\\"), 7)),
        ("PUTSCRIPT \"a\" \"keep;\"", Command::PutScript(name("a"), b"keep;".to_vec())),
        ("PUTSCRIPT {1+}\r\na {7+}\r\nkeep;\r\n", Command::PutScript(name("a"), b"keep;\r\n".to_vec())),
        ("PUTSCRIPT \"{5+}\" \"x\"", Command::PutScript(name("{5+}"), b"x".to_vec())),
        ("CHECKSCRIPT {0+}\r\n", Command::CheckScript(Vec::new())),
        ("SETACTIVE \"\"", Command::SetActive(None)),
        ("SETACTIVE \"a\"", Command::SetActive(Some(name("a")))),
        ("RENAMESCRIPT \"a\" \"b\"", Command::RenameScript(name("a"), name("b"))),
        ("NOOP \"tag\"", Command::Noop(Some("tag".to_owned()))),
        ("noop", Command::Noop(None)),
        (
            "AUTHENTICATE \"plain\" \"AGFkYQB4\"",
            Command::Authenticate(
                Mechanism::parse(b"PLAIN").unwrap(),
                Some(InitialResponse(b"\0ada\0x".to_vec())),
            ),
        ),
    ] {
        assert_eq!(command_of(line), Ok(meant), "{line}");
    }
}

#[test]
fn wrong_commands_say_why() {
    let long = format!("GETSCRIPT \"{}\"", "x".repeat(1_025));
    for (line, why) in [
        ("", CommandError::Grammar),
        ("\"CAPABILITY\"", CommandError::Grammar),
        ("FETCH", CommandError::Unknown),
        ("GETSCRIPT", CommandError::Arguments),
        ("GETSCRIPT a", CommandError::Arguments),
        ("GETSCRIPT \"a\" \"b\"", CommandError::Arguments),
        ("GETSCRIPT \"\"", CommandError::Name),
        ("GETSCRIPT \"a\u{7}\"", CommandError::Name),
        ("GETSCRIPT \"a", CommandError::Grammar),
        ("GETSCRIPT \"\\a\"", CommandError::Grammar),
        ("GETSCRIPT {3}", CommandError::Grammar),
        ("GETSCRIPT {3+}x", CommandError::Grammar),
        (&long, CommandError::Grammar),
        ("HAVESPACE \"a\" 99999999999", CommandError::Grammar),
        ("HAVESPACE \"a\" -1", CommandError::Arguments),
        ("LOGOUT now", CommandError::Arguments),
    ] {
        assert_eq!(command_of(line), Err(why), "{line}");
        assert_eq!(why.status().kind, StatusKind::No);
    }
    assert!(matches!(command_of("AUTHENTICATE \"PLAIN\" \"!\""), Err(CommandError::Sasl(_))));
    assert!(matches!(command_of("AUTHENTICATE \"a b\""), Err(CommandError::Sasl(_))));
}

#[test]
fn a_script_that_is_too_long_is_never_read_as_commands() {
    let script = "LOGOUT\r\n".repeat(10_000);
    let sent = format!("PUTSCRIPT \"a\" {{{}+}}\r\n{script}\r\nNOOP\r\n", script.len());
    for piece in [1, 7, 100_000] {
        let found = steps(sent.as_bytes(), piece, Speaker::Client).unwrap();
        let [FrameStep::TooLong(refused), FrameStep::Frame(noop)] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(refused.tokens().unwrap()[0], Token::Word("PUTSCRIPT".to_owned()));
        assert_eq!(Command::parse(noop), Ok(Command::Noop(None)));
    }
}

#[test]
fn limits_hold_before_memory_is_used() {
    let long = "x".repeat(8_193);
    for (sent, why) in [
        (format!("{long}\r\n"), FrameError::LineTooLong(8_192)),
        ("PUTSCRIPT \"a\" {4000000000+}\r\n".to_owned(), FrameError::LiteralTooLong(1 << 20)),
        ("X {0+}\r\n {0+}\r\n {0+}\r\n {0+}\r\n {0+}\r\n\r\n".to_owned(), FrameError::TooManyLiterals(4)),
        ("NOOP\n".to_owned(), FrameError::BareLineFeed),
    ] {
        let mut reader = FrameReader::new(LIMITS, Speaker::Client);
        let mut rest = sent.as_bytes();
        let found = loop {
            match reader.read(rest) {
                Ok((taken, _)) => rest = &rest[taken..],
                Err(error) => break error,
            }
        };
        assert_eq!(found, why);
    }
}

#[test]
fn a_session_as_a_client_sees_it() {
    let sent = b"\"IMPLEMENTATION\" \"Example1 ManageSieved v001\"\r\n\"VERSION\" \"1.0\"\r\n\"SASL\" \"PLAIN SCRAM-SHA-256\"\r\n\
        \"STARTTLS\"\r\nOK\r\n{7}\r\nkeep;\r\n\r\nok \"Done.\"\r\nNO (QUOTA/MAXSIZE) {11}\r\nline 1\r\nNo.\r\nBYE (REFERRAL \"sieve://x\") \"Go.\"\r\n";
    let found = frames(sent, 5, Speaker::Server);
    assert_eq!(Capability::of(&data(&found[3])), Some(Capability::StartTls));
    let Some(Capability::Sasl(mechanisms)) = Capability::of(&data(&found[2])) else { panic!() };
    assert_eq!(mechanisms.len(), 2);
    assert_eq!(data(&found[5]), [Token::Text(b"keep;\r\n".to_vec())]);
    let status = |frame: &Frame| match ServerLine::parse(frame) {
        Ok(ServerLine::Status(status)) => status,
        other => panic!("{other:?}"),
    };
    assert_eq!(status(&found[6]), Status::ok("Done."));
    assert_eq!(status(&found[7]), Status::no(Some(ResponseCode::QuotaMaxSize), "line 1\r\nNo."));
    assert_eq!(status(&found[8]), Status::bye(Some(ResponseCode::Referral("sieve://x".to_owned())), "Go."));
}

#[test]
fn a_password_is_not_in_a_command_as_it_is_logged() {
    let line = "AUTHENTICATE \"PLAIN\" \"AGFkYQBzZWNyZXQ=\"";
    let frame = &frames(format!("{line}\r\n").as_bytes(), 9, Speaker::Client)[0];
    for shown in [
        format!("{:?}", Command::parse(frame).unwrap()),
        format!("{frame:?}"),
        format!("{:?}", frame.tokens()),
    ] {
        assert!(
            !shown.contains("secret")
                && !shown.contains("115")
                && !shown.contains("AGFk")
                && !shown.contains("65, 71"),
            "{shown}"
        );
    }
}
