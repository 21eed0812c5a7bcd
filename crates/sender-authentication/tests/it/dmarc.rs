//! DMARC: the tree walk, records, alignment, policies, failures of DNS.

use scrinium_sender_authentication::Question;
use scrinium_sender_authentication::dmarc::{
    Disposition, DmarcPolicy, DmarcRecord, DmarcResult, PublicSuffix,
};

use crate::kit::{Zone, authenticated, request, signed, signer};

/// The verdict on a message that nobody vouches for.
fn unverified(zone: &Zone, author: &str) -> (DmarcResult, Disposition, Option<String>) {
    let message = format!("From: a@{author}\r\n\r\n");
    let found =
        authenticated(zone, &message, request("198.51.100.7", "t@thief.example", "mx.thief.example")).dmarc;
    (found.result, found.disposition, found.policy_domain.map(|name| name.to_string()))
}

/// The name of RFC 9989 §4.10, and one with fewer labels.
#[test]
fn a_walk_asks_eight_questions_at_most() {
    let asked = |author: &str| {
        let zone = Zone::of("thief.example A 192.0.2.1");
        unverified(&zone, author);
        let asked = zone.asked.lock().unwrap();
        let name = |question: &Question| match question {
            Question::Texts(name) => name.as_str().strip_prefix("_dmarc.").map(ToOwned::to_owned),
            _ => None,
        };
        asked.iter().filter_map(name).collect::<Vec<_>>()
    };
    assert_eq!(
        asked("a.b.c.d.e.f.g.h.i.j.mail.example.com"),
        [
            "a.b.c.d.e.f.g.h.i.j.mail.example.com",
            "g.h.i.j.mail.example.com",
            "h.i.j.mail.example.com",
            "i.j.mail.example.com",
            "j.mail.example.com",
            "mail.example.com",
            "example.com",
            "com",
        ]
    );
    assert_eq!(asked("a.example.com"), ["a.example.com", "example.com", "com"]);
    assert_eq!(asked("1.2.3.4.5.6.7.example").len(), 8);
}

#[test]
fn a_policy_is_the_domains_its_organizations_or_its_suffix() {
    let zone = Zone::of(
        "_dmarc.example.com TXT v=DMARC1; p=reject; sp=quarantine
         _dmarc.own.example.com TXT v=DMARC1; p=none
         x.deep.own.example.com A 192.0.2.1
         a.example.com A 192.0.2.1
         _dmarc.gov TXT v=DMARC1; p=reject; np=quarantine; psd=y
         city.gov A 192.0.2.1
         _dmarc.dept.city.gov TXT v=DMARC1; p=none; psd=n
         www.dept.city.gov A 192.0.2.1
         _dmarc.two.example TXT v=DMARC1; p=reject
         _dmarc.two.example TXT v=DMARC1; p=none
         _dmarc.wrong.example TXT v=dmarc1; p=reject
         _dmarc.late.example TXT p=reject; v=DMARC1
         _dmarc.empty.example TXT v=DMARC1;
         _dmarc.b.empty.example TXT v=DMARC1; p=reject",
    );
    let cases = [
        ("example.com", DmarcResult::Fail, Disposition::Reject, Some("example.com")),
        ("a.example.com", DmarcResult::Fail, Disposition::Quarantine, Some("example.com")),
        ("own.example.com", DmarcResult::Fail, Disposition::Deliver, Some("own.example.com")),
        // Its organization is example.com: the record in between is nobody's that it belongs to (§4.10.1).
        ("x.deep.own.example.com", DmarcResult::Fail, Disposition::Quarantine, Some("example.com")),
        ("city.gov", DmarcResult::Fail, Disposition::Reject, Some("gov")),
        ("nowhere.gov", DmarcResult::Fail, Disposition::Quarantine, Some("gov")),
        ("www.dept.city.gov", DmarcResult::Fail, Disposition::Deliver, Some("dept.city.gov")),
        ("gov", DmarcResult::Fail, Disposition::Reject, Some("gov")),
        ("two.example", DmarcResult::None, Disposition::Deliver, None),
        ("wrong.example", DmarcResult::None, Disposition::Deliver, None),
        ("late.example", DmarcResult::None, Disposition::Deliver, None),
        ("nothing.example", DmarcResult::None, Disposition::Deliver, None),
        // A record without a policy is the one that counts all the same (§4.10.1).
        ("a.b.empty.example", DmarcResult::None, Disposition::Deliver, None),
    ];
    for (author, result, disposition, at) in cases {
        let expected = (result, disposition, at.map(ToOwned::to_owned));
        assert_eq!(unverified(&zone, author), expected, "{author}");
    }
}

/// RFC 9989 §4.10.2: who belongs to one organization, told by signatures of one for mail of the other.
#[test]
fn names_of_one_organization_are_aligned() {
    let zone = "
        _dmarc.example.com TXT v=DMARC1; p=reject
        _dmarc.own.example.com TXT v=DMARC1; p=reject; psd=n
        _dmarc.gov TXT v=DMARC1; p=reject; psd=y
        _dmarc.xn--bcher-kva.example TXT v=DMARC1; p=reject";
    for (author, signing, is_aligned) in [
        ("example.com", "a.b.example.com", true),
        ("a.example.com", "b.example.com", true),
        ("a.example.com", "example.com", true),
        ("own.example.com", "example.com", false),
        ("example.com", "own.example.com", false),
        ("a.own.example.com", "own.example.com", true),
        ("a.city.gov", "city.gov", true),
        ("a.city.gov", "b.town.gov", false),
        ("city.gov", "gov", false),
        ("example.com", "badexample.com", false),
        ("example.com", "example.com.thief.example", false),
        ("bücher.example", "xn--bcher-kva.example", true),
    ] {
        let mut zone = Zone::of(zone);
        let signer = signer(&mut zone, signing);
        let message = signed(&signer, &format!("From: a@{author}\r\n\r\n"));
        let found = authenticated(&zone, &message, request("198.51.100.7", "", "mx.thief.example")).dmarc;
        let expected = if is_aligned { DmarcResult::Pass } else { DmarcResult::Fail };
        assert_eq!(found.result, expected, "{signing} for {author}");
    }
}

#[test]
fn records_are_read_as_the_rfc_says() {
    let record = |text: &str| DmarcRecord::parse(text.as_bytes()).filter(|record| record.is_policy);
    let all = record(
        "v=DMARC1;p=Reject ; sp = none;np=quarantine;psd=y;t=y;adkim=S;aspf=s;pct=50;ri=9;rua=mailto:a@x.example!10m , https://x.example/r,nonsense",
    );
    let all = all.unwrap();
    assert_eq!(
        (all.policy, all.subdomain_policy, all.absent_policy),
        (DmarcPolicy::Reject, Some(DmarcPolicy::None), Some(DmarcPolicy::Quarantine))
    );
    assert_eq!((all.public_suffix, all.is_testing), (PublicSuffix::Yes, true));
    assert_eq!(all.report_addresses, ["mailto:a@x.example", "https://x.example/r"]);
    // §4.10.1: without a valid policy it is one of reports, or none.
    for (text, policy) in [
        ("v=DMARC1", None),
        ("v=DMARC1; p=maybe", None),
        ("v=DMARC1; p=reject; sp=maybe", None),
        ("v=DMARC1; p=reject; sp=maybe; rua=mailto:a@x.example", Some(DmarcPolicy::None)),
        ("v=DMARC1; rua=mailto:a@x.example", Some(DmarcPolicy::None)),
        ("v=DMARC1; rua=nonsense", None),
        ("v=DMARC1; p=reject; p=none", Some(DmarcPolicy::Reject)),
        ("v=DMARC1; =; ;;unknown=1; p=quarantine", Some(DmarcPolicy::Quarantine)),
        ("v=DMARC1; p=reject; t=perhaps; adkim=x", Some(DmarcPolicy::Reject)),
        ("v = DMARC1 ; p=none", Some(DmarcPolicy::None)),
        ("v=DMARC1x; p=none", None),
        ("V=DMARC1; p=none", None),
    ] {
        assert_eq!(record(text).map(|record| record.policy), policy, "{text}");
    }
}

#[test]
fn a_policy_that_is_tried_out_is_one_step_milder() {
    let zone = Zone::of(
        "_dmarc.a.example TXT v=DMARC1; p=reject; t=y
         _dmarc.b.example TXT v=DMARC1; p=quarantine; t=y",
    );
    assert_eq!(unverified(&zone, "a.example").1, Disposition::Quarantine);
    assert_eq!(unverified(&zone, "b.example").1, Disposition::Deliver);
}

/// §5.3.6: where DNS does not answer, a message neither passes nor fails, unless it passes in another way.
#[test]
fn failures_of_dns_are_no_failures_of_the_message() {
    let base = "_dmarc.example.com TXT v=DMARC1; p=reject\nexample.com TXT v=spf1 ip4:192.0.2.1 -all\n";
    let check = |zone: &Zone, message: &str, address: &str| {
        let found = authenticated(zone, message, request(address, "a@example.com", "mx.example.com"));
        (found.dmarc.result, found.dmarc.disposition)
    };
    let unsigned = "From: a@example.com\r\n\r\n";
    let deferred = (DmarcResult::TempError, Disposition::Defer);
    let mut zone = Zone::of(base);
    let own = signer(&mut zone, "example.com");
    let message = signed(&own, unsigned);
    let passed = (DmarcResult::Pass, Disposition::Deliver);
    assert_eq!(check(&zone, &message, "198.51.100.7"), passed);
    zone.add("s1._domainkey.example.com", "FAIL", "");
    assert_eq!(check(&zone, &message, "198.51.100.7"), deferred, "the key is not known");
    assert_eq!(check(&zone, &message, "192.0.2.1"), passed, "SPF passes all the same");
    assert_eq!(check(&zone, unsigned, "198.51.100.7"), (DmarcResult::Fail, Disposition::Reject));
    let slow = Zone::of("_dmarc.example.com FAIL");
    assert_eq!(check(&slow, unsigned, "198.51.100.7"), deferred, "the policy is not known");
    let spf = Zone::of("_dmarc.example.com TXT v=DMARC1; p=reject\nexample.com FAIL");
    assert_eq!(check(&spf, unsigned, "192.0.2.1"), deferred, "SPF's record is not known");
    let spf = Zone::of("_dmarc.example.com TXT v=DMARC1; p=none\nexample.com FAIL");
    assert_eq!(check(&spf, unsigned, "192.0.2.1"), (DmarcResult::TempError, Disposition::Deliver));
    // Somebody else's slow DNS is no way around a policy.
    let other = Zone::of(&format!("{base}thief.example FAIL\nk._domainkey.thief.example FAIL"));
    let message = format!(
        "DKIM-Signature: v=1; a=rsa-sha256; d=thief.example; s=k; h=from; bh=frcCV1k9oG9oKj3dpUqdJg1PxRT2RSN/XKdLCPjaYaY=; b=AAAA\r\n{unsigned}"
    );
    let found =
        authenticated(&other, &message, request("198.51.100.7", "t@thief.example", "mx.thief.example"));
    assert_eq!(
        (found.spf.result.to_string(), found.dkim[0].result.to_string()),
        ("temperror".into(), "temperror".into())
    );
    assert_eq!((found.dmarc.result, found.dmarc.disposition), (DmarcResult::Fail, Disposition::Reject));
}
