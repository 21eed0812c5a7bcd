//! Autodiscover, as Outlook asks for it: XML that is posted (POX), and JSON that says where that is.

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::service::{Endpoint, MailProtocol, MailService, Security};
use crate::xml::Document;

/// Bytes of a request.
pub const REQUEST_BYTES_MAX: usize = 16 << 10;

/// Elements within elements of a request; it has three.
const DEPTH_MAX: usize = 8;

/// The only schema that is answered.
const OUTLOOK: &str = "http://schemas.microsoft.com/exchange/autodiscover/outlook/responseschema/2006a";

const ENVELOPE: &str = "http://schemas.microsoft.com/exchange/autodiscover/responseschema/2006";

/// What is wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AutodiscoverError {
    /// Longer than any request.
    #[error("the request is longer than {REQUEST_BYTES_MAX} bytes")]
    Long,
    /// It is no XML, or declares things of its own.
    #[error("the request is no XML")]
    Xml,
    /// It has no address.
    #[error("the request names no address")]
    Address,
    /// It wants what is for mobile devices, or for Exchange.
    #[error("the request wants an answer of another kind")]
    Schema,
}

/// An answer: a status of HTTP and a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutodiscoverAnswer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// The address that a posted request is about.
///
/// # Errors
/// [`AutodiscoverError`]
pub fn read_autodiscover(body: &[u8]) -> Result<String, AutodiscoverError> {
    if body.len() > REQUEST_BYTES_MAX {
        return Err(AutodiscoverError::Long);
    }
    let text = std::str::from_utf8(body).map_err(|_| AutodiscoverError::Xml)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader::from_str(text);
    let (mut address, mut schema, mut depth, mut value) = (None, None, 0_usize, String::new());
    loop {
        match reader.read_event().map_err(|_| AutodiscoverError::Xml)? {
            Event::Start(_) if depth == DEPTH_MAX => return Err(AutodiscoverError::Xml),
            Event::Start(_) => {
                depth += 1;
                value.clear();
            }
            Event::End(end) => {
                depth = depth.saturating_sub(1);
                let name = end.local_name();
                if name.as_ref().eq_ignore_ascii_case(b"EMailAddress") {
                    address = Some(value.trim().to_owned());
                } else if name.as_ref().eq_ignore_ascii_case(b"AcceptableResponseSchema") {
                    schema = Some(value.trim().to_owned());
                }
                value.clear();
            }
            Event::Text(text) => value.push_str(&text.decode().map_err(|_| AutodiscoverError::Xml)?),
            Event::CData(text) => value.push_str(&text.decode().map_err(|_| AutodiscoverError::Xml)?),
            Event::GeneralRef(reference) => {
                let letter = reference.resolve_char_ref().map_err(|_| AutodiscoverError::Xml)?;
                let name = reference.decode().map_err(|_| AutodiscoverError::Xml)?;
                match (letter, quick_xml::escape::resolve_xml_entity(&name)) {
                    (Some(letter), _) => value.push(letter),
                    (None, Some(text)) => value.push_str(text),
                    (None, None) => return Err(AutodiscoverError::Xml),
                }
            }
            Event::DocType(_) => return Err(AutodiscoverError::Xml),
            Event::Eof => break,
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
    if depth > 0 {
        return Err(AutodiscoverError::Xml);
    }
    // Who names no schema takes what there is.
    if schema.is_some_and(|schema| !schema.eq_ignore_ascii_case(OUTLOOK)) {
        return Err(AutodiscoverError::Schema);
    }
    address.filter(|address| !address.is_empty()).ok_or(AutodiscoverError::Address)
}

/// The answer to a posted request. An address of another domain gets the error that Outlook understands; whether one of ours is
/// anybody's stays unsaid.
#[must_use]
pub fn autodiscover_xml(service: &MailService, address: &str) -> AutodiscoverAnswer {
    let Some(address) = service.own_address(address) else { return error(500, "The address is not known") };
    let mut document = Document::new();
    document.element("Autodiscover", &[("xmlns", ENVELOPE)], |document| {
        document.element("Response", &[("xmlns", OUTLOOK)], |document| {
            document.element("User", &[], |document| document.text("DisplayName", address));
            document.element("Account", &[], |document| {
                document.text("AccountType", "email");
                document.text("Action", "settings");
                for (protocol, kind) in [
                    (MailProtocol::Imap, "IMAP"),
                    (MailProtocol::Pop3, "POP3"),
                    (MailProtocol::Submission, "SMTP"),
                ] {
                    if let Some(endpoint) = service.of(protocol).first() {
                        document.element("Protocol", &[], |document| {
                            protocol_of(document, endpoint, kind, address);
                        });
                    }
                }
            });
        });
    });
    AutodiscoverAnswer { status: 200, body: document.finish() }
}

fn protocol_of(document: &mut Document, endpoint: &Endpoint, kind: &str, address: &str) {
    document.text("Type", kind);
    document.text("Server", endpoint.host.as_str());
    document.text("Port", &endpoint.port.to_string());
    document.text("LoginName", address);
    document.text("DomainRequired", "off");
    document.text("SPA", "off");
    let (ssl, encryption) = match endpoint.security {
        Security::Tls => ("on", "SSL"),
        Security::StartTls => ("on", "TLS"),
    };
    document.text("SSL", ssl);
    document.text("Encryption", encryption);
    document.text("AuthRequired", "on");
    if kind == "SMTP" {
        document.text("UsePOPAuth", "off");
        document.text("SMTPLast", "off");
    }
}

fn error(code: u16, message: &str) -> AutodiscoverAnswer {
    let mut document = Document::new();
    document.element("Autodiscover", &[("xmlns", ENVELOPE)], |document| {
        document.element("Response", &[], |document| {
            document.element("Error", &[("Time", "00:00:00.0000000"), ("Id", "0")], |document| {
                document.text("ErrorCode", &code.to_string());
                document.text("Message", message);
                document.empty("DebugData");
            });
        });
    });
    AutodiscoverAnswer { status: 200, body: document.finish() }
}

/// The answer to `autodiscover.json?Protocol=…`: where the XML is.
#[must_use]
pub fn autodiscover_json(service: &MailService, protocol: &str) -> AutodiscoverAnswer {
    let is_known = protocol.eq_ignore_ascii_case("AutodiscoverV1");
    let (status, body) = if is_known {
        let url = format!("https://{}/autodiscover/autodiscover.xml", service.web_host);
        (200, serde_json::json!({ "Protocol": "AutodiscoverV1", "Url": url }))
    } else {
        let message = "The given protocol value is invalid. Supported values are 'AutodiscoverV1'.";
        (400, serde_json::json!({ "ErrorCode": "InvalidProtocol", "ErrorMessage": message }))
    };
    AutodiscoverAnswer { status, body: body.to_string() }
}
