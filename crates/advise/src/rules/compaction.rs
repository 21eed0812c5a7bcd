//! Compaction: garbage, and whether it is given back in time.

use crate::advice::{Advice, Gain, Unit};
use crate::observation::{Observation, enough};
use crate::rule::{Judgement, Rule, Subject, Support, Verdict};
use crate::words::{self, GB, MB};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "garbage",
        subject: Subject::Compaction,
        title: "Compact databases",
        speaks_if: "40 % of the databases' files or more, and a gigabyte or more, are garbage",
        looks_at: &[
            "Database.Compact.Garbage.PerCent",
            "Database.Compact.Garbage.Bytes",
            "Server.ElapsedTime",
        ],
        keys: &["compact.window", "compact.garbage_percent"],
        support: &[Support::Experiment("compact-cache"), Support::Page("docs/operate/compact.md")],
        until: "less than 40 % of the files are garbage",
        check: garbage,
    },
    Rule {
        name: "contents-garbage",
        subject: Subject::Compaction,
        title: "Give back what attachments have left",
        speaks_if: "30 % of the files of attachments and large values or more, and a gigabyte or more, are garbage",
        looks_at: &["Database.Compact.Contents.Bytes", "Database.Compact.Contents.GarbageBytes"],
        keys: &[],
        support: &[Support::Experiment("compact-cache"), Support::Page("docs/operate/compact.md")],
        until: "less than 30 % of these files are garbage",
        check: contents_garbage,
    },
    Rule {
        name: "compact-limited",
        subject: Subject::Compaction,
        title: "Let compaction go faster",
        speaks_if: "compactions were held by their limit for a fifth of the time or more while a tenth of the files is garbage",
        looks_at: &[
            "IO.Compact.Limited.Milliseconds",
            "IO.Compact.Bytes",
            "Database.Compact.Garbage.PerCent",
        ],
        keys: &["io.limit_compact"],
        support: &[Support::Experiment("compact-cache"), Support::Page("docs/operate/volumes.md")],
        until: "compactions are held for less than a fifth of the time, or little is garbage",
        check: compact_limited,
    },
    Rule {
        name: "compact-unfinished",
        subject: Subject::Compaction,
        title: "Give compaction a longer window",
        speaks_if: "three compactions or more were stopped since the start, more than were completed, and a fifth of the files is garbage",
        looks_at: &[
            "Database.Compact.Stopped",
            "Database.Compact.Completed",
            "Database.Compact.Garbage.PerCent",
        ],
        keys: &["compact.window"],
        support: &[Support::Experiment("compact-cache"), Support::Page("docs/operate/compact.md")],
        until: "more compactions are completed than stopped",
        check: compact_unfinished,
    },
];

/// It is added up a minute after the start, then once an hour.
const ADDED_UP_AFTER_S: f64 = 120.0;

fn garbage(seen: &Observation) -> Judgement {
    enough(seen.now("Server.ElapsedTime")?, ADDED_UP_AFTER_S, "seconds has the server run")?;
    let (percent, bytes) =
        (seen.now("Database.Compact.Garbage.PerCent")?, seen.now("Database.Compact.Garbage.Bytes")?);
    if percent < 40.0 || bytes < GB {
        return Ok(Verdict::Fine);
    }
    let (window, least) = (seen.text("compact.window")?, seen.number("compact.garbage_percent")?);
    let advice = Advice::new(
        0.05 + percent / 500.0,
        "What was overwritten and deleted takes room on the disk and in backups, and is passed over by long scans.",
    )
    .saw("Database.Compact.Garbage.PerCent", percent, Unit::Percent)
    .saw("Database.Compact.Garbage.Bytes", bytes, Unit::Bytes)
    .saw_text("compact.window", if window.is_empty() { "(never)" } else { window })
    .saw("compact.garbage_percent", least, Unit::Percent)
    .wins(Gain::Disk, percent / 100.0 * 0.5, percent / 100.0);
    let advice = if window.is_empty() { advice.set("compact.window", "02:00-05:00") } else { advice };
    let advice = if least > 30.0 { advice.set("compact.garbage_percent", "30") } else { advice };
    Ok(Verdict::Change(Box::new(advice.console("load compact * -S 20"))))
}

fn contents_garbage(seen: &Observation) -> Judgement {
    let bytes = seen.now("Database.Compact.Contents.Bytes")?;
    let garbage = seen.now("Database.Compact.Contents.GarbageBytes")?;
    if garbage < GB || garbage < bytes * 0.3 {
        return Ok(Verdict::Fine);
    }
    let part = garbage / bytes.max(1.0);
    let advice = Advice::new(
        0.04 + part / 5.0,
        "Attachments and large values that no document refers to any more are in files with others, which the nightly \
         compaction does not rewrite.",
    )
    .saw("Database.Compact.Contents.Bytes", bytes, Unit::Bytes)
    .saw("Database.Compact.Contents.GarbageBytes", garbage, Unit::Bytes)
    .console("load compact * -B")
    .wins(Gain::Disk, part * 0.5, part);
    Ok(Verdict::Change(Box::new(advice)))
}

fn compact_limited(seen: &Observation) -> Judgement {
    let limit = seen.number("io.limit_compact")?;
    let part = seen.part_of_time("IO.Compact.Limited.Milliseconds")?;
    let percent = seen.now("Database.Compact.Garbage.PerCent")?;
    if limit <= 0.0 || part < 0.2 || percent < 10.0 {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        0.03,
        "Compactions give way while requests wait in any case; the limit holds them while nobody does, so that a night may \
         not suffice.",
    )
    .saw_of("IO.Compact.Limited.Milliseconds", "part of the time", part * 100.0, Unit::Percent)
    .saw("IO.Compact.Bytes", seen.grew("IO.Compact.Bytes")?, Unit::Bytes)
    .saw("Database.Compact.Garbage.PerCent", percent, Unit::Percent)
    .saw("io.limit_compact", limit, Unit::Bytes)
    .set("io.limit_compact", words::size((limit * 4.0).max(MB)))
    .wins(Gain::Disk, 0.0, percent / 100.0);
    Ok(Verdict::Change(Box::new(advice)))
}

fn compact_unfinished(seen: &Observation) -> Judgement {
    let (stopped, completed) =
        (seen.now("Database.Compact.Stopped")?, seen.now("Database.Compact.Completed")?);
    let (percent, window) = (seen.now("Database.Compact.Garbage.PerCent")?, seen.text("compact.window")?);
    if stopped < 3.0 || stopped <= completed || percent < 20.0 || window.is_empty() {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        0.03,
        "The window ends before the databases are compacted that gather garbage, night after night.",
    )
    .saw("Database.Compact.Stopped", stopped, Unit::Count)
    .saw("Database.Compact.Completed", completed, Unit::Count)
    .saw("Database.Compact.Garbage.PerCent", percent, Unit::Percent)
    .saw_text("compact.window", window)
    .set("compact.window", longer(window))
    .wins(Gain::Disk, 0.0, percent / 100.0);
    Ok(Verdict::Change(Box::new(advice)))
}

/// A window that begins four hours earlier, or the longest that there is.
fn longer(window: &str) -> String {
    let minutes = |time: &str| {
        let (hours, minutes) = time.split_once(':')?;
        Some(hours.parse::<u32>().ok()? * 60 + minutes.parse::<u32>().ok()?)
    };
    let parsed = window.split_once('-').and_then(|(from, to)| Some((minutes(from)?, minutes(to)?)));
    let Some((from, to)) = parsed else { return "22:00-06:00".to_owned() };
    let day = 24 * 60;
    let length = ((to + day - from) % day + 240).min(day - 60);
    let from = (to + day - length) % day;
    format!("{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
}

#[cfg(test)]
mod tests {
    use super::longer;

    #[test]
    fn a_window_becomes_longer_across_midnight_and_never_a_whole_day() {
        assert_eq!(longer("02:00-05:00"), "22:00-05:00");
        assert_eq!(longer("22:30-04:00"), "18:30-04:00");
        assert_eq!(longer("05:00-04:00"), "05:00-04:00");
    }
}
