//! Two servers with an auto-reply, a forward, a circle of aliases, a catch-all, and bounces to bounces: everything ends.

use std::collections::VecDeque;

use scrinium_mail_queue::report::{OriginalSource, ReportOptions, write_report};
use scrinium_mail_queue::{Cause, Ending, Outcome, QueueEntry, QueuePolicy, Random, Step};
use scrinium_smtp_wire::Mailbox;

use crate::kit::{START_MS, by_domain, mailbox, message, to};

/// A server refuses what has more Received lines (RFC 5321, section 6.3).
const HOPS_MAX: usize = 30;

#[derive(Clone, Debug)]
struct Mail {
    sender: Option<Mailbox>,
    recipient: Mailbox,
    source: String,
}

impl Mail {
    fn hops(&self) -> usize {
        let head = self.source.split("\r\n\r\n").next().unwrap();
        head.lines().filter(|line| line.starts_with("Received:")).count()
    }

    fn is_automatic(&self) -> bool {
        self.source.split("\r\n\r\n").next().unwrap().contains("Auto-Submitted: auto")
    }
}

#[derive(Default)]
struct Farm {
    number: usize,
    delivered: Vec<Mail>,
    bounced: usize,
    dead: usize,
    most_hops: usize,
}

impl Farm {
    /// What the receiving server makes of a mail: its answer, and what it sends on.
    fn receive(&mut self, mail: &Mail) -> (Outcome, Vec<Mail>) {
        self.most_hops = self.most_hops.max(mail.hops());
        if mail.hops() >= HOPS_MAX {
            return (Outcome::new(Ending::Failed, Cause::MailLoop), Vec::new());
        }
        let taken = Outcome::new(Ending::Relayed, Cause::Accepted);
        let on = |recipient: &str| {
            vec![Mail {
                sender: mail.sender.clone(),
                recipient: mailbox(recipient),
                source: format!("Received: by a server\r\n{}", mail.source),
            }]
        };
        match mail.recipient.to_string().as_str() {
            "forward@a.example" => (taken, on("forward@b.example")),
            "forward@b.example" => (taken, on("forward@a.example")),
            "alias@a.example" => (taken, on("catch@b.example")),
            "nobody@a.example" | "nobody@b.example" | "gone@b.example" => {
                (Outcome::new(Ending::Failed, Cause::RecipientRefused), Vec::new())
            }
            "away@a.example" | "away@b.example" => {
                self.delivered.push(mail.clone());
                // RFC 3834, section 2: no answer to the null sender or to what is automatic, and none from an address.
                let answers = mail.sender.clone().filter(|_| !mail.is_automatic());
                let answer = answers.map(|sender| Mail {
                    sender: None,
                    recipient: sender,
                    source: "Auto-Submitted: auto-replied\r\nSubject: Away\r\n\r\nI am away.\r\n".to_owned(),
                });
                (taken, answer.into_iter().collect())
            }
            // The catch-all takes everything else, and lets it go round.
            address if address.ends_with("@b.example") => (taken, on("alias@a.example")),
            _ => {
                self.delivered.push(mail.clone());
                (taken, Vec::new())
            }
        }
    }

    fn entry(&mut self, mail: &Mail) -> QueueEntry {
        self.number += 1;
        let mut message = message(&format!("m{}", self.number), None, START_MS);
        message.envelope.sender.clone_from(&mail.sender);
        message.split(vec![to(&mail.recipient.to_string())], by_domain).unwrap().remove(0)
    }

    /// Sends a mail and everything that comes of it. Gives how many messages that were.
    fn send(&mut self, mail: Mail) -> usize {
        let policy = QueuePolicy::default();
        let options = ReportOptions { host: "a.example".to_owned(), from: mailbox("postmaster@a.example") };
        let (mut waiting, mut originals) = (VecDeque::from([mail]), 0);
        while let Some(mail) = waiting.pop_front() {
            originals += usize::from(mail.hops() == 0);
            assert!(self.number < 1_000, "it does not end");
            let mut entry = self.entry(&mail);
            loop {
                let record = match entry.step(START_MS, &policy) {
                    Step::Attempt => entry.begin(START_MS, &policy),
                    Step::Await => {
                        let (outcome, sent) = self.receive(&mail);
                        waiting.extend(sent);
                        entry.end(START_MS, &[(0, outcome)], &policy, &mut Random::new(1))
                    }
                    Step::Notify(plan) => {
                        let original = OriginalSource { bytes: mail.source.as_bytes() };
                        let notice = write_report(&entry, &plan, original, &options, START_MS).unwrap();
                        self.bounced += 1;
                        let source = String::from_utf8(notice.source).unwrap();
                        waiting.push_back(Mail { sender: None, recipient: notice.recipient, source });
                        Some(entry.noticed(START_MS, &plan))
                    }
                    Step::Remove => break,
                    Step::Wait(_) | Step::Expire => {
                        self.dead += 1;
                        break;
                    }
                };
                entry.apply(&record.unwrap()).unwrap();
            }
        }
        originals
    }
}

#[test]
fn circles_end() {
    for (sender, recipient, bounced, dead) in [
        // A bounce to an address that does not exist ends as a dead letter, not as a bounce of a bounce.
        (Some("nobody@a.example"), "gone@b.example", 1, 1),
        (Some("ada@a.example"), "forward@a.example", 1, 0),
        (Some("forward@b.example"), "gone@b.example", 1, 1),
        (Some("ada@a.example"), "alias@a.example", 1, 0),
        (Some("alias@a.example"), "alias@a.example", 1, 1),
        (Some("away@a.example"), "away@b.example", 0, 0),
        (Some("forward@a.example"), "away@b.example", 0, 1),
        (None, "forward@a.example", 0, 1),
        (None, "away@a.example", 0, 0),
        (None, "nobody@b.example", 0, 1),
    ] {
        let mut farm = Farm::default();
        let mail = Mail {
            sender: sender.map(mailbox),
            recipient: mailbox(recipient),
            source: "Subject: x\r\n\r\ntext\r\n".to_owned(),
        };
        let messages = farm.send(mail);
        assert!(messages < 20, "{recipient}: {messages} messages");
        assert!(farm.most_hops <= 100, "{recipient}: {} hops", farm.most_hops);
        assert_eq!((farm.bounced, farm.dead), (bounced, dead), "{sender:?} to {recipient}");
    }
}
