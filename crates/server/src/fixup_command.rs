//! `scrinium fixup`: checking and repairing databases while no server uses them.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use scrinium_clock::Clock;
use scrinium_contents::hex;
use scrinium_maintenance::{Finding, FindingOutcome, FixupOptions};
use scrinium_statistics::{Registry, Tasks};
use scrinium_store::{Store, StoreError};
use serde_json::{Value, json};

use crate::cli::{Failure, FixupArguments, Terminal};
use crate::config::Configuration;
use crate::storage::{Storage, StorageError};
use crate::volumes::options_of;

/// How often it says how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(5);

pub(crate) fn run(
    configuration: &Configuration,
    arguments: &FixupArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let settings = configuration.settings();
    if !settings.server.data_dir.join("store").exists() {
        let dir = settings.server.data_dir.display();
        return Err(Failure::Use(format!(
            "there is no store in {dir}; name the data folder with --data-dir"
        )));
    }
    let rewritten = if arguments.engine {
        Some(rewrite(&options_of(&settings, arguments.volume.as_deref())?, terminal)?)
    } else {
        None
    };
    let storage =
        Storage::open(&settings, &Registry::new(), &Clock::system()).map_err(|error| match error {
            StorageError::InUse(reason) => in_use(&reason),
            unusable @ StorageError::Unusable(_) => unusable.into(),
        })?;
    let done = if arguments.list_set_aside || arguments.export.is_some() || arguments.discard.is_some() {
        set_aside(&storage, arguments, terminal)
    } else {
        fixup(&storage, arguments, rewritten, terminal)
    };
    storage.close();
    done
}

fn in_use(reason: &str) -> Failure {
    Failure::Work(format!("{reason}, or have it do this itself: scrinium console \"load fixup\""))
}

/// Writes the store's files again.
fn rewrite(options: &scrinium_store::StoreOptions, terminal: &Terminal) -> Result<Value, Failure> {
    let mut told = Instant::now();
    let rewritten = Store::rewrite(options, |bytes| {
        if told.elapsed() >= TOLD_EVERY {
            told = Instant::now();
            terminal.say(&format!("{} MB rewritten", bytes >> 20));
        }
    });
    let rewritten = rewritten.map_err(|error| match error {
        StoreError::Locked { .. } => in_use(&error.to_string()),
        other => Failure::work(other),
    })?;
    let kept = rewritten.kept.display();
    terminal.say(&format!(
        "The store's files were rewritten: {} records of {} bytes; {} ranges of keys could not be read.\nThose \
         before are kept in {kept}; remove that folder when you are sure that you no longer need it.",
        rewritten.entries,
        rewritten.bytes,
        rewritten.gaps.len()
    ));
    let gaps = rewritten.gaps.iter().map(|gap| {
        json!({
            "family": gap.family.name(),
            "from": hex(&gap.from),
            "to": gap.to.as_deref().map(hex),
            "error": gap.error,
        })
    });
    let gaps: Vec<Value> = gaps.collect();
    Ok(json!({
        "records": rewritten.entries,
        "bytes": rewritten.bytes,
        "kept": kept.to_string(),
        "unreadable": gaps,
    }))
}

fn fixup(
    storage: &Storage,
    arguments: &FixupArguments,
    rewritten: Option<Value>,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let options =
        FixupOptions { views: arguments.views, contents: !arguments.quick, repair: !arguments.dry_run };
    let tasks = Tasks::new();
    storage.databases.set_tasks(&tasks);
    let names: Vec<Option<&str>> = match arguments.databases.as_slice() {
        [] => vec![None],
        names => names.iter().map(|name| Some(name.as_str())).collect(),
    };
    let mut reports = Vec::new();
    let (mut text, mut left, mut set_aside) = (String::new(), 0, 0);
    for name in names {
        let mut told = Instant::now();
        let report = std::thread::scope(|scope| {
            let work = scope
                .spawn(|| scrinium_maintenance::fixup(&storage.databases, name, options, |_: &Finding| {}));
            while !work.is_finished() {
                std::thread::sleep(Duration::from_millis(20));
                if told.elapsed() >= TOLD_EVERY {
                    told = Instant::now();
                    say_progress(&tasks, terminal);
                }
            }
            work.join()
        });
        let report =
            report.map_err(|_| Failure::Work("the fixup ended by a fault of the program".to_owned()))?;
        let report = report.map_err(|error| match name {
            Some(name) => Failure::Work(format!("{name}: {error}")),
            None => Failure::work(error),
        })?;
        left += report.count(FindingOutcome::Left);
        set_aside += report.count(FindingOutcome::SetAside);
        text.push_str(&report.to_text());
        let mut data = report.to_json();
        if let (Some(data), Some(name)) = (data.as_object_mut(), name) {
            data.insert("database".to_owned(), json!(name));
        }
        reports.push(data);
    }
    // A command that names a refused one gets an error.
    let passed_over = match arguments.databases.as_slice() {
        [] => storage.databases.refused().map_err(Failure::work)?,
        _ => Vec::new(),
    };
    for name in &passed_over {
        text.push_str(&format!("NOT LOOKED AT  {name}: it is not served; scrinium serve says why\n"));
    }
    let mut data = json!({"reports": reports, "not_looked_at": passed_over});
    if let (Some(data), Some(rewritten)) = (data.as_object_mut(), rewritten) {
        data.insert("engine".to_owned(), rewritten);
    }
    terminal.data(&text, &data)?;
    if left + set_aside == 0 && passed_over.is_empty() {
        return Ok(());
    }
    if left + set_aside == 0 {
        return Err(Failure::Damage(format!(
            "{} databases were not looked at; see docs/operate/fixup.md and docs/operate/volumes.md for how to recover",
            passed_over.len()
        )));
    }
    Err(Failure::Damage(format!(
        "{set_aside} findings were set aside and {left} left as they are; docs/operate/fixup.md says what to do about each"
    )))
}

fn say_progress(tasks: &Tasks, terminal: &Terminal) {
    for task in tasks.running() {
        let of = task.total.map_or_else(String::new, |total| format!(" of about {total}"));
        let left = task.remaining.map_or_else(String::new, |left| format!(", {} s left", left.as_secs()));
        terminal.say(&format!("{} records{of}{left}", task.done));
    }
}

/// Lists, exports or discards what was set aside.
fn set_aside(storage: &Storage, arguments: &FixupArguments, terminal: &Terminal) -> Result<(), Failure> {
    let names: Vec<Option<&str>> = match arguments.databases.as_slice() {
        [] => vec![None],
        names => names.iter().map(|name| Some(name.as_str())).collect(),
    };
    if let Some(number) = &arguments.discard {
        let number = Some(number.as_str()).filter(|number| *number != "all");
        let mut discarded = 0;
        for name in names {
            discarded += scrinium_maintenance::discard_set_aside(&storage.databases, name, number)
                .map_err(Failure::work)?;
        }
        return terminal.data(&format!("Discarded {discarded} records.\n"), &json!({"discarded": discarded}));
    }
    if let Some(path) = &arguments.export {
        let exported = export(storage, &names, path)?;
        let text = format!("Wrote {exported} records to {}.\n", path.display());
        return terminal.data(&text, &json!({"exported": exported}));
    }
    let (mut text, mut all) = (String::new(), Vec::new());
    for name in names {
        let listed = scrinium_maintenance::each_set_aside(&storage.databases, name, |found| {
            text.push_str(&format!("{}\n", found.to_line()));
            let mut data = found.to_json();
            // Values may be long; an export has them.
            if let Some(data) = data.as_object_mut() {
                data.remove("value");
            }
            all.push(data);
            true
        });
        listed.map_err(Failure::work)?;
    }
    if all.is_empty() {
        text.push_str("Nothing is set aside.\n");
    }
    terminal.data(&text, &json!({"set_aside": all}))
}

fn export(storage: &Storage, names: &[Option<&str>], path: &Path) -> Result<u64, Failure> {
    let failed = |error: &std::io::Error| Failure::Work(format!("cannot write {}: {error}", path.display()));
    let file = std::fs::File::create_new(path).map_err(|error| failed(&error))?;
    let mut file = BufWriter::new(file);
    let (mut exported, mut written) = (0, Ok(()));
    for name in names {
        let listed = scrinium_maintenance::each_set_aside(&storage.databases, *name, |found| {
            written = writeln!(file, "{}", found.to_json());
            exported += u64::from(written.is_ok());
            written.is_ok()
        });
        listed.map_err(Failure::work)?;
        written.as_ref().map_err(failed)?;
    }
    let synced = file.flush().and_then(|()| file.get_ref().sync_all());
    synced.map_err(|error| failed(&error))?;
    Ok(exported)
}
