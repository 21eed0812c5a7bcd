//! Writes what the binary is made of into a folder, `sbom.cdx.json` and `THIRD-PARTY.txt`; `scripts/package` calls it.
//!
//! `cargo metadata --format-version 1 --locked | parts DIR ROCKSDB_VERSION`, in the repository's root.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use scrinium_tidy::parts::{bill_of_materials, licences, parts, without_licence};

const ROOT: &str = "scrinium-server";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [dir, rocksdb_version] => write(Path::new(dir), rocksdb_version),
        _ => Err("usage: cargo metadata ... | parts DIR ROCKSDB_VERSION".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("parts: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn write(dir: &Path, rocksdb_version: &str) -> Result<(), String> {
    let mut metadata = String::new();
    std::io::stdin().read_to_string(&mut metadata).map_err(|error| error.to_string())?;
    let metadata = serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let lock = std::fs::read_to_string("Cargo.lock").map_err(|error| format!("Cargo.lock: {error}"))?;
    let found = parts(&metadata, &lock, ROOT)?;
    let silent = without_licence(&found);
    if !silent.is_empty() {
        return Err(format!("these crates name no licence: {}", silent.join(", ")));
    }
    let put = |name: &str, text: String| {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    let rocksdb = [("rocksdb", rocksdb_version, "Apache-2.0")];
    put("sbom.cdx.json", format!("{:#}\n", bill_of_materials(&found, ROOT, &rocksdb)))?;
    put("THIRD-PARTY.txt", licences(&found)?)
}
