//! Disks: room, slow syncs, databases that are in each other's way.

use crate::advice::{Advice, Gain, Unit};
use crate::observation::{DatabaseUse, Observation, enough};
use crate::rule::{Judgement, Rule, Subject, Support, Verdict};
use crate::words::{self, MB};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "disk-full",
        subject: Subject::Disk,
        title: "Make room on the disk",
        speaks_if: "a disk of databases or of the log has less than a tenth of it free, and less than ten times disk.reserve_bytes; or a volume less than that",
        looks_at: &[
            "Disk.Data.Free",
            "Disk.Data.Size",
            "Disk.Log.Free",
            "Disk.Log.Size",
            "Database.Compact.Garbage.Bytes",
            "show volumes",
        ],
        keys: &["disk.reserve_bytes"],
        support: &[Support::Page("docs/operate/compact.md"), Support::Page("docs/operate/volumes.md")],
        until: "there is more room",
        check: disk_full,
    },
    Rule {
        name: "volume-missing",
        subject: Subject::Disk,
        title: "Bring a volume back",
        speaks_if: "a volume of the configuration is not there",
        looks_at: &["show volumes"],
        keys: &[],
        support: &[Support::Page("docs/operate/volumes.md")],
        until: "show volumes has no volume that is missing",
        check: volume_missing,
    },
    Rule {
        name: "slow-syncs",
        subject: Subject::Disk,
        title: "Check a disk that is slow to sync",
        speaks_if: "syncs of the log took as long as `file_cache.sync_report` or longer",
        looks_at: &[
            "FileCache.Sync.Slow",
            "FileCache.Sync.Longest.Milliseconds",
            "Log.OwnDevice",
            "IO.Compact.Bytes",
            "IO.Backup.Bytes",
        ],
        keys: &["file_cache.sync_report", "io.limit_compact", "io.limit_backup"],
        support: &[Support::Experiment("io-spread"), Support::Page("docs/operate/memory.md")],
        until: "FileCache.Sync.Slow does not grow",
        check: slow_syncs,
    },
    Rule {
        name: "hot-database",
        subject: Subject::Disk,
        title: "Put the busiest database on another device",
        speaks_if: "one database does 60 % of what a volume's device has to do or more, and syncs of 2 ms or more show that the device is busy",
        looks_at: &["show databases", "show volumes", "LOG_SYNC", "Log.Records"],
        keys: &["volume.NAME.dir"],
        support: &[Support::Experiment("io-spread"), Support::Page("docs/operate/volumes.md")],
        until: "no database does 60 % of a volume's work, or a sync takes less than 2 ms",
        check: hot_database,
    },
];

fn disk_full(seen: &Observation) -> Judgement {
    let reserve = seen.number("disk.reserve_bytes")?.max(64.0 * MB);
    let is_short = |free: f64, size: f64| free < size * 0.1 && free < reserve * 10.0;
    let mut advice = Advice::new(
        0.0,
        "With less than its reserve left the server refuses changes (507), until there is room again.",
    );
    let mut least = f64::INFINITY;
    for (free, size) in [("Disk.Data.Free", "Disk.Data.Size"), ("Disk.Log.Free", "Disk.Log.Size")] {
        let (free_bytes, size_bytes) = (seen.now(free)?, seen.now(size)?);
        // A size of 0: the system does not tell.
        if size_bytes > 0.0 && is_short(free_bytes, size_bytes) {
            advice = advice.saw(free, free_bytes, Unit::Bytes).saw(size, size_bytes, Unit::Bytes);
            least = least.min(free_bytes);
        }
    }
    for volume in seen.volumes.iter().skip(1).filter(|volume| volume.missing.is_none()) {
        if volume.free_bytes < reserve * 10.0 {
            let text = format!("{} has {} free", volume.name, words::value(volume.free_bytes, Unit::Bytes));
            advice = advice.saw_text("show volumes", text);
            least = least.min(volume.free_bytes);
        }
    }
    if least.is_infinite() {
        return Ok(Verdict::Fine);
    }
    advice.weight = if least < reserve * 3.0 { 0.95 } else { 0.6 };
    let garbage = seen.now("Database.Compact.Garbage.Bytes")?;
    let mut advice = advice.saw("disk.reserve_bytes", reserve, Unit::Bytes);
    if garbage >= 16.0 * MB {
        advice =
            advice.saw("Database.Compact.Garbage.Bytes", garbage, Unit::Bytes).console("load compact * -B");
    }
    Ok(Verdict::Change(Box::new(advice.by_hand(
        "Make room there, or move databases to a volume (load move DATABASE VOLUME) or attachments to a store of objects.",
    ))))
}

fn volume_missing(seen: &Observation) -> Judgement {
    let missing = seen.volumes.iter().find_map(|volume| Some((volume, volume.missing.as_ref()?)));
    let Some((volume, reason)) = missing else { return Ok(Verdict::Fine) };
    let advice = Advice::new(0.9, "Its databases are answered with 503, and mail for them waits.")
        .saw_text("show volumes", format!("{} is not there: {reason}", volume.name))
        .by_hand(
            "Mount its device and start the server again; docs/operate/volumes.md explains each reason.",
        );
    Ok(Verdict::Change(Box::new(advice)))
}

fn slow_syncs(seen: &Observation) -> Judgement {
    let slow = seen.grew("FileCache.Sync.Slow")?;
    if slow < 1.0 {
        return Ok(Verdict::Fine);
    }
    let report_s = seen.number("file_cache.sync_report")?;
    let mut advice = Advice::new(
        0.2 + (slow * report_s / seen.seconds.max(1.0)).min(0.6),
        "Everybody who changed something waited so long for the disk.",
    )
    .saw("FileCache.Sync.Slow", slow, Unit::Count)
    .saw(
        "FileCache.Sync.Longest.Milliseconds",
        seen.now("FileCache.Sync.Longest.Milliseconds")?,
        Unit::Milliseconds,
    )
    .saw("file_cache.sync_report", report_s, Unit::Seconds)
    .wins(Gain::Response, 0.0, (slow * report_s / seen.seconds.max(1.0)).min(0.9));
    for (statistic, key) in [("IO.Compact.Bytes", "io.limit_compact"), ("IO.Backup.Bytes", "io.limit_backup")]
    {
        let a_second = seen.grew(statistic)? / seen.seconds.max(1.0);
        if a_second >= MB {
            advice = advice
                .saw_of(statistic, "a second", a_second, Unit::Bytes)
                .set(key, words::size(a_second / 2.0));
        }
    }
    let apart = seen.now("Log.OwnDevice")? >= 1.0;
    let what = if apart {
        "Look at the log's device: its health, its cache, and who else uses it (scrinium console \"show log 1d -l warn\" names the files)."
    } else {
        "Look at the device, and who else uses it; a log on a device of its own (log.dir) waits for nobody."
    };
    Ok(Verdict::Change(Box::new(advice.by_hand(what))))
}

/// What a database has its device do: blocks that are read, records that are written.
fn work(database: &DatabaseUse) -> f64 {
    database.blocks_from_files + database.writes
}

fn hot_database(seen: &Observation) -> Judgement {
    let sync_ms = seen.operation("LOG_SYNC").average_ms();
    let Some(hottest) = seen.databases.iter().max_by(|left, right| work(left).total_cmp(&work(right))) else {
        return Ok(Verdict::Fine);
    };
    let beside = seen.databases.iter().filter(|database| database.volume == hottest.volume);
    let all: f64 = beside.map(work).sum();
    enough(all, 5000.0, "blocks and records were read and written")?;
    let part = work(hottest) / all.max(1.0);
    if sync_ms < 2.0 || part < 0.6 {
        return Ok(Verdict::Fine);
    }
    let waited = seen.part_of_requests(seen.grew("Log.Records")? * sync_ms);
    let advice = Advice::new(
        waited * 0.4,
        "What this database has the device do is in the way of all others on it, and theirs of it.",
    )
    .saw_text(
        "show databases",
        format!(
            "{} on {}: {} of the work",
            hottest.name,
            hottest.volume,
            words::value(part * 100.0, Unit::Percent)
        ),
    )
    .saw_of("LOG_SYNC", "average", sync_ms, Unit::Milliseconds)
    .wins(Gain::Response, 0.0, waited * 0.8);
    let other = seen.volumes.iter().find(|other| other.missing.is_none() && other.name != hottest.volume);
    let advice = match other {
        Some(other) => advice.console(format!("load move {} {}", hottest.name, other.name)),
        None => advice
            .by_hand("Name a volume on another device in the configuration file, [volume.fast] with dir = \"/mnt/ANOTHER-DEVICE/scrinium\", and start the server again.")
            .console(format!("load move {} fast", hottest.name)),
    };
    Ok(Verdict::Change(Box::new(advice)))
}
