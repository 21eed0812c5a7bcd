//! Lines as records: what is read is written equal, and whatever state they give has a step.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_mail_queue::report::{OriginalSource, ReportOptions, write_report};
use scrinium_mail_queue::{QueuePolicy, Record, Step, rebuild_queue, show};

fuzz_target!(|bytes: &[u8]| {
    let records: Vec<Record> =
        bytes.split(|byte| *byte == b'\n').filter_map(|line| Record::decode(line).ok()).collect();
    for record in &records {
        assert_eq!(Record::decode(&record.encode()).as_ref(), Ok(record));
    }
    let _ = show::trace(&records);
    let Ok(entries) = rebuild_queue(&records) else { return };
    let policy = QueuePolicy::default();
    for entry in entries.values() {
        let now_ms = entry.due_ms;
        let _ = (entry.due_row(&policy), show::why(entry));
        if let Step::Notify(plan) = entry.step(now_ms, &policy)
            && let Some(from) = entry.envelope.sender.clone()
        {
            let options = ReportOptions { host: "mail.example.org".to_owned(), from };
            let _ = write_report(entry, &plan, OriginalSource { bytes }, &options, now_ms);
        }
    }
});
