//! Views: builds, indexes, formulas and functions.

use crate::advice::{Advice, Gain, Unit};
use crate::observation::{Observation, enough};
use crate::rule::{Judgement, Rule, Subject, Support, Verdict};
use crate::words::{self, DAY_S, GB, MB};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "views-discarded-early",
        subject: Subject::Views,
        title: "Keep indexes for longer",
        speaks_if: "three indexes or more, a tenth of those that were discarded since the start, were read again afterwards",
        looks_at: &["View.ReadAgain", "View.Discarded", "View.Builds", "View.Builds.Milliseconds"],
        keys: &["view.discard_after"],
        support: &[Support::Experiment("view-rebuild"), Support::Benchmark("view-build")],
        until: "hardly an index is read again that was discarded",
        check: discarded_early,
    },
    Rule {
        name: "indexes-kept",
        subject: Subject::Views,
        title: "Discard indexes that nobody reads",
        speaks_if: "indexes are never discarded, and take more than a gigabyte and more than the documents",
        looks_at: &["show databases"],
        keys: &["view.discard_after"],
        support: &[Support::Experiment("view-rebuild")],
        until: "view.discard_after is not 0",
        check: indexes_kept,
    },
    Rule {
        name: "rebuild-dir",
        subject: Subject::Views,
        title: "Build views on another device",
        speaks_if: "builds of views have put a gigabyte or more of sorted files next to the databases since the start",
        looks_at: &[
            "View.Builds",
            "View.Builds.SpilledBytes",
            "View.RebuildDir.OwnDevice",
            "View.RebuildDir.InMemory",
            "Mem.Available",
        ],
        keys: &["view.rebuild_dir"],
        support: &[
            Support::Experiment("rebuild-ram-disk"),
            Support::Experiment("io-spread"),
            Support::Benchmark("view-build"),
        ],
        until: "view.rebuild_dir is on another device or in memory",
        check: rebuild_dir,
    },
    Rule {
        name: "builds-held",
        subject: Subject::Views,
        title: "Let builds of views go faster",
        speaks_if: "builds of views were held by their limit for a fifth of the time or more",
        looks_at: &["IO.ViewUpdate.Limited.Milliseconds", "IO.ViewUpdate.Bytes"],
        keys: &["io.limit_view_update"],
        support: &[Support::Experiment("view-rebuild"), Support::Page("docs/operate/volumes.md")],
        until: "builds are held for less than a fifth of the time",
        check: builds_held,
    },
    Rule {
        name: "views-by-time",
        subject: Subject::Views,
        title: "Evaluate views that depend on the time less often",
        speaks_if: "evaluating views again because of `@Now` or `@Today` is 5 % of the time of requests or more",
        looks_at: &["View.Refreshes", "View.Refreshes.Milliseconds"],
        keys: &["view.time_variant_refresh"],
        support: &[Support::Experiment("view-rebuild")],
        until: "it is less than 5 % of the time of requests",
        check: views_by_time,
    },
    Rule {
        name: "views-behind",
        subject: Subject::Views,
        title: "Bring views up to date before they are read",
        speaks_if: "indexes were a hundred changes or more behind when they were brought up to date, on average, and readers \
                    waited for it for 5 % of the time of requests or more",
        looks_at: &["View.Updates", "View.Updates.Changes", "View.Updates.Milliseconds"],
        keys: &[],
        support: &[Support::Benchmark("against-postgres"), Support::Page("docs/reference/http.md")],
        until: "they are less than a hundred changes behind, or take less than 5 % of the time of requests",
        check: views_behind,
    },
    Rule {
        name: "scripts-slow",
        subject: Subject::Views,
        title: "Write views as formulas",
        speaks_if: "map functions in JavaScript take a tenth of the server's processor time or more",
        looks_at: &["View.Scripts.Milliseconds", "Platform.Process.CPU.Seconds"],
        keys: &[],
        support: &[Support::Benchmark("view-build"), Support::Page("docs/reference/formula.md")],
        until: "map functions take less than a tenth of the processor time",
        check: scripts_slow,
    },
    Rule {
        name: "scripts-failing",
        subject: Subject::Views,
        title: "Repair functions of views that fail",
        speaks_if: "functions of views failed on ten documents or more",
        looks_at: &["View.Scripts.Failures", "View.Scripts.Milliseconds"],
        keys: &[],
        support: &[Support::Page("docs/operate/log-database.md")],
        until: "View.Scripts.Failures does not grow",
        check: scripts_failing,
    },
    Rule {
        name: "inbox-size",
        subject: Subject::Views,
        title: "Large databases",
        speaks_if: "only to say that a database with 50,000 documents or more is no reason for slow answers",
        looks_at: &["show databases"],
        keys: &[],
        support: &[
            Support::Experiment("inbox-size"),
            Support::Experiment("all-documents"),
            Support::Benchmark("page-depth"),
        ],
        until: "never: it asks for nothing",
        check: inbox_size,
    },
];

fn discarded_early(seen: &Observation) -> Judgement {
    let (again, discarded) = (seen.now("View.ReadAgain")?, seen.now("View.Discarded")?);
    let after_s = seen.number("view.discard_after")?;
    if again < 3.0 || again < discarded * 0.1 || after_s <= 0.0 {
        return Ok(Verdict::Fine);
    }
    let (builds, milliseconds) = (seen.now("View.Builds")?, seen.now("View.Builds.Milliseconds")?);
    let part = (again / builds.max(again)).min(1.0);
    let advice = Advice::new(
        0.08,
        "The first reader of such a view waits until it has been rebuilt from all documents.",
    )
    .saw("View.ReadAgain", again, Unit::Count)
    .saw("View.Discarded", discarded, Unit::Count)
    .saw_of("View.Builds.Milliseconds", "a build", milliseconds / builds.max(1.0), Unit::Milliseconds)
    .saw("view.discard_after", after_s / DAY_S, Unit::Days)
    .set("view.discard_after", words::time((after_s * 2.0).clamp(DAY_S, 365.0 * DAY_S)))
    .wins(Gain::Builds, part * 0.3, part);
    Ok(Verdict::Change(Box::new(advice)))
}

fn indexes_kept(seen: &Observation) -> Judgement {
    let sum = |bytes: fn(&crate::DatabaseUse) -> f64| seen.databases.iter().map(bytes).sum::<f64>();
    let (documents, indexes) = (sum(|database| database.file_bytes), sum(|database| database.index_bytes));
    if seen.number("view.discard_after")? > 0.0 || indexes <= GB || indexes <= documents {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        0.05,
        "Every index is kept up to date with each change and takes room, whether anybody reads it or not.",
    )
    .saw_of("show databases", "bytes of indexes", indexes, Unit::Bytes)
    .saw_of("show databases", "bytes of documents", documents, Unit::Bytes)
    .saw_text("view.discard_after", "0")
    .set("view.discard_after", "45 d")
    .wins(Gain::Disk, 0.0, indexes / (indexes + documents));
    Ok(Verdict::Change(Box::new(advice)))
}

fn rebuild_dir(seen: &Observation) -> Judgement {
    let (spilled, builds) = (seen.now("View.Builds.SpilledBytes")?, seen.now("View.Builds")?);
    let apart = seen.now("View.RebuildDir.OwnDevice")? >= 1.0 || seen.now("View.RebuildDir.InMemory")? >= 1.0;
    if spilled < GB || apart {
        return Ok(Verdict::Fine);
    }
    let available = seen.now("Mem.Available")?;
    // No build has put down more than all of them together.
    let in_memory = available >= 2.0 * spilled;
    let dir = if in_memory { "/dev/shm/scrinium-rebuild" } else { "/mnt/ANOTHER-DEVICE/rebuild" };
    let advice = Advice::new(
        0.04,
        "Entries that do not fit into memory are written, read and merged on the databases' device, and slow everybody down.",
    )
    .saw("View.Builds", builds, Unit::Count)
    .saw("View.Builds.SpilledBytes", spilled, Unit::Bytes)
    .saw("Mem.Available", available, Unit::Bytes)
    .saw_text("view.rebuild_dir", seen.text("view.rebuild_dir")?)
    .set_in_file("view.rebuild_dir", dir)
    // The benchmark's build took 94 % of the time with the folder in memory, on an idle device.
    .wins(Gain::Builds, 0.0, 0.3);
    Ok(Verdict::Change(Box::new(advice)))
}

fn builds_held(seen: &Observation) -> Judgement {
    let limit = seen.number("io.limit_view_update")?;
    let part = seen.part_of_time("IO.ViewUpdate.Limited.Milliseconds")?;
    if limit <= 0.0 || part < 0.2 {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        0.1 * part.min(1.0),
        "Builds of views give way while requests wait in any case; the limit holds them while nobody does, and readers wait \
         for them.",
    )
    .saw_of("IO.ViewUpdate.Limited.Milliseconds", "part of the time", part * 100.0, Unit::Percent)
    .saw("IO.ViewUpdate.Bytes", seen.grew("IO.ViewUpdate.Bytes")?, Unit::Bytes)
    .saw("io.limit_view_update", limit, Unit::Bytes)
    .set("io.limit_view_update", words::size((limit * 4.0).max(MB)))
    .wins(Gain::Builds, 0.1, part.min(0.75));
    Ok(Verdict::Change(Box::new(advice)))
}

fn views_by_time(seen: &Observation) -> Judgement {
    let (refreshes, milliseconds) = (seen.grew("View.Refreshes")?, seen.grew("View.Refreshes.Milliseconds")?);
    let part = seen.part_of_requests(milliseconds);
    if refreshes < 1.0 || part < 0.05 {
        return Ok(Verdict::Fine);
    }
    let every_s = seen.number("view.time_variant_refresh")?;
    let advice = Advice::new(
        part * 0.6,
        "The formulas of such a view may say something else of any document at any moment, so all documents are evaluated \
         while a reader waits.",
    )
    .saw("View.Refreshes", refreshes, Unit::Count)
    .saw_of("View.Refreshes.Milliseconds", "part of the time of requests", part * 100.0, Unit::Percent)
    .saw("view.time_variant_refresh", every_s, Unit::Seconds)
    .set("view.time_variant_refresh", words::time((every_s * 4.0).clamp(900.0, DAY_S)))
    .by_hand("Better: take @Now and @Today out of selections and columns; a reader can give a range of dates instead.")
    .wins(Gain::Response, part * 0.5, part);
    Ok(Verdict::Change(Box::new(advice)))
}

fn views_behind(seen: &Observation) -> Judgement {
    let (updates, milliseconds) = (seen.grew("View.Updates")?, seen.grew("View.Updates.Milliseconds")?);
    let behind = seen.grew("View.Updates.Changes")? / updates.max(1.0);
    let part = seen.part_of_requests(milliseconds);
    if behind < 100.0 || part < 0.05 {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        part * 0.5,
        "Much is written into these databases and their views are read seldom, so that each reader waits until the view has \
         taken what came since the one before.",
    )
    .saw("View.Updates", updates, Unit::Count)
    .saw_of("View.Updates.Changes", "of an update", behind, Unit::Count)
    .saw_of("View.Updates.Milliseconds", "an update", milliseconds / updates.max(1.0), Unit::Milliseconds)
    .saw_of("View.Updates.Milliseconds", "part of the time of requests", part * 100.0, Unit::Percent)
    .by_hand("Give the design documents of such views \"options\": {\"update\": \"automatic\"}: they then follow in the background.")
    .by_hand("Or give them {\"every_seconds\": N}, where readers may see what is N seconds old.")
    // What is done in the background is done all the same, and takes the processors from others.
    .wins(Gain::Response, part * 0.3, part * 0.9);
    Ok(Verdict::Change(Box::new(advice)))
}

fn scripts_slow(seen: &Observation) -> Judgement {
    let used_ms = seen.grew("Platform.Process.CPU.Seconds")? * 1000.0;
    let milliseconds = seen.grew("View.Scripts.Milliseconds")?;
    if milliseconds == 0.0 {
        return Ok(Verdict::Fine);
    }
    enough(milliseconds, 500.0, "milliseconds of functions were seen")?;
    let part = (milliseconds / used_ms.max(1.0)).min(1.0);
    if part < 0.1 {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        part * 0.4,
        "A map function in JavaScript takes longer than a formula that says the same: each document is handed over as JSON.",
    )
    .saw("View.Scripts.Milliseconds", milliseconds, Unit::Milliseconds)
    .saw_of("Platform.Process.CPU.Seconds", "part of functions", part * 100.0, Unit::Percent)
    .by_hand("Write views that are used much with \"language\": \"formula\"; views that nobody reads any more are best removed.")
    // The benchmark's views took 2.2 times as long in JavaScript, evaluation and everything else together.
    .wins(Gain::Processor, part * 0.3, part * 0.6);
    Ok(Verdict::Change(Box::new(advice)))
}

fn scripts_failing(seen: &Observation) -> Judgement {
    let failures = seen.grew("View.Scripts.Failures")?;
    if failures < 10.0 {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        0.06,
        "A document on which a function fails is not in its view, so readers miss it; one that runs too long costs its time too.",
    )
    .saw("View.Scripts.Failures", failures, Unit::Count)
    .console("show log 1d -l warn")
    .by_hand("Look for \"a view's function failed\", which names a document and the error; GET /DATABASE/_design/NAME/_info shows it for each view.");
    Ok(Verdict::Change(Box::new(advice)))
}

fn inbox_size(seen: &Observation) -> Judgement {
    let largest = seen.databases.iter().max_by(|left, right| left.documents.total_cmp(&right.documents));
    let Some(largest) = largest.filter(|largest| largest.documents >= 50_000.0) else {
        return Ok(Verdict::Fine);
    };
    Ok(Verdict::Note(format!(
        "{} has {} documents, which is no problem here: a page, a position and an update cost about what they cost in a \
         small one.",
        largest.name,
        words::count(largest.documents)
    )))
}
