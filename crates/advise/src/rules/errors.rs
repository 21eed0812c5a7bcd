//! What goes wrong again and again.

use std::collections::BTreeMap;

use crate::advice::{Advice, Unit};
use crate::observation::Observation;
use crate::rule::{Judgement, Rule, Subject, Support, Unjudged, Verdict};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "damage",
        subject: Subject::Errors,
        title: "Check the databases",
        speaks_if: "the databases' files could not be written or merged, or a fixup left something that it could not repair",
        looks_at: &["Database.BackgroundErrors", "Database.Fixup.Left"],
        keys: &[],
        support: &[Support::Page("docs/operate/fixup.md")],
        until: "Database.BackgroundErrors and Database.Fixup.Left are 0",
        check: damage,
    },
    Rule {
        name: "repeated-warnings",
        subject: Subject::Errors,
        title: "Look into a warning that keeps recurring",
        speaks_if: "the same warning or error was logged twenty times or more in the last day",
        looks_at: &["show log"],
        keys: &[],
        support: &[Support::Page("docs/operate/log-database.md")],
        until: "it is logged less than twenty times a day",
        check: repeated_warnings,
    },
    Rule {
        name: "failed-tasks",
        subject: Subject::Errors,
        title: "Check tasks that fail",
        speaks_if: "a task other than a backup failed in the last day",
        looks_at: &["show log tasks"],
        keys: &[],
        support: &[Support::Page("docs/operate/log-database.md")],
        until: "no task has failed for a day",
        check: failed_tasks,
    },
    Rule {
        name: "panics",
        subject: Subject::Errors,
        title: "Report a mistake in the program",
        speaks_if: "a request was ended by a mistake in the program",
        looks_at: &["Server.Pool.Panics"],
        keys: &[],
        support: &[Support::Page("docs/operate/log-database.md")],
        until: "Server.Pool.Panics does not grow",
        check: panics,
    },
];

/// The same so often in a day.
const REPEATED: usize = 20;

fn damage(seen: &Observation) -> Judgement {
    let (errors, left) = (seen.now("Database.BackgroundErrors")?, seen.now("Database.Fixup.Left")?);
    if errors < 1.0 && left < 1.0 {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        0.92,
        "Something that is stored cannot be read or written any more, and more may follow.",
    )
    .saw("Database.BackgroundErrors", errors, Unit::Count)
    .saw("Database.Fixup.Left", left, Unit::Count)
    .console("show log 1d -l error")
    .console("load fixup *")
    .by_hand("Make sure that there is a backup, and look at the disk's health (docs/operate/fixup.md).");
    Ok(Verdict::Change(Box::new(advice)))
}

fn repeated_warnings(seen: &Observation) -> Judgement {
    let Some(events) = &seen.events else {
        return Err(Unjudged::Otherwise("no log database is kept (log_database.name)".to_owned()));
    };
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for event in events {
        *counts.entry((&event.level, &event.text)).or_default() += 1;
    }
    let mut repeated: Vec<_> = counts.into_iter().filter(|(_, count)| *count >= REPEATED).collect();
    repeated.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let Some(((level, _), _)) = repeated.first() else { return Ok(Verdict::Fine) };
    let mut advice = Advice::new(
        if *level == "error" { 0.15 } else { 0.05 },
        "Messages this frequent cost time, and hide rarer ones.",
    );
    for ((level, text), count) in repeated.iter().take(3) {
        advice = advice.saw_text("show log", format!("{level}, {count} times: {text}"));
    }
    Ok(Verdict::Change(Box::new(advice.console("show log 1d -l warn -n 200"))))
}

fn failed_tasks(seen: &Observation) -> Judgement {
    // Backups have a rule of their own.
    let failed: Vec<_> =
        seen.runs_of_the_day().filter(|run| run.outcome == "failed" && run.kind != "backup").collect();
    let Some(last) = failed.last() else { return Ok(Verdict::Fine) };
    let of = if last.database.is_empty() { String::new() } else { format!(" of {}", last.database) };
    let advice = Advice::new(0.07, "What the task was to do is not done.")
        .saw_of("show log tasks", "that failed", small(failed.len()), Unit::Count)
        .saw_text("show log tasks", format!("the last was {}{of}: {}", last.kind, last.reason))
        .console("show log tasks 1d");
    Ok(Verdict::Change(Box::new(advice)))
}

fn panics(seen: &Observation) -> Judgement {
    let panics = seen.grew("Server.Pool.Panics")?;
    if panics < 1.0 {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        0.2,
        "The request was answered with 500 and changed nothing; the same request will fail again.",
    )
    .saw("Server.Pool.Panics", panics, Unit::Count)
    .console("show log 1d -l error")
    .by_hand("Report it with what the log says, and with the request that was made.");
    Ok(Verdict::Change(Box::new(advice)))
}

fn small(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
