//! Attachments, with the documents or in a store of objects.

use crate::advice::{Advice, Gain, Unit};
use crate::observation::{Observation, enough};
use crate::rule::{Judgement, Rule, Subject, Support, Verdict};
use crate::words::{self, GB};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "attachments-apart",
        subject: Subject::Attachments,
        title: "Put large attachments into a store of objects",
        speaks_if: "attachments and large values are half of the files or more, take 20 GB or more, and less than a third of the disk is free",
        looks_at: &[
            "Database.Compact.Contents.Bytes",
            "Database.Files.Bytes",
            "Disk.Data.Free",
            "Disk.Data.Size",
        ],
        keys: &["attachment.store", "attachment.threshold"],
        support: &[Support::Page("docs/operate/attachments.md")],
        until: "attachment.store is set, or a third of the disk is free",
        check: attachments_apart,
    },
    Rule {
        name: "attachment-cache",
        subject: Subject::Attachments,
        title: "Keep more of the store of objects on this machine",
        speaks_if: "with a store of objects, half of what is read of it or more is not in the cache, and a larger one fits",
        looks_at: &[
            "Attachment.Store.CacheHits",
            "Attachment.Store.CacheMisses",
            "Attachment.Store.CacheBytes",
            "Disk.Data.Free",
            "GET_OBJECT",
        ],
        keys: &["attachment.cache", "attachment.store"],
        support: &[Support::Page("docs/operate/attachments.md")],
        until: "half of what is read is in the cache",
        check: attachment_cache,
    },
    Rule {
        name: "attachment-failures",
        subject: Subject::Attachments,
        title: "Check the object store",
        speaks_if: "the store of objects did not answer, or what it gave was damaged",
        looks_at: &["Attachment.Store.Failures"],
        keys: &["attachment.store"],
        support: &[Support::Page("docs/operate/attachments.md")],
        until: "Attachment.Store.Failures does not grow",
        check: attachment_failures,
    },
];

fn attachments_apart(seen: &Observation) -> Judgement {
    let (contents, files) = (seen.now("Database.Compact.Contents.Bytes")?, seen.now("Database.Files.Bytes")?);
    let (free, size) = (seen.now("Disk.Data.Free")?, seen.now("Disk.Data.Size")?);
    let is_short = size > 0.0 && free < size / 3.0;
    if seen.text("attachment.store")? != "volume"
        || contents < 20.0 * GB
        || contents < files * 0.5
        || !is_short
    {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        0.05,
        "Most of what is on the databases' device is attachments, which are read seldom and would do as well on a cheaper one.",
    )
    .saw("Database.Compact.Contents.Bytes", contents, Unit::Bytes)
    .saw("Database.Files.Bytes", files, Unit::Bytes)
    .saw("Disk.Data.Free", free, Unit::Bytes)
    .set_in_file("attachment.store", "s3://BUCKET/PREFIX")
    .console("load attachments")
    .wins(Gain::Disk, contents / files.max(contents) * 0.3, contents / files.max(contents) * 0.95);
    Ok(Verdict::Change(Box::new(advice)))
}

fn attachment_cache(seen: &Observation) -> Judgement {
    if seen.text("attachment.store")? == "volume" {
        return Ok(Verdict::Fine);
    }
    let (hits, misses) =
        (seen.grew("Attachment.Store.CacheHits")?, seen.grew("Attachment.Store.CacheMisses")?);
    enough(hits + misses, 200.0, "reads of attachments were seen")?;
    let (cache, used) = (seen.number("attachment.cache")?, seen.now("Attachment.Store.CacheBytes")?);
    let wanted = (cache * 4.0).max(GB);
    // A cache that is not full would not hold more if it were larger.
    if misses < hits || used < cache * 0.8 || seen.now("Disk.Data.Free")? < wanted * 2.0 {
        return Ok(Verdict::Fine);
    }
    let fetched = seen.operation("GET_OBJECT");
    let part = seen.part_of_requests(fetched.total_ms);
    let advice = Advice::new(
        (part * 0.5).max(0.02),
        "Attachments that are read again come from the store each time, since the cache has given them up for others.",
    )
    .saw("Attachment.Store.CacheHits", hits, Unit::Count)
    .saw("Attachment.Store.CacheMisses", misses, Unit::Count)
    .saw_of("GET_OBJECT", "average", fetched.average_ms(), Unit::Milliseconds)
    .saw("attachment.cache", cache, Unit::Bytes)
    .set("attachment.cache", words::size(wanted))
    .wins(Gain::Response, 0.0, part);
    Ok(Verdict::Change(Box::new(advice)))
}

fn attachment_failures(seen: &Observation) -> Judgement {
    let failures = seen.grew("Attachment.Store.Failures")?;
    if failures < 1.0 {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        0.5,
        "Large attachments could not be read or saved (503), or were not what was saved.",
    )
    .saw("Attachment.Store.Failures", failures, Unit::Count)
    .saw_text("attachment.store", seen.text("attachment.store")?)
    .console("show log 1d -l warn")
    .by_hand(
        "Look at the network, the endpoint and the keys; docs/operate/attachments.md explains each message.",
    );
    Ok(Verdict::Change(Box::new(advice)))
}
