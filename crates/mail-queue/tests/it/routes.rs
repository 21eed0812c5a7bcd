//! Routes: hosts of a domain, addresses, protection, rules and rewriting.

use std::collections::BTreeSet;
use std::net::IpAddr;

use scrinium_mail_queue::route::*;
use scrinium_mail_queue::{Cause, Ending, Random};
use scrinium_smtp_wire::AddressLiteral;

use crate::kit::mailbox;

fn own() -> OwnHosts {
    OwnHosts {
        names: BTreeSet::from(["us.example".to_owned()]),
        addresses: BTreeSet::from(["192.0.2.25".parse().unwrap()]),
    }
}

fn record(preference: u16, exchange: &str) -> MxRecord {
    MxRecord { preference, exchange: exchange.to_owned() }
}

fn look_up(answers: Vec<MxAnswer>, seed: u64) -> LookupStep {
    let (mut lookup, mut step) = MxLookup::new("Example.NET");
    assert_eq!(step, LookupStep::Ask("example.net".to_owned()));
    for answer in answers {
        step = lookup.answer(answer, &own(), &mut Random::new(seed));
    }
    step
}

fn names(step: LookupStep) -> Vec<String> {
    match step {
        LookupStep::Hosts(hosts) => hosts.into_iter().map(|host| host.name).collect(),
        step => panic!("{step:?}"),
    }
}

fn failure(step: LookupStep) -> (Ending, Cause) {
    match step {
        LookupStep::Failed(error) => (error.outcome().ending, error.outcome().cause),
        step => panic!("{step:?}"),
    }
}

#[test]
fn hosts_come_by_preference_and_by_chance_among_equals() {
    let records = || {
        MxAnswer::Records(vec![record(20, "c.example."), record(10, "A.example."), record(10, "b.example")])
    };
    let orders: BTreeSet<Vec<String>> = (0..50).map(|seed| names(look_up(vec![records()], seed))).collect();
    let expected = [["a.example", "b.example", "c.example"], ["b.example", "a.example", "c.example"]];
    assert_eq!(orders, expected.map(|order| order.map(str::to_owned).to_vec()).into());
    assert_eq!(look_up(vec![records()], 7), look_up(vec![records()], 7), "a seed repeats it");
}

#[test]
fn domains_without_hosts_are_told_apart() {
    assert_eq!(names(look_up(vec![MxAnswer::NoRecords], 1)), ["example.net"], "the implicit MX");
    assert_eq!(names(look_up(vec![MxAnswer::Records(Vec::new())], 1)), ["example.net"]);
    let null = MxAnswer::Records(vec![record(0, ".")]);
    assert_eq!(failure(look_up(vec![null], 1)), (Ending::Failed, Cause::NullMx));
    let mixed = MxAnswer::Records(vec![record(0, "."), record(10, "a.example")]);
    assert_eq!(names(look_up(vec![mixed], 1)), ["a.example"]);
    assert_eq!(failure(look_up(vec![MxAnswer::NoSuchName], 1)), (Ending::Failed, Cause::NoSuchDomain));
    let broken = MxAnswer::Failed("SERVFAIL".to_owned());
    assert_eq!(failure(look_up(vec![broken], 1)), (Ending::Deferred, Cause::LookupFailed));
}

#[test]
fn aliases_are_followed_but_not_in_circles() {
    let alias = |name: &str| MxAnswer::Alias(name.to_owned());
    let followed = look_up(vec![alias("other.example."), MxAnswer::NoRecords], 1);
    assert_eq!(names(followed), ["other.example"]);
    let circle = look_up(vec![alias("other.example"), alias("EXAMPLE.net")], 1);
    assert_eq!(failure(circle), (Ending::Failed, Cause::NoHosts));
    let chain = (0..=ALIASES_MAX).map(|number| alias(&format!("n{number}.example"))).collect();
    assert_eq!(failure(look_up(chain, 1)), (Ending::Failed, Cause::NoHosts));
}

#[test]
fn this_server_among_the_hosts_cuts_its_equals_and_the_worse() {
    let hosts = |records: &[(u16, &str)]| {
        let records = records.iter().map(|(preference, exchange)| record(*preference, exchange)).collect();
        look_up(vec![MxAnswer::Records(records)], 3)
    };
    let cut = hosts(&[(10, "a.example"), (20, "us.example"), (20, "b.example"), (30, "c.example")]);
    assert_eq!(names(cut), ["a.example"]);
    assert_eq!(failure(hosts(&[(10, "US.example."), (20, "b.example")])), (Ending::Failed, Cause::MailLoop));
}

#[test]
fn addresses_are_mixed_bounded_and_never_our_own() {
    let host = |name: &str| Exchanger { name: name.to_owned(), preference: 10 };
    let hosts = [host("a"), host("gone"), host("b")];
    let answer = |name: &str| match name {
        "a" => AddressAnswer::Addresses(
            [
                "192.0.2.1",
                "192.0.2.25",
                "127.0.0.1",
                "::ffff:127.0.0.1",
                "2001:db8::1",
                "0.0.0.0",
                "2001:db8::2",
            ]
            .map(|address| address.parse::<IpAddr>().unwrap())
            .to_vec(),
        ),
        "b" => AddressAnswer::Addresses(vec!["192.0.2.2".parse().unwrap(), "192.0.2.3".parse().unwrap()]),
        _ => AddressAnswer::NoSuchName,
    };
    let found = |options: &TargetOptions| -> Vec<String> {
        let found = targets("example.net", &hosts, &own(), options, answer).unwrap();
        found.into_iter().map(|target| target.address.to_string()).collect()
    };
    let mut options = TargetOptions::default();
    assert_eq!(found(&options), ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "192.0.2.3"]);
    options.most = 2;
    options.order = AddressOrder::V4Only;
    assert_eq!(found(&options), ["192.0.2.1", "192.0.2.2"]);
    options.allow_loopback = true;
    options.most = 9;
    assert!(found(&options).contains(&"127.0.0.1".to_owned()));
    let none = |answer: AddressAnswer| {
        let options = TargetOptions::default();
        targets("example.net", &[host("x")], &own(), &options, |_| answer.clone()).unwrap_err().outcome()
    };
    assert_eq!(none(AddressAnswer::NoSuchName).ending, Ending::Deferred);
    assert_eq!(none(AddressAnswer::Failed("time-out".to_owned())).cause, Cause::LookupFailed);
    let loopback = none(AddressAnswer::Addresses(vec!["127.0.0.1".parse().unwrap()]));
    assert_eq!((loopback.ending, loopback.status.to_string().as_str()), (Ending::Failed, "5.4.6"));
}

#[test]
fn addresses_in_brackets_are_connected_to() {
    let options = TargetOptions::default();
    let literal = |literal| literal_target(&literal, &own(), &options);
    assert_eq!(literal(AddressLiteral::V4("192.0.2.9".parse().unwrap())).unwrap().host, "192.0.2.9");
    assert!(literal(AddressLiteral::V4("127.0.0.1".parse().unwrap())).is_err());
    assert!(literal(AddressLiteral::V6("::ffff:192.0.2.25".parse().unwrap())).is_err());
    assert!(literal(AddressLiteral::General("x:y".to_owned())).is_err());
}

#[test]
fn protection_follows_rule_relay_and_policy() {
    let mut policy = StsPolicy {
        mode: StsMode::Enforce,
        hosts: vec!["mx.example.net".to_owned(), "*.mail.example.net".to_owned()],
    };
    let with = |rule, policy: &StsPolicy, require_tls, tls_optional, host: &str| {
        let inputs = ProtectionInputs { rule, policy: Some(policy), require_tls, tls_optional, relay: None };
        choose_protection(&inputs, host)
    };
    let opportunistic = TlsRule::Opportunistic;
    assert_eq!(with(opportunistic, &policy, false, false, "MX.example.net."), Some(Protection::Verified));
    assert_eq!(with(opportunistic, &policy, false, false, "a.mail.example.net"), Some(Protection::Verified));
    assert_eq!(with(opportunistic, &policy, false, false, "a.b.mail.example.net"), None);
    assert_eq!(with(opportunistic, &policy, false, false, "mail.example.net"), None);
    assert_eq!(with(opportunistic, &policy, false, true, "evil.example"), Some(Protection::Opportunistic));
    assert_eq!(with(opportunistic, &policy, true, true, "evil.example"), Some(Protection::Verified));
    policy.mode = StsMode::Testing;
    assert_eq!(with(opportunistic, &policy, false, false, "evil.example"), Some(Protection::Opportunistic));
    assert_eq!(with(TlsRule::Required, &policy, false, false, "evil.example"), Some(Protection::Encrypted));
    let mut relay = RelayHost {
        host: "relay.example".to_owned(),
        port: RELAY_PORT,
        by_mx: false,
        implicit_tls: false,
        login: Some(Login { name: "us".to_owned(), secret: "relay".to_owned() }),
        allow_plain_login: false,
    };
    let of_relay = |relay: &RelayHost| {
        choose_protection(
            &ProtectionInputs { relay: Some(relay), ..ProtectionInputs::default() },
            &relay.host,
        )
    };
    assert_eq!(of_relay(&relay), Some(Protection::Verified), "a password goes to nobody unknown");
    relay.allow_plain_login = true;
    assert_eq!(of_relay(&relay), Some(Protection::Opportunistic));
}

#[test]
fn only_tls_that_is_a_favour_is_gone_without() {
    use scrinium_mail_queue::outcome::Stage;
    assert_eq!(after_tls_trouble(Protection::Opportunistic, Stage::StartTls), Fallback::Plain);
    assert_eq!(after_tls_trouble(Protection::Encrypted, Stage::StartTls), Fallback::NextHost);
    assert_eq!(after_tls_trouble(Protection::Verified, Stage::StartTls), Fallback::NextHost);
}

#[test]
fn the_nearest_transport_rule_wins() {
    let way = |name: &str| Transport::Lmtp { endpoint: name.to_owned() };
    let mut table = TransportTable::new(Transport::Exchangers { tls: TlsRule::Opportunistic });
    for rule in [
        "ada@example.org",
        "example.org",
        ".example.org",
        ".deep.example.org",
        "*-list@example.net",
        "*.test",
    ] {
        table.add(rule, way(rule)).unwrap();
    }
    for (address, rule) in [
        ("Ada@Example.ORG", "ada@example.org"),
        ("bob@example.org", "example.org"),
        ("bob@a.example.org", ".example.org"),
        ("bob@a.deep.example.org", ".deep.example.org"),
        ("any-list@example.net", "*-list@example.net"),
        ("x@y.z.test", "*.test"),
    ] {
        assert_eq!(table.find(&mailbox(address)), &way(rule), "{address}");
    }
    assert_eq!(table.destination(&mailbox("x@Else.example")).to_string(), "else.example");
    assert_eq!(table.destination(&mailbox("bob@example.org")).to_string(), "lmtp:example.org");
    assert!(matches!(table.add("example.org", way("x")), Err(TransportError::Twice(_))));
    assert!(matches!(table.add("*a*", way("x")), Err(TransportError::Pattern(_))));
    assert!(matches!(table.add("a b", way("x")), Err(TransportError::Pattern(_))));
}

#[test]
fn addresses_are_rewritten_to_an_end() {
    let mut table = RewriteTable::default();
    for (from, to) in [
        ("ada@old.example", "Ada.Lovelace@new.example"),
        ("sales-*@old.example", "*@sales.example"),
        ("old.example", "new.example"),
        ("all.example", "postmaster@new.example"),
        ("a@circle.example", "b@circle.example"),
        ("b@circle.example", "a@circle.example"),
        ("same.example", "same.example"),
    ] {
        table.add(from, to).unwrap();
    }
    let rewritten = |text: &str| table.rewrite(&mailbox(text)).map(|address| address.to_string());
    for (from, to) in [
        ("ADA@old.example", "Ada.Lovelace@new.example"),
        ("sales-north@Old.example", "north@sales.example"),
        ("Bob@old.example", "Bob@new.example"),
        ("\"a b\"@old.example", "\"a b\"@new.example"),
        ("x@all.example", "postmaster@new.example"),
        ("x@same.example", "x@same.example"),
        ("x@else.example", "x@else.example"),
    ] {
        assert_eq!(rewritten(from).as_deref(), Ok(to));
    }
    assert!(matches!(rewritten("a@circle.example"), Err(RewriteError::Circle(_))));
    for (from, to) in [("a@b", "c"), ("*", "x@y"), ("a*@b", "*@*"), ("", "x"), ("a@b", "c d@e")] {
        assert!(matches!(table.add(from, to), Err(RewriteError::Rule(_))), "{from} {to}");
    }
    table.add("grow*@g.example", "growgrow*@g.example").unwrap();
    assert!(table.rewrite(&mailbox("grow@g.example")).is_err());
}
