//! Commands, responses and what they are made of, of all kinds; and how they come over a connection.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scrinium_imap_wire::{
    Address, AppendMessage, BodyStructure, Command, Date, DateTime, Day, Decision, Disposition, Envelope,
    FetchAttribute, FetchItem, FetchModifiers, Flag, FrameLimits, FrameReader, FrameStep, InitialResponse,
    ListCommand, ListReturn, ListedMailbox, MailboxName, Mechanism, MessageData, Part, PartBasics,
    PartExtension, Partial, QresyncParameters, Response, ResponseCode, SearchKey, SearchProgram,
    SearchResult, SearchReturn, Section, SectionText, SelectParameters, SequenceSet, SetNumber, SinglePart,
    SortKey, Speaker, Status, StatusItem, StoreAction, Tag, Thread, Value,
};

pub(crate) const LIMITS: FrameLimits = FrameLimits { bytes: 1 << 20, literals: 1000, bare_line_feed: false };

/// All frames of `bytes`, which come in pieces; every literal is kept.
pub(crate) fn frames(bytes: &[u8], piece: usize, speaker: Speaker) -> Vec<Vec<Part>> {
    let mut reader = FrameReader::new(LIMITS, speaker);
    let mut frames = Vec::new();
    for piece in bytes.chunks(piece) {
        let mut rest = piece;
        loop {
            let (consumed, step) = reader.read(rest).unwrap();
            rest = &rest[consumed..];
            match step {
                FrameStep::More => break,
                FrameStep::Announced(_) => assert_eq!(reader.decide(Decision::Keep), Ok(None)),
                FrameStep::Frame(parts) => frames.push(parts),
                other => panic!("{other:?}"),
            }
        }
        assert!(rest.is_empty());
    }
    assert!(reader.is_idle());
    frames
}

pub(crate) fn tag() -> impl Strategy<Value = Tag> {
    "[A-Za-z0-9.]{1,9}".prop_map(|tag| Tag::new(&tag).unwrap())
}

fn flag() -> impl Strategy<Value = Flag> {
    prop_oneof![prop::sample::select(vec![
        "\\Seen",
        "\\Answered",
        "\\Flagged",
        "\\Deleted",
        "\\Draft",
        "$Junk",
        "a[b"
    ]),]
    .prop_map(|flag| Flag::new(flag).unwrap())
}

fn mailbox() -> impl Strategy<Value = MailboxName> {
    prop_oneof![
        Just("inbox".to_owned()),
        "[ -~é日😀&]{1,12}",
        "\\[Gmail\\]/[a-z ]{1,5}",
        Just("NIL".to_owned())
    ]
    .prop_map(|name| MailboxName::new(&name).unwrap())
}

pub(crate) fn set() -> impl Strategy<Value = SequenceSet> {
    let number = || prop_oneof![(1..=u32::MAX).prop_map(SetNumber::Number), Just(SetNumber::Last)];
    prop_oneof![
        5 => vec((number(), number()), 1..5).prop_map(SequenceSet::Ranges),
        1 => Just(SequenceSet::Saved),
    ]
}

fn date() -> impl Strategy<Value = Date> {
    (0_u16..=9999, 1_u8..=12, 1_u8..=28)
        .prop_map(|(year, month, day)| Date(Day::new(year, month, day).unwrap()))
}

fn date_time() -> impl Strategy<Value = DateTime> {
    (date(), (0_u8..24, 0_u8..60, 0_u8..60), -800_i16..800)
        .prop_map(|(date, clock, zone)| DateTime::new(date, clock, zone).unwrap())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,6}", "[ -~é\r\n\"\\\\{}()\\[\\]]{0,12}"]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(1_u8..=255, 0..40)
}

fn section() -> impl Strategy<Value = Section> {
    let names = vec("[A-Za-z\\[\\](){}\"\\\\-]{1,8}", 1..4);
    let text = prop_oneof![
        Just(SectionText::Header),
        Just(SectionText::Text),
        (names, any::<bool>()).prop_map(|(names, excluded)| SectionText::HeaderFields(names, excluded)),
    ];
    prop_oneof![
        (vec(1_u32..99, 0..4), option::of(text)).prop_map(|(part, text)| Section { part, text }),
        vec(1_u32..99, 1..4).prop_map(|part| Section { part, text: Some(SectionText::Mime) }),
    ]
}

fn attribute() -> impl Strategy<Value = FetchAttribute> {
    let partial =
        || option::of((any::<u64>(), 1..u64::MAX).prop_map(|(offset, count)| Partial { offset, count }));
    prop_oneof![
        prop::sample::select(vec![
            FetchAttribute::Envelope,
            FetchAttribute::Flags,
            FetchAttribute::InternalDate,
            FetchAttribute::Rfc822,
            FetchAttribute::Rfc822Header,
            FetchAttribute::Rfc822Size,
            FetchAttribute::Rfc822Text,
            FetchAttribute::Body,
            FetchAttribute::BodyStructure,
            FetchAttribute::Uid,
            FetchAttribute::ModSeq,
            FetchAttribute::EmailId,
            FetchAttribute::ThreadId,
            FetchAttribute::SaveDate,
            FetchAttribute::Preview(false),
            FetchAttribute::Preview(true),
            FetchAttribute::BinarySize(vec![1, 2]),
        ]),
        (any::<bool>(), section(), partial())
            .prop_map(|(peek, section, partial)| FetchAttribute::BodySection { peek, section, partial }),
        (any::<bool>(), vec(1_u32..9, 0..3), partial())
            .prop_map(|(peek, part, partial)| FetchAttribute::Binary { peek, part, partial }),
    ]
}

fn search_key() -> impl Strategy<Value = SearchKey> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            SearchKey::All,
            SearchKey::New,
            SearchKey::Old,
            SearchKey::Recent,
            SearchKey::SaveDateSupported,
        ]),
        (flag(), any::<bool>()).prop_map(|(flag, set)| SearchKey::Flag(flag, set)),
        text().prop_map(SearchKey::Body),
        text().prop_map(SearchKey::Subject),
        (text(), text()).prop_map(|(name, text)| SearchKey::Header(name, text)),
        date().prop_map(SearchKey::Since),
        date().prop_map(SearchKey::SentBefore),
        any::<u64>().prop_map(SearchKey::Larger),
        any::<u32>().prop_map(SearchKey::Younger),
        set().prop_map(SearchKey::Uid),
        set().prop_map(SearchKey::Sequence),
        any::<u64>().prop_map(|change| SearchKey::ModSeq(None, change)),
        any::<u64>().prop_map(|change| {
            SearchKey::ModSeq(Some(("/flags/\\Seen".to_owned(), "all".to_owned())), change)
        }),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|key| SearchKey::Not(Box::new(key))),
            inner.clone().prop_map(|key| SearchKey::Fuzzy(Box::new(key))),
            (inner.clone(), inner.clone())
                .prop_map(|(one, other)| SearchKey::Or(Box::new(one), Box::new(other))),
            vec(inner, 1..3).prop_map(SearchKey::And),
        ]
    })
}

fn program(with_charset: bool) -> impl Strategy<Value = SearchProgram> {
    let returns = prop::sample::subsequence(
        vec![
            SearchReturn::Min,
            SearchReturn::Max,
            SearchReturn::All,
            SearchReturn::Count,
            SearchReturn::Save,
            SearchReturn::Partial(-1, -100),
        ],
        0..4,
    );
    (option::of(returns), any::<bool>(), vec(search_key(), 1..4)).prop_map(move |(returns, charset, keys)| {
        let charset = (charset || with_charset).then(|| "UTF-8".to_owned());
        SearchProgram { returns, charset, keys }
    })
}

fn message() -> impl Strategy<Value = AppendMessage> {
    let data = prop_oneof![
        bytes().prop_map(MessageData::Bytes),
        vec(any::<u8>(), 0..40).prop_map(MessageData::Binary),
    ];
    (vec(flag(), 0..3), option::of(date_time()), any::<bool>(), data)
        .prop_map(|(flags, date, utf8, data)| AppendMessage { flags, date, utf8, data })
}

fn status_items() -> impl Strategy<Value = Vec<StatusItem>> {
    prop::sample::subsequence(
        vec![StatusItem::Messages, StatusItem::UidNext, StatusItem::Size, StatusItem::HighestModSeq],
        1..4,
    )
}

fn list_command() -> impl Strategy<Value = ListCommand> {
    let selection = prop::sample::subsequence(vec!["SUBSCRIBED", "REMOTE", "SPECIAL-USE"], 0..3);
    let returns = prop_oneof![
        Just(vec![]),
        status_items().prop_map(|items| vec![
            ListReturn::Subscribed,
            ListReturn::Status(items),
            ListReturn::MyRights
        ]),
    ];
    (selection, "[a-zé/&]{0,5}", vec("[a-zé*%/ ]{0,5}", 1..3), returns, any::<bool>()).prop_map(
        |(selection, reference, patterns, returns, extended)| ListCommand {
            extended: extended || !selection.is_empty() || !returns.is_empty() || patterns.len() > 1,
            selection: selection.into_iter().map(str::to_owned).collect(),
            reference,
            patterns,
            returns,
        },
    )
}

#[allow(clippy::too_many_lines, reason = "one strategy a command")]
pub(crate) fn command() -> impl Strategy<Value = Command> {
    let mechanism = "[A-Z0-9-]{1,9}".prop_map(|name| Mechanism::parse(name.as_bytes()).unwrap());
    let response = option::of(vec(any::<u8>(), 0..20).prop_map(InitialResponse));
    let qresync = (any::<u32>(), any::<u64>(), option::of(set()), option::of((set(), set()))).prop_map(
        |(uid_validity, change, known_uids, matches)| QresyncParameters {
            uid_validity,
            change,
            known_uids,
            matches,
        },
    );
    let select = (any::<bool>(), option::of(qresync))
        .prop_map(|(condstore, qresync)| SelectParameters { condstore, qresync });
    let modifiers =
        (option::of(any::<u64>()), any::<bool>(), prop::sample::select(vec![None, Some((1, 50))])).prop_map(
            |(changed_since, vanished, partial)| FetchModifiers { changed_since, vanished, partial },
        );
    let attributes = vec(attribute(), 1..5).prop_map(|mut all| {
        let mut seen = Vec::new();
        all.retain(|one| {
            !seen.contains(one) && {
                seen.push(one.clone());
                true
            }
        });
        all
    });
    let actions = prop::sample::select(vec![StoreAction::Replace, StoreAction::Add, StoreAction::Remove]);
    let numbered = prop_oneof![
        (any::<bool>(), program(false)).prop_map(|(uid, program)| Command::Search { uid, program }),
        (any::<bool>(), any::<bool>(), program(true)).prop_map(|(uid, reversed, program)| Command::Sort {
            uid,
            keys: vec![(SortKey::DisplayFrom, reversed), (SortKey::Date, false)],
            program
        }),
        (any::<bool>(), program(true)).prop_map(|(uid, program)| Command::Thread {
            uid,
            algorithm: "REFERENCES".to_owned(),
            program: SearchProgram { returns: None, ..program }
        }),
        (any::<bool>(), set(), attributes, modifiers)
            .prop_map(|(uid, set, attributes, modifiers)| Command::Fetch { uid, set, attributes, modifiers }),
        ((any::<bool>(), set(), option::of(any::<u64>())), actions, any::<bool>(), vec(flag(), 0..3))
            .prop_map(|((uid, set, unchanged_since), action, silent, flags)| Command::Store {
                uid,
                set,
                unchanged_since,
                action,
                silent,
                flags
            }),
        (any::<bool>(), set(), mailbox()).prop_map(|(uid, set, mailbox)| Command::Copy { uid, set, mailbox }),
        (any::<bool>(), set(), mailbox()).prop_map(|(uid, set, mailbox)| Command::Move { uid, set, mailbox }),
        (any::<bool>(), 1..u32::MAX, mailbox(), message())
            .prop_map(|(uid, number, mailbox, message)| Command::Replace { uid, number, mailbox, message }),
        set().prop_map(Command::UidExpunge),
    ];
    let owner = prop_oneof![
        (mailbox(), text(), text()).prop_map(|(mailbox, identifier, rights)| Command::SetAcl {
            mailbox,
            identifier,
            rights
        }),
        (text(), vec(any::<u64>(), 0..2)).prop_map(|(root, limits)| Command::SetQuota {
            root,
            limits: limits.into_iter().map(|limit| ("STORAGE".to_owned(), limit)).collect()
        }),
        (vec(text(), 1..3), option::of(any::<u64>()), prop::sample::select(vec![Some(0), Some(1), None]))
            .prop_map(|(entries, max_size, depth)| Command::GetMetadata {
                mailbox: String::new(),
                entries,
                max_size,
                depth
            }),
        vec((text(), option::of(bytes())), 1..3)
            .prop_map(|entries| Command::SetMetadata { mailbox: "INBOX".to_owned(), entries }),
    ];
    prop_oneof![
        2 => prop::sample::select(vec![
            Command::Capability, Command::Noop, Command::Logout, Command::StartTls, Command::Namespace, Command::Idle,
            Command::Check, Command::Close, Command::Unselect, Command::Expunge, Command::Unauthenticate,
            Command::Compress("DEFLATE".to_owned()), Command::Enable(vec!["QRESYNC".to_owned(), "UTF8=ACCEPT".to_owned()]),
        ]),
        1 => vec((text(), option::of(text())), 0..3).prop_map(Command::Id),
        1 => (mechanism, response).prop_map(|(mechanism, response)| Command::Authenticate(mechanism, response)),
        1 => (text(), bytes()).prop_map(|(name, password)| Command::Login { name, password }),
        1 => (mailbox(), select, any::<bool>()).prop_map(|(mailbox, parameters, read_only)| {
            Command::Select { mailbox, parameters, read_only }
        }),
        1 => (mailbox(), prop::sample::select(vec![vec![], vec!["\\Sent".to_owned()]]))
            .prop_map(|(mailbox, special_uses)| Command::Create { mailbox, special_uses }),
        1 => (mailbox(), mailbox()).prop_map(|(from, to)| Command::Rename { from, to }),
        1 => list_command().prop_map(Command::List),
        1 => (mailbox(), status_items()).prop_map(|(mailbox, items)| Command::Status { mailbox, items }),
        1 => (mailbox(), vec(message(), 1..3)).prop_map(|(mailbox, messages)| Command::Append { mailbox, messages }),
        2 => owner,
        6 => numbered,
    ]
}

fn nstring() -> impl Strategy<Value = Option<Vec<u8>>> {
    option::of(bytes())
}

fn addresses() -> impl Strategy<Value = Vec<Address>> {
    let address = (nstring(), nstring(), nstring(), nstring())
        .prop_map(|(name, route, mailbox, host)| Address { name, route, mailbox, host });
    vec(address, 0..3)
}

fn envelope() -> impl Strategy<Value = Envelope> {
    (nstring(), nstring(), addresses(), addresses(), nstring()).prop_map(
        |(date, subject, from, to, message_id)| Envelope {
            date,
            subject,
            sender: from.clone(),
            from,
            to,
            message_id,
            ..Envelope::default()
        },
    )
}

fn parameters() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
    vec((bytes(), bytes()), 0..3)
}

fn extension() -> impl Strategy<Value = PartExtension> {
    let disposition = (bytes(), parameters()).prop_map(|(kind, parameters)| Disposition { kind, parameters });
    (option::of(disposition), vec(bytes(), 0..3), nstring())
        .prop_map(|(disposition, languages, location)| PartExtension { disposition, languages, location })
}

fn structure() -> impl Strategy<Value = BodyStructure> {
    let basics = |kind: &'static [u8], subtype: &'static [u8]| {
        (parameters(), nstring(), nstring(), any::<u64>()).prop_map(
            move |(parameters, id, description, octets)| PartBasics {
                media_type: kind.to_vec(),
                subtype: subtype.to_vec(),
                parameters,
                id,
                description,
                encoding: b"7BIT".to_vec(),
                octets,
            },
        )
    };
    let more = || option::of((nstring(), extension()));
    let leaf = prop_oneof![
        (basics(b"TEXT", b"PLAIN"), any::<u64>(), more())
            .prop_map(|(basics, lines, more)| BodyStructure::Single(basics, SinglePart::Text(lines), more)),
        (basics(b"IMAGE", b"PNG"), more()).prop_map(|(basics, more)| BodyStructure::Single(
            basics,
            SinglePart::Other,
            more
        )),
    ];
    leaf.prop_recursive(3, 8, 3, move |inner| {
        let message = (basics(b"MESSAGE", b"RFC822"), envelope(), inner.clone(), any::<u64>(), more());
        let multi = (vec(inner, 1..3), option::of((parameters(), extension())));
        prop_oneof![
            message.prop_map(|(basics, envelope, body, lines, more)| {
                BodyStructure::Single(basics, SinglePart::Message(Box::new((envelope, body)), lines), more)
            }),
            multi.prop_map(|(parts, more)| BodyStructure::Multipart(parts, b"MIXED".to_vec(), more)),
        ]
    })
}

fn fetch_item() -> impl Strategy<Value = FetchItem> {
    let data = || {
        prop_oneof![
            Just(MessageData::Nil),
            bytes().prop_map(MessageData::Bytes),
            vec(any::<u8>(), 0..20).prop_map(MessageData::Binary),
        ]
    };
    prop_oneof![
        vec(flag(), 0..3).prop_map(FetchItem::Flags),
        any::<u32>().prop_map(FetchItem::Uid),
        date_time().prop_map(FetchItem::InternalDate),
        any::<u64>().prop_map(FetchItem::Size),
        envelope().prop_map(|envelope| FetchItem::Envelope(Box::new(envelope))),
        structure().prop_map(|body| FetchItem::BodyStructure(Box::new(body))),
        structure().prop_map(|body| FetchItem::Body(Box::new(body))),
        any::<u64>().prop_map(FetchItem::ModSeq),
        "[a-z]{1,9}".prop_map(FetchItem::EmailId),
        option::of("[a-z]{1,9}").prop_map(FetchItem::ThreadId),
        option::of(date_time()).prop_map(FetchItem::SaveDate),
        nstring().prop_map(FetchItem::Preview),
        data().prop_map(FetchItem::Rfc822Header),
        (section(), option::of(any::<u64>()), data())
            .prop_map(|(section, offset, data)| FetchItem::Section(section, offset, data)),
        (vec(1_u32..9, 0..3), option::of(any::<u64>()), data())
            .prop_map(|(part, offset, data)| FetchItem::Binary(part, offset, data)),
        (vec(1_u32..9, 0..3), any::<u64>()).prop_map(|(part, bytes)| FetchItem::BinarySize(part, bytes)),
    ]
}

fn code() -> impl Strategy<Value = ResponseCode> {
    prop_oneof![
        prop::sample::select(vec![
            ResponseCode::Alert,
            ResponseCode::BadCharset(vec![]),
            ResponseCode::BadCharset(vec!["UTF-8".to_owned(), "a]b".to_owned()]),
            ResponseCode::Capability(vec!["IMAP4rev1".to_owned(), "AUTH=PLAIN".to_owned()]),
            ResponseCode::ReadOnly,
            ResponseCode::ReadWrite,
            ResponseCode::TryCreate,
            ResponseCode::NoModSeq,
            ResponseCode::Closed,
            ResponseCode::UidNotSticky,
            ResponseCode::MailboxId("abc".to_owned()),
            ResponseCode::Word("OVERQUOTA".to_owned()),
            ResponseCode::Other(
                "INPROGRESS".to_owned(),
                vec![Value::List(vec![Value::Text(b"a]\"b".to_vec())])]
            ),
        ]),
        vec(flag(), 0..3).prop_map(ResponseCode::PermanentFlags),
        any::<u32>().prop_map(ResponseCode::UidNext),
        any::<u64>().prop_map(ResponseCode::HighestModSeq),
        set().prop_map(ResponseCode::Modified),
        (any::<u32>(), set()).prop_map(|(validity, set)| ResponseCode::AppendUid(validity, set)),
        (any::<u32>(), set(), set())
            .prop_map(|(validity, from, to)| ResponseCode::CopyUid(validity, from, to)),
    ]
}

fn thread() -> impl Strategy<Value = Thread> {
    let leaf = vec(any::<u32>(), 1..3).prop_map(|messages| Thread { messages, branches: vec![] });
    leaf.prop_recursive(2, 6, 3, |inner| {
        (vec(any::<u32>(), 0..3), vec(inner, 1..3))
            .prop_map(|(messages, branches)| Thread { messages, branches })
    })
}

fn listed() -> impl Strategy<Value = ListedMailbox> {
    let attributes = prop::sample::subsequence(vec!["\\HasChildren", "\\Sent", "\\Subscribed"], 0..3);
    let child = ("CHILDINFO".to_owned(), Value::List(vec![Value::Text(b"SUBSCRIBED".to_vec())]));
    (attributes, prop::sample::select(vec![None, Some('/'), Some('\\'), Some('"')]), mailbox(), any::<bool>())
        .prop_map(move |(attributes, delimiter, name, extended)| ListedMailbox {
            attributes: attributes.into_iter().map(str::to_owned).collect(),
            delimiter,
            name,
            extended: if extended { vec![child.clone()] } else { vec![] },
        })
}

pub(crate) fn response() -> impl Strategy<Value = Response> {
    let statuses =
        || prop::sample::select(vec![Status::Ok, Status::No, Status::Bad, Status::PreAuth, Status::Bye]);
    let space = || vec(("[a-zé/]{0,6}", prop::sample::select(vec![None, Some('/')])), 0..3);
    let partial = option::of((Just((1_i64, 100_i64)), option::of(set())));
    let result =
        (option::of("[a-z0-9]{1,5}"), any::<bool>(), any::<Option<u32>>(), option::of(set()), partial)
            .prop_map(|(tag, uid, min, all, partial)| SearchResult {
                tag,
                uid,
                min,
                max: min,
                all,
                count: min.map(u64::from),
                mod_seq: None,
                partial,
            });
    prop_oneof![
        2 => "[ -~é]{0,20}".prop_map(Response::Continuation),
        4 => (option::of(tag()), statuses(), option::of(code()), "[A-Za-z][ -Z^-~é{}]{0,20}")
            .prop_map(|(tag, status, code, text)| Response::Status { tag, status, code, text }),
        1 => Just(Response::Capability(vec!["IMAP4rev2".to_owned(), "LITERAL+".to_owned()])),
        1 => vec((text(), option::of(text())), 0..3).prop_map(Response::Id),
        1 => vec(flag(), 0..3).prop_map(Response::Flags),
        1 => listed().prop_map(Response::List),
        1 => listed().prop_map(Response::Lsub),
        1 => (space(), space(), space()).prop_map(|(personal, other_users, shared)| {
            Response::Namespace { personal, other_users, shared }
        }),
        1 => (mailbox(), any::<u32>()).prop_map(|(mailbox, count)| Response::MailboxStatus {
            mailbox,
            items: vec![(StatusItem::Messages, Value::atom(count.to_string())), (StatusItem::AppendLimit, Value::nil())],
        }),
        1 => (vec(any::<u32>(), 0..5), any::<Option<u64>>())
            .prop_map(|(found, mod_seq)| Response::Search { found, mod_seq }),
        1 => vec(thread(), 0..3).prop_map(Response::Thread),
        2 => result.prop_map(|result| Response::Esearch(Box::new(result))),
        1 => any::<u32>().prop_map(Response::Exists),
        1 => any::<u32>().prop_map(Response::Expunge),
        1 => (any::<bool>(), set()).prop_map(|(earlier, uids)| Response::Vanished { earlier, uids }),
        6 => (any::<u32>(), vec(fetch_item(), 0..4)).prop_map(|(number, items)| Response::Fetch { number, items }),
        1 => (text(), any::<u64>()).prop_map(|(root, used)| Response::Quota {
            root,
            resources: vec![("STORAGE".to_owned(), used, u64::MAX)],
        }),
        1 => (mailbox(), vec(text(), 0..3)).prop_map(|(mailbox, roots)| Response::QuotaRoot { mailbox, roots }),
        1 => (mailbox(), vec((text(), text()), 0..3)).prop_map(|(mailbox, entries)| Response::Acl { mailbox, entries }),
        1 => (mailbox(), text()).prop_map(|(mailbox, rights)| Response::MyRights { mailbox, rights }),
        1 => vec((text(), option::of(bytes())), 0..3)
            .prop_map(|entries| Response::Metadata { mailbox: "INBOX".to_owned(), entries }),
    ]
}
