//! Makes the table of the files that are built in, of the folder that `SCRINIUM_WEB` names; without it the table is empty.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[path = "src/listing.rs"]
mod listing;

fn main() -> ExitCode {
    println!("cargo::rerun-if-env-changed=SCRINIUM_WEB");
    match table() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("the web pages cannot be built in: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn table() -> Result<(), String> {
    let output = std::env::var_os("OUT_DIR").ok_or("Cargo names no OUT_DIR")?;
    let wanted = std::env::var_os("CARGO_FEATURE_BUILT_IN").and_then(|_| std::env::var_os("SCRINIUM_WEB"));
    let mut table = String::from("&[\n");
    if let Some(folder) = wanted.filter(|folder| !folder.is_empty()) {
        let folder =
            std::fs::canonicalize(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        println!("cargo::rerun-if-changed={}", folder.display());
        let path = folder.join(listing::FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        for line in listing::parse(&text)? {
            table.push_str(&entry(&folder, &line));
        }
    }
    table.push(']');
    std::fs::write(Path::new(&output).join("table.rs"), table).map_err(|error| error.to_string())
}

fn entry(folder: &Path, line: &listing::Line<'_>) -> String {
    let file = |suffix: &str| -> PathBuf { folder.join(format!("{}{suffix}", line.path)) };
    let compressed = |suffix: &str| {
        let path = file(suffix);
        if path.exists() { format!("Some(include_bytes!({path:?}))") } else { "None".to_owned() }
    };
    format!(
        "Page {{ path: {:?}, media_type: {:?}, etag: {:?}, immutable: {}, plain: include_bytes!({:?}), \
         brotli: {}, gzip: {} }},\n",
        line.path,
        line.media_type,
        line.etag,
        line.immutable,
        file(""),
        compressed(".br"),
        compressed(".gz"),
    )
}
