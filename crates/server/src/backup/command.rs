//! `scrinium backup` and `scrinium restore`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indicatif::ProgressBar;
use scrinium_backup::{
    Manifest, Order, Progress, Repository, Target, Verified, prune, prune_archive, restore, verify,
    verify_archive, verify_objects,
};
use scrinium_clock::Clock;
use scrinium_objects::{Objects, open_bucket};
use scrinium_statistics::Registry;
use serde_json::{Value, json};

use super::online::{self, bar};
use super::protection::{identities, make_keys};
use super::show::{created_json, manifest_json, restored_json, result_text, size};
use super::targets::target;
use super::{BackupOrder, RestoreOrder, archive_dir, back_up, protection, restore_database, source};
use crate::cli::{BackupArguments, BackupCommand, Failure, RestoreArguments, Terminal, VerifyArguments};
use crate::config::{Configuration, Settings};
use crate::storage::{Storage, StorageError, store_options};

/// Shows progress in a bar.
struct Bar(ProgressBar);

impl Progress for Bar {
    fn total(&self, bytes: u64) {
        self.0.set_length(bytes);
    }

    fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    fn step(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }

    // ^C ends the process, which leaves no backup.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Carries out `scrinium backup`.
pub(crate) fn backup(
    configuration: &Configuration,
    arguments: &BackupArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    match (&arguments.command, &arguments.repository) {
        (Some(BackupCommand::Keygen { file }), _) => make_keys(file, terminal),
        (Some(BackupCommand::List { repository }), _) => list(repository, terminal),
        (Some(BackupCommand::Verify(arguments)), _) => check(configuration, arguments, terminal),
        (Some(BackupCommand::Prune { repository, keep, archive }), _) => {
            let keep = usize::try_from(*keep).unwrap_or(usize::MAX);
            let_go(configuration, repository, (keep, *archive), terminal)
        }
        (Some(BackupCommand::Freeze { limit }), _) => {
            let limit_ms = scrinium_clock::milliseconds(*limit);
            online::tell(&configuration.settings(), &format!("freeze {limit_ms}ms"), terminal)
        }
        (Some(BackupCommand::Thaw), _) => online::tell(&configuration.settings(), "thaw", terminal),
        (None, repository) => make(configuration, repository.as_deref(), arguments.rate, terminal),
    }
}

fn make(
    configuration: &Configuration,
    repository: Option<&Path>,
    bytes_per_second: Option<u64>,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let settings = configuration.settings();
    // Without a server the place is whatever the person says who gives the command.
    let repository = match repository {
        Some(repository) => absolute(repository)?,
        None => target(&settings, None).map_err(Failure::Use)?,
    };
    let order = BackupOrder { repository: Some(repository.clone()), bytes_per_second };
    let result = match Storage::open(&settings, &Registry::new(), &Clock::system()) {
        Ok(storage) => {
            let bar = Bar(bar(terminal));
            let source = source(&settings, &settings.server.name, configuration.file(), &storage.databases);
            let created = protection(&settings).and_then(|protection| {
                let order = (repository.as_path(), bytes_per_second);
                back_up(&storage.databases, &source, order, protection.as_ref(), &bar)
            });
            bar.0.finish_and_clear();
            drop(source);
            storage.close();
            created_json(&created.map_err(Failure::Work)?)
        }
        Err(StorageError::InUse(_)) => online::run(&settings, &order.line(), terminal)?,
        Err(unusable @ StorageError::Unusable(_)) => return Err(unusable.into()),
    };
    terminal.data(&result_text(&result), &result)
}

fn list(repository: &Path, terminal: &Terminal) -> Result<(), Failure> {
    let repository = Repository::open(repository).map_err(Failure::work)?;
    let mut text = String::new();
    let mut data = Vec::new();
    for (id, manifest) in repository.backups().map_err(Failure::work)? {
        match manifest {
            Ok(manifest) => {
                text.push_str(&format!(
                    "{id}  {:>10}  {:>10} new  record {:>10}  {}  {}\n",
                    size(manifest.bytes),
                    size(manifest.new_bytes),
                    manifest.sequence,
                    manifest.taken,
                    manifest.server
                ));
                data.push(manifest_json(&manifest));
            }
            Err(error) => {
                text.push_str(&format!("{id}  {error}\n"));
                data.push(json!({"backup": id, "problem": error.to_string()}));
            }
        }
    }
    if data.is_empty() {
        text.push_str("No backup yet.\n");
    }
    terminal.data(&text, &json!({"backups": data}))
}

fn check(
    configuration: &Configuration,
    arguments: &VerifyArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let repository = Repository::open(&arguments.repository).map_err(Failure::work)?;
    let repository = repository.with_identities(identities(arguments.identity.as_deref())?);
    let archive = if arguments.archive {
        let manifest = repository.backup(arguments.backup.as_deref()).map_err(Failure::work)?;
        let dir = archive_of(configuration, &manifest)?;
        Some((manifest, dir))
    } else {
        None
    };
    let bar = Bar(bar(terminal));
    let verified = verify(&repository, arguments.backup.as_deref(), arguments.rate, &bar);
    let mut verified = verified.map_err(Failure::work)?;
    let objects = objects(&configuration.settings());
    let found = verify_objects(&repository, arguments.backup.as_deref(), (&objects, arguments.deep), &bar);
    let found = found.map_err(Failure::work)?;
    verified.whole.extend(found.whole);
    verified.damaged.extend(found.damaged);
    verified.unread.extend(found.unread);
    if let Some((manifest, dir)) = archive {
        let archive = verify_archive(&manifest, &dir, &bar).map_err(Failure::work)?;
        verified.whole.extend(archive.whole);
        verified.damaged.extend(archive.damaged);
    }
    bar.0.finish_and_clear();
    tell_verified(&verified, terminal)?;
    let damaged = verified.damaged.len();
    if damaged == 0 { Ok(()) } else { Err(Failure::Work(format!("{damaged} of what was read is damaged"))) }
}

/// What looks for attachments in stores of objects, wherever the server keeps its own.
fn objects(settings: &Settings) -> Objects {
    Objects::new(&settings.in_data_dir(&settings.attachment.cache_dir).join("verify"), Arc::new(open_bucket))
}

/// Where the log of a backup is archived: as the configuration says, or else as the backup does.
fn archive_of(configuration: &Configuration, manifest: &Manifest) -> Result<PathBuf, Failure> {
    let named = || manifest.archive_dir.as_ref().map(PathBuf::from);
    let dir = archive_dir(&configuration.settings()).or_else(named).ok_or_else(|| {
        Failure::Work(
            "the log was not archived: neither the configuration (log.style) nor the backup names an archive; leave out \
             --archive"
                .to_owned(),
        )
    })?;
    if dir.is_dir() {
        return Ok(dir);
    }
    Err(Failure::Work(format!(
        "the archive of the log, {}, is not there; bring its device back, or say by --config where it is",
        dir.display()
    )))
}

fn tell_verified(verified: &Verified, terminal: &Terminal) -> Result<(), Failure> {
    let mut text = format!("{} files with {} were read.\n", verified.files, size(verified.bytes));
    for name in &verified.whole {
        text.push_str(&format!("whole    {name}\n"));
    }
    for (name, problem) in &verified.damaged {
        text.push_str(&format!("DAMAGED  {name}: {problem}\n"));
    }
    for (name, why) in &verified.unread {
        text.push_str(&format!("not read {name}: {why}\n"));
    }
    let unread: Vec<Value> =
        verified.unread.iter().map(|(name, why)| json!({"name": name, "reason": why})).collect();
    let damaged: Vec<Value> =
        verified.damaged.iter().map(|(name, problem)| json!({"name": name, "problem": problem})).collect();
    let (ok, files, bytes) = (damaged.is_empty(), verified.files, verified.bytes);
    terminal.data(
        &text,
        &json!({"ok": ok, "files": files, "bytes": bytes, "whole": verified.whole, "damaged": damaged, "unread": unread}),
    )
}

fn let_go(
    configuration: &Configuration,
    repository: &Path,
    (keep, with_archive): (usize, bool),
    terminal: &Terminal,
) -> Result<(), Failure> {
    let repository = Repository::open(repository).map_err(Failure::work)?;
    let archive = if with_archive {
        Some(archive_of(configuration, &repository.backup(None).map_err(Failure::work)?)?)
    } else {
        None
    };
    let pruned = prune(&repository, keep).map_err(Failure::work)?;
    let segments = archive.map_or(Ok(0), |dir| prune_archive(&repository, &dir)).map_err(Failure::work)?;
    let text = format!(
        "{} backups stay, {} went, with {} files of {}; {segments} segments of the log's archive went.\n",
        pruned.kept.len(),
        pruned.removed.len(),
        pruned.files,
        size(pruned.bytes)
    );
    let data = json!({"kept": pruned.kept, "removed": pruned.removed, "files": pruned.files,
        "bytes": pruned.bytes, "segments": segments});
    terminal.data(&text, &data)
}

/// Carries out `scrinium restore`.
pub(crate) fn restore_command(
    configuration: &Configuration,
    arguments: &RestoreArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let target = arguments.to.unwrap_or_default();
    match (&arguments.into, &arguments.database, &arguments.name) {
        (Some(into), None, None) => restore_server(configuration, arguments, into, target, terminal),
        (None, Some(database), Some(name)) => {
            let order = RestoreOrder {
                repository: absolute(&arguments.repository)?,
                database: database.clone(),
                name: name.clone(),
                backup: arguments.backup.clone(),
                target,
                archive_dir: arguments.archive.as_deref().map(absolute).transpose()?,
            };
            restore_one(configuration, &order, arguments.identity.as_deref(), terminal)
        }
        _ => {
            let usage =
                "say --into DATA_DIR for the whole server, or --database NAME --as NEW for one database";
            Err(Failure::Use(usage.to_owned()))
        }
    }
}

fn restore_server(
    configuration: &Configuration,
    arguments: &RestoreArguments,
    into: &Path,
    target: Target,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let settings = configuration.settings();
    let repository = Repository::open(&arguments.repository).map_err(Failure::work)?;
    let repository = repository.with_identities(identities(arguments.identity.as_deref())?);
    let order = Order {
        backup: arguments.backup.clone(),
        target,
        archive_dir: arguments.archive.clone().or_else(|| archive_dir(&settings)),
        into: into.to_owned(),
        log_dir: arguments.log_dir.clone().unwrap_or_else(|| settings.log.dir.clone()),
        store_only: false,
        options: store_options(&settings),
        bytes_per_second: arguments.rate,
    };
    let bar = Bar(bar(terminal));
    let restored = restore(&repository, &order, &bar);
    let mut restored = restored.map_err(Failure::work)?;
    // It is whole without them; who reads one that is lost gets an error that names it.
    let id = Some(restored.manifest.id.as_str());
    let found = verify_objects(&repository, id, (&objects(&settings), false), &bar).map_err(Failure::work)?;
    bar.0.finish_and_clear();
    for (name, problem) in found.damaged {
        let warning = restored.warning.get_or_insert_default();
        warning.push_str(&format!(
            "{name}: {problem}. Documents are all there; these attachments cannot be read. "
        ));
    }
    let result = restored_json(&restored);
    let volumes: String = restored.manifest.volumes.iter().map(|volume| {
        let name = &volume.name;
        let dir = into.join("volumes").join(name);
        format!("The volume {name} is in {}: move it to its device, or set volume.{name}.dir = \"volumes/{name}\"\n", dir.display())
    }).collect();
    let next =
        format!("{}{volumes}Start it: scrinium serve --data-dir {}\n", result_text(&result), into.display());
    terminal.data(&next, &result)
}

fn restore_one(
    configuration: &Configuration,
    order: &RestoreOrder,
    identity: Option<&Path>,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let settings = configuration.settings();
    let keys = identities(identity)?;
    let result = match Storage::open(&settings, &Registry::new(), &Clock::system()) {
        Ok(storage) => {
            let bar = Bar(bar(terminal));
            let restored =
                restore_database(&settings, (&storage.store, &storage.databases), order, keys, &bar);
            bar.0.finish_and_clear();
            storage.close();
            restored_json(&restored.map_err(Failure::Work)?)
        }
        Err(StorageError::InUse(_)) if keys.is_some() => {
            return Err(Failure::Work(
                "the private key is not given to a running server: stop it and say the same again, restore the whole server \
                 elsewhere, or name the key's file as backup.identity (docs/operate/backup.md)"
                    .to_owned(),
            ));
        }
        Err(StorageError::InUse(_)) => online::run(&settings, &order.line(), terminal)?,
        Err(unusable @ StorageError::Unusable(_)) => return Err(unusable.into()),
    };
    terminal.data(&format!("{}: {}", order.name, result_text(&result)), &result)
}

/// As the server, which may run in another folder than the command, receives it.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    if path.to_str().is_none_or(|text| text.contains('"')) {
        let problem = "a name that is not UTF-8, or has a quotation mark in it, cannot be told to the server";
        return Err(Failure::Use(format!("{}: {problem}", path.display())));
    }
    if Repository::is_remote(path) {
        return Ok(path.to_owned());
    }
    std::path::absolute(path).map_err(|error| Failure::Use(format!("{}: {error}", path.display())))
}
