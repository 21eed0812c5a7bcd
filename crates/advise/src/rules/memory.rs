//! Memory: the budget, the system's cache of files, memtables.

use crate::advice::{Advice, Gain, Unit};
use crate::observation::{Observation, enough};
use crate::rule::{Judgement, Rule, Subject, Support, Verdict};
use crate::words::{self, MB};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "pool-small",
        subject: Subject::Memory,
        title: "Give databases more memory",
        speaks_if: "less than 95 % of blocks are found in the pool, and reading the others is 2 % of the time of requests or more",
        looks_at: &[
            "Database.BufferPool.Hits",
            "Database.BufferPool.Misses",
            "Database.BufferPool.Maximum.Megabytes",
            "Database.Files.Bytes",
            "FileCache.Direct",
            "Mem.Available",
            "Mem.PhysicalRAM",
        ],
        keys: &["memory.budget"],
        support: &[
            Support::Experiment("buffer-pool"),
            Support::Experiment("pool-concurrency"),
            Support::Benchmark("page-depth"),
        ],
        until: "95 % of blocks are found in the pool",
        check: pool_small,
    },
    Rule {
        name: "pool-large",
        subject: Subject::Memory,
        title: "Leave memory to the rest of the machine",
        speaks_if: "the machine has less than 5 % of its memory left, or some of the server's is swapped out, and the budget is more than its usual share",
        looks_at: &[
            "Mem.Available",
            "Mem.PhysicalRAM",
            "Mem.Swapped.Process",
            "Database.BufferPool.Maximum.Megabytes",
            "FileCache.Direct",
        ],
        keys: &["memory.budget"],
        support: &[Support::Experiment("buffer-pool")],
        until: "5 % of the memory is left and nothing is swapped out",
        check: pool_large,
    },
    Rule {
        name: "file-cache",
        subject: Subject::Memory,
        title: "Read past the system's cache of files",
        speaks_if: "the databases' files are more than four times the memory, are read through the system's cache, and 100 blocks a second or more are not in the pool",
        looks_at: &[
            "Database.Files.Bytes",
            "Database.BufferPool.Misses",
            "FileCache.Direct",
            "Mem.PhysicalRAM",
        ],
        keys: &["file_cache.mode", "file_cache.threshold", "memory.budget"],
        support: &[
            Support::Experiment("compact-cache"),
            Support::Experiment("configurations"),
            Support::Page("docs/operate/memory.md"),
        ],
        until: "FileCache.Direct is 1",
        check: file_cache,
    },
    Rule {
        name: "writes-held",
        subject: Subject::Memory,
        title: "Let merging of files keep up",
        speaks_if: "changes were held for 1 % of the time or more because files were not merged in time",
        looks_at: &["Database.WriteStalls.Microseconds", "Database.Compact.BytesPending", "Mem.Available"],
        keys: &["io.limit_compact", "memory.budget"],
        support: &[Support::Experiment("configurations"), Support::Page("docs/operate/memory.md")],
        until: "Database.WriteStalls.Microseconds grows by less than 1 % of the time",
        check: writes_held,
    },
];

/// What reading a block costs at least that is in the system's cache of files: `make bench NAME=page-depth`, a document
/// with memory for a tenth, below HTTP.
const MISS_MS: f64 = 0.02;

/// The same of a block that is not there: from a fast disk, and from one that turns or is busy.
const MISS_FROM_DISK_MS: f64 = 0.1;
const MISS_FROM_SLOW_DISK_MS: f64 = 1.0;

/// The part of the memory that is usual for the budget.
const USUAL: f64 = 0.25;
const USUAL_PAST_THE_CACHE: f64 = 0.75;

fn pool_small(seen: &Observation) -> Judgement {
    let (hits, misses) = (seen.grew("Database.BufferPool.Hits")?, seen.grew("Database.BufferPool.Misses")?);
    enough(hits + misses, 2000.0, "blocks were read")?;
    let percent = 100.0 * hits / (hits + misses);
    let direct = seen.now("FileCache.Direct")? >= 1.0;
    let least = seen.part_of_requests(misses * if direct { MISS_FROM_DISK_MS } else { MISS_MS });
    // Files' indexes and filters are counted too, several for each document, and are nearly always there.
    if percent >= 95.0 || least < 0.02 {
        return Ok(Verdict::Fine);
    }
    let budget = seen.now("Database.BufferPool.Maximum.Megabytes")? * MB;
    let (ram, available) = (seen.now("Mem.PhysicalRAM")?, seen.now("Mem.Available")?);
    let usual = if direct { USUAL_PAST_THE_CACHE } else { USUAL };
    let files = seen.now("Database.Files.Bytes")?;
    // A quarter of what is free stays free, and more than the files, which are compressed, helps nobody.
    let wanted = (budget * 4.0).max(ram * usual).min(budget + available * 0.75).min(budget + files * 3.0);
    // What the system's cache of files may hold need not come from the disk.
    let from_disk = direct || files > available;
    let miss_ms = if from_disk { MISS_FROM_SLOW_DISK_MS } else { MISS_FROM_DISK_MS };
    let most = seen.part_of_requests(misses * miss_ms).min(0.9).max(least);
    let advice = Advice::new(
        least + (most - least) * 0.2,
        "Blocks that are read again and again are read from files each time, because the pool is too small for them.",
    )
    .saw_of("Database.BufferPool.Hits", "of all reads", percent, Unit::Percent)
    .saw("Database.BufferPool.Misses", misses, Unit::Count)
    .saw("memory.budget", budget, Unit::Bytes)
    .saw("Mem.Available", available, Unit::Bytes)
    .wins(Gain::Response, least * 0.5, most);
    let advice = if wanted >= budget * 1.25 {
        advice.set("memory.budget", words::size(wanted))
    } else {
        advice.by_hand(
            "The machine has no memory left for a larger memory.budget: give it more, or move users or databases to another server.",
        )
    };
    Ok(Verdict::Change(Box::new(advice)))
}

fn pool_large(seen: &Observation) -> Judgement {
    let (ram, available) = (seen.now("Mem.PhysicalRAM")?, seen.now("Mem.Available")?);
    let swapped = seen.now("Mem.Swapped.Process")?;
    let budget = seen.now("Database.BufferPool.Maximum.Megabytes")? * MB;
    let usual = if seen.now("FileCache.Direct")? >= 1.0 { USUAL_PAST_THE_CACHE } else { USUAL };
    let (is_short, is_swapped) = (available < ram * 0.05, swapped >= ram * 0.01);
    if !(is_short || is_swapped) || budget <= ram * usual * 1.05 {
        return Ok(Verdict::Fine);
    }
    let weight = if is_swapped { 0.5 } else { 0.3 };
    let advice = Advice::new(
        weight,
        "The pool takes memory that the system, its cache of files and other programs need; what is swapped out is slower \
         than what was never cached.",
    )
    .saw("memory.budget", budget, Unit::Bytes)
    .saw("Mem.PhysicalRAM", ram, Unit::Bytes)
    .saw("Mem.Available", available, Unit::Bytes)
    .saw("Mem.Swapped.Process", swapped, Unit::Bytes)
    .set("memory.budget", format!("{:.0} %", usual * 100.0))
    .wins(Gain::Response, 0.0, weight);
    Ok(Verdict::Change(Box::new(advice)))
}

fn file_cache(seen: &Observation) -> Judgement {
    let (files, ram) = (seen.now("Database.Files.Bytes")?, seen.now("Mem.PhysicalRAM")?);
    if seen.now("FileCache.Direct")? >= 1.0 || files <= 4.0 * ram {
        return Ok(Verdict::Fine);
    }
    let misses = seen.grew("Database.BufferPool.Misses")?;
    let a_second = misses / seen.seconds;
    if a_second < 100.0 {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        0.15,
        "Of files this large the system keeps little that is read again, pushes out what others need, and keeps in memory \
         a second time what the pool has.",
    )
    .saw("Database.Files.Bytes", files, Unit::Bytes)
    .saw("Mem.PhysicalRAM", ram, Unit::Bytes)
    .saw_of("Database.BufferPool.Misses", "a second", a_second, Unit::Count)
    .saw_text("file_cache.mode", seen.text("file_cache.mode")?)
    .set("file_cache.threshold", words::size(ram))
    .set("memory.budget", "60 %")
    .wins(Gain::Response, 0.0, 0.3);
    Ok(Verdict::Change(Box::new(advice)))
}

fn writes_held(seen: &Observation) -> Judgement {
    let held_s = seen.grew("Database.WriteStalls.Microseconds")? / 1e6;
    let part = held_s / seen.seconds.max(1e-3);
    if part < 0.01 {
        return Ok(Verdict::Fine);
    }
    let limit = seen.number("io.limit_compact")?;
    let budget = seen.now("Database.BufferPool.Maximum.Megabytes")? * MB;
    let available = seen.now("Mem.Available")?;
    let advice =
        Advice::new(part, "More is changed than can be merged in the same time, so changes are held.")
            .saw_of("Database.WriteStalls.Microseconds", "part of the time", part * 100.0, Unit::Percent)
            .saw("Database.Compact.BytesPending", seen.now("Database.Compact.BytesPending")?, Unit::Bytes)
            .saw("io.limit_compact", limit, Unit::Bytes)
            .wins(Gain::Response, part * 0.2, part);
    let advice = if limit > 0.0 {
        advice.set("io.limit_compact", "0")
    } else if available >= budget {
        advice.set("memory.budget", words::size(budget * 2.0))
    } else {
        advice.by_hand(
            "Put the databases, or those that are written to most, on a faster device (docs/operate/volumes.md).",
        )
    };
    Ok(Verdict::Change(Box::new(advice)))
}
