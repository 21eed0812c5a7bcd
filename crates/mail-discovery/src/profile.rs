//! Configuration profiles (`.mobileconfig`), which iOS and macOS install.

use crate::service::{MailProtocol, MailService, Security};
use crate::xml::Document;

const PLIST: &str =
    "plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\"";

/// A profile for one address of the domain; `None` for another address, or without a port to read mail at and one to send it. Its
/// identifiers follow from the address, so that a second installation replaces the first one.
#[must_use]
pub fn profile(service: &MailService, address: &str, full_name: Option<&str>) -> Option<String> {
    let address = service.own_address(address)?;
    let imap = service.of(MailProtocol::Imap);
    let (incoming, kind) = match imap.first() {
        Some(endpoint) => (*endpoint, "EmailTypeIMAP"),
        None => (*service.of(MailProtocol::Pop3).first()?, "EmailTypePOP"),
    };
    let submission = service.of(MailProtocol::Submission);
    let outgoing = *submission.first()?;
    let reversed: Vec<&str> = service.domain.as_str().split('.').rev().collect();
    let identifier = format!("{}.mail", reversed.join("."));
    let mut document = Document::new();
    document.document_type(PLIST);
    document.element("plist", &[("version", "1.0")], |document| {
        dictionary(document, |document| {
            document.text("key", "PayloadContent");
            document.element("array", &[], |document| {
                dictionary(document, |document| {
                    string(document, "EmailAccountDescription", &service.display_name);
                    if let Some(name) = full_name {
                        string(document, "EmailAccountName", name);
                    }
                    string(document, "EmailAccountType", kind);
                    string(document, "EmailAddress", address);
                    for (prefix, endpoint) in [("Incoming", incoming), ("Outgoing", outgoing)] {
                        let key = |rest: &str| format!("{prefix}MailServer{rest}");
                        string(document, &key("Authentication"), "EmailAuthPassword");
                        string(document, &key("HostName"), endpoint.host.as_str());
                        integer(document, &key("PortNumber"), endpoint.port);
                        // It stands for STARTTLS as well; which of both follows from the port.
                        let is_encrypted = matches!(endpoint.security, Security::Tls | Security::StartTls);
                        boolean(document, &key("UseSSL"), is_encrypted);
                        string(document, &key("Username"), address);
                    }
                    boolean(document, "OutgoingPasswordSameAsIncomingPassword", true);
                    payload(document, "com.apple.mail.managed", &format!("{identifier}.account"), address);
                    string(document, "PayloadDisplayName", &service.display_name);
                });
            });
            payload(document, "Configuration", &identifier, address);
            string(document, "PayloadDisplayName", &service.display_name);
            boolean(document, "PayloadRemovalDisallowed", false);
        });
    });
    Some(document.finish())
}

fn payload(document: &mut Document, kind: &str, identifier: &str, address: &str) {
    string(document, "PayloadType", kind);
    integer(document, "PayloadVersion", 1);
    string(document, "PayloadIdentifier", identifier);
    string(document, "PayloadUUID", &uuid(&format!("{identifier} {address}")));
}

/// A UUID of the same name each time (RFC 9562 §5.8).
fn uuid(name: &str) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("scrinium 2026 identifier of a configuration profile");
    hasher.update(name.as_bytes());
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    let number = u128::from_be_bytes(bytes) & !(0xf << 76) & !(0x3 << 62) | (0x8 << 76) | (0x2 << 62);
    let digits = format!("{number:032X}");
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

fn dictionary(document: &mut Document, inside: impl FnOnce(&mut Document)) {
    document.element("dict", &[], inside);
}

fn string(document: &mut Document, key: &str, value: &str) {
    document.text("key", key);
    document.text("string", value);
}

fn integer(document: &mut Document, key: &str, value: u16) {
    document.text("key", key);
    document.text("integer", &value.to_string());
}

fn boolean(document: &mut Document, key: &str, value: bool) {
    document.text("key", key);
    document.empty(if value { "true" } else { "false" });
}
