//! What mail programs and other servers ask of a mail domain, as strangers.

use scrinium_http::MailSetup as _;
use scrinium_mail_discovery::sts::StsPolicy;
use scrinium_sender_authentication::DomainName;

use crate::common::{Acme, Answer, Server};

const AUTOCONFIG: &str = "/.well-known/autoconfig/mail/config-v1.1.xml";
const PROFILE: &str = "/_mail_setup/profile.mobileconfig";
const PLACE: &str = "/autodiscover/autodiscover.json";

async fn at(server: &Server, host: &str, path: &str) -> Answer {
    server.ask_as("", "GET", path, [("host", host)]).await
}

fn posted(address: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><Autodiscover xmlns=\"http://schemas.microsoft.com/exchange/autodiscover/outlook/requestschema/2006\">\
         <Request><EMailAddress>{address}</EMailAddress><AcceptableResponseSchema>\
         http://schemas.microsoft.com/exchange/autodiscover/outlook/responseschema/2006a\
         </AcceptableResponseSchema></Request></Autodiscover>"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_find_the_ports_by_the_address_or_by_the_host() {
    let server = Server::start().await;
    for (host, path) in [
        ("acme.example", AUTOCONFIG.to_owned()),
        ("autoconfig.acme.example:8443", "/mail/config-v1.1.xml".to_owned()),
        ("127.0.0.1", format!("{AUTOCONFIG}?emailaddress=ada%40acme.example")),
    ] {
        let answer = at(&server, host, &path).await.expect(200);
        assert!(answer.header("content-type").unwrap().starts_with("text/xml"), "{path}");
        let text = answer.text();
        assert!(text.contains("<hostname>mail.acme.example</hostname>") && text.contains(">993<"), "{text}");
    }
    for path in ["/autodiscover/autodiscover.xml", "/Autodiscover/Autodiscover.xml"] {
        let answer = server.ask_as("", "POST", path, ([], posted("ada@acme.example"))).await.expect(200);
        assert!(answer.text().contains("<LoginName>ada@acme.example</LoginName>"), "{}", answer.text());
    }
    let url = "https://mail.acme.example/autodiscover/autodiscover.xml";
    for path in [
        format!("{PLACE}?Email=ada@acme.example&Protocol=Autodiscoverv1"),
        format!("{PLACE}/v1.0/ada@acme.example?protocol=AutodiscoverV1"),
    ] {
        assert_eq!(server.ask_as("", "GET", &path, ()).await.expect(200).json()["Url"], url);
    }
    let other = format!("{PLACE}/v1.0/ada@acme.example?Protocol=ActiveSync");
    assert_eq!(server.ask_as("", "GET", &other, ()).await.expect(400).json()["ErrorCode"], "InvalidProtocol");
    let answer = server.ask_as("", "GET", &format!("{PROFILE}?emailaddress=ada@acme.example"), ()).await;
    assert!(answer.header("content-type").unwrap().starts_with("application/x-apple-aspen-config"));
    assert!(answer.expect(200).text().contains("<string>ada@acme.example</string>"));
    let policy = at(&server, "mta-sts.acme.example", "/.well-known/mta-sts.txt").await.expect(200);
    assert_eq!(
        StsPolicy::parse(&policy.body),
        Ok(Acme.sts_policy(&DomainName::parse("acme.example").unwrap()).unwrap())
    );
}

/// Whether somebody has an address is in no answer: that to one whom nobody knows differs in the name alone.
#[tokio::test(flavor = "multi_thread")]
async fn answers_tell_nothing_of_who_exists_and_nothing_of_other_domains() {
    let server = Server::start().await;
    for path in [AUTOCONFIG, PROFILE] {
        let asked = async |who: &str| {
            let answer =
                server.ask_as("", "GET", &format!("{path}?emailaddress={who}@acme.example"), ()).await;
            let text = answer.expect(200).text();
            text.lines().filter(|line| !line.contains("UUID")).collect::<String>().replace(who, "")
        };
        let without_uuids = |text: String| {
            // They follow from the address.
            let is_uuid = |part: &&str| part.len() != 36 || part.matches('-').count() != 4;
            text.split(['<', '>']).filter(is_uuid).collect::<String>()
        };
        assert_eq!(without_uuids(asked("ada").await), without_uuids(asked("zzz").await), "{path}");
    }
    let none = server.ask_as("", "GET", "/_mail_setup/profile.mobileconfig", ()).await.expect(404).body;
    for (host, path) in [
        ("other.example", AUTOCONFIG.to_owned()),
        ("acme.example", format!("{AUTOCONFIG}?emailaddress=ada@other.example")),
        ("acme.example", format!("{PROFILE}?emailaddress=ada@other.example")),
        ("acme.example", format!("{PROFILE}?emailaddress=acme.example")),
        ("acme.example", format!("{PROFILE}?emailaddress=%0D%0A@acme.example")),
        ("acme.example", "/.well-known/mta-sts.txt".to_owned()),
        ("mta-sts.other.example", "/.well-known/mta-sts.txt".to_owned()),
        ("mta-sts.", "/.well-known/mta-sts.txt".to_owned()),
        ("127.0.0.1", format!("{PLACE}?Protocol=AutodiscoverV1")),
    ] {
        assert_eq!(at(&server, host, &path).await.expect(404).body, none, "{host} {path}");
    }
    for body in [posted("ada@other.example"), posted("")] {
        let status =
            server.ask_as("", "POST", "/autodiscover/autodiscover.xml", ([], body.clone())).await.status;
        assert!([400, 404].contains(&status.as_u16()), "{body}");
    }
    // An entity of the sender's own, another schema, and more than such a request can be.
    let entity = "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>".to_owned();
    for (body, status) in [(entity, 400), (posted(&"x".repeat(20_000)), 413), ("{}".to_owned(), 400)] {
        server.ask_as("", "POST", "/autodiscover/autodiscover.xml", ([], body)).await.expect(status);
    }
    let compressed = ([("content-encoding", "gzip")], posted("ada@acme.example"));
    server.ask_as("", "POST", "/autodiscover/autodiscover.xml", compressed).await.expect(415);
}
