//! Logging in, by each mechanism, rightly and wrongly.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use scrinium_credentials::sasl::{ChannelBindings, ClientExchange, ClientSecret, SaslMechanism};
use scrinium_smtp::Service;

use crate::world::{Port, ada, codes, encryption, options};

fn submission() -> Port {
    let mut port = Port::with(options(Service::Submission), Some(encryption()));
    port.world.keys = Some(ada());
    assert_eq!(port.codes("EHLO x\r\n"), [250]);
    port
}

/// An exchange of a client that knows the mechanism; what the server says last.
fn log_in(port: &mut Port, mechanism: SaslMechanism, secret: &str, with_initial: bool) -> String {
    let is_token = matches!(mechanism, SaslMechanism::OauthBearer | SaslMechanism::Xoauth2);
    let secret = if is_token { ClientSecret::Token(secret) } else { ClientSecret::Password(secret) };
    let bindings = if mechanism == SaslMechanism::ScramSha256Plus {
        encryption().bindings
    } else {
        ChannelBindings::default()
    };
    let mut client =
        ClientExchange::begin(&[mechanism], "ada", secret, true, &bindings).expect("an exchange");
    let initial = if with_initial { client.initial() } else { None };
    let word = initial.map(|initial| format!(" {}", STANDARD.encode(initial))).unwrap_or_default();
    let mut said = port.give(format!("AUTH {}{word}\r\n", mechanism.name()).as_bytes(), 7);
    while let Some(challenge) = said.strip_prefix("334 ") {
        let challenge = STANDARD.decode(challenge.trim_end()).expect("base64");
        // A client whose token is refused answers with nothing.
        let response = client.respond(&challenge).unwrap_or_default();
        said = port.give(format!("{}\r\n", STANDARD.encode(response)).as_bytes(), 7);
    }
    said
}

#[test]
fn everybody_comes_in_by_every_mechanism_with_the_right_proof() {
    for mechanism in SaslMechanism::ALL {
        for with_initial in [true, false] {
            let is_token = matches!(mechanism, SaslMechanism::OauthBearer | SaslMechanism::Xoauth2);
            let right = if is_token { "token" } else { "secret" };
            let mut port = submission();
            let said = log_in(&mut port, mechanism, right, with_initial);
            assert_eq!(said, "235 2.7.0 Welcome\r\n", "{mechanism:?}");
            assert_eq!(port.session.person(), Some("person:ada"));
            let mut port = submission();
            let said = log_in(&mut port, mechanism, "wrong", with_initial);
            assert!(said.starts_with("535 5.7.8 "), "{mechanism:?}: {said}");
            assert_eq!(port.session.person(), None);
            assert_eq!(port.codes("MAIL FROM:<>\r\n"), [530]);
        }
    }
}

#[test]
fn where_nobody_else_listens_people_log_in_without_tls() {
    let plain = "AUTH PLAIN AGFkYQBzZWNyZXQ=\r\n";
    let mut open = Port::new(options(Service::Submission));
    assert!(!open.give(b"EHLO x\r\n", 99).contains("AUTH"));
    assert_eq!(open.codes(plain), [538]);
    let mut private = Port::private(options(Service::Submission));
    let offers = private.give(b"EHLO x\r\n", 99);
    assert!(offers.contains("AUTH SCRAM-SHA-256 ") && offers.contains(" PLAIN LOGIN"), "{offers}");
    assert_eq!(private.codes(plain), [235]);
    assert_eq!(private.codes("MAIL FROM:<a@b.test>\r\n"), [250]);
}

#[test]
fn an_exchange_can_be_given_up_and_goes_wrong_cleanly() {
    let mut port = submission();
    assert_eq!(port.codes("AUTH PLAIN\r\n*\r\nNOOP\r\n"), [334, 501, 250]);
    assert_eq!(port.codes("AUTH PLAIN\r\nnot base64!\r\nNOOP\r\n"), [334, 501, 250]);
    assert_eq!(port.codes("AUTH CRAM-MD5\r\nAUTH PLAIN AAAA BBBB\r\n"), [504, 501]);
    assert_eq!(
        codes(&port.give(format!("AUTH PLAIN\r\n{}\r\n", "A".repeat(20_000)).as_bytes(), 999)),
        [334, 500]
    );
    // A message that has begun is not taken over by somebody else.
    let mut port = submission();
    assert_eq!(
        port.codes("AUTH PLAIN AGFkYQBzZWNyZXQ=\r\nMAIL FROM:<a@b.test>\r\nAUTH PLAIN AGFkYQBzZWNyZXQ=\r\n"),
        [235, 250, 503]
    );
    // The connection ends after some failures.
    let mut port = submission();
    assert_eq!(
        port.codes("AUTH PLAIN AGFkYQB4\r\nAUTH PLAIN AGFkYQB4\r\nAUTH PLAIN AGFkYQB4\r\n"),
        [535, 535, 535, 421]
    );
    // No secret goes over an open connection, and nobody logs in on port 25.
    let mut open = options(Service::Submission);
    open.requires_tls = false;
    let mut port = Port::new(open);
    let offers = port.give(b"EHLO x\r\n", 99);
    assert!(offers.contains("250-AUTH SCRAM-SHA-256\r\n"), "{offers}");
    assert_eq!(port.codes("AUTH PLAIN AGFkYQBzZWNyZXQ=\r\nAUTH SCRAM-SHA-256-PLUS\r\n"), [538, 504]);
    assert!(port.world.claims.is_empty());
    assert_eq!(
        Port::new(options(Service::Relay)).codes("EHLO x\r\nAUTH PLAIN AGFkYQBzZWNyZXQ=\r\n"),
        [250, 502]
    );
}
