//! `scrinium inspect`: raw records, for support.

use scrinium_contents::hex;
use scrinium_maintenance::{Inspection, RawRecord};
use scrinium_store::RawStore;
use serde_json::json;

use crate::cli::{Failure, InspectArguments, Terminal};

/// At most this many bytes of a value are shown that nobody understands.
const SHOWN_BYTES: usize = 256;

pub(crate) fn run(arguments: &InspectArguments, terminal: &Terminal) -> Result<(), Failure> {
    let dir = [arguments.dir.join("store"), arguments.dir.clone()]
        .into_iter()
        .find(|dir| dir.join("tree").exists());
    let Some(dir) = dir else {
        let dir = arguments.dir.display();
        return Err(Failure::Use(format!("there is no store in {dir}; name the server's data folder")));
    };
    let raw = RawStore::open(&dir).map_err(Failure::work)?;
    let records = match (&arguments.database, &arguments.id) {
        (None, _) => Inspection::databases(&raw),
        (Some(database), None) => Inspection::database(&raw, database),
        (Some(database), Some(id)) => Inspection::document(&raw, database, id),
    };
    let mut text: String = records.iter().map(|record| told(record, arguments.hex)).collect();
    if records.is_empty() {
        text.push_str("The files hold nothing about it. The latest changes may be in the log only.\n");
    }
    let data: Vec<_> = records.iter().map(|record| record.to_json(arguments.hex)).collect();
    terminal.data(&text, &json!({"records": data}))
}

fn told(record: &RawRecord, whole: bool) -> String {
    let RawRecord { what, family, key, value, decoded, files } = record;
    let mut text = format!("{what}  {} {}\n", family.name(), hex(key));
    let files = if files.is_empty() { "no file".to_owned() } else { files.join(" ") };
    match value {
        Err(error) => text.push_str(&format!("  cannot be read: {error}\n  in {files}\n")),
        Ok(None) => text.push_str(&format!("  is not there\n  in {files}\n")),
        Ok(Some(value)) => {
            let checksum = record.checksum().unwrap_or_default();
            text.push_str(&format!("  {} bytes, blake3 {checksum}\n  in {files}\n", value.len()));
            match decoded {
                Some(decoded) => {
                    let pretty = serde_json::to_string_pretty(decoded).unwrap_or_default();
                    pretty.lines().for_each(|line| text.push_str(&format!("  {line}\n")));
                }
                None => text.push_str("  cannot be understood\n"),
            }
            if whole || decoded.is_none() {
                let shown = if whole { value.as_slice() } else { value.get(..SHOWN_BYTES).unwrap_or(value) };
                for line in shown.chunks(32) {
                    text.push_str(&format!("  {}\n", hex(line)));
                }
            }
        }
    }
    text
}
