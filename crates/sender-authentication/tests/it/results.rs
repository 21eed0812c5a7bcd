//! `Authentication-Results`: written, and taken away where it claims to be ours.

use proptest::prelude::*;
use scrinium_sender_authentication::{Head, claims, without_claims};

use crate::kit::{Zone, authenticated, request, signed, signer};

#[test]
fn the_field_says_what_was_verified() {
    let mut zone =
        Zone::of("example.com TXT v=spf1 ip4:192.0.2.1 -all\n_dmarc.example.com TXT v=DMARC1; p=reject");
    let own = signer(&mut zone, "example.com");
    let message = signed(&own, "From: A <a@example.com>\r\n\r\nHi\r\n");
    let sender = request("192.0.2.1", "a@example.com", "mx.example.com");
    let field = authenticated(&zone, &message, sender).field("mx.example.org", &sender);
    let (before, after) = field.split_once("header.b=\"").unwrap();
    assert_eq!(
        before,
        "Authentication-Results: mx.example.org;\r\n\tspf=pass smtp.mailfrom=a@example.com;\r\n\t\
         dkim=pass header.d=example.com header.s=s1 header.a=ed25519-sha256 "
    );
    assert_eq!(
        after.get(8..).unwrap(),
        "\";\r\n\tdmarc=pass header.from=example.com policy.dmarc=reject\r\n"
    );
    let field = authenticated(&zone, "Subject: x\r\n\r\n", request("192.0.2.9", "", "mx.example.com"))
        .field("mx.example.org", &request("192.0.2.9", "", "mx.example.com"));
    assert_eq!(
        field,
        "Authentication-Results: mx.example.org;\r\n\tspf=none smtp.helo=mx.example.com;\r\n\tdkim=none;\r\n\t\
         dmarc=permerror reason=\"there is no From field\"\r\n"
    );
}

proptest! {
    /// Whatever a sender says, the field stays one field with the results that it has.
    #[test]
    fn nothing_of_a_message_gets_into_the_field(
        local in "[ -~\r\n\t]{0,20}", domain in "[ -~\r\n]{0,20}", tag in "[ -~\r\n]{0,12}",
    ) {
        let zone = Zone::of("_dmarc.example.com TXT v=DMARC1; p=none");
        let mail_from = format!("{local}@{domain}");
        let helo = format!("{domain}{tag}");
        let message = format!(
            "DKIM-Signature: v=1; a={tag}; d={domain}; s={local}; h=from; bh=AA; b={tag}\r\nFrom: {local}@{domain}\r\n\r\n"
        );
        let sender = request("192.0.2.1", &mail_from, &helo);
        let field = authenticated(&zone, &message, sender).field("mx.example.org", &sender);
        let head = Head::parse(field.as_bytes());
        prop_assert_eq!(head.fields.len(), 1);
        prop_assert!(field.bytes().all(|byte| (b' '..=b'~').contains(&byte) || b"\r\n\t".contains(&byte)));
        let results = field.matches("dmarc=").count() - field.matches("policy.dmarc=").count();
        prop_assert_eq!(results, 1, "{}", field);
        prop_assert!(!field.contains("\r\n\r\n"));
    }
}

#[test]
fn fields_that_claim_to_be_ours_go() {
    for (value, is_ours) in [
        (" mx.example.org; spf=pass", true),
        ("MX.EXAMPLE.ORG.; none", true),
        ("\r\n\tmx.example.org 1;spf=pass", true),
        (" (a (nested) comment) mx.example.org; spf=pass", true),
        (" (with \\) a paren) \"mx.example.org\"; spf=pass", true),
        (" \"mx\\.example.org\"; none", true),
        ("mx.example.org", true),
        ("mx.example.org(comment);none", true),
        // What cannot be read may be anything to somebody else.
        ("", true),
        (" (never closed mx.example.org", true),
        ("\"never closed", true),
        ("\u{fc}\n;", false),
        (" mx.example.com; spf=pass", false),
        (" mx.example.org.example.com; spf=pass", false),
        (" x; dkim=pass (mx.example.org)", false),
    ] {
        assert_eq!(claims(value.as_bytes(), &["mx.example.org", "mail.example.org"]), is_ours, "{value:?}");
    }
    let head = "Received: x\r\nAuthentication-Results: mx.example.org;\r\n dmarc=pass\r\nFrom: a@b.example\r\n\
        authentication-results : mail.example.org; spf=pass\r\nAuthentication-Results: elsewhere.example; spf=pass\r\nX: y\r\n";
    let left = without_claims(head.as_bytes(), &["mx.example.org", "mail.example.org"]);
    assert_eq!(
        String::from_utf8(left).unwrap(),
        "Received: x\r\nFrom: a@b.example\r\nAuthentication-Results: elsewhere.example; spf=pass\r\nX: y\r\n"
    );
    // However far down it stands.
    let far =
        format!("{}Authentication-Results: mx.example.org; dmarc=pass\r\n\r\n", "X: y\r\n".repeat(300_000));
    let left = without_claims(far.as_bytes(), &["mx.example.org"]);
    assert_eq!(left.len(), 300_000 * 6 + 2);
}
