//! A server with nothing to change, and for each rule what makes it speak, and what just does not.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]
#![allow(clippy::indexing_slicing, reason = "the two databases are there")]

use scrinium_advise::{DatabaseUse, Event, Observation, Operation, Setting, TaskRun, VolumeUse};
use serde_json::{Value, json};

pub const MB: f64 = 1_048_576.0;
pub const GB: f64 = 1024.0 * MB;
pub const DAY_S: f64 = 86_400.0;

/// What is set for one rule.
pub struct Case {
    pub rule: &'static str,
    /// Makes it speak.
    pub speaks: fn(&mut Observation),
    /// The same, a little less of it.
    pub is_silent: fn(&mut Observation),
}

/// A busy minute of a server that is set up well: 30,000 requests of a millisecond, half of two processors.
pub fn well_set_up() -> Observation {
    let mut seen = Observation { seconds: 60.0, now_s: 1.8e9, ..Observation::default() };
    for (name, value) in NOW {
        now(&mut seen, name, *value);
    }
    for (name, growth) in GROWN {
        grew(&mut seen, name, *growth);
    }
    for (name, count, average_ms) in [
        ("OPEN_NOTE", 20_000.0, 1.0),
        ("UPDATE_NOTE", 10_000.0, 1.0),
        ("LOG_SYNC", 5000.0, 0.5),
        ("POOL_WAIT", 30_000.0, 0.01),
    ] {
        ran(&mut seen, name, count, average_ms);
    }
    let settings = json!({
        "attachment.cache": GB, "attachment.store": "volume", "attachment.threshold": MB,
        "checkpoint.log_bytes": 0, "compact.garbage_percent": 30, "compact.window": "02:00-05:00",
        "disk.reserve_bytes": 256.0 * MB, "file_cache.mode": "system", "file_cache.sync_report": 2.0,
        "file_cache.threshold": 0, "http.compression": false, "http.idle_timeout": 300.0,
        "http.max_connections": 20_000, "http.tls": false, "https.compression": false, "https.listen": [],
        "io.limit_backup": 0, "io.limit_compact": 0, "io.limit_view_update": 0, "log.archive_dir": "archive",
        "log.dir": "log", "log.favor": "standard", "log.max_size": 4.0 * GB, "log.style": "circular",
        "mail.boxes": 4, "memory.budget": "25 %", "server.max_concurrent_transactions": 1000,
        "server.max_waiting_transactions": 4000, "server.pool_tasks": 100, "view.discard_after": 45.0 * DAY_S,
        "view.rebuild_dir": "rebuild", "view.time_variant_refresh": 900.0,
    });
    for (key, value) in settings.as_object().into_iter().flatten() {
        set(&mut seen, key, value.clone());
    }
    seen.databases = vec![database("mail/ada", 6000.0), database("mail/bob", 5000.0)];
    seen.volumes = vec![VolumeUse { name: "main".to_owned(), free_bytes: 300.0 * GB, missing: None }];
    seen.events = Some(Vec::new());
    seen.runs = vec![run("backup", "finished", 1.0)];
    seen
}

const NOW: &[(&str, f64)] = &[
    ("Attachment.Store.CacheBytes", 0.0),
    ("Backup.LastTime", 0.0),
    ("Database.BackgroundErrors", 0.0),
    ("Database.BufferPool.Maximum.Megabytes", 4096.0),
    ("Database.Compact.BytesPending", 0.0),
    ("Database.Compact.Completed", 5.0),
    ("Database.Compact.Contents.Bytes", 30.0 * GB),
    ("Database.Compact.Contents.GarbageBytes", 0.5 * GB),
    ("Database.Compact.Garbage.Bytes", 2.0 * GB),
    ("Database.Compact.Garbage.PerCent", 10.0),
    ("Database.Compact.Stopped", 0.0),
    ("Database.Files.Bytes", 50.0 * GB),
    ("Database.Fixup.Left", 0.0),
    ("Database.RM.Sys.Log.Type", 1.0),
    ("Disk.Data.Free", 300.0 * GB),
    ("Disk.Data.Size", 500.0 * GB),
    ("Disk.Log.Free", 80.0 * GB),
    ("Disk.Log.Size", 100.0 * GB),
    ("FileCache.Direct", 0.0),
    ("FileCache.Sync.Longest.Milliseconds", 30.0),
    ("Log.OwnDevice", 0.0),
    ("Log.Redo.BytesPerSecond", 64.0 * MB),
    ("Log.Redo.Limit", 256.0 * MB),
    ("Log.Size", 512.0 * MB),
    ("Mail.AverageDeliverTime", 3.0),
    ("Mail.Dead", 0.0),
    ("Mail.Waiting", 0.0),
    ("Mem.Available", 8.0 * GB),
    ("Mem.PhysicalRAM", 16.0 * GB),
    ("Mem.Swapped.Process", 0.0),
    ("Platform.System.Processors", 2.0),
    ("Server.ElapsedTime", 2.0 * DAY_S),
    ("Server.Pool.Running.Peak", 12.0),
    ("Server.Users", 500.0),
    ("View.Builds", 12.0),
    ("View.Builds.Milliseconds", 40_000.0),
    ("View.Builds.SpilledBytes", 0.0),
    ("View.Discarded", 5.0),
    ("View.ReadAgain", 0.0),
    ("View.RebuildDir.InMemory", 0.0),
    ("View.RebuildDir.OwnDevice", 0.0),
];

const GROWN: &[(&str, f64)] = &[
    ("Attachment.Store.CacheHits", 0.0),
    ("Attachment.Store.CacheMisses", 0.0),
    ("Attachment.Store.Failures", 0.0),
    ("Backup.Failed", 0.0),
    ("Database.BufferPool.Hits", 98_000.0),
    ("Database.BufferPool.Misses", 2000.0),
    ("Database.Flush.Bytes", 0.0),
    ("Database.WriteStalls.Microseconds", 0.0),
    ("FileCache.Sync.Slow", 0.0),
    ("HTTP.Handshakes", 0.0),
    ("HTTP.Requests", 30_000.0),
    ("IO.Backup.Bytes", 0.0),
    ("IO.Compact.Bytes", 0.0),
    ("IO.Compact.Limited.Milliseconds", 0.0),
    ("IO.ViewUpdate.Bytes", 0.0),
    ("IO.ViewUpdate.Limited.Milliseconds", 0.0),
    ("Log.Checkpoints", 0.0),
    ("Log.Records", 10_000.0),
    ("Log.Syncs", 5000.0),
    ("Log.Unlogged.Groups", 0.0),
    ("Log.Unlogged.Records", 0.0),
    ("Log.Waits", 0.0),
    ("Mail.Delivered", 100.0),
    ("Platform.Process.CPU.Seconds", 60.0),
    ("Platform.System.CPU.Seconds", 70.0),
    ("Server.Pool.Panics", 0.0),
    ("Server.Trans.Refused", 0.0),
    ("Server.Trans.Total", 30_000.0),
    ("View.Refreshes", 0.0),
    ("View.Refreshes.Milliseconds", 0.0),
    ("View.Scripts.Failures", 0.0),
    ("View.Scripts.Milliseconds", 0.0),
    ("View.Updates", 2000.0),
    ("View.Updates.Changes", 10_000.0),
    ("View.Updates.Milliseconds", 1000.0),
];

/// A statistic has this value at both moments.
pub fn now(seen: &mut Observation, name: &str, value: f64) {
    seen.before.insert(name.to_owned(), value);
    seen.after.insert(name.to_owned(), value);
}

/// A statistic grew by so much.
pub fn grew(seen: &mut Observation, name: &str, by: f64) {
    seen.before.insert(name.to_owned(), 1000.0);
    seen.after.insert(name.to_owned(), 1000.0 + by);
}

/// An operation ran so often and took so long.
pub fn ran(seen: &mut Observation, name: &str, count: f64, average_ms: f64) {
    seen.operations.insert(name.to_owned(), Operation { count, total_ms: count * average_ms });
}

/// A key has this value.
pub fn set(seen: &mut Observation, key: &str, value: impl Into<Value>) {
    seen.settings.insert(key.to_owned(), Setting { value: value.into(), source: "default".to_owned() });
}

pub fn database(name: &str, writes: f64) -> DatabaseUse {
    DatabaseUse {
        name: name.to_owned(),
        volume: "main".to_owned(),
        documents: 20_000.0,
        file_bytes: GB,
        index_bytes: 0.6 * GB,
        writes,
        ..DatabaseUse::default()
    }
}

/// A task that ended this many days ago.
pub fn run(kind: &str, outcome: &str, days_ago: f64) -> TaskRun {
    TaskRun {
        kind: kind.to_owned(),
        outcome: outcome.to_owned(),
        reason: "the folder is not there".to_owned(),
        ended_s: 1.8e9 - days_ago * DAY_S,
        ..TaskRun::default()
    }
}

fn events(seen: &mut Observation, count: usize) {
    let event = Event { level: "warn".to_owned(), text: "a connection could not be accepted".to_owned() };
    seen.events = Some(vec![event; count]);
}

fn log_off(seen: &mut Observation, flush_ms: f64) {
    now(seen, "Database.RM.Sys.Log.Type", 0.0);
    set(seen, "log.style", "off");
    grew(seen, "Log.Unlogged.Records", 10_000.0);
    ran(seen, "UNLOGGED_FLUSH", 5000.0, flush_ms);
}

fn log_partly_off(seen: &mut Observation, flush_ms: f64) {
    grew(seen, "Log.Unlogged.Groups", 300.0);
    ran(seen, "UNLOGGED_FLUSH", 300.0, flush_ms);
    seen.unlogged = vec!["bulk/import".to_owned()];
}

fn slow_device(seen: &mut Observation, sync_ms: f64) {
    ran(seen, "LOG_SYNC", 5000.0, sync_ms);
    ran(seen, "UPDATE_NOTE", 10_000.0, sync_ms + 1.0);
}

fn archive(seen: &mut Observation, waiting: f64) {
    now(seen, "Database.RM.Sys.Log.Type", 2.0);
    now(seen, "Log.Archive.Waiting", waiting);
    grew(seen, "Log.Archive.Failures", 0.0);
}

fn blocks(seen: &mut Observation, hits: f64) {
    grew(seen, "Database.BufferPool.Hits", hits);
    grew(seen, "Database.BufferPool.Misses", 1_000_000.0 - hits);
}

fn large_pool(seen: &mut Observation, available: f64) {
    now(seen, "Database.BufferPool.Maximum.Megabytes", 10_240.0);
    now(seen, "Mem.Available", available);
}

fn large_files(seen: &mut Observation, bytes: f64) {
    now(seen, "Database.Files.Bytes", bytes);
    grew(seen, "Database.BufferPool.Misses", 9000.0);
    grew(seen, "Database.BufferPool.Hits", 200_000.0);
}

fn waits(seen: &mut Observation, average_ms: f64) {
    now(seen, "Server.Pool.Running.Peak", 100.0);
    ran(seen, "POOL_WAIT", 30_000.0, average_ms);
}

fn greetings(seen: &mut Observation, count: f64) {
    set(seen, "https.listen", json!(["0.0.0.0:6984"]));
    grew(seen, "HTTP.Handshakes", count);
}

fn attachments(seen: &mut Observation, hits: f64) {
    set(seen, "attachment.store", "s3://mail/server");
    now(seen, "Attachment.Store.CacheBytes", GB);
    grew(seen, "Attachment.Store.CacheHits", hits);
    grew(seen, "Attachment.Store.CacheMisses", 500.0);
    ran(seen, "GET_OBJECT", 500.0, 20.0);
}

/// One for each rule.
pub const CASES: &[Case] = &[
    Case { rule: "log-off", speaks: |seen| log_off(seen, 0.4), is_silent: |seen| log_off(seen, 0.2) },
    Case {
        rule: "log-partly-off",
        speaks: |seen| log_partly_off(seen, 11.0),
        is_silent: |seen| log_partly_off(seen, 9.0),
    },
    Case {
        rule: "log-device",
        speaks: |seen| slow_device(seen, 2.1),
        is_silent: |seen| slow_device(seen, 1.9),
    },
    Case {
        rule: "log-full",
        speaks: |seen| grew(seen, "Log.Waits", 1.0),
        is_silent: |seen| grew(seen, "Log.Waits", 0.0),
    },
    Case {
        rule: "restart-long",
        speaks: |seen| now(seen, "Log.Redo.BytesPerSecond", 8.0 * MB),
        is_silent: |seen| now(seen, "Log.Redo.BytesPerSecond", 9.0 * MB),
    },
    Case {
        rule: "checkpoints-often",
        speaks: |seen| grew(seen, "Log.Checkpoints", 3.0),
        is_silent: |seen| grew(seen, "Log.Checkpoints", 2.0),
    },
    Case { rule: "archive-behind", speaks: |seen| archive(seen, 2.0), is_silent: |seen| archive(seen, 1.0) },
    Case {
        rule: "pool-small",
        speaks: |seen| blocks(seen, 940_000.0),
        is_silent: |seen| blocks(seen, 960_000.0),
    },
    Case {
        rule: "pool-large",
        speaks: |seen| large_pool(seen, 0.7 * GB),
        is_silent: |seen| large_pool(seen, 0.9 * GB),
    },
    Case {
        rule: "file-cache",
        speaks: |seen| large_files(seen, 65.0 * GB),
        is_silent: |seen| large_files(seen, 63.0 * GB),
    },
    Case {
        rule: "writes-held",
        speaks: |seen| grew(seen, "Database.WriteStalls.Microseconds", 700_000.0),
        is_silent: |seen| grew(seen, "Database.WriteStalls.Microseconds", 500_000.0),
    },
    Case { rule: "pool-tasks", speaks: |seen| waits(seen, 1.1), is_silent: |seen| waits(seen, 0.9) },
    Case {
        rule: "processors-busy",
        speaks: |seen| grew(seen, "Platform.Process.CPU.Seconds", 109.0),
        is_silent: |seen| grew(seen, "Platform.Process.CPU.Seconds", 107.0),
    },
    Case {
        rule: "compression",
        speaks: |seen| {
            set(seen, "http.compression", true);
            grew(seen, "Platform.Process.CPU.Seconds", 91.0);
        },
        is_silent: |seen| {
            set(seen, "http.compression", true);
            grew(seen, "Platform.Process.CPU.Seconds", 89.0);
        },
    },
    Case {
        rule: "refused",
        speaks: |seen| grew(seen, "Server.Trans.Refused", 1.0),
        is_silent: |seen| grew(seen, "Server.Trans.Refused", 0.0),
    },
    Case {
        rule: "connections",
        speaks: |seen| now(seen, "Server.Users", 18_000.0),
        is_silent: |seen| now(seen, "Server.Users", 17_999.0),
    },
    Case {
        rule: "handshakes",
        speaks: |seen| greetings(seen, 15_000.0),
        is_silent: |seen| greetings(seen, 14_999.0),
    },
    Case {
        rule: "encryption",
        speaks: |seen| greetings(seen, 14_999.0),
        is_silent: |seen| greetings(seen, 15_000.0),
    },
    Case {
        rule: "views-discarded-early",
        speaks: |seen| now(seen, "View.ReadAgain", 3.0),
        is_silent: |seen| now(seen, "View.ReadAgain", 2.0),
    },
    Case {
        rule: "indexes-kept",
        speaks: |seen| {
            set(seen, "view.discard_after", 0);
            seen.databases[0].index_bytes = 2.0 * GB;
        },
        is_silent: |seen| set(seen, "view.discard_after", 0),
    },
    Case {
        rule: "rebuild-dir",
        speaks: |seen| now(seen, "View.Builds.SpilledBytes", 1.1 * GB),
        is_silent: |seen| now(seen, "View.Builds.SpilledBytes", 0.9 * GB),
    },
    Case {
        rule: "builds-held",
        speaks: |seen| {
            set(seen, "io.limit_view_update", MB);
            grew(seen, "IO.ViewUpdate.Limited.Milliseconds", 12_100.0);
        },
        is_silent: |seen| {
            set(seen, "io.limit_view_update", MB);
            grew(seen, "IO.ViewUpdate.Limited.Milliseconds", 11_900.0);
        },
    },
    Case {
        rule: "views-by-time",
        speaks: |seen| {
            grew(seen, "View.Refreshes", 2.0);
            grew(seen, "View.Refreshes.Milliseconds", 1600.0);
        },
        is_silent: |seen| {
            grew(seen, "View.Refreshes", 2.0);
            grew(seen, "View.Refreshes.Milliseconds", 1400.0);
        },
    },
    Case {
        rule: "views-behind",
        speaks: |seen| {
            grew(seen, "View.Updates", 100.0);
            grew(seen, "View.Updates.Changes", 10_000.0);
            grew(seen, "View.Updates.Milliseconds", 3000.0);
        },
        is_silent: |seen| {
            grew(seen, "View.Updates", 100.0);
            grew(seen, "View.Updates.Changes", 9900.0);
            grew(seen, "View.Updates.Milliseconds", 3000.0);
        },
    },
    Case {
        rule: "scripts-slow",
        speaks: |seen| grew(seen, "View.Scripts.Milliseconds", 6100.0),
        is_silent: |seen| grew(seen, "View.Scripts.Milliseconds", 5900.0),
    },
    Case {
        rule: "scripts-failing",
        speaks: |seen| grew(seen, "View.Scripts.Failures", 10.0),
        is_silent: |seen| grew(seen, "View.Scripts.Failures", 9.0),
    },
    Case {
        rule: "inbox-size",
        speaks: |seen| seen.databases[0].documents = 50_000.0,
        is_silent: |seen| seen.databases[0].documents = 49_999.0,
    },
    Case {
        rule: "garbage",
        speaks: |seen| now(seen, "Database.Compact.Garbage.PerCent", 41.0),
        is_silent: |seen| now(seen, "Database.Compact.Garbage.PerCent", 39.0),
    },
    Case {
        rule: "contents-garbage",
        speaks: |seen| now(seen, "Database.Compact.Contents.GarbageBytes", 9.1 * GB),
        is_silent: |seen| now(seen, "Database.Compact.Contents.GarbageBytes", 8.9 * GB),
    },
    Case {
        rule: "compact-limited",
        speaks: |seen| {
            set(seen, "io.limit_compact", MB);
            grew(seen, "IO.Compact.Limited.Milliseconds", 12_100.0);
        },
        is_silent: |seen| {
            set(seen, "io.limit_compact", MB);
            grew(seen, "IO.Compact.Limited.Milliseconds", 11_900.0);
        },
    },
    Case {
        rule: "compact-unfinished",
        speaks: |seen| {
            now(seen, "Database.Compact.Garbage.PerCent", 21.0);
            now(seen, "Database.Compact.Stopped", 6.0);
        },
        is_silent: |seen| {
            now(seen, "Database.Compact.Garbage.PerCent", 21.0);
            now(seen, "Database.Compact.Stopped", 5.0);
        },
    },
    Case {
        rule: "disk-full",
        speaks: |seen| now(seen, "Disk.Log.Free", 2.4 * GB),
        is_silent: |seen| now(seen, "Disk.Log.Free", 2.6 * GB),
    },
    Case {
        rule: "volume-missing",
        speaks: |seen| {
            let missing = Some("there is no store in /mnt/fast any more".to_owned());
            seen.volumes.push(VolumeUse { name: "fast".to_owned(), free_bytes: 0.0, missing });
        },
        is_silent: |seen| {
            seen.volumes.push(VolumeUse { name: "fast".to_owned(), free_bytes: 80.0 * GB, missing: None });
        },
    },
    Case {
        rule: "slow-syncs",
        speaks: |seen| grew(seen, "FileCache.Sync.Slow", 1.0),
        is_silent: |seen| grew(seen, "FileCache.Sync.Slow", 0.0),
    },
    Case {
        rule: "hot-database",
        speaks: |seen| {
            slow_device(seen, 2.1);
            seen.databases[0].writes = 7600.0;
        },
        is_silent: |seen| {
            slow_device(seen, 2.1);
            seen.databases[0].writes = 7400.0;
        },
    },
    Case {
        rule: "mail-waits",
        speaks: |seen| now(seen, "Mail.Waiting", 100.0),
        is_silent: |seen| {
            now(seen, "Mail.Waiting", 101.0);
            seen.after.insert("Mail.Waiting".to_owned(), 100.0);
        },
    },
    Case {
        rule: "dead-mail",
        speaks: |seen| now(seen, "Mail.Dead", 1.0),
        is_silent: |seen| now(seen, "Mail.Dead", 0.0),
    },
    Case {
        rule: "attachments-apart",
        speaks: |seen| now(seen, "Disk.Data.Free", 166.0 * GB),
        is_silent: |seen| now(seen, "Disk.Data.Free", 167.0 * GB),
    },
    Case {
        rule: "attachment-cache",
        speaks: |seen| attachments(seen, 499.0),
        is_silent: |seen| attachments(seen, 501.0),
    },
    Case {
        rule: "attachment-failures",
        speaks: |seen| grew(seen, "Attachment.Store.Failures", 1.0),
        is_silent: |seen| grew(seen, "Attachment.Store.Failures", 0.0),
    },
    Case {
        rule: "backup-old",
        speaks: |seen| seen.runs = vec![run("backup", "finished", 7.1)],
        is_silent: |seen| seen.runs = vec![run("backup", "finished", 6.9)],
    },
    Case {
        rule: "backup-failed",
        speaks: |seen| seen.runs.push(run("backup", "failed", 0.9)),
        is_silent: |seen| seen.runs.push(run("backup", "failed", 1.1)),
    },
    Case {
        rule: "damage",
        speaks: |seen| now(seen, "Database.Fixup.Left", 1.0),
        is_silent: |seen| now(seen, "Database.Fixup.Left", 0.0),
    },
    Case { rule: "repeated-warnings", speaks: |seen| events(seen, 20), is_silent: |seen| events(seen, 19) },
    Case {
        rule: "failed-tasks",
        speaks: |seen| seen.runs.push(run("indexer", "failed", 0.9)),
        is_silent: |seen| seen.runs.push(run("indexer", "failed", 1.1)),
    },
    Case {
        rule: "panics",
        speaks: |seen| grew(seen, "Server.Pool.Panics", 1.0),
        is_silent: |seen| grew(seen, "Server.Pool.Panics", 0.0),
    },
];
