//! What was done, for people and for programs.

use scrinium_backup::{Created, Manifest, Restored};
use serde_json::{Value, json};

pub(crate) fn created_json(created: &Created) -> Value {
    let mut value = manifest_json(&created.manifest);
    if let Some(value) = value.as_object_mut() {
        value.insert("ok".to_owned(), json!(true));
        value.insert("new_files".to_owned(), json!(created.new_files));
    }
    value
}

pub(crate) fn manifest_json(manifest: &Manifest) -> Value {
    json!({
        "backup": manifest.id,
        "server": manifest.server,
        "version": manifest.version,
        "taken": manifest.taken,
        "finished": manifest.finished,
        "sequence": manifest.sequence,
        "bytes": manifest.bytes,
        "new_bytes": manifest.new_bytes,
        "files": manifest.files.len(),
        "store": manifest.store,
        "volumes": manifest.volumes.iter().map(|volume| volume.name.as_str()).collect::<Vec<_>>(),
        "missing_volumes": manifest.missing_volumes,
        "log": manifest.log_key,
        "archive_dir": manifest.archive_dir,
        "encrypted": manifest.is_sealed(),
        "objects": manifest.objects.as_ref().map_or(0, |objects| objects.objects),
        "object_bytes": manifest.objects.as_ref().map_or(0, |objects| objects.bytes),
    })
}

pub(crate) fn restored_json(restored: &Restored) -> Value {
    json!({
        "ok": true,
        "backup": restored.manifest.id,
        "sequence": restored.reached.sequence,
        "time_ms": restored.reached.time_ms,
        "records_applied": restored.reached.records,
        "warning": restored.warning,
    })
}

/// A size for people.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}

/// A line or two of what a backup or a restore said in JSON.
pub(crate) fn result_text(result: &Value) -> String {
    let text = |name: &str| result.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |name: &str| result.get(name).and_then(Value::as_u64).unwrap_or_default();
    let backup = text("backup");
    if result.get("new_bytes").is_some() {
        let missing = result.get("missing_volumes").and_then(Value::as_array).into_iter().flatten();
        let missing: Vec<&str> = missing.filter_map(Value::as_str).collect();
        let note = if missing.is_empty() {
            String::new()
        } else {
            format!("WITHOUT the volumes that are not there: {}\n", missing.join(", "))
        };
        return note
            + &format!(
                "Backup {backup}: {} in {} files, of which {} in {} files are new; record {}, of {}\n",
                size(number("bytes")),
                number("files"),
                size(number("new_bytes")),
                number("new_files"),
                number("sequence"),
                text("taken"),
            );
    }
    let warning = text("warning");
    let warning = if warning.is_empty() { String::new() } else { format!("Note: {warning}\n") };
    format!(
        "Restored from backup {backup}, with {} records of the log, up to record {}\n{warning}",
        number("records_applied"),
        number("sequence")
    )
}
