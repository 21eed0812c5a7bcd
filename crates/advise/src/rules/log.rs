//! The transaction log.

use crate::advice::{Advice, Gain, Unit};
use crate::observation::{Observation, enough};
use crate::rule::{Judgement, Rule, Subject, Support, Verdict};
use crate::words::{self, MB};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "log-off",
        subject: Subject::Log,
        title: "Log changes",
        speaks_if: "`log.style` is off, and a tenth of the time of requests or more is the wait for the databases' own files",
        looks_at: &["Database.RM.Sys.Log.Type", "Log.Unlogged.Records", "UNLOGGED_FLUSH"],
        keys: &["log.style"],
        support: &[Support::Experiment("transaction-logging"), Support::Benchmark("logging")],
        until: "the server runs with log.style = circular or archive",
        check: log_off,
    },
    Rule {
        name: "log-partly-off",
        subject: Subject::Log,
        title: "Log the databases that are not",
        speaks_if: "with a log, changes of databases with `logged=false` hold everybody for 5 % of the time or more",
        looks_at: &["Log.Unlogged.Groups", "UNLOGGED_FLUSH", "show database"],
        keys: &[],
        support: &[Support::Experiment("transaction-logging"), Support::Page("docs/operate/logging.md")],
        until: "such changes take less than 5 % of the time",
        check: log_partly_off,
    },
    Rule {
        name: "log-device",
        subject: Subject::Log,
        title: "Give the log a device of its own",
        speaks_if: "the log is on the databases' device, a sync takes 2 ms or more, and changes wait for it for a fifth of the time of requests",
        looks_at: &["Log.OwnDevice", "Log.Records", "Log.Syncs", "LOG_SYNC"],
        keys: &["log.dir"],
        support: &[Support::Experiment("io-spread"), Support::Experiment("configurations")],
        until: "Log.OwnDevice is 1, or a sync takes less than 2 ms",
        check: log_device,
    },
    Rule {
        name: "log-full",
        subject: Subject::Log,
        title: "Let the log become larger",
        speaks_if: "changes had to wait because the log had its largest size",
        looks_at: &["Log.Waits", "Log.Syncs", "Log.Size"],
        keys: &["log.max_size"],
        support: &[Support::Page("docs/operate/logging.md")],
        until: "Log.Waits does not grow",
        check: log_full,
    },
    Rule {
        name: "restart-long",
        subject: Subject::Log,
        title: "Make checkpoints more often",
        speaks_if: "after a crash as much of the log as there may be would take more than 30 s to do again",
        looks_at: &["Log.Redo.Limit", "Log.Redo.BytesPerSecond"],
        keys: &["log.favor", "checkpoint.log_bytes"],
        support: &[Support::Experiment("restart"), Support::Benchmark("restart")],
        until: "Log.Redo.Limit divided by Log.Redo.BytesPerSecond is less than 30 s",
        check: restart_long,
    },
    Rule {
        name: "checkpoints-often",
        subject: Subject::Log,
        title: "Make checkpoints less often",
        speaks_if: "there are three checkpoints a minute or more, and a restart with a larger limit would still take less than 30 s",
        looks_at: &["Log.Checkpoints", "Log.Redo.Limit", "Log.Redo.BytesPerSecond", "Database.Flush.Bytes"],
        keys: &["log.favor", "checkpoint.log_bytes"],
        support: &[Support::Experiment("restart"), Support::Benchmark("restart")],
        until: "there are fewer than three checkpoints a minute",
        check: checkpoints_often,
    },
    Rule {
        name: "archive-behind",
        subject: Subject::Log,
        title: "Have the log's archive follow",
        speaks_if: "with `log.style = archive`, copies fail, or several files of the log wait to be copied at both moments",
        looks_at: &["Log.Archive.Waiting", "Log.Archive.Failures"],
        keys: &["log.style", "log.archive_dir"],
        support: &[Support::Page("docs/operate/backup.md")],
        until: "Log.Archive.Waiting is 1 or 0 and Log.Archive.Failures does not grow",
        check: archive_behind,
    },
];

/// A restart may take so long.
const RESTART_S: f64 = 30.0;

fn log_off(seen: &Observation) -> Judgement {
    if seen.log_style()? != "off" {
        return Ok(Verdict::Fine);
    }
    let records = seen.grew("Log.Unlogged.Records")?;
    enough(records, 100.0, "changes were seen")?;
    let flush_ms = seen.operation("UNLOGGED_FLUSH").average_ms();
    let part = seen.part_of_requests(records * flush_ms);
    if part < 0.1 {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        part,
        "Each change waits until the databases' own files are written and synced, which is much more work than one \
         record in a log.",
    )
    .saw_text("log.style", "off")
    .saw("Log.Unlogged.Records", records, Unit::Count)
    .saw_of("UNLOGGED_FLUSH", "average", flush_ms, Unit::Milliseconds)
    .set("log.style", "circular")
    // The benchmark's changes took 1 to 7 % of the time; not all of a request is the wait.
    .wins(Gain::Response, part * 0.5, part * 0.95);
    Ok(Verdict::Change(Box::new(advice)))
}

fn log_partly_off(seen: &Observation) -> Judgement {
    if seen.log_style()? == "off" {
        return Ok(Verdict::Fine);
    }
    let (groups, flush) = (seen.grew("Log.Unlogged.Groups")?, seen.operation("UNLOGGED_FLUSH"));
    let part = flush.total_ms / 1000.0 / seen.seconds.max(1e-3);
    if groups == 0.0 || part < 0.05 {
        return Ok(Verdict::Fine);
    }
    enough(groups, 20.0, "writes past the log were seen")?;
    let mut advice = Advice::new(
        part,
        "While changes of such a database are made durable, which takes its own files, no change of any other database \
         is logged.",
    )
    .saw("Log.Unlogged.Groups", groups, Unit::Count)
    .saw_of("UNLOGGED_FLUSH", "average", flush.average_ms(), Unit::Milliseconds)
    .saw_of("UNLOGGED_FLUSH", "part of the time", part * 100.0, Unit::Percent)
    .wins(Gain::Response, 0.0, part);
    for database in &seen.unlogged {
        advice = advice.console(format!("set database {database} logged=true"));
    }
    if seen.unlogged.is_empty() {
        advice = advice.by_hand(
            "Find the databases with logged=false (show database NAME) among those that are written to, and set logged=true.",
        );
    }
    Ok(Verdict::Change(Box::new(advice)))
}

fn log_device(seen: &Observation) -> Judgement {
    if seen.log_style()? == "off" || seen.now("Log.OwnDevice")? >= 1.0 {
        return Ok(Verdict::Fine);
    }
    let (records, syncs) = (seen.grew("Log.Records")?, seen.grew("Log.Syncs")?);
    enough(syncs, 100.0, "syncs of the log were seen")?;
    let sync_ms = seen.operation("LOG_SYNC").average_ms();
    let part = seen.part_of_requests(records * sync_ms);
    if sync_ms < 2.0 || part < 0.2 {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        part * 0.6,
        "Each change waits for a sync of the log, and the device has the databases' reading and writing to do as well.",
    )
    .saw("Log.OwnDevice", 0.0, Unit::Truth)
    .saw("Log.Syncs", syncs, Unit::Count)
    .saw_of("LOG_SYNC", "average", sync_ms, Unit::Milliseconds)
    .saw_of("LOG_SYNC", "part of the time of requests", part * 100.0, Unit::Percent)
    .by_hand(
        "Stop the server, move the folder of the log there with all its files, write dir = \"/mnt/ANOTHER-DEVICE/log\" \
         under [log] in the configuration file, and start the server again.",
    )
    .wins(Gain::Response, part * 0.1, part * 0.8);
    Ok(Verdict::Change(Box::new(advice)))
}

fn log_full(seen: &Observation) -> Judgement {
    let waits = seen.grew("Log.Waits")?;
    let max_bytes = seen.number("log.max_size")?;
    if waits < 1.0 || max_bytes <= 0.0 {
        return Ok(Verdict::Fine);
    }
    let part = waits / seen.grew("Log.Syncs")?.max(waits);
    let advice = Advice::new(
        0.1 + part * 0.5,
        "The log had its largest size, so those who change something waited until the databases' files were written.",
    )
    .saw("Log.Waits", waits, Unit::Count)
    .saw("Log.Size", seen.now("Log.Size")?, Unit::Bytes)
    .saw("log.max_size", max_bytes, Unit::Bytes)
    .set("log.max_size", words::size(max_bytes * 2.0))
    .wins(Gain::Response, 0.0, part);
    Ok(Verdict::Change(Box::new(advice)))
}

fn restart_long(seen: &Observation) -> Judgement {
    let (limit, speed) = (seen.now("Log.Redo.Limit")?, seen.now("Log.Redo.BytesPerSecond")?);
    if seen.log_style()? == "off" || speed <= 0.0 || limit / speed <= RESTART_S {
        return Ok(Verdict::Fine);
    }
    let seconds = limit / speed;
    let by_hand = seen.number("checkpoint.log_bytes")? > 0.0;
    let smaller = [("standard", 256.0 * MB), ("restart", 64.0 * MB)];
    let fitting = smaller.into_iter().find(|(_, bytes)| bytes / speed <= RESTART_S && *bytes < limit);
    let Some((favor, bytes)) =
        fitting.or_else(|| smaller.last().copied()).filter(|(_, bytes)| *bytes < limit)
    else {
        return Ok(Verdict::Note(format!(
            "After a crash up to {} would be done again in about {}, with the shortest distance of checkpoints that \
             there is: the device is slow.",
            words::value(limit, Unit::Bytes),
            words::spoken(seconds)
        )));
    };
    let mut advice = Advice::new(
        0.15,
        format!("After a crash the server could need {} before it serves again.", words::spoken(seconds)),
    )
    .saw("Log.Redo.Limit", limit, Unit::Bytes)
    .saw("Log.Redo.BytesPerSecond", speed, Unit::Bytes)
    .saw_text("log.favor", seen.text("log.favor")?)
    .set("log.favor", favor);
    if by_hand {
        advice = advice.set("checkpoint.log_bytes", "0");
    }
    let part = 1.0 - bytes / limit;
    Ok(Verdict::Change(Box::new(advice.wins(Gain::Restart, part * 0.5, part))))
}

fn checkpoints_often(seen: &Observation) -> Judgement {
    let (checkpoints, style) = (seen.grew("Log.Checkpoints")?, seen.log_style()?);
    let (limit, speed) = (seen.now("Log.Redo.Limit")?, seen.now("Log.Redo.BytesPerSecond")?);
    let larger = [("standard", 256.0 * MB), ("runtime", 1024.0 * MB)];
    let fitting =
        larger.into_iter().rev().find(|(_, bytes)| *bytes > limit && bytes / speed.max(1.0) < RESTART_S);
    let Some((favor, bytes)) = fitting.filter(|_| style != "off") else { return Ok(Verdict::Fine) };
    enough(seen.seconds, 30.0, "seconds were looked at")?;
    let a_minute = checkpoints * 60.0 / seen.seconds;
    if a_minute < 3.0 {
        return Ok(Verdict::Fine);
    }
    let flushed = seen.grew("Database.Flush.Bytes")?;
    let mut advice = Advice::new(
        0.1,
        "The databases' files are written this often although a restart would be short with fewer, larger ones.",
    )
    .saw_of("Log.Checkpoints", "a minute", a_minute, Unit::Count)
    .saw("Log.Redo.Limit", limit, Unit::Bytes)
    .saw("Database.Flush.Bytes", flushed, Unit::Bytes)
    .set("log.favor", favor);
    if seen.number("checkpoint.log_bytes")? > 0.0 {
        advice = advice.set("checkpoint.log_bytes", "0");
    }
    // What is overwritten between two checkpoints is written once; what is new is written in any case.
    Ok(Verdict::Change(Box::new(advice.wins(Gain::Writes, 0.0, 1.0 - limit / bytes))))
}

fn archive_behind(seen: &Observation) -> Judgement {
    if seen.log_style()? != "archive" {
        return Ok(Verdict::Fine);
    }
    let (waiting, failures) = (seen.now("Log.Archive.Waiting")?, seen.grew("Log.Archive.Failures")?);
    let waited = seen.before.get("Log.Archive.Waiting").copied().unwrap_or(waiting);
    if waiting.min(waited) <= 1.0 && failures < 1.0 {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        0.6,
        "The log keeps and grows by what is not in its archive yet, until its disk is full; what is not there cannot be \
         restored if the server's disks are lost.",
    )
    .saw("Log.Archive.Waiting", waiting, Unit::Count)
    .saw("Log.Archive.Failures", failures, Unit::Count)
    .saw_text("log.archive_dir", seen.text("log.archive_dir")?)
    .by_hand("Make room in log.archive_dir, or bring its device back; the archive catches up by itself.")
    .console("show log 1h -l warn");
    Ok(Verdict::Change(Box::new(advice)))
}
