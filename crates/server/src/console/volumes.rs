//! `show volumes`, and `load move`.

use scrinium_catalog::Databases;
use scrinium_statistics::Snapshot;
use serde_json::{Value, json};

use super::table::{columns, megabytes, megabytes_of, table};
use super::{ConsoleError, Reply, ServerParts};

/// The first store, then the volumes by name.
pub(super) fn show_volumes(databases: &Databases, statistics: &Snapshot) -> Result<Reply, ConsoleError> {
    let failed = |error: scrinium_database::DatabaseError| ConsoleError::NotFound(error.to_string());
    let stores = databases.stores();
    let (mut rows, mut data, mut away) = (Vec::new(), Vec::new(), String::new());
    for volume in databases.volumes().map_err(failed)? {
        let store = stores.iter().find(|(name, _)| *name == volume.name).map(|(_, store)| store);
        let Some(store) = store else {
            let reason = volume.missing.unwrap_or_default();
            away.push_str(&format!(
                "NOT THERE  {}, with {} databases: {reason}\n",
                volume.name, volume.databases
            ));
            data.push(json!({"name": volume.name, "databases": volume.databases, "missing": reason}));
            continue;
        };
        let prefix = if rows.is_empty() { String::new() } else { format!("Volume.{}.", volume.name) };
        let gauge =
            |name: &str| statistics.gauges.get(&format!("{prefix}{name}")).copied().unwrap_or_default();
        let used = gauge("Database.BufferPool.Used");
        let free = store.admin().room().map(|room| room.free_bytes).unwrap_or_default();
        let dir = store.dir().display().to_string();
        rows.push(vec![
            volume.name.clone(),
            volume.databases.to_string(),
            megabytes_of(store.admin().budget()),
            megabytes(used),
            megabytes_of(free),
            megabytes(gauge("Log.Redo.Bytes")),
            dir.clone(),
        ]);
        data.push(json!({
            "name": volume.name,
            "dir": dir,
            "databases": volume.databases,
            "budget_bytes": store.admin().budget(),
            "used_bytes": used,
            "free_bytes": free,
            "log_redo_bytes": gauge("Log.Redo.Bytes"),
            "missing": Value::Null,
        }));
    }
    let titles = ["Volume", "Databases", "Budget MB", "Used MB", "Disk free MB", "Log to redo MB", "Folder"];
    let columns = columns(titles, &["Volume", "Folder"]);
    Ok(Reply { text: format!("{}{away}", table(&columns, &rows)), data: json!({"volumes": data}) })
}

/// `load move`.
pub(super) fn begin_move(
    parts: &dyn ServerParts,
    database: &str,
    volume: &str,
) -> Result<Reply, ConsoleError> {
    parts.move_database(database, volume).map_err(ConsoleError::NotFound)?;
    let text =
        format!("Moving {database} to {volume}; show tasks shows its progress, tell NUMBER quit ends it.\n");
    Ok(Reply { text, data: json!({"database": database, "volume": volume}) })
}
