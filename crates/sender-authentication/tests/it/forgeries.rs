//! Messages that claim to be from somebody else, and what each gets. `bank.example` refuses what it does not vouch for;
//! `thief.example` is the sender's own domain, for which SPF and a signature pass.

use scrinium_sender_authentication::AuthorFault;
use scrinium_sender_authentication::dkim::DkimResult;
use scrinium_sender_authentication::dmarc::{Disposition, DmarcResult};

use crate::kit::{Zone, authenticated, request, signed, signer};

const ZONE: &str = "
    bank.example TXT v=spf1 ip4:192.0.2.1 -all
    _dmarc.bank.example TXT v=DMARC1; p=reject; sp=quarantine; np=reject
    branch.bank.example A 192.0.2.9
    thief.example TXT v=spf1 ip4:198.51.100.7 -all
    _dmarc.thief.example TXT v=DMARC1; p=none
    strict.example TXT v=spf1 ip4:192.0.2.1 -all
    _dmarc.strict.example TXT v=DMARC1; p=reject; adkim=s; aspf=s
    mail.strict.example TXT v=spf1 ip4:192.0.2.1 -all
";

const REST: &str = "To: eve@example.org\r\nSubject: Invoice\r\nDate: Thu, 26 Nov 2026 12:00:00 +0000\r\n\
    Message-ID: <1@thief.example>\r\n\r\nPlease pay.\r\n";

struct Forgery {
    what: &'static str,
    section: &'static str,
    from: &'static str,
    result: DmarcResult,
    disposition: Disposition,
    fault: Option<AuthorFault>,
}

const fn forgery(
    what: &'static str,
    section: &'static str,
    from: &'static str,
    result: DmarcResult,
    disposition: Disposition,
    fault: Option<AuthorFault>,
) -> Forgery {
    Forgery { what, section, from, result, disposition, fault }
}

use AuthorFault::{Absent, Malformed, NoDomain, SeveralDomains, SeveralFields};
use Disposition::{Deliver, Quarantine, Reject};
use DmarcResult::{Fail, Pass, PermError};

const FORGERIES: [Forgery; 24] = [
    forgery("the sender's own", "RFC 9989 §5.3.5", "From: t@thief.example\r\n", Pass, Deliver, None),
    forgery("another From", "RFC 9989 §5.3.6", "From: ceo@bank.example\r\n", Fail, Reject, None),
    forgery("in other letters", "RFC 4343", "from: CEO@BANK.Example.\r\n", Fail, Reject, None),
    forgery(
        "an existing subdomain",
        "RFC 9989 §4.10.1, sp=",
        "From: a@branch.bank.example\r\n",
        Fail,
        Quarantine,
        None,
    ),
    forgery(
        "a subdomain that is not there",
        "RFC 9989 §4.10.1, np=",
        "From: a@no.bank.example\r\n",
        Fail,
        Reject,
        None,
    ),
    forgery(
        "a name with many labels",
        "RFC 9989 §4.10",
        "From: a@1.2.3.4.5.6.7.8.9.bank.example\r\n",
        Fail,
        Reject,
        None,
    ),
    forgery(
        "two From fields",
        "RFC 5322 §3.6",
        "From: t@thief.example\r\nFrom: ceo@bank.example\r\n",
        PermError,
        Reject,
        Some(SeveralFields),
    ),
    forgery(
        "two From fields, the other first",
        "RFC 5322 §3.6",
        "From: ceo@bank.example\r\nfrom: t@thief.example\r\n",
        PermError,
        Reject,
        Some(SeveralFields),
    ),
    forgery(
        "two From fields of one domain",
        "RFC 5322 §3.6",
        "From: t@thief.example\r\nFrom: u@thief.example\r\n",
        PermError,
        Quarantine,
        Some(SeveralFields),
    ),
    forgery("a space before the colon", "RFC 5322 §4.5.2", "From : ceo@bank.example\r\n", Fail, Reject, None),
    forgery("no From", "RFC 5322 §3.6", "", PermError, Quarantine, Some(Absent)),
    forgery("an empty From", "RFC 5322 §3.6.2", "From: \r\n", PermError, Quarantine, Some(NoDomain)),
    forgery(
        "two addresses",
        "RFC 9989 §11.5",
        "From: t@thief.example, ceo@bank.example\r\n",
        PermError,
        Reject,
        Some(SeveralDomains),
    ),
    forgery(
        "two addresses of the sender",
        "RFC 9989 §5.3.1",
        "From: t@thief.example, u@thief.example\r\n",
        Pass,
        Deliver,
        None,
    ),
    forgery(
        "a group",
        "RFC 5322 §3.4",
        "From: Board: ceo@bank.example, t@thief.example;\r\n",
        PermError,
        Reject,
        Some(SeveralDomains),
    ),
    forgery("a group of one", "RFC 6854 §4", "From: Board: ceo@bank.example;\r\n", Fail, Reject, None),
    forgery(
        "an empty group",
        "RFC 6854 §4",
        "From: ceo@bank.example:;\r\n",
        PermError,
        Reject,
        Some(Malformed),
    ),
    forgery(
        "two addresses in angles",
        "RFC 5322 §3.4",
        "From: <ceo@bank.example> <t@thief.example>\r\n",
        PermError,
        Reject,
        Some(Malformed),
    ),
    forgery("a route", "RFC 5322 §4.4", "From: <@thief.example:ceo@bank.example>\r\n", Fail, Reject, None),
    forgery(
        "an address as a name",
        "RFC 9989 §11.4",
        "From: \"ceo@bank.example\" <t@thief.example>\r\n",
        Pass,
        Deliver,
        None,
    ),
    forgery(
        "an encoded word as a name",
        "RFC 2047 §5",
        "From: =?utf-8?q?ceo=40bank=2Eexample?= <t@thief.example>\r\n",
        Pass,
        Deliver,
        None,
    ),
    forgery(
        "an encoded word as an address",
        "RFC 2047 §5",
        "From: =?utf-8?q?ceo=40bank=2Eexample?=\r\n",
        PermError,
        Quarantine,
        Some(Malformed),
    ),
    forgery(
        "a comment that is not closed",
        "RFC 5322 §3.2.2",
        "From: ceo@bank.example (<t@thief.example>\r\n",
        PermError,
        Reject,
        Some(Malformed),
    ),
    forgery(
        "a comment within",
        "RFC 5322 §3.2.2",
        "From: ceo@(t@thief.example)bank.example\r\n",
        Fail,
        Reject,
        None,
    ),
];

#[test]
fn each_kind_of_forgery_gets_its_verdict() {
    let mut zone = Zone::of(ZONE);
    let thief = signer(&mut zone, "thief.example");
    for Forgery { what, section, from, result, disposition, fault } in FORGERIES {
        let unsigned = format!("{from}{REST}");
        let is_signed = unsigned.to_lowercase().matches("from:").count() == 1;
        let message = if is_signed { signed(&thief, &unsigned) } else { unsigned };
        let sender = request("198.51.100.7", "t@thief.example", "mx.thief.example");
        let found = authenticated(&zone, &message, sender);
        let verdict = (found.dmarc.result, found.dmarc.disposition);
        assert_eq!(
            (verdict, found.authors.fault),
            ((result, disposition), fault),
            "{what} ({section}): {found:?}"
        );
        if is_signed {
            assert_eq!(found.dkim[0].result, DkimResult::Pass, "{what}: the thief's own signature is right");
        }
    }
}

/// Changes of a message that `bank.example` signed itself; none of them may pass.
#[test]
fn what_is_changed_in_a_signed_message_is_noticed() {
    let mut zone = Zone::of(ZONE);
    let bank = signer(&mut zone, "bank.example");
    let message = signed(&bank, &format!("From: ceo@bank.example\r\n{REST}"));
    let sender = request("198.51.100.7", "t@thief.example", "mx.thief.example");
    assert_eq!(authenticated(&zone, &message, sender).dmarc.result, Pass);
    let changes: [(&str, &str, &str); 10] = [
        ("the body", "Please pay.", "Please pay me."),
        ("an added line", "Please pay.\r\n", "Please pay.\r\nTo me.\r\n"),
        ("the subject", "Subject: Invoice", "Subject: Last invoice"),
        (
            "a second From in front (RFC 6376 §8.15)",
            "DKIM-Signature:",
            "From: x@bank.example\r\nDKIM-Signature:",
        ),
        ("a second From behind (RFC 6376 §8.15)", "\r\n\r\nPlease", "\r\nFrom: x@bank.example\r\n\r\nPlease"),
        ("a second Subject (RFC 6376 §8.15)", "DKIM-Signature:", "Subject: Win\r\nDKIM-Signature:"),
        ("a Reply-To that was not there", "DKIM-Signature:", "Reply-To: t@thief.example\r\nDKIM-Signature:"),
        ("another type (RFC 6376 §8.15)", "\r\n\r\nPlease", "\r\nContent-Type: text/html\r\n\r\nPlease"),
        ("a length (RFC 6376 §8.2)", "DKIM-Signature: v=1;", "DKIM-Signature: v=1; l=5;"),
        ("the domain", "d=bank.example", "d=thief.example"),
    ];
    for (what, old, new) in changes {
        let changed = message.replacen(old, new, 1);
        assert_ne!(changed, message, "{what}");
        let found = authenticated(&zone, &changed, sender);
        assert_ne!(found.dkim[0].result, DkimResult::Pass, "{what}: {found:?}");
        assert_ne!(found.dmarc.result, Pass, "{what}");
        assert_eq!(found.dmarc.disposition, Reject, "{what}");
    }
}

#[test]
fn alignment_is_as_near_as_the_domain_asks() {
    let mut zone = Zone::of(ZONE);
    let below = signer(&mut zone, "mail.strict.example");
    let branch = signer(&mut zone, "branch.bank.example");
    let host = request("192.0.2.1", "b@mail.strict.example", "mail.strict.example");
    let message = signed(&below, &format!("From: a@strict.example\r\n{REST}"));
    let found = authenticated(&zone, &message, host);
    assert_eq!((found.spf.result.to_string(), found.dkim[0].result), ("pass".to_owned(), DkimResult::Pass));
    assert_eq!(found.dmarc.result, Fail, "adkim=s, aspf=s (RFC 9989 §4.4)");
    // RFC 9989 §4.10.2: both are of bank.example.
    let message = signed(&branch, &format!("From: a@bank.example\r\n{REST}"));
    let found = authenticated(&zone, &message, request("198.51.100.7", "", "thief.example"));
    assert_eq!(found.dmarc.result, Pass);
    assert!(found.dmarc.is_dkim_aligned && !found.dmarc.is_spf_aligned);
}
