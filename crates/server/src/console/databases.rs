//! `show databases`.

use scrinium_catalog::{DatabaseActivity, DatabaseSpace, Databases};
use scrinium_database::DatabaseError;
use serde_json::{Value, json};

use super::pattern::matches_name;
use super::table::{columns, grouped, megabytes_of, table};
use super::{ConsoleError, Reply};

/// More than these are counted only.
const SHOWN: usize = 50;

pub(super) fn not_open() -> ConsoleError {
    ConsoleError::NotFound("the databases are not open: the server is starting or stopping".to_owned())
}

/// Databases whose names match, those that are used most first.
pub(super) fn show_databases(databases: &Databases, filter: Option<&str>) -> Result<Reply, ConsoleError> {
    let failed = |error: DatabaseError| ConsoleError::NotFound(error.to_string());
    let mut all = databases.activity().map_err(failed)?;
    all.retain(|database| filter.is_none_or(|filter| matches_name(filter, &database.name)));
    if let (true, Some(filter)) = (all.is_empty(), filter) {
        return Err(ConsoleError::NotFound(format!(
            "no database is called {filter}; mail/* would be all whose names begin so"
        )));
    }
    all.sort_by_key(|database| std::cmp::Reverse(database.usage.reads.saturating_add(database.usage.writes)));
    let found = all.len();
    all.truncate(SHOWN);
    let mut shown = Vec::new();
    for database in all {
        match databases.space_of(&database) {
            Ok(space) => shown.push((database, space)),
            // It has gone meanwhile.
            Err(DatabaseError::NotFound { .. }) => {}
            // Its volume is not there.
            Err(DatabaseError::Unavailable { .. }) => shown.push((database, DatabaseSpace::default())),
            Err(error) => return Err(failed(error)),
        }
    }
    let data: Vec<Value> = shown.iter().map(|(database, space)| one(database, space)).collect();
    Ok(Reply { text: text(&shown, found), data: json!({"databases": data, "found": found}) })
}

fn text(shown: &[(DatabaseActivity, DatabaseSpace)], found: usize) -> String {
    let titles = [
        "Database",
        "Volume",
        "Documents",
        "Disk MB",
        "Indexes MB",
        "Trees MB",
        "Reads",
        "From files",
        "Writes",
        "Written MB",
    ];
    let columns = columns(titles, &["Database", "Volume"]);
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|(database, space)| {
            let usage = database.usage;
            vec![
                database.name.clone(),
                database.volume.clone(),
                grouped(space.document_count),
                megabytes_of(space.file_bytes),
                megabytes_of(space.derived_bytes),
                megabytes_of(space.view_tree_bytes),
                grouped(usage.reads),
                grouped(usage.blocks_from_files),
                grouped(usage.writes),
                megabytes_of(usage.written_bytes),
            ]
        })
        .collect();
    let mut text = table(&columns, &rows);
    if found > shown.len() {
        let more = grouped((found - shown.len()) as u64);
        text.push_str(&format!(
            "{more} more that are used less; name one, or a pattern: show databases mail/*\n"
        ));
    }
    text
}

fn one(database: &DatabaseActivity, space: &DatabaseSpace) -> Value {
    json!({
        "name": database.name,
        "volume": database.volume,
        "documents": space.document_count,
        "file_bytes": space.file_bytes,
        "index_bytes": space.derived_bytes,
        "view_tree_bytes": space.view_tree_bytes,
        "reads": database.usage.reads,
        "blocks_from_files": database.usage.blocks_from_files,
        "writes": database.usage.writes,
        "written_bytes": database.usage.written_bytes,
    })
}
