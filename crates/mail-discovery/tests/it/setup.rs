//! Documents for mail programs, and records.

use proptest::prelude::*;
use quick_xml::Reader;
use quick_xml::events::Event;
use scrinium_mail_discovery::sts::StsPolicy;
use scrinium_mail_discovery::{
    AutodiscoverError, Endpoint, MailProtocol, MailService, Security, SpfSource, autoconfig,
    autodiscover_json, autodiscover_xml, profile, read_autodiscover, records,
};
use scrinium_sender_authentication::DomainName;
use scrinium_sender_authentication::dmarc::DmarcRecord;
use scrinium_sender_authentication::spf::SpfRecord;

fn name(text: &str) -> DomainName {
    DomainName::parse(text).unwrap()
}

fn service(display_name: &str) -> MailService {
    let endpoint =
        |protocol, port, security| Endpoint { protocol, host: name("mail.example.org"), port, security };
    MailService {
        domain: name("example.org"),
        display_name: display_name.to_owned(),
        endpoints: vec![
            endpoint(MailProtocol::Imap, 143, Security::StartTls),
            endpoint(MailProtocol::Imap, 993, Security::Tls),
            endpoint(MailProtocol::Submission, 465, Security::Tls),
        ],
        web_host: name("www.example.org"),
    }
}

/// Names of elements and their texts.
type Elements = Vec<(String, String)>;

/// The elements of a document with their texts, in their order; fails where it is no XML.
fn elements(document: &str) -> Elements {
    let mut reader = Reader::from_str(document);
    let (mut open, mut found) = (Elements::new(), Elements::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) => {
                open.push((String::from_utf8_lossy(start.name().as_ref()).into(), String::new()));
            }
            Event::End(_) => found.push(open.pop().unwrap()),
            Event::Empty(start) => {
                found.push((String::from_utf8_lossy(start.name().as_ref()).into(), String::new()));
            }
            Event::Text(text) => {
                if let Some((_, value)) = open.last_mut() {
                    value.push_str(&text.decode().unwrap());
                }
            }
            Event::GeneralRef(reference) => {
                let name = reference.decode().unwrap();
                open.last_mut().unwrap().1.push_str(quick_xml::escape::resolve_xml_entity(&name).unwrap());
            }
            Event::Eof => break,
            _ => {}
        }
    }
    assert!(open.is_empty(), "{document}");
    found
}

fn values<'a>(found: &'a [(String, String)], wanted: &str) -> Vec<&'a str> {
    found.iter().filter(|(name, _)| name == wanted).map(|(_, value)| value.as_str()).collect()
}

#[test]
fn each_document_tells_the_same_ports() {
    let service = service("Example & Sons");
    let found = elements(&autoconfig(&service, None));
    assert_eq!(
        values(&found, "port"),
        ["993", "143", "465"],
        "what is encrypted from the first byte comes first"
    );
    assert_eq!(values(&found, "socketType"), ["SSL", "STARTTLS", "SSL"]);
    assert_eq!(values(&found, "username"), ["%EMAILADDRESS%"; 3]);
    assert_eq!(values(&found, "displayName"), ["Example & Sons"]);
    let known = elements(&autoconfig(&service, Some("ada@Example.ORG")));
    assert_eq!(values(&known, "username"), ["ada@Example.ORG"; 3]);
    assert_eq!(
        values(&elements(&autoconfig(&service, Some("ada@elsewhere.org"))), "username"),
        ["%EMAILADDRESS%"; 3]
    );

    let answer = autodiscover_xml(&service, "ada@example.org");
    let found = elements(&answer.body);
    assert_eq!((values(&found, "Type"), values(&found, "Port")), (vec!["IMAP", "SMTP"], vec!["993", "465"]));
    assert_eq!(values(&found, "Encryption"), ["SSL", "SSL"]);
    let unknown = elements(&autodiscover_xml(&service, "ada@elsewhere.org").body);
    assert_eq!(values(&unknown, "ErrorCode"), ["500"]);

    let text = profile(&service, "ada@example.org", Some("Ada")).unwrap();
    let found = elements(&text);
    assert_eq!(values(&found, "integer"), ["993", "465", "1", "1"]);
    assert_eq!(
        profile(&service, "ada@example.org", Some("Ada")).unwrap(),
        text,
        "a second one replaces the first"
    );
    assert_ne!(profile(&service, "bob@example.org", Some("Ada")).unwrap(), text);
    assert_eq!(profile(&service, "ada@elsewhere.org", None), None);

    let json: serde_json::Value =
        serde_json::from_str(&autodiscover_json(&service, "autodiscoverv1").body).unwrap();
    assert_eq!(json["Url"], "https://www.example.org/autodiscover/autodiscover.xml");
    assert_eq!(autodiscover_json(&service, "ActiveSync").status, 400);
}

#[test]
fn requests_of_outlook_are_read() {
    let request = |address: &str, schema: &str| {
        format!(
            "<?xml version=\"1.0\"?><Autodiscover xmlns=\"http://schemas.microsoft.com/exchange/autodiscover/outlook/requestschema/2006\">\
             <Request><EMailAddress>{address}</EMailAddress><AcceptableResponseSchema>{schema}</AcceptableResponseSchema></Request></Autodiscover>"
        )
    };
    let outlook = "http://schemas.microsoft.com/exchange/autodiscover/outlook/responseschema/2006a";
    let read = |text: String| read_autodiscover(text.as_bytes());
    assert_eq!(read(request(" ada@example.org ", outlook)), Ok("ada@example.org".to_owned()));
    assert_eq!(read(request("a&amp;b@example.org", outlook)), Ok("a&b@example.org".to_owned()));
    let mobile = "http://schemas.microsoft.com/exchange/autodiscover/mobilesync/responseschema/2006";
    assert_eq!(read(request("ada@example.org", mobile)), Err(AutodiscoverError::Schema));
    assert_eq!(read(request("", outlook)), Err(AutodiscoverError::Address));
    assert_eq!(read(request("&x;", outlook)), Err(AutodiscoverError::Xml));
    let declared =
        request("x", outlook).replace("<Autodiscover", "<!DOCTYPE a [<!ENTITY x \"y\">]><Autodiscover");
    assert_eq!(read(declared), Err(AutodiscoverError::Xml));
    assert_eq!(read("<a>".repeat(100)), Err(AutodiscoverError::Xml));
    assert_eq!(read(" ".repeat(20_000)), Err(AutodiscoverError::Long));
}

proptest! {
    /// Whatever a name or an address holds, a document has the same elements.
    #[test]
    fn no_value_ends_its_element(display in any::<String>(), local in "[^@]{1,20}", full in any::<String>()) {
        let plain = service("x");
        let odd = service(&display);
        let address = format!("{local}@example.org");
        let names = |text: &str| elements(text).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        prop_assert_eq!(names(&autoconfig(&odd, Some(&address))), names(&autoconfig(&plain, None)));
        if odd.own_address(&address).is_some() {
            let ours = profile(&odd, &address, Some(&full)).unwrap();
            prop_assert_eq!(names(&ours), names(&profile(&plain, "a@example.org", Some("x")).unwrap()));
            let ours = autodiscover_xml(&odd, &address).body;
            prop_assert_eq!(names(&ours), names(&autodiscover_xml(&plain, "a@example.org").body));
        }
    }

    #[test]
    fn any_request_is_an_address_or_none(body in prop::collection::vec(any::<u8>(), 0..300)) {
        _ = read_autodiscover(&body);
    }
}

#[test]
fn records_say_what_is_there_and_what_is_not() {
    let service = service("Example");
    let policy =
        StsPolicy::parse(b"version: STSv1\nmode: enforce\nmx: mail.example.org\nmax_age: 604800\n").unwrap();
    let sources = [
        SpfSource::MailHosts,
        SpfSource::Address("2001:db8::1".parse().unwrap()),
        SpfSource::Include(name("x.example")),
    ];
    let keys = [("s1".to_owned(), "v=DKIM1; p=AAAA".to_owned())];
    let found = records(&service, &name("mail.example.org"), &sources, &keys, Some(&policy));
    let value = |wanted: &str, kind: &str| {
        let record = found.iter().find(|record| record.name == wanted && record.kind == kind);
        record.map(|record| record.value.as_str())
    };
    assert_eq!(value("example.org", "MX"), Some("10 mail.example.org."));
    let spf = value("example.org", "TXT").unwrap();
    assert_eq!(spf, "v=spf1 mx ip6:2001:db8::1 include:x.example -all");
    assert!(SpfRecord::parse(spf.as_bytes()).is_ok());
    assert!(DmarcRecord::parse(value("_dmarc.example.org", "TXT").unwrap().as_bytes()).is_some());
    assert_eq!(value("_imaps._tcp.example.org", "SRV"), Some("0 1 993 mail.example.org."));
    assert_eq!(value("_imap._tcp.example.org", "SRV"), Some("10 1 143 mail.example.org."));
    assert_eq!(value("_pop3s._tcp.example.org", "SRV"), Some("0 0 0 ."), "RFC 6186 §3.4");
    assert_eq!(value("_mta-sts.example.org", "TXT"), Some(policy.record().as_str()));
    assert!(found.iter().all(|record| !record.reason.is_empty()));
}
