//! The store and the databases on it, as the configuration wants them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use scrinium_assertion::never;
use scrinium_backup::RESTORING;
use scrinium_catalog::{Databases, MAIL_FILE_PREFIX};
use scrinium_clock::Clock;
use scrinium_contents::AttachmentOptions;
use scrinium_database::{DatabaseOptions, UndeleteLimits};
use scrinium_maintenance::{CompactOptions, Compactor};
use scrinium_objects::{ObjectError, Objects, open_bucket};
use scrinium_statistics::Registry;
use scrinium_store::{
    IoClass, LogArchive, LogFavor, LogStyle, Store, StoreError, StoreOptions, available_bytes,
};
use scrinium_views::{ScriptLimits, ScriptOptions};
use scrinium_worker::WorkerPool;

use crate::attachment_words::AttachmentWords;
use crate::backup::archive_dir;
use crate::cli::Failure;
use crate::config::{RunningConfiguration, Settings};
use crate::private;
use crate::volumes::{Placed, attach_volumes, first_budget_bytes, set_running};

/// How often, and after which pauses, a store is opened again while the system lacks file handles.
const SCARCE_TRIES: u32 = 50;
const SCARCE_PAUSE: Duration = Duration::from_millis(200);

/// The store and the databases on it.
pub(crate) struct Storage {
    pub(crate) store: Store,
    pub(crate) databases: Databases,
    placed: Arc<Placed>,
}

/// Why there is no storage.
pub(crate) enum StorageError {
    /// Another process has it open, so a running server can be asked instead.
    InUse(String),
    /// It cannot be opened.
    Unusable(String),
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::InUse(reason) | StorageError::Unusable(reason) => Self::Work(reason),
        }
    }
}

impl Storage {
    /// Opens everything for a command, which has no connections to share files with.
    pub(crate) fn open(
        settings: &Settings,
        statistics: &Registry,
        clock: &Clock,
    ) -> Result<Self, StorageError> {
        Self::open_within(settings, statistics, clock, None)
    }

    /// Opens everything; each store keeps this many of its files open.
    pub(crate) fn open_within(
        settings: &Settings,
        statistics: &Registry,
        clock: &Clock,
        open_files: Option<u32>,
    ) -> Result<Self, StorageError> {
        let unusable = |reason: String| StorageError::Unusable(reason);
        check_restored(settings).map_err(unusable)?;
        private::close_to_others(settings);
        make_own_archive(settings).map_err(unusable)?;
        let options = StoreOptions { open_files, clock: clock.clone(), ..store_options(settings) };
        let store = open_patiently(&options, statistics).map_err(|error| match error {
            StoreError::Locked { .. } => StorageError::InUse(error.to_string()),
            other => unusable(other.to_string()),
        })?;
        let databases = Databases::open(&store, database_options(settings));
        let databases = databases.map_err(|error| unusable(error.to_string()))?;
        let placed = Arc::new(Placed::default());
        placed.set(settings);
        databases.set_placement(Arc::<Placed>::clone(&placed));
        open_objects(&databases, settings).map_err(unusable)?;
        attach_volumes(&databases, settings, statistics, open_files)?;
        crate::attachments::report_unfinished(&databases);
        set_io_limits(&databases, settings);
        databases.set_rebuild_dir(settings.in_data_dir(&settings.view.rebuild_dir));
        databases.set_script_options(script_options(settings));
        databases.set_attachment_text(Arc::new(AttachmentWords::default()));
        databases.remove_left_builds();
        let compactor = Compactor::of(&databases);
        compactor.set_options(compact_options(settings));
        compactor.register_statistics(statistics);
        databases.register_statistics(statistics);
        for name in databases.refused().unwrap_or_default() {
            tracing::error!(
                database = name,
                "the database is not served: it has records in damaged files, or is on a volume that is not there; see docs/operate/fixup.md \
                 and docs/operate/volumes.md for how to recover"
            );
        }
        Ok(Self { store, databases, placed })
    }

    /// Makes keys that are set while running take effect.
    pub(crate) fn follow(&self, configuration: &RunningConfiguration, workers: &WorkerPool) {
        let pool = workers.clone();
        self.databases.io_limits().yield_while(move || pool.is_pressed());
        let pool = workers.clone();
        self.databases.io_limits().rest_while_more(move || pool.jobs());
        let (databases, placed, pool) = (self.databases.clone(), Arc::clone(&self.placed), workers.clone());
        configuration.on_change("memory.budget", move |settings| {
            pool.set_threads(pool_threads(settings));
            set_running(&databases, &placed, settings);
            Ok(())
        });
        for key in ["io.read_ahead", "volume.memory_percent", "volume.read_ahead", "volume.databases"] {
            let (databases, placed) = (self.databases.clone(), Arc::clone(&self.placed));
            configuration.on_change(key, move |settings| {
                set_running(&databases, &placed, settings);
                Ok(())
            });
        }
        for (keys, apply) in FOLLOWED {
            for key in *keys {
                let databases = self.databases.clone();
                configuration.on_change(key, move |settings| apply(&databases, settings));
            }
        }
        // They are read whenever it is looked whether to compact, for indexes that nobody reads, and for mail that is too old.
        let read_each_time = [
            "compact.window",
            "compact.time_zone",
            "compact.garbage_percent",
            "view.discard_after",
            "mail.trash_days",
            "mail.junk_days",
        ];
        for key in read_each_time {
            configuration.on_change(key, |_| Ok(()));
        }
    }

    /// Writes everything to its place, so that the next start has nothing to read again.
    pub(crate) fn close(self) {
        let Self { store, databases, .. } = self;
        let stores = databases.stores();
        drop((store, databases));
        for (volume, store) in stores {
            if let Err(error) = store.close() {
                tracing::warn!(volume, %error, "the store was not closed in order; the next start reads the log again");
            }
        }
    }
}

/// Opens a store, and where the system lacks file handles for a moment, tries again for a while.
pub(crate) fn open_patiently(options: &StoreOptions, statistics: &Registry) -> Result<Store, StoreError> {
    let mut opened = Store::open(options.clone(), statistics);
    for _ in 0..SCARCE_TRIES {
        let Err(error) = &opened else { break };
        if !error.is_scarce() {
            break;
        }
        tracing::warn!(%error, "a store cannot be opened for now, and is tried again");
        std::thread::sleep(SCARCE_PAUSE);
        opened = Store::open(options.clone(), statistics);
    }
    opened
}

type Apply = fn(&Databases, &Settings) -> Result<(), String>;

/// Keys that are set while running, and how they take effect.
const FOLLOWED: &[(&[&str], Apply)] = &[
    (
        &[
            "io.limit_view_update",
            "io.limit_compact",
            "io.limit_backup",
            "io.limit_move",
            "io.limit_attachments",
        ],
        |databases, settings| {
            set_io_limits(databases, settings);
            Ok(())
        },
    ),
    (&["file_cache.sync_report"], |databases, settings| {
        for (_, store) in databases.stores() {
            store.admin().report_syncs_above(settings.file_cache.sync_report);
        }
        Ok(())
    }),
    (&["log.favor"], |databases, settings| {
        let mut stores = databases.stores().into_iter();
        stores
            .try_for_each(|(_, store)| store.admin().set_log_favor(log_favor(settings)))
            .map_err(|error| error.to_string())
    }),
    (
        &["javascript.processes_max", "javascript.memory", "javascript.call_timeout", "server.pool_tasks"],
        |databases, settings| {
            databases.set_script_options(script_options(settings));
            Ok(())
        },
    ),
    (&["attachment.threshold", "attachment.cache", "attachment.keep_removed"], |databases, settings| {
        let options = attachment_options(settings);
        look_for_objects(databases, &options).map_err(|error| error.to_string())?;
        databases.set_attachment_options(options).map_err(|error| error.to_string())
    }),
    (&["compact.purge_after"], |databases, settings| {
        Compactor::of(databases).set_options(compact_options(settings));
        Ok(())
    }),
    (
        &[
            "document.max_bytes",
            "attachment.max_bytes",
            "view.time_variant_refresh",
            "mail.undelete_days",
            "mail.undelete_bytes",
        ],
        |databases, settings| {
            databases.set_options(database_options(settings));
            Ok(())
        },
    ),
];

/// A restore that was interrupted has left a folder that looks like one for a new server.
fn check_restored(settings: &Settings) -> Result<(), String> {
    let part = settings.server.data_dir.join(RESTORING);
    if part.exists() {
        return Err(format!(
            "{} says that a restore into this data folder was interrupted; empty the folder and restore again",
            part.display()
        ));
    }
    Ok(())
}

/// An archive in the data folder is made where it is missing; any other one may be on a device that is not there now.
fn make_own_archive(settings: &Settings) -> Result<(), String> {
    let Some(dir) = archive_dir(settings) else { return Ok(()) };
    if settings.log.archive_dir.is_relative() {
        return std::fs::create_dir_all(&dir)
            .map_err(|error| format!("cannot make {}: {error}", dir.display()));
    }
    if dir.is_dir() {
        return Ok(());
    }
    Err(format!(
        "log.archive_dir {} is not there; bring its device back, or make the folder if it is to be a new one",
        dir.display()
    ))
}

/// Threads for work on databases. Each of them holds some memory for what it did last, outside the budget.
pub(crate) fn pool_threads(settings: &Settings) -> usize {
    const BUDGET_OF_ONE: u64 = 8 << 20;
    const MIN: usize = 4;
    let by_memory = usize::try_from(budget_bytes(settings) / BUDGET_OF_ONE).unwrap_or(usize::MAX);
    settings.server.pool_tasks.min(by_memory.max(MIN))
}

pub(crate) fn budget_bytes(settings: &Settings) -> u64 {
    settings.memory.budget.of(available_bytes())
}

fn log_favor(settings: &Settings) -> LogFavor {
    match settings.log.favor.as_str() {
        "runtime" => LogFavor::Runtime,
        "restart" => LogFavor::Restart,
        "standard" => LogFavor::Standard,
        other => {
            never!("log.favor is one of its options", "{other}");
            LogFavor::Standard
        }
    }
}

/// How the configuration wants the first store to be opened.
pub(crate) fn store_options(settings: &Settings) -> StoreOptions {
    let mut options = common_options(settings, &settings.server.data_dir.join("store"));
    options.log_dir = Some(settings.in_data_dir(&settings.log.dir));
    options.budget_bytes = Some(first_budget_bytes(settings));
    options.read_ahead_bytes = settings.io.read_ahead;
    options.direct_reads = settings.file_cache.mode == "direct";
    options
}

/// What holds for every store.
pub(crate) fn common_options(settings: &Settings, dir: &Path) -> StoreOptions {
    let mut options = StoreOptions::new(dir);
    options.log_style = match settings.log.style.as_str() {
        "off" => LogStyle::Off,
        "archive" => LogStyle::Archive,
        "circular" => LogStyle::Circular,
        other => {
            never!("log.style is one of its options", "{other}");
            LogStyle::Circular
        }
    };
    options.log_favor = log_favor(settings);
    options.log_max_bytes = (settings.log.max_size > 0).then_some(settings.log.max_size);
    options.checkpoint_log_bytes = settings.checkpoint.log_bytes;
    options.reserve_bytes = settings.disk.reserve_bytes;
    options.log_extent_bytes = settings.log.extent_bytes;
    options.log_spare_extents = settings.log.spare_extents;
    options.queue_bytes = usize::try_from(settings.log.queue_bytes).unwrap_or(usize::MAX);
    options.direct_io = settings.log.direct_io;
    options.log_archive =
        archive_dir(settings).map(|dir| LogArchive { dir, every: settings.log.archive_every });
    options.direct_reads_above_bytes = settings.file_cache.threshold;
    options.report_syncs_above = settings.file_cache.sync_report;
    options
}

/// Says where attachments go, before volumes are attached: one that takes no write keeps nobody from starting.
fn open_objects(databases: &Databases, settings: &Settings) -> Result<(), String> {
    let dir = settings.in_data_dir(&settings.attachment.cache_dir);
    databases.set_objects(&Objects::with_clock(&dir, Arc::new(open_bucket), databases.clock()));
    let options = attachment_options(settings);
    // Where its device is missing, or it does not answer, everything else continues.
    if let Err(error) = look_for_objects(databases, &options) {
        tracing::error!(%error, "large attachments can be neither read nor stored");
    }
    databases.set_attachment_options(options).map_err(|error| error.to_string())
}

/// Whether the store of objects can be opened, if there is to be one.
fn look_for_objects(databases: &Databases, options: &AttachmentOptions) -> Result<(), ObjectError> {
    options.store.as_deref().map_or(Ok(()), |address| databases.objects().open(address))
}

fn attachment_options(settings: &Settings) -> AttachmentOptions {
    let attachment = &settings.attachment;
    AttachmentOptions {
        store: Some(attachment.store.clone()).filter(|store| store != "volume"),
        threshold_bytes: attachment.threshold,
        cache_bytes: attachment.cache,
        keep_removed: attachment.keep_removed,
    }
}

fn set_io_limits(databases: &Databases, settings: &Settings) {
    let limits = databases.io_limits();
    limits.set_rate(IoClass::ViewUpdate, settings.io.limit_view_update);
    limits.set_rate(IoClass::Compact, settings.io.limit_compact);
    limits.set_rate(IoClass::Backup, settings.io.limit_backup);
    limits.set_rate(IoClass::Move, settings.io.limit_move);
    limits.set_rate(IoClass::Attachments, settings.io.limit_attachments);
}

fn compact_options(settings: &Settings) -> CompactOptions {
    CompactOptions { purge_after: settings.compact.purge_after }
}

/// What the processes that run JavaScript may use.
fn script_options(settings: &Settings) -> ScriptOptions {
    let pool_threads = pool_threads(settings);
    let settings = &settings.javascript;
    let limits = ScriptLimits {
        memory_bytes: usize::try_from(settings.memory).unwrap_or(usize::MAX),
        call_time_ms: scrinium_clock::milliseconds(settings.call_timeout),
        ..ScriptLimits::default()
    };
    let processes_max = match settings.processes_max {
        0 => ScriptOptions::default().processes_max,
        set => set,
    };
    script_shares(pool_threads, ScriptOptions { processes_max, limits, ..ScriptOptions::default() })
}

/// Makes functions in JavaScript leave pool threads to all else: a thread waits while its function runs, or for a process. At
/// most half of the threads have one, and a quarter of them wait for one, of which one database has half each.
fn script_shares(pool_threads: usize, options: ScriptOptions) -> ScriptOptions {
    let processes_max = options.processes_max.min((pool_threads / 2).max(1));
    let waiting_max = options.waiting_max.min(pool_threads / 4);
    ScriptOptions { processes_max, waiting_max, ..options }
}

fn database_options(settings: &Settings) -> DatabaseOptions {
    DatabaseOptions {
        document_max_bytes: usize::try_from(settings.document.max_bytes).unwrap_or(usize::MAX),
        attachment_max_bytes: settings.attachment.max_bytes,
        time_variant_seconds: i64::try_from(settings.view.time_variant_refresh.as_secs()).unwrap_or(i64::MAX),
        undelete: UndeleteLimits {
            days: u32::try_from(settings.mail.undelete_days).unwrap_or(u32::MAX),
            bytes: settings.mail.undelete_bytes,
        },
        undelete_prefix: MAIL_FILE_PREFIX,
        ..DatabaseOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_one_database_never_hold_all_pool_threads_nor_do_those_of_all() {
        for pool_threads in 2..300 {
            for processes_max in [1, 2, 3, 4, 16, 128, 1024] {
                let shares =
                    script_shares(pool_threads, ScriptOptions { processes_max, ..ScriptOptions::default() });
                let ScriptOptions { processes_max, waiting_max, .. } = shares;
                assert!(processes_max > 0);
                let of_one = processes_max.div_ceil(2) + waiting_max.div_ceil(2);
                assert!(of_one <= pool_threads.div_ceil(2), "{pool_threads}: {of_one}");
                let of_all = processes_max + waiting_max;
                assert!(of_all < pool_threads, "{pool_threads}: {of_all}");
            }
        }
    }
}
