//! Any bytes as each kind of record and field: read or refused, and a name that is read is its own.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_sender_authentication::dkim::{KeyRecord, Signature};
use scrinium_sender_authentication::dmarc::DmarcRecord;
use scrinium_sender_authentication::spf::SpfRecord;
use scrinium_sender_authentication::{DomainName, claims, without_claims};

fuzz_target!(|bytes: &[u8]| {
    _ = (KeyRecord::parse(bytes), Signature::parse(bytes), SpfRecord::parse(bytes), claims(bytes, &["mx.example.org"]));
    if let Some(record) = DmarcRecord::parse(bytes) {
        assert!(DmarcRecord::is_dmarc(bytes) && record.report_addresses.len() <= 20);
    }
    let once = without_claims(bytes, &["mx.example.org"]);
    assert_eq!(without_claims(&once, &["mx.example.org"]), once);
    if let Some(name) = std::str::from_utf8(bytes).ok().and_then(DomainName::parse) {
        assert_eq!(DomainName::parse(name.as_str()), Some(name));
    }
});
