//! Aggregate reports: read, unpacked, bounded.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use scrinium_sender_authentication::{ReportError, ReportLimits, parse_report, unpack_report};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0">
  <version>1.0</version>
  <report_metadata>
    <org_name>Receiver &amp; Sons</org_name><email>noreply@receiver.example</email>
    <report_id>2026-11-25.7</report_id>
    <date_range><begin>1795564800</begin><end>1795651199</end></date_range>
    <error>one</error><error>two</error><unknown><deep>x</deep></unknown>
  </report_metadata>
  <policy_published>
    <domain>example.org</domain><discovery_method>treewalk</discovery_method>
    <p>reject</p><sp>none</sp><np>quarantine</np><adkim>s</adkim><aspf>r</aspf><testing>n</testing>
  </policy_published>
  <record>
    <row><source_ip>2001:db8::1</source_ip><count>12</count>
      <policy_evaluated><disposition>none</disposition><dkim>fail</dkim><spf>pass</spf>
        <reason><type>mailing_list</type><comment>known&#x20;list</comment></reason>
        <reason><type>other</type></reason></policy_evaluated></row>
    <identifiers><envelope_to>receiver.example</envelope_to><envelope_from>example.org</envelope_from>
      <header_from>example.org</header_from></identifiers>
    <auth_results>
      <dkim><domain>example.org</domain><selector>s1</selector><result>fail</result><human_result>bad</human_result></dkim>
      <dkim><domain>list.example</domain><selector>l</selector><result>pass</result></dkim>
      <spf><domain>example.org</domain><scope>mfrom</scope><result>pass</result></spf>
    </auth_results>
  </record>
  <record><row><source_ip>nonsense</source_ip><count>-1</count></row></record>
</feedback>"#;

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn a_report_becomes_rows() {
    let limits = ReportLimits::default();
    let report = parse_report(REPORT.as_bytes(), &limits).unwrap();
    assert_eq!(report.organization, "Receiver & Sons");
    assert_eq!((report.begin_seconds, report.end_seconds), (1_795_564_800, 1_795_651_199));
    assert_eq!(report.errors, ["one", "two"]);
    let policy = &report.policy;
    assert_eq!(
        [
            &policy.domain,
            &policy.policy,
            &policy.subdomain_policy,
            &policy.absent_policy,
            &policy.discovery_method
        ],
        ["example.org", "reject", "none", "quarantine", "treewalk"]
    );
    let row = &report.rows[0];
    assert_eq!((row.source, row.count), (Some("2001:db8::1".parse().unwrap()), 12));
    assert_eq!((row.is_dkim_aligned, row.is_spf_aligned), (false, true));
    assert_eq!(
        row.overrides,
        [("mailing_list".into(), "known list".into()), ("other".into(), String::new())]
    );
    assert_eq!(
        row.dkim.iter().map(|dkim| dkim.domain.as_str()).collect::<Vec<_>>(),
        ["example.org", "list.example"]
    );
    assert_eq!((row.dkim[0].detail.as_str(), row.dkim[0].explanation.as_str()), ("s1", "bad"));
    assert_eq!((row.spf[0].detail.as_str(), row.spf[0].result.as_str()), ("mfrom", "pass"));
    assert_eq!((report.rows[1].source, report.rows[1].count), (None, 0));
    // Packed in any way it is the same report.
    for packed in [
        REPORT.as_bytes().to_vec(),
        gzipped(REPORT.as_bytes()),
        zipped(&[("a!b!c!d.xml", REPORT.as_bytes())]),
        zipped(&[("__MACOSX/._x.xml", b"x"), ("x.xml", REPORT.as_bytes())]),
        [b"\xef\xbb\xbf", REPORT.as_bytes()].concat(),
    ] {
        let xml = unpack_report(&packed, &limits).unwrap();
        assert_eq!(parse_report(xml.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&xml), &limits).unwrap(), report);
    }
}

#[test]
fn a_report_costs_no_more_than_it_may() {
    let limits = ReportLimits { packed_bytes: 100_000, xml_bytes: 1_000_000, rows: 3 };
    let bomb = vec![b' '; 50_000_000];
    for packed in [gzipped(&bomb), zipped(&[("x.xml", &bomb)])] {
        assert!(packed.len() < limits.packed_bytes);
        assert_eq!(unpack_report(&packed, &limits), Err(ReportError::Large(1_000_000)));
    }
    assert_eq!(unpack_report(&bomb, &limits), Err(ReportError::Large(100_000)));
    assert_eq!(unpack_report(&zipped(&[]), &limits), Err(ReportError::Files(0)));
    assert_eq!(unpack_report(&zipped(&[("a", b"<"), ("b", b"<")]), &limits), Err(ReportError::Files(2)));
    assert_eq!(unpack_report(b"hello", &limits), Err(ReportError::Form));
    let cut = gzipped(REPORT.as_bytes());
    assert_eq!(unpack_report(&cut[..cut.len() / 2], &limits), Err(ReportError::Packing));
    let record = "<record><row><count>1</count></row></record>";
    let many = REPORT.replace("</feedback>", &format!("{}</feedback>", record.repeat(10)));
    let report = parse_report(many.as_bytes(), &limits).unwrap();
    assert_eq!((report.rows.len(), report.rows_left_out), (3, 9));
    let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
    assert_eq!(parse_report(deep.as_bytes(), &limits), Err(ReportError::Xml));
    let long = REPORT.replace("<error>one", &format!("<error>{}", "x".repeat(100_000)));
    assert!(parse_report(long.as_bytes(), &limits).unwrap().errors[0].len() <= 1_000);
}

#[test]
fn a_report_that_is_none_is_refused() {
    let limits = ReportLimits::default();
    let with = |old: &str, new: &str| parse_report(REPORT.replace(old, new).as_bytes(), &limits);
    let entity = "<!DOCTYPE x [<!ENTITY a \"b\">]><feedback";
    assert_eq!(with("<feedback", entity), Err(ReportError::DocumentType));
    assert_eq!(with("&amp;", "&a;"), Err(ReportError::DocumentType));
    assert_eq!(with("<org_name>", "<x>"), Err(ReportError::Xml));
    assert_eq!(with("</feedback>", ""), Err(ReportError::Xml));
    assert_eq!(with("<domain>example.org</domain><disc", "<disc"), Err(ReportError::Missing("domain")));
    assert_eq!(with("report_id>", "id>"), Err(ReportError::Missing("report_id")));
    assert!(parse_report(b"", &limits).is_err());
}
