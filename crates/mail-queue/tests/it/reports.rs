//! Delivery reports: what is written, what Python's `email` reads in it, and what is read when they come back.

use std::io::Write;
use std::process::{Command, Stdio};

use scrinium_mail_queue::outcome::{SessionEnd, Stage};
use scrinium_mail_queue::report::{
    Notice, OriginalSource, ReportOptions, ReportedAction, read_report, write_report,
};
use scrinium_mail_queue::{Language, NoticeKind, NoticePlan, QueueEntry, QueuePolicy, Random};
use scrinium_smtp_wire::{Notify, OriginalRecipient, Return};

use crate::kit::{START_MS, by_domain, mailbox, message, reply, session, to};

const ORIGINAL: &str = "From: ada@example.org\r\nTo: bob@example.net\r\nSubject: Hello\r\nMessage-ID: <m@example.org>\r\n\r\nThe text.\r\n";

fn options() -> ReportOptions {
    ReportOptions { host: "mail.example.org".to_owned(), from: mailbox("postmaster@example.org") }
}

/// An entry whose two recipients failed, the second with an address beyond ASCII.
fn failed(language: Language, utf8: bool) -> QueueEntry {
    let policy = QueuePolicy::default();
    let mut message = message("m", Some("ada@example.org"), START_MS);
    message.envelope.language = language;
    message.envelope.utf8 = utf8;
    message.envelope.envelope_id = Some("QQ314159".to_owned());
    let mut bob = to("bob@example.net");
    bob.original = OriginalRecipient::new("rfc822", "robert@example.com");
    let mut joerg = to("jörg@example.net");
    joerg.original = OriginalRecipient::new("utf-8", "jörg@alt.example");
    let mut entry = message.split(vec![bob, joerg], by_domain).unwrap().remove(0);
    let begin = entry.begin(START_MS, &policy).unwrap();
    entry.apply(&begin).unwrap();
    let long = format!("550 5.1.1 No such user {}\u{7}", "blah ".repeat(60));
    let report = session(
        &[&long, "554 5.7.1 Nein, größer"],
        SessionEnd::Refused { stage: Stage::Data, reply: reply("503 no valid recipients") },
    );
    let outcomes: Vec<_> = (0..).zip(report.outcomes(2)).collect();
    let end = entry.end(START_MS + 1_000, &outcomes, &policy, &mut Random::new(1)).unwrap();
    entry.apply(&end).unwrap();
    entry
}

fn plan(entry: &QueueEntry) -> NoticePlan {
    entry.notice(START_MS + 2_000, &QueuePolicy::default()).unwrap()
}

fn write(entry: &QueueEntry, original: &str) -> Notice {
    let original = OriginalSource { bytes: original.as_bytes() };
    write_report(entry, &plan(entry), original, &options(), START_MS + 2_000).unwrap()
}

fn text(notice: &Notice) -> String {
    String::from_utf8(notice.source.clone()).unwrap()
}

#[test]
fn a_failure_is_written_as_the_standard_says() {
    let notice = write(&failed(Language::English, false), ORIGINAL);
    assert_eq!(notice.recipient, mailbox("ada@example.org"));
    assert!(!notice.utf8);
    let text = text(&notice);
    for part in [
        "From: Mail Delivery System <postmaster@example.org>\r\n",
        "Auto-Submitted: auto-replied\r\n",
        "In-Reply-To: <m@example.org>\r\n",
        "Date: Thu, 26 Nov 2026 09:00:02 +0000\r\n",
        "Subject: Your message was not delivered\r\n",
        "Content-Type: multipart/report; report-type=delivery-status;\r\n",
        "Reporting-MTA: dns; mail.example.org\r\n",
        "Original-Envelope-Id: QQ314159\r\n",
        "Original-Recipient: rfc822; robert@example.com\r\nFinal-Recipient: rfc822; bob@example.net\r\nAction: failed\r\nStatus: 5.1.1\r\n",
        "Original-Recipient: utf-8; j\\x{F6}rg@alt.example\r\nFinal-Recipient: utf-8; j\\x{F6}rg@example.net\r\n",
        "Remote-MTA: dns; mx.example.net\r\n",
        "Content-Type: message/rfc822\r\n",
        "Subject: Hello\r\nMessage-ID: <m@example.org>\r\n\r\nThe text.\r\n",
    ] {
        assert!(text.contains(part), "{part}\n is not in\n{text}");
    }
    assert!(text.split("\r\n").all(|line| line.len() <= 998 && !line.contains(['\r', '\n', '\u{7}'])));
    assert_eq!(
        write(&failed(Language::English, false), ORIGINAL),
        notice,
        "the same notice is the same bytes"
    );
}

#[test]
fn people_read_it_in_their_language() {
    let notice = write(&failed(Language::German, false), ORIGINAL);
    let text = text(&notice);
    assert!(
        text.contains("Subject: =?utf-8?Q?Ihre_Nachricht")
            || text.contains("Subject: Ihre Nachricht wurde nicht")
    );
    assert!(text.contains("kennt den Empfänger nicht"), "{text}");
    assert!(text.contains("Bitte prüfen Sie die Adresse"), "{text}");
    assert!(notice.eight_bit);
}

#[test]
fn addresses_beyond_ascii_make_a_global_report() {
    let notice = write(&failed(Language::English, true), &ORIGINAL.replace("Hello", "Grüße"));
    assert!(notice.utf8);
    let text = text(&notice);
    for part in [
        "Content-Type: message/global-delivery-status\r\n",
        "Content-Type: message/global\r\n",
        "Final-Recipient: utf-8; jörg@example.net\r\n",
        "größer",
    ] {
        assert!(text.contains(part), "{part}\n is not in\n{text}");
    }
}

#[test]
fn ret_and_size_decide_what_comes_back() {
    let long = format!("{ORIGINAL}{}", "line\r\n".repeat(10_000));
    for (return_content, original, is_full) in [
        (None, ORIGINAL, true),
        (None, long.as_str(), false),
        (Some(Return::Full), long.as_str(), true),
        (Some(Return::Headers), ORIGINAL, false),
    ] {
        let mut entry = failed(Language::English, false);
        entry.envelope.return_content = return_content;
        let text = text(&write(&entry, original));
        assert_eq!(text.contains("Content-Type: message/rfc822\r\n"), is_full);
        assert_eq!(text.contains("Content-Type: text/rfc822-headers\r\n"), !is_full);
        assert_eq!(text.contains("The text."), is_full);
        assert!(text.contains("Subject: Hello\r\n"));
    }
}

#[test]
fn what_comes_back_cannot_end_its_part() {
    let entry = failed(Language::English, false);
    let first = text(&write(&entry, ORIGINAL));
    let boundary = first.split("boundary=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let guessed = format!("{ORIGINAL}\r\n--{boundary}--\r\n");
    let second = text(&write(&entry, &guessed));
    assert!(!second.contains(&format!("boundary=\"{boundary}\"")));
}

#[test]
fn headers_of_the_report_cannot_be_injected() {
    let mut entry = failed(Language::English, false);
    entry.envelope.message_id = Some("<x@y>\r\nBcc: <eve@example.com>".to_owned());
    entry.envelope.envelope_id = Some("a\r\nAction: delivered".to_owned());
    let text = text(&write(&entry, ORIGINAL));
    assert!(!text.contains("\r\nBcc:") && !text.contains("\r\nAction: delivered"), "{text}");
}

#[test]
fn a_report_is_read_back() {
    for utf8 in [false, true] {
        let notice = write(&failed(Language::German, utf8), ORIGINAL);
        let report = read_report(&notice.source).unwrap();
        assert_eq!(report.envelope_id.as_deref(), Some("QQ314159"));
        assert_eq!(report.message_id.as_deref(), Some("<m@example.org>"));
        assert_eq!(report.reporter.as_deref(), Some("mail.example.org"));
        let addresses: Vec<_> =
            report.recipients.iter().map(|recipient| recipient.address.as_str()).collect();
        assert_eq!(addresses, ["bob@example.net", "jörg@example.net"]);
        assert_eq!(report.recipients[0].original.as_deref(), Some("robert@example.com"));
        assert_eq!(report.recipients[1].original.as_deref(), Some("jörg@alt.example"));
        assert_eq!(report.recipients[0].action, ReportedAction::Failed);
        assert_eq!(report.recipients[0].status.unwrap().to_string(), "5.1.1");
        assert!(
            report.recipients[0]
                .diagnostic
                .as_deref()
                .unwrap()
                .starts_with("550 5.1.1 No such user blah blah")
        );
    }
    assert_eq!(read_report(ORIGINAL.as_bytes()), None);
    assert_eq!(read_report(b""), None);
}

#[test]
fn reports_of_other_servers_are_read() {
    let foreign = b"Content-Type: multipart/report;\n\tboundary=abc; report-type=\"delivery-status\"\n\npreamble\n--abc\nContent-Type: text/plain\n\nSorry.\n--abc\nContent-Type: Message/Delivery-Status\nContent-Transfer-Encoding: quoted-printable\n\nReporting-MTA: smtp;mx.example.net\n\nFinal-Recipient: RFC822;<Bob@example.net>\nAction: Delayed (still trying)\nStatus: 4.4.1 (no answer)\nDiagnostic-Code: smtp;421 a=3Db\n c\n--abc\nContent-Type: message/rfc822\n\nMessage-Id:\n <m@example.org>\n\nbody\n--abc--\n";
    let report = read_report(foreign).unwrap();
    let recipient = &report.recipients[0];
    assert_eq!(recipient.address, "Bob@example.net");
    assert_eq!(recipient.action, ReportedAction::Delayed);
    assert_eq!(recipient.status.unwrap().to_string(), "4.4.1");
    assert_eq!(recipient.diagnostic.as_deref(), Some("421 a=b c"));
    assert_eq!(report.message_id.as_deref(), Some("<m@example.org>"));
}

#[test]
fn nobody_is_notified_of_a_notice() {
    let mut entry = failed(Language::English, false);
    let plan = plan(&entry);
    entry.envelope.sender = None;
    let original = OriginalSource { bytes: ORIGINAL.as_bytes() };
    assert_eq!(write_report(&entry, &plan, original, &options(), START_MS), None);
}

#[test]
fn a_success_is_told_with_headers_alone() {
    let mut entry = failed(Language::English, false);
    entry.recipients.truncate(1);
    entry.recipients[0].notify = Some(Notify { success: true, ..Notify::default() });
    entry.recipients[0].state = scrinium_mail_queue::RecipientState::Delivered;
    let mut silent = session(&["250 Ok"], SessionEnd::Answered(reply("250 2.0.0 Ok")));
    silent.has_dsn = false;
    entry.recipients[0].outcome = Some(silent.outcomes(1).remove(0));
    assert_eq!(plan(&entry).kind, NoticeKind::Relayed);
    entry.envelope.return_content = Some(Return::Full);
    let text = text(&write(&entry, ORIGINAL));
    assert!(text.contains("Action: relayed\r\nStatus: 2.0.0\r\n") && !text.contains("The text."), "{text}");
}

/// Python's `email` finds the same structure and fields.
#[test]
fn python_reads_what_is_written() {
    const SCRIPT: &str = "
import sys, email, email.policy
m = email.message_from_bytes(sys.stdin.buffer.read(), policy=email.policy.default)
assert not m.defects, m.defects
assert m.get_content_type() == 'multipart/report' and m.get_param('report-type') == 'delivery-status'
parts = m.get_payload()
print([p.get_content_type() for p in parts])
assert all(not p.defects for p in parts), [p.defects for p in parts]
for group in parts[1].get_payload() if parts[1].get_content_type() == 'message/delivery-status' else []:
    print([(k, ' '.join(v.split())) for k, v in group.items() if k in ('Final-Recipient', 'Action', 'Status', 'Original-Envelope-Id')])
print(m['subject'])
";
    let mut seen = Vec::new();
    for (language, utf8) in [(Language::English, false), (Language::German, false), (Language::German, true)]
    {
        let notice = write(&failed(language, utf8), ORIGINAL);
        let child = Command::new("python3")
            .args(["-c", SCRIPT])
            .env("PYTHONIOENCODING", "utf-8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            scrinium_fault::skip("python3 is not installed");
            return;
        };
        child.stdin.take().unwrap().write_all(&notice.source).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        seen.push(String::from_utf8(output.stdout).unwrap());
    }
    assert_eq!(
        seen[0],
        "['text/plain', 'message/delivery-status', 'message/rfc822']\n\
         [('Original-Envelope-Id', 'QQ314159')]\n\
         [('Final-Recipient', 'rfc822; bob@example.net'), ('Action', 'failed'), ('Status', '5.1.1')]\n\
         [('Final-Recipient', 'utf-8; j\\\\x{F6}rg@example.net'), ('Action', 'failed'), ('Status', '5.7.1')]\n\
         Your message was not delivered\n"
    );
    assert!(seen[1].ends_with("Ihre Nachricht wurde nicht zugestellt\n"));
    assert!(seen[2].starts_with("['text/plain', 'message/global-delivery-status', 'message/global']"));
}
