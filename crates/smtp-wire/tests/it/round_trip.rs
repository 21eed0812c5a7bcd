//! What is written is read back equal, in pieces of any size.

use proptest::collection::vec;
use proptest::prelude::*;
use scrinium_smtp_wire::{
    Capabilities, Capability, CapabilityLimits, Command, EnhancedCode, LineEnds, LineScanner, Mailbox,
    Mechanism, RecipientReplies, Reply, ReplyLimits, ReplyReader, decode_xtext, encode_xtext,
};

use crate::arbitrary::{command, mailbox};

/// The lines of what was sent, which comes in pieces.
fn lines(sent: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let mut scanner = LineScanner::new(1 << 16, LineEnds::Strict);
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

fn reply() -> impl Strategy<Value = Reply> {
    (200_u16..600, vec("[ -~é]{0,30}", 1..5))
        .prop_map(|(code, lines)| Reply::from_lines(code, lines.iter().map(String::as_str)))
}

fn capability() -> impl Strategy<Value = Capability> {
    let mechanisms = prop::sample::subsequence(vec!["PLAIN", "LOGIN", "XOAUTH2"], 0..=3)
        .prop_map(|names| names.iter().map(|name| Mechanism::parse(name.as_bytes()).unwrap()).collect());
    prop_oneof![
        prop::sample::select(vec![
            Capability::Pipelining,
            Capability::EightBitMime,
            Capability::SmtpUtf8,
            Capability::EnhancedStatusCodes,
            Capability::StartTls,
            Capability::Dsn,
            Capability::Chunking,
            Capability::BinaryMime,
            Capability::RequireTls,
            Capability::FutureRelease(86_400, Some("2026-12-01T00:00:00Z".to_owned())),
            Capability::FutureRelease(86_400, None),
        ]),
        any::<Option<u64>>().prop_map(Capability::Size),
        mechanisms.prop_map(Capability::Auth),
        any::<(Option<u64>, Option<u64>, Option<u64>)>().prop_map(
            |(messages, recipients, recipient_domains)| {
                Capability::Limits(CapabilityLimits { messages, recipients, recipient_domains })
            }
        ),
        ("X-[A-Z]{1,5}", "[a-z]{0,5}").prop_map(|(keyword, rest)| Capability::Other(keyword, rest)),
    ]
}

proptest! {
    #[test]
    fn commands(commands in vec(command(), 1..5), piece in 1_usize..50) {
        let mut sent = Vec::new();
        commands.iter().for_each(|command| command.write(&mut sent));
        let read: Result<Vec<Command>, _> =
            lines(&sent, piece).iter().map(|line| Command::parse(line)).collect();
        prop_assert_eq!(read, Ok(commands));
    }

    #[test]
    fn replies(replies in vec(reply(), 1..4), piece in 1_usize..50) {
        let mut sent = Vec::new();
        replies.iter().for_each(|reply| reply.write(&mut sent));
        let mut reader = ReplyReader::new(ReplyLimits::default());
        let mut collected = RecipientReplies::new(replies.len(), ReplyLimits::default());
        let mut read = Vec::new();
        for line in lines(&sent, piece) {
            read.extend(reader.line(&line).unwrap());
            collected.line(&line).unwrap();
        }
        prop_assert_eq!(&read, &replies);
        prop_assert!(collected.is_whole() && collected.line(b"250 more").is_err());
        prop_assert_eq!(collected.into_replies(), replies);
    }

    #[test]
    fn capabilities(list in vec(capability(), 0..9)) {
        let offered = Capabilities { greeting: "mx.example.test says hello".to_owned(), list };
        prop_assert_eq!(Capabilities::of(&offered.reply()), offered);
    }

    #[test]
    fn addresses(mailbox in mailbox()) {
        prop_assert_eq!(Mailbox::parse(mailbox.to_string().as_bytes()), Ok(mailbox));
    }

    #[test]
    fn xtext(text in vec(any::<u8>(), 0..40)) {
        prop_assert_eq!(decode_xtext(encode_xtext(&text).as_bytes()), Ok(text));
    }

    #[test]
    fn a_reply_is_lines_whatever_its_text(code in any::<u16>(), text in any::<String>()) {
        for reply in [Reply::new(code, &text), Reply::with_enhanced(code, EnhancedCode::new(5, 7, 1), &text)] {
            let mut sent = Vec::new();
            reply.write(&mut sent);
            let mut reader = ReplyReader::new(ReplyLimits { lines: usize::MAX, text_bytes: usize::MAX });
            let read: Vec<Reply> =
                lines(&sent, 999).iter().filter_map(|line| reader.line(line).unwrap()).collect();
            prop_assert_eq!(read, vec![reply]);
        }
    }
}
