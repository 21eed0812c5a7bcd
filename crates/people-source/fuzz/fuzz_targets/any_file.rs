//! Any bytes as a table, as LDIF and as what a server says: no panic, and what is planned of them is planned once.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_people_source::{
    Credentials, DirectoryKind, Encryption, LdifLimits, Reading, SourceClient, SourceOptions, SourceRecords, TableLimits,
    Task, entries_of, plan, read_ldif, read_table, records_of,
};

fn planned(records: &SourceRecords) {
    let options = plan::PlanOptions { is_complete: true, takes_over: true, most_disabled_percent: 100 };
    let plan = plan(&[], &[], records, options).expect("nobody is missing");
    assert!(plan.new_people.len() <= records.people.len());
    assert!(plan.changed_people.is_empty() && plan.changed_groups.is_empty());
}

fn hear(bytes: &[u8]) {
    let options = SourceOptions {
        kind: DirectoryKind::ActiveDirectory,
        encryption: Encryption::FromTheStart,
        allows_clear_password: false,
        credentials: Credentials::Anonymous,
        base: String::new(),
        filter: DirectoryKind::ActiveDirectory.filter(),
        page_size: 100,
        entries_max: 100,
        values_max: 100,
        limits: Default::default(),
    };
    let mut client = SourceClient::new(options, Task::Read(Reading::All)).expect("it has no password");
    let _ = client.connected();
    // The answer to the bind, so that searches are reached.
    let mut rest: &[u8] = b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x00\x04\x00\x04\x00";
    let mut is_bound = false;
    while let Ok((taken, event)) = client.receive(rest) {
        rest = &rest[taken..];
        if rest.is_empty() && event.is_none() {
            if is_bound {
                break;
            }
            is_bound = true;
            rest = bytes;
        }
        let _ = client.take_output();
    }
}

fuzz_target!(|bytes: &[u8]| {
    let limits = TableLimits { bytes: 1 << 16, rows: 100, columns: 32, members: 100 };
    if let Ok(records) = read_table(bytes, limits) {
        planned(&records);
    }
    if let Ok(entries) = read_ldif(bytes, LdifLimits::default()).and_then(entries_of) {
        for kind in [DirectoryKind::Standard, DirectoryKind::ActiveDirectory] {
            planned(&records_of(&entries, kind));
        }
    }
    hear(bytes);
});
