//! `show memory`.

use scrinium_statistics::Snapshot;
use serde_json::{Value, json};

use super::Reply;
use super::table::{Align, megabytes, number, table};

const POOL: &str = "Database.BufferPool.";
const VOLUME: &str = "Volume.";

/// The volumes that have statistics.
fn volumes(statistics: &Snapshot) -> Vec<&str> {
    let end = format!(".{POOL}Used");
    let names = statistics.gauges.keys();
    names.filter_map(|name| name.strip_prefix(VOLUME)?.strip_suffix(&end)).collect()
}

/// The last parts of names of statistics, and what they are to a person.
const PURPOSES: [(&str, &str); 8] = [
    ("Blocks", "blocks of documents and indexes"),
    ("FileIndexes", "indexes and filters of files"),
    ("Memtables", "changes not yet in files"),
    ("OpenFiles", "files that are open"),
    ("ViewTrees", "trees of views' indexes"),
    ("ViewBuilds", "views being built"),
    ("Scans", "read ahead by long scans"),
    ("Requests", "bodies of requests"),
];

/// What the budget is used for, from the statistics.
pub(super) fn show_memory(statistics: &Snapshot) -> Reply {
    let gauge = |name: &str| statistics.gauges.get(name).copied().unwrap_or_default();
    let volumes = volumes(statistics);
    // Each volume has a part of the budget for itself.
    let pool = |name: &str| {
        let of_volumes = volumes.iter().map(|volume| gauge(&format!("{VOLUME}{volume}.{POOL}{name}")));
        gauge(&format!("{POOL}{name}")) + of_volumes.sum::<f64>()
    };
    let budget = pool("Maximum.Megabytes") * 1_048_576.0;
    let share = |bytes: f64| if budget > 0.0 { 100.0 * bytes / budget } else { 0.0 };
    let used: Vec<(&str, &str, f64)> =
        PURPOSES.iter().map(|(name, what)| (*name, *what, pool(&format!("ByPurpose.{name}")))).collect();
    let line = |name: &str, what: &str, bytes: f64| {
        vec![name.to_owned(), megabytes(bytes), format!("{:.1}", share(bytes)), what.to_owned()]
    };
    let mut rows: Vec<Vec<String>> =
        used.iter().map(|(name, what, bytes)| line(name, what, *bytes)).collect();
    rows.push(line("Used", "all of these", pool("Used")));
    rows.push(line("Peak", "the most that was used", pool("Peak")));
    rows.push(line("Budget", "memory.budget", budget));
    rows.push(line("Process", "the whole process, resident", gauge("Mem.Allocated.Process")));
    let columns =
        [("Purpose", Align::Left), ("MB", Align::Right), ("% of budget", Align::Right), ("", Align::Left)];
    for volume in &volumes {
        let used = gauge(&format!("{VOLUME}{volume}.{POOL}Used"));
        rows.insert(PURPOSES.len(), line(volume, "of which on this volume", used));
    }
    let hits = gauge(&format!("{POOL}PerCentReadsInBuffer"));
    let text = format!(
        "{}\nFound in memory: {} % of blocks, of {} read from files\n",
        table(&columns, &rows),
        number((hits * 100.0).round() / 100.0),
        number(pool("Reads")),
    );
    let by_purpose: serde_json::Map<String, Value> =
        used.into_iter().map(|(name, _, bytes)| (name.to_owned(), json!(bytes))).collect();
    let data = json!({
        "budget_bytes": budget,
        "used_bytes": pool("Used"),
        "peak_bytes": pool("Peak"),
        "process_bytes": gauge("Mem.Allocated.Process"),
        "by_purpose_bytes": by_purpose,
        "percent_in_memory": hits,
        "blocks_from_files": pool("Reads"),
    });
    Reply { text, data }
}
