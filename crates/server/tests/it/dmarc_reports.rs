//! DMARC reports that come in as mail: what becomes of them in their database.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use base64::Engine;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::mail_ports::MailServer;

/// However loaded the machine is.
const WITHIN: Duration = Duration::from_secs(60);

fn report(organization: &str, id: &str) -> Vec<u8> {
    let row = |source: &str, count: u32, disposition: &str, dkim: &str| {
        format!(
            "<record><row><source_ip>{source}</source_ip><count>{count}</count><policy_evaluated>\
             <disposition>{disposition}</disposition><dkim>{dkim}</dkim><spf>fail</spf></policy_evaluated></row>\
             <identifiers><header_from>acme.example</header_from></identifiers></record>"
        )
    };
    let text = format!(
        "<?xml version=\"1.0\"?><feedback><report_metadata><org_name>{organization}</org_name>\
         <email>a@b.example</email><report_id>{id}</report_id><date_range><begin>1795564800</begin>\
         <end>1795651199</end></date_range></report_metadata><policy_published><domain>acme.example</domain>\
         <p>reject</p></policy_published>{}{}{}</feedback>",
        row("192.0.2.1", 40, "none", "pass"),
        row("198.51.100.7", 3, "reject", "fail"),
        row("198.51.100.7", 2, "reject", "fail"),
    );
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// Sends a message with one file by SMTP.
fn send(mail: &MailServer, id: &str, file: &[u8]) {
    let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", mail.port("smtp"))).unwrap());
    let text = "HELO x.example\r\nMAIL FROM:<r@far.example>\r\nRCPT TO:<dmarc@acme.example>\r\nDATA\r\n";
    stream.get_mut().write_all(text.as_bytes()).unwrap();
    let mut line = String::new();
    while !line.starts_with("354") {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0 && !line.starts_with('5'), "{line}");
    }
    let file = base64::engine::general_purpose::STANDARD.encode(file);
    let text = format!(
        "From: r@far.example\r\nMessage-ID: <{id}@far.example>\r\nSubject: Report Domain: acme.example\r\n\
         MIME-Version: 1.0\r\nContent-Type: application/gzip; name=\"r.xml.gz\"\r\n\
         Content-Disposition: attachment; filename=\"r.xml.gz\"\r\nContent-Transfer-Encoding: base64\r\n\r\n{file}\r\n.\r\nQUIT\r\n"
    );
    stream.get_mut().write_all(text.as_bytes()).unwrap();
    stream.read_line(&mut line).unwrap();
    assert!(line.contains("250"), "{line}");
}

#[test]
fn reports_become_views_once_whatever_else_comes() {
    let folder = tempfile::tempdir().unwrap();
    let mut mail = MailServer::start_with(folder.path(), &[("SCRINIUM_DMARC__REPORTS_DATABASE", "dmarc")]);
    let mut client = mail.server.client();
    let address = json!({"_id": "mail-in:dmarc", "Form": "MailInDatabase", "Name": "DMARC reports",
        "InternetAddress": "dmarc@acme.example", "Database": "dmarc"});
    client.json("PUT", "/directory/mail-in:dmarc", &address).unwrap().expect(201);
    send(&mail, "none", b"no report");
    send(&mail, "one", &report("Receiver", "1"));
    send(&mail, "again", &report("Receiver", "1"));
    send(&mail, "two", &report("Other", "2"));
    let rows = |view: &str| -> Vec<Value> {
        let mut client = mail.server.client();
        let path = format!("/dmarc/_design/dmarc/_view/{view}?reduce=false&include_docs=true");
        client.get(&path).unwrap().expect(200).value()["rows"].as_array().unwrap().clone()
    };
    let began = Instant::now();
    let reports = loop {
        let reports = rows("by_domain");
        if reports.len() >= 2 {
            break reports;
        }
        assert!(began.elapsed() < WITHIN, "{reports:?} {}", mail.server.messages());
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(reports.len(), 2);
    for report in reports {
        let document = &report["doc"];
        assert_eq!(
            (&document["Messages"], &document["Passed"], &document["Failed"]),
            (&json!(45), &json!(40), &json!(5))
        );
        assert_eq!((&document["Day"], &document["Rejected"]), (&json!("2026-11-25"), &json!(5)));
    }
    let failing = rows("failing_sources");
    assert_eq!(failing.len(), 2);
    assert!(failing.iter().all(|row| row["doc"]["Source"] == "198.51.100.7" && row["doc"]["Messages"] == 5));
    assert_eq!(rows("sources").len(), 4);
    mail.server.terminate(WITHIN);
}
