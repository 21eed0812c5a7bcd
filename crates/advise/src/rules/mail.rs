//! Mail: what waits, and what cannot be delivered.

use crate::advice::{Advice, Gain, Unit};
use crate::observation::Observation;
use crate::rule::{Judgement, Rule, Subject, Support, Verdict};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "mail-waits",
        subject: Subject::Mail,
        title: "Have more mailboxes",
        speaks_if: "a hundred memos or more wait, no fewer than at the first moment",
        looks_at: &["Mail.Waiting", "Mail.Delivered", "Mail.AverageDeliverTime"],
        keys: &["mail.boxes"],
        support: &[Support::Experiment("mailboxes")],
        until: "fewer than a hundred memos wait, or they become fewer",
        check: mail_waits,
    },
    Rule {
        name: "dead-mail",
        subject: Subject::Mail,
        title: "Check dead mail",
        speaks_if: "there are memos that could be neither delivered nor returned",
        looks_at: &["Mail.Dead"],
        keys: &[],
        support: &[Support::Page("docs/operate/log-database.md")],
        until: "Mail.Dead is 0",
        check: dead_mail,
    },
];

fn mail_waits(seen: &Observation) -> Judgement {
    let waiting = seen.now("Mail.Waiting")?;
    let before = seen.before.get("Mail.Waiting").copied().unwrap_or_default();
    if waiting < 100.0 || waiting < before {
        return Ok(Verdict::Fine);
    }
    let boxes = seen.number("mail.boxes")?;
    let advice = Advice::new(0.25, "More memos come in than are delivered, so people wait for their mail.")
        .saw("Mail.Waiting", waiting, Unit::Count)
        .saw("Mail.Delivered", seen.grew("Mail.Delivered")?, Unit::Count)
        .saw("Mail.AverageDeliverTime", seen.now("Mail.AverageDeliverTime")?, Unit::Milliseconds)
        .saw("mail.boxes", boxes, Unit::Count)
        .wins(Gain::Response, 0.0, 0.3)
        .console("show log mail 1h");
    let advice = if boxes < 10.0 {
        advice.set("mail.boxes", format!("{:.0}", (boxes * 2.0).min(10.0)))
    } else {
        advice
            .by_hand("There are as many mailboxes as there can be: see what the log says of memos that wait.")
    };
    Ok(Verdict::Change(Box::new(advice)))
}

fn dead_mail(seen: &Observation) -> Judgement {
    let dead = seen.now("Mail.Dead")?;
    if dead < 1.0 {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(0.12, "A message was not delivered, and its sender was not notified.")
        .saw("Mail.Dead", dead, Unit::Count)
        .console("show log mail 30d")
        .by_hand("The memos are in the mailboxes (mail.box, mail1.box, ...) with their reason: correct the address and save them, or delete them.");
    Ok(Verdict::Change(Box::new(advice)))
}
