//! Autoconfig, version 1.1, as Thunderbird, K-9, KMail and others read it, at `/.well-known/autoconfig/mail/config-v1.1.xml` of a domain
//! and `/mail/config-v1.1.xml` of `autoconfig.DOMAIN`.

use crate::service::{Endpoint, MailProtocol, MailService, Security};
use crate::xml::Document;

/// Stands for the address where the client has not said which it is about.
const PLACEHOLDER: &str = "%EMAILADDRESS%";

/// The document, for an address if it is known. People log in with their address.
#[must_use]
pub fn autoconfig(service: &MailService, address: Option<&str>) -> String {
    let name = address.and_then(|address| service.own_address(address)).unwrap_or(PLACEHOLDER);
    let mut document = Document::new();
    document.element("clientConfig", &[("version", "1.1")], |document| {
        document.element("emailProvider", &[("id", service.domain.as_str())], |document| {
            document.text("domain", service.domain.as_str());
            document.text("displayName", &service.display_name);
            document.text("displayShortName", &service.display_name);
            for (protocol, kind) in [(MailProtocol::Imap, "imap"), (MailProtocol::Pop3, "pop3")] {
                for endpoint in service.of(protocol) {
                    document.element("incomingServer", &[("type", kind)], |document| {
                        server(document, endpoint, name);
                    });
                }
            }
            for endpoint in service.of(MailProtocol::Submission) {
                document.element("outgoingServer", &[("type", "smtp")], |document| {
                    server(document, endpoint, name);
                });
            }
        });
    });
    document.finish()
}

fn server(document: &mut Document, endpoint: &Endpoint, name: &str) {
    document.text("hostname", endpoint.host.as_str());
    document.text("port", &endpoint.port.to_string());
    document.text(
        "socketType",
        match endpoint.security {
            Security::Tls => "SSL",
            Security::StartTls => "STARTTLS",
        },
    );
    // Within TLS, the password itself: it is what this means here.
    document.text("authentication", "password-cleartext");
    document.text("username", name);
}
