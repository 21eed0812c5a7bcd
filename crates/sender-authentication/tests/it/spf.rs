//! SPF: what records mean, and what they may cost.

use scrinium_sender_authentication::spf::{SpfFault, SpfOutcome, SpfRecordError, SpfResult, check_sender};
use scrinium_sender_authentication::{Answers, settle};

use crate::kit::{Zone, finish, request};

fn checked(zone: &Zone, address: &str, mail_from: &str, helo: &str) -> SpfOutcome {
    let request = request(address, mail_from, helo);
    let mut answers = Answers::default();
    finish(settle(zone, &mut answers, |answers| check_sender(&request, answers)))
}

/// The result for `a@example.org`, whose record this is.
fn with_record(record: &str, address: &str) -> (SpfResult, Option<SpfFault>) {
    let zone = Zone::of(&format!(
        "example.org TXT {record}
         example.org A 192.0.2.1
         example.org AAAA 2001:db8::1
         example.org MX mx.example.org
         mx.example.org A 192.0.2.2
         mx.example.org AAAA 2001:db8::2
         192.0.2.3 PTR host.example.org
         192.0.2.3 PTR forged.example.com
         host.example.org A 192.0.2.3
         yes.example.com TXT v=spf1 ip4:192.0.2.4 -all
         no.example.com TXT nothing of SPF
         twice.example.com TXT v=spf1 -all
         twice.example.com TXT v=spf1 +all
         bad.example.com TXT v=spf1 ip4:300.1.1.1
         slow.example.com FAIL
         4.2.0.192.listed.example.com A 127.0.0.2
         a.192.in-addr.example.com A 127.0.0.2"
    ));
    let found = checked(&zone, address, "a@example.org", "mx.example.com");
    (found.result, found.fault)
}

#[test]
fn records_mean_what_the_rfc_says() {
    use SpfResult::{Fail, Neutral, None as Nothing, Pass, PermError, SoftFail, TempError};
    let cases: [(&str, &str, SpfResult); 47] = [
        ("v=spf1 -all", "192.0.2.1", Fail),
        ("v=spf1 ~all", "192.0.2.1", SoftFail),
        ("v=spf1 ?all", "192.0.2.1", Neutral),
        ("v=spf1 all", "192.0.2.1", Pass),
        ("V=SPF1 ALL", "192.0.2.1", Pass),
        ("v=spf1", "192.0.2.1", Neutral),
        ("v=spf10 all", "192.0.2.1", Nothing),
        ("v=spf1\tall", "192.0.2.1", Nothing),
        ("v=spf1  a   -all ", "192.0.2.1", Pass),
        ("v=spf1 a -all", "2001:db8::1", Pass),
        ("v=spf1 a/24 -all", "192.0.2.200", Pass),
        ("v=spf1 a/24//64 -all", "2001:db8::ffff", Pass),
        ("v=spf1 a//64 -all", "192.0.2.2", Fail),
        ("v=spf1 a/0 -all", "203.0.113.1", Pass),
        ("v=spf1 a/33 -all", "192.0.2.1", PermError),
        ("v=spf1 a/01 -all", "192.0.2.1", PermError),
        ("v=spf1 a:mx.example.org -all", "192.0.2.2", Pass),
        ("v=spf1 a: -all", "192.0.2.1", PermError),
        ("v=spf1 mx -all", "192.0.2.2", Pass),
        ("v=spf1 mx -all", "192.0.2.1", Fail),
        ("v=spf1 mx//126 -all", "2001:db8::3", Pass),
        ("v=spf1 ip4:192.0.2.0/24 -all", "192.0.2.77", Pass),
        ("v=spf1 ip4:192.0.2.0/24 -all", "::ffff:192.0.2.77", Pass),
        ("v=spf1 ip4:192.0.2 -all", "192.0.2.1", PermError),
        ("v=spf1 ip4 -all", "192.0.2.1", PermError),
        ("v=spf1 ip6:2001:db8::/32 -all", "2001:db8:1::1", Pass),
        ("v=spf1 ip6:2001:db8::/129 -all", "2001:db8::1", PermError),
        ("v=spf1 ptr -all", "192.0.2.3", Pass),
        ("v=spf1 ptr:example.com -all", "192.0.2.3", Fail),
        ("v=spf1 include:yes.example.com -all", "192.0.2.4", Pass),
        ("v=spf1 include:yes.example.com ~all", "192.0.2.5", SoftFail),
        ("v=spf1 include:no.example.com -all", "192.0.2.4", PermError),
        ("v=spf1 include:twice.example.com -all", "192.0.2.4", PermError),
        ("v=spf1 include:bad.example.com -all", "192.0.2.4", PermError),
        ("v=spf1 include:slow.example.com -all", "192.0.2.4", TempError),
        ("v=spf1 a include:slow.example.com -all", "192.0.2.1", Pass),
        ("v=spf1 redirect=yes.example.com", "192.0.2.4", Pass),
        ("v=spf1 redirect=yes.example.com", "192.0.2.5", Fail),
        ("v=spf1 redirect=no.example.com", "192.0.2.5", PermError),
        ("v=spf1 redirect=yes.example.com ?all", "192.0.2.4", Neutral),
        ("v=spf1 redirect=yes.example.com redirect=yes.example.com", "192.0.2.4", PermError),
        ("v=spf1 exists:%{ir}.listed.example.com -all", "192.0.2.4", Pass),
        ("v=spf1 exists:%{l}.%{i1r}.%{v}.example.com -all", "192.0.2.4", Pass),
        ("v=spf1 exists:%{x}.example.com -all", "192.0.2.4", PermError),
        ("v=spf1 exists:%{t}.example.com -all", "192.0.2.4", PermError),
        ("v=spf1 -all moo=%{x", "192.0.2.4", PermError),
        ("v=spf1 moo=cow all moo.cow-far_out=man:dog/cat", "192.0.2.4", Pass),
    ];
    for (record, address, result) in cases {
        assert_eq!(with_record(record, address).0, result, "{record} from {address}");
    }
    assert_eq!(
        with_record("v=spf1 -all unheard.of", "192.0.2.1"),
        (PermError, Some(SpfFault::Record(SpfRecordError::Term))),
        "RFC 7208 §4.6: an error counts even where it would not be reached"
    );
}

/// RFC 7208 §4.6.4, each limit at its last good value and one beyond.
#[test]
fn what_a_record_costs_is_counted() {
    let includes = |number: usize| {
        let mut zone = Zone::default();
        for place in 0..number {
            let next = if place + 1 < number {
                format!("include:i{}.example.org", place + 1)
            } else {
                String::new()
            };
            let own = if place == 0 { "example.org".to_owned() } else { format!("i{place}.example.org") };
            zone.add(&own, "TXT", format!("v=spf1 {next} a:x.example.net ?all").trim());
        }
        zone.add("x.example.net", "A", "192.0.2.99");
        zone
    };
    let result = |zone: &Zone| {
        let found = checked(zone, "192.0.2.1", "a@example.org", "h.example.org");
        (found.result, found.fault)
    };
    // Five records in a chain have four includes and five `a`; six have five and six.
    assert_eq!(result(&includes(5)), (SpfResult::Neutral, None));
    assert_eq!(result(&includes(6)), (SpfResult::PermError, Some(SpfFault::Terms)));
    let looped = Zone::of("example.org TXT v=spf1 include:example.org -all");
    assert_eq!(result(&looped), (SpfResult::PermError, Some(SpfFault::Terms)));
    let looped = Zone::of("example.org TXT v=spf1 redirect=example.org");
    assert_eq!(result(&looped), (SpfResult::PermError, Some(SpfFault::Terms)));
    for (voids, expected) in
        [(2, (SpfResult::Fail, None)), (3, (SpfResult::PermError, Some(SpfFault::Voids)))]
    {
        let terms: String = (0..voids).map(|number| format!("exists:v{number}.example.com ")).collect();
        assert_eq!(result(&Zone::of(&format!("example.org TXT v=spf1 {terms}-all"))), expected);
    }
    for (hosts, expected) in
        [(10, (SpfResult::Fail, None)), (11, (SpfResult::PermError, Some(SpfFault::MailHosts)))]
    {
        let mut zone = Zone::of("example.org TXT v=spf1 mx -all");
        for host in 0..hosts {
            zone.add("example.org", "MX", &format!("m{host}.example.org"));
            zone.add(&format!("m{host}.example.org"), "A", "192.0.2.50");
        }
        assert_eq!(result(&zone), expected);
        assert!(zone.asked.lock().unwrap().len() <= 12);
    }
    // Of many names of an address the first ten are looked at.
    let mut zone = Zone::of("example.org TXT v=spf1 ptr -all\ng.example.org A 192.0.2.1");
    for number in 0..10 {
        zone.add("192.0.2.1", "PTR", &format!("p{number}.example.net"));
        zone.add(&format!("p{number}.example.net"), "A", "192.0.2.77");
    }
    zone.add("192.0.2.1", "PTR", "g.example.org");
    assert_eq!(result(&zone).0, SpfResult::Fail);
}

#[test]
fn who_is_checked_follows_from_sender_and_greeting() {
    let zone = Zone::of(
        "example.org TXT v=spf1 ip4:192.0.2.1 -all
         mx.example.net TXT v=spf1 a:%{h} -all
         mx.example.net A 192.0.2.7",
    );
    let greeting = checked(&zone, "192.0.2.7", "", "MX.example.net.");
    assert_eq!((greeting.result, greeting.is_greeting), (SpfResult::Pass, true), "RFC 7208 §2.4");
    assert_eq!(checked(&zone, "192.0.2.1", "@example.org", "x").result, SpfResult::Pass);
    assert_eq!(checked(&zone, "192.0.2.1", "\"a@b\"@example.org", "x").result, SpfResult::Pass);
    for nobody in ["a@localhost", "a@[192.0.2.1]", "a@-..example.org", "a@"] {
        assert_eq!(checked(&zone, "192.0.2.1", nobody, "x").result, SpfResult::None, "{nobody}");
    }
    assert_eq!(checked(&zone, "192.0.2.1", "", "[192.0.2.1]").result, SpfResult::None);
    let label = "a".repeat(64);
    assert_eq!(checked(&zone, "192.0.2.1", &format!("a@{label}.example.org"), "x").result, SpfResult::None);
}

/// RFC 7208 §7.4, and an explanation (§6.2).
#[test]
fn macros_are_replaced_as_in_the_rfc() {
    let mut zone = Zone::of(
        "email.example.com TXT v=spf1 -all exp=why.%{d}
         why.email.example.com TXT s=%{s} o=%{o} d4=%{d4} d1=%{d1} dr=%{dr} d2r=%{d2r} l=%{l} l-=%{l-} lr=%{lr} lr-=%{lr-} l1r-=%{l1r-} i=%{i} v=%{v} c=%{c} r=%{r} t=%{t} L=%{L} %%_%_%-",
    );
    let found = checked(&zone, "192.0.2.3", "strong-bad@email.example.com", "mx.example.org");
    let expected = "s=strong-bad@email.example.com o=email.example.com d4=email.example.com d1=com dr=com.example.email \
        d2r=example.email l=strong-bad l-=strong.bad lr=strong-bad lr-=bad.strong l1r-=strong i=192.0.2.3 v=in-addr \
        c=192.0.2.3 r=mx.example.org t=1795708800 L=strong-bad %_ %20";
    assert_eq!(found.explanation.as_deref(), Some(expected));
    let six = checked(&zone, "2001:db8::cb01", "a@email.example.com", "mx.example.org").explanation.unwrap();
    assert!(six.contains("i=2.0.0.1.0.d.b.8.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.c.b.0.1 v=ip6"), "{six}");
    // What a stranger wrote is one line of letters, or is left out.
    for text in ["two\r\nlines", "\u{1b}[31m", "ü", "%{x}"] {
        zone = Zone::of("example.org TXT v=spf1 -all exp=why.example.org");
        zone.add("why.example.org", "TXT", text);
        assert_eq!(checked(&zone, "192.0.2.3", "a@example.org", "x").explanation, None, "{text:?}");
    }
}
