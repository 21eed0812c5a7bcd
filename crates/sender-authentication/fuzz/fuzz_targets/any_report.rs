//! Any bytes as a report: unpacked within its limit, read or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_sender_authentication::{ReportLimits, parse_report, unpack_report};

fuzz_target!(|bytes: &[u8]| {
    let limits = ReportLimits { packed_bytes: 100_000, xml_bytes: 200_000, rows: 10 };
    let Ok(xml) = unpack_report(bytes, &limits) else { return };
    assert!(xml.len() <= limits.xml_bytes);
    if let Ok(report) = parse_report(&xml, &limits) {
        assert!(report.rows.len() <= limits.rows);
    }
});
