//! Backups: whether there are any, and how old.

use crate::advice::{Advice, Unit};
use crate::observation::{Observation, TaskRun};
use crate::rule::{Judgement, Rule, Subject, Support, Unjudged, Verdict};
use crate::words::DAY_S;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "backup-old",
        subject: Subject::Backup,
        title: "Make backups",
        speaks_if: "the newest backup that this server has made is older than a week, or it has run for a day without any",
        looks_at: &["Backup.LastTime", "Server.ElapsedTime", "show log tasks"],
        keys: &[],
        support: &[Support::Page("docs/operate/backup.md")],
        until: "there is a backup of the last seven days",
        check: backup_old,
    },
    Rule {
        name: "backup-failed",
        subject: Subject::Backup,
        title: "Repair the backup",
        speaks_if: "the last backup failed",
        looks_at: &["Backup.Failed", "Backup.LastTime", "show log tasks"],
        keys: &[],
        support: &[Support::Page("docs/operate/backup.md")],
        until: "a backup is made",
        check: backup_failed,
    },
];

const WEEK_S: f64 = 7.0 * DAY_S;

fn backups(seen: &Observation) -> impl Iterator<Item = &TaskRun> {
    seen.runs.iter().filter(|run| run.kind == "backup")
}

/// When the newest one was there; 0: none is known.
fn newest_s(seen: &Observation) -> Result<f64, Unjudged> {
    let logged = backups(seen).filter(|run| run.outcome == "finished").map(|run| run.ended_s);
    Ok(logged.fold(seen.now("Backup.LastTime")?, f64::max))
}

fn backup_old(seen: &Observation) -> Judgement {
    let (newest_s, elapsed_s) = (newest_s(seen)?, seen.now("Server.ElapsedTime")?);
    let oldest_run_s = seen.runs.iter().map(|run| run.ended_s).filter(|ended_s| *ended_s > 0.0);
    let known_s = oldest_run_s.fold(elapsed_s, |known_s, ended_s| known_s.max(seen.now_s - ended_s));
    let age_s = seen.now_s - newest_s;
    let is_old = if newest_s > 0.0 { age_s > WEEK_S } else { known_s >= DAY_S };
    if !is_old {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        0.3,
        "If the disks are lost, or somebody deletes what was needed, everything since the last backup is gone.",
    );
    let advice = if newest_s > 0.0 {
        advice.saw_of("Backup.LastTime", "ago", age_s / DAY_S, Unit::Days)
    } else {
        advice.saw_text("Backup.LastTime", "none is known").saw_of(
            "Server.ElapsedTime",
            "with what the log database knows",
            known_s / DAY_S,
            Unit::Days,
        )
    };
    let advice = advice
        .by_hand("Where none is named yet: write targets = [\"/mnt/ANOTHER-DEVICE/backups\"] under [backup] in the configuration file, and start the server again. Then:")
        .console("load backup")
        .by_hand("Then every night, by cron; backups that something else makes of the whole machine are not known here (docs/operate/backup.md).");
    Ok(Verdict::Change(Box::new(advice)))
}

fn backup_failed(seen: &Observation) -> Judgement {
    let last = backups(seen).max_by(|left, right| left.ended_s.total_cmp(&right.ended_s));
    let Some(last) =
        last.filter(|last| last.outcome == "failed" && last.ended_s > newest_s(seen).unwrap_or_default())
    else {
        return Ok(Verdict::Fine);
    };
    let advice = Advice::new(
        0.4,
        "There is no backup of what was changed since the one before, and the next may fail as well.",
    )
    .saw_text("show log tasks", format!("the last backup failed: {}", last.reason))
    .saw("Backup.Failed", seen.now("Backup.Failed")?, Unit::Count)
    .by_hand("Fix what the reason names, then make one:")
    .console("load backup");
    Ok(Verdict::Change(Box::new(advice)))
}
