//! Commands and what they are made of, of all kinds.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scrinium_smtp_wire::{
    AddressLiteral, Argument, Body, ClientName, Command, Domain, ForwardPath, Greeting, Hold,
    InitialResponse, MailParameters, Mailbox, Mechanism, Notify, OriginalRecipient, Parameter, Path,
    RecipientParameters, Return, ReversePath,
};

pub(crate) fn domain() -> impl Strategy<Value = Domain> {
    prop_oneof![
        "[a-zA-Z0-9_-]{1,9}(\\.[a-z0-9-]{1,9}){0,3}".prop_map(Domain::Name),
        "[a-z]{1,3}ü(\\.[a-zé]{1,5}){1,2}".prop_map(Domain::Name),
        any::<std::net::Ipv4Addr>().prop_map(|address| Domain::Literal(AddressLiteral::V4(address))),
        any::<std::net::Ipv6Addr>().prop_map(|address| Domain::Literal(AddressLiteral::V6(address))),
        "x-[a-z]{1,5}:[!-Z^-~]{1,9}".prop_map(|inside| Domain::Literal(AddressLiteral::General(inside))),
    ]
}

pub(crate) fn mailbox() -> impl Strategy<Value = Mailbox> {
    let local = prop_oneof!["[a-z0-9.+=_-]{1,12}", "[ -~]{1,20}", "[a-zäß\"\\\\ @<>]{1,12}"];
    (local, domain()).prop_map(|(local, domain)| Mailbox::new(&local, domain).unwrap())
}

fn path() -> impl Strategy<Value = Path> {
    (vec(domain(), 0..3), mailbox()).prop_map(|(route, mailbox)| Path { route, mailbox })
}

fn reverse_path() -> impl Strategy<Value = ReversePath> {
    prop_oneof![Just(ReversePath::Null), path().prop_map(ReversePath::Path)]
}

fn forward_path() -> impl Strategy<Value = ForwardPath> {
    prop_oneof![Just(ForwardPath::Postmaster), path().prop_map(ForwardPath::Path)]
}

fn other() -> impl Strategy<Value = Vec<Parameter>> {
    let parameter = ("X[A-Z0-9-]{0,8}", option::of("[!-<>-~é]{1,9}"))
        .prop_map(|(keyword, value)| Parameter::new(&keyword, value.as_deref()).unwrap());
    vec(parameter, 0..3)
}

fn hold() -> impl Strategy<Value = Hold> {
    prop_oneof![any::<u64>().prop_map(Hold::ForSeconds), Just(Hold::Until("2026-11-25T21:00:00Z".to_owned())),]
}

fn mail_parameters() -> impl Strategy<Value = MailParameters> {
    let bodies = prop::sample::select(vec![Body::SevenBit, Body::EightBitMime, Body::BinaryMime]);
    let returns = prop::sample::select(vec![Return::Full, Return::Headers]);
    let submitter = prop_oneof![
        Just(ReversePath::Null),
        mailbox().prop_map(|mailbox| ReversePath::Path(mailbox.into())),
    ];
    let first = (option::of(any::<u64>()), option::of(bodies), any::<bool>(), option::of(returns));
    let second = (option::of("[ -~é]{1,20}"), option::of(submitter), any::<bool>(), option::of(hold()));
    (first, second, option::of(-9_i8..=9), other()).prop_map(|(first, second, priority, other)| {
        MailParameters {
            size_bytes: first.0,
            body: first.1,
            utf8: first.2,
            return_content: first.3,
            envelope_id: second.0,
            submitter: second.1,
            require_tls: second.2,
            hold: second.3,
            priority,
            other,
        }
    })
}

fn recipient_parameters() -> impl Strategy<Value = RecipientParameters> {
    let notify =
        any::<(bool, bool, bool)>().prop_map(|(success, failure, delay)| Notify { success, failure, delay });
    let original = prop_oneof![
        "[ -~]{1,20}".prop_map(|address| OriginalRecipient::new("rfc822", &address).unwrap()),
        "[ -~é€]{1,20}".prop_map(|address| OriginalRecipient::new("utf-8", &address).unwrap()),
    ];
    (option::of(notify), option::of(original), other())
        .prop_map(|(notify, original, other)| RecipientParameters { notify, original, other })
}

fn argument() -> impl Strategy<Value = Argument> {
    "[!-~][ -~é]{0,20}".prop_map(|text| Argument::new(&text).unwrap())
}

fn client_name() -> impl Strategy<Value = ClientName> {
    prop_oneof![
        domain().prop_map(ClientName::Domain),
        "[!-~] [ -~]{0,10}x".prop_map(|text| ClientName::Odd(Argument::new(&text).unwrap())),
    ]
}

pub(crate) fn command() -> impl Strategy<Value = Command> {
    let greeting = prop::sample::select(vec![Greeting::Helo, Greeting::Ehlo, Greeting::Lhlo]);
    let mechanism = prop::sample::select(vec!["PLAIN", "LOGIN", "SCRAM-SHA-256-PLUS"]);
    prop_oneof![
        (greeting, client_name()).prop_map(|(greeting, name)| Command::Hello(greeting, name)),
        (reverse_path(), mail_parameters()).prop_map(|(from, parameters)| Command::Mail(from, parameters)),
        (forward_path(), recipient_parameters())
            .prop_map(|(to, parameters)| Command::Recipient(to, parameters)),
        Just(Command::Data),
        any::<(u64, bool)>().prop_map(|(bytes, last)| Command::Chunk(bytes, last)),
        Just(Command::Reset),
        option::of(argument()).prop_map(Command::Noop),
        argument().prop_map(Command::Verify),
        argument().prop_map(Command::Expand),
        option::of(argument()).prop_map(Command::Help),
        Just(Command::StartTls),
        (mechanism, option::of(vec(any::<u8>(), 0..40))).prop_map(|(mechanism, response)| {
            Command::Authenticate(
                Mechanism::parse(mechanism.as_bytes()).unwrap(),
                response.map(InitialResponse),
            )
        }),
        argument().prop_map(Command::TurnAround),
        Just(Command::Quit),
    ]
}
