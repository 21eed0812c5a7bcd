//! A mail server by one line, and what it says that DNS should have.

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::name_server::NameServer;
use crate::common::{Settings, beside, small_with, start_with};

const DOMAIN: &str = "acme.example";
const HOST: &str = "mail.acme.example";

/// The server makes its keys at its start.
const KEYS_WITHIN: Duration = Duration::from_secs(60);

fn check(folder: &Path, settings: &Settings) -> (i32, Value) {
    let output = beside(folder, settings.clone(), "127.0.0.1:1", &["--json", "domain", "check", DOMAIN])
        .output()
        .unwrap();
    let told = serde_json::from_slice(&output.stdout);
    let code = output.status.code().unwrap();
    (code, told.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr))))
}

fn states<'r>(report: &'r Value, state: &str) -> Vec<&'r Value> {
    report["records"].as_array().unwrap().iter().filter(|record| record["state"] == state).collect()
}

/// A mail host that greets.
fn mail_host() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            drop(stream.unwrap().write_all(b"220 mail.acme.example ready\r\n"));
        }
    });
    port
}

fn publish(names: &NameServer, report: &Value) {
    names.set(HOST, "A", &["127.0.0.1"]);
    for record in report["records"].as_array().unwrap() {
        let (name, value) = (record["name"].as_str().unwrap(), record["value"].as_str().unwrap());
        match record["type"].as_str().unwrap() {
            "MX" => names.set(name, "MX", &[value]),
            "SRV" => names.set(name, "SRV", &[value]),
            "TXT" => names.set(name, "TXT", &["another text", value]),
            // As its host, without a detour.
            kind => {
                assert_eq!((kind, value), ("CNAME", "mail.acme.example."));
                names.set(name, "A", &["127.0.0.1"]);
            }
        }
    }
}

#[test]
fn what_is_said_is_what_dns_should_have() {
    let folder = tempfile::tempdir().unwrap();
    let names = NameServer::start();
    let settings = small_with([
        ("SCRINIUM_MAIL__DOMAIN", DOMAIN.to_owned()),
        ("SCRINIUM_SMTP__LISTEN", "127.0.0.1:0".to_owned()),
        ("SCRINIUM_SUBMISSION__LISTEN", String::new()),
        ("SCRINIUM_SUBMISSION__TLS_LISTEN", "127.0.0.1:0".to_owned()),
        ("SCRINIUM_HTTPS__LISTEN", "127.0.0.1:0".to_owned()),
        ("SCRINIUM_DISCOVERY__IMAP", format!("{HOST}:993")),
        ("SCRINIUM_IMAP__LISTEN", String::new()),
        ("SCRINIUM_IMAP__TLS_LISTEN", String::new()),
        ("SCRINIUM_OUTBOUND__RESOLVERS", names.address.to_string()),
        ("SCRINIUM_OUTBOUND__PORT", mail_host().to_string()),
    ]);
    let server = start_with(folder.path(), &settings);
    let begun = Instant::now();
    let first = loop {
        let (code, report) = check(folder.path(), &settings);
        assert_eq!((code, &report["ok"]), (1, &Value::Bool(false)));
        let missing = states(&report, "missing");
        let keys = missing.iter().filter(|record| record["name"].as_str().unwrap().contains("_domainkey"));
        // One of each kind.
        if keys.count() == 2 {
            break report;
        }
        assert!(begun.elapsed() < KEYS_WITHIN, "{report}");
    };
    assert_eq!(states(&first, "missing").len(), first["records"].as_array().unwrap().len(), "{first}");

    // Mail programs are told the same ports.
    let mut client = server.client();
    let path = format!("/mail/config-v1.1.xml?emailaddress=ada@{DOMAIN}");
    let told = client.get(&path).unwrap().expect(200).text();
    assert!(told.contains(">993<") && told.contains(&format!("<hostname>{HOST}</hostname>")), "{told}");
    client.get("/mail/config-v1.1.xml?emailaddress=ada@localhost").unwrap().expect(404);

    publish(&names, &first);
    let (code, report) = check(folder.path(), &settings);
    assert_eq!((code, &report["ok"]), (0, &Value::Bool(true)), "{report}");
    assert_eq!(report["mail_hosts"][0]["addresses"][0]["greeting"], "220 mail.acme.example ready");
    // The console in the browser shows the same.
    let shown = client.get(&format!("/_domain_check/{DOMAIN}")).unwrap().expect(200).value();
    assert_eq!(shown, report);
    client.get("/_domain_check/localhost").unwrap().expect(400);

    // Each is noticed that is not right, and nothing is that does the same in other words.
    for (name, kind, values, state) in [
        (DOMAIN, "MX", ["5 other.example.", "9 mail.acme.example."].as_slice(), "fine"),
        (DOMAIN, "MX", &["5 other.example."], "differs"),
        (DOMAIN, "TXT", &["v=spf1 ip4:127.0.0.0/8 -all"], "fine"),
        (DOMAIN, "TXT", &["v=spf1 ip4:192.0.2.1 -all"], "differs"),
        (DOMAIN, "TXT", &["v=spf1 mx -all", "v=spf1 mx -all"], "differs"),
        (DOMAIN, "TXT", &["none of it"], "missing"),
        ("_dmarc.acme.example", "TXT", &["v=DMARC1; p=reject"], "fine"),
        ("_mta-sts.acme.example", "TXT", &["v=STSv1; id=old;"], "differs"),
        ("_imaps._tcp.acme.example", "SRV", &["3 7 993 MAIL.acme.example."], "fine"),
        ("_imaps._tcp.acme.example", "SRV", &["0 1 994 mail.acme.example."], "differs"),
        ("autoconfig.acme.example", "A", &["127.0.0.9"], "differs"),
        ("autoconfig.acme.example", "A", &[], "missing"),
    ] {
        publish(&names, &first);
        names.set(name, kind, values);
        let (code, report) = check(folder.path(), &settings);
        let changed: Vec<&Value> = report["records"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|record| record["name"] == name && (record["type"] == kind || kind == "A"))
            .collect();
        assert_eq!(changed.len(), 1, "{name} {kind}");
        assert_eq!(changed[0]["state"], state, "{name} {kind} {values:?}: {}", changed[0]);
        assert_eq!(code, i32::from(state != "fine"), "{report}");
    }
}

#[test]
fn one_line_makes_a_mail_server_and_what_else_is_said_stays() {
    let folder = tempfile::tempdir().unwrap();
    let dump = |more: &[(&str, &str)], command: &[&str]| {
        let settings = more.iter().copied().chain([("SCRINIUM_MAIL__DOMAIN", DOMAIN)]);
        let output = beside(folder.path(), settings, "127.0.0.1:1", command).output().unwrap();
        let told = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(told).unwrap())
    };
    let (_, told) = dump(&[("SCRINIUM_OUTBOUND__ROUTE", "relay")], &["config", "dump", "--changed"]);
    for line in [
        "0.0.0.0:25",
        "0.0.0.0:993",
        "0.0.0.0:465",
        "0.0.0.0:587",
        "0.0.0.0:443",
        "relay",
        HOST,
        "# mail.domain",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let (code, told) = dump(&[], &["config", "check"]);
    assert!(code == 0 && !told.contains("is empty"), "{told}");
    let no_imap = [("SCRINIUM_IMAP__LISTEN", ""), ("SCRINIUM_IMAP__TLS_LISTEN", "")];
    let (code, told) = dump(&no_imap, &["config", "check"]);
    assert!(
        code == 0 && told.contains("imap.tls_listen") && !told.contains("smtp.listen is empty"),
        "{told}"
    );
    let (code, told) = dump(&[("SCRINIUM_MAIL__DOMAINS", "other.example")], &["config", "check"]);
    assert!(code == 2 && told.contains("mail.domains"), "{told}");
    let (code, told) =
        dump(&[("SCRINIUM_SMTP__LISTEN", ""), ("SCRINIUM_OUTBOUND__ROUTE", "off")], &["config", "check"]);
    assert!(
        code == 0 && told.contains("smtp.listen is empty") && told.contains("outbound.route is off"),
        "{told}"
    );
}
