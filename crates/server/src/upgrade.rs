//! `scrinium upgrade`: what this release makes of a data folder that another one has written.

use std::path::Path;

use scrinium_clock::Clock;
use scrinium_statistics::Registry;
use scrinium_store::{FoundFormat, StoreFormats, look_at_formats};
use serde_json::{Value, json};

use crate::cli::{Failure, Terminal, UpgradeArguments};
use crate::config::Configuration;
use crate::storage::{Storage, store_options};
use crate::volumes::all_options;

/// The release that served on the data folder last, in the data folder.
const RELEASE: &str = "server.release";

/// What the first start does to a data folder whose last release left no note of itself, besides formats.
const SINCE_NOTES: [&str; 3] = [
    "mail files and mailboxes that everybody could open are closed to all but their owners",
    "the hashes of passwords leave the directory's documents",
    "folders and files that others on the machine could read are closed",
];

/// A part of the data folder that has a format.
struct Part {
    name: String,
    formats: FoundFormat,
}

impl Part {
    fn is_older(&self) -> bool {
        self.formats.found < self.formats.written
    }

    fn is_newer(&self) -> bool {
        self.formats.found > self.formats.written
    }

    fn line(&self) -> String {
        let FoundFormat { found, written } = self.formats;
        let what = if self.is_newer() {
            format!("format {found}, written by a newer release; this one reads up to {written}")
        } else if self.is_older() {
            format!("format {found} becomes format {written}")
        } else {
            format!("format {found}, stays")
        };
        format!("{:<28} {what}\n", self.name)
    }
}

/// Notes which release serves on a data folder.
pub(crate) fn note_release(data_dir: &Path) {
    let present = format!("{}\n", env!("CARGO_PKG_VERSION"));
    if last_release(data_dir).as_deref() == Some(present.trim()) {
        return;
    }
    // It is for people alone: without it the server is as good.
    if let Err(error) = crate::files::write_private(&data_dir.join(RELEASE), present.as_bytes()) {
        tracing::warn!(%error, "which release serves was not noted in the data folder");
    }
}

fn last_release(data_dir: &Path) -> Option<String> {
    Some(std::fs::read_to_string(data_dir.join(RELEASE)).ok()?.trim().to_owned())
}

/// Says what an upgrade would do, or does it. Exit code 0: nothing changes, or it was done; 4: something will change;
/// 1: this release cannot open it.
pub(crate) fn run(
    configuration: &Configuration,
    arguments: &UpgradeArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let settings = configuration.settings();
    let data_dir = &settings.server.data_dir;
    let parts = parts(configuration)?;
    let release = last_release(data_dir);
    let newer = parts.iter().any(Part::is_newer);
    let also: &[&str] = if release.is_none() { &SINCE_NOTES } else { &[] };
    let changes = parts.iter().any(Part::is_older) || !also.is_empty();
    let free_bytes = free_bytes(data_dir);
    let mut text = format!(
        "{}, last served by {}; this is release {}\n",
        data_dir.display(),
        release
            .as_deref()
            .map_or_else(|| "an unknown release".to_owned(), |release| format!("release {release}")),
        env!("CARGO_PKG_VERSION"),
    );
    parts.iter().for_each(|part| text.push_str(&part.line()));
    also.iter().for_each(|change| text.push_str(&format!("{:<28} {change}\n", "the first start")));
    text.push_str(if newer {
        "This release cannot open it: go back to the newer one, or restore a backup that an older one has made.\n"
    } else if changes {
        "An older release cannot open it afterwards, so make a backup before. It takes moments and no more space than there is.\n"
    } else {
        "Nothing changes, and no space is needed.\n"
    });
    let formats = parts.iter().map(|part| {
        let FoundFormat { found, written } = part.formats;
        json!({"part": part.name, "found": found, "becomes": found.max(written), "readable": !part.is_newer()})
    });
    let data = json!({
        "ok": !newer,
        "changes": changes && !newer,
        "release": env!("CARGO_PKG_VERSION"),
        "last_release": release,
        "also": also,
        "formats": formats.collect::<Value>(),
        "needed_bytes": 0,
        "free_bytes": free_bytes,
    });
    if newer {
        terminal.data(&text, &data)?;
        return Err(Failure::Work(format!(
            "{} was written by a newer release; use that one (a downgrade is not possible)",
            data_dir.display()
        )));
    }
    if arguments.check {
        terminal.data(&text, &data)?;
        return if changes { Err(Failure::ToBeUpgraded) } else { Ok(()) };
    }
    // Opening brings everything to the present formats.
    let storage = Storage::open(&settings, &Registry::new(), &Clock::system())?;
    storage.close();
    note_release(data_dir);
    terminal.data(&text.replace(" becomes format ", " became format "), &data)
}

fn parts(configuration: &Configuration) -> Result<Vec<Part>, Failure> {
    let settings = configuration.settings();
    let first = store_options(&settings).dir;
    let mut parts = Vec::new();
    for (name, options) in all_options(&settings) {
        let log_dir = options.log_dir.clone().unwrap_or_else(|| options.dir.join("log"));
        match look_at_formats(&options.dir, &log_dir).map_err(Failure::work)? {
            Some(StoreFormats { folder, log }) => {
                parts.push(Part { name: format!("databases of {name}"), formats: folder });
                parts.extend(log.map(|formats| Part { name: format!("log of {name}"), formats }));
            }
            None if options.dir == first => {
                return Err(Failure::Work(format!(
                    "{} holds no data yet, so there is nothing to upgrade; name another folder with --data-dir",
                    settings.server.data_dir.display()
                )));
            }
            // A volume that was not used yet.
            None => {}
        }
    }
    Ok(parts)
}

fn free_bytes(dir: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(dir).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}
